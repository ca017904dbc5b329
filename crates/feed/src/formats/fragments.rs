//! Datagrams that IP cut into fragments, within a block of a capture.
//!
//! ```text
//!  records   A1/3   B   A3/3   C   A2/3   D        B, C, D: other packets
//!  order     A      B          C          D        A is read where its first fragment lies
//! ```
//!
//! A datagram takes the place of the first of its fragments that the capture has: the sender sent it before what lies between
//! them. For that the fragments up to the end of the block are put together when the first one is met. A block ends only where
//! no datagram waits for fragments (see [`FragmentScan::cut_offset`]), so that it is decoded by itself.
//!
//! A datagram waits for [`WAIT_NS_MAX`] by the times of the capture and for [`WAIT_BYTES_MAX`] of the file: less than a host
//! waits, because what follows has to wait too. Where one always begins before another one is whole, all that wait are given up
//! after [`CHAIN_BYTES_MAX`].

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use unitape_base::capture::{
    CaptureWalker, CapturedPacket, IpFragment, IpReassembler, NextCaptureRecord, UdpParseOutcome, udp,
};

/// How long the fragments of a datagram are waited for, by the times of the capture.
pub const WAIT_NS_MAX: i64 = 1_000_000_000;

/// Bytes of the capture that are looked through for the fragments of a datagram.
pub const WAIT_BYTES_MAX: usize = 1 << 20;

/// Bytes of the capture in which some datagram waits for fragments all the time.
pub const CHAIN_BYTES_MAX: usize = 8 << 20;

/// A fragment and what became of its datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Its part in that.
    pub role: FragmentRole,
    /// Where the datagram was whole, or was given up: no earlier place is one to begin at.
    pub end: usize,
}

/// The part that a fragment has in the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FragmentRole {
    /// The first one of a datagram that is whole.
    First(Box<WholeDatagram>),
    /// Another one of it; the time at which it was whole.
    Later(Option<i64>),
    /// One of a datagram that is never whole; the reason in words.
    Lost(&'static str),
}

/// A datagram that was put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeDatagram {
    /// The receiver's address and port.
    pub to: SocketAddr,
    /// Its payload, as a range of [`FragmentScan::payloads`].
    pub payload: Range<usize>,
    /// When its last fragment was captured, ns since 1970.
    pub ts_ns: Option<i64>,
    /// The end of the datagram's further records that directly follow its first record.
    pub room_end: usize,
}

/// The fragments in a part of a capture.
#[derive(Default)]
pub struct FragmentScan {
    fragments: BTreeMap<usize, Fragment>,
    payloads: Vec<u8>,
    reassembler: IpReassembler,
    open_datagrams: Vec<OpenDatagram>,
    /// Since where a datagram waits for fragments.
    chain_start: Option<usize>,
    /// The end of the scanned part.
    scan_end: usize,
}

#[derive(Debug)]
struct OpenDatagram {
    key: (IpAddr, IpAddr, u32),
    /// The records of its fragments, as they came.
    records: Vec<Range<usize>>,
    /// When the first was captured.
    ts_ns: i64,
}

impl FragmentScan {
    /// Takes the record at `start`, which is `packet` of `bytes`.
    #[inline]
    pub fn add_record(&mut self, bytes: &[u8], start: usize, packet: &CapturedPacket) {
        if !self.open_datagrams.is_empty() {
            self.expire_datagrams(start, packet.ts_ns);
        }
        let content = &bytes[packet.bytes.clone()];
        if let UdpParseOutcome::Fragment(fragment) = udp(packet.link, content, packet.is_cut()) {
            self.add_fragment(content, start..packet.end, &fragment, packet.ts_ns);
        }
    }

    #[cold]
    fn add_fragment(
        &mut self,
        content: &[u8],
        record: Range<usize>,
        fragment: &IpFragment,
        ts_ns: Option<i64>,
    ) {
        let (key, end) = ((fragment.from, fragment.to, fragment.id), record.end);
        self.chain_start.get_or_insert(record.start);
        let index =
            self.open_datagrams.iter().position(|datagram| datagram.key == key).unwrap_or_else(|| {
                self.open_datagrams.push(OpenDatagram {
                    key,
                    records: Vec::new(),
                    ts_ns: ts_ns.unwrap_or(0),
                });
                self.open_datagrams.len() - 1
            });
        self.open_datagrams[index].records.push(record);
        let wrong_checksums = self.reassembler.counts().wrong_checksums;
        if let Some(reassembled) = self.reassembler.add(fragment, content, ts_ns) {
            let payload_start = self.payloads.len();
            self.payloads.extend_from_slice(reassembled.payload);
            let (to, payload) = (reassembled.to, payload_start..self.payloads.len());
            let records = self.open_datagrams.remove(index).records;
            let adjacent = records.windows(2).take_while(|pair| pair[0].end == pair[1].start).count();
            let whole_datagram = WholeDatagram { to, payload, ts_ns, room_end: records[adjacent].end };
            let later = FragmentRole::Later(ts_ns);
            let later = records[1..].iter().map(|r| (r.start, Fragment { role: later.clone(), end }));
            self.fragments.extend(later);
            let role = FragmentRole::First(Box::new(whole_datagram));
            self.fragments.insert(records[0].start, Fragment { role, end });
        }
        // A fragment that contradicts others ends its datagram, and a datagram too many the oldest one.
        let Self { fragments, reassembler, open_datagrams: open, .. } = self;
        let is_wrong = reassembler.counts().wrong_checksums > wrong_checksums;
        open.retain(|datagram| {
            let is_open = reassembler.is_open(datagram.key);
            if !is_open {
                let reason = match datagram.key == key {
                    true if is_wrong => WRONG_CHECKSUM,
                    true => "its fragments contradict each other",
                    false => "too many datagrams wait for fragments",
                };
                give_up_datagram(fragments, datagram, reason, end);
            }
            is_open
        });
        self.end_chain();
    }

    fn end_chain(&mut self) {
        if self.open_datagrams.is_empty() {
            self.chain_start = None;
        }
    }

    #[cold]
    fn expire_datagrams(&mut self, start: usize, ts_ns: Option<i64>) {
        let Self { fragments, reassembler, open_datagrams: open, chain_start, .. } = self;
        let is_over = chain_start.is_some_and(|chain_start| start - chain_start > CHAIN_BYTES_MAX);
        open.retain(|datagram| {
            let is_late = is_over
                || start - datagram.records[0].start > WAIT_BYTES_MAX
                || ts_ns.is_some_and(|ts_ns| ts_ns.saturating_sub(datagram.ts_ns) > WAIT_NS_MAX);
            if is_late {
                reassembler.give_up(datagram.key);
                give_up_datagram(fragments, datagram, MISSING, start);
            }
            !is_late
        });
        self.end_chain();
    }

    /// Returns the last place up to `end`, where the records that were taken end, at which no datagram waits for fragments.
    pub fn cut_offset(&self, end: usize) -> usize {
        self.chain_start.unwrap_or(end)
    }

    /// Returns the fragment in the record at `start`; looks through the rest of `bytes` if that was not done yet. `walker` is
    /// behind that record.
    #[cold]
    pub fn fragment(&mut self, bytes: &[u8], start: usize, walker: &CaptureWalker) -> Fragment {
        if start >= self.scan_end {
            self.scan_records(bytes, start, walker.clone());
        }
        let never_whole = || Fragment { role: FragmentRole::Lost(MISSING), end: bytes.len() };
        self.fragments.remove(&start).unwrap_or_else(never_whole)
    }

    fn scan_records(&mut self, bytes: &[u8], start: usize, mut walker: CaptureWalker) {
        *self = Self::default();
        let mut offset = start;
        while offset < bytes.len() {
            offset = match walker.next(bytes, offset) {
                NextCaptureRecord::Packet(packet) => {
                    self.add_record(bytes, offset, &packet);
                    packet.end
                }
                NextCaptureRecord::Skip { end } | NextCaptureRecord::Dropped { end, .. } => end,
                NextCaptureRecord::More | NextCaptureRecord::Lost { .. } => break,
            };
        }
        self.scan_end = bytes.len();
    }

    /// Returns the payloads of the complete datagrams.
    pub fn payloads(&self) -> &[u8] {
        &self.payloads
    }
}

const WRONG_CHECKSUM: &str =
    "its checksum differs: these are fragments of several datagrams with one identification, or damaged";

const MISSING: &str = "others of its fragments are missing";

/// Notes that a datagram was given up at `end`.
fn give_up_datagram(
    fragments: &mut BTreeMap<usize, Fragment>,
    datagram: &OpenDatagram,
    reason: &'static str,
    end: usize,
) {
    let lost_fragment =
        |record: &Range<usize>| (record.start, Fragment { role: FragmentRole::Lost(reason), end });
    fragments.extend(datagram.records.iter().map(lost_fragment));
}
