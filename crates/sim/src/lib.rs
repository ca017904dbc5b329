//! Seeded markets whose truth is known.
//!
//! This crate makes input for demonstrations, tests and benchmarks: a market is run from a seed, its events are
//! written as real bytes of a real format. Beside them is the *truth*, known because we did it ourselves.
//!
//! ```text
//!            seed
//!              │
//!   ┌──────────▼───────────┐  orders   ┌──────────────────┐  events   ┌────────────────────────────┐  bytes
//!   │ background (one side │──────────▶│ books: price,    │──────────▶│ frames, lines, FIX, ITCH,  │────────▶ out
//!   │ per owner and instr) │           │ then time        │           │ records, SWIFT: [`day`]    │
//!   │ planted scenes       │           └──────────────────┘           │ a drop copy with noise     │
//!   │ near misses          │──────────────────────────────▶ truth     └────────────────────────────┘
//!   └──────────────────────┘
//! ```
//!
//! [`Sim`] is a day of a market: venues, auctions, halts, payments, scenes of eight scenarios, in several formats;
//! [`day`] describes it. [`Market`] is several days, with all that follows from their events, and obeys controls;
//! [`day::market`] describes it. [`DropCopy`] writes such a day as it arrives over a wire, with requests, heartbeats and
//! damage. [`exchange`] is an exchange that publishes price levels in FAST on two lines. [`banks`] quote currency pairs, and
//! know their best prices. [`surveillance`] is a stream of orders to measure surveillance with.
//!
//! # Example
//!
//! ```
//! use unitape_sim::day::Scenario;
//! use unitape_sim::{DropCopy, InjectedNoiseConfig, SimConfig};
//!
//! let day = SimConfig { seed: 7, events: 5_000, instruments: 12, plant: [(Scenario::WashTrade, 4)].into(), ..SimConfig::default() };
//! let mut fix = Vec::new();
//! let truth = DropCopy::new(day, InjectedNoiseConfig::default())?.write_fix(&mut fix)?;
//! assert!(fix.starts_with(b"8=FIX.4.4\x01"));
//! assert_eq!(truth.planted.len(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//!
//! It is no model of how markets move: prices wander at random, and an owner of the background trades an instrument on
//! one side only, which is how accidental wash trades are made impossible. Only a [`Market`] rejects orders, and no message
//! is resent or lost.

pub mod banks;
mod book;
pub mod day;
mod error;
pub mod exchange;
mod rng;
pub mod surveillance;
#[cfg(any(test, feature = "twin"))]
#[doc(hidden)]
pub mod twin;
mod wire;

pub use book::{BestLevel, Fill, IncomingOrder, MatchingBook, OrderHandle, PlacementResult};
pub use day::market::{ControlRequest, Market, MarketConfig};
pub use day::{DropCopy, InjectedNoiseConfig, Sim, SimConfig, isin_check_digit};
pub use error::Error;
pub use rng::Rng;
pub use surveillance::{SurveillanceConfig, SurveillanceStream};
