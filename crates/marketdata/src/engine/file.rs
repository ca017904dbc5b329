//! A mapping file for a handler by itself: a strategy needs no feed to read it.

use super::config::FastText;
use crate::error::Error;
use serde::Deserialize;
use serde::de::IgnoredAny;
use unitape_base::toml;

/// A mapping with a table `[fast]`: what feeds look at beside that is passed over.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingFile {
    #[serde(rename = "name")]
    _name: IgnoredAny,
    #[serde(rename = "format")]
    _format: IgnoredAny,
    #[serde(rename = "title", default)]
    _title: IgnoredAny,
    #[serde(rename = "detect", default)]
    _detect: IgnoredAny,
    /// The table.
    pub fast: FastText,
}

/// What tells whether it is one.
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
