//! Finds the begin and the end of FAST messages in a block's bytes.
//!
//! After an invalid frame, no other can be found for sure. The bytes up to the next multiple of 64 KiB of the source
//! go into quarantine as one piece, and there the search for a frame resumes. This rule depends on the source's own
//! bytes only, so the result is the same wherever blocks were cut. Where only messages show their ends, all that is
//! left is lost.

use super::config::FastMessageFraming;
use std::ops::Range;

/// The content at a place.
#[derive(Debug, PartialEq, Eq)]
pub enum NextFastPacket {
    /// A packet; its bytes without its length, and where the next one begins.
    Packet(Range<usize>, usize),
    /// A message whose end only its own bytes show.
    Open,
    /// Bytes that are no packet: up to this place.
    Bad { end: usize, code: &'static str, detail: &'static str },
    /// More bytes decide.
    Incomplete,
    /// Nothing more.
    End,
}

/// The largest packet, in bytes; a datagram has 64 KiB at most.
pub const PACKET_BYTES_MAX: usize = 1 << 20;

/// Bytes that cannot be read go into quarantine in pieces up to multiples of this, in the source.
const PIECE_BYTES: u64 = 64 << 10;

/// Reads the frame at `start`; `base` is the source offset of the first of `bytes`.
pub fn next(framing: FastMessageFraming, bytes: &[u8], start: usize, base: u64, eof: bool) -> NextFastPacket {
    let unread_bytes = &bytes[start..];
    if unread_bytes.is_empty() {
        return if eof { NextFastPacket::End } else { NextFastPacket::Incomplete };
    }
    if framing.is_open_ended() {
        return NextFastPacket::Open;
    }
    let (head, length) = match length(framing, unread_bytes) {
        Some(Ok(head_and_length)) => head_and_length,
        Some(Err(fault)) => return refuse_piece(bytes, start, base, eof, fault),
        None if eof => return refuse_piece(bytes, start, base, eof, TRUNCATED_LENGTH),
        None => return NextFastPacket::Incomplete,
    };
    if length == 0 {
        let (code, detail) = ("D12", "a packet without a byte");
        return NextFastPacket::Bad { end: start + head, code, detail };
    }
    if length > PACKET_BYTES_MAX {
        return refuse_piece(bytes, start, base, eof, TOO_LARGE);
    }
    let (from, to) = (start + head, start + head + length);
    match (to <= bytes.len(), eof) {
        (true, _) => NextFastPacket::Packet(from..to, to),
        (false, true) => refuse_piece(bytes, start, base, eof, TRUNCATED_PACKET),
        (false, false) => NextFastPacket::Incomplete,
    }
}

/// Finds the end of the last whole packet of `bytes`, as far as the framing shows it.
pub fn cut_packets(framing: FastMessageFraming, bytes: &[u8]) -> usize {
    if framing.is_open_ended() {
        // Decoded in their turn: what is left over goes to the next block.
        return bytes.len();
    }
    let mut message_start = 0;
    loop {
        match next(framing, bytes, message_start, 0, false) {
            NextFastPacket::Packet(_, end) | NextFastPacket::Bad { end, .. } => message_start = end,
            NextFastPacket::Incomplete | NextFastPacket::End | NextFastPacket::Open => return message_start,
        }
    }
}

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug)]
pub struct FramingFault {
    /// The reason of their quarantine event.
    pub code: &'static str,
    /// Its detail.
    pub detail: &'static str,
}

const TOO_LARGE: FramingFault = FramingFault { code: "too_large", detail: "a length of more than 1 MiB" };
const TRUNCATED_LENGTH: FramingFault =
    FramingFault { code: "truncated", detail: "the input ends inside a length" };
const TRUNCATED_PACKET: FramingFault =
    FramingFault { code: "truncated", detail: "the input ends inside the packet" };
const ENDLESS_LENGTH: FramingFault =
    FramingFault { code: "D2", detail: "a length of a block that does not end" };

/// Reads a length prefix: returns its number of bytes and the length.
fn length(framing: FastMessageFraming, left: &[u8]) -> Option<Result<(usize, usize), FramingFault>> {
    if framing != FastMessageFraming::LengthPrefix {
        return left.first_chunk().map(|head| Ok((4, u32::from_le_bytes(*head) as usize)));
    }
    match left.iter().take(LENGTH_BYTES_MAX).position(|b| *b >= 0x80) {
        Some(stop) => {
            let length = left[..=stop].iter().fold(0, |length, b| length << 7 | usize::from(b & 0x7f));
            Some(Ok((stop + 1, length)))
        }
        None if left.len() >= LENGTH_BYTES_MAX => Some(Err(ENDLESS_LENGTH)),
        None => None,
    }
}

/// Bytes of a length that is encoded as FAST does.
const LENGTH_BYTES_MAX: usize = 5;

/// Refuses the bytes up to the next multiple of [`PIECE_BYTES`] in the source, with `fault`.
pub fn refuse_piece(bytes: &[u8], start: usize, base: u64, eof: bool, fault: FramingFault) -> NextFastPacket {
    let FramingFault { code, detail } = fault;
    let source_offset = base + start as u64;
    let piece_end = start as u64 + (PIECE_BYTES - source_offset % PIECE_BYTES);
    match usize::try_from(piece_end) {
        Ok(end) if end <= bytes.len() => NextFastPacket::Bad { end, code, detail },
        _ if eof => NextFastPacket::Bad { end: bytes.len(), code, detail },
        _ => NextFastPacket::Incomplete,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(framing: FastMessageFraming, bytes: &[u8]) -> Vec<(usize, usize, &'static str)> {
        let (mut start, mut packets) = (0, Vec::new());
        loop {
            match next(framing, bytes, start, 0, true) {
                NextFastPacket::Packet(range, end) => {
                    packets.push((range.start, range.end, ""));
                    start = end;
                }
                NextFastPacket::Bad { end, code, .. } => {
                    packets.push((start, end, code));
                    start = end;
                }
                NextFastPacket::Open | NextFastPacket::Incomplete => {
                    panic!("the stream is framed and complete")
                }
                NextFastPacket::End => return packets,
            }
        }
    }

    /// Guards against a damaged length that takes the rest of a day with it, or is tried at each byte.
    #[test]
    fn what_is_no_packet_is_passed_over_in_pieces() {
        let mut bytes = vec![2, 0, 0, 0, 7, 7, 0xff, 0xff, 0xff, 0xff];
        bytes.resize(64 << 10, 0xff);
        bytes.extend([1, 0, 0, 0, 9]);
        let end = 64 << 10;
        assert_eq!(
            all(FastMessageFraming::Frames, &bytes),
            [(4, 6, ""), (6, end, "too_large"), (end + 4, end + 5, "")]
        );
        assert_eq!(cut_packets(FastMessageFraming::Frames, &bytes), bytes.len());
        assert_eq!(all(FastMessageFraming::Frames, &[0, 0, 0, 0, 5]), [(0, 4, "D12"), (4, 5, "truncated")]);
        assert_eq!(
            all(FastMessageFraming::LengthPrefix, &[0x82, 1, 2, 1, 2, 3, 4, 5]),
            [(1, 3, ""), (3, 8, "D2")]
        );
        assert_eq!(next(FastMessageFraming::LengthPrefix, &[1, 2], 0, 0, false), NextFastPacket::Incomplete);
        assert_eq!(cut_packets(FastMessageFraming::Frames, &[1, 0, 0, 0, 9, 3, 0, 0, 0, 1]), 5);
    }
}
