//! FIX messages with PossResend (97=Y): they may have been sent before under another number, or be new.
//!
//! A fill that a gateway sent again was taken from the order twice.

use crate::common::{cat, file, fix, orders_option, quarantine, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A tape of these messages in one session; each is its MsgType and fields.
fn tape_of(dir: &Path, messages: &[&str]) -> PathBuf {
    let message = |(n, fields): (usize, &&str)| {
        let (kind, rest) = fields.split_once('|').unwrap();
        let time = format!("20260302-09:00:{:02}", n + 1);
        fix(&format!("35={kind}|49=VEN|56=ACC|34={}|52={time}|60={time}|55=ABC|207=XVEN|{rest}|", n + 1))
    };
    let bytes: Vec<u8> = messages.iter().enumerate().flat_map(message).collect();
    let (source, tape) = (file(dir, "dc.fix", bytes), dir.join("tape"));
    run(["consolidate", "--feed", &orders_option("dc", &source), "--tape", tape.to_str().unwrap()]).code(0);
    assert_eq!(quarantine(&tape), Vec::<Value>::new());
    tape
}

const NEW: &str = "8|37=O1|17=E1|150=0|39=0|54=1|38=100|44=10.5|40=2|59=0|151=100|14=0";
const FILL: &str = "8|37=O1|17=E7|150=F|39=1|54=1|38=100|44=10.5|32=40|31=10.5|151=60|14=40";
const CANCEL: &str = "8|37=O1|17=E8|150=4|39=4|54=1|38=100|44=10.5|151=0|14=0";

fn again(message: &str) -> String {
    message.replacen('|', "|97=Y|", 1)
}

/// What is left of the orders, and whether a book of this basis is stale.
fn book(tape: &Path, basis: &str, code: i32) -> (Vec<Value>, bool) {
    let args = ["book", "show", tape.to_str().unwrap(), "--json", "--orders", "--basis", basis];
    let lines = run(args).code(code).lines();
    let book = lines.iter().find(|line| line["basis"] == basis).unwrap();
    let sides = [&book["bids"], &book["asks"]];
    let levels = sides.iter().flat_map(|side| side.as_array().unwrap());
    let queues = levels.flat_map(|level| level["queue"].as_array().cloned().unwrap_or_default());
    let left = queues.map(|order| order["left"].clone()).collect();
    (left, book.to_string().contains("stale"))
}

fn repeats(tape: &Path) -> Vec<Value> {
    cat(tape, &[]).iter().map(|event| event["repeat"].clone()).collect()
}

/// The same fill under a new number is on the tape, marked, and is not taken from the order again.
#[test]
fn an_execution_that_is_sent_again_counts_once() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape_of(dir.path(), &[NEW, FILL, &again(FILL)]);
    assert_eq!(repeats(&tape), [Value::Null, Value::Null, json!("Y")]);
    assert_eq!(book(&tape, "orders", 0), (vec![json!("60")], false));
    let ran = run(["book", "show", tape.to_str().unwrap(), "--json"]);
    let warnings = ran.lines().pop().unwrap();
    assert_eq!(warnings["warnings"]["repeats"], 1, "{warnings}");
}

/// What the book shows to be known already leaves it as it is, and to be trusted.
#[test]
fn orders_and_cancels_that_are_sent_again_change_no_book() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape_of(dir.path(), &[NEW, &again(NEW)]);
    assert_eq!(repeats(&tape), [Value::Null, json!("Y")]);
    assert_eq!(book(&tape, "orders", 0), (vec![json!("100")], false));
    let dir = tempfile::tempdir().unwrap();
    let tape = tape_of(dir.path(), &[NEW, CANCEL, &again(CANCEL), &again(FILL)]);
    assert_eq!(repeats(&tape), [Value::Null, Value::Null, json!("Y"), json!("Y")]);
    assert_eq!(book(&tape, "orders", 0), (vec![], false));
}

/// A message with 97=Y may be new. It is never left out of the tape, and the book says that it does not know.
#[test]
fn a_resend_that_may_be_new_leaves_the_book_stale() {
    let dir = tempfile::tempdir().unwrap();
    let tape = tape_of(dir.path(), &[NEW, &again(CANCEL)]);
    assert_eq!(cat(&tape, &["--kind", "order_cancel"]).len(), 1);
    assert_eq!(book(&tape, "orders", 3), (vec![json!("100")], true));
    // A fill that the tape does not have before, and another one of the same order.
    for messages in
        [vec![NEW.to_owned(), again(FILL)], vec![NEW.into(), FILL.into(), again(&FILL.replace("E7", "E9"))]]
    {
        let dir = tempfile::tempdir().unwrap();
        let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
        let tape = tape_of(dir.path(), &messages);
        assert_eq!(cat(&tape, &["--kind", "exec"]).last().unwrap()["repeat"], "Y");
        assert!(book(&tape, "orders", 3).1);
    }
    // 97=N says that it was not sent before.
    let dir = tempfile::tempdir().unwrap();
    let tape = tape_of(dir.path(), &[NEW, &FILL.replacen('|', "|97=N|", 1)]);
    assert_eq!(repeats(&tape), [Value::Null, Value::Null]);
    assert_eq!(book(&tape, "orders", 0), (vec![json!("60")], false));
}

/// An old quote that is sent again is not the best price of now.
#[test]
fn market_data_that_is_sent_again_is_no_new_price() {
    let quote = |px: &str| format!("W|268=2|269=0|270={px}|271=5|269=1|270=20|271=5");
    let trade = "X|268=1|279=0|269=2|278=T|55=ABC|207=XVEN|270=10|271=1";
    let dir = tempfile::tempdir().unwrap();
    let messages = [&quote("10"), &quote("11"), &again(&quote("10")), trade, &again(trade)];
    let tape = tape_of(dir.path(), &messages);
    assert_eq!(repeats(&tape), [Value::Null, Value::Null, json!("Y"), Value::Null, json!("Y")]);
    let bid = || {
        let line = run(["book", "show", tape.to_str().unwrap(), "--json", "--basis", "bbo"])
            .code(3)
            .lines()
            .remove(0);
        line["bids"][0]["px"].clone()
    };
    assert_eq!((bid(), book(&tape, "bbo", 3).1), (json!("11"), true));
    // The price as it is says nothing new, and a new one ends the doubt.
    for last in [vec![again(&quote("11"))], vec![again(&quote("10")), quote("12")]] {
        let dir = tempfile::tempdir().unwrap();
        let first = quote("11");
        let messages: Vec<&str> = [&first].into_iter().chain(&last).map(String::as_str).collect();
        assert!(!book(&tape_of(dir.path(), &messages), "bbo", 0).1);
    }
}

/// A tape on which all events of an instrument may be repeats has no book of it, and said that none of them is an order.
#[test]
fn an_instrument_that_was_only_sent_again_has_no_book() {
    let (new, fill, cancel) = (again(NEW), again(FILL), again(CANCEL));
    let quote = again("W|268=2|269=0|270=10|271=5|269=1|270=20|271=5");
    for messages in [vec![&new], vec![&fill], vec![&cancel], vec![&quote], vec![&new, &fill, &cancel]] {
        let dir = tempfile::tempdir().unwrap();
        let messages: Vec<&str> = messages.into_iter().map(String::as_str).collect();
        let tape = tape_of(dir.path(), &messages);
        for args in [vec!["--json"], vec![], vec!["--instr", "ABC"], vec!["--venue", "XVEN"]] {
            let ran = run(["book", "show", tape.to_str().unwrap()].into_iter().chain(args)).code(3);
            let text = &ran.stderr;
            assert!(text.contains("may be there twice (`repeat`)"), "{messages:?}: {text}");
            assert!(!text.contains("events is an order"), "{messages:?}: {text}");
        }
    }
}

/// Index values of the shipped mapping for FIX 5.0.
#[test]
fn other_mappings_mark_resends_too() {
    let dir = tempfile::tempdir().unwrap();
    let fields = |more: &str| {
        fix(&format!("35=X|34=1|52=20260302-09:00:00|{more}1181=5|268=1|279=0|55=J200|269=3|270=5.5|"))
            .to_vec()
    };
    let source = file(dir.path(), "jse.fix", [fields(""), fields("97=Y|")].concat());
    let tape = dir.path().join("tape");
    let feed = format!("jse=fix:jse-fix50-indices:{}", source.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
    assert_eq!(repeats(&tape), [Value::Null, json!("Y")]);
}

/// A mapping of one's own says by which values of its own format a message may have been sent before.
#[test]
fn a_mapping_of_ones_own_says_what_is_a_resend() {
    let dir = tempfile::tempdir().unwrap();
    let mapping = r#"
        name = "chat"
        format = "jsonl"
        [message]
        ts = "t@ms"
        unlisted = "drop"
        repeat = [{ again = "true" }, { copy = { present = true }, from = "bot" }]
        [[rule]]
        [[rule.event]]
        kind = "comm"
        repeat = [{ text = "twice" }]
        fields = { from = "from", text = "text" }
        [[rule.event]]
        kind = "news"
        fields = { headline = "text" }
    "#;
    let mapping = file(dir.path(), "chat.toml", mapping);
    // Whether the message, and the headline of it, is marked.
    let cases = [
        (r#""from":"a","text":"x""#, [false, false]),
        (r#""from":"a","text":"x","again":true"#, [true, true]),
        (r#""from":"a","text":"x","again":false"#, [false, false]),
        (r#""from":"a","text":"x","copy":1"#, [false, false]),
        (r#""from":"bot","text":"x","copy":1"#, [true, true]),
        (r#""from":"a","text":"twice""#, [true, false]),
        (r#""from":"bot","text":"twice","copy":1,"again":true"#, [true, true]),
    ];
    for (n, (fields, wanted)) in cases.iter().enumerate() {
        let source = file(dir.path(), "chat.jsonl", format!("{{\"t\":1772461800000,{fields}}}\n"));
        let tape = dir.path().join(format!("tape-{n}"));
        let feed = format!("chat=jsonl:{}:{}", mapping.display(), source.display());
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
        let marked: Vec<_> = repeats(&tape).iter().map(|mark| *mark == json!("Y")).collect();
        assert_eq!(marked, wanted, "{fields}");
    }
    for (condition, says) in
        [("{}", "`repeat` without a condition"), ("{ \"a[\" = \"x\" }", "rule 1, event 1: repeat: ")]
    {
        let text = std::fs::read_to_string(&mapping).unwrap().replace("{ text = \"twice\" }", condition);
        let wrong = file(dir.path(), "wrong.toml", text);
        let feed = format!("chat=jsonl:{}:{}", wrong.display(), mapping.display());
        let tape = dir.path().join("wrong");
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()])
            .code(1)
            .says(&["wrong.toml", says]);
    }
}

/// A copy of an account report says so in the report, and each of its events does.
#[test]
fn copies_of_account_reports_are_marked() {
    let dir = tempfile::tempdir().unwrap();
    for (message, around, report) in [
        ("camt.052.001.02", "BkToCstmrAcctRpt", "Rpt"),
        ("camt.053.001.02", "BkToCstmrStmt", "Stmt"),
        ("camt.054.001.02", "BkToCstmrDbtCdtNtfctn", "Ntfctn"),
    ] {
        for (copy, wanted) in [("", Value::Null), ("<CpyDplctInd>DUPL</CpyDplctInd>", json!("Y"))] {
            let text = format!(
                "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:{message}\"><{around}><GrpHdr><MsgId>M</MsgId>\
                 <CreDtTm>2026-03-02T10:20:21Z</CreDtTm></GrpHdr><{report}><Id>S</Id><CreDtTm>2026-03-02T10:20:21Z</CreDtTm>\
                 {copy}<Acct><Id><IBAN>NL02ABNA0123456789</IBAN></Id><Ccy>EUR</Ccy></Acct><Ntry><Amt Ccy=\"EUR\">1.00</Amt>\
                 <CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><BookgDt><Dt>2026-03-02</Dt></BookgDt></Ntry></{report}></{around}>\
                 </Document>"
            );
            let source = file(dir.path(), "report.xml", text);
            let tape = dir.path().join(format!("{report}-{}", copy.is_empty()));
            run(["consolidate", source.to_str().unwrap(), "--tape", tape.to_str().unwrap()]).code(0);
            assert_eq!(repeats(&tape), [wanted.clone(), wanted], "{message}");
        }
    }
}
