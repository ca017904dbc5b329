//! One transfer in its stages: each message says which stage it is, and all have the same UETR.

use crate::common::{cat, file, root, run};
use serde_json::Value;

const UETR: &str = "eb6305c9-1f7f-49de-aed0-16487c27b42d";

fn vectors(name: &str) -> String {
    root().join("vectors/payments").join(name).display().to_string()
}

/// The events of a feed and the reasons of its quarantine.
fn consolidated(feed: &str) -> (Vec<Value>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let ran = run(["consolidate", "--feed", feed, "--tape", tape.to_str().unwrap()]);
    assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.stderr);
    let (quarantined, events) = cat(&tape, &[]).into_iter().partition(|e| e["kind"] == "quarantine");
    let quarantined: Vec<Value> = quarantined;
    (events, quarantined.iter().map(|e| e["detail"].to_string()).collect())
}

/// The payments of FIN messages by a mapping.
fn fin_payments(messages: &str, mapping: &str) -> (Vec<Value>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let input = file(dir.path(), "in.fin", messages.replace('\n', "\r\n"));
    let (mut events, reasons) = consolidated(&format!("pay=swift:{mapping}:{}", input.display()));
    events.retain(|e| e["kind"] == "payment");
    (events, reasons)
}

/// A message of this type, `block3` with its braces.
fn fin(mt: &str, block3: &str, fields: &str) -> String {
    format!(
        "{{1:F01AAAADEHHAXXX0000000000}}{{2:O{mt}0905260302BBBBUS33AXXX00000000002603020905N}}{block3}{{4:\n{fields}\n-}}$\n"
    )
}

fn transfer(block3: &str, field_72: &str) -> String {
    let more = if field_72.is_empty() { String::new() } else { format!("\n:72:{field_72}") };
    fin("103", block3, &format!(":20:R\n:23B:CRED\n:32A:260302EUR1,\n:50K:A\n:59:B\n:71A:SHA{more}"))
}

/// A transfer that is a request, a payment, a cover, a recall and a return was counted five times: nothing said that they
/// are one. The lines are a promise to the readers of the tape.
#[test]
fn a_transfer_is_one_in_all_its_stages() {
    let iso = [
        "pain.001 initiation same",
        "pacs.008 interbank same",
        "pacs.009COV cover same",
        "camt.056 recall same",
        "pacs.004 return same",
        "pacs.009 interbank none",
    ];
    let mt = [
        "MT101 initiation same",
        "MT103 interbank same",
        "MT202COV cover same",
        "MT205COV cover same",
        "MT192 recall same",
        "MT103 return same",
        "MT202 return same",
        "MT103 return none",
        "MT202 interbank none",
    ];
    for (name, feed, stages) in
        [("stages.xml", "iso20022:iso20022", &iso[..]), ("stages.fin", "swift:swift-mt", &mt)]
    {
        let dir = tempfile::tempdir().unwrap();
        let tape = dir.path().join("t");
        let feed = format!("pay={feed}:{}", vectors(name));
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
        let found = run(["tape", "cat", tape.to_str().unwrap(), "--json"]).code(0);
        let expected = std::fs::read_to_string(vectors(&format!("{name}.expected.jsonl"))).unwrap();
        for (found, expected) in found.text().lines().zip(expected.lines()) {
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(found.text(), expected, "{name}");
        let payments = found.lines().into_iter().filter(|e| e["kind"] == "payment");
        let shown = payments.map(|e| {
            let uetr = if e["uetr"] == UETR { "same" } else { e["uetr"].as_str().unwrap_or("none") };
            format!("{} {} {uetr}", e["msg"].as_str().unwrap(), e["stage"].as_str().unwrap_or("-"))
        });
        assert_eq!(shown.collect::<Vec<_>>(), stages, "{name}");
    }
}

/// Field 72 says much else; only its first line, in the sequence of the message itself, makes a return of a transfer
/// (Standards MT Usage Guidelines, Payments Reject/Return Guidelines).
#[test]
fn only_line_1_of_field_72_makes_a_return() {
    let transfers = [
        ("", "interbank"),
        ("/RETN/59\n/AC04/\n/MREF/R0", "return"),
        ("/REJT/57A\n/AC01/\n/MREF/R0", "return"),
        ("/INS/AAAADEHH\n/RETN/59", "interbank"),
        ("RETN", "interbank"),
        ("/RETN", "interbank"),
        ("/RETNX/59", "interbank"),
        ("/retn/59", "interbank"),
    ];
    let messages: String = transfers.iter().map(|(field_72, _)| transfer("", field_72)).collect();
    let (events, reasons) = fin_payments(&messages, "swift-mt");
    assert_eq!(events.len(), transfers.len(), "{reasons:?}");
    for (event, (field_72, stage)) in events.iter().zip(transfers) {
        assert_eq!(event["stage"], stage, "{field_72:?}");
        // It stays a field of the message.
        assert_eq!(event["72"].as_str().unwrap_or(""), field_72);
    }
    // In a cover, sequence B has the field 72 of the transfer beneath it.
    let covers = [
        ("", "", "cover"),
        ("\n:72:/RETN/58A", "", "return"),
        ("", "\n:72:/RETN/59", "cover"),
        ("\n:72:/INS/AAAADEHH", "\n:72:/RETN/59", "cover"),
    ];
    let cover = |a: &str, b: &str| {
        let fields =
            format!(":20:R\n:21:R0\n:32A:260302EUR1,\n:58A:DDDDUS44{a}\n:50K:A\n:59:B\n:33B:EUR1,{b}");
        fin("202", "{3:{119:COV}}", &fields)
    };
    let messages: String = covers.iter().map(|(a, b, _)| cover(a, b)).collect();
    let (events, reasons) = fin_payments(&messages, "swift-mt");
    let stages: Vec<_> = events.iter().map(|e| e["stage"].as_str().unwrap()).collect();
    assert_eq!(stages, covers.map(|(.., stage)| stage), "{reasons:?}");
}

/// A message without a UETR, or with one that is none, was to be kept as it came: the reference is the sender's.
#[test]
fn a_uetr_is_kept_as_it_came() {
    let long = "x".repeat(300);
    let blocks: &[(&str, Option<&str>)] = &[
        ("", None),
        ("{3:{108:REF}}", None),
        ("{3:{121:}}", None),
        ("{3:{121:eb6305c9}}", Some("eb6305c9")),
        ("{3:{121:EB6305C9-1F7F-49DE-AED0-16487C27B42D}}", Some("EB6305C9-1F7F-49DE-AED0-16487C27B42D")),
        ("{3:{121:123}}", Some("123")),
        (&format!("{{3:{{121:{long}}}}}"), Some(&*long)),
    ];
    let messages: String = blocks.iter().map(|(block3, _)| transfer(block3, "")).collect();
    let (events, reasons) = fin_payments(&messages, "swift-mt");
    assert_eq!(events.len(), blocks.len(), "{reasons:?}");
    for (event, (block3, uetr)) in events.iter().zip(blocks) {
        assert_eq!(event["uetr"].as_str(), *uetr, "{block3}");
    }
    let document = std::fs::read_to_string(vectors("stages.xml")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for (other, uetr) in [
        (String::new(), None),
        ("<UETR/>".to_owned(), None),
        ("<UETR>not-a-uetr</UETR>".to_owned(), Some("not-a-uetr")),
    ] {
        let input = file(dir.path(), "in.xml", document.replace(&format!("<UETR>{UETR}</UETR>"), &other));
        let (events, reasons) = consolidated(&format!("pay=iso20022:iso20022:{}", input.display()));
        let transfer = events.iter().find(|e| e["msg"] == "pacs.008").unwrap();
        assert_eq!(
            (transfer["uetr"].as_str(), &transfer["stage"]),
            (uetr, &"interbank".into()),
            "{reasons:?}"
        );
    }
}

/// One UETR in the header of a request with two transactions made them one transfer.
#[test]
fn a_uetr_does_not_name_several_transactions() {
    let transaction = |n: u32| format!("\n:21:T{n}\n:32B:EUR1,\n:59:B{n}\n:71A:SHA");
    let request = |n: u32| {
        let all: String = (1..=n).map(transaction).collect();
        let fields = format!(":20:R\n:28D:1/1\n:50H:/1\nA\n:30:260302{all}");
        fin("101", &format!("{{3:{{121:{UETR}}}}}"), &fields)
    };
    let messages: String = (1..=3).map(request).collect();
    let (events, reasons) = fin_payments(&messages, "swift-mt");
    let found: Vec<_> = events.iter().map(|e| e["uetr"].as_str()).collect();
    assert_eq!(found, [Some(UETR), None, None, None, None, None], "{reasons:?}");
    assert!(events.iter().all(|e| e["stage"] == "initiation"), "{events:?}");
}

/// A country that is guessed is a false alarm, or none: a street with `3/` in it, and the country of the bank, are none of
/// the party's.
#[test]
fn the_country_of_a_party_is_that_of_its_address() {
    let parties = [
        (":50F:/1\n1/A\n2/STREET\n3/DE/HAMBURG", Some("DE")),
        (":50F:/1\n1/A\n3/US", Some("US")),
        (":50F:/1\n1/A\n3/US/A\n3/B", Some("US")),
        (":50F:/1\n1/A\n3/USA", None),
        (":50F:/1\n1/A\n3/B\n3/US", None),
        (":50F:/1\n1/A\n2/3/US", None),
        (":50K:/1\nA\n3/US/NEW YORK", None),
        (":50A:/1\nAAAADEHH", None),
    ];
    let message =
        |party: &str| fin("103", "", &format!(":20:R\n:32A:260302EUR1,\n{party}\n:57A:DDDDUS44\n:59:B"));
    let messages: String = parties.iter().map(|(party, _)| message(party)).collect();
    let (events, reasons) = fin_payments(&messages, "swift-mt");
    assert_eq!(events.len(), parties.len(), "{reasons:?}");
    for (event, (party, country)) in events.iter().zip(parties) {
        assert_eq!((event["dr_country"].as_str(), &event["cr_country"]), (country, &Value::Null), "{party}");
    }
}

/// A mapping of a user's own that keeps `uetr` stopped working when `uetr` became a field, or nobody learnt of it.
#[test]
fn a_mapping_that_keeps_the_uetr_still_works() {
    let dir = tempfile::tempdir().unwrap();
    let head = "name = \"m\"\nformat = \"swift\"\nmessage = { ts = \"time\" }\n[[rule]]\nwhen = { type = \"103\" }\n[[rule.event]]\nkind = \"payment\"\n";
    let mapping = |name: &str, body: &str| -> String {
        file(dir.path(), name, format!("{head}{body}")).display().to_string()
    };
    let kept = mapping("kept.toml", "keep = { uetr = \"3.121\" }\nfields = { ref = \"20.reference\" }\n");
    let set = mapping("set.toml", "fields = { ref = \"20.reference\", uetr = \"3.121\" }\n");
    let message = transfer(&format!("{{3:{{121:{UETR}}}}}"), "");
    for file in [&kept, &set] {
        let (events, reasons) = fin_payments(&message, file);
        assert_eq!((events.len(), &events[0]["uetr"]), (1, &UETR.into()), "{file}: {reasons:?}");
    }
    let says = |file: &str| run(["mapping", "check", file]).code(0).text().to_owned();
    assert_eq!(says(&set), "m: ok, 1 rules\n");
    let hint = "line 8: `uetr` is a field of `payment`: write `uetr = \"3.121\"` in fields, not in keep";
    assert_eq!(says(&kept), format!("m: ok, 1 rules\n  {hint}\n"));
    let json = run(["mapping", "check", &kept, "--json"]).code(0).json();
    assert_eq!((&json["ok"], &json["hints"][0]["name"]), (&true.into(), &"uetr".into()));
    // Nobody can change a shipped one.
    assert_eq!(says("iso20022").lines().count(), 1);
}
