//! Captures as sources: packets are selected, and each payload is decoded as a stretch of its own.
//!
//! Offsets are those of the capture file, so the bytes of a message can be shown as evidence. A message never reaches
//! from one packet into the next: the end of a payload is the end of its last message. Fragments of IP are put together
//! ([`fragments`](super::fragments)). Packets of others count as ignored; packets that cannot be used (cut by the snap length,
//! fragments whose others are missing, headers that contradict themselves) go into quarantine with their record, and so do all
//! bytes after damage.

use crate::block::Block;
use crate::formats::format::{FormatDecoder, SourceContext};
use crate::formats::fragments::{Fragment, FragmentRole, FragmentScan};
use std::net::IpAddr;
use unitape_base::capture::{CaptureWalker, NextCaptureRecord, UdpParseOutcome, udp};
use unitape_model::schema::at;
use unitape_model::{FrameHeader, UnixNanos};

/// The UDP datagrams of a capture that belong to the feed; an empty list means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatagramFilter {
    /// Ports they go to.
    pub ports: Vec<u16>,
    /// Groups or hosts they go to.
    pub groups: Vec<IpAddr>,
}

/// After damage no record can be found; the remaining bytes go into quarantine in pieces of this length, in bytes.
pub const LOST_BYTES: usize = 64 << 10;

impl DatagramFilter {
    fn wants_host(&self, ip: IpAddr) -> bool {
        self.groups.is_empty() || self.groups.contains(&ip)
    }

    fn wants_receiver(&self, to: std::net::SocketAddr) -> bool {
        self.wants_host(to.ip()) && (self.ports.is_empty() || self.ports.contains(&to.port()))
    }
}

/// A walker at the first byte of a block, and which datagrams it is to find.
pub struct CaptureInput<'c> {
    pub walker: &'c mut CaptureWalker,
    pub select: &'c DatagramFilter,
}

/// Decodes all whole records of `block`, which begins at one.
pub fn decode(
    decoder: &mut dyn FormatDecoder,
    block: &mut Block,
    context: SourceContext<'_>,
    input: CaptureInput<'_>,
) {
    let SourceContext { source, dictionary } = context;
    let CaptureInput { walker, select } = input;
    let bytes = std::mem::take(&mut block.bytes);
    let (base, eof) = (block.base, block.eof);
    let mut payload = std::mem::take(&mut block.payload);
    block.times.clear();
    let mut fragments = FragmentScan::default();
    // Where fragments begin whose datagrams are whole, or given up, at a later place: a restart must not begin between the two.
    let mut pending_fragments: Option<(u64, usize)> = None;
    let mut packet_start = 0;
    loop {
        let offset = base + packet_start as u64;
        let packet_end = match walker.next(&bytes, packet_start) {
            NextCaptureRecord::Skip { end } => end,
            NextCaptureRecord::Dropped { count, end, .. } => {
                let detail = format!("{count} datagrams were dropped before this place");
                block.quarantine(source, offset, &[], "dropped", &detail);
                end
            }
            NextCaptureRecord::Packet(p) => {
                let packet = &bytes[p.bytes.clone()];
                let record = &bytes[packet_start..p.end];
                match udp(p.link, packet, p.is_cut()) {
                    UdpParseOutcome::Datagram(d) if select.wants_receiver(d.to) => {
                        payload.clear();
                        payload.extend_from_slice(&packet[d.payload.clone()]);
                        std::mem::swap(&mut block.bytes, &mut payload);
                        block.base = base + (p.bytes.start + d.payload.start) as u64;
                        (block.eof, block.in_packet) = (true, true);
                        block.sent = Some((d.to, UnixNanos(p.ts_ns.unwrap_or(0))));
                        decoder.decode_block(block, source, dictionary);
                        std::mem::swap(&mut block.bytes, &mut payload);
                        (block.base, block.eof, block.in_packet) = (base, eof, false);
                        if let Some(ts) = p.ts_ns {
                            block.times.push((base + p.end as u64, UnixNanos(ts)));
                        }
                    }
                    UdpParseOutcome::Cut(to) if to.is_none_or(|to| select.wants_receiver(to)) => {
                        let detail = format!("{} of {} bytes were captured", packet.len(), p.original);
                        block.quarantine(source, offset, record, "truncated_packet", &detail);
                    }
                    UdpParseOutcome::Fragment(part) => {
                        let Fragment { role, end } = fragments.fragment(&bytes, packet_start, walker);
                        let (from, upto) = pending_fragments.unwrap_or((offset, end));
                        pending_fragments = Some((from, upto.max(end)));
                        match role {
                            FragmentRole::First(datagram) => {
                                if select.wants_receiver(datagram.to) {
                                    payload.clear();
                                    payload.extend_from_slice(&fragments.payloads()[datagram.payload]);
                                    std::mem::swap(&mut block.bytes, &mut payload);
                                    block.base = base + (p.bytes.start + part.bytes.start) as u64;
                                    (block.eof, block.in_packet) = (true, true);
                                    block.sent = Some((datagram.to, UnixNanos(datagram.ts_ns.unwrap_or(0))));
                                    let marks_before = (block.units.len(), block.arena.len());
                                    decoder.decode_block(block, source, dictionary);
                                    std::mem::swap(&mut block.bytes, &mut payload);
                                    (block.base, block.eof, block.in_packet) = (base, eof, false);
                                    move_into(block, marks_before, base + datagram.room_end as u64);
                                } else {
                                    block.end_ignored();
                                }
                                if let Some(ts) = datagram.ts_ns {
                                    block.times.push((base + p.end as u64, UnixNanos(ts)));
                                }
                            }
                            FragmentRole::Later(ts_ns) => {
                                if let Some(ts) = ts_ns {
                                    block.times.push((base + p.end as u64, UnixNanos(ts)));
                                }
                            }
                            FragmentRole::Lost(reason) if select.wants_host(part.to) => {
                                let detail = format!("a fragment of a datagram to {}: {reason}", part.to);
                                block.quarantine(source, offset, record, "fragment", &detail);
                            }
                            FragmentRole::Lost(_) => block.end_ignored(),
                        }
                    }
                    UdpParseOutcome::Bad(fault) => {
                        block.quarantine(source, offset, record, "bad_packet", fault)
                    }
                    UdpParseOutcome::Datagram(_) | UdpParseOutcome::Cut(_) | UdpParseOutcome::Other => {
                        block.end_ignored()
                    }
                }
                p.end
            }
            NextCaptureRecord::More if eof && packet_start < bytes.len() => {
                let fault_text = "the capture ends in the middle of a record";
                block.quarantine(source, offset, &bytes[packet_start..], "truncated", fault_text);
                bytes.len()
            }
            NextCaptureRecord::Lost { reason: cause } if packet_start < bytes.len() => {
                let lost_end = (packet_start + LOST_BYTES).min(bytes.len());
                block.quarantine(source, offset, &bytes[packet_start..lost_end], "bad_capture", cause);
                lost_end
            }
            NextCaptureRecord::More | NextCaptureRecord::Lost { .. } => break,
        };
        packet_start = packet_end;
        match pending_fragments {
            None => block.mark_crossed_progress(offset, base + packet_end as u64),
            Some((_, upto)) if packet_end < upto => {}
            Some((from, _)) => {
                block.mark_crossed_progress(from, base + packet_end as u64);
                pending_fragments = None;
            }
        }
    }
    payload.clear();
    block.payload = payload;
    block.bytes = bytes;
    block.decoded = packet_start;
}

/// Moves the messages since `before`, a number of units and a length of the arena, that begin at `end` of the source or behind it
/// to places before `end`: other packets lie between the fragments of their datagram, and offsets of a source only grow.
#[cold]
fn move_into(block: &mut Block, before: (usize, usize), end: u64) {
    let (units, mut frame) = before;
    let count = block.units.len() - units;
    for (i, unit) in block.units[units..].iter_mut().enumerate() {
        let offset = unit.offset.min(end.saturating_sub((count - i) as u64));
        let length = unit.length.min((end - offset) as u32);
        while offset != unit.offset && frame < unit.end as usize {
            let offset_position = frame + at::OFFSET;
            block.arena[offset_position..offset_position + 4].copy_from_slice(&(offset as u32).to_le_bytes());
            frame += FrameHeader::read(&block.arena[frame..]).len_bytes();
        }
        (unit.offset, unit.length, frame) = (offset, length, unit.end as usize);
    }
}
