//! A mapping file for a handler by itself: a strategy needs no feed to read it.

use super::config::FastText;
use super::plan::{Config, Wrong};
use super::table::FastTable;
use crate::error::Error;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use unitape_base::toml;

/// A mapping with a table `[fast]`. These are all the keys that such a file may have, also where a feed reads it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingFile {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "title", default)]
    _title: String,
    /// Only a feed recognises files by their content.
    #[serde(rename = "detect", default)]
    _detect: BTreeMap<String, IgnoredAny>,
    /// The table.
    pub fast: FastText,
}

/// The keys that make a file a mapping with a table `[fast]`.
#[derive(Debug, Deserialize)]
struct Sort {
    format: Option<String>,
    fast: Option<IgnoredAny>,
}

impl MappingFile {
    /// Reads one; `origin` names it in errors.
    ///
    /// # Errors
    /// What is wrong, with its line.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        let fail = |(origin, what)| Error::Mapping { origin, what };
        let sort: Sort = toml::parse(text, origin).map_err(fail)?;
        if sort.format.as_deref() != Some("fast") || sort.fast.is_none() {
            let what = "a handler needs format fast and a table [fast] with channels".to_owned();
            return Err(fail((toml::origin(origin, text, &["format"]), what)));
        }
        toml::parse(text, origin).map_err(fail)
    }
}

impl Config {
    /// That of a mapping file with a table `[fast]`.
    ///
    /// # Errors
    /// What is wrong in it or in the templates, with file and line.
    pub fn load(path: &Path) -> Result<Arc<Self>, Error> {
        let origin = path.display().to_string();
        let text = toml::text_of(path)
            .map_err(|e| Error::Mapping { origin: origin.clone(), what: e.to_string() })?;
        let file = MappingFile::parse(&text, &origin)?;
        let made = FastTable::read(file.fast, path).and_then(|table| table.config());
        made.map(Arc::new).map_err(|wrong| Error::Mapping {
            origin: toml::origin(&origin, &text, &wrong.from_top()),
            what: wrong.what,
        })
    }

    /// The name of a channel.
    ///
    /// # Panics
    /// When there is none of this number.
    pub fn channel(&self, channel: u16) -> &str {
        &self.channels[usize::from(channel)].name
    }

    /// Where packets are sent to, with the channel and the line of each address.
    pub fn addresses(&self) -> impl Iterator<Item = (SocketAddr, u16, u8)> {
        self.addresses.iter().copied()
    }
}

impl Wrong {
    /// The way down to it from the top of a mapping file.
    #[must_use]
    pub fn from_top(&self) -> Vec<&str> {
        std::iter::once("fast").chain(self.place.iter().map(String::as_str)).collect()
    }
}
