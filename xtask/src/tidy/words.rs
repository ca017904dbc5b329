//! Words: `docs/vocabulary.md` lists the phrases and the names of types to avoid; this module enforces it.
//!
//! ```text
//! docs/vocabulary.md ─┬─ **terms**                  each occurs in some other file
//!                     ├─ Phrases that we do not write ─▶ code, comments, messages, pages
//!                     ├─ Openings of sentences        ─▶ pages
//!                     └─ Not names of types           ─▶ `struct`, `enum`, `trait`, `union`
//! ```

use super::TidyProblem;
use super::files::TreeFile;
use super::text::{WRITTEN, holds_word};

/// The page with the lists.
const PAGE: &str = "docs/vocabulary.md";

/// Files that quote the lists, or old releases.
const QUOTING: [&str; 3] = [PAGE, "CHANGELOG.md", "xtask/src/tidy/words.rs"];

/// The lists of the page.
#[derive(Debug, Default)]
struct Vocabulary {
    /// Defined terms, with their lines.
    terms: Vec<(usize, String)>,
    /// Phrases for all text, in small letters.
    phrases: Vec<String>,
    /// Openings of sentences, for pages.
    openings: Vec<String>,
    /// Names that no type has.
    type_names: Vec<String>,
}

pub(crate) fn check(files: &[TreeFile]) -> Vec<TidyProblem> {
    let Some(page) = files.iter().find(|file| file.path == PAGE).and_then(TreeFile::text) else {
        return vec![TidyProblem::new(PAGE, "is missing")];
    };
    let vocabulary = Vocabulary::parse(page);
    let mut problems = vocabulary.unused_terms(files);
    for file in files {
        // Golden data comes from others.
        if QUOTING.contains(&file.path.as_str())
            || file.path.starts_with("vectors/")
            || !WRITTEN.contains(&file.extension())
        {
            continue;
        }
        let Some(text) = file.text() else { continue };
        vocabulary.check_text(&file.path, file.extension() == "md", text, &mut problems);
        if file.extension() == "rs" {
            vocabulary.check_types(&file.path, text, &mut problems);
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
                "Phrases that we do not write" => {
                    lists.phrases.extend(entries.skip(usize::from(cell == "not")))
                }
                "Openings of sentences" => lists.openings.extend(entries.skip(usize::from(cell == "not"))),
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
            .map(|(line, term)| TidyProblem::at(PAGE, *line, format!("nothing else uses the term `{term}`")))
            .collect()
    }

    fn check_text(&self, path: &str, is_page: bool, text: &str, problems: &mut Vec<TidyProblem>) {
        let mut before = String::new();
        let mut in_code = false;
        for (index, line) in text.lines().enumerate() {
            let words = without_marker(line);
            let small = words.to_lowercase();
            let mut report = |phrase: &str| {
                problems.push(TidyProblem::at(
                    path,
                    index + 1,
                    format!("`{phrase}`: {PAGE} has a better word"),
                ));
            };
            for phrase in &self.phrases {
                if holds_word(&small, phrase) || is_wrapped(&before, &small, phrase) {
                    report(phrase);
                }
            }
            in_code ^= is_page && words.starts_with("```");
            if is_page && !in_code {
                let opens = |opening: &&String| {
                    words.match_indices(opening.as_str()).any(|(at, _)| {
                        let rest = &words[at + opening.len()..];
                        let marks = [". ", ": ", "| ", "** ", "* ", "- "];
                        let begins = at == 0 || marks.iter().any(|mark| words[..at].ends_with(mark));
                        begins && !rest.starts_with(char::is_alphanumeric)
                    })
                };
                if let Some(opening) = self.openings.iter().find(opens) {
                    report(opening);
                }
            }
            before = small;
        }
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
                problems.push(TidyProblem::at(
                    path,
                    index + 1,
                    format!("`{name}` is no name of a type ({PAGE})"),
                ));
            }
        }
    }
}

/// The line without the marks of a comment or of an item of a list.
fn without_marker(line: &str) -> &str {
    let line = line.trim();
    let line = ["///", "//!", "//", "#", "*"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
    line.trim_start()
}

/// Whether the phrase begins at the end of `before` and ends at the start of `line`.
fn is_wrapped(before: &str, line: &str, phrase: &str) -> bool {
    phrase.match_indices(' ').any(|(at, _)| {
        let (first, rest) = (&phrase[..at], &phrase[at + 1..]);
        let starts = line.strip_prefix(rest).is_some_and(|after| !after.starts_with(char::is_alphanumeric));
        let ends = before.strip_suffix(first).is_some_and(|to| !to.ends_with(char::is_alphanumeric));
        starts && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTS: &str = "\
# Vocabulary
| word | meaning |
|---|---|
| **tape** | a log. |
| **trip, reset** | of a breaker. |
## Phrases that we do not write
| not | write |
|---|---|
| goes on, what it is | continues |
## Openings of sentences
| not | write |
|---|---|
| What is | the noun |
## Not names of types
| not | write |
|---|---|
| `Thing`, `How` | a noun |
";

    fn problems(path: &str, text: &str) -> Vec<String> {
        let used = TreeFile::new("docs/used.md", "tape, trip and reset");
        let files = [TreeFile::new(PAGE, LISTS), used, TreeFile::new(path, text)];
        check(&files).into_iter().map(|p| format!("{}: {}", p.place, p.message)).collect()
    }

    #[test]
    fn phrases_are_noticed_also_where_a_line_ends_in_them() {
        assert_eq!(problems("a.rs", "// it goes on\n").len(), 1);
        let wrapped = problems("a.rs", "/// It Goes\n/// on here\n");
        assert_eq!(wrapped, ["a.rs:2: `goes on`: docs/vocabulary.md has a better word"]);
        assert_eq!(problems("a.md", "about what it\nis\n").len(), 1);
        for fine in ["it goes onto", "forgoes on", "goes, on", "what it isolates"] {
            assert!(problems("a.rs", fine).is_empty(), "{fine}");
        }
        assert!(problems("vectors/a.toml", "goes on").is_empty());
    }

    #[test]
    fn openings_are_noticed_in_pages_only() {
        assert_eq!(problems("a.md", "What is kept").len(), 1);
        assert_eq!(problems("a.md", "Kept. What is not").len(), 1);
        assert!(problems("a.md", "```\nWhat is kept\n```\n").is_empty());
        assert!(
            problems("a.md", "## What is kept\n").is_empty()
                && problems("a.rs", "/// What is kept\n").is_empty()
        );
        assert!(problems("a.md", "What isn").is_empty());
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
        let found: Vec<_> = check(&files).into_iter().map(|p| p.message).collect();
        assert_eq!(found, ["nothing else uses the term `trip`"]);
    }
}
