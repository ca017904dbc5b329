//! Messages to events field by field: all types, and the twin of the fast path for the frequent ones.
//!
//! | message | events |
//! |---|---|
//! | `A` `F` | `order_new` |
//! | `E` `C` | `exec`; with orders and prints also `trade`, unless `C` says that a cross prints it |
//! | `X` | `order_amend` to what the whole is now, or `order_cancel`; without orders with `qty_reduced` |
//! | `D` | `order_cancel` |
//! | `U` | `order_cancel` and `order_new` |
//! | `P` `Q` | `trade` |
//! | `S` `H` | `status`, and `session` where the mapping has a phase for the code |
//! | `R` | `ref` |
//! | `I` `J` `O` | `ref_px` |
//! | others | `status` |

use super::config::CheckedItchConfig;
use super::orders::ItchOrderState;
use super::{ItchDecoder, ItchMessageOrigin, NO_DAY, refused};
use crate::block::json::json_string;
use crate::block::{Block, BlockNameResolver};
use crate::mapping::MessageRefusal;
use crate::reference::InstrumentLookup;
use unitape_codec::itch::{ItchMessage, price};
use unitape_model::event::EventValue;
use unitape_model::{
    Decimal, Dictionary, EventBuilder, EventField, EventKind, FrameHeader, InlineId, Price, Refusal,
    UnixNanos, flags,
};

/// Writes the events of a message: their time and how many, or why not; then nothing that was written counts.
pub(super) fn write_events(
    decoder: &mut ItchDecoder,
    block: &mut Block,
    message: ItchMessage<'_>,
    origin: ItchMessageOrigin,
    dictionary: &Dictionary,
    lookup: &mut impl InstrumentLookup,
) -> Result<(UnixNanos, u32), MessageRefusal> {
    message.check().map_err(refused)?;
    if origin.midnight == NO_DAY {
        let detail = "the session date is not known: say session_date in the mapping".to_owned();
        return Err(MessageRefusal { code: "no_date", detail });
    }
    let ts = UnixNanos(origin.midnight + message.timestamp() as i64);
    // All of a session is of one venue, also what has no place for it.
    lookup.set_event(Some(decoder.config.venue.as_bytes()), ts);
    let mut out =
        ItchEventWriter { block, dictionary, instrument_lookup: lookup, origin, ts, count: 0, last_start: 0 };
    if decoder.restarted {
        let session = decoder.mold.last_session();
        out.write_status(decoder, None, "restarted", &session, |_| Ok(()))?;
    }
    out.message(decoder, message)?;
    decoder.restarted = false;
    let ItchEventWriter { block, count, last_start: last, .. } = out;
    let header = FrameHeader::read(&block.arena[last..]);
    header.with_flags(flags::LAST).write(&mut block.arena[last..]);
    decoder.stocks.resolve_id(message.stock_locate(), dictionary, &decoder.config);
    if let ItchMessage::AddOrderMpid(m) = message {
        decoder.firms.resolve_id(&m.attribution(), dictionary);
    }
    Ok((ts, count))
}

/// The destination of a message's events.
struct ItchEventWriter<'o, I> {
    block: &'o mut Block,
    dictionary: &'o Dictionary,
    instrument_lookup: &'o mut I,
    origin: ItchMessageOrigin,
    ts: UnixNanos,
    count: u32,
    /// Start of the last event.
    last_start: usize,
}

/// The fields of an order that an event has; unknown ones are left out.
#[derive(Clone, Copy, Default)]
struct OrderEventFields {
    order: u64,
    side: u8,
    px: Option<u32>,
    shares: Option<u32>,
    firm: [u8; 4],
    locate: u16,
}

impl OrderEventFields {
    fn from_order(order: &ItchOrderState, shares: u32) -> Self {
        let ItchOrderState { order, px, side, firm, locate, .. } = *order;
        Self { order, side, px: Some(px), shares: Some(shares), firm, locate }
    }
}

/// An execution of an order that rests in the book.
#[derive(Clone, Copy)]
struct OrderExecution {
    /// The stock's code of the day.
    locate: u16,
    /// Reference number of the order.
    order: u64,
    shares: u32,
    match_number: u64,
}

/// The price of an execution that is not at the order's own.
#[derive(Clone, Copy)]
struct PrintPrice {
    /// In 10^-4 of the currency.
    px: u32,
    /// Whether it is a print of its own; the others are part of a later cross print.
    printable: bool,
}

/// The fields of a print.
#[derive(Clone, Copy)]
struct PrintFields {
    /// In 10^-4 of the currency.
    px: u32,
    /// A cross has more than 32 bits.
    shares: u64,
    match_number: u64,
}

impl<I: InstrumentLookup> ItchEventWriter<'_, I> {
    fn message(&mut self, d: &mut ItchDecoder, message: ItchMessage<'_>) -> Result<(), MessageRefusal> {
        match message {
            ItchMessage::AddOrder(m) => {
                let order = ItchOrderState {
                    order: m.order(),
                    px: m.price(),
                    left: m.shares(),
                    done: 0,
                    firm: [0; 4],
                    locate: m.stock_locate(),
                    side: side(m.side()),
                };
                self.write_new_order(d, order, &m.stock())
            }
            ItchMessage::AddOrderMpid(m) => {
                let order = ItchOrderState {
                    order: m.order(),
                    px: m.price(),
                    left: m.shares(),
                    done: 0,
                    firm: m.attribution(),
                    locate: m.stock_locate(),
                    side: side(m.side()),
                };
                self.write_new_order(d, order, &m.stock())
            }
            ItchMessage::OrderExecuted(m) => {
                let execution = OrderExecution {
                    locate: m.stock_locate(),
                    order: m.order(),
                    shares: m.shares(),
                    match_number: m.match_number(),
                };
                self.write_execution(d, execution, None)
            }
            ItchMessage::OrderExecutedPrice(m) => {
                let execution = OrderExecution {
                    locate: m.stock_locate(),
                    order: m.order(),
                    shares: m.shares(),
                    match_number: m.match_number(),
                };
                let print_price = PrintPrice { px: m.price(), printable: m.printable() != b'N' };
                self.write_execution(d, execution, Some(print_price))
            }
            ItchMessage::OrderCancel(m) => {
                some_shares(m.shares())?;
                if d.orders.is_none() {
                    let fields = OrderEventFields { order: m.order(), ..OrderEventFields::default() };
                    return self.write_order(d, EventKind::OrderAmend, &fields, |e| {
                        e.set_shares(EventField::QtyReduced, m.shares().into())
                    });
                }
                let order = d.reduce_order(m.stock_locate(), m.order(), m.shares(), false)?.order;
                match order.left {
                    0 => self.write_order(
                        d,
                        EventKind::OrderCancel,
                        &OrderEventFields::from_order(&order, m.shares()),
                        |_| Ok(()),
                    ),
                    left => self.write_order(
                        d,
                        EventKind::OrderAmend,
                        &OrderEventFields::from_order(&order, order.done + left),
                        |_| Ok(()),
                    ),
                }
            }
            ItchMessage::OrderDelete(m) => {
                let fields = match d.orders {
                    None => OrderEventFields { order: m.order(), ..OrderEventFields::default() },
                    Some(_) => {
                        let order = d.remove_order(m.stock_locate(), m.order())?;
                        OrderEventFields::from_order(&order, order.left)
                    }
                };
                self.write_order(d, EventKind::OrderCancel, &fields, |_| Ok(()))
            }
            ItchMessage::OrderReplace(m) => {
                some_shares(m.shares())?;
                let (old, new) = match d.orders {
                    None => {
                        let (px, shares) = (Some(m.price()), Some(m.shares()));
                        let new_order = OrderEventFields {
                            order: m.new_order(),
                            px,
                            shares,
                            ..OrderEventFields::default()
                        };
                        (OrderEventFields { order: m.order(), ..OrderEventFields::default() }, new_order)
                    }
                    Some(_) => {
                        let (old, new) = d.replace_order(m.stock_locate(), m)?;
                        (
                            OrderEventFields::from_order(&old, old.left),
                            OrderEventFields::from_order(&new, new.left),
                        )
                    }
                };
                self.write_order(d, EventKind::OrderCancel, &old, |_| Ok(()))?;
                self.write_order(d, EventKind::OrderNew, &new, |e| e.keep_number("replaces", m.order()))
            }
            ItchMessage::Trade(m) => {
                some_shares(m.shares())?;
                d.check_stock(m.stock_locate(), &m.stock())?;
                let (px, shares) = (m.price(), m.shares().into());
                let print = PrintFields { px, shares, match_number: m.match_number() };
                self.write_trade(d, &m.stock(), print, |e| {
                    if m.order() != 0 {
                        e.keep_number("order", m.order())?;
                    }
                    if m.side() != b'B' { e.keep_text("resting_side", b"S") } else { Ok(()) }
                })
            }
            ItchMessage::CrossTrade(m) => {
                d.check_stock(m.stock_locate(), &m.stock())?;
                let letter = [m.cross_type()];
                if m.shares() == 0 {
                    return self.write_status(d, Some(&m.stock()), "no_cross", &letter, |_| Ok(()));
                }
                let (px, shares) = (m.price(), m.shares());
                let print = PrintFields { px, shares, match_number: m.match_number() };
                self.write_trade(d, &m.stock(), print, |e| e.set_text(EventField::Cond, &letter))
            }
            other => self.decode_other(d, other),
        }
    }

    /// Decodes messages that do not concern a single order.
    fn decode_other(&mut self, d: &mut ItchDecoder, message: ItchMessage<'_>) -> Result<(), MessageRefusal> {
        match message {
            ItchMessage::SystemEvent(m) => {
                let code = [m.event()];
                if let Some(phase) = d.config.system_event.get(&m.event()).cloned() {
                    self.event(d, EventKind::Session, |e| {
                        e.venue()?.set_text(EventField::Phase, phase.as_bytes())
                    })?;
                }
                self.write_status(d, None, "system", &code, |_| Ok(()))
            }
            ItchMessage::TradingAction(m) => {
                d.check_stock(m.stock_locate(), &m.stock())?;
                if let Some(phase) = d.config.trading_state.get(&m.state()).cloned() {
                    self.event(d, EventKind::Session, |e| {
                        e.venue()?.set_stock(&m.stock())?.set_text(EventField::Phase, phase.as_bytes())
                    })?;
                }
                let state = match m.state() {
                    b'H' => "halted",
                    b'P' => "paused",
                    b'Q' => "quotation",
                    b'T' => "trading",
                    _ => "other",
                };
                self.write_status(d, Some(&m.stock()), state, &m.reason(), |e| {
                    e.keep_letter("trading_state", m.state(), state == "other")
                })
            }
            ItchMessage::OperationalHalt(m) => {
                d.check_stock(m.stock_locate(), &m.stock())?;
                let state = if m.action() == b'T' { "op_trading" } else { "op_halt" };
                self.write_status(d, Some(&m.stock()), state, &[m.market()], |e| {
                    e.keep_letter("action", m.action(), !matches!(m.action(), b'H' | b'T'))
                })
            }
            ItchMessage::RegSho(m) => {
                d.check_stock(m.stock_locate(), &m.stock())?;
                self.write_status(d, Some(&m.stock()), "reg_sho", &[m.action()], |_| Ok(()))
            }
            ItchMessage::ParticipantPosition(m) => {
                d.check_stock(m.stock_locate(), &m.stock())?;
                self.write_status(d, Some(&m.stock()), "participant", &m.mpid(), |e| {
                    e.keep_letter("primary", m.primary(), true)?;
                    e.keep_letter("mode", m.mode(), true)?;
                    e.keep_letter("participant_state", m.state(), true)
                })
            }
            ItchMessage::MwcbLevels(m) => self.write_status(d, None, "mwcb_levels", b"", |e| {
                e.keep_price("level_1", m.level_1(), 8)?;
                e.keep_price("level_2", m.level_2(), 8)?;
                e.keep_price("level_3", m.level_3(), 8)
            }),
            ItchMessage::MwcbStatus(m) => self.write_status(d, None, "mwcb", &[m.breached()], |_| Ok(())),
            ItchMessage::IpoQuoting(m) => {
                d.check_stock(m.stock_locate(), &m.stock())?;
                self.write_status(d, Some(&m.stock()), "ipo_quoting", &[m.qualifier()], |e| {
                    e.keep_number("release_time", m.release_time().into())?;
                    e.keep_price("ipo_price", m.price().into(), 4)
                })
            }
            ItchMessage::RetailInterest(m) => {
                d.check_stock(m.stock_locate(), &m.stock())?;
                self.write_status(d, Some(&m.stock()), "retail", &[m.interest()], |_| Ok(()))
            }
            ItchMessage::BrokenTrade(m) => {
                let stock = d.stocks.symbol(m.stock_locate()).filter(|_| d.orders.is_some());
                let number = m.match_number().to_string();
                self.write_status(d, stock.as_ref(), "trade_broken", number.as_bytes(), |_| Ok(()))
            }
            ItchMessage::LuldCollar(m) => {
                d.check_stock(m.stock_locate(), &m.stock())?;
                self.ref_px(d, &m.stock(), m.reference_price(), "luld", |e| {
                    e.keep_price("upper", m.upper_price().into(), 4)?;
                    e.keep_price("lower", m.lower_price().into(), 4)?;
                    e.keep_number("extension", m.extension().into())
                })
            }
            ItchMessage::Imbalance(m) => {
                d.check_stock(m.stock_locate(), &m.stock())?;
                self.ref_px(d, &m.stock(), m.reference_price(), "noii", |e| {
                    e.keep_number("paired", m.paired_shares())?;
                    e.keep_number("imbalance", m.imbalance_shares())?;
                    e.keep_letter("direction", m.direction(), true)?;
                    e.keep_price("far", m.far_price().into(), 4)?;
                    e.keep_price("near", m.near_price().into(), 4)?;
                    e.keep_letter("cross_type", m.cross_type(), true)?;
                    e.keep_letter("variation", m.variation(), true)
                })
            }
            ItchMessage::DirectListing(m) => {
                d.check_stock(m.stock_locate(), &m.stock())?;
                self.ref_px(d, &m.stock(), m.near_price(), "dlcr", |e| {
                    e.keep_letter("eligible", m.eligible(), true)?;
                    e.keep_price("min", m.min_price().into(), 4)?;
                    e.keep_price("max", m.max_price().into(), 4)?;
                    e.keep_number("near_time", m.near_time())?;
                    e.keep_price("lower", m.lower_price().into(), 4)?;
                    e.keep_price("upper", m.upper_price().into(), 4)
                })
            }
            ItchMessage::StockDirectory(m) => {
                d.check_stock(m.stock_locate(), &m.stock())?;
                let currency = d.config.currency.clone();
                self.event(d, EventKind::Ref, |e| {
                    let e = e.set_stock(&m.stock())?;
                    e.venue_in(EventField::Mic)?;
                    e.set_text(EventField::Symbol, m.stock().trim_ascii_end())?;
                    if let Some(ccy) = &currency {
                        e.set_text(EventField::Ccy, ccy.as_bytes())?;
                    }
                    e.set_shares(EventField::Lot, m.round_lot_size().into())?;
                    if m.luld_tier().is_ascii_digit() {
                        e.set_field(EventField::Tier, EventValue::UInt((m.luld_tier() - b'0').into()))?;
                    }
                    for (name, letter) in [
                        ("market_category", m.market_category()),
                        ("financial_status", m.financial_status()),
                        ("round_lots_only", m.round_lots_only()),
                        ("issue_classification", m.issue_classification()),
                        ("authenticity", m.authenticity()),
                        ("short_sale_threshold", m.short_sale_threshold()),
                        ("ipo_flag", m.ipo_flag()),
                        ("etp_flag", m.etp_flag()),
                        ("inverse", m.inverse()),
                    ] {
                        e.keep_letter(name, letter, true)?;
                    }
                    e.keep_text("issue_sub_type", m.issue_sub_type().trim_ascii_end())?;
                    if m.etp_leverage() != 0 {
                        e.keep_number("etp_leverage", m.etp_leverage().into())?;
                    }
                    Ok(())
                })
            }
            _ => unreachable!("handled above"),
        }
    }

    fn write_new_order(
        &mut self,
        d: &mut ItchDecoder,
        order: ItchOrderState,
        stock: &[u8; 8],
    ) -> Result<(), MessageRefusal> {
        some_shares(order.left)?;
        d.add_order(order, stock)?;
        let fields = OrderEventFields::from_order(&order, order.left);
        self.order_of(d, EventKind::OrderNew, &fields, Some(stock), |_| Ok(()))
    }

    fn write_execution(
        &mut self,
        d: &mut ItchDecoder,
        execution: OrderExecution,
        print_price: Option<PrintPrice>,
    ) -> Result<(), MessageRefusal> {
        let OrderExecution { locate, order, shares, match_number } = execution;
        some_shares(shares)?;
        let liq = if print_price.is_none_or(|price| price.printable) { "A" } else { "X" };
        let fields = match d.orders {
            None => OrderEventFields {
                order,
                px: print_price.map(|price| price.px),
                shares: Some(shares),
                ..OrderEventFields::default()
            },
            Some(_) => {
                let reduced_order = d.reduce_order(locate, order, shares, true)?.order;
                let px = print_price.map_or(reduced_order.px, |price| price.px);
                let shares_left = reduced_order.left;
                let fields =
                    OrderEventFields { px: Some(px), ..OrderEventFields::from_order(&reduced_order, shares) };
                self.write_order(d, EventKind::Exec, &fields, |e| {
                    e.id(EventField::MatchId, match_number)?.set_text(EventField::Liq, liq.as_bytes())?;
                    e.keep_number("left", shares_left.into())
                })?;
                if d.config.emits_prints && liq == "A" {
                    let stock = d.stocks.symbol(locate).expect("an order that lives has a symbol");
                    let print = PrintFields { px, shares: shares.into(), match_number };
                    self.write_trade(d, &stock, print, |e| {
                        // The resting order was hit by one of the other side.
                        e.set_text(EventField::Side, if reduced_order.side == 1 { b"S" } else { b"B" })
                    })?;
                }
                return Ok(());
            }
        };
        self.write_order(d, EventKind::Exec, &fields, |e| {
            e.id(EventField::MatchId, match_number)?.set_text(EventField::Liq, liq.as_bytes())
        })
    }

    fn write_order(
        &mut self,
        d: &ItchDecoder,
        kind: EventKind,
        fields: &OrderEventFields,
        more: impl FnOnce(&mut ItchEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), MessageRefusal> {
        let stock = if d.orders.is_some() { d.stocks.symbol(fields.locate) } else { None };
        self.order_of(d, kind, fields, stock.as_ref(), more)
    }

    fn order_of(
        &mut self,
        d: &ItchDecoder,
        kind: EventKind,
        fields: &OrderEventFields,
        stock: Option<&[u8; 8]>,
        more: impl FnOnce(&mut ItchEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), MessageRefusal> {
        self.event(d, kind, |e| {
            e.venue()?.id(EventField::Oid, fields.order)?;
            if let Some(stock) = stock {
                e.set_stock(stock)?;
            }
            match fields.side {
                1 => e.set_text(EventField::Side, b"B")?,
                2 => e.set_text(EventField::Side, b"S")?,
                _ => {}
            }
            if let Some(px) = fields.px {
                e.price(px)?;
            }
            if let Some(shares) = fields.shares {
                e.set_shares(EventField::Qty, shares.into())?;
            }
            if fields.firm != [0; 4] && !fields.firm.trim_ascii_end().is_empty() {
                e.set_text(EventField::Firm, fields.firm.trim_ascii_end())?;
            }
            if kind == EventKind::OrderNew {
                e.set_text(EventField::Type, b"limit")?;
            }
            more(e)
        })
    }

    fn write_trade(
        &mut self,
        d: &ItchDecoder,
        stock: &[u8; 8],
        print: PrintFields,
        more: impl FnOnce(&mut ItchEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), MessageRefusal> {
        self.event(d, EventKind::Trade, |e| {
            e.venue()?.set_stock(stock)?.price(print.px)?;
            e.set_shares(EventField::Qty, print.shares)?;
            e.id(EventField::MatchId, print.match_number)?;
            more(e)
        })
    }

    fn write_status(
        &mut self,
        d: &ItchDecoder,
        stock: Option<&[u8; 8]>,
        state: &str,
        reason: &[u8],
        more: impl FnOnce(&mut ItchEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), MessageRefusal> {
        self.event(d, EventKind::Status, |e| {
            e.venue()?;
            if let Some(stock) = stock {
                e.set_stock(stock)?;
            }
            e.set_text(EventField::State, state.as_bytes())?;
            if !reason.trim_ascii_end().is_empty() {
                e.set_text(EventField::Reason, reason.trim_ascii_end())?;
            }
            more(e)
        })
    }

    fn ref_px(
        &mut self,
        d: &ItchDecoder,
        stock: &[u8; 8],
        px: u32,
        source: &str,
        more: impl FnOnce(&mut ItchEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), MessageRefusal> {
        self.event(d, EventKind::RefPx, |e| {
            e.set_stock(stock)?.price(px)?;
            e.set_text(EventField::Source, source.as_bytes())?;
            more(e)
        })
    }

    fn event(
        &mut self,
        d: &ItchDecoder,
        kind: EventKind,
        fill: impl FnOnce(&mut ItchEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), MessageRefusal> {
        let frame_start = self.block.arena.len();
        let (arena, names) = self.block.builder(self.dictionary);
        let mut event = EventBuilder::begin(arena, kind, self.ts);
        event.source(self.origin.source, self.origin.offset as u32);
        if let Some(sequence) = self.origin.sequence {
            event.sequence(sequence);
        }
        let mut draft = ItchEventDraft {
            event,
            names,
            instrument_lookup: &mut *self.instrument_lookup,
            config: &d.config,
            field: EventField::Instr,
        };
        let fill_outcome = fill(&mut draft);
        let (field, event) = (draft.field, draft.event);
        let into_refusal = |refusal: Refusal| MessageRefusal {
            code: refusal.code(),
            detail: format!("{}: {refusal}", field.name()),
        };
        fill_outcome.map_err(into_refusal)?;
        event.finish(0).map_err(into_refusal)?;
        (self.count, self.last_start) = (self.count + 1, frame_start);
        Ok(())
    }
}

/// The current event.
struct ItchEventDraft<'e, I> {
    event: EventBuilder<'e>,
    names: BlockNameResolver<'e>,
    instrument_lookup: &'e mut I,
    config: &'e CheckedItchConfig,
    /// The current field, for errors.
    field: EventField,
}

type DraftResult<'m, 'e, I> = Result<&'m mut ItchEventDraft<'e, I>, Refusal>;

impl<'e, I: InstrumentLookup> ItchEventDraft<'e, I> {
    fn set_field(&mut self, field: EventField, value: EventValue<'_>) -> Result<(), Refusal> {
        self.field = field;
        self.event.set_field(field, value)
    }

    fn set_text(&mut self, field: EventField, text: &[u8]) -> Result<(), Refusal> {
        self.field = field;
        let spec = self.event.schema().get(field).expect("a field of the kind");
        self.event.set_text(spec, text, &mut self.instrument_lookup.resolver(&mut self.names))
    }

    fn venue(&mut self) -> DraftResult<'_, 'e, I> {
        self.venue_in(EventField::Venue)?;
        Ok(self)
    }

    fn venue_in(&mut self, field: EventField) -> Result<(), Refusal> {
        let venue = self.config.venue.as_bytes();
        self.set_text(field, venue)
    }

    fn set_stock(&mut self, stock: &[u8; 8]) -> DraftResult<'_, 'e, I> {
        let mut name = stock.trim_ascii_end().to_vec();
        name.extend_from_slice(self.config.symbol_suffix.as_bytes());
        self.set_text(EventField::Instr, &name)?;
        Ok(self)
    }

    fn price(&mut self, units: u32) -> Result<(), Refusal> {
        self.set_field(EventField::Px, EventValue::Price(Price(i64::from(units) * PRICE_UNIT)))
    }

    fn set_shares(&mut self, field: EventField, shares: u64) -> Result<(), Refusal> {
        self.field = field;
        let shares =
            i64::try_from(shares).map_err(|_| Refusal::from(unitape_model::NumberFault::DoesNotFit))?;
        self.set_field(field, EventValue::Decimal(Decimal::from_int(shares)))
    }

    fn id(&mut self, field: EventField, id: u64) -> DraftResult<'_, 'e, I> {
        self.set_field(field, EventValue::Id(InlineId::Number(id)))?;
        Ok(self)
    }

    fn keep_number(&mut self, name: &str, number: u64) -> Result<(), Refusal> {
        self.event.keep_unmapped(name, &number.to_string())
    }

    fn keep_text(&mut self, name: &str, text: &[u8]) -> Result<(), Refusal> {
        if text.is_empty() { Ok(()) } else { self.event.keep_unmapped(name, &json_string(text)) }
    }

    /// Keeps a letter if `wanted`, unless it is a blank.
    fn keep_letter(&mut self, name: &str, letter: u8, wanted: bool) -> Result<(), Refusal> {
        if wanted && letter != b' ' { self.keep_text(name, &[letter]) } else { Ok(()) }
    }

    fn keep_price(&mut self, name: &str, units: u64, places: u32) -> Result<(), Refusal> {
        let mut text = Vec::new();
        price(&mut text, units, places);
        self.keep_text(name, &text)
    }
}

/// 1/10,000 in units of a price.
pub(super) const PRICE_UNIT: i64 = 100_000;

/// Converts a letter to a side: 1 buy, 2 sell, 0 neither.
#[inline]
pub(super) fn side(letter: u8) -> u8 {
    // Neither can be guessed.
    u8::from(letter == b'B') | u8::from(letter == b'S') << 1
}

fn some_shares(shares: u32) -> Result<(), MessageRefusal> {
    match shares {
        0 => Err(MessageRefusal { code: "bad_quantity", detail: "no shares".to_owned() }),
        _ => Ok(()),
    }
}
