//! From ops to steps: for each op the handler made for its type, operator and whether it may be absent.

use super::ints::{self, EXPONENT, I32, I64, IDLE, LENGTH, MANTISSA, NEXT, NOTHING, SAME, U32, U64, VALUE};
use super::parts;
use super::state::{EngineStep, RUN_STEPS, StepHandler};
use super::texts::{
    self, ASCII, BYTES, COPY, DECIMAL, DEFAULT, INITIAL, INITIAL_LONG, PASSED, PLAIN, UNICODE,
};
use crate::entry::{DecodedEntry, DecodedEntryKind};
use crate::packed_value::PackedValue;
use crate::program::{CompiledTemplate, DecodeOp, DecodeProgram, NONE, OpCode, OpRole};
use crate::projection::UNTAGGED;
use crate::slot::{DictionaryLayout, DictionarySlot, SharedSlotRange};
use crate::template::WireType;
use crate::wire::EXPONENT_MAX;

/// The steps that share one presence map, or have none.
#[derive(Debug, Clone, Copy)]
struct StepBlock {
    first_step: u32,
    has_map: bool,
}

/// The program as steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct StepProgram {
    pub(super) steps: Vec<EngineStep>,
    /// By the number of the program's.
    blocks: Vec<StepBlock>,
    /// By the lowest bits of the id, or after it; a power of two of them.
    starts: Vec<TemplateEntryPoint>,
    pub(super) shared_areas: Vec<SharedArea>,
    /// A message of more bytes is for the exact engine: its values may be more than are taken.
    pub(super) bytes_max: usize,
}

/// The dictionary slots of a template; mostly its own.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum TemplateSlotRanges {
    #[default]
    None,
    /// This many, from this slot on.
    One(SharedArea),
    /// A range of [`StepProgram::shared_areas`].
    Several { from: u32, to: u32 },
}

/// A share of several: its number, its first slot, and the number of its slots.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedArea {
    pub share: u32,
    pub from: u32,
    pub slot_count: u32,
}

impl TemplateSlotRanges {
    fn from_shares(
        entries: &DictionaryLayout,
        share_range: SharedSlotRange,
        pieces: &mut Vec<SharedArea>,
    ) -> Self {
        let piece = |share: &u32| {
            let SharedSlotRange { from, to } = entries.shares[*share as usize];
            SharedArea { share: *share, from, slot_count: to - from }
        };
        match &entries.template_shares[share_range.range()] {
            [] => TemplateSlotRanges::None,
            [share] => TemplateSlotRanges::One(piece(share)),
            several => {
                let pieces_start = pieces.len() as u32;
                pieces.extend(several.iter().map(piece));
                TemplateSlotRanges::Several { from: pieces_start, to: pieces.len() as u32 }
            }
        }
    }
}

/// The start of a template's steps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TemplateEntryPoint {
    id: u32,
    /// The first of its steps.
    pub first: u32,
    pub template: u32,
    /// Its slots in the dictionaries.
    pub shares: TemplateSlotRanges,
    /// It empties them.
    pub resets_dictionaries: bool,
    /// Whether the template exists and the fast engine can decode it.
    pub able: bool,
    used: bool,
}

/// Bytes of the constants of a block, at most; the messages that are taken would be few and short otherwise.
const CONSTANTS_MAX: u32 = 1024;

/// Spare bits of a presence map whose parts with bits are left out.
const SPARE_BITS: u32 = 7;

impl StepProgram {
    pub fn new(program: &DecodeProgram) -> Self {
        #[cfg(target_arch = "x86_64")]
        let bmi2 = std::arch::is_x86_feature_detected!("bmi2") && std::arch::is_x86_feature_detected!("bmi1");
        #[cfg(not(target_arch = "x86_64"))]
        let bmi2 = false;
        let mut all = Self::default();
        // Blocks inside are before those around them.
        let (mut able, mut weights, mut next) = (Vec::<bool>::new(), Vec::<usize>::new(), 0);
        for block in &program.blocks {
            let ops = &program.ops[block.from as usize..block.to as usize];
            // The first bit of a message is the bit of the template id.
            let of_template =
                program.templates.get(next).is_some_and(|t| t.block as usize == all.blocks.len());
            next += usize::from(of_template);
            all.blocks.push(StepBlock { first_step: all.steps.len() as u32, has_map: block.has_map });
            let all_compiled = all.block(program, ops, block.from, u32::from(of_template), bmi2);
            let inside = |op: &&DecodeOp| matches!(op.code, OpCode::Group | OpCode::Sequence);
            able.push(
                all_compiled
                    && block.text_bytes <= CONSTANTS_MAX
                    && ops.iter().filter(inside).all(|op| able[op.block as usize]),
            );
            let groups = ops.iter().filter(|op| op.code == OpCode::Group);
            let weight: usize = groups.map(|op| weights[op.block as usize]).sum();
            weights.push(weight + 3 * ops.len() + 3 + block.text_bytes as usize / 8);
        }
        let weight = weights.iter().max().copied().unwrap_or(1);
        all.bytes_max = (1 << 19) / weight;
        all.starts = vec![TemplateEntryPoint::default(); (2 * program.by_id.len() + 2).next_power_of_two()];
        let mut by_id: Vec<_> = program.by_id.iter().collect();
        by_id.sort_unstable();
        for (&id, &template) in by_id {
            let compiled = program.templates[template as usize];
            let (first, able) =
                (all.blocks[compiled.block as usize].first_step, able[compiled.block as usize]);
            let mut start_index = all.home_index(id);
            while all.starts[start_index].used {
                start_index = (start_index + 1) & (all.starts.len() - 1);
            }
            let CompiledTemplate { resets_dictionaries: reset, shared_slots: shares, .. } = compiled;
            let shares = TemplateSlotRanges::from_shares(&program.entries, shares, &mut all.shared_areas);
            all.starts[start_index] = TemplateEntryPoint {
                id,
                first,
                template,
                shares,
                resets_dictionaries: reset,
                able,
                used: true,
            };
        }
        all
    }

    #[inline(always)]
    fn home_index(&self, id: u32) -> usize {
        id as usize & (self.starts.len() - 1)
    }

    /// Returns the entry point of the template with this id if this engine can decode the template.
    #[inline(always)]
    pub(super) fn start(&self, id: u32) -> Option<&TemplateEntryPoint> {
        let first_index = self.starts.get(self.home_index(id))?;
        if first_index.id == id && first_index.able { Some(first_index) } else { self.other_start(id) }
    }

    /// Searches the template after the first place.
    #[inline(never)]
    fn other_start(&self, id: u32) -> Option<&TemplateEntryPoint> {
        let mut start_index = self.home_index(id);
        loop {
            let entry_point = &self.starts[start_index];
            if entry_point.id == id && entry_point.able {
                return Some(entry_point);
            }
            if !entry_point.used {
                return None;
            }
            start_index = (start_index + 1) & (self.starts.len() - 1);
        }
    }

    /// Adds the steps of a block. Returns whether all its presence bits fit into a word.
    fn block(&mut self, program: &DecodeProgram, ops: &[DecodeOp], from: u32, bits: u32, bmi2: bool) -> bool {
        let (mut bits, mut left_out, mut since) = (bits, 0, 0);
        let mut ops_of = Vec::new();
        for (n, op) in ops.iter().enumerate() {
            // An op that may be left out with the one before it stays beside that.
            if since >= RUN_STEPS - 2
                && matches!(op.role, OpRole::Value | OpRole::Exponent | OpRole::Length)
                && op.code != OpCode::Sequence
            {
                self.steps.push(EngineStep { run: parts::pause, ..EngineStep::NOTHING });
                since = 0;
            }
            since += 1;
            let mut step = self.step(program, op, ops.get(n + 1), from + n as u32, bmi2);
            if has_bit(op) {
                step.mask = 1u64.checked_shl(63u32.wrapping_sub(bits)).unwrap_or(0);
                bits += 1;
                left_out += u32::from(op.role == OpRole::Mantissa);
            }
            ops_of.push((self.steps.len(), *op));
            self.steps.push(step);
        }
        self.follow(&ops_of);
        let unused = u64::MAX.checked_shr(bits).unwrap_or(0);
        self.steps.push(EngineStep { run: parts::end, mask: unused, ..EngineStep::NOTHING });
        bits <= 56 && left_out <= SPARE_BITS
    }

    /// Finds the steps of a block that can be skipped together.
    fn follow(&mut self, ops: &[(usize, DecodeOp)]) {
        let mut next_absent: Option<usize> = None;
        for (n, (step_index, op)) in ops.iter().enumerate().rev() {
            let absent = op.code == OpCode::Default && !self.steps[*step_index].has_initial;
            if absent && op.role != OpRole::Value {
                // If no bit is left, the mantissa or the sequence is skipped; otherwise more work is needed.
                (self.steps[*step_index].initial, self.steps[*step_index].follow) = (u64::MAX, 2);
            }
            let next_op = ops.get(n + 1).filter(|(next, _)| *next == step_index + 1);
            // With an exponent its mantissa is left out, as long as that has no bit of its own.
            let mantissa =
                op.role == OpRole::Exponent && next_op.is_some_and(|(next, _)| self.steps[*next].mask == 0);
            let is_skippable = absent && (op.role == OpRole::Value || mantissa);
            if is_skippable {
                let own_steps = 1 + usize::from(mantissa);
                let joined = next_absent.filter(|next_index| *next_index == step_index + own_steps);
                let (bits, steps) = joined
                    .map_or((0, 0), |b| (self.steps[b].initial | self.steps[b].mask, self.steps[b].follow));
                self.steps[*step_index].initial = bits;
                self.steps[*step_index].follow = own_steps as u32 + steps;
                next_absent = Some(*step_index);
            }
        }
    }

    fn step(
        &self,
        program: &DecodeProgram,
        op: &DecodeOp,
        next: Option<&DecodeOp>,
        index: u32,
        bmi2: bool,
    ) -> EngineStep {
        let initial = program.initials.get(op.initial as usize).copied();
        // A value that is not selected counts as absent if it is left out. The bytes of long texts are counted.
        let unwanted = op.code == OpCode::Default && op.role == OpRole::Value && !op.deliver;
        let initial = initial.filter(|initial| !unwanted || initial.long);
        let initial_or_zero = initial.unwrap_or(PackedValue::int(0));
        // An impossible exponent is reported when a message uses it.
        let fits = (initial_or_zero.bits as i64).unsigned_abs() <= EXPONENT_MAX as u64;
        let scaled = fits && next.is_some_and(|next| next.code == OpCode::Delta);
        let extra = if initial_or_zero.long { 0 } else { initial_or_zero.extra(op.kind) };
        let slot = if op.slot == NONE { 0 } else { op.slot as usize * size_of::<DictionarySlot>() };
        let form = match op.code {
            OpCode::Group => DecodedEntryKind::Group,
            OpCode::Sequence => DecodedEntryKind::Sequence,
            _ if op.role == OpRole::Mantissa => DecodedEntryKind::Decimal,
            _ => PackedValue::int(0).form(op.kind),
        };
        let step = EngineStep {
            run: parts::give_up_step,
            meta: DecodedEntry::meta(op.info, op.tag, form, 0),
            beside: DecodedEntry::meta(
                op.info,
                op.tag,
                if initial_or_zero.long { DecodedEntryKind::Long } else { form },
                extra,
            ),
            mask: 0,
            initial: initial_or_zero.bits,
            initial_extra: extra,
            slot,
            follow: 1,
            advance: if op.deliver { 16 } else { 0 },
            has_initial: initial.is_some(),
            initial_long: initial_or_zero.long,
            optional: op.optional,
        };
        let untagged = |form| DecodedEntry::meta(op.info, UNTAGGED, form, 0);
        let inside = self
            .blocks
            .get(op.block as usize)
            .copied()
            .unwrap_or(StepBlock { first_step: 0, has_map: false });
        let block_step = EngineStep {
            initial: untagged(DecodedEntryKind::Element),
            beside: untagged(DecodedEntryKind::End),
            follow: self.steps.len() as u32 - inside.first_step,
            has_initial: inside.has_map,
            ..step
        };
        match op.code {
            OpCode::Group => EngineStep { run: parts::group, ..block_step },
            OpCode::Sequence => EngineStep { run: parts::sequence, ..block_step },
            OpCode::Missing | OpCode::Dynamic => step,
            OpCode::Default if op.role == OpRole::Exponent && initial.is_some() && scaled => {
                let run = if op.optional {
                    ints::scaled::hot::<true>(bmi2)
                } else {
                    ints::scaled::hot::<false>(bmi2)
                };
                EngineStep { run, ..step }
            }
            _ => match handler(op, initial, bmi2) {
                Some(run) => EngineStep { run, ..step },
                None if op.role != OpRole::Value => step,
                None => EngineStep { run: parts::exact, follow: index, ..step },
            },
        }
    }
}

impl EngineStep {
    const NOTHING: Self = EngineStep {
        run: parts::give_up_step,
        meta: 0,
        beside: 0,
        mask: 0,
        initial: 0,
        initial_extra: 0,
        slot: 0,
        follow: 1,
        advance: 0,
        has_initial: false,
        initial_long: false,
        optional: false,
    };
}

fn has_bit(op: &DecodeOp) -> bool {
    match op.code {
        OpCode::Constant | OpCode::Group => op.optional,
        OpCode::Default | OpCode::Copy | OpCode::Increment | OpCode::Tail => true,
        OpCode::Plain | OpCode::Delta | OpCode::Sequence | OpCode::Dynamic | OpCode::Missing => false,
    }
}

/// Returns the handler of an op, or `None` if the exact engine must run the op.
fn handler(op: &DecodeOp, initial_value: Option<PackedValue>, bmi2: bool) -> Option<StepHandler> {
    let has_initial = initial_value.is_some();
    match op.kind {
        WireType::Ascii => text::<ASCII>(op, initial_value, bmi2),
        WireType::Unicode => text::<UNICODE>(op, initial_value, bmi2),
        WireType::Bytes => text::<BYTES>(op, initial_value, bmi2),
        WireType::Decimal => text::<DECIMAL>(op, initial_value, bmi2),
        WireType::Int32 if op.role == OpRole::Exponent => Some(int::<I32, EXPONENT>(op, has_initial, bmi2)),
        WireType::Int64 if op.role == OpRole::Mantissa => Some(int::<I64, MANTISSA>(op, has_initial, bmi2)),
        WireType::UInt32 if op.role == OpRole::Length => Some(int::<U32, LENGTH>(op, has_initial, bmi2)),
        _ if op.role != OpRole::Value => None,
        WireType::Int32 if !op.deliver => Some(int::<I32, NOTHING>(op, has_initial, bmi2)),
        WireType::UInt32 if !op.deliver => Some(int::<U32, NOTHING>(op, has_initial, bmi2)),
        WireType::Int64 if !op.deliver => Some(int::<I64, NOTHING>(op, has_initial, bmi2)),
        WireType::UInt64 if !op.deliver => Some(int::<U64, NOTHING>(op, has_initial, bmi2)),
        WireType::Int32 => Some(int::<I32, VALUE>(op, has_initial, bmi2)),
        WireType::UInt32 => Some(int::<U32, VALUE>(op, has_initial, bmi2)),
        WireType::Int64 => Some(int::<I64, VALUE>(op, has_initial, bmi2)),
        WireType::UInt64 => Some(int::<U64, VALUE>(op, has_initial, bmi2)),
    }
}

fn int<const K: u8, const R: u8>(op: &DecodeOp, has_initial: bool, bmi2: bool) -> StepHandler {
    match (op.code, op.optional, has_initial) {
        (OpCode::Constant, false, _) => ints::constant::hot::<false, R>(bmi2),
        (OpCode::Constant, true, _) => ints::constant::hot::<true, R>(bmi2),
        (OpCode::Default, false, false) => ints::default::hot::<K, false, R, false>(bmi2),
        (OpCode::Default, false, true) => ints::default::hot::<K, false, R, true>(bmi2),
        (OpCode::Default, true, false) => ints::default::hot::<K, true, R, false>(bmi2),
        (OpCode::Default, true, true) => ints::default::hot::<K, true, R, true>(bmi2),
        (OpCode::Copy, false, _) if op.is_unread => ints::copy::hot::<K, false, R, IDLE>(bmi2),
        (OpCode::Copy, true, _) if op.is_unread => ints::copy::hot::<K, true, R, IDLE>(bmi2),
        (OpCode::Copy, false, _) => ints::copy::hot::<K, false, R, SAME>(bmi2),
        (OpCode::Copy, true, _) => ints::copy::hot::<K, true, R, SAME>(bmi2),
        (OpCode::Increment, false, _) => ints::copy::hot::<K, false, R, NEXT>(bmi2),
        (OpCode::Increment, true, _) => ints::copy::hot::<K, true, R, NEXT>(bmi2),
        (OpCode::Delta, false, _) => ints::delta::hot::<K, false, R>(bmi2),
        (OpCode::Delta, true, _) => ints::delta::hot::<K, true, R>(bmi2),
        (_, false, _) => ints::plain::hot::<K, false, R>(bmi2),
        (_, true, _) => ints::plain::hot::<K, true, R>(bmi2),
    }
}

fn text<const K: u8>(op: &DecodeOp, initial: Option<PackedValue>, bmi2: bool) -> Option<StepHandler> {
    if let (OpCode::Default, Some(initial_value)) = (op.code, initial) {
        return Some(match (op.optional, initial_value.long) {
            (false, false) => texts::value::hot::<K, false, INITIAL>(bmi2),
            (true, false) => texts::value::hot::<K, true, INITIAL>(bmi2),
            (false, true) => texts::value::hot::<K, false, INITIAL_LONG>(bmi2),
            (true, true) => texts::value::hot::<K, true, INITIAL_LONG>(bmi2),
        });
    }
    Some(match (op.code, op.optional) {
        (OpCode::Plain, false) if !op.deliver => texts::value::hot::<K, false, PASSED>(bmi2),
        (OpCode::Plain, true) if !op.deliver => texts::value::hot::<K, true, PASSED>(bmi2),
        (OpCode::Plain, false) => texts::value::hot::<K, false, PLAIN>(bmi2),
        (OpCode::Plain, true) => texts::value::hot::<K, true, PLAIN>(bmi2),
        (OpCode::Default, false) => texts::value::hot::<K, false, DEFAULT>(bmi2),
        (OpCode::Default, true) => texts::value::hot::<K, true, DEFAULT>(bmi2),
        (OpCode::Copy, false) => texts::value::hot::<K, false, COPY>(bmi2),
        (OpCode::Copy, true) => texts::value::hot::<K, true, COPY>(bmi2),
        (OpCode::Delta, false) if K == DECIMAL => texts::delta::hot::<false>(bmi2),
        (OpCode::Delta, true) if K == DECIMAL => texts::delta::hot::<true>(bmi2),
        _ => return None,
    })
}
