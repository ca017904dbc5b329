//! Seeded feeds for tests, as public formats have them. Equal seeds give equal bytes.

use std::fmt::Write as _;

/// Which format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleFeedKind {
    /// RSS 2.0.
    Rss,
    /// Atom (RFC 4287).
    Atom,
    /// A newsMessage of NewsML-G2.
    NewsMl,
}

/// Makes a feed of this format with `count` items of 300 to 800 bytes.
#[must_use]
pub fn sample_feed(sample: SampleFeedKind, count: usize, seed: u64) -> Vec<u8> {
    let mut rng = seed;
    let (head, foot) = match sample {
        SampleFeedKind::Rss => (
            "<rss version=\"2.0\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xmlns:content=\"http://purl.org/rss/1.0/modules/content/\">\n<channel>\n<title>Example Wire</title>\n<link>https://wire.example/</link>\n<description>News &amp; views</description>\n",
            "</channel>\n</rss>\n",
        ),
        SampleFeedKind::Atom => (
            "<feed xmlns=\"http://www.w3.org/2005/Atom\">\n<title>Example Wire</title>\n<id>urn:wire.example</id>\n<updated>2026-03-02T23:59:59Z</updated>\n",
            "</feed>\n",
        ),
        SampleFeedKind::NewsMl => (
            "<newsMessage xmlns=\"http://iptc.org/std/nar/2006-10-01/\">\n<header><sent>2026-03-02T23:59:59Z</sent><sender>wire.example</sender></header>\n<itemSet>\n",
            "</itemSet>\n</newsMessage>\n",
        ),
    };
    let mut out = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{head}");
    for n in 0..count {
        let mut next = |bound: u64| {
            // SplitMix64.
            rng = rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = rng;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ z >> 31) % bound
        };
        let second = next(86_400);
        let clock = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
        let ticker = TICKERS[next(TICKERS.len() as u64) as usize];
        let words = WORDS[next(WORDS.len() as u64) as usize];
        let urgency = 1 + next(9);
        // Writing to a String cannot fail.
        let _ = match sample {
            SampleFeedKind::Rss => writeln!(
                out,
                "<item>\n<title>{ticker}: {words}</title>\n<link>https://wire.example/{n}</link>\n<guid isPermaLink=\"false\">wire-{n:06}</guid>\n<pubDate>Mon, 02 Mar 2026 {clock} GMT</pubDate>\n<dc:creator>Desk {urgency}</dc:creator>\n<category domain=\"ticker\">{ticker}</category>\n<description><![CDATA[<p>{words}</p>]]></description>\n<content:encoded>&lt;p&gt;{words} &amp;#8212; {ticker}&lt;/p&gt;</content:encoded>\n</item>"
            ),
            SampleFeedKind::Atom => writeln!(
                out,
                "<entry>\n<id>urn:wire.example:{n:06}</id>\n<title type=\"text\">{ticker}: {words}</title>\n<updated>2026-03-02T{clock}.5+00:00</updated>\n<author><name>Desk {urgency}</name></author>\n<link rel=\"alternate\" href=\"https://wire.example/{n}?a=1&amp;b=2\"/>\n<category term=\"{ticker}\" scheme=\"https://wire.example/tickers\"/>\n<content type=\"xhtml\"><div xmlns=\"http://www.w3.org/1999/xhtml\"><p>{words} <b>{ticker}</b>.</p><p>More\n follows.</p></div></content>\n</entry>"
            ),
            SampleFeedKind::NewsMl => writeln!(
                out,
                "<newsItem guid=\"tag:wire.example,2026:{n:06}\" version=\"{}\" standard=\"NewsML-G2\" standardversion=\"2.30\">\n<itemMeta><itemClass qcode=\"ninat:text\"/><provider qcode=\"nprov:EXW\"/><versionCreated>2026-03-02T{clock}Z</versionCreated><pubStatus qcode=\"stat:usable\"/></itemMeta>\n<contentMeta><urgency>{urgency}</urgency><language tag=\"en\"/><headline>{ticker}: {words}</headline><subject type=\"cpnat:organisation\" qcode=\"org:{n}\"><name>{ticker} plc</name></subject></contentMeta>\n<assert qcode=\"org:{n}\"><organisationDetails><hasInstrument symbol=\"{ticker}\" symbolsrc=\"symsrc:T\"/></organisationDetails></assert>\n<contentSet><inlineXML contenttype=\"application/xhtml+xml\"><html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title>no text</title></head><body><p>{words}</p><p>{ticker}<br/>told</p></body></html></inlineXML></contentSet>\n</newsItem>",
                1 + next(3)
            ),
        };
    }
    out.push_str(foot);
    out.into_bytes()
}

const TICKERS: [&str; 6] = ["VOD", "SAP", "ASML", "BARC", "NESN", "AZN"];

const WORDS: [&str; 5] = [
    "profit above what was expected",
    "K\u{fc}rzung &amp; Ausblick",
    "shares &lt;halted&gt; after a \u{201c}fat finger\u{201d}",
    "no comment",
    "a merger is off the table, the board says",
];
