//! From sources of bytes to the tape: framing, mapping, quarantine, consolidation. A feed is all of these.
//!
//! ```text
//!  source ─ bytes ─▶ block ─ decode ─▶ units of events ─ sequence ─▶ tape
//!                      │                     │                         ▲
//!                      └ cut, carried over   └ refused ─▶ quarantine ──┘
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `source` | feeds, their files, the intake that cuts them into blocks |
//! | `block` | a stretch of bytes and the events made of it |
//! | `decode`, `fix`, `fixed`, `swift`, `jsonl` | bytes to events, by format |
//! | `head` | the first bytes of a source, for blocks that begin further on |
//! | `mapping` | how a message becomes events, in TOML |
//! | `sequence`, `feed_state`, `bookkeeping` | ids, definitions, merge, place on the tape |
//! | `consolidate` | all of it, on any number of workers |
//! | `account` | what stands on a tape, every message accounted for |
//! | `quarantine` | what could not become events |
//! | `detect` | what a file is, by its content |
//!
//! ```no_run
//! use unitape_feed::{Options, consolidate, feed_of_file};
//!
//! let feeds = vec![feed_of_file("market.fix".as_ref())?];
//! let outcome = consolidate("tape".as_ref(), Options { feeds, workers: 2, ..Options::default() })?;
//! println!("{} messages, {} events", outcome.summary.messages, outcome.summary.events);
//! # Ok::<(), unitape_feed::Error>(())
//! ```
//!
//! What it does not do: keep books (`unitape-book`), raise alerts (`unitape-watch`), or store days of ticks
//! (`unitape-store`); they read the tape.

pub mod account;
pub mod block;
mod bookkeeping;
mod consolidate;
mod decode;
mod detect;
mod error;
mod feed_state;
mod fix;
mod fixed;
mod head;
mod jsonl;
pub mod mapping;
pub mod quarantine;
mod sequence;
mod source;
mod swift;

pub use account::{Account, FeedSummary, Summary};
pub use consolidate::{
    BLOCK_BYTES, BLOCK_BYTES_MAX, Options, Outcome, Progress, consolidate, feed_of_file, feed_of_option,
};
pub use decode::Format;
pub use detect::detect;
pub use error::Error;
pub use mapping::Mapping;
pub use sequence::Counters;
pub use source::Feed;
pub use unitape_ring::farm::Ending;

/// What becomes of these bytes as a whole source: the account, and whether frames came out whole. For fuzzing.
#[doc(hidden)]
pub fn try_bytes(format: &Format, bytes: &[u8]) -> Result<block::Tally, Error> {
    let mut block = block::Block { bytes: bytes.to_vec(), eof: true, ..block::Block::default() };
    format.decoder()?.decode(&mut block, 1, &unitape_model::Dictionary::default());
    let framed: usize = unitape_model::frames(&block.arena).map(|(_, _, frame)| frame.len()).sum();
    assert_eq!(framed, block.arena.len(), "the arena is whole frames");
    assert!(
        unitape_model::frames(&block.arena).all(|(_, _, frame)| unitape_model::Event::new(frame).is_some())
    );
    assert!(block.tally.closes(), "every message is accounted for");
    Ok(block.tally)
}
