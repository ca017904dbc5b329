//! How far a writer's tape is durable, and waiting for it.

use std::time::{Duration, Instant};

use unitape_model::Position;

use super::Writer;
use crate::disk::failure::DurabilityFailure;
use crate::disk::segment_locator::SegmentLocator;
use crate::error::{Error, Result};
use crate::record::durable::wait_on;
use crate::record::follow::{IDLE, TapeRecorder};

impl Writer {
    /// Returns the durable position: everything before it survives power loss.
    pub fn durable(&self) -> Position {
        self.state_page.durable()
    }

    /// Returns why the durable position does not advance, if a flush failed and the recorder has not made it good
    /// since.
    pub fn durability_failure(&self) -> Option<DurabilityFailure> {
        self.state_page.failure(&self.paths)
    }

    /// Flushes that have failed since the tape was opened for writing after a clean close.
    pub fn durability_failures(&self) -> u64 {
        self.state_page.failures()
    }

    /// Requests durability of everything before `position` and waits for it. All waiting callers share one flush.
    ///
    /// # Errors
    /// Fails as [`crate::DurabilityHandle::wait`] does. Until a claim is published, no later frame becomes durable.
    pub fn wait_durable(&self, position: Position, timeout: Duration) -> Result<()> {
        if !self.is_ours() {
            return self.refuse_child().map(drop);
        }
        if position > self.end() {
            return Err(Error::BeyondEnd { position, end: self.end() });
        }
        let nudge = || {
            if let Some(recorder) = &self.recorder {
                recorder.wake_thread();
            }
        };
        if wait_on(&self.paths, &self.state_page, position, timeout, &nudge)? {
            return Ok(());
        }
        // The page goes with a clean close only, which takes the writer.
        Err(Error::NoRecorder { path: self.paths.tape_dir.clone(), durable: self.durable() })
    }

    /// Waits until a recorder process has recorded everything, or records it if there is no recorder.
    pub(crate) fn drain_external(&self) -> Result<()> {
        let since = Instant::now();
        loop {
            match TapeRecorder::open(
                SegmentLocator::from_manifest(self.paths.clone(), self.meta),
                self.options.sync_policy,
                1,
            ) {
                Ok(mut recorder) => {
                    while recorder.position < self.end() || recorder.step()? {
                        recorder.step()?;
                    }
                    return recorder.sync_last();
                }
                // Not the file that says so: it is written before it is flushed, and its flush may fail.
                Err(Error::Locked { .. }) if self.state_page.durable() >= self.end() => return Ok(()),
                Err(Error::Locked { .. }) if since.elapsed() >= self.options.recorder_wait => {
                    if let Some(failure) = self.durability_failure() {
                        return Err(failure.error(self.state_page.durable()));
                    }
                    return Err(Error::RecorderBehind { recorded: self.recorded(), wanted: self.end() });
                }
                Err(Error::Locked { .. }) => std::thread::sleep(IDLE),
                Err(e) => return Err(e),
            }
        }
    }
}
