//! A consolidation that is killed continues where it was, and ends in the tape of one that was left alone.
//!
//! A resume once started after messages that were decoded but not on the tape, and another time wrote some of them
//! twice. Nothing but killing at every kind of moment finds that; `UNITAPE_KILL_ROUNDS` asks for more moments.

use crate::common::{self, assert_same, file, run, unitape};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;
use unitape_sim::Rng;

fn arguments(dir: &Path, tape: &Path, workers: u64, block: u64) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["consolidate".into()];
    for name in ["a", "b"] {
        args.extend(["--feed".into(), common::orders_option(name, &dir.join(format!("{name}.fix"))).into()]);
    }
    args.extend(
        ["--segment-bytes", "262144", "--workers", &workers.to_string(), "--block-bytes", &block.to_string()]
            .map(Into::into),
    );
    args.extend(["--json".into(), "--tape".into(), tape.into()]);
    args
}

fn start(args: &[OsString]) -> Child {
    unitape().args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Two feeds of a few megabytes, so that there are marks of progress in the middle of both. Halfway the second one's
/// clock goes back for good, its sessions fall silent but for what they send again, and new names still appear. From
/// there a resume depends on everything that a mark records.
fn inputs(dir: &Path) {
    file(dir, "a.fix", common::flow(31, 12_000, true).0);
    let (mut rng, mut bytes, half) = (Rng::new(32), Vec::new(), 9_000);
    for n in 1..22_000u32 {
        let (session, second) = if n < half { ("X", 29_700 + n / 8) } else { ("Y", 28_800 + n / 16) };
        let again = n > 100 && rng.one_in(40);
        let (session, of, again) = match again {
            true => ("X", 1 + rng.below(u64::from(n.min(half) - 50)) as u32, "43=Y|"),
            false => (session, n, ""),
        };
        let time = format!("20260302-{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
        let symbol = if rng.one_in(9) { format!("NEW{n}") } else { format!("S{}", rng.below(30)) };
        bytes.extend(common::fix(&format!(
            "35=8|49={session}{}|56=U|34={of}|{again}52={time}|60={time}|37=O{of}|150=0|54=1|38=100|44=10.5|207=XLON|48={symbol}|1=A{}|",
            of % 3,
            rng.below(500),
        )));
        if rng.one_in(200) {
            bytes.extend_from_slice(b"8=FIX.4.4 and no more of it");
        }
    }
    file(dir, "b.fix", bytes);
}

#[test]
fn a_killed_run_ends_in_the_same_tape() {
    let rounds: u64 =
        std::env::var("UNITAPE_KILL_ROUNDS").map_or(40, |n| n.parse().expect("a number of rounds"));
    let seed: u64 = std::env::var("UNITAPE_KILL_SEED").map_or(1, |n| n.parse().expect("a seed"));
    let dir = tempfile::tempdir().unwrap();
    inputs(dir.path());
    let whole = dir.path().join("whole");
    let undisturbed = std::time::Instant::now();
    run(arguments(dir.path(), &whole, 2, 65_536)).code(3);
    let whole_us = undisturbed.elapsed().as_micros() as u64;
    let (mut kills, mut tapes) = (0, 0);
    while kills < rounds {
        let tape_seed = seed.wrapping_mul(1_000_003) + tapes;
        let mut rng = Rng::new(tape_seed);
        let tape = dir.path().join(format!("killed-{tapes}"));
        loop {
            let (workers, block) = (1 + rng.below(4), 600 << rng.below(8));
            let mut child = start(&arguments(dir.path(), &tape, workers, block));
            // Sometimes at once, mostly somewhere within a run.
            let longest_us = if rng.one_in(4) { 3_000 } else { whole_us.max(1) };
            let wait_us = rng.below(longest_us);
            std::thread::sleep(Duration::from_micros(wait_us));
            if let Some(status) = child.try_wait().unwrap() {
                let said = child.wait_with_output().unwrap();
                let stderr = String::from_utf8_lossy(&said.stderr);
                assert_eq!(status.code(), Some(3), "UNITAPE_KILL_SEED={seed}, tape {tapes}: {stderr}");
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            if rng.below(6) == 0 {
                // Enough for this tape: it is now left alone until it is complete.
                let last = run(arguments(dir.path(), &tape, 1 + rng.below(4), 600 << rng.below(8)));
                assert_eq!(last.code, Some(3), "UNITAPE_KILL_SEED={seed}, tape {tapes}: {}", last.stderr);
                break;
            }
        }
        assert_same(&whole, &tape, &format!("UNITAPE_KILL_SEED={seed}, tape {tapes}, {kills} kills"));
        std::fs::remove_dir_all(&tape).unwrap();
        tapes += 1;
    }
    println!("{kills} kills, {tapes} tapes, all the same");
}

/// Somebody who stops a run wants it to end in order, to say so, and to resume later.
#[test]
fn an_interrupted_run_says_so_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    inputs(dir.path());
    let whole = dir.path().join("whole");
    let args = |tape: &Path| arguments(dir.path(), tape, 2, 2400);
    run(args(&whole)).code(3);
    let mut stopped = 0;
    for round in 0..8 {
        let tape = dir.path().join(format!("stopped-{round}"));
        let mut child = start(&args(&tape));
        // Once there is a tape it has its handler; the more segments, the deeper it is in its work.
        let segments = || std::fs::read_dir(tape.join("segments")).map_or(0, Iterator::count);
        while segments() <= 3 * round && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        if child.try_wait().unwrap().is_none() {
            let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
            // It may have ended in between; its exit code says so.
            _ = kill.unwrap();
        }
        let out = child.wait_with_output().unwrap();
        if out.status.code() == Some(1) {
            let said = String::from_utf8_lossy(&out.stderr);
            assert!(said.contains("stopped"), "{said}");
            let account: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
            common::assert_closes(&account);
            run(["tape".as_ref(), "verify".as_ref(), tape.as_os_str()]).code(0);
            stopped += 1;
        } else {
            assert_eq!(out.status.code(), Some(3));
        }
        run(args(&tape)).code(3);
        assert_same(&whole, &tape, "stopped and resumed");
        std::fs::remove_dir_all(&tape).unwrap();
    }
    assert!(stopped > 0, "no run could be interrupted");
}
