//! Properties that must hold for any bytes; tests and the fuzzer share them.

use crate::text::mail::{MailDecoder, POSTMARK_BYTES_MAX};
use crate::twin::text::check;

/// Runs the fuzzer's checks: the first byte picks the limit, the rest is the input.
///
/// # Panics
/// Panics if any property does not hold.
pub fn any_bytes(data: &[u8]) {
    let Some((&pick, input)) = data.split_first() else { return };
    let max_message = [64, 200, 1000, 1 << 20][usize::from(pick & 3)];
    let mut decoder = MailDecoder::default().with_max_message(max_message);
    let between = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_whitespace);
    let spans = check::accounted(&mut decoder, between, input).unwrap_or_else(|e| panic!("{e}"));
    // Trying every cut of the rest costs the square of its length; long inputs would show no more.
    if input.len() <= 300 {
        check::cuts(&mut decoder, max_message + POSTMARK_BYTES_MAX, input).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(MailDecoder::cut(input) <= input.len());
    check::printed(&mut decoder, input, spans.len());
}
