//! Files of TOML that people write: where a mistake stands, and what a misspelled word may have meant.

mod line;
mod suggest;

pub use line::{Lines, line_at, origin};
pub use suggest::meant;

use serde::de::DeserializeOwned;
use std::io::Read;
use std::path::Path;

/// Bytes of a file of TOML, at most: a device without end is no such file.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// The text of a small file.
///
/// # Errors
/// When it cannot be read, or is larger than 1 MiB.
pub fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let mut file = std::fs::File::open(path)?.take(TEXT_BYTES_MAX + 1);
    file.read_to_string(&mut text)?;
    if text.len() as u64 > TEXT_BYTES_MAX {
        return Err(std::io::Error::other("larger than 1 MiB"));
    }
    Ok(text)
}

/// Reads a text; `origin` is the name of its file.
///
/// # Errors
/// File and line, and what is wrong there. What is missing as a whole is missing in line 1.
pub fn parse<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, (String, String)> {
    toml::from_str(text).map_err(|e| {
        let line = line_at(text, e.span().map_or(0, |span| span.start));
        (format!("{origin}:{line}"), format!("{}{}", e.message(), suggest::meant_key(e.message())))
    })
}
