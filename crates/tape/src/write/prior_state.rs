//! How a tape was when a writer came, and how a writer that was refused leaves it.
//!
//! A tape that was closed stays closed: of a refused opening remains the epoch in `run/lineage` and nothing else. A
//! tape whose writer had died stays so, and its lock file says what it said.

use crate::disk::hot::{HotDirectoryLookup, find};
use crate::disk::layout::{TapeId, TapePaths};
use crate::disk::lineage::Lineage;
use crate::disk::lock::FileLock;
use crate::disk::state_page::tidy;
use crate::write::hot::HotDirectory;

/// The state of a tape that a writer found before it changed anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PriorTapeState {
    /// There was no tape.
    pub created: bool,
    /// The boot in which the lineage had the tape open; `None` until the opening has read it.
    pub open: Option<Option<u128>>,
    /// It named hot segments, or had a mark of such.
    pub named_hot: bool,
}

impl PriorTapeState {
    /// Looks at a tape before an opening changes it.
    pub fn observe(paths: &TapePaths, created: bool) -> Self {
        let named_hot = [paths.hot(), paths.hot_mark()].iter().any(|path| path.symlink_metadata().is_ok());
        Self { created, open: None, named_hot }
    }

    /// Leaves the tape as it was found. The next writer restores the rest, and the caller reports why it was refused.
    pub fn restore(&self, paths: &TapePaths, tape: TapeId, mut lock: FileLock) {
        if self.created {
            return;
        }
        if let Some(open) = self.open
            && let Ok(Some(mut lineage)) = Lineage::load(paths, tape)
            && lineage.open != open
        {
            lineage.open = open;
            _ = lineage.store(paths);
        }
        if !lock.before.is_empty() {
            let before = lock.before.clone();
            _ = lock.sign(&before);
            return;
        }
        // This opening made it, and nothing is in it that the disk does not have.
        if !self.named_hot
            && let Ok(HotDirectoryLookup::Own(hot)) = find(paths, tape)
        {
            _ = HotDirectory::lock(hot).and_then(|hot| hot.remove(paths));
        }
        _ = tidy(paths, lock);
    }
}
