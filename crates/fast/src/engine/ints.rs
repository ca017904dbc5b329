//! Integers, and decimals in their two parts.

use super::parts;
use super::raw::{ALL, BOTH, HOT, MORE, STOPS, eight, give_up, go_on, groups, handlers};
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
/// It is the one before, which nobody subscribed to: only whether there is one is kept.
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

/// An integer of this type, of as many bytes as are read at this level, and as short as can be.
///
/// # Safety
/// There are ten bytes.
#[inline(always)]
pub(super) unsafe fn int<const K: u8, const N: bool, const BMI2: bool, const L: u8>(
    at: BytePtr,
) -> (IntOutcome, BytePtr) {
    // SAFETY: `at` has ten bytes, by the contract.
    let first = unsafe { *at };
    // SAFETY: one is the first.
    let next = unsafe { at.add(1) };
    if L != MORE && first >= 0x80 {
        if is_signed(K) {
            let value = i64::from((first << 1) as i8 >> 1);
            if N && value == 0 {
                return (IntOutcome::Null, next);
            }
            return (IntOutcome::Value((value - i64::from(N && value > 0)) as u64), next);
        }
        let value = u64::from(first & 0x7f);
        if N && value == 0 {
            return (IntOutcome::Null, next);
        }
        return (IntOutcome::Value(value - u64::from(N)), next);
    }
    if L == HOT {
        return (IntOutcome::More, at);
    }
    // SAFETY: `at` has ten bytes, by the contract.
    let word = unsafe { eight(at) };
    let stops = word & STOPS;
    if stops == 0 {
        return match K {
            I64 | U64 if L == BOTH => (IntOutcome::More, at),
            // SAFETY: `at` has ten bytes, by the contract.
            I64 | U64 => unsafe { nine::<K, N, BMI2>(at, word) },
            _ => (IntOutcome::Other, at),
        };
    }
    // The last bit of the first stop bit's byte; the bytes before it.
    let (last, before) = (stops.trailing_zeros(), stops.trailing_zeros() >> 3);
    // SAFETY: `at` has ten bytes, by the contract; it is the eighth byte at most.
    let next = unsafe { at.add(before as usize + 1) };
    if is_signed(K) {
        // All of the eight, the first the highest; the sign is that of the first.
        let high = (groups::<BMI2>(word.swap_bytes()) << 8) as i64;
        // The first group carries only the sign of the second.
        if ((high >> 56) + 1) as u8 <= 1 {
            return (IntOutcome::Other, at);
        }
        // Sixty-four without seven for each byte.
        let value = high >> ((before + 1).wrapping_add(!last) & 63);
        let value = value - i64::from(N && value > 0);
        if K == I32 && i64::from(value as i32) != value {
            return (IntOutcome::Other, at);
        }
        return (IntOutcome::Value(value as u64), next);
    }
    if first == 0 {
        return (IntOutcome::Other, at);
    }
    let value = groups::<BMI2>(word.swap_bytes() >> (last ^ 63));
    let value = value - u64::from(N);
    if K == U32 && value >> 32 != 0 {
        return (IntOutcome::Other, at);
    }
    (IntOutcome::Value(value), next)
}

/// Passes over an integer that nobody wants. It finds the same wrong as [`int`] does: what may be too large is read.
///
/// # Safety
/// There are ten bytes.
#[inline(always)]
pub(super) unsafe fn pass<const K: u8, const N: bool, const BMI2: bool, const L: u8>(
    at: BytePtr,
) -> (IntOutcome, BytePtr) {
    if L == ALL {
        // SAFETY: `at` has ten bytes, by the contract.
        return unsafe { int::<K, N, BMI2, ALL>(at) };
    }
    // SAFETY: `at` has ten bytes, by the contract; one is the first.
    let (first, next) = unsafe { (*at, at.add(1)) };
    if L != MORE && first >= 0x80 {
        return (if N && first == 0x80 { IntOutcome::Null } else { IntOutcome::Value(0) }, next);
    }
    if L == HOT {
        return (IntOutcome::More, at);
    }
    // SAFETY: `at` has ten bytes, by the contract.
    let word = unsafe { eight(at) };
    let before = (word & STOPS).trailing_zeros() >> 3;
    // Any value of four bytes is one of 32 bits, any value of eight is one of 64.
    if before > if K == I32 || K == U32 { 3 } else { 7 } {
        return (IntOutcome::More, at);
    }
    let signs = word & 0x407f;
    if if is_signed(K) { signs == 0 || signs == 0x407f } else { first == 0 } {
        return (IntOutcome::Other, at);
    }
    // SAFETY: `at` has ten bytes, by the contract; it is the eighth byte at most.
    (IntOutcome::Value(0), unsafe { at.add(before as usize + 1) })
}

/// An integer of nine bytes: times in nanoseconds are.
///
/// # Safety
/// There are nine bytes, of which the first eight have no stop bit.
#[inline(always)]
unsafe fn nine<const K: u8, const N: bool, const BMI2: bool>(
    at: BytePtr,
    word: u64,
) -> (IntOutcome, BytePtr) {
    // SAFETY: `at` has nine bytes, by the contract.
    let (ninth, next) = unsafe { (*at.add(8), at.add(9)) };
    let high = groups::<BMI2>(word.swap_bytes());
    let first = word as u8;
    let overlong = if is_signed(K) { (((high << 8) as i64 >> 56) + 1) as u8 <= 1 } else { first == 0 };
    if ninth < 0x80 || overlong {
        return (IntOutcome::Other, at);
    }
    let value = high << 7 | u64::from(ninth & 0x7f);
    if is_signed(K) {
        let value = (value << 1) as i64 >> 1;
        return (IntOutcome::Value((value - i64::from(N && value > 0)) as u64), next);
    }
    (IntOutcome::Value(value - u64::from(N)), next)
}

/// The meta word of a slot with an assigned integer.
pub(super) const fn assigned(kind: u8) -> u64 {
    slot::SlotState::Assigned as u64 | (kind as u64) << 8
}

/// The meta word of a slot with an empty integer.
pub(super) const fn empty(kind: u8) -> u64 {
    slot::SlotState::Empty as u64 | (kind as u64) << 8
}

/// Puts a value where its role says, and continues.
///
/// # Safety
/// As [`StepHandler`].
#[inline(always)]
pub(super) unsafe fn put<const R: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
    value: u64,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        match R {
            VALUE | MANTISSA => {
                let extra = if R == MANTISSA { (*state).exponent } else { 0 };
                *out = DecodedEntry { bits: value, meta: (*step).meta | extra };
                let out = out.byte_add((*step).advance);
                go_on!(state, step + 1, at, map, out)
            }
            EXPONENT => {
                let exponent = value as i64;
                if (exponent + EXPONENT_MAX) as u64 > 2 * EXPONENT_MAX as u64 {
                    give_up!();
                }
                (*state).exponent = value << 56;
                go_on!(state, step + 1, at, map, out)
            }
            NOTHING => go_on!(state, step + 1, at, map, out),
            _ => {
                (*state).length = value;
                // The sequence is the step after its length; to jump there by its address would be slower.
                parts::sequence(state, step.add(1), at, map, out)
            }
        }
    }
}

/// Continues after an absent value: an absent exponent leaves out its mantissa, an absent length its sequence.
///
/// # Safety
/// As [`StepHandler`].
#[inline(always)]
pub(super) unsafe fn leave_out<const R: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room; what
    // is left out is in the block.
    unsafe {
        match R {
            VALUE | NOTHING => go_on!(state, step + 1, at, map, out),
            LENGTH => go_on!(state, step + 2, at, map, out),
            EXPONENT => {
                let bit = (*step.add(1)).mask;
                // It has no bit in the map then: those after it are one place nearer.
                let behind = if bit == 0 { 0 } else { bit | (bit - 1) };
                let map = map & !behind | (map & behind) >> 1;
                go_on!(state, step + 2, at, map, out)
            }
            _ => give_up!(),
        }
    }
}

/// Continues after a field without a bit in the map that is absent with it, and after those that follow it if they
/// are of this kind and have no bit either.
///
/// # Safety
/// As [`StepHandler`]; the step is [`EngineStep::follow`]ed by such.
#[inline(always)]
pub(super) unsafe fn left_out<const R: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        if map & (*step).initial != 0 {
            return leave_out::<R>(state, step, at, map, out);
        }
        let follow = (*step).follow as usize;
        go_on!(state, step + follow, at, map, out)
    }
}

/// Where the slot of a step is.
///
/// # Safety
/// As [`StepHandler`]; the step has a slot.
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

/// # Safety
/// As [`StepHandler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn plain_body<const K: u8, const N: bool, const R: u8, const BMI2: bool, const L: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        let read = if R == NOTHING { pass::<K, N, BMI2, L>(at) } else { int::<K, N, BMI2, L>(at) };
        match read {
            (IntOutcome::Value(value), at) => put::<R>(state, step, at, map, out, value),
            (IntOutcome::Null, at) => leave_out::<R>(state, step, at, map, out),
            (IntOutcome::More, _) => plain::more::<K, N, R, BMI2, L>(state, step, at, map, out),
            (IntOutcome::Other, _) => give_up!(),
        }
    }
}

handlers! {
    /// A value in the message, or the initial one; I: there is an initial one.
    default [K: u8, N: bool, R: u8, I: bool] default_body
}

/// # Safety
/// As [`StepHandler`]; with BMI2 the machine has it.
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
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        if L == HOT && map & (*step).mask == 0 {
            return if I {
                put::<R>(state, step, at, map, out, (*step).initial)
            } else {
                left_out::<R>(state, step, at, map, out)
            };
        }
        plain_body::<K, N, R, BMI2, L>(state, step, at, map, out)
    }
}

handlers! {
    /// The exponent of a decimal, mostly the initial one, and the difference to the mantissa before in one.
    scaled [N: bool] scaled_body
}

/// # Safety
/// As [`StepHandler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn scaled_body<const N: bool, const BMI2: bool, const L: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room; the
    // mantissa is the step after this one.
    unsafe {
        if L == HOT && map & (*step).mask == 0 {
            (*state).exponent = (*step).initial << 56;
            return delta_body::<I64, false, MANTISSA, BMI2, HOT>(state, step.add(1), at, map, out);
        }
        plain_body::<I32, N, EXPONENT, BMI2, L>(state, step, at, map, out)
    }
}

handlers! {
    /// A constant; where it may be left out there is a bit.
    constant [N: bool, R: u8] constant_body
}

/// # Safety
/// As [`StepHandler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn constant_body<const N: bool, const R: u8, const BMI2: bool, const _L: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        if N && map & (*step).mask == 0 {
            leave_out::<R>(state, step, at, map, out)
        } else {
            put::<R>(state, step, at, map, out, (*step).initial)
        }
    }
}

handlers! {
    /// A value in the message, or as C says.
    copy [K: u8, N: bool, R: u8, C: u8] copy_body
}

/// # Safety
/// As [`StepHandler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn copy_body<const K: u8, const N: bool, const R: u8, const C: u8, const BMI2: bool, const L: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        let slot = slot_of(state, step);
        // Beyond the first byte it is here because there is one.
        if L != HOT || map & (*step).mask != 0 {
            let read = if C == IDLE { pass::<K, N, BMI2, L>(at) } else { int::<K, N, BMI2, L>(at) };
            return match read {
                (IntOutcome::Value(bits), at) => {
                    *slot = DictionarySlot { bits, meta: assigned(K) };
                    put::<R>(state, step, at, map, out, bits)
                }
                (IntOutcome::Null, at) => {
                    *slot = DictionarySlot { bits: 0, meta: empty(K) };
                    leave_out::<R>(state, step, at, map, out)
                }
                (IntOutcome::More, _) => copy::more::<K, N, R, C, BMI2, L>(state, step, at, map, out),
                (IntOutcome::Other, _) => give_up!(),
            };
        }
        if slot.meta != assigned(K) {
            return unassigned::<K, N, R>(state, step, at, map, out);
        }
        if C == NEXT {
            // The value after the greatest one is seldom wanted.
            if slot.bits == most(K) {
                give_up!();
            }
            slot.bits = slot.bits.wrapping_add(1);
        }
        put::<R>(state, step, at, map, out, slot.bits)
    }
}

/// A value that is left out, and none before or an empty one.
///
/// # Safety
/// As [`StepHandler`].
#[inline(never)]
unsafe fn unassigned<const K: u8, const N: bool, const R: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        let slot = slot_of(state, step);
        match slot.state() {
            slot::SlotState::Empty if N => leave_out::<R>(state, step, at, map, out),
            slot::SlotState::Undefined if (*step).has_initial => {
                let bits = (*step).initial;
                *slot = DictionarySlot { bits, meta: assigned(K) };
                put::<R>(state, step, at, map, out, bits)
            }
            slot::SlotState::Undefined if N => {
                *slot = DictionarySlot { bits: 0, meta: empty(K) };
                leave_out::<R>(state, step, at, map, out)
            }
            _ => give_up!(),
        }
    }
}

const fn most(kind: u8) -> u64 {
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

/// # Safety
/// As [`StepHandler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn delta_body<const K: u8, const N: bool, const R: u8, const BMI2: bool, const L: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        let slot = slot_of(state, step);
        if slot.meta != assigned(K) {
            return first::<K, N, R>(state, step, at, map, out);
        }
        let (difference, at) = match int::<I64, N, BMI2, L>(at) {
            (IntOutcome::Value(difference), at) => (difference as i64, at),
            (IntOutcome::Null, at) => return leave_out::<R>(state, step, at, map, out),
            (IntOutcome::More, _) => return delta::more::<K, N, R, BMI2, L>(state, step, at, map, out),
            (IntOutcome::Other, _) => give_up!(),
        };
        let (bits, fits) = match K {
            I32 | U32 => {
                // The difference has up to 33 bits, or 63 in nine bytes.
                let sum = (slot.bits as i64).wrapping_add(difference);
                let fits = if K == I32 { i64::from(sum as i32) == sum } else { (sum as u64) >> 32 == 0 };
                (sum as u64, fits)
            }
            I64 => {
                let (sum, over) = (slot.bits as i64).overflowing_add(difference);
                (sum as u64, !over)
            }
            _ => {
                let (sum, over) = slot.bits.overflowing_add_signed(difference);
                (sum, !over)
            }
        };
        if !fits {
            give_up!();
        }
        slot.bits = bits;
        put::<R>(state, step, at, map, out, bits)
    }
}

/// A difference where the entry is not assigned: to the initial value, or to nought.
///
/// # Safety
/// As [`StepHandler`].
#[inline(never)]
unsafe fn first<const K: u8, const N: bool, const R: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    at: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out` has room.
    unsafe {
        if N && *at == 0x80 {
            return leave_out::<R>(state, step, at.add(1), map, out);
        }
        let slot = slot_of(state, step);
        if slot.state() != slot::SlotState::Undefined {
            give_up!();
        }
        *slot = DictionarySlot { bits: (*step).initial, meta: assigned(K) };
        ((*step).run)(state, step, at, map, out)
    }
}
