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
//! A vector of 1,024 is packed in lanes, a shorter one as a run. If there is one of 1,024, the length of all heads is before
//! them and zeros behind them, so that the data begin at a multiple of eight bytes and stay at such multiples.

use rustc_hash::FxHashMap;

pub(crate) use crate::bits::VECTOR;
use crate::bits::{
    Lane, PAD, pack, packed_bytes, put_varint, take_varint, unpack, unzigzag, width_of, zigzag,
};

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

/// Encodes columns; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct ColumnEncoder {
    cell_values: Vec<u64>,
    units: Vec<u64>,
    best: Vec<u64>,
    is_none: Vec<bool>,
    rank_by_value: FxHashMap<u64, u64>,
    table: Vec<u64>,
    vectors: VectorWriter,
}

/// The vectors of a column while they are made.
#[derive(Debug, Default)]
struct VectorWriter {
    steps: Vec<u64>,
    heads: Vec<u8>,
    data: Vec<u8>,
}

/// An encoding of a column and its cost in bytes.
#[derive(Clone, Copy, Debug)]
struct ColumnEncoding {
    encoding: u8,
    min: i64,
    unit: u64,
    bytes: usize,
}

impl ColumnEncoder {
    /// Appends `values` to `out` in the smallest encoding. Returns the encoding byte.
    pub fn encode(&mut self, values: &[u64], nature: ColumnSpec, out: &mut Vec<u8>) -> u8 {
        debug_assert!((1..=ROWS_MAX).contains(&values.len()));
        let first_value = values[0];
        if values.iter().all(|v| *v == first_value) {
            put_varint(out, first_value);
            return CONSTANT;
        }
        self.cell_values.clear();
        self.cell_values.extend_from_slice(values);
        let null_value = nature.null_value.filter(|candidate| values.contains(candidate));
        self.fill_nones(null_value);
        let mut best_encoding = self.measure_cost(nature, false);
        std::mem::swap(&mut self.units, &mut self.best);
        if nature.is_text {
            let swapped_encoding = self.measure_cost(nature, true);
            if swapped_encoding.bytes < best_encoding.bytes {
                best_encoding = swapped_encoding;
                std::mem::swap(&mut self.units, &mut self.best);
            }
        }
        let bitmap = if null_value.is_some() { values.len() / 8 } else { 0 };
        if best_encoding.bytes + bitmap > values.len() / 4
            && self.fits_dictionary(values, best_encoding.bytes + bitmap)
        {
            return self.write_dictionary(values, out);
        }
        let (column_start, lane) = (out.len(), Lane::for_bytes(nature.width));
        let encoding = best_encoding.encoding | if null_value.is_some() { NONES } else { 0 };
        put_varint(out, zigzag(best_encoding.min));
        put_varint(out, best_encoding.unit);
        if let Some(null) = null_value {
            put_varint(out, null);
        }
        for (i, u) in self.best.chunks(VECTOR).enumerate() {
            let nones = if null_value.is_some() { &self.is_none[i * VECTOR..][..u.len()] } else { &[] };
            self.vectors.write(u, lane, best_encoding.encoding & !SWAPPED == DELTA, nones);
        }
        self.vectors.finish(column_start, values.len(), out);
        encoding
    }

    /// Replaces empty values by their neighbours' values, which costs least.
    fn fill_nones(&mut self, null_value: Option<u64>) {
        self.is_none.clear();
        let Some(null) = null_value else { return };
        self.is_none.extend(self.cell_values.iter().map(|v| *v == null));
        let mut previous_value = self.cell_values.iter().copied().find(|v| *v != null).unwrap_or(0);
        for (v, is_none) in self.cell_values.iter_mut().zip(&self.is_none) {
            if *is_none {
                *v = previous_value;
            }
            previous_value = *v;
        }
    }

    /// Computes the cost of reference and delta encoding. Leaves the units in `self.units`.
    fn measure_cost(&mut self, nature: ColumnSpec, swapped: bool) -> ColumnEncoding {
        let to_signed = |v: u64| if swapped { swap_bytes(v, nature.width) } else { v } as i64;
        let min = self.cell_values.iter().map(|v| to_signed(*v)).min().expect("a value at least");
        let mut unit = 0u64;
        for v in &self.cell_values {
            let d = to_signed(*v).wrapping_sub(min) as u64;
            if unit == 1 {
                break;
            }
            if d != 0 && (unit == 0 || !d.is_multiple_of(unit)) {
                unit = gcd(unit, d);
            }
        }
        let unit = unit.max(1);
        self.units.clear();
        match unit {
            1 => self.units.extend(self.cell_values.iter().map(|v| to_signed(*v).wrapping_sub(min) as u64)),
            _ => self
                .units
                .extend(self.cell_values.iter().map(|v| to_signed(*v).wrapping_sub(min) as u64 / unit)),
        }
        let (mut reference, mut delta) = (16, 16);
        for u in self.units.chunks(VECTOR) {
            let (low, high) = u.iter().fold((u64::MAX, 0), |(l, h), v| (l.min(*v), h.max(*v)));
            reference += 1 + varint_bytes(low) + packed_bytes(u.len(), width_of(high - low));
            let steps = u.windows(2).map(|w| w[1].wrapping_sub(w[0]) as i64);
            let (low, high) = steps.fold((i64::MAX, i64::MIN), |(l, h), v| (l.min(v), h.max(v)));
            let width = if low > high { 0 } else { width_of(high.wrapping_sub(low) as u64) };
            delta += 2 + varint_bytes(u[0]) + packed_bytes(u.len(), width);
            // Steps go both ways, and those of a narrow column may be too wide for its words.
            if width > Lane::for_bytes(nature.width).bits() {
                delta = usize::MAX / 2;
            }
        }
        let swap = if swapped { SWAPPED } else { 0 };
        let (encoding, bytes) = if delta < reference { (DELTA, delta) } else { (REFERENCE, reference) };
        ColumnEncoding { encoding: encoding | swap, min, unit, bytes }
    }

    /// Returns whether a dictionary is smaller than `bytes`. Leaves its sorted values in `self.table`.
    fn fits_dictionary(&mut self, values: &[u64], bytes: usize) -> bool {
        self.rank_by_value.clear();
        let distinct_max = DISTINCT_MAX.min(values.len() / 2);
        let mut last_value = None;
        for v in values {
            if last_value != Some(*v) {
                last_value = Some(*v);
                self.rank_by_value.insert(*v, 0);
                if self.rank_by_value.len() > distinct_max {
                    return false;
                }
            }
        }
        self.table.clear();
        self.table.extend(self.rank_by_value.keys());
        self.table.sort_unstable();
        let mut cost = 4;
        for (i, v) in self.table.iter().enumerate() {
            cost += varint_bytes(if i == 0 { *v } else { v - self.table[i - 1] });
        }
        let width = width_of(self.table.len() as u64 - 1);
        cost += packed_bytes(values.len(), width) + values.len().div_ceil(VECTOR) * 2;
        cost < bytes
    }

    fn write_dictionary(&mut self, values: &[u64], out: &mut Vec<u8>) -> u8 {
        let (column_start, lane) = (out.len(), code_lane(self.table.len()));
        put_varint(out, self.table.len() as u64);
        let mut previous_value = 0;
        for (rank, v) in self.table.iter().enumerate() {
            put_varint(out, v - previous_value);
            previous_value = *v;
            self.rank_by_value.insert(*v, rank as u64);
        }
        self.units.clear();
        self.units.extend(values.iter().map(|v| self.rank_by_value[v]));
        for u in self.units.chunks(VECTOR) {
            self.vectors.write(u, lane, false, &[]);
        }
        self.vectors.finish(column_start, values.len(), out);
        DICTIONARY
    }
}

impl VectorWriter {
    /// Appends the vectors that were written to the column that begins at `column_start` and has `rows` values.
    fn finish(&mut self, column_start: usize, rows: usize, out: &mut Vec<u8>) {
        if rows >= VECTOR {
            put_varint(out, self.heads.len() as u64);
            out.extend_from_slice(&self.heads);
            let data_offset = (out.len() - column_start).next_multiple_of(DATA_ALIGNMENT);
            out.resize(column_start + data_offset, 0);
        } else {
            out.extend_from_slice(&self.heads);
        }
        out.extend_from_slice(&self.data);
        self.heads.clear();
        self.data.clear();
    }

    fn write(&mut self, u: &[u64], lane: Lane, is_delta: bool, nones: &[bool]) {
        let Self { steps, heads, data } = self;
        steps.clear();
        let (first, least) = if is_delta {
            let step_of = |w: &[u64]| w[1].wrapping_sub(w[0]) as i64;
            let least = u.windows(2).map(step_of).min().unwrap_or(0);
            // The first value has no step; it comes from the head.
            steps.push(0);
            steps.extend(u.windows(2).map(|w| step_of(w).wrapping_sub(least) as u64));
            (u[0], least)
        } else {
            let least_value = u.iter().copied().min().expect("a value at least");
            steps.extend(u.iter().map(|v| v - least_value));
            (least_value, 0)
        };
        let width = width_of(steps.iter().fold(0, |all, v| all | v));
        let has_nones = nones.contains(&true);
        heads.push(width as u8 | if has_nones { SOME_NONE } else { 0 });
        put_varint(heads, first);
        if is_delta {
            put_varint(heads, zigzag(least));
        }
        if has_nones {
            let bits =
                |b: &[bool]| b.iter().enumerate().fold(0, |m, (i, is_none)| m | u8::from(*is_none) << i);
            data.extend(nones.chunks(8).map(bits));
        }
        match steps.first_chunk() {
            Some(vector) => lane.pack(data, vector, width),
            None => pack(data, steps, width),
        }
    }
}

/// Returns the words in which the places in a dictionary of this many values are packed.
fn code_lane(values: usize) -> Lane {
    if values <= 256 { Lane::Bits8 } else { Lane::Bits16 }
}

/// A column being read, vector by vector.
#[derive(Debug)]
pub(crate) struct ColumnReader<'a> {
    /// The block, with [`PAD`] bytes after it.
    bytes: &'a [u8],
    /// The head of the next vector, and where the heads end.
    head_at: usize,
    heads_end: usize,
    /// The data of the next vector, and where the column ends.
    data_at: usize,
    data_end: usize,
    /// There is no vector of 1,024: the only head is right before its data.
    is_short: bool,
    lane: Lane,
    encoding: u8,
    value_bytes: u8,
    value_min: i64,
    value_unit: u64,
    null_value: Option<u64>,
    table: Vec<u64>,
}

impl<'a> ColumnReader<'a> {
    /// The column of `rows` values in `range` of `bytes`, after which [`PAD`] bytes at least must follow. `table` is memory to
    /// use.
    // A call would copy it twice, and small blocks open a column for every few rows.
    #[inline(always)]
    pub fn open(
        bytes: &'a [u8],
        range: std::ops::Range<usize>,
        encoding: u8,
        width: u8,
        rows: usize,
        mut table: Vec<u64>,
    ) -> Result<Self, &'static str> {
        if range.start > range.end || range.end > bytes.len().saturating_sub(PAD) {
            return Err("a chunk that leaves its block");
        }
        if !(1..=8).contains(&width) {
            return Err("a column of no width that there is");
        }
        let data = &bytes[..range.end];
        let mut offset = range.start;
        let mut varint = || take_varint(data, &mut offset).ok_or("a number that does not end");
        let mut this = Self {
            bytes,
            head_at: 0,
            heads_end: range.end,
            data_at: range.end,
            data_end: range.end,
            is_short: rows < VECTOR,
            lane: Lane::for_bytes(width),
            encoding,
            value_bytes: width,
            value_min: 0,
            value_unit: 1,
            null_value: None,
            table: Vec::new(),
        };
        table.clear();
        match encoding & ENCODING_BITS {
            DICTIONARY if encoding == DICTIONARY => {
                let count = varint()?;
                // Each value occupies a byte at least, so the reservation never exceeds the data.
                if count == 0 || count > DISTINCT_MAX as u64 || count > data.len() as u64 {
                    return Err("a dictionary of no size that there is");
                }
                let mut v = 0u64;
                for _ in 0..count {
                    v = v.wrapping_add(varint()?);
                    table.push(v);
                }
                this.lane = code_lane(table.len());
            }
            REFERENCE | DELTA => {
                this.value_min = unzigzag(varint()?);
                this.value_unit = varint()?;
                if encoding & NONES != 0 {
                    this.null_value = Some(varint()?);
                }
            }
            _ => return Err("an encoding that there is not"),
        }
        if !this.is_short {
            let heads_bytes = usize::try_from(varint()?).ok().filter(|bytes| *bytes <= range.len());
            this.heads_end = offset + heads_bytes.ok_or("heads that leave their column")?;
            let data_offset = (this.heads_end - range.start).next_multiple_of(DATA_ALIGNMENT);
            this.data_at = range.start + data_offset;
            let zeros = bytes.get(this.heads_end..this.data_at.min(range.end));
            if this.data_at > range.end || zeros.is_none_or(|zeros| zeros.iter().any(|byte| *byte != 0)) {
                return Err("data that do not follow their heads");
            }
        }
        this.head_at = offset;
        this.table = table;
        Ok(this)
    }

    /// Makes the column all of whose values are `value`.
    pub fn from_constant(value: u64, width: u8, table: Vec<u64>) -> Self {
        Self {
            bytes: &[],
            head_at: 0,
            heads_end: 0,
            data_at: 0,
            data_end: 0,
            is_short: true,
            lane: Lane::for_bytes(width),
            encoding: CONSTANT,
            value_bytes: width,
            value_min: value as i64,
            value_unit: 1,
            null_value: None,
            table,
        }
    }

    /// Returns the value of all rows if the column is constant.
    pub fn constant(&self) -> Option<u64> {
        (self.encoding == CONSTANT).then_some(self.value_min as u64)
    }

    /// Reads the next vector into `out`. The vector must have as many values as `out`.
    pub fn next(&mut self, out: &mut [u64]) -> Result<(), &'static str> {
        if self.encoding == CONSTANT {
            out.fill(self.value_min as u64);
            return Ok(());
        }
        let v = self.next_vector(out.len())?;
        match self.encoding & ENCODING_BITS {
            DICTIONARY => {
                self.unpack(&v, out);
                let mut in_frame = true;
                for x in out.iter_mut() {
                    let value = self.table.get(v.first_bits.wrapping_add(*x) as usize);
                    in_frame &= value.is_some();
                    *x = value.copied().unwrap_or(0);
                }
                if !in_frame {
                    return Err("a place that the dictionary of the column does not have");
                }
            }
            REFERENCE => {
                self.unpack(&v, out);
                let base = (self.value_min as u64).wrapping_add(v.first_bits.wrapping_mul(self.value_unit));
                if self.value_unit == 1 {
                    out.iter_mut().for_each(|x| *x = base.wrapping_add(*x));
                } else {
                    out.iter_mut().for_each(|x| *x = base.wrapping_add(x.wrapping_mul(self.value_unit)));
                }
            }
            _ => {
                self.unpack(&v, out);
                let first = (self.value_min as u64).wrapping_add(v.first_bits.wrapping_mul(self.value_unit));
                let least = (v.value_min as u64).wrapping_mul(self.value_unit);
                // The first value has no step.
                let mut value = first.wrapping_sub(least);
                for x in out.iter_mut() {
                    value = value.wrapping_add(least).wrapping_add(x.wrapping_mul(self.value_unit));
                    *x = value;
                }
            }
        }
        if self.encoding & SWAPPED != 0 {
            out.iter_mut().for_each(|x| *x = swap_bytes(*x, self.value_bytes));
        }
        if let (Some(nones), Some(null)) = (v.nones, self.null_value) {
            let bitmap = &self.bytes[nones..];
            for (i, x) in out.iter_mut().enumerate() {
                if bitmap[i / 8] >> (i % 8) & 1 != 0 {
                    *x = null;
                }
            }
        }
        Ok(())
    }

    /// Steps over the next vector, of `n` values.
    pub fn skip_vector(&mut self, n: usize) -> Result<(), &'static str> {
        if self.encoding != CONSTANT {
            self.next_vector(n)?;
        }
        Ok(())
    }

    /// Unpacks the words of a vector.
    fn unpack(&self, vector: &VectorHeader, out: &mut [u64]) {
        let packed = &self.bytes[vector.packed..];
        match out.try_into() {
            Ok(whole) => self.lane.unpack(packed, vector.bit_width, whole),
            Err(_) => unpack(packed, vector.bit_width, out),
        }
    }

    /// Returns whether all of the column has been read.
    pub fn is_at_end(&self) -> bool {
        self.data_at == self.data_end && (self.is_short || self.head_at == self.heads_end)
    }

    /// Returns the memory of the table.
    pub fn into_table(self) -> Vec<u64> {
        self.table
    }

    /// Reads the head of the next vector and moves past it.
    fn next_vector(&mut self, n: usize) -> Result<VectorHeader, &'static str> {
        const CUT: &str = "a vector that is cut short";
        let heads = &self.bytes[..self.heads_end];
        let mut offset = self.head_at;
        let head = *heads.get(offset).ok_or(CUT)?;
        offset += 1;
        let width = u32::from(head & !SOME_NONE);
        let first_value = take_varint(heads, &mut offset).ok_or(CUT)?;
        let is_delta = self.encoding & ENCODING_BITS == DELTA;
        let least = if is_delta { unzigzag(take_varint(heads, &mut offset).ok_or(CUT)?) } else { 0 };
        self.head_at = offset;
        let mut packed = if self.is_short { offset } else { self.data_at };
        let mut nones = None;
        if head & SOME_NONE != 0 {
            if self.null_value.is_none() {
                return Err("a bitmap of a mark that the chunk does not name");
            }
            nones = Some(packed);
            packed += n.div_ceil(8);
        }
        self.data_at = packed + packed_bytes(n, width);
        // Only a vector of 1,024 has words.
        let width_max = if n == VECTOR { self.lane.bits() } else { u64::BITS };
        if width > width_max || self.data_at > self.data_end {
            return Err(CUT);
        }
        Ok(VectorHeader { bit_width: width, first_bits: first_value, value_min: least, nones, packed })
    }
}

struct VectorHeader {
    bit_width: u32,
    first_bits: u64,
    value_min: i64,
    nones: Option<usize>,
    packed: usize,
}

/// Reverses the order of the low `width` bytes.
#[inline]
fn swap_bytes(v: u64, width: u8) -> u64 {
    v.swap_bytes() >> (64 - 8 * u32::from(width))
}

fn varint_bytes(v: u64) -> usize {
    (width_of(v).max(1)).div_ceil(7) as usize
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(values: &[u64], nature: ColumnSpec) -> (u8, usize) {
        let mut bytes = vec![0xaa; 3];
        let encoding = ColumnEncoder::default().encode(values, nature, &mut bytes);
        let end = bytes.len();
        bytes.extend([0x5a; PAD]);
        if encoding == CONSTANT {
            let constant = take_varint(&bytes, &mut 3).unwrap();
            assert!(values.iter().all(|value| *value == constant));
            return (encoding, end - 3);
        }
        let open =
            || ColumnReader::open(&bytes, 3..end, encoding, nature.width, values.len(), Vec::new()).unwrap();
        let (mut chunk, mut skipping) = (open(), open());
        for (i, want) in values.chunks(VECTOR).enumerate() {
            let mut got = vec![1; want.len()];
            chunk.next(&mut got).unwrap();
            assert_eq!(got, want, "vector {i}, encoding {encoding:#x}");
            if i % 2 == 0 {
                skipping.skip_vector(want.len()).unwrap();
            } else {
                skipping.next(&mut got).unwrap();
                assert_eq!(got, want, "vector {i} behind one that was skipped");
            }
        }
        assert!(chunk.is_at_end() && skipping.is_at_end());
        (encoding, end - 3)
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        let one =
            prop_oneof![any::<u64>(), 0u64..5, Just(i64::MAX as u64), Just(u64::MAX), Just(i64::MIN as u64)];
        let runs = (any::<u64>(), 0u64..2000, 1u64..1_000_000_000, 0u32..40, 1usize..3000).prop_map(
            |(start, spread, unit, noise, n)| {
                let mut x = start | 1;
                let wild = |x: &mut u64| {
                    *x ^= *x << 13;
                    *x ^= *x >> 7;
                    *x ^= *x << 17;
                    *x
                };
                let value_at = |i: usize, r: u64| match noise {
                    0 => i64::MAX as u64,
                    1 if r.is_multiple_of(7) => i64::MAX as u64,
                    2 => (r % (spread + 1)) << 40,
                    3..20 => start.wrapping_add((i as u64 * spread + r % (spread + 1)).wrapping_mul(unit)),
                    _ => (r % (spread + 1)).wrapping_mul(unit).wrapping_sub(spread / 2 * unit),
                };
                (0..n).map(|i| value_at(i, wild(&mut x))).collect()
            },
        );
        prop_oneof![proptest::collection::vec(one, 1..1500), runs]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Differences that pass the ends of 64 bits, marks for none among values, lone outliers: each once gave
        /// another value back.
        #[test]
        fn columns_come_back(values in values(), text in any::<bool>(), none in any::<bool>(), width in 1u8..=8) {
            let mask = u64::MAX >> (64 - 8 * u32::from(width));
            let values: Vec<u64> = values.iter().map(|v| v & mask).collect();
            let null_value = none.then_some(i64::MAX as u64 & mask);
            round_trip(&values, ColumnSpec { width, null_value, is_text: text });
        }

        /// Fails if a changed chunk gives anything but values or an error. A chunk comes from outside and may hold any
        /// bytes.
        #[test]
        fn changed_chunks_are_read_or_refused(
            values in values(), encoding in proptest::option::of(any::<u8>()),
            hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), cut in any::<prop::sample::Index>(),
        ) {
            let nature = ColumnSpec { width: 8, null_value: Some(i64::MAX as u64), is_text: true };
            let mut bytes = Vec::new();
            let made = ColumnEncoder::default().encode(&values, nature, &mut bytes);
            for (index, byte) in hits {
                let offset = index.index(bytes.len());
                bytes[offset] ^= byte;
            }
            let end = if encoding.is_some() { bytes.len() } else { cut.index(bytes.len() + 1) };
            bytes.truncate(end);
            bytes.extend([0; PAD]);
            if let Ok(mut chunk) = ColumnReader::open(&bytes, 0..end, encoding.unwrap_or(made), 8, values.len(), Vec::new()) {
                for part in values.chunks(VECTOR) {
                    if chunk.next(&mut vec![0; part.len()]).is_err() {
                        break;
                    }
                }
            }
        }
    }

    /// Fails if an encoding is never chosen where it is the smallest.
    #[test]
    fn each_way_is_taken_where_it_is_best() {
        let number = ColumnSpec { width: 8, null_value: Some(i64::MAX as u64), is_text: false };
        let text = ColumnSpec { width: 8, null_value: None, is_text: true };
        let n = 4096u64;
        let all = |f: &dyn Fn(u64) -> u64| (0..n).map(f).collect::<Vec<_>>();
        assert_eq!(round_trip(&all(&|_| u64::MAX), number), (CONSTANT, 10));
        // Prices on a grid of a cent around 100: fourteen bits each.
        let (price_encoding, bytes) =
            round_trip(&all(&|i| 100_000_000_000 + i * i % 10_007 * 10_000_000), number);
        assert!(price_encoding == REFERENCE && bytes < 7300, "{price_encoding:#x} {bytes}");
        // One side of the market is empty now and then.
        let grid = |i: u64| {
            if i.is_multiple_of(50) { i64::MAX as u64 } else { 100_000_000_000 + i * i % 10_007 * 10_000_000 }
        };
        let (sided_encoding, bytes) = round_trip(&all(&grid), number);
        assert!(sided_encoding == REFERENCE | NONES && bytes < 7900, "{sided_encoding:#x} {bytes}");
        let (time_encoding, bytes) =
            round_trip(&all(&|i| 1_710_167_400_000_000_000 + i * 1000 + i * i % 7), number);
        assert!(time_encoding == DELTA && bytes < 2200, "{time_encoding:#x} {bytes}");
        let (dictionary_encoding, bytes) =
            round_trip(&all(&|i| [7, u64::MAX, 1 << 40, 12345][i as usize * 7 % 4]), number);
        assert!(dictionary_encoding == DICTIONARY && bytes < 1100, "{dictionary_encoding:#x} {bytes}");
        // "00000000" to "00004095" as text.
        let digits = |i: u64| u64::from_le_bytes(format!("{i:08}").into_bytes().try_into().unwrap());
        let (text_encoding, bytes) = round_trip(&all(&digits), text);
        assert!(text_encoding & SWAPPED != 0 && bytes < 3 * n as usize + 100, "{text_encoding:#x} {bytes}");
    }
}
