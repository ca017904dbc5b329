//! Paths of elements and attributes, as people write them.

use unitape_base::xml::{name, starts_name};

/// Checks a path such as `contentMeta/headline`, `link@href` or `@guid`, and returns it.
///
/// # Errors
/// Fails if the path is invalid; the text says why.
///
/// ```
/// use unitape_codec::text::xml::path::read;
/// assert_eq!(read("dc:creator").unwrap(), "dc:creator");
/// assert!(read("a//b").is_err());
/// ```
pub fn read(text: &str) -> Result<String, String> {
    let wrong = |reason: &str| Err(format!("`{text}` is no path of XML: {reason}"));
    let (elements, attribute) = match text.split_once('@') {
        Some((elements, attribute)) => (elements, Some(attribute)),
        None => (text, None),
    };
    if elements.is_empty() && attribute.is_none() {
        return wrong("a name is missing");
    }
    let elements = elements.split('/').filter(|_| !elements.is_empty());
    for name in elements.chain(attribute) {
        if name.is_empty() {
            return wrong("a name is missing");
        }
        if !is_name(name) {
            return wrong(&format!(
                "`{name}` is no name; expected names with `/` between them, `@` before an attribute"
            ));
        }
    }
    Ok(text.to_owned())
}

/// Returns whether the text is a name, with or without a prefix.
fn is_name(text: &str) -> bool {
    let is_simple_name =
        |part: &str| part.bytes().next().is_some_and(starts_name) && name(part.as_bytes(), 0) == part.len();
    match text.split_once(':') {
        Some((prefix, rest)) => is_simple_name(prefix) && is_simple_name(rest),
        None => is_simple_name(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A path of JSON in a mapping of XML was a path that no message ever had.
    #[test]
    fn paths_say_what_is_wrong() {
        for good in ["title", "dc:creator", "contentMeta/subject@qcode", "@guid", "body.content/p", "Größe"]
        {
            assert_eq!(read(good).as_deref(), Ok(good));
        }
        for (text, says) in [
            ("", "a name is missing"),
            ("a/", "a name is missing"),
            ("/a", "a name is missing"),
            ("a@", "a name is missing"),
            ("a[]", "`a[]` is no name"),
            ("a@b/c", "`b/c` is no name"),
            ("a:b:c", "is no name"),
            ("1a", "is no name"),
        ] {
            let got = read(text).unwrap_err();
            assert!(got.contains(says), "{text}: {got}");
        }
    }
}
