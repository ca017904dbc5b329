//! Words: the terms and the names of types of `docs/vocabulary.md`, and the first word of a public function's doc comment.
//!
//! ```text
//! docs/vocabulary.md ─┬─ **terms**           each occurs in some other file
//!                     └─ Not names of types ─▶ `struct`, `enum`, `trait`, `union`
//! crates/, xtask/ ────── `pub fn`           ─▶ its doc comment begins with a third-person verb
//! ```

use super::TidyProblem;
use super::files::TreeFile;

/// The page with the lists.
const PAGE: &str = "docs/vocabulary.md";

/// Files that quote the lists, or old releases.
const QUOTING: [&str; 3] = [PAGE, "CHANGELOG.md", "xtask/src/tidy/words.rs"];

/// The lists of the page.
#[derive(Debug, Default)]
struct Vocabulary {
    /// Defined terms, with their lines.
    terms: Vec<(usize, String)>,
    /// Names that no type has.
    type_names: Vec<String>,
}

pub(crate) fn check(files: &[TreeFile]) -> Vec<TidyProblem> {
    let Some(page) = files.iter().find(|file| file.path == PAGE).and_then(TreeFile::text) else {
        return vec![TidyProblem::new(PAGE, "is missing")];
    };
    let vocabulary = Vocabulary::parse(page);
    let mut problems = vocabulary.unused_terms(files);
    for file in files.iter().filter(|file| file.extension() == "rs") {
        let Some(text) = file.text() else { continue };
        vocabulary.check_types(&file.path, text, &mut problems);
        if ["crates/", "xtask/"].iter().any(|folder| file.path.starts_with(folder))
            && file.path.contains("/src/")
        {
            check_function_docs(&file.path, text, &mut problems);
        }
    }
    problems
}

impl Vocabulary {
    fn parse(page: &str) -> Self {
        let mut lists = Self::default();
        let mut section = "";
        for (index, line) in page.lines().enumerate() {
            if let Some(heading) = line.strip_prefix("## ") {
                section = heading;
                continue;
            }
            let Some(cell) = line.strip_prefix("| ").and_then(|row| row.split(" |").next()) else { continue };
            if cell.starts_with("---") {
                continue;
            }
            let entries = cell.split(", ").map(|entry| entry.trim_matches('`').to_owned());
            match section {
                "Not names of types" => lists.type_names.extend(entries.skip(usize::from(cell == "not"))),
                _ => {
                    let bold = cell.strip_prefix("**").and_then(|rest| rest.split("**").next());
                    let terms = bold.into_iter().flat_map(|bold| bold.split(", "));
                    lists.terms.extend(terms.map(|term| (index + 1, term.trim_matches('`').to_lowercase())));
                }
            }
        }
        lists
    }

    /// Terms that no other file uses.
    fn unused_terms(&self, files: &[TreeFile]) -> Vec<TidyProblem> {
        let mut left: Vec<&(usize, String)> = self.terms.iter().collect();
        for file in files {
            if left.is_empty() {
                break;
            }
            let written = ["rs", "md"].contains(&file.extension()) && !QUOTING.contains(&file.path.as_str());
            if let Some(text) = file.text().filter(|_| written) {
                let text = text.to_lowercase();
                left.retain(|(_, term)| !text.contains(term.as_str()));
            }
        }
        left.into_iter()
            .map(|(line, term)| {
                TidyProblem::at_line(PAGE, *line, format!("nothing else uses the term `{term}`"))
            })
            .collect()
    }

    fn check_types(&self, path: &str, text: &str, problems: &mut Vec<TidyProblem>) {
        for (index, line) in text.lines().enumerate() {
            let mut words =
                line.trim_start().split([' ', '<', '(', '{', ';', ':']).filter(|word| !word.is_empty());
            let kind = words.find(|word| !matches!(*word, "pub" | "crate)" | "super)" | "unsafe"));
            if !matches!(kind, Some("struct" | "enum" | "trait" | "union")) {
                continue;
            }
            if let Some(name) = words.next().filter(|name| self.type_names.iter().any(|not| not == name)) {
                problems.push(TidyProblem::at_line(
                    path,
                    index + 1,
                    format!("`{name}` is no name of a type ({PAGE})"),
                ));
            }
        }
    }
}

/// Notices doc comments of public functions that do not begin with a third-person verb.
fn check_function_docs(path: &str, text: &str, problems: &mut Vec<TidyProblem>) {
    // The first line of the doc comment above, with its number.
    let mut doc: Option<(usize, &str)> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("///") {
            doc.get_or_insert((index + 1, comment.trim()));
        } else if !line.starts_with("#[") {
            let comment = doc.take().filter(|_| is_public_function(line));
            if let Some((number, comment)) = comment.filter(|(_, comment)| !begins_with_verb(comment)) {
                let message =
                    format!("a doc comment of a function begins with a verb, as in \"Returns\": {comment}");
                problems.push(TidyProblem::at_line(path, number, message));
            }
        }
    }
}

fn is_public_function(line: &str) -> bool {
    let Some(mut rest) = line.strip_prefix("pub ") else { return false };
    while let Some(after) =
        ["const ", "async ", "unsafe ", "extern \"C\" "].iter().find_map(|word| rest.strip_prefix(word))
    {
        rest = after;
    }
    rest.starts_with("fn ")
}

fn begins_with_verb(comment: &str) -> bool {
    // The first line of a macro's documentation may be empty.
    let Some(word) = comment.split([' ', '.', ',', ':', ';']).next().filter(|word| !word.is_empty()) else {
        return true;
    };
    let is_word = word.starts_with(char::is_uppercase) && word[1..].chars().all(|c| c.is_ascii_lowercase());
    is_word && word.ends_with('s') && !NOT_VERBS.contains(&word)
}

/// Words with the ending of a verb that begin a sentence without one.
const NOT_VERBS: [&str; 10] =
    ["As", "Bytes", "Events", "Fields", "Ids", "Is", "Its", "Names", "This", "Times"];

#[cfg(test)]
mod tests {
    use super::*;

    const LISTS: &str = "\
# Vocabulary
| word | meaning |
|---|---|
| **tape** | a log. |
| **trip, reset** | of a breaker. |
## Not names of types
| not | write |
|---|---|
| `Thing`, `How` | a noun |
";

    fn problems(path: &str, text: &str) -> Vec<String> {
        let used = TreeFile::new("docs/used.md", "tape, trip and reset");
        let files = [TreeFile::new(PAGE, LISTS), used, TreeFile::new(path, text)];
        check(&files).into_iter().map(|p| format!("{}: {}", p.location, p.message)).collect()
    }

    #[test]
    fn doc_comments_of_public_functions_begin_with_a_verb() {
        let with = |doc: &str| format!("{doc}\n#[must_use]\npub const fn count(&self) -> u64 {{\n");
        assert_eq!(problems("crates/a/src/lib.rs", &with("/// Returns the count.")), Vec::<String>::new());
        for doc in [
            "/// The count.",
            "/// Whether it is there.",
            "/// Its count.\n/// Returns it.",
            "/// `count` returns it.",
        ] {
            let found = problems("crates/a/src/lib.rs", &with(doc));
            assert!(found.len() == 1 && found[0].starts_with("crates/a/src/lib.rs:1: "), "{doc}: {found:?}");
        }
        for fine in [
            "/// The count.\nfn count() {\n",
            "/// The count.\npub struct Count;\npub fn count() {\n",
            "pub fn count() {\n",
        ] {
            assert!(problems("crates/a/src/lib.rs", fine).is_empty(), "{fine}");
        }
        assert!(problems("examples/a.rs", &with("/// The count.")).is_empty());
    }

    #[test]
    fn names_of_types_are_noticed() {
        assert_eq!(problems("a.rs", "pub(crate) struct Thing<'a> {").len(), 1);
        assert_eq!(problems("a.rs", "    enum How { A }").len(), 1);
        assert!(problems("a.rs", "struct Things;\nuse How;\n").is_empty());
    }

    /// A term that nothing uses defines nothing.
    #[test]
    fn a_term_that_nothing_uses_is_noticed() {
        let files = [TreeFile::new(PAGE, LISTS), TreeFile::new("a.rs", "// the tape resets")];
        let messages: Vec<_> = check(&files).into_iter().map(|p| p.message).collect();
        assert_eq!(messages, ["nothing else uses the term `trip`"]);
    }
}
