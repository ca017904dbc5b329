//! Properties that must hold for any bytes; tests and the fuzzer share them.

use super::naive;
use crate::text::jsonl::{InputShape, JsonlDecoder};
use crate::text::{HEAD_BYTES, NextTextMessage, PathValues, TextMessageDecoder};
use crate::twin::text::check;

/// Checks that the decoder reports for every line what the slow twin reads in it.
///
/// # Errors
/// Fails at the first difference and describes it.
pub fn agree(decoder: JsonlDecoder, input: &[u8]) -> Result<(), String> {
    let (mut decoder, mut leaves, mut offset) = (decoder, PathValues::default(), 0);
    loop {
        offset = match decoder.next(input, offset, true, &mut leaves) {
            NextTextMessage::Message(message) => {
                let slow = naive::leaves(message.span.slice(input));
                let fast = leaves.iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
                if slow.as_ref() != Ok(&fast) {
                    return Err(format!("at {offset}: fast {fast:?}, slow {slow:?}"));
                }
                message.span.end
            }
            NextTextMessage::Bad { span, fault } => {
                // An entry of a list that is all of the file is no list.
                let is_list = decoder.shape == InputShape::List && input[span.start] == b'[';
                let is_complete_line = span.len() < decoder.max_line && !is_list;
                if is_complete_line && let Ok(slow) = naive::leaves(span.slice(input)) {
                    return Err(format!("at {offset}: {fault}, slow {slow:?}"));
                }
                span.end
            }
            NextTextMessage::Incomplete { .. } => return Err(format!("at {offset}: incomplete at the end")),
            NextTextMessage::End => return Ok(()),
        }
    }
}

/// Runs the fuzzer's checks: the first byte picks the limit, the rest is the input.
///
/// # Panics
/// Panics if any property does not hold.
pub fn any_bytes(data: &[u8]) {
    let Some((&pick, input)) = data.split_first() else { return };
    let max_line = [8, 60, 400, 1 << 20][usize::from(pick & 3)];
    let mut decoder = JsonlDecoder::default().with_max_line(max_line);
    let is_list = !decoder.inspect_head(&input[..input.len().min(HEAD_BYTES)]).is_empty();
    let between = |bytes: &[u8]| {
        let is_list_mark = |b: &u8| is_list && b"[],".contains(b);
        // What pads the last line of a file, up to the file's end.
        let ends = bytes.as_ptr_range().end == input.as_ptr_range().end;
        let pads = |b: &u8| ends && matches!(b, 0 | 0x1a);
        bytes
            .iter()
            .all(|b| b.is_ascii_whitespace() || b"\xef\xbb\xbf".contains(b) || is_list_mark(b) || pads(b))
    };
    let spans = check::accounted(&mut decoder, between, input).unwrap_or_else(|e| panic!("{e}"));
    agree(decoder, input).unwrap_or_else(|e| panic!("{e}"));
    // Trying every cut of the rest costs the square of its length; long inputs would show no more.
    if input.len() <= 300 {
        check::cuts(&mut decoder, max_line + input.len(), input).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(JsonlDecoder::cut(input) <= input.len());
    check::printed(&mut decoder, input, spans.len());
}
