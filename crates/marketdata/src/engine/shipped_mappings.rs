//! The shipped mappings with a table `[fast]`, which others may be like.

use super::config::ChannelsConfig;
use super::file::MappingFile;
use std::sync::OnceLock;

/// A shipped mapping.
#[derive(Debug)]
pub struct ShippedFastMapping {
    /// The mapping's name, which is the name of its file.
    pub name: &'static str,
    /// The text of the mapping's file.
    pub text: &'static str,
    /// The mapping's table, parsed at first use.
    table: OnceLock<ChannelsConfig>,
}

impl ShippedFastMapping {
    /// Looks up the shipped mapping with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        Self::all().find(|shipped| shipped.name == name)
    }

    /// Iterates over all shipped mappings.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        ALL.iter()
    }

    /// Returns the mapping's table, parsed at the first call.
    ///
    /// # Panics
    /// Panics if the table cannot be parsed, which a test excludes.
    pub(super) fn table(&self) -> &ChannelsConfig {
        self.table.get_or_init(|| {
            MappingFile::parse(self.text, "built in").expect("a shipped mapping is tested").fast
        })
    }
}

macro_rules! shipped {
    ($($name:literal),*) => {
        [$(ShippedFastMapping {
            name: $name,
            text: include_str!(concat!("../../../../mappings/", $name, ".toml")),
            table: OnceLock::new(),
        }),*]
    };
}

static ALL: [ShippedFastMapping; 2] = shipped!["t7-emdi", "cme-mdp2"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_tables_can_be_read() {
        for shipped in ShippedFastMapping::all() {
            assert!(!shipped.table().message.is_empty(), "{}", shipped.name);
        }
    }
}
