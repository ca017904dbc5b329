//! Rows of a store as Parquet files, Arrow streams and partitions.
//!
//! A column that a reader finds shifted, rounded or missing is a wrong backtest; a symbol that chooses a path is a file elsewhere.

use crate::common::{self, Ran, file, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use unitape_arrow::twin::{WrittenRows, read_ipc, read_parquet};

const NOON: i64 = 1_710_158_400_000_000_000;
const DAY: i64 = 86_400_000_000_000;
/// Names that are paths, and such as only differ in what an escape makes of them.
const SYMBOLS: [&str; 9] =
    ["VOD", "../x", "a/b", "a%2Fb", "A B%", "..", "/etc/x", "k=v", "__HIVE_DEFAULT_PARTITION__"];

/// Seals lines of events into a new store `ticks`; returns its directory.
fn store_of(dir: &Path, lines: &str) -> PathBuf {
    let (input, tape, store) = (file(dir, "events.jsonl", lines), dir.join("tape"), dir.join("ticks"));
    let feed = format!("rows=events::{}", input.display());
    run(["consolidate", "--feed", &feed, "--tape", tape.to_str().unwrap()]).code(0);
    run(["store", "seal", tape.to_str().unwrap(), "--store", store.to_str().unwrap()]).code(0);
    store
}

/// Trades and quotes of all symbols on three days, one size of which is too large for `decimal(38,18)` if it is `with_misfit`.
fn lines(with_misfit: bool) -> String {
    let mut all = String::new();
    for n in 0..90i64 {
        let symbol = SYMBOLS[n as usize % SYMBOLS.len()];
        let head = json!({"ts": NOON + n * 1_000 + n / 30 * DAY, "venue": "XLON", "instr": symbol});
        let (mut trade, mut bbo) = (head.clone(), head);
        trade["kind"] = json!("trade");
        trade["px"] = json!(format!("-99.{n}"));
        trade["qty"] =
            json!(if with_misfit && n == 40 { "100000000000000000000".to_owned() } else { n.to_string() });
        trade["trade_flags"] = json!(["auction", "exempt"]);
        trade["cond"] = json!("@ F");
        trade["src_seq"] = json!(u64::MAX - n as u64);
        bbo["kind"] = json!("bbo");
        bbo["bid"] = json!("9223372036.854775806");
        bbo["bid_qty"] = json!(format!("0.00000000000000000{}", n % 9 + 1));
        all += &format!("{trade}\n{bbo}\n");
    }
    let news = |n: i64| {
        let headline = format!("line {n}");
        format!(
            "{}\n",
            json!({"ts": NOON + n, "kind": "news", "instrs": ["VOD", "a/b"], "headline": headline})
        )
    };
    all + &(0..3).map(news).collect::<String>()
}

fn store(command: &str, store: &Path, more: &[&str]) -> Ran {
    let args = ["store".as_ref(), command.as_ref(), store.as_os_str()];
    run(args.into_iter().chain(more.iter().map(AsRef::as_ref)))
}

/// Returns the cells of a row of JSON, as files are read back: null as `None`, and text without its quotes.
fn cells(row: &Value) -> Vec<Option<String>> {
    let cell = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    row.as_object().unwrap().values().map(cell).collect()
}

#[track_caller]
fn assert_rows(written: &WrittenRows, rows: &[Value]) {
    if let Some(row) = rows.first() {
        assert_eq!(written.columns(), row.as_object().unwrap().keys().collect::<Vec<_>>());
    }
    assert_eq!(written.rows, rows.iter().map(cells).collect::<Vec<_>>());
}

#[test]
fn parquet_and_arrow_have_the_rows_of_json() {
    let dir = tempfile::tempdir().unwrap();
    let ticks = store_of(dir.path(), &lines(false));
    let path = |name: &str| dir.path().join(name);
    for (i, options) in [
        &["--schema", "trades"][..],
        &["--schema", "bbo", "--with", "identity,provenance"],
        &["--schema", "trades", "--symbol", "a/b", "--since", "2024-03-12", "--venue", "XLON"],
        &["--schema", "bbo", "--date", "2024-03-12", "--limit", "7"],
        &["--schema", "trades", "--until", "2024-03-11"],
        &["--schema", "bbo", "--symbols", "NOPE"],
    ]
    .into_iter()
    .enumerate()
    {
        let rows = store("scan", &ticks, &[options, &["--json"]].concat()).code(0).lines();
        assert_eq!(rows.is_empty(), i >= 4, "{options:?}");
        let parquet = path(&format!("{i}.parquet"));
        store("scan", &ticks, &[options, &["--parquet", "-o", parquet.to_str().unwrap()]].concat()).code(0);
        let written = read_parquet(&parquet).unwrap();
        assert_rows(&written, &rows);
        assert_eq!(written.metadata["unitape.schema"], options[1]);
        assert_eq!(written.metadata["unitape.generation"], "1");
        // Also without a row.
        let time = written.schema.field_with_name("ts_event").unwrap();
        assert_eq!(time.data_type().to_string(), "Timestamp(ns, \"UTC\")");
        let types = if options[1] == "bbo" { ["bid_px_00", "bid_sz_00"] } else { ["price", "size"] };
        let types = types.map(|name| written.schema.field_with_name(name).unwrap().data_type().to_string());
        assert_eq!(types, ["Decimal128(19, 9)", "Decimal128(38, 18)"]);
        // Stdout has the same bytes, and the stream the same rows.
        let piped = store("scan", &ticks, &[options, &["--parquet"]].concat()).code(0).stdout;
        assert!(piped == std::fs::read(&parquet).unwrap());
        let piped = store("scan", &ticks, &[options, &["--arrow"]].concat()).code(0).stdout;
        let stream = read_ipc(&piped).unwrap();
        assert_rows(&stream, &rows);
        assert_eq!(stream.metadata["unitape.schema"], options[1]);
        assert_eq!(stream.metadata["unitape.generation"], "1");
        // An export is the same file.
        for (format, bytes) in [("parquet", std::fs::read(&parquet).unwrap()), ("arrow", piped)] {
            let out = path(&format!("{i}.export.{format}"));
            let more = ["--format", format, "-o", out.to_str().unwrap(), "--json"];
            let summary = store("export", &ticks, &[options, &more].concat()).code(0).json();
            assert!(std::fs::read(&out).unwrap() == bytes, "{options:?} {format}");
            let expected = json!({
                "generation": 1, "schema": options[1], "format": format, "files": 1, "rows": rows.len(),
                "bytes": bytes.len(), "nulls": 0, "damaged_blocks": 0,
            });
            assert_eq!(summary, expected);
        }
        let out = path(&format!("{i}.csv"));
        let more = ["--format", "csv", "-o", out.to_str().unwrap()];
        store("export", &ticks, &[options, &more].concat()).code(0);
        let csv = store("scan", &ticks, &[options, &["--csv"]].concat()).code(0).stdout;
        assert!(std::fs::read(&out).unwrap() == csv);
    }
}

/// A size that was cut off instead would be another size.
#[test]
fn a_size_that_does_not_fit_is_null_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let ticks = store_of(dir.path(), &lines(true));
    let mut rows = store("scan", &ticks, &["--schema", "trades", "--json"]).code(0).lines();
    let is_misfit = |row: &&mut Value| row["size"] == "100000000000000000000";
    rows.iter_mut().find(is_misfit).expect("JSON is exact")["size"] = Value::Null;
    let said = "that do not fit decimal(38,18) and are null: 1";
    let parquet = dir.path().join("x.parquet");
    let options = ["--schema", "trades", "--parquet", "-o", parquet.to_str().unwrap()];
    store("scan", &ticks, &options).code(3).says(&[said]);
    assert_rows(&read_parquet(&parquet).unwrap(), &rows);
    let arrow = store("scan", &ticks, &["--schema", "trades", "--arrow"]).code(3).says(&[said]);
    assert_rows(&read_ipc(&arrow.stdout).unwrap(), &rows);
    for partition in ["date", "symbol"] {
        let out = dir.path().join(partition);
        let options = ["--schema", "trades", "--format", "parquet", "--partition", partition, "--json", "-o"];
        let ran = store("export", &ticks, &[&options[..], &[out.to_str().unwrap()]].concat()).code(3);
        assert_eq!(ran.says(&[said]).json()["nulls"], 1);
    }
    let csv = ["--schema", "trades", "--format", "csv", "-o", dir.path().join("x.csv").to_str().unwrap()]
        .map(str::to_owned);
    store("export", &ticks, &csv.each_ref().map(String::as_str)).code(0);
    assert!(std::fs::read_to_string(dir.path().join("x.csv")).unwrap().contains(",100000000000000000000,"));
}

/// What a scan can read an export has, and both say what is missing.
#[test]
fn intact_blocks_of_a_damaged_store_are_exported() {
    let dir = tempfile::tempdir().unwrap();
    let ticks = store_of(dir.path(), &lines(false));
    let all = store("scan", &ticks, &["--schema", "trades", "--json"]).code(0).lines();
    let blocks = store("info", &ticks, &["--blocks", "--json"]).code(0).lines();
    let block = blocks.iter().find(|block| block["schema"] == "trades" && block["symbol"] == "VOD").unwrap();
    let path = ticks.join(block["file"].as_str().unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(block["offset"].as_u64().unwrap() + block["bytes"].as_u64().unwrap() / 2) as usize] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let rows = store("scan", &ticks, &["--schema", "trades", "--json"]).code(3).lines();
    assert!(!rows.is_empty() && rows.len() < all.len());
    for (name, more) in
        [("x.parquet", &[][..]), ("dates", &["--partition", "date"]), ("symbols", &["--partition", "symbol"])]
    {
        let out = dir.path().join(name);
        let options = ["--schema", "trades", "--format", "parquet", "--json", "-o", out.to_str().unwrap()];
        let ran = store("export", &ticks, &[&options[..], more].concat()).code(3).says(&["damage"]);
        let summary = ran.json();
        assert_eq!((&summary["rows"], &summary["damaged_blocks"]), (&json!(rows.len()), &json!(1)), "{name}");
        let paths = if more.is_empty() { vec![out] } else { files_below(&out).into_values().collect() };
        let written: usize = paths.iter().map(|path| read_parquet(path).unwrap().rows.len()).sum();
        assert_eq!(written, rows.len(), "{name}");
    }
}

/// Returns the files below a directory, by their paths in it.
fn files_below(dir: &Path) -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    for folder in std::fs::read_dir(dir).unwrap() {
        let folder = folder.unwrap().path();
        for file in std::fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            files.insert(path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned(), path);
        }
    }
    files
}

#[test]
fn a_partition_has_the_rows_of_its_value() {
    let dir = tempfile::tempdir().unwrap();
    let ticks = store_of(dir.path(), &lines(false));
    let scan = |more: &[&str]| {
        store("scan", &ticks, &[&["--schema", "trades", "--json"], more].concat()).code(0).lines()
    };
    let export = |name: &str, more: &[&str]| {
        let out = dir.path().join(name);
        let options = ["--schema", "trades", "--format", "parquet", "--json", "-o", out.to_str().unwrap()];
        let summary = store("export", &ticks, &[&options[..], more].concat()).code(0).json();
        (files_below(&out), summary)
    };
    let (dates, summary) = export("dates", &["--partition", "date"]);
    let days = ["2024-03-11", "2024-03-12", "2024-03-13"];
    assert_eq!(
        dates.keys().cloned().collect::<Vec<_>>(),
        days.map(|day| format!("date={day}/part-0.parquet"))
    );
    for (path, day) in dates.values().zip(days) {
        assert_rows(&read_parquet(path).unwrap(), &scan(&["--date", day]));
    }
    let file_bytes = |files: &BTreeMap<String, PathBuf>| {
        files.values().map(|path| std::fs::metadata(path).unwrap().len()).sum::<u64>()
    };
    assert_eq!((&summary["files"], &summary["rows"]), (&json!(3), &json!(90)));
    assert_eq!(summary["bytes"], file_bytes(&dates));

    let (symbols, summary) = export("symbols", &["--partition", "symbol"]);
    let folders = [
        ("%5F_HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
        ("%2Fetc%2Fx", "/etc/x"),
        ("..", ".."),
        ("..%2Fx", "../x"),
        ("A B%25", "A B%"),
        ("VOD", "VOD"),
        ("a%252Fb", "a%2Fb"),
        ("a%2Fb", "a/b"),
        ("k%3Dv", "k=v"),
    ];
    let paths: Vec<String> =
        folders.iter().map(|(name, _)| format!("symbol={name}/part-0.parquet")).collect();
    let mut sorted_paths = paths.clone();
    sorted_paths.sort();
    assert_eq!(symbols.keys().cloned().collect::<Vec<_>>(), sorted_paths);
    assert_eq!((&summary["files"], &summary["rows"]), (&json!(9), &json!(90)));
    assert_eq!(summary["bytes"], file_bytes(&symbols));
    let all = scan(&[]);
    for (path, (_, symbol)) in paths.iter().zip(folders) {
        let rows: Vec<Value> = all.iter().filter(|row| row["symbol"] == json!(symbol)).cloned().collect();
        assert!(!rows.is_empty());
        assert_rows(&read_parquet(&symbols[path]).unwrap(), &rows);
    }
    // Rows without a symbol are also read with those of others.
    let out = dir.path().join("news");
    let options =
        ["--schema", "news", "--format", "csv", "--partition", "symbol", "-o", out.to_str().unwrap()];
    store("export", &ticks, &options).code(0);
    let news = files_below(&out);
    assert_eq!(news.keys().collect::<Vec<_>>(), ["symbol=__HIVE_DEFAULT_PARTITION__/part-0.csv"]);
    let csv = store("scan", &ticks, &["--schema", "news", "--csv"]).code(0).stdout;
    assert!(csv.iter().filter(|byte| **byte == b'\n').count() == 4);
    assert!(news.into_values().all(|path| std::fs::read(path).unwrap() == csv));
    // A limit counts the rows of the whole export, in the order of the scan.
    let (limited, _) = export("limited", &["--partition", "date", "--limit", "40"]);
    let counts: Vec<usize> = limited.values().map(|path| read_parquet(path).unwrap().rows.len()).collect();
    assert_eq!(counts.iter().sum::<usize>(), 40);
    assert_eq!(counts[0], scan(&["--date", "2024-03-11"]).len());
    // Nothing selected is a directory without a file.
    let (none, summary) = export("none", &["--partition", "symbol", "--symbols", "NOPE"]);
    assert_eq!((none.len(), &summary["rows"], &summary["files"]), (0, &json!(0), &json!(0)));
}

/// With a file open for each of a thousand symbols, a process has too many files; with the one used least closed, a symbol has a
/// thousand.
#[test]
fn many_symbols_have_one_file_each() {
    let dir = tempfile::tempdir().unwrap();
    let line = |n: i64| {
        let symbol = format!("S{}", n * 7 % 150);
        let event = json!({"ts": NOON + n, "kind": "trade", "venue": "X", "instr": symbol, "px": n.to_string(), "qty": "1"});
        format!("{event}\n")
    };
    let ticks = store_of(dir.path(), &(0..450).map(line).collect::<String>());
    for (name, more) in [("all", &[][..]), ("limited", &["--limit", "301"])] {
        let all = store("scan", &ticks, &[&["--schema", "trades", "--json"], more].concat()).code(0).lines();
        let out = dir.path().join(name);
        let options = ["--schema", "trades", "--format", "arrow", "--partition", "symbol", "-o"];
        let options = [&options[..], &[out.to_str().unwrap()], more].concat();
        let ran = store("export", &ticks, &options).code(0);
        assert!(ran.text().starts_with(&format!("{} rows of trades, ", all.len())), "{}", ran.text());
        let files = files_below(&out);
        assert_eq!(files.len(), 150);
        for (path, file) in &files {
            let symbol = path.strip_prefix("symbol=").unwrap().strip_suffix("/part-0.arrows").unwrap();
            let rows: Vec<Value> = all.iter().filter(|row| row["symbol"] == symbol).cloned().collect();
            assert_rows(&read_ipc(&std::fs::read(file).unwrap()).unwrap(), &rows);
        }
    }
}

#[test]
fn an_existing_output_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let ticks = store_of(dir.path(), &lines(false));
    let export = |out: &Path, more: &[&str]| {
        let options = ["--schema", "trades", "--format", "parquet", "-o", out.to_str().unwrap()];
        store("export", &ticks, &[&options[..], more].concat())
    };
    let names = || {
        let entries = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| !["events.jsonl", "tape", "ticks", "ticks.key"].contains(&name.as_str()));
        names.sort();
        names
    };
    let out = file(dir.path(), "mine.parquet", "mine");
    export(&out, &[]).code(2).says(&["mine.parquet: exists; --force replaces it"]);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "mine");
    export(&out, &["--force"]).code(0);
    assert_eq!(read_parquet(&out).unwrap().rows.len(), 90);
    export(dir.path(), &[]).code(2).says(&["is a directory; --partition"]);
    export(&out, &["--partition", "date"]).code(2).says(&["is no directory"]);

    let set = dir.path().join("set");
    let partition = |more: &[&str]| export(&set, &[&["--partition", "symbol"], more].concat());
    std::fs::create_dir(&set).unwrap();
    partition(&["--date", "2024-03-11"]).code(0);
    assert_eq!(files_below(&set).len(), 9);
    partition(&[]).code(2).says(&["set: exists and is not empty; --force replaces"]);
    // All of the old set is gone: a partition of it would be read with the new ones.
    partition(&["--force", "--symbol", "VOD"]).code(0);
    assert_eq!(files_below(&set).keys().collect::<Vec<_>>(), ["symbol=VOD/part-0.parquet"]);
    for other in ["symbol=VOD/notes.txt", "letters.txt"] {
        let kept = file(&set, other, "mine");
        partition(&["--force"]).code(2).says(&["has something other than an export: ", other]);
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "mine");
        std::fs::remove_file(&kept).unwrap();
    }
    partition(&["--force"]).code(0);
    assert_eq!(files_below(&set).len(), 9);
    assert_eq!(names(), ["mine.parquet", "set"]);
    // A device is written to, and is still one.
    export(Path::new("/dev/null"), &[]).code(0).says(&["90 rows of trades"]);
}

/// A name of a directory has 255 bytes; a longer symbol must not fail with the words of the system, nor leave half a set.
#[test]
fn a_symbol_that_is_too_long_for_a_path_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let symbol = "/".repeat(83);
    let line = json!({"ts": NOON, "kind": "trade", "venue": "X", "instr": symbol, "px": "1", "qty": "1"});
    let ticks = store_of(dir.path(), &format!("{line}\n"));
    let out = dir.path().join("set");
    let options =
        ["--schema", "trades", "--format", "csv", "--partition", "symbol", "-o", out.to_str().unwrap()];
    store("export", &ticks, &options).code(1).says(&["256 bytes as the name of a directory, and 255 fit"]);
    assert!(
        !out.exists()
            && !std::fs::read_dir(dir.path())
                .unwrap()
                .any(|e| { e.unwrap().file_name().to_string_lossy().starts_with("set") })
    );
}

#[test]
fn what_has_no_columns_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ticks = store_of(dir.path(), &lines(false));
    for option in ["--parquet", "--arrow"] {
        let says = format!("{option} prints rows: give one --schema, without --events, --full or --kind");
        for more in [
            &[][..],
            &["--schema", "trades", "--events"],
            &["--schema", "trades", "--full"],
            &["--schema", "trades", "--kind", "trade"],
        ] {
            let ran = store("scan", &ticks, &[&[option], more].concat()).code(2).says(&[&says]);
            assert!(ran.stdout.is_empty());
        }
        store("scan", &ticks, &[option, "--schema", "trades,bbo"]).code(2).says(&["rows are of one schema"]);
        store("scan", &ticks, &[option, "--schema", "trades", "--json"]).code(2);
        store("scan", &ticks, &[option, "--schema", "trades", "--csv"]).code(2);
        // A terminal would obey the bytes.
        let ticks = ticks.display();
        let command = format!("{} store scan {ticks} --schema bbo {option}", common::binary().display());
        let ran = common::finish(std::process::Command::new("script").args(["-qec", &command, "/dev/null"]));
        assert_eq!(ran.code, Some(2), "{}", ran.text());
        assert!(ran.text().contains(&format!("{option} writes bytes")), "{}", ran.text());
    }
    store("scan", &ticks, &["--schema", "bbo", "--parquet", "--arrow"]).code(2);
    let out = dir.path().join("x");
    let out = ["--format", "csv", "-o", out.to_str().unwrap()];
    store("export", &ticks, &out).code(2).says(&["--schema"]);
    let one = "give one --schema";
    store("export", &ticks, &[&out[..], &["--schema", "bbo,trades"]].concat()).code(2).says(&[one]);
    let kind = ["--schema", "bbo", "--kind", "bbo"];
    store("export", &ticks, &[&out[..], &kind].concat()).code(2).says(&["--kind selects events"]);
    store("export", &ticks, &["--schema", "bbo", "--format", "dbf", "-o", "x"]).code(2).says(&["parquet"]);
    assert!(!dir.path().join("x").exists());
}
