//! The table `[fast_messages]` of a mapping: templates, framing, and where dictionaries are reset.
//!
//! ```toml
//! [fast_messages]
//! templates = ["venue.xml"]   # beside the mapping, or the names of shipped ones
//! framing = "cme"             # frames (the default), cme, moex, emdi, length-prefix, raw
//! reset = "message"           # dictionaries are emptied before each message, each packet (the default), or never
//! strict = true               # the reportable errors R6 to R9 are raised as well
//! ```

use crate::error::Error;
use crate::mapping::Mapping;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use unitape_base::whole_file;
use unitape_fast::{TemplateFile, Templates};

/// The table `[fast_messages]` as the mapping's file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // documented at the head of the module
pub struct FastMessagesConfig {
    pub templates: Vec<String>,
    #[serde(default)]
    pub framing: FastMessageFraming,
    #[serde(default)]
    pub reset: DictionaryResetRule,
    #[serde(default)]
    pub strict: bool,
}

/// The framing of messages, as in `decode fast`. In a capture each datagram is a packet, without the length before
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FastMessageFraming {
    /// A message with four bytes of length before it, the lowest first.
    #[default]
    Frames,
    /// As `Frames`, with a number of four bytes and a channel of one before each message.
    Cme,
    /// A number of four bytes before each message; nothing marks its end.
    Moex,
    /// Packets as in `BatchFrames`, each of any number of messages.
    Emdi,
    /// Blocks of messages, each with its length before it, as a FAST integer.
    LengthPrefix,
    /// Messages back to back.
    Raw,
}

/// The points at which dictionaries are reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DictionaryResetRule {
    /// With each message.
    Message,
    /// With each packet, or with each message if there are no packets.
    #[default]
    Packet,
    /// Never: the meaning of a message depends on all earlier messages of its source.
    Never,
}

impl FastMessageFraming {
    /// Returns how many bytes precede a message without being part of it.
    pub const fn head_bytes(self) -> usize {
        match self {
            FastMessageFraming::Cme => 5,
            FastMessageFraming::Moex => 4,
            _ => 0,
        }
    }

    /// Returns whether a packet may have several messages.
    pub const fn has_many_messages(self) -> bool {
        matches!(self, FastMessageFraming::Emdi | FastMessageFraming::LengthPrefix | FastMessageFraming::Raw)
    }

    /// Returns whether, in a file, only the message itself shows where it ends.
    pub const fn is_open_ended(self) -> bool {
        matches!(self, FastMessageFraming::Moex | FastMessageFraming::Raw)
    }
}

impl FastMessagesConfig {
    /// Reads the configuration from a mapping.
    ///
    /// # Errors
    /// Fails if the configuration is invalid; the error has the line.
    pub fn from_mapping(mapping: &Mapping) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct FastMessagesFile {
            fast_messages: FastMessagesConfig,
        }
        mapping.own_table().map(|file: FastMessagesFile| file.fast_messages)
    }

    /// Returns whether the meaning or the start of a message depends on earlier messages.
    pub fn is_stream(&self) -> bool {
        self.reset == DictionaryResetRule::Never || self.framing.is_open_ended()
    }
}

/// Reads number and channel from the bytes before a message. In CME framing the number is big-endian, in MOEX framing
/// little-endian.
pub fn number_and_channel(framing: FastMessageFraming, head: &[u8]) -> (Option<u32>, Option<u8>) {
    let number = head.first_chunk().map(|bytes| match framing {
        FastMessageFraming::Cme => u32::from_be_bytes(*bytes),
        _ => u32::from_le_bytes(*bytes),
    });
    (number, head.get(4).copied())
}

/// Reads the template files that a mapping names: text and name of each.
///
/// # Errors
/// Fails if a file is neither shipped nor readable.
pub fn read_templates(mapping: &Mapping) -> Result<Vec<(String, String)>, Error> {
    let text = FastMessagesConfig::from_mapping(mapping)?;
    if text.templates.is_empty() {
        return Err(
            mapping.refuse_key("fast_messages", "fast_messages.templates: no file is named".to_owned())
        );
    }
    let directory = Path::new(&mapping.origin).parent().unwrap_or(Path::new(""));
    let read_template = |name: &String| {
        if let Some((_, text)) = SHIPPED.iter().find(|(shipped, _)| shipped == name) {
            return Ok((name.clone(), (*text).to_owned()));
        }
        let path = directory.join(name);
        whole_file::read_text(&path, whole_file::BYTES_MAX)
            .map(|text| (path.display().to_string(), text))
            .map_err(|e| {
                let shipped: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
                let (path, shipped) = (path.display(), shipped.join(", "));
                let message =
                    format!("templates: neither shipped ({shipped}) nor a readable file: {path}: {e}");
                mapping.refuse_key("fast_messages", message)
            })
    };
    text.templates.iter().map(read_template).collect()
}

/// Loads the templates of a mapping.
///
/// # Errors
/// Fails if a file is invalid; the error has file and line.
pub fn templates(mapping: &Mapping) -> Result<Arc<Templates>, Error> {
    let sources: Vec<TemplateFile<'_>> = mapping
        .template_texts
        .iter()
        .map(|(name, text)| TemplateFile { name, content: text.as_bytes() })
        .collect();
    let loaded = Templates::load(&sources);
    loaded.map(Arc::new).map_err(|e| mapping.refuse_key("fast_messages", format!("templates: {e}")))
}

/// Templates of the shipped mappings.
const SHIPPED: &[(&str, &str)] =
    &[("moex-trades.xml", include_str!("../../../../../../mappings/templates/moex-trades.xml"))];
