//! The exchange in a box against the handler: whatever its lines lose, a book that is not stale is the exchange's own, and when
//! all has been told once more every book is.
//!
//! `UNITAPE_SEEDS=5000 cargo test --release -p unitape-handler --test exchange` runs so many; `UNITAPE_SEED=17` one of them.

use std::path::Path;
use unitape_handler::{Handler, Listener, Packet, Side, Subscription, Update};
use unitape_sim::exchange::{
    At, Channel, Exchange, ExchangeConfig, Faults, Level, Line, TemplateSets, Truth,
};

/// Seeds of an ordinary run.
const SEEDS: u64 = 60;

fn seeds() -> Vec<u64> {
    let number = |name| std::env::var(name).ok().map(|n: String| n.parse::<u64>().expect("a number"));
    match number("UNITAPE_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("UNITAPE_SEEDS").unwrap_or(SEEDS)).collect(),
    }
}

/// Of each seed another day: how many products, what goes wrong and how often.
fn config(seed: u64) -> ExchangeConfig {
    // Any mixing will do.
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d;
    let mut below = |n: u64| {
        state ^= state >> 29;
        state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^= state >> 32;
        state % n
    };
    let mut rate = |most: u64| if below(2) == 0 { 0 } else { below(most) as u32 };
    let faults = Faults {
        lost_once: rate(100_000),
        lost: rate(20_000),
        doubled: rate(50_000),
        swapped: rate(50_000),
        damaged: rate(10_000),
        dead: rate(1_000),
        dead_ns: 20_000_000,
        restarts: rate(600),
        join: u64::from(rate(300)),
    };
    ExchangeConfig {
        seed,
        products: 1 + below(4) as u32,
        futures: 3,
        options: 8,
        partitions: 1 + below(2) as u32,
        messages: 2_500,
        rate: 10_000,
        snapshot_ns: 2_000_000 + below(20_000_000),
        reference_ns: 20_000_000 + below(200_000_000),
        faults,
        ..ExchangeConfig::default()
    }
}

/// The handler's configuration, beside the templates.
fn mapping(config: &ExchangeConfig) -> String {
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/fast/box");
    let address = |channel, line| {
        let all = (1..=config.partitions).map(|p| format!("\"{}\"", config.address(channel, line, p)));
        all.collect::<Vec<_>>().join(", ")
    };
    let mut text =
        "name = \"box\"\nformat = \"fast\"\n[fast]\nlike = \"t7-emdi\"\nvenue = \"XBOX\"\n".to_owned();
    for (role, channel) in [
        ("incremental", Channel::Incremental),
        ("snapshot", Channel::Snapshot),
        ("reference", Channel::Reference),
    ] {
        let (a, b) = (address(channel, Line::A), address(channel, Line::B));
        let file = templates.join(format!("{role}.xml"));
        text += &format!("[[fast.channel]]\nname = \"{role}\"\nrole = \"{role}\"\na = [{a}]\n");
        if channel == Channel::Incremental {
            text += &format!("b = [{b}]\n");
        }
        text += &format!("templates = [{:?}]\n", file.display().to_string());
    }
    text
}

/// A side as it should be: prices in units of 1e-9.
fn levels(truth: &[Level], exponent: i8) -> Vec<(i64, u32, u32)> {
    let unit = 10i64.pow((9 + i32::from(exponent)) as u32);
    truth.iter().map(|l| (l.px * unit, l.qty, l.orders)).collect()
}

/// The same as the handler has it.
fn side(book: &unitape_handler::BookView<'_>, side: Side) -> Vec<(i64, u32, u32)> {
    let of = |rung: &unitape_handler::Rung| {
        let level = rung.level();
        let qty = level.qty.to_string().parse().expect("a whole number");
        (level.px.0, qty, level.orders.expect("the exchange tells them"))
    };
    book.levels(side).map(of).collect()
}

/// Holds each book that it is told of against the exchange's own.
struct Held<'t> {
    exchange: &'t Exchange,
    seed: u64,
    compared: u64,
    recovered: u64,
}

impl Held<'_> {
    fn truth(&self) -> &Truth {
        self.exchange.truth()
    }
}

impl Listener for Held<'_> {
    fn book(&mut self, update: &Update<'_>) {
        let id = &update.at.tables.instruments[update.instrument as usize].id;
        let world = self.exchange.world();
        let place =
            world.instruments.iter().position(|i| i.id.to_string() == *id).expect("one of the exchange's");
        if update.book.is_stale() {
            return;
        }
        let Some(seq) = update.at.sequence.filter(|_| !update.at.snapshot) else { return };
        self.compared += 1;
        let product = world.product_of(place);
        let mut now = [Side::Buy, Side::Sell].map(|s| side(&update.book, s));
        // Until reference data tell how many levels there are, nobody knows that one has fallen out.
        let told = &update.at.tables.instruments[update.instrument as usize];
        if told.depth.or(update.at.tables.products[told.product as usize].depth).is_none() {
            now.iter_mut().for_each(|levels| levels.truncate(product.depth as usize));
        }
        // The exchange may have gone on since, and begun again.
        let restarts = 0..=self.truth().at(world.instruments[place].product).restarts;
        let moments =
            restarts.filter_map(|restarts| self.truth().moment(place, At { restarts, seq: seq as u32 }));
        let is: Vec<_> = moments
            .map(|m| [levels(&m.bids, product.exponent), levels(&m.offers, product.exponent)])
            .collect();
        assert!(
            is.contains(&now),
            "seed {}: instrument {id} at message {seq}, cleared {}:\n{now:?}, but\n{is:?}",
            self.seed,
            update.cleared
        );
    }

    fn recovered(&mut self, _: &unitape_handler::At<'_>, _: u32) {
        self.recovered += 1;
    }
}

#[test]
fn a_book_that_is_not_stale_is_the_exchanges() {
    let dir = tempfile::tempdir().unwrap();
    let templates = TemplateSets::ours();
    let (mut compared, mut recovered, mut failed) = (0, 0, Vec::new());
    for seed in seeds() {
        let config = config(seed);
        let file = dir.path().join("box.toml");
        std::fs::write(&file, mapping(&config)).unwrap();
        let mut handler = Handler::open(&file).unwrap();
        handler.subscribe(Subscription::All);
        let mut exchange = Exchange::new(config, &templates).unwrap();
        let mut place = 0;
        while let Some(packet) = exchange.next().unwrap() {
            let mut held = Held { exchange: &exchange, seed, compared: 0, recovered: 0 };
            let ts_recv = packet.ts_ns as i64;
            let packet = Packet { to: packet.to.into(), ts_recv, place, payload: &packet.bytes };
            place += packet.payload.len() as u64;
            handler.packet(packet, &mut held);
            compared += held.compared;
            recovered += held.recovered;
        }
        handler.idle(i64::MAX / 2, &mut ());
        let (world, truth) = (exchange.world(), exchange.truth());
        for (n, instrument) in world.instruments.iter().enumerate() {
            let Some(moment) = truth.now(n) else { continue };
            let exponent = world.product_of(n).exponent;
            let book = handler.find(&instrument.id.to_string()).and_then(|i| handler.book(i));
            let what = match book {
                None => "is not known".to_owned(),
                Some(book) if book.is_stale() => "is stale".to_owned(),
                Some(book) if side(&book, Side::Buy) != levels(&moment.bids, exponent) => {
                    "has other bids".to_owned()
                }
                Some(book) if side(&book, Side::Sell) != levels(&moment.offers, exponent) => {
                    "has other offers".to_owned()
                }
                Some(_) => continue,
            };
            failed.push(format!("seed {seed}: instrument {} {what}, {:?}", instrument.id, exchange.faults()));
            break;
        }
    }
    assert!(failed.is_empty(), "{} seeds:\n{}", failed.len(), failed.join("\n"));
    assert!(
        compared > 10_000 && recovered > 100 || seeds().len() == 1,
        "{compared} compared, {recovered} recovered"
    );
}
