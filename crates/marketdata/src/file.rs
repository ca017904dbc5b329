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
    capture_path: PathBuf,
    capture_file: File,
    bytes: Vec<u8>,
    /// Offset of `bytes` in the file, and the next item in it.
    bytes_offset: u64,
    buffer_offset: usize,
    has_ended: bool,
    format: PacketFileFormat,
    file_counts: PacketFileCounts,
    fragments: IpReassembler,
    /// The payload of the datagram that its last fragment made whole.
    datagram_payload: Vec<u8>,
}

#[derive(Debug)]
enum PacketFileFormat {
    Capture(CaptureWalker),
    /// Packets with four bytes of length before each, the lowest first; all were sent to this address.
    Frames(SocketAddr),
}

/// Counts of the contents of a file, including contents that are no packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketFileCounts {
    /// Packets that were returned.
    pub packets: u64,
    /// Packets of other protocols.
    pub other_packets: u64,
    /// Incomplete datagrams, fragments of datagrams that never became complete, and packets that contradict themselves.
    pub unusable: u64,
    /// Fragments, and the results of their reassembly.
    pub fragments: ReassemblyCounts,
    /// Datagrams that were dropped when the capture was made, as far as the capture records it.
    pub dropped: u64,
    /// Bytes after damage.
    pub lost_bytes: u64,
}

/// A packet's location.
#[derive(Debug)]
struct PacketLocation {
    destination: SocketAddr,
    ts_recv: UnixNanos,
    payload_start: usize,
    payload_end: usize,
    /// The payload was assembled from fragments.
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
    /// Fails if the file cannot be read, if it is a capture and `to` is given, or if it is no capture and `to` is
    /// missing.
    pub fn open(path: &Path, to: Option<SocketAddr>) -> Result<Self, Error> {
        let fail = |source| Error::Read { path: path.to_owned(), offset: 0, source };
        let mut this = Self {
            capture_path: path.to_owned(),
            capture_file: File::open(path).map_err(fail)?,
            bytes: Vec::with_capacity(2 * READ_BYTES),
            bytes_offset: 0,
            buffer_offset: 0,
            has_ended: false,
            format: PacketFileFormat::Capture(CaptureWalker::default()),
            file_counts: PacketFileCounts::default(),
            fragments: IpReassembler::default(),
            datagram_payload: Vec::new(),
        };
        this.read_more()?;
        match (is_capture(&this.bytes), to) {
            (true, None) => {}
            (true, Some(_)) => {
                return Err(Error::ChannelOfCapture { path: this.capture_path });
            }
            (false, Some(to)) => this.format = PacketFileFormat::Frames(to),
            (false, None) => {
                let reason =
                    "no capture; for packets with their lengths before them say of which channel they are";
                return Err(this.container_error(reason));
            }
        }
        Ok(this)
    }

    /// Counts of the contents so far.
    #[must_use]
    pub fn counts(&self) -> PacketFileCounts {
        let fragments = self.fragments.counts();
        let never_whole = fragments.incomplete + fragments.contradicting + fragments.wrong_checksums;
        PacketFileCounts { fragments, unusable: self.file_counts.unusable + never_whole, ..self.file_counts }
    }

    /// Returns the next packet, or `None` at the end. A packet is valid until the next call.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if damage hides the rest of the file.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot lend")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let location = match &self.format {
            PacketFileFormat::Capture(_) => self.next_captured()?,
            PacketFileFormat::Frames(to) => {
                let to = *to;
                self.next_framed()?.map(|(from, end)| PacketLocation {
                    destination: to,
                    ts_recv: NO_TIME,
                    payload_start: from,
                    payload_end: end,
                    is_whole: false,
                })
            }
        };
        Ok(location.map(
            |PacketLocation { destination: to, ts_recv, payload_start: from, payload_end: end, is_whole }| {
                self.file_counts.packets += 1;
                let position = self.bytes_offset + from as u64;
                let payload = if is_whole { &self.datagram_payload[..] } else { &self.bytes[from..end] };
                Packet { to, ts_recv, position, payload }
            },
        ))
    }

    #[inline]
    fn next_captured(&mut self) -> Result<Option<PacketLocation>, Error> {
        loop {
            let PacketFileFormat::Capture(walker) = &mut self.format else { unreachable!("asked for it") };
            match walker.next(&self.bytes, self.buffer_offset) {
                NextCaptureRecord::Packet(packet) => {
                    self.buffer_offset = packet.end;
                    match udp(packet.link, &self.bytes[packet.bytes.clone()], packet.is_cut()) {
                        UdpParseOutcome::Datagram(datagram) => {
                            let payload_start = packet.bytes.start + datagram.payload.start;
                            let payload_end = packet.bytes.start + datagram.payload.end;
                            let (to, ts_recv) = (datagram.to, packet.ts_ns.map_or(NO_TIME, UnixNanos));
                            return Ok(Some(PacketLocation {
                                destination: to,
                                ts_recv,
                                payload_start,
                                payload_end,
                                is_whole: false,
                            }));
                        }
                        UdpParseOutcome::Fragment(part) => {
                            let bytes = &self.bytes[packet.bytes.clone()];
                            if let Some(full_datagram) = self.fragments.add(&part, bytes, packet.ts_ns) {
                                self.datagram_payload.clear();
                                self.datagram_payload.extend_from_slice(full_datagram.payload);
                                // Its place is that of the fragment that came last.
                                let (from, end) = (packet.bytes.start + part.bytes.start, packet.end);
                                let (to, ts_recv) =
                                    (full_datagram.to, packet.ts_ns.map_or(NO_TIME, UnixNanos));
                                return Ok(Some(PacketLocation {
                                    destination: to,
                                    ts_recv,
                                    payload_start: from,
                                    payload_end: end,
                                    is_whole: true,
                                }));
                            }
                        }
                        UdpParseOutcome::Other => self.file_counts.other_packets += 1,
                        UdpParseOutcome::Cut(_) | UdpParseOutcome::Bad(_) => self.file_counts.unusable += 1,
                    }
                }
                NextCaptureRecord::Skip { end } => self.buffer_offset = end,
                NextCaptureRecord::Dropped { count, end, .. } => {
                    self.file_counts.dropped += u64::from(count);
                    self.buffer_offset = end;
                }
                NextCaptureRecord::More if !self.has_ended => self.read_more()?,
                NextCaptureRecord::More => {
                    self.fragments.finish();
                    self.file_counts.lost_bytes += (self.bytes.len() - self.buffer_offset) as u64;
                    self.buffer_offset = self.bytes.len();
                    return Ok(None);
                }
                NextCaptureRecord::Lost { reason } => return Err(self.container_error(reason)),
            }
        }
    }

    fn next_framed(&mut self) -> Result<Option<(usize, usize)>, Error> {
        loop {
            let unread_bytes = &self.bytes[self.buffer_offset..];
            let length = unread_bytes.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
            match length {
                Some(length) if length > PACKET_BYTES_MAX => {
                    return Err(self.container_error("a length of more than 1 MiB"));
                }
                Some(length) if unread_bytes.len() >= 4 + length => {
                    let packet_start = self.buffer_offset + 4;
                    self.buffer_offset = packet_start + length;
                    return Ok(Some((packet_start, packet_start + length)));
                }
                _ if !self.has_ended => self.read_more()?,
                _ => {
                    self.file_counts.lost_bytes += unread_bytes.len() as u64;
                    self.buffer_offset = self.bytes.len();
                    return Ok(None);
                }
            }
        }
    }

    /// Reads more bytes after the unused ones.
    fn read_more(&mut self) -> Result<(), Error> {
        self.bytes.drain(..self.buffer_offset);
        self.bytes_offset += self.buffer_offset as u64;
        self.buffer_offset = 0;
        let old_length = self.bytes.len();
        let read_result = (&mut self.capture_file).take(READ_BYTES as u64).read_to_end(&mut self.bytes);
        self.has_ended = self.bytes.len() == old_length;
        let offset = self.bytes_offset + self.bytes.len() as u64;
        read_result.map(drop).map_err(|source| Error::Read {
            path: self.capture_path.clone(),
            offset,
            source,
        })
    }

    fn container_error(&self, reason: &'static str) -> Error {
        Error::Container {
            path: self.capture_path.clone(),
            offset: self.bytes_offset + self.buffer_offset as u64,
            reason,
        }
    }
}
