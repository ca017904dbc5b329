//! Whether an alert tape is the one that was read before.
//!
//! Two days of one configuration have one tape id, so the id does not say it. The last frame that was read does: its position and
//! the digest of its bytes.

use crate::Error;
use crate::store::AlertTapeCursor;
use std::path::Path;
use unitape_model::{FrameHeader, Position};
use unitape_tape::{ReadOptions, Reader, StartPosition};

/// Fails if the tape in `dir` does not have the frame that was read last.
pub(super) fn check_identity(dir: &Path, cursor: &AlertTapeCursor, read: ReadOptions) -> Result<(), Error> {
    let Some((position, digest)) = cursor.last else { return Ok(()) };
    let mut reader = Reader::open_with(dir, StartPosition::Oldest, read)?;
    if position < reader.position().0 {
        // Retention has removed it. Whether the next one is left is found when it is looked for.
        return Ok(());
    }
    match reader.frame_at(Position(position)) {
        Ok(frame) if frame_digest(frame.bytes) == digest => Ok(()),
        Ok(_) => {
            let reason = format!(
                "this tape has the id of one that was read before, and another event at position {position}; two days of one \
                 configuration have one id: name another directory of cases for this one"
            );
            Err(Error::Ingest { path: dir.to_owned(), reason })
        }
        Err(unitape_tape::Error::NoFrame(_)) => Err(cut_back(dir, cursor.position)),
        Err(e) => Err(e.into()),
    }
}

/// Returns the error of a tape that ends before what was read of it.
pub(super) fn cut_back(dir: &Path, read_to: u64) -> Error {
    let reason = format!(
        "it was read to position {read_to}, and does not reach it: it was cut back, or is another tape of this id. After a power \
         loss run `unitape watch run` first, which derives the same alerts again; name another directory of cases for another tape"
    );
    Error::Ingest { path: dir.to_owned(), reason }
}

/// Returns the digest of a frame without the stamp of its writer, which a tape that is derived again does not share.
pub(super) fn frame_digest(frame: &[u8]) -> [u8; 32] {
    const STAMP: u64 = 0xffff_ffff;
    let header = FrameHeader::read(frame).0 & !STAMP;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&header.to_le_bytes());
    hasher.update(&frame[8..]);
    *hasher.finalize().as_bytes()
}
