//! The contents of a message as an object of JSON, in which each name is once.
//!
//! ```text
//!  block without repeats    A B C      {"A":1,"B":2,"C":3}          written as it comes
//!  block that repeats A     A B A      {"A":[1,3],"B":2}            its parts are noted first, then written by name
//!  dynamic reference                   {"@ref":{"type":{…},"fields":{…}}}
//! ```
//!
//! The template alone decides whether a block holds a name more than once, with static references written out. So an
//! array in one message is an array in all messages.

use super::program::CompiledPart;
use super::record::{FieldValue, Message, ObjectToken};
use super::template::Templates;
use std::collections::HashMap;
use unitape_base::json::{hex, number, string, value};

/// An open object or array.
enum OpenObject<I> {
    /// Its parts come as they are; these bytes end it.
    InOrder(&'static [u8]),
    /// The element that is its only value, which has no name.
    Bare,
    /// Its parts are gathered by name.
    ByName(NamedPartIter<I>),
}

/// The parts of a block that repeats names.
struct NamedPartIter<I> {
    named_parts: std::vec::IntoIter<NamedPart<I>>,
    /// The name whose array is open.
    array: Option<usize>,
    closing_bytes: &'static [u8],
    /// The place after the block.
    after_block: I,
}

/// The start of a part.
struct NamedPart<I> {
    from: I,
    /// The place of the first part of its name.
    first_name_part: usize,
    is_repeated: bool,
}

/// Writes the parts of a message without the braces around them. Between parts, `room` may drop all bytes but the last.
pub(super) fn fields<E>(
    out: &mut Vec<u8>,
    templates: &Templates,
    message: &Message<'_>,
    room: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let mut room = room;
    let has_repeats = message.program.templates[message.template].has_repeats;
    let mut tokens = message.tokens();
    let mut open_objects = Vec::new();
    if has_repeats {
        open_objects.push(by_name(&mut tokens, b""));
    }
    loop {
        room(out)?;
        let mut has_name = true;
        match open_objects.last_mut() {
            Some(OpenObject::ByName(block)) => match block.next(out, &mut has_name) {
                Some(from) => tokens = from,
                None => {
                    out.extend_from_slice(block.closing_bytes);
                    if let Some(OpenObject::ByName(block)) = open_objects.pop() {
                        tokens = block.after_block;
                    }
                    continue;
                }
            },
            Some(OpenObject::Bare) => has_name = false,
            _ => {}
        }
        let Some(token) = tokens.next() else { return Ok(()) };
        if !matches!(token, ObjectToken::End) {
            comma(out);
        }
        let open_object = match token {
            ObjectToken::Value(info, field_value) => {
                name(out, info, has_name);
                write_field_value(out, field_value);
                continue;
            }
            ObjectToken::Sequence(info) => {
                name(out, info, has_name);
                out.push(b'[');
                OpenObject::InOrder(b"]")
            }
            ObjectToken::Group(info) => {
                name(out, info, has_name);
                object(out, info.has_repeats, &mut tokens, b"}")
            }
            ObjectToken::Element(_) if is_bare(tokens.clone()) => OpenObject::Bare,
            ObjectToken::Element(info) => object(out, info.has_repeats, &mut tokens, b"}"),
            ObjectToken::Inner(info, index) => {
                name(out, info, has_name);
                let template = &templates.list()[index];
                out.extend_from_slice(b"{\"type\":{\"id\":");
                number(out, template.id.unwrap_or_default().into());
                out.extend_from_slice(b",\"name\":");
                string(out, &template.name.local);
                out.extend_from_slice(b"},\"fields\":");
                object(out, message.program.templates[index].has_repeats, &mut tokens, b"}}")
            }
            ObjectToken::End => {
                if let Some(OpenObject::InOrder(end)) = open_objects.pop() {
                    out.extend_from_slice(end);
                }
                continue;
            }
        };
        open_objects.push(open_object);
    }
}

fn object<'m, I: Iterator<Item = ObjectToken<'m>> + Clone>(
    out: &mut Vec<u8>,
    has_repeats: bool,
    tokens: &mut I,
    end: &'static [u8],
) -> OpenObject<I> {
    out.push(b'{');
    if has_repeats { by_name(tokens, end) } else { OpenObject::InOrder(end) }
}

/// Records where the parts of the current block begin.
fn by_name<'m, I: Iterator<Item = ObjectToken<'m>> + Clone>(
    tokens: &mut I,
    end: &'static [u8],
) -> OpenObject<I> {
    let (mut parts, mut firsts) = (Vec::new(), HashMap::new());
    let mut depth = 0;
    loop {
        let saved_tokens = (depth == 0).then(|| tokens.clone());
        let Some(token) = tokens.next() else { break };
        let (info, begins) = match token {
            ObjectToken::Value(info, _) => (info, false),
            ObjectToken::Group(info)
            | ObjectToken::Sequence(info)
            | ObjectToken::Element(info)
            | ObjectToken::Inner(info, _) => (info, true),
            ObjectToken::End if depth == 0 => break,
            ObjectToken::End => {
                depth -= 1;
                continue;
            }
        };
        if let Some(from) = saved_tokens {
            let is_repeated = info.is_repeated;
            let part_index = parts.len();
            let first =
                if is_repeated { *firsts.entry(info.key()).or_insert(part_index) } else { part_index };
            parts.push(NamedPart { from, first_name_part: first, is_repeated });
        }
        depth += usize::from(begins);
    }
    // It keeps the order of parts with the same name.
    parts.sort_by_key(|part| part.first_name_part);
    OpenObject::ByName(NamedPartIter {
        named_parts: parts.into_iter(),
        array: None,
        closing_bytes: end,
        after_block: tokens.clone(),
    })
}

impl<'m, I: Iterator<Item = ObjectToken<'m>> + Clone> NamedPartIter<I> {
    /// Takes the next part and opens its array if it is in an array. Returns `None` when all arrays are closed.
    fn next(&mut self, out: &mut Vec<u8>, has_name: &mut bool) -> Option<I> {
        let part = self.named_parts.next();
        let array = part.as_ref().filter(|part| part.is_repeated).map(|part| part.first_name_part);
        if array != self.array {
            if self.array.is_some() {
                out.push(b']');
            }
            if let (Some(_), Some(part)) = (array, &part) {
                comma(out);
                let info = part.from.clone().next().and_then(|token| match token {
                    ObjectToken::Value(info, _) | ObjectToken::Group(info) | ObjectToken::Sequence(info) => {
                        Some(info)
                    }
                    ObjectToken::Inner(info, _) => Some(info),
                    ObjectToken::Element(_) | ObjectToken::End => None,
                });
                if let Some(info) = info {
                    name(out, info, true);
                }
                out.push(b'[');
            }
            self.array = array;
        }
        *has_name = array.is_none();
        part.map(|part| part.from)
    }
}

/// Returns whether an element is a single value without a name.
fn is_bare<'m>(mut tokens: impl Iterator<Item = ObjectToken<'m>>) -> bool {
    match (tokens.next(), tokens.next()) {
        (Some(ObjectToken::Value(info, _)), Some(ObjectToken::End)) => {
            info.key().is_empty() && !info.is_repeated
        }
        _ => false,
    }
}

fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[' | b',')) {
        out.push(b',');
    }
}

fn name(out: &mut Vec<u8>, info: &CompiledPart, has_name: bool) {
    if has_name {
        string(out, info.key());
        out.push(b':');
    }
}

fn write_field_value(out: &mut Vec<u8>, field_value: FieldValue<'_>) {
    match field_value {
        FieldValue::Int(value) => signed(out, value),
        FieldValue::UInt(value) => number(out, value),
        FieldValue::Decimal { mantissa, exponent } => {
            out.extend_from_slice(b"{\"mantissa\":");
            signed(out, mantissa);
            out.extend_from_slice(b",\"exponent\":");
            signed(out, exponent.into());
            out.push(b'}');
        }
        FieldValue::Text(text) => value(out, text),
        FieldValue::Bytes(bytes) => hex(out, bytes),
    }
}

fn signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    number(out, value.unsigned_abs());
}
