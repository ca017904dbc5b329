//! The contents of a message as an object of JSON, in which each name is once.
//!
//! ```text
//!  block without repeats    A B C      {"A":1,"B":2,"C":3}          written as it comes
//!  block that repeats A     A B A      {"A":[1,3],"B":2}            its parts are noted first, then written by name
//!  dynamic reference                   {"@ref":{"type":{…},"fields":{…}}}
//! ```
//!
//! Whether a block holds a name more than once is known of its template, static references written out: what is an array in
//! one message is an array in all.

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
    parts: std::vec::IntoIter<NamedPart<I>>,
    /// The name whose array is open.
    array: Option<usize>,
    end: &'static [u8],
    /// The place after the block.
    after: I,
}

/// Where a part begins.
struct NamedPart<I> {
    from: I,
    /// The place of the first part of its name.
    first: usize,
    is_repeated: bool,
}

/// Writes what a message has, without the braces around it. Between parts `room` may let go of all but the last byte.
pub(super) fn fields<E>(
    out: &mut Vec<u8>,
    templates: &Templates,
    message: &Message<'_>,
    room: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let mut room = room;
    let has_repeats = message.program.templates[message.template].has_repeats;
    let mut tokens = message.tokens();
    let mut open = Vec::new();
    if has_repeats {
        open.push(by_name(&mut tokens, b""));
    }
    loop {
        room(out)?;
        let mut has_name = true;
        match open.last_mut() {
            Some(OpenObject::ByName(block)) => match block.next(out, &mut has_name) {
                Some(from) => tokens = from,
                None => {
                    out.extend_from_slice(block.end);
                    if let Some(OpenObject::ByName(block)) = open.pop() {
                        tokens = block.after;
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
        let begun = match token {
            ObjectToken::Value(info, of) => {
                name(out, info, has_name);
                one(out, of);
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
                if let Some(OpenObject::InOrder(end)) = open.pop() {
                    out.extend_from_slice(end);
                }
                continue;
            }
        };
        open.push(begun);
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

/// Notes where the parts of the block at hand begin.
fn by_name<'m, I: Iterator<Item = ObjectToken<'m>> + Clone>(
    tokens: &mut I,
    end: &'static [u8],
) -> OpenObject<I> {
    let (mut parts, mut firsts) = (Vec::new(), HashMap::new());
    let mut depth = 0;
    loop {
        let from = (depth == 0).then(|| tokens.clone());
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
        if let Some(from) = from {
            let is_repeated = info.is_repeated;
            let place = parts.len();
            let first = if is_repeated { *firsts.entry(info.key()).or_insert(place) } else { place };
            parts.push(NamedPart { from, first, is_repeated });
        }
        depth += usize::from(begins);
    }
    // It keeps the order of those that have one name.
    parts.sort_by_key(|part| part.first);
    OpenObject::ByName(NamedPartIter { parts: parts.into_iter(), array: None, end, after: tokens.clone() })
}

impl<'m, I: Iterator<Item = ObjectToken<'m>> + Clone> NamedPartIter<I> {
    /// The next part, its array open where it is in one; none when all arrays are over.
    fn next(&mut self, out: &mut Vec<u8>, has_name: &mut bool) -> Option<I> {
        let part = self.parts.next();
        let array = part.as_ref().filter(|part| part.is_repeated).map(|part| part.first);
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

/// Whether an element has one value alone, which has no name.
fn is_bare<'m>(mut ahead: impl Iterator<Item = ObjectToken<'m>>) -> bool {
    match (ahead.next(), ahead.next()) {
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

fn one(out: &mut Vec<u8>, of: FieldValue<'_>) {
    match of {
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
