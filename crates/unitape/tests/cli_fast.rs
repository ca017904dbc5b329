//! `decode fast` by the command line.

mod common;

use common::{file, root, run, run_with_stdin};
use std::ffi::OsStr;

/// The first thing that goes wrong with a venue's templates is the file itself: it must say where.
#[test]
fn wrong_templates_name_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let text = "<templates xmlns=\"http://www.fixprotocol.org/ns/fast/td/1.1\">\n<template name=\"T\" id=\"1\">\n<uInt32 name=\"A\"><constant/></uInt32>\n</template></templates>";
    let path = file(dir.path(), "wrong.xml", text);
    let args =
        [OsStr::new("decode"), "fast".as_ref(), "--templates".as_ref(), path.as_os_str(), "-".as_ref()];
    let ran = run_with_stdin(args, b"");
    ran.code(1).says(&["wrong.xml:3: S4: a constant without a value"]);
    run(["decode", "fast", "-"]).code(2).says(&["--templates"]);
}

/// A bad line costs itself alone, and what the dictionaries had stays.
#[test]
fn lines_of_hexadecimal_and_the_bad_one_among_them() {
    let dir = tempfile::tempdir().unwrap();
    let text = "<templates><template name=\"T\" id=\"1\"><uInt32 name=\"A\"><increment value=\"7\"/></uInt32></template></templates>";
    let path = file(dir.path(), "t.xml", text);
    let args = |json: bool| {
        let mut args = vec![OsStr::new("decode"), "fast".as_ref(), "--templates".as_ref(), path.as_os_str()];
        args.extend(["--framing", "hexlines", "-"].map(OsStr::new));
        args.extend(json.then_some(OsStr::new("--json")));
        args
    };
    let input = b"c0 81\na0 10 00 00 00 80\n80\n80 80\n";
    let lines = run_with_stdin(args(true), input).code(3).lines();
    let seen: Vec<_> = lines.iter().map(|l| (&l["fields"]["A"], &l["error"]["code"], &l["offset"])).collect();
    let null = &serde_json::Value::Null;
    assert_eq!(seen[0], (&7.into(), null, &0.into()));
    assert_eq!(seen[1], (null, &"D2".into(), &1.into()));
    assert_eq!(seen[2], (&8.into(), null, &2.into()));
    assert_eq!((seen[3], &lines[3]["rest_bytes"]), ((&9.into(), null, &3.into()), &1.into()));
    let ran = run_with_stdin(args(false), input);
    let text = String::from_utf8_lossy(&ran.code(3).stdout).into_owned();
    assert!(text.starts_with("0 @0 T A=7\n1 @1 ! D2: an integer out of the bounds of its type, in template T, field A, at byte 1"), "{text}");
}

/// Real messages, and all of what `--reset-per-message` and `--strict` change: nothing, for these.
#[test]
fn real_messages_in_their_framing() {
    let (templates, day) =
        (root().join("vectors/fast/moex/test.xml"), root().join("vectors/fast/moex/olr_5020.dat"));
    let mut args = vec![OsStr::new("decode"), "fast".as_ref(), "--templates".as_ref(), templates.as_os_str()];
    args.extend(["--framing", "moex", "--json"].map(OsStr::new));
    args.push(day.as_os_str());
    let plain = run(&args).code(0).lines();
    assert_eq!(plain.len(), 5020);
    args.extend(["--reset-per-message", "--strict"].map(OsStr::new));
    assert_eq!(run(&args).code(0).lines(), plain);
}
