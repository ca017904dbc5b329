//! Runs to which nothing comes, and what wakes them.
#![cfg(target_os = "linux")]

use crate::common::{self, file, oids};
use common::run::{Bench, Running, connect, free_port, names, orders};
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

const FEEDS: usize = 20;

/// Twenty feeds of all kinds to which something may come.
fn quiet(run: &str) -> (Bench, Vec<u16>) {
    let mut feeds = Vec::new();
    let mut ports = Vec::new();
    for n in 0..FEEDS {
        let port = free_port();
        feeds.push((
            format!("f{n}"),
            match n % 4 {
                0 => format!("directory = \"in{n}\""),
                1 => format!("udp = \"127.0.0.1:{port}\""),
                _ => format!("listen = \"127.0.0.1:{port}\""),
            },
        ));
        if n % 4 > 1 {
            ports.push(port);
        }
    }
    let feeds: Vec<_> = feeds.iter().map(|(name, input)| (name.as_str(), input.as_str())).collect();
    let bench = Bench::new(run, &feeds);
    for n in (0..FEEDS).step_by(4) {
        std::fs::create_dir(bench.path(&format!("in{n}"))).unwrap();
        // No two files hold the same.
        file(&bench.path(&format!("in{n}")), "1", orders(n as u32 + 1..n as u32 + 2));
    }
    (bench, ports)
}

/// The process and those that it has started.
fn processes(run: &Running) -> Vec<u32> {
    let mut all = vec![run.child.id()];
    for task in std::fs::read_dir(format!("/proc/{}/task", all[0])).unwrap() {
        let children = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
        all.extend(children.split_whitespace().map(|id| id.parse::<u32>().unwrap()));
    }
    all
}

/// The number of times that their threads have gone to sleep.
fn sleeps(processes: &[u32]) -> u64 {
    let mut sum = 0;
    for process in processes {
        for task in std::fs::read_dir(format!("/proc/{process}/task")).unwrap() {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
            let count = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
            sum += count.map_or(0, |n| n.trim().parse::<u64>().unwrap());
        }
    }
    sum
}

/// Threads woke thousands of times a second to find that nothing had come. The test bounds their wake-ups by the
/// second, however fast the machine is: a slow one sleeps less often.
#[test]
fn a_quiet_run_sleeps() {
    for (segments, most) in [("", 400), ("segments = \"apart\"", 4000)] {
        let (bench, ports) = quiet(segments);
        let mut run = bench.start_quiet();
        bench.has(&mut run, FEEDS as u64 / 4);
        let senders: Vec<_> = ports.into_iter().map(connect).collect();
        std::thread::sleep(Duration::from_secs(2));
        let processes = processes(&run);
        assert_eq!(processes.len(), if segments.is_empty() { 1 } else { FEEDS + 1 }, "{}", run.said());
        let (before, since) = (sleeps(&processes), Instant::now());
        std::thread::sleep(Duration::from_secs(3));
        let (count, seconds) = (sleeps(&processes) - before, since.elapsed().as_secs_f64());
        let each = count as f64 / seconds;
        assert!(each < f64::from(most), "{segments}: {count} sleeps in {seconds} s, {each} each");
        drop(senders);
        assert_eq!(run.stop().0, Some(0));
    }
}

/// A run that asks again and again has the same on its tape as one that sleeps.
#[test]
fn a_busy_run_misses_nothing() {
    for segments in ["", "segments = \"apart\""] {
        let port = free_port();
        let listen = format!("listen = \"127.0.0.1:{port}\"\nreceive_times = false");
        let bench = Bench::new(
            &format!("spin = true\nwait = \"1ms\"\nworkers = 2\n{segments}"),
            &[("a", &listen), ("b", "directory = \"in\"\nreceive_times = false")],
        );
        let dir = bench.path("in");
        std::fs::create_dir(&dir).unwrap();
        file(&dir, "1", orders(1..10));
        let mut run = bench.start();
        let mut sender = connect(port);
        bench.has(&mut run, 9);
        for n in 1..20 {
            sender.write_all(&orders(100 + n..101 + n)).unwrap();
            bench.has(&mut run, 9 + u64::from(n));
        }
        let mut grows = std::fs::File::options().append(true).open(dir.join("1")).unwrap();
        grows.write_all(&orders(10..20)).unwrap();
        bench.has(&mut run, 9 + 19 + 10);
        drop(sender);
        assert_eq!(run.stop().0, Some(0));
        let mut placed = oids(&bench.tape());
        placed.sort();
        let mut all = [names(1..20), names(101..120)].concat();
        all.sort();
        assert_eq!(placed, all);
    }
}

/// Directories are looked at every ten minutes here: growth is seen because the kernel reports it.
#[test]
fn growth_is_reported() {
    for segments in ["", "segments = \"apart\""] {
        let bench = Bench::new(segments, &[("a", "directory = \"in\"")]);
        let dir = bench.path("in");
        std::fs::create_dir(&dir).unwrap();
        file(&dir, "1", orders(1..10));
        let mut run = bench.start_quiet();
        bench.has(&mut run, 9);
        let mut grows = std::fs::File::options().append(true).open(dir.join("1")).unwrap();
        for n in 10..20 {
            // The run is asleep.
            std::thread::sleep(Duration::from_millis(20));
            grows.write_all(&orders(n..n + 1)).unwrap();
            bench.has(&mut run, u64::from(n));
        }
        assert_eq!(run.stop().0, Some(0));
        assert_eq!(oids(&bench.tape()), names(1..20));
    }
}

impl Bench {
    /// Starts it with looks at directories that are ten minutes apart.
    fn start_quiet(&self) -> Running {
        let err = self.path("err");
        let to = std::fs::File::create(&err).unwrap();
        let mut command = self.command();
        command.env("UNITAPE_RUN__SCAN", "10min").stdin(Stdio::null()).stdout(Stdio::null()).stderr(to);
        Running { child: command.spawn().unwrap(), err }
    }
}
