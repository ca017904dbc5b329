//! Properties that must hold for any bytes; tests and the fuzzer share them.

use super::naive;
use crate::text::xml::lex::{XmlToken, token};
use crate::text::xml::{OTHER, SURROUNDINGS, XmlDecoder};
use crate::text::{NextTextMessage, PathValues, TextMessageDecoder};
use crate::twin::text::check;
use unitape_base::xml::is_white;

/// Checks that the decoder reports for every item what the slow twin reads in it.
///
/// # Errors
/// Fails at the first difference and describes it.
pub fn agree(decoder: &mut XmlDecoder, input: &[u8]) -> Result<(), String> {
    let (mut leaves, mut offset) = (PathValues::default(), 0);
    loop {
        offset = match decoder.next(input, offset, true, &mut leaves) {
            NextTextMessage::Message(message) => {
                if message.kind != SURROUNDINGS && message.kind != OTHER {
                    let text = decoder.encoding.text(
                        message.span.slice(input),
                        decoder.fallback,
                        &mut PathValues::default(),
                    );
                    let slow =
                        text.map_err(|e| e.to_string()).and_then(|text| naive::leaves(text.as_bytes()));
                    let fast = leaves.iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
                    if slow.as_ref() != Ok(&fast) {
                        return Err(format!("at {offset}: fast {fast:?}, slow {slow:?}"));
                    }
                    entries(&leaves)?;
                }
                message.span.end
            }
            NextTextMessage::Bad { span, .. } => span.end,
            NextTextMessage::Incomplete { .. } => return Err(format!("at {offset}: incomplete at the end")),
            NextTextMessage::End => return Ok(()),
        }
    }
}

/// Checks that entries hold values of their path and of the paths below it.
fn entries(leaves: &PathValues) -> Result<(), String> {
    for entry in leaves.entries() {
        let list = leaves.path(entry.path);
        let values = leaves
            .as_slice()
            .get(entry.first_value as usize..entry.value_end as usize)
            .ok_or("an entry out of bounds")?;
        let is_within = |path: &str| {
            path.strip_prefix(list).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '@']))
        };
        if let Some(leaf) = values.iter().find(|leaf| !is_within(leaves.path(leaf.path))) {
            return Err(format!("{} is an entry of {list}", leaves.path(leaf.path)));
        }
    }
    Ok(())
}

/// Returns whether the bytes may be outside of items: white space, marks, declarations, comments, instructions, end
/// tags.
fn between(skipped: &[u8]) -> bool {
    let mut offset = 0;
    while let Some(&byte) = skipped.get(offset) {
        offset = match byte {
            _ if is_white(byte) => offset + 1,
            0xef if skipped[offset..].starts_with(b"\xef\xbb\xbf") => offset + 3,
            _ => match token(skipped, offset) {
                Ok(
                    XmlToken::Nothing { end } | XmlToken::Declaration { end, .. } | XmlToken::End { end, .. },
                ) => end,
                _ => return false,
            },
        };
    }
    true
}

/// Runs the fuzzer's checks: the first byte picks the limit, the rest is the input.
///
/// # Panics
/// Panics if any property does not hold.
pub fn any_bytes(data: &[u8]) {
    let Some((&pick, input)) = data.split_first() else { return };
    let max_message = [64, 150, 1000, 1 << 20][usize::from(pick & 3)];
    let mut decoder = XmlDecoder::default().with_max_message(max_message);
    let spans = check::accounted(&mut decoder, between, input).unwrap_or_else(|e| panic!("{e}"));
    agree(&mut decoder, input).unwrap_or_else(|e| panic!("{e}"));
    // Trying every cut of the rest costs the square of its length; long inputs would show no more.
    if input.len() <= 300 {
        check::cuts(&mut decoder, max_message, input).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(XmlDecoder::cut(input) <= input.len());
    _ = crate::text::xml::root(input);
    check::printed(&mut decoder, input, spans.len());
}
