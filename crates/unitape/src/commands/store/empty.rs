//! The message of `store scan` when it has no events to print.

use crate::commands::tape::utc;
use crate::output::{grouped, list_known_names, note};
use std::collections::BTreeMap;
use unitape_model::{NameKind, UnixNanos};
use unitape_store::{Error, ScanFilter, Store, StoredTotals, TickSchema};

/// Takes names out of the filter that no sealed event has, and says what there is; false when nothing is left to read.
///
/// # Errors
/// Fails if the store does not have the generation of the filter yet, or if a name cannot be read.
pub fn known_names(store: &Store, filter: &mut ScanFilter) -> Result<bool, Error> {
    let names = store.names();
    let instruments = store.name_count(NameKind::Instrument, filter.as_of)?;
    let venues = store.name_count(NameKind::Venue, filter.as_of)?;
    let count = |dict| if dict == NameKind::Venue { venues } else { instruments };
    let is_known = |dict, name: &str| names.get(dict, name.as_bytes()).is_some_and(|id| id <= count(dict));
    let all = |dict| (1..=count(dict)).filter_map(move |id| names.name(dict, id));
    let asked = filter.symbols.len();
    for symbol in filter.symbols.iter().filter(|symbol| !is_known(NameKind::Instrument, symbol)) {
        let names_text = list_known_names(symbol, "symbols", all(NameKind::Instrument));
        note!("unitape: nothing in the store has the symbol {symbol}; {names_text}");
    }
    if let Some(damage) = store.damaged_name() {
        return Err(damage);
    }
    filter.symbols.retain(|symbol| is_known(NameKind::Instrument, symbol));
    if let Some(venue) = filter.venue.as_ref().filter(|venue| !is_known(NameKind::Venue, venue)) {
        let names_text = list_known_names(venue, "venues", all(NameKind::Venue));
        note!("unitape: nothing in the store is of the venue {venue}; {names_text}");
        filter.venue = None;
        return Ok(false);
    }
    Ok(asked == 0 || !filter.symbols.is_empty())
}

/// Prints what the store has, if no event was printed.
///
/// `searched` has the options that narrow the scan.
pub fn explain(store: &Store, searched: &str) {
    let info = store.info();
    let totals = info.all();
    if totals.rows == 0 {
        note!("unitape: no events: nothing was sealed into the store yet");
        return;
    }
    let mut schemas: BTreeMap<TickSchema, StoredTotals> = BTreeMap::new();
    for (schema, amount) in info.days.values().flat_map(|day| &day.schemas) {
        schemas.entry(*schema).or_default().add_totals(amount);
    }
    let schemas: Vec<String> =
        schemas.iter().map(|(schema, a)| format!("{} {}", grouped(a.rows), schema.name())).collect();
    let time = |ts: Option<UnixNanos>| ts.map_or("no time".to_owned(), |ts| utc(ts.0));
    note!(
        "unitape: no events with {searched}: the store has {}, from {} to {}",
        schemas.join(", "),
        time(totals.ts_min),
        time(totals.ts_max)
    );
}
