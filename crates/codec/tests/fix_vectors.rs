//! The FIX decoder against the vectors in `vectors/fix`: cases from the standard, real sessions
//! and market data, the published dictionaries. Where each comes from is in `SOURCES.md` there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use unitape_codec::fix::{
    FieldSeparator, FixDecodeOptions, FixDictionary, FixFramer, FixSummary, decode_json,
};

fn read(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/fix").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn dictionary(names: &[&str]) -> Arc<FixDictionary> {
    let files: Vec<_> = names.iter().map(|name| (*name, read(&format!("dict/{name}")))).collect();
    let files: Vec<_> = files.iter().map(|(name, content)| (*name, &content[..])).collect();
    Arc::new(FixDictionary::parse(&files).expect("a published dictionary"))
}

fn decode(name: &str, input: &[u8], opts: &FixDecodeOptions) -> (FixSummary, String) {
    let mut out = Vec::new();
    let summary = decode_json(&mut &input[..], name, opts, &mut out).expect("memory reads and writes");
    (summary, String::from_utf8(out).expect("JSON is UTF-8"))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

/// How many objects have each type or error code.
fn census(text: &str) -> BTreeMap<String, usize> {
    let mut census = BTreeMap::new();
    for line in lines(text) {
        let key = line["type"].as_str().or(line["error"]["code"].as_str()).expect("type or code");
        *census.entry(key.to_owned()).or_default() += 1;
    }
    census
}

// Each rule of the standard that a decoder has got wrong somewhere.
#[test]
fn golden_cases() {
    let golden = String::from_utf8(read("golden.jsonl")).expect("ASCII");
    let cases = lines(&golden);
    assert!(cases.len() >= 38, "the file has lost cases");
    for case in &cases {
        let input: Vec<u8> = case["input"].as_str().expect("input").chars().map(|c| c as u8).collect();
        let sep = FieldSeparator::parse(case["sep"].as_str().unwrap_or("SOH")).expect("a separator");
        let framer = FixFramer::default().with_sep(sep).with_lenient(case["lenient"] == true);
        let (_, text) = decode("f", &input, &FixDecodeOptions { framer, dictionary: None });
        let mut found = lines(&text);
        for line in &mut found {
            let code = line["error"]["code"].clone();
            let line = line.as_object_mut().expect("an object");
            line.remove("file");
            if let Some(error) = line.get_mut("error") {
                *error = code;
            }
        }
        assert_eq!(Value::Array(found), case["expect"], "{}", case["name"]);
    }
}

// Real sessions, field for field and in order, as another decoder wrote them.
#[test]
fn real_sessions_to_the_letter() {
    for name in ["hffix/fix.4.1.set.1", "hffix/fix.5.0.set.2"] {
        let (summary, text) = decode(name, &read(name), &FixDecodeOptions::default());
        let expected = read(&format!("{name}.expected.jsonl"));
        assert_eq!(text.as_bytes(), expected, "{name}");
        assert_eq!(summary.errors, 0);
    }
}

// A day's head of market data: all of it good, with and without the groups.
#[test]
fn real_market_data() {
    let input = read("jse/jse_fix50_marketdata_head80.fix");
    let (plain, _) = decode("jse", &input, &FixDecodeOptions::default());
    assert_eq!(plain, FixSummary { messages: 11_110, errors: 0, texts: 0, bytes: 1_617_971 });
    let dictionary = dictionary(&["quickfix_FIXT11.xml", "quickfix_FIX50SP2.xml"]);
    let opts = FixDecodeOptions { dictionary: Some(dictionary), ..FixDecodeOptions::default() };
    let (grouped, text) = decode("jse", &input, &opts);
    assert_eq!(grouped, plain);
    for line in lines(&text) {
        let fields = &line["fields"];
        if line["type"] == "X" {
            let entries = fields["268"].as_array().expect("a group");
            assert!(!entries.is_empty() && entries.iter().all(|entry| entry["279"].is_string()), "{line}");
        }
        assert!(fields["10"].as_str().is_some_and(|sum| sum.len() == 3), "{line}");
    }
}

// One broken message in the middle of real data costs that message and no other.
#[test]
fn one_bad_byte_costs_one_message() {
    let good = read("jse/jse_fix50_marketdata_head80.fix");
    // Deterministic places all over the first 200 kB.
    for place in (0..200).map(|n| n * 991 + 13) {
        let mut input = good[..220_000].to_vec();
        let (before, _) = decode("jse", &input, &FixDecodeOptions::default());
        input[place] ^= 0x15;
        let (after, text) = decode("jse", &input, &FixDecodeOptions::default());
        assert!(after.messages + 2 >= before.messages, "byte {place}: {before:?} {after:?}");
        assert!(after.errors > before.errors, "byte {place} went unseen");
        let covered: u64 = lines(&text).iter().filter_map(|line| line["length"].as_u64()).sum();
        assert!(covered < 2_000, "byte {place}: {covered} bytes lost");
    }
}

#[test]
fn lengths_and_sums_that_are_made_up() {
    let input = read("fix2json/100FIX42_nochecksum.dat");
    let (strict, _) = decode("f", &input, &FixDecodeOptions::default());
    assert_eq!((strict.messages, strict.errors), (0, 100));
    let opts = FixDecodeOptions { framer: FixFramer::default().with_lenient(true), dictionary: None };
    let (lenient, text) = decode("f", &input, &opts);
    assert_eq!((lenient.messages, lenient.errors), (100, 0));
    assert_eq!(census(&text).keys().collect::<Vec<_>>(), ["8", "D"]);
}

// Two sides with two parties each, both groups ended by the next delimiter only.
#[test]
fn nested_groups_of_a_cross() {
    let input = read("fix2json/44_new_order_cross.txt");
    let framer = FixFramer::default().with_lenient(true);
    let dictionary = dictionary(&["quickfix_FIX44.xml"]);
    let opts = FixDecodeOptions { framer, dictionary: Some(dictionary) };
    let (summary, text) = decode("f", &input, &opts);
    assert_eq!((summary.messages, summary.errors), (4, 1), "{text}");
    let cross = &lines(&text)[1];
    let sides = cross["fields"]["552"].as_array().expect("a group");
    assert_eq!(sides.len(), 2);
    for side in sides {
        let parties = side["453"].as_array().expect("a group in a group");
        let roles: Vec<_> = parties.iter().map(|party| party["452"].as_str()).collect();
        assert_eq!(roles, [Some("4"), Some("3")]);
    }
}

// Each file must load, even an incomplete one, with as much in it as another reader counted.
#[test]
fn every_dictionary_loads() {
    for (name, held) in [
        (
            "quickfix_FIX40.xml",
            "QuickFIX dictionary FIX 4.0: 138 fields, 27 messages, 0 components, 6 groups",
        ),
        (
            "quickfix_FIX42.xml",
            "QuickFIX dictionary FIX 4.2: 405 fields, 46 messages, 0 components, 38 groups",
        ),
        (
            "quickfix_FIX44.xml",
            "QuickFIX dictionary FIX 4.4: 912 fields, 93 messages, 104 components, 93 groups",
        ),
        (
            "qfj_FIX44_Custom_Test.xml",
            "QuickFIX dictionary FIX 4.4: 919 fields, 90 messages, 24 components, 223 groups",
        ),
        (
            "quickfix_FIX50SP2.xml",
            "QuickFIX dictionary FIX 5.0 SP2: 6028 fields, 156 messages, 725 components, 561 groups",
        ),
        (
            "quickfix_FIXT11.xml",
            "QuickFIX dictionary FIXT 1.1: 71 fields, 8 messages, 2 components, 2 groups",
        ),
        (
            "orchestra/OrchestraFIX42.xml",
            "Orchestra dictionary FIX.4.2: 405 fields, 46 messages, 2 components, 30 groups",
        ),
        (
            "orchestra/Equity.xml",
            "Orchestra dictionary FIX Latest for Equities FIX.Latest_EP272: 20 fields, 0 messages, 1 components, 1 groups",
        ),
        (
            "orchestra/NYSEPillarBinaryPhase2.xml",
            "Orchestra dictionary NYSEPillar 1.1: 99 fields, 0 messages, 11 components, 1 groups",
        ),
    ] {
        let dictionary = dictionary(&[name]);
        let files: Vec<_> = dictionary.files().iter().map(ToString::to_string).collect();
        assert_eq!(files, [format!("{name}: {held}")]);
    }
}

// Text in the encoding that the message names; the same bytes without the name, and broken ones, stay bytes.
#[test]
fn encoded_text_by_message_encoding() {
    let decoded = |fields: &[u8]| {
        let mut input = format!("8=FIX.4.4\u{1}9={}\u{1}", fields.len()).into_bytes();
        input.extend_from_slice(fields);
        let sum: u32 = input.iter().map(|&byte| u32::from(byte)).sum();
        input.extend_from_slice(format!("10={:03}\u{1}", sum % 256).as_bytes());
        lines(&decode("f", &input, &FixDecodeOptions::default()).1).remove(0)["fields"]["355"].clone()
    };
    let text = Value::from("\u{30c6}\u{30b9}");
    assert_eq!(decoded(b"35=B\x01347=SHIFT_JIS\x01354=4\x01355=\x83\x65\x83\x58\x01"), text);
    assert_eq!(decoded(b"35=B\x01347=EUC-JP\x01354=4\x01355=\xa5\xc6\xa5\xb9\x01"), text);
    assert_eq!(decoded(b"35=B\x01347=ISO-2022-JP\x01354=10\x01355=\x1b$B%F%9\x1b(B\x01"), text);
    assert_eq!(decoded("35=B\u{1}347=UTF-8\u{1}354=6\u{1}355=\u{30c6}\u{30b9}\u{1}".as_bytes()), text);
    let bytes = serde_json::json!({"hex": "83658358"});
    assert_eq!(decoded(b"35=B\x01354=4\x01355=\x83\x65\x83\x58\x01"), bytes);
    assert_eq!(decoded(b"35=B\x01347=KLINGON\x01354=4\x01355=\x83\x65\x83\x58\x01"), bytes);
    // A separator inside, and a whole message: as long as its length says.
    assert_eq!(decoded(b"35=B\x01347=UTF-8\x01354=5\x01355=a\x01b\x01c\x01"), Value::from("a\u{1}b\u{1}c"));
    let inside = b"35=B\x01354=26\x01355=8=FIX.4.2\x019=5\x0135=0\x0110=161\x01\x01";
    assert_eq!(decoded(inside), Value::from("8=FIX.4.2\u{1}9=5\u{1}35=0\u{1}10=161\u{1}"));
}

// The published dictionaries of both kinds must load, and agree where they say the same thing.
#[test]
fn published_dictionaries() {
    let fix44 = dictionary(&["quickfix_FIX44.xml"]);
    assert_eq!((fix44.fields().count(), fix44.message_count()), (912, 93));
    assert_eq!(fix44.field(54).map(|side| side.name.as_str()), Some("Side"));
    let parties = fix44.group(b"D", 453).expect("parties of an order");
    assert_eq!(parties.delimiter(), Some(448));
    assert_eq!(parties.members(), [447, 448, 452, 802]);
    assert_eq!(parties.nested().get(802).and_then(|sub| sub.delimiter()), Some(523));
    // The header's hops are in every message, also in one the dictionary does not know.
    assert!(fix44.group(b"D", 627).is_some() && fix44.group(b"??", 627).is_some());

    let fix50 = dictionary(&["quickfix_FIXT11.xml", "quickfix_FIX50SP2.xml"]);
    assert_eq!(fix50.message(b"X").map(|m| m.name.as_str()), Some("MarketDataIncrementalRefresh"));
    assert_eq!(fix50.group(b"X", 268).and_then(|group| group.delimiter()), Some(279));
    assert_eq!(fix50.message(b"A").map(|m| m.name.as_str()), Some("Logon"));

    let orchestra = dictionary(&["orchestra/OrchestraFIX42.xml"]);
    assert_eq!((orchestra.fields().count(), orchestra.message_count()), (405, 46));
    let side = orchestra.field(54).expect("Side");
    assert_eq!(side.kind, "CHAR");
    assert!(side.values.contains(&("1".to_owned(), "Buy".to_owned())));
    assert_eq!(orchestra.group(b"X", 268).and_then(|group| group.delimiter()), Some(279));
    assert_eq!(orchestra.data_tags().data_of(95), Some(96));
}
