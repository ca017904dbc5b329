//! Templates as flat programs: everything that does not depend on a message is settled here, once.
//!
//! ```text
//!  template ──▶ block ──▶ op op op op …      static references written out where they stand
//!                  │        └ slot of the dictionary, initial value, place in the list of fields
//!                  └ presence map of its own?  group and element of a sequence: blocks of their own
//! ```

use super::dictionary::{self, Entries, Share};
use super::engine::steps::Steps;
use super::ops::Slots;
pub(super) use super::ops::{NONE, OpCode, Role};
use super::projection::{Projection, UNTAGGED};
use super::record::{Entry, Form, is_bytes};
use super::template::{Field, Instruction, Kind, Name, Operation, Operator, Templates, Type, Value};
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

    pub fn form(&self, kind: Type) -> Form {
        match kind {
            Type::Int32 | Type::Int64 => Form::Int,
            Type::UInt32 | Type::UInt64 => Form::UInt,
            Type::Decimal => Form::Decimal,
            _ if self.long => Form::Long,
            _ => Form::Short,
        }
    }

    pub fn extra(&self, kind: Type) -> u8 {
        if kind == Type::Decimal { self.exponent as u8 } else { self.len }
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
    pub entries: Entries,
    pub constants: Vec<Constant>,
    pub templates: Vec<Compiled>,
    /// What stands at a path of a template.
    pub paths: HashMap<(u32, String), u32>,
    pub by_id: HashMap<u32, u32>,
    /// The same for the fast engine.
    pub steps: Steps,
}

struct Compiler<'t> {
    templates: &'t Templates,
    projection: Option<&'t Projection>,
    program: Program,
    slots: Slots,
    /// The template that is compiled.
    root: usize,
    /// It has messages in the message.
    has_dynamic: bool,
    /// Where in it.
    path: String,
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

/// A block that is not yet whole.
#[derive(Default)]
struct Draft {
    ops: Vec<Op>,
    constants: Vec<Constant>,
    /// Bytes of their texts, and of those that are not delivered.
    text: u32,
    /// Its fields.
    infos: Vec<u32>,
    /// Those of them that a message shows: lengths are not.
    shown: Vec<u32>,
    /// Any of it has a bit.
    has_map: bool,
    /// Any of it is delivered.
    deliver: bool,
}

/// A block that is.
struct Made {
    block: u32,
    inside: Inside,
    deliver: bool,
    has_repeats: bool,
}

impl Program {
    pub fn new(templates: &Templates, projection: Option<&Projection>) -> Self {
        let program = Self::default();
        let mut compiler = Compiler {
            templates,
            projection,
            program,
            slots: Slots::default(),
            root: 0,
            has_dynamic: false,
            path: String::new(),
        };
        for (index, template) in templates.list().iter().enumerate() {
            compiler.root = index;
            compiler.has_dynamic = false;
            let constants = compiler.program.constants.len();
            let context = Context { template: index, kind: template.type_ref.clone() };
            let Made { block, inside, has_repeats, .. } = compiler.block(&template.body, &context, false);
            // Of the template's id, at least.
            compiler.program.blocks[block as usize].has_map = true;
            compiler.program.templates.push(Compiled {
                block,
                reset: template.reset,
                inside,
                has_repeats,
                has_constants: compiler.has_dynamic || compiler.program.constants.len() > constants,
                shares: Share { from: 0, to: 0 },
            });
            if let Some(id) = template.id {
                compiler.program.by_id.insert(id, index as u32);
            }
        }
        let mut program = compiler.program;
        dictionary::arrange(&mut program, compiler.slots.len());
        program.steps = Steps::new(&program);
        program
    }
}

impl Compiler<'_> {
    /// The ops of a body stand together; the blocks inside stand before it.
    fn block(&mut self, body: &[Instruction], context: &Context, in_element: bool) -> Made {
        let mut draft = Draft::default();
        self.body(body, context, &mut draft);
        let has_repeats = self.mark_repeats(&draft.shown);
        let program = &mut self.program;
        let from = program.constants.len() as u32;
        program.constants.extend_from_slice(&draft.constants);
        let inside = Inside { from, to: program.constants.len() as u32 };
        for index in draft.infos {
            let info = &mut program.infos[index as usize];
            info.constants += inside.from;
            info.around = inside.to;
            info.in_element = in_element;
            info.constant = info.constant.map(|index| index + inside.from);
        }
        let from = program.ops.len() as u32;
        program.ops.extend_from_slice(&draft.ops);
        let to = program.ops.len() as u32;
        let (has_map, template, text) = (draft.has_map, context.template as u32, draft.text);
        program.blocks.push(Block { from, to, has_map, template, text });
        Made { block: program.blocks.len() as u32 - 1, inside, deliver: draft.deliver, has_repeats }
    }

    /// Marks what of a block has the same name as something else of it. Gives whether any has.
    fn mark_repeats(&mut self, shown: &[u32]) -> bool {
        let infos = &mut self.program.infos;
        let mut times = HashMap::<String, u32>::new();
        for index in shown {
            *times.entry(infos[*index as usize].key().to_owned()).or_default() += 1;
        }
        if times.len() == shown.len() {
            return false;
        }
        for index in shown {
            let info = &mut infos[*index as usize];
            info.is_repeated = times.get(info.key()).is_some_and(|times| *times > 1);
        }
        true
    }

    fn body(&mut self, body: &[Instruction], context: &Context, draft: &mut Draft) {
        for instruction in body {
            match instruction {
                Instruction::Field(field) => self.field(field, context, Role::Value, draft),
                Instruction::Group(group) => {
                    let inside = context.inside(group.type_ref.as_ref());
                    let op = Op { optional: group.optional, ..Op::of(OpCode::Group) };
                    self.nested((Of::Group(group.name.clone()), op), &group.body, (context, &inside), draft);
                    draft.has_map |= group.optional;
                }
                Instruction::Sequence(sequence) => {
                    let inside = context.inside(sequence.type_ref.as_ref());
                    self.field(&sequence.length, &inside, Role::Length, draft);
                    let of = (Of::Sequence(sequence.name.clone()), Op::of(OpCode::Sequence));
                    self.nested(of, &sequence.body, (context, &inside), draft);
                }
                Instruction::Static(name, None) => {
                    let info = self.info(context, Of::Reference(name.clone()), draft);
                    draft.ops.push(Op { info, ..Op::of(OpCode::Missing) });
                }
                Instruction::Static(_, Some(index)) => {
                    let templates = self.templates;
                    let template = &templates.list()[*index];
                    let mut inside = context.inside(template.type_ref.as_ref());
                    inside.template = *index;
                    self.body(&template.body, &inside, draft);
                }
                Instruction::Dynamic => {
                    self.has_dynamic = true;
                    let info = self.info(context, Of::Dynamic, draft);
                    draft.shown.push(info);
                    draft.ops.push(Op { info, ..Op::of(OpCode::Dynamic) });
                    // What the message names has its own place in the projection.
                    draft.deliver |= self.projection.is_some();
                }
            }
        }
    }

    /// A group or a sequence, its body a block of its own.
    fn nested(
        &mut self,
        (of, op): (Of, Op),
        body: &[Instruction],
        (context, inside): (&Context, &Context),
        draft: &mut Draft,
    ) {
        let (outer, in_element) = (self.path.len(), matches!(of, Of::Sequence(_)));
        let selected = self.selected(of.name());
        self.path.push_str(&of.name().local);
        self.path.push('/');
        let made = self.block(body, inside, in_element);
        self.path.truncate(outer);
        let name = of.name().clone();
        let info = self.info(context, of, draft);
        self.place(&name, info);
        draft.shown.push(info);
        let of_block = &mut self.program.infos[info as usize];
        (of_block.inside, of_block.has_repeats) = (made.inside, made.has_repeats);
        let (deliver, tag) = (made.deliver || selected.is_some(), selected.unwrap_or(UNTAGGED));
        draft.deliver |= deliver;
        draft.ops.push(Op { block: made.block, info, deliver, tag, ..op });
    }

    /// The tag of this name in the block, where it is to be delivered.
    fn selected(&mut self, name: &Name) -> Option<u16> {
        let Some(projection) = self.projection else { return Some(UNTAGGED) };
        let outer = self.path.len();
        self.path.push_str(&name.local);
        let tag = projection.tag(self.root, &self.path);
        self.path.truncate(outer);
        tag
    }

    fn field(&mut self, field: &Arc<Field>, context: &Context, role: Role, draft: &mut Draft) {
        let info = self.info(context, Of::Field(field.clone()), draft);
        if role != Role::Length {
            self.place(&field.name, info);
            draft.shown.push(info);
        }
        let optional = field.optional;
        let selected = if role == Role::Length { None } else { self.selected(&field.name) };
        let (deliver, tag) = (selected.is_some(), selected.unwrap_or(UNTAGGED));
        draft.deliver |= deliver;
        if let (Kind::Plain(kind, operation), false, Role::Value) = (&field.kind, optional, role)
            && let (Operator::Constant, Some(value)) = (operation.operator, &operation.initial)
        {
            let found = self.found(value);
            draft.text += if kind.is_text() { found.text_len() as u32 } else { 0 };
            let entry = Entry {
                bits: found.bits,
                meta: Entry::meta(info, tag, found.form(*kind), found.extra(*kind)),
            };
            if deliver {
                self.program.infos[info as usize].constant = Some(draft.constants.len() as u32);
                draft.constants.push(Constant { entry });
            }
            return;
        }
        let mut push = |operation: &Operation, kind, role, optional| {
            let op = self.op(operation, context);
            draft.ops.push(Op { role, kind, optional, info, deliver, tag, ..op });
            draft.has_map |= operation.has_bit(optional);
        };
        match &field.kind {
            Kind::Plain(kind, operation) => push(operation, *kind, role, optional),
            Kind::Split(exponent, mantissa) => {
                push(exponent, Type::Int32, Role::Exponent, optional);
                push(mantissa, Type::Int64, Role::Mantissa, false);
            }
        }
    }

    fn op(&mut self, operation: &Operation, context: &Context) -> Op {
        let code = OpCode::of(operation.operator);
        if code == OpCode::Plain {
            return Op::of(code);
        }
        let initial = operation.initial.as_ref().map_or(NONE, |value| self.initial(value));
        let slot = if code.has_slot() { self.slots.of(&operation.key, context.kind.as_ref()) } else { NONE };
        Op { initial, slot, ..Op::of(code) }
    }

    fn initial(&mut self, value: &Value) -> u32 {
        let found = self.found(value);
        self.program.initials.push(found);
        self.program.initials.len() as u32 - 1
    }

    fn found(&mut self, value: &Value) -> Found {
        let texts = &mut self.program.texts;
        match value {
            // Integers in two's complement, whatever their type.
            Value::Int(value) => Found::int(*value as u64),
            Value::Decimal { mantissa, exponent } => {
                Found { exponent: *exponent as i8, ..Found::int(*mantissa as u64) }
            }
            Value::Bytes(text) if text.len() <= 8 => Found::short(text),
            Value::Bytes(text) => {
                texts.extend_from_slice(text);
                Found::long(texts.len() - text.len(), text.len())
            }
        }
    }

    /// Of those at one path the first is found. A length is not: it has the name of a field at times, and is never delivered.
    fn place(&mut self, name: &Name, info: u32) {
        let path = format!("{}{}", self.path, name.local);
        self.program.paths.entry((self.root as u32, path)).or_insert(info);
    }

    fn info(&mut self, context: &Context, of: Of, draft: &mut Draft) -> u32 {
        let index = self.program.infos.len() as u32;
        self.program.infos.push(Info {
            template: context.template as u32,
            is_bytes: matches!(&of, Of::Field(field) if is_bytes(field)),
            of,
            in_element: false,
            is_repeated: false,
            has_repeats: false,
            constants: draft.constants.len() as u32,
            around: 0,
            inside: Inside::NOTHING,
            constant: None,
        });
        draft.infos.push(index);
        index
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
            idle: false,
            deliver: true,
            tag: UNTAGGED,
        }
    }
}
