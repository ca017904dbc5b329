//! SWIFT on the command line: good and bad files, stdin, a statement without blocks, a feed of several files.

mod common;

use common::{cat, root, run, run_with_stdin};
use serde_json::Value;
use std::path::Path;

const GOOD: &str =
    "{1:F01AAAABEBBAXXX0000000000}{2:I103BBBBDEFFXXXXN}{4:\r\n:20:A\r\n:32A:260302EUR1,50\r\n-}";

fn vectors(name: &str) -> String {
    root().join("vectors/swift").join(name).display().to_string()
}

// A pipe gives its bytes in pieces, and the last message may have nothing behind it.
#[test]
fn decode_reads_stdin_and_keeps_the_neighbours_of_bad_messages() {
    let input = format!("{GOOD}$\n{{1:F01A}}{{2:I103B}}{{3:{{108:X}}{{4:\n:20:B\n-}}$\njunk\n{GOOD}");
    let ran = run_with_stdin(["decode", "swift", "-", "--json"], input.as_bytes()).code(3);
    let lines = ran.lines();
    let told: Vec<_> =
        lines.iter().map(|l| l["type"].as_str().or(l["error"]["code"].as_str()).unwrap_or("?")).collect();
    assert_eq!(told, ["MT103", "bad_block", "MT103"]);
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

// A value that is not of its form is told beside the others, and its message is none the worse.
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

// What a mended mapping recovers is appended; until then the raw bytes are to be had.
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
