//! One rule for exit codes: the call 2, the data 3, anything else 1. Before, a wrong scenario and a damaged tape both
//! ended with 1, so that the code did not show what to repair.
#![cfg(unix)]

use crate::common;
use crate::common::inputs;

use inputs::{Inputs, vectors};
use unitape_sim::exchange::ExchangeConfig;

/// Runs a table of lines, each with the exit code that it must have, and reports all that have another.
#[track_caller]
fn check(inputs: &Inputs, code: i32, table: &str) {
    let mut wrong = Vec::new();
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let line = line.strip_prefix("unitape").unwrap().trim();
        let ran = inputs.run(line);
        if ran.code != Some(code) {
            wrong.push(format!("{line}: {:?}, not {code}: {}", ran.code, ran.stderr.trim_end()));
        }
        if code != 0 && ran.stderr.is_empty() && ran.stdout.is_empty() {
            wrong.push(format!("{line}: says nothing"));
        }
        for pattern in RUST {
            if ran.stderr.contains(pattern) && !line.contains(pattern) {
                wrong.push(format!("{line}: Rust's own text ({pattern}): {}", ran.stderr.trim_end()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of these:\n{}", wrong.len(), wrong.join("\n"));
}

/// Words that a message to people must not have: values as Rust prints them for its programmers.
const RUST: [&str; 8] = ["Os {", "Some(", "None", "Err(", "Ok(", "::", "{ ", "panicked"];

#[test]
fn a_wrong_call_is_2() {
    check(
        &Inputs::new(),
        2,
        "unitape
         unitape nope
         unitape tape
         unitape tape cat
         unitape tape cat t --nope
         unitape tape cat t --from x
         unitape tape cat t --from 9 --to 2
         unitape tape cat t --from @900 --to @2
         unitape tape cat t --since noon
         unitape tape cat t --until 2026-02-30
         unitape tape cat t --since 2026-03-03 --until 2026-03-02
         unitape tape cat t --kind nope
         unitape tape cat t --limit x
         unitape tape cat t --schema nope
         unitape tape cat t --schema bbo --schema trades
         unitape tape cat t --schema bbo --kind bbo
         unitape tape cat t --schema bbo --json --csv
         unitape tape cat t --schema bbo --arrow --follow
         unitape tape cat t --csv
         unitape tape cat t --arrow
         unitape tape replay t --speed=-1
         unitape tape replay t --speed=NaN
         unitape tape retain t
         unitape tape retain t --age 3parsecs
         unitape tape retain t --days 0
         unitape quarantine show q
         unitape quarantine show q x
         unitape quarantine show q 1
         unitape store scan s --schema nope
         unitape store scan s --from nope
         unitape store scan s --date 2024-13-01
         unitape store scan s --from 2024-03-12 --to 2024-03-11
         unitape store scan s --schema bbo,trades
         unitape store scan s --csv
         unitape store scan s --parquet
         unitape store scan s --schema bbo --arrow --events
         unitape store export s --schema bbo --format parquet
         unitape store export s --format parquet -o x
         unitape store export s --schema bbo --format parquet -o o.fix
         unitape store export s --schema bbo --format parquet -o dir
         unitape store export s --schema bbo --format parquet --partition date -o dir --force
         unitape store export s --schema bbo,trades --format parquet -o x
         unitape store seal t
         unitape store seal t --store s2 --date x
         unitape store verify s --public-key 5a
         unitape store verify s --at-least x
         unitape status http://127.0.0.1:99999
         unitape breaker
         unitape breaker run t --control c
         unitape breaker list --control c --rules wrong.toml
         unitape breaker trip --control c --tape t --scope nope --reason x --user a
         unitape watch replay ev.jsonl --scenario nope
         unitape watch replay t --scenario nope
         unitape watch replay ev.jsonl --params {nope
         unitape watch replay ev.jsonl --params {\"wash_trade\":{\"nope\":1}}
         unitape watch replay ev.jsonl --params {\"wash_trade\":{\"window_ms\":\"x\"}}
         unitape watch replay ev.jsonl --scenario spoofing --params {\"nope\":1}
         unitape watch replay
         unitape watch list t --scenario nope
         unitape watch list t --key nope=1
         unitape watch list t --since noon
         unitape watch show t
         unitape watch show t x --tape t
         unitape book show t --basis nope
         unitape book show t --at nope
         unitape book show t --at 1 --follow
         unitape book show t --group g
         unitape book show t --depth x
         unitape handler t --config run.toml --venue v
         unitape fx
         unitape fx best
         unitape fx best t --size 1e6
         unitape fx best t --instr EUR
         unitape fx book t --value-date 2026-02-30
         unitape consolidate --tape x
         unitape consolidate o.fix
         unitape consolidate - --tape x
         unitape consolidate pipe --tape x
         unitape consolidate --feed nonsense --tape x
         unitape consolidate --feed a=nope:m:o.fix --tape x
         unitape consolidate --feed a=fix:fix44-orders --tape x
         unitape consolidate --feed a=fix:fix44-orders:o.fix --tape x --workers 0
         unitape consolidate --feed a=fix:fix44-orders:o.fix --tape x --segment-bytes 1000
         unitape consolidate --feed a=fix:fix44-orders:o.fix --tape x --reference-strict
         unitape consolidate --feed a=fix:fix44-orders:o.fix --tape x --reference nonsense
         unitape decode
         unitape decode nope o.fix
         unitape decode fix
         unitape decode fix o.fix --sep @@
         unitape decode fast o.fix
         unitape decode fast o.fix --templates wrong.xml --framing nope
         unitape decode fast o.fix --templates wrong.xml --reset-per-message --reset-per-packet
         unitape decode itch o.fix --framing nope
         unitape decode csv o.fix
         unitape mapping show nope
         unitape mapping show swift-mt --layout
         unitape mapping check fix44-orders o.fix --messages x
         unitape demo --seconds 0
         unitape generate completions nope
         unitape generate market --out d --plant nope=1
         unitape generate market --out d --venues 0
         unitape generate market --out d --days 61
         unitape generate market --out d --date noon
         unitape generate market --out d --full --format fixed
         unitape generate exchange --pcap d.pcap --faults nope
         unitape generate banks --pairs 51
         unitape generate banks --size 1
         unitape generate banks --truth best.jsonl --size 0
         unitape generate banks --truth best.jsonl --spike-banks 0
         unitape calendar days.csv --at 2026-03-02
         unitape calendar days.csv --venue XCME
         unitape calendar days.csv --venue XCME --at noon
         unitape calendar days.csv --venue CME --at 2026-03-02
         unitape calendar days.csv --pair EURUS --at 2026-03-02
         unitape calendar days.csv --venue XCME --pair EURUSD --at 2026-03-02
         unitape bench nope
         unitape run
         unitape run run.toml --workers 0
         unitape run run.toml --segment nope
         unitape config show",
    );
}

#[test]
fn what_lies_outside_the_call_and_the_data_is_1() {
    check(
        &Inputs::new(),
        1,
        "unitape tape cat missing
         unitape tape cat t -o dir
         unitape tape cat t --schema bbo --csv -o dir/missing/x
         unitape tape cat dir
         unitape tape cat o.fix
         unitape tape cat foreign
         unitape tape info foreign
         unitape tape verify missing
         unitape tape retain dir --bytes 1
         unitape quarantine list missing
         unitape quarantine retry missing
         unitape quarantine retry q --mapping missing.toml
         unitape quarantine retry q --mapping wrong.toml
         unitape store seal missing --store x
         unitape store seal t --store dir
         unitape store scan missing
         unitape store export missing --schema mbo --format csv -o x
         unitape store export s --schema mbo --format csv -o missing/x
         unitape store info dir
         unitape store info s --key missing
         unitape store verify missing
         unitape store verify s --key missing
         unitape store verify s --remember text.txt
         unitape store scan s --key text.txt
         unitape store seal t --store s3 --key missing
         unitape breaker run t --rules missing.toml --control c
         unitape breaker run t --rules wrong.toml --control c
         unitape breaker list --control missing
         unitape watch replay missing
         unitape watch replay dir
         unitape watch list missing
         unitape watch list t
         unitape watch show t 1 --tape t
         unitape watch replay ev.jsonl --params missing.toml
         unitape watch replay ev.jsonl --params wrong.toml
         unitape watch replay ev.jsonl --params dir
         unitape book show missing
         unitape fx best missing
         unitape fx book dir
         unitape handler o.fix --config missing.toml
         unitape consolidate missing.fix --tape x
         unitape consolidate dir --tape x
         unitape consolidate --feed a=fix:fix44-orders:missing.fix --tape x
         unitape consolidate --feed a=fix:fix44-orders:dir --tape x
         unitape consolidate --feed a=fix:missing.toml:o.fix --tape x
         unitape consolidate --feed a=fix:wrong.toml:o.fix --tape x
         unitape consolidate --feed a=fix:fix44-orders:o.fix --tape /proc/self/x
         unitape consolidate --feed a=fix:fix44-orders:o.fix --tape foreign
         unitape consolidate wrong.toml --tape x
         unitape consolidate missing.toml --tape x
         unitape decode fix missing
         unitape decode fix dir
         unitape decode fix o.fix --dictionary missing.xml
         unitape decode fix o.fix --dictionary wrong.toml
         unitape decode fast o.fix --templates missing.xml
         unitape decode fast o.fix --templates dir
         unitape decode fast o.fix --templates wrong.xml
         unitape decode fixed o.fix --layout missing.toml
         unitape decode fixed o.fix --layout layout.toml
         unitape decode csv o.fix --layout layout.toml
         unitape decode csv o.fix --layout /dev/zero
         unitape decode fix o.fix --dictionary /dev/zero
         unitape decode fast o.fix --templates /dev/zero
         unitape watch replay ev.jsonl --params /dev/zero
         unitape mapping check missing.toml
         unitape mapping check wrong.toml
         unitape mapping check dir
         unitape mapping check fix44-orders missing.fix
         unitape mapping check fix44-orders dir
         unitape run missing.toml
         unitape run dir
         unitape run typo.toml --check
         unitape config show typo.toml
         unitape demo --dir dir
         unitape demo --dir /proc/self/x
         unitape generate man /proc/self/x
         unitape generate market --out /proc/self/x --events 100
         unitape generate market --out d --control missing
         unitape generate market --out d --control dir
         unitape generate market --out d --control /dev/zero
         unitape generate market --out d --control text.txt
         unitape generate exchange --pcap /proc/self/x --messages 100
         unitape generate banks --out /proc/self/x --events 100
         unitape generate banks --truth /proc/self/x --events 100
         unitape generate banks --truth best.jsonl --calendar missing.csv
         unitape calendar missing.csv --venue XCME --at 2026-03-02
         unitape calendar dir --venue XCME --at 2026-03-02
         unitape calendar text.txt --venue XCME --at 2026-03-02
         unitape calendar cut.gz --venue XCME --at 2026-03-02
         unitape calendar /dev/zero --venue XCME --at 2026-03-02
         unitape bench --render missing.jsonl
         unitape bench fix/orders --quick --dir /proc/self/x",
    );
}

#[test]
fn damaged_missing_and_refused_data_are_3() {
    check(
        &Inputs::new(),
        3,
        "unitape tape cat damaged
         unitape tape cat damaged --schema bbo --csv
         unitape tape cat damaged --schema trades --arrow -o x.arrow
         unitape tape info damaged
         unitape tape replay damaged
         unitape tape verify damaged
         unitape book show damaged
         unitape fx best damaged
         unitape fx book damaged
         unitape watch replay damaged
         unitape store seal damaged --store x
         unitape store info s-damaged
         unitape store scan s-damaged
         unitape store export s-damaged --schema mbo --format csv -o mbo.csv
         unitape store verify s-damaged
         unitape store verify s --at-least 2
         unitape store seal t --store s-damaged
         unitape quarantine list q
         unitape quarantine retry q
         unitape watch replay bad.jsonl
         unitape watch replay text.txt
         unitape decode fix bad.fix
         unitape decode fix text.txt
         unitape decode itch text.txt
         unitape decode swift text.txt
         unitape decode iso20022 text.txt
         unitape decode jsonl text.txt
         unitape decode newsxml text.txt
         unitape decode fixed text.txt --layout nyse-taq-bbo-98
         unitape consolidate --feed a=fix:fix44-orders:bad.fix --tape x1
         unitape consolidate --feed a=fix:fix44-orders:text.txt --tape x2
         unitape consolidate --feed a=fix:fix44-orders:cut.gz --tape x3
         unitape consolidate --feed a=events::text.txt --tape x4
         unitape consolidate --feed a=fix:fix44-orders:o.fix --tape x5 --reference master.jsonl:events
         unitape consolidate text.txt --tape x6
         unitape consolidate cut.gz --tape x7
         unitape consolidate empty --tape x8
         unitape mapping check fix44-orders bad.fix
         unitape bench --render text.txt",
    );
}

/// A cause of each class at once: 1 wins over 3, and a call that is wrong reads nothing.
#[test]
fn the_first_of_several_causes_is_the_one_outside() {
    let inputs = Inputs::new();
    // A part of a tape that is not there is no missing file: data are lost.
    std::fs::remove_file(inputs.path("q/quarantine.raw")).unwrap();
    let position = inputs.run("quarantine list q --json").code(3).json()["position"].to_string();
    inputs.run(&format!("quarantine show q {position}")).code(3).says(&["quarantine.raw", "is missing"]);
    inputs.run("consolidate --feed o=fix:fix44-orders:bad.fix --tape q").code(3).says(&["is missing"]);
    inputs.run("decode fix bad.fix missing").code(1).says(&["missing: No such file"]);
    inputs.run("decode fix bad.fix --sep @@").code(2);
    inputs
        .run("consolidate --feed a=fix:fix44-orders:bad.fix --feed b=fix:fix44-orders:missing --tape x")
        .code(1);
    inputs.shell("unitape tape verify damaged > /dev/full").code(1).says(&["cannot write to stdout"]);
}

/// A handler's configuration, its channels and its captures: the same rule.
#[test]
fn packets_follow_the_rule_too() {
    let inputs = Inputs::new();
    let made = "generate exchange --pcap day.pcap --messages 2000 --options 2";
    inputs.run(made).code(0);
    let text = ExchangeConfig { messages: 2_000, options: 2, ..ExchangeConfig::default() }
        .mapping(|channel| vectors(&format!("fast/box/{}.xml", channel.name())));
    std::fs::write(inputs.path("box.toml"), &text).unwrap();
    std::fs::write(inputs.path("other.toml"), text.replace(":14", ":15")).unwrap();
    inputs.run("handler day.pcap --config box.toml").code(0);
    inputs.run("handler day.pcap --config box.toml --channel nope").code(2).says(&["nope"]);
    inputs.run("handler missing.pcap --config box.toml").code(1);
    inputs.run("handler day.pcap --config wrong.toml").code(1);
    inputs.run("handler o.fix --config box.toml").code(3);
    inputs.run("handler day.pcap --config other.toml").code(3).says(&["they were sent to"]);
}

/// An exhausted resource, or one that somebody else holds, is code 1, whatever was read before.
#[test]
fn a_tape_that_somebody_writes_is_1() {
    let inputs = Inputs::new();
    let id = unitape_tape::info(&inputs.path("t")).unwrap().id;
    let writer =
        unitape_tape::Writer::open(&inputs.path("t"), id, unitape_tape::WriterOptions::default()).unwrap();
    inputs.run("consolidate --feed o=fix:fix44-orders:o.fix --tape t").code(1).says(&["locked"]);
    inputs.run("tape cat t").code(0);
    drop(writer);
    inputs.run("consolidate --feed o=fix:fix44-orders:o.fix --tape t").code(0);
}

#[test]
fn what_went_well_is_0() {
    check(
        &Inputs::new(),
        0,
        "unitape tape cat t
         unitape tape verify t
         unitape tape info t
         unitape tape replay t
         unitape tape retain t --bytes 1000000 --dry-run
         unitape quarantine list t
         unitape store info s
         unitape store verify s
         unitape store verify s --at-least 1 --remember generations
         unitape store scan s
         unitape store scan s --schema trades
         unitape store export s --schema trades --format arrow -o trades.arrows
         unitape store scan s --since 2024-03-12 --until 2024-03-12
         unitape store seal t --store s
         unitape book show t
         unitape fx best t
         unitape fx book t
         unitape watch replay t
         unitape watch replay ev.jsonl
         unitape watch scenarios
         unitape consolidate --feed o=fix:fix44-orders:o.fix --tape t
         unitape decode fix o.fix
         unitape mapping check fix44-orders o.fix
         unitape mapping list
         unitape run run.toml --check
         unitape run run.toml
         unitape config show run.toml --origin
         unitape calendar days.csv --venue XCME --at 2026-03-02
         unitape calendar days.csv --venue XLON --at 1772443800000000000
         unitape calendar days.csv --pair EUR/USD --at -1
         unitape generate man man
         unitape --help
         unitape --version",
    );
}

/// A mistake in a file of TOML is one line: file, line and what is wrong.
#[test]
fn mistakes_in_files_are_one_line() {
    let inputs = Inputs::new();
    common::file(&inputs.path(""), "cut.toml", "name = \"x\"\nformat = \"fix\"\n[[rule]\n");
    for line in [
        "mapping check cut.toml",
        "consolidate cut.toml --tape x",
        "consolidate --feed a=fix:cut.toml:o.fix --tape x",
        "run cut.toml",
        "config show cut.toml",
        "watch replay ev.jsonl --params cut.toml",
        "breaker run t --rules cut.toml --control c",
        "decode fixed o.fix --layout cut.toml",
        "decode csv o.fix --layout cut.toml",
    ] {
        let ran = inputs.run(line).code(1).says(&["cut.toml", "unclosed"]);
        assert_eq!(ran.stderr.lines().count(), 1, "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains('3') && !ran.stderr.contains("\\n"), "{line}: {}", ran.stderr);
    }
}

/// A variable of somebody else in another encoding ended a run before it began.
#[test]
fn the_environment_may_be_in_any_encoding() {
    use std::os::unix::ffi::OsStrExt;
    let inputs = Inputs::new();
    let bytes = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    common::finish(inputs.command("config show run.toml").env("SOMEBODYS", bytes)).code(0);
}
