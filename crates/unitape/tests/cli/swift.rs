//! SWIFT on the command line: good and bad files, stdin, a statement without blocks, a feed of several files.

use crate::common::{self, cat, root, run, run_with_stdin};
use serde_json::Value;
use std::path::Path;

const GOOD: &str =
    "{1:F01AAAABEBBAXXX0000000000}{2:I103BBBBDEFFXXXXN}{4:\r\n:20:A\r\n:32A:260302EUR1,50\r\n-}";

fn vectors(name: &str) -> String {
    root().join("vectors/swift").join(name).display().to_string()
}

// A pipe gives its bytes in pieces, and the last message may have nothing after it.
#[test]
fn decode_reads_stdin_and_keeps_the_neighbours_of_bad_messages() {
    let input = format!("{GOOD}$\n{{1:F01A}}{{2:I103B}}{{3:{{108:X}}{{4:\n:20:B\n-}}$\njunk\n{GOOD}");
    let ran = run_with_stdin(["decode", "swift", "-", "--json"], input.as_bytes()).code(3);
    let lines = ran.lines();
    let types: Vec<_> =
        lines.iter().map(|l| l["type"].as_str().or(l["error"]["code"].as_str()).unwrap_or("?")).collect();
    assert_eq!(types, ["MT103", "bad_block", "MT103"]);
    assert_eq!(lines[2]["fields"][1]["parts"]["amount"], "1.50");
    assert_eq!(lines.iter().map(|l| l["n"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
    let place = lines[2]["offset"].as_u64().unwrap() as usize;
    assert_eq!(&input[place..], GOOD);
}

#[test]
fn decode_of_nothing_and_of_no_file() {
    assert!(run_with_stdin(["decode", "swift", "-", "--json"], b"").code(0).stdout.is_empty());
    let ran = run_with_stdin(["decode", "swift", "-", "--json"], b"nothing of the sort\n").code(3);
    assert_eq!(ran.json()["error"]["code"], "garbage");
    run(["decode", "swift", "no-such-file", "--json"]).code(1).says(&["no-such-file"]);
    run(["decode", "swift"]).code(2);
}

// A value that is not of its form is reported beside the others, and its message is none the worse.
#[test]
fn a_bad_value_is_told_in_its_place() {
    let input = GOOD.replace("260302EUR1,50", "260231EUR1,50");
    let ran = run_with_stdin(["decode", "swift", "-", "--json"], input.as_bytes()).code(0);
    let field = &ran.json()["fields"][1];
    assert_eq!((&field["error"]["code"], &field["value"]), (&"bad_value".into(), &"260231EUR1,50".into()));
    assert_eq!(field["parts"], Value::Null);
}

#[test]
fn a_bare_statement_is_recognised_by_its_content() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let consolidate =
        ["consolidate", &vectors("mt940/ASNB/mt940.txt"), "--tape", tape.to_str().unwrap(), "--json"];
    let account = run(consolidate).code(0).json();
    assert_eq!((&account["messages"], &account["by_kind"]["statement"]), (&31.into(), &31.into()));
    let first = &cat(&tape, &[])[0];
    assert_eq!(
        (&first["acct"], &first["opening"], &first["closing"]),
        (&"NL81ASNB9999999999".into(), &"444.29".into(), &"379.29".into(),)
    );
    assert_eq!(first["entries"][0]["amt"], "-65");
    // Again: nothing is left to do, and nothing changes.
    let again = run(consolidate).code(0).json();
    assert_eq!(again["messages"], 31);
    run(["tape", "verify", tape.to_str().unwrap()]).code(0);
}

// Messages that a mended mapping recovers are appended; until then their raw bytes are available.
#[test]
fn what_is_refused_is_kept_and_can_be_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, file) = (dir.path().join("t"), dir.path().join("pay.fin"));
    let odd = GOOD.replace(":20:A", ":20:B").replace("I103", "I205");
    std::fs::write(&file, format!("{GOOD}$\r\n{odd}$\r\n")).unwrap();
    let strict = dir.path().join("strict.toml");
    let rule = "[[rule]]\nwhen = { type = \"103\" }\n[[rule.event]]\nkind = \"payment\"\n\
                fields = { ref = \"20.reference\", amt = { from = \"32A.amount\", required = true } }\n";
    let head = "name = \"strict\"\nformat = \"swift\"\n[message]\nts = \"time\"\n";
    std::fs::write(&strict, format!("{head}{rule}")).unwrap();
    let feed = format!("pay=swift:{}:{}", strict.display(), file.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(3);
    let entry = &common::quarantine(&tape)[0];
    assert_eq!(
        (&entry["reason"], &entry["detail"]),
        (&"no_rule".into(), &"no rule of the mapping is for message type 205".into(),)
    );
    let position = entry["position"].to_string();
    let shown = run(["quarantine", "show", tape.to_str().unwrap(), &position, "--raw"]).code(0);
    assert_eq!(shown.stdout, odd.as_bytes());
    let mended = dir.path().join("mended.toml");
    std::fs::write(&mended, format!("{head}{rule}{}", rule.replace("103", "205"))).unwrap();
    run(["quarantine", "retry", tape.to_str().unwrap(), "--mapping", mended.to_str().unwrap()]);
    let payments: Vec<_> = cat(&tape, &["--kind", "payment"]).iter().map(|e| e["ref"].clone()).collect();
    assert_eq!(payments, ["A", "B"]);
}

#[test]
fn a_mapping_with_a_path_that_is_none_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("m.toml");
    let write = |path: &Path, field: &str| {
        let text = format!(
            "name = \"m\"\nformat = \"swift\"\nmessage = {{ ts = \"time\" }}\n[[rule]]\n[[rule.event]]\n\
             kind = \"payment\"\nfields = {{ amt = \"{field}\" }}\n"
        );
        std::fs::write(path, text).unwrap();
    };
    write(&file, "32A.amt");
    run(["mapping", "check", file.to_str().unwrap()])
        .code(1)
        .says(&["rule 1, event 1", "no field has a part `amt`"]);
    write(&file, "32A.amount");
    run(["mapping", "check", file.to_str().unwrap()]).code(0);
    run(["mapping", "check", "swift-mt", &vectors("prowide/MT103-bulk-with-ack.rje")]).code(0);
}

/// The result of `input`: the account, its events without the tape's own, and the details of its quarantine.
fn consolidated(input: &[u8]) -> (Value, Vec<Value>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("in.fin"), dir.path().join("t"));
    std::fs::write(&file, input).unwrap();
    let (file, tape_name) = (file.display().to_string(), tape.display().to_string());
    let ran = common::finish(common::unitape().args(["consolidate", &file, "--tape", &tape_name, "--json"]));
    let mut events = cat(&tape, &[]);
    let details = events.iter().filter_map(|e| Some(e["detail"].as_str()?.to_owned())).collect();
    events.retain(|e| e["kind"] != "quarantine");
    (ran.json(), events, details)
}

const STATEMENT: &str = ":20:ST1\r\n:25:PL1\r\n:28C:1\r\n:60F:C260301PLN1,00\r\n:62F:C260302PLN1,00\r\n";

// mBank puts each body between the bytes 1 and 3; two statements were one, and the byte 3 a part of a balance.
#[test]
fn bodies_between_soh_and_etx_are_read() {
    let input = format!("\x01\r\n{STATEMENT}-\x03\x01\r\n{STATEMENT}- \x03\r\n");
    let (account, events, details) = consolidated(input.as_bytes());
    assert_eq!((&account["messages"], &account["quarantined"]), (&2.into(), &0.into()), "{details:?}");
    assert_eq!(events.len(), 2);
    for event in events {
        assert_eq!((&event["kind"], &event["closing"]), (&"statement".into(), &"1".into()));
    }
}

// A line break after `{4:` made a service message swallow the message it acknowledges (User Handbook, FIN system
// messages).
#[test]
fn a_line_break_before_the_fields_of_a_service_message_is_legal() {
    for br in ["\r\n", "\n", ""] {
        let ack = format!("{{1:F21AAAABEBBAXXX0000000000}}{{4:{br}{{177:2603020930}}{br}{{451:0}}{br}}}");
        let ran =
            run_with_stdin(["decode", "swift", "-", "--json"], format!("{ack}{GOOD}").as_bytes()).code(0);
        let line = ran.json();
        assert_eq!((&line["type"], &line["ack"]["status"]), (&"MT103".into(), &"ACK".into()), "{br:?}");
        let alone =
            run_with_stdin(["decode", "swift", "-", "--json"], format!("{ack}\r\n$\r\n{GOOD}").as_bytes());
        let kinds: Vec<_> = alone.code(0).lines().iter().map(|l| l["type"].clone()).collect();
        assert_eq!(kinds, ["ACK", "MT103"], "{br:?}");
    }
}

// A payment that was sent twice was two payments, and nothing said so (User Handbook, trailers PDE and PDM).
#[test]
fn a_repeat_is_known_by_its_trailer() {
    let input = format!(
        "{GOOD}{{5:{{CHK:123456789ABC}}{{PDE:1348260302AAAABEBBAXXX2222123456}}}}$\n{GOOD}{{5:{{PDM:1348260302AAAABEBBAXXX2222123456}}}}$\n{GOOD}{{5:{{CHK:123456789ABC}}}}"
    );
    let (_, events, details) = consolidated(input.as_bytes());
    assert_eq!(events.len(), 3, "{details:?}");
    assert_eq!((&events[0]["repeat"], &events[1]["repeat"]), (&"Y".into(), &"Y".into()));
    assert_eq!(events[0]["pde"], "1348260302AAAABEBBAXXX2222123456");
    assert_eq!(events[1]["pdm"], "1348260302AAAABEBBAXXX2222123456");
    assert_eq!((&events[2]["repeat"], &events[2]["pde"]), (&Value::Null, &Value::Null));
}

// A reason named the component that the mapping wanted, which was as it should be.
#[test]
fn a_reason_names_the_component_that_is_wrong() {
    for (bad, says) in [
        ("260302EUR1.50", "field 32A at byte 10 of the value: amount is too long"),
        ("260302EURx", "field 32A at byte 9 of the value: amount expected"),
        ("260302E1R1,50", "field 32A at byte 6 of the value: currency expected"),
        ("260231EUR1,50", "field 32A at byte 0 of the value: date expected"),
    ] {
        let input = GOOD
            .replace("260302EUR1,50", bad)
            .replace("I103BBBBDEFFXXXXN", "O1030000260302AAAABEBBAXXX00000000002603020000N");
        let (_, _, details) = consolidated(input.as_bytes());
        assert!(details.len() == 1 && details[0].contains(says), "{details:?}");
    }
    let input = GOOD.replace("{2:I103BBBBDEFFXXXXN}", "{2:I103BBBBDEFfXXXXN}");
    let (_, _, details) = consolidated(input.as_bytes());
    assert!(
        details.len() == 1 && details[0].contains("block 2 at byte 4 of the value: receiver expected"),
        "{details:?}"
    );
}

/// A message of this type with these fields.
fn fin(mt: &str, fields: &str) -> String {
    let fields = fields.replace('\n', "\r\n");
    format!("{{1:F01AAAABEBBAXXX0000000000}}{{2:I{mt}BBBBDEFFXXXXN}}{{4:\r\n{fields}-}}")
}

/// A settlement against payment; `account` and `amount` are lines of FIAC and AMT.
fn settlement(mt: &str, function: &str, account: &str, amount: &str) -> String {
    let (party, qualifier) = if matches!(mt, "541" | "545") { ("SELL", "SETT") } else { ("BUYR", "SETT") };
    let qualifier = if matches!(mt, "545" | "547") { "ESTT" } else { qualifier };
    fin(
        mt,
        &format!(
            ":16R:GENL\n:20C::SEME//R1\n:23G:{function}\n:16S:GENL\n:16R:TRADDET\n:98A::SETT//20260302\n:35B:ISIN GB0000000009\n:16S:TRADDET\n:16R:FIAC\n:36B::SETT//UNIT/100,\n:97A::SAFE//SAFE1\n{account}:16S:FIAC\n:16R:SETDET\n:22F::SETR//TRAD\n:16R:SETPRTY\n:95P::{party}//CCCCGB2L\n:16S:SETPRTY\n:16R:AMT\n:19A::{qualifier}//{amount}\n:16S:AMT\n:16S:SETDET\n"
        ),
    )
}

// The sign of 19A was passed over, and the cash ran the wrong way (Category 5, field 19A: Sign N is a negative amount);
// the account was the safekeeping account where a cash account is named (field 97a, qualifier CASH).
#[test]
fn the_sign_of_a_settlement_amount_turns_payer_and_payee() {
    for (mt, pays) in [("541", true), ("545", true), ("543", false), ("547", false)] {
        for (account, own) in [("", "SAFE1"), (":97A::CASH//CASH1\n", "CASH1")] {
            for (amount, turned) in [("EUR12,50", false), ("NEUR12,50", true)] {
                let (_, events, details) = consolidated(settlement(mt, "NEWM", account, amount).as_bytes());
                assert_eq!(events.len(), 1, "{details:?}");
                let e = &events[0];
                let (own_acct, other_bic, none) = if pays != turned {
                    ("dr_acct", "cr_bic", "cr_acct")
                } else {
                    ("cr_acct", "dr_bic", "dr_acct")
                };
                assert_eq!(
                    (&e["kind"], &e["amt"]),
                    (&"payment".into(), &"12.5".into()),
                    "{mt} {amount}: {e}"
                );
                assert_eq!(
                    (&e[own_acct], &e[other_bic]),
                    (&own.into(), &"CCCCGB2L".into()),
                    "{mt} {amount}: {e}"
                );
                assert_eq!(
                    (&e[none], &e["safe_acct"]),
                    (&Value::Null, &"SAFE1".into()),
                    "{mt} {amount}: {e}"
                );
                assert_eq!(e["signed"].as_str(), turned.then_some("-12.50"), "{mt} {amount}: {e}");
            }
        }
    }
}

// A preadvice was a payment (MT 541, field 23G: PREA announces an instruction that is still to come).
#[test]
fn a_preadvice_is_no_payment() {
    for mt in ["541", "543"] {
        let (_, events, _) = consolidated(settlement(mt, "PREA", "", "EUR12,50").as_bytes());
        assert_eq!((&events[0]["kind"], &events[0]["state"]), (&"status".into(), &"PREA".into()), "{mt}");
    }
}

// The bank that ordered a debit was reported as the one that is debited (MT 900, fields 25a and 52a).
#[test]
fn the_debtor_of_a_confirmation_of_debit_is_the_account() {
    let input = fin("900", ":20:R1\n:21:X\n:25:ACC1\n:32A:260302EUR1,50\n:52A:DDDDFRPP\n");
    let (_, events, details) = consolidated(input.as_bytes());
    let e = &events[0];
    assert_eq!((&e["dr_acct"], &e["dr_bic"]), (&"ACC1".into(), &Value::Null), "{details:?}");
    assert_eq!(e["ordering_bank"], "DDDDFRPP");
}
