//! A consolidation that is killed goes on where it was, and ends in the tape of one that was left alone.
//!
//! A resume once started behind messages that were decoded but not on the tape, and another time wrote some of them
//! twice. Nothing but killing at every sort of moment finds that; `UNITAPE_KILL_ROUNDS` asks for more moments.

mod common;

use common::{assert_same, file, run, unitape};
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

/// Two feeds with noise, the second a resend of its own past every now and then.
fn inputs(dir: &Path) {
    file(dir, "a.fix", common::flow(31, 12_000, true).0);
    let b = common::flow(32, 8_000, true).0;
    file(dir, "b.fix", b);
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

/// Who stops a run wants it to end in order, to be told, and to go on later.
#[test]
fn an_interrupted_run_says_so_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    inputs(dir.path());
    let whole = dir.path().join("whole");
    let args = |tape: &Path| arguments(dir.path(), tape, 2, 600);
    run(args(&whole)).code(3);
    let mut stopped = 0;
    for round in 0..20 {
        let tape = dir.path().join(format!("stopped-{round}"));
        let child = start(&args(&tape));
        // From here on it has its handler: the tape is opened after it.
        while !tape.join("segments").exists() {
            std::thread::yield_now();
        }
        let interrupt = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        // A run that has ended before it is interrupted is none to look at.
        _ = interrupt.unwrap();
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
        assert_same(&whole, &tape, "stopped and gone on");
        std::fs::remove_dir_all(&tape).unwrap();
        if stopped == 3 {
            return;
        }
    }
    panic!("no run could be interrupted");
}
