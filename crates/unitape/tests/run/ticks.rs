//! `run.clock`: ticks of a quiet run, and its journals read again after a kill.
#![cfg(unix)]

use crate::common::{self, cat};
use common::run::{Bench, Running, connect, free_port};
use serde_json::Value;
use std::io::Write;

fn counts(bench: &Bench, kind: &str) -> u64 {
    let account = unitape_feed::TapeAccount::load(&bench.tape());
    account.map_or(0, |a| a.summary().by_kind.get(kind).copied().unwrap_or(0))
}

/// Waits until another tick is on the tape.
fn tick(bench: &Bench, run: &mut Running) {
    let before = counts(bench, "clock");
    run.until(|| counts(bench, "clock") > before);
}

fn order(tape: &std::path::Path) -> Vec<Value> {
    let pick = |e: Value| ["kind", "ts", "oid"].iter().map(|name| e[*name].clone()).collect();
    cat(tape, &[]).into_iter().map(pick).collect()
}

/// The times of these orders are those of another day; by them all orders would come before all ticks. The run is
/// killed twice.
#[test]
fn ticks_of_a_run_that_was_killed_come_back_from_its_journals() {
    let port = free_port();
    let bench = Bench::new("clock = \"10ms\"", &[("a", &format!("listen = \"127.0.0.1:{port}\""))]);
    for n in 0..3 {
        let mut run = bench.start();
        tick(&bench, &mut run);
        let mut stream = connect(port);
        stream.write_all(&common::order(2 * n)).unwrap();
        bench.has(&mut run, u64::from(2 * n + 1));
        tick(&bench, &mut run);
        stream.write_all(&common::order(2 * n + 1)).unwrap();
        bench.has(&mut run, u64::from(2 * n + 2));
        tick(&bench, &mut run);
        if n < 2 {
            run.signal("-KILL");
            run.child.wait().unwrap();
        } else {
            drop(stream);
            let (code, said) = run.stop();
            assert_eq!(code, Some(0), "{said}");
        }
    }
    let want = order(&bench.tape());
    let ticks: Vec<i64> = want.iter().filter(|e| e[0] == "clock").map(|e| e[1].as_i64().unwrap()).collect();
    assert!(ticks.len() >= 9 && ticks.is_sorted_by(|a, b| a < b), "{ticks:?}");
    assert!(ticks.iter().all(|ts| ts % 10_000_000 == 0), "{ticks:?}");
    let late =
        cat(&bench.tape(), &["--full"]).iter().filter(|e| e["flags"].to_string().contains("late")).count();
    assert_eq!(late, 0);
    let tape = bench.tape();
    common::run(["tape", "verify", tape.to_str().unwrap()]).code(0);

    let journal = |name: &str, n: u32| {
        format!("'{}'", bench.path("tape.journal").join(name).join(format!("{n:08}.raw")).display())
    };
    let files = [1, 2, 3].map(|n| journal("a", n)).join(", ");
    let text = format!(
        "[tape]\ndir = \"again\"\n[[feed]]\nname = \"a\"\nformat = \"fix\"\nmapping = \"fix44-orders\"\nfiles = [{files}]\n\
         [[feed]]\nname = \"clock\"\nformat = \"clock\"\nfiles = [{}]\n",
        journal("clock", 1)
    );
    let again = common::file(bench.dir.path(), "again.toml", text);
    common::run(["run".as_ref(), again.as_os_str()]).code(0);
    assert_eq!(order(&bench.path("again")), want);
}

/// A run of files alone has no quiet time; who asks for ticks must know.
#[test]
fn a_run_of_files_says_that_it_has_no_ticks() {
    let bench = Bench::new("clock = \"1ms\"", &[("a", "files = [\"a.fix\"]")]);
    common::file(bench.dir.path(), "a.fix", common::order(1));
    let said = common::finish(&mut bench.command()).code(0);
    assert!(said.stderr.contains("run.clock: all feeds are files"), "{}", said.stderr);
    assert_eq!(counts(&bench, "clock"), 0);
}

/// A tick of a host whose clock was a year ahead had no flag: books at a time before it ended there, with 5 of 15 orders.
#[test]
fn a_tick_of_a_clock_that_is_ahead_ends_no_books() {
    const NOW: u64 = 1_772_440_000_000_000_000;
    const YEAR: u64 = 365 * 86_400 * 1_000_000_000;
    let dir = tempfile::tempdir().unwrap();
    let order = |n: u64| {
        format!(
            "{{\"ts\":{},\"kind\":\"order_new\",\"venue\":\"V\",\"instr\":\"I\",\"oid\":\"{n}\",\"side\":\"B\",\"px\":\"9\",\"qty\":\"1\"}}\n",
            NOW + n
        )
    };
    let orders: Vec<String> = (0..15).map(order).collect();
    let offset: usize = orders[..4].iter().map(String::len).sum();
    common::file(dir.path(), "a.jsonl", orders.concat());
    for (ahead, wanted) in [(true, 15), (false, 5)] {
        let tick = format!(
            "{{\"ts\":{},\"after\":{{\"a\":{{\"file\":\"a.jsonl\",\"offset\":{offset},\"part\":2}}}},\"ahead\":{ahead}}}\n",
            NOW + YEAR
        );
        common::file(dir.path(), "ticks", tick);
        let tape = dir.path().join(format!("tape-{ahead}"));
        let text = format!(
            "[tape]\ndir = \"{}\"\n[[feed]]\nname = \"a\"\nformat = \"events\"\nfiles = [\"a.jsonl\"]\n\
             [[feed]]\nname = \"clock\"\nformat = \"clock\"\nfiles = [\"ticks\"]\n",
            tape.display()
        );
        let config = common::file(dir.path(), "run.toml", text);
        common::run(["run".as_ref(), config.as_os_str()]).code(0);
        let at = ["book", "show", tape.to_str().unwrap(), "--at", "2026-09-01T00:00", "--json"];
        let books = common::run(at).code(0).lines();
        assert_eq!(books[0]["orders"], wanted, "{books:?}");
    }
}
