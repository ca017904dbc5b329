//! Templates as programs of the encoder: ops in the order of the wire, each with the place of its value in a draft.
//!
//! ```text
//!  template ─▶ block of ops ─▶ cells of a frame     a frame for the message, one for each element of a sequence;
//!                                                   groups have their cells in the frame around them
//! ```

use super::draft::{DynamicTemplateRef, FieldRef, GroupRef, SequenceRef, TemplatePartRef};
use crate::ops::SlotAllocator;
pub(super) use crate::ops::{NONE, OpCode, OpRole};
use crate::template::{
    FieldEncoding, FieldOperator, InitialValue, Instruction, QualifiedName, TemplateField, Templates,
    WireType,
};
use std::sync::Arc;

/// A value, or a structure around values.
#[derive(Debug, Clone, Copy)]
pub(super) struct EncodeOp {
    pub code: OpCode,
    pub role: OpRole,
    pub kind: WireType,
    pub optional: bool,
    /// Index of the field in [`EncodePlan::infos`].
    pub info: u32,
    /// Slot of its previous value.
    pub slot: u32,
    /// Index in [`EncodePlan::initials`].
    pub initial: u32,
    /// Cell of its frame. An exponent and its mantissa have one, and so do a sequence and its length.
    pub cell: u32,
    /// The block inside it.
    pub block: u32,
    /// The frame of a sequence's elements.
    pub frame: u32,
}

/// The ops that share one presence map, or have none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EncodeBlock {
    pub from: u32,
    pub to: u32,
    /// Bits of the presence map, at most.
    pub bits: u32,
    /// Ops that a decoder has, too: without constants.
    pub ops: u32,
}

/// The layout of a message or an element in a draft.
#[derive(Debug, Clone, Copy)]
pub(super) struct DraftFrameLayout {
    pub cells: u32,
    /// The frames inside it are those from the next up to this.
    pub frames_end: u32,
}

/// A group that may be absent. It is present if one of its fields is.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupCell {
    pub cell: u32,
    pub parent: u32,
}

/// A field of a template, for faults and for messages that are encoded again.
#[derive(Debug, Clone)]
pub(super) struct EncodePart {
    pub template: u32,
    pub name: QualifiedName,
    /// The field, if the part is a value.
    pub field: Option<Arc<TemplateField>>,
}

/// An initial value.
#[derive(Debug, Clone, Default)]
pub(super) struct EncodeInitialValue {
    pub bits: u64,
    pub exponent: i8,
    pub text: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TemplatePlan {
    pub block: u32,
    pub frame: u32,
    pub resets_dictionaries: bool,
    /// The id by which messages name it.
    pub id: Option<u32>,
}

/// All templates, compiled.
#[derive(Debug, Default)]
pub(super) struct EncodePlan {
    pub ops: Vec<EncodeOp>,
    pub blocks: Vec<EncodeBlock>,
    pub frames: Vec<DraftFrameLayout>,
    pub groups: Vec<GroupCell>,
    pub infos: Vec<EncodePart>,
    pub initials: Vec<EncodeInitialValue>,
    /// The number of slots. The type of a previous value is the type of the op that wrote it last.
    pub slot_count: usize,
    pub templates: Vec<TemplatePlan>,
    /// The parts of each template by their paths, in order.
    pub parts: Vec<Vec<(String, TemplatePartRef)>>,
}

struct PlanCompiler<'t> {
    templates: &'t Templates,
    plan: EncodePlan,
    slots: SlotAllocator,
    parts: Vec<(String, TemplatePartRef)>,
}

/// Where an instruction is.
#[derive(Clone)]
struct EncodeScope {
    template: usize,
    kind: Option<QualifiedName>,
    frame: u32,
    group_index: u32,
    /// With a slash after each name.
    path_prefix: String,
}

impl EncodeScope {
    fn inside(&self, kind: Option<&QualifiedName>, name: &str) -> Self {
        let path =
            if name.is_empty() { self.path_prefix.clone() } else { format!("{}{name}/", self.path_prefix) };
        Self { kind: kind.or(self.kind.as_ref()).cloned(), path_prefix: path, ..self.clone() }
    }
}

impl EncodePlan {
    pub fn new(templates: &Templates) -> Self {
        let mut compiler = PlanCompiler {
            templates,
            plan: Self::default(),
            slots: SlotAllocator::default(),
            parts: Vec::new(),
        };
        for (index, template) in templates.list().iter().enumerate() {
            let frame = compiler.frame();
            let kind = template.type_ref.clone();
            let context =
                EncodeScope { template: index, kind, frame, group_index: NONE, path_prefix: String::new() };
            let block = compiler.block(&template.body, &context);
            compiler.plan.blocks[block as usize].bits += 1;
            compiler.end(frame);
            let (reset, id) = (template.reset, template.id);
            compiler.plan.templates.push(TemplatePlan { block, frame, resets_dictionaries: reset, id });
            compiler.plan.parts.push(std::mem::take(&mut compiler.parts));
        }
        compiler.plan.slot_count = compiler.slots.len();
        compiler.plan
    }
}

impl PlanCompiler<'_> {
    /// Adds a frame. The first cell of an element has the position of the next element.
    fn frame(&mut self) -> u32 {
        self.plan.frames.push(DraftFrameLayout { cells: 1, frames_end: 0 });
        self.plan.frames.len() as u32 - 1
    }

    fn end(&mut self, frame: u32) {
        self.plan.frames[frame as usize].frames_end = self.plan.frames.len() as u32;
    }

    fn cell(&mut self, context: &EncodeScope) -> u32 {
        let cells = &mut self.plan.frames[context.frame as usize].cells;
        *cells += 1;
        *cells - 1
    }

    fn part(&mut self, context: &EncodeScope, name: &str, part: TemplatePartRef) {
        self.parts.push((format!("{}{name}", context.path_prefix), part));
    }

    /// Plans a block. The ops of a body are adjacent; the blocks inside precede it.
    fn block(&mut self, body: &[Instruction], context: &EncodeScope) -> u32 {
        let mut ops = Vec::new();
        let bits = self.body(body, context, &mut ops);
        let ops_start = self.plan.ops.len() as u32;
        self.plan.ops.extend_from_slice(&ops);
        let ops_end = self.plan.ops.len() as u32;
        let variable = ops.iter().filter(|op| !op.is_known()).count() as u32;
        self.plan.blocks.push(EncodeBlock { from: ops_start, to: ops_end, bits, ops: variable });
        self.plan.blocks.len() as u32 - 1
    }

    /// Plans a body and returns the number of its presence bits.
    fn body(&mut self, body: &[Instruction], context: &EncodeScope, ops: &mut Vec<EncodeOp>) -> u32 {
        let mut bits = 0;
        for instruction in body {
            bits += match instruction {
                Instruction::Field(field) => self.value(field, context, ops),
                Instruction::Group(group) => {
                    let cell = self.cell(context);
                    let name = &group.name;
                    let mut inner_context = context.inside(group.type_ref.as_ref(), &name.local);
                    if group.optional {
                        self.plan.groups.push(GroupCell { cell, parent: context.group_index });
                        inner_context.group_index = self.plan.groups.len() as u32 - 1;
                    }
                    let group_ref = GroupRef { frame: context.frame, group: inner_context.group_index };
                    self.part(context, &name.local, TemplatePartRef::Group(group_ref));
                    let block = self.block(&group.body, &inner_context);
                    let info = self.info(context, name, None);
                    let optional = group.optional;
                    ops.push(EncodeOp { optional, block, info, cell, ..EncodeOp::from_code(OpCode::Group) });
                    u32::from(optional)
                }
                Instruction::Sequence(sequence) => {
                    let cell = self.cell(context);
                    let name = &sequence.name;
                    let mut inner_context = context.inside(sequence.type_ref.as_ref(), &name.local);
                    let bits = self.field(&sequence.length, &inner_context, OpRole::Length, cell, ops);
                    (inner_context.frame, inner_context.group_index) = (self.frame(), NONE);
                    let (element, optional) = (inner_context.frame, sequence.optional);
                    let sequence_ref = SequenceRef {
                        frame: context.frame,
                        cell,
                        group: context.group_index,
                        element,
                        optional,
                    };
                    self.part(context, &name.local, TemplatePartRef::Sequence(sequence_ref));
                    let block = self.block(&sequence.body, &inner_context);
                    self.end(inner_context.frame);
                    let info = self.info(context, name, None);
                    ops.push(EncodeOp {
                        block,
                        info,
                        cell,
                        frame: element,
                        ..EncodeOp::from_code(OpCode::Sequence)
                    });
                    bits
                }
                Instruction::Static(name, None) => {
                    let info = self.info(context, name, None);
                    ops.push(EncodeOp { info, ..EncodeOp::from_code(OpCode::Missing) });
                    0
                }
                Instruction::Static(_, Some(index)) => {
                    let templates = self.templates;
                    let template = &templates.list()[*index];
                    let mut inner_context = context.inside(template.type_ref.as_ref(), "");
                    inner_context.template = *index;
                    self.body(&template.body, &inner_context, ops)
                }
                Instruction::Dynamic => {
                    let cell = self.cell(context);
                    let dynamic_ref =
                        DynamicTemplateRef { frame: context.frame, cell, group: context.group_index };
                    self.part(context, "", TemplatePartRef::Reference(dynamic_ref));
                    let info = self.info(context, &QualifiedName::default(), None);
                    ops.push(EncodeOp { cell, info, ..EncodeOp::from_code(OpCode::Dynamic) });
                    0
                }
            };
        }
        bits
    }

    fn value(&mut self, field: &Arc<TemplateField>, context: &EncodeScope, ops: &mut Vec<EncodeOp>) -> u32 {
        let cell = self.cell(context);
        let kind = match field.kind {
            FieldEncoding::Plain(kind, _) => kind,
            FieldEncoding::Split(..) => WireType::Decimal,
        };
        let (frame, group, optional) = (context.frame, context.group_index, field.optional);
        self.part(
            context,
            &field.name.local,
            TemplatePartRef::Field(FieldRef { frame, cell, group, kind, optional }),
        );
        self.field(field, context, OpRole::Value, cell, ops)
    }

    fn field(
        &mut self,
        field: &Arc<TemplateField>,
        context: &EncodeScope,
        role: OpRole,
        cell: u32,
        ops: &mut Vec<EncodeOp>,
    ) -> u32 {
        let info = self.info(context, &field.name, Some(field.clone()));
        let optional = field.optional;
        let mut push = |operation: &FieldOperator, kind, role, optional| {
            let op = self.op(operation, context);
            ops.push(EncodeOp { role, kind, optional, info, cell, ..op });
            u32::from(operation.has_bit(optional))
        };
        match &field.kind {
            FieldEncoding::Plain(kind, operation) => push(operation, *kind, role, optional),
            FieldEncoding::Split(exponent, mantissa) => {
                push(exponent, WireType::Int32, OpRole::Exponent, optional)
                    + push(mantissa, WireType::Int64, OpRole::Mantissa, false)
            }
        }
    }

    fn op(&mut self, operation: &FieldOperator, context: &EncodeScope) -> EncodeOp {
        let code = OpCode::from_operator(operation.operator);
        if code == OpCode::Plain {
            return EncodeOp::from_code(code);
        }
        let initial = operation.initial.as_ref().map_or(NONE, |value| {
            self.plan.initials.push(match value {
                // Integers in two's complement, whatever their type.
                InitialValue::Int(value) => {
                    EncodeInitialValue { bits: *value as u64, ..EncodeInitialValue::default() }
                }
                InitialValue::Decimal { mantissa, exponent } => {
                    EncodeInitialValue { bits: *mantissa as u64, exponent: *exponent as i8, text: Vec::new() }
                }
                InitialValue::Bytes(text) => {
                    EncodeInitialValue { text: text.clone(), ..EncodeInitialValue::default() }
                }
            });
            self.plan.initials.len() as u32 - 1
        });
        let slot = if code.has_slot() {
            self.slots.slot_number(&operation.key, context.kind.as_ref())
        } else {
            NONE
        };
        EncodeOp { initial, slot, ..EncodeOp::from_code(code) }
    }

    fn info(
        &mut self,
        context: &EncodeScope,
        name: &QualifiedName,
        field: Option<Arc<TemplateField>>,
    ) -> u32 {
        self.plan.infos.push(EncodePart { template: context.template as u32, name: name.clone(), field });
        self.plan.infos.len() as u32 - 1
    }
}

impl EncodeOp {
    /// Returns whether the op is a mandatory constant. A decoder needs no op for it.
    pub fn is_known(&self) -> bool {
        self.code == OpCode::Constant && !self.optional && self.role == OpRole::Value
    }

    fn from_code(code: OpCode) -> Self {
        Self {
            code,
            role: OpRole::Value,
            kind: WireType::UInt32,
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
