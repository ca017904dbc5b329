//! The one place with instruction-set specific code: one pass over a message that sums its bytes,
//! finds every separator and reads every field.
//!
//! ```text
//! bytes   8=FIX.4.4|9=128|35=D|…     a step of 64:  sep   bit per separator
//!                                                   eq    bit per '='
//!                                                   sum   of the bytes
//!         tags    8, 9, 35, …        columns:       starts, ends of the values
//! ```
//!
//! Three engines give the same answer: AVX-512 (all fields that have their `=` in a step of 64
//! bytes at once), AVX2 (2 × 32 bytes, field by field) and a portable one on 8-byte words, which
//! is also what aarch64 uses. Which one runs is decided once, when a [`FixKernel`] is made. Each stops
//! at the first step that holds anything unusual, and says so; the walk of
//! [`MessageTokenizer`](super::MessageTokenizer) continues from there.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod columns;
mod portable;

use super::data::RawFieldTags;
use super::shapes::TagSequence;
pub(crate) use columns::FieldColumns;

/// A kernel that this processor can run.
///
/// Invariant: a value other than `Portable` exists only if detection found the instructions
/// ([`FixKernel::best`] and, in tests, `FixKernel::all` are the only makers).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FixKernel(FixInstructionSet);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FixInstructionSet {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

/// The totals of one pass over a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScanTotals {
    /// The sum of all bytes, wrapping nowhere.
    pub byte_sum: u64,
    /// Separators.
    pub seps: usize,
    /// Fields read, a separator after each.
    pub fields: usize,
    /// The first field that the walk must read: at or before the first length field, the first wrong field and text
    /// after the last separator. Without such a field, the message's length.
    pub walk_start: usize,
}

impl FixKernel {
    /// Returns the fastest kernel that this processor can run.
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if avx512::is_detected() {
                return FixKernel(FixInstructionSet::Avx512);
            }
            if avx2::is_detected() {
                return FixKernel(FixInstructionSet::Avx2);
            }
        }
        FixKernel(FixInstructionSet::Portable)
    }

    /// Returns every kernel that this processor can run, for tests that compare the kernels.
    #[cfg(any(test, feature = "twin"))]
    pub(crate) fn all() -> Vec<Self> {
        #[allow(unused_mut, reason = "elsewhere than on x86-64 there is only one")]
        let mut kernels = vec![FixKernel(FixInstructionSet::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            if avx2::is_detected() {
                kernels.push(FixKernel(FixInstructionSet::Avx2));
            }
            if avx512::is_detected() {
                kernels.push(FixKernel(FixInstructionSet::Avx512));
            }
        }
        kernels
    }

    /// Reads the fields of `message` into `columns`. `message` must be shorter than 4 GiB, which the bound
    /// on a message sees to.
    pub(crate) fn read_fields(
        self,
        message: &[u8],
        sep: u8,
        data: &RawFieldTags,
        columns: &mut FieldColumns,
    ) -> ScanTotals {
        debug_assert!(u32::try_from(message.len()).is_ok());
        columns.make_room(message.len());
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions,
            // and room for the message was just made.
            FixInstructionSet::Avx512 => unsafe { avx512::read_fields(message, sep, data, columns) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            FixInstructionSet::Avx2 => unsafe { avx2::read_fields(message, sep, data, columns) },
            FixInstructionSet::Portable => portable::read_fields(message, sep, data, columns),
        }
    }

    /// Reads where the values of `message` are into `columns`, if it has the tags of `shape` and nothing is
    /// wrong with any field; the tags are not written. The sum of its bytes. As long as `read_fields` allows.
    #[inline(always)]
    pub(crate) fn read_expected(
        self,
        message: &[u8],
        sep: u8,
        shape: &TagSequence,
        columns: &mut FieldColumns,
    ) -> Option<u64> {
        debug_assert!(u32::try_from(message.len()).is_ok());
        columns.make_room(message.len());
        if sep.is_ascii_digit() || sep == b'=' {
            return None;
        }
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions, room for
            // the message was just made, and the separator is nothing that a tag holds.
            FixInstructionSet::Avx512 => unsafe { avx512::read_expected(message, sep, shape, columns) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a Kernel of this kind exists only where detection found the instructions.
            FixInstructionSet::Avx2 => unsafe { avx2::read_expected(message, sep, shape, columns) },
            FixInstructionSet::Portable => portable::read_expected(message, sep, shape, columns),
        }
    }
}

/// Bytes a step.
const STEP: usize = 64;

/// Fields whose separator, or whose `=`, can be in one step, at most: the shortest good field,
/// `1=x|`, is four bytes.
const FIELDS_MAX: usize = STEP / 4;

/// The masks of a step, and the state that the earlier steps left open. All kernels share them.
///
/// The first `=` of each field comes out of one addition. With a bit for each start of a field and
/// ones wherever there is no `=`, the sum carries each start through the ones up to the next `=`,
/// and that bit stays:
///
/// ```text
/// bytes           3 5 = D | 5 8 = a = b |      (first byte left; bits carry to the right)
/// starts          1 0 0 0 0 1 0 0 0 0 0 0
/// no '='          1 1 0 1 1 1 1 0 1 0 1 1
/// sum             0 0 1 1 1 0 0 1 1 0 1 1
/// sum and '='     0 0 1 0 0 0 0 1 0 0 0 0
/// ```
///
/// A separator that a carry runs through ends a field without `=`. The bytes of the tags are the
/// difference of `=` and starts.
#[derive(Debug, Clone, Copy)]
struct FieldMaskCarry {
    /// The next step's first byte starts a field.
    starts_field: u64,
    /// A field has started and has no `=` yet.
    in_tag: bool,
    /// The last byte of the step before was the first `=` of its field.
    equal: u64,
}

/// One step, resolved.
#[derive(Debug, Clone, Copy)]
struct FieldMasks {
    /// First bytes of fields.
    starts: u64,
    /// The first `=` of each field.
    equals_bits: u64,
    /// The bytes of tags.
    tags: u64,
    /// A field without `=`, tag or value. Without one there are at most `FIELDS_MAX` separators,
    /// and as many first `=`.
    has_wrong_field: bool,
}

impl FieldMaskCarry {
    const START: FieldMaskCarry = FieldMaskCarry { starts_field: 1, in_tag: false, equal: 0 };

    #[inline(always)]
    fn resolve_masks(&mut self, seps: u64, eqs: u64) -> FieldMasks {
        let starts = seps << 1 | self.starts_field;
        let open_bit = u64::from(self.in_tag);
        let (sum, carry) = starts.overflowing_add(!eqs);
        let (sum, open_carry) = sum.overflowing_add(open_bit);
        let equals = sum & eqs;
        let tags = equals.wrapping_sub(starts).wrapping_sub(open_bit);
        let no_equals = seps & !sum;
        let no_tag = starts & eqs;
        let no_value = seps & (equals << 1 | self.equal);
        let wrong = (no_equals | no_tag | no_value) != 0;
        *self = FieldMaskCarry { starts_field: seps >> 63, in_tag: carry | open_carry, equal: equals >> 63 };
        FieldMasks { starts, equals_bits: equals, tags, has_wrong_field: wrong }
    }
}

#[cfg(test)]
mod tests;
