//! Frames that the sequencer adds to the events: definitions of sources and marks of progress.

use crate::account::SourceAccount;
use crate::block::MessageTally;
use crate::block::json::json_string;
use crate::block::numbers::FeedSessions;
use crate::block::quarantine_event::set_field;
use crate::formats::format::FormatId;
use crate::sources::source::FileGrowth;
use crate::sources::source::SourceFacts;
use unitape_model::{EventBuilder, EventField, EventKind, EventValue, UnixNanos, flags};

/// The fields of a source definition besides its feed and file.
#[derive(Clone, Copy, Debug)]
pub struct SourceDefinitionFields<'d> {
    /// Its own id.
    pub id: u32,
    /// The id of the source's first definition if this one is for a further 4 GiB or another mapping; 0 for the first
    /// definition.
    pub first_id: u32,
    /// Format, mapping and books.
    pub format_id: &'d FormatId,
    /// Offset in the source from which the events count theirs, bytes.
    pub base: u64,
}

/// Writes the definition of a source.
pub fn source_frame(out: &mut Vec<u8>, feed: &str, facts: &SourceFacts, parts: SourceDefinitionFields<'_>) {
    let e = begin_source(out, feed, facts, parts);
    e.finish(0).expect("a definition is short");
}

/// Begins the definition of a source; the caller must finish it.
fn begin_source<'o>(
    out: &'o mut Vec<u8>,
    feed: &str,
    facts: &SourceFacts,
    parts: SourceDefinitionFields<'_>,
) -> EventBuilder<'o> {
    let SourceDefinitionFields { id, first_id, format_id, base } = parts;
    let mut e = EventBuilder::begin(out, EventKind::Source, UnixNanos(0));
    set_field(&mut e, EventField::Index, EventValue::UInt(id.into()));
    if first_id != 0 {
        set_field(&mut e, EventField::Of, EventValue::UInt(first_id.into()));
    }
    set_field(&mut e, EventField::Base, EventValue::UInt(base));
    if let Some(size) = facts.size {
        set_field(&mut e, EventField::Size, EventValue::UInt(size));
    }
    set_field(&mut e, EventField::Format, EventValue::Text(&format_id.format));
    if let Some(hash) = &facts.hash {
        set_field(&mut e, EventField::Hash, EventValue::Text(hash));
    }
    set_field(&mut e, EventField::Feed, EventValue::Text(feed));
    set_field(&mut e, EventField::File, EventValue::Text(&facts.file));
    if let Some(mapping) = &format_id.mapping {
        set_field(&mut e, EventField::Mapping, EventValue::Text(mapping));
    }
    if let Some(books) = &format_id.books {
        e.keep_unmapped("books", &json_string(books.as_bytes())).expect("a name of five bytes");
    }
    e
}

/// Field of a further definition: the first bytes of the source, without which its messages in quarantine cannot be read.
/// Their events carry the definition's id.
pub const HEAD: &str = "head";

/// Writes the definition for quarantined messages that need the first bytes of their source. The definition holds
/// these bytes.
pub fn head_frame(out: &mut Vec<u8>, feed: &str, file: &str, parts: SourceDefinitionFields<'_>, head: &[u8]) {
    let facts = SourceFacts { file: file.to_owned(), size: None, hash: None };
    let mut e = begin_source(out, feed, &facts, parts);
    e.keep_unmapped(HEAD, &json_string(head)).expect("a name of four bytes");
    e.finish(0).expect("a definition with the head of a source is short");
}

/// Writes a further definition of a source whose file has grown. It states the file's present size and hash.
pub fn growth_frame(
    out: &mut Vec<u8>,
    id: u32,
    source: &SourceAccount,
    format_id: &FormatId,
    growth: &FileGrowth,
) {
    let mut e = EventBuilder::begin(out, EventKind::Source, UnixNanos(0));
    set_field(&mut e, EventField::Index, EventValue::UInt(id.into()));
    set_field(&mut e, EventField::Of, EventValue::UInt(source.id.into()));
    set_field(&mut e, EventField::Base, EventValue::UInt(0));
    let facts = growth.facts.as_ref();
    if let Some(size) = facts.and_then(|f| f.size) {
        set_field(&mut e, EventField::Size, EventValue::UInt(size));
    }
    set_field(&mut e, EventField::Format, EventValue::Text(&format_id.format));
    if let Some(hash) = facts.and_then(|f| f.hash.as_deref()) {
        set_field(&mut e, EventField::Hash, EventValue::Text(hash));
    }
    set_field(&mut e, EventField::Feed, EventValue::Text(&source.feed));
    set_field(&mut e, EventField::File, EventValue::Text(&source.file));
    if let Some(mapping) = &format_id.mapping {
        set_field(&mut e, EventField::Mapping, EventValue::Text(mapping));
    }
    let key = if growth.superseded { SUPERSEDED } else { GROWN };
    e.keep_unmapped(key, &growth.from.to_string()).expect("a short name");
    e.finish(flags::LAST).expect("a definition is short");
}

/// Field of a further definition: the file has grown, and reading continues at this offset.
pub const GROWN: &str = "grown";

/// Field of a further definition. A retry can make events of quarantined messages by another mapping than the source's;
/// these events carry the definition's id. The source itself stays with its own mapping.
pub const RETRIED: &str = "retried";

/// Writes the definition for events that a retry makes with another mapping than the source's.
pub fn retried_frame(out: &mut Vec<u8>, id: u32, source: &SourceAccount, format_id: &FormatId, base: u64) {
    let mut e = EventBuilder::begin(out, EventKind::Source, UnixNanos(0));
    set_field(&mut e, EventField::Index, EventValue::UInt(id.into()));
    set_field(&mut e, EventField::Of, EventValue::UInt(source.id.into()));
    set_field(&mut e, EventField::Base, EventValue::UInt(base));
    set_field(&mut e, EventField::Format, EventValue::Text(&format_id.format));
    set_field(&mut e, EventField::Feed, EventValue::Text(&source.feed));
    set_field(&mut e, EventField::File, EventValue::Text(&source.file));
    if let Some(mapping) = &format_id.mapping {
        set_field(&mut e, EventField::Mapping, EventValue::Text(mapping));
    }
    if let Some(books) = &format_id.books {
        e.keep_unmapped("books", &json_string(books.as_bytes())).expect("a name of five bytes");
    }
    e.keep_unmapped(RETRIED, "true").expect("a short name");
    e.finish(0).expect("a definition is short");
}

/// Field of a further definition: as [`GROWN`], and the message that begins there leaves the account. It is in
/// quarantine because the file ended in it.
pub const SUPERSEDED: &str = "superseded";

/// A mark of progress.
#[derive(Clone, Copy, Debug)]
pub struct ProgressMark {
    /// Id of the source's definition.
    pub source: u32,
    /// Consumed through this offset.
    pub through: u64,
    /// The source ends here.
    pub end: bool,
    /// Greatest event time of the feed so far.
    pub running_max: i64,
    /// Hash of the bytes before `through`, if the source's definition has no hash of the whole source.
    pub hash: Option<blake3::Hash>,
}

/// Writes a mark of progress with the account so far and the numbers on which the feed's order depends.
pub fn progress_frame(out: &mut Vec<u8>, mark: &ProgressMark, t: MessageTally, sessions: &FeedSessions) {
    let mut e = EventBuilder::begin(out, EventKind::Progress, UnixNanos(mark.running_max));
    e.source(mark.source, 0);
    set_field(&mut e, EventField::End, EventValue::Bool(mark.end));
    set_field(&mut e, EventField::Through, EventValue::UInt(mark.through));
    set_field(&mut e, EventField::Messages, EventValue::UInt(t.messages));
    set_field(&mut e, EventField::Ignored, EventValue::UInt(t.ignored));
    set_field(&mut e, EventField::Duplicates, EventValue::UInt(t.duplicates));
    set_field(&mut e, EventField::Quarantined, EventValue::UInt(t.quarantined));
    set_field(&mut e, EventField::Events, EventValue::UInt(t.events));
    set_field(&mut e, EventField::Unresolved, EventValue::UInt(t.unresolved));
    set_field(&mut e, EventField::Repeats, EventValue::UInt(t.repeats));
    set_field(&mut e, EventField::Unsure, EventValue::UInt(t.unsure));
    if !t.entries.is_empty() {
        set_field(&mut e, EventField::Entries, EventValue::UInt(t.entries.total));
        set_field(&mut e, EventField::EntriesUsed, EventValue::UInt(t.entries.with_events));
        set_field(&mut e, EventField::EntriesQuarantined, EventValue::UInt(t.entries.quarantined));
        set_field(&mut e, EventField::EntriesIgnored, EventValue::UInt(t.entries.ignored));
    }
    if let Some(hash) = &mark.hash {
        set_field(&mut e, EventField::Hash, EventValue::Text(&hash.to_hex()));
    }
    for (session, numbers) in sessions.iter() {
        let name = String::from_utf8_lossy(session);
        e.keep_unmapped(&name, &format!("\"{numbers}\"")).expect("a session's name is short");
    }
    e.finish(flags::LAST).expect("a progress mark is short");
}
