//! `unitape breaker`: limits that trip, a control tape that survives any kill, and the persons who trip and reset.

use crate::common::folder::Folder;
use crate::common::{Ran, cat, file, run, tape_of_units, terminate, unitape, units};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::process::Stdio;
use unitape_sim::Rng;

const RULES: &str = "
[[member]]
firm = 'F1'
desk = 'D1'
trader = 'T1'
[[limit]]
name = 'flood'
scope = 'trader'
messages = 3
window = '1s'
warn = 0.6
[[limit]]
name = 'desk'
scope = 'desk'
gross_notional = 100_000
window = '1h'
action = 'kill'
until = '10m'
dry_run = true
";

/// A folder with a tape, its rules, and users: rita, rita2 (one person) and rolf have the role risk, anna has another.
struct Room {
    folder: Folder,
}

impl Deref for Room {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Room {
    fn new() -> Self {
        let room = Self { folder: Folder::new() };
        room.user_file("users.toml");
        file(room.dir.path(), "rules.toml", RULES);
        for (name, role, person) in [
            ("rita", "risk", "Rita Holm"),
            ("rita2", "risk", "rita  HOLM"),
            ("rolf", "risk", "Rolf Berg"),
            ("anna", "analyst", "Anna"),
        ] {
            room.add_user("users.toml", name, role, &["--person", person]);
        }
        room
    }

    /// Puts `orders` orders of a trader, a millisecond apart, onto the tape, from second `second` on.
    fn flood(&self, trader: &str, second: u64, orders: u64) {
        let lines = (0..orders).map(|n| order(trader, second * 1_000 + n)).collect::<Vec<_>>().concat();
        self.consolidate(&format!("{trader}-{second}"), &lines);
    }

    fn consolidate(&self, feed: &str, lines: &str) {
        let path = file(self.dir.path(), &format!("{feed}.jsonl"), lines);
        let feed = format!("{feed}=events::{}", path.to_str().unwrap());
        run(["consolidate", "--feed", &feed, "--tape", &self.text("tape")]).code(0);
    }

    fn arguments(&self, control: &str) -> Vec<String> {
        let words = ["breaker", "run", "TAPE", "--rules", "RULES", "--json", "--control", control];
        let place = |word: &str| match word {
            "TAPE" => self.text("tape"),
            "RULES" => self.text("rules.toml"),
            word if word == control => self.text(control),
            word => word.to_owned(),
        };
        words.into_iter().map(place).collect()
    }

    fn run(&self, control: &str) -> Ran {
        run(self.arguments(control).iter().map(String::as_str).chain(["--until-end"]))
    }

    fn controls(&self, control: &str) -> Vec<Value> {
        cat(&self.path(control), &["--kind", "control"])
    }

    /// An act of a user on the control tape.
    fn act(&self, verb: &str, user: &str, scope: &str, more: &[&str]) -> Ran {
        let [control, tape, users] = ["control", "tape", "users.toml"].map(|name| self.text(name));
        let password = self.text(&format!("{user}.pw"));
        let args =
            ["breaker", verb, "--control", &control, "--tape", &tape, "--users", &users, "--scope", scope];
        let login = ["--user", user, "--password-file", &password];
        let reason = ["--reason", "the desk calls"].into_iter().filter(|_| !more.contains(&"--reason"));
        run(args.into_iter().chain(login).chain(reason).chain(more.iter().copied()))
    }

    fn reset(&self, first: &str, second: &str, scope: &str) -> Ran {
        let password = self.text(&format!("{second}.pw"));
        self.act("reset", first, scope, &["--second-user", second, "--second-password-file", &password])
    }
}

fn order(trader: &str, ms: u64) -> String {
    let ts = 1_772_443_800_000_000_000 + ms * 1_000_000;
    let line = json!({"ts": ts, "kind": "order_new", "oid": format!("{trader}-{ms}"), "instr": "VOD", "venue": "XLON",
        "trader": trader, "side": "B", "px": "10", "qty": (100 + ms % 50).to_string()});
    format!("{line}\n")
}

/// What an action on the control tape says, in short.
fn short(control: &Value) -> (String, String) {
    let kind = control["scope_kind"].as_str().unwrap();
    let scope = format!("{kind}={}", control[kind].as_str().unwrap());
    (control["action"].as_str().unwrap().to_owned(), scope)
}

#[test]
fn a_limit_trips_once_and_again_after_a_reset_by_two_persons() {
    let room = Room::new();
    room.flood("T1", 0, 8);
    room.flood("T2", 10, 3);
    let ran = room.run("control").code(0).lines();
    let (totals, printed) = ran.split_last().unwrap();
    let totals = &totals["totals"];
    assert_eq!(
        (&totals["events"], &totals["controls"], &totals["appended"]),
        (&json!(11), &json!(3), &json!(3))
    );
    let words = |controls: &[Value]| controls.iter().map(short).collect::<Vec<_>>();
    let pair = |action: &str, scope: &str| (action.to_owned(), scope.to_owned());
    let first = [pair("warn", "trader=T1"), pair("halt", "trader=T1"), pair("warn", "trader=T2")];
    let controls = room.controls("control");
    assert_eq!(words(&controls), first);
    for (control, printed) in controls.iter().zip(printed) {
        assert_eq!((&control["id"], &control["ts"]), (&printed["id"], &printed["ts"]));
        assert_eq!(control["detail"], printed["detail"]);
        // The position of the cause is that of the event on the tape.
        let cause = &control["cause"];
        let event = cat(&room.path("tape"), &["--full"]);
        let event = event.iter().find(|event| event["position"] == cause["position"]).unwrap();
        assert_eq!(event["ts"], control["ts"]);
        assert_eq!(format!("trader={}", event["trader"].as_str().unwrap()), short(control).1);
    }
    assert_eq!(controls[1]["detail"], json!({"limit": "flood", "used": "4", "max": "3"}));
    assert_eq!(room.run("control").code(0).json()["totals"]["appended"], 0);

    let list = |more: &[&str]| {
        let control = room.text("control");
        run(["breaker", "list", "--json", "--control", &control].into_iter().chain(more.iter().copied()))
            .code(0)
            .lines()
    };
    let tripped = list(&[]);
    assert_eq!((tripped.len(), &tripped[0]["tripped"]["scope"]), (1, &json!("trader=T1")));
    let (rules, tape) = (room.text("rules.toml"), room.text("tape"));
    let used = list(&["--rules", &rules, "--tape", &tape]);
    assert_eq!(used[0]["tripped"]["id"], controls[1]["id"]);
    let percent = |limit: &str, scope: &str| {
        let uses = used.iter().map(|line| &line["use"]);
        uses.filter(|line| line["limit"] == limit && line["scope"] == scope)
            .map(|line| line["percent"].clone())
            .next()
    };
    // Three of three; 8 orders of 100 to 107 at 10.
    assert_eq!(percent("flood", "trader=T2"), Some(json!(100)));
    assert_eq!(percent("desk", "desk=D1"), Some(json!(8)));

    room.reset("rita", "rita2", "trader=T1").code(1).says(&[
        "two persons",
        "`rita` and `rita2`",
        "`Rita Holm`",
    ]);
    room.reset("rita", "anna", "trader=T1").code(1).says(&["`anna` has the role analyst"]);
    room.reset("rita", "rolf", "trader=T3").code(2).says(&["nothing of trader=T3 is tripped"]);
    room.act("reset", "rita", "trader=T1", &[]).code(2).says(&["--second-user"]);
    room.reset("rita", "rolf", "trader=T1").code(0).says(&[]);
    assert!(list(&[]).is_empty());
    room.flood("T1", 20, 8);
    let ran = room.run("control").code(0).lines();
    assert_eq!(ran.last().unwrap()["totals"]["events"], 19);
    let again = [pair("resume", "trader=T1"), pair("warn", "trader=T1"), pair("halt", "trader=T1")];
    let controls = room.controls("control");
    assert_eq!(words(&controls), [&first[..], &again].concat());
    assert_eq!((&controls[3]["by"], &controls[3]["second_by"]), (&json!("rita"), &json!("rolf")));
    assert_eq!(room.run("control").code(0).json()["totals"]["appended"], 0);
    // A rehearsal is one on the tape, and ends by itself.
    room.consolidate("big", &order("T1", 30_000).replace("\"100\"", "\"20000\""));
    room.run("control").code(0);
    let last = room.controls("control").pop().unwrap();
    assert_eq!((last["dry_run"].clone(), short(&last)), (json!(true), pair("kill", "desk=D1")));
    assert_eq!(last["until"].as_i64().unwrap() - last["ts"].as_i64().unwrap(), 600_000_000_000);
}

#[test]
fn a_person_trips_and_the_limit_of_the_scope_is_silent() {
    let room = Room::new();
    room.flood("T2", 0, 1);
    room.run("control").code(0);
    room.act("trip", "anna", "trader=T1", &[]).code(1).says(&["this needs the role risk"]);
    let tripped = room.act("trip", "rita", "trader=T1", &["--json"]).code(0).json();
    assert_eq!((&tripped["action"], &tripped["by"]), (&json!("halt"), &json!("rita")));
    room.act("trip", "rolf", "trader=T1", &[]).code(2).says(&["trader=T1 is tripped already", "rita#1"]);
    room.act("trip", "rolf", "trader=T1", &["--action", "kill"]).code(0);
    room.act("trip", "rolf", "tradr=T1", &[]).code(2).says(&["did you mean `trader`?"]);
    room.act("trip", "rolf", "T1", &[]).code(2).says(&["is no scope"]);
    room.act("trip", "rolf", "trader=T1", &["--reason", ""]).code(2).says(&["--reason has 1 to 1000 bytes"]);
    room.flood("T1", 10, 9);
    room.run("control").code(0);
    let words: Vec<_> = room.controls("control").iter().map(|control| short(control).0).collect();
    assert_eq!(words, ["halt", "kill", "warn"], "tripped already, so the limit only warns");
    let list = run(["breaker", "list", "--control", &room.text("control")]).code(0);
    assert!(list.text().contains("kill    trader=T1  the desk calls  by rolf"), "{}", list.text());
}

/// A person who trips while a breaker runs must be told, not wait.
#[test]
fn a_running_breaker_holds_its_control_tape() {
    let room = Room::new();
    room.flood("T1", 0, 8);
    let mut child = unitape().args(room.arguments("control")).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let held = format!("process {} writes this control tape", child.id());
    room.act("trip", "rita", "trader=T2", &[]).code(1).says(&[&held]);
    room.reset("rita", "rolf", "trader=T1").code(1).says(&[&held]);
    room.run("control").code(1).says(&[&held]);
    terminate(&child);
    assert!(child.wait().unwrap().success());
    room.act("trip", "rita", "trader=T2", &[]).code(0);
}

/// A trip that is lost lets orders through, and one that comes twice halts what was reset.
#[test]
fn a_breaker_that_is_killed_ten_times_leaves_the_same_controls() {
    let room = Room::new();
    let traders: Vec<String> = (0..300).map(|n| format!("T{n}")).collect();
    let orders = traders
        .iter()
        .enumerate()
        .flat_map(|(n, trader)| (0..6).map(move |i| order(trader, n as u64 * 10 + i)));
    room.consolidate("many", &orders.collect::<String>());
    let mut rng = Rng::new(5);
    for _ in 0..10 {
        let mut child = unitape()
            .args(room.arguments("killed"))
            .arg("--until-end")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..rng.below(60) {
            lines.next();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    room.run("killed").code(0);
    room.run("whole").code(0);
    let whole = room.controls("whole");
    assert_eq!(whole.len(), 600, "each trader warns and trips");
    assert_eq!(room.controls("killed"), whole);
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let room = Room::new();
    room.flood("T1", 0, 2);
    let with = |rules: &str| {
        file(room.dir.path(), "bad.toml", rules);
        let [tape, rules, control] = ["tape", "bad.toml", "control"].map(|name| room.text(name));
        run(["breaker", "run", &tape, "--rules", &rules, "--control", &control, "--until-end"])
    };
    with("").code(1).says(&["bad.toml:1: there is no limit"]);
    with("[[limit]]\nname = 'a'\nscope = 'trader'\nmesages = 1\n")
        .code(1)
        .says(&["bad.toml:4:", "did you mean `messages`?"]);
    assert!(!room.path("control").exists(), "a mistake makes no tape");
    room.run("control").code(0);
    // The control tape of another tape, and no control tape.
    let other = Room::new();
    other.flood("T9", 0, 1);
    let [tape, rules] = ["tape", "rules.toml"].map(|name| other.text(name));
    let control = room.text("control");
    let run_other = run(["breaker", "run", &tape, "--rules", &rules, "--control", &control, "--until-end"]);
    run_other.code(3).says(&["it is not the control tape of this tape"]);
    let list = ["breaker", "list", "--control", &control, "--rules", &rules, "--tape", &tape];
    run(list).code(3).says(&["it is not the control tape of this tape"]);
    run(["breaker", "list", "--control", &room.text("nothing")]).code(1).says(&["not a tape"]);
    run(["breaker", "run", &room.text("rules.toml"), "--rules", &rules, "--control", &control])
        .code(2)
        .says(&["this is a file"]);
    // A tape that was cut, or another one in its place, does not have the causes of the controls.
    room.flood("T1", 20, 8);
    room.run("control").code(0);
    let short = file(room.dir.path(), "T1-0.jsonl", order("T1", 0));
    std::fs::remove_dir_all(room.path("tape")).unwrap();
    let feed = format!("T1-0=events::{}", short.to_str().unwrap());
    run(["consolidate", "--feed", &feed, "--tape", &room.text("tape")]).code(0);
    room.run("control").code(3);
}

/// What is tripped is asked for when something is wrong, so a tape that is wrong must not hide it.
#[test]
fn what_is_tripped_is_listed_whatever_the_watched_tape_says() {
    let room = Room::new();
    room.flood("T1", 0, 8);
    room.run("control").code(0);
    room.act("trip", "rita", "trader=T7", &[]).code(0);
    let [control, rules] = ["control", "rules.toml"].map(|name| room.text(name));
    let list = |tape: &str| {
        run([
            "breaker",
            "list",
            "--json",
            "--control",
            &control,
            "--rules",
            &rules,
            "--tape",
            &room.text(tape),
        ])
    };
    let scopes = |ran: &Ran| {
        let lines = ran.lines();
        let tripped = lines.iter().filter_map(|line| line["tripped"]["scope"].as_str());
        tripped.map(str::to_owned).collect::<Vec<_>>()
    };
    let both = ["trader=T1", "trader=T7"];
    assert_eq!(scopes(&list("tape").code(0)), both);
    // Cut before any cause, between the causes, and before the end at which a person tripped.
    let all = units(&room.path("tape"));
    for kept in 0..all.len() {
        let name = format!("cut-{kept}");
        tape_of_units(&room.path(&name), &room.path("tape"), &all[..kept]);
        let ran = list(&name).code(3).says(&["that tape was cut"]);
        assert_eq!(scopes(&ran), both, "{kept} units of the tape are left");
        assert!(!ran.stderr.contains("nothing is tripped") && !ran.text().contains("\"use\""));
        let again = run([
            "breaker",
            "run",
            &room.text(&name),
            "--rules",
            &rules,
            "--control",
            &control,
            "--until-end",
        ]);
        again.code(3).says(&["that tape was cut"]);
    }
    // Another tape, and none.
    let other = Room::new();
    other.flood("T9", 0, 8);
    std::fs::rename(other.path("tape"), room.path("other")).unwrap();
    let ran = list("other").code(3).says(&["it is not the control tape of this tape"]);
    assert_eq!(scopes(&ran), both);
    assert_eq!(scopes(&list("nowhere").code(1).says(&["not a tape"])), both);
    // A limit that is new trips the scope earlier: what the control tape has is printed all the same.
    file(
        room.dir.path(),
        "rules.toml",
        RULES.replace("messages = 3", "messages = 1").replace("flood", "fewer"),
    );
    let ran = list("tape").code(0).says(&["1 trips are not on the control tape yet"]);
    assert_eq!(scopes(&ran), both);
}

/// "Nothing is tripped" about a directory that never had a trip would calm somebody wrongly.
#[test]
fn a_tape_of_another_kind_is_no_control_tape() {
    let room = Room::new();
    room.flood("T1", 0, 8);
    let vectors = crate::common::root().join("vectors/watch/spoofing.jsonl");
    run(["consolidate", vectors.to_str().unwrap(), "--tape", &room.text("watched")]).code(0);
    run(["watch", "run", &room.text("watched"), "--alerts", &room.text("alerts"), "--until-end"]).code(0);
    // A tape whose first event is a control of another origin.
    let controls = file(room.dir.path(), "c.jsonl", "{\"ts\":1,\"kind\":\"control\",\"action\":\"halt\"}\n");
    let feed = format!("c=events::{}", controls.to_str().unwrap());
    run(["consolidate", "--feed", &feed, "--tape", &room.text("asked")]).code(0);
    let [tape, rules, users, password] =
        ["tape", "rules.toml", "users.toml", "rita.pw"].map(|n| room.text(n));
    let second =
        ["--second-user", "rolf", "--second-password-file", &room.text("rolf.pw")].map(str::to_owned);
    for (dir, kind) in [
        ("tape", "this is a tape of the market: its first event is of the kind order_new"),
        ("asked", "this is a tape of the market: its first event is of the kind control"),
        ("alerts", "this is an alert tape"),
    ] {
        let dir = room.text(dir);
        let before = crate::common::files(std::path::Path::new(&dir));
        let says = [kind, "no control tape; give --control the directory that `unitape breaker run` writes"];
        run(["breaker", "list", "--control", &dir]).code(1).says(&says);
        run(["breaker", "list", "--control", &dir, "--rules", &rules, "--tape", &tape]).code(1).says(&says);
        run(["breaker", "run", &tape, "--rules", &rules, "--control", &dir, "--until-end"])
            .code(1)
            .says(&says);
        let act = |verb: &str, more: &[String]| {
            let words = ["breaker", verb, "--control", &dir, "--tape", &tape, "--scope", "trader=T1"];
            let login =
                ["--user", "rita", "--password-file", &password, "--users", &users, "--reason", "calls"];
            run(words.into_iter().chain(login).chain(more.iter().map(String::as_str)))
        };
        act("trip", &[]).code(1).says(&says);
        act("reset", &second).code(1).says(&says);
        assert!(crate::common::files(std::path::Path::new(&dir)) == before, "{dir} was written");
    }
}
