//! Whole histories: a venue with a truth, faults drawn by chance, and a slow twin that keeps everything for good.
//!
//! A failure names its seed; `UNITAPE_SEED=7` is that one alone, `UNITAPE_SEEDS=10000` asks for more.

use super::*;

/// SplitMix64.
pub(super) struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// True `per_mille` times in a thousand.
    fn happens(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

const PRODUCTS: u64 = 2;
const INSTRUMENTS: u64 = 3;
const DEPTH: usize = 4;
/// Some ten rounds.
const DEAD_NS: i64 = 250_000;
const WINDOW: &str = "window = { packets = 16, ns = 1000000, past = 3, dead_ns = 250000, far = 1000 }";

/// Instrument n of product p.
fn id(product: u64, n: u64) -> u64 {
    product * 10 + n
}

/// A venue.
struct Venue {
    chance: Chance,
    /// By product: number of its last message, and the books of its instruments.
    products: Vec<(u64, Vec<Book>)>,
    /// All books there ever were, by restart, product and message.
    truth: BTreeMap<(u64, u64, u64), Vec<Book>>,
    restarts: u64,
    packets: u64,
    snapshots: u64,
    clock: u64,
    cycle: u64,
}

/// A packet of the incremental channel, and its messages: product, number, entries.
type Sent = (u64, Vec<u8>, Vec<(u64, u64, Vec<E>)>);

impl Venue {
    fn new(seed: u64) -> Self {
        let mut venue = Self {
            chance: Chance(seed),
            products: vec![(0, vec![Book::default(); INSTRUMENTS as usize]); PRODUCTS as usize],
            truth: BTreeMap::new(),
            restarts: 0,
            packets: 0,
            snapshots: 0,
            clock: 1000,
            cycle: 0,
        };
        venue.note();
        venue
    }

    fn note(&mut self) {
        for (product, (number, books)) in self.products.iter().enumerate() {
            self.truth.insert((self.restarts, product as u64, *number), books.clone());
        }
    }

    fn entry(&mut self, product: u64) -> E {
        let n = self.chance.below(INSTRUMENTS);
        let side = self.chance.below(2);
        let book = &mut self.products[product as usize].1[n as usize];
        let levels = book[side as usize].len() as u64;
        let action = match self.chance.below(10) {
            _ if levels == 0 => 0,
            0..=4 => 0,
            5 | 6 => [1, 5][self.chance.below(2) as usize],
            7 | 8 => 2,
            _ => 3 + self.chance.below(2),
        };
        let places = if action == 0 { (levels + 1).min(DEPTH as u64) } else { levels };
        let level = 1 + self.chance.below(places);
        let (px, qty) = (self.chance.below(1000) as i64 - 500, 1 + self.chance.below(50));
        act(book, action, side, px, qty, level, DEPTH);
        (id(product, n), action, side, px, qty, level)
    }

    /// The next packet; the first one after a restart says so.
    fn packet(&mut self, reset: bool) -> Sent {
        let mut messages = Vec::new();
        let mut contents = Vec::new();
        for _ in 0..=self.chance.below(3) {
            let product = self.chance.below(PRODUCTS);
            if self.chance.happens(150) {
                messages.push(message(4, &[product, self.products[product as usize].0]));
                continue;
            }
            let entries: Vec<E> = (0..=self.chance.below(3)).map(|_| self.entry(product)).collect();
            self.products[product as usize].0 += 1;
            let number = self.products[product as usize].0;
            messages.push(depth(number, product, &entries));
            contents.push((product, number, entries));
            self.note();
        }
        self.packets += 1;
        self.clock += 1;
        (self.packets, packet(self.packets, self.clock, reset, &messages), contents)
    }

    /// The next snapshot: its packet, product, instrument's number and last message.
    fn snapshot(&mut self, reset: bool) -> (Vec<u8>, u64, u64, u64) {
        let (product, n) = (self.cycle / INSTRUMENTS % PRODUCTS, self.cycle % INSTRUMENTS);
        self.cycle += 1;
        self.snapshots += 1;
        self.clock += 1;
        let (last, books) = &self.products[product as usize];
        let message = snapshot(product, *last, id(product, n), &books[n as usize]);
        (packet(self.snapshots, self.clock, reset, &[message]), product, n, *last)
    }

    fn restart(&mut self) {
        self.restarts += 1;
        self.packets = 0;
        self.snapshots = 0;
        self.products.iter_mut().for_each(|p| p.0 = 0);
        self.note();
    }
}

/// Depths and instruments of all products, by reference data.
fn define(rig: &mut Rig) {
    let mut messages = Vec::new();
    for product in 0..PRODUCTS {
        let mut definition = message(7, &[product]);
        definition.push(b'P' | 0x80);
        put(&mut definition, DEPTH as u64);
        messages.push(definition);
        (0..INSTRUMENTS).for_each(|n| messages.push(message(6, &[product, id(product, n)])));
    }
    rig.send(0, REF, &packet(1, 1, false, &messages));
}

fn seeds() -> std::ops::Range<u64> {
    let variable = |name: &str| std::env::var(name).ok()?.parse().ok();
    match variable("UNITAPE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("UNITAPE_SEEDS").unwrap_or(150),
    }
}

/// A line of the venue that loses and delays packets.
struct LossyLine {
    loss: u64,
    /// Packets on their way, those that come first last.
    late: Vec<Vec<u8>>,
    dead: bool,
    /// For this many packets it does not die.
    rests: u64,
}

/// The packets that a line delivers when this one is put into it.
fn over(way: &mut LossyLine, chance: &mut Chance, payload: &[u8], reorder: bool) -> Vec<(Vec<u8>, bool)> {
    let mut out = Vec::new();
    way.rests = way.rests.saturating_sub(1);
    if way.rests == 0 && chance.happens(4) {
        way.dead = !way.dead;
    }
    if way.dead || chance.happens(way.loss) {
        return out;
    }
    if reorder && chance.happens(60) && way.late.is_empty() {
        way.late.push(payload.to_vec());
        return out;
    }
    if chance.happens(25) {
        let mut bad = payload.to_vec();
        bad.truncate(payload.len() - 1);
        out.push((bad, false));
    } else {
        out.push((payload.to_vec(), true));
        if chance.happens(30) {
            out.push((payload.to_vec(), true));
        }
    }
    out.extend(way.late.drain(..).map(|late| (late, true)));
    out
}

/// Whenever a book is live it is the venue's, at the message it has come to; and when the faults end all come back.
#[test]
fn live_books_are_the_venues() {
    for seed in seeds() {
        let mut venue = Venue::new(seed);
        let mut rig = Rig::new(&format!("market_depth = 4\n{WINDOW}"));
        let mut ways = [0, 1].map(|_| LossyLine {
            loss: [0, 20, 150][venue.chance.below(3) as usize],
            late: vec![],
            dead: false,
            rests: 0,
        });
        if venue.chance.happens(500) {
            define(&mut rig);
        }
        let joins = venue.chance.below(30);
        let (mut reset, mut reset_snapshots, mut restarted) = (false, false, 0);
        for round in 0..250 {
            let calm = round > 200;
            // A restart right after another, with nothing heard of it, cannot be distinguished from one without a
            // break.
            if !calm && round > restarted + 50 && venue.chance.happens(12) {
                restarted = round;
                // Nor can one in a silence of both lines, nor a packet of before it with a number that is next.
                for way in &mut ways {
                    (way.dead, way.rests) = (false, 20);
                    way.late.clear();
                }
                venue.restart();
                (reset, reset_snapshots) = (true, true);
            }
            let (_, payload, _) = venue.packet(std::mem::take(&mut reset));
            for line in 0..2u8 {
                let way = &mut ways[usize::from(line)];
                let mut chance = Chance(venue.chance.next());
                let came = match calm {
                    true => way.late.drain(..).map(|l| (l, true)).chain([(payload.clone(), true)]).collect(),
                    false => over(way, &mut chance, &payload, true),
                };
                for (bytes, _) in came.iter().filter(|_| round >= joins) {
                    rig.send(line, INC, bytes);
                    check(seed, &rig, &venue);
                }
            }
            // Snapshots are rarer, and lost at times.
            if round % 2 == 0 || calm {
                let (payload, ..) = venue.snapshot(std::mem::take(&mut reset_snapshots));
                if round >= joins && (calm || !venue.chance.happens(100)) {
                    rig.send(venue.chance.below(2) as u8, SNAP, &payload);
                    check(seed, &rig, &venue);
                }
            }
            rig.now += 20_000;
        }
        for product in 0..PRODUCTS {
            for n in 0..INSTRUMENTS {
                let book = rig.book(&id(product, n).to_string());
                let truth = &venue.products[product as usize].1[n as usize];
                assert_eq!(
                    book,
                    Some(truth),
                    "seed {seed}, instrument {}: {:?}",
                    id(product, n),
                    rig.seen.log
                );
            }
        }
    }
}

/// All live books against the truth.
fn check(seed: u64, rig: &Rig, venue: &Venue) {
    let (tables, products) = rig.handler.parts();
    for (index, instrument) in tables.instrument_ids().zip(&tables.instruments) {
        let state = &products.instruments[index.index()];
        if !state.is_live {
            continue;
        }
        let product: u64 = tables.products[state.product.index()].id.parse().unwrap();
        let n = instrument.id.parse::<u64>().unwrap() % 10;
        let next = products.list[state.product.index()].next_number.unwrap_or(1);
        let at = (next - 1).max(state.last_in_book);
        let default = Book::default();
        let book = rig.seen.books.get(&index).unwrap_or(&default);
        // The test does not check the numbering: the books must be those of one of them.
        let fits = (0..=venue.restarts)
            .filter_map(|restart| venue.truth.get(&(restart, product, at)))
            .any(|books| &books[n as usize] == book);
        let log = &rig.seen.log[rig.seen.log.len().saturating_sub(12)..];
        assert!(
            fits,
            "seed {seed}: {} at message {at} has {book:?}, {log:?}, {}",
            instrument.id, venue.restarts
        );
    }
    assert_eq!(rig.seen.faults, 0, "seed {seed}");
}

/// The twin: all packets and messages are kept, and what follows from them is worked out again each time.
struct Twin {
    expected: Option<u64>,
    since: Option<i64>,
    /// Good packets by number.
    good: BTreeMap<u64, Vec<(u64, u64, Vec<E>)>>,
    /// By line: greatest number, and when it was heard.
    lines: [Option<(u64, i64)>; 2],
    /// By line: all numbers that it brought, good or bad.
    brought: [std::collections::BTreeSet<u64>; 2],
    /// Snapshots: product, instrument, last message, book.
    snapshots: Vec<(usize, u64, u64, Book)>,
    products: Vec<TwinProduct>,
    lost: u64,
}

#[derive(Default)]
struct TwinProduct {
    messages: BTreeMap<u64, Vec<E>>,
    missing: std::collections::BTreeSet<u64>,
    next: Option<u64>,
    /// By instrument: the last message of the snapshot it is based on, and its book.
    bases: [Option<(u64, Book)>; INSTRUMENTS as usize],
}

impl TwinProduct {
    /// Whether nothing is missing after the snapshot.
    fn is_live(&self, n: u64) -> bool {
        let last = self.bases[n as usize].as_ref().map(|(last, _)| *last);
        last.is_some_and(|last| self.missing.range(last + 1..).next().is_none())
    }

    fn book(&self, product: u64, n: u64) -> Book {
        let (last, book) = self.bases[n as usize].as_ref().unwrap();
        let mut book = book.clone();
        let behind = self.messages.range(last + 1..).flat_map(|(_, entries)| entries);
        for (_, action, side, px, qty, level) in behind.filter(|e| e.0 == id(product, n)) {
            act(&mut book, *action, *side, *px, *qty, *level, DEPTH);
        }
        book
    }

    fn message(&mut self, number: u64, entries: &[E]) {
        let next = self.next.unwrap_or(number);
        if self.next.is_none() {
            self.missing.extend(0..number);
        }
        self.missing.extend(next..number);
        if number >= next {
            self.messages.insert(number, entries.to_vec());
            self.next = Some(number + 1);
        }
    }

    fn snapshot(&mut self, n: u64, last: u64, book: &Book) {
        let covers = self.missing.iter().all(|missing| *missing <= last);
        if !self.is_live(n) && covers {
            self.bases[n as usize] = Some((last, book.clone()));
            self.next.get_or_insert(last + 1);
        }
    }
}

impl Twin {
    fn wants(&self) -> bool {
        self.products.iter().any(|p| (0..INSTRUMENTS).any(|n| !p.is_live(n)))
    }

    /// Everything that can continue at this time.
    fn go_on(&mut self, now: i64) {
        while let Some(expected) = self.expected {
            if let Some(messages) = self.good.get(&expected).cloned() {
                let missing = |twin: &Self| twin.products.iter().map(|p| p.missing.len()).sum::<usize>();
                let before = missing(self);
                for (product, number, entries) in &messages {
                    self.products[*product as usize].message(*number, entries);
                }
                // A snapshot that came before may have what is missing.
                if missing(self) > before {
                    for (product, n, last, book) in self.snapshots.iter().rev() {
                        self.products[*product].snapshot(*n, *last, book);
                    }
                }
                (self.expected, self.since) = (Some(expected + 1), None);
                continue;
            }
            let ahead: Vec<u64> = self.good.range(expected..).map(|(n, _)| *n).collect();
            let Some(first) = ahead.first() else { return };
            let since = *self.since.get_or_insert(now);
            let lines = self.lines.iter().zip(&self.brought);
            let mut alive = lines.filter(|(line, _)| line.is_some_and(|(_, heard)| now - heard <= DEAD_NS));
            if alive.all(|(_, brought)| brought.range(expected + 1..).count() >= 3)
                || ahead.len() > 16
                || now - since > 1_000_000
            {
                self.lost += first - expected;
                (self.expected, self.since) = (Some(*first), None);
            } else {
                return;
            }
        }
    }

    fn packet(&mut self, now: i64, line: u8, number: u64, good: bool, messages: &[(u64, u64, Vec<E>)]) {
        let waits = self.expected.is_some_and(|e| self.good.range(e..).next().is_some());
        if waits {
            self.go_on(now);
        }
        let at = &mut self.lines[usize::from(line)];
        *at = Some((at.map_or(number, |(last, _)| last.max(number)), now));
        self.brought[usize::from(line)].insert(number);
        self.expected.get_or_insert(number);
        if good {
            self.good.entry(number).or_insert_with(|| messages.to_vec());
        } else if self.expected == Some(number) {
            self.since.get_or_insert(now);
        }
        self.go_on(now);
    }
}

/// The handler and the twin have the same books live at the same times, with the same levels.
#[test]
fn the_handler_is_as_its_twin() {
    for seed in seeds() {
        let mut venue = Venue::new(seed);
        let mut rig = Rig::new(WINDOW);
        define(&mut rig);
        let products = (0..PRODUCTS).map(|_| TwinProduct::default()).collect();
        let mut twin = Twin {
            expected: None,
            since: None,
            good: BTreeMap::new(),
            lines: [None; 2],
            brought: Default::default(),
            snapshots: Vec::new(),
            products,
            lost: 0,
        };
        let mut ways = [0, 1].map(|_| LossyLine {
            loss: [0, 50, 200][venue.chance.below(3) as usize],
            late: vec![],
            dead: false,
            rests: 0,
        });
        for round in 0..200 {
            let (number, payload, contents) = loop {
                // Beacons are left out: the twin reads depth only.
                let sent = venue.packet(false);
                if !sent.2.is_empty() {
                    break sent;
                }
                venue.packets -= 1;
            };
            let payload = match contents.is_empty() {
                true => payload,
                false => {
                    let messages: Vec<_> = contents.iter().map(|(p, n, e)| depth(*n, *p, e)).collect();
                    packet(number, venue.clock, false, &messages)
                }
            };
            for line in 0..2u8 {
                let mut chance = Chance(venue.chance.next());
                for (bytes, good) in over(&mut ways[usize::from(line)], &mut chance, &payload, false) {
                    rig.send(line, INC, &bytes);
                    twin.packet(rig.now, line, number, good, &contents);
                    same(seed, &rig, &twin);
                }
            }
            if round % 3 == 0 {
                let wants = twin.wants();
                let (bytes, product, n, last) = venue.snapshot(false);
                let waits = twin.expected.is_some_and(|e| twin.good.range(e..).next().is_some());
                rig.send(0, SNAP, &bytes);
                if waits {
                    twin.go_on(rig.now);
                }
                let book = venue.products[product as usize].1[n as usize].clone();
                if wants || twin.wants() {
                    twin.products[product as usize].snapshot(n, last, &book);
                }
                same(seed, &rig, &twin);
            }
            rig.now += [0, 30_000, 400_000][venue.chance.below(3) as usize];
        }
        assert_eq!(rig.handler.stats().channels[0].lost, twin.lost, "seed {seed}");
    }
}

fn same(seed: u64, rig: &Rig, twin: &Twin) {
    for product in 0..PRODUCTS {
        for n in 0..INSTRUMENTS {
            let of = &twin.products[product as usize];
            let name = id(product, n).to_string();
            let expected = of.is_live(n).then(|| of.book(product, n));
            assert_eq!(rig.book(&name), expected.as_ref(), "seed {seed}, instrument {name}");
        }
    }
}
