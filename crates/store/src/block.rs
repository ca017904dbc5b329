//! A block: rows of one kind and one instrument, by column. Drawn byte by byte in `docs/formats-store.md`.
//!
//! ```text
//! header 96 B │ table: one entry of 12 B a column │ chunk │ chunk │ …
//! ```

use unitape_model::frame::LINE;
use unitape_model::{EventKind, EventSchema, FrameHeader, InstrumentId, Position, UnixNanos};

use crate::cells::EventKindLayout;
use crate::column::{ColumnEncoder, ColumnSpec, ROWS_MAX};

/// Bytes of a block's header.
pub(crate) const HEADER: usize = 96;
/// Bytes of an entry of the table of columns.
pub(crate) const ENTRY: usize = 12;
/// Frames of a block, in bytes, at most: what a reader must be ready to hold.
pub(crate) const RAW_MAX: usize = 64 << 20;
/// A block is never longer than this: what it holds, the worst ways of writing it, and its tables.
pub(crate) const BYTES_MAX: usize = RAW_MAX * 2;

const MAGIC: u32 = u32::from_le_bytes(*b"UBLK");

/// Columns beside the cells of the fixed part. Numbers are on disk.
pub(crate) mod special {
    /// Ordinal on the tape.
    pub const ORDINAL: u16 = 0x1000;
    /// Line on the tape (position / 64) less the ordinal: how many lines more than events came before.
    pub const BEHIND: u16 = 0x1001;
    /// Flags of the header word.
    pub const FLAGS: u16 = 0x1002;
    /// Lines after the fixed part.
    pub const LINES: u16 = 0x1003;
    /// Bytes after the fixed part, without the zeros that end them.
    pub const TAIL_BYTES: u16 = 0x1004;
    /// The bytes of the tail, row after row.
    pub const TAIL: u16 = 0x1005;
    /// All of them, in their order before the cells.
    pub const ALL: [u16; 6] = [ORDINAL, BEHIND, FLAGS, LINES, TAIL_BYTES, TAIL];
}

/// The header of a block: its description, without the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    /// All of it, this header included.
    pub bytes: u32,
    pub rows: u32,
    /// Token of the instrument, 0 none.
    pub instrument: InstrumentId,
    pub kind: EventKind,
    /// Bytes of the fixed part of its frames, which is another in each layout of a kind.
    pub fixed_bytes: u16,
    pub columns: u16,
    /// Which stripe of its part it belongs to.
    pub stripe: u32,
    pub ts_min: UnixNanos,
    pub ts_max: UnixNanos,
    pub ordinal_first: u64,
    pub ordinal_last: u64,
    pub position_first: Position,
    pub position_last: Position,
    /// Bytes of its frames.
    pub raw_bytes: u32,
    /// Which block of its file it is, from 0.
    pub number: u32,
    pub table_crc: u32,
}

impl BlockHeader {
    /// The layout of its frames.
    pub fn layout(&self) -> &'static EventKindLayout {
        EventKindLayout::find(self.kind, self.fixed_bytes).expect("checked when made")
    }

    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC.to_le_bytes());
        put(4, &self.bytes.to_le_bytes());
        put(8, &self.rows.to_le_bytes());
        put(12, &self.instrument.0.to_le_bytes());
        put(16, &[self.kind as u8, 0]);
        put(18, &self.columns.to_le_bytes());
        put(20, &self.stripe.to_le_bytes());
        put(24, &self.ts_min.0.to_le_bytes());
        put(32, &self.ts_max.0.to_le_bytes());
        put(40, &self.ordinal_first.to_le_bytes());
        put(48, &self.ordinal_last.to_le_bytes());
        put(56, &self.position_first.0.to_le_bytes());
        put(64, &self.position_last.0.to_le_bytes());
        put(72, &self.raw_bytes.to_le_bytes());
        put(76, &self.number.to_le_bytes());
        put(80, &self.fixed_bytes.to_le_bytes());
        put(88, &self.table_crc.to_le_bytes());
        let crc = crc32c::crc32c(&out[..92]);
        out[92..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads a header and checks that it can be one of ours: sizes and counts within what a seal writes.
    pub fn decode(b: &[u8]) -> Result<Self, &'static str> {
        let b = b.get(..HEADER).ok_or("a block header that is cut short")?;
        let u32_at = |at: usize| u32::from_le_bytes(b[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(b[at..at + 8].try_into().expect("eight bytes"));
        let u16_at = |at: usize| u16::from_le_bytes([b[at], b[at + 1]]);
        if u32_at(0) != MAGIC {
            return Err("no block begins here");
        }
        if u32_at(92) != crc32c::crc32c(&b[..92]) {
            return Err("the checksum of the block header does not match");
        }
        let kind =
            EventKind::from_u8(b[16]).filter(|k| !k.is_meta()).ok_or("a block of a kind we do not know")?;
        let fixed_bytes = u16_at(80);
        let plan = EventKindLayout::find(kind, fixed_bytes)
            .ok_or("a block of frames of another length than its kind has")?;
        let this = Self {
            bytes: u32_at(4),
            rows: u32_at(8),
            instrument: InstrumentId(u32_at(12)),
            kind,
            fixed_bytes,
            columns: u16_at(18),
            stripe: u32_at(20),
            ts_min: UnixNanos(u64_at(24) as i64),
            ts_max: UnixNanos(u64_at(32) as i64),
            ordinal_first: u64_at(40),
            ordinal_last: u64_at(48),
            position_first: Position(u64_at(56)),
            position_last: Position(u64_at(64)),
            raw_bytes: u32_at(72),
            number: u32_at(76),
            table_crc: u32_at(88),
        };
        let (rows, raw) = (this.rows as usize, this.raw_bytes as usize);
        let least = HEADER + usize::from(this.columns) * ENTRY;
        let sound = (1..=ROWS_MAX).contains(&rows)
            && (least..=BYTES_MAX).contains(&(this.bytes as usize))
            && raw.is_multiple_of(LINE)
            && (rows * plan.fixed..=RAW_MAX).contains(&raw)
            && this.ts_min <= this.ts_max
            && this.ordinal_first <= this.ordinal_last;
        if sound { Ok(this) } else { Err("a block header with sizes that no block has") }
    }
}

/// Rows on their way into a block.
#[derive(Debug, Default)]
pub(crate) struct BlockRows {
    frames: Vec<u8>,
    starts: Vec<u32>,
    ordinals: Vec<u64>,
    positions: Vec<Position>,
}

impl BlockRows {
    /// Takes a frame whose ids are tokens.
    #[inline]
    pub fn push(&mut self, frame: &[u8], ordinal: u64, position: Position) {
        self.starts.push(self.frames.len() as u32);
        self.frames.extend_from_slice(frame);
        self.ordinals.push(ordinal);
        self.positions.push(position);
    }

    /// Whether a frame of `bytes` still goes in.
    #[inline]
    pub fn has_room(&self, bytes: usize, rows_max: usize) -> bool {
        self.len() < rows_max && (self.frames.len() + bytes <= RAW_MAX || self.starts.is_empty())
    }

    pub fn len(&self) -> usize {
        self.starts.len()
    }

    pub fn clear(&mut self) {
        self.frames.clear();
        self.starts.clear();
        self.ordinals.clear();
        self.positions.clear();
    }

    fn frame(&self, row: usize) -> &[u8] {
        let end = self.starts.get(row + 1).map_or(self.frames.len(), |s| *s as usize);
        &self.frames[self.starts[row] as usize..end]
    }
}

/// Rows taken together while the frames are still in the cache.
const TILE: usize = 256;

/// Encodes blocks; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct BlockEncoder {
    encoder: ColumnEncoder,
    /// Cells by column.
    matrix: Vec<u64>,
    values: Vec<u64>,
    table: Vec<u8>,
    body: Vec<u8>,
    tails: Vec<u8>,
}

impl BlockEncoder {
    /// Appends the block of `rows` to `out`.
    ///
    /// # Panics
    /// If there are no rows, or more than a block holds.
    pub fn encode(
        &mut self,
        schema: &EventSchema,
        instrument: InstrumentId,
        stripe: u32,
        number: u32,
        rows: &BlockRows,
        out: &mut Vec<u8>,
    ) -> BlockHeader {
        assert!((1..=ROWS_MAX).contains(&rows.len()), "1 to 65,536 rows are a block");
        let (n, plan) = (rows.len(), EventKindLayout::for_schema(schema));
        self.table.clear();
        self.body.clear();
        self.tails.clear();
        let number_of = |width| ColumnSpec { width, none: None, text: false };
        self.values.clear();
        self.values.extend_from_slice(&rows.ordinals);
        self.column(special::ORDINAL, number_of(8));
        let behind = |(p, o): (&Position, &u64)| (p.0 / LINE as u64).wrapping_sub(*o);
        self.fill(rows.positions.iter().zip(&rows.ordinals).map(behind));
        self.column(special::BEHIND, number_of(8));
        self.fill((0..n).map(|r| FrameHeader::read(rows.frame(r)).flags().into()));
        self.column(special::FLAGS, number_of(1));
        self.fill((0..n).map(|r| ((rows.frame(r).len() - plan.fixed) / LINE) as u64));
        self.column(special::LINES, number_of(2));
        self.values.clear();
        for r in 0..n {
            let tail = trimmed(&rows.frame(r)[plan.fixed..]);
            self.tails.extend_from_slice(tail);
            self.values.push(tail.len() as u64);
        }
        self.column(special::TAIL_BYTES, number_of(4));
        let start = self.body.len();
        self.body.extend_from_slice(&self.tails);
        self.entry(special::TAIL, 1, 0, start);

        self.matrix.clear();
        self.matrix.resize(plan.cells.len() * n, 0);
        for tile in (0..n).step_by(TILE) {
            for (c, cell) in plan.cells.iter().enumerate() {
                let column = &mut self.matrix[c * n..][..n];
                for (r, v) in column.iter_mut().enumerate().skip(tile).take(TILE) {
                    *v = cell.read(&rows.frames[rows.starts[r] as usize..]);
                }
            }
        }
        let matrix = std::mem::take(&mut self.matrix);
        for (column, cell) in matrix.chunks_exact(n).zip(&plan.cells) {
            let start = self.body.len();
            let encoding = self.encoder.encode(column, cell.nature, &mut self.body);
            self.entry(cell.at, cell.nature.width, encoding, start);
        }
        // The event time is the first cell.
        let times = || matrix[..n].iter().map(|t| UnixNanos(*t as i64));
        let header = BlockHeader {
            bytes: (HEADER + self.table.len() + self.body.len()) as u32,
            rows: n as u32,
            instrument,
            kind: schema.kind,
            fixed_bytes: schema.fixed_bytes,
            columns: (self.table.len() / ENTRY) as u16,
            stripe,
            ts_min: times().min().expect("a row"),
            ts_max: times().max().expect("a row"),
            ordinal_first: rows.ordinals[0],
            ordinal_last: rows.ordinals[n - 1],
            position_first: rows.positions[0],
            position_last: rows.positions[n - 1],
            raw_bytes: rows.frames.len() as u32,
            number,
            table_crc: crc32c::crc32c(&self.table),
        };
        self.matrix = matrix;
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(&self.table);
        out.extend_from_slice(&self.body);
        header
    }

    fn fill(&mut self, values: impl Iterator<Item = u64>) {
        self.values.clear();
        self.values.extend(values);
    }

    /// Writes `self.values` as a column.
    fn column(&mut self, column: u16, nature: ColumnSpec) {
        let start = self.body.len();
        let encoding = self.encoder.encode(&self.values, nature, &mut self.body);
        self.entry(column, nature.width, encoding, start);
    }

    /// Notes the chunk that began at `start` of the body.
    fn entry(&mut self, column: u16, width: u8, encoding: u8, start: usize) {
        let chunk = &self.body[start..];
        self.table.extend_from_slice(&column.to_le_bytes());
        self.table.extend_from_slice(&[width, encoding]);
        self.table.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
        self.table.extend_from_slice(&crc32c::crc32c(chunk).to_le_bytes());
    }
}

/// Without the zeros at the end.
fn trimmed(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1)]
}
