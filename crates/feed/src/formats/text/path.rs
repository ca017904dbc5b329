//! The paths by which mappings name values of text.
//!
//! | path | is |
//! |---|---|
//! | `author.name` | the member `name` of the member `author` |
//! | `recipients[].email` | the member `email` of each entry of the list `recipients` |
//! | `bids[][0]` | of JSON: the first entry of each list in the list `bids`; `bids[][]` is all of them, wherever they stand |
//! | `[1].as[][0]` | of JSON: the same in the list `as` of the second entry of a message that is a list |
//! | `headers."x.y"` | a name with characters that paths have, in quotes |
//! | `ts@DD-MMM-YYYY HH:MM` | a time of this form, in the zone of the mapping (`docs/time-forms.md`) |
//! | `ts@s`, `ts@ms`, `ts@us`, `ts@ns` | a count of seconds, … since 1970, for a time |
//! | `contentMeta/subject@qcode` | of XML: the attribute `qcode` of the element `subject` of `contentMeta`, from the item on |
//! | `@kind` | what the message is: `object` or `list`, `mail`; of XML the item's element (`item`, `entry`, …), `feed` or `other` |
//! | `@words` | of a mail: its subject, its text, markup without a plain alternative, each forwarded message under its head; of JSON and XML the values at the paths of the list `words` in `[message]`; blank lines between |
//! | `@count(data[])` | of JSON: the number of entries of the list `data`, of all such lists where there are several; absent where there is none, or where a value other than `null` is in place of one |
//!
//! A group is a list (`delimiter = "messages[]"`), of XML the elements of one path; its members are that path and the
//! longer ones.

use super::TextFormat;
use crate::mapping::Dialect;
use std::cell::RefCell;
use unitape_codec::times::{self, WrittenTime};

/// Values are named by their paths.
#[derive(Debug)]
pub struct TextDialect {
    format: TextFormat,
    /// Zone of local times.
    local_zone: String,
    /// What to do with local times that occur twice or never.
    ambiguous_policy: Option<String>,
    /// The forms that paths name.
    forms: RefCell<Vec<(String, WrittenTime)>>,
}

impl TextDialect {
    /// Makes the dialect of this format; local times are in `zone`.
    pub fn new(format: TextFormat, zone: Option<&str>, ambiguous: Option<&str>) -> Self {
        let zone = zone.unwrap_or("UTC").to_owned();
        Self {
            format,
            local_zone: zone,
            ambiguous_policy: ambiguous.map(str::to_owned),
            forms: RefCell::default(),
        }
    }

    /// Returns the time forms that the mapping's paths name, by their numbers.
    pub fn into_forms(self) -> Vec<WrittenTime> {
        self.forms.into_inner().into_iter().map(|(_, form)| form).collect()
    }

    /// Returns the number of a form; adds the form if it is new.
    fn form_number(&self, text: &str) -> Result<u16, String> {
        let mut forms = self.forms.borrow_mut();
        if let Some(i) = forms.iter().position(|(t, _)| t == text) {
            return Ok(i as u16);
        }
        let form = times::time_form(text, &self.local_zone, self.ambiguous_policy.as_deref())?;
        forms.push((text.to_owned(), form));
        u16::try_from(forms.len() - 1).map_err(|_| "too many forms of times".to_owned())
    }
}

/// A path, and how its value is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // documented at the head of the module
pub enum TextPath {
    Kind,
    Words,
    Entries { path: String },
    Value { path: String, reading: TextValueConversion },
}

/// The reading of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextValueConversion {
    /// As it is.
    AsItIs,
    /// As a count since 1970; the unit is this many decimal places above a nanosecond.
    Count(u32),
    /// As a time of the form of this number.
    Form(u16),
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
        if let Some(path) = text.strip_prefix("@count(").and_then(|rest| rest.strip_suffix(')')) {
            if !self.format.has_lists {
                return Err(format!("`{text}`: only lists of JSON are counted"));
            }
            let path = (self.format.read_path)(path)?;
            return match path.ends_with("[]") {
                true => Ok(TextPath::Entries { path }),
                false => Err(format!("`{text}`: a list is written with `[]` at its end")),
            };
        }
        let has_forms = self.format.has_time_forms;
        let unit = UNITS
            .iter()
            .filter(|_| has_forms)
            .find_map(|(word, power)| Some((text.strip_suffix(word)?, *power)));
        let (path, reading) = match (unit, text.split_once('@')) {
            (Some((path, power)), _) => (path, TextValueConversion::Count(power)),
            (None, Some((path, form))) if has_forms && !path.is_empty() => match self.form_number(form) {
                Ok(form) => (path, TextValueConversion::Form(form)),
                // A name may have an @ in it.
                Err(_) if !form.bytes().any(|b| b.is_ascii_uppercase()) => {
                    (text, TextValueConversion::AsItIs)
                }
                Err(reason) => return Err(reason),
            },
            _ => (text, TextValueConversion::AsItIs),
        };
        Ok(TextPath::Value { path: (self.format.read_path)(path)?, reading })
    }

    fn framing(&self) -> Vec<TextPath> {
        vec![TextPath::Kind]
    }

    fn container(&self, path: &TextPath) -> Option<TextPath> {
        match path {
            TextPath::Value {
                path,
                reading: TextValueConversion::Count(_) | TextValueConversion::Form(_),
            } => Some(TextPath::Value { path: path.clone(), reading: TextValueConversion::AsItIs }),
            _ => None,
        }
    }
}
