//! The handler by its C functions, and the example that uses them: the packets are those of the handler's own tests.

mod common;
#[path = "../../unitape/tests/common/ports.rs"]
mod ports;
#[path = "../../marketdata/tests/common/mod.rs"]
mod venue;

use std::ffi::{CString, c_void};
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use common::{C99, LIBS, compiler, include, library, must, root};
use unitape_c::*;
use unitape_marketdata::PacketFile;
use venue::{DEPTH, REFERENCE, SNAPSHOTS, Venue};

/// A product with two instruments, one of which trades, and another product.
fn day(dir: &Path) -> (CString, CString) {
    day_of(dir, Venue::new([239, 1, 2, 3], 5000))
}

fn day_of(dir: &Path, mut venue: Venue) -> (CString, CString) {
    for (product, name, instruments) in [(5, "BUND", &[51, 52][..]), (6, "DAX", &[61])] {
        let packet = venue.reference(product, name, 3, instruments);
        venue.send(REFERENCE, &packet, &[0, 1]);
    }
    venue.trade(5, 11, &[(51, 0, 0, 1, 101, 7)]);
    venue.trade(6, 21, &[(61, 0, 1, 1, 201, 9)]);
    for (product, last, instrument, entries) in
        [(5, 10, 51, &[(0, 0, 0, 1, 100, 5)][..]), (5, 11, 52, &[][..]), (6, 21, 61, &[][..])]
    {
        let packet = venue.snapshot(product, last, instrument, entries);
        venue.send(SNAPSHOTS, &packet, &[0]);
    }
    venue.trade(5, 12, &[(51, 0, 2, 0, 101, 2), (51, 1, 0, 1, 101, 5), (51, 0, 1, 1, 102, 3)]);
    venue.send(DEPTH, &[0x7f; 9], &[0]);
    let config = venue.config(dir);
    let file = dir.join("day.pcap");
    std::fs::write(&file, &venue.capture).unwrap();
    let c = |path: &Path| CString::new(path.to_str().unwrap()).unwrap();
    (c(&config), c(&file))
}

#[derive(Default)]
struct Seen {
    whats: Vec<u32>,
    best: i64,
    again: i32,
    handler: usize,
}

unsafe extern "C" fn on_market(context: *mut c_void, market: *const MarketRecord) {
    // SAFETY: the test's own, and it is alone.
    let (seen, market) = unsafe { (&mut *context.cast::<Seen>(), &*market) };
    seen.whats.push(market.what);
    if market.what == 1 {
        let mut level = Level { px: 0, qty: 0, qty_exponent: 0, orders: 0 };
        // SAFETY: room for one.
        let count = unsafe { unitape_book_levels(market.book, 0, &raw mut level, 1) };
        seen.best = if count > 0 { level.px } else { 0 };
        // A callback must not use its handler.
        // SAFETY: the handler is alive.
        seen.again = unsafe { unitape_handler_wait(seen.handler as *mut _, 0) };
    }
}

#[test]
fn books_by_the_functions() {
    let dir = tempfile::tempdir().unwrap();
    let (config, file) = day(dir.path());
    let mut handler = null_mut();
    let mut seen = Seen::default();
    // SAFETY: pointers that live, from one thread, here and below.
    unsafe {
        assert_eq!(unitape_handler_open(config.as_ptr(), &raw mut handler), 0);
        seen.handler = handler as usize;
        let context = (&raw mut seen).cast();
        let subscribe = |what, name: Option<&CString>| {
            let name = name.map_or(null(), |name| name.as_ptr());
            unitape_handler_subscribe(handler, what, name, Some(on_market), context)
        };
        let group = CString::new("BUND").unwrap();
        assert_eq!(subscribe(2, Some(&group)), 0);
        assert_eq!(subscribe(9, Some(&group)), code::ARGUMENT);
        assert_eq!(subscribe(0, Some(&group)), code::ARGUMENT);
        assert_eq!(subscribe(1, None), code::NULL);
        let none = unitape_handler_subscribe(handler, 0, null(), None, null_mut());
        assert_eq!(none, code::NULL);
        assert_eq!(unitape_handler_poll(handler), i64::from(code::MISUSE));
        let packets = unitape_handler_replay(handler, file.as_ptr(), null());
        assert_eq!(packets, 14);
        for what in [1, 2, 5, 6, 8] {
            assert!(seen.whats.contains(&what), "{what}: {:?}", seen.whats);
        }
        assert_eq!((seen.best, seen.again), (1_010_000_000, code::MISUSE));
        let (mut number, mut stale) = (0, 7);
        let find = |name: &str, number: *mut u32| {
            unitape_handler_find(handler, CString::new(name).unwrap().as_ptr(), number)
        };
        assert_eq!((find("nothing", &raw mut number), number), (0, u32::MAX));
        assert_eq!(find("61", &raw mut number), 1);
        let mut levels = [Level { px: 0, qty: 0, qty_exponent: 0, orders: 0 }; 4];
        let of = |number, side, levels: &mut [Level], stale: *mut u32| {
            unitape_handler_levels(handler, number, side, levels.as_mut_ptr(), levels.len(), stale)
        };
        assert_eq!(of(number, 0, &mut levels, &raw mut stale), i64::from(code::ARGUMENT));
        assert_eq!(find("51", &raw mut number), 1);
        assert_eq!((of(number, 0, &mut levels, &raw mut stale), stale), (2, 0));
        assert_eq!((levels[0].px, levels[0].qty, levels[0].qty_exponent), (1_010_000_000, 5, 0));
        assert_eq!(of(number, 1, &mut levels[..0], null_mut()), 1);
        assert_eq!(of(number, 2, &mut levels, null_mut()), i64::from(code::ARGUMENT));
        let mut stats = std::mem::MaybeUninit::<HandlerStats>::uninit();
        assert_eq!(unitape_handler_get_stats(handler, stats.as_mut_ptr()), 0);
        let stats = stats.assume_init();
        assert_eq!((stats.packets, stats.trades, stats.refused, stats.gaps), (13, 1, 1, 0));
        assert!(stats.levels > 0);
        let mut channel = std::mem::MaybeUninit::<ChannelStats>::uninit();
        assert_eq!(unitape_handler_channel(handler, 3, channel.as_mut_ptr()), 0);
        assert_eq!(unitape_handler_channel(handler, 0, channel.as_mut_ptr()), 1);
        assert_eq!(channel.assume_init().lines[1].packets, 3);
        assert_eq!(unitape_handler_unsubscribe(handler, 2, group.as_ptr()), 1);
        assert_eq!(of(number, 0, &mut levels, null_mut()), i64::from(code::ARGUMENT));
        assert_eq!(unitape_handler_close(handler), 0);
        assert_eq!(unitape_handler_close(null_mut()), 0);
        let missing = CString::new("/nowhere/venue.toml").unwrap();
        assert_eq!(unitape_handler_open(missing.as_ptr(), &raw mut handler), code::OPTION);
    }
}

/// Packets that the caller has, and those of the network.
#[test]
fn packets_by_hand_and_live() {
    let dir = tempfile::tempdir().unwrap();
    let (config, file) = day_of(dir.path(), Venue::new([127, 0, 0, 1], ports::free_ports(6)));
    let mut packets = Vec::new();
    let mut capture = PacketFile::open(Path::new(file.to_str().unwrap()), None).unwrap();
    while let Some(packet) = capture.next().unwrap() {
        packets.push((packet.to, packet.ts_recv.0, packet.payload.to_vec()));
    }
    let open = |seen: &mut Seen| {
        let mut handler = null_mut();
        // SAFETY: pointers that live, from one thread, here and below.
        unsafe {
            assert_eq!(unitape_handler_open(config.as_ptr(), &raw mut handler), 0);
            seen.handler = handler as usize;
            let context = std::ptr::from_mut(seen).cast();
            assert_eq!(unitape_handler_subscribe(handler, 0, null(), Some(on_market), context), 0);
        }
        handler
    };
    let mut by_hand = Seen::default();
    let handler = open(&mut by_hand);
    for (to, ts_recv, bytes) in &packets {
        let address = CString::new(to.to_string()).unwrap();
        // SAFETY: see above.
        let taken = unsafe {
            unitape_handler_packet(handler, address.as_ptr(), bytes.as_ptr().cast(), bytes.len(), *ts_recv)
        };
        assert_eq!(taken, 0);
    }
    let address = CString::new(packets[0].0.to_string()).unwrap();
    let nowhere = CString::new("nowhere").unwrap();
    // SAFETY: see above.
    unsafe {
        // Nothing is a packet that cannot be used, and said to be.
        let refused = by_hand.whats.iter().filter(|what| **what == 8).count();
        assert_eq!(unitape_handler_packet(handler, address.as_ptr(), null(), 0, 0), 0);
        assert_eq!(by_hand.whats.iter().filter(|what| **what == 8).count(), refused + 1);
        assert_eq!(unitape_handler_packet(handler, address.as_ptr(), null(), 1, 0), code::NULL);
        assert_eq!(unitape_handler_packet(handler, null(), null(), 0, 0), code::NULL);
        assert_eq!(unitape_handler_packet(handler, nowhere.as_ptr(), null(), 0, 0), code::ARGUMENT);
        assert_eq!(unitape_handler_close(handler), 0);
    }
    by_hand.whats.pop();
    let mut live = Seen::default();
    let handler = open(&mut live);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // SAFETY: see above.
    unsafe {
        let wrong = CString::new("lo0?").unwrap();
        assert_eq!(unitape_handler_listen(handler, wrong.as_ptr(), 0), code::ARGUMENT);
        assert_eq!(unitape_handler_listen(handler, null(), 1 << 16), 0);
        assert_eq!(unitape_handler_wait(handler, 1_000_000), 0);
        assert_eq!(unitape_handler_poll(handler), 0);
        let until = Instant::now() + Duration::from_secs(180);
        let mut got = 0;
        for ((to, _, bytes), sent) in packets.iter().zip(1..) {
            socket.send_to(bytes, to).unwrap();
            // One after the other, so that they come in this order.
            while got < sent && Instant::now() < until {
                assert!(unitape_handler_wait(handler, 10_000_000) >= 0);
                got += unitape_handler_poll(handler);
            }
        }
        assert_eq!(got, packets.len() as i64);
        assert_eq!(unitape_handler_close(handler), 0);
    }
    assert_eq!((live.whats, live.best), (by_hand.whats, by_hand.best));
}

/// Each subscription to one of its instruments gets the state of a whole product once. An instrument that appears
/// later makes the state concern other subscriptions, too.
#[test]
fn a_state_of_a_product_is_for_all_who_have_some_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut venue = Venue::new([239, 1, 2, 3], 5000);
    let c = |text: &str| CString::new(text).unwrap();
    let mut seen: [Seen; 4] = std::array::from_fn(|_| Seen::default());
    let mut handler = null_mut();
    let config = c(venue.config(dir.path()).to_str().unwrap());
    let names = [(2, c("BUND")), (3, c("51")), (3, c("53")), (1, c("DAX"))];
    // SAFETY: pointers that live, from one thread.
    unsafe {
        assert_eq!(unitape_handler_open(config.as_ptr(), &raw mut handler), 0);
        for ((what, name), seen) in names.iter().zip(&mut seen) {
            let context = std::ptr::from_mut(seen).cast();
            let done = unitape_handler_subscribe(handler, *what, name.as_ptr(), Some(on_market), context);
            assert_eq!(done, 0);
        }
    }
    let give = |venue: &mut Venue, channel: usize, packet: &[u8]| {
        let to = c(&venue.addresses[channel][0].to_string());
        // SAFETY: see above.
        let done = unsafe {
            unitape_handler_packet(handler, to.as_ptr(), packet.as_ptr().cast(), packet.len(), venue.now)
        };
        assert_eq!(done, 0);
        venue.now += 20_000_000;
    };
    let mut expected = [0; 4];
    for (instruments, states_added) in [(&[51, 52][..], [1, 1, 0, 0]), (&[53], [1, 1, 1, 0])] {
        let packet = venue.reference(5, "BUND", 3, instruments);
        give(&mut venue, REFERENCE, &packet);
        for _ in 0..2 {
            let sequence = 1 + expected[0] as u64;
            let packet = venue.state(5, sequence, 3);
            give(&mut venue, DEPTH, &packet);
            expected.iter_mut().zip(states_added).for_each(|(sum, states_added)| *sum += states_added);
            let states = seen.each_ref().map(|seen| seen.whats.iter().filter(|what| **what == 3).count());
            assert_eq!(states, expected, "{sequence}");
        }
    }
    // SAFETY: it is alive.
    assert_eq!(unsafe { unitape_handler_close(handler) }, 0);
}

#[test]
fn the_example_reads_a_capture() {
    let Some(cc) = compiler("CC", "cc") else { return };
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("depth");
    let mut command = Command::new(cc);
    command.args(C99).arg("-I").arg(include()).arg(root().join("examples/c/depth.c")).args(["-x", "none"]);
    must(command.arg(library("libunitape_c.a")).args(LIBS).arg("-o").arg(&program));
    let (config, file) = day(dir.path());
    let run = |config: &str| {
        let mut command = Command::new(&program);
        command.arg(config).arg("BUND").arg(file.to_str().unwrap()).output().unwrap()
    };
    let output = run(config.to_str().unwrap());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("14 packets, "), "{said}");
    assert!(said.contains("channel depth: 3 on line A, 3 on line B, 0 lost"), "{said}");
    assert!(said.contains("instrument 0\n  bids 5@1.01 5@1.00\n  offers 3@1.02\n"), "{said}");
    assert!(said.contains("refused: "), "{said}");
    let output = run("/nowhere/venue.toml");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("depth: open: "));
}
