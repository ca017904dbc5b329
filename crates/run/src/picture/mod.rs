//! The picture of a book over time: levels as a grid of time and price, best prices, trades, and the lifelines of orders.
//!
//! ```text
//!  price ▲   ░░▒▒▒▒░░░░░░░░       asks        a column for each change of the book, or for each slice of time
//!        │   ──┐    ┌──────       best ask
//!        │     └────┘ ▲  ▼        trades, by the side of the aggressor
//!        │   ○────◇───────✕       an order: entered, amended, cancelled
//!        │   ▓▓▓▓▓▓▒▒▒▒░░░░       bids
//!        └─────────────────▶ time
//! ```
//!
//! A column shows the book of [`crate::replay::BookReplay`] at the time of the column, as `unitape book show --at TIME` prints it.
//! All numbers are exact; only [`svg`](Picture::svg) computes with floating point, to place its shapes.

mod json;
mod orders;
mod svg;

use crate::Error;
use crate::replay::{BookReplay, ReplayOutcome};
use orders::LifelineLog;
use std::path::Path;
use unitape_book::{Basis, BookOptions, ListingId, PriceLevel};
use unitape_model::{Event, EventField, EventKind, EventValue, NameKind, Position, Price, Side, UnixNanos};
use unitape_query::address::TapeStopPoint;
use unitape_tape::{ReadOptions, Reader, StartPosition};

pub use orders::{Lifeline, LifelineStep, StepKind};
pub use svg::escape;

/// The content of a picture and its bounds.
#[derive(Clone, Debug)]
pub struct PictureOptions {
    /// The instrument, by its name on the tape.
    pub instrument: String,
    /// The venue, by its name on the tape.
    pub venue: String,
    /// The first time.
    pub since: UnixNanos,
    /// The time at which it ends; events of this time are not in it.
    pub until: UnixNanos,
    /// Lifelines are drawn of the orders of these owners and traders; of all orders if this is empty.
    pub parties: Vec<String>,
    /// Columns of the grid at most.
    pub columns_max: usize,
    /// Levels of each side in a column at most.
    pub levels_max: usize,
    /// Lifelines, trades and steps of best prices at most, of each.
    pub marks_max: usize,
}

impl PictureOptions {
    /// Makes the options of a picture with the usual bounds: 400 columns, 60 levels a side, 5,000 marks of each kind.
    pub fn new(instrument: &str, venue: &str, since: UnixNanos, until: UnixNanos) -> Self {
        Self {
            instrument: instrument.to_owned(),
            venue: venue.to_owned(),
            since,
            until,
            parties: Vec::new(),
            columns_max: 400,
            levels_max: 60,
            marks_max: 5_000,
        }
    }
}

/// The book at the time of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureColumn {
    /// The time: the book is that after all events up to it.
    pub ts: UnixNanos,
    /// The bids, best first.
    pub bids: Vec<PriceLevel>,
    /// The asks, best first.
    pub asks: Vec<PriceLevel>,
}

/// A published best price, from this time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestStep {
    /// The time.
    pub ts: UnixNanos,
    /// The best bid, if there is one.
    pub bid: Option<Price>,
    /// The best ask, if there is one.
    pub ask: Option<Price>,
}

/// A trade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureTrade {
    /// Ordinal of the event.
    pub seq: u64,
    /// Its position.
    pub position: Position,
    /// Its time.
    pub ts: UnixNanos,
    /// The price.
    pub px: Price,
    /// The quantity, as text in its exact form.
    pub qty: String,
    /// The side of the aggressor, if the venue names it.
    pub aggressor: Option<Side>,
}

/// Marks that a picture has no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Changes of the book that a later one in the same column replaced.
    pub book_changes: u64,
    /// Steps of best prices.
    pub best_steps: u64,
    /// Trades.
    pub trades: u64,
    /// Lifelines of orders.
    pub lifelines: u64,
}

/// The picture of a book over time.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The instrument.
    pub instrument: String,
    /// The venue.
    pub venue: String,
    /// The first time.
    pub since: UnixNanos,
    /// The time at which it ends.
    pub until: UnixNanos,
    /// The data from which the columns are made, or `None` if there is no book.
    pub basis: Option<Basis>,
    /// The columns, in order of time. A book holds until the next column.
    pub columns: Vec<PictureColumn>,
    /// The published best prices, in order of time.
    pub best: Vec<BestStep>,
    /// The trades.
    pub trades: Vec<PictureTrade>,
    /// The orders.
    pub lifelines: Vec<Lifeline>,
    /// Marks without room.
    pub left_out: LeftOut,
    /// Whether retention has removed events that the picture or its books need.
    pub lacks_beginning: bool,
    /// Whether a part of the tape is missing that its books may need: its beginning, a damaged part, or a gap of a
    /// merge.
    pub lacks_part: bool,
}

impl Picture {
    /// Makes the picture of a part of the tape in `dir`.
    ///
    /// # Errors
    /// Fails if the tape is damaged or cannot be read, if it has no such instrument or venue, or if the part is empty.
    pub fn read(dir: &Path, options: &PictureOptions, read: ReadOptions) -> Result<Self, Error> {
        if options.since >= options.until {
            return Err(Error::Picture { reason: "it ends before it begins".to_owned() });
        }
        let mut replay = BookReplay::open(dir, read, BookOptions::default())?;
        let mut events = Reader::open_with(dir, StartPosition::Oldest, read)?;
        let time_before = UnixNanos(options.since.0.saturating_sub(1));
        _ = replay.seek(TapeStopPoint::Time(time_before.0))?;
        let mut maker = PictureMaker::new(options);
        maker.add_column(&replay, options.since);
        maker.add_best(&replay, options.since);
        let stop_point = TapeStopPoint::Time(options.until.0 - 1);
        loop {
            match replay.step_to(stop_point)? {
                ReplayOutcome::Event => {}
                ReplayOutcome::Reached | ReplayOutcome::AtEnd => break,
                ReplayOutcome::Rewound { from, to } => {
                    return Err(unitape_tape::Error::Rewound { from, to }.into());
                }
            }
            maker.on_event(&replay, &mut events)?;
        }
        maker.finish_picture(&replay)
    }
}

/// The time of a picture in as many slices as it has columns.
struct TimeSlices {
    start_ns: i128,
    end_ns: i128,
    count: i128,
}

impl TimeSlices {
    fn new(options: &PictureOptions) -> Self {
        let (since, until) = (i128::from(options.since.0), i128::from(options.until.0));
        Self { start_ns: since, end_ns: until, count: options.columns_max as i128 }
    }

    /// Returns the number of the slice that `ts` is in.
    fn index_of(&self, ts: UnixNanos) -> i128 {
        (i128::from(ts.0) - self.start_ns) * self.count / (self.end_ns - self.start_ns)
    }
}

struct PictureMaker<'a> {
    options: &'a PictureOptions,
    listing: Option<ListingId>,
    book_basis: Option<Basis>,
    columns: Vec<PictureColumn>,
    /// Columns have a slice of time each, because there were more changes than columns.
    is_sampled: bool,
    /// The greatest time so far. A column covers all events up to its time, including late events.
    latest_time: UnixNanos,
    best: Vec<BestStep>,
    trades: Vec<PictureTrade>,
    orders: LifelineLog,
    left_out: LeftOut,
}

impl<'a> PictureMaker<'a> {
    fn new(options: &'a PictureOptions) -> Self {
        Self {
            options,
            listing: None,
            book_basis: None,
            columns: Vec::new(),
            is_sampled: false,
            latest_time: options.since,
            best: Vec::new(),
            trades: Vec::new(),
            orders: LifelineLog::new(options.parties.clone(), options.marks_max),
            left_out: LeftOut::default(),
        }
    }

    fn find_listing(&mut self, replay: &BookReplay) -> Option<ListingId> {
        if self.listing.is_none() {
            let (names, books) = (&replay.books().names, &replay.books().books);
            let venue = names.get(NameKind::Venue, self.options.venue.as_bytes())?;
            let instrument = names.get(NameKind::Instrument, self.options.instrument.as_bytes())?;
            self.listing = books.find(venue as u16, unitape_model::InstrumentId(instrument));
        }
        self.listing
    }

    fn on_event(&mut self, replay: &BookReplay, events: &mut Reader) -> Result<(), Error> {
        let moment = replay.moment();
        self.latest_time =
            self.latest_time.max(UnixNanos(moment.ts)).min(UnixNanos(self.options.until.0 - 1));
        if let Some(listing) = self.find_listing(replay)
            && replay.changes().iter().any(|change| change.listing == listing)
        {
            self.add_column(replay, self.latest_time);
            self.add_best(replay, self.latest_time);
        }
        let frame = events.frame_at(moment.position)?;
        let Some(event) = Event::new(frame.bytes) else { return Ok(()) };
        let definitions = &replay.books().names;
        let is_here = definitions.get(NameKind::Venue, self.options.venue.as_bytes())
            == Some(event.venue().into())
            && definitions.get(NameKind::Instrument, self.options.instrument.as_bytes())
                == Some(event.instrument().0);
        match event.kind() {
            EventKind::Trade if is_here => self.add_trade(&event, moment.seq, moment.position),
            EventKind::OrderNew | EventKind::OrderAmend | EventKind::OrderCancel | EventKind::Exec => {
                self.orders.on_event(&event, moment.seq, moment.position, is_here, definitions.dictionary());
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the present book as the column of `ts`; the last column of that time or slice is replaced.
    fn add_column(&mut self, replay: &BookReplay, ts: UnixNanos) {
        let Some(listing) = self.find_listing(replay) else {
            if self.columns.is_empty() {
                self.columns.push(PictureColumn { ts, bids: Vec::new(), asks: Vec::new() });
            }
            return;
        };
        let view = replay.books().books.listing(listing);
        // The deepest data that there is; a book of orders stays one when it is empty.
        let rank = |basis: Basis| [Basis::Orders, Basis::Levels, Basis::Bbo].iter().position(|b| *b == basis);
        let deepest = view.books().map(|book| book.basis()).min_by_key(|basis| rank(*basis));
        self.book_basis = [self.book_basis, deepest].into_iter().flatten().min_by_key(|basis| rank(*basis));
        let Some(basis) = self.book_basis else { return };
        let depth = view.book(basis).depth(self.options.levels_max);
        let column = PictureColumn { ts, bids: depth.bids, asks: depth.asks };
        let slices = TimeSlices::new(self.options);
        match self.columns.last_mut() {
            Some(last) if last.ts == ts => *last = column,
            Some(last) if self.is_sampled && slices.index_of(last.ts) == slices.index_of(ts) => {
                *last = column;
                self.left_out.book_changes += 1;
            }
            _ => self.columns.push(column),
        }
        if !self.is_sampled && self.columns.len() > self.options.columns_max {
            self.is_sampled = true;
            let columns = std::mem::take(&mut self.columns);
            let column_count = columns.len();
            for column in columns {
                match self.columns.last_mut() {
                    Some(last) if slices.index_of(last.ts) == slices.index_of(column.ts) => *last = column,
                    _ => self.columns.push(column),
                }
            }
            self.left_out.book_changes += (column_count - self.columns.len()) as u64;
        }
    }

    fn add_best(&mut self, replay: &BookReplay, ts: UnixNanos) {
        let Some(listing) = self.find_listing(replay) else { return };
        let bbo = replay.books().books.listing(listing).bbo();
        let step = BestStep { ts, bid: bbo.bid.map(|level| level.px), ask: bbo.ask.map(|level| level.px) };
        let has_room = self.best.len() < self.options.marks_max;
        match self.best.last_mut() {
            Some(last) if (last.bid, last.ask) == (step.bid, step.ask) => {}
            Some(last) if last.ts == ts => *last = step,
            _ if has_room => self.best.push(step),
            _ => self.left_out.best_steps += 1,
        }
    }

    fn add_trade(&mut self, event: &Event<'_>, seq: u64, position: Position) {
        if self.trades.len() >= self.options.marks_max {
            self.left_out.trades += 1;
            return;
        }
        let px = match event.field(EventField::Px, &mut [0; 36]) {
            Some(EventValue::Price(px)) => px,
            _ => return,
        };
        let qty = match event.field(EventField::Qty, &mut [0; 36]) {
            Some(EventValue::Decimal(qty)) => qty.to_string(),
            _ => String::new(),
        };
        let aggressor = orders::side_of(event);
        self.trades.push(PictureTrade { seq, position, ts: event.ts_event(), px, qty, aggressor });
    }

    fn finish_picture(mut self, replay: &BookReplay) -> Result<Picture, Error> {
        let definitions = &replay.books().names;
        for (dict, name) in
            [(NameKind::Venue, &self.options.venue), (NameKind::Instrument, &self.options.instrument)]
        {
            if definitions.get(dict, name.as_bytes()).is_none() {
                let reason = format!("the tape has no {} {name} before its end", dict.name());
                return Err(Error::Picture { reason });
            }
        }
        self.left_out.lifelines = self.orders.left_out();
        Ok(Picture {
            instrument: self.options.instrument.clone(),
            venue: self.options.venue.clone(),
            since: self.options.since,
            until: self.options.until,
            basis: self.book_basis,
            columns: self.columns,
            best: self.best,
            trades: self.trades,
            lifelines: self.orders.finish(),
            left_out: self.left_out,
            lacks_beginning: replay.first().seq > 1,
            lacks_part: replay.books().books.lacks_part(),
        })
    }
}
