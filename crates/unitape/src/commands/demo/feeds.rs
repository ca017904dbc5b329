//! The feeds of the demo: real ones, and three whose truth is known.

use super::demo_directory::{DemoDirectory, directory_failure};
use super::depth::{self, DEPTH, ExchangeTruth};
use super::samples::{ExpectedFeedCounts, SAMPLES};
use crate::output::{self, CommandFailure};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use unitape_feed::{FileFeed, Format};
use unitape_sim::day::{AlertLabel, DropCopyTruth, Scenario};
use unitape_sim::{DropCopy, InjectedNoiseConfig, Sim, SimConfig};

/// Good messages of order flow for each second that the demo may take.
pub const MESSAGES_PER_SECOND: u64 = 100_000;
/// Events of the simulated day for each such second.
const EVENTS_PER_SECOND: u64 = 20_000;
/// 24 November 2011, 05:33 UTC: half a minute before the first message of the JSE feed.
pub const START_NS: u64 = 1_322_112_780_000_000_000;
/// 130 minutes, a little longer than the JSE feed lasts.
pub const SPAN_NS: u64 = 130 * 60 * 1_000_000_000;
/// Name of the order flow.
pub const ORDERS: &str = "orders";
/// Name of the simulated day.
pub const MARKET: &str = "market";

/// The truth of the feeds before anything has decoded them.
#[derive(Debug)]
pub struct WrittenFeeds {
    /// The whole truth of the order flow.
    pub truth: DropCopyTruth,
    /// The truth of the simulated day.
    pub market: MarketTruth,
    /// The truth of the exchange's market data.
    pub depth: ExchangeTruth,
    /// The contents of each of the other feeds.
    pub counted: Vec<(&'static str, ExpectedFeedCounts)>,
    /// All of them, as consolidation wants them.
    pub feeds: Vec<FileFeed>,
}

/// The truth of the simulated day.
#[derive(Debug)]
pub struct MarketTruth {
    /// Alerts that its scenes must raise.
    pub labels: Vec<AlertLabel>,
    /// How many scenes must raise none.
    pub near_misses: usize,
}

/// Scenarios that the simulated day holds scenes of: those that the watch knows.
const PLANTED: [Scenario; 3] = [Scenario::Spoofing, Scenario::OrderToTradeRatio, Scenario::WashTrade];

/// Writes all feeds below `demo_dir`, the generated feeds with a progress bar.
pub fn write(
    demo_dir: &DemoDirectory,
    seconds: u64,
    stop: &AtomicBool,
) -> Result<WrittenFeeds, CommandFailure> {
    let mut feeds = Vec::new();
    for sample in &SAMPLES {
        let mut files = Vec::new();
        for (name, bytes) in sample.files {
            let path = demo_dir.feeds().join(name);
            fs::write(&path, bytes).map_err(|e| directory_failure("write", &path, &e))?;
            files.push(path);
        }
        feeds.push(feed(sample.feed, sample.format, sample.mapping, files)?);
    }
    let order_bytes = seconds * MESSAGES_PER_SECOND * MESSAGE_BYTES_ABOUT;
    let orders = demo_dir.feeds().join("orders.fix");
    let mut copy = DropCopy::new(flow_config(seconds), NOISE)?.to_close();
    let truth = write_file("make orders", &orders, order_bytes, stop, |out| copy.write_fix(out))?;
    feeds.push(feed(ORDERS, "fix", "fix44-orders", vec![orders])?);

    let day = day_config(seconds);
    let market_bytes = day.events * EVENT_BYTES_ABOUT;
    let path = demo_dir.feeds().join("market.jsonl");
    let mut sim = Sim::new(day)?;
    write_file("make market", &path, market_bytes, stop, |out| write_day(&mut sim, out))?;
    feeds.push(feed(MARKET, "events", "", vec![path])?);
    let labels = sim.labels().into_iter().cloned().collect();
    let market = MarketTruth { labels, near_misses: sim.near_misses().len() };
    let depth = depth::write(demo_dir, seconds, |path, depth_bytes, making| {
        write_file("make depth", path, depth_bytes, stop, |out| making.write(out))
    })?;
    let config = depth.config.display().to_string();
    feeds.push(feed(DEPTH, "fast", &config, vec![depth.capture.clone()])?);
    let mut counted: Vec<_> = SAMPLES.iter().map(|s| (s.feed, s.counted())).collect();
    counted.push((ORDERS, count_order_flow(&truth)));
    let by_kind = sim.totals().by_kind.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect();
    counted.push((
        MARKET,
        ExpectedFeedCounts { messages: sim.events(), by_kind, ..ExpectedFeedCounts::default() },
    ));
    Ok(WrittenFeeds { truth, market, depth, counted, feeds })
}

/// Counts the contents of the order flow.
pub fn count_order_flow(truth: &DropCopyTruth) -> ExpectedFeedCounts {
    let (flow, bad) = (&truth.totals, truth.totals.bad.total());
    let mut by_kind = flow.by_kind.clone();
    by_kind.insert("quarantine".to_owned(), bad);
    by_kind.retain(|_, n| *n > 0);
    ExpectedFeedCounts { messages: flow.messages + bad, quarantined: bad, ignored: flow.no_event, by_kind }
}

/// Returns the configuration of the order flow. The same number of seconds gives the same bytes on every machine.
fn flow_config(seconds: u64) -> SimConfig {
    SimConfig {
        seed: 20_111_124,
        // Nobody in it is in the simulated day, which is on the same tape.
        market: 1,
        events: seconds * MESSAGES_PER_SECOND * 7 / 10,
        instruments: 12,
        start_ns: START_NS,
        span_ns: SPAN_NS,
        plant: [(Scenario::WashTrade, 12)].into(),
        near_misses: [(Scenario::WashTrade, 10)].into(),
        ..SimConfig::default()
    }
}

const NOISE: InjectedNoiseConfig = InjectedNoiseConfig { heartbeat_ns: 30_000_000_000, bad_per_million: 300 };

/// Returns the fixed configuration of the simulated day. It has auctions, halts, news and payments beside its orders.
fn day_config(seconds: u64) -> SimConfig {
    let each = |n| PLANTED.into_iter().map(|s| (s, n)).collect();
    SimConfig {
        seed: 20_111_124,
        events: seconds * EVENTS_PER_SECOND,
        instruments: 20,
        start_ns: START_NS,
        span_ns: SPAN_NS,
        plant: each(3),
        near_misses: each(2),
        payments: 200,
        ..SimConfig::default()
    }
}

fn write_day(sim: &mut Sim, out: &mut dyn Write) -> io::Result<()> {
    let (mut scratch, mut line) = (Vec::new(), Vec::new());
    while sim.step().is_some() {
        line.clear();
        for event in sim.last_events() {
            unitape_sim::day::write_line(sim.world(), event, &mut scratch, &mut line);
        }
        out.write_all(&line)?;
    }
    Ok(())
}

fn feed(name: &str, format: &str, mapping: &str, files: Vec<PathBuf>) -> Result<FileFeed, CommandFailure> {
    Ok(FileFeed { name: name.to_owned(), format: Format::from_names(format, mapping)?, files })
}

/// Makes a file of about `expected_bytes` bytes with a progress bar.
fn write_file<T>(
    label: &str,
    path: &std::path::Path,
    expected_bytes: u64,
    stop: &AtomicBool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> Result<T, CommandFailure> {
    let fail = |e| directory_failure("write", path, &e);
    let written = AtomicU64::new(0);
    let sink = CountingFile { file: File::create(path).map_err(fail)?, written: &written, stop };
    let mut sink = BufWriter::with_capacity(1 << 16, sink);
    // Relaxed: figures for people.
    let position = || (written.load(Ordering::Relaxed), expected_bytes);
    output::with_progress(label, position, String::new, || {
        let made = write(&mut sink)?;
        sink.flush()?;
        Ok(made)
    })
    .map_err(fail)
}

struct CountingFile<'a> {
    file: File,
    written: &'a AtomicU64,
    stop: &'a AtomicBool,
}

impl Write for CountingFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Relaxed: the signal handler hands nothing over but the wish.
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("stopped"));
        }
        let n = self.file.write(bytes)?;
        self.written.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

const MESSAGE_BYTES_ABOUT: u64 = 321;
const EVENT_BYTES_ABOUT: u64 = 210;
