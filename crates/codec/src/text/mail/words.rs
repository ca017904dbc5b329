//! Encoded words of RFC 2047, the two encodings of MIME, and sets of characters.

use super::charsets::MailCharsets;
use std::borrow::Cow;
use std::ops::Range;

/// Decodes the encoded words of a field. A word that cannot be decoded stays unchanged. If a word's set is unknown,
/// only its ASCII characters are read.
pub(super) fn decode_words<'v>(value: &'v str, charsets: &MailCharsets) -> Cow<'v, str> {
    if !value.contains("=?") {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(value.len());
    let mut run: Option<EncodedWordRun<'v>> = None;
    let mut offset = 0;
    while offset < value.len() {
        let word_start = value[offset..].find("=?").map_or(value.len(), |n| offset + n);
        let text_before = &value[offset..word_start];
        let Some((set, bytes, length)) = encoded_word(&value[word_start..]) else {
            flush(&mut out, run.take(), value, charsets);
            out.push_str(text_before);
            offset = value.len().min(word_start + 2);
            out.push_str(&value[word_start..offset]);
            continue;
        };
        let word_end = word_start + length;
        // Blanks between encoded words are none of the text.
        let blank = run.is_some() && text_before.chars().all(char::is_whitespace);
        match &mut run {
            Some(run) if blank && run.set.eq_ignore_ascii_case(set) => {
                run.bytes.extend_from_slice(&bytes);
                run.range.end = word_end;
            }
            _ => {
                flush(&mut out, run.take(), value, charsets);
                if !blank {
                    out.push_str(text_before);
                }
                run = Some(EncodedWordRun { set, bytes, range: word_start..word_end });
            }
        }
        offset = word_end;
    }
    flush(&mut out, run, value, charsets);
    Cow::Owned(out)
}

/// Consecutive encoded words of one set; each may hold half of a character.
struct EncodedWordRun<'v> {
    set: &'v str,
    bytes: Vec<u8>,
    /// The range of the words in the text.
    range: Range<usize>,
}

fn flush(out: &mut String, run: Option<EncodedWordRun<'_>>, value: &str, charsets: &MailCharsets) {
    let Some(run) = run else { return };
    let mut text = String::new();
    match charsets.word(run.set, &run.bytes, &mut text) {
        // A reader of the output would take a line end in a field for the end of the field.
        Some(()) => out.extend(text.chars().filter(|c| !matches!(c, '\r' | '\n'))),
        None => out.push_str(&value[run.range]),
    }
}

/// Decodes the encoded word at the start of `text`: returns its set, its bytes and its length.
fn encoded_word(text: &str) -> Option<(&str, Vec<u8>, usize)> {
    let word_left = text.strip_prefix("=?")?;
    let (set, rest) = word_left.split_once('?')?;
    let (encoding, rest) = rest.split_once('?')?;
    // No `?` is within: what is looked at again and again in a field full of starts is a short stretch each time.
    let (content, rest) = rest.split_once('?')?;
    if !rest.starts_with('=') {
        return None;
    }
    // A language may follow the set.
    let length = set.len() + encoding.len() + content.len() + "=????=".len();
    let set = set.split('*').next().unwrap_or_default();
    if !set.bytes().all(|b| b.is_ascii_graphic()) || content.contains([' ', '\t']) {
        return None;
    }
    let bytes = match encoding {
        "B" | "b" => base64(content.as_bytes())?,
        "Q" | "q" => decode_quoted_printable(content.replace('_', " ").as_bytes(), false),
        _ => return None,
    };
    Some((set, bytes, length))
}

/// Decodes Base64 and skips other bytes between its letters. `None` where it is cut off, or continues after its end:
/// letters there would be read out of step.
pub(super) fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut bit_count, mut pads) = (0u32, 0, 0);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' if pads > 0 => return None,
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                pads += 1;
                continue;
            }
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        bit_count += 1;
        if bit_count == 4 {
            out.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, bit_count) = (0, 0);
        }
    }
    match (bit_count, pads) {
        (0, _) => {}
        (2, 2..) => out.push((bits >> 4) as u8),
        (3, 1..) => out.extend_from_slice(&((bits >> 2) as u16).to_be_bytes()),
        _ => return None,
    }
    Some(out)
}

/// Decodes quoted-printable; a malformed escape stays unchanged. `is_body`: the text is of a body, with soft line ends,
/// and blanks at the end of a line are dropped.
pub(super) fn decode_quoted_printable(text: &[u8], is_body: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let hex = |b: Option<&u8>| b.and_then(|b| char::from(*b).to_digit(16));
    for line in text.split_inclusive(|b| *b == b'\n') {
        let mut content = line;
        let mut end: &[u8] = b"";
        if is_body {
            content = line.trim_ascii_end();
            let has_line_end = line.ends_with(b"\n");
            match content.strip_suffix(b"=") {
                Some(soft) => content = soft,
                None if has_line_end => end = b"\n",
                None => {}
            }
        }
        let mut offset = 0;
        while let Some(&byte) = content.get(offset) {
            match (byte, hex(content.get(offset + 1)), hex(content.get(offset + 2))) {
                (b'=', Some(high), Some(low)) => {
                    out.push((high << 4 | low) as u8);
                    offset += 3;
                }
                _ => {
                    out.push(byte);
                    offset += 1;
                }
            }
        }
        out.extend_from_slice(end);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // A character split over two words was two question marks.
    #[test]
    fn encoded_words_are_decoded() {
        for (text, want) in [
            ("=?utf-8?q?Ann_=C3=84mes?=", "Ann Ämes"),
            ("=?UTF-8?B?R3LDvMOfZQ==?= aus K=?x", "Grüße aus K=?x"),
            ("=?iso-8859-1?Q?a?= =?ISO-8859-1?Q?=E9?=\t=?utf-8?q?b?= c", "aéb c"),
            ("=?utf-8?q?=C3?= =?utf-8?q?=84?=", "Ä"),
            ("=?utf-8*en?q?x?=", "x"),
            ("=?utf-8?q?=C3?= tail", "=?utf-8?q?=C3?= tail"),
            ("=?nope?q?sell=20x=E9?=", "sell x\u{fffd}"),
            ("=?cp850?q?Gr=81=E1e?=", "Grüße"),
            ("=?us-ascii?q?caf=E9?=", "café"),
            ("=?utf-8?b?QQ?=", "=?utf-8?b?QQ?="),
            ("=?utf-8?x?QQ?=", "=?utf-8?x?QQ?="),
            ("=?utf-8?q?a?b?= =?utf-8?q?c?=", "=?utf-8?q?a?b?= c"),
            ("a =?utf-8?q?b?=", "a b"),
            ("=?utf-8?q?two words?=", "=?utf-8?q?two words?="),
            ("=?utf-8?q?a=0D=0ABcc:_x?=", "aBcc: x"),
            ("=?koi8-r?B?8NLJ18XU?=", "Привет"),
            ("plain", "plain"),
        ] {
            assert_eq!(decode_words(text, &MailCharsets::default()), want, "{text}");
        }
    }

    #[test]
    fn encodings_are_undone() {
        for (text, want) in [("a=3Db=\r\nc \r\nd=E4\n=zz=", "a=bc\nd\u{fffd}\n=zz"), ("x=", "x"), ("", "")] {
            assert_eq!(
                String::from_utf8_lossy(&decode_quoted_printable(text.as_bytes(), true)),
                want,
                "{text:?}"
            );
        }
        for (text, want) in [
            ("QUJD\r\nREU=", Some("ABCDE")),
            ("QQ==", Some("A")),
            ("", Some("")),
            ("QUJD QQ", None),
            ("QQ==QUJD", None),
            ("QQ==\r\n-- \r\n", Some("A")),
            ("Q", None),
        ] {
            assert_eq!(base64(text.as_bytes()).as_deref(), want.map(str::as_bytes), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn base64_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(base64(crate::twin::text::mail::sample::base64(&bytes).as_bytes()), Some(bytes));
        }

        #[test]
        fn any_field_is_some_text(value in "(=\\?|\\?=|utf-8|\\?[qb]\\?|[ a-zA-Z=_ä]|=[0-9A-F]{2}){0,12}") {
            decode_words(&value, &MailCharsets::default());
        }
    }
}
