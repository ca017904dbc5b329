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
    reencode_draft: Option<MessageDraft>,
}

impl Encoder {
    /// Makes an encoder with empty dictionaries.
    #[must_use]
    pub fn new(templates: Arc<Templates>) -> Self {
        let plan = Arc::new(EncodePlan::new(&templates));
        let dictionaries = EncoderDictionaries::new(plan.slot_count);
        Self { templates, plan, neutral: false, dictionaries, template_id: None, reencode_draft: None }
    }

    /// Sets what the encoder does with a mandatory field without a value. If `neutral`, it writes zero or an empty
    /// text; otherwise it refuses the message.
    #[must_use]
    pub fn with_neutral(self, neutral: bool) -> Self {
        Self { neutral, ..self }
    }

    /// Returns the templates.
    #[must_use]
    pub fn templates(&self) -> &Arc<Templates> {
        &self.templates
    }

    /// Finds the first template with this name and an id. Returns its index in the list.
    #[must_use]
    pub fn template(&self, name: &str) -> Option<usize> {
        self.templates.list().iter().position(|template| template.id.is_some() && template.name.local == name)
    }

    /// Returns the parts of a template, given by its index in the list, each with its path. A path has the names of the
    /// enclosing groups and sequences and the part's own name, with slashes between. The target of a static reference
    /// appears in the place of the reference.
    pub fn parts(&self, template: usize) -> impl Iterator<Item = (&str, TemplatePartRef)> {
        self.plan.parts[template].iter().map(|(path, part)| (path.as_str(), *part))
    }

    /// Finds the first part with this path.
    #[must_use]
    pub fn part(&self, template: usize, path: &str) -> Option<TemplatePartRef> {
        self.parts(template).find(|(part_path, _)| *part_path == path).map(|(_, part)| part)
    }

    /// Finds the first field with this path.
    #[must_use]
    pub fn field(&self, template: usize, path: &str) -> Option<FieldRef> {
        self.parts(template).find_map(|(part_path, part)| match part {
            TemplatePartRef::Field(field) if part_path == path => Some(field),
            _ => None,
        })
    }

    /// Finds the first sequence with this path.
    #[must_use]
    pub fn sequence(&self, template: usize, path: &str) -> Option<SequenceRef> {
        self.parts(template).find_map(|(part_path, part)| match part {
            TemplatePartRef::Sequence(sequence) if part_path == path => Some(sequence),
            _ => None,
        })
    }

    /// Makes a message without values for a template, given by its index in the list.
    #[must_use]
    pub fn draft(&self, template: usize) -> MessageDraft {
        MessageDraft::new(self.plan.clone(), template as u32)
    }

    /// Empties all dictionaries, including the stored template id.
    pub fn reset(&mut self) {
        self.dictionaries.empty();
        self.template_id = None;
    }

    /// Appends the message to `out`.
    ///
    /// # Errors
    /// Fails at the first value that cannot be encoded. The dictionaries and `out` are then as they were before.
    ///
    /// # Panics
    /// Panics if the draft was made with other templates.
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
            fault_location: FaultLocation::NONE,
        };
        match pass.segment(draft.template, 0) {
            Ok(()) => Ok(()),
            Err(code) => {
                let (FaultLocation { template, part }, offset) =
                    (pass.fault_location, pass.out.len() - start);
                self.dictionaries.undo(before.0);
                self.template_id = before.1;
                out.truncate(start);
                let name = |index: u32| self.templates.list()[index as usize].name.local.clone();
                Err(MessageFault {
                    code,
                    template: if template == NONE { String::new() } else { name(template) },
                    field: self.plan.infos.get(part as usize).map_or(String::new(), |i| i.name.local.clone()),
                    offset,
                })
            }
        }
    }

    /// Makes a draft from a message that was decoded with the same templates. The draft may be changed.
    ///
    /// # Errors
    /// Fails if parts of the message were left out when it was decoded.
    pub fn draft_of(&self, message: &Message<'_>) -> Result<MessageDraft, MessageFault> {
        let mut draft = self.draft(message.template);
        reencode::fill_draft(&self.templates, message, &mut draft)?;
        Ok(draft)
    }

    /// Appends a message that was decoded by the same templates to `out`.
    ///
    /// # Errors
    /// Fails as [`Encoder::encode`] does, or if parts of the message were left out when it was decoded.
    pub fn reencode(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Result<(), MessageFault> {
        let mut draft = self.reencode_draft.take().unwrap_or_else(|| self.draft(message.template));
        let result = reencode::fill_draft(&self.templates, message, &mut draft);
        let result = result.and_then(|()| self.encode(&draft, out));
        self.reencode_draft = Some(draft);
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
    fault_location: FaultLocation,
}

impl EncodePass<'_> {
    /// Encodes a segment: its presence map, its template id and the fields of its template.
    fn segment(&mut self, template: u32, frame: u32) -> Result<(), MessageFaultCode> {
        let template_plan = self.plan.templates[template as usize];
        let block = self.plan.blocks[template_plan.block as usize];
        let Some(id) = template_plan.id else {
            self.fault_location = FaultLocation { template, part: NONE };
            return Err(MessageFaultCode::D9);
        };
        let mut map = PresenceMapWriter::begin(self.out, block.bits);
        let changed = *self.template_id != Some(id);
        map.push_bit(self.out, changed);
        if changed {
            wire::unsigned(self.out, id.into());
            *self.template_id = Some(id);
        }
        if template_plan.resets_dictionaries {
            self.dictionaries.empty();
        }
        self.run(block, frame, &mut map)?;
        map.end(self.out);
        Ok(())
    }

    /// Encodes a group or an element.
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
                    let is_present = !op.optional || cell(op).tag == CellKind::There;
                    if op.optional {
                        map.push_bit(self.out, is_present);
                    }
                    if is_present {
                        self.entries += 2;
                        self.block(op.block, frame)?;
                    }
                }
                OpCode::Sequence => self.sequence(op, cell(op))?,
                OpCode::Dynamic => self.reference(op, cell(op))?,
                OpCode::Missing => {
                    self.record_fault(op.info);
                    return Err(MessageFaultCode::D8);
                }
                _ => {
                    let (operand, next_mantissa) = match op.role {
                        OpRole::Value => (cell_value(draft, op, cell(op)), None),
                        OpRole::Length => (Ok(length(op, cell(op))), None),
                        OpRole::Exponent => match self.halves(op, cell(op)) {
                            Ok((exponent, next_mantissa)) => (Ok(exponent), next_mantissa),
                            Err(code) => (Err(code), None),
                        },
                        OpRole::Mantissa => (Ok(mantissa), None),
                    };
                    mantissa = next_mantissa;
                    let written =
                        operand.and_then(|operand| self.value(op, operand, map).map(|()| operand.is_some()));
                    match written {
                        Ok(is_present) => {
                            // The op after it is left out with it.
                            let leads = matches!(op.role, OpRole::Exponent | OpRole::Length);
                            next += usize::from(leads && !is_present && op.optional);
                        }
                        Err(code) => {
                            self.record_fault(op.info);
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
        let mut first_cell = (cell.bits >> 32) as u32;
        for _ in 0..cell.count {
            let before = self.out.len();
            self.entries += 2;
            self.block(op.block, first_cell)?;
            if self.out.len() == before && u64::from(cell.count) > EMPTY_ELEMENTS_MAX {
                self.out.truncate(start);
                self.record_fault(op.info);
                return Err(MessageFaultCode::TooLarge);
            }
            first_cell = self.draft.cells[first_cell as usize].bits as u32;
        }
        Ok(())
    }

    fn reference(&mut self, op: &EncodeOp, cell: DraftCell) -> Result<(), MessageFaultCode> {
        let code =
            if cell.tag != CellKind::There { MessageFaultCode::Missing } else { MessageFaultCode::TooLarge };
        if cell.tag != CellKind::There || self.dynamic == DYNAMIC_MAX {
            self.record_fault(op.info);
            return Err(code);
        }
        self.dynamic += 1;
        self.segment(cell.count, cell.bits as u32)?;
        self.dynamic -= 1;
        Ok(())
    }

    /// Splits a decimal into exponent and mantissa if each has an operator. Uses a constant exponent if this loses no
    /// digit.
    fn halves<'t>(
        &self,
        op: &EncodeOp,
        cell: DraftCell,
    ) -> Result<(Option<OperandValue<'t>>, Option<OperandValue<'t>>), MessageFaultCode> {
        // No decoder accepts an exponent out of bounds, even if the template contains it.
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
    fn record_fault(&mut self, info: u32) {
        if self.fault_location == FaultLocation::NONE {
            self.fault_location =
                FaultLocation { template: self.plan.infos[info as usize].template, part: info };
        }
    }
}

/// Returns the value of a cell in the op's type, or `None` if it is absent.
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

/// Converts a number to an integer of this type, in two's complement.
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

/// Converts a number to mantissa and exponent.
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
