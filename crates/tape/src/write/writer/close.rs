//! The end of a writer: closed in order, or dropped.

use std::sync::atomic::Ordering;

use super::Writer;
use crate::disk::layout::{list_segments, remove, remove_beside, segment_path, sync_dir};
use crate::disk::map::MappedSegment;
use crate::disk::state_page::tidy;
use crate::error::{Error, Result, with_committed_end};

impl Writer {
    /// Flushes everything, completes checksums, makes the end durable and removes `run/`.
    ///
    /// # Errors
    /// Fails if claims are not yet published, or if the recorder fails in its last pass. The tape is then as after a
    /// kill, and the next open recovers it. Fails with [`Error::Forked`] and changes nothing in a child of the process
    /// that opened the tape.
    pub fn close(mut self) -> Result<()> {
        self.close_in_order()
    }

    fn close_in_order(&mut self) -> Result<()> {
        self.shared_state.fork.check_process()?;
        self.found_closed = None;
        // Acquire: pairs with the Release in `Claim::publish`.
        let outstanding = self.shared_state.outstanding.load(Ordering::Acquire);
        if outstanding > 0 {
            return Err(Error::ClaimsOutstanding(outstanding));
        }
        self.discard_forgotten();
        // The files removed below, and the mark of a clean close, are the later writer's.
        self.stay_newest()?;
        self.stop_keeper();
        // Release: pairs with the Acquire in the recorder's loop; `end` is final.
        self.shared_state.drain.store(true, Ordering::Release);
        self.current_segment = None;
        *self.shared_state.current.lock() = None;
        match self.recorder.take() {
            Some(mut recorder) => with_committed_end(recorder.join(), self.end_position)?,
            None => with_committed_end(self.drain_external(), self.end_position)?,
        }
        // The oldest segment stays, also where nothing is in it yet: it says how many events come before it.
        let oldest = list_segments(&self.paths.segments())?.first().copied().unwrap_or(0);
        for dir in [self.paths.segments(), self.segments_dir.clone()] {
            for index in list_segments(&dir)? {
                if index > oldest && index * self.meta.segment_bytes >= self.end_position.0 {
                    remove(&segment_path(&dir, index))?;
                    remove_beside(&self.paths, index)?;
                }
            }
        }
        let last_segment = self.end_position.0 / self.meta.segment_bytes;
        let path = segment_path(&self.paths.segments(), last_segment);
        if let Some((segment, _)) = MappedSegment::open(&path, &self.meta, last_segment, true)? {
            segment.free_blocks_after(self.end_position.0 - segment.base_position.0);
        }
        if let Some(hot) = self.hot_directory.take() {
            hot.remove(&self.paths)?;
        }
        self.gates.close(&self.paths, self.meta.id)?;
        self.lineage.open_boot = None;
        self.lineage.store(&self.paths)?;
        tidy(&self.paths, self.writer_lock.take().expect("locked until closed"))?;
        sync_dir(&self.paths.tape_dir)
    }

    fn stop_keeper(&mut self) {
        // Relaxed: a wish; joining the thread orders everything else.
        self.shared_state.stop_preallocator.store(true, Ordering::Relaxed);
        self.preallocator.stop();
        let prepared = std::iter::from_fn(|| self.preallocator.prepared.try_recv().ok());
        // A later writer has removed them, and its own have the same names.
        let is_newest = self.state_page.epoch() <= self.lineage.epoch;
        for segment in prepared.chain(self.stash.drain(..)).filter(|_| is_newest) {
            // A segment that was in place already is removed by `close` or by recovery.
            let _ = remove(&segment.path);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.shared_state.fork.check_process().is_err() {
            // A child that was forked: files, locks and threads are those of the process that opened it.
            self.preallocator.forget_thread();
            std::mem::forget(self.recorder.take());
            return;
        }
        // Its owner was refused by something else. A tape that was closed must not look as after a kill.
        let is_unused = self.found_closed.take() == Some(self.end_position) && self.recorder.is_some();
        if is_unused
            && self.writer_lock.is_some()
            && !std::thread::panicking()
            && self.close_in_order().is_ok()
        {
            return;
        }
        self.stop_keeper();
        self.shared_state.abandon.store(true, Ordering::Relaxed);
        if let Some(mut recorder) = self.recorder.take() {
            // Not closed: the tape is as after a kill, and recovery finds what the recorder met.
            let _ = recorder.join();
        }
    }
}
