//! A mapping file for a handler by itself: a strategy needs no feed to read it.

use super::config::ChannelsConfig;
use crate::error::Error;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use unitape_base::toml;

/// A mapping with a table `[fast]`. The file may have only these keys, also if a feed reads it.
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
    /// Fails at an error in the text; the error has its line.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        let fail = |(origin, reason)| Error::Mapping { origin, reason };
        let keys: MappingKeys = toml::parse(text, origin).map_err(fail)?;
        if keys.format.as_deref() != Some("fast") || keys.fast.is_none() {
            let reason = "a handler needs format fast and a table [fast] with channels".to_owned();
            return Err(fail((toml::origin(origin, text, &["format"]), reason)));
        }
        toml::parse(text, origin).map_err(fail)
    }
}
