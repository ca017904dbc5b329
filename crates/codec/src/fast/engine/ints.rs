//! Integers, and decimals in their two parts.

use super::raw::{ALL, At, HOT, Handler, MORE, STOPS, eight, give_up, go_on, groups, handlers, length};
use super::state::State;
use super::steps::Step;
use crate::fast::record::Entry;
use crate::fast::slot::{self, Slot, Undo};
use crate::fast::template::Type;
use crate::fast::wire::EXPONENT_MAX;

pub(super) const I32: u8 = Type::Int32 as u8;
pub(super) const U32: u8 = Type::UInt32 as u8;
pub(super) const I64: u8 = Type::Int64 as u8;
pub(super) const U64: u8 = Type::UInt64 as u8;

/// What becomes of a value.
pub(super) const VALUE: u8 = 0;
pub(super) const EXPONENT: u8 = 1;
pub(super) const MANTISSA: u8 = 2;
pub(super) const LENGTH: u8 = 3;

/// What was read.
#[derive(Clone, Copy)]
pub(super) enum Read {
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
pub(super) unsafe fn int<const K: u8, const N: bool, const BMI2: bool, const L: u8>(at: At) -> (Read, At) {
    // SAFETY: the caller's.
    let first = unsafe { *at };
    // SAFETY: one is the first.
    let next = unsafe { at.add(1) };
    if L != MORE && first >= 0x80 {
        if is_signed(K) {
            let value = i64::from((first << 1) as i8 >> 1);
            if N && value == 0 {
                return (Read::Null, next);
            }
            return (Read::Value((value - i64::from(N && value > 0)) as u64), next);
        }
        let value = u64::from(first & 0x7f);
        if N && value == 0 {
            return (Read::Null, next);
        }
        return (Read::Value(value - u64::from(N)), next);
    }
    if L == HOT {
        return (Read::More, at);
    }
    // SAFETY: the caller's.
    let word = unsafe { eight(at) };
    let stops = word & STOPS;
    if stops == 0 {
        return match K {
            I64 | U64 if L != ALL => (Read::More, at),
            // SAFETY: the caller's.
            I64 | U64 => unsafe { nine::<K, N, BMI2>(at, word) },
            _ => (Read::Other, at),
        };
    }
    let n = length(stops);
    let value = groups::<BMI2>(word, n);
    // SAFETY: the caller's; n is at most eight.
    let next = unsafe { at.add(n as usize) };
    if is_signed(K) {
        let unused = 64u32.wrapping_sub(7 * n) & 63;
        let high = (value << unused) as i64;
        let value = high >> unused;
        // The first group tells nothing but the sign of the second.
        if ((high >> 56) + 1) as u8 <= 1 {
            return (Read::Other, at);
        }
        let value = value - i64::from(N && value > 0);
        if K == I32 && i64::from(value as i32) != value {
            return (Read::Other, at);
        }
        return (Read::Value(value as u64), next);
    }
    if first == 0 {
        return (Read::Other, at);
    }
    let value = value - u64::from(N);
    if K == U32 && value >> 32 != 0 {
        return (Read::Other, at);
    }
    (Read::Value(value), next)
}

/// An integer of nine bytes: times in nanoseconds are.
///
/// # Safety
/// There are nine bytes, of which the first eight have no stop bit.
#[inline(always)]
unsafe fn nine<const K: u8, const N: bool, const BMI2: bool>(at: At, word: u64) -> (Read, At) {
    // SAFETY: the caller's.
    let (ninth, next) = unsafe { (*at.add(8), at.add(9)) };
    let high = groups::<BMI2>(word, 8);
    let first = word as u8;
    let overlong = if is_signed(K) { (((high << 8) as i64 >> 56) + 1) as u8 <= 1 } else { first == 0 };
    if ninth < 0x80 || overlong {
        return (Read::Other, at);
    }
    let value = high << 7 | u64::from(ninth & 0x7f);
    if is_signed(K) {
        let value = (value << 1) as i64 >> 1;
        return (Read::Value((value - i64::from(N && value > 0)) as u64), next);
    }
    (Read::Value(value - u64::from(N)), next)
}

/// What a slot has for an assigned integer.
pub(super) const fn assigned(kind: u8) -> u64 {
    slot::State::Assigned as u64 | (kind as u64) << 8
}

/// Puts a value where its role says, and goes on.
///
/// # Safety
/// As [`Handler`].
#[inline(always)]
pub(super) unsafe fn put<const R: u8>(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
    value: u64,
) -> At {
    // SAFETY: the caller's; there is room for an entry.
    unsafe {
        match R {
            VALUE | MANTISSA => {
                let extra = if R == MANTISSA { state.exponent } else { 0 };
                *out = Entry { bits: value, meta: (*step).meta | extra };
                let out = out.byte_add((*step).advance);
                go_on!(state, step + 1, at, map, out, undo)
            }
            EXPONENT => {
                let exponent = value as i64;
                if (exponent + EXPONENT_MAX) as u64 > 2 * EXPONENT_MAX as u64 {
                    give_up!(state, undo);
                }
                state.exponent = value << 56;
                go_on!(state, step + 1, at, map, out, undo)
            }
            _ => {
                state.length = value;
                go_on!(state, step + 1, at, map, out, undo)
            }
        }
    }
}

/// Goes on where there is no value: with an exponent its mantissa is left out, with a length its sequence.
///
/// # Safety
/// As [`Handler`].
#[inline(always)]
pub(super) unsafe fn leave_out<const R: u8>(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    // SAFETY: the caller's; what is left out is in the block.
    unsafe {
        match R {
            VALUE => go_on!(state, step + 1, at, map, out, undo),
            LENGTH => go_on!(state, step + 2, at, map, out, undo),
            EXPONENT => {
                let bit = (*step.add(1)).mask;
                // It has no bit in the map then: those behind it are one place nearer.
                let behind = if bit == 0 { 0 } else { bit | (bit - 1) };
                let map = map & !behind | (map & behind) >> 1;
                go_on!(state, step + 2, at, map, out, undo)
            }
            _ => give_up!(state, undo),
        }
    }
}

/// Goes on behind a field without a bit in the map that is absent with it, and behind those that follow it if they are of
/// this kind and have no bit either.
///
/// # Safety
/// As [`Handler`]; the step is [`Step::follow`]ed by such.
#[inline(always)]
pub(super) unsafe fn left_out<const R: u8>(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    // SAFETY: the caller's.
    unsafe {
        if map & (*step).initial != 0 {
            return leave_out::<R>(state, step, at, map, out, undo);
        }
        let follow = (*step).follow as usize;
        go_on!(state, step + follow, at, map, out, undo)
    }
}

/// Makes it the slot's value.
///
/// # Safety
/// As [`Handler`]; the step has a slot.
#[inline(always)]
pub(super) unsafe fn assign(state: &State, step: *const Step, undo: *mut Undo, slot: Slot) -> *mut Undo {
    // SAFETY: the caller's; a step's slot is one of the decoder's, and there is room for a thing to undo.
    unsafe {
        let place = state.slots.byte_add((*step).slot);
        *undo = Undo { slot: *place, place: (*step).slot as u64 };
        *place = slot;
        undo.add(1)
    }
}

/// The slot of a step.
///
/// # Safety
/// As [`assign`].
#[inline(always)]
pub(super) unsafe fn slot_of(state: &State, step: *const Step) -> Slot {
    // SAFETY: the caller's.
    unsafe { *state.slots.byte_add((*step).slot) }
}

handlers! {
    /// No operator.
    plain [K: u8, N: bool, R: u8] plain_body
}

/// # Safety
/// As [`Handler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn plain_body<const K: u8, const N: bool, const R: u8, const BMI2: bool, const L: u8>(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    // SAFETY: the caller's.
    unsafe {
        match int::<K, N, BMI2, L>(at) {
            (Read::Value(value), at) => put::<R>(state, step, at, map, out, undo, value),
            (Read::Null, at) => leave_out::<R>(state, step, at, map, out, undo),
            (Read::More, _) => plain::more::<K, N, R, L>(state, step, at, map, out, undo),
            (Read::Other, _) => give_up!(state, undo),
        }
    }
}

handlers! {
    /// A value in the message, or the initial one; I: there is an initial one.
    default [K: u8, N: bool, R: u8, I: bool] default_body
}

/// # Safety
/// As [`Handler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn default_body<
    const K: u8,
    const N: bool,
    const R: u8,
    const I: bool,
    const BMI2: bool,
    const L: u8,
>(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    // SAFETY: the caller's.
    unsafe {
        if L == HOT && map & (*step).mask == 0 {
            return if I {
                put::<R>(state, step, at, map, out, undo, (*step).initial)
            } else {
                left_out::<R>(state, step, at, map, out, undo)
            };
        }
        plain_body::<K, N, R, BMI2, L>(state, step, at, map, out, undo)
    }
}

handlers! {
    /// The exponent of a decimal, mostly the initial one, and the difference to the mantissa before in one.
    scaled [N: bool] scaled_body
}

/// # Safety
/// As [`Handler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn scaled_body<const N: bool, const BMI2: bool, const L: u8>(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    // SAFETY: the caller's; the mantissa is the step behind this one.
    unsafe {
        if L == HOT && map & (*step).mask == 0 {
            state.exponent = (*step).initial << 56;
            return delta_body::<I64, false, MANTISSA, BMI2, HOT>(state, step.add(1), at, map, out, undo);
        }
        plain_body::<I32, N, EXPONENT, BMI2, L>(state, step, at, map, out, undo)
    }
}

handlers! {
    /// A constant; where it may be left out there is a bit.
    constant [N: bool, R: u8] constant_body
}

/// # Safety
/// As [`Handler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn constant_body<const N: bool, const R: u8, const BMI2: bool, const _L: u8>(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    // SAFETY: the caller's.
    unsafe {
        if N && map & (*step).mask == 0 {
            leave_out::<R>(state, step, at, map, out, undo)
        } else {
            put::<R>(state, step, at, map, out, undo, (*step).initial)
        }
    }
}

handlers! {
    /// A value in the message, or the one before; with UP the one after it.
    copy [K: u8, N: bool, R: u8, UP: bool] copy_body
}

/// # Safety
/// As [`Handler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn copy_body<
    const K: u8,
    const N: bool,
    const R: u8,
    const UP: bool,
    const BMI2: bool,
    const L: u8,
>(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    // SAFETY: the caller's.
    unsafe {
        let meta = state.epoch | assigned(K);
        // Beyond the first byte it is here because there is one.
        if L != HOT || map & (*step).mask != 0 {
            return match int::<K, N, BMI2, L>(at) {
                (Read::Value(bits), at) => {
                    let undo = assign(state, step, undo, Slot { bits, meta });
                    put::<R>(state, step, at, map, out, undo, bits)
                }
                (Read::Null, at) => {
                    let meta = meta & !0xff;
                    let undo = assign(state, step, undo, Slot { bits: 0, meta });
                    leave_out::<R>(state, step, at, map, out, undo)
                }
                (Read::More, _) => copy::more::<K, N, R, UP, L>(state, step, at, map, out, undo),
                (Read::Other, _) => give_up!(state, undo),
            };
        }
        let slot = slot_of(state, step);
        if slot.meta == meta {
            if UP {
                if slot.bits == most(K) {
                    give_up!(state, undo);
                }
                let bits = slot.bits.wrapping_add(1);
                let undo = assign(state, step, undo, Slot { bits, meta });
                return put::<R>(state, step, at, map, out, undo, bits);
            }
            return put::<R>(state, step, at, map, out, undo, slot.bits);
        }
        undefined::<K, N, R>(state, step, at, map, out, undo)
    }
}

/// A value that is left out, and none before or an empty one.
///
/// # Safety
/// As [`Handler`].
#[inline(never)]
unsafe fn undefined<const K: u8, const N: bool, const R: u8>(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    // SAFETY: the caller's.
    unsafe {
        let meta = state.epoch | assigned(K);
        let slot = slot_of(state, step);
        if (slot.meta ^ state.epoch) & EPOCH != 0 {
            if (*step).has_initial {
                let bits = (*step).initial;
                let undo = assign(state, step, undo, Slot { bits, meta });
                return put::<R>(state, step, at, map, out, undo, bits);
            }
            if N {
                let meta = meta & !0xff;
                let undo = assign(state, step, undo, Slot { bits: 0, meta });
                return leave_out::<R>(state, step, at, map, out, undo);
            }
        } else if N && slot.state() == slot::State::Empty {
            return leave_out::<R>(state, step, at, map, out, undo);
        }
        give_up!(state, undo)
    }
}

/// The epoch of a slot.
pub(super) const EPOCH: u64 = 0xffff_ffff << 16;

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
/// As [`Handler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn delta_body<const K: u8, const N: bool, const R: u8, const BMI2: bool, const L: u8>(
    state: &mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    undo: *mut Undo,
) -> At {
    // SAFETY: the caller's.
    unsafe {
        let (difference, at) = match int::<I64, N, BMI2, L>(at) {
            (Read::Value(difference), at) => (difference as i64, at),
            (Read::Null, at) => return leave_out::<R>(state, step, at, map, out, undo),
            (Read::More, _) => return delta::more::<K, N, R, L>(state, step, at, map, out, undo),
            (Read::Other, _) => give_up!(state, undo),
        };
        let place = state.slots.byte_add((*step).slot);
        // At once, so that less is kept in registers.
        *undo = Undo { slot: *place, place: (*step).slot as u64 };
        let meta = state.epoch | assigned(K);
        let before = (*place).meta;
        let base = if before == meta {
            (*place).bits
        } else if (before ^ meta) & EPOCH != 0 {
            // Nought where there is none.
            (*step).initial
        } else {
            give_up!(state, undo)
        };
        let (bits, fits) = match K {
            I32 | U32 => {
                let sum = (base as i64).wrapping_add(difference);
                // Of up to 33 and of up to 56 bits, unless more was read.
                let over = L == ALL && (base as i64).checked_add(difference).is_none();
                let fits = if K == I32 { i64::from(sum as i32) == sum } else { (sum as u64) >> 32 == 0 };
                (sum as u64, fits && !over)
            }
            I64 => {
                let (sum, over) = (base as i64).overflowing_add(difference);
                (sum as u64, !over)
            }
            _ => {
                let (sum, over) = base.overflowing_add_signed(difference);
                (sum, !over)
            }
        };
        if !fits {
            give_up!(state, undo);
        }
        *place = Slot { bits, meta };
        put::<R>(state, step, at, map, out, undo.add(1), bits)
    }
}
