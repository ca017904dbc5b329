//! `decode fixed` and layouts that cannot be: the layout of another file must not decode this one into nonsense.

use crate::common::{file, root, run, run_with_stdin};
use std::ffi::OsStr;

const LAYOUT: &str = "name = 'p'\nterminator = 'newline'\n[[record]]\nname = 'price'\ncolumn = [\n\
    { name = 'symbol', length = 4 },\n{ name = 'price', length = 6, type = 'decimal', decimals = 2 },\n]\n";

#[test]
fn records_from_stdin_and_the_bad_one_among_them() {
    let dir = tempfile::tempdir().unwrap();
    let layout = file(dir.path(), "l.toml", LAYOUT);
    let args = ["decode", "fixed", "--layout", layout.to_str().unwrap(), "-", "--json"];
    let lines = run_with_stdin(args, b"ACME001050\nACMEx01050\nBETA000001").code(3).lines();
    assert_eq!(lines[0]["fields"], serde_json::json!({"symbol": "ACME", "price": "10.5"}));
    assert_eq!((&lines[0]["n"], &lines[0]["file"]), (&0.into(), &"-".into()));
    assert_eq!((&lines[1]["error"]["code"], &lines[1]["offset"]), (&"bad_number".into(), &11.into()));
    assert_eq!(lines[2]["fields"]["price"], "0.01");
    let clean = run_with_stdin(args, b"ACME001050\r\n").code(0).lines();
    assert_eq!(clean.len(), 1);
}

#[test]
fn a_layout_whose_columns_overlap_is_an_error_with_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let bad = LAYOUT.replace("'price', length = 6", "'price', start = 4, length = 6");
    let layout = file(dir.path(), "bad.toml", bad);
    let data = file(dir.path(), "data", "ACME001050\n");
    let ran = run([
        OsStr::new("decode"),
        "fixed".as_ref(),
        "--layout".as_ref(),
        layout.as_os_str(),
        data.as_os_str(),
    ]);
    ran.code(1).says(&["bad.toml:7: column `price` begins at byte 4, inside `symbol`"]);
    let mapping =
        "name='m'\nformat='fixed'\nlayout='bad.toml'\nmessage={ts='symbol'}\n[[rule]]\nignore=true\n";
    let mapping = file(dir.path(), "m.toml", mapping);
    let ran = run([OsStr::new("mapping"), "check".as_ref(), mapping.as_os_str()]);
    ran.code(1).says(&["bad.toml:7: column `price`"]);
}

#[test]
fn no_layout_of_that_name() {
    let ran = run(["decode", "fixed", "--layout", "nyse-taq", "x"]);
    ran.code(1).says(&["neither a shipped layout (nyse-taq-bbo-98, sim-day) nor a readable file"]);
}

/// A bare file is recognised by its header.
#[test]
fn the_taq_file_by_its_content() {
    let dir = tempfile::tempdir().unwrap();
    let taq = root().join("vectors/fixed/taq/nyse_taq_bbo_20140206.txt");
    let tape = dir.path().join("t");
    let args =
        [OsStr::new("consolidate"), taq.as_os_str(), "--tape".as_ref(), tape.as_os_str(), "--json".as_ref()];
    let account = run(args).code(0).lines().remove(0);
    assert_eq!((&account["messages"], &account["events"]), (&9995.into(), &9994.into()));
}
