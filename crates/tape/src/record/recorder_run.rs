//! One step of the recorder: a run of committed frames, and the facts about it.

use unitape_model::{FrameHeader, frame::KIND_PAD};

use crate::disk::definitions::{DEFINITION_KINDS, DefinitionLog};
use crate::disk::durable::DurableMark;
use crate::disk::layout::HEADER_PAGE;
use crate::disk::map::{HeaderWordState, MappedSegment};
use crate::disk::segment_index::IndexBuilder;
use crate::error::{Error, Result};

/// Bytes after which a piece ends, unless it is wanted sooner.
pub(crate) const PIECE_BYTES: u64 = 4 << 20;

/// Greatest extension of a piece, in bytes, so that it ends where a page of the disk does. The next piece then begins
/// with whole pages.
const PAGE_WITHIN: u64 = 256 << 10;
const PAGE: u64 = 4096;

/// A run of committed frames in one segment; it may be empty.
#[derive(Debug)]
pub(crate) struct RecordedExtent {
    /// Data offset after its last frame.
    pub end_offset: u64,
    /// The pad that is after it, up to the end of the segment.
    pub pad: Option<FrameHeader>,
    /// The piece ends because of its size, and more frames may follow.
    pub has_more: bool,
    /// The last whole unit that ends in it.
    pub last_unit_end: Option<DurableMark>,
    /// Bytes of the definitions before its end.
    pub definitions_bytes: u64,
}

impl RecordedExtent {
    /// Scans about `at_most` bytes of `source` from data offset `from`, the start of a frame. Adds the definitions to
    /// the log and the times to the index.
    pub fn scan(
        from: u64,
        at_most: u64,
        source: &MappedSegment,
        definitions: &mut DefinitionLog,
        index: &mut IndexBuilder,
    ) -> Result<Self> {
        let mut piece =
            Self { end_offset: from, pad: None, has_more: false, last_unit_end: None, definitions_bytes: 0 };
        let (mut to, at_most, size) = (from, from.saturating_add(at_most), source.data_bytes);
        // The end of the last whole unit, and the bytes of the definitions before it.
        let mut definitions_bytes = definitions.bytes_passed();
        let (mut whole_end, mut whole_definitions_bytes) = (from, definitions_bytes);
        let mut fault = None;
        loop {
            // Most frames are plain events; they are walked together up to where something else has to be done.
            to = index.add_plain_events(source, to, at_most, |header, end| {
                if header.is_last() {
                    (whole_end, whole_definitions_bytes) = (end, definitions_bytes);
                }
            });
            if to >= size {
                break;
            }
            if to >= at_most && (to.is_multiple_of(PAGE) || to >= at_most.saturating_add(PAGE_WITHIN)) {
                piece.has_more = true;
                break;
            }
            match source.header_state(to) {
                HeaderWordState::Frame(header) => {
                    index.add_frame(source, to, header);
                    if DEFINITION_KINDS.contains(&header.kind()) {
                        // SAFETY: `look` saw the frame committed at `to`, its length within the segment.
                        let frame = unsafe { source.bytes(to, header.len_bytes()) };
                        definitions.push(source.base_position.plus(to), frame);
                        definitions_bytes = definitions.bytes_passed();
                    }
                    to += header.len_bytes() as u64;
                    if header.is_last() {
                        (whole_end, whole_definitions_bytes) = (to, definitions_bytes);
                    }
                }
                HeaderWordState::Pad => {
                    piece.pad = Some(
                        FrameHeader::new_unstamped(KIND_PAD, 0, 0).with_stamp(source.base_position.plus(to)),
                    );
                    break;
                }
                HeaderWordState::Nothing => break,
                HeaderWordState::Damage(header) => {
                    let reason = format!("no frame can start with {header}");
                    fault = Some(Error::damage(&source.path, HEADER_PAGE + to, reason));
                    break;
                }
            }
        }
        (piece.end_offset, piece.definitions_bytes) = (to, definitions_bytes);
        piece.last_unit_end = (whole_end > from).then(|| DurableMark {
            position: source.base_position.plus(whole_end),
            definitions_bytes: whole_definitions_bytes,
            open_sum: None,
        });
        fault.map_or(Ok(piece), Err)
    }
}

const _: () = assert!(HEADER_PAGE.is_multiple_of(PAGE));
