//! Segments apart: a process for each feed, with its own tape, and the merge that reads their tapes.
//!
//! ```text
//!  run ──▶ process of feed a ──▶ tape a ─┐
//!   ▲  ──▶ process of feed b ──▶ tape b ─┴─▶ merge
//!   └──── figures, a line of JSON each, at once when a state changes ────┘
//! ```
//!
//! What is ours to run dies with us: a segment left behind would hold its tape against the next start. A segment that
//! is killed is started again, and so is one that fails for a cause outside the data, as its feed says; one that fails
//! otherwise ends its feed, and the others go on.

use super::{Args, report, tape_options};
use crate::output::{self, Done, Failure, cause_of, note};
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use unitape_feed::{LinkState, MergeOptions, RestartPolicy, Segment, Stats, merge};
use unitape_run::config::{Config, Merge};

/// Runs each feed in a process of its own and merges their tapes, until stopped.
pub fn run(args: &Args, config: &Config) -> output::Result {
    let stop = output::stop_flag()?;
    let segments: Vec<_> = config
        .feed
        .iter()
        .map(|f| Segment {
            name: f.name.clone(),
            dir: config.segment_dir(&f.name),
            ended: Arc::default(),
            stopped: Arc::default(),
            wait: f.merge_wait(),
        })
        .collect();
    let stats = Arc::new(Stats::new(segments.iter().map(|s| s.name.clone())));
    let policies = config.feed.iter().map(|f| f.restart_policy());
    let processes = segments
        .iter()
        .zip(policies)
        .map(|(s, policy)| SegmentProcess::start(args, &s.name, policy))
        .collect::<Result<Vec<_>, _>>()?;
    let options = MergeOptions {
        segments: segments.clone(),
        tape: tape_options(config),
        wait: config.run.wait.0,
        lead: config.lead(),
        by_receive_time: config.run.merge == Merge::Receive,
        stats: stats.clone(),
        spin: config.run.spin,
    };
    let started = Instant::now();
    let over = AtomicBool::new(false);
    let teller = report::Teller::new(&stats, &config.tape.dir, args.json, config.run.stats.0);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| teller.tell_until(&over));
        scope.spawn(|| supervise(args, processes, &segments, &stats, (&stop, &over)));
        output::print_hot_notice(&config.tape.dir);
        let outcome = merge(&config.tape.dir, options);
        // Release: pairs with the Acquire in both threads; they end.
        over.store(true, Ordering::Release);
        stats.over.up();
        outcome
    });
    let mut outcome = outcome.map_err(|e| Failure::from(e).configured())?;
    let elapsed_s = started.elapsed().as_secs_f64();
    outcome.stopped = stop.load(Ordering::Relaxed);
    report::last(&stats, &config.tape.dir, &outcome, args.json, elapsed_s)?;
    let dropped = stats.feeds.iter().any(|f| f.drops.load(Ordering::Relaxed) > 0);
    Ok(if outcome.summary.is_flawed() || dropped { Done::Flawed } else { Done::Clean })
}

/// The process of a segment.
struct SegmentProcess {
    child: Child,
    policy: RestartPolicy,
    /// It has failed: not before this time again.
    again: Option<Instant>,
    started: Instant,
    /// The wait before it was started last.
    wait: Duration,
}

impl SegmentProcess {
    fn start(args: &Args, name: &str, policy: RestartPolicy) -> Result<Self, Failure> {
        Ok(Self {
            child: start(args, name)?,
            policy,
            again: None,
            started: Instant::now(),
            wait: Duration::ZERO,
        })
    }

    /// Starts it again; an error of that is one of its feed.
    fn start_again(&mut self, args: &Args, name: &str) -> Result<(), Failure> {
        self.child = start(args, name)?;
        self.started = Instant::now();
        Ok(())
    }
}

/// Watches the processes of the segments until all have ended, or the merge has.
fn supervise(
    args: &Args,
    mut processes: Vec<SegmentProcess>,
    segments: &[Segment],
    stats: &Stats,
    (stop, over): (&AtomicBool, &AtomicBool),
) {
    std::thread::scope(|scope| {
        let mut told = false;
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
                let failed = match process.again {
                    Some(at) if !stopping && Instant::now() < at => continue,
                    Some(_) if !stopping => process.start_again(args, name).err(),
                    Some(_) => {
                        Some(Failure::Error("its process had failed and was to be tried again".to_owned()))
                    }
                    None => match process.child.try_wait() {
                        Ok(None) => continue,
                        Ok(Some(status)) => match status.code() {
                            Some(0) => None,
                            Some(code) => {
                                let what = format!("its process ended with exit code {code}");
                                let failure = Failure::new(cause_of(code), what);
                                if !stopping && process.policy.tries_again(failure.cause()) {
                                    // One that ran for long has another cause now.
                                    let long = process.started.elapsed() > process.policy.backoff_max;
                                    let before = if long { Duration::ZERO } else { process.wait };
                                    process.wait = process.policy.next_wait(before);
                                    process.again = Some(Instant::now() + process.wait);
                                    let why = failure.text().unwrap_or_default();
                                    link.mirror(LinkState::Failed, Some(why), link.failures() + 1);
                                    note!("unitape: feed {name}: has failed and is tried again: {why}");
                                    continue;
                                }
                                Some(failure)
                            }
                            // Killed: it goes on where its tape ends, unless we end ourselves.
                            // It had no handler yet when we asked it to end: it has done nothing.
                            None if stopping && status.signal() == Some(SIGTERM) => {
                                killed = true;
                                None
                            }
                            None if stopping => {
                                killed = true;
                                Some(Failure::Error("its process was killed".to_owned()))
                            }
                            None => match process.start_again(args, name) {
                                Ok(()) => {
                                    listeners[i] = listen(process, i);
                                    continue;
                                }
                                Err(failure) => Some(failure),
                            },
                        },
                        Err(e) => Some(e.into()),
                    },
                };
                if let Some(failure) = failed {
                    stats.feeds[i].fail(failure.text().unwrap_or_default().to_owned(), failure.cause());
                } else if process.again.take().is_some() {
                    listeners[i] = listen(process, i);
                    continue;
                }
                // All that it said is known when its pipe is at its end.
                listeners[i].take().map(std::thread::ScopedJoinHandle::join);
                // What was killed while we stop has more for the next run, like what was stopped.
                segments[i].stopped.store(killed || told && !link.is_complete(), Ordering::Relaxed);
                // Release: pairs with the Acquire in the merge; all that the process committed is seen.
                segments[i].ended.store(true, Ordering::Release);
                stats.feeds[i].ended.store(true, Ordering::Relaxed);
                stats.placed.up();
            }
            // Acquire: pairs with the Release at the end of the merge.
            if !running || over.load(Ordering::Acquire) {
                break;
            }
            if !told && stop.load(Ordering::Relaxed) {
                told = true;
                for (process, segment) in processes.iter().zip(segments) {
                    let pid = rustix::process::Pid::from_child(&process.child);
                    if !segment.ended.load(Ordering::Relaxed) && process.again.is_none() {
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

/// What the process of a segment says of its feed; other fields are of its own tape.
#[derive(Deserialize)]
struct SegmentLine {
    stats: SegmentFigures,
}

#[derive(Deserialize)]
struct SegmentFigures {
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

/// Reads the figures of a segment's process until it ends. An empty line says that its tape has more.
fn listen_to(lines: impl BufRead, all: &Stats, feed: usize) {
    let stats = &all.feeds[feed];
    for line in lines.lines() {
        let Ok(line) = line else { return };
        if line.is_empty() {
            all.placed.up();
            continue;
        }
        // Its account, at its end, has no figures.
        let Ok(SegmentLine { stats: f }) = serde_json::from_str(&line) else { continue };
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
        all.placed.up();
    }
}

fn start(args: &Args, name: &str) -> Result<Child, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("run").arg(&args.config).args(["--segment", name, "--supervised"]).stdin(Stdio::inherit());
    // Its account is of its own tape; its figures are read here.
    command.stdout(Stdio::piped());
    if let Some(dir) = &args.tape {
        command.arg("--tape").arg(std::path::absolute(dir)?);
    }
    if let Some(workers) = args.workers {
        command.arg("--workers").arg(workers.to_string());
    }
    for (given, flag) in [(args.new_source, "--new-source"), (args.again, "--again")] {
        if given {
            command.arg(flag);
        }
    }
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
    Ok(command.spawn()?)
}

/// Waits until the process of an earlier run that has this segment's tape is gone, or `stop` is up. It was killed with its run,
/// and its ports are free when it is gone. A run that lives has the tape of the merge, and our parent ends for that.
pub fn wait_for_dying(dir: &Path, stop: &AtomicBool) {
    let since = Instant::now();
    let mut last = None;
    while since.elapsed() < DYING && !stop.load(Ordering::Relaxed) {
        let holder = unitape_tape::writer(dir);
        last = holder.or(last);
        if holder.is_none() && !last.is_some_and(is_alive) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process has not ended; one that nobody has waited for has.
fn is_alive(id: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// How long a process that was killed may still be there: a busy machine gives it little time to end.
const DYING: Duration = Duration::from_secs(30);

/// The number of the signal by which we ask a process to end.
const SIGTERM: i32 = rustix::process::Signal::TERM.as_raw();

/// How soon a signal is seen, and the end of a process that has not closed its pipe.
const LOOK: Duration = Duration::from_millis(50);
