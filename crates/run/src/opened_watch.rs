//! The tapes of a live watch and the snapshot where it goes on.

use crate::Error;
use crate::alert_tape::AlertTape;
use crate::surveil::Surveillance;
use crate::watch_snapshot::SnapshotStore;
use std::path::Path;
use unitape_query::EventSelection;
use unitape_tape::ReadOptions;
use unitape_watch::ScenarioSelection;

/// The directories of a watch.
#[derive(Clone, Copy, Debug)]
pub struct WatchDirs<'a> {
    /// The tape that is watched.
    pub source: &'a Path,
    /// The alert tape.
    pub alerts: &'a Path,
}

/// A watch whose tapes are open, where it goes on.
pub struct OpenedWatch {
    /// The scenarios, at the latest snapshot that both tapes reach or, without one, at the oldest event.
    pub surveillance: Surveillance,
    /// The alert tape, at the same point.
    pub alert_tape: AlertTape,
    /// The snapshots beside the alert tape.
    pub snapshots: SnapshotStore,
    /// Whether the watch goes on at a snapshot.
    pub is_resumed: bool,
}

impl OpenedWatch {
    /// Opens the tapes. `on_passed_over` is given the reason if a snapshot is too large to be read.
    ///
    /// # Errors
    /// Fails as [`Surveillance::open`] and [`AlertTape::open`] do.
    pub fn open(
        dirs: WatchDirs<'_>,
        selection: &ScenarioSelection,
        read: ReadOptions,
        on_passed_over: &dyn Fn(&Error),
    ) -> Result<Self, Error> {
        let surveillance = Surveillance::open(dirs.source, selection, &EventSelection::default(), read)?;
        Self::with_source(surveillance, dirs, selection, read, on_passed_over)
    }

    /// Opens the alert tape, and the source again at the latest snapshot that both tapes reach.
    pub(crate) fn with_source(
        surveillance: Surveillance,
        dirs: WatchDirs<'_>,
        selection: &ScenarioSelection,
        read: ReadOptions,
        on_passed_over: &dyn Fn(&Error),
    ) -> Result<Self, Error> {
        let id = surveillance.reader().id();
        let mut alert_tape = AlertTape::open(dirs.alerts, id, selection, read)?;
        let snapshots = SnapshotStore::new(dirs.alerts, alert_tape.id(), id);
        let mut resumed = None;
        for snapshot in snapshots.latest(dirs.source, read, on_passed_over) {
            // A snapshot whose state does not load is as good as none.
            let Ok(loaded) = Surveillance::resume(dirs.source, selection, &snapshot, read) else { continue };
            if loaded.reader().position().0 <= snapshot.source.position
                && alert_tape.skip_to(snapshot.alerts)?
            {
                resumed = Some(loaded);
                break;
            }
        }
        let is_resumed = resumed.is_some();
        let surveillance = resumed.unwrap_or(surveillance);
        Ok(Self { surveillance, alert_tape, snapshots, is_resumed })
    }
}
