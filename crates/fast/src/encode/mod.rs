//! The encoder: values of a template to bytes, in as few as its operators allow.
//!
//! ```text
//!  Templates ─▶ Plan: ops, cells of frames         once
//!                 │
//!  Draft: values in any order ─▶ Encoder ─▶ bytes  no allocation a message, once warm
//!                                   └ dictionaries, carried to the next message, unchanged if one cannot be encoded
//! ```
//!
//! ```
//! use std::sync::Arc;
//! use unitape_fast::{Decoder, Encoder, TemplateFile, Templates, FieldValue};
//!
//! let xml = br#"<templates><template name="Quote" id="1">
//!   <string name="Symbol"><copy/></string>
//!   <sequence name="Levels"><decimal name="Px"><delta/></decimal><uInt32 name="Qty"/></sequence>
//! </template></templates>"#;
//! let templates = Arc::new(Templates::load(&[TemplateFile { name: "quote.xml", content: xml }])?);
//! let mut encoder = Encoder::new(templates.clone());
//! // Once: where values go.
//! let quote = encoder.template("Quote").unwrap();
//! let symbol = encoder.field(quote, "Symbol").unwrap();
//! let levels = encoder.sequence(quote, "Levels").unwrap();
//! let (px, qty) = (encoder.field(quote, "Levels/Px").unwrap(), encoder.field(quote, "Levels/Qty").unwrap());
//! // For each message.
//! let mut draft = encoder.draft(quote);
//! let mut bytes = Vec::new();
//! draft.set(symbol, FieldValue::Text(b"ACME"));
//! draft.element(levels);
//! draft.set(px, FieldValue::Decimal { mantissa: 9427, exponent: -2 });
//! draft.uint(qty, 5);
//! encoder.encode(&draft, &mut bytes).unwrap();
//! assert_eq!(bytes, b"\xe0\x81ACM\xc5\x81\xfe\x00\x49\xd3\x85");
//! let mut decoder = Decoder::new(templates);
//! assert_eq!(decoder.decode(&bytes).unwrap().get("Symbol"), Some(FieldValue::Text(b"ACME")));
//! // The id and the symbol are those of the message before, and the price as well.
//! bytes.clear();
//! encoder.encode(&draft, &mut bytes).unwrap();
//! assert_eq!(bytes, b"\x80\x81\x80\x80\x85");
//! # Ok::<(), unitape_fast::TemplateError>(())
//! ```

mod draft;
mod operators;
mod plan;
mod reencode;
#[cfg(test)]
mod tests;
mod wire;

pub use draft::{
    DraftFrameRef, DynamicTemplateRef, FieldRef, GroupRef, MessageDraft, SequenceRef, TemplatePartRef,
};

use super::exact::{DYNAMIC_MAX, EMPTY_ELEMENTS_MAX, ENTRIES_MAX, OPS_OF_ITEM};
use super::fault::{MessageFault, MessageFaultCode};
use super::ops::FaultLocation;
use super::record::Message;
use super::template::{Templates, WireType};
use super::wire::EXPONENT_MAX;
use draft::{CellKind, DraftCell};
use operators::{EncoderDictionaries, OperandValue};
use plan::{EncodeBlock, EncodeOp, EncodePlan, NONE, OpCode, OpRole};
use std::sync::Arc;
use wire::PresenceMapWriter;

/// Encodes messages; dictionaries are carried from one to the next.
#[derive(Debug, Clone)]
pub struct Encoder {
    templates: Arc<Templates>,
    plan: Arc<EncodePlan>,
    neutral: bool,
    dictionaries: EncoderDictionaries,
    template_id: Option<u32>,
    /// The draft of messages that are encoded again.
    again: Option<MessageDraft>,
}

impl Encoder {
    /// An encoder with empty dictionaries.
    #[must_use]
    pub fn new(templates: Arc<Templates>) -> Self {
        let plan = Arc::new(EncodePlan::new(&templates));
        let dictionaries = EncoderDictionaries::new(plan.slots);
        Self { templates, plan, neutral: false, dictionaries, template_id: None, again: None }
    }

    /// This encoder; if `neutral`, a mandatory field without a value is nought or empty, where it would be refused
    /// otherwise.
    #[must_use]
    pub fn with_neutral(self, neutral: bool) -> Self {
        Self { neutral, ..self }
    }

    /// The templates.
    #[must_use]
    pub fn templates(&self) -> &Arc<Templates> {
        &self.templates
    }

    /// The first template of this name that messages can name, by its place in the list.
    #[must_use]
    pub fn template(&self, name: &str) -> Option<usize> {
        self.templates.list().iter().position(|template| template.id.is_some() && template.name.local == name)
    }

    /// The parts of a template, by its place in the list, each with its path: the names of the groups and sequences around
    /// it and its own, with slashes between. The target of a static reference appears in its place.
    pub fn parts(&self, template: usize) -> impl Iterator<Item = (&str, TemplatePartRef)> {
        self.plan.parts[template].iter().map(|(path, part)| (path.as_str(), *part))
    }

    /// The first part of this path.
    #[must_use]
    pub fn part(&self, template: usize, path: &str) -> Option<TemplatePartRef> {
        self.parts(template).find(|(other, _)| *other == path).map(|(_, part)| part)
    }

    /// The first field of this path.
    #[must_use]
    pub fn field(&self, template: usize, path: &str) -> Option<FieldRef> {
        self.parts(template).find_map(|(other, part)| match part {
            TemplatePartRef::Field(field) if other == path => Some(field),
            _ => None,
        })
    }

    /// The first sequence of this path.
    #[must_use]
    pub fn sequence(&self, template: usize, path: &str) -> Option<SequenceRef> {
        self.parts(template).find_map(|(other, part)| match part {
            TemplatePartRef::Sequence(sequence) if other == path => Some(sequence),
            _ => None,
        })
    }

    /// A message of a template, by its place in the list, without any value yet.
    #[must_use]
    pub fn draft(&self, template: usize) -> MessageDraft {
        MessageDraft::new(self.plan.clone(), template as u32)
    }

    /// Empties all dictionaries, that of the template's id as well.
    pub fn reset(&mut self) {
        self.dictionaries.empty();
        self.template_id = None;
    }

    /// Appends the message to `out`.
    ///
    /// # Errors
    /// The first value that cannot be encoded; dictionaries and `out` are then as they were before.
    ///
    /// # Panics
    /// Where the draft is of other templates.
    pub fn encode(&mut self, draft: &MessageDraft, out: &mut Vec<u8>) -> Result<(), MessageFault> {
        assert!(Arc::ptr_eq(&draft.plan, &self.plan), "a draft of another encoder");
        let before = (self.dictionaries.begin(), self.template_id);
        let start = out.len();
        let mut pass = EncodePass {
            plan: &self.plan,
            neutral: self.neutral,
            dictionaries: &mut self.dictionaries,
            template_id: &mut self.template_id,
            draft,
            out,
            dynamic: 0,
            entries: 0,
            text_bytes: 0,
            place: FaultLocation::NONE,
        };
        match pass.segment(draft.template, 0) {
            Ok(()) => Ok(()),
            Err(code) => {
                let (FaultLocation { template, part }, at) = (pass.place, pass.out.len() - start);
                self.dictionaries.undo(before.0);
                self.template_id = before.1;
                out.truncate(start);
                let name = |index: u32| self.templates.list()[index as usize].name.local.clone();
                Err(MessageFault {
                    code,
                    template: if template == NONE { String::new() } else { name(template) },
                    field: self.plan.infos.get(part as usize).map_or(String::new(), |i| i.name.local.clone()),
                    at,
                })
            }
        }
    }

    /// A message that was decoded by the same templates as a draft, which may be changed.
    ///
    /// # Errors
    /// Where parts of the message were left out when it was decoded.
    pub fn draft_of(&self, message: &Message<'_>) -> Result<MessageDraft, MessageFault> {
        let mut draft = self.draft(message.template);
        reencode::fill_draft(&self.templates, message, &mut draft)?;
        Ok(draft)
    }

    /// Appends a message that was decoded by the same templates to `out`.
    ///
    /// # Errors
    /// As [`Encoder::encode`]; and where parts of the message were left out when it was decoded.
    pub fn reencode(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Result<(), MessageFault> {
        let mut draft = self.again.take().unwrap_or_else(|| self.draft(message.template));
        let result = reencode::fill_draft(&self.templates, message, &mut draft);
        let result = result.and_then(|()| self.encode(&draft, out));
        self.again = Some(draft);
        result
    }
}

struct EncodePass<'p> {
    plan: &'p EncodePlan,
    neutral: bool,
    dictionaries: &'p mut EncoderDictionaries,
    template_id: &'p mut Option<u32>,
    draft: &'p MessageDraft,
    out: &'p mut Vec<u8>,
    dynamic: usize,
    /// As a decoder has them.
    entries: usize,
    text_bytes: usize,
    place: FaultLocation,
}

impl EncodePass<'_> {
    /// Presence map, template id and what the template has.
    fn segment(&mut self, template: u32, frame: u32) -> Result<(), MessageFaultCode> {
        let of = self.plan.templates[template as usize];
        let block = self.plan.blocks[of.block as usize];
        let Some(id) = of.id else {
            self.place = FaultLocation { template, part: NONE };
            return Err(MessageFaultCode::D9);
        };
        let mut map = PresenceMapWriter::begin(self.out, block.bits);
        let changed = *self.template_id != Some(id);
        map.put(self.out, changed);
        if changed {
            wire::unsigned(self.out, id.into());
            *self.template_id = Some(id);
        }
        if of.reset {
            self.dictionaries.empty();
        }
        self.run(block, frame, &mut map)?;
        map.end(self.out);
        Ok(())
    }

    /// A group or an element.
    fn block(&mut self, block: u32, frame: u32) -> Result<(), MessageFaultCode> {
        let block = self.plan.blocks[block as usize];
        if block.bits == 0 {
            return self.run(block, frame, &mut { PresenceMapWriter::NONE });
        }
        let mut map = PresenceMapWriter::begin(self.out, block.bits);
        self.run(block, frame, &mut map)?;
        map.end(self.out);
        Ok(())
    }

    fn run(
        &mut self,
        block: EncodeBlock,
        frame: u32,
        map: &mut PresenceMapWriter,
    ) -> Result<(), MessageFaultCode> {
        self.entries += block.ops as usize / OPS_OF_ITEM;
        if self.entries > ENTRIES_MAX {
            return Err(MessageFaultCode::TooLarge);
        }
        let (plan, draft) = (self.plan, self.draft);
        let ops = &plan.ops[block.from as usize..block.to as usize];
        let (mut next, mut mantissa) = (0, None);
        while let Some(op) = ops.get(next) {
            next += 1;
            let cell = |op: &EncodeOp| draft.cells[(frame + op.cell) as usize];
            match op.code {
                OpCode::Group => {
                    let there = !op.optional || cell(op).tag == CellKind::There;
                    if op.optional {
                        map.put(self.out, there);
                    }
                    if there {
                        self.entries += 2;
                        self.block(op.block, frame)?;
                    }
                }
                OpCode::Sequence => self.sequence(op, cell(op))?,
                OpCode::Dynamic => self.reference(op, cell(op))?,
                OpCode::Missing => {
                    self.note(op.info);
                    return Err(MessageFaultCode::D8);
                }
                _ => {
                    let (given, found) = match op.role {
                        OpRole::Value => (cell_value(draft, op, cell(op)), None),
                        OpRole::Length => (Ok(length(op, cell(op))), None),
                        OpRole::Exponent => match self.halves(op, cell(op)) {
                            Ok((exponent, found)) => (Ok(exponent), found),
                            Err(code) => (Err(code), None),
                        },
                        OpRole::Mantissa => (Ok(mantissa), None),
                    };
                    mantissa = found;
                    let written =
                        given.and_then(|given| self.value(op, given, map).map(|()| given.is_some()));
                    match written {
                        Ok(there) => {
                            // The op after it is left out with it.
                            let leads = matches!(op.role, OpRole::Exponent | OpRole::Length);
                            next += usize::from(leads && !there && op.optional);
                        }
                        Err(code) => {
                            self.note(op.info);
                            return Err(if op.role == OpRole::Mantissa && code == MessageFaultCode::D1 {
                                MessageFaultCode::D3
                            } else {
                                code
                            });
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn sequence(&mut self, op: &EncodeOp, cell: DraftCell) -> Result<(), MessageFaultCode> {
        let start = self.out.len();
        self.entries += 2;
        let mut at = (cell.bits >> 32) as u32;
        for _ in 0..cell.count {
            let before = self.out.len();
            self.entries += 2;
            self.block(op.block, at)?;
            if self.out.len() == before && u64::from(cell.count) > EMPTY_ELEMENTS_MAX {
                self.out.truncate(start);
                self.note(op.info);
                return Err(MessageFaultCode::TooLarge);
            }
            at = self.draft.cells[at as usize].bits as u32;
        }
        Ok(())
    }

    fn reference(&mut self, op: &EncodeOp, cell: DraftCell) -> Result<(), MessageFaultCode> {
        let code =
            if cell.tag != CellKind::There { MessageFaultCode::Missing } else { MessageFaultCode::TooLarge };
        if cell.tag != CellKind::There || self.dynamic == DYNAMIC_MAX {
            self.note(op.info);
            return Err(code);
        }
        self.dynamic += 1;
        self.segment(cell.count, cell.bits as u32)?;
        self.dynamic -= 1;
        Ok(())
    }

    /// Exponent and mantissa of a decimal that has an operator for each. A constant exponent is had where it can be
    /// without loss.
    fn halves<'t>(
        &self,
        op: &EncodeOp,
        cell: DraftCell,
    ) -> Result<(Option<OperandValue<'t>>, Option<OperandValue<'t>>), MessageFaultCode> {
        // No decoder accepts an exponent that is out of bounds, also not where its template has it.
        let initial = || {
            let exponent = self.plan.initials[op.initial as usize].bits as i64;
            if exponent.abs() <= EXPONENT_MAX { Ok(exponent) } else { Err(MessageFaultCode::R1) }
        };
        let (mut mantissa, mut exponent) = match cell.tag {
            CellKind::Absent => {
                if !op.optional && matches!(op.code, OpCode::Constant | OpCode::Default) {
                    initial()?;
                }
                return Ok((None, None));
            }
            _ => decimal(cell)?,
        };
        if op.code == OpCode::Constant {
            let constant = initial()?;
            if mantissa == 0 {
                exponent = constant as i8;
            }
            while i64::from(exponent) != constant {
                let more = i64::from(exponent) > constant;
                let scaled = if more {
                    mantissa.checked_mul(10)
                } else {
                    (mantissa % 10 == 0).then_some(mantissa / 10)
                };
                exponent += if more { -1 } else { 1 };
                mantissa = scaled.ok_or(MessageFaultCode::D3)?;
            }
        }
        Ok((Some(OperandValue::int(i64::from(exponent) as u64)), Some(OperandValue::int(mantissa as u64))))
    }

    #[cold]
    fn note(&mut self, info: u32) {
        if self.place == FaultLocation::NONE {
            self.place = FaultLocation { template: self.plan.infos[info as usize].template, part: info };
        }
    }
}

/// The value of a cell in the op's type, none where it is absent.
#[inline(always)]
fn cell_value<'d>(
    draft: &'d MessageDraft,
    op: &EncodeOp,
    cell: DraftCell,
) -> Result<Option<OperandValue<'d>>, MessageFaultCode> {
    let text = || &draft.texts[(cell.bits >> 32) as usize..][..cell.bits as u32 as usize];
    Ok(Some(match (op.kind, cell.tag) {
        (_, CellKind::Absent) => return Ok(None),
        (WireType::UInt64, CellKind::UInt) | (WireType::Int64, CellKind::Int) => OperandValue::int(cell.bits),
        (WireType::UInt32, CellKind::UInt) if cell.bits >> 32 == 0 => OperandValue::int(cell.bits),
        (WireType::Int32 | WireType::UInt32 | WireType::Int64 | WireType::UInt64, _) => {
            OperandValue::int(integer(op.kind, cell)?)
        }
        (WireType::Decimal, _) => {
            let (mantissa, exponent) = decimal(cell)?;
            OperandValue { exponent, ..OperandValue::int(mantissa as u64) }
        }
        (WireType::Ascii, CellKind::Text) if text().is_ascii() => {
            OperandValue { text: text(), ..OperandValue::int(0) }
        }
        (WireType::Ascii, CellKind::Text) => return Err(MessageFaultCode::R3),
        (WireType::Unicode, CellKind::Text) | (WireType::Bytes, CellKind::Bytes) => {
            OperandValue { text: text(), ..OperandValue::int(0) }
        }
        _ => return Err(MessageFaultCode::D1),
    }))
}

fn length<'d>(op: &EncodeOp, cell: DraftCell) -> Option<OperandValue<'d>> {
    (cell.tag == CellKind::There || !op.optional).then(|| OperandValue::int(cell.count.into()))
}

/// A number as an integer of this type, in two's complement.
#[cold]
fn integer(kind: WireType, cell: DraftCell) -> Result<u64, MessageFaultCode> {
    let (mut value, wrong) = match cell.tag {
        CellKind::Int => (i128::from(cell.bits as i64), MessageFaultCode::R4),
        CellKind::UInt => (i128::from(cell.bits), MessageFaultCode::R4),
        CellKind::Decimal => (i128::from(cell.bits as i64), MessageFaultCode::R5),
        _ => return Err(MessageFaultCode::D1),
    };
    let (least, most) = kind.bounds().expect("an integer");
    if cell.tag == CellKind::Decimal && value != 0 {
        let scale = u32::try_from(cell.exponent).ok().and_then(|exponent| 10i128.checked_pow(exponent));
        value = scale.and_then(|scale| value.checked_mul(scale)).ok_or(MessageFaultCode::R5)?;
    }
    if (least..=most).contains(&value) { Ok(value as u64) } else { Err(wrong) }
}

/// A number as mantissa and exponent.
fn decimal(cell: DraftCell) -> Result<(i64, i8), MessageFaultCode> {
    match cell.tag {
        CellKind::Decimal if i64::from(cell.exponent).abs() <= EXPONENT_MAX => {
            Ok((cell.bits as i64, cell.exponent))
        }
        CellKind::Decimal => Err(MessageFaultCode::R1),
        CellKind::Int => Ok((cell.bits as i64, 0)),
        CellKind::UInt => {
            i64::try_from(cell.bits).map(|mantissa| (mantissa, 0)).map_err(|_| MessageFaultCode::R1)
        }
        _ => Err(MessageFaultCode::D1),
    }
}
