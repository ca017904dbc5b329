//! How the fixed part of a kind is cut into columns, and where a frame holds ids.
//!
//! The cells come from the table of [`unitape_model::schema`]: one for each slot, slots wider than eight bytes in
//! words of eight, and one for each gap between slots. Together they tile the fixed part after the header word, so
//! that a frame comes back byte for byte with any content.

use std::sync::OnceLock;

use unitape_model::event::extension_entry;
use unitape_model::schema::{EXP_NONE, EventSchema, FieldLayout, RECV_NONE, SEQ_NONE, at, width_bytes};
use unitape_model::{EventField, EventKind, FrameHeader, InstrumentId, NameKind, flags};

use crate::class::FieldClass;
use crate::column::ColumnSpec;

/// A column of the fixed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameCell {
    /// Offset in the frame.
    pub at: u16,
    pub nature: ColumnSpec,
    /// Four bytes that are a signed number.
    pub signed: bool,
    /// The class of the fields in it.
    pub class: FieldClass,
    /// What it holds where its field is none.
    empty: u64,
}

impl FrameCell {
    /// The value of this cell in `frame`.
    #[inline]
    pub fn read(&self, frame: &[u8]) -> u64 {
        let (at, n) = (usize::from(self.at), usize::from(self.nature.width));
        match n {
            8 => u64::from_le_bytes(frame[at..at + 8].try_into().expect("eight bytes")),
            4 if self.signed => {
                i64::from(i32::from_le_bytes(frame[at..at + 4].try_into().expect("four bytes"))) as u64
            }
            4 => u32::from_le_bytes(frame[at..at + 4].try_into().expect("four bytes")).into(),
            2 => u16::from_le_bytes(frame[at..at + 2].try_into().expect("two bytes")).into(),
            1 => frame[at].into(),
            n => frame[at..at + n].iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)),
        }
    }
}

/// The layout of a kind of event, as far as the store uses it.
#[derive(Debug)]
pub(crate) struct EventKindLayout {
    /// Bytes of the fixed part.
    pub fixed: usize,
    /// Its cells, in order.
    pub cells: Vec<FrameCell>,
    /// Ids in the fixed part: where, and of which dictionary.
    pub ids: Vec<(usize, NameKind)>,
    /// Ids and lists of ids in the extension, by tag.
    pub lists: Vec<(u16, NameKind)>,
    /// Whether the instrument of the common part is one.
    pub has_instrument: bool,
    /// Whether the venue of the common part is one.
    pub has_venue: bool,
    /// Tag of a list of instruments in the extension.
    pub instruments: Option<u16>,
    /// Tags of the extension that are market data.
    market_tags: Vec<u16>,
    /// The fixed part of a frame without a field.
    pub empty: Vec<u8>,
}

impl EventKindLayout {
    /// The plan of frames of `kind` whose fixed part has `fixed_bytes`, which is another in each layout of a kind.
    pub fn find(kind: EventKind, fixed_bytes: u16) -> Option<&'static Self> {
        static PLANS: OnceLock<Vec<Vec<EventKindLayout>>> = OnceLock::new();
        let all = PLANS.get_or_init(|| {
            let mut all: Vec<Vec<EventKindLayout>> =
                (0..=EventKind::NUMBER_MAX).map(|_| Vec::new()).collect();
            EventSchema::all().for_each(|schema| all[schema.kind as usize].push(Self::make(schema)));
            all
        });
        all[kind as usize].iter().find(|plan| plan.fixed == usize::from(fixed_bytes))
    }

    /// The plan of the frames of a layout.
    pub fn for_schema(schema: &EventSchema) -> &'static Self {
        Self::find(schema.kind, schema.fixed_bytes).expect("every layout has a plan")
    }

    fn make(schema: &EventSchema) -> Self {
        let (fixed, kind) = (usize::from(schema.fixed_bytes), schema.kind);
        let class = |field| FieldClass::of(kind, field);
        let market_tag = |field: &EventField| class(*field) == FieldClass::Market;
        let mut cells = vec![
            cell(at::TS_EVENT, 8, None, FieldClass::Market),
            cell(at::SOURCE, 4, None, FieldClass::Provenance),
            cell(at::OFFSET, 4, None, FieldClass::Provenance),
            FrameCell {
                signed: true,
                ..cell(at::RECV_DELTA, 4, Some(i64::from(RECV_NONE) as u64), class(EventField::TsRecv))
            },
            cell(at::SEQUENCE, 4, Some(SEQ_NONE.into()), class(EventField::SrcSeq)),
        ];
        if kind.has_layouts() {
            cells.push(cell(at::KIND_A, 1, None, FieldClass::Market));
        }
        let (mut ids, mut lists, mut instruments) = (Vec::new(), Vec::new(), None);
        for spec in schema.fields {
            if let Some((at, n)) = width_bytes(spec.slot) {
                let (mut at, mut n, all) = (usize::from(at), usize::from(n), usize::from(n));
                let (none, text) = match spec.slot {
                    FieldLayout::Price { .. } => (Some(i64::MAX as u64), false),
                    FieldLayout::Nanos { .. } => (Some(i64::MIN as u64), false),
                    FieldLayout::UInt { width, .. } => (Some(u64::MAX >> (64 - 8 * width)), false),
                    FieldLayout::MillisAfter { .. } => (Some(u16::MAX.into()), false),
                    FieldLayout::Id { .. } | FieldLayout::Text { .. } => (None, true),
                    _ => (None, false),
                };
                while n > 0 {
                    let width = n.min(8);
                    let none = none.filter(|_| all <= 8);
                    let made = cell(at, width, none, class(spec.field));
                    cells.push(FrameCell { nature: ColumnSpec { text, ..made.nature }, ..made });
                    (at, n) = (at + width, n - width);
                }
            }
            // A venue and a bank that quotes have one place.
            if let (Some(dict), Some((at, _))) = (spec.slot.dict(), width_bytes(spec.slot))
                && !ids.contains(&(usize::from(at), dict))
            {
                ids.push((usize::from(at), dict));
            }
            match spec.slot {
                FieldLayout::Decimal { exp_at, .. }
                | FieldLayout::DecimalNarrow { exp_at, .. }
                | FieldLayout::Amount { exp_at, .. } => {
                    let empty = u64::from(EXP_NONE as u8);
                    cells.push(FrameCell { empty, ..cell(exp_at.into(), 1, None, class(spec.field)) });
                }
                FieldLayout::Syms { dict } | FieldLayout::SymExt { dict } => {
                    lists.push((spec.field as u16, dict));
                    if dict == NameKind::Instrument {
                        instruments = Some(spec.field as u16);
                    }
                }
                _ => {}
            }
        }
        cells.sort_unstable_by_key(|c| c.at);
        // Several small codes share a byte. A class is that of a byte: two in one would show one of them to the wrong reader.
        cells.dedup_by(|b, a| {
            assert!(a.at != b.at || a.class == b.class, "{kind:?}: two classes in the byte at {}", a.at);
            a.at == b.at
        });
        let mut plan = Self {
            fixed,
            cells: Vec::new(),
            has_instrument: ids.contains(&(at::INSTRUMENT, NameKind::Instrument)),
            has_venue: ids.contains(&(at::VENUE, NameKind::Venue)),
            ids,
            lists,
            instruments,
            market_tags: [EventField::TsRecv, EventField::SrcSeq]
                .into_iter()
                .chain(schema.fields.iter().map(|spec| spec.field))
                .filter(market_tag)
                .map(|field| field as u16)
                .collect(),
            empty: vec![0; fixed],
        };
        let mut end = at::TS_EVENT;
        for c in cells {
            plan.gap(&mut end, c.at.into());
            end += usize::from(c.nature.width);
            plan.cells.push(c);
        }
        plan.gap(&mut end, fixed);
        for cell in &plan.cells {
            let (at, n) = (usize::from(cell.at), usize::from(cell.nature.width));
            plan.empty[at..at + n].copy_from_slice(&cell.empty.to_le_bytes()[..n]);
        }
        plan
    }

    /// Cells for the bytes between slots. What a foreign writer may have put there is for nobody's eyes.
    fn gap(&mut self, end: &mut usize, to: usize) {
        while *end < to {
            let width = (to - *end).min(8);
            self.cells.push(cell(*end, width, None, FieldClass::Identity));
            *end += width;
        }
    }

    /// The class of an entry of the extension. An entry that is not of a field of this kind is the feed's own.
    pub fn class_of_tag(&self, tag: u16) -> FieldClass {
        if self.market_tags.contains(&tag) { FieldClass::Market } else { FieldClass::Identity }
    }

    /// The instrument of a frame of this kind; 0 none.
    #[inline]
    pub fn instrument(&self, frame: &[u8]) -> InstrumentId {
        InstrumentId(if self.has_instrument {
            u32::from_le_bytes(frame[at::INSTRUMENT..at::INSTRUMENT + 4].try_into().expect("four bytes"))
        } else {
            0
        })
    }

    /// Gives each id in `frame` to `change` and puts what comes back in its place.
    ///
    /// # Errors
    /// The error of `change`, or a list that is no list of ids.
    #[inline]
    pub fn change_ids<E: From<&'static str>>(
        &self,
        frame: &mut [u8],
        mut change: impl FnMut(NameKind, u32) -> Result<u32, E>,
    ) -> Result<(), E> {
        for &(at, dict) in &self.ids {
            if dict == NameKind::Venue {
                let id = u16::from_le_bytes([frame[at], frame[at + 1]]);
                if id != 0 {
                    let id = u16::try_from(change(dict, id.into())?).map_err(|_| "a venue beyond 16 bits")?;
                    frame[at..at + 2].copy_from_slice(&id.to_le_bytes());
                }
            } else {
                change_id(&mut frame[at..at + 4], dict, &mut change)?;
            }
        }
        if !self.lists.is_empty() && FrameHeader::read(frame).flags() & flags::EXT != 0 {
            let mut rest = self.fixed;
            while let Some((tag, range)) = extension_entry(frame, rest) {
                rest = range.end;
                let Some(&(_, dict)) = self.lists.iter().find(|(t, _)| *t == tag) else { continue };
                if range.len() % 4 != 0 {
                    return Err("a list of ids that is cut short".into());
                }
                for id in frame[range].chunks_exact_mut(4) {
                    change_id(id, dict, &mut change)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a frame of this kind has one of `wanted` in a list of instruments.
    pub fn lists_instrument(&self, frame: &[u8], wanted: &[InstrumentId]) -> bool {
        let Some(list) = self.instruments.filter(|_| FrameHeader::read(frame).flags() & flags::EXT != 0)
        else {
            return false;
        };
        let mut rest = self.fixed;
        while let Some((tag, range)) = extension_entry(frame, rest) {
            rest = range.end;
            let id = |b: &[u8]| InstrumentId(u32::from_le_bytes(b.try_into().expect("four bytes")));
            // As readers do: the first entry of a tag is the field.
            if tag == list {
                return frame[range].chunks_exact(4).any(|b| wanted.contains(&id(b)));
            }
        }
        false
    }
}

fn cell(at: usize, width: usize, none: Option<u64>, class: FieldClass) -> FrameCell {
    FrameCell {
        at: at as u16,
        nature: ColumnSpec { width: width as u8, none, text: false },
        signed: false,
        class,
        empty: none.unwrap_or(0),
    }
}

#[inline]
fn change_id<E>(
    place: &mut [u8],
    dict: NameKind,
    change: &mut impl FnMut(NameKind, u32) -> Result<u32, E>,
) -> Result<(), E> {
    let id = u32::from_le_bytes(place.try_into().expect("four bytes"));
    if id != 0 {
        place.copy_from_slice(&change(dict, id)?.to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(kind: EventKind) -> &'static EventKindLayout {
        EventKindLayout::for_schema(EventSchema::for_kind(kind))
    }

    /// A byte in no cell would come back as zero, one in two cells as whichever is written last.
    #[test]
    fn cells_tile_the_fixed_part() {
        for schema in EventSchema::all() {
            let (kind, plan) = (schema.kind, EventKindLayout::for_schema(schema));
            let mut end = at::TS_EVENT;
            for c in &plan.cells {
                assert_eq!(usize::from(c.at), end, "{kind:?}");
                assert!((1..=8).contains(&c.nature.width), "{kind:?}");
                end += usize::from(c.nature.width);
            }
            assert_eq!(end, plan.fixed, "{kind:?}");
        }
    }

    #[test]
    fn a_cell_reads_its_bytes() {
        let frame: Vec<u8> = (0..64u8).map(|b| b.wrapping_mul(3).wrapping_add(100)).collect();
        for width in 1..=8 {
            let c = cell(40, width, None, FieldClass::Market);
            let mut want = [0; 8];
            want[..width].copy_from_slice(&frame[40..40 + width]);
            assert_eq!(c.read(&frame), u64::from_le_bytes(want), "{width}");
        }
        let signed = FrameCell { signed: true, ..cell(40, 4, None, FieldClass::Market) };
        let want = i32::from_le_bytes(frame[40..44].try_into().unwrap());
        assert_eq!(signed.read(&frame), i64::from(want) as u64);
    }

    #[test]
    fn instruments_and_venues_are_known_where_they_are_fields() {
        assert!(plan(EventKind::Bbo).has_instrument && plan(EventKind::Index).has_instrument);
        assert!(plan(EventKind::Ref).has_venue && plan(EventKind::Quote).has_venue);
        assert!(plan(EventKind::Bbo).has_venue && !plan(EventKind::OrderRecv).has_venue);
        assert!(!plan(EventKind::Payment).has_instrument && plan(EventKind::News).instruments.is_some());
        assert_eq!(plan(EventKind::Exec).ids.len(), 8);
    }
}
