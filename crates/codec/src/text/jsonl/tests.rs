use super::*;
use crate::text::decode_json;
use crate::twin::text::check;
use crate::twin::text::jsonl::check::{agree, any_bytes};
use crate::twin::text::jsonl::sample::{JsonlSampleFormat, sample_lines};
use proptest::prelude::*;

/// The output of `decode` for this input, without the name of the file.
fn printed(input: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut decoder = JsonlDecoder::default().with_max_line(200);
    decode_json(&mut input.as_bytes(), "f", &mut decoder, &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    out.lines().map(|line| line.replace("\"file\":\"f\",", "")).collect()
}

// 1.10 read as a float is 1.1, and 12345678901234567890123 is another number.
#[test]
fn values_stand_as_they_were_written() {
    let line = r#"{"px":1.10,"big":12345678901234567890123,"e":1E+5,"ok":true,"no":null,"none":[],"t":"a\u00e9\ud83d\ude80\/"}"#;
    assert_eq!(
        printed(line),
        [concat!(
            r#"{"n":0,"offset":0,"type":"object","fields":{"px":"1.10","big":"12345678901234567890123","e":"1E+5","#,
            r#""ok":"true","no":null,"none":null,"t":"aé🚀/"}}"#
        )]
    );
}

// A list of one was printed as no list, so that scripts had two cases for one field.
#[test]
fn lists_are_lists_however_many_they_hold() {
    let line = r#"{"to":[{"m":"a"},{"m":"b","n":1}],"one":["x"],"deep":[[1],[2,3]],"a.b":{"":1}}"#;
    assert_eq!(
        printed(line),
        [concat!(
            r#"{"n":0,"offset":0,"type":"object","fields":{"to[].m":["a","b"],"to[].n":["1"],"one[]":["x"],"#,
            r#""deep[][0]":["1","2"],"deep[][1]":["3"],"\"a.b\".\"\"":"1"}}"#
        )]
    );
}

// A price could not be told from its quantity.
#[test]
fn lists_in_lists_have_positions() {
    for (line, fields) in [
        (r#"{"b":[["1.10","2"],["1.20","3"]]}"#, r#""b[][0]":["1.10","1.20"],"b[][1]":["2","3"]"#),
        // The side first, three values, one, none, and what is nothing.
        (
            r#"{"c":[["buy","1","2"],["sell"],[],[null,"3"]]}"#,
            r#""c[][0]":["buy","sell",null],"c[][1]":["1","3"],"c[][2]":["2"],"c[]":[null]"#,
        ),
        // Lists of lists of lists, of which the innermost have positions.
        (r#"{"d":[[[1,2],[3,4]],[[5]]]}"#, r#""d[][][0]":["1","3","5"],"d[][][1]":["2","4"]"#),
        // A list is a list beside values, too; objects have positions; a list in an object is a new one.
        (
            r#"{"e":[["a",[1,2],{"m":3,"n":[4,[5]]}],{"m":6}]}"#,
            r#""e[][0]":["a"],"e[][][0]":["1"],"e[][][1]":["2"],"e[][2].m":["3"],"e[][2].n[]":["4"],"e[][2].n[][0]":["5"],"e[].m":["6"]"#,
        ),
        // A message that is a list.
        (
            r#"[336,{"as":[["1","2"]],"b":[]},["x",[1]],[],"p"]"#,
            r#""[0]":"336","[1].as[][0]":["1"],"[1].as[][1]":["2"],"[1].b":null,"[2][0]":"x","[2][][0]":["1"],"[3]":null,"[4]":"p""#,
        ),
    ] {
        let list = line.starts_with('[');
        let kind = if list { "list" } else { "object" };
        assert_eq!(
            printed(line),
            [format!(r#"{{"n":0,"offset":0,"type":"{kind}","fields":{{{fields}}}}}"#)],
            "{line}"
        );
        agree(JsonlDecoder::default(), line.as_bytes()).unwrap();
        // In a list that is all of the file an object is read as on its line.
        if !list {
            let lines = printed(&format!("[{line},\n{line}]"));
            assert!(
                lines.len() == 2 && lines[1].ends_with(&format!("\"fields\":{{{fields}}}}}")),
                "{lines:?}"
            );
        }
    }
}

// A file whose first line is a list of values was read as one list, and its lines were lost.
#[test]
fn lines_that_are_lists_are_messages() {
    let kinds = |text: &str| {
        let lines = printed(text);
        let kind = |line: &String| {
            ["object", "list", "error"]
                .into_iter()
                .find(|w| line.contains(&format!("\"{w}\":")) || line.contains(&format!("\"type\":\"{w}\"")))
                .unwrap()
        };
        lines.iter().map(kind).collect::<Vec<_>>().join(" ")
    };
    for (text, want) in [
        ("[1,{\"a\":[[1]]}]\n[2]\n{\"a\":1}\n", "list list object"),
        ("[\"a\"]\n[[[[]]]]\n[\n", "list list error"),
        ("{\"a\":1}\n[{\"a\":1},{\"b\":2}]\n[[1,2]]", "object list list"),
        // One list on many lines, and lines of lists of objects.
        ("[\n{\"a\":1},\n{\"a\":2}\n]", "object object"),
        ("[{\"a\":1},{\"a\":2}]\n[{\"a\":3}]\n", "object object object"),
        ("[[1,2],{\"a\":1}]", "error object"),
    ] {
        assert_eq!(kinds(text), want, "{text}");
    }
    let deep = format!("[1]\n{}{}\n{{\"a\":1}}", "[".repeat(10_000), "]".repeat(10_000));
    let lines = printed_bytes(deep.as_bytes(), FallbackCharset::default());
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(
        lines[1].contains("\"code\":\"too_deep\"") && lines[1].contains("more than 64 lists"),
        "{}",
        lines[1]
    );
    assert!(lines[0].contains("\"[0]\":\"1\"") && lines[2].contains("\"a\":\"1\""), "{lines:?}");
}

// A bad line must cost that line only, and say what is wrong with it.
#[test]
fn each_fault_has_its_code_and_its_neighbours_are_kept() {
    for (line, code) in [
        ("hello", "garbage"),
        ("12", "garbage"),
        ("[1,2", "truncated"),
        ("[1,2]]", "bad_json"),
        ("{\"a\":", "truncated"),
        ("{\"a\":\"b", "truncated"),
        ("{\"a\":1]", "bad_json"),
        ("{\"a\":01}", "bad_json"),
        ("{\"a\":1}{\"b\":2}", "bad_json"),
        ("{\"a\":\"\\ud800\"}", "bad_json"),
        ("{\"a\":\"\\ud800\\u0041\"}", "bad_json"),
        ("{\"a\":\"\u{1}\"}", "bad_json"),
        ("{\"a\":1,\"b\":2,\"\\u0061\":3}", "duplicate"),
    ] {
        let lines = printed(&format!("{{\"x\":1}}\n\r\n \t{line}\r\n\u{feff}{{\"y\":2}}"));
        assert_eq!(lines.len(), 3, "{line}: {lines:?}");
        assert!(lines[1].contains(&format!("\"code\":\"{code}\"")), "{line}: {}", lines[1]);
        assert!(
            lines[1].contains(&format!("\"offset\":12,\"length\":{},", line.len())),
            "{line}: {}",
            lines[1]
        );
        assert!(lines[0].contains("\"x\":\"1\"") && lines[2].contains("\"y\":\"2\""), "{line}: {lines:?}");
    }
}

// An archive was one line that is too long, and a Ctrl-Z behind the last line a message.
#[test]
fn archives_are_named_and_padding_is_the_end() {
    let lines = printed("PK\u{3}\u{4}\u{14}\n{\"a\":1}\n");
    assert!(lines.len() == 1 && lines[0].contains("ZIP archive"), "{lines:?}");
    for padding in ["\u{1a}", "\0\0\0", "\0\u{1a}\r\n"] {
        assert_eq!(printed(&format!("{{\"a\":1}}\n{padding}")).len(), 1, "{padding:?}");
    }
    assert_eq!(printed("{\"a\":1}\n\u{1a}\n{\"a\":2}").len(), 3);
}

// Lines that end in carriage returns alone were one line that is not JSON, without a word about the cause.
#[test]
fn carriage_returns_alone_end_no_line() {
    for text in ["{\"a\":1}\r{\"a\":2}\r", "{\"a\":1}\n{\"b\":2}\r{\"c\":3}\n", "[1,2]\r[3,4]"] {
        let lines = printed(text);
        assert!(lines.last().unwrap().contains("convert the line ends"), "{lines:?}");
    }
    // Between values it is white space.
    assert!(printed("{\"a\":\r1}\r").last().unwrap().contains("\"a\":\"1\""));
    assert!(!printed("{\"a\":\r01}").last().unwrap().contains("convert"), "a number is the fault");
}

/// The output of `decode` for these bytes, without the name of the file.
fn printed_bytes(input: &[u8], fallback: FallbackCharset) -> Vec<String> {
    let mut out = Vec::new();
    decode_json(&mut &input[..], "f", &mut JsonlDecoder::default().with_fallback(fallback), &mut out)
        .unwrap();
    String::from_utf8(out).unwrap().lines().map(|line| line.replace("\"file\":\"f\",", "")).collect()
}

// A line was lost for one letter of its text.
#[test]
fn a_line_in_another_set_is_read_by_the_mapping_or_a_guess() {
    let guess = FallbackCharset::default();
    let lines = printed_bytes(b"{\"a\":\"caf\xe9 \x80\"}\n{\"b\":\"\xc3\xa9\"}", guess);
    assert!(
        lines[0].contains("\"encoding\":\"guessed windows-1252\",\"fields\":{\"a\":\"caf\u{e9} \u{20ac}\"}"),
        "{}",
        lines[0]
    );
    assert!(lines[1].contains("\"type\":\"object\",\"fields\":{\"b\":\"\u{e9}\"}"), "{}", lines[1]);
    let by = |name| FallbackCharset::by_name(name).unwrap();
    assert!(
        printed_bytes(b"{\"a\":\"\x81\"}", by("cp850"))[0]
            .contains("\"type\":\"object\",\"fields\":{\"a\":\"\u{fc}\"}")
    );
    // The lead byte of Shift_JIS takes the quote with it: no text of the set.
    let lines = printed_bytes(b"{\"a\":\"x\x83\"}\n{\"b\":1}", by("shift_jis"));
    assert!(lines[0].contains("bad_utf8") && lines[0].contains("`Shift_JIS` at byte 7"), "{}", lines[0]);
    assert!(lines[1].contains("\"b\":\"1\""), "{}", lines[1]);
    for utf16 in [&b"\xff\xfe{\0\"\0a\0\n\0"[..], b"\xfe\xff\0{\0\n\0}", b"{\0}\0\n\0"] {
        let lines = printed_bytes(utf16, guess);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("bad_encoding") && lines[0].contains("UTF-16"), "{}", lines[0]);
    }
}

// A file as Slack exports it was a piece of garbage for each of its lines.
#[test]
fn a_file_that_is_one_list_is_read_entry_by_entry() {
    let printed = |text: &str| printed_bytes(text.as_bytes(), FallbackCharset::default());
    for text in [
        "[{\"a\":\"]}\\\"{\"},{\"b\":[{\"c\":1}]}]",
        " [\n  {\n    \"a\": \"]}\\\"{\"\n  },\n  {\n    \"b\": [\n      {\"c\": 1}\n    ]\n  }\n]\n",
        "\u{feff}[{\"a\":\"]}\\\"{\"}]\n[{\"b\":[{\"c\":1}]}]",
    ] {
        let lines = printed(text);
        assert_eq!(lines.len(), 2, "{text}: {lines:?}");
        assert!(lines[0].contains("\"a\":\"]}\\\"{\""), "{}", lines[0]);
        assert!(lines[1].contains("\"b[].c\":[\"1\"]"), "{}", lines[1]);
    }
    assert!(printed("[]").is_empty() && printed("[ \n ]\n").is_empty());
    // Each of these entries is bad, and those beside it are kept.
    for (entry, code) in [
        ("1", "garbage"),
        ("\"text\"", "garbage"),
        ("[{\"n\":1}]", "garbage"),
        ("{\"n\":\"open,\n \"m\":2}", "bad_json"),
        ("{\"n\":\"\\ud800\"}", "bad_json"),
        ("{\"n\":1,\"n\":2}", "duplicate"),
        ("{\"n\":1, ", "bad_json"),
        ("{\"n\":[1}", "bad_json"),
    ] {
        let lines = printed(&format!("[{{\"x\":1}},{entry},{{\"y\":2}},{{\"z\":3}}]"));
        let (first, last) = (&lines[0], lines.last().unwrap());
        assert!(first.contains("\"x\":\"1\"") && last.contains("\"z\":\"3\""), "{entry}: {lines:?}");
        assert!(lines.iter().any(|l| l.contains("\"y\":\"2\"")), "{entry}: {lines:?}");
        assert_eq!(lines.len(), 4, "{entry}: {lines:?}");
        assert!(lines[1].contains(&format!("\"code\":\"{code}\"")), "{entry}: {}", lines[1]);
    }
}

// Each brace of a list that never ends was searched to the end of the list: four seconds for 80 kB.
#[test]
fn broken_entries_of_a_list_cost_as_much_as_they_are_long() {
    let printed = |text: &str| printed_bytes(text.as_bytes(), FallbackCharset::default());
    let braces = printed(&format!("[{}\n{{\"a\":1}}]", "{".repeat(1_000_000)));
    assert!(braces.len() <= 17 && braces.last().unwrap().contains("\"a\":\"1\""), "{}", braces.len());
    // Entries that lack their end, in a file that is longer than the search for it: each is a piece by itself.
    let open = "{\"a\":\"bbbbbbbb\"\n".repeat(10_000);
    let lines = printed(&format!("[{open},{{\"z\":1}}]"));
    assert_eq!(lines.len(), 10_001);
    assert!(lines[10_000].contains("\"z\":\"1\""), "{}", lines[10_000]);
    // A long entry is an entry still, and of a long one that is broken nothing within is read.
    let long = "x".repeat(3 * BROKEN_ENTRY_BYTES_MAX);
    let lines = printed(&format!("[{{\"a\":\"\u{e9}{long}\",\"b\":[{{\"c\":1}}]}},{{\"y\":2}}]"));
    assert!(lines.len() == 2 && lines[1].contains("\"y\":\"2\""), "{}", lines.len());
    let lines = printed(&format!("[{{\"a\":\"{long}\",\"b\":[{{\"c\":1}},]}},{{\"y\":2}}]"));
    assert!(lines.len() == 2 && lines[0].contains("bad_json") && lines[1].contains("\"y\":\"2\""));
}

#[test]
fn lists_in_lists_and_lists_without_end_are_refused() {
    let printed = |text: &str| printed_bytes(text.as_bytes(), FallbackCharset::default());
    let deep = format!("[{}{}]", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(printed(&deep).len(), 1);
    assert!(printed(&deep)[0].contains("garbage"));
    let open = "[".repeat(10_000);
    assert!(printed(&open).len() == 1 && printed(&open)[0].contains("\"error\""));
    let objects = format!("[{}1{},{{\"b\":1}}]", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    let lines = printed(&objects);
    assert!(
        lines.len() == 2 && lines[0].contains("too_deep") && lines[1].contains("\"b\""),
        "{}",
        lines.len()
    );
    let cut = printed("[{\"a\":1},{\"b\":");
    assert!(cut.len() == 2 && cut[1].contains("truncated"), "{cut:?}");
    let mut decoder = JsonlDecoder::default().with_max_line(64);
    decoder.inspect_head(b"[");
    let long = format!("[{{\"a\":\"{}\"}},{{\"b\":1}}]", "x".repeat(500));
    let next = decoder.next(long.as_bytes(), 0, true, &mut PathValues::default());
    let NextTextMessage::Bad { span, fault } = next else { panic!("{next:?}") };
    assert_eq!((span.len(), fault.code), (64, TextFaultCode::TooLarge));
}

// A file without line ends was read into memory to its end.
#[test]
fn a_line_without_end_goes_in_pieces() {
    let long = format!("{{\"a\":\"{}\"}}\n{{\"b\":1}}", "x".repeat(500));
    let lines = printed(&long);
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        lines[0].contains("\"offset\":0,\"length\":200") && lines[0].contains("too_large"),
        "{}",
        lines[0]
    );
    assert!(lines[1].contains("\"offset\":200,\"length\":200"), "{}", lines[1]);
    assert!(lines[2].contains("garbage"), "{}", lines[2]);
    assert!(lines[3].contains("\"b\":\"1\""), "{}", lines[3]);
}

// A name of half a megabyte, and a hundred thousand values under it, would be fifty gigabytes of paths.
#[test]
fn what_is_nested_too_deep_is_refused() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(64), "]".repeat(64));
    let wide = format!("{{\"a\":[{}1]}}", "1,".repeat(16_384));
    let long = format!("{{\"{}\":1}}", "n".repeat(513));
    let mut leaves = PathValues::default();
    let deepest = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for line in [deep, wide, long, deepest] {
        let next = JsonlDecoder::default().next(line.as_bytes(), 0, true, &mut leaves);
        let NextTextMessage::Bad { fault, .. } = next else { panic!("{next:?}") };
        assert_eq!(fault.code, TextFaultCode::TooDeep, "{fault}");
    }
    let just = format!("{{\"a\":{}1{}}}", "[".repeat(63), "]".repeat(63));
    assert!(matches!(
        JsonlDecoder::default().next(just.as_bytes(), 0, true, &mut leaves),
        NextTextMessage::Message(_)
    ));
}

#[test]
fn samples_are_what_the_twin_reads() {
    for sample in [JsonlSampleFormat::Ninjs, JsonlSampleFormat::Slack, JsonlSampleFormat::Symphony] {
        let lines = sample_lines(sample, 50, 3);
        agree(JsonlDecoder::default(), &lines).unwrap();
        let none = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_whitespace);
        assert_eq!(check::accounted(&mut JsonlDecoder::default(), none, &lines).unwrap().len(), 50);
    }
}

#[test]
fn a_cut_is_behind_a_line() {
    for (buf, cut) in [("", 0), ("{\"a\":1}", 0), ("{}\n", 3), ("{}\n{}\n{", 6)] {
        assert_eq!(JsonlDecoder::cut(buf.as_bytes()), cut, "{buf}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn any_text_near_json_agrees_with_the_twin(
        pick in any::<u8>(),
        parts in prop::collection::vec(prop::sample::select(&[
            "{", "}", "[", "]", ":", ",", "\"a\"", "\"b.c\"", "1", "-2.5e3", "null", "true", "\n", "\r\n", " ", "{\"a\":1}",
            "[[", "],[", "\"\\u00e9\"", "\"\\ud83d\\ude80\"", "\"\\ud83d\"", "\u{feff}", "é", "{\"a\":[{\"b\":1},{\"b\":[]}]}\n", "\\",
        ][..]), 0..24),
    ) {
        let mut data = vec![pick];
        data.extend(parts.concat().bytes());
        any_bytes(&data);
    }
}
