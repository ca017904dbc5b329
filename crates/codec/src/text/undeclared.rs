//! Text of JSON and XML whose bytes are not UTF-8.

use super::{PathValues, TextFault};
use crate::charset::FallbackCharset;
use std::borrow::Cow;

/// The text of `bytes`, which declare no set of characters.
///
/// # Errors
/// A byte that is no character of the mapping's set.
#[inline]
pub(super) fn text<'b>(
    bytes: &'b [u8],
    fallback: FallbackCharset,
    leaves: &mut PathValues,
) -> Result<Cow<'b, str>, TextFault> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) => decoded(bytes, fallback, leaves).map(Cow::Owned),
    }
}

#[cold]
fn decoded(bytes: &[u8], fallback: FallbackCharset, leaves: &mut PathValues) -> Result<String, TextFault> {
    let mut out = String::with_capacity(bytes.len() + bytes.len() / 8);
    fallback.decode(bytes, &mut out).map_err(|at| {
        let what = "a byte that is no character of the mapping's set,";
        TextFault::not_of_charset(at, what, fallback.charset().name())
    })?;
    if let Some(note) = fallback.note() {
        leaves.note_charset(note);
    }
    Ok(out)
}

/// A fault in decoded text: a place in it is none in the bytes.
pub(super) fn without_place(fault: TextFault) -> TextFault {
    TextFault { at: 0, ..fault }
}
