//! Text on the command line: good and bad messages, stdin, feeds recognised by their content.

mod common;

use common::{cat, root, run, run_with_stdin};
use serde_json::json;

fn vectors(name: &str) -> String {
    root().join("vectors/text").join(name).display().to_string()
}

// A pipe gives its bytes in pieces, and a bad line must not take its neighbours with it.
#[test]
fn decode_reads_stdin_and_keeps_the_neighbours_of_bad_lines() {
    let input = b"{\"px\":1.10,\"to\":[\"b\"]}\r\n{\"a\":\"\xe9\"}\n\n{\"b\":[1,2],\"n\":null}";
    let ran = run_with_stdin(["decode", "jsonl", "-", "--json"], input).code(3);
    let lines = ran.lines();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["fields"], json!({"px": "1.10", "to[]": ["b"]}));
    assert_eq!((&lines[1]["error"]["code"], &lines[1]["offset"]), (&json!("bad_utf8"), &json!(24)));
    assert_eq!(lines[2]["fields"], json!({"b[]": ["1", "2"], "n": null}));
    let shown = run_with_stdin(["decode", "jsonl", "-"], b"{\"a\":{\"b\":\"x\"}}").code(0);
    assert_eq!(shown.stdout.trim_ascii_end(), b"0 @0 object a.b=x");
    assert!(run_with_stdin(["decode", "jsonl", "-", "--json"], b"").code(0).stdout.is_empty());
    run(["decode", "jsonl", "no-such-file", "--json"]).code(1).says(&["no-such-file"]);
}

#[test]
fn bare_files_become_events() {
    let dir = tempfile::tempdir().unwrap();
    for (file, kind, events, code) in [
        ("news.jsonl", "news", 3, 3),
        ("slack.jsonl", "comm", 3, 3),
        ("symphony.jsonl", "comm", 2, 0),
        ("archive.mbox", "comm", 2, 3),
        ("message.eml", "comm", 1, 0),
        ("rss.xml", "news", 2, 3),
        ("atom.xml", "news", 2, 0),
        ("newsml.xml", "news", 2, 0),
    ] {
        let tape = dir.path().join(file);
        let tape_name = tape.display().to_string();
        let account = run(["consolidate", &vectors(file), "--tape", &tape_name, "--json"]).code(code).json();
        assert_eq!(account["by_kind"][kind], events, "{file}: {account}");
        assert_eq!(cat(&tape, &["--kind", kind]).len(), events, "{file}");
    }
}

// Bytes that are no text were shown as question marks.
#[test]
fn a_mail_of_another_set_is_refused_and_its_neighbours_kept() {
    let ran = run(["decode", "mail", &vectors("archive.mbox"), "--json"]).code(3);
    let lines = ran.lines();
    assert_eq!(lines.len(), 4);
    assert_eq!(
        lines[0]["fields"]["text"],
        "Not on this line. Five a penny up, café at four, soft line.\nFrom there we walk."
    );
    assert_eq!(lines[1]["fields"]["attachments[].name"], json!(["fills.csv"]));
    assert_eq!(lines[3]["error"]["code"], "bad_utf8");
}
