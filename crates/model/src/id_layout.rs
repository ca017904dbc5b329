//! Where the frames of each kind have ids.

use crate::event::extension_entry;
use crate::frame::{FrameHeader, flags};
use crate::id::NameKind;
use crate::kind::EventKind;
use crate::schema::{EventSchema, FieldLayout, at};
use std::sync::LazyLock;

/// The places of the ids in the frames of one layout of a kind.
#[derive(Clone, Debug)]
pub struct IdLayout {
    /// The kind.
    pub kind: EventKind,
    /// Bytes of the fixed part; the extension follows.
    pub fixed_bytes: usize,
    /// The place of all kinds has the id of a venue, or of a bank that quotes.
    pub has_venue: bool,
    /// Ids of four bytes in the fixed part.
    pub wide_ids: Vec<WideId>,
    /// Entries of the extension that hold ids of four bytes.
    pub listed_ids: Vec<ListedIds>,
}

/// An id of four bytes in the fixed part.
#[derive(Clone, Copy, Debug)]
pub struct WideId {
    /// The dictionary.
    pub dict: NameKind,
    /// Bytes from the start of the frame.
    pub offset: usize,
}

/// An entry of the extension that holds ids.
#[derive(Clone, Copy, Debug)]
pub struct ListedIds {
    /// The dictionary.
    pub dict: NameKind,
    /// The tag of the entry.
    pub tag: u16,
}

/// The layouts of all kinds.
#[derive(Debug)]
pub struct IdLayoutTable {
    layouts: Vec<Option<IdLayout>>,
}

impl IdLayoutTable {
    /// Returns the table of this build's schema.
    pub fn get() -> &'static Self {
        static TABLE: LazyLock<IdLayoutTable> = LazyLock::new(IdLayoutTable::new);
        &TABLE
    }

    fn new() -> Self {
        let mut layouts = vec![None; KINDS * LAYOUTS];
        for schema in EventSchema::all() {
            let layout = if schema.kind.has_layouts() { usize::from(schema.layout) } else { 0 };
            layouts[schema.kind as usize * LAYOUTS + layout] = Some(IdLayout::new(schema));
        }
        Self { layouts }
    }

    /// Looks up the id layout of a frame. Returns `None` if this build does not know the kind or the layout, or if the
    /// frame is shorter than its kind.
    #[inline]
    pub fn find(&self, header: FrameHeader, frame: &[u8]) -> Option<&IdLayout> {
        let kind = EventKind::from_u8(header.kind())?;
        let layout = if kind.has_layouts() { usize::from(*frame.get(at::KIND_A)?) } else { 0 };
        if layout >= LAYOUTS {
            return None;
        }
        let id_layout = self.layouts[kind as usize * LAYOUTS + layout].as_ref()?;
        (frame.len() >= id_layout.fixed_bytes).then_some(id_layout)
    }
}

impl IdLayout {
    fn new(schema: &EventSchema) -> Self {
        let fixed_bytes = schema.fixed_bytes.into();
        let (kind, wide, listed) = (schema.kind, Vec::new(), Vec::new());
        let mut ids = Self { kind, fixed_bytes, has_venue: false, wide_ids: wide, listed_ids: listed };
        for spec in schema.fields {
            match spec.slot {
                FieldLayout::Sym { dict: NameKind::Venue, .. } | FieldLayout::Publisher { .. } => {
                    ids.has_venue = true
                }
                FieldLayout::Sym { dict, offset } => {
                    ids.wide_ids.push(WideId { dict, offset: offset.into() })
                }
                FieldLayout::SymExt { dict } | FieldLayout::Syms { dict } => {
                    ids.listed_ids.push(ListedIds { dict, tag: spec.field as u16 });
                }
                _ => {}
            }
        }
        ids
    }

    /// Passes the positions of the ids in the extension of a frame to `each`. The first entry with a field's number is
    /// the field's value.
    pub fn each_listed(&self, header: FrameHeader, frame: &[u8], mut each: impl FnMut(NameKind, usize)) {
        if self.listed_ids.is_empty() || header.flags() & flags::EXT == 0 {
            return;
        }
        for ids in &self.listed_ids {
            let mut offset = self.fixed_bytes;
            while let Some((tag, payload)) = extension_entry(frame, offset) {
                offset = payload.end;
                if tag == ids.tag {
                    let ids_end = payload.start + payload.len() / 4 * 4;
                    (payload.start..ids_end).step_by(4).for_each(|id_offset| each(ids.dict, id_offset));
                    break;
                }
            }
        }
    }
}

/// Numbers of kinds are below this.
const KINDS: usize = 64;
const _: () = assert!(KINDS > EventKind::NUMBER_MAX as usize);
/// A kind has no more layouts than these.
const LAYOUTS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    /// An id that the table does not know would keep the number of another tape, and with it another name.
    #[test]
    fn every_id_of_the_schema_has_its_place_in_the_table() {
        let table = IdLayoutTable::new();
        for schema in EventSchema::all() {
            assert!(usize::from(schema.layout) < LAYOUTS);
            let mut frame = vec![0; usize::from(schema.fixed_bytes)];
            if schema.kind.has_layouts() {
                frame[at::KIND_A] = schema.layout;
            }
            let header = FrameHeader::new_unstamped(schema.kind as u8, 0, (frame.len() / 64) as u16);
            let id_layout = table.find(header, &frame).expect("a known layout");
            let wanted = |slot| match slot {
                FieldLayout::Sym { dict: NameKind::Venue, offset } => {
                    assert_eq!(usize::from(offset), at::VENUE);
                    0
                }
                FieldLayout::Sym { .. } | FieldLayout::SymExt { .. } | FieldLayout::Syms { .. } => 1,
                _ => 0,
            };
            let count: usize = schema.fields.iter().map(|spec| wanted(spec.slot)).sum();
            assert_eq!(id_layout.wide_ids.len() + id_layout.listed_ids.len(), count, "{:?}", schema.kind);
            frame.pop();
            assert!(table.find(header, &frame).is_none(), "shorter than its kind");
        }
        assert!(table.find(FrameHeader::new_unstamped(63, 0, 1), &[0; 64]).is_none());
    }
}
