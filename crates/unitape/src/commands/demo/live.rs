//! The watch that follows the tape while it is being written.

use crate::output::CommandFailure;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use unitape_tape::{Reader, StartPosition, WaitStrategy, Waiter};
use unitape_watch::{Alert, ScenarioSelection, TapeWatch};

/// The result of a live watch.
#[derive(Debug, Default)]
pub struct LiveWatchResult {
    /// Its alerts.
    pub alerts: Vec<Alert>,
    /// How many of them it had raised before the writer was done.
    pub early: usize,
    /// Events it read.
    pub events: u64,
}

/// Runs `write` while a watch follows the tape in `dir` on a thread of its own, as any other reader would.
pub fn watch_while<T>(
    dir: &Path,
    write: impl FnOnce() -> Result<T, CommandFailure>,
) -> Result<(T, LiveWatchResult), CommandFailure> {
    let written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn_scoped(scope, || follow(dir, &written))?;
        let outcome = {
            // Raised also when the writer fails or panics, so that nobody follows for ever.
            let _raise = RaiseOnDrop(&written);
            write()
        };
        let live = watcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // Why the writer failed comes first; the watch then finds no tape, or half of one.
        let outcome = outcome?;
        Ok((outcome, live?))
    })
}

/// Watches the tape in `dir` from its start until `written` is up and all is read.
fn follow(dir: &Path, written: &AtomicBool) -> Result<LiveWatchResult, CommandFailure> {
    let mut watch = TapeWatch::new(&ScenarioSelection::default())?;
    let mut reader = first_sight(dir, written)?;
    let mut live = LiveWatchResult::default();
    loop {
        // Acquire: pairs with the Release of `RaiseOnDrop`. Looked at before the tape is drained: what was committed
        // before the writer was done is then seen in this round.
        let last_round = written.load(Ordering::Acquire);
        loop {
            let seq = reader.ordinal() + 1;
            let Some(frame) = reader.next()? else { break };
            live.events += u64::from(!frame.header.is_meta());
            let before = live.alerts.len();
            watch.on_frame(frame.position, frame.bytes, seq, &mut live.alerts)?;
            // Acquire: as above.
            if live.alerts.len() > before && !written.load(Ordering::Acquire) {
                live.early = live.alerts.len();
            }
        }
        if last_round {
            return Ok(live);
        }
        reader.wait(Duration::from_millis(5))?;
    }
}

/// Opens the tape as soon as the writer has made it.
fn first_sight(dir: &Path, written: &AtomicBool) -> Result<Reader, CommandFailure> {
    let mut waiter = Waiter::new(WaitStrategy::Balanced);
    loop {
        // Acquire: pairs with the Release of `RaiseOnDrop`; what does not open now never will.
        let last_try = written.load(Ordering::Acquire);
        match Reader::open(dir, StartPosition::Oldest) {
            Ok(reader) => return Ok(reader),
            Err(e) if last_try => return Err(e.into()),
            Err(_) => waiter.wait(),
        }
    }
}

struct RaiseOnDrop<'a>(&'a AtomicBool);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire loads of `follow` and `first_sight`.
        self.0.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that fails before there is a tape once left the follower waiting for it.
    #[test]
    fn a_failed_writer_ends_the_watch() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("tape");
        let result = watch_while::<()>(&dir, || Err(CommandFailure::Error("the disk is full".to_owned())));
        assert!(matches!(result, Err(CommandFailure::Error(what)) if what == "the disk is full"));
        let nothing = watch_while(&dir, || Ok(()));
        assert!(matches!(nothing, Err(CommandFailure::Error(_))), "there is no tape to follow");
    }
}
