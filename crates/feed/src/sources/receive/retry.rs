//! A receiver's handling of refused system calls: it reports, waits, retries the same call, and keeps its current
//! data.
//!
//! A receiver keeps its sockets and its connection meanwhile, and does not read further: senders of streams wait by
//! their back-pressure, and datagrams wait in the socket, where the kernel counts those that it drops. So a disk that
//! was full costs nothing that was received.

use super::ReceiverContext;
use crate::error::Error;
use crate::sources::link::FeedStage;
use std::time::Duration;

impl ReceiverContext {
    /// Does `work` until it succeeds; `None` when the run stops before anything was received that could be lost.
    ///
    /// # Errors
    /// Fails if the work must not be retried.
    pub fn outlast<T>(&self, work: impl FnMut() -> Result<T, Error>) -> Result<Option<T>, Error> {
        self.try_again(work, false)
    }

    /// Does `work` as [`Self::outlast`] does, for data that is lost if the receiver gives up, as at the end of a run.
    ///
    /// # Errors
    /// Fails if the work must not be retried, or if the run stops and the work has failed once more.
    pub fn outlast_with<T>(&self, work: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        Ok(self.try_again(work, true)?.expect("given up with an error only"))
    }

    fn try_again<T>(
        &self,
        mut work: impl FnMut() -> Result<T, Error>,
        in_hand: bool,
    ) -> Result<Option<T>, Error> {
        let link = &self.feed_stats().link;
        let (mut wait, mut failed) = (Duration::ZERO, false);
        loop {
            let is_stopped = self.is_stopped();
            match work() {
                Ok(outcome) => {
                    if failed {
                        link.recover(FeedStage::Receiver);
                        self.wake_intake();
                    }
                    return Ok(Some(outcome));
                }
                Err(error) if !self.restart.tries_again(error.cause()) => return Err(error),
                // It has failed since the run is to stop: that decides how the run ends.
                Err(error) if is_stopped => {
                    return match in_hand || failed {
                        true => Err(error),
                        false => Ok(None),
                    };
                }
                Err(error) => {
                    failed = true;
                    link.note_failure(FeedStage::Receiver, &error.to_string(), error.cause());
                    self.wake_intake();
                    wait = self.restart.next_wait(wait);
                    self.sleep(wait);
                }
            }
        }
    }
}
