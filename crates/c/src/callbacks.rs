//! Calls the subscribers in C with the events that concern them.

use std::ffi::c_void;

use unitape_marketdata::{
    BookUpdate, EventContext, InstrumentId, Listener, ProductId, ReferenceTables, RefusedInput, SequenceGap,
    Subscription, Trade, TradingState,
};

use crate::market::{Book, LevelChange, MARKET_RECOVERED, MARKET_STALE, MarketRecord};

/// The callbacks and their subscriptions.
#[derive(Debug, Default)]
pub(crate) struct CallbackTable {
    pub subscribed: Vec<SubscribedCallback>,
    /// By instrument: indexes into `subscribed`, or `None` while they are unknown.
    routes: Vec<Option<Vec<u32>>>,
    /// By product: the routes of all its instruments, or `None` while they are unknown.
    of_products: Vec<Option<Vec<u32>>>,
    changes: Vec<LevelChange>,
    refusal_text: String,
}

#[derive(Debug)]
pub(crate) struct SubscribedCallback {
    pub subscription: Subscription,
    pub callback: unsafe extern "C" fn(context: *mut c_void, market: *const MarketRecord),
    pub context: *mut c_void,
}

impl CallbackTable {
    /// Calls those whose subscription covers the instrument.
    #[inline]
    fn call(&mut self, tables: &ReferenceTables, instrument: InstrumentId, market: &MarketRecord) {
        let is_routed = self.routes.get(instrument.index()).is_some_and(Option::is_some);
        if !is_routed {
            self.route(tables, instrument);
        }
        let Some(Some(route)) = self.routes.get(instrument.index()) else { return };
        for n in route {
            self.subscribed[*n as usize].call(market);
        }
    }

    #[cold]
    fn route(&mut self, tables: &ReferenceTables, instrument: InstrumentId) {
        let index = instrument.index();
        if self.routes.len() <= index {
            self.routes.resize_with(index + 1, || None);
        }
        let covers =
            |(s, n): (&SubscribedCallback, u32)| s.subscription.covers(tables, instrument).then_some(n);
        self.routes[index] = Some(self.subscribed.iter().zip(0..).filter_map(covers).collect());
        let product = tables.instruments[index].product.index();
        if let Some(product_route) = self.of_products.get_mut(product) {
            *product_route = None;
        }
    }

    /// Calls those whose subscription covers any instrument of the product.
    fn call_product(&mut self, tables: &ReferenceTables, product: ProductId, market: &MarketRecord) {
        let is_routed = self.of_products.get(product.index()).is_some_and(Option::is_some);
        if !is_routed {
            self.route_product(tables, product);
        }
        let Some(Some(route)) = self.of_products.get(product.index()) else { return };
        for n in route {
            self.subscribed[*n as usize].call(market);
        }
    }

    #[cold]
    fn route_product(&mut self, tables: &ReferenceTables, product: ProductId) {
        let index = product.index();
        if self.of_products.len() <= index {
            self.of_products.resize_with(index + 1, || None);
        }
        let all = || tables.instrument_ids().zip(&tables.instruments).filter(|(_, i)| i.product == product);
        let covers = |s: &SubscribedCallback| all().any(|(i, _)| s.subscription.covers(tables, i));
        let callback_indexes = self.subscribed.iter().zip(0..).filter_map(|(s, n)| covers(s).then_some(n));
        self.of_products[index] = Some(callback_indexes.collect());
    }

    /// Forgets the routes, because the subscriptions have changed.
    pub fn forget_routes(&mut self) {
        self.routes.clear();
        self.of_products.clear();
    }

    fn call_all(&self, market: &MarketRecord) {
        self.subscribed.iter().for_each(|s| s.call(market));
    }
}

impl SubscribedCallback {
    #[inline]
    fn call(&self, market: &MarketRecord) {
        // SAFETY: the caller of `unitape_handler_subscribe` vouches for both as long as the subscription lasts, and what the
        // event points to lives until this is over.
        unsafe { (self.callback)(self.context, market) };
    }
}

impl Listener for CallbackTable {
    fn on_book(&mut self, update: &BookUpdate<'_>) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.clear();
        changes.extend(update.changes.iter().map(LevelChange::from));
        // SAFETY: it is pointed to until the calls below are over, and the header forbids to use it longer.
        let book = unsafe { Book::new(update.book) };
        let market = MarketRecord::book(update, &changes, &book);
        self.call(update.context.tables, update.instrument, &market);
        self.changes = changes;
    }

    fn on_trade(&mut self, context: &EventContext<'_>, trade: &Trade) {
        self.call(context.tables, trade.instrument, &MarketRecord::trade(context, trade));
    }

    fn on_state(&mut self, context: &EventContext<'_>, state: &TradingState<'_>) {
        let market = MarketRecord::state(context, state);
        match state.instrument {
            Some(instrument) => self.call(context.tables, instrument, &market),
            None => self.call_product(context.tables, state.product, &market),
        }
    }

    fn on_stale(&mut self, context: &EventContext<'_>, instrument: InstrumentId) {
        self.call(context.tables, instrument, &MarketRecord::new(MARKET_STALE, context, Some(instrument)));
    }

    fn on_recovered(&mut self, context: &EventContext<'_>, instrument: InstrumentId) {
        self.call(
            context.tables,
            instrument,
            &MarketRecord::new(MARKET_RECOVERED, context, Some(instrument)),
        );
    }

    fn on_instrument(&mut self, context: &EventContext<'_>, instrument: InstrumentId) {
        self.route(context.tables, instrument);
        self.call(context.tables, instrument, &MarketRecord::instrument(context, instrument));
    }

    fn on_gap(&mut self, context: &EventContext<'_>, gap: SequenceGap) {
        let market = match gap {
            SequenceGap::Messages { product, from, to } => {
                MarketRecord::gap(context, Some(product), from, to)
            }
            SequenceGap::Packets { from, to } => MarketRecord::gap(context, None, from, to),
            SequenceGap::NoRoom { product } => MarketRecord::gap(context, Some(product), 0, 0),
        };
        self.call_all(&market);
    }

    fn on_refused(&mut self, context: &EventContext<'_>, refusal: &RefusedInput<'_>) {
        let mut text = std::mem::take(&mut self.refusal_text);
        self.call_all(&MarketRecord::refused(context, refusal, &mut text));
        self.refusal_text = text;
    }
}
