//! One column of a block: up to 65,536 integers in vectors of 1,024.
//!
//! ```text
//!  constant    value, in the table of the class
//!  others      min │ unit │ [none] │ heads │ data              v = min + unit · u
//!  head        width │ first │ [least step]                    of each vector
//!  data        [which are none] │ packed u                     of each vector
//! ```
//!
//! `reference`: each vector packs `u − first`, with `first` its least `u`. `delta`: it packs the steps from one `u`
//! to the next less the least step, with `first` the first `u`. `dictionary`: the column begins with the sorted
//! values, the vectors pack their places in it. A *none* mark (a price of `i64::MAX`, say) would spoil all of it. The
//! writer removes it, and a bitmap of each vector that had one marks its place. Text is tried with its first byte as
//! the most significant one as well, which makes ids that count up into numbers that count up. The writer keeps the
//! smallest encoding.
//!
//! A column may be *predicted* from another one, which is read before it: a sequence from the ordinals, an ask from the bids. Then
//! `v = min + unit · u + slope · other / 2^32`, cut to whole numbers, and the mark for none counts as it does elsewhere.
//!
//! A vector of 1,024 is packed in lanes, a shorter one as a run. If there is one of 1,024, the length of all heads is before
//! them and zeros behind them, so that the data begin at a multiple of eight bytes and stay at such multiples.

mod encoder;
mod reader;
#[cfg(test)]
mod tests;

pub(crate) use self::encoder::{ColumnEncoder, EncodedColumn, Predictor};
pub(crate) use self::reader::ColumnReader;
use crate::bits::Lane;
pub(crate) use crate::bits::VECTOR;

/// Rows of a block at most.
pub(crate) const ROWS_MAX: usize = 65_536;

/// All values are the same one. It stands in the table.
pub(crate) const CONSTANT: u8 = 0;
const REFERENCE: u8 = 1;
const DELTA: u8 = 2;
const DICTIONARY: u8 = 3;
/// The bits of an encoding that are not those below. 4 and 5 are streams of bytes, 7 is no column.
pub(crate) const ENCODING_BITS: u8 = 7;
/// The values are stored with their bytes in the other order.
const SWAPPED: u8 = 0x80;
/// The chunk names a value for none, and vectors may have a bitmap of it.
const NONES: u8 = 0x40;
/// In the width of a vector: its data begin with a bitmap.
const SOME_NONE: u8 = 0x80;
/// More different values than this are no dictionary.
const DISTINCT_MAX: usize = 4096;
/// Where the data of a column with a vector of 1,024 begin, in bytes from its beginning: a multiple of this.
const DATA_ALIGNMENT: usize = 8;

/// The properties of a column that the encoder knows beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnSpec {
    /// Bytes of a value in a frame: 1 to 8.
    pub width: u8,
    /// The value that stands for an empty field in the frame.
    pub null_value: Option<u64>,
    /// Text or an id: bytes in the order of reading.
    pub is_text: bool,
}

/// The slope of a column that has as much more as another one.
const SLOPE_ONE: i64 = 1 << 32;

/// Returns the part of a value that another column predicts.
#[inline]
fn predicted(slope: i64, predictor: u64) -> u64 {
    ((i128::from(slope) * i128::from(predictor)) >> 32) as u64
}

/// Returns the words in which the places in a dictionary of this many values are packed.
fn code_lane(values: usize) -> Lane {
    if values <= 256 { Lane::Bits8 } else { Lane::Bits16 }
}

/// Reverses the order of the low `width` bytes.
#[inline]
fn swap_bytes(v: u64, width: u8) -> u64 {
    v.swap_bytes() >> (64 - 8 * u32::from(width))
}
