//! The exact engine runs the program of a message's template over its bytes, step by step. It decides which fault a
//! message has, and decodes the messages that the fast engine gives up.

use super::entry::{DecodedEntry, DecodedEntryKind};
use super::fault::MessageFaultCode;
use super::packed_value::PackedValue;
use super::program::{DecodeOp, DecodeProgram, FaultLocation, NONE, OpBlock, OpCode, OpRole};
use super::projection::UNTAGGED;
use super::slot::{DictionarySlot, SlotState, SlotUndo};
use super::template::WireType;
use super::wire::{EXPONENT_MAX, PresenceMap, WireCursor, WireFault};
use super::workspace::{DecodeWorkspace, TEXT_BYTES_MAX};
use std::ops::Range;

/// Templates that messages name, in each other.
pub(super) const DYNAMIC_MAX: usize = 16;

/// Elements of a sequence that have no byte, at most.
pub(super) const EMPTY_ELEMENTS_MAX: u64 = 4096;

/// Entries at which nothing more is begun.
pub(super) const ENTRIES_MAX: usize = 1 << 22;

/// This many ops of a block count as an entry, whether or not they have one: they take time.
pub(super) const OPS_OF_ITEM: usize = 8;

pub(super) struct ExactDecodePass<'p, 'b> {
    program: &'p DecodeProgram,
    pub workspace: &'p mut DecodeWorkspace,
    pub cursor: WireCursor<'b>,
    dynamic: usize,
    /// Values, twice groups, sequences and elements, and an eighth of the ops of each block, so far; delivered or not, without
    /// constants.
    item_count: usize,
    pub fault_location: FaultLocation,
    /// The template whose message is read.
    template: u32,
}

impl<'p, 'b> ExactDecodePass<'p, 'b> {
    pub fn new(workspace: &'p mut DecodeWorkspace, program: &'p DecodeProgram, bytes: &'b [u8]) -> Self {
        let cursor = WireCursor { bytes, offset: 0 };
        let fault_location = FaultLocation::NONE;
        Self { program, workspace, cursor, dynamic: 0, item_count: 0, fault_location, template: NONE }
    }

    /// Decodes a segment: its presence map, its template id and the fields of its template. Returns the index of the
    /// template.
    pub fn segment<const STRICT: bool>(&mut self) -> Result<u32, WireFault> {
        let map = self.cursor.offset;
        let mut bits = PresenceMap::read::<STRICT>(&mut self.cursor)?;
        let start = self.cursor.offset;
        let id = if bits.next_bit() {
            let id = self.cursor.int::<STRICT>(WireType::UInt32, false)?.unwrap_or_default() as u32;
            self.workspace.template_id = Some(id);
            id
        } else {
            self.workspace.template_id.ok_or((MessageFaultCode::D5, start))?
        };
        let template = *self.program.by_id.get(&id).ok_or((MessageFaultCode::D9, start))?;
        let compiled = self.program.templates[template as usize];
        if compiled.resets_dictionaries {
            self.workspace.empty();
        }
        let outer_template = std::mem::replace(&mut self.template, template);
        self.workspace.prepare_slots(self.program, template);
        let block = self.program.blocks[compiled.block as usize];
        self.run::<STRICT>(block, bits, map)?;
        self.template = outer_template;
        Ok(template)
    }

    /// Decodes a group or an element.
    fn block<const STRICT: bool>(&mut self, block: OpBlock) -> Result<(), WireFault> {
        let start = self.cursor.offset;
        let bits =
            if block.has_map { PresenceMap::read::<STRICT>(&mut self.cursor)? } else { PresenceMap::EMPTY };
        self.run::<STRICT>(block, bits, start)
    }

    fn run<const STRICT: bool>(
        &mut self,
        block: OpBlock,
        mut bits: PresenceMap<'b>,
        map: usize,
    ) -> Result<(), WireFault> {
        let program = self.program;
        let ops = &program.ops[block.from as usize..block.to as usize];
        self.item_count += ops.len() / OPS_OF_ITEM;
        self.workspace.text_bytes += block.text_bytes as usize;
        if self.item_count > ENTRIES_MAX || self.workspace.text_bytes > TEXT_BYTES_MAX {
            return Err((MessageFaultCode::TooLarge, self.cursor.offset));
        }
        let mut exponent = 0i8;
        let mut length = 0;
        let mut next_op = 0;
        while let Some(op) = ops.get(next_op) {
            next_op += 1;
            match op.code {
                OpCode::Group => {
                    if !op.optional || bits.next_bit() {
                        self.push(DecodedEntryKind::Group, PackedValue::int(0), op);
                        self.block::<STRICT>(program.blocks[op.block as usize])?;
                        self.push(DecodedEntryKind::End, PackedValue::int(0), op);
                    }
                }
                OpCode::Sequence => self.sequence::<STRICT>(op, length)?,
                OpCode::Dynamic => {
                    if self.dynamic == DYNAMIC_MAX {
                        return Err((MessageFaultCode::TooLarge, self.cursor.offset));
                    }
                    self.dynamic += 1;
                    let (begin, items) = (self.workspace.entries.len(), self.item_count);
                    self.push(DecodedEntryKind::Inner, PackedValue::int(0), op);
                    self.item_count = items;
                    let template = self.segment::<STRICT>()?;
                    // It may have emptied what this one has.
                    self.workspace.prepare_slots(self.program, self.template);
                    self.workspace.entries[begin].bits = u64::from(template);
                    let items = self.item_count;
                    self.push(DecodedEntryKind::End, PackedValue::int(0), op);
                    self.item_count = items;
                    self.dynamic -= 1;
                }
                OpCode::Missing => {
                    self.record_fault(op.info);
                    return Err((MessageFaultCode::D8, self.cursor.offset));
                }
                _ => {
                    let start = self.cursor.offset;
                    let packed = self.decode_value::<STRICT>(op, &mut bits)?;
                    match (op.role, packed) {
                        (OpRole::Value, None) => {}
                        (OpRole::Value, Some(packed)) => self.push(packed.form(op.kind), packed, op),
                        // The op after it is left out with it.
                        (OpRole::Exponent | OpRole::Length, None) => next_op += 1,
                        (OpRole::Exponent, Some(packed)) => {
                            let value = packed.bits as i64;
                            if !(-EXPONENT_MAX..=EXPONENT_MAX).contains(&value) {
                                self.record_fault(op.info);
                                return Err((MessageFaultCode::R1, start));
                            }
                            exponent = value as i8;
                        }
                        (OpRole::Mantissa, Some(packed)) => {
                            self.push(DecodedEntryKind::Decimal, PackedValue { exponent, ..packed }, op);
                        }
                        (OpRole::Length, Some(packed)) => length = packed.bits,
                        (OpRole::Mantissa, None) => unreachable!("a mantissa is mandatory"),
                    }
                }
            }
        }
        if STRICT && bits.any_left() {
            if self.fault_location == FaultLocation::NONE {
                self.fault_location = FaultLocation { template: block.template, part: NONE };
            }
            return Err((MessageFaultCode::R8, map));
        }
        Ok(())
    }

    fn sequence<const STRICT: bool>(&mut self, op: &DecodeOp, length: u64) -> Result<(), WireFault> {
        let start = self.cursor.offset;
        let block = self.program.blocks[op.block as usize];
        self.push(DecodedEntryKind::Sequence, PackedValue::int(length), op);
        for _ in 0..length {
            let group_offset = self.cursor.offset;
            self.push(DecodedEntryKind::Element, PackedValue::int(0), op);
            self.block::<STRICT>(block)?;
            self.item_count += 1;
            if self.cursor.offset == group_offset && length > EMPTY_ELEMENTS_MAX {
                return Err((MessageFaultCode::TooLarge, start));
            }
        }
        self.push(DecodedEntryKind::End, PackedValue::int(0), op);
        Ok(())
    }

    #[cold]
    fn record_fault(&mut self, info: u32) {
        if self.fault_location == FaultLocation::NONE {
            self.fault_location =
                FaultLocation { template: self.program.infos[info as usize].template, part: info };
        }
    }

    #[inline(always)]
    pub fn push(&mut self, form: DecodedEntryKind, packed: PackedValue, op: &DecodeOp) {
        self.item_count += 1;
        if op.deliver {
            let extra = if form == DecodedEntryKind::Decimal { packed.exponent as u8 } else { packed.len };
            let tag = if form < DecodedEntryKind::Element { op.tag } else { UNTAGGED };
            self.workspace.entries.push(DecodedEntry {
                bits: packed.bits,
                meta: DecodedEntry::meta(op.info, tag, form, extra),
            });
        }
    }

    /// Decodes the value of an op, or `None` if it is absent. Records the field if the value has a fault.
    #[inline(always)]
    pub fn decode_value<const STRICT: bool>(
        &mut self,
        op: &DecodeOp,
        bits: &mut PresenceMap<'b>,
    ) -> Result<Option<PackedValue>, WireFault> {
        let start = self.cursor.offset;
        let packed = self.value::<STRICT>(op, bits).map_err(|(code, offset)| {
            self.record_fault(op.info);
            (decimal_fault_code(op, code), offset)
        })?;
        if let (Some(packed), true) = (packed, op.kind.is_string_or_bytes()) {
            self.workspace.text_bytes += packed.text_len();
            if self.workspace.text_bytes > TEXT_BYTES_MAX {
                self.record_fault(op.info);
                return Err((MessageFaultCode::TooLarge, start));
            }
        }
        Ok(packed)
    }

    #[inline(always)]
    fn value<const STRICT: bool>(
        &mut self,
        op: &DecodeOp,
        bits: &mut PresenceMap<'b>,
    ) -> Result<Option<PackedValue>, WireFault> {
        match op.code {
            OpCode::Plain => self.read::<STRICT>(op.kind, op.optional),
            OpCode::Constant if op.optional && !bits.next_bit() => Ok(None),
            OpCode::Constant => Ok(self.initial(op)),
            OpCode::Default if bits.next_bit() => self.read::<STRICT>(op.kind, op.optional),
            OpCode::Default => Ok(self.initial(op)),
            OpCode::Copy | OpCode::Increment if bits.next_bit() => {
                let packed = self.read::<STRICT>(op.kind, op.optional)?;
                self.assign(op, packed);
                Ok(packed)
            }
            OpCode::Copy | OpCode::Increment => self.previous(op),
            OpCode::Tail if bits.next_bit() => self.tail::<STRICT>(op),
            OpCode::Tail => self.previous(op),
            _ => self.delta::<STRICT>(op),
        }
    }

    #[inline(always)]
    fn initial(&self, op: &DecodeOp) -> Option<PackedValue> {
        self.program.initials.get(op.initial as usize).copied()
    }

    /// Returns the value of an omitted field: the previous value, or its increment.
    #[inline(always)]
    fn previous(&mut self, op: &DecodeOp) -> Result<Option<PackedValue>, WireFault> {
        let slot = self.workspace.dictionary_slots[op.slot as usize];
        let start = self.cursor.offset;
        if slot.state() == SlotState::Undefined {
            let initial = self.initial(op);
            if initial.is_none() && !op.optional {
                // 6.3.8 has codes of its own for tails.
                return Err((
                    if op.code == OpCode::Tail { MessageFaultCode::D6 } else { MessageFaultCode::D5 },
                    start,
                ));
            }
            self.assign(op, initial);
            return Ok(initial);
        }
        if slot.state() == SlotState::Empty {
            let code = if op.code == OpCode::Tail { MessageFaultCode::D7 } else { MessageFaultCode::D6 };
            return if op.optional { Ok(None) } else { Err((code, start)) };
        }
        if !slot.is_of(op.kind) {
            return Err((MessageFaultCode::D4, start));
        }
        let mut packed = slot.packed_value();
        if op.code == OpCode::Increment {
            packed.bits = op.kind.increment(packed.bits);
            self.assign(op, Some(packed));
        }
        Ok(Some(packed))
    }

    #[inline(always)]
    fn assign(&mut self, op: &DecodeOp, packed: Option<PackedValue>) {
        let workspace = &mut *self.workspace;
        let slot = &mut workspace.dictionary_slots[op.slot as usize];
        workspace.undo_slots.push(SlotUndo { slot: *slot, slot_index: op.slot });
        let (bits, state, extra) = match packed {
            Some(packed @ PackedValue { long: true, .. }) => (packed.bits, SlotState::Long, 0),
            Some(packed) => (packed.bits, SlotState::Assigned, packed.extra(op.kind)),
            None => (0, SlotState::Empty, 0),
        };
        *slot = DictionarySlot { bits, meta: DictionarySlot::meta(state, op.kind, extra) };
    }

    /// Reads a value from the message.
    #[inline(always)]
    fn read<const STRICT: bool>(
        &mut self,
        kind: WireType,
        nullable: bool,
    ) -> Result<Option<PackedValue>, WireFault> {
        match kind {
            WireType::Int32 | WireType::UInt32 | WireType::Int64 | WireType::UInt64 => {
                Ok(self.cursor.int::<STRICT>(kind, nullable)?.map(PackedValue::int))
            }
            WireType::Decimal => {
                let start = self.cursor.offset;
                let Some(exponent) = self.cursor.int::<STRICT>(WireType::Int32, nullable)? else {
                    return Ok(None);
                };
                let exponent = exponent as i64;
                if !(-EXPONENT_MAX..=EXPONENT_MAX).contains(&exponent) {
                    return Err((MessageFaultCode::R1, start));
                }
                let mantissa = self.cursor.int::<STRICT>(WireType::Int64, false)?;
                Ok(mantissa.map(|bits| PackedValue { exponent: exponent as i8, ..PackedValue::int(bits) }))
            }
            WireType::Ascii => {
                let Some(characters) = self.cursor.ascii::<STRICT>(nullable)? else { return Ok(None) };
                Ok(Some(self.ascii(characters)))
            }
            WireType::Unicode | WireType::Bytes => {
                let Some(bytes) = self.cursor.vector::<STRICT>(nullable)? else { return Ok(None) };
                Ok(Some(self.text(bytes)))
            }
        }
    }

    /// Characters of which the last has its stop bit still.
    #[inline(always)]
    fn ascii(&mut self, characters: &[u8]) -> PackedValue {
        let mut packed = self.text(characters);
        if let Some(last_index) = characters.len().checked_sub(1) {
            if packed.long {
                let stop_index = self.workspace.arena.len() - 1;
                self.workspace.arena[stop_index] &= 0x7f;
            } else {
                packed.bits &= !(0x80 << (8 * last_index));
            }
        }
        packed
    }

    #[inline(always)]
    fn text(&mut self, bytes: &[u8]) -> PackedValue {
        if bytes.len() <= 8 {
            return PackedValue::short(bytes);
        }
        let arena = &mut self.workspace.arena;
        arena.extend_from_slice(bytes);
        PackedValue::long(arena.len() - bytes.len(), bytes.len())
    }

    /// Returns the base value to which a difference or a tail applies.
    fn base(&mut self, op: &DecodeOp, start: usize) -> Result<PackedValue, WireFault> {
        let slot = self.workspace.dictionary_slots[op.slot as usize];
        match slot.state() {
            SlotState::Undefined => Ok(self.initial(op).unwrap_or(PackedValue::int(0))),
            SlotState::Empty if op.code == OpCode::Tail => {
                Ok(self.initial(op).unwrap_or(PackedValue::int(0)))
            }
            SlotState::Empty => Err((MessageFaultCode::D6, start)),
            _ if !slot.is_of(op.kind) => Err((MessageFaultCode::D4, start)),
            _ => Ok(slot.packed_value()),
        }
    }

    #[inline(always)]
    fn delta<const STRICT: bool>(&mut self, op: &DecodeOp) -> Result<Option<PackedValue>, WireFault> {
        let start = self.cursor.offset;
        let overflow_code = match op.kind {
            kind if kind.is_string_or_bytes() => MessageFaultCode::D7,
            WireType::Decimal => MessageFaultCode::R1,
            _ => MessageFaultCode::R4,
        };
        let Some(difference) = self.cursor.difference::<STRICT>(op.optional, overflow_code)? else {
            return Ok(None);
        };
        if op.kind.is_string_or_bytes() {
            return self.piece::<STRICT>(op, difference, start).map(Some);
        }
        let packed = if op.kind == WireType::Decimal {
            let mantissa = self.cursor.difference::<STRICT>(false, overflow_code)?.unwrap_or_default();
            let base = self.base(op, start)?;
            let exponent = i128::from(base.exponent) + difference;
            let mantissa = i64::try_from(i128::from(base.bits as i64) + mantissa);
            let max = i128::from(EXPONENT_MAX);
            let (Ok(mantissa), true) = (mantissa, (-max..=max).contains(&exponent)) else {
                return Err((MessageFaultCode::R1, start));
            };
            PackedValue { exponent: exponent as i8, ..PackedValue::int(mantissa as u64) }
        } else {
            let base = self.base(op, start)?.bits;
            let base = if op.kind == WireType::UInt64 { i128::from(base) } else { i128::from(base as i64) };
            let value = base + difference;
            let fits = match op.kind {
                WireType::Int32 => i32::try_from(value).is_ok(),
                WireType::UInt32 => u32::try_from(value).is_ok(),
                WireType::Int64 => i64::try_from(value).is_ok(),
                _ => u64::try_from(value).is_ok(),
            };
            if !fits {
                return Err((MessageFaultCode::R4, start));
            }
            PackedValue::int(value as u64)
        };
        self.assign(op, Some(packed));
        Ok(Some(packed))
    }

    /// Decodes a text by cutting bytes at one end of its base and putting others there.
    fn piece<const STRICT: bool>(
        &mut self,
        op: &DecodeOp,
        cut: i128,
        start: usize,
    ) -> Result<PackedValue, WireFault> {
        let Ok(cut) = i32::try_from(cut) else { return Err((MessageFaultCode::D7, start)) };
        let piece = self.piece_of::<STRICT>(op.kind)?;
        let base = self.base(op, start)?;
        let (at_end, cut) = if cut >= 0 { (true, cut as usize) } else { (false, !cut as usize) };
        let kept_len = base.text_len().checked_sub(cut).ok_or((MessageFaultCode::D7, start))?;
        let kept_range = if at_end { 0..kept_len } else { cut..cut + kept_len };
        self.assemble_text(op, base, TextDelta { piece, at_end, kept_range }, start)
    }

    fn tail<const STRICT: bool>(&mut self, op: &DecodeOp) -> Result<Option<PackedValue>, WireFault> {
        let start = self.cursor.offset;
        let Some(tail) = self.read::<STRICT>(op.kind, op.optional)? else {
            self.assign(op, None);
            return Ok(None);
        };
        let base = self.base(op, start)?;
        let kept_len = base.text_len().saturating_sub(tail.text_len());
        let change = TextDelta { piece: tail, at_end: true, kept_range: 0..kept_len };
        self.assemble_text(op, base, change, start).map(Some)
    }

    fn piece_of<const STRICT: bool>(&mut self, kind: WireType) -> Result<PackedValue, WireFault> {
        Ok(self.read::<STRICT>(kind, false)?.unwrap_or(PackedValue::int(0)))
    }

    fn assemble_text(
        &mut self,
        op: &DecodeOp,
        base: PackedValue,
        change: TextDelta,
        start: usize,
    ) -> Result<PackedValue, WireFault> {
        let TextDelta { piece, at_end, kept_range } = change;
        let arena = &mut self.workspace.arena;
        let text_start = arena.len();
        if at_end {
            base.copy(kept_range, arena);
            piece.copy(0..piece.text_len(), arena);
        } else {
            piece.copy(0..piece.text_len(), arena);
            base.copy(kept_range, arena);
        }
        let text = &arena[text_start..];
        if op.kind == WireType::Unicode && std::str::from_utf8(text).is_err() {
            return Err((MessageFaultCode::R2, start));
        }
        let packed = if text.len() <= 8 {
            PackedValue::short(text)
        } else {
            PackedValue::long(text_start, text.len())
        };
        if !packed.long {
            arena.truncate(text_start);
        }
        self.assign(op, Some(packed));
        Ok(packed)
    }
}

/// How a text is made of the one before it.
struct TextDelta {
    /// The new bytes.
    piece: PackedValue,
    /// They come after the kept ones, not before.
    at_end: bool,
    /// Bytes of the text before.
    kept_range: Range<usize>,
}

/// Decodes one op of a message whose other ops are decoded elsewhere, with its bit. Returns its length in bytes, or
/// `None` at a fault.
pub(super) fn decode_op(
    workspace: &mut DecodeWorkspace,
    op: usize,
    bytes: &[u8],
    presence_bit: bool,
) -> Option<usize> {
    // All of the message is put back at once if need be.
    workspace.undo_slots.clear();
    let program = workspace.program.clone();
    let op = &program.ops[op];
    let mut pass = ExactDecodePass::new(workspace, &program, bytes);
    let mut bits = PresenceMap::one(presence_bit);
    let outcome = if pass.workspace.is_strict {
        pass.decode_value::<true>(op, &mut bits)
    } else {
        pass.decode_value::<false>(op, &mut bits)
    };
    if let Some(packed) = outcome.ok()? {
        pass.push(packed.form(op.kind), packed, op);
    }
    let bytes_used = pass.cursor.offset;
    workspace.text_fits(0).then_some(bytes_used)
}

/// Returns the fault code for a decimal with a part outside the bounds of its own type. The exponent may be beyond 63,
/// or the mantissa beyond 64 bits.
#[cold]
fn decimal_fault_code(op: &DecodeOp, code: MessageFaultCode) -> MessageFaultCode {
    let is_part = op.kind == WireType::Decimal || matches!(op.role, OpRole::Exponent | OpRole::Mantissa);
    match code {
        MessageFaultCode::D2 | MessageFaultCode::R4 if is_part => MessageFaultCode::R1,
        code => code,
    }
}
