//! Rows between tape and blocks: gathered in memory, sorted, and kept in runs on disk while they are too many.
//!
//! ```text
//! tape ─▶ rows in memory ──full──▶ run on disk (sorted, sealed, without a name)
//!              │                        │
//!              └── the last ones ───────┴──▶ merge ─▶ groups in order ─▶ blocks
//! ```
//!
//! A group is the rows of a day, schema and instrument. Its order is event time, ties in the order of the tapes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::FxHashMap;
use unitape_model::InstrumentId;

use crate::blocks::BlockWriter;
use crate::day::Day;
use crate::error::{Error, Result};
use crate::frames::{BlockRows, FrameArena, FrameRow, SealRow};
use crate::runs::{CHUNK_BYTES, Run, RunReader, RunSealer};
use crate::schema::TickSchema;

/// Bytes that a row takes beside its frame: itself, and its place in the order.
const ROW_BYTES: usize = size_of::<FrameRow>() + size_of::<u32>();
/// Bytes that a group takes.
const GROUP_BYTES: usize = 64;

/// The rows that share blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupKey {
    pub day: Day,
    pub schema: TickSchema,
    pub instrument: InstrumentId,
}

/// Gathers the rows of a seal within a budget of memory.
#[derive(Debug)]
pub(crate) struct RowGatherer<'a> {
    /// Runs lie beside the store's files.
    store_dir: &'a Path,
    /// Bytes of rows that are kept in memory.
    memory_bytes: usize,
    /// Runs that are merged at once.
    fan_in: usize,
    group_numbers: FxHashMap<GroupKey, u32>,
    groups: Vec<GroupKey>,
    arena: FrameArena,
    rows: Vec<FrameRow>,
    order: Vec<u32>,
    weight: usize,
    run_sealer: RunSealer<'a>,
    runs: Vec<Run>,
    stop: Option<&'a AtomicBool>,
}

impl<'a> RowGatherer<'a> {
    /// Gathers rows for a seal that may take `budget_bytes` of memory: a half is for rows, a quarter for the buffers of
    /// runs, the rest for a block while it is made.
    pub fn new(
        store_dir: &'a Path,
        budget_bytes: usize,
        run_sealer: RunSealer<'a>,
        stop: Option<&'a AtomicBool>,
    ) -> Self {
        Self {
            store_dir,
            memory_bytes: budget_bytes / 2,
            fan_in: (budget_bytes / 4 / CHUNK_BYTES).clamp(2, 256),
            group_numbers: FxHashMap::default(),
            groups: Vec::new(),
            arena: FrameArena::default(),
            rows: Vec::new(),
            order: Vec::new(),
            weight: 0,
            run_sealer,
            runs: Vec::new(),
            stop,
        }
    }

    /// Takes a row; writes a run first when the memory is full. Rows of one time must come in the order of the tapes.
    #[inline]
    pub fn push(&mut self, key: GroupKey, row: &SealRow<'_>) -> Result<()> {
        let frame_bytes = row.frame.len();
        if self.weight + frame_bytes + ROW_BYTES + GROUP_BYTES > self.memory_bytes && self.weight > 0 {
            self.write_run()?;
        }
        let group = match self.group_numbers.get(&key) {
            Some(group) => *group,
            None => {
                self.weight += GROUP_BYTES;
                self.groups.push(key);
                let number = self.groups.len() as u32 - 1;
                self.group_numbers.insert(key, number);
                number
            }
        };
        self.rows.push(FrameRow::new(row, group, &mut self.arena));
        self.weight += frame_bytes + ROW_BYTES;
        Ok(())
    }

    /// Writes all rows in their order.
    pub fn finish(&mut self, writer: &mut BlockWriter<'_>) -> Result<()> {
        if self.runs.is_empty() {
            let stop = self.stop;
            let Self { groups, arena, rows, order, .. } = self;
            return for_each_group(groups, rows, order, |key, rows, order| {
                check_stopped(stop)?;
                writer.write_group(key, BlockRows { arena, rows, order })
            });
        }
        self.write_run()?;
        self.arena.release();
        (self.rows, self.order) = (Vec::new(), Vec::new());
        let runs = std::mem::take(&mut self.runs);
        merge_runs(&self.run_sealer, runs, self.stop, &mut |key, row| writer.push(key, row))?;
        writer.end_group()
    }

    /// Writes the rows in memory as a run.
    #[cold]
    fn write_run(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        if self.runs.len() == self.fan_in {
            let mut writer = self.run_sealer.begin_run(self.store_dir)?;
            let runs = std::mem::take(&mut self.runs);
            merge_runs(&self.run_sealer, runs, self.stop, &mut |key, row| {
                writer.push(&self.run_sealer, key, row)
            })?;
            self.runs.push(writer.finish(&self.run_sealer)?);
        }
        let mut writer = self.run_sealer.begin_run(self.store_dir)?;
        let Self { groups, arena, rows, order, run_sealer, stop, .. } = self;
        for_each_group(groups, rows, order, |key, rows, order| {
            check_stopped(*stop)?;
            order
                .iter()
                .try_for_each(|index| writer.push(run_sealer, key, &rows[*index as usize].seal_row(arena)))
        })?;
        self.runs.push(writer.finish(&self.run_sealer)?);
        self.group_numbers.clear();
        self.groups.clear();
        self.arena.clear();
        self.rows.clear();
        self.weight = 0;
        Ok(())
    }
}

fn check_stopped(stop: Option<&AtomicBool>) -> Result<()> {
    if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) { Err(Error::Stopped) } else { Ok(()) }
}

/// Passes the rows of each group to `write`, groups by key, with the order of the group's rows.
fn for_each_group(
    groups: &[GroupKey],
    rows: &[FrameRow],
    order: &mut Vec<u32>,
    mut write: impl FnMut(GroupKey, &[FrameRow], &[u32]) -> Result<()>,
) -> Result<()> {
    let mut by_key: Vec<u32> = (0..groups.len() as u32).collect();
    by_key.sort_unstable_by_key(|group| groups[*group as usize]);
    // The place of each group's next row; rows come in the order of the tape.
    let mut places = vec![0usize; groups.len()];
    rows.iter().for_each(|row| places[row.group as usize] += 1);
    let mut end = 0;
    for group in &by_key {
        let place = &mut places[*group as usize];
        (end, *place) = (end + *place, end);
    }
    order.clear();
    order.resize(rows.len(), 0);
    for (index, row) in rows.iter().enumerate() {
        let place = &mut places[row.group as usize];
        order[*place] = index as u32;
        *place += 1;
    }
    let mut start = 0;
    for group in by_key {
        let group_order = &mut order[start..places[group as usize]];
        start = places[group as usize];
        let ts = |index: &u32| rows[*index as usize].ts;
        if !group_order.is_sorted_by_key(ts) {
            group_order.sort_by_key(ts);
        }
        write(groups[group as usize], rows, group_order)?;
    }
    Ok(())
}

/// Passes the rows of all runs to `write`, in their order.
fn merge_runs(
    sealer: &RunSealer<'_>,
    runs: Vec<Run>,
    stop: Option<&AtomicBool>,
    write: &mut dyn FnMut(GroupKey, &SealRow<'_>) -> Result<()>,
) -> Result<()> {
    let mut readers: Vec<RunReader> = runs.into_iter().map(Run::into_reader).collect();
    let mut heads = BinaryHeap::with_capacity(readers.len());
    for (index, reader) in readers.iter_mut().enumerate() {
        heads.extend(reader.advance(sealer)?.map(|place| Reverse((place, index))));
    }
    let mut rows = 0u64;
    while let Some(Reverse((place, index))) = heads.pop() {
        if rows.is_multiple_of(4096) {
            check_stopped(stop)?;
        }
        rows += 1;
        let reader = &mut readers[index];
        write(place.group, &reader.row(&place))?;
        heads.extend(reader.advance(sealer)?.map(|place| Reverse((place, index))));
    }
    Ok(())
}
