//! The lineage of a tape, `run/lineage`: made again with an epoch that does not go back.

use crate::disk::layout::TapeManifest;
use crate::disk::lineage::{LINEAGE_WAY, Lineage, boot_number};
use crate::disk::lock::field;
use crate::disk::state_page::StatePage;
use crate::error::{Error, Result};
use crate::repair::RepairSession;
use crate::repair::backup::FileAttributes;
use crate::retention::clock::ClockSource;

impl RepairSession<'_> {
    /// Looks at the lineage. The cuts of a damaged one are lost, so places of earlier epochs lose their position.
    ///
    /// # Errors
    /// Fails if the version is foreign, or if the system refuses.
    pub(super) fn lineage(&mut self, meta: &TapeManifest, lock: &str) -> Result<()> {
        let (offset, full_problem) = match Lineage::load(self.paths, meta.id) {
            Ok(_) => return Ok(()),
            Err(Error::Damage { offset, reason, .. }) => (offset, reason),
            Err(e @ Error::ForeignTape { .. }) => (0, e.to_string()),
            Err(e) => return Err(e),
        };
        let problem = full_problem.strip_suffix(LINEAGE_WAY).unwrap_or(&full_problem);
        let lock_epoch = field(lock, "epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
        let known_epoch =
            StatePage::attach_reader(self.paths)?.map_or(0, |state| state.epoch()).max(lock_epoch);
        let open_boot = (!lock.is_empty()).then(|| boot_number(field(lock, "boot").unwrap_or_default()));
        let wall_us = ClockSource::default().now().wall_ns.max(0) as u64 / 1000;
        let rebuilt_lineage = Lineage::rebuild(self.paths, meta.id, known_epoch, open_boot, wall_us)?;
        let action = format!(
            "made again: the next writer has epoch {}; where earlier writers cut the tape is lost, so places of an epoch \
             before {} continue at the oldest position",
            rebuilt_lineage.epoch + 1,
            rebuilt_lineage.first_epoch
        );
        let path = Lineage::path(self.paths);
        self.add_mended(&path, offset, problem, action);
        match self.options.apply {
            true => self.backup.replace(&path, &rebuilt_lineage.encode(), &FileAttributes::default()),
            false => Ok(()),
        }
    }
}
