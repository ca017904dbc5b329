//! The words of the definition, each looked up in everything that happened.

use crate::params::ScenarioParams;
use crate::twin::naive::{History, NaiveAlert, Number, Twin, name};
use unitape_model::{Dictionary, InstrumentId, NameKind, UnixNanos};

/// The scenario, slowly.
pub struct Slow {
    params: ScenarioParams,
    /// The buckets that are not judged yet, in the order of their first trades.
    open: Vec<Bucket>,
}

#[derive(Clone, Copy)]
struct Bucket {
    venue: u32,
    instr: InstrumentId,
    /// "Buckets are aligned to the epoch".
    number: i128,
}

const DAY: i128 = 86_400_000_000_000;

impl Slow {
    /// Makes the twin before the first event.
    pub fn new(params: &ScenarioParams) -> Self {
        Self { params: params.clone(), open: Vec::new() }
    }

    fn length(&self) -> i128 {
        i128::from(self.params.uint("bucket_s")) * 1_000_000_000
    }

    fn number_at(&self, ts: UnixNanos) -> i128 {
        i128::from(ts.0).div_euclid(self.length())
    }

    /// Returns the UTC day of a bucket, which is that of its start.
    fn day_of(&self, number: i128) -> i128 {
        (number * self.length()).div_euclid(DAY)
    }

    /// Judges a bucket by the events before the current one.
    fn is_spike(&self, history: &History, bucket: Bucket) -> bool {
        let Bucket { venue, instr, number } = bucket;
        let seq = history.now().seq;
        // The buckets of all trades that were seen, of those that were cancelled later as well.
        let seen: Vec<i128> = history
            .of_instr(instr)
            .filter(|e| e.is_print() && e.venue == Some(venue) && e.seq < seq)
            .map(|e| self.number_at(e.ts))
            .collect();
        // "A bucket is present from that of the first trade of its own UTC day on".
        let is_present =
            |n: i128| seen.iter().any(|first| self.day_of(*first) == self.day_of(n) && *first <= n);
        let prints = history.prints_before(instr, Some(venue), seq);
        let volume = |n: i128| {
            let inside =
                prints.iter().filter(|print| self.number_at(print.ts) == n && print.qty.mantissa() > 0);
            inside.fold(Number::whole(0), |sum, print| sum + Number::from(print.qty))
        };
        // "the previous baseline_buckets (at least 10 present)"
        let baseline = i128::from(self.params.uint("baseline_buckets"));
        let previous: Vec<i128> = (number - baseline..number).filter(|n| is_present(*n)).collect();
        let count = previous.len() as i128;
        let total = previous.into_iter().fold(Number::whole(0), |sum, n| sum + volume(n));
        // "bucket volume >= mult * mean ... and >= min_qty"
        let this = volume(number);
        let mult = Number::billionths(self.params.nano("mult"));
        count >= 10
            && this.is_positive()
            && this.clone() * Number::whole(count) >= mult * total
            && this >= Number::from(self.params.amount("min_qty"))
    }
}

impl Twin for Slow {
    fn on_event(&mut self, history: &History, names: &Dictionary) -> Vec<NaiveAlert> {
        let now = history.now();
        if self.length() == 0 {
            return vec![];
        }
        // "At the end of each bucket": "the first event with ts >= D ..., before that event changes state".
        let end = |bucket: &Bucket| (bucket.number + 1) * self.length();
        let (mut due, open): (Vec<Bucket>, Vec<Bucket>) =
            self.open.iter().partition(|bucket| end(bucket) <= i128::from(now.ts.0));
        due.sort_by_key(end);
        let alerts = due.into_iter().filter(|bucket| self.is_spike(history, *bucket)).map(|bucket| {
            let ts = UnixNanos(i64::try_from(end(&bucket)).expect("not after the time of an event"));
            let venue = name(names, NameKind::Venue, bucket.venue);
            NaiveAlert {
                ts,
                key: vec![("venue", venue), ("instr", name(names, NameKind::Instrument, bucket.instr.0))],
            }
        });
        let alerts = alerts.collect();
        self.open = open;
        if let (true, Some(venue), Some(instr)) = (now.is_print(), now.venue, now.instr) {
            let number = self.number_at(now.ts);
            // The first trade of a bucket sets the timer of its end. A bucket is judged once.
            let is_first = !history.of_instr(instr).any(|e| {
                e.is_print() && e.seq < now.seq && e.venue == Some(venue) && self.number_at(e.ts) == number
            });
            self.open.extend(is_first.then_some(Bucket { venue, instr, number }));
        }
        alerts
    }
}
