//! Fragments of IP put together to datagrams of UDP.
//!
//! ```text
//!  fragments   0..1480 more │ 2960..3508 last │ 1480..2960 more      in any order, several datagrams at a time
//!  datagram    UDP header 8 │ payload …                              given when no byte is missing
//! ```
//!
//! Waiting fragments are bounded: [`OPEN_MAX`] datagrams of at most 64 KiB each. A datagram waits for [`AGE_NS_MAX`]
//! of the capture's time and for [`AGE_FRAGMENTS_MAX`] other fragments at most. Datagrams that are given up are
//! counted, and so are fragments that contradict earlier ones.
//!
//! Senders use an identification again while fragments of an earlier datagram wait (RFC 4963, section 3). So a datagram whose
//! checksum (RFC 768) is there and differs from its bytes is none.

use super::packet::IpFragment;
use std::net::{IpAddr, SocketAddr};

/// The maximum number of incomplete datagrams.
pub const OPEN_MAX: usize = 64;

/// How long the fragments of a datagram are waited for, by the times of the capture.
pub const AGE_NS_MAX: i64 = 30_000_000_000;

/// The maximum number of fragments of other datagrams between two fragments of a datagram.
pub const AGE_FRAGMENTS_MAX: u64 = 65_536;

/// Pieces of a datagram that do not follow each other, at most.
const PIECES_MAX: usize = 256;

/// Counts of datagrams: put together, incomplete and contradicting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReassemblyCounts {
    /// Fragments.
    pub fragments: u64,
    /// Datagrams that were put together.
    pub datagrams: u64,
    /// Datagrams that were given up, with some of their fragments missing.
    pub incomplete: u64,
    /// Fragments that overlap others, or are beyond the end of their datagram; their datagrams were given up.
    pub contradicting: u64,
    /// Complete datagrams with a wrong checksum: mixed from fragments of several datagrams, or damaged.
    pub wrong_checksums: u64,
}

/// A datagram that is whole now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReassembledDatagram<'r> {
    /// The sender's address and port.
    pub from: SocketAddr,
    /// The receiver's address, a group or a host, and port.
    pub to: SocketAddr,
    /// Its payload.
    pub payload: &'r [u8],
}

/// Datagrams that are not whole yet.
#[derive(Debug, Default)]
pub struct IpReassembler {
    open_datagrams: Vec<PartialDatagram>,
    /// The bytes of the datagram that was given last.
    datagram_bytes: Vec<u8>,
    counts: ReassemblyCounts,
}

#[derive(Debug)]
struct PartialDatagram {
    key: (IpAddr, IpAddr, u32),
    bytes: Vec<u8>,
    /// The ranges received, in order; no two are adjacent.
    received_ranges: Vec<(usize, usize)>,
    /// The length of the datagram, once its last fragment has arrived.
    datagram_length: Option<usize>,
    /// The time of its first fragment, and the number of fragments before it.
    ts_ns: i64,
    datagram_number: u64,
}

impl IpReassembler {
    /// Adds a fragment of `packet`, captured at `ts_ns`. Returns the datagram if this fragment completes it.
    pub fn add(
        &mut self,
        fragment: &IpFragment,
        packet: &[u8],
        ts_ns: Option<i64>,
    ) -> Option<ReassembledDatagram<'_>> {
        self.counts.fragments += 1;
        let (number, ts_ns) = (self.counts.fragments, ts_ns.unwrap_or(0));
        self.forget(|partial| {
            ts_ns.saturating_sub(partial.ts_ns) > AGE_NS_MAX
                || number - partial.datagram_number > AGE_FRAGMENTS_MAX
        });
        let key = (fragment.from, fragment.to, fragment.id);
        let open_index = match self.open_datagrams.iter().position(|partial| partial.key == key) {
            Some(index) => index,
            None => {
                if self.open_datagrams.len() >= OPEN_MAX {
                    self.counts.incomplete += 1;
                    self.open_datagrams.remove(0);
                }
                let (bytes, pieces) = (Vec::new(), Vec::new());
                self.open_datagrams.push(PartialDatagram {
                    key,
                    bytes,
                    received_ranges: pieces,
                    datagram_length: None,
                    ts_ns,
                    datagram_number: number,
                });
                self.open_datagrams.len() - 1
            }
        };
        if !self.open_datagrams[open_index].insert_fragment(fragment, &packet[fragment.bytes.clone()]) {
            self.counts.contradicting += 1;
            self.open_datagrams.remove(open_index);
            return None;
        }
        if !self.open_datagrams[open_index].is_complete() {
            return None;
        }
        self.datagram_bytes = self.open_datagrams.remove(open_index).bytes;
        let word = |offset: usize| {
            self.datagram_bytes.get(offset..offset + 2).map(|b| u16::from_be_bytes([b[0], b[1]]))
        };
        let (Some(from), Some(to), Some(length)) = (word(0), word(2), word(4)) else {
            self.counts.contradicting += 1;
            return None;
        };
        let Some(payload) = self.datagram_bytes.get(8..usize::from(length)) else {
            self.counts.contradicting += 1;
            return None;
        };
        if !has_right_checksum(key.0, key.1, &self.datagram_bytes[..usize::from(length)]) {
            self.counts.wrong_checksums += 1;
            return None;
        }
        self.counts.datagrams += 1;
        let (from, to) = (SocketAddr::new(key.0, from), SocketAddr::new(key.1, to));
        Some(ReassembledDatagram { from, to, payload })
    }

    /// Returns whether only some fragments of the datagram with these addresses and this identification have arrived.
    #[must_use]
    pub fn is_open(&self, key: (IpAddr, IpAddr, u32)) -> bool {
        self.open_datagrams.iter().any(|partial| partial.key == key)
    }

    /// Gives up the datagram with these addresses and this identification.
    pub fn give_up(&mut self, key: (IpAddr, IpAddr, u32)) {
        self.forget(|partial| partial.key == key);
    }

    /// Forgets all incomplete datagrams: no more fragments will arrive.
    pub fn finish(&mut self) {
        self.forget(|_| true);
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> ReassemblyCounts {
        self.counts
    }

    fn forget(&mut self, is_over: impl Fn(&PartialDatagram) -> bool) {
        let open_count = self.open_datagrams.len();
        self.open_datagrams.retain(|partial| !is_over(partial));
        self.counts.incomplete += (open_count - self.open_datagrams.len()) as u64;
    }
}

impl PartialDatagram {
    /// Inserts a fragment; returns false if it contradicts the others. A repeated fragment fits.
    fn insert_fragment(&mut self, fragment: &IpFragment, bytes: &[u8]) -> bool {
        let (from, to) = (fragment.offset, fragment.offset + bytes.len());
        if self.bytes.get(from..to) == Some(bytes)
            && self.received_ranges.iter().any(|(a, b)| *a <= from && to <= *b)
        {
            return true;
        }
        let overlaps = self.received_ranges.iter().any(|(a, b)| from < *b && *a < to);
        let pieces_end = self.received_ranges.last().map_or(0, |piece| piece.1);
        let fits_end = match (self.datagram_length, fragment.more) {
            (Some(end), true) => to <= end,
            (Some(end), false) => to == end,
            (None, true) => true,
            (None, false) => pieces_end <= to,
        };
        if overlaps || !fits_end || self.received_ranges.len() >= PIECES_MAX {
            return false;
        }
        if !fragment.more {
            self.datagram_length = Some(to);
        }
        if self.bytes.len() < to {
            self.bytes.resize(to, 0);
        }
        self.bytes[from..to].copy_from_slice(bytes);
        let piece_index = self.received_ranges.partition_point(|piece| piece.0 < from);
        self.received_ranges.insert(piece_index, (from, to));
        self.received_ranges.dedup_by(|next, piece| {
            let follows = piece.1 == next.0;
            if follows {
                piece.1 = next.1;
            }
            follows
        });
        true
    }

    fn is_complete(&self) -> bool {
        matches!((&self.received_ranges[..], self.datagram_length), ([(0, to)], Some(end)) if *to == end)
    }
}

/// Returns whether a datagram with its header has the checksum that it states, or states no checksum (RFC 768; RFC
/// 8200, section 8.1).
fn has_right_checksum(from: IpAddr, to: IpAddr, datagram: &[u8]) -> bool {
    let sum = |bytes: &[u8]| {
        let words =
            bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)));
        words.sum::<u64>()
    };
    let of_address = |address| match address {
        IpAddr::V4(address) => sum(&address.octets()),
        IpAddr::V6(address) => sum(&address.octets()),
    };
    const UDP: u64 = 17;
    let mut total = of_address(from) + of_address(to) + UDP + datagram.len() as u64 + sum(datagram);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    datagram[6..8] == [0, 0] || total == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(id: u32, offset: usize, more: bool, length: usize) -> IpFragment {
        let [from, to] = ["10.0.0.1", "239.0.0.1"].map(|address| address.parse().unwrap());
        IpFragment { from, to, id, offset, more, bytes: 0..length }
    }

    /// Makes a datagram with this payload and a header.
    fn datagram(payload: &[u8]) -> Vec<u8> {
        let length = (8 + payload.len()) as u16;
        let head = [1u16, 5000, length, 0].map(u16::to_be_bytes).concat();
        [&head, payload].concat()
    }

    #[test]
    fn fragments_of_two_datagrams_in_any_order() {
        let mut all = IpReassembler::default();
        let (first, second) = (datagram(&[7; 40]), datagram(&[9; 20]));
        assert_eq!(all.add(&fragment(1, 32, false, 16), &first[32..], Some(1)), None);
        assert_eq!(all.add(&fragment(2, 0, true, 16), &second[..16], Some(1)), None);
        assert_eq!(all.add(&fragment(1, 0, true, 16), &first[..16], Some(1)), None);
        // It came twice.
        assert_eq!(all.add(&fragment(1, 0, true, 16), &first[..16], Some(1)), None);
        let reassembled_datagram = all.add(&fragment(1, 16, true, 16), &first[16..32], Some(1)).unwrap();
        assert_eq!((reassembled_datagram.payload, reassembled_datagram.to.port()), (&[7; 40][..], 5000));
        assert_eq!(all.add(&fragment(2, 16, false, 12), &second[16..], Some(1)).unwrap().payload, [9; 20]);
        let counts = ReassemblyCounts { fragments: 6, datagrams: 2, ..ReassemblyCounts::default() };
        assert_eq!(all.counts(), counts);
    }

    /// Guards against a sender that uses an identification again: the tail of the earlier datagram became the tail of
    /// the later one.
    #[test]
    fn fragments_of_two_datagrams_with_one_identification_are_not_joined() {
        // Made with another program: 10.0.0.1 to 239.0.0.1, and fe80::1 to ff02::1, ports 1 and 5000, 5 bytes.
        let datagram_with =
            |checksum: [u8; 2]| [&[0, 1, 0x13, 0x88, 0, 13], &checksum[..], b"hello"].concat();
        let [v4_from, v4_to, v6_from, v6_to] =
            ["10.0.0.1", "239.0.0.1", "fe80::1", "ff02::1"].map(|address| address.parse::<IpAddr>().unwrap());
        for (from, to, checksum) in [(v4_from, v4_to, [0xaf, 0x76]), (v6_from, v6_to, [0xaa, 0xf3])] {
            let (good, mut corrupt_datagram) = (datagram_with(checksum), datagram_with(checksum));
            assert!(
                has_right_checksum(from, to, &good) && has_right_checksum(from, to, &datagram_with([0, 0]))
            );
            corrupt_datagram[12] ^= 1;
            assert!(!has_right_checksum(from, to, &corrupt_datagram));
            let mut all = IpReassembler::default();
            let part = |offset, more| IpFragment {
                from,
                to,
                id: 5,
                offset,
                more,
                bytes: 0..if more { 8 } else { 5 },
            };
            assert_eq!(all.add(&part(0, true), &good[..8], None), None);
            assert_eq!(all.add(&part(8, false), &corrupt_datagram[8..], None), None);
            assert_eq!((all.counts().wrong_checksums, all.open_datagrams.len()), (1, 0));
            assert_eq!(all.add(&part(8, false), &good[8..], None), None);
            assert_eq!(all.add(&part(0, true), &good[..8], None).unwrap().payload, b"hello");
        }
    }

    #[test]
    fn what_never_becomes_whole_is_bounded_and_counted() {
        let mut all = IpReassembler::default();
        for id in 0..3 * OPEN_MAX as u32 {
            assert_eq!(all.add(&fragment(id, 0, true, 8), &[0; 8], Some(0)), None);
            assert!(all.open_datagrams.len() <= OPEN_MAX);
        }
        assert_eq!(all.counts().incomplete, 2 * OPEN_MAX as u64);
        assert_eq!(all.add(&fragment(9999, 0, true, 8), &[0; 8], Some(AGE_NS_MAX + 1)), None);
        assert_eq!((all.open_datagrams.len(), all.counts().incomplete), (1, 3 * OPEN_MAX as u64));
        // Another one at the same place, with other bytes.
        assert_eq!(all.add(&fragment(9999, 0, true, 8), &[1; 8], Some(AGE_NS_MAX + 1)), None);
        assert_eq!((all.open_datagrams.len(), all.counts().contradicting), (0, 1));
        all.finish();
        assert_eq!(all.counts().incomplete, 3 * OPEN_MAX as u64);
    }
}
