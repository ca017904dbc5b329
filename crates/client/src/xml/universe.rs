//! The symbols of a request: elements, or the lines of a file.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;

use unitape_base::whole_file;

use super::error::{UniverseError, excerpt};

/// Bytes of a universe file, at most.
pub(super) const FILE_BYTES_MAX: u64 = 16 << 20;

/// Symbols of a request, at most.
pub(super) const SYMBOLS_MAX: usize = 100_000;

/// Bytes of a symbol, at most: those of a name on a tape.
const SYMBOL_BYTES_MAX: usize = 255;

/// Reads a universe file for [`read_request`](super::read_request), where the request is the caller's own.
///
/// # Errors
/// The file cannot be read, or has more than 16 MiB.
pub fn open_universe(path: &Path) -> Result<Vec<u8>, UniverseError> {
    whole_file::read(path, FILE_BYTES_MAX).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => UniverseError::TooLarge,
        _ => UniverseError::Io(error),
    })
}

/// Refuses each universe file for [`read_request`](super::read_request), where the request is somebody else's: a server must
/// not open a path that a client names.
///
/// # Errors
/// Always.
pub fn refuse_universe(_: &Path) -> Result<Vec<u8>, UniverseError> {
    Err(UniverseError::NoFileAccess)
}

/// Symbols, each once, in the order in which they came first.
#[derive(Default)]
pub(super) struct SymbolList {
    symbols: Vec<String>,
    unique_symbols: HashSet<String>,
}

impl SymbolList {
    /// Adds a symbol; white space around it does not belong to it. `line` is its line in a file.
    pub fn push(&mut self, text: &str, line: Option<usize>) -> Result<(), UniverseError> {
        let symbol = text.trim_matches([' ', '\t', '\r', '\n']);
        if symbol.is_empty() || symbol.len() > SYMBOL_BYTES_MAX || symbol.contains(char::is_control) {
            return Err(UniverseError::Symbol { line, text: excerpt(symbol) });
        }
        if self.unique_symbols.contains(symbol) {
            return Ok(());
        }
        if self.symbols.len() == SYMBOLS_MAX {
            return Err(UniverseError::TooMany);
        }
        self.unique_symbols.insert(symbol.to_owned());
        self.symbols.push(symbol.to_owned());
        Ok(())
    }

    /// Returns the symbols. A list without one is refused: an empty file must not ask for everything.
    pub fn finish(self) -> Result<Vec<String>, UniverseError> {
        if self.symbols.is_empty() { Err(UniverseError::Empty) } else { Ok(self.symbols) }
    }
}

/// Reads the symbols of a universe file: one a line; empty lines and those that begin with `#` are skipped.
pub(super) fn parse_file(bytes: &[u8]) -> Result<Vec<String>, UniverseError> {
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(UniverseError::TooLarge);
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| UniverseError::Encoding {
        line: bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1,
    })?;
    let mut symbols = SymbolList::default();
    for (index, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if !line.starts_with('#') && !line.trim_matches([' ', '\t']).is_empty() {
            symbols.push(line, Some(index + 1))?;
        }
    }
    symbols.finish()
}
