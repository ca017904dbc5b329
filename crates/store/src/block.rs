//! A block: rows of one schema and one instrument in the order of event time, by column, in one sealed chunk for each
//! class. Drawn byte by byte in `docs/formats-store.md`.
//!
//! ```text
//! "UBLK" bytes │ sealed header │ sealed market │ sealed identity │ sealed provenance
//!
//! a chunk, opened: table: one entry of 8 B a column │ values │ values │ …
//! a table: columns of all rows │ a layout, its columns │ a layout, its columns │ …
//! ```
//!
//! All kinds of the schema are mixed. A column numbers the layout of each row; the cells of a layout have values for its
//! own rows alone.

use unitape_model::event::extension_entry;
use unitape_model::frame::LINE;
use unitape_model::{EventKind, FieldClass, FrameHeader, InstrumentId, Position, UnixNanos, flags};

use crate::bits::put_varint;
use crate::cells::{EventKindLayout, FrameCell};
use crate::column::{ColumnEncoder, ColumnSpec, ROWS_MAX};
use crate::error::Result;
use crate::file::FileId;
use crate::frames::BlockRows;
use crate::keys::{Binding, DayKeys, Leaf, LeafKeys, Piece, Randomness, SEAL_BYTES, StoreKeys};
use crate::schema::TickSchema;

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
    use unitape_model::FieldClass;

    /// Not a column: the entries after it are cells of one layout. Width and encoding are the number of the kind and of
    /// its layout, and the bytes are its rows.
    pub const LAYOUT: u16 = 0x0fff;
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
    /// Which layout of the table each row has, from 0.
    pub const LAYOUT_INDEX: u16 = 0x1008;
    /// Index of each row's tape among those of the part. Only blocks with rows of several tapes have it.
    pub const TAPE_INDEX: u16 = 0x1009;

    /// Returns the columns of a class, in their order before the cells.
    pub const fn of_class(class: FieldClass, has_several_tapes: bool) -> &'static [u16] {
        match class {
            FieldClass::Market if has_several_tapes => {
                &[ORDINAL, LAYOUT_INDEX, MARKET_BYTES, MARKET_TAIL, TAPE_INDEX]
            }
            FieldClass::Market => &[ORDINAL, LAYOUT_INDEX, MARKET_BYTES, MARKET_TAIL],
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
    /// Which block of its file it is, from 0.
    pub number: u32,
    /// The kinds of its events.
    pub kinds: KindSet,
    pub ts_min: UnixNanos,
    pub ts_max: UnixNanos,
    pub ordinal_min: u64,
    pub ordinal_max: u64,
    pub position_min: Position,
    pub position_max: Position,
    /// Bytes of its frames.
    pub raw_bytes: u32,
    /// The chunks, in the order of [`FieldClass::ALL`].
    pub parts: [ChunkSize; 3],
    /// Index of the tape of all rows among those of the part, or [`SEVERAL_TAPES`].
    pub tape_index: u16,
}

/// Instead of a tape's index: the rows are of several tapes, and a column has the index of each.
pub(crate) const SEVERAL_TAPES: u16 = u16::MAX;

/// A set of kinds of events: bit *n* is kind number *n*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindSet(pub u64);

const _: () = assert!(EventKind::NUMBER_MAX < 64);

impl KindSet {
    pub fn insert(&mut self, kind: EventKind) {
        self.0 |= 1 << kind as u8;
    }

    /// Returns the kinds in the set.
    pub fn iter(self) -> impl Iterator<Item = EventKind> {
        EventKind::EVENTS.into_iter().filter(move |kind| self.0 >> *kind as u8 & 1 != 0)
    }

    /// Returns whether a layout of one of the kinds meets a condition.
    pub fn any_layout(self, mut meets: impl FnMut(&EventKindLayout) -> bool) -> bool {
        self.iter().any(|kind| EventKindLayout::for_kind(kind).iter().any(&mut meets))
    }

    /// Returns whether every kind in the set is one that the schema keeps.
    pub fn is_of(self, schema: TickSchema) -> bool {
        self.iter().all(|kind| TickSchema::for_kind(kind) == Some(schema))
    }
}

impl BlockHeader {
    /// Returns the index of the tape of all rows, if they are of one tape.
    pub fn single_tape(&self) -> Option<u16> {
        (self.tape_index != SEVERAL_TAPES).then_some(self.tape_index)
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
        write_field(12, &self.number.to_le_bytes());
        write_field(16, &self.kinds.0.to_le_bytes());
        write_field(24, &self.ts_min.0.to_le_bytes());
        write_field(32, &self.ts_max.0.to_le_bytes());
        write_field(40, &self.ordinal_min.to_le_bytes());
        write_field(48, &self.ordinal_max.to_le_bytes());
        write_field(56, &self.position_min.0.to_le_bytes());
        write_field(64, &self.position_max.0.to_le_bytes());
        write_field(72, &self.raw_bytes.to_le_bytes());
        for (part, part_offset) in self.parts.iter().zip([76, 82, 88]) {
            write_field(part_offset, &part.bytes.to_le_bytes());
            write_field(part_offset + 4, &part.columns.to_le_bytes());
        }
        write_field(94, &self.tape_index.to_le_bytes());
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
        let kinds = KindSet(u64_at(16));
        if kinds.0 == 0 || kinds.0.count_ones() as usize != kinds.iter().count() {
            return Err("a block of a kind we do not know");
        }
        let fixed_min = kinds.iter().flat_map(EventKindLayout::for_kind).map(|layout| layout.fixed).min();
        let this = Self {
            bytes: u32_at(0),
            rows: u32_at(4),
            instrument: InstrumentId(u32_at(8)),
            number: u32_at(12),
            kinds,
            ts_min: UnixNanos(u64_at(24) as i64),
            ts_max: UnixNanos(u64_at(32) as i64),
            ordinal_min: u64_at(40),
            ordinal_max: u64_at(48),
            position_min: Position(u64_at(56)),
            position_max: Position(u64_at(64)),
            raw_bytes: u32_at(72),
            parts: [76, 82, 88].map(|part_offset| ChunkSize {
                bytes: u32_at(part_offset),
                columns: u16_at(part_offset + 4),
            }),
            tape_index: u16_at(94),
        };
        let (rows, raw) = (this.rows as usize, this.raw_bytes as usize);
        let chunk_fits =
            |part: &ChunkSize| part.bytes as usize >= SEAL_BYTES + usize::from(part.columns) * ENTRY;
        let sound = (1..=ROWS_MAX).contains(&rows)
            && (START..=BYTES_MAX).contains(&(this.bytes as usize))
            && this.parts.iter().all(chunk_fits)
            && this.end_of(FieldClass::Provenance) == this.bytes as usize
            && raw.is_multiple_of(LINE)
            && (rows * fixed_min.unwrap_or(LINE)..=RAW_MAX).contains(&raw)
            && this.ts_min <= this.ts_max
            && this.ordinal_min <= this.ordinal_max;
        if sound { Ok(this) } else { Err("a block header with sizes that no block has") }
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

    /// Begins the cells of a layout that `rows` rows have.
    fn begin_layout(&mut self, layout: &EventKindLayout, rows: usize) {
        self.table.extend_from_slice(&special::LAYOUT.to_le_bytes());
        self.table.extend_from_slice(&[layout.kind as u8, layout.layout]);
        self.table.extend_from_slice(&(rows as u32).to_le_bytes());
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
        block_place: &BlockPlace,
        rows: BlockRows<'_>,
        sealer: &mut BlockSealer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<BlockHeader> {
        let header = self.fill_chunks(block_place, rows);
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

    /// Appends the latest block as it was before it was sealed: header and chunks.
    pub fn append_plain(&self, header: &BlockHeader, out: &mut Vec<u8>) {
        out.extend_from_slice(&header.encode());
        for chunk in &self.chunks {
            out.extend_from_slice(&chunk.table);
            out.extend_from_slice(&chunk.body);
        }
    }

    /// Appends the block of `rows` without sealing it: header and chunks.
    #[cfg(any(test, feature = "twin"))]
    pub fn encode_plain(
        &mut self,
        block_place: &BlockPlace,
        rows: BlockRows<'_>,
        out: &mut Vec<u8>,
    ) -> BlockHeader {
        let header = self.fill_chunks(block_place, rows);
        self.append_plain(&header, out);
        header
    }

    /// Makes the plain chunks of the block, and its header.
    fn fill_chunks(&mut self, block_place: &BlockPlace, rows: BlockRows<'_>) -> BlockHeader {
        assert!((1..=ROWS_MAX).contains(&rows.len()), "1 to 65,536 rows are a block");
        for chunk in &mut self.chunks {
            chunk.table.clear();
            chunk.body.clear();
        }
        let frames: Vec<&[u8]> = rows.frames().collect();
        let (layouts, layout_indexes) = layouts_of(&frames);
        self.write_tails(&frames, &layouts, &layout_indexes, rows);
        // Cells that all rows have, then those of each layout for its own rows.
        self.write_cells(&frames, layouts[0].shared_cells());
        let times = || self.matrix[..frames.len()].iter().map(|ts| UnixNanos(*ts as i64));
        let (ts_min, ts_max) = (times().min().expect("a row"), times().max().expect("a row"));
        let (mut own_frames, mut kinds) = (Vec::new(), KindSet::default());
        for (index, layout) in layouts.iter().enumerate() {
            kinds.insert(layout.kind);
            own_frames.clear();
            let is_own = |(_, other): &(&&[u8], &u64)| **other == index as u64;
            own_frames.extend(frames.iter().zip(&layout_indexes).filter(is_own).map(|(frame, _)| *frame));
            for chunk in &mut self.chunks {
                chunk.begin_layout(layout, own_frames.len());
            }
            self.write_cells(&own_frames, layout.own_cells());
        }
        let parts = self.chunks.each_ref().map(|chunk| ChunkSize {
            columns: (chunk.table.len() / ENTRY) as u16,
            bytes: (chunk.table.len() + chunk.body.len() + SEAL_BYTES) as u32,
        });
        let ordinals = || rows.rows().map(|row| row.ordinal);
        let positions = || rows.rows().map(|row| row.position);
        let tape_index = single_tape(rows).unwrap_or(SEVERAL_TAPES);
        let header = BlockHeader {
            bytes: 0,
            rows: frames.len() as u32,
            instrument: block_place.instrument,
            number: block_place.number,
            kinds,
            ts_min,
            ts_max,
            ordinal_min: ordinals().min().expect("a row"),
            ordinal_max: ordinals().max().expect("a row"),
            position_min: positions().min().expect("a row"),
            position_max: positions().max().expect("a row"),
            raw_bytes: frames.iter().map(|frame| frame.len() as u32).sum(),
            parts,
            tape_index,
        };
        BlockHeader { bytes: header.end_of(FieldClass::Provenance) as u32, ..header }
    }

    /// Writes the columns beside cells.
    fn write_tails(
        &mut self,
        frames: &[&[u8]],
        layouts: &[&EventKindLayout],
        layout_indexes: &[u64],
        rows: BlockRows<'_>,
    ) {
        self.tails.iter_mut().for_each(Vec::clear);
        self.lengths.iter_mut().for_each(Vec::clear);
        let layout_of = |index: &u64| layouts[*index as usize];
        for (frame, index) in frames.iter().zip(layout_indexes) {
            let [market, identity] = &mut self.tails;
            let old_lengths = [market.len(), identity.len()];
            split_tail(frame, layout_of(index), market, identity);
            self.lengths[0].push((market.len() - old_lengths[0]) as u64);
            self.lengths[1].push((identity.len() - old_lengths[1]) as u64);
        }
        let number = |width| ColumnSpec { width, null_value: None, is_text: false };
        let Self { encoder, values, lengths, tails, .. } = self;
        let mut write = |chunk: &mut Chunk, column, width, column_values: &mut dyn Iterator<Item = u64>| {
            values.clear();
            values.extend(column_values);
            chunk.write_column(encoder, column, number(width), values);
        };
        let [market, identity, provenance] = &mut self.chunks;
        write(market, special::ORDINAL, 8, &mut rows.rows().map(|row| row.ordinal));
        write(market, special::LAYOUT_INDEX, 1, &mut layout_indexes.iter().copied());
        write(market, special::MARKET_BYTES, 4, &mut lengths[0].iter().copied());
        market.write_stream(special::MARKET_TAIL, &tails[0]);
        if single_tape(rows).is_none() {
            write(market, special::TAPE_INDEX, 2, &mut rows.rows().map(|row| row.tape_index.into()));
        }
        let lines = frames.iter().zip(layout_indexes);
        let mut lines = lines.map(|(frame, index)| ((frame.len() - layout_of(index).fixed) / LINE) as u64);
        write(identity, special::LINES, 2, &mut lines);
        write(identity, special::IDENTITY_BYTES, 4, &mut lengths[1].iter().copied());
        identity.write_stream(special::IDENTITY_TAIL, &tails[1]);
        let mut lines_behind =
            rows.rows().map(|row| (row.position.0 / LINE as u64).wrapping_sub(row.ordinal));
        write(provenance, special::BEHIND, 8, &mut lines_behind);
        let mut frame_flags = frames.iter().map(|frame| u64::from(FrameHeader::read(frame).flags()));
        write(provenance, special::FLAGS, 1, &mut frame_flags);
    }

    /// Writes the columns of these cells. Leaves the values of the first one at the beginning of `self.matrix`.
    fn write_cells(&mut self, frames: &[&[u8]], cells: &[FrameCell]) {
        let n = frames.len();
        self.matrix.clear();
        self.matrix.resize(cells.len() * n, 0);
        for (tile, tile_frames) in frames.chunks(TILE).enumerate() {
            for (column, cell) in self.matrix.chunks_exact_mut(n).zip(cells) {
                for (value, frame) in column[tile * TILE..].iter_mut().zip(tile_frames) {
                    *value = cell.read_value(frame);
                }
            }
        }
        for (column, cell) in self.matrix.chunks_exact(n).zip(cells) {
            let chunk = &mut self.chunks[cell.class.index()];
            chunk.write_column(&mut self.encoder, cell.offset, cell.nature, column);
        }
    }
}

/// Returns the index of the tape of the rows, if all are of one tape.
fn single_tape(rows: BlockRows<'_>) -> Option<u16> {
    let mut indexes = rows.rows().map(|row| row.tape_index);
    let first = indexes.next()?;
    indexes.all(|index| index == first).then_some(first)
}

/// Returns the layouts of the frames, by kind and number, and the index of each frame's layout among them.
fn layouts_of(frames: &[&[u8]]) -> (Vec<&'static EventKindLayout>, Vec<u64>) {
    let mut layouts: Vec<&'static EventKindLayout> = Vec::new();
    let place = |layout: &EventKindLayout| (layout.kind as u8, layout.layout);
    let mut of_frames = Vec::with_capacity(frames.len());
    for frame in frames {
        let layout = EventKindLayout::for_frame(frame);
        if !layouts.iter().any(|known| std::ptr::eq(*known, layout)) {
            layouts.push(layout);
        }
        of_frames.push(layout);
    }
    layouts.sort_unstable_by_key(|layout| place(layout));
    let index_of = |layout: &EventKindLayout| layouts.iter().position(|known| std::ptr::eq(*known, layout));
    let indexes = of_frames.into_iter().map(|layout| index_of(layout).expect("just found") as u64).collect();
    (layouts, indexes)
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
