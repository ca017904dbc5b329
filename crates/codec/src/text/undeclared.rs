//! Text of JSON and XML whose bytes are not UTF-8.

use super::{PathValues, TextFault};
use crate::charset::FallbackCharset;
use std::borrow::Cow;

/// Decodes `bytes`, which declare no character set.
///
/// # Errors
/// Fails at a byte that is no character of the mapping's set.
#[inline]
pub(super) fn text<'b>(
    bytes: &'b [u8],
    fallback: FallbackCharset,
    leaves: &mut PathValues,
) -> Result<Cow<'b, str>, TextFault> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) => decode_undeclared(bytes, fallback, leaves).map(Cow::Owned),
    }
}

#[cold]
fn decode_undeclared(
    bytes: &[u8],
    fallback: FallbackCharset,
    leaves: &mut PathValues,
) -> Result<String, TextFault> {
    let mut out = String::with_capacity(bytes.len() + bytes.len() / 8);
    fallback.decode(bytes, &mut out).map_err(|offset| {
        let detail = "a byte that is no character of the mapping's set,";
        TextFault::not_of_charset(offset, detail, fallback.charset().name())
    })?;
    if let Some(note) = fallback.note() {
        leaves.note_charset(note);
    }
    Ok(out)
}

/// Removes the offset of a fault in decoded text: it is no offset in the bytes.
pub(super) fn without_place(fault: TextFault) -> TextFault {
    TextFault { offset: 0, ..fault }
}
