//! The messages of the protocol, and their bytes.
//!
//! All numbers are little-endian. Every message begins with this head:
//!
//! ```text
//!   0        4     5     6      8          12         16               24               32
//!  ┌────────┬─────┬─────┬──────┬──────────┬──────────┬────────────────┬────────────────┐
//!  │ "utlk" │ ver │kind │ zero │ length   │ crc32c   │ receiver       │ number         │ body
//!  └────────┴─────┴─────┴──────┴──────────┴──────────┴────────────────┴────────────────┘
//! ```
//!
//! `length` counts the whole message. `crc32c` covers the whole message with these four bytes zero. `receiver` and `number`
//! are the session: a receiver chooses `receiver` at random when it starts, and raises `number` each time that it asks.
//! The head, the kind `Hello` and the reply address of a hello are the same in all versions of the protocol. So a sender
//! can refuse a receiver of another version.
//!
//! The bodies, with offsets from the start of the message:
//!
//! ```text
//! 1 Hello, receiver ─▶ sender: "send me the tape from this position"
//!   32               48     50     52         56               72              80           88
//!  ┌────────────────┬──────┬──────┬──────────┬────────────────┬───────────────┬────────────┐
//!  │ reply IPv6     │ port │flags │ tail crc │ tape id        │ segment bytes │ position   │
//!  └────────────────┴──────┴──────┴──────────┴────────────────┴───────────────┴────────────┘
//!   88            96               104     108       112         120
//!  ┌─────────────┬────────────────┬───────┬─────────┬───────────┬──────────────────
//!  │ tail        │ first segment  │ count │ raw crc │ raw bytes │ count × u32 …
//!  └─────────────┴────────────────┴───────┴─────────┴───────────┴──────────────────
//!   flags: bit 0, the receiver has a tape; without it all that follows is zero. IPv4 addresses are mapped (::ffff:a.b.c.d).
//!   The u32 are checksums of segments, `tail crc` that of the frames from `tail` to `position`; see `TapeFingerprint`.
//!   raw bytes: the length of the receiver's quarantine.raw, raw crc: the checksum of all of it.
//!
//! 2 Acknowledge, receiver ─▶ sender: also the sign of life
//!   32           40          48          56          64          72
//!  ┌────────────┬───────────┬───────────┬───────────┬───────────┐
//!  │ committed  │ durable   │ pending   │ raw bytes │ flags     │
//!  └────────────┴───────────┴───────────┴───────────┴───────────┘
//!   pending: bytes that came of a unit that is not whole yet. flags: bit 0, the receiver leaves.
//!
//! 3 Welcome, sender ─▶ receiver
//!   32               48              56           64          72
//!  ┌────────────────┬───────────────┬────────────┬───────────┐
//!  │ tape id        │ segment bytes │ position   │ end       │
//!  └────────────────┴───────────────┴────────────┴───────────┘
//!   position: that of the hello. end: where the sender's tape ends now.
//!
//! 4 Data, sender ─▶ receiver
//!   32           40          48          56
//!  ┌────────────┬───────────┬───────────┬──────────────────
//!  │ position   │ offset    │ raw bytes │ frames …
//!  └────────────┴───────────┴───────────┴──────────────────
//!   The frames have no stamps. position: where the tape ends before the unit to which the first byte belongs. offset: bytes
//!   of that unit in earlier messages. Several units share a message, a large unit spans several. raw bytes: the length of
//!   quarantine.raw that comes before these frames.
//!
//! 5 Announce, sender ─▶ receiver: also the sign of life
//!   32           40          48          56          64
//!  ┌────────────┬───────────┬───────────┬───────────┐
//!  │ end        │ offset    │ raw bytes │ flags     │
//!  └────────────┴───────────┴───────────┴───────────┘
//!   end: up to here the sender has sent whole units. offset: bytes that it has sent of the next one. raw bytes: the length
//!   of quarantine.raw that it has sent. flags: bit 0, the tape has no writer and ends here.
//!
//! 6 Finish, sender ─▶ receiver: the session has ended. No body.
//!
//! 7 Refuse, sender ─▶ receiver
//!   32     34     36
//!  ┌──────┬──────┬──────────────────
//!  │ code │ zero │ UTF-8 text …
//!  └──────┴──────┴──────────────────
//!
//! 8 Raw, sender ─▶ receiver: a part of quarantine.raw
//!   32           40
//!  ┌────────────┬──────────────────
//!  │ offset     │ bytes …
//!  └────────────┴──────────────────
//! ```

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use unitape_model::{LINE, Position};
use unitape_tape::TapeId;

use crate::fingerprint::TapeFingerprint;
use crate::raw_log::RawState;

/// The version of the protocol that this build speaks.
pub const PROTOCOL_VERSION: u8 = 1;

/// Bytes before the frames of a data message.
pub const DATA_HEAD_BYTES: usize = 56;

/// Bytes of a hello before the checksums of segments.
pub const HELLO_HEAD_BYTES: usize = 120;

/// Bytes before those of the raw log in a message.
pub const RAW_HEAD_BYTES: usize = 40;

/// The longest text of a refusal, in bytes.
pub const REFUSAL_TEXT_BYTES_MAX: usize = 1024;

/// A session: one question of one receiver, and all that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId {
    /// The receiver, by a number that it chose when it started.
    pub receiver: u64,
    /// The number of the question.
    pub number: u64,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A receiver asks for a tape.
    Hello(Hello),
    /// A receiver reports how far it is.
    Acknowledge(Acknowledge),
    /// A sender accepts a hello.
    Welcome(Welcome),
    /// A part of the tape.
    Data(Data<'a>),
    /// A sender reports how far it has sent.
    Announce(Announce),
    /// A sender ends the session.
    Finish,
    /// A sender refuses a hello, or ends a session because of a failure.
    Refuse(Refusal),
    /// A part of the raw bytes of quarantine.
    Raw(Raw<'a>),
}

/// A receiver's question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The address at which the receiver listens.
    pub reply_to: SocketAddr,
    /// The receiver's tape, if it has one.
    pub tape: Option<HelloTape>,
}

/// What a receiver already has of a tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelloTape {
    /// Identity of the tape.
    pub id: TapeId,
    /// Bytes of frames in a segment.
    pub segment_bytes: u64,
    /// The end of the receiver's tape.
    pub position: Position,
    /// Checksums of what comes before the position.
    pub fingerprint: TapeFingerprint,
    /// What the receiver has of the raw bytes of quarantine.
    pub raw: RawState,
}

/// A report of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledge {
    /// The end of the receiver's tape.
    pub committed: Position,
    /// What comes before this survives a power loss at the receiver.
    pub durable: Position,
    /// Bytes of an incomplete unit after `committed`.
    pub pending: u64,
    /// The length of the receiver's raw log.
    pub raw_bytes: u64,
    /// The receiver ends the session.
    pub is_leaving: bool,
}

/// The acceptance of a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Identity of the sender's tape.
    pub tape: TapeId,
    /// Bytes of frames in a segment.
    pub segment_bytes: u64,
    /// The first data message continues here.
    pub position: Position,
    /// Where the sender's tape ends now.
    pub end: Position,
}

/// A part of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// Where the tape ends before the unit to which the first byte belongs.
    pub position: Position,
    /// Bytes of that unit in earlier messages.
    pub offset: u64,
    /// The length of the raw log that comes before these frames.
    pub raw_bytes: u64,
    /// Frames without stamps.
    pub frames: &'a [u8],
}

/// A part of the raw bytes of quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a> {
    /// Where the bytes begin in the raw log.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// A report of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announce {
    /// The sender has sent all units before this.
    pub end: Position,
    /// Bytes that the sender has sent of the next unit.
    pub offset: u64,
    /// The length of the raw log that the sender has sent.
    pub raw_bytes: u64,
    /// The tape has no writer, and ends here.
    pub is_closed: bool,
}

/// Why a sender does not send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: RefusalReason,
    /// The reason with its places, for people.
    pub text: String,
}

/// The reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The receiver speaks another version of the protocol.
    Version,
    /// The receiver has another tape.
    OtherTape,
    /// The receiver's segments have another size.
    OtherSegmentSize,
    /// The receiver has other bytes before its position.
    OtherBytes,
    /// The sender's tape ends before the receiver's.
    Behind,
    /// The sender no longer has what comes after the receiver's position.
    Retained,
    /// The sender's tape is damaged.
    Damage,
    /// The sender cannot read its tape.
    Failed,
    /// The sender serves as many receivers as it can.
    Busy,
    /// A reason of a later build.
    Unknown,
}

impl RefusalReason {
    const CODES: [(Self, u16); 9] = [
        (Self::Version, 1),
        (Self::OtherTape, 2),
        (Self::OtherSegmentSize, 3),
        (Self::OtherBytes, 4),
        (Self::Behind, 5),
        (Self::Retained, 6),
        (Self::Damage, 7),
        (Self::Failed, 8),
        (Self::Busy, 9),
    ];

    fn code(self) -> u16 {
        Self::CODES.iter().find(|(reason, _)| *reason == self).map_or(0, |(_, code)| *code)
    }

    fn from_code(code: u16) -> Self {
        Self::CODES
            .iter()
            .find(|(_, listed_code)| *listed_code == code)
            .map_or(Self::Unknown, |(reason, _)| *reason)
    }
}

/// Why bytes are no message of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireFault {
    /// The bytes do not begin with the head of a message, or have another length than the head says.
    #[error("the bytes are no message of a link")]
    NoMessage,
    /// The checksum differs.
    #[error("the checksum of the message differs")]
    Checksum,
    /// The message is of another version of the protocol.
    #[error("the message is of version {0} of the protocol, this build speaks {PROTOCOL_VERSION}")]
    Version(u8),
    /// The kind is unknown.
    #[error("kind {0} of a message is unknown")]
    Kind(u8),
    /// The body is not that of its kind.
    #[error("the body of the message is wrong: {0}")]
    Body(&'static str),
}

const MAGIC: [u8; 4] = *b"utlk";
const HEAD_BYTES: usize = 32;
const CRC: usize = 12;
const FLAG: u64 = 1;

impl<'a> Message<'a> {
    /// Decodes a message.
    ///
    /// # Errors
    /// Fails if the bytes are no message of this version of the protocol.
    pub fn decode(bytes: &'a [u8]) -> Result<(SessionId, Self), WireFault> {
        let session = decode_head(bytes)?;
        if bytes[4] != PROTOCOL_VERSION {
            return Err(WireFault::Version(bytes[4]));
        }
        let body = Body(bytes);
        let message = match bytes[5] {
            1 => Self::Hello(body.parse_hello()?),
            2 => {
                body.check_length(72)?;
                Self::Acknowledge(Acknowledge {
                    committed: body.position(32)?,
                    durable: body.position(40)?,
                    pending: body.u64_at(48),
                    raw_bytes: body.u64_at(56),
                    is_leaving: body.u64_at(64) & FLAG != 0,
                })
            }
            3 => {
                body.check_length(72)?;
                Self::Welcome(Welcome {
                    tape: TapeId(body.u128_at(32)),
                    segment_bytes: body.u64_at(48),
                    position: body.position(56)?,
                    end: body.position(64)?,
                })
            }
            4 => {
                let frames = bytes.get(DATA_HEAD_BYTES..).unwrap_or_default();
                if frames.is_empty() || !frames.len().is_multiple_of(LINE) {
                    return Err(WireFault::Body("the frames are not some whole lines"));
                }
                let offset = body.u64_at(40);
                if !offset.is_multiple_of(LINE as u64) {
                    return Err(WireFault::Body("the offset is no multiple of a line"));
                }
                Self::Data(Data { position: body.position(32)?, offset, raw_bytes: body.u64_at(48), frames })
            }
            5 => {
                body.check_length(64)?;
                Self::Announce(Announce {
                    end: body.position(32)?,
                    offset: body.u64_at(40),
                    raw_bytes: body.u64_at(48),
                    is_closed: body.u64_at(56) & FLAG != 0,
                })
            }
            6 => {
                body.check_length(HEAD_BYTES)?;
                Self::Finish
            }
            7 => {
                let text = bytes.get(36..).ok_or(WireFault::Body("the refusal is too short"))?;
                if text.len() > REFUSAL_TEXT_BYTES_MAX {
                    return Err(WireFault::Body("the text is too long"));
                }
                let text = std::str::from_utf8(text).map_err(|_| WireFault::Body("the text is not UTF-8"))?;
                Self::Refuse(Refusal {
                    reason: RefusalReason::from_code(body.u16_at(32)),
                    text: text.to_owned(),
                })
            }
            8 => match bytes.get(RAW_HEAD_BYTES..) {
                Some(raw) if !raw.is_empty() => Self::Raw(Raw { offset: body.u64_at(32), bytes: raw }),
                _ => return Err(WireFault::Body("there are no raw bytes")),
            },
            kind => return Err(WireFault::Kind(kind)),
        };
        Ok((session, message))
    }

    /// Writes the message into `out`, in the place of what is there.
    pub fn encode(&self, session: SessionId, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[PROTOCOL_VERSION, self.kind(), 0, 0]);
        out.extend_from_slice(&[0; 8]);
        push_u64(out, session.receiver);
        push_u64(out, session.number);
        match self {
            Self::Hello(hello) => hello.encode(out),
            Self::Acknowledge(acknowledge) => {
                push_u64(out, acknowledge.committed.0);
                push_u64(out, acknowledge.durable.0);
                push_u64(out, acknowledge.pending);
                push_u64(out, acknowledge.raw_bytes);
                push_u64(out, u64::from(acknowledge.is_leaving));
            }
            Self::Welcome(welcome) => {
                out.extend_from_slice(&welcome.tape.0.to_le_bytes());
                push_u64(out, welcome.segment_bytes);
                push_u64(out, welcome.position.0);
                push_u64(out, welcome.end.0);
            }
            Self::Data(data) => {
                push_u64(out, data.position.0);
                push_u64(out, data.offset);
                push_u64(out, data.raw_bytes);
                out.extend_from_slice(data.frames);
            }
            Self::Announce(announce) => {
                push_u64(out, announce.end.0);
                push_u64(out, announce.offset);
                push_u64(out, announce.raw_bytes);
                push_u64(out, u64::from(announce.is_closed));
            }
            Self::Finish => {}
            Self::Raw(raw) => {
                push_u64(out, raw.offset);
                out.extend_from_slice(raw.bytes);
            }
            Self::Refuse(refusal) => {
                out.extend_from_slice(&refusal.reason.code().to_le_bytes());
                out.extend_from_slice(&[0; 2]);
                let length = refusal.text.floor_char_boundary(REFUSAL_TEXT_BYTES_MAX);
                out.extend_from_slice(&refusal.text.as_bytes()[..length]);
            }
        }
        seal_message(out);
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => KIND_HELLO,
            Self::Acknowledge(_) => 2,
            Self::Welcome(_) => 3,
            Self::Data(_) => 4,
            Self::Announce(_) => 5,
            Self::Finish => 6,
            Self::Refuse(_) => 7,
            Self::Raw(_) => 8,
        }
    }
}

const KIND_HELLO: u8 = 1;

impl Hello {
    fn encode(&self, out: &mut Vec<u8>) {
        let ip = match self.reply_to.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        out.extend_from_slice(&ip.octets());
        out.extend_from_slice(&self.reply_to.port().to_le_bytes());
        out.extend_from_slice(&u16::from(self.tape.is_some()).to_le_bytes());
        let Some(tape) = &self.tape else { return out.resize(HELLO_HEAD_BYTES, 0) };
        out.extend_from_slice(&tape.fingerprint.tail_crc.to_le_bytes());
        out.extend_from_slice(&tape.id.0.to_le_bytes());
        push_u64(out, tape.segment_bytes);
        push_u64(out, tape.position.0);
        push_u64(out, tape.fingerprint.tail.0);
        push_u64(out, tape.fingerprint.first_segment);
        out.extend_from_slice(&(tape.fingerprint.segment_crcs.len() as u32).to_le_bytes());
        out.extend_from_slice(&tape.raw.crc.to_le_bytes());
        push_u64(out, tape.raw.bytes);
        for crc in &tape.fingerprint.segment_crcs {
            out.extend_from_slice(&crc.to_le_bytes());
        }
    }
}

/// Returns the session and the reply address of a hello of another version.
pub(crate) fn decode_foreign_hello(bytes: &[u8]) -> Option<(SessionId, SocketAddr)> {
    let session = decode_head(bytes).ok()?;
    let is_hello = bytes[5] == KIND_HELLO && bytes.len() >= 50;
    is_hello.then(|| (session, Body(bytes).reply_to()))
}

/// Returns the session of a message of any version.
pub(crate) fn decode_session(bytes: &[u8]) -> Option<SessionId> {
    decode_head(bytes).ok()
}

/// Checks the head of a message of any version, and returns its session.
fn decode_head(bytes: &[u8]) -> Result<SessionId, WireFault> {
    let body = Body(bytes);
    if bytes.len() < HEAD_BYTES || bytes[..4] != MAGIC || body.u32_at(8) as usize != bytes.len() {
        return Err(WireFault::NoMessage);
    }
    if body.u32_at(CRC) != checksum(bytes) {
        return Err(WireFault::Checksum);
    }
    Ok(SessionId { receiver: body.u64_at(16), number: body.u64_at(24) })
}

/// Writes length and checksum into the head of a message.
fn seal_message(message: &mut [u8]) {
    let length = u32::try_from(message.len()).expect("a message has at most 2 MiB");
    message[8..CRC].copy_from_slice(&length.to_le_bytes());
    let crc = checksum(message);
    message[CRC..CRC + 4].copy_from_slice(&crc.to_le_bytes());
}

fn checksum(message: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&message[..CRC]);
    let crc = crc32c::crc32c_append(crc, &[0; 4]);
    crc32c::crc32c_append(crc, &message[CRC + 4..])
}

fn push_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// A message with a checked head. The methods that read numbers panic beyond its end; their callers check the length.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn check_length(&self, length: usize) -> Result<(), WireFault> {
        match self.0.len() == length {
            true => Ok(()),
            false => Err(WireFault::Body("the length is not that of its kind")),
        }
    }

    fn position(&self, offset: usize) -> Result<Position, WireFault> {
        let position = self.u64_at(offset);
        if position > POSITION_MAX || !position.is_multiple_of(LINE as u64) {
            return Err(WireFault::Body("a position is no multiple of a line, or too large"));
        }
        Ok(Position(position))
    }

    fn parse_hello(&self) -> Result<Hello, WireFault> {
        if self.0.len() < HELLO_HEAD_BYTES {
            return Err(WireFault::Body("the hello is too short"));
        }
        let reply_to = self.reply_to();
        if self.u16_at(50) & 1 == 0 {
            self.check_length(HELLO_HEAD_BYTES)?;
            return Ok(Hello { reply_to, tape: None });
        }
        let crcs = &self.0[HELLO_HEAD_BYTES..];
        if crcs.len() as u64 != u64::from(self.u32_at(104)) * 4 {
            return Err(WireFault::Body("the count of checksums differs from the length"));
        }
        let first_segment = self.u64_at(96);
        if first_segment > POSITION_MAX / LINE as u64 {
            return Err(WireFault::Body("the first segment is too large"));
        }
        let segment_crcs = crcs.as_chunks().0.iter().map(|crc| u32::from_le_bytes(*crc)).collect();
        let (tail, position) = (self.position(88)?, self.position(80)?);
        if tail > position {
            return Err(WireFault::Body("the tail begins after the position"));
        }
        let fingerprint = TapeFingerprint { first_segment, segment_crcs, tail, tail_crc: self.u32_at(52) };
        let raw = RawState { bytes: self.u64_at(112), crc: self.u32_at(108) };
        let (id, segment_bytes) = (TapeId(self.u128_at(56)), self.u64_at(72));
        let tape = HelloTape { id, segment_bytes, position, fingerprint, raw };
        Ok(Hello { reply_to, tape: Some(tape) })
    }

    fn reply_to(&self) -> SocketAddr {
        let ip = Ipv6Addr::from(self.u128_at(32).to_le_bytes());
        SocketAddr::new(IpAddr::V6(ip).to_canonical(), self.u16_at(48))
    }

    fn u16_at(&self, offset: usize) -> u16 {
        u16::from_le_bytes(self.array_at(offset))
    }

    fn u32_at(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.array_at(offset))
    }

    fn u64_at(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.array_at(offset))
    }

    fn u128_at(&self, offset: usize) -> u128 {
        u128::from_le_bytes(self.array_at(offset))
    }

    fn array_at<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.0[offset..offset + N].try_into().expect("N bytes")
    }
}

/// No tape has a greater position.
const POSITION_MAX: u64 = 1 << 62;
