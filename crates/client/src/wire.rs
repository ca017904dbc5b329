//! The messages between a client and a data server.
//!
//! ```text
//!  private channel, TLS 1.3: each message is   length u32 │ JSON
//!      client  {"login": …}                 {"query": …}             {"query": …}
//!      server            {"welcome": …}              {"answer": …}            {"refusal": …}
//!
//!  data channel, TCP, for one answer
//!      client  "UNIDATA1" │ ticket, 32 bytes │ first u32, count u32 │ first, count │ …
//!      server                                │ block │ block │ …
//!      block   index u32 │ bytes u32 │ CRC-32C u32 │ the bytes as they lie in the store
//! ```
//!
//! Numbers are little-endian. Who opens a data channel without a ticket that is good gets nothing, not even a reason. A block that
//! is damaged has [`UNREADABLE`] in the place of its length, one that the server's system refuses to read has [`REFUSED`]; both have no
//! bytes.

use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use unitape_model::UnixNanos;
use unitape_store::{AnswerIndex, Day, ReadDepth, ScanFilter, TickSchema};

/// The version of both channels.
pub const VERSION: u32 = 1;
/// The longest message of a client: names of instruments, for the most part.
pub const CLIENT_MESSAGE_MAX: usize = 4 << 20;
/// The longest message of a server.
pub const SERVER_MESSAGE_MAX: usize = 256 << 20;
/// The first bytes of a data channel.
pub const DATA_MAGIC: &[u8; 8] = b"UNIDATA1";
/// The length of a block that is missing or cut short in the store.
pub const UNREADABLE: u32 = u32::MAX;
/// The length of a block that the server's system refuses to read.
pub const REFUSED: u32 = u32::MAX - 1;

/// A message of a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum ClientMessage {
    /// The first message: who it is.
    Login(Login),
    /// A question.
    Query(DataQuery),
}

/// A user and its password.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The version that the client speaks.
    pub version: u32,
    /// The name of the account.
    pub user: String,
    /// The password.
    pub password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Login({})", self.user)
    }
}

/// What is asked of a dataset.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataQuery {
    /// The dataset: a store, by the name under which it is served.
    pub dataset: String,
    /// Rows or events.
    pub depth: ReadDepth,
    /// The schemas; all if there are none.
    #[serde(default)]
    pub schemas: Vec<TickSchema>,
    /// The instruments; all if there are none.
    #[serde(default)]
    pub symbols: Vec<String>,
    /// Event time from here on, in nanoseconds since 1970.
    #[serde(default)]
    pub since_ns: Option<i64>,
    /// Event time before this.
    #[serde(default)]
    pub until_ns: Option<i64>,
    /// The day.
    #[serde(default)]
    pub date: Option<Day>,
    /// The venue.
    #[serde(default)]
    pub venue: Option<String>,
}

impl DataQuery {
    /// Makes the query of a filter. A server answers from the newest state of a store, whatever `as_of` is.
    pub fn new(dataset: &str, depth: ReadDepth, filter: &ScanFilter) -> Self {
        Self {
            dataset: dataset.to_owned(),
            depth,
            schemas: filter.schemas.clone(),
            symbols: filter.symbols.clone(),
            since_ns: filter.from.map(|ts| ts.0),
            until_ns: filter.to.map(|ts| ts.0),
            date: filter.date,
            venue: filter.venue.clone(),
        }
    }

    /// Returns the filter of the query.
    pub fn filter(&self) -> ScanFilter {
        ScanFilter {
            as_of: None,
            symbols: self.symbols.clone(),
            from: self.since_ns.map(UnixNanos),
            to: self.until_ns.map(UnixNanos),
            date: self.date,
            schemas: self.schemas.clone(),
            venue: self.venue.clone(),
        }
    }
}

/// A message of a server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum ServerMessage {
    /// The user is known.
    Welcome(Welcome),
    /// The answer to a query.
    Answer(AnswerMessage),
    /// A message was refused.
    Refusal(Refusal),
}

/// The answer to a log-in.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Welcome {
    /// The version that the server speaks.
    pub version: u32,
    /// The port of the data channel, on the address of the private one.
    pub data_port: u16,
    /// The datasets of which the user may see something.
    pub datasets: Vec<String>,
}

/// The private part of an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerMessage {
    /// 32 random bytes, in hexadecimal digits, which open one data channel.
    pub ticket: String,
    /// Heads of blocks, keys and names.
    pub index: AnswerIndex,
}

/// Why a message was refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// The reason, for people.
    pub text: String,
    /// Whether another question would have been answered.
    pub is_call: bool,
}

/// Writes a message.
///
/// # Errors
/// Fails if the channel does, or if the message has more than 4 GiB.
pub fn write_message(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    out.write_all(&bytes)?;
    // It may have had a key or a password.
    bytes.fill(0);
    std::hint::black_box(&bytes);
    out.flush()
}

/// Reads a message of at most `bytes_max` bytes; `None` where the channel has ended before it.
///
/// # Errors
/// Fails if the channel does, if it ends within the message, or if the message is too long or not understood.
pub fn read_message<T: for<'de> Deserialize<'de>>(
    input: &mut impl Read,
    bytes_max: usize,
) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    let mut filled_bytes = 0;
    while filled_bytes < length.len() {
        match input.read(&mut length[filled_bytes..]) {
            Ok(0) if filled_bytes == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => filled_bytes += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let length = u32::from_le_bytes(length) as usize;
    let wire_error = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    if length > bytes_max {
        return Err(wire_error(format!("a message of {length} bytes, where at most {bytes_max} are read")));
    }
    // As it comes, not as long as it says it is.
    let mut bytes = Vec::new();
    input.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let message =
        serde_json::from_slice(&bytes).map_err(|_| wire_error("a message that is not understood".to_owned()));
    bytes.fill(0);
    std::hint::black_box(&bytes);
    message.map(Some)
}

/// The head of a block on the data channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHead {
    /// Which block of the answer it is.
    pub index: u32,
    /// Its bytes, or [`UNREADABLE`] or [`REFUSED`].
    pub bytes: u32,
    /// Their CRC-32C.
    pub crc: u32,
}

impl BlockHead {
    /// Bytes of a head.
    pub const BYTES: usize = 12;

    /// Returns the head as it is sent.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        for (part, value) in out.chunks_exact_mut(4).zip([self.index, self.bytes, self.crc]) {
            part.copy_from_slice(&value.to_le_bytes());
        }
        out
    }

    /// Reads a head.
    pub fn decode(bytes: [u8; Self::BYTES]) -> Self {
        let value =
            |offset: usize| u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"));
        Self { index: value(0), bytes: value(4), crc: value(8) }
    }
}

/// Blocks that are asked for: `count` of them, from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// The index of the first one.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl BlockRequest {
    /// Bytes of a request.
    pub const BYTES: usize = 8;

    /// Returns the request as it is sent.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..4].copy_from_slice(&self.first.to_le_bytes());
        out[4..].copy_from_slice(&self.count.to_le_bytes());
        out
    }

    /// Reads a request.
    pub fn decode(bytes: [u8; Self::BYTES]) -> Self {
        let value =
            |offset: usize| u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"));
        Self { first: value(0), count: value(4) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A length that is believed would be memory that a stranger asks for.
    #[test]
    fn a_message_is_read_within_its_bounds() {
        let query = DataQuery::new("ticks", ReadDepth::Rows, &ScanFilter::default());
        let mut bytes = Vec::new();
        write_message(&mut bytes, &ClientMessage::Query(query)).unwrap();
        let read = |bytes: &[u8], max| read_message::<ClientMessage>(&mut &bytes[..], max);
        assert!(
            matches!(read(&bytes, 1 << 10), Ok(Some(ClientMessage::Query(query))) if query.dataset == "ticks")
        );
        assert!(matches!(read(&[], 1 << 10), Ok(None)));
        for end in 1..bytes.len() {
            assert_eq!(
                read(&bytes[..end], 1 << 10).unwrap_err().kind(),
                io::ErrorKind::UnexpectedEof,
                "{end}"
            );
        }
        assert_eq!(read(&bytes, bytes.len() - 5).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(&[255; 400], usize::MAX).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let error = read(b"\x09\0\0\0{\"gin\":1}", 1 << 10).unwrap_err();
        assert_eq!(error.to_string(), "a message that is not understood");
    }

    #[test]
    fn heads_and_requests_come_back() {
        let head = BlockHead { index: 1, bytes: UNREADABLE, crc: 0x0102_0304 };
        assert_eq!(BlockHead::decode(head.encode()), head);
        let request = BlockRequest { first: 7, count: u32::MAX };
        assert_eq!(BlockRequest::decode(request.encode()), request);
    }
}
