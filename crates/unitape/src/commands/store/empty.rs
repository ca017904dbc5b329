//! The message of `store scan` when it has no events to print.

use super::scan::SelectArgs;
use crate::commands::tape::utc;
use crate::output::{grouped, list_known_names, note};
use std::collections::BTreeMap;
use unitape_model::{NameKind, UnixNanos};
use unitape_store::{ScanFilter, Store, StoredTotals, TickSchema};

/// Takes names out of the filter that no sealed event has, and says what there is; false when nothing is left to read.
pub fn known_names(store: &Store, filter: &mut ScanFilter) -> bool {
    let names = store.names();
    let is_known = |dict, name: &str| names.get(dict, name.as_bytes()).is_some();
    let all = |dict| (1..=names.len(dict)).filter_map(move |id| names.name(dict, id));
    let asked = filter.symbols.len();
    for symbol in filter.symbols.iter().filter(|symbol| !is_known(NameKind::Instrument, symbol)) {
        let there = list_known_names(symbol, "symbols", all(NameKind::Instrument));
        note!("unitape: nothing in the store has the symbol {symbol}; {there}");
    }
    filter.symbols.retain(|symbol| is_known(NameKind::Instrument, symbol));
    if let Some(venue) = filter.venue.as_ref().filter(|venue| !is_known(NameKind::Venue, venue)) {
        let there = list_known_names(venue, "venues", all(NameKind::Venue));
        note!("unitape: nothing in the store is of the venue {venue}; {there}");
        filter.venue = None;
        return false;
    }
    asked == 0 || !filter.symbols.is_empty()
}

/// Says what there is, where no event was printed.
pub fn explain(store: &Store, args: &SelectArgs, limit: Option<u64>) {
    let info = store.info();
    let all = info.all();
    if all.rows == 0 {
        note!("unitape: no events: nothing was sealed into the store yet");
        return;
    }
    let mut schemas: BTreeMap<TickSchema, StoredTotals> = BTreeMap::new();
    for (schema, amount) in info.days.values().flat_map(|day| &day.schemas) {
        schemas.entry(*schema).or_default().add(amount);
    }
    let schemas: Vec<String> =
        schemas.iter().map(|(schema, a)| format!("{} {}", grouped(a.rows), schema.name())).collect();
    let mut asked = Vec::new();
    asked.extend((!args.symbols.is_empty()).then(|| format!("--symbols {}", args.symbols.join(","))));
    asked.extend(args.symbol.iter().map(|name| format!("--symbol {name}")));
    asked.extend((!args.schema.is_empty()).then(|| format!("--schema {}", args.schema.join(","))));
    asked.extend(args.venue.as_ref().map(|venue| format!("--venue {venue}")));
    asked.extend(args.date.map(|date| format!("--date {date}")));
    asked.extend(args.since.map(|since| format!("--since {}", utc(since.0))));
    asked.extend(args.until.map(|until| format!("--until {}", utc(until.0))));
    asked.extend(limit.map(|limit| format!("--limit {limit}")));
    let time = |ts: Option<UnixNanos>| ts.map_or("no time".to_owned(), |ts| utc(ts.0));
    note!(
        "unitape: no events with {}: the store has {}, from {} to {}",
        asked.join(" "),
        schemas.join(", "),
        time(all.ts_min),
        time(all.ts_max)
    );
}
