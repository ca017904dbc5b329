//! The paths by which mappings name values of text.
//!
//! | path | is |
//! |---|---|
//! | `author.name` | the member `name` of the member `author` |
//! | `recipients[].email` | the member `email` of each entry of the list `recipients` |
//! | `headers."x.y"` | a name with characters that paths have, in quotes |
//! | `ts@s`, `ts@ms`, `ts@us`, `ts@ns` | a count of seconds, … since 1970, for a time |
//! | `contentMeta/subject@qcode` | of XML: the attribute `qcode` of the element `subject` of `contentMeta`, from the item on |
//! | `@kind` | what the message is: `object`, `mail`; of XML the item's element (`item`, `entry`, …), `feed` or `other` |
//! | `@words` | of a mail: its subject, its text, markup without a plain alternative, each forwarded message under its head; of JSON and XML the values at the paths of the list `words` in `[message]`; blank lines between |
//!
//! A group is a list (`delimiter = "messages[]"`), of XML the elements of one path; its members are that path and the
//! longer ones.

use super::TextKind;
use crate::mapping::Dialect;
use unitape_codec::text::{jsonl, mail, xml};

/// Values are named by their paths.
#[derive(Debug)]
pub struct TextDialect(pub TextKind);

/// A path, and how its value is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // documented at the head of the module
pub enum TextPath {
    Kind,
    Words,
    Value { path: String, reading: TextValueConversion },
}

/// The reading of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextValueConversion {
    /// As it is.
    AsItIs,
    /// As a count since 1970; the unit is this many decimal places above a nanosecond.
    Count(u32),
}

const KIND_PATH: &str = "@kind";

const WORDS_PATH: &str = "@words";

const UNITS: [(&str, u32); 4] = [("@s", 9), ("@ms", 6), ("@us", 3), ("@ns", 0)];

impl Dialect for TextDialect {
    type Path = TextPath;
    const TYPE_PATH: &'static str = KIND_PATH;
    const COUNTED_GROUPS: bool = false;

    fn path(&self, text: &str) -> Result<TextPath, String> {
        if text == KIND_PATH {
            return Ok(TextPath::Kind);
        }
        if text == WORDS_PATH {
            return Ok(TextPath::Words);
        }
        if self.0 == TextKind::NewsXml {
            return Ok(TextPath::Value {
                path: xml::path::read(text)?,
                reading: TextValueConversion::AsItIs,
            });
        }
        let unit = UNITS.iter().find_map(|(word, power)| Some((text.strip_suffix(word)?, *power)));
        let (path, reading) = unit.map_or((text, TextValueConversion::AsItIs), |(path, power)| {
            (path, TextValueConversion::Count(power))
        });
        let path = match self.0 {
            TextKind::Jsonl => jsonl::path::read(path)?,
            TextKind::NewsXml => path.to_owned(),
            TextKind::Mail => mail::known_path(&jsonl::path::read(path)?)?,
        };
        Ok(TextPath::Value { path, reading })
    }

    fn framing(&self) -> Vec<TextPath> {
        vec![TextPath::Kind]
    }

    fn container(&self, path: &TextPath) -> Option<TextPath> {
        match path {
            TextPath::Value { path, reading: TextValueConversion::Count(_) } => {
                Some(TextPath::Value { path: path.clone(), reading: TextValueConversion::AsItIs })
            }
            _ => None,
        }
    }
}
