//! An exchange in a box: market data in FAST as venues publish it, on two lines with snapshots, and what is so beside it.
//!
//! ```text
//!        seed                     templates
//!          │                          │
//!  ┌───────▼────────┐ changes ┌───────▼──────┐ packets ┌──────────────┐ copies
//!  │ books by level ├────────▶│ FAST encoder ├────────▶│ lines A and B├───────▶ capture, multicast, receiver
//!  └───────┬────────┘         └──────────────┘         │ loss, delay …│
//!          └────────────▶ Truth                        └──────────────┘
//! ```
//!
//! Each product (`MarketSegmentID`) belongs to a partition. A partition has an incremental channel on two lines and a
//! snapshot channel, and all partitions share a channel of reference data; these use one line, or two as well. A
//! packet is a header with its number, then messages; dictionaries are empty where it begins. Messages of a product
//! are numbered without a gap (`MsgSeqNum`). A beacon sends the last number of a quiet product. A snapshot sends an
//! instrument's book and the product's number up to which that book is complete. Names of messages and fields are
//! those of T7's interfaces. The templates, which are loaded at run time, say which fields there are and how they are
//! encoded.
//!
//! ```
//! use unitape_sim::exchange::{ExchangeChannel, Exchange, ExchangeConfig, FaultRates, ChannelTemplates};
//!
//! let config = ExchangeConfig { messages: 500, faults: FaultRates::of_all_kinds(), ..ExchangeConfig::default() };
//! let mut exchange = Exchange::new(config, &ChannelTemplates::shipped())?;
//! let mut incremental = 0;
//! while let Some(packet) = exchange.next()? {
//!     incremental += usize::from(packet.channel == ExchangeChannel::Incremental);
//! }
//! assert!(incremental > 100);
//! let at = exchange.truth().progress_of(0);
//! assert!(exchange.truth().moment(0, at).is_some());
//! # Ok::<(), unitape_sim::exchange::Error>(())
//! ```

mod book;
mod faults;
mod flow;
mod mapping;
mod publish;
mod reference;
#[cfg(test)]
mod tests;
mod truth;
mod world;

pub use crate::error::Error;
pub use book::{ExchangeLevel, MdUpdateAction, PublishedTrade, PublishedUpdate};
pub use faults::{FaultCounts, FaultRates};
pub use flow::Exchange;
pub use truth::{BookHistory, HALTED, ProductProgress, PublishedBookSnapshot, TRADED};
pub use world::{ExchangeInstrument, ExchangeProduct, InstrumentKind, ListedProducts};

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use unitape_fast::{TemplateFile, Templates};

/// The configuration of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeConfig {
    /// The same seed, and the rest of this, gives the same bytes.
    pub seed: u64,
    /// Products, those of futures and those of options in turn.
    pub products: u32,
    /// Instruments of a product of futures.
    pub futures: u32,
    /// Instruments of a product of options.
    pub options: u32,
    /// Partitions, each with channels of its own.
    pub partitions: u32,
    /// Published levels of a side; none for 10, 5, 20 and 3 in turn.
    pub depth: Option<u32>,
    /// Snapshots and reference data come on two lines, too.
    pub both_lines: bool,
    /// Complex instruments that are added in the day.
    pub spreads: u32,
    /// Instruments that are deleted in the day; of each product the first stays.
    pub deletions: u32,
    /// It ends when this many messages were numbered.
    pub messages: u64,
    /// Time of the start, nanoseconds since the epoch.
    pub start_ns: u64,
    /// Or when this much time is over, in nanoseconds.
    pub span_ns: u64,
    /// Messages of incremental channels in a second, about.
    pub rate: u32,
    /// Time between two packets of snapshots of a partition, in nanoseconds.
    pub snapshot_ns: u64,
    /// Time between two packets of reference data, in nanoseconds.
    pub reference_ns: u64,
    /// A product that is quiet for this long sends a beacon, in nanoseconds.
    pub beacon_ns: u64,
    /// The rates of faults.
    pub faults: FaultRates,
    /// The first address: see [`ExchangeConfig::address`].
    pub group: SocketAddrV4,
    /// Moments of an instrument that [`BookHistory`] keeps.
    pub moments_max: usize,
}

impl Default for ExchangeConfig {
    /// Returns four products in two partitions, 10,000 messages at 20,000 a second, without faults.
    fn default() -> Self {
        ExchangeConfig {
            seed: 1,
            products: 4,
            futures: 4,
            options: 200,
            partitions: 2,
            depth: None,
            both_lines: false,
            spreads: 2,
            deletions: 0,
            messages: 10_000,
            start_ns: 1_772_438_400_000_000_000,
            span_ns: u64::MAX / 4,
            rate: 20_000,
            snapshot_ns: 2_000_000,
            reference_ns: 10_000_000,
            beacon_ns: 20_000_000,
            faults: FaultRates::default(),
            group: SocketAddrV4::new(Ipv4Addr::new(239, 192, 77, 0), 14_310),
            moments_max: 1 << 16,
        }
    }
}

impl ExchangeConfig {
    /// Returns the address of a channel of a partition, which counts from 1. The last byte of the group is that of the
    /// first address plus the partition. The third byte is that of the first address plus an offset: 0 for line A, 1
    /// for line B, 2 for snapshots, 3 for reference data, 4 and 5 for their lines B. The port is that of the first
    /// address plus the same offset.
    #[must_use]
    pub fn address(&self, channel: ExchangeChannel, line: ExchangeLine, partition: u32) -> SocketAddrV4 {
        let address_offset = match (channel, line) {
            (ExchangeChannel::Incremental, ExchangeLine::A) => 0,
            (ExchangeChannel::Incremental, ExchangeLine::B) => 1,
            (ExchangeChannel::Snapshot, ExchangeLine::A) => 2,
            (ExchangeChannel::Reference, ExchangeLine::A) => 3,
            (ExchangeChannel::Snapshot, ExchangeLine::B) => 4,
            (ExchangeChannel::Reference, ExchangeLine::B) => 5,
        };
        let [a, b, c, d] = self.group.ip().octets();
        let ip = Ipv4Addr::new(a, b, c.wrapping_add(address_offset), d.wrapping_add(partition as u8));
        SocketAddrV4::new(ip, self.group.port().wrapping_add(address_offset.into()))
    }

    /// Returns the number of lines of a channel.
    #[must_use]
    pub fn lines(&self, channel: ExchangeChannel) -> usize {
        if channel == ExchangeChannel::Incremental || self.both_lines { 2 } else { 1 }
    }

    /// Checks the values of the configuration.
    fn check(&self) -> Result<(), Error> {
        let check_range = |name, value: u64, least: u64, most: u64| {
            let fits = (least..=most).contains(&value);
            if fits { Ok(()) } else { Err(Error::OutOfRange { name, value, least, most }) }
        };
        check_range("products", self.products.into(), 1, 1_000)?;
        check_range("partitions", self.partitions.into(), 1, 200)?;
        check_range("futures", self.futures.into(), 1, 1_000)?;
        check_range("options", self.options.into(), 1, 10_000)?;
        check_range("spreads", self.spreads.into(), 0, 1_000)?;
        check_range("deletions", self.deletions.into(), 0, 1_000)?;
        check_range("depth", self.depth.unwrap_or(1).into(), 1, 40)?;
        check_range("rate", self.rate.into(), 1, 100_000_000)?;
        for (name, value) in [
            ("snapshot_ns", self.snapshot_ns),
            ("reference_ns", self.reference_ns),
            ("beacon_ns", self.beacon_ns),
        ] {
            check_range(name, value, 1_000, 3_600_000_000_000)?;
        }
        check_range("start_ns", self.start_ns, 0, i64::MAX as u64 / 2)?;
        check_range("span_ns", self.span_ns, 1, i64::MAX as u64 / 2)
    }
}

/// A group of messages that are published together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExchangeChannel {
    /// Changes of books, trades, states, beacons.
    Incremental = 0,
    /// Whole books, in turn.
    Snapshot = 1,
    /// Products and instruments, in turn.
    Reference = 2,
}

impl ExchangeChannel {
    /// Returns the channel's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ExchangeChannel::Incremental => "incremental",
            ExchangeChannel::Snapshot => "snapshot",
            ExchangeChannel::Reference => "reference",
        }
    }
}

/// One of two lines with the same packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExchangeLine {
    /// The first; channels with one line have this.
    A,
    /// The second.
    B,
}

/// A packet as it comes to who listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredPacket {
    /// Its channel.
    pub channel: ExchangeChannel,
    /// On which line.
    pub line: ExchangeLine,
    /// Its partition, from 1; reference data has the first.
    pub partition: u32,
    /// Its destination.
    pub to: SocketAddrV4,
    /// Its number, from its header if that is not damaged.
    pub number: u32,
    /// Its arrival time, nanoseconds since the epoch.
    pub ts_ns: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Up to here it is as it was sent: a message that begins after this is damaged.
    pub sound: usize,
}

/// The templates of each channel.
#[derive(Debug, Clone)]
pub struct ChannelTemplates {
    /// With `DepthIncremental`.
    pub incremental: Arc<Templates>,
    /// With `DepthSnapshot`.
    pub snapshot: Arc<Templates>,
    /// With `ProductSnapshot`.
    pub reference: Arc<Templates>,
}

impl ChannelTemplates {
    /// Returns the templates that unitape ships.
    #[must_use]
    pub fn shipped() -> Self {
        const FILES: [(&str, &[u8]); 3] = [
            ("incremental.xml", include_bytes!("../../../../vectors/fast/box/incremental.xml")),
            ("snapshot.xml", include_bytes!("../../../../vectors/fast/box/snapshot.xml")),
            ("reference.xml", include_bytes!("../../../../vectors/fast/box/reference.xml")),
        ];
        Self::load(&FILES.map(|(name, content)| TemplateFile { name, content })).expect("they are tested")
    }

    /// Loads template files, each by itself: the templates in a file identify its channel.
    ///
    /// # Errors
    /// Fails if a file is wrong, or if a channel has no file.
    pub fn load(files: &[TemplateFile<'_>]) -> Result<Self, Error> {
        let mut all = Vec::new();
        for file in files {
            let templates = Templates::load(std::slice::from_ref(file));
            all.push(Arc::new(templates.map_err(|error| Error::Templates(error.to_string()))?));
        }
        let find_templates = |channel: ExchangeChannel, template: &'static str| {
            let template_set = all.iter().find(|set| set.list().iter().any(|t| t.name.local == template));
            template_set.cloned().ok_or(Error::NoTemplate { channel: channel.name(), template })
        };
        Ok(Self {
            incremental: find_templates(ExchangeChannel::Incremental, "DepthIncremental")?,
            snapshot: find_templates(ExchangeChannel::Snapshot, "DepthSnapshot")?,
            reference: find_templates(ExchangeChannel::Reference, "ProductSnapshot")?,
        })
    }
}
