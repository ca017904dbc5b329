//! Quotes that name one side, by mapping. A feed that sends only the side that changed took the other side away, and books of
//! one side were printed without a mark.

use crate::common::{assert_same, events, fix, run};
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::Path;
use unitape_feed::mapping::ExplainedOutcome;
use unitape_feed::{FileFeed, Format, Mapping, TapeAccount, explain, feed_of_option};

/// The fields of quotes, and the account of their messages.
#[derive(Debug, PartialEq)]
struct Mapped {
    quotes: Vec<String>,
    /// With events, ignored, in quarantine.
    account: [u64; 3],
}

/// The lines of a tape: the kind of other events, and of quotes the sides, `bid:size / ask:size`, with `…` where the rest is
/// unchanged.
fn mapped(dir: &Path) -> Mapped {
    let account = TapeAccount::load(dir).unwrap();
    assert!(account.sources.iter().all(|s| s.end && s.tally.is_balanced()));
    let text = |e: &Value, name: &str| e[name].as_str().unwrap_or("-").to_owned();
    let quote = |e: &Value| {
        if e["kind"] != "bbo" {
            return text(e, "kind");
        }
        let [bid, bid_qty, ask, ask_qty] = ["bid", "bid_qty", "ask", "ask_qty"].map(|name| text(e, name));
        let rest = if e["partial"] == true { " …" } else { "" };
        format!("{bid}:{bid_qty} / {ask}:{ask_qty}{rest}")
    };
    let tally = &account.sources[0].tally;
    Mapped {
        quotes: events(dir).iter().map(quote).collect(),
        account: [tally.with_events, tally.ignored, tally.quarantined],
    }
}

fn of_format(format: &Format, bytes: &[u8]) -> Mapped {
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("in"), dir.path().join("tape"));
    std::fs::write(&file, bytes).unwrap();
    run(&tape, &[FileFeed { name: "q".to_owned(), format: format.clone(), files: vec![file] }], 1, 64 << 10);
    mapped(&tape)
}

fn format_of(text: &str) -> Format {
    Format::from_mapping(Mapping::parse(text, "m.toml").unwrap_or_else(|e| panic!("{e}"))).unwrap()
}

fn json_ticker(more: &str) -> Format {
    format_of(&format!(
        "name='ticker'\nformat='jsonl'\nmessage={{ts='t',unlisted='drop'}}\n[[rule]]\n[[rule.event]]\nkind='bbo'\n{more}\n\
         fields={{instr='s',bid='b',bid_qty='bs',ask='a',ask_qty='as'}}\n"
    ))
}

const TICKER: &[u8] = br#"{"t":"2026-03-02T00:00:01Z","s":"X","b":"9","bs":"5","a":"10","as":"6"}
{"t":"2026-03-02T00:00:02Z","s":"X","a":"11","as":"7"}
{"t":"2026-03-02T00:00:03Z","s":"X","b":"8","bs":"4","a":null,"as":null}
{"t":"2026-03-02T00:00:04Z","s":"X","bs":"3"}
{"t":"2026-03-02T00:00:05Z","s":"X","bs":"2","as":"2"}
{"t":"2026-03-02T00:00:06Z","s":"X","b":"8.5","bs":"1","a":"11"}
{"t":"2026-03-02T00:00:07Z","s":"X","b":"0","bs":"0"}
{"t":"2026-03-02T00:00:08Z","s":"X","last":"9"}
{"t":"2026-03-02T00:00:09Z","s":"X","b":"much"}
"#;

#[test]
fn json_tickers_state_what_they_have() {
    let unchanged = of_format(&json_ticker("empty_side='unchanged'"), TICKER);
    let quotes = [
        "9:5 / 10:6",
        "-:- / 11:7 …",
        "8:4 / -:- …",
        "-:3 / -:- …",
        "-:2 / -:2 …",
        "8.5:1 / 11:- …",
        "0:0 / -:- …",
    ];
    assert_eq!(unchanged.quotes[..7], quotes);
    assert_eq!((&unchanged.quotes[7..], unchanged.account), (&["quarantine".to_owned()][..], [7, 1, 1]));
    // The default, with and without its word: what is not there is gone.
    for more in ["", "empty_side='withdrawn'"] {
        let withdrawn = of_format(&json_ticker(more), TICKER);
        assert_eq!(withdrawn.quotes[1], "-:- / 11:7", "{more}");
        assert_eq!(withdrawn.account, [8, 0, 1], "{more}");
    }
}

/// A mapping without sizes never has them: its quotes of two prices are whole, and take one line of the tape.
#[test]
fn a_quote_is_whole_with_all_that_its_mapping_reads() {
    let rule = |when: &str, fields: &str| {
        format!(
            "[[rule]]\nwhen={{k='{when}'}}\n[[rule.event]]\nkind='bbo'\nempty_side='unchanged'\nfields={{instr='s',{fields}}}\n"
        )
    };
    let head = "name='m'\nformat='jsonl'\nmessage={ts='t',unlisted='drop'}\n";
    let lines = b"{\"t\":\"2026-03-02T00:00:01Z\",\"k\":\"p\",\"s\":\"X\",\"b\":\"9\",\"a\":\"10\"}\n";
    let prices = format!("{head}{}", rule("p", "bid='b',ask='a'"));
    assert_eq!(of_format(&format_of(&prices), lines).quotes, ["9:- / 10:-"]);
    // Sizes come with messages of their own, so those of these prices are unchanged.
    let both = format!("{prices}{}", rule("z", "bid_qty='b',ask_qty='a'"));
    assert_eq!(of_format(&format_of(&both), lines).quotes, ["9:- / 10:- …"]);
    let sizes = String::from_utf8_lossy(lines).replace("\"p\"", "\"z\"");
    assert_eq!(of_format(&format_of(&both), sizes.as_bytes()).quotes, ["-:9 / -:10 …"]);
    let bids = format!("{head}{}", rule("p", "bid='b'"));
    assert_eq!(of_format(&format_of(&bids), lines).quotes, ["9:- / -:- …"]);
}

/// A row of MetaTrader with another last price alone states no quote. Another event of its rule is written all the same.
#[test]
fn rows_state_what_they_have() {
    let dir = tempfile::tempdir().unwrap();
    let layout = "name='l'\nzone='UTC'\ncolumn=[{name='at',type='time',form='HH:MM:SS',date='file',required=true},\
                  {name='bid',type='decimal'},{name='ask',type='decimal'},{name='last',type='decimal'}]\n";
    std::fs::write(dir.path().join("l.toml"), layout).unwrap();
    let rows = "at,bid,ask,last\n10:00:00,1.1,1.2,\n10:00:01,,1.25,\n10:00:02,1.15,,\n10:00:03,,,1.2\n";
    let file = dir.path().join("q_20260302.csv");
    std::fs::write(&file, rows).unwrap();
    let trade = "[[rule.event]]\nkind='trade'\nwhen={last={present=true}}\nfields={instr={const='X'},px='last',qty={const='1'}}\n";
    for (more, quotes, account) in [("", 3, [3, 1, 0]), (trade, 4, [4, 0, 0])] {
        let mapping = format!(
            "name='m'\nformat='csv'\nlayout='l.toml'\nmessage={{ts='at',unlisted='drop'}}\n[[rule]]\nwhen={{'@record'='row'}}\n\
             [[rule.event]]\nkind='bbo'\nempty_side='unchanged'\nfields={{instr={{const='X'}},bid='bid',ask='ask'}}\n{more}\
             [[rule]]\nignore=true\n"
        );
        std::fs::write(dir.path().join("m.toml"), mapping).unwrap();
        let feed =
            feed_of_option(&format!("q=csv:{}:{}", dir.path().join("m.toml").display(), file.display()));
        let tapes = [1, 3].map(|workers| {
            let tape = dir.path().join(format!("{}-{workers}", more.len()));
            run(&tape, &[feed.as_ref().unwrap().clone()], workers, 64);
            tape
        });
        assert_same(&tapes[0], &tapes[1], "three workers");
        let mut found = mapped(&tapes[0]);
        // The header is ignored.
        found.account[1] -= 1;
        assert_eq!(found.quotes[..3], ["1.1:- / 1.2:-", "-:- / 1.25:- …", "1.15:- / -:- …"]);
        assert_eq!((found.quotes.len(), found.account), (quotes, account));
    }
}

/// The fast path of fixed-width records writes a whole event of each record.
#[test]
fn fixed_width_records_state_what_they_have() {
    let dir = tempfile::tempdir().unwrap();
    let layout = "name='l'\nrecord_bytes=22\nterminator='newline'\nzone='UTC'\n[[record]]\nname='q'\ncolumn=[\
                  {name='day',length=8,type='date',form='YYYYMMDD',required=true},\
                  {name='at',length=6,type='time',form='HHMMSS',date='day',required=true},\
                  {name='bid',length=4,type='decimal',decimals=2},{name='ask',length=4,type='decimal',decimals=2}]\n";
    std::fs::write(dir.path().join("l.toml"), layout).unwrap();
    let mapping = "name='m'\nformat='fixed'\nlayout='l.toml'\nmessage={ts='at'}\n[[rule]]\n[[rule.event]]\nkind='bbo'\n\
                   empty_side='unchanged'\nfields={instr={const='X'},bid='bid',ask='ask'}\n";
    std::fs::write(dir.path().join("m.toml"), mapping).unwrap();
    let file = dir.path().join("q_20260302.txt");
    std::fs::write(
        &file,
        "2026030210000001100120\n20260302100001    0125\n202603021000020115    \n20260302100003        \n",
    )
    .unwrap();
    let feed = feed_of_option(&format!("q=fixed:{}:{}", dir.path().join("m.toml").display(), file.display()));
    run(&dir.path().join("tape"), &[feed.unwrap()], 1, 64 << 10);
    let found = mapped(&dir.path().join("tape"));
    assert_eq!(found.quotes, ["1.1:- / 1.2:-", "-:- / 1.25:- …", "1.15:- / -:- …"]);
    assert_eq!(found.account, [3, 1, 0]);
}

/// Quotes (35=S) and the entries of mass quotes (35=i) have BidPx alone where the offer is unchanged.
#[test]
fn fix_quotes_and_mass_quotes_state_what_they_have() {
    let mapping = "name='m'\nformat='fix'\nmessage={ts='52',unlisted='drop'}\n[group.295]\ndelimiter='299'\nmembers=['299','55','132','133','134','135']\n\
        [[rule]]\nwhen={35='S'}\n[[rule.event]]\nkind='bbo'\nempty_side='unchanged'\nfields={instr='55',bid='132',ask='133',bid_qty='134',ask_qty='135'}\n\
        [[rule]]\nwhen={35='i'}\n[[rule.event]]\nkind='bbo'\neach='295'\nempty_side='unchanged'\nfields={instr='55',bid='132',ask='133',bid_qty='134',ask_qty='135'}\n";
    let quote = |body: &str| fix("FIX.4.4", &format!("{body}|"));
    let messages = [
        quote("35=S|52=20260302-10:00:00|117=1|55=X|132=9|133=10|134=5|135=6"),
        quote("35=S|52=20260302-10:00:01|117=2|55=X|132=9.5"),
        quote(
            "35=i|52=20260302-10:00:02|117=3|295=3|299=a|55=X|133=10.5|299=b|55=Y|299=c|55=Z|132=1|133=2|134=3|135=4",
        ),
        quote("35=i|52=20260302-10:00:03|117=4|295=1|299=a|55=X"),
    ];
    let found = of_format(&format_of(mapping), &messages.concat());
    assert_eq!(found.quotes, ["9:5 / 10:6", "9.5:- / -:- …", "-:- / 10.5:- …", "1:3 / 2:4"]);
    assert_eq!(found.account, [3, 1, 0], "an entry of neither side is counted, and so is its message");
}

#[test]
fn mistakes_are_named_where_they_are() {
    let text = |kind: &str, more: &str, fields: &str| {
        format!(
            "name='m'\nformat='fix'\nmessage={{ts='52'}}\n[[rule]]\n[[rule.event]]\nkind='{kind}'\n{more}\nfields={{instr='55',{fields}}}\n"
        )
    };
    for (kind, more, fields, says) in [
        ("quote", "empty_side='unchanged'", "px='44'", "`empty_side` is for `bbo`, not for `quote`"),
        (
            "bbo",
            "empty_side='unchanged'",
            "bid='132',partial={const='Y'}",
            "`empty_side` and the field `partial`",
        ),
        ("bbo", "empty_side='unchanged'", "ccy='15'", "`empty_side` needs a field of a side"),
        (
            "bbo",
            "empty_side='kept'",
            "bid='132'",
            "unknown variant `kept`, expected `withdrawn` or `unchanged`",
        ),
    ] {
        let error = Mapping::parse(&text(kind, more, fields), "m.toml").unwrap_err().to_string();
        assert!(error.contains("m.toml:7: ") && error.contains(says), "{error}");
    }
    // A mapping may also say it by the field.
    let by_field = format_of(&text("bbo", "", "bid='132',partial={const='Y'}"));
    let message = fix("FIX.4.4", "35=S|52=20260302-10:00:00|55=X|132=9|");
    assert_eq!(of_format(&by_field, &message).quotes, ["9:- / -:- …"]);
}

/// The author of a mapping sees why a row became no event, and which quotes leave a side unchanged.
#[test]
fn a_sample_is_explained() {
    let format = json_ticker("empty_side='unchanged'");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), TICKER).unwrap();
    let mut found = Vec::new();
    explain(&format, file.path(), |message| {
        found.push(message);
        ControlFlow::Continue(())
    })
    .unwrap();
    let partial = |n: usize| found[n].events[0].fields.iter().find(|field| field.field == "partial");
    assert!(partial(0).is_none());
    let field = partial(1).unwrap();
    assert_eq!((field.line, field.from.as_str()), (7, "empty_side"));
    assert_eq!(found[1].events[0].becomes.as_ref().unwrap()["partial"], true);
    assert!(matches!(found[7].outcome, ExplainedOutcome::Ignored));
    assert_eq!(found[7].skipped[0].failed.path, "a side of the quote");
}
