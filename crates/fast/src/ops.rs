//! Parts that decoder and encoder share: the kinds of ops, and which fields have one previous value.

use super::template::{DictionaryKey, DictionaryKeyPart, DictionaryScope, Operator, QualifiedName};
use std::collections::HashMap;

/// In place of an index: none.
pub(super) const NONE: u32 = u32::MAX;

/// The part that a fault names: the first that failed, so an inner one rather than those around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FaultLocation {
    /// Index of the template, or [`NONE`].
    pub template: u32,
    /// Index of the field, group or sequence among the parts of the program or the plan, or [`NONE`].
    pub part: u32,
}

impl FaultLocation {
    pub const NONE: Self = FaultLocation { template: NONE, part: NONE };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpCode {
    Plain,
    Constant,
    Default,
    Copy,
    Increment,
    Delta,
    Tail,
    Group,
    /// After its length.
    Sequence,
    Dynamic,
    /// A reference to a template that is not there.
    Missing,
}

impl OpCode {
    pub fn from_operator(operator: Operator) -> Self {
        match operator {
            Operator::None => OpCode::Plain,
            Operator::Constant => OpCode::Constant,
            Operator::Default => OpCode::Default,
            Operator::Copy => OpCode::Copy,
            Operator::Increment => OpCode::Increment,
            Operator::Delta => OpCode::Delta,
            Operator::Tail => OpCode::Tail,
        }
    }

    /// Returns whether the operator uses a previous value.
    pub fn has_slot(self) -> bool {
        matches!(self, OpCode::Copy | OpCode::Increment | OpCode::Delta | OpCode::Tail)
    }
}

/// The role of an op's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpRole {
    Value,
    /// The op after it is its mantissa, which is left out if the exponent is absent.
    Exponent,
    Mantissa,
    /// The op after it is its sequence, which is left out if the length is absent.
    Length,
}

#[derive(PartialEq, Eq, Hash)]
enum DictionaryId {
    Global,
    Template(usize),
    Type(Option<QualifiedName>),
    Named(QualifiedName),
}

/// The entries of all dictionaries, numbered as they are met.
#[derive(Default)]
pub(super) struct SlotAllocator(HashMap<(DictionaryId, QualifiedName, DictionaryKeyPart), u32>);

impl SlotAllocator {
    /// Returns the number of the dictionary entry that a key names if the application type is `kind`. A new key gets
    /// the next number.
    pub fn slot_number(&mut self, key: &DictionaryKey, kind: Option<&QualifiedName>) -> u32 {
        let dictionary_id = match &key.dictionary {
            DictionaryScope::Global => DictionaryId::Global,
            DictionaryScope::Template(index) => DictionaryId::Template(*index),
            DictionaryScope::Type => DictionaryId::Type(kind.cloned()),
            DictionaryScope::Named(name) => DictionaryId::Named(name.clone()),
        };
        let next = self.0.len() as u32;
        *self.0.entry((dictionary_id, key.name.clone(), key.part)).or_insert(next)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}
