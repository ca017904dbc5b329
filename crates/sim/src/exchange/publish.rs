//! The contents of the channels: messages of templates that are known at run time alone. The publisher fills each
//! field that a template has.

use super::book::{ExchangeLevel, MdUpdateAction, PublishedTrade, PublishedUpdate};
use super::reference::ReferencePublisher;
use super::truth::PublishedBookSnapshot;
use super::world::{ExchangeInstrument, ExchangeProduct};
use super::{Error, ExchangeChannel};
use std::sync::Arc;
use unitape_fast::encode::FieldRef;
use unitape_fast::encode::{GroupRef, TemplatePartRef};
use unitape_fast::{Encoder, FieldValue, MessageDraft, SequenceRef, Templates};
use unitape_model::Side;

/// Bytes of a packet at which no other message is put into it.
pub(super) const PACKET_BYTES: usize = 1_200;

/// A template with the places of its fields.
pub(super) struct MessageTemplate<const N: usize> {
    pub template: usize,
    pub fields: [Option<FieldRef>; N],
}

impl<const N: usize> MessageTemplate<N> {
    pub fn set(&self, draft: &mut MessageDraft, field: usize, value: FieldValue<'_>) {
        if let Some(field) = self.fields[field] {
            draft.set(field, value);
        }
    }

    pub fn uint(&self, draft: &mut MessageDraft, field: usize, value: u64) {
        self.set(draft, field, FieldValue::UInt(value));
    }
}

/// The messages of a channel, being put into packets.
pub(super) struct ChannelSender {
    pub encoder: Encoder,
    pub draft: MessageDraft,
    pub bytes: Vec<u8>,
    /// The last number of each partition.
    numbers: Vec<u32>,
}

impl ChannelSender {
    fn new(templates: Arc<Templates>, partitions: u32) -> Self {
        // Fields that our exchange does not have are zero or empty.
        let encoder = Encoder::new(templates).with_neutral(true);
        let draft = encoder.draft(0);
        Self { encoder, draft, bytes: Vec::new(), numbers: vec![0; partitions as usize] }
    }

    pub fn message<const N: usize>(
        &self,
        channel: ExchangeChannel,
        name: &'static str,
        paths: [&str; N],
    ) -> Result<MessageTemplate<N>, Error> {
        let template = self
            .encoder
            .template(name)
            .ok_or(Error::NoTemplate { channel: channel.name(), template: name })?;
        Ok(MessageTemplate { template, fields: paths.map(|path| self.encoder.field(template, path)) })
    }

    fn sequence(
        &self,
        channel: ExchangeChannel,
        template_index: usize,
        template: &'static str,
        path: &'static str,
    ) -> Result<SequenceRef, Error> {
        let missing = Error::NoField { channel: channel.name(), template, field: path };
        self.encoder.sequence(template_index, path).ok_or(missing)
    }

    pub fn group(&self, template: usize, path: &str) -> Option<GroupRef> {
        match self.encoder.part(template, path) {
            Some(TemplatePartRef::Group(group)) => Some(group),
            _ => None,
        }
    }

    /// Puts the message that was drafted after the others.
    pub fn publish(&mut self) -> Result<(), Error> {
        self.encoder.encode(&self.draft, &mut self.bytes).map_err(Error::Encode)
    }
}

/// Publishes the exchange's messages with the given templates.
pub(super) struct FastPublisher {
    incremental: ChannelSender,
    snapshot: ChannelSender,
    pub reference: ReferencePublisher,
    headers: [MessageTemplate<5>; 3],
    beacon: MessageTemplate<3>,
    product_state: MessageTemplate<7>,
    mass_state: MessageTemplate<6>,
    instrument_state: MessageTemplate<7>,
    depth: MessageTemplate<19>,
    depth_entries: SequenceRef,
    depth_trade: Option<GroupRef>,
    depth_snapshot: MessageTemplate<18>,
    snapshot_entries: SequenceRef,
}

impl std::fmt::Debug for FastPublisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").finish_non_exhaustive()
    }
}

const HEADER: [&str; 5] =
    ["PartitionID", "SenderCompID", "PacketSeqNum", "SendingTime", "ApplSeqResetIndicator"];

const DEPTH: [&str; 19] = [
    "MsgSeqNum",
    "SenderCompID",
    "MarketSegmentID",
    "MDIncGrp/MDUpdateAction",
    "MDIncGrp/MDEntryType",
    "MDIncGrp/SecurityID",
    "MDIncGrp/MDEntryPx",
    "MDIncGrp/MDEntrySize",
    "MDIncGrp/NumberOfOrders",
    "MDIncGrp/MDPriceLevel",
    "MDIncGrp/MDEntryTime",
    "MDIncGrp/TradeEntryGrp/TradeVolume",
    "MDIncGrp/TradeEntryGrp/TradeCondition",
    "MDIncGrp/TradeEntryGrp/AggressorTimestamp",
    "MDIncGrp/TradeEntryGrp/AggressorSide",
    "MDIncGrp/TradeEntryGrp/NumberOfBuyOrders",
    "MDIncGrp/TradeEntryGrp/NumberOfSellOrders",
    "MDIncGrp/TradeEntryGrp/MDEntryID",
    "MDIncGrp/TradeEntryGrp/TrdType",
];

const SNAPSHOT: [&str; 18] = [
    "MsgSeqNum",
    "SenderCompID",
    "LastMsgSeqNumProcessed",
    "RefreshIndicator",
    "MarketSegmentID",
    "SecurityID",
    "SecurityStatus",
    "LastUpdateTime",
    "MDSshGrp/MDEntryType",
    "MDSshGrp/MDPriceLevel",
    "MDSshGrp/MDEntryPx",
    "MDSshGrp/MDEntrySize",
    "MDSshGrp/NumberOfOrders",
    "MDSshGrp/MDEntryTime",
    "MDSshGrp/TradingSessionID",
    "MDSshGrp/TradingSessionSubID",
    "MDSshGrp/SecurityTradingStatus",
    "MDSshGrp/TradeCondition",
];

impl FastPublisher {
    /// Looks up the required fields in the templates of each channel.
    pub fn new(templates: &super::ChannelTemplates, partitions: u32) -> Result<Self, Error> {
        let [incremental, snapshot, reference] =
            [&templates.incremental, &templates.snapshot, &templates.reference]
                .map(|templates| ChannelSender::new(templates.clone(), partitions));
        use ExchangeChannel::{Incremental, Reference, Snapshot};
        let headers = [
            incremental.message(Incremental, "EMDPacketHeader", HEADER)?,
            snapshot.message(Snapshot, "EMDPacketHeader", HEADER)?,
            reference.message(Reference, "RDPacketHeader", HEADER)?,
        ];
        for (header, channel) in headers.iter().zip([Incremental, Snapshot, Reference]) {
            let field = if header.fields[2].is_none() { "PacketSeqNum" } else { "SendingTime" };
            if header.fields[2].is_none() || header.fields[3].is_none() {
                return Err(Error::NoField { channel: channel.name(), template: "its header", field });
            }
        }
        let beacon = ["SenderCompID", "SenderSubID", "LastMsgSeqNumProcessed"];
        let state = |state_fields: [&'static str; 4]| {
            [
                "MsgSeqNum",
                "SenderCompID",
                "MarketSegmentID",
                state_fields[0],
                state_fields[1],
                state_fields[2],
                state_fields[3],
            ]
        };
        let depth = incremental.message(Incremental, "DepthIncremental", DEPTH)?;
        for (field, path) in depth.fields.iter().zip(DEPTH).take(10) {
            if field.is_none() {
                let (channel, template) = (Incremental.name(), "DepthIncremental");
                return Err(Error::NoField { channel, template, field: path });
            }
        }
        let depth_snapshot = snapshot.message(Snapshot, "DepthSnapshot", SNAPSHOT)?;
        for n in [2, 4, 5, 8, 9, 10, 11] {
            if depth_snapshot.fields[n].is_none() {
                let (channel, template) = (Snapshot.name(), "DepthSnapshot");
                return Err(Error::NoField { channel, template, field: SNAPSHOT[n] });
            }
        }
        Ok(Self {
            beacon: incremental.message(Incremental, "Beacon", beacon)?,
            product_state: incremental.message(
                Incremental,
                "ProductStateChange",
                state(["TradingSessionID", "TradingSessionSubID", "TradSesStatus", "TransactTime"]),
            )?,
            mass_state: incremental.message(
                Incremental,
                "MassInstrumentStateChange",
                [
                    "MsgSeqNum",
                    "SenderCompID",
                    "MarketSegmentID",
                    "InstrumentScopeProductComplex",
                    "SecurityMassTradingStatus",
                    "TransactTime",
                ],
            )?,
            instrument_state: incremental.message(
                Incremental,
                "InstrumentStateChange",
                state(["SecurityID", "SecurityStatus", "SecurityTradingStatus", "TransactTime"]),
            )?,
            depth_entries: incremental.sequence(
                Incremental,
                depth.template,
                "DepthIncremental",
                "MDIncGrp",
            )?,
            depth_trade: incremental.group(depth.template, "MDIncGrp/TradeEntryGrp"),
            snapshot_entries: snapshot.sequence(
                Snapshot,
                depth_snapshot.template,
                "DepthSnapshot",
                "MDSshGrp",
            )?,
            headers,
            depth,
            depth_snapshot,
            incremental,
            snapshot,
            reference: super::reference::ReferencePublisher::new(reference)?,
        })
    }

    fn sender(&mut self, channel: ExchangeChannel) -> &mut ChannelSender {
        match channel {
            ExchangeChannel::Incremental => &mut self.incremental,
            ExchangeChannel::Snapshot => &mut self.snapshot,
            ExchangeChannel::Reference => &mut self.reference.sender,
        }
    }

    /// Begins a packet with its header; dictionaries are empty.
    pub fn begin(
        &mut self,
        channel: ExchangeChannel,
        partition: u32,
        ts_ns: u64,
        reset: bool,
    ) -> Result<(), Error> {
        let (template, fields) =
            (self.headers[channel as usize].template, self.headers[channel as usize].fields);
        let header = MessageTemplate { template, fields };
        let sender = self.sender(channel);
        let number = &mut sender.numbers[partition as usize - 1];
        *number = if reset { 1 } else { *number + 1 };
        let number = number.to_be_bytes();
        sender.encoder.reset();
        sender.bytes.clear();
        let draft = &mut sender.draft;
        draft.begin(template);
        header.uint(draft, 0, partition.into());
        header.uint(draft, 1, sender_of(partition).into());
        header.set(draft, 2, FieldValue::Bytes(&number));
        header.set(draft, 3, FieldValue::Bytes(&ts_ns.to_be_bytes()));
        if reset {
            header.uint(draft, 4, 1);
        }
        sender.publish()
    }

    /// Returns the bytes of the packet so far.
    pub fn packet(&self, channel: ExchangeChannel) -> &[u8] {
        match channel {
            ExchangeChannel::Incremental => &self.incremental.bytes,
            ExchangeChannel::Snapshot => &self.snapshot.bytes,
            ExchangeChannel::Reference => &self.reference.sender.bytes,
        }
    }

    /// Returns the number of the last packet begun.
    pub fn number(&self, channel: ExchangeChannel, partition: u32) -> u32 {
        let sender = match channel {
            ExchangeChannel::Incremental => &self.incremental,
            ExchangeChannel::Snapshot => &self.snapshot,
            ExchangeChannel::Reference => &self.reference.sender,
        };
        sender.numbers[partition as usize - 1]
    }

    pub fn beacon(&mut self, product: &ExchangeProduct, last: u32) -> Result<(), Error> {
        let (message, sender) = (&self.beacon, &mut self.incremental);
        sender.draft.begin(message.template);
        message.uint(&mut sender.draft, 0, sender_of(product.partition).into());
        message.uint(&mut sender.draft, 1, product.id.into());
        message.uint(&mut sender.draft, 2, last.into());
        sender.publish()
    }

    /// Writes a product's state: open for trading or not.
    pub fn product_state(
        &mut self,
        product: &ExchangeProduct,
        seq: u32,
        open: bool,
        ts_ns: u64,
    ) -> Result<(), Error> {
        let (message, sender) = (&self.product_state, &mut self.incremental);
        head(message, &mut sender.draft, product, seq);
        message.uint(&mut sender.draft, 3, SESSION);
        message.uint(&mut sender.draft, 4, session_sub(open));
        message.uint(&mut sender.draft, 5, if open { 2 } else { 3 });
        message.set(&mut sender.draft, 6, FieldValue::Int(ts_ns as i64));
        sender.publish()
    }

    /// Writes the state of all simple instruments of a product.
    pub fn mass_state(
        &mut self,
        product: &ExchangeProduct,
        seq: u32,
        status: u32,
        ts_ns: u64,
    ) -> Result<(), Error> {
        let (message, sender) = (&self.mass_state, &mut self.incremental);
        head(message, &mut sender.draft, product, seq);
        message.uint(&mut sender.draft, 3, 1);
        message.uint(&mut sender.draft, 4, status.into());
        message.set(&mut sender.draft, 5, FieldValue::Int(ts_ns as i64));
        sender.publish()
    }

    pub fn instrument_state(
        &mut self,
        product: &ExchangeProduct,
        instrument: &ExchangeInstrument,
        seq: u32,
        status: u32,
        ts_ns: u64,
    ) -> Result<(), Error> {
        let (message, sender) = (&self.instrument_state, &mut self.incremental);
        head(message, &mut sender.draft, product, seq);
        message.uint(&mut sender.draft, 3, instrument.id);
        message.uint(&mut sender.draft, 4, 1);
        message.uint(&mut sender.draft, 5, status.into());
        message.set(&mut sender.draft, 6, FieldValue::Int(ts_ns as i64));
        sender.publish()
    }

    /// Trades and changes of books of a product, each with its instrument.
    pub fn depth(
        &mut self,
        product: &ExchangeProduct,
        seq: u32,
        changes: &[(u64, IncrementalEntry)],
        ts_ns: u64,
    ) -> Result<(), Error> {
        let (message, sender) = (&self.depth, &mut self.incremental);
        let draft = &mut sender.draft;
        head(message, draft, product, seq);
        for (instrument, change) in changes {
            draft.element(self.depth_entries);
            message.uint(draft, 5, *instrument);
            message.set(draft, 10, FieldValue::Int(ts_ns as i64));
            let px = |mantissa| FieldValue::Decimal { mantissa, exponent: product.exponent };
            match change {
                IncrementalEntry::Level(update) => {
                    message.uint(draft, 3, update.action as u64);
                    message.uint(draft, 4, update.side as u64);
                    message.uint(draft, 9, update.depth.into());
                    if let Some(level) = update.level {
                        message.set(draft, 6, px(level.px));
                        message.uint(draft, 7, level.qty.into());
                        message.uint(draft, 8, level.orders.into());
                    }
                }
                IncrementalEntry::Trade(trade) => {
                    message.uint(draft, 3, MdUpdateAction::New as u64);
                    message.uint(draft, 4, 2);
                    message.set(draft, 6, px(trade.px));
                    message.uint(draft, 7, trade.qty.into());
                    if let Some(group) = self.depth_trade {
                        draft.group(group);
                    }
                    message.uint(draft, 11, trade.qty.into());
                    message.uint(draft, 12, 1);
                    message.set(draft, 13, FieldValue::Int(ts_ns as i64 - 1_000));
                    message.uint(draft, 14, trade.aggressor as u64);
                    message.uint(draft, 15, 1);
                    message.uint(draft, 16, 1);
                    message.uint(draft, 17, trade.id.into());
                }
            }
        }
        sender.publish()
    }

    /// Writes the whole book of an instrument, with the product's sequence number at that moment.
    pub fn snapshot(&mut self, snapshot: &SnapshotMessage<'_>) -> Result<(), Error> {
        let SnapshotMessage { product, instrument, seq, moment: now, ts_ns, .. } = *snapshot;
        let (message, sender) = (&self.depth_snapshot, &mut self.snapshot);
        let draft = &mut sender.draft;
        draft.begin(message.template);
        message.uint(draft, 0, seq.into());
        message.uint(draft, 1, sender_of(product.partition).into());
        message.uint(draft, 2, snapshot.last_seq.into());
        message.uint(draft, 3, snapshot.is_fresh.into());
        message.uint(draft, 4, product.id.into());
        message.uint(draft, 5, instrument.id);
        message.uint(draft, 6, 1);
        message.set(draft, 7, FieldValue::Int(ts_ns as i64));
        let mut first = true;
        let mut entry = |draft: &mut MessageDraft, kind: u64| {
            draft.element(self.snapshot_entries);
            message.uint(draft, 8, kind);
            if std::mem::take(&mut first) {
                message.uint(draft, 14, SESSION);
                message.uint(draft, 15, session_sub(snapshot.is_open));
                message.uint(draft, 16, now.map_or(super::truth::TRADED, |now| now.status).into());
            }
        };
        let px = |mantissa| FieldValue::Decimal { mantissa, exponent: product.exponent };
        let nothing: &[ExchangeLevel] = &[];
        let sides = now.map_or([nothing; 2], |now| [&now.bids, &now.offers]);
        for (levels, side) in sides.into_iter().zip([Side::Buy, Side::Sell]) {
            for (index, level) in levels.iter().enumerate() {
                entry(draft, side as u64);
                message.uint(draft, 9, index as u64 + 1);
                message.set(draft, 10, px(level.px));
                message.uint(draft, 11, level.qty.into());
                message.uint(draft, 12, level.orders.into());
            }
        }
        if let Some(PublishedTrade { px: trade_px, qty, .. }) = now.and_then(|now| now.trade) {
            entry(draft, 2);
            message.set(draft, 10, px(trade_px));
            message.uint(draft, 11, qty.into());
            message.set(draft, 13, FieldValue::Int(ts_ns as i64));
            message.uint(draft, 17, 1);
        } else if sides.iter().all(|levels| levels.is_empty()) {
            entry(draft, EMPTY_BOOK);
        }
        sender.publish()
    }
}

/// The book of an instrument, as a snapshot publishes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SnapshotMessage<'a> {
    pub product: &'a ExchangeProduct,
    pub instrument: &'a ExchangeInstrument,
    /// The snapshot's number in the channel of snapshots.
    pub seq: u32,
    /// The last message of the incremental channel that the snapshot contains.
    pub last_seq: u32,
    /// None: nothing has happened in the book.
    pub moment: Option<&'a PublishedBookSnapshot>,
    pub is_open: bool,
    /// The book has changed since its last snapshot.
    pub is_fresh: bool,
    pub ts_ns: u64,
}

/// An entry of a `DepthIncremental`.
#[derive(Debug, Clone, Copy)]
pub(super) enum IncrementalEntry {
    Level(PublishedUpdate),
    Trade(PublishedTrade),
}

/// `TradingSessionID`: the day.
const SESSION: u64 = 3;
/// `MDEntryType`: the book is empty.
const EMPTY_BOOK: u64 = 10;

/// Returns the `TradingSessionSubID`: trading, or a pause.
fn session_sub(open: bool) -> u64 {
    if open { 3 } else { 7 }
}

/// Returns the `SenderCompID` of a partition.
pub(super) fn sender_of(partition: u32) -> u32 {
    70 + partition
}

/// Writes the number, sender and product of a message.
fn head<const N: usize>(
    message: &MessageTemplate<N>,
    draft: &mut MessageDraft,
    product: &ExchangeProduct,
    seq: u32,
) {
    draft.begin(message.template);
    message.uint(draft, 0, seq.into());
    message.uint(draft, 1, sender_of(product.partition).into());
    message.uint(draft, 2, product.id.into());
}
