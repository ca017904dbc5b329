//! Texts: strings of seven bits a character, and what has its length before it; and decimals told as one.

use super::ints::{I32, I64, Read, U32, VALUE, assigned, empty, int, left_out, pass, slot_of};
use super::raw::{ALL, BOTH, HOT, MORE, STOPS, eight, give_up, go_on, handlers, length};
use super::state::{At, Handler, State, Step};
use crate::entry::{Entry, Form};
use crate::found::Found;
use crate::slot::{self, Slot};
use crate::template::Type;
use crate::wire::EXPONENT_MAX;

pub(super) const ASCII: u8 = Type::Ascii as u8;
pub(super) const UNICODE: u8 = Type::Unicode as u8;
pub(super) const BYTES: u8 = Type::Bytes as u8;
pub(super) const DECIMAL: u8 = Type::Decimal as u8;

/// How the value is told.
pub(super) const PLAIN: u8 = 0;
pub(super) const DEFAULT: u8 = 1;
pub(super) const COPY: u8 = 2;
/// By default an initial value; by default a long one.
pub(super) const INITIAL: u8 = 3;
pub(super) const INITIAL_LONG: u8 = 4;
/// Without an operator, and nobody subscribed to it.
pub(super) const PASSED: u8 = 5;

/// Where a slot and an entry have an exponent, or the length of a short text.
const EXTRA: u64 = 0xff << 56;

/// A value in two words: as in an entry, and its exponent or length where an entry has it.
#[derive(Clone, Copy)]
struct Word {
    bits: u64,
    extra: u64,
}

enum Got {
    Value(Word, At),
    Null(At),
    /// Longer than is read here.
    More,
    /// A text of more than eight bytes.
    Long,
    Other,
}

/// # Safety
/// There are eight bytes.
#[inline(always)]
unsafe fn ascii<const N: bool, const L: u8>(at: At) -> Got {
    // SAFETY: the caller's.
    let (first, next) = unsafe { (*at, at.add(1)) };
    if L != MORE && first > 0x80 {
        return Got::Value(Word { bits: u64::from(first & 0x7f), extra: 1 << 56 }, next);
    }
    if first & 0x7f == 0 {
        // It begins with a nought: absent or empty, or something for the exact engine.
        return match first {
            0 => Got::Other,
            _ if N => Got::Null(next),
            _ => Got::Value(Word { bits: 0, extra: 0 }, next),
        };
    }
    if L == HOT {
        return Got::More;
    }
    // SAFETY: the caller's.
    let word = unsafe { eight(at) };
    let stops = word & STOPS;
    if stops == 0 {
        return Got::Long;
    }
    let n = length(stops);
    // Up to the stop bit, without it.
    let bits = word & ((stops & stops.wrapping_neg()) - 1);
    // SAFETY: the caller's; n is at most eight.
    Got::Value(Word { bits, extra: u64::from(n) << 56 }, unsafe { at.add(n as usize) })
}

/// Passes over a string that nobody wants, finding the same wrong.
///
/// # Safety
/// There are eight bytes.
#[inline(always)]
unsafe fn pass_ascii<const N: bool, const L: u8>(at: At) -> Got {
    let nothing = Word { bits: 0, extra: 0 };
    // SAFETY: the caller's.
    let (first, next) = unsafe { (*at, at.add(1)) };
    if L != MORE && first > 0x80 {
        return Got::Value(nothing, next);
    }
    if first & 0x7f == 0 {
        return match first {
            0 => Got::Other,
            _ if N => Got::Null(next),
            _ => Got::Value(nothing, next),
        };
    }
    if L == HOT {
        return Got::More;
    }
    // SAFETY: the caller's.
    let stops = unsafe { eight(at) } & STOPS;
    if stops == 0 {
        return Got::Long;
    }
    // SAFETY: the caller's; it is the eighth byte at most.
    Got::Value(nothing, unsafe { at.add(length(stops) as usize) })
}

/// Up to eight bytes with their number before them.
///
/// # Safety
/// There are nine bytes.
#[inline(always)]
unsafe fn vector<const N: bool>(at: At) -> Got {
    // SAFETY: the caller's.
    let (first, next) = unsafe { (*at, at.add(1)) };
    if N && first == 0x80 {
        return Got::Null(next);
    }
    let length = usize::from(first).wrapping_sub(0x80 + usize::from(N));
    if length > 8 {
        return Got::Long;
    }
    // SAFETY: the caller's; of the nine bytes these are not the first.
    let (word, next) = unsafe { (eight(next), next.add(length)) };
    let unused = 64 - 8 * length as u32;
    let bits = if length == 0 { 0 } else { word << unused >> unused };
    Got::Value(Word { bits, extra: (length as u64) << 56 }, next)
}

/// An integer beside another: what comes first says nothing of its bytes.
///
/// # Safety
/// There are ten bytes.
#[inline(always)]
unsafe fn sized<const K: u8, const N: bool, const BMI2: bool, const L: u8>(at: At) -> (Read, At) {
    // SAFETY: the caller's.
    unsafe { if L == HOT { int::<K, N, BMI2, BOTH>(at) } else { int::<K, N, BMI2, ALL>(at) } }
}

/// # Safety
/// There are 18 bytes.
#[inline(always)]
unsafe fn decimal<const N: bool, const BMI2: bool, const L: u8>(at: At) -> Got {
    // SAFETY: the caller's.
    let first = unsafe { *at };
    if first < 0x80 {
        return Got::Other;
    }
    let exponent = i64::from((first << 1) as i8 >> 1);
    // SAFETY: the caller's.
    let next = unsafe { at.add(1) };
    if N && exponent == 0 {
        return Got::Null(next);
    }
    let exponent = exponent - i64::from(N && exponent > 0);
    if exponent < -EXPONENT_MAX {
        return Got::Other;
    }
    // SAFETY: the caller's.
    match unsafe { sized::<I64, false, BMI2, L>(next) } {
        (Read::Value(bits), at) => Got::Value(Word { bits, extra: (exponent as u64) << 56 }, at),
        (Read::More, _) => Got::More,
        _ => Got::Other,
    }
}

/// The same for a decimal.
///
/// # Safety
/// There are 18 bytes.
#[inline(always)]
unsafe fn pass_decimal<const N: bool, const BMI2: bool, const L: u8>(at: At) -> Got {
    // SAFETY: the caller's.
    let first = unsafe { *at };
    // SAFETY: the caller's.
    let next = unsafe { at.add(1) };
    if N && first == 0x80 {
        return Got::Null(next);
    }
    // More than a byte, or beyond what an exponent may be.
    if first < 0x80 || first == 0xc0 {
        return Got::Other;
    }
    // SAFETY: the caller's.
    let mantissa = unsafe {
        if L == HOT { pass::<I64, false, BMI2, BOTH>(next) } else { pass::<I64, false, BMI2, ALL>(next) }
    };
    match mantissa {
        (Read::Value(_), at) => Got::Value(Word { bits: 0, extra: 0 }, at),
        (Read::More, _) => Got::More,
        _ => Got::Other,
    }
}

/// Puts a value into an entry, and goes on.
///
/// # Safety
/// As [`Handler`].
#[inline(always)]
unsafe fn put(state: *mut State, step: *const Step, at: At, map: u64, out: *mut Entry, word: Word) -> At {
    // SAFETY: the caller's; there is room for an entry.
    unsafe {
        *out = Entry { bits: word.bits, meta: (*step).meta | word.extra };
        let out = out.byte_add((*step).advance);
        go_on!(state, step + 1, at, map, out)
    }
}

/// The same of a value that may be a text in the arena.
///
/// # Safety
/// As [`Handler`].
#[inline(always)]
unsafe fn put_any<const K: u8>(
    state: *mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
    (word, long): (Word, bool),
) -> At {
    // SAFETY: the caller's.
    unsafe {
        if K != DECIMAL && long {
            if !(*(*state).workspace).text_fits(word.bits as u32 as usize) {
                give_up!();
            }
            *out = Entry { bits: word.bits, meta: (*step).meta + LONG };
            let out = out.byte_add((*step).advance);
            return go_on!(state, step + 1, at, map, out);
        }
        put(state, step, at, map, out, word)
    }
}

/// From the form of a short text to that of a long one.
const LONG: u64 = (Form::Long as u64 - Form::Short as u64) << 48;

handlers! {
    /// A text or a decimal, of type K; O: how it is told.
    value [K: u8, N: bool, O: u8] value_body
}

/// # Safety
/// As [`Handler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn value_body<const K: u8, const N: bool, const O: u8, const BMI2: bool, const L: u8>(
    state: *mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
) -> At {
    // SAFETY: the caller's.
    unsafe {
        if L == HOT && O != PLAIN && O != PASSED && map & (*step).mask == 0 {
            if O == COPY {
                let slot = slot_of(state, step);
                if slot.meta & !EXTRA == assigned(K) {
                    let word = Word { bits: slot.bits, extra: slot.meta & EXTRA };
                    return put(state, step, at, map, out, word);
                }
                if N && slot.meta as u8 == slot::State::Empty as u8 {
                    return go_on!(state, step + 1, at, map, out);
                }
                return previous::<K, N>(state, step, at, map, out);
            }
            if O == INITIAL_LONG {
                return put_any::<K>(state, step, at, map, out, initial(step));
            }
            if O == INITIAL {
                *out = Entry { bits: (*step).initial, meta: (*step).beside };
                let out = out.byte_add((*step).advance);
                return go_on!(state, step + 1, at, map, out);
            }
            return left_out::<VALUE>(state, step, at, map, out);
        }
        let got = match (K, O == PASSED) {
            (DECIMAL, false) => decimal::<N, BMI2, L>(at),
            (DECIMAL, true) => pass_decimal::<N, BMI2, L>(at),
            (ASCII, false) => ascii::<N, L>(at),
            (ASCII, true) => pass_ascii::<N, L>(at),
            _ => vector::<N>(at),
        };
        match got {
            Got::Value(word, at) => {
                if O == COPY {
                    *slot_of(state, step) = Slot { bits: word.bits, meta: assigned(K) | word.extra };
                }
                if O == PASSED {
                    return go_on!(state, step + 1, at, map, out);
                }
                put(state, step, at, map, out, word)
            }
            Got::Null(at) => {
                if O == COPY {
                    *slot_of(state, step) = Slot { bits: 0, meta: empty(K) };
                }
                go_on!(state, step + 1, at, map, out)
            }
            Got::More => value::more::<K, N, O, BMI2, L>(state, step, at, map, out),
            Got::Long if K == ASCII => long::<O>(state, step, at, map, out),
            Got::Long if K != DECIMAL => long_vector::<K, N, O>(state, step, at, map, out),
            _ => give_up!(),
        }
    }
}

/// # Safety
/// As [`Handler`].
#[inline(always)]
unsafe fn initial(step: *const Step) -> (Word, bool) {
    // SAFETY: the caller's.
    let step = unsafe { &*step };
    (Word { bits: step.initial, extra: u64::from(step.initial_extra) << 56 }, step.initial_long)
}

/// The value before, where it is none, empty or long.
///
/// # Safety
/// As [`Handler`].
#[inline(never)]
unsafe fn previous<const K: u8, const N: bool>(
    state: *mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
) -> At {
    // SAFETY: the caller's.
    unsafe {
        let slot = slot_of(state, step);
        match slot.state() {
            slot::State::Empty if N => go_on!(state, step + 1, at, map, out),
            slot::State::Long if K != DECIMAL && (slot.meta >> 8) as u8 == K => {
                put_any::<K>(state, step, at, map, out, (Word { bits: slot.bits, extra: 0 }, true))
            }
            slot::State::Undefined if (*step).has_initial => {
                let (word, long) = initial(step);
                *slot = Slot { bits: word.bits, meta: (assigned(K) | word.extra) + u64::from(long) };
                put_any::<K>(state, step, at, map, out, (word, long))
            }
            slot::State::Undefined if N => {
                *slot = Slot { bits: 0, meta: empty(K) };
                go_on!(state, step + 1, at, map, out)
            }
            _ => give_up!(),
        }
    }
}

/// A text of more than eight bytes.
///
/// # Safety
/// As [`Handler`].
#[inline(never)]
unsafe fn long<const O: u8>(state: *mut State, step: *const Step, at: At, map: u64, out: *mut Entry) -> At {
    // SAFETY: the caller's; the text is looked for inside of the message.
    unsafe {
        let left = (*state).end.offset_from(at);
        if left < 9 {
            give_up!();
        }
        let rest = std::slice::from_raw_parts(at, left as usize);
        // Most have no more than sixteen.
        let stop = match rest.get(8..16).map(|_| eight(at.add(8)) & STOPS) {
            Some(stops @ 1..) => Some(7 + length(stops) as usize),
            _ => rest.iter().position(|b| *b >= 0x80),
        };
        let Some(stop) = stop else { give_up!() };
        put_long::<ASCII, O>(state, step, (at, stop + 1), map, out)
    }
}

/// More than eight bytes with their number before them.
///
/// # Safety
/// As [`Handler`].
#[inline(never)]
unsafe fn long_vector<const K: u8, const N: bool, const O: u8>(
    state: *mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
) -> At {
    // SAFETY: the caller's; all of the bytes are looked for inside of the message.
    unsafe {
        let (Read::Value(length), at) = int::<U32, N, false, ALL>(at) else { give_up!() };
        let left = (*state).end.offset_from(at);
        if left < 0 || length > left as u64 {
            give_up!();
        }
        put_long::<K, O>(state, step, (at, length as usize), map, out)
    }
}

/// Puts a text into the arena, and goes on behind it.
///
/// # Safety
/// As [`Handler`]; the text is inside of the message, and has more than eight bytes.
#[inline(always)]
unsafe fn put_long<const K: u8, const O: u8>(
    state: *mut State,
    step: *const Step,
    (at, length): (At, usize),
    map: u64,
    out: *mut Entry,
) -> At {
    // SAFETY: the caller's.
    unsafe {
        let workspace = &mut *(*state).workspace;
        if !workspace.text_fits(length) {
            give_up!();
        }
        let mut out = out;
        if O != PASSED {
            let arena = &mut workspace.arena;
            let from = arena.len();
            arena.reserve(length.max(16));
            let to = arena.as_mut_ptr().add(from);
            if length <= 16 && (*state).end.offset_from(at) >= 16 {
                // Most are so short; what is not of the text is written over by the next one.
                to.cast::<[u8; 16]>().write(at.cast::<[u8; 16]>().read());
            } else {
                std::ptr::copy_nonoverlapping(at, to, length);
            }
            if K == ASCII {
                // Without its stop bit.
                *to.add(length - 1) &= 0x7f;
            }
            arena.set_len(from + length);
            let bits = Found::long(from, length).bits;
            if O == COPY {
                *slot_of(state, step) = Slot { bits, meta: assigned(K) + 1 };
            }
            *out = Entry { bits, meta: (*step).meta + LONG };
            out = out.byte_add((*step).advance);
        }
        let mut at = at.add(length);
        if at > (*state).check {
            at = (*state).edge(at);
            if at.is_null() {
                give_up!();
            }
        }
        go_on!(state, step + 1, at, map, out)
    }
}

handlers! {
    /// A decimal as a difference to the one before.
    delta [N: bool] delta_body
}

/// # Safety
/// As [`Handler`]; with BMI2 the machine has it.
#[inline(always)]
unsafe fn delta_body<const N: bool, const BMI2: bool, const L: u8>(
    state: *mut State,
    step: *const Step,
    at: At,
    map: u64,
    out: *mut Entry,
) -> At {
    // SAFETY: the caller's.
    unsafe {
        let start = at;
        let (exponent, at) = match sized::<I32, N, BMI2, L>(at) {
            (Read::Value(exponent), at) => (exponent as i64, at),
            (Read::Null, at) => return go_on!(state, step + 1, at, map, out),
            (Read::More, _) => return delta::more::<N, BMI2, L>(state, step, start, map, out),
            (Read::Other, _) => give_up!(),
        };
        let (mantissa, at) = match sized::<I64, false, BMI2, L>(at) {
            (Read::Value(mantissa), at) => (mantissa, at),
            (Read::More, _) => return delta::more::<N, BMI2, L>(state, step, start, map, out),
            _ => give_up!(),
        };
        let slot = slot_of(state, step);
        let base = if slot.meta & !EXTRA == assigned(DECIMAL) {
            Word { bits: slot.bits, extra: slot.meta }
        } else if slot.state() == slot::State::Undefined {
            // Nought where there is none.
            initial(step).0
        } else {
            give_up!()
        };
        let exponent = i64::from((base.extra >> 56) as i8) + exponent;
        let (mantissa, over) = (base.bits as i64).overflowing_add(mantissa as i64);
        if over || !(-EXPONENT_MAX..=EXPONENT_MAX).contains(&exponent) {
            give_up!();
        }
        let word = Word { bits: mantissa as u64, extra: (exponent as u64) << 56 };
        *slot = Slot { bits: word.bits, meta: assigned(DECIMAL) | word.extra };
        put(state, step, at, map, out, word)
    }
}
