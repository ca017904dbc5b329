//! Reports of a run while it runs, and its inputs beside its configuration.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use unitape_feed::{FeedStatsSnapshot, RunMonitor};
use unitape_tape::HotNotice;

/// A report of a run, when it happens.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// The tape is a copy, or names hot segments that are not its own. This comes before the tape is opened.
    HotNotice {
        /// The directory of the tape.
        tape: &'a Path,
        /// The notice.
        notice: &'a HotNotice,
    },
    /// A note for people on the sources.
    SourceFingerprint(&'a str),
    /// A note for people on how a feed is reached.
    LinkNote {
        /// The feed.
        feed: &'a str,
        /// A sentence.
        text: &'a str,
    },
    /// Nothing can be removed from the tape as its limits want.
    RetentionWarning {
        /// The directory of the tape.
        tape: &'a Path,
        /// Why.
        warning: &'a str,
    },
    /// A flush of the tape has failed.
    NotDurable {
        /// Why, with the file.
        failure: &'a str,
    },
    /// After failures a flush has succeeded again.
    DurableAgain {
        /// The directory of the tape.
        tape: &'a Path,
    },
    /// The feeds of this process begin; their figures can be read at any time.
    Begun {
        /// The figures.
        stats: &'a Arc<RunMonitor>,
    },
    /// The figures of a feed at this moment.
    Figures(&'a FeedStatsSnapshot),
    /// The tape has more events. Only a caller that asked for
    /// [changes](RunControl::reports_changes) receives this event.
    TapeGrew,
    /// A mapping was reloaded.
    MappingLoaded {
        /// The feed.
        feed: &'a str,
        /// Its mapping from here on, or `None` if its format has no mapping.
        mapping: Option<&'a str>,
    },
    /// A reloaded mapping names other addresses. The run listens to the addresses of the start until the next one.
    AddressesChanged {
        /// The feed.
        feed: &'a str,
    },
    /// A mapping cannot be reloaded; the one in use stays.
    MappingRefused {
        /// The feed.
        feed: &'a str,
        /// The problem with it.
        error: &'a unitape_feed::Error,
    },
    /// The process of a segment has failed and is tried again.
    ProcessRetried {
        /// The feed.
        feed: &'a str,
        /// The end of the process.
        reason: &'a str,
    },
}

/// The receiver of a run's events. Several threads report, so it may be called by two at once.
pub type EventSink<'a> = &'a (dyn Fn(RunEvent<'_>) + Sync);

/// The inputs of a run besides its configuration.
pub struct RunControl<'a> {
    /// When up, the run ends in order.
    pub stop: Arc<AtomicBool>,
    /// Can be read once `stop` is up: the run then sees it at once.
    pub stop_signal: Option<OwnedFd>,
    /// When raised, mappings are reloaded; the run lowers it.
    pub reload: Arc<AtomicBool>,
    /// Another process reads the events: each change of a state is reported at once, and that the tape grew.
    pub reports_changes: bool,
    /// The receiver of the events.
    pub events: EventSink<'a>,
}

impl std::fmt::Debug for RunControl<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunControl")
            .field("stop", &self.stop)
            .field("reports_changes", &self.reports_changes)
            .finish_non_exhaustive()
    }
}

/// Reports whether the tape is a copy, or names hot segments that are not its own. An unreadable tape is an error of
/// the opening that follows.
pub(super) fn report_hot_notice(tape: &Path, events: EventSink<'_>) {
    if let Ok(Some(notice)) = unitape_tape::hot_notice(tape) {
        events(RunEvent::HotNotice { tape, notice: &notice });
    }
}
