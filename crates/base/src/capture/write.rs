//! Writing captures: the journal of received datagrams, which every tool that knows pcap can open.
//!
//! The file is pcap with nanoseconds, little-endian, link type 101 (raw IP). The headers of each packet are
//! rebuilt from the addresses that the socket reported. A record without bytes notes packets that were dropped; the
//! field `sigfigs` of the file header, which no tool uses, says that it has this meaning here.

use super::walk::RECORD_HEAD;
use std::net::{IpAddr, SocketAddr};

/// `sigfigs` of a journal.
pub const JOURNAL_MARK: u32 = 0x5554_4150;

/// The payload of a UDP datagram, at most, bytes.
pub const PAYLOAD_BYTES_MAX: usize = 65_507;

/// Appends the file header.
pub fn file_header(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&JOURNAL_MARK.to_le_bytes());
    out.extend_from_slice(&262_144u32.to_le_bytes());
    out.extend_from_slice(&101u32.to_le_bytes());
}

/// Appends a datagram that was received at `ts_ns`.
///
/// # Panics
/// Panics if `payload` is longer than [`PAYLOAD_BYTES_MAX`].
pub fn datagram(out: &mut Vec<u8>, ts_ns: i64, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
    assert!(payload.len() <= PAYLOAD_BYTES_MAX, "no datagram is that long");
    let (v4, header) = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => (Some((from, to)), 20),
        _ => (None, 40),
    };
    let length = header + 8 + payload.len();
    record_head(out, ts_ns, length as u32, length as u32);
    let udp_length = (8 + payload.len()) as u16;
    if let Some((from, to)) = v4 {
        let record_start = out.len();
        out.extend_from_slice(&[0x45, 0]);
        out.extend_from_slice(&(length as u16).to_be_bytes());
        out.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
        out.extend_from_slice(&from.octets());
        out.extend_from_slice(&to.octets());
        let sum = out[record_start..].chunks_exact(2).map(|b| u32::from(u16::from_be_bytes([b[0], b[1]])));
        let sum: u32 = sum.sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        out[record_start + 10..record_start + 12].copy_from_slice(&sum.to_be_bytes());
    } else {
        let octets = |ip| match ip {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        out.extend_from_slice(&[0x60, 0, 0, 0]);
        out.extend_from_slice(&udp_length.to_be_bytes());
        out.extend_from_slice(&[17, 64]);
        out.extend_from_slice(&octets(from.ip()));
        out.extend_from_slice(&octets(to.ip()));
    }
    out.extend_from_slice(&from.port().to_be_bytes());
    out.extend_from_slice(&to.port().to_be_bytes());
    out.extend_from_slice(&udp_length.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(payload);
}

/// Appends the note that `count` datagrams were dropped before this place.
pub fn drop_note(out: &mut Vec<u8>, ts_ns: i64, count: u32) {
    record_head(out, ts_ns, 0, count);
}

fn record_head(out: &mut Vec<u8>, ts_ns: i64, captured: u32, original: u32) {
    // 32 bits of seconds reach to 2106; a time outside is written as the nearest possible one.
    let seconds = u32::try_from(ts_ns.div_euclid(1_000_000_000).max(0)).unwrap_or(u32::MAX);
    let fraction = ts_ns.rem_euclid(1_000_000_000) as u32;
    out.reserve(RECORD_HEAD + captured as usize);
    for word in [seconds, fraction, captured, original] {
        out.extend_from_slice(&word.to_le_bytes());
    }
}
