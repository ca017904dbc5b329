//! `bench fast/handler` and `bench fast/book-latency`: packets of the exchange in a box, to books and to a strategy's calls.

use crate::context::BenchContext;
use crate::error::Error;
use crate::record::{BenchRecord, HexSha256, LatencyPercentiles, RepeatTimes, histogram, note};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use unitape_base::capture::write::{datagram, file_header};
use unitape_marketdata::{BookUpdate, Handler, Listener, LiveOptions, Side, StoredLevel, Subscription};
use unitape_sim::exchange::{
    ChannelTemplates, DeliveredPacket, Exchange, ExchangeConfig, ExchangeInstrument, ExchangeLine,
};
use unitape_sim::twin::{ExactLevel, ReceivedBook};

/// Runs the cases.
pub fn run(
    context: &BenchContext,
    out: &mut dyn FnMut(BenchRecord) -> Result<(), Error>,
) -> Result<(), Error> {
    if context.wants("fast", "handler") {
        for (condition, lines, is_all_products) in
            [("A alone", 1, true), ("A and B", 2, true), ("A and B, one product of 20", 2, false)]
        {
            out(handler(context, condition, lines, is_all_products)?)?;
        }
    }
    if context.wants("fast", "book-latency") {
        out(latency(context)?)?;
    }
    Ok(())
}

/// The published packets of an exchange, and its books at the end.
struct PublishedDay {
    packets: Vec<DeliveredPacket>,
    exchange: Exchange,
}

impl PublishedDay {
    fn new(group: SocketAddrV4, messages: u64, rate: u32) -> Result<Self, Error> {
        let config = ExchangeConfig {
            products: 20,
            futures: 4,
            options: 40,
            partitions: 2,
            messages,
            rate,
            group,
            ..ExchangeConfig::default()
        };
        let wrong = |e: unitape_sim::exchange::Error| Error::Failed(format!("the exchange: {e}"));
        let mut exchange = Exchange::new(config, &ChannelTemplates::shipped()).map_err(wrong)?;
        let mut packets = Vec::new();
        while let Some(packet) = exchange.next().map_err(wrong)? {
            packets.push(packet);
        }
        Ok(Self { packets, exchange })
    }

    /// Writes the handler's configuration and its templates to a directory.
    fn config(&self, dir: &Path) -> Result<PathBuf, Error> {
        const TEMPLATES: [(&str, &str); 3] = [
            ("incremental.xml", include_str!("../../../vectors/fast/box/incremental.xml")),
            ("snapshot.xml", include_str!("../../../vectors/fast/box/snapshot.xml")),
            ("reference.xml", include_str!("../../../vectors/fast/box/reference.xml")),
        ];
        let fail = |e: std::io::Error| Error::Failed(format!("{}: {e}", dir.display()));
        for (name, text) in TEMPLATES {
            std::fs::write(dir.join(name), text).map_err(fail)?;
        }
        let mapping = self.exchange.config().mapping(|channel| format!("{}.xml", channel.name()));
        // The first message begins with empty books: no snapshot is waited for.
        let text = mapping + "\n[fast.recovery]\nfirst = 1\n";
        let path = dir.join("box.toml");
        std::fs::write(&path, text).map_err(fail)?;
        Ok(path)
    }

    /// Writes all packets as a capture. With two lines, includes the packets of line B.
    fn capture(&self, lines: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        file_header(&mut bytes);
        let from = "10.0.0.1:1".parse().expect("an address");
        for packet in self.packets.iter().filter(|p| lines == 2 || p.line == ExchangeLine::A) {
            datagram(&mut bytes, packet.ts_ns as i64, from, SocketAddr::V4(packet.to), &packet.bytes);
        }
        bytes
    }

    /// Finds the first difference between the handler and the exchange, among the `wanted` instruments.
    fn differs(&self, handler: &Handler, wanted: impl Fn(&ExchangeInstrument) -> bool) -> Option<String> {
        let exact = |rung: &StoredLevel| ExactLevel {
            px: rung.px,
            qty: rung.level().qty.to_string().parse().unwrap_or(u64::MAX),
            orders: rung.orders,
        };
        self.exchange.first_difference(wanted, |instrument| {
            let book = handler.book(handler.find(&instrument.id.to_string())?)?;
            let [bids, offers] = Side::BOTH.map(|side| book.levels(side).map(exact).collect());
            Some(ReceivedBook { stale: book.is_stale(), bids, offers })
        })
    }
}

/// Counts calls.
#[derive(Default)]
struct UpdateCounter {
    updates: u64,
    changes: u64,
}

impl Listener for UpdateCounter {
    #[inline]
    fn on_book(&mut self, update: &BookUpdate<'_>) {
        self.updates += 1;
        self.changes += update.changes.len() as u64;
    }
}

/// Writes the handler's books, one on each line.
fn books(handler: &Handler) -> String {
    let mut all = Vec::new();
    let tables = handler.tables();
    for (id, instrument) in tables.instrument_ids().zip(&tables.instruments) {
        let Some(book) = handler.book(id) else { continue };
        let mut line = instrument.id.clone() + if book.is_stale() { " stale" } else { "" };
        for side in Side::BOTH {
            line += " |";
            for level in book.levels(side) {
                line += &format!(" {}@{}", level.qty.0 * 10i64.pow(level.qty.1.max(0) as u32), level.px);
            }
        }
        all.push(line);
    }
    all.sort();
    all.join("\n")
}

/// Packets out of a capture to books.
fn handler(
    context: &BenchContext,
    condition: &str,
    lines: usize,
    is_all_products: bool,
) -> Result<BenchRecord, Error> {
    let fail = |e: unitape_marketdata::Error| Error::Failed(format!("fast handler: {e}"));
    let day = PublishedDay::new(ExchangeConfig::default().group, context.pick(20_000, 500_000), 200_000)?;
    let dir = context.fresh("fast-handler")?;
    let (config, capture) = (day.config(dir.path())?, day.capture(lines));
    let file = dir.path().join("day.pcap");
    std::fs::write(&file, &capture).map_err(|e| Error::Failed(format!("{}: {e}", file.display())))?;
    let product = day.exchange.world().products[0].id.to_string();
    let is_selected = |instrument: &ExchangeInstrument| is_all_products || instrument.product == 0;
    let open = || {
        let mut handler = Handler::open(&config).map_err(fail)?;
        handler.subscribe(match is_all_products {
            true => Subscription::All,
            false => Subscription::Product(product.clone()),
        });
        Ok::<_, Error>(handler)
    };
    let (mut repeats, mut reported) = (RepeatTimes::default(), None);
    let (mut hash, mut text) = (HexSha256::default(), String::new());
    for n in 0..=context.repeats(9) {
        let mut handler = open()?;
        let mut count = UpdateCounter::default();
        // The first warms up, and its books are looked at.
        let mut warm_up = RepeatTimes::default();
        let times = if n == 0 { &mut warm_up } else { &mut repeats };
        times.time(|| handler.replay(&file, None, &mut count)).map_err(fail)?;
        if n == 0 {
            text = books(&handler);
            if let Some(difference) = day.differs(&handler, is_selected) {
                return Err(Error::Failed(format!("fast handler: {difference}")));
            }
            let counters = handler.counters();
            if counters.refused > 0 || counters.gaps > 0 {
                return Err(Error::Failed(format!(
                    "fast handler: {counters:?}, {:?}",
                    handler.books().faults()
                )));
            }
            hash.add(text.as_bytes());
        }
        let now = (count.updates, count.changes);
        if reported.is_some_and(|before| before != now) {
            return Err(Error::Failed(format!(
                "fast handler: {now:?} calls and levels, {reported:?} before"
            )));
        }
        reported = Some(now);
    }
    let (updates, levels) = reported.unwrap_or_default();
    let packets = day.packets.iter().filter(|p| lines == 2 || p.line == ExchangeLine::A).count();
    let messages = day.exchange.messages();
    let method = format!(
        "{messages} messages of 20 products in {packets} packets of a capture ({condition}), snapshots and reference \
         data among them, read from its file in each repeat, one thread: both lines arbitrated, decoded, books of {} instruments \
         kept; {updates} calls with {levels} levels; every book at the end equal to the exchange's own",
        text.lines().count()
    );
    let record = repeats.record("fast", "handler", messages, capture.len() as u64, method);
    let condition = Some(condition.to_owned());
    Ok(BenchRecord {
        condition,
        input_sha256: Some(super::record::sha256(&capture)),
        output_sha256: Some(hash.hex()),
        ..record
    })
}

/// Records how long after its packet each book was reported.
struct LatencyListener {
    times: super::record::LatencyHistogram,
}

impl Listener for LatencyListener {
    #[inline]
    fn on_book(&mut self, update: &BookUpdate<'_>) {
        if !update.context.snapshot {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64);
            note(&mut self.times, (now - update.context.ts_recv.0).max(1) as u64);
        }
    }
}

/// Measures both lines of all channels over loopback, at a steady rate.
fn latency(context: &BenchContext) -> Result<BenchRecord, Error> {
    let fail = |e: unitape_marketdata::Error| Error::Failed(format!("fast book-latency: {e}"));
    let rate = 20_000;
    let day = PublishedDay::new(
        "127.77.0.0:24310".parse().expect("an address"),
        context.pick(4_000, 200_000),
        rate,
    )?;
    let dir = context.fresh("fast-latency")?;
    let mut handler = Handler::open(&day.config(dir.path())?).map_err(fail)?;
    handler.subscribe(Subscription::All);
    handler.listen(&LiveOptions::default()).map_err(fail)?;
    let mut clocked = LatencyListener { times: histogram() };
    let (sent, start) = (AtomicBool::new(false), Instant::now());
    let cpu = super::record::cpu_ns();
    let got = std::thread::scope(|scope| {
        let send = || {
            let result = send(&day);
            sent.store(true, Ordering::Release); // Release: pairs with the Acquire below
            result
        };
        let sender = scope.spawn(send);
        let (mut got, mut quiet) = (0, Instant::now());
        loop {
            // Asked before the sockets are: the last packets may come in between.
            let all_sent = sent.load(Ordering::Acquire);
            match handler.poll(&mut clocked).map_err(fail)? {
                0 if all_sent && quiet.elapsed() > QUIET => break,
                0 => std::hint::spin_loop(),
                n => {
                    got += n;
                    quiet = Instant::now();
                }
            }
        }
        let result = sender.join().unwrap_or_else(|_| Err(Error::Failed("the sender fell".to_owned())));
        result.map(|()| got)
    })?;
    let dropped: u64 = handler.live().map_or(0, |live| live.dropped().map(|(_, n)| n).sum());
    let all = day.packets.len();
    let differs = match dropped {
        0 if got != all => Some(format!("{got} of {all} packets")),
        0 => day.differs(&handler, |_| true),
        // Packets that were dropped at the end of the day cannot be recovered there.
        _ => None,
    };
    if let Some(difference) = differs {
        return Err(Error::Failed(format!("fast book-latency: {difference}")));
    }
    let equal = match dropped {
        0 => "no datagram dropped by the kernel, all books at the end equal to the exchange's own".to_owned(),
        n => format!("{n} datagrams dropped by the kernel, so books were not compared with the exchange's"),
    };
    let mut repeats = RepeatTimes::default();
    repeats.add(start.elapsed().as_nanos() as u64, super::record::cpu_ns() - cpu);
    let count = clocked.times.len();
    let method = format!(
        "{all} packets of lines A and B, snapshots and reference data over UDP on loopback, {rate} messages a second; from \
         the kernel's receive time of the packet to the call that its book has changed, {count} calls, one thread polling \
         all sockets without a pause; {equal}"
    );
    let bytes = day.packets.iter().map(|p| p.bytes.len() as u64).sum();
    let record = repeats.record("fast", "book-latency", count, bytes, method);
    Ok(BenchRecord {
        latency: Some(LatencyPercentiles::from_times(&clocked.times)),
        rate_per_s: Some(rate.into()),
        threads: 2,
        ..record
    })
}

/// So long nothing has come when all has been sent.
const QUIET: Duration = Duration::from_millis(200);

/// Sends the packets of a day at the times that they have.
fn send(day: &PublishedDay) -> Result<(), Error> {
    let fail = |e: std::io::Error| Error::Failed(format!("fast book-latency: cannot send: {e}"));
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(fail)?;
    let first = day.packets.first().map_or(0, |p| p.ts_ns);
    let start = Instant::now();
    for packet in &day.packets {
        let due = Duration::from_nanos(packet.ts_ns - first);
        while start.elapsed() < due {
            std::hint::spin_loop();
        }
        socket.send_to(&packet.bytes, packet.to).map_err(fail)?;
    }
    Ok(())
}
