//! Messages to events.
//!
//! | message | events |
//! |---|---|
//! | `Q` | `bbo` |
//! | `8` `5` | `level`: `U` with the shares at the price now, `D` when there are none |
//! | `T` | `trade` |
//! | `B` | `trade` with the action `cancel` |
//! | `a` | `order_new` |
//! | `M` | `order_amend`; `order_cancel` and `order_new` where the order loses its priority |
//! | `R` | `order_cancel` |
//! | `L` | `exec`, and `trade` where the mapping wants prints |
//! | `C` | `status` `restarted`, which empties the books of the listing |
//! | `S` `H` | `status`, and `session` where the mapping has a phase for the code |
//! | `D` | `ref` |
//! | `X` `A` | `ref_px` |
//! | others | `status` |

use super::config::CheckedIexConfig;
use super::orders::{IexOrder, IexOrderKey};
use super::{DecodeContext, IexChannel, IexMessageInput};
use crate::block::json::json_string;
use crate::block::{Block, BlockNameResolver};
use crate::mapping::MessageRefusal;
use crate::reference::InstrumentLookup;
use unitape_codec::iex::{AuctionInformation, IexMessage, PRICE_PLACES, SecurityDirectory, symbol_name};
use unitape_codec::itch::price;
use unitape_model::event::EventValue;
use unitape_model::{
    Decimal, EventBuilder, EventField, EventKind, FrameHeader, InlineId, NumberFault, Price, Refusal,
    UnixNanos, flags,
};

/// The settings of the feed, and the state of the message's channel.
pub(super) struct FeedState<'s> {
    pub config: &'s CheckedIexConfig,
    pub channel: &'s mut IexChannel,
}

/// Writes the events of a message that was checked. Returns their time and how many they are.
///
/// # Errors
/// Fails if the message is refused; the caller must then drop what was written.
pub(super) fn write_events<I: InstrumentLookup>(
    state: FeedState<'_>,
    block: &mut Block,
    message: IexMessage<'_>,
    input: &IexMessageInput<'_>,
    context: &mut DecodeContext<'_, I>,
) -> Result<(UnixNanos, u32), MessageRefusal> {
    let FeedState { config, channel } = state;
    check_price(message)?;
    let ts = UnixNanos(message.timestamp());
    context.instruments.set_event(Some(config.venue.as_bytes()), ts);
    let mut writer =
        IexEventWriter { config, block, message_input: input, context, ts, count: 0, last_start: 0 };
    if channel.restarted {
        let session = channel.sequence.last_session().to_string();
        writer.write_status(None, "restarted", session.as_bytes(), |_| Ok(()))?;
    }
    writer.message(channel, message)?;
    channel.restarted = false;
    let IexEventWriter { block, count, last_start: last, .. } = writer;
    let header = FrameHeader::read(&block.arena[last..]);
    header.with_flags(flags::LAST).write(&mut block.arena[last..]);
    Ok((ts, count))
}

/// Returns whether the message may change a book.
pub(super) fn changes_books(message: IexMessage<'_>) -> bool {
    matches!(
        message,
        IexMessage::QuoteUpdate(_)
            | IexMessage::PriceLevelBuy(_)
            | IexMessage::PriceLevelSell(_)
            | IexMessage::AddOrder(_)
            | IexMessage::OrderModify(_)
            | IexMessage::OrderDelete(_)
            | IexMessage::OrderExecuted(_)
            | IexMessage::ClearBook(_)
            | IexMessage::SystemEvent(_)
            | IexMessage::TradingStatus(_)
    )
}

/// The destination of a message's events.
struct IexEventWriter<'o, 'k, I> {
    config: &'o CheckedIexConfig,
    block: &'o mut Block,
    message_input: &'o IexMessageInput<'o>,
    context: &'o mut DecodeContext<'k, I>,
    ts: UnixNanos,
    count: u32,
    /// Start of the last event.
    last_start: usize,
}

/// A level of one side.
#[derive(Clone, Copy)]
struct LevelFields<'m> {
    side: &'static [u8],
    flags: u8,
    symbol: &'m [u8; 8],
    size: u32,
    price: i64,
}

/// The fields of a print.
#[derive(Clone, Copy)]
struct PrintFields<'m> {
    symbol: &'m [u8; 8],
    flags: u8,
    size: u32,
    price: i64,
    trade_id: u64,
}

impl<I: InstrumentLookup> IexEventWriter<'_, '_, I> {
    fn message(&mut self, channel: &mut IexChannel, message: IexMessage<'_>) -> Result<(), MessageRefusal> {
        match message {
            IexMessage::QuoteUpdate(m) => self.event(EventKind::Bbo, |e| {
                e.venue()?.set_symbol(&m.symbol())?;
                let sides = [
                    (m.bid_price(), m.bid_size(), EventField::Bid, EventField::BidQty),
                    (m.ask_price(), m.ask_size(), EventField::Ask, EventField::AskQty),
                ];
                for (units, shares, price_field, size_field) in sides {
                    // A side that was withdrawn has neither price nor size.
                    if units != 0 || shares != 0 {
                        e.price_of(price_field, units)?;
                        e.set_shares(size_field, shares.into())?;
                    }
                }
                e.keep_flag("unavailable", m.flags() & QUOTE_UNAVAILABLE != 0)?;
                e.keep_flag("extended_hours", m.flags() & QUOTE_EXTENDED_HOURS != 0)
            }),
            IexMessage::PriceLevelBuy(m) => self.write_level(LevelFields {
                side: b"B",
                flags: m.flags(),
                symbol: &m.symbol(),
                size: m.size(),
                price: m.price(),
            }),
            IexMessage::PriceLevelSell(m) => self.write_level(LevelFields {
                side: b"S",
                flags: m.flags(),
                symbol: &m.symbol(),
                size: m.size(),
                price: m.price(),
            }),
            IexMessage::Trade(m) => {
                some_shares(m.size())?;
                let print = PrintFields {
                    symbol: &m.symbol(),
                    flags: m.flags(),
                    size: m.size(),
                    price: m.price(),
                    trade_id: m.trade_id(),
                };
                self.write_trade(print, |_| Ok(()))
            }
            IexMessage::TradeBreak(m) => {
                let print = PrintFields {
                    symbol: &m.symbol(),
                    flags: m.flags(),
                    size: m.size(),
                    price: m.price(),
                    trade_id: m.trade_id(),
                };
                self.write_trade(print, |e| e.set_text(EventField::Action, b"cancel"))
            }
            IexMessage::AddOrder(m) => {
                some_shares(m.size())?;
                let (symbol, order) = (m.symbol(), m.order());
                let added = IexOrder {
                    side: m.side(),
                    price: m.price(),
                    remaining_shares: m.size(),
                    executed_shares: 0,
                };
                channel.orders.add_order(IexOrderKey { symbol: &symbol, order }, added)?;
                self.order_new(IexOrderKey { symbol: &symbol, order }, added, |_| Ok(()))
            }
            IexMessage::OrderModify(m) => {
                some_shares(m.size())?;
                let (symbol, order, size, price) = (m.symbol(), m.order(), m.size(), m.price());
                let key = IexOrderKey { symbol: &symbol, order };
                let keeps_priority = m.flags() & MODIFY_KEEPS_PRIORITY != 0;
                let order_before = channel.orders.modify_order(key, |order| {
                    (order.remaining_shares, order.price) = (size, price);
                    if !keeps_priority {
                        order.executed_shares = 0;
                    }
                })?;
                let after = IexOrder { remaining_shares: size, price, ..order_before };
                if keeps_priority {
                    let shares = after.executed_shares + u64::from(size);
                    return self.write_order(EventKind::OrderAmend, key, after, |e| {
                        e.set_shares(EventField::Qty, shares)
                    });
                }
                self.write_order(EventKind::OrderCancel, key, order_before, |e| {
                    e.set_shares(EventField::Qty, order_before.remaining_shares.into())?;
                    e.set_text(EventField::Reason, PRIORITY_RESET)
                })?;
                let new_order = IexOrder { executed_shares: 0, ..after };
                self.order_new(key, new_order, |e| e.set_text(EventField::Reason, PRIORITY_RESET))
            }
            IexMessage::OrderDelete(m) => {
                let key = IexOrderKey { symbol: &m.symbol(), order: m.order() };
                let removed = channel.orders.remove(key)?;
                self.write_order(EventKind::OrderCancel, key, removed, |e| {
                    e.set_shares(EventField::Qty, removed.remaining_shares.into())
                })
            }
            IexMessage::OrderExecuted(m) => {
                some_shares(m.size())?;
                let (symbol, size) = (m.symbol(), m.size());
                let key = IexOrderKey { symbol: &symbol, order: m.order() };
                let after = channel.orders.execute_order(key, size)?;
                let print = PrintFields {
                    symbol: &symbol,
                    flags: m.flags(),
                    size,
                    price: m.price(),
                    trade_id: m.trade_id(),
                };
                let at_price = IexOrder { price: print.price, ..after };
                let is_cross = print.flags & SALE_CROSS != 0;
                self.write_order(EventKind::Exec, key, at_price, |e| {
                    e.id(EventField::MatchId, print.trade_id)?;
                    e.set_shares(EventField::Qty, size.into())?;
                    e.set_text(EventField::Liq, if is_cross { b"X" } else { b"A" })?;
                    e.sale_conditions(print.flags)?;
                    e.keep_number("left", after.remaining_shares.into())
                })?;
                if self.config.emits_prints {
                    // The resting order was hit by one of the other side.
                    let side: &[u8] = if after.side == b'8' { b"S" } else { b"B" };
                    self.write_trade(print, |e| e.set_text(EventField::Side, side))?;
                }
                Ok(())
            }
            IexMessage::ClearBook(m) => {
                let orders = channel.orders.clear(&m.symbol());
                self.write_status(Some(&m.symbol()), "restarted", b"clear_book", |e| {
                    e.keep_number("orders", orders as u64)
                })
            }
            other => self.write_administrative(other),
        }
    }

    /// Messages about the market, a security or an auction.
    fn write_administrative(&mut self, message: IexMessage<'_>) -> Result<(), MessageRefusal> {
        match message {
            IexMessage::SystemEvent(m) => {
                if let Some(phase) = self.config.system_event.get(&m.event()) {
                    self.event(EventKind::Session, |e| {
                        e.venue()?.set_text(EventField::Phase, phase.as_bytes())
                    })?;
                }
                self.write_status(None, "system", &[m.event()], |_| Ok(()))
            }
            IexMessage::TradingStatus(m) => {
                if let Some(phase) = self.config.trading_status.get(&m.status()) {
                    self.event(EventKind::Session, |e| {
                        e.venue()?.set_symbol(&m.symbol())?.set_text(EventField::Phase, phase.as_bytes())
                    })?;
                }
                let state = match m.status() {
                    b'H' => "halted",
                    b'O' => "order_acceptance",
                    b'P' => "paused",
                    b'T' => "trading",
                    _ => "other",
                };
                self.write_status(Some(&m.symbol()), state, &m.reason(), |e| {
                    if state == "other" { e.keep_letter("trading_status", m.status()) } else { Ok(()) }
                })
            }
            IexMessage::RetailLiquidity(m) => {
                self.write_status(Some(&m.symbol()), "retail", &[m.indicator()], |_| Ok(()))
            }
            IexMessage::OperationalHalt(m) => {
                let state = if m.status() == b'N' { "op_trading" } else { "op_halt" };
                self.write_status(Some(&m.symbol()), state, b"", |e| match m.status() {
                    b'N' | b'O' => Ok(()),
                    other => e.keep_letter("operational_status", other),
                })
            }
            IexMessage::ShortSalePriceTest(m) => {
                let status = m.status().to_string();
                self.write_status(Some(&m.symbol()), "reg_sho", status.as_bytes(), |e| {
                    e.keep_letter("short_sale_detail", m.detail())
                })
            }
            IexMessage::SecurityEvent(m) => {
                let state = match m.event() {
                    b'O' => "opening_complete",
                    b'C' => "closing_complete",
                    _ => "security_event",
                };
                self.write_status(Some(&m.symbol()), state, &[m.event()], |_| Ok(()))
            }
            IexMessage::OfficialPrice(m) => {
                let source = match m.price_type() {
                    b'Q' => "official_open",
                    b'M' => "official_close",
                    _ => "official",
                };
                self.reference_price(&m.symbol(), m.price(), source, |e| match source {
                    "official" => e.keep_letter("price_type", m.price_type()),
                    _ => Ok(()),
                })
            }
            IexMessage::AuctionInformation(m) => self.write_auction(m),
            IexMessage::SecurityDirectory(m) => self.write_directory(m),
            _ => unreachable!("handled above"),
        }
    }

    fn write_auction(&mut self, m: AuctionInformation<'_>) -> Result<(), MessageRefusal> {
        self.reference_price(&m.symbol(), m.reference_price(), "auction", |e| {
            e.keep_letter("auction_type", m.auction_type())?;
            e.keep_number("paired", m.paired_shares().into())?;
            e.keep_number("imbalance", m.imbalance_shares().into())?;
            e.keep_letter("imbalance_side", m.imbalance_side())?;
            e.keep_number("extension", m.extension_number().into())?;
            e.keep_number("scheduled_time", m.scheduled_auction_time().into())?;
            e.keep_price("indicative", m.indicative_clearing_price())?;
            e.keep_price("book_clearing", m.auction_book_clearing_price())?;
            e.keep_price("collar_reference", m.collar_reference_price())?;
            e.keep_price("lower", m.lower_auction_collar())?;
            e.keep_price("upper", m.upper_auction_collar())
        })
    }

    fn write_directory(&mut self, m: SecurityDirectory<'_>) -> Result<(), MessageRefusal> {
        let symbol = m.symbol();
        self.event(EventKind::Ref, |e| {
            e.set_symbol(&symbol)?.venue_in(EventField::Mic)?;
            e.set_text(EventField::Symbol, symbol_name(&symbol))?;
            if let Some(currency) = &e.config.currency {
                e.set_text(EventField::Ccy, currency.as_bytes())?;
            }
            e.set_shares(EventField::Lot, m.round_lot_size().into())?;
            if m.luld_tier() != 0 {
                e.set_field(EventField::Tier, EventValue::UInt(m.luld_tier().into()))?;
            }
            if m.adjusted_poc_price() != 0 {
                e.price_of(EventField::PrevClose, m.adjusted_poc_price())?;
            }
            e.keep_flag("test_security", m.flags() & DIRECTORY_TEST != 0)?;
            e.keep_flag("when_issued", m.flags() & DIRECTORY_WHEN_ISSUED != 0)?;
            e.keep_flag("etp", m.flags() & DIRECTORY_ETP != 0)
        })
    }

    fn write_level(&mut self, level: LevelFields<'_>) -> Result<(), MessageRefusal> {
        self.event(EventKind::Level, |e| {
            e.venue()?.set_symbol(level.symbol)?;
            e.set_text(EventField::Side, level.side)?;
            e.set_text(EventField::Action, if level.size == 0 { b"D" } else { b"U" })?;
            e.price_of(EventField::Px, level.price)?;
            e.set_shares(EventField::Qty, level.size.into())?;
            // Between the levels of one event the book is one that never was.
            e.keep_flag("event_incomplete", level.flags & LEVEL_EVENT_COMPLETE == 0)
        })
    }

    fn order_new(
        &mut self,
        key: IexOrderKey<'_>,
        order: IexOrder,
        more: impl FnOnce(&mut IexEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), MessageRefusal> {
        self.write_order(EventKind::OrderNew, key, order, |e| {
            e.set_shares(EventField::Qty, order.remaining_shares.into())?;
            e.set_text(EventField::Type, b"limit")?;
            more(e)
        })
    }

    fn write_order(
        &mut self,
        kind: EventKind,
        key: IexOrderKey<'_>,
        order: IexOrder,
        more: impl FnOnce(&mut IexEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), MessageRefusal> {
        self.event(kind, |e| {
            e.venue()?.set_symbol(key.symbol)?.id(EventField::Oid, key.order)?;
            e.set_text(EventField::Side, if order.side == b'8' { b"B" } else { b"S" })?;
            e.price_of(EventField::Px, order.price)?;
            more(e)
        })
    }

    fn write_trade(
        &mut self,
        print: PrintFields<'_>,
        more: impl FnOnce(&mut IexEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), MessageRefusal> {
        self.event(EventKind::Trade, |e| {
            e.venue()?.set_symbol(print.symbol)?.id(EventField::MatchId, print.trade_id)?;
            e.price_of(EventField::Px, print.price)?;
            e.set_shares(EventField::Qty, print.size.into())?;
            e.sale_conditions(print.flags)?;
            more(e)
        })
    }

    fn write_status(
        &mut self,
        symbol: Option<&[u8; 8]>,
        state: &str,
        reason: &[u8],
        more: impl FnOnce(&mut IexEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), MessageRefusal> {
        self.event(EventKind::Status, |e| {
            e.venue()?;
            if let Some(symbol) = symbol {
                e.set_symbol(symbol)?;
            }
            e.set_text(EventField::State, state.as_bytes())?;
            if !reason.trim_ascii_end().is_empty() {
                e.set_text(EventField::Reason, reason.trim_ascii_end())?;
            }
            more(e)
        })
    }

    fn reference_price(
        &mut self,
        symbol: &[u8; 8],
        units: i64,
        source: &str,
        more: impl FnOnce(&mut IexEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), MessageRefusal> {
        self.event(EventKind::RefPx, |e| {
            e.set_symbol(symbol)?.price_of(EventField::Px, units)?;
            e.set_text(EventField::Source, source.as_bytes())?;
            more(e)
        })
    }

    fn event(
        &mut self,
        kind: EventKind,
        fill: impl FnOnce(&mut IexEventDraft<'_, I>) -> Result<(), Refusal>,
    ) -> Result<(), MessageRefusal> {
        let frame_start = self.block.arena.len();
        let (arena, names) = self.block.builder(self.context.dictionary);
        let mut event = EventBuilder::begin(arena, kind, self.ts);
        event.source(self.message_input.source, self.message_input.offset as u32);
        event.sequence(self.message_input.sequence);
        let instruments = &mut *self.context.instruments;
        let mut draft =
            IexEventDraft { event, names, instruments, config: self.config, field: EventField::Instr };
        let fill_result = fill(&mut draft);
        let (field, event) = (draft.field, draft.event);
        let refused = |refusal: Refusal| MessageRefusal {
            code: refusal.code(),
            detail: format!("{}: {refusal}", field.name()),
        };
        fill_result.map_err(refused)?;
        event.finish(0).map_err(refused)?;
        (self.count, self.last_start) = (self.count + 1, frame_start);
        Ok(())
    }
}

/// The current event.
struct IexEventDraft<'e, I> {
    event: EventBuilder<'e>,
    names: BlockNameResolver<'e>,
    instruments: &'e mut I,
    config: &'e CheckedIexConfig,
    /// The current field, for errors.
    field: EventField,
}

type DraftResult<'m, 'e, I> = Result<&'m mut IexEventDraft<'e, I>, Refusal>;

impl<'e, I: InstrumentLookup> IexEventDraft<'e, I> {
    fn set_field(&mut self, field: EventField, value: EventValue<'_>) -> Result<(), Refusal> {
        self.field = field;
        self.event.set_field(field, value)
    }

    fn set_text(&mut self, field: EventField, text: &[u8]) -> Result<(), Refusal> {
        self.field = field;
        let spec = self.event.schema().get(field).expect("a field of the kind");
        self.event.set_text(spec, text, &mut self.instruments.resolver(&mut self.names))
    }

    fn venue(&mut self) -> DraftResult<'_, 'e, I> {
        self.venue_in(EventField::Venue)?;
        Ok(self)
    }

    fn venue_in(&mut self, field: EventField) -> Result<(), Refusal> {
        let venue = self.config.venue.as_bytes();
        self.set_text(field, venue)
    }

    fn set_symbol(&mut self, symbol: &[u8; 8]) -> DraftResult<'_, 'e, I> {
        let suffix = self.config.symbol_suffix.as_bytes();
        match suffix.is_empty() {
            true => self.set_text(EventField::Instr, symbol_name(symbol))?,
            false => self.set_text(EventField::Instr, &[symbol_name(symbol), suffix].concat())?,
        }
        Ok(self)
    }

    /// Sets a price that is stated in 1/10,000.
    fn price_of(&mut self, field: EventField, units: i64) -> Result<(), Refusal> {
        self.field = field;
        let price = units.checked_mul(PRICE_UNIT).ok_or(Refusal::from(NumberFault::DoesNotFit))?;
        self.set_field(field, EventValue::Price(Price(price)))
    }

    fn set_shares(&mut self, field: EventField, shares: u64) -> Result<(), Refusal> {
        self.field = field;
        let shares = i64::try_from(shares).map_err(|_| Refusal::from(NumberFault::DoesNotFit))?;
        self.set_field(field, EventValue::Decimal(Decimal::from_int(shares)))
    }

    fn id(&mut self, field: EventField, id: u64) -> DraftResult<'_, 'e, I> {
        self.set_field(field, EventValue::Id(InlineId::Number(id)))?;
        Ok(self)
    }

    /// Sets the letters of the sale conditions, as the specifications name them, and their meaning for the print.
    fn sale_conditions(&mut self, flags: u8) -> Result<(), Refusal> {
        let conditions = [
            (SALE_SWEEP, b'F'),
            (SALE_EXTENDED_HOURS, b'T'),
            (SALE_ODD_LOT, b'I'),
            (SALE_EXEMPT, b'8'),
            (SALE_CROSS, b'X'),
        ];
        let letters: Vec<u8> =
            conditions.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, letter)| *letter).collect();
        if letters.is_empty() {
            return Ok(());
        }
        self.set_text(EventField::Cond, &letters)?;
        // An odd lot and a trade of extended hours are not eligible for the last sale.
        let words = [
            (SALE_CROSS, "auction"),
            (SALE_SWEEP, "iso"),
            (SALE_EXEMPT, "exempt"),
            (SALE_ODD_LOT | SALE_EXTENDED_HOURS, "no_last"),
        ];
        let words: Vec<&str> =
            words.iter().filter(|(bits, _)| flags & bits != 0).map(|(_, word)| *word).collect();
        self.set_text(EventField::TradeFlags, words.join("+").as_bytes())
    }

    fn keep_number(&mut self, name: &str, number: u64) -> Result<(), Refusal> {
        self.event.keep_unmapped(name, &number.to_string())
    }

    /// Keeps a flag that is set.
    fn keep_flag(&mut self, name: &str, is_set: bool) -> Result<(), Refusal> {
        if is_set { self.event.keep_unmapped(name, "true") } else { Ok(()) }
    }

    /// Keeps a letter, unless it is a blank.
    fn keep_letter(&mut self, name: &str, letter: u8) -> Result<(), Refusal> {
        if letter == b' ' { Ok(()) } else { self.event.keep_unmapped(name, &json_string(&[letter])) }
    }

    fn keep_price(&mut self, name: &str, units: i64) -> Result<(), Refusal> {
        let mut text = if units < 0 { b"-".to_vec() } else { Vec::new() };
        price(&mut text, units.unsigned_abs(), PRICE_PLACES);
        self.event.keep_unmapped(name, &json_string(&text))
    }
}

/// 1/10,000 in units of a price.
const PRICE_UNIT: i64 = 100_000;

/// The reason of the events of an order that loses its priority.
const PRIORITY_RESET: &[u8] = b"priority_reset";

const SALE_SWEEP: u8 = 0x80;
const SALE_EXTENDED_HOURS: u8 = 0x40;
const SALE_ODD_LOT: u8 = 0x20;
const SALE_EXEMPT: u8 = 0x10;
const SALE_CROSS: u8 = 0x08;
const QUOTE_UNAVAILABLE: u8 = 0x80;
const QUOTE_EXTENDED_HOURS: u8 = 0x40;
const DIRECTORY_TEST: u8 = 0x80;
const DIRECTORY_WHEN_ISSUED: u8 = 0x40;
const DIRECTORY_ETP: u8 = 0x20;
const LEVEL_EVENT_COMPLETE: u8 = 0x01;
const MODIFY_KEEPS_PRIORITY: u8 = 0x01;

/// Checks that the price of an order fits an event: a refused message must not change the orders.
fn check_price(message: IexMessage<'_>) -> Result<(), MessageRefusal> {
    let price_units = match message {
        IexMessage::AddOrder(m) => m.price(),
        IexMessage::OrderModify(m) => m.price(),
        IexMessage::OrderExecuted(m) => m.price(),
        _ => return Ok(()),
    };
    match price_units.checked_mul(PRICE_UNIT) {
        Some(_) => Ok(()),
        None => {
            let refusal = Refusal::from(NumberFault::DoesNotFit);
            Err(MessageRefusal { code: refusal.code(), detail: format!("px: {refusal}") })
        }
    }
}

fn some_shares(shares: u32) -> Result<(), MessageRefusal> {
    match shares {
        0 => Err(MessageRefusal { code: "bad_quantity", detail: "no shares".to_owned() }),
        _ => Ok(()),
    }
}
