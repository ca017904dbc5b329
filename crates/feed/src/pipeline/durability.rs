//! The flush failures of a tape that a run waits out.
//!
//! A flush that fails takes nothing from the tape: readers can read what was appended, and the run continues to
//! append. The recorder of a hot tape retries the write; a file tape is checked and written again when it is
//! reopened. A run that ended at the first failed flush would lose what its senders do not repeat.

use unitape_tape::{Error, Writer};

/// The flush failures that a run has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlushFailures {
    /// Their number when the writer was last out of room.
    last_count: u64,
}

impl FlushFailures {
    /// Returns whether to retry an append that ended with this error. If so, nothing was appended, and room will
    /// become free.
    pub fn may_retry_append(&mut self, error: &Error, writer: &Writer, stopping: bool) -> bool {
        match error {
            // The writer reports it once for each time, and accepts the next append.
            Error::DurabilityFailed { .. } => true,
            // The window of hot segments is full of what is not durable; a run that is to end cannot wait for the disk.
            // A flush may have succeeded just now, and the recorder is not through yet.
            Error::RecorderBehind { .. } => {
                let failures = std::mem::replace(&mut self.last_count, writer.durability_failures());
                let failing = writer.durability_failure().is_some_and(|f| !f.lasting);
                !stopping && (failing || failures != self.last_count)
            }
            _ => false,
        }
    }
}
