//! Integers, and decimals in their two parts.

use super::parts;
use super::raw::{ALL, BOTH, HOT, MORE, STOPS, give_up, go_on, groups, handlers, read_word};
use super::state::{BytePtr, EngineState, EngineStep, StepHandler};
use crate::entry::DecodedEntry;
use crate::slot::{self, DictionarySlot};
use crate::template::WireType;
use crate::wire::EXPONENT_MAX;

pub(super) const I32: u8 = WireType::Int32 as u8;
pub(super) const U32: u8 = WireType::UInt32 as u8;
pub(super) const I64: u8 = WireType::Int64 as u8;
pub(super) const U64: u8 = WireType::UInt64 as u8;

/// The role of a value.
pub(super) const VALUE: u8 = 0;
pub(super) const EXPONENT: u8 = 1;
pub(super) const MANTISSA: u8 = 2;
pub(super) const LENGTH: u8 = 3;
/// Nobody subscribed to it.
pub(super) const NOTHING: u8 = 4;

/// A value that is left out is the one before, or the one after that.
pub(super) const SAME: u8 = 0;
pub(super) const NEXT: u8 = 1;
/// The previous value of a field that is not selected: only its presence is kept.
pub(super) const IDLE: u8 = 2;

/// The result of reading an integer.
#[derive(Clone, Copy)]
pub(super) enum IntOutcome {
    Value(u64),
    Null,
    /// Longer than is read here.
    More,
    /// For the exact engine.
    Other,
}

const fn is_signed(kind: u8) -> bool {
    kind == I32 || kind == I64
}

/// Reads an integer of this type in its shortest form, with as many bytes as this level reads.
///
/// # Safety
/// The caller must pass a cursor with ten readable bytes.
#[inline(always)]
pub(super) unsafe fn int<const K: u8, const N: bool, const BMI2: bool, const L: u8>(
    cursor: BytePtr,
) -> (IntOutcome, BytePtr) {
    // SAFETY: `cursor` has ten bytes, by the contract.
    let first_byte = unsafe { *cursor };
    // SAFETY: one is the first.
    let next_cursor = unsafe { cursor.add(1) };
    if L != MORE && first_byte >= 0x80 {
        if is_signed(K) {
            let value = i64::from((first_byte << 1) as i8 >> 1);
            if N && value == 0 {
                return (IntOutcome::Null, next_cursor);
            }
            return (IntOutcome::Value((value - i64::from(N && value > 0)) as u64), next_cursor);
        }
        let value = u64::from(first_byte & 0x7f);
        if N && value == 0 {
            return (IntOutcome::Null, next_cursor);
        }
        return (IntOutcome::Value(value - u64::from(N)), next_cursor);
    }
    if L == HOT {
        return (IntOutcome::More, cursor);
    }
    // SAFETY: `cursor` has ten bytes, by the contract.
    let word = unsafe { read_word(cursor) };
    let stops = word & STOPS;
    if stops == 0 {
        return match K {
            I64 | U64 if L == BOTH => (IntOutcome::More, cursor),
            // SAFETY: `cursor` has ten bytes, by the contract.
            I64 | U64 => unsafe { nine_byte_int::<K, N, BMI2>(cursor, word) },
            _ => (IntOutcome::Other, cursor),
        };
    }
    // The last bit of the first stop bit's byte; the bytes before it.
    let (last, before) = (stops.trailing_zeros(), stops.trailing_zeros() >> 3);
    // SAFETY: `cursor` has ten bytes, by the contract; it is the eighth byte at most.
    let next_cursor = unsafe { cursor.add(before as usize + 1) };
    if is_signed(K) {
        // All eight bytes, with the first byte highest; the sign is the sign of the first byte.
        let high = (groups::<BMI2>(word.swap_bytes()) << 8) as i64;
        // The first group carries only the sign of the second.
        if ((high >> 56) + 1) as u8 <= 1 {
            return (IntOutcome::Other, cursor);
        }
        // Sixty-four without seven for each byte.
        let value = high >> ((before + 1).wrapping_add(!last) & 63);
        let value = value - i64::from(N && value > 0);
        if K == I32 && i64::from(value as i32) != value {
            return (IntOutcome::Other, cursor);
        }
        return (IntOutcome::Value(value as u64), next_cursor);
    }
    if first_byte == 0 {
        return (IntOutcome::Other, cursor);
    }
    let value = groups::<BMI2>(word.swap_bytes() >> (last ^ 63));
    let value = value - u64::from(N);
    if K == U32 && value >> 32 != 0 {
        return (IntOutcome::Other, cursor);
    }
    (IntOutcome::Value(value), next_cursor)
}

/// Skips an integer that is not selected. It finds the same faults as [`int`] does: an integer that may be too large is
/// read.
///
/// # Safety
/// The caller must pass a cursor with ten readable bytes.
#[inline(always)]
pub(super) unsafe fn skip_int<const K: u8, const N: bool, const BMI2: bool, const L: u8>(
    cursor: BytePtr,
) -> (IntOutcome, BytePtr) {
    if L == ALL {
        // SAFETY: `cursor` has ten bytes, by the contract.
        return unsafe { int::<K, N, BMI2, ALL>(cursor) };
    }
    // SAFETY: `cursor` has ten bytes, by the contract; one is the first.
    let (first, next) = unsafe { (*cursor, cursor.add(1)) };
    if L != MORE && first >= 0x80 {
        return (if N && first == 0x80 { IntOutcome::Null } else { IntOutcome::Value(0) }, next);
    }
    if L == HOT {
        return (IntOutcome::More, cursor);
    }
    // SAFETY: `cursor` has ten bytes, by the contract.
    let word = unsafe { read_word(cursor) };
    let bytes_before_stop = (word & STOPS).trailing_zeros() >> 3;
    // Any value of four bytes fits into 32 bits, and any value of eight bytes fits into 64 bits.
    if bytes_before_stop > if K == I32 || K == U32 { 3 } else { 7 } {
        return (IntOutcome::More, cursor);
    }
    let signs = word & 0x407f;
    if if is_signed(K) { signs == 0 || signs == 0x407f } else { first == 0 } {
        return (IntOutcome::Other, cursor);
    }
    // SAFETY: `cursor` has ten bytes, by the contract; it is the eighth byte at most.
    (IntOutcome::Value(0), unsafe { cursor.add(bytes_before_stop as usize + 1) })
}

/// Reads an integer of nine bytes, such as a time in nanoseconds.
///
/// # Safety
/// The caller must pass a cursor with nine readable bytes, of which the first eight have no stop bit.
#[inline(always)]
unsafe fn nine_byte_int<const K: u8, const N: bool, const BMI2: bool>(
    cursor: BytePtr,
    word: u64,
) -> (IntOutcome, BytePtr) {
    // SAFETY: `cursor` has nine bytes, by the contract.
    let (ninth, next) = unsafe { (*cursor.add(8), cursor.add(9)) };
    let high = groups::<BMI2>(word.swap_bytes());
    let first_byte = word as u8;
    let overlong = if is_signed(K) { (((high << 8) as i64 >> 56) + 1) as u8 <= 1 } else { first_byte == 0 };
    if ninth < 0x80 || overlong {
        return (IntOutcome::Other, cursor);
    }
    let value = high << 7 | u64::from(ninth & 0x7f);
    if is_signed(K) {
        let value = (value << 1) as i64 >> 1;
        return (IntOutcome::Value((value - i64::from(N && value > 0)) as u64), next);
    }
    (IntOutcome::Value(value - u64::from(N)), next)
}

/// Returns the meta word of a slot with an assigned integer.
pub(super) const fn assigned(kind: u8) -> u64 {
    slot::SlotState::Assigned as u64 | (kind as u64) << 8
}

/// Returns the meta word of a slot with an empty integer.
pub(super) const fn empty(kind: u8) -> u64 {
    slot::SlotState::Empty as u64 | (kind as u64) << 8
}

/// Writes a value according to its role, and continues.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`].
#[inline(always)]
pub(super) unsafe fn write_value<const R: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
    value: u64,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        match R {
            VALUE | MANTISSA => {
                let extra = if R == MANTISSA { (*state).exponent } else { 0 };
                *out = DecodedEntry { bits: value, meta: (*step).meta | extra };
                let out = out.byte_add((*step).advance);
                go_on!(state, step + 1, cursor, map, out)
            }
            EXPONENT => {
                let exponent = value as i64;
                if (exponent + EXPONENT_MAX) as u64 > 2 * EXPONENT_MAX as u64 {
                    give_up!();
                }
                (*state).exponent = value << 56;
                go_on!(state, step + 1, cursor, map, out)
            }
            NOTHING => go_on!(state, step + 1, cursor, map, out),
            _ => {
                (*state).length = value;
                // The sequence is the step after its length; to jump there by its address would be slower.
                parts::sequence(state, step.add(1), cursor, map, out)
            }
        }
    }
}

/// Continues after an absent value: an absent exponent leaves out its mantissa, an absent length its sequence.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`].
#[inline(always)]
pub(super) unsafe fn skip_absent<const R: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room; what
    // is left out is in the block.
    unsafe {
        match R {
            VALUE | NOTHING => go_on!(state, step + 1, cursor, map, out),
            LENGTH => go_on!(state, step + 2, cursor, map, out),
            EXPONENT => {
                let bit = (*step.add(1)).mask;
                // It has no bit in the map then, so the later bits are one place nearer.
                let later_bits = if bit == 0 { 0 } else { bit | (bit - 1) };
                let map = map & !later_bits | (map & later_bits) >> 1;
                go_on!(state, step + 2, cursor, map, out)
            }
            _ => give_up!(),
        }
    }
}

/// Continues after a field that is absent with the previous field and has no bit in the map. Also skips the following
/// fields of this kind without a bit.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`]. Such steps must [`EngineStep::follow`] the step.
#[inline(always)]
pub(super) unsafe fn skip_absent_run<const R: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        if map & (*step).initial != 0 {
            return skip_absent::<R>(state, step, cursor, map, out);
        }
        let follow = (*step).follow as usize;
        go_on!(state, step + follow, cursor, map, out)
    }
}

/// Returns the slot of a step.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`], and the step must have a slot.
#[inline(always)]
pub(super) unsafe fn slot_of<'s>(state: *mut EngineState, step: *const EngineStep) -> &'s mut DictionarySlot {
    // SAFETY: the step has a slot, by the contract; a step's slot is one of the workspace's, before which the state lies, and
    // of which no other is taken before this one is let go.
    unsafe { &mut *state.cast::<DictionarySlot>().byte_add((*step).slot) }
}

handlers! {
    /// No operator.
    plain [K: u8, N: bool, R: u8] plain_body
}

/// Decodes an integer without an operator.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`]. If `BMI2`, the machine must have it.
#[inline(always)]
unsafe fn plain_body<const K: u8, const N: bool, const R: u8, const BMI2: bool, const L: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        let read =
            if R == NOTHING { skip_int::<K, N, BMI2, L>(cursor) } else { int::<K, N, BMI2, L>(cursor) };
        match read {
            (IntOutcome::Value(value), cursor) => write_value::<R>(state, step, cursor, map, out, value),
            (IntOutcome::Null, cursor) => skip_absent::<R>(state, step, cursor, map, out),
            (IntOutcome::More, _) => plain::more::<K, N, R, BMI2, L>(state, step, cursor, map, out),
            (IntOutcome::Other, _) => give_up!(),
        }
    }
}

handlers! {
    /// A value in the message, or the initial one; I: there is an initial one.
    default [K: u8, N: bool, R: u8, I: bool] default_body
}

/// Decodes an integer with the operator default.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`]. If `BMI2`, the machine must have it.
#[inline(always)]
unsafe fn default_body<
    const K: u8,
    const N: bool,
    const R: u8,
    const I: bool,
    const BMI2: bool,
    const L: u8,
>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        if L == HOT && map & (*step).mask == 0 {
            return if I {
                write_value::<R>(state, step, cursor, map, out, (*step).initial)
            } else {
                skip_absent_run::<R>(state, step, cursor, map, out)
            };
        }
        plain_body::<K, N, R, BMI2, L>(state, step, cursor, map, out)
    }
}

handlers! {
    /// The exponent of a decimal, mostly the initial one, and the difference to the mantissa before in one.
    scaled [N: bool] scaled_body
}

/// Decodes a decimal from its exponent and its mantissa.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`]. If `BMI2`, the machine must have it.
#[inline(always)]
unsafe fn scaled_body<const N: bool, const BMI2: bool, const L: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room; the
    // mantissa is the step after this one.
    unsafe {
        if L == HOT && map & (*step).mask == 0 {
            (*state).exponent = (*step).initial << 56;
            return delta_body::<I64, false, MANTISSA, BMI2, HOT>(state, step.add(1), cursor, map, out);
        }
        plain_body::<I32, N, EXPONENT, BMI2, L>(state, step, cursor, map, out)
    }
}

handlers! {
    /// A constant. If it may be left out, it has a bit.
    constant [N: bool, R: u8] constant_body
}

/// Decodes an integer with the operator constant.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`]. If `BMI2`, the machine must have it.
#[inline(always)]
unsafe fn constant_body<const N: bool, const R: u8, const BMI2: bool, const _L: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        if N && map & (*step).mask == 0 {
            skip_absent::<R>(state, step, cursor, map, out)
        } else {
            write_value::<R>(state, step, cursor, map, out, (*step).initial)
        }
    }
}

handlers! {
    /// A value in the message, or the value that C chooses.
    copy [K: u8, N: bool, R: u8, C: u8] copy_body
}

/// Decodes an integer with the operator copy or increment.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`]. If `BMI2`, the machine must have it.
#[inline(always)]
unsafe fn copy_body<const K: u8, const N: bool, const R: u8, const C: u8, const BMI2: bool, const L: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        let slot = slot_of(state, step);
        // Beyond the first byte it is here because there is one.
        if L != HOT || map & (*step).mask != 0 {
            let read =
                if C == IDLE { skip_int::<K, N, BMI2, L>(cursor) } else { int::<K, N, BMI2, L>(cursor) };
            return match read {
                (IntOutcome::Value(bits), cursor) => {
                    *slot = DictionarySlot { bits, meta: assigned(K) };
                    write_value::<R>(state, step, cursor, map, out, bits)
                }
                (IntOutcome::Null, cursor) => {
                    *slot = DictionarySlot { bits: 0, meta: empty(K) };
                    skip_absent::<R>(state, step, cursor, map, out)
                }
                (IntOutcome::More, _) => copy::more::<K, N, R, C, BMI2, L>(state, step, cursor, map, out),
                (IntOutcome::Other, _) => give_up!(),
            };
        }
        if slot.meta != assigned(K) {
            return unassigned::<K, N, R>(state, step, cursor, map, out);
        }
        if C == NEXT {
            // The value after the greatest value is rare.
            if slot.bits == max_value(K) {
                give_up!();
            }
            slot.bits = slot.bits.wrapping_add(1);
        }
        write_value::<R>(state, step, cursor, map, out, slot.bits)
    }
}

/// Handles an omitted value whose previous value is undefined or empty.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`].
#[inline(never)]
unsafe fn unassigned<const K: u8, const N: bool, const R: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        let slot = slot_of(state, step);
        match slot.state() {
            slot::SlotState::Empty if N => skip_absent::<R>(state, step, cursor, map, out),
            slot::SlotState::Undefined if (*step).has_initial => {
                let bits = (*step).initial;
                *slot = DictionarySlot { bits, meta: assigned(K) };
                write_value::<R>(state, step, cursor, map, out, bits)
            }
            slot::SlotState::Undefined if N => {
                *slot = DictionarySlot { bits: 0, meta: empty(K) };
                skip_absent::<R>(state, step, cursor, map, out)
            }
            _ => give_up!(),
        }
    }
}

const fn max_value(kind: u8) -> u64 {
    match kind {
        I32 => i32::MAX as u64,
        U32 => u32::MAX as u64,
        I64 => i64::MAX as u64,
        _ => u64::MAX,
    }
}

handlers! {
    /// A difference to the value before.
    delta [K: u8, N: bool, R: u8] delta_body
}

/// Decodes an integer with the operator delta.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`]. If `BMI2`, the machine must have it.
#[inline(always)]
unsafe fn delta_body<const K: u8, const N: bool, const R: u8, const BMI2: bool, const L: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        let slot = slot_of(state, step);
        if slot.meta != assigned(K) {
            return first_delta::<K, N, R>(state, step, cursor, map, out);
        }
        let (difference, cursor) = match int::<I64, N, BMI2, L>(cursor) {
            (IntOutcome::Value(difference), cursor) => (difference as i64, cursor),
            (IntOutcome::Null, cursor) => return skip_absent::<R>(state, step, cursor, map, out),
            (IntOutcome::More, _) => return delta::more::<K, N, R, BMI2, L>(state, step, cursor, map, out),
            (IntOutcome::Other, _) => give_up!(),
        };
        let (bits, fits) = match K {
            I32 | U32 => {
                // The difference has up to 33 bits, or 63 in nine bytes.
                let sum = (slot.bits as i64).wrapping_add(difference);
                let fits_type = if K == I32 { i64::from(sum as i32) == sum } else { (sum as u64) >> 32 == 0 };
                (sum as u64, fits_type)
            }
            I64 => {
                let (sum, has_overflow) = (slot.bits as i64).overflowing_add(difference);
                (sum as u64, !has_overflow)
            }
            _ => {
                let (sum, has_overflow) = slot.bits.overflowing_add_signed(difference);
                (sum, !has_overflow)
            }
        };
        if !fits {
            give_up!();
        }
        slot.bits = bits;
        write_value::<R>(state, step, cursor, map, out, bits)
    }
}

/// Decodes a difference whose entry is not assigned. The base is the initial value or zero.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`].
#[inline(never)]
unsafe fn first_delta<const K: u8, const N: bool, const R: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        if N && *cursor == 0x80 {
            return skip_absent::<R>(state, step, cursor.add(1), map, out);
        }
        let slot = slot_of(state, step);
        if slot.state() != slot::SlotState::Undefined {
            give_up!();
        }
        *slot = DictionarySlot { bits: (*step).initial, meta: assigned(K) };
        ((*step).run)(state, step, cursor, map, out)
    }
}
