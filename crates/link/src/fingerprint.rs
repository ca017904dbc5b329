//! Checksums of a tape before a position, by which a sender recognises the tape of a receiver.
//!
//! ```text
//!  oldest                                   tail            position
//!    │ segment │ segment │ segment │ segment │ frames, frames … │
//!    └── one checksum each, from its .crc ───┴── one checksum ──┘
//! ```
//!
//! Two runs of one configuration have the same tape id. So the id alone does not say that both tapes are the same. One
//! checksum for each segment lets a sender compare although retention has removed its oldest segments. A segment whose
//! checksums are not written yet belongs to the tail: its frames are read.

use std::path::Path;
use unitape_model::Position;
use unitape_tape::{
    ReadOptions, Reader, SegmentChecksums, StartPosition, TapeManifest, oldest_position, segment_checksums,
};

use crate::wire::{HelloTape, RefusalReason};

/// Checksums of a tape before a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapeFingerprint {
    /// Index of the first segment that has a checksum here.
    pub first_segment: u64,
    /// CRC-32C of the checksum file of each whole segment from there on.
    pub segment_crcs: Vec<u32>,
    /// The frames from here to the position are covered by `tail_crc`.
    pub tail: Position,
    /// CRC-32C of the frames of the tail.
    pub tail_crc: u32,
}

/// The result of comparing a receiver's tape with the sender's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The sender has the same bytes before the position.
    Same,
    /// The sender's recorder has not written all checksums yet. Ask again.
    NotYet,
    /// The tapes differ, in the way that the text says.
    Different(RefusalReason, String),
}

impl TapeFingerprint {
    /// Reads the fingerprint of the tape in `dir` before `position`, with checksums of at most `segments_max` segments: the
    /// newest ones.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read.
    pub fn read(dir: &Path, position: Position, segments_max: usize) -> Result<Self, unitape_tape::Error> {
        let manifest = TapeManifest::load(dir)?;
        let SegmentChecksums { first_index: first, crcs } = segment_checksums(dir, position)?;
        let tail = Position((first + crcs.len() as u64) * manifest.segment_bytes).max(oldest_position(dir)?);
        let omitted = crcs.len().saturating_sub(segments_max);
        // A position that is before the oldest frame is that of an empty tape, or a later comparison refuses it.
        let tail = tail.min(position);
        Ok(Self {
            first_segment: first + omitted as u64,
            segment_crcs: crcs[omitted..].to_vec(),
            tail,
            tail_crc: frames_crc(dir, tail, position)?,
        })
    }
}

/// Compares the tape of a receiver with the tape in `dir`, which has `id` and ends at `end` or later.
///
/// # Errors
/// Fails if the tape in `dir` is damaged or cannot be read.
pub fn compare(
    dir: &Path,
    manifest: TapeManifest,
    end: Position,
    theirs: &HelloTape,
) -> Result<Comparison, unitape_tape::Error> {
    use Comparison::Different;
    if theirs.id != manifest.id {
        let text = format!("the receiver has tape {}, the sender has tape {}", theirs.id, manifest.id);
        return Ok(Different(RefusalReason::OtherTape, text));
    }
    if theirs.segment_bytes != manifest.segment_bytes {
        let text = format!(
            "the receiver's tape has segments of {} bytes, the sender's of {} bytes",
            theirs.segment_bytes, manifest.segment_bytes
        );
        return Ok(Different(RefusalReason::OtherSegmentSize, text));
    }
    let position = theirs.position;
    if position > end {
        let text = format!("the receiver's tape ends at position {position}, the sender's at {end}");
        return Ok(Different(RefusalReason::Behind, text));
    }
    let oldest = oldest_position(dir)?;
    if position < oldest {
        let text =
            format!("the receiver's tape ends at position {position}, the sender's begins at {oldest}");
        return Ok(Different(RefusalReason::Retained, text));
    }
    let TapeFingerprint { first_segment, segment_crcs, tail, tail_crc } = &theirs.fingerprint;
    let size = manifest.segment_bytes;
    let ours = segment_checksums(dir, *tail)?;
    let segment_end = first_segment + segment_crcs.len() as u64;
    if ours.first_index + (ours.crcs.len() as u64) < segment_end {
        return Ok(Comparison::NotYet);
    }
    for index in ours.first_index.max(*first_segment)..segment_end {
        if ours.crcs[(index - ours.first_index) as usize] != segment_crcs[(index - first_segment) as usize] {
            let (from, to) = (index * size, (index + 1) * size);
            return Ok(other_bytes(from, to));
        }
    }
    let has_compared = ours.first_index.max(*first_segment) < segment_end;
    if *tail < oldest || *tail == position && !has_compared && position > Position(0) {
        let text = format!(
            "the sender's tape begins at position {oldest}, so nothing is left to compare with the receiver's, which ends at \
             {position}"
        );
        return Ok(Different(RefusalReason::Retained, text));
    }
    match frames_crc(dir, *tail, position) {
        Ok(crc) if crc == *tail_crc => Ok(Comparison::Same),
        // No frame begins or ends there.
        Ok(_) | Err(unitape_tape::Error::NoFrame(_)) => Ok(other_bytes(tail.0, position.0)),
        Err(e) => Err(e),
    }
}

fn other_bytes(from: u64, to: u64) -> Comparison {
    let text =
        format!("between positions {from} and {to} the receiver's tape has other bytes than the sender's");
    Comparison::Different(RefusalReason::OtherBytes, text)
}

/// Returns the checksum of the frames from `start` to `end`.
fn frames_crc(dir: &Path, start: Position, end: Position) -> Result<u32, unitape_tape::Error> {
    let mut crc = 0;
    if start == end {
        return Ok(crc);
    }
    let mut reader = Reader::open_with(dir, StartPosition::At(start), ReadOptions::default())?;
    while reader.position() < end {
        let Some(frames) = reader.next_run(1 << 20)? else { break };
        let length = frames.bytes.len().min(end.0.saturating_sub(frames.position.0) as usize);
        crc = crc32c::crc32c_append(crc, &frames.bytes[..length]);
    }
    Ok(crc)
}
