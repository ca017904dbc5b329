//! A block: rows of one kind and one instrument, by column, in one sealed chunk for each class. Drawn byte by byte in
//! `docs/formats-store.md`.
//!
//! ```text
//! "UBLK" bytes │ sealed header │ sealed market │ sealed identity │ sealed provenance
//!
//! a chunk, opened: table: one entry of 8 B a column │ values │ values │ …
//! ```

use unitape_model::event::extension_entry;
use unitape_model::frame::LINE;
use unitape_model::{EventKind, EventSchema, FrameHeader, InstrumentId, Position, UnixNanos, flags};

use crate::bits::put_varint;
use crate::cells::EventKindLayout;
use crate::class::FieldClass;
use crate::column::{ColumnEncoder, ColumnSpec, ROWS_MAX};
use crate::error::Result;
use crate::file::FileId;
use crate::keys::{Binding, DayKeys, Leaf, LeafKeys, Piece, Randomness, SEAL_BYTES, StoreKeys};

/// Bytes of a block's header when it is opened.
pub(crate) const HEADER: usize = 96;
/// Bytes before the sealed header, in clear.
pub(crate) const CLEAR: usize = 8;
/// Bytes of a block before its chunks.
pub(crate) const START: usize = CLEAR + HEADER + SEAL_BYTES;
/// Bytes of an entry of the table of columns.
pub(crate) const ENTRY: usize = 8;
/// The greatest number of bytes of a block's frames. A reader must be able to hold as many.
pub(crate) const RAW_MAX: usize = 64 << 20;
/// A block is never longer than this: its frames in the largest encoding, and its tables.
pub(crate) const BYTES_MAX: usize = RAW_MAX * 2;

/// The first bytes of a block.
pub(crate) const MAGIC: [u8; 4] = *b"UBLK";

/// Columns beside the cells of the fixed part. Numbers are on disk.
pub(crate) mod special {
    use crate::class::FieldClass;

    /// Ordinal on the tape.
    pub const ORDINAL: u16 = 0x1000;
    /// Line on the tape (position / 64) less the ordinal: how many lines more than events came before.
    pub const BEHIND: u16 = 0x1001;
    /// Flags of the header word.
    pub const FLAGS: u16 = 0x1002;
    /// Lines after the fixed part.
    pub const LINES: u16 = 0x1003;
    /// Bytes of each row in [`MARKET_TAIL`].
    pub const MARKET_BYTES: u16 = 0x1004;
    /// Entries of the extension that are market data, row after row.
    pub const MARKET_TAIL: u16 = 0x1005;
    /// Bytes of each row in [`IDENTITY_TAIL`].
    pub const IDENTITY_BYTES: u16 = 0x1006;
    /// The identity data after the fixed part, row after row.
    pub const IDENTITY_TAIL: u16 = 0x1007;

    /// Returns the columns of a class, in their order before the cells.
    pub const fn of_class(class: FieldClass) -> &'static [u16] {
        match class {
            FieldClass::Market => &[ORDINAL, MARKET_BYTES, MARKET_TAIL],
            FieldClass::Identity => &[LINES, IDENTITY_BYTES, IDENTITY_TAIL],
            FieldClass::Provenance => &[BEHIND, FLAGS],
        }
    }
}

/// The chunk of a class, as the header describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkSize {
    pub columns: u16,
    /// The number of bytes of the sealed chunk.
    pub bytes: u32,
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
    /// Which stripe of its part it belongs to.
    pub stripe: u32,
    /// Which block of its file it is, from 0.
    pub number: u32,
    pub ts_min: UnixNanos,
    pub ts_max: UnixNanos,
    pub ordinal_first: u64,
    pub ordinal_last: u64,
    pub position_first: Position,
    pub position_last: Position,
    /// Bytes of its frames.
    pub raw_bytes: u32,
    /// The chunks, in the order of [`FieldClass::ALL`].
    pub parts: [ChunkSize; 3],
}

impl BlockHeader {
    /// Returns the layout of the block's frames.
    pub fn layout(&self) -> &'static EventKindLayout {
        EventKindLayout::find_layout(self.kind, self.fixed_bytes).expect("checked when made")
    }

    /// Returns the size of the chunk of a class.
    pub fn chunk_size(&self, class: FieldClass) -> ChunkSize {
        self.parts[class.index()]
    }

    /// Returns the number of bytes up to the end of the chunk of this class.
    pub fn end_of(&self, class: FieldClass) -> usize {
        START + self.parts[..=class.index()].iter().map(|part| part.bytes as usize).sum::<usize>()
    }

    /// Makes the binding of a block header in this file.
    pub fn binding(keys: &StoreKeys, file: &FileId, number: u32) -> Binding {
        Binding::new(Piece::BlockHeader, keys.store).file(file).bind_number(number.into())
    }

    /// Writes the bytes of the header as they are before the seal.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        let mut write_field =
            |offset: usize, bytes: &[u8]| out[offset..offset + bytes.len()].copy_from_slice(bytes);
        write_field(0, &self.bytes.to_le_bytes());
        write_field(4, &self.rows.to_le_bytes());
        write_field(8, &self.instrument.0.to_le_bytes());
        write_field(12, &[self.kind as u8, 0]);
        write_field(14, &self.fixed_bytes.to_le_bytes());
        write_field(16, &self.stripe.to_le_bytes());
        write_field(20, &self.number.to_le_bytes());
        write_field(24, &self.ts_min.0.to_le_bytes());
        write_field(32, &self.ts_max.0.to_le_bytes());
        write_field(40, &self.ordinal_first.to_le_bytes());
        write_field(48, &self.ordinal_last.to_le_bytes());
        write_field(56, &self.position_first.0.to_le_bytes());
        write_field(64, &self.position_last.0.to_le_bytes());
        write_field(72, &self.raw_bytes.to_le_bytes());
        for (part, part_offset) in self.parts.iter().zip([76, 82, 88]) {
            write_field(part_offset, &part.bytes.to_le_bytes());
            write_field(part_offset + 4, &part.columns.to_le_bytes());
        }
        out
    }

    /// Reads a header and checks that a seal can have written it: sizes and counts must be within a seal's limits.
    pub fn decode(b: &[u8]) -> std::result::Result<Self, &'static str> {
        let b = b.get(..HEADER).ok_or("a block header that is cut short")?;
        let u32_at =
            |offset: usize| u32::from_le_bytes(b[offset..offset + 4].try_into().expect("four bytes"));
        let u64_at = |word_offset: usize| {
            u64::from_le_bytes(b[word_offset..word_offset + 8].try_into().expect("eight bytes"))
        };
        let u16_at = |half_offset: usize| u16::from_le_bytes([b[half_offset], b[half_offset + 1]]);
        let kind =
            EventKind::from_u8(b[12]).filter(|k| !k.is_meta()).ok_or("a block of a kind we do not know")?;
        let fixed_bytes = u16_at(14);
        let plan = EventKindLayout::find_layout(kind, fixed_bytes)
            .ok_or("a block of frames of another length than its kind has")?;
        let this = Self {
            bytes: u32_at(0),
            rows: u32_at(4),
            instrument: InstrumentId(u32_at(8)),
            kind,
            fixed_bytes,
            stripe: u32_at(16),
            number: u32_at(20),
            ts_min: UnixNanos(u64_at(24) as i64),
            ts_max: UnixNanos(u64_at(32) as i64),
            ordinal_first: u64_at(40),
            ordinal_last: u64_at(48),
            position_first: Position(u64_at(56)),
            position_last: Position(u64_at(64)),
            raw_bytes: u32_at(72),
            parts: [76, 82, 88].map(|part_offset| ChunkSize {
                bytes: u32_at(part_offset),
                columns: u16_at(part_offset + 4),
            }),
        };
        let (rows, raw) = (this.rows as usize, this.raw_bytes as usize);
        let chunk_fits =
            |part: &ChunkSize| part.bytes as usize >= SEAL_BYTES + usize::from(part.columns) * ENTRY;
        let sound = (1..=ROWS_MAX).contains(&rows)
            && (START..=BYTES_MAX).contains(&(this.bytes as usize))
            && this.parts.iter().all(chunk_fits)
            && this.end_of(FieldClass::Provenance) == this.bytes as usize
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

    /// Returns whether a frame of `bytes` bytes fits into the block.
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
        let row_end = self.starts.get(row + 1).map_or(self.frames.len(), |s| *s as usize);
        &self.frames[self.starts[row] as usize..row_end]
    }
}

/// The keys and the randomness with which a seal seals its blocks.
#[derive(Debug)]
pub(crate) struct BlockSealer<'a> {
    pub keys: &'a StoreKeys,
    pub leaf_keys: LeafKeys<'a>,
    /// Keys of days, those included that this seal has drawn.
    pub days: DayKeys,
    pub random: &'a dyn Randomness,
}

/// Where a block stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockPlace {
    pub file_id: FileId,
    pub instrument: InstrumentId,
    pub stripe: u32,
    pub number: u32,
}

/// Rows taken together while the frames are still in the cache.
const TILE: usize = 256;

/// The chunk of a class while it is made.
#[derive(Debug, Default)]
struct Chunk {
    table: Vec<u8>,
    body: Vec<u8>,
}

impl Chunk {
    /// Records the column that began at `start` of the body.
    fn entry(&mut self, column: u16, width: u8, encoding: u8, start: usize) {
        let bytes = (self.body.len() - start) as u32;
        self.table.extend_from_slice(&column.to_le_bytes());
        self.table.extend_from_slice(&[width, encoding]);
        self.table.extend_from_slice(&bytes.to_le_bytes());
    }

    /// Writes `values` as a column.
    fn write_column(&mut self, encoder: &mut ColumnEncoder, column: u16, spec: ColumnSpec, values: &[u64]) {
        let column_start = self.body.len();
        let encoding = encoder.encode(values, spec, &mut self.body);
        self.entry(column, spec.width, encoding, column_start);
    }

    /// Writes bytes of all rows as a column.
    fn write_stream(&mut self, column: u16, bytes: &[u8]) {
        let column_start = self.body.len();
        self.body.extend_from_slice(bytes);
        self.entry(column, 1, 0, column_start);
    }
}

/// Encodes blocks; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct BlockEncoder {
    encoder: ColumnEncoder,
    /// Cells by column.
    matrix: Vec<u64>,
    values: Vec<u64>,
    lengths: [Vec<u64>; 2],
    tails: [Vec<u8>; 2],
    chunks: [Chunk; 3],
    plaintext: Vec<u8>,
}

impl BlockEncoder {
    /// Appends the block of `rows` to `out`.
    ///
    /// # Errors
    /// Fails if there are no random bytes.
    ///
    /// # Panics
    /// Panics if there are no rows, or more rows than a block holds.
    pub fn encode(
        &mut self,
        schema: &EventSchema,
        block_place: &BlockPlace,
        rows: &BlockRows,
        sealer: &mut BlockSealer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<BlockHeader> {
        let header = self.fill_chunks(schema, block_place, rows);
        let block_start = out.len();
        out.resize(block_start + START, 0);
        for class in FieldClass::ALL {
            let leaf = Leaf {
                day: block_place.file_id.day,
                schema: block_place.file_id.schema,
                instrument: block_place.instrument,
                class,
            };
            let cipher = sealer.leaf_keys.open_or_draw(leaf, &mut sealer.days, sealer.random)?;
            let binding = Binding::new(Piece::Chunk, sealer.keys.store)
                .file(&block_place.file_id)
                .chunk(&header, class);
            let chunk = &self.chunks[class.index()];
            self.plaintext.clear();
            self.plaintext.extend_from_slice(&chunk.table);
            self.plaintext.extend_from_slice(&chunk.body);
            cipher.seal(sealer.random, binding.bytes(), &self.plaintext, out)?;
        }
        self.plaintext.clear();
        let binding = BlockHeader::binding(sealer.keys, &block_place.file_id, block_place.number);
        sealer.keys.index.seal(sealer.random, binding.bytes(), &header.encode(), &mut self.plaintext)?;
        out[block_start..block_start + 4].copy_from_slice(&MAGIC);
        out[block_start + 4..block_start + CLEAR].copy_from_slice(&header.bytes.to_le_bytes());
        out[block_start + CLEAR..block_start + START].copy_from_slice(&self.plaintext);
        Ok(header)
    }

    /// Appends the block before it is sealed: header and chunks.
    #[cfg(any(test, feature = "twin"))]
    pub fn encode_plain(
        &mut self,
        schema: &EventSchema,
        block_place: &BlockPlace,
        rows: &BlockRows,
        out: &mut Vec<u8>,
    ) -> BlockHeader {
        let header = self.fill_chunks(schema, block_place, rows);
        out.extend_from_slice(&header.encode());
        for chunk in &self.chunks {
            out.extend_from_slice(&chunk.table);
            out.extend_from_slice(&chunk.body);
        }
        header
    }

    /// Makes the plain chunks of the block, and its header.
    fn fill_chunks(
        &mut self,
        schema: &EventSchema,
        block_place: &BlockPlace,
        rows: &BlockRows,
    ) -> BlockHeader {
        assert!((1..=ROWS_MAX).contains(&rows.len()), "1 to 65,536 rows are a block");
        let (n, plan) = (rows.len(), EventKindLayout::for_schema(schema));
        for chunk in &mut self.chunks {
            chunk.table.clear();
            chunk.body.clear();
        }
        self.tails.iter_mut().for_each(Vec::clear);
        self.lengths.iter_mut().for_each(Vec::clear);
        for r in 0..n {
            let [market, identity] = &mut self.tails;
            let old_lengths = [market.len(), identity.len()];
            split_tail(rows.frame(r), plan, market, identity);
            self.lengths[0].push((market.len() - old_lengths[0]) as u64);
            self.lengths[1].push((identity.len() - old_lengths[1]) as u64);
        }
        let number = |width| ColumnSpec { width, null_value: None, is_text: false };
        let Self { encoder, values, lengths, tails, .. } = self;
        let [market, identity, provenance] = &mut self.chunks;
        market.write_column(encoder, special::ORDINAL, number(8), &rows.ordinals);
        market.write_column(encoder, special::MARKET_BYTES, number(4), &lengths[0]);
        market.write_stream(special::MARKET_TAIL, &tails[0]);
        values.clear();
        values.extend((0..n).map(|r| ((rows.frame(r).len() - plan.fixed) / LINE) as u64));
        identity.write_column(encoder, special::LINES, number(2), values);
        identity.write_column(encoder, special::IDENTITY_BYTES, number(4), &lengths[1]);
        identity.write_stream(special::IDENTITY_TAIL, &tails[1]);
        values.clear();
        let position_gap = |(p, o): (&Position, &u64)| (p.0 / LINE as u64).wrapping_sub(*o);
        values.extend(rows.positions.iter().zip(&rows.ordinals).map(position_gap));
        provenance.write_column(encoder, special::BEHIND, number(8), values);
        values.clear();
        values.extend((0..n).map(|r| u64::from(FrameHeader::read(rows.frame(r)).flags())));
        provenance.write_column(encoder, special::FLAGS, number(1), values);

        self.matrix.clear();
        self.matrix.resize(plan.cells.len() * n, 0);
        for tile in (0..n).step_by(TILE) {
            for (c, cell) in plan.cells.iter().enumerate() {
                let column = &mut self.matrix[c * n..][..n];
                for (r, v) in column.iter_mut().enumerate().skip(tile).take(TILE) {
                    *v = cell.read_value(&rows.frames[rows.starts[r] as usize..]);
                }
            }
        }
        for (column, cell) in self.matrix.chunks_exact(n).zip(&plan.cells) {
            let chunk = &mut self.chunks[cell.class.index()];
            chunk.write_column(&mut self.encoder, cell.offset, cell.nature, column);
        }
        // The event time is the first cell.
        let times = || self.matrix[..n].iter().map(|t| UnixNanos(*t as i64));
        let parts = self.chunks.each_ref().map(|chunk| ChunkSize {
            columns: (chunk.table.len() / ENTRY) as u16,
            bytes: (chunk.table.len() + chunk.body.len() + SEAL_BYTES) as u32,
        });
        let header = BlockHeader {
            bytes: 0,
            rows: n as u32,
            instrument: block_place.instrument,
            kind: schema.kind,
            fixed_bytes: schema.fixed_bytes,
            stripe: block_place.stripe,
            number: block_place.number,
            ts_min: times().min().expect("a row"),
            ts_max: times().max().expect("a row"),
            ordinal_first: rows.ordinals[0],
            ordinal_last: rows.ordinals[n - 1],
            position_first: rows.positions[0],
            position_last: rows.positions[n - 1],
            raw_bytes: rows.frames.len() as u32,
            parts,
        };
        BlockHeader { bytes: header.end_of(FieldClass::Provenance) as u32, ..header }
    }
}

/// Appends the market data in a frame's extension to `market`, and the other bytes after the fixed part to `identity`.
/// If both have bytes, `identity` begins with their order: the number of runs, then the bytes of each run, market and
/// identity in turn. After the runs comes the end of the frame, without its zeros.
fn split_tail(frame: &[u8], plan: &EventKindLayout, market: &mut Vec<u8>, identity: &mut Vec<u8>) {
    let tail = &frame[plan.fixed..];
    if tail.is_empty() {
        return;
    }
    // Runs of entries of one class: the class, and where they end.
    let (mut runs, mut end) = (Vec::<(FieldClass, usize)>::new(), plan.fixed);
    if FrameHeader::read(frame).flags() & flags::EXT != 0 {
        while let Some((tag, payload)) = extension_entry(frame, end) {
            end = payload.end;
            let class = plan.class_of_tag(tag);
            match runs.last_mut() {
                Some(last) if last.0 == class => last.1 = end,
                _ => runs.push((class, end)),
            }
        }
    }
    if !runs.iter().any(|(class, _)| *class == FieldClass::Market) {
        return identity.extend_from_slice(trim_zeros(tail));
    }
    let tail_bytes = trim_zeros(&frame[end..]);
    if let [(_, end)] = runs[..]
        && tail_bytes.is_empty()
    {
        return market.extend_from_slice(&frame[plan.fixed..end]);
    }
    let begins_with_market = runs[0].0 == FieldClass::Market;
    put_varint(identity, (runs.len() + usize::from(!begins_with_market)) as u64);
    if !begins_with_market {
        put_varint(identity, 0);
    }
    let mut tail_start = plan.fixed;
    for (_, end) in &runs {
        put_varint(identity, (end - tail_start) as u64);
        tail_start = *end;
    }
    tail_start = plan.fixed;
    for (class, end) in runs {
        let out = if class == FieldClass::Market { &mut *market } else { &mut *identity };
        out.extend_from_slice(&frame[tail_start..end]);
        tail_start = end;
    }
    identity.extend_from_slice(tail_bytes);
}

/// Cuts the zeros at the end.
fn trim_zeros(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1)]
}
