//! Paths of JSON: as values have them, and as people write them.

/// Appends the member `name` to a path.
pub(crate) fn push(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    if is_plain(name) {
        path.push_str(name);
    } else {
        path.push_str(&serde_json::Value::from(name).to_string());
    }
}

/// Parses a path and returns it in the one spelling that values have.
///
/// # Errors
/// Fails if the path is invalid; the text says why.
///
/// ```
/// use unitape_codec::text::jsonl::path::read;
/// assert_eq!(read("to[].name").unwrap(), "to[].name");
/// assert_eq!(read("headers.\"plain\"").unwrap(), "headers.plain");
/// assert_eq!(read("bids[][1]").unwrap(), "bids[][1]");
/// assert!(read("a..b").is_err());
/// ```
pub fn read(text: &str) -> Result<String, String> {
    let path_error = |reason: String| format!("`{text}` is no path of JSON: {reason}");
    let wrong = |reason: &str| Err(path_error(reason.to_owned()));
    let (mut path, mut rest) = (String::new(), text);
    if rest.starts_with('[') {
        // The message itself is a list.
        rest = match append_brackets(rest, true, &mut path).map_err(path_error)?.strip_prefix('.') {
            Some(members) => members,
            None if path.len() == text.len() => return Ok(path),
            None => return wrong("expected `.`, `[]` or its end"),
        };
    }
    loop {
        let remainder = if rest.starts_with('"') {
            let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            match strings.next() {
                Some(Ok(name)) => push(&mut path, &name),
                _ => return wrong("a name in quotes is not over"),
            }
            &rest[strings.byte_offset()..]
        } else {
            let n = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, tail) = rest.split_at(n);
            if name.is_empty() {
                return wrong("a name is missing");
            }
            if !is_plain(name) {
                return wrong("a name with other than plain characters needs quotes");
            }
            push(&mut path, name);
            tail
        };
        rest = append_brackets(remainder, false, &mut path).map_err(path_error)?;
        match rest.strip_prefix('.') {
            Some(next_rest) => rest = next_rest,
            None if rest.is_empty() => return Ok(path),
            None => return wrong("expected `.`, `[]` or its end"),
        }
    }
}

/// Appends the brackets at the start of `text` to the path: `[]`, and `[0]` in a list in a list, which `in_list` says of
/// the first one. Returns the rest.
fn append_brackets<'t>(text: &'t str, mut in_list: bool, path: &mut String) -> Result<&'t str, String> {
    let mut path_left = text;
    while let Some((inner, after)) = path_left.strip_prefix('[').and_then(|open| open.split_once(']')) {
        if !inner.bytes().all(|b| b.is_ascii_digit()) {
            break;
        }
        if inner.len() > POSITION_DIGITS_MAX || (inner.len() > 1 && inner.starts_with('0')) {
            return Err(format!(
                "`[{inner}]` is no position: the first entry is `[0]`, and no list has 100,000"
            ));
        }
        if !in_list && !inner.is_empty() {
            return Err(format!(
                "expected `.`, `[]` or its end, and not `[{inner}]`: only a list in a list has positions, \
                 as `{path}[][{inner}]`"
            ));
        }
        path.push_str(&path_left[..inner.len() + 2]);
        (path_left, in_list) = (after, true);
    }
    Ok(path_left)
}

/// Digits of a position, at most: no message has as many values.
const POSITION_DIGITS_MAX: usize = 5;

/// Returns whether a path has entries of a list in a list by their positions. It may say so of a name in quotes, too.
#[must_use]
pub fn has_positions(path: &str) -> bool {
    path.as_bytes().windows(2).any(|pair| pair[0] == b'[' && pair[1].is_ascii_digit())
}

/// Returns a path with `[]` in place of every position.
#[must_use]
pub fn without_positions(path: &str) -> String {
    let (mut out, mut rest, mut in_quotes) = (String::with_capacity(path.len()), path, false);
    while let Some(c) = rest.chars().next() {
        out.push(c);
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => in_quotes = !in_quotes,
            '\\' => {
                let escaped = rest.chars().next();
                out.extend(escaped);
                rest = &rest[escaped.map_or(0, char::len_utf8)..];
            }
            '[' if !in_quotes => rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()),
            _ => {}
        }
    }
    out
}

/// Returns whether `pattern` names the value at `path`: both are the same, but that `[]` of the pattern is any position.
///
/// ```
/// use unitape_codec::text::jsonl::path::covers;
/// assert!(covers("bids[][]", "bids[][1]") && covers("bids[][1]", "bids[][1]"));
/// assert!(!covers("bids[][0]", "bids[][1]"));
/// ```
#[must_use]
pub fn covers(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path, mut in_quotes) = (pattern.as_bytes(), path.as_bytes(), false);
    loop {
        match (pattern, path) {
            ([], []) => return true,
            ([b'[', b']', pattern_rest @ ..], [b'[', path_rest @ ..]) if !in_quotes => {
                let digits = path_rest.iter().take_while(|b| b.is_ascii_digit()).count();
                if path_rest.get(digits) != Some(&b']') {
                    return false;
                }
                (pattern, path) = (pattern_rest, &path_rest[digits + 1..]);
            }
            ([b'\\', a, pattern_rest @ ..], [b'\\', b, path_rest @ ..]) if a == b => {
                (pattern, path) = (pattern_rest, path_rest);
            }
            ([a, pattern_rest @ ..], [b, path_rest @ ..]) if a == b => {
                in_quotes ^= *a == b'"';
                (pattern, path) = (pattern_rest, path_rest);
            }
            _ => return false,
        }
    }
}

/// Returns whether a name can be in a path without quotes.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.chars().any(|c| c.is_control() || matches!(c, '.' | '[' | ']' | '"' | '@' | '\\'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Guards against a value whose path cannot be written in a mapping, whatever names its members have.
        #[test]
        fn every_path_can_be_read(names in prop::collection::vec((".{0,6}", 0u8..4), 1..4)) {
            let mut path = String::new();
            for (name, list) in &names {
                push(&mut path, name);
                let lists = ["", "[]", "[][7]", "[][][0][]"][usize::from(*list)];
                path.push_str(lists);
            }
            prop_assert_eq!(read(&path), Ok(path.clone()));
            prop_assert!(covers(&path, &path) && covers(&without_positions(&path), &path));
        }

        #[test]
        fn any_text_is_a_path_or_none(text in ".{0,12}") {
            if let Ok(path) = read(&text) {
                prop_assert_eq!(read(&path), Ok(path.clone()));
            }
        }
    }

    // A dot in a name was two names.
    #[test]
    fn paths_say_what_is_wrong() {
        for (text, says) in [
            ("", "a name is missing"),
            ("a.", "a name is missing"),
            ("[].", "a name is missing"),
            ("a[0]", "only a list in a list has positions, as `a[][0]`"),
            ("a[][0]b", "expected `.`"),
            ("[0]a", "expected `.`"),
            ("a[][01]", "no position"),
            ("a[][123456]", "no position"),
            ("a[][-1]", "expected `.`"),
            ("a[][", "expected `.`"),
            ("a[]b", "expected `.`"),
            ("\"a", "not over"),
            ("a@b", "needs quotes"),
        ] {
            let got = read(text).unwrap_err();
            assert!(got.contains(says), "{text}: {got}");
        }
        for path in ["a[][].\"x.y\"[]", "a[][10]", "[0]", "[]", "[1].as[][2]", "[].e", "a[][0].\"b[0]\"[]"] {
            assert_eq!(read(path).as_deref(), Ok(path));
        }
    }

    // A mapping that names `x[][]` must still read what has a position now; a name that looks like a position has none.
    #[test]
    fn a_pattern_covers_every_position() {
        for (pattern, path, is_covered) in [
            ("x[][]", "x[][0]", true),
            ("x[][].a", "x[][16].a", true),
            ("[].e", "[2].e", true),
            ("[1].b[][0]", "[1].b[][0]", true),
            ("[].b[][]", "[1].b[][0]", true),
            ("x[]", "x[][0]", false),
            ("x[][0]", "x[][]", false),
            ("x[][0]", "x[][10]", false),
            ("x.\"a[]\"", "x.\"a[0]\"", false),
            ("x.\"\\\"[]\"", "x.\"\\\"[0]\"", false),
            ("x.\"\\\"\"[][]", "x.\"\\\"\"[][0]", true),
        ] {
            assert_eq!(covers(pattern, path), is_covered, "{pattern} {path}");
            assert!(covers(&without_positions(path), path), "{path}");
        }
    }
}
