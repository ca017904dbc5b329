//! Separated values on the command line: the list of bookings of a bank of the continent, by a layout and a mapping.

use crate::common::{cat, root, run};
use std::path::Path;

const LAYOUT: &str = r#"
name = "birch"
separator = "semicolon"
column = [
  { name = "Buchung", type = "date", form = "DD.MM.YYYY", required = true },
  { name = "Betrag", type = "decimal", point = ",", thousands = ".", negative = ["trailing", "parentheses"] },
]
"#;

const MAPPING: &str = r#"
name = "birch"
format = "csv"
layout = "layout.toml"
[message]
ts = "Buchung"
unlisted = "drop"
[[rule]]
when = { Art = ["SALDO", "INFO"] }
ignore = true
[[rule]]
when = { Betrag = { sign = "negative" } }
[[rule.event]]
kind = "payment"
fields = { dr_acct = "Konto", cr_acct = "IBAN", amt = { from = "Betrag", absolute = true } }
[[rule]]
when = { Betrag = { sign = "positive" } }
[[rule.event]]
kind = "payment"
fields = { dr_acct = "IBAN", cr_acct = "Konto", amt = "Betrag" }
"#;

/// The result of these rows by [`MAPPING`]: exit code, payer, payee and amount of each payment, details of the
/// quarantine.
fn consolidated(dir: &Path, rows: &str) -> (i32, Vec<[String; 3]>, Vec<String>) {
    let (tape, file) = (dir.join("tape"), dir.join("in.csv"));
    _ = std::fs::remove_dir_all(&tape);
    std::fs::write(dir.join("layout.toml"), LAYOUT).unwrap();
    std::fs::write(dir.join("mapping.toml"), MAPPING).unwrap();
    std::fs::write(&file, rows).unwrap();
    let feed = format!("b=csv:{}:{}", dir.join("mapping.toml").display(), file.display());
    let ran = run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]);
    assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.stderr);
    let events = cat(&tape, &[]);
    let text = |e: &serde_json::Value, name: &str| e[name].as_str().unwrap_or("-").to_owned();
    let payments = events.iter().filter(|e| e["kind"] == "payment");
    let payments = payments.map(|e| [text(e, "dr_acct"), text(e, "cr_acct"), text(e, "amt")]).collect();
    let details = events.iter().filter(|e| e["kind"] == "quarantine").map(|e| text(e, "detail")).collect();
    (ran.code.unwrap(), payments, details)
}

const HEADER: &str = "Konto;Buchung;Art;IBAN;Betrag\n";

// Decimal comma, thousands mark, (12,00), 12,00- and DD.MM.YYYY were refused or had to be made plain before.
#[test]
fn a_continental_bank_is_read_by_mapping_alone() {
    let dir = tempfile::tempdir().unwrap();
    let rows = format!(
        "{HEADER}A;02.03.2026;U;B;1.234,50-\nA;02.03.2026;U;B;(12,00)\nA;02.03.2026;U;B;-7\nA;02.03.2026;G;B;1.000.000,25\nA;02.03.2026;SALDO;;5,00\nA;02.03.2026;INFO;;0,00\n"
    );
    let (code, payments, details) = consolidated(dir.path(), &rows);
    assert_eq!((code, &details[..]), (0, &[][..]));
    let want = [["A", "B", "1234.5"], ["A", "B", "12"], ["A", "B", "7"], ["B", "A", "1000000.25"]];
    assert_eq!(payments, want);
}

// A text that is no number by the layout's marks is refused: 1.234 must never be one and a bit, or 12.34 twelve
// hundred.
#[test]
fn numbers_by_other_marks_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for amount in ["12.34", "1,234.50", "1.2345,00", "1.23,45-", "--1", "(1,00", "1,00 EUR", "0,00"] {
        let rows = format!("{HEADER}A;02.03.2026;U;B;{amount}\nA;02.03.2026;U;B;1,00\n");
        let (code, payments, details) = consolidated(dir.path(), &rows);
        assert_eq!((code, payments.len(), details.len()), (3, 1, 1), "{amount}: {details:?}");
    }
}

// A column that the mapping names had to be listed in the layout; one that the file lacks would be blank in every row.
#[test]
fn a_column_that_the_mapping_names_must_be_in_the_header() {
    let dir = tempfile::tempdir().unwrap();
    let (code, payments, details) =
        consolidated(dir.path(), "Konto;Buchung;Art;Betrag\nA;02.03.2026;U;1,00\n");
    assert_eq!((code, payments.len()), (3, 0));
    assert!(details[0].contains("`IBAN`"), "{details:?}");
}

// Only the type of a message could be one of several.
#[test]
fn conditions_on_several_values_and_on_signs_are_for_all_formats() {
    let dir = tempfile::tempdir().unwrap();
    let mapping = "name = 'mine'\nformat = 'fix'\n[message]\nts = '52'\nunlisted = 'drop'\n[[rule]]\nwhen = { '150' = ['1', '2'], '6' = { sign = 'positive' } }\n[[rule.event]]\nkind = 'exec'\nfields = { oid = '37', qty = '32' }\n[[rule]]\nignore = true\n";
    let path = dir.path().join("mine.toml");
    std::fs::write(&path, mapping).unwrap();
    let message = |kind: &str, price: &str, id: usize| {
        let body =
            format!("35=8|52=20260302-09:30:00.000|37=O{id}|150={kind}|32=5|6={price}|").replace('|', "\x01");
        let head = format!("8=FIX.4.4\x019={}\x01{body}", body.len());
        format!("{head}10={:03}\x01", head.bytes().map(u32::from).sum::<u32>() % 256)
    };
    let cases = [("1", "1.5"), ("2", "0.01"), ("0", "1.5"), ("1", "0"), ("1", "-2"), ("2", "x")];
    let all: String = cases.iter().enumerate().map(|(n, (kind, price))| message(kind, price, n)).collect();
    std::fs::write(dir.path().join("in.fix"), all).unwrap();
    let feed = format!("f=fix:{}:{}", path.display(), dir.path().join("in.fix").display());
    let tape = dir.path().join("t");
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
    let ids: Vec<_> =
        cat(&tape, &["--kind", "exec"]).iter().map(|e| e["oid"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, ["O0", "O1"]);
}

#[test]
fn the_birch_of_the_guide_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let feeds = root().join("examples/feeds");
    let feed = format!("b=csv:{0}/birch.toml:{0}/birch_20260302.csv", feeds.display());
    let tape = dir.path().join("t");
    let account =
        run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]).code(3).json();
    assert_eq!((&account["by_kind"]["payment"], &account["quarantined"]), (&3.into(), &1.into()));
}
