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
//! A part of the tape itself may be missing: its beginning, or a part that a merge lacked. Then the marks of a feed
//! that marks its books itself are missing as well. So such a part concerns the books of these feeds, too.

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
    /// Returns the policy that the word in the source's definition names.
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
    /// The feed of a source, and the policy for its events.
    sources: HashMap<u32, (u32, SourceBookPolicy), FxBuildHasher>,
    by_name: HashMap<Box<str>, u32>,
    feeds: Vec<FeedLossState>,
    /// By feed, venue and instrument; venue 0 is any.
    named: HashMap<(u32, u16, InstrumentId), u64, FxBuildHasher>,
    /// The number of the last loss.
    pub count: u64,
    /// Books were cleared or recovered so often.
    pub clear_count: u64,
    /// Whether a source is [`SourceBookPolicy::Bookless`].
    pub any_bookless: bool,
    /// A part of the tape is missing that had events of any feed. So a source without a definition has also lost
    /// events.
    any_lost: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct FeedLossState {
    /// Number of the last loss that may concern any book; of any basis, and of orders alone.
    loss_numbers: [u64; 2],
    /// `clear_count` and one more when its books were last marked.
    marked_clears: [u64; 2],
    /// Number of the last missing part of the tape that may concern any book; 0 after a recovery of the whole feed.
    gap_number: u64,
}

/// Listings of which a loss is remembered by name.
const NAMED_MAX: usize = 1 << 16;

impl MessageLossTable {
    /// Records that a source belongs to this feed.
    pub fn define_source(&mut self, source: u32, feed: &str, kind: SourceBookPolicy) {
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

    /// Returns the feed of a source. A source that no definition names becomes a feed by itself.
    pub fn feed(&mut self, source: u32) -> u32 {
        if let Some((feed, _)) = self.sources.get(&source) {
            return *feed;
        }
        self.define_source(source, &format!("#{source}"), SourceBookPolicy::Plain);
        let feed = self.sources[&source].0;
        if self.any_lost {
            self.lose_part(feed);
        }
        feed
    }

    /// Records that a part of the tape is missing that may have had events of this feed. Returns false if all books of
    /// the feed are marked already.
    pub fn lose_part(&mut self, feed: u32) -> bool {
        let is_new = self.lose(feed, false);
        self.feeds[feed as usize].gap_number = self.count;
        is_new
    }

    /// Records that a part of the tape is missing that may have had events of every defined feed.
    pub fn lose_part_of_all(&mut self) {
        self.any_lost = true;
        (0..self.feeds.len() as u32).for_each(|feed| _ = self.lose_part(feed));
        if self.feeds.is_empty() {
            self.feed(0);
        }
    }

    /// Returns whether a part of the tape is missing that no recovery of its whole feed followed.
    pub fn lacks_part(&self) -> bool {
        self.feeds.iter().any(|feed| feed.gap_number > 0)
    }

    /// Returns the policy for the events of a source.
    pub fn kind(&self, source: u32) -> SourceBookPolicy {
        self.sources.get(&source).map_or(SourceBookPolicy::Plain, |s| s.1)
    }

    /// Records a loss that may concern any book of a feed, or any book of orders if `orders_only`. Returns false if all
    /// these books are marked already.
    pub fn lose(&mut self, feed: u32, orders_only: bool) -> bool {
        self.count += 1;
        let (feed_state, count, mark) = (&mut self.feeds[feed as usize], self.count, self.clear_count + 1);
        let n = usize::from(orders_only);
        feed_state.loss_numbers[n] = count;
        let is_known = feed_state.marked_clears[n] == mark || feed_state.marked_clears[0] == mark;
        feed_state.marked_clears[n] = mark;
        !is_known
    }

    /// Records a loss of a feed that concerns this listing only.
    pub fn lose_named(&mut self, feed: u32, venue: u16, instrument: InstrumentId) {
        self.count += 1;
        let key = (feed, venue, instrument);
        if self.named.len() < NAMED_MAX || self.named.contains_key(&key) {
            self.named.insert(key, self.count);
        } else {
            // Too many to distinguish: any may be it.
            self.feeds[feed as usize].loss_numbers[0] = self.count;
        }
    }

    /// Returns the listings whose losses are recorded by name. Venue 0 stands for any venue.
    pub fn named_listings(&self) -> impl Iterator<Item = ListingKey> {
        self.named.keys().map(|&(_, venue, instrument)| ListingKey { venue, instrument })
    }

    /// Returns the number of the last loss of a source's feed that concerns this listing, or 0 if there is no loss.
    pub fn last_loss(&mut self, source: u32, key: ListingKey, orders: bool) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let feed = self.feed(source);
        let losses = self.feeds[feed as usize];
        if self.kind(source) == SourceBookPolicy::Marked {
            return losses.gap_number;
        }
        let named_losses =
            [key.venue, 0].map(|v| self.named.get(&(feed, v, key.instrument)).copied().unwrap_or(0));
        let all =
            if orders { losses.loss_numbers[0].max(losses.loss_numbers[1]) } else { losses.loss_numbers[0] };
        all.max(named_losses[0]).max(named_losses[1])
    }

    /// Returns whether every source belongs to an existing feed.
    pub fn is_consistent(&self) -> bool {
        let feeds = self.sources.values().map(|(feed, _)| feed).chain(self.by_name.values());
        feeds.into_iter().all(|feed| (*feed as usize) < self.feeds.len())
    }

    /// Ends all losses of a feed's books.
    pub fn recover_feed(&mut self, source: u32) {
        self.clear_count += 1;
        let feed = self.feed(source);
        let losses = &mut self.feeds[feed as usize];
        (losses.loss_numbers, losses.gap_number) = ([0; 2], 0);
    }
}

crate::state::state!(FeedLossState { loss_numbers, marked_clears, gap_number });
crate::state::state!(MessageLossTable {
    sources,
    by_name,
    feeds,
    named,
    count,
    clear_count,
    any_bookless,
    any_lost
});

impl State for SourceBookPolicy {
    fn encode(&self, out: &mut Vec<u8>) {
        (*self as u8).encode(out);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let number = u8::decode(input)?;
        [Self::Plain, Self::Bookless, Self::Marked].into_iter().find(|policy| *policy as u8 == number)
    }
}
