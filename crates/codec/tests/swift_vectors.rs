//! The SWIFT decoder against the vectors in `vectors/swift`: components as the standard has them, messages and
//! statements as they are found. Where each comes from is in `SOURCES.md` there.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use unitape_codec::swift_mt::{SwiftFramer, SwiftSummary, decode_json};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/swift")
}

fn decode(name: &str) -> (SwiftSummary, Vec<Value>) {
    let path = vectors().join(name);
    let input = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut out = Vec::new();
    let summary = decode_json(&mut &input[..], name, &SwiftFramer::default(), &mut out)
        .expect("memory reads and writes");
    let lines = out.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    (summary, lines.map(|l| serde_json::from_slice(l).expect("a line is JSON")).collect())
}

fn json_lines(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(vectors().join(name)).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

/// How many objects have each type or error code.
fn census(lines: &[Value]) -> BTreeMap<&str, usize> {
    let mut census = BTreeMap::new();
    for line in lines {
        let key = line["type"].as_str().or(line["error"]["code"].as_str()).expect("type or code");
        *census.entry(key).or_default() += 1;
    }
    census
}

// Each form of the standard, split by hand.
#[test]
fn golden_fields() {
    let cases = json_lines("golden-fields.jsonl");
    assert!(cases.len() >= 80, "the file has lost cases");
    for case in &cases {
        let (tag, value) = (case["tag"].as_str().expect("tag"), case["value"].as_str().expect("value"));
        for line_end in ["\n", "\r\n"] {
            let value = value.replace('\n', line_end);
            let input = format!("{{1:F01}}{{2:I999}}{{4:{line_end}:{tag}:{value}{line_end}-}}");
            let mut out = Vec::new();
            decode_json(&mut input.as_bytes(), "f", &SwiftFramer::default(), &mut out).expect("memory");
            let line: Value = serde_json::from_slice(&out).expect("one message");
            let field = &line["fields"][0];
            assert_eq!(field["parts"], case["parts"], "{case} {field}");
            assert_eq!(field["error"].is_object(), case["error"] == true, "{case} {field}");
            assert_eq!(field["value"], case["value"]);
        }
    }
}

// Every message of every file, by type, and every byte that is none. The faults there are in the files themselves:
// text before a tag ("^M" as two letters), a block 3 that is not closed, five trailers that are not, and letters and
// braces after messages.
#[test]
fn every_sample_message_is_accounted_for() {
    let (summary, lines) = decode("prowide/unit_test_messages.rje");
    let census = census(&lines);
    assert_eq!((summary.messages, summary.errors), (122, 8), "{census:?}");
    for (kind, count) in [
        ("MT103", 50),
        ("MT199", 9),
        ("MT202", 9),
        ("MT541", 7),
        ("MT940", 6),
        ("MT535", 5),
        ("MT543", 5),
        ("MT564", 5),
        ("MT101", 4),
        ("MT760", 3),
        ("MT360", 2),
        ("MT744", 2),
        ("MT096", 1),
        ("MT196", 1),
        ("MT198", 1),
        ("MT320", 1),
        ("MT361", 1),
        ("MT502", 1),
        ("MT527", 1),
        ("MT547", 1),
        ("MT720", 1),
        ("MT747", 1),
        ("MT765", 1),
        ("MT767", 1),
        ("MT798", 1),
        ("MT920", 1),
        ("", 1),
        ("malformed_field", 1),
        ("bad_block", 1),
        ("garbage", 6),
    ] {
        assert_eq!(census.get(kind), Some(&count), "{kind} of {census:?}");
    }
    for (name, messages, errors) in [
        ("prowide/MT101.fin", 1, 0),
        ("prowide/MT103-bulk-with-ack.rje", 3, 0),
        ("prowide/MT103-out-ack.rje", 13, 1),
        ("prowide/MT305.fin", 1, 1),
        ("prowide/MT320.txt", 1, 1),
        ("prowide/MT340.fin", 1, 0),
        ("prowide/MT360.fin", 1, 0),
        ("prowide/SWIFTMT300_0000039099_0002.txt", 1, 0),
        ("mt940/ASNB/mt940.txt", 31, 0),
        ("mt940/ASNB/mt940_with_spaces_for_entry_date.txt", 31, 0),
        ("mt940/citi/mt940.txt", 1, 0),
    ] {
        let (summary, _) = decode(name);
        assert_eq!((summary.messages, summary.errors), (messages, errors), "{name}");
    }
    let (_, lines) = decode("prowide/MT103-bulk-with-ack.rje");
    assert!(lines.iter().all(|line| line["type"] == "MT103" && line["ack"]["status"] == "ACK"));
}

// Statements against what another parser reads from them: balances, references, and every transaction.
#[test]
fn statements_as_another_parser_reads_them() {
    let (mut files, mut right_files, mut transactions, mut right) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for expected in json_lines("mt940/expected.jsonl") {
        let name = expected["file"].as_str().expect("file");
        let (_, lines) = decode(&format!("mt940/{name}"));
        let ours = read_as_statement(&lines);
        files += 1;
        let mut whole = true;
        for (key, value) in expected.as_object().expect("an object") {
            match key.as_str() {
                "file" => {}
                "transactions" => {
                    let theirs = value.as_array().expect("an array");
                    let of_ours = ours["transactions"].as_array().expect("an array");
                    whole &= theirs.len() == of_ours.len();
                    for (n, theirs) in theirs.iter().enumerate() {
                        transactions += 1;
                        let of_ours = of_ours.get(n).unwrap_or(&Value::Null);
                        let differs = theirs
                            .as_object()
                            .expect("an object")
                            .iter()
                            .filter(|(k, v)| plain(k, &of_ours[*k]) != plain(k, v));
                        let differs: Vec<_> = differs
                            .map(|(k, v)| (format!("{name} {n} {k}"), format!("{v}, not {}", of_ours[k])))
                            .collect();
                        right += usize::from(differs.is_empty());
                        whole &= differs.is_empty();
                        wrong.extend(differs);
                    }
                }
                _ if plain(key, ours.get(key).unwrap_or(&Value::Null)) != plain(key, value) => {
                    whole = false;
                    let found = ours.get(key).unwrap_or(&Value::Null);
                    wrong.push((format!("{name} {key}"), format!("{value}, not {found}")));
                }
                _ => {}
            }
        }
        right_files += usize::from(whole);
    }
    let mut places: Vec<_> = wrong.iter().map(|(place, _)| place.as_str()).collect();
    places.sort_unstable();
    let mut known: Vec<_> = OTHER_READINGS.iter().map(|(place, _)| *place).collect();
    known.sort_unstable();
    assert_eq!(places, known, "{wrong:#?}");
    let got = (right_files, files, right, transactions);
    assert_eq!(got, (41, 47, 198, 200), "{wrong:#?}");
}

/// Where that parser says something else than the bytes do, and why we do not.
const OTHER_READINGS: &[(&str, &str)] = &[
    // A narrative with the tag of the account: ours is an error, theirs its first 35 characters.
    ("betterplace/sepa_snippet_broken.sta account_identification", "a narrative under the wrong tag"),
    // `:86:…\n-XXX`, where `-XXX` ends the file and is no part of the narrative.
    ("jejik/ing.sta 6 transaction_details", "the mark of the end, taken as text"),
    // `:28C:1810118101`: nothing there divides it.
    ("self-provided/long_statement_number.sta sequence_number", "ten digits cut into five and five"),
    ("self-provided/long_statement_number.sta statement_number", "ten digits cut into five and five"),
    // An account of 37 characters.
    ("self-provided/multiline.sta account_identification", "cut to 35 characters"),
    // `:62F:C020324` and `95000,00`: a balance without a currency is refused.
    ("self-provided/raphaelm.sta final_closing_balance", "three digits of the amount taken as its currency"),
    (
        "self-provided/raphaelm.sta intermediate_closing_balance",
        "three digits of the amount taken as its currency",
    ),
    // A line `:` alone and a line `86:…` after it: text, since neither has a tag.
    ("self-provided/sparkassen.sta 0 extra_details", "a tag broken over two lines"),
];

/// A value as it is compared: amounts as numbers, narratives without the blanks around their lines, which that parser
/// leaves out.
fn plain(key: &str, value: &Value) -> Value {
    let amount = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match value {
        Value::String(text) if key == "amount" => amount(text).into(),
        Value::String(text) if key == "transaction_details" => {
            let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            lines.join("\n").into()
        }
        Value::Object(parts) => parts.iter().map(|(key, value)| (key.clone(), plain(key, value))).collect(),
        other => other.clone(),
    }
}

/// Text that is not UTF-8, in the character set of the one file that has some (code page 852).
fn text_of(value: &Value) -> String {
    let Some(hex) = value["hex"].as_str() else { return value.as_str().unwrap_or_default().to_owned() };
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    let letter = |byte: u8| match byte {
        0xa0 => 'á',
        0x82 => 'é',
        0xa1 => 'í',
        0xa2 => 'ó',
        0x94 => 'ö',
        0x81 => 'ü',
        other => char::from(other),
    };
    (0..hex.len()).step_by(2).map(|at| letter(byte(at))).collect()
}

/// The last value of each field and all lines, as that parser holds a file.
fn read_as_statement(lines: &[Value]) -> Map<String, Value> {
    let mut all = Map::new();
    let mut transactions: Vec<Value> = Vec::new();
    let balance = |parts: &Value| {
        let mut signed = parts.clone();
        if parts["mark"] == "D" {
            signed["amount"] = format!("-{}", parts["amount"].as_str().unwrap_or_default()).into();
        }
        signed
    };
    for field in lines.iter().flat_map(|line| line["fields"].as_array().into_iter().flatten()) {
        let (tag, parts) = (field["tag"].as_str().expect("tag"), &field["parts"]);
        let mut put = |key: &str, value: &Value| all.insert(key.to_owned(), value.clone());
        match tag {
            "20" => _ = put("transaction_reference", &parts["reference"]),
            "21" => _ = put("related_reference", &parts["reference"]),
            "25" => _ = put("account_identification", &parts["account"]),
            "28" | "28C" => {
                put("statement_number", &parts["number"]);
                put("sequence_number", &parts["sequence"]);
            }
            "60F" => _ = put("final_opening_balance", &balance(parts)),
            "60M" => _ = put("intermediate_opening_balance", &balance(parts)),
            "62F" => _ = put("final_closing_balance", &balance(parts)),
            "62M" => _ = put("intermediate_closing_balance", &balance(parts)),
            "64" => _ = put("available_balance", &balance(parts)),
            "65" => _ = put("forward_available_balance", &balance(parts)),
            "61" => {
                let words = |key: &str| parts[key].clone();
                let details: Vec<_> = parts["details"].as_array().into_iter().flatten().collect();
                let details: Vec<_> = details.into_iter().map(text_of).collect();
                let amount = parts["amount"].as_str().unwrap_or_default();
                let debit = matches!(parts["mark"].as_str(), Some("D"));
                transactions.push(serde_json::json!({
                    "id": words("type"), "status": words("mark"), "funds_code": words("funds"),
                    "customer_reference": parts["reference"].as_str().unwrap_or_default(), "bank_reference": words("bank_reference"),
                    "extra_details": details.join("\n"), "date": words("date"), "entry_date": words("entry_date"),
                    "amount": format!("{}{amount}", if debit { "-" } else { "" }),
                }));
            }
            "86" => {
                if let Some(last) = transactions.last_mut() {
                    // Several in a row are one narrative.
                    let text = text_of(&field["value"]);
                    last["transaction_details"] = match last["transaction_details"].as_str() {
                        Some(before) => format!("{before}\n{text}").into(),
                        None => text.into(),
                    };
                }
            }
            _ => {}
        }
    }
    all.insert("transactions".to_owned(), Value::Array(transactions));
    all
}
