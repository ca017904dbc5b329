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
//! | `sources` | files, directories that grow, sockets and pipes; what they hold: plain, compressed, captures |
//! | `block` | a stretch of bytes, the events made of it, how many, and the ids in them |
//! | `formats` | bytes to events, by format |
//! | `mapping` | how a message becomes events, in TOML |
//! | `reference` | reference data: one instrument in several notations gets one name |
//! | `pipeline` | intake, decoding, sequence, place on the tape; merge of tapes |
//! | `account` | what is on a tape, every message accounted for |
//! | `quarantine` | what could not become events |
//!
//! ```no_run
//! use unitape_feed::{ConsolidateOptions, consolidate, feed_of_file};
//!
//! let feeds = vec![feed_of_file("market.fix".as_ref())?];
//! let outcome = consolidate("tape".as_ref(), ConsolidateOptions { feeds, workers: 2, ..ConsolidateOptions::default() })?;
//! println!("{} messages, {} events", outcome.summary.messages, outcome.summary.events);
//! # Ok::<(), unitape_feed::Error>(())
//! ```
//!
//! It does not keep books (`unitape-book`), raise alerts (`unitape-watch`), or store days of ticks (`unitape-store`);
//! those crates read the tape.

pub mod account;
pub mod block;
mod error;
mod formats;
pub mod mapping;
mod pipeline;
pub mod quarantine;
mod reference;
mod sources;

pub use account::retention_checkpoint::{checkpoint_damage, update_checkpoint};
pub use account::{AccountSummary, FeedSummary, TapeAccount};
pub use error::Error;
pub use formats::capture::DatagramFilter;
pub use formats::decoder::DecodeOptions;
#[doc(hidden)]
pub use formats::fast::rules::try_bytes as try_fast;
pub use formats::format::Format;
pub use mapping::Mapping;
pub use pipeline::consolidate::{
    BLOCK_BYTES, BLOCK_BYTES_MAX, ConsolidateOptions, RunOutcome, RunProgress, StageTimings, consolidate,
    feed_of_file, feed_of_option,
};
pub use pipeline::explain::explain;
pub use pipeline::intake::FormatReloadQueue;
pub use pipeline::job::VersionedFormat;
pub use pipeline::lead::ClockLeadLimits;
pub use pipeline::masters::MasterLoader;
pub use pipeline::merge::{
    InputGap, InputTape, MergeOptions, MergeSegment, TapeMergeOptions, TapeMergeOutcome, merge, merge_tapes,
};
pub use pipeline::run::{FeedInput, RunFeed, RunOptions, run};
pub use pipeline::sequence::RunCounters;
#[doc(hidden)]
pub use pipeline::source_decoder::SourceDecoder;
pub use reference::InstrumentMaster;
pub use sources::archive;
pub use sources::detect::detect;
pub use sources::journal;
pub use sources::link::{FeedLinkStatus, LinkState, MergeWait, RestartMode, RestartPolicy};
pub use sources::receive::{ClockSource, OverflowPolicy, ReceiveSource, TcpFeed, WallClock};
pub use sources::source::{ChangedSourcePolicy, FileFeed, is_stdin};
pub use sources::stats::{FeedStats, FeedStatsSnapshot, RunMonitor};
pub use unitape_ring::farm::FarmEnding;

/// Decodes `bytes` as a whole source and returns the account. Panics if a frame is incomplete. For fuzzing.
#[doc(hidden)]
pub fn try_bytes(format: &Format, bytes: &[u8]) -> Result<block::MessageTally, Error> {
    try_block(format, block::Block { bytes: bytes.to_vec(), eof: true, ..block::Block::default() })
}

/// Checks any text as a mapping and any bytes as its messages. The mapping must compile and explain itself as it
/// acts, or the error must name a line. For fuzzing.
///
/// # Panics
/// Panics if that does not hold.
#[doc(hidden)]
pub fn try_mapping(text: &str, messages: &[u8]) -> bool {
    match Mapping::parse(text, "m.toml").and_then(Format::from_mapping) {
        Ok(format) => {
            pipeline::explain::try_explain(&format, messages).and(try_bytes(&format, messages)).is_ok()
        }
        Err(e) => {
            let text = e.to_string();
            let is_digit_at = |offset: usize| text[offset..].starts_with(|c: char| c.is_ascii_digit());
            let names =
                |words: &str| text.match_indices(words).any(|(offset, _)| is_digit_at(offset + words.len()));
            assert!(names("m.toml:") || names("line "), "no line: {text}");
            false
        }
    }
}

/// Decodes a capture and returns the account. Panics if a frame is incomplete.
#[doc(hidden)]
pub fn try_capture(format: &Format, bytes: &[u8]) -> Result<block::MessageTally, Error> {
    let walker = Some(unitape_base::capture::CaptureWalker::default());
    try_block(format, block::Block { bytes: bytes.to_vec(), eof: true, walker, ..block::Block::default() })
}

fn try_block(format: &Format, mut block: block::Block) -> Result<block::MessageTally, Error> {
    format.decoder()?.decode(
        &mut block,
        1,
        &unitape_model::Dictionary::default(),
        &DecodeOptions { sets_receive_times: true, ..DecodeOptions::default() },
    );
    let framed: usize = unitape_model::frames(&block.arena).map(|(_, _, frame)| frame.len()).sum();
    assert_eq!(framed, block.arena.len(), "the arena is whole frames");
    assert!(
        unitape_model::frames(&block.arena).all(|(_, _, frame)| unitape_model::Event::new(frame).is_some())
    );
    assert!(block.tally.is_balanced(), "every message is accounted for");
    Ok(block.tally)
}
