//! Times that formats once read differently: second 60, and a time without a zone. The rule is in `docs/events.md`.

use crate::common::{self, cat, file, fix, run};
use serde_json::Value;
use std::path::Path;

/// The events of one file, by the shipped mapping of this format.
fn events(dir: &Path, option: &str, name: &str, bytes: impl AsRef<[u8]>) -> Vec<Value> {
    let input = file(dir, name, bytes);
    let tape = dir.join(format!("{name}.tape"));
    let feed = format!("f={option}:{}", input.display());
    let ran = run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap(), "--json"]);
    assert_eq!(ran.code, Some(0), "{name}: {} {:?}", ran.stderr, common::quarantine(&tape));
    cat(&tape, &[])
}

/// Midnight after 31 December 2016, which ended with a leap second.
const MIDNIGHT: i64 = 1_483_228_800_000_000_000;

#[track_caller]
fn at_midnight(events: &[Value], what: &str) {
    assert!(!events.is_empty(), "{what}");
    for event in events {
        assert_eq!(event["ts"], MIDNIGHT, "{what}: {event}");
    }
}

#[test]
fn second_60_is_the_first_second_of_the_next_minute() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let time = "20161231-23:59:60";
    let order = fix(&format!(
        "35=8|49=XLON|56=U|34=1|52={time}|60={time}|37=O1|150=0|54=1|38=100|40=2|207=XLON|48=GB0000000001|22=4|44=1|"
    ));
    at_midnight(&events(dir, "fix:fix44-orders", "o.fix", order), "FIX");
    let rss = |date: &str| {
        format!(
            "<rss version=\"2.0\"><channel><title>t</title><item><guid>g</guid><title>h</title><pubDate>{date}</pubDate></item></channel></rss>"
        )
    };
    at_midnight(
        &events(dir, "newsxml:rss-news", "a.xml", rss("Sat, 31 Dec 2016 23:59:60 +0000")),
        "RFC 5322",
    );
    at_midnight(
        &events(dir, "newsxml:rss-news", "b.xml", rss("Sun, 1 Jan 2017 00:00:00")),
        "RFC 5322, no zone",
    );
    let trades = "Time|Exchange|Symbol|Sale Condition|Trade Volume|Trade Price|Trade Stop Stock Indicator|Trade Correction Indicator|Sequence Number|Trade Id|Source of Trade|Trade Reporting Facility|Participant Timestamp|Trade Reporting Facility TRF Timestamp|Trade Through Exempt Indicator\n";
    let row = "185960000000000|N|ABC|@|100|41.5|N|00|1|1|C||185960000000000||0\nEND|20161231|1||||||||||||\n";
    let taq = events(dir, "csv:nyse-taq-trades", "EQY_US_ALL_TRADE_20161231.txt", format!("{trades}{row}"));
    at_midnight(&taq, "CSV, in New York");
}
