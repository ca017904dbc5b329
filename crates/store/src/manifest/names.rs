//! What a manifest says about the dictionary: its file, and the segments that count.

use serde::{Deserialize, Serialize};

use super::text::number_text;
use super::{FileDigest, Manifest};

/// The path of the dictionary in the list of files, before a name was erased.
pub(crate) const DICTIONARY: &str = "dictionary.log";

/// The names that a seal added to the dictionary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamesSegment {
    pub bytes: u64,
    pub generation: u64,
    #[serde(with = "number_text")]
    pub commit: u128,
}

/// Returns the path of the dictionary from which the manifest of this revision has erased a name.
pub(crate) fn dictionary_path(revision: u64) -> String {
    format!("dictionary-{revision:08x}.log")
}

/// Returns the revision in the path of a dictionary: 0 if no name was erased from it. Returns `None` for any other path.
pub(crate) fn dictionary_revision(path: &str) -> Option<u64> {
    if path == DICTIONARY {
        return Some(0);
    }
    let digits = path.strip_prefix("dictionary-")?.strip_suffix(".log")?;
    let revision = u64::from_str_radix(digits, 16).ok()?;
    (revision > 0 && dictionary_path(revision) == path).then_some(revision)
}

impl Manifest {
    /// Returns the path of the dictionary and its digest. Returns `None` if the store has no names.
    pub fn dictionary(&self) -> Option<(&str, &FileDigest)> {
        let mut files = self.files.iter().filter(|(path, _)| dictionary_revision(path).is_some());
        files.next().map(|(path, digest)| (path.as_str(), digest))
    }

    /// Returns whether the list of files has one dictionary, or none if there are no names.
    pub(super) fn is_dictionary_listed(&self) -> bool {
        let listed = self.files.keys().filter(|path| dictionary_revision(path).is_some()).count();
        listed == usize::from(!self.names.is_empty())
    }

    /// Puts a dictionary in the place of the one before, which stays for readers that have it. The next revision has it.
    pub fn replace_dictionary(&mut self, path: String, digest: FileDigest) {
        if let Some(old) = self.dictionary().map(|(old, _)| old.to_owned()) {
            self.files.remove(&old);
            self.replaced.insert(old, self.revision + 1);
        }
        self.files.insert(path, digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_has_one_path_for_each_revision() {
        assert_eq!(dictionary_revision(DICTIONARY), Some(0));
        assert_eq!(dictionary_revision(&dictionary_path(31)), Some(31));
        for other in ["dictionary-0000001F.log", "dictionary-1f.log", "dictionary-00000000.log", "manifest"] {
            assert_eq!(dictionary_revision(other), None, "{other}");
        }
    }
}
