//! Frames in memory, in slabs that never move, and the rows that name them.

use unitape_model::frame::LINE;
use unitape_model::{FrameHeader, Position, UnixNanos};

/// Lines of a slab, of 64 bytes each: more than the longest frame has.
const SLAB_LINES: usize = 1 << 16;

/// Frames, each found by the number of its first line.
#[derive(Debug, Default)]
pub(crate) struct FrameArena {
    slabs: Vec<Vec<u8>>,
    /// Slabs that have frames; the last one takes the next frame.
    used_slabs: usize,
}

impl FrameArena {
    /// Keeps a frame. Returns the number of its first line.
    ///
    /// # Panics
    /// Panics if the arena has more lines than fit into 32 bits: 256 GiB.
    #[inline]
    pub fn push(&mut self, frame: &[u8]) -> u32 {
        let has_room = |slab: &Vec<u8>| slab.len() + frame.len() <= SLAB_LINES * LINE;
        if self.used_slabs == 0 || !has_room(&self.slabs[self.used_slabs - 1]) {
            self.begin_slab();
        }
        let slab_index = self.used_slabs - 1;
        let slab = &mut self.slabs[slab_index];
        let line = slab_index * SLAB_LINES + slab.len() / LINE;
        slab.extend_from_slice(frame);
        u32::try_from(line).expect("no more lines than a number of 32 bits counts")
    }

    #[cold]
    fn begin_slab(&mut self) {
        if self.used_slabs == self.slabs.len() {
            self.slabs.push(Vec::with_capacity(SLAB_LINES * LINE));
        }
        self.used_slabs += 1;
    }

    /// Returns the frame that begins at `line`.
    #[inline]
    pub fn frame(&self, line: u32) -> &[u8] {
        let start = line as usize % SLAB_LINES * LINE;
        let rest = &self.slabs[line as usize / SLAB_LINES][start..];
        &rest[..FrameHeader::read(rest).len_bytes()]
    }

    /// Forgets all frames and keeps the memory.
    pub fn clear(&mut self) {
        self.slabs[..self.used_slabs].iter_mut().for_each(Vec::clear);
        self.used_slabs = 0;
    }

    /// Forgets all frames and gives the memory back.
    pub fn release(&mut self) {
        *self = Self::default();
    }
}

/// A row on its way from a tape, or from blocks, into a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealRow<'a> {
    /// Its ids are tokens of the store.
    pub frame: &'a [u8],
    pub ts: UnixNanos,
    /// Index of its tape among those of the part that takes it.
    pub tape_index: u16,
    pub ordinal: u64,
    pub position: Position,
}

/// A row whose frame is in a [`FrameArena`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRow {
    pub ts: UnixNanos,
    pub ordinal: u64,
    pub position: Position,
    /// Index of its tape among those of the part that takes it.
    pub tape_index: u16,
    /// First line of the frame in its [`FrameArena`].
    pub line: u32,
    /// Number of the group that the row belongs to.
    pub group: u32,
}

impl FrameRow {
    /// Keeps the frame of `row` in `arena`.
    #[inline]
    pub fn new(row: &SealRow<'_>, group: u32, arena: &mut FrameArena) -> Self {
        let SealRow { frame, ts, tape_index, ordinal, position } = *row;
        Self { ts, ordinal, position, tape_index, line: arena.push(frame), group }
    }

    /// Returns the row with its frame.
    #[inline]
    pub fn seal_row<'a>(&self, arena: &'a FrameArena) -> SealRow<'a> {
        let Self { ts, ordinal, position, tape_index, line, .. } = *self;
        SealRow { frame: arena.frame(line), ts, tape_index, ordinal, position }
    }
}

/// Rows on their way into a block, in the block's order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockRows<'a> {
    pub arena: &'a FrameArena,
    pub rows: &'a [FrameRow],
    /// The order of the rows, by their index.
    pub order: &'a [u32],
}

impl<'a> BlockRows<'a> {
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the rows, in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'a FrameRow> {
        let rows = self.rows;
        self.order.iter().map(move |index| &rows[*index as usize])
    }

    /// Returns the frames, in order.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let arena = self.arena;
        self.rows().map(move |row| arena.frame(row.line))
    }
}

/// Rows in the order in which they are pushed, for tests.
#[cfg(any(test, feature = "twin"))]
#[derive(Debug, Default)]
pub(crate) struct RowBuffer {
    arena: FrameArena,
    rows: Vec<FrameRow>,
    order: Vec<u32>,
}

#[cfg(any(test, feature = "twin"))]
impl RowBuffer {
    pub fn push(&mut self, frame: &[u8], ordinal: u64, position: Position) {
        let ts = unitape_model::Event::new(frame).expect("an event").ts_event();
        self.push_row(&SealRow { frame, ts, tape_index: 0, ordinal, position });
    }

    pub fn push_row(&mut self, row: &SealRow<'_>) {
        self.order.push(self.rows.len() as u32);
        self.rows.push(FrameRow::new(row, 0, &mut self.arena));
    }

    pub fn block_rows(&self) -> BlockRows<'_> {
        BlockRows { arena: &self.arena, rows: &self.rows, order: &self.order }
    }
}
