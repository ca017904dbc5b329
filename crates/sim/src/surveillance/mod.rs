//! A stream of orders for measuring surveillance: hours of a market with many instruments, traders and open orders.
//!
//! ```text
//!   100,000 instruments          2,000 traders                  books: price, then time
//!   a few have most of  ──────▶  a few send most of  ──────▶   1 M orders rest in them   ──────▶ frames, lines
//!   the orders                   the orders                     from 40 % of the stream on
//! ```
//!
//! - Orders match in books; an execution has its two sides and a print. A best price is written when it changes.
//! - One cancel in five, and one execution in five, names only its order id: who reads the stream must know its open
//!   orders. An execution has the quantity as well.
//! - Events come in bursts, and more of them at the start and at the end than in between.
//! - Wash trades, layering and floods are planted here and there ([`SurveillanceCounts`]), so that there is something to find.
//!
//! The same [`SurveillanceConfig`] gives the same bytes on every machine; a test holds them by their hash.

mod frames;
mod population;
mod stream;

pub use stream::{SurveillanceConfig, SurveillanceCounts, SurveillanceStream};
