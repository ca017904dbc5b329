//! The columns of each schema, made once from the fields of its kinds.

use super::{ColumnForm, ColumnOrigin, RowColumn, RowSchema};
use crate::class::FieldClass;
use crate::kind::{EventField, EventKind};
use crate::schema::{EventFieldSpec, EventSchema, FieldLayout, at, width_bytes};
use std::sync::OnceLock;

/// The kinds and the columns of a schema.
#[derive(Debug)]
pub(super) struct RowTable {
    pub kinds: Vec<EventKind>,
    /// The columns of the rows, then those of identity, then those of provenance.
    pub columns: Vec<RowColumn>,
    /// Number of columns that rows have without an option.
    pub default_columns: usize,
}

impl RowTable {
    /// Returns the table of a schema.
    pub fn of(schema: RowSchema) -> &'static Self {
        static TABLES: [OnceLock<RowTable>; RowSchema::ALL.len()] =
            [const { OnceLock::new() }; RowSchema::ALL.len()];
        TABLES[schema as usize].get_or_init(|| Self::new(schema))
    }

    fn new(schema: RowSchema) -> Self {
        let kinds = EventKind::EVENTS.into_iter().filter(|kind| RowSchema::for_kind(*kind) == Some(schema));
        let kinds: Vec<EventKind> = kinds.collect();
        let fields = field_columns(&kinds);
        let class = |class| fields.iter().copied().filter(move |column: &RowColumn| column.class == class);
        let sequence_class = FieldClass::for_event_field(kinds[0], EventField::SrcSeq);
        let sequence = RowColumn { class: sequence_class, ..SEQUENCE };
        let mut columns = HEAD.to_vec();
        match schema {
            RowSchema::Mbo => columns.extend_from_slice(MBO),
            RowSchema::Bbo => columns.extend_from_slice(BBO),
            RowSchema::Trades => columns.extend_from_slice(TRADES),
            _ => {
                columns.extend([KIND, sequence]);
                columns.extend(class(FieldClass::Market));
            }
        }
        columns.extend([SYMBOL, VENUE]);
        let default_columns = columns.len();
        columns.extend(class(FieldClass::Identity));
        columns.extend(class(FieldClass::Provenance));
        Self { kinds, columns, default_columns }
    }
}

/// Returns the fields of these kinds as columns, each once, in the order of the kinds and of their fields. The fields that every
/// row shows as `symbol` or `venue` are left out.
fn field_columns(kinds: &[EventKind]) -> Vec<RowColumn> {
    let mut columns: Vec<RowColumn> = Vec::new();
    for kind in kinds {
        for spec in EventSchema::for_kind(*kind).fields {
            if width_bytes(spec.slot).is_some_and(|(offset, _)| is_shown_by_all(offset)) {
                continue;
            }
            let column = field_column(*kind, spec);
            match columns.iter().find(|known| known.name == column.name) {
                Some(known) => assert!(
                    (known.form, known.class) == (column.form, column.class),
                    "`{}` has one form and one class in all kinds of a schema",
                    column.name
                ),
                None => columns.push(column),
            }
        }
    }
    columns
}

/// Returns whether the id in this place is a row's `symbol` or `venue`.
fn is_shown_by_all(offset: u16) -> bool {
    matches!(usize::from(offset), at::INSTRUMENT | at::VENUE)
}

fn field_column(kind: EventKind, spec: &EventFieldSpec) -> RowColumn {
    let field = spec.field;
    // All rows have the name of their instrument in `symbol`.
    let name = if field == EventField::Symbol { "raw_symbol" } else { field.name() };
    let class = FieldClass::for_event_field(kind, field);
    RowColumn { name, form: field_form(kind, spec), class, origin: ColumnOrigin::Field(field) }
}

fn field_form(kind: EventKind, spec: &EventFieldSpec) -> ColumnForm {
    use EventField as F;
    // A level of an index may have more digits than a price, and shares its column with reference prices.
    if matches!(kind, EventKind::Index | EventKind::RefPx) && spec.field == F::Px {
        return ColumnForm::Amount;
    }
    match spec.slot {
        FieldLayout::Price { .. } => ColumnForm::Price,
        FieldLayout::Decimal { .. } | FieldLayout::DecimalNarrow { .. } | FieldLayout::DecimalExt => {
            match spec.field {
                F::Multiplier | F::Delta | F::LinkScore | F::Score => ColumnForm::Amount,
                _ => ColumnForm::Size,
            }
        }
        FieldLayout::Amount { .. } => ColumnForm::Amount,
        FieldLayout::Bool { .. } | FieldLayout::Flag { .. } => ColumnForm::Bool,
        FieldLayout::UInt { .. } => ColumnForm::Number,
        FieldLayout::Nanos { .. } | FieldLayout::MillisAfter { .. } => ColumnForm::Time,
        FieldLayout::Date { .. } | FieldLayout::DateAfter { .. } => ColumnForm::Date,
        FieldLayout::Syms { .. }
        | FieldLayout::TapePosition { .. }
        | FieldLayout::TapePositions
        | FieldLayout::Json => ColumnForm::Json,
        FieldLayout::Sym { .. }
        | FieldLayout::SymExt { .. }
        | FieldLayout::Publisher { .. }
        | FieldLayout::Id { .. }
        | FieldLayout::Text { .. }
        | FieldLayout::Code { .. }
        | FieldLayout::FlagSet { .. }
        | FieldLayout::Tape { .. } => ColumnForm::Text,
    }
}

const fn market(name: &'static str, form: ColumnForm, origin: ColumnOrigin) -> RowColumn {
    RowColumn { name, form, class: FieldClass::Market, origin }
}
const fn market_field(name: &'static str, form: ColumnForm, field: EventField) -> RowColumn {
    market(name, form, ColumnOrigin::Field(field))
}

const HEAD: [RowColumn; 4] = [
    market("ts_event", ColumnForm::Time, ColumnOrigin::EventTime),
    market("ts_recv", ColumnForm::Time, ColumnOrigin::ReceiveTime),
    market("publisher_id", ColumnForm::Number, ColumnOrigin::Publisher),
    market("instrument_id", ColumnForm::Number, ColumnOrigin::Instrument),
];
const KIND: RowColumn = market("kind", ColumnForm::Text, ColumnOrigin::Kind);
const SEQUENCE: RowColumn = market("sequence", ColumnForm::Number, ColumnOrigin::Sequence);
const SIDE: RowColumn = market("side", ColumnForm::Text, ColumnOrigin::Side);
const SYMBOL: RowColumn = market("symbol", ColumnForm::Text, ColumnOrigin::Symbol);
const VENUE: RowColumn = market("venue", ColumnForm::Text, ColumnOrigin::Venue);

const MBO: &[RowColumn] = &[
    market_field("order_id", ColumnForm::Text, EventField::Oid),
    market("action", ColumnForm::Text, ColumnOrigin::OrderAction),
    SIDE,
    market_field("price", ColumnForm::Price, EventField::Px),
    market_field("size", ColumnForm::Size, EventField::Qty),
    SEQUENCE,
];

const BBO: &[RowColumn] = &[
    SEQUENCE,
    market_field("bid_px_00", ColumnForm::Price, EventField::Bid),
    market_field("ask_px_00", ColumnForm::Price, EventField::Ask),
    market_field("bid_sz_00", ColumnForm::Size, EventField::BidQty),
    market_field("ask_sz_00", ColumnForm::Size, EventField::AskQty),
    market("cond", ColumnForm::Text, ColumnOrigin::QuoteCondition),
    market_field("bid_venue", ColumnForm::Text, EventField::BidVenue),
    market_field("ask_venue", ColumnForm::Text, EventField::AskVenue),
];

const TRADES: &[RowColumn] = &[
    market("action", ColumnForm::Text, ColumnOrigin::TradeAction),
    SIDE,
    market_field("price", ColumnForm::Price, EventField::Px),
    market_field("size", ColumnForm::Size, EventField::Qty),
    SEQUENCE,
    market_field("match_id", ColumnForm::Text, EventField::MatchId),
    market_field("cond", ColumnForm::Text, EventField::Cond),
    market_field("trade_flags", ColumnForm::Text, EventField::TradeFlags),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::ClassSet;

    fn names(columns: &[RowColumn]) -> String {
        columns.iter().map(|column| column.name).collect::<Vec<_>>().join(" ")
    }

    /// Two columns of one name would hide a value from every reader by name.
    #[test]
    fn columns_have_distinct_names() {
        for schema in RowSchema::ALL {
            let mut names: Vec<&str> = schema.all_columns().iter().map(|column| column.name).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{}: {names:?}", schema.name());
        }
    }

    #[test]
    fn other_schemas_have_the_fields_of_their_kinds() {
        assert_eq!(
            names(RowSchema::Status.columns()),
            "ts_event ts_recv publisher_id instrument_id kind sequence phase px state ref symbol venue"
        );
        assert_eq!(
            names(RowSchema::Statistics.columns()),
            "ts_event ts_recv publisher_id instrument_id kind sequence px source symbol venue"
        );
        assert_eq!(
            names(RowSchema::Mbp.columns()),
            "ts_event ts_recv publisher_id instrument_id kind sequence side action px qty orders depth symbol venue"
        );
        assert_eq!(
            names(RowSchema::Clock.columns()),
            "ts_event ts_recv publisher_id instrument_id kind sequence symbol venue"
        );
        let form = |schema: RowSchema, name| {
            schema.columns().iter().find(|column| column.name == name).map(|column| column.form)
        };
        assert_eq!(form(RowSchema::Statistics, "px"), Some(ColumnForm::Amount));
        assert_eq!(form(RowSchema::Definition, "raw_symbol"), Some(ColumnForm::Text));
        assert_eq!(form(RowSchema::Definition, "expiry"), Some(ColumnForm::Date));
        assert_eq!(form(RowSchema::Quotes, "valid_until"), Some(ColumnForm::Time));
        assert_eq!(form(RowSchema::Quotes, "bank"), None);
        assert_eq!(form(RowSchema::News, "instrs"), Some(ColumnForm::Json));
    }

    /// A party among the default columns would need a class that the scan does not open.
    #[test]
    fn other_classes_are_asked_for_and_behind_the_venue() {
        let provenance = ClassSet::MARKET.with(FieldClass::Provenance);
        for schema in RowSchema::ALL {
            let columns = schema.columns();
            let is_market = |column: &RowColumn| column.class == FieldClass::Market;
            assert!(columns.iter().all(|column| is_market(column) || column.name == "sequence"));
            assert!(names(columns).ends_with(" symbol venue"));
            assert_eq!(names(&schema.columns_with(ClassSet::MARKET)), names(columns));
            assert_eq!(names(&schema.columns_with(ClassSet::ALL)), names(schema.all_columns()));
            let more = schema.all_columns()[columns.len()..].iter();
            let rest: Vec<RowColumn> =
                more.copied().filter(|column| column.class == FieldClass::Provenance).collect();
            assert_eq!(names(&schema.columns_with(provenance)[columns.len()..]), names(&rest));
        }
        let behind = |schema: RowSchema, with| names(&schema.columns_with(with)[schema.columns().len()..]);
        assert_eq!(behind(RowSchema::Bbo, ClassSet::ALL), "cause");
        assert_eq!(behind(RowSchema::Trades, ClassSet::ALL), "");
        assert_eq!(
            behind(RowSchema::Mbo, ClassSet::ALL),
            "trader acct owner firm algo parent coid reason desk entry cpty"
        );
        assert_eq!(
            behind(RowSchema::Comms, ClassSet::MARKET.with(FieldClass::Identity)),
            "msg_id channel from to text instrs reply_to changed"
        );
        assert_eq!(behind(RowSchema::Quarantine, provenance), "length raw_at hash");
    }

    /// An event of a kind without a home would be in no rows.
    #[test]
    fn every_kind_is_in_one_schema() {
        for kind in EventKind::EVENTS {
            let homes = RowSchema::ALL.into_iter().filter(|schema| schema.kinds().contains(&kind));
            assert_eq!(homes.collect::<Vec<_>>(), [RowSchema::for_kind(kind).unwrap()]);
        }
        assert!(EventKind::META.into_iter().all(|kind| RowSchema::for_kind(kind).is_none()));
        for (number, schema) in RowSchema::ALL.into_iter().enumerate() {
            assert_eq!(schema as usize, number);
            assert!(!schema.kinds().is_empty());
        }
    }
}
