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
//! It reads the forms that files are made of: digits with their point implied, blanks instead of leading zeros,
//! a blank column, clock times, compact timestamps. A lane with anything else in one of its columns is not good;
//! whoever asks reads that record by the [`Decoder`], which says what it is or what is wrong
//! with it. So this is never more generous than the decoder, and what it reads it reads the same; both are
//! held by tests.
//!
//! It does not frame: the caller says where records start, and that they have their full length. Text is not
//! touched, but where a blank one would be a fault.

mod clock;
mod frame;
mod portable;
mod rows;
mod simd;

use super::decode::Decoder;
use super::layout::{Column, DateOf, Layout, Sort};
use super::plan::{Around, careful};
use super::text::{Sign, Trim};
use super::value::Value;
use super::when::Holds;
use clock::{Clock, Day};
pub use frame::{Framed, Frames};
pub use rows::{Column as RowsColumn, Even, Listed, Rows};
use simd::{Kernel, prefetch};

/// Records at once, at most.
pub const LANES: usize = 64;

/// The values of one column, by lane.
pub type Lanes = [i64; LANES];

/// Reads all columns of one of a layout's records.
#[derive(Debug, Clone)]
pub struct Columns {
    kernel: Kernel,
    kind: u16,
    ops: Vec<Op>,
    /// By op.
    values: Vec<Lanes>,
    none: Vec<u64>,
    /// Op of a column, by column.
    of: Vec<Option<u16>>,
    reach: usize,
    scratch: Lanes,
}

#[derive(Debug, Clone)]
struct Op {
    column: u16,
    what: What,
    /// Blank is a fault.
    required: bool,
    /// Numbers that mean that there is none.
    none: Vec<i64>,
    /// What its values are, where they can be told by number.
    numbers: Option<Numbers>,
    /// Not all of the batch before were digits alone.
    odd: bool,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Whole numbers.
    Int,
    /// Decimals, all with this exponent.
    Decimal(i8),
    /// UTC nanoseconds since 1970.
    Instant,
}

#[derive(Debug, Clone)]
enum What {
    Number(Number),
    Clock(Clock),
    /// Text that must not be blank: where it stands, and what blank is.
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
struct Number {
    pub start: usize,
    /// 1 to 16.
    pub width: usize,
    pub pad: u8,
    /// Padding may stand before the digits.
    pub leading: bool,
    /// All padding is no value; otherwise it is a fault.
    pub blank: bool,
    /// Up to three digits more stand before it: it is the end of a longer column.
    pub above: usize,
}

/// Lanes that are bad, and lanes that have no value.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    pub bad: u64,
    pub none: u64,
}

impl Columns {
    /// For records of the sort `kind` of this layout; `None` where they cannot be read so: a header or trailer,
    /// which state things of others, columns that depend on each other, other encodings.
    #[must_use]
    pub fn new(layout: &Layout, kind: u16) -> Option<Self> {
        let record = layout.records().get(usize::from(kind))?;
        if record.role() != super::Role::Data || layout.page.is_some() {
            return None;
        }
        let mut ops = Vec::new();
        let mut of = vec![None; record.columns().len()];
        for (i, column) in record.columns().iter().enumerate() {
            let Some(op) = op(column, i as u16)? else { continue };
            of[i] = Some(ops.len() as u16);
            ops.push(op);
        }
        let reach = ops.iter().map(Op::reach).max().unwrap_or(0).max(record.bytes());
        let (values, none) = (vec![[0; LANES]; ops.len()], vec![0; ops.len()]);
        Some(Self { kernel: Kernel::best(), kind, ops, values, none, of, reach, scratch: [0; LANES] })
    }

    /// How many bytes must be there from the start of a record on.
    #[inline]
    #[must_use]
    pub fn reach(&self) -> usize {
        self.reach
    }

    /// Where the values of a column are found, if all of them are of one of these sorts.
    #[must_use]
    pub fn find(&self, column: u16) -> Option<(usize, Numbers)> {
        let op = usize::from((*self.of.get(usize::from(column))?)?);
        Some((op, self.ops[op].numbers?))
    }

    /// Reads the records that start at `starts`, at most [`LANES`], each with [`Columns::reach`] bytes behind its
    /// start. Gives the lanes that are good records, a bit each; those of the others have no meaning.
    ///
    /// # Panics
    /// When a record reaches beyond `bytes`.
    #[inline]
    pub fn read(&mut self, decoder: &mut Decoder, bytes: &[u8], starts: &[u32]) -> u64 {
        let starts = &starts[..starts.len().min(LANES)];
        let (Some(first), Some(last)) = (starts.first(), starts.iter().max()) else { return 0 };
        let end = *last as usize + self.reach;
        assert!(end <= bytes.len(), "a record beyond the bytes");
        let ahead = Ahead { bytes, at: end, length: end - *first as usize };
        self.read_rows(decoder, Listed { bytes, starts }, ahead)
    }

    /// The same for records at one distance; what stands in `behind` is read next.
    ///
    /// # Panics
    /// When they are more than [`LANES`], or may not be looked at as far as [`Columns::reach`].
    #[inline]
    pub fn read_even(&mut self, decoder: &mut Decoder, rows: Even<'_>, behind: &[u8]) -> u64 {
        assert!(rows.count() <= LANES && self.reach <= rows.reach(), "a record beyond the bytes");
        let ahead = Ahead { bytes: behind, at: 0, length: rows.count() * rows.stride() };
        self.read_rows(decoder, rows, ahead)
    }

    #[inline]
    fn read_rows<'b>(&mut self, decoder: &mut Decoder, rows: impl Rows<'b>, ahead: Ahead<'_>) -> u64 {
        let mut good = u64::MAX >> (LANES - rows.count());
        let Self { kernel, kind, ops, values, none, scratch, .. } = self;
        // What stands behind is asked for a part at a time: all at once would have to be waited for.
        let (mut at, part) = (ahead.at, ahead.length / ops.len().max(1) + 1);
        for ((op, values), none) in ops.iter_mut().zip(values).zip(none) {
            prefetch(ahead.bytes, at, part);
            at += part;
            let odd = &mut op.odd;
            let mut found = match &op.what {
                What::Number(number) => number.read(*kernel, rows, (values, scratch), odd),
                What::Clock(clock) => {
                    let day = Day::of(clock, decoder);
                    clock.read(*kernel, rows, day, (values, scratch), odd)
                }
                What::Text { start, length, pad } => blank(rows, *start, *length, *pad),
                What::Careful => one_by_one(decoder, *kind, op.column, rows, values),
            };
            if let What::Number(number) = &op.what {
                for value in &op.none {
                    let lanes = kernel.equal(values, *value);
                    if lanes != 0 {
                        found.none |= said_none(lanes, number, rows);
                    }
                }
            }
            *none = found.none;
            good &= !found.bad;
            if op.required {
                good &= !found.none;
            }
        }
        good
    }

    /// Values by lane, of a place that [`Columns::find`] gave. Where there is none it says 0 or what stands for
    /// none.
    #[inline]
    #[must_use]
    pub fn values(&self, place: usize) -> &Lanes {
        &self.values[place]
    }

    /// Lanes that have no value there.
    #[inline]
    #[must_use]
    pub fn none(&self, place: usize) -> u64 {
        self.none[place]
    }

    /// The same with the kernel that every processor runs.
    #[cfg(any(test, feature = "naive"))]
    #[must_use]
    pub fn portable(mut self) -> Self {
        self.kernel = Kernel::PORTABLE;
        self
    }
}

/// What is wanted soon.
struct Ahead<'b> {
    bytes: &'b [u8],
    at: usize,
    length: usize,
}

impl Op {
    /// Bytes that a load may touch.
    fn reach(&self) -> usize {
        match &self.what {
            What::Number(n) => n.reach(),
            What::Clock(c) => c.reach(),
            What::Text { .. } | What::Careful => 0,
        }
    }
}

impl Number {
    /// A load takes 16 bytes, whatever the width.
    fn reach(&self) -> usize {
        self.start + 16
    }

    #[inline]
    fn read<'b>(
        &self,
        kernel: Kernel,
        rows: impl Rows<'b>,
        (values, scratch): (&mut Lanes, &mut Lanes),
        odd: &mut bool,
    ) -> Found {
        if self.above == 0 {
            return kernel.numbers(self, rows, values, odd);
        }
        self.read_long(kernel, rows, (values, scratch), odd)
    }

    /// A column of more than 16 digits.
    fn read_long<'b>(
        &self,
        kernel: Kernel,
        rows: impl Rows<'b>,
        (values, scratch): (&mut Lanes, &mut Lanes),
        odd: &mut bool,
    ) -> Found {
        // The first digits, which may be blank, and the sixteen behind them, which are then digits or blank too.
        let above = Number { width: self.above, start: self.start, above: 0, ..*self };
        let below = Number { width: 16, start: self.start + self.above, above: 0, ..*self };
        let mut odd_above = *odd;
        let high = kernel.numbers(&above, rows, scratch, &mut odd_above);
        let low = kernel.numbers(&below, rows, values, odd);
        *odd |= odd_above;
        let mut found = Found { bad: high.bad | low.bad, none: high.none & low.none };
        if !self.leading {
            found.bad |= high.none & !low.none;
        }
        for (lane, [first]) in rows.column::<1>(self.start + self.above).enumerate() {
            let n =
                scratch[lane].checked_mul(10_000_000_000_000_000).and_then(|h| h.checked_add(values[lane]));
            match n {
                // Blanks behind digits are not leading ones.
                Some(n) if high.none >> lane & 1 == 1 || first.is_ascii_digit() => values[lane] = n,
                _ => found.bad |= 1 << lane,
            }
        }
        found
    }
}

/// What is to be done with a column: `None` where the record cannot be read so, `Some(None)` for nothing.
fn op(column: &Column, index: u16) -> Option<Option<Op>> {
    let number = || {
        // Such a column is one where leading blanks may stand; others have digits only.
        let leading = matches!(column.trim, Trim::Both | Trim::Left);
        let blank = column.trim != Trim::None;
        let width = column.length().min(16);
        let above = column.length() - width;
        (above <= 3).then_some(Number {
            start: column.start(),
            width,
            pad: column.pad,
            leading,
            blank,
            above,
        })
    };
    let (what, numbers) = match &column.sort {
        Sort::Filler => return Some(None),
        Sort::Text if !column.required => return Some(None),
        // Which texts mean that there is none is for the decoder to say.
        Sort::Text if !column.none.is_empty() || column.trim == Trim::None => return None,
        Sort::Text => (What::Text { start: column.start(), length: column.length(), pad: column.pad }, None),
        Sort::Int(Sign::None) => (number().map_or(What::Careful, What::Number), Some(Numbers::Int)),
        Sort::Decimal(Sign::None, Some(places)) => {
            (number().map_or(What::Careful, What::Number), Some(Numbers::Decimal(-(*places as i8))))
        }
        Sort::Time(_, Some((DateOf::Record(_), _))) => return None,
        Sort::Time(form, Some((DateOf::Header(header), zone))) => (
            Clock::of(column, form, *zone, Holds::Time, Some(*header)).map_or(What::Careful, What::Clock),
            Some(Numbers::Instant),
        ),
        Sort::Timestamp(form, zone) => (
            Clock::of(column, form, *zone, Holds::Both, None).map_or(What::Careful, What::Clock),
            Some(Numbers::Instant),
        ),
        Sort::Int(_) => (What::Careful, Some(Numbers::Int)),
        Sort::Decimal(_, Some(places)) => (What::Careful, Some(Numbers::Decimal(-(*places as i8)))),
        // Dates are not instants, and other things are not numbers.
        _ => (What::Careful, None),
    };
    // Texts that mean none and are numbers can be told by their value.
    let digits = |text: &Vec<u8>| {
        let text = std::str::from_utf8(text).ok().filter(|t| t.bytes().all(|b| b.is_ascii_digit()))?;
        text.parse().ok()
    };
    let none: Option<Vec<i64>> = column.none.iter().map(digits).collect();
    let (what, none) = match (what, none) {
        (what @ What::Number(_), Some(none)) => (what, none),
        (what, _) if column.none.is_empty() => (what, Vec::new()),
        _ => (What::Careful, Vec::new()),
    };
    let required = column.required && column.speaks();
    Some(Some(Op { column: index, what, required, none, numbers, odd: false }))
}

/// Lanes of blank text.
#[inline]
fn blank<'b>(rows: impl Rows<'b>, start: usize, length: usize, pad: u8) -> Found {
    let mut bad = 0;
    // Nearly always the first bytes say enough.
    if rows.column::<1>(start).fold(false, |any, [first]| any | (*first == pad)) {
        for (lane, text) in rows.texts(start, length).enumerate() {
            bad |= u64::from(text.iter().all(|b| *b == pad)) << lane;
        }
    }
    Found { bad, none: 0 }
}

/// Of the lanes whose number has the value of one that means none, those where it does.
fn said_none<'b>(lanes: u64, number: &Number, rows: impl Rows<'b>) -> u64 {
    // Such a text fills its column: with a digit in front a number of its value is written as it is.
    let first = rows.column::<1>(number.start).enumerate();
    lanes & first.fold(0, |all, (lane, [first])| all | u64::from(first.is_ascii_digit()) << lane)
}

/// A column by its description, lane by lane.
fn one_by_one<'b>(
    decoder: &mut Decoder,
    kind: u16,
    column: u16,
    rows: impl Rows<'b>,
    values: &mut Lanes,
) -> Found {
    let mut found = Found::default();
    let (layout, header, zones) = decoder.around();
    let record = &layout.records()[usize::from(kind)];
    let column = &record.columns()[usize::from(column)];
    let mut around = Around { header, zones };
    for (lane, text) in rows.texts(0, record.bytes()).enumerate() {
        match careful(column, text, &[], &mut around) {
            Ok(Value::None) => found.none |= 1 << lane,
            Ok(Value::Int(n) | Value::Instant(n) | Value::Decimal { mantissa: n, .. }) => values[lane] = n,
            Ok(_) => {}
            Err(_) => found.bad |= 1 << lane,
        }
    }
    found
}
