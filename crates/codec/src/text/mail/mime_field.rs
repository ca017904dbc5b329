//! The fields of MIME, which have a value and parameters: `text/plain; charset=utf-8`.

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
    /// The field of this name, if it is there.
    pub(super) fn find(
        message: &[u8],
        fields: &[MailHeaderField],
        name: &str,
    ) -> Result<Option<Self>, TextFault> {
        let Some(field) = fields.iter().find(|f| f.is(message, name)) else { return Ok(None) };
        let text = without_comments(unfold(message, field)?);
        let (value, mut rest) = text.split_once(';').unwrap_or((&text, ""));
        let mut this = Self { value: value.trim().to_ascii_lowercase(), parameters: Vec::new() };
        while let Some((name, behind)) = rest.split_once('=') {
            if this.parameters.len() >= PARAMETERS_MAX {
                return Err(TextFault::new(
                    TextFaultCode::TooDeep,
                    field.name.start,
                    "a field with more than 64 parameters",
                ));
            }
            let behind = behind.trim_start();
            let (value, behind) = match behind.strip_prefix('"') {
                Some(inside) => {
                    let (mut value, mut chars) = (String::new(), inside.char_indices());
                    let mut end = inside.len();
                    while let Some((n, c)) = chars.next() {
                        match c {
                            '"' => {
                                end = n + 1;
                                break;
                            }
                            '\\' => value.extend(chars.next().map(|(_, c)| c)),
                            c => value.push(c),
                        }
                    }
                    (value, &inside[end..])
                }
                None => {
                    let n = behind.find(';').unwrap_or(behind.len());
                    (behind[..n].trim().to_owned(), &behind[n..])
                }
            };
            let name = name.trim().trim_start_matches(';').trim().to_ascii_lowercase();
            this.parameters.push((name, value));
            rest = behind.split_once(';').map_or("", |(_, rest)| rest);
        }
        Ok(Some(this))
    }

    /// The parameter of this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Without what is in parentheses outside of quotes; one that is not closed is none.
fn without_comments(text: String) -> String {
    if !text.contains('(') {
        return text;
    }
    let (mut out, mut depth, mut quoted) = (String::with_capacity(text.len()), 0u32, false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let next = chars.next();
                if depth == 0 {
                    out.extend([c].into_iter().chain(next));
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
