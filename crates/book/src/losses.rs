//! The losses of feeds, for the books that are made of them.
//!
//! ```text
//!  source 3 ─┐                ┌ lost: the last loss that may concern any of its books
//!  source 7 ─┴▶ feed "itch" ──┤
//!                             └ named: of a listing, the last loss that concerns it
//! ```
//!
//! Losses are numbered. A book is stale from a loss of its feed on until it is cleared or recovered; a book that begins
//! later is stale as well, unless its listing or its feed was cleared since.
//!
//! A part of the tape itself may be missing, too: its beginning, or what a merge lacked. Then the words of a feed that
//! marks its books itself are missing as well, so this concerns the books of such a feed, too.

use crate::listing::ListingKey;
use crate::state::State;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use unitape_model::InstrumentId;

/// The policy for a source's events, from its definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceBookPolicy {
    /// Books are made of them.
    #[default]
    Plain,
    /// No books of orders can be made of them.
    Bookless,
    /// They say themselves which books have lost something.
    Marked,
}

impl SourceBookPolicy {
    /// By the word of the source's definition.
    pub fn from_word(word: &str) -> Self {
        match word {
            "none" => Self::Bookless,
            "marked" => Self::Marked,
            _ => Self::Plain,
        }
    }
}

/// The losses of each feed.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageLossTable {
    /// The feed of a source, and what its events are.
    sources: HashMap<u32, (u32, SourceBookPolicy), FxBuildHasher>,
    by_name: HashMap<Box<str>, u32>,
    feeds: Vec<FeedLossState>,
    /// By feed, venue and instrument; venue 0 is any.
    named: HashMap<(u32, u16, InstrumentId), u64, FxBuildHasher>,
    /// The number of the last loss.
    pub count: u64,
    /// Books were cleared or recovered so often.
    pub cleared: u64,
    /// Whether a source is [`SourceBookPolicy::Bookless`].
    pub any_bookless: bool,
    /// A part of the tape is missing that had events of any feed, so a source without a definition has lost something, too.
    any_lost: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct FeedLossState {
    /// Number of the last loss that may concern any book; of any basis, and of orders alone.
    lost: [u64; 2],
    /// `cleared` and one more when its books were last marked.
    marked: [u64; 2],
    /// Number of the last missing part of the tape that may concern any book; 0 after a recovery of the whole feed.
    part: u64,
}

/// Listings of which a loss is remembered by name.
const NAMED_MAX: usize = 1 << 16;

impl MessageLossTable {
    /// A source is of this feed.
    pub fn define(&mut self, source: u32, feed: &str, kind: SourceBookPolicy) {
        let number = match self.by_name.get(feed) {
            Some(number) => *number,
            None => {
                self.feeds.push(FeedLossState::default());
                let number = self.feeds.len() as u32 - 1;
                self.by_name.insert(feed.into(), number);
                number
            }
        };
        self.sources.insert(source, (number, kind));
        self.any_bookless |= kind == SourceBookPolicy::Bookless;
    }

    /// The feed of a source; a source that no definition names is a feed of its own.
    pub fn feed(&mut self, source: u32) -> u32 {
        if let Some((feed, _)) = self.sources.get(&source) {
            return *feed;
        }
        self.define(source, &format!("#{source}"), SourceBookPolicy::Plain);
        let feed = self.sources[&source].0;
        if self.any_lost {
            self.lose_part(feed);
        }
        feed
    }

    /// A part of the tape is missing that may have had events of a feed. Returns false if all books of the feed are marked.
    pub fn lose_part(&mut self, feed: u32) -> bool {
        let is_new = self.lose(feed, false);
        self.feeds[feed as usize].part = self.count;
        is_new
    }

    /// A part of the tape is missing that may have had events of all feeds that are defined.
    pub fn lose_part_of_all(&mut self) {
        self.any_lost = true;
        (0..self.feeds.len() as u32).for_each(|feed| _ = self.lose_part(feed));
        if self.feeds.is_empty() {
            self.feed(0);
        }
    }

    /// Returns whether a part of the tape is missing that no recovery of its whole feed followed.
    pub fn lacks_part(&self) -> bool {
        self.feeds.iter().any(|feed| feed.part > 0)
    }

    /// The policy for the events of a source.
    pub fn kind(&self, source: u32) -> SourceBookPolicy {
        self.sources.get(&source).map_or(SourceBookPolicy::Plain, |s| s.1)
    }

    /// A feed has lost something that may concern any of its books, or any of its books of orders; false when all that are
    /// there are marked already.
    pub fn lose(&mut self, feed: u32, orders_only: bool) -> bool {
        self.count += 1;
        let (of, count, mark) = (&mut self.feeds[feed as usize], self.count, self.cleared + 1);
        let n = usize::from(orders_only);
        of.lost[n] = count;
        let known = of.marked[n] == mark || of.marked[0] == mark;
        of.marked[n] = mark;
        !known
    }

    /// A feed has lost something of this listing.
    pub fn lose_named(&mut self, feed: u32, venue: u16, instrument: InstrumentId) {
        self.count += 1;
        let key = (feed, venue, instrument);
        if self.named.len() < NAMED_MAX || self.named.contains_key(&key) {
            self.named.insert(key, self.count);
        } else {
            // Too many to distinguish: any may be it.
            self.feeds[feed as usize].lost[0] = self.count;
        }
    }

    /// The listings of which losses are remembered by name; venue 0 is any.
    pub fn named_listings(&self) -> impl Iterator<Item = ListingKey> {
        self.named.keys().map(|&(_, venue, instrument)| ListingKey { venue, instrument })
    }

    /// The number of the last loss of a source's feed that concerns this listing, 0 for none.
    pub fn last(&mut self, source: u32, of: ListingKey, orders: bool) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let feed = self.feed(source);
        let losses = self.feeds[feed as usize];
        if self.kind(source) == SourceBookPolicy::Marked {
            return losses.part;
        }
        let named = [of.venue, 0].map(|v| self.named.get(&(feed, v, of.instrument)).copied().unwrap_or(0));
        let all = if orders { losses.lost[0].max(losses.lost[1]) } else { losses.lost[0] };
        all.max(named[0]).max(named[1])
    }

    /// Whether every source is of a feed that is there.
    pub fn is_consistent(&self) -> bool {
        let feeds = self.sources.values().map(|(feed, _)| feed).chain(self.by_name.values());
        feeds.into_iter().all(|feed| (*feed as usize) < self.feeds.len())
    }

    /// Ends all losses of a feed's books.
    pub fn recover(&mut self, source: u32) {
        self.cleared += 1;
        let feed = self.feed(source);
        let losses = &mut self.feeds[feed as usize];
        (losses.lost, losses.part) = ([0; 2], 0);
    }
}

crate::state::state!(FeedLossState { lost, marked, part });
crate::state::state!(MessageLossTable {
    sources,
    by_name,
    feeds,
    named,
    count,
    cleared,
    any_bookless,
    any_lost
});

impl State for SourceBookPolicy {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u8).put(out);
    }

    fn get(input: &mut &[u8]) -> Option<Self> {
        let number = u8::get(input)?;
        [Self::Plain, Self::Bookless, Self::Marked].into_iter().find(|policy| *policy as u8 == number)
    }
}
