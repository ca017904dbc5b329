//! Finds the line of a TOML file for errors found after parsing.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Returns `origin:line` of the deepest part of `path` that the text has. It is the first line if the text has no
/// part of `path`: then a top-level key is missing.
///
/// `path` leads down from the top: keys, and indexes into arrays.
pub fn origin(origin: &str, text: &str, path: &[&str]) -> String {
    format!("{origin}:{}", TomlLineIndex::new(text).line_of(path))
}

/// Returns the line of a byte, from 1.
pub fn line_at(text: &str, byte: usize) -> usize {
    1 + text.as_bytes()[..byte.min(text.len())].iter().filter(|b| **b == b'\n').count()
}

/// A text that is split into its parts once, for many questions.
#[derive(Debug)]
pub struct TomlLineIndex<'t> {
    text: &'t str,
    top: Option<Spanned<DeTable<'t>>>,
}

impl<'t> TomlLineIndex<'t> {
    /// Takes `text` apart.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        Self { text, top: DeTable::parse(text).ok() }
    }

    /// Returns the line of the deepest part of `path` that the text has.
    #[must_use]
    pub fn line_of(&self, path: &[&str]) -> usize {
        line_at(self.text, self.top.as_ref().and_then(|top| find(top.get_ref(), path)).unwrap_or(0))
    }
}

fn find(top: &DeTable<'_>, path: &[&str]) -> Option<usize> {
    let mut table = Some(top);
    let mut array: Option<&[Spanned<DeValue<'_>>]> = None;
    let mut offset = None;
    for step in path {
        let (start, value) = match (table, array) {
            (Some(t), _) => match t.iter().find(|(key, _)| key.get_ref() == step) {
                Some((key, value)) => (key.span().start, value),
                None => break,
            },
            (None, Some(a)) => match step.parse::<usize>().ok().and_then(|i| a.get(i)) {
                Some(value) => (value.span().start, value),
                None => break,
            },
            (None, None) => break,
        };
        offset = Some(start);
        (table, array) = match value.get_ref() {
            DeValue::Table(t) => (Some(t), None),
            DeValue::Array(a) => (None, Some(&a[..])),
            _ => (None, None),
        };
    }
    offset
}
