//! Behaviour at the boundary: what is in a stream, message by message.

use super::frame::{Iso20022Decoder, NextIsoMessage};
use super::json::{ElementCollector, decode_json};
use crate::twin::iso20022::check;
use crate::twin::iso20022::sample::sample_messages;
use proptest::prelude::*;

const NS: &str = "urn:iso:std:iso:20022:tech:xsd:pacs.002.001.11";

/// Lists the messages and faults in `text`: `type path=value …` or `!code length`, one line each.
fn read(text: &[u8]) -> String {
    read_bounded(1 << 20, text)
}

/// The same, of messages up to a bound.
fn read_bounded(max_message: usize, text: &[u8]) -> String {
    let mut decoder = Iso20022Decoder::default().with_max_message(max_message);
    let mut leaves = ElementCollector::default();
    let (mut at, mut out) = (0, String::new());
    loop {
        match decoder.next(text, at, true, &mut leaves) {
            NextIsoMessage::Message(message) => {
                let buf = decoder.text(&message, text);
                let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                out += &lossy(message.kind.name.slice(buf));
                let mut scratch = Vec::new();
                for (path, value) in leaves.iter() {
                    out += &format!(" {}={}", lossy(path), lossy(value.text(buf, &mut scratch)));
                }
                at = message.span.end;
            }
            NextIsoMessage::Bad { span, fault } => {
                out += &format!("!{} {}", fault.code(), span.len());
                at = span.end;
            }
            NextIsoMessage::Incomplete { .. } => panic!("incomplete at the end"),
            NextIsoMessage::End => return out,
        }
        out += "\n";
    }
}

fn doc(content: &str) -> String {
    format!(r#"<Document xmlns="{NS}">{content}</Document>"#)
}

#[track_caller]
fn check(input: impl AsRef<[u8]>, want: &str) {
    let input = input.as_ref();
    assert_eq!(read(input).trim_end(), want.trim_end(), "{}", String::from_utf8_lossy(input));
    check::agree(1 << 20, false, input).unwrap();
    check::cuts(1 << 20, false, input).unwrap();
}

const ONE: &str = "pacs.002.001.11 Document/A=1";
const TWO: &str = "pacs.002.001.11 Document/B=2";

// Each sender wraps and writes in its own way; what is said is the same.
#[test]
fn messages_in_all_their_wrappings() {
    let d = doc("<A>1</A>");
    check(&d, ONE);
    check(format!("\u{feff}<?xml version=\"1.0\"?>\n<!-- c -->\r\n{d}\r\n"), ONE);
    check(format!("{d}{}", doc("<B>2</B>")), &format!("{ONE}\n{TWO}"));
    check(
        format!("{d}\n<?xml version='1.0' encoding='utf-8' standalone='yes'?>{}", doc("<B>2</B>")),
        &format!("{ONE}\n{TWO}"),
    );
    check(format!("<p:Document xmlns:p='{NS}'><p:A >1</p:A\n></p:Document>"), ONE);
    check(format!("<x xmlns:p='{NS}'><y><p:Document><p:A>1</p:A></p:Document></y>text</x>"), ONE);
    check(format!("<x><![CDATA[ <?xml version=\"1.0\"?>{d} ]]></x>"), ONE);
    check(format!("<x><![CDATA[no]]><z/><![CDATA[{d}]]><w>&amp;</w></x>"), ONE);
    check(format!("{d}<!-- over --> <?and done?> "), ONE);
    let header =
        "<h:AppHdr xmlns:h='urn:iso:std:iso:20022:tech:xsd:head.001.001.02'><h:CreDt>T</h:CreDt></h:AppHdr>";
    let both = "pacs.002.001.11 AppHdr/CreDt=T Document/A=1";
    check(format!("{header}{d}"), both);
    check(format!("<E>{header}<Body>{d}</Body></E>"), both);
    check(header, "head.001.001.02 AppHdr/CreDt=T");
    check(format!("{header} <?xml version=\"1.0\"?>{d}"), &format!("head.001.001.02 AppHdr/CreDt=T\n{ONE}"));
    check(format!("{header}{header}"), "head.001.001.02 AppHdr/CreDt=T\nhead.001.001.02 AppHdr/CreDt=T");
    check(format!("<E>{header}</E>"), "head.001.001.02 AppHdr/CreDt=T");
    let named = "<AppHdr><MsgDefIdr>pacs.008.001.07</MsgDefIdr></AppHdr><Document><A>1</A></Document>";
    check(named, "pacs.008.001.07 AppHdr/MsgDefIdr=pacs.008.001.07 Document/A=1");
}

// A batch is as many messages as it has documents, and a fault in one is that one's.
#[test]
fn several_messages_in_one_wrapper() {
    let (one, two) = (doc("<A>1</A>"), doc("<B>2</B>"));
    check(format!("<W a='1'><M>{one}</M><M>{two}</M></W>"), &format!("{ONE}\n{TWO}"));
    check(format!("<W>{one}{two}{one}</W>\n{two}"), &format!("{ONE}\n{TWO}\n{ONE}\n{TWO}"));
    check(format!("<W><![CDATA[{one}]]><![CDATA[{two}]]></W>"), &format!("{ONE}\n{TWO}"));
    check(format!("<W>{one}{two}</W></W>"), &format!("{ONE}\n{TWO}\n!garbage 4"));
    let bad = doc("<A>1</B>");
    check(format!("<W>{one}{bad}{two}</W>"), &format!("{ONE}\n!mismatch {}\n{TWO}\n!garbage 4", bad.len()));
    check(format!("<W>{one}{two}"), &format!("{ONE}\n!truncated {}", two.len()));
}

#[test]
fn values_are_what_xml_says_they_are() {
    let value = |content: &str, want: &str| {
        check(doc(&format!("<A>{content}</A>")), &format!("pacs.002.001.11 Document/A={want}"));
    };
    value("a &lt;&gt;&amp;&apos;&quot;&#65;&#x42; b", "a <>&'\"AB b");
    value("<![CDATA[<x>&amp;]]>", "<x>&amp;");
    value("a<!-- - -->b", "ab");
    value("\n\t a b \r\n", "a b");
    value("", "");
    check(doc("<A/>"), "pacs.002.001.11 Document/A=");
    check(
        doc("<Amt Ccy='EUR' x=\"a&amp;'b\">1.50</Amt><e:B xmlns:e='u' e:c='d'/>"),
        "pacs.002.001.11 Document/Amt@Ccy=EUR Document/Amt@x=a&'b Document/Amt=1.50 Document/B@c=d Document/B=",
    );
    check(doc("<A><B>1</B> <B>2</B></A>"), "pacs.002.001.11 Document/A/B=1 Document/A/B=2");
}

// Refused messages, each with its code; the message after it is always there.
#[test]
fn faults_have_their_word_and_neighbours_are_kept() {
    let laughs = "<!DOCTYPE lolz [<!ENTITY lol \"lol\"><!ENTITY lol2 \"&lol;&lol;&lol;\">]>";
    for (bad, code) in [
        (format!("{laughs}<Document>&lol2;</Document>"), "doctype"),
        (format!("<?xml version=\"1.0\"?><!DOCTYPE a SYSTEM \"file:///etc/passwd\">{}", doc("")), "doctype"),
        (doc("<A>&lol9;</A>"), "bad_entity"),
        (doc("<A>&#0;</A>"), "bad_entity"),
        (doc("<A x='&lol;'/>"), "bad_entity"),
        (doc("<A>1</B>"), "mismatch"),
        (doc("<A><B></A></B>"), "mismatch"),
        (doc("<A>1</A></A>"), "mismatch"),
        (doc("<A>1<!-- never over</A>"), "truncated"),
        (doc("<A>1<![CDATA[never over</A>"), "truncated"),
        (doc("<A>1<?never over</A>"), "truncated"),
        ("<!-- never over".to_owned(), "truncated"),
        ("<!DOCTYPE html>".to_owned(), "doctype"),
        ("<!DOCTYPE html [<!-- don't > --><?a ' ?>]>".to_owned(), "doctype"),
        ("<!DOCTYPE never [ over".to_owned(), "doctype"),
        (format!("<Document xmlns='{NS}'><A>1"), "truncated"),
        (doc("<A x=1/>"), "malformed"),
        (doc("<A x='1' x='2'/>"), "malformed"),
        (doc("<A x='1'y='2'/>"), "malformed"),
        (doc("<A x='<'/>"), "malformed"),
        (doc("<1A/>"), "malformed"),
        (doc("<A / >"), "malformed"),
        (doc("< A/>"), "malformed"),
        (doc("<!ELEMENT a>"), "malformed"),
        (doc("<!-- a -- b -->"), "malformed"),
        (doc("<A>\u{1}</A>"), "bad_char"),
        (doc("text<A/>"), "mixed"),
        (doc("<A/>text"), "mixed"),
        (doc("<A/><![CDATA[x]]>"), "mixed"),
        (doc("&amp;<A/>"), "mixed"),
        (doc("<p:A/>"), "namespace"),
        (doc("<A p:x=''/>"), "namespace"),
        ("<Document xmlns='urn:foo'><A/></Document>".to_owned(), "namespace"),
        ("<Document><A/></Document>".to_owned(), "namespace"),
        ("<html><body/></html>".to_owned(), "no_document"),
        ("<html/>".to_owned(), "no_document"),
        ("no XML".to_owned(), "garbage"),
        ("</A>".to_owned(), "garbage"),
        (doc(&"<A>".repeat(70)), "too_deep"),
        (doc(&format!("<A {}/>", (0..40).map(|n| format!("a{n}='' ")).collect::<String>())), "too_deep"),
        (doc(&format!("<{}/>", "A".repeat(300))), "too_deep"),
        (format!("<?xml version=\"1.0\" encoding=\"UTF-7\"?>{}", doc("")), "bad_encoding"),
        (format!("<?xml version=\"1.0\" encoding=\"us-ascii\"?>{}", doc("<A>\u{e9}</A>")), "bad_encoding"),
        (format!("<?xml version=\"1.0\" encoding=\"utf-7\"?>{}", doc("<A>1</B>")), "bad_encoding"),
        (format!("<?xml version=\"1.0\" encoding=\"UTF-16\"?>{}", doc("<A>1</B>")), "mismatch"),
        (format!("<?xml version=\"1.0\" encoding=\"ISO-2022-JP\"?>{}", doc("\u{e9}")), "bad_encoding"),
    ] {
        let good = doc("<B>2</B>");
        let input = format!("{bad}\n<?xml version=\"1.0\"?>{good}");
        let got = read(input.as_bytes());
        let (first, rest) = got.split_once('\n').expect("two at least");
        assert!(first.starts_with(&format!("!{code} ")), "{input}\n{got}");
        assert!(rest.ends_with(&format!("{TWO}\n")), "{input}\n{got}");
        check::agree(1 << 20, false, input.as_bytes()).unwrap();
        check::cuts(1 << 20, false, input.as_bytes()).unwrap();
        let lone = read(bad.as_bytes());
        assert!(lone.starts_with(&format!("!{code} ")), "{bad}\n{lone}");
        assert!(lone.lines().all(|line| line.starts_with('!')), "{bad}\n{lone}");
    }
}

// Of a document in a set of characters that is not read only the declaration was refused, and its text was taken for UTF-8.
#[test]
fn documents_in_sets_that_are_not_read_are_refused() {
    let with =
        |encoding: &str, content: &str| format!("<?xml version=\"1.0\" encoding=\"{encoding}\"?>{content}");
    let two = format!("<Batch>{}{}</Batch>", doc("<A>+AOk-</A>"), doc("<A>\u{e9}</A>"));
    for (encoding, content, refused, messages) in [
        ("UTF-7", doc("<A>+AOk-</A>"), 1, 0),
        ("iso-2022-jp", doc("<A>$B</A>"), 1, 0),
        ("UTF-7", two.clone(), 2, 0),
        ("us-ascii", two.clone(), 1, 1),
        ("utf-16", doc("<A>\u{e9}</A>"), 0, 1),
        ("UTF-16LE", two, 0, 2),
    ] {
        let input = format!("{}\n{}", with(encoding, &content), with("utf-8", &doc("<B>2</B>")));
        let got = read(input.as_bytes());
        let is_refusal = |line: &&str| line.starts_with("!bad_encoding ");
        let found = got.lines().partition::<Vec<_>, _>(is_refusal);
        assert_eq!((found.0.len(), found.1.len()), (refused, messages + 1), "{input}\n{got}");
        check::agree(1 << 20, false, input.as_bytes()).unwrap();
        check::cuts(1 << 20, false, input.as_bytes()).unwrap();
    }
}

// The message after a large or broken one of such a wrapper was read as if the wrapper declared nothing.
#[test]
fn a_set_that_is_not_read_is_that_of_the_whole_wrapper() {
    const LIMIT: usize = 400;
    let (one, two) = (doc("<A>+AOk-</A>"), doc("<B>2</B>"));
    let small_header = "<AppHdr><MsgDefIdr>pacs.008.001.07</MsgDefIdr></AppHdr>";
    for middle in [
        doc(&"<A>+AOk-</A>".repeat(60)),
        doc(&format!("<A>{}</A>", "+AOk-".repeat(200))),
        doc(&format!("<A><![CDATA[{}]]></A>", "+AOk-".repeat(200))),
        doc("<A>1</B>"),
        doc("<A>"),
    ] {
        for wrapped in [
            format!("<W>{middle}{one}{one}</W>"),
            format!("<W>{one}{middle}{one}</W>"),
            format!("<W><M>{one}</M>\n<M>{middle}</M>\n<M>{one}</M><M>{small_header}{one}</M></W>"),
        ] {
            for next in ["<?xml version=\"1.0\"?>", "\n<?xml version='1.0' encoding='utf-8'?>"] {
                let input = format!("<?xml version=\"1.0\" encoding=\"UTF-7\"?>{wrapped}{next}{two}");
                let got = read_bounded(LIMIT, input.as_bytes());
                let (last, refused) = got.trim_end().rsplit_once('\n').map(|(a, b)| (b, a)).unwrap();
                assert_eq!(last, TWO, "{input}\n{got}");
                assert!(refused.lines().all(|line| line.starts_with('!')), "{input}\n{got}");
                check::agree(LIMIT, false, input.as_bytes()).unwrap();
                check::cuts(LIMIT, false, input.as_bytes()).unwrap();
            }
            let lone = read_bounded(
                LIMIT,
                format!("<?xml version=\"1.0\" encoding=\"UTF-7\"?>{wrapped} \n").as_bytes(),
            );
            assert!(lone.lines().all(|line| line.starts_with('!')), "{lone}");
        }
    }
}

// A message that is not over waits with its context: the rest of a broken one in a wrapper may not be read without it.
#[test]
fn a_context_is_kept_while_more_bytes_are_waited_for() {
    let text = format!("<?xml version=\"1.0\" encoding=\"UTF-7\"?><W>{}<Document><A>1</B>", doc("<A>1</A>"));
    let mut decoder = Iso20022Decoder::default();
    let mut leaves = ElementCollector::default();
    let NextIsoMessage::Bad { span, .. } = decoder.next(text.as_bytes(), 0, false, &mut leaves) else {
        panic!("a set that is not read")
    };
    let context = decoder.context().to_vec();
    let next = decoder.next(text.as_bytes(), span.end, false, &mut leaves);
    assert!(matches!(next, NextIsoMessage::Incomplete { .. }), "{next:?}");
    assert_eq!((decoder.context(), context.is_empty()), (&context[..], false));
}

// A file that was cut anywhere, and the next one right after it: the rest of the first is one fault, and all of
// the second is there.
#[test]
fn a_message_cut_anywhere_takes_nothing_else_with_it() {
    let first = format!(
        "<?xml version=\"1.0\"?><!-- c --><Document xmlns=\"{NS}\"><A x='1'>te&amp;xt<![CDATA[<]]></A><?pi i?><B/></Document>"
    );
    let good = doc("<B>2</B>");
    for cut in 1..first.len() {
        let alone = read(&first.as_bytes()[..cut]);
        assert!(alone.starts_with('!') && alone.lines().count() == 1, "{cut}: {alone}");
        for decl in ["", "<?xml version='1.0'?>"] {
            let input = format!("{}{decl}{good}", &first[..cut]);
            let got = read(input.as_bytes());
            let lines: Vec<_> = got.lines().collect();
            // A declaration without a document is no fault of the document that follows.
            assert!(lines.len() <= 3 && lines.last() == Some(&TWO), "{input}\n{got}");
            assert!(lines[..lines.len() - 1].iter().all(|l| l.starts_with('!')), "{input}\n{got}");
            check::agree(1 << 20, false, input.as_bytes()).unwrap();
            check::cuts(1 << 20, false, input.as_bytes()).unwrap();
        }
    }
}

#[test]
fn what_is_not_utf_8_is_told() {
    let mut input = doc("<A>~</A>").into_bytes();
    let at = input.iter().position(|b| *b == b'~').unwrap();
    input[at] = 0xe9;
    let declared = [b"<?xml version='1.0' encoding='utf-8'?>", &input[..]].concat();
    assert_eq!(read(&declared), format!("!bad_utf8 {}\n", declared.len()));
    let utf16: Vec<u8> = doc("<A/>").encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(read(&[&[0xff, 0xfe], &utf16[..]].concat()).starts_with("!bad_encoding "));
    assert!(read(&utf16).starts_with("!bad_encoding "));
    // In pure ASCII the name of the encoding makes no difference.
    let ascii = format!("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>{}", doc("<A>1</A>"));
    check(ascii, ONE);
}

/// The first value of the message `input`, decoded by `decoder`, and the note on its set of characters; or the fault.
fn value_by(decoder: Iso20022Decoder<u32>, input: &[u8]) -> Result<(String, Option<String>), String> {
    let mut out = Vec::new();
    let mut decoder = decoder;
    let mut none = super::json::ElementCollector::default();
    match decoder.next(input, 0, true, &mut none) {
        NextIsoMessage::Message(message) => {
            let text = String::from_utf8_lossy(decoder.text(&message, input)).into_owned();
            out.extend(text.split("<A>").nth(1).and_then(|rest| rest.split('<').next()).map(str::to_owned));
            Ok((out.concat(), decoder.charset_note(&message).map(str::to_owned)))
        }
        NextIsoMessage::Bad { fault, .. } => Err(fault.to_string()),
        other => panic!("{other:?}"),
    }
}

// A payment was refused for one letter, or for the name of its set of characters.
#[test]
fn a_document_in_any_set_is_read() {
    for (declaration, bytes, want, note) in [
        ("", &b"J\xfcrgen"[..], "J\u{fc}rgen", Some("guessed windows-1252")),
        ("<?xml version='1.0'?>", b"5 \x80", "5 \u{20ac}", Some("guessed windows-1252")),
        ("<?xml version='1.0' encoding='EUC-KR'?>", b"\xbe\xc8\xb3\xe7", "\u{c548}\u{b155}", None),
        ("<?xml version='1.0' encoding='Shift_JIS'?>", b"\x83\x65\x83\x58", "\u{30c6}\u{30b9}", None),
        ("<?xml version='1.0' encoding='IBM850'?>", b"Gr\x81\xe1e", "Gr\u{fc}\u{df}e", None),
        ("<?xml version='1.0' encoding='KOI8-R'?>", b"\xc2\xc1", "\u{431}\u{430}", None),
        ("<?xml version='1.0' encoding='x-odd'?>", b"na\xefve", "na\u{fffd}ve", Some("unknown x-odd")),
        ("<?xml version='1.0' encoding='x-odd'?>", b"plain", "plain", None),
        ("", "J\u{fc}rgen".as_bytes(), "J\u{fc}rgen", None),
    ] {
        let text = doc("<A>~</A>");
        let (head, tail) = text.split_once('~').unwrap();
        let input = [declaration.as_bytes(), head.as_bytes(), bytes, tail.as_bytes()].concat();
        let (value, said) = value_by(Iso20022Decoder::default(), &input).unwrap();
        assert_eq!((value.as_str(), said.as_deref()), (want, note), "{declaration}");
        check::cuts(1 << 20, false, &input).unwrap();
    }
    let input = doc("<A>~</A>").into_bytes();
    let input: Vec<u8> = input.iter().map(|b| if *b == b'~' { 0x81 } else { *b }).collect();
    let by = |name| {
        Iso20022Decoder::default().with_fallback(crate::charset::FallbackCharset::by_name(name).unwrap())
    };
    assert_eq!(value_by(by("cp850"), &input).unwrap(), ("\u{fc}".to_owned(), None));
    assert!(value_by(by("euc-kr"), &input).unwrap_err().contains("`EUC-KR`"));
    let lies = [b"<?xml version='1.0' encoding='EUC-KR'?>", &input[..]].concat();
    assert!(value_by(Iso20022Decoder::default(), &lies).unwrap_err().contains("0x81"));
}

// A statement as large as the disk must not be as large in memory, and its header is that of every entry.
#[test]
fn large_messages_flow_in_parts() {
    let entries: String = (0..40).map(|n| format!("<Ntry><N>{n}</N></Ntry>\n")).collect();
    let stmt = format!("<Stmt><Id>S</Id>{entries}<Z>9</Z></Stmt>");
    let large = format!("<W><Document xmlns=\"{NS}\"><H>h</H>{stmt}{stmt}</Document></W>{}", doc("<B>2</B>"));
    for max in [200, 300, 700, 3000] {
        check::agree(max, true, large.as_bytes()).unwrap();
        check::cuts(max, true, large.as_bytes()).unwrap();
        // Where it may not be parted it is refused, and the next one is there.
        let mut out = Vec::new();
        decode_json(&mut large.as_bytes(), "f", max, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out.contains("too_large"), max < large.len() - 100, "{max}: {out}");
        assert!(out.trim_end().ends_with("\"fields\":{\"Document/B\":\"2\"}}"), "{max}: {out}");
    }
}

// The context that is carried from part to part is bounded by the content beside the parts, not by their number. The
// line ends of a statement, one byte for each line, were too much after half a million.
#[test]
fn what_is_carried_does_not_grow_with_the_parts() {
    let entries: String = (0..2_000).map(|n| format!("\n    <Ntry>{n}</Ntry>")).collect();
    let large = doc(&format!("<Stmt><Id>S</Id>{entries}</Stmt>"));
    assert!(check::part_codes(400, large.as_bytes()).is_empty());
}

// In a part, too, characters are looked at; and the parts beside it are there.
#[test]
fn parts_are_refused_one_by_one() {
    let entries: String = (0..40).map(|n| format!("<Ntry><N>{n}</N></Ntry>")).collect();
    let good = doc(&format!("<Stmt>{entries}</Stmt>"));
    for (bad, code) in [(&b"\x02"[..], "bad_char"), (b"\x01", "bad_char")] {
        for entry in [0, 20, 39] {
            let place = format!("<N>{entry}</N>");
            let at = good.find(&place).unwrap() + 3;
            let mut input = good.clone().into_bytes();
            input.splice(at..=at, bad.iter().copied());
            let faults = check::part_codes(300, &input);
            assert_eq!(faults, [code], "{entry}");
            check::agree(300, true, &input).unwrap();
            check::cuts(300, true, &input).unwrap();
        }
    }
}

// A header whose document is beyond the limit is a message of its own, and was once accepted unchecked:
// not UTF-8, or with a document type.
#[test]
fn headers_at_the_limit_are_looked_at_too() {
    const LIMIT: usize = 300;
    let document = doc(&"<A>1</A>".repeat(40));
    for (prolog, text, codes) in [
        ("", &b"1"[..], &["too_large"][..]),
        ("", b"\xff", &["bad_utf8", "too_large"]),
        ("<!DOCTYPE a>", b"1", &["doctype", "too_large"]),
    ] {
        // The limit falls into the document's start tag.
        let header = [prolog.as_bytes(), b"<AppHdr><A>", text, b"</A>"].concat();
        let white = " ".repeat(LIMIT - 12 - header.len());
        let input = [&header, white.as_bytes(), b"</AppHdr>", document.as_bytes()].concat();
        let found = check::part_codes(LIMIT, &input);
        assert!(found.starts_with(codes), "{codes:?}: {found:?}");
        check::agree(LIMIT, false, &input).unwrap();
        check::cuts(LIMIT, false, &input).unwrap();
    }
}

// Nothing is looked at twice for each time it is there: attacks that live on that end in time.
#[test]
fn documents_that_would_blow_up_are_read_in_one_pass() {
    let deep = format!("<Document xmlns=\"{NS}\">{}", "<a>".repeat(200_000));
    assert!(read(deep.as_bytes()).starts_with("!too_deep"));
    let wide = doc(&"<a/>".repeat(100_000));
    assert!(read(wide.as_bytes()).starts_with("pacs.002"));
    let text = doc(&format!("<a>{}</a>", "&amp;".repeat(100_000)));
    assert!(read(text.as_bytes()).starts_with("pacs.002"));
    let unclosed = "<Document ".repeat(50_000);
    assert!(read(unclosed.as_bytes()).starts_with('!'));
    let attribute = format!("<Document xmlns=\"{}", "x".repeat(3 << 20));
    assert!(read(attribute.as_bytes()).starts_with("!too_large"));
}

#[test]
fn samples_for_benches_are_good_and_of_their_size() {
    let input = sample_messages(50, 7);
    assert_eq!(input, sample_messages(50, 7));
    let mut out = Vec::new();
    let summary = decode_json(&mut &input[..], "f", 1 << 20, &mut out).unwrap();
    assert_eq!((summary.messages, summary.errors), (50, 0));
    assert!((2_600..2_900).contains(&(input.len() / 50)), "{}", input.len() / 50);
    check::agree(1 << 20, false, &input).unwrap();
}

// An input that once broke something stays in the corpus; it must not break it again.
#[test]
fn the_corpus_under_every_option() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/iso20022_bytes");
    let entries = std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut count = 0;
    for entry in entries {
        let mut input = std::fs::read(entry.expect("a directory entry").path()).expect("a corpus file");
        for pick in 0..8 {
            input[0] = pick;
            check::any_bytes(&input);
        }
        count += 1;
    }
    assert!(count >= 10, "the corpus has lost files: {count}");
}

// A section with a declaration and the start of a section, cut before the document in it, was said to be truncated; the
// whole of it holds a message.
#[test]
fn a_section_is_cut_before_its_document() {
    let head = b"<W><![CDATA[<?xml version=\"1.0\"?><D\x03<W><![CDATA[\x03";
    let mut input = head.to_vec();
    input.extend(b"<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pacs.002.001.10\"/>]]></W>");
    check::cuts(1 << 20, false, &input).unwrap();
    check::cuts(1 << 20, false, head).unwrap();
}

// A control character after an instruction at the end passed for white space, and nothing reported it.
#[test]
fn a_control_character_at_the_end_is_told() {
    for tail in ["\u{3}\n", "\u{3}", " \u{1f} ", "<!-- --> \u{3}"] {
        for head in ["<?xm.encoding=\"UTF-8\"?>", "<!-- the end -->", "<?end?>\n"] {
            let input = format!("{head}{tail}").into_bytes();
            check::agree(1 << 20, false, &input).unwrap();
            check::cuts(1 << 20, false, &input).unwrap();
        }
    }
}

// A message with one byte changed at a time, all over.
#[test]
fn messages_with_every_byte_changed() {
    let mut input = vec![3];
    input.extend(sample_messages(1, 1));
    for at in 1..input.len() {
        let before = input[at];
        for byte in [b'<', b'>', b'&', b'/', b'"', 0, before ^ 1] {
            input[at] = byte;
            check::any_bytes(&input);
        }
        input[at] = before;
    }
}

/// Pieces that make XML, good and bad.
fn piece() -> impl Strategy<Value = String> {
    let fixed = |s: &'static str| Just(s.to_owned()).boxed();
    prop_oneof![
        4 => Just(format!("<Document xmlns=\"{NS}\">")),
        4 => fixed("</Document>"),
        2 => fixed("<AppHdr>"), 2 => fixed("</AppHdr>"),
        4 => fixed("<Ntry>"), 4 => fixed("</Ntry>"), 2 => fixed("<Ntry/>"),
        3 => fixed("<A>"), 3 => fixed("</A>"), 1 => fixed("<A x='1'/>"), 1 => fixed("<A x=\"&lt;\" y = ''>"),
        1 => fixed("<MsgDefIdr>pacs.008.001.07</MsgDefIdr>"),
        1 => fixed("<W xmlns:p='u'>"), 1 => fixed("</W>"), 1 => fixed("<p:A>"), 1 => fixed("</p:A>"),
        1 => fixed("<![CDATA["), 1 => fixed("]]>"), 1 => fixed("<!-- c -->"), 1 => fixed("<?p i?>"),
        1 => fixed("<?xml version=\"1.0\"?>"), 1 => fixed("&amp;"), 1 => fixed("&#x41;"), 1 => fixed("&"),
        3 => fixed(" \n"), 2 => fixed("text"), 1 => fixed("\u{e9}\r\n"), 1 => fixed("<"), 1 => fixed(">"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn fast_and_slow_agree_at_every_cut(
        pieces in prop::collection::vec(piece(), 0..24),
        max in prop_oneof![Just(64usize), Just(150), Just(400), Just(1 << 20)],
        part in any::<bool>(),
    ) {
        let input = pieces.concat();
        prop_assert_eq!(check::agree(max, part, input.as_bytes()), Ok(()));
        prop_assert_eq!(check::cuts(max, part, input.as_bytes()), Ok(()));
    }

    // A document that is well formed is accepted, whatever it looks like.
    #[test]
    fn good_documents_are_taken(tree in tree()) {
        let input = doc(&tree);
        let got = read(input.as_bytes());
        prop_assert!(got.starts_with("pacs.002.001.11"), "{}\n{}", input, got);
        prop_assert_eq!(check::agree(1 << 20, false, input.as_bytes()), Ok(()));
    }
}

/// Elements with text or elements in them.
fn tree() -> impl Strategy<Value = String> {
    let leaf = "[a-z &;]{0,3}".prop_map(|t: String| {
        let t = t.replace(';', "<![CDATA[<]]>").replace('&', "&amp;");
        format!("<Leaf a='1'>{t}</Leaf>")
    });
    leaf.prop_recursive(5, 40, 4, |inner| {
        (prop::collection::vec(inner, 0..4), "[A-Z][a-z0-9]{0,12}")
            .prop_map(|(inner, name)| format!("<{name}>\n {}</{name}>", inner.concat()))
    })
}
