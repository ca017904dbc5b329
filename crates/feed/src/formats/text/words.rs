//! The words of a message of JSON or XML: all values at the paths that its mapping lists as `words`, in their order.
//!
//! ```text
//! words = ["text", "attachments[].title", "blocks[]**.text"]      **: any path between
//! ```
//!
//! Each value is a paragraph of its own, but for pieces of one list in a list, such as the words of a sentence of which one
//! is bold: these are joined as they are. A value that was there before is left out, and so are words that the
//! first path has, which comes first in most messages: others repeat them for programs that show markup.

use unitape_codec::text::{PathValues, jsonl};

/// The paths of words.
#[derive(Clone, Debug, Default)]
pub(super) struct WordPaths(Vec<WordPath>);

#[derive(Clone, Debug)]
enum WordPath {
    Exact(String),
    Between(String, String),
}

/// The bytes of comparisons after which repeated values stay: a message of thousands of values is no copy.
const COMPARED_BYTES_MAX: usize = 1 << 24;

impl WordPaths {
    /// Reads the paths as mappings write them; `read` reads one without `**`.
    ///
    /// # Errors
    /// Fails if `read` refuses a path.
    pub(super) fn new(
        paths: &[String],
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Self, String> {
        let path = |path: &String| match path.split_once("**") {
            Some((before, after)) if !before.is_empty() && !after.is_empty() && !after.contains("**") => {
                Ok(WordPath::Between(before.to_owned(), after.to_owned()))
            }
            Some(_) => {
                Err(format!("`{path}`: a path of words has `**` once, with a path before and after it"))
            }
            None => read(path).map(WordPath::Exact),
        };
        paths.iter().map(path).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn has_path(&self, path: &str) -> bool {
        let is_word = |path: &str| {
            self.0.iter().any(|word| match word {
                WordPath::Exact(exact) => exact == path,
                WordPath::Between(before, after) => {
                    path.len() >= before.len() + after.len()
                        && path.starts_with(before)
                        && path.ends_with(after)
                }
            })
        };
        is_word(path) || (jsonl::path::has_positions(path) && is_word(&jsonl::path::without_positions(path)))
    }

    /// Appends the words of a message.
    pub(super) fn append_words(&self, leaves: &PathValues, out: &mut Vec<u8>) {
        let (mut compared, mut cached_path) = (0, None::<(u32, bool)>);
        let mut pieces: Vec<&str> = Vec::new();
        // The value of the first path: the others often have copies of its words.
        let mut main = None::<&str>;
        let (mut last, mut entry) = (None::<(u32, usize)>, 0);
        for (i, leaf) in leaves.as_slice().iter().enumerate() {
            let text = leaves.text(leaf);
            let is_word = match cached_path {
                Some((path, is_word)) if path == leaf.path => is_word,
                _ => self.has_path(leaves.path(leaf.path)),
            };
            cached_path = Some((leaf.path, is_word));
            if !is_word || text.is_empty() {
                continue;
            }
            // Whether another entry of the list around it has begun since the last piece.
            let enclosing_list = list_around(leaves.path(leaf.path));
            let mut is_joined = last.is_some_and(|(path, _)| path == leaf.path) && enclosing_list.is_some();
            while let Some(list_entry) =
                leaves.entries().get(entry).filter(|candidate| candidate.first_value as usize <= i)
            {
                let after_last = last.is_some_and(|(_, n)| list_entry.first_value as usize > n);
                is_joined &= !(after_last && Some(leaves.path(list_entry.path)) == enclosing_list);
                entry += 1;
            }
            last = Some((leaf.path, i));
            let trimmed = text.trim();
            // What comes twice in a sentence is said twice.
            let is_known = compared <= COMPARED_BYTES_MAX
                && (!is_joined && pieces.contains(&trimmed)
                    || main.is_some_and(|main| has_words(main, trimmed)));
            compared += pieces.len() + trimmed.len() + main.map_or(0, str::len);
            if is_known && !trimmed.is_empty() {
                continue;
            }
            if trimmed.is_empty() {
                if is_joined && !out.is_empty() {
                    out.extend_from_slice(text.as_bytes());
                }
                continue;
            }
            if !is_joined && !out.is_empty() {
                out.truncate(out.trim_ascii_end().len());
                out.extend_from_slice(b"\n\n");
            }
            out.extend_from_slice(text.as_bytes());
            if pieces.is_empty()
                && matches!(self.0.first(), Some(WordPath::Exact(path)) if path == leaves.path(leaf.path))
            {
                main = Some(text);
            }
            pieces.push(trimmed);
        }
        out.truncate(out.trim_ascii_end().len());
    }
}

/// Returns the list around the innermost list of a path, if both have the same name: `a.elements[]` of
/// `a.elements[].elements[].text`. Words in the sentences of a text are such lists.
fn list_around(path: &str) -> Option<&str> {
    let inner = path.rfind("[]")?;
    let outer = path[..inner].rfind("[]")?;
    let name = path[..outer].rsplit('.').next()?;
    (path[outer + 2..inner].strip_prefix('.') == Some(name)).then(|| &path[..outer + 2])
}

/// Returns whether `text` contains `words` as whole words.
fn has_words(text: &str, words: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(words).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + words.len()..]);
        !is_letter(before.chars().next_back()) && !is_letter(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_codec::text::{NextTextMessage, TextMessageDecoder, jsonl};

    fn words(paths: &[&str], line: &str) -> String {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let paths = WordPaths::new(&paths, |path| Ok(path.to_owned())).unwrap();
        let (mut leaves, mut out) = (PathValues::default(), Vec::new());
        let next = jsonl::JsonlDecoder::default().next(line.as_bytes(), 0, true, &mut leaves);
        assert!(matches!(next, NextTextMessage::Message(_)), "{next:?}");
        paths.append_words(&leaves, &mut out);
        String::from_utf8(out).unwrap()
    }

    const PATHS: [&str; 4] = ["text", "attachments[].text", "attachments[].fallback", "blocks[]**.text"];

    // The words of a bot are in places of their own; those of a person are there twice.
    #[test]
    fn words_are_read_in_order_and_once() {
        for (line, want) in [
            (r#"{"text":"","attachments":[{"fallback":"Order 7","text":"Order 7"}]}"#, "Order 7"),
            (r#"{"text":"hello","blocks":[{"elements":[{"elements":[{"text":"hello"}]}]}]}"#, "hello"),
            (
                r#"{"blocks":[{"elements":[{"elements":[{"text":"sell "},{"text":"100"},{"text":" VOD"}]},{"elements":[{"text":"now"}]}]}]}"#,
                "sell 100 VOD\n\nnow",
            ),
            (
                r#"{"blocks":[{"text":{"text":"Head"}},{"fields":[{"text":"a"},{"text":"b"}]}]}"#,
                "Head\n\na\n\nb",
            ),
            (r#"{"blocks":[[{"text":"in a list"},"no path"]]}"#, "in a list"),
            (r#"{"text":"a","attachments":[{"text":"b","blocks":[{"text":{"text":"no path"}}]}]}"#, "a\n\nb"),
            (r#"{"other":"x"}"#, ""),
        ] {
            assert_eq!(words(&PATHS, line), want, "{line}");
        }
    }

    #[test]
    fn many_words_cost_no_more_than_their_bytes() {
        let many: Vec<String> = (0..5000).map(|n| format!("{{\"text\":\"{n}\"}}")).collect();
        let line = format!("{{\"text\":\"{}\",\"blocks\":[{}]}}", "x".repeat(1 << 20), many.join(","));
        assert!(words(&PATHS, &line).ends_with("4999"));
    }

    #[test]
    fn a_path_of_words_has_a_beginning_and_an_end() {
        for path in ["**.text", "blocks[]**", "a**b**c"] {
            let error = WordPaths::new(&[path.to_owned()], |path| Ok(path.to_owned())).unwrap_err();
            assert!(error.contains(path), "{error}");
        }
    }
}
