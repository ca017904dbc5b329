//! The table `[fast]` with all that it names.

use super::config::ChannelsConfig;
use super::config_refusal::{ConfigResult, refuse_config};
use super::file::MappingFile;
use super::plan::{HandlerConfig, OverrideSummary};
use super::shipped_mappings::ShippedFastMapping;
use crate::error::Error;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use unitape_base::{toml, whole_file};

/// A table `[fast]` with everything that it names: the mapping that it is like, and templates.
#[derive(Clone, Debug)]
pub struct FastMappingTable {
    /// As it appears in its file.
    text: ChannelsConfig,
    like: Option<&'static ShippedFastMapping>,
    /// Templates by the names that the table gives them.
    templates: BTreeMap<String, Vec<u8>>,
}

impl FastMappingTable {
    /// Reads the files that a table names; templates are beside the mapping file.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub fn read(text: ChannelsConfig, origin: &Path) -> ConfigResult<Self> {
        let like = match &text.like {
            Some(name) => match ShippedFastMapping::by_name(name) {
                Some(like) => Some(like),
                None => {
                    let shipped: Vec<_> = ShippedFastMapping::all().map(|shipped| shipped.name).collect();
                    let shipped = shipped.join(", ");
                    let reason = format!("like: no shipped mapping `{name}` for a FAST handler; {shipped}");
                    return refuse_config(&["like"], reason);
                }
            },
            None => None,
        };
        let mut templates = BTreeMap::new();
        for name in text.channel.iter().flat_map(|c| &c.templates).chain(&text.templates) {
            if templates.contains_key(name) {
                continue;
            }
            let path = origin.parent().unwrap_or(Path::new("")).join(name);
            match whole_file::read(&path, whole_file::BYTES_MAX) {
                Ok(content) => _ = templates.insert(name.clone(), content),
                Err(e) => return refuse_config(&["templates"], format!("{}: {e}", path.display())),
            }
        }
        Ok(Self { text, like, templates })
    }

    /// Iterates over the contents of all files that the table names, for a hash.
    pub fn files(&self) -> impl Iterator<Item = &[u8]> {
        let like = self.like.map(|like| like.text.as_bytes());
        like.into_iter().chain(self.templates.values().map(Vec::as_slice))
    }

    /// Makes the configuration of a handler.
    ///
    /// # Errors
    /// Fails at an error in the table or in the templates.
    pub fn config(&self) -> ConfigResult<HandlerConfig> {
        let overrides = OverrideSummary {
            messages: self.text.message.len(),
            has_own_framing: self.text.framing.is_some(),
        };
        HandlerConfig::new(&self.with_base(), overrides, &self.templates)
    }

    /// Returns whether the table has neither templates nor channels, and so is only a base for other tables.
    #[must_use]
    pub fn is_base(&self) -> bool {
        self.like.is_none() && self.text.templates.is_empty() && self.text.channel.is_empty()
    }

    /// Checks that the table can be used, or be the base of other tables.
    ///
    /// # Errors
    /// Fails as [`FastMappingTable::config`] does.
    pub fn check(&self) -> ConfigResult<()> {
        match self.is_base() {
            true => HandlerConfig::check_parts(&self.text),
            false => self.config().map(drop),
        }
    }

    /// Returns the venue's name in events.
    #[must_use]
    pub fn venue(&self) -> &str {
        let like = || self.like?.table().venue.as_deref();
        self.text.venue.as_deref().or_else(like).unwrap_or_default()
    }

    /// Returns the table, with missing keys from the mapping that it is like.
    pub(super) fn with_base(&self) -> ChannelsConfig {
        match self.like {
            Some(like) => self.text.clone().with_defaults(like.table()),
            None => self.text.clone(),
        }
    }
}

impl HandlerConfig {
    /// Loads the configuration from a mapping file with a table `[fast]`.
    ///
    /// # Errors
    /// Fails at an error in the table or in the templates; the error has file and line.
    pub fn load(path: &Path) -> Result<Arc<Self>, Error> {
        let origin = path.display().to_string();
        let text = toml::text_of(path)
            .map_err(|e| Error::Mapping { origin: origin.clone(), reason: e.to_string() })?;
        let file = MappingFile::parse(&text, &origin)?;
        let config = FastMappingTable::read(file.fast, path).and_then(|table| table.config());
        config.map(Arc::new).map_err(|refusal| Error::Mapping {
            origin: toml::origin(&origin, &text, &refusal.from_top()),
            reason: refusal.reason,
        })
    }
}
