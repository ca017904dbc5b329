//! Whether a tape is a merge of tapes, onto which nothing else goes.

use crate::error::Error;
use std::path::Path;

/// The file beside the segments of a merge that says how far each of its tapes is placed.
pub(crate) const MERGE_STATE: &str = "merge.state";

/// Refuses to put anything else onto a merge of tapes: the next merge could not continue after it.
///
/// # Errors
/// Fails if the tape in `dir` is a merged tape.
pub(crate) fn refuse_merge(dir: &Path) -> Result<(), Error> {
    if !dir.join(MERGE_STATE).exists() {
        return Ok(());
    }
    let reason = "it is a merge of tapes, onto which nothing else goes; use a new tape, or --tape-in. What is in quarantine \
                is retried on its own tape";
    Err(Error::Config { origin: dir.display().to_string(), reason: reason.to_owned() })
}
