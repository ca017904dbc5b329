//! What templates are compiled into: a flat list of ops, and what each of them refers to. It knows neither how it is made
//! ([`super::compile`]) nor who runs it.

use super::entry::Entry;
use super::found::Found;
pub(super) use super::ops::{NONE, OpCode, Role};
use super::projection::UNTAGGED;
use super::slot::{Entries, Share};
use super::template::{Field, Name, Type};
use std::collections::HashMap;
use std::sync::Arc;

/// A value, or what is around some.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    pub code: OpCode,
    pub role: Role,
    pub kind: Type,
    pub optional: bool,
    /// Of the field, in [`Program::infos`].
    pub info: u32,
    /// Of its previous value.
    pub slot: u32,
    /// In [`Program::initials`].
    pub initial: u32,
    /// Of what is inside.
    pub block: u32,
    /// Nobody wants to know its previous value, nor what it is for other fields with it: only whether there is one.
    pub idle: bool,
    /// It is delivered, as this.
    pub deliver: bool,
    pub tag: u16,
}

impl Op {
    pub fn of(code: OpCode) -> Self {
        Self {
            code,
            role: Role::Value,
            kind: Type::UInt32,
            optional: false,
            info: NONE,
            slot: NONE,
            initial: NONE,
            block: NONE,
            idle: false,
            deliver: true,
            tag: UNTAGGED,
        }
    }
}

/// What has one presence map, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub from: u32,
    pub to: u32,
    pub has_map: bool,
    /// The template that it is part of.
    pub template: u32,
    /// Bytes of the texts of its constants, delivered or not.
    pub text: u32,
}

/// A template.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compiled {
    pub block: u32,
    /// It empties the dictionaries.
    pub reset: bool,
    pub inside: Inside,
    /// It holds a name more than once, see [`Info::is_repeated`].
    pub has_repeats: bool,
    /// Any constant is told in it, or may be in a message inside it.
    pub has_constants: bool,
    /// The entries of dictionaries that it has: a range of [`Entries::of`].
    pub shares: Share,
}

/// The constants of a block, in [`Program::constants`]: what its fields tell without an op, and without a byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inside {
    pub from: u32,
    pub to: u32,
}

impl Inside {
    pub const NOTHING: Self = Inside { from: 0, to: 0 };
}

/// A mandatory constant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constant {
    pub entry: Entry,
}

/// A field of a message.
#[derive(Debug, Clone)]
pub(super) struct Info {
    /// The template in which it is written.
    pub template: u32,
    pub of: Of,
    /// It is a byte vector.
    pub is_bytes: bool,
    /// Its block is the element of a sequence.
    pub in_element: bool,
    /// Its block holds its name more than once, with static references written out.
    pub is_repeated: bool,
    /// The block that it is the name of holds some name more than once.
    pub has_repeats: bool,
    /// Where the constants before it in its block end, and where those of all of its block do.
    pub constants: u32,
    pub around: u32,
    /// Those of the block that it is the name of.
    pub inside: Inside,
    /// It is one.
    pub constant: Option<u32>,
}

#[derive(Debug, Clone)]
pub(super) enum Of {
    Field(Arc<Field>),
    Group(Name),
    Sequence(Name),
    Reference(Name),
    Dynamic,
}

impl Of {
    pub fn name(&self) -> &Name {
        static NOBODY: Name = Name { ns: String::new(), local: String::new() };
        match self {
            Of::Field(field) => &field.name,
            Of::Group(name) | Of::Sequence(name) | Of::Reference(name) => name,
            Of::Dynamic => &NOBODY,
        }
    }
}

impl Info {
    /// Its name in an object of JSON.
    pub fn key(&self) -> &str {
        match &self.of {
            Of::Dynamic => "@ref",
            of => &of.name().local,
        }
    }

    pub fn name(&self) -> &Name {
        self.of.name()
    }
}

/// All templates, compiled.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    pub ops: Vec<Op>,
    pub blocks: Vec<Block>,
    pub infos: Vec<Info>,
    pub initials: Vec<Found>,
    /// Initial values that are long texts: what every arena begins with.
    pub texts: Vec<u8>,
    pub entries: Entries,
    pub constants: Vec<Constant>,
    pub templates: Vec<Compiled>,
    /// What stands at a path of a template.
    pub paths: HashMap<(u32, String), u32>,
    pub by_id: HashMap<u32, u32>,
}
