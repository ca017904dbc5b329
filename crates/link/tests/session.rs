//! A network that loses, doubles, delays and flips messages, and ends that die at any moment: the receiver's tape must never hold
//! anything but a prefix of the sender's, and must reach its end once the network is well again.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use unitape_link::raw_log::RawSource;
use unitape_link::session::SessionOptions;
use unitape_link::transport::Transport;
use unitape_link::transport::memory::{MemoryNetwork, MemoryTransport, NetworkFaults};
use unitape_link::wire::{Announce, Data, Hello, Message, RefusalReason, SessionId};
use unitape_link::{
    Error, RECEIVERS_MAX, ReceiverEvent, ReceiverOptions, SenderOptions, TapeReceiver, TapeSender,
};
use unitape_model::{
    ErrorCause, EventBuilder, EventField, EventKind, EventValue, FrameHeader, LINE, Position, UnixNanos,
    flags,
};
use unitape_tape::{ReadOptions, Reader, StartPosition, TapeId, TapeOrigin, Writer, WriterOptions};

const ID: TapeId = TapeId(0x5eed);
const SEGMENT: u64 = 16 << 10;

/// Nothing takes so long that is not stuck.
const STUCK: Duration = Duration::from_secs(300);

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % limit
    }
}

/// Directories in memory where there are such: a round opens and closes many tapes, and each is flushed.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn open(dir: &Path) -> Writer {
    Writer::open(dir, ID, WriterOptions { segment_bytes: SEGMENT, ..WriterOptions::default() }).unwrap().0
}

/// A unit of some frames, now and then one that is larger than a message of the network.
fn unit(random: &mut Random) -> Vec<u8> {
    let count = 1 + random.below(4);
    let mut unit = Vec::new();
    for index in 0..count {
        let lines = if random.below(30) == 0 { 100 } else { 1 + random.below(6) };
        let start = unit.len();
        unit.resize(start + lines as usize * LINE, random.below(256) as u8);
        let flags = if index + 1 == count { flags::LAST } else { 0 };
        FrameHeader::new_unstamped(20, flags, lines as u16).write(&mut unit[start..]);
    }
    unit
}

fn append(writer: &mut Writer, random: &mut Random, units: u64) {
    for _ in 0..units {
        writer.append(&unit(random)).unwrap();
    }
}

/// Puts a message into quarantine: its bytes first, then its event.
fn quarantine(dir: &Path, writer: &mut Writer, random: &mut Random) {
    let raw = vec![random.below(256) as u8; 1 + random.below(6000) as usize];
    let file = std::fs::File::options().append(true).create(true).open(dir.join("quarantine.raw"));
    let mut file = file.unwrap();
    let start = file.metadata().unwrap().len();
    file.write_all(&raw).unwrap();
    let mut unit = Vec::new();
    let mut event = EventBuilder::begin(&mut unit, EventKind::Quarantine, UnixNanos(0));
    event.set_field(EventField::Reason, EventValue::Text("syntax")).unwrap();
    event.set_field(EventField::Length, EventValue::UInt(raw.len() as u64)).unwrap();
    event.set_field(EventField::RawAt, EventValue::UInt(start)).unwrap();
    event.set_field(EventField::Hash, EventValue::Text(&blake3::hash(&raw).to_hex())).unwrap();
    event.finish(flags::LAST).unwrap();
    writer.append(&unit).unwrap();
}

fn make(dir: &Path, seed: u64, units: u64) {
    let mut writer = open(dir);
    append(&mut writer, &mut Random::new(seed), units);
    writer.close().unwrap();
}

/// All files of a closed tape but those of `run`, by name.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders: Vec<_> = dir.exists().then(|| dir.to_owned()).into_iter().collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            match path.is_dir() {
                true if name == "run" => {}
                true => folders.push(path),
                false => drop(all.insert(name, std::fs::read(&path).unwrap())),
            }
        }
    }
    all
}

fn frames(dir: &Path) -> Vec<u8> {
    let mut reader = Reader::open_with(dir, StartPosition::Oldest, ReadOptions::default()).unwrap();
    let mut all = Vec::new();
    while let Some(run) = reader.next_run(1 << 20).unwrap() {
        all.extend_from_slice(run.bytes);
    }
    all
}

fn session_options() -> SessionOptions {
    SessionOptions { window_bytes: 4096, data_bytes: 1024, ..SessionOptions::default() }
}

/// The longest message of the network: units span several.
const MESSAGE_BYTES_MAX: usize = 2048;

struct Link {
    network: MemoryNetwork,
    now: Duration,
    started: Instant,
}

impl Link {
    fn new(seed: u64, faults: NetworkFaults) -> Self {
        let network = MemoryNetwork::new(seed, faults, MESSAGE_BYTES_MAX);
        Self { network, now: Duration::from_secs(1), started: Instant::now() }
    }

    fn sender(&self, dir: &Path, once: bool) -> TapeSender<MemoryTransport> {
        let options = SenderOptions { session: session_options(), once };
        TapeSender::open(dir, self.network.connect(address(1)), options).unwrap()
    }

    fn receiver(&self, dir: &Path, number: u64, once: bool) -> TapeReceiver<MemoryTransport> {
        let options = ReceiverOptions { session: session_options(), once, ..ReceiverOptions::new(number) };
        let transport = self.network.connect(address(100 + number as u16));
        TapeReceiver::open(dir, address(1), transport, options).unwrap()
    }

    #[track_caller]
    fn pass(&mut self, time: Duration) {
        assert!(self.started.elapsed() < STUCK, "the link is stuck");
        self.now += time;
        self.network.set_time(self.now);
    }

    /// A turn of both.
    #[track_caller]
    fn turn(
        &mut self,
        sender: &mut TapeSender<MemoryTransport>,
        receiver: &mut TapeReceiver<MemoryTransport>,
    ) -> Result<(), Error> {
        self.pass(Duration::from_micros(500));
        sender.poll(self.now)?;
        receiver.poll(self.now)?;
        Ok(())
    }

    /// Lets a receiver with the tape in `theirs` ask for the one in `ours`, and returns the refusal.
    fn refusal(&mut self, ours: &Path, theirs: &Path) -> Error {
        let before = files(theirs);
        let mut sender = self.sender(ours, false);
        let mut receiver = self.receiver(theirs, 1, true);
        let error = loop {
            if let Err(error) = self.turn(&mut sender, &mut receiver) {
                break error;
            }
        };
        receiver.close().unwrap();
        assert_eq!(files(theirs), before, "a refused receiver changes nothing");
        assert_eq!(sender.figures().refused, 1);
        error
    }
}

#[track_caller]
fn assert_refused(error: &Error, reason: RefusalReason, words: &str) {
    let Error::Refused { refusal, .. } = error else { panic!("{error}") };
    assert_eq!(refusal.reason, reason, "{error}");
    assert!(error.to_string().contains(words), "no {words:?} in: {error}");
}

/// Replicates a closed tape over a network without faults.
fn replicate(link: &mut Link, a: &Path, b: &Path) {
    let (mut sender, mut receiver) = (link.sender(a, true), link.receiver(b, 1, true));
    while !(receiver.is_done() && sender.is_done(link.now)) {
        link.turn(&mut sender, &mut receiver).unwrap();
    }
    assert_eq!((sender.figures().completed, receiver.figures().sessions), (1, 1));
    receiver.close().unwrap();
}

#[test]
fn a_tape_arrives_whole() {
    let dir = folder();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    make(&a, 1, 400);
    let mut link = Link::new(1, NetworkFaults::default());
    replicate(&mut link, &a, &b);
    assert!(files(&a).len() > 10, "several segments");
    assert_eq!(files(&a), files(&b));
    // All is there: a second receiver of the same directory has nothing to do.
    replicate(&mut link, &a, &b);
    assert_eq!(files(&a), files(&b));
}

#[test]
fn an_empty_tape_arrives() {
    let dir = folder();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    make(&a, 1, 0);
    replicate(&mut Link::new(1, NetworkFaults::default()), &a, &b);
    assert_eq!(files(&a), files(&b));
}

/// Every fault, a writer that appends meanwhile, and deaths of either end, by a seed.
#[test]
fn a_tape_survives_a_bad_network_and_deaths() {
    let rounds = std::env::var("UNITAPE_LINK_ROUNDS").map_or(250, |rounds| rounds.parse().unwrap());
    let mut asked_again = 0;
    for seed in 0..rounds {
        asked_again += round(seed);
    }
    assert!(asked_again > rounds, "the faults have no effect");
}

/// Returns how often a receiver had to ask again.
fn round(seed: u64) -> u64 {
    let dir = folder();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let mut random = Random::new(seed);
    let percent = |random: &mut Random, limit| random.below(limit) as u32;
    let faults = NetworkFaults {
        lost: percent(&mut random, 15),
        doubled: percent(&mut random, 10),
        delayed: percent(&mut random, 10),
        refused: percent(&mut random, 30),
        flipped: percent(&mut random, 5),
    };
    let mut link = Link::new(seed, faults);
    let mut writer = Some(open(&a));
    let mut appends = 10 + random.below(60);
    let mut deaths = random.below(5);
    let (mut sender, mut receiver) = (link.sender(&a, true), link.receiver(&b, 1, true));
    let mut receivers = 1;
    let mut asked_again = 0;
    let count = |receiver: &mut TapeReceiver<MemoryTransport>| {
        receiver.take_events().iter().filter(|event| **event == ReceiverEvent::Asking).count() as u64
    };
    loop {
        link.turn(&mut sender, &mut receiver).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        if appends > 0 && random.below(4) == 0 {
            appends -= 1;
            let writer = writer.as_mut().expect("not closed yet");
            append(writer, &mut random, 2);
            if random.below(8) == 0 {
                quarantine(&a, writer, &mut random);
            }
        }
        if appends == 0
            && let Some(writer) = writer.take()
        {
            writer.close().unwrap();
        }
        if deaths > 0 && random.below(60) == 0 {
            deaths -= 1;
            asked_again += count(&mut receiver);
            if random.below(2) == 0 {
                // As after a kill: the tape is not closed.
                drop(receiver);
                assert!(!b.exists() || frames(&a).starts_with(&frames(&b)), "seed {seed}");
                receivers += 1;
                receiver = link.receiver(&b, receivers, true);
            } else {
                drop(sender);
                sender = link.sender(&a, true);
            }
        }
        if deaths == 0 && writer.is_none() {
            link.network.set_faults(NetworkFaults::default());
        }
        if receiver.is_done() && writer.is_none() {
            break;
        }
    }
    asked_again += count(&mut receiver);
    receiver.close().unwrap();
    assert_eq!(files(&a), files(&b), "seed {seed}");
    asked_again
}

#[test]
fn another_tape_is_refused_with_its_cause() {
    let dir = folder();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    make(&a, 1, 300);
    let mut link = Link::new(1, NetworkFaults::default());

    let (mut writer, _) = Writer::open(&b, TapeId(1), WriterOptions::default()).unwrap();
    append(&mut writer, &mut Random::new(1), 5);
    writer.close().unwrap();
    assert_refused(&link.refusal(&a, &b), RefusalReason::OtherTape, "tape 00000000000000000000000000000001");

    let b = dir.path().join("size");
    let (mut writer, _) =
        Writer::open(&b, ID, WriterOptions { segment_bytes: 4096, ..WriterOptions::default() }).unwrap();
    append(&mut writer, &mut Random::new(1), 5);
    writer.close().unwrap();
    assert_refused(&link.refusal(&a, &b), RefusalReason::OtherSegmentSize, "segments of 4096 bytes");

    // Two runs of one configuration have the same id. These differ in the last unit, in an early segment, and in length.
    let b = dir.path().join("end");
    let mut writer = open(&b);
    append(&mut writer, &mut Random::new(1), 40);
    append(&mut writer, &mut Random::new(2), 1);
    writer.close().unwrap();
    assert_refused(&link.refusal(&a, &b), RefusalReason::OtherBytes, "other bytes");
    let b = dir.path().join("middle");
    make(&b, 2, 150);
    let error = link.refusal(&a, &b);
    assert_refused(&error, RefusalReason::OtherBytes, "between positions 0 and 16384");
    assert_eq!(error.cause(), ErrorCause::Outside);
    let b = dir.path().join("long");
    make(&b, 1, 301);
    assert_refused(&link.refusal(&a, &b), RefusalReason::Behind, "ends at position");
}

/// A new receiver would begin without the definitions of what retention has removed.
#[test]
fn a_tape_that_begins_later_is_refused_to_a_new_receiver() {
    let dir = folder();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let origin = TapeOrigin { position: Position(640), ordinal: 3, definitions: &[], epoch: 1 };
    let options = WriterOptions { segment_bytes: SEGMENT, ..WriterOptions::default() };
    let (mut writer, _) = Writer::open_at(&a, ID, &origin, options).unwrap();
    append(&mut writer, &mut Random::new(1), 5);
    writer.close().unwrap();
    let error = Link::new(1, NetworkFaults::default()).refusal(&a, &b);
    assert_refused(&error, RefusalReason::Retained, "begins at position 640");
    assert_eq!(error.cause(), ErrorCause::Data);
    assert!(!b.exists());
    // A copy that was made by hand continues.
    let copy = Command::new("cp").arg("-r").args([&a, &b]).status().unwrap();
    assert!(copy.success());
    append(&mut open(&a), &mut Random::new(2), 50);
    replicate(&mut Link::new(2, NetworkFaults::default()), &a, &b);
    assert_eq!(frames(&a), frames(&b));
}

/// Each hello costs the sender a reader and memory.
#[test]
fn a_sender_serves_a_bounded_number_of_receivers() {
    let dir = folder();
    let a = dir.path().join("a");
    make(&a, 1, 20);
    let mut link = Link::new(1, NetworkFaults::default());
    let mut sender = link.sender(&a, false);
    let one_more = RECEIVERS_MAX as u16 + 1;
    let mut ends: Vec<_> = (1..=one_more).map(|n| link.network.connect(address(1000 + n))).collect();
    for n in 1..=one_more {
        let mut hello = Vec::new();
        let id = SessionId { receiver: u64::from(n), number: 1 };
        Message::Hello(Hello { reply_to: address(1000 + n), tape: None }).encode(id, &mut hello);
        link.network.inject(address(1), &hello);
    }
    let mut refused = None;
    while refused.is_none() {
        link.pass(Duration::from_millis(1));
        sender.poll(link.now).unwrap();
        let last = ends.last_mut().unwrap();
        last.receive(&mut |message| refused = Some(message.to_vec())).unwrap();
    }
    let answer = refused.unwrap();
    let (_, Message::Refuse(refusal)) = Message::decode(&answer).unwrap() else { panic!("{answer:?}") };
    assert_eq!(refusal.reason, RefusalReason::Busy);
    assert_eq!(sender.figures().sessions, RECEIVERS_MAX as u64);
}

/// A directory of something else is not made a tape.
#[test]
fn a_directory_of_other_things_stays_as_it_is() {
    let dir = folder();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    make(&a, 1, 30);
    std::fs::create_dir(&b).unwrap();
    std::fs::write(b.join("mine"), "text").unwrap();
    let mut link = Link::new(1, NetworkFaults::default());
    let (mut sender, mut receiver) = (link.sender(&a, true), link.receiver(&b, 1, true));
    let error = loop {
        if let Err(error) = link.turn(&mut sender, &mut receiver) {
            break error;
        }
    };
    assert!(error.to_string().contains("not a tape"), "{error}");
    assert_eq!(files(&b).keys().collect::<Vec<_>>(), ["mine"]);
}

/// Two receivers of one directory would write one tape twice.
#[test]
fn a_directory_has_one_receiver() {
    let dir = folder();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    make(&a, 1, 30);
    let writer = open(&b);
    let network = MemoryNetwork::new(1, NetworkFaults::default(), MESSAGE_BYTES_MAX);
    let second = TapeReceiver::open(&b, address(1), network.connect(address(2)), ReceiverOptions::new(1));
    assert!(second.unwrap_err().to_string().starts_with("locked: "));
    writer.close().unwrap();
}

/// Damage is not carried to another host; the receiver keeps what came before, and learns the cause.
#[test]
fn damage_is_never_sent() {
    let dir = folder();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    make(&a, 1, 300);
    let path = a.join("segments/0000000000000002.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096 + 8192] ^= 1;
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let mut link = Link::new(1, NetworkFaults::default());
    let (mut sender, mut receiver) = (link.sender(&a, true), link.receiver(&b, 1, true));
    let error = loop {
        link.pass(Duration::from_millis(1));
        let polled = sender.poll(link.now);
        receiver.poll(link.now).unwrap();
        if let Err(error) = polled {
            break error;
        }
    };
    assert_eq!(error.cause(), ErrorCause::Data, "{error}");
    assert!(error.to_string().contains("0000000000000002.seg"), "{error}");
    assert!(!sender.poll_failed(link.now).unwrap(), "the receiver has not read it yet");
    let mut is_read = false;
    let told = loop {
        link.pass(Duration::from_millis(1));
        is_read |= sender.poll_failed(link.now).unwrap();
        if let Err(error) = receiver.poll(link.now) {
            break error;
        }
    };
    assert!(is_read, "the sender ends when the receiver has read why");
    assert_refused(&told, RefusalReason::Damage, "0000000000000002.seg");
    assert_eq!(told.cause(), ErrorCause::Data);
    let end = receiver.end().expect("units came before");
    receiver.close().unwrap();
    assert!(Position(SEGMENT) < end && end <= Position(2 * SEGMENT), "{end}");
    let first = "segments/0000000000000000.seg";
    assert_eq!(files(&a)[first], files(&b)[first]);
}

/// An event of quarantine without its bytes is an event about nothing.
#[test]
fn raw_bytes_come_before_the_events_that_name_them() {
    let dir = folder();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let mut random = Random::new(1);
    let mut writer = open(&a);
    let mut link = Link::new(1, NetworkFaults::default());
    let (mut sender, mut receiver) = (link.sender(&a, true), link.receiver(&b, 1, true));
    for _ in 0..20 {
        append(&mut writer, &mut random, 3);
        quarantine(&a, &mut writer, &mut random);
        while receiver.end() != Some(writer.end()) {
            link.turn(&mut sender, &mut receiver).unwrap();
            let raw = std::fs::read(b.join("quarantine.raw")).unwrap_or_default();
            if b.join("tape.toml").exists() {
                let named = RawSource::new(&b).needed(Position(0), &frames(&b)).unwrap();
                assert!(named <= raw.len() as u64);
            }
        }
    }
    // A writer that was killed leaves bytes that no event names, and the next one cuts them off.
    let path = a.join("quarantine.raw");
    let named = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&named[..], b"of nobody"].concat()).unwrap();
    append(&mut writer, &mut random, 3);
    writer.close().unwrap();
    while !receiver.is_done() {
        link.turn(&mut sender, &mut receiver).unwrap();
    }
    receiver.close().unwrap();
    std::fs::write(&path, &named).unwrap();
    assert_eq!(files(&a), files(&b));

    // Damage of them is never sent, and other bytes at the receiver are refused.
    let mut other = named.clone();
    other[100] ^= 1;
    std::fs::write(b.join("quarantine.raw"), &other).unwrap();
    assert_refused(&link.refusal(&a, &b), RefusalReason::OtherBytes, "quarantine.raw");
    std::fs::write(&path, &other).unwrap();
    for (number, length) in [(8, named.len()), (9, named.len() - 1)] {
        std::fs::write(&path, &other[..length]).unwrap();
        let c = dir.path().join(length.to_string());
        let (mut sender, mut receiver) = (link.sender(&a, true), link.receiver(&c, number, true));
        let error = loop {
            link.pass(Duration::from_millis(1));
            if let Err(error) = sender.poll(link.now) {
                break error;
            }
            receiver.poll(link.now).unwrap();
        };
        assert!(matches!(error, Error::RawDamage { .. }), "{error}");
        assert_eq!(error.cause(), ErrorCause::Data);
        receiver.close().unwrap();
        assert!(std::fs::read(c.join("quarantine.raw")).unwrap_or_default().len() < named.len());
    }
}

/// What reaches a port need not come from a receiver.
#[test]
fn strangers_change_nothing() {
    let dir = folder();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    make(&a, 1, 200);
    let mut link = Link::new(1, NetworkFaults::default());
    let (mut sender, mut receiver) = (link.sender(&a, true), link.receiver(&b, 7, true));
    let foreign = |message: Message<'_>| {
        let mut bytes = Vec::new();
        message.encode(SessionId { receiver: 8, number: 1 }, &mut bytes);
        bytes
    };
    let away = Hello { reply_to: "192.0.2.1:9".parse().unwrap(), tape: None };
    let strangers = [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 64],
        foreign(Message::Data(Data { position: Position(0), offset: 0, raw_bytes: 0, frames: &[1; 128] })),
        foreign(Message::Announce(Announce { end: Position(0), offset: 0, raw_bytes: 0, is_closed: true })),
        foreign(Message::Finish),
        // Nobody is made to send to another host.
        foreign(Message::Hello(away)),
    ];
    while !receiver.is_done() {
        for message in &strangers {
            link.network.inject(address(1), message);
            link.network.inject(address(107), message);
        }
        link.turn(&mut sender, &mut receiver).unwrap();
    }
    assert!(sender.figures().dropped_messages > 10 && receiver.figures().dropped_messages > 10);
    assert_eq!(sender.figures().sessions, 1);
    receiver.close().unwrap();
    assert_eq!(files(&a), files(&b));
}

/// A version that is refused without a word looks like a sender that is away.
#[test]
fn a_receiver_of_another_version_is_refused_in_words() {
    let dir = folder();
    let a = dir.path().join("a");
    make(&a, 1, 20);
    let mut link = Link::new(1, NetworkFaults::default());
    let mut sender = link.sender(&a, false);
    let mut transport = link.network.connect(address(9));
    let mut hello = Vec::new();
    let id = SessionId { receiver: 3, number: 1 };
    Message::Hello(Hello { reply_to: address(9), tape: None }).encode(id, &mut hello);
    hello[4] = 2;
    hello[12..16].fill(0);
    let crc = crc32c::crc32c(&hello);
    hello[12..16].copy_from_slice(&crc.to_le_bytes());
    link.network.inject(address(1), &hello);
    let mut answers = Vec::new();
    while answers.is_empty() {
        link.pass(Duration::from_millis(1));
        sender.poll(link.now).unwrap();
        transport.receive(&mut |message| answers.push(message.to_vec())).unwrap();
    }
    let (session, Message::Refuse(refusal)) = Message::decode(&answers[0]).unwrap() else {
        panic!("{answers:?}")
    };
    assert_eq!((session, refusal.reason), (id, RefusalReason::Version));
    assert!(refusal.text.contains("version 2"), "{}", refusal.text);
}

/// Positions of a hello come from outside.
#[test]
fn a_hello_with_a_position_between_frames_is_refused() {
    let dir = folder();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let mut writer = open(&a);
    let mut frame = vec![1; 5 * LINE];
    FrameHeader::new_unstamped(20, flags::LAST, 5).write(&mut frame);
    writer.append(&frame).unwrap();
    writer.close().unwrap();
    let mut writer = open(&b);
    let mut frame = vec![1; 2 * LINE];
    FrameHeader::new_unstamped(20, flags::LAST, 2).write(&mut frame);
    writer.append(&frame).unwrap();
    writer.close().unwrap();
    let error = Link::new(1, NetworkFaults::default()).refusal(&a, &b);
    assert_refused(&error, RefusalReason::OtherBytes, "between positions 0 and 128");
}

/// One that stands still holds up nobody.
#[test]
fn a_silent_receiver_holds_up_neither_the_tape_nor_another() {
    let dir = folder();
    let (a, b, c) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
    let mut writer = open(&a);
    append(&mut writer, &mut Random::new(1), 50);
    let mut link = Link::new(1, NetworkFaults::default());
    let (mut sender, mut silent) = (link.sender(&a, true), link.receiver(&b, 1, true));
    while silent.end().is_none() {
        link.turn(&mut sender, &mut silent).unwrap();
    }
    append(&mut writer, &mut Random::new(2), 200);
    writer.close().unwrap();
    let mut other = link.receiver(&c, 2, true);
    while !other.is_done() {
        link.turn(&mut sender, &mut other).unwrap();
    }
    other.close().unwrap();
    assert_eq!(files(&a), files(&c));
    assert!(!sender.is_done(link.now), "one receiver is not done");
    // It is back after the sender has forgotten it.
    link.pass(session_options().receiver_silence);
    sender.poll(link.now).unwrap();
    assert_eq!(sender.figures().silent, 1);
    while !silent.is_done() {
        link.turn(&mut sender, &mut silent).unwrap();
    }
    silent.close().unwrap();
    assert_eq!(files(&a), files(&b));
}
