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
    /// Parts that are present together.
    Group(GroupRef),
    /// Parts that are present any number of times.
    Sequence(SequenceRef),
    /// The contents of another template, which the message names; the last name of its path is empty.
    Reference(DynamicTemplateRef),
}

/// The place of a field's value. It is looked up once and used for every message.
#[derive(Debug, Clone, Copy)]
pub struct FieldRef {
    pub(super) frame: u32,
    pub(super) cell: u32,
    pub(super) group: u32,
    pub(super) kind: WireType,
    pub(super) optional: bool,
}

impl FieldRef {
    /// Returns the type of the field's values.
    #[must_use]
    pub const fn kind(&self) -> WireType {
        self.kind
    }

    /// Returns whether the field may be absent.
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
    /// Returns whether the sequence may be absent.
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

/// The container of values: the message, an element, or the template in place of a dynamic reference.
#[derive(Debug, Clone, Copy)]
pub struct DraftFrameRef {
    frame: u32,
    first_cell: u32,
}

/// A value, or the state of a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct DraftCell {
    /// The number; the offset and length of a text; the first and the last element; or the place of the referenced
    /// template.
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
/// Values go into the message, into the last begun element of a sequence, or into the element that
/// [`MessageDraft::reopen`] chose. You may set them in any order. A value that is not set is absent.
///
/// # Panics
/// Panics if a part belongs to another template than the draft's, or to a sequence without an element. Both are
/// mistakes of the program.
#[derive(Debug, Clone)]
pub struct MessageDraft {
    pub(super) plan: Arc<EncodePlan>,
    pub(super) cells: Vec<DraftCell>,
    pub(super) texts: Vec<u8>,
    pub(super) template: u32,
    /// The place of the last begun frame of each kind.
    open_frames: Vec<u32>,
}

impl MessageDraft {
    pub(super) fn new(plan: Arc<EncodePlan>, template: u32) -> Self {
        let open_frames = vec![NONE; plan.frames.len()];
        let mut draft = MessageDraft { plan, cells: Vec::new(), texts: Vec::new(), template, open_frames };
        draft.begin(template as usize);
        draft
    }

    /// Begins a message of this template, given by its index in the list, and removes all values.
    pub fn begin(&mut self, template: usize) {
        self.cells.clear();
        self.texts.clear();
        self.open_frames.fill(NONE);
        self.template = template as u32;
        self.frame(self.plan.templates[template].frame);
    }

    /// Returns the index of the message's template in the list.
    #[must_use]
    pub fn template(&self) -> usize {
        self.template as usize
    }

    /// Sets a value. If the field cannot have it, encoding the message fails.
    #[inline]
    pub fn set(&mut self, field: FieldRef, value: FieldValue<'_>) {
        *self.cell(field.frame, field.cell) = self.cell_of(value);
        self.mark_groups_present(field.frame, field.group);
    }

    /// Sets a field to an unsigned integer.
    #[inline]
    pub fn uint(&mut self, field: FieldRef, value: u64) {
        self.set(field, FieldValue::UInt(value));
    }

    /// Makes the value of a field absent.
    pub fn unset(&mut self, field: FieldRef) {
        *self.cell(field.frame, field.cell) = DraftCell::ABSENT;
    }

    /// Makes a group present, even if all its fields are absent.
    pub fn group(&mut self, group: GroupRef) {
        self.mark_groups_present(group.frame, group.group);
    }

    /// Makes a sequence present, even if it has no element.
    #[inline]
    pub fn sequence(&mut self, sequence: SequenceRef) {
        self.cell(sequence.frame, sequence.cell).tag = CellKind::There;
        self.mark_groups_present(sequence.frame, sequence.group);
    }

    /// Begins another element.
    #[inline]
    pub fn element(&mut self, sequence: SequenceRef) -> DraftFrameRef {
        self.sequence(sequence);
        let index = self.index(sequence.frame, sequence.cell);
        let first_cell = self.add(index, sequence.element);
        DraftFrameRef { frame: sequence.element, first_cell }
    }

    /// Adds a frame after the other elements of the sequence in this cell.
    #[inline]
    pub(super) fn add(&mut self, index: usize, element: u32) -> u32 {
        let first_cell = self.frame(element);
        let cell = &mut self.cells[index];
        let (first, last) = (cell.bits >> 32, cell.bits as u32);
        cell.count += 1;
        if cell.count == 1 {
            cell.bits = u64::from(first_cell) << 32 | u64::from(first_cell);
        } else {
            cell.bits = first << 32 | u64::from(first_cell);
            self.cells[last as usize].bits = first_cell.into();
        }
        first_cell
    }

    /// Puts a template, given by its index in the list, at the place of the reference. Returns the frame for the values
    /// of the template.
    pub fn set_reference(&mut self, reference: DynamicTemplateRef, template: usize) -> DraftFrameRef {
        let frame = self.plan.templates[template].frame;
        // Before the frame, which may be of the same kind as the frame around it.
        let (from, group) = (self.index(reference.frame, reference.cell), reference.group);
        self.mark_groups_present(reference.frame, group);
        let first_cell = self.frame(frame);
        let count = template as u32;
        self.cells[from] = DraftCell { bits: first_cell.into(), count, exponent: 0, tag: CellKind::There };
        DraftFrameRef { frame, first_cell }
    }

    /// Values go here again.
    pub fn reopen(&mut self, frame_ref: DraftFrameRef) {
        self.close_inside(frame_ref.frame);
        self.open_frames[frame_ref.frame as usize] = frame_ref.first_cell;
    }

    /// Returns the frame of the message itself.
    #[must_use]
    pub fn message_frame(&self) -> DraftFrameRef {
        DraftFrameRef { frame: self.plan.templates[self.template as usize].frame, first_cell: 0 }
    }

    /// Adds an empty frame and opens it for values.
    #[inline]
    pub(super) fn frame(&mut self, frame: u32) -> u32 {
        let first_cell = self.cells.len() as u32;
        let cells = self.plan.frames[frame as usize].cells as usize;
        self.cells.resize(first_cell as usize + cells, DraftCell::ABSENT);
        self.close_inside(frame);
        self.open_frames[frame as usize] = first_cell;
        first_cell
    }

    /// Closes the elements of all sequences inside: no element of them has begun yet.
    #[inline]
    fn close_inside(&mut self, frame: u32) {
        let inner_frames = frame as usize + 1..self.plan.frames[frame as usize].frames_end as usize;
        self.open_frames[inner_frames].fill(NONE);
    }

    #[inline]
    fn index(&self, frame: u32, cell: u32) -> usize {
        let first_cell = self.open_frames[frame as usize];
        assert!(first_cell != NONE, "a part of another template, or of a sequence without an element");
        (first_cell + cell) as usize
    }

    #[inline]
    fn cell(&mut self, frame: u32, cell: u32) -> &mut DraftCell {
        let index = self.index(frame, cell);
        &mut self.cells[index]
    }

    /// Makes the groups around a part present.
    #[inline]
    fn mark_groups_present(&mut self, frame: u32, mut group: u32) {
        while group != NONE {
            let group_cell = self.plan.groups[group as usize];
            self.cell(frame, group_cell.cell).tag = CellKind::There;
            group = group_cell.parent;
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
        let text_start = self.texts.len() as u64;
        self.texts.extend_from_slice(text);
        DraftCell { bits: text_start << 32 | text.len() as u64, tag, ..DraftCell::ABSENT }
    }
}
