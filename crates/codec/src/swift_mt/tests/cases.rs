//! Small cases, each for something that a reader of MT files got wrong once or could.

use super::super::{SwiftFramer, SwiftTag, decode_json, parts, value};
use crate::twin::swift_mt::check;
use serde_json::Value;

/// `decode_json` of the input, as JSON.
fn lines(input: &str) -> Vec<Value> {
    let mut out = Vec::new();
    decode_json(&mut input.as_bytes(), "f", &SwiftFramer::default(), &mut out)
        .expect("memory reads and writes");
    out.split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).expect("a line is JSON"))
        .collect()
}

/// The types and error codes of the lines.
fn words(input: &str) -> Vec<String> {
    let word = |line: &Value| line["type"].as_str().or(line["error"]["code"].as_str()).map(str::to_owned);
    lines(input).iter().map(|line| word(line).expect("a type or a code")).collect()
}

const HEAD: &str = "{1:F01AAAABEBBAXXX0000000000}{2:I103BBBBDEFFXXXXN}";

// A `}` in a value, or a `-` before the end of a line, must not end the text: only `-}` does.
#[test]
fn only_dash_and_brace_end_the_text() {
    let line = &lines(&format!("{HEAD}{{4:\r\n:20:A-\r\n:50K:/1234}}5678\r\nNAME\r\n-}}"))[0];
    assert_eq!(line["fields"][1]["parts"]["account"], "1234}5678");
    assert_eq!(line["fields"][0]["value"], "A-");
}

// An acknowledgement belongs to the message right after it, and is alone otherwise.
#[test]
fn acknowledgements() {
    let (ack, nak) = ("{1:F21AAAABEBBAXXX0000000000}{4:{177:1704260717}{451:0}}", "{451:1}{405:E66013}}");
    let message = format!("{HEAD}{{4:\n:20:A\n-}}");
    assert_eq!(words(&format!("{ack}{message}$\n{ack}\n{message}")), ["MT103", "ACK", "MT103"]);
    let nak = format!("{}{nak}", &ack[..ack.len() - 8]);
    let line = &lines(&format!("{nak}{message}"))[0];
    assert_eq!(line["ack"]["status"], "NAK");
    assert_eq!(line["ack"]["fields"][2]["value"], "E66013");
    assert_eq!(words(&nak), ["NAK"]);
}

// One message damaged anywhere costs that message and not the next.
#[test]
fn damage_costs_one_message() {
    let message = format!("{HEAD}{{3:{{108:R}}}}{{4:\r\n:20:A\r\n:32A:190425USD1,\r\n-}}{{5:{{CHK:1}}}}");
    let good = format!("{message}${message}${message}");
    for at in message.len() + 1..2 * message.len() + 1 {
        for byte in ['X', '{', '}', '\n'] {
            let mut input = good.clone();
            input.replace_range(at..=at, &byte.to_string());
            let words = words(&input);
            let whole = words.iter().filter(|word| *word == "MT103").count();
            assert!(whole >= 2, "byte {at} as {byte:?}: {words:?}");
            assert_eq!(words[0], "MT103", "byte {at} as {byte:?}: {words:?}");
            assert_eq!(words[words.len() - 1], "MT103", "byte {at} as {byte:?}: {words:?}");
        }
    }
}

// A block that is not closed must not swallow the message after it.
#[test]
fn unclosed_blocks() {
    let next = format!("{HEAD}{{4:\n:20:B\n-}}");
    for (bad, code) in [
        ("{1:F01A}{2:I103B}{3:{108:210323165210}{4:\n:20:A\n-}", "bad_block"),
        ("{1:F01A}{2:I103B{4:\n:20:A\n-}", "bad_block"),
        ("{1:F01A}{2:I103B}{2:I103B}{4:\n:20:A\n-}", "bad_block"),
        ("{1:F01A}{2:I103B}{9:}{4:\n:20:A\n-}", "bad_block"),
        ("{1:F01A}{2:I103B}{4:\n:20:A\n", "truncated"),
        ("{1:F01A}{2:I103B", "truncated"),
        ("{1:F01A}{2:I103B}{4:\nno tag\n-}", "malformed_field"),
    ] {
        assert_eq!(words(&format!("{bad}\n$\n{next}")), [code, "MT103"], "{bad}");
    }
}

// Statements without envelope: where one ends, and what banks write around them.
#[test]
fn bare_bodies() {
    for (input, expected) in [
        (":20:A\n:25:1\n:62F:C100323EUR1,\n-\n:20:B\n:25:1\n-", vec!["MT940", "MT940"]),
        (":20:A\n:25:1\n\n:20:B\n:25:1\n", vec!["MT940", "MT940"]),
        (":20:A\r\n:61:110701CN50,00NZ10NONREF\r\n-\r\n", vec!["MT940"]),
        (
            "ABNANL2A\n940\nABNANL2A\n:20:A\n:25:1\n-\nABNANL2A\n940\nABNANL2A\n:20:B\n:25:1\n-\n",
            vec!["MT940"; 2],
        ),
        ("0000 01INGBNL2AXXXX00001\n942 00\n:20:A\n:25:1\n-XXX", vec!["MT942"]),
        (":940:\n:20:A\n:25:1\n\n:20:B\n:25:1\n", vec!["MT940", "MT940"]),
        (":20:A\n:34F:EURD0,00\n:90D:1EUR2,30\n", vec!["MT942"]),
        (":20:A\n:23B:CRED\n:32A:190425USD1,\n:59:X\n-}", vec!["MT103"]),
        ("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", vec!["garbage"]),
        ("1\n2\n3\n4\n5\n6\n7\n8\n9\n:20:A\n", vec!["garbage", ""]),
        ("\u{feff}:20:A\n:25:1\n", vec!["MT940"]),
    ] {
        assert_eq!(words(input), expected, "{input:?}");
    }
    let line = &lines(":20:A\n:86:hr gjlm\n\nBetaling\n\n\n:62F:C100323EUR1,\n-")[0];
    assert_eq!(line["fields"][1]["value"], "hr gjlm\n\nBetaling");
}

// The first digits of an amount that is not of the standard's form became the amount, and the rest a reference.
#[test]
fn amounts_of_statement_lines_end_where_their_number_ends() {
    for bad in [
        "C1.000,00NTRFX",
        "C10.50NTRFX",
        "C1 234,50NTRFX",
        "C12O4,50NTRFX",
        "C1,000.00NTRFX",
        "C1'000,00NTRFX",
        "C1\u{a0}000,00NTRFX",
        "C1OOOO,50NTRFX",
        "C12l4,50NTRFX",
        "C10,O5NTRFX",
        "C10,50-NTRFX",
        "C10,5 0NTRFX",
        "C10,50.00NTRFX",
        "C1,2,3NTRFX",
        "C1e3NTRFX",
        "C10REF",
        "C10 ,50NTRFX",
        "D1_000,00NTRFX",
    ] {
        let value = format!("260302{bad}");
        check::agree_on_value(b"61", value.as_bytes()).unwrap();
        let mut parts = parts::SwiftComponents::default();
        assert!(parts::split(SwiftTag::new(b"61"), value.as_bytes(), &mut parts).is_err(), "{bad}");
    }
    for (good, amount) in [
        ("C1000,00NTRFX", "1000,00"),
        ("C10NTRFX", "10"),
        ("C10,NMSCX", "10,"),
        ("C,50FMSCX", ",50"),
        ("C10", "10"),
        ("C10,50", "10,50"),
        ("C10,50//B", "10,50"),
        ("C10//B", "10"),
        ("C10\nmore", "10"),
        ("C10,5 X", "10,5"),
        ("CN50,00NZ10NONREF", "50,00"),
        ("C10,50N 12X", "10,50"),
        ("C10,50REFERENCE", "10,50"),
        ("C10,S103X", "10,"),
    ] {
        let value = format!("260302{good}");
        check::agree_on_value(b"61", value.as_bytes()).unwrap();
        let mut parts = parts::SwiftComponents::default();
        assert_eq!(parts::split(SwiftTag::new(b"61"), value.as_bytes(), &mut parts), Ok(true), "{good}");
        assert_eq!(parts.get(value.as_bytes(), "amount"), Some(amount.as_bytes()), "{good}");
    }
}

// Files pad, prefix and separate messages in their own ways; none of it is a message or an error.
#[test]
fn between_messages() {
    let message = format!("{HEAD}{{4:\n:20:A\n-}}");
    assert_eq!(
        words(&format!("\u{1}{message}\u{3}   \u{1}{message}\u{3}\n$\n$ {message}  \r\n")),
        ["MT103"; 3]
    );
    assert_eq!(words(&format!("{message}}}")), ["MT103", "garbage"]);
    assert!(lines("$\r\n \n").is_empty());
}

// The sequences of category 5 nest; a cover payment has its second sequence without a mark of its own.
#[test]
fn sequences() {
    let line = &lines(&format!(
        "{}{{4:\n:16R:SETDET\n:16R:AMT\n:19A::SETT//EUR1,\n:16S:AMT\n:22F::SETR//TRAD\n:16S:SETDET\n:16S:X\n-}}",
        HEAD.replace("I103", "I541")
    ))[0];
    let paths: Vec<_> =
        (0..7).map(|n| line["fields"][n]["path"].as_str().unwrap_or("-").to_owned()).collect();
    assert_eq!(paths, ["-", "SETDET", "SETDET/AMT", "SETDET", "SETDET", "-", "-"]);
    let cover = HEAD.replace("I103", "I202");
    let line = &lines(&format!(
        "{cover}{{3:{{119:COV}}}}{{4:\n:20:A\n:52A:AAAABEBB\n:50K:NAME\n:52A:BBBBDEFF\n:59:NAME\n-}}"
    ))[0];
    assert_eq!(line["variant"], "COV");
    assert_eq!(line["fields"][1]["path"], Value::Null);
    assert_eq!(line["fields"][3]["path"], "B");
}

// A system message quotes another message in its text.
#[test]
fn a_message_in_a_message() {
    let inner = "{1:F01PTY1US33AXXX0000000000}{2:I300PTY2GB33AXXXU3003}{4:\n:20:R}\n-}{5:{CHK:1}}";
    let outer = format!("{}{{4:{inner}}}", HEAD.replace("I103", "O096"));
    let line = &lines(&format!("{outer}$\n{HEAD}{{4:\n:20:A\n-}}"))[0];
    assert_eq!(line["type"], "MT096");
    assert_eq!(line["fields"][2]["value"], "\n:20:R}\n-");
    assert_eq!(line["fields"][3]["tag"], "5");
}

// Rounding, signs and lost zeros slip into money through lenient parsers.
#[test]
fn amounts_exact_or_not_at_all() {
    for (text, exact, shown) in [
        ("3700,", Some((3700, 0)), "3700"),
        ("3700,50", Some((370_050, -2)), "3700.50"),
        ("000000001213,28", Some((121_328, -2)), "1213.28"),
        (",32", Some((32, -2)), "0.32"),
        ("0,", Some((0, 0)), "0"),
        ("500", Some((500, 0)), "500"),
        ("0000000000000000,00", Some((0, -2)), "0.00"),
        ("999999999999999999", Some((999_999_999_999_999_999, 0)), "999999999999999999"),
        ("1000000000000000000", None, ""),
        ("1.5", None, ""),
        ("1,5,", None, ""),
        ("-1,", None, ""),
        (",", None, ""),
        ("", None, ""),
    ] {
        let got = value::amount(text.as_bytes()).map(|d| (d.mantissa, d.exponent));
        assert_eq!(got, exact, "{text:?}");
        if exact.is_some() {
            let mut out = Vec::new();
            value::write_amount(text.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), shown, "{text:?}");
        }
    }
}

// Two-digit years, days that banks have and calendars have not, and entries over New Year.
#[test]
fn days() {
    let day = |text: &str| value::date(text.as_bytes()).map(|d| (d.year, d.month, d.day));
    assert_eq!(day("980622"), Some((1998, 6, 22)));
    assert_eq!(day("790101"), Some((2079, 1, 1)));
    assert_eq!(day("800101"), Some((1980, 1, 1)));
    assert_eq!(day("000229"), Some((2000, 2, 29)));
    for wrong in ["160230", "345454", "000000", "11111", "16023x"] {
        assert_eq!(day(wrong), None, "{wrong}");
    }
    let day = |text: &str| value::value_date(text.as_bytes()).map(|d| (d.year, d.month, d.day));
    assert_eq!(day("160230"), Some((2016, 2, 29)));
    assert_eq!(day("150229"), Some((2015, 2, 28)));
    assert_eq!(day("150231"), None);
    let entry = |text: &str, value: &str| {
        let value = value::date(value.as_bytes()).expect("a day");
        value::entry_date(text.as_bytes(), value).map(|d| (d.year, d.month, d.day))
    };
    assert_eq!(entry("0102", "191231"), Some((2020, 1, 2)));
    assert_eq!(entry("1230", "200102"), Some((2019, 12, 30)));
    assert_eq!(entry("0229", "190301"), Some((2020, 2, 29)));
    assert_eq!(entry("1399", "190301"), None);
    assert_eq!(value::date_long(b"19700102").map(value::CalendarDay::nanos), Some(86_400_000_000_000));
}

// An IBAN with two digits exchanged is none.
#[test]
fn ibans() {
    assert!(value::is_iban(b"DE89370400440532013000") && value::is_iban(b"GB82WEST12345698765432"));
    assert!(
        !value::is_iban(b"DE89370400440532010300") && !value::is_iban(b"DE89") && !value::is_iban(b"12345")
    );
}

// A value that is not of its form is reported, and the message is a message all the same.
#[test]
fn bad_values() {
    let line = &lines(&format!("{HEAD}{{4:\n:20:A\n:32A:190231USD1,\n:71A:SHA\n-}}"))[0];
    assert_eq!(line["fields"][1]["error"]["code"], "bad_value");
    assert_eq!(line["fields"][1]["value"], "190231USD1,");
    assert_eq!(line["fields"][2]["parts"]["code"], "SHA");
}

// A tag is packed into a number, where a NUL before or after its text was lost: `\051` had the parts of `51`.
#[test]
fn a_tag_with_a_nul_is_no_tag_of_the_standard() {
    use super::super::SwiftTag;
    for text in [&b"\x0051"[..], b"51\0", b"\0", b"\x0032A", b"5\x001"] {
        assert_eq!(SwiftTag::new(text).split(), None, "{text:?}");
        assert_ne!(SwiftTag::new(text), SwiftTag::new(b"51"));
        check::agree_on_value(text, b"1").unwrap();
    }
    assert_eq!(SwiftTag::new(b"51").split(), Some((51, 0)));
}
