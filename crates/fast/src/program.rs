//! Compiled templates: a flat list of ops, and the parts to which each op refers. It knows neither its compiler
//! ([`super::compile`]) nor the engines that run it.

use super::entry::DecodedEntry;
pub(super) use super::ops::{FaultLocation, NONE, OpCode, OpRole};
use super::packed_value::PackedValue;
use super::projection::UNTAGGED;
use super::slot::{DictionaryLayout, SharedSlotRange};
use super::template::{QualifiedName, TemplateField, WireType};
use std::collections::HashMap;
use std::sync::Arc;

/// A value, or a structure around values.
#[derive(Debug, Clone, Copy)]
pub(super) struct DecodeOp {
    pub code: OpCode,
    pub role: OpRole,
    pub kind: WireType,
    pub optional: bool,
    /// Index of the field in [`DecodeProgram::infos`].
    pub info: u32,
    /// Slot of its previous value.
    pub slot: u32,
    /// Index in [`DecodeProgram::initials`].
    pub initial: u32,
    /// The block inside it.
    pub block: u32,
    /// Nothing reads its previous value, nor the value that other fields share with it: only whether there is one.
    pub is_unread: bool,
    /// It is delivered, as this.
    pub deliver: bool,
    pub tag: u16,
}

impl DecodeOp {
    pub fn from_code(code: OpCode) -> Self {
        Self {
            code,
            role: OpRole::Value,
            kind: WireType::UInt32,
            optional: false,
            info: NONE,
            slot: NONE,
            initial: NONE,
            block: NONE,
            is_unread: false,
            deliver: true,
            tag: UNTAGGED,
        }
    }
}

/// The ops that share one presence map, or have none.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpBlock {
    pub from: u32,
    pub to: u32,
    pub has_map: bool,
    /// The template that it is part of.
    pub template: u32,
    /// Bytes of the texts of its constants, delivered or not.
    pub text_bytes: u32,
}

/// A template.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompiledTemplate {
    pub block: u32,
    /// It empties the dictionaries.
    pub resets_dictionaries: bool,
    pub inside: ConstantRange,
    /// It holds a name more than once, see [`CompiledPart::is_repeated`].
    pub has_repeats: bool,
    /// Any constant is in it, or may be in a message inside it.
    pub has_constants: bool,
    /// The entries of dictionaries that it has: a range of the layout of the dictionaries.
    pub shared_slots: SharedSlotRange,
}

/// The constants of a block, in [`DecodeProgram::constants`]: its fields that need neither an op nor a byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConstantRange {
    pub from: u32,
    pub to: u32,
}

impl ConstantRange {
    pub const NOTHING: Self = ConstantRange { from: 0, to: 0 };
}

/// A mandatory constant.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConstantEntry {
    pub entry: DecodedEntry,
}

/// A field of a message.
#[derive(Debug, Clone)]
pub(super) struct CompiledPart {
    /// The template in which it is written.
    pub template: u32,
    pub kind: CompiledPartKind,
    /// It is a byte vector.
    pub is_bytes: bool,
    /// Its block is the element of a sequence.
    pub in_element: bool,
    /// Its block holds its name more than once, with static references written out.
    pub is_repeated: bool,
    /// The block that it is the name of holds some name more than once.
    pub has_repeats: bool,
    /// The end of the constants before this part in its block, and the end of all constants of the block.
    pub constants: u32,
    pub block_constants_end: u32,
    /// The constants of the block that it is the name of.
    pub inside: ConstantRange,
    /// It is one.
    pub constant: Option<u32>,
}

#[derive(Debug, Clone)]
pub(super) enum CompiledPartKind {
    Field(Arc<TemplateField>),
    Group(QualifiedName),
    Sequence(QualifiedName),
    Reference(QualifiedName),
    Dynamic,
}

impl CompiledPartKind {
    pub fn name(&self) -> &QualifiedName {
        static NOBODY: QualifiedName = QualifiedName { ns: String::new(), local: String::new() };
        match self {
            CompiledPartKind::Field(field) => &field.name,
            CompiledPartKind::Group(name)
            | CompiledPartKind::Sequence(name)
            | CompiledPartKind::Reference(name) => name,
            CompiledPartKind::Dynamic => &NOBODY,
        }
    }
}

impl CompiledPart {
    /// Returns the name of the part in a JSON object.
    pub fn key(&self) -> &str {
        match &self.kind {
            CompiledPartKind::Dynamic => "@ref",
            of => &of.name().local,
        }
    }

    pub fn name(&self) -> &QualifiedName {
        self.kind.name()
    }
}

/// All templates, compiled.
#[derive(Debug, Clone, Default)]
pub(super) struct DecodeProgram {
    pub ops: Vec<DecodeOp>,
    pub blocks: Vec<OpBlock>,
    pub infos: Vec<CompiledPart>,
    pub initials: Vec<PackedValue>,
    /// Initial values that are long texts. Every arena begins with them.
    pub texts: Vec<u8>,
    pub entries: DictionaryLayout,
    pub constants: Vec<ConstantEntry>,
    pub templates: Vec<CompiledTemplate>,
    /// The part at a path of a template.
    pub paths: HashMap<(u32, String), u32>,
    pub by_id: HashMap<u32, u32>,
}
