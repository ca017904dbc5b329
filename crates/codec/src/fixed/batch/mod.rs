//! Many records of one sort at once, column by column: each column is a tight loop over up to 64 records.
//!
//! ```text
//!  records    r0 │093109362│N│AOCHDQ  …│00000241762│…      lanes: one a record
//!             r1 │093152371│W│AOCHDQ  …│00000162060│…
//!             r2 │094230494│N│AOCHDQ  …│00x00242282│…
//!                 ─ clock ▼            ─ number ▼
//!  values     [1391697069362000000, …]  [241762, 162060, –]    i64 by lane
//!  good                                 1, 1, 0                 a bit by lane
//! ```
//!
//! It reads the forms that files are made of: digits with their point implied, blanks instead of leading zeros, a
//! blank column, clock times, compact timestamps. A lane with anything else in one of its columns is not good. The
//! caller reads that record with the [`FixedWidthDecoder`], which returns its values or its fault. So this is never
//! more generous than the decoder, and what it reads it reads the same; tests hold both.
//!
//! It does not frame: the caller says where records start, and that they have their full length. Text is not
//! touched, but where a blank one would be a fault.

mod clock;
mod frame;
mod portable;
mod rows;
mod simd;

use super::decode::FixedWidthDecoder;
use super::layout::{ColumnFormat, ColumnLayout, DateSource, FixedWidthLayout};
use super::plan::{RecordContext, read_any};
use super::text::{SignStyle, TrimSide};
use super::value::ColumnValue;
use crate::times::TimeFormKind;
use clock::{ClockColumn, DayOrigin};
pub use frame::{FramedRecord, RecordFramer};
pub use rows::{ByteColumnIter, RecordBatch, ScatteredRecords, StridedRecords};
use simd::{BatchKernel, prefetch};

/// Records at once, at most.
pub const LANES: usize = 64;

/// The values of one column, by lane.
pub type Lanes = [i64; LANES];

/// Reads all columns of one of a layout's records.
#[derive(Debug, Clone)]
pub struct BatchReader {
    batch_kernel: BatchKernel,
    kind: u16,
    batch_columns: Vec<BatchColumn>,
    /// By op.
    lane_values: Vec<Lanes>,
    empty_lanes: Vec<u64>,
    /// Op of a column, by column.
    op_indexes: Vec<Option<u16>>,
    bytes_needed: usize,
    scratch: Lanes,
}

#[derive(Debug, Clone)]
struct BatchColumn {
    column: u16,
    kind: BatchColumnKind,
    /// Blank is a fault.
    is_required: bool,
    /// Numbers that mean "no value".
    none_values: Vec<i64>,
    /// The kind of its values, where a number can represent them.
    numbers: Option<NumberKind>,
    /// Not all of the batch before were digits alone.
    has_odd_values: bool,
}

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberKind {
    /// Whole numbers.
    Int,
    /// Decimals, all with this exponent.
    Decimal(i8),
    /// UTC nanoseconds since 1970.
    Instant,
}

#[derive(Debug, Clone)]
enum BatchColumnKind {
    Number(DigitColumn),
    Clock(ClockColumn),
    /// Text that must not be blank: where it is, and what blank is.
    Text {
        start: usize,
        length: usize,
        pad: u8,
    },
    /// Any other, one by one.
    Careful,
}

/// A column of digits.
#[derive(Debug, Clone, Copy)]
struct DigitColumn {
    pub column_start: usize,
    /// 1 to 16.
    pub digit_count: usize,
    pub pad: u8,
    /// Padding may be before the digits.
    pub may_be_padded: bool,
    /// All padding is no value; otherwise it is a fault.
    pub allows_blank: bool,
    /// Up to three digits more are before it: it is the end of a longer column.
    pub extra_digits: usize,
}

/// Lanes that are bad, and lanes that have no value.
#[derive(Debug, Clone, Copy, Default)]
struct LaneFaults {
    pub bad_lanes: u64,
    pub empty: u64,
}

/// Where a column is read to. A column of two numbers, as a timestamp or one of more than 16 digits is, has the second one
/// in `scratch`.
struct LaneBuffers<'l> {
    lane_values: &'l mut Lanes,
    scratch: &'l mut Lanes,
    /// The column's flag, from one batch to the next: [`BatchColumn::has_odd_values`].
    has_odd_values: &'l mut bool,
}

impl BatchReader {
    /// Makes a reader for the records of type `kind` in this layout. Returns `None` if a batch cannot read them: for
    /// a header or trailer, for columns that depend on each other, and for other encodings.
    #[must_use]
    pub fn new(layout: &FixedWidthLayout, kind: u16) -> Option<Self> {
        let record = layout.records().get(usize::from(kind))?;
        if record.role() != super::RecordRole::Data || layout.page.is_some() {
            return None;
        }
        let mut ops = Vec::new();
        let mut op_indexes = vec![None; record.columns().len()];
        for (i, column) in record.columns().iter().enumerate() {
            let Some(op) = batch_column(column, i as u16)? else { continue };
            op_indexes[i] = Some(ops.len() as u16);
            ops.push(op);
        }
        let reach = ops.iter().map(BatchColumn::bytes_needed).max().unwrap_or(0).max(record.bytes());
        let (values, empty_lanes) = (vec![[0; LANES]; ops.len()], vec![0; ops.len()]);
        Some(Self {
            batch_kernel: BatchKernel::best(),
            kind,
            batch_columns: ops,
            lane_values: values,
            empty_lanes,
            op_indexes,
            bytes_needed: reach,
            scratch: [0; LANES],
        })
    }

    /// Returns how many bytes must be readable from the start of a record.
    #[inline]
    #[must_use]
    pub fn bytes_needed(&self) -> usize {
        self.bytes_needed
    }

    /// Finds the numbers of a column: returns the index of its instruction and their kind. Returns `None` if the
    /// column's values are not all of one kind.
    #[must_use]
    pub fn find(&self, column: u16) -> Option<(usize, NumberKind)> {
        let op = usize::from((*self.op_indexes.get(usize::from(column))?)?);
        Some((op, self.batch_columns[op].numbers?))
    }

    /// Reads the records that start at `starts`, at most [`LANES`], each with [`BatchReader::bytes_needed`] bytes after its
    /// start. Returns the lanes that are good records, a bit each; those of the others have no meaning.
    ///
    /// # Panics
    /// Panics if a record reaches beyond `bytes`.
    #[inline]
    pub fn read_batch(&mut self, decoder: &mut FixedWidthDecoder, bytes: &[u8], starts: &[u32]) -> u64 {
        let starts = &starts[..starts.len().min(LANES)];
        let (Some(first), Some(last)) = (starts.first(), starts.iter().max()) else { return 0 };
        let bytes_needed = *last as usize + self.bytes_needed;
        assert!(bytes_needed <= bytes.len(), "a record beyond the bytes");
        let prefetch_range =
            PrefetchRange { bytes, start: bytes_needed, length: bytes_needed - *first as usize };
        self.read_rows(decoder, ScatteredRecords { bytes, starts }, prefetch_range)
    }

    /// Reads records at one distance, as [`BatchReader::read_batch`] does; the bytes in `behind` are read next.
    ///
    /// # Panics
    /// Panics if there are more than [`LANES`] records, or if the bytes of a record do not extend as far as
    /// [`BatchReader::bytes_needed`].
    #[inline]
    pub fn read_strided(
        &mut self,
        decoder: &mut FixedWidthDecoder,
        rows: StridedRecords<'_>,
        next_bytes: &[u8],
    ) -> u64 {
        assert!(rows.count() <= LANES && self.bytes_needed <= rows.reach(), "a record beyond the bytes");
        let prefetch_range =
            PrefetchRange { bytes: next_bytes, start: 0, length: rows.count() * rows.stride() };
        self.read_rows(decoder, rows, prefetch_range)
    }

    #[inline]
    fn read_rows<'b>(
        &mut self,
        decoder: &mut FixedWidthDecoder,
        rows: impl RecordBatch<'b>,
        prefetch_range: PrefetchRange<'_>,
    ) -> u64 {
        let mut good = u64::MAX >> (LANES - rows.count());
        let Self {
            batch_kernel: kernel,
            kind,
            batch_columns: ops,
            lane_values: values,
            empty_lanes,
            scratch,
            ..
        } = self;
        // The bytes after the batch are requested a part at a time: all at once would have to be waited for.
        let (mut prefetch_start, part) = (prefetch_range.start, prefetch_range.length / ops.len().max(1) + 1);
        for ((op, values), empty) in ops.iter_mut().zip(values).zip(empty_lanes) {
            prefetch(prefetch_range.bytes, prefetch_start, part);
            prefetch_start += part;
            let buffers =
                LaneBuffers { lane_values: values, scratch, has_odd_values: &mut op.has_odd_values };
            let mut faults = match &op.kind {
                BatchColumnKind::Number(number) => number.read(*kernel, rows, buffers),
                BatchColumnKind::Clock(clock) => {
                    let day = DayOrigin::from_clock(clock, decoder);
                    clock.read_lanes(*kernel, rows, day, buffers)
                }
                BatchColumnKind::Text { start, length, pad } => blank_lanes(rows, *start, *length, *pad),
                BatchColumnKind::Careful => one_by_one(decoder, *kind, op.column, rows, buffers.lane_values),
            };
            if let BatchColumnKind::Number(number) = &op.kind {
                for value in &op.none_values {
                    let lanes = kernel.equal_lanes(values, *value);
                    if lanes != 0 {
                        faults.empty |= lanes_with_none_text(lanes, number, rows);
                    }
                }
            }
            *empty = faults.empty;
            good &= !faults.bad_lanes;
            if op.is_required {
                good &= !faults.empty;
            }
        }
        good
    }

    /// Returns the values by lane, at an index that [`BatchReader::find`] gave. A lane without a value has 0 or the
    /// value that means "no value".
    #[inline]
    #[must_use]
    pub fn lane_values(&self, op_index: usize) -> &Lanes {
        &self.lane_values[op_index]
    }

    /// Lanes that have no value there.
    #[inline]
    #[must_use]
    pub fn empty_lanes(&self, op_index: usize) -> u64 {
        self.empty_lanes[op_index]
    }

    /// Replaces the kernel by the portable kernel, which every processor runs.
    #[cfg(any(test, feature = "twin"))]
    #[must_use]
    pub fn portable(mut self) -> Self {
        self.batch_kernel = BatchKernel::PORTABLE;
        self
    }
}

/// The bytes that are wanted soon.
struct PrefetchRange<'b> {
    bytes: &'b [u8],
    start: usize,
    length: usize,
}

impl BatchColumn {
    /// Returns the end of the bytes that a load may touch.
    fn bytes_needed(&self) -> usize {
        match &self.kind {
            BatchColumnKind::Number(n) => n.bytes_needed(),
            BatchColumnKind::Clock(c) => c.bytes_needed(),
            BatchColumnKind::Text { .. } | BatchColumnKind::Careful => 0,
        }
    }
}

impl DigitColumn {
    /// Returns the end of the 16 bytes that a load reads, whatever the width.
    fn bytes_needed(&self) -> usize {
        self.column_start + 16
    }

    #[inline]
    fn read<'b>(
        &self,
        kernel: BatchKernel,
        rows: impl RecordBatch<'b>,
        buffers: LaneBuffers<'_>,
    ) -> LaneFaults {
        if self.extra_digits == 0 {
            return kernel.read_numbers(self, rows, buffers.lane_values, buffers.has_odd_values);
        }
        self.read_long(kernel, rows, buffers)
    }

    /// Reads a column of more than 16 digits.
    fn read_long<'b>(
        &self,
        kernel: BatchKernel,
        rows: impl RecordBatch<'b>,
        buffers: LaneBuffers<'_>,
    ) -> LaneFaults {
        let LaneBuffers { lane_values: values, scratch, has_odd_values: odd } = buffers;
        // The first digits, which may be blank, and the sixteen after them, which are then digits or blank too.
        let high_column = DigitColumn {
            digit_count: self.extra_digits,
            column_start: self.column_start,
            extra_digits: 0,
            ..*self
        };
        let low_column = DigitColumn {
            digit_count: 16,
            column_start: self.column_start + self.extra_digits,
            extra_digits: 0,
            ..*self
        };
        let mut odd_high = *odd;
        let high = kernel.read_numbers(&high_column, rows, scratch, &mut odd_high);
        let low = kernel.read_numbers(&low_column, rows, values, odd);
        *odd |= odd_high;
        let mut faults =
            LaneFaults { bad_lanes: high.bad_lanes | low.bad_lanes, empty: high.empty & low.empty };
        if !self.may_be_padded {
            faults.bad_lanes |= high.empty & !low.empty;
        }
        for (lane, [first]) in rows.column::<1>(self.column_start + self.extra_digits).enumerate() {
            let n =
                scratch[lane].checked_mul(10_000_000_000_000_000).and_then(|h| h.checked_add(values[lane]));
            match n {
                // Blanks after digits are not leading ones.
                Some(n) if high.empty >> lane & 1 == 1 || first.is_ascii_digit() => values[lane] = n,
                _ => faults.bad_lanes |= 1 << lane,
            }
        }
        faults
    }
}

/// Chooses how to read a column: `None` if a batch cannot read the record, `Some(None)` for no action.
fn batch_column(column: &ColumnLayout, index: u16) -> Option<Option<BatchColumn>> {
    let number = || {
        // Such a column is one where leading blanks may be; others have digits only.
        let leading = matches!(column.trim, TrimSide::Both | TrimSide::Left);
        let allows_blank = column.trim != TrimSide::None;
        let width = column.length().min(16);
        let extra_digits = column.length() - width;
        (extra_digits <= 3).then_some(DigitColumn {
            column_start: column.start(),
            digit_count: width,
            pad: column.pad,
            may_be_padded: leading,
            allows_blank,
            extra_digits,
        })
    };
    let (kind, numbers) = match &column.format {
        ColumnFormat::Filler => return Some(None),
        ColumnFormat::Text if !column.required => return Some(None),
        // Which texts mean that there is none is for the decoder to say.
        ColumnFormat::Text if !column.none_values.is_empty() || column.trim == TrimSide::None => return None,
        ColumnFormat::Text => {
            (BatchColumnKind::Text { start: column.start(), length: column.length(), pad: column.pad }, None)
        }
        ColumnFormat::Int(SignStyle::None) => {
            (number().map_or(BatchColumnKind::Careful, BatchColumnKind::Number), Some(NumberKind::Int))
        }
        ColumnFormat::Decimal(SignStyle::None, Some(places)) => (
            number().map_or(BatchColumnKind::Careful, BatchColumnKind::Number),
            Some(NumberKind::Decimal(-(*places as i8))),
        ),
        ColumnFormat::Time(_, Some((DateSource::Record(_), _))) => return None,
        ColumnFormat::Time(form, Some((DateSource::Header(header), zone))) => (
            ClockColumn::from_column(column, form, *zone, TimeFormKind::Time, Some(*header))
                .map_or(BatchColumnKind::Careful, BatchColumnKind::Clock),
            Some(NumberKind::Instant),
        ),
        ColumnFormat::Timestamp(form, zone) => (
            ClockColumn::from_column(column, form, *zone, TimeFormKind::Both, None)
                .map_or(BatchColumnKind::Careful, BatchColumnKind::Clock),
            Some(NumberKind::Instant),
        ),
        ColumnFormat::Int(_) => (BatchColumnKind::Careful, Some(NumberKind::Int)),
        ColumnFormat::Decimal(_, Some(places)) => {
            (BatchColumnKind::Careful, Some(NumberKind::Decimal(-(*places as i8))))
        }
        // Dates are not instants, and other things are not numbers.
        _ => (BatchColumnKind::Careful, None),
    };
    // Texts that mean none and are numbers can be recognised by their value.
    let digits = |text: &Vec<u8>| {
        let text = std::str::from_utf8(text).ok().filter(|t| t.bytes().all(|b| b.is_ascii_digit()))?;
        text.parse().ok()
    };
    let none_values: Option<Vec<i64>> = column.none_values.iter().map(digits).collect();
    let (kind, none_values) = match (kind, none_values) {
        (kind @ BatchColumnKind::Number(_), Some(none_values)) => (kind, none_values),
        (kind, _) if column.none_values.is_empty() => (kind, Vec::new()),
        _ => (BatchColumnKind::Careful, Vec::new()),
    };
    let required = column.required && column.is_output();
    Some(Some(BatchColumn {
        column: index,
        kind,
        is_required: required,
        none_values,
        numbers,
        has_odd_values: false,
    }))
}

/// Lanes of blank text.
#[inline]
fn blank_lanes<'b>(rows: impl RecordBatch<'b>, start: usize, length: usize, pad: u8) -> LaneFaults {
    let mut bad_lanes = 0;
    // Nearly always the first bytes say enough.
    if rows.column::<1>(start).fold(false, |any, [first]| any | (*first == pad)) {
        for (lane, text) in rows.texts(start, length).enumerate() {
            bad_lanes |= u64::from(text.iter().all(|b| *b == pad)) << lane;
        }
    }
    LaneFaults { bad_lanes, empty: 0 }
}

/// Returns the lanes among `lanes` that hold the null text itself, not only a number of its value.
fn lanes_with_none_text<'b>(lanes: u64, number: &DigitColumn, rows: impl RecordBatch<'b>) -> u64 {
    // Such a text fills its column: with a digit in front a number of its value is written as it is.
    let first_bytes = rows.column::<1>(number.column_start).enumerate();
    lanes & first_bytes.fold(0, |all, (lane, [first])| all | u64::from(first.is_ascii_digit()) << lane)
}

/// Reads a column by its layout, lane by lane.
fn one_by_one<'b>(
    decoder: &mut FixedWidthDecoder,
    kind: u16,
    column: u16,
    rows: impl RecordBatch<'b>,
    values: &mut Lanes,
) -> LaneFaults {
    let mut faults = LaneFaults::default();
    let (layout, header, zones) = decoder.context();
    let record = &layout.records()[usize::from(kind)];
    let column = &record.columns()[usize::from(column)];
    let mut context = RecordContext { header, zone_caches: zones };
    for (lane, text) in rows.texts(0, record.bytes()).enumerate() {
        match read_any(column, text, &[], &mut context) {
            Ok(ColumnValue::None) => faults.empty |= 1 << lane,
            Ok(ColumnValue::Int(n) | ColumnValue::Instant(n) | ColumnValue::Decimal { mantissa: n, .. }) => {
                values[lane] = n
            }
            Ok(_) => {}
            Err(_) => faults.bad_lanes |= 1 << lane,
        }
    }
    faults
}
