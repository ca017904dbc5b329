//! From a block back to frames, a vector of rows at a time.

use std::collections::BTreeSet;
use std::ops::Range;

use unitape_model::frame::LINE;
use unitape_model::schema::at;
use unitape_model::{EventKind, FieldClass, FrameHeader, InstrumentId, Position, UnixNanos, flags};

use crate::bits::take_varint;
use crate::block::{BlockHeader, ENTRY, START, special};
use crate::cells::EventKindLayout;
use crate::column::{ColumnReader, VECTOR};

/// A filter on the rows of a block. The scan has checked the conditions on whole blocks before.
#[derive(Clone, Debug)]
pub(crate) struct RowFilter {
    /// First and last event time.
    pub from: UnixNanos,
    pub to: UnixNanos,
    /// First and last ordinal on the tape.
    pub ordinals: (u64, u64),
    /// Token of the venue.
    pub venue: Option<u16>,
    /// Tokens of instruments. A list of instruments must have one of them.
    pub listed: Option<Vec<InstrumentId>>,
}

impl RowFilter {
    /// Selects all rows.
    pub fn all() -> Self {
        Self {
            from: UnixNanos(i64::MIN),
            to: UnixNanos(i64::MAX),
            ordinals: (0, u64::MAX),
            venue: None,
            listed: None,
        }
    }
}

/// A frame of a batch: its places in the orders of time and tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameKey {
    pub ts: UnixNanos,
    /// The place of its tape among the tapes of the store; the decoder leaves it 0.
    pub tape_rank: u32,
    /// Line of the arena.
    pub line: u32,
    pub ordinal: u64,
    pub position: Position,
}

/// Frames of several blocks.
#[derive(Debug, Default)]
pub(crate) struct FrameBatch {
    pub arena: Vec<u8>,
    pub keys: Vec<FrameKey>,
}

impl FrameBatch {
    pub fn clear(&mut self) {
        self.arena.clear();
        self.keys.clear();
    }

    /// Returns the frame of a key.
    #[inline]
    pub fn frame(&self, key: &FrameKey) -> &[u8] {
        let frame_start = key.line as usize * LINE;
        let length = FrameHeader::read(&self.arena[frame_start..]).len_bytes();
        &self.arena[frame_start..frame_start + length]
    }

    /// Removes the frames behind `base` that have no key of those from `first_key` on.
    fn compact(&mut self, base: usize, first_key: usize) {
        let mut end = base;
        for key in &mut self.keys[first_key..] {
            let start = key.line as usize * LINE;
            let length = FrameHeader::read(&self.arena[start..]).len_bytes();
            self.arena.copy_within(start..start + length, end);
            key.line = (end / LINE) as u32;
            end += length;
        }
        self.arena.truncate(end);
    }
}

/// A fault of a block and the offset of its byte in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockFault {
    pub offset: usize,
    pub reason: &'static str,
}

/// A block with opened chunks: all chunks, or only the chunk of market data.
#[derive(Clone, Debug)]
pub(crate) struct OpenBlock<'a> {
    /// The block, with [`PAD`](crate::bits::PAD) bytes after it.
    pub bytes: &'a [u8],
    /// Where the opened chunks are, in the order of [`FieldClass::ALL`].
    pub parts: [Option<Range<usize>>; 3],
}

impl<'a> OpenBlock<'a> {
    fn is_whole(&self) -> bool {
        self.parts.iter().all(Option::is_some)
    }

    /// Takes apart a block that [`BlockEncoder::append_plain`](crate::block::BlockEncoder::append_plain) has written,
    /// with [`PAD`](crate::bits::PAD) bytes after it. Returns `None` if the block is shorter than its header says.
    pub fn from_plain(bytes: &'a [u8], head: &BlockHeader) -> Option<Self> {
        let mut chunk_end = crate::block::HEADER;
        let parts = head.parts.map(|part| {
            let chunk_start = chunk_end;
            chunk_end += (part.bytes as usize).saturating_sub(crate::keys::SEAL_BYTES);
            Some(chunk_start..chunk_end)
        });
        (chunk_end + crate::bits::PAD <= bytes.len()).then_some(Self { bytes, parts })
    }

    /// Makes the view of the block for a reader with the key of market data only.
    #[cfg(any(test, feature = "twin"))]
    pub fn market_alone(&self) -> Self {
        let [market, ..] = self.parts.clone();
        Self { bytes: self.bytes, parts: [market, None, None] }
    }
}

/// Decodes blocks; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct BlockDecoder {
    tables: Vec<Vec<u64>>,
    event_times: Vec<u64>,
    venues: Vec<u64>,
    values: Vec<u64>,
    columns: [Vec<u64>; SPECIAL_MAX],
    starts: Vec<u32>,
    row_is_kept: Vec<bool>,
    templates: Vec<Vec<u8>>,
    /// The rows of the layout at hand: their indexes in the vector, and where their frames start.
    own_rows: Vec<u32>,
    own_starts: Vec<u32>,
}

/// Columns beside cells and streams, in all classes.
const SPECIAL_MAX: usize = 7;
/// Their places among the columns that are open.
const ORDINAL: usize = 0;
const LAYOUT_INDEX: usize = 1;
const MARKET_BYTES: usize = 2;
const LINES: usize = 3;
const IDENTITY_BYTES: usize = 4;
const BEHIND: usize = 5;
const FLAGS: usize = 6;

/// A column of a block that is being read.
struct BlockColumn<'a> {
    column_number: u16,
    value_bytes: u8,
    chunk: ColumnReader<'a>,
    /// Where its values begin, for errors.
    values_start: usize,
    /// Values that are not read yet.
    values_left: usize,
    /// Values of a vector of which a part has been given: a layout has no whole vector of rows in each of the block.
    buffer: Vec<u64>,
    buffer_at: usize,
}

impl BlockColumn<'_> {
    fn fault(&self, reason: &'static str) -> BlockFault {
        BlockFault { offset: self.values_start, reason }
    }

    /// Reads the next values into `out`.
    fn next(&mut self, out: &mut [u64]) -> Result<(), BlockFault> {
        let mut at = 0;
        while at < out.len() {
            if self.buffer_at < self.buffer.len() {
                let n = (self.buffer.len() - self.buffer_at).min(out.len() - at);
                out[at..at + n].copy_from_slice(&self.buffer[self.buffer_at..][..n]);
                (self.buffer_at, at) = (self.buffer_at + n, at + n);
                continue;
            }
            let n = self.next_vector()?;
            if n <= out.len() - at {
                self.chunk.next(&mut out[at..at + n]).map_err(|reason| self.fault(reason))?;
                at += n;
            } else {
                self.fill_buffer(n)?;
            }
        }
        Ok(())
    }

    /// Passes over the next `n` values.
    fn skip_values(&mut self, n: usize) -> Result<(), BlockFault> {
        let mut left = n;
        while left > 0 {
            let buffered = (self.buffer.len() - self.buffer_at).min(left);
            (self.buffer_at, left) = (self.buffer_at + buffered, left - buffered);
            if left == 0 {
                break;
            }
            let n = self.next_vector()?;
            if n <= left {
                self.chunk.skip_vector(n).map_err(|reason| self.fault(reason))?;
                left -= n;
            } else {
                self.fill_buffer(n)?;
            }
        }
        Ok(())
    }

    /// Takes the next vector from the values that are left. Returns how many it has.
    fn next_vector(&mut self) -> Result<usize, BlockFault> {
        let n = self.values_left.min(VECTOR);
        self.values_left -= n;
        if n == 0 { Err(self.fault("more rows of a layout than the block says")) } else { Ok(n) }
    }

    fn fill_buffer(&mut self, n: usize) -> Result<(), BlockFault> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(n, 0);
        self.chunk.next(&mut buffer).map_err(|reason| self.fault(reason))?;
        (self.buffer, self.buffer_at) = (buffer, 0);
        Ok(())
    }

    fn is_at_end(&self) -> bool {
        self.values_left == 0 && self.buffer_at == self.buffer.len() && self.chunk.is_at_end()
    }
}

/// The open cells of one layout.
struct LayoutColumns<'a> {
    plan: &'static EventKindLayout,
    columns: Vec<BlockColumn<'a>>,
    rows: usize,
    /// Rows that are not read yet.
    rows_left: usize,
}

impl<'a> LayoutColumns<'a> {
    /// The column of venues, if a row of the layout has one.
    fn venues(&mut self) -> Option<&mut BlockColumn<'a>> {
        self.columns.iter_mut().find(|column| self.plan.has_venue && column.column_number == VENUE)
    }
}

/// The columns of a block that are open.
#[derive(Default)]
struct OpenColumns<'a> {
    special_columns: Vec<BlockColumn<'a>>,
    shared_columns: Vec<BlockColumn<'a>>,
    layouts: Vec<LayoutColumns<'a>>,
    market_tail: Range<usize>,
    identity_tail: Range<usize>,
}

impl<'a> OpenColumns<'a> {
    fn into_columns(self) -> impl Iterator<Item = BlockColumn<'a>> {
        let own = self.layouts.into_iter().flat_map(|layout| layout.columns);
        self.special_columns.into_iter().chain(self.shared_columns).chain(own)
    }

    fn columns(&self) -> impl Iterator<Item = &BlockColumn<'a>> {
        let own = self.layouts.iter().flat_map(|layout| &layout.columns);
        self.special_columns.iter().chain(&self.shared_columns).chain(own)
    }
}

impl BlockDecoder {
    /// Appends the selected rows of the block to `batch`. If only the market data are open, a row is a frame with these
    /// fields only, and without a position. On an error, the batch stays as it was.
    // Within the loop of a scan it costs a tenth more instructions.
    #[inline(never)]
    pub fn decode(
        &mut self,
        block: &OpenBlock<'_>,
        head: &BlockHeader,
        wanted: &RowFilter,
        batch: &mut FrameBatch,
    ) -> Result<(), BlockFault> {
        if wanted.venue.is_some() && !head.kinds.any_layout(|layout| layout.has_venue) {
            return Ok(());
        }
        let (arena, keys) = (batch.arena.len(), batch.keys.len());
        let mut tables = std::mem::take(&mut self.tables);
        let mut columns = OpenColumns::default();
        let result = open(block, head, &mut tables, &mut columns)
            .and_then(|()| self.rows(block, head, &mut columns, wanted, batch));
        tables.extend(columns.into_columns().map(|column| column.chunk.into_table()));
        self.tables = tables;
        if result.is_err() {
            batch.arena.truncate(arena);
            batch.keys.truncate(keys);
        }
        result
    }

    /// Adds the tokens of the venues of all rows of the block to `venues`. Returns whether a row has market data in its
    /// extension.
    pub fn venues(
        &mut self,
        block: &OpenBlock<'_>,
        head: &BlockHeader,
        venues: &mut BTreeSet<u16>,
    ) -> Result<bool, BlockFault> {
        let (mut tables, mut columns) = (std::mem::take(&mut self.tables), OpenColumns::default());
        open(block, head, &mut tables, &mut columns)?;
        for layout in &mut columns.layouts {
            let mut rows_left = layout.rows;
            let Some(column) = layout.venues() else { continue };
            while rows_left > 0 {
                let n = rows_left.min(VECTOR);
                rows_left -= n;
                self.values.resize(n, 0);
                column.next(&mut self.values)?;
                venues.extend(self.values.iter().map(|venue| *venue as u16));
            }
        }
        Ok(!columns.market_tail.is_empty())
    }

    fn rows(
        &mut self,
        block: &OpenBlock<'_>,
        head: &BlockHeader,
        columns: &mut OpenColumns<'_>,
        wanted: &RowFilter,
        batch: &mut FrameBatch,
    ) -> Result<(), BlockFault> {
        let (is_whole, bytes) = (block.is_whole(), block.bytes);
        self.make_templates(columns);
        let OpenColumns {
            special_columns: special,
            shared_columns: shared,
            layouts,
            market_tail,
            identity_tail,
        } = columns;
        let (mut market_at, mut identity_at) = (market_tail.start, identity_tail.start);
        let mut firsts = std::mem::take(&mut self.columns);
        let mut raw_left = head.raw_bytes as usize;
        let mut left = head.rows as usize;
        while left > 0 {
            let n = left.min(VECTOR);
            left -= n;
            for values in &mut firsts {
                values.resize(n, 0);
            }
            for (column, values) in special.iter_mut().zip(&mut firsts) {
                column.next(values)?;
            }
            for index in &firsts[LAYOUT_INDEX] {
                let rows_left = layouts.get_mut(*index as usize).map(|layout| &mut layout.rows_left);
                let Some(rows_left) = rows_left.filter(|left| **left > 0) else {
                    return Err(special[LAYOUT_INDEX].fault("a row of a layout that the block does not have"));
                };
                *rows_left -= 1;
            }
            // The start of each frame, and a check that the block holds no more than it says.
            self.starts.clear();
            let mut total = 0;
            for ((lines, market), index) in
                firsts[LINES].iter().zip(&firsts[MARKET_BYTES]).zip(&firsts[LAYOUT_INDEX])
            {
                self.starts.push(total as u32);
                let fixed = layouts[*index as usize].plan.fixed;
                let limit = LINE * usize::from(u16::MAX) - fixed;
                let extra = match is_whole {
                    true => lines.checked_mul(LINE as u64),
                    false => market.checked_next_multiple_of(LINE as u64),
                };
                // The identity part of a tail may be longer than the frame, by the lengths of its runs.
                let Some(extra) = extra.filter(|extra| (*market..=limit as u64).contains(extra)) else {
                    return Err(special[MARKET_BYTES].fault("a frame of a length that none has"));
                };
                total += fixed + extra as usize;
                if total > raw_left {
                    return Err(special[MARKET_BYTES].fault("more than the block says it holds"));
                }
            }
            raw_left -= total;
            let sum = |values: &[u64]| values.iter().try_fold(0u64, |sum, v| sum.checked_add(*v));
            let tails = [
                (MARKET_BYTES, market_tail.end - market_at),
                (IDENTITY_BYTES, identity_tail.end - identity_at),
            ];
            for (column, left) in &tails[..if is_whole { 2 } else { 1 }] {
                if sum(&firsts[*column]).is_none_or(|sum| sum > *left as u64) {
                    return Err(special[*column].fault("tails that end before their rows do"));
                }
            }
            if !self.choose_rows(shared, layouts, &firsts, wanted)? {
                for column in shared.iter_mut().filter(|column| column.column_number != TS_EVENT) {
                    column.skip_values(n)?;
                }
                for (index, layout) in layouts.iter_mut().enumerate() {
                    let own_rows = count_of(&firsts[LAYOUT_INDEX], index);
                    let has_venue = wanted.venue.is_some() && layout.plan.has_venue;
                    let is_unread =
                        |column: &&mut BlockColumn<'_>| !(has_venue && column.column_number == VENUE);
                    for column in layout.columns.iter_mut().filter(is_unread) {
                        column.skip_values(own_rows)?;
                    }
                }
                market_at += firsts[MARKET_BYTES].iter().sum::<u64>() as usize;
                if is_whole {
                    identity_at += firsts[IDENTITY_BYTES].iter().sum::<u64>() as usize;
                }
                continue;
            }
            let (base, first_key) = (batch.arena.len(), batch.keys.len());
            self.scatter_cells(shared, layouts, &firsts[LAYOUT_INDEX], total, wanted, &mut batch.arena)?;
            let frames = &mut batch.arena[base..];
            for r in 0..n {
                let layout = layouts[firsts[LAYOUT_INDEX][r] as usize].plan;
                let frame_start = self.starts[r] as usize;
                let frame_end = self.starts.get(r + 1).map_or(total, |next| *next as usize);
                let market = &bytes[market_at..][..firsts[MARKET_BYTES][r] as usize];
                let (mut identity, mut position, mut bits) = (&[][..], Position(0), 0);
                if is_whole {
                    identity = &bytes[identity_at..][..firsts[IDENTITY_BYTES][r] as usize];
                    let line = firsts[BEHIND][r].wrapping_add(firsts[ORDINAL][r]);
                    position = Position(line.wrapping_mul(LINE as u64));
                    bits = firsts[FLAGS][r] as u8;
                } else if !market.is_empty() {
                    bits = flags::EXT;
                }
                let header = FrameHeader::new_unstamped(
                    layout.kind as u8,
                    bits,
                    ((frame_end - frame_start) / LINE) as u16,
                )
                .with_stamp(position);
                let frame = &mut frames[frame_start..frame_end];
                header.write(frame);
                if layout.kind.has_layouts() && frame[at::KIND_A] != layout.layout {
                    return Err(special[LAYOUT_INDEX].fault("a frame of another layout than its row"));
                }
                if join_tail(&mut frame[layout.fixed..], market, identity).is_none() {
                    let parts_reason = "two parts of a tail that make no whole";
                    return Err(BlockFault { offset: identity_at, reason: parts_reason });
                }
                market_at += market.len();
                identity_at += identity.len();
                if self.row_is_kept[r]
                    && wanted.listed.as_ref().is_none_or(|list| layout.lists_instrument(frame, list))
                {
                    batch.keys.push(FrameKey {
                        ts: UnixNanos(self.event_times[r] as i64),
                        tape_rank: 0,
                        line: ((base + frame_start) / LINE) as u32,
                        ordinal: firsts[ORDINAL][r],
                        position,
                    });
                }
            }
            if batch.keys.len() - first_key < n {
                batch.compact(base, first_key);
            }
        }
        self.columns = firsts;
        if let Some(column) = columns.columns().find(|column| !column.is_at_end()) {
            return Err(column.fault("a column that is longer than its rows"));
        }
        let is_read = market_at == columns.market_tail.end
            && (!is_whole || (identity_at == columns.identity_tail.end && raw_left == 0));
        if !is_read {
            return Err(BlockFault { offset: market_at, reason: "less than the block says it holds" });
        }
        Ok(())
    }

    /// Reads the columns that select rows. Returns false if no row of the vector is selected.
    fn choose_rows(
        &mut self,
        shared: &mut [BlockColumn<'_>],
        layouts: &mut [LayoutColumns<'_>],
        firsts: &[Vec<u64>; SPECIAL_MAX],
        wanted: &RowFilter,
    ) -> Result<bool, BlockFault> {
        let n = firsts[ORDINAL].len();
        self.event_times.resize(n, 0);
        shared[0].next(&mut self.event_times)?;
        self.row_is_kept.clear();
        let (first, last) = wanted.ordinals;
        self.row_is_kept.extend(self.event_times.iter().zip(&firsts[ORDINAL]).map(|(ts, ordinal)| {
            (wanted.from..=wanted.to).contains(&UnixNanos(*ts as i64)) && (first..=last).contains(ordinal)
        }));
        if let Some(venue) = wanted.venue {
            self.venues.resize(n, 0);
            for (index, layout) in layouts.iter_mut().enumerate() {
                let own_rows = || (0..n).filter(|r| firsts[LAYOUT_INDEX][*r] == index as u64);
                let Some(column) = layout.venues() else {
                    own_rows().for_each(|r| self.row_is_kept[r] = false);
                    continue;
                };
                self.values.resize(count_of(&firsts[LAYOUT_INDEX], index), 0);
                column.next(&mut self.values)?;
                for (r, value) in own_rows().zip(&self.values) {
                    self.venues[r] = *value;
                    self.row_is_kept[r] &= *value == u64::from(venue);
                }
            }
        }
        Ok(self.row_is_kept.contains(&true))
    }

    /// Appends the fixed parts of the vector's frames to `arena`, and zeros for the rest: `total` bytes in all.
    fn scatter_cells(
        &mut self,
        shared: &mut [BlockColumn<'_>],
        layouts: &mut [LayoutColumns<'_>],
        layout_indexes: &[u64],
        total: usize,
        wanted: &RowFilter,
        arena: &mut Vec<u8>,
    ) -> Result<(), BlockFault> {
        let (n, base) = (self.starts.len(), arena.len());
        // Of one layout, and none has an extension: the frames stand at even distances.
        let stride = match layouts {
            [layout] if total == n * layout.plan.fixed => Some(layout.plan.fixed),
            _ => None,
        };
        if stride.is_some() {
            (0..n).for_each(|_| arena.extend_from_slice(&self.templates[0]));
        } else {
            arena.resize(base + total, 0);
            for (start, index) in self.starts.iter().zip(layout_indexes) {
                let template = &self.templates[*index as usize];
                arena[base + *start as usize..][..template.len()].copy_from_slice(template);
            }
        }
        let frames = &mut arena[base..];
        for column in shared {
            let values = match column.column_number {
                TS_EVENT => &self.event_times,
                _ if column.chunk.constant().is_some() => {
                    column.skip_values(n)?;
                    continue;
                }
                _ => {
                    self.values.resize(n, 0);
                    column.next(&mut self.values)?;
                    &self.values
                }
            };
            scatter_column(frames, stride, &self.starts, column, values);
        }
        let is_single = layouts.len() == 1;
        for (index, layout) in layouts.iter_mut().enumerate() {
            if !is_single {
                self.own_rows.clear();
                let is_own = |r: &u32| layout_indexes[*r as usize] == index as u64;
                self.own_rows.extend((0..n as u32).filter(is_own));
                self.own_starts.clear();
                self.own_starts.extend(self.own_rows.iter().map(|r| self.starts[*r as usize]));
            }
            let starts = if is_single { &self.starts } else { &self.own_starts };
            for column in &mut layout.columns {
                self.values.resize(starts.len(), 0);
                if column.column_number == VENUE && wanted.venue.is_some() && layout.plan.has_venue {
                    if is_single {
                        self.values.copy_from_slice(&self.venues);
                    } else {
                        let own_venues = self.own_rows.iter().map(|r| self.venues[*r as usize]);
                        self.values.iter_mut().zip(own_venues).for_each(|(value, venue)| *value = venue);
                    }
                } else if column.chunk.constant().is_some() {
                    column.skip_values(starts.len())?;
                    continue;
                } else {
                    column.next(&mut self.values)?;
                }
                scatter_column(frames, stride, starts, column, &self.values);
            }
        }
        Ok(())
    }

    /// Makes the fixed part of each layout with the values that all its rows have in common. Fields of classes that are
    /// not open are empty.
    fn make_templates(&mut self, columns: &OpenColumns<'_>) {
        self.templates.clear();
        for layout in &columns.layouts {
            let mut template = layout.plan.empty.clone();
            FrameHeader::new_unstamped(layout.plan.kind as u8, 0, 0).write(&mut template);
            for column in columns.shared_columns.iter().chain(&layout.columns) {
                if let Some(value) = column.chunk.constant() {
                    let (offset, n) = (usize::from(column.column_number), usize::from(column.value_bytes));
                    template[offset..offset + n].copy_from_slice(&value.to_le_bytes()[..n]);
                }
            }
            self.templates.push(template);
        }
    }
}

/// Counts the rows of a vector that have the layout with this index.
fn count_of(layout_indexes: &[u64], index: usize) -> usize {
    layout_indexes.iter().filter(|of_row| **of_row == index as u64).count()
}

/// Puts the two parts of a tail into their places in `out`, which is zero; see `split_tail`. `None` if they do not fit.
fn join_tail(out: &mut [u8], market: &[u8], identity: &[u8]) -> Option<()> {
    if market.is_empty() || identity.is_empty() {
        let tail = if market.is_empty() { identity } else { market };
        out.get_mut(..tail.len())?.copy_from_slice(tail);
        return Some(());
    }
    let (mut lengths_at, mut end) = (0, 0);
    let runs = take_varint(identity, &mut lengths_at)?;
    let mut rest_at = lengths_at;
    for _ in 0..runs {
        take_varint(identity, &mut rest_at)?;
    }
    let (mut market, mut identity, lengths) = (market, &identity[rest_at..], identity);
    for run in 0..runs {
        let length = usize::try_from(take_varint(lengths, &mut lengths_at)?).ok()?;
        let part = if run % 2 == 0 { &mut market } else { &mut identity };
        let (run_bytes, left) = part.split_at_checked(length)?;
        out.get_mut(end..)?.get_mut(..length)?.copy_from_slice(run_bytes);
        (*part, end) = (left, end + length);
    }
    out.get_mut(end..)?.get_mut(..identity.len())?.copy_from_slice(identity);
    market.is_empty().then_some(())
}

const TS_EVENT: u16 = at::TS_EVENT as u16;
const VENUE: u16 = at::VENUE as u16;

/// Writes a column into the frames at `starts`.
fn scatter_column(
    frames: &mut [u8],
    stride: Option<usize>,
    starts: &[u32],
    column: &BlockColumn<'_>,
    values: &[u64],
) {
    let offset = usize::from(column.column_number);
    fn write_column<const N: usize>(
        frames: &mut [u8],
        stride: Option<usize>,
        starts: &[u32],
        offset: usize,
        values: &[u64],
    ) {
        if let Some(stride) = stride {
            for (frame, v) in frames.chunks_exact_mut(stride).zip(values) {
                frame[offset..offset + N].copy_from_slice(&v.to_le_bytes()[..N]);
            }
        } else {
            for (start, v) in starts.iter().zip(values) {
                let cell_start = *start as usize + offset;
                frames[cell_start..cell_start + N].copy_from_slice(&v.to_le_bytes()[..N]);
            }
        }
    }
    match column.value_bytes {
        1 => write_column::<1>(frames, stride, starts, offset, values),
        2 => write_column::<2>(frames, stride, starts, offset, values),
        3 => write_column::<3>(frames, stride, starts, offset, values),
        4 => write_column::<4>(frames, stride, starts, offset, values),
        5 => write_column::<5>(frames, stride, starts, offset, values),
        6 => write_column::<6>(frames, stride, starts, offset, values),
        7 => write_column::<7>(frames, stride, starts, offset, values),
        _ => write_column::<8>(frames, stride, starts, offset, values),
    }
}

/// Opens the columns of the chunks that are open.
fn open<'a>(
    block: &OpenBlock<'a>,
    head: &BlockHeader,
    tables: &mut Vec<Vec<u64>>,
    columns: &mut OpenColumns<'a>,
) -> Result<(), BlockFault> {
    for class in FieldClass::ALL {
        let Some(part) = block.parts[class.index()].clone() else { continue };
        let table_end = part.start + usize::from(head.chunk_size(class).columns) * ENTRY;
        let block_fault = |offset, reason| Err(BlockFault { offset, reason });
        let Some(table) = block.bytes.get(part.start..table_end.min(part.end)) else {
            return block_fault(part.start, "a chunk that is cut short");
        };
        let (expected, mut column_start) = (special::of_class(class), table_end);
        // Layouts of this table that have begun.
        let mut begun = 0;
        for (i, entry) in table.chunks_exact(ENTRY).enumerate() {
            let entry_at = part.start + i * ENTRY;
            let number = u16::from_le_bytes([entry[0], entry[1]]);
            let (width, encoding) = (entry[2], entry[3]);
            let length = u32::from_le_bytes(entry[4..8].try_into().expect("four bytes")) as usize;
            if expected.get(i).map_or(number >= special::ORDINAL, |special| *special != number) {
                return block_fault(entry_at, "a column that is missing");
            }
            if number == special::LAYOUT {
                begin_layout(head, class, columns, begun, (width, encoding, length))
                    .map_err(|reason| BlockFault { offset: entry_at, reason })?;
                begun += 1;
                continue;
            }
            let range = column_start..column_start.saturating_add(length);
            if range.end > part.end {
                return block_fault(entry_at, "a column that leaves its chunk");
            }
            column_start = range.end;
            let (list, rows) = match number {
                special::MARKET_TAIL => {
                    columns.market_tail = range;
                    continue;
                }
                special::IDENTITY_TAIL => {
                    columns.identity_tail = range;
                    continue;
                }
                special::ORDINAL.. => (&mut columns.special_columns, head.rows as usize),
                _ if begun == 0 => (&mut columns.shared_columns, head.rows as usize),
                _ => {
                    let layout = &mut columns.layouts[begun - 1];
                    (&mut layout.columns, layout.rows)
                }
            };
            let memory = tables.pop().unwrap_or_default();
            let chunk = ColumnReader::open(block.bytes, range.clone(), encoding, width, memory);
            let chunk = chunk.map_err(|message| BlockFault { offset: entry_at, reason: message })?;
            list.push(BlockColumn {
                column_number: number,
                value_bytes: width,
                chunk,
                values_start: range.start,
                values_left: rows,
                buffer: Vec::new(),
                buffer_at: 0,
            });
        }
        if column_start != part.end || table.len() < expected.len() * ENTRY {
            return block_fault(part.start, "a table that does not cover its chunk");
        }
        if begun != columns.layouts.len() {
            return block_fault(part.start, "a layout that is missing");
        }
    }
    let layouts = &columns.layouts;
    let layout_rows = layouts.iter().try_fold(0usize, |sum, layout| sum.checked_add(layout.rows));
    let kinds = layouts.iter().fold(0, |all, layout| all | 1 << layout.plan.kind as u8);
    if layout_rows != Some(head.rows as usize) || kinds != head.kinds.0 {
        return Err(BlockFault { offset: START, reason: "layouts of other rows than the block has" });
    }
    let is_whole = block.is_whole();
    check_cells(&mut columns.shared_columns, at::TS_EVENT, at::INSTRUMENT, is_whole)?;
    let has_cell = |columns: &[BlockColumn<'_>], offset: u16, width| {
        columns.iter().any(|column| (column.column_number, column.value_bytes) == (offset, width))
    };
    let mut is_sound = has_cell(&columns.shared_columns, TS_EVENT, 8);
    for layout in &mut columns.layouts {
        check_cells(&mut layout.columns, at::INSTRUMENT, layout.plan.fixed, is_whole)?;
        is_sound &= !layout.plan.has_venue || has_cell(&layout.columns, VENUE, 2);
    }
    if is_sound { Ok(()) } else { Err(BlockFault { offset: START, reason: NOT_COVERED }) }
}

const NOT_COVERED: &str = "columns that do not cover the frame";

/// Begins the layout with this index: in the table of market data as a new one, in another table as the same one again.
fn begin_layout(
    head: &BlockHeader,
    class: FieldClass,
    columns: &mut OpenColumns<'_>,
    index: usize,
    (kind, layout, rows): (u8, u8, usize),
) -> Result<(), &'static str> {
    let kind = EventKind::from_u8(kind).filter(|kind| !kind.is_meta());
    let plan = kind.and_then(|kind| EventKindLayout::find_layout(kind, layout));
    let plan = plan.ok_or("a layout that there is not")?;
    if class == FieldClass::Market {
        let is_new = !columns.layouts.iter().any(|known| std::ptr::eq(known.plan, plan));
        if !is_new || !(1..=head.rows as usize).contains(&rows) {
            return Err("a layout that no block has");
        }
        columns.layouts.push(LayoutColumns { plan, columns: Vec::new(), rows, rows_left: rows });
        return Ok(());
    }
    let is_same =
        columns.layouts.get(index).is_some_and(|known| std::ptr::eq(known.plan, plan) && known.rows == rows);
    if is_same { Ok(()) } else { Err("a layout that the market data do not have there") }
}

/// Puts cells into the order of the frame. Fails if two overlap, or if they do not lie between `start` and `end`; if all
/// classes are open, also if they leave a gap. Then no byte is written twice or left out.
fn check_cells(
    columns: &mut [BlockColumn<'_>],
    start: usize,
    end: usize,
    is_whole: bool,
) -> Result<(), BlockFault> {
    columns.sort_unstable_by_key(|column| column.column_number);
    let (mut next, mut is_tiled) = (start, true);
    for column in columns.iter() {
        let offset = usize::from(column.column_number);
        is_tiled &= offset == next;
        if offset < next {
            return Err(column.fault("a column that does not follow"));
        }
        next = offset + usize::from(column.value_bytes);
    }
    let is_sound = next <= end && (!is_whole || (is_tiled && next == end));
    if is_sound { Ok(()) } else { Err(BlockFault { offset: START, reason: NOT_COVERED }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::PAD;
    use crate::block::{BlockEncoder, BlockPlace, BlockSealer};
    use crate::day::Day;
    use crate::file::{BlockOpener, FileId};
    use crate::frames::RowBuffer;
    use crate::keys::{
        Binding, DayKeys, Leaf, LeafKeys, MasterKey, Piece, StoreId, StoreKeys, SystemRandomness,
    };
    use crate::schema::TickSchema;
    use proptest::prelude::*;
    use unitape_model::{Event, EventField};

    /// Decodes one value after another from each column by its definition: the slow twin.
    fn naive(block: &OpenBlock<'_>, head: &BlockHeader) -> Vec<(u64, u64, Vec<u8>)> {
        type Cells = Vec<(u16, u8, std::vec::IntoIter<u64>)>;
        fn values<'a>(columns: impl IntoIterator<Item = BlockColumn<'a>>, rows: usize) -> Cells {
            let read = |mut column: BlockColumn<'a>| {
                let mut values = vec![0; rows];
                values.chunks_mut(VECTOR).for_each(|v| column.chunk.next(v).expect("a sound chunk"));
                (column.column_number, column.value_bytes, values.into_iter())
            };
            columns.into_iter().map(read).collect()
        }
        let mut columns = OpenColumns::default();
        open(block, head, &mut Vec::new(), &mut columns).expect("a sound block");
        let rows = head.rows as usize;
        let (mut special, mut shared) =
            (values(columns.special_columns, rows), values(columns.shared_columns, rows));
        let mut own: Vec<_> =
            columns.layouts.into_iter().map(|l| (l.plan, values(l.columns, l.rows))).collect();
        let mut market = block.bytes[columns.market_tail].iter().copied();
        let mut identity = block.bytes[columns.identity_tail].iter().copied();
        (0..rows)
            .map(|_| {
                let row: Vec<(u16, u64)> =
                    special.iter_mut().map(|column| (column.0, column.2.next().unwrap())).collect();
                let value_of = |number: u16| row.iter().find(|cell| cell.0 == number).expect("a column").1;
                let (plan, cells) = &mut own[value_of(special::LAYOUT_INDEX) as usize];
                let lines = value_of(special::LINES) + plan.fixed as u64 / 64;
                let mut frame = vec![0; lines as usize * 64];
                for (number, width, values) in shared.iter_mut().chain(cells) {
                    let bytes = values.next().expect("a value for the row").to_le_bytes();
                    frame[usize::from(*number)..][..usize::from(*width)]
                        .copy_from_slice(&bytes[..usize::from(*width)]);
                }
                let market: Vec<u8> =
                    market.by_ref().take(value_of(special::MARKET_BYTES) as usize).collect();
                let identity: Vec<u8> =
                    identity.by_ref().take(value_of(special::IDENTITY_BYTES) as usize).collect();
                let mut tail = Vec::new();
                if market.is_empty() || identity.is_empty() {
                    tail = [market, identity].concat();
                } else {
                    let mut offset = 0;
                    let runs = take_varint(&identity, &mut offset).unwrap();
                    let lengths: Vec<u64> =
                        (0..runs).map(|_| take_varint(&identity, &mut offset).unwrap()).collect();
                    let (mut market, mut identity) = (market.into_iter(), identity.into_iter().skip(offset));
                    for (i, length) in lengths.into_iter().enumerate() {
                        let run_length = length as usize;
                        if i % 2 == 0 {
                            tail.extend(market.by_ref().take(run_length))
                        } else {
                            tail.extend(identity.by_ref().take(run_length))
                        }
                    }
                    tail.extend(identity);
                }
                frame[plan.fixed..][..tail.len()].copy_from_slice(&tail);
                let position = (value_of(special::BEHIND) + value_of(special::ORDINAL)) * 64;
                let header =
                    FrameHeader::new_unstamped(plan.kind as u8, value_of(special::FLAGS) as u8, lines as u16);
                header.with_stamp(Position(position)).write(&mut frame);
                (value_of(special::ORDINAL), position, frame)
            })
            .collect()
    }

    /// Makes frames of any bytes, of the kinds of a schema in turn: random frames, or frames that change little from row
    /// to row, as a market's frames do.
    fn rows(schema: TickSchema, seed: u64, n: usize, wild: bool) -> (RowBuffer, Vec<(u64, u64, Vec<u8>)>) {
        let (mut rows, mut all, mut x) = (RowBuffer::default(), Vec::new(), seed | 1);
        let mut random = move || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
        };
        let plans: Vec<_> = schema.kinds().flat_map(EventKindLayout::for_kind).collect();
        let mut frames: Vec<Vec<u8>> =
            plans.iter().map(|plan| (0..plan.fixed).map(|_| random() as u8).collect()).collect();
        let (mut ordinal, mut position) = (random() % 1000, 64_000 + random() % 1000 * 64);
        // Long stretches of one layout, and rows of all of them.
        let (mut of_row, spread) = (0, [2, 40, 3000][random() as usize % 3]);
        for _ in 0..n {
            if random().is_multiple_of(spread) {
                of_row = random() as usize % plans.len();
            }
            let (plan, kind, frame) = (plans[of_row], plans[of_row].kind, &mut frames[of_row]);
            frame.truncate(plan.fixed);
            if wild {
                frame.iter_mut().for_each(|b| *b = random() as u8);
            } else {
                for _ in 0..random() % 6 {
                    let offset = random() as usize % plan.fixed;
                    frame[offset] = frame[offset].wrapping_add(1);
                }
            }
            let extra = if random().is_multiple_of(3) { random() as usize % 4 } else { 0 };
            let some = if extra == 0 { 0 } else { random() as usize % (extra * LINE + 1) };
            frame.resize(plan.fixed + extra * LINE, 0);
            frame[plan.fixed..plan.fixed + some].iter_mut().for_each(|b| *b = random() as u8);
            let mut entry_offset = plan.fixed;
            // Entries of the extension, of market data and of others by turns, before bytes of any kind.
            for _ in 0..random() % 6 {
                let (tag, length) =
                    ([1u16, 2, 9, 20, 0xfffe, 23, 500][random() as usize % 7], random() as usize % 20);
                if entry_offset + 6 + length <= plan.fixed + some {
                    frame[entry_offset..entry_offset + 2].copy_from_slice(&tag.to_le_bytes());
                    frame[entry_offset + 2..entry_offset + 6].copy_from_slice(&(length as u32).to_le_bytes());
                    entry_offset += 6 + length;
                }
            }
            if kind.has_layouts() {
                frame[at::KIND_A] = plan.layout;
            }
            let header = FrameHeader::new_unstamped(kind as u8, random() as u8, (frame.len() / LINE) as u16);
            header.with_stamp(Position(position)).write(frame);
            rows.push(frame, ordinal, Position(position));
            all.push((ordinal, position, frame.clone()));
            ordinal += 1 + random() % 3;
            position += frame.len() as u64 + random() % 3 * 64;
        }
        (rows, all)
    }

    fn block_place() -> BlockPlace {
        let (day, tape) = (Day(3), unitape_tape::TapeId(5));
        let file = FileId { day, schema: TickSchema::Bbo, generation: 1, tape, commit: 9 };
        BlockPlace { file_id: file, instrument: InstrumentId(7), number: 5 }
    }

    /// Makes the block before it is sealed, with padding for loads.
    fn block(rows: &RowBuffer) -> (BlockHeader, Vec<u8>) {
        let mut bytes = Vec::new();
        let head = BlockEncoder::default().encode_plain(&block_place(), rows.block_rows(), &mut bytes);
        assert_eq!(BlockHeader::decode(&bytes), Ok(head));
        bytes.resize(bytes.len() + PAD, 0);
        (head, bytes)
    }

    fn decoded(
        block: &OpenBlock<'_>,
        head: &BlockHeader,
        wanted: &RowFilter,
    ) -> Result<Vec<(u64, u64, Vec<u8>)>, BlockFault> {
        let mut batch = FrameBatch::default();
        BlockDecoder::default().decode(block, head, wanted, &mut batch)?;
        Ok(batch.keys.iter().map(|k| (k.ordinal, k.position.0, batch.frame(k).to_vec())).collect())
    }

    fn schemas() -> impl Strategy<Value = TickSchema> {
        prop::sample::select(TickSchema::ALL.to_vec())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(120))]

        /// Fails if a sealed frame changes: padding, unknown bits and tails that end in zeros must survive.
        #[test]
        fn rows_come_back(schema in schemas(), seed in any::<u64>(), n in prop_oneof![1usize..40, 1000usize..2100], wild in any::<bool>()) {
            let (rows, want) = rows(schema, seed, n, wild);
            let (head, bytes) = block(&rows);
            let block = OpenBlock::from_plain(&bytes, &head).unwrap();
            prop_assert_eq!(&decoded(&block, &head, &RowFilter::all()).unwrap(), &want);
            prop_assert_eq!(&naive(&block, &head), &want);
        }

        /// Fails if the key of market data alone opens any other field, or misses a market field, also in the
        /// extension.
        #[test]
        fn market_data_alone_have_the_market_fields(schema in schemas(), seed in any::<u64>(), n in prop_oneof![1usize..40, 1000usize..1100]) {
            let (rows, want) = rows(schema, seed, n, false);
            let (head, bytes) = block(&rows);
            let whole_block = OpenBlock::from_plain(&bytes, &head).unwrap();
            let got = decoded(&whole_block.market_alone(), &head, &RowFilter::all()).unwrap();
            prop_assert_eq!(got.len(), want.len());
            for ((ordinal, position, frame), (want_ordinal, _, want)) in got.iter().zip(&want) {
                let (event, want) = (Event::new(frame).unwrap(), Event::new(want).unwrap());
                prop_assert_eq!((ordinal, *position, event.ts_event()), (want_ordinal, 0, want.ts_event()));
                prop_assert_eq!((event.source(), event.offset()), (0, 0));
                prop_assert_eq!(event.unmapped_fields().count(), 0);
                prop_assert_eq!(event.ts_recv(), want.ts_recv());
                if FieldClass::for_event_field(event.kind(), EventField::SrcSeq) == FieldClass::Market {
                    prop_assert_eq!(event.sequence(), want.sequence());
                }
                for spec in event.schema().fields {
                    let (mut a, mut b) = ([0; 36], [0; 36]);
                    let value = format!("{:?}", event.value(spec, &mut a));
                    match FieldClass::for_event_field(event.kind(), spec.field) {
                        FieldClass::Market => prop_assert_eq!(value, format!("{:?}", want.value(spec, &mut b)), "{:?}", spec.field),
                        _ => prop_assert_eq!(value, "None", "{:?}", spec.field),
                    }
                }
            }
        }

        /// Fails if rows that are left out shift the other rows.
        #[test]
        fn chosen_rows_are_those_of_the_slow_way(seed in any::<u64>(), n in 1usize..3000, part in 0usize..3000, span in 0u64..1 << 40) {
            let (rows, mut want) = rows(TickSchema::Bbo, seed, n, false);
            let (head, bytes) = block(&rows);
            let time = |f: &[u8]| i64::from_le_bytes(f[8..16].try_into().unwrap());
            let venue = |f: &[u8]| u16::from_le_bytes(f[36..38].try_into().unwrap());
            let middle = &want[part % n].2;
            let wanted = RowFilter {
                from: UnixNanos(time(middle).saturating_sub(span as i64)),
                to: UnixNanos(time(middle).saturating_add(span as i64)),
                venue: (seed % 2 == 0).then_some(venue(middle)),
                ..RowFilter::all()
            };
            let block = OpenBlock::from_plain(&bytes, &head).unwrap();
            let got = decoded(&block, &head, &wanted).unwrap();
            want.retain(|(_, _, f)| (wanted.from..=wanted.to).contains(&UnixNanos(time(f))) && wanted.venue.is_none_or(|v| v == venue(f)));
            prop_assert_eq!(got, want);
        }

        /// Fails if a changed block with correct checksums gives anything but rows or an error.
        #[test]
        fn changed_blocks_are_read_or_refused(
            schema in schemas(), seed in any::<u64>(), n in 1usize..1100,
            hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in any::<prop::sample::Index>(),
        ) {
            let (rows, _) = rows(schema, seed, n, false);
            let (_, mut bytes) = block(&rows);
            bytes.truncate(bytes.len() - PAD);
            for (index, byte) in hits {
                let offset = index.index(bytes.len());
                bytes[offset] ^= byte;
            }
            crate::twin::check::any_block(&bytes);
            bytes.truncate(cut.index(bytes.len()));
            crate::twin::check::any_block(&bytes);
        }
    }

    /// Fails if a changed bit on the disk, or a block in the place of another, goes unnoticed.
    #[test]
    fn no_changed_bit_and_no_other_place_goes_unnoticed() {
        let (rows, want) = rows(TickSchema::Quotes, 11, 300, false);
        let keys = StoreKeys::new(&MasterKey::random(&SystemRandomness).unwrap(), StoreId([1; 16]));
        let (leaves, random) = (LeafKeys::new(&keys), &SystemRandomness);
        let mut sealer = BlockSealer { keys: &keys, leaf_keys: leaves, days: DayKeys::new(), random };
        let mut good = Vec::new();
        let head = BlockEncoder::default()
            .encode(&block_place(), rows.block_rows(), &mut sealer, &mut good)
            .unwrap();
        let mut opener = BlockOpener::new(&keys, &sealer.days);
        let opens = |opener: &mut BlockOpener<'_>, id: &FileId, head: &BlockHeader, block: &[u8]| {
            opener.open(id, head, &FieldClass::ALL, &mut block.to_vec()).is_ok()
        };
        let file = block_place().file_id;
        assert!(opens(&mut opener, &file, &head, &good));
        for offset in 0..good.len() {
            let mut bad = good.clone();
            bad[offset] ^= 1 << (offset % 8);
            assert!(!opens(&mut opener, &file, &head, &bad), "byte {offset}");
        }
        for other_file in [
            FileId { day: Day(4), ..file },
            FileId { schema: TickSchema::Trades, ..file },
            FileId { generation: 2, ..file },
            FileId { tape: unitape_tape::TapeId(6), ..file },
            FileId { commit: 8, ..file },
        ] {
            assert!(!opens(&mut opener, &other_file, &head, &good), "{other_file:?}");
        }
        // A header of the index's own is not enough: a chunk names its block.
        for class in FieldClass::ALL {
            for other_head in [
                BlockHeader { instrument: InstrumentId(8), ..head },
                BlockHeader { number: 6, ..head },
                BlockHeader { rows: 299, ..head },
            ] {
                let leaf =
                    Leaf { day: file.day, schema: file.schema, instrument: other_head.instrument, class };
                let binding = Binding::new(Piece::Chunk, keys.store).file(&file).chunk(&other_head, class);
                let (end, mut block) = (head.end_of(class), good.clone());
                let chunk = &mut block[end - head.chunk_size(class).bytes as usize..end];
                let cipher = opener.leaf_keys.open(leaf, opener.days).unwrap();
                assert!(cipher.open(binding.bytes(), chunk).is_none(), "{class:?} {other_head:?}");
            }
        }
        let mut block = good.clone();
        let parts = opener.open(&file, &head, &FieldClass::ALL, &mut block).unwrap();
        block.resize(good.len() + PAD, 0);
        let open = OpenBlock { bytes: &block, parts };
        assert_eq!(decoded(&open, &head, &RowFilter::all()).unwrap(), want);
    }

    /// Fails if a header that asks for too much memory is not refused before the memory is allocated.
    #[test]
    fn sizes_are_checked_before_they_are_believed() {
        let (rows, _) = rows(TickSchema::Clock, 5, 10, true);
        let (head, _) = block(&rows);
        for bad in [
            BlockHeader { rows: 0, ..head },
            BlockHeader { rows: 65_537, raw_bytes: 65_537 * 64, ..head },
            BlockHeader { raw_bytes: u32::MAX / 64 * 64, ..head },
            BlockHeader { raw_bytes: 64, ..head },
            BlockHeader { bytes: 10, ..head },
            BlockHeader { bytes: u32::MAX, ..head },
            BlockHeader { ts_min: UnixNanos(1), ts_max: UnixNanos(0), ..head },
        ] {
            assert!(BlockHeader::decode(&bad.encode()).is_err(), "{bad:?}");
        }
    }
}
