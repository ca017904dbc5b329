//! A layout as its file writes it.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedLayoutConfig {
    pub name: Spanned<String>,
    #[serde(default)]
    pub title: String,
    /// Bytes of a record without its terminator, where a record does not say.
    pub record_bytes: Option<Spanned<usize>>,
    pub terminator: RecordTerminator,
    pub encoding: Option<Spanned<String>>,
    /// Zone of local times, where a column does not say.
    pub zone: Option<Spanned<String>>,
    /// What to do with local times that occur twice or never, where a column does not say.
    pub ambiguous: Option<Spanned<String>>,
    /// First of the hundred years that two digits mean, where a column does not say.
    pub pivot: Option<Spanned<i64>>,
    #[serde(default)]
    pub short: ShortRecordPolicy,
    pub record: Vec<Spanned<RecordLayoutConfig>>,
}

/// The bytes that end a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordTerminator {
    /// A line feed, with or without a carriage return before it.
    Newline,
    /// Carriage return and line feed.
    Crlf,
    /// Nothing: records follow each other.
    None,
}

/// The treatment of a record that ends before its last column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShortRecordPolicy {
    /// It is bad.
    #[default]
    Error,
    /// The missing columns are blank: trailing blanks were cut off.
    Pad,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordLayoutConfig {
    pub name: Spanned<String>,
    #[serde(default)]
    pub role: RecordRole,
    pub bytes: Option<Spanned<usize>>,
    #[serde(default)]
    pub when: BTreeMap<String, Spanned<OneOrMany>>,
    pub count: Option<Spanned<String>>,
    pub column: Vec<Spanned<ColumnLayoutConfig>>,
}

/// The role of a record in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordRole {
    /// The first record of a file; its dates hold for all of it.
    Header,
    /// Any other.
    #[default]
    Data,
    /// Closes the file.
    Trailer,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub fn list(&self) -> &[String] {
        match self {
            OneOrMany::One(s) => std::slice::from_ref(s),
            OneOrMany::Many(list) => list,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnLayoutConfig {
    pub name: Spanned<String>,
    /// From 1, as documents count.
    pub start: Option<Spanned<usize>>,
    #[serde(alias = "width")]
    pub length: Option<Spanned<usize>>,
    #[serde(default)]
    pub r#type: ColumnType,
    #[serde(alias = "forms")]
    pub form: Option<Spanned<OneOrMany>>,
    pub pivot: Option<Spanned<i64>>,
    pub decimals: Option<Spanned<u8>>,
    #[serde(default)]
    pub sign: SignStyle,
    #[serde(default)]
    pub storage: NumberStorage,
    pub pad: Option<Spanned<String>>,
    pub trim: Option<TrimSide>,
    #[serde(default)]
    pub squeeze: bool,
    #[serde(default)]
    pub required: bool,
    /// Values that mean "no value".
    #[serde(default)]
    pub none: Vec<Spanned<String>>,
    pub date: Option<Spanned<String>>,
    pub zone: Option<Spanned<String>>,
    pub ambiguous: Option<Spanned<String>>,
    pub yes: Option<Spanned<OneOrMany>>,
    pub no: Option<Spanned<OneOrMany>>,
    pub is: Option<Spanned<String>>,
    pub redefines: Option<Spanned<String>>,
    /// Marks of numbers in separated values: before the decimals, and between thousands.
    pub point: Option<Spanned<String>>,
    pub thousands: Option<Spanned<String>>,
    pub negative: Option<Spanned<Vec<NegativeStyle>>>,
}

/// How a number less than zero may be written, besides a minus before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NegativeStyle {
    /// `12,00-`.
    Trailing,
    /// `(12,00)`.
    Parentheses,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    #[default]
    Text,
    Int,
    Decimal,
    Date,
    Time,
    Timestamp,
    Flag,
    Literal,
    Filler,
}

/// How bytes store a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberStorage {
    /// A character for each digit.
    #[default]
    Text,
    /// Two digits a byte, the sign in the last half: COMP-3. A, C, E and F are plus, B and D minus.
    Packed,
    /// Big-endian, two's complement, 1 to 8 bytes: COMP.
    Binary,
    /// Big-endian without a sign, 1 to 8 bytes.
    Unsigned,
}

/// How a number shows its sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignStyle {
    /// Numbers have no sign.
    #[default]
    None,
    /// `+` or `-` before the digits, or nothing.
    Leading,
    /// `+` or `-` after the digits, or nothing.
    Trailing,
    /// In the last digit: `{` and `A` to `I` are +0 to +9, `}` and `J` to `R` are -0 to -9.
    Overpunch,
    /// In the first digit, with the letters of `Overpunch`.
    LeadingOverpunch,
}

/// On which side padding is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrimSide {
    Left,
    Right,
    Both,
    None,
}
