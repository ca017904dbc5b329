//! NYSE Daily TAQ: prints that were cancelled or erroneous say so, on the tape and in the store.

use crate::common::{cat, file, quarantine, run};
use serde_json::Value;

const HEADER: &str = "Time|Exchange|Symbol|Sale Condition|Trade Volume|Trade Price|Trade Stop Stock Indicator|Trade Correction Indicator|Sequence Number|Trade Id|Source of Trade|Trade Reporting Facility|Participant Timestamp|Trade Reporting Facility TRF Timestamp|Trade Through Exempt Indicator\n";

/// A print of `n` shares with this indicator.
fn row(n: u32, indicator: &str) -> String {
    format!("0930{n:02}000000000|N|ABC|@|{n}|41.5|N|{indicator}|{n}|{n}|C||0930{n:02}000000000||0\n")
}

#[test]
fn prints_that_do_not_count_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let indicators = ["00", "01", "07", "08", "10", "11", "12", "00"];
    let rows: String = (1..).zip(indicators).map(|(n, indicator)| row(n, indicator)).collect();
    let end = format!("END|20161024|{}||||||||||||\n", indicators.len());
    let input = file(dir.path(), "EQY_US_ALL_TRADE_20161024.txt", format!("{HEADER}{rows}{end}"));
    let (tape, store) = (dir.path().join("t"), dir.path().join("s"));
    let feed = format!("f=csv:nyse-taq-trades:{}", input.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
    let trades = cat(&tape, &["--kind", "trade"]);
    let actions = |trades: &[Value]| -> Vec<String> {
        trades.iter().map(|t| t["action"].as_str().unwrap_or("").to_owned()).collect()
    };
    let want = ["", "correct", "cancel", "cancel", "cancel", "cancel", "cancel", ""];
    assert_eq!(actions(&trades), want);
    let kept: Vec<&str> = trades.iter().map(|t| t["Trade Correction Indicator"].as_str().unwrap()).collect();
    assert_eq!(kept, indicators, "the indicator itself is kept");
    let (t, s) = (tape.to_str().unwrap(), store.to_str().unwrap());
    run(["store", "seal", t, "--store", s]).code(0);
    let sealed = run(["store", "scan", s, "--schema", "trades", "--events", "--json"]).code(0).lines();
    assert_eq!(actions(&sealed), want);
    // The counted trades have 1, 2 and 8 shares.
    let volume: u32 = sealed
        .iter()
        .filter(|t| t["action"] != "cancel")
        .map(|t| t["qty"].as_str().unwrap().parse::<u32>().unwrap())
        .sum();
    assert_eq!(volume, 11);
}

#[test]
fn an_indicator_that_nobody_knows_is_not_guessed() {
    let dir = tempfile::tempdir().unwrap();
    let input = file(
        dir.path(),
        "EQY_US_ALL_TRADE_20161024.txt",
        format!("{HEADER}{}{}END|20161024|2||||||||||||\n", row(1, "00"), row(2, "77")),
    );
    let tape = dir.path().join("t");
    let feed = format!("f=csv:nyse-taq-trades:{}", input.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(3);
    assert_eq!(cat(&tape, &["--kind", "trade"]).len(), 1);
    assert_eq!(quarantine(&tape).len(), 1);
}
