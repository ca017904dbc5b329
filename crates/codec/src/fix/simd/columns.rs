//! Where a kernel writes fields.

use super::{FIELDS_MAX, STEP};

/// The fields of one message, column by column, in buffers that are reused for the next message. The owner must know
/// how many entries are filled.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldColumns {
    /// Tags.
    pub tags: Vec<u32>,
    /// First bytes of values, counted from the start of the message.
    pub starts: Vec<u32>,
    /// One past the last bytes of values.
    pub ends: Vec<u32>,
    /// Messages of fewer bytes have room.
    room_bytes: usize,
}

impl FieldColumns {
    /// Makes room for the fields that a kernel writes for a message of `bytes` bytes: at most `FIELDS_MAX` in each
    /// step, and as many more past the last.
    #[inline]
    pub(super) fn make_room(&mut self, bytes: usize) {
        if bytes >= self.room_bytes {
            self.grow_columns(Self::room(bytes));
            self.room_bytes = bytes + 1;
        }
    }

    /// Returns the number of fields for which a message of `bytes` bytes needs room.
    #[inline]
    pub(super) const fn room(bytes: usize) -> usize {
        (bytes / STEP + 2) * FIELDS_MAX
    }

    /// Writes the field at `index`.
    pub(crate) fn write_field(&mut self, index: usize, tag: u32, start: u32, end: u32) {
        if index >= self.ends.len() {
            self.grow_columns(2 * index + FIELDS_MAX);
        }
        (self.tags[index], self.starts[index], self.ends[index]) = (tag, start, end);
    }

    #[cold]
    fn grow_columns(&mut self, room: usize) {
        // The last one to grow is the one looked at.
        for column in [&mut self.tags, &mut self.starts, &mut self.ends] {
            column.resize(room.max(column.len()), 0);
        }
    }
}
