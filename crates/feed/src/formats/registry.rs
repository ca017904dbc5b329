//! The formats whose messages become events by a mapping, and how a mapping is loaded.

use super::{clock, events};
use crate::error::Error;
use crate::formats::format::{Format, FormatEntry};
use crate::mapping::{Mapping, ShippedMapping};
use std::path::Path;
use unitape_base::toml::{self, suggest_word};

/// Each format in the order of errors and help.
static FORMATS: &[&FormatEntry] = &[
    &super::fix::FORMAT,
    &super::fixed::FORMAT,
    &super::csv::FORMAT,
    &super::swift::FORMAT,
    &super::itch::FORMAT,
    &super::iex::FORMAT,
    &super::fast::FORMAT,
    &super::iso20022::FORMAT,
    &super::text::JSONL,
    &super::text::MAIL,
    &super::text::NEWSXML,
];

fn entry(name: &str) -> Option<&'static FormatEntry> {
    FORMATS.iter().copied().find(|entry| entry.name == name)
}

fn format_names() -> String {
    FORMATS.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

impl Format {
    /// Makes the format that a mapping names, with this mapping.
    ///
    /// # Errors
    /// Fails if the mapping's format takes no mappings.
    pub fn from_mapping(mapping: Mapping) -> Result<Self, Error> {
        Self::new_mapped(entry_of(&mapping)?, mapping)
    }

    /// Looks up format and mapping by name, as `--feed` gives them.
    ///
    /// # Errors
    /// Fails if there is no such format or mapping.
    pub fn from_names(format: &str, mapping: &str) -> Result<Self, Error> {
        let config_error = |reason: String| Error::Config { origin: "feed".to_owned(), reason };
        match entry(format) {
            None if format == events::NAME => Ok(Self::events()),
            None if format == clock::NAME => Ok(Self::clock()),
            None => {
                let suggestion =
                    suggest_word(format, FORMATS.iter().map(|entry| entry.name).chain([events::NAME]));
                let format_names = format!("{}, {}", format_names(), events::NAME);
                Err(config_error(format!("no format `{format}`{suggestion}; formats: {format_names}")))
            }
            Some(_) if mapping.is_empty() => {
                Err(config_error(format!("format {format} needs a mapping: name={format}:MAPPING:path")))
            }
            Some(_) => {
                let mapping = Mapping::load(mapping)?;
                if mapping.format != format {
                    let Mapping { name, format: its, .. } = mapping;
                    return Err(config_error(format!("mapping {name} is for format {its}, not {format}")));
                }
                Self::from_mapping(mapping)
            }
        }
    }
}

impl Mapping {
    /// Reads a mapping; `origin` names it in errors.
    ///
    /// # Errors
    /// Fails if the text is invalid; the error has the line if TOML knows it.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        let mapping = Self::read(text, origin)?;
        Format::from_mapping(mapping.clone())?.check_mapping()?;
        Ok(mapping)
    }

    /// Reads a mapping without checking its rules.
    fn read(text: &str, origin: &str) -> Result<Self, Error> {
        let mut mapping = Self::from_text(text, origin)?;
        (entry_of(&mapping)?.load)(&mut mapping)?;
        let is_text = matches!(mapping.format.as_str(), "jsonl" | "mail" | "newsxml");
        let has_layout = matches!(mapping.format.as_str(), "csv" | "fixed");
        if mapping.message.zone.is_some() && !is_text {
            let message =
                "message.zone is for jsonl, mail and newsxml; a layout has its own `zone`".to_owned();
            return Err(mapping.refuse_key("message", message));
        }
        if mapping.message.ambiguous.is_some() && !is_text && !has_layout {
            let message =
                "message.ambiguous is for formats with local times: csv, fixed, jsonl, mail and newsxml";
            return Err(mapping.refuse_key("message", message.to_owned()));
        }
        Ok(mapping)
    }

    /// Looks up a shipped mapping by name.
    pub fn built_in(name: &str) -> Option<&'static Self> {
        ShippedMapping::by_name(name).map(shipped)
    }

    /// Lists all shipped mappings; parses each when the iterator reaches it.
    pub fn all_built_in() -> impl Iterator<Item = &'static Self> {
        ShippedMapping::all().map(shipped)
    }

    /// Loads a shipped mapping by name, or a file by path.
    ///
    /// # Errors
    /// Fails if there is no such mapping or file, or if the file is no mapping.
    pub fn load(name_or_path: &str) -> Result<Self, Error> {
        if let Some(m) = Self::built_in(name_or_path) {
            return Ok(m.clone());
        }
        match toml::text_of(Path::new(name_or_path)) {
            Ok(text) => Self::parse(&text, name_or_path),
            Err(e) => {
                let shipped: Vec<&str> = ShippedMapping::all().map(|shipped| shipped.name).collect();
                let suggestion = suggest_word(name_or_path, shipped.iter().copied());
                let shipped = shipped.join(", ");
                let message =
                    format!("neither a shipped mapping ({shipped}) nor a readable file: {e}{suggestion}");
                Err(Error::Mapping { origin: name_or_path.to_owned(), reason: message })
            }
        }
    }
}

fn entry_of(mapping: &Mapping) -> Result<&'static FormatEntry, Error> {
    entry(&mapping.format).ok_or_else(|| {
        let suggestion = suggest_word(&mapping.format, FORMATS.iter().map(|entry| entry.name));
        let message = format!(
            "format `{}` has no mapping{suggestion}; formats with one: {}",
            mapping.format,
            format_names()
        );
        mapping.refuse_key("format", message)
    })
}

/// Returns a shipped mapping, parsed at the first call. It is not compiled here: a test compiles each mapping.
///
/// # Panics
/// Panics if the mapping cannot be read, which a test excludes.
fn shipped(shipped: &'static ShippedMapping) -> &'static Mapping {
    shipped.mapping(|text| Mapping::read(text, "built in").expect("a shipped mapping is tested"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_mappings_compile_and_have_names_of_their_own() {
        for shipped in ShippedMapping::all() {
            let mapping = Mapping::parse(shipped.text, "built in").unwrap();
            assert_eq!(mapping.name, shipped.name);
            assert_eq!(mapping.identity(), Mapping::built_in(shipped.name).unwrap().identity());
            // A handler without a feed has the same ones.
            let of_handler = unitape_marketdata::engine::ShippedFastMapping::by_name(shipped.name)
                .map(|shipped_mapping| shipped_mapping.text);
            assert_eq!(of_handler, mapping.fast.is_some().then_some(shipped.text));
        }
    }
}
