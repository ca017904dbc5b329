//! Fields that are told by number, word or identity: prepared by column, stored by column.

use super::program::optional;
use crate::mapping::{FieldPlan, Plan, translate_const};
use unitape_codec::fixed::{Column, Columns, LANES, Lanes, Numbers};
use unitape_model::id::pack_id;
use unitape_model::schema::{EXP_NONE, EXT_ONLY, Slot};
use unitape_model::{Decimal, Dictionary, EventBuilder, InlineId, Kind, Price, UnixNanos};

/// A field, with its values for the batch in hand.
#[derive(Debug)]
pub(super) struct Put {
    what: What,
    optional: bool,
    /// Ready to be stored, by lane.
    ready: Box<Lanes>,
    exponents: Box<[i8; LANES]>,
}

#[derive(Debug)]
enum What {
    /// A price: times this.
    Price { place: usize, scale: i64, at: usize },
    /// A mantissa of `width` bytes and an exponent.
    Decimal { place: usize, exponent: i8, at: usize, exp_at: usize, narrow: bool },
    /// A whole number of so many bytes.
    UInt { place: usize, at: usize, width: usize },
    /// Must not be there: it would stand in the extension.
    Nothing { place: usize },
    /// By byte, bits to set, or [`NO_CODE`].
    Code { column: usize, bits: Box<[u16; 256]>, at: usize },
    /// Text of up to `n` bytes, as it is or as an identity; `ready` is its length.
    Text { column: usize, length: usize, pad: u8, at: usize, n: usize, id: bool },
}

/// No code: missing, or none of the values.
const NO_CODE: u16 = 0x100;

impl Put {
    fn new(what: What, field: &FieldPlan) -> Option<Self> {
        Some(Self {
            what,
            optional: optional(field),
            ready: Box::new([0; LANES]),
            exponents: Box::new([0; LANES]),
        })
    }

    /// A column of numbers.
    pub(super) fn number(field: &FieldPlan, slot: Slot, place: usize, numbers: Numbers) -> Option<Self> {
        let exponent = match numbers {
            Numbers::Int => 0,
            Numbers::Decimal(exponent) => exponent,
            Numbers::Instant => return None,
        };
        let what = match slot {
            Slot::Price { at: EXT_ONLY } => What::Nothing { place },
            Slot::Price { at } => {
                let scale = u32::try_from(i32::from(exponent) + Price::PLACES as i32).ok()?;
                What::Price { place, scale: 10i64.checked_pow(scale)?, at: at.into() }
            }
            Slot::Decimal { at, exp_at } => {
                What::Decimal { place, exponent, at: at.into(), exp_at: exp_at.into(), narrow: false }
            }
            Slot::DecimalNarrow { at, exp_at } => {
                What::Decimal { place, exponent, at: at.into(), exp_at: exp_at.into(), narrow: true }
            }
            Slot::UInt { at, width } if exponent == 0 => {
                What::UInt { place, at: at.into(), width: width.into() }
            }
            _ => return None,
        };
        Self::new(what, field)
    }

    /// A column of text.
    pub(super) fn text(plan: &Plan, field: &FieldPlan, slot: Slot, of: &Column, kind: Kind) -> Option<Self> {
        let what = match slot {
            Slot::Code { at, .. } | Slot::Bool { at, .. } if of.is_one_character() => {
                let bits = |byte: usize| {
                    let text = [byte as u8];
                    if text[0] == of.pad() {
                        return if optional(field) { 0 } else { NO_CODE };
                    }
                    // As the general way would set it, once for each byte.
                    let Some(value) = translate_const(plan, field, &text) else { return NO_CODE };
                    let mut frame = Vec::new();
                    let mut event = EventBuilder::begin(&mut frame, kind, UnixNanos(0));
                    let before = event_byte(kind, at.into());
                    match event.set_text(field.spec, value, &mut Dictionary::default()) {
                        Ok(()) => u16::from(frame[usize::from(at)] & !before),
                        Err(_) => NO_CODE,
                    }
                };
                What::Code { column: of.start(), bits: Box::new(std::array::from_fn(bits)), at: at.into() }
            }
            Slot::Text { at, n } | Slot::Id { at, n } if at != EXT_ONLY => {
                let id = matches!(slot, Slot::Id { .. });
                if field.table.is_some() || !of.is_plain_text() || of.length() > TEXT_BYTES_MAX {
                    return None;
                }
                let (column, length, pad) = (of.start(), of.length(), of.pad());
                What::Text { column, length, pad, at: at.into(), n: n.into(), id }
            }
            _ => return None,
        };
        Self::new(what, field)
    }

    /// Makes the values of a batch ready; gives the lanes whose value cannot be stored.
    #[inline]
    pub(super) fn prepare(&mut self, columns: &Columns, bytes: &[u8], starts: &[u32]) -> u64 {
        let mut bad = 0;
        let ready = &mut *self.ready;
        let mut missing = 0;
        match &self.what {
            What::Price { place, scale, .. } => {
                let values = &columns.values(*place)[..starts.len()];
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
            What::Decimal { place, exponent, narrow, .. } => {
                let values = columns.values(*place);
                missing = columns.none(*place);
                let count = starts.len();
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
            What::UInt { place, width, .. } => {
                let values = columns.values(*place);
                missing = columns.none(*place);
                let most = u64::MAX >> (64 - 8 * width);
                for lane in 0..starts.len() {
                    bad |= u64::from(values[lane] < 0 || values[lane] as u64 >= most - 1) << lane;
                    ready[lane] = values[lane];
                }
                each(missing, |lane| ready[lane] = -1);
                bad &= !missing;
            }
            What::Nothing { place } => return !columns.none(*place),
            What::Code { column, bits, .. } => {
                for (lane, start) in starts.iter().enumerate() {
                    let code = bits[usize::from(bytes[*start as usize + column])];
                    bad |= u64::from(code == NO_CODE) << lane;
                    ready[lane] = i64::from(code);
                }
            }
            What::Text { column, length, pad, n, id, .. } => {
                for (lane, start) in starts.iter().enumerate() {
                    let start = *start as usize + column;
                    let text = &bytes[start..start + length];
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

    /// Puts the values into their frames, of each the lane and where it stands in the arena.
    #[inline]
    pub(super) fn store(
        &self,
        arena: &mut [u8],
        frames: impl Iterator<Item = (usize, usize)>,
        bytes: &[u8],
        starts: &[u32],
    ) {
        let ready = &*self.ready;
        match &self.what {
            What::Price { at, .. } => {
                for (lane, frame) in frames {
                    put(arena, frame, *at, ready[lane % LANES].to_le_bytes());
                }
            }
            What::Decimal { at, exp_at, narrow: true, .. } => {
                for (lane, frame) in frames {
                    put(arena, frame, *at, (ready[lane % LANES] as u32).to_le_bytes());
                    put(arena, frame, *exp_at, self.exponents[lane % LANES].to_le_bytes());
                }
            }
            What::Decimal { at, exp_at, .. } => {
                for (lane, frame) in frames {
                    put(arena, frame, *at, ready[lane % LANES].to_le_bytes());
                    put(arena, frame, *exp_at, self.exponents[lane % LANES].to_le_bytes());
                }
            }
            What::UInt { at, width, .. } => {
                for (lane, frame) in frames {
                    let (value, start) = (ready[lane % LANES].to_le_bytes(), frame + at);
                    arena[start..start + width].copy_from_slice(&value[..*width]);
                }
            }
            What::Nothing { .. } => {}
            What::Code { at, .. } => {
                for (lane, frame) in frames {
                    arena[frame + at] |= ready[lane % LANES] as u8;
                }
            }
            What::Text { column, at, n, id, .. } => {
                for (lane, frame) in frames {
                    let start = starts[lane] as usize + column;
                    let text = &bytes[start..start + ready[lane % LANES] as usize];
                    let at = frame + at;
                    let slot = &mut arena[at..at + n];
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
}

/// Text is looked at byte by byte; longer columns are seldom.
const TEXT_BYTES_MAX: usize = 64;

#[inline]
fn put<const N: usize>(arena: &mut [u8], frame: usize, at: usize, value: [u8; N]) {
    let at = frame + at;
    arena[at..at + N].copy_from_slice(&value);
}

/// Calls `visit` with each lane of a mask.
#[inline]
fn each(mut lanes: u64, mut visit: impl FnMut(usize)) {
    while lanes != 0 {
        visit(lanes.trailing_zeros() as usize);
        lanes &= lanes - 1;
    }
}

/// A byte of an event with every field none.
fn event_byte(kind: Kind, at: usize) -> u8 {
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
