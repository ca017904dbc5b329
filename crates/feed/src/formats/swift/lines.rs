//! Statement lines with text that is not UTF-8.

use unitape_codec::charset::FallbackCharset;
use unitape_codec::swift_mt::{SwiftFieldTokenizer, SwiftTag, entries};
use unitape_model::Refusal;

/// Decodes the statement lines of `text` as JSON; reads a line that is not UTF-8 with `fallback`. Returns also
/// whether that was a guess.
///
/// # Errors
/// Fails if a line has another form, or if its amount or references are not ASCII: lines are matched by them.
#[cold]
pub(super) fn decoded_entries(text: &[u8], fallback: FallbackCharset) -> Result<(Vec<u8>, bool), Refusal> {
    let mut fields = SwiftFieldTokenizer::new();
    fields.read(text);
    for field in fields.as_slice().iter().filter(|field| field.tag == SwiftTag::new(b"61")) {
        let first_line = field.slice(text).split(|b| *b == b'\n').next().unwrap_or_default();
        if std::str::from_utf8(first_line).is_err() {
            return Err(Refusal::NotUtf8);
        }
    }
    let mut decoded = String::with_capacity(text.len() + text.len() / 8);
    for line in text.split_inclusive(|b| *b == b'\n') {
        match std::str::from_utf8(line) {
            Ok(line) => decoded.push_str(line),
            Err(_) => fallback.decode(line, &mut decoded).map_err(|_| Refusal::NotUtf8)?,
        }
    }
    fields.read(decoded.as_bytes());
    let mut out = Vec::new();
    match entries(decoded.as_bytes(), fields.as_slice(), &mut out) {
        Ok(_) => Ok((out, fallback.is_guess())),
        Err(_) => Err(Refusal::BadValue),
    }
}
