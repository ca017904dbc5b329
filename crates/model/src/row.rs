//! Rows: the events of one kind as a table, with the columns of a schema.
//!
//! ```text
//!  bbo event ──▶ EventRow ── value(column) ──▶ ts_event, ts_recv, …, bid_px_00, …, symbol, venue
//! ```
//!
//! Columns and codes have the names and meanings of Databento, where it has such a column. A row has no column of its own:
//! every value is a field of the event, or the name of an id.

use crate::dict::Dictionary;
use crate::event::{Event, EventValue};
use crate::id::{InlineId, NameKind};
use crate::kind::{EventField, EventKind};
use crate::num::{Decimal, Price, UnixNanos};
use std::borrow::Cow;

/// A schema of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowSchema {
    /// Best bid and offer.
    Bbo,
    /// Prints.
    Trades,
}

/// The form of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnForm {
    /// Nanoseconds since 1970, UTC.
    Time,
    /// A number without a sign: a sequence, or an id of the tape.
    Number,
    /// An exact price.
    Price,
    /// An exact size.
    Size,
    /// Text.
    Text,
}

/// A column of a schema.
#[derive(Clone, Copy, Debug)]
pub struct RowColumn {
    /// The column's name.
    pub name: &'static str,
    /// The form of its values.
    pub form: ColumnForm,
    origin: ColumnOrigin,
}

/// The part of an event that a column shows.
#[derive(Clone, Copy, Debug)]
enum ColumnOrigin {
    EventTime,
    ReceiveTime,
    Publisher,
    Instrument,
    Sequence,
    Symbol,
    Venue,
    TradeAction,
    Side,
    Field(EventField),
    QuoteCondition,
    /// No event has this value yet.
    Absent,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValue<'a> {
    /// Nanoseconds since 1970, UTC.
    Time(UnixNanos),
    /// A number without a sign.
    Number(u64),
    /// A price.
    Price(Price),
    /// A size.
    Size(Decimal),
    /// A text.
    Text(Cow<'a, str>),
}

impl RowSchema {
    /// All schemas, by name.
    pub const ALL: [Self; 2] = [Self::Bbo, Self::Trades];

    /// Returns the schema of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|schema| schema.name() == name)
    }

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bbo => "bbo",
            Self::Trades => "trades",
        }
    }

    /// Returns the kind of event that makes a row.
    pub const fn kind(self) -> EventKind {
        match self {
            Self::Bbo => EventKind::Bbo,
            Self::Trades => EventKind::Trade,
        }
    }

    /// Returns the columns, in their order.
    pub const fn columns(self) -> &'static [RowColumn] {
        match self {
            Self::Bbo => BBO,
            Self::Trades => TRADES,
        }
    }
}

/// A row: an event, and the names of its tape.
#[derive(Clone, Copy, Debug)]
pub struct EventRow<'a> {
    /// The event, of the schema's kind.
    pub event: Event<'a>,
    /// The names of its ids.
    pub names: &'a Dictionary,
}

impl EventRow<'_> {
    /// Returns the value of a column, or `None` for null.
    ///
    /// # Panics
    /// Panics if the kind of event does not have the column.
    pub fn value(&self, column: &RowColumn) -> Option<ColumnValue<'_>> {
        let event = &self.event;
        let (instrument, venue) = (event.instrument().0, u32::from(event.venue()));
        let id = |id: u32| (id != 0).then_some(ColumnValue::Number(id.into()));
        let name = |dict, id| self.names.name(dict, id).map(|name| ColumnValue::Text(name.into()));
        match column.origin {
            ColumnOrigin::EventTime => Some(ColumnValue::Time(event.ts_event())),
            ColumnOrigin::ReceiveTime => event.ts_recv().map(ColumnValue::Time),
            ColumnOrigin::Publisher => id(venue),
            ColumnOrigin::Instrument => id(instrument),
            ColumnOrigin::Sequence => event.sequence().map(ColumnValue::Number),
            ColumnOrigin::Symbol => name(NameKind::Instrument, instrument),
            ColumnOrigin::Venue => name(NameKind::Venue, venue),
            ColumnOrigin::TradeAction => Some(ColumnValue::Text(trade_action(event).into())),
            ColumnOrigin::Side => Some(ColumnValue::Text(side(event).into())),
            ColumnOrigin::Field(field) => self.field(field),
            ColumnOrigin::QuoteCondition => event.is_partial().then_some(ColumnValue::Text(PARTIAL.into())),
            ColumnOrigin::Absent => None,
        }
    }

    fn field(&self, field: EventField) -> Option<ColumnValue<'_>> {
        let spec = self.event.schema().get(field).expect("a column of this kind of event");
        Some(match self.event.value(spec, &mut [0; 36])? {
            EventValue::Price(price) => ColumnValue::Price(price),
            EventValue::Decimal(size) => ColumnValue::Size(size),
            EventValue::Text(text) => ColumnValue::Text(text.to_owned().into()),
            EventValue::Id(id) => ColumnValue::Text(id_text(id).into()),
            EventValue::Flags(words, set) => ColumnValue::Text(flag_words(words, set).into()),
            other => unreachable!("no column has {other:?}"),
        })
    }
}

/// The condition of a `bbo` row that states only the values that it has; the others are unchanged. Other rows have none.
pub const PARTIAL: &str = "partial";

/// Returns the code of a trade: new `T`, cancelled `C`, corrected `M`.
pub fn trade_action(event: &Event<'_>) -> &'static str {
    match code(event, EventField::Action) {
        2 => "C",
        3 => "M",
        _ => "T",
    }
}

/// Returns the code of a side: bid `B`, ask `A`, no side `N`.
pub fn side(event: &Event<'_>) -> &'static str {
    match code(event, EventField::Side) {
        1 => "B",
        2 => "A",
        _ => "N",
    }
}

/// Returns the text of an id: of a number its digits, of bytes that are not UTF-8 `0x` and their hexadecimal digits.
pub fn id_text(id: InlineId<'_>) -> String {
    match id {
        InlineId::Number(number) => number.to_string(),
        InlineId::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
        },
    }
}

/// Returns the words of a set of flags, joined by `+`.
pub fn flag_words(words: &[&str], set: u8) -> String {
    let words = words.iter().enumerate().filter(|(i, _)| set >> i & 1 != 0);
    words.map(|(_, word)| *word).collect::<Vec<_>>().join("+")
}

/// Returns the number of a code, from 1, or 0 if there is no code.
fn code(event: &Event<'_>, field: EventField) -> usize {
    let Some(spec) = event.schema().get(field) else { return 0 };
    let crate::schema::FieldLayout::Code { offset, shift, bits, values } = spec.slot else { return 0 };
    let code = usize::from(event.bytes()[usize::from(offset)] >> shift & ((1 << bits) - 1));
    if code <= values.len() { code } else { 0 }
}

const fn row_column(name: &'static str, form: ColumnForm, origin: ColumnOrigin) -> RowColumn {
    RowColumn { name, form, origin }
}
const fn price(name: &'static str, field: EventField) -> RowColumn {
    row_column(name, ColumnForm::Price, ColumnOrigin::Field(field))
}
const fn size_column(name: &'static str, field: EventField) -> RowColumn {
    row_column(name, ColumnForm::Size, ColumnOrigin::Field(field))
}
const fn text_column(name: &'static str, origin: ColumnOrigin) -> RowColumn {
    row_column(name, ColumnForm::Text, origin)
}

const TS_EVENT: RowColumn = row_column("ts_event", ColumnForm::Time, ColumnOrigin::EventTime);
const TS_RECV: RowColumn = row_column("ts_recv", ColumnForm::Time, ColumnOrigin::ReceiveTime);
const PUBLISHER: RowColumn = row_column("publisher_id", ColumnForm::Number, ColumnOrigin::Publisher);
const INSTRUMENT: RowColumn = row_column("instrument_id", ColumnForm::Number, ColumnOrigin::Instrument);
const SEQUENCE: RowColumn = row_column("sequence", ColumnForm::Number, ColumnOrigin::Sequence);
const SYMBOL: RowColumn = text_column("symbol", ColumnOrigin::Symbol);
const VENUE: RowColumn = text_column("venue", ColumnOrigin::Venue);

const BBO: &[RowColumn] = &[
    TS_EVENT,
    TS_RECV,
    PUBLISHER,
    INSTRUMENT,
    SEQUENCE,
    price("bid_px_00", EventField::Bid),
    price("ask_px_00", EventField::Ask),
    size_column("bid_sz_00", EventField::BidQty),
    size_column("ask_sz_00", EventField::AskQty),
    text_column("cond", ColumnOrigin::QuoteCondition),
    text_column("bid_venue", ColumnOrigin::Absent),
    text_column("ask_venue", ColumnOrigin::Absent),
    SYMBOL,
    VENUE,
];

const TRADES: &[RowColumn] = &[
    TS_EVENT,
    TS_RECV,
    PUBLISHER,
    INSTRUMENT,
    text_column("action", ColumnOrigin::TradeAction),
    text_column("side", ColumnOrigin::Side),
    price("price", EventField::Px),
    size_column("size", EventField::Qty),
    SEQUENCE,
    text_column("match_id", ColumnOrigin::Field(EventField::MatchId)),
    text_column("cond", ColumnOrigin::Field(EventField::Cond)),
    text_column("trade_flags", ColumnOrigin::Field(EventField::TradeFlags)),
    SYMBOL,
    VENUE,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::EventBuilder;
    use crate::schema::EventSchema;

    /// Returns the values of a row as text; `-` for null.
    fn values(schema: RowSchema, fields: &[(&str, &str)]) -> String {
        let (mut arena, mut names) = (Vec::new(), Dictionary::default());
        let mut event = EventBuilder::begin(&mut arena, schema.kind(), UnixNanos(17));
        for (field, text) in fields {
            let spec = EventSchema::for_kind(schema.kind()).find(field).unwrap();
            event.set_text(spec, text.as_bytes(), &mut names).unwrap();
        }
        event.finish(0).unwrap();
        let row = EventRow { event: Event::new(&arena).unwrap(), names: &names };
        let text = |column| match row.value(column) {
            None => "-".to_owned(),
            Some(ColumnValue::Time(ts)) => ts.0.to_string(),
            Some(ColumnValue::Number(number)) => number.to_string(),
            Some(ColumnValue::Price(price)) => price.to_string(),
            Some(ColumnValue::Size(size)) => size.to_string(),
            Some(ColumnValue::Text(text)) => text.into_owned(),
        };
        schema.columns().iter().map(text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_bbo_is_a_row() {
        assert_eq!(
            values(
                RowSchema::Bbo,
                &[("venue", "XLON"), ("instr", "VOD"), ("bid", "99.5"), ("bid_qty", "300")]
            ),
            "17 - 1 1 - 99.5 - 300 - - - - VOD XLON"
        );
        assert_eq!(
            values(RowSchema::Bbo, &[("instr", "VOD"), ("ask", "100"), ("partial", "true")]),
            "17 - - 1 - - 100 - - partial - - VOD -"
        );
    }

    #[test]
    fn a_trade_is_a_row_with_the_codes_of_databento() {
        let trade = |more: &[(&'static str, &'static str)]| {
            let fields = [("instr", "VOD"), ("px", "-1.5"), ("qty", "0.25")];
            values(RowSchema::Trades, &[&fields, more].concat())
        };
        assert_eq!(trade(&[]), "17 - - 1 T N -1.5 0.25 - - - - VOD -");
        assert_eq!(
            trade(&[("match_id", "M1"), ("cond", "@  I"), ("side", "S"), ("action", "cancel")]),
            "17 - - 1 C A -1.5 0.25 - M1 @  I - VOD -"
        );
        assert_eq!(
            trade(&[("match_id", "7"), ("side", "B"), ("action", "correct")]),
            "17 - - 1 M B -1.5 0.25 - 7 - - VOD -"
        );
        assert_eq!(flag_words(&["auction", "iso", "exempt", "no_last"], 0b1001), "auction+no_last");
        assert_eq!(id_text(InlineId::Text(b"\xff\x00")), "0xff00");
    }

    #[test]
    fn schemas_are_found_by_name() {
        for schema in RowSchema::ALL {
            assert_eq!(RowSchema::from_name(schema.name()), Some(schema));
        }
        assert_eq!(RowSchema::from_name("mbo"), None);
    }
}
