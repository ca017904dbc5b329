//! What decoder and encoder have in common: the sorts of ops, and which fields have one previous value.

use super::template::{Dictionary, Key, Name, Operator, Part};
use std::collections::HashMap;

/// In place of an index: none.
pub(super) const NONE: u32 = u32::MAX;

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
    /// Behind its length.
    Sequence,
    Dynamic,
    /// A reference to a template that is not there.
    Missing,
}

impl OpCode {
    pub fn of(operator: Operator) -> Self {
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

    /// Whether it looks at a previous value.
    pub fn has_slot(self) -> bool {
        matches!(self, OpCode::Copy | OpCode::Increment | OpCode::Delta | OpCode::Tail)
    }
}

/// What becomes of an op's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Value,
    /// The op behind it is its mantissa, and left out where this is absent.
    Exponent,
    Mantissa,
    /// The op behind it is its sequence, and left out where this is absent.
    Length,
}

#[derive(PartialEq, Eq, Hash)]
enum Place {
    Global,
    Template(usize),
    Type(Option<Name>),
    Named(Name),
}

/// The entries of all dictionaries, numbered as they are met.
#[derive(Default)]
pub(super) struct Slots(HashMap<(Place, Name, Part), u32>);

impl Slots {
    /// The number of the entry that a key names where the application type is `kind`.
    pub fn of(&mut self, key: &Key, kind: Option<&Name>) -> u32 {
        let place = match &key.dictionary {
            Dictionary::Global => Place::Global,
            Dictionary::Template(index) => Place::Template(*index),
            Dictionary::Type => Place::Type(kind.cloned()),
            Dictionary::Named(name) => Place::Named(name.clone()),
        };
        let next = self.0.len() as u32;
        *self.0.entry((place, key.name.clone(), key.part)).or_insert(next)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}
