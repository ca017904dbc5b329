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
    let mut walk = JsonWalker { json: text, at: 0, path: String::new(), depth: 0, leaves };
    match walk.peek() {
        Some(b'[') => walk.list(Numbered::All),
        _ => walk.object(),
    }
}

/// The place of an error of the parser, which counts lines and columns.
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
    at: usize,
    path: String,
    depth: usize,
    leaves: &'w mut PathValues,
}

impl JsonWalker<'_> {
    /// Reads a value; `lists` says what a list has at this place.
    fn value(&mut self, lists: Numbered) -> Result<(), TextFault> {
        let (start, mark) = (self.at, self.leaves.mark());
        let sort = match self.peek() {
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
                self.at += n;
                let sort = match word {
                    "null" => PathValueKind::Nothing,
                    "true" | "false" => PathValueKind::Flag,
                    _ => PathValueKind::Number,
                };
                if sort != PathValueKind::Nothing {
                    self.leaves.text_mut().push_str(word);
                }
                sort
            }
        };
        self.leaves.put(&self.path, mark, sort, start)
    }

    fn object(&mut self) -> Result<(), TextFault> {
        let start = self.at;
        self.deeper()?;
        let before = self.path.len();
        let mut names: Vec<String> = Vec::new();
        while !self.ends(b'}')? {
            let (at, mut name) = (self.at, String::new());
            self.string(Some(&mut name))?;
            if self.peek() != Some(b':') {
                return Err(self.not_json());
            }
            self.at += 1;
            self.white();
            path::push(&mut self.path, &name);
            self.value(Numbered::Nothing).map_err(|e| self.on_the_way(e, at))?;
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
        self.shallower(empty, start)
    }

    fn list(&mut self, numbered: Numbered) -> Result<(), TextFault> {
        let start = self.at;
        self.deeper()?;
        let before = self.path.len();
        self.path.push_str("[]");
        let mut count = 0u32;
        while !self.ends(b']')? {
            let entry = self.leaves.begin_entry(&self.path, self.at)?;
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
        self.shallower((count == 0).then_some(PathValueKind::EmptyList), start)
    }

    /// An invalid path is reported where it begins, not where the value is.
    fn on_the_way(&self, fault: TextFault, at: usize) -> TextFault {
        if fault.code == TextFaultCode::TooDeep && self.depth == 1 {
            TextFault { at: at as u32, ..fault }
        } else {
            fault
        }
    }

    fn deeper(&mut self) -> Result<(), TextFault> {
        if self.depth == DEPTH_MAX {
            return Err(TextFault::new(
                TextFaultCode::TooDeep,
                self.at,
                "more than 64 lists and objects in each other",
            ));
        }
        self.depth += 1;
        self.at += 1;
        self.white();
        Ok(())
    }

    /// Ends an object or a list that began at `start`; `empty` is its kind if nothing is in it.
    fn shallower(&mut self, empty: Option<PathValueKind>, start: usize) -> Result<(), TextFault> {
        self.depth -= 1;
        match empty.filter(|_| self.depth > 0) {
            Some(kind) => {
                let mark = self.leaves.mark();
                self.leaves.put(&self.path, mark, kind, start)
            }
            None => Ok(()),
        }
    }

    /// Whether the list or object ends here; steps over that, or over the comma before what comes next.
    fn ends(&mut self, with: u8) -> Result<bool, TextFault> {
        self.white();
        match self.peek() {
            Some(b) if b == with => {
                self.at += 1;
                Ok(true)
            }
            Some(b',') => {
                self.at += 1;
                self.white();
                Ok(false)
            }
            Some(_) => Ok(false),
            None => Err(self.not_json()),
        }
    }

    /// A string, with its escapes resolved, into `out` or else into the value being put together.
    fn string(&mut self, out: Option<&mut String>) -> Result<(), TextFault> {
        if self.peek() != Some(b'"') {
            return Err(self.not_json());
        }
        let out = match out {
            Some(out) => out,
            None => self.leaves.text_mut(),
        };
        let bad = |at: usize| TextFault::new(TextFaultCode::BadJson, at, "not JSON");
        self.at += 1;
        loop {
            let rest = self.json.get(self.at..).ok_or_else(|| bad(self.at))?;
            let n = memchr::memchr2(b'"', b'\\', rest.as_bytes()).ok_or_else(|| bad(self.at))?;
            out.push_str(&rest[..n]);
            self.at += n + 1;
            if rest.as_bytes()[n] == b'"' {
                break;
            }
            let (c, used) = escape(&rest.as_bytes()[n + 1..])
                .ok_or_else(|| TextFault::new(TextFaultCode::BadJson, self.at - 1, "half of a character"))?;
            out.push(c);
            self.at += used;
        }
        self.white();
        Ok(())
    }

    fn white(&mut self) {
        let rest = self.json.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
    }

    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    #[cold]
    fn not_json(&self) -> TextFault {
        TextFault::new(TextFaultCode::BadJson, self.at, "not JSON")
    }
}

/// The character of an escape after its backslash, and its bytes.
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
