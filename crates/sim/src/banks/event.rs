//! A line of events, as far as best prices look at it.

use serde::Deserialize;
use serde_json::Value;
use unitape_model::{CivilDate, Decimal, Price, Side};

use crate::error::Error;

/// An event, with the fields that the rules of best prices need.
#[derive(Debug, Clone, PartialEq)]
pub struct BankEvent {
    /// The event's time.
    pub ts: i64,
    /// The event's kind.
    pub kind: String,
    /// Rule 4: the merge did not believe its time.
    pub clock_ahead: bool,
    /// Rule 8: `bank`, else `venue`; both together are `BANK@VENUE`. `status` and `control` have it in `venue`.
    pub bank: Option<String>,
    /// The instrument, as written.
    pub instr: Option<String>,
    /// `quote`: the side, of the pair as written.
    pub side: Option<Side>,
    /// `quote`: the tier.
    pub tier: Option<u64>,
    /// `quote`: the price.
    pub px: Option<Price>,
    /// `quote`: the quantity.
    pub qty: Option<Decimal>,
    /// `quote`: the id.
    pub quote_id: Option<QuoteId>,
    /// `quote`: the time from which it is no longer on offer.
    pub valid_until: Option<i64>,
    /// `quote`: not to be dealt on.
    pub indicative: bool,
    /// `quote`: to be dealt whole or not at all.
    pub full_amount: Option<bool>,
    /// `quote`: takes quotes back.
    pub withdrawn: bool,
    /// `quote`: the date of settlement.
    pub value_date: Option<CivilDate>,
    /// `status`: the state.
    pub state: Option<String>,
    /// `control`: what to do.
    pub action: Option<String>,
    /// `control`: its end.
    pub until: Option<i64>,
    /// `control`: a rehearsal.
    pub dry_run: bool,
}

/// The id of a quote. Rule 10: the number 7 is not the text `7`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum QuoteId {
    /// A whole number.
    Number(u64),
    /// A text.
    Text(String),
}

impl BankEvent {
    /// Reads a line that `consolidate` keeps.
    ///
    /// # Errors
    /// Fails if the line is no event.
    pub fn parse(line: &str) -> Result<Self, Error> {
        let line_error = |reason: &str| Error::BankLine(format!("{reason} in {line}"));
        let fields: EventFields = serde_json::from_str(line).map_err(|e| line_error(&e.to_string()))?;
        let decimal = |value: &Option<Value>| match value {
            None => Ok(None),
            Some(Value::String(text)) => decimal(text).map(Some).ok_or_else(|| line_error("a wrong decimal")),
            Some(json_value) => {
                decimal(&json_value.to_string()).map(Some).ok_or_else(|| line_error("a wrong decimal"))
            }
        };
        let date = |value: &Value| match value {
            Value::String(text) => CivilDate::parse(text.as_bytes()),
            json_value => CivilDate::parse(json_value.to_string().as_bytes()),
        };
        let side = match fields.side.as_deref() {
            None => None,
            Some("B") => Some(Side::Buy),
            Some("S") => Some(Side::Sell),
            Some(_) => return Err(line_error("a wrong side")),
        };
        let px = decimal(&fields.px)?.map(Price::from_decimal).transpose();
        let value_date =
            fields.value_date.as_ref().map(|v| date(v).ok_or_else(|| line_error("a wrong date")));
        Ok(Self {
            ts: fields.ts,
            clock_ahead: fields.flags.iter().flatten().any(|flag| flag == "clock_ahead"),
            bank: match (fields.bank, fields.venue) {
                (Some(bank), Some(venue)) => Some(format!("{bank}@{venue}")),
                (bank, venue) => bank.or(venue),
            },
            side,
            px: px.map_err(|_| line_error("a wrong price"))?,
            qty: decimal(&fields.qty)?,
            value_date: value_date.transpose()?,
            indicative: fields.indicative == Some(true),
            withdrawn: fields.withdrawn == Some(true),
            dry_run: fields.dry_run == Some(true),
            kind: fields.kind,
            instr: fields.instr,
            tier: fields.tier,
            quote_id: fields.quote_id,
            valid_until: fields.valid_until,
            full_amount: fields.full_amount,
            state: fields.state,
            action: fields.action,
            until: fields.until,
        })
    }
}

#[derive(Deserialize)]
struct EventFields {
    ts: i64,
    kind: String,
    flags: Option<Vec<String>>,
    bank: Option<String>,
    venue: Option<String>,
    instr: Option<String>,
    side: Option<String>,
    tier: Option<u64>,
    px: Option<Value>,
    qty: Option<Value>,
    quote_id: Option<QuoteId>,
    valid_until: Option<i64>,
    indicative: Option<bool>,
    full_amount: Option<bool>,
    withdrawn: Option<bool>,
    value_date: Option<Value>,
    state: Option<String>,
    action: Option<String>,
    until: Option<i64>,
    dry_run: Option<bool>,
}

fn decimal(text: &str) -> Option<Decimal> {
    Decimal::parse(text.as_bytes()).ok()
}
