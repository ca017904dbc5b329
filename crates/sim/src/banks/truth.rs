//! What best prices are, event by event: the slow twin of the engine, each rule beside the code that holds it.
//!
//! The numbers are those of `docs/best-price-rules.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;

use unitape_model::Decimal;

use super::book::{BankQuote, BookKey, QuoteBooks, QuoteSlot, WithdrawalFilter};
use super::event::BankEvent;
use super::exact::ExactNumber;
use super::pair::{OrientedPair, ValueDates, pip_nanos};
use super::price::{BestPrices, OfferedQuote, SpikeRule, enabled_quotes, offer_order, write_origin};
use crate::error::Error;

/// The sizes for which best prices are computed, and the bounds of rule 19.
#[derive(Debug, Clone)]
pub struct BestPriceConfig {
    /// The sizes, in units of the first currency.
    pub sizes: Vec<Decimal>,
    /// Silence of a bank after which its quotes are withdrawn, in milliseconds; 0 is never.
    pub stale_ms: u32,
    /// The distance from the median that is still no spike, in pips; 0 is no check.
    pub spike_pips: u32,
    /// The least number of other banks for a median.
    pub spike_banks: u32,
    /// Value dates.
    pub dates: ValueDates,
}

impl Default for BestPriceConfig {
    /// Returns one and five million; 5 s, 50 pips, 3 banks; no calendar.
    fn default() -> Self {
        Self {
            sizes: vec![Decimal::from_int(1_000_000), Decimal::from_int(5_000_000)],
            stale_ms: 5_000,
            spike_pips: 50,
            spike_banks: 3,
            dates: ValueDates::default(),
        }
    }
}

/// Best prices of a stream of events.
#[derive(Debug)]
pub struct BestPriceTruth {
    config: BestPriceConfig,
    /// In order, each once.
    sizes: Vec<ExactNumber>,
    now: Option<i64>,
    books: QuoteBooks,
    /// Rule 7: when each bank was last heard.
    heard: BTreeMap<String, i64>,
    /// Rule 18: the latest control of each switch, if it disables.
    disabled: BTreeMap<BankSwitch, ControlEnd>,
    timers: BTreeMap<i64, Vec<TimerSubject>>,
    /// The lines printed last.
    printed: BTreeMap<BookKey, Vec<Option<String>>>,
    refused: BTreeMap<&'static str, u64>,
    spikes: u64,
    lines: u64,
}

/// Rule 18: a bank, or a bank in one pair.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct BankSwitch {
    bank: String,
    pair: Option<String>,
}

/// The end of a control; `None`: it does not end.
type ControlEnd = Option<i64>;

#[derive(Debug)]
enum TimerSubject {
    Expiry(BookKey, QuoteSlot),
    Silence(String),
    ControlEnd(BankSwitch),
}

impl BestPriceTruth {
    /// Makes the truth of a stream, without quotes.
    ///
    /// # Errors
    /// Fails if `config` has no size, a size that is not above zero, or no other bank for a median.
    pub fn new(config: BestPriceConfig) -> Result<Self, Error> {
        let least = |name, value| Error::OutOfRange { name, value, least: 1, most: u64::MAX };
        if config.sizes.is_empty() || config.sizes.iter().any(|size| size.mantissa() <= 0) {
            return Err(least("size", 0));
        }
        if config.spike_banks == 0 {
            return Err(least("spike_banks", 0));
        }
        let mut sizes: Vec<ExactNumber> = config.sizes.iter().map(|size| exact(*size)).collect();
        sizes.sort();
        sizes.dedup();
        Ok(Self {
            config,
            sizes,
            now: None,
            books: QuoteBooks::default(),
            heard: BTreeMap::new(),
            disabled: BTreeMap::new(),
            timers: BTreeMap::new(),
            printed: BTreeMap::new(),
            refused: BTreeMap::new(),
            spikes: 0,
            lines: 0,
        })
    }

    /// Applies the event of a line and appends the lines that follow from it. Rule 3: in JSON an event is a message, so
    /// rule 1's evaluation comes after each.
    ///
    /// # Errors
    /// Fails if the line is no event.
    pub fn apply_line(&mut self, line: &str, out: &mut Vec<u8>) -> Result<(), Error> {
        let event = BankEvent::parse(line)?;
        self.apply(&event, out);
        Ok(())
    }

    /// Applies an event and appends the lines that follow from it.
    pub fn apply(&mut self, event: &BankEvent, out: &mut Vec<u8>) {
        // Rule 4: the running maximum of ts over all events but those whose clock is ahead. Before there is one, it is 0.
        let now = match (event.clock_ahead, self.now) {
            (true, now) => now.unwrap_or(0),
            (false, None) => event.ts,
            (false, Some(now)) => now.max(event.ts),
        };
        self.fire_timers(now, out);
        self.now = if event.clock_ahead { self.now } else { Some(now) };
        let mut changed = BTreeSet::new();
        match event.kind.as_str() {
            "quote" => self.quote(event, now, &mut changed),
            "status" => self.status(event, now, &mut changed),
            "control" => self.control(event, now, &mut changed),
            // Rule 13: deals and rejects leave book and best price alone.
            _ => {}
        }
        self.evaluate(&changed, now, out);
    }

    /// Counts the quotes that the book refused, by reason (rule 9).
    #[must_use]
    pub fn refused(&self) -> &BTreeMap<&'static str, u64> {
        &self.refused
    }

    /// Counts the quotes that were a spike at some evaluation (rule 17).
    #[must_use]
    pub fn spikes(&self) -> u64 {
        self.spikes
    }

    /// Counts the lines so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Writes the books after the last event, one line each in the order of rule 3, with all quotes in the order of
    /// rule 14. The form is that of `unitape fx book --json`.
    #[must_use]
    pub fn book_lines(&self) -> String {
        let mut out = String::new();
        for (BookKey { pair, value_date }, book) in self.books.with_quotes() {
            let ts = self.now.unwrap_or(0);
            _ = write!(out, "{{\"ts\":{ts},\"instr\":\"{pair}\",\"value_date\":\"{value_date}\"");
            let enabled = enabled_quotes(book, |bank| is_disabled(&self.disabled, bank, pair));
            let mut all = enabled_quotes(book, |_| false);
            for (side, name) in unitape_model::Side::BOTH.into_iter().zip(["bids", "asks"]) {
                let spikes = spike_rule(&self.config, pair).spikes(&enabled[side.index()], side);
                let quotes = &mut all[side.index()];
                quotes.sort_by(|a, b| offer_order(side, a, b));
                let off = |q: &OfferedQuote<'_>| match is_disabled(&self.disabled, &q.slot.bank, pair) {
                    true => Some("disabled"),
                    false => spikes.contains(q.slot).then_some("spike"),
                };
                let entries: Vec<String> = quotes.iter().map(|q| book_entry(q, off(q))).collect();
                _ = write!(out, ",\"{name}\":[{}]", entries.join(","));
            }
            out.push_str("}\n");
        }
        out
    }

    /// Fires timers due at or before the new `now` (rule 4), in due order. Timers with the same due time fire together,
    /// and their lines carry that time.
    fn fire_timers(&mut self, now: i64, out: &mut Vec<u8>) {
        while let Some(entry) = self.timers.first_entry().filter(|entry| *entry.key() <= now) {
            let (due, subjects) = entry.remove_entry();
            let mut changed = BTreeSet::new();
            for subject in subjects {
                match subject {
                    TimerSubject::Expiry(key, slot) => self.books.expire(&key, &slot, due, &mut changed),
                    TimerSubject::Silence(bank) => {
                        // Rule 7: only if it was not heard since.
                        if self.silence_due(self.heard[&bank]) == Some(due) {
                            self.books.withdraw_all(&bank, &mut changed);
                        }
                    }
                    TimerSubject::ControlEnd(switch) => {
                        // Rule 18: `until` ends the control, if it is still the latest.
                        if self.disabled.get(&switch) == Some(&Some(due)) {
                            self.disabled.remove(&switch);
                            self.books.add_books_of_bank(&switch.bank, switch.pair.as_deref(), &mut changed);
                        }
                    }
                }
            }
            self.evaluate(&changed, due, out);
        }
    }

    fn quote(&mut self, event: &BankEvent, now: i64, changed: &mut BTreeSet<BookKey>) {
        // Rule 9: without bank, pair or side it changes nothing. Rule 7: also a refused quote of a bank counts as heard.
        let Some(bank) = &event.bank else { return self.refuse("no_bank") };
        self.hear(bank, now);
        let pair = event.instr.as_deref().and_then(OrientedPair::parse);
        let Some(OrientedPair { name: pair, inverted }) = pair else { return self.refuse("no_pair") };
        // Rule 12: a quote the other way swaps its side, also in withdrawals.
        let side = event.side.map(|side| if inverted { side.opposite() } else { side });
        if event.withdrawn {
            let filter = WithdrawalFilter {
                side,
                tier: event.tier,
                full_amount: event.full_amount,
                value_date: event.value_date,
                quote_id: event.quote_id.clone(),
            };
            return self.books.withdraw(&pair, bank, &filter, changed);
        }
        let Some(side) = side else { return self.refuse("no_side") };
        let dates = &self.config.dates;
        // Rule 11: missing means spot, by the quote's own time.
        let value_date = event.value_date.unwrap_or_else(|| dates.spot(&pair, event.ts));
        let is_date_refused = event.value_date.is_some_and(|date| !dates.accepts(&pair, date, event.ts));
        let key = BookKey { pair, value_date };
        let slot = QuoteSlot {
            bank: bank.clone(),
            tier: event.tier.unwrap_or(0),
            full_amount: event.full_amount == Some(true),
            side,
        };
        // Rule 9: bad quotes empty their slot, and the first reason counts.
        let px = event.px.filter(|px| px.0 > 0);
        let qty = event.qty.filter(|qty| qty.mantissa() > 0);
        let reason = match (px, qty) {
            (None, _) => Some("price"),
            (_, None) => Some("quantity"),
            _ if event.indicative => Some("indicative"),
            _ if is_date_refused => Some("value_date"),
            _ if event.valid_until.is_some_and(|until| until <= now) => Some("expired"),
            _ => None,
        };
        if let Some(reason) = reason {
            self.books.empty(&key, &slot, changed);
            return self.refuse(reason);
        }
        let (px, quoted_qty) = (px.expect("it was checked"), qty.expect("it was checked"));
        let qty = exact(quoted_qty);
        // Rule 12: the quantity in base is qty × px.
        let qty = if inverted { qty.times(&ExactNumber::new(px.0 as u128, -9)) } else { qty };
        if let Some(until) = event.valid_until {
            self.timer(until, TimerSubject::Expiry(key.clone(), slot.clone()));
        }
        let quote = BankQuote {
            px,
            inverted,
            qty,
            quoted_qty,
            quote_id: event.quote_id.clone(),
            placed: now,
            valid_until: event.valid_until,
            spike_counted: false,
        };
        self.books.insert_quote(&key, slot, quote, changed);
    }

    /// Applies a `status` event (rule 7): a heartbeat shows that the bank is alive, a logout withdraws all its quotes.
    fn status(&mut self, event: &BankEvent, now: i64, changed: &mut BTreeSet<BookKey>) {
        let Some(bank) = &event.bank else { return };
        self.hear(bank, now);
        if event.state.as_deref() == Some("logout") {
            self.books.withdraw_all(bank, changed);
        }
    }

    /// Applies `disable` or `enable` to a bank, or to a bank in a pair (rule 18). The latest event counts.
    fn control(&mut self, event: &BankEvent, now: i64, changed: &mut BTreeSet<BookKey>) {
        let disables = match event.action.as_deref() {
            Some("disable") => true,
            Some("enable") => false,
            _ => return,
        };
        let Some(bank) = event.bank.clone().filter(|_| !event.dry_run) else { return };
        let pair = match event.instr.as_deref().map(OrientedPair::parse) {
            Some(None) => return,
            Some(Some(pair)) => Some(pair.name),
            None => None,
        };
        let switch = BankSwitch { bank, pair };
        self.books.add_books_of_bank(&switch.bank, switch.pair.as_deref(), changed);
        let is_over = event.until.is_some_and(|until| until <= now);
        if disables && !is_over {
            if let Some(until) = event.until {
                self.timer(until, TimerSubject::ControlEnd(switch.clone()));
            }
            self.disabled.insert(switch, event.until);
        } else {
            self.disabled.remove(&switch);
        }
    }

    /// Writes a line for each (`instr`, `value_date`, `size`) whose content changed, in the order of rule 3 (rule 1).
    /// Only the `changed` books can have new content.
    fn evaluate(&mut self, changed: &BTreeSet<BookKey>, ts: i64, out: &mut Vec<u8>) {
        for key in changed {
            let disabled = &self.disabled;
            let is_disabled = |bank: &str| is_disabled(disabled, bank, &key.pair);
            let spike = spike_rule(&self.config, &key.pair);
            let book = self.books.book_mut(key);
            let enabled = enabled_quotes(book, is_disabled);
            let mut spikes = BTreeSet::new();
            for side in unitape_model::Side::BOTH {
                spikes.extend(spike.spikes(&enabled[side.index()], side));
            }
            // Rule 17: counted once a quote.
            for slot in &spikes {
                let quote = book.get_mut(slot).expect("a spike is a quote of the book");
                self.spikes += u64::from(!quote.spike_counted);
                quote.spike_counted = true;
            }
            let mut offered = enabled_quotes(book, is_disabled);
            offered.iter_mut().for_each(|quotes| quotes.retain(|q| !spikes.contains(q.slot)));
            let printed = self.printed.entry(key.clone()).or_insert_with(|| vec![None; self.sizes.len()]);
            for (size, last) in self.sizes.iter().zip(printed) {
                let prices = BestPrices::new(&offered, size);
                // Before its first price a key prints nothing.
                if last.is_none() && prices.is_empty() {
                    continue;
                }
                let content = prices.content();
                if last.as_ref() != Some(&content) {
                    let BookKey { pair, value_date } = key;
                    writeln!(
                        out,
                        "{{\"ts\":{ts},\"instr\":\"{pair}\",\"value_date\":\"{value_date}\",\"size\":\"{size}\",{content}}}"
                    )
                    .expect("memory takes all");
                    self.lines += 1;
                    *last = Some(content);
                }
            }
        }
    }

    /// Notes that a bank was heard at `now` (rule 7).
    fn hear(&mut self, bank: &str, now: i64) {
        self.heard.insert(bank.to_owned(), now);
        if let Some(due) = self.silence_due(now) {
            let subjects = self.timers.entry(due).or_default();
            // One is enough for all that is heard at one time.
            if !subjects.iter().any(|s| matches!(s, TimerSubject::Silence(other) if other == bank)) {
                subjects.push(TimerSubject::Silence(bank.to_owned()));
            }
        }
    }

    fn silence_due(&self, heard: i64) -> Option<i64> {
        let stale_ns = i64::from(self.config.stale_ms) * 1_000_000;
        if stale_ns == 0 { None } else { heard.checked_add(stale_ns) }
    }

    fn timer(&mut self, due: i64, subject: TimerSubject) {
        self.timers.entry(due).or_default().push(subject);
    }

    fn refuse(&mut self, reason: &'static str) {
        *self.refused.entry(reason).or_default() += 1;
    }
}

fn spike_rule(config: &BestPriceConfig, pair: &str) -> SpikeRule {
    SpikeRule {
        distance_nanos: i128::from(config.spike_pips) * i128::from(pip_nanos(pair)),
        banks: config.spike_banks as usize,
    }
}

/// Returns whether a bank is switched off, everywhere or in this pair (rule 18).
fn is_disabled(disabled: &BTreeMap<BankSwitch, ControlEnd>, bank: &str, pair: &str) -> bool {
    let pairs = [None, Some(pair.to_owned())];
    pairs.into_iter().any(|pair| disabled.contains_key(&BankSwitch { bank: bank.to_owned(), pair }))
}

/// Writes a quote of a book, with the reason if it is not on offer.
fn book_entry(q: &OfferedQuote<'_>, off: Option<&str>) -> String {
    let mut text = format!("{{\"px\":\"{}\",\"qty\":\"{}\"", q.quote.px, q.quote.quoted_qty);
    write_origin(q, &mut text);
    _ = write!(text, ",\"placed\":{}", q.quote.placed);
    if let Some(until) = q.quote.valid_until {
        _ = write!(text, ",\"valid_until\":{until}");
    }
    for (flag, name) in [(q.slot.full_amount, "full_amount"), (q.quote.inverted, "inverted")] {
        if flag {
            _ = write!(text, ",\"{name}\":true");
        }
    }
    if let Some(off) = off {
        _ = write!(text, ",\"off\":\"{off}\"");
    }
    text + "}"
}

fn exact(number: Decimal) -> ExactNumber {
    ExactNumber::new(number.mantissa().unsigned_abs().into(), number.exponent().into())
}
