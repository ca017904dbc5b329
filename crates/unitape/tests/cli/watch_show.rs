//! `unitape watch list` and `unitape watch show`: from an alert tape to the bytes of the source files. Alerts were JSON on one
//! line, and nobody could see against which thresholds they were measured.

use crate::common::folder::Folder;
use crate::common::run::Bench;
use crate::common::{self, Ran, cat, file, finish, root, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A folder with a tape `tape` and its alerts `alerts`.
struct Watched {
    folder: Folder,
}

impl Watched {
    /// Puts the suite of a scenario onto the tape, as a file of the feed in the folder `in`, and watches it.
    fn of_suite(scenario: &str, options: &[&str]) -> Self {
        let this = Self { folder: Folder::new() };
        std::fs::create_dir(this.path("in")).unwrap();
        let name = format!("{scenario}.jsonl");
        std::fs::copy(root().join("vectors/watch").join(&name), this.path("in").join(&name)).unwrap();
        let feed = format!("day=events:{}", this.path("in").join(&name).display());
        run(["consolidate", "--feed", &feed, "--tape", &this.text("tape")]).code(0);
        this.watch(options).code(0);
        this
    }

    /// A flow of orders with planted wash trades on a tape of small segments, not yet watched.
    fn of_flow() -> Self {
        let this = Self { folder: Folder::new() };
        std::fs::create_dir(this.path("in")).unwrap();
        let orders = file(&this.path("in"), "o.fix", common::flow(21, 6_000, false).0);
        let feed = common::orders_option("orders", &orders);
        run(["consolidate", "--feed", &feed, "--tape", &this.text("tape"), "--segment-bytes", "262144"])
            .code(0);
        this
    }

    fn watch(&self, options: &[&str]) -> Ran {
        let (tape, alerts) = (self.text("tape"), self.text("alerts"));
        run(["watch", "run", &tape, "--alerts", &alerts, "--until-end"].iter().chain(options))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    fn text(&self, name: &str) -> String {
        self.folder.text(name)
    }

    fn list(&self, options: &[&str]) -> Ran {
        run(["watch", "list", &self.text("alerts")].iter().chain(options))
    }

    fn listed(&self, options: &[&str]) -> Vec<Value> {
        self.list(&[&["--json"], options].concat()).code(0).lines()
    }

    fn show(&self, number: u64, options: &[&str]) -> Ran {
        let (alerts, tape, number) = (self.text("alerts"), self.text("tape"), number.to_string());
        run(["watch", "show", &alerts, &number, "--tape", &tape].iter().chain(options))
    }

    fn shown(&self, number: u64, options: &[&str]) -> Value {
        self.show(number, &[&["--json"], options].concat()).code(0).json()
    }

    /// The alerts of a replay of the tape.
    fn replayed(&self, options: &[&str]) -> Vec<Value> {
        let mut lines =
            run(["watch", "replay", &self.text("tape"), "--json"].iter().chain(options)).code(0).lines();
        lines.retain(|line| line["counters"].is_null());
        lines
    }
}

/// Leaves the fields of an alert that `watch replay --json` prints.
fn as_replayed(alert: &Value) -> Value {
    let names = ["scenario", "ts", "trigger_seq", "key", "detail"];
    names
        .iter()
        .map(|name| ((*name).to_owned(), alert[name].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The cells of CSV lines by the names in the header.
fn csv_rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut records = text.lines().map(|line| {
        let (mut cells, mut is_quoted) = (vec![String::new()], false);
        let mut rest = line.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '"' if is_quoted && rest.peek() == Some(&'"') => {
                    cells.last_mut().unwrap().push(rest.next().unwrap())
                }
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => cells.push(String::new()),
                c => cells.last_mut().unwrap().push(c),
            }
        }
        cells
    });
    let header = records.next().unwrap();
    records.map(|cells| header.iter().cloned().zip(cells).collect()).collect()
}

/// The line of a source file that has this part.
fn source_line(text: &str, seq_of_event: usize) -> &str {
    text.lines().filter(|line| line.contains(r#""rec": "event""#)).nth(seq_of_event - 1).unwrap()
}

/// Spoofing, a wash trade and a payment: what the list and the page of an alert say is what the replay found, what the tape has
/// and what the source file has.
#[test]
fn an_alert_is_shown_from_its_thresholds_to_the_bytes_of_its_source() {
    for (scenario, has_book) in [("spoofing", true), ("wash_trade", true), ("payments_structuring", false)] {
        let watched = Watched::of_suite(scenario, &["--scenario", scenario]);
        let alerts = watched.replayed(&["--scenario", scenario]);
        assert!(!alerts.is_empty());
        let listed = watched.listed(&[]);
        assert_eq!(listed.iter().map(as_replayed).collect::<Vec<_>>(), alerts, "{scenario}");
        let recorded = cat(&watched.path("alerts"), &["--kind", "alert"]);
        for (alert, recorded) in listed.iter().zip(&recorded) {
            for (name, name_on_tape) in [
                ("number", "seq"),
                ("source_tape", "source_tape"),
                ("rule_version", "rule_version"),
                ("params_hash", "params_hash"),
                ("trigger_position", "trigger_position"),
            ] {
                assert_eq!(alert[name], recorded[name_on_tape], "{scenario}: {name}");
            }
        }
        let rows = csv_rows(watched.list(&["--csv"]).code(0).text());
        assert_eq!(rows.len(), listed.len());
        for (row, alert) in rows.iter().zip(&listed) {
            for (name, cell) in row.iter().filter(|(name, _)| !matches!(&***name, "who" | "what")) {
                let parsed = serde_json::from_str(cell).ok().filter(|_| !alert[name].is_string());
                assert_eq!(
                    parsed.unwrap_or_else(|| Value::from(cell.as_str())),
                    alert[name],
                    "{scenario}: {name}"
                );
            }
        }

        let source = std::fs::read_to_string(watched.path("in").join(format!("{scenario}.jsonl"))).unwrap();
        let events = cat(&watched.path("tape"), &[]);
        for alert in &listed {
            let number = alert["number"].as_u64().unwrap();
            let shown = watched.shown(number, &["--sources", &watched.text("in")]);
            assert_eq!(as_replayed(&shown), as_replayed(alert));
            assert_eq!(
                (&shown["parameters_from"], &shown["has_same_rule"]),
                (&"defaults".into(), &true.into())
            );
            let evidence = shown["evidence"].as_array().unwrap();
            assert!(evidence.iter().any(|line| line["seq"] == alert["trigger_seq"]));
            for line in evidence {
                let seq = line["seq"].as_u64().unwrap() as usize;
                assert_eq!(line["event"], events[seq - 1]);
                let wanted = source_line(&source, seq);
                assert_eq!(line["source"]["text"], wanted, "{scenario}: event {seq}");
                let offset = line["source"]["offset"].as_u64().unwrap() as usize;
                assert!(source[offset..].starts_with(wanted));
                assert_eq!(line["source"]["is_framed"], true);
            }
            assert_eq!(shown["without_books"].is_null(), has_book, "{shown}");
        }
    }
}

/// What a person reads: each column of the list, and each part of the page.
#[test]
fn people_get_a_table_and_a_page() {
    let watched = Watched::of_suite("spoofing", &["--scenario", "spoofing"]);
    let table = watched.list(&["--limit", "1"]).code(0);
    let lines: Vec<&str> = table.text().lines().collect();
    let position = |word: &str| lines[0].find(word).unwrap();
    assert_eq!(lines.len(), 2, "{}", table.text());
    for (column, text) in [
        ("time", "2024-03-11 14:30:02.210000000  "),
        ("scenario", "spoofing  "),
        ("who", "owner ACME  "),
        ("what", "venue XLON, instr GB00B03MLX29, side B  "),
        ("event", "event 7  "),
        ("detail", "qty 20000, px 2499.5, executed_opposite 2000, filled 0"),
    ] {
        assert!(lines[1][position(column)..].starts_with(text), "{column}: {}", table.text());
    }
    table.says(&["--limit left out"]);

    let page = watched.show(1, &["--sources", &watched.text("in"), "--depth", "1"]).code(0);
    for text in [
        "alert 1: 2024-03-11 14:30:02.210000000  spoofing, event 7\nSpoofing (one large non-bona-fide order): ",
        "    owner ACME\n    venue XLON\n",
        "measured against thresholds, the defaults:\n    max_life_ms = 5000 ms: ",
        "    life_ns 2.2 s\n",
        "order_cancel oid=S1 side=B",
        "spoofing.jsonl, byte ",
        r#": {"rec": "event", "seq": 7, "ts": 1710167402210000000, "kind": "order_cancel", "oid": "S1""#,
        "book before event 7: GB00B03MLX29 at XLON",
        "book after event 7: GB00B03MLX29 at XLON",
    ] {
        assert!(page.text().contains(text), "no {text:?} in:\n{}", page.text());
    }
    assert!(!page.text().contains("positions"), "the evidence is shown apart");
}

#[test]
fn the_list_chooses_by_scenario_time_and_key() {
    let watched = Watched::of_suite("wash_trade", &[]);
    let all = watched.listed(&[]);
    let numbers = |options: &[&str]| -> Vec<u64> {
        watched.listed(options).iter().map(|alert| alert["number"].as_u64().unwrap()).collect()
    };
    let chosen = |has: &dyn Fn(&Value) -> bool| -> Vec<u64> {
        all.iter().filter(|alert| has(alert)).map(|alert| alert["number"].as_u64().unwrap()).collect()
    };
    assert!(all.len() > 2, "{} alerts", all.len());
    assert_eq!(numbers(&["--scenario", "wash_trade"]), chosen(&|alert| alert["scenario"] == "wash_trade"));
    let ts = all[1]["ts"].as_i64().unwrap();
    let time = ts.to_string();
    assert_eq!(numbers(&["--since", &time]), chosen(&|alert| alert["ts"].as_i64() >= Some(ts)));
    assert_eq!(numbers(&["--until", &time]), chosen(&|alert| alert["ts"].as_i64() < Some(ts)));
    let group = all[0]["key"]["group"].as_str().unwrap();
    let of_group = chosen(&|alert| alert["key"]["group"] == group);
    assert_eq!(numbers(&["--key", &format!("group={group}")]), of_group);
    assert_eq!(numbers(&["--key", "group=nobody", "--key", &format!("group={group}")]), of_group);
    assert_eq!(
        numbers(&["--symbols", "GB00B03MLX29"]),
        chosen(&|alert| alert["key"]["instr"] == "GB00B03MLX29")
    );
    assert_eq!(numbers(&["--limit", "2"]).len(), 2);
    // An alert whose key has no venue is of none.
    assert_eq!(numbers(&["--venue", "XLON", "--scenario", "wash_trade"]), Vec::<u64>::new());
    let written = watched.text("list.csv");
    assert!(watched.list(&["--csv", "-o", &written]).code(0).stdout.is_empty());
    assert_eq!(csv_rows(&std::fs::read_to_string(&written).unwrap()).len(), all.len());

    watched.list(&["--key", "group=nobody"]).code(0).says(&["no alerts: none of the"]);
    watched.list(&["--scenario", "wash_trad"]).code(2).says(&["did you mean `wash_trade`?"]);
    watched.list(&["--key", "ownr=ACME"]).code(2).says(&["did you mean `owner`?"]);
    watched.list(&["--key", "owner"]).code(2).says(&["NAME=VALUE"]);
    watched.list(&["--since", "2026-03-03", "--until", "2026-03-02"]).code(2);
}

/// A payment names two accounts, and the key's list of owners is more than one name.
#[test]
fn one_of_several_owners_chooses_an_alert() {
    let line = |n: u64, kind: &str, fields: &str| {
        format!(r#"{{"ts":{},"kind":"{kind}","venue":"XLON","instr":"VOD",{fields}}}"#, n * 100_000_000)
            + "\n"
    };
    let mut text = String::new();
    for n in 0..3 {
        let start = 1 + n * 100;
        for (offset, side, owner) in [(0, "B", "A"), (1, "S", "B")] {
            let order =
                format!(r#""oid":"{owner}{n}","side":"{side}","px":"10","qty":"5","owner":"{owner}""#);
            text += &line(start + offset, "order_new", &order);
        }
        for (side, owner) in [("B", "A"), ("S", "B")] {
            let fields = format!(
                r#""oid":"{owner}{n}","match_id":"M{n}","side":"{side}","px":"10","qty":"5","owner":"{owner}""#
            );
            text += &line(start + 2, "exec", &fields);
        }
    }
    let watched = Watched { folder: Folder::new() };
    let lines = file(&watched.path(""), "o.jsonl", text);
    run(["consolidate", lines.to_str().unwrap(), "--tape", &watched.text("tape")]).code(0);
    watched.watch(&["--scenario", "prearranged"]).code(0);
    let alerts = watched.listed(&[]);
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert_eq!(watched.listed(&["--key", "owners=B"]), alerts);
    assert_eq!(watched.listed(&["--key", "owners=C"]), Vec::<Value>::new());
    let table = watched.list(&[]).code(0);
    assert!(table.text().contains("owners A + B"), "{}", table.text());
}

/// The values of other parameters than those that gave the alert would explain it wrongly.
#[test]
fn parameters_are_shown_only_if_they_gave_the_alert() {
    let given = r#"{"min_ratio": 4}"#;
    let watched = Watched::of_suite("spoofing", &["--scenario", "spoofing", "--params", given]);
    let hash = watched.listed(&[])[0]["params_hash"].as_str().unwrap().to_owned();
    for options in [&[][..], &["--params", r#"{"min_ratio": 3}"#]] {
        let shown = watched.shown(1, options);
        assert_eq!((&shown["parameters"], &shown["parameters_from"]), (&Value::Null, &Value::Null));
        let page = watched.show(1, options).code(0);
        assert!(page.text().contains(&format!("not known: their hash is {hash}; give the parameters")));
    }
    let both = r#"{"spoofing": {"min_ratio": 4}, "wash_trade": {"window_ms": 1}}"#;
    let params = file(&watched.path(""), "params.json", both);
    for given in [given, both, params.to_str().unwrap()] {
        let shown = watched.shown(1, &["--params", given]);
        assert_eq!(shown["parameters_from"], "params");
        let ratio =
            shown["parameters"].as_array().unwrap().iter().find(|p| p["name"] == "min_ratio").unwrap();
        assert_eq!(ratio["value"], 4);
    }
    watched.show(1, &["--params", r#"{"min_rato": 4}"#]).code(2).says(&["did you mean `min_ratio`?"]);
}

/// A file that is not the file that was read must not pass for evidence.
#[test]
fn a_changed_and_a_missing_source_file_are_named() {
    let watched = Watched::of_suite("spoofing", &["--scenario", "spoofing"]);
    let sources = watched.text("in");
    let path = watched.path("in/spoofing.jsonl");
    let intact = std::fs::read(&path).unwrap();
    let missing_of = |options: &[&str]| {
        let ran = watched.show(1, &[&["--json", "--sources", &sources], options].concat());
        let ran = ran.code(3).says(&["spoofing.jsonl"]);
        let shown = ran.json();
        let lines = shown["evidence"].as_array().unwrap().clone();
        for line in &lines {
            assert!(line["event"].is_object() && line["source"]["text"].is_null(), "{line}");
        }
        lines[0]["source"]["missing"].as_str().unwrap().to_owned()
    };
    // A digit of the last byte, far from the evidence.
    let mut changed = intact.clone();
    let last = changed.len() - 3;
    changed[last] ^= 1;
    std::fs::write(&path, &changed).unwrap();
    assert!(missing_of(&[]).contains("the file has changed"));
    std::fs::write(&path, &intact[..intact.len() / 2]).unwrap();
    assert!(missing_of(&[]).contains("the file has changed"));
    std::fs::remove_file(&path).unwrap();
    assert!(missing_of(&[]).contains("the file is missing"));
    // Where each feed has a directory of its own.
    std::fs::create_dir(watched.path("in/day")).unwrap();
    std::fs::write(watched.path("in/day/spoofing.jsonl"), &intact).unwrap();
    let shown = watched.shown(1, &["--sources", &sources]);
    assert!(shown["evidence"][0]["source"]["text"].is_string(), "{shown}");
    // A file that grew after it was read still has the part.
    std::fs::write(watched.path("in/day/spoofing.jsonl"), [&intact[..], b"more\n"].concat()).unwrap();
    assert_eq!(watched.shown(1, &["--sources", &sources])["evidence"][0]["source"]["missing"], Value::Null);
}

/// A file of a directory that a run reads has its hash in the marks of progress alone.
#[test]
fn the_bytes_of_a_followed_directory_are_found() {
    let bench = Bench::new("", &[("a", "directory = \"in\"\nfollow = false")]);
    std::fs::create_dir(bench.path("in")).unwrap();
    let orders = common::flow(21, 6_000, false).0;
    let path = file(&bench.path("in"), "o.fix", &orders);
    finish(bench.command().arg("--json")).code(0);
    let (tape, alerts) = (bench.tape(), bench.path("alerts"));
    let [tape, alerts] = [&tape, &alerts].map(|path| path.to_str().unwrap());
    run(["watch", "run", tape, "--alerts", alerts, "--until-end", "--scenario", "wash_trade"]).code(0);
    let sources = bench.path("in");
    let show =
        ["watch", "show", alerts, "1", "--tape", tape, "--json", "--sources", sources.to_str().unwrap()];
    let shown = run(show).code(0).json();
    for line in shown["evidence"].as_array().unwrap() {
        let text = line["source"]["text"].as_str().unwrap();
        let offset = line["source"]["offset"].as_u64().unwrap() as usize;
        assert_eq!(text.as_bytes(), &orders[offset..][..text.len()]);
        let oid = line["event"]["oid"].as_str().unwrap();
        assert!(
            text.starts_with("8=FIX") && text.contains(oid) && text.matches("8=FIX").count() == 1,
            "{text}"
        );
    }
    let mut changed = orders.clone();
    changed[20] ^= 1;
    std::fs::write(path, changed).unwrap();
    run(show).code(3).says(&["o.fix: the file has changed"]);
}

#[test]
fn removed_evidence_and_unseen_parts_are_named() {
    let watched = Watched::of_flow();
    watched.watch(&[]).code(0);
    assert!(watched.listed(&[]).len() > 2);
    watched.show(1, &[]).code(0);
    run(["tape", "retain", &watched.text("tape"), "--bytes", "300000"]).code(0);
    let shown = watched
        .show(1, &["--json", "--sources", &watched.text("in")])
        .code(3)
        .says(&["not on the tape any more"])
        .json();
    let missing = shown["evidence"][0]["missing"].as_str().unwrap();
    assert!(missing.starts_with("retention has removed it"), "{missing}");
    assert!(shown["without_books"].as_str().unwrap().contains("retention"), "{shown}");

    // A watch that begins now is blind for that part, and the list says so.
    std::fs::rename(watched.path("alerts"), watched.path("earlier")).unwrap();
    _ = std::fs::remove_dir_all(watched.path("alerts.state"));
    watched.watch(&[]).code(3);
    let blind = cat(&watched.path("alerts"), &["--kind", "control"]);
    let ran =
        watched.list(&["--json"]).code(0).says(&["the watch was blind (retention)", "alerts may be missing"]);
    let lines = ran.lines();
    let object = lines.iter().find(|line| line["action"] == "blind").unwrap();
    assert_eq!(
        (&object["number"], &object["detail"], &object["reason"]),
        (&blind[0]["seq"], &blind[0]["detail"], &json!("retention"))
    );
    let number = object["number"].as_u64().unwrap();
    watched.show(number, &[]).code(2).says(&["is no alert", "blind"]);
}

#[test]
fn wrong_tapes_and_wrong_numbers_are_refused() {
    let watched = Watched::of_suite("spoofing", &["--scenario", "spoofing"]);
    let tape = watched.text("tape");
    for words in [&["list", &tape][..], &["show", &tape, "1", "--tape", &tape]] {
        run(["watch"].iter().chain(words)).code(1).says(&[
            "this is a tape of the market: its first event is of the kind ref",
            "no alert tape; name the directory that `unitape watch run --alerts DIR` writes",
        ]);
    }
    let other = watched.text("other");
    let suite = root().join("vectors/watch/wash_trade.jsonl");
    run(["consolidate", suite.to_str().unwrap(), "--tape", &other]).code(0);
    run(["watch", "show", &watched.text("alerts"), "1", "--tape", &other])
        .code(3)
        .says(&["this is the tape", "and alert 1 is of the tape"]);
    watched.show(999, &[]).code(2).says(&["no alert 999", "unitape watch list"]);
    watched.show(0, &[]).code(2);
    run(["watch", "list", &watched.text("none")]).code(1);

    // A quiet tape is no error, and says so.
    let quiet = watched.text("quiet");
    let empty = file(&watched.path(""), "e.jsonl", "{\"ts\":1,\"kind\":\"clock\"}\n");
    run(["consolidate", empty.to_str().unwrap(), "--tape", &watched.text("e")]).code(0);
    run(["watch", "run", &watched.text("e"), "--alerts", &quiet, "--until-end"]).code(0);
    let ran = run(["watch", "list", &quiet]).code(0).says(&["no alerts: the alert tape has none"]);
    assert!(ran.stdout.is_empty());
}

/// Alerts before the damage, none behind it, and exit code 3.
#[test]
fn a_damaged_alert_tape_is_listed_up_to_the_damage() {
    let watched = Watched::of_flow();
    watched.watch(&[]).code(0);
    let all = watched.listed(&[]);
    let last = all.last().unwrap();
    let full = cat(&watched.path("alerts"), &["--full", "--kind", "alert"]);
    damage(&watched.path("alerts"), full.last().unwrap()["position"].as_u64().unwrap());
    let ran = watched.list(&["--json"]).code(3).says(&["0000000000000000.seg"]);
    let lines = ran.lines();
    assert!(lines.len() < all.len() && lines == all[..lines.len()], "{} of {}", lines.len(), all.len());
    // Without the checksums the damage is in the event itself.
    let unchecked = watched.list(&["--json", "--no-verify"]).lines();
    assert_eq!(unchecked[..all.len() - 1], all[..all.len() - 1]);
    watched.show(last["number"].as_u64().unwrap(), &[]).code(3).says(&["0000000000000000.seg"]);
}

/// Overwrites a byte of the frame at this position of a tape of one segment.
fn damage(tape: &Path, position: u64) {
    let segment = tape.join("segments/0000000000000000.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[4096 + position as usize + 60] ^= 0x55;
    std::fs::write(&segment, bytes).unwrap();
}

/// A missing value was counted by scenario alone: nobody could see which feed and mapping lacked it.
#[test]
fn the_quality_report_names_field_kind_feed_and_mapping() {
    let folder = Folder::new();
    let order = |ts: u64, oid: &str, more: &str| {
        format!(
            r#"{{"ts":{ts},"kind":"order_new","venue":"X","instr":"VOD","oid":"{oid}","side":"B","px":"1","qty":"1"{more}}}"#
        )
    };
    let trader = r#","trader":"T1""#;
    let a = [order(10, "1", ""), order(20, "2", trader), order(30, "3", "")].join("\n");
    let b = [order(40, "4", trader), order(50, "5", "")].join("\n");
    let mut arguments = vec!["consolidate".to_owned(), "--tape".to_owned(), folder.text("tape")];
    for (feed, text) in [("a", &a), ("b", &b)] {
        std::fs::write(folder.path(&format!("{feed}.jsonl")), text).unwrap();
        arguments.push("--feed".to_owned());
        arguments.push(format!("{feed}=events:{}", folder.text(&format!("{feed}.jsonl"))));
    }
    run(&arguments).code(0);
    let quality = |input: &str, options: &[&str]| {
        let input = folder.text(input);
        let scenario = ["--scenario", "order_to_trade_ratio"];
        run(["watch", "quality", &input].iter().chain(&scenario).chain(options)).code(0)
    };
    let row = |feed: Value, events: u64, of_kind: u64| {
        let format = if feed.is_null() { Value::Null } else { "events".into() };
        json!({
            "missing": "trader", "kind": "order_new", "feed": feed, "format": format, "mapping": null,
            "events": events, "of_kind": of_kind, "scenarios": {"order_to_trade_ratio": events},
        })
    };
    let totals = |events: u64| json!({"totals": {"events": events, "scenarios": 1}});
    assert_eq!(
        quality("tape", &["--json"]).lines(),
        [row("a".into(), 2, 3), row("b".into(), 1, 2), totals(5)]
    );
    assert_eq!(quality("tape", &["--json", "--from", "4"]).lines(), [row("b".into(), 1, 2), totals(2)]);
    assert_eq!(quality("a.jsonl", &["--json"]).lines(), [row(Value::Null, 2, 3), totals(3)]);
    assert_eq!(
        quality("tape", &["--csv"]).text(),
        "missing,kind,feed,format,mapping,events,of_kind,scenarios\n\
         trader,order_new,a,events,,2,3,order_to_trade_ratio\ntrader,order_new,b,events,,1,2,order_to_trade_ratio\n"
    );
    let table = quality("tape", &[]);
    let lines: Vec<Vec<&str>> = table.text().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["missing", "kind", "feed", "mapping", "events", "of", "share", "scenarios"]);
    assert_eq!(
        lines[1],
        ["trader", "order_new", "a", "events", "2", "3", "66.7", "%", "order_to_trade_ratio"]
    );
    // An order to a scenario that needs no trader lacks nothing.
    let silent = run(["watch", "quality", &folder.text("tape"), "--scenario", "payments_round"]).code(0);
    assert_eq!(silent.text(), "");
    assert!(silent.stderr.contains("no missing values: 1 scenario over 5 events"), "{}", silent.stderr);
    let refused = run(["watch", "quality", &folder.text("a.jsonl"), "--from", "2"]).code(2);
    assert!(refused.stderr.contains("choose a part of a tape"), "{}", refused.stderr);
    run(["watch", "quality", &folder.text("tape"), "--limit", "2"]).code(2);
}
