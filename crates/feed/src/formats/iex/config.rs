//! The settings of an IEX feed in a mapping file: names, phases, and whether an execution is a print as well.
//!
//! ```toml
//! [iex]
//! venue = "IEXG"
//! currency = "USD"
//! suffix = ""                      # put behind every symbol, where two venues use one symbol for two things
//! prints = true                    # an execution of DEEP+ is a print as well
//! [iex.system_event]               # phases of the venue by event code
//! S = "open"
//! [iex.trading_status]             # phases of a security by status
//! H = "halt"
//! ```

use crate::error::Error;
use crate::formats::itch::phases_of;
use crate::mapping::Mapping;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The table `[iex]` of a mapping, as its file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // documented at the head of the module
pub struct IexConfig {
    pub venue: String,
    pub currency: Option<String>,
    #[serde(default)]
    pub suffix: String,
    #[serde(default = "yes")]
    pub prints: bool,
    #[serde(default)]
    pub system_event: BTreeMap<String, String>,
    #[serde(default)]
    pub trading_status: BTreeMap<String, String>,
}

impl IexConfig {
    /// Reads the configuration from a mapping.
    ///
    /// # Errors
    /// Fails if the settings are invalid; the error has the line.
    pub fn from_mapping(mapping: &Mapping) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct IexMappingFile {
            iex: IexConfig,
        }
        mapping.own_table().map(|file: IexMappingFile| file.iex)
    }
}

/// The table, checked.
#[derive(Clone, Debug)]
pub(super) struct CheckedIexConfig {
    pub venue: String,
    pub currency: Option<String>,
    pub symbol_suffix: String,
    pub emits_prints: bool,
    pub system_event: BTreeMap<u8, String>,
    pub trading_status: BTreeMap<u8, String>,
}

impl CheckedIexConfig {
    /// Checks the table.
    ///
    /// # Errors
    /// Fails if a key is invalid; names the key and the reason.
    pub fn new(text: &IexConfig) -> Result<Self, String> {
        if text.venue.is_empty() || text.venue.len() > VENUE_BYTES_MAX {
            return Err(format!("iex.venue: a name of 1 to {VENUE_BYTES_MAX} bytes"));
        }
        Ok(Self {
            venue: text.venue.clone(),
            currency: text.currency.clone(),
            symbol_suffix: text.suffix.clone(),
            emits_prints: text.prints,
            system_event: phases_of(&text.system_event, "iex.system_event")?,
            trading_status: phases_of(&text.trading_status, "iex.trading_status")?,
        })
    }
}

fn yes() -> bool {
    true
}

const VENUE_BYTES_MAX: usize = 255;
