//! Volume spike: far more is traded in a short time than in the time before.
//!
//! Readings of the definition's words where they leave a choice:
//!
//! - A bucket belongs to the UTC day of its start, and so do its trades.
//! - The first trade that is seen in a bucket sets the timer of the bucket's end. So a bucket without a trade is
//!   never judged, and each bucket is judged once. A late trade counts in the volume of its bucket for later
//!   comparisons.
//! - A trade that is cancelled later was seen: it begins the day and sets the timer, and its volume does not count.
//! - A bucket whose volume is not above zero gives no alert, whatever the limits. A quantity that is not above zero
//!   counts as nothing.
//! - The number of 10 present buckets is fixed. With `baseline_buckets` below 10, or `bucket_s` of 0, there is no
//!   alert.
//!
//! Each venue and instrument has a row of its buckets with a trade and, for each day, its first one. What is two baselines
//! old is forgotten. A book is judged from three states that each need their bounds (buckets, days and pending timers), which
//! makes the module longer than most.

#[cfg(test)]
mod tests;

use crate::alert::Alert;
use crate::exact::QuantitySum;
use crate::keyed::KeyedStates;
use crate::missing::MissingValue;
use crate::params::ScenarioParams;
use crate::prints::{Print, PrintChange};
use crate::state::{state_value, watch_state};
use crate::timers::DueTimer;
use crate::watch::{
    EvidencePlace, Scenario, ScenarioContext, ScenarioInput, ScenarioMetrics, ScenarioOutput, SharedStateKind,
};
use serde_json::json;
use std::collections::VecDeque;
use unitape_model::{Decimal, EventKind, InstrumentId, NameKind, UnixNanos};

/// The name of the scenario.
pub const ID: &str = "volume_spike";
/// The kinds of events that it judges.
pub const INPUTS: &[EventKind] = &[EventKind::Trade];
/// The shared state that it needs.
pub const NEEDS: &[SharedStateKind] = &[SharedStateKind::Prints];

/// The scenario.
pub struct VolumeSpikeScenario {
    bucket_ns: i64,
    baseline_buckets: i64,
    /// Billionths.
    mult: u64,
    min_qty: QuantitySum,
    books: KeyedStates<BookKey, BookBuckets>,
    /// The buckets that a timer waits for, by its token.
    pending: KeyedStates<u64, PendingBucket>,
    /// The token of the last timer.
    token: u64,
    late: u64,
    bound_hit: u64,
}

/// Venue and instrument.
type BookKey = (u16, InstrumentId);

/// What was traded of an instrument at a venue.
struct BookBuckets {
    /// In the order of their numbers.
    buckets: VecDeque<VolumeBucket>,
    days: VecDeque<TradingDay>,
    /// The last bucket that was forgotten or may have been.
    forgotten: i64,
}

/// The volume of a bucket with a trade. Bucket 0 begins with 1970.
struct VolumeBucket {
    number: i64,
    volume: QuantitySum,
    first: EvidencePlace,
    last: EvidencePlace,
}

/// A day in UTC with a trade.
struct TradingDay {
    /// Since 1970.
    day: i64,
    first_bucket: i64,
}

#[derive(Clone, Copy)]
struct PendingBucket {
    venue: u16,
    instr: InstrumentId,
    number: i64,
}

const DAY_NS: i128 = 86_400_000_000_000;
/// Buckets that must be present.
const PRESENT_MIN: i64 = 10;
/// Buckets of a book that are kept at most; then the oldest is forgotten.
const BUCKETS_MAX: usize = 1 << 14;

state_value!(BookBuckets { buckets, days, forgotten });
state_value!(VolumeBucket { number, volume, first, last });
state_value!(TradingDay { day, first_bucket });
state_value!(PendingBucket { venue, instr, number });
watch_state!(VolumeSpikeScenario {
    books, pending, token, late, bound_hit | bucket_ns, baseline_buckets, mult, min_qty
});

impl VolumeSpikeScenario {
    /// Makes the scenario with empty state.
    pub fn new(params: &ScenarioParams) -> Self {
        let length = |seconds: u64| i64::try_from(seconds).ok()?.checked_mul(1_000_000_000);
        Self {
            bucket_ns: length(params.uint("bucket_s")).unwrap_or(i64::MAX),
            baseline_buckets: i64::try_from(params.uint("baseline_buckets")).unwrap_or(i64::MAX),
            mult: params.nano("mult"),
            min_qty: QuantitySum::from_decimal(params.amount("min_qty")),
            books: KeyedStates::new(),
            pending: KeyedStates::new(),
            token: 0,
            late: 0,
            bound_hit: 0,
        }
    }

    fn number_at(&self, ts: UnixNanos) -> i64 {
        ts.0.div_euclid(self.bucket_ns)
    }

    /// Returns the UTC day of a bucket, which is that of its start.
    fn day_of(&self, number: i64) -> i64 {
        (i128::from(number) * i128::from(self.bucket_ns)).div_euclid(DAY_NS) as i64
    }

    /// Returns the first bucket of a UTC day.
    fn first_of_day(&self, day: i64) -> i64 {
        let number = -(-i128::from(day) * DAY_NS).div_euclid(i128::from(self.bucket_ns));
        number.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    fn on_print(&mut self, print: &Print, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        let number = self.number_at(print.ts);
        let day = self.day_of(number);
        let now = self.number_at(print.ts.min(input.context.expiry_ts));
        let limit = now.saturating_sub(self.baseline_buckets.saturating_mul(2)).saturating_sub(1);
        let oldest_day = self.day_of(limit);
        let forgotten_with_day = self.first_of_day(oldest_day).saturating_sub(1);
        let book = self.books.get_or_insert_with((print.venue, print.instr), BookBuckets::new);
        self.bound_hit += book.forget(limit, oldest_day, forgotten_with_day);
        if number <= book.forgotten {
            self.late += 1;
            return;
        }
        book.add_day(day, number);
        if book.add(number, print) {
            let end = (i128::from(number) + 1) * i128::from(self.bucket_ns);
            // No event comes after the end of time.
            let Ok(end) = i64::try_from(end) else { return };
            self.token += 1;
            let pending = PendingBucket { venue: print.venue, instr: print.instr, number };
            self.pending.set(self.token, pending);
            out.wake_at(UnixNanos(end), self.token);
        }
    }

    /// Takes the volume of a print from its bucket, and gives it that of another.
    #[cold]
    fn on_change(&mut self, before: &Print, after_qty: Option<Decimal>) {
        let number = self.number_at(before.ts);
        let Some(book) = self.books.get_mut(&(before.venue, before.instr)) else { return };
        let Ok(index) = book.buckets.binary_search_by_key(&number, |bucket| bucket.number) else { return };
        let volume = &mut book.buckets[index].volume;
        *volume = volume.minus_earlier(&QuantitySum::from_decimal(before.qty));
        after_qty.into_iter().for_each(|qty| volume.add(qty));
    }

    /// Judges a bucket at its end.
    fn judge(
        &mut self,
        pending: &PendingBucket,
        due: DueTimer,
        context: &ScenarioContext<'_>,
    ) -> Option<Alert> {
        let PendingBucket { venue, instr, number } = *pending;
        let book = self.books.get(&(venue, instr))?;
        let from = number.saturating_sub(self.baseline_buckets);
        self.late += u64::from(book.forgotten >= from);
        // The present buckets of each day: from its first trade to its end.
        let present = book.days.iter().map(|day| {
            let end = self.first_of_day(day.day + 1).min(number);
            (end - day.first_bucket.max(from)).max(0)
        });
        let present: i64 = present.sum();
        let at = |wanted: i64| book.buckets.partition_point(|bucket| bucket.number < wanted);
        let bucket = book.buckets.get(at(number)).filter(|bucket| bucket.number == number)?;
        let mut previous = QuantitySum::ZERO;
        for earlier in book.buckets.range(at(from)..at(number)) {
            previous.add_sum(&earlier.volume);
        }
        let is_spike = present >= PRESENT_MIN
            && bucket.volume > QuantitySum::ZERO
            && bucket.volume.times(1_000_000_000).times(present as u64) >= previous.times(self.mult)
            && bucket.volume >= self.min_qty;
        is_spike.then(|| {
            let values = json!({
                "qty": bucket.volume.to_string(),
                "previous_qty": previous.to_string(),
                "previous_buckets": present,
            });
            let key = vec![
                ("venue", context.name(NameKind::Venue, venue.into())),
                ("instr", context.name(NameKind::Instrument, instr.0)),
            ];
            Alert::new(ID, due.due_ts, context.seq, key, context.detail(values, [bucket.first, bucket.last]))
        })
    }
}

impl BookBuckets {
    fn new() -> Self {
        Self { buckets: VecDeque::new(), days: VecDeque::new(), forgotten: i64::MIN }
    }

    /// Adds a print to its bucket. Returns whether the bucket is new.
    fn add(&mut self, number: i64, print: &Print) -> bool {
        let found = self.buckets.binary_search_by_key(&number, |bucket| bucket.number);
        let place = print.place();
        let index = found.unwrap_or_else(|index| {
            let bucket = VolumeBucket { number, volume: QuantitySum::ZERO, first: place, last: place };
            self.buckets.insert(index, bucket);
            index
        });
        let bucket = &mut self.buckets[index];
        bucket.volume.add(print.qty);
        bucket.last = place;
        found.is_err()
    }

    fn add_day(&mut self, day: i64, number: i64) {
        match self.days.binary_search_by_key(&day, |day| day.day) {
            Ok(index) => self.days[index].first_bucket = self.days[index].first_bucket.min(number),
            Err(index) => self.days.insert(index, TradingDay { day, first_bucket: number }),
        }
    }

    /// Forgets buckets before `limit` and days before `oldest_day`. Returns the number of buckets for which there was no room.
    fn forget(&mut self, limit: i64, oldest_day: i64, forgotten_with_day: i64) -> u64 {
        let mut left_out = 0;
        while let Some(first) = self.buckets.front()
            && (first.number < limit || self.buckets.len() >= BUCKETS_MAX)
        {
            left_out += u64::from(first.number >= limit);
            self.forgotten = self.forgotten.max(first.number);
            self.buckets.pop_front();
        }
        while self.days.front().is_some_and(|day| day.day < oldest_day) {
            self.forgotten = self.forgotten.max(forgotten_with_day);
            self.days.pop_front();
        }
        left_out
    }
}

impl Scenario for VolumeSpikeScenario {
    fn on_event(&mut self, input: &ScenarioInput<'_, '_>, out: &mut ScenarioOutput<'_>) {
        if self.bucket_ns == 0 || self.baseline_buckets < PRESENT_MIN {
            return;
        }
        match input.print {
            Some(PrintChange::New(print)) => match print.lacking_of_book() {
                Some(field) => out.missing(MissingValue::Field(field)),
                None => self.on_print(&print, input, out),
            },
            Some(PrintChange::Cancelled(before)) => self.on_change(&before, None),
            Some(PrintChange::Corrected { before, after }) => self.on_change(&before, Some(after.qty)),
            None => {}
        }
    }

    fn on_timer(&mut self, due: DueTimer, context: &ScenarioContext<'_>, out: &mut ScenarioOutput<'_>) {
        let Some(pending) = self.pending.get(&due.token).copied() else { return };
        self.pending.remove(&due.token);
        self.judge(&pending, due, context).into_iter().for_each(|alert| out.alert(alert));
    }

    fn reset(&mut self) {
        self.books.clear();
        self.pending.clear();
        self.token = 0;
    }

    fn metrics(&self) -> ScenarioMetrics {
        ScenarioMetrics {
            late: self.late,
            bound_hit: self.bound_hit + self.books.bound_hit() + self.pending.bound_hit(),
            held_entries: (self.books.len() + self.pending.len()) as u64,
            ..ScenarioMetrics::default()
        }
    }
}
