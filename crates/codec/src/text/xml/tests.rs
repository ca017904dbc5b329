use super::*;
use crate::text::decode_json;
use crate::twin::text::check;
use crate::twin::text::xml::check::{agree, any_bytes};
use crate::twin::text::xml::sample::{SampleFeedKind, sample_feed};
use proptest::prelude::*;

/// The content of each message of this input: its kind and its values as `path=text`, or the code of its fault and
/// where it is.
fn decoded(input: &[u8]) -> Vec<Vec<String>> {
    let (mut decoder, mut leaves, mut at) = (XmlDecoder::default(), PathValues::default(), 0);
    let mut all = Vec::new();
    loop {
        at = match decoder.next(input, at, true, &mut leaves) {
            NextTextMessage::Message(message) => {
                let mut values = vec![message.kind.to_owned()];
                values.extend(leaves.iter().map(|(path, text)| format!("{path}={text}")));
                all.push(values);
                message.span.end
            }
            NextTextMessage::Bad { span, fault } => {
                all.push(vec![fault.code.as_str().to_owned(), format!("{}..{}", span.start, span.end)]);
                span.end
            }
            _ => return all,
        }
    }
}

fn one(input: &str) -> Vec<String> {
    let mut all = decoded(input.as_bytes());
    assert_eq!(all.len(), 1, "{all:?}");
    all.pop().unwrap()
}

// A feed is read to its end by readers that want a tree; one that never ends was never read.
#[test]
fn items_are_told_one_by_one_with_what_is_around_them() {
    let feed = "\u{feff}<?xml version='1.0'?>\n<rss version=\"2.0\"><channel>\n<title>Wire &amp; Co</title>\n<!-- <item> is next --><item>\n<title> A &lt;b&gt;\u{e9}&#x20AC; </title><link>https://x/?a=1&amp;b=2</link>\n<category>x</category><category domain='t'>y</category><enclosure url=\"u\"/>\n</item>\n<item/>\n<ttl>5</ttl></channel></rss>\n";
    assert_eq!(
        decoded(feed.as_bytes()),
        [
            vec!["feed", "rss@version=2.0", "rss/channel/title=Wire & Co"],
            vec![
                "item",
                "title=A <b>\u{e9}\u{20ac}",
                "link=https://x/?a=1&b=2",
                "category=x",
                "category@domain=t",
                "category=y",
                "enclosure@url=u",
                "enclosure=",
            ],
            vec!["item"],
            vec!["feed", "ttl=5"],
        ]
    );
}

// Only the text before a word in italics was once reported.
#[test]
fn markup_is_text() {
    let entry = "<a:entry xmlns:a='urn:a'><a:title type='xhtml'><div>A  <i>b</i>\n c</div></a:title><a:content type=\"xhtml\"><div xmlns='urn:x'><head><title>no</title></head><h1>One</h1><p>Two &amp;<br/>three</p><script>x</script></div></a:content><x:note>so <b>it</b> is</x:note><pair><l>1</l><r>2</r></pair><summary type=\"html\">&lt;p>as it is&lt;/p></summary><c><![CDATA[ <raw> & ]]> tail</c></a:entry>";
    assert_eq!(
        one(entry),
        [
            "entry",
            "title@type=xhtml",
            "title=A b c",
            "content@type=xhtml",
            "content=One\nTwo &\nthree",
            "x:note=so it is",
            "pair/l=1",
            "pair/r=2",
            "summary@type=html",
            "summary=<p>as it is</p>",
            "c=<raw> &  tail",
        ]
    );
    let item = "<newsItem guid=\"g\" version='2'><contentSet><inlineXML contenttype='t'><nitf><head><title>no</title></head><body><hl1>Head</hl1><block><p>One.</p><p>Two.</p></block></body></nitf></inlineXML></contentSet></newsItem>";
    assert_eq!(
        one(item),
        [
            "newsItem",
            "@guid=g",
            "@version=2",
            "contentSet/inlineXML@contenttype=t",
            "contentSet/inlineXML=Head\nOne.\nTwo."
        ]
    );
}

// A fault in an item must cost that item only.
#[test]
fn each_fault_has_its_code_and_its_neighbours_are_kept() {
    let many = "<e/>".repeat(20_000);
    let deep = format!("<item>{}{}</item>", "<e>".repeat(70), "</e>".repeat(70));
    let wide = format!("<item><e {}/></item>", (0..70).map(|n| format!("a{n}='' ")).collect::<String>());
    for (bad, code) in [
        (&b"<item><title>x</item>"[..], "bad_xml"),
        (b"<item><title>x</title>", "truncated"),
        (b"<item><title>&nbsp;</title></item>", "bad_entity"),
        (b"<item><title a='&#0;'/></item>", "bad_entity"),
        (b"<item><title>\x08</title></item>", "bad_xml"),
        (b"<item><title a=1/></item>", "bad_xml"),
        (b"<item><title a='1'b='2'/></item>", "bad_xml"),
        (b"<item><title a='1' a='2'/></item>", "duplicate"),
        (b"<item><a:b:c/></item>", "bad_xml"),
        (b"<item><1/></item>", "bad_xml"),
        (b"<item><!ELEMENT a ANY></item>", "bad_xml"),
        (b"<item><!DOCTYPE a></item>", "doctype"),
        (b"<!DOCTYPE rss [<!ENTITY a \"<item>>\"><!-- ' -->]>", "doctype"),
        (b"text", "garbage"),
        (b"<![CDATA[<item>]]>", "garbage"),
        (deep.as_bytes(), "too_deep"),
        (wide.as_bytes(), "too_deep"),
        (format!("<item>{many}</item>").as_bytes(), "too_deep"),
    ] {
        let good = b"<item><title>good</title></item>";
        let all = decoded(&[&good[..], b"\n", bad, b"\n", good].concat());
        let shown = String::from_utf8_lossy(&bad[..bad.len().min(60)]);
        let codes: Vec<_> = all.iter().map(|message| message[0].as_str()).collect();
        assert_eq!(codes, ["item", code, "item"], "{shown}: {all:?}");
        assert!(all[0] == all[2] && all[1][1].starts_with("33.."), "{shown}: {all:?}");
    }
}

// Only the declaration was refused, and the text behind it was read as UTF-8.
#[test]
fn items_in_a_set_that_is_not_read_are_refused() {
    let item = "<item><title>+AOk-</title></item>";
    for (encoding, items) in [("UTF-7", "bad_encoding"), ("iso-2022-jp", "bad_encoding"), ("utf-16", "item")]
    {
        let document = format!("<?xml version=\"1.0\" encoding=\"{encoding}\"?>{item}{item}\n");
        let next = format!("<?xml version=\"1.0\"?>{item}");
        let all = decoded(format!("{document}{next}").as_bytes());
        let codes: Vec<_> =
            all.iter().map(|message| message[0].as_str()).filter(|code| *code != "feed").collect();
        let behind = codes.len() - 3;
        assert_eq!(codes[behind..], [items, items, "item"], "{encoding}: {all:?}");
        assert!(codes[..behind].iter().all(|code| *code == "bad_encoding"), "{encoding}: {all:?}");
    }
}

// Names that expand to names were a gigabyte in ten lines; here they are a document type and a reference to nothing.
#[test]
fn nothing_is_expanded() {
    let bomb = "<?xml version=\"1.0\"?><!DOCTYPE lolz [<!ENTITY lol \"lol\"><!ENTITY lol2 \"&lol;&lol;&lol;\">]><rss><channel><item><title>&lol2;</title></item><item><title>x</title></item></channel></rss>";
    let codes: Vec<_> = decoded(bomb.as_bytes()).into_iter().map(|mut message| message.remove(0)).collect();
    assert_eq!(codes, ["doctype", "feed", "bad_entity", "item"]);
    let file = "<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><item>&x;</item>";
    let codes: Vec<_> = decoded(file.as_bytes()).into_iter().map(|mut message| message.remove(0)).collect();
    assert_eq!(codes, ["doctype", "bad_entity"]);
}

// Each item that was not over was looked through to the end of the file, and so was the next one.
#[test]
fn what_never_ends_costs_no_more_than_its_bytes() {
    for again in [
        "<item><x>",
        "<item><!-- ",
        "<item><![CDATA[",
        "<!DOCTYPE [<item/>",
        "<item a='",
        "<item",
        "<x><item>",
        "<?xml ?><item><![CDATA[",
    ] {
        let all = decoded(again.repeat(200_000).as_bytes());
        assert!(!all.is_empty(), "{again}");
    }
    let long = format!("<item>{}</item><item>x</item>", "x".repeat(300));
    let (mut decoder, mut leaves) = (XmlDecoder::default().with_max_message(100), PathValues::default());
    let next = decoder.next(long.as_bytes(), 0, true, &mut leaves);
    let NextTextMessage::Bad { span, fault } = next else { panic!("{next:?}") };
    assert_eq!((span.end, fault.code), (100, TextFaultCode::TooLarge));
    // Markup in markup was kept once for each element around it.
    let words = "word ".repeat(100_000);
    let mixed = format!("<item>{}{words}{}</item>", "<b>t".repeat(60), "</b>".repeat(60));
    let next = XmlDecoder::default().next(mixed.as_bytes(), 0, true, &mut leaves);
    assert!(matches!(next, NextTextMessage::Message(_)) && leaves.mark() < 2 * mixed.len(), "{next:?}");
    assert_eq!(one("<rss><channel><title>x"), ["truncated", "0..22"]);
    let utf16: Vec<u8> = "<rss><item/></rss>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(decoded(&utf16), [["bad_encoding", "0..36"]]);
}

// A page that says that the feed has moved was a feed without news.
#[test]
fn what_is_no_feed_is_not_taken_for_one() {
    assert_eq!(one("<html><body><p>moved</p></body></html>")[0], "other");
    for (head, want) in [
        ("<?xml version='1.0'?>\n<!-- x --><rss version='2.0'>", Some("rss")),
        ("<rdf:RDF xmlns:rdf='u'>", Some("RDF")),
        ("<newsItem>", Some("newsItem")),
        ("<html>", None),
        ("<", None),
        ("", None),
        ("{}", None),
    ] {
        assert_eq!(root(head.as_bytes()), want, "{head}");
    }
}

#[test]
fn samples_are_what_the_twin_reads() {
    for sample in [SampleFeedKind::Rss, SampleFeedKind::Atom, SampleFeedKind::NewsMl] {
        let feed = sample_feed(sample, 50, 3);
        agree(&mut XmlDecoder::default(), &feed).unwrap();
        let all = decoded(&feed);
        assert_eq!(all.len(), 51);
        assert!(all[0][0] == "feed" && all[1..].iter().all(|message| message.len() > 5), "{all:?}");
        let mut out = Vec::new();
        let summary = decode_json(&mut &feed[..], "f", &mut XmlDecoder::default(), &mut out).unwrap();
        assert_eq!((summary.messages, summary.errors, summary.bytes), (51, 0, feed.len() as u64));
    }
    let feed = sample_feed(SampleFeedKind::Rss, 2, 3);
    assert!(feed[XmlDecoder::cut(&feed)..].starts_with(b"<item>\n"));
    assert_eq!(XmlDecoder::cut(b"<item><a/></item>"), 0);
    check::cuts(&mut XmlDecoder::default(), 2000, &feed[..600]).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn any_text_near_xml_agrees_with_the_twin(
        pick in any::<u8>(),
        parts in prop::collection::vec(prop::sample::select(&[
            "<item>", "</item>", "<item/>", "<a:entry x='1'>", "</a:entry>", "<p>", "</p>", "<b>", "</b>", "<br/>", "<a:q/>", "<inlineXML>",
            "</inlineXML>", "<c type='xhtml'>", "</c>", "<head>", "</head>", "text", " ", "\n", "\r\n", "&amp;", "&#32;", "&#65;", "&no;",
            "<![CDATA[ <x> ]]>", "<!-- <item> -->", "<?xml version='1.0'?>", "<?pi ?>", "<!DOCTYPE a>", "<rss>", "</rss>", "<t xmlns:a='b' d=\"&lt;\">",
            "</t>", "\u{feff}", "\u{e9}", "<", ">", "<!", "<item",
        ][..]), 0..24),
    ) {
        let mut data = vec![pick];
        data.extend(parts.concat().bytes());
        any_bytes(&data);
    }
}
