//! Text onto the tape: news and chat by mapping, with what is not as it should be in quarantine.

use crate::common::{events, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use unitape_feed::{FileFeed, Format, Mapping, TapeAccount, detect, quarantine};

pub(crate) fn vectors(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/text").join(name)
}

/// The events of `text`, and why the rest was refused: reason and detail.
pub(crate) fn mapped(format: &Format, text: &[u8]) -> (Vec<Value>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("in"), dir.path().join("tape"));
    std::fs::write(&file, text).unwrap();
    let feed = FileFeed { name: "text".to_owned(), format: format.clone(), files: vec![file] };
    run(&tape, &[feed], 1, 64 << 10);
    assert!(TapeAccount::load(&tape).unwrap().sources.iter().all(|s| s.end && s.tally.is_balanced()));
    let mut events = events(&tape);
    for event in &mut events {
        event.as_object_mut().unwrap().remove("seq");
    }
    events.retain(|e| e["kind"] != "quarantine");
    let entries = quarantine::list(&tape).unwrap();
    (events, entries.into_iter().map(|e| format!("{}: {}", e.reason, e.detail)).collect())
}

/// Returns the counts of entries that the account has: all, with events, in quarantine, ignored.
pub(crate) fn entry_counts(format: &Format, text: &[u8]) -> [u64; 4] {
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("in"), dir.path().join("tape"));
    std::fs::write(&file, text).unwrap();
    run(&tape, &[FileFeed { name: "f".to_owned(), format: format.clone(), files: vec![file] }], 1, 64 << 10);
    let account = TapeAccount::load(&tape).unwrap();
    assert!(account.sources.iter().all(|source| source.end && source.tally.is_balanced()));
    let entries = account.sources[0].tally.entries;
    [entries.total, entries.with_events, entries.quarantined, entries.ignored]
}

pub(crate) fn shipped(name: &str) -> Format {
    Format::from_mapping(Mapping::built_in(name).unwrap().clone()).unwrap()
}

pub(crate) fn mine(rest: &str) -> Format {
    let text = format!("name='mine'\nformat='jsonl'\n{rest}");
    Format::from_mapping(Mapping::parse(&text, "mine.toml").unwrap()).unwrap()
}

/// Both versions of the format, a tickers' list, a time with an offset, and an item that says no time.
#[test]
fn news_by_the_shipped_mapping() {
    let (events, refused) = mapped(&shipped("ninjs"), &std::fs::read(vectors("news.jsonl")).unwrap());
    assert_eq!(refused, ["bad_time: no event time"]);
    assert_eq!(
        events,
        [
            json!({"ts": 1_772_434_803_250_000_000i64, "kind": "news", "news_id": "urn:newsml:wire.example:20260302:0001",
                "instrs": ["VOD"], "headline": "Vodafone: profit above what was expected", "source": "Example Wire",
                "text": "Profit before tax was 1.20 billion.\nMore follows.", "version": "1", "urgency": "2", "language": "en"}),
            json!({"ts": 1_772_435_700_000_000_000i64, "kind": "news", "news_id": "urn:newsml:wire.example:20260302:0002",
                "instrs": ["SAP", "ASML"], "headline": "SAP und ASML kündigen Partnerschaft an",
                "source": "Beispieldienst", "text": "Walldorf – die beiden Konzerne …", "version": "1", "urgency": "5",
                "language": "de"}),
            json!({"ts": 1_772_435_040_000_000_000i64, "kind": "news", "news_id": "urn:newsml:wire.example:20260302:0001",
                "instrs": ["VOD"], "headline": "WITHDRAWN Vodafone: profit above what was expected",
                "source": "Example Wire", "version": "2", "urgency": "2", "language": "en", "pubstatus": "canceled"}),
        ]
    );
}

/// A float of seconds made 000005 of it 000004768.
#[test]
fn chat_by_the_shipped_mappings() {
    let (events, refused) =
        mapped(&shipped("slack-messages"), &std::fs::read(vectors("slack.jsonl")).unwrap());
    assert_eq!(refused, ["bad_time: no event time"]);
    assert_eq!(events.len(), 3, "somebody who joins says nothing");
    assert_eq!(
        events[0],
        json!({"ts": 1_772_438_400_000_005_000i64, "kind": "comm", "msg_id": "1772438400.000005", "channel": "C0042",
            "from": "U0007", "text": "show me size in VOD", "client_msg_id": "5f2b0f3e-0000-4000-8000-000000000001",
            "team": "T0001"})
    );
    assert_eq!(events[1]["to"], json!(["U0007", "U0011"]));
    assert_eq!(events[1]["text"], "5 a penny up, not on this channel 🤫");
    assert_eq!(
        events[2],
        json!({"ts": 1_772_438_460_000_100_000i64, "kind": "comm", "msg_id": "1772438401.250000", "channel": "C0042",
            "from": "U0009", "text": "5 a penny up", "subtype": "message_changed",
            "before": "5 a penny up, not on this channel 🤫"})
    );
    let symphony = std::fs::read(vectors("symphony.jsonl")).unwrap();
    let (events, refused) = mapped(&shipped("symphony-messages"), &symphony);
    assert_eq!(refused, [""; 0]);
    assert_eq!(events.len(), 2);
    assert_eq!(
        (&events[0]["ts"], &events[0]["from"]),
        (&json!(1_772_438_400_123_000_000i64), &json!("ann.ames@bank.example"))
    );
    assert_eq!(events[1]["to"], json!(["ann.ames@bank.example", "cy.cole@bank.example"]));
    assert_eq!(events[1]["external"], "true");
}

/// Bytes around items are counted and make no event. An item that is no XML, or has no time, is refused and its
/// neighbours kept.
#[test]
fn news_in_xml_by_the_shipped_mappings() {
    let (events, refused) = mapped(&shipped("rss-news"), &std::fs::read(vectors("rss.xml")).unwrap());
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused[0].starts_with("bad_entity: ") && refused[1] == "bad_time: no event time", "{refused:?}");
    assert_eq!(
        events,
        [
            json!({"ts": 1_772_434_803_000_000_000i64, "kind": "news", "news_id": "wire-0001",
                "headline": "Vodafone: profit above what was expected", "source": "Example Wire",
                "text": "<p>Profit before tax was <b>1.20</b> billion.</p>", "link": "https://wire.example/1", "category": "VOD"}),
            json!({"ts": 1_772_435_700_000_000_000i64, "kind": "news", "news_id": "https://wire.example/2",
                "headline": "SAP & ASML: Partnerschaft", "text": "Zwei Konzerne …\n\nWalldorf – die beiden Konzerne …",
                "link": "https://wire.example/2", "creator": "Redaktion"}),
        ]
    );
    let (events, refused) = mapped(&shipped("atom-news"), &std::fs::read(vectors("atom.xml")).unwrap());
    assert_eq!(refused, [""; 0]);
    assert_eq!(
        events,
        [
            json!({"ts": 1_772_435_100_250_000_000i64, "kind": "news", "news_id": "urn:wire.example:1",
                "headline": "Vodafone: profit above what was expected", "source": "Ann Ames",
                "text": "Profit before tax was 1.20 billion.\nMore follows.", "published": "2026-03-02T07:00:03Z",
                "link": "https://wire.example/1?a=1&b=2", "category": "VOD"}),
            json!({"ts": 1_772_435_700_000_000_000i64, "kind": "news", "news_id": "urn:wire.example:2",
                "headline": "SAP und ASML", "text": "<p>Zwei Konzerne …</p>"}),
        ]
    );
    let (events, refused) = mapped(&shipped("newsml-g2"), &std::fs::read(vectors("newsml.xml")).unwrap());
    assert_eq!(refused, [""; 0]);
    assert_eq!(
        events,
        [
            json!({"ts": 1_772_434_803_000_000_000i64, "kind": "news", "news_id": "tag:wire.example,2026:1",
                "instrs": ["VOD", "VODD"], "headline": "Vodafone: profit above what was expected", "source": "nprov:EXW",
                "text": "Profit before tax was 1.20 billion.\nMore follows.", "version": "2", "urgency": "2",
                "language": "en", "pubstatus": "stat:usable"}),
            json!({"ts": 1_772_435_700_000_000_000i64, "kind": "news", "news_id": "tag:wire.example,2026:3",
                "headline": "SAP & ASML", "source": "nprov:EXW", "text": "Walldorf – die beiden Konzerne …", "version": "1"}),
        ]
    );
}

/// The words of bots are in attachments and blocks, those of people there a second time.
#[test]
fn all_words_of_a_chat_reach_the_event() {
    let text = |line: &str| {
        let (events, refused) = mapped(&shipped("slack-messages"), line.as_bytes());
        assert_eq!(refused, [""; 0], "{line}");
        events[0]["text"].as_str().unwrap_or_default().to_owned()
    };
    for (rest, want) in [
        (
            r#""text":"","attachments":[{"fallback":"Order 7 filled","text":"Order 7 filled"}]"#,
            "Order 7 filled",
        ),
        (
            r#""text":"","attachments":[{"pretext":"Fill","title":"VOD","text":"7 @ 71","fields":[{"title":"Side","value":"sell"}],"fallback":"VOD"}]"#,
            "Fill\n\nVOD\n\n7 @ 71\n\nSide\n\nsell",
        ),
        (
            r#""text":"","blocks":[{"type":"header","text":{"type":"plain_text","text":"Limit"}},{"type":"section","fields":[{"type":"mrkdwn","text":"*desk* A"}]},{"type":"context","elements":[{"type":"mrkdwn","text":"by bot"},{"type":"image","alt_text":"chart"}]}]"#,
            "Limit\n\n*desk* A\n\nby bot\n\nchart",
        ),
        (
            r#""text":"sell 100 VOD","blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"sell "},{"type":"text","text":"100","style":{"bold":true}},{"type":"text","text":" VOD"}]}]}]"#,
            "sell 100 VOD",
        ),
        (
            r#""text":"see","files":[{"name":"fills.csv","title":"Fills of today"}]"#,
            "see\n\nfills.csv\n\nFills of today",
        ),
    ] {
        let line =
            format!(r#"{{"type":"message","channel":"C1","user":"U1","ts":"1772438400.000005",{rest}}}"#);
        assert_eq!(text(&line), want, "{rest}");
    }
    let changed = r#"{"type":"message","subtype":"message_changed","channel":"C1","ts":"1772438400.000005","message":{"user":"U1","ts":"1772438400.000004","text":"","attachments":[{"text":"now 8"}]},"previous_message":{"text":"7"}}"#;
    assert_eq!(text(changed), "now 8");
}

/// A file as Slack exports it: one list, over many blocks of the reader, with an entry that is broken.
#[test]
fn a_list_is_read_however_it_is_cut() {
    let entry = |n: usize| {
        format!(
            "    {{\n        \"type\": \"message\",\n        \"user\": \"U1\",\n        \"channel\": \"c\",\n        \"text\": \"a ]}},{{ b {n}\",\n        \"ts\": \"17724{:05}.000100\"\n    }}",
            n
        )
    };
    let mut entries: Vec<String> = (0..300).map(entry).collect();
    entries[150] = "    {\n        \"type\": \"message,\n        \"user\": \"U1\"\n    }".to_owned();
    let list = format!("[\n{}\n]\n", entries.join(",\n"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.json");
    std::fs::write(&file, &list).unwrap();
    for (workers, block) in [(1, 1 << 20), (1, 700), (3, 300), (2, 64)] {
        let tape = dir.path().join(format!("tape-{workers}-{block}"));
        let feed =
            FileFeed { name: "s".to_owned(), format: shipped("slack-messages"), files: vec![file.clone()] };
        let summary = run(&tape, &[feed], workers, block).summary;
        assert_eq!((summary.events, summary.quarantined), (299, 1), "{workers} workers, blocks of {block}");
        assert!(TapeAccount::load(&tape).unwrap().sources.iter().all(|s| s.end && s.tally.is_balanced()));
    }
}

/// Each block of a feed is read in the set of characters that its first bytes declare; where nothing is declared a guess is noted.
#[test]
fn news_in_another_set_is_read_however_it_is_cut() {
    let item = |n: usize| {
        [
            format!("<item><title>{n} ").as_bytes(),
            b"\xc1\xe0\xed\xea",
            format!("</title><guid>{n}</guid><pubDate>Mon, 02 Mar 2026 09:30:00 GMT</pubDate></item>\n")
                .as_bytes(),
        ]
        .concat()
    };
    let items: Vec<u8> = (0..200).flat_map(item).collect();
    let feed = |declaration: &str| {
        [
            declaration.as_bytes(),
            b"<rss version=\"2.0\"><channel><title>x</title>\n",
            &items,
            b"</channel></rss>\n",
        ]
        .concat()
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.xml");
    for (declaration, word, note) in [
        ("<?xml version=\"1.0\" encoding=\"windows-1251\"?>", "\u{411}\u{430}\u{43d}\u{43a}", Value::Null),
        ("<?xml version=\"1.0\"?>", "\u{c1}\u{e0}\u{ed}\u{ea}", json!("guessed windows-1252")),
        (
            "<?xml version=\"1.0\" encoding=\"x-unknown\"?>",
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            json!("unknown x-unknown"),
        ),
    ] {
        std::fs::write(&file, feed(declaration)).unwrap();
        for (workers, block) in [(1, 1 << 20), (3, 600)] {
            let tape = dir.path().join(format!("tape-{}-{block}", word.len() + usize::from(note.is_null())));
            let feed =
                FileFeed { name: "n".to_owned(), format: shipped("rss-news"), files: vec![file.clone()] };
            let summary = run(&tape, &[feed], workers, block).summary;
            assert_eq!((summary.events, summary.quarantined), (200, 0), "{declaration}, blocks of {block}");
            for (n, event) in events(&tape).iter().filter(|e| e["kind"] == "news").enumerate() {
                assert_eq!((&event["headline"], &event["encoding"]), (&json!(format!("{n} {word}")), &note));
            }
            std::fs::remove_dir_all(&tape).unwrap();
        }
    }
}

/// A guess must not be an identifier, and the mapping's set is none.
#[test]
fn text_that_declares_nothing_is_read_by_the_mapping() {
    let rest = "[[rule]]\n[[rule.event]]\nkind='comm'\nfields={msg_id='id',from='by',text='t'}\n";
    let line = b"{\"at\":1,\"id\":\"7\",\"by\":\"J\x81rgen\",\"t\":\"Gr\x81\xe1e\"}";
    let (events, refused) = mapped(&mine(&format!("[message]\nts='at@s'\nencoding='IBM850'\n{rest}")), line);
    assert_eq!((events.len(), refused.len()), (1, 0), "{refused:?}");
    assert_eq!(
        (&events[0]["text"], &events[0]["from"], &events[0]["encoding"]),
        (&json!("Gr\u{fc}\u{df}e"), &json!("J\u{fc}rgen"), &Value::Null)
    );
    let guess = mine(&format!("[message]\nts='at@s'\n{rest}"));
    let (events, refused) = mapped(&guess, b"{\"at\":1,\"id\":\"7\",\"by\":\"a\",\"t\":\"caf\xe9\"}\n{\"at\":1,\"id\":\"\xe9\",\"by\":\"a\",\"t\":\"x\"}");
    assert_eq!(
        (&events[0]["text"], &events[0]["encoding"]),
        (&json!("caf\u{e9}"), &json!("guessed windows-1252"))
    );
    assert!(refused.len() == 1 && refused[0].starts_with("not_utf8: msg_id (path id)"), "{refused:?}");
    for (name, words) in [("klingon", "`klingon`"), ("utf-16", "superset of ASCII")] {
        let text = format!("name='m'\nformat='jsonl'\n[message]\nts='at'\nencoding='{name}'\n{rest}");
        let error = Mapping::parse(&text, "m.toml").unwrap_err().to_string();
        assert!(error.contains("encoding") && error.contains(words), "{error}");
    }
}

/// The elements of one path are a group: each is an event of its own, with the attributes that are its own.
#[test]
fn the_elements_of_a_path_are_events() {
    let text = "name='mine'\nformat='newsxml'\n[message]\nts='at'\nunlisted='drop'\n[group.about]\ndelimiter='about/org'\n\
        members=['about/org','about/org@id','about/org/name']\n[[rule]]\n[[rule.event]]\nkind='news'\neach='about'\n\
        fields={news_id='@guid',source='about/org@id',headline='about/org/name'}\n";
    let format = Format::from_mapping(Mapping::parse(text, "mine.toml").unwrap()).unwrap();
    let item = "<item guid='g'><at>2026-03-02</at><about><org id='1'><name>One</name></org><org id='2'/><org><name>Three</name></org></about></item>";
    let (events, refused) = mapped(&format, item.as_bytes());
    assert_eq!(refused, [""; 0]);
    let ts = 1_772_409_600_000_000_000i64;
    assert_eq!(
        events,
        [
            json!({"ts": ts, "kind": "news", "news_id": "g", "source": "1", "headline": "One"}),
            json!({"ts": ts, "kind": "news", "news_id": "g", "source": "2"}),
            json!({"ts": ts, "kind": "news", "news_id": "g", "headline": "Three"}),
        ]
    );
    let wrong = text.replace("'@guid'", "'a[]'");
    let e = Mapping::parse(&wrong, "m.toml").unwrap_err().to_string();
    assert!(e.contains("`a[]` is no path of XML"), "{e}");
}

/// A sure format is recognised, our own is not confused with theirs, and the user is asked about any other.
#[test]
fn files_are_recognised_by_what_their_first_line_has() {
    for (file, mapping) in
        [("news.jsonl", "ninjs"), ("slack.jsonl", "slack-messages"), ("symphony.jsonl", "symphony-messages")]
    {
        let format = detect(&vectors(file)).unwrap();
        let named = format.mapping_identity().unwrap();
        assert_eq!((format.name(), named.split('@').next().unwrap()), ("jsonl", mapping), "{file}");
    }
    for (file, mapping) in [("rss.xml", "rss-news"), ("atom.xml", "atom-news"), ("newsml.xml", "newsml-g2")] {
        let format = detect(&vectors(file)).unwrap();
        let named = format.mapping_identity().unwrap();
        assert_eq!((format.name(), named.split('@').next().unwrap()), ("newsxml", mapping), "{file}");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let own = r#"{"seq":1,"ts":5,"kind":"comm","type":"x","channel":"c","text":"t","uri":"u","versioncreated":"v"}"#;
    std::fs::write(&path, own).unwrap();
    assert_eq!(detect(&path).unwrap().name(), "events");
    std::fs::write(&path, r#"{"some":"thing","else":1}"#).unwrap();
    assert!(detect(&path).is_err());
}

/// Each reason that a mapping of text can have to refuse a message, and the neighbours kept.
#[test]
fn what_is_not_as_it_should_be_is_refused_with_its_reason() {
    let format = mine(
        "[message]\nts='at@ms'\n[[rule]]\n[[rule.event]]\nkind='trade'\n[rule.event.fields]\ninstr='i'\nvenue={const='X'}\npx='px'\nqty='q'\n",
    );
    let good = r#"{"at":1500,"i":"VOD","px":1.25e1,"q":"3","more":{"x":[1,null,2]}}"#;
    for (line, reason) in [
        (&br#"{"i":"VOD","px":1,"q":1}"#[..], "bad_time"),
        (br#"{"at":"2026-03-02","i":"VOD","px":1,"q":1}"#, "bad_time"),
        (br#"{"at":0.0000001,"i":"VOD","px":1,"q":1}"#, "bad_time"),
        (br#"{"at":1,"i":"","px":1,"q":1}"#, "missing"),
        (br#"{"at":1,"i":"VOD","px":"1,5","q":1}"#, "bad_decimal"),
        (br#"{"at":1,"i":"VOD","px":1e-10,"q":1}"#, "decimal_fit"),
        (b"{\"at\":1,\"i\":\"V\xf6D\",\"px\":1,\"q\":1}", "not_utf8"),
        (br#"{"at":1,"i":"VOD","px":1,"#, "truncated"),
        (br#"{"at":1,"at":2,"i":"VOD","px":1,"q":1}"#, "duplicate"),
        (b"not at all", "garbage"),
    ] {
        let input = [good.as_bytes(), line, good.as_bytes()].join(&b'\n');
        let (events, refused) = mapped(&format, &input);
        let shown = String::from_utf8_lossy(line);
        assert_eq!(events.len(), 2, "{shown}: {refused:?}");
        assert!(refused.len() == 1 && refused[0].starts_with(reason), "{shown}: {refused:?}");
    }
    let (events, _) = mapped(&format, good.as_bytes());
    let want = json!({"ts": 1_500_000_000, "kind": "trade", "instr": "VOD", "venue": "X", "px": "12.5", "qty": "3",
        "more.x[]": "1", "more.x[]#2": "2"});
    assert_eq!(events, [want]);
}

/// A conversation in one object: each entry of its list is a message of its own, with what the object says of all.
#[test]
fn the_entries_of_a_list_are_events() {
    let format = mine(
        "[message]\nts='day'\nunlisted='drop'\n[group.said]\ndelimiter='said[]'\nmembers=['said[]','said[].by','said[].words','said[].to[]']\n\
         [[rule]]\nwhen={version='2'}\n[[rule.event]]\nkind='comm'\neach='said'\nwhen={'said[].kind'='x'}\nfields={text='said[].words'}\n\
         [[rule]]\n[[rule.event]]\nkind='comm'\neach='said'\nfields={channel='room',from='said[].by',to='said[].to[]',text='said[].words'}\n",
    );
    let line = r#"{"day":"2026-03-02","room":"r","said":[{"by":"a","words":"one","to":["b","c"]},{"by":"b","words":"two"},{"words":"three","to":[]}]}"#;
    let (events, refused) = mapped(&format, line.as_bytes());
    assert_eq!(refused, [""; 0]);
    let ts = 1_772_409_600_000_000_000i64;
    assert_eq!(
        events,
        [
            json!({"ts": ts, "kind": "comm", "channel": "r", "from": "a", "to": ["b", "c"], "text": "one"}),
            json!({"ts": ts, "kind": "comm", "channel": "r", "from": "b", "text": "two"}),
            json!({"ts": ts, "kind": "comm", "channel": "r", "text": "three"}),
        ]
    );
}

/// The error for an impossible path must name its place in the mapping; it must not wait for the first message.
#[test]
fn paths_are_checked_when_a_mapping_is_read() {
    let rest = "[message]\nts='at'\n[[rule]]\n[[rule.event]]\nkind='comm'\nfields={text='a..b'}\n";
    let e = Mapping::parse(&format!("name='m'\nformat='jsonl'\n{rest}"), "m.toml").unwrap_err().to_string();
    assert!(
        e.contains("m.toml:8: rule 1, event 1, text: `a..b` is no path of JSON: a name is missing"),
        "{e}"
    );
}

/// A quarantined message that a mended mapping accepts must come back.
#[test]
fn what_was_refused_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("in"), dir.path().join("tape"));
    std::fs::write(&file, "{\"at\":5,\"t\":\"x\"}\n{\"at\":6,\"t\":\"y\"}\n").unwrap();
    let rule = "[[rule]]\n[[rule.event]]\nkind='comm'\nfields={text='t'}\n";
    let wrong = mine(&format!("[message]\nts='at'\n{rule}"));
    let feed = FileFeed { name: "text".to_owned(), format: wrong, files: vec![file] };
    assert_eq!(run(&tape, &[feed], 2, 64).summary.quarantined, 2);
    let mended =
        Mapping::parse(&format!("name='mine'\nformat='jsonl'\n[message]\nts='at@s'\n{rule}"), "m").unwrap();
    let retried = quarantine::retry(&tape, Some(&mended), None).unwrap();
    assert_eq!((retried.recovered, retried.left), (2, 0));
    assert!(quarantine::list(&tape).unwrap().iter().all(|entry| entry.recovered));
}
