//! Finds the line of a TOML file for errors found after parsing.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// `origin:line` of the deepest part of `place` that the text has; of its first line where it has none of it, because
/// then something is missing in the whole.
///
/// `place` is the way down from the top: keys, and indexes into arrays.
pub fn origin(origin: &str, text: &str, place: &[&str]) -> String {
    format!("{origin}:{}", TomlLineIndex::new(text).line_of(place))
}

/// The line of a byte, from 1.
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

    /// The line of the deepest part of `place` that the text has.
    #[must_use]
    pub fn line_of(&self, place: &[&str]) -> usize {
        line_at(self.text, self.top.as_ref().and_then(|top| find(top.get_ref(), place)).unwrap_or(0))
    }
}

fn find(top: &DeTable<'_>, place: &[&str]) -> Option<usize> {
    let mut table = Some(top);
    let mut array: Option<&[Spanned<DeValue<'_>>]> = None;
    let mut at = None;
    for step in place {
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
        at = Some(start);
        (table, array) = match value.get_ref() {
            DeValue::Table(t) => (Some(t), None),
            DeValue::Array(a) => (None, Some(&a[..])),
            _ => (None, None),
        };
    }
    at
}
