//! The operators: which values are left out, and how the others are encoded.

use super::EncodePass;
use super::plan::{EncodeInitialValue, EncodeOp, OpCode, OpRole};
use super::wire::{self, PresenceMapWriter};
use crate::fault::MessageFaultCode;
use crate::template::WireType;
use crate::workspace::TEXT_BYTES_MAX;

/// A value in the type of its op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OperandValue<'t> {
    /// An integer or a mantissa, in two's complement.
    pub bits: u64,
    pub exponent: i8,
    pub text: &'t [u8],
}

impl<'t> OperandValue<'t> {
    #[inline(always)]
    pub const fn int(bits: u64) -> Self {
        OperandValue { bits, exponent: 0, text: &[] }
    }

    fn from_initial(initial: &'t EncodeInitialValue) -> Self {
        OperandValue { bits: initial.bits, exponent: initial.exponent, text: &initial.text }
    }
}

/// The previous values.
#[derive(Debug, Clone)]
pub(super) struct EncoderDictionaries {
    encoder_slots: Vec<EncoderSlot>,
    /// The texts of the slots whose value is a text.
    texts: Vec<Vec<u8>>,
    epoch: u32,
    /// The slots before this message, the first written first.
    undo_slots: Vec<(u32, EncoderSlot)>,
    undo_texts: Vec<(u32, Vec<u8>)>,
    /// To be used again.
    spare_texts: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
struct EncoderSlot {
    bits: u64,
    /// The slot is undefined unless this is the epoch of the dictionaries.
    epoch: u32,
    empty: bool,
    exponent: i8,
    kind: WireType,
}

impl EncoderDictionaries {
    pub fn new(slots: usize) -> Self {
        let nothing = EncoderSlot { bits: 0, epoch: 0, empty: true, exponent: 0, kind: WireType::UInt32 };
        Self {
            encoder_slots: vec![nothing; slots],
            texts: vec![Vec::new(); slots],
            epoch: 1,
            undo_slots: Vec::new(),
            undo_texts: Vec::new(),
            spare_texts: Vec::new(),
        }
    }

    /// Empties all dictionaries.
    pub fn empty(&mut self) {
        // Renumbered between messages, long before they run out.
        self.epoch += 1;
    }

    /// Starts a message and returns the epoch that an undo restores.
    pub fn begin(&mut self) -> u32 {
        self.undo_slots.clear();
        self.spare_texts.extend(self.undo_texts.drain(..).map(|(_, text)| text));
        if self.epoch > u32::MAX / 2 {
            for slot in &mut self.encoder_slots {
                slot.epoch = u32::from(slot.epoch == self.epoch);
            }
            self.epoch = 1;
        }
        self.epoch
    }

    #[cold]
    pub fn undo(&mut self, epoch: u32) {
        while let Some((index, slot)) = self.undo_slots.pop() {
            self.encoder_slots[index as usize] = slot;
        }
        while let Some((index, text)) = self.undo_texts.pop() {
            self.spare_texts.push(std::mem::replace(&mut self.texts[index as usize], text));
        }
        self.epoch = epoch;
    }

    #[inline(always)]
    fn assign(&mut self, op: &EncodeOp, value: Option<OperandValue<'_>>) {
        let slot = &mut self.encoder_slots[op.slot as usize];
        self.undo_slots.push((op.slot, *slot));
        let OperandValue { bits, exponent, text } = value.unwrap_or(OperandValue::int(0));
        *slot = EncoderSlot { bits, epoch: self.epoch, empty: value.is_none(), exponent, kind: op.kind };
        if op.kind.is_string_or_bytes() {
            let mut new_text = self.spare_texts.pop().unwrap_or_default();
            new_text.clear();
            new_text.extend_from_slice(text);
            let old_text = std::mem::replace(&mut self.texts[op.slot as usize], new_text);
            self.undo_texts.push((op.slot, old_text));
        }
    }

    /// Returns the stored value of the slot, which must be defined and not empty.
    fn stored(&self, op: &EncodeOp) -> OperandValue<'_> {
        let slot = self.encoder_slots[op.slot as usize];
        let text: &[u8] = if op.kind.is_string_or_bytes() { &self.texts[op.slot as usize] } else { &[] };
        OperandValue { bits: slot.bits, exponent: slot.exponent, text }
    }

    /// Returns whether a decoder derives the value if the message leaves it out.
    #[inline(always)]
    fn omitted_value(
        &self,
        op: &EncodeOp,
        operand: Option<OperandValue<'_>>,
        initial: Option<OperandValue<'_>>,
    ) -> OmittedValue {
        let slot = self.encoder_slots[op.slot as usize];
        if slot.epoch != self.epoch {
            let initially = operand == initial && (operand.is_some() || op.optional);
            return if initially { OmittedValue::Initial } else { OmittedValue::Wrong };
        }
        let Some(operand) = operand else {
            return if slot.empty { OmittedValue::Nothing } else { OmittedValue::Wrong };
        };
        if slot.empty || slot.kind != op.kind {
            return OmittedValue::Wrong;
        }
        let previous_value = self.stored(op);
        let is_derivable = if op.code == OpCode::Increment {
            operand.bits == op.kind.increment(previous_value.bits)
        } else {
            previous_value == operand
        };
        if is_derivable { OmittedValue::Before } else { OmittedValue::Wrong }
    }

    /// Returns the base value to which a difference or a tail applies.
    fn base<'t>(
        &'t self,
        op: &EncodeOp,
        initial: Option<OperandValue<'t>>,
    ) -> Result<OperandValue<'t>, MessageFaultCode> {
        let slot = self.encoder_slots[op.slot as usize];
        let undefined = slot.epoch != self.epoch;
        match slot.empty {
            _ if undefined => Ok(initial.unwrap_or(OperandValue::int(0))),
            true if op.code == OpCode::Tail => Ok(initial.unwrap_or(OperandValue::int(0))),
            true => Err(MessageFaultCode::D6),
            false if slot.kind != op.kind => Err(MessageFaultCode::D4),
            false => Ok(self.stored(op)),
        }
    }
}

/// The value that a decoder has where none is sent.
enum OmittedValue {
    /// The value before, or the one after it.
    Before,
    /// Absent, as the previous value.
    Nothing,
    /// The initial value, or absent if there is none. It goes into the dictionary.
    Initial,
    /// An error.
    Wrong,
}

impl EncodePass<'_> {
    /// Writes an op's value, or leaves it out.
    #[inline(always)]
    pub(super) fn value(
        &mut self,
        op: &EncodeOp,
        operand: Option<OperandValue<'_>>,
        map: &mut PresenceMapWriter,
    ) -> Result<(), MessageFaultCode> {
        let plan = self.plan;
        let initial = plan.initials.get(op.initial as usize).map(OperandValue::from_initial);
        let operand = match operand {
            None if !op.optional => Some(self.value_if_unset(op, initial)?),
            operand => operand,
        };
        if let Some(value) = operand {
            self.entries +=
                usize::from(matches!(op.role, OpRole::Value | OpRole::Mantissa) && !op.is_known());
            if op.kind.is_string_or_bytes() {
                self.text_bytes += value.text.len();
                if self.text_bytes > TEXT_BYTES_MAX {
                    return Err(MessageFaultCode::TooLarge);
                }
            }
        }
        match op.code {
            OpCode::Plain => write(self.out, op, operand),
            OpCode::Constant => {
                if op.optional {
                    map.push_bit(self.out, operand.is_some());
                }
                if operand.is_some() && operand != initial {
                    return Err(MessageFaultCode::D1);
                }
            }
            OpCode::Default => {
                let present = operand != initial;
                map.push_bit(self.out, present);
                if present {
                    write(self.out, op, operand);
                }
            }
            OpCode::Delta => return self.delta(op, operand, initial),
            _ => {
                let (present, assign) = match self.dictionaries.omitted_value(op, operand, initial) {
                    OmittedValue::Before => (false, op.code == OpCode::Increment),
                    OmittedValue::Nothing => (false, false),
                    OmittedValue::Initial => (false, true),
                    OmittedValue::Wrong => (true, true),
                };
                map.push_bit(self.out, present);
                if present {
                    if op.code == OpCode::Tail {
                        self.tail(op, operand, initial)?;
                    } else {
                        write(self.out, op, operand);
                    }
                }
                if assign {
                    self.dictionaries.assign(op, operand);
                }
            }
        }
        Ok(())
    }

    /// Returns the value for a mandatory field that was not set, or fails if there is none.
    #[cold]
    fn value_if_unset<'t>(
        &self,
        op: &EncodeOp,
        initial: Option<OperandValue<'t>>,
    ) -> Result<OperandValue<'t>, MessageFaultCode> {
        match op.code {
            OpCode::Constant | OpCode::Default => Ok(initial.expect("it was looked at in the file")),
            _ if self.neutral => Ok(OperandValue::int(0)),
            _ => Err(MessageFaultCode::Missing),
        }
    }

    /// Encodes a tail, which replaces as many bytes at the end of the value before.
    fn tail(
        &mut self,
        op: &EncodeOp,
        operand: Option<OperandValue<'_>>,
        initial: Option<OperandValue<'_>>,
    ) -> Result<(), MessageFaultCode> {
        let Some(value) = operand else {
            wire::null(self.out);
            return Ok(());
        };
        let (text, base) = (value.text, self.dictionaries.base(op, initial)?.text);
        // A tail makes no text shorter.
        let kept_len = match text.len().cmp(&base.len()) {
            std::cmp::Ordering::Less => return Err(MessageFaultCode::D1),
            std::cmp::Ordering::Equal => common_prefix_len(op.kind, base, text),
            std::cmp::Ordering::Greater => 0,
        };
        check_utf8(op.kind, text)?;
        write(self.out, op, Some(OperandValue { text: &text[kept_len..], ..value }));
        Ok(())
    }

    #[inline(always)]
    fn delta(
        &mut self,
        op: &EncodeOp,
        operand: Option<OperandValue<'_>>,
        initial: Option<OperandValue<'_>>,
    ) -> Result<(), MessageFaultCode> {
        let Some(value) = operand else {
            wire::null(self.out);
            return Ok(());
        };
        if op.kind.is_string_or_bytes() {
            return self.piece(op, value, initial);
        }
        let base = self.dictionaries.base(op, initial)?;
        let number = |bits: u64| {
            if op.kind == WireType::UInt64 { i128::from(bits) } else { i128::from(bits as i64) }
        };
        let (before, nullable) = (number(base.bits), op.optional);
        let difference = number(value.bits) - before;
        if op.kind == WireType::Decimal {
            let exponents = i128::from(value.exponent) - i128::from(base.exponent);
            wire::difference(self.out, exponents, nullable);
            wire::difference(self.out, difference, false);
        } else {
            wire::difference(self.out, difference, nullable);
        }
        self.dictionaries.assign(op, Some(value));
        Ok(())
    }

    /// Writes the number of bytes to cut at one end, and the bytes to put there.
    fn piece(
        &mut self,
        op: &EncodeOp,
        value: OperandValue<'_>,
        initial: Option<OperandValue<'_>>,
    ) -> Result<(), MessageFaultCode> {
        let (text, base) = (value.text, self.dictionaries.base(op, initial)?.text);
        let (start, end) = (common_prefix_len(op.kind, base, text), common_suffix_len(op.kind, base, text));
        let cut = base.len() - start;
        // With a one off, so that nothing taken away at the front is not nothing at the end.
        let cut_front = !((base.len() - end) as i64);
        let cost = |cut: i64, piece: &[u8]| {
            let cut = if op.optional && cut >= 0 { cut + 1 } else { cut };
            wire::signed_len(cut)
                + if op.kind == WireType::Ascii { piece.len().max(1) } else { wire::vector_len(piece) }
        };
        let (back, front) = (&text[start..], &text[..text.len() - end]);
        check_utf8(op.kind, text)?;
        let (cut, piece) = if cost(cut_front, front) < cost(cut as i64, back) {
            (cut_front, front)
        } else {
            (cut as i64, back)
        };
        wire::difference(self.out, cut.into(), op.optional);
        write(self.out, &EncodeOp { optional: false, ..*op }, Some(OperandValue { text: piece, ..value }));
        self.dictionaries.assign(op, Some(value));
        Ok(())
    }
}

/// Writes a value as it appears in a message.
#[inline(always)]
fn write(out: &mut Vec<u8>, op: &EncodeOp, value: Option<OperandValue<'_>>) {
    let Some(value) = value else { return wire::null(out) };
    match op.kind {
        WireType::UInt32 | WireType::UInt64 => wire::int(out, value.bits, false, op.optional),
        WireType::Int32 | WireType::Int64 => wire::int(out, value.bits, true, op.optional),
        WireType::Decimal => {
            wire::int(out, i64::from(value.exponent) as u64, true, op.optional);
            wire::signed(out, value.bits as i64);
        }
        WireType::Ascii => wire::ascii(out, value.text, op.optional),
        WireType::Unicode | WireType::Bytes => wire::vector(out, value.text, op.optional),
    }
}

/// Checks that a text put together is UTF-8.
fn check_utf8(kind: WireType, text: &[u8]) -> Result<(), MessageFaultCode> {
    if kind == WireType::Unicode && std::str::from_utf8(text).is_err() {
        Err(MessageFaultCode::R2)
    } else {
        Ok(())
    }
}

/// Counts the equal bytes at the start of both texts. UTF-8 counts whole characters only.
fn common_prefix_len(kind: WireType, a: &[u8], b: &[u8]) -> usize {
    let mut same_len = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    while kind == WireType::Unicode
        && same_len > 0
        && (is_continuation(a, same_len) || is_continuation(b, same_len))
    {
        same_len -= 1;
    }
    same_len
}

/// Counts the equal bytes at the end of both texts. UTF-8 counts whole characters only.
fn common_suffix_len(kind: WireType, a: &[u8], b: &[u8]) -> usize {
    let mut same_len = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    while kind == WireType::Unicode
        && same_len > 0
        && (is_continuation(a, a.len() - same_len) || is_continuation(b, b.len() - same_len))
    {
        same_len -= 1;
    }
    same_len
}

/// Returns whether a character continues at this byte.
fn is_continuation(text: &[u8], index: usize) -> bool {
    text.get(index).is_some_and(|byte| byte & 0xc0 == 0x80)
}
