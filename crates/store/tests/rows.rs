//! Rows of `trades` and `bbo` are those that a slow reader makes of the tape's events, in the order of event time.

mod common;

use common::{Maker, Rng, open, seal, tape, writer};
use proptest::prelude::*;
use std::path::Path;
use unitape_model::{
    ColumnValue, DefinitionTable, Event, EventField, EventKind, EventValue, InlineId, NameKind, UnixNanos,
};
use unitape_store::{Day, ScanFilter, SealOptions, Store, TickSchema};
use unitape_tape::{Reader, StartPosition};

/// A row as text, but for its tokens, with the fields by which rows are chosen and ordered.
#[derive(Clone, Debug, PartialEq)]
struct SlowRow {
    ts: i64,
    symbol: Option<String>,
    venue: Option<String>,
    values: Vec<(&'static str, Option<String>)>,
}

/// The rows of a tape, in its order, from the words of its fields.
fn slow_rows(dir: &Path, schema: TickSchema) -> Vec<SlowRow> {
    let mut reader = Reader::open(dir, StartPosition::Oldest).unwrap();
    let (mut names, mut rows) = (DefinitionTable::default(), Vec::new());
    while let Some(frame) = reader.next().unwrap() {
        let Some(event) = names.admit_frame(frame.bytes).unwrap() else { continue };
        if TickSchema::for_kind(event.kind()) == Some(schema) {
            rows.push(slow_row(&event, &names));
        }
    }
    rows
}

fn slow_row(event: &Event<'_>, names: &DefinitionTable) -> SlowRow {
    let get = |field| {
        let mut scratch = [0; 36];
        let value = event.value(event.schema().get(field)?, &mut scratch)?;
        Some(match value {
            EventValue::Price(v) => v.to_string(),
            EventValue::Decimal(v) => v.to_string(),
            EventValue::Text(v) => v.to_owned(),
            EventValue::Bool(v) => v.to_string(),
            EventValue::Id(InlineId::Number(n)) => n.to_string(),
            EventValue::Id(InlineId::Text(t)) => String::from_utf8(t.to_vec()).unwrap(),
            EventValue::Sym(dict, id) => names.name(dict, id).unwrap().to_owned(),
            EventValue::Flags(values, set) => {
                let mut text = String::new();
                for (i, word) in values.iter().enumerate() {
                    if set & 1 << i != 0 {
                        text = if text.is_empty() { (*word).to_owned() } else { format!("{text}+{word}") };
                    }
                }
                text
            }
            other => panic!("{other:?}"),
        })
    };
    let (symbol, venue, ts) = (get(EventField::Instr), get(EventField::Venue), event.ts_event().0);
    let side = match get(EventField::Side).as_deref() {
        Some("B") => "B",
        Some("S") => "A",
        _ => "N",
    };
    let action = match get(EventField::Action).as_deref() {
        Some("cancel") => "C",
        Some("correct") => "M",
        _ => "T",
    };
    let mut values =
        vec![("ts_event", Some(ts.to_string())), ("ts_recv", event.ts_recv().map(|ts| ts.0.to_string()))];
    let sequence = ("sequence", event.sequence().map(|n| n.to_string()));
    if event.kind() == EventKind::Trade {
        values.extend([
            ("action", Some(action.to_owned())),
            ("side", Some(side.to_owned())),
            ("price", get(EventField::Px)),
            ("size", get(EventField::Qty)),
            sequence,
            ("match_id", get(EventField::MatchId)),
            ("cond", get(EventField::Cond)),
            ("trade_flags", get(EventField::TradeFlags)),
        ]);
    } else {
        let partial = get(EventField::Partial).filter(|is| is == "true").map(|_| "partial".to_owned());
        let words: Vec<String> = partial.into_iter().chain(get(EventField::Cond)).collect();
        let quote_condition = (!words.is_empty()).then(|| words.join("+"));
        values.extend([
            sequence,
            ("bid_px_00", get(EventField::Bid)),
            ("ask_px_00", get(EventField::Ask)),
            ("bid_sz_00", get(EventField::BidQty)),
            ("ask_sz_00", get(EventField::AskQty)),
            ("cond", quote_condition),
            ("bid_venue", get(EventField::BidVenue)),
            ("ask_venue", get(EventField::AskVenue)),
        ]);
    }
    values.extend([("symbol", symbol.clone()), ("venue", venue.clone())]);
    SlowRow { ts, symbol, venue, values }
}

/// The rows of the store; tokens are compared with the names here.
fn stored_rows(
    store: &Store,
    schema: TickSchema,
    filter: &ScanFilter,
    window: u64,
) -> Vec<Vec<(&'static str, Option<String>)>> {
    let columns = schema.row_schema().columns();
    let (mut scan, mut all) = (store.rows(schema, filter).unwrap().with_window_bytes(window), Vec::new());
    while let Some(row) = scan.next() {
        let mut values = Vec::new();
        let mut tokens = [None; 2];
        for column in columns {
            let value = row.value(column).map(|value| match value {
                ColumnValue::Time(ts) => ts.0.to_string(),
                ColumnValue::Number(n) => n.to_string(),
                ColumnValue::Price(v) => v.to_string(),
                ColumnValue::Size(v) => v.to_string(),
                ColumnValue::Text(v) => v.into_owned(),
                other => panic!("{other:?}"),
            });
            let token = || value.as_ref().map(|token| token.parse::<u32>().unwrap());
            match column.name {
                "publisher_id" => tokens[0] = token(),
                "instrument_id" => tokens[1] = token(),
                name => values.push((name, value)),
            }
        }
        let name =
            |dict, token: Option<u32>| token.map(|id| store.names().name(dict, id).unwrap().to_owned());
        assert_eq!(values[values.len() - 1].1, name(NameKind::Venue, tokens[0]));
        assert_eq!(values[values.len() - 2].1, name(NameKind::Instrument, tokens[1]));
        all.push(values);
    }
    assert_eq!(scan.problem_count(), 0);
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Several tapes, one of them sealed in two parts, small blocks and small windows: rows that cross none of their bounds
    /// would hide a wrong order there.
    #[test]
    fn rows_are_those_of_the_slow_twin(seed in any::<u64>(), n in 1usize..500, block_rows in prop_oneof![1usize..9, Just(65_536)], picks in proptest::collection::vec(any::<u64>(), 8)) {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let options = SealOptions { memory_bytes: 1 << 15, block_rows, ..SealOptions::default() };
        let grown = dir.path().join("grown");
        let mut maker = Maker::new(seed ^ 1, 2);
        let mut tapes = vec![grown.clone(), tape(dir.path(), "b", seed, 3, n)];
        for part in 0..2 {
            let mut writer = writer(&grown, 77);
            maker.write(&mut writer, 1 + n / 2);
            writer.close().unwrap();
            seal(&grown, &store, &options).unwrap();
            if part == 0 {
                seal(&tapes[1], &store, &options).unwrap();
            }
        }
        // Ties come in the order of the tapes' first seals.
        tapes.dedup();
        let store = open(&store).unwrap();
        for schema in [TickSchema::Trades, TickSchema::Bbo] {
            let mut all: Vec<SlowRow> = tapes.iter().flat_map(|tape| slow_rows(tape, schema)).collect();
            all.sort_by_key(|row| row.ts);
            for round in picks.chunks(2) {
                let (p, mut rng) = (round[0], Rng::new(round[1]));
                let some = |bit: u32| p >> bit & 1 == 1;
                let mut ts = || UnixNanos(all.get(rng.below(all.len().max(1) as u64) as usize).map_or(0, |row| row.ts));
                let filter = ScanFilter {
                    from: some(1).then(&mut ts),
                    to: some(2).then(&mut ts),
                    date: some(3).then(|| Day::from_time(ts())),
                    symbols: if some(0) { vec!["instrument3".into(), "instrument7".into()] } else { vec![] },
                    venue: some(4).then(|| "venue2".into()),
                    schemas: vec![TickSchema::News],
                    as_of: None,
                };
                let known = |dict, name: &String| store.names().get(dict, name.as_bytes()).is_some();
                if !filter.symbols.iter().all(|name| known(NameKind::Instrument, name))
                    || !filter.venue.iter().all(|name| known(NameKind::Venue, name))
                {
                    continue;
                }
                let want: Vec<_> = all.iter().filter(|row| {
                    filter.from.is_none_or(|t| row.ts >= t.0)
                        && filter.to.is_none_or(|t| row.ts < t.0)
                        && filter.date.is_none_or(|d| Day::from_time(UnixNanos(row.ts)) == d)
                        && (filter.symbols.is_empty() || row.symbol.as_ref().is_some_and(|s| filter.symbols.contains(s)))
                        && filter.venue.as_ref().is_none_or(|v| row.venue.as_ref() == Some(v))
                }).map(|row| row.values.clone()).collect();
                for window in [1 + round[1] % 20_000, u64::MAX] {
                    let got = stored_rows(&store, schema, &filter, window);
                    prop_assert_eq!(got.len(), want.len());
                    for (got, want) in got.iter().zip(&want) {
                        prop_assert_eq!(got, want);
                    }
                }
            }
        }
    }
}
