//! The events that `tape cat` prints, and its message when there are none.

use super::CatArgs;
use crate::output::{CommandFailure, grouped, list_known_names, note};
use std::path::Path;
use unitape_model::{Dictionary, Event, EventKind, EventValue, NameKind};
use unitape_run::address::{EventAddress, TapeRangeBound};
use unitape_run::follow::TapeRange;
use unitape_tape::Reader;

/// The options of `tape cat` that choose events, and how many events each of them let pass.
///
/// Once one event was printed, nothing has to be explained and nothing more is counted.
#[derive(Debug)]
pub struct EventFilter {
    range: TapeRange,
    /// `--since` and `--until`, as they were written.
    times_text: [Option<String>; 2],
    any_kind: bool,
    kinds: Vec<EventKind>,
    messages: bool,
    names: [NameFilter; 2],
    /// Whether bookkeeping is printed.
    all: bool,
    left: u64,
    counts: FilterCounts,
}

/// The events that passed each option while nothing was printed.
#[derive(Debug, Default)]
struct FilterCounts {
    printed: u64,
    /// Between `--from` and `--to`; the others are of these.
    within: u64,
    by_kind: Vec<u64>,
    messages: u64,
    of_kinds: u64,
    of_names: [u64; 2],
}

impl EventFilter {
    /// Reads the options.
    ///
    /// # Errors
    /// When they are no bounds or kinds, or contradict each other.
    pub fn new(args: &CatArgs) -> Result<Self, CommandFailure> {
        let range = args.range.parse()?;
        let times_text = [args.range.since.clone(), args.range.until.clone()];
        let mut kinds = Vec::new();
        for name in args.kind.iter().filter(|name| *name != MESSAGE) {
            let all = || EventKind::EVENTS.map(EventKind::name).join(", ");
            let unknown = || CommandFailure::Usage(format!("no kind `{name}`; kinds: {}, {MESSAGE}", all()));
            kinds.push(EventKind::from_name(name).ok_or_else(unknown)?);
        }
        let names = [
            NameFilter::new("--instr", NameKind::Instrument, "instruments", &args.instr),
            NameFilter::new("--venue", NameKind::Venue, "venues", &args.venue),
        ];
        let any_kind = args.kind.is_empty();
        let messages = any_kind || args.kind.iter().any(|name| name == MESSAGE);
        let counts = FilterCounts { by_kind: vec![0; KINDS], ..FilterCounts::default() };
        let (all, left) = (args.all, args.limit.unwrap_or(u64::MAX));
        Ok(Self { range, times_text, any_kind, kinds, messages, names, all, left, counts })
    }

    /// The part of the tape that is asked for.
    pub fn range(&self) -> TapeRange {
        self.range
    }

    /// Learns the ids of the names that were asked for; call it with each definition.
    pub fn learn(&mut self, names: &Dictionary) {
        self.names.iter_mut().for_each(|filter| filter.learn(names));
    }

    /// Whether nothing more can come.
    pub fn is_done(&self, place: EventAddress) -> bool {
        self.left == 0 || self.range.is_over(place)
    }

    /// Whether this event is printed.
    pub fn wants(&mut self, event: &Event<'_>, place: EventAddress) -> bool {
        let meta = event.header().is_meta();
        if !self.range.is_reached_by(place) || (meta && !self.all) {
            return false;
        }
        if self.range.times.is_some_and(|times| !times.contains(event.ts_event())) {
            return false;
        }
        let is_kind = self.any_kind || self.kinds.contains(&event.kind());
        if self.counts.printed > 0 || meta {
            let wanted = is_kind && self.names.iter().all(|filter| filter.has(event));
            return self.printed(wanted);
        }
        let of_names = [self.names[0].has(event), self.names[1].has(event)];
        let counts = &mut self.counts;
        counts.within += 1;
        counts.by_kind[event.kind() as usize] += 1;
        counts.of_kinds += u64::from(is_kind);
        counts.of_names.iter_mut().zip(of_names).for_each(|(n, is)| *n += u64::from(is));
        self.printed(is_kind && of_names == [true; 2])
    }

    /// Whether a user's message is printed; it names no instrument and no venue.
    pub fn wants_message(&mut self, place: EventAddress) -> bool {
        // A message has no time.
        if self.range.times.is_some() || !self.range.is_reached_by(place) {
            return false;
        }
        let counts = &mut self.counts;
        counts.within += 1;
        counts.messages += 1;
        counts.of_kinds += u64::from(self.messages);
        self.printed(self.messages && self.names.iter().all(|filter| filter.asked.is_empty()))
    }

    /// Says why nothing was printed, and what there is.
    pub fn explain(&self, dir: &Path, names: &Dictionary) {
        if self.counts.printed > 0 || self.left == 0 {
            return;
        }
        // Damage after `--to` is no business of this command.
        let Ok(info) = unitape_tape::info(dir) else { return };
        let (first, last) = (info.first_ordinal + 1, info.ordinals);
        if first > last {
            note!("unitape: nothing to print: the tape has no events");
            return;
        }
        let mut why = Vec::new();
        for filter in &self.names {
            why.extend(filter.unknown(names));
        }
        if self.counts.within == 0 {
            let bounds = [("--from", &self.range.from), ("--to", &self.range.to)];
            let mut asked: Vec<String> =
                bounds.iter().filter_map(|(option, b)| Some(format!("{option} {}", b.as_ref()?))).collect();
            let times = ["--since", "--until"].into_iter().zip(&self.times_text);
            asked.extend(times.filter_map(|(option, text)| Some(format!("{option} {}", text.as_ref()?))));
            why.push(format!(
                "no event with {}: there are events {first} to {last}, at positions @{} to @{}",
                asked.join(" "),
                info.first,
                info.end
            ));
        } else if self.counts.of_kinds == 0 {
            why.push(format!("no event of {}; there are: {}", self.kinds_text(), self.counts.text()));
        } else if why.is_empty() {
            let mut each = vec![format!("{} of the kinds", grouped(self.counts.of_kinds))];
            for (filter, n) in self.names.iter().zip(self.counts.of_names) {
                if !filter.asked.is_empty() {
                    each.push(format!("{} with {} {}", grouped(n), filter.option, filter.asked.join(", ")));
                }
            }
            let within = grouped(self.counts.within);
            why.push(format!("of {within} events none is all that was asked for: {}", each.join(", ")));
        }
        note!("unitape: nothing to print: {}", why.join("; "));
    }

    /// Says that the tape ends before `--to`, where something was printed.
    pub fn explain_end(&self, reader: &Reader) {
        let Some(to) = self.range.to.filter(|_| self.counts.printed > 0 && self.left > 0) else { return };
        let end = EventAddress { seq: reader.ordinal(), position: reader.position() };
        let is_beyond = match to {
            TapeRangeBound::Ordinal(seq) => seq > end.seq,
            TapeRangeBound::Position(position) => position >= end.position,
        };
        if is_beyond {
            let seq = grouped(end.seq);
            note!(
                "unitape: --to {to} is beyond the end: there are {seq} events, up to position @{}",
                end.position
            );
        }
    }

    fn printed(&mut self, wanted: bool) -> bool {
        if wanted {
            self.counts.printed += 1;
            self.left -= 1;
        }
        wanted
    }

    fn kinds_text(&self) -> String {
        let kinds = self.kinds.iter().map(|kind| kind.name());
        let kinds: Vec<&str> = kinds.chain(self.messages.then_some(MESSAGE)).collect();
        format!("kind {}", kinds.join(", "))
    }
}

impl FilterCounts {
    fn text(&self) -> String {
        let of = |kind: &EventKind| Some((self.by_kind[*kind as usize], kind.name())).filter(|(n, _)| *n > 0);
        let kinds = EventKind::EVENTS.iter().filter_map(of);
        let kinds = kinds.chain(Some((self.messages, MESSAGE)).filter(|(n, _)| *n > 0));
        kinds.map(|(n, name)| format!("{} {name}", grouped(n))).collect::<Vec<_>>().join(", ")
    }
}

/// Names of a dictionary that an option asks for.
#[derive(Debug)]
struct NameFilter {
    option: &'static str,
    dict: NameKind,
    plural: &'static str,
    asked: Vec<String>,
    /// The ids of those that the tape has defined so far.
    ids: Vec<u32>,
}

impl NameFilter {
    fn new(option: &'static str, dict: NameKind, plural: &'static str, asked: &[String]) -> Self {
        Self { option, dict, plural, asked: asked.to_vec(), ids: Vec::new() }
    }

    fn learn(&mut self, names: &Dictionary) {
        if self.ids.len() < self.asked.len() {
            self.ids = self.asked.iter().filter_map(|name| names.get(self.dict, name.as_bytes())).collect();
        }
    }

    /// Whether a field of the event names one of them; a bank that quotes counts as a venue.
    fn has(&self, event: &Event<'_>) -> bool {
        if self.asked.is_empty() {
            return true;
        }
        let mut scratch = [0; 36];
        !self.ids.is_empty()
            && event.schema().fields.iter().any(|spec| match event.value(spec, &mut scratch) {
                Some(EventValue::Sym(dict, id)) => dict == self.dict && self.ids.contains(&id),
                Some(EventValue::Syms(dict, ids)) => {
                    let (ids, _) = ids.as_chunks::<4>();
                    dict == self.dict && ids.iter().any(|id| self.ids.contains(&u32::from_le_bytes(*id)))
                }
                _ => false,
            })
    }

    /// The known names of the tape, if it lacks a requested one.
    fn unknown(&self, names: &Dictionary) -> Option<String> {
        let missing = |name: &&String| names.get(self.dict, name.as_bytes()).is_none();
        let missing: Vec<&str> = self.asked.iter().filter(missing).map(String::as_str).collect();
        let all = (1..=names.len(self.dict)).filter_map(|id| names.name(self.dict, id));
        let there = list_known_names(missing.first()?, self.plural, all);
        Some(format!("no event has {} {}; {there}", self.option, missing.join(", ")))
    }
}

/// The word of `--kind` for a user's message.
const MESSAGE: &str = "message";
/// More than the highest number of a kind.
const KINDS: usize = 64;
const _: () = assert!(KINDS > EventKind::NUMBER_MAX as usize);
