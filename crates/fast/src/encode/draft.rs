//! A message before it is encoded: values in the cells of frames, in any order, used again for the next one.

use super::plan::{EncodePlan, NONE};
use crate::record::FieldValue;
use crate::template::WireType;
use std::sync::Arc;

/// A part of a template, by its path.
#[derive(Debug, Clone, Copy)]
pub enum TemplatePartRef {
    /// A value.
    Field(FieldRef),
    /// Parts that are there together.
    Group(GroupRef),
    /// Parts that are there any number of times.
    Sequence(SequenceRef),
    /// The contents of another template, which the message names; the last name of its path is empty.
    Reference(DynamicTemplateRef),
}

/// Where a field's value goes; looked up once, used for every message.
#[derive(Debug, Clone, Copy)]
pub struct FieldRef {
    pub(super) frame: u32,
    pub(super) cell: u32,
    pub(super) group: u32,
    pub(super) kind: WireType,
    pub(super) optional: bool,
}

impl FieldRef {
    /// The type of its values.
    #[must_use]
    pub const fn kind(&self) -> WireType {
        self.kind
    }

    /// Whether it may be absent.
    #[must_use]
    pub const fn optional(&self) -> bool {
        self.optional
    }
}

/// A group.
#[derive(Debug, Clone, Copy)]
pub struct GroupRef {
    pub(super) frame: u32,
    pub(super) group: u32,
}

/// A sequence.
#[derive(Debug, Clone, Copy)]
pub struct SequenceRef {
    pub(super) frame: u32,
    pub(super) cell: u32,
    pub(super) group: u32,
    pub(super) element: u32,
    pub(super) optional: bool,
}

impl SequenceRef {
    /// Whether it may be absent.
    #[must_use]
    pub const fn optional(&self) -> bool {
        self.optional
    }
}

/// A dynamic reference.
#[derive(Debug, Clone, Copy)]
pub struct DynamicTemplateRef {
    pub(super) frame: u32,
    pub(super) cell: u32,
    pub(super) group: u32,
}

/// The message, an element, or what replaces a dynamic reference: what values go into.
#[derive(Debug, Clone, Copy)]
pub struct DraftFrameRef {
    frame: u32,
    at: u32,
}

/// A value, or what there is of a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct DraftCell {
    /// The number; offset and length of a text; the first element and the last; the place of what is referred to.
    pub bits: u64,
    /// How many elements; which template.
    pub count: u32,
    pub exponent: i8,
    pub tag: CellKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellKind {
    Absent,
    Int,
    UInt,
    Decimal,
    Text,
    Bytes,
    /// A group, a sequence, a reference.
    There,
}

impl DraftCell {
    pub const ABSENT: Self = DraftCell { bits: 0, count: 0, exponent: 0, tag: CellKind::Absent };
}

/// A message under construction: see [`super::Encoder`].
///
/// Values go into the message, into the last begun element of a sequence, or where [`MessageDraft::reopen`] says. You
/// may set them in any order; a value that is not set is absent.
///
/// # Panics
/// A part of another template than the draft's, or of a sequence without an element yet, is a mistake of the program.
#[derive(Debug, Clone)]
pub struct MessageDraft {
    pub(super) plan: Arc<EncodePlan>,
    pub(super) cells: Vec<DraftCell>,
    pub(super) texts: Vec<u8>,
    pub(super) template: u32,
    /// Where the frame of each kind is that was begun last.
    open: Vec<u32>,
}

impl MessageDraft {
    pub(super) fn new(plan: Arc<EncodePlan>, template: u32) -> Self {
        let open = vec![NONE; plan.frames.len()];
        let mut draft = MessageDraft { plan, cells: Vec::new(), texts: Vec::new(), template, open };
        draft.begin(template as usize);
        draft
    }

    /// Begins a message of this template, by its place in the list; all values are gone.
    pub fn begin(&mut self, template: usize) {
        self.cells.clear();
        self.texts.clear();
        self.open.fill(NONE);
        self.template = template as u32;
        self.frame(self.plan.templates[template].frame);
    }

    /// Its template, by its place in the list.
    #[must_use]
    pub fn template(&self) -> usize {
        self.template as usize
    }

    /// Sets a value. If the field cannot have it, encoding the message fails.
    #[inline]
    pub fn set(&mut self, field: FieldRef, value: FieldValue<'_>) {
        *self.cell(field.frame, field.cell) = self.cell_of(value);
        self.there(field.frame, field.group);
    }

    /// A number without a sign.
    #[inline]
    pub fn uint(&mut self, field: FieldRef, value: u64) {
        self.set(field, FieldValue::UInt(value));
    }

    /// The value is absent.
    pub fn unset(&mut self, field: FieldRef) {
        *self.cell(field.frame, field.cell) = DraftCell::ABSENT;
    }

    /// The group is there, also where none of its fields is.
    pub fn group(&mut self, group: GroupRef) {
        self.there(group.frame, group.group);
    }

    /// The sequence is there, also where it has no element.
    #[inline]
    pub fn sequence(&mut self, sequence: SequenceRef) {
        self.cell(sequence.frame, sequence.cell).tag = CellKind::There;
        self.there(sequence.frame, sequence.group);
    }

    /// Begins another element.
    #[inline]
    pub fn element(&mut self, sequence: SequenceRef) -> DraftFrameRef {
        self.sequence(sequence);
        let index = self.index(sequence.frame, sequence.cell);
        let at = self.add(index, sequence.element);
        DraftFrameRef { frame: sequence.element, at }
    }

    /// A frame after the other elements of the sequence of this cell.
    #[inline]
    pub(super) fn add(&mut self, index: usize, element: u32) -> u32 {
        let at = self.frame(element);
        let cell = &mut self.cells[index];
        let (first, last) = (cell.bits >> 32, cell.bits as u32);
        cell.count += 1;
        if cell.count == 1 {
            cell.bits = u64::from(at) << 32 | u64::from(at);
        } else {
            cell.bits = first << 32 | u64::from(at);
            self.cells[last as usize].bits = at.into();
        }
        at
    }

    /// This template, by its place in the list, replaces the reference. Values of the template go there.
    pub fn set_reference(&mut self, reference: DynamicTemplateRef, template: usize) -> DraftFrameRef {
        let frame = self.plan.templates[template].frame;
        // Before the frame: it may be of the same kind as the one that it is in.
        let (from, group) = (self.index(reference.frame, reference.cell), reference.group);
        self.there(reference.frame, group);
        let at = self.frame(frame);
        let count = template as u32;
        self.cells[from] = DraftCell { bits: at.into(), count, exponent: 0, tag: CellKind::There };
        DraftFrameRef { frame, at }
    }

    /// Values go here again.
    pub fn reopen(&mut self, place: DraftFrameRef) {
        self.close_inside(place.frame);
        self.open[place.frame as usize] = place.at;
    }

    /// The message itself.
    #[must_use]
    pub fn message_frame(&self) -> DraftFrameRef {
        DraftFrameRef { frame: self.plan.templates[self.template as usize].frame, at: 0 }
    }

    /// A frame with nothing in it, open for values.
    #[inline]
    pub(super) fn frame(&mut self, frame: u32) -> u32 {
        let at = self.cells.len() as u32;
        let cells = self.plan.frames[frame as usize].cells as usize;
        self.cells.resize(at as usize + cells, DraftCell::ABSENT);
        self.close_inside(frame);
        self.open[frame as usize] = at;
        at
    }

    /// No element of a sequence inside is begun yet.
    #[inline]
    fn close_inside(&mut self, frame: u32) {
        let inside = frame as usize + 1..self.plan.frames[frame as usize].end as usize;
        self.open[inside].fill(NONE);
    }

    #[inline]
    fn index(&self, frame: u32, cell: u32) -> usize {
        let at = self.open[frame as usize];
        assert!(at != NONE, "a part of another template, or of a sequence without an element");
        (at + cell) as usize
    }

    #[inline]
    fn cell(&mut self, frame: u32, cell: u32) -> &mut DraftCell {
        let index = self.index(frame, cell);
        &mut self.cells[index]
    }

    /// The groups around a part are there with it.
    #[inline]
    fn there(&mut self, frame: u32, mut group: u32) {
        while group != NONE {
            let of = self.plan.groups[group as usize];
            self.cell(frame, of.cell).tag = CellKind::There;
            group = of.around;
        }
    }

    #[inline]
    pub(super) fn cell_of(&mut self, value: FieldValue<'_>) -> DraftCell {
        match value {
            FieldValue::Int(value) => {
                DraftCell { bits: value as u64, tag: CellKind::Int, ..DraftCell::ABSENT }
            }
            FieldValue::UInt(value) => DraftCell { bits: value, tag: CellKind::UInt, ..DraftCell::ABSENT },
            FieldValue::Decimal { mantissa, exponent } => {
                DraftCell { bits: mantissa as u64, exponent, tag: CellKind::Decimal, ..DraftCell::ABSENT }
            }
            FieldValue::Text(text) => self.text(text, CellKind::Text),
            FieldValue::Bytes(text) => self.text(text, CellKind::Bytes),
        }
    }

    #[inline]
    fn text(&mut self, text: &[u8], tag: CellKind) -> DraftCell {
        let from = self.texts.len() as u64;
        self.texts.extend_from_slice(text);
        DraftCell { bits: from << 32 | text.len() as u64, tag, ..DraftCell::ABSENT }
    }
}
