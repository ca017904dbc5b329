//! The messages of the QuickFIX acceptance scripts for FIX 4.4: every one of them decodes or is refused with the
//! reason that this table gives. A message that only a session can refuse (a sequence number, an enumeration, a
//! missing field) is a good message to a decoder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use unitape_codec::fix::{FieldSeparator, FixDecodeOptions, FixDictionary, FixFramer, decode_json};

/// Script, message of the script counted from 0, what is said of it.
const REFUSED: &[(&str, usize, &str)] = &[
    // Tags 0 and -1 are none; 999 and 5000, unknown to the standard, are kept.
    ("14a_BadField", 2, "malformed_tag"),
    ("14a_BadField", 3, "malformed_tag"),
    ("14d_TagSpecifiedWithoutValue", 1, "malformed_tag"),
    ("14i_RepeatingGroupCountNotEqual", 1, "group_count"),
    ("1d_InvalidLogonLengthInvalid", 0, "bad_body_length"),
    // A tag with letters in it, and CheckSum 0, which is seen first.
    ("2d_GarbledMessage", 1, "bad_checksum"),
    ("2d_GarbledMessage", 3, "bad_checksum"),
    ("2m_BodyLengthValueNotCorrect", 1, "bad_body_length"),
    ("2m_BodyLengthValueNotCorrect", 4, "bad_body_length"),
    // `35=0|` before the message belongs to none, and its length is not right either.
    ("2t_FirstThreeFieldsOutOfOrder", 1, "garbage bad_body_length"),
    ("2t_FirstThreeFieldsOutOfOrder", 3, "malformed_tag"),
    ("3b_InvalidChecksum", 1, "bad_checksum"),
    ("3b_InvalidChecksum", 3, "bad_checksum"),
    ("3c_GarbledMessage", 1, "bad_checksum"),
    ("3c_GarbledMessage", 3, "bad_checksum"),
    // 146=1 is not followed by the field that starts its entries.
    ("QFJ934_MissingDelimiterNestedRepeatingGroup", 1, "group_count"),
    ("ReverseRouteWithEmptyRoutingTags", 1, "malformed_tag"),
    ("ReverseRouteWithEmptyRoutingTags", 2, "malformed_tag"),
    ("ReverseRouteWithEmptyRoutingTags", 3, "malformed_tag"),
    ("ReverseRouteWithEmptyRoutingTags", 4, "malformed_tag"),
    ("ReverseRouteWithEmptyRoutingTags", 5, "malformed_tag"),
    ("ReverseRouteWithEmptyRoutingTags", 6, "malformed_tag"),
];

fn vectors(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/fix").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A message as the scripts' runner sends it: times filled in, length and sum added where they are not written.
fn wire(line: &str) -> Vec<u8> {
    let mut text = line.to_owned();
    for time in ["<TIME>", "<TIME-10>", "<TIME+10>", "<TIME-1>", "<TIME-121>", "<TIME+121>"] {
        text = text.replace(time, "20260302-09:00:00");
    }
    assert!(!text.contains('<'), "{text}: a time that the test does not know");
    let text = text.replace('|', "\u{1}");
    let text = match text.split_once('\u{1}') {
        Some((begin, body)) if !text.contains("\u{1}9=") => {
            let counted = body.find("\u{1}10=").map_or(body, |end| &body[..=end]);
            format!("{begin}\u{1}9={}\u{1}{body}", counted.len())
        }
        _ => text,
    };
    let mut wire = text.into_bytes();
    if !wire.windows(4).any(|w| w == b"\x0110=") {
        let sum: u32 = wire.iter().map(|&byte| u32::from(byte)).sum();
        wire.extend_from_slice(format!("10={:03}\u{1}", sum % 256).as_bytes());
    }
    wire
}

fn decode(input: &[u8], options: &FixDecodeOptions) -> Vec<Value> {
    let mut out = Vec::new();
    decode_json(&mut &input[..], "f", options, &mut out).expect("memory reads and writes");
    let text = String::from_utf8(out).expect("JSON is UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

fn said(objects: &[Value]) -> String {
    let word = |o: &Value| o["error"]["code"].as_str().unwrap_or("message").to_owned();
    objects.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn dictionary() -> Arc<FixDictionary> {
    let xml = vectors("dict/quickfix_FIX44.xml");
    Arc::new(FixDictionary::parse(&[("FIX44.xml", xml.as_bytes())]).expect("a published dictionary"))
}

// Engines have accepted each of these as good, or lost its neighbour; alone and in the stream, with every
// separator a log may show, the answer is the same.
#[test]
fn every_message_of_the_scripts() {
    let text = vectors("acceptance/fix44.txt");
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut refused: Vec<(&str, usize, String)> = Vec::new();
    let mut stream = Vec::new();
    let mut expected = Vec::new();
    let options = FixDecodeOptions { framer: FixFramer::default(), dictionary: Some(dictionary()) };
    for line in text.lines() {
        let (script, message) = line.split_once(' ').expect("a script and a message");
        let n = counts.entry(script).or_default();
        let bytes = wire(message);
        let objects = decode(&bytes, &options);
        let words = said(&objects);
        expected.push(words.clone());
        if words != "message" {
            refused.push((script, *n, words));
        }
        stream.extend(bytes);
        *n += 1;
    }
    assert_eq!((counts.len(), expected.len()), (65, 310), "the file has lost messages");
    let table: Vec<_> = REFUSED.iter().map(|&(script, n, code)| (script, n, code.to_owned())).collect();
    assert_eq!(refused, table);

    let objects = decode(&stream, &options);
    assert_eq!(said(&objects), expected.join(" "), "neighbours are kept");
    let mut covered = 0;
    for object in &objects {
        assert_eq!(object["offset"], covered, "no byte is left out");
        covered += match object["length"].as_u64() {
            Some(length) => length,
            None => {
                let end =
                    object["fields"]["9"].as_str().and_then(|n| n.parse::<u64>().ok()).expect("a length");
                let begin = object["fields"]["8"].as_str().expect("BeginString").len();
                let digits = object["fields"]["9"].as_str().expect("BodyLength").len();
                end + (begin + digits + 6 + 7) as u64
            }
        };
    }
    assert_eq!(covered, stream.len() as u64);
    for sep in [FieldSeparator::Pipe, FieldSeparator::Semicolon, FieldSeparator::CaretA] {
        let shown: Vec<u8> =
            stream.iter().flat_map(|&b| if b == 1 { sep.bytes().to_vec() } else { vec![b] }).collect();
        let options = FixDecodeOptions { framer: FixFramer::default().with_sep(sep), ..options.clone() };
        assert_eq!(said(&decode(&shown, &options)), expected.join(" "), "{sep:?}");
    }
}

// A garbled tag after a right checksum: the scripts have none, and a decoder that trusts the sum accepts it.
#[test]
fn garbled_tags_with_a_right_sum() {
    for line in ["8=FIX.4.4|35=0|34=2|4garbled9=TW|56=ISLD|", "8=FIX.4.4|35=D|49garbled=TW|55=INTC|"] {
        let words = said(&decode(&wire(line), &FixDecodeOptions::default()));
        assert_eq!(words, "malformed_tag", "{line}");
    }
}

// The same messages in the lines of a gateway's log, which has its own text before and after them.
#[test]
fn the_scripts_as_a_log() {
    let text = vectors("acceptance/fix44.txt");
    let (mut log, mut expected) = (String::new(), Vec::new());
    let options = FixDecodeOptions { framer: FixFramer::default(), dictionary: Some(dictionary()) };
    for (n, line) in text.lines().enumerate() {
        let (script, message) = line.split_once(' ').expect("a script and a message");
        let bytes = wire(message);
        let words = said(&decode(&bytes, &options));
        // A field before the message is text like other text in a log.
        expected.push(words.replace("garbage ", ""));
        let shown = String::from_utf8(bytes).expect("ASCII").replace('\u{1}', "|");
        // Loggers trim: a line may end without the last separator, or continue.
        match n % 3 {
            0 => log += &format!("2026-03-02 09:00:00.{n:03} {script} IN {shown}\n"),
            1 => log += &format!("[{n}] <{script}>: {}\r\n", shown.trim_end_matches('|')),
            _ => log += &format!("{n} {shown} (sent)\n\n"),
        }
    }
    let framer = FixFramer::default().with_sep(FieldSeparator::Pipe).with_log(true);
    let objects = decode(log.as_bytes(), &FixDecodeOptions { framer, ..options });
    let (texts, messages): (Vec<Value>, Vec<Value>) =
        objects.into_iter().partition(|object| object["text"].is_string());
    assert_eq!(said(&messages), expected.join(" "));
    assert!(texts.len() >= expected.len(), "every line has text of its own");
    assert_eq!(texts[0]["text"], "2026-03-02 09:00:00.000 10_MsgSeqNumEqual IN ");
}
