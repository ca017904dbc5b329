//! What the twin reads of an event.

use super::PLACES;
use unitape_model::{Event, Field, Price, Side, Value};

/// The fields of an event, by name.
pub(super) struct Fields<'a>(pub &'a Event<'a>);

impl Fields<'_> {
    pub fn text(&self, field: Field) -> Option<String> {
        match self.0.field(field, &mut [0; 36])? {
            Value::Text(t) => Some(t.to_owned()),
            Value::Id(unitape_model::InlineId::Text(t)) => Some(format!("t{}", t.escape_ascii())),
            Value::Id(unitape_model::InlineId::Number(n)) => Some(format!("n{n}")),
            _ => None,
        }
    }

    pub fn uint(&self, field: Field) -> Option<u64> {
        match self.0.field(field, &mut [0; 36])? {
            Value::UInt(n) => Some(n),
            _ => None,
        }
    }

    pub fn px(&self, field: Field) -> Option<i64> {
        match self.0.field(field, &mut [0; 36])? {
            Value::Price(Price(px)) => Some(px),
            _ => None,
        }
    }

    pub fn qty(&self, field: Field) -> Option<i128> {
        match self.0.field(field, &mut [0; 36])? {
            Value::Decimal(d) => d.scaled(PLACES),
            _ => None,
        }
    }

    pub fn side(&self) -> Option<Side> {
        match self.text(Field::Side)?.as_str() {
            "B" => Some(Side::Buy),
            _ => Some(Side::Sell),
        }
    }

    pub fn hidden(&self) -> Option<bool> {
        if self.qty(Field::Display) == Some(0) || self.text(Field::Reason).as_deref() == Some("suspended") {
            return Some(true);
        }
        let (tif, kind) = (self.text(Field::Tif), self.text(Field::Type));
        if matches!(tif.as_deref(), Some("IOC" | "FOK")) {
            return Some(true);
        }
        match kind.as_deref() {
            Some(kind) => Some(kind == "market" || kind.starts_with("stop")),
            None => tif.map(|_| false),
        }
    }
}
