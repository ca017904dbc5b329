//! From a block back to frames, a vector of rows at a time.

use std::ops::Range;

use unitape_model::frame::LINE;
use unitape_model::schema::at;
use unitape_model::{EventSchema, FrameHeader, InstrumentId, Position, UnixNanos};

use crate::bits::PAD;
use crate::block::{BlockHeader, ENTRY, HEADER, special};
use crate::cells::EventKindLayout;
use crate::column::{ColumnReader, VECTOR};

/// A filter on the rows of a block. The scan has checked the conditions on whole blocks before.
#[derive(Clone, Debug)]
pub(crate) struct RowFilter {
    /// First and last event time.
    pub from: UnixNanos,
    pub to: UnixNanos,
    /// Token of the venue.
    pub venue: Option<u16>,
    /// Tokens of instruments, one of which a list of them must have.
    pub listed: Option<Vec<InstrumentId>>,
}

/// A frame of a batch, and its place on the tape.
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
    sorted: Vec<FrameKey>,
}

impl FrameBatch {
    pub fn clear(&mut self) {
        self.arena.clear();
        self.keys.clear();
    }

    /// Makes room for frames of `bytes` bytes in all, and for the keys of `rows`.
    pub fn reserve(&mut self, bytes: usize, rows: usize) {
        self.arena.reserve(bytes);
        self.keys.reserve(rows);
    }

    /// Puts the keys into the order of the tape.
    pub fn sort(&mut self) {
        if self.keys.is_sorted_by_key(|k| k.ordinal) {
            return;
        }
        let ordinals = || self.keys.iter().map(|k| k.ordinal);
        let (low, high) = (ordinals().min().unwrap_or(0), ordinals().max().unwrap_or(0));
        // Most of a stretch of tape is wanted, mostly: then each has a place of its own.
        if (high - low) / 4 < self.keys.len() as u64 {
            self.slots.clear();
            self.slots.resize((high - low) as usize + 1, u32::MAX);
            let mut apart = true;
            for (i, k) in self.keys.iter().enumerate() {
                let slot = &mut self.slots[(k.ordinal - low) as usize];
                apart &= *slot == u32::MAX;
                *slot = i as u32;
            }
            // Two events with one ordinal are a damaged store, and no reason to lose one of them.
            if apart {
                self.sorted.clear();
                let there = self.slots.iter().filter(|s| **s != u32::MAX);
                self.sorted.extend(there.map(|s| self.keys[*s as usize]));
                std::mem::swap(&mut self.keys, &mut self.sorted);
                return;
            }
        }
        self.keys.sort_by_key(|k| k.ordinal);
    }

    /// The frame of a key.
    #[inline]
    pub fn frame(&self, key: &FrameKey) -> &[u8] {
        let start = key.line as usize * LINE;
        let length = FrameHeader::read(&self.arena[start..]).len_bytes();
        &self.arena[start..start + length]
    }
}

/// A fault of a block, and the byte of the block where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockFault {
    pub offset: usize,
    pub what: &'static str,
}

/// Decodes blocks; keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct BlockDecoder {
    tables: Vec<Vec<u64>>,
    times: Vec<u64>,
    venues: Vec<u64>,
    values: Vec<u64>,
    columns: [Vec<u64>; 5],
    starts: Vec<u32>,
    keep: Vec<bool>,
    template: Vec<u8>,
}

/// A column of a block that is being read.
struct BlockColumn<'a> {
    number: u16,
    width: u8,
    chunk: ColumnReader<'a>,
    /// Where its chunk begins, for errors.
    start: usize,
}

impl BlockColumn<'_> {
    fn next(&mut self, out: &mut [u64]) -> Result<(), BlockFault> {
        self.chunk.next(out).map_err(|what| BlockFault { offset: self.start, what })
    }

    fn skip(&mut self, n: usize) -> Result<(), BlockFault> {
        self.chunk.skip(n).map_err(|what| BlockFault { offset: self.start, what })
    }
}

impl BlockDecoder {
    /// Appends the wanted rows of the block to `batch`. `bytes` is the block, with [`PAD`] bytes after it. On an
    /// error the batch is as it was.
    // Within the loop of a scan it costs a tenth more instructions.
    #[inline(never)]
    pub fn decode(
        &mut self,
        bytes: &[u8],
        head: &BlockHeader,
        wanted: &RowFilter,
        batch: &mut FrameBatch,
    ) -> Result<(), BlockFault> {
        if wanted.venue.is_some() && !head.layout().has_venue {
            return Ok(());
        }
        let (arena, keys) = (batch.arena.len(), batch.keys.len());
        let mut tables = std::mem::take(&mut self.tables);
        let mut columns = Vec::with_capacity(usize::from(head.columns));
        let result = open(bytes, head, &mut tables, &mut columns)
            .and_then(|tail| self.rows(bytes, head, &mut columns, tail, wanted, batch));
        tables.extend(columns.into_iter().map(|c| c.chunk.into_table()));
        self.tables = tables;
        if result.is_err() {
            batch.arena.truncate(arena);
            batch.keys.truncate(keys);
        }
        result
    }

    fn rows(
        &mut self,
        bytes: &[u8],
        head: &BlockHeader,
        columns: &mut [BlockColumn<'_>],
        tail: Range<usize>,
        wanted: &RowFilter,
        batch: &mut FrameBatch,
    ) -> Result<(), BlockFault> {
        let plan = head.layout();
        let (special, cells) = columns.split_at_mut(special::ALL.len() - 1);
        self.make_template(plan, head, cells);
        let mut firsts = std::mem::take(&mut self.columns);
        let mut tail_at = tail.start;
        let mut raw_left = head.raw_bytes as usize;
        let (mut left, limit) = (head.rows as usize, LINE * usize::from(u16::MAX) - plan.fixed);
        while left > 0 {
            let n = left.min(VECTOR);
            left -= n;
            for (column, values) in special.iter_mut().zip(&mut firsts) {
                values.resize(n, 0);
                column.next(values)?;
            }
            // The place of each frame, and that the block holds no more than it says.
            self.starts.clear();
            let mut total = 0;
            let [ordinals, behind, bits, lines, tails] = &firsts;
            for (extra, tail) in lines.iter().zip(tails) {
                self.starts.push(total as u32);
                let extra =
                    usize::try_from(*extra).ok().and_then(|l| l.checked_mul(LINE)).filter(|e| *e <= limit);
                let Some(extra) = extra.filter(|e| *tail <= *e as u64) else {
                    return Err(BlockFault {
                        offset: special[3].start,
                        what: "a frame of a length that none has",
                    });
                };
                total += plan.fixed + extra;
                if total > raw_left {
                    return Err(BlockFault {
                        offset: special[3].start,
                        what: "more than the block says it holds",
                    });
                }
            }
            raw_left -= total;
            let tail_bytes = tails.iter().sum::<u64>() as usize;
            if tail_bytes > tail.end - tail_at {
                return Err(BlockFault { offset: tail_at, what: "tails that end before their rows do" });
            }
            if !self.choose(cells, n, wanted)? {
                for column in cells.iter_mut().filter(|c| !is_looked_at(c.number, wanted)) {
                    column.skip(n)?;
                }
                tail_at += tail_bytes;
                continue;
            }
            let base = batch.arena.len();
            let even = total == n * plan.fixed;
            if even {
                (0..n).for_each(|_| batch.arena.extend_from_slice(&self.template));
            } else {
                batch.arena.resize(base + total, 0);
                for start in &self.starts {
                    batch.arena[base + *start as usize..][..plan.fixed].copy_from_slice(&self.template);
                }
            }
            let frames = &mut batch.arena[base..];
            for column in cells.iter_mut() {
                let values = match column.number as usize {
                    at::TS_EVENT => &self.times,
                    at::VENUE if wanted.venue.is_some() && plan.has_venue => &self.venues,
                    _ if column.chunk.constant().is_some() => continue,
                    _ => {
                        self.values.resize(n, 0);
                        column.next(&mut self.values)?;
                        &self.values
                    }
                };
                let stride = if even { Some(plan.fixed) } else { None };
                scatter(frames, stride, &self.starts, column.number.into(), column.width, values);
            }
            if head.kind.has_layouts() && !are_of_layout(head, frames, &self.starts) {
                return Err(BlockFault { offset: tail_at, what: "a frame of another layout than its block" });
            }
            for r in 0..n {
                let start = self.starts[r] as usize;
                let position = Position(behind[r].wrapping_add(ordinals[r]).wrapping_mul(LINE as u64));
                let whole = (plan.fixed / LINE) as u16 + lines[r] as u16;
                let header =
                    FrameHeader::new_unstamped(head.kind as u8, bits[r] as u8, whole).with_stamp(position);
                header.write(&mut frames[start..]);
                let length = tails[r] as usize;
                frames[start + plan.fixed..][..length].copy_from_slice(&bytes[tail_at..][..length]);
                tail_at += length;
                if self.keep[r] {
                    let frame = &frames[start..start + usize::from(whole) * LINE];
                    if wanted.listed.as_ref().is_none_or(|list| plan.lists_instrument(frame, list)) {
                        let line = ((base + start) / LINE) as u32;
                        batch.keys.push(FrameKey { ordinal: ordinals[r], position, line });
                    }
                }
            }
        }
        self.columns = firsts;
        let unread = special.iter().chain(&*cells).find(|c| !c.chunk.is_at_end());
        if let Some(column) = unread {
            return Err(BlockFault { offset: column.start, what: "a chunk that is longer than its rows" });
        }
        if raw_left != 0 || tail_at != tail.end {
            return Err(BlockFault { offset: tail_at, what: "less than the block says it holds" });
        }
        Ok(())
    }

    /// Reads the columns that rows are chosen by; false when none of the vector is wanted.
    fn choose(
        &mut self,
        cells: &mut [BlockColumn<'_>],
        n: usize,
        wanted: &RowFilter,
    ) -> Result<bool, BlockFault> {
        self.keep.clear();
        for column in cells.iter_mut().filter(|c| is_looked_at(c.number, wanted)) {
            let values = if column.number == VENUE { &mut self.venues } else { &mut self.times };
            values.resize(n, 0);
            column.next(values)?;
        }
        let within = |t: &u64| (wanted.from..=wanted.to).contains(&UnixNanos(*t as i64));
        self.keep.extend(self.times[..n].iter().map(within));
        if let Some(venue) = wanted.venue {
            for (keep, v) in self.keep.iter_mut().zip(&self.venues) {
                *keep &= *v == u64::from(venue);
            }
        }
        Ok(self.keep.contains(&true))
    }

    /// The fixed part with what all rows have in common.
    fn make_template(&mut self, plan: &EventKindLayout, head: &BlockHeader, cells: &[BlockColumn<'_>]) {
        self.template.clear();
        self.template.resize(plan.fixed, 0);
        FrameHeader::new_unstamped(head.kind as u8, 0, 0).write(&mut self.template);
        for column in cells {
            if let Some(v) = column.chunk.constant() {
                let (at, n) = (usize::from(column.number), usize::from(column.width));
                self.template[at..at + n].copy_from_slice(&v.to_le_bytes()[..n]);
            }
        }
    }
}

const VENUE: u16 = at::VENUE as u16;

fn is_looked_at(column: u16, wanted: &RowFilter) -> bool {
    usize::from(column) == at::TS_EVENT || (column == VENUE && wanted.venue.is_some())
}

/// Writes a column into its place in each frame.
fn scatter(frames: &mut [u8], stride: Option<usize>, starts: &[u32], at: usize, width: u8, values: &[u64]) {
    fn put<const N: usize>(
        frames: &mut [u8],
        stride: Option<usize>,
        starts: &[u32],
        at: usize,
        values: &[u64],
    ) {
        if let Some(stride) = stride {
            for (frame, v) in frames.chunks_exact_mut(stride).zip(values) {
                frame[at..at + N].copy_from_slice(&v.to_le_bytes()[..N]);
            }
        } else {
            for (start, v) in starts.iter().zip(values) {
                let at = *start as usize + at;
                frames[at..at + N].copy_from_slice(&v.to_le_bytes()[..N]);
            }
        }
    }
    match width {
        1 => put::<1>(frames, stride, starts, at, values),
        2 => put::<2>(frames, stride, starts, at, values),
        3 => put::<3>(frames, stride, starts, at, values),
        4 => put::<4>(frames, stride, starts, at, values),
        5 => put::<5>(frames, stride, starts, at, values),
        6 => put::<6>(frames, stride, starts, at, values),
        7 => put::<7>(frames, stride, starts, at, values),
        _ => put::<8>(frames, stride, starts, at, values),
    }
}

/// Whether the frames at `starts` say that they have the block's layout.
#[cold]
fn are_of_layout(head: &BlockHeader, frames: &[u8], starts: &[u32]) -> bool {
    starts.iter().all(|start| {
        EventSchema::for_frame(head.kind, frames[*start as usize + at::KIND_A])
            .is_some_and(|schema| schema.fixed_bytes == head.fixed_bytes)
    })
}

/// Checks the table and the checksum of each chunk and opens the columns; gives the place of the tails.
fn open<'a>(
    bytes: &'a [u8],
    head: &BlockHeader,
    tables: &mut Vec<Vec<u64>>,
    columns: &mut Vec<BlockColumn<'a>>,
) -> Result<Range<usize>, BlockFault> {
    let end = head.bytes as usize;
    if bytes.len() < end + PAD {
        return Err(BlockFault { offset: 0, what: "a block that is cut short" });
    }
    let plan = head.layout();
    let table_end = HEADER + usize::from(head.columns) * ENTRY;
    let table = bytes.get(HEADER..table_end.min(end)).unwrap_or(&[]);
    if crc32c::crc32c(table) != head.table_crc {
        return Err(BlockFault {
            offset: HEADER,
            what: "the checksum of the table of columns does not match",
        });
    }
    let (mut at, mut tail, mut cells_end) = (table_end, None, at::TS_EVENT);
    for (i, entry) in table.chunks_exact(ENTRY).enumerate() {
        let flaw = |what| BlockFault { offset: HEADER + i * ENTRY, what };
        let number = u16::from_le_bytes([entry[0], entry[1]]);
        let (width, encoding) = (entry[2], entry[3]);
        let length = u32::from_le_bytes(entry[4..8].try_into().expect("four bytes")) as usize;
        let range = at..at.saturating_add(length);
        let chunk = bytes[..end].get(range.clone()).ok_or(flaw("a chunk that leaves its block"))?;
        if crc32c::crc32c(chunk).to_le_bytes() != entry[8..] {
            return Err(BlockFault { offset: at, what: "the checksum of a chunk does not match" });
        }
        match special::ALL.get(i) {
            Some(special) if *special != number => return Err(flaw("a column that is missing")),
            Some(_) => {}
            // Cells must tile the fixed part, so that no byte is written twice or left out.
            None if usize::from(number) != cells_end => return Err(flaw("a column that does not follow")),
            None => cells_end += usize::from(width),
        }
        if number == special::TAIL {
            tail = Some(range.clone());
        } else {
            let memory = tables.pop().unwrap_or_default();
            let chunk = ColumnReader::open(bytes, range.clone(), encoding, width, memory);
            columns.push(BlockColumn { number, width, chunk: chunk.map_err(flaw)?, start: at });
        }
        at = range.end;
    }
    let first = columns.get(special::ALL.len() - 1);
    let has_venue = columns.iter().any(|c| c.number == VENUE && c.width == 2);
    let sound = first.is_some_and(|c| usize::from(c.number) == at::TS_EVENT && c.width == 8)
        && (has_venue || !plan.has_venue);
    match tail.filter(|_| at == end && cells_end == plan.fixed && sound) {
        Some(tail) => Ok(tail),
        None => Err(BlockFault { offset: HEADER, what: "a table that does not cover the frame" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockEncoder, BlockRows};
    use proptest::prelude::*;
    use unitape_model::EventKind;

    /// The slow twin: one value after the other out of each column, by its definition.
    fn naive(bytes: &[u8], head: &BlockHeader) -> Vec<(u64, u64, Vec<u8>)> {
        let (mut columns, plan) = (Vec::new(), head.layout());
        let tail = open(bytes, head, &mut Vec::new(), &mut columns).expect("a sound block");
        let mut all: Vec<(u16, u8, Vec<u64>)> = Vec::new();
        for mut c in columns {
            let mut values = vec![0; head.rows as usize];
            values.chunks_mut(VECTOR).for_each(|v| c.chunk.next(v).expect("a sound chunk"));
            all.push((c.number, c.width, values));
        }
        let mut tail = bytes[tail].iter();
        (0..head.rows as usize)
            .map(|r| {
                let of = |n: u16| all.iter().find(|c| c.0 == n).expect("a column").2[r];
                let lines = of(special::LINES) + plan.fixed as u64 / 64;
                let mut frame = vec![0; lines as usize * 64];
                for (number, width, values) in all.iter().filter(|c| c.0 < special::ORDINAL) {
                    let bytes = values[r].to_le_bytes();
                    frame[usize::from(*number)..][..usize::from(*width)]
                        .copy_from_slice(&bytes[..usize::from(*width)]);
                }
                (0..of(special::TAIL_BYTES) as usize)
                    .for_each(|i| frame[plan.fixed + i] = *tail.next().unwrap());
                let position = (of(special::BEHIND) + of(special::ORDINAL)) * 64;
                let header =
                    FrameHeader::new_unstamped(head.kind as u8, of(special::FLAGS) as u8, lines as u16);
                header.with_stamp(Position(position)).write(&mut frame);
                (of(special::ORDINAL), position, frame)
            })
            .collect()
    }

    /// Frames of any bytes: wild ones, or such that change little from row to row, as those of markets do.
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
                    let at = random() as usize % plan.fixed;
                    frame[at] = frame[at].wrapping_add(1);
                }
            }
            let extra = if random().is_multiple_of(3) { random() as usize % 4 } else { 0 };
            let some = if extra == 0 { 0 } else { random() as usize % (extra * LINE + 1) };
            frame.resize(plan.fixed + extra * LINE, 0);
            frame[plan.fixed..plan.fixed + some].iter_mut().for_each(|b| *b = random() as u8);
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

    fn block(kind: EventKind, rows: &BlockRows) -> (BlockHeader, Vec<u8>) {
        let mut bytes = Vec::new();
        let head = BlockEncoder::default().encode(
            EventSchema::for_kind(kind),
            InstrumentId(7),
            3,
            5,
            rows,
            &mut bytes,
        );
        assert_eq!(BlockHeader::decode(&bytes), Ok(head));
        bytes.resize(bytes.len() + PAD, 0);
        (head, bytes)
    }

    fn everything() -> RowFilter {
        RowFilter { from: UnixNanos(i64::MIN), to: UnixNanos(i64::MAX), venue: None, listed: None }
    }

    fn decoded(
        bytes: &[u8],
        head: &BlockHeader,
        wanted: &RowFilter,
    ) -> Result<Vec<(u64, u64, Vec<u8>)>, BlockFault> {
        let mut batch = FrameBatch::default();
        BlockDecoder::default().decode(bytes, head, wanted, &mut batch)?;
        Ok(batch.keys.iter().map(|k| (k.ordinal, k.position.0, batch.frame(k).to_vec())).collect())
    }

    fn kinds() -> impl Strategy<Value = EventKind> {
        prop::sample::select(EventKind::EVENTS.to_vec())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(120))]

        /// A sealed frame comes back with any content: padding, unknown bits, tails that end in zeros.
        #[test]
        fn rows_come_back(kind in kinds(), seed in any::<u64>(), n in prop_oneof![1usize..40, 1000usize..2100], wild in any::<bool>()) {
            let (rows, want) = rows(kind, seed, n, wild);
            let (head, bytes) = block(kind, &rows);
            prop_assert_eq!(&decoded(&bytes, &head, &everything()).unwrap(), &want);
            prop_assert_eq!(&naive(&bytes, &head), &want);
        }

        /// Rows that are left out must not shift those that are not.
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
            let got = decoded(&bytes, &head, &wanted).unwrap();
            want.retain(|(_, _, f)| (wanted.from..=wanted.to).contains(&UnixNanos(time(f))) && wanted.venue.is_none_or(|v| v == venue(f)));
            prop_assert_eq!(got, want);
        }

        /// Outside bytes: with their checksums made right, any change gives rows or an error.
        #[test]
        fn changed_blocks_are_read_or_refused(
            kind in kinds(), seed in any::<u64>(), n in 1usize..1100,
            hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in any::<prop::sample::Index>(),
        ) {
            let (rows, _) = rows(kind, seed, n, false);
            let (_, mut bytes) = block(kind, &rows);
            bytes.truncate(bytes.len() - PAD);
            for (at, byte) in hits {
                let at = at.index(bytes.len());
                bytes[at] ^= byte;
            }
            crate::check::any_block(&bytes);
            bytes.truncate(cut.index(bytes.len()));
            crate::check::any_block(&bytes);
        }
    }

    /// One bit on the disk, and a price was another one.
    #[test]
    fn no_changed_bit_goes_unnoticed() {
        let (rows, _) = rows(EventKind::Quote, 11, 300, false);
        let (head, good) = block(EventKind::Quote, &rows);
        for at in 0..good.len() - PAD {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            let head = match BlockHeader::decode(&bad) {
                Err(_) => continue,
                Ok(changed) => {
                    assert_eq!(changed, head, "byte {at}");
                    changed
                }
            };
            assert!(decoded(&bad, &head, &everything()).is_err(), "byte {at}");
        }
        assert!(decoded(&good[..good.len() - 1], &head, &everything()).is_err());
    }

    /// A header that asks for memory: refused before it is given.
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

    /// Two blocks of a damaged store claim one ordinal: neither event may vanish.
    #[test]
    fn batches_are_put_into_the_order_of_the_tape() {
        let key = |ordinal: u64, line| FrameKey { ordinal, position: Position(0), line };
        for ordinals in [&[5u64, 3, 4, 9][..], &[5, 5, 3], &[1 << 60, 0, 7], &[], &[1, 2, 3]] {
            let mut batch = FrameBatch::default();
            batch.keys.extend(ordinals.iter().enumerate().map(|(i, o)| key(*o, i as u32)));
            batch.sort();
            let mut want = ordinals.to_vec();
            want.sort_unstable();
            assert_eq!(batch.keys.iter().map(|k| k.ordinal).collect::<Vec<_>>(), want);
            let mut lines: Vec<u32> = batch.keys.iter().map(|k| k.line).collect();
            lines.sort_unstable();
            assert_eq!(lines, (0..ordinals.len() as u32).collect::<Vec<_>>());
        }
    }
}
