//! Relative links in Markdown lead somewhere.

use std::path::{Component, Path, PathBuf};

use super::TidyProblem;
use super::files::TreeFile;

pub(crate) fn check(file: &TreeFile, root: &Path) -> Vec<TidyProblem> {
    if file.extension() != "md" {
        return Vec::new();
    }
    let Some(text) = file.text() else { return Vec::new() };
    let mut problems = Vec::new();
    for (line, link) in links(text) {
        if let Some(reason) = broken(&link, text, file, root) {
            problems.push(TidyProblem::at_line(&file.path, line, format!("link `{link}`: {reason}")));
        }
    }
    problems
}

/// The targets of all links outside code, with their line, counted from 1.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut targets = Vec::new();
    for (line, text) in prose(text) {
        for (offset, _) in text.match_indices("](") {
            let rest = &text[offset + 2..];
            if let Some(end) = rest.find([')', ' ']) {
                targets.push((line, rest[..end].trim_matches(['<', '>']).to_owned()));
            }
        }
        // A definition for links by reference: `[name]: target`.
        if text.starts_with('[')
            && let Some((_, target)) = text.split_once("]: ")
            && let Some(target) = target.split_whitespace().next()
        {
            targets.push((line, target.to_owned()));
        }
    }
    targets
}

/// The lines outside fenced blocks, with code between backticks blanked out.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => {
                let prose_parts =
                    line.split('`').enumerate().map(|(i, part)| if i % 2 == 0 { part } else { "" });
                lines.push((index + 1, prose_parts.collect()));
            }
            _ => {}
        }
    }
    lines
}

fn broken(link: &str, text: &str, file: &TreeFile, root: &Path) -> Option<String> {
    // `scheme:` leads out of the tree; whether it is alive is not ours to ask the network in a test.
    if link.is_empty() || link.split_once(':').is_some_and(|(s, _)| s.chars().all(char::is_alphanumeric)) {
        return link.is_empty().then(|| "is empty".to_owned());
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() {
        return missing_anchor(text, anchor);
    } else {
        let from = Path::new(&file.path).parent().unwrap_or(Path::new(""));
        match inside(&from.join(path)) {
            Some(target) => root.join(target),
            None => return Some("leads out of the tree".to_owned()),
        }
    };
    if !target.exists() {
        return Some("there is no such file".to_owned());
    }
    if path.ends_with(".md") && !anchor.is_empty() {
        return std::fs::read_to_string(&target).ok().and_then(|text| missing_anchor(&text, anchor));
    }
    None
}

fn missing_anchor(text: &str, anchor: &str) -> Option<String> {
    let headings =
        prose(text).into_iter().filter(|(_, line)| line.starts_with('#')).map(|(number, _)| number);
    let lines: Vec<&str> = text.lines().collect();
    let mut slugs = headings.filter_map(|number| lines.get(number - 1)).map(|line| slug(line));
    (!anchor.is_empty() && !slugs.any(|slug| slug == anchor)).then(|| "there is no such heading".to_owned())
}

/// The anchor that the usual renderers give to a heading.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn inside(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !clean.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str, root: &Path) -> Vec<String> {
        check(&TreeFile::new(path, text), root)
            .into_iter()
            .map(|p| format!("{}: {}", p.location, p.message))
            .collect()
    }

    /// A file that moves leaves dead links in the pages that nobody opened.
    #[test]
    fn relative_links_resolve_from_the_page_they_stand_on() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("docs")).unwrap();
        std::fs::write(dir.path().join("docs/a.md"), "# The `tape`, drawn\n").unwrap();
        let fine = "[a](a.md) [b](./a.md#the-tape-drawn) [c](../docs/) [d](https://example.org/x) [e](#here)\n\n\
                    ## Here\n\n[r]: a.md\n`[x](gone.md)`\n```\n[x](gone.md)\n```\n";
        assert_eq!(messages("docs/b.md", fine, dir.path()), Vec::<String>::new());
        for (broken, reason) in [
            ("[a](b.md)", "no such file"),
            ("[a](a.md#gone)", "no such heading"),
            ("[a](#gone)", "no such heading"),
            ("[a](../../x.md)", "leads out"),
            ("[a](/etc/x.md)", "leads out"),
            ("[a]()", "is empty"),
            ("[r]: gone.md", "no such file"),
        ] {
            let got = messages("docs/c.md", &format!("\n{broken}\n"), dir.path());
            assert!(
                got.len() == 1 && got[0].starts_with("docs/c.md:2") && got[0].contains(reason),
                "{broken}: {got:?}"
            );
        }
        assert!(messages("docs/c.txt", "[a](b.md)", dir.path()).is_empty());
    }
}
