//! From a block back to frames, a vector of rows at a time.

mod columns;
mod templates;

use std::collections::BTreeSet;

use unitape_model::frame::LINE;
use unitape_model::schema::at;
use unitape_model::{FieldClass, FrameHeader, InstrumentId, Position, UnixNanos, flags};

use self::columns::{BlockColumn, LayoutColumns, OpenColumns, PredictorValues, TS_EVENT, VENUE, open};
use crate::bits::take_varint;
use crate::column::VECTOR;
use crate::header::{BlockHeader, START};
use crate::stream::StreamDecoder;

/// A filter on the rows of a block. The scan has checked the conditions on whole blocks before.
#[derive(Clone, Debug)]
pub(crate) struct RowFilter {
    /// First and last event time.
    pub from: UnixNanos,
    pub to: UnixNanos,
    /// First and last ordinal on each tape of the part, by its index. Empty selects all.
    pub ordinals: Vec<(u64, u64)>,
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
            ordinals: Vec::new(),
            venue: None,
            listed: None,
        }
    }

    /// Returns the first and the last wanted ordinal on a tape of the part, or `None` if there is no such tape. The first
    /// is the larger one if no row of the tape is wanted.
    pub fn ordinals_of(&self, tape_index: u64) -> Option<(u64, u64)> {
        if self.ordinals.is_empty() {
            return Some((0, u64::MAX));
        }
        self.ordinals.get(usize::try_from(tape_index).ok()?).copied()
    }
}

/// A frame of a batch: its places in the orders of time and tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameKey {
    pub ts: UnixNanos,
    /// The rank of its tape among the tapes of the store. The decoder puts the index among those of the part here.
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

/// A block with opened chunks: those of all classes, or only those of market data.
#[derive(Clone, Debug)]
pub(crate) struct OpenBlock<'a> {
    /// The block, with [`PAD`](crate::bits::PAD) bytes after it.
    pub bytes: &'a [u8],
    /// Where the opened classes begin, in the order of [`FieldClass::ALL`](unitape_model::FieldClass::ALL).
    pub parts: [Option<usize>; 3],
}

impl<'a> OpenBlock<'a> {
    fn is_whole(&self) -> bool {
        self.parts.iter().all(Option::is_some)
    }

    /// Takes a block that [`BlockEncoder::write_plain`](crate::block::BlockEncoder::write_plain) has made.
    /// Returns `None` if it is shorter than its header says.
    pub fn from_plain(bytes: &'a [u8], head: &BlockHeader) -> Option<Self> {
        let class_start = |class| head.end_of(class) - head.class_size(class).bytes as usize;
        let parts = FieldClass::ALL.map(|class| Some(class_start(class)));
        (head.bytes as usize + crate::bits::PAD <= bytes.len()).then_some(Self { bytes, parts })
    }

    /// Makes the view of the block for a reader with the key of market data only.
    #[cfg(any(test, feature = "twin"))]
    pub fn market_alone(&self) -> Self {
        let [market, ..] = self.parts;
        Self { bytes: self.bytes, parts: [market, None, None] }
    }
}

/// Decodes blocks; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct BlockDecoder {
    tables: Vec<Vec<u64>>,
    streams: StreamDecoder,
    /// The streams of market and of identity data, if they were compressed.
    stream_buffers: [Vec<u8>; 2],
    event_times: Vec<u64>,
    /// Index of each row's tape among those of the part.
    tape_indexes: Vec<u64>,
    venues: Vec<u64>,
    values: Vec<u64>,
    /// Values of the column before the one at hand.
    before: Vec<u64>,
    columns: [Vec<u64>; SPECIAL_MAX],
    starts: Vec<u32>,
    row_is_kept: Vec<bool>,
    templates: Vec<Vec<u8>>,
    /// The rows of the layout at hand: their indexes in the vector, and where their frames start.
    own_rows: Vec<u32>,
    own_starts: Vec<u32>,
    /// Bytes of a row of a template, of market and of identity data.
    row_tails: [Vec<u8>; 2],
    /// Market bytes of each row.
    market_bytes: Vec<u64>,
}

/// Columns beside cells and streams, in all classes.
const SPECIAL_MAX: usize = 9;
/// Their places among the columns that are open.
const ORDINAL: usize = 0;
const LAYOUT_INDEX: usize = 1;
const MARKET_BYTES: usize = 2;
const MARKET_TEMPLATE: usize = 3;
const LINES: usize = 4;
const IDENTITY_BYTES: usize = 5;
const IDENTITY_TEMPLATE: usize = 6;
const BEHIND: usize = 7;
const FLAGS: usize = 8;
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
        let mut stream_buffers = std::mem::take(&mut self.stream_buffers);
        let memory = (&mut tables, &mut self.streams, &mut stream_buffers);
        let result = open(block, head, memory, &mut columns)
            .and_then(|()| self.rows(block, head, &mut columns, wanted, batch));
        tables.extend(columns.into_columns().map(|column| column.chunk.into_table()));
        (self.tables, self.stream_buffers) = (tables, stream_buffers);
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
        let mut columns = OpenColumns::default();
        let memory = (&mut self.tables, &mut self.streams, &mut self.stream_buffers);
        open(block, head, memory, &mut columns)?;
        for layout in &mut columns.layouts {
            let mut rows_left = layout.rows;
            let Some(column) = layout.venues() else { continue };
            while rows_left > 0 {
                let n = rows_left.min(VECTOR);
                rows_left -= n;
                self.values.resize(n, 0);
                column.next(&mut self.values, PredictorValues::default())?;
                venues.extend(self.values.iter().map(|venue| *venue as u16));
            }
        }
        Ok(!columns.market_tail.is_empty() || !columns.market_templates.is_empty())
    }

    fn rows(
        &mut self,
        block: &OpenBlock<'_>,
        head: &BlockHeader,
        columns: &mut OpenColumns<'_>,
        wanted: &RowFilter,
        batch: &mut FrameBatch,
    ) -> Result<(), BlockFault> {
        let is_whole = block.is_whole();
        self.make_templates(columns);
        let OpenColumns {
            special_columns: special,
            tape_column,
            shared_columns: shared,
            layouts,
            market_tail,
            identity_tail,
            market_templates,
            identity_templates,
        } = columns;
        let (market_tail, identity_tail) = (*market_tail, *identity_tail);
        let tape_index = head.single_tape().unwrap_or_default();
        let (mut market_at, mut identity_at) = (0, 0);
        let mut firsts = std::mem::take(&mut self.columns);
        let mut raw_left = head.raw_bytes as usize;
        let mut left = head.rows as usize;
        while left > 0 {
            let n = left.min(VECTOR);
            left -= n;
            for values in &mut firsts {
                values.resize(n, 0);
            }
            let [ordinals, others @ ..] = &mut firsts;
            let [ordinal_column, other_columns @ ..] = &mut special[..] else {
                return Err(BlockFault { offset: START, reason: "a block without ordinals" });
            };
            ordinal_column.next(ordinals, PredictorValues::default())?;
            for (column, values) in other_columns.iter_mut().zip(others) {
                column.next(values, PredictorValues::of_vector(ordinals))?;
            }
            self.tape_indexes.clear();
            self.tape_indexes.resize(n, tape_index.into());
            if let Some(column) = tape_column {
                column.next(&mut self.tape_indexes, PredictorValues::default())?;
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
            self.market_bytes.clear();
            for (stream_bytes, number) in firsts[MARKET_BYTES].iter().zip(&firsts[MARKET_TEMPLATE]) {
                let row_bytes = market_templates.row_bytes(*number, *stream_bytes);
                self.market_bytes.push(row_bytes.map_err(|reason| special[MARKET_TEMPLATE].fault(reason))?);
            }
            if is_whole {
                for (stream_bytes, number) in firsts[IDENTITY_BYTES].iter().zip(&firsts[IDENTITY_TEMPLATE]) {
                    let row_bytes = identity_templates.row_bytes(*number, *stream_bytes);
                    row_bytes.map_err(|reason| special[IDENTITY_TEMPLATE].fault(reason))?;
                }
            }
            for ((lines, market), index) in
                firsts[LINES].iter().zip(&self.market_bytes).zip(&firsts[LAYOUT_INDEX])
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
                (MARKET_BYTES, market_tail.len() - market_at),
                (IDENTITY_BYTES, identity_tail.len() - identity_at),
            ];
            for (column, left) in &tails[..if is_whole { 2 } else { 1 }] {
                if sum(&firsts[*column]).is_none_or(|sum| sum > *left as u64) {
                    return Err(special[*column].fault("tails that end before their rows do"));
                }
            }
            if !self.choose_rows(shared, layouts, &firsts, wanted)? {
                for column in shared.iter_mut().filter(|column| column.column_number != TS_EVENT) {
                    column.skip_values(n, &[])?;
                }
                for (index, layout) in layouts.iter_mut().enumerate() {
                    let own_rows = count_of(&firsts[LAYOUT_INDEX], index);
                    let has_venue = wanted.venue.is_some() && layout.plan.has_venue;
                    for number in 0..layout.columns.len() {
                        let (before, column) = with_before(&mut layout.columns, number);
                        if !(has_venue && column.column_number == VENUE) {
                            column.skip_values(own_rows, before)?;
                        }
                    }
                }
                market_at += firsts[MARKET_BYTES].iter().sum::<u64>() as usize;
                market_templates.skip_vector(&firsts[MARKET_TEMPLATE])?;
                if is_whole {
                    identity_templates.skip_vector(&firsts[IDENTITY_TEMPLATE])?;
                    identity_at += firsts[IDENTITY_BYTES].iter().sum::<u64>() as usize;
                }
                continue;
            }
            let (base, first_key) = (batch.arena.len(), batch.keys.len());
            self.scatter_cells(shared, layouts, &firsts, total, wanted, &mut batch.arena)?;
            market_templates.read_vector(&firsts[MARKET_TEMPLATE])?;
            if is_whole {
                identity_templates.read_vector(&firsts[IDENTITY_TEMPLATE])?;
            }
            let [market_row, identity_row] = &mut self.row_tails;
            let frames = &mut batch.arena[base..];
            for r in 0..n {
                let layout = layouts[firsts[LAYOUT_INDEX][r] as usize].plan;
                let frame_start = self.starts[r] as usize;
                let frame_end = self.starts.get(r + 1).map_or(total, |next| *next as usize);
                let mut market = &market_tail[market_at..][..firsts[MARKET_BYTES][r] as usize];
                market_at += market.len();
                if firsts[MARKET_TEMPLATE][r] > 0 {
                    market_templates.write_row(firsts[MARKET_TEMPLATE][r], market_row);
                    market = market_row;
                }
                let (mut identity, mut position, mut bits) = (&[][..], Position(0), 0);
                if is_whole {
                    identity = &identity_tail[identity_at..][..firsts[IDENTITY_BYTES][r] as usize];
                    identity_at += identity.len();
                    if firsts[IDENTITY_TEMPLATE][r] > 0 {
                        identity_templates.write_row(firsts[IDENTITY_TEMPLATE][r], identity_row);
                        identity = identity_row;
                    }
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
                    return Err(special[IDENTITY_BYTES].fault(parts_reason));
                }
                if self.row_is_kept[r]
                    && wanted.listed.as_ref().is_none_or(|list| layout.lists_instrument(frame, list))
                {
                    batch.keys.push(FrameKey {
                        ts: UnixNanos(self.event_times[r] as i64),
                        tape_rank: self.tape_indexes[r] as u32,
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
        let is_read = market_at == market_tail.len()
            && (!is_whole || (identity_at == identity_tail.len() && raw_left == 0));
        if !is_read {
            return Err(BlockFault { offset: START, reason: "less than the block says it holds" });
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
        shared[0].next(&mut self.event_times, PredictorValues::of_vector(&firsts[ORDINAL]))?;
        self.row_is_kept.clear();
        let is_in_time = |ts: &u64| (wanted.from..=wanted.to).contains(&UnixNanos(*ts as i64));
        self.row_is_kept.extend(self.event_times.iter().map(is_in_time));
        if !wanted.ordinals.is_empty() {
            let (mut last_tape, mut range) = (None, 0..=0);
            let rows = self.row_is_kept.iter_mut().zip(&firsts[ORDINAL]).zip(&self.tape_indexes);
            for ((is_kept, ordinal), tape_index) in rows {
                if last_tape != Some(*tape_index) {
                    let reason = "a row of a tape that its part does not have";
                    let ordinals = wanted.ordinals_of(*tape_index);
                    let (first, last) = ordinals.ok_or(BlockFault { offset: START, reason })?;
                    (last_tape, range) = (Some(*tape_index), first..=last);
                }
                *is_kept &= range.contains(ordinal);
            }
        }
        if let Some(venue) = wanted.venue {
            self.venues.resize(n, 0);
            for (index, layout) in layouts.iter_mut().enumerate() {
                let own_rows = || (0..n).filter(|r| firsts[LAYOUT_INDEX][*r] == index as u64);
                let Some(column) = layout.venues() else {
                    own_rows().for_each(|r| self.row_is_kept[r] = false);
                    continue;
                };
                self.values.resize(count_of(&firsts[LAYOUT_INDEX], index), 0);
                column.next(&mut self.values, PredictorValues::default())?;
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
        firsts: &[Vec<u64>; SPECIAL_MAX],
        total: usize,
        wanted: &RowFilter,
        arena: &mut Vec<u8>,
    ) -> Result<(), BlockFault> {
        let (layout_indexes, ordinals) =
            (&firsts[LAYOUT_INDEX], PredictorValues::of_vector(&firsts[ORDINAL]));
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
                    column.skip_values(n, &[])?;
                    continue;
                }
                _ => {
                    self.values.resize(n, 0);
                    column.next(&mut self.values, ordinals)?;
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
            for number in 0..layout.columns.len() {
                let is_predictor =
                    layout.columns.get(number + 1).is_some_and(|next| next.chunk.is_predicted());
                let (buffer, column) = with_before(&mut layout.columns, number);
                std::mem::swap(&mut self.values, &mut self.before);
                self.values.resize(starts.len(), 0);
                if column.column_number == VENUE && wanted.venue.is_some() && layout.plan.has_venue {
                    if is_single {
                        self.values.copy_from_slice(&self.venues);
                    } else {
                        let own_venues = self.own_rows.iter().map(|r| self.venues[*r as usize]);
                        self.values.iter_mut().zip(own_venues).for_each(|(value, venue)| *value = venue);
                    }
                } else if let Some(constant) = column.chunk.constant() {
                    column.skip_values(starts.len(), buffer)?;
                    if is_predictor {
                        self.values.fill(constant);
                    }
                    continue;
                } else {
                    column.next(&mut self.values, PredictorValues { values: &self.before, buffer })?;
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

/// Returns the column with this index, and the buffer of the one before it.
fn with_before<'c, 'a>(
    columns: &'c mut [BlockColumn<'a>],
    index: usize,
) -> (&'c [u64], &'c mut BlockColumn<'a>) {
    let (before, rest) = columns.split_at_mut(index);
    (before.last().map_or(&[][..], |before| before.buffer()), &mut rest[0])
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

#[cfg(test)]
mod tests;
