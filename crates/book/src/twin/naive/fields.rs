//! The fields of an event that the twin reads.

use super::PLACES;
use unitape_model::{Event, EventField, EventValue, Price, Side};

/// The fields of an event, by name.
pub(super) struct Fields<'a>(pub &'a Event<'a>);

impl Fields<'_> {
    pub fn text(&self, field: EventField) -> Option<String> {
        match self.0.field(field, &mut [0; 36])? {
            EventValue::Text(t) => Some(t.to_owned()),
            EventValue::Id(unitape_model::InlineId::Text(t)) => Some(format!("t{}", t.escape_ascii())),
            EventValue::Id(unitape_model::InlineId::Number(n)) => Some(format!("n{n}")),
            _ => None,
        }
    }

    pub fn uint(&self, field: EventField) -> Option<u64> {
        match self.0.field(field, &mut [0; 36])? {
            EventValue::UInt(n) => Some(n),
            _ => None,
        }
    }

    pub fn px(&self, field: EventField) -> Option<i64> {
        match self.0.field(field, &mut [0; 36])? {
            EventValue::Price(Price(px)) => Some(px),
            _ => None,
        }
    }

    pub fn qty(&self, field: EventField) -> Option<i128> {
        match self.0.field(field, &mut [0; 36])? {
            EventValue::Decimal(d) => d.scaled(PLACES),
            _ => None,
        }
    }

    pub fn flag(&self, field: EventField) -> bool {
        matches!(self.0.field(field, &mut [0; 36]), Some(EventValue::Bool(true)))
    }

    pub fn side(&self) -> Option<Side> {
        match self.text(EventField::Side)?.as_str() {
            "B" => Some(Side::Buy),
            _ => Some(Side::Sell),
        }
    }

    pub fn hidden(&self) -> Option<bool> {
        if self.qty(EventField::DisplayQty) == Some(0)
            || self.text(EventField::Reason).as_deref() == Some("suspended")
        {
            return Some(true);
        }
        let (tif, kind) = (self.text(EventField::Tif), self.text(EventField::Type));
        if matches!(tif.as_deref(), Some("IOC" | "FOK")) {
            return Some(true);
        }
        match kind.as_deref() {
            Some(kind) => Some(kind == "market" || kind.starts_with("stop")),
            None => tif.map(|_| false),
        }
    }
}
