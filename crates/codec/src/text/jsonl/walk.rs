//! A line to its leaves. That it is JSON is looked at first, by a parser of JSON; what is walked over here is.

use super::{DEPTH_MAX, path};
use crate::charset::FallbackCharset;
use crate::text::undeclared;
use crate::text::{PathValueKind, PathValues, TextFault, TextFaultCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Puts the values of a line, trimmed and not empty, into `path_values`.
pub(super) fn line(line: &[u8], fallback: FallbackCharset, leaves: &mut PathValues) -> Result<(), TextFault> {
    if !matches!(line.first(), Some(b'{' | b'[')) {
        return Err(TextFault::new(TextFaultCode::Garbage, 0, "neither an object nor a list of JSON"));
    }
    message(line, fallback, leaves)
}

/// Puts the values of an entry of a list that is all of the file into `path_values`.
pub(super) fn entry(
    entry: &[u8],
    fallback: FallbackCharset,
    leaves: &mut PathValues,
) -> Result<(), TextFault> {
    if entry.first() != Some(&b'{') {
        return Err(TextFault::new(TextFaultCode::Garbage, 0, "no object of JSON"));
    }
    message(entry, fallback, leaves)
}

fn message(line: &[u8], fallback: FallbackCharset, leaves: &mut PathValues) -> Result<(), TextFault> {
    match undeclared::text(line, fallback, leaves)? {
        Cow::Borrowed(text) => walk_text(text, leaves),
        Cow::Owned(text) => walk_text(&text, leaves).map_err(undeclared::without_place),
    }
}

fn walk_text(text: &str, leaves: &mut PathValues) -> Result<(), TextFault> {
    let line = text;
    let mut json = serde_json::Deserializer::from_str(text);
    let valid = IgnoredAny::deserialize(&mut json).and_then(|_| json.end());
    valid.map_err(|e| match e.is_eof() {
        true => TextFault::new(TextFaultCode::Truncated, line.len(), "the object or list is not over"),
        false => TextFault::new(TextFaultCode::BadJson, place_of(&e, line), "not JSON"),
    })?;
    let mut walk =
        JsonWalker { json: text, offset: 0, current_path: String::new(), depth: 0, path_values: leaves };
    match walk.peek_byte() {
        Some(b'[') => walk.walk_list(Numbered::All),
        _ => walk.walk_object(),
    }
}

/// Converts the line and column of a parser error to an offset.
#[cold]
fn place_of(error: &serde_json::Error, text: &str) -> usize {
    let mut path_start = 0;
    for _ in 1..error.line() {
        path_start += memchr::memchr(b'\n', &text.as_bytes()[path_start..]).map_or(0, |n| n + 1);
    }
    (path_start + error.column().saturating_sub(1)).min(text.len())
}

/// Which entries of a list have their position in their path, `[0]` in place of `[]`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbered {
    /// None: a list that is a member.
    Nothing,
    /// All but lists: a list in a list, such as a price with its quantity.
    Values,
    /// All: a message that is a list.
    All,
}

struct JsonWalker<'w> {
    json: &'w str,
    offset: usize,
    current_path: String,
    depth: usize,
    path_values: &'w mut PathValues,
}

impl JsonWalker<'_> {
    /// Reads a value; `lists` states which entries of a list have numbers here.
    fn value(&mut self, lists: Numbered) -> Result<(), TextFault> {
        let (start, mark) = (self.offset, self.path_values.mark());
        let kind = match self.peek_byte() {
            Some(b'{') => return self.walk_object(),
            Some(b'[') => return self.walk_list(lists),
            Some(b'"') => {
                self.read_string(None)?;
                PathValueKind::Text
            }
            _ => {
                let json_left = &self.json.as_bytes()[start..];
                let n = json_left.iter().take_while(|b| !matches!(b, b',' | b']' | b'}' | 0..=b' ')).count();
                let word = self.json.get(start..start + n).unwrap_or_default();
                if word.is_empty() {
                    return Err(self.not_json());
                }
                self.offset += n;
                let kind = match word {
                    "null" => PathValueKind::Nothing,
                    "true" | "false" => PathValueKind::Flag,
                    _ => PathValueKind::Number,
                };
                if kind != PathValueKind::Nothing {
                    self.path_values.text_mut().push_str(word);
                }
                kind
            }
        };
        self.path_values.push_value(&self.current_path, mark, kind, start)
    }

    fn walk_object(&mut self) -> Result<(), TextFault> {
        let object_start = self.offset;
        self.enter_level()?;
        let path_length = self.current_path.len();
        let mut member_names: Vec<String> = Vec::new();
        while !self.ends_with(b'}')? {
            let (name_start, mut name) = (self.offset, String::new());
            self.read_string(Some(&mut name))?;
            if self.peek_byte() != Some(b':') {
                return Err(self.not_json());
            }
            self.offset += 1;
            self.skip_white_space();
            path::push(&mut self.current_path, &name);
            self.value(Numbered::Nothing).map_err(|e| self.relocate_fault(e, name_start))?;
            self.current_path.truncate(path_length);
            member_names.push(name);
        }
        let empty = member_names.is_empty().then_some(PathValueKind::Nothing);
        member_names.sort_unstable();
        if member_names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(TextFault::new(
                TextFaultCode::Duplicate,
                object_start,
                "an object with two members of one name",
            ));
        }
        self.leave_level(empty, object_start)
    }

    fn walk_list(&mut self, numbered: Numbered) -> Result<(), TextFault> {
        let list_start = self.offset;
        self.enter_level()?;
        let path_length = self.current_path.len();
        self.current_path.push_str("[]");
        let mut count = 0u32;
        while !self.ends_with(b']')? {
            let entry = self.path_values.begin_entry(&self.current_path, self.offset)?;
            let has_position = match numbered {
                Numbered::Nothing => false,
                Numbered::Values => self.peek_byte() != Some(b'['),
                Numbered::All => true,
            };
            if has_position {
                self.current_path.truncate(path_length);
                // Writing to a String cannot fail.
                _ = write!(self.current_path, "[{count}]");
                self.value(Numbered::Values)?;
                self.current_path.truncate(path_length);
                self.current_path.push_str("[]");
            } else {
                self.value(Numbered::Values)?;
            }
            self.path_values.end_entry(entry);
            count += 1;
        }
        self.current_path.truncate(path_length);
        self.leave_level((count == 0).then_some(PathValueKind::EmptyList), list_start)
    }

    /// Moves the fault of an invalid path to the path's start: the value's offset would mislead.
    fn relocate_fault(&self, fault: TextFault, offset: usize) -> TextFault {
        if fault.code == TextFaultCode::TooDeep && self.depth == 1 {
            TextFault { offset: offset as u32, ..fault }
        } else {
            fault
        }
    }

    fn enter_level(&mut self) -> Result<(), TextFault> {
        if self.depth == DEPTH_MAX {
            return Err(TextFault::new(
                TextFaultCode::TooDeep,
                self.offset,
                "more than 64 lists and objects in each other",
            ));
        }
        self.depth += 1;
        self.offset += 1;
        self.skip_white_space();
        Ok(())
    }

    /// Ends an object or a list that began at `start`; `empty` is its kind if nothing is in it.
    fn leave_level(&mut self, empty: Option<PathValueKind>, start: usize) -> Result<(), TextFault> {
        self.depth -= 1;
        match empty.filter(|_| self.depth > 0) {
            Some(kind) => {
                let mark = self.path_values.mark();
                self.path_values.push_value(&self.current_path, mark, kind, start)
            }
            None => Ok(()),
        }
    }

    /// Returns whether the list or object ends here. Steps over that end, or over the comma before the next value.
    fn ends_with(&mut self, with: u8) -> Result<bool, TextFault> {
        self.skip_white_space();
        match self.peek_byte() {
            Some(b) if b == with => {
                self.offset += 1;
                Ok(true)
            }
            Some(b',') => {
                self.offset += 1;
                self.skip_white_space();
                Ok(false)
            }
            Some(_) => Ok(false),
            None => Err(self.not_json()),
        }
    }

    /// Reads a string and resolves its escapes, into `out` or else into the current value.
    fn read_string(&mut self, out: Option<&mut String>) -> Result<(), TextFault> {
        if self.peek_byte() != Some(b'"') {
            return Err(self.not_json());
        }
        let out = match out {
            Some(out) => out,
            None => self.path_values.text_mut(),
        };
        let json_fault = |offset: usize| TextFault::new(TextFaultCode::BadJson, offset, "not JSON");
        self.offset += 1;
        loop {
            let json_left = self.json.get(self.offset..).ok_or_else(|| json_fault(self.offset))?;
            let n =
                memchr::memchr2(b'"', b'\\', json_left.as_bytes()).ok_or_else(|| json_fault(self.offset))?;
            out.push_str(&json_left[..n]);
            self.offset += n + 1;
            if json_left.as_bytes()[n] == b'"' {
                break;
            }
            let (c, used) = decode_escape(&json_left.as_bytes()[n + 1..]).ok_or_else(|| {
                TextFault::new(TextFaultCode::BadJson, self.offset - 1, "half of a character")
            })?;
            out.push(c);
            self.offset += used;
        }
        self.skip_white_space();
        Ok(())
    }

    fn skip_white_space(&mut self) {
        let json_left = self.json.as_bytes().get(self.offset..).unwrap_or_default();
        self.offset += json_left.iter().take_while(|b| b.is_ascii_whitespace()).count();
    }

    fn peek_byte(&self) -> Option<u8> {
        self.json.as_bytes().get(self.offset).copied()
    }

    #[cold]
    fn not_json(&self) -> TextFault {
        TextFault::new(TextFaultCode::BadJson, self.offset, "not JSON")
    }
}

/// Decodes an escape after its backslash: returns its character and its length in bytes.
fn decode_escape(text: &[u8]) -> Option<(char, usize)> {
    let c = match *text.first()? {
        c @ (b'"' | b'\\' | b'/') => char::from(c),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let high = utf16_unit(text.get(1..5)?)?;
            if !(0xd800..0xdc00).contains(&high) {
                return Some((char::from_u32(high)?, 5));
            }
            // A character beyond the first plane is two of them.
            let low = utf16_unit(text.get(5..11)?.strip_prefix(b"\\u")?)?;
            let low = low.checked_sub(0xdc00).filter(|n| *n < 0x400)?;
            return Some((char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)?, 11));
        }
        _ => return None,
    };
    Some((c, 1))
}

fn utf16_unit(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |n, b| Some(n * 16 + char::from(*b).to_digit(16)?))
}
