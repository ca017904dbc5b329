//! FIX on the command line: dictionaries of several files.

use crate::common::{Ran, file, fix, root, run, run_with_stdin};
use serde_json::json;

// FIXT 1.1 names the group of Logon and leaves it empty; the application's dictionary has it. It stayed flat.
#[test]
fn two_dictionaries_are_one() {
    let body = "35=A|49=A|56=B|34=1|52=20260302-09:30:00|98=0|108=30|1137=9|384=2|372=D|385=S|372=8|385=R|";
    let body = body.replace('|', "\x01");
    let head = format!("8=FIXT.1.1\x019={}\x01{body}", body.len());
    let message = format!("{head}10={:03}\x01", head.bytes().map(u32::from).sum::<u32>() % 256);
    let file = |name: &str| root().join("vectors/fix/dict").join(name).display().to_string();
    let (session, application) = (file("quickfix_FIXT11.xml"), file("quickfix_FIX50SP2.xml"));
    for [first, second] in [[&session, &application], [&application, &session]] {
        let args = ["decode", "fix", "-", "--dictionary", first, "--dictionary", second, "--json"];
        let line = run_with_stdin(args, message.as_bytes()).code(0).json();
        assert_eq!(line["fields"]["384"], json!([{"372": "D", "385": "S"}, {"372": "8", "385": "R"}]));
    }
}

/// A message of FIX 4.4 with right length and sum, whatever is in it.
fn order(fields: &str) -> Vec<u8> {
    fix(&format!("35=D|49=A|56=B|34=1|52=20260302-09:30:00|{fields}|"))
}

fn decode(input: &[u8], options: &[&str]) -> Ran {
    run_with_stdin(["decode", "fix", "-", "--json"].iter().chain(options), input)
}

/// The message of the only error; the message before it and the one behind it are read.
fn fault(fields: &str) -> String {
    let input = [order("11=a"), order(fields), order("11=b")].concat();
    let lines = decode(&input, &[]).code(3).lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!((&lines[0]["fields"]["11"], &lines[2]["fields"]["11"]), (&json!("a"), &json!("b")));
    assert_eq!(lines[1]["error"]["code"], "malformed_tag");
    lines[1]["error"]["message"].as_str().unwrap().to_owned()
}

/// People look for tags in a log; they do not count bytes.
#[test]
fn errors_name_the_tag_and_its_name() {
    let cases = [
        ("11=c|77=", "the field 77 (PositionEffect) at byte 61 has no value"),
        ("11=c|5001=|58=t", "the field 5001 at byte 61 has no value"),
        (
            "95=5|96=abc",
            "the data field 96 (RawData) at byte 61 is not as long as 95 (RawDataLength) before it says, 5 bytes",
        ),
        (
            "95=x|96=abc",
            "the data field 96 (RawData) at byte 61 has no length: 95 (RawDataLength) before it is not a number",
        ),
        (
            "354=1|355=ab",
            "the data field 355 (EncodedText) at byte 62 is not as long as 354 (EncodedTextLen) before it says, 1 bytes",
        ),
        ("95=0|96=", "the field 96 (RawData) at byte 61 has no value"),
        ("11=c||58=t", "the field after 11 (ClOrdID), at byte 61, is empty"),
        ("11=c|58", "the field after 11 (ClOrdID), at byte 61, has no '='"),
        (
            "11=c|058=t",
            "the field after 11 (ClOrdID), at byte 61, has a tag that is not 1 to 9 digits without leading zero",
        ),
    ];
    for (fields, message) in cases {
        assert_eq!(fault(fields), message, "{fields}");
    }
    // Data with separators inside is as long as it says.
    let line = decode(&order("95=6|96=a|58=x|11=c"), &[]).code(0).json();
    assert_eq!((&line["fields"]["96"], &line["fields"]["11"]), (&json!("a\u{1}58=x"), &json!("c")));
}

/// Who must accept empty values need not give up the checksum.
#[test]
fn leniency_is_for_the_kinds_of_faults_that_are_named() {
    let (empty, data) = (order("11=c|77="), order("95=5|96=abc"));
    let mut sum = order("11=c");
    let at = sum.len() - 2;
    sum[at] = if sum[at] == b'9' { b'0' } else { sum[at] + 1 };
    let length = String::from_utf8(order("11=c")).unwrap();
    let claimed = length.split('\u{1}').nth(1).unwrap();
    let other = format!("9={}", claimed[2..].parse::<u32>().unwrap() + 1);
    // The sum is that of the changed bytes.
    let body = length.replacen(claimed, &other, 1);
    let head = &body[..body.rfind("10=").unwrap()];
    let length = format!("{head}10={:03}\u{1}", head.bytes().map(u32::from).sum::<u32>() % 256).into_bytes();
    let faults = [("empty", empty), ("data", data), ("checksum", sum), ("length", length)];
    for (word, input) in &faults {
        for (other, _) in &faults {
            let ran = decode(input, &[&format!("--lenient={other}")]);
            ran.code(if word == other { 0 } else { 3 });
        }
        decode(input, &[]).code(3);
        decode(input, &["--lenient"]).code(0);
        decode(input, &["--lenient=empty,data,checksum,length"]).code(0);
    }
    let ran = decode(b"", &["--lenient=most"]).code(2);
    ran.says(&["--lenient=most", "length, checksum, empty, data, type, all"]);
}

/// What a mapping accepts, `consolidate` reads; a field without a value says nothing.
#[test]
fn a_mapping_may_accept_empty_values_alone() {
    let dir = tempfile::tempdir().unwrap();
    let report = |fields: &str| {
        fix(&format!("35=8|49=A|56=B|34=1|52=20260302-09:30:00|37=O|150=0|55=X|54=1|{fields}|"))
    };
    let mut broken = report("38=1|40=2|44=3");
    let last = broken.len() - 2;
    broken[last] = if broken[last] == b'9' { b'0' } else { broken[last] + 1 };
    let messages = [report("38=1|40=2|44=2|99="), report("38=1|40=2|44=2|453=|77="), broken].concat();
    let source = file(dir.path(), "orders.fix", messages);
    let shipped = std::fs::read_to_string(crate::common::root().join("mappings/fix44-orders.toml")).unwrap();
    for (lenient, events) in [("\"empty\"", 2), ("[\"empty\", \"checksum\"]", 3), ("false", 0), ("true", 3)] {
        let tape = dir.path().join(format!("tape{events}{}", lenient.len()));
        let framing = format!("framing = {{ sep = \"SOH\", lenient = {lenient}, log = false }}\n\n[message]");
        let mapping = file(dir.path(), "m.toml", shipped.replacen("[message]", &framing, 1));
        let feed = format!("o=fix:{}:{}", mapping.display(), source.display());
        let ran = run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]);
        let account = ran.code(if events == 3 { 0 } else { 3 }).json();
        assert_eq!(
            account["feeds"][0]["events"].as_u64().or(account["events"].as_u64()),
            Some(events),
            "{lenient}: {account}"
        );
    }
    let mapping = file(
        dir.path(),
        "m.toml",
        shipped.replacen(
            "[message]",
            "framing = { sep = \"SOH\", lenient = \"emty\", log = false }\n\n[message]",
            1,
        ),
    );
    let feed = format!("o=fix:{}:{}", mapping.display(), source.display());
    let tape = dir.path().join("none");
    let ran = run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]);
    assert_ne!(ran.code, Some(0));
    ran.says(&["`emty` is none of length, checksum, empty, data, type, all", "`empty`"]);
}

/// A book that is not there because all of its messages are in quarantine is no answer.
#[test]
fn instruments_of_which_all_is_in_quarantine_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let quote = |n: u32, instr: &str, count: u32| {
        fix(&format!(
            "35=W|49=A|56=B|34={n}|52=20260302-09:30:0{n}|55={instr}|207=XLON|268={count}|269=0|270=1|271=2|269=1|270=3|271=2|"
        ))
    };
    let source = file(dir.path(), "w.fix", [quote(1, "BAD", 3), quote(2, "GOOD", 2)].concat());
    let tape = dir.path().join("tape");
    let t = tape.to_str().unwrap();
    run(["consolidate", "--feed", &crate::common::orders_option("w", &source), "--tape", t]).code(3);
    run(["book", "show", t, "--symbols", "GOOD", "--json"]).code(0);
    run(["book", "show", t, "--symbols", "BAD", "--json"])
        .code(3)
        .says(&["1 messages in quarantine", "unitape quarantine list"]);
    run(["book", "show", t, "--json"]).code(3);
    run(["watch", "replay", t, "--json"]).code(3).says(&["all messages of BAD are in quarantine"]);
    let alerts = dir.path().join("alerts");
    let args = ["watch", "run", t, "--alerts", alerts.to_str().unwrap(), "--until-end", "--json"];
    run(args).code(3).says(&["all messages of BAD are in quarantine"]);
    // A message that is garbled names no instrument: where there is nothing else, it may be of any.
    let mut broken = quote(1, "GOOD", 2);
    let last = broken.len() - 2;
    broken[last] = if broken[last] == b'9' { b'0' } else { broken[last] + 1 };
    let (source, tape) = (file(dir.path(), "x.fix", broken), dir.path().join("other"));
    let t = tape.to_str().unwrap();
    run(["consolidate", "--feed", &crate::common::orders_option("x", &source), "--tape", t]).code(3);
    run(["book", "show", t, "--symbols", "GOOD"]).code(3).says(&["1 messages in quarantine"]);
    run(["watch", "replay", t]).code(3).says(&["all 1 messages are in quarantine"]);
}
