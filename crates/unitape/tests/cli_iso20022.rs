//! ISO 20022 on the command line: good and bad files, stdin, a feed recognised by its content.

mod common;

use common::{cat, root, run, run_with_stdin};

const GOOD: &str = "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.002.001.11\"><A><B C=\"x\">1</B><B>2</B></A></Document>";

fn vectors(name: &str) -> String {
    root().join("vectors/iso20022").join(name).display().to_string()
}

// A pipe gives its bytes in pieces, and a bad message must not take its neighbours with it.
#[test]
fn decode_reads_stdin_and_keeps_the_neighbours_of_bad_messages() {
    let bomb = "<!DOCTYPE lolz [<!ENTITY lol \"lol\">]><lolz>&lol;</lolz>";
    let input = format!("\u{feff}{GOOD}\n{bomb}\n<?xml version=\"1.0\"?>{GOOD}junk\n{GOOD}");
    let ran = run_with_stdin(["decode", "iso20022", "-", "--json"], input.as_bytes()).code(3);
    let lines = ran.lines();
    let told: Vec<_> =
        lines.iter().map(|l| l["type"].as_str().or(l["error"]["code"].as_str()).unwrap_or("?")).collect();
    assert_eq!(told, ["pacs.002.001.11", "doctype", "pacs.002.001.11", "garbage", "pacs.002.001.11"]);
    assert_eq!(lines[0]["fields"]["Document/A/B"], serde_json::json!(["1", "2"]));
    assert_eq!(lines[0]["fields"]["Document/A/B@C"], "x");
    assert_eq!(lines[0]["offset"], 3);
    assert_eq!(lines.iter().map(|l| l["n"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let place = lines[4]["offset"].as_u64().unwrap() as usize;
    assert_eq!(&input[place..], GOOD);
    let shown = run_with_stdin(["decode", "iso20022", "-"], GOOD.as_bytes()).code(0);
    assert_eq!(
        shown.stdout.trim_ascii_end(),
        b"0 @0 pacs.002.001.11 Document/A/B@C=x Document/A/B=[\"1\",\"2\"]"
    );
}

#[test]
fn decode_of_nothing_and_of_no_file() {
    assert!(run_with_stdin(["decode", "iso20022", "-", "--json"], b"").code(0).stdout.is_empty());
    let ran = run_with_stdin(["decode", "iso20022", "-", "--json"], b"nothing of the sort\n").code(3);
    assert_eq!(ran.json()["error"]["code"], "garbage");
    run(["decode", "iso20022", "no-such-file", "--json"]).code(1).says(&["no-such-file"]);
    run(["decode", "iso20022"]).code(2);
}

#[test]
fn a_file_is_recognised_by_its_content() {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("t");
    let file = vectors("prowide/pacs.008.001.07.xml");
    let account = run(["consolidate", &file, "--tape", tape.to_str().unwrap(), "--json"]).code(0).json();
    assert_eq!((&account["messages"], &account["by_kind"]["payment"]), (&1.into(), &1.into()));
    let first = &cat(&tape, &[])[0];
    assert_eq!(
        (&first["amt"], &first["ccy"], &first["dr_name"]),
        (&"5000".into(), &"USD".into(), &"JOHN DOE".into())
    );
    // XML of another sort is not taken for it.
    let other = dir.path().join("other.xml");
    std::fs::write(&other, "<?xml version=\"1.0\"?><html><body/></html>").unwrap();
    let (other, tape) = (other.display().to_string(), dir.path().join("u").display().to_string());
    run(["consolidate", &other, "--tape", &tape]).code(1).says(&["not recognised"]);
}
