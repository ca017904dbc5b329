//! The shipped mappings with a table `[fast]`, which others may be like.

use super::config::FastText;
use super::file::MappingFile;
use std::sync::OnceLock;

/// One of them.
#[derive(Debug)]
pub struct Shipped {
    /// Its name, which is that of its file.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
    /// Its table, read when it is first used.
    table: OnceLock<FastText>,
}

impl Shipped {
    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|shipped| shipped.name == name)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        ALL.iter()
    }

    /// Its table, read at the first call.
    ///
    /// # Panics
    /// When it cannot be read, which a test excludes.
    pub(super) fn table(&self) -> &FastText {
        self.table.get_or_init(|| {
            MappingFile::parse(self.text, "built in").expect("a shipped mapping is tested").fast
        })
    }
}

macro_rules! shipped {
    ($($name:literal),*) => {
        [$(Shipped {
            name: $name,
            text: include_str!(concat!("../../../../mappings/", $name, ".toml")),
            table: OnceLock::new(),
        }),*]
    };
}

static ALL: [Shipped; 2] = shipped!["t7-emdi", "cme-mdp2"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_tables_can_be_read() {
        for shipped in Shipped::all() {
            assert!(!shipped.table().message.is_empty(), "{}", shipped.name);
        }
    }
}
