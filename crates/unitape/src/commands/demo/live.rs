//! The watch that follows the tape while it is being written.

use crate::output::CommandFailure;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use unitape_run::surveil::{LiveControl, watch_live};
use unitape_tape::ReadOptions;
use unitape_watch::{Alert, ScenarioSelection};

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

/// Runs `write` while a watch follows the tape in `dir` on a thread of its own, as any other reader would, and puts its alerts
/// onto the tape in `alerts`.
pub fn watch_while<T>(
    dir: &Path,
    alerts: &Path,
    write: impl FnOnce() -> Result<T, CommandFailure>,
) -> Result<(T, LiveWatchResult), CommandFailure> {
    let written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn_scoped(scope, || follow(dir, alerts, &written))?;
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

/// Watches the tape in `dir` from its start until `written` is up and all is read, and puts the alerts onto the tape in `alerts`.
fn follow(dir: &Path, alerts: &Path, written: &AtomicBool) -> Result<LiveWatchResult, CommandFailure> {
    // Acquire: pairs with the Release of `RaiseOnDrop`. All that was committed before the writer was done is seen after it.
    let is_written = || written.load(Ordering::Acquire);
    let control = LiveControl {
        is_stopped: &|| false,
        is_finished: &|| Ok(is_written()),
        spin: false,
        on_missing: &|| {},
    };
    let mut live = LiveWatchResult::default();
    let selection = ScenarioSelection::default();
    let report = watch_live(dir, alerts, &selection, ReadOptions::default(), &control, |alert, _| {
        live.alerts.push(alert.clone());
        if !is_written() {
            live.early = live.alerts.len();
        }
        Ok::<(), CommandFailure>(())
    })?;
    live.events = report.expect("a watch that nobody stops").surveillance.summary().events;
    Ok(live)
}

struct RaiseOnDrop<'a>(&'a AtomicBool);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire load of `follow`.
        self.0.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the follower waits for a tape whose writer has failed before it made the tape.
    #[test]
    fn a_failed_writer_ends_the_watch() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, alerts) = (temp.path().join("tape"), temp.path().join("alerts"));
        let result =
            watch_while::<()>(&dir, &alerts, || Err(CommandFailure::Error("the disk is full".to_owned())));
        assert!(matches!(result, Err(CommandFailure::Error(what)) if what == "the disk is full"));
        let nothing = watch_while(&dir, &alerts, || Ok(()));
        assert!(matches!(nothing, Err(CommandFailure::Error(_))), "there is no tape to follow");
    }
}
