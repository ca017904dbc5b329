//! Books against the slow twin, and what holds of any book after any events.

use super::{BookFixture, long};
use crate::twin::naive::{self, Naive};
use crate::value::price_key;
use crate::{Basis, BookOptions, Books, DepthLimit, LevelAction, LevelBook, LevelChange, TapeBooks};
use proptest::{prelude::*, sample};
use unitape_model::{DefinitionTable, Event, NameKind, Price, Side, flags};

fn word(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> + Clone {
    proptest::sample::select(words)
}

/// A line of short form, sense or nonsense, with flags and offset.
fn any_line() -> impl Strategy<Value = (String, u8, u32)> {
    let of = (
        word(&["venue=XLON", "venue=XLON", "venue=CHIX", "venue=NBBO", "venue="]),
        word(&["instr=VOD", "instr=VOD", "instr=VOD", "instr=BP", "instr="]),
        0i64..400,
    );
    let id = word(&["A", "B", "C", "D", "E", "F", "G", "+1", "a-very-long-identifier-of-some-order"]);
    let side = word(&["side=B", "side=S", "side=B", "side=S", "side="]);
    let px = word(&["px=9", "px=9.5", "px=10", "px=10", "px=10.5", "px=11", "px=-1", "px="]);
    let qty = word(&["qty=1", "qty=2", "qty=5", "qty=10", "qty=300", "qty=0.25", "qty=0", "qty=-3", "qty="]);
    let terms = word(&["", "", "", "", "tif=DAY", "tif=IOC", "type=limit", "type=market", "type=stoplmt"]);
    let order = (
        word(&["new", "new", "new", "new", "amend", "amend", "cancel", "exec", "exec", "exec"]),
        id,
        side.clone(),
        px.clone(),
        qty.clone(),
        terms,
        word(&[
            "",
            "",
            "",
            "",
            "",
            "left=0",
            "left=1",
            "left=3",
            "left=0.75",
            "left=-1",
            "display_qty=0",
            "display_qty=1",
            "display_qty=2.5",
            "display_qty=20",
            "display_qty=-1",
            "left=2 display_qty=1",
            "reason=suspended",
            "reason=rejected",
            "qty_reduced=1",
            "qty_reduced=2",
            "qty_reduced=0.5",
            "qty_reduced=1 display_qty=1",
        ]),
        word(&["", "", "", "", "", "", "qty_reduced=0", "qty_reduced=-1"]),
    )
        .prop_map(|(kind, id, side, px, qty, terms, more, rare)| match kind {
            "exec" => {
                let [px, qty] =
                    [(px, "px=10"), (qty, "qty=2")].map(|(w, or)| if w.ends_with('=') { or } else { w });
                format!("exec oid={id} {side} {px} {qty}")
            }
            "cancel" => {
                format!("cancel oid={id} {side} {}", if more.starts_with("reason") { more } else { "" })
            }
            "amend" if more.starts_with("qty_reduced") => {
                // Most name the order alone.
                let (side, px) = if rare.is_empty() { ("", "") } else { (side, px) };
                format!("amend oid={id} {side} {px} {terms} {more}")
            }
            "amend" if rare.starts_with("qty_reduced") => format!("amend oid={id} {qty} {rare} {more}"),
            kind => format!("{kind} oid={id} {side} {px} {qty} {terms} {more}"),
        });
    let level = (
        word(&["A", "A", "A", "C", "C", "D", "D", "R", "U", "U"]),
        side,
        px,
        qty,
        word(&["", "", "", "depth=1", "depth=2", "depth=3", "depth=9", "depth=0"]),
        word(&["", "orders=3"]),
    )
        .prop_map(|(action, side, px, qty, depth, orders)| {
            let rare = action == "R" && depth != "depth=9";
            format!("level action={} {side} {px} {qty} {depth} {orders}", if rare { "A" } else { action })
        });
    let bbo = (
        word(&["bid=9 bid_qty=1", "bid=10", "bid=9.5 bid_qty=0", "bid_qty=0", "bid_qty=7", ""]),
        word(&["ask=10 ask_qty=5", "ask=11 ask_qty=5000000000.5", "ask_qty=6000000000.5", "ask=10.5", ""]),
        word(&["", "partial=true", "partial=true", "partial=false"]),
    )
        .prop_map(|(bid, ask, partial)| format!("bbo {bid} {ask} {partial}"));
    let session = word(&["open", "open", "open", "auction", "halt", "pre", "close", "lunch"])
        .prop_map(|p| format!("session phase={p}"));
    let status =
        word(&["stale", "stale", "recovered", "recovered", "LIVE", "halted", "trading", "restarted"])
            .prop_map(|state| format!("status state={state}"));
    let about = prop_oneof![30 => order, 8 => level, 5 => bbo, 1 => session, 2 => status];
    // Now and then two are at one place.
    let frame = (0u8..12, prop_oneof![1 => 0u32..3, 3 => 0u32..1000]);
    (about, of, frame).prop_map(|(about, (venue, instr, ts), (flag, offset))| {
        let flags = match flag {
            0 => flags::LAST | flags::LATE,
            1 => flags::LAST | flags::SNAPSHOT,
            _ => flags::LAST,
        };
        // Most that are about books name an instrument.
        (format!("{about} {venue} {instr} ts={ts}"), flags, offset)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Whatever a feed says, in whatever order, the fast books and the slow ones are the same after every event. The
    /// reported changes are what changed.
    #[test]
    fn the_twin_agrees_at_every_event(
        lines in proptest::collection::vec(any_line(), 1..120),
        stale_after_ns in proptest::option::of(0i64..200),
    ) {
        let mut t = BookFixture::new(BookOptions { stale_after_ns, ..BookOptions::default() });
        let all = t.names.intern(NameKind::Venue, b"NBBO").unwrap().0 as u16;
        t.books.set_all_venues(all);
        let mut twin = Naive::new(stale_after_ns, Some(all));
        let (mut before, mut story) = (Vec::new(), String::new());
        for (short, flags, offset) in lines {
            if !t.parse(&long(&short), flags, offset) {
                continue;
            }
            story += &format!("{short} {flags} {offset}\n");
            let changes = t.line(&long(&short), flags, offset).to_vec();
            twin.on_event(&Event::new(&t.arena).unwrap());
            let (fast, slow) = (naive::dump(&t.books), twin.dump());
            prop_assert!(fast == slow, "after\n{}fast\n{}slow\n{}", story, fast, slow);
            check_state(&t.books);
            let now: Vec<_> = t.books.listings().map(|id| t.books.listing(id).bbo()).collect();
            for (n, bbo) in now.iter().enumerate() {
                let was = before.get(n).copied().unwrap_or_default();
                let other = price_of(bbo) != price_of(&was);
                let noted = changes.iter().any(|c| c.listing.0 as usize == n && c.best_changed);
                // With an age, time alone can change what is best.
                prop_assert!(noted == other || stale_after_ns.is_some(), "after\n{}: {:?}", story, changes);
            }
            before = now;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Deep books are searched in another way than what lies near the touch, and out of order in yet another.
    #[test]
    fn the_twin_agrees_on_deep_books(
        steps in proptest::collection::vec((0u8..20, 0i64..40, 1u32..30, any::<bool>()), 1..250),
    ) {
        let (mut t, mut twin) = (BookFixture::new(BookOptions::default()), Naive::new(None, None));
        for (n, (step, px, depth, bid)) in steps.into_iter().enumerate() {
            let side = if bid { "B" } else { "S" };
            let short = match step {
                0 => format!("level action=A side={side} px={px} qty=1 depth={depth}"),
                1 => format!("level action=D side={side} depth={depth}"),
                2..6 => format!("level action=D side={side} px={px}"),
                6..12 => format!("level action=A side={side} px={px} qty={n}1"),
                12..18 => format!("new oid={side}{px} side={side} px={} qty=2", if bid { px } else { px + 40 }),
                _ => format!("cancel oid={side}{px}"),
            };
            t.feed(&short);
            twin.on_event(&Event::new(&t.arena).unwrap());
            let (fast, slow) = (naive::dump(&t.books), twin.dump());
            prop_assert!(fast == slow, "{}\nfast\n{}slow\n{}", short, fast, slow);
        }
    }
}

/// The books of a state with these options, and no names.
fn from_state(options: BookOptions, state: &[u8]) -> Option<Books> {
    TapeBooks::decode_state(options, DefinitionTable::default(), state).map(|tape| tape.books)
}

/// The state of books without names.
fn state_of(books: &Books) -> Vec<u8> {
    let mut state = Vec::new();
    books.encode(&mut state);
    // Venues, losses without a name, and the numbers of names: none.
    state.resize(state.len() + 4 + 8 + 8 + 4 * NameKind::COUNT, 0);
    state
}

/// A checkpoint that does not come back would only make a replay slow, so nothing else would show it.
fn check_state(books: &Books) {
    let state = state_of(books);
    let again = from_state(books.options.clone(), &state).expect("books that events have made");
    assert_eq!(state_of(&again), state);
    check_whole(&again);
}

/// One change of the bytes of a state: a byte, or a number of a slot, a count or a length.
fn any_forgery() -> impl Strategy<Value = (sample::Index, Vec<u8>)> {
    let slot = prop_oneof![4 => 0u32..12, 1 => Just(u32::MAX), 1 => any::<u32>()];
    let count = prop_oneof![4 => 0u64..12, 1 => Just(1 << 61), 1 => any::<u64>()];
    let bytes = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        slot.prop_map(|slot| slot.to_le_bytes().into()),
        count.prop_map(|count| count.to_le_bytes().into()),
    ];
    (any::<sample::Index>(), bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    /// Somebody who writes a checkpoint with right checksums could make books panic, or never end, at a later event.
    #[test]
    fn a_forged_state_gives_no_books_or_whole_ones(
        before in proptest::collection::vec(any_line(), 1..40),
        forgeries in proptest::collection::vec(any_forgery(), 1..4),
        after in proptest::collection::vec(any_line(), 1..40),
    ) {
        let mut t = BookFixture::new(BookOptions::default());
        for (short, flags, offset) in &before {
            if t.parse(&long(short), *flags, *offset) {
                t.books.on_event(&Event::new(&t.arena).unwrap());
            }
        }
        let mut state = state_of(&t.books);
        for (at, bytes) in forgeries {
            let at = at.index(state.len());
            let room = bytes.len().min(state.len() - at);
            state[at..at + room].copy_from_slice(&bytes[..room]);
        }
        let Some(books) = from_state(BookOptions::default(), &state) else { return Ok(()) };
        check_whole(&books);
        t.books = books;
        for (short, flags, offset) in &after {
            if t.parse(&long(short), *flags, *offset) {
                t.books.on_event(&Event::new(&t.arena).unwrap());
            }
        }
        check_whole(&t.books);
        check_state(&t.books);
        naive::dump(&t.books);
    }
}

/// Properties of any book after any events: prices in order, quantities that add up, every order found.
fn check_whole(books: &Books) {
    let mut orders = 0;
    for id in books.listings() {
        let book = books.book(id, Basis::Orders);
        for side in Side::BOTH {
            let prices: Vec<i64> = book.levels(side).map(|l| price_key(side, l.px.0)).collect();
            assert!(prices.windows(2).all(|w| w[0] > w[1]), "{prices:?}");
            for level in book.levels(side) {
                let queue: Vec<_> = book.queue(side, level.px).collect();
                assert_eq!(level.orders, Some(queue.len() as u32));
                assert!(
                    queue
                        .iter()
                        .all(|o| book.order(&o.oid) == Some(*o) && o.is_queued && o.left.mantissa() > 0)
                );
                orders += queue.len();
            }
        }
        let aside = book.unqueued_orders().inspect(|o| assert_eq!(book.order(&o.oid), Some(*o))).count();
        orders += aside;
    }
    assert_eq!(orders, books.orders());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// A tape with flipped bits holds exponents, codes and ids that no reader of lines lets through.
    #[test]
    fn any_frames_leave_whole_books(
        events in proptest::collection::vec((0usize..8, any::<[u8; 16]>(), 0u8..4, any::<u8>(), 0u8..8, any::<u8>()), 1..60),
    ) {
        let mut books = Books::new(BookOptions { levels_max: 5, orders_per_book_max: 9, ..BookOptions::default() });
        for (kind, noise, oid, exp, px, codes) in events {
            let kinds = [25u8, 25, 26, 27, 28, 20, 19, 17];
            let mut frame = vec![0u8; 128];
            let lines = if (25..=28).contains(&kinds[kind]) { 2 } else { 1 };
            unitape_model::FrameHeader::new_unstamped(kinds[kind], noise[0] & 0x1b, lines).write(&mut frame);
            frame[8..16].copy_from_slice(&noise[..8]);
            (frame[32], frame[36], frame[38], frame[39]) = (noise[8] % 3, noise[9] % 2, codes, exp);
            if noise[10] > 200 {
                frame[40..48].copy_from_slice(&noise[..8]);
                frame[48..56].copy_from_slice(&noise[8..]);
            } else {
                (frame[40], frame[48]) = (px, noise[11]);
                frame[39] = if noise[12] > 100 { 0 } else { exp % 32 };
            }
            (frame[80], frame[56]) = (oid * 60, noise[13]);
            books.on_event(&Event::new(&frame).unwrap());
        }
        check_whole(&books);
        check_state(&books);
        naive::dump(&books);
    }
}

proptest! {
    /// A change that looks plain and is not, on a side that is full or with a level of nothing: the fast path gives
    /// what the other one does, and leaves the same book.
    #[test]
    fn the_quick_way_agrees(
        max in (any::<bool>(), 1u32..7),
        changes in proptest::collection::vec(any_change(), 0..60),
    ) {
        let levels_max = if max.0 { DepthLimit::Published(max.1) } else { DepthLimit::Kept(max.1) };
        let (mut quick, mut other) = (LevelBook::default(), LevelBook::default());
        for change in &changes {
            prop_assert_eq!(quick.apply(change, levels_max), other.apply_any(change, levels_max));
            prop_assert_eq!(format!("{quick:?}"), format!("{other:?}"));
        }
    }
}

fn any_change() -> impl Strategy<Value = LevelChange> {
    let action =
        sample::select(vec![LevelAction::Add, LevelAction::Change, LevelAction::Delete, LevelAction::Set]);
    let side = sample::select(vec![Some(Side::Buy), Some(Side::Buy), Some(Side::Sell), None]);
    let px = prop_oneof![9 => -6i64..6, 1 => Just(Price::NONE.0)];
    let exponent = prop_oneof![9 => Just(0i8), 1 => any::<i8>()];
    let qty = prop_oneof![9 => (-1i64..9, exponent).prop_map(Some), 1 => Just(None)];
    let depth = prop_oneof![9 => (0u64..8).prop_map(Some), 1 => any::<u64>().prop_map(Some), 1 => Just(None)];
    (prop_oneof![20 => action, 1 => Just(LevelAction::Clear)], side, px, qty, depth)
        .prop_map(|(action, side, px, qty, depth)| LevelChange { action, side, px, qty, orders: 1, depth })
}

fn price_of(bbo: &crate::Bbo) -> [Option<(Price, unitape_model::Amount)>; 2] {
    [bbo.bid, bbo.ask].map(|l| l.map(|l| (l.px, l.qty)))
}
