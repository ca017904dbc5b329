//! Banks in a box, and what the best prices of their quotes are.
//!
//! ```text
//!   lines of events ──▶ BankEvent ──▶ QuoteBooks ──▶ BestPrices ──▶ lines of best prices
//!                           │              ▲
//!                           └─▶ timers: expiry, silence, controls
//! ```
//!
//! [`BestPriceTruth`] is the slow, obvious evaluator of the rules in `docs/best-price-rules.md`. Each rule is cited by its
//! number beside the code that holds it. A fast engine is compared with it.

mod book;
mod event;
mod exact;
mod pair;
mod price;
mod truth;

pub use book::{BankQuote, BookKey, DateBook, QuoteBooks, QuoteSlot, WithdrawalFilter};
pub use event::{BankEvent, QuoteId};
pub use exact::ExactNumber;
pub use pair::{OrientedPair, ValueDates};
pub use truth::{BestPriceConfig, BestPriceTruth};
