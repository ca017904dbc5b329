//! Receive times into events that are decoded already.
//!
//! The codecs know nothing of receive times: they are not in the bytes. After decoding, each event gets the time of
//! the stretch (a packet, a read from a socket) in which the last byte of its message arrived. The time is stored as
//! a difference to the event time where that fits into 32 bits, and otherwise in the extension. Then the frame may
//! grow by a line, and the arena is rewritten.

use crate::block::Block;
use crate::formats::decoder::DecodeOptions;
use unitape_model::schema::{EventSchema, RECV_EXT, RECV_NONE, at};
use unitape_model::{EventField, EventKind, FrameHeader, LINE, UnixNanos, flags};

/// Writes receive times into the events of `block`, and merge times into its units, as `options` require.
pub fn receive_times(block: &mut Block, options: &DecodeOptions) {
    if block.times.is_empty() {
        return;
    }
    if options.sets_receive_times {
        stamp_block(block);
    }
    if options.by_receive_time {
        for unit in &mut block.units {
            if unit.kind.is_events() {
                unit.ts = time_of(&block.times, last_byte(unit.offset, unit.length)).unwrap_or(unit.ts);
            }
        }
    }
}

fn stamp_block(block: &mut Block) {
    let mut out = std::mem::take(&mut block.payload);
    out.clear();
    out.reserve(block.arena.len());
    let (mut frame_start, mut fixup) = (0, 0);
    for unit in &mut block.units {
        let has_events = unit.kind.is_events();
        let ts = time_of(&block.times, last_byte(unit.offset, unit.length)).filter(|_| has_events);
        while frame_start < unit.end as usize {
            let length = FrameHeader::read(&block.arena[frame_start..]).len_bytes();
            let stamp_start = out.len();
            out.extend_from_slice(&block.arena[frame_start..frame_start + length]);
            let frame_length = (stamp_start - frame_start) as u32;
            while let Some(f) = block.fixups.get_mut(fixup).filter(|f| f.frame as usize == frame_start) {
                f.frame += frame_length;
                f.id_offset += frame_length;
                fixup += 1;
            }
            if let Some(ts) = ts {
                set_receive_time(&mut out, stamp_start, ts);
            }
            frame_start += length;
        }
        unit.end = out.len() as u32;
    }
    std::mem::swap(&mut block.arena, &mut out);
    out.clear();
    block.payload = out;
}

/// Writes a receive time into the last frame of `out`, unless the frame has its own receive time.
fn set_receive_time(out: &mut Vec<u8>, start: usize, ts: UnixNanos) {
    let delta_offset = start + at::RECV_DELTA;
    if out[delta_offset..delta_offset + 4] != RECV_NONE.to_le_bytes() {
        return;
    }
    let event = i64::from_le_bytes(out[start + at::TS_EVENT..][..8].try_into().expect("eight bytes"));
    let delta = ts.0.checked_sub(event).and_then(|d| i32::try_from(d).ok());
    if let Some(d) = delta.filter(|d| !matches!(*d, RECV_NONE | RECV_EXT)) {
        out[delta_offset..delta_offset + 4].copy_from_slice(&d.to_le_bytes());
        return;
    }
    let header = FrameHeader::read(&out[start..]);
    let kind = EventKind::from_u8(header.kind()).expect("a frame of ours");
    let end = match header.flags() & flags::EXT {
        0 => start + usize::from(EventSchema::for_kind(kind).fixed_bytes),
        _ => end_of_entries(out, start + usize::from(EventSchema::for_kind(kind).fixed_bytes)),
    };
    let lines = (end + ENTRY - start).div_ceil(LINE).max(usize::from(header.lines()));
    // The longest frame there is has no room for it; it stays without.
    let Ok(lines) = u16::try_from(lines) else { return };
    out[delta_offset..delta_offset + 4].copy_from_slice(&RECV_EXT.to_le_bytes());
    out.resize(start + usize::from(lines) * LINE, 0);
    out[end..end + 2].copy_from_slice(&(EventField::TsRecv as u16).to_le_bytes());
    out[end + 2..end + 6].copy_from_slice(&8u32.to_le_bytes());
    out[end + 6..end + 14].copy_from_slice(&ts.0.to_le_bytes());
    let bits = header.flags() | flags::EXT;
    FrameHeader::new_unstamped(header.kind(), bits, lines).write(&mut out[start..]);
}

/// Returns the offset after the last entry of an extension that begins at `offset`.
fn end_of_entries(frame: &[u8], mut offset: usize) -> usize {
    while let Some(head) = frame.get(offset..offset + 6).filter(|h| h[..2] != [0, 0]) {
        offset += 6 + u32::from_le_bytes(head[2..].try_into().expect("four bytes")) as usize;
    }
    offset
}

/// Returns the source offset of a message's last byte.
pub fn last_byte(offset: u64, length: u32) -> u64 {
    offset + u64::from(length.max(1)) - 1
}

/// Returns the time of the range that holds this byte.
pub fn time_of(times: &[(u64, UnixNanos)], byte: u64) -> Option<UnixNanos> {
    let i = times.partition_point(|(end, _)| *end <= byte);
    times.get(i).map(|(_, ts)| *ts).filter(|ts| *ts != NO_TIME)
}

/// The time of a range whose receive time is unknown.
pub const NO_TIME: UnixNanos = UnixNanos::MIN;

/// Tag, length and value of a receive time in the extension.
const ENTRY: usize = 14;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::decoder::DecodeOptions;
    use crate::formats::format::Format;
    use unitape_model::{Dictionary, Event};

    /// Guards against a receive time hours after the event, for which there once was no room. In a frame that has
    /// moved, a provisional name must still be found.
    #[test]
    fn near_and_far_times_of_short_and_long_frames() {
        let line = |i: u64, more: &str| {
            format!(
                "{{\"seq\":{i},\"ts\":{i},\"kind\":\"status\",\"venue\":\"V{i}\",\"instr\":\"I\",\"state\":\"open\"{more}}}\n"
            )
        };
        let long = format!(",\"note\":\"{}\"", "x".repeat(30));
        let full = format!(",\"note\":\"{}\"", "x".repeat(64 - 6 - 2 - 4 - 2 - 6));
        let lines = [line(1, ""), line(2, ""), line(3, &long), line(4, &full), line(5, ",\"ts_recv\":77")];
        let mut block = Block { bytes: lines.concat().into_bytes(), eof: true, ..Block::default() };
        let mut end = 0;
        let times = [7, 1 << 60, NO_TIME.0, -(1 << 60), 1 << 61].iter().zip(&lines).map(|(ts, line)| {
            end += line.len() as u64;
            (end, UnixNanos(*ts))
        });
        block.times = times.collect();
        let options = DecodeOptions { sets_receive_times: true, ..DecodeOptions::default() };
        Format::events().decoder().unwrap().decode(&mut block, 3, &Dictionary::default(), &options);
        let events: Vec<_> =
            unitape_model::frames(&block.arena).map(|(_, _, f)| Event::new(f).unwrap()).collect();
        let got: Vec<_> = events.iter().map(|e| e.ts_recv().map(|t| t.0)).collect();
        assert_eq!(got, [Some(7), Some(1 << 60), None, Some(-(1 << 60)), Some(77)]);
        assert_eq!(block.units.iter().filter(|u| u.events > 0).count(), 5);
        assert_eq!(block.units[4].end as usize, block.arena.len());
        for (i, event) in events.iter().enumerate() {
            assert_eq!(event.unmapped_fields().count(), usize::from(i == 2 || i == 3), "nothing is lost");
        }
        for f in &block.fixups {
            let name = block.names.name(f.dict, f.id).unwrap();
            let width = if f.dict == unitape_model::NameKind::Venue { 2 } else { 4 };
            let id = &block.arena[f.id_offset as usize..][..width];
            assert_eq!(id[..width - 1], f.id.to_le_bytes()[..width - 1], "{name}");
            assert_eq!(FrameHeader::read(&block.arena[f.frame as usize..]).kind(), EventKind::Status as u8);
        }
    }
}
