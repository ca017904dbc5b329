//! Replays the best prices of many banks from a tape: each change, and the books after the last event.

use crate::Error;
use crate::replay::{BookMoment, ReplayOutcome, oldest};
use std::path::Path;
use unitape_book::fx::{FxBooks, FxOptions, PriceListener, TapeFx};
use unitape_model::{DefinitionTable, Event, Position};
use unitape_query::address::EventAddress;
use unitape_query::follow::{FollowOutcome, TapeFlaws, TapeFollower};
use unitape_tape::{ReadOptions, Reader};

/// A replay of the quotes of a tape.
///
/// ```no_run
/// use unitape_book::fx::FxOptions;
/// use unitape_model::Side;
/// use unitape_run::{fx::FxReplay, replay::ReplayOutcome};
///
/// let mut replay = FxReplay::open("tape".as_ref(), Default::default(), FxOptions::default())?;
/// let mut print = |price: &unitape_book::fx::BestPrice<'_>| println!("{} {:?}", price.pair, price.best(Side::Buy));
/// while replay.step(&mut print)? != ReplayOutcome::AtEnd {}
/// println!("{} pairs and dates have quotes", replay.books().books().len());
/// # Ok::<(), unitape_run::Error>(())
/// ```
#[derive(Debug)]
pub struct FxReplay {
    follower: TapeFollower,
    options: FxOptions,
    tape: TapeFx,
    book_moment: BookMoment,
    oldest_address: EventAddress,
}

impl FxReplay {
    /// Begins before the oldest event of the tape in `dir`.
    ///
    /// # Errors
    /// Fails if an option is invalid, or if the tape or its log of definitions cannot be read.
    pub fn open(dir: &Path, read: ReadOptions, options: FxOptions) -> Result<Self, Error> {
        let (follower, names) = TapeFollower::open(dir, read)?;
        let oldest_address = oldest(&follower);
        let tape = TapeFx::with_names(options.clone(), names)?;
        Ok(Self { follower, options, tape, book_moment: BookMoment::default(), oldest_address })
    }

    /// Applies the next event, and the bookkeeping before it. Calls `listener` for each best price that it changed.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read.
    pub fn step(&mut self, listener: &mut PriceListener<'_>) -> Result<ReplayOutcome, Error> {
        loop {
            let (ordinal, frame) = match self.follower.next_step()? {
                FollowOutcome::Frame { ordinal, frame } => (ordinal, frame),
                FollowOutcome::AtEnd => return Ok(ReplayOutcome::AtEnd),
                FollowOutcome::Rewound { from, to } => return self.rewind_replay(from, to),
            };
            let (position, is_meta) = (frame.position, frame.header.is_meta());
            if !is_meta {
                let ts = Event::new(frame.bytes).map(|event| event.ts_event().0);
                self.book_moment =
                    BookMoment { seq: ordinal + 1, position, ts: ts.unwrap_or(self.book_moment.ts) };
            }
            match self.tape.on_frame(position, frame.bytes, listener) {
                Ok(()) if is_meta => {}
                Ok(()) => return Ok(ReplayOutcome::Event),
                Err(unitape_book::Error::Frame { message, .. }) => {
                    self.follower.refuse_frame(position, &message)?
                }
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Returns the books after the last event.
    pub fn books(&self) -> &FxBooks {
        &self.tape.books
    }

    /// Returns the names of the tape.
    pub fn names(&self) -> &DefinitionTable {
        &self.tape.names
    }

    /// Returns the point that the books show.
    pub fn moment(&self) -> BookMoment {
        self.book_moment
    }

    /// Returns the oldest event that the tape had when it was opened, and the event's first frame. If it is not event
    /// 1, retention has removed earlier quotes.
    pub fn first(&self) -> EventAddress {
        self.oldest_address
    }

    /// Counts how often the tape was cut back while it was read.
    pub fn rewind_count(&self) -> u64 {
        self.follower.rewind_count()
    }

    /// Returns the flaws of the part of the tape that was read.
    pub fn flaws(&self) -> &TapeFlaws {
        self.follower.flaws()
    }

    /// Returns the reader, which knows the damage that it skipped.
    pub fn reader(&self) -> &Reader {
        self.follower.reader()
    }

    /// Begins again at the oldest frame: the books hold quotes that come again, or that the tape no longer has.
    fn rewind_replay(&mut self, from: Position, to: Position) -> Result<ReplayOutcome, Error> {
        let definitions = self.follower.reopen()?;
        self.tape = TapeFx::with_names(self.options.clone(), definitions)?;
        (self.book_moment, self.oldest_address) = (BookMoment::default(), oldest(&self.follower));
        Ok(ReplayOutcome::Rewound { from, to })
    }
}
