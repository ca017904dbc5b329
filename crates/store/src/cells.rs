//! How the fixed part of a kind is cut into columns, and where a frame holds ids.
//!
//! The cells come from the table of [`unitape_model::schema`]: one for each slot, slots wider than eight bytes in
//! words of eight, and one for each gap between slots. Together they tile the fixed part after the header word, so
//! that a frame comes back byte for byte with any content.

use std::sync::OnceLock;

use unitape_model::event::extension_entry;
use unitape_model::schema::{EXP_NONE, EventSchema, FieldLayout, RECV_NONE, SEQ_NONE, at, width_bytes};
use unitape_model::{EventField, EventKind, FieldClass, FrameHeader, InstrumentId, NameKind, flags};

use crate::column::ColumnSpec;

/// A column of the fixed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameCell {
    /// Offset in the frame.
    pub offset: u16,
    pub nature: ColumnSpec,
    /// Four bytes that are a signed number.
    pub signed: bool,
    /// The class of the fields in it.
    pub class: FieldClass,
    /// The bytes of the cell if its field is empty.
    empty: u64,
}

impl FrameCell {
    /// Reads the value of this cell from `frame`.
    #[inline]
    pub fn read_value(&self, frame: &[u8]) -> u64 {
        let (offset, n) = (usize::from(self.offset), usize::from(self.nature.width));
        match n {
            8 => u64::from_le_bytes(frame[offset..offset + 8].try_into().expect("eight bytes")),
            4 if self.signed => {
                i64::from(i32::from_le_bytes(frame[offset..offset + 4].try_into().expect("four bytes")))
                    as u64
            }
            4 => u32::from_le_bytes(frame[offset..offset + 4].try_into().expect("four bytes")).into(),
            2 => u16::from_le_bytes(frame[offset..offset + 2].try_into().expect("two bytes")).into(),
            1 => frame[offset].into(),
            n => frame[offset..offset + n].iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)),
        }
    }
}

/// Cells before [`at::INSTRUMENT`]: event time, source, offset, receive time and sequence.
const SHARED_CELLS: usize = 5;

/// The layout of a kind of event, as far as the store uses it.
#[derive(Debug)]
pub(crate) struct EventKindLayout {
    /// The kind of event.
    pub kind: EventKind,
    /// The number of the layout among those of its kind.
    pub layout: u8,
    /// Bytes of the fixed part.
    pub fixed: usize,
    /// Its cells, in order.
    pub cells: Vec<FrameCell>,
    /// Ids in the fixed part: where, and of which dictionary.
    pub ids: Vec<(usize, NameKind)>,
    /// Ids and lists of ids in the extension, by tag.
    pub lists: Vec<(u16, NameKind)>,
    /// Whether the frame has an instrument in the common part.
    pub has_instrument: bool,
    /// Whether the frame has a venue in the common part.
    pub has_venue: bool,
    /// Tag of a list of instruments in the extension.
    pub instruments: Option<u16>,
    /// Tags of the extension that are market data.
    market_tags: Vec<u16>,
    /// The fixed part of a frame without a field.
    pub empty: Vec<u8>,
}

impl EventKindLayout {
    /// Returns the layouts of a kind.
    pub fn for_kind(kind: EventKind) -> &'static [Self] {
        static PLANS: OnceLock<Vec<Vec<EventKindLayout>>> = OnceLock::new();
        let all = PLANS.get_or_init(|| {
            let mut layouts: Vec<Vec<EventKindLayout>> =
                (0..=EventKind::NUMBER_MAX).map(|_| Vec::new()).collect();
            EventSchema::all()
                .for_each(|schema| layouts[schema.kind as usize].push(Self::from_schema(schema)));
            layouts
        });
        &all[kind as usize]
    }

    /// Finds layout number `layout` of a kind.
    pub fn find_layout(kind: EventKind, layout: u8) -> Option<&'static Self> {
        Self::for_kind(kind).iter().find(|plan| plan.layout == layout)
    }

    /// Returns the layout of the frames of a schema.
    pub fn for_schema(schema: &EventSchema) -> &'static Self {
        Self::find_layout(schema.kind, schema.layout).expect("every layout has a plan")
    }

    /// Returns the layout of a frame.
    ///
    /// # Panics
    /// Panics if the frame is no event, or of a layout that this build does not know.
    #[inline]
    pub fn for_frame(frame: &[u8]) -> &'static Self {
        let kind = EventKind::from_u8(FrameHeader::read(frame).kind());
        let schema = kind.and_then(|kind| EventSchema::for_frame(kind, frame[at::KIND_A]));
        Self::for_schema(schema.expect("a frame of a known kind and layout"))
    }

    /// Returns the cells that all frames have in the same place: times, source and sequence.
    pub fn shared_cells(&self) -> &[FrameCell] {
        &self.cells[..SHARED_CELLS]
    }

    /// Returns the other cells.
    pub fn own_cells(&self) -> &[FrameCell] {
        &self.cells[SHARED_CELLS..]
    }

    fn from_schema(schema: &EventSchema) -> Self {
        let (fixed, kind) = (usize::from(schema.fixed_bytes), schema.kind);
        let class = |field| FieldClass::for_event_field(kind, field);
        let market_tag = |field: &EventField| class(*field) == FieldClass::Market;
        let mut cells = vec![
            make_cell(at::TS_EVENT, 8, None, FieldClass::Market),
            make_cell(at::SOURCE, 4, None, FieldClass::Provenance),
            make_cell(at::OFFSET, 4, None, FieldClass::Provenance),
            FrameCell {
                signed: true,
                ..make_cell(at::RECV_DELTA, 4, Some(i64::from(RECV_NONE) as u64), class(EventField::TsRecv))
            },
            make_cell(at::SEQUENCE, 4, Some(SEQ_NONE.into()), class(EventField::SrcSeq)),
        ];
        if kind.has_layouts() {
            cells.push(make_cell(at::KIND_A, 1, None, FieldClass::Market));
        }
        let (mut ids, mut lists, mut instruments) = (Vec::new(), Vec::new(), None);
        for spec in schema.fields {
            if let Some((slot_offset, n)) = width_bytes(spec.slot) {
                let (mut offset, mut n, all) = (usize::from(slot_offset), usize::from(n), usize::from(n));
                let (null_value, is_text) = match spec.slot {
                    FieldLayout::Price { .. } => (Some(i64::MAX as u64), false),
                    FieldLayout::Nanos { .. } => (Some(i64::MIN as u64), false),
                    FieldLayout::UInt { width, .. } => (Some(u64::MAX >> (64 - 8 * width)), false),
                    FieldLayout::MillisAfter { .. } => (Some(u16::MAX.into()), false),
                    FieldLayout::Id { .. } | FieldLayout::Text { .. } => (None, true),
                    _ => (None, false),
                };
                while n > 0 {
                    let width = n.min(8);
                    let cell_null = null_value.filter(|_| all <= 8);
                    let frame_cell = make_cell(offset, width, cell_null, class(spec.field));
                    cells.push(FrameCell {
                        nature: ColumnSpec { is_text, ..frame_cell.nature },
                        ..frame_cell
                    });
                    (offset, n) = (offset + width, n - width);
                }
            }
            // A venue and a bank that quotes have one place.
            if let (Some(dict), Some((id_offset, _))) = (spec.slot.dict(), width_bytes(spec.slot))
                && !ids.contains(&(usize::from(id_offset), dict))
            {
                ids.push((usize::from(id_offset), dict));
            }
            match spec.slot {
                FieldLayout::Decimal { exp_offset, .. }
                | FieldLayout::DecimalNarrow { exp_offset, .. }
                | FieldLayout::Amount { exp_offset, .. } => {
                    let empty = u64::from(EXP_NONE as u8);
                    cells.push(FrameCell {
                        empty,
                        ..make_cell(exp_offset.into(), 1, None, class(spec.field))
                    });
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
        cells.sort_unstable_by_key(|c| c.offset);
        // Several small codes share a byte. A byte has one class: two classes in a byte would show a code to the wrong
        // reader.
        cells.dedup_by(|b, a| {
            assert!(
                a.offset != b.offset || a.class == b.class,
                "{kind:?}: two classes in the byte at {}",
                a.offset
            );
            a.offset == b.offset
        });
        let mut plan = Self {
            kind,
            layout: schema.layout,
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
        let mut slot_end = at::TS_EVENT;
        for c in cells {
            plan.add_gap_cells(&mut slot_end, c.offset.into());
            slot_end += usize::from(c.nature.width);
            plan.cells.push(c);
        }
        plan.add_gap_cells(&mut slot_end, fixed);
        for cell in &plan.cells {
            let (cell_offset, n) = (usize::from(cell.offset), usize::from(cell.nature.width));
            plan.empty[cell_offset..cell_offset + n].copy_from_slice(&cell.empty.to_le_bytes()[..n]);
        }
        plan
    }

    /// Adds cells for the bytes between slots. A foreign writer may have put anything there, so no reader may see it.
    fn add_gap_cells(&mut self, end: &mut usize, to: usize) {
        while *end < to {
            let width = (to - *end).min(8);
            self.cells.push(make_cell(*end, width, None, FieldClass::Identity));
            *end += width;
        }
    }

    /// Returns whether a frame may have ids in market data besides its instrument and its venue, in the fixed part.
    pub fn has_more_fixed_names(&self) -> bool {
        let is_market = |offset: usize| {
            self.cells
                .iter()
                .any(|cell| usize::from(cell.offset) == offset && cell.class == FieldClass::Market)
        };
        let mut more = self.ids.iter().filter(|(offset, _)| !matches!(*offset, at::INSTRUMENT | at::VENUE));
        more.any(|(offset, _)| is_market(*offset))
    }

    /// Returns whether a frame may have ids in the market data of its extension.
    pub fn lists_market_names(&self) -> bool {
        self.lists.iter().any(|(tag, _)| self.market_tags.contains(tag))
    }

    /// Returns the class of an entry of the extension. An entry that is no field of this kind comes from the feed, and
    /// its class is identity.
    pub fn class_of_tag(&self, tag: u16) -> FieldClass {
        if self.market_tags.contains(&tag) { FieldClass::Market } else { FieldClass::Identity }
    }

    /// Reads the instrument of a frame of this kind, or 0 if the kind has no instrument.
    #[inline]
    pub fn instrument(&self, frame: &[u8]) -> InstrumentId {
        InstrumentId(if self.has_instrument {
            u32::from_le_bytes(frame[at::INSTRUMENT..at::INSTRUMENT + 4].try_into().expect("four bytes"))
        } else {
            0
        })
    }

    /// Passes each id in `frame` to `change` and replaces it by the result.
    ///
    /// # Errors
    /// Fails if `change` fails, or if a list is not a list of ids.
    #[inline]
    pub fn change_ids<E: From<&'static str>>(
        &self,
        frame: &mut [u8],
        mut change: impl FnMut(NameKind, u32) -> Result<u32, E>,
    ) -> Result<(), E> {
        for &(offset, dict) in &self.ids {
            if dict == NameKind::Venue {
                let id = u16::from_le_bytes([frame[offset], frame[offset + 1]]);
                if id != 0 {
                    let id = u16::try_from(change(dict, id.into())?).map_err(|_| "a venue beyond 16 bits")?;
                    frame[offset..offset + 2].copy_from_slice(&id.to_le_bytes());
                }
            } else {
                change_id(&mut frame[offset..offset + 4], dict, &mut change)?;
            }
        }
        if !self.lists.is_empty() && FrameHeader::read(frame).flags() & flags::EXT != 0 {
            let mut bytes_left = self.fixed;
            while let Some((tag, range)) = extension_entry(frame, bytes_left) {
                bytes_left = range.end;
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

    /// Returns whether a list of instruments in a frame of this kind has an instrument of `wanted`.
    pub fn lists_instrument(&self, frame: &[u8], wanted: &[InstrumentId]) -> bool {
        let Some(list) = self.instruments.filter(|_| FrameHeader::read(frame).flags() & flags::EXT != 0)
        else {
            return false;
        };
        let mut bytes_left = self.fixed;
        while let Some((tag, range)) = extension_entry(frame, bytes_left) {
            bytes_left = range.end;
            let id = |b: &[u8]| InstrumentId(u32::from_le_bytes(b.try_into().expect("four bytes")));
            // As readers do: the first entry of a tag is the field.
            if tag == list {
                return frame[range].chunks_exact(4).any(|b| wanted.contains(&id(b)));
            }
        }
        false
    }
}

fn make_cell(offset: usize, width: usize, null_value: Option<u64>, class: FieldClass) -> FrameCell {
    FrameCell {
        offset: offset as u16,
        nature: ColumnSpec { width: width as u8, null_value, is_text: false },
        signed: false,
        class,
        empty: null_value.unwrap_or(0),
    }
}

#[inline]
fn change_id<E>(
    id_bytes: &mut [u8],
    dict: NameKind,
    change: &mut impl FnMut(NameKind, u32) -> Result<u32, E>,
) -> Result<(), E> {
    let id = u32::from_le_bytes(id_bytes.try_into().expect("four bytes"));
    if id != 0 {
        id_bytes.copy_from_slice(&change(dict, id)?.to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TickSchema;

    fn plan(kind: EventKind) -> &'static EventKindLayout {
        EventKindLayout::for_schema(EventSchema::for_kind(kind))
    }

    /// Fails if a byte is in no cell, which would read back as zero, or in two cells, where the last write would win.
    #[test]
    fn cells_tile_the_fixed_part() {
        for schema in EventSchema::all() {
            let (kind, plan) = (schema.kind, EventKindLayout::for_schema(schema));
            let mut end = at::TS_EVENT;
            for c in &plan.cells {
                assert_eq!(usize::from(c.offset), end, "{kind:?}");
                assert!((1..=8).contains(&c.nature.width), "{kind:?}");
                end += usize::from(c.nature.width);
            }
            assert_eq!(end, plan.fixed, "{kind:?}");
        }
    }

    /// Fails if two kinds of a schema differ in the shared cells: a block keeps those of all its rows in one column.
    #[test]
    fn the_shared_cells_of_a_schema_are_the_same() {
        for schema in EventSchema::all().filter(|schema| !schema.kind.is_meta()) {
            let first = TickSchema::for_kind(schema.kind).unwrap().kinds().next().unwrap();
            let shared = EventKindLayout::for_schema(schema).shared_cells();
            assert_eq!(shared, plan(first).shared_cells(), "{:?}", schema.kind);
            assert_eq!(shared.last().map(|cell| cell.offset as usize + 4), Some(at::INSTRUMENT));
        }
    }

    #[test]
    fn a_cell_reads_its_bytes() {
        let frame: Vec<u8> = (0..64u8).map(|b| b.wrapping_mul(3).wrapping_add(100)).collect();
        for width in 1..=8 {
            let c = make_cell(40, width, None, FieldClass::Market);
            let mut want = [0; 8];
            want[..width].copy_from_slice(&frame[40..40 + width]);
            assert_eq!(c.read_value(&frame), u64::from_le_bytes(want), "{width}");
        }
        let signed = FrameCell { signed: true, ..make_cell(40, 4, None, FieldClass::Market) };
        let want = i32::from_le_bytes(frame[40..44].try_into().unwrap());
        assert_eq!(signed.read_value(&frame), i64::from(want) as u64);
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
