//! The meaning of the ids on a tape: names and sources, learned from definitions, frame by frame.
//!
//! ```text
//!   tape    define venue 1 XLON │ source 1 lse/day.fix │ order_new venue=1 source=1 │ order_new venue=2
//!                  └─ admit ─▶ learned     └─▶ learned             └─▶ known                     └─▶ "venue 2 is not defined"
//! ```
//!
//! A reader of a tape gives each frame to [`DefinitionTable::admit_event`], in the order of the tape. A definition that does not
//! follow those before it, and an id that no definition precedes, is damage: an event under another name is a false
//! event.

use std::collections::BTreeMap;

use crate::dict::Dictionary;
use crate::event::{Event, EventValue};
use crate::frame::{FrameHeader, flags};
use crate::id::{NAME_BYTES_MAX, NameKind};
use crate::kind::{EventField, EventKind};
use crate::message::TopicMessage;
use crate::schema::{FieldLayout, SCHEMAS, at};

/// Why a frame cannot be used: it contradicts the definitions before it, or its kind is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// A definition without a part that it must have.
    #[error("a definition without {0}")]
    Incomplete(&'static str),
    /// A name whose id is not the next one, or an id that has another name.
    #[error("the definition of {} {id}, {name:?}, does not follow those before it", dict.name())]
    Disorder {
        /// The dictionary.
        dict: NameKind,
        /// The id.
        id: u32,
        /// The name that it was to have.
        name: String,
    },
    /// Another definition of a source that is defined.
    #[error("the definition of source {0} does not follow those before it")]
    SourceDisorder(u32),
    /// An id that no definition precedes.
    #[error("{} {id} is not defined", dict.name())]
    Undefined {
        /// The dictionary.
        dict: NameKind,
        /// The id.
        id: u32,
    },
    /// The id of a source that no definition precedes.
    #[error("source {0} is not defined")]
    UndefinedSource(u32),
    /// Neither an event nor a message.
    #[error("a frame of kind {0}, which this build does not know, or shorter than its kind")]
    UnknownKind(u8),
    /// A list of ids that ends within one.
    #[error("a list of ids that is cut short")]
    ListLength,
}

/// A source, as its definition describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceDefinition {
    /// Name of the feed.
    pub feed: String,
    /// Name of the file, without its directory.
    pub file: String,
    /// The bytes to add to an event's offset.
    pub base: u64,
    /// The definition frame of the tape.
    pub frame: Box<[u8]>,
}

/// The names and sources that a tape has defined so far.
///
/// ```
/// use unitape_model::{Event, EventBuilder, EventField, EventKind, DefinitionTable, EventSchema, UnixNanos, Dictionary};
///
/// let (mut arena, mut ids) = (Vec::new(), Dictionary::default());
/// let mut e = EventBuilder::begin(&mut arena, EventKind::Trade, UnixNanos(1));
/// for (field, text) in [("instr", "VOD"), ("px", "1"), ("qty", "1")] {
///     e.set_text(EventSchema::for_kind(EventKind::Trade).find(field).unwrap(), text.as_bytes(), &mut ids).unwrap();
/// }
/// e.finish(0).unwrap();
/// let refused = DefinitionTable::default().admit_event(&Event::new(&arena).unwrap()).unwrap_err();
/// assert_eq!(refused.to_string(), "instrument 1 is not defined");
/// ```
#[derive(Clone, Debug)]
pub struct DefinitionTable {
    names: Dictionary,
    /// The number of names in each dictionary, or fewer: for an id beyond it the reader looks into the dictionary.
    name_counts: [u32; NameKind::COUNT],
    source_by_id: BTreeMap<u32, SourceDefinition>,
    /// Defined sources of the last events; 0, which is no source, fills the rest.
    recent: [u32; RECENT],
    lenient: bool,
    /// The table to ask for names whose definitions are lost.
    log: Option<Box<DefinitionTable>>,
    /// Ids of dictionaries have gaps.
    has_id_gaps: bool,
    lost: LostNameCounts,
}

/// Definitions that a lenient table has missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostNameCounts {
    /// Names and sources that were missing on the tape and are in its log.
    pub from_log: u64,
    /// Uses of ids, and ids left out by definitions, that have no name anywhere.
    pub nameless: u64,
}

/// Sources that are found without a search.
const RECENT: usize = 64;

impl Default for DefinitionTable {
    fn default() -> Self {
        let (names, sources) = (Dictionary::default(), BTreeMap::new());
        Self {
            names,
            name_counts: [0; NameKind::COUNT],
            source_by_id: sources,
            recent: [0; RECENT],
            lenient: false,
            log: None,
            has_id_gaps: false,
            lost: LostNameCounts::default(),
        }
    }
}

impl DefinitionTable {
    /// Admits ids without a definition, and counts them: for a reader that continues after damage.
    pub fn set_lenient(&mut self, lenient: bool) {
        self.lenient = lenient;
    }

    /// Sets a table to ask for names whose definitions are lost: that of the log of definitions. An id has one name
    /// on all of a tape, so a name in the log is right wherever it is needed.
    pub fn set_log(&mut self, log: DefinitionTable) {
        self.lenient = true;
        self.log = Some(Box::new(log));
    }

    /// Returns the counts of lost names.
    pub fn lost_names(&self) -> LostNameCounts {
        self.lost
    }

    /// Takes the next frame of the tape, as [`DefinitionTable::admit_event`] does, and returns the event in it. Returns
    /// `None` for a user's message.
    ///
    /// # Errors
    /// Fails as [`DefinitionTable::admit_event`] does, and if the kind of the frame is unknown.
    #[inline]
    pub fn admit_frame<'a>(&mut self, frame: &'a [u8]) -> Result<Option<Event<'a>>, FrameFault> {
        let Some(event) = Event::new(frame) else {
            return match TopicMessage::from_frame(frame) {
                Some(_) => Ok(None),
                None => Err(FrameFault::UnknownKind(FrameHeader::read(frame).kind())),
            };
        };
        self.admit_event(&event)?;
        Ok(Some(event))
    }

    /// Takes the next frame of the tape: learns a definition, and checks for any other event that its ids are defined.
    ///
    /// # Errors
    /// Fails if a definition does not follow the ones before it, or if an id has no definition.
    #[inline]
    pub fn admit_event(&mut self, event: &Event<'_>) -> Result<(), FrameFault> {
        match event.kind() {
            EventKind::Define => self.add_definition(event),
            EventKind::Source => self.define_source(event),
            kind => self.check_event(event, kind),
        }
    }

    /// Returns the dictionary of the names.
    #[inline]
    pub fn dictionary(&self) -> &Dictionary {
        &self.names
    }

    /// Returns the dictionary for a writer that continues to assign ids where the tape ends.
    pub fn dictionary_mut(&mut self) -> &mut Dictionary {
        self.name_counts = [0; NameKind::COUNT];
        &mut self.names
    }

    /// Looks up the id of `name`.
    pub fn get(&self, dict: NameKind, name: &[u8]) -> Option<u32> {
        self.names.get(dict, name)
    }

    /// Looks up the name of `id`.
    pub fn name(&self, dict: NameKind, id: u32) -> Option<&str> {
        self.names.name(dict, id)
    }

    /// Counts the names in `dict`.
    pub fn len(&self, dict: NameKind) -> u32 {
        self.names.len(dict)
    }

    /// Returns whether the table has no names.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Iterates over the defined sources, with their ids.
    pub fn sources(&self) -> impl Iterator<Item = (u32, &SourceDefinition)> {
        self.source_by_id.iter().map(|(id, source)| (*id, source))
    }

    /// Looks up the source with this id.
    pub fn source(&self, id: u32) -> Option<&SourceDefinition> {
        self.source_by_id.get(&id)
    }

    #[inline]
    fn check_event(&mut self, event: &Event<'_>, kind: EventKind) -> Result<(), FrameFault> {
        let ids = &IDS[kind as usize & 63];
        let words = event.bytes().as_chunks::<4>().0;
        let source = event.source();
        let mut is_known = self.recent[source as usize % RECENT] == source && !kind.has_layouts();
        for &(word, dict) in &ids.wide_ids[..usize::from(ids.count)] {
            is_known &= u32::from_le_bytes(words[usize::from(word)]) <= self.name_counts[dict as usize];
        }
        is_known &= !ids.has_venue || u32::from(event.venue()) <= self.name_counts[NameKind::Venue as usize];
        let has_extension = ids.has_extension && event.header().flags() & flags::EXT != 0;
        if is_known && !has_extension && !self.has_id_gaps {
            return Ok(());
        }
        if is_known && !self.has_id_gaps && !ids.has_lists && self.knows_extension(event) {
            return Ok(());
        }
        self.check_slowly(event)
    }

    /// Returns whether all ids in the extension are defined, if each field has at most one id.
    fn knows_extension(&self, event: &Event<'_>) -> bool {
        let fields = event.schema().fields;
        event.extension_entries().all(|(tag, payload)| {
            let spec = fields.iter().find(|spec| spec.field as u16 == tag);
            match (spec.map(|spec| spec.slot), payload.try_into()) {
                (Some(FieldLayout::SymExt { dict }), Ok(id)) => {
                    u32::from_le_bytes(id) <= self.name_counts[dict as usize]
                }
                _ => true,
            }
        })
    }

    /// Checks id by id, to name the unknown one or to count it.
    #[cold]
    fn check_slowly(&mut self, event: &Event<'_>) -> Result<(), FrameFault> {
        let source = event.source();
        if source != 0 && !self.source_by_id.contains_key(&source) && !self.recover_source(source) {
            self.note_lacking(FrameFault::UndefinedSource(source))?;
        } else {
            self.recent[source as usize % RECENT] = source;
        }
        let mut scratch = [0; 36];
        for spec in event.schema().fields.iter().filter(|spec| is_id(spec.slot)) {
            match event.value(spec, &mut scratch) {
                Some(EventValue::Sym(dict, id)) => self.check_known(dict, id)?,
                Some(EventValue::Syms(dict, list)) => {
                    let (ids, rest) = list.as_chunks::<4>();
                    if !rest.is_empty() {
                        return Err(FrameFault::ListLength);
                    }
                    for id in ids.iter().map(|id| u32::from_le_bytes(*id)).filter(|id| *id != 0) {
                        self.check_known(dict, id)?;
                    }
                }
                _ => {}
            }
        }
        self.name_counts = NameKind::ALL.map(|dict| self.names.len(dict));
        Ok(())
    }

    fn check_known(&mut self, dict: NameKind, id: u32) -> Result<(), FrameFault> {
        if self.names.name(dict, id).is_none() {
            self.recover_names(dict, id);
        }
        match self.names.name(dict, id) {
            Some(_) => Ok(()),
            None => self.note_lacking(FrameFault::Undefined { dict, id }),
        }
    }

    /// Takes the names up to that of `id` from the log.
    fn recover_names(&mut self, dict: NameKind, id: u32) {
        let Some(log) = &self.log else { return };
        for id in self.names.len(dict) + 1..=id.min(log.len(dict)) {
            match log.name(dict, id) {
                Some(name) if self.names.define(dict, id, name.as_bytes()) => self.lost.from_log += 1,
                _ => break,
            }
        }
    }

    fn recover_source(&mut self, id: u32) -> bool {
        let logged_source = self.log.as_ref().and_then(|log| log.source(id)).cloned();
        self.lost.from_log += u64::from(logged_source.is_some());
        logged_source.is_some_and(|source| self.source_by_id.insert(id, source).is_none())
    }

    fn note_lacking(&mut self, flaw: FrameFault) -> Result<(), FrameFault> {
        if !self.lenient {
            return Err(flaw);
        }
        self.lost.nameless += 1;
        Ok(())
    }

    #[cold]
    fn add_definition(&mut self, event: &Event<'_>) -> Result<(), FrameFault> {
        let incomplete = FrameFault::Incomplete;
        let dict = uint_field(event, EventField::Dict)
            .and_then(|d| u8::try_from(d).ok())
            .and_then(NameKind::from_u8);
        let dict = dict.ok_or(incomplete("a dictionary"))?;
        let id = uint_field(event, EventField::Index).and_then(|id| u32::try_from(id).ok());
        let id = id.filter(|id| *id != 0).ok_or(incomplete("an id"))?;
        let mut scratch = [0; 36];
        let name = match event.field(EventField::Name, &mut scratch) {
            Some(EventValue::Text(name)) if (1..=NAME_BYTES_MAX).contains(&name.len()) => name,
            _ => return Err(incomplete("a name")),
        };
        if self.lenient {
            self.recover_names(dict, id - 1);
            let left_out = self.names.leave_out(dict, id);
            self.has_id_gaps |= left_out > 0;
            self.lost.nameless += left_out;
        }
        if !self.names.define(dict, id, name.as_bytes()) {
            return Err(FrameFault::Disorder { dict, id, name: name.to_owned() });
        }
        self.name_counts[dict as usize] = self.names.len(dict);
        Ok(())
    }

    #[cold]
    fn define_source(&mut self, event: &Event<'_>) -> Result<(), FrameFault> {
        let incomplete = FrameFault::Incomplete;
        let id = uint_field(event, EventField::Index).and_then(|id| u32::try_from(id).ok());
        let id = id.filter(|id| *id != 0).ok_or(incomplete("an id"))?;
        let text = |field, field_name| match event.field(field, &mut [0; 36]) {
            Some(EventValue::Text(text)) => Ok(text.to_owned()),
            _ => Err(incomplete(field_name)),
        };
        let source = SourceDefinition {
            feed: text(EventField::Feed, "a feed")?,
            file: text(EventField::File, "a file")?,
            base: uint_field(event, EventField::Base).unwrap_or(0),
            frame: event.bytes().into(),
        };
        match self.source_by_id.get(&id) {
            // The log of definitions and the tape say the same twice.
            Some(before) if before.frame[at::TS_EVENT..] != source.frame[at::TS_EVENT..] => {
                Err(FrameFault::SourceDisorder(id))
            }
            Some(_) => Ok(()),
            None => {
                self.source_by_id.insert(id, source);
                Ok(())
            }
        }
    }
}

fn uint_field(event: &Event<'_>, field: EventField) -> Option<u64> {
    match event.field(field, &mut [0; 36]) {
        Some(EventValue::UInt(v)) => Some(v),
        _ => None,
    }
}

/// The places of a kind's ids.
#[derive(Clone, Copy)]
struct EventIdLayout {
    /// Ids of four bytes: which words of the fixed part, and whose.
    wide_ids: [(u8, NameKind); WIDE_MAX],
    count: u8,
    /// The kind has a venue's id, in the common field.
    has_venue: bool,
    /// The kind may have ids in its extension.
    has_extension: bool,
    /// The kind may have lists of ids in its extension.
    has_lists: bool,
}

/// No kind has more ids of four bytes.
const WIDE_MAX: usize = 8;

/// By the number of the kind.
static IDS: [EventIdLayout; 64] = {
    let empty_layout = EventIdLayout {
        wide_ids: [(0, NameKind::Instrument); WIDE_MAX],
        count: 0,
        has_venue: false,
        has_extension: false,
        has_lists: false,
    };
    let mut all = [empty_layout; 64];
    let mut s = 0;
    while s < SCHEMAS.len() {
        let (kind, mut fields) = (SCHEMAS[s].kind as usize, SCHEMAS[s].fields);
        // Their ids are where the layout of the frame has them.
        if SCHEMAS[s].kind.has_layouts() {
            fields = &[];
        }
        let mut f = 0;
        while f < fields.len() {
            match fields[f].slot {
                FieldLayout::Sym { dict: NameKind::Venue, offset } => {
                    assert!(offset as usize == at::VENUE, "a venue is where all venues are");
                    all[kind].has_venue = true;
                }
                FieldLayout::Publisher { .. } => all[kind].has_venue = true,
                FieldLayout::Sym { dict, offset } => {
                    assert!(offset < 1024 && offset % 4 == 0, "a word of the fixed part");
                    all[kind].wide_ids[all[kind].count as usize] = ((offset / 4) as u8, dict);
                    all[kind].count += 1;
                }
                FieldLayout::Syms { .. } => {
                    all[kind].has_lists = true;
                    all[kind].has_extension = true;
                }
                FieldLayout::SymExt { .. } => all[kind].has_extension = true,
                _ => {}
            }
            f += 1;
        }
        s += 1;
    }
    all
};

fn is_id(slot: FieldLayout) -> bool {
    slot.dict().is_some() || matches!(slot, FieldLayout::Syms { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::EventBuilder;
    use crate::num::UnixNanos;
    use crate::schema::EventSchema;

    fn definition(dict: NameKind, id: u32, name: &str) -> Vec<u8> {
        let mut arena = Vec::new();
        EventBuilder::define(&mut arena, dict, id, name).unwrap();
        arena
    }

    fn order(fields: &[(&str, &str)], names: &mut Dictionary) -> Vec<u8> {
        let mut arena = Vec::new();
        let mut e = EventBuilder::begin(&mut arena, EventKind::OrderNew, UnixNanos(1));
        for (field, text) in fields {
            e.set_text(
                EventSchema::for_kind(EventKind::OrderNew).find(field).unwrap(),
                text.as_bytes(),
                names,
            )
            .unwrap();
        }
        e.finish(0).unwrap();
        arena
    }

    fn admit(table: &mut DefinitionTable, frame: &[u8]) -> Result<(), String> {
        table.admit_event(&Event::new(frame).unwrap()).map_err(|e| e.to_string())
    }

    /// An id in the extension, or in a place that another layout of the kind does not have, would be printed under a name
    /// that nothing gave it.
    #[test]
    fn ids_in_extensions_and_in_every_layout_need_a_definition() {
        let (mut table, mut names) = (DefinitionTable::default(), Dictionary::default());
        let order = order(&[("oid", "1"), ("desk", "D"), ("entry", "10.0.0.1")], &mut names);
        assert_eq!(admit(&mut table, &order), Err("desk 1 is not defined".to_owned()));
        admit(&mut table, &definition(NameKind::Desk, 1, "D")).unwrap();
        assert_eq!(admit(&mut table, &order), Err("name 1 is not defined".to_owned()));
        admit(&mut table, &definition(NameKind::Name, 1, "10.0.0.1")).unwrap();
        admit(&mut table, &order).unwrap();
        admit(&mut table, &order).unwrap();

        for layout in [0, 1] {
            let (mut table, mut arena) = (DefinitionTable::default(), Vec::new());
            let schema = EventSchema::for_layout(EventKind::Control, layout).unwrap();
            let mut e = EventBuilder::begin_layout(&mut arena, schema, UnixNanos(1));
            let last = if layout == 0 { "venue" } else { "second_by" };
            for (field, text) in [("action", "halt"), (last, "N")] {
                e.set_text(schema.find(field).unwrap(), text.as_bytes(), &mut Dictionary::default()).unwrap();
            }
            e.finish(0).unwrap();
            let dict = if layout == 0 { NameKind::Venue } else { NameKind::Name };
            assert_eq!(admit(&mut table, &arena), Err(format!("{} 1 is not defined", dict.name())));
            admit(&mut table, &definition(dict, 1, "N")).unwrap();
            admit(&mut table, &arena).unwrap();
        }
    }

    /// Each reader of a tape once had its own way: one printed ids, one refused, one passed over it.
    #[test]
    fn a_definition_follows_those_before_it_and_comes_before_its_use() {
        let mut table = DefinitionTable::default();
        let mut names = Dictionary::default();
        let order = order(&[("oid", "1"), ("venue", "XLON"), ("acct", "A")], &mut names);
        assert_eq!(admit(&mut table, &order), Err("venue 1 is not defined".to_owned()));
        admit(&mut table, &definition(NameKind::Venue, 1, "XLON")).unwrap();
        assert_eq!(admit(&mut table, &order), Err("account 1 is not defined".to_owned()));
        admit(&mut table, &definition(NameKind::Account, 1, "A")).unwrap();
        admit(&mut table, &order).unwrap();
        admit(&mut table, &definition(NameKind::Venue, 1, "XLON")).expect("the same again");
        for (id, name) in [(3, "CHIX"), (1, "CHIX")] {
            let refused = admit(&mut table, &definition(NameKind::Venue, id, name)).unwrap_err();
            let wanted = format!("the definition of venue {id}, \"CHIX\", does not follow those before it");
            assert_eq!(refused, wanted);
        }
        assert_eq!(table.name(NameKind::Venue, 1), Some("XLON"));
    }

    /// After damage the names that are left are used, and none is confused with another.
    #[test]
    fn who_reads_on_counts_ids_without_a_name() {
        let mut table = DefinitionTable::default();
        table.set_lenient(true);
        admit(&mut table, &definition(NameKind::Venue, 1, "XLON")).unwrap();
        admit(&mut table, &definition(NameKind::Venue, 4, "CHIX")).unwrap();
        let mut names = Dictionary::default();
        for venue in ["XLON", "B", "C", "CHIX", "E"] {
            let order = order(&[("oid", "1"), ("venue", venue)], &mut names);
            admit(&mut table, &order).unwrap();
        }
        assert_eq!(table.lost_names(), LostNameCounts { from_log: 0, nameless: 2 + 3 });
        let name = |id| table.name(NameKind::Venue, id);
        assert_eq!(
            [name(1), name(2), name(3), name(4), name(5)],
            [Some("XLON"), None, None, Some("CHIX"), None]
        );
        assert_eq!((table.get(NameKind::Venue, b""), table.get(NameKind::Venue, b"CHIX")), (None, Some(4)));
        assert!(admit(&mut table, &definition(NameKind::Venue, 1 << 30, "FAR")).is_err(), "bounded");
    }

    /// The quick look and the one by the schema agree on what is an id.
    #[test]
    fn every_id_of_every_kind_is_looked_at() {
        for schema in SCHEMAS.iter().filter(|s| EventKind::EVENTS.contains(&s.kind)) {
            for spec in schema.fields {
                let Some(dict) = spec.slot.dict() else { continue };
                let (mut arena, mut names) = (Vec::new(), Dictionary::default());
                let mut e = EventBuilder::begin(&mut arena, schema.kind, UnixNanos(1));
                e.set_text(spec, b"NAME", &mut names).unwrap();
                e.finish(0).unwrap();
                let refused = admit(&mut DefinitionTable::default(), &arena);
                assert_eq!(refused, Err(format!("{} 1 is not defined", dict.name())), "{:?}", schema.kind);
            }
        }
    }
}
