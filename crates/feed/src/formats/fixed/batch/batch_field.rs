//! Fields that are stored as number, word or identity: prepared by column, stored by column.

use super::frames::{BatchFrames, put};
use super::program::optional;
use crate::formats::zeros::canonical;
use crate::mapping::{FieldPlan, MappingPlan, translate_const};
use unitape_codec::fixed::{
    BatchReader, ColumnLayout, LANES, Lanes, NumberKind, RecordBatch, ScatteredRecords, StridedRecords,
};
use unitape_model::id::pack_id;
use unitape_model::schema::{EXP_NONE, EXT_ONLY, FieldLayout};
use unitape_model::{Decimal, Dictionary, EventBuilder, EventKind, InlineId, Price, UnixNanos};

/// A field, with its values for the batch in hand.
#[derive(Debug)]
pub(super) struct BatchField {
    what: BatchFieldKind,
    optional: bool,
    /// Ready to be stored, by lane.
    ready: Box<Lanes>,
    exponents: Box<[i8; LANES]>,
    /// The function that stores the values of a whole batch, if one is shorter than preparing them first.
    straight: BulkStoreMode,
}

/// A property of all numbers of a column in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BulkStoreMode {
    /// Nothing: their values have been made ready.
    No,
    /// They are prices.
    Prices,
    /// They are quantities below 1024, or what is none.
    Small,
    /// They are whole quantities of 32 bits, or what is none.
    Whole,
}

#[derive(Debug)]
enum BatchFieldKind {
    /// A price: times this.
    Price { place: usize, scale: i64, at: usize },
    /// A mantissa of `width` bytes and an exponent.
    Decimal { place: usize, exponent: i8, at: usize, exp_at: usize, narrow: bool },
    /// A whole number of `width` bytes.
    UInt { place: usize, at: usize, width: usize },
    /// Must not be there: it would be in the extension.
    Nothing { place: usize },
    /// By byte, bits to set, or [`NO_CODE`].
    Code { column: usize, bits: Box<[u16; 256]>, at: usize },
    /// Text of up to `n` bytes, as it is or as an identity; `ready` is its length.
    Text { column: usize, length: usize, pad: u8, at: usize, n: usize, id: bool },
}

/// No code: missing, or none of the values.
const NO_CODE: u16 = 0x100;

impl BatchField {
    fn new(what: BatchFieldKind, field: &FieldPlan) -> Option<Self> {
        Some(Self {
            what,
            optional: optional(field),
            ready: Box::new([0; LANES]),
            exponents: Box::new([0; LANES]),
            straight: BulkStoreMode::No,
        })
    }

    /// A column of numbers.
    pub(super) fn number(
        field: &FieldPlan,
        slot: FieldLayout,
        place: usize,
        numbers: NumberKind,
    ) -> Option<Self> {
        let exponent = match numbers {
            NumberKind::Int => 0,
            NumberKind::Decimal(exponent) => exponent,
            NumberKind::Instant => return None,
        };
        let what = match slot {
            FieldLayout::Price { at: EXT_ONLY } => BatchFieldKind::Nothing { place },
            FieldLayout::Price { at } => {
                let scale = u32::try_from(i32::from(exponent) + Price::PLACES as i32).ok()?;
                BatchFieldKind::Price { place, scale: 10i64.checked_pow(scale)?, at: at.into() }
            }
            FieldLayout::Decimal { at, exp_at } => BatchFieldKind::Decimal {
                place,
                exponent,
                at: at.into(),
                exp_at: exp_at.into(),
                narrow: false,
            },
            FieldLayout::DecimalNarrow { at, exp_at } => BatchFieldKind::Decimal {
                place,
                exponent,
                at: at.into(),
                exp_at: exp_at.into(),
                narrow: true,
            },
            FieldLayout::UInt { at, width } if exponent == 0 && at != EXT_ONLY => {
                BatchFieldKind::UInt { place, at: at.into(), width: width.into() }
            }
            _ => return None,
        };
        Self::new(what, field)
    }

    /// A column of text.
    pub(super) fn text(
        plan: &MappingPlan,
        field: &FieldPlan,
        slot: FieldLayout,
        of: &ColumnLayout,
        kind: EventKind,
    ) -> Option<Self> {
        let what = match slot {
            FieldLayout::Code { at, .. } | FieldLayout::Bool { at, .. }
                if of.is_one_character() && at != EXT_ONLY =>
            {
                let bits = |byte: usize| {
                    let text = [byte as u8];
                    if text[0] == of.pad() {
                        return if optional(field) { 0 } else { NO_CODE };
                    }
                    // As the general path would set it, once for each byte.
                    let Some(value) = translate_const(plan, field, &text) else { return NO_CODE };
                    let mut frame = Vec::new();
                    let mut event = EventBuilder::begin(&mut frame, kind, UnixNanos(0));
                    let before = event_byte(kind, at.into());
                    match event.set_text(field.spec, value, &mut Dictionary::default()) {
                        Ok(()) => u16::from(frame[usize::from(at)] & !before),
                        Err(_) => NO_CODE,
                    }
                };
                BatchFieldKind::Code {
                    column: of.start(),
                    bits: Box::new(std::array::from_fn(bits)),
                    at: at.into(),
                }
            }
            FieldLayout::Text { at, n } | FieldLayout::Id { at, n } if at != EXT_ONLY => {
                let id = matches!(slot, FieldLayout::Id { .. });
                if field.table.is_some() || !of.is_plain_text() || of.length() > TEXT_BYTES_MAX {
                    return None;
                }
                let (column, length, pad) = (of.start(), of.length(), of.pad());
                BatchFieldKind::Text { column, length, pad, at: at.into(), n: n.into(), id }
            }
            _ => return None,
        };
        Self::new(what, field)
    }

    /// Checks a batch of which every record is wanted, which [`BatchField::store_all`] then stores; false if one
    /// record cannot be stored.
    #[inline]
    pub(super) fn prepare_all(&mut self, columns: &BatchReader, rows: StridedRecords<'_>) -> bool {
        let count = rows.count().min(LANES);
        let all = |place: usize| columns.values(place)[..count].iter().fold(0, |all, n| all | *n as u64);
        self.straight = match &self.what {
            BatchFieldKind::Price { place, scale, .. } if all(*place) <= ((i64::MAX - 1) / scale) as u64 => {
                BulkStoreMode::Prices
            }
            BatchFieldKind::Decimal { place, exponent: 0, .. } => match all(*place) {
                n if n < SMALL.len() as u64 => BulkStoreMode::Small,
                // A number that does not fit a narrow slot is stored with an exponent.
                n if u32::try_from(n).is_ok() => BulkStoreMode::Whole,
                _ => BulkStoreMode::No,
            },
            _ => BulkStoreMode::No,
        };
        match &self.what {
            BatchFieldKind::Price { place, .. } | BatchFieldKind::Decimal { place, .. }
                if self.straight != BulkStoreMode::No =>
            {
                self.optional || columns.none(*place) == 0
            }
            _ => self.prepare(columns, rows) == 0,
        }
    }

    /// Makes the values of a batch ready; gives the lanes whose value cannot be stored.
    #[inline]
    pub(super) fn prepare<'b>(&mut self, columns: &BatchReader, rows: impl RecordBatch<'b>) -> u64 {
        let count = rows.count().min(LANES);
        let mut bad = 0;
        let ready = &mut *self.ready;
        let mut missing = 0;
        match &self.what {
            BatchFieldKind::Price { place, scale, .. } => {
                let values = &columns.values(*place)[..count];
                missing = columns.none(*place);
                let most = (i64::MAX - 1) / scale;
                // Nearly always all fit, which is quicker to see for all at once.
                if values.iter().fold(0, |all, n| all | *n as u64) > most as u64 {
                    for (lane, n) in values.iter().enumerate() {
                        let fits = (-most..=most).contains(n);
                        bad |= u64::from(!fits) << lane;
                    }
                }
                for (ready, n) in ready.iter_mut().zip(values) {
                    *ready = n.wrapping_mul(*scale);
                }
                each(missing, |lane| ready[lane] = i64::MAX);
                bad &= !missing;
            }
            BatchFieldKind::Decimal { place, exponent, narrow, .. } => {
                let values = columns.values(*place);
                missing = columns.none(*place);
                let all = values[..count].iter().fold(0, |all, n| all | *n as u64);
                if *exponent == 0 && all < SMALL.len() as u64 {
                    let ready = ready.iter_mut().zip(&mut *self.exponents);
                    for (n, (mantissa, places)) in values[..count].iter().zip(ready) {
                        let (short, zeros) = SMALL[*n as usize % SMALL.len()];
                        (*mantissa, *places) = (short.into(), zeros);
                    }
                } else {
                    for lane in 0..count {
                        let (mantissa, places) = match Decimal::new(values[lane], *exponent) {
                            Ok(d) => (d.mantissa(), d.exponent()),
                            Err(_) => (i64::MAX, 0),
                        };
                        let beyond = *narrow && u32::try_from(mantissa).is_err() || mantissa == i64::MAX;
                        bad |= u64::from(beyond) << lane;
                        (ready[lane], self.exponents[lane]) = (mantissa, places);
                    }
                }
                each(missing, |lane| (ready[lane], self.exponents[lane]) = (0, EXP_NONE));
                bad &= !missing;
            }
            BatchFieldKind::UInt { place, width, .. } => {
                let values = columns.values(*place);
                missing = columns.none(*place);
                let most = u64::MAX >> (64 - 8 * width);
                for lane in 0..count {
                    bad |= u64::from(values[lane] < 0 || values[lane] as u64 >= most - 1) << lane;
                    ready[lane] = values[lane];
                }
                each(missing, |lane| ready[lane] = -1);
                bad &= !missing;
            }
            BatchFieldKind::Nothing { place } => return !columns.none(*place),
            BatchFieldKind::Code { column, bits, .. } => {
                for (lane, [byte]) in rows.column::<1>(*column).enumerate() {
                    let code = bits[usize::from(*byte)];
                    bad |= u64::from(code == NO_CODE) << lane;
                    ready[lane] = i64::from(code);
                }
            }
            BatchFieldKind::Text { column, length, pad, n, id, .. } => {
                for (lane, text) in rows.texts(*column, *length).enumerate() {
                    let end = text.iter().rposition(|b| b != pad).map_or(0, |last| last + 1);
                    let plain = text[..end].iter().fold(true, |all, b| all & (1..0x80).contains(b));
                    let refused = !plain || end > *n || *id && end > 0 && text[0] < b' ';
                    bad |= u64::from(refused) << lane;
                    missing |= u64::from(end == 0) << lane;
                    ready[lane] = end as i64;
                }
            }
        }
        if self.optional { bad } else { bad | missing }
    }

    /// Puts what was made ready into frames, of each its lane and where it is in the arena.
    #[inline]
    pub(super) fn store(
        &self,
        arena: &mut [u8],
        frames: impl Iterator<Item = (usize, usize)>,
        records: ScatteredRecords<'_>,
    ) {
        for (lane, frame) in frames {
            let lane = lane % LANES;
            let text = match &self.what {
                BatchFieldKind::Text { column, length, .. } => {
                    &records.bytes[records.starts[lane] as usize + column..][..*length]
                }
                _ => &[],
            };
            self.store_ready(&mut arena[frame..], lane, text);
        }
    }

    /// Puts the values of a whole batch into its frames.
    #[inline]
    pub(super) fn store_all(
        &self,
        columns: &BatchReader,
        frames: &mut impl BatchFrames,
        rows: StridedRecords<'_>,
    ) {
        let small = |n: &i64| SMALL[*n as usize % SMALL.len()];
        let whole = |n: &i64| canonical(*n as u32);
        match (&self.what, self.straight) {
            (BatchFieldKind::Price { place, scale, at }, BulkStoreMode::Prices) => {
                frames.each(columns.values(*place), |frame, n| {
                    put(frame, *at, n.wrapping_mul(*scale).to_le_bytes());
                });
                each(columns.none(*place), |lane| put(frames.frame(lane), *at, i64::MAX.to_le_bytes()));
            }
            (
                BatchFieldKind::Decimal { place, at, exp_at, narrow, .. },
                BulkStoreMode::Small | BulkStoreMode::Whole,
            ) => {
                let (at, exp_at) = (*at, *exp_at);
                let values = columns.values(*place);
                match (self.straight, narrow) {
                    (BulkStoreMode::Small, true) => frames.each(values, |frame, n| {
                        let (mantissa, places) = small(n);
                        put(frame, at, u32::from(mantissa).to_le_bytes());
                        put(frame, exp_at, places.to_le_bytes());
                    }),
                    (BulkStoreMode::Small, false) => frames.each(values, |frame, n| {
                        let (mantissa, places) = small(n);
                        put(frame, at, u64::from(mantissa).to_le_bytes());
                        put(frame, exp_at, places.to_le_bytes());
                    }),
                    (_, true) => frames.each(values, |frame, n| {
                        let (mantissa, places) = whole(n);
                        put(frame, at, mantissa.to_le_bytes());
                        put(frame, exp_at, [places]);
                    }),
                    (_, false) => frames.each(values, |frame, n| {
                        let (mantissa, places) = whole(n);
                        put(frame, at, u64::from(mantissa).to_le_bytes());
                        put(frame, exp_at, [places]);
                    }),
                }
                each(columns.none(*place), |lane| {
                    let frame = frames.frame(lane);
                    let mantissa = if *narrow { 4 } else { 8 };
                    frame[at..at + mantissa].fill(0);
                    put(frame, exp_at, EXP_NONE.to_le_bytes());
                });
            }
            (BatchFieldKind::Nothing { .. }, _) => {}
            (BatchFieldKind::Text { column, length, .. }, _) => {
                for (lane, text) in rows.texts(*column, *length).enumerate().take(LANES) {
                    self.store_ready(frames.frame(lane), lane, text);
                }
            }
            (BatchFieldKind::Code { at, .. }, _) => {
                frames.each(self.ready.iter(), |frame, code| frame[*at] |= *code as u8)
            }
            _ => {
                for lane in 0..rows.count().min(LANES) {
                    self.store_ready(frames.frame(lane), lane, &[]);
                }
            }
        }
    }

    /// Puts what was made ready into one frame; `text` is what its column has.
    #[inline(always)]
    fn store_ready(&self, frame: &mut [u8], lane: usize, text: &[u8]) {
        let ready = self.ready[lane];
        match &self.what {
            BatchFieldKind::Price { at, .. } => put(frame, *at, ready.to_le_bytes()),
            BatchFieldKind::Decimal { at, exp_at, narrow, .. } => {
                match narrow {
                    true => put(frame, *at, (ready as u32).to_le_bytes()),
                    false => put(frame, *at, ready.to_le_bytes()),
                }
                put(frame, *exp_at, self.exponents[lane].to_le_bytes());
            }
            BatchFieldKind::UInt { at, width, .. } => {
                frame[*at..*at + width].copy_from_slice(&ready.to_le_bytes()[..*width]);
            }
            BatchFieldKind::Nothing { .. } => {}
            BatchFieldKind::Code { at, .. } => frame[*at] |= ready as u8,
            BatchFieldKind::Text { at, n, id, .. } => {
                let text = &text[..ready as usize];
                let slot = &mut frame[*at..*at + n];
                if *id && !text.is_empty() {
                    // It was looked at whether it fits.
                    _ = pack_id(InlineId::Text(text), slot);
                } else {
                    slot[..text.len()].copy_from_slice(text);
                }
            }
        }
    }
}

/// Text is looked at byte by byte; longer columns are seldom.
const TEXT_BYTES_MAX: usize = 64;

/// Calls `field_table` with each lane of a mask.
#[inline]
fn each(mut lanes: u64, mut visit: impl FnMut(usize)) {
    while lanes != 0 {
        visit(lanes.trailing_zeros() as usize);
        lanes &= lanes - 1;
    }
}

/// A byte of an event with every field none.
fn event_byte(kind: EventKind, at: usize) -> u8 {
    let mut frame = Vec::new();
    EventBuilder::begin(&mut frame, kind, UnixNanos(0));
    frame[at]
}

/// Small numbers without their zeros, and how many these are; what most quantities are.
static SMALL: [(u16, i8); 1024] = {
    let mut table = [(0, 0); 1024];
    let mut n = 1;
    while n < 1024 {
        let (mut mantissa, mut zeros) = (n as u16, 0);
        while mantissa.is_multiple_of(10) {
            mantissa /= 10;
            zeros += 1;
        }
        table[n] = (mantissa, zeros);
        n += 1;
    }
    table
};
