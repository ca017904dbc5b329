//! The stream: who says what when.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use unitape_model::{CivilDate, Price, Side};

use super::pair::{ValueDates, pip_nanos};
use super::roster::{PAIRS, QuotePublisher, StreamKinds, TIERS};
use crate::error::Error;
use crate::rng::Rng;

/// The configuration of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BankStreamConfig {
    /// The same seed and configuration give the same bytes.
    pub seed: u64,
    /// The stream ends after this many events.
    pub events: u64,
    /// Or when this much time is over, in nanoseconds.
    pub span_ns: u64,
    /// Currency pairs, 1 to 50.
    pub pairs: usize,
    /// Banks and venues that quote, 1 to 200.
    pub banks: usize,
    /// Tiers of a pair, 1 to 10.
    pub tiers: usize,
    /// Events in a second, about.
    pub rate: u32,
    /// Time of the start, nanoseconds since the epoch.
    pub start_ns: u64,
}

impl Default for BankStreamConfig {
    /// Returns 20 banks, 50 pairs, 5 tiers, 100,000 events at 5,000 a second.
    fn default() -> Self {
        Self {
            seed: 1,
            events: 100_000,
            span_ns: u64::MAX,
            pairs: 50,
            banks: 20,
            tiers: 5,
            rate: 5_000,
            start_ns: 1_772_438_400_000_000_000,
        }
    }
}

/// A stream of events of many banks, as JSON lines.
///
/// The shares of the event types are those of the table in `docs/generate-banks.md`.
#[derive(Debug)]
pub struct BankStream {
    config: BankStreamConfig,
    rng: Rng,
    /// The time of arrival; a publisher with a slow clock writes less.
    clock: i64,
    events: u64,
    ids: u64,
    /// In units of 1e-9.
    rates: Vec<i64>,
    publishers: Vec<QuotePublisher>,
    /// The latest spot quote by publisher, pair, tier, sweepable or full-amount, flat.
    live: Vec<Option<LiveQuote>>,
    /// Lines that have no number yet.
    pending: VecDeque<String>,
    /// The switches that a `disable` without an end turned off, as fields.
    open_controls: Vec<String>,
    counts: BTreeMap<&'static str, u64>,
}

/// A stream of one publisher: a pair, a tier, sweepable or full-amount.
#[derive(Debug, Clone, Copy)]
struct StreamSlot {
    publisher: usize,
    pair: usize,
    tier: usize,
    full_amount: bool,
}

#[derive(Debug, Clone)]
struct LiveQuote {
    /// The last two ids.
    id: Option<String>,
    id_before: Option<String>,
    px: [i64; 2],
    valid_until: Option<i64>,
}

/// A line of a quote before it is written. Its price and side are those of the pair's usual orientation.
#[derive(Debug, Clone)]
struct QuoteDraft {
    slot: StreamSlot,
    side: Option<Side>,
    px: Option<i64>,
    qty: Option<i64>,
    id: Option<String>,
    valid_until: Option<i64>,
    indicative: bool,
    withdrawn: bool,
    value_date: Option<CivilDate>,
    has_tier: bool,
    has_amount_kind: bool,
}

impl BankStream {
    /// Sets a stream up.
    ///
    /// # Errors
    /// Fails if a value of the configuration is out of range.
    pub fn new(config: BankStreamConfig) -> Result<Self, Error> {
        let check_range = |name, value: u64, least, most| {
            let ok = (least..=most).contains(&value);
            ok.then_some(()).ok_or(Error::OutOfRange { name, value, least, most })
        };
        check_range("pairs", config.pairs as u64, 1, PAIRS.len() as u64)?;
        check_range("banks", config.banks as u64, 1, 200)?;
        check_range("tiers", config.tiers as u64, 1, TIERS.len() as u64)?;
        check_range("rate", config.rate.into(), 1, 100_000_000)?;
        check_range("start_ns", config.start_ns, 1_000_000_000, 8_835_955_200_000_000_000)?;
        let mut rng = Rng::new(config.seed);
        let publishers: Vec<_> = (0..config.banks).map(|n| QuotePublisher::new(n, &mut rng)).collect();
        Ok(Self {
            clock: config.start_ns as i64,
            events: 0,
            ids: 0,
            rates: PAIRS[..config.pairs].iter().map(|pair| pair.1 * 10_000).collect(),
            live: vec![None; config.banks * config.pairs * config.tiers * 2],
            publishers,
            rng,
            config,
            pending: VecDeque::new(),
            open_controls: Vec::new(),
            counts: BTreeMap::new(),
        })
    }

    /// Returns the next event as a line without its newline, or `None` at the end of the stream.
    pub fn next_line(&mut self) -> Option<String> {
        if self.events == self.config.events {
            return None;
        }
        while self.pending.is_empty() {
            self.act();
        }
        let elapsed = self.clock as u64 - self.config.start_ns;
        let body = self.pending.pop_front().filter(|_| elapsed <= self.config.span_ns)?;
        self.events += 1;
        Some(format!("{{\"seq\":{},{body}}}", self.events))
    }

    /// Returns the number of events so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the counts of events by kind, and of special cases.
    #[must_use]
    pub fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Lets time pass and something happen.
    fn act(&mut self) {
        // An act is two events, as a rule.
        let gap = 2_000_000_000 / u64::from(self.config.rate);
        self.clock += 1 + self.rng.below(2 * gap.max(1)) as i64;
        if self.heartbeat() {
            return;
        }
        let Some(publisher) = self.speaker() else { return };
        let rate = u64::from(self.config.rate);
        // About every four seconds a bank falls silent for longer than `stale_ms` usually is, about every two one logs out.
        if self.rng.one_in(2 * rate) {
            self.count("silence");
            self.publishers[publisher].quiet_until = self.clock + self.rng.between(5_100, 9_000) * MS;
            return;
        }
        if self.rng.one_in(rate) {
            self.logout(publisher);
            return;
        }
        let slot = self.slot(publisher);
        match self.rng.below(1_000) {
            0..20 => self.withdrawal(slot),
            20..36 => self.bad_quote(slot),
            36..40 => self.spike(slot),
            40..44 => self.meeting(slot),
            44..68 => self.hit(slot),
            68..74 => self.control(slot),
            74..76 => self.nameless(slot),
            _ => self.quote(slot),
        }
    }

    /// Sends a `status` of a publisher that is due.
    fn heartbeat(&mut self) -> bool {
        for publisher_index in 0..self.publishers.len() {
            let publisher = &mut self.publishers[publisher_index];
            if publisher.next_status > self.clock || publisher.quiet_until > self.clock {
                continue;
            }
            let state = if std::mem::take(&mut publisher.is_logged_out) { "logon" } else { "heartbeat" };
            publisher.next_status = self.clock + HEARTBEAT_NS;
            self.status(publisher_index, state);
            return true;
        }
        false
    }

    fn logout(&mut self, publisher: usize) {
        let quiet = self.rng.between(300, 2_000) * MS;
        self.publishers[publisher].quiet_until = self.clock + quiet;
        self.publishers[publisher].is_logged_out = true;
        self.publishers[publisher].next_status = 0;
        self.status(publisher, "logout");
    }

    fn status(&mut self, publisher_index: usize, state: &'static str) {
        let publisher = &self.publishers[publisher_index];
        let (ts, name) = (self.clock - publisher.lag_ns, publisher.name());
        self.count("status");
        self.count(state);
        self.pending
            .push_back(format!("\"ts\":{ts},\"kind\":\"status\",\"venue\":\"{name}\",\"state\":\"{state}\""));
    }

    /// Draws a publisher that is not quiet.
    fn speaker(&mut self) -> Option<usize> {
        let one = |_| self.rng.below(self.config.banks as u64) as usize;
        (0..8).map(one).find(|&publisher_index| self.publishers[publisher_index].quiet_until <= self.clock)
    }

    fn slot(&mut self, publisher: usize) -> StreamSlot {
        let full_amount = match self.publishers[publisher].streams {
            StreamKinds::Sweepable => false,
            StreamKinds::FullAmount => true,
            StreamKinds::Both => self.rng.one_in(2),
        };
        StreamSlot {
            publisher,
            pair: self.rng.below(self.config.pairs as u64) as usize,
            tier: self.rng.below(self.config.tiers as u64) as usize,
            full_amount,
        }
    }

    /// Sends both sides of a quote, each an event with the same id.
    fn quote(&mut self, slot: StreamSlot) {
        let px = self.prices(slot);
        let value_date = self.value_date(slot);
        self.two_sided(slot, px, value_date);
    }

    fn two_sided(&mut self, slot: StreamSlot, px: [i64; 2], value_date: Option<CivilDate>) {
        let live_index = self.slot_index(slot);
        let before = self.live[live_index].as_ref().and_then(|quote| quote.id.clone());
        let id = if before.is_some() && self.rng.one_in(60) {
            self.count("repeated_id");
            before.clone()
        } else {
            self.ids += 1;
            self.publishers[slot.publisher].new_id(self.ids, &mut self.rng)
        };
        for side in Side::BOTH {
            let px = Some(px[side.index()]);
            let draft = QuoteDraft { px, value_date, id: id.clone(), ..self.draft(slot, side) };
            self.write(&draft);
        }
        if value_date.is_none() {
            let valid_until = self.draft(slot, Side::Buy).valid_until;
            self.live[live_index] = Some(LiveQuote { id, id_before: before, px, valid_until });
        }
    }

    /// Draws bid and ask around the rate, which wanders.
    fn prices(&mut self, slot: StreamSlot) -> [i64; 2] {
        let tenth = tenth_of_pip(slot.pair);
        if self.rng.one_in(12) {
            self.rates[slot.pair] += self.rng.between(-2, 2) * tenth;
        }
        let publisher = &self.publishers[slot.publisher];
        let middle = self.rates[slot.pair] + publisher.skew * tenth;
        let half = (publisher.half + 2 * slot.tier as i64 + self.rng.between(0, 2)) * tenth;
        [middle - half, middle + half]
    }

    /// Draws a value date: `None` for spot, a week or a month later, or the spot date by name.
    fn value_date(&mut self, slot: StreamSlot) -> Option<CivilDate> {
        if !self.publishers[slot.publisher].quotes_forwards || !self.rng.one_in(6) {
            return None;
        }
        let spot = ValueDates::default().spot(PAIRS[slot.pair].0, self.clock);
        let mut date = CivilDate::from_days(spot.days() + self.rng.pick(&[0, 7, 7, 30]));
        while date.is_weekend() {
            date = date.following();
        }
        Some(date)
    }

    /// Drafts a line in the style of its publisher, still without a price.
    fn draft(&self, slot: StreamSlot, side: Side) -> QuoteDraft {
        QuoteDraft {
            slot,
            side: Some(side),
            px: None,
            qty: Some(TIERS[slot.tier]),
            id: None,
            valid_until: self.publishers[slot.publisher].valid_ms.map(|ms| self.clock + ms * MS),
            indicative: false,
            withdrawn: false,
            value_date: None,
            has_tier: true,
            has_amount_kind: true,
        }
    }

    /// Withdraws quotes by id, by the previous id, or all that match.
    fn withdrawal(&mut self, slot: StreamSlot) {
        let live = self.live[self.slot_index(slot)].clone();
        let side = self.rng.pick(&Side::BOTH);
        let mut draft =
            QuoteDraft { qty: None, valid_until: None, withdrawn: true, ..self.draft(slot, side) };
        match (self.rng.below(8), live) {
            (0..3, Some(LiveQuote { id: Some(id), .. })) => {
                draft =
                    QuoteDraft { id: Some(id), side: None, has_tier: false, has_amount_kind: false, ..draft };
            }
            (3, Some(LiveQuote { id_before: Some(id), .. })) => draft.id = Some(id),
            (4, _) => draft = QuoteDraft { side: None, has_tier: false, has_amount_kind: false, ..draft },
            (5, _) => draft = QuoteDraft { has_tier: false, ..draft },
            (6, _) => {
                let spot = ValueDates::default().spot(PAIRS[slot.pair].0, self.clock);
                draft = QuoteDraft { side: None, value_date: Some(spot), ..draft };
            }
            _ => {}
        }
        self.write(&draft);
    }

    /// Sends a bad quote, which empties a slot by rule 9.
    fn bad_quote(&mut self, slot: StreamSlot) {
        let side = self.rng.pick(&Side::BOTH);
        let px = self.prices(slot)[side.index()];
        let base_draft = QuoteDraft { px: Some(px), ..self.draft(slot, side) };
        let draft = match self.rng.below(8) {
            0 => QuoteDraft { px: None, ..base_draft },
            1 => QuoteDraft { px: Some(0), ..base_draft },
            2 | 3 => QuoteDraft { qty: Some(0), ..base_draft },
            4 => QuoteDraft { qty: None, ..base_draft },
            5 => QuoteDraft { valid_until: Some(self.clock - self.rng.between(0, 5) * MS), ..base_draft },
            6 => {
                let mut date = ValueDates::default().spot(PAIRS[slot.pair].0, self.clock);
                while !date.is_weekend() {
                    date = date.following();
                }
                QuoteDraft { value_date: Some(date), ..base_draft }
            }
            _ => QuoteDraft { indicative: true, ..base_draft },
        };
        self.count("bad");
        self.write(&draft);
    }

    /// Sends a quote that is 60 to 300 pips away.
    fn spike(&mut self, slot: StreamSlot) {
        let away = self.rng.between(600, 3_000) * tenth_of_pip(slot.pair);
        let away = if self.rng.one_in(2) { away } else { -away };
        let px = self.prices(slot).map(|px| px + away);
        self.count("spike");
        self.two_sided(slot, px, None);
    }

    /// Sends a bid at the best offer for the pair, or above it: the market is locked or crossed.
    fn meeting(&mut self, slot: StreamSlot) {
        let tenth = tenth_of_pip(slot.pair);
        let Some(ask) = self.lowest_ask(slot.pair) else { return self.quote(slot) };
        let excess = self.rng.pick(&[0, 0, 5, 20]) * tenth;
        self.count(if excess == 0 { "locking" } else { "crossing" });
        let (bid, spread) = (ask + excess, 2 * self.publishers[slot.publisher].half * tenth);
        self.two_sided(slot, [bid, bid + spread], None);
    }

    /// Finds the lowest good offer, ignoring spikes.
    fn lowest_ask(&self, pair: usize) -> Option<i64> {
        let mut lowest: Option<i64> = None;
        let spike = self.rates[pair] - 300 * tenth_of_pip(pair);
        for (publisher, habits) in self.publishers.iter().enumerate() {
            for (tier, full_amount) in (0..self.config.tiers).flat_map(|tier| [(tier, false), (tier, true)]) {
                let slot = StreamSlot { publisher, pair, tier, full_amount };
                let Some(live) = &self.live[self.slot_index(slot)] else { continue };
                let is_good = live.valid_until.is_none_or(|until| until > self.clock)
                    && habits.quiet_until <= self.clock
                    && live.px[1] > spike;
                if is_good && lowest.is_none_or(|px| live.px[1] < px) {
                    lowest = Some(live.px[1]);
                }
            }
        }
        lowest
    }

    /// Sends an order on a quote: a deal, or a reject by the bank's last look.
    fn hit(&mut self, slot: StreamSlot) {
        let Some(live) = self.live[self.slot_index(slot)].clone() else { return self.quote(slot) };
        let side = self.rng.pick(&Side::BOTH);
        self.ids += 1;
        let (is_reject, order) = (self.rng.one_in(3), self.ids);
        let kind = if is_reject { "quote_reject" } else { "deal" };
        let mut line = format!("\"ts\":{},\"kind\":\"{kind}\"", self.clock);
        self.write_publisher(slot, &mut line);
        if let Some(id) = live.id {
            _ = write!(line, ",\"quote_id\":{id}");
        }
        // The trader sells at the bank's bid.
        let (trader, px) = (side.opposite().letter(), Price(live.px[side.index()]));
        let qty = TIERS[slot.tier];
        _ = write!(
            line,
            ",\"tier\":{},\"side\":\"{trader}\",\"px\":\"{px}\",\"qty\":\"{qty}\"",
            slot.tier + 1
        );
        _ = write!(line, ",\"oid\":\"O{order:09}\"");
        if is_reject {
            line.push_str(",\"reason\":\"last_look\"");
        } else {
            _ = write!(line, ",\"match_id\":\"D{order:09}\"");
        }
        self.count(kind);
        self.pending.push_back(line);
    }

    /// Switches a bank, or a bank in a pair, on or off.
    fn control(&mut self, slot: StreamSlot) {
        let mut switch = format!(",\"venue\":\"{}\"", self.publishers[slot.publisher].name());
        if self.rng.one_in(2) {
            _ = write!(switch, ",\"instr\":\"{}\"", PAIRS[slot.pair].0);
        }
        let mut line = format!("\"ts\":{},\"kind\":\"control\"", self.clock);
        match self.rng.below(20) {
            0..10 => {
                let until = self.clock + self.rng.between(20, 2_000) * MS;
                _ = write!(line, "{switch},\"action\":\"disable\",\"until\":{until}");
            }
            10..13 => {
                _ = write!(line, "{switch},\"action\":\"disable\"");
                self.open_controls.push(switch);
            }
            13..15 => {
                self.count("dry_run");
                _ = write!(line, "{switch},\"action\":\"disable\",\"dry_run\":true");
            }
            _ => {
                let switch = self.open_controls.pop().unwrap_or(switch);
                _ = write!(line, "{switch},\"action\":\"enable\"");
            }
        }
        self.count("control");
        self.pending.push_back(line);
    }

    /// Sends a quote without a bank or without a pair.
    fn nameless(&mut self, slot: StreamSlot) {
        let mut line = format!("\"ts\":{},\"kind\":\"quote\"", self.clock);
        if self.rng.one_in(2) {
            _ = write!(line, ",\"instr\":\"{}\"", PAIRS[slot.pair].0);
        } else {
            self.write_publisher(slot, &mut line);
            let offset = line.rfind("\"instr\":\"").expect("it was written") + "\"instr\":\"".len();
            line.insert_str(offset, "NDF-");
        }
        _ = write!(line, ",\"side\":\"B\",\"px\":\"{}\",\"qty\":\"1000000\"", Price(self.rates[slot.pair]));
        self.count("quote");
        self.count("nameless");
        self.pending.push_back(line);
    }

    fn write(&mut self, draft: &QuoteDraft) {
        let slot = draft.slot;
        let publisher = &self.publishers[slot.publisher];
        let (inverted, last_look) = (is_inverted(slot), publisher.last_look);
        let ts = self.clock - publisher.lag_ns;
        let unnamed = slot.tier == 0 && publisher.first_tier_unnamed;
        let mut line = format!("\"ts\":{ts},\"kind\":\"quote\"");
        self.write_publisher(slot, &mut line);
        if let Some(id) = &draft.id {
            _ = write!(line, ",\"quote_id\":{id}");
        }
        if draft.has_tier && !unnamed {
            _ = write!(line, ",\"tier\":{}", slot.tier + 1);
        }
        if let Some(side) = draft.side {
            let side = if inverted { side.opposite() } else { side };
            _ = write!(line, ",\"side\":\"{}\"", side.letter());
        }
        if let Some(px) = draft.px {
            let px = if inverted && px > 0 { UNIT_SQUARED / px } else { px };
            _ = write!(line, ",\"px\":\"{}\"", Price(px));
        }
        if let Some(qty) = draft.qty {
            // In units of the second currency, a little more than the tier.
            let rate = self.rates[slot.pair] / 1_000_000 + 1;
            let qty = if inverted { qty / 1_000 * rate } else { qty };
            _ = write!(line, ",\"qty\":\"{qty}\"");
        }
        if let Some(until) = draft.valid_until {
            _ = write!(line, ",\"valid_until\":{until}");
        }
        if draft.indicative {
            line.push_str(",\"indicative\":true");
        }
        if draft.has_amount_kind && (slot.full_amount || slot.tier % 2 == 1) {
            _ = write!(line, ",\"full_amount\":{}", slot.full_amount);
        }
        if draft.withdrawn {
            line.push_str(",\"withdrawn\":true");
        }
        if let Some(date) = draft.value_date {
            _ = write!(line, ",\"value_date\":\"{date}\"");
        }
        if let Some(last_look) = last_look.filter(|_| !draft.withdrawn) {
            _ = write!(line, ",\"last_look\":{last_look}");
        }
        self.pending.push_back(line);
        let features = [
            ("quote", true),
            ("withdrawn", draft.withdrawn),
            ("full_amount", slot.full_amount && !draft.withdrawn),
            ("inverted", inverted),
            ("forward", draft.value_date.is_some() && !draft.withdrawn),
            ("valid_until", draft.valid_until.is_some()),
            ("at_venue", self.publishers[slot.publisher].venue.is_some()),
            ("slow_clock", ts < self.clock),
        ];
        features.into_iter().filter(|(_, is_so)| *is_so).for_each(|(name, _)| self.count(name));
    }

    /// Writes the publisher and the pair, in one of the equivalent forms.
    fn write_publisher(&mut self, slot: StreamSlot, line: &mut String) {
        let joined = self.rng.one_in(2);
        let publisher = &self.publishers[slot.publisher];
        match (&publisher.bank, publisher.venue) {
            (Some(_), Some(_)) if joined => _ = write!(line, ",\"bank\":\"{}\"", publisher.name()),
            (Some(bank), Some(venue)) => _ = write!(line, ",\"venue\":\"{venue}\",\"bank\":\"{bank}\""),
            (Some(bank), None) => _ = write!(line, ",\"bank\":\"{bank}\""),
            (None, venue) => _ = write!(line, ",\"venue\":\"{}\"", venue.unwrap_or_default()),
        }
        let (first, second) = PAIRS[slot.pair].0.split_once('/').expect("a pair");
        let (first, second) = if is_inverted(slot) { (second, first) } else { (first, second) };
        let between = if publisher.plain_pairs { "" } else { "/" };
        _ = write!(line, ",\"instr\":\"{first}{between}{second}\"");
    }

    fn slot_index(&self, slot: StreamSlot) -> usize {
        let stream = (slot.publisher * self.config.pairs + slot.pair) * self.config.tiers + slot.tier;
        stream * 2 + usize::from(slot.full_amount)
    }

    fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }
}

/// Returns whether a publisher quotes a pair in the inverted orientation.
fn is_inverted(slot: StreamSlot) -> bool {
    (slot.publisher * 7 + slot.pair * 3) % 29 == 6
}

fn tenth_of_pip(pair: usize) -> i64 {
    pip_nanos(PAIRS[pair].0) / 10
}

const MS: i64 = 1_000_000;
const HEARTBEAT_NS: i64 = 1_000 * MS;
/// One, squared, in units of 1e-9.
const UNIT_SQUARED: i64 = 1_000_000_000_000_000_000;
