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
//! | `source`, `hash`, `folder`, `open` | files, directories that grow, what they hold: plain, compressed, captures |
//! | `intake` | cuts them into blocks |
//! | `receive`, `journal` | sockets and pipes, written down as they come |
//! | `block`, `tally`, `names` | a stretch of bytes, the events made of it, how many, and the ids in them |
//! | `decode`, `fix`, `fixed`, `csv`, `swift`, `itch`, `iso20022`, `fast_rules`, `text`, `jsonl` | bytes to events, by format |
//! | `head` | the first bytes of a source, for blocks that begin further on |
//! | `capture`, `stamp` | payloads out of packets, receive times into events |
//! | `mapping` | how a message becomes events, in TOML |
//! | `sequence`, `feed_state`, `bookkeeping` | ids, definitions, merge, place on the tape |
//! | `consolidate`, `run` | all of it, on any number of workers, once or until it is stopped |
//! | `merge` | tapes of one feed each become one tape |
//! | `account` | what stands on a tape, every message accounted for |
//! | `quarantine` | what could not become events |
//! | `detect` | what a file is, by its content |
//! | `reference` | reference data: one instrument in several notations gets one name |
//! | `walk`, `explain` | a file decoded by itself; what a mapping does with each message of a sample, and why |
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
mod begin;
pub mod block;
mod bookkeeping;
mod capture;
mod concern;
mod consolidate;
mod content;
mod csv;
mod decode;
mod detect;
mod durability;
mod error;
mod events;
mod explain;
mod fast;
mod fast_rules;
mod feed_state;
mod fix;
mod fixed;
mod folder;
mod gone;
mod growth;
mod hash;
mod head;
mod intake;
mod iso20022;
mod itch;
pub mod journal;
mod jsonl;
mod known;
mod lead;
mod link;
pub mod mapping;
mod merge;
mod names;
mod numbers;
mod open;
mod open_sources;
pub mod quarantine;
mod receive;
mod reference;
mod run;
mod sequence;
mod source;
mod stamp;
mod stats;
mod swift;
mod tally;
mod text;
mod walk;
mod zeros;

pub use account::{Account, FeedSummary, Summary};
pub use capture::Select;
pub use consolidate::{
    BLOCK_BYTES, BLOCK_BYTES_MAX, Options, Outcome, Progress, Turns, consolidate, feed_of_file,
    feed_of_option,
};
pub use decode::{Format, How, Sorted};
pub use detect::detect;
pub use error::Error;
#[doc(hidden)]
pub use events::ToEvents;
pub use explain::explain;
#[doc(hidden)]
pub use fast_rules::try_bytes as try_fast;
pub use gone::{before_removal, gone_damage};
pub use intake::Reload;
pub use known::SourceRules;
pub use lead::ClockLead;
pub use link::{Link, LinkState, MergeWait, Restart, RestartPolicy};
pub use mapping::Mapping;
pub use merge::{MergeOptions, Segment, merge};
pub use receive::{Receive, TcpFeed, WhenFull};
pub use reference::{Loader, Reference};
pub use run::{Input, RunFeed, RunOptions, run};
pub use sequence::Counters;
pub use source::Feed;
pub use stats::{FeedFigures, FeedStats, Stats};
pub use unitape_ring::farm::Ending;

/// What becomes of these bytes as a whole source: the account, and whether frames came out whole. For fuzzing.
#[doc(hidden)]
pub fn try_bytes(format: &Format, bytes: &[u8]) -> Result<block::Tally, Error> {
    try_block(format, block::Block { bytes: bytes.to_vec(), eof: true, ..block::Block::default() })
}

/// Any text as a mapping, and any bytes as messages for it: it compiles, and explains itself as it acts, or the error
/// names a line. For fuzzing.
///
/// # Panics
/// When that does not hold.
#[doc(hidden)]
pub fn try_mapping(text: &str, messages: &[u8]) -> bool {
    match Mapping::parse(text, "m.toml").and_then(Format::by) {
        Ok(format) => explain::try_explain(&format, messages).and(try_bytes(&format, messages)).is_ok(),
        Err(e) => {
            let told = e.to_string();
            let digit = |at: usize| told[at..].starts_with(|c: char| c.is_ascii_digit());
            let names = |words: &str| told.match_indices(words).any(|(at, _)| digit(at + words.len()));
            assert!(names("m.toml:") || names("line "), "no line: {told}");
            false
        }
    }
}

/// The same of a capture.
#[doc(hidden)]
pub fn try_capture(format: &Format, bytes: &[u8]) -> Result<block::Tally, Error> {
    let walker = Some(unitape_base::capture::Walker::default());
    try_block(format, block::Block { bytes: bytes.to_vec(), eof: true, walker, ..block::Block::default() })
}

fn try_block(format: &Format, mut block: block::Block) -> Result<block::Tally, Error> {
    format.decoder()?.decode(
        &mut block,
        1,
        &unitape_model::Dictionary::default(),
        &How { receive_times: true, ..How::default() },
    );
    let framed: usize = unitape_model::frames(&block.arena).map(|(_, _, frame)| frame.len()).sum();
    assert_eq!(framed, block.arena.len(), "the arena is whole frames");
    assert!(
        unitape_model::frames(&block.arena).all(|(_, _, frame)| unitape_model::Event::new(frame).is_some())
    );
    assert!(block.tally.closes(), "every message is accounted for");
    Ok(block.tally)
}
