//! A seeded mbox for tests. Equal seeds give equal bytes.

use crate::text::time::MONTHS;
use std::fmt::Write as _;

/// Makes an mbox of `count` messages, of 300 to 1,500 bytes: plain, quoted-printable, base64, with parts and
/// attachments.
#[must_use]
pub fn sample_mbox(count: usize, seed: u64) -> Vec<u8> {
    let mut rng = seed;
    let mut out = String::new();
    for n in 0..count {
        let mut next = |bound: u64| {
            // SplitMix64.
            rng = rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = rng;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ z >> 31) % bound
        };
        let (from, to, cc) = (next(4) as usize, next(4) as usize, next(4) as usize);
        let (day, month) = (1 + next(28), MONTHS[next(12) as usize]);
        let clock = format!("{:02}:{:02}:{:02}", next(24), next(60), next(60));
        let zone = ["+0000", "+0100", "-0500", "EST"][next(4) as usize];
        let words = WORDS[next(4) as usize];
        let (encoded, subject_text) = SUBJECTS[next(4) as usize];
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "From {0}@bank.example Mon {month} {day:2} {clock} 2026\nReceived: from relay.example (relay [192.0.2.7])\n\tby mx.example; Mon, {day} {month} 2026 {clock} {zone}\nDate: Mon, {day} {month} 2026 {clock} {zone}\nMessage-ID: <{n:06}.{1}@mx.example>\nFrom: \"{2}\" <{0}@bank.example>\nTo: {3}@bank.example,\n {4} <desk@fund.example>\nCc: {5}@bank.example\nSubject: {encoded}\nX-Desk: {subject_text}\nMIME-Version: 1.0\n",
            PEOPLE[from].0,
            next(1_000_000),
            PEOPLE[from].1,
            PEOPLE[to].0,
            PEOPLE[to].1.replace(',', ""),
            PEOPLE[cc].0,
        );
        let _ = match next(4) {
            0 => write!(out, "\n{words}\n>From here on it is simple.\n\n"),
            1 => write!(
                out,
                "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n{words} caf=E9, soft=\n line\n\n"
            ),
            2 => write!(
                out,
                "Content-Type: text/plain; charset=\"utf-8\"\nContent-Transfer-Encoding: base64\n\n{}\n\n",
                base64(format!("{words} – für dich\n").as_bytes())
            ),
            _ => write!(
                out,
                "Content-Type: multipart/mixed; boundary=\"b{n}\"\n\nFor old readers.\n--b{n}\nContent-Type: multipart/alternative;\n boundary=a{n}\n\n--a{n}\n\n{words}\n--a{n}\nContent-Type: text/html\n\n<p>{words}</p>\n--a{n}--\n--b{n}\nContent-Type: text/csv; name=fills.csv\nContent-Disposition: attachment; filename=fills.csv\nContent-Transfer-Encoding: base64\n\n{}\n--b{n}--\n\n",
                base64(b"a,b\n1,2\n")
            ),
        };
    }
    out.into_bytes()
}

/// Encodes bytes in base64, in lines of 76 letters.
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for (n, three) in bytes.chunks(3).enumerate() {
        if n > 0 && n % 19 == 0 {
            out.push('\n');
        }
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= three.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

const PEOPLE: [(&str, &str); 4] =
    [("ann", "Ames, Ann"), ("bob", "Bob Bell"), ("cy", "Cy Cole"), ("dee", "Dee Dorn")];

const SUBJECTS: [(&str, &str); 4] = [
    ("the fix", "rates"),
    ("=?utf-8?q?K=C3=B6nnen_wir?=\n =?utf-8?q?_reden=3F?=", "equities"),
    ("Re: =?iso-8859-1?B?ZmFpcmU=?= prices", "fx"),
    ("lunch", "rates"),
];

const WORDS: [&str; 4] = [
    "lift them before the fix",
    "can we take this to the phone?",
    "attached are today's fills",
    "nothing to see here",
];
