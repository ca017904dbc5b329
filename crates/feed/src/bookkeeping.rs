//! Frames that the sequencer adds to the events: definitions and marks of progress.

use crate::block::Tally;
use crate::feed_state::{Sessions, Sort};
use crate::source::SourceFacts;
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
    e.finish(0).expect("a definition is short");
}

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
    for (session, max) in sessions {
        let name = String::from_utf8_lossy(session);
        e.unmapped(&name, &max.to_string()).expect("a session's name is short");
    }
    e.finish(flags::LAST).expect("a progress mark is short");
}

/// Why a message is in quarantine, and where its bytes are.
#[derive(Clone, Copy, Debug)]
pub struct Quarantined<'a> {
    /// Nanoseconds since 1970.
    pub ts: i64,
    /// Id of the source's definition.
    pub source: u32,
    /// Where the message starts in the source.
    pub offset: u64,
    /// Where it stands in the raw log.
    pub raw_at: u64,
    /// Its length, bytes.
    pub length: usize,
    /// Why, in one word.
    pub reason: &'a str,
    /// Why, for people.
    pub detail: &'a str,
    /// The first bytes of the source where the message cannot be read without them.
    pub head: &'a [u8],
}

/// The event of a message in quarantine.
pub fn quarantine_frame(out: &mut Vec<u8>, why: &Quarantined<'_>) {
    let mut e = EventBuilder::begin(out, Kind::Quarantine, UnixNanos(why.ts));
    e.source(why.source, why.offset as u32);
    set(&mut e, Field::RawAt, Value::UInt(why.raw_at));
    set(&mut e, Field::Length, Value::UInt(why.length as u64));
    set(&mut e, Field::Reason, Value::Text(why.reason));
    if !why.detail.is_empty() {
        set(&mut e, Field::Detail, Value::Text(why.detail));
    }
    if !why.head.is_empty() {
        e.unmapped("head", &crate::mapping::json_string(why.head)).expect("a name of four bytes");
    }
    e.finish(flags::LAST).expect("a quarantine event is short");
}

/// Sets a field of a bookkeeping frame, which its kind has.
pub fn set(e: &mut EventBuilder<'_>, field: Field, value: Value<'_>) {
    let spec = e.schema().get(field).expect("a field of the kind");
    e.set(spec, value).expect("of its sort");
}
