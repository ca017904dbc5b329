//! Both channels by hand, for clients that do not keep to the protocol.

use super::common::{ALL_CLASSES, Desk, SECRETS, query};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use unitape_client::wire::{
    AnswerMessage, BlockHead, BlockRequest, ClientMessage, DATA_MAGIC, Login, SERVER_MESSAGE_MAX,
    ServerMessage, UNREADABLE, VERSION, read_message, write_message,
};
use unitape_server::demand::CONNECTIONS_MAX;
use unitape_store::{AnswerReader, ReadDepth, ScanFilter};

/// A private channel.
struct Session(StreamOwned<ClientConnection, TcpStream>);

impl Session {
    /// Connects as a client that trusts the server's certificate as an authority.
    fn connect(desk: &Desk) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(desk.certificate.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(Arc::new(config), name).unwrap();
        Self(StreamOwned::new(tls, connect(desk.private)))
    }

    fn log_in(desk: &Desk) -> Self {
        let mut session = Self::connect(desk);
        let welcome = session.exchange(&login("quant", "quant's password"));
        assert!(matches!(welcome, Some(ServerMessage::Welcome(_))), "{welcome:?}");
        session
    }

    /// Sends a message; returns the answer, or `None` if the server closes.
    fn exchange(&mut self, message: &ClientMessage) -> Option<ServerMessage> {
        write_message(&mut self.0, message).ok()?;
        read_message(&mut self.0, SERVER_MESSAGE_MAX).ok()?
    }

    /// Sends any bytes. Returns whether the server closes without a word.
    fn is_closed_by(&mut self, bytes: &[u8]) -> bool {
        let sent = self.0.write_all(bytes).and_then(|()| self.0.flush());
        sent.is_err() || !matches!(self.0.read(&mut [0; 64]), Ok(1..))
    }

    fn answer(&mut self, depth: ReadDepth) -> AnswerMessage {
        let query = query("ticks", depth, &ScanFilter::default());
        match self.exchange(&ClientMessage::Query(query)) {
            Some(ServerMessage::Answer(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }
}

fn login(user: &str, password: &str) -> ClientMessage {
    ClientMessage::Login(Login { version: VERSION, user: user.to_owned(), password: password.to_owned() })
}

fn connect(address: std::net::SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Opens a data channel and asks for blocks. Returns the channel.
fn ask(desk: &Desk, magic: &[u8; 8], ticket: &[u8; 32], first: u32, count: u32) -> TcpStream {
    let mut stream = connect(desk.data);
    let opening = [&magic[..], ticket, &BlockRequest { first, count }.encode()].concat();
    // It may be closed before all is sent.
    _ = stream.write_all(&opening);
    stream
}

/// Reads to the end. A channel that the server closes while bytes of ours are unread ends with a reset.
fn received(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(e) if e.kind() != std::io::ErrorKind::ConnectionReset => panic!("{e}"),
        _ => bytes,
    }
}

fn parse_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|n| u8::from_str_radix(&text[n..n + 2], 16).unwrap()).collect()
}

fn bytes_of(ticket: &str) -> [u8; 32] {
    parse_hex(ticket).try_into().unwrap()
}

/// Reads blocks from a data channel, heads and all.
fn read_blocks(stream: &mut TcpStream, count: u32) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for _ in 0..count {
        let mut head = [0; BlockHead::BYTES];
        stream.read_exact(&mut head).ok()?;
        let head_values = BlockHead::decode(head);
        assert_ne!(head_values.bytes, UNREADABLE);
        bytes.extend(head);
        let mut block = vec![0; head_values.bytes as usize];
        stream.read_exact(&mut block).ok()?;
        bytes.extend(block);
    }
    Some(bytes)
}

fn block_count(answer: &AnswerMessage) -> u32 {
    let index = serde_json::to_value(&answer.index).unwrap();
    index["blocks"].as_array().unwrap().len() as u32
}

/// Longer than anything that a test waits for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Blocks of the store: of two days, three schemas of three instruments each, and the news.
const BLOCKS: u32 = 20;
const EVERYTHING: &str = "user = \"quant\"\ndataset = \"ticks\"\n";

/// A ticket is all that stands between a stranger and the bytes.
#[test]
fn a_ticket_opens_one_channel_of_its_session() {
    let desk = Desk::start(EVERYTHING);
    let mut session = Session::log_in(&desk);
    let answer = session.answer(ReadDepth::Rows);
    let (ticket, count) = (bytes_of(&answer.ticket), block_count(&answer));
    assert_eq!(count, BLOCKS);
    assert!(received(ask(&desk, DATA_MAGIC, &[0; 32], 0, 1)).is_empty(), "nobody's");
    assert!(received(ask(&desk, b"UNIDATA2", &ticket, 0, 1)).is_empty(), "another protocol");
    let mut channel = ask(&desk, DATA_MAGIC, &ticket, 0, count);
    assert!(read_blocks(&mut channel, count).is_some());
    assert!(
        received(ask(&desk, DATA_MAGIC, &ticket, 0, 1)).is_empty(),
        "used twice, while the first is open"
    );

    // Beyond the answer: the channel ends, with what was asked for before.
    for (first, more) in [(0, count + 1), (count, 1), (u32::MAX, 1), (1, u32::MAX), (u32::MAX, u32::MAX)] {
        let ticket = bytes_of(&session.answer(ReadDepth::Rows).ticket);
        assert!(received(ask(&desk, DATA_MAGIC, &ticket, first, more)).is_empty(), "{first} {more}");
    }
    let ticket = bytes_of(&session.answer(ReadDepth::Rows).ticket);
    let mut channel_of_two = ask(&desk, DATA_MAGIC, &ticket, count, 0);
    channel_of_two.write_all(&BlockRequest { first: count - 1, count: 1 }.encode()).unwrap();
    assert!(read_blocks(&mut channel_of_two, 1).is_some(), "no block at all is a request as well");

    // The session ends, and with it both channels that are open, and the ticket that nobody has used.
    let unused = bytes_of(&session.answer(ReadDepth::Rows).ticket);
    drop(session);
    let begun = Instant::now();
    while channel.write_all(&BlockRequest { first: 0, count: 1 }.encode()).is_ok()
        && read_blocks(&mut channel, 1).is_some()
    {
        assert!(begun.elapsed() < PATIENCE, "the channel outlives its session");
    }
    assert!(received(ask(&desk, DATA_MAGIC, &unused, 0, 1)).is_empty(), "after its session");
    desk.assert_log_is_clean(&[&answer.ticket]);
    assert!(desk.log().is_empty(), "who comes without a ticket is no trouble: {:?}", desk.log());
}

/// A recording of the data channel has no name, no key, and no class beyond the one that was granted.
#[test]
fn the_data_channel_shows_nothing() {
    let desk = Desk::start(&format!("{EVERYTHING}{ALL_CLASSES}"));
    let mut session = Session::log_in(&desk);
    let mut bytes_of_depth = Vec::new();
    for depth in [ReadDepth::Rows, ReadDepth::Events] {
        let answer = session.answer(depth);
        let count = block_count(&answer);
        let index = serde_json::to_value(&answer.index).unwrap();
        let mut channel = ask(&desk, DATA_MAGIC, &bytes_of(&answer.ticket), 0, count);
        let bytes = read_blocks(&mut channel, count).unwrap();
        let mut secrets: Vec<Vec<u8>> = SECRETS.iter().map(|name| name.as_bytes().to_vec()).collect();
        for leaf in index["leaves"].as_array().unwrap() {
            let key = leaf["key"].as_str().unwrap();
            secrets.extend([parse_hex(key), key.as_bytes().to_vec()]);
        }
        secrets.extend([
            b"c0ffee00".to_vec(),
            parse_hex("c0ffee00c0ffee00"),
            answer.ticket.clone().into_bytes(),
        ]);
        for secret in secrets {
            let is_there = bytes.windows(secret.len()).any(|window| window == secret);
            assert!(!is_there, "{}", secret.escape_ascii());
        }
        let reader = AnswerReader::new(answer.index, "ticks").unwrap();
        let sealed: usize = reader.block_sizes().iter().map(|size| *size as usize).sum();
        assert_eq!(bytes.len(), sealed + BlockHead::BYTES * count as usize);
        bytes_of_depth.push((count, bytes.len()));
    }
    let (rows, events) = (bytes_of_depth[0], bytes_of_depth[1]);
    assert_eq!(rows.0, events.0, "of the same blocks");
    assert!(rows.1 * 3 < events.1 * 2, "rows have no identity and no provenance: {rows:?} {events:?}");
}

/// A stranger's bytes end the stranger's connection, and nothing else.
#[test]
fn whoever_does_not_keep_to_the_protocol_is_closed() {
    let desk = Desk::start(EVERYTHING);
    let mut session = Session::log_in(&desk);
    let framed = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
    let before_log_in: [Vec<u8>; 7] = [
        u32::MAX.to_le_bytes().to_vec(),
        (16u32 << 10 | 1).to_le_bytes().to_vec(),
        framed("{\"query\":{\"dataset\":\"ticks\",\"depth\":\"rows\"}}"),
        framed("{\"login\":{\"version\":1,\"user\":\"quant\"}}"),
        framed(&format!(
            "{{\"login\":{{\"version\":1,\"password\":\"x\",\"user\":\"{}\"}}}}",
            "u".repeat(64 << 10)
        )),
        framed(&"[".repeat(10_000)),
        framed("\u{0}"),
    ];
    for bytes in before_log_in {
        let start = bytes[..bytes.len().min(60)].escape_ascii().to_string();
        assert!(Session::connect(&desk).is_closed_by(&bytes), "{start}");
    }
    // No TLS at all: whatever comes is an alert of TLS, and the end.
    let mut plain = connect(desk.private);
    plain.write_all(&framed("{\"login\":{}}")).unwrap();
    assert!(received(plain).len() < 64);
    let old = ClientMessage::Login(Login { version: 0, user: "quant".to_owned(), password: String::new() });
    assert!(matches!(Session::connect(&desk).exchange(&old), Some(ServerMessage::Refusal(_))));
    assert!(
        matches!(session.exchange(&login("other", "x")), Some(ServerMessage::Refusal(_))),
        "logged in twice"
    );
    assert_eq!(block_count(&session.answer(ReadDepth::Rows)), BLOCKS);
    for text in ["{\"query\":{\"dataset\":\"ticks\",\"depth\":\"all\"}}", "{\"query\":{}}", "{}", "null"] {
        assert!(Session::log_in(&desk).is_closed_by(&framed(text)), "{text}");
    }
    assert!(Session::log_in(&desk).is_closed_by(&(64u32 << 20).to_le_bytes()));
    assert_eq!(block_count(&session.answer(ReadDepth::Rows)), BLOCKS);
    assert!(desk.log().is_empty(), "{:?}", desk.log());
}

/// Connections beyond the limit are closed at once; the earlier ones continue, and one that ends makes room.
#[test]
fn a_flood_of_connections_stops_nobody_who_is_there() {
    // Both ends of all connections are files of this process.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let desk = Desk::start(EVERYTHING);
    let mut session = Session::log_in(&desk);
    let answer = session.answer(ReadDepth::Rows);
    let mut channel = ask(&desk, DATA_MAGIC, &bytes_of(&answer.ticket), 0, 1);
    assert!(read_blocks(&mut channel, 1).is_some());
    let flood: Vec<TcpStream> = (0..300).map(|_| connect(desk.private)).collect();
    let (_, beyond) = flood.split_at(CONNECTIONS_MAX);
    for stream in beyond {
        let end = (&*stream).read(&mut [0; 1]);
        assert!(matches!(&end, Ok(0)) || end.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset));
    }
    assert_eq!(block_count(&session.answer(ReadDepth::Rows)), BLOCKS);
    channel.write_all(&BlockRequest { first: 0, count: BLOCKS }.encode()).unwrap();
    assert!(read_blocks(&mut channel, BLOCKS).is_some());
    drop(flood);
    let begun = Instant::now();
    while desk.log_in_with("quant", "quant's password").is_err() {
        assert!(begun.elapsed() < PATIENCE, "nobody comes in any more");
    }
    // Silent data channels have a limit of their own.
    let idle: Vec<TcpStream> = (0..300).map(|_| connect(desk.data)).collect();
    desk.log_in_with("quant", "quant's password").unwrap();
    drop(idle);
}
