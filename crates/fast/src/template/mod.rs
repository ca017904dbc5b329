//! Template files describe the messages of a venue. They are loaded at run time.
//!
//! ```text
//! <templates xmlns="…/td/1.1">                                        Templates
//!   <template name="Quote" id="7">                                     └ Template 7, found by its id
//!     <uInt32 name="SeqNum" id="34"><increment/></uInt32>                ├ Field: UInt32, Increment, key (global, SeqNum)
//!     <decimal name="Px"><exponent><default value="-2"/></exponent>      ├ Field: Split, two operations with a key each
//!                        <mantissa><delta/></mantissa></decimal>         │
//!     <sequence name="Levels"><length name="NoLevels"/>…</sequence>      ├ Sequence: a length and a body
//!     <templateRef name="Trailer"/>                                      └ Static: what Trailer has, as if it stood here
//!   </template>
//! ```
//!
//! The language is FAST 1.1 (2006), with the parts of 1.2 that are in use: `define`, `field` and `type`, `enum`, `set`,
//! `timestamp`, `boolean`, vectors of integers. Root elements are `templates` or a single `template`. Elements and
//! attributes of other namespaces are extensions and are skipped. A reference to an unknown template is not an error of
//! the file: a message that uses it has the fault [`super::MessageFaultCode::D8`].

mod contents;
mod error;
mod initial;
mod kinds;
mod load;
mod references;
#[cfg(test)]
mod tests;
mod xml;

pub use error::{TemplateError, TemplateErrorCode};
pub use load::TemplateFile;

use std::collections::HashMap;
use std::sync::Arc;

/// A name in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct QualifiedName {
    /// The namespace; empty if none was given.
    pub ns: String,
    /// The name in it.
    pub local: String,
}

impl QualifiedName {
    /// Counts the bytes of the name.
    fn bytes(&self) -> usize {
        self.ns.len() + self.local.len()
    }
}

/// All templates of some files.
#[derive(Debug, Clone, Default)]
pub struct Templates {
    pub(crate) list: Vec<Template>,
    pub(crate) by_id: HashMap<u32, usize>,
    notes: Vec<String>,
}

/// A template.
#[derive(Debug, Clone)]
pub struct Template {
    /// Its name.
    pub name: QualifiedName,
    /// The id by which messages name it. A template without an id is there to be referred to.
    pub id: Option<u32>,
    /// Dictionaries are emptied where it begins (session control protocol).
    pub reset: bool,
    /// The application type of the contents.
    pub type_ref: Option<QualifiedName>,
    /// Its contents, in order.
    pub body: Vec<Instruction>,
}

/// A part of a template.
#[derive(Debug, Clone)]
pub enum Instruction {
    /// A value.
    Field(Arc<TemplateField>),
    /// Parts that are there together, or not at all.
    Group(TemplateGroup),
    /// Parts that are there any number of times.
    Sequence(TemplateSequence),
    /// The parts of another template, with its index in the list. The index is `None` if no file has the template.
    Static(QualifiedName, Option<usize>),
    /// The parts of the template that the message names here.
    Dynamic,
}

/// A value with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateField {
    /// Its name; empty for the elements of a vector.
    pub name: QualifiedName,
    /// Its name elsewhere, such as a tag of FIX.
    pub id: Option<String>,
    /// It may be absent.
    pub optional: bool,
    /// Its type and how it is encoded.
    pub kind: FieldEncoding,
    /// The meaning of its number.
    pub meaning: IntegerMeaning,
}

impl TemplateField {
    /// Counts the bytes of names and initial values.
    fn bytes(&self) -> usize {
        let operations = match &self.kind {
            FieldEncoding::Plain(_, operation) => operation.bytes(),
            FieldEncoding::Split(exponent, mantissa) => exponent.bytes() + mantissa.bytes(),
        };
        self.name.bytes() + self.id.as_ref().map_or(0, String::len) + operations
    }
}

/// A type, and one operation for all of it or one for each part.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldEncoding {
    /// One operation for all of the value.
    Plain(WireType, FieldOperator),
    /// A decimal with an operation for exponent and mantissa each.
    Split(FieldOperator, FieldOperator),
}

/// The types on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum WireType {
    Int32,
    UInt32,
    Int64,
    UInt64,
    /// Exponent and mantissa.
    Decimal,
    /// Characters of seven bits.
    Ascii,
    /// UTF-8 with its length before it.
    Unicode,
    /// Bytes with their length before them.
    Bytes,
}

impl WireType {
    /// Returns the bounds of an integer type, or `None` for any other type.
    #[must_use]
    pub const fn bounds(self) -> Option<(i128, i128)> {
        match self {
            WireType::Int32 => Some((i32::MIN as i128, i32::MAX as i128)),
            WireType::UInt32 => Some((0, u32::MAX as i128)),
            WireType::Int64 => Some((i64::MIN as i128, i64::MAX as i128)),
            WireType::UInt64 => Some((0, u64::MAX as i128)),
            _ => None,
        }
    }

    /// Returns the integer of this type after the given integer, both in two's complement. The smallest comes after the
    /// largest (6.3.6).
    #[must_use]
    pub(crate) const fn increment(self, bits: u64) -> u64 {
        match self {
            WireType::Int32 if bits == i32::MAX as u64 => i32::MIN as i64 as u64,
            WireType::UInt32 if bits == u32::MAX as u64 => 0,
            _ => bits.wrapping_add(1),
        }
    }

    /// Returns whether the type is a string or a byte vector.
    #[inline(always)]
    #[must_use]
    pub const fn is_string_or_bytes(self) -> bool {
        matches!(self, WireType::Ascii | WireType::Unicode | WireType::Bytes)
    }

    /// Returns the word of the template language.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            WireType::Int32 => "int32",
            WireType::UInt32 => "uInt32",
            WireType::Int64 => "int64",
            WireType::UInt64 => "uInt64",
            WireType::Decimal => "decimal",
            WireType::Ascii => "string",
            WireType::Unicode => "string charset=\"unicode\"",
            WireType::Bytes => "byteVector",
        }
    }
}

/// The meaning of an integer, in FAST 1.2.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum IntegerMeaning {
    /// Itself.
    #[default]
    Number,
    /// One name of these; the number on the wire of each, and the name.
    Enum(Arc<[(u64, String)]>),
    /// Some of these names, a bit each.
    Set(Arc<[String]>),
    /// 0 for no, 1 for yes.
    Boolean,
    /// A time in the unit of this many nanoseconds.
    Timestamp {
        /// Nanoseconds of a unit.
        unit_ns: u64,
    },
}

/// How a value is encoded.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldOperator {
    /// The operator.
    pub operator: Operator,
    /// The initial value.
    pub initial: Option<InitialValue>,
    /// Where its previous value is kept.
    pub key: DictionaryKey,
}

impl FieldOperator {
    /// Returns whether the field has a bit in the presence map.
    #[must_use]
    pub const fn has_bit(&self, optional: bool) -> bool {
        match self.operator {
            Operator::None | Operator::Delta => false,
            Operator::Constant => optional,
            Operator::Default | Operator::Copy | Operator::Increment | Operator::Tail => true,
        }
    }

    fn bytes(&self) -> usize {
        let initial = if let Some(InitialValue::Bytes(text)) = &self.initial { text.len() } else { 0 };
        let dictionary =
            if let DictionaryScope::Named(name) = &self.key.dictionary { name.bytes() } else { 0 };
        initial + self.key.name.bytes() + dictionary
    }
}

/// The operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Operator {
    None,
    Constant,
    Default,
    Copy,
    Increment,
    Delta,
    Tail,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InitialValue {
    /// A value of any integer type.
    Int(i128),
    /// Mantissa times ten to the exponent.
    Decimal {
        /// The mantissa.
        mantissa: i64,
        /// The exponent.
        exponent: i32,
    },
    /// Strings and byte vectors.
    Bytes(Vec<u8>),
}

/// The entry of a dictionary.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DictionaryKey {
    /// The dictionary.
    pub dictionary: DictionaryScope,
    /// The name in it.
    pub name: QualifiedName,
    /// The part of the field. The parts of a decimal have their own entries, even under the decimal's name. A length
    /// without a name has an entry that it shares with nothing else.
    pub part: DictionaryKeyPart,
}

/// The part of a field that a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DictionaryKeyPart {
    /// All of it, or a key was given.
    Whole,
    /// The exponent.
    Exponent,
    /// The mantissa.
    Mantissa,
    /// The length without a name of the sequence of this number.
    Length(usize),
}

/// A dictionary.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DictionaryScope {
    /// The dictionary that all share.
    Global,
    /// The dictionary of the template in which the operator is written, given by its index in the list.
    Template(usize),
    /// The dictionary of the application type.
    Type,
    /// A dictionary with a name.
    Named(QualifiedName),
}

/// Parts that are there together.
#[derive(Debug, Clone)]
pub struct TemplateGroup {
    /// Its name.
    pub name: QualifiedName,
    /// It may be absent.
    pub optional: bool,
    /// The application type of the contents.
    pub type_ref: Option<QualifiedName>,
    /// The parts inside it, in order.
    pub body: Vec<Instruction>,
}

/// Parts that are there any number of times.
#[derive(Debug, Clone)]
pub struct TemplateSequence {
    /// Its name.
    pub name: QualifiedName,
    /// It may be absent.
    pub optional: bool,
    /// The application type of the contents.
    pub type_ref: Option<QualifiedName>,
    /// How many there are.
    pub length: Arc<TemplateField>,
    /// The contents of each element.
    pub body: Vec<Instruction>,
}

impl Templates {
    /// Reads files: each its name, for errors, and its content. References go from any file to any other.
    ///
    /// # Errors
    /// Fails at the first static error, with file and line.
    pub fn load(files: &[TemplateFile<'_>]) -> Result<Self, TemplateError> {
        load::load(files)
    }

    /// Returns the id of the only template of this name. A template without an id gets one.
    pub(super) fn with_id_of(mut templates: Arc<Self>, name: &str) -> Option<(Arc<Self>, u32)> {
        let mut named = templates.list.iter().enumerate().filter(|(_, t)| t.name.local == name);
        let (Some((index, template)), None) = (named.next(), named.next()) else { return None };
        if let Some(id) = template.id {
            return Some((templates, id));
        }
        let id = (0..=u32::MAX).find(|id| !templates.by_id.contains_key(id))?;
        let with_id = Arc::make_mut(&mut templates);
        with_id.list[index].id = Some(id);
        with_id.by_id.insert(id, index);
        Some((templates, id))
    }

    /// Returns all templates, in the order of the files.
    #[must_use]
    pub fn list(&self) -> &[Template] {
        &self.list
    }

    /// Looks up the template with this id.
    #[must_use]
    pub fn by_id(&self, id: u32) -> Option<&Template> {
        self.by_id.get(&id).map(|index| &self.list[*index])
    }

    /// Returns notes on the skipped parts of the files, each with file and line.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}
