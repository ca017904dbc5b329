//! The settings of a FAST handler in a mapping file: the table `[fast]`.
//!
//! ```toml
//! name = "my-venue"
//! format = "fast"
//!
//! [fast]
//! like = "t7-emdi"                 # all that is not said here is as in this shipped mapping
//! templates = ["incremental.xml", "snapshot.xml", "reference.xml"]     # beside this file
//! venue = "XEUR"
//! reset = "packet"                 # dictionaries are empty at the start of each packet, each message, or never
//! key = "product"                  # messages are numbered by product, or by channel
//!
//! [fast.framing]                   # see below
//! header = "EMDPacketHeader"
//! sequence = "PacketSeqNum"
//!
//! [[fast.channel]]                 # where packets come from
//! name = "futures"
//! role = "incremental"             # or snapshot, reference
//! a = ["224.0.50.1:59001"]         # addresses of line A
//! b = ["224.0.50.129:59001"]       # and of line B
//! templates = ["incremental.xml"]  # where channels use one id for different templates: its own
//!
//! [[fast.message]]                 # what messages mean; the first that names a template decides
//! templates = ["DepthIncremental"] # `*` at an end matches anything
//! kind = "depth"
//! entries = "MDIncGrp"             # the sequence whose elements are entries
//! fields = { product = "MarketSegmentID", sequence = "MsgSeqNum", px = "MDIncGrp.MDEntryPx" }
//!
//! [fast.action]                    # codes: what becomes of a level
//! 0 = "new"
//! ```
//!
//! **Framing.** `header = "NAME"` is a message of this template at the start of each packet, with the fields `sequence`,
//! `sender`, `partition`, `time`, `reset` (integers, or byte vectors with the highest byte first). Otherwise
//! `number_bytes` bytes of sequence (`order = "big"` or `"little"`), then `skip` bytes that mean nothing, where
//! `every = true` before each message, else once; `length = true` is a FAST integer before each message, its length.
//! A packet without a sequence is used as it arrives.
//!
//! **Kinds** of messages and their fields; those in bold must be there:
//!
//! | kind | fields |
//! |---|---|
//! | `depth` | `product`, `sequence` (which must be there where there are snapshots), `time`; of entries: **`instrument`**, `action`, `type`, `px`, `qty`, `orders`, `depth`, `entry_time`, `trade_id`, `aggressor` |
//! | `snapshot` | `product`, **`last`** (the number of the last message it has in it), `time`, **`instrument`**, `product_state`, `instrument_state`; of entries as of `depth` |
//! | `beacon` | `product`, **`last`** |
//! | `product_state` | `product`, `sequence`, `time`, **`product_state`** |
//! | `instrument_state` | `product`, `sequence`, `time`, **`instrument`**, **`instrument_state`** |
//! | `mass_state` | `product`, `sequence`, `time`, **`product_state`** for all, of entries: **`instrument`**, **`instrument_state`** |
//! | `sequenced` | `product`, **`sequence`**: it is passed over, but its number counts |
//! | `reset` | `product`: all books of the product, or of the channel, are empty |
//! | `product` | **`product`**, `name`, `group`, `market_depth`, `tick`, `currency` |
//! | `instrument` | **`instrument`**, `product`, `symbol`, `group`, `market_depth`, `tick`, `multiplier`, `currency`, `deleted` |
//! | `ignore` | nothing |

use super::market_event::ChannelRole;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The table as it appears in its file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)] // documented at the head of the module
pub struct ChannelsConfig {
    pub like: Option<String>,
    pub templates: Vec<String>,
    pub venue: Option<String>,
    pub reset: Option<DictionaryResetMode>,
    pub key: Option<NumberingScope>,
    /// Unit of `time` and `entry_time`.
    pub time: Option<TimeUnit>,
    /// The exponent of prices and quantities that are whole numbers.
    pub px_exponent: Option<i8>,
    pub qty_exponent: Option<i8>,
    /// The most levels of a side, if no product says otherwise.
    pub market_depth: Option<u16>,
    pub framing: Option<PacketHeaderConfig>,
    pub window: Option<ArbitrationWindow>,
    pub recovery: Option<RecoverySettings>,
    pub channel: Vec<ChannelConfig>,
    pub message: Vec<FastMessageConfig>,
    pub action: Option<BTreeMap<String, String>>,
    pub r#type: Option<BTreeMap<String, String>>,
    pub aggressor: Option<BTreeMap<String, String>>,
    pub deleted: Option<BTreeMap<String, String>>,
    pub product_state: Option<BTreeMap<String, String>>,
    pub instrument_state: Option<BTreeMap<String, String>>,
}

/// The points at which dictionaries are emptied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DictionaryResetMode {
    /// With each packet.
    #[default]
    Packet,
    /// With each message.
    Message,
    /// Never.
    Never,
}

/// The unit that numbers messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberingScope {
    /// Each product has numbers of its own.
    #[default]
    Product,
    /// Channels of the same `pair` have one for all.
    Channel,
}

/// The unit of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum TimeUnit {
    /// Nanoseconds since 1970.
    #[default]
    #[serde(rename = "ns")]
    Nanos,
    /// Microseconds.
    #[serde(rename = "us")]
    Micros,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millis,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Digits of a date and a time in UTC, with milliseconds: 20120403143015123.
    #[serde(rename = "YYYYMMDDhhmmssfff")]
    Digits,
}

/// The framing of packets, as it appears in the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)] // documented at the head of the module
pub struct PacketHeaderConfig {
    pub header: Option<String>,
    pub sequence: Option<String>,
    pub sender: Option<String>,
    pub partition: Option<String>,
    pub time: Option<String>,
    pub reset: Option<String>,
    pub number_bytes: u8,
    pub order: ByteOrder,
    pub skip: u8,
    pub every: bool,
    pub length: bool,
}

/// The first byte of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ByteOrder {
    /// The highest.
    #[default]
    Big,
    /// The lowest.
    Little,
}

/// The time and packets that the handler waits for a missing packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ArbitrationWindow {
    /// The most packets that wait.
    pub packets: u16,
    /// So long, by receive times.
    pub ns: i64,
    /// A line has passed a packet when it has brought this many with greater numbers.
    pub past: u16,
    /// A line that was silent for this long is not waited for. Within this time both channels of a pair restart their
    /// numbers.
    pub dead_ns: i64,
    /// A number so far from the line's last is believed only with a second one beside it.
    pub far: u32,
    /// All bytes that wait, of all channels.
    pub bytes: usize,
    /// A line that brings nothing for so long, while the other one does, is down.
    pub silent_ns: i64,
}

impl Default for ArbitrationWindow {
    fn default() -> Self {
        Self {
            packets: 64,
            ns: 10_000_000,
            past: 4,
            dead_ns: 1_000_000_000,
            far: 4096,
            bytes: 16 << 20,
            silent_ns: 1_000_000_000,
        }
    }
}

/// The settings by which a product recovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecoverySettings {
    /// Levels of a product that wait for snapshots, at most.
    pub levels: usize,
    /// The same limit for the levels of all products together.
    pub levels_all: usize,
    /// A product whose first message has this number begins with empty books and needs no snapshot.
    pub first: Option<u64>,
    /// Products, at most.
    pub products: usize,
    /// Instruments, at most.
    pub instruments: usize,
    /// Bytes of snapshots that are kept for gaps that are noticed after them, of each pair of channels. None by default: where
    /// numbers begin again in packets that were lost, a snapshot of the old numbers could pass for one of the new.
    pub early_bytes: usize,
}

impl Default for RecoverySettings {
    fn default() -> Self {
        Self {
            levels: 1 << 16,
            levels_all: 1 << 20,
            first: None,
            products: 1 << 14,
            instruments: 1 << 20,
            early_bytes: 0,
        }
    }
}

/// A channel as it appears in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // documented at the head of the module
pub struct ChannelConfig {
    pub name: String,
    pub role: ChannelRole,
    #[serde(default)]
    pub a: Vec<String>,
    #[serde(default)]
    pub b: Vec<String>,
    /// Channels with the same word belong together: these snapshots are for those incrementals.
    #[serde(default)]
    pub pair: String,
    /// Its own files of templates, where two channels use one id for two templates.
    #[serde(default)]
    pub templates: Vec<String>,
}

/// A kind of message as it appears in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // documented at the head of the module
pub struct FastMessageConfig {
    pub templates: Vec<String>,
    pub kind: MessageKind,
    pub entries: Option<String>,
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // documented at the head of the module
pub enum MessageKind {
    Depth,
    Snapshot,
    Beacon,
    ProductState,
    InstrumentState,
    MassState,
    Sequenced,
    Reset,
    Product,
    Instrument,
    Ignore,
}

/// Returns the word of a kind in mappings.
pub(super) const fn kind_word(kind: MessageKind) -> &'static str {
    match kind {
        MessageKind::Depth => "depth",
        MessageKind::Snapshot => "snapshot",
        MessageKind::Beacon => "beacon",
        MessageKind::ProductState => "product_state",
        MessageKind::InstrumentState => "instrument_state",
        MessageKind::MassState => "mass_state",
        MessageKind::Sequenced => "sequenced",
        MessageKind::Reset => "reset",
        MessageKind::Product => "product",
        MessageKind::Instrument => "instrument",
        MessageKind::Ignore => "ignore",
    }
}

impl ChannelsConfig {
    /// Fills in keys that are not set from `base`.
    #[must_use]
    pub fn with_defaults(mut self, base: &ChannelsConfig) -> Self {
        macro_rules! take {
            ($($field:ident),*) => { $( if self.$field.is_none() { self.$field = base.$field.clone(); } )* };
        }
        take!(venue, reset, key, time, px_exponent, qty_exponent, market_depth, framing, window, recovery);
        take!(action, r#type, aggressor, deleted, product_state, instrument_state);
        if self.templates.is_empty() {
            self.templates.clone_from(&base.templates);
        }
        if self.channel.is_empty() {
            self.channel.clone_from(&base.channel);
        }
        // The own entries are matched first.
        self.message.extend(base.message.iter().cloned());
        self
    }
}
