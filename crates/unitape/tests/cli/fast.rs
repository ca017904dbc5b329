//! `decode fast` by the command line.

use crate::common::{self, file, root, run, run_with_stdin};
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

/// Decodes lines of hexadecimal by these templates.
fn hexlines(templates: &str, lines: &str, more: &[&str]) -> common::Ran {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "t.xml", templates);
    let mut args = vec![OsStr::new("decode"), "fast".as_ref(), "--templates".as_ref(), path.as_os_str()];
    args.extend(["--framing", "hexlines", "-"].map(OsStr::new));
    args.extend(more.iter().map(OsStr::new));
    run_with_stdin(args, lines.as_bytes())
}

/// Names that a template holds twice were keys twice, and every reader of JSON kept one of the values. So did the human form.
#[test]
fn a_name_that_comes_twice_is_an_array() {
    let templates = r#"<templates><template name="T" id="1"><templateRef name="R"/><uInt32 name="Z"/><templateRef name="R"/></template>
        <template name="R"><uInt32 name="A" presence="optional"/><group name="G"><uInt32 name="B"/></group></template></templates>"#;
    let lines = "c0 81 82 83 e3 84 85\n80 80 83 e3 84 85\n";
    let decoded = hexlines(templates, lines, &["--json"]).code(0);
    let both = r#""fields":{"A":[1,3],"G":[{"B":3},{"B":5}],"Z":99}}"#;
    // Also when one of them is there: who reads it need not ask which it is.
    let one = r#""fields":{"G":[{"B":3},{"B":5}],"Z":99,"A":[3]}}"#;
    let text: Vec<&str> = decoded.text().lines().collect();
    assert!(text[0].ends_with(both) && text[1].ends_with(one), "{text:?}");
    let plain = hexlines(templates, lines, &[]).code(0);
    assert_eq!(plain.text().lines().next(), Some(r#"0 @0 T A=[1,3] G=[{"B":3},{"B":5}] Z=99"#));
}

/// A field that a message names itself was put among the fields around it.
#[test]
fn a_dynamic_reference_is_an_object_of_its_own() {
    let templates = r#"<templates><template name="One" id="1"><uInt32 name="A"/><templateRef/></template>
        <template name="Two" id="2"><templateRef/><templateRef/></template><template name="In" id="3"><uInt32 name="A"/></template></templates>"#;
    let lines = "c0 81 85 c0 83 86\nc0 82 c0 83 87 80 88\n";
    let decoded = hexlines(templates, lines, &["--json"]).code(0).lines();
    let inner = |a: u32| serde_json::json!({"type": {"id": 3, "name": "In"}, "fields": {"A": a}});
    assert_eq!(decoded[0]["fields"], serde_json::json!({"A": 5, "@ref": inner(6)}));
    assert_eq!(decoded[1]["fields"], serde_json::json!({"@ref": [inner(7), inner(8)]}));
    let plain = hexlines(templates, lines, &[]).code(0);
    let line = plain.text().lines().next().unwrap().to_owned();
    assert!(line.starts_with("0 @0 One A=5 @ref={") && line.contains("\"name\":\"In\""), "{line}");
}

/// Bits without a field are reported as the other three reportable errors are; a decimal beyond its bounds has one code.
#[test]
fn reportable_errors_and_decimals_beyond_their_bounds() {
    let templates = r#"<templates><template name="T" id="1"><uInt32 name="A"/></template>
        <template name="D" id="2"><decimal name="V"/></template>
        <template name="P" id="3"><decimal name="V"><exponent><delta/></exponent><mantissa><delta/></mantissa></decimal></template></templates>"#;
    let bits = "e0 81 85\n";
    assert_eq!(hexlines(templates, bits, &["--json"]).code(0).lines()[0]["fields"]["A"], 5);
    assert_eq!(hexlines(templates, bits, &["--json", "--strict"]).code(3).lines()[0]["error"]["code"], "R8");
    let beyond = "c0 82 80 01 00 00 00 00 00 00 00 00 80\nc0 82 08 00 00 00 80 81\nc0 83 80 01 00 00 00 00 00 00 00 00 80\nc0 83 08 00 00 00 80 81\n";
    let lines = hexlines(templates, beyond, &["--json"]).code(3).lines();
    let codes: Vec<_> = lines.iter().map(|line| line["error"]["code"].as_str().unwrap_or("none")).collect();
    assert_eq!(codes, ["R1"; 4]);
}

/// A stream that never sends a template's id could not be decoded.
#[test]
fn a_template_for_messages_without_an_id() {
    let templates = r#"<templates><template name="T" id="7"><uInt32 name="A"><increment/></uInt32></template>
        <template name="Bare"><uInt32 name="B"/></template></templates>"#;
    let lines = "a0 85\n80\nc0 87\n";
    let decoded = hexlines(templates, lines, &["--json", "--template", "T"]).code(0).lines();
    let seen: Vec<_> = decoded.iter().map(|l| (&l["type"]["name"], &l["fields"]["A"])).collect();
    let name = &"T".into();
    assert_eq!(seen, [(name, &5.into()), (name, &6.into()), (name, &7.into())]);
    // A template without an id can be meant as well, and each packet begins with it again.
    let more = ["--json", "--template", "Bare", "--reset-per-message"];
    let decoded = hexlines(templates, "80 89\n80 8a\n", &more).code(0).lines();
    assert_eq!((&decoded[1]["type"]["name"], &decoded[1]["fields"]["B"]), (&"Bare".into(), &10.into()));
    hexlines(templates, lines, &["--template", "Bar"])
        .code(2)
        .says(&["no template has this name", "T, Bare"]);
}
