//! The fields of MIME, which have a value and parameters: `text/plain; charset=utf-8`.

use super::charsets::MailCharsets;
use super::header::{MailHeaderField, unfold};
use crate::text::{TextFault, TextFaultCode};

/// Parameters of a field, at most.
const PARAMETERS_MAX: usize = 64;

/// A field of MIME: `text/plain; charset=utf-8`.
#[derive(Debug, Default)]
pub(super) struct MimeField {
    /// In small letters.
    pub value: String,
    parameters: Vec<(String, String)>,
}

impl MimeField {
    /// Finds a field by its name.
    pub(super) fn find(
        message: &[u8],
        fields: &[MailHeaderField],
        name: &str,
        charsets: &MailCharsets,
    ) -> Result<Option<Self>, TextFault> {
        let Some(field) = fields.iter().find(|f| f.is(message, name)) else { return Ok(None) };
        let text = without_comments(unfold(message, field, charsets)?);
        let (value, mut rest) = text.split_once(';').unwrap_or((&text, ""));
        let mut this = Self { value: value.trim().to_ascii_lowercase(), parameters: Vec::new() };
        while let Some((name, remainder)) = rest.split_once('=') {
            if this.parameters.len() >= PARAMETERS_MAX {
                return Err(TextFault::new(
                    TextFaultCode::TooDeep,
                    field.name.start,
                    "a field with more than 64 parameters",
                ));
            }
            let remainder = remainder.trim_start();
            let (value, tail) = match remainder.strip_prefix('"') {
                Some(inside) => {
                    let (mut value, mut chars) = (String::new(), inside.char_indices());
                    let mut value_end = inside.len();
                    while let Some((n, c)) = chars.next() {
                        match c {
                            '"' => {
                                value_end = n + 1;
                                break;
                            }
                            '\\' => value.extend(chars.next().map(|(_, c)| c)),
                            c => value.push(c),
                        }
                    }
                    (value, &inside[value_end..])
                }
                None => {
                    let n = remainder.find(';').unwrap_or(remainder.len());
                    (remainder[..n].trim().to_owned(), &remainder[n..])
                }
            };
            let name = name.trim().trim_start_matches(';').trim().to_ascii_lowercase();
            this.parameters.push((name, value));
            rest = tail.split_once(';').map_or("", |(_, rest)| rest);
        }
        Ok(Some(this))
    }

    /// Returns the parameter `name` in any form of RFC 2231: with a character set and escapes (`filename*`), in
    /// pieces (`filename*0`, `filename*1*`), or plain.
    pub(super) fn long(&self, name: &str, charsets: &MailCharsets) -> Option<String> {
        let (mut label, mut bytes) = (None::<String>, Vec::new());
        let mut add_piece = |value: &str, is_first: bool, escaped: bool| {
            let mut value = value;
            if escaped && is_first {
                let mut parts = value.splitn(3, '\'');
                if let (Some(set), Some(_), Some(rest)) = (parts.next(), parts.next(), parts.next()) {
                    label = Some(set.to_owned());
                    value = rest;
                }
            }
            match escaped {
                true => push_unescaped(value, &mut bytes),
                false => bytes.extend_from_slice(value.as_bytes()),
            }
        };
        if let Some(value) = self.get(&format!("{name}*")) {
            add_piece(value, true, true);
        } else {
            let mut n = 0;
            loop {
                let (plain_name, escaped) = (format!("{name}*{n}"), format!("{name}*{n}*"));
                match (self.get(&escaped), self.get(&plain_name)) {
                    (Some(value), _) => add_piece(value, n == 0, true),
                    (None, Some(value)) => add_piece(value, n == 0, false),
                    (None, None) => break,
                }
                n += 1;
            }
            if n == 0 {
                return self.get(name).map(str::to_owned);
            }
        }
        let mut out = String::new();
        match charsets.word(label.as_deref().unwrap_or_default(), &bytes, &mut out) {
            Some(()) => Some(out),
            // The plain form stands beside the other one for programs that cannot read it.
            None => self
                .get(name)
                .map(str::to_owned)
                .or_else(|| Some(String::from_utf8_lossy(&bytes).into_owned())),
        }
    }

    /// Looks up a parameter by its name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Appends the bytes of a value with escapes `%E9`; a malformed escape stays unchanged.
fn push_unescaped(value: &str, out: &mut Vec<u8>) {
    let mut value_left = value.as_bytes();
    while let Some((&byte, tail)) = value_left.split_first() {
        let hex = |n: usize| tail.get(n).and_then(|b| char::from(*b).to_digit(16));
        match (byte, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high << 4 | low) as u8);
                value_left = &tail[2..];
            }
            _ => {
                out.push(byte);
                value_left = tail;
            }
        }
    }
}

/// Strips comments: text in parentheses outside of quotes. An unclosed parenthesis starts no comment.
fn without_comments(text: String) -> String {
    if !text.contains('(') {
        return text;
    }
    let (mut out, mut depth, mut quoted) = (String::with_capacity(text.len()), 0u32, false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let next_char = chars.next();
                if depth == 0 {
                    out.extend([c].into_iter().chain(next_char));
                }
                continue;
            }
            '"' if depth == 0 => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if depth > 0 => {
                depth -= 1;
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            out.push(c);
        }
    }
    if depth == 0 { out } else { text }
}
