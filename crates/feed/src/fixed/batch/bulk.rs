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
    let mut found = Found { ids: [[0; LANES]; NAMES_MAX], extensions: [(0, 0); LANES] };
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
    program.frames_of(&mut block.arena, lanes, (source, block.base), (times, &sequences), &found);
    for put in &program.puts {
        put.store(&mut block.arena, &program.frames, bytes, starts);
    }
    let arena_end = block.arena.len() as u32;
    let base = block.base;
    let ends = program.frames.iter().skip(1).map(|(_, frame)| *frame).chain([arena_end]);
    // An array's length is known, a chain's is not.
    let mut frame_ends = [0; LANES];
    frame_ends.iter_mut().zip(ends).for_each(|(to, end)| *to = end);
    block.end_messages(lanes.iter().enumerate().map(|(i, lane)| Ended {
        offset: base + u64::from(lane.start),
        ts: times[i % LANES],
        end: frame_ends[i % LANES],
        length: lane.length,
    }));
    program.frames.clear();
    Some(last.end as usize)
}

/// What was looked up, by lane.
struct Found {
    ids: [[u32; LANES]; NAMES_MAX],
    extensions: [Span; LANES],
}

impl Program {
    /// Frames of all lanes, but for what is put into them.
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
            // All that stands before the ids, in the order of `unitape_model::schema`.
            let offset = (base + u64::from(lane.start)) as u32;
            let head = [
                header.0,
                times[i] as u64,
                u64::from(source) | u64::from(offset) << 32,
                u64::from(RECV_NONE as u32) | u64::from(sequences[i]) << 32,
            ];
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
