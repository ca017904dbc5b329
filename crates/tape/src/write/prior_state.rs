//! How a tape was when a writer came, and how a writer that was refused leaves it.
//!
//! A tape that was closed stays closed: of a refused opening remains the epoch in `run/lineage` and nothing else. A
//! tape whose writer had died stays so, and its lock file says what it said.

use crate::disk::hot::{HotDirectoryLookup, find_hot_directory};
use crate::disk::layout::{TapeId, TapePaths};
use crate::disk::lineage::Lineage;
use crate::disk::lock::FileLock;
use crate::disk::state_page::tidy;
use crate::write::hot::HotDirectory;

/// The state of a tape that a writer found before it changed anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PriorTapeState {
    /// There was no tape.
    pub was_created: bool,
    /// The boot in which the lineage had the tape open; `None` until the opening has read it.
    pub open_boot: Option<Option<u128>>,
    /// It named hot segments, or had a mark of such.
    pub named_hot: bool,
}

impl PriorTapeState {
    /// Looks at a tape before an opening changes it.
    pub fn observe(paths: &TapePaths, created: bool) -> Self {
        let named_hot = [paths.hot(), paths.hot_mark()].iter().any(|path| path.symlink_metadata().is_ok());
        Self { was_created: created, open_boot: None, named_hot }
    }

    /// Leaves the tape as it was found. The next writer restores the rest, and the caller reports why it was refused.
    pub fn restore(&self, paths: &TapePaths, tape: TapeId, mut lock: FileLock) {
        if self.was_created {
            return;
        }
        if let Some(open_boot) = self.open_boot
            && let Ok(Some(mut lineage)) = Lineage::load(paths, tape)
            && lineage.open_boot != open_boot
        {
            lineage.open_boot = open_boot;
            _ = lineage.store(paths);
        }
        if !lock.stale_holder.is_empty() {
            let stale_holder = lock.stale_holder.clone();
            _ = lock.sign(&stale_holder);
            return;
        }
        // This opening made it, and nothing is in it that the disk does not have.
        if !self.named_hot
            && let Ok(HotDirectoryLookup::Own(hot)) = find_hot_directory(paths, tape)
        {
            _ = HotDirectory::lock_directory(hot).and_then(|hot| hot.remove(paths));
        }
        _ = tidy(paths, lock);
    }
}
