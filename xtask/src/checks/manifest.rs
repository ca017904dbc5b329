//! The manifest of checks: what must never become less.
//!
//! ```text
//! test     ⇥ NAME ⇥ COUNT           a check and how much of it there is
//! renamed  ⇥ OLD  ⇥ NEW             what NEW has counts for OLD as well
//! gone     ⇥ NAME ⇥ reason          its subject was removed: nothing is asked for any more
//! ```

use super::{CheckKind, CheckName};

/// The manifest's place in the tree.
pub(crate) const MANIFEST: &str = "xtask/checks.tsv";

/// The manifest's lines by their kind.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct CheckManifest {
    pub(crate) entries: Vec<CheckEntry>,
    pub(crate) renamed: Vec<RenamedLine>,
    pub(crate) gone: Vec<GoneLine>,
}

/// A check that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckEntry {
    pub(crate) line: usize,
    pub(crate) check: CheckName,
    pub(crate) number: u64,
}

/// A check that has another name now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RenamedLine {
    pub(crate) line: usize,
    pub(crate) old: String,
    pub(crate) new: String,
}

/// A check whose subject was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoneLine {
    pub(crate) line: usize,
    pub(crate) name: String,
}

impl CheckManifest {
    /// Reads the lines; `#` begins a comment. Order and doubles are looked at, so that a line is found where it belongs.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut manifest = Self::default();
        let mut last = Vec::new();
        for (index, content) in text.lines().enumerate() {
            let line = index + 1;
            if content.starts_with('#') || content.is_empty() {
                continue;
            }
            manifest.read_line(line, content).map_err(|why| format!("{MANIFEST}:{line}: {why}"))?;
            let fields: Vec<&str> = content.split('\t').collect();
            // A renamed check may have several lines, an entry has one.
            let key = if fields[0] == "renamed" { fields } else { fields[..2].to_vec() };
            if key <= last {
                return Err(format!("{MANIFEST}:{line}: this line is out of order"));
            }
            last = key;
        }
        Ok(manifest)
    }

    fn read_line(&mut self, line: usize, content: &str) -> Result<(), String> {
        let fields: Vec<&str> = content.split('\t').collect();
        let [word, name, value] = fields[..] else {
            return Err(format!(
                "a line has three fields with tabs between them, this one has {}",
                fields.len()
            ));
        };
        if name.is_empty() || value.trim().is_empty() {
            return Err("a field of this line is empty".to_owned());
        }
        match word {
            "renamed" => self.renamed.push(RenamedLine { line, old: name.to_owned(), new: value.to_owned() }),
            "gone" => self.gone.push(GoneLine { line, name: name.to_owned() }),
            _ => {
                let kind =
                    CheckKind::of(word).ok_or_else(|| format!("no kind of check has the name `{word}`"))?;
                let number = value.parse().ok().filter(|&number| number > 0);
                let number = number.ok_or_else(|| format!("`{value}` is no number above zero"))?;
                self.entries.push(CheckEntry { line, check: CheckName::new(kind, name), number });
            }
        }
        Ok(())
    }

    /// The number that the manifest asks for of a check.
    pub(crate) fn number(&self, check: &CheckName) -> u64 {
        self.entries.iter().find(|entry| entry.check == *check).map_or(0, |entry| entry.number)
    }

    /// A name and all that it was renamed to, also in several steps.
    pub(crate) fn names<'m>(&'m self, name: &'m str) -> Vec<&'m str> {
        let mut names = vec![name];
        let mut at = 0;
        while let Some(&old) = names.get(at) {
            for renamed in self.renamed.iter().filter(|renamed| renamed.old == old) {
                if !names.contains(&renamed.new.as_str()) {
                    names.push(&renamed.new);
                }
            }
            at += 1;
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_entries_renamed_checks_and_those_that_are_gone() {
        let text = "# a comment\n\ncases\ta\t256\ngone\tb\tits command was removed\nrenamed\tc\td\nrenamed\tc\te\ntest\ta\t1\n";
        let manifest = CheckManifest::read(text).unwrap();
        assert_eq!(manifest.number(&CheckName::new(CheckKind::Cases, "a")), 256);
        assert_eq!(manifest.number(&CheckName::new(CheckKind::Test, "a")), 1);
        assert_eq!(manifest.number(&CheckName::new(CheckKind::Test, "b")), 0);
        assert_eq!((manifest.renamed.len(), manifest.gone.len()), (2, 1));
        assert_eq!(manifest.names("c"), ["c", "d", "e"]);
    }

    /// Names that are renamed in a circle must not be followed for ever.
    #[test]
    fn renamed_checks_are_followed_to_the_last_name() {
        let manifest = CheckManifest::read("renamed\ta\tb\nrenamed\tb\tc\nrenamed\tc\ta").unwrap();
        assert_eq!(manifest.names("a"), ["a", "b", "c"]);
        assert_eq!(manifest.names("x"), ["x"]);
    }

    /// A line that nobody reads would guard nothing.
    #[test]
    fn lines_that_cannot_be_read_are_told() {
        for (text, said) in [
            ("test\ta", "three fields"),
            ("test a 1", "three fields"),
            ("test\t\t1", "empty"),
            ("gone\ta\t ", "empty"),
            ("tests\ta\t1", "no kind of check has the name `tests`"),
            ("test\ta\t0", "no number above zero"),
            ("test\ta\tx", "no number above zero"),
            ("test\tb\t1\ntest\ta\t1", "order"),
            ("test\ta\t1\ntest\ta\t2", "order"),
        ] {
            let why = CheckManifest::read(text).unwrap_err();
            assert!(why.contains(said) && why.starts_with("xtask/checks.tsv:"), "{text}: {why}");
        }
    }
}
