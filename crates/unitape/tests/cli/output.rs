//! Output and its destination. Control characters of feeds moved the cursor on the terminals of people. A full disk
//! after stdout was no error where the last buffer was dropped. A closed pipe ended some commands with a panic.
#![cfg(unix)]

use crate::common::folder::{CHEAP_PASSWORDS, private_file};
use crate::common::inputs;

use crate::common::{self, Ran, file};
use inputs::{Inputs, every_command, order_of, vectors};
use serde_json::json;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

/// Sets a terminal's title, rings, begins a line of its own, clears the screen by C1 and turns the direction of text.
const HOSTILE: &str = "\x1b]0;x\x07\r\nINJECTED\x7f\u{9b}2J\u{202e}\u{2066}\u{2028}";

/// Asserts that a terminal has nothing to obey in what was printed, and that HOSTILE is in it, shown.
#[track_caller]
fn harmless(ran: &Ran, what: &str) {
    let all = format!("{}{}", std::str::from_utf8(&ran.stdout).unwrap(), ran.stderr);
    let bad = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
    };
    assert!(!all.chars().any(bad), "{what}: {:?}", all.lines().find(|l| l.chars().any(bad)));
    assert!(all.lines().all(|l| !l.trim_start().starts_with("INJECTED")), "{what}: {all}");
    assert!(all.contains("INJECTED"), "{what} does not print it: {all}");
}

fn hostile_events() -> String {
    let h = HOSTILE;
    let name = |prefix: &str| format!("{prefix}{h}");
    let mut ts = 1_772_443_800_000_000_000u64;
    let mut line = |mut value: serde_json::Value| {
        ts += 1_000_000;
        value["ts"] = ts.into();
        format!("{value}\n")
    };
    let mut all = line(
        json!({"kind": "news", "news_id": name("N"), "headline": name("H"), "instrs": [name("I")], "source": name("S")}),
    );
    all += &line(json!({"kind": "comm", "msg_id": name("M"), "channel": "chat", "text": name("T")}));
    for (n, side) in [(1, "B"), (2, "S")] {
        all += &line(
            json!({"kind": "order_new", "venue": name("V"), "instr": name("I"), "oid": name(&n.to_string()), "side": side,
            "px": if side == "B" { "9" } else { "11" }, "qty": "5", "owner": name("W"), "trader": name("T")}),
        );
        // One owner on both sides: an alert.
        all += &line(
            json!({"kind": "exec", "venue": name("V"), "instr": name("I"), "oid": name(&n.to_string()), "side": side,
            "px": "10", "qty": "5", "match_id": "X", "owner": name("W"), "trader": name("T")}),
        );
    }
    all += &line(
        json!({"kind": "bbo", "venue": name("V"), "instr": name("I"), "bid": "10", "bid_qty": "5", "ask": "11", "ask_qty": "5"}),
    );
    all += &line(
        json!({"kind": "quote", "bank": name("B"), "instr": "EURUSD", "side": "B", "px": "1.1", "qty": "5000000", "quote_id": name("Q")}),
    );
    all
}

#[test]
fn what_feeds_say_is_shown_and_not_obeyed() {
    let inputs = Inputs::new();
    let dir = inputs.path("");
    let name = format!("f{HOSTILE}.jsonl");
    let bad = json!({"ts": 1, "kind": format!("k{HOSTILE}")});
    file(&dir, &name, format!("{}{bad}\n", hostile_events()));
    let fix: Vec<u8> =
        (1..4).flat_map(|n| order_of(n, &format!("I{HOSTILE}"), &format!("V{HOSTILE}"))).collect();
    let bad_fix = common::fix(&format!("35=Z{HOSTILE}|49=A|56=B|34=9|52=20260302-00:00:02|"));
    file(&dir, "h.fix", [&fix[..], &bad_fix].concat());
    let encoded: String = HOSTILE.bytes().map(|b| format!("={b:02X}")).collect();
    let mail = format!(
        "From: a@b.example\r\nTo: c@d.example\r\nDate: Mon, 2 Mar 2026 09:30:00 +0000\r\nMessage-ID: <1@b.example>\r\n\
         Subject: =?utf-8?Q?S{encoded}?=\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: quoted-printable\r\n\r\nText {encoded}\r\n"
    );
    file(&dir, "h.eml", mail);
    file(
        &dir,
        "h.xml",
        "<?xml version=\"1.1\"?><rss><channel><item><guid>1</guid><title>T\u{202e}INJECTED</title></item></channel></rss>",
    );
    file(
        &dir,
        "h.rje",
        "{1:F01AAAABBCCAXXX0000000000}{2:I103AAAABBCCXXXXN}{4:\r\n:20:R\x1b]0;xINJECTED\x07\r\n-}",
    );
    // A file is named by its feed, its errors and its alerts.
    let ran = |args: &[&str]| {
        let args: Vec<&std::ffi::OsStr> =
            args.iter().map(|a| std::ffi::OsStr::from_bytes(a.as_bytes())).collect();
        common::finish(common::unitape().args(args).current_dir(&dir))
    };
    let feed = format!("h{}=events::{name}", "");
    harmless(&ran(&["consolidate", &name, "--tape", "h"]).code(3), "consolidate FILE");
    harmless(&ran(&["consolidate", "--feed", &format!("{feed}x"), "--tape", "x"]).code(1), "a missing file");
    harmless(
        &ran(&["consolidate", "--feed", &format!("f=fix:m{HOSTILE}:o.fix"), "--tape", "x"]),
        "a mapping",
    );
    ran(&["consolidate", "--feed", "h=fix:fix44-orders:h.fix", "--tape", "hf"]).code(3);
    ran(&["store", "seal", "h", "--store", "hs"]).code(0);
    let list = ran(&["quarantine", "list", "h", "--json"]).code(3).json();
    let position = list["position"].to_string();
    let missing = format!("gone{HOSTILE}");
    let params = json!({"wash_trade": {(missing.clone()): 1}}).to_string();
    ran(&["watch", "run", "h", "--alerts", "ha", "--until-end"]).code(0);
    let table: [&[&str]; 62] = [
        &["tape", "cat", "h"],
        &["tape", "cat", "h", "--full", "--all"],
        &["tape", "cat", "hf"],
        &["tape", "cat", "h", "--instr", &missing],
        &["tape", "cat", "h", "--venue", "nobody"],
        &["tape", "cat", &missing],
        &["tape", "info", "h"],
        &["tape", "info", &missing],
        &["tape", "verify", &missing],
        &["tape", "cat", "h", "--from", &missing],
        &["tape", "cat", "h", "--kind", &missing],
        &["tape", "cat", "h", "--schema", "bbo"],
        &["tape", "cat", "h", "--schema", &missing],
        &["tape", &missing],
        &["tape", "retain", "h", "--age", &missing],
        &[&missing],
        &["quarantine", "list", "h"],
        &["quarantine", "show", "h", &position],
        &["quarantine", "list", "hf"],
        &["quarantine", "list", &missing],
        &["book", "show", "h"],
        &["book", "show", "h", "--orders"],
        &["book", "bbo", "h"],
        &["book", "show", "h", "--venue", "NBBO", "--symbols", &missing],
        &["book", "show", "h", "--at", &missing],
        &["fx", "best", "h"],
        &["fx", "best", "h", "--instr", &missing],
        &["fx", "book", "h"],
        &["watch", "replay", "h"],
        &["watch", "replay", &name],
        &["watch", "replay", "h", "--scenario", &missing],
        &["watch", "quality", "h"],
        &["watch", "quality", &name],
        &["watch", "list", "ha"],
        &["watch", "list", "ha", "--scenario", &missing],
        &["watch", "show", "ha", "1", "--tape", "h", "--sources", "."],
        &["watch", "replay", "h", "--params", &params],
        &["watch", "replay", "h", "--timeline"],
        &["watch", "replay", &name, "--case", &missing],
        &["store", "scan", "hs"],
        &["store", "scan", "hs", "--symbols", &missing],
        &["store", "scan", "hs", "--schema", "bbo"],
        &["store", "scan", "hs", "--key", &missing],
        &["store", "scan", "hs", "--schema", &missing],
        &["store", "info", &missing],
        &["store", "scan", "hs", "--as-of", &missing],
        &["store", "compact", &missing],
        &["store", "erase", "hs", "--name", &missing],
        &["store", "verify", "hs", "--public-key", &missing],
        &["decode", "jsonl", &name],
        &["decode", "fix", "h.fix"],
        &["decode", "mail", "h.eml"],
        &["decode", "newsxml", "h.xml"],
        &["decode", "swift", "h.rje"],
        &["decode", "fixed", "o.fix", "--layout", &missing],
        &["decode", "fix", &missing],
        &["decode", "fix", "o.fix", "--sep", &missing],
        &["mapping", "check", "fix44-orders", "h.fix"],
        &["mapping", "check", &missing],
        &["mapping", "show", &missing],
        &["run", &missing],
        &["config", "show", &missing],
    ];
    for args in table {
        harmless(&ran(args), &args.join(" "));
    }
}

/// JSON has its own escapes, and raw bytes are raw where a command says so.
#[test]
fn data_stay_as_they_are() {
    let inputs = Inputs::new();
    let dir = inputs.path("");
    file(&dir, "h.jsonl", hostile_events());
    inputs.run("consolidate --feed h=events::h.jsonl --tape h").code(0);
    let events = inputs.run("tape cat h --json --kind news").code(0).lines();
    assert_eq!(events[0]["headline"], format!("H{HOSTILE}"));
    let lines = inputs.run("decode jsonl h.jsonl --json").code(0).lines();
    assert_eq!(lines[0]["fields"]["headline"], format!("H{HOSTILE}"));
    let bad = format!("{}\x1b[2J", "junk");
    file(&dir, "b.jsonl", &bad);
    inputs.run("consolidate --feed b=events::b.jsonl --tape b").code(3);
    let position = inputs.run("quarantine list b --json").code(3).json()["position"].to_string();
    assert_eq!(inputs.run(&format!("quarantine show b {position} --raw")).code(0).stdout, bad.as_bytes());
    let shown = inputs.run(&format!("quarantine show b {position}")).code(0);
    assert!(shown.text().contains(r"junk\x1b[2J"), "{}", shown.text());
}

/// The output of a run while it runs and at its end: names of feeds and why they ended.
#[test]
fn a_run_and_its_configuration_are_harmless() {
    let inputs = Inputs::new();
    let dir = inputs.path("");
    let escaped = HOSTILE.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect::<String>();
    let text = format!(
        "[tape]\ndir = \"r2\"\n[[feed]]\nname = \"o\"\nformat = \"fix\"\nmapping = \"fix44-orders\"\nfiles = [\"INJECTED{escaped}\"]\n"
    );
    file(&dir, "h.toml", &text);
    harmless(&inputs.run("config show h.toml --origin").code(0), "config show");
    harmless(&inputs.run("run h.toml --check").code(1), "run --check");
    harmless(&inputs.run("run h.toml").code(1), "run");
    file(&dir, "n.toml", text.replace("\"o\"", &format!("\"o{escaped}\"")));
    harmless(&inputs.run("run n.toml").code(1), "the name of a feed");
    file(
        &dir,
        "c.toml",
        text.split_once("[[feed]]").unwrap().1.replace("name", "nope").replacen('\n', "[[feed]]\n", 1),
    );
    inputs.run("consolidate c.toml --tape x").code(1).says(&["c.toml:2: "]);
}

/// A line of each command that prints; together they are all there are.
const PRINTS: &str = "
    decode fast FAST
    decode fix o.fix
    decode fix o.fix --json
    decode fixed --layout nyse-taq-bbo-98 text.txt
    decode csv --layout nyse-taq-trades text.txt --json
    decode swift text.txt
    decode itch text.txt
    decode iex text.txt
    decode iso20022 text.txt
    decode jsonl ev.jsonl
    decode mail text.txt
    decode newsxml text.txt --json
    consolidate --feed o=fix:fix44-orders:o.fix --tape t
    consolidate --feed o=fix:fix44-orders:o.fix --tape t --json
    run run.toml
    run run.toml --json
    run run.toml --check
    config show run.toml
    config show run.toml --json
    tape cat t
    tape cat t --json
    tape cat quotes --schema bbo
    tape cat quotes --schema bbo --json
    tape cat quotes --schema bbo --csv
    tape cat quotes --schema bbo --arrow
    tape info t
    tape info t --json
    tape verify t
    tape verify t --json
    tape repair t
    tape repair t --json
    tape hot t
    tape hot t --json
    tape retain t --bytes 1000000 --dry-run
    tape replay t
    tape replay t --json
    store seal t --store s
    store seal t --store s --json
    store scan s
    store scan s --json
    store scan s --schema trades --csv
    store scan s --as-of 1
    store compact s
    store compact s --json
    store erase s --date 1999-01-01
    store erase s --date 1999-01-01 --json
    store rekey s --new-key s.key
    store scan s --schema trades --parquet
    store scan s --schema trades --arrow
    store export s --schema mbo --format parquet -o mbo.parquet --force
    store export s --schema mbo --format csv -o mbo.csv --force --json
    store verify s
    store verify s --json
    store info s
    store info s --json
    quarantine list q
    quarantine list q --json
    quarantine show q ENTRY
    quarantine show q ENTRY --raw
    quarantine show q ENTRY --json
    quarantine retry q
    quarantine retry q --json
    mapping check fix44-orders
    mapping check fix44-orders o.fix
    mapping check fix44-orders o.fix --json
    mapping list
    mapping show fix44-orders
    book show t
    book show t --json
    book bbo t
    book bbo t --csv
    book derive t --tape-out n --json
    book checkpoint t --every 1000
    book picture --help
    handler --help
    fx best quotes
    fx best quotes --json
    fx book quotes
    fx book quotes --json
    watch replay t
    watch replay alert.jsonl --json
    watch replay alert.jsonl --timeline
    watch replay t --timeline
    watch run t --alerts alerts --until-end
    watch run t --alerts alerts --until-end --json
    watch quality w
    watch quality w --json
    watch quality w --csv
    watch list wa
    watch list wa --json
    watch list wa --csv
    watch show wa 1 --tape w
    watch show wa 1 --tape w --json
    watch scenarios
    watch scenarios --json
    user add --help
    user list --users u/users.toml
    user list --users u/users.toml --json
    user password anna --users u/users.toml --password-file anna.pw
    user disable anna --users u/users.toml
    case ingest wa --tape w --cases c
    case ingest wa --tape w --cases c --json
    case list --cases c
    case list --cases c --json
    case show 1 --cases c --tape w
    case show 1 --cases c --tape w --json
    case assign 1 anna --cases c --user anna --password-file anna.pw
    case note 1 text --cases c --user anna --password-file anna.pw
    case note 1 text --cases c --user anna --password-file anna.pw --json
    case escalate --help
    case close --help
    case reopen --help
    case audit verify --cases c
    case audit verify --cases c --json
    breaker run t --rules breakers.toml --control control --until-end
    breaker run t --rules breakers.toml --control control --until-end --json
    breaker list --control control
    breaker list --control control --rules breakers.toml --tape t --json
    calendar days.csv --venue XCME --at 2026-03-02
    calendar days.csv --pair EURUSD --at 2026-03-02
    calendar days.csv --pair EURUSD --at 2026-03-02 --json
    bench --render figures.jsonl
    doctor
    doctor --json
    generate market --out day --events 200
    generate market --out - --events 200
    generate market --out week --events 200 --days 2
    generate exchange --pcap day.pcap --messages 200
    generate banks --events 200
    generate banks --events 200 --out banks.jsonl --truth best.jsonl
    generate bench --events 200 --out -
    generate bench --events 200 --out bench.jsonl
    generate completions bash
    generate completions zsh
    --help
    --version
    tape cat --help";

/// A limit that orders pass.
const BREAKERS: &str = "[[limit]]\nname = 'many'\nscope = 'instr'\nmessages = 1\nwindow = '1h'\n";

/// Two that change what is in force, so that they end differently when they are called again; commands that print nothing to stdout,
/// one that ends only when it is stopped, one that asks it and is in `serve.rs`, one that asks a run, two that the build may lack and
/// that are in `tests/link`, and a slow one, which is in `the_demo_ends_as_the_others_do`.
const OTHERS: [&str; 10] = [
    "breaker trip",
    "breaker reset",
    "generate man",
    "case export",
    "serve",
    "get",
    "status",
    "link send",
    "link receive",
    "demo",
];

fn prints(inputs: &Inputs) -> Vec<String> {
    let position = inputs.run("quarantine list q --json").json()["position"].to_string();
    let fast = format!(
        "--templates {} --framing hexlines {}",
        vectors("fast/box/incremental.xml"),
        inputs.path("text.txt").display()
    );
    file(&inputs.path(""), "alert.jsonl", hostile_events());
    inputs.run("consolidate --feed h=events::alert.jsonl --tape quotes").code(0);
    prepare_cases(inputs);
    file(&inputs.path(""), "breakers.toml", BREAKERS);
    let figures = vectors("../bench/record");
    let figures = std::fs::read_dir(figures).unwrap().map(|e| e.unwrap().path());
    let figures = figures.filter(|p| p.extension().is_some_and(|e| e == "jsonl")).min().unwrap();
    std::fs::copy(figures, inputs.path("figures.jsonl")).unwrap();
    let line = |line: &str| line.trim().replace("FAST", &fast).replace("ENTRY", &position);
    PRINTS.lines().filter(|l| !l.trim().is_empty()).map(line).collect()
}

/// Makes a tape `w` with alerts `wa`, cases `c` of them, and the user anna beside them and in `u/users.toml`.
fn prepare_cases(inputs: &Inputs) {
    inputs.run(&format!("consolidate {} --tape w", vectors("watch/wash_trade.jsonl"))).code(0);
    inputs.run("watch run w --alerts wa --until-end").code(0);
    private_file(&inputs.path("anna.pw"), "correct horse battery\n");
    inputs.run("case ingest wa --tape w --cases c").code(0);
    // Actions are many here, and a password that costs nothing to compare is enough.
    private_file(&inputs.path("c/users.toml"), CHEAP_PASSWORDS);
    for users in ["c/users.toml", "u/users.toml"] {
        inputs.run(&format!("user add anna --role analyst --password-file anna.pw --users {users}")).code(0);
    }
}

#[test]
fn the_table_has_every_command() {
    let inputs = Inputs::new();
    let lines = prints(&inputs);
    let missing: Vec<String> = every_command()
        .into_iter()
        .filter(|c| {
            !OTHERS.contains(&c.as_str())
                && !lines.iter().any(|line| format!("{line} ").starts_with(&format!("{c} ")))
        })
        .collect();
    assert!(missing.is_empty(), "no line of {missing:?}");
    for line in &lines {
        let ran = inputs.run(line);
        assert!(!ran.stdout.is_empty(), "{line} prints nothing: {}", ran.stderr);
    }
}

/// Paragraphs that were broken in the source and again at the width of the terminal had lines of two words.
#[test]
fn no_paragraph_of_help_is_wrapped_in_the_source() {
    let mut summaries = Vec::new();
    let leaves = every_command();
    let parents = leaves.iter().filter_map(|command| command.rsplit_once(' ')).map(|(parent, _)| parent);
    let commands: BTreeSet<&str> = leaves.iter().map(String::as_str).chain(parents).chain([""]).collect();
    for command in commands {
        let mut call = common::unitape();
        call.env("COLUMNS", "10000").args(command.split_whitespace()).arg("--help");
        let help = common::finish(&mut call).code(0);
        let lines: Vec<&str> = help.text().lines().collect();
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        let broken =
            lines.windows(2).find(|pair| is_prose(pair[1]) && is_prose(pair[0]) && !pair[0].ends_with(':'));
        assert_eq!(broken, None, "{command}");
        let listed = lines.iter().skip_while(|line| **line != "Commands:").skip(1);
        let listed = listed.take_while(|line| line.starts_with("  "));
        summaries.extend(listed.filter_map(|line| Some(line.trim().split_once("  ")?.1.trim().to_owned())));
    }
    assert!(summaries.len() > 40, "{}", summaries.len());
    let is_imperative = |summary: &str| VERBS.contains(&summary.split([' ', ':', ',']).next().unwrap());
    let others: Vec<String> = summaries.into_iter().filter(|summary| !is_imperative(summary)).collect();
    assert!(others.is_empty(), "{others:#?}");
}

/// The verbs that begin a summary of a command.
const VERBS: &[&str] = &[
    "Add", "Check", "Decode", "Disable", "Draw", "Follow", "Generate", "Get", "Give", "Halt", "Hand", "End",
    "Erase", "List", "Make", "Measure", "Open", "Print", "Propose", "Put", "Remove", "Repair", "Replay",
    "Report", "Retry", "Run", "Seal", "Send", "Serve", "Show", "Turn", "Verify", "Write",
];

/// A reader that has seen enough: exit code 0 and not a word.
#[test]
fn a_closed_stdout_ends_every_command_quietly() {
    let inputs = Inputs::new();
    let mut wrong = Vec::new();
    for line in prints(&inputs) {
        let ran = with_closed_stdout(&inputs, &line);
        if ran.code != Some(0) || !ran.stderr.is_empty() {
            wrong.push(format!("{line}: {:?}: {}", ran.code, ran.stderr));
        }
        // `2>&1 |`: nobody reads stderr either.
        let mut both = inputs.command(&line);
        let [out, err] = [(); 2].map(|()| std::io::pipe().unwrap().1);
        let code = both.stdin(Stdio::null()).stdout(out).stderr(err).status().unwrap().code();
        if code != Some(0) {
            wrong.push(format!("{line} 2>&1: {code:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn with_closed_stdout(inputs: &Inputs, line: &str) -> Ran {
    // Its reading end is gone before the command begins.
    let (_, writer) = std::io::pipe().unwrap();
    let mut command = inputs.command(line);
    let output = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn a_full_stdout_is_an_error_of_every_command() {
    let inputs = Inputs::new();
    let mut wrong = Vec::new();
    for line in prints(&inputs) {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = inputs.command(&line).stdin(Stdio::null()).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != Some(1) || !stderr.contains("cannot write to stdout: No space left") {
            wrong.push(format!("{line}: {:?}: {stderr}", output.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Descriptors that are not there at all: no panic, no file opened in their place, the same exit code.
#[test]
fn closed_descriptors_do_no_harm() {
    let inputs = Inputs::new();
    let mut wrong = Vec::new();
    for line in prints(&inputs) {
        let code = inputs.run(&line).code;
        for closed in [">&-", "2>&-", "<&-", ">&- 2>&- <&-"] {
            let ran = inputs.shell(&format!("unitape {line} {closed}"));
            if ran.code != code || ran.stderr.contains("panicked") {
                wrong.push(format!("{line} {closed}: {:?}, not {code:?}: {}", ran.code, ran.stderr));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let ran = inputs.shell("unitape decode fix - --json <&-").code(0).says(&["no messages in stdin"]);
    assert!(ran.stdout.is_empty());
    // May be read and not written: the output would be lost.
    inputs.shell("unitape tape cat t 1< /dev/null").code(1).says(&["cannot write to stdout"]);
}

/// A short reader in a shell, as people write it.
#[test]
fn a_pipe_to_head_is_quiet() {
    let inputs = Inputs::new();
    let fast = prints(&inputs).remove(0);
    let bench = "bench --quick --json farm/empty sim/events";
    for line in [&fast, "generate completions bash", "tape cat t --json", "mapping show fix44-orders", bench]
    {
        let ran = inputs.shell(&format!("set -o pipefail; unitape {line} | head -n 1 > /dev/null"));
        assert!(matches!(ran.code, Some(0 | 3)) && !ran.stderr.contains("pipe"), "{line}: {ran:?}");
        assert!(!ran.stderr.contains("panicked"), "{line}: {ran:?}");
    }
}

#[test]
fn the_demo_ends_as_the_others_do() {
    let inputs = Inputs::new();
    let ran = with_closed_stdout(&inputs, "demo --seconds 1 --dir demo");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    inputs.shell("unitape demo --seconds 1 --dir demo > /dev/full").code(1).says(&["cannot write to stdout"]);
}
