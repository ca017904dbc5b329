//! `unitape case` and `unitape user`: from an alert to a case that two persons have closed.

use crate::common::folder::Folder;
use crate::common::{self, Ran, cat, file, root, run, terminate, unitape};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;
use unitape_model::{Position, UnixNanos};
use unitape_run::alert_tape::AlertTape;
use unitape_sim::Rng;
use unitape_tape::{ReadOptions, TapeId, Writer, WriterOptions};
use unitape_watch::{Alert, ScenarioSelection};

/// A folder with a tape, its alerts, cases and users.
struct Desk {
    folder: Folder,
}

impl Deref for Desk {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

impl Desk {
    /// Makes the users: anna and anna2 are one person, bo and cy are others.
    fn new() -> Self {
        let desk = Self { folder: Folder::new() };
        std::fs::create_dir(desk.path("cases")).unwrap();
        std::fs::set_permissions(desk.path("cases"), std::fs::Permissions::from_mode(0o700)).unwrap();
        desk.user_file("cases/users.toml");
        for (name, role, more) in [
            ("anna", "analyst", &["--person", "Anna Berg"][..]),
            ("anna2", "supervisor", &["--person", "anna  berg"]),
            ("bo", "supervisor", &["--party", "BETA"]),
            ("cy", "analyst", &[]),
            ("root", "admin", &[]),
            ("audit", "auditor", &[]),
        ] {
            desk.add_user("cases/users.toml", name, role, more).says(&["below the default"]);
        }
        desk
    }

    /// Puts the suite of a scenario onto the tape, and its alerts onto the alert tape.
    fn watch(&self, scenario: &str) {
        let feed = root().join(format!("vectors/watch/{scenario}.jsonl"));
        run([OsStr::new("consolidate"), feed.as_ref(), "--tape".as_ref(), self.path("tape").as_ref()])
            .code(0);
        self.watch_tape(&["--scenario", scenario]);
    }

    fn watch_tape(&self, options: &[&str]) {
        let (tape, alerts) = (self.text("tape"), self.text("alerts"));
        run(["watch", "run", &tape, "--alerts", &alerts, "--until-end"].iter().chain(options)).code(0);
    }

    fn ingest(&self) -> Ran {
        run(ingest_arguments(&self.path("alerts"), &self.path("tape"), &self.path("cases")))
    }

    fn case(&self, words: &[&str]) -> Ran {
        let cases = self.text("cases");
        run(["case"].iter().chain(words).copied().chain(["--cases", &cases]))
    }

    /// A command of a user, who knows the password.
    fn by(&self, user: &str, words: &[&str]) -> Ran {
        let password = self.text(&format!("{user}.pw"));
        self.case(&[words, &["--user", user, "--password-file", &password]].concat())
    }

    fn list(&self, options: &[&str]) -> Vec<Value> {
        self.case(&[&["list", "--json"], options].concat()).code(0).lines()
    }

    fn audit(&self) -> Value {
        self.case(&["audit", "verify", "--json"]).code(0).json()["audit"].clone()
    }
}

fn ingest_arguments(alerts: &Path, tape: &Path, cases: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let words = ["case", "ingest", "--json", "--tape"].map(str::to_owned);
    words.into_iter().chain([text(tape), "--cases".to_owned(), text(cases), text(alerts)]).collect()
}

/// The whole way of an alert: ingest, look, assign, note, propose, refuse, propose, close, audit.
#[test]
fn an_alert_becomes_a_case_that_two_persons_close() {
    let desk = Desk::new();
    desk.watch("spoofing");
    let alerts = cat(&desk.path("alerts"), &["--kind", "alert"]);
    let ingested = desk.ingest().code(0).lines();
    let (totals, lines) = ingested.split_last().unwrap();
    assert_eq!(totals["totals"]["alerts"], alerts.len());
    assert_eq!(lines.len(), alerts.len());
    assert_eq!(desk.ingest().code(0).json()["totals"]["alerts"], 0);
    let cases = desk.list(&[]);
    assert_eq!(totals["totals"]["cases"], cases.len());
    assert_eq!(cases.iter().map(|case| case["alerts"].as_u64().unwrap()).sum::<u64>(), alerts.len() as u64);
    let state = |id: &str| {
        desk.list(&[]).iter().find(|c| c["case"] == id.parse::<u64>().unwrap()).unwrap()["state"].clone()
    };

    // Why: the rule, the values, the evidence as it is on the tape, and the book of that moment.
    let shown = desk.case(&["show", "1", "--json", "--tape", &desk.text("tape")]).code(0).json();
    let alert = &shown["alert_list"][0];
    assert_eq!(alert["detail"], alerts[0]["detail"]);
    assert!(
        shown["rule"].as_str().unwrap().len() > 50 && shown["title"].as_str().unwrap().contains("Spoofing")
    );
    let events = cat(&desk.path("tape"), &[]);
    let evidence = alert["evidence"].as_array().unwrap();
    assert!(evidence.len() >= 3, "{evidence:?}");
    for line in evidence {
        assert_eq!(line["event"], events[line["seq"].as_u64().unwrap() as usize - 1], "{line}");
    }
    let trigger = alert["trigger_seq"].as_u64().unwrap();
    for (when, at) in [("before", trigger - 1), ("after", trigger)] {
        let book = &alert["books"][when][0];
        let (instr, venue, at) =
            (book["instr"].as_str().unwrap(), book["venue"].as_str().unwrap(), at.to_string());
        let tape = desk.text("tape");
        let args = [
            "book",
            "show",
            &tape,
            "--at",
            &at,
            "--symbols",
            instr,
            "--venue",
            venue,
            "--json",
            "--basis",
            "orders",
        ];
        let wanted = &run(args).lines()[0];
        assert_eq!((&book["bids"], &book["asks"]), (&wanted["bids"], &wanted["asks"]), "{when}");
    }
    assert_ne!(alert["books"]["before"], alert["books"]["after"]);
    let text = desk.case(&["show", "1", "--tape", &desk.text("tape")]).code(0);
    for words in ["spoof_oid", "order_cancel", "book before event", "book after event", "history:"] {
        assert!(text.text().contains(words), "no {words} in {}", text.text());
    }

    desk.by("anna", &["assign", "1", "anna"]).code(0);
    desk.by("anna", &["note", "1", "asked the desk for the client order"]).code(0);
    desk.by("anna", &["close", "1"]).code(2).says(&["closing needs a reason"]);
    let proposed = desk.by("anna", &["close", "1", "--reason", "explained", "--json"]).code(0).json();
    assert_eq!((&proposed["state"], &proposed["kind"]), (&json!("pending_close"), &json!("propose_close")));
    for one in ["anna", "anna2"] {
        desk.by(one, &["close", "1"]).code(1).says(&["proposed to close it; a second person"]);
    }
    desk.by("cy", &["reopen", "1", "--text", "the note does not say which client"]).code(0);
    desk.by("anna", &["escalate", "1", "--text", "over to a supervisor"]).code(0);
    desk.by("anna", &["close", "1", "--reason", "breach"]).code(0);
    assert_eq!(state("1"), "pending_close");
    let closed = desk.by("cy", &["close", "1"]).code(0);
    assert!(closed.text().starts_with("case 1: closed as breach"), "{}", closed.text());
    assert_eq!(state("1"), "closed");
    desk.by("anna", &["assign", "1", "cy"]).code(2).says(&["case 1 is closed", "possible: note, reopen"]);

    let history = desk.case(&["show", "1", "--json"]).code(0).json()["history"].clone();
    let kinds: Vec<&str> = history.as_array().unwrap().iter().map(|a| a["kind"].as_str().unwrap()).collect();
    let work = ["assign", "note", "propose_close", "reopen", "escalate", "propose_close", "confirm_close"];
    assert_eq!(&kinds[kinds.len() - 7..], work);
    let audit = desk.audit();
    assert_eq!((&audit["wrong"], &audit["cases"]), (&json!(0), &json!(cases.len())));
    assert_eq!(audit["actions"], alerts.len() + 7);
    let intact = desk.case(&["audit", "verify"]).code(0);
    assert!(intact.text().starts_with("intact: "), "{}", intact.text());
}

#[test]
fn lists_have_pages_and_filters() {
    let desk = Desk::new();
    many_alerts(&desk, 80);
    desk.ingest().code(0);
    let all = desk.list(&[]);
    assert_eq!(all.len(), 40);
    let (mut paged, mut after) = (Vec::new(), "0".to_owned());
    loop {
        let mut page = desk.list(&["--limit", "15", "--after", &after]);
        let next = page.last().unwrap()["next"].as_u64();
        page.retain(|line| line["next"].is_null());
        paged.extend(page);
        match next {
            Some(next) => after = next.to_string(),
            None => break,
        }
    }
    assert_eq!(paged, all);
    desk.by("cy", &["assign", "2", "cy"]).code(0);
    assert_eq!(desk.list(&["--assignee", "cy"])[0]["case"], 2);
    assert_eq!(desk.list(&["--state", "assigned"]).len(), 1);
    assert_eq!(desk.list(&["--scenario", "spoofing"]).len(), 40);
    let of_party = desk.list(&["--party", "OWNER-3"]);
    assert_eq!((of_party.len(), &of_party[0]["key"]["owner"]), (1, &json!("OWNER-3")));
    assert!(desk.list(&["--party", "OWNER-3", "--scenario", "wash_trade"]).is_empty());
    desk.case(&["list", "--state", "nope"]).code(2).says(&["pending_close"]);
    desk.case(&["list", "--limit", "0"]).code(2);
}

/// Alerts about forty owners on a tape of their own, and the tape that they name.
fn many_alerts(desk: &Desk, count: u64) {
    let source = TapeId(5);
    Writer::open(&desk.path("tape"), source, WriterOptions::default()).unwrap().0.close().unwrap();
    let read = ReadOptions::default();
    let mut tape =
        AlertTape::open(&desk.path("alerts"), source, &ScenarioSelection::default(), read).unwrap();
    for n in 0..count {
        let key = vec![("owner".into(), format!("OWNER-{}", n % 40)), ("instr".into(), "VOD".to_owned())];
        let (ts, position) = (UnixNanos(1_772_452_800_000_000_000 + n as i64), Some(Position(n * 64)));
        let detail = json!({ "qty": n.to_string(), "seqs": [n + 1] });
        let alert = Alert { scenario: "spoofing".into(), ts, trigger_seq: n + 1, position, key, detail };
        tape.write_alerts(&[alert]).unwrap();
    }
    tape.close().unwrap();
}

/// The cases and their alerts without our clock, which is another one in each run.
fn rows(desk: &Desk, cases: &Path) -> Vec<Value> {
    let without_clock = |mut value: Value| {
        for field in ["opened", "changed"] {
            value.as_object_mut().unwrap().remove(field);
        }
        value
    };
    let list = run(["case", "list", "--json", "--cases", cases.to_str().unwrap()]).code(0).lines();
    let mut rows: Vec<Value> = list.into_iter().map(without_clock).collect();
    for case in ["1", "17", "40"] {
        let args = ["case", "show", case, "--json", "--alerts", "1000", "--cases", cases.to_str().unwrap()];
        let shown = run(args).code(0).json();
        rows.push(shown["alert_list"].clone());
        let history = shown["history"].as_array().unwrap().iter();
        rows.extend(history.map(|action| json!([action["action"], action["kind"], action["alert"]])));
    }
    assert!(desk.path("alerts").exists());
    rows
}

/// An alert once was lost, or came twice, where the process was killed between two files. A kill may come at any moment; what is
/// compared does not depend on when it came.
#[test]
fn ingest_that_is_killed_twenty_times_leaves_the_same_rows() {
    let desk = Desk::new();
    many_alerts(&desk, 3_000);
    let (killed, whole) = (desk.path("killed"), desk.path("whole"));
    let start = |cases: &Path| -> Child {
        let args = ingest_arguments(&desk.path("alerts"), &desk.path("tape"), cases);
        unitape().args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut rng = Rng::new(3);
    for _ in 0..20 {
        let mut ingest = start(&killed);
        std::thread::sleep(Duration::from_micros(rng.below(60_000)));
        ingest.kill().unwrap();
        ingest.wait().unwrap();
    }
    assert!(start(&killed).wait().unwrap().success());
    assert!(start(&whole).wait().unwrap().success());
    let list = rows(&desk, &whole);
    assert_eq!(rows(&desk, &killed), list);
    assert_eq!(list[..40].iter().map(|case| case["alerts"].as_u64().unwrap()).sum::<u64>(), 3_000);
    for cases in [&killed, &whole] {
        let audit =
            run(["case", "audit", "verify", "--json", "--cases", cases.to_str().unwrap()]).code(0).json();
        assert_eq!((&audit["audit"]["alerts"], &audit["audit"]["actions"]), (&json!(3_000), &json!(3_000)));
    }
}

/// Ingest that follows sees alerts as they come, and ends in order.
#[test]
fn ingest_follows_the_alert_tape() {
    let desk = Desk::new();
    many_alerts(&desk, 10);
    let mut args = ingest_arguments(&desk.path("alerts"), &desk.path("tape"), &desk.path("cases"));
    args.push("--follow".to_owned());
    let mut ingest = unitape().args(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(ingest.stdout.take().unwrap()));
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((0..10).map(|_| next()).last().unwrap()["alert"], 10);
    many_alerts(&desk, 12);
    assert_eq!((next()["alert"].clone(), next()["alert"].clone()), (json!(11), json!(12)));
    terminate(&ingest);
    assert_eq!(next()["totals"]["alerts"], 12);
    assert!(ingest.wait().unwrap().success());
}

#[test]
fn who_may_not_act_is_told_why() {
    let desk = Desk::new();
    many_alerts(&desk, 1);
    desk.case(&["list"]).code(1).says(&["there are no cases here"]);
    desk.ingest().code(0);
    desk.private("wrong.pw", "not the password\n");
    let as_user = |user: &str, password: &str, words: &[&str]| {
        let file = desk.text(password);
        desk.case(&[words, &["--user", user, "--password-file", &file]].concat())
    };
    let note = ["note", "1", "text"];
    // Which of the two is wrong is nobody's business.
    as_user("anna", "wrong.pw", &note).code(1).says(&["there is no user `anna` with this password"]);
    as_user("nobody", "anna.pw", &note).code(1).says(&["there is no user `nobody` with this password"]);
    as_user("audit", "audit.pw", &note).code(1).says(&["has the role auditor, which may not note"]);
    as_user("root", "root.pw", &["close", "1", "--reason", "breach"]).code(1).says(&["may not close"]);
    as_user("anna", "anna.pw", &["note", "99", "text"]).code(2).says(&["there is no case 99"]);
    as_user("anna", "anna.pw", &["close", "1", "--reason", "breach"])
        .code(2)
        .says(&["case 1 is new", "possible: assign"]);
    as_user("anna", "anna.pw", &["close", "1", "--reason", "nope"])
        .code(2)
        .says(&["false_positive, explained"]);
    as_user("anna", "anna.pw", &["assign", "1", "nobody"]).code(2).says(&["there is no user `nobody`"]);
    desk.case(&["note", "1", "text", "--user", "anna"]).code(2).says(&["--password-file"]);
    let users = desk.text("cases/users.toml");
    run(["user", "disable", "cy", "--users", &users]).code(0);
    as_user("cy", "cy.pw", &note).code(1).says(&["the account `cy` is disabled"]);
    as_user("cy", "wrong.pw", &note).code(1).says(&["there is no user `cy` with this password"]);
    as_user("anna", "anna.pw", &["assign", "1", "cy"]).code(2).says(&["the account `cy` is disabled"]);
    let list = run(["user", "list", "--users", &users, "--json"]).code(0).lines();
    let cy = json!({ "user": "cy", "person": "cy", "role": "analyst", "parties": [], "disabled": true });
    assert_eq!((list.len(), &list[3]), (6, &cy));
    run(["user", "password", "anna", "--users", &users, "--password-file", &desk.text("wrong.pw")]).code(0);
    as_user("anna", "anna.pw", &note).code(1);
    as_user("anna", "wrong.pw", &note).code(0);
    run(["user", "list"]).code(2).says(&["UNITAPE_USERS"]);
    run(["user", "list", "--users", &desk.text("none")]).code(1).says(&["there is no user file"]);
    // The environment names another file than the one beside the cases.
    let other = common::finish(
        unitape()
            .args(["case", "note", "1", "x", "--user", "anna", "--cases", &desk.text("cases")])
            .env("UNITAPE_USERS", desk.path("none")),
    );
    other.code(1).says(&["none: there is no user file"]);

    let open = |name: &str, mode| {
        std::fs::set_permissions(desk.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open("wrong.pw", 0o644);
    as_user("anna", "wrong.pw", &note).code(1).says(&["others may read this password", "chmod 600"]);
    open("wrong.pw", 0o600);
    open("cases/users.toml", 0o640);
    as_user("anna", "wrong.pw", &note).code(1).says(&["others may read or write this file", "chmod 600"]);
    open("cases/users.toml", 0o600);
    open("cases", 0o750);
    desk.case(&["list"]).code(1).says(&["chmod 700"]);
    open("cases", 0o700);
    assert_eq!(desk.audit()["actions"], 2);
}

/// Two processes at one time: the second one must see the case as the first has left it.
#[test]
fn of_two_processes_that_close_a_case_one_wins() {
    let desk = Desk::new();
    many_alerts(&desk, 1);
    desk.ingest().code(0);
    desk.by("anna", &["assign", "1", "anna"]).code(0);
    desk.by("anna", &["close", "1", "--reason", "false_positive"]).code(0);
    let start = |user: &str| {
        let (cases, password) = (desk.text("cases"), desk.text(&format!("{user}.pw")));
        let args = ["case", "close", "1", "--cases", &cases, "--user", user, "--password-file", &password];
        unitape().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let outputs = ["bo", "cy"].map(start).map(|child| child.wait_with_output().unwrap());
    let mut codes = outputs.each_ref().map(|output| output.status.code());
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(2)]);
    let loser = outputs.iter().find(|output| output.status.code() == Some(2)).unwrap();
    let said = String::from_utf8_lossy(&loser.stderr);
    assert!(said.contains("case 1 is closed: `close` is not possible"), "{said}");
    assert_eq!(desk.audit()["actions"], 4);
}

/// Names and notes come from people who may not wish us well: a terminal shows them escaped, JSON has them exactly.
#[test]
fn hostile_text_is_shown_escaped_and_kept_exactly() {
    let desk = Desk::new();
    let source = TapeId(5);
    Writer::open(&desk.path("tape"), source, WriterOptions::default()).unwrap().0.close().unwrap();
    let read = ReadOptions::default();
    let mut tape =
        AlertTape::open(&desk.path("alerts"), source, &ScenarioSelection::default(), read).unwrap();
    let owner = "\u{1b}]0;x\u{7}<script>\u{202e}=1+1\u{0}";
    let long = "x".repeat(60_000);
    tape.write_alerts(&[Alert {
        scenario: "\u{1b}[2Jodd".into(),
        ts: UnixNanos(1_772_452_800_000_000_000),
        trigger_seq: 1,
        position: None,
        key: vec![("owner".into(), owner.to_owned()), ("side".into(), "\"\u{202e}y".to_owned())],
        detail: json!({ "text": owner, "long": long }),
    }])
    .unwrap();
    tape.close().unwrap();
    assert_eq!(desk.ingest().code(0).lines()[0]["key"]["owner"], owner);
    // An argument cannot hold a NUL.
    let note = "<b>\u{1b}[31m=cmd|' /C calc'!A0\r\n\u{202e}text";
    desk.by("anna", &["note", "1", note]).code(0);
    let shown = desk.case(&["show", "1", "--json"]).code(0).json();
    assert_eq!(shown["history"][1]["text"], note);
    assert_eq!(shown["alert_list"][0]["detail"], json!({ "text": owner, "long": long }));
    assert_eq!(shown["parties"], json!([owner]));
    assert_eq!(desk.list(&["--party", owner.trim_end_matches('\0')]).len(), 0);
    let text = [&["list"][..], &["show", "1"], &["show", "1", "--tape", &desk.text("tape")]];
    for words in text {
        let ran = desk.case(words);
        let is_harmless = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
        assert!(ran.text().chars().all(is_harmless), "{words:?}: {:?}", ran.text());
        assert!(ran.text().contains("\\x1b"), "{words:?}");
    }
    // 64 KiB is the most, and an argument of the system is bounded as well.
    desk.by("anna", &["note", "1", &"é".repeat(32_769)]).code(2).says(&["at most 65536 bytes"]);
    assert_eq!(desk.audit()["wrong"], 0);
}

#[test]
fn evidence_that_retention_removed_and_tapes_of_others_are_named() {
    let desk = Desk::new();
    let feed =
        common::orders_option("orders", &file(desk.dir.path(), "o.fix", common::flow(21, 6_000, false).0));
    let (tape, alerts) = (desk.text("tape"), desk.text("alerts"));
    run(["consolidate", "--feed", &feed, "--tape", &tape, "--segment-bytes", "262144"]).code(0);
    desk.watch_tape(&[]);
    desk.ingest().code(0);
    desk.case(&["show", "1", "--tape", &tape]).code(0);
    desk.case(&["show", "1", "--tape", &alerts]).code(3).says(&["this is the tape", "are of the tape"]);
    run(["case", "ingest", &alerts, "--tape", &alerts, "--cases", &desk.text("others")])
        .code(3)
        .says(&["is of the tape"]);
    run(["case", "ingest", &desk.text("none"), "--tape", &tape, "--cases", &desk.text("new")]).code(1);
    assert!(!desk.path("new").exists());
    run(["tape", "retain", &tape, "--bytes", "300000"]).code(0);
    let shown = desk
        .case(&["show", "1", "--json", "--tape", &tape])
        .code(3)
        .says(&["not on the tape any more"])
        .json();
    let alert = &shown["alert_list"][0];
    let missing = alert["evidence"][0]["missing"].as_str().unwrap();
    assert!(missing.starts_with("retention has removed it"), "{missing}");
    assert!(alert["without_books"].as_str().unwrap().contains("retention"), "{alert}");
}

#[test]
fn a_damaged_database_is_exit_code_3() {
    let desk = Desk::new();
    many_alerts(&desk, 3);
    desk.ingest().code(0);
    let path = desk.path("cases/cases.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[..90].fill(0x55);
    std::fs::write(&path, bytes).unwrap();
    desk.case(&["list"]).code(3).says(&["the database of cases is damaged"]);
    desk.ingest().code(3).says(&["the database of cases is damaged"]);
    // An emptied one once was intact, without an action.
    for left in ["", "S", "SQLite format 3"] {
        std::fs::write(&path, left).unwrap();
        for words in [&["list"][..], &["show", "1"], &["audit", "verify"], &["list", "--blind"]] {
            desk.case(words).code(3).says(&["cases.db: the database of cases is damaged, or is none"]);
        }
        desk.ingest().code(3).says(&["cases.db: the database of cases is damaged, or is none"]);
        desk.by("anna", &["assign", "1", "anna"]).code(3);
        assert_eq!(std::fs::read(&path).unwrap(), left.as_bytes());
    }
}

/// Whom nobody can tell from another person must not be a second one.
#[test]
fn names_with_what_nobody_sees_are_refused_and_shown_escaped() {
    let desk = Desk::new();
    let (users, password) = (desk.text("cases/users.toml"), desk.text("anna.pw"));
    let add = |name: &str, person: &str, party: &str| {
        let words = ["user", "add", name, "--role", "analyst", "--person", person, "--party", party];
        run(words.into_iter().chain(["--users", &users, "--password-file", &password]))
    };
    add("dora", "Anna Berg\u{200b}", "T-1").code(2).says(&["`person`", "U+200B"]);
    add("dora", "Anna Berg ", "T-1").code(2).says(&["`person` begins or ends with a blank"]);
    add("do\u{202e}ra", "Dora", "T-1").code(2).says(&["`name`", "U+202E"]);
    add("dora", "Dora", "T-1\u{2060}").code(2).says(&["`party`", "U+2060"]);
    add("dora", "Dora", "T-1").code(0);
    // One of an earlier build.
    let path = desk.path("cases/users.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"Dora\"", "\"Do\u{200b}ra\u{feff}\"")).unwrap();
    let listed = run(["user", "list", "--users", &users]).code(0);
    let shown = listed.text();
    assert!(shown.contains("dora: Do\\u{200b}ra\\u{feff}, analyst"), "{shown}");
}

/// A file that ran a script or asked another host would tell somebody about the case.
#[test]
fn an_exported_case_is_one_file_without_script() {
    let desk = Desk::new();
    desk.watch("spoofing");
    desk.ingest().code(0);
    let id = desk.case(&["list", "--scenario", "spoofing", "--json"]).code(0).lines()[0]["case"].to_string();
    let hostile = "<script>alert(1)</script> \u{202e}<img src=http://evil.example/x>";
    desk.by("anna", &["assign", &id, "anna"]).code(0);
    desk.by("anna", &["note", &id, hostile]).code(0);
    let (out, tape) = (desk.text("case.html"), desk.text("tape"));
    desk.case(&["export", &id, "--tape", &tape, "--html", &out]).code(0).says(&["others cannot read"]);
    let mode = std::fs::metadata(&out).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let html = std::fs::read_to_string(&out).unwrap();
    assert!(html.contains("<svg") && html.contains("Content-Security-Policy"));
    assert!(!html.contains("<script") && !html.contains("<img") && !html.contains('\u{202e}'));
    assert!(html.contains("&lt;script&gt;alert(1)"));
    let shown = desk.case(&["show", &id, "--tape", &tape, "--json"]).code(0).json();
    let detail = &shown["alert_list"][0]["detail"];
    for text in [&detail["spoof_oid"], &detail["qty"], &detail["px"]] {
        assert!(html.contains(text.as_str().unwrap()), "{text} of the alert is not in the file");
    }
    // Each mention of a host is the name space of SVG, or text.
    assert_eq!(html.matches("=\"http").count(), html.matches("xmlns=\"http").count());

    // Another tape, or a file that cannot be written, leaves nothing.
    let other = desk.path("other");
    let feed = root().join("vectors/watch/wash_trade.jsonl");
    run([OsStr::new("consolidate"), feed.as_ref(), "--tape".as_ref(), other.as_ref()]).code(0);
    let fresh = desk.text("fresh.html");
    desk.case(&["export", &id, "--tape", &desk.text("other"), "--html", &fresh])
        .code(3)
        .says(&["is of the tape"]);
    assert!(!Path::new(&fresh).exists());
    desk.case(&["export", &id, "--tape", &tape, "--html", &desk.text("missing/case.html")]).code(1);
    desk.case(&["export", "99", "--tape", &tape, "--html", &fresh]).code(2).says(&["no case 99"]);
}

/// "No new alerts" from a tape that never has alerts would calm somebody wrongly, and its cursor would hold the tape's retention.
#[test]
fn a_tape_of_another_kind_is_no_alert_tape() {
    let desk = Desk::new();
    desk.watch("spoofing");
    let tape = desk.path("tape");
    let before = common::files(&tape);
    let cases = desk.path("other-cases");
    for options in [&[][..], &["--follow"]] {
        let arguments = ingest_arguments(&tape, &tape, &cases);
        let ran = run(arguments.iter().map(String::as_str).chain(options.iter().copied()));
        ran.code(1).says(&[
            "this is a tape of the market: its first event is of the kind ref",
            "no alert tape; name the directory that `unitape watch run --alerts DIR` writes",
        ]);
    }
    assert!(!cases.exists(), "a wrong tape leaves no cases behind");
    assert!(common::files(&tape) == before, "a wrong tape gets no cursor");
    // A control tape of a breaker.
    let rules = "[[limit]]\nname = 'any'\nscope = 'instr'\nmessages = 1\nwindow = '1h'\n";
    let rules = file(desk.dir.path(), "rules.toml", rules);
    let [watched, control] = ["tape", "control"].map(|name| desk.text(name));
    let breaker = ["breaker", "run", &watched, "--control", &control, "--until-end", "--rules"];
    run(breaker.into_iter().chain([rules.to_str().unwrap()])).code(0);
    run(ingest_arguments(&desk.path("control"), &tape, &cases))
        .code(1)
        .says(&["this is the control tape of a breaker", "no alert tape"]);
    // An alert tape that has no alerts yet is one.
    let (writer, _) = Writer::open(&desk.path("quiet"), TapeId(7), WriterOptions::default()).unwrap();
    writer.close().unwrap();
    let totals = run(ingest_arguments(&desk.path("quiet"), &tape, &cases)).code(0).json();
    assert_eq!(totals["totals"]["alerts"], 0);
}
