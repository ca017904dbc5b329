//! Order books in JSON: the books after the samples of the shipped mappings, and the paths that are printed.

use crate::common::{self, cat, root, run};
use serde_json::{Value, json};
use std::path::Path;

fn sample(mapping: &str) -> String {
    root().join(format!("vectors/text/{mapping}.jsonl")).display().to_string()
}

fn consolidate(tape: &Path, mapping: &str, file: &str, code: i32) {
    let (feed, tape) = (format!("f=jsonl:{mapping}:{file}"), tape.display().to_string());
    run(["consolidate", "--feed", &feed, "--tape", &tape, "--json"]).code(code);
}

/// The books of a tape: instrument, bids, offers, marks and faults.
fn books(tape: &Path, code: i32) -> Vec<Value> {
    let printed = run(["book", "show", &tape.display().to_string(), "--json"]).code(code);
    let side = |levels: &Value| -> Vec<String> {
        let text = |level: &Value| {
            let orders = level["orders"].as_u64().map_or(String::new(), |n| format!("/{n}"));
            format!("{}:{}{orders}", level["px"].as_str().unwrap(), level["qty"].as_str().unwrap())
        };
        levels.as_array().unwrap().iter().map(text).collect()
    };
    let book = |b: &Value| json!([b["instr"], side(&b["bids"]), side(&b["asks"]), b["marks"], b["faults"]]);
    printed.lines().iter().filter(|b| b["instr"].is_string()).map(book).collect()
}

// The books of a venue that does not say whether a level is new were stale from its second message on.
#[test]
fn books_after_the_samples_of_the_shipped_mappings() {
    let dir = tempfile::tempdir().unwrap();
    for (mapping, want, flagged) in [
        (
            "binance-depth",
            vec![
                json!([
                    "BTCUSDT",
                    ["93576.05:0.4", "93576:2", "93575.9:3"],
                    ["93576.2:0.7", "93576.3:1"],
                    [],
                    {}
                ]),
                json!(["ETHUSDT", ["4111.25:10"], ["4111.26:4", "4111.3:1.5"], [], {}]),
            ],
            9,
        ),
        (
            "okx-books",
            vec![
                json!([
                    "BTC-USDT",
                    ["93576.1:1.5/4", "93576:2.5/2"],
                    ["93576.5:0.3/1", "93577:1.25/2"],
                    [],
                    {}
                ]),
                json!(["ETH-USDT", ["4111.25:10/7"], ["4111.26:4/5"], [], {}]),
                json!(["SOL-USDT", ["171.01:12.5"], ["171.02:30"], [], {}]),
            ],
            8,
        ),
        (
            "coinbase-level2",
            vec![
                json!(["BTC-USD", ["93576:2", "93575.9:3"], ["93576.2:0.7", "93576.3:1"], [], {}]),
                json!(["ETH-USD", ["4111.25:10"], ["4111.3:1.5"], [], {}]),
                json!(["SOL-USD", ["171.01:12.5"], [], [], {}]),
            ],
            9,
        ),
        (
            "kraken-book",
            vec![
                json!(["BTC/USD", ["93576:2", "93575.9:0.00005"], ["93576.2:0.7"], [], {}]),
                json!(["ETH/USD", ["4111.25:10", "4111.2:1"], ["4111.29:2", "4111.3:1.5"], [], {}]),
            ],
            7,
        ),
    ] {
        let tape = dir.path().join(mapping);
        consolidate(&tape, mapping, &sample(mapping), 0);
        let mut found = books(&tape, 0);
        found.sort_by_key(|book| book[0].as_str().map(str::to_owned));
        assert_eq!(found, want, "{mapping}");
        // What is of a snapshot has the flag, and a change has not.
        let (mut count, events) = (0, cat(&tape, &["--full", "--kind", "level"]));
        for event in &events {
            let is_flagged = event["flags"].as_array().unwrap().contains(&json!("snapshot"));
            let is_snapshot = matches!(event["action"].as_str(), Some("R" | "A"));
            assert_eq!(is_flagged, is_snapshot, "{mapping}: {event}");
            count += usize::from(is_flagged);
        }
        assert_eq!(count, flagged, "{mapping}");
    }
}

// A message of one instrument that is refused makes the books of that instrument stale, and not those of the feed.
#[test]
fn a_refused_update_concerns_its_own_book() {
    let dir = tempfile::tempdir().unwrap();
    let (file, tape) = (dir.path().join("in.jsonl"), dir.path().join("tape"));
    let update = |instr: &str, qty: &str| {
        format!(
            "{{\"e\":\"depthUpdate\",\"E\":1,\"s\":\"{instr}\",\"u\":1,\"b\":[[\"1\",\"{qty}\"]],\"a\":[]}}\n"
        )
    };
    std::fs::write(&file, [update("X", "1"), update("Y", "1"), update("X", "many")].concat()).unwrap();
    consolidate(&tape, "binance-depth", &file.display().to_string(), 3);
    let books = books(&tape, 3);
    assert_eq!(
        books,
        [json!(["X", ["1:1"], [], ["stale"], {"refused": 1}]), json!(["Y", ["1:1"], [], [], {}])]
    );
}

// `decode` printed prices and quantities in turn under one path, which no mapping could take apart.
#[test]
fn printed_paths_are_those_that_a_mapping_takes() {
    let dir = tempfile::tempdir().unwrap();
    for mapping in ["binance-depth", "okx-books", "coinbase-level2", "kraken-book"] {
        let lines = run(["decode", "jsonl", &sample(mapping), "--json"]).code(0).lines();
        let paths: std::collections::BTreeSet<_> =
            lines.iter().flat_map(|l| l["fields"].as_object().unwrap().keys().cloned()).collect();
        assert!(paths.iter().any(|path| path.contains("[0]")), "{mapping}: {paths:?}");
        let keep: Vec<_> =
            paths.iter().enumerate().map(|(n, path)| format!("k{n} = {}", json!(path))).collect();
        let text = format!(
            "name = \"m\"\nformat = \"jsonl\"\n[message]\nts = \"none\"\n[[rule]]\n[[rule.event]]\nkind = \"status\"\n\
             fields = {{ state = {{ const = \"x\" }} }}\n[rule.event.keep]\n{}\n",
            keep.join("\n")
        );
        let file = dir.path().join(format!("{mapping}.toml"));
        std::fs::write(&file, text).unwrap();
        run(["mapping", "check", &file.display().to_string()]).code(0);
    }
    // What `mapping check` says is kept has the same path.
    let (mapping, input) = (dir.path().join("keep.toml"), dir.path().join("keep.jsonl"));
    std::fs::write(
        &mapping,
        "name = \"k\"\nformat = \"jsonl\"\n[message]\nts = \"t@ms\"\n[[rule]]\n[[rule.event]]\nkind = \"level\"\n\
         fields = { instr = \"s\", action = { const = \"C\" }, px = \"b[][0]\" }\n",
    )
    .unwrap();
    std::fs::write(&input, "{\"t\":1,\"s\":\"X\",\"b\":[[\"10\",\"2\",\"0\"]]}\n").unwrap();
    let checked =
        run(["mapping", "check", &mapping.display().to_string(), &input.display().to_string()]).code(0);
    for said in
        ["from b[][0] \"10\"", "kept b[][1] \"2\" (nothing names it)", "kept b[][2] \"0\" (nothing names it)"]
    {
        assert!(
            String::from_utf8_lossy(&checked.stdout).contains(said),
            "{said}: {}",
            String::from_utf8_lossy(&checked.stdout)
        );
    }
}

// Programs write small numbers as `1e-05`, in quotes or without: the message went into quarantine.
#[test]
fn quantities_may_have_an_exponent() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"e":"depthUpdate","E":1772461800100,"s":"X","u":1,"b":[["2.5e1","1e-05"],["24",2E3]],"a":[["2.6E+1","0e5"]]}"#;
    let file = common::file(dir.path(), "depth.jsonl", format!("{text}\n"));
    let tape = dir.path().join("tape");
    consolidate(&tape, "binance-depth", file.to_str().unwrap(), 0);
    let levels: Vec<_> = cat(&tape, &[]).iter().map(|e| json!([e["action"], e["px"], e["qty"]])).collect();
    assert_eq!(levels, [json!(["U", "25", "0.00001"]), json!(["U", "24", "2000"]), json!(["D", "26", "0"])]);
    for wrong in ["1e", "e5", "1e5e5", "1e+", "1e999", "0x1", "1e1.5"] {
        let tape = dir.path().join(wrong);
        let file = common::file(dir.path(), "wrong.jsonl", format!("{}\n", text.replace("1e-05", wrong)));
        consolidate(&tape, "binance-depth", file.to_str().unwrap(), 3);
        assert_eq!(common::quarantine(&tape).len(), 1, "{wrong}");
    }
}
