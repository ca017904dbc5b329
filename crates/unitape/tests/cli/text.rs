//! Text on the command line: good and bad messages, stdin, feeds recognised by their content.

use crate::common::{cat, root, run, run_with_stdin};
use serde_json::json;

fn vectors(name: &str) -> String {
    root().join("vectors/text").join(name).display().to_string()
}

// A pipe gives its bytes in pieces, and a bad line must not take its neighbours with it.
#[test]
fn decode_reads_stdin_and_keeps_the_neighbours_of_bad_lines() {
    let input = b"{\"px\":1.10,\"to\":[\"b\"]}\r\n{\"a\":\"\xe9}\n\n{\"b\":[1,2],\"n\":null}";
    let ran = run_with_stdin(["decode", "jsonl", "-", "--json"], input).code(3);
    let lines = ran.lines();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["fields"], json!({"px": "1.10", "to[]": ["b"]}));
    assert_eq!((&lines[1]["error"]["code"], &lines[1]["offset"]), (&json!("truncated"), &json!(24)));
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

/// The `comm` event of a mail with these lines after its head.
fn comm(rest: &str) -> serde_json::Value {
    let dir = tempfile::tempdir().unwrap();
    let head = "Date: Tue, 3 Mar 2026 08:15:00 +0000\nFrom: bob@x\nTo: cy@x\nSubject: s\n";
    let (file, tape) = (dir.path().join("a.eml"), dir.path().join("tape"));
    std::fs::write(&file, format!("{head}{rest}")).unwrap();
    let (file, name) = (file.display().to_string(), tape.display().to_string());
    run(["consolidate", &file, "--tape", &name, "--json"]).code(0);
    let mut events = cat(&tape, &["--kind", "comm"]);
    assert_eq!(events.len(), 1, "{rest}");
    events.pop().unwrap()
}

// Text of any type but text/plain and text/html vanished, and the message counted as an event.
#[test]
fn no_text_of_a_mail_is_lost() {
    for (rest, text) in [
        // RFC 2046, 4.1.4: an unknown subtype of text is plain.
        ("Content-Type: text/x-desk\n\nsell\n", "s\n\nsell"),
        // RFC 2045, 5.2: a type that is none is text/plain.
        ("Content-Type: text\n\nsell\n", "s\n\nsell"),
        ("Content-Type: ; charset=utf-8\n\nsell\n", "s\n\nsell"),
        // RFC 2183, 2.2: text is marked as attachment; it has no file name, or is all that there is.
        ("Content-Disposition: attachment\n\nsell\n", "s\n\nsell"),
        ("Content-Disposition: attachment; filename=a.txt\n\nsell\n", "s\n\nsell"),
        (
            "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nbuy\n--b\nContent-Disposition: attachment\n\nsell\n--b--\n",
            "s\n\nbuy\nsell",
        ),
        (
            "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Disposition: attachment; filename=a.txt\n\nsell\n--b--\n",
            "s\n\nsell",
        ),
        // RFC 2046, 5.1.4: an empty alternative is none; 5.1.3: markup in a mixed part is no alternative.
        (
            "Content-Type: multipart/alternative; boundary=b\n\n--b\n\n \n--b\nContent-Type: text/html\n\n<p>sell\n--b--\n",
            "s\n\n<p>sell",
        ),
        (
            "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nbuy\n--b\nContent-Type: text/html\n\n<p>sell\n--b--\n",
            "s\n\nbuy\n\n<p>sell",
        ),
        // 5.2.1, and 5.1.5: parts of a digest are messages.
        (
            "Content-Type: message/rfc822\n\nSubject: t\nFrom: =?utf-8?q?=C3=84?= <a@x>\nDate: d\n\nsell\n",
            "s\n\nFrom: Ä <a@x>\nDate: d\nSubject: t\n\nsell",
        ),
        (
            "Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: t\n\nsell\n--b--\n",
            "s\n\nSubject: t\n\nsell",
        ),
        (
            "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\nU3ViamVjdDogdAoKc2VsbAo=\n",
            "s\n\nSubject: t\n\nsell",
        ),
        // Messages in each other, the last of nothing but its header.
        (
            "Content-Type: message/rfc822\n\nSubject: t\nContent-Type: message/rfc822\n\nSubject: u\n",
            "s\n\nSubject: t\n\nSubject: u",
        ),
    ] {
        assert_eq!(comm(rest)["text"], text, "{rest}");
    }
}

// The first of several attachments was named, and their number was not reported.
#[test]
fn attachments_are_named_and_counted() {
    let event = comm(
        "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nbuy\n--b\nContent-Type: image/png; name=a.png\n\nx\n--b\nContent-Type: text/csv; charset=klingon\n\nx\n--b\nContent-Type: text/csv\nContent-Disposition: attachment; filename=b.csv\n\nx\n--b--\n",
    );
    assert_eq!(event["attachments"], "3");
    assert_eq!(event["attachment_list"], "a.png (image/png); (text/csv); b.csv (text/csv)");
    assert_eq!((&event["text"], &event["attachment"]), (&json!("s\n\nbuy"), &json!("a.png")));
    let event = comm(
        "Content-Type: multipart/alternative; boundary=b\n\n--b\n\nbuy\n--b\nContent-Type: text/html\n\nsell\n--b--\n",
    );
    assert_eq!((&event["text"], &event["alternative"]), (&json!("s\n\nbuy"), &json!("text/html")));
}

#[test]
fn a_forwarded_mail_has_the_words_of_both() {
    let lines = run(["decode", "mail", &vectors("forwarded.eml"), "--json"]).code(0).lines();
    let fields = &lines[0]["fields"];
    assert_eq!(fields["html"], "<p>see below</p>");
    assert_eq!(fields["forwarded[].from"], json!(["Ann Ämes <ann@bank.example>"]));
    assert_eq!(fields["forwarded[].text"], json!(["We pull the offer at four."]));
    assert_eq!(
        fields["attachment_list"],
        "size.eml (message/rfc822); (text/plain); terms.pdf (application/pdf)"
    );
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape");
    run(["consolidate", &vectors("forwarded.eml"), "--tape", &tape.display().to_string()]).code(0);
    let text = "Fwd: size\n\nDo not forward.\n\n<p>see below</p>\n\nFrom: Ann Ämes <ann@bank.example>\nDate: Mon, 2 Mar 2026 17:40:00 +0000\nSubject: size\n\nWe pull the offer at four.";
    assert_eq!(cat(&tape, &["--kind", "comm"])[0]["text"], text);
}

// Nothing bounded messages in each other.
#[test]
fn forwarded_mails_are_bounded() {
    let deep = format!("{}Subject: x\n\nsell\n", "Content-Type: message/rfc822\n\n".repeat(20));
    let ran = run_with_stdin(["decode", "mail", "-", "--json"], deep.as_bytes()).code(3);
    assert_eq!(ran.lines()[0]["error"]["code"], "too_deep");
}
