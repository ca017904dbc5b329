//! The values of rows of every schema are those of event lines, and a store gives back those of market data.

mod common;

use common::{Maker, open, seal, writer};
use proptest::prelude::*;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;
use unitape_codec::events::{EventLineDetail, write_event};
use unitape_model::{
    ColumnForm, ColumnValue, DefinitionTable, Event, EventKind, EventRow, FieldClass, RowColumn, RowSchema,
    frames,
};
use unitape_store::{ScanFilter, SealOptions, TickSchema};
use unitape_tape::{Reader, StartPosition};

/// Returns the value as rows in JSON have it.
fn row_json(value: Option<ColumnValue<'_>>) -> Value {
    match value {
        None => Value::Null,
        Some(ColumnValue::Time(ts)) => ts.0.into(),
        Some(ColumnValue::Number(number)) => number.into(),
        Some(ColumnValue::Price(price)) => price.to_string().into(),
        Some(ColumnValue::Size(size)) => size.to_string().into(),
        Some(ColumnValue::Amount(amount)) => amount.to_string().into(),
        Some(ColumnValue::Date(date)) => date.to_string().into(),
        Some(ColumnValue::Bool(is_true)) => is_true.into(),
        Some(ColumnValue::Text(text)) => text.into_owned().into(),
        Some(ColumnValue::Json(json)) => serde_json::from_str(&json).expect("JSON"),
    }
}

/// Returns the value that a column must have, from the line of the event alone.
fn line_json(column: &RowColumn, schema: RowSchema, line: &Map<String, Value>, event: &Event<'_>) -> Value {
    let get = |name: &str| line.get(name).cloned().unwrap_or_default();
    let first =
        |names: &[&str]| names.iter().map(|name| get(name)).find(|v| !v.is_null()).unwrap_or_default();
    let word = |name: &str| get(name).as_str().unwrap_or_default().to_owned();
    let kind = word("kind");
    let is_plain = !matches!(schema, RowSchema::Mbo | RowSchema::Bbo | RowSchema::Trades);
    let value = match column.name {
        "ts_event" => get("ts"),
        "ts_recv" => event.ts_recv().map_or(Value::Null, |ts| ts.0.into()),
        "sequence" => event.sequence().map_or(Value::Null, Value::from),
        "symbol" if kind == "index" => get("index"),
        "symbol" => get("instr"),
        "venue" => first(&["venue", "bank", "mic"]),
        name if is_plain => get(if name == "raw_symbol" { "symbol" } else { name }),
        "side" => match word("side").as_str() {
            "S" => "A".into(),
            "B" => "B".into(),
            _ => "N".into(),
        },
        "action" => match (kind.as_str(), word("action").as_str(), word("liq").as_str()) {
            ("order_new", ..) => "A".into(),
            ("order_amend", ..) | (_, "correct", _) => "M".into(),
            ("order_cancel", ..) | (_, "cancel", _) => "C".into(),
            ("trade", ..) | (_, _, "R") => "T".into(),
            _ => "F".into(),
        },
        "cond" if kind == "bbo" => match (get("partial"), get("cond")) {
            (Value::Bool(true), Value::Null) => "partial".into(),
            (Value::Bool(true), cond) => format!("partial+{}", cond.as_str().unwrap()).into(),
            (_, cond) => cond,
        },
        "order_id" => get("oid"),
        "price" => get("px"),
        "size" => get("qty"),
        "bid_px_00" => get("bid"),
        "ask_px_00" => get("ask"),
        "bid_sz_00" => get("bid_qty"),
        "ask_sz_00" => get("ask_qty"),
        name => get(name),
    };
    match (column.form, value) {
        // Ids are text, and a set of words is joined.
        (ColumnForm::Text, Value::Number(id)) => id.to_string().into(),
        (ColumnForm::Text, Value::Object(id)) => format!("0x{}", id["hex"].as_str().unwrap()).into(),
        (ColumnForm::Text, Value::Array(words)) => {
            words.iter().map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join("+").into()
        }
        (_, value) => value,
    }
}

/// Events of every kind, many times. A column that a kind has and its rows do not show would be missed by nobody.
#[test]
fn columns_have_the_values_of_event_lines() {
    let (mut maker, mut names, mut unit) = (Maker::new(11, 2), DefinitionTable::default(), Vec::new());
    let (mut seen, mut nulls) = (BTreeSet::new(), BTreeSet::new());
    for kind in EventKind::EVENTS.into_iter().cycle().take(120 * EventKind::EVENTS.len()) {
        unit.clear();
        maker.event(kind, &mut unit);
        for (_, _, frame) in frames(&unit) {
            let Some(event) = names.admit_frame(frame).unwrap().filter(|event| event.kind() == kind) else {
                continue;
            };
            let mut line = Vec::new();
            write_event(&mut line, &event, 1, names.dictionary(), &names, EventLineDetail::Plain);
            let line: Map<String, Value> = serde_json::from_slice(&line).unwrap();
            let schema = RowSchema::for_kind(kind).unwrap();
            let row = EventRow { event, names: names.dictionary() };
            for column in schema.all_columns() {
                if matches!(column.name, "publisher_id" | "instrument_id") {
                    continue;
                }
                let (got, want) = (row_json(row.value(column)), line_json(column, schema, &line, &event));
                assert_eq!(got, want, "{} of {kind:?}: {line:?}", column.name);
                assert!(column.is_nullable() || !got.is_null());
                if got.is_null() { &mut nulls } else { &mut seen }.insert((schema, column.name));
            }
        }
    }
    // Payments have no symbol, for example.
    let may_lack = ["publisher_id", "instrument_id", "symbol", "venue"];
    for schema in RowSchema::ALL {
        let names = schema.all_columns().iter().map(|column| column.name);
        let missing: Vec<&str> =
            names.filter(|name| !may_lack.contains(name) && !seen.contains(&(schema, *name))).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", schema.name());
    }
    assert!(nulls.len() > 100);
}

/// A row: its time, and the values of its columns but for tokens.
type Row = (i64, Vec<Value>);

fn row(row: &EventRow<'_>, schema: RowSchema) -> Row {
    let is_token = |column: &RowColumn| matches!(column.name, "publisher_id" | "instrument_id");
    let columns = schema.all_columns().iter().filter(|column| !is_token(column));
    // A scan opens market data alone.
    let values = columns.map(|column| match column.class {
        FieldClass::Market => row_json(row.value(column)),
        FieldClass::Identity | FieldClass::Provenance => Value::Null,
    });
    (row.event.ts_event().0, values.collect())
}

/// The rows of a tape, by time.
fn tape_rows(dir: &Path, schema: RowSchema) -> Vec<Row> {
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    let (mut names, mut rows) = (DefinitionTable::default(), Vec::new());
    while let Some(frame) = reader.next().unwrap() {
        let Some(event) = names.admit_frame(frame.bytes).unwrap() else { continue };
        if schema.kinds().contains(&event.kind()) {
            rows.push(row(&EventRow { event, names: names.dictionary() }, schema));
        }
    }
    rows.sort_by_key(|(ts, _)| *ts);
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Blocks of several kinds, of which some fields are in another class.
    #[test]
    fn a_store_has_the_rows_of_all_schemas(seed in any::<u64>(), n in 1usize..400, block_rows in prop_oneof![2usize..30, Just(65_536)]) {
        let dir = tempfile::tempdir().unwrap();
        let (tape, path) = (dir.path().join("tape"), dir.path().join("store"));
        let mut out = writer(&tape, 5);
        let (mut maker, mut unit) = (Maker::new(seed, 3), Vec::new());
        for _ in 0..n {
            unit.clear();
            let kind = EventKind::EVENTS[maker.rng.below(EventKind::EVENTS.len() as u64) as usize];
            maker.event(kind, &mut unit);
            out.append(&unit).unwrap();
        }
        out.close().unwrap();
        seal(&tape, &path, &SealOptions { block_rows, ..SealOptions::default() }).unwrap();
        let store = open(&path).unwrap();
        for schema in TickSchema::ALL {
            let (mut scan, mut got) = (store.rows(schema, &ScanFilter::default()).unwrap(), Vec::new());
            while let Some(stored) = scan.next() {
                got.push(row(&stored, schema.row_schema()));
                for column in schema.row_schema().all_columns() {
                    let value = stored.value(column);
                    prop_assert!(column.class == FieldClass::Market || value.is_none(), "{} {value:?}", column.name);
                }
            }
            prop_assert_eq!(scan.problem_count(), 0);
            prop_assert_eq!(got, tape_rows(&tape, schema.row_schema()));
        }
    }
}
