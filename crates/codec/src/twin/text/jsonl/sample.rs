//! Seeded lines of news and chat for tests, as public formats have them. Equal seeds give equal bytes.

use std::fmt::Write as _;

/// Which format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonlSampleFormat {
    /// News in the words of IPTC's ninjs 1.
    Ninjs,
    /// Messages in the words of Slack's message events.
    Slack,
    /// Messages in the words of Symphony's messages, version 4.
    Symphony,
}

/// Makes `count` lines of this format, of 300 to 600 bytes.
#[must_use]
pub fn sample_lines(sample: JsonlSampleFormat, count: usize, seed: u64) -> Vec<u8> {
    let mut rng = seed;
    let mut out = String::with_capacity(count * 500);
    for n in 0..count {
        let mut next = |bound: u64| {
            // SplitMix64.
            rng = rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = rng;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ z >> 31) % bound
        };
        let (second, micros) = (next(86_400), next(1_000_000));
        let (ticker, mic) = TICKERS[next(6) as usize];
        let (other_ticker, other_mic) = TICKERS[next(6) as usize];
        let (sender, recipient) = (next(PEOPLE.len() as u64) as usize, next(PEOPLE.len() as u64) as usize);
        let words = WORDS[next(WORDS.len() as u64) as usize];
        // Writing to a String cannot fail.
        let _ = match sample {
            JsonlSampleFormat::Ninjs => {
                let clock = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
                writeln!(
                    out,
                    r#"{{"uri":"urn:newsml:wire.example:20260302:{n:06}","type":"text","version":"1","versioncreated":"2026-03-02T{clock}Z","urgency":{},"language":"en","headline":"{ticker}: {words}","body_text":"{words} \u2014 {ticker} and {other_ticker}, told \"as is\".\nMore follows.","organisation":[{{"name":"{ticker} plc","rel":"about","symbols":[{{"ticker":"{ticker}","exchange":"{mic}"}}]}},{{"name":"{other_ticker} AG","symbols":[{{"ticker":"{other_ticker}","exchange":"{other_mic}"}}]}}],"infosource":[{{"name":"Example Wire"}}]}}"#,
                    1 + next(9),
                )
            }
            JsonlSampleFormat::Slack => {
                let ts = format!("{}.{micros:06}", DAY + second);
                writeln!(
                    out,
                    r#"{{"type":"message","channel":"C0{:03}","channel_type":"channel","user":"U{sender:04}","text":"{words} {ticker} \ud83d\ude80 <@U{recipient:04}>","ts":"{ts}","event_ts":"{ts}","team":"T0001","client_msg_id":"{:08x}-0000-4000-8000-{n:012x}","blocks":[{{"type":"rich_text","elements":[]}}],"reactions":[{{"name":"eyes","count":{},"users":["U{recipient:04}"]}}]}}"#,
                    next(20),
                    next(1 << 32),
                    1 + next(5),
                )
            }
            JsonlSampleFormat::Symphony => writeln!(
                out,
                r#"{{"messageId":"M{n:09}","timestamp":{}{:03},"message":"<div data-format=\"PresentationML\" data-version=\"2.0\">{words} {ticker}</div>","user":{{"userId":{},"displayName":"{}","email":"{}@bank.example"}},"stream":{{"streamId":"S{:04}","streamType":{{"type":"ROOM"}},"external":false}},"externalRecipients":false,"originalFormat":"com.symphony.messageml.v2","sid":"{:x}"}}"#,
                DAY + second,
                micros / 1000,
                68_719_476_742u64 + sender as u64,
                PEOPLE[sender],
                PEOPLE[sender].to_lowercase().replace(' ', "."),
                next(20),
                next(1 << 40),
            ),
        };
    }
    out.into_bytes()
}

/// 2026-03-02, in seconds since 1970.
const DAY: u64 = 1_772_409_600;

const TICKERS: [(&str, &str); 6] =
    [("VOD", "XLON"), ("SAP", "XETR"), ("NESN", "XSWX"), ("BHP", "XLON"), ("ASML", "XAMS"), ("DBK", "XETR")];

const PEOPLE: [&str; 6] = ["Ann Ames", "Bob Bell", "Cy Cole", "Dee Dorn", "Eve Ek", "Flo Frey"];

const WORDS: [&str; 5] = [
    "profit above what was expected",
    "can you show me size here",
    "let us take this offline",
    "the fix is at four, lift them before",
    "board proposes a dividend of 0.35",
];
