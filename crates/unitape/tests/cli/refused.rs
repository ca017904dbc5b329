//! A writer that is refused leaves the tape unchanged, and a configuration that can run does run.
#![cfg(unix)]

use crate::common::damage;

use crate::common::{self, file, oids, run};
use common::run::{Bench as RunBench, names, orders};
use damage::{Bench, HEADER_PAGE, SEGMENT, flip};
use std::collections::BTreeMap;

/// All files of a tape but its lineage, which counts openings.
fn tape_files(bench: &Bench) -> BTreeMap<String, Vec<u8>> {
    let mut all = common::files(&bench.tape);
    all.remove("run/lineage");
    all
}

/// Damage before the last segment, which the writer meets when it reads its account: the tape looked as if its writer
/// had died.
#[test]
fn a_closed_tape_stays_closed_when_a_writer_is_refused() {
    let bench = Bench::new();
    assert!(bench.segments() > 3);
    let (middle, last) = (bench.segment(bench.last() / 2), bench.segment(bench.last()));
    for (what, path, offset) in [
        ("a frame before the last segment", &middle, HEADER_PAGE + SEGMENT / 2),
        ("the header page before the last segment", &middle, 40),
        ("the header page of the last segment", &last, 40),
        ("the durable position", &bench.path("durable"), 17),
        ("the definitions", &bench.path("definitions.log"), 30),
    ] {
        flip(path, offset);
        let before = tape_files(&bench);
        let ran = bench.write().code(3);
        let after = tape_files(&bench);
        assert_eq!(
            before.keys().collect::<Vec<_>>(),
            after.keys().collect::<Vec<_>>(),
            "{what}: {}",
            ran.stderr
        );
        for (name, bytes) in &before {
            assert!(after[name] == *bytes, "{what}: {name} was changed");
        }
        assert!(!bench.path("run/cursors").exists(), "{what}");
        flip(path, offset);
        bench.verify().code(0);
        let info = bench.tape_command("info", &["--json"]).code(0).json();
        assert_eq!(info["writer"], serde_json::Value::Null);
    }
    bench.write().code(0);
    bench.verify().code(0);
}

/// A tape in shared memory: a refused run leaves no hot directory.
#[test]
fn a_refused_run_leaves_no_hot_directory() {
    let bench = Bench::new();
    flip(&bench.segment(bench.last() / 2), HEADER_PAGE + SEGMENT / 2);
    let before = tape_files(&bench);
    let text = "[tape]\ndir = \"tape\"\nbacking = \"hot\"\n[[feed]]\nname = \"orders\"\nformat = \"fix\"\n\
                mapping = \"fix44-orders\"\nfiles = [\"orders.fix\"]\n";
    let config = file(bench.dir.path(), "run.toml", text);
    let ran = run(["run".as_ref(), config.as_os_str()]).code(3);
    assert!(tape_files(&bench) == before, "{}", ran.stderr);
}

/// A batch of the merge is larger than the window of hot segments: the run ended with `recorder behind` each time it
/// was started.
#[test]
fn a_hot_run_with_small_segments_gets_going() {
    for (segment, feeds) in [(4096, &["a"][..]), (65536, &["a", "b"])] {
        let inputs: Vec<(&str, String)> =
            feeds.iter().map(|name| (*name, format!("files = [\"{name}.fix\"]"))).collect();
        let inputs: Vec<(&str, &str)> = inputs.iter().map(|(name, input)| (*name, input.as_str())).collect();
        let bench = RunBench::new("", &inputs);
        let text = std::fs::read_to_string(bench.path("run.toml")).unwrap();
        let hot = format!("[tape]\nbacking = \"hot\"\nsegment_bytes = {segment}\n");
        file(bench.dir.path(), "run.toml", text.replacen("[tape]\n", &hot, 1));
        for name in feeds {
            // Two files that hold the same are an error.
            let more = u32::from(*name == "b");
            file(bench.dir.path(), &format!("{name}.fix"), orders(1..4000 + more));
        }
        let (code, said) = bench.start().ends();
        assert_eq!(code, Some(0), "segments of {segment} bytes: {said}");
        let mut wanted: Vec<_> =
            feeds.iter().flat_map(|name| names(1..4000 + u32::from(*name == "b"))).collect();
        let mut there = oids(&bench.tape());
        wanted.sort();
        there.sort();
        assert!(there == wanted, "segments of {segment} bytes: {} of {} orders", there.len(), wanted.len());
        run(["tape".as_ref(), "verify".as_ref(), bench.tape().as_os_str()]).code(0);
    }
}

/// A reader that could open the segment, and not the lineage after it, looked for the segment for ever: at full speed, without
/// a word, and not to be ended by SIGTERM.
#[test]
fn too_few_descriptors_end_every_command_that_reads_a_tape() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let event = |n: u64, kind: &str, more: &str| {
        format!(
            "{{\"ts\":{},\"kind\":\"{kind}\",\"venue\":\"V\",\"instr\":\"I\",{more}}}\n",
            1_772_440_000_000_000_000 + n
        )
    };
    let lines: String = (1..40)
        .map(|n| match n % 3 {
            0 => event(n, "trade", "\"px\":\"101\",\"qty\":\"1\""),
            _ => event(
                n,
                "order_new",
                &format!("\"oid\":\"{n}\",\"side\":\"B\",\"px\":\"{}\",\"qty\":\"1\"", 90 + n % 7),
            ),
        })
        .collect();
    for name in ["a", "b"] {
        let feed = format!(
            "f=events:events:{}",
            file(
                dir.path(),
                &format!("{name}.jsonl"),
                format!(
                    "{lines}{}",
                    event(50, "trade", &format!("\"px\":\"1\",\"qty\":\"1\",\"match_id\":\"{name}\""))
                )
            )
            .display()
        );
        run(["consolidate", "--feed", &feed, "--tape", &path(name)]).code(0);
    }
    let commands = [
        "tape cat a",
        "tape cat a --json --full --all",
        "tape cat a --from 20 --limit 5",
        "tape info a",
        "tape verify a",
        "tape replay a --json",
        "tape repair a",
        "quarantine list a",
        "book show a",
        "book bbo a",
        "book show a --at 2026-03-02T08:26:40",
        "book derive a --tape-out made",
        "fx best a",
        "watch replay a --json",
        "breaker list --control a",
        "store seal a --store made",
        "consolidate --tape-in a --tape-in b --tape made --json",
    ];
    for command in commands {
        let limited = |limit: &str| {
            _ = std::fs::remove_dir_all(dir.path().join("made"));
            _ = std::fs::remove_file(dir.path().join("made.key"));
            // A descriptor that this process was given by its own parent would count.
            let inherited: String = (3..10).map(|fd| format!(" {fd}<&-")).collect();
            let script = format!("exec{inherited}; ulimit -n {limit}; exec \"$0\" {command}");
            let mut sh = std::process::Command::new("sh");
            sh.args(["-c", &script]).arg(common::unitape().get_program()).current_dir(dir.path());
            common::finish(&mut sh)
        };
        let (enough, mut refused) = (limited("100"), 0);
        for limit in 4..10 {
            let ran = limited(&limit.to_string());
            if ran.stderr.contains("too many open files") {
                ran.code(1).says(&[&format!("too many open files: the limit is {limit} (ulimit -n)")]);
                refused += 1;
                continue;
            }
            assert_eq!(ran.code, enough.code, "{command}, {limit}: {}", ran.stderr);
        }
        assert!(refused > 0, "{command}");
    }
}
