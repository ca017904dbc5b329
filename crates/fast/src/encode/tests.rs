use super::*;
use crate::record::FieldValue;
use crate::tests::{self, framed, some_bytes};
use crate::twin::encode_check::{check_reencoding, from_bytes};
use crate::{Decoder, TemplateFile};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Encoded messages decode to the same, by the engine and by the slow twin, over messages that carry
    /// dictionaries.
    #[test]
    fn what_is_told_is_read(bytes in prop::collection::vec(any::<u8>(), 0..900)) {
        from_bytes(&bytes);
    }
}

/// A property that holds for no message says nothing.
#[test]
fn made_messages_are_told_often_enough() {
    let mut good = 0;
    for seed in 1u64..60 {
        good += from_bytes(&some_bytes(seed, 900));
    }
    assert!(good > 300, "{good}");
}

fn load(content: &[u8]) -> Arc<Templates> {
    Arc::new(Templates::load(&[TemplateFile { name: "t", content }]).unwrap())
}

fn made(body: &str) -> Encoder {
    Encoder::new(tests::made(body))
}

/// Messages with four bytes before each; only decoding shows where they end.
fn back_to_back<'b>(templates: &Arc<Templates>, bytes: &'b [u8]) -> Vec<&'b [u8]> {
    let (mut decoder, mut at, mut messages) = (Decoder::new(templates.clone()), 0, Vec::new());
    while at < bytes.len() {
        let used = decoder.decode(&bytes[at + 4..]).unwrap().bytes;
        messages.push(&bytes[at + 4..at + 4 + used]);
        at += 4 + used;
    }
    messages
}

/// Encoded again, messages of venues have the same values in no more bytes.
fn samples(of: &str, templates: &Path, messages: &Path, count: usize, resets: bool) {
    let templates = load(&std::fs::read(templates).unwrap());
    let bytes = std::fs::read(messages).unwrap();
    let messages = if of == "moex" { back_to_back(&templates, &bytes) } else { framed(&bytes) };
    let (good, before, after) = check_reencoding(&templates, messages.iter().copied(), |_| resets);
    assert_eq!(good, count, "{of}");
    assert!(after <= before, "{of}: {before} bytes, {after} again");
    eprintln!("{of}: {good} messages, {before} bytes, {after} again");
}

#[test]
fn messages_of_venues_told_again() {
    let vectors = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/fast"));
    samples(
        "mfast",
        &vectors.join("mfast/example.xml"),
        &vectors.join("mfast/complex30000.frames"),
        30_001,
        false,
    );
    samples("moex", &vectors.join("moex/test.xml"), &vectors.join("moex/olr_5020.dat"), 5020, false);
    let Some(more) = std::env::var_os("UNITAPE_SAMPLES") else {
        eprintln!(
            "not run with the samples that are not in the tree: UNITAPE_SAMPLES does not say where they are"
        );
        return;
    };
    let more = Path::new(&more).join("fast");
    let of = |folder: &str, t: &str, m: &str, n, resets| {
        samples(folder, &more.join(folder).join(t), &more.join(folder).join(m), n, resets);
    };
    of("cme", "templates.xml", "sampleMD_first2000.frames", 2000, true);
    of("mfast_perf", "example.xml", "complex30000.dat", 30_001, false);
    of("moex", "test.xml", "olr_2521.dat", 5020, false);
}

/// The encoder writes the bytes of the specification's own examples, except where these use more bytes than needed or
/// show an error.
#[test]
fn the_examples_of_the_specification() {
    let mut same = 0;
    for file in ["appendix3.json", "spec.json"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/fast");
        let text = std::fs::read(std::path::Path::new(folder).join(file)).unwrap();
        let all: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let all = all["vectors"].as_array().unwrap();
        for vector in all.iter().filter(|v| v["static"].is_null() && v["more_templates"].is_null()) {
            same += count_same_bytes(vector);
        }
    }
    assert!(same >= 580, "{same}");
}

/// How many messages of a vector encode to the same bytes.
fn count_same_bytes(vector: &serde_json::Value) -> usize {
    let templates = load(vector["template"].as_str().unwrap().as_bytes());
    let unhex = |text: &str| -> Vec<u8> {
        (0..text.len() / 2).map(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap()).collect()
    };
    let messages = vector["messages"].as_array().unwrap();
    let bytes: Vec<Vec<u8>> = messages.iter().map(|m| unhex(m["hex"].as_str().unwrap())).collect();
    check_reencoding(&templates, bytes.iter().map(Vec::as_slice), |_| false);
    let (mut decoder, mut encoder) = (Decoder::new(templates.clone()), Encoder::new(templates));
    let mut same = 0;
    for message in &bytes {
        let Ok(found) = decoder.decode(message) else { continue };
        let mut out = Vec::new();
        encoder.reencode(&found, &mut out).unwrap_or_else(|fault| panic!("{}: {fault}", vector["id"]));
        same += usize::from(out == message[..found.bytes]);
    }
    same
}

/// An encoder once wrote nonsense instead of returning an error.
#[test]
fn what_cannot_be_told_is_said() {
    fn check(body: &str, value: FieldValue<'_>, code: MessageFaultCode) {
        let mut encoder = made(body);
        let field = encoder.field(0, "A").unwrap();
        let mut draft = encoder.draft(0);
        draft.set(field, value);
        let mut out = b"before".to_vec();
        let fault = encoder.encode(&draft, &mut out).unwrap_err();
        assert_eq!((fault.code, fault.template.as_str(), fault.field.as_str()), (code, "T", "A"), "{body}");
        assert_eq!(out, b"before");
    }
    let decimal = |mantissa, exponent| FieldValue::Decimal { mantissa, exponent };
    check("<uInt32 name=\"A\"/>", FieldValue::Text(b"1"), MessageFaultCode::D1);
    check("<uInt32 name=\"A\"/>", FieldValue::UInt(1 << 32), MessageFaultCode::R4);
    check("<uInt32 name=\"A\"/>", FieldValue::Int(-1), MessageFaultCode::R4);
    check("<int64 name=\"A\"/>", FieldValue::UInt(1 << 63), MessageFaultCode::R4);
    check("<uInt32 name=\"A\"/>", decimal(5, -1), MessageFaultCode::R5);
    check("<uInt32 name=\"A\"/>", decimal(5, 10), MessageFaultCode::R5);
    check("<uInt32 name=\"A\"><constant value=\"7\"/></uInt32>", FieldValue::UInt(8), MessageFaultCode::D1);
    check("<string name=\"A\"/>", FieldValue::Text("ö".as_bytes()), MessageFaultCode::R3);
    check("<string name=\"A\"/>", FieldValue::Bytes(b"a"), MessageFaultCode::D1);
    check("<byteVector name=\"A\"/>", FieldValue::Text(b"a"), MessageFaultCode::D1);
    check("<string name=\"A\"><tail value=\"abc\"/></string>", FieldValue::Text(b"ab"), MessageFaultCode::D1);
    check(
        "<string name=\"A\" charset=\"unicode\"><delta/></string>",
        FieldValue::Text(b"\xff"),
        MessageFaultCode::R2,
    );
    check("<decimal name=\"A\"/>", decimal(1, 64), MessageFaultCode::R1);
    check("<decimal name=\"A\"/>", FieldValue::UInt(1 << 63), MessageFaultCode::R1);
    let halves = "<exponent><constant value=\"-2\"/></exponent><mantissa><constant value=\"5\"/></mantissa>";
    let split = format!("<decimal name=\"A\">{halves}</decimal>");
    check(&split, decimal(5, -3), MessageFaultCode::D3);
    check(&split, decimal(6, -2), MessageFaultCode::D3);
    check(&split, decimal(i64::MAX, 0), MessageFaultCode::D3);
    // A nought has any exponent, yet not one that no decoder accepts: it was looked for without an end.
    for (operator, exponent) in
        ["constant", "default"].iter().flat_map(|o| [64, 100, 200, -64, -300].map(|e| (o, e)))
    {
        let body =
            format!("<decimal name=\"A\"><exponent><{operator} value=\"{exponent}\"/></exponent></decimal>");
        let mut encoder = made(&body);
        let (field, mut draft, mut out) = (encoder.field(0, "A").unwrap(), encoder.draft(0), Vec::new());
        if *operator == "constant" {
            check(&body, decimal(0, 0), MessageFaultCode::R1);
            check(&body, decimal(1, 0), MessageFaultCode::R1);
        } else {
            draft.set(field, decimal(0, 63));
            encoder.encode(&draft, &mut out).unwrap();
        }
        let fault = encoder.clone().with_neutral(true).encode(&encoder.draft(0), &mut out).unwrap_err();
        assert_eq!((fault.code, fault.field.as_str()), (MessageFaultCode::R1, "A"), "{body}");
    }
    let mut encoder = made("<decimal name=\"A\"><exponent><constant value=\"-63\"/></exponent></decimal>");
    let (field, mut draft, mut out) = (encoder.field(0, "A").unwrap(), encoder.draft(0), Vec::new());
    draft.set(field, decimal(0, 63));
    encoder.encode(&draft, &mut out).unwrap();
    assert_eq!(out, b"\xc0\x81\x80");
    let shared =
        "<uInt32 name=\"B\"><copy key=\"k\"/></uInt32><string name=\"A\"><delta key=\"k\"/></string>";
    let mut encoder = made(shared);
    let mut draft = encoder.draft(0);
    let (a, b) = (encoder.field(0, "A").unwrap(), encoder.field(0, "B").unwrap());
    draft.set(a, FieldValue::Text(b"x"));
    let mut out = Vec::new();
    let fault = encoder.encode(&draft, &mut out).unwrap_err();
    assert_eq!((fault.code, fault.field.as_str()), (MessageFaultCode::Missing, "B"));
    draft.uint(b, 5);
    assert_eq!(encoder.encode(&draft, &mut out).unwrap_err().code, MessageFaultCode::D4);
    // A failed message leaves nothing in the dictionaries.
    assert!(encoder.clone().with_neutral(true).encode(&draft, &mut out).is_err() && out.is_empty());
    let mut other = made("<uInt32 name=\"B\" presence=\"optional\"><copy/></uInt32><uInt32 name=\"A\"/>");
    let (a, b) = (other.field(0, "A").unwrap(), other.field(0, "B").unwrap());
    let mut draft = other.draft(0);
    draft.uint(b, 9);
    assert_eq!(other.encode(&draft, &mut out).unwrap_err().field, "A");
    draft.uint(a, 1);
    other.encode(&draft, &mut out).unwrap();
    assert_eq!(out, b"\xe0\x81\x8a\x81");
    let mut neutral = made("<string name=\"A\"/><decimal name=\"B\"/><uInt32 name=\"C\"><delta/></uInt32>")
        .with_neutral(true);
    out.clear();
    neutral.encode(&neutral.draft(0), &mut out).unwrap();
    assert_eq!(out, b"\xc0\x81\x80\x80\x80\x80");
    let mut missing = made("<templateRef name=\"Nowhere\"/>");
    assert_eq!(missing.encode(&missing.draft(0), &mut out).unwrap_err().code, MessageFaultCode::D8);
    let mut any = made("<templateRef/>");
    assert_eq!(any.encode(&any.draft(0), &mut out).unwrap_err().code, MessageFaultCode::Missing);
}

/// A field of the second of two equal references, or of a message named in a message of its own kind, came back as one of the
/// first.
#[test]
fn what_is_told_again_stays_where_it_was() {
    let optional = "<uInt32 name=\"a\" presence=\"optional\"/>";
    let twice = format!(
        "<templates><template name=\"P\">{optional}<group name=\"G\" presence=\"optional\">{optional}</group></template>\
         <template name=\"Q\" id=\"1\"><templateRef name=\"P\"/><templateRef name=\"P\"/></template>\
         <template name=\"R\" id=\"2\">{optional}<sequence name=\"S\" presence=\"optional\"><templateRef/></sequence></template>\
         <template name=\"E\" id=\"3\">{optional}</template></templates>"
    );
    let templates = load(twice.as_bytes());
    for message in [
        &b"\xc0\x81\x80\x86"[..],
        b"\xc0\x81\x86\x80",
        b"\xd0\x81\x80\x86\x85",
        b"\xe0\x81\x80\x85\x80",
        b"\xc0\x82\x80\x82\xc0\x82\x87\x80",
        b"\xc0\x82\x80\x83\xc0\x83\x80\xc0\x83\x85",
    ] {
        let mut decoder = Decoder::new(templates.clone());
        let found = decoder.decode(message).unwrap();
        let mut out = Vec::new();
        Encoder::new(templates.clone()).reencode(&found, &mut out).unwrap();
        let mut second = Decoder::new(templates.clone());
        let again = second.decode(&out).unwrap();
        assert_eq!(
            format!("{:?}", again.entries),
            format!("{:?}", found.entries),
            "{message:02x?} {out:02x?}"
        );
    }
}

/// Numbers are converted where nothing is lost.
#[test]
fn numbers_of_other_types() {
    let mut encoder = made(
        "<uInt32 name=\"A\"/><decimal name=\"B\"><exponent><constant value=\"-2\"/></exponent></decimal><decimal name=\"C\"/>",
    );
    let field = |path| encoder.field(0, path).unwrap();
    let (a, b, c) = (field("A"), field("B"), field("C"));
    let mut draft = encoder.draft(0);
    draft.set(a, FieldValue::Decimal { mantissa: 12, exponent: 1 });
    draft.set(b, FieldValue::Decimal { mantissa: 12_500, exponent: -3 });
    draft.set(c, FieldValue::Int(-7));
    let mut out = Vec::new();
    encoder.encode(&draft, &mut out).unwrap();
    let mut decoder = Decoder::new(encoder.templates().clone());
    let message = decoder.decode(&out).unwrap();
    assert_eq!(message.get("A"), Some(FieldValue::UInt(120)));
    assert_eq!(message.get("B"), Some(FieldValue::Decimal { mantissa: 1250, exponent: -2 }));
    assert_eq!(message.get("C"), Some(FieldValue::Decimal { mantissa: -7, exponent: 0 }));
}

/// Bits of a presence map beyond a word, and maps that end where no later bit is set.
#[test]
fn presence_maps_of_any_length() {
    let fields: String =
        (0..150).map(|n| format!("<uInt32 name=\"F{n}\"><copy value=\"{n}\"/></uInt32>")).collect();
    let mut encoder = made(&fields);
    let mut decoder = Decoder::new(encoder.templates().clone()).with_strict(true);
    let refs: Vec<FieldRef> = (0..150).map(|n| encoder.field(0, &format!("F{n}")).unwrap()).collect();
    for changed in [0usize, 5, 6, 12, 13, 61, 62, 63, 149] {
        let mut draft = encoder.draft(0);
        for (n, field) in refs.iter().enumerate() {
            draft.uint(*field, if n == changed { 1000 } else { n as u64 });
        }
        let mut out = Vec::new();
        encoder.reset();
        decoder.reset();
        encoder.encode(&draft, &mut out).unwrap();
        assert_eq!(out.len(), (changed + 1) / 7 + 1 + 1 + 2);
        let message = decoder.decode(&out).unwrap();
        assert_eq!(message.get(&format!("F{changed}")), Some(FieldValue::UInt(1000)));
    }
}

/// The encoder refuses a message that a decoder would refuse as too large.
#[test]
fn what_grows_without_end_is_refused() {
    let mut encoder =
        made("<sequence name=\"S\"><uInt32 name=\"A\"><constant value=\"1\"/></uInt32></sequence>");
    let sequence = encoder.sequence(0, "S").unwrap();
    let (mut draft, mut out) = (encoder.draft(0), Vec::new());
    for n in 0..4097 {
        draft.element(sequence);
        if n == 4095 {
            encoder.encode(&draft, &mut out).unwrap();
        }
    }
    assert_eq!(encoder.encode(&draft, &mut out).unwrap_err().code, MessageFaultCode::TooLarge);
    let mut encoder = made("<templateRef/>");
    let mut draft = encoder.draft(0);
    let Some(TemplatePartRef::Reference(reference)) = encoder.part(0, "") else { panic!("a reference") };
    for _ in 0..16 {
        draft.set_reference(reference, 0);
    }
    assert_eq!(encoder.encode(&draft, &mut out).unwrap_err().code, MessageFaultCode::Missing);
    draft.set_reference(reference, 0);
    assert_eq!(encoder.encode(&draft, &mut out).unwrap_err().code, MessageFaultCode::TooLarge);
    let mut encoder = made("<byteVector name=\"A\"/><byteVector name=\"B\"/>");
    let mut draft = encoder.draft(0);
    for path in ["A", "B"] {
        draft.set(encoder.field(0, path).unwrap(), FieldValue::Bytes(&vec![0; (8 << 20) + 1]));
    }
    assert_eq!(encoder.encode(&draft, &mut out).unwrap_err().code, MessageFaultCode::TooLarge);
}
