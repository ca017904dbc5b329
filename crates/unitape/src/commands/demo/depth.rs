//! Market data in FAST: an exchange in a box whose lines lose packets, read by a handler's configuration; and what must be on
//! the tape of it.
//!
//! Arrivals are counted while they are written, from the numbers of the packets alone. The exchange's books are those
//! that the tape and the handler must have in the end.

use super::demo_directory::DemoDirectory;
use crate::output::CommandFailure;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use unitape_base::capture::write::{datagram, file_header};
use unitape_model::Price;
use unitape_sim::exchange::{
    ChannelTemplates, DeliveredPacket, Exchange, ExchangeChannel, ExchangeConfig, ExchangeLevel,
    ExchangeLine, FaultCounts, FaultRates,
};

/// Name of the feed.
pub const DEPTH: &str = "depth";
/// The exchange's messages for each second that the demo may take.
const MESSAGES_PER_SECOND: u64 = 10_000;
/// When it begins and how fast it is: all of it lies within some seconds, as such data do.
const AFTER_NS: u64 = 70 * 60 * 1_000_000_000;
const RATE: u32 = 2_000;

/// The truth of the exchange and its lines.
#[derive(Debug)]
pub struct ExchangeTruth {
    /// When it began and ended, nanoseconds since the epoch.
    pub span_ns: Range<u64>,
    /// Every instrument's book at the end.
    pub books: BTreeMap<String, BookSides>,
    /// By channel.
    pub came: [ChannelArrivals; 3],
    pub fault_counts: FaultCounts,
    /// Where in the capture the payloads are that were damaged.
    pub damaged: Vec<Range<u64>>,
}

/// The bids and the asks of a book, best first, as commands print them: price, quantity, orders.
pub type BookSides = [Value; 2];

/// The arrivals on the lines of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelArrivals {
    /// By line.
    pub lines: [LineArrivals; 2],
    /// Packets that came whole on no line, while later ones did.
    pub lost: u64,
    /// Packets among these of which not even the header came.
    pub unheard: u64,
}

/// The packets that arrived on a line. A copy whose header is damaged does not count: nobody can identify it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineArrivals {
    /// Copies.
    pub packets: u64,
    /// Copies of packets that had come on it already.
    pub twice: u64,
    /// Packets that did not come, while later ones did.
    pub missed: u64,
}

/// The copies of a packet that arrived.
#[derive(Clone, Copy, Debug, Default)]
struct PacketCopies {
    /// By line.
    headers: [u16; 2],
    is_complete: bool,
}

/// Packets of a channel and partition, by their numbers.
type PacketStreams = BTreeMap<(ExchangeChannel, u32), Vec<PacketCopies>>;

/// Writes configuration, templates and capture.
pub fn write_depth_feeds(
    demo_dir: &DemoDirectory,
    seconds: u64,
    to_file: impl FnOnce(&Path, u64, &mut CaptureMaker) -> Result<(), CommandFailure>,
) -> Result<ExchangeTruth, CommandFailure> {
    // As in the examples, but with the templates beside it.
    let config =
        include_str!("../../../../../examples/feeds/box.toml").replace("../../vectors/fast/box/", "");
    for (name, text) in [
        ("incremental.xml", include_str!("../../../../../vectors/fast/box/incremental.xml")),
        ("snapshot.xml", include_str!("../../../../../vectors/fast/box/snapshot.xml")),
        ("reference.xml", include_str!("../../../../../vectors/fast/box/reference.xml")),
        ("depth.toml", &config),
    ] {
        demo_dir.write(&format!("feeds/{name}"), text.as_bytes())?;
    }
    let capture = demo_dir.path("feeds/depth.pcap");
    let mut making = CaptureMaker {
        exchange: Exchange::new(exchange_config(seconds), &ChannelTemplates::shipped())?,
        streams: PacketStreams::new(),
        damaged: Vec::new(),
        end_ns: 0,
    };
    to_file(&capture, seconds * MESSAGES_PER_SECOND * MESSAGE_BYTES_ABOUT, &mut making)?;
    let CaptureMaker { exchange, streams, damaged, end_ns } = making;
    Ok(ExchangeTruth {
        span_ns: exchange.config().start_ns..end_ns,
        books: books(&exchange),
        came: count_arrivals(&streams),
        fault_counts: exchange.faults(),
        damaged,
    })
}

/// Returns the fixed configuration of the exchange: two lines of everything, and a receiver that comes late.
fn exchange_config(seconds: u64) -> ExchangeConfig {
    ExchangeConfig {
        seed: 20_111_124,
        options: 24,
        both_lines: true,
        messages: seconds * MESSAGES_PER_SECOND,
        start_ns: super::feeds::START_NS + AFTER_NS,
        rate: RATE,
        snapshot_ns: 20_000_000,
        reference_ns: 50_000_000,
        beacon_ns: 100_000_000,
        // Only the end is asked for.
        moments_max: 1,
        faults: FaultRates {
            lost_once: 10_000,
            lost: 500,
            burst: 60,
            burst_packets: 30,
            doubled: 2_000,
            swapped: 5_000,
            damaged: 1_000,
            dead: 30,
            dead_ns: 300_000_000,
            restarts: 0,
            join: 300,
        },
        ..ExchangeConfig::default()
    }
}

/// A capture that is being made.
pub struct CaptureMaker {
    exchange: Exchange,
    streams: PacketStreams,
    damaged: Vec<Range<u64>>,
    end_ns: u64,
}

impl CaptureMaker {
    /// Writes all packets.
    pub fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let (mut bytes, mut written) = (Vec::new(), 0);
        file_header(&mut bytes);
        while let Some(packet) = self.exchange.next().map_err(io::Error::other)? {
            let sender = SocketAddr::from(([10, 77, 0, packet.partition as u8], 30_000 + packet.line as u16));
            datagram(&mut bytes, packet.ts_ns as i64, sender, packet.to.into(), &packet.bytes);
            if packet.sound < packet.bytes.len() {
                let packet_end = written + bytes.len() as u64;
                self.damaged.push(packet_end - packet.bytes.len() as u64..packet_end);
            }
            self.end_ns = packet.ts_ns;
            count_copy(&mut self.streams, &packet);
            if bytes.len() > CHUNK {
                out.write_all(&bytes)?;
                written += bytes.len() as u64;
                bytes.clear();
            }
        }
        out.write_all(&bytes)
    }
}

/// Counts a copy.
fn count_copy(streams: &mut PacketStreams, packet: &DeliveredPacket) {
    let stream = streams.entry((packet.channel, packet.partition)).or_default();
    let number = packet.number as usize;
    if stream.len() <= number {
        stream.resize(number + 1, PacketCopies::default());
    }
    // A header that is whole is a message of its own, so that damage after it begins after it.
    stream[number].headers[packet.line as usize] += u16::from(packet.sound > 0);
    stream[number].is_complete |= packet.sound == packet.bytes.len();
}

/// Counts the arrivals by channel.
fn count_arrivals(streams: &PacketStreams) -> [ChannelArrivals; 3] {
    let mut all: [ChannelArrivals; 3] = Default::default();
    for ((channel, _), stream) in streams {
        let arrivals = &mut all[*channel as usize];
        arrivals.lost += count_gaps(stream.iter().map(|copies| copies.is_complete));
        arrivals.unheard += count_gaps(stream.iter().map(|copies| copies.headers != [0; 2]));
        for line in [ExchangeLine::A as usize, ExchangeLine::B as usize] {
            let line_arrivals = &mut arrivals.lines[line];
            let copies = || stream.iter().map(|copies| u64::from(copies.headers[line]));
            line_arrivals.packets += copies().sum::<u64>();
            line_arrivals.twice += copies().map(|n| n.saturating_sub(1)).sum::<u64>();
            // All that any line brought, or jumped over, is what each should have.
            let heard = |copies: &PacketCopies| copies.headers != [0; 2];
            if let (Some(first), Some(last)) = (stream.iter().position(heard), stream.iter().rposition(heard))
                && copies().any(|n| n > 0)
            {
                line_arrivals.missed +=
                    copies().take(last + 1).skip(first).filter(|n| *n == 0).count() as u64;
            }
        }
    }
    all
}

/// Counts the missing packets between the first and the last packet that arrived.
fn count_gaps(presence: impl Iterator<Item = bool>) -> u64 {
    let presence_flags: Vec<bool> = presence.collect();
    let (Some(first), Some(last)) =
        (presence_flags.iter().position(|t| *t), presence_flags.iter().rposition(|t| *t))
    else {
        return 0;
    };
    presence_flags[first..last].iter().filter(|t| !**t).count() as u64
}

/// Returns the current books of the exchange.
fn books(exchange: &Exchange) -> BTreeMap<String, BookSides> {
    let (world, truth) = (exchange.world(), exchange.truth());
    let book_of = |(index, instrument): (usize, &unitape_sim::exchange::ExchangeInstrument)| {
        let now = truth.current_moment(index)?;
        let unit = 10i64.pow((9 + i32::from(world.product_of(index).exponent)) as u32);
        let level = |level: &ExchangeLevel| json!({ "px": Price(level.px * unit).to_string(), "qty": level.qty.to_string(), "orders": level.orders });
        let side = |levels: &[ExchangeLevel]| levels.iter().map(level).collect();
        Some((instrument.id.to_string(), [side(&now.bids), side(&now.offers)]))
    };
    world.instruments.iter().enumerate().filter_map(book_of).collect()
}

const MESSAGE_BYTES_ABOUT: u64 = 320;
const CHUNK: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the expected figures are wrong, because the demo compares the handler's figures with them.
    #[test]
    fn what_came_is_counted_by_number() {
        assert_eq!(count_gaps([false, false, true, false, true, true, false].into_iter()), 1);
        assert_eq!((count_gaps([false; 3].into_iter()), count_gaps([].into_iter())), (0, 0));
        let mut streams = PacketStreams::new();
        let mut packet = |line, number, sound| {
            let to = "239.0.0.1:1".parse().unwrap();
            let channel = ExchangeChannel::Incremental;
            let bytes = vec![0; 9];
            count_copy(
                &mut streams,
                &DeliveredPacket { channel, line, partition: 1, to, number, ts_ns: 0, bytes, sound },
            );
        };
        for (line, number, sound) in [
            (ExchangeLine::A, 5, 9),
            (ExchangeLine::A, 6, 4),
            (ExchangeLine::B, 6, 0),
            (ExchangeLine::A, 8, 9),
            (ExchangeLine::A, 8, 9),
            (ExchangeLine::B, 5, 9),
            (ExchangeLine::B, 7, 9),
        ] {
            packet(line, number, sound);
        }
        let [incremental, ..] = count_arrivals(&streams);
        let line = |packets, twice, missed| LineArrivals { packets, twice, missed };
        assert_eq!(
            incremental,
            ChannelArrivals { lines: [line(4, 1, 1), line(2, 0, 2)], lost: 1, unheard: 0 }
        );
    }
}
