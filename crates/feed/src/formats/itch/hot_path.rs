//! The frequent messages one by one, as images with the values put in.
//!
//! The hot path leaves all it cannot handle to `general_path`, and has changed nothing then: a name without an id, a
//! reference of more than 56 bits, anything refused.

use super::general_path::side;
use super::image::{
    LIQ_ADDED, MATCH_ID, OID, PrototypeFrame, event_time, fits_number, put_number, put_reduction,
    with_extension, without_last,
};
use super::orders::ItchOrderState;
use super::{ItchDecoder, ItchMessageOrigin};
use crate::block::{Block, BlockMessageKind};
use unitape_codec::itch::ItchMessage;
use unitape_model::schema::at;
use unitape_model::{InstrumentId, UnixNanos, flags};

impl ItchDecoder {
    /// Writes the events of a frequent message; false, and nothing has happened, when it is not one or not plain.
    #[inline]
    pub(super) fn write_frequent(
        &mut self,
        block: &mut Block,
        message: ItchMessage<'_>,
        origin: ItchMessageOrigin,
    ) -> bool {
        match self.orders {
            None => self.write_stateless(block, message, origin),
            Some(_) => self.write_with_orders(block, message, origin),
        }
    }

    /// Writes the event of a message that depends on no order. Returns false if the message needs the general path.
    #[inline]
    fn write_stateless(
        &mut self,
        block: &mut Block,
        message: ItchMessage<'_>,
        origin: ItchMessageOrigin,
    ) -> bool {
        let arena = &mut block.arena;
        macro_rules! when {
            ($m:expr, $($ok:expr),*) => {{
                let Some(ts) = event_time($m.timestamp(), &origin) else { return false };
                if !($($ok &&)* true) {
                    return false;
                }
                ts
            }};
        }
        let ts = match message {
            ItchMessage::AddOrder(m) => {
                let (id, side) = (self.stocks.id(m.stock_locate(), &m.stock()), side(m.side()));
                let ts =
                    when!(m, id != InstrumentId::NONE, side != 0, fits_number(m.order()), m.shares() != 0);
                let mut f = PrototypeFrame::append_frame(arena, &self.images.order_new, ts, &origin);
                f.instrument(id);
                f.0[at::KIND_A] = side;
                f.price(m.price());
                f.set_shares(m.shares());
                f.id(OID, m.order());
                ts
            }
            ItchMessage::AddOrderMpid(m) => {
                let (id, side) = (self.stocks.id(m.stock_locate(), &m.stock()), side(m.side()));
                let firm = self.firms.id(&m.attribution());
                let has_firm = firm.is_some_and(|f| f != 0);
                let ts = when!(
                    m,
                    id != InstrumentId::NONE,
                    side != 0,
                    has_firm,
                    fits_number(m.order()),
                    m.shares() != 0
                );
                let mut f = PrototypeFrame::append_frame(arena, &self.images.order_new, ts, &origin);
                f.instrument(id);
                f.0[at::KIND_A] = side;
                f.price(m.price());
                f.set_shares(m.shares());
                f.set_firm(firm.unwrap_or(0));
                f.id(OID, m.order());
                ts
            }
            ItchMessage::OrderDelete(m) => {
                let ts = when!(m, fits_number(m.order()));
                PrototypeFrame::append_frame(arena, &self.images.order_cancel, ts, &origin)
                    .id(OID, m.order());
                ts
            }
            ItchMessage::OrderExecuted(m) => {
                let ts = when!(m, fits_number(m.order()), fits_number(m.match_number()), m.shares() != 0);
                let mut f = PrototypeFrame::append_frame(arena, &self.images.execution_frame, ts, &origin);
                f.set_shares(m.shares());
                f.0[at::KIND_A] = LIQ_ADDED;
                f.id(OID, m.order());
                f.id(MATCH_ID, m.match_number());
                ts
            }
            ItchMessage::OrderCancel(m) => {
                let ts = when!(m, fits_number(m.order()), m.shares() != 0);
                let mut f = PrototypeFrame::append_frame(arena, &self.images.order_amend, ts, &origin);
                f.id(OID, m.order());
                f.header(|h| with_extension(h, flags::LAST));
                put_reduction(arena, m.shares());
                ts
            }
            ItchMessage::OrderReplace(m) => {
                let ts = when!(m, fits_number(m.order()), fits_number(m.new_order()), m.shares() != 0);
                let mut f = PrototypeFrame::append_frame(arena, &self.images.order_cancel, ts, &origin);
                f.id(OID, m.order());
                f.header(without_last);
                let mut f = PrototypeFrame::append_frame(arena, &self.images.order_new, ts, &origin);
                f.price(m.price());
                f.set_shares(m.shares());
                f.id(OID, m.new_order());
                f.header(|h| with_extension(h, flags::LAST));
                put_number(arena, b"replaces", m.order());
                block.end_resolved(origin.span(), ts, 2, BlockMessageKind::Events);
                return true;
            }
            ItchMessage::Trade(m) => {
                let id = self.stocks.id(m.stock_locate(), &m.stock());
                let is_simple = m.order() == 0 && m.side() == b'B' && m.shares() != 0;
                let ts = when!(m, id != InstrumentId::NONE, is_simple, fits_number(m.match_number()));
                let mut f = PrototypeFrame::append_frame(arena, &self.images.trade, ts, &origin);
                f.print(id, m.price(), m.shares(), m.match_number());
                ts
            }
            _ => return false,
        };
        block.end_resolved(origin.span(), ts, 1, BlockMessageKind::Events);
        true
    }

    /// Writes the event of a message about a known order. Returns false if the message needs the general path.
    #[inline]
    fn write_with_orders(
        &mut self,
        block: &mut Block,
        message: ItchMessage<'_>,
        origin: ItchMessageOrigin,
    ) -> bool {
        let arena = &mut block.arena;
        let (ts, count) = match message {
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
                let Some(ts) = self.write_new_order(arena, m.timestamp(), &origin, order, &m.stock()) else {
                    return false;
                };
                (ts, 1)
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
                let Some(ts) = self.write_new_order(arena, m.timestamp(), &origin, order, &m.stock()) else {
                    return false;
                };
                (ts, 1)
            }
            ItchMessage::OrderDelete(m) => {
                let id = self.stocks.id_of(m.stock_locate());
                let Some(ts) = event_time(m.timestamp(), &origin) else { return false };
                if id == InstrumentId::NONE || !fits_number(m.order()) {
                    return false;
                }
                let Some((order, left, firm)) = self.delete_simple(m.stock_locate(), m.order()) else {
                    return false;
                };
                let mut f = PrototypeFrame::append_frame(arena, &self.images.order_cancel, ts, &origin);
                f.set_order(&order, id, firm);
                f.set_shares(left);
                f.id(OID, order.order);
                (ts, 1)
            }
            ItchMessage::OrderExecuted(m) => {
                let id = self.stocks.id_of(m.stock_locate());
                let Some(ts) = event_time(m.timestamp(), &origin) else { return false };
                let fits_fields = fits_number(m.order()) && fits_number(m.match_number()) && m.shares() != 0;
                if id == InstrumentId::NONE || !fits_fields {
                    return false;
                }
                let reduction = self.reduce_simple(m.stock_locate(), m.order(), m.shares(), true);
                let Some((order, firm)) = reduction else { return false };
                let prints = self.config.emits_prints;
                let mut f = PrototypeFrame::append_frame(arena, &self.images.execution_frame, ts, &origin);
                f.0[at::KIND_A] = LIQ_ADDED;
                f.set_order(&order, id, firm);
                f.set_shares(m.shares());
                f.id(OID, order.order);
                f.id(MATCH_ID, m.match_number());
                f.header(|h| with_extension(h, if prints { 0 } else { flags::LAST }));
                put_number(arena, b"left", order.left.into());
                if prints {
                    let mut f = PrototypeFrame::append_frame(arena, &self.images.trade, ts, &origin);
                    f.print(id, order.px, m.shares(), m.match_number());
                    f.0[at::KIND_A] = 3 - order.side;
                }
                (ts, 1 + u32::from(prints))
            }
            ItchMessage::OrderCancel(m) => {
                let id = self.stocks.id_of(m.stock_locate());
                let Some(ts) = event_time(m.timestamp(), &origin) else { return false };
                let fits_fields = fits_number(m.order()) && m.shares() != 0;
                if id == InstrumentId::NONE || !fits_fields {
                    return false;
                }
                let reduction = self.reduce_simple(m.stock_locate(), m.order(), m.shares(), false);
                let Some((order, firm)) = reduction else { return false };
                let (image, shares) = match order.left {
                    0 => (&self.images.order_cancel, m.shares()),
                    left => (&self.images.order_amend, order.done + left),
                };
                let mut f = PrototypeFrame::append_frame(arena, image, ts, &origin);
                f.set_order(&order, id, firm);
                f.set_shares(shares);
                f.id(OID, order.order);
                (ts, 1)
            }
            ItchMessage::OrderReplace(m) => {
                let id = self.stocks.id_of(m.stock_locate());
                let Some(ts) = event_time(m.timestamp(), &origin) else { return false };
                let fits_fields = fits_number(m.order()) && fits_number(m.new_order()) && m.shares() != 0;
                if id == InstrumentId::NONE || !fits_fields {
                    return false;
                }
                let Some(firm) = self.firm_of_order(m.stock_locate(), m.order()) else { return false };
                let Ok((old, new)) = self.replace_order(m.stock_locate(), m) else { return false };
                let mut f = PrototypeFrame::append_frame(arena, &self.images.order_cancel, ts, &origin);
                f.set_order(&old, id, firm);
                f.set_shares(old.left);
                f.id(OID, old.order);
                f.header(without_last);
                let mut f = PrototypeFrame::append_frame(arena, &self.images.order_new, ts, &origin);
                f.set_order(&new, id, firm);
                f.set_shares(new.left);
                f.id(OID, new.order);
                f.header(|h| with_extension(h, flags::LAST));
                put_number(arena, b"replaces", m.order());
                (ts, 2)
            }
            ItchMessage::Trade(_) => return self.write_stateless(block, message, origin),
            _ => return false,
        };
        block.end_resolved(origin.span(), ts, count, BlockMessageKind::Events);
        true
    }

    /// Writes the event of a new order. Returns `None` and changes nothing if the order needs the general path.
    #[inline]
    fn write_new_order(
        &mut self,
        arena: &mut Vec<u8>,
        nanos: u64,
        origin: &ItchMessageOrigin,
        order: ItchOrderState,
        stock: &[u8; 8],
    ) -> Option<UnixNanos> {
        let id = self.stocks.id(order.locate, stock);
        let ts = event_time(nanos, origin)?;
        let firm = self.firms.id(&order.firm)?;
        if id == InstrumentId::NONE || order.side == 0 || !fits_number(order.order) || order.left == 0 {
            return None;
        }
        self.add_order(order, stock).ok()?;
        let mut f = PrototypeFrame::append_frame(arena, &self.images.order_new, ts, origin);
        f.set_order(&order, id, firm);
        f.set_shares(order.left);
        f.id(OID, order.order);
        Some(ts)
    }

    /// Takes shares off an order, likewise; returns its new state and the id of its firm.
    #[inline]
    fn reduce_simple(
        &mut self,
        locate: u16,
        order: u64,
        shares: u32,
        executed: bool,
    ) -> Option<(ItchOrderState, u32)> {
        let (orders, firms) = (self.orders.as_mut().expect("asked with orders only"), &self.firms);
        let mut reduced_order = None;
        orders.change_order(order, |o| {
            let Some(firm) = firms.id(&o.firm) else { return false };
            if o.locate != locate || o.left < shares {
                return false;
            }
            o.left -= shares;
            o.done += if executed { shares } else { 0 };
            reduced_order = Some((*o, firm));
            true
        });
        reduced_order
    }

    /// Deletes an order, likewise; returns its remaining state and the id of its firm.
    #[inline]
    fn delete_simple(&mut self, locate: u16, order: u64) -> Option<(ItchOrderState, u32, u32)> {
        let (orders, firms) = (self.orders.as_mut().expect("asked with orders only"), &self.firms);
        let mut deleted_order = None;
        orders.change_order(order, |o| {
            let Some(firm) = firms.id(&o.firm) else { return false };
            if o.locate != locate {
                return false;
            }
            deleted_order = Some((*o, o.left, firm));
            o.left = 0;
            true
        });
        deleted_order
    }

    /// Returns the firm id of a live order. Returns `None` if the order is not live, or if the id must be looked up.
    #[inline]
    fn firm_of_order(&mut self, locate: u16, order: u64) -> Option<u32> {
        let orders = self.orders.as_mut().expect("asked with orders only");
        let order = orders.get(order).filter(|o| o.locate == locate)?;
        self.firms.id(&order.firm)
    }
}
