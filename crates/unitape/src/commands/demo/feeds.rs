//! The two feeds of the demo: a real one, and one whose truth is known.

use super::place::{Place, at};
use crate::output::{self, Failure};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use unitape_feed::{Feed, Format};
use unitape_sim::{Flow, FlowConfig, Noise, Truth};

/// Good messages of order flow for each second that the demo may take.
pub const MESSAGES_PER_SECOND: u64 = 100_000;
/// 24 November 2011, 05:33 UTC: half a minute before the first message of the JSE feed.
pub const START_NS: u64 = 1_322_112_780_000_000_000;
/// 130 minutes, a little longer than the JSE feed lasts.
pub const SPAN_NS: u64 = 130 * 60 * 1_000_000_000;
/// Name of the real feed.
pub const JSE: &str = "jse";
/// Name of the order flow.
pub const ORDERS: &str = "orders";

/// What is known of the feeds before anything has decoded them.
#[derive(Debug)]
pub struct Written {
    /// Of the order flow: all of it.
    pub truth: Truth,
    /// Of the JSE feed: messages and events by kind, counted in the plainest way.
    pub jse: Counted,
    /// Both, as consolidation wants them.
    pub feeds: Vec<Feed>,
}

/// What a plain count says a feed holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Messages.
    pub messages: u64,
    /// Events by kind.
    pub by_kind: BTreeMap<String, u64>,
}

/// Writes both feeds below `place`, the order flow with a progress bar.
pub fn write(place: &Place, seconds: u64, stop: &AtomicBool) -> Result<Written, Failure> {
    let jse = place.feeds().join("jse.fix");
    fs::write(&jse, JSE_BYTES).map_err(|e| at("write", &jse, &e))?;
    let orders = place.feeds().join("orders.fix");
    let config = config(seconds);
    let messages = config.messages;
    let mut flow = Flow::new(config)?;
    let written = AtomicU64::new(0);
    let file = File::create(&orders).map_err(|e| at("write", &orders, &e))?;
    let mut sink = Counting { file, written: &written, stop };
    // Relaxed: figures for people.
    let position = || (written.load(Ordering::Relaxed), messages * MESSAGE_BYTES_ABOUT);
    let truth = output::with_progress("make orders", position, String::new, || flow.write_fix(&mut sink))
        .map_err(|e| at("write", &orders, &e))?;
    let feed = |name: &str, mapping, path| {
        Ok::<_, Failure>(Feed {
            name: name.to_owned(),
            format: Format::named("fix", mapping)?,
            files: vec![path],
        })
    };
    let feeds = vec![feed(JSE, "jse-fix50-indices", jse)?, feed(ORDERS, "fix44-orders", orders)?];
    Ok(Written { truth, jse: count_jse(JSE_BYTES), feeds })
}

/// The order flow: the same bytes for the same number of seconds, on every machine.
fn config(seconds: u64) -> FlowConfig {
    FlowConfig {
        seed: 20_111_124,
        messages: seconds * MESSAGES_PER_SECOND,
        wash_trades: 12,
        near_misses: 10,
        noise: Noise { heartbeat_ns: 30_000_000_000, bad_per_million: 300 },
        start_ns: START_NS,
        span_ns: SPAN_NS,
    }
}

/// Messages and entries of the JSE feed, told by the fields that begin them.
fn count_jse(bytes: &[u8]) -> Counted {
    let mut counted = Counted::default();
    for field in bytes.split(|&b| b == 1) {
        let kind = match field {
            b"8=FIXT.1.1" => {
                counted.messages += 1;
                continue;
            }
            b"269=3" | b"269=y" => "index",
            b"269=x" => "status",
            _ => continue,
        };
        *counted.by_kind.entry(kind.to_owned()).or_insert(0) += 1;
    }
    counted
}

struct Counting<'a> {
    file: File,
    written: &'a AtomicU64,
    stop: &'a AtomicBool,
}

impl Write for Counting<'_> {
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

/// A sample of the JSE's FIX 5.0 market data; its licence stands beside it.
static JSE_BYTES: &[u8] = include_bytes!("../../../../../vectors/fix/jse/jse_fix50_marketdata_head80.fix");
const MESSAGE_BYTES_ABOUT: u64 = 321;

#[cfg(test)]
mod tests {
    use super::*;

    /// A merge of two feeds that lie on different days is one feed after the other and shows nothing.
    #[test]
    fn the_feeds_lie_in_one_stretch_of_time() {
        let times: Vec<&[u8]> =
            JSE_BYTES.split(|&b| b == 1).filter(|f| f.starts_with(b"52=20111124-")).collect();
        assert_eq!(&times[0][12..20], b"05:33:31");
        assert_eq!(&times[times.len() - 1][12..20], b"07:42:11");
        assert_eq!(times.len() as u64, count_jse(JSE_BYTES).messages);
        assert_eq!(crate::commands::tape::utc(START_NS as i64), "2011-11-24 05:33:00.000000000");
    }
}
