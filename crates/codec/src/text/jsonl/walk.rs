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
        Cow::Borrowed(text) => walk(text, leaves),
        Cow::Owned(text) => walk(&text, leaves).map_err(undeclared::without_place),
    }
}

fn walk(text: &str, leaves: &mut PathValues) -> Result<(), TextFault> {
    let line = text;
    let mut json = serde_json::Deserializer::from_str(text);
    let valid = IgnoredAny::deserialize(&mut json).and_then(|_| json.end());
    valid.map_err(|e| match e.is_eof() {
        true => TextFault::new(TextFaultCode::Truncated, line.len(), "the object or list is not over"),
        false => TextFault::new(TextFaultCode::BadJson, place_of(&e, line), "not JSON"),
    })?;
    let mut walk = JsonWalker { json: text, offset: 0, path: String::new(), depth: 0, leaves };
    match walk.peek() {
        Some(b'[') => walk.list(Numbered::All),
        _ => walk.object(),
    }
}

/// Converts the line and column of a parser error to an offset.
#[cold]
fn place_of(error: &serde_json::Error, text: &str) -> usize {
    let mut start = 0;
    for _ in 1..error.line() {
        start += memchr::memchr(b'\n', &text.as_bytes()[start..]).map_or(0, |n| n + 1);
    }
    (start + error.column().saturating_sub(1)).min(text.len())
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
    path: String,
    depth: usize,
    leaves: &'w mut PathValues,
}

impl JsonWalker<'_> {
    /// Reads a value; `lists` states which entries of a list have numbers here.
    fn value(&mut self, lists: Numbered) -> Result<(), TextFault> {
        let (start, mark) = (self.offset, self.leaves.mark());
        let kind = match self.peek() {
            Some(b'{') => return self.object(),
            Some(b'[') => return self.list(lists),
            Some(b'"') => {
                self.string(None)?;
                PathValueKind::Text
            }
            _ => {
                let rest = &self.json.as_bytes()[start..];
                let n = rest.iter().take_while(|b| !matches!(b, b',' | b']' | b'}' | 0..=b' ')).count();
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
                    self.leaves.text_mut().push_str(word);
                }
                kind
            }
        };
        self.leaves.push_value(&self.path, mark, kind, start)
    }

    fn object(&mut self) -> Result<(), TextFault> {
        let start = self.offset;
        self.enter_level()?;
        let before = self.path.len();
        let mut names: Vec<String> = Vec::new();
        while !self.ends(b'}')? {
            let (name_start, mut name) = (self.offset, String::new());
            self.string(Some(&mut name))?;
            if self.peek() != Some(b':') {
                return Err(self.not_json());
            }
            self.offset += 1;
            self.skip_white_space();
            path::push(&mut self.path, &name);
            self.value(Numbered::Nothing).map_err(|e| self.relocate_fault(e, name_start))?;
            self.path.truncate(before);
            names.push(name);
        }
        let empty = names.is_empty().then_some(PathValueKind::Nothing);
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(TextFault::new(
                TextFaultCode::Duplicate,
                start,
                "an object with two members of one name",
            ));
        }
        self.leave_level(empty, start)
    }

    fn list(&mut self, numbered: Numbered) -> Result<(), TextFault> {
        let start = self.offset;
        self.enter_level()?;
        let before = self.path.len();
        self.path.push_str("[]");
        let mut count = 0u32;
        while !self.ends(b']')? {
            let entry = self.leaves.begin_entry(&self.path, self.offset)?;
            let has_position = match numbered {
                Numbered::Nothing => false,
                Numbered::Values => self.peek() != Some(b'['),
                Numbered::All => true,
            };
            if has_position {
                self.path.truncate(before);
                // Writing to a String cannot fail.
                _ = write!(self.path, "[{count}]");
                self.value(Numbered::Values)?;
                self.path.truncate(before);
                self.path.push_str("[]");
            } else {
                self.value(Numbered::Values)?;
            }
            self.leaves.end_entry(entry);
            count += 1;
        }
        self.path.truncate(before);
        self.leave_level((count == 0).then_some(PathValueKind::EmptyList), start)
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
                let mark = self.leaves.mark();
                self.leaves.push_value(&self.path, mark, kind, start)
            }
            None => Ok(()),
        }
    }

    /// Returns whether the list or object ends here. Steps over that end, or over the comma before the next value.
    fn ends(&mut self, with: u8) -> Result<bool, TextFault> {
        self.skip_white_space();
        match self.peek() {
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
    fn string(&mut self, out: Option<&mut String>) -> Result<(), TextFault> {
        if self.peek() != Some(b'"') {
            return Err(self.not_json());
        }
        let out = match out {
            Some(out) => out,
            None => self.leaves.text_mut(),
        };
        let bad = |offset: usize| TextFault::new(TextFaultCode::BadJson, offset, "not JSON");
        self.offset += 1;
        loop {
            let rest = self.json.get(self.offset..).ok_or_else(|| bad(self.offset))?;
            let n = memchr::memchr2(b'"', b'\\', rest.as_bytes()).ok_or_else(|| bad(self.offset))?;
            out.push_str(&rest[..n]);
            self.offset += n + 1;
            if rest.as_bytes()[n] == b'"' {
                break;
            }
            let (c, used) = escape(&rest.as_bytes()[n + 1..]).ok_or_else(|| {
                TextFault::new(TextFaultCode::BadJson, self.offset - 1, "half of a character")
            })?;
            out.push(c);
            self.offset += used;
        }
        self.skip_white_space();
        Ok(())
    }

    fn skip_white_space(&mut self) {
        let rest = self.json.as_bytes().get(self.offset..).unwrap_or_default();
        self.offset += rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
    }

    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.offset).copied()
    }

    #[cold]
    fn not_json(&self) -> TextFault {
        TextFault::new(TextFaultCode::BadJson, self.offset, "not JSON")
    }
}

/// Decodes an escape after its backslash: returns its character and its length in bytes.
fn escape(text: &[u8]) -> Option<(char, usize)> {
    let c = match *text.first()? {
        c @ (b'"' | b'\\' | b'/') => char::from(c),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let high = unit(text.get(1..5)?)?;
            if !(0xd800..0xdc00).contains(&high) {
                return Some((char::from_u32(high)?, 5));
            }
            // A character beyond the first plane is two of them.
            let low = unit(text.get(5..11)?.strip_prefix(b"\\u")?)?;
            let low = low.checked_sub(0xdc00).filter(|n| *n < 0x400)?;
            return Some((char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)?, 11));
        }
        _ => return None,
    };
    Some((c, 1))
}

fn unit(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |n, b| Some(n * 16 + char::from(*b).to_digit(16)?))
}
