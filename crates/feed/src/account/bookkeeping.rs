//! Frames that the sequencer adds to the events: definitions and marks of progress.

use crate::account::SourceAccount;
use crate::block::Tally;
use crate::block::json::json_string;
use crate::block::numbers::Sessions;
use crate::block::quarantined::set;
use crate::formats::format::Sort;
use crate::sources::source::Growth;
use crate::sources::source::SourceFacts;
use unitape_model::{Dict, EventBuilder, Field, Kind, UnixNanos, Value, flags};

/// The definition of a name.
pub fn define_frame(out: &mut Vec<u8>, dict: Dict, id: u32, name: &str) {
    let mut e = EventBuilder::begin(out, Kind::Define, UnixNanos(0));
    set(&mut e, Field::Dict, Value::UInt(dict as u64));
    set(&mut e, Field::Index, Value::UInt(id.into()));
    set(&mut e, Field::Name, Value::Text(name));
    e.finish(0).expect("a definition is short");
}

/// The definition of a source; or, of the source whose first definition is `of`, one more 4 GiB or another mapping.
pub fn source_frame(
    out: &mut Vec<u8>,
    (id, of): (u32, u32),
    feed: &str,
    facts: &SourceFacts,
    sort: &Sort,
    base: u64,
) {
    let mut e = EventBuilder::begin(out, Kind::Source, UnixNanos(0));
    set(&mut e, Field::Index, Value::UInt(id.into()));
    if of != 0 {
        set(&mut e, Field::Of, Value::UInt(of.into()));
    }
    set(&mut e, Field::Base, Value::UInt(base));
    if let Some(size) = facts.size {
        set(&mut e, Field::Size, Value::UInt(size));
    }
    set(&mut e, Field::Format, Value::Text(&sort.format));
    if let Some(hash) = &facts.hash {
        set(&mut e, Field::Hash, Value::Text(hash));
    }
    set(&mut e, Field::Feed, Value::Text(feed));
    set(&mut e, Field::File, Value::Text(&facts.file));
    if let Some(mapping) = &sort.mapping {
        set(&mut e, Field::Mapping, Value::Text(mapping));
    }
    if let Some(books) = &sort.books {
        e.unmapped("books", &json_string(books.as_bytes())).expect("a name of five bytes");
    }
    e.finish(0).expect("a definition is short");
}

/// That the file of a source has grown: a further definition of it, with what its file is now.
pub fn growth_frame(out: &mut Vec<u8>, id: u32, source: &SourceAccount, sort: &Sort, growth: &Growth) {
    let mut e = EventBuilder::begin(out, Kind::Source, UnixNanos(0));
    set(&mut e, Field::Index, Value::UInt(id.into()));
    set(&mut e, Field::Of, Value::UInt(source.id.into()));
    set(&mut e, Field::Base, Value::UInt(0));
    let facts = growth.facts.as_ref();
    if let Some(size) = facts.and_then(|f| f.size) {
        set(&mut e, Field::Size, Value::UInt(size));
    }
    set(&mut e, Field::Format, Value::Text(&sort.format));
    if let Some(hash) = facts.and_then(|f| f.hash.as_deref()) {
        set(&mut e, Field::Hash, Value::Text(hash));
    }
    set(&mut e, Field::Feed, Value::Text(&source.feed));
    set(&mut e, Field::File, Value::Text(&source.file));
    if let Some(mapping) = &sort.mapping {
        set(&mut e, Field::Mapping, Value::Text(mapping));
    }
    let key = if growth.superseded { SUPERSEDED } else { GROWN };
    e.unmapped(key, &growth.from.to_string()).expect("a short name");
    e.finish(flags::LAST).expect("a definition is short");
}

/// Field of a further definition: the file has grown, and is read on at this offset.
pub const GROWN: &str = "grown";

/// Field of a further definition: events that a retry has made of messages in quarantine, by another mapping than the
/// source's, carry its id. What is read of the source stays with the source's own mapping.
pub const RETRIED: &str = "retried";

/// The definition of the events that a retry makes by another mapping than that of their source.
pub fn retried_frame(out: &mut Vec<u8>, id: u32, source: &SourceAccount, sort: &Sort, base: u64) {
    let mut e = EventBuilder::begin(out, Kind::Source, UnixNanos(0));
    set(&mut e, Field::Index, Value::UInt(id.into()));
    set(&mut e, Field::Of, Value::UInt(source.id.into()));
    set(&mut e, Field::Base, Value::UInt(base));
    set(&mut e, Field::Format, Value::Text(&sort.format));
    set(&mut e, Field::Feed, Value::Text(&source.feed));
    set(&mut e, Field::File, Value::Text(&source.file));
    if let Some(mapping) = &sort.mapping {
        set(&mut e, Field::Mapping, Value::Text(mapping));
    }
    if let Some(books) = &sort.books {
        e.unmapped("books", &json_string(books.as_bytes())).expect("a name of five bytes");
    }
    e.unmapped(RETRIED, "true").expect("a short name");
    e.finish(0).expect("a definition is short");
}

/// The same, and the message that begins there, in quarantine because the file ended in it, leaves the account.
pub const SUPERSEDED: &str = "superseded";

/// A mark of progress.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Id of the source's definition.
    pub source: u32,
    /// Consumed through this offset.
    pub through: u64,
    /// The source ends here.
    pub end: bool,
    /// Greatest event time of the feed so far.
    pub running_max: i64,
    /// Of the bytes before `through`, where the source's definition has none of all.
    pub hash: Option<blake3::Hash>,
}

/// A mark of progress, with the account so far and what the feed's order depends on.
pub fn progress_frame(out: &mut Vec<u8>, mark: &Progress, t: Tally, sessions: &Sessions) {
    let mut e = EventBuilder::begin(out, Kind::Progress, UnixNanos(mark.running_max));
    e.source(mark.source, 0);
    set(&mut e, Field::End, Value::Bool(mark.end));
    set(&mut e, Field::Through, Value::UInt(mark.through));
    set(&mut e, Field::Messages, Value::UInt(t.messages));
    set(&mut e, Field::Ignored, Value::UInt(t.ignored));
    set(&mut e, Field::Duplicates, Value::UInt(t.duplicates));
    set(&mut e, Field::Quarantined, Value::UInt(t.quarantined));
    set(&mut e, Field::Events, Value::UInt(t.events));
    set(&mut e, Field::Unresolved, Value::UInt(t.unresolved));
    set(&mut e, Field::Repeats, Value::UInt(t.repeats));
    set(&mut e, Field::Unsure, Value::UInt(t.unsure));
    if let Some(hash) = &mark.hash {
        set(&mut e, Field::Hash, Value::Text(&hash.to_hex()));
    }
    for (session, seen) in sessions.iter() {
        let name = String::from_utf8_lossy(session);
        e.unmapped(&name, &format!("\"{seen}\"")).expect("a session's name is short");
    }
    e.finish(flags::LAST).expect("a progress mark is short");
}
