//! Templates as flat programs: everything that does not depend on a message is settled here, once.
//!
//! ```text
//!  template ──▶ block ──▶ op op op op …      static references written out where they stand
//!                  │        └ slot of the dictionary, initial value, place in the list of fields
//!                  └ presence map of its own?  group and element of a sequence: blocks of their own
//! ```

use super::template::{
    Dictionary, Field, Instruction, Key, Kind, Name, Operation, Operator, Part, Templates, Type, Value,
};
use std::collections::HashMap;
use std::sync::Arc;

/// In place of an index: none.
pub(super) const NONE: u32 = u32::MAX;

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
    /// Behind its length.
    Sequence,
    Dynamic,
    /// A reference to a template that is not there.
    Missing,
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

/// What has one presence map, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub from: u32,
    pub to: u32,
    pub has_map: bool,
    /// The template that it is part of.
    pub template: u32,
}

/// A field of a message.
#[derive(Debug, Clone)]
pub(super) struct Info {
    /// The template in which it is written.
    pub template: u32,
    pub of: Of,
}

#[derive(Debug, Clone)]
pub(super) enum Of {
    Field(Arc<Field>),
    Group(Name),
    Sequence(Name),
    Reference(Name),
}

impl Info {
    pub fn name(&self) -> &Name {
        match &self.of {
            Of::Field(field) => &field.name,
            Of::Group(name) | Of::Sequence(name) | Of::Reference(name) => name,
        }
    }
}

/// A value on its way from wire, template or dictionary to an entry and a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// As in an entry.
    pub bits: u64,
    pub exponent: i8,
    pub len: u8,
    /// A text that lies in the arena.
    pub long: bool,
}

impl Found {
    /// An integer, the mantissa of one, or an empty text.
    #[inline(always)]
    pub fn int(bits: u64) -> Self {
        Found { bits, exponent: 0, len: 0, long: false }
    }

    /// A text of up to eight bytes.
    #[inline(always)]
    pub fn short(text: &[u8]) -> Self {
        let mut word = [0; 8];
        word[..text.len()].copy_from_slice(text);
        Found { len: text.len() as u8, ..Self::int(u64::from_le_bytes(word)) }
    }

    /// A text in the arena.
    #[inline(always)]
    pub fn long(from: usize, len: usize) -> Self {
        Found { long: true, ..Self::int((from as u64) << 32 | len as u64) }
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
    pub slots: usize,
    /// The block of each template, and whether it empties the dictionaries.
    pub templates: Vec<(u32, bool)>,
    pub by_id: HashMap<u32, u32>,
}

#[derive(PartialEq, Eq, Hash)]
enum Place {
    Global,
    Template(usize),
    Type(Option<Name>),
    Named(Name),
}

struct Compiler<'t> {
    templates: &'t Templates,
    program: Program,
    slots: HashMap<(Place, Name, Part), u32>,
}

/// Where an instruction stands.
#[derive(Clone)]
struct Context {
    template: usize,
    kind: Option<Name>,
}

impl Context {
    fn inside(&self, kind: Option<&Name>) -> Self {
        Self { template: self.template, kind: kind.or(self.kind.as_ref()).cloned() }
    }
}

impl Program {
    pub fn new(templates: &Templates) -> Self {
        let mut compiler = Compiler { templates, program: Self::default(), slots: HashMap::new() };
        for (index, template) in templates.list().iter().enumerate() {
            let context = Context { template: index, kind: template.type_ref.clone() };
            let block = compiler.block(&template.body, &context);
            // Of the template's id, at least.
            compiler.program.blocks[block as usize].has_map = true;
            compiler.program.templates.push((block, template.reset));
            if let Some(id) = template.id {
                compiler.program.by_id.insert(id, index as u32);
            }
        }
        compiler.program.slots = compiler.slots.len();
        compiler.program
    }
}

impl Compiler<'_> {
    /// The ops of a body stand together; the blocks inside stand before it.
    fn block(&mut self, body: &[Instruction], context: &Context) -> u32 {
        let mut ops = Vec::new();
        let has_map = self.body(body, context, &mut ops);
        let from = self.program.ops.len() as u32;
        self.program.ops.extend_from_slice(&ops);
        let to = self.program.ops.len() as u32;
        self.program.blocks.push(Block { from, to, has_map, template: context.template as u32 });
        self.program.blocks.len() as u32 - 1
    }

    /// Whether any of it has a bit.
    fn body(&mut self, body: &[Instruction], context: &Context, ops: &mut Vec<Op>) -> bool {
        let mut any = false;
        for instruction in body {
            any |= match instruction {
                Instruction::Field(field) => self.field(field, context, Role::Value, ops),
                Instruction::Group(group) => {
                    let inside = context.inside(group.type_ref.as_ref());
                    let block = self.block(&group.body, &inside);
                    let info = self.info(context, Of::Group(group.name.clone()));
                    ops.push(Op { optional: group.optional, block, info, ..Op::of(OpCode::Group) });
                    group.optional
                }
                Instruction::Sequence(sequence) => {
                    let inside = context.inside(sequence.type_ref.as_ref());
                    let bit = self.field(&sequence.length, &inside, Role::Length, ops);
                    let block = self.block(&sequence.body, &inside);
                    let info = self.info(context, Of::Sequence(sequence.name.clone()));
                    ops.push(Op { block, info, ..Op::of(OpCode::Sequence) });
                    bit
                }
                Instruction::Static(name, None) => {
                    let info = self.info(context, Of::Reference(name.clone()));
                    ops.push(Op { info, ..Op::of(OpCode::Missing) });
                    false
                }
                Instruction::Static(_, Some(index)) => {
                    let templates = self.templates;
                    let template = &templates.list()[*index];
                    let mut inside = context.inside(template.type_ref.as_ref());
                    inside.template = *index;
                    self.body(&template.body, &inside, ops)
                }
                Instruction::Dynamic => {
                    ops.push(Op::of(OpCode::Dynamic));
                    false
                }
            };
        }
        any
    }

    fn field(&mut self, field: &Arc<Field>, context: &Context, role: Role, ops: &mut Vec<Op>) -> bool {
        let info = self.info(context, Of::Field(field.clone()));
        let optional = field.optional;
        let mut push = |operation: &Operation, kind, role, optional| {
            let op = self.op(operation, context);
            ops.push(Op { role, kind, optional, info, ..op });
            operation.has_bit(optional)
        };
        match &field.kind {
            Kind::Plain(kind, operation) => push(operation, *kind, role, optional),
            Kind::Split(exponent, mantissa) => {
                let bit = push(exponent, Type::Int32, Role::Exponent, optional);
                push(mantissa, Type::Int64, Role::Mantissa, false) || bit
            }
        }
    }

    fn op(&mut self, operation: &Operation, context: &Context) -> Op {
        let code = match operation.operator {
            Operator::None => return Op::of(OpCode::Plain),
            Operator::Constant => OpCode::Constant,
            Operator::Default => OpCode::Default,
            Operator::Copy => OpCode::Copy,
            Operator::Increment => OpCode::Increment,
            Operator::Delta => OpCode::Delta,
            Operator::Tail => OpCode::Tail,
        };
        let initial = operation.initial.as_ref().map_or(NONE, |value| self.initial(value));
        let slot = match operation.operator {
            Operator::Constant | Operator::Default => NONE,
            _ => self.slot(&operation.key, context),
        };
        Op { initial, slot, ..Op::of(code) }
    }

    fn initial(&mut self, value: &Value) -> u32 {
        let program = &mut self.program;
        program.initials.push(match value {
            // Integers in two's complement, whatever their type.
            Value::Int(value) => Found::int(*value as u64),
            Value::Decimal { mantissa, exponent } => {
                Found { exponent: *exponent as i8, ..Found::int(*mantissa as u64) }
            }
            Value::Bytes(text) if text.len() <= 8 => Found::short(text),
            Value::Bytes(text) => {
                program.texts.extend_from_slice(text);
                Found::long(program.texts.len() - text.len(), text.len())
            }
        });
        program.initials.len() as u32 - 1
    }

    fn slot(&mut self, key: &Key, context: &Context) -> u32 {
        let place = match &key.dictionary {
            Dictionary::Global => Place::Global,
            Dictionary::Template(index) => Place::Template(*index),
            Dictionary::Type => Place::Type(context.kind.clone()),
            Dictionary::Named(name) => Place::Named(name.clone()),
        };
        let next = self.slots.len() as u32;
        *self.slots.entry((place, key.name.clone(), key.part)).or_insert(next)
    }

    fn info(&mut self, context: &Context, of: Of) -> u32 {
        self.program.infos.push(Info { template: context.template as u32, of });
        self.program.infos.len() as u32 - 1
    }
}

impl Op {
    fn of(code: OpCode) -> Self {
        Self {
            code,
            role: Role::Value,
            kind: Type::UInt32,
            optional: false,
            info: NONE,
            slot: NONE,
            initial: NONE,
            block: NONE,
        }
    }
}
