//! The best price of many banks, from the quotes on a tape.
//!
//! ```text
//!   quote   ─▶ slot of its bank in the book of pair and date ─┐
//!   status  ─▶ heard; logout withdraws                        ├─▶ side in order ─▶ spikes ─▶ best price and sweep ─▶ listener
//!   control ─▶ switch of a bank                               │                             of each size
//!   timers  ─▶ expiry, silence, end of a control             ─┘
//! ```
//!
//! The rules are in `docs/best-price-rules.md`; code cites them by number. [`FxBooks`] applies events and calls a
//! listener for each changed best price. [`TapeFx`] takes the frames of a tape and learns names from them.
//!
//! ```
//! use unitape_book::fx::{FxBooks, FxOptions};
//! use unitape_codec::events::{LineParseOptions, parse_line};
//! use unitape_model::{Decimal, Dictionary, Event, Side};
//!
//! let mut books = FxBooks::new(FxOptions { sizes: vec![Decimal::from_int(1_000_000)], ..FxOptions::default() })?;
//! let (mut names, mut arena, mut best) = (Dictionary::default(), Vec::new(), Vec::new());
//! books.define_publisher(1, "CITI");
//! books.define_instrument(1, "EURUSD");
//! for line in [
//!     r#"{"ts":1,"kind":"quote","bank":"CITI","instr":"EURUSD","side":"S","px":"1.0852","qty":"2000000"}"#,
//!     r#"{"ts":2,"kind":"quote","bank":"CITI","instr":"EURUSD","side":"S","px":"1.0851","qty":"1000000"}"#,
//! ] {
//!     arena.clear();
//!     parse_line(line.as_bytes(), &mut names, &mut arena, &LineParseOptions::default()).unwrap();
//!     books.on_event(&Event::new(&arena).unwrap(), &mut |price| best.push(price.best(Side::Sell).unwrap().px.to_string()));
//! }
//! assert_eq!(best, ["1.0852", "1.0851"]);
//! # Ok::<(), unitape_book::Error>(())
//! ```
//!
//! # What it does not do
//! It knows no calendar and no file of pairs, and it takes no decision: it shows the offers. Everything is bounded, see
//! [`FxOptions`]. It reads no clock: the same events give the same prices.

mod books;
mod engine;
mod exact;
mod pair;
mod publishers;
mod quote;
mod side;
mod tape;
#[cfg(test)]
mod tests;
mod timers;
mod view;

pub use books::{FxCounters, FxOptions, QuoteRefusal};
pub use engine::FxBooks;
pub use exact::ExactAmount;
pub use pair::{OrientedPair, PairName};
pub use quote::OffReason;
pub use tape::TapeFx;
pub use view::{
    BestPrice, BestQuote, FxBookView, FxQuoteView, PriceListener, PriceState, SweepLegView, SweepView,
};
