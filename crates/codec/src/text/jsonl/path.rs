//! Paths of JSON: as values have them, and as people write them.

/// Appends the member `name` to a path.
pub(in crate::text) fn push(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    if is_plain(name) {
        path.push_str(name);
    } else {
        path.push_str(&serde_json::Value::from(name).to_string());
    }
}

/// A path as people write it, in the one spelling that values have.
///
/// # Errors
/// The problem, for people.
///
/// ```
/// use unitape_codec::text::jsonl::path::read;
/// assert_eq!(read("to[].name").unwrap(), "to[].name");
/// assert_eq!(read("headers.\"plain\"").unwrap(), "headers.plain");
/// assert!(read("a..b").is_err());
/// ```
pub fn read(text: &str) -> Result<String, String> {
    let wrong = |what: &str| Err(format!("`{text}` is no path of JSON: {what}"));
    let (mut path, mut rest) = (String::new(), text);
    loop {
        let behind = if rest.starts_with('"') {
            let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            match strings.next() {
                Some(Ok(name)) => push(&mut path, &name),
                _ => return wrong("a name in quotes is not over"),
            }
            &rest[strings.byte_offset()..]
        } else {
            let n = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(n);
            if name.is_empty() {
                return wrong("a name is missing");
            }
            if !is_plain(name) {
                return wrong("a name with other than plain characters needs quotes");
            }
            push(&mut path, name);
            behind
        };
        rest = behind;
        while let Some(behind) = rest.strip_prefix("[]") {
            path.push_str("[]");
            rest = behind;
        }
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind,
            None if rest.is_empty() => return Ok(path),
            None => return wrong("expected `.`, `[]` or its end"),
        }
    }
}

/// Whether a name can be in a path without quotes.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.chars().any(|c| c.is_control() || matches!(c, '.' | '[' | ']' | '"' | '@' | '\\'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The path of a value can be written in a mapping, whatever names its members have.
        #[test]
        fn every_path_can_be_read(names in prop::collection::vec((".{0,6}", any::<bool>()), 1..4)) {
            let mut path = String::new();
            for (name, list) in &names {
                push(&mut path, name);
                if *list {
                    path.push_str("[]");
                }
            }
            prop_assert_eq!(read(&path), Ok(path.clone()));
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
            ("[]", "a name is missing"),
            ("a[0]", "expected `.`"),
            ("a[]b", "expected `.`"),
            ("\"a", "not over"),
            ("a@b", "needs quotes"),
        ] {
            let got = read(text).unwrap_err();
            assert!(got.contains(says), "{text}: {got}");
        }
        assert_eq!(read("a[][].\"x.y\"[]").unwrap(), "a[][].\"x.y\"[]");
    }
}
