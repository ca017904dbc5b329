//! Order books and best prices, from the events of a tape.
//!
//! ```text
//!   order_new, order_amend, order_cancel, exec ─▶ orders  price, then time ─┐
//!   level                                      ─▶ levels  as published     ─┼─▶ venue's best ─┬─▶ best over
//!   bbo                                        ─▶ bbo     as published     ─┘                 │   all venues
//!   session ─▶ phase: auction, halt, close                      … other venues ───────────────┘
//! ```
//!
//! An instrument at a venue is a *listing*; it has a book for each [`Basis`] that the tape holds. All books together
//! are [`Books`]: give it each event of a tape in order and ask it at any time. The same events give the same books;
//! it reads no clock.
//!
//! ```
//! use unitape_book::{Basis, Books};
//! use unitape_model::Side;
//! use unitape_codec::events::{LineParseOptions, parse_line};
//! use unitape_model::{Dictionary, Event, InstrumentId};
//!
//! let (mut books, mut names, mut arena) = (Books::default(), Dictionary::default(), Vec::new());
//! for line in [
//!     r#"{"ts":1,"kind":"order_new","oid":"A","side":"B","px":"99.5","qty":"300","venue":"XLON","instr":"VOD"}"#,
//!     r#"{"ts":2,"kind":"order_new","oid":"B","side":"S","px":"100","qty":"200","venue":"XLON","instr":"VOD"}"#,
//!     r#"{"ts":3,"kind":"exec","oid":"A","side":"B","px":"99.5","qty":"100","venue":"XLON","instr":"VOD"}"#,
//! ] {
//!     arena.clear();
//!     parse_line(line.as_bytes(), &mut names, &mut arena, &LineParseOptions::default()).unwrap();
//!     books.on_event(&Event::new(&arena).unwrap());
//! }
//! let book = books.book(books.find(1, InstrumentId(1)).unwrap(), Basis::Orders);
//! let bid = book.bbo().bid.unwrap();
//! assert_eq!((bid.px.to_string(), bid.qty.to_string(), bid.orders), ("99.5".into(), "200".into(), Some(1)));
//! assert_eq!(book.queue(Side::Buy, bid.px).next().unwrap().oid.to_string(), "A");
//! ```
//!
//! # What the events mean to a book
//! - `order_new` puts an order at the end of the queue of its price, unless it can never rest there (`tif` `IOC` or
//!   `FOK`, `type` `market` or `stop…`, no price), or meets the other side in continuous trading. Then it is *being
//!   matched*, and appears in the book only after its executions, with its remaining quantity.
//! - `order_amend` replaces price and whole quantity, what was executed included (FIX `38`), or takes `qty_reduced`
//!   off what is left. Only less quantity at the same price keeps the place in the queue. With `left` it states the
//!   order whole: one that is not there enters.
//! - `display` is how much of an order its level shows at most.
//! - `exec` takes its quantity off the order, `order_cancel` takes the order out. A `trade` changes no book.
//! - `level` by price, or by depth counted from 1, the best; `R` without a side clears both.
//! - `status` with the state `stale` says that a feed has lost something of a listing: its books are stale until
//!   `recovered`, or until an `R` or a `bbo` of another message replaces them. `restarted` empties them; `halted` and
//!   the like end matching until `trading` or `resumed`.
//! - `quarantine`: what did not become events marks the books that it may concern as stale ([`Books::on_loss`]).
//! - `session`: in `pre`, `auction`, `fixing` and `halt` orders are gathered and may cross. After a `close`
//!   the venue may cancel what is left; what follows a close begins with empty books. A session without venue or
//!   instrument is about all of them.
//!
//! An impossible statement is a [`BookFault`]: counted, never a panic. The book is then stale until it is cleared or
//! marked as recovered. Everything is bounded, see [`BookOptions`]; nothing is allocated once the books have grown.
//!
//! Quotes of banks make books of their own, see [`fx`].
//!
//! # What it does not do
//! It reads no tape: the caller feeds [`TapeBooks`] frame by frame. It knows no matching rules of a venue but price and
//! time, and interprets no other `status` (a mapping makes it a `session`). It keeps no history: a book shows the
//! present. Every rule is in `docs/books.md`.

mod books;
mod consolidated;
mod decode;
mod error;
mod executions;
mod fault;
pub mod fx;
mod ladder;
mod listing;
mod listing_events;
mod losses;
mod mbo;
mod mbp;
mod qty;
mod state;
mod state_check;
mod store;
mod tape;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "twin"))]
#[doc(hidden)]
pub mod twin;
mod value;
mod view;

pub use books::{BookChange, BookCounters, BookOptions, Books, ListingId};
pub use consolidated::{ConsolidatedBbo, ConsolidatedSide};
pub use error::Error;
pub use fault::{BookFault, BookFaultCounts};
pub use losses::SourceBookPolicy;
pub use mbp::{DepthLimit, LevelAction, LevelBook, LevelChange, LevelChangeOutcome, StoredLevel};
pub use tape::{ALL_VENUES, TapeBooks};
pub use value::{Basis, Bbo, BookDepth, OrderId, OrderView, PriceLevel, QuoteFlags, SessionPhase};
pub use view::{BookView, ListingView};
