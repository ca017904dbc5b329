//! Templates as flat programs: everything that does not depend on a message is settled here, once.
//!
//! ```text
//!  template ──▶ block ──▶ op op op op …      static references written out where they stand
//!                  │        └ slot of the dictionary, initial value, place in the list of fields
//!                  └ presence map of its own?  group and element of a sequence: blocks of their own
//! ```

use super::dictionary;
use super::entry::DecodedEntry;
use super::ops::SlotAllocator;
use super::packed_value::PackedValue;
use super::program::{
    CompiledPart, CompiledPartKind, CompiledTemplate, ConstantEntry, ConstantRange, DecodeOp, DecodeProgram,
    NONE, OpBlock, OpCode, OpRole,
};
use super::projection::{Projection, UNTAGGED};
use super::slot::SharedSlotRange;
use super::template::{
    FieldEncoding, FieldOperator, InitialValue, Instruction, Operator, QualifiedName, TemplateField,
    Templates, WireType,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Compiles the templates into a program that delivers the parts of the projection.
pub(super) fn compile(templates: &Templates, projection: Option<&Projection>) -> DecodeProgram {
    let program = DecodeProgram::default();
    let mut compiler = ProgramCompiler {
        templates,
        projection,
        program,
        slot_allocator: SlotAllocator::default(),
        root: 0,
        has_dynamic: false,
        current_path: String::new(),
    };
    for (index, template) in templates.list().iter().enumerate() {
        compiler.root = index;
        compiler.has_dynamic = false;
        let constants = compiler.program.constants.len();
        let context = InstructionScope { template: index, kind: template.type_ref.clone() };
        let CompiledBlock { block, inner_constants: inside, has_repeats, .. } =
            compiler.block(&template.body, &context, false);
        // The template's id has a bit, at least.
        compiler.program.blocks[block as usize].has_map = true;
        compiler.program.templates.push(CompiledTemplate {
            block,
            resets_dictionaries: template.reset,
            inside,
            has_repeats,
            has_constants: compiler.has_dynamic || compiler.program.constants.len() > constants,
            shared_slots: SharedSlotRange { from: 0, to: 0 },
        });
        if let Some(id) = template.id {
            compiler.program.by_id.insert(id, index as u32);
        }
    }
    let mut program = compiler.program;
    dictionary::arrange(&mut program, compiler.slot_allocator.len());
    program
}

struct ProgramCompiler<'t> {
    templates: &'t Templates,
    projection: Option<&'t Projection>,
    program: DecodeProgram,
    slot_allocator: SlotAllocator,
    /// The template that is compiled.
    root: usize,
    /// It has messages in the message.
    has_dynamic: bool,
    /// Where in it.
    current_path: String,
}

/// Where an instruction is.
#[derive(Clone)]
struct InstructionScope {
    template: usize,
    kind: Option<QualifiedName>,
}

impl InstructionScope {
    fn inside(&self, kind: Option<&QualifiedName>) -> Self {
        Self { template: self.template, kind: kind.or(self.kind.as_ref()).cloned() }
    }
}

/// A block that is not yet whole.
#[derive(Default)]
struct BlockDraft {
    decode_ops: Vec<DecodeOp>,
    constants: Vec<ConstantEntry>,
    /// The bytes of their texts, and of texts that are not delivered.
    text_bytes: u32,
    /// Its fields.
    infos: Vec<u32>,
    /// The ones that a message shows: lengths are not shown.
    visible_infos: Vec<u32>,
    /// Any of it has a bit.
    has_map: bool,
    /// Any of it is delivered.
    is_delivered: bool,
}

/// A group or a sequence before it is compiled.
struct NestedBlock<'b> {
    kind: CompiledPartKind,
    op: DecodeOp,
    body: &'b [Instruction],
    /// The scopes of the part and of its body: the body has the type of the part, if the part names a type.
    outer_scope: &'b InstructionScope,
    inner_scope: &'b InstructionScope,
}

/// A block that is.
struct CompiledBlock {
    block: u32,
    inner_constants: ConstantRange,
    deliver: bool,
    has_repeats: bool,
}

impl ProgramCompiler<'_> {
    /// Compiles a block. The ops of a body are adjacent; the blocks inside precede it.
    fn block(&mut self, body: &[Instruction], context: &InstructionScope, in_element: bool) -> CompiledBlock {
        let mut draft = BlockDraft::default();
        self.body(body, context, &mut draft);
        let has_repeats = self.mark_repeats(&draft.visible_infos);
        let program = &mut self.program;
        let constants_start = program.constants.len() as u32;
        program.constants.extend_from_slice(&draft.constants);
        let constant_range = ConstantRange { from: constants_start, to: program.constants.len() as u32 };
        for index in draft.infos {
            let info = &mut program.infos[index as usize];
            info.constants += constant_range.from;
            info.block_constants_end = constant_range.to;
            info.in_element = in_element;
            info.constant = info.constant.map(|index| index + constant_range.from);
        }
        let ops_start = program.ops.len() as u32;
        program.ops.extend_from_slice(&draft.decode_ops);
        let ops_end = program.ops.len() as u32;
        let (has_map, template, text) = (draft.has_map, context.template as u32, draft.text_bytes);
        program.blocks.push(OpBlock { from: ops_start, to: ops_end, has_map, template, text_bytes: text });
        CompiledBlock {
            block: program.blocks.len() as u32 - 1,
            inner_constants: constant_range,
            deliver: draft.is_delivered,
            has_repeats,
        }
    }

    /// Marks the parts of a block that share a name. Returns whether there are such parts.
    fn mark_repeats(&mut self, visible_infos: &[u32]) -> bool {
        let infos = &mut self.program.infos;
        let mut times = HashMap::<String, u32>::new();
        for index in visible_infos {
            *times.entry(infos[*index as usize].key().to_owned()).or_default() += 1;
        }
        if times.len() == visible_infos.len() {
            return false;
        }
        for index in visible_infos {
            let info = &mut infos[*index as usize];
            info.is_repeated = times.get(info.key()).is_some_and(|times| *times > 1);
        }
        true
    }

    fn body(&mut self, body: &[Instruction], context: &InstructionScope, draft: &mut BlockDraft) {
        for instruction in body {
            match instruction {
                Instruction::Field(field) => self.field(field, context, OpRole::Value, draft),
                Instruction::Group(group) => {
                    let inner_context = context.inside(group.type_ref.as_ref());
                    let group_block = NestedBlock {
                        kind: CompiledPartKind::Group(group.name.clone()),
                        op: DecodeOp { optional: group.optional, ..DecodeOp::from_code(OpCode::Group) },
                        body: &group.body,
                        outer_scope: context,
                        inner_scope: &inner_context,
                    };
                    self.nested(group_block, draft);
                    draft.has_map |= group.optional;
                }
                Instruction::Sequence(sequence) => {
                    let inner_context = context.inside(sequence.type_ref.as_ref());
                    self.field(&sequence.length, &inner_context, OpRole::Length, draft);
                    let element_block = NestedBlock {
                        kind: CompiledPartKind::Sequence(sequence.name.clone()),
                        op: DecodeOp::from_code(OpCode::Sequence),
                        body: &sequence.body,
                        outer_scope: context,
                        inner_scope: &inner_context,
                    };
                    self.nested(element_block, draft);
                }
                Instruction::Static(name, None) => {
                    let info = self.info(context, CompiledPartKind::Reference(name.clone()), draft);
                    draft.decode_ops.push(DecodeOp { info, ..DecodeOp::from_code(OpCode::Missing) });
                }
                Instruction::Static(_, Some(index)) => {
                    let templates = self.templates;
                    let template = &templates.list()[*index];
                    let mut inner_context = context.inside(template.type_ref.as_ref());
                    inner_context.template = *index;
                    self.body(&template.body, &inner_context, draft);
                }
                Instruction::Dynamic => {
                    self.has_dynamic = true;
                    let info = self.info(context, CompiledPartKind::Dynamic, draft);
                    draft.visible_infos.push(info);
                    draft.decode_ops.push(DecodeOp { info, ..DecodeOp::from_code(OpCode::Dynamic) });
                    // The template that the message names has its own place in the projection.
                    draft.is_delivered |= self.projection.is_some();
                }
            }
        }
    }

    /// Compiles a group or a sequence, whose body becomes a block of its own.
    fn nested(&mut self, nested: NestedBlock<'_>, draft: &mut BlockDraft) {
        let NestedBlock { kind, op, body, outer_scope: outer, inner_scope: inner } = nested;
        let (path_len, in_element) = (self.current_path.len(), matches!(kind, CompiledPartKind::Sequence(_)));
        let selected = self.selected(kind.name());
        self.current_path.push_str(&kind.name().local);
        self.current_path.push('/');
        let block_ops = self.block(body, inner, in_element);
        self.current_path.truncate(path_len);
        let name = kind.name().clone();
        let info = self.info(outer, kind, draft);
        self.register_path(&name, info);
        draft.visible_infos.push(info);
        let of_block = &mut self.program.infos[info as usize];
        (of_block.inside, of_block.has_repeats) = (block_ops.inner_constants, block_ops.has_repeats);
        let (deliver, tag) = (block_ops.deliver || selected.is_some(), selected.unwrap_or(UNTAGGED));
        draft.is_delivered |= deliver;
        draft.decode_ops.push(DecodeOp { block: block_ops.block, info, deliver, tag, ..op });
    }

    /// Returns the tag of this name in the block if the name is to be delivered.
    fn selected(&mut self, name: &QualifiedName) -> Option<u16> {
        let Some(projection) = self.projection else { return Some(UNTAGGED) };
        let outer = self.current_path.len();
        self.current_path.push_str(&name.local);
        let tag = projection.tag(self.root, &self.current_path);
        self.current_path.truncate(outer);
        tag
    }

    fn field(
        &mut self,
        field: &Arc<TemplateField>,
        context: &InstructionScope,
        role: OpRole,
        draft: &mut BlockDraft,
    ) {
        let info = self.info(context, CompiledPartKind::Field(field.clone()), draft);
        if role != OpRole::Length {
            self.register_path(&field.name, info);
            draft.visible_infos.push(info);
        }
        let optional = field.optional;
        let selected = if role == OpRole::Length { None } else { self.selected(&field.name) };
        let (deliver, tag) = (selected.is_some(), selected.unwrap_or(UNTAGGED));
        draft.is_delivered |= deliver;
        if let (FieldEncoding::Plain(kind, operation), false, OpRole::Value) = (&field.kind, optional, role)
            && let (Operator::Constant, Some(value)) = (operation.operator, &operation.initial)
        {
            let packed = self.pack_value(value);
            draft.text_bytes += if kind.is_string_or_bytes() { packed.text_len() as u32 } else { 0 };
            let entry = DecodedEntry {
                bits: packed.bits,
                meta: DecodedEntry::meta(info, tag, packed.form(*kind), packed.extra(*kind)),
            };
            if deliver {
                self.program.infos[info as usize].constant = Some(draft.constants.len() as u32);
                draft.constants.push(ConstantEntry { entry });
            }
            return;
        }
        let mut push = |operation: &FieldOperator, kind, role, optional| {
            let op = self.op(operation, context);
            draft.decode_ops.push(DecodeOp { role, kind, optional, info, deliver, tag, ..op });
            draft.has_map |= operation.has_bit(optional);
        };
        match &field.kind {
            FieldEncoding::Plain(kind, operation) => push(operation, *kind, role, optional),
            FieldEncoding::Split(exponent, mantissa) => {
                push(exponent, WireType::Int32, OpRole::Exponent, optional);
                push(mantissa, WireType::Int64, OpRole::Mantissa, false);
            }
        }
    }

    fn op(&mut self, operation: &FieldOperator, context: &InstructionScope) -> DecodeOp {
        let code = OpCode::from_operator(operation.operator);
        if code == OpCode::Plain {
            return DecodeOp::from_code(code);
        }
        let initial = operation.initial.as_ref().map_or(NONE, |value| self.initial(value));
        let slot = if code.has_slot() {
            self.slot_allocator.slot_number(&operation.key, context.kind.as_ref())
        } else {
            NONE
        };
        DecodeOp { initial, slot, ..DecodeOp::from_code(code) }
    }

    fn initial(&mut self, value: &InitialValue) -> u32 {
        let packed = self.pack_value(value);
        self.program.initials.push(packed);
        self.program.initials.len() as u32 - 1
    }

    fn pack_value(&mut self, value: &InitialValue) -> PackedValue {
        let texts = &mut self.program.texts;
        match value {
            // Integers in two's complement, whatever their type.
            InitialValue::Int(value) => PackedValue::int(*value as u64),
            InitialValue::Decimal { mantissa, exponent } => {
                PackedValue { exponent: *exponent as i8, ..PackedValue::int(*mantissa as u64) }
            }
            InitialValue::Bytes(text) if text.len() <= 8 => PackedValue::short(text),
            InitialValue::Bytes(text) => {
                texts.extend_from_slice(text);
                PackedValue::long(texts.len() - text.len(), text.len())
            }
        }
    }

    /// Registers the first field at a path for look-ups. A length is not registered: it may have the name of a field
    /// and is never delivered.
    fn register_path(&mut self, name: &QualifiedName, info: u32) {
        let path = format!("{}{}", self.current_path, name.local);
        self.program.paths.entry((self.root as u32, path)).or_insert(info);
    }

    fn info(&mut self, context: &InstructionScope, kind: CompiledPartKind, draft: &mut BlockDraft) -> u32 {
        let index = self.program.infos.len() as u32;
        self.program.infos.push(CompiledPart {
            template: context.template as u32,
            is_bytes: matches!(&kind, CompiledPartKind::Field(field) if is_bytes(field)),
            kind,
            in_element: false,
            is_repeated: false,
            has_repeats: false,
            constants: draft.constants.len() as u32,
            block_constants_end: 0,
            inside: ConstantRange::NOTHING,
            constant: None,
        });
        draft.infos.push(index);
        index
    }
}

fn is_bytes(field: &TemplateField) -> bool {
    matches!(field.kind, FieldEncoding::Plain(WireType::Bytes, _))
}
