//! The event of a message in quarantine.

use crate::block::affected_books::AffectedBooks;
use crate::block::json::json_string;
use crate::block::{Block, BlockMessageKind, MessageOrigin, NO_TS};
use unitape_model::event::EventValue;
use unitape_model::{EventBuilder, EventField, EventKind, Position, TapeGap, UnixNanos, flags};

/// Length and hash of the message's bytes, as in the event.
#[derive(Clone, Copy, Debug)]
pub struct RawDigest {
    /// Their number.
    pub length: u64,
    /// The hash of the bytes; `None` for no bytes.
    pub hash: Option<blake3::Hash>,
}

impl RawDigest {
    /// Computes the digest of these bytes.
    pub fn from_bytes(raw: &[u8]) -> Self {
        let hash = Some(raw).filter(|raw| !raw.is_empty()).map(blake3::hash);
        Self { length: raw.len() as u64, hash }
    }
}

/// Why a message is in quarantine, and where its bytes are.
#[derive(Clone, Copy, Debug)]
pub struct QuarantineDetails<'a> {
    /// Its event time.
    pub ts: UnixNanos,
    /// Id of the source's definition.
    pub source: u32,
    /// Start of the message in the source.
    pub offset: u64,
    /// Its place in the raw log.
    pub raw_at: u64,
    /// Its bytes in the raw log.
    pub raw: RawDigest,
    /// Why, in one word.
    pub reason: &'a str,
    /// Why, for people.
    pub detail: &'a str,
    /// The first bytes of the source where the message cannot be read without them.
    pub head: &'a [u8],
    /// The books that it concerned.
    pub concern: &'a AffectedBooks,
}

/// Writes the event of a message in quarantine.
pub fn quarantine_frame(out: &mut Vec<u8>, details: &QuarantineDetails<'_>) {
    let mut e = EventBuilder::begin(out, EventKind::Quarantine, details.ts);
    e.source(details.source, details.offset as u32);
    set_field(&mut e, EventField::RawAt, EventValue::UInt(details.raw_at));
    set_field(&mut e, EventField::Length, EventValue::UInt(details.raw.length));
    set_field(&mut e, EventField::Reason, EventValue::Text(details.reason));
    if !details.detail.is_empty() {
        set_field(&mut e, EventField::Detail, EventValue::Text(details.detail));
    }
    if let Some(hash) = details.raw.hash {
        set_field(&mut e, EventField::Hash, EventValue::Text(&hash.to_hex()));
    }
    if !details.head.is_empty() {
        e.keep_unmapped("head", &json_string(details.head)).expect("a name of four bytes");
    }
    let mut keep = |name, json: &str| e.keep_unmapped(name, json).expect("a short name");
    match details.concern {
        AffectedBooks::Feed => {}
        AffectedBooks::Nothing => keep("books", "false"),
        AffectedBooks::Instrument(instrument) => keep("instr", &json_string(instrument.as_bytes())),
        AffectedBooks::Listing(instrument, venue) => {
            keep("venue", &json_string(venue.as_bytes()));
            keep("instr", &json_string(instrument.as_bytes()));
        }
    }
    e.finish(flags::LAST).expect("a quarantine event is short");
}

/// A gap of a tape that was merged.
#[derive(Clone, Copy, Debug)]
pub struct TapeGapDetails<'a> {
    /// The time of the event; 0 without a time.
    pub ts: UnixNanos,
    /// Flags that the merge sets on it.
    pub mark: u8,
    /// A source of the feed that may have lost something.
    pub source: u32,
    /// The kind of the gap.
    pub gap: TapeGap,
    /// The gap in words.
    pub detail: &'a str,
    /// Name of the tape in the merge.
    pub tape: &'a str,
    /// Position there at which it begins.
    pub from: Position,
    /// Position there at which it ends.
    pub to: Position,
}

/// Writes the event of a gap of a tape that was merged.
pub fn tape_gap_frame(out: &mut Vec<u8>, gap: &TapeGapDetails<'_>) {
    let mut e = EventBuilder::begin(out, EventKind::Quarantine, gap.ts);
    e.source(gap.source, 0);
    set_field(&mut e, EventField::RawAt, EventValue::UInt(0));
    set_field(&mut e, EventField::Length, EventValue::UInt(0));
    set_field(&mut e, EventField::Reason, EventValue::Text(gap.gap.reason()));
    set_field(&mut e, EventField::Detail, EventValue::Text(gap.detail));
    let mut keep = |name, json: &str| e.keep_unmapped(name, json).expect("a short name");
    keep("tape", &json_string(gap.tape.as_bytes()));
    keep("from", &gap.from.0.to_string());
    keep("to", &gap.to.0.to_string());
    if !gap.gap.is_loss() {
        keep("books", "false");
    }
    e.finish(flags::LAST | gap.mark).expect("a quarantine event is short");
}

impl Block {
    /// Puts a message into quarantine, with the books that it may affect.
    pub fn quarantine_message(
        &mut self,
        origin: MessageOrigin,
        raw: &[u8],
        reason: &str,
        detail: &str,
        concern: &AffectedBooks,
    ) {
        let MessageOrigin { source, offset } = origin;
        // The time and the place in the raw log are the sequencer's to know.
        let details = QuarantineDetails {
            ts: UnixNanos(0),
            source,
            offset,
            raw_at: 0,
            raw: RawDigest::from_bytes(raw),
            reason,
            detail,
            head: if self.is_head_defined { &[] } else { &self.head },
            concern,
        };
        quarantine_frame(&mut self.arena, &details);
        self.raw.extend_from_slice(raw);
        self.tally.messages += 1;
        self.tally.quarantined += 1;
        self.push(offset, NO_TS, 1, 0, BlockMessageKind::Quarantine);
    }
}

/// Sets a field of a bookkeeping frame, which its kind has.
pub fn set_field(e: &mut EventBuilder<'_>, field: EventField, value: EventValue<'_>) {
    e.set_field(field, value).expect("of its sort");
}
