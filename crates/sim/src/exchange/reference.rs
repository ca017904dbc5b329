//! The contents of the channel of reference data.

use super::publish::{ChannelSender, MessageTemplate};
use super::world::{ExchangeProduct, InstrumentKind, ListedProducts};
use super::{Error, ExchangeChannel};
use unitape_fast::encode::FieldRef;
use unitape_fast::encode::GroupRef;
use unitape_fast::{FieldValue, SequenceRef};

/// Publishes the reference data.
pub(super) struct ReferencePublisher {
    pub sender: ChannelSender,
    product: MessageTemplate<11>,
    tick_rules: Option<SequenceRef>,
    tick_rule: [Option<FieldRef>; 3],
    feeds: Option<SequenceRef>,
    feed: [Option<FieldRef>; 6],
    instrument: MessageTemplate<16>,
    instrument_more: InstrumentGroupRefs,
    instrument_update: MessageTemplate<16>,
    instrument_update_more: InstrumentGroupRefs,
}

/// The parts of an instrument that are in groups and sequences.
struct InstrumentGroupRefs {
    simple: Option<GroupRef>,
    complex: Option<GroupRef>,
    legs: Option<SequenceRef>,
    segments: Option<SequenceRef>,
}

const INSTRUMENT: [&str; 16] = [
    "MsgSeqNum",
    "SecurityUpdateAction",
    "SecurityID",
    "SecurityType",
    "ProductComplex",
    "SecurityStatus",
    "MinPriceIncrement",
    "SimpleInstrumentDescriptorGroup/MaturityDate",
    "SimpleInstrumentDescriptorGroup/MaturityMonthYear",
    "SimpleInstrumentDescriptorGroup/StrikePrice",
    "SimpleInstrumentDescriptorGroup/PricePrecision",
    "SimpleInstrumentDescriptorGroup/PutOrCall",
    "ComplexInstrumentDescriptorGroup/SecurityDesc",
    "ComplexInstrumentDescriptorGroup/InstrmtLegGrp/LegSecurityID",
    "ComplexInstrumentDescriptorGroup/InstrmtLegGrp/LegSide",
    "MarketSegmentGrp/MarketSegmentID",
];

impl ReferencePublisher {
    /// Looks up the required fields in the templates.
    pub fn new(reference: ChannelSender) -> Result<Self, Error> {
        use ExchangeChannel::Reference;
        let product = reference.message(
            Reference,
            "ProductSnapshot",
            [
                "MsgSeqNum",
                "MarketSegmentID",
                "MarketSegment",
                "MarketSegmentDesc",
                "MarketID",
                "Currency",
                "TradeDate",
                "MarketSegmentStatus",
                "PartitionID",
                "MarketSegmentSymbol",
                "ParentMktSegmID",
            ],
        )?;
        let of_product = |path: &str| reference.encoder.field(product.template, path);
        let rules = ["StartTickPriceRange", "EndTickPriceRange", "TickIncrement"];
        let tick_rule = rules.map(|name| of_product(&format!("TickRules/{name}")));
        let feed = [
            "MDFeedType",
            "MarketDepth",
            "MDPrimaryFeedLineID",
            "MDPrimaryFeedLineSubID",
            "MDSecondaryFeedLineID",
            "MDSecondaryFeedLineSubID",
        ]
        .map(|name| of_product(&format!("Feeds/{name}")));
        let more = |template| InstrumentGroupRefs {
            simple: reference.group(template, "SimpleInstrumentDescriptorGroup"),
            complex: reference.group(template, "ComplexInstrumentDescriptorGroup"),
            legs: reference.encoder.sequence(template, "ComplexInstrumentDescriptorGroup/InstrmtLegGrp"),
            segments: reference.encoder.sequence(template, "MarketSegmentGrp"),
        };
        let instrument = reference.message(Reference, "InstrumentSnapshot", INSTRUMENT)?;
        let instrument_update = reference.message(Reference, "InstrumentIncremental", INSTRUMENT)?;
        Ok(Self {
            tick_rules: reference.encoder.sequence(product.template, "TickRules"),
            feeds: reference.encoder.sequence(product.template, "Feeds"),
            instrument_more: more(instrument.template),
            instrument_update_more: more(instrument_update.template),
            product,
            tick_rule,
            feed,
            instrument,
            instrument_update,
            sender: reference,
        })
    }

    pub fn product(
        &mut self,
        product: &ExchangeProduct,
        seq: u32,
        config: &super::ExchangeConfig,
    ) -> Result<(), Error> {
        let (message, sender) = (&self.product, &mut self.sender);
        let draft = &mut sender.draft;
        draft.begin(message.template);
        message.uint(draft, 0, seq.into());
        message.uint(draft, 1, product.id.into());
        message.set(draft, 2, FieldValue::Text(product.name.as_bytes()));
        message.set(draft, 3, FieldValue::Text(b"invented"));
        message.set(draft, 4, FieldValue::Text(b"XBOX"));
        message.set(draft, 5, FieldValue::Text(b"EUR"));
        message.uint(draft, 6, TRADE_DATE);
        message.uint(draft, 7, 1);
        message.uint(draft, 8, product.partition.into());
        message.set(draft, 9, FieldValue::Text(product.name.as_bytes()));
        message.set(draft, 10, FieldValue::Text(product.name.as_bytes()));
        let px = |mantissa| FieldValue::Decimal { mantissa, exponent: product.exponent };
        if let Some(rules) = self.tick_rules {
            draft.element(rules);
            let values = [px(-1_000_000_000), px(1_000_000_000), px(product.tick)];
            for (field, value) in self.tick_rule.into_iter().zip(values) {
                field.into_iter().for_each(|field| draft.set(field, value));
            }
        }
        let Some(feeds) = self.feeds else { return sender.publish() };
        for (kind, channel) in
            [ExchangeChannel::Incremental, ExchangeChannel::Snapshot].into_iter().enumerate()
        {
            draft.element(feeds);
            let [feed, depth, ..] = self.feed;
            feed.into_iter().for_each(|field| draft.uint(field, kind as u64));
            depth.into_iter().for_each(|field| draft.uint(field, product.depth.into()));
            let lines =
                [super::ExchangeLine::A, super::ExchangeLine::B].into_iter().take(config.lines(channel));
            for (line, fields) in lines.zip([2, 4]) {
                let to = config.address(channel, line, product.partition);
                let group = to.ip().to_string();
                if let Some(field) = self.feed[fields] {
                    draft.set(field, FieldValue::Text(group.as_bytes()));
                }
                self.feed[fields + 1].into_iter().for_each(|field| draft.uint(field, to.port().into()));
            }
        }
        sender.publish()
    }

    /// Writes an instrument of the cycle, or the update of a new or deleted instrument.
    pub fn instrument(
        &mut self,
        world: &ListedProducts,
        instrument: usize,
        seq: u32,
        update: bool,
    ) -> Result<(), Error> {
        let (message, more) = if update {
            (&self.instrument_update, &self.instrument_update_more)
        } else {
            (&self.instrument, &self.instrument_more)
        };
        let (listed_instrument, product) = (&world.instruments[instrument], world.product_of(instrument));
        let sender = &mut self.sender;
        let draft = &mut sender.draft;
        draft.begin(message.template);
        message.uint(draft, 0, seq.into());
        message.uint(draft, 1, listed_instrument.is_deleted.into());
        message.uint(draft, 2, listed_instrument.id);
        let (kind, complex) = match listed_instrument.kind {
            InstrumentKind::Option { .. } => (0, 1),
            InstrumentKind::Future => (1, 1),
            InstrumentKind::Spread(_) => (2, 5),
        };
        message.uint(draft, 3, kind);
        message.uint(draft, 4, complex);
        message.uint(draft, 5, 1);
        message.set(draft, 6, FieldValue::Decimal { mantissa: product.tick, exponent: product.exponent });
        if let InstrumentKind::Spread(legs) = listed_instrument.kind {
            more.complex.into_iter().for_each(|group| draft.group(group));
            message.set(draft, 12, FieldValue::Text(b"spread"));
            for (leg, side) in legs.into_iter().zip([0, 1]) {
                more.legs.into_iter().for_each(|legs| _ = draft.element(legs));
                message.uint(draft, 13, world.instruments[leg].id);
                message.uint(draft, 14, side);
            }
        } else {
            more.simple.into_iter().for_each(|group| draft.group(group));
            message.uint(draft, 7, listed_instrument.maturity.into());
            message.uint(draft, 8, (listed_instrument.maturity / 100).into());
            message.uint(draft, 10, u64::from(product.exponent.unsigned_abs()));
            if let InstrumentKind::Option { strike, call } = listed_instrument.kind {
                message.set(draft, 9, FieldValue::Decimal { mantissa: strike, exponent: product.exponent });
                message.uint(draft, 11, call.into());
            }
        }
        if let Some(segments) = more.segments {
            draft.element(segments);
            message.uint(draft, 15, product.id.into());
        }
        sender.publish()
    }
}

/// `TradeDate`.
const TRADE_DATE: u64 = 20_260_302;
