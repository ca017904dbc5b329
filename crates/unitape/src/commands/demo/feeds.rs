//! The feeds of the demo: real ones, and three whose truth is known; and the table of what each must become.

use super::commands::CommandRunner;
use super::demo_directory::{DemoDirectory, directory_failure};
use super::depth::{self, DEPTH, ExchangeTruth};
use crate::output::{self, CommandFailure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use unitape_sim::day::{DropCopyTruth, Scenario, WashTradePair};
use unitape_sim::{DropCopy, InjectedNoiseConfig, SimConfig};

/// Good messages of order flow for each second that the demo may take.
const MESSAGES_PER_SECOND: u64 = 100_000;
/// Events of the simulated day for each such second.
pub const EVENTS_PER_SECOND: u64 = 20_000;
/// 24 November 2011, 05:33 UTC: half a minute before the first message of the JSE feed.
pub const START_NS: u64 = 1_322_112_780_000_000_000;
/// 130 minutes, a little longer than the JSE feed lasts.
pub const SPAN_NS: u64 = 130 * 60 * 1_000_000_000;
/// Name of the order flow.
pub const ORDERS: &str = "orders";
/// Name of the simulated day.
pub const MARKET: &str = "market";

/// A feed of somebody's real messages; its licence is beside it in `vectors/`.
#[derive(Debug)]
struct SampleFeed {
    feed: &'static str,
    files: &'static [(&'static str, &'static [u8])],
    messages: u64,
    ignored: u64,
    by_kind: &'static [(&'static str, u64)],
}

/// All of them, in the order of their time, with what a plain count finds in them.
const SAMPLES: [SampleFeed; 3] = [
    SampleFeed {
        feed: "jse",
        files: &[(
            "jse.fix",
            include_bytes!("../../../../../vectors/fix/jse/jse_fix50_marketdata_head80.fix"),
        )],
        messages: 11_110,
        ignored: 2_523,
        by_kind: &[("index", 10_770), ("status", 80)],
    },
    SampleFeed {
        feed: "taq",
        files: &[("taq.txt", include_bytes!("../../../../../vectors/fixed/taq/nyse_taq_bbo_20140206.txt"))],
        messages: 9_995,
        ignored: 1,
        by_kind: &[("bbo", 9_994)],
    },
    SampleFeed {
        feed: "bank",
        files: &[
            ("mt103.rje", include_bytes!("../../../../../vectors/swift/prowide/MT103-bulk-with-ack.rje")),
            ("mt940.txt", include_bytes!("../../../../../vectors/swift/mt940/ASNB/mt940.txt")),
        ],
        messages: 34,
        ignored: 0,
        by_kind: &[("payment", 3), ("statement", 31)],
    },
];

/// The samples for people.
pub const SAMPLE_TITLES: &str = "Johannesburg's index feed, FIX 5.0, 24 November 2011; New York's Daily TAQ \
    quotes, fixed-width, 6 February 2014; a bank's transfers and statements, SWIFT MT103 and MT940, 2017 to 2020";

/// The scenarios that the watch looks for. The background of the feeds triggers none of them.
const SCENARIOS: [&str; 10] = [
    "spoofing",
    "layering",
    "wash_trade",
    "order_to_trade_ratio",
    "quote_stuffing",
    "cross_venue_layering",
    "collusive_spoofing",
    "payments_structuring",
    "payments_sanctions",
    "comms_lexicon",
];

/// The configuration of `unitape consolidate`.
const CONFIG: &str = r#"feed = [
  { name = "jse", format = "fix", mapping = "jse-fix50-indices", files = ["jse.fix"] },
  { name = "taq", format = "fixed", mapping = "nyse-taq-bbo-98", files = ["taq.txt"] },
  { name = "bank", format = "swift", mapping = "swift-mt", files = ["mt103.rje", "mt940.txt"] },
  { name = "orders", format = "fix", mapping = "fix44-orders", files = ["orders.fix"] },
  { name = "market", format = "events", files = ["market/events.jsonl"] },
  { name = "depth", format = "fast", mapping = MAPPING, files = ["depth.pcap"] },
]
"#;

/// The truth of the feeds before anything has decoded them.
#[derive(Debug)]
pub struct WrittenFeeds {
    /// The truth of the order flow.
    pub truth: DropCopyTruth,
    /// The wash trades of the order flow, and its near misses: see `unitape_sim::day::WashTradePair`.
    pub planted: Vec<Value>,
    pub near_misses: Vec<Value>,
    /// Alerts that the scenes of the simulated day must raise: see `unitape_sim::day::AlertLabel`.
    pub labels: Vec<Value>,
    /// How many scenes of the day must raise none.
    pub near_misses_of_day: usize,
    /// The truth of the exchange's market data.
    pub depth: ExchangeTruth,
    /// The contents of each feed, by its name.
    pub counts: BTreeMap<String, ExpectedCounts>,
}

/// What a feed must become.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExpectedCounts {
    /// Bytes of its files.
    pub bytes: u64,
    /// All else; of market data, which lines lose, it is known of each packet and not here.
    pub messages: Option<MessageCounts>,
}

/// What the messages of a feed must become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Messages.
    pub messages: u64,
    /// Messages that are broken.
    pub quarantined: u64,
    /// Messages that are known and become nothing.
    pub ignored: u64,
    /// Events by kind.
    pub by_kind: BTreeMap<String, u64>,
}

/// Writes all feeds below `demo_dir`, and their configuration.
pub fn write_feeds(
    demo_dir: &DemoDirectory,
    commands: &mut CommandRunner<'_>,
    seconds: u64,
    stop: &AtomicBool,
) -> Result<WrittenFeeds, CommandFailure> {
    commands.set_word("events", seconds * EVENTS_PER_SECOND);
    commands.set_word("start", START_NS);
    commands.set_word("minutes", SPAN_NS / 60_000_000_000);
    let scenes = |count: u32| SCENARIOS.map(|id| format!("{id}={count}")).join(",");
    commands.set_word("planted", scenes(2));
    commands.set_word("near_misses", scenes(1));
    commands.set_word("scenarios", SCENARIOS.map(|id| format!("--scenario {id}")).join(" "));
    commands.run(&["market", "banks"])?;
    let made_day = commands.last_object("market")?;
    let path = demo_dir.path("feeds/market/truth.jsonl");
    let text = fs::read_to_string(&path).map_err(|e| directory_failure("read", &path, &e))?;
    let lines = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let labels = lines.into_iter().filter(|line| line["rec"] == "label").collect();

    for (name, bytes) in SAMPLES.iter().flat_map(|sample| sample.files) {
        demo_dir.write(&format!("feeds/{name}"), bytes)?;
    }
    let order_bytes = seconds * MESSAGES_PER_SECOND * MESSAGE_BYTES_ABOUT;
    let mut copy = DropCopy::new(flow_config(seconds), NOISE)?.to_close();
    let orders = demo_dir.path("feeds/orders.fix");
    let truth = write_file("make orders", &orders, order_bytes, stop, |out| copy.write_fix(out))?;
    let depth = depth::write_depth_feeds(demo_dir, seconds, |path, depth_bytes, making| {
        write_file("make depth", path, depth_bytes, stop, |out| making.write(out))
    })?;
    // The mapping of a feed is a name or a path. From this one `quarantine retry` finds it wherever it runs.
    let path = demo_dir.path("feeds/depth.toml");
    let path = std::path::absolute(&path).map_err(|e| directory_failure("look at", &path, &e))?;
    let mapping = Value::from(path.display().to_string()).to_string();
    demo_dir.write("feeds/feeds.toml", CONFIG.replace("MAPPING", &mapping).as_bytes())?;

    let mut counts: BTreeMap<String, ExpectedCounts> = BTreeMap::new();
    let mut expect = |feed: &str, files: &[&str], messages| -> Result<(), CommandFailure> {
        let sizes = files.iter().map(|name| {
            let path = demo_dir.path("feeds").join(name);
            Ok(fs::metadata(&path).map_err(|e| directory_failure("look at", &path, &e))?.len())
        });
        let bytes = sizes.sum::<Result<u64, CommandFailure>>()?;
        counts.insert(feed.to_owned(), ExpectedCounts { bytes, messages });
        Ok(())
    };
    for sample in &SAMPLES {
        let files: Vec<&str> = sample.files.iter().map(|(name, _)| *name).collect();
        expect(sample.feed, &files, Some(sample.message_counts()))?;
    }
    expect(ORDERS, &["orders.fix"], Some(order_counts(&truth)))?;
    let by_kind = serde_json::from_value(made_day["by_kind"].clone())?;
    let messages = made_day["events"].as_u64().unwrap_or(0);
    expect(
        MARKET,
        &["market/events.jsonl"],
        Some(MessageCounts { messages, by_kind, ..Default::default() }),
    )?;
    expect(DEPTH, &["depth.pcap"], None)?;
    let values =
        |pairs: &[WashTradePair]| pairs.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>();
    Ok(WrittenFeeds {
        planted: values(&truth.planted)?,
        near_misses: values(&truth.near_misses)?,
        truth,
        labels,
        near_misses_of_day: made_day["near_misses"].as_u64().unwrap_or(0) as usize,
        depth,
        counts,
    })
}

impl SampleFeed {
    fn message_counts(&self) -> MessageCounts {
        let by_kind = self.by_kind.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect();
        MessageCounts { messages: self.messages, ignored: self.ignored, by_kind, quarantined: 0 }
    }
}

/// Counts the contents of the order flow.
pub fn order_counts(truth: &DropCopyTruth) -> MessageCounts {
    let (flow, bad) = (&truth.totals, truth.totals.bad.total());
    let mut by_kind = flow.by_kind.clone();
    by_kind.insert("quarantine".to_owned(), bad);
    by_kind.retain(|_, n| *n > 0);
    MessageCounts { messages: flow.messages + bad, quarantined: bad, ignored: flow.no_event, by_kind }
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

/// Makes a file of about `expected_bytes` bytes with a progress bar.
fn write_file<T>(
    label: &str,
    path: &Path,
    expected_bytes: u64,
    stop: &AtomicBool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> Result<T, CommandFailure> {
    let fail = |e| directory_failure("write", path, &e);
    let written_bytes = AtomicU64::new(0);
    let sink = CountingFile {
        inner_file: File::create(path).map_err(fail)?,
        written_bytes: &written_bytes,
        stop_flag: stop,
    };
    let mut sink = BufWriter::with_capacity(1 << 16, sink);
    // Relaxed: figures for people.
    let position = || (written_bytes.load(Ordering::Relaxed), expected_bytes);
    output::with_progress(label, position, String::new, || {
        let message_counts = write(&mut sink)?;
        sink.flush()?;
        Ok(message_counts)
    })
    .map_err(fail)
}

struct CountingFile<'a> {
    inner_file: File,
    written_bytes: &'a AtomicU64,
    stop_flag: &'a AtomicBool,
}

impl Write for CountingFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Relaxed: the signal handler hands nothing over but the wish.
        if self.stop_flag.load(Ordering::Relaxed) {
            return Err(io::Error::other("stopped"));
        }
        let n = self.inner_file.write(bytes)?;
        self.written_bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner_file.flush()
    }
}

const MESSAGE_BYTES_ABOUT: u64 = 321;

#[cfg(test)]
mod tests {
    use super::*;

    fn count(bytes: &[u8], pattern: &[u8]) -> u64 {
        bytes.windows(pattern.len()).filter(|window| *window == pattern).count() as u64
    }

    /// Fails if an expected count is wrong, because the check would then blame the decoders.
    #[test]
    fn the_counts_are_those_of_their_sources() {
        let [jse, taq, bank] = SAMPLES.each_ref().map(|sample| {
            sample.files.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect::<Vec<u8>>()
        });
        let entries = [&b"\x01269=3\x01"[..], b"\x01269=y\x01"].map(|entry| count(&jse, entry));
        assert_eq!(SAMPLES[0].messages, count(&jse, b"8=FIXT.1.1\x01"));
        assert_eq!(SAMPLES[0].ignored, count(&jse, b"\x0135=0\x01"));
        assert_eq!(SAMPLES[0].by_kind[0].1, entries.iter().sum::<u64>());
        assert_eq!(SAMPLES[0].by_kind[1].1, count(&jse, b"\x01269=x\x01"));
        let lines = taq.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count() as u64;
        assert_eq!((SAMPLES[1].messages, SAMPLES[1].by_kind[0].1), (lines, lines - SAMPLES[1].ignored));
        let messages = [&b"{2:O103"[..], b"{2:O940"].map(|start| count(&bank, start));
        assert_eq!(SAMPLES[2].by_kind, [("payment", messages[0]), ("statement", messages[1])]);
        assert_eq!(SAMPLES[2].messages, messages.iter().sum::<u64>());
    }

    /// Fails if the first sample lies on another day than the generated feeds, because a merge of them would show
    /// nothing.
    #[test]
    fn the_first_lies_in_the_stretch_of_the_made_ones() {
        let bytes = SAMPLES[0].files[0].1;
        let times: Vec<&[u8]> = bytes.split(|&b| b == 1).filter(|f| f.starts_with(b"52=20111124-")).collect();
        assert_eq!(&times[0][12..20], b"05:33:31");
        assert_eq!(&times[times.len() - 1][12..20], b"07:42:11");
        assert_eq!(times.len() as u64, SAMPLES[0].messages);
        assert_eq!(crate::commands::tape::utc(START_NS as i64), "2011-11-24 05:33:00.000000000");
    }
}
