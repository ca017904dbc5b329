//! The engine: how each event and each timer changes the books and the best prices.

use super::books::{BookTable, FxCounters, FxOptions, PairReference, Pairs, QuoteRefusal, Size};
use super::exact::Units;
use super::pair::{PairName, accepts_date};
use super::publishers::Publishers;
use super::quote::{Quote, QuoteId, QuoteSlot};
use super::side::{BankBests, SideOffer, SpikeRule};
use super::timers::{BankSwitch, DueTimer, Timers};
use super::view::{BestPrice, FxBookView, PriceListener};
use crate::error::Error;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use unitape_model::{
    CivilDate, Decimal, Event, EventField, EventKind, EventValue, InlineId, Price, Side, UnixNanos, flags,
};

/// The books of quotes of all pairs and dates, with their best prices.
///
/// Names come first: [`FxBooks::define_publisher`] and [`FxBooks::define_instrument`] name the ids in events.
#[derive(Clone, Debug)]
pub struct FxBooks {
    options: FxOptions,
    /// In order, each once.
    sizes: Vec<Size>,
    publishers: Publishers,
    pairs: Pairs,
    books: BookTable,
    timers: Timers,
    /// Rule 18: the latest control of each switch, if it disables; its end, if it has one.
    switch_ends: HashMap<BankSwitch, Option<i64>, FxBuildHasher>,
    /// Rule 4: the running maximum of the times of events whose clock is not ahead.
    now: Option<i64>,
    /// The books that something happened to since they were evaluated.
    touched_books: Vec<u32>,
    quotes: u32,
    id_bytes: usize,
    counters: FxCounters,
    bank_bests: BankBests,
    offer: SideOffer,
}

impl FxBooks {
    /// Makes books without quotes.
    ///
    /// # Errors
    /// Fails if there is no size, if a size is not above zero, or if a median would have no other bank.
    pub fn new(options: FxOptions) -> Result<Self, Error> {
        let size = |decimal: &Decimal| {
            let units = Units::from_qty(*decimal).ok_or(Error::Size { size: *decimal })?;
            Ok(Size { decimal: *decimal, units })
        };
        let mut sizes = options.sizes.iter().map(size).collect::<Result<Vec<_>, Error>>()?;
        // Rule 3: sizes are ordered by value, and equal ones are one.
        sizes.sort_unstable_by_key(|size| size.units);
        sizes.dedup_by_key(|size| size.units);
        if sizes.is_empty() {
            return Err(Error::NoSize);
        }
        if options.spike_banks == 0 {
            return Err(Error::SpikeBanks);
        }
        Ok(Self {
            options,
            sizes,
            publishers: Publishers::default(),
            pairs: Pairs::default(),
            books: BookTable::default(),
            timers: Timers::default(),
            switch_ends: HashMap::default(),
            now: None,
            touched_books: Vec::new(),
            quotes: 0,
            id_bytes: 0,
            counters: FxCounters::default(),
            bank_bests: BankBests::default(),
            offer: SideOffer::default(),
        })
    }

    /// Defines the name of a bank's or venue's id. An id keeps its first name.
    pub fn define_publisher(&mut self, id: u16, name: &str) {
        if !self.publishers.is_named(id) {
            self.publishers.define_publisher(id, name);
        }
    }

    /// Defines the name of an instrument's id. Several ids may name the same pair, in either direction.
    pub fn define_instrument(&mut self, id: u32, name: &str) {
        self.pairs.define_pair(id, name);
    }

    /// Applies an event. Calls `listener` for the best prices that timers change before the event. After the last event
    /// of a message, calls it for the best prices that the message changed.
    pub fn on_event(&mut self, event: &Event<'_>, listener: &mut PriceListener<'_>) {
        let header = event.header();
        let ts = event.ts_event().0;
        // Rule 4: `now` is the running maximum over all events but those whose clock is ahead; 0 until there is one.
        let is_ahead = header.flags() & flags::CLOCK_AHEAD != 0;
        let now = match self.now {
            Some(now) if is_ahead => now,
            Some(now) => now.max(ts),
            None if is_ahead => 0,
            None => ts,
        };
        self.fire_timers(now, listener);
        if !is_ahead {
            self.now = Some(now);
        }
        match event.kind() {
            EventKind::Quote => self.on_quote(event, now),
            EventKind::Status => self.on_status(event, now),
            EventKind::Control => self.on_control(event, now),
            // Rule 13: deals and rejects leave book and best price alone.
            _ => {}
        }
        if header.is_last() {
            self.end_message(listener);
        }
    }

    /// Evaluates the books that a message changed, and calls `listener` for each changed best price.
    /// [`FxBooks::on_event`] does so after the last event of a message.
    pub fn end_message(&mut self, listener: &mut PriceListener<'_>) {
        if !self.touched_books.is_empty() {
            self.evaluate_books(self.now().0, listener);
        }
    }

    /// Returns `now` after the last event, in nanoseconds since 1970. Rule 4: the running maximum of the times of events.
    #[must_use]
    pub fn now(&self) -> UnixNanos {
        UnixNanos(self.now.unwrap_or(0))
    }

    /// Returns the books that have quotes, in the order of rule 3: by pair, then by date.
    #[must_use]
    pub fn books(&self) -> Vec<FxBookView<'_>> {
        let mut books: Vec<_> = self.books.all().iter().filter(|book| !book.is_empty()).collect();
        books.sort_unstable_by_key(|book| (book.name, book.value_date));
        books.into_iter().map(|book| FxBookView { book, publishers: &self.publishers }).collect()
    }

    /// Returns the pairs that quotes or controls named so far, in their order.
    #[must_use]
    pub fn pairs(&self) -> Vec<PairName> {
        let mut names: Vec<_> = self.pairs.pair_list.iter().map(|pair| pair.name).collect();
        names.sort_unstable();
        names
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> &FxCounters {
        &self.counters
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &FxOptions {
        &self.options
    }

    fn on_quote(&mut self, event: &Event<'_>, now: i64) {
        self.counters.quotes += 1;
        if let Err(reason) = self.apply_quote(event, now) {
            self.counters.refused[reason as usize] += 1;
        }
    }

    /// Places, withdraws or refuses a quote.
    fn apply_quote(&mut self, event: &Event<'_>, now: i64) -> Result<(), QuoteRefusal> {
        // Rule 9: without bank, pair or side it changes nothing. Rule 7: also a refused quote of a bank counts as heard.
        let publisher = self.publisher_of(event).ok_or(QuoteRefusal::NoBank)?;
        self.record_heard(publisher, now);
        let pair = self.pairs.find_pair(event.instrument().0, self.options.pairs_max)?;
        let fields = QuoteFields::from_event(event);
        // Rule 12: a quote the other way swaps its side, also in withdrawals.
        let side = fields.side.map(|side| if pair.inverted { side.opposite() } else { side });
        if fields.withdrawn {
            self.withdraw_quotes(publisher, pair, side, &fields, event);
            return Ok(());
        }
        let side = side.ok_or(QuoteRefusal::NoSide)?;
        // Rule 11: a missing date means spot, by the quote's own time; it is not checked.
        let ts = event.ts_event();
        let value_date = fields.value_date.unwrap_or_else(|| pair.name.spot_date(ts));
        let slot = QuoteSlot {
            publisher,
            tier: fields.tier_number.unwrap_or(0),
            full_amount: fields.full_amount == Some(true),
        };
        // Rules 6, 8 and 9: a quote replaces the one in its slot, and a bad one empties it.
        let book = self.find_book(pair.pair, value_date);
        if let Some(book) = book {
            self.empty_slot(book, side, &slot);
        }
        let px = fields.px.filter(|px| px.0 > 0).ok_or(QuoteRefusal::Price)?;
        let qty = fields.qty.ok_or(QuoteRefusal::Quantity)?;
        let base =
            if pair.inverted { Units::from_inverted_qty(qty, px.0 as u64) } else { Units::from_qty(qty) };
        let base = base.ok_or(QuoteRefusal::Quantity)?;
        if fields.indicative {
            return Err(QuoteRefusal::Indicative);
        }
        if fields.value_date.is_some_and(|date| !accepts_date(date, ts)) {
            return Err(QuoteRefusal::ValueDate);
        }
        // Rule 5: expiry comes before an event of the same nanosecond.
        if fields.valid_until.is_some_and(|until| until <= now) {
            return Err(QuoteRefusal::Expired);
        }
        let mut scratch = [0; 36];
        let id = quote_id(event, &mut scratch).map_or(QuoteId::Missing, QuoteId::new);
        let quote = Quote {
            slot,
            px,
            inverted: pair.inverted,
            qty,
            base_units: base,
            id,
            placed_ns: now,
            valid_until: fields.valid_until,
            off_reason: None,
            was_spike: false,
        };
        self.insert_quote(pair, value_date, book, side, quote)
    }

    /// Puts a quote into its slot, which is empty.
    fn insert_quote(
        &mut self,
        pair: PairReference,
        value_date: CivilDate,
        book: Option<u32>,
        side: Side,
        quote: Quote,
    ) -> Result<(), QuoteRefusal> {
        let id_bytes = self.id_bytes + quote.id.heap_bytes();
        let is_full = match book {
            Some(book) => {
                let quotes = self.books.get(book).sides[side.index()].quotes();
                quotes.len() >= self.options.quotes_per_side_max as usize
            }
            None => {
                let dates = self.pairs.pair_list[pair.pair as usize].books.len();
                dates >= self.options.dates_per_pair_max as usize
            }
        };
        if is_full || self.quotes >= self.options.quotes_max || id_bytes > self.options.id_bytes_max {
            return Err(QuoteRefusal::NoRoom);
        }
        let book = book.unwrap_or_else(|| self.add_book(pair, value_date));
        self.quotes += 1;
        self.id_bytes = id_bytes;
        self.publishers.get_mut(quote.slot.publisher).add_quote(book);
        if let Some(expiry_ns) = quote.valid_until {
            self.expect_expiry(book, expiry_ns);
        }
        let publishers = &self.publishers;
        let sides = &mut self.books.get_mut(book).sides;
        sides[side.index()].insert(quote, side, |id| publishers.name(id));
        self.mark_touched(book);
        Ok(())
    }

    fn empty_slot(&mut self, book: u32, side: Side, slot: &QuoteSlot) {
        let quote = self.books.get_mut(book).sides[side.index()].remove(slot);
        if let Some(quote) = quote {
            self.quotes -= 1;
            self.id_bytes -= quote.id.heap_bytes();
            self.publishers.get_mut(slot.publisher).remove_quote(book);
            self.mark_touched(book);
        }
    }

    /// Empties the slots of a bank and pair that match every field of a withdrawal (rule 10).
    fn withdraw_quotes(
        &mut self,
        publisher: u16,
        pair: PairReference,
        side: Option<Side>,
        fields: &QuoteFields,
        event: &Event<'_>,
    ) {
        let mut scratch = [0; 36];
        let id = quote_id(event, &mut scratch);
        for n in 0..self.pairs.pair_list[pair.pair as usize].books.len() {
            let (date, book) = self.pairs.pair_list[pair.pair as usize].books[n];
            if fields.value_date.is_none_or(|value_date| value_date == date) {
                self.remove_matching(book, |quote_side, quote| {
                    quote.slot.publisher == publisher
                        && side.is_none_or(|side| side == quote_side)
                        && fields.tier_number.is_none_or(|tier| tier == quote.slot.tier)
                        && fields.full_amount.is_none_or(|full| full == quote.slot.full_amount)
                        && id.is_none_or(|id| quote.id.get() == Some(id))
                });
            }
        }
    }

    /// Handles a status by rule 7: a heartbeat counts as heard, and a logout withdraws all quotes of the bank.
    fn on_status(&mut self, event: &Event<'_>, now: i64) {
        let Some(publisher) = self.publisher_of(event) else { return };
        self.record_heard(publisher, now);
        if field_passes(event, EventField::State, |state| state == "logout") {
            self.withdraw_all(publisher);
        }
    }

    /// Disables or enables a bank, or a bank in a pair (rule 18). The latest control of each switch counts.
    fn on_control(&mut self, event: &Event<'_>, now: i64) {
        let disables = field_passes(event, EventField::Action, |action| action == "disable");
        if !disables && !field_passes(event, EventField::Action, |action| action == "enable") {
            return;
        }
        let mut scratch = [0; 36];
        if let Some(EventValue::Bool(true)) = event.field(EventField::DryRun, &mut scratch) {
            return;
        }
        let Some(publisher) = self.publisher_of(event) else { return };
        let pair = match event.instrument().0 {
            0 => None,
            instrument => match self.pairs.find_pair(instrument, self.options.pairs_max) {
                Ok(pair) => Some(pair.pair),
                Err(reason) => {
                    self.counters.controls_no_room += u64::from(reason == QuoteRefusal::NoRoom);
                    return;
                }
            },
        };
        let switch_end = match event.field(EventField::Until, &mut scratch) {
            Some(EventValue::Nanos(until)) => Some(until.0),
            _ => None,
        };
        let switch = BankSwitch { publisher, pair };
        self.turn_on(switch);
        // One whose end is not after `now` ends at once.
        if disables && switch_end.is_none_or(|until| until > now) {
            if self.switch_ends.len() >= self.options.switches_max as usize {
                self.counters.controls_no_room += 1;
                return;
            }
            self.switch_ends.insert(switch, switch_end);
            self.publishers.get_mut(publisher).switches_off += 1;
            if let Some(switch_end) = switch_end {
                self.timers.control_ends.insert((switch_end, switch));
            }
        }
    }

    /// Ends the disabling control of a switch, if there is one, and marks the books that it concerns.
    fn turn_on(&mut self, switch: BankSwitch) {
        if let Some(old_end) = self.switch_ends.remove(&switch) {
            self.publishers.get_mut(switch.publisher).switches_off -= 1;
            if let Some(old_end) = old_end {
                self.timers.control_ends.remove(&(old_end, switch));
            }
        }
        self.touch_quoted(switch);
    }

    /// Fires the timers that are due at or before `now`, in due order (rule 4). Timers with the same due time fire
    /// together, and their prices carry the due time. A book that the current message has changed waits for the last
    /// event of the message (rule 1).
    fn fire_timers(&mut self, now: i64, listener: &mut PriceListener<'_>) {
        while let Some(due) = self.timers.next_due().filter(|due| *due <= now) {
            let waiting = std::mem::take(&mut self.touched_books);
            while let Some(timer) = self.timers.pop(due) {
                match timer {
                    DueTimer::Expiry(book) => self.expire_quotes(book, due),
                    DueTimer::Silence(publisher) => self.check_silence(publisher, due),
                    DueTimer::ControlEnd(switch) => self.turn_on(switch),
                }
            }
            self.evaluate_books(due, listener);
            if !waiting.is_empty() {
                self.touched_books = waiting;
            }
        }
    }

    /// Removes the quotes of a book that end at `due` (rule 5).
    fn expire_quotes(&mut self, book: u32, due: i64) {
        self.books.get_mut(book).expiry_due = None;
        self.remove_matching(book, |_, quote| quote.valid_until.is_some_and(|until| until <= due));
        let quotes = self.books.get(book).sides.iter().flat_map(|side| side.quotes());
        if let Some(next_expiry) = quotes.filter_map(|quote| quote.valid_until).min() {
            self.expect_expiry(book, next_expiry);
        }
    }

    /// Withdraws the quotes of a bank whose silence has lasted too long (rule 7).
    fn check_silence(&mut self, publisher: u16, due: i64) {
        let state = self.publishers.get_mut(publisher);
        state.silence_due = None;
        match silence_due(&self.options, state.heard_ns) {
            Some(later) if later > due => self.expect_silence(publisher, later),
            _ => self.withdraw_all(publisher),
        }
    }

    /// Records that a bank is heard at `now` (rule 7).
    fn record_heard(&mut self, publisher: u16, now: i64) {
        let state = self.publishers.get_mut(publisher);
        state.heard_ns = now;
        // A timer that is too early sets the next timer. A timer is too late only if the first events had a clock
        // ahead.
        if let Some(due) = silence_due(&self.options, now)
            && state.silence_due.is_none_or(|set| due < set)
        {
            self.expect_silence(publisher, due);
        }
    }

    fn expect_silence(&mut self, publisher: u16, due: i64) {
        if let Some(set) = self.publishers.get_mut(publisher).silence_due.replace(due) {
            self.timers.silence_ends.remove(&(set, publisher));
        }
        self.timers.silence_ends.insert((due, publisher));
    }

    /// Sets the timer of a book, unless it has an earlier one.
    fn expect_expiry(&mut self, index: u32, due: i64) {
        let book = self.books.get_mut(index);
        if book.expiry_due.is_some_and(|set| set <= due) {
            return;
        }
        if let Some(set) = book.expiry_due.replace(due) {
            self.timers.expiries.remove(&(set, index));
        }
        self.timers.expiries.insert((due, index));
    }

    /// Withdraws all quotes of a bank (rule 7).
    fn withdraw_all(&mut self, publisher: u16) {
        let books: Vec<u32> = self.publishers.get(publisher).books.keys().copied().collect();
        for book in books {
            self.remove_matching(book, |_, quote| quote.slot.publisher == publisher);
        }
    }

    /// Removes the quotes of a book that match.
    fn remove_matching(&mut self, index: u32, matches: impl Fn(Side, &Quote) -> bool) {
        let Self { books, publishers, quotes, id_bytes, .. } = self;
        let old_quotes = *quotes;
        for side in Side::BOTH {
            books.get_mut(index).sides[side.index()].remove_matching(
                |quote| matches(side, quote),
                |quote| {
                    *quotes -= 1;
                    *id_bytes -= quote.id.heap_bytes();
                    publishers.get_mut(quote.slot.publisher).remove_quote(index);
                },
            );
        }
        if *quotes < old_quotes {
            self.mark_touched(index);
        }
    }

    /// Marks the books in which a switch has quotes: these quotes may be on offer now, or no longer.
    fn touch_quoted(&mut self, switch: BankSwitch) {
        let mut books: Vec<u32> = self.publishers.get(switch.publisher).books.keys().copied().collect();
        books.retain(|book| switch.pair.is_none_or(|pair| self.books.get(*book).pair == pair));
        for book in books {
            self.books.get_mut(book).sides.iter_mut().for_each(|side| side.is_changed = true);
            self.mark_touched(book);
        }
    }

    fn mark_touched(&mut self, index: u32) {
        let book = self.books.get_mut(index);
        if !book.is_touched {
            book.is_touched = true;
            self.touched_books.push(index);
        }
    }

    /// Evaluates the books that something happened to, in the order of rule 3, and calls `listener` for each best price
    /// whose content is another one. Before its first price a book has printed that it has none.
    fn evaluate_books(&mut self, ts: i64, listener: &mut PriceListener<'_>) {
        let mut touched = std::mem::take(&mut self.touched_books);
        if touched.len() > 1 {
            touched.sort_unstable_by_key(|index| {
                let book = self.books.get(*index);
                (book.name, book.value_date)
            });
        }
        for &index in &touched {
            self.evaluate_book(index, ts, listener);
            if self.books.get(index).is_empty() {
                self.release_book(index);
            }
        }
        touched.clear();
        self.touched_books = touched;
    }

    fn evaluate_book(&mut self, index: u32, ts: i64, listener: &mut PriceListener<'_>) {
        let Self {
            options,
            sizes,
            publishers,
            switch_ends: switches,
            books,
            counters,
            bank_bests,
            offer,
            ..
        } = self;
        let book = books.get_mut(index);
        book.is_touched = false;
        let rule = SpikeRule {
            distance: i128::from(options.spike_pips) * i128::from(book.name.pip()),
            banks: options.spike_banks as usize,
        };
        let (publishers, pair) = (&*publishers, book.pair);
        let is_disabled = |publisher: u16| {
            let is_off = |pair| switches.contains_key(&BankSwitch { publisher, pair });
            publishers.get(publisher).switches_off > 0 && (is_off(None) || is_off(Some(pair)))
        };
        let is_changed = [0, 1].map(|side| std::mem::take(&mut book.sides[side].is_changed));
        for side in
            book.sides.iter_mut().zip(is_changed).filter_map(|(side, changed)| changed.then_some(side))
        {
            counters.spikes += side.mark_off(rule, is_disabled, bank_bests);
        }
        for (size, printed) in sizes.iter().zip(&mut book.printed) {
            let mut is_other = false;
            for (side, printed) in printed.iter_mut().enumerate().filter(|(side, _)| is_changed[*side]) {
                offer.evaluate(&book.sides[side], size.units);
                if offer != printed {
                    std::mem::swap(offer, printed);
                    is_other = true;
                }
            }
            if is_other {
                counters.prices += 1;
                listener(&BestPrice {
                    ts: UnixNanos(ts),
                    pair: book.name,
                    value_date: book.value_date,
                    size: size.decimal,
                    size_units: size.units,
                    sides: printed,
                    publishers,
                });
            }
        }
    }

    fn find_book(&self, pair: u32, value_date: CivilDate) -> Option<u32> {
        let books = &self.pairs.pair_list[pair as usize].books;
        let position = books.binary_search_by_key(&value_date, |(date, _)| *date).ok()?;
        Some(books[position].1)
    }

    fn add_book(&mut self, pair: PairReference, value_date: CivilDate) -> u32 {
        let index = self.books.add_book(pair, value_date, &self.sizes);
        let books = &mut self.pairs.pair_list[pair.pair as usize].books;
        let position = books.partition_point(|(date, _)| *date < value_date);
        books.insert(position, (value_date, index));
        index
    }

    fn release_book(&mut self, index: u32) {
        let book = self.books.get_mut(index);
        let (pair, value_date) = (book.pair, book.value_date);
        if let Some(set) = book.expiry_due.take() {
            self.timers.expiries.remove(&(set, index));
        }
        self.books.release_book(index);
        self.pairs.pair_list[pair as usize].books.retain(|(date, _)| *date != value_date);
    }

    /// Returns the bank of an event. Rule 8: `bank`, else `venue`; both together are one publisher on a tape.
    fn publisher_of(&self, event: &Event<'_>) -> Option<u16> {
        Some(event.venue()).filter(|id| *id != 0 && self.publishers.is_named(*id))
    }
}

/// Returns when the quotes of a bank are withdrawn that is not heard again; `None` is never.
fn silence_due(options: &FxOptions, heard: i64) -> Option<i64> {
    match i64::from(options.stale_ms) * 1_000_000 {
        0 => None,
        stale_ns => heard.checked_add(stale_ns),
    }
}

/// The fields of a quote, but its id.
struct QuoteFields {
    side: Option<Side>,
    tier_number: Option<u64>,
    px: Option<Price>,
    qty: Option<Decimal>,
    valid_until: Option<i64>,
    indicative: bool,
    full_amount: Option<bool>,
    withdrawn: bool,
    value_date: Option<CivilDate>,
}

impl QuoteFields {
    fn from_event(event: &Event<'_>) -> Self {
        let mut scratch = [0; 36];
        let mut flag = |field| match event.field(field, &mut scratch) {
            Some(EventValue::Bool(value)) => Some(value),
            _ => None,
        };
        let (indicative, full_amount, withdrawn) =
            (flag(EventField::Indicative), flag(EventField::FullAmount), flag(EventField::Withdrawn));
        let side = match event.field(EventField::Side, &mut scratch) {
            Some(EventValue::Text(letter)) => Side::BOTH.into_iter().find(|side| side.letter() == letter),
            _ => None,
        };
        let tier = match event.field(EventField::Tier, &mut scratch) {
            Some(EventValue::UInt(tier)) => Some(tier),
            _ => None,
        };
        let px = match event.field(EventField::Px, &mut scratch) {
            Some(EventValue::Price(px)) => Some(px),
            _ => None,
        };
        let qty = match event.field(EventField::Qty, &mut scratch) {
            Some(EventValue::Decimal(qty)) => Some(qty),
            _ => None,
        };
        let valid_until = match event.field(EventField::ValidUntil, &mut scratch) {
            Some(EventValue::Nanos(until)) => Some(until.0),
            _ => None,
        };
        let value_date = match event.field(EventField::ValueDate, &mut scratch) {
            Some(EventValue::Date(date)) => Some(date),
            _ => None,
        };
        Self {
            side,
            tier_number: tier,
            px,
            qty,
            valid_until,
            // Rule 8: missing ones are false.
            indicative: indicative == Some(true),
            full_amount,
            withdrawn: withdrawn == Some(true),
            value_date,
        }
    }
}

fn quote_id<'s>(event: &'s Event<'_>, scratch: &'s mut [u8; 36]) -> Option<InlineId<'s>> {
    match event.field(EventField::QuoteId, scratch) {
        Some(EventValue::Id(id)) => Some(id),
        _ => None,
    }
}

/// Returns whether a field is a text that passes.
fn field_passes(event: &Event<'_>, field: EventField, passes: impl Fn(&str) -> bool) -> bool {
    match event.field(field, &mut [0; 36]) {
        Some(EventValue::Text(text)) => passes(text),
        _ => false,
    }
}
