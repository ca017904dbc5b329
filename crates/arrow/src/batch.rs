//! Rows of one schema, gathered column by column into record batches.

use crate::columns::{CodeColumn, FixedColumn, NameColumn, PriceColumn, ScaledSize, SizeColumn, TextColumn};
use crate::fields::FieldColumns;
use crate::{BatchOptions, Error, MisfitAction};
use arrow_array::types::{TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use std::sync::Arc;
use unitape_model::row::{flag_words, id_text, quote_condition, side, trade_action};
use unitape_model::{
    Dictionary, Event, EventField, EventFieldSpec, EventKind, EventRow, EventSchema, EventValue, FieldLayout,
    NameKind, RowColumn, RowSchema,
};
use unitape_query::address::EventAddress;

/// A batch that is being built.
#[derive(Debug)]
pub struct RowBatchBuilder {
    schema: RowSchema,
    arrow_schema: SchemaRef,
    options: BatchOptions,
    rows: usize,
    misfits: u64,
    ts_event: FixedColumn<i64>,
    ts_recv: FixedColumn<i64>,
    publisher: FixedColumn<u16>,
    instrument: FixedColumn<u32>,
    sequence: FixedColumn<u64>,
    body: RowBody,
    symbol: NameColumn,
    venue: NameColumn,
    /// The columns of other classes, behind the venue.
    class_columns: FieldColumns,
}

/// The columns of a schema beside those that all have.
#[derive(Debug)]
enum RowBody {
    Bbo(Box<BboColumns>),
    Trades(Box<TradeColumns>),
    /// The columns of the other schemas, but for the sequence.
    Fields {
        columns: FieldColumns,
        /// The place of the sequence among the columns.
        sequence_index: usize,
    },
}

#[derive(Debug)]
struct BboColumns {
    bid: PriceField,
    ask: PriceField,
    bid_size: SizeField,
    ask_size: SizeField,
    extension: BboExtensionColumns,
}

/// The columns whose values are in the extensions of frames, which most feeds do not have.
#[derive(Debug)]
struct BboExtensionColumns {
    cond: TextColumn,
    bid_venue: NameColumn,
    ask_venue: NameColumn,
    /// Number of rows that the columns have: those up to the last row with an extension. The rest are null.
    rows: usize,
}

#[derive(Debug)]
struct TradeColumns {
    action: CodeColumn,
    side: CodeColumn,
    price: PriceField,
    size: SizeField,
    match_id: TextColumn,
    cond: TextColumn,
    trade_flags: CodeColumn,
}

/// A column of prices, and the field that fills it.
#[derive(Debug)]
struct PriceField {
    spec: &'static EventFieldSpec,
    column: PriceColumn,
}

/// A column of sizes, and the field that fills it.
#[derive(Debug)]
struct SizeField {
    name: &'static str,
    spec: &'static EventFieldSpec,
    column: SizeColumn,
}

impl RowBatchBuilder {
    /// Makes a builder of rows of this schema.
    pub fn new(schema: RowSchema, options: BatchOptions) -> Self {
        let options = BatchOptions { rows: options.rows.max(1), ..options };
        let rows = options.rows;
        let kind = schema.kinds()[0];
        let spec = |field| EventSchema::for_kind(kind).get(field).expect("a field of the kind");
        let price = |field| PriceField { spec: spec(field), column: PriceColumn::new(&options) };
        let size = |name, field| SizeField { name, spec: spec(field), column: SizeColumn::new(&options) };
        let body = match schema {
            RowSchema::Bbo => RowBody::Bbo(Box::new(BboColumns {
                bid: price(EventField::Bid),
                ask: price(EventField::Ask),
                bid_size: size("bid_sz_00", EventField::BidQty),
                ask_size: size("ask_sz_00", EventField::AskQty),
                extension: BboExtensionColumns::new(),
            })),
            RowSchema::Trades => RowBody::Trades(Box::new(TradeColumns {
                action: CodeColumn::new(ACTIONS.map(str::to_owned), rows),
                side: CodeColumn::new(SIDES.map(str::to_owned), rows),
                price: price(EventField::Px),
                size: size("size", EventField::Qty),
                match_id: TextColumn::new(rows),
                cond: TextColumn::new(rows),
                trade_flags: CodeColumn::new(flag_sets(), rows),
            })),
            _ => {
                let columns = schema.columns();
                let body = &columns[HEAD_COLUMNS..columns.len() - TAIL_COLUMNS];
                let is_sequence = |column: &RowColumn| column.name == "sequence";
                let sequence_index = body.iter().position(is_sequence).expect("a schema has a sequence");
                let fields: Vec<RowColumn> = body.iter().filter(|c| !is_sequence(c)).copied().collect();
                RowBody::Fields { columns: FieldColumns::new(&fields, schema, &options), sequence_index }
            }
        };
        let class_columns = &schema.columns_with(options.classes)[schema.columns().len()..];
        Self {
            schema,
            arrow_schema: options.arrow_schema(schema),
            options,
            rows: 0,
            misfits: 0,
            ts_event: FixedColumn::new(rows),
            ts_recv: FixedColumn::new(rows),
            publisher: FixedColumn::new(rows),
            instrument: FixedColumn::new(rows),
            sequence: FixedColumn::new(rows),
            body,
            symbol: NameColumn::new(NameKind::Instrument, rows),
            venue: NameColumn::new(NameKind::Venue, rows),
            class_columns: FieldColumns::new(class_columns, schema, &options),
        }
    }

    /// Returns the Arrow schema of the batches.
    pub fn arrow_schema(&self) -> &SchemaRef {
        &self.arrow_schema
    }

    /// Returns the number of rows since the last batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of sizes that did not fit and became null.
    pub fn misfits(&self) -> u64 {
        self.misfits
    }

    /// Returns whether a batch should be made of the rows before the next one is added.
    #[inline]
    pub fn is_full(&self) -> bool {
        let text_bytes = match &self.body {
            RowBody::Bbo(columns) => columns.extension.cond.text_bytes(),
            RowBody::Trades(columns) => columns.match_id.text_bytes() + columns.cond.text_bytes(),
            RowBody::Fields { columns, .. } => columns.text_bytes(),
        };
        self.rows >= self.options.rows || text_bytes + self.class_columns.text_bytes() >= TEXT_BYTES_MAX
    }

    /// Forgets what ids mean, after a cut of the tape.
    pub fn forget_ids(&mut self) {
        self.symbol.forget_ids();
        self.venue.forget_ids();
        if let RowBody::Bbo(columns) = &mut self.body {
            columns.extension.bid_venue.forget_ids();
            columns.extension.ask_venue.forget_ids();
        }
    }

    /// Adds the row of an event. An error adds nothing.
    ///
    /// # Errors
    /// Fails if a size does not fit and is not to be null.
    ///
    /// # Panics
    /// If the event is not of the schema.
    #[inline]
    pub fn push(
        &mut self,
        address: EventAddress,
        event: &Event<'_>,
        names: &Dictionary,
    ) -> Result<(), Error> {
        assert_eq!(RowSchema::for_kind(event.kind()), Some(self.schema), "an event of the schema");
        let (instrument, venue) = (event.instrument().0, event.venue());
        let symbol_key = self.symbol.key(instrument, names)?;
        let venue_key = self.venue.key(venue.into(), names)?;
        let mut scaler = SizeScaler { action: self.options.misfit, address, misfits: 0 };
        let row = EventRow { event: *event, names };
        self.class_columns.scale(&row, &mut scaler)?;
        match &mut self.body {
            RowBody::Bbo(columns) => columns.push(&row, self.rows, &mut scaler)?,
            RowBody::Trades(columns) => columns.push(event, &mut scaler)?,
            RowBody::Fields { columns, .. } => {
                columns.scale(&row, &mut scaler)?;
                columns.push(&row);
            }
        }
        self.class_columns.push(&row);
        self.misfits += scaler.misfits;
        self.ts_event.push(Some(event.ts_event().0));
        self.ts_recv.push(event.ts_recv().map(|time| time.0));
        self.publisher.push((venue != 0).then_some(venue));
        self.instrument.push((instrument != 0).then_some(instrument));
        self.sequence.push(event.sequence());
        self.symbol.push(symbol_key);
        self.venue.push(venue_key);
        self.rows += 1;
        Ok(())
    }

    /// Makes a batch of the rows, and begins the next one.
    ///
    /// # Errors
    /// Fails if Arrow refuses the columns.
    pub fn finish(&mut self) -> Result<RecordBatch, Error> {
        let rows = std::mem::take(&mut self.rows);
        let time = |column: &mut FixedColumn<i64>| -> ArrayRef {
            Arc::new(column.finish::<TimestampNanosecondType>().with_timezone("UTC"))
        };
        let mut columns: Vec<ArrayRef> = vec![
            time(&mut self.ts_event),
            time(&mut self.ts_recv),
            Arc::new(self.publisher.finish::<UInt16Type>()),
            Arc::new(self.instrument.finish::<UInt32Type>()),
        ];
        let sequence = Arc::new(self.sequence.finish::<UInt64Type>());
        match &mut self.body {
            RowBody::Bbo(bbo) => {
                columns.extend([sequence, bbo.bid.column.finish(), bbo.ask.column.finish()]);
                columns.extend([bbo.bid_size.column.finish(), bbo.ask_size.column.finish()]);
                columns.extend(bbo.extension.finish(rows)?);
            }
            RowBody::Trades(trades) => {
                columns.extend([trades.action.finish()?, trades.side.finish()?]);
                columns.extend([trades.price.column.finish(), trades.size.column.finish(), sequence]);
                columns.extend([
                    trades.match_id.finish(),
                    trades.cond.finish(),
                    trades.trade_flags.finish()?,
                ]);
            }
            RowBody::Fields { columns: fields, sequence_index } => {
                columns.extend(fields.finish()?);
                columns.insert(HEAD_COLUMNS + *sequence_index, sequence);
            }
        }
        columns.extend([self.symbol.finish()?, self.venue.finish()?]);
        columns.extend(self.class_columns.finish()?);
        Ok(RecordBatch::try_new(self.arrow_schema.clone(), columns)?)
    }
}

impl BboColumns {
    /// Adds the row behind `rows` others, or nothing if a size is refused.
    #[inline]
    fn push(&mut self, row: &EventRow<'_>, rows: usize, scaler: &mut SizeScaler) -> Result<(), Error> {
        let event = &row.event;
        let bid_size = self.bid_size.scaled_size(event, scaler)?;
        let ask_size = self.ask_size.scaled_size(event, scaler)?;
        if event.has_extension() {
            self.extension.push(row, rows)?;
        }
        self.bid.push(event);
        self.ask.push(event);
        self.bid_size.column.push(bid_size);
        self.ask_size.column.push(ask_size);
        Ok(())
    }
}

impl BboExtensionColumns {
    fn new() -> Self {
        let venues = || NameColumn::new(NameKind::Venue, 0);
        Self { cond: TextColumn::new(0), bid_venue: venues(), ask_venue: venues(), rows: 0 }
    }

    /// Adds the values of the row behind `rows` others, or nothing if the names are too long together.
    fn push(&mut self, row: &EventRow<'_>, rows: usize) -> Result<(), Error> {
        let id = |field| {
            let spec = row.event.schema().get(field).expect("a field of a bbo");
            match row.event.value(spec, &mut [0; 36]) {
                Some(EventValue::Sym(_, id)) => id,
                _ => 0,
            }
        };
        let bid_key = self.bid_venue.key(id(EventField::BidVenue), row.names)?;
        let ask_key = self.ask_venue.key(id(EventField::AskVenue), row.names)?;
        self.extend_with_nulls(rows);
        self.cond.push(quote_condition(&row.event).as_deref());
        self.bid_venue.push(bid_key);
        self.ask_venue.push(ask_key);
        self.rows = rows + 1;
        Ok(())
    }

    fn extend_with_nulls(&mut self, rows: usize) {
        let missing = rows - self.rows;
        self.cond.push_nulls(missing);
        self.bid_venue.push_nulls(missing);
        self.ask_venue.push_nulls(missing);
    }

    /// Makes the columns of a batch of `rows` rows, and leaves them empty.
    fn finish(&mut self, rows: usize) -> Result<[ArrayRef; 3], Error> {
        self.extend_with_nulls(rows);
        self.rows = 0;
        Ok([self.cond.finish(), self.bid_venue.finish()?, self.ask_venue.finish()?])
    }
}

impl TradeColumns {
    /// Adds a row, or nothing if the size is refused.
    #[inline]
    fn push(&mut self, event: &Event<'_>, scaler: &mut SizeScaler) -> Result<(), Error> {
        let size = self.size.scaled_size(event, scaler)?;
        self.size.column.push(size);
        self.price.push(event);
        self.action.push(code_of(&ACTIONS, trade_action(event)));
        self.side.push(code_of(&SIDES, side(event)));
        let spec = |field| event.schema().get(field).expect("a field of a trade");
        let mut scratch = [0; 36];
        match event.value(spec(EventField::MatchId), &mut scratch) {
            Some(EventValue::Id(id)) => self.match_id.push(Some(&id_text(id))),
            _ => self.match_id.push(None),
        }
        match event.value(spec(EventField::Cond), &mut scratch) {
            Some(EventValue::Text(text)) => self.cond.push(Some(text)),
            _ => self.cond.push(None),
        }
        match event.value(spec(EventField::TradeFlags), &mut scratch) {
            Some(EventValue::Flags(_, set)) => self.trade_flags.push(i8::try_from(set - 1).ok()),
            _ => self.trade_flags.push(None),
        }
        Ok(())
    }
}

impl PriceField {
    #[inline]
    fn push(&mut self, event: &Event<'_>) {
        let price = match event.value(self.spec, &mut [0; 36]) {
            Some(EventValue::Price(price)) => Some(price),
            _ => None,
        };
        self.column.push(price);
    }
}

impl SizeField {
    /// Returns the size of an event in the form of the column.
    #[inline]
    fn scaled_size(&self, event: &Event<'_>, scaler: &mut SizeScaler) -> Result<Option<ScaledSize>, Error> {
        let Some(EventValue::Decimal(size)) = event.value(self.spec, &mut [0; 36]) else { return Ok(None) };
        match self.column.scale(size) {
            Some(scaled) => Ok(Some(scaled)),
            None => scaler.meet_misfit(self.name, &self.column, &size),
        }
    }
}

/// The sizes of one row.
pub(crate) struct SizeScaler {
    action: MisfitAction,
    address: EventAddress,
    misfits: u64,
}

impl SizeScaler {
    /// Returns null for a size or an amount that does not fit its column, or the error about it.
    #[cold]
    pub fn meet_misfit(
        &mut self,
        column: &'static str,
        sizes: &SizeColumn,
        size: &dyn std::fmt::Display,
    ) -> Result<Option<ScaledSize>, Error> {
        if self.action == MisfitAction::Null {
            self.misfits += 1;
            return Ok(None);
        }
        let (data_type, remedy) = sizes.misfit_words();
        let size = size.to_string();
        Err(Error::SizeMisfit { column, seq: self.address.seq, size, data_type, remedy })
    }
}

#[inline]
fn code_of(codes: &[&str], code: &str) -> Option<i8> {
    codes.iter().position(|entry| *entry == code).map(|i| i as i8)
}

/// Returns the texts of all sets of trade flags; that of a set is at the set's number less one.
fn flag_sets() -> Vec<String> {
    let spec = EventSchema::for_kind(EventKind::Trade).get(EventField::TradeFlags);
    let Some(FieldLayout::FlagSet { values, .. }) = spec.map(|spec| spec.slot) else { return Vec::new() };
    (1..1u8 << values.len()).map(|set| flag_words(values, set)).collect()
}

/// Columns before those of a schema.
const HEAD_COLUMNS: usize = 4;
/// Columns behind those of a schema: symbol and venue.
const TAIL_COLUMNS: usize = 2;
/// The actions of trades.
const ACTIONS: [&str; 3] = ["T", "C", "M"];
/// The sides.
pub(crate) const SIDES: [&str; 3] = ["B", "A", "N"];
/// A batch with more bytes of texts than this is full. Of a frame a text has 4 MiB at most, so offsets of 32 bits suffice.
const TEXT_BYTES_MAX: usize = 64 << 20;
