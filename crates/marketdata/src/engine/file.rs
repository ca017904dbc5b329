//! A mapping file for a handler by itself: a strategy needs no feed to read it.

use super::config::ChannelsConfig;
use crate::error::Error;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
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
    pub fast: ChannelsConfig,
}

/// The keys that make a file a mapping with a table `[fast]`.
#[derive(Debug, Deserialize)]
struct MappingKeys {
    format: Option<String>,
    fast: Option<IgnoredAny>,
}

impl MappingFile {
    /// Reads one; `origin` names it in errors.
    ///
    /// # Errors
    /// The error in the text, with its line.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        let fail = |(origin, what)| Error::Mapping { origin, what };
        let sort: MappingKeys = toml::parse(text, origin).map_err(fail)?;
        if sort.format.as_deref() != Some("fast") || sort.fast.is_none() {
            let what = "a handler needs format fast and a table [fast] with channels".to_owned();
            return Err(fail((toml::origin(origin, text, &["format"]), what)));
        }
        toml::parse(text, origin).map_err(fail)
    }
}
