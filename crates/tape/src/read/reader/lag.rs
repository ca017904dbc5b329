//! How far a reader is behind, whether its next data will be removed soon, and how it continues after a removal.
//!
//! All of it is read from the state page that the tape's processes share; the writer knows nothing of it.

use super::{Reader, StartPosition};
use crate::disk::state_page::StatePage;
use crate::error::Result;
use crate::read::damage::ReadOptions;
use crate::read::figures::{ReaderLag, RetentionLoss};

impl Reader {
    /// Returns how far this reader is behind the end of the tape.
    ///
    /// The lag is exact if the tape is closed or its writer idle. While a writer writes, the end is the one that its
    /// helper thread published last: about half a millisecond ago, or as long as it takes to make a segment. After a
    /// kill the end stays the last one published. The call costs the writer nothing, and a reader of a live tape no
    /// system call.
    ///
    /// # Errors
    /// Fails at damage on the way to the end of a closed tape.
    pub fn lag(&mut self) -> Result<ReaderLag> {
        self.look_for_page()?;
        let (end, ordinal) = match (&self.page, self.closed_end) {
            (Some(page), _) => page.published_end(),
            (None, Some(ended)) => ended,
            (None, None) => {
                let options = ReadOptions { verify: self.checks.is_enabled, skip_damage: self.skips_damage };
                let reader =
                    Self::open_with(&self.segment_locator.paths.tape_dir, StartPosition::End, options)?;
                let tape_end = (reader.position(), reader.ordinal());
                self.closed_end = Some(tape_end);
                tape_end
            }
        };
        let removal_position = match &self.page {
            Some(page) => page.announced(),
            None => self.segment_locator.oldest_position()?,
        };
        let (position, next) = (self.position(), self.ordinal());
        Ok(ReaderLag {
            bytes: end.0.saturating_sub(position.0),
            events: if end > position { ordinal.saturating_sub(next) } else { 0 },
            until_removal_bytes: position.0.saturating_sub(removal_position.0),
        })
    }

    /// Returns whether the removal of the data that this reader reads next is announced or done. The call is a load
    /// without a system call. The reader maps the page with the announcement when it enters a segment, in
    /// [`Reader::wait`] and in [`Reader::lag`].
    #[inline]
    pub fn is_removal_announced(&self) -> bool {
        self.page.as_ref().is_some_and(|page| self.position() < page.announced())
    }

    /// Continues at the oldest position that retention has left, after [`crate::Error::Retained`] or before it.
    /// Returns what was lost on the way. A reader that is not before that position does not move, and loses nothing.
    ///
    /// The tape may begin there with the rest of a unit whose start is gone.
    ///
    /// # Errors
    /// Fails if the oldest segment is damaged or the system refuses, and with [`crate::Error::Rewound`] as
    /// [`Reader::next`] does.
    pub fn skip_to_oldest(&mut self) -> Result<RetentionLoss> {
        let epoch = self.epoch;
        self.apply_cut(self.position())?;
        let (position, ordinal) = (self.position(), self.ordinal());
        self.damage_stop = None;
        loop {
            let oldest = self.segment_locator.indices()?.first().copied().unwrap_or(0);
            if self.segment_locator.oldest_position()? <= position {
                return Ok(RetentionLoss::default());
            }
            // Retention may be faster than we are.
            if self.begin_at(oldest)? {
                break;
            }
        }
        self.adopt_epoch(epoch, position)?;
        let skipped = RetentionLoss {
            bytes: self.position().0.saturating_sub(position.0),
            events: self.ordinal().saturating_sub(ordinal),
        };
        self.retention_loss.bytes += skipped.bytes;
        self.retention_loss.events += skipped.events;
        Ok(skipped)
    }

    /// Returns all that [`Reader::skip_to_oldest`] has skipped.
    pub fn skipped(&self) -> RetentionLoss {
        self.retention_loss
    }

    /// Maps the state page if it exists, and releases a page that has been removed.
    pub(crate) fn look_for_page(&mut self) -> Result<()> {
        if self.page.as_ref().is_some_and(StatePage::is_retired) {
            self.page = None;
            self.closed_end = None;
        }
        if self.page.is_none() {
            self.page = StatePage::attach_reader(&self.segment_locator.paths)?;
            if self.page.is_some() {
                self.closed_end = None;
            }
        }
        Ok(())
    }
}
