//! Data on demand over real connections: who may not read something gets nothing of it, learns nothing of it, and disturbs nobody.

mod channels;
mod common;

use common::{Desk, NAMES, SECRETS, ServerFolder, places, query, refusal_text};
use std::collections::BTreeSet;
use std::fs;
use unitape_client::{Client, Error};
use unitape_run::users::UserFile;
use unitape_store::ReadDepth::{Events, Rows};
use unitape_store::{Day, ScanFilter, TickSchema};

/// Another text for a name that exists tells a guesser which names to try.
#[test]
fn a_log_in_that_fails_tells_nothing_and_locks_the_name() {
    let desk = Desk::start("user = \"quant\"\ndataset = \"ticks\"\n");
    desk.add_user("locked", "a good password");
    UserFile::disable_account(&desk.users(), "locked").unwrap();
    let fail = |user: &str, password: &str| match desk.log_in_with(user, password) {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("{user}: {other:?}"),
    };
    let text = fail("quant", "a guess").text;
    assert_eq!(fail("nobody", "a guess").text, text);
    assert_eq!(fail("locked", "a good password").text, text);
    assert_eq!(fail("", "").text, text);
    assert!(!text.contains("quant") && !text.contains("guess"));
    // Attempts count for the name alone, and a good one forgets them.
    desk.log_in("quant");
    for n in 0..5 {
        assert_eq!(fail("quant", &format!("guess {n}")).text, text);
    }
    assert!(fail("quant", "quant's password").text.contains("too many failed log-ins"));
    desk.add_user("other", "other's password");
    desk.log_in("other");
    desk.assert_log_is_clean(&["a guess", "a good password"]);
}

/// Guesses that come at the same moment were all weighed before the first of them was counted.
#[test]
fn guesses_at_the_same_time_lock_the_name_as_well() {
    let desk = Desk::start_with_cost("", 8192);
    let texts: Vec<String> = std::thread::scope(|scope| {
        let guess = |n| {
            let desk = &desk;
            scope.spawn(move || match desk.log_in_with("quant", &format!("guess {n}")) {
                Err(Error::Refused(refusal)) => refusal.text,
                other => panic!("{other:?}"),
            })
        };
        let guesses: Vec<_> = (0..32).map(guess).collect();
        guesses.into_iter().map(|guess| guess.join().unwrap()).collect()
    });
    let weighed = texts.iter().filter(|text| !text.contains("too many failed log-ins")).count();
    assert_eq!(weighed, 5, "{texts:?}");
}

/// Whether something is there to be read.
type Rule = fn(&ServerFolder) -> bool;

/// What an entitlement covers, and nothing beside it, in rows and in events; and the same file at every query.
#[test]
fn each_limit_of_an_entitlement_holds_from_the_next_query_on() {
    let desk = Desk::start("");
    let mut client = desk.log_in("quant");
    assert!(client.datasets().is_empty());
    let all = places();
    let rows: Rule = |p| p.schema == TickSchema::Trades || p.schema == TickSchema::Bbo;
    let nothing: Rule = |_| false;
    let all_classes = "classes = [\"market\", \"identity\", \"provenance\"]\n";
    let cases: [(&str, Rule, Rule); 11] = [
        ("", rows, nothing),
        (all_classes, rows, |_| true),
        ("classes = [\"market\", \"identity\"]", rows, nothing),
        ("classes = [\"provenance\"]", nothing, nothing),
        ("schemas = [\"trades\"]", |p| p.schema == TickSchema::Trades, nothing),
        ("schemas = [\"orders\"]", nothing, nothing),
        ("symbols = [\"VODA*\"]", |p| p.symbol.is_some_and(|name| name.starts_with("VODA")), nothing),
        ("symbols = [\"VODA\", \"*-NYSE\", \"\"]", nothing, nothing),
        ("from = \"2024-03-12\"", |p| p.day == "2024-03-12", nothing),
        ("to = \"2024-03-12\"", |p| p.day == "2024-03-11", nothing),
        ("until = \"2024-03-12\"", nothing, nothing),
    ];
    for (limits, has_row, has_event) in cases {
        let limits = format!("user = \"quant\"\ndataset = \"ticks\"\n{limits}");
        desk.entitle(&limits);
        let rows_left = |p: &&ServerFolder| rows(p) && has_row(p);
        let expect =
            |keep: &dyn Fn(&&ServerFolder) -> bool| all.iter().filter(keep).copied().collect::<BTreeSet<_>>();
        if limits.contains("until") {
            assert!(refusal_text(&mut client, "ticks").starts_with("there is no dataset `ticks`"));
            continue;
        }
        assert_eq!(desk.rows(&mut client), expect(&rows_left), "{limits}");
        assert_eq!(desk.events(&mut client), expect(&|p| has_event(p)), "{limits}");
    }
    // Two entitlements add up, leaf by leaf.
    desk.entitle(
        "user = \"quant\"\ndataset = \"ticks\"\nschemas = [\"bbo\"]\nsymbols = [\"BARC*\"]\n
         [[entitlement]]\nuser = \"quant\"\ndataset = \"ticks\"\nschemas = [\"trades\"]\nto = \"2024-03-12\"\n
         [[entitlement]]\nuser = \"other\"\ndataset = \"ticks\"",
    );
    let is_bbo = |p: &ServerFolder| p.schema == TickSchema::Bbo && p.symbol == Some(NAMES[2]);
    let is_trade = |p: &ServerFolder| p.schema == TickSchema::Trades && p.day == "2024-03-11";
    let want: BTreeSet<ServerFolder> = all.iter().filter(|p| is_bbo(p) || is_trade(p)).copied().collect();
    assert_eq!(desk.rows(&mut client), want);
    desk.assert_log_is_clean(&[]);
}

/// A dataset of others does not exist; nor does a symbol of others, in any message.
#[test]
fn what_one_may_not_read_does_not_exist() {
    let desk = Desk::start("user = \"other\"\ndataset = \"ticks\"\n");
    let mut client = desk.log_in("quant");
    let text = refusal_text(&mut client, "ticks");
    assert_eq!(text.replace("ticks", "nothing"), refusal_text(&mut client, "nothing"));
    assert_eq!(text.replace("ticks", "../ticks"), refusal_text(&mut client, "../ticks"));
    desk.entitle("user = \"quant\"\ndataset = \"ticks\"\nsymbols = [\"BARC*\"]\n");
    for symbol in [NAMES[0], "NOBODY-LSE", "", "../..", &"x".repeat(64 << 10)] {
        let filter = ScanFilter { symbols: vec![symbol.to_owned()], ..ScanFilter::default() };
        let reader = client.query(&query("ticks", Rows, &filter)).unwrap();
        assert!(reader.block_sizes().is_empty() && reader.problems().is_empty());
        assert_eq!(reader.names().len(unitape_model::NameKind::Instrument), 0);
    }
    desk.assert_log_is_clean(&[]);
}

/// On the word of a file that cannot be read nobody gets anything, and nobody learns its content.
#[test]
fn a_broken_file_of_entitlements_or_users_gives_nothing() {
    let desk = Desk::start("user = \"quant\"\ndataset = \"ticks\"\n");
    let mut client = desk.log_in("quant");
    assert!(!desk.rows(&mut client).is_empty());
    for broken in [
        "[[entitlement",
        "dataset = \"ticks\"",
        "user = \"quant\"\ndataset = \"ticks\"\nsymbol = [\"VODACOM-JSE\"]",
    ] {
        desk.entitle(broken);
        let text = refusal_text(&mut client, "ticks");
        assert!(text.contains("its log says why") && !text.contains("VODACOM"), "{text}");
        assert!(matches!(desk.log_in_with("quant", "quant's password"), Err(Error::Refused(_))));
    }
    fs::remove_file(desk.entitlements()).unwrap();
    assert!(refusal_text(&mut client, "ticks").contains("its log says why"));
    desk.entitle("user = \"quant\"\ndataset = \"ticks\"\n");
    assert!(!desk.rows(&mut client).is_empty(), "the same session continues");
    UserFile::set_password(&desk.users(), "quant", "another password").unwrap();
    assert!(refusal_text(&mut client, "ticks").contains("has another password"));
    let mut client = desk.log_in_with("quant", "another password").unwrap();
    assert!(!desk.rows(&mut client).is_empty());
    UserFile::disable_account(&desk.users(), "quant").unwrap();
    assert!(refusal_text(&mut client, "ticks").contains("cannot be used any more"));
    fs::write(desk.users(), "format = 1\npassword = \"quant's password\"").unwrap();
    assert!(refusal_text(&mut client, "ticks").contains("its log says why"));
    assert!(desk.log().iter().any(|text| text.contains("entitlements.toml")));
    desk.assert_log_is_clean(&[]);
}

#[test]
fn a_seal_between_two_queries_is_seen() {
    let desk = Desk::start("user = \"quant\"\ndataset = \"ticks\"\n");
    let mut client = desk.log_in("quant");
    let whole = ScanFilter::default();
    let before = client.query(&query("ticks", Rows, &whole)).unwrap();
    desk.seal_day("2024-03-13");
    // The older answer stays what it was; the next one has the day.
    assert_eq!(common::days(&before), BTreeSet::from(["2024-03-11".to_owned(), "2024-03-12".to_owned()]));
    let after = client.query(&query("ticks", Rows, &whole)).unwrap();
    assert!(after.generation() > before.generation());
    assert_eq!(common::days(&after).len(), 3);
    let date: Day = "2024-03-13".parse().unwrap();
    let filter = ScanFilter { date: Some(date), ..ScanFilter::default() };
    assert_eq!(common::days(&client.query(&query("ticks", Rows, &filter)).unwrap()).len(), 1);
}

/// A file that goes away between the answer and its blocks is damage of those blocks, said by name; not a short answer.
#[test]
fn a_file_that_goes_away_is_damage() {
    let desk = Desk::start(&format!("user = \"quant\"\ndataset = \"ticks\"\n{}", common::ALL_CLASSES));
    let mut client = desk.log_in("quant");
    let reader = client.query(&query("ticks", Events, &ScanFilter::default())).unwrap();
    let dir = desk.store().join("2024-03-11/trades");
    fs::remove_dir_all(&dir).unwrap();
    let mut scan = reader.scan(&ScanFilter::default()).unwrap();
    let mut count = 0;
    while scan.next().is_some() {
        count += 1;
    }
    assert_eq!((count, scan.problem_count()), (places().len() - 3, 3));
    assert!(scan.take_failure().is_none());
    for problem in scan.problems() {
        let text = problem.to_string();
        assert!(text.contains("2024-03-11/trades") && text.contains("the server cannot read it"), "{text}");
        assert!(!text.contains(desk.store().to_str().unwrap()), "{text}");
    }
    // The next answer says that the file is missing.
    let reader = client.query(&query("ticks", Rows, &ScanFilter::default())).unwrap();
    assert_eq!(reader.problems().len(), 1, "{:?}", reader.problems());
    assert!(desk.log().iter().any(|text| text.contains("trades")));
    desk.assert_log_is_clean(&SECRETS);
}

/// A server that stops lets nobody wait, and no answer ends as if it was whole.
#[test]
fn a_server_that_stops_fails_its_clients() {
    let mut desk = Desk::start(&format!("user = \"quant\"\ndataset = \"ticks\"\n{}", common::ALL_CLASSES));
    let mut client: Client = desk.log_in("quant");
    let reader = client.query(&query("ticks", Events, &ScanFilter::default())).unwrap();
    desk.stop();
    let mut scan = reader.scan(&ScanFilter::default()).unwrap();
    while scan.next().is_some() {}
    assert!(scan.take_failure().is_some());
    let error = client.query(&query("ticks", Rows, &ScanFilter::default())).unwrap_err();
    assert!(matches!(error, Error::Connection { .. }), "{error}");
}
