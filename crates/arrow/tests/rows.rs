//! Batches hold the values of rows, also of frames that unitape never writes.
//!
//! A fast path that read a mark for "in the extension" as a size would give a wrong size, and nobody would notice.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float64Type, Int8Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;
use std::sync::Arc;
use unitape_arrow::twin::{WrittenRows, read_ipc, read_parquet, read_row_groups};
use unitape_arrow::{
    BatchOptions, IpcEncoder, MisfitAction, ParquetEncoder, PriceType, ROW_GROUP_BYTES_MAX, RowBatchBuilder,
    SizeType,
};
use unitape_model::schema::at;
use unitape_model::{
    Amount, ClassSet, ColumnForm, ColumnValue, Decimal, Dictionary, Event, EventBuilder, EventField,
    EventRow, EventSchema, FieldClass, FrameHeader, NameKind, Position, RowColumn, RowSchema, UnixNanos,
    flags,
};
use unitape_query::address::EventAddress;

/// Returns the value of a cell as text; `None` for null.
fn cell(batch: &RecordBatch, column: usize, row: usize) -> Option<String> {
    let array = batch.column(column);
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Timestamp(..) => array.as_primitive::<TimestampNanosecondType>().value(row).to_string(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).to_string(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => format!("{:?}", array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, places) => {
            format!("{}e-{places}", array.as_primitive::<Decimal128Type>().value(row))
        }
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Date32 => array.as_primitive::<Date32Type>().value(row).to_string(),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Dictionary(keys, _) if **keys == DataType::Int8 => {
            let array =
                array.as_dictionary::<Int8Type>().downcast_dict::<arrow_array::StringArray>().unwrap();
            let key = array.keys().value(row);
            array.values().value(key as usize).to_owned()
        }
        DataType::Dictionary(..) => {
            let array =
                array.as_dictionary::<Int32Type>().downcast_dict::<arrow_array::StringArray>().unwrap();
            let key = array.keys().value(row);
            array.values().value(key as usize).to_owned()
        }
        other => panic!("a column of type {other}"),
    })
}

/// Returns the text that the cell of a value must have; sizes that do not fit are null.
fn expected(column: &RowColumn, value: Option<ColumnValue<'_>>, options: &BatchOptions) -> Option<String> {
    Some(match (value?, options.prices, options.sizes) {
        (ColumnValue::Time(ts), ..) => ts.0.to_string(),
        (ColumnValue::Number(number), ..) => number.to_string(),
        (ColumnValue::Text(text) | ColumnValue::Json(text), ..) => text.into_owned(),
        (ColumnValue::Bool(is_true), ..) => is_true.to_string(),
        (ColumnValue::Date(date), ..) => date.days().to_string(),
        (ColumnValue::Amount(amount), PriceType::Float, _) => {
            format!("{:?}", amount.to_string().parse::<f64>().unwrap())
        }
        (ColumnValue::Amount(amount), ..) => {
            let scaled = scaled_text(&amount.to_string(), 18)?;
            (scaled.unsigned_abs() < 10u128.pow(38)).then(|| format!("{scaled}e-18"))?
        }
        (ColumnValue::Price(price), PriceType::Decimal, _) => format!("{}e-9", price.0),
        (ColumnValue::Price(price), PriceType::Fixed, _) => price.0.to_string(),
        (ColumnValue::Price(price), PriceType::Float, _) => {
            format!("{:?}", price.to_string().parse::<f64>().unwrap())
        }
        (ColumnValue::Size(size), PriceType::Float, _) => {
            format!("{:?}", size.to_string().parse::<f64>().unwrap())
        }
        (ColumnValue::Size(size), prices, sizes) => {
            assert_eq!(column.form, ColumnForm::Size);
            let (places, limit) = match (prices, sizes) {
                (PriceType::Fixed, _) => (9, 1 << 63),
                (_, SizeType::Narrow) => (8, 10u128.pow(18)),
                (_, SizeType::Wide) => (18, 10u128.pow(38)),
            };
            let scaled = scaled_text(&size.to_string(), places)?;
            let is_least = prices == PriceType::Fixed && scaled == i128::from(i64::MIN);
            if scaled.unsigned_abs() >= limit && !is_least {
                return None;
            }
            if prices == PriceType::Fixed { scaled.to_string() } else { format!("{scaled}e-{places}") }
        }
    })
}

/// Scales the text of a decimal, digit by digit; `None` where a digit would be lost or 128 bits are too few.
fn scaled_text(text: &str, places: usize) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > places {
        return None;
    }
    format!("{whole}{fraction:0<places$}").parse().ok()
}

fn address(seq: u64) -> EventAddress {
    EventAddress { seq, position: Position(64 * seq) }
}

fn names() -> Dictionary {
    let mut names = Dictionary::default();
    for (kind, name) in [(0, "VOD"), (0, "BP"), (1, "XLON"), (0, "é\u{10ffff}")] {
        names.intern(NameKind::from_u8(kind).unwrap(), name.as_bytes()).unwrap();
    }
    names
}

/// A frame of some kind, before its header is written.
#[derive(Clone, Debug)]
struct RandomFrame {
    fixed_part: Vec<u8>,
    entries: Vec<(u16, Vec<u8>)>,
    has_extension: bool,
    /// Chooses the kind among those of the schema.
    kind_index: usize,
}

/// Makes a frame from bytes of any kind, most of them likely ones.
fn frame() -> impl Strategy<Value = RandomFrame> {
    let exponent = prop_oneof![-12i8..12, any::<i8>(), Just(-127i8), Just(-128i8)];
    let small_id = prop_oneof![0u32..6, any::<u32>()];
    let entry = (prop_oneof![1u16..170, any::<u16>()], proptest::collection::vec(any::<u8>(), 0..12));
    let entry_decimal = (prop_oneof![Just(12u16), 1u16..170], any::<i64>(), -31i8..31)
        .prop_map(|(tag, m, e)| (tag, m.to_le_bytes().into_iter().chain([e as u8]).collect::<Vec<u8>>()));
    let entry_text = (1u16..170, "[\\x20-\\x7e\u{e9}]{0,9}").prop_map(|(tag, text)| (tag, text.into_bytes()));
    let entry_partial =
        prop_oneof![3 => Just(2u8), 1 => any::<u8>()].prop_map(|is| (EventField::Partial as u16, vec![is]));
    let entry_cond = "[A-Z+]{0,2}".prop_map(|text| (EventField::Cond as u16, text.into_bytes()));
    let side_venue = prop_oneof![Just(EventField::BidVenue as u16), Just(EventField::AskVenue as u16)];
    let entry_venue = (side_venue, 0u32..3).prop_map(|(tag, id)| (tag, id.to_le_bytes().to_vec()));
    let entry = prop_oneof![
        entry,
        entry_decimal,
        entry_text,
        entry_partial,
        entry_cond,
        entry_venue.clone(),
        entry_venue
    ];
    let entries = proptest::collection::vec(entry, 0..6);
    (
        any::<[u8; 32]>(),
        small_id,
        0u16..4,
        exponent.clone(),
        exponent,
        proptest::collection::vec(prop_oneof![any::<u8>(), Just(0u8), b'0'..b'z'], 152),
        entries,
        any::<bool>(),
        any::<usize>(),
    )
        .prop_map(
            |(head, instrument, venue, kind_a, kind_b, body, entries, has_extension, kind_index)| {
                let mut fixed_part = vec![0; 40];
                fixed_part[..32].copy_from_slice(&head);
                fixed_part[32..36].copy_from_slice(&instrument.to_le_bytes());
                fixed_part[36..38].copy_from_slice(&venue.to_le_bytes());
                (fixed_part[38], fixed_part[39]) = (kind_a as u8, kind_b as u8);
                fixed_part.extend(body);
                RandomFrame { fixed_part, entries, has_extension, kind_index }
            },
        )
}

impl RandomFrame {
    /// Returns the frame of an event of the schema.
    fn bytes(&self, schema: RowSchema) -> Vec<u8> {
        let kind = schema.kinds()[self.kind_index % schema.kinds().len()];
        let layout = EventSchema::for_kind(kind);
        let mut bytes = self.fixed_part[..layout.fixed_bytes.into()].to_vec();
        if kind.has_layouts() {
            bytes[at::KIND_A] = layout.layout;
        }
        for (tag, payload) in &self.entries {
            bytes.extend(tag.to_le_bytes());
            bytes.extend((payload.len() as u32).to_le_bytes());
            bytes.extend(payload);
        }
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        let lines = (bytes.len() / 64) as u16;
        let extension = if self.has_extension { flags::EXT } else { 0 };
        FrameHeader::new_unstamped(kind as u8, extension, lines).write(&mut bytes);
        bytes
    }
}

proptest! {
    #[test]
    fn batches_hold_the_values_of_rows(
        frames in proptest::collection::vec(frame(), 1..40),
        schema in prop_oneof![
            Just(RowSchema::Bbo), Just(RowSchema::Trades), proptest::sample::select(RowSchema::ALL.to_vec())
        ],
        classes in prop_oneof![
            Just(ClassSet::MARKET), Just(ClassSet::ALL), Just(ClassSet::MARKET.with(FieldClass::Provenance))
        ],
        prices in prop_oneof![Just(PriceType::Decimal), Just(PriceType::Fixed), Just(PriceType::Float)],
        sizes in prop_oneof![Just(SizeType::Narrow), Just(SizeType::Wide)],
    ) {
        let names = names();
        let options = BatchOptions { prices, sizes, misfit: MisfitAction::Null, classes, rows: 16 };
        let columns = schema.columns_with(classes);
        let mut builder = RowBatchBuilder::new(schema, options);
        let mut rows: Vec<Vec<Option<String>>> = Vec::new();
        let (mut given, mut misfits) = (0, 0);
        for (i, frame) in frames.into_iter().enumerate() {
            let bytes = frame.bytes(schema);
            let event = Event::new(&bytes).unwrap();
            builder.push(address(i as u64), &event, &names).unwrap();
            let row = EventRow { event, names: &names };
            let value = |column: &RowColumn| {
                let value = row.value(column);
                let is_there = value.is_some();
                let text = expected(column, value, &options);
                misfits += u64::from(is_there && text.is_none());
                text
            };
            rows.push(columns.iter().map(value).collect());
            if builder.is_full() {
                check(&builder.finish().unwrap(), &columns, &rows[given..])?;
                given = rows.len();
            }
        }
        check(&builder.finish().unwrap(), &columns, &rows[given..])?;
        prop_assert_eq!(builder.misfits(), misfits);
    }
}

proptest! {
    /// What a file loses nobody misses: the rows of a file are those that it is made of, in every schema.
    #[test]
    fn files_and_streams_hold_the_values_of_rows(
        frames in proptest::collection::vec(frame(), 0..40),
        schema in proptest::sample::select(RowSchema::ALL.to_vec()),
        classes in prop_oneof![Just(ClassSet::MARKET), Just(ClassSet::ALL)],
    ) {
        let names = names();
        let options = BatchOptions {
            sizes: SizeType::Wide, misfit: MisfitAction::Null, classes, rows: 16, ..BatchOptions::default()
        };
        let columns = schema.columns_with(classes);
        let mut builder = RowBatchBuilder::new(schema, options);
        let metadata = [("unitape.schema".to_owned(), schema.name().to_owned())];
        let mut parquet = ParquetEncoder::new(builder.arrow_schema(), &metadata).unwrap();
        let mut stream = IpcEncoder::new(builder.arrow_schema()).unwrap();
        let (mut file_bytes, mut stream_bytes, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for (i, frame) in frames.iter().enumerate() {
            let bytes = frame.bytes(schema);
            let event = Event::new(&bytes).unwrap();
            builder.push(address(i as u64), &event, &names).unwrap();
            let row = EventRow { event, names: &names };
            rows.push(columns.iter().map(|column| file_text(row.value(column), column, &options)).collect::<Vec<_>>());
            if builder.is_full() || i + 1 == frames.len() {
                let batch = builder.finish().unwrap();
                parquet.encode(&batch).unwrap();
                parquet.end_row_group().unwrap();
                stream.encode(&batch).unwrap();
                file_bytes.extend(parquet.take_bytes());
                stream_bytes.extend(stream.take_bytes());
            }
        }
        parquet.finish().unwrap();
        stream.finish().unwrap();
        file_bytes.extend(parquet.take_bytes());
        stream_bytes.extend(stream.take_bytes());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.parquet");
        std::fs::write(&path, file_bytes).unwrap();
        let (file, stream) = (read_parquet(&path).unwrap(), read_ipc(&stream_bytes).unwrap());
        prop_assert_eq!(file.metadata.get("unitape.schema").map(String::as_str), Some(schema.name()));
        prop_assert_eq!(file.group_rows.len(), frames.len().div_ceil(16));
        for WrittenRows { schema: written_schema, rows: written, .. } in [file, stream] {
            // The time zone and the dictionaries too, also of a file without rows.
            prop_assert_eq!(field_types(&written_schema), field_types(builder.arrow_schema()));
            prop_assert_eq!(&written, &rows);
        }
    }
}

/// Returns the name, the type and the nullability of each column; a stream also numbers its dictionaries.
fn field_types(schema: &Schema) -> Vec<(String, DataType, bool)> {
    let field_type =
        |field: &Arc<Field>| (field.name().clone(), field.data_type().clone(), field.is_nullable());
    schema.fields().iter().map(field_type).collect()
}

/// Returns a value as a file has it: the canonical digits and texts of JSON, and null where it does not fit.
fn file_text(value: Option<ColumnValue<'_>>, column: &RowColumn, options: &BatchOptions) -> Option<String> {
    let value = value?;
    expected(column, Some(value.clone()), options)?;
    Some(match value {
        ColumnValue::Time(ts) => ts.0.to_string(),
        ColumnValue::Number(number) => number.to_string(),
        ColumnValue::Price(price) => price.to_string(),
        // Of frames that unitape has not written, whose parts are not canonical.
        ColumnValue::Size(size) => Decimal::new(size.mantissa(), size.exponent()).unwrap_or(size).to_string(),
        ColumnValue::Amount(amount) => {
            Amount::new(amount.mantissa(), amount.exponent()).unwrap_or(amount).to_string()
        }
        ColumnValue::Date(date) => date.to_string(),
        ColumnValue::Bool(is_true) => is_true.to_string(),
        ColumnValue::Text(text) | ColumnValue::Json(text) => text.into_owned(),
    })
}

/// Returns an encoder and a full batch of news, whose headlines of `text_bytes` cannot be compressed much.
fn news(rows: usize, text_bytes: usize) -> (ParquetEncoder, RecordBatch) {
    let schema = RowSchema::News;
    let options = BatchOptions { classes: ClassSet::ALL, ..BatchOptions::default() };
    let mut builder = RowBatchBuilder::new(schema, options);
    let headline = EventSchema::for_kind(schema.kinds()[0]).get(EventField::Headline).unwrap();
    let (mut names, mut seed) = (names(), 1u64);
    for i in 0..rows {
        let mut text = vec![0; text_bytes];
        for byte in &mut text {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = b' ' + (seed >> 57) as u8 % 95;
        }
        let mut unit = Vec::new();
        let mut event = EventBuilder::begin(&mut unit, schema.kinds()[0], UnixNanos(i as i64));
        event.set_text(headline, &text, &mut names).unwrap();
        event.finish(flags::LAST).unwrap();
        builder.push(address(i as u64), &Event::new(&unit).unwrap(), &names).unwrap();
    }
    (ParquetEncoder::new(builder.arrow_schema(), &[]).unwrap(), builder.finish().unwrap())
}

/// A file of a year could be in memory as a whole before its first byte is written.
#[test]
fn a_row_group_ends_when_it_is_large() {
    let (mut encoder, batch) = news(20, 1 << 20);
    let mut written = 0;
    for n in 1..=10 {
        encoder.encode(&batch).unwrap();
        written += encoder.take_bytes().len();
        let is_written = n >= 4;
        assert_eq!(written > ROW_GROUP_BYTES_MAX / 2, is_written, "batch {n}: {written} bytes");
        assert!(encoder.memory_bytes() < ROW_GROUP_BYTES_MAX, "batch {n}");
    }
}

#[test]
fn a_row_group_has_a_million_rows_at_most() {
    let (mut encoder, batch) = news(1 << 16, 0);
    let mut bytes = Vec::new();
    for _ in 0..17 {
        encoder.encode(&batch).unwrap();
        bytes.extend(encoder.take_bytes());
    }
    encoder.finish().unwrap();
    bytes.extend(encoder.take_bytes());
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("rows.parquet"), bytes).unwrap();
    let groups = read_row_groups(&dir.path().join("rows.parquet")).unwrap();
    assert_eq!(groups, [1 << 20, 1 << 16]);
}

fn check(
    batch: &RecordBatch,
    columns: &[RowColumn],
    rows: &[Vec<Option<String>>],
) -> Result<(), TestCaseError> {
    prop_assert_eq!(batch.num_columns(), columns.len());
    prop_assert_eq!(batch.num_rows(), rows.len());
    for (row, values) in rows.iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            let name = columns[column].name;
            prop_assert_eq!(batch.schema_ref().field(column).name(), name);
            prop_assert_eq!(&cell(batch, column, row), value, "{} of row {}", name, row);
        }
    }
    Ok(())
}
