//! NYSE Daily TAQ: prints that were cancelled or erroneous say so, and quotes have their condition and their venues, on
//! the tape and in the store.

use crate::common::{cat, file, quarantine, root, run};
use serde_json::{Value, json};
use std::path::Path;

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

/// A row of the national best prices of 24 October 2016: of the quote that changed them, its condition; and who has them.
fn nbbo_row(n: u32, condition: &str, venues: [&str; 2]) -> String {
    let [bid, ask] = venues;
    format!(
        "0931{n:02}000000000|B|ABC|41.45|21|41.49|11|{condition}|{n}|4|||||A|{bid}|41.45|11||{ask}|41.49|59||||||\n"
    )
}

/// Makes a tape of this file by its mapping, and seals it.
fn sealed(dir: &Path, input: &Path, feed_format: &str) -> [std::path::PathBuf; 2] {
    let paths = [dir.join("tape"), dir.join("store")];
    let [tape, store] = paths.each_ref().map(|path| path.to_str().unwrap());
    let feed = format!("f={feed_format}:{}", input.display());
    run(["consolidate", "--feed", &feed, "--tape", tape]).code(0);
    run(["store", "seal", tape, "--store", store]).code(0);
    paths
}

/// The values of some fields, of each event or row.
fn columns(rows: &[Value], names: &[&str]) -> Vec<Value> {
    rows.iter().map(|row| names.iter().map(|name| row[name].clone()).collect()).collect()
}

fn store_rows(store: &Path) -> Vec<Value> {
    run(["store", "scan", store.to_str().unwrap(), "--schema", "bbo", "--json"]).code(0).lines()
}

/// The condition and the exchanges were fields of the feed's own: rows did not have them, and a quote took 60 bytes more.
#[test]
fn national_best_prices_have_their_condition_and_venues() {
    const HEADER: &str = "Time|Exchange|Symbol|Bid_Price|Bid_Size|Offer_Price|Offer_Size|Quote_Condition|Sequence_Number|National_BBO_Ind|FINRA_BBO_Indicator|FINRA_ADF_MPID_Indicator|Quote_Cancel_Correction|Source_Of_Quote|NBBO_Quote_Condition|Best_Bid_Exchange|Best_Bid_Price|Best_Bid_Size|Best_Bid_FINRA_Market_Maker_ID|Best_Offer_Exchange|Best_Offer_Price|Best_Offer_Size|Best_Offer_FINRA_Market_Maker_ID|LULD_Indicator|LULD_NBBO_Indicator|SIP_Generated_Message_Identifier|Participant_Timestamp|FINRA_ADF_Timestamp\n";
    let dir = tempfile::tempdir().unwrap();
    // An exchange that the table does not have, and a side that nobody quotes.
    let rows = [("R", ["P", "N"]), ("Y", ["N", "?"]), ("", ["", "Z"]), (" ", ["Q", " "])];
    let lines: String = (1..).zip(rows).map(|(n, (cond, venues))| nbbo_row(n, cond, venues)).collect();
    let end = format!("END|20161024|4{}\n", "|".repeat(25));
    let input = file(dir.path(), "EQY_US_ALL_NBBO_20161024.txt", format!("{HEADER}{lines}{end}"));
    let [tape, store] = sealed(dir.path(), &input, "csv:nyse-taq-nbbo");
    let want = [
        json!(["R", "ARCX", "XNYS", "NBBO"]),
        json!(["Y", "XNYS", "?", "NBBO"]),
        json!([null, null, "BATS", "NBBO"]),
        json!([null, "XNAS", null, "NBBO"]),
    ];
    let names = ["cond", "bid_venue", "ask_venue", "venue"];
    let events = cat(&tape, &["--kind", "bbo"]);
    assert_eq!(columns(&events, &names), want);
    assert!(events.iter().all(|event| event["bid_exchange"].is_null() && event["Quote_Condition"].is_null()));
    assert_eq!(events[0]["Exchange"], "B", "the rest of the quote is kept");
    assert_eq!(columns(&store_rows(&store), &names), want);
    let rows = run(["tape", "cat", tape.to_str().unwrap(), "--schema", "bbo", "--json"]).code(0).lines();
    assert_eq!(columns(&rows, &names), want);

    // Printed lines make the same tape again, whose ids of venues are others.
    let lines: String = events.iter().rev().map(|event| format!("{event}\n")).collect();
    let again = dir.path().join("again");
    let feed = format!("f=events::{}", file(dir.path(), "lines.jsonl", lines).display());
    run(["consolidate", "--feed", &feed, "--tape", again.to_str().unwrap()]).code(0);
    let mut back = columns(&cat(&again, &["--kind", "bbo"]), &names);
    back.reverse();
    assert_eq!(back, want);
    // Merged behind the first tape, they have the ids of the merge.
    let merged = dir.path().join("merged");
    let [first, second] = [&tape, &again].map(|path| path.to_str().unwrap());
    run(["consolidate", "--tape-in", first, "--tape-in", second, "--tape", merged.to_str().unwrap()]).code(0);
    let both = columns(&cat(&merged, &["--kind", "bbo"]), &names);
    assert_eq!(both.len(), 8);
    assert!(want.iter().all(|row| both.iter().filter(|other| *other == row).count() == 2), "{both:?}");
}

#[test]
fn quotes_of_participants_have_their_condition() {
    for (name, format, counts) in [
        ("csv/SPLITS_US_ALL_BBO_A_20161024.txt", "csv:nyse-taq-quotes", [("R", 40), ("Y", 0)]),
        ("fixed/taq/nyse_taq_bbo_20140206.txt", "fixed:nyse-taq-bbo-98", [("R", 9991), ("Y", 3)]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let [tape, store] = sealed(dir.path(), &root().join("vectors").join(name), format);
        let events = cat(&tape, &["--kind", "bbo"]);
        let rows = store_rows(&store);
        for (cond, count) in counts {
            let has_cond = |row: &&Value| row["cond"] == cond && row["bid_venue"].is_null();
            assert_eq!(events.iter().filter(has_cond).count(), count, "{name} {cond}");
            assert_eq!(rows.iter().filter(has_cond).count(), count, "{name} {cond}");
        }
    }
}
