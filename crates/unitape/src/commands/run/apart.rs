//! Segments apart: a process for each feed, with its own tape, and the merge that reads their tapes.
//!
//! What is ours to run dies with us: a segment left behind would hold its tape against the next start. A segment that
//! is killed is started again; one that ends with an error ends its feed, and the others go on.

use super::config::Config;
use super::{Args, report, tape_options};
use crate::output::{self, Done, Failure};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use unitape_feed::{MergeOptions, Segment, Stats, merge};

/// Runs each feed in a process of its own and merges their tapes, until stopped.
pub fn run(args: &Args, config: &Config) -> output::Result {
    let stop = output::stop_flag()?;
    let segments: Vec<_> = config
        .feed
        .iter()
        .map(|f| Segment { name: f.name.clone(), dir: config.segment_dir(&f.name), ended: Arc::default() })
        .collect();
    let stats = Arc::new(Stats::new(segments.iter().map(|s| s.name.clone())));
    let children = segments.iter().map(|s| start(args, &s.name)).collect::<Result<Vec<_>, _>>()?;
    let options = MergeOptions {
        segments: segments.clone(),
        tape: tape_options(config),
        wait: config.run.wait.0,
        by_receive_time: config.run.merge == super::config::Merge::Receive,
        stats: stats.clone(),
    };
    let started = Instant::now();
    let over = AtomicBool::new(false);
    let teller = report::Teller::new(&stats, &config.tape.dir, args.json, config.run.stats.0);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| teller.tell_until(&over));
        scope.spawn(|| supervise(args, children, &segments, &stats, (&stop, &over)));
        let outcome = merge(&config.tape.dir, options);
        // Release: pairs with the Acquire in both threads; they end.
        over.store(true, Ordering::Release);
        outcome
    });
    let outcome = outcome.map_err(Failure::from)?;
    let elapsed_s = started.elapsed().as_secs_f64();
    if report::last(&stats, &config.tape.dir, &outcome, args.json, elapsed_s)? {
        return Err(Failure::Error(
            "a feed ended before its end; the same command goes on from here".to_owned(),
        ));
    }
    Ok(if outcome.summary.quarantined > 0 { Done::Flawed } else { Done::Clean })
}

/// Watches the processes of the segments until all have ended, or the merge has.
fn supervise(
    args: &Args,
    mut children: Vec<Child>,
    segments: &[Segment],
    stats: &Stats,
    (stop, over): (&AtomicBool, &AtomicBool),
) {
    let mut told = false;
    loop {
        let mut running = false;
        for (i, child) in children.iter_mut().enumerate() {
            if segments[i].ended.load(Ordering::Relaxed) {
                continue;
            }
            running = true;
            let failed = match child.try_wait() {
                Ok(None) => continue,
                Ok(Some(status)) => match status.code() {
                    Some(0 | 3) => None,
                    Some(code) => Some(format!("its process ended with {code}")),
                    // Killed: it goes on where its tape ends, unless we end ourselves.
                    None if stop.load(Ordering::Relaxed) => Some("its process was killed".to_owned()),
                    None => match start(args, &segments[i].name) {
                        Ok(again) => {
                            *child = again;
                            continue;
                        }
                        Err(Failure::Error(e) | Failure::Usage(e)) => Some(e),
                        Err(Failure::ClosedStdout) => None,
                    },
                },
                Err(e) => Some(e.to_string()),
            };
            if let Some(why) = failed {
                stats.feeds[i].fail(why);
            }
            // Release: pairs with the Acquire in the merge; all that the process committed is seen.
            segments[i].ended.store(true, Ordering::Release);
        }
        // Acquire: pairs with the Release at the end of the merge.
        if !running || over.load(Ordering::Acquire) {
            break;
        }
        if !told && stop.load(Ordering::Relaxed) {
            told = true;
            for (child, segment) in children.iter().zip(segments) {
                let pid = rustix::process::Pid::from_child(child);
                if !segment.ended.load(Ordering::Relaxed) {
                    // It may have ended just now.
                    _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                }
            }
        }
        std::thread::sleep(LOOK);
    }
    // Only when the merge failed is there still one.
    for child in &mut children {
        _ = child.kill();
        _ = child.wait();
    }
}

fn start(args: &Args, name: &str) -> Result<Child, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("run").arg(&args.config).args(["--segment", name]).stdin(Stdio::inherit());
    // Its account is of its own tape; what is told here is of ours.
    command.stdout(Stdio::null());
    if let Some(dir) = &args.tape {
        command.arg("--tape").arg(std::path::absolute(dir)?);
    }
    if let Some(workers) = args.workers {
        command.arg("--workers").arg(workers.to_string());
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

/// How soon the end of a process is seen.
const LOOK: Duration = Duration::from_millis(10);
