//! The framing of messages in files, captures and logs.

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
    /// A number of four bytes before each message, and nothing that shows the end of the message.
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
    /// Returns the number of bytes before each message that are not part of the message.
    pub(super) const fn head_bytes(self) -> usize {
        match self {
            StreamFraming::Cme => 5,
            StreamFraming::Moex => 4,
            _ => 0,
        }
    }

    /// Returns whether a packet may have several messages.
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
    /// A message begins here. Only decoding shows its end.
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
        reason: &'static str,
    },
    End,
}

/// Goes through an input.
pub(super) struct PacketReader<'s> {
    pub source: InputBuffer<'s>,
    framing: StreamFraming,
    pub buffer_offset: usize,
    walker: Option<CaptureWalker>,
    fragments: IpReassembler,
    is_hex_text: bool,
    line_number: u64,
    has_begun: bool,
}

impl<'s> PacketReader<'s> {
    pub fn new(source: InputBuffer<'s>, framing: StreamFraming) -> Self {
        Self {
            source,
            framing,
            buffer_offset: 0,
            walker: None,
            fragments: IpReassembler::default(),
            is_hex_text: false,
            line_number: 0,
            has_begun: false,
        }
    }

    /// Reads until `wanted` bytes are buffered or the input ends. It does not wait for more bytes.
    pub fn fill(&mut self, wanted: usize) -> Result<bool, Error> {
        if self.bytes_buffered() < wanted && !self.source.eof {
            self.source.read(self.buffer_offset, wanted)?;
            self.buffer_offset = 0;
        }
        Ok(self.bytes_buffered() >= wanted)
    }

    /// Returns whether the source lacks bytes that may still arrive.
    fn lacks(&self, wanted: usize) -> bool {
        self.bytes_buffered() < wanted && !self.source.eof
    }

    /// Counts the buffered bytes that are not read yet.
    pub fn bytes_buffered(&self) -> usize {
        self.source.bytes().len() - self.buffer_offset
    }

    fn offset(&self) -> u64 {
        self.source.input_offset + self.buffer_offset as u64
    }

    /// Reads the next packet or message.
    pub fn next(&mut self) -> Result<NextPacket, Error> {
        if !self.has_begun {
            if self.lacks(4) {
                return Ok(NextPacket::More(4));
            }
            self.has_begun = true;
            let head = self.source.bytes();
            let packets =
                matches!(self.framing, StreamFraming::Frames | StreamFraming::Cme | StreamFraming::Emdi);
            self.walker = (packets && is_capture(head)).then(CaptureWalker::default);
            // `hh:mm:ss`; a length would be a million of millions.
            self.is_hex_text = self.framing == StreamFraming::HexLines
                || self.framing == StreamFraming::Cme
                    && matches!(head, [b'0'..=b'9', b'0'..=b'9', b':', b'0'..=b'9', ..]);
        }
        if self.walker.is_some() {
            return self.captured();
        }
        if self.is_hex_text {
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
                let (offset, from) = (self.offset(), self.buffer_offset);
                Ok(NextPacket::Open { offset, from })
            }
            StreamFraming::LengthPrefix => self.block(),
            _ => self.frame(),
        }
    }

    /// Ends the stream with a fault: nothing after this offset can be decoded.
    fn end_with_fault(&mut self, code: MessageFaultCode, reason: &'static str) -> Result<NextPacket, Error> {
        let offset = self.offset();
        self.skip_to_end()?;
        Ok(NextPacket::Bad { offset, code, reason })
    }

    /// Skips the rest of the input and returns its length in bytes.
    pub fn skip_to_end(&mut self) -> Result<u64, Error> {
        let packet_start = self.offset();
        loop {
            self.buffer_offset = self.source.bytes().len();
            if !self.fill(1)? {
                return Ok(self.offset() - packet_start);
            }
        }
    }

    fn packet(&mut self, head: usize, length: usize) -> Result<NextPacket, Error> {
        if length > MESSAGE_BYTES_MAX {
            return self.end_with_fault(MessageFaultCode::TooLarge, "a length of more than 16 MiB");
        }
        if self.lacks(head + length) {
            return Ok(NextPacket::More(head + length));
        }
        if self.bytes_buffered() < head + length {
            return self.end_with_fault(MessageFaultCode::Truncated, "the input ends inside the packet");
        }
        let payload_start = self.buffer_offset + head;
        self.buffer_offset = payload_start + length;
        Ok(NextPacket::Packet {
            offset: self.source.input_offset + payload_start as u64,
            from: payload_start,
            to: self.buffer_offset,
        })
    }

    fn frame(&mut self) -> Result<NextPacket, Error> {
        if self.lacks(4) {
            return Ok(NextPacket::More(4));
        }
        if self.bytes_buffered() < 4 {
            return self.end_with_fault(MessageFaultCode::Truncated, "the input ends inside a length");
        }
        let length =
            self.source.bytes()[self.buffer_offset..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        self.packet(4, length as usize)
    }

    fn block(&mut self) -> Result<NextPacket, Error> {
        let bytes = &self.source.bytes()[self.buffer_offset..];
        if bytes.len() < 5 && !bytes.iter().any(|b| *b >= 0x80) && !self.source.eof {
            return Ok(NextPacket::More(0));
        }
        let Some(stop) = bytes.iter().take(5).position(|b| *b >= 0x80) else {
            if bytes.len() < 5 {
                return self.end_with_fault(MessageFaultCode::Truncated, "the input ends inside a length");
            }
            return self.end_with_fault(MessageFaultCode::D2, "a length of a block that does not end");
        };
        let length = bytes[..=stop].iter().fold(0u64, |length, b| length << 7 | u64::from(b & 0x7f));
        if length == 0 {
            let offset = self.offset();
            self.buffer_offset += stop + 1;
            return Ok(NextPacket::Bad {
                offset,
                code: MessageFaultCode::D12,
                reason: MessageFaultCode::D12.text(),
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
            let (offset, record) = (
                self.source.input_offset + self.buffer_offset as u64,
                walker.next(self.source.bytes(), self.buffer_offset),
            );
            match record {
                NextCaptureRecord::More if self.source.eof => {
                    return self
                        .end_with_fault(MessageFaultCode::Truncated, "the capture ends inside a record");
                }
                NextCaptureRecord::More => return Ok(NextPacket::More(0)),
                NextCaptureRecord::Lost { reason } => {
                    return self.end_with_fault(MessageFaultCode::Garbage, reason);
                }
                NextCaptureRecord::Skip { end } | NextCaptureRecord::Dropped { end, .. } => {
                    self.buffer_offset = end
                }
                NextCaptureRecord::Packet(packet) => {
                    self.buffer_offset = packet.end;
                    let bytes = &self.source.bytes()[packet.bytes.clone()];
                    let bad =
                        |reason| Ok(NextPacket::Bad { offset, code: MessageFaultCode::Garbage, reason });
                    match capture::udp(packet.link, bytes, packet.is_cut()) {
                        UdpParseOutcome::Datagram(datagram) => {
                            let payload_start = packet.bytes.start + datagram.payload.start;
                            let payload_end = packet.bytes.start + datagram.payload.end;
                            return Ok(NextPacket::Packet {
                                offset: self.source.input_offset + payload_start as u64,
                                from: payload_start,
                                to: payload_end,
                            });
                        }
                        UdpParseOutcome::Other => {}
                        UdpParseOutcome::Cut(_) => {
                            return bad("a datagram of which the capture has only a part");
                        }
                        UdpParseOutcome::Fragment(part) => {
                            let counts_before = self.fragments.counts();
                            let full_datagram = self.fragments.add(&part, bytes, packet.ts_ns);
                            if let Some(full_datagram) = full_datagram {
                                return Ok(NextPacket::Text {
                                    offset,
                                    bytes: full_datagram.payload.to_vec(),
                                });
                            }
                            let now = self.fragments.counts();
                            if now.contradicting > counts_before.contradicting {
                                return bad("a fragment that contradicts others of its datagram");
                            }
                            if now.wrong_checksums > counts_before.wrong_checksums {
                                return bad("a datagram of fragments whose checksum differs");
                            }
                            if now.incomplete > counts_before.incomplete {
                                return bad("a datagram of which fragments are missing, before this place");
                            }
                        }
                        UdpParseOutcome::Bad(reason) => return bad(reason),
                    }
                }
            }
        }
    }

    /// Ends a capture. Incomplete datagrams count as one bad packet; after it, there is nothing more.
    fn fragments_end(&mut self) -> NextPacket {
        let counts_before = self.fragments.counts();
        self.fragments.finish();
        match self.fragments.counts().incomplete > counts_before.incomplete {
            true => NextPacket::Bad {
                offset: self.offset(),
                code: MessageFaultCode::Garbage,
                reason: "datagrams of which fragments are missing, at the end of the capture",
            },
            false => NextPacket::End,
        }
    }

    /// Reads a line of hexadecimal digits and skips empty lines.
    fn line(&mut self) -> Result<NextPacket, Error> {
        loop {
            let bytes = &self.source.bytes()[self.buffer_offset..];
            let line_length = memchr::memchr(b'\n', bytes);
            if line_length.is_none() && !self.source.eof {
                if bytes.len() > 2 * MESSAGE_BYTES_MAX {
                    return self.end_with_fault(MessageFaultCode::TooLarge, "a line of more than 32 MiB");
                }
                return Ok(NextPacket::More(0));
            }
            let line = &bytes[..line_length.unwrap_or(bytes.len())];
            if line_length.is_none() && line.is_empty() {
                return Ok(NextPacket::End);
            }
            let offset = self.line_number;
            self.line_number += 1;
            let consumed_len = line_length.map_or(line.len(), |end| end + 1);
            let text = match self.framing {
                StreamFraming::Cme => line.rsplit(|b| *b == b']').next().unwrap_or(line),
                _ => line,
            };
            let hex_bytes = hex(text);
            let empty = text.trim_ascii().is_empty();
            self.buffer_offset += consumed_len;
            match hex_bytes {
                Some(_) if empty => {}
                Some(bytes) => return Ok(NextPacket::Text { offset, bytes }),
                None => {
                    return Ok(NextPacket::Bad {
                        offset,
                        code: MessageFaultCode::Garbage,
                        reason: "a line that is not hexadecimal",
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
