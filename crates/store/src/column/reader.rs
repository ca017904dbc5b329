//! Reads columns, vector by vector.

use super::{
    CONSTANT, DATA_ALIGNMENT, DELTA, DICTIONARY, DISTINCT_MAX, ENCODING_BITS, NONES, REFERENCE, SLOPE_ONE,
    SOME_NONE, SWAPPED, code_lane, predicted, swap_bytes,
};
use crate::bits::{Lane, PAD, VECTOR, packed_bytes, take_varint, unpack, unzigzag};

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
    /// The values of a dictionary, or those of the tuples in which this is a member.
    table: Vec<u64>,
    is_member: bool,
    /// Of the prediction from another column.
    slope: Option<i64>,
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
            is_member: false,
            slope: None,
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
            is_member: false,
            slope: None,
        }
    }

    /// Makes the column that is predicted with this slope, and reads what the prediction leaves.
    pub fn with_slope(self, slope: Option<i64>) -> Self {
        Self { slope, ..self }
    }

    /// Makes the column whose values are those of `members` with the numbers that this one reads.
    ///
    /// # Errors
    /// Fails if this one has a table of its own.
    pub fn into_member(self, members: Vec<u64>) -> Result<Self, &'static str> {
        if self.encoding == DICTIONARY || self.null_value.is_some() || self.slope.is_some() {
            return Err("numbers of tuples in an encoding that they do not have");
        }
        Ok(Self { table: members, is_member: true, ..self })
    }

    /// Returns whether the column is predicted from another one.
    pub fn is_predicted(&self) -> bool {
        self.slope.is_some()
    }

    /// Returns the value of all rows if the column is constant.
    pub fn constant(&self) -> Option<u64> {
        let is_constant = self.encoding == CONSTANT && self.slope.is_none() && !self.is_member;
        is_constant.then_some(self.value_min as u64)
    }

    /// Reads the next vector into `out`. The vector must have as many values as `out`, and so must that of the column from
    /// which this one is predicted, if it is.
    pub fn next(&mut self, out: &mut [u64], predictor: Option<&[u64]>) -> Result<(), &'static str> {
        let mut nones = None;
        if self.encoding == CONSTANT {
            out.fill(self.value_min as u64);
        } else {
            nones = self.read_vector(out)?;
        }
        if self.is_member {
            look_up(&self.table, 0, out)?;
        }
        if let Some(slope) = self.slope {
            let predictor = predictor.filter(|predictor| predictor.len() == out.len());
            let predictor = predictor.ok_or("a column that is predicted from none")?;
            let values = out.iter_mut().zip(predictor);
            if slope == SLOPE_ONE {
                values.for_each(|(value, other)| *value = value.wrapping_add(*other));
            } else {
                values.for_each(|(value, other)| *value = value.wrapping_add(predicted(slope, *other)));
            }
        }
        if let (Some(nones), Some(null)) = (nones, self.null_value) {
            let bitmap = &self.bytes[nones..];
            for (i, x) in out.iter_mut().enumerate() {
                if bitmap[i / 8] >> (i % 8) & 1 != 0 {
                    *x = null;
                }
            }
        }
        Ok(())
    }

    /// Reads the next vector without its marks for none. Returns where their bitmap is.
    fn read_vector(&mut self, out: &mut [u64]) -> Result<Option<usize>, &'static str> {
        let v = self.next_vector(out.len())?;
        self.unpack(&v, out);
        match self.encoding & ENCODING_BITS {
            DICTIONARY => look_up(&self.table, v.first_bits, out)?,
            REFERENCE => {
                let base = (self.value_min as u64).wrapping_add(v.first_bits.wrapping_mul(self.value_unit));
                if self.value_unit == 1 {
                    out.iter_mut().for_each(|x| *x = base.wrapping_add(*x));
                } else {
                    out.iter_mut().for_each(|x| *x = base.wrapping_add(x.wrapping_mul(self.value_unit)));
                }
            }
            _ => {
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
        Ok(v.nones)
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

/// Replaces numbers, from `first` on, by the values of a table.
fn look_up(table: &[u64], first: u64, out: &mut [u64]) -> Result<(), &'static str> {
    let mut is_in_table = true;
    for x in out.iter_mut() {
        let value = table.get(first.wrapping_add(*x) as usize);
        is_in_table &= value.is_some();
        *x = value.copied().unwrap_or(0);
    }
    if is_in_table { Ok(()) } else { Err("a number that the values of the column do not have") }
}
