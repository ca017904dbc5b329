//! Packets made by hand, out of a capture and off the wire, to books.

mod common;
#[path = "../../feed/tests/common/fragments.rs"]
mod fragments;
#[path = "../../unitape/tests/common/ports.rs"]
mod ports;

use common::{DEPTH, REFERENCE, SNAPSHOTS, Venue};
use fragments::{cut, with_checksum};
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};
use unitape_marketdata::engine::{EventContext, RefusedInput, Trade};
use unitape_marketdata::{
    BookUpdate, Handler, InstrumentId, Listener, LiveOptions, Packet, SequenceGap, Side, Subscription,
    UnixNanos,
};

/// The calls, and the book of each instrument as it was last reported.
#[derive(Default)]
struct Notes {
    lines: Vec<String>,
    books: BTreeMap<String, String>,
}

impl Listener for Notes {
    fn on_book(&mut self, update: &BookUpdate<'_>) {
        let mut text = String::new();
        for side in Side::BOTH {
            for level in update.book.levels(side) {
                text += &format!("{}@{} ", level.qty.0, level.px / 10_000_000);
            }
            text += "| ";
        }
        self.books.insert(update.context.tables.instruments[update.instrument.index()].id.clone(), text);
    }

    fn on_trade(&mut self, at: &EventContext<'_>, trade: &Trade) {
        let id = &at.tables.instruments[trade.instrument.index()].id;
        self.lines.push(format!("trade {id} {}", trade.px));
    }

    fn on_stale(&mut self, at: &EventContext<'_>, instrument: InstrumentId) {
        self.lines.push(format!("stale {}", at.tables.instruments[instrument.index()].id));
    }

    fn on_recovered(&mut self, at: &EventContext<'_>, instrument: InstrumentId) {
        self.lines.push(format!("recovered {}", at.tables.instruments[instrument.index()].id));
    }

    fn on_gap(&mut self, _: &EventContext<'_>, gap: SequenceGap) {
        self.lines.push(format!("{gap:?}"));
    }

    fn on_refused(&mut self, _: &EventContext<'_>, refusal: &RefusedInput<'_>) {
        self.lines.push(format!("refused {}", refusal.code));
    }
}

const NEW: u64 = 0;
const CHANGE: u64 = 1;
const BID: u64 = 0;
const OFFER: u64 = 1;
const TRADE: u64 = 2;

/// A day of two products: a late start, snapshots, a gap on one line, a gap on both.
fn day(venue: &mut Venue) {
    let reference = [venue.reference(5, "BUND", 3, &[51, 52]), venue.reference(6, "DAX", 3, &[61])];
    for packet in &reference {
        venue.send(REFERENCE, packet, &[0, 1]);
    }
    // Nothing is known yet: these wait for a snapshot.
    venue.trade(5, 11, &[(51, NEW, BID, 1, 101, 7)]);
    venue.trade(6, 21, &[(61, NEW, OFFER, 1, 201, 9)]);
    for (product, last, instrument, entries) in [
        (5, 10, 51, &[(0, 0, BID, 1, 100, 5)][..]),
        (5, 11, 52, &[][..]),
        (6, 21, 61, &[(0, 0, OFFER, 1, 201, 9), (0, 0, OFFER, 2, 202, 4)][..]),
    ] {
        let packet = venue.snapshot(product, last, instrument, entries);
        venue.send(SNAPSHOTS, &packet, &[0]);
    }
    // Line A loses one, line B has it.
    let packet = venue.depth(5, 12, &[(51, CHANGE, BID, 2, 99, 6), (52, NEW, OFFER, 1, 300, 1)]);
    venue.send(DEPTH, &packet, &[1]);
    venue.trade(5, 13, &[(51, 0, TRADE, 0, 101, 2), (51, CHANGE, BID, 1, 101, 5)]);
}

fn handler(venue: &Venue, dir: &tempfile::TempDir) -> Handler {
    Handler::open(&venue.config(dir.path())).unwrap()
}

fn replay(handler: &mut Handler, venue: &Venue, dir: &tempfile::TempDir) -> Notes {
    let file = dir.path().join("day.pcap");
    std::fs::write(&file, &venue.capture).unwrap();
    let mut notes = Notes::default();
    handler.replay(&file, None, &mut notes).unwrap();
    notes
}

#[test]
fn books_of_a_capture() {
    let dir = tempfile::tempdir().unwrap();
    let mut venue = Venue::new([239, 1, 2, 3], 5000);
    day(&mut venue);
    let mut handler = handler(&venue, &dir);
    handler.subscribe(Subscription::All);
    let notes = replay(&mut handler, &venue, &dir);
    assert_eq!(notes.books["51"], "5@101 6@99 | | ", "{:?}", notes.lines);
    assert_eq!(notes.books["52"], "| 1@300 | ");
    assert_eq!(notes.books["61"], "| 9@201 4@202 | ");
    let recovered = notes.lines.iter().filter(|line| line.starts_with("recovered")).count();
    assert_eq!(recovered, 3, "{:?}", notes.lines);
    assert!(notes.lines.contains(&"trade 51 1.01".to_owned()), "{:?}", notes.lines);
    let book = handler.book(handler.find("51").unwrap()).unwrap();
    assert!(!book.is_stale());
    assert_eq!((book.depth(Side::Buy), book.best(Side::Buy).unwrap().px), (2, 1_010_000_000));
    assert_eq!(book.level(Side::Buy, 2).unwrap().qty, (6, 0));
    let stats = handler.core().stats();
    assert_eq!((stats.channels[0].lines[0].packets, stats.channels[0].lines[1].packets), (3, 4));
    assert_eq!((stats.channels[0].lost, stats.channels[0].recovered), (0, 1));
}

#[test]
fn only_what_is_subscribed() {
    let dir = tempfile::tempdir().unwrap();
    let mut venue = Venue::new([239, 1, 2, 3], 5000);
    day(&mut venue);
    for (subscription, expected) in [
        (Subscription::Group("BUND".into()), &["51", "52"][..]),
        (Subscription::Product("6".into()), &["61"]),
        (Subscription::Product("DAX".into()), &["61"]),
        (Subscription::Instrument("52".into()), &["52"]),
        (Subscription::Instrument("nothing".into()), &[]),
    ] {
        let mut handler = handler(&venue, &dir);
        handler.subscribe(subscription.clone());
        let notes = replay(&mut handler, &venue, &dir);
        assert_eq!(notes.books.keys().collect::<Vec<_>>(), expected, "{subscription:?}");
        let books = (0..3).filter(|n| handler.book(InstrumentId(*n)).is_some()).count();
        assert_eq!(books, expected.len());
        assert!(handler.counters().passed_over > 0);
    }
}

/// A packet on both lines, 20 ms after the last one.
fn feed(handler: &mut Handler, venue: &mut Venue, channel: usize, payload: &[u8], notes: &mut Notes) {
    venue.now += 20_000_000;
    for (line, to) in venue.addresses[channel].into_iter().enumerate() {
        let ts_recv = UnixNanos(venue.now + line as i64);
        handler.packet(Packet { to, ts_recv, position: 0, payload }, notes);
    }
}

/// Two instruments of a product whose books have come.
fn two(venue: &mut Venue, handler: &mut Handler, notes: &mut Notes) {
    let packet = venue.reference(5, "BUND", 3, &[51, 52]);
    feed(handler, venue, REFERENCE, &packet, notes);
    for instrument in [51, 52] {
        let packet = venue.snapshot(5, 0, instrument, &[]);
        feed(handler, venue, SNAPSHOTS, &packet, notes);
    }
}

/// Snapshots of an instrument nobody needs are not looked at. A book that was subscribed late, and lacks what came before, once
/// stayed stale for ever though its snapshots came round and round.
#[test]
fn who_subscribes_late_gets_the_next_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let mut venue = Venue::new([239, 1, 2, 3], 5000);
    let (mut handler, mut notes) = (handler(&venue, &dir), Notes::default());
    handler.subscribe(Subscription::Instrument("52".into()));
    two(&mut venue, &mut handler, &mut notes);
    for (sequence, entry) in [(1, (51, NEW, BID, 1, 100, 5)), (2, (51, NEW, BID, 2, 99, 5))] {
        let packet = venue.depth(5, sequence, &[entry]);
        feed(&mut handler, &mut venue, DEPTH, &packet, &mut notes);
    }
    handler.subscribe(Subscription::Instrument("51".into()));
    let number = handler.find("51").unwrap();
    assert!(handler.book(number).unwrap().is_stale());
    notes.lines.clear();
    // The first is older than what has come; what comes before the second waits for it.
    let old = venue.snapshot(5, 1, 51, &[(0, 0, BID, 1, 100, 5)]);
    feed(&mut handler, &mut venue, SNAPSHOTS, &old, &mut notes);
    let packet = venue.depth(5, 3, &[(51, CHANGE, BID, 1, 100, 6)]);
    feed(&mut handler, &mut venue, DEPTH, &packet, &mut notes);
    assert!(handler.book(number).unwrap().is_stale() && notes.lines.is_empty(), "{:?}", notes.lines);
    let next = venue.snapshot(5, 2, 51, &[(0, 0, BID, 1, 100, 5), (0, 0, BID, 2, 99, 5)]);
    feed(&mut handler, &mut venue, SNAPSHOTS, &next, &mut notes);
    assert_eq!(
        (notes.books["51"].as_str(), &notes.lines[..]),
        ("6@100 5@99 | | ", &["recovered 51".to_owned()][..])
    );
    assert!(!handler.book(number).unwrap().is_stale());
    assert_eq!(handler.core().stats().products.snapshots_old, 1);
}

/// A message with an impossible level makes a book stale; the next snapshot mends it.
#[test]
fn a_fault_is_mended_by_the_next_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let mut venue = Venue::new([239, 1, 2, 3], 5000);
    let (mut handler, mut notes) = (handler(&venue, &dir), Notes::default());
    handler.subscribe(Subscription::All);
    two(&mut venue, &mut handler, &mut notes);
    notes.lines.clear();
    for (sequence, entry) in [(1, (51, NEW, BID, 1, 100, 5)), (2, (51, CHANGE, BID, 3, 99, 5))] {
        let packet = venue.depth(5, sequence, &[entry]);
        feed(&mut handler, &mut venue, DEPTH, &packet, &mut notes);
    }
    let number = handler.find("51").unwrap();
    assert!(handler.book(number).unwrap().is_stale());
    let packet = venue.depth(5, 3, &[(51, CHANGE, BID, 1, 100, 6), (52, NEW, BID, 1, 1, 1)]);
    feed(&mut handler, &mut venue, DEPTH, &packet, &mut notes);
    let packet = venue.snapshot(5, 2, 51, &[(0, 0, BID, 1, 100, 5)]);
    feed(&mut handler, &mut venue, SNAPSHOTS, &packet, &mut notes);
    assert!(!handler.book(number).unwrap().is_stale());
    assert_eq!((notes.books["51"].as_str(), notes.books["52"].as_str()), ("6@100 | | ", "1@1 | | "));
    assert_eq!(notes.lines, ["stale 51", "recovered 51"]);
}

/// A level whose quantity is changed to nothing is gone.
#[test]
fn a_quantity_of_nothing_takes_a_level_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut venue = Venue::new([239, 1, 2, 3], 5000);
    let (mut handler, mut notes) = (handler(&venue, &dir), Notes::default());
    handler.subscribe(Subscription::All);
    two(&mut venue, &mut handler, &mut notes);
    for (sequence, entries) in [
        (1, &[(51, NEW, BID, 1, 100, 5), (51, NEW, BID, 2, 99, 5)][..]),
        (2, &[(51, CHANGE, BID, 2, 99, 0)]),
        (3, &[(51, NEW, BID, 2, 98, 7)]),
    ] {
        let packet = venue.depth(5, sequence, entries);
        feed(&mut handler, &mut venue, DEPTH, &packet, &mut notes);
    }
    assert_eq!(notes.books["51"], "5@100 7@98 | | ");
    assert!(!handler.book(handler.find("51").unwrap()).unwrap().is_stale());
}

/// An instrument that is deleted needs no snapshot: the others come back without it, and its book, of before the gap, does not
/// pass for the venue's.
#[test]
fn what_is_deleted_does_not_come_back() {
    for before_the_gap in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let mut venue = Venue::new([239, 1, 2, 3], 5000);
        let config = venue.config(dir.path());
        let (mut handler, mut notes) = (Handler::open(&config).unwrap(), Notes::default());
        handler.subscribe(Subscription::All);
        two(&mut venue, &mut handler, &mut notes);
        let packet = venue.depth(5, 1, &[(51, NEW, BID, 1, 100, 5), (52, NEW, BID, 1, 100, 5)]);
        feed(&mut handler, &mut venue, DEPTH, &packet, &mut notes);
        notes.lines.clear();
        let deleted = venue.deleted(5, 52);
        let gap = venue.depth(5, 5, &[(51, CHANGE, BID, 1, 100, 6)]);
        let mut packets = [(REFERENCE, deleted), (DEPTH, gap)];
        if !before_the_gap {
            packets.reverse();
        }
        for (channel, packet) in packets {
            feed(&mut handler, &mut venue, channel, &packet, &mut notes);
        }
        let packet = venue.snapshot(5, 5, 51, &[(0, 0, BID, 1, 100, 6)]);
        feed(&mut handler, &mut venue, SNAPSHOTS, &packet, &mut notes);
        let missing = "Messages { product: ProductId(0), from: 2, to: 4 }";
        assert_eq!(notes.lines, [missing, "stale 51", "stale 52", "recovered 51"], "{before_the_gap}");
        let stale = ["51", "52"].map(|id| handler.book(handler.find(id).unwrap()).unwrap().is_stale());
        assert_eq!(stale, [false, true]);
        // The product is whole without it: snapshots are of use to nobody, and not looked at.
        let packet = venue.snapshot(5, 5, 51, &[(0, 0, BID, 1, 100, 6)]);
        feed(&mut handler, &mut venue, SNAPSHOTS, &packet, &mut notes);
        assert_eq!(handler.core().stats().products.snapshots_spare, 0, "{before_the_gap}");
    }
}

/// A message that is missing on both lines: its product is stale until a snapshot, the other one is not touched.
#[test]
fn a_gap_on_both_lines() {
    let dir = tempfile::tempdir().unwrap();
    let mut venue = Venue::new([239, 1, 2, 3], 5000);
    day(&mut venue);
    venue.depth(5, 14, &[(51, NEW, BID, 1, 110, 1)]);
    // So late that the missing one is given up.
    venue.now += 1_000_000_000;
    venue.trade(5, 15, &[(51, NEW, BID, 1, 111, 2)]);
    venue.now += 1_000_000_000;
    venue.trade(6, 22, &[(61, CHANGE, OFFER, 1, 200, 9)]);
    let mut handler = handler(&venue, &dir);
    handler.subscribe(Subscription::All);
    let notes = replay(&mut handler, &venue, &dir);
    let lines: Vec<_> = notes.lines.iter().skip_while(|line| !line.starts_with("Packets")).collect();
    assert_eq!(lines.len(), 4, "{:?}", notes.lines);
    assert!(lines.contains(&&"stale 51".to_owned()) && lines.contains(&&"stale 52".to_owned()), "{lines:?}");
    assert_eq!(notes.books["61"], "| 9@200 4@202 | ");
    let book = handler.book(handler.find("51").unwrap()).unwrap();
    assert!(book.is_stale() && handler.counters().gaps == 2);
    // And it comes back.
    let mut more = Venue::new([239, 1, 2, 3], 5000);
    more.now = venue.now;
    let mut packet = Vec::new();
    for _ in 0..4 {
        // The numbers of the snapshots continue after those of before.
        packet = more.snapshot(5, 15, 51, &[(0, 0, BID, 1, 111, 2), (0, 0, BID, 2, 110, 1)]);
    }
    more.send(SNAPSHOTS, &packet, &[0, 1]);
    let notes = replay(&mut handler, &more, &dir);
    assert_eq!(notes.lines, ["recovered 51"]);
    assert_eq!(notes.books["51"], "2@111 1@110 | | ");
}

/// A foreign packet is skipped, and counted.
#[test]
fn bad_packets() {
    let dir = tempfile::tempdir().unwrap();
    let mut venue = Venue::new([239, 1, 2, 3], 5000);
    day(&mut venue);
    let mut bad = venue.depth(5, 14, &[(51, NEW, BID, 1, 110, 1)]);
    bad.truncate(bad.len() - 3);
    venue.send(DEPTH, &bad, &[0]);
    venue.send(DEPTH, b"", &[0]);
    venue.send(DEPTH, &[0x7f; 40], &[1]);
    let mut handler = handler(&venue, &dir);
    handler.subscribe(Subscription::All);
    let notes = replay(&mut handler, &venue, &dir);
    let refused = notes.lines.iter().filter(|line| line.starts_with("refused")).count() as u64;
    assert_eq!((refused, handler.counters().refused), (3, 3), "{:?}", notes.lines);
    // A file that ends in the middle of a record.
    let file = dir.path().join("cut.pcap");
    std::fs::write(&file, &venue.capture[..venue.capture.len() - 5]).unwrap();
    let counts = handler.replay(&file, None, &mut ()).unwrap();
    assert!(counts.lost_bytes > 0);
    let error = handler.replay(&dir.path().join("box.toml"), None, &mut ()).unwrap_err().to_string();
    assert!(error.contains("no capture"), "{error}");
    let error = handler.replay(&file, Some("nope"), &mut ()).map(|_| ());
    assert!(matches!(error, Err(unitape_marketdata::Error::Channel(_))));
}

/// Packets with their lengths before them, of a given channel.
#[test]
fn samples_without_addresses() {
    let dir = tempfile::tempdir().unwrap();
    let mut venue = Venue::new([239, 1, 2, 3], 5000);
    let mut sample = Vec::new();
    for n in 0..3 {
        let packet = venue.depth(5, 1 + n, &[(51, 0, TRADE, 0, 100 + n as i64, 1)]);
        sample.extend((packet.len() as u32).to_le_bytes());
        sample.extend(packet);
    }
    let file = dir.path().join("sample.frames");
    std::fs::write(&file, sample).unwrap();
    let mut handler = handler(&venue, &dir);
    handler.subscribe(Subscription::All);
    let mut notes = Notes::default();
    let counts = handler.replay(&file, Some("depth"), &mut notes).unwrap();
    assert_eq!(counts.packets, 3);
    let trades: Vec<_> = notes.lines.iter().filter(|line| line.starts_with("trade")).collect();
    assert_eq!(trades, ["trade 51 1", "trade 51 1.01", "trade 51 1.02"]);
}

/// The first fragment of one datagram and the last one of another, with the same identification, made a packet that nobody sent.
#[test]
fn fragments_of_two_datagrams_are_no_packet() {
    let dir = tempfile::tempdir().unwrap();
    let mut venue = Venue::new([239, 1, 2, 3], 5000);
    let file_header = venue.capture.clone();
    let [one, other] = [1, 2].map(|n| {
        let packet = venue.depth(5, n, &[(51, 0, TRADE, 0, 100 + n as i64, n)]);
        let start = venue.capture.len();
        venue.send(DEPTH, &packet, &[0]);
        let record = with_checksum(&venue.capture.split_off(start));
        // Fragments begin at multiples of 8 bytes.
        cut(&record, 7, ((packet.len() + 8) / 2).next_multiple_of(8))
    });
    assert_eq!((one.len(), other.len()), (2, 2));
    for (records, packets, wrong_checksums) in [
        (vec![&one[0], &one[1], &other[0], &other[1]], 2, 0),
        (vec![&one[0], &other[1]], 0, 1),
        (vec![&other[1], &one[0]], 0, 1),
    ] {
        let file = dir.path().join("day.pcap");
        let mut capture = file_header.clone();
        records.iter().for_each(|record| capture.extend_from_slice(record));
        std::fs::write(&file, capture).unwrap();
        let mut handler = handler(&venue, &dir);
        handler.subscribe(Subscription::All);
        let mut notes = Notes::default();
        let counts = handler.replay(&file, None, &mut notes).unwrap();
        assert_eq!(
            (counts.packets, counts.fragments.wrong_checksums, counts.unusable),
            (packets, wrong_checksums, wrong_checksums)
        );
        let trades = notes.lines.iter().filter(|line| line.starts_with("trade")).count() as u64;
        assert_eq!(trades, packets, "{:?}", notes.lines);
    }
}

/// Both lines of all channels off the wire, in one thread. On the host itself, for not everywhere are there groups.
#[test]
fn live_lines() {
    let dir = tempfile::tempdir().unwrap();
    let mut venue = Venue::new([127, 0, 0, 1], ports::free_ports(6));
    let mut handler = handler(&venue, &dir);
    handler.subscribe(Subscription::All);
    assert!(handler.poll(&mut ()).is_err(), "nothing is listened to");
    handler.listen(&LiveOptions::default()).unwrap();
    assert_eq!(handler.poll(&mut ()).unwrap(), 0);
    assert!(!handler.wait(Duration::from_millis(1)).unwrap());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    day(&mut venue);
    // The packets of the day, in its order.
    let mut sent = 0;
    let path = dir.path().join("day.pcap");
    std::fs::write(&path, &venue.capture).unwrap();
    let mut file = unitape_marketdata::PacketFile::open(&path, None).unwrap();
    let mut notes = Notes::default();
    let until = Instant::now() + Duration::from_secs(180);
    let mut got = 0;
    while let Some(packet) = file.next().unwrap() {
        socket.send_to(packet.payload, packet.to).unwrap();
        sent += 1;
        // One after the other, so that they come in this order.
        while got < sent && Instant::now() < until {
            handler.wait(Duration::from_millis(100)).unwrap();
            got += handler.poll(&mut notes).unwrap();
        }
    }
    assert_eq!(got, sent);
    assert_eq!(notes.books["51"], "5@101 6@99 | | ", "{:?}", notes.lines);
    assert_eq!(notes.books["61"], "| 9@201 4@202 | ");
    assert_eq!(handler.live().unwrap().dropped().map(|(_, n)| n).sum::<u64>(), 0);
}
