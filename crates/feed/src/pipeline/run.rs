//! A run: it puts feeds of every kind onto a tape until it is stopped.
//!
//! ```text
//!  receive[feed] ─▶ journal ─┐
//!  directory ────────────────┼─▶ intake ─▶ decode ∥ W ─▶ sequence, merge ─▶ tape
//!  files ────────────────────┘
//! ```
//!
//! Receivers write journals and nothing else; from there on, a live feed is a directory like any other. When the
//! run is to stop, receivers stop first; then what they wrote is read to its end and placed.

use crate::account::TapeAccount;
use crate::error::Error;
use crate::formats::decoder::DecodeOptions;
use crate::formats::format::{Format, Statefulness};
use crate::pipeline::consolidate::{BLOCK_BYTES, PipelineConfig, RunOutcome, RunProgress, run_feeds};
use crate::pipeline::intake::{FormatReloadQueue, LiveRun};
use crate::pipeline::lead::ClockLeadLimits;
use crate::sources::folder::FolderKind;
use crate::sources::growth::DirectoryWatcher;
use crate::sources::link::{MergeWait, RestartPolicy};
use crate::sources::receive::{self, ClockSource, HaltSignal, ReceiveSource, TickRequest};
use crate::sources::source::ChangedSourcePolicy;
use crate::sources::stats::RunMonitor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use unitape_tape::WriterOptions as TapeOptions;

/// The input of a feed's bytes.
#[derive(Clone, Debug)]
pub enum FeedInput {
    /// Files, one after the other; plain, gz or zst, streams or captures. `-` is stdin.
    Files(Vec<PathBuf>),
    /// The files of a directory, by name; with `follow`, also those that arrive during the run.
    #[allow(missing_docs)]
    Directory { path: PathBuf, follow: bool },
    /// A receiver that writes a journal in the directory `path`.
    #[allow(missing_docs)]
    Journal { path: PathBuf, receive: ReceiveSource },
}

/// A feed of a run.
#[derive(Clone, Debug)]
pub struct RunFeed {
    /// Its name.
    pub name: String,
    /// The format of its bytes.
    pub format: Format,
    /// The input of its bytes.
    pub input: FeedInput,
    /// The options of decoding them, without the format.
    pub decode_options: DecodeOptions,
    /// Rules for files that differ from the tape.
    pub rules: ChangedSourcePolicy,
    /// The restart policy when it fails.
    pub restart: RestartPolicy,
    /// The time that the merge waits for it, if it differs from the run's.
    pub wait: Option<MergeWait>,
}

/// The options of a run.
#[derive(Debug)]
pub struct RunOptions {
    /// The feeds; ties in time go to the earlier one.
    pub feeds: Vec<RunFeed>,
    /// Worker threads, 1 or more; the tape does not depend on it.
    pub workers: usize,
    /// Bytes of a block, at most.
    pub block_bytes: usize,
    /// The writer's options.
    pub tape: TapeOptions,
    /// The time after an event's receipt for which the merge waits for an idle feed; `None` means without a bound.
    /// Then the tape depends on the data of the feeds and not on its timing.
    pub wait: Option<Duration>,
    /// The bound on the lead of an event's time.
    pub lead: ClockLeadLimits,
    /// The interval between looks at directories.
    pub scan: Duration,
    /// The intake's longest sleep without new data, and so the delay after which it sees that a file has grown.
    pub idle: Duration,
    /// Receivers, the intake and the workers ask again and again instead of waiting in the kernel.
    pub spin: bool,
    /// Bytes that a receiver may be ahead of the decoders.
    pub lag_bytes_max: u64,
    /// Bytes of a file of a journal of datagrams or of a resumed stream, where messages are independent.
    pub journal_file_bytes: u64,
    /// When up, the run ends in order.
    pub stop: Arc<AtomicBool>,
    /// Can be read when `stop` is up: the run then sees it at once, and need not look often.
    pub stop_signal: Option<OwnedFd>,
    /// Figures, for anyone to read meanwhile; made for these feeds.
    pub stats: Arc<RunMonitor>,
    /// Mappings that are reloaded.
    pub reload: Arc<FormatReloadQueue>,
}

impl RunFeed {
    /// Makes a feed with all packets, and without receive times.
    pub fn new(name: String, format: Format, input: FeedInput) -> Self {
        Self {
            name,
            format,
            input,
            decode_options: DecodeOptions::default(),
            rules: ChangedSourcePolicy::default(),
            restart: RestartPolicy::default(),
            wait: None,
        }
    }

    /// Makes the feed of a run's clock. Its ticks are written into the journal in `path` while the other feeds are
    /// quiet.
    pub fn clock(name: String, path: PathBuf, source: ClockSource) -> Self {
        let input = FeedInput::Journal { path, receive: ReceiveSource::Clock(source) };
        // A user cannot configure this feed, and a tick that is lost is a time that nobody missed.
        let rules = ChangedSourcePolicy { new_source: true, ..ChangedSourcePolicy::default() };
        Self { rules, ..Self::new(name, Format::clock(), input) }
    }

    /// Returns whether the journal continues in a further file when it is long: the journal of a stream over
    /// connections does.
    pub(crate) fn rotates(&self) -> bool {
        let stateless = self.format.statefulness() == Statefulness::Stateless;
        match &self.input {
            FeedInput::Journal {
                receive: ReceiveSource::Listen(feed) | ReceiveSource::Connect(feed),
                ..
            } => feed.resume && stateless,
            _ => false,
        }
    }

    pub(crate) fn files(&self) -> &[PathBuf] {
        match &self.input {
            FeedInput::Files(files) => files,
            FeedInput::Directory { .. } | FeedInput::Journal { .. } => &[],
        }
    }

    pub(crate) fn folder(&self) -> Option<(&Path, FolderKind)> {
        match &self.input {
            FeedInput::Files(_) => None,
            FeedInput::Directory { path, follow } => Some((path, FolderKind::Files { follow: *follow })),
            FeedInput::Journal { path, receive } => Some((path, receive.folder_kind())),
        }
    }
}

impl RunOptions {
    /// Makes a run of these feeds with default settings.
    pub fn new(feeds: Vec<RunFeed>) -> Self {
        let stats = Arc::new(RunMonitor::new(feeds.iter().map(|f| f.name.clone())));
        Self {
            feeds,
            workers: 1,
            block_bytes: BLOCK_BYTES,
            tape: TapeOptions::default(),
            wait: None,
            lead: ClockLeadLimits::default(),
            scan: Duration::from_millis(100),
            idle: Duration::from_millis(1),
            spin: false,
            lag_bytes_max: 64 << 20,
            journal_file_bytes: 1 << 30,
            stop: Arc::default(),
            stop_signal: None,
            stats,
            reload: Arc::default(),
        }
    }
}

/// Runs the feeds onto the tape in `dir` until they all have ended or `stop` goes up, and then until all that was
/// received is on the tape. A feed that fails is tried again or ends, as its [`RestartPolicy`] says, and its figures
/// show it; the others continue.
///
/// # Errors
/// Fails if a file is not what the tape says it was, the system has no thread for a receiver, or the tape refuses.
pub fn run(dir: &Path, mut options: RunOptions) -> Result<RunOutcome, Error> {
    let feed_names: Vec<_> = options.feeds.iter().map(|f| &f.name).collect();
    if let Some(twice) = feed_names.iter().enumerate().find(|(i, n)| feed_names[..*i].contains(n)) {
        let reason = "two feeds have this name".to_owned();
        return Err(Error::Config { origin: format!("feed {}", twice.1), reason });
    }
    let stdin =
        options.feeds.iter().filter(|f| f.files().iter().any(|p| crate::sources::source::is_stdin(p)));
    if let Some(feed) = stdin.into_iter().next() {
        let reason = "stdin is journaled in a run: it is an input of its own, not a file".to_owned();
        return Err(Error::Config { origin: format!("feed {}", feed.name), reason });
    }
    let drained = Arc::new(AtomicBool::new(false));
    let halt = HaltSignal::new().map_err(|source| Error::Spawn { worker: 0, source })?;
    let halt = Arc::new(halt);
    let mut receivers = Vec::new();
    let (mut clock, mut ticks) = (None, None);
    let receives = options.feeds.iter().any(|feed| matches!(feed.input, FeedInput::Journal { .. }));
    let defined = if receives { TapeAccount::load_definitions(dir) } else { TapeAccount::default() };
    for (index, feed) in options.feeds.iter().enumerate() {
        if let FeedInput::Journal { path, receive: ReceiveSource::Clock(source) } = &feed.input {
            let number = defined.last_journal_file(&feed.name).number;
            match TickRequest::hold(index, *source, path, number) {
                Ok(request) => {
                    request.iter().for_each(|request| request.note_start(&options.stats));
                    (clock, ticks) = (Some(index), request);
                }
                Err(error) => options.stats.feeds[index].fail(error.to_string(), error.cause()),
            }
            continue;
        }
        if let FeedInput::Journal { path, receive } = &feed.input {
            let context = receive::ReceiverContext {
                dir: path.clone(),
                stats: options.stats.clone(),
                index,
                stop: options.stop.clone(),
                lag_bytes_max: options.lag_bytes_max,
                tape_number: defined.last_journal_file(&feed.name).number,
                file_bytes: match feed.format.statefulness() {
                    Statefulness::Stateless => options.journal_file_bytes,
                    // Its decoder starts afresh with each file: books would be lost in the middle of the day.
                    Statefulness::Stream => u64::MAX,
                },
                restart: feed.restart,
                halt: halt.clone(),
                spin: options.spin,
            };
            let start_result = receive::start(&feed.name, receive, context);
            match start_result {
                Ok(started) => receivers.extend(started),
                Err(error) => {
                    options.stop.store(true, Ordering::Relaxed);
                    halt.raise();
                    receivers.into_iter().for_each(|r: JoinHandle<()>| _ = r.join());
                    return Err(error);
                }
            }
        }
    }
    if !options.spin {
        receivers.extend(watch_growth(&options, &halt)?);
    }
    let halt_on_end = halt.clone();
    let supervise = {
        let (stop, drained, stats) = (options.stop.clone(), drained.clone(), options.stats.clone());
        let signal = options.stop_signal.take();
        move || {
            let look = if signal.is_some() { STOP_LOOK_SIGNALLED } else { STOP_LOOK };
            while !stop.load(Ordering::Relaxed) {
                wait_for_stop(signal.as_ref(), &halt, look);
            }
            halt.raise();
            for receiver in receivers {
                // A receiver that panicked has said so on stderr; what it wrote is there.
                _ = receiver.join();
            }
            // Release: pairs with the Acquire in the intake; all that the receivers wrote is seen.
            drained.store(true, Ordering::Release);
            stats.wake.notify();
        }
    };
    let supervisor = std::thread::Builder::new()
        .name("supervise".to_owned())
        .spawn(supervise)
        .map_err(|source| Error::Spawn { worker: 0, source })?;
    let live_run = LiveRun {
        stop: drained,
        stats: options.stats.clone(),
        idle: options.idle,
        spin: options.spin,
        // A clock ticks before anything has come.
        due_ns: Arc::new(AtomicI64::new(if clock.is_some() { 0 } else { i64::MAX })),
        reload: options.reload,
        restarts: options.feeds.iter().map(|feed| feed.restart).collect(),
        clock,
    };
    let setup = PipelineConfig {
        feeds: options.feeds,
        workers: options.workers,
        block_bytes: options.block_bytes,
        tape: options.tape,
        stop: None,
        progress: Arc::new(RunProgress::default()),
        scan: options.scan,
        wait: options.wait,
        lead: options.lead,
        live: Some(live_run),
        ticks,
    };
    let mut outcome = run_feeds(dir, setup);
    if let Ok(outcome) = &mut outcome {
        outcome.stopped = options.stop.load(Ordering::Relaxed);
    }
    options.stop.store(true, Ordering::Relaxed);
    halt_on_end.raise();
    _ = supervisor.join();
    outcome
}

/// Watches the directories of growing feeds in its own thread; `None` if there are no such feeds.
fn watch_growth(options: &RunOptions, halt: &Arc<HaltSignal>) -> Result<Option<JoinHandle<()>>, Error> {
    let dirs = options.feeds.iter().enumerate().filter_map(|(index, feed)| match &feed.input {
        FeedInput::Directory { path, follow: true } => Some((index, &**path)),
        _ => None,
    });
    let mut dirs = dirs.peekable();
    if dirs.peek().is_none() {
        return Ok(None);
    }
    let Some(watch) = DirectoryWatcher::new(dirs, options.stats.clone()) else { return Ok(None) };
    let (halt, idle) = (halt.clone(), options.idle);
    let thread = std::thread::Builder::new().name("growth".to_owned());
    let reporter_thread = thread.spawn(move || watch.report(&halt, idle));
    reporter_thread.map(Some).map_err(|source| Error::Spawn { worker: 0, source })
}

/// Waits until a signal is reported, the run is over, or so long.
fn wait_for_stop(signal: Option<&OwnedFd>, halt: &HaltSignal, most: Duration) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: most.subsec_nanos().into() };
    let halt = PollFd::new(halt, PollFlags::IN);
    _ = match signal {
        Some(signal) => poll(&mut [halt, PollFd::new(signal, PollFlags::IN)], Some(&timeout)),
        None => poll(&mut [halt], Some(&timeout)),
    };
}

/// The interval at which the supervisor looks whether the run is to stop.
const STOP_LOOK: Duration = Duration::from_millis(20);

/// This interval if a signal ends its wait.
const STOP_LOOK_SIGNALLED: Duration = Duration::from_millis(500);
