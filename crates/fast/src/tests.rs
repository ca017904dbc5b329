mod framing;

use super::compile::compile;
use super::{
    Decoder, FieldValue, JsonDecodeOptions, MessageFaultCode, Projection, StreamFraming, TemplateFile,
    Templates, decode_json,
};
use crate::twin::check::{FuzzChoices, compare, from_bytes, nodes, template_file};
use crate::twin::naive;
use proptest::prelude::*;
use std::sync::Arc;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// The engine once read what the specification does not say, or said another error; any difference is one.
    #[test]
    fn the_engine_is_the_specification(bytes in prop::collection::vec(any::<u8>(), 0..700)) {
        from_bytes(&bytes);
    }
}

/// Bits of a presence map continue after the ninth byte, where a word is full.
#[test]
fn presence_maps_of_any_length() {
    let fields: String =
        (0..150).map(|n| format!("<uInt32 name=\"F{n}\"><copy value=\"{n}\"/></uInt32>")).collect();
    let xml = format!("<templates><template name=\"T\" id=\"1\">{fields}</template></templates>");
    let templates = Templates::load(&[TemplateFile { name: "t", content: xml.as_bytes() }]).unwrap();
    let templates = Arc::new(templates);
    for bytes in [1usize, 8, 9, 10, 18, 19, 21, 22, 23] {
        for fill in [0x00, 0x55, 0x7f, 0x01] {
            let mut message = vec![fill; bytes];
            message[0] |= 0x40;
            message[bytes - 1] |= 0x80;
            message.extend([0x81; 200]);
            let twice = [&message[..], &message[..]];
            compare(&templates, twice.into_iter(), false, |_| false);
            compare(&templates, twice.into_iter(), true, |_| true);
        }
    }
}

fn root(path: &str) -> std::path::PathBuf {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/fast")).join(path)
}

fn templates(path: &str) -> Arc<Templates> {
    let content = std::fs::read(root(path)).unwrap();
    Arc::new(Templates::load(&[TemplateFile { name: path, content: &content }]).unwrap())
}

/// The examples of the specification, by the engine and by the twin, value for value and error for error.
#[test]
fn the_examples_of_the_specification() {
    assert_eq!(vectors("appendix3.json"), (62, 0));
}

/// Examples for all sections of the specification: every operator with every type from every state, and every error.
/// Somebody who had not seen the decoder wrote them from the text, and found passages that its author and its twin
/// had both read otherwise.
#[test]
fn every_section_of_the_specification() {
    assert_eq!(vectors("spec.json"), (488, 99));
}

/// Runs the vectors of a file; how many have messages, and how many a template file with an error.
fn vectors(file: &str) -> (usize, usize) {
    let text = std::fs::read(root(file)).unwrap();
    let all: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let all = all["vectors"].as_array().unwrap();
    let (wrong, right): (Vec<_>, Vec<_>) = all.iter().partition(|vector| vector["static"].is_string());
    wrong.iter().for_each(|vector| wrong_template(vector));
    right.iter().for_each(|vector| messages_of(vector));
    (right.len(), wrong.len())
}

/// A vector's template files, the first by the name 0.
fn files(vector: &serde_json::Value) -> Result<Templates, super::template::TemplateError> {
    let more = vector["more_templates"].as_array().into_iter().flatten();
    let contents: Vec<&str> =
        [&vector["template"]].into_iter().chain(more).map(|t| t.as_str().unwrap()).collect();
    let names: Vec<String> = (0..contents.len()).map(|n| n.to_string()).collect();
    let sources =
        names.iter().zip(contents).map(|(name, text)| TemplateFile { name, content: text.as_bytes() });
    Templates::load(&sources.collect::<Vec<_>>())
}

fn wrong_template(vector: &serde_json::Value) {
    let id = &vector["id"];
    let Err(error) = files(vector) else { panic!("{id} loads") };
    assert_eq!(format!("{:?}", error.code), vector["static"], "{id}: {error}");
    // The second file is the first of the others.
    let file = vector["in_file"].as_u64().map_or(0, |n| n + 1);
    assert_eq!(error.file, file.to_string(), "{id}: {error}");
    if let Some(line) = vector["line"].as_u64() {
        assert_eq!(error.line as u64, line, "{id}: {error}");
    }
}

fn messages_of(vector: &serde_json::Value) {
    let id = &vector["id"];
    let templates = Arc::new(files(vector).unwrap_or_else(|error| panic!("{id}: {error}")));
    let strict = vector["strict"] == true;
    let messages = vector["messages"].as_array().unwrap();
    let lines: Vec<&str> = messages.iter().map(|m| m["hex"].as_str().unwrap()).collect();
    let bytes: Vec<Vec<u8>> = lines.iter().map(|line| unhex(line)).collect();
    compare(&templates, bytes.iter().map(Vec::as_slice), strict, |_| false);
    let mut decoder = Decoder::new(templates).with_strict(strict);
    let mut out = Vec::new();
    let options = JsonDecodeOptions { framing: StreamFraming::HexLines, ..JsonDecodeOptions::default() };
    decode_json(&mut lines.join("\n").as_bytes(), "v", &mut decoder, options, &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out.lines().count(), messages.len(), "{id}");
    for (n, (line, message)) in out.lines().zip(messages).enumerate() {
        let found: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&found["n"], &found["offset"]), (&n.into(), &n.into()));
        assert_eq!(found["fields"], message["expect"], "{id} {line}");
        assert_eq!(found["error"]["code"], message["error"], "{id} {line}");
        assert_eq!(found["rest_bytes"], message["rest"], "{id} {line}");
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap()).collect()
}

fn json(
    path: &str,
    templates: Arc<Templates>,
    options: JsonDecodeOptions,
    strict: bool,
) -> Vec<serde_json::Value> {
    let bytes = std::fs::read(root(path)).unwrap();
    let mut out = Vec::new();
    let mut decoder = Decoder::new(templates).with_strict(strict);
    let summary = decode_json(&mut &bytes[..], path, &mut decoder, options, &mut out).unwrap();
    let lines: Vec<serde_json::Value> = out
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect();
    assert_eq!(summary.messages + summary.errors, lines.len() as u64);
    lines
}

/// Real messages of an exchange; only decoding shows where they end.
#[test]
fn real_messages_back_to_back() {
    let options = JsonDecodeOptions { framing: StreamFraming::Moex, ..JsonDecodeOptions::default() };
    let lines = json("moex/olr_5020.dat", templates("moex/test.xml"), options, true);
    assert_eq!(lines.len(), 5020);
    assert!(lines.iter().all(|line| line["type"]["id"] == 2521 && line["rest_bytes"].is_null()));
    let first = &lines[0]["fields"]["GroupMDEntries"][0];
    assert_eq!(
        (&first["Symbol"], &first["MDEntryPx"]),
        (&"AFLT".into(), &serde_json::json!({"mantissa": 7478, "exponent": -2}))
    );
}

/// Messages with their length before each.
pub(super) fn framed(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut at, mut messages) = (0, Vec::new());
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        messages.push(&bytes[at + 4..at + 4 + length]);
        at += 4 + length;
    }
    messages
}

/// The messages of a benchmark, framed; each is what the twin says, alone and in what carries over from the others.
#[test]
fn framed_messages_and_their_dictionaries() {
    let templates = templates("mfast/example.xml");
    let bytes = std::fs::read(root("mfast/complex30000.frames")).unwrap();
    let mut messages = framed(&bytes);
    assert_eq!(messages.len(), 30_001);
    // The last one is of another template.
    messages.drain(1_000..30_000);
    compare(&templates, messages.iter().copied(), true, |_| false);
    compare(&templates, messages.iter().copied(), true, |n| n % 3 == 0);
    // Cut, and with a bit of each turned: the same error or the same values, and the dictionaries unharmed.
    let cut = messages.iter().enumerate().map(|(n, m)| &m[..n * 7 % (m.len() + 1)]);
    compare(&templates, cut, false, |_| false);
    let turned: Vec<Vec<u8>> = (messages.iter().enumerate())
        .flat_map(|(n, message)| {
            let mut other = message.to_vec();
            other[n * 13 % message.len()] ^= 1 << (n % 8);
            [other, message.to_vec()]
        })
        .collect();
    compare(&templates, turned.iter().map(Vec::as_slice), false, |_| false);
    compare(&templates, turned.iter().map(Vec::as_slice), true, |_| false);
    let lines = json("mfast/complex30000.frames", templates, JsonDecodeOptions::default(), true);
    assert!(lines.iter().all(|line| line["error"].is_null() && line["rest_bytes"].is_null()));
}

pub(super) fn made(body: &str) -> Arc<Templates> {
    let text = format!("<templates><template name=\"T\" id=\"1\">{body}</template></templates>");
    Arc::new(Templates::load(&[TemplateFile { name: "t", content: text.as_bytes() }]).unwrap())
}

/// Small messages that would become large ones were made to fill memory.
#[test]
fn what_grows_without_end_is_refused() {
    let code = |body: &str, message: &[u8]| {
        let templates = made(body);
        compare(&templates, [message].into_iter(), false, |_| false);
        Decoder::new(templates).decode(message).map(drop).unwrap_err().code
    };
    let nothing = "<sequence name=\"S\"><uInt32 name=\"A\"><constant value=\"1\"/></uInt32></sequence>";
    assert_eq!(code(nothing, b"\xc0\x81\x0f\x7f\x7f\x7f\xff"), MessageFaultCode::TooLarge);
    let within = format!(
        "<sequence name=\"S2\"><length><constant value=\"4000\"/></length>{}</sequence>",
        "<sequence name=\"S\"><length><constant value=\"4000\"/></length><uInt32 name=\"A\"><constant value=\"1\"/></uInt32></sequence>"
    );
    assert_eq!(code(&within, b"\xc0\x81"), MessageFaultCode::TooLarge);
    let growing = "<sequence name=\"S\"><string name=\"A\"><delta/></string></sequence>";
    let mut message = b"\xc0\x81\x01\x00\x80".to_vec();
    for _ in 0..(1 << 14) {
        message.extend_from_slice(b"\x80aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xe1");
    }
    assert_eq!(code(growing, &message), MessageFaultCode::TooLarge);
    assert_eq!(code("<templateRef/>", &b"\xc0\x81".repeat(40)), MessageFaultCode::TooLarge);
    // Long texts by one engine, short ones by the other, together more than is accepted.
    let both = made(
        "<sequence name=\"S\"><string name=\"U\" charset=\"unicode\"><copy/></string><string name=\"A\"><copy/></string></sequence>",
    );
    let mut message = b"\xc0\x81\x81\xe0\x04\x73\x91".to_vec();
    message.extend([b'x'; 80_273]);
    message.extend_from_slice(b"abcdefg\xe8");
    let mut again = b"\xc0\x81\x01\xd1".to_vec();
    again.extend([0x80; 209]);
    compare(&both, [&message[..], &again].into_iter(), false, |_| false);
    // A constant takes no byte, and a field that is left out takes time all the same.
    let constants = |bytes: usize| {
        let value = "x".repeat(bytes);
        made(&format!(
            "<sequence name=\"S\"><string name=\"C\"><constant value=\"{value}\"/></string><uInt32 name=\"A\"/></sequence>"
        ))
    };
    let elements = |count: usize, byte: u8| {
        let mut message = vec![0xc0, 0x81];
        let groups = [(count >> 14) as u8, (count >> 7) as u8 & 0x7f, 0x80 | (count & 0x7f) as u8];
        message.extend(groups.iter().skip_while(|group| **group == 0));
        message.extend(vec![byte; count]);
        message
    };
    for (bytes, count) in [(8192, 2048), (8192, 2049), (1000, 16_777), (1000, 16_778), (100, 20_000)] {
        let (templates, message) = (constants(bytes), elements(count, 0x81));
        compare(&templates, [&message[..]].into_iter(), false, |_| false);
        let mut decoder = Decoder::new(templates.clone());
        let found = decoder.decode(&message);
        assert_eq!(found.is_ok(), bytes * count <= 16 << 20, "{bytes} {count}");
        if let Ok(found) = found {
            super::Encoder::new(templates).reencode(&found, &mut Vec::new()).unwrap();
        }
    }
    let fields: String = (0..2_000)
        .map(|n| format!("<uInt32 name=\"F{n}\" presence=\"optional\"><default/></uInt32>"))
        .collect();
    let wide = made(&format!("<sequence name=\"S\">{fields}</sequence>"));
    let mut decoder = Decoder::new(wide);
    assert_eq!(decoder.decode(&elements(65_000, 0x80)).unwrap_err().code, MessageFaultCode::TooLarge);
    assert!(decoder.decode(&elements(15_000, 0x80)).is_ok());
    // Nothing is kept of what was refused, and what is kept does not grow with the day.
    let initial = "an initial value stays where it is";
    let templates = made(&format!(
        "<string name=\"A\"><copy/></string><string name=\"B\"><copy value=\"{initial}\"/></string>"
    ));
    let mut decoder = Decoder::new(templates);
    for n in 0..20_000u32 {
        let mut message = b"\xe0\x81".to_vec();
        message.extend(format!("a text that differs {n}").into_bytes());
        *message.last_mut().unwrap() |= 0x80;
        let found = decoder.decode(&message).unwrap();
        assert_eq!(found.get("A"), Some(FieldValue::Text(format!("a text that differs {n}").as_bytes())));
        assert_eq!(found.get("B"), Some(FieldValue::Text(initial.as_bytes())));
    }
    assert!(decoder.arena_bytes() < 1 << 20);
}

/// Texts that dictionaries have were kept without a bound, and beyond 4 GiB one was confused with another.
#[test]
fn texts_in_dictionaries_are_bounded() {
    let field = |name: &str, rest: &str| format!("<string name=\"{name}\"><copy{rest}/></string>");
    let body = [
        field("A", ""),
        field("B", " value=\"an initial value that is kept for nothing\""),
        field("C", ""),
        "<byteVector name=\"D\" presence=\"optional\"><delta/></byteVector>".to_owned(),
    ];
    let templates = made(&body.concat());
    let mut slow = naive::Decoder::new(templates.clone(), false).with_kept_max(100);
    let mut engines =
        [Decoder::new(templates.clone()), Decoder::new(templates).with_exact()].map(|d| d.with_kept_max(100));
    let text = |n: usize| -> Vec<u8> { (0..n).map(|i| if i + 1 == n { 0xe1 } else { b'a' }).collect() };
    // Which values are in the message, and of how many bytes; whether they fit.
    for (map, [a, c], fits) in [
        (0xf0, [40, 0], false),
        (0xe8, [40, 60], true),
        (0xe8, [40, 61], false),
        (0x80, [0, 0], true),
        (0xe0, [41, 0], false),
        (0xe0, [8, 0], true),
        (0xc8, [0, 100], true),
        (0xc8, [0, 101], false),
        (0x80, [0, 0], true),
    ] {
        let mut message = vec![map];
        message.extend([0x81].iter().filter(|_| map & 0x40 != 0));
        message.extend(text(a));
        message.extend(text(c));
        message.push(0x80);
        let found = slow.decode(&message);
        let code = found.as_ref().err().map(|fault| fault.code);
        assert_eq!(found.is_ok(), fits, "{map:02x} {a} {c}: {code:?}");
        assert!(
            fits || matches!(code, Some(MessageFaultCode::TooLarge | MessageFaultCode::D5)),
            "{map:02x} {a} {c}: {code:?}"
        );
        for engine in &mut engines {
            match (&found, engine.decode(&message)) {
                (Ok(slow), Ok(fast)) => assert_eq!(slow.nodes, nodes(&fast)),
                (Err(slow), fast) => assert_eq!(Some(slow), fast.err().as_ref()),
                (Ok(_), Err(fault)) => panic!("{map:02x} {a} {c}: {fault}"),
            }
        }
    }
}

/// As many bytes as wanted, the same for the same seed.
pub(super) fn some_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut r = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut byte = || {
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        (r >> 24) as u8
    };
    (0..count).map(|_| byte()).collect()
}

/// The engine once met so few good messages in its property test that it might have been wrong in any of them.
#[test]
fn made_messages_are_good_often_enough() {
    let mut good = 0;
    for seed in 1u64..60 {
        good += from_bytes(&some_bytes(seed, 600));
    }
    assert!(good > 100, "{good}");
}

/// The weight of a block decides whether it is too large: the engines once counted constants otherwise than twin and
/// encoder.
#[test]
fn blocks_weigh_the_same_for_all() {
    for seed in 1u64..200 {
        let bytes = some_bytes(seed, 400);
        let xml = template_file(&mut FuzzChoices::new(&bytes));
        let templates = Templates::load(&[TemplateFile { name: "t", content: xml.as_bytes() }]).unwrap();
        let projection = Projection::new(Arc::new(templates.clone()));
        for program in [compile(&templates, None), compile(&templates, Some(&projection))] {
            for (template, compiled) in templates.list().iter().zip(&program.templates) {
                let block = program.blocks[compiled.block as usize];
                let found = ((block.to - block.from) as usize, block.text_bytes as usize);
                assert_eq!(found, naive::weight(&templates, &template.body), "{xml}");
            }
        }
    }
}

/// Constants have no byte and no op; they come with what is asked for all the same, and only then.
#[test]
fn fields_are_asked_for_by_reference() {
    let body = "<uInt32 name=\"A\"><constant value=\"7\"/></uInt32><group name=\"G\" presence=\"optional\">\
        <string name=\"B\"><constant value=\"a text of more than eight\"/></string><uInt32 name=\"C\"/></group>\
        <decimal name=\"D\"/>";
    let templates = made(body);
    let mut decoder = Decoder::new(templates.clone());
    let [a, b, c, d] = ["A", "G/B", "G/C", "D"].map(|path| decoder.field("T", path).unwrap());
    assert!(decoder.field("T", "B").is_none() && decoder.field("U", "A").is_none());
    let px = FieldValue::Decimal { mantissa: 5, exponent: -1 };
    let message = decoder.decode(b"\xc0\x81\xff\x85").unwrap();
    assert_eq!([a, b, c, d].map(|f| message.field(f)), [Some(FieldValue::UInt(7)), None, None, Some(px)]);
    let message = decoder.decode(b"\xa0\x83\xff\x85").unwrap();
    assert_eq!(message.field(b), Some(FieldValue::Text(b"a text of more than eight")));
    assert_eq!((message.field(c), message.field(d)), (Some(FieldValue::UInt(3)), Some(px)));
    let projection = Projection::new(templates.clone()).field("T", "G/B", 3).unwrap();
    let mut decoder = Decoder::with_projection(projection.clone());
    let seen =
        |message: super::Message<'_>| message.tagged_tokens().map(|c| format!("{c:?}")).collect::<Vec<_>>();
    assert!(seen(decoder.decode(b"\xc0\x81\xff\x85").unwrap()).is_empty());
    let cells = seen(decoder.decode(b"\xa0\x83\xff\x85").unwrap());
    let text = FieldValue::Text(b"a text of more than eight");
    assert_eq!(cells, ["Group(65535)".to_owned(), format!("Value(3, {text:?})"), "End".to_owned()]);
    assert_eq!(projection.paths("T").unwrap(), ["A", "G", "G/B", "G/C", "D"]);
    for (template, path, says) in
        [("T", "G/A", "template T has no field G/A"), ("X", "A", "no template is called X")]
    {
        assert_eq!(projection.clone().field(template, path, 1).unwrap_err().to_string(), says);
    }
}

/// A field was not found after a length of the same name, and a length was found that no message delivers.
#[test]
fn lengths_hide_no_field() {
    let sequence = |length: &str| {
        format!("<sequence name=\"S{length}\"><length name=\"{length}\"/><uInt32 name=\"A\"/></sequence>")
    };
    let mut decoder = Decoder::new(made(&format!("{}<uInt32 name=\"N\"/>{}", sequence("N"), sequence("M"))));
    let field = decoder.field("T", "N").unwrap();
    assert_eq!(decoder.field("T", "M"), None);
    assert_eq!(decoder.decode(b"\xc0\x81\x81\x85\x87\x80").unwrap().field(field), Some(FieldValue::UInt(7)));
}

/// Two versions of a template may have one name: a field that one of them lacks could not be subscribed to.
#[test]
fn a_field_of_one_of_two_templates_of_a_name_can_be_had() {
    let of = |id: u32, fields: &str| format!("<template name=\"T\" id=\"{id}\">{fields}</template>");
    let both = [of(1, "<uInt32 name=\"A\"/>"), of(2, "<uInt32 name=\"A\"/><uInt32 name=\"B\"/>")].concat();
    let content = format!("<templates>{both}</templates>");
    let source = TemplateFile { name: "t.xml", content: content.as_bytes() };
    let templates = Arc::new(Templates::load(&[source]).unwrap());
    assert!(Projection::new(templates.clone()).field("T", "C", 1).is_err());
    let mut decoder = Decoder::with_projection(Projection::new(templates).field("T", "B", 1).unwrap());
    let mut cells =
        |bytes| decoder.decode(bytes).unwrap().tagged_tokens().map(|c| format!("{c:?}")).collect::<Vec<_>>();
    assert_eq!(cells(b"\xc0\x81\x85"), Vec::<String>::new());
    assert_eq!(cells(b"\xc0\x82\x85\x86"), ["Value(1, UInt(6))"]);
}

/// A visitor of a message that turns out to be bad would have acted on what nobody sent.
#[test]
fn a_visitor_sees_whole_messages_alone() {
    #[derive(Default)]
    struct Sum(Vec<(u16, u64)>, usize, usize);
    impl super::MessageVisitor for Sum {
        fn value(&mut self, tag: u16, value: super::DecodedValue<'_>) {
            if let Some(value) = value.uint() {
                self.0.push((tag, value));
            }
        }
        fn element(&mut self) {
            self.1 += 1;
        }
        fn end(&mut self) {
            self.2 += 1;
        }
    }
    let templates = made("<sequence name=\"S\"><uInt32 name=\"A\"/></sequence><uInt32 name=\"B\"/>");
    let projection = Projection::new(templates).template("T", 1).unwrap().field("T", "B", 2).unwrap();
    let (mut decoder, mut sum) = (Decoder::with_projection(projection), Sum::default());
    assert!(decoder.decode_with(b"\xc0\x81\x82\x85\x86", &mut sum).is_err());
    assert_eq!(sum.0, []);
    assert_eq!(decoder.decode_with(b"\xc0\x81\x82\x85\x86\x87\x88", &mut sum).unwrap(), (0, 6));
    assert_eq!((sum.0, sum.1, sum.2), (vec![(1, 5), (1, 6), (2, 7)], 2, 3));
}

/// An exponent of 300 as the initial value came out as 44: it was cut to its lowest bits where a difference follows.
#[test]
fn exponents_that_no_decimal_may_have_are_refused_wherever_they_come_from() {
    for exponent in [63, 64, 100, 300, -63, -64, -200, i64::from(i32::MAX), i64::from(i32::MIN)] {
        for operator in ["default", "copy", "constant", "delta", "increment"] {
            for mantissa in ["<delta/>", "", "<copy value=\"5\"/>"] {
                let templates = made(&format!(
                    "<decimal name=\"A\"><exponent><{operator} value=\"{exponent}\"/></exponent><mantissa>{mantissa}</mantissa></decimal>"
                ));
                let message = b"\xc0\x81\x80\x85";
                compare(&templates, [&message[..], message, &message[..3]].into_iter(), true, |n| n == 1);
                let found = Decoder::new(templates).decode(message).map(drop).map_err(|fault| fault.code);
                assert_eq!(
                    found,
                    if exponent.abs() > 63 { Err(MessageFaultCode::R1) } else { Ok(()) },
                    "{operator} {exponent}"
                );
            }
        }
    }
}

/// An exponent, or a length, that was left out with its bit once took the mantissa after it, or the sequence, for the
/// next field: the engine passes over such fields many at a time.
#[test]
fn what_is_left_out_takes_with_it_what_it_is_for() {
    let left_out = "<decimal name=\"D\" presence=\"optional\"><exponent><default/></exponent><mantissa>OPERATOR</mantissa>\
        </decimal><uInt32 name=\"A\" presence=\"optional\"><default/></uInt32><string name=\"B\" presence=\"optional\">\
        <default/></string><sequence name=\"S\" presence=\"optional\"><length><default/></length><uInt32 name=\"C\"/>\
        </sequence><uInt32 name=\"E\" presence=\"optional\"><default/></uInt32><uInt32 name=\"F\"/>";
    for operator in ["<default value=\"77\"/>", "<delta/>", "<copy value=\"5\"/>", ""] {
        let templates = made(&left_out.replace("OPERATOR", operator));
        for map in 0..64u8 {
            let mut message = vec![0xc0 | map, 0x81];
            message.extend([0x82, 0x83, 0x84, 0x82, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a]);
            compare(&templates, [&message[..], &message[..]].into_iter(), true, |_| false);
            message[0] = 0x40 | map;
            message.insert(1, 0xc0);
            compare(&templates, [&message[..], &message[..]].into_iter(), true, |_| true);
        }
    }
}

/// A field that nobody subscribed to is passed over without its value; what is wrong with it must be found all the same.
#[test]
fn what_is_passed_over_has_the_same_faults() {
    const EDGES: [u8; 10] = [0x00, 0x01, 0x3f, 0x40, 0x7f, 0x80, 0x81, 0xbf, 0xc0, 0xff];
    let messages: Vec<Vec<u8>> = EDGES
        .iter()
        .flat_map(|first| EDGES.iter().map(move |second| (*first, *second)))
        .flat_map(|(first, second)| (0..=9).map(move |more| (first, second, more)))
        .map(|(first, second, more)| {
            let mut message = vec![0xe0, 0x81, first, second];
            message.extend(std::iter::repeat_n(second & 0x7f, more));
            message.extend([0xd5, 0x81, 0x82, 0x83]);
            message
        })
        .collect();
    for kind in ["int32", "uInt32", "int64", "uInt64", "string", "decimal"] {
        for (presence, operator) in ["", "<copy/>", "<default value=\"5\"/>", "<delta/>", "<increment/>"]
            .into_iter()
            .flat_map(|operator| ["", " presence=\"optional\""].map(|p| (p, operator)))
            .filter(|(_, operator)| !matches!(kind, "string" | "decimal") || *operator != "<increment/>")
        {
            // The check's projection has the second field of these two.
            let body = format!("<{kind} name=\"B\"{presence}>{operator}</{kind}><uInt32 name=\"C\"/>");
            let templates = made(&body);
            for strict in [false, true] {
                compare(&templates, messages.iter().map(Vec::as_slice), strict, |n| n % 3 == 0);
            }
        }
    }
}

/// Texts with their length before them are read eight bytes at a time. A text that extends beyond the message, or a
/// longer one, must not be filled from the bytes that happen to be there.
#[test]
fn texts_of_any_length_end_in_the_message() {
    let mut messages = Vec::new();
    for length in (0..=20).chain([126, 127, 128, 129, 300, 40_000]) {
        let mut message = vec![0xf8, 0x81];
        let groups = [length >> 14, length >> 7 & 0x7f, length & 0x7f].map(|group: usize| group as u8);
        let first = groups.iter().position(|group| *group > 0).unwrap_or(2);
        message.extend(&groups[first..]);
        *message.last_mut().unwrap() |= 0x80;
        // As many bytes, one less and one more, and what is after them.
        for has in [length.saturating_sub(1), length, length + 1] {
            let mut whole = message.clone();
            whole.extend((0..has).map(|n| 0x40 | n as u8));
            messages.push(whole.clone());
            whole.extend(b"\x83\x61\x62\x63\x84\x88");
            messages.push(whole.clone());
            whole.extend([0x82; 60]);
            messages.push(whole);
        }
        // Longer than its length has to be.
        message.insert(2, 0x00);
        message.extend([0xc5; 300]);
        messages.push(message);
    }
    messages.push(vec![0x80, 0x82, 0x61, 0x62, 0x88]);
    messages.push([&[0xf8, 0x81][..], &[0x81; 30], &[0x88, 0x01]].concat());
    for kind in ["byteVector", "string charset=\"unicode\""] {
        let end = kind.split(' ').next().unwrap();
        for (presence, operator) in [
            "",
            "<copy/>",
            "<copy value=\"000102030405060708\"/>",
            "<default value=\"35\"/>",
            "<delta/>",
            "<tail/>",
        ]
        .into_iter()
        .flat_map(|operator| ["", " presence=\"optional\""].map(|p| (p, operator)))
        {
            // The check's projection has not the first, and of the others some.
            let more: String =
                (0..40).map(|n| format!("<{kind} name=\"M{n}\"{presence}>{operator}</{end}>")).collect();
            for more in ["", &more] {
                let templates = made(&format!(
                    "<{kind} name=\"B\"{presence}>{operator}</{end}><{kind} name=\"C\"{presence}/><uInt32 name=\"D\"/>{more}"
                ));
                for strict in [false, true] {
                    compare(&templates, messages.iter().map(Vec::as_slice), strict, |n| n % 3 == 0);
                }
            }
        }
    }
}
