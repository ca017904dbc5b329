//! The units of each segment that the tape of a merge has when the merge begins.

use crate::account::TapeAccount;
use crate::account::retention_checkpoint;
use crate::error::Error;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// The units of a segment that a tape has.
#[derive(Debug, Default)]
pub struct SegmentMergeProgress {
    /// Units that are placed.
    pub units: u64,
    /// Ids of its source definitions, in their order.
    pub sources: VecDeque<u32>,
}

impl SegmentMergeProgress {
    /// Reads the account of the tape in `dir` and its progress in each segment.
    ///
    /// # Errors
    /// Fails if the tape cannot be read, or lacks what a merge must know.
    pub fn read(dir: &Path) -> Result<(TapeAccount, BTreeMap<String, SegmentMergeProgress>), Error> {
        let account = TapeAccount::load(dir)?;
        retention_checkpoint::refuse_partial(&account)?;
        account.refuse_mismatch()?;
        let mut all = BTreeMap::<String, SegmentMergeProgress>::new();
        for source in &account.sources {
            let progress = all.entry(source.feed.clone()).or_default();
            progress.units += source.units;
            progress.sources.push_back(source.id);
            progress.sources.extend(source.further.keys());
        }
        // Ids are given in the order of the definitions.
        all.values_mut().for_each(|progress| progress.sources.make_contiguous().sort_unstable());
        Ok((account, all))
    }
}
