//! From a block back to frames, a vector of rows at a time.

use std::collections::BTreeSet;
use std::ops::Range;

use unitape_model::frame::LINE;
use unitape_model::schema::at;
use unitape_model::{EventSchema, FrameHeader, InstrumentId, Position, UnixNanos, flags};

use crate::bits::take_varint;
use crate::block::{BlockHeader, ENTRY, START, special};
use crate::cells::EventKindLayout;
use crate::class::FieldClass;
use crate::column::{ColumnReader, VECTOR};

/// A filter on the rows of a block. The scan has checked the conditions on whole blocks before.
#[derive(Clone, Debug)]
pub(crate) struct RowFilter {
    /// First and last event time.
    pub from: UnixNanos,
    pub to: UnixNanos,
    /// Token of the venue.
    pub venue: Option<u16>,
    /// Tokens of instruments. A list of instruments must have one of them.
    pub listed: Option<Vec<InstrumentId>>,
}

/// A frame of a batch and its position on the tape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameKey {
    pub ordinal: u64,
    pub position: Position,
    /// Line of the arena.
    pub line: u32,
}

/// Frames of several blocks, and in which order they stood on the tape.
#[derive(Debug, Default)]
pub(crate) struct FrameBatch {
    pub arena: Vec<u8>,
    pub keys: Vec<FrameKey>,
    slots: Vec<u32>,
    sorted_keys: Vec<FrameKey>,
}

impl FrameBatch {
    pub fn clear(&mut self) {
        self.arena.clear();
        self.keys.clear();
    }

    /// Makes room for frames of `bytes` bytes in all, and for the keys of `rows`.
    pub fn reserve_rows(&mut self, bytes: usize, rows: usize) {
        self.arena.reserve(bytes);
        self.keys.reserve(rows);
    }

    /// Puts the keys into the order of the tape.
    pub fn sort_keys(&mut self) {
        if self.keys.is_sorted_by_key(|k| k.ordinal) {
            return;
        }
        let ordinals = || self.keys.iter().map(|k| k.ordinal);
        let (low, high) = (ordinals().min().unwrap_or(0), ordinals().max().unwrap_or(0));
        // Usually, most rows of this part of the tape are selected. Then each row gets its own place.
        if (high - low) / 4 < self.keys.len() as u64 {
            self.slots.clear();
            self.slots.resize((high - low) as usize + 1, u32::MAX);
            let mut is_distinct = true;
            for (i, k) in self.keys.iter().enumerate() {
                let slot = &mut self.slots[(k.ordinal - low) as usize];
                is_distinct &= *slot == u32::MAX;
                *slot = i as u32;
            }
            // Two events with the same ordinal mean that the store is damaged. Neither event may be lost.
            if is_distinct {
                self.sorted_keys.clear();
                let filled_slots = self.slots.iter().filter(|s| **s != u32::MAX);
                self.sorted_keys.extend(filled_slots.map(|s| self.keys[*s as usize]));
                std::mem::swap(&mut self.keys, &mut self.sorted_keys);
                return;
            }
        }
        self.keys.sort_by_key(|k| k.ordinal);
    }

    /// Returns the frame of a key.
    #[inline]
    pub fn frame(&self, key: &FrameKey) -> &[u8] {
        let frame_start = key.line as usize * LINE;
        let length = FrameHeader::read(&self.arena[frame_start..]).len_bytes();
        &self.arena[frame_start..frame_start + length]
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

    /// Takes apart a block that [`BlockEncoder::encode_plain`](crate::block::BlockEncoder::encode_plain) has written,
    /// with [`PAD`](crate::bits::PAD) bytes after it. Returns `None` if the block is shorter than its header says.
    #[cfg(any(test, feature = "twin"))]
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
    template: Vec<u8>,
}

/// Columns beside cells and streams, in all classes.
const SPECIAL_MAX: usize = 6;
/// Their places among the columns that are open.
const ORDINAL: usize = 0;
const MARKET_BYTES: usize = 1;
const LINES: usize = 2;
const IDENTITY_BYTES: usize = 3;
const BEHIND: usize = 4;
const FLAGS: usize = 5;

/// A column of a block that is being read.
struct BlockColumn<'a> {
    column_number: u16,
    value_bytes: u8,
    chunk: ColumnReader<'a>,
    /// Where its values begin, for errors.
    values_start: usize,
}

impl BlockColumn<'_> {
    fn next(&mut self, out: &mut [u64]) -> Result<(), BlockFault> {
        self.chunk.next(out).map_err(|reason| BlockFault { offset: self.values_start, reason })
    }

    fn skip_values(&mut self, n: usize) -> Result<(), BlockFault> {
        self.chunk.skip_vector(n).map_err(|reason| BlockFault { offset: self.values_start, reason })
    }
}

/// The columns of a block that are open.
#[derive(Default)]
struct OpenColumns<'a> {
    special_columns: Vec<BlockColumn<'a>>,
    cell_columns: Vec<BlockColumn<'a>>,
    market_tail: Range<usize>,
    identity_tail: Range<usize>,
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
        if wanted.venue.is_some() && !head.layout().has_venue {
            return Ok(());
        }
        let (arena, keys) = (batch.arena.len(), batch.keys.len());
        let mut tables = std::mem::take(&mut self.tables);
        let mut columns = OpenColumns::default();
        let result = open(block, head, &mut tables, &mut columns)
            .and_then(|()| self.rows(block, head, &mut columns, wanted, batch));
        tables.extend(
            columns.special_columns.into_iter().chain(columns.cell_columns).map(|c| c.chunk.into_table()),
        );
        self.tables = tables;
        if result.is_err() {
            batch.arena.truncate(arena);
            batch.keys.truncate(keys);
        }
        result
    }

    /// Adds the tokens of the venues of all rows of the block to `venues`.
    pub fn venues(
        &mut self,
        block: &OpenBlock<'_>,
        head: &BlockHeader,
        venues: &mut BTreeSet<u16>,
    ) -> Result<(), BlockFault> {
        let (mut tables, mut columns) = (std::mem::take(&mut self.tables), OpenColumns::default());
        open(block, head, &mut tables, &mut columns)?;
        let column = columns.cell_columns.iter_mut().find(|column| column.column_number == VENUE);
        let Some(column) = column.filter(|_| head.layout().has_venue) else { return Ok(()) };
        let mut rows_left = head.rows as usize;
        while rows_left > 0 {
            let n = rows_left.min(VECTOR);
            rows_left -= n;
            self.values.resize(n, 0);
            column.next(&mut self.values)?;
            venues.extend(self.values.iter().map(|venue| *venue as u16));
        }
        Ok(())
    }

    fn rows(
        &mut self,
        block: &OpenBlock<'_>,
        head: &BlockHeader,
        columns: &mut OpenColumns<'_>,
        wanted: &RowFilter,
        batch: &mut FrameBatch,
    ) -> Result<(), BlockFault> {
        let (plan, is_whole, bytes) = (head.layout(), block.is_whole(), block.bytes);
        let OpenColumns { special_columns: special, cell_columns: cells, market_tail, identity_tail } =
            columns;
        let (mut market_at, mut identity_at) = (market_tail.start, identity_tail.start);
        self.make_template(plan, head, cells);
        let mut firsts = std::mem::take(&mut self.columns);
        let mut raw_left = head.raw_bytes as usize;
        let (mut left, limit) = (head.rows as usize, LINE * usize::from(u16::MAX) - plan.fixed);
        while left > 0 {
            let n = left.min(VECTOR);
            left -= n;
            for values in &mut firsts {
                values.resize(n, 0);
            }
            for (column, values) in special.iter_mut().zip(&mut firsts) {
                column.next(values)?;
            }
            // The start of each frame, and a check that the block holds no more than it says.
            self.starts.clear();
            let mut total = 0;
            for (lines, market) in firsts[LINES].iter().zip(&firsts[MARKET_BYTES]) {
                self.starts.push(total as u32);
                let extra = match is_whole {
                    true => lines.checked_mul(LINE as u64),
                    false => market.checked_next_multiple_of(LINE as u64),
                };
                // The identity part of a tail may be longer than the frame, by the lengths of its runs.
                let Some(extra) = extra.filter(|extra| (*market..=limit as u64).contains(extra)) else {
                    let length_reason = "a frame of a length that none has";
                    return Err(BlockFault {
                        offset: special[MARKET_BYTES].values_start,
                        reason: length_reason,
                    });
                };
                total += plan.fixed + extra as usize;
                if total > raw_left {
                    let size_reason = "more than the block says it holds";
                    return Err(BlockFault {
                        offset: special[MARKET_BYTES].values_start,
                        reason: size_reason,
                    });
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
                    let tail_reason = "tails that end before their rows do";
                    return Err(BlockFault { offset: special[*column].values_start, reason: tail_reason });
                }
            }
            if !self.choose_rows(cells, n, wanted)? {
                for column in cells.iter_mut().filter(|c| !is_looked_at(c.column_number, wanted)) {
                    column.skip_values(n)?;
                }
                market_at += firsts[MARKET_BYTES].iter().sum::<u64>() as usize;
                if is_whole {
                    identity_at += firsts[IDENTITY_BYTES].iter().sum::<u64>() as usize;
                }
                continue;
            }
            let base = batch.arena.len();
            let is_even = total == n * plan.fixed;
            if is_even {
                (0..n).for_each(|_| batch.arena.extend_from_slice(&self.template));
            } else {
                batch.arena.resize(base + total, 0);
                for start in &self.starts {
                    batch.arena[base + *start as usize..][..plan.fixed].copy_from_slice(&self.template);
                }
            }
            let frames = &mut batch.arena[base..];
            for column in cells.iter_mut() {
                let values = match column.column_number as usize {
                    at::TS_EVENT => &self.event_times,
                    at::VENUE if wanted.venue.is_some() && plan.has_venue => &self.venues,
                    _ if column.chunk.constant().is_some() => continue,
                    _ => {
                        self.values.resize(n, 0);
                        column.next(&mut self.values)?;
                        &self.values
                    }
                };
                let stride = if is_even { Some(plan.fixed) } else { None };
                scatter_column(
                    frames,
                    stride,
                    &self.starts,
                    column.column_number.into(),
                    column.value_bytes,
                    values,
                );
            }
            if head.kind.has_layouts() && !are_of_layout(head, frames, &self.starts) {
                let layout_reason = "a frame of another layout than its block";
                return Err(BlockFault { offset: special[ORDINAL].values_start, reason: layout_reason });
            }
            for r in 0..n {
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
                    head.kind as u8,
                    bits,
                    ((frame_end - frame_start) / LINE) as u16,
                )
                .with_stamp(position);
                header.write(&mut frames[frame_start..]);
                if join_tail(&mut frames[frame_start + plan.fixed..frame_end], market, identity).is_none() {
                    let parts_reason = "two parts of a tail that make no whole";
                    return Err(BlockFault { offset: identity_at, reason: parts_reason });
                }
                market_at += market.len();
                identity_at += identity.len();
                if self.row_is_kept[r] {
                    let frame = &frames[frame_start..frame_end];
                    if wanted.listed.as_ref().is_none_or(|list| plan.lists_instrument(frame, list)) {
                        let line = ((base + frame_start) / LINE) as u32;
                        batch.keys.push(FrameKey { ordinal: firsts[ORDINAL][r], position, line });
                    }
                }
            }
        }
        self.columns = firsts;
        let unread = special.iter().chain(&*cells).find(|c| !c.chunk.is_at_end());
        if let Some(column) = unread {
            return Err(BlockFault {
                offset: column.values_start,
                reason: "a column that is longer than its rows",
            });
        }
        let is_read = market_at == market_tail.end
            && (!is_whole || (identity_at == identity_tail.end && raw_left == 0));
        if !is_read {
            return Err(BlockFault { offset: market_at, reason: "less than the block says it holds" });
        }
        Ok(())
    }

    /// Reads the columns that select rows. Returns false if no row of the vector is selected.
    fn choose_rows(
        &mut self,
        cells: &mut [BlockColumn<'_>],
        n: usize,
        wanted: &RowFilter,
    ) -> Result<bool, BlockFault> {
        self.row_is_kept.clear();
        for column in cells.iter_mut().filter(|c| is_looked_at(c.column_number, wanted)) {
            let values = if column.column_number == VENUE { &mut self.venues } else { &mut self.event_times };
            values.resize(n, 0);
            column.next(values)?;
        }
        let is_in_range = |t: &u64| (wanted.from..=wanted.to).contains(&UnixNanos(*t as i64));
        self.row_is_kept.extend(self.event_times[..n].iter().map(is_in_range));
        if let Some(venue) = wanted.venue {
            for (keep, v) in self.row_is_kept.iter_mut().zip(&self.venues) {
                *keep &= *v == u64::from(venue);
            }
        }
        Ok(self.row_is_kept.contains(&true))
    }

    /// Makes the fixed part with the values that all rows have in common. Fields of classes that are not open are
    /// empty.
    fn make_template(&mut self, plan: &EventKindLayout, head: &BlockHeader, cells: &[BlockColumn<'_>]) {
        self.template.clear();
        self.template.extend_from_slice(&plan.empty);
        FrameHeader::new_unstamped(head.kind as u8, 0, 0).write(&mut self.template);
        for column in cells {
            if let Some(v) = column.chunk.constant() {
                let (offset, n) = (usize::from(column.column_number), usize::from(column.value_bytes));
                self.template[offset..offset + n].copy_from_slice(&v.to_le_bytes()[..n]);
            }
        }
    }
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

const VENUE: u16 = at::VENUE as u16;

fn is_looked_at(column: u16, wanted: &RowFilter) -> bool {
    usize::from(column) == at::TS_EVENT || (column == VENUE && wanted.venue.is_some())
}

/// Writes a column into each frame.
fn scatter_column(
    frames: &mut [u8],
    stride: Option<usize>,
    starts: &[u32],
    offset: usize,
    width: u8,
    values: &[u64],
) {
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
    match width {
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

/// Returns whether the frames at `starts` have the block's layout.
#[cold]
fn are_of_layout(head: &BlockHeader, frames: &[u8], starts: &[u32]) -> bool {
    starts.iter().all(|start| {
        EventSchema::for_frame(head.kind, frames[*start as usize + at::KIND_A])
            .is_some_and(|schema| schema.fixed_bytes == head.fixed_bytes)
    })
}

/// Opens the columns of the chunks that are open, in the order of the frame.
fn open<'a>(
    block: &OpenBlock<'a>,
    head: &BlockHeader,
    tables: &mut Vec<Vec<u64>>,
    columns: &mut OpenColumns<'a>,
) -> Result<(), BlockFault> {
    let plan = head.layout();
    for class in FieldClass::ALL {
        let Some(part) = block.parts[class.index()].clone() else { continue };
        let table_end = part.start + usize::from(head.chunk_size(class).columns) * ENTRY;
        let block_fault = |offset, reason| Err(BlockFault { offset, reason });
        let Some(table) = block.bytes.get(part.start..table_end.min(part.end)) else {
            return block_fault(part.start, "a chunk that is cut short");
        };
        let (expected, mut column_start) = (special::of_class(class), table_end);
        for (i, entry) in table.chunks_exact(ENTRY).enumerate() {
            let entry_at = part.start + i * ENTRY;
            let number = u16::from_le_bytes([entry[0], entry[1]]);
            let (width, encoding) = (entry[2], entry[3]);
            let length = u32::from_le_bytes(entry[4..8].try_into().expect("four bytes")) as usize;
            let range = column_start..column_start.saturating_add(length);
            if range.end > part.end {
                return block_fault(entry_at, "a column that leaves its chunk");
            }
            column_start = range.end;
            if expected.get(i).map_or(number >= special::ORDINAL, |special| *special != number) {
                return block_fault(entry_at, "a column that is missing");
            }
            match number {
                special::MARKET_TAIL => columns.market_tail = range,
                special::IDENTITY_TAIL => columns.identity_tail = range,
                _ => {
                    let memory = tables.pop().unwrap_or_default();
                    let chunk = ColumnReader::open(block.bytes, range.clone(), encoding, width, memory);
                    let chunk = chunk.map_err(|message| BlockFault { offset: entry_at, reason: message })?;
                    let column = BlockColumn {
                        column_number: number,
                        value_bytes: width,
                        chunk,
                        values_start: range.start,
                    };
                    let list = if number >= special::ORDINAL {
                        &mut columns.special_columns
                    } else {
                        &mut columns.cell_columns
                    };
                    list.push(column);
                }
            }
        }
        if column_start != part.end || table.len() < expected.len() * ENTRY {
            return block_fault(part.start, "a table that does not cover its chunk");
        }
    }
    columns.cell_columns.sort_unstable_by_key(|column| column.column_number);
    // The cells of all classes tile the fixed part, so that no byte is written twice or left out.
    let (mut end, mut is_tiled) = (at::TS_EVENT, true);
    for column in &columns.cell_columns {
        is_tiled &= usize::from(column.column_number) == end;
        if usize::from(column.column_number) < end {
            let order_reason = "a column that does not follow";
            return Err(BlockFault { offset: column.values_start, reason: order_reason });
        }
        end = usize::from(column.column_number) + usize::from(column.value_bytes);
    }
    let has_cell = |cell_offset: usize, width| {
        columns
            .cell_columns
            .iter()
            .any(|c| usize::from(c.column_number) == cell_offset && c.value_bytes == width)
    };
    let sound = end <= plan.fixed
        && (!block.is_whole() || (is_tiled && end == plan.fixed))
        && has_cell(at::TS_EVENT, 8)
        && (!plan.has_venue || has_cell(at::VENUE, 2));
    if sound {
        Ok(())
    } else {
        Err(BlockFault { offset: START, reason: "columns that do not cover the frame" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::PAD;
    use crate::block::{BlockEncoder, BlockPlace, BlockRows, BlockSealer};
    use crate::day::Day;
    use crate::file::{BlockOpener, FileId};
    use crate::keys::{
        Binding, DayKeys, Leaf, LeafKeys, MasterKey, Piece, StoreId, StoreKeys, SystemRandomness,
    };
    use crate::schema::TickSchema;
    use proptest::prelude::*;
    use unitape_model::{Event, EventField, EventKind};

    /// Decodes one value after another from each column by its definition: the slow twin.
    fn naive(block: &OpenBlock<'_>, head: &BlockHeader) -> Vec<(u64, u64, Vec<u8>)> {
        let (mut columns, plan) = (OpenColumns::default(), head.layout());
        open(block, head, &mut Vec::new(), &mut columns).expect("a sound block");
        let mut all: Vec<(u16, u8, Vec<u64>)> = Vec::new();
        for mut c in columns.special_columns.into_iter().chain(columns.cell_columns) {
            let mut values = vec![0; head.rows as usize];
            values.chunks_mut(VECTOR).for_each(|v| c.chunk.next(v).expect("a sound chunk"));
            all.push((c.column_number, c.value_bytes, values));
        }
        let mut market = block.bytes[columns.market_tail].iter().copied();
        let mut identity = block.bytes[columns.identity_tail].iter().copied();
        (0..head.rows as usize)
            .map(|r| {
                let value_of = |n: u16| all.iter().find(|c| c.0 == n).expect("a column").2[r];
                let lines = value_of(special::LINES) + plan.fixed as u64 / 64;
                let mut frame = vec![0; lines as usize * 64];
                for (number, width, values) in all.iter().filter(|c| c.0 < special::ORDINAL) {
                    let bytes = values[r].to_le_bytes();
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
                    FrameHeader::new_unstamped(head.kind as u8, value_of(special::FLAGS) as u8, lines as u16);
                header.with_stamp(Position(position)).write(&mut frame);
                (value_of(special::ORDINAL), position, frame)
            })
            .collect()
    }

    /// Makes frames of any bytes: random frames, or frames that change little from row to row, as a market's frames do.
    fn rows(kind: EventKind, seed: u64, n: usize, wild: bool) -> (BlockRows, Vec<(u64, u64, Vec<u8>)>) {
        let (mut rows, mut all, mut x) = (BlockRows::default(), Vec::new(), seed | 1);
        let mut random = move || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
        };
        let plan = EventKindLayout::for_schema(EventSchema::for_kind(kind));
        let mut frame: Vec<u8> = (0..plan.fixed).map(|_| random() as u8).collect();
        let (mut ordinal, mut position) = (random() % 1000, 64_000 + random() % 1000 * 64);
        for _ in 0..n {
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
                frame[at::KIND_A] = EventSchema::for_kind(kind).layout;
            }
            let header = FrameHeader::new_unstamped(kind as u8, random() as u8, (frame.len() / LINE) as u16);
            header.with_stamp(Position(position)).write(&mut frame);
            rows.push(&frame, ordinal, Position(position));
            all.push((ordinal, position, frame.clone()));
            ordinal += 1 + random() % 3;
            position += frame.len() as u64 + random() % 3 * 64;
        }
        (rows, all)
    }

    fn block_place() -> BlockPlace {
        let (day, tape) = (Day(3), unitape_tape::TapeId(5));
        let file = FileId { day, schema: TickSchema::Bbo, generation: 1, tape, commit: 9 };
        BlockPlace { file_id: file, instrument: InstrumentId(7), stripe: 3, number: 5 }
    }

    /// Makes the block before it is sealed, with padding for loads.
    fn block(kind: EventKind, rows: &BlockRows) -> (BlockHeader, Vec<u8>) {
        let mut bytes = Vec::new();
        let schema = EventSchema::for_kind(kind);
        let head = BlockEncoder::default().encode_plain(schema, &block_place(), rows, &mut bytes);
        assert_eq!(BlockHeader::decode(&bytes), Ok(head));
        bytes.resize(bytes.len() + PAD, 0);
        (head, bytes)
    }

    fn everything() -> RowFilter {
        RowFilter { from: UnixNanos(i64::MIN), to: UnixNanos(i64::MAX), venue: None, listed: None }
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

    fn kinds() -> impl Strategy<Value = EventKind> {
        prop::sample::select(EventKind::EVENTS.to_vec())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(120))]

        /// Fails if a sealed frame changes: padding, unknown bits and tails that end in zeros must survive.
        #[test]
        fn rows_come_back(kind in kinds(), seed in any::<u64>(), n in prop_oneof![1usize..40, 1000usize..2100], wild in any::<bool>()) {
            let (rows, want) = rows(kind, seed, n, wild);
            let (head, bytes) = block(kind, &rows);
            let block = OpenBlock::from_plain(&bytes, &head).unwrap();
            prop_assert_eq!(&decoded(&block, &head, &everything()).unwrap(), &want);
            prop_assert_eq!(&naive(&block, &head), &want);
        }

        /// Fails if the key of market data alone opens any other field, or misses a market field, also in the
        /// extension.
        #[test]
        fn market_data_alone_have_the_market_fields(kind in kinds(), seed in any::<u64>(), n in prop_oneof![1usize..40, 1000usize..1100]) {
            let (rows, want) = rows(kind, seed, n, false);
            let (head, bytes) = block(kind, &rows);
            let whole_block = OpenBlock::from_plain(&bytes, &head).unwrap();
            let got = decoded(&whole_block.market_alone(), &head, &everything()).unwrap();
            prop_assert_eq!(got.len(), want.len());
            for ((ordinal, position, frame), (want_ordinal, _, want)) in got.iter().zip(&want) {
                let (event, want) = (Event::new(frame).unwrap(), Event::new(want).unwrap());
                prop_assert_eq!((ordinal, *position, event.ts_event()), (want_ordinal, 0, want.ts_event()));
                prop_assert_eq!((event.source(), event.offset()), (0, 0));
                prop_assert_eq!(event.unmapped_fields().count(), 0);
                prop_assert_eq!(event.ts_recv(), want.ts_recv());
                if FieldClass::for_event_field(kind, EventField::SrcSeq) == FieldClass::Market {
                    prop_assert_eq!(event.sequence(), want.sequence());
                }
                for spec in event.schema().fields {
                    let (mut a, mut b) = ([0; 36], [0; 36]);
                    let value = format!("{:?}", event.value(spec, &mut a));
                    match FieldClass::for_event_field(kind, spec.field) {
                        FieldClass::Market => prop_assert_eq!(value, format!("{:?}", want.value(spec, &mut b)), "{:?}", spec.field),
                        _ => prop_assert_eq!(value, "None", "{:?}", spec.field),
                    }
                }
            }
        }

        /// Fails if rows that are left out shift the other rows.
        #[test]
        fn chosen_rows_are_those_of_the_slow_way(seed in any::<u64>(), n in 1usize..3000, part in 0usize..3000, span in 0u64..1 << 40) {
            let (rows, mut want) = rows(EventKind::Bbo, seed, n, false);
            let (head, bytes) = block(EventKind::Bbo, &rows);
            let time = |f: &[u8]| i64::from_le_bytes(f[8..16].try_into().unwrap());
            let venue = |f: &[u8]| u16::from_le_bytes(f[36..38].try_into().unwrap());
            let middle = &want[part % n].2;
            let wanted = RowFilter {
                from: UnixNanos(time(middle).saturating_sub(span as i64)),
                to: UnixNanos(time(middle).saturating_add(span as i64)),
                venue: (seed % 2 == 0).then_some(venue(middle)),
                listed: None,
            };
            let block = OpenBlock::from_plain(&bytes, &head).unwrap();
            let got = decoded(&block, &head, &wanted).unwrap();
            want.retain(|(_, _, f)| (wanted.from..=wanted.to).contains(&UnixNanos(time(f))) && wanted.venue.is_none_or(|v| v == venue(f)));
            prop_assert_eq!(got, want);
        }

        /// Fails if a changed block with correct checksums gives anything but rows or an error.
        #[test]
        fn changed_blocks_are_read_or_refused(
            kind in kinds(), seed in any::<u64>(), n in 1usize..1100,
            hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in any::<prop::sample::Index>(),
        ) {
            let (rows, _) = rows(kind, seed, n, false);
            let (_, mut bytes) = block(kind, &rows);
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
        let (rows, want) = rows(EventKind::Quote, 11, 300, false);
        let keys = StoreKeys::new(&MasterKey::random(&SystemRandomness).unwrap(), StoreId([1; 16]));
        let (leaves, random) = (LeafKeys::new(&keys), &SystemRandomness);
        let mut sealer = BlockSealer { keys: &keys, leaf_keys: leaves, days: DayKeys::new(), random };
        let (mut good, schema) = (Vec::new(), EventSchema::for_kind(EventKind::Quote));
        let head =
            BlockEncoder::default().encode(schema, &block_place(), &rows, &mut sealer, &mut good).unwrap();
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
        assert_eq!(decoded(&open, &head, &everything()).unwrap(), want);
    }

    /// Fails if a header that asks for too much memory is not refused before the memory is allocated.
    #[test]
    fn sizes_are_checked_before_they_are_believed() {
        let (rows, _) = rows(EventKind::Clock, 5, 10, true);
        let (head, _) = block(EventKind::Clock, &rows);
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

    /// Fails if an event vanishes when two blocks of a damaged store claim the same ordinal.
    #[test]
    fn batches_are_put_into_the_order_of_the_tape() {
        let key = |ordinal: u64, line| FrameKey { ordinal, position: Position(0), line };
        for ordinals in [&[5u64, 3, 4, 9][..], &[5, 5, 3], &[1 << 60, 0, 7], &[], &[1, 2, 3]] {
            let mut batch = FrameBatch::default();
            batch.keys.extend(ordinals.iter().enumerate().map(|(i, o)| key(*o, i as u32)));
            batch.sort_keys();
            let mut want = ordinals.to_vec();
            want.sort_unstable();
            assert_eq!(batch.keys.iter().map(|k| k.ordinal).collect::<Vec<_>>(), want);
            let mut lines: Vec<u32> = batch.keys.iter().map(|k| k.line).collect();
            lines.sort_unstable();
            assert_eq!(lines, (0..ordinals.len() as u32).collect::<Vec<_>>());
        }
    }
}
