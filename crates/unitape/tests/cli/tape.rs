//! `unitape tape`: what `cat` prints and leaves out, following, closed pipes, `info`, `verify`, `replay`; and how
//! every command documents itself.

use crate::common::{self, cat, file, jse, order, run, unitape};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use unitape_tape::{Publication, WriterOptions};

/// A tape of the real feed.
fn real(dir: &Path) -> PathBuf {
    let tape = dir.join("real");
    run(["consolidate".as_ref(), jse().as_os_str(), "--tape".as_ref(), tape.as_os_str()]).code(0);
    tape
}

/// Ordinals and positions name the same events from both ends, and both ends are included.
#[test]
fn ranges_are_of_ordinals_or_positions() {
    let dir = tempfile::tempdir().unwrap();
    let tape = real(dir.path());
    let all = cat(&tape, &["--full"]);
    assert_eq!(all.len(), 10_850);
    for (i, event) in all.iter().enumerate() {
        assert_eq!(event["seq"], i + 1);
    }
    let some = cat(&tape, &["--full", "--from", "100", "--to", "103"]);
    assert_eq!(some, all[99..103]);
    let at = |i: usize| format!("@{}", all[i]["position"]);
    assert_eq!(cat(&tape, &["--full", "--from", &at(99), "--to", &at(102)]), some);
    assert_eq!(cat(&tape, &["--full", "--from", "10849"]), all[10_848..]);
    assert!(cat(&tape, &["--from", "10851"]).is_empty());
    assert_eq!(cat(&tape, &["--full", "--to", "1"]), all[..1]);
    let dir = tape.to_str().unwrap();
    run(["tape", "cat", dir, "--from", "x"]).code(2).says(&["`x`"]);
    run(["tape", "cat", dir, "--to", "@-1"]).code(2);
    run(["tape", "cat", dir, "--from", "5", "--to", "4"]).code(2).says(&["--from 5 is after --to 4"]);
}

/// Kinds are chosen by name; definitions and marks are hidden unless asked for.
#[test]
fn kinds_are_chosen_and_bookkeeping_is_hidden() {
    let dir = tempfile::tempdir().unwrap();
    let tape = real(dir.path());
    let kinds = |events: &[Value]| {
        let mut kinds: Vec<String> = events.iter().map(|e| e["kind"].as_str().unwrap().to_owned()).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds(&cat(&tape, &[])), ["index", "status"]);
    assert_eq!(cat(&tape, &["--kind", "status"]).len(), 80);
    assert_eq!(cat(&tape, &["--kind", "status", "--kind", "index"]).len(), 10_850);
    let all = cat(&tape, &["--all"]);
    assert_eq!(kinds(&all), ["define", "index", "progress", "source", "status"]);
    // Every name is defined before its first use, once.
    let mut defined: Vec<&str> = Vec::new();
    for event in &all {
        match event["kind"].as_str().unwrap() {
            "define" => {
                let name = event["name"].as_str().unwrap();
                assert!(!defined.contains(&name), "{name} is defined twice");
                defined.push(name);
            }
            "index" => assert!(defined.contains(&event["index"].as_str().unwrap()), "{event}"),
            _ => {}
        }
    }
    run(["tape", "cat", tape.to_str().unwrap(), "--kind", "nothing"]).code(2).says(&["nothing", "order_new"]);
}

/// The plain form for eyes holds what the JSON holds.
#[test]
fn a_line_for_eyes() {
    let dir = tempfile::tempdir().unwrap();
    let tape = real(dir.path());
    let out = run(["tape", "cat", tape.to_str().unwrap(), "--to", "2"]).code(0);
    let second = out.text().lines().nth(1).unwrap().to_owned();
    for part in ["2011-11-24 06:28:56.151", "index", "px=76.79", "venue=XJSE"] {
        assert!(second.contains(part), "{second}");
    }
}

/// A reader that has seen enough closes the pipe; that is no error and prints nothing.
#[test]
fn a_closed_stdout_ends_it_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let tape = real(dir.path());
    let t = tape.to_str().unwrap();
    for args in
        [vec!["tape", "cat", t, "--json"], vec!["tape", "cat", t], vec!["tape", "replay", t, "--json"]]
    {
        let mut child = unitape().args(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut first).unwrap();
        assert!(!first.is_empty());
        drop(stdout);
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&out.stderr), "", "{args:?}");
    }
    // Closed from the start, and for a command that prints only a few lines with `println!`.
    for args in [
        vec!["tape", "info", t],
        vec!["tape", "verify", t],
        vec!["mapping", "list"],
        vec!["watch", "scenarios"],
    ] {
        let script = format!("\"$0\" {} | true; exit ${{PIPESTATUS[0]}}", args.join(" "));
        let out = common::finish(
            std::process::Command::new("bash").arg("-c").arg(script).arg(unitape().get_program()),
        );
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

/// A reader that follows sees what another process appends, as it comes, in order, whole.
#[test]
fn follow_goes_on_as_the_tape_grows() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let first = file(dir.path(), "1.fix", order(1));
    common::consolidate_orders(&first, &tape, 0);
    let mut child = unitape()
        .args(["tape", "cat", tape.to_str().unwrap(), "--json", "--follow", "--kind", "order_new"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        line["oid"].as_str().unwrap().to_owned()
    };
    assert_eq!(next(), "O1");
    // Another process appends from a pipe that stays open.
    let feed = "orders=fix:fix44-orders:-";
    let mut writer = unitape()
        .args(["consolidate", "--feed", feed, "--tape", tape.to_str().unwrap(), "--workers", "2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = writer.stdin.take().unwrap();
    for n in 2..4_000 {
        stdin.write_all(&order(n)).unwrap();
    }
    drop(stdin);
    assert_eq!(writer.wait().unwrap().code(), Some(0));
    for n in 2..4_000 {
        assert_eq!(next(), format!("O{n}"));
    }
    // It stops in order when it is asked to.
    assert!(
        std::process::Command::new("kill")
            .args(["-TERM", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let out = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert_eq!((out.status.code(), stderr.as_ref()), (Some(0), ""));
}

#[test]
fn info_tells_what_the_tape_was_made_from() {
    let dir = tempfile::tempdir().unwrap();
    let tape = real(dir.path());
    let info = run(["tape", "info", tape.to_str().unwrap(), "--json"]).code(0).json();
    assert_eq!(info["events"], 10_850);
    assert_eq!(info["account"]["messages"], 11_110);
    common::assert_closes(&info["account"]);
    let source = &info["sources"][0];
    assert_eq!(source["file"], "jse_fix50_marketdata_head80.fix");
    assert_eq!(source["size"], 1_617_971);
    assert_eq!(source["complete"], true);
    assert_eq!(source["blake3"].as_str().unwrap().len(), 64);
    assert!(!info.to_string().contains(jse().parent().unwrap().to_str().unwrap()), "a path is on the tape");
    assert_eq!(info["writer"], Value::Null);
    assert_eq!(info["durable"], info["end"]);
    run(["tape", "info", tape.to_str().unwrap()]).code(0);
}

#[test]
fn verify_counts_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let tape = real(dir.path());
    let report = run(["tape", "verify", tape.to_str().unwrap(), "--json"]).code(0).json();
    assert_eq!(report["events"], 10_850);
    assert_eq!(report["problems"], serde_json::json!([]));
    let info = run(["tape", "info", tape.to_str().unwrap(), "--json"]).code(0).json();
    assert_eq!(report["intact_to"], info["end"]);
    assert_eq!(report["frames"], info["frames"]);
}

/// A replay passes the same events as `cat`, in the same form.
#[test]
fn replay_passes_the_events() {
    let dir = tempfile::tempdir().unwrap();
    let tape = real(dir.path());
    let t = tape.to_str().unwrap();
    let replayed = run(["tape", "replay", t, "--json"]).code(0);
    assert!(replayed.stderr.contains("10,850 events"), "{}", replayed.stderr);
    assert!(replayed.stdout == run(["tape", "cat", t, "--json"]).code(0).stdout);
    assert!(run(["tape", "replay", t]).code(0).text().contains("10,850 events"));
    run(["tape", "replay", t, "--speed", "-1"]).code(2);
    run(["tape", "replay", t, "--speed", "nan"]).code(2).says(&["--speed"]);
}

/// Every subcommand has help with an example, however deep it is.
#[test]
fn every_command_helps_with_an_example() {
    fn subcommands(help: &str) -> Vec<String> {
        let list = help.split("\nCommands:\n").nth(1).unwrap_or("");
        let names = list.lines().take_while(|l| l.starts_with("  "));
        let names = names.filter(|l| !l.starts_with("   ")).filter_map(|l| l.split_whitespace().next());
        names.filter(|n| *n != "help").map(str::to_owned).collect()
    }
    let (mut todo, mut leaves, mut bare): (Vec<Vec<String>>, usize, Vec<String>) =
        (vec![Vec::new()], 0, Vec::new());
    while let Some(path) = todo.pop() {
        let help = run(path.iter().map(String::as_str).chain(["--help"])).code(0);
        let under = subcommands(help.text());
        if under.is_empty() {
            leaves += 1;
            if !help.text().contains("Example") {
                bare.push(path.join(" "));
            }
        }
        todo.extend(under.into_iter().map(|name| path.iter().cloned().chain([name]).collect()));
    }
    assert!(bare.is_empty(), "no example: {bare:?}");
    assert!(leaves >= 14, "{leaves} commands");
}

/// Aeron is C code that not everybody can build.
#[cfg(not(feature = "link"))]
#[test]
fn a_binary_without_the_link_says_how_to_build_one() {
    for args in [["send", "t", "--listen", "127.0.0.1:0"], ["receive", "t", "--from", "127.0.0.1:7400"]] {
        let ran = run(["link"].into_iter().chain(args)).code(2);
        ran.says(&["this build has no link", "--features link", "docs/link.md"]);
    }
}

/// Arguments that cannot be are usage, exit code 2, and say what could be.
#[test]
fn usage_errors_end_with_2() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let (t, jse) = (tape.to_str().unwrap(), jse().display().to_string());
    for (args, words) in [
        (vec![], "Usage"),
        (vec!["nothing"], "nothing"),
        (vec!["consolidate", &jse], "--tape"),
        (vec!["consolidate", "--tape", t], "--feed"),
        (vec!["consolidate", &jse, "--tape", t, "--workers", "0"], "--workers"),
        (vec!["consolidate", &jse, "--tape", t, "--workers", "many"], "--workers"),
        (vec!["consolidate", &jse, "--tape", t, "--block-bytes", "1"], "--block-bytes"),
        (vec!["consolidate", &jse, "--tape", t, "--block-bytes", "99999999"], "--block-bytes"),
        (vec!["consolidate", &jse, "--tape", t, "--segment-bytes", "100000"], "power of two"),
        (vec!["consolidate", "--feed", "orders", "--tape", t], "name=format:mapping:path"),
        (vec!["consolidate", "--feed", "o=fox:m:p", "--tape", t], "fox"),
        (vec!["consolidate", "--feed", "o=fix::p", "--tape", t], "mapping"),
        (vec!["link", "send", t, "--listen", "0.0.0.0:7400"], "no keys yet"),
        (vec!["link", "receive", t, "--from", "192.0.2.1:7400"], "no keys yet"),
        (vec!["link", "receive", t, "--from", "127.0.0.1:7400", "--bind", "[::]:7401"], "no keys yet"),
        (vec!["link", "receive", t, "--from", "127.0.0.1:0"], "port 0"),
        (vec!["tape", "cat"], "DIR"),
        (vec!["quarantine", "show", t, "x"], "x"),
    ] {
        run(&args).code(2).says(&[words]);
        assert!(!tape.exists(), "{args:?} made a tape");
    }
}

/// Completions and man pages come from the commands themselves.
#[test]
fn completions_and_man_pages_are_generated() {
    for shell in ["bash", "zsh", "fish"] {
        let text = run(["generate", "completions", shell]).code(0);
        assert!(text.text().contains("consolidate"), "{shell}");
    }
    let dir = tempfile::tempdir().unwrap();
    run(["generate".as_ref(), "man".as_ref(), dir.path().as_os_str()]).code(0);
    let pages = common::files(dir.path());
    assert!(
        pages.contains_key("unitape.1") && pages.contains_key("unitape-tape-cat.1"),
        "{:?}",
        pages.keys()
    );
    assert!(String::from_utf8_lossy(&pages["unitape-consolidate.1"]).contains("feeds.toml"));
}

/// Messages of users among the events of a feed once ended every command that met one: the kind was unknown.
#[test]
fn messages_of_users_are_printed_and_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let tape = real(dir.path());
    let mut publication = Publication::open(&tape, WriterOptions::default()).unwrap();
    publication.offer(7, "limit erhöht".as_bytes()).unwrap();
    publication.offer(8, &[0xff, 0]).unwrap();
    publication.close().unwrap();
    let all = cat(&tape, &[]);
    assert_eq!(all.len(), 10_852);
    let text = json!({ "seq": 10_851, "kind": "message", "topic": 7, "bytes": "limit erhöht" });
    let raw = json!({ "seq": 10_852, "kind": "message", "topic": 8, "bytes": { "hex": "ff00" } });
    assert_eq!(all[10_850..], [text.clone(), raw]);
    assert_eq!(cat(&tape, &["--kind", "message", "--to", "10851"]), [text]);
    assert_eq!(cat(&tape, &["--kind", "index"]).len() + cat(&tape, &["--kind", "message"]).len(), {
        all.iter().filter(|e| e["kind"] == "index" || e["kind"] == "message").count()
    });
    let path = tape.to_str().unwrap();
    let printed = run(["tape", "cat", path, "--from", "10851"]).code(0);
    assert!(printed.text().contains("topic=7") && printed.text().contains("erhöht"), "{}", printed.text());
    run(["tape", "info", path]).code(0);
    run(["tape", "verify", path]).code(0);
    assert!(run(["tape", "replay", path]).code(0).text().contains("10,850 events"));
    run(["book", "show", path]).code(0);
    run(["watch", "replay", path]).code(0);
    let store = dir.path().join("store");
    run(["store", "seal", path, "--store", store.to_str().unwrap()]).code(0);
}

/// A tape that nobody writes is retained by hand; what was before is still accounted for, and a rerun does nothing.
#[test]
fn retain_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let tape = real(dir.path());
    let t = tape.to_str().unwrap();
    run(["tape", "retain", t]).code(2).says(&["--bytes", "--age", "--days"]);
    run(["tape", "retain", t, "--days", "0"]).code(2).says(&["at least 1 day"]);
    run(["tape", "retain", t, "--age", "soon"]).code(2).says(&["`soon`"]);
    let plan = run(["tape", "retain", t, "--bytes", "0", "--dry-run", "--json"]).code(0).json();
    // The segment of the end stays, whatever is asked for, and this tape has no other.
    assert_eq!((&plan["segments"], &plan["oldest"], &plan["dry_run"]), (&0.into(), &0.into(), &true.into()));
    let before = run(["tape", "info", t, "--json"]).code(0).json();
    assert_eq!(before["kept"]["limits"], Value::Null);
    assert_eq!((&before["kept"]["sealed"], &before["kept"]["open"]), (&0.into(), &1.into()));
    run(["tape", "retain", t, "--age", "30d", "--hold-bytes", "1000"]).code(0);
    assert_eq!(run(["tape", "info", t, "--json"]).code(0).json(), before);
    run(["tape", "retain", dir.path().to_str().unwrap(), "--bytes", "1"]).code(1).says(&["not a tape"]);
}
