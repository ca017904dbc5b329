//! Segments apart: a process for each feed, with its own tape, and the merge that reads their tapes.
//!
//! ```text
//!  run ──▶ process of feed a ──▶ tape a ─┐
//!   ▲  ──▶ process of feed b ──▶ tape b ─┴─▶ merge
//!   └──── figures, a line of JSON each, at once when a state changes ────┘
//! ```
//!
//! The started processes die with this process, because a running segment would hold its tape against the next start. A
//! killed segment is started again, and so is a segment that fails for a cause outside the data, as its feed decides.
//! Another failure ends the feed, and the other feeds continue.

use super::event::{EventSink, RunControl, RunEvent, report_hot_notice};
use super::report::RunReport;
use super::watch::{RunStatsReporter, report_source_notes};
use crate::Error;
use crate::config::{MergeTime, RunConfig};
use serde::Deserialize;
use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use unitape_feed::{LinkState, MergeOptions, MergeSegment, RestartPolicy, RunMonitor, merge};
use unitape_model::ErrorCause;

/// The command that starts a segment's process, and the meaning of its exit code.
///
/// A process runs its feed alone ([`RunConfig::restrict_to_feed`]) with [`RunControl::reports_changes`]. It writes to
/// its stdout the figures of [`RunEvent::Figures`], a line `{"stats": …}` of JSON each, and an empty line for each
/// [`RunEvent::TapeGrew`].
#[derive(Clone, Copy)]
pub struct SegmentProcesses<'a> {
    /// The command for the feed of this name; its stdin and stdout are set here.
    pub command: &'a (dyn Fn(&str) -> io::Result<Command> + Sync),
    /// On whose side the cause lies where a process ends with this exit code, which is not 0.
    pub cause_of: fn(i32) -> ErrorCause,
}

impl fmt::Debug for SegmentProcesses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentProcesses").finish_non_exhaustive()
    }
}

/// Runs each feed in a process of its own and merges their tapes, until they have ended or the run is stopped.
///
/// # Errors
/// Fails if a process cannot be started, or if the tape or a segment's tape cannot be used. A failed feed is not an
/// error here, see [`RunReport::result`].
pub fn run_apart(
    config: &RunConfig,
    control: RunControl<'_>,
    commands: SegmentProcesses<'_>,
) -> Result<RunReport, Error> {
    let segments: Vec<_> = config
        .feed
        .iter()
        .map(|f| MergeSegment {
            name: f.name.clone(),
            dir: config.segment_dir(&f.name),
            ended: Arc::default(),
            stopped: Arc::default(),
            wait: f.merge_wait(),
        })
        .collect();
    let stats = Arc::new(RunMonitor::new(segments.iter().map(|s| s.name.clone())));
    let policies = config.feed.iter().map(|f| f.restart_policy());
    let processes = segments
        .iter()
        .zip(policies)
        .map(|(s, policy)| SegmentProcess::start_process(&commands, &s.name, policy))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| Error::Process { source })?;
    let tape = &config.tape.dir;
    let options = MergeOptions {
        segments: segments.clone(),
        tape: config.tape.options(),
        wait: config.run.wait.0,
        lead: config.lead(),
        by_receive_time: config.run.merge == MergeTime::Receive,
        stats: stats.clone(),
        spin: config.run.spin,
    };
    let started_at = Instant::now();
    let is_finished = AtomicBool::new(false);
    let watch = RunStatsReporter::new(&stats, tape, config.run.stats.0, control.events);
    let supervisor = SegmentSupervisor {
        commands,
        segments: &segments,
        stats: &stats,
        stop_flag: &control.stop,
        is_finished: &is_finished,
        events: control.events,
    };
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| watch.report_until(&is_finished));
        scope.spawn(|| supervisor.supervise_segments(processes));
        report_hot_notice(tape, control.events);
        let outcome = merge(tape, options);
        // Release: pairs with the Acquire in both threads; they end.
        is_finished.store(true, Ordering::Release);
        stats.run_end.notify();
        outcome
    });
    let mut outcome = outcome.map_err(|e| Error::Run(Box::new(e)))?;
    let elapsed_s = started_at.elapsed().as_secs_f64();
    outcome.stopped = control.stop.load(Ordering::Relaxed);
    report_source_notes(&stats, control.events);
    Ok(RunReport::new(outcome, &stats, elapsed_s))
}

/// The process of a segment.
struct SegmentProcess {
    child: Child,
    policy: RestartPolicy,
    /// It has failed: not before this time again.
    retry_at: Option<Instant>,
    started_at: Instant,
    /// The wait before it was started last.
    last_wait: Duration,
}

impl SegmentProcess {
    fn start_process(commands: &SegmentProcesses<'_>, name: &str, policy: RestartPolicy) -> io::Result<Self> {
        Ok(Self {
            child: start_child(commands, name)?,
            policy,
            retry_at: None,
            started_at: Instant::now(),
            last_wait: Duration::ZERO,
        })
    }

    /// Starts the process again. A failure to start is an error of its feed.
    fn start_again(&mut self, commands: &SegmentProcesses<'_>, name: &str) -> io::Result<()> {
        self.child = start_child(commands, name)?;
        self.started_at = Instant::now();
        Ok(())
    }
}

/// Why a process did not do its work.
struct ProcessFailure {
    cause: ErrorCause,
    reason: String,
}

impl ProcessFailure {
    fn outside_failure(reason: &str) -> Self {
        Self { cause: ErrorCause::Outside, reason: reason.to_owned() }
    }
}

impl From<io::Error> for ProcessFailure {
    fn from(error: io::Error) -> Self {
        Self { cause: ErrorCause::from_io(&error), reason: error.to_string() }
    }
}

/// Watches the processes of the segments.
struct SegmentSupervisor<'a> {
    commands: SegmentProcesses<'a>,
    segments: &'a [MergeSegment],
    stats: &'a RunMonitor,
    stop_flag: &'a AtomicBool,
    is_finished: &'a AtomicBool,
    events: EventSink<'a>,
}

impl SegmentSupervisor<'_> {
    /// Watches the processes of the segments until all have ended, or the merge has.
    fn supervise_segments(&self, mut processes: Vec<SegmentProcess>) {
        let Self { commands, segments, stats, stop_flag: stop, is_finished, events } = *self;
        std::thread::scope(|scope| {
            let mut signalled = false;
            let supervisor = std::thread::current();
            let listen = |process: &mut SegmentProcess, i: usize| {
                let (stdout, supervisor) = (process.child.stdout.take()?, supervisor.clone());
                Some(scope.spawn(move || {
                    listen_to(BufReader::new(stdout), stats, i);
                    supervisor.unpark();
                }))
            };
            let mut listeners: Vec<_> =
                processes.iter_mut().enumerate().map(|(i, process)| listen(process, i)).collect();
            loop {
                let mut running = false;
                for (i, process) in processes.iter_mut().enumerate() {
                    if segments[i].ended.load(Ordering::Relaxed) {
                        continue;
                    }
                    running = true;
                    let stopping = stop.load(Ordering::Relaxed);
                    let (name, link) = (&segments[i].name, &stats.feeds[i].link);
                    let mut killed = false;
                    let process_failure = match process.retry_at {
                        Some(retry_at) if !stopping && Instant::now() < retry_at => continue,
                        Some(_) if !stopping => {
                            process.start_again(&commands, name).err().map(ProcessFailure::from)
                        }
                        Some(_) => Some(ProcessFailure::outside_failure(
                            "its process had failed and was to be tried again",
                        )),
                        None => match process.child.try_wait() {
                            Ok(None) => continue,
                            Ok(Some(status)) => match status.code() {
                                Some(0) => None,
                                Some(code) => {
                                    let reason = format!("its process ended with exit code {code}");
                                    let failure = ProcessFailure { cause: (commands.cause_of)(code), reason };
                                    if !stopping && process.policy.tries_again(failure.cause) {
                                        // A process that ran for long has another cause now.
                                        let long = process.started_at.elapsed() > process.policy.backoff_max;
                                        let wait_before =
                                            if long { Duration::ZERO } else { process.last_wait };
                                        process.last_wait = process.policy.next_wait(wait_before);
                                        process.retry_at = Some(Instant::now() + process.last_wait);
                                        let reason = failure.reason.as_str();
                                        link.mirror(LinkState::Failed, Some(reason), link.failures() + 1);
                                        events(RunEvent::ProcessRetried { feed: name, reason });
                                        continue;
                                    }
                                    Some(failure)
                                }
                                // Killed: it continues where its tape ends, unless we end ourselves.
                                // It had no handler yet when we asked it to end: it has done nothing.
                                None if stopping && status.signal() == Some(SIGTERM) => {
                                    killed = true;
                                    None
                                }
                                None if stopping => {
                                    killed = true;
                                    Some(ProcessFailure::outside_failure("its process was killed"))
                                }
                                None => match process.start_again(&commands, name) {
                                    Ok(()) => {
                                        listeners[i] = listen(process, i);
                                        continue;
                                    }
                                    Err(e) => Some(e.into()),
                                },
                            },
                            Err(e) => Some(e.into()),
                        },
                    };
                    if let Some(failure) = process_failure {
                        stats.feeds[i].fail(failure.reason, failure.cause);
                    } else if process.retry_at.take().is_some() {
                        listeners[i] = listen(process, i);
                        continue;
                    }
                    // All its output is known when its pipe is at its end.
                    listeners[i].take().map(std::thread::ScopedJoinHandle::join);
                    // A process that was killed during the stop has more data for the next run, as a stopped process
                    // has.
                    segments[i].stopped.store(killed || signalled && !link.is_complete(), Ordering::Relaxed);
                    // Release: pairs with the Acquire in the merge; all that the process committed is seen.
                    segments[i].ended.store(true, Ordering::Release);
                    stats.feeds[i].ended.store(true, Ordering::Relaxed);
                    stats.placed.notify();
                }
                // Acquire: pairs with the Release at the end of the merge.
                if !running || is_finished.load(Ordering::Acquire) {
                    break;
                }
                if !signalled && stop.load(Ordering::Relaxed) {
                    signalled = true;
                    for (process, segment) in processes.iter().zip(segments) {
                        let pid = rustix::process::Pid::from_child(&process.child);
                        if !segment.ended.load(Ordering::Relaxed) && process.retry_at.is_none() {
                            // It may have ended just now.
                            _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                        }
                    }
                }
                std::thread::park_timeout(LOOK);
            }
            // Only when the merge failed is there still one.
            for process in &mut processes {
                _ = process.child.kill();
                _ = process.child.wait();
            }
        });
    }
}

/// The feed's fields in the report of a segment's process; other fields concern its own tape.
#[derive(Deserialize)]
struct SegmentStatusLine {
    stats: SegmentFeedStats,
}

#[derive(Deserialize)]
struct SegmentFeedStats {
    state: LinkState,
    failures: u64,
    complete: bool,
    error: Option<String>,
    drops: u64,
    connections: u64,
    refused: u64,
    refusals: u64,
    pauses: u64,
    quarantined: u64,
    duplicates: u64,
    ignored: u64,
    read_bytes: u64,
    lag_bytes_max: u64,
}

/// Reads the figures of a segment's process until it ends. An empty line means that its tape has more events.
fn listen_to(lines: impl BufRead, all: &RunMonitor, feed: usize) {
    let stats = &all.feeds[feed];
    for line in lines.lines() {
        let Ok(line) = line else { return };
        if line.is_empty() {
            all.placed.notify();
            continue;
        }
        // Its account, at its end, has no figures.
        let Ok(SegmentStatusLine { stats: f }) = serde_json::from_str(&line) else { continue };
        stats.link.mirror(f.state, f.error.as_deref(), f.failures);
        if f.complete {
            stats.link.complete();
        }
        for (to, n) in [
            (&stats.drops, f.drops),
            (&stats.connections, f.connections),
            (&stats.refused, f.refused),
            (&stats.refusals, f.refusals),
            (&stats.pauses, f.pauses),
            (&stats.quarantined, f.quarantined),
            (&stats.duplicates, f.duplicates),
            (&stats.ignored, f.ignored),
            (&stats.read_bytes, f.read_bytes),
            (&stats.received_bytes, f.read_bytes),
            (&stats.lag_bytes_max, f.lag_bytes_max),
        ] {
            to.store(n, Ordering::Relaxed);
        }
        all.placed.notify();
    }
}

fn start_child(commands: &SegmentProcesses<'_>, name: &str) -> io::Result<Child> {
    let mut command = (commands.command)(name)?;
    // Its account is of its own tape; its figures are read here.
    command.stdin(Stdio::inherit()).stdout(Stdio::piped());
    let parent = rustix::process::getpid();
    {
        use std::os::unix::process::CommandExt;
        // A terminal's Ctrl-C is for us alone: we say it to them, once.
        command.process_group(0);
        // SAFETY: between fork and exec only system calls are made, which allocate nothing and take no locks.
        unsafe {
            command.pre_exec(move || {
                rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
                // We may have died before that was asked for.
                match rustix::process::getppid() == Some(parent) {
                    true => Ok(()),
                    false => Err(std::io::ErrorKind::BrokenPipe.into()),
                }
            });
        }
    }
    command.spawn()
}

/// Waits until the process of an earlier run that holds this segment's tape is gone, or until `stop` is set. The
/// process was killed with its run, and its ports are free when it is gone. If the earlier run is alive, it holds the
/// tape of the merge, and this process's parent ends for that reason.
pub fn wait_for_dying(dir: &Path, stop: &AtomicBool) {
    let since = Instant::now();
    let mut last_failure = None;
    while since.elapsed() < DYING && !stop.load(Ordering::Relaxed) {
        let holder = unitape_tape::writer_pid(dir);
        last_failure = holder.or(last_failure);
        if holder.is_none() && !last_failure.is_some_and(is_alive) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns whether a process is still running. A process that ended but was not waited for does not run.
fn is_alive(id: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// How long a killed process may still exist: a busy machine gives it little time to end.
const DYING: Duration = Duration::from_secs(30);

/// The number of the signal by which we ask a process to end.
const SIGTERM: i32 = rustix::process::Signal::TERM.as_raw();

/// How soon a signal is seen, and the end of a process that has not closed its pipe.
const LOOK: Duration = Duration::from_millis(50);
