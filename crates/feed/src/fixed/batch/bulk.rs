//! A batch of which every record is good, of one sort, and has names that are known: no record needs a look of
//! its own, so all is done column by column.

use super::emit::{Lists, NAMES_MAX};
use super::kept::Span;
use super::names::short_id;
use super::program::{KindProgram, Program, Variant};
use super::{Lane, SLOW};
use crate::block::{Block, Ended, PROGRESS_BYTES};
use unitape_codec::fixed::LANES;
use unitape_model::schema::{RECV_NONE, SEQ_EXT, SEQ_NONE};
use unitape_model::{Dictionary, Header, LINE, flags};

/// Takes the whole batch and gives its end, or leaves all of it to be looked at record by record.
pub(super) fn all(
    kinds: &mut [Option<KindProgram>],
    lists: &Lists,
    block: &mut Block,
    bytes: &[u8],
    lanes: &[Lane],
    (source, known): (u32, &Dictionary),
    found: &mut Found,
) -> Option<usize> {
    let (first, last) = (lanes.first()?, lanes.last()?);
    let (start, end) = (block.base + u64::from(first.start), block.base + u64::from(last.end));
    // A mark of progress would stand within.
    if first.kind == SLOW || start / PROGRESS_BYTES != end / PROGRESS_BYTES {
        return None;
    }
    let kind = kinds.get_mut(usize::from(first.kind))?.as_mut()?;
    let starts = &lists.starts[usize::from(first.kind)][..];
    let whole = u64::MAX >> (LANES - lanes.len());
    if starts.len() != lanes.len() || kind.by_byte.is_some() || kind.good != whole {
        return None;
    }
    let KindProgram { columns, ts, sequence, variants, .. } = kind;
    let Some(Variant::Event(program)) = variants.first_mut() else { return None };
    let mut sequences = [SEQ_NONE; LANES];
    if let Some(place) = *sequence {
        let (values, none) = (columns.values(place), columns.none(place));
        let beyond =
            values[..lanes.len()].iter().fold(false, |any, n| any | (*n as u64 >= u64::from(SEQ_EXT)));
        if beyond || none & whole != 0 {
            return None;
        }
        for (sequence, value) in sequences.iter_mut().zip(values) {
            *sequence = *value as u32;
        }
    }
    for (name, ids) in program.names.iter_mut().zip(&mut found.ids) {
        if name.find_all(bytes, starts, known, ids) != 0 {
            return None;
        }
    }
    if let Some(kept) = &program.kept
        && kept.find_all(bytes, starts, &mut found.extensions) != 0
    {
        return None;
    }
    let times = columns.values(*ts);
    let first = block.arena.len();
    if program.kept.is_none() {
        program.even_frames(&mut block.arena, lanes, (source, block.base), (times, &sequences), found);
        let fixed = program.template.len();
        let frames = (0..lanes.len()).map(|lane| (lane, first + lane * fixed));
        for put in &program.puts {
            put.store(&mut block.arena, frames.clone(), bytes, starts);
        }
        let end_of = |i: usize| (first + (i + 1) * fixed) as u32;
        end_messages(block, lanes, times, end_of);
        return Some(last.end as usize);
    }
    program.frames_of(&mut block.arena, lanes, (source, block.base), (times, &sequences), found);
    let frames = program.frames.iter().map(|(lane, at)| (usize::from(*lane), *at as usize));
    for put in &program.puts {
        put.store(&mut block.arena, frames.clone(), bytes, starts);
    }
    let arena_end = block.arena.len() as u32;
    let ends = program.frames.iter().skip(1).map(|(_, frame)| *frame).chain([arena_end]);
    // An array's length is known, a chain's is not.
    let mut frame_ends = [0; LANES];
    frame_ends.iter_mut().zip(ends).for_each(|(to, end)| *to = end);
    end_messages(block, lanes, times, |i| frame_ends[i % LANES]);
    program.frames.clear();
    Some(last.end as usize)
}

/// Notes the messages of all lanes; `end_of` tells where their frames end.
#[inline]
fn end_messages(block: &mut Block, lanes: &[Lane], times: &[i64; LANES], end_of: impl Fn(usize) -> u32) {
    let base = block.base;
    block.end_messages(lanes.iter().zip(times).enumerate().map(|(i, (lane, ts))| Ended {
        offset: base + u64::from(lane.start),
        ts: *ts,
        end: end_of(i),
        length: lane.length,
    }));
}

/// What was looked up, by lane; of the batch in hand.
#[derive(Debug)]
pub(super) struct Found {
    ids: [[u32; LANES]; NAMES_MAX],
    extensions: [Span; LANES],
}

impl Default for Found {
    fn default() -> Self {
        Self { ids: [[0; LANES]; NAMES_MAX], extensions: [(0, 0); LANES] }
    }
}

/// What stands in a frame before the ids, in the order of `unitape_model::schema`.
#[inline]
fn head(header: Header, ts: i64, (source, offset): (u32, u64), sequence: u32) -> [u64; 4] {
    [
        header.0,
        ts as u64,
        u64::from(source) | u64::from(offset as u32) << 32,
        u64::from(RECV_NONE as u32) | u64::from(sequence) << 32,
    ]
}

impl Program {
    /// Frames of all lanes without extensions, but for what is put into them.
    #[inline]
    fn even_frames(
        &mut self,
        arena: &mut Vec<u8>,
        lanes: &[Lane],
        (source, base): (u32, u64),
        (times, sequences): (&[i64; LANES], &[u32; LANES]),
        found: &Found,
    ) {
        let header = Header::read(&self.template);
        let (fixed, start) = (self.template.len(), arena.len());
        arena.extend_from_slice(&self.templates[..lanes.len() * fixed]);
        let frames = &mut arena[start..];
        let lanes = lanes.iter().zip(times.iter().zip(sequences));
        for (frame, (lane, (ts, sequence))) in frames.chunks_exact_mut(fixed).zip(lanes) {
            let head = head(header, *ts, (source, base + u64::from(lane.start)), *sequence);
            for (to, word) in frame.as_chunks_mut::<8>().0.iter_mut().zip(head) {
                *to = word.to_le_bytes();
            }
        }
        for (name, ids) in self.names.iter().zip(&found.ids) {
            for (frame, id) in frames.chunks_exact_mut(fixed).zip(ids) {
                if name.short {
                    frame[name.at..name.at + 2].copy_from_slice(&short_id(*id).to_le_bytes());
                } else {
                    frame[name.at..name.at + 4].copy_from_slice(&id.to_le_bytes());
                }
            }
        }
    }

    /// Frames of all lanes with their extensions, but for what is put into them.
    #[inline]
    fn frames_of(
        &mut self,
        arena: &mut Vec<u8>,
        lanes: &[Lane],
        (source, base): (u32, u64),
        (times, sequences): (&[i64; LANES], &[u32; LANES]),
        found: &Found,
    ) {
        let header = Header::read(&self.template);
        let fixed = self.template.len();
        let extended: usize = found.extensions.iter().map(|(_, length)| *length as usize).sum();
        arena.reserve(lanes.len() * fixed + extended);
        for (i, lane) in lanes.iter().enumerate() {
            let i = i % LANES;
            let frame = arena.len();
            for line in self.template.as_chunks::<LINE>().0 {
                arena.extend_from_slice(line);
            }
            let extension = found.extensions[i];
            let header = match extension.1 {
                0 => header,
                length => {
                    let lines = ((fixed + length as usize) / LINE) as u16;
                    Header::unstamped(header.kind(), header.flags() | flags::EXT, lines)
                }
            };
            let head = head(header, times[i], (source, base + u64::from(lane.start)), sequences[i]);
            for (to, word) in arena[frame..frame + 32].as_chunks_mut::<8>().0.iter_mut().zip(head) {
                *to = word.to_le_bytes();
            }
            if let Some(kept) = &self.kept {
                for line in kept.text(extension).as_chunks::<LINE>().0 {
                    arena.extend_from_slice(line);
                }
            }
            self.frames.push((i as u8, frame as u32));
        }
        for (name, ids) in self.names.iter().zip(&found.ids) {
            for (&(_, frame), id) in self.frames.iter().zip(ids) {
                let at = frame as usize + name.at;
                if name.short {
                    arena[at..at + 2].copy_from_slice(&short_id(*id).to_le_bytes());
                } else {
                    arena[at..at + 4].copy_from_slice(&id.to_le_bytes());
                }
            }
        }
    }
}
