//! An empty result is explained. Before, a misspelt instrument, a wrong kind and a quiet day all printed nothing and ended
//! with 0, or a name that no event has was an error here and no word there.

use crate::common::inputs;

use crate::common::file;
use inputs::Inputs;

/// Runs a line with and without `--json`: nothing on stdout, exit code 0, and these words on stderr.
#[track_caller]
fn explained(inputs: &Inputs, line: &str, words: &[&str]) {
    for json in ["", " --json"] {
        let ran = inputs.run(&format!("{line}{json}")).code(0).says(words);
        assert!(ran.stdout.is_empty(), "{line}{json}: {}", ran.text());
        assert_eq!(ran.stderr.lines().count(), 1, "{line}{json}: {}", ran.stderr);
    }
}

#[test]
fn tape_cat_says_what_there_is() {
    let inputs = Inputs::new();
    inputs.run("consolidate --feed e=events::ev.jsonl --tape e").code(0);
    let cat = |options: &str, words: &[&str]| explained(&inputs, &format!("tape cat e {options}"), words);
    cat(
        "--instr VOX",
        &["no event has the instrument VOX", "there are 2 instruments: VOD, BARC; did you mean `VOD`?"],
    );
    cat("--venue XPAR", &["no event has the venue XPAR", "there is only XLON"]);
    cat("--kind news", &["no event of kind news", "1 bbo, 1 trade, 1 order_new"]);
    cat("--kind message", &["no event of kind message", "1 bbo"]);
    cat("--from 100", &["no event with --from 100", "there are events 1 to 3, at positions @0 to @"]);
    cat("--from @999999 --to @9999999", &["no event with --from @999999 --to @9999999", "events 1 to 3"]);
    cat("--to 0", &["no event with --to 0"]);
    let words = ["of 3 events none is all that was asked for", "1 of the kinds", "2 with the instrument VOD"];
    cat("--kind trade --instr VOD", &words);
    explained(&inputs, "tape cat none", &["the tape has no events"]);
    // Events that exist are printed without a word.
    for (options, events) in [
        ("--instr VOD", 2),
        ("--instr VOD --instr BARC", 3),
        ("--instr VOD --instr NOPE", 2),
        ("--venue XLON", 3),
        ("--venue XLON --kind trade", 1),
        ("--instr VOD --limit 1", 1),
        ("--limit 0", 0),
        ("--from 2 --to 3 --instr VOD", 1),
    ] {
        let ran = inputs.run(&format!("tape cat e --json {options}")).code(0);
        assert_eq!((ran.lines().len(), ran.stderr.as_str()), (events, ""), "{options}");
    }
}

/// A misspelt word of ours is answered with the word that was meant.
#[test]
fn a_misspelt_word_is_answered_with_the_one_that_was_meant() {
    let inputs = Inputs::new();
    for (line, word) in [
        ("tape cat t --kind trades", "trade"),
        ("tape cat t --schema trade", "trades"),
        ("store scan s --schema trade", "trades"),
        ("store scan s --kind odrer_new", "order_new"),
        ("watch replay t --kind ordr_new", "order_new"),
        ("watch replay t --scenario wash", "wash_trade"),
        ("watch replay ev.jsonl --scenario wash_trades", "wash_trade"),
        ("watch run t --alerts a --scenario spoof", "spoofing"),
        ("mapping show fix44-order", "fix44-orders"),
        ("consolidate --feed a=fxi:fix44-orders:o.fix --tape x", "fix"),
    ] {
        inputs.run(line).code(2).says(&[&format!("; did you mean `{word}`?")]);
    }
    for (line, word) in
        [("mapping check fix44-order", "fix44-orders"), ("decode fixed o.fix --layout sim-dya", "sim-day")]
    {
        inputs.run(line).code(1).says(&[&format!("; did you mean `{word}`?")]);
    }
    inputs.run("decode fxi o.fix").code(2).says(&["similar", "fix"]);
}

/// If there are many names, those like the requested one are listed.
#[test]
fn a_misspelt_name_is_answered_with_the_nearest() {
    let inputs = Inputs::new();
    let trade = |n: u32| {
        format!(
            "{{\"ts\":{n},\"kind\":\"trade\",\"venue\":\"XLON\",\"instr\":\"GB{n:05}\",\"px\":\"1\",\"qty\":\"1\"}}\n"
        )
    };
    file(&inputs.path(""), "many.jsonl", (0..2_000).map(trade).collect::<String>());
    inputs.run("consolidate --feed m=events::many.jsonl --tape m").code(0);
    inputs.run("store seal m --store ms").code(0);
    let near = ["there are 2,000", "did you mean GB01234"];
    explained(&inputs, "tape cat m --instr gb01234", &near);
    explained(&inputs, "store scan ms --symbols gb01234", &near);
}

/// News names several instruments, and a quote a bank: both are found by name.
#[test]
fn events_are_found_by_every_name_in_them() {
    let inputs = Inputs::new();
    let lines = r#"{"ts":1,"kind":"news","news_id":"1","headline":"h","instrs":["VOD","BARC"],"source":"s"}
{"ts":2,"kind":"quote","bank":"BANKA","instr":"EURUSD","bid":"1","ask":"2","bid_qty":"1","ask_qty":"1","quote_id":"q","tier":1}
{"ts":3,"kind":"trade","venue":"XLON","instr":"BP","px":"1","qty":"1"}
"#;
    file(&inputs.path(""), "n.jsonl", lines);
    inputs.run("consolidate --feed n=events::n.jsonl --tape n").code(0);
    for (options, kind) in [("--instr BARC", "news"), ("--venue BANKA", "quote"), ("--venue XLON", "trade")] {
        let lines = inputs.run(&format!("tape cat n --json {options}")).code(0).lines();
        assert_eq!(
            lines.iter().map(|l| l["kind"].as_str().unwrap()).collect::<Vec<_>>(),
            [kind],
            "{options}"
        );
    }
}

#[test]
fn a_store_says_what_there_is() {
    let inputs = Inputs::new();
    let scan = |options: &str, words: &[&str]| explained(&inputs, &format!("store scan s {options}"), words);
    scan("--symbols NOPE", &["nothing in the store has the symbol NOPE", "there is only GB0000000001"]);
    scan("--venue NOPE", &["is of the venue NOPE", "there is only XLON"]);
    scan(
        "--schema news --events",
        &["no events with --schema news", "the store has 59 mbo", "from 2026-03-02 00:00:01"],
    );
    scan("--date 2020-01-01", &["--date 2020-01-01", "from 2026-03-02"]);
    scan("--from 2027-01-01", &["--since 2027-01-01 00:00:00"]);
    scan("--since 2026-03-02 --until 2026-03-02", &["--until 2026-03-02 00:00:00"]);
    scan("--schema trades", &["no events with --schema trades", "the store has 59 mbo"]);
    // A symbol that exists is printed, and the other is named.
    let ran = inputs.run("store scan s --json --symbols GB0000000001,NOPE").code(0).says(&["symbol NOPE"]);
    assert_eq!(ran.lines().len(), 59);
    inputs.run("store seal none --store empty-store").code(0);
    if inputs.path("empty-store").exists() {
        explained(&inputs, "store scan empty-store", &["nothing was sealed"]);
    }
}

#[test]
fn books_quarantine_alerts_and_messages_that_there_are_not() {
    let inputs = Inputs::new();
    explained(
        &inputs,
        "book show t --symbols GB000000001",
        &["no instrument GB000000001", "there is only GB0000000001"],
    );
    explained(&inputs, "book show t --venue XPAR", &["no venue XPAR", "there is only XLON"]);
    explained(
        &inputs,
        "book show t --basis levels",
        &["no book with --basis levels", "59 events made 1 books"],
    );
    explained(&inputs, "book show none", &["no book: none of the 0 events"]);
    explained(&inputs, "book show t --at 0", &["no book: none of the 0 events up to --at"]);
    explained(&inputs, "quarantine list t", &["nothing is in quarantine; 59 messages were read"]);
    for (line, words) in [
        ("watch replay t", "no alerts: 39 scenarios over 59 events"),
        ("watch replay ev.jsonl --scenario spoofing", "no alerts: 1 scenario over 3 events: spoofing"),
        ("watch replay empty", "no alerts: 39 scenarios over 0 events"),
        ("quarantine retry t", "nothing to try again"),
    ] {
        inputs.run(line).code(0).says(&[words]);
        inputs.run(&format!("{line} --json")).code(0).says(&[words]);
    }
    for format in ["fix", "swift", "itch", "iex", "iso20022", "jsonl", "mail", "newsxml"] {
        let line = format!("decode {format} empty");
        explained(&inputs, &line, &["nothing was decoded: there are no messages in empty"]);
    }
    explained(
        &inputs,
        "decode csv --layout nyse-taq-trades empty",
        &["nothing was decoded: there are no rows in empty"],
    );
}
