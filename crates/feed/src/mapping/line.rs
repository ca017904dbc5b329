//! In which line of a TOML file something stands, for errors found after parsing.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// `origin:line` of the deepest part of `place` that the text has; of its first line where it has none of it, because
/// then something is missing in the whole.
///
/// `place` is the way down from the top: keys, and indexes where an array stands.
pub fn origin(origin: &str, text: &str, place: &[String]) -> String {
    let at = find(text, place).unwrap_or(0);
    format!("{origin}:{}", 1 + text.as_bytes()[..at].iter().filter(|b| **b == b'\n').count())
}

fn find(text: &str, place: &[String]) -> Option<usize> {
    let top = DeTable::parse(text).ok()?;
    let mut table = Some(top.get_ref());
    let mut array: Option<&[Spanned<DeValue<'_>>]> = None;
    let mut at = None;
    for step in place {
        let (start, value) = match (table, array) {
            (Some(t), _) => match t.iter().find(|(key, _)| key.get_ref() == step.as_str()) {
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
