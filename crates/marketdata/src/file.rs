//! Packets out of files: captures, and samples of packets with their lengths before them.

use crate::engine::Packet;
use crate::error::Error;
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use unitape_base::capture::{
    CaptureWalker, IpReassembler, NextCaptureRecord, ReassemblyCounts, UdpParseOutcome, is_capture, udp,
};
use unitape_model::UnixNanos;

/// Reads a file, packet by packet.
#[derive(Debug)]
pub struct PacketFile {
    path: PathBuf,
    file: File,
    bytes: Vec<u8>,
    /// Offset of `bytes` in the file, and the next item in it.
    base: u64,
    at: usize,
    ended: bool,
    sort: PacketFileFormat,
    counts: PacketFileCounts,
    fragments: IpReassembler,
    /// The payload of the datagram that its last fragment made whole.
    whole: Vec<u8>,
}

#[derive(Debug)]
enum PacketFileFormat {
    Capture(CaptureWalker),
    /// Packets with four bytes of length before each, the lowest first; all were sent to this address.
    Frames(SocketAddr),
}

/// Counts of the contents of a file, with those that are no packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketFileCounts {
    /// Packets that were returned.
    pub packets: u64,
    /// Packets of other protocols.
    pub others: u64,
    /// Datagrams of which there is only a part, fragments of datagrams that never became whole, and packets that contradict
    /// themselves.
    pub unusable: u64,
    /// Fragments, and what became of them.
    pub fragments: ReassemblyCounts,
    /// Datagrams that were dropped when the capture was made, as far as the capture records it.
    pub dropped: u64,
    /// Bytes after damage.
    pub lost_bytes: u64,
}

/// A packet, and where it is.
#[derive(Debug)]
struct PacketLocation {
    to: SocketAddr,
    ts_recv: UnixNanos,
    from: usize,
    end: usize,
    /// Its payload was put together of fragments.
    is_whole: bool,
}

/// Replaces a receive time that the file does not have: all of its packets arrived at once.
const NO_TIME: UnixNanos = UnixNanos(0);

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// The largest packet, in bytes; a datagram has less.
const PACKET_BYTES_MAX: usize = 1 << 20;

impl PacketFile {
    /// Opens a capture. With `to`, opens packets with their lengths before them that were sent to this address.
    ///
    /// # Errors
    /// If the file cannot be read, if it is a capture and `to` is given, or if it is no capture and `to` is missing.
    pub fn open(path: &Path, to: Option<SocketAddr>) -> Result<Self, Error> {
        let fail = |source| Error::Read { path: path.to_owned(), offset: 0, source };
        let mut this = Self {
            path: path.to_owned(),
            file: File::open(path).map_err(fail)?,
            bytes: Vec::with_capacity(2 * READ_BYTES),
            base: 0,
            at: 0,
            ended: false,
            sort: PacketFileFormat::Capture(CaptureWalker::default()),
            counts: PacketFileCounts::default(),
            fragments: IpReassembler::default(),
            whole: Vec::new(),
        };
        this.read()?;
        match (is_capture(&this.bytes), to) {
            (true, None) => {}
            (true, Some(_)) => {
                return Err(Error::ChannelOfCapture { path: this.path });
            }
            (false, Some(to)) => this.sort = PacketFileFormat::Frames(to),
            (false, None) => {
                let what =
                    "no capture; for packets with their lengths before them say of which channel they are";
                return Err(this.wrong(what));
            }
        }
        Ok(this)
    }

    /// Counts of the contents so far.
    #[must_use]
    pub fn counts(&self) -> PacketFileCounts {
        let fragments = self.fragments.counts();
        let never_whole = fragments.incomplete + fragments.contradicting + fragments.wrong_checksums;
        PacketFileCounts { fragments, unusable: self.counts.unusable + never_whole, ..self.counts }
    }

    /// Returns the next packet, or none at the end. A packet is valid until the next call.
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged so that nothing after can be found.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot lend")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let found = match &self.sort {
            PacketFileFormat::Capture(_) => self.captured()?,
            PacketFileFormat::Frames(to) => {
                let to = *to;
                self.framed()?.map(|(from, end)| PacketLocation {
                    to,
                    ts_recv: NO_TIME,
                    from,
                    end,
                    is_whole: false,
                })
            }
        };
        Ok(found.map(|PacketLocation { to, ts_recv, from, end, is_whole }| {
            self.counts.packets += 1;
            let place = self.base + from as u64;
            let payload = if is_whole { &self.whole[..] } else { &self.bytes[from..end] };
            Packet { to, ts_recv, place, payload }
        }))
    }

    #[inline]
    fn captured(&mut self) -> Result<Option<PacketLocation>, Error> {
        loop {
            let PacketFileFormat::Capture(walker) = &mut self.sort else { unreachable!("asked for it") };
            match walker.next(&self.bytes, self.at) {
                NextCaptureRecord::Packet(packet) => {
                    self.at = packet.end;
                    match udp(packet.link, &self.bytes[packet.bytes.clone()], packet.is_cut()) {
                        UdpParseOutcome::Datagram(datagram) => {
                            let from = packet.bytes.start + datagram.payload.start;
                            let end = packet.bytes.start + datagram.payload.end;
                            let (to, ts_recv) = (datagram.to, packet.ts_ns.map_or(NO_TIME, UnixNanos));
                            return Ok(Some(PacketLocation { to, ts_recv, from, end, is_whole: false }));
                        }
                        UdpParseOutcome::Fragment(part) => {
                            let bytes = &self.bytes[packet.bytes.clone()];
                            if let Some(whole) = self.fragments.add(&part, bytes, packet.ts_ns) {
                                self.whole.clear();
                                self.whole.extend_from_slice(whole.payload);
                                // Its place is that of the fragment that came last.
                                let (from, end) = (packet.bytes.start + part.bytes.start, packet.end);
                                let (to, ts_recv) = (whole.to, packet.ts_ns.map_or(NO_TIME, UnixNanos));
                                return Ok(Some(PacketLocation { to, ts_recv, from, end, is_whole: true }));
                            }
                        }
                        UdpParseOutcome::Other => self.counts.others += 1,
                        UdpParseOutcome::Cut(_) | UdpParseOutcome::Bad(_) => self.counts.unusable += 1,
                    }
                }
                NextCaptureRecord::Skip { end } => self.at = end,
                NextCaptureRecord::Dropped { count, end, .. } => {
                    self.counts.dropped += u64::from(count);
                    self.at = end;
                }
                NextCaptureRecord::More if !self.ended => self.read()?,
                NextCaptureRecord::More => {
                    self.fragments.finish();
                    self.counts.lost_bytes += (self.bytes.len() - self.at) as u64;
                    self.at = self.bytes.len();
                    return Ok(None);
                }
                NextCaptureRecord::Lost { what } => return Err(self.wrong(what)),
            }
        }
    }

    fn framed(&mut self) -> Result<Option<(usize, usize)>, Error> {
        loop {
            let left = &self.bytes[self.at..];
            let length = left.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
            match length {
                Some(length) if length > PACKET_BYTES_MAX => {
                    return Err(self.wrong("a length of more than 1 MiB"));
                }
                Some(length) if left.len() >= 4 + length => {
                    let from = self.at + 4;
                    self.at = from + length;
                    return Ok(Some((from, from + length)));
                }
                _ if !self.ended => self.read()?,
                _ => {
                    self.counts.lost_bytes += left.len() as u64;
                    self.at = self.bytes.len();
                    return Ok(None);
                }
            }
        }
    }

    /// Reads more bytes after those that are still unused.
    fn read(&mut self) -> Result<(), Error> {
        self.bytes.drain(..self.at);
        self.base += self.at as u64;
        self.at = 0;
        let before = self.bytes.len();
        let read = (&mut self.file).take(READ_BYTES as u64).read_to_end(&mut self.bytes);
        self.ended = self.bytes.len() == before;
        let offset = self.base + self.bytes.len() as u64;
        read.map(drop).map_err(|source| Error::Read { path: self.path.clone(), offset, source })
    }

    fn wrong(&self, what: &'static str) -> Error {
        Error::Container { path: self.path.clone(), offset: self.base + self.at as u64, what }
    }
}
