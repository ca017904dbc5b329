//! Seeded markets whose truth is known.
//!
//! This crate makes input for demonstrations, tests and benchmarks: a market is run from a seed, what happened in it
//! is written as real bytes of a real format, and beside them stands the *truth*, known because we did it ourselves.
//!
//! There are two of them. [`Sim`] is a whole day: venues, auctions, halts, payments, scenes of eight scenarios, in several
//! formats; it is told in [`day`]. [`Flow`] is older and smaller, one market of three venues straight to a FIX 4.4 drop copy
//! with planted wash trades, requests, heartbeats and damage; the rest of this page is about it, and about the convention
//! of the drop copy that both share.
//!
//! ```text
//!            seed
//!              │
//!   ┌──────────▼───────────┐  orders   ┌──────────────────┐  fills, best   ┌──────────┐  bytes
//!   │ background (one side │──────────▶│ 36 books: price, │───────────────▶│ FIX 4.4  │────────▶ out
//!   │ per owner and instr) │           │ then time        │                │ encoder  │
//!   │ planted wash trades  │           └──────────────────┘                └──────────┘
//!   │ near misses, noise   │──────────────────────────────────────────────▶ truth
//!   └──────────────────────┘
//! ```
//!
//! # What is on the wire
//!
//! One file interleaves three FIX sessions, one per venue: `49` = `XLON`, `CHIX` or `BATE`, `56` = `UNITAPE`. `34`
//! counts from 1 in each session, without a gap. Every message is `8=FIX.4.4`, `9`, `35`, `49`, `56`, `34`, `52`, the
//! body, `10`; times carry nine decimals (`YYYYMMDD-HH:MM:SS.nnnnnnnnn`, UTC) and never go back.
//!
//! | `35` | what it is | event it should become |
//! |---|---|---|
//! | `8` with `150=0` | venue accepted a new order | `order_new` |
//! | `8` with `150=5` | venue accepted an amend | `order_amend` |
//! | `8` with `150=4` | order cancelled: asked for, or the rest of an IOC or market order | `order_cancel` |
//! | `8` with `150=F` | one side of a trade; both sides follow one another, the aggressor first | `exec` |
//! | `X` | public print of that trade | `trade` |
//! | `W` | best bid and offer of one venue and instrument changed | `bbo` |
//! | `D`, `G`, `F` | the request that led to the report right after it | none: the report tells it with the venue's id |
//! | `0` | heartbeat (only with noise) | none |
//!
//! The requests are on the wire because a drop copy has them. The reports are the venue's own word, they name the
//! order by its stable id, and only they tell of cancels that nobody asked for; so events come from them.
//!
//! **Tags of `35=8`** (all present unless a condition is given):
//!
//! | tag | field of the event | values |
//! |---|---|---|
//! | `60` | ts | time of the matching engine; equals `52` |
//! | `37` | oid | `O` and ten digits; stays the same through amends |
//! | `11`, `41` | – | client's id of the latest request, `C` and ten digits; `41` (only `150=4` and `5` on request) the one before |
//! | `17` | – | `E` and ten digits, unique |
//! | `453` | – | always `3` parties, each `448`, `447=D`, `452`: |
//! | … `452=1` | firm | executing firm, `F01`… |
//! | … `452=3` | owner | client id, the beneficial owner, `OWN01`…; the cast of planted scenarios is `WSH01`… |
//! | … `452=11` | trader | order origination trader, `T0101`… |
//! | `1` | acct | `A0101`… |
//! | `55` | – | symbol |
//! | `48` with `22=4` | instr | ISIN |
//! | `207` | venue | MIC |
//! | `54` | side | `1` = `B`, `2` = `S` |
//! | `38` | qty of an order | total quantity, also after an amend |
//! | `40` | type | `1` market, `2` limit |
//! | `44` | px of an order | only with `40=2` |
//! | `15` | – | currency, `GBP` or `EUR` |
//! | `59` | tif | `0` day, `3` immediate or cancel |
//! | `528` | capacity | `A` agency, `P` principal |
//! | `847` | algo | only for orders of an algorithm: `1001`… |
//! | `150`, `39` | – | kind of report, state of the order (`0` new, `1` part filled, `2` filled, `4` cancelled) |
//! | `31`, `32` | px, qty of an exec | only `150=F` |
//! | `30` | – | only `150=F`: equals `207` |
//! | `880` | match_id | only `150=F`: `M` and ten digits, the same on both sides. The tag is one of FIX 5.0, used here by agreement, as drop copies do |
//! | `851` | liq | only `150=F`: `1` = `A` added, `2` = `R` removed |
//! | `151`, `14`, `6` | – | left, done, average price (cut, not rounded, to two more places than the price) |
//!
//! **Tags of `35=W`**: ts is `52`. `55`, `48`, `22=4`, `207`, then `268` with one entry for each side that exists: `269`
//! (`0` bid, `1` offer), `270`, `15`, `271`. A side without orders has no entry; nothing is published until a book has
//! both sides, and a flow of this crate keeps them.
//!
//! **Tags of `35=X`**: ts is `52`. `268=1`, `279=0`, `269=2`, `278` = match_id, `55`, `48`, `22=4`, `207`, `270` px, `15`,
//! `271` qty.
//!
//! **Tags of the requests**: `D` and `G` carry `11`, (`G`: `41`, `37`), the parties, `1`, `21=1`, `55`, `48`, `22`, `207`,
//! `54`, `60`, `38`, `40`, `44`, `15`, `59`, `528`, `847` as above; `F` carries `41`, `37`, `11`, `1`, the parties, `55`,
//! `48`, `22`, `207`, `54`, `60`, `38`.
//!
//! # Noise
//!
//! With [`Noise`] the file also has heartbeats and things that are bad on purpose. A bad message is an extra copy of an
//! exec under the session's next `34`, so losing it loses nothing, and taking it for good shows. Truth counts each kind.
//!
//! # Example
//!
//! ```
//! use unitape_sim::{Flow, FlowConfig};
//!
//! let config = FlowConfig { seed: 7, messages: 5_000, wash_trades: 4, ..FlowConfig::default() };
//! let mut fix = Vec::new();
//! let truth = Flow::new(config)?.write_fix(&mut fix)?;
//! assert!(fix.starts_with(b"8=FIX.4.4\x01"));
//! assert_eq!(truth.planted.len(), 4);
//! truth.write_jsonl(&mut std::io::sink())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//!
//! It is no model of how markets move: prices wander at random, and an owner of the background trades an instrument on
//! one side only, which is how accidental wash trades are made impossible. There are no auctions, halts or stop orders,
//! no rejects, no resent or lost messages, and the beneficial group of everybody is the owner.

mod book;
pub mod day;
mod error;
pub mod exchange;
mod flow;
mod fx;
mod market;
pub mod oracle;
mod plan;
mod rng;
mod truth;
mod wire;
mod world;

pub use book::{Best, Book, Fill, Handle, Incoming, Placed};
pub use day::{Sim, SimConfig};
pub use error::Error;
pub use flow::{Flow, FlowConfig, Noise};
pub use fx::{Banks, FxConfig, Quote};
pub use oracle::Arm;
pub use rng::Rng;
pub use truth::{Bad, Key, LastBbo, Miss, Scene, SceneLeg, Totals, Truth};
pub use world::{Instrument, VENUES, isin_check_digit};
