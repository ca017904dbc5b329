//! Banks in a box, and what the best prices of their quotes are.
//!
//! ```text
//!   seed ──▶ BankStream ──▶ lines of events ──▶ BankEvent ──▶ QuoteBooks ──▶ BestPrices ──▶ lines of best prices
//!                                                   │              ▲
//!                                                   └─▶ timers: expiry, silence, controls
//! ```
//!
//! [`BankStream`] quotes two sides in tiers for up to 50 currency pairs, sweepable and full-amount, spot and forward, with
//! all that goes wrong: rejects, spikes, silence, slow clocks, repeated ids, late cancels.
//!
//! [`BestPriceTruth`] is the slow, obvious evaluator of the rules in `docs/best-price-rules.md`. Each rule is cited by its
//! number beside the code that holds it. A fast engine is compared with it.
//!
//! ```
//! use unitape_sim::banks::{BankStream, BankStreamConfig, BestPriceConfig, BestPriceTruth};
//!
//! let mut stream = BankStream::new(BankStreamConfig { seed: 7, events: 500, ..BankStreamConfig::default() })?;
//! let mut truth = BestPriceTruth::new(BestPriceConfig::default())?;
//! let mut lines = Vec::new();
//! while let Some(event) = stream.next_line() {
//!     truth.apply_line(&event, &mut lines)?;
//! }
//! assert!(lines.starts_with(br#"{"ts":"#));
//! # Ok::<(), unitape_sim::Error>(())
//! ```
//!
//! It is no model of how currencies move, and the quotes of a bank do not depend on those of others, but where they are made
//! to meet.

mod book;
mod event;
mod exact;
mod pair;
mod price;
mod roster;
mod stream;
mod truth;

pub use book::{BankQuote, BookKey, DateBook, QuoteBooks, QuoteSlot, WithdrawalFilter};
pub use event::{BankEvent, QuoteId};
pub use exact::ExactNumber;
pub use pair::{OrientedPair, ValueDates};
pub use stream::{BankStream, BankStreamConfig};
pub use truth::{BestPriceConfig, BestPriceTruth};
