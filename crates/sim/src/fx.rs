//! Banks in a box: streams of two-sided, tiered quotes for currency pairs.
//!
//! ```text
//!   rate of a pair ──▶ bank A ──▶ tier 1: 1 M   bid, ask ──▶ quote events, two a quote
//!   (wanders)          bank B     tier 2: 5 M   …             same quote_id, one of each side
//!                      …          tier 3: 10 M
//! ```
//!
//! Each bank quotes around the pair's rate with a spread and a skew of its own; a quote is good until `valid_until` or
//! until the bank's next one for the same pair and tier. A *withdrawal* is a `quote` without a price and with quantity
//! zero. A *stale* bank goes quiet without a withdrawal: its quotes run out by their time, which is what a book of best
//! prices must notice by itself. Some banks quote the full amount (`full_amount`: to be dealt whole or not), some quotes
//! are only indicative.
//!
//! [`FxQuoteGenerator::live`] and [`FxQuoteGenerator::best`] are the truth between two steps.
//!
//! ```
//! use unitape_model::{InstrumentId, Side};
//! use unitape_sim::{FxQuoteGenerator, FxConfig};
//!
//! let mut banks = FxQuoteGenerator::new(FxConfig { seed: 3, quotes: 1_000, ..FxConfig::default() })?;
//! while banks.step().is_some() {}
//! assert!(banks.best(InstrumentId(0), Side::Sell, 1_000_000, banks.now()).is_some());
//! # Ok::<(), unitape_sim::Error>(())
//! ```

use unitape_model::{
    Decimal, Dictionary, EventBuilder, EventField, EventKind, EventValue, InlineId, InstrumentId, NameKind,
    Price, Side, UnixNanos, flags,
};

use crate::day::names::lettered;
use crate::error::Error;
use crate::rng::Rng;

/// The configuration of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FxConfig {
    /// The seed.
    pub seed: u64,
    /// Quotes, each of two events.
    pub quotes: u64,
    /// Banks, 1 to 26.
    pub banks: usize,
    /// Currency pairs, 1 to 8.
    pub pairs: usize,
    /// Time of the start, nanoseconds since the epoch.
    pub start_ns: u64,
    /// Mean time between two quotes, nanoseconds.
    pub gap_ns: u64,
}

impl Default for FxConfig {
    /// 100,000 quotes of 8 banks in 6 pairs from 2026-03-02 08:00 UTC, a millisecond apart.
    fn default() -> FxConfig {
        FxConfig {
            seed: 1,
            quotes: 100_000,
            banks: 8,
            pairs: 6,
            start_ns: 1_772_438_400_000_000_000,
            gap_ns: 1_000_000,
        }
    }
}

/// One side of a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FxQuote {
    /// Ordinal in the stream, from 1.
    pub seq: u64,
    /// Event time, nanoseconds since the epoch.
    pub ts: u64,
    /// Index of the bank.
    pub bank: u32,
    /// The pair, by its index.
    pub pair: InstrumentId,
    /// Tier, from 1.
    pub tier: u8,
    /// Side: a bid is [`Side::Buy`].
    pub side: Side,
    /// Price in units of 1e-9; none is a withdrawal.
    pub px: Option<i64>,
    /// Units of the first currency; zero is a withdrawal.
    pub qty: i64,
    /// Number of the quote, the same on both sides.
    pub quote_id: u64,
    /// Time from which it no longer counts, nanoseconds since the epoch, whole milliseconds after `ts`.
    pub valid_until: u64,
    /// Cannot be dealt on.
    pub indicative: bool,
    /// To be dealt whole or not at all.
    pub full_amount: bool,
}

/// A stream of quotes under way.
#[derive(Debug)]
pub struct FxQuoteGenerator {
    config: FxConfig,
    rng: Rng,
    names: Dictionary,
    now: u64,
    seq: u64,
    made: u64,
    rates: Vec<i64>,
    styles: Vec<QuotingStyle>,
    /// `[bank][pair][tier][side]`, flat.
    live: Vec<Option<FxQuote>>,
}

#[derive(Debug, Clone, Copy)]
struct QuotingStyle {
    /// Half spread and skew, tenths of a pip.
    half: i64,
    skew: i64,
    full_amount: bool,
    valid_ms: u64,
    quiet_until: u64,
}

impl FxQuoteGenerator {
    /// Sets a stream up.
    pub fn new(config: FxConfig) -> Result<FxQuoteGenerator, Error> {
        let within = |name, value: u64, least, most| {
            let ok = (least..=most).contains(&value);
            ok.then_some(()).ok_or(Error::OutOfRange { name, value, least, most })
        };
        within("banks", config.banks as u64, 1, 26)?;
        within("pairs", config.pairs as u64, 1, PAIRS.len() as u64)?;
        within("gap_ns", config.gap_ns, 1, 3_600_000_000_000)?;
        within("start_ns", config.start_ns, 0, 8_835_955_200_000_000_000)?;
        let mut rng = Rng::new(config.seed);
        let mut names = Dictionary::default();
        let mut name =
            |dict, text: &str| names.intern(dict, text.as_bytes()).expect("names of ours are short");
        for bank in 0..config.banks {
            name(NameKind::Venue, &format!("BANK{}", (b'A' + bank as u8) as char));
        }
        PAIRS[..config.pairs].iter().for_each(|pair| _ = name(NameKind::Instrument, pair.0));
        let style = |_| QuotingStyle {
            half: rng.between(1, 12),
            skew: rng.between(-4, 4),
            full_amount: rng.one_in(4),
            valid_ms: rng.between(200, 3_000) as u64,
            quiet_until: 0,
        };
        let styles = (0..config.banks).map(style).collect();
        Ok(FxQuoteGenerator {
            rates: PAIRS[..config.pairs].iter().map(|pair| pair.1).collect(),
            live: vec![None; config.banks * config.pairs * TIERS.len() * 2],
            now: config.start_ns,
            seq: 0,
            made: 0,
            styles,
            names,
            rng,
            config,
        })
    }

    /// Makes the next quote or withdrawal and gives its two sides; none when the stream is over.
    pub fn step(&mut self) -> Option<[FxQuote; 2]> {
        if self.made == self.config.quotes {
            return None;
        }
        self.made += 1;
        self.now += 1 + self.rng.below(2 * self.config.gap_ns);
        let bank = self.speaker();
        let pair = self.rng.below(self.config.pairs as u64) as usize;
        let tier = self.rng.below(TIERS.len() as u64) as usize;
        let (_, _, tenth) = PAIRS[pair];
        if self.rng.one_in(3) {
            self.rates[pair] += self.rng.between(-3, 3) * tenth;
        }
        let style = &mut self.styles[bank];
        let withdrawn = self.rng.one_in(40);
        // Quiet for longer than its quotes are good: they go stale.
        if self.rng.one_in(2_000) {
            style.quiet_until = self.now + (style.valid_ms + self.rng.below(5_000)) * 1_000_000;
        }
        let wider = style.half + 2 * tier as i64 + self.rng.between(0, 2);
        let (indicative, middle) = (self.rng.one_in(50), self.rates[pair] + style.skew * tenth);
        let quote = |side: Side, seq: u64| FxQuote {
            seq,
            ts: self.now,
            bank: bank as u32,
            pair: InstrumentId(pair as u32),
            tier: tier as u8 + 1,
            side,
            px: (!withdrawn).then_some(middle + if side == Side::Buy { -wider } else { wider } * tenth),
            qty: if withdrawn { 0 } else { TIERS[tier] },
            quote_id: self.made,
            valid_until: self.now + style.valid_ms * 1_000_000,
            indicative: indicative && !withdrawn,
            full_amount: style.full_amount,
        };
        let quotes = [quote(Side::Buy, self.seq + 1), quote(Side::Sell, self.seq + 2)];
        self.seq += 2;
        for quote in quotes {
            let at = self.at(bank, pair, tier, quote.side);
            self.live[at] = quote.px.map(|_| quote);
        }
        Some(quotes)
    }

    /// As [`FxQuoteGenerator::step`], and appends the frames of both sides to `out`; false when the stream is over.
    pub fn step_frames(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(quotes) = self.step() else { return false };
        for quote in &quotes {
            self.write_frame(quote, out);
        }
        true
    }

    /// Appends the frame of one side, unstamped.
    pub fn write_frame(&self, quote: &FxQuote, out: &mut Vec<u8>) {
        let mut e = EventBuilder::begin(out, EventKind::Quote, UnixNanos(quote.ts as i64));
        e.sequence(quote.seq);
        let schema = e.schema();
        let mut set = |field: EventField, value: EventValue<'_>| {
            let spec = schema.get(field).expect("a field of quotes");
            e.set(spec, value).expect("a value of the right sort");
        };
        set(EventField::Bank, EventValue::Sym(NameKind::Venue, quote.bank + 1));
        set(EventField::Instr, EventValue::Sym(NameKind::Instrument, quote.pair.0 + 1));
        set(EventField::QuoteId, EventValue::Id(InlineId::Text(&lettered::<8>(b'Q', quote.quote_id, 36))));
        set(EventField::Tier, EventValue::UInt(quote.tier.into()));
        set(EventField::Side, EventValue::Text(quote.side.letter()));
        if let Some(px) = quote.px {
            set(EventField::Px, EventValue::Price(Price(px)));
        }
        set(EventField::Qty, EventValue::Decimal(Decimal::from_int(quote.qty)));
        set(EventField::ValidUntil, EventValue::Nanos(UnixNanos(quote.valid_until as i64)));
        set(EventField::Indicative, EventValue::Bool(quote.indicative));
        set(EventField::FullAmount, EventValue::Bool(quote.full_amount));
        let last = if quote.side == Side::Sell { flags::LAST } else { 0 };
        e.finish(last).expect("a quote is small");
    }

    /// Names by the ids that frames carry.
    pub fn names(&self) -> &Dictionary {
        &self.names
    }

    /// Time of the last step.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The latest quote of a bank for a pair, tier (from 1) and side, if the bank did not withdraw it; perhaps no
    /// longer good.
    pub fn live(&self, bank: u32, pair: InstrumentId, tier: u8, side: Side) -> Option<&FxQuote> {
        self.live[self.at(bank as usize, pair.index(), usize::from(tier) - 1, side)].as_ref()
    }

    /// The best quote that can be dealt on at `now` for at least `qty` in one deal: the highest bid or the lowest offer,
    /// and of those that are alike the one that was made first.
    pub fn best(&self, pair: InstrumentId, side: Side, qty: i64, now: u64) -> Option<&FxQuote> {
        let all = self.live.iter().flatten();
        let good = all.filter(|q| {
            let amount = if q.full_amount { q.qty == qty } else { q.qty >= qty };
            q.pair == pair && q.side == side && !q.indicative && now < q.valid_until && amount
        });
        let rank = |q: &&FxQuote| {
            let px = q.px.expect("only quotes that were not withdrawn are kept");
            (if side == Side::Buy { -px } else { px }, q.seq)
        };
        good.min_by_key(rank)
    }

    /// A bank that is not quiet; the first one is asked at last.
    fn speaker(&mut self) -> usize {
        (0..8)
            .map(|_| self.rng.below(self.config.banks as u64) as usize)
            .find(|&bank| self.styles[bank].quiet_until <= self.now)
            .unwrap_or(0)
    }

    fn at(&self, bank: usize, pair: usize, tier: usize, side: Side) -> usize {
        ((bank * self.config.pairs + pair) * TIERS.len() + tier) * 2 + side.index()
    }
}

/// Pair, rate at the start and a tenth of a pip, in units of 1e-9.
const PAIRS: [(&str, i64, i64); 8] = [
    ("EUR/USD", 1_085_000_000, 10_000),
    ("USD/JPY", 149_500_000_000, 1_000_000),
    ("GBP/USD", 1_267_000_000, 10_000),
    ("USD/CHF", 883_000_000, 10_000),
    ("AUD/USD", 654_000_000, 10_000),
    ("EUR/GBP", 856_000_000, 10_000),
    ("USD/CAD", 1_356_000_000, 10_000),
    ("EUR/JPY", 162_200_000_000, 1_000_000),
];
/// Amount of each tier.
const TIERS: [i64; 3] = [1_000_000, 5_000_000, 10_000_000];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use unitape_model::Event;

    /// A best price that counts a withdrawn, stale or indicative quote is a price that nobody deals at.
    #[test]
    fn best_is_what_the_quotes_say() {
        let mut banks = FxQuoteGenerator::new(FxConfig { quotes: 6_000, seed: 5, ..FxConfig::default() })
            .expect("a good config");
        let mut latest: HashMap<(u32, InstrumentId, u8, Side), FxQuote> = HashMap::new();
        let (mut withdrawn, mut stale, mut indicative, mut ts) = (0, 0, 0, 0);
        while let Some(quotes) = banks.step() {
            for q in quotes {
                assert!(q.ts >= ts && q.valid_until > q.ts && q.px.is_some() == (q.qty > 0));
                ts = q.ts;
                withdrawn += u32::from(q.px.is_none());
                indicative += u32::from(q.indicative);
                latest.insert((q.bank, q.pair, q.tier, q.side), q);
            }
            let pair = quotes[0].pair;
            for side in [Side::Buy, Side::Sell] {
                let mut best: Option<FxQuote> = None;
                for q in latest
                    .values()
                    .filter(|q| q.pair == pair && q.side == side && q.px.is_some() && !q.indicative)
                {
                    stale += u32::from(ts >= q.valid_until);
                    if ts >= q.valid_until || q.qty < 5_000_000 || q.full_amount && q.qty != 5_000_000 {
                        continue;
                    }
                    let better = best.is_none_or(|b| {
                        let (px, than) = (q.px.expect("kept"), b.px.expect("kept"));
                        let wins = if side == Side::Buy { px > than } else { px < than };
                        wins || px == than && q.seq < b.seq
                    });
                    best = if better { Some(*q) } else { best };
                }
                assert_eq!(banks.best(pair, side, 5_000_000, ts).copied(), best);
            }
        }
        assert!(withdrawn > 100 && stale > 100 && indicative > 50, "{withdrawn} {stale} {indicative}");
    }

    /// A field that is lost on the way to the frame would never be missed by a book that does not ask for it.
    #[test]
    fn frames_say_what_the_quotes_say() {
        let mut banks =
            FxQuoteGenerator::new(FxConfig { quotes: 300, ..FxConfig::default() }).expect("a good config");
        while let Some(quotes) = banks.step() {
            for q in quotes {
                let (mut out, mut scratch) = (Vec::new(), [0; 36]);
                banks.write_frame(&q, &mut out);
                assert_eq!(out.len(), 64, "a quote is one line");
                let e = Event::new(&out).expect("a frame");
                assert_eq!(
                    (e.instrument(), e.venue(), e.sequence()),
                    (InstrumentId(q.pair.0 + 1), q.bank as u16 + 1, Some(q.seq))
                );
                assert_eq!(
                    e.field(EventField::Px, &mut scratch),
                    q.px.map(|px| EventValue::Price(Price(px)))
                );
                let until = Some(EventValue::Nanos(UnixNanos(q.valid_until as i64)));
                assert_eq!(e.field(EventField::ValidUntil, &mut scratch), until);
                assert_eq!(
                    e.field(EventField::FullAmount, &mut scratch),
                    Some(EventValue::Bool(q.full_amount))
                );
                assert_eq!(e.field(EventField::Tier, &mut scratch), Some(EventValue::UInt(q.tier.into())));
                assert!(e.field(EventField::Bank, &mut scratch).is_some());
            }
        }
    }
}
