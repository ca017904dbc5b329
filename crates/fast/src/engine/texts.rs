//! Texts: strings of seven bits a character, and values with their length before them; and decimals encoded as one.

use super::ints::{
    I32, I64, IntOutcome, U32, VALUE, assigned, empty, int, skip_absent_run, skip_int, slot_of,
};
use super::raw::{ALL, BOTH, HOT, MORE, STOPS, give_up, go_on, handlers, length, read_word};
use super::state::{BytePtr, EngineState, EngineStep, StepHandler};
use crate::entry::{DecodedEntry, DecodedEntryKind};
use crate::packed_value::PackedValue;
use crate::slot::{self, DictionarySlot};
use crate::template::WireType;
use crate::wire::EXPONENT_MAX;

pub(super) const ASCII: u8 = WireType::Ascii as u8;
pub(super) const UNICODE: u8 = WireType::Unicode as u8;
pub(super) const BYTES: u8 = WireType::Bytes as u8;
pub(super) const DECIMAL: u8 = WireType::Decimal as u8;

/// How the value is encoded.
pub(super) const PLAIN: u8 = 0;
pub(super) const DEFAULT: u8 = 1;
pub(super) const COPY: u8 = 2;
/// By default an initial value; by default a long one.
pub(super) const INITIAL: u8 = 3;
pub(super) const INITIAL_LONG: u8 = 4;
/// A field without an operator that is not selected.
pub(super) const PASSED: u8 = 5;

/// The bits of a slot and an entry that hold an exponent, or the length of a short text.
const EXTRA: u64 = 0xff << 56;

/// A value in two words: as in an entry, and its exponent or length where an entry has it.
#[derive(Clone, Copy)]
struct EntryWords {
    bits: u64,
    extra: u64,
}

/// A value that may be a text of more than eight bytes. Its words then give the text's place in the arena.
#[derive(Clone, Copy)]
struct EntryValue {
    words: EntryWords,
    is_long: bool,
}

enum TextOutcome {
    Value(EntryWords, BytePtr),
    Null(BytePtr),
    /// Longer than is read here.
    More,
    /// A text of more than eight bytes.
    Long,
    Other,
}

/// Reads a string of up to eight characters.
///
/// # Safety
/// The caller must pass a cursor with eight readable bytes.
#[inline(always)]
unsafe fn ascii<const N: bool, const L: u8>(cursor: BytePtr) -> TextOutcome {
    // SAFETY: `cursor` has eight bytes, by the contract.
    let (first, next) = unsafe { (*cursor, cursor.add(1)) };
    if L != MORE && first > 0x80 {
        return TextOutcome::Value(EntryWords { bits: u64::from(first & 0x7f), extra: 1 << 56 }, next);
    }
    if first & 0x7f == 0 {
        // It begins with zero: it is absent or empty, or the exact engine must read it.
        return match first {
            0 => TextOutcome::Other,
            _ if N => TextOutcome::Null(next),
            _ => TextOutcome::Value(EntryWords { bits: 0, extra: 0 }, next),
        };
    }
    if L == HOT {
        return TextOutcome::More;
    }
    // SAFETY: `cursor` has eight bytes, by the contract.
    let word = unsafe { read_word(cursor) };
    let stops = word & STOPS;
    if stops == 0 {
        return TextOutcome::Long;
    }
    let n = length(stops);
    // Up to the stop bit, without it.
    let bits = word & ((stops & stops.wrapping_neg()) - 1);
    // SAFETY: `cursor` has eight bytes, by the contract; n is at most eight.
    TextOutcome::Value(EntryWords { bits, extra: u64::from(n) << 56 }, unsafe { cursor.add(n as usize) })
}

/// Skips a string that is not selected, and finds the same faults.
///
/// # Safety
/// The caller must pass a cursor with eight readable bytes.
#[inline(always)]
unsafe fn skip_ascii<const N: bool, const L: u8>(cursor: BytePtr) -> TextOutcome {
    let nothing = EntryWords { bits: 0, extra: 0 };
    // SAFETY: `cursor` has eight bytes, by the contract.
    let (first, next) = unsafe { (*cursor, cursor.add(1)) };
    if L != MORE && first > 0x80 {
        return TextOutcome::Value(nothing, next);
    }
    if first & 0x7f == 0 {
        return match first {
            0 => TextOutcome::Other,
            _ if N => TextOutcome::Null(next),
            _ => TextOutcome::Value(nothing, next),
        };
    }
    if L == HOT {
        return TextOutcome::More;
    }
    // SAFETY: `cursor` has eight bytes, by the contract.
    let stops = unsafe { read_word(cursor) } & STOPS;
    if stops == 0 {
        return TextOutcome::Long;
    }
    // SAFETY: `cursor` has eight bytes, by the contract; it is the eighth byte at most.
    TextOutcome::Value(nothing, unsafe { cursor.add(length(stops) as usize) })
}

/// Reads a byte vector of up to eight bytes after its length.
///
/// # Safety
/// The caller must pass a cursor with nine readable bytes.
#[inline(always)]
unsafe fn vector<const N: bool>(cursor: BytePtr) -> TextOutcome {
    // SAFETY: `cursor` has nine bytes, by the contract.
    let (first, next) = unsafe { (*cursor, cursor.add(1)) };
    if N && first == 0x80 {
        return TextOutcome::Null(next);
    }
    let length = usize::from(first).wrapping_sub(0x80 + usize::from(N));
    if length > 8 {
        return TextOutcome::Long;
    }
    // SAFETY: `cursor` has nine bytes, by the contract; of the nine bytes these are not the first.
    let (word, next) = unsafe { (read_word(next), next.add(length)) };
    let unused = 64 - 8 * length as u32;
    let bits = if length == 0 { 0 } else { word << unused >> unused };
    TextOutcome::Value(EntryWords { bits, extra: (length as u64) << 56 }, next)
}

/// Reads an integer beside another integer. The first integer tells nothing about the length of the second.
///
/// # Safety
/// The caller must pass a cursor with ten readable bytes.
#[inline(always)]
unsafe fn sized<const K: u8, const N: bool, const BMI2: bool, const L: u8>(
    cursor: BytePtr,
) -> (IntOutcome, BytePtr) {
    // SAFETY: `cursor` has ten bytes, by the contract.
    unsafe { if L == HOT { int::<K, N, BMI2, BOTH>(cursor) } else { int::<K, N, BMI2, ALL>(cursor) } }
}

/// Reads a decimal.
///
/// # Safety
/// The caller must pass a cursor with 18 readable bytes.
#[inline(always)]
unsafe fn decimal<const N: bool, const BMI2: bool, const L: u8>(cursor: BytePtr) -> TextOutcome {
    // SAFETY: `cursor` has 18 bytes, by the contract.
    let first_byte = unsafe { *cursor };
    if first_byte < 0x80 {
        return TextOutcome::Other;
    }
    let exponent = i64::from((first_byte << 1) as i8 >> 1);
    // SAFETY: `cursor` has 18 bytes, by the contract.
    let next_cursor = unsafe { cursor.add(1) };
    if N && exponent == 0 {
        return TextOutcome::Null(next_cursor);
    }
    let exponent = exponent - i64::from(N && exponent > 0);
    if exponent < -EXPONENT_MAX {
        return TextOutcome::Other;
    }
    // SAFETY: `cursor` has 18 bytes, by the contract.
    match unsafe { sized::<I64, false, BMI2, L>(next_cursor) } {
        (IntOutcome::Value(bits), cursor) => {
            TextOutcome::Value(EntryWords { bits, extra: (exponent as u64) << 56 }, cursor)
        }
        (IntOutcome::More, _) => TextOutcome::More,
        _ => TextOutcome::Other,
    }
}

/// Skips a decimal without its value.
///
/// # Safety
/// The caller must pass a cursor with 18 readable bytes.
#[inline(always)]
unsafe fn skip_decimal<const N: bool, const BMI2: bool, const L: u8>(cursor: BytePtr) -> TextOutcome {
    // SAFETY: `cursor` has 18 bytes, by the contract.
    let first_byte = unsafe { *cursor };
    // SAFETY: `cursor` has 18 bytes, by the contract.
    let next_cursor = unsafe { cursor.add(1) };
    if N && first_byte == 0x80 {
        return TextOutcome::Null(next_cursor);
    }
    // More than a byte, or beyond the bounds of an exponent.
    if first_byte < 0x80 || first_byte == 0xc0 {
        return TextOutcome::Other;
    }
    // SAFETY: `cursor` has 18 bytes, by the contract.
    let mantissa = unsafe {
        if L == HOT {
            skip_int::<I64, false, BMI2, BOTH>(next_cursor)
        } else {
            skip_int::<I64, false, BMI2, ALL>(next_cursor)
        }
    };
    match mantissa {
        (IntOutcome::Value(_), cursor) => TextOutcome::Value(EntryWords { bits: 0, extra: 0 }, cursor),
        (IntOutcome::More, _) => TextOutcome::More,
        _ => TextOutcome::Other,
    }
}

/// Puts a value into an entry, and continues.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`].
#[inline(always)]
unsafe fn write_words(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
    word: EntryWords,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        *out = DecodedEntry { bits: word.bits, meta: (*step).meta | word.extra };
        let out = out.byte_add((*step).advance);
        go_on!(state, step + 1, cursor, map, out)
    }
}

/// Puts a value that may be a text in the arena into an entry, and continues.
///
/// It has six arguments, as [`write_words`] has: the first five are a handler's and stay in their registers.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`].
#[inline(always)]
unsafe fn write_value<const K: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
    value: EntryValue,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        let EntryValue { words, is_long } = value;
        if K != DECIMAL && is_long {
            if !(*(*state).workspace).text_fits(words.bits as u32 as usize) {
                give_up!();
            }
            *out = DecodedEntry { bits: words.bits, meta: (*step).meta + LONG };
            let out = out.byte_add((*step).advance);
            return go_on!(state, step + 1, cursor, map, out);
        }
        write_words(state, step, cursor, map, out, words)
    }
}

/// The difference between the meta words of a short text and a long text.
const LONG: u64 = (DecodedEntryKind::Long as u64 - DecodedEntryKind::Short as u64) << 48;

handlers! {
    /// A text or a decimal, of type K; O: how it is encoded.
    value [K: u8, N: bool, O: u8] value_body
}

/// Decodes a text or a decimal with any operator but delta.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`]. If `BMI2`, the machine must have it.
#[inline(always)]
unsafe fn value_body<const K: u8, const N: bool, const O: u8, const BMI2: bool, const L: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        if L == HOT && O != PLAIN && O != PASSED && map & (*step).mask == 0 {
            if O == COPY {
                let slot = slot_of(state, step);
                if slot.meta & !EXTRA == assigned(K) {
                    let word = EntryWords { bits: slot.bits, extra: slot.meta & EXTRA };
                    return write_words(state, step, cursor, map, out, word);
                }
                if N && slot.meta as u8 == slot::SlotState::Empty as u8 {
                    return go_on!(state, step + 1, cursor, map, out);
                }
                return previous::<K, N>(state, step, cursor, map, out);
            }
            if O == INITIAL_LONG {
                return write_value::<K>(state, step, cursor, map, out, initial(step));
            }
            if O == INITIAL {
                *out = DecodedEntry { bits: (*step).initial, meta: (*step).beside };
                let out = out.byte_add((*step).advance);
                return go_on!(state, step + 1, cursor, map, out);
            }
            return skip_absent_run::<VALUE>(state, step, cursor, map, out);
        }
        let outcome = match (K, O == PASSED) {
            (DECIMAL, false) => decimal::<N, BMI2, L>(cursor),
            (DECIMAL, true) => skip_decimal::<N, BMI2, L>(cursor),
            (ASCII, false) => ascii::<N, L>(cursor),
            (ASCII, true) => skip_ascii::<N, L>(cursor),
            _ => vector::<N>(cursor),
        };
        match outcome {
            TextOutcome::Value(word, cursor) => {
                if O == COPY {
                    *slot_of(state, step) =
                        DictionarySlot { bits: word.bits, meta: assigned(K) | word.extra };
                }
                if O == PASSED {
                    return go_on!(state, step + 1, cursor, map, out);
                }
                write_words(state, step, cursor, map, out, word)
            }
            TextOutcome::Null(cursor) => {
                if O == COPY {
                    *slot_of(state, step) = DictionarySlot { bits: 0, meta: empty(K) };
                }
                go_on!(state, step + 1, cursor, map, out)
            }
            TextOutcome::More => value::more::<K, N, O, BMI2, L>(state, step, cursor, map, out),
            TextOutcome::Long if K == ASCII => long::<O>(state, step, cursor, map, out),
            TextOutcome::Long if K != DECIMAL => long_vector::<K, N, O>(state, step, cursor, map, out),
            _ => give_up!(),
        }
    }
}

/// Returns the initial value of a step.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`].
#[inline(always)]
unsafe fn initial(step: *const EngineStep) -> EntryValue {
    // SAFETY: by the contract of `StepHandler`, `step` is one of the program's.
    let step = unsafe { &*step };
    let words = EntryWords { bits: step.initial, extra: u64::from(step.initial_extra) << 56 };
    EntryValue { words, is_long: step.initial_long }
}

/// Uses the previous value if it is undefined, empty or long.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`].
#[inline(never)]
unsafe fn previous<const K: u8, const N: bool>(
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
            slot::SlotState::Empty if N => go_on!(state, step + 1, cursor, map, out),
            slot::SlotState::Long if K != DECIMAL && (slot.meta >> 8) as u8 == K => {
                let words = EntryWords { bits: slot.bits, extra: 0 };
                write_value::<K>(state, step, cursor, map, out, EntryValue { words, is_long: true })
            }
            slot::SlotState::Undefined if (*step).has_initial => {
                let value = initial(step);
                let EntryValue { words, is_long } = value;
                *slot = DictionarySlot {
                    bits: words.bits,
                    meta: (assigned(K) | words.extra) + u64::from(is_long),
                };
                write_value::<K>(state, step, cursor, map, out, value)
            }
            slot::SlotState::Undefined if N => {
                *slot = DictionarySlot { bits: 0, meta: empty(K) };
                go_on!(state, step + 1, cursor, map, out)
            }
            _ => give_up!(),
        }
    }
}

/// Decodes a text of more than eight bytes.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`].
#[inline(never)]
unsafe fn long<const O: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room; the
    // text is looked for inside of the message.
    unsafe {
        let bytes_left = (*state).end.offset_from(cursor);
        if bytes_left < 9 {
            give_up!();
        }
        let bytes_after = std::slice::from_raw_parts(cursor, bytes_left as usize);
        // Most have at most sixteen.
        let stop = match bytes_after.get(8..16).map(|_| read_word(cursor.add(8)) & STOPS) {
            Some(stops @ 1..) => Some(7 + length(stops) as usize),
            _ => bytes_after.iter().position(|b| *b >= 0x80),
        };
        let Some(stop) = stop else { give_up!() };
        write_long_text::<ASCII, O>(state, step, WireText { start: cursor, length: stop + 1 }, map, out)
    }
}

/// Decodes a byte vector of more than eight bytes after its length.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`].
#[inline(never)]
unsafe fn long_vector<const K: u8, const N: bool, const O: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room; all
    // of the bytes are looked for inside of the message.
    unsafe {
        let (IntOutcome::Value(length), cursor) = int::<U32, N, false, ALL>(cursor) else { give_up!() };
        let bytes_left = (*state).end.offset_from(cursor);
        if bytes_left < 0 || length > bytes_left as u64 {
            give_up!();
        }
        write_long_text::<K, O>(state, step, WireText { start: cursor, length: length as usize }, map, out)
    }
}

/// A text in the message: the place of its bytes.
#[derive(Clone, Copy)]
struct WireText {
    start: BytePtr,
    /// In bytes, the one with a stop bit included.
    length: usize,
}

/// Puts a text into the arena, and continues after it.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`]. The text must be inside the message and have more than eight
/// bytes.
#[inline(always)]
unsafe fn write_long_text<const K: u8, const O: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    text: WireText,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    let WireText { start, length } = text;
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        let workspace = &mut *(*state).workspace;
        if !workspace.text_fits(length) {
            give_up!();
        }
        let mut out = out;
        if O != PASSED {
            let arena = &mut workspace.arena;
            let text_start = arena.len();
            arena.reserve(length.max(16));
            let text_pointer = arena.as_mut_ptr().add(text_start);
            if length <= 16 && (*state).end.offset_from(start) >= 16 {
                // Most are short. The next text overwrites the bytes after the text.
                text_pointer.cast::<[u8; 16]>().write(start.cast::<[u8; 16]>().read());
            } else {
                std::ptr::copy_nonoverlapping(start, text_pointer, length);
            }
            if K == ASCII {
                // Without its stop bit.
                *text_pointer.add(length - 1) &= 0x7f;
            }
            arena.set_len(text_start + length);
            let bits = PackedValue::long(text_start, length).bits;
            if O == COPY {
                *slot_of(state, step) = DictionarySlot { bits, meta: assigned(K) + 1 };
            }
            *out = DecodedEntry { bits, meta: (*step).meta + LONG };
            out = out.byte_add((*step).advance);
        }
        let mut cursor = start.add(length);
        if cursor > (*state).check {
            cursor = (*state).edge(cursor);
            if cursor.is_null() {
                give_up!();
            }
        }
        go_on!(state, step + 1, cursor, map, out)
    }
}

handlers! {
    /// A decimal as a difference to the one before.
    delta [N: bool] delta_body
}

/// Decodes a decimal with the operator delta.
///
/// # Safety
/// The caller must uphold the contract of [`StepHandler`]. If `BMI2`, the machine must have it.
#[inline(always)]
unsafe fn delta_body<const N: bool, const BMI2: bool, const L: u8>(
    state: *mut EngineState,
    step: *const EngineStep,
    cursor: BytePtr,
    map: u64,
    out: *mut DecodedEntry,
) -> BytePtr {
    // SAFETY: by the contract of `StepHandler`, the steps are the program's, `cursor` has `SLACK` bytes, and `out` has room.
    unsafe {
        let text_start = cursor;
        let (exponent, cursor) = match sized::<I32, N, BMI2, L>(cursor) {
            (IntOutcome::Value(exponent), cursor) => (exponent as i64, cursor),
            (IntOutcome::Null, cursor) => return go_on!(state, step + 1, cursor, map, out),
            (IntOutcome::More, _) => return delta::more::<N, BMI2, L>(state, step, text_start, map, out),
            (IntOutcome::Other, _) => give_up!(),
        };
        let (mantissa, cursor) = match sized::<I64, false, BMI2, L>(cursor) {
            (IntOutcome::Value(mantissa), cursor) => (mantissa, cursor),
            (IntOutcome::More, _) => return delta::more::<N, BMI2, L>(state, step, text_start, map, out),
            _ => give_up!(),
        };
        let slot = slot_of(state, step);
        let base = if slot.meta & !EXTRA == assigned(DECIMAL) {
            EntryWords { bits: slot.bits, extra: slot.meta }
        } else if slot.state() == slot::SlotState::Undefined {
            // Zero if there is none.
            initial(step).words
        } else {
            give_up!()
        };
        let exponent = i64::from((base.extra >> 56) as i8) + exponent;
        let (mantissa, has_overflow) = (base.bits as i64).overflowing_add(mantissa as i64);
        if has_overflow || !(-EXPONENT_MAX..=EXPONENT_MAX).contains(&exponent) {
            give_up!();
        }
        let word = EntryWords { bits: mantissa as u64, extra: (exponent as u64) << 56 };
        *slot = DictionarySlot { bits: word.bits, meta: assigned(DECIMAL) | word.extra };
        write_words(state, step, cursor, map, out, word)
    }
}
