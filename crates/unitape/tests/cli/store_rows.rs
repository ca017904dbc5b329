//! Rows of a store, and the key that they need.

use crate::common::{self, Ran, cat, file, files, run, unitape};
use serde_json::{Map, Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Trades and best quotes: of two instruments and venues, some at one time, some late, some with values that are too large for
/// their narrow places, and one that is on the next day.
fn lines() -> String {
    const NOON: i64 = 1_710_158_400_000_000_000;
    let line = |n: i64, body: String| format!("{{\"ts\":{},{body}}}\n", NOON + n * 1_000);
    let mut all = String::new();
    for n in 0..40i64 {
        let instr = ["VOD", "a,\\\"b\\\""][n as usize % 2];
        let venue = ["XLON", "CHIX"][n as usize / 2 % 2];
        let place = format!(r#""venue":"{venue}","instr":"{instr}""#);
        // Each third one is as late as the one before it.
        let ts = n - n % 3;
        all += &line(
            ts,
            match n % 5 {
                0 => format!(
                    r#""kind":"trade",{place},"px":"99.{n}","qty":"{n}","side":"S","match_id":"M {n}","cond":"@F""#
                ),
                1 => format!(
                    r#""kind":"trade",{place},"px":"-0.5","qty":"123456789012345","match_id":{n},"action":"cancel","trade_flags":["auction","exempt"]"#
                ),
                2 => format!(
                    r#""kind":"bbo",{place},"bid":"{n}.25","bid_qty":"9999999999.5","cond":"R","bid_venue":"CHIX","ask_venue":"MARKET{n}","note":{{"who":"SECRET LTD"}}"#
                ),
                3 => format!(
                    r#""kind":"bbo",{place},"bid":"1","bid_qty":"2","ask":"3","ask_qty":"{n}","ccy":"GBP","src_seq":{},"ts_recv":{}"#,
                    u64::MAX - n as u64,
                    NOON + n * 1_000_000_000_000
                ),
                _ => format!(
                    r#""kind":"trade",{place},"px":"7","qty":"1","side":"B","action":"correct","src_seq":{n},"ts_recv":{}"#,
                    NOON + n
                ),
            },
        );
        if n == 20 {
            all += &line(86_400_000_000, format!(r#""kind":"trade",{place},"px":"1","qty":"1""#));
        }
        all += &line(
            ts,
            format!(
                r#""kind":"order_new",{place},"oid":"X{n}","side":"B","px":"9","qty":"5","owner":"SECRET LTD""#
            ),
        );
    }
    all
}

/// Two tapes of nearly the same lines, sealed into one store.
fn store(dir: &Path) -> (Vec<PathBuf>, PathBuf) {
    let (lines, store) = (lines(), dir.join("ticks"));
    // A tape of the same lines would have the same id, and would be sealed already.
    let second = lines.split_once('\n').unwrap().1;
    let tapes = [("one", &lines[..]), ("two", second)].map(|(name, lines)| seal(dir, name, lines, &store));
    (tapes.into(), store)
}

/// Makes a tape of these lines and seals it into the store.
fn seal(dir: &Path, name: &str, lines: &str, store: &Path) -> PathBuf {
    let (input, tape) = (file(dir, "rows.jsonl", lines), dir.join(name));
    let feed = format!("rows=events::{}", input.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
    run(["store", "seal", tape.to_str().unwrap(), "--store", store.to_str().unwrap()]).code(0);
    tape
}

fn scan(store: &Path, more: &[&str]) -> Ran {
    let args = ["store".as_ref(), "scan".as_ref(), store.as_os_str()];
    run(args.into_iter().chain(more.iter().map(AsRef::as_ref)))
}

/// The slow twin: a row out of a line of the tape, column by column, without tokens.
fn slow_row(schema: &str, event: &Value) -> Option<Map<String, Value>> {
    if event["kind"] != schema.strip_suffix("s").unwrap_or(schema) {
        return None;
    }
    let text = |key: &str| match &event[key] {
        Value::Number(n) => json!(n.to_string()),
        other => other.clone(),
    };
    let mut row = Map::new();
    let mut put = |name: &str, value: Value| _ = row.insert(name.to_owned(), value);
    put("ts_event", event["ts"].clone());
    put("ts_recv", event["ts_recv"].clone());
    if schema == "trades" {
        put(
            "action",
            json!(match event["action"].as_str() {
                Some("cancel") => "C",
                Some("correct") => "M",
                _ => "T",
            }),
        );
        put(
            "side",
            json!(match event["side"].as_str() {
                Some("B") => "B",
                Some("S") => "A",
                _ => "N",
            }),
        );
        put("price", event["px"].clone());
        put("size", event["qty"].clone());
        put("sequence", event["src_seq"].clone());
        put("match_id", text("match_id"));
        put("cond", event["cond"].clone());
        let flags = event["trade_flags"].as_array().map(|flags| {
            json!(flags.iter().map(|flag| flag.as_str().unwrap()).collect::<Vec<_>>().join("+"))
        });
        put("trade_flags", flags.unwrap_or(Value::Null));
    } else {
        put("sequence", event["src_seq"].clone());
        for (column, field) in
            [("bid_px_00", "bid"), ("ask_px_00", "ask"), ("bid_sz_00", "bid_qty"), ("ask_sz_00", "ask_qty")]
        {
            put(column, event[field].clone());
        }
        put(
            "cond",
            match (event["partial"] == true, event["cond"].as_str()) {
                (true, None) => json!("partial"),
                (true, Some(cond)) => json!(format!("partial+{cond}")),
                (false, _) => event["cond"].clone(),
            },
        );
        ["bid_venue", "ask_venue"].into_iter().for_each(|column| put(column, event[column].clone()));
    }
    put("symbol", event["instr"].clone());
    put("venue", event["venue"].clone());
    Some(row)
}

/// The order of the columns is part of the form.
const COLUMNS: [(&str, &str); 2] = [
    (
        "trades",
        "ts_event,ts_recv,publisher_id,instrument_id,action,side,price,size,sequence,match_id,cond,trade_flags,symbol,venue",
    ),
    (
        "bbo",
        "ts_event,ts_recv,publisher_id,instrument_id,sequence,bid_px_00,ask_px_00,bid_sz_00,ask_sz_00,cond,bid_venue,ask_venue,symbol,venue",
    ),
];

#[test]
fn rows_are_those_of_the_slow_twin() {
    let dir = tempfile::tempdir().unwrap();
    let (tapes, store) = store(dir.path());
    let events: Vec<Value> = tapes.iter().flat_map(|tape| cat(tape, &["--full"])).collect();
    for (schema, columns) in COLUMNS {
        let mut want: Vec<_> = events.iter().filter_map(|event| slow_row(schema, event)).collect();
        want.sort_by_key(|row| row["ts_event"].as_i64());
        let got = scan(&store, &["--schema", schema, "--json"]).code(0).lines();
        assert_eq!(got.len(), want.len());
        let mut tokens = std::collections::BTreeMap::new();
        for (got, want) in got.iter().zip(&want) {
            let mut got = got.as_object().unwrap().clone();
            assert_eq!(got.keys().map(String::as_str).collect::<Vec<_>>().join(","), columns);
            for (token, name) in [("publisher_id", "venue"), ("instrument_id", "symbol")] {
                let token = got.shift_remove(token).unwrap();
                let name = got[name].as_str().unwrap().to_owned();
                assert!(token.as_u64().is_some());
                assert_eq!(tokens.entry(name.clone()).or_insert(token.clone()), &token, "{name}");
            }
            assert_eq!(&got, want);
        }
        assert_eq!(tokens.len(), 4);
        // The same selection, and the same values, in each form.
        let select = ["--schema", schema, "--symbol", "a,\"b\"", "--venue", "CHIX", "--date", "2024-03-11"];
        let select =
            [&select[..], &["--since", "1710158400000003000", "--until", "2024-03-11T12:00:00.000030"]]
                .concat();
        let rows = scan(&store, &[&select[..], &["--json"]].concat()).code(0).lines();
        let chosen = |row: &&Map<String, Value>| {
            let since = 1_710_158_400_000_003_000;
            row["symbol"] == "a,\"b\""
                && row["venue"] == "CHIX"
                && (since..since + 27_000).contains(&row["ts_event"].as_i64().unwrap())
        };
        assert!(!rows.is_empty() && rows.len() == want.iter().filter(chosen).count());
        let csv = scan(&store, &[&select[..], &["--csv"]].concat()).code(0).text().to_owned();
        let as_csv = |row: &Value| {
            let cell = |value: &Value| match value {
                Value::Null => String::new(),
                Value::String(text) if text.contains([',', ' ']) => {
                    format!("\"{}\"", text.replace('"', "\"\""))
                }
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            row.as_object().unwrap().values().map(cell).collect::<Vec<_>>().join(",") + "\n"
        };
        assert_eq!(csv, format!("{columns}\n") + &rows.iter().map(as_csv).collect::<String>());
        let table = scan(&store, &select).code(0).text().to_owned();
        assert!(table.starts_with("ts_event") && table.lines().count() == rows.len() + 1, "{table}");
        assert!(table.lines().skip(1).all(|line| line.starts_with("2024-03-11 12:00:00.0000")), "{table}");
    }
    let limited = scan(&store, &["--schema", "bbo", "--json", "--limit", "3"]).code(0);
    assert_eq!(limited.lines(), scan(&store, &["--schema", "bbo", "--json"]).code(0).lines()[..3]);
    // Nothing found: a header is still one, and stderr says what there is.
    let nothing =
        scan(&store, &["--schema", "bbo", "--csv", "--symbols", "NOPE"]).code(0).says(&["the symbol NOPE"]);
    assert_eq!(nothing.text(), format!("{}\n", COLUMNS[1].1));
    let nothing =
        scan(&store, &["--schema", "trades", "--since", "2024-03-13"]).code(0).says(&["no events with"]);
    assert_eq!(nothing.text(), "");
}

/// A store and a tape print one row alike, but for the ids: a store has tokens of its own. The store once cut a blank that is not
/// ASCII from the end of a line of CSV.
#[test]
fn a_store_prints_the_rows_of_its_tape() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("ticks");
    let blank = r#"{"ts":1710158400000000000,"kind":"bbo","venue":"X\u00a0","instr":"\u001bVOD","bid":"1"}"#;
    let tape = seal(dir.path(), "tape", &format!("{}{blank}\n{}", lines(), lines_of_other_kinds()), &store);
    for schema in ["bbo", "trades", "mbo", "status", "quotes", "definition", "news", "statistics"] {
        for (format, has_header) in [(Some("--json"), false), (Some("--csv"), true), (None, true)] {
            // The ids are the third and the fourth value, and no value before them has a comma.
            let without_ids = |line: &str| match format {
                Some(_) => {
                    let values: Vec<&str> = line.splitn(5, ',').collect();
                    [values[0], values[1], values[4]].join(",")
                }
                None => [&line[..60], &line[89..]].concat(),
            };
            let options = ["--schema", schema].into_iter().chain(format);
            let cat = run(["tape", "cat", tape.to_str().unwrap()].into_iter().chain(options.clone())).code(0);
            let mut want: Vec<String> = cat.text().lines().map(without_ids).collect();
            // The tape is in its own order, the store in that of event time, which begins each line.
            let time = |line: &String| match format {
                Some(_) => line.split(',').next().unwrap().to_owned(),
                None => line[..29].to_owned(),
            };
            want[usize::from(has_header)..].sort_by_key(time);
            let scan = scan(&store, &options.collect::<Vec<_>>()).code(0);
            let got: Vec<String> = scan.text().lines().map(without_ids).collect();
            assert!(got.len() > 15);
            assert_eq!(got, want, "{schema} {format:?}");
        }
    }
    let csv = scan(&store, &["--schema", "bbo", "--csv", "--venue", "X\u{a0}"]).code(0);
    assert!(csv.text().ends_with(",X\u{a0}\n"), "{:?}", csv.text());
}

/// Events of kinds whose rows have the fields of event lines, twenty of each schema.
fn lines_of_other_kinds() -> String {
    const NOON: i64 = 1_710_158_400_000_000_000;
    let place = r#""venue":"XLON","instr":"VOD""#;
    let lines = |n: i64| {
        let ts = NOON + n * 1_000;
        [
            match n % 2 {
                0 => format!(r#""kind":"status",{place},"state":"HALT","reason":"SECRET news","ref":"R{n}""#),
                _ => format!(r#""kind":"session",{place},"phase":"OPEN","px":"{n}.5""#),
            },
            format!(
                r#""kind":"quote","bank":"A, B","instr":"EURUSD","side":"S","px":"1.1","qty":"0.000000005","valid_until":{},"indicative":false,"quote_id":{n}"#,
                ts + 5_000_000
            ),
            format!(
                r#""kind":"ref","mic":"XLON","instr":"VOD","symbol":"VOD LN","strike":"{n}","expiry":"2024-06-21","multiplier":"0.5""#
            ),
            format!(r#""kind":"news","instrs":["VOD","q\"t"],"headline":"SECRET","news_id":"N{n}""#),
            match n % 2 {
                0 => format!(r#""kind":"index","index":"FTSE","px":"8123.45678901234{n}""#),
                _ => format!(r#""kind":"ref_px","instr":"VOD","px":"{n}","source":"close""#),
            },
            format!(r#""kind":"payment","ref":"P{n}","dr_name":"SECRET LTD","amt":"12.50","src_seq":{n}"#),
        ]
        .map(|body| format!("{{\"ts\":{ts},{body}}}\n"))
        .concat()
    };
    (0..20).map(lines).collect()
}

/// A row of several kinds has null where its kind has no such field. No party, and no text about one, is in a row of market data.
#[test]
fn other_schemas_have_rows_with_the_fields_of_event_lines() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("ticks");
    seal(dir.path(), "tape", &lines_of_other_kinds(), &store);
    let first = |schema: &str, n: usize| {
        let scan = scan(&store, &["--schema", schema, "--json"]).code(0);
        assert!(!scan.text().contains("SECRET"), "{}", scan.text());
        assert_eq!(scan.text().lines().count(), 20);
        let line = scan.text().lines().nth(n).unwrap();
        let (_, values) = line.split_once("\"kind\":").unwrap();
        values.to_owned()
    };
    assert_eq!(
        first("status", 0),
        r#""status","sequence":null,"phase":null,"px":null,"state":"HALT","ref":"R0","symbol":"VOD","venue":"XLON"}"#
    );
    assert_eq!(
        first("status", 1),
        r#""session","sequence":null,"phase":"OPEN","px":"1.5","state":null,"ref":null,"symbol":"VOD","venue":"XLON"}"#
    );
    assert_eq!(
        first("quotes", 0),
        r#""quote","sequence":null,"quote_id":"0","tier":null,"side":"S","px":"1.1","qty":"0.000000005","valid_until":1710158400005000000,"indicative":false,"full_amount":null,"withdrawn":null,"value_date":null,"last_look":null,"symbol":"EURUSD","venue":"A, B"}"#
    );
    assert_eq!(
        first("statistics", 1),
        r#""ref_px","sequence":null,"px":"1","source":"close","symbol":"VOD","venue":null}"#
    );
    assert_eq!(
        first("statistics", 0),
        r#""index","sequence":null,"px":"8123.45678901234","source":null,"symbol":"FTSE","venue":null}"#
    );
    let news = first("news", 3);
    assert!(news.starts_with(r#""news","sequence":null,"news_id":"N3","instrs":["VOD","q\"t"],"#), "{news}");
    assert!(first("payments", 0).starts_with(r#""payment","sequence":null,"symbol":null"#));
    let definition = first("definition", 7);
    for part in
        [r#""raw_symbol":"VOD LN""#, r#""strike":"7""#, r#""expiry":"2024-06-21""#, r#""multiplier":"0.5""#]
    {
        assert!(definition.contains(part), "{definition}");
    }
    let csv = scan(&store, &["--schema", "news", "--csv", "--limit", "1"]).code(0);
    assert!(csv.text().contains(r#",N0,"[""VOD"",""q\""t""]","#), "{}", csv.text());
}

/// A thief who has the store and no key must learn no name.
#[test]
fn no_name_is_to_be_found_in_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let (_, store) = store(dir.path());
    let words = ["VOD", "XLON", "CHIX", "SECRET", "rows.jsonl", "note", "GBP"];
    for (name, bytes) in files(&store) {
        for word in words.iter().filter(|word| word.len() > 3) {
            assert!(
                !bytes.windows(word.len()).any(|w| w.eq_ignore_ascii_case(word.as_bytes())),
                "{word} in {name}"
            );
        }
        assert!(!words.iter().any(|word| name.contains(word)), "{name}");
    }
}

#[test]
fn a_store_opens_with_its_own_key_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (tapes, store) = store(dir.path());
    let key = dir.path().join("ticks.key");
    let digits = std::fs::read_to_string(&key).unwrap();
    assert_eq!(
        (digits.trim().len(), std::fs::metadata(&key).unwrap().permissions().mode() & 0o777),
        (64, 0o600)
    );
    let elsewhere = file(dir.path(), "elsewhere", &digits);
    std::fs::set_permissions(&elsewhere, std::fs::Permissions::from_mode(0o600)).unwrap();
    let all = scan(&store, &["--json"]).code(0);
    assert_eq!(all.stderr, "");
    std::fs::remove_file(&key).unwrap();
    let wrong = file(dir.path(), "wrong", "ab".repeat(32));
    let (elsewhere, wrong) = (elsewhere.to_str().unwrap(), wrong.to_str().unwrap());
    let (dir_of, tape) = (store.to_str().unwrap(), tapes[0].to_str().unwrap());
    for (option, said) in [
        (vec![], vec!["no key", "ticks.key", "--key FILE", "UNITAPE_STORE_KEY_FILE"]),
        (vec!["--key", wrong], vec!["wrong key", "--key FILE"]),
        (
            vec!["--key", tapes[0].join("tape.toml").to_str().unwrap()],
            vec!["not a key", "64 hexadecimal digits"],
        ),
    ] {
        for command in [
            vec!["scan", dir_of, "--json"],
            vec!["scan", dir_of, "--schema", "bbo", "--csv"],
            vec!["info", dir_of],
            vec!["seal", tape, "--store", dir_of],
        ] {
            let ran = run([vec!["store"], command, option.clone()].concat()).code(1).says(&said);
            assert_eq!(ran.text(), "");
            assert!(!ran.stderr.contains("abab") && !ran.stderr.contains(digits.trim()), "{}", ran.stderr);
        }
    }
    assert!(!key.exists(), "a store that exists gets no other key");
    assert_eq!(scan(&store, &["--json", "--key", elsewhere]).code(0).stdout, all.stdout);
    let mut by_name = unitape();
    by_name.args(["store", "scan", dir_of, "--json"]).env("UNITAPE_STORE_KEY_FILE", elsewhere);
    assert_eq!(common::finish(&mut by_name).code(0).stdout, all.stdout);
    // The option goes before the environment.
    by_name.args(["--key", wrong]);
    common::finish(&mut by_name).code(1).says(&["wrong key"]);
    std::fs::set_permissions(elsewhere, std::fs::Permissions::from_mode(0o644)).unwrap();
    scan(&store, &["--json", "--key", elsewhere]).code(0).says(&["others than its owner", "chmod 600"]);
}
