//! Where messages begin and end: what is around them in files, captures and logs.

use super::fault::MessageFaultCode;
use unitape_base::Error;
use unitape_base::InputBuffer;
use unitape_base::capture::{
    self, CaptureWalker, IpReassembler, NextCaptureRecord, UdpParseOutcome, is_capture,
};

/// The largest packet or message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// How messages are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamFraming {
    /// A message with its length before it, four bytes, the lowest first; or one in each datagram of a capture.
    #[default]
    Frames,
    /// Frames with a number of four bytes and a channel of one before each message, as CME has it; or the lines of a
    /// log with the bytes in hexadecimal after the last bracket.
    Cme,
    /// A number of four bytes before each message, and nothing that shows where it ends.
    Moex,
    /// Packets as in `Frames`, each of any number of messages; the first is its header.
    Emdi,
    /// Blocks of messages, each with its length before it as a FAST integer.
    LengthPrefix,
    /// Messages back to back.
    Raw,
    /// A message in hexadecimal in each line.
    HexLines,
}

impl StreamFraming {
    /// Bytes before a message that are none of its own.
    pub(super) const fn head_bytes(self) -> usize {
        match self {
            StreamFraming::Cme => 5,
            StreamFraming::Moex => 4,
            _ => 0,
        }
    }

    /// Whether a packet may have several messages.
    pub(super) const fn many(self) -> bool {
        matches!(self, StreamFraming::Emdi | StreamFraming::LengthPrefix)
    }
}

/// The next part of the input.
#[derive(Debug)]
pub(super) enum NextPacket {
    /// A packet: the bytes from `from` to `to`, with their offset in the file.
    Packet {
        offset: u64,
        from: usize,
        to: usize,
    },
    /// A packet that was written out as text; in which line.
    Text {
        offset: u64,
        bytes: Vec<u8>,
    },
    /// A message begins here; only decoding shows where it ends.
    Open {
        offset: u64,
        from: usize,
    },
    /// More bytes are needed; the total, or 0 if it is unknown.
    More(usize),
    /// No packet.
    Bad {
        offset: u64,
        code: MessageFaultCode,
        what: &'static str,
    },
    End,
}

/// Goes through an input.
pub(super) struct PacketReader<'s> {
    pub source: InputBuffer<'s>,
    framing: StreamFraming,
    pub at: usize,
    walker: Option<CaptureWalker>,
    fragments: IpReassembler,
    text: bool,
    lines: u64,
    begun: bool,
}

impl<'s> PacketReader<'s> {
    pub fn new(source: InputBuffer<'s>, framing: StreamFraming) -> Self {
        Self {
            source,
            framing,
            at: 0,
            walker: None,
            fragments: IpReassembler::default(),
            text: false,
            lines: 0,
            begun: false,
        }
    }

    /// Makes `wanted` bytes of what comes next be there, if there are; waits no longer for any more.
    pub fn fill(&mut self, wanted: usize) -> Result<bool, Error> {
        if self.bytes_buffered() < wanted && !self.source.eof {
            self.source.read(self.at, wanted)?;
            self.at = 0;
        }
        Ok(self.bytes_buffered() >= wanted)
    }

    /// Whether this many bytes are not there yet.
    fn lacks(&self, wanted: usize) -> bool {
        self.bytes_buffered() < wanted && !self.source.eof
    }

    /// Bytes there of what comes next.
    pub fn bytes_buffered(&self) -> usize {
        self.source.bytes().len() - self.at
    }

    fn offset(&self) -> u64 {
        self.source.base + self.at as u64
    }

    /// The next packet or message.
    pub fn next(&mut self) -> Result<NextPacket, Error> {
        if !self.begun {
            if self.lacks(4) {
                return Ok(NextPacket::More(4));
            }
            self.begun = true;
            let head = self.source.bytes();
            let packets =
                matches!(self.framing, StreamFraming::Frames | StreamFraming::Cme | StreamFraming::Emdi);
            self.walker = (packets && is_capture(head)).then(CaptureWalker::default);
            // `hh:mm:ss`; a length would be a million of millions.
            self.text = self.framing == StreamFraming::HexLines
                || self.framing == StreamFraming::Cme
                    && matches!(head, [b'0'..=b'9', b'0'..=b'9', b':', b'0'..=b'9', ..]);
        }
        if self.walker.is_some() {
            return self.captured();
        }
        if self.text {
            return self.line();
        }
        if self.lacks(1) {
            return Ok(NextPacket::More(1));
        }
        if self.bytes_buffered() == 0 {
            return Ok(NextPacket::End);
        }
        match self.framing {
            StreamFraming::Moex | StreamFraming::Raw => {
                let (offset, from) = (self.offset(), self.at);
                Ok(NextPacket::Open { offset, from })
            }
            StreamFraming::LengthPrefix => self.block(),
            _ => self.frame(),
        }
    }

    /// Nothing after this place can be decoded.
    fn lost(&mut self, code: MessageFaultCode, what: &'static str) -> Result<NextPacket, Error> {
        let offset = self.offset();
        self.skip_to_end()?;
        Ok(NextPacket::Bad { offset, code, what })
    }

    /// Passes over all there is; how much that was.
    pub fn skip_to_end(&mut self) -> Result<u64, Error> {
        let from = self.offset();
        loop {
            self.at = self.source.bytes().len();
            if !self.fill(1)? {
                return Ok(self.offset() - from);
            }
        }
    }

    fn packet(&mut self, head: usize, length: usize) -> Result<NextPacket, Error> {
        if length > MESSAGE_BYTES_MAX {
            return self.lost(MessageFaultCode::TooLarge, "a length of more than 16 MiB");
        }
        if self.lacks(head + length) {
            return Ok(NextPacket::More(head + length));
        }
        if self.bytes_buffered() < head + length {
            return self.lost(MessageFaultCode::Truncated, "the input ends inside the packet");
        }
        let from = self.at + head;
        self.at = from + length;
        Ok(NextPacket::Packet { offset: self.source.base + from as u64, from, to: self.at })
    }

    fn frame(&mut self) -> Result<NextPacket, Error> {
        if self.lacks(4) {
            return Ok(NextPacket::More(4));
        }
        if self.bytes_buffered() < 4 {
            return self.lost(MessageFaultCode::Truncated, "the input ends inside a length");
        }
        let length = self.source.bytes()[self.at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        self.packet(4, length as usize)
    }

    fn block(&mut self) -> Result<NextPacket, Error> {
        let bytes = &self.source.bytes()[self.at..];
        if bytes.len() < 5 && !bytes.iter().any(|b| *b >= 0x80) && !self.source.eof {
            return Ok(NextPacket::More(0));
        }
        let Some(stop) = bytes.iter().take(5).position(|b| *b >= 0x80) else {
            if bytes.len() < 5 {
                return self.lost(MessageFaultCode::Truncated, "the input ends inside a length");
            }
            return self.lost(MessageFaultCode::D2, "a length of a block that does not end");
        };
        let length = bytes[..=stop].iter().fold(0u64, |length, b| length << 7 | u64::from(b & 0x7f));
        if length == 0 {
            let offset = self.offset();
            self.at += stop + 1;
            return Ok(NextPacket::Bad {
                offset,
                code: MessageFaultCode::D12,
                what: MessageFaultCode::D12.text(),
            });
        }
        self.packet(stop + 1, length as usize)
    }

    fn captured(&mut self) -> Result<NextPacket, Error> {
        loop {
            if self.lacks(1) {
                return Ok(NextPacket::More(1));
            }
            if self.bytes_buffered() == 0 {
                return Ok(self.fragments_end());
            }
            let walker = self.walker.get_or_insert_default();
            let (offset, found) =
                (self.source.base + self.at as u64, walker.next(self.source.bytes(), self.at));
            match found {
                NextCaptureRecord::More if self.source.eof => {
                    return self.lost(MessageFaultCode::Truncated, "the capture ends inside a record");
                }
                NextCaptureRecord::More => return Ok(NextPacket::More(0)),
                NextCaptureRecord::Lost { what } => return self.lost(MessageFaultCode::Garbage, what),
                NextCaptureRecord::Skip { end } | NextCaptureRecord::Dropped { end, .. } => self.at = end,
                NextCaptureRecord::Packet(packet) => {
                    self.at = packet.end;
                    let bytes = &self.source.bytes()[packet.bytes.clone()];
                    let bad = |what| Ok(NextPacket::Bad { offset, code: MessageFaultCode::Garbage, what });
                    match capture::udp(packet.link, bytes, packet.is_cut()) {
                        UdpParseOutcome::Datagram(datagram) => {
                            let from = packet.bytes.start + datagram.payload.start;
                            let to = packet.bytes.start + datagram.payload.end;
                            return Ok(NextPacket::Packet {
                                offset: self.source.base + from as u64,
                                from,
                                to,
                            });
                        }
                        UdpParseOutcome::Other => {}
                        UdpParseOutcome::Cut(_) => {
                            return bad("a datagram of which the capture has only a part");
                        }
                        UdpParseOutcome::Fragment(part) => {
                            let before = self.fragments.counts();
                            let whole = self.fragments.add(&part, bytes, packet.ts_ns);
                            if let Some(whole) = whole {
                                return Ok(NextPacket::Text { offset, bytes: whole.payload.to_vec() });
                            }
                            let now = self.fragments.counts();
                            if now.contradicting > before.contradicting {
                                return bad("a fragment that contradicts others of its datagram");
                            }
                            if now.wrong_checksums > before.wrong_checksums {
                                return bad("a datagram of fragments whose checksum differs");
                            }
                            if now.incomplete > before.incomplete {
                                return bad("a datagram of which fragments are missing, before this place");
                            }
                        }
                        UdpParseOutcome::Bad(what) => return bad(what),
                    }
                }
            }
        }
    }

    /// The end of a capture: datagrams of which fragments are missing are one bad packet, and then there is nothing more.
    fn fragments_end(&mut self) -> NextPacket {
        let before = self.fragments.counts();
        self.fragments.finish();
        match self.fragments.counts().incomplete > before.incomplete {
            true => NextPacket::Bad {
                offset: self.offset(),
                code: MessageFaultCode::Garbage,
                what: "datagrams of which fragments are missing, at the end of the capture",
            },
            false => NextPacket::End,
        }
    }

    /// A line of hexadecimal digits; empty ones are passed over.
    fn line(&mut self) -> Result<NextPacket, Error> {
        loop {
            let bytes = &self.source.bytes()[self.at..];
            let end = memchr::memchr(b'\n', bytes);
            if end.is_none() && !self.source.eof {
                if bytes.len() > 2 * MESSAGE_BYTES_MAX {
                    return self.lost(MessageFaultCode::TooLarge, "a line of more than 32 MiB");
                }
                return Ok(NextPacket::More(0));
            }
            let line = &bytes[..end.unwrap_or(bytes.len())];
            if end.is_none() && line.is_empty() {
                return Ok(NextPacket::End);
            }
            let offset = self.lines;
            self.lines += 1;
            let seen = end.map_or(line.len(), |end| end + 1);
            let text = match self.framing {
                StreamFraming::Cme => line.rsplit(|b| *b == b']').next().unwrap_or(line),
                _ => line,
            };
            let found = hex(text);
            let empty = text.trim_ascii().is_empty();
            self.at += seen;
            match found {
                Some(_) if empty => {}
                Some(bytes) => return Ok(NextPacket::Text { offset, bytes }),
                None => {
                    return Ok(NextPacket::Bad {
                        offset,
                        code: MessageFaultCode::Garbage,
                        what: "a line that is not hexadecimal",
                    });
                }
            }
        }
    }
}

/// Pairs of digits, with white space between them or without.
fn hex(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.iter().filter(|b| !b.is_ascii_whitespace());
    let digits: Option<Vec<u8>> = digits.map(|b| char::from(*b).to_digit(16).map(|d| d as u8)).collect();
    let digits = digits?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}
