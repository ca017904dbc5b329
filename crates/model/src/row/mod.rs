//! Rows: the events of a schema as a table, with the columns of the schema.
//!
//! ```text
//!  bbo event ──▶ EventRow ── value(column) ──▶ ts_event, ts_recv, …, bid_px_00, …, symbol, venue
//! ```
//!
//! `mbo`, `bbo` and `trades` have the columns and codes of Databento, where it has such a column. The other schemas have a column
//! for each field of their kinds, with the values of event lines. A row has no column of its own: every value is a field of the
//! event, or the name of an id.

mod table;

use crate::calendar::CivilDate;
use crate::class::{ClassSet, FieldClass};
use crate::dict::Dictionary;
use crate::event::{Event, EventValue};
use crate::id::{InlineId, NameKind};
use crate::kind::{EventField, EventKind};
use crate::num::{Amount, Decimal, Price, UnixNanos};
use crate::tape_position::TapePosition;
use std::borrow::Cow;
use std::fmt::Write as _;
use table::RowTable;

/// A schema: the kinds of events that are the rows of one table. Names follow the Databento convention where it has one; every
/// kind of event is in exactly one schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RowSchema {
    /// Orders by id, and their changes: `order_new`, `order_amend`, `order_cancel`, `exec`.
    Mbo = 0,
    /// Levels of a book by price: `level`.
    Mbp = 1,
    /// Best bid and offer: `bbo`.
    Bbo = 2,
    /// Public prints: `trade`.
    Trades = 3,
    /// Quotes of venues and banks: `quote`.
    Quotes = 4,
    /// Definitions of instruments: `ref`.
    Definition = 5,
    /// Trading status and phases: `session`, `status`.
    Status = 6,
    /// Levels and prices without trades: `index`, `ref_px`.
    Statistics = 7,
    /// Client orders before they are in the market, and the results of quotes: `order_recv`, `parent`, `quote_reject`,
    /// `deal`, `decision`.
    Orders = 8,
    /// Parties, their holdings and lists: `party`, `position`, `list`.
    Reference = 9,
    /// `news`.
    News = 10,
    /// Messages between people: `comm`.
    Comms = 11,
    /// Money: `payment`, `statement`.
    Payments = 12,
    /// Events that the watch, the breakers and analysts wrote: `alert`, `control`, `case`.
    Alerts = 13,
    /// Messages that could not become events: `quarantine`.
    Quarantine = 14,
    /// `clock`.
    Clock = 15,
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
    /// An exact number of up to 38 digits: an amount of money, a level of an index, a reference price, a ratio.
    Amount,
    /// A date.
    Date,
    /// True or false.
    Bool,
    /// Text: a name, a code, an id, or words joined by `+`.
    Text,
    /// A JSON value: a list or an object.
    Json,
}

impl ColumnForm {
    /// Returns the word for this form.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Number => "number",
            Self::Price => "price",
            Self::Size => "size",
            Self::Amount => "amount",
            Self::Date => "date",
            Self::Bool => "bool",
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// A column of a schema.
#[derive(Clone, Copy, Debug)]
pub struct RowColumn {
    /// The column's name.
    pub name: &'static str,
    /// The form of its values.
    pub form: ColumnForm,
    /// The class of its values. The store keeps values of another class than market data apart.
    pub class: FieldClass,
    origin: ColumnOrigin,
}

impl RowColumn {
    /// Returns whether an event may have no value for the column.
    pub const fn is_nullable(&self) -> bool {
        !matches!(
            self.origin,
            ColumnOrigin::EventTime
                | ColumnOrigin::Kind
                | ColumnOrigin::TradeAction
                | ColumnOrigin::OrderAction
                | ColumnOrigin::Side
        )
    }
}

/// The part of an event that a column shows.
#[derive(Clone, Copy, Debug)]
enum ColumnOrigin {
    EventTime,
    ReceiveTime,
    Kind,
    Publisher,
    Instrument,
    Sequence,
    Symbol,
    Venue,
    TradeAction,
    OrderAction,
    Side,
    Field(EventField),
    QuoteCondition,
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
    /// A number of up to 38 digits.
    Amount(Amount),
    /// A date.
    Date(CivilDate),
    /// True or false.
    Bool(bool),
    /// A text.
    Text(Cow<'a, str>),
    /// The text of a JSON value. An event may hold text that is no JSON.
    Json(Cow<'a, str>),
}

impl RowSchema {
    /// All schemas, by number.
    pub const ALL: [Self; 16] = [
        Self::Mbo,
        Self::Mbp,
        Self::Bbo,
        Self::Trades,
        Self::Quotes,
        Self::Definition,
        Self::Status,
        Self::Statistics,
        Self::Orders,
        Self::Reference,
        Self::News,
        Self::Comms,
        Self::Payments,
        Self::Alerts,
        Self::Quarantine,
        Self::Clock,
    ];

    /// Returns the schema of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|schema| schema.name() == name)
    }

    /// Returns the schema of events of this kind. Returns `None` for bookkeeping, which is no event.
    pub const fn for_kind(kind: EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::OrderNew | EventKind::OrderAmend | EventKind::OrderCancel | EventKind::Exec => {
                Self::Mbo
            }
            EventKind::Level => Self::Mbp,
            EventKind::Bbo => Self::Bbo,
            EventKind::Trade => Self::Trades,
            EventKind::Quote => Self::Quotes,
            EventKind::Ref => Self::Definition,
            EventKind::Status | EventKind::Session => Self::Status,
            EventKind::Index | EventKind::RefPx => Self::Statistics,
            EventKind::OrderRecv
            | EventKind::Parent
            | EventKind::QuoteReject
            | EventKind::Deal
            | EventKind::Decision => Self::Orders,
            EventKind::Party | EventKind::Position | EventKind::List => Self::Reference,
            EventKind::News => Self::News,
            EventKind::Comm => Self::Comms,
            EventKind::Payment | EventKind::Statement => Self::Payments,
            EventKind::Alert | EventKind::Control | EventKind::Case => Self::Alerts,
            EventKind::Quarantine => Self::Quarantine,
            EventKind::Clock => Self::Clock,
            EventKind::Define | EventKind::Source | EventKind::Progress => return None,
        })
    }

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mbo => "mbo",
            Self::Mbp => "mbp",
            Self::Bbo => "bbo",
            Self::Trades => "trades",
            Self::Quotes => "quotes",
            Self::Definition => "definition",
            Self::Status => "status",
            Self::Statistics => "statistics",
            Self::Orders => "orders",
            Self::Reference => "reference",
            Self::News => "news",
            Self::Comms => "comms",
            Self::Payments => "payments",
            Self::Alerts => "alerts",
            Self::Quarantine => "quarantine",
            Self::Clock => "clock",
        }
    }

    /// Returns the kinds of events that make a row.
    pub fn kinds(self) -> &'static [EventKind] {
        &RowTable::of(self).kinds
    }

    /// Returns the columns of a row, in their order: market data, and `sequence` whatever its class.
    pub fn columns(self) -> &'static [RowColumn] {
        let table = RowTable::of(self);
        &table.columns[..table.default_columns]
    }

    /// Returns the columns of a row, and behind them those of identity and of provenance.
    pub fn all_columns(self) -> &'static [RowColumn] {
        &RowTable::of(self).columns
    }

    /// Returns the columns of a row, and behind them those of the other classes in `with`.
    pub fn columns_with(self, with: ClassSet) -> Vec<RowColumn> {
        let default_columns = self.columns();
        let more = self.all_columns()[default_columns.len()..].iter();
        let wanted = more.filter(|column| with.contains(column.class));
        default_columns.iter().chain(wanted).copied().collect()
    }
}

/// A row: an event, and the names of its tape.
#[derive(Clone, Copy, Debug)]
pub struct EventRow<'a> {
    /// The event, of a kind of the schema.
    pub event: Event<'a>,
    /// The names of its ids.
    pub names: &'a Dictionary,
}

impl EventRow<'_> {
    /// Returns the value of a column. Returns `None` for null: the event has no such value, or its kind no such field.
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
            ColumnOrigin::Kind => Some(ColumnValue::Text(event.kind().name().into())),
            ColumnOrigin::TradeAction => Some(ColumnValue::Text(trade_action(event).into())),
            ColumnOrigin::OrderAction => Some(ColumnValue::Text(order_action(event).into())),
            ColumnOrigin::Side => Some(ColumnValue::Text(side(event).into())),
            ColumnOrigin::Field(field) => self.field(field, column.form),
            ColumnOrigin::QuoteCondition => quote_condition(event).map(ColumnValue::Text),
        }
    }

    fn field(&self, field: EventField, form: ColumnForm) -> Option<ColumnValue<'_>> {
        let spec = self.event.schema().get(field)?;
        let is_amount = form == ColumnForm::Amount;
        Some(match self.event.value(spec, &mut [0; 36])? {
            EventValue::Price(price) if is_amount => ColumnValue::Amount(price.decimal()?.into()),
            EventValue::Price(price) => ColumnValue::Price(price),
            EventValue::Decimal(number) if is_amount => ColumnValue::Amount(number.into()),
            EventValue::Decimal(size) => ColumnValue::Size(size),
            EventValue::Amount(amount) => ColumnValue::Amount(amount),
            EventValue::Text(text) => ColumnValue::Text(text.to_owned().into()),
            EventValue::Id(id) => ColumnValue::Text(id_text(id).into()),
            EventValue::Flags(words, set) => ColumnValue::Text(flag_words(words, set).into()),
            EventValue::Bool(is_true) => ColumnValue::Bool(is_true),
            EventValue::UInt(number) => ColumnValue::Number(number),
            EventValue::Nanos(time) => ColumnValue::Time(time),
            EventValue::Date(date) => ColumnValue::Date(date),
            EventValue::Sym(dict, id) => ColumnValue::Text(self.names.name(dict, id)?.into()),
            EventValue::Syms(dict, ids) => {
                let ids = ids.as_chunks().0.iter().map(|id| u32::from_le_bytes(*id));
                ColumnValue::Json(
                    json_list(ids, |list, id| match self.names.name(dict, id) {
                        Some(name) => put_json_text(list, name),
                        // As in event lines: no reader takes it for a name.
                        None => _ = write!(list, r#"{{"id":{id}}}"#),
                    })
                    .into(),
                )
            }
            EventValue::Tape(id) => ColumnValue::Text(format!("{id:032x}").into()),
            EventValue::TapePosition(position) => ColumnValue::Json(position.to_string().into()),
            EventValue::TapePositions(list) => {
                let positions = list.as_chunks().0.iter().map(TapePosition::from_bytes);
                let put = |list: &mut String, position| _ = write!(list, "{position}");
                ColumnValue::Json(json_list(positions, put).into())
            }
            EventValue::Json(json) => ColumnValue::Json(json.to_owned().into()),
        })
    }
}

fn json_list<T>(items: impl Iterator<Item = T>, mut put: impl FnMut(&mut String, T)) -> String {
    let mut list = "[".to_owned();
    for (i, item) in items.enumerate() {
        if i > 0 {
            list.push(',');
        }
        put(&mut list, item);
    }
    list.push(']');
    list
}

/// Appends a text as JSON.
fn put_json_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => *out += "\\n",
            '\r' => *out += "\\r",
            '\t' => *out += "\\t",
            '\u{8}' => *out += "\\b",
            '\u{c}' => *out += "\\f",
            c if c < ' ' => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The first word in the condition of a `bbo` row that states only the values that it has; the others are unchanged.
pub const PARTIAL: &str = "partial";

/// Returns the condition of a `bbo`: the field `cond`, after [`PARTIAL`] and `+` if the event is partial. Returns `None`
/// for a complete quote without a condition.
#[inline]
pub fn quote_condition<'a>(event: &Event<'a>) -> Option<Cow<'a, str>> {
    if !event.has_extension() {
        return None;
    }
    match (event.is_partial(), event.extension_text(EventField::Cond)) {
        (false, cond) => cond.map(Cow::Borrowed),
        (true, None) => Some(PARTIAL.into()),
        (true, Some(cond)) => Some(format!("{PARTIAL}+{cond}").into()),
    }
}

/// Returns the code of a trade: new `T`, cancelled `C`, corrected `M`.
pub fn trade_action(event: &Event<'_>) -> &'static str {
    match code(event, EventField::Action) {
        2 => "C",
        3 => "M",
        _ => "T",
    }
}

/// Returns the code of an order's event: new `A`, amended `M`, cancelled `C`; of an execution `T` where the order took liquidity,
/// else `F`.
pub fn order_action(event: &Event<'_>) -> &'static str {
    match event.kind() {
        EventKind::OrderNew => "A",
        EventKind::OrderAmend => "M",
        EventKind::OrderCancel => "C",
        // `liq` is one of `A`, `R`, `X`.
        _ if code(event, EventField::Liq) == 2 => "T",
        _ => "F",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::EventBuilder;
    use crate::schema::EventSchema;

    /// Returns the values of a row as text; `-` for null.
    fn values_of(kind: EventKind, columns: &[RowColumn], fields: &[(&str, &str)]) -> String {
        let (mut arena, mut names) = (Vec::new(), Dictionary::default());
        let mut event = EventBuilder::begin(&mut arena, kind, UnixNanos(17));
        for (field, text) in fields {
            let spec = EventSchema::for_kind(kind).find(field).unwrap();
            event.set_text(spec, text.as_bytes(), &mut names).unwrap();
        }
        event.finish(0).unwrap();
        let row = EventRow { event: Event::new(&arena).unwrap(), names: &names };
        let text = |column: &RowColumn| match row.value(column) {
            None => {
                assert!(column.is_nullable());
                "-".to_owned()
            }
            Some(ColumnValue::Time(ts)) => ts.0.to_string(),
            Some(ColumnValue::Number(number)) => number.to_string(),
            Some(ColumnValue::Price(price)) => price.to_string(),
            Some(ColumnValue::Size(size)) => size.to_string(),
            Some(ColumnValue::Amount(amount)) => amount.to_string(),
            Some(ColumnValue::Date(date)) => date.to_string(),
            Some(ColumnValue::Bool(is_true)) => is_true.to_string(),
            Some(ColumnValue::Text(text) | ColumnValue::Json(text)) => text.into_owned(),
        };
        columns.iter().map(text).collect::<Vec<_>>().join(" ")
    }

    fn values(schema: RowSchema, fields: &[(&str, &str)]) -> String {
        values_of(schema.kinds()[0], schema.columns(), fields)
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
        let sides = [("venue", "NBBO"), ("instr", "VOD"), ("bid_venue", "XNAS"), ("ask_venue", "XNYS")];
        let bbo = |more: &[(&'static str, &'static str)]| values(RowSchema::Bbo, &[&sides, more].concat());
        assert_eq!(bbo(&[]), "17 - 1 1 - - - - - - XNAS XNYS VOD NBBO");
        assert_eq!(bbo(&[("cond", "R")]), "17 - 1 1 - - - - - R XNAS XNYS VOD NBBO");
        // A reader that looks for `partial` alone would take the nulls of this row for an empty book.
        assert_eq!(
            bbo(&[("cond", "a+b"), ("partial", "true")]),
            "17 - 1 1 - - - - - partial+a+b XNAS XNYS VOD NBBO"
        );
        assert_eq!(bbo(&[("cond", "R"), ("partial", "false")]), "17 - 1 1 - - - - - R XNAS XNYS VOD NBBO");
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
    fn an_event_of_an_order_is_a_row_with_the_codes_of_databento() {
        let order = |kind, more: &[(&'static str, &'static str)]| {
            let fields = [("oid", "O1"), ("venue", "XLON"), ("instr", "VOD"), ("qty", "300")];
            values_of(kind, RowSchema::Mbo.columns(), &[&fields, more].concat())
        };
        assert_eq!(
            order(EventKind::OrderNew, &[("side", "S"), ("px", "99.5")]),
            "17 - 1 1 O1 A A 99.5 300 - VOD XLON"
        );
        assert_eq!(order(EventKind::OrderAmend, &[]), "17 - 1 1 O1 M N - 300 - VOD XLON");
        assert_eq!(order(EventKind::OrderCancel, &[]), "17 - 1 1 O1 C N - 300 - VOD XLON");
        assert_eq!(order(EventKind::Exec, &[("liq", "R")]), "17 - 1 1 O1 T N - 300 - VOD XLON");
        assert_eq!(order(EventKind::Exec, &[("liq", "A")]), "17 - 1 1 O1 F N - 300 - VOD XLON");
        assert_eq!(order(EventKind::Exec, &[]), "17 - 1 1 O1 F N - 300 - VOD XLON");
    }

    /// A row of several kinds has the columns of all of them.
    #[test]
    fn a_kind_without_a_field_has_null_there() {
        let index = [("index", "FTSE"), ("px", "8123.456789012345")];
        let columns = RowSchema::Statistics.columns();
        assert_eq!(
            values_of(EventKind::Index, columns, &index),
            "17 - - 1 index - 8123.456789012345 - FTSE -"
        );
        let price = [("instr", "VOD"), ("px", "99.5"), ("source", "close")];
        assert_eq!(values_of(EventKind::RefPx, columns, &price), "17 - - 1 ref_px - 99.5 close VOD -");
    }

    #[test]
    fn texts_in_lists_are_json() {
        let mut list = String::new();
        put_json_text(&mut list, "a\"b\\c\n\u{1}\u{e4}");
        assert_eq!(list, r#""a\"b\\c\n\u0001ä""#);
        assert_eq!(json_list([1, 2].into_iter(), |list, n| *list += &n.to_string()), "[1,2]");
        assert_eq!(json_list([0; 0].into_iter(), |_, _| ()), "[]");
    }

    #[test]
    fn schemas_are_found_by_name() {
        for schema in RowSchema::ALL {
            assert_eq!(RowSchema::from_name(schema.name()), Some(schema));
        }
        assert_eq!(RowSchema::from_name("mbp-1"), None);
    }
}
