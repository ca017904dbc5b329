//! The events that callbacks of a handler receive, as C sees them.

use std::ffi::{c_char, c_void};

use unitape_marketdata::{
    BookUpdate, BookView, ChangedLevel, EventContext, InstrumentId, ProductId, RefusedInput, Side, StateCode,
    StoredLevel, Trade, TradingState, UpdateAction,
};

use crate::argument::Input;
use crate::error::Error;

/// `unitape_level` of the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)] // documented in the header, here and below
pub struct Level {
    pub px: i64,
    pub qty: i64,
    pub qty_exponent: i32,
    pub orders: u32,
}

/// `unitape_level_change` of the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct LevelChange {
    pub level: Level,
    pub side: u32,
    pub action: u32,
    pub depth: u32,
    pub reserved: u32,
}

/// `unitape_market` of the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct MarketRecord {
    pub what: u32,
    pub flags: u32,
    pub instrument: u32,
    pub product: u32,
    pub channel: u32,
    pub phase: u32,
    pub sequence: u64,
    pub ts_event: i64,
    pub ts_recv: i64,
    pub px: i64,
    pub qty: i64,
    pub qty_exponent: i32,
    pub side: u32,
    pub id: u64,
    pub from: u64,
    pub to: u64,
    pub code: u64,
    pub text: *const c_char,
    pub text_length: usize,
    pub changes: *const LevelChange,
    pub change_count: usize,
    pub book: *const Book,
}

/// `unitape_book` of the header: it lives as long as the callback that it is given to.
#[derive(Debug)]
pub struct Book(BookView<'static>);

/// `unitape_market_callback` of the header.
pub type MarketCallback = Option<unsafe extern "C" fn(context: *mut c_void, market: *const MarketRecord)>;

const MARKET_BOOK: u32 = 1;
const MARKET_TRADE: u32 = 2;
const MARKET_STATE: u32 = 3;
pub(crate) const MARKET_STALE: u32 = 4;
pub(crate) const MARKET_RECOVERED: u32 = 5;
const MARKET_INSTRUMENT: u32 = 6;
const MARKET_GAP: u32 = 7;
const MARKET_REFUSED: u32 = 8;

const MARKET_SNAPSHOT: u32 = 1;
const MARKET_CLEARED: u32 = 2;
const MARKET_IS_STALE: u32 = 4;

const LEVEL_ADD: u32 = 0;
const LEVEL_CHANGE: u32 = 1;
const LEVEL_DELETE: u32 = 2;

const SIDE_BUY: u32 = 0;
const SIDE_SELL: u32 = 1;

pub(crate) const NO_NUMBER: u32 = u32::MAX;
const NO_SEQUENCE: u64 = u64::MAX;

impl From<&StoredLevel> for Level {
    #[inline]
    fn from(rung: &StoredLevel) -> Self {
        Self { px: rung.px, qty: rung.qty.0, qty_exponent: rung.qty.1.into(), orders: rung.orders }
    }
}

impl From<&ChangedLevel> for LevelChange {
    #[inline]
    fn from(changed: &ChangedLevel) -> Self {
        Self {
            level: Level::from(&changed.level),
            side: changed.side as u32,
            action: match changed.action {
                UpdateAction::Add => LEVEL_ADD,
                UpdateAction::Change => LEVEL_CHANGE,
                UpdateAction::Delete => LEVEL_DELETE,
            },
            depth: changed.depth,
            reserved: 0,
        }
    }
}

/// Returns the side with this number.
pub(crate) fn side_of(side: u32) -> Option<Side> {
    match side {
        SIDE_BUY => Some(Side::Buy),
        SIDE_SELL => Some(Side::Sell),
        _ => None,
    }
}

impl Book {
    /// Makes the book that a callback receives.
    ///
    /// # Safety
    /// The caller must not use the pointer to the book after the callback.
    pub(crate) unsafe fn new(view: BookView<'_>) -> Self {
        // SAFETY: the lifetime alone is another; the caller vouches that it is not used longer.
        Self(unsafe { std::mem::transmute::<BookView<'_>, BookView<'static>>(view) })
    }
}

impl Input<Book> {
    /// Returns the book of the running callback.
    ///
    /// # Errors
    /// Fails if the pointer is null.
    pub(crate) fn view(&self) -> Result<BookView<'_>, Error> {
        // SAFETY: null or of the callback that is running, by the contract of `from_c` and unitape_handler.h; the book
        // outlives this call from inside the callback.
        let book = unsafe { self.pointer().as_ref() }.ok_or(Error::Null("the book"))?;
        Ok(book.0)
    }
}

impl MarketRecord {
    /// Makes an empty event of this message.
    #[inline]
    pub(crate) fn new(kind: u32, context: &EventContext<'_>, instrument: Option<InstrumentId>) -> Self {
        let listed = instrument.and_then(|instrument| context.tables.instruments.get(instrument.index()));
        Self {
            what: kind,
            flags: if context.snapshot { MARKET_SNAPSHOT } else { 0 },
            instrument: instrument.map_or(NO_NUMBER, |instrument| instrument.0),
            product: listed.map_or(NO_NUMBER, |listed| listed.product.0),
            channel: context.channel.0.into(),
            phase: NO_NUMBER,
            sequence: context.sequence.unwrap_or(NO_SEQUENCE),
            ts_event: context.ts_event.0,
            ts_recv: context.ts_recv.0,
            px: i64::MAX,
            qty: 0,
            qty_exponent: 0,
            side: NO_NUMBER,
            id: NO_SEQUENCE,
            from: 0,
            to: 0,
            code: NO_SEQUENCE,
            text: std::ptr::null(),
            text_length: 0,
            changes: std::ptr::null(),
            change_count: 0,
            book: std::ptr::null(),
        }
    }

    #[inline]
    pub(crate) fn book(update: &BookUpdate<'_>, changes: &[LevelChange], book: &Book) -> Self {
        let mut this = Self::new(MARKET_BOOK, update.context, Some(update.instrument));
        this.flags |= if update.cleared { MARKET_CLEARED } else { 0 };
        this.flags |= if update.book.is_stale() { MARKET_IS_STALE } else { 0 };
        (this.changes, this.change_count) = (changes.as_ptr(), changes.len());
        this.book = book;
        this
    }

    pub(crate) fn trade(context: &EventContext<'_>, trade: &Trade) -> Self {
        Self {
            px: trade.px.0,
            qty: trade.qty.mantissa(),
            qty_exponent: trade.qty.exponent().into(),
            side: trade.aggressor.map_or(NO_NUMBER, |side| side as u32),
            id: trade.id.unwrap_or(NO_SEQUENCE),
            ..Self::new(MARKET_TRADE, context, Some(trade.instrument))
        }
    }

    pub(crate) fn state(context: &EventContext<'_>, state: &TradingState<'_>) -> Self {
        let mut this = Self::new(MARKET_STATE, context, state.instrument);
        this.product = state.product.0;
        this.phase = state.phase.map_or(NO_NUMBER, |phase| phase as u32);
        match state.code {
            StateCode::Number(code) => this.code = code,
            StateCode::Text(text) => this.set_text(text),
        }
        this
    }

    pub(crate) fn instrument(context: &EventContext<'_>, instrument: InstrumentId) -> Self {
        let mut this = Self::new(MARKET_INSTRUMENT, context, Some(instrument));
        this.set_text(context.tables.instruments[instrument.index()].id.as_bytes());
        this
    }

    pub(crate) fn gap(context: &EventContext<'_>, product: Option<ProductId>, from: u64, to: u64) -> Self {
        let product = product.map_or(NO_NUMBER, |product| product.0);
        Self { product, from, to, ..Self::new(MARKET_GAP, context, None) }
    }

    /// Makes the event of a refusal and puts its words together in `text`.
    pub(crate) fn refused(context: &EventContext<'_>, refusal: &RefusedInput<'_>, text: &mut String) -> Self {
        text.clear();
        text.push_str(refusal.code);
        text.push_str(": ");
        text.push_str(refusal.detail);
        let mut this = Self::new(MARKET_REFUSED, context, None);
        this.set_text(text.as_bytes());
        this
    }

    fn set_text(&mut self, text: &[u8]) {
        (self.text, self.text_length) = (text.as_ptr().cast(), text.len());
    }
}
