//! The slow twin: the specification, sentence by sentence, over the templates as they were written. Nothing is shared with
//! the engine but the templates.

mod wire;

use crate::fault::{MessageFault, MessageFaultCode};
use crate::template::{
    DictionaryKey, DictionaryKeyPart, DictionaryScope, FieldEncoding, FieldOperator, InitialValue,
    Instruction, Operator, QualifiedName, Template, TemplateField, TemplateSequence, Templates, WireType,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Templates that messages name, in each other.
const DYNAMIC_MAX: usize = 16;

/// Elements of a sequence that have no byte, at most.
const EMPTY_ELEMENTS_MAX: i128 = 4096;

/// Bytes of all texts of a message, at most.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// Bytes of the texts of more than eight that dictionaries have and that are no initial values, at most.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// Bytes of a message, at most.
const LOOKED_AT_MAX: usize = 64 << 20;

/// Values that are no constants, twice groups, sequences and elements, and an eighth of the fields of each block, at which
/// nothing more is begun.
const ITEMS_MAX: usize = 1 << 22;

/// A part of a message, in order; absent parts have no node.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A value.
    Value(Arc<TemplateField>, InitialValue),
    /// A group.
    Group(QualifiedName, Vec<Node>),
    /// A sequence, element by element.
    Sequence(QualifiedName, Vec<Vec<Node>>),
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The index of its template in the list.
    pub template: usize,
    /// Its parts.
    pub nodes: Vec<Node>,
    /// Bytes it has.
    pub bytes: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Previous {
    Empty,
    Assigned(WireType, InitialValue),
    /// The initial value.
    Initial(WireType, InitialValue),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ScopeKey {
    Global,
    Template(usize),
    Type(Option<QualifiedName>),
    Named(QualifiedName),
}

type Slot = (ScopeKey, QualifiedName, DictionaryKeyPart);

/// A decoder that carries state from message to message.
#[derive(Debug, Clone)]
pub struct Decoder {
    templates: Arc<Templates>,
    strict: bool,
    previous: HashMap<Slot, Previous>,
    template_id: Option<u32>,
    kept_max: usize,
}

impl Decoder {
    /// Makes a decoder with empty dictionaries. If `strict`, it raises R6 to R9.
    #[must_use]
    pub fn new(templates: Arc<Templates>, strict: bool) -> Self {
        Self { templates, strict, previous: HashMap::new(), template_id: None, kept_max: KEPT_BYTES_MAX }
    }

    /// Sets the bound for the bytes of text in dictionaries.
    #[must_use]
    pub fn with_kept_max(self, kept_max: usize) -> Self {
        Self { kept_max, ..self }
    }

    /// Empties all dictionaries, including the stored template id.
    pub fn reset(&mut self) {
        self.previous.clear();
        self.template_id = None;
    }

    /// Decodes the message at the start of `bytes`.
    ///
    /// # Errors
    /// Fails at the first fault. The dictionaries are then as they were before.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Decoded, MessageFault> {
        let before = (self.previous.clone(), self.template_id);
        let templates = self.templates.clone();
        let mut pass = Pass {
            decoder: self,
            templates: &templates,
            bytes: &bytes[..bytes.len().min(LOOKED_AT_MAX)],
            at: 0,
            dynamic: 0,
            place: None,
            items: 0,
            text_bytes: 0,
        };
        let mut nodes = Vec::new();
        let result = match pass.segment(&mut nodes) {
            Ok(template) if pass.decoder.kept_bytes() > pass.decoder.kept_max => {
                pass.place = Some((templates.list[template].name.local.clone(), String::new()));
                Err((MessageFaultCode::TooLarge, pass.at))
            }
            Err((MessageFaultCode::Truncated, at)) if bytes.len() > LOOKED_AT_MAX => {
                Err((MessageFaultCode::TooLarge, at))
            }
            result => result,
        };
        match result {
            Ok(template) => Ok(Decoded { template, nodes, bytes: pass.at }),
            Err((code, at)) => {
                let (template, field) = pass.place.take().unwrap_or_default();
                (self.previous, self.template_id) = before;
                Err(MessageFault { code, template, field, offset: at })
            }
        }
    }
}

impl Decoder {
    fn kept_bytes(&self) -> usize {
        let text = |previous: &Previous| match previous {
            Previous::Assigned(_, InitialValue::Bytes(text)) if text.len() > 8 => text.len(),
            _ => 0,
        };
        self.previous.values().map(text).sum()
    }
}

type Wrong = (MessageFaultCode, usize);

struct Bits {
    bits: Vec<bool>,
    next: usize,
    at: usize,
}

impl Bits {
    fn take(&mut self) -> bool {
        self.next += 1;
        self.bits.get(self.next - 1).copied().unwrap_or(false)
    }
}

#[derive(Clone)]
struct Context {
    template: usize,
    kind: Option<QualifiedName>,
}

struct Pass<'p> {
    decoder: &'p mut Decoder,
    templates: &'p Templates,
    bytes: &'p [u8],
    at: usize,
    dynamic: usize,
    /// Template and field of the fault.
    place: Option<(String, String)>,
    items: usize,
    text_bytes: usize,
}

impl Pass<'_> {
    /// Decodes a segment: its presence map, its template id and the fields of its template. Returns the index of the
    /// template.
    fn segment(&mut self, out: &mut Vec<Node>) -> Result<usize, Wrong> {
        let mut bits = self.presence_map()?;
        let start = self.at;
        let id = if bits.take() {
            let id = self.int(WireType::UInt32, false)?.expect("mandatory");
            let id = u32::try_from(id).expect("in bounds");
            self.decoder.template_id = Some(id);
            id
        } else {
            self.decoder.template_id.ok_or((MessageFaultCode::D5, start))?
        };
        let index = *self.templates.by_id.get(&id).ok_or((MessageFaultCode::D9, start))?;
        let template = &self.templates.list[index];
        if template.reset {
            self.decoder.previous.clear();
        }
        let context = Context { template: index, kind: template.type_ref.clone() };
        self.room(&template.body)?;
        self.body(&template.body, &context, &mut bits, out)?;
        self.end(&bits, template)?;
        Ok(index)
    }

    /// Checks that there is room for the next block. Its constants count at once.
    fn room(&mut self, body: &[Instruction]) -> Result<(), Wrong> {
        let (fields, text) = weight(self.templates, body);
        self.items += fields / 8;
        self.text_bytes += text;
        let fits = self.items <= ITEMS_MAX && self.text_bytes <= TEXT_BYTES_MAX;
        if fits { Ok(()) } else { Err((MessageFaultCode::TooLarge, self.at)) }
    }

    fn end(&mut self, bits: &Bits, template: &Template) -> Result<(), Wrong> {
        if self.decoder.strict && bits.bits.iter().skip(bits.next).any(|bit| *bit) {
            self.place.get_or_insert_with(|| (template.name.local.clone(), String::new()));
            return Err((MessageFaultCode::R8, bits.at));
        }
        Ok(())
    }

    fn body(
        &mut self,
        body: &[Instruction],
        context: &Context,
        bits: &mut Bits,
        out: &mut Vec<Node>,
    ) -> Result<(), Wrong> {
        for instruction in body {
            match instruction {
                Instruction::Field(field) => {
                    if let Some(value) = self.named(field, context, bits)? {
                        self.items += usize::from(!is_constant(field));
                        out.push(Node::Value(field.clone(), value));
                    }
                }
                Instruction::Group(group) => {
                    if group.optional && !bits.take() {
                        continue;
                    }
                    let context = inside(context, group.type_ref.as_ref());
                    self.items += 1;
                    let nodes = self.parts(&group.body, &context)?;
                    self.items += 1;
                    out.push(Node::Group(group.name.clone(), nodes));
                }
                Instruction::Sequence(sequence) => self.sequence(sequence, context, bits, out)?,
                Instruction::Static(name, None) => {
                    let template = &self.templates.list[context.template];
                    self.place.get_or_insert_with(|| (template.name.local.clone(), name.local.clone()));
                    return Err((MessageFaultCode::D8, self.at));
                }
                Instruction::Static(_, Some(index)) => {
                    let template = &self.templates.list[*index];
                    let mut context = inside(context, template.type_ref.as_ref());
                    context.template = *index;
                    self.body(&template.body, &context, bits, out)?;
                }
                Instruction::Dynamic => {
                    if self.dynamic == DYNAMIC_MAX {
                        return Err((MessageFaultCode::TooLarge, self.at));
                    }
                    self.dynamic += 1;
                    self.segment(out)?;
                    self.dynamic -= 1;
                }
            }
        }
        Ok(())
    }

    /// Decodes the parts of a group or an element, with a presence map of its own if it needs one.
    fn parts(&mut self, body: &[Instruction], context: &Context) -> Result<Vec<Node>, Wrong> {
        let mut nodes = Vec::new();
        let mut bits = Bits { bits: Vec::new(), next: 0, at: self.at };
        if needs_bits(self.templates, body) {
            bits = self.presence_map()?;
        }
        self.room(body)?;
        self.body(body, context, &mut bits, &mut nodes)?;
        let template = &self.templates.list[context.template];
        self.end(&bits, template)?;
        Ok(nodes)
    }

    fn sequence(
        &mut self,
        sequence: &TemplateSequence,
        context: &Context,
        bits: &mut Bits,
        out: &mut Vec<Node>,
    ) -> Result<(), Wrong> {
        let context = inside(context, sequence.type_ref.as_ref());
        let Some(length) = self.named(&sequence.length, &context, bits)? else { return Ok(()) };
        let InitialValue::Int(length) = length else { unreachable!("a length is an integer") };
        let (start, mut elements) = (self.at, Vec::new());
        self.items += 1;
        for _ in 0..length {
            let before = self.at;
            self.items += 1;
            elements.push(self.parts(&sequence.body, &context)?);
            self.items += 1;
            if before == self.at && length > EMPTY_ELEMENTS_MAX {
                return Err((MessageFaultCode::TooLarge, start));
            }
        }
        self.items += 1;
        out.push(Node::Sequence(sequence.name.clone(), elements));
        Ok(())
    }

    fn named(
        &mut self,
        field: &TemplateField,
        context: &Context,
        bits: &mut Bits,
    ) -> Result<Option<InitialValue>, Wrong> {
        let start = self.at;
        let mut result = self.field(field, context, bits);
        // Only this code says that a part of a decimal is too large.
        if let (Err((code @ (MessageFaultCode::D2 | MessageFaultCode::R4), _)), true) =
            (&mut result, is_decimal(field))
        {
            *code = MessageFaultCode::R1;
        }
        if let (Ok(Some(InitialValue::Bytes(text))), false) = (&result, is_constant(field)) {
            self.text_bytes += text.len();
            if self.text_bytes > TEXT_BYTES_MAX {
                result = Err((MessageFaultCode::TooLarge, start));
            }
        }
        if result.is_err() {
            let template = &self.templates.list[context.template].name.local;
            self.place.get_or_insert_with(|| (template.clone(), field.name.local.clone()));
        }
        result
    }

    fn field(
        &mut self,
        field: &TemplateField,
        context: &Context,
        bits: &mut Bits,
    ) -> Result<Option<InitialValue>, Wrong> {
        let start = self.at;
        match &field.kind {
            FieldEncoding::Plain(kind, operation) => {
                self.operation(*kind, operation, field.optional, context, bits)
            }
            FieldEncoding::Split(exponent, mantissa) => {
                let exponent = self.operation(WireType::Int32, exponent, field.optional, context, bits)?;
                let Some(InitialValue::Int(exponent)) = exponent else { return Ok(None) };
                let exponent = bounded_exponent(exponent).ok_or((MessageFaultCode::R1, start))?;
                let mantissa = self.operation(WireType::Int64, mantissa, false, context, bits)?;
                let Some(InitialValue::Int(mantissa)) = mantissa else { unreachable!("mandatory") };
                let mantissa = i64::try_from(mantissa).expect("in bounds");
                Ok(Some(InitialValue::Decimal { mantissa, exponent }))
            }
        }
    }

    fn operation(
        &mut self,
        kind: WireType,
        operation: &FieldOperator,
        optional: bool,
        context: &Context,
        bits: &mut Bits,
    ) -> Result<Option<InitialValue>, Wrong> {
        let start = self.at;
        let slot = slot(&operation.key, context);
        let initial = &operation.initial;
        match operation.operator {
            Operator::None => self.read(kind, optional),
            Operator::Constant if optional && !bits.take() => Ok(None),
            Operator::Constant => Ok(initial.clone()),
            Operator::Default if bits.take() => self.read(kind, optional),
            Operator::Default => Ok(initial.clone()),
            Operator::Copy | Operator::Increment | Operator::Tail if !bits.take() => {
                match self.previous(&slot, kind, start)? {
                    Some(
                        Previous::Assigned(_, InitialValue::Int(value))
                        | Previous::Initial(_, InitialValue::Int(value)),
                    ) if operation.operator == Operator::Increment => {
                        let (least, most) = kind.bounds().expect("an integer");
                        let next = if value == most { least } else { value + 1 };
                        self.assign(slot, kind, Some(InitialValue::Int(next)));
                        Ok(Some(InitialValue::Int(next)))
                    }
                    Some(Previous::Assigned(_, value) | Previous::Initial(_, value)) => Ok(Some(value)),
                    Some(Previous::Empty) if optional => Ok(None),
                    // 6.3.8 has codes of its own for tails.
                    Some(Previous::Empty) if operation.operator == Operator::Tail => {
                        Err((MessageFaultCode::D7, start))
                    }
                    Some(Previous::Empty) => Err((MessageFaultCode::D6, start)),
                    None if initial.is_none() && !optional && operation.operator == Operator::Tail => {
                        Err((MessageFaultCode::D6, start))
                    }
                    None if initial.is_none() && !optional => Err((MessageFaultCode::D5, start)),
                    None => {
                        let first = initial.clone().map_or(Previous::Empty, |v| Previous::Initial(kind, v));
                        self.decoder.previous.insert(slot, first);
                        Ok(initial.clone())
                    }
                }
            }
            Operator::Copy | Operator::Increment => {
                let value = self.read(kind, optional)?;
                self.assign(slot, kind, value.clone());
                Ok(value)
            }
            Operator::Tail => {
                let Some(tail) = self.read(kind, optional)? else {
                    self.assign(slot, kind, None);
                    return Ok(None);
                };
                let base = match self.previous(&slot, kind, start)? {
                    Some(Previous::Assigned(_, value) | Previous::Initial(_, value)) => value,
                    Some(Previous::Empty) | None => {
                        initial.clone().unwrap_or(InitialValue::Bytes(Vec::new()))
                    }
                };
                let (InitialValue::Bytes(tail), InitialValue::Bytes(base)) = (tail, base) else {
                    unreachable!("strings")
                };
                let kept = base.len().saturating_sub(tail.len());
                let value = [&base[..kept], &tail].concat();
                self.combined(slot, kind, value, start)
            }
            Operator::Delta => self.delta(kind, operation, optional, slot, start),
        }
    }

    fn delta(
        &mut self,
        kind: WireType,
        operation: &FieldOperator,
        optional: bool,
        slot: Slot,
        start: usize,
    ) -> Result<Option<InitialValue>, Wrong> {
        if let Some((least, most)) = kind.bounds() {
            let Some(delta) = self.difference(optional, MessageFaultCode::R4)? else { return Ok(None) };
            let InitialValue::Int(base) = self.base(kind, operation, &slot, start, InitialValue::Int(0))?
            else {
                unreachable!("an integer")
            };
            let value = base + delta;
            if !(least..=most).contains(&value) {
                return Err((MessageFaultCode::R4, start));
            }
            self.assign(slot, kind, Some(InitialValue::Int(value)));
            return Ok(Some(InitialValue::Int(value)));
        }
        if kind == WireType::Decimal {
            let Some(exponent_delta) = self.difference(optional, MessageFaultCode::R1)? else {
                return Ok(None);
            };
            let mantissa_delta = self.difference(false, MessageFaultCode::R1)?.expect("mandatory");
            let nought = InitialValue::Decimal { mantissa: 0, exponent: 0 };
            let InitialValue::Decimal { mantissa, exponent } =
                self.base(kind, operation, &slot, start, nought)?
            else {
                unreachable!("a decimal")
            };
            let exponent = bounded_exponent(i128::from(exponent) + exponent_delta)
                .ok_or((MessageFaultCode::R1, start))?;
            let mantissa = i64::try_from(i128::from(mantissa) + mantissa_delta)
                .map_err(|_| (MessageFaultCode::R1, start))?;
            let value = InitialValue::Decimal { mantissa, exponent };
            self.assign(slot, kind, Some(value.clone()));
            return Ok(Some(value));
        }
        let Some(cut) = self.difference(optional, MessageFaultCode::D7)? else { return Ok(None) };
        if i32::try_from(cut).is_err() {
            return Err((MessageFaultCode::D7, start));
        }
        let piece = match self.read(kind, false)? {
            Some(InitialValue::Bytes(piece)) => piece,
            _ => unreachable!("a mandatory string"),
        };
        let InitialValue::Bytes(base) =
            self.base(kind, operation, &slot, start, InitialValue::Bytes(Vec::new()))?
        else {
            unreachable!("a string")
        };
        let value = if cut >= 0 {
            let kept = base.len().checked_sub(cut as usize).ok_or((MessageFaultCode::D7, start))?;
            [&base[..kept], &piece].concat()
        } else {
            let rest = base.get((-cut - 1) as usize..).ok_or((MessageFaultCode::D7, start))?;
            [&piece, rest].concat()
        };
        self.combined(slot, kind, value, start)
    }

    fn base(
        &mut self,
        kind: WireType,
        operation: &FieldOperator,
        slot: &Slot,
        start: usize,
        nought: InitialValue,
    ) -> Result<InitialValue, Wrong> {
        match self.previous(slot, kind, start)? {
            Some(Previous::Assigned(_, value) | Previous::Initial(_, value)) => Ok(value),
            Some(Previous::Empty) => Err((MessageFaultCode::D6, start)),
            None => Ok(operation.initial.clone().unwrap_or(nought)),
        }
    }

    /// Takes a string that was put together for the value.
    fn combined(
        &mut self,
        slot: Slot,
        kind: WireType,
        value: Vec<u8>,
        start: usize,
    ) -> Result<Option<InitialValue>, Wrong> {
        if kind == WireType::Unicode && std::str::from_utf8(&value).is_err() {
            return Err((MessageFaultCode::R2, start));
        }
        let value = InitialValue::Bytes(value);
        self.assign(slot, kind, Some(value.clone()));
        Ok(Some(value))
    }

    fn previous(&self, slot: &Slot, kind: WireType, at: usize) -> Result<Option<Previous>, Wrong> {
        match self.decoder.previous.get(slot) {
            Some(Previous::Assigned(other, _) | Previous::Initial(other, _)) if *other != kind => {
                Err((MessageFaultCode::D4, at))
            }
            found => Ok(found.cloned()),
        }
    }

    fn assign(&mut self, slot: Slot, kind: WireType, value: Option<InitialValue>) {
        let previous = value.map_or(Previous::Empty, |value| Previous::Assigned(kind, value));
        self.decoder.previous.insert(slot, previous);
    }
}

fn is_decimal(field: &TemplateField) -> bool {
    matches!(field.kind, FieldEncoding::Split(..) | FieldEncoding::Plain(WireType::Decimal, _))
}

fn is_constant(field: &TemplateField) -> bool {
    matches!(&field.kind, FieldEncoding::Plain(_, operation) if operation.operator == Operator::Constant)
        && !field.optional
}

/// Counts the fields that are not constants, with the parts of decimals and the lengths of sequences. Also counts the
/// bytes of the constants.
pub(crate) fn weight(templates: &Templates, body: &[Instruction]) -> (usize, usize) {
    let (mut fields, mut text) = (0, 0);
    for instruction in body {
        match instruction {
            Instruction::Field(field) => match &field.kind {
                FieldEncoding::Plain(_, operation) if is_constant(field) => {
                    let Some(InitialValue::Bytes(bytes)) = &operation.initial else { continue };
                    text += bytes.len();
                }
                FieldEncoding::Plain(..) => fields += 1,
                FieldEncoding::Split(..) => fields += 2,
            },
            Instruction::Sequence(_) => fields += 2,
            Instruction::Static(_, Some(index)) => {
                let more = weight(templates, &templates.list[*index].body);
                (fields, text) = (fields + more.0, text + more.1);
            }
            Instruction::Group(_) | Instruction::Static(_, None) | Instruction::Dynamic => fields += 1,
        }
    }
    (fields, text)
}

fn inside(context: &Context, kind: Option<&QualifiedName>) -> Context {
    Context { template: context.template, kind: kind.or(context.kind.as_ref()).cloned() }
}

fn slot(key: &DictionaryKey, context: &Context) -> Slot {
    let place = match &key.dictionary {
        DictionaryScope::Global => ScopeKey::Global,
        DictionaryScope::Template(index) => ScopeKey::Template(*index),
        DictionaryScope::Type => ScopeKey::Type(context.kind.clone()),
        DictionaryScope::Named(name) => ScopeKey::Named(name.clone()),
    };
    (place, key.name.clone(), key.part)
}

fn bounded_exponent(exponent: i128) -> Option<i32> {
    (-63..=63).contains(&exponent).then_some(exponent as i32)
}

/// Returns whether a body has a presence map of its own.
fn needs_bits(templates: &Templates, body: &[Instruction]) -> bool {
    body.iter().any(|instruction| match instruction {
        Instruction::Field(field) => match &field.kind {
            FieldEncoding::Plain(_, operation) => operation.has_bit(field.optional),
            FieldEncoding::Split(exponent, mantissa) => {
                exponent.has_bit(field.optional) || mantissa.has_bit(false)
            }
        },
        Instruction::Group(group) => group.optional,
        Instruction::Sequence(sequence) => {
            let FieldEncoding::Plain(_, operation) = &sequence.length.kind else { return false };
            operation.has_bit(sequence.optional)
        }
        Instruction::Static(_, place) => {
            place.is_some_and(|place| needs_bits(templates, &templates.list[place].body))
        }
        Instruction::Dynamic => false,
    })
}
