//! Files of TOML that people write: where a mistake is, and what a misspelled word may have meant.

mod line;
mod suggest;

pub use line::{TomlLineIndex, line_at, origin};
pub use suggest::{nearest_words, suggest_word};

use crate::whole_file;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Bytes of a file of TOML, at most.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Reads the text of a small file.
///
/// # Errors
/// Fails if the file cannot be read or is larger than 1 MiB.
pub fn text_of(path: &Path) -> std::io::Result<String> {
    whole_file::read_text(path, TEXT_BYTES_MAX)
}

/// Reads a text; `origin` is the name of its file.
///
/// # Errors
/// Fails if the text is invalid: returns file and line, and the problem there. A missing top-level key is reported in
/// line 1.
pub fn parse<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, (String, String)> {
    toml::from_str(text).map_err(|e| {
        let line = line_at(text, e.span().map_or(0, |span| span.start));
        (format!("{origin}:{line}"), format!("{}{}", e.message(), suggest::suggest_key(e.message())))
    })
}
