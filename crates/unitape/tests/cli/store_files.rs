//! `store seal` of files: the same rows as through a tape that is kept, once, and nothing left behind.

use crate::common::{self, Ran, file, run, unitape};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

fn seal(store: &Path, inputs: &[&OsStr], options: &[&str]) -> Ran {
    let command = ["store", "seal", "--json", "--store"].map(OsStr::new).into_iter();
    run(command
        .chain([store.as_os_str()])
        .chain(inputs.iter().copied())
        .chain(options.iter().map(OsStr::new)))
}

fn rows(store: &Path) -> Vec<u8> {
    let scan = |options: &[&str]| {
        let command = ["store".as_ref(), "scan".as_ref(), store.as_os_str()];
        run(command.into_iter().chain(options.iter().map(AsRef::as_ref))).code(0).stdout
    };
    let schemas = ["mbo", "trades", "quarantine", "orders"];
    schemas.map(|schema| scan(&["--schema", schema, "--csv", "--with", "identity"])).concat()
}

/// Orders of two feeds, one of them with damaged messages.
fn inputs(dir: &Path) -> [PathBuf; 2] {
    let orders = |name: &str, seed, is_damaged| file(dir, name, common::flow(seed, 900, is_damaged).0);
    [orders("first.fix", 3, false), orders("second.fix", 4, true)]
}

/// What remains beside a store but its key and the given names.
fn left_over(dir: &Path) -> Vec<OsString> {
    let is_known = |name: &OsString| {
        let name = name.to_str().unwrap();
        name.ends_with(".fix") || name.ends_with(".key") || name.ends_with(".gz") || !name.contains('.')
    };
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| !is_known(name)).collect()
}

#[test]
fn files_give_the_rows_of_a_kept_tape_and_add_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let files = inputs(dir.path());
    let (kept, sealed) = (dir.path().join("kept"), dir.path().join("ticks"));
    let feeds = ["a", "b"].map(|name| {
        let path = &files[usize::from(name == "b")];
        common::orders_option(name, path)
    });
    for (n, feed) in feeds.iter().enumerate() {
        let tape = dir.path().join(format!("tape{n}"));
        run(["consolidate", "--feed", feed, "--tape", tape.to_str().unwrap()]).code(if n == 0 {
            0
        } else {
            3
        });
        run(["store", "seal", tape.to_str().unwrap(), "--store", kept.to_str().unwrap()]).code(0);
    }
    let options = ["--feed", &feeds[0], "--feed", &feeds[1], "--workers", "2"];
    // Messages in quarantine are flaws of the input, as for `consolidate`.
    let report = seal(&sealed, &[], &options).code(3).json();
    assert_eq!(report["generation"], 2);
    assert_eq!(report["feeds"][0]["name"], "a");
    assert!(report["feeds"][1]["quarantined"].as_u64().unwrap() > 0, "{report}");
    assert!(rows(&sealed) == rows(&kept), "other rows than those of the tapes");
    let again = seal(&sealed, &[], &options).code(3).json();
    assert_eq!((&again["generation"], &again["rows"]), (&serde_json::Value::Null, &0.into()));
    // One of them alone, too.
    assert_eq!(seal(&sealed, &[], &["--feed", &feeds[0]]).code(0).json()["rows"], 0);
    assert!(rows(&sealed) == rows(&kept), "rows are doubled");
    assert_eq!(left_over(dir.path()), Vec::<OsString>::new());
    // A compressed file is read as it is.
    let gz = dir.path().join("first.fix.gz");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&std::fs::read(&files[0]).unwrap()).unwrap();
    std::fs::write(&gz, encoder.finish().unwrap()).unwrap();
    let packed_store = dir.path().join("packed");
    let feed = common::orders_option("a", &gz);
    let packed = seal(&packed_store, &[], &["--feed", &feed]).code(0).json();
    assert_eq!(packed["rows"], report["feeds"][0]["rows"]);
}

/// Fails if many files leave a day in as many parts, or if a bare file is not recognised.
#[test]
fn many_bare_files_are_one_part_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("ticks");
    let flows: Vec<PathBuf> =
        (0..6).map(|n| file(dir.path(), &format!("{n}.fix"), common::flow(n + 20, 100, false).0)).collect();
    let inputs: Vec<&OsStr> = flows.iter().map(|path| path.as_os_str()).collect();
    let report = seal(&store, &inputs, &[]).code(0).json();
    assert_eq!((&report["generation"], report["feeds"].as_array().unwrap().len()), (&6.into(), 6));
    let blocks = run(["store", "info", store.to_str().unwrap(), "--blocks", "--json"]).code(0).lines();
    let mut places: Vec<_> = blocks
        .iter()
        .map(|block| format!("{} {} {}", block["date"], block["schema"], block["symbol"]))
        .collect();
    let all = places.len();
    places.dedup();
    assert_eq!(places.len(), all, "an instrument has several small blocks");
    run(["store", "verify", store.to_str().unwrap()]).code(0);
}

#[test]
fn what_cannot_be_sealed_is_told_and_leaves_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let [first, _] = inputs(dir.path());
    let store = dir.path().join("ticks");
    let missing = dir.path().join("missing.fix");
    seal(&store, &[], &[]).code(2).says(&["nothing to seal"]);
    seal(&store, &[first.as_os_str(), dir.path().as_os_str()], &[]).code(2).says(&["a tape is sealed alone"]);
    seal(&store, &[first.as_os_str()], &["--skip-damage"]).code(2).says(&["--skip-damage"]);
    seal(&store, &[first.as_os_str(), missing.as_os_str()], &[]).says(&["missing.fix"]);
    assert!(!store.with_extension("key").exists(), "a key is left behind");
    let stdin = seal(&store, &[], &["--feed", "a=fix:fix44-orders:-"]).code(2);
    assert!(stdin.stderr.contains("stdin cannot be sealed"), "{}", stdin.stderr);
}

/// Fails if a killed command leaves half of a file in the store, or its tape beside it.
#[test]
fn a_killed_command_is_made_good_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let files = inputs(dir.path());
    let whole = dir.path().join("whole");
    let inputs = files.each_ref().map(|path| path.as_os_str());
    seal(&whole, &inputs, &[]).code(3);
    let want = rows(&whole);
    for round in 0..8u64 {
        let store = dir.path().join(format!("killed{round}"));
        let mut child = unitape()
            .args(["store", "seal", "--store"])
            .arg(&store)
            .args(inputs)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(round * 9));
        child.kill().unwrap();
        child.wait().unwrap();
        seal(&store, &inputs, &[]).code(3);
        assert!(rows(&store) == want, "round {round}: other rows");
    }
    assert_eq!(left_over(dir.path()), Vec::<OsString>::new());
}
