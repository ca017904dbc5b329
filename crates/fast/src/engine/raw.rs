//! Building blocks of handlers: bytes read without a look at the end, and the macros that put them in line.

use super::state::BytePtr;

/// Gives the message up.
macro_rules! give_up {
    () => {
        return std::ptr::null()
    };
}
pub(super) use give_up;

/// Continues with the step that is `$n` steps ahead. It is in the block: the last step never continues. As unsafe as
/// the handler around it.
macro_rules! go_on {
    ($state:ident, $step:ident + $n:expr, $at:expr, $map:ident, $out:ident) => {{
        let next = $step.add($n);
        ((*next).run)($state, next, $at, $map, $out)
    }};
}
pub(super) use go_on;

/// A module with the handlers of a body, by its constants. The last constant but one says whether the machine has BMI2.
/// The last constant says how much is in line: the usual case ([`HOT`], in few registers), the frequent cases, or
/// everything. A body continues from one to the next by `more`.
macro_rules! handlers {
    ($(#[$meta:meta])* $name:ident [$($c:ident: $t:ty),*] $body:ident) => {
        $(#[$meta])*
        pub(super) mod $name {
            use super::*;
            use crate::engine::raw::{ALL, HOT, MORE};

            /// Returns the handler of [`EngineStep::run`] for the hot loop.
            pub fn hot<$(const $c: $t),*>(bmi2: bool) -> StepHandler {
                #[cfg(target_arch = "x86_64")]
                if bmi2 {
                    return with_bmi2::<$($c,)* HOT>;
                }
                let _ = bmi2;
                portable::<$($c,)* HOT>
            }

            /// Runs the body again at the next level: `MORE` after `HOT`, otherwise `ALL`.
            ///
            /// # Safety
            /// The caller must uphold the contract of [`StepHandler`]. If `BMI2`, the machine must have it.
            #[allow(dead_code, reason = "not all bodies have more to do")]
            #[inline(always)]
            pub unsafe fn more<$(const $c: $t,)* const BMI2: bool, const L: u8>(
                state: *mut EngineState, step: *const EngineStep, at: BytePtr, map: u64, out: *mut DecodedEntry,
            ) -> BytePtr {
                // SAFETY: by the contract of `StepHandler`, the steps are the program's, `at` has `SLACK` bytes, and `out`
                // has room.
                unsafe {
                    if L != HOT {
                        return portable::<$($c,)* ALL>(state, step, at, map, out);
                    }
                    #[cfg(target_arch = "x86_64")]
                    if BMI2 {
                        return with_bmi2::<$($c,)* MORE>(state, step, at, map, out);
                    }
                    portable::<$($c,)* MORE>(state, step, at, map, out)
                }
            }

            /// Runs the body without BMI2.
            ///
            /// # Safety
            /// The caller must uphold the contract of [`StepHandler`].
            #[inline(never)]
            unsafe fn portable<$(const $c: $t,)* const L: u8>(
                state: *mut EngineState, step: *const EngineStep, at: BytePtr, map: u64, out: *mut DecodedEntry,
            ) -> BytePtr {
                // SAFETY: the handler has the contract of `StepHandler`, and so has its body.
                unsafe { $body::<$($c,)* false, L>(state, step, at, map, out) }
            }

            /// Runs the body with BMI2.
            ///
            /// # Safety
            /// The caller must uphold the contract of [`StepHandler`], and the machine must have BMI2.
            #[cfg(target_arch = "x86_64")]
            #[inline(never)]
            #[target_feature(enable = "bmi1,bmi2")]
            unsafe fn with_bmi2<$(const $c: $t,)* const L: u8>(
                state: *mut EngineState, step: *const EngineStep, at: BytePtr, map: u64, out: *mut DecodedEntry,
            ) -> BytePtr {
                // SAFETY: the handler has the contract of `StepHandler`, and so has its body; the machine has BMI2 where that
                // is set.
                unsafe { $body::<$($c,)* true, L>(state, step, at, map, out) }
            }
        }
    };
}
pub(super) use handlers;

/// Integers and strings of one byte.
pub(super) const HOT: u8 = 0;

/// Integers and strings of two to eight bytes; integers of nine as well.
pub(super) const MORE: u8 = 1;

/// Integers and strings of any size.
pub(super) const ALL: u8 = 2;

/// Integers of one to eight bytes.
pub(super) const BOTH: u8 = 3;

/// The stop bit of each of eight bytes.
pub(super) const STOPS: u64 = 0x8080_8080_8080_8080;

/// Reads eight bytes as a little-endian word.
///
/// # Safety
/// The caller must pass a cursor with eight readable bytes.
#[inline(always)]
pub(super) unsafe fn read_word(cursor: BytePtr) -> u64 {
    // SAFETY: `cursor` has eight bytes, by the contract.
    u64::from_le_bytes(unsafe { cursor.cast::<[u8; 8]>().read_unaligned() })
}

/// Counts the bytes up to the first stop bit, which must exist.
#[inline(always)]
pub(super) fn length(stops: u64) -> u32 {
    (stops.trailing_zeros() >> 3) + 1
}

/// Joins the groups of seven bits of eight bytes. The first group is the highest.
#[inline(always)]
pub(super) fn groups<const BMI2: bool>(word: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if BMI2 {
        // SAFETY: handlers with this constant are taken only where the machine has it.
        return unsafe { std::arch::x86_64::_pext_u64(word, !STOPS) };
    }
    let word = word & !STOPS;
    let word = word >> 1 & 0x3f80_3f80_3f80_3f80 | word & 0x007f_007f_007f_007f;
    let word = word >> 2 & 0x0fff_c000_0fff_c000 | word & 0x0000_3fff_0000_3fff;
    word >> 4 & 0x00ff_ffff_f000_0000 | word & 0x0000_0000_0fff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the two ways to remove the stop bits differ, on a machine with the instruction or without it.
    #[test]
    fn groups_are_those_of_a_loop() {
        let mut word = 0x0123_4567_89ab_cdefu64;
        for n in 0..2_000u32 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (n, bytes) = (n % 8 + 1, word.to_le_bytes());
            let slow = bytes[..n as usize].iter().fold(0, |v, b| v << 7 | u64::from(b & 0x7f));
            let first = word.swap_bytes() >> (64 - 8 * n);
            assert_eq!(groups::<false>(first), slow);
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("bmi2") {
                assert_eq!(groups::<true>(first), slow);
            }
        }
    }
}
