//! Which events of a tape: a part of it, kinds, instruments, venues, and how many.

use crate::address::EventAddress;
use crate::follow::TapeRange;
use unitape_model::{Dictionary, Event, EventKind, EventValue, NameKind};
use unitape_tape::Frame;

/// A selection of events. The default selects all.
#[derive(Clone, Debug, Default)]
pub struct EventSelection {
    /// The part of the tape.
    pub range: TapeRange,
    /// Only events of these kinds; of all if neither a kind nor messages are chosen.
    pub kinds: Vec<EventKind>,
    /// Users' messages as well, where kinds are chosen. A selection without kinds has them in any case.
    pub includes_messages: bool,
    /// Only events that name one of these instruments.
    pub instruments: Vec<String>,
    /// Only events that name one of these venues; a bank that quotes counts as a venue.
    pub venues: Vec<String>,
    /// Bookkeeping as well: definitions, sources, marks of progress.
    pub includes_bookkeeping: bool,
    /// The number of events at most.
    pub limit: Option<u64>,
}

/// A selection that is being applied, and how many events each part of it let pass.
///
/// After the first selected event, nothing more is counted, because nobody needs the reason for an empty answer.
#[derive(Clone, Debug)]
pub struct EventFilter {
    range: TapeRange,
    any_kind: bool,
    kinds: Vec<EventKind>,
    includes_messages: bool,
    names: [NameFilter; 2],
    includes_bookkeeping: bool,
    events_left: u64,
    filter_counts: FilterCounts,
}

/// The events that passed each part of a selection while none was selected.
#[derive(Clone, Debug, Default)]
pub struct FilterCounts {
    /// Selected events.
    pub selected: u64,
    /// Events of the part of the tape; the other counts are of these.
    pub part_events: u64,
    /// By the number of the kind.
    pub by_kind: Vec<u64>,
    /// Users' messages.
    pub messages: u64,
    /// Events of the kinds.
    pub of_kinds: u64,
    /// The number of events with a requested instrument, and of events with a requested venue.
    pub of_names: [u64; 2],
}

impl EventSelection {
    /// Returns whether the selection has more conditions than its part of the tape.
    pub fn is_narrowed(&self) -> bool {
        let is_of_all_kinds = self.kinds.is_empty() && !self.includes_messages;
        !is_of_all_kinds || !self.instruments.is_empty() || !self.venues.is_empty() || self.limit.is_some()
    }
}

impl EventFilter {
    /// Makes a filter for a selection.
    pub fn new(selection: &EventSelection) -> Self {
        let any_kind = selection.kinds.is_empty() && !selection.includes_messages;
        Self {
            range: selection.range,
            any_kind,
            kinds: selection.kinds.clone(),
            includes_messages: any_kind || selection.includes_messages,
            names: [
                NameFilter::new(NameKind::Instrument, &selection.instruments),
                NameFilter::new(NameKind::Venue, &selection.venues),
            ],
            includes_bookkeeping: selection.includes_bookkeeping,
            events_left: selection.limit.unwrap_or(u64::MAX),
            filter_counts: FilterCounts { by_kind: vec![0; KINDS], ..FilterCounts::default() },
        }
    }

    /// Returns the part of the tape.
    pub fn range(&self) -> TapeRange {
        self.range
    }

    /// Returns the kinds, and whether users' messages are among them.
    pub fn kinds(&self) -> (&[EventKind], bool) {
        (&self.kinds, self.includes_messages)
    }

    /// Returns the filters of instruments and of venues.
    pub fn names(&self) -> &[NameFilter; 2] {
        &self.names
    }

    /// Returns the counts.
    pub fn counts(&self) -> &FilterCounts {
        &self.filter_counts
    }

    /// Returns how many more events may be selected.
    pub fn left(&self) -> u64 {
        self.events_left
    }

    /// Learns the ids of the names that were asked for. It must be called after each definition.
    pub fn update_ids(&mut self, names: &Dictionary) {
        self.names.iter_mut().for_each(|filter| filter.update_ids(names));
    }

    /// Returns whether no event from this place on can be selected.
    #[inline]
    pub fn is_done(&self, address: EventAddress) -> bool {
        self.events_left == 0 || self.range.is_over(address)
    }

    /// Returns whether this event is selected, and counts it.
    #[inline]
    pub fn select(&mut self, event: &Event<'_>, address: EventAddress) -> bool {
        let is_meta = event.header().is_meta();
        if !self.range.is_reached_by(address) || (is_meta && !self.includes_bookkeeping) {
            return false;
        }
        if self.range.times.is_some_and(|times| !times.contains(event.ts_event())) {
            return false;
        }
        let is_kind = self.any_kind || self.kinds.contains(&event.kind());
        if self.filter_counts.selected > 0 || is_meta {
            let is_selected = is_kind && self.names.iter().all(|filter| filter.matches_event(event));
            return self.count(is_selected);
        }
        let of_names = [self.names[0].matches_event(event), self.names[1].matches_event(event)];
        let counts = &mut self.filter_counts;
        counts.part_events += 1;
        counts.by_kind[event.kind() as usize] += 1;
        counts.of_kinds += u64::from(is_kind);
        counts.of_names.iter_mut().zip(of_names).for_each(|(n, is)| *n += u64::from(is));
        self.count(is_kind && of_names == [true; 2])
    }

    /// Returns whether a user's message is selected, and counts it. It names no instrument and no venue, and has no time.
    pub fn select_message(&mut self, address: EventAddress) -> bool {
        if self.range.times.is_some() || !self.range.is_reached_by(address) {
            return false;
        }
        let counts = &mut self.filter_counts;
        counts.part_events += 1;
        counts.messages += 1;
        counts.of_kinds += u64::from(self.includes_messages);
        self.count(self.includes_messages && self.names.iter().all(|filter| filter.wanted_names.is_empty()))
    }

    /// Returns whether the event or message of this frame is selected, and counts it. A frame that has neither is selected: its
    /// reader must refuse it.
    #[inline]
    pub fn select_frame(&mut self, frame: &Frame<'_>, address: EventAddress) -> bool {
        if frame.message().is_some() {
            return self.select_message(address);
        }
        Event::new(frame.bytes).is_none_or(|event| self.select(&event, address))
    }

    fn count(&mut self, is_selected: bool) -> bool {
        if is_selected {
            self.filter_counts.selected += 1;
            self.events_left -= 1;
        }
        is_selected
    }
}

/// Names of a dictionary. An event must have one of them.
#[derive(Clone, Debug)]
pub struct NameFilter {
    dict: NameKind,
    wanted_names: Vec<String>,
    /// The ids of the names that the tape has defined so far.
    known_ids: Vec<u32>,
    /// The length of the dictionary in which the names were looked up.
    dict_length: u32,
}

impl NameFilter {
    /// Makes a filter; without names it lets all pass.
    pub fn new(dict: NameKind, wanted: &[String]) -> Self {
        Self { dict, wanted_names: wanted.to_vec(), known_ids: Vec::new(), dict_length: 0 }
    }

    /// Returns the dictionary.
    pub fn dict(&self) -> NameKind {
        self.dict
    }

    /// Returns the names that were asked for.
    pub fn wanted(&self) -> &[String] {
        &self.wanted_names
    }

    /// Learns the ids of the names. It must be called after each definition, and after a dictionary has become another.
    pub fn update_ids(&mut self, names: &Dictionary) {
        let dict_length = names.len(self.dict);
        if self.dict_length != dict_length && !self.wanted_names.is_empty() {
            self.dict_length = dict_length;
            self.known_ids =
                self.wanted_names.iter().filter_map(|name| names.get(self.dict, name.as_bytes())).collect();
        }
    }

    /// Returns whether the name with this id is wanted.
    #[inline]
    pub fn has_id(&self, id: u32) -> bool {
        self.wanted_names.is_empty() || self.known_ids.contains(&id)
    }

    /// Returns whether a field of the event has one of the names.
    fn matches_event(&self, event: &Event<'_>) -> bool {
        if self.wanted_names.is_empty() {
            return true;
        }
        let mut scratch = [0; 36];
        !self.known_ids.is_empty()
            && event.schema().fields.iter().any(|spec| match event.value(spec, &mut scratch) {
                Some(EventValue::Sym(dict, id)) => dict == self.dict && self.known_ids.contains(&id),
                Some(EventValue::Syms(dict, ids)) => {
                    let (ids, _) = ids.as_chunks::<4>();
                    dict == self.dict
                        && ids.iter().any(|id| self.known_ids.contains(&u32::from_le_bytes(*id)))
                }
                _ => false,
            })
    }
}

/// More than the highest number of a kind.
const KINDS: usize = 64;
const _: () = assert!(KINDS > EventKind::NUMBER_MAX as usize);
