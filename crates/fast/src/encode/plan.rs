//! Templates as programs of the encoder: ops in the order of the wire, and where a draft has the value of each.
//!
//! ```text
//!  template ─▶ block of ops ─▶ cells of a frame     a frame for the message, one for each element of a sequence;
//!                                                   groups have their cells in the frame around them
//! ```

use super::draft::{FieldRef, GroupRef, Part, ReferenceRef, SequenceRef};
use crate::ops::Slots;
pub(super) use crate::ops::{NONE, OpCode, Role};
use crate::template::{Field, Instruction, Kind, Name, Operation, Templates, Type, Value};
use std::sync::Arc;

/// A value, or what is around some.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    pub code: OpCode,
    pub role: Role,
    pub kind: Type,
    pub optional: bool,
    /// Of the field, in [`Plan::infos`].
    pub info: u32,
    /// Of its previous value.
    pub slot: u32,
    /// In [`Plan::initials`].
    pub initial: u32,
    /// Of its frame. An exponent and its mantissa have one, and so do a sequence and its length.
    pub cell: u32,
    /// Of what is inside.
    pub block: u32,
    /// Of a sequence's elements.
    pub frame: u32,
}

/// What has one presence map, or none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Block {
    pub from: u32,
    pub to: u32,
    /// Of the presence map, at most.
    pub bits: u32,
    /// Ops that a decoder has, too: without constants.
    pub ops: u32,
}

/// What a message or an element has in a draft.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub cells: u32,
    /// The frames inside it are those from the next up to this.
    pub end: u32,
}

/// A group that may be absent: it is there where one of its fields is.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupCell {
    pub cell: u32,
    pub around: u32,
}

/// A field of a template, for faults and for messages that are encoded again.
#[derive(Debug, Clone)]
pub(super) struct Info {
    pub template: u32,
    pub name: Name,
    /// Of a value.
    pub field: Option<Arc<Field>>,
}

/// An initial value.
#[derive(Debug, Clone, Default)]
pub(super) struct Initial {
    pub bits: u64,
    pub exponent: i8,
    pub text: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TemplatePlan {
    pub block: u32,
    pub frame: u32,
    pub reset: bool,
    /// What messages name it by.
    pub id: Option<u32>,
}

/// All templates, compiled.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub ops: Vec<Op>,
    pub blocks: Vec<Block>,
    pub frames: Vec<Frame>,
    pub groups: Vec<GroupCell>,
    pub infos: Vec<Info>,
    pub initials: Vec<Initial>,
    /// The type of each previous value is that of the op that wrote it last.
    pub slots: usize,
    pub templates: Vec<TemplatePlan>,
    /// The parts of each template by their paths, in order.
    pub parts: Vec<Vec<(String, Part)>>,
}

struct Compiler<'t> {
    templates: &'t Templates,
    plan: Plan,
    slots: Slots,
    parts: Vec<(String, Part)>,
}

/// Where an instruction stands.
#[derive(Clone)]
struct Context {
    template: usize,
    kind: Option<Name>,
    frame: u32,
    group: u32,
    /// With a slash behind each name.
    path: String,
}

impl Context {
    fn inside(&self, kind: Option<&Name>, name: &str) -> Self {
        let path = if name.is_empty() { self.path.clone() } else { format!("{}{name}/", self.path) };
        Self { kind: kind.or(self.kind.as_ref()).cloned(), path, ..self.clone() }
    }
}

impl Plan {
    pub fn new(templates: &Templates) -> Self {
        let mut compiler =
            Compiler { templates, plan: Self::default(), slots: Slots::default(), parts: Vec::new() };
        for (index, template) in templates.list().iter().enumerate() {
            let frame = compiler.frame();
            let kind = template.type_ref.clone();
            let context = Context { template: index, kind, frame, group: NONE, path: String::new() };
            let block = compiler.block(&template.body, &context);
            compiler.plan.blocks[block as usize].bits += 1;
            compiler.end(frame);
            let (reset, id) = (template.reset, template.id);
            compiler.plan.templates.push(TemplatePlan { block, frame, reset, id });
            compiler.plan.parts.push(std::mem::take(&mut compiler.parts));
        }
        compiler.plan.slots = compiler.slots.len();
        compiler.plan
    }
}

impl Compiler<'_> {
    /// The first cell of an element is where the next one is.
    fn frame(&mut self) -> u32 {
        self.plan.frames.push(Frame { cells: 1, end: 0 });
        self.plan.frames.len() as u32 - 1
    }

    fn end(&mut self, frame: u32) {
        self.plan.frames[frame as usize].end = self.plan.frames.len() as u32;
    }

    fn cell(&mut self, context: &Context) -> u32 {
        let cells = &mut self.plan.frames[context.frame as usize].cells;
        *cells += 1;
        *cells - 1
    }

    fn part(&mut self, context: &Context, name: &str, part: Part) {
        self.parts.push((format!("{}{name}", context.path), part));
    }

    /// The ops of a body stand together; the blocks inside stand before it.
    fn block(&mut self, body: &[Instruction], context: &Context) -> u32 {
        let mut ops = Vec::new();
        let bits = self.body(body, context, &mut ops);
        let from = self.plan.ops.len() as u32;
        self.plan.ops.extend_from_slice(&ops);
        let to = self.plan.ops.len() as u32;
        let told = ops.iter().filter(|op| !op.is_known()).count() as u32;
        self.plan.blocks.push(Block { from, to, bits, ops: told });
        self.plan.blocks.len() as u32 - 1
    }

    /// The bits that it has.
    fn body(&mut self, body: &[Instruction], context: &Context, ops: &mut Vec<Op>) -> u32 {
        let mut bits = 0;
        for instruction in body {
            bits += match instruction {
                Instruction::Field(field) => self.value(field, context, ops),
                Instruction::Group(group) => {
                    let cell = self.cell(context);
                    let name = &group.name;
                    let mut inside = context.inside(group.type_ref.as_ref(), &name.local);
                    if group.optional {
                        self.plan.groups.push(GroupCell { cell, around: context.group });
                        inside.group = self.plan.groups.len() as u32 - 1;
                    }
                    let place = GroupRef { frame: context.frame, group: inside.group };
                    self.part(context, &name.local, Part::Group(place));
                    let block = self.block(&group.body, &inside);
                    let info = self.info(context, name, None);
                    let optional = group.optional;
                    ops.push(Op { optional, block, info, cell, ..Op::of(OpCode::Group) });
                    u32::from(optional)
                }
                Instruction::Sequence(sequence) => {
                    let cell = self.cell(context);
                    let name = &sequence.name;
                    let mut inside = context.inside(sequence.type_ref.as_ref(), &name.local);
                    let bits = self.field(&sequence.length, &inside, (Role::Length, cell), ops);
                    (inside.frame, inside.group) = (self.frame(), NONE);
                    let (element, optional) = (inside.frame, sequence.optional);
                    let place =
                        SequenceRef { frame: context.frame, cell, group: context.group, element, optional };
                    self.part(context, &name.local, Part::Sequence(place));
                    let block = self.block(&sequence.body, &inside);
                    self.end(inside.frame);
                    let info = self.info(context, name, None);
                    ops.push(Op { block, info, cell, frame: element, ..Op::of(OpCode::Sequence) });
                    bits
                }
                Instruction::Static(name, None) => {
                    let info = self.info(context, name, None);
                    ops.push(Op { info, ..Op::of(OpCode::Missing) });
                    0
                }
                Instruction::Static(_, Some(index)) => {
                    let templates = self.templates;
                    let template = &templates.list()[*index];
                    let mut inside = context.inside(template.type_ref.as_ref(), "");
                    inside.template = *index;
                    self.body(&template.body, &inside, ops)
                }
                Instruction::Dynamic => {
                    let cell = self.cell(context);
                    let place = ReferenceRef { frame: context.frame, cell, group: context.group };
                    self.part(context, "", Part::Reference(place));
                    let info = self.info(context, &Name::default(), None);
                    ops.push(Op { cell, info, ..Op::of(OpCode::Dynamic) });
                    0
                }
            };
        }
        bits
    }

    fn value(&mut self, field: &Arc<Field>, context: &Context, ops: &mut Vec<Op>) -> u32 {
        let cell = self.cell(context);
        let kind = match field.kind {
            Kind::Plain(kind, _) => kind,
            Kind::Split(..) => Type::Decimal,
        };
        let (frame, group, optional) = (context.frame, context.group, field.optional);
        self.part(context, &field.name.local, Part::Field(FieldRef { frame, cell, group, kind, optional }));
        self.field(field, context, (Role::Value, cell), ops)
    }

    fn field(
        &mut self,
        field: &Arc<Field>,
        context: &Context,
        (role, cell): (Role, u32),
        ops: &mut Vec<Op>,
    ) -> u32 {
        let info = self.info(context, &field.name, Some(field.clone()));
        let optional = field.optional;
        let mut push = |operation: &Operation, kind, role, optional| {
            let op = self.op(operation, context);
            ops.push(Op { role, kind, optional, info, cell, ..op });
            u32::from(operation.has_bit(optional))
        };
        match &field.kind {
            Kind::Plain(kind, operation) => push(operation, *kind, role, optional),
            Kind::Split(exponent, mantissa) => {
                push(exponent, Type::Int32, Role::Exponent, optional)
                    + push(mantissa, Type::Int64, Role::Mantissa, false)
            }
        }
    }

    fn op(&mut self, operation: &Operation, context: &Context) -> Op {
        let code = OpCode::of(operation.operator);
        if code == OpCode::Plain {
            return Op::of(code);
        }
        let initial = operation.initial.as_ref().map_or(NONE, |value| {
            self.plan.initials.push(match value {
                // Integers in two's complement, whatever their type.
                Value::Int(value) => Initial { bits: *value as u64, ..Initial::default() },
                Value::Decimal { mantissa, exponent } => {
                    Initial { bits: *mantissa as u64, exponent: *exponent as i8, text: Vec::new() }
                }
                Value::Bytes(text) => Initial { text: text.clone(), ..Initial::default() },
            });
            self.plan.initials.len() as u32 - 1
        });
        let slot = if code.has_slot() { self.slots.of(&operation.key, context.kind.as_ref()) } else { NONE };
        Op { initial, slot, ..Op::of(code) }
    }

    fn info(&mut self, context: &Context, name: &Name, field: Option<Arc<Field>>) -> u32 {
        self.plan.infos.push(Info { template: context.template as u32, name: name.clone(), field });
        self.plan.infos.len() as u32 - 1
    }
}

impl Op {
    /// A mandatory constant: a decoder has it without an op.
    pub fn is_known(&self) -> bool {
        self.code == OpCode::Constant && !self.optional && self.role == Role::Value
    }

    fn of(code: OpCode) -> Self {
        Self {
            code,
            role: Role::Value,
            kind: Type::UInt32,
            optional: false,
            info: NONE,
            slot: NONE,
            initial: NONE,
            cell: NONE,
            block: NONE,
            frame: NONE,
        }
    }
}
