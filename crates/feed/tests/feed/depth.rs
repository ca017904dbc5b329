//! Order books in JSON: levels as lists, by mappings of all makes and by the shipped ones.

use crate::text::{entry_counts, mapped, mine, shipped, vectors};
use serde_json::{Value, json};
use unitape_feed::{Format, Mapping};

/// Each level of these events in short: `B 10:5`, with its action before it if that is not `C`.
fn levels(events: &[Value]) -> Vec<String> {
    let level = |event: &Value| {
        let text = |name: &str| event[name].as_str().unwrap_or("-").to_owned();
        let action = text("action");
        let before = if action == "C" { String::new() } else { format!("{action} ") };
        format!("{before}{} {}:{}", text("side"), text("px"), text("qty"))
    };
    events.iter().map(level).collect()
}

/// A mapping of bids in `b`, with these fields of its one event and more in `[message]`.
fn bids(message: &str, members: &str, fields: &str) -> Format {
    mine(&format!(
        "[message]\nts='t@ms'\n{message}\n[group.b]\ndelimiter='b[]'\nmembers=['b[]', {members}]\n[[rule]]\n\
         [[rule.event]]\nkind='level'\neach='b'\n[rule.event.fields]\ninstr='s'\naction={{const='C'}}\nside={{const='B'}}\n{fields}\n"
    ))
}

const PAIRS: &str = "px={from='b[][0]',required=true}\nqty={from='b[][1]',required=true}";

/// A level is read as it comes, or its message is refused with the path that has no value; what is beside it stays.
#[test]
fn a_level_is_read_or_refused_with_its_path() {
    let format = bids("unlisted='drop'", "'b[][0]', 'b[][1]'", PAIRS);
    let good = r#"{"t":1,"s":"X","b":[["1","2"]]}"#;
    for (levels_of_line, want) in [
        (r#"[["10.50","3"],["10.4","0"]]"#, Ok("B 10.5:3, B 10.4:0")),
        // Numbers, exponents, escapes, more values than the mapping names, blanks.
        (r#"[[1.05e1, 3e-2, 0, 7],[ "1\u0030" , "\u0033", [], {} ]]"#, Ok("B 10.5:0.03, B 10:3")),
        (r#"[["10"]]"#, Err("missing: qty (path b[][1])")),
        (r#"[["10",null]]"#, Err("missing: qty (path b[][1])")),
        (r#"[["10","1"],[]]"#, Err("missing: px (path b[][0])")),
        (r#"[[]]"#, Err("missing: px (path b[][0])")),
        (r#"[{"price":"10","qty":"1"}]"#, Err("missing: px (path b[][0])")),
        // Lists in lists in lists: the price is not the first value of a list in the level.
        (r#"[[["10"],"1"]]"#, Err("missing: px (path b[][0])")),
        (r#"[["x","1"]]"#, Err("bad_decimal: px (path b[][0])")),
        (r#"["10","1"]"#, Err("missing: px (path b[][0])")),
        ("[]", Err("no_event")),
        ("{}", Err("no_event")),
    ] {
        let line = format!(r#"{{"t":2,"s":"X","b":{levels_of_line}}}"#);
        let (events, refused) = mapped(&format, format!("{good}\n{line}\n{good}\n").as_bytes());
        let levels = levels(&events);
        match want {
            Ok(want) => {
                assert_eq!(
                    (levels.join(", "), refused.len()),
                    (format!("B 1:2, {want}, B 1:2"), 0),
                    "{line}: {refused:?}"
                );
            }
            Err(reason) => {
                assert_eq!((levels.len(), refused.len()), (2, 1), "{line}: {levels:?} {refused:?}");
                assert!(refused[0].starts_with(reason), "{line}: {}", refused[0]);
            }
        }
    }
    let deep = format!(r#"{{"t":2,"s":"X","b":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let (events, refused) = mapped(&format, format!("{good}\n{deep}\n{good}\n").as_bytes());
    assert_eq!((events.len(), refused.len()), (2, 1));
    assert!(
        refused[0].contains("too_deep: more than 64 lists and objects in each other at byte 82"),
        "{}",
        refused[0]
    );
    // A file that is one list has the same in it.
    let list = format!(r#"[{good}, {{"t":2,"s":"X","b":[["10","3"],["9","1"]]}}]"#);
    assert_eq!(levels(&mapped(&format, list.as_bytes()).0), ["B 1:2", "B 10:3", "B 9:1"]);
}

/// What a venue sends beside price and quantity is kept by its path where the mapping does not say otherwise.
#[test]
fn values_that_no_path_names_are_kept() {
    let line = br#"{"t":1,"s":"X","b":[["10","3","a"],["9","1","b","c"]]}"#;
    let (events, refused) = mapped(&bids("", "'b[][0]', 'b[][1]'", PAIRS), line);
    assert_eq!(refused, [""; 0]);
    let kept = |event: &Value| json!([event["b[][2]"], event["b[][2]#2"], event["b[][3]"]]);
    assert_eq!(
        events.iter().map(kept).collect::<Vec<_>>(),
        [json!(["a", null, null]), json!(["b", null, "c"])]
    );
    // A member that no field names is kept with its entry.
    let (events, _) = mapped(&bids("drop=['b[][3]']", "'b[][0]', 'b[][1]', 'b[][2]'", PAIRS), line);
    assert_eq!(
        events.iter().map(kept).collect::<Vec<_>>(),
        [json!(["a", null, null]), json!(["b", null, null])]
    );
}

/// One venue sends a level as a list, another as an object; a mapping can take both.
#[test]
fn a_level_may_be_a_list_or_an_object() {
    let members = "'b[][0]', 'b[][1]', 'b[].price', 'b[].size'";
    let fields =
        "px={from='b[][0]',or='b[].price',required=true}\nqty={from='b[][1]',or='b[].size',required=true}";
    let lines = br#"{"t":1,"s":"X","b":[["10","3"],{"price":9,"size":"1"}]}
{"t":2,"s":"X","b":[{"price":"8","size":2}]}"#;
    let (events, refused) = mapped(&bids("", members, fields), lines);
    assert_eq!(
        (levels(&events).join(", "), refused.len()),
        ("B 10:3, B 9:1, B 8:2".to_owned(), 0),
        "{refused:?}"
    );
}

/// `x[][]` named every value of the inner lists before they had positions, in a field, in a group and among what is dropped.
#[test]
fn a_path_without_positions_covers_all() {
    let rest = |message: &str, event: &str| {
        mine(&format!(
            "[message]\nts='t@ms'\n{message}\n[group.x]\ndelimiter='x[][]'\nmembers=['x[][]']\n[[rule]]\n[[rule.event]]\n{event}"
        ))
    };
    let line = br#"{"t":1,"by":"A","to":[["B","C"],["D"]],"x":[["E"],["F","G"]],"z":[["1"]]}"#;
    let event = "kind='comm'\n[rule.event.fields]\nfrom='by'\nto='to[][]'\n";
    let (events, refused) = mapped(&rest("drop=['z[][]']", event), line);
    assert_eq!(refused, [""; 0]);
    assert_eq!(events, [json!({"ts": 1_000_000, "kind": "comm", "from": "A", "to": ["B", "C", "D"]})]);
    let (events, _) = mapped(&rest("unlisted='drop'", &event.replace("'to[][]'", "'to[][0]'")), line);
    assert_eq!(events[0]["to"], json!(["B", "D"]));
    let each = "kind='comm'\neach='x'\n[rule.event.fields]\nfrom='x[][]'\n";
    let (events, _) = mapped(&rest("unlisted='drop'", each), line);
    assert_eq!(events.iter().map(|e| &e["from"]).collect::<Vec<_>>(), ["E", "F", "G"]);
}

/// Lists of lists of lists: the entries of the middle one are events, by their own values.
#[test]
fn the_innermost_lists_have_positions() {
    let format = mine(
        "[message]\nts='t@ms'\n[group.x]\ndelimiter='x[][]'\nmembers=['x[][]', 'x[][][0]', 'x[][][1]']\n[[rule]]\n\
         [[rule.event]]\nkind='level'\neach='x'\nfields={instr='s',action={const='C'},side={const='S'},px='x[][][0]',qty='x[][][1]'}\n",
    );
    let line = br#"{"t":1,"s":"X","x":[[["10","1"],["11","2"]],[],[["12","3"]]]}"#;
    let (events, refused) = mapped(&format, line);
    assert_eq!(
        (levels(&events).join(", "), refused.len()),
        ("S 10:1, S 11:2, S 12:3".to_owned(), 0),
        "{refused:?}"
    );
    let wrong = "name='m'\nformat='jsonl'\n[message]\nts='t'\n[[rule]]\n[[rule.event]]\nkind='level'\nfields={instr='b[0]',action={const='C'}}\n";
    let error = Mapping::parse(wrong, "m.toml").unwrap_err().to_string();
    assert!(error.contains("only a list in a list has positions, as `b[][0]`"), "{error}");
}

/// The value of an entry around another one was that of the message's first entry, so that levels went to a wrong book.
#[test]
fn a_member_may_be_of_an_entry_around() {
    let format = mine(
        "[message]\nts='t@ms'\n[group.u]\ndelimiter='e[].u[]'\nmembers=['e[].u[]', 'e[].u[][0]', 'e[].u[][1]', 'e[].s', 'e[].q']\n[[rule]]\n\
         [[rule.event]]\nkind='level'\neach='u'\n\
         fields={instr='e[].s',action={const='C'},side={const='B'},px='e[].u[][0]',qty={from='e[].u[][1]',or='e[].q'}}\n",
    );
    let line = br#"{"t":1,"e":[{"s":"X","u":[["1","2"],["3"]],"q":"9"},{"u":[],"s":"Y"},{"u":[["5","6"],["7"]],"s":"Z","q":"8"}]}"#;
    let (events, refused) = mapped(&format, line);
    assert_eq!(refused, [""; 0]);
    let short = |e: &Value| {
        format!(
            "{} {}:{}",
            e["instr"].as_str().unwrap(),
            e["px"].as_str().unwrap(),
            e["qty"].as_str().unwrap()
        )
    };
    assert_eq!(events.iter().map(short).collect::<Vec<_>>(), ["X 1:2", "X 3:9", "Z 5:6", "Z 7:8"]);
    // Where an entry around has no such value, that of another one is not taken.
    let (_, refused) = mapped(&format, br#"{"t":1,"e":[{"s":"X","u":[["1","2"]]},{"u":[["5","6"]]}]}"#);
    assert_eq!(refused, ["missing: instr (path e[].s): field missing: \"\""]);
}

/// A message that is a list, beside others that are objects, and what is wrong with one of them.
#[test]
fn a_message_may_be_a_list() {
    let format = mine(
        "[message]\nts='[0]@ms'\nts_or=['t@ms','u@s']\nunlisted='drop'\n[group.b]\ndelimiter='[1][]'\nmembers=['[1][]','[1][][0]','[1][][1]']\n\
         [[rule]]\nwhen={'@kind'='list'}\n[[rule.event]]\nkind='level'\neach='b'\n\
         fields={instr='[2]',action={const='C'},side={const='B'},px='[1][][0]',qty='[1][][1]'}\n\
         [[rule]]\nwhen={'@kind'='object'}\n[[rule.event]]\nkind='status'\nfields={state='x'}\n",
    );
    let lines = "[1,[[\"10\",2],[9.5,\"3\"]],\"X\"]\n{\"u\":2,\"x\":\"up\"}\n[1,[[\"10\",2]]\n[1,[[\"10\",2]],\"Y\"]\n";
    let (events, refused) = mapped(&format, lines.as_bytes());
    let instruments: Vec<_> = events.iter().map(|e| e["instr"].as_str().unwrap_or("-")).collect();
    assert_eq!(instruments, ["X", "X", "-", "Y"]);
    assert_eq!(events[2], json!({"ts": 2_000_000_000, "kind": "status", "state": "up"}));
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].starts_with("truncated: "), "{refused:?}");
}

/// Every message of the samples becomes levels or is known; a quantity of 0 deletes.
#[test]
fn the_samples_of_the_shipped_mappings() {
    for (name, count, deletions) in
        [("binance-depth", 17, 3), ("okx-books", 12, 1), ("coinbase-level2", 14, 2), ("kraken-book", 13, 2)]
    {
        let sample = std::fs::read(vectors(&format!("{name}.jsonl"))).unwrap();
        let (events, refused) = mapped(&shipped(name), &sample);
        assert_eq!(refused, [""; 0], "{name}");
        let zeros = events.iter().filter(|e| e["qty"] == "0").collect::<Vec<_>>();
        assert_eq!((events.len(), zeros.len()), (count, deletions), "{name}: {events:?}");
        assert!(zeros.iter().all(|e| e["action"] == "D"), "{name}: {zeros:?}");
    }
}

/// A quantity that is no number must not be passed over, and concerns the book of its message only.
#[test]
fn a_bad_level_of_a_venue_is_refused() {
    for (name, line, reason) in [
        (
            "binance-depth",
            r#"{"e":"depthUpdate","E":1,"s":"X","b":[["1","2"],["1","many"]],"a":[]}"#,
            "unused_entry: entry 2",
        ),
        (
            "binance-depth",
            r#"{"e":"depthUpdate","E":1,"s":"X","b":[["1","-2"]],"a":[]}"#,
            "unused_entry: entry 1",
        ),
        ("binance-depth", r#"{"lastUpdateId":1,"bids":[["1","2"]],"asks":[]}"#, "bad_time: no event time"),
        (
            "binance-depth",
            r#"{"lastUpdateId":1,"E":1,"bids":[["1","2"]],"asks":[]}"#,
            "missing: instr (path data.s)",
        ),
        (
            "okx-books",
            r#"{"arg":{"channel":"books","instId":"X"},"action":"update","data":[{"bids":[["1"]],"asks":[["2","1"]],"ts":"1"}]}"#,
            "unused_entry: entry 1",
        ),
        (
            "coinbase-level2",
            r#"{"type":"l2update","product_id":"X","time":"2026-03-02T14:30:00Z","changes":[["hold","1","2"]]}"#,
            "unknown_value: side (path changes[][0])",
        ),
        ("kraken-book", r#"[1,{"a":[["1.5","x","1772461800.1"]]},"book-10","X"]"#, "unused_entry: entry 1"),
        ("kraken-book", r#"[1,{"a":[["1.5","1","1772461800.1"]]},"spread","X"]"#, "no_rule"),
        // Of two entries the second was lost, or mixed with the first.
        (
            "okx-books",
            r#"{"arg":{"channel":"bbo-tbt","instId":"X"},"data":[{"bids":[["1","1"]],"asks":[],"ts":"1"},{"bids":[["2","1"]],"asks":[],"ts":"2"}]}"#,
            "no_rule",
        ),
        (
            "okx-books",
            r#"{"arg":{"channel":"books5","instId":"X"},"data":[{"bids":[["1","1"]],"asks":[],"ts":"1"},{"bids":[["2","1"]],"asks":[],"ts":"2"}]}"#,
            "no_rule",
        ),
        // A message without the lists is not one in which nothing has changed.
        ("binance-depth", r#"{"e":"depthUpdate","E":1,"s":"X","b":[]}"#, "no_event"),
        (
            "okx-books",
            r#"{"arg":{"channel":"books","instId":"X"},"action":"update","data":[{"bids":[],"ts":"1"}]}"#,
            "no_event",
        ),
    ] {
        let (events, refused) = mapped(&shipped(name), line.as_bytes());
        assert!(events.is_empty() && refused.len() == 1, "{line}: {events:?} {refused:?}");
        assert!(refused[0].starts_with(reason), "{line}: {refused:?}");
    }
}

/// An update without a change made the book stale that it says is as it was.
#[test]
fn updates_in_which_nothing_has_changed_are_known() {
    for (name, line) in [
        ("binance-depth", r#"{"e":"depthUpdate","E":1,"s":"X","b":[],"a":[]}"#),
        ("binance-depth", r#"{"stream":"x@depth","data":{"e":"depthUpdate","E":1,"s":"X","b":[],"a":[]}}"#),
        (
            "coinbase-level2",
            r#"{"type":"l2update","product_id":"X","time":"2026-03-02T14:30:00Z","changes":[]}"#,
        ),
        ("coinbase-level2", r#"{"channel":"l2_data","timestamp":"2026-03-02T14:30:00Z","events":[]}"#),
        (
            "kraken-book",
            r#"{"channel":"book","type":"update","data":[{"symbol":"X","bids":[],"asks":[],"checksum":1,"timestamp":"2026-03-02T14:30:00Z"}]}"#,
        ),
        (
            "okx-books",
            r#"{"arg":{"channel":"books","instId":"X"},"action":"update","data":[{"asks":[],"bids":[],"ts":"1"}]}"#,
        ),
    ] {
        let (events, refused) = mapped(&shipped(name), line.as_bytes());
        assert_eq!((events.len(), refused), (0, Vec::new()), "{line}");
    }
}

/// The number of a list's entries, and that there is no such list.
#[test]
fn entries_of_lists_can_be_counted() {
    let counted = |path: &str, ts: &str| {
        let text = format!(
            "name='m'\nformat='jsonl'\nmessage={{ts='{ts}',unlisted='drop'}}\n[[rule]]\n[[rule.event]]\nkind='status'\n\
             keep={{n='{path}'}}\nfields={{instr={{const='X'}},state={{const='S'}}}}\n"
        );
        Mapping::parse(&text, "m.toml")
    };
    for (path, message, count) in [
        ("@count(a[])", r#"{"t":1,"a":[1,2,3]}"#, json!("3")),
        ("@count(a[])", r#"{"t":1,"a":[]}"#, json!("0")),
        ("@count(a[])", r#"{"t":1}"#, Value::Null),
        // A rule for messages in which nothing has changed took a number or `null` for an empty list.
        ("@count(a[])", r#"{"t":1,"a":5}"#, Value::Null),
        ("@count(a[])", r#"{"t":1,"a":""}"#, Value::Null),
        ("@count(a[])", r#"{"t":1,"a":false}"#, Value::Null),
        ("@count(a[])", r#"{"t":1,"a":null}"#, Value::Null),
        ("@count(a[])", r#"{"t":1,"a":{}}"#, Value::Null),
        ("@count(a[])", r#"{"t":1,"a":{"b":[]}}"#, Value::Null),
        ("@count(a[].b[])", r#"{"t":1,"a":[{"b":[1,2]},{"b":null},{"b":[]}]}"#, json!("2")),
        ("@count(a[].b[])", r#"{"t":1,"a":[{"b":[]},{"b":null}]}"#, json!("0")),
        ("@count(a[].b[])", r#"{"t":1,"a":[{"b":[1,2]},{"b":3}]}"#, Value::Null),
        ("@count(a[].b[])", r#"{"t":1,"a":[{"b":[1,2]},{"b":{"c":null}}]}"#, Value::Null),
        ("@count(a[].b[])", r#"{"t":1,"a":[]}"#, Value::Null),
        ("@count(a[][])", r#"{"t":1,"a":[[],[]]}"#, json!("0")),
        ("@count(a[][])", r#"{"t":1,"a":[[1],2]}"#, Value::Null),
        ("@count(a[].b[])", r#"{"t":1,"a":[{"b":[1,2]},{"b":[3]},{}]}"#, json!("3")),
        ("@count(a[][])", r#"{"t":1,"a":[[1,2],[3],[]]}"#, json!("3")),
        ("@count([])", r#"[5,{"t":1}]"#, json!("2")),
    ] {
        let ts = if message.starts_with('[') { "[1].t@ms" } else { "t@ms" };
        let format = Format::from_mapping(counted(path, ts).unwrap()).unwrap();
        let (events, refused) = mapped(&format, message.as_bytes());
        assert_eq!(refused, [""; 0], "{message}");
        assert_eq!(events[0]["n"], count, "{path} {message}");
    }
    for (path, words) in
        [("@count(a)", "written with `[]` at its end"), ("@count(a..b[])", "a name is missing")]
    {
        let error = counted(path, "t").unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// A member that only the second entry has was kept with the event of the first.
#[test]
fn unlisted_members_are_kept_with_their_entry() {
    let message = "unlisted='keep'";
    let format = bids(message, "'b[].p', 'b[].q'", "px={from='b[].p',required=true}\nqty='b[].q'");
    let line = r#"{"t":1,"s":"X","of":"all","b":[{"p":"1","q":"2"},{"p":"3","q":"4","maker":"Z"},{"p":"5","maker":"Y","way":["u","v"]}]}"#;
    let (events, refused) = mapped(&format, line.as_bytes());
    assert_eq!(refused, [""; 0]);
    let kept: Vec<_> =
        events.iter().map(|e| [&e["of"], &e["b[].maker"], &e["b[].way[]"], &e["b[].way[]#2"]]).collect();
    let none = &Value::Null;
    assert_eq!(
        kept,
        [
            [&json!("all"), none, none, none],
            [none, &json!("Z"), none, none],
            [none, &json!("Y"), &json!("u"), &json!("v")]
        ]
    );
}

/// Nobody said what became of the unlisted members of an entry that the mapping ignores: the entry is counted, with all
/// of its members.
#[test]
fn an_ignored_entry_is_counted_with_all_of_its_members() {
    let fields =
        "px={from='b[].p',required=true}\nqty='b[].q'\n[[rule.ignored]]\neach='b'\nwhen={'b[].k'='x'}";
    let event = "[[rule.event]]\nkind='level'\n";
    let format = bids("unlisted='keep'", "'b[].p', 'b[].q', 'b[].k'", fields);
    let only = mine(&format!(
        "[message]\nts='t@ms'\n[group.b]\ndelimiter='b[]'\nmembers=['b[]','b[].p','b[].q','b[].k']\n[[rule]]\n{event}\
         each='b'\nwhen={{'b[].k'='y'}}\n[rule.event.fields]\ninstr='s'\naction={{const='C'}}\nside={{const='B'}}\n{fields}\n"
    ));
    let entries = r#"{"p":"1","k":"y"},{"p":"3","k":"x","maker":"Z"},{"p":"5","k":"y","maker":"Y"}"#;
    let line = format!(r#"{{"t":1,"s":"X","b":[{entries}]}}"#);
    let (events, refused) = mapped(&only, line.as_bytes());
    assert_eq!(refused, [""; 0]);
    let kept: Vec<_> = events.iter().map(|e| (&e["px"], &e["b[].maker"])).collect();
    assert_eq!(kept, [(&json!("1"), &Value::Null), (&json!("5"), &json!("Y"))]);
    assert_eq!(entry_counts(&only, line.as_bytes()), [3, 2, 0, 1]);
    // An entry that an event takes is not ignored.
    assert_eq!(entry_counts(&format, line.as_bytes()), [3, 3, 0, 0]);
    // Nor is one of a kind that the mapping does not know.
    assert_eq!(entry_counts(&only, line.replace(r#""k":"x""#, r#""k":"z""#).as_bytes()), [3, 0, 3, 0]);
}

/// Of a refused message only the entries before the fault were counted.
#[test]
fn all_entries_of_a_refused_message_are_counted() {
    let format = bids("unlisted='drop'", "'b[][0]', 'b[][1]'", PAIRS);
    let line = |levels: &str| format!(r#"{{"t":1,"s":"X","b":{levels}}}"#);
    for (levels, counts) in [
        (r#"[["1","2"],["3","4"],["5","6"]]"#, [3, 3, 0, 0]),
        (r#"[["1"],["3","4"],["5","6"]]"#, [3, 0, 3, 0]),
        (r#"[["1","2"],["3"],["5","6"]]"#, [3, 0, 3, 0]),
        (r#"[["1","2"],["3","4"],["x","6"]]"#, [3, 0, 3, 0]),
    ] {
        assert_eq!(entry_counts(&format, line(levels).as_bytes()), counts, "{levels}");
    }
}
