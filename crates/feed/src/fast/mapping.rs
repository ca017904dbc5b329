//! The table `[fast]` of a mapping file, with the files that it names.

use super::config::FastText;
use super::plan::{Config, Own, Wrong};
use crate::error::Error;
use crate::mapping::Mapping;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// All that a table names beside itself: the mapping that it is like, and templates.
#[derive(Clone, Debug, Default)]
pub struct FastFiles {
    /// The text of the mapping that it is like.
    like: String,
    /// Templates by the names that the table gives them.
    templates: BTreeMap<String, Vec<u8>>,
}

impl FastFiles {
    /// All bytes of them, for the mapping's hash.
    pub fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.like.as_bytes()).chain(self.templates.values().map(Vec::as_slice))
    }
}

/// Reads what a mapping's table names; templates stand beside the mapping.
///
/// # Errors
/// When one of them cannot be read.
pub fn read(mapping: &Mapping) -> Result<FastFiles, Error> {
    let Some(text) = &mapping.fast else { return Ok(FastFiles::default()) };
    let mut files = FastFiles::default();
    if let Some(name) = &text.like {
        let Some(like) = Mapping::built_in(name).filter(|m| m.fast.is_some()) else {
            let shipped: Vec<_> =
                Mapping::all_built_in().filter(|m| m.fast.is_some()).map(|m| m.name.as_str()).collect();
            let what =
                format!("like: no shipped mapping `{name}` for a FAST handler; {}", shipped.join(", "));
            return Err(mapping.wrong_at(&["fast", "like"], what));
        };
        files.like.clone_from(&like.text);
    }
    let named = text.channel.iter().flat_map(|c| &c.templates).chain(&text.templates);
    for name in named {
        if files.templates.contains_key(name) {
            continue;
        }
        let path = Path::new(&mapping.origin).parent().unwrap_or(Path::new("")).join(name);
        let content = std::fs::read(&path)
            .map_err(|e| mapping.wrong_at(&["fast", "templates"], format!("{}: {e}", path.display())))?;
        files.templates.insert(name.clone(), content);
    }
    Ok(files)
}

/// What a handler is made by.
///
/// # Errors
/// What is wrong in the table or in the templates, with its line.
pub fn config(mapping: &Mapping) -> Result<Arc<Config>, Error> {
    let Some(text) = &mapping.fast else {
        return Err(mapping.wrong("fast", "format fast needs a table [fast]".to_owned()));
    };
    let own = Own { messages: text.message.len(), framing: text.framing.is_some() };
    match Config::new(&whole(text), own, &mapping.fast_files.templates) {
        Ok(config) => Ok(Arc::new(config)),
        Err(Wrong { place, what }) => {
            let place: Vec<&str> = std::iter::once("fast").chain(place.iter().map(String::as_str)).collect();
            Err(mapping.wrong_at(&place, what))
        }
    }
}

/// The table with what is as in the mapping that it is like.
pub(super) fn whole(text: &FastText) -> FastText {
    match &text.like {
        Some(name) => {
            let like = Mapping::built_in(name).and_then(|m| m.fast.clone());
            text.clone().over(&like.unwrap_or_default())
        }
        None => text.clone(),
    }
}

/// Whether a table can be used. One without templates or channels is there to be like.
///
/// # Errors
/// As [`config`].
pub fn check(mapping: &Mapping) -> Result<(), Error> {
    let is_base =
        |text: &FastText| text.like.is_none() && text.templates.is_empty() && text.channel.is_empty();
    match &mapping.fast {
        Some(text) if is_base(text) => {
            let places = Config::check(text);
            places.map_err(|Wrong { place, what }| {
                let place: Vec<&str> =
                    std::iter::once("fast").chain(place.iter().map(String::as_str)).collect();
                mapping.wrong_at(&place, what)
            })
        }
        _ => config(mapping).map(drop),
    }
}

/// The venue, as events name it.
pub fn venue(mapping: &Mapping) -> String {
    let text = mapping.fast.as_ref();
    let like = || Mapping::built_in(text?.like.as_ref()?)?.fast.as_ref()?.venue.clone();
    text.and_then(|t| t.venue.clone()).or_else(like).unwrap_or_default()
}
