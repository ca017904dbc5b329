//! The options of `tape cat` as a selection, and what it says when nothing was selected.

use super::{CatArgs, rows};
use crate::commands::range_args::{MESSAGE, NAME_NOUNS, unknown_names};
use crate::output::{CommandFailure, grouped, note};
use std::path::Path;
use unitape_model::EventKind;
use unitape_query::address::{EventAddress, TapeRangeBound};
use unitape_query::{EventCursor, EventSelection, FilterCounts};

/// Reads the options of a selection.
///
/// # Errors
/// Fails if an option has no value that it can have, or if options contradict each other.
pub fn selection(args: &CatArgs) -> Result<EventSelection, CommandFailure> {
    let mut selection = args.select.parse()?;
    selection.kinds.extend(rows::schema(args)?.map_or(&[][..], |schema| schema.kinds()));
    selection.includes_bookkeeping = args.all;
    Ok(selection)
}

/// Prints why nothing was printed, and what there is.
pub fn explain(args: &CatArgs, cursor: &EventCursor, dir: &Path) {
    let filter = cursor.filter();
    let counts = filter.counts();
    if counts.selected > 0 || filter.left() == 0 {
        return;
    }
    // Damage after `--to` is no business of this command.
    let Ok(info) = unitape_tape::info(dir) else { return };
    let (first, last) = (info.first_ordinal + 1, info.ordinals);
    if first > last {
        note!("unitape: nothing to print: the tape has no events");
        return;
    }
    let mut reasons: Vec<String> = unknown_names(filter.names(), cursor.names().dictionary()).collect();
    if counts.part_events == 0 {
        let range = filter.range();
        let bounds = [("--from", &range.from), ("--to", &range.to)];
        let mut range_options: Vec<String> =
            bounds.iter().filter_map(|(option, b)| Some(format!("{option} {}", b.as_ref()?))).collect();
        let times = [("--since", &args.select.range.since), ("--until", &args.select.range.until)];
        range_options
            .extend(times.iter().filter_map(|(option, text)| Some(format!("{option} {}", text.as_ref()?))));
        reasons.push(format!(
            "no event with {}: there are events {first} to {last}, at positions @{} to @{}",
            range_options.join(" "),
            info.oldest_position,
            info.end_position
        ));
    } else if counts.of_kinds == 0 {
        let (kinds, includes_messages) = filter.kinds();
        let kinds = kinds.iter().map(|kind| kind.name()).chain(includes_messages.then_some(MESSAGE));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        reasons.push(format!("no event of kind {kinds}; there are: {}", kinds_text(counts)));
    } else if reasons.is_empty() {
        let mut each = vec![format!("{} of the kinds", grouped(counts.of_kinds))];
        for ((noun, filter), n) in NAME_NOUNS.iter().zip(filter.names()).zip(counts.of_names) {
            if !filter.wanted().is_empty() {
                each.push(format!("{} with the {noun} {}", grouped(n), filter.wanted().join(", ")));
            }
        }
        let range_events = grouped(counts.part_events);
        reasons.push(format!("of {range_events} events none is all that was asked for: {}", each.join(", ")));
    }
    note!("unitape: nothing to print: {}", reasons.join("; "));
}

/// Prints that the tape ends before `--to`, where something was printed.
pub fn explain_end(cursor: &EventCursor) {
    let (filter, reader) = (cursor.filter(), cursor.reader());
    let is_cut_short = filter.counts().selected > 0 && filter.left() > 0;
    let Some(end_bound) = filter.range().to.filter(|_| is_cut_short) else { return };
    let end_address = EventAddress { seq: reader.ordinal(), position: reader.position() };
    let is_beyond = match end_bound {
        TapeRangeBound::Ordinal(seq) => seq > end_address.seq,
        TapeRangeBound::Position(position) => position >= end_address.position,
    };
    if is_beyond {
        let seq = grouped(end_address.seq);
        note!(
            "unitape: --to {end_bound} is beyond the end: there are {seq} events, up to position @{}",
            end_address.position
        );
    }
}

fn kinds_text(counts: &FilterCounts) -> String {
    let count =
        |kind: &EventKind| Some((counts.by_kind[*kind as usize], kind.name())).filter(|(n, _)| *n > 0);
    let kinds = EventKind::EVENTS.iter().filter_map(count);
    let kinds = kinds.chain(Some((counts.messages, MESSAGE)).filter(|(n, _)| *n > 0));
    kinds.map(|(n, name)| format!("{} {name}", grouped(n))).collect::<Vec<_>>().join(", ")
}
