//! SWIFT feeds: real files to the message, and the same tape however they are cut.

use crate::common::{assert_same, events, feed, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use unitape_codec::twin::swift_mt::sample::sample_messages;
use unitape_feed::{FileFeed, Format, TapeAccount, quarantine};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/swift")
}

fn named(path: &Path) -> FileFeed {
    let format = Format::from_names("swift", "swift-mt").unwrap();
    FileFeed { name: "swift".to_owned(), format, files: vec![path.to_owned()] }
}

/// The number of refused messages for each reason.
fn reasons(dir: &Path) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    for entry in quarantine::list(dir).unwrap() {
        *reasons.entry(entry.reason).or_default() += 1;
    }
    reasons
}

/// Runs one file, recognised by its content, and gives the account: payments, statements, other events, messages
/// ignored, refused.
fn account_of(file: &Path) -> (tempfile::TempDir, [u64; 5]) {
    let dir = tempfile::tempdir().unwrap();
    let s = run(dir.path(), &[feed(file)], 2, 64 << 10).summary;
    let kind = |name| s.by_kind.get(name).copied().unwrap_or(0);
    let account = TapeAccount::load(dir.path()).unwrap();
    assert!(account.sources.iter().all(|s| s.end && s.tally.is_balanced()), "{}", file.display());
    let others = s.events - kind("payment") - kind("statement");
    (dir, [kind("payment"), kind("statement"), others, s.ignored, s.quarantined])
}

// Every message of the samples is an event, known and not wanted, or refused for a reason that is right.
#[test]
fn every_sample_is_accounted_for() {
    for (file, expected) in [
        ("prowide/MT101.fin", [1, 0, 0, 0, 0]),
        ("prowide/MT103-bulk-with-ack.rje", [3, 0, 0, 0, 0]),
        // A brace and a dollar follow the last message.
        ("prowide/MT103-out-ack.rje", [13, 0, 0, 0, 1]),
        ("prowide/MT305.fin", [0, 0, 1, 0, 1]),
        ("prowide/MT320.txt", [0, 0, 1, 0, 1]),
        ("prowide/MT340.fin", [0, 0, 1, 0, 0]),
        ("prowide/MT360.fin", [0, 0, 1, 0, 0]),
        // Its amount sold has no currency.
        ("prowide/SWIFTMT300_0000039099_0002.txt", [0, 0, 0, 0, 1]),
        ("mt940/ASNB/mt940.txt", [0, 31, 0, 0, 0]),
        ("mt940/ASNB/mt940_with_spaces_for_entry_date.txt", [0, 31, 0, 0, 0]),
        ("mt940/citi/mt940.txt", [0, 1, 0, 0, 0]),
        ("mt940/betterplace/sepa_mt9401.sta", [0, 26, 0, 0, 0]),
        ("mt940/betterplace/sepa_snippet.sta", [0, 2, 0, 0, 0]),
        ("mt940/betterplace/with_binary_character.sta", [0, 2, 0, 0, 0]),
        ("mt940/cmxl/mt940.sta", [0, 3, 0, 0, 0]),
        ("mt940/jejik/abnamro.sta", [0, 2, 0, 0, 0]),
        ("mt940/jejik/generic.sta", [0, 2, 0, 0, 0]),
        ("mt940/jejik/ing.sta", [0, 1, 0, 0, 0]),
        ("mt940/jejik/knab.sta", [0, 2, 0, 0, 0]),
        ("mt940/jejik/postfinance.sta", [0, 2, 0, 0, 0]),
        ("mt940/jejik/rabobank-iban.sta", [0, 2, 0, 0, 0]),
        ("mt940/jejik/rabobank.sta", [0, 4, 0, 0, 0]),
        ("mt940/jejik/sns.sta", [0, 2, 0, 0, 0]),
        ("mt940/jejik/triodos.sta", [0, 1, 0, 0, 0]),
        ("mt940/self-provided/mt942.sta", [0, 1, 0, 0, 0]),
        // Its second statement names no account.
        ("mt940/self-provided/multiline.sta", [0, 1, 0, 0, 1]),
    ] {
        let (dir, found) = account_of(&vectors().join(file));
        assert_eq!(found, expected, "{file}: {:?}", quarantine::list(dir.path()).unwrap());
    }
    // Types in turn; what is refused there is no whole message of its type, or is damaged: the codec's own
    // tests name each.
    let (dir, found) = account_of(&vectors().join("prowide/unit_test_messages.rje"));
    assert_eq!(found, [58, 6, 9, 15, 46]);
    let reasons = reasons(dir.path());
    let expected = [
        ("bad_block", 1),
        ("bad_time", 20),
        ("bad_value", 1),
        ("garbage", 6),
        ("malformed_field", 1),
        ("missing", 16),
        ("no_rule", 1),
    ];
    assert_eq!(reasons, expected.map(|(reason, n)| (reason.to_owned(), n)).into());
}

// Fragments too: a line or two without account or time is refused, and nothing of any file is left out.
#[test]
fn every_file_is_accounted_for() {
    let (mut files, mut total) = (0, [0; 5]);
    let mut todo = vec![vectors()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let is = |ext: &str| path.extension().is_some_and(|e| e == ext);
            let licence = path.file_name().is_some_and(|name| name == "LICENSE.txt");
            if path.is_dir() {
                todo.push(path);
            } else if (is("sta") || is("txt") || is("fin") || is("rje")) && !licence {
                let dir = tempfile::tempdir().unwrap();
                let s = run(dir.path(), &[named(&path)], 1, 64 << 10).summary;
                let account = TapeAccount::load(dir.path()).unwrap();
                assert!(account.sources.iter().all(|s| s.end && s.tally.is_balanced()), "{}", path.display());
                files += 1;
                for (total, n) in
                    total.iter_mut().zip([s.messages, s.events, s.ignored, s.quarantined, s.duplicates])
                {
                    *total += n;
                }
            }
        }
    }
    assert_eq!((files, total), (60, [347, 271, 16, 75, 0]));
}

// The event of each field of each kind of message.
#[test]
fn messages_become_the_right_events() {
    let head = |kind: &str| {
        format!("{{1:F01AAAABEBBAXXX0000000000}}{{2:O{kind}0915260302BBBBDEFFAXXX00000000002603020930N}}")
    };
    let messages = [
        format!(
            "{}{{3:{{121:eb6305c9}}}}{{4:\r\n:20:REF1\r\n:23B:CRED\r\n:32A:260303EUR9500,50\r\n:50K:/DE1\r\nPAYER\r\nSTREET\r\nTOWN\r\n\
             :52A:CCCCFRPP\r\n:57A:DDDDUS33\r\n:59:/GB2\r\nPAID\r\n:71A:SHA\r\n:72:/A/\r\n//B\r\n-}}",
            head("103")
        ),
        format!(
            "{}{{3:{{119:COV}}}}{{4:\n:20:REF2\n:21:REL\n:32A:260302USD1,\n:58A:/1\nEEEECHZZ\n:50F:/2\n1/PAYER\n3/DE\n:57A:FFFFNL2A\n:59:/3\nPAID\n-}}",
            head("202")
        ),
        format!("{}{{4:\n:20:REF3\n:21:REL\n:32A:260302USD1,\n:52D:/9\nBANK\nTOWN\n:58A:EEEECHZZ\n-}}", head("202")),
        format!(
            "{}{{4:\n:16R:GENL\n:20C::SEME//S1\n:23G:NEWM\n:98C::PREP//20260302081500\n:16S:GENL\n:16R:FIAC\n:97A::SAFE//77\n:16S:FIAC\n\
             :16R:SETPRTY\n:95P::SELL//GGGGESMM\n:97A::SAFE//88\n:16S:SETPRTY\n:35B:ISIN GB00BH4HKS39\nVODAFONE\n\
             :19A::DEAL//EUR1,\n:19A::SETT//EUR123456,50\n-}}",
            head("541")
        ),
        ":20:S1\n:25:NL81\n:28C:1/2\n:60F:D260302EUR444,29\n:61:2603020303RC65,00FMSCREF//BANK\nmore\n:86:a\n:86:b\n\
         :62F:C260303EUR379,30\n:64:D260303EUR1,\n:86:to the owner\n-\n"
            .to_owned(),
        // Refused by the network, an unknown type, a value that is not of its form, none at all.
        format!("{{1:F21AAAABEBBAXXX0000000000}}{{4:{{177:1}}{{451:1}}}}{}{{4:\n:20:NO\n:32A:260302USD1,\n-}}", head("103")),
        format!("{}{{4:\n:20:NO\n-}}", head("199")),
        format!("{}{{4:\n:20:NO\n:32A:260302USD1.5\n-}}", head("103")),
        format!("{}{{4:\n:20:NO\n-}}", head("103")),
    ];
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.rje");
    std::fs::write(&file, messages.join("$\r\n")).unwrap();
    let tape = dir.path().join("tape");
    let s = run(&tape, &[named(&file)], 1, 1 << 20).summary;
    assert_eq!((s.messages, s.events, s.ignored, s.quarantined), (9, 5, 1, 3));
    let at = 1_772_443_800_000_000_000i64; // 2026-03-02 09:30
    let found = events(&tape);
    let expected = [
        json!({"seq": 0, "ts": at, "kind": "payment", "msg": "MT103", "ref": "REF1", "dr_acct": "DE1", "cr_acct": "GB2",
               "dr_name": "PAYER", "cr_name": "PAID", "ccy": "EUR", "amt": "9500.5", "cr_bic": "DDDDUS33",
               "dr_bic": "CCCCFRPP", "cr_bank": "DDDDUS33", "dr_address": "STREET\nTOWN", "dr_bank": "CCCCFRPP",
               "sender": "BBBBDEFFAXXX", "uetr": "eb6305c9", "stage": "interbank", "value_date": "2026-03-03", "23B": "CRED", "71A": "SHA",
               "72": "/A/\n//B"}),
        json!({"seq": 0, "ts": at, "kind": "payment", "msg": "MT202COV", "ref": "REF2", "dr_acct": "2", "cr_acct": "3",
               "dr_name": "PAYER", "cr_name": "PAID", "ccy": "USD", "amt": "1", "cr_bic": "EEEECHZZ",
               "dr_bic": "BBBBDEFFAXXX", "cr_bank": "/1\nEEEECHZZ", "dr_address": "3/DE", "stage": "cover", "dr_country": "DE", "related": "REL",
               "sender": "BBBBDEFFAXXX", "value_date": "2026-03-02", "57A": "FFFFNL2A"}),
        json!({"seq": 0, "ts": at, "kind": "payment", "msg": "MT202", "ref": "REF3", "dr_acct": "9", "dr_name": "BANK",
               "ccy": "USD", "amt": "1", "cr_bic": "EEEECHZZ", "dr_bic": "BBBBDEFFAXXX", "dr_address": "TOWN",
               "related": "REL", "sender": "BBBBDEFFAXXX", "value_date": "2026-03-02", "stage": "interbank"}),
        json!({"seq": 0, "ts": at - 4_500_000_000_000i64, "kind": "payment", "msg": "MT541", "ref": "S1", "dr_acct": "77",
               "ccy": "EUR", "amt": "123456.5", "cr_bic": "GGGGESMM", "function": "NEWM", "instr": "GB00BH4HKS39",
               "instr_name": "VODAFONE", "safe_acct": "77", "sender": "BBBBDEFFAXXX", "98C:PREP": ":PREP//20260302081500",
               "97A:SAFE": ":SAFE//88", "19A:DEAL": ":DEAL//EUR1,"}),
        json!({"seq": 0, "ts": 1_772_496_000_000_000_000i64, "kind": "statement", "acct": "NL81", "ccy": "EUR", "ref": "S1",
               "opening": "-444.29", "closing": "379.3", "number": "1", "page": "2", "available": "-1",
               "entries": [{"date": "2026-03-02", "entry_date": "2026-03-03", "amt": "-65", "mark": "RC", "type": "FMSC",
                            "ref": "REF", "bank_ref": "BANK", "details": "more", "info": "a\nb"}],
               "86": "to the owner"}),
    ];
    let of_market: Vec<_> = found.iter().filter(|e| e["kind"] != "quarantine").collect();
    assert_eq!(of_market.len(), expected.len());
    for (found, expected) in of_market.iter().zip(&expected) {
        // The event's field order differs from the expectation's.
        assert_eq!(*found, expected);
    }
    assert_eq!(reasons(&tape), [("bad_value".to_owned(), 1), ("missing".to_owned(), 2)].into());
}

/// The lines of events, without the number of their place.
fn lines_of(bytes: &[u8]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("families.rje"), dir.path().join("tape"));
    std::fs::write(&file, bytes).unwrap();
    let s = run(&tape, &[feed(&file)], 2, 4096).summary;
    assert_eq!((s.quarantined, s.duplicates), (0, 0), "{:?}", quarantine::list(&tape).unwrap());
    events(&tape).iter().map(|event| event.to_string().replacen("\"seq\":0,", "", 1)).collect()
}

fn families() -> Vec<u8> {
    std::fs::read(vectors().join("families.rje")).unwrap()
}

// The events of a family are a promise to the readers of the tape. It would be broken by a payment that is reported
// as its debit, a second transaction with the payer of the first, or a cancelled settlement among those paid.
#[test]
fn each_family_becomes_its_events() {
    let lines = lines_of(&families()).join("\n");
    expect_test::expect_file!["../../../../vectors/swift/families.expected.jsonl"]
        .assert_eq(&format!("{lines}\n"));
}

// One file in all the forms that banks and gateways write: the bytes between messages must not matter, nor what their
// lines end with.
#[test]
fn files_of_all_forms_become_the_same_events() {
    let rje = families();
    let expected = lines_of(&rje);
    let text = String::from_utf8(rje).unwrap();
    let messages: Vec<&str> = text.trim_end().split("$\r\n").collect();
    assert_eq!(messages.len(), 40);
    let ack = "{1:F21AAAABEBBAXXX0001000001}{4:{177:2603020931}{451:0}}";
    let nak = "{1:F21AAAABEBBAXXX0001000001}{4:{177:2603020931}{451:1}{405:T13}}";
    let acked: Vec<String> = messages.iter().map(|m| format!("{ack}{m}")).collect();
    let refused = |m: &&str| [format!("{nak}{m}"), format!("{ack}\r\n{m}")].concat();
    for (form, bytes) in [
        ("one line", messages.join("$")),
        ("line ends of Unix", text.replace("\r\n", "\n")),
        ("blank lines", messages.join("\r\n\r\n")),
        ("blank lines in front and behind", format!("\n\n{}\n\n\n", messages.join("\n \n"))),
        ("acknowledged", acked.join("\r\n")),
        ("acknowledged, with separators", acked.join("$\r\n")),
        ("filled up, between bytes", messages.iter().map(|m| format!("\x01{m}\x03  ")).collect()),
        ("refused, then sent again", messages.iter().map(refused).collect::<Vec<_>>().join("\r\n")),
        ("nothing between", messages.concat()),
    ] {
        assert_eq!(lines_of(bytes.as_bytes()), expected, "{form}");
        let mut out = Vec::new();
        let framer = unitape_codec::swift_mt::SwiftFramer::default();
        let summary = unitape_codec::swift_mt::decode_json(&mut bytes.as_bytes(), form, &framer, &mut out);
        let output = String::from_utf8(out).unwrap();
        assert!(!output.contains("\"error\""), "{form}: {output}");
        let is_message = |l: &&str| !l.contains(r#""type":"ACK""#) && !l.contains(r#""status":"NAK""#);
        let messages = output.lines().filter(is_message).count();
        assert_eq!(messages, 40, "{form}: {:?}", summary.unwrap());
    }
}

// A field that rules of other types name, and one that comes again, are not lost: nobody would miss them.
#[test]
fn what_the_rule_does_not_name_is_kept() {
    let message = "{1:F01AAAABEBBAXXX0000000000}{2:O1030915260302BBBBDEFFAXXX00000000002603020930N}{4:\n:20:R\n\
        :23E:SDVA\n:23E:INTC\n:32A:260302EUR1,\n:33B:USD2,\n:36:1,5\n:50K:A\n:59:B\n:59:C\n:75:X\n:79:Y\n-}";
    let line = lines_of(message.as_bytes()).remove(0);
    for kept in [
        r#""23E":"SDVA""#,
        r#""23E#2":"INTC""#,
        r#""33B":"USD2,""#,
        r#""36":"1,5""#,
        r#""59":"C""#,
        r#""75":"X""#,
        r#""79":"Y""#,
    ] {
        assert!(line.contains(kept), "{kept} in {line}");
    }
}

/// The events of one message, and the reasons why it was refused.
fn read_one(text: &[u8]) -> (Vec<Value>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("one.fin"), dir.path().join("tape"));
    std::fs::write(&file, text).unwrap();
    run(&tape, &[named(&file)], 1, 1 << 20);
    let found = events(&tape).into_iter().filter(|e| e["kind"] != "quarantine").collect();
    let why = quarantine::list(&tape).unwrap();
    (found, why.into_iter().map(|e| format!("{}: {}", e.reason, e.detail)).collect())
}

// A payment was refused for one letter in a name, and a statement had its text as digits of bytes.
#[test]
fn letters_of_other_sets_are_read_and_noted() {
    let payment = |name: &[u8], reference: &[u8], account: &[u8]| {
        [
            &b"{1:F01AAAABEBBAXXX0000000000}{2:O1030915260302BBBBDEFFAXXX00000000002603020930N}{4:\n:20:"[..],
            reference,
            b"\n:23B:CRED\n:32A:260302EUR10,\n:50K:/",
            account,
            b"\n",
            name,
            b"\n:59:/GB2\nPAID\n:70:",
            name,
            b"\n-}",
        ]
        .concat()
    };
    let (events, refused) = read_one(&payment(b"J\xfcrgen \x80", b"R", b"DE1"));
    assert_eq!(refused, [""; 0]);
    assert_eq!(events[0]["dr_name"], "J\u{fc}rgen \u{20ac}");
    assert_eq!(events[0]["70"], "J\u{fc}rgen \u{20ac}");
    assert_eq!(events[0]["encoding"], "guessed windows-1252");
    let (events, _) = read_one(&payment("J\u{fc}rgen".as_bytes(), b"R", b"DE1"));
    assert_eq!((&events[0]["dr_name"], &events[0]["encoding"]), (&json!("J\u{fc}rgen"), &Value::Null));
    let (events, refused) = read_one(&payment(b"A", b"R\xe9", b"DE1"));
    assert!(events.is_empty() && refused[0].starts_with("not_utf8: ref (field 20.reference)"), "{refused:?}");
    let (events, refused) = read_one(&payment(b"A", b"R", b"DE\xe9"));
    assert!(
        events.is_empty() && refused[0].starts_with("not_utf8: dr_acct (field 50a.account)"),
        "{refused:?}"
    );
    let statement = b":20:S1\n:25:NL81\n:28C:1/2\n:60F:C260302EUR0,\n:61:2603020303C1,00FMSCREF//BANK\nf\xfcr\n:86:M\xfcller\n:86:S\xf6hne\n:62F:C260303EUR1,\n-\n";
    let (events, refused) = read_one(statement);
    assert_eq!(refused, [""; 0]);
    let line = &events[0]["entries"][0];
    assert_eq!((&line["info"], &line["details"]), (&json!("M\u{fc}ller\nS\u{f6}hne"), &json!("f\u{fc}r")));
    assert_eq!(events[0]["encoding"], "guessed windows-1252");
    let odd: Vec<u8> = statement.iter().map(|b| if *b == b'R' { 0xe9 } else { *b }).collect();
    assert!(read_one(&odd).0.is_empty());
}

// A floor limit with a blank in it cost the whole report of the day.
#[test]
fn an_odd_value_of_no_importance_is_kept_as_it_came() {
    let report = |floor: &str, rest: &str| {
        format!(
            ":20:D1\n:25:1/2\n:28C:0/1\n:34F:{floor}\n:13D:2603020930+0100\n:61:2603020302C1,00NTRFNONREF\n{rest}-\n"
        )
    };
    for (floor, rest) in [
        ("EUR 999999999999,99", ":90D:EUR,00\n:90C:1EUR1,00\n"),
        ("999,", ":90D:0EUR\n"),
        ("EUR", ""),
        ("EURD 0,", ":90C:\n"),
        ("eur0,", ":90D:x\n:90C:y\n"),
    ] {
        let (events, refused) = read_one(report(floor, rest).as_bytes());
        assert_eq!(refused, [""; 0], "{floor}");
        assert_eq!((events.len(), &events[0]["entries"][0]["amt"]), (1, &json!("1")), "{floor}");
        assert_eq!(events[0]["34F.currency"], floor);
        assert!(events[0]["odd"].as_str().unwrap().contains("field 34F"), "{}", events[0]);
    }
    let (events, _) = read_one(report("EUR0,", "").as_bytes());
    assert_eq!((&events[0]["ccy"], &events[0]["odd"]), (&json!("EUR"), &Value::Null));
    // What counts is refused as before, and the reason names the field and what is wrong with it.
    for (text, words) in [
        (":20:S\n:25:1\n:28C:1\n:60F:C260302EUR0,\n:61:2603020303CxNTRFX\n:62F:C260302EUR1,\n-\n", "61"),
        (":20:S\n:25:1\n:28C:1\n:60F:C260302EUR0,\n:62F:C260302EUR 1,\n-\n", "field 62F"),
    ] {
        let (events, refused) = read_one(text.as_bytes());
        assert!(events.is_empty() && refused[0].contains(words), "{refused:?}");
        assert!(!refused[0].contains("not one of the values"), "{refused:?}");
    }
    let (events, refused) =
        read_one(b":20:S\n:25:1\n:28C:x\n:60F:C260302EUR0,\n:62F:C260302EUR1,\n:64:odd\n-\n");
    assert_eq!(refused, [""; 0]);
    assert_eq!((&events[0]["number"], &events[0]["available"]), (&json!("x"), &json!("odd")));
}

// A thousand became 1, and an entry date of month 13 was gone, both without a word.
#[test]
fn statement_lines_say_all_of_their_amounts_and_days() {
    let statement =
        |line: &str| format!(":20:S\n:25:1\n:28C:1\n:60F:C260302EUR0,\n:61:{line}\n:62F:C260302EUR1,\n-\n");
    for amount in ["1.000,00", "10.50", "1 234,50", "12O4,50"] {
        let (events, refused) = read_one(statement(&format!("260302C{amount}NTRFREF")).as_bytes());
        assert!(events.is_empty(), "{amount}: {events:?}");
        assert!(refused[0].contains("a transaction type after the amount"), "{refused:?}");
    }
    for (day, entry_date, odd) in [
        ("0303", json!("2026-03-03"), Value::Null),
        ("1303", Value::Null, json!("entry_date 1303 is no day")),
        ("0230", Value::Null, json!("entry_date 0230 is no day")),
        ("0000", Value::Null, json!("entry_date 0000 is no day")),
    ] {
        let (events, refused) = read_one(statement(&format!("260302{day}C1,NTRFREF")).as_bytes());
        assert_eq!(refused, [""; 0]);
        let line = &events[0]["entries"][0];
        assert_eq!(
            (&line["entry_date"], &line["odd"], &line["amt"]),
            (&entry_date, &odd, &json!("1")),
            "{line}"
        );
    }
}

// A notice of the network about a message is a message, too, and has no number.
#[test]
fn acknowledgements_by_a_mapping_of_ones_own() {
    let mapping = r#"
        name = "acks"
        format = "swift"
        message = { ts = "time", unlisted = "keep" }
        [[rule]]
        when = { type = ["ACK", "NAK"] }
        [[rule.event]]
        kind = "status"
        fields = { state = "type", reason = "1.application" }
    "#;
    let dir = tempfile::tempdir().unwrap();
    let (toml, file) = (dir.path().join("acks.toml"), dir.path().join("a.fin"));
    std::fs::write(&toml, mapping).unwrap();
    std::fs::write(&file, "{1:F21AAAABEBBAXXX0001000001}{4:{177:2603020931}{451:0}}").unwrap();
    let format = Format::from_names("swift", toml.to_str().unwrap()).unwrap();
    let tape = dir.path().join("tape");
    run(&tape, &[FileFeed { name: "acks".to_owned(), format, files: vec![file] }], 1, 1 << 20);
    let found = &events(&tape)[0];
    // 2026-03-02 09:31, when it was acknowledged.
    assert_eq!(
        (&found["state"], &found["ts"]),
        (&json!("ACK"), &json!(1_772_443_860_000_000_000i64)),
        "{found}"
    );
}

/// Good messages, damaged ones, acknowledgements, bare statements and garbage, mixed.
fn mixed(seed: u64, messages: usize) -> Vec<u8> {
    let good = sample_messages(messages, seed);
    let mut state = seed | 1;
    let mut random = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    let mut out = Vec::new();
    for message in good.split_inclusive(|b| *b == b'$') {
        let mut message = message.to_vec();
        match random(12) {
            0 => {
                let at = random(message.len() as u64) as usize;
                message[at] = b"{}\n:-$X"[random(7) as usize];
            }
            1 => message.truncate(message.len() / 2),
            2 => out.extend_from_slice(b"{1:F21AAAABEBBAXXX0000000000}{4:{177:1704260717}{451:0}}"),
            3 => out.extend_from_slice(b"\n:20:BARE\n:25:1\n:60F:C260302EUR1,\n:62F:C260302EUR1,\n-\n"),
            4 => out.extend_from_slice(b"\nABNANL2A\n940\n:20:BARE\n:25:1\n:62F:C260302EUR1,\n"),
            5 => out.extend_from_slice(b"some garbage in between"),
            6 => message.retain(|b| *b != b'\r'),
            7 => _ = message.pop(),
            _ => {}
        }
        out.extend_from_slice(&message);
    }
    out
}

#[test]
fn any_number_of_workers_and_any_cut_gives_the_same_tape() {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("samples.rje", std::fs::read(vectors().join("prowide/unit_test_messages.rje")).unwrap()),
        ("statements.sta", std::fs::read(vectors().join("mt940/betterplace/sepa_mt9401.sta")).unwrap()),
        ("rabobank.sta", std::fs::read(vectors().join("mt940/jejik/rabobank.sta")).unwrap().repeat(20)),
        ("mixed.rje", mixed(7, 300)),
        ("mixed2.rje", mixed(99, 300)),
    ] {
        let file = dir.path().join(name);
        std::fs::write(&file, &bytes).unwrap();
        let feeds = [named(&file)];
        let reference = tempfile::tempdir().unwrap();
        let s = run(reference.path(), &feeds, 1, 1 << 20).summary;
        assert!(s.events > 10, "{name}: {s:?}");
        for (workers, block_bytes) in [(1, 64), (1, 999), (2, 64 << 10), (2, 5000), (4, 300), (4, 2000)] {
            let other = tempfile::tempdir().unwrap();
            run(other.path(), &feeds, workers, block_bytes);
            let what = format!("{name}: {workers} workers, blocks of {block_bytes}");
            assert_same(reference.path(), other.path(), &what);
        }
    }
}

// A mapping of one's own may make an event of each statement line.
#[test]
fn lines_of_a_statement_as_entries_of_a_group() {
    let mapping = r#"
        name = "lines"
        format = "swift"
        message = { ts = "61.date", ts_or = "time", unlisted = "keep" }
        group.lines = { delimiter = "61", members = ["61", "86"] }
        [[rule]]
        when = { type = "940" }
        [[rule.event]]
        kind = "payment"
        each = "lines"
        fields = { ref = "61.reference", amt = "61.signed", ccy = "60a.currency" }
        keep = { info = "86" }
    "#;
    let dir = tempfile::tempdir().unwrap();
    let (toml, file) = (dir.path().join("lines.toml"), dir.path().join("a.sta"));
    std::fs::write(&toml, mapping).unwrap();
    std::fs::write(
        &file,
        ":20:S\n:25:1\n:60F:C260302EUR1,\n:61:260302D1,5NMSCA\n:86:first\n:61:260302C2,NMSCB\n:62F:C260302EUR1,\n:86:not a line's\n-",
    )
    .unwrap();
    let format = Format::from_names("swift", toml.to_str().unwrap()).unwrap();
    let tape = dir.path().join("tape");
    run(&tape, &[FileFeed { name: "lines".to_owned(), format, files: vec![file] }], 1, 1 << 20);
    let found = events(&tape);
    let fields: Vec<_> = found.iter().map(|e| (&e["ref"], &e["amt"], &e["info"])).collect();
    assert_eq!(
        fields,
        [(&json!("A"), &json!("-1.5"), &json!("first")), (&json!("B"), &json!("2"), &Value::Null)]
    );
    assert_eq!(found[0]["86"], "not a line's");
}
