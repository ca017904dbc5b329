//! Records of pcap and blocks of pcapng, one after the other.

use std::ops::Range;

/// A record or block longer than this counts as damage, bytes.
pub const BLOCK_BYTES_MAX: usize = 4 << 20;

/// The item at a place of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextCaptureRecord {
    /// A packet.
    Packet(CapturedPacket),
    /// The note of a journal that this many packets were dropped before this place.
    Dropped {
        /// How many.
        count: u32,
        /// When it was noted, ns since 1970.
        ts_ns: i64,
        /// After the note.
        end: usize,
    },
    /// A header, or a block that holds no packet.
    Skip {
        /// After it.
        end: usize,
    },
    /// The buffer ends in the middle of it.
    More,
    /// The bytes here can be no record; nothing after it can be found any more.
    Lost {
        /// Why, for people.
        reason: &'static str,
    },
}

/// A captured packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// The bytes of the packet in the buffer.
    pub bytes: Range<usize>,
    /// After its record.
    pub end: usize,
    /// When it was captured, ns since 1970; `None` where the file does not say.
    pub ts_ns: Option<i64>,
    /// The link type of the packet, which says how its bytes begin.
    pub link: u16,
    /// Its length on the wire, bytes.
    pub original: u32,
}

impl CapturedPacket {
    /// Returns whether the capture holds only a part of the packet.
    pub fn is_cut(&self) -> bool {
        self.bytes.len() < self.original as usize
    }
}

/// Returns whether `head`, the start of a file, is the start of a capture.
pub fn is_capture(head: &[u8]) -> bool {
    head.first_chunk::<4>().is_some_and(|m| pcap_magic(*m).is_some() || *m == NG_MAGIC)
}

/// Goes through a capture, record by record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureWalker {
    capture_format: CaptureFormat,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum CaptureFormat {
    #[default]
    Start,
    Pcap(PcapHeader),
    Ng {
        is_big_endian: bool,
        interfaces: Vec<CaptureInterface>,
    },
    /// The rest of the file is lost.
    Lost(&'static str),
}

/// The header of a pcap file: the same for all of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PcapHeader {
    magic: PcapMagic,
    link: u16,
    /// Written by us: an empty record notes drops.
    is_journal: bool,
}

/// A pcap file's first four bytes say how its numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PcapMagic {
    is_big_endian: bool,
    /// Nanoseconds of one unit of the fraction.
    fraction_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CaptureInterface {
    link: u16,
    snap: u32,
    unit: TimestampUnit,
    offset_s: i64,
}

/// The unit of an interface's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimestampUnit {
    /// 10^-n seconds.
    Ten(u8),
    /// 2^-n seconds.
    Two(u8),
}

impl CaptureWalker {
    /// Reads the record at `offset` of `bytes`. The caller has walked from the file's beginning to `offset`.
    #[inline]
    pub fn next(&mut self, bytes: &[u8], offset: usize) -> NextCaptureRecord {
        // As nearly always: a record of pcap that is there.
        if let CaptureFormat::Pcap(header) = self.capture_format
            && let Some(rest) = bytes.get(offset..)
            && let next @ NextCaptureRecord::Packet(_) = pcap_record(rest, offset, header)
        {
            return next;
        }
        self.next_any(bytes, offset)
    }

    /// Reads any record, and the headers of the file.
    #[inline(never)]
    fn next_any(&mut self, bytes: &[u8], offset: usize) -> NextCaptureRecord {
        let rest = bytes.get(offset..).unwrap_or_default();
        let next_packet = match &mut self.capture_format {
            CaptureFormat::Start => self.start(rest, offset),
            CaptureFormat::Pcap(header) => pcap_record(rest, offset, *header),
            CaptureFormat::Ng { .. } => self.ng_block(rest, offset),
            CaptureFormat::Lost(reason) => NextCaptureRecord::Lost { reason },
        };
        if let NextCaptureRecord::Lost { reason } = next_packet {
            self.capture_format = CaptureFormat::Lost(reason);
        }
        next_packet
    }

    fn start(&mut self, rest: &[u8], offset: usize) -> NextCaptureRecord {
        let Some(magic) = rest.first_chunk::<4>() else { return NextCaptureRecord::More };
        if *magic == NG_MAGIC {
            self.capture_format = CaptureFormat::Ng { is_big_endian: false, interfaces: Vec::new() };
            return self.ng_block(rest, offset);
        }
        let Some(magic) = pcap_magic(*magic) else {
            return NextCaptureRecord::Lost { reason: "no capture begins like this" };
        };
        let Some(head) = rest.first_chunk::<FILE_HEAD>() else { return NextCaptureRecord::More };
        let link = u32_at(head, 20, magic.is_big_endian) as u16;
        let is_journal = u32_at(head, 12, magic.is_big_endian) == super::write::JOURNAL_MARK;
        self.capture_format = CaptureFormat::Pcap(PcapHeader { magic, link, is_journal });
        NextCaptureRecord::Skip { end: offset + FILE_HEAD }
    }

    fn ng_block(&mut self, rest: &[u8], offset: usize) -> NextCaptureRecord {
        let CaptureFormat::Ng { is_big_endian, interfaces } = &mut self.capture_format else {
            unreachable!("called in this state")
        };
        let Some(head) = rest.first_chunk::<12>() else { return NextCaptureRecord::More };
        if head[..4] == NG_MAGIC {
            // A section says its own byte order, and forgets the interfaces of the one before it.
            *is_big_endian = match head[8..12] {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                _ => return NextCaptureRecord::Lost { reason: "a section without a byte order" },
            };
            interfaces.clear();
        }
        let is_big_endian = *is_big_endian;
        let (kind, length) = (u32_at(head, 0, is_big_endian), u32_at(head, 4, is_big_endian) as usize);
        if length < 12 || !length.is_multiple_of(4) || length > BLOCK_BYTES_MAX {
            return NextCaptureRecord::Lost { reason: "a block with an impossible length" };
        }
        let Some(block) = rest.get(..length) else { return NextCaptureRecord::More };
        if u32_at(block, length - 4, is_big_endian) as usize != length {
            return NextCaptureRecord::Lost { reason: "a block whose two lengths differ" };
        }
        let body = &block[8..length - 4];
        let record_end = offset + length;
        match kind {
            1 => match interface(body, is_big_endian) {
                Some(_) if interfaces.len() >= INTERFACES_MAX => {
                    NextCaptureRecord::Lost { reason: "too many interfaces" }
                }
                Some(interface) => {
                    interfaces.push(interface);
                    NextCaptureRecord::Skip { end: record_end }
                }
                None => NextCaptureRecord::Lost { reason: "an interface that is cut short" },
            },
            // The simple packet has no time and belongs to the first interface.
            3 if body.len() >= 4 => {
                let Some(interface) = interfaces.first() else {
                    return NextCaptureRecord::Lost { reason: "a packet of no interface" };
                };
                let original = u32_at(body, 0, is_big_endian);
                let snap = if interface.snap == 0 { u32::MAX } else { interface.snap };
                let captured = (original.min(snap) as usize).min(body.len() - 4);
                let fragment_start = offset + 12;
                let bytes = fragment_start..fragment_start + captured;
                NextCaptureRecord::Packet(CapturedPacket {
                    bytes,
                    end: record_end,
                    ts_ns: None,
                    link: interface.link,
                    original,
                })
            }
            // The enhanced packet, and the old one with 16 bits each for interface and drops.
            2 | 6 if body.len() >= 20 => {
                let index = match kind {
                    6 => u32_at(body, 0, is_big_endian) as usize,
                    _ => usize::from(u16_at(body, 0, is_big_endian)),
                };
                let Some(interface) = interfaces.get(index) else {
                    return NextCaptureRecord::Lost { reason: "a packet of an interface that is not there" };
                };
                let time = u64::from(u32_at(body, 4, is_big_endian)) << 32
                    | u64::from(u32_at(body, 8, is_big_endian));
                let (captured, original) =
                    (u32_at(body, 12, is_big_endian) as usize, u32_at(body, 16, is_big_endian));
                if captured > body.len() - 20 {
                    return NextCaptureRecord::Lost { reason: "a packet longer than its block" };
                }
                let payload_start = offset + 28;
                NextCaptureRecord::Packet(CapturedPacket {
                    bytes: payload_start..payload_start + captured,
                    end: record_end,
                    ts_ns: interface.nanos(time),
                    link: interface.link,
                    original,
                })
            }
            2 | 3 | 6 => NextCaptureRecord::Lost { reason: "a packet block that is cut short" },
            _ => NextCaptureRecord::Skip { end: record_end },
        }
    }
}

impl CaptureInterface {
    fn nanos(&self, time: u64) -> Option<i64> {
        let ns = match self.unit {
            TimestampUnit::Ten(n @ 0..=9) => i128::from(time) * 10i128.pow(9 - u32::from(n)),
            TimestampUnit::Ten(n) => i128::from(time) / 10i128.checked_pow(u32::from(n) - 9)?,
            TimestampUnit::Two(n @ 0..=63) => (i128::from(time) * 1_000_000_000) >> n,
            TimestampUnit::Two(_) => 0,
        };
        i64::try_from(ns + i128::from(self.offset_s) * 1_000_000_000).ok()
    }
}

fn interface(body: &[u8], is_big_endian: bool) -> Option<CaptureInterface> {
    let head = body.get(..8)?;
    let (link, snap) = (u16_at(head, 0, is_big_endian), u32_at(head, 4, is_big_endian));
    let mut this = CaptureInterface { link, snap, unit: TimestampUnit::Ten(6), offset_s: 0 };
    let mut options = &body[8..];
    while let Some(head) = options.first_chunk::<4>() {
        let (code, length) = (u16_at(head, 0, is_big_endian), usize::from(u16_at(head, 2, is_big_endian)));
        let value = options.get(4..4 + length)?;
        match (code, value) {
            (0, _) => break,
            (9, [n]) if n & 0x80 != 0 => this.unit = TimestampUnit::Two(n & 0x7f),
            (9, [n]) => this.unit = TimestampUnit::Ten(*n),
            (14, _) if length == 8 => {
                let bytes = value.try_into().expect("eight bytes");
                this.offset_s =
                    if is_big_endian { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) };
            }
            _ => {}
        }
        options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(this)
}

#[inline]
fn pcap_record(rest: &[u8], offset: usize, header: PcapHeader) -> NextCaptureRecord {
    let PcapHeader { magic: PcapMagic { is_big_endian, fraction_ns }, link, is_journal } = header;
    let Some(head) = rest.first_chunk::<RECORD_HEAD>() else { return NextCaptureRecord::More };
    let (seconds, fraction) = (u32_at(head, 0, is_big_endian), u32_at(head, 4, is_big_endian));
    let (captured, original) = (u32_at(head, 8, is_big_endian) as usize, u32_at(head, 12, is_big_endian));
    if captured > BLOCK_BYTES_MAX {
        return NextCaptureRecord::Lost { reason: "a packet with an impossible length" };
    }
    let ts_ns = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * fraction_ns;
    let packet_start = offset + RECORD_HEAD;
    if is_journal && captured == 0 {
        return NextCaptureRecord::Dropped { count: original, ts_ns, end: packet_start };
    }
    if rest.len() < RECORD_HEAD + captured {
        return NextCaptureRecord::More;
    }
    let record_end = packet_start + captured;
    NextCaptureRecord::Packet(CapturedPacket {
        bytes: packet_start..record_end,
        end: record_end,
        ts_ns: Some(ts_ns),
        link,
        original,
    })
}

fn pcap_magic(magic: [u8; 4]) -> Option<PcapMagic> {
    match magic {
        [0xa1, 0xb2, 0xc3, 0xd4] => Some(PcapMagic { is_big_endian: true, fraction_ns: 1000 }),
        [0xd4, 0xc3, 0xb2, 0xa1] => Some(PcapMagic { is_big_endian: false, fraction_ns: 1000 }),
        [0xa1, 0xb2, 0x3c, 0x4d] => Some(PcapMagic { is_big_endian: true, fraction_ns: 1 }),
        [0x4d, 0x3c, 0xb2, 0xa1] => Some(PcapMagic { is_big_endian: false, fraction_ns: 1 }),
        _ => None,
    }
}

fn u16_at(bytes: &[u8], offset: usize, is_big_endian: bool) -> u16 {
    let b = [bytes[offset], bytes[offset + 1]];
    if is_big_endian { u16::from_be_bytes(b) } else { u16::from_le_bytes(b) }
}

#[inline]
fn u32_at(bytes: &[u8], offset: usize, is_big_endian: bool) -> u32 {
    let b = bytes[offset..offset + 4].try_into().expect("four bytes");
    if is_big_endian { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) }
}

const NG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
pub(super) const FILE_HEAD: usize = 24;
pub(super) const RECORD_HEAD: usize = 16;

/// Interfaces of one section; more count as damage.
const INTERFACES_MAX: usize = 4096;
