//! Encodes columns in the smallest way.

use rustc_hash::FxHashMap;

use super::{
    CONSTANT, ColumnSpec, DATA_ALIGNMENT, DELTA, DICTIONARY, DISTINCT_MAX, NONES, REFERENCE, ROWS_MAX,
    SLOPE_ONE, SOME_NONE, SWAPPED, code_lane, predicted, swap_bytes,
};
use crate::bits::{Lane, VECTOR, pack, packed_bytes, put_varint, width_of, zigzag};

/// The bytes of a slope in the table, about.
const SLOPE_BYTES: usize = 8;
/// More than any column has: its values do not fit the words of its width.
const TOO_WIDE: usize = 1 << 40;

/// Encodes columns; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct ColumnEncoder {
    cell_values: Vec<u64>,
    /// What a predictor leaves of the values.
    residuals: Vec<u64>,
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

/// How a column was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EncodedColumn {
    pub encoding: u8,
    /// Of the prediction from another column, if there is one: times 2^32.
    pub slope: Option<i64>,
}

/// A column from which another one may be predicted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predictor<'a> {
    /// Its value for each row.
    pub values: &'a [u64],
    /// The other one may grow faster or slower than this one.
    pub has_slope: bool,
}

impl Predictor<'_> {
    /// Returns the slopes that are tried for `values`.
    fn slopes(&self, values: &[u64]) -> [Option<i64>; 2] {
        let span = |values: &[u64]| {
            let (first, last) = (values.first().copied(), values.last().copied());
            i128::from(last.unwrap_or_default().wrapping_sub(first.unwrap_or_default()) as i64)
        };
        let run = span(self.values);
        let slope = (self.has_slope && run != 0).then(|| (span(values) << 32) / run);
        let slope = slope.and_then(|slope| i64::try_from(slope).ok());
        [Some(SLOPE_ONE), slope.filter(|slope| *slope != SLOPE_ONE && *slope != 0)]
    }
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
    /// Appends `values` to `out` in the smallest encoding; with a predictor, perhaps as what it leaves.
    pub fn encode(
        &mut self,
        values: &[u64],
        nature: ColumnSpec,
        predictor: Option<Predictor<'_>>,
        out: &mut Vec<u8>,
    ) -> EncodedColumn {
        debug_assert!((1..=ROWS_MAX).contains(&values.len()));
        let first_value = values[0];
        if values.iter().all(|v| *v == first_value) {
            put_varint(out, first_value);
            return EncodedColumn { encoding: CONSTANT, slope: None };
        }
        self.cell_values.clear();
        self.cell_values.extend_from_slice(values);
        let null_value = nature.null_value.filter(|candidate| values.contains(candidate));
        self.fill_nones(null_value);
        let mut best_encoding = measure_cost(&self.cell_values, nature.width, false, &mut self.best);
        let mut best_slope = None;
        let mut keep_better = |this: &mut Self, encoding: ColumnEncoding, slope: Option<i64>| {
            if encoding.bytes < best_encoding.bytes {
                (best_encoding, best_slope) = (encoding, slope);
                std::mem::swap(&mut this.units, &mut this.best);
            }
        };
        if nature.is_text {
            let swapped = measure_cost(&self.cell_values, nature.width, true, &mut self.units);
            keep_better(self, swapped, None);
        }
        let slopes = predictor.map(|predictor| predictor.slopes(&self.cell_values));
        for slope in slopes.into_iter().flatten().flatten() {
            let predictor = predictor.map_or(&[][..], |predictor| predictor.values);
            self.residuals.clear();
            let residual = |(value, other): (&u64, &u64)| value.wrapping_sub(predicted(slope, *other));
            self.residuals.extend(self.cell_values.iter().zip(predictor).map(residual));
            let first = self.residuals[0];
            if null_value.is_none() && self.residuals.iter().all(|residual| *residual == first) {
                put_varint(out, first);
                return EncodedColumn { encoding: CONSTANT, slope: Some(slope) };
            }
            let mut encoding = measure_cost(&self.residuals, nature.width, false, &mut self.units);
            encoding.bytes += SLOPE_BYTES;
            keep_better(self, encoding, Some(slope));
        }
        let bitmap = if null_value.is_some() { values.len() / 8 } else { 0 };
        if best_encoding.bytes + bitmap > values.len() / 4
            && self.fits_dictionary(values, best_encoding.bytes + bitmap)
        {
            return EncodedColumn { encoding: self.write_dictionary(values, out), slope: None };
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
        EncodedColumn { encoding, slope: best_slope }
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

/// Computes the cost of reference and delta encoding of values of `width` bytes. Leaves what is packed in `units`.
fn measure_cost(values: &[u64], width: u8, swapped: bool, units: &mut Vec<u64>) -> ColumnEncoding {
    let lane_bits = Lane::for_bytes(width).bits();
    let to_signed = |v: u64| if swapped { swap_bytes(v, width) } else { v } as i64;
    let min = values.iter().map(|v| to_signed(*v)).min().expect("a value at least");
    let mut unit = 0u64;
    for v in values {
        let d = to_signed(*v).wrapping_sub(min) as u64;
        if unit == 1 {
            break;
        }
        if d != 0 && (unit == 0 || !d.is_multiple_of(unit)) {
            unit = gcd(unit, d);
        }
    }
    let unit = unit.max(1);
    units.clear();
    match unit {
        1 => units.extend(values.iter().map(|v| to_signed(*v).wrapping_sub(min) as u64)),
        _ => units.extend(values.iter().map(|v| to_signed(*v).wrapping_sub(min) as u64 / unit)),
    }
    let (mut reference, mut delta) = (16usize, 16usize);
    for u in units.chunks(VECTOR) {
        let (low, high) = u.iter().fold((u64::MAX, 0), |(l, h), v| (l.min(*v), h.max(*v)));
        let bits = width_of(high - low);
        reference +=
            if bits > lane_bits { TOO_WIDE } else { 1 + varint_bytes(low) + packed_bytes(u.len(), bits) };
        let steps = u.windows(2).map(|w| w[1].wrapping_sub(w[0]) as i64);
        let (low, high) = steps.fold((i64::MAX, i64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        let bits = if low > high { 0 } else { width_of(high.wrapping_sub(low) as u64) };
        // Steps go both ways, and those of a narrow column may be too wide for its words.
        delta +=
            if bits > lane_bits { TOO_WIDE } else { 2 + varint_bytes(u[0]) + packed_bytes(u.len(), bits) };
    }
    let swap = if swapped { SWAPPED } else { 0 };
    let (encoding, bytes) = if delta < reference { (DELTA, delta) } else { (REFERENCE, reference) };
    ColumnEncoding { encoding: encoding | swap, min, unit, bytes }
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
