//! Fields that are stored as number, word or identity: prepared by column, stored by column.

use super::frames::{BatchFrames, write_bytes};
use super::program::may_be_absent;
use crate::formats::zeros::canonical;
use crate::mapping::{FieldPlan, MappingPlan, translate_const};
use unitape_codec::fixed::{
    BatchReader, ColumnLayout, LANES, Lanes, NumberKind, RecordBatch, ScatteredRecords, StridedRecords,
};
use unitape_model::id::pack_id;
use unitape_model::schema::{EXP_NONE, EXT_ONLY, FieldLayout};
use unitape_model::{Decimal, Dictionary, EventBuilder, EventKind, InlineId, Price, UnixNanos};

/// A field, with its values for the current batch.
#[derive(Debug)]
pub(super) struct BatchField {
    kind: BatchFieldKind,
    is_optional: bool,
    /// Ready to be stored, by lane.
    lane_values: Box<Lanes>,
    exponents: Box<[i8; LANES]>,
    /// The function that stores the values of a whole batch, if it is faster than preparing them first.
    bulk_mode: BulkStoreMode,
}

/// A property of all numbers of a column in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BulkStoreMode {
    /// Nothing: their values have been made ready.
    No,
    /// They are prices.
    Prices,
    /// All are quantities below 1024, or absent.
    Small,
    /// All are whole quantities of 32 bits, or absent.
    Whole,
}

#[derive(Debug)]
enum BatchFieldKind {
    /// A price: times this.
    Price { column_index: usize, scale: i64, frame_offset: usize },
    /// A mantissa of `width` bytes and an exponent.
    Decimal { column_index: usize, exponent: i8, frame_offset: usize, exp_offset: usize, narrow: bool },
    /// A whole number of `width` bytes.
    UInt { column_index: usize, frame_offset: usize, width: usize },
    /// Must not be there: it would be in the extension.
    Nothing { column_index: usize },
    /// By byte, bits to set, or [`NO_CODE`].
    Code { column: usize, bits: Box<[u16; 256]>, frame_offset: usize },
    /// Text of up to `n` bytes, as it is or as an identity; `ready` is its length.
    Text { column: usize, length: usize, pad: u8, frame_offset: usize, n: usize, id: bool },
}

/// No code: the value is missing or unknown.
const NO_CODE: u16 = 0x100;

impl BatchField {
    fn new(kind: BatchFieldKind, field: &FieldPlan) -> Option<Self> {
        Some(Self {
            kind,
            is_optional: may_be_absent(field),
            lane_values: Box::new([0; LANES]),
            exponents: Box::new([0; LANES]),
            bulk_mode: BulkStoreMode::No,
        })
    }

    /// Makes the field of a column of numbers.
    pub(super) fn number_field(
        field: &FieldPlan,
        slot: FieldLayout,
        column_index: usize,
        numbers: NumberKind,
    ) -> Option<Self> {
        let exponent = match numbers {
            NumberKind::Int => 0,
            NumberKind::Decimal(exponent) => exponent,
            NumberKind::Instant => return None,
        };
        let kind = match slot {
            FieldLayout::Price { offset: EXT_ONLY } => BatchFieldKind::Nothing { column_index },
            FieldLayout::Price { offset } => {
                let scale = u32::try_from(i32::from(exponent) + Price::PLACES as i32).ok()?;
                BatchFieldKind::Price {
                    column_index,
                    scale: 10i64.checked_pow(scale)?,
                    frame_offset: offset.into(),
                }
            }
            FieldLayout::Decimal { offset, exp_offset } => BatchFieldKind::Decimal {
                column_index,
                exponent,
                frame_offset: offset.into(),
                exp_offset: exp_offset.into(),
                narrow: false,
            },
            FieldLayout::DecimalNarrow { offset, exp_offset } => BatchFieldKind::Decimal {
                column_index,
                exponent,
                frame_offset: offset.into(),
                exp_offset: exp_offset.into(),
                narrow: true,
            },
            FieldLayout::UInt { offset, width } if exponent == 0 && offset != EXT_ONLY => {
                BatchFieldKind::UInt { column_index, frame_offset: offset.into(), width: width.into() }
            }
            _ => return None,
        };
        Self::new(kind, field)
    }

    /// Makes the field of a column of text.
    pub(super) fn text_field(
        plan: &MappingPlan,
        field: &FieldPlan,
        slot: FieldLayout,
        layout: &ColumnLayout,
        kind: EventKind,
    ) -> Option<Self> {
        let field_kind = match slot {
            FieldLayout::Code { offset, .. } | FieldLayout::Bool { offset, .. }
                if layout.is_one_character() && offset != EXT_ONLY =>
            {
                let bits = |byte: usize| {
                    let text = [byte as u8];
                    if text[0] == layout.pad() {
                        return if may_be_absent(field) { 0 } else { NO_CODE };
                    }
                    // As the general path would set it, once for each byte.
                    let Some(value) = translate_const(plan, field, &text) else { return NO_CODE };
                    let mut frame = Vec::new();
                    let mut event = EventBuilder::begin(&mut frame, kind, UnixNanos(0));
                    let byte_before = event_byte(kind, offset.into());
                    match event.set_text(field.spec, value, &mut Dictionary::default()) {
                        Ok(()) => u16::from(frame[usize::from(offset)] & !byte_before),
                        Err(_) => NO_CODE,
                    }
                };
                BatchFieldKind::Code {
                    column: layout.start(),
                    bits: Box::new(std::array::from_fn(bits)),
                    frame_offset: offset.into(),
                }
            }
            FieldLayout::Text { offset, n } | FieldLayout::Id { offset, n } if offset != EXT_ONLY => {
                let id = matches!(slot, FieldLayout::Id { .. });
                if field.table.is_some() || !layout.is_plain_text() || layout.length() > TEXT_BYTES_MAX {
                    return None;
                }
                let (column, length, pad) = (layout.start(), layout.length(), layout.pad());
                BatchFieldKind::Text { column, length, pad, frame_offset: offset.into(), n: n.into(), id }
            }
            _ => return None,
        };
        Self::new(field_kind, field)
    }

    /// Checks a batch whose records are all wanted, for [`BatchField::store_all`]. Returns false if a record cannot
    /// be stored.
    #[inline]
    pub(super) fn prepare_all(&mut self, columns: &BatchReader, rows: StridedRecords<'_>) -> bool {
        let count = rows.count().min(LANES);
        let all = |index: usize| columns.lane_values(index)[..count].iter().fold(0, |all, n| all | *n as u64);
        self.bulk_mode = match &self.kind {
            BatchFieldKind::Price { column_index, scale, .. }
                if all(*column_index) <= ((i64::MAX - 1) / scale) as u64 =>
            {
                BulkStoreMode::Prices
            }
            BatchFieldKind::Decimal { column_index, exponent: 0, .. } => match all(*column_index) {
                n if n < SMALL.len() as u64 => BulkStoreMode::Small,
                // A number that does not fit a narrow slot is stored with an exponent.
                n if u32::try_from(n).is_ok() => BulkStoreMode::Whole,
                _ => BulkStoreMode::No,
            },
            _ => BulkStoreMode::No,
        };
        match &self.kind {
            BatchFieldKind::Price { column_index, .. } | BatchFieldKind::Decimal { column_index, .. }
                if self.bulk_mode != BulkStoreMode::No =>
            {
                self.is_optional || columns.empty_lanes(*column_index) == 0
            }
            _ => self.prepare_values(columns, rows) == 0,
        }
    }

    /// Prepares the values of a batch; returns the lanes whose value cannot be stored.
    #[inline]
    pub(super) fn prepare_values<'b>(&mut self, columns: &BatchReader, rows: impl RecordBatch<'b>) -> u64 {
        let count = rows.count().min(LANES);
        let mut bad_lanes = 0;
        let ready = &mut *self.lane_values;
        let mut missing = 0;
        match &self.kind {
            BatchFieldKind::Price { column_index, scale, .. } => {
                let values = &columns.lane_values(*column_index)[..count];
                missing = columns.empty_lanes(*column_index);
                let number_max = (i64::MAX - 1) / scale;
                // Nearly always all fit, which is quicker to see for all at once.
                if values.iter().fold(0, |all, n| all | *n as u64) > number_max as u64 {
                    for (lane, n) in values.iter().enumerate() {
                        let fits_scale = (-number_max..=number_max).contains(n);
                        bad_lanes |= u64::from(!fits_scale) << lane;
                    }
                }
                for (ready, n) in ready.iter_mut().zip(values) {
                    *ready = n.wrapping_mul(*scale);
                }
                for_each_lane(missing, |lane| ready[lane] = i64::MAX);
                bad_lanes &= !missing;
            }
            BatchFieldKind::Decimal { column_index, exponent, narrow, .. } => {
                let values = columns.lane_values(*column_index);
                missing = columns.empty_lanes(*column_index);
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
                        let exceeds_slot =
                            *narrow && u32::try_from(mantissa).is_err() || mantissa == i64::MAX;
                        bad_lanes |= u64::from(exceeds_slot) << lane;
                        (ready[lane], self.exponents[lane]) = (mantissa, places);
                    }
                }
                for_each_lane(missing, |lane| (ready[lane], self.exponents[lane]) = (0, EXP_NONE));
                bad_lanes &= !missing;
            }
            BatchFieldKind::UInt { column_index, width, .. } => {
                let values = columns.lane_values(*column_index);
                missing = columns.empty_lanes(*column_index);
                let number_max = u64::MAX >> (64 - 8 * width);
                for lane in 0..count {
                    bad_lanes |= u64::from(values[lane] < 0 || values[lane] as u64 >= number_max - 1) << lane;
                    ready[lane] = values[lane];
                }
                for_each_lane(missing, |lane| ready[lane] = -1);
                bad_lanes &= !missing;
            }
            BatchFieldKind::Nothing { column_index } => return !columns.empty_lanes(*column_index),
            BatchFieldKind::Code { column, bits, .. } => {
                for (lane, [byte]) in rows.column::<1>(*column).enumerate() {
                    let code = bits[usize::from(*byte)];
                    bad_lanes |= u64::from(code == NO_CODE) << lane;
                    ready[lane] = i64::from(code);
                }
            }
            BatchFieldKind::Text { column, length, pad, n, id, .. } => {
                for (lane, text) in rows.texts(*column, *length).enumerate() {
                    let text_length = text.iter().rposition(|b| b != pad).map_or(0, |last| last + 1);
                    let is_ascii_text =
                        text[..text_length].iter().fold(true, |all, b| all & (1..0x80).contains(b));
                    let is_refused =
                        !is_ascii_text || text_length > *n || *id && text_length > 0 && text[0] < b' ';
                    bad_lanes |= u64::from(is_refused) << lane;
                    missing |= u64::from(text_length == 0) << lane;
                    ready[lane] = text_length as i64;
                }
            }
        }
        if self.is_optional { bad_lanes } else { bad_lanes | missing }
    }

    /// Stores the prepared values into frames; each frame has its lane and its offset in the arena.
    #[inline]
    pub(super) fn store_values(
        &self,
        arena: &mut [u8],
        frames: impl Iterator<Item = (usize, usize)>,
        records: ScatteredRecords<'_>,
    ) {
        for (lane, frame) in frames {
            let lane = lane % LANES;
            let text = match &self.kind {
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
        let canonical_of = |n: &i64| canonical(*n as u32);
        match (&self.kind, self.bulk_mode) {
            (BatchFieldKind::Price { column_index, scale, frame_offset }, BulkStoreMode::Prices) => {
                frames.write_each(columns.lane_values(*column_index), |frame, n| {
                    write_bytes(frame, *frame_offset, n.wrapping_mul(*scale).to_le_bytes());
                });
                for_each_lane(columns.empty_lanes(*column_index), |lane| {
                    write_bytes(frames.frame(lane), *frame_offset, i64::MAX.to_le_bytes())
                });
            }
            (
                BatchFieldKind::Decimal { column_index, frame_offset, exp_offset, narrow, .. },
                BulkStoreMode::Small | BulkStoreMode::Whole,
            ) => {
                let (frame_offset, exp_offset) = (*frame_offset, *exp_offset);
                let values = columns.lane_values(*column_index);
                match (self.bulk_mode, narrow) {
                    (BulkStoreMode::Small, true) => frames.write_each(values, |frame, n| {
                        let (mantissa, places) = small(n);
                        write_bytes(frame, frame_offset, u32::from(mantissa).to_le_bytes());
                        write_bytes(frame, exp_offset, places.to_le_bytes());
                    }),
                    (BulkStoreMode::Small, false) => frames.write_each(values, |frame, n| {
                        let (mantissa, places) = small(n);
                        write_bytes(frame, frame_offset, u64::from(mantissa).to_le_bytes());
                        write_bytes(frame, exp_offset, places.to_le_bytes());
                    }),
                    (_, true) => frames.write_each(values, |frame, n| {
                        let (mantissa, places) = canonical_of(n);
                        write_bytes(frame, frame_offset, mantissa.to_le_bytes());
                        write_bytes(frame, exp_offset, [places]);
                    }),
                    (_, false) => frames.write_each(values, |frame, n| {
                        let (mantissa, places) = canonical_of(n);
                        write_bytes(frame, frame_offset, u64::from(mantissa).to_le_bytes());
                        write_bytes(frame, exp_offset, [places]);
                    }),
                }
                for_each_lane(columns.empty_lanes(*column_index), |lane| {
                    let frame = frames.frame(lane);
                    let mantissa = if *narrow { 4 } else { 8 };
                    frame[frame_offset..frame_offset + mantissa].fill(0);
                    write_bytes(frame, exp_offset, EXP_NONE.to_le_bytes());
                });
            }
            (BatchFieldKind::Nothing { .. }, _) => {}
            (BatchFieldKind::Text { column, length, .. }, _) => {
                for (lane, text) in rows.texts(*column, *length).enumerate().take(LANES) {
                    self.store_ready(frames.frame(lane), lane, text);
                }
            }
            (BatchFieldKind::Code { frame_offset, .. }, _) => {
                frames.write_each(self.lane_values.iter(), |frame, code| frame[*frame_offset] |= *code as u8)
            }
            _ => {
                for lane in 0..rows.count().min(LANES) {
                    self.store_ready(frames.frame(lane), lane, &[]);
                }
            }
        }
    }

    /// Stores the prepared value into one frame; `text` is the text of its column.
    #[inline(always)]
    fn store_ready(&self, frame: &mut [u8], lane: usize, text: &[u8]) {
        let ready = self.lane_values[lane];
        match &self.kind {
            BatchFieldKind::Price { frame_offset, .. } => {
                write_bytes(frame, *frame_offset, ready.to_le_bytes())
            }
            BatchFieldKind::Decimal { frame_offset, exp_offset, narrow, .. } => {
                match narrow {
                    true => write_bytes(frame, *frame_offset, (ready as u32).to_le_bytes()),
                    false => write_bytes(frame, *frame_offset, ready.to_le_bytes()),
                }
                write_bytes(frame, *exp_offset, self.exponents[lane].to_le_bytes());
            }
            BatchFieldKind::UInt { frame_offset, width, .. } => {
                frame[*frame_offset..*frame_offset + width].copy_from_slice(&ready.to_le_bytes()[..*width]);
            }
            BatchFieldKind::Nothing { .. } => {}
            BatchFieldKind::Code { frame_offset, .. } => frame[*frame_offset] |= ready as u8,
            BatchFieldKind::Text { frame_offset, n, id, .. } => {
                let text = &text[..ready as usize];
                let slot = &mut frame[*frame_offset..*frame_offset + n];
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
fn for_each_lane(mut lanes: u64, mut visit: impl FnMut(usize)) {
    while lanes != 0 {
        visit(lanes.trailing_zeros() as usize);
        lanes &= lanes - 1;
    }
}

/// Returns a byte of an event in which every field is empty.
fn event_byte(kind: EventKind, offset: usize) -> u8 {
    let mut frame = Vec::new();
    EventBuilder::begin(&mut frame, kind, UnixNanos(0));
    frame[offset]
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
