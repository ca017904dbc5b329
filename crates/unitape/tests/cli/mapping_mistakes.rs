//! Mistakes in mappings and reference data, as the command line reports them.

use crate::common::{self, run};
use std::path::PathBuf;

fn check(dir: &tempfile::TempDir, rest: &str) -> common::Ran {
    let path: PathBuf = dir.path().join("mine.toml");
    let head = "name = 'mine'\nformat = 'fix'\n[message]\nts = '52'\n";
    std::fs::write(&path, format!("{head}{rest}")).unwrap();
    run(["mapping", "check", path.to_str().unwrap()])
}

// An unknown key was named, and what may have been meant was for the reader to find.
#[test]
fn misspelled_words_are_told_with_line_and_what_was_meant() {
    let dir = tempfile::tempdir().unwrap();
    for (rest, line, meant) in [
        ("[[rule]]\nignroe = true\n", 6, "ignore"),
        ("[[rule]]\nwhn = { '35' = 'D' }\nignore = true\n", 6, "when"),
        ("unlsted = 'keep'\n[[rule]]\nignore = true\n", 5, "unlisted"),
        ("[[rule]]\n[[rule.event]]\nkind = 'order_nwe'\n", 7, "order_new"),
        ("[[rule]]\n[[rule.event]]\nkind = 'bbo'\nfields = { intsr = '55' }\n", 8, "instr"),
        (
            "[table.side]\n1 = 'B'\n[[rule]]\n[[rule.event]]\nkind = 'trade'\nfields = { instr = '55', px = '44', qty = '38', side = { from = '54', table = 'sied' } }\n",
            10,
            "side",
        ),
    ] {
        let said = format!("did you mean `{meant}`?");
        check(&dir, rest).code(1).says(&[&format!("mine.toml:{line}: "), &said]);
    }
}

// A table gave SHORT to a side, and each message with it was refused.
#[test]
fn targets_of_tables_are_values_of_their_field() {
    let dir = tempfile::tempdir().unwrap();
    let event = "[[rule]]\n[[rule.event]]\nkind = 'trade'\nfields = { instr = '55', px = '44', qty = '38', side = { from = '54', table = 'side' } }\n";
    let table = "[table.side]\n1 = 'B'\n2 = 'S'\n5 = 'SHORT'\n";
    check(&dir, &format!("{table}{event}")).code(1).says(&[
        "mine.toml:8: ",
        "`SHORT` is none of B, S",
        "`5`",
    ]);
    check(&dir, &format!("{}{event}", table.replace("SHORT", "S"))).code(0);
    let text = event.replace("{ from = '54', table = 'side' }", "{ const = 'Sell' }");
    check(&dir, &text).code(1).says(&["`Sell` is none of B, S"]);
}

// Words that only a value picked out of a group has were accepted beside others, and did nothing.
#[test]
fn words_of_a_pick_go_with_a_group() {
    let dir = tempfile::tempdir().unwrap();
    let pick = "group = '269', key = '269', is = '0', value = '270'";
    let alone = "go with `group` alone";
    for (bid, says) in [
        (format!("{pick}, highest = '270'"), None),
        (format!("{pick}, lowest = '271'"), None),
        (
            format!("{pick}, highest = '270', lowest = '270'"),
            Some("`highest` and `lowest` exclude each other"),
        ),
        (format!("{pick}, highest = '99'"), Some("`99` is no member of group `269`")),
        (format!("{pick}, const = '1'"), Some("one of `from`, `const`, or `group`")),
        (format!("{pick}, from = '44'"), Some("one of `from`, `const`, or `group`")),
        ("group = '269', key = '269', value = '270', highest = '270'".to_owned(), Some("one of `from`")),
        ("const = '1', highest = '270'".to_owned(), Some(alone)),
        ("from = '44', lowest = '270'".to_owned(), Some(alone)),
        ("from = '44', key = '269'".to_owned(), Some(alone)),
    ] {
        let group = "[group.269]\ncount = '268'\ndelimiter = '269'\nmembers = ['269', '270', '271']\n";
        let event = "[[rule]]\n[[rule.event]]\nkind = 'bbo'\n[rule.event.fields]\ninstr = '55'\n";
        let ran = check(&dir, &format!("{group}{event}bid = {{ {bid} }}\n"));
        match says {
            Some(says) => _ = ran.code(1).says(&["mine.toml:14: ", says]),
            None => _ = ran.code(0),
        }
    }
}

// A device without end took all memory there was.
#[test]
fn a_mapping_has_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let large = dir.path().join("large.toml");
    std::fs::write(&large, vec![b'#'; (1 << 20) + 1]).unwrap();
    run(["mapping", "check", large.to_str().unwrap()]).code(1).says(&["larger than 1 MiB"]);
}

// A symbol without a MIC is never found, and a key that is misspelled never looked at: both without a word.
#[test]
fn doubtful_lines_of_reference_data_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (master, events) = (dir.path().join("master.jsonl"), dir.path().join("in.jsonl"));
    let line =
        r#"{"ts":1772434800500000000,"kind":"ref","instr":"ALDER","symbol":"ALD","valid_form":"2026-01-01"}"#;
    std::fs::write(&master, format!("{line}\n")).unwrap();
    let trade = r#"{"ts":1772434800500000000,"kind":"trade","instr":"ALDER","px":"1","qty":"1"}"#;
    std::fs::write(&events, format!("{trade}\n")).unwrap();
    let (feed, tape) = (format!("p=events::{}", events.display()), dir.path().join("t"));
    let reference = format!("{}:events", master.display());
    let tape = tape.to_str().unwrap();
    let ran = run(["consolidate", "--feed", &feed, "--reference", &reference, "--tape", tape]);
    ran.code(0).says(&["`ALD` has no `mic`", "`valid_form`", "did you mean `valid_from`?", "byte 0"]);
}

// An entry that its mapping ignores without that anything reads the entries of its group is a mistake: nothing was ignored.
#[test]
fn ignored_entries_name_a_group_that_events_are_made_of() {
    let dir = tempfile::tempdir().unwrap();
    let group = "[group.268]\ndelimiter = '269'\nmembers = ['269', '270', '271', '55']\n[group.453]\ndelimiter = '448'\nmembers = ['448', '447']\n";
    let event = "[[rule]]\nwhen = { '35' = 'X' }\n[[rule.event]]\nkind = 'trade'\neach = '268'\nfields = { instr = '55', px = '270', qty = '271' }\n";
    for (ignored, line, says) in [
        ("each = '999'\n", 18, "999"),
        ("each = '453'\n", 18, "no event of the rule is for each entry of `453`"),
        ("each = '268'\nwen = { '269' = 'B' }\n", 19, "did you mean `when`?"),
        ("when = { '269' = 'B' }\n", 17, "each"),
        ("each = '268'\nwhen = { 'A[' = 'B' }\n", 19, "A["),
    ] {
        let text = format!("{group}{event}[[rule.ignored]]\n{ignored}");
        check(&dir, &text).code(1).says(&[&format!("mine.toml:{line}: "), says]);
    }
}
