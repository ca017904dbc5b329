//! The evaluator against one that keeps nothing: at every instant all events so far are gone through from the first.

use super::small_stream::small_stream;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use unitape_model::{CivilDate, Decimal, Side};
use unitape_sim::banks::{
    BankEvent, BestPriceConfig, BestPriceTruth, ExactNumber, OrientedPair, QuoteId, ValueDates,
};

const STALE_NS: i64 = 20_000_000;
const SPIKE_PIPS: i128 = 50;
const SPIKE_BANKS: usize = 2;
const SIZES: [i128; 3] = [1, 4, 9];
const ONE: i128 = 1_000_000_000;

/// What is kept from event to event may be wrong in ways that no case of a few lines shows: a timer of a quote that was
/// replaced, a book that nobody looked at again.
#[test]
fn prices_are_those_from_scratch() {
    let mut lines = 0;
    for seed in 0..120 {
        let events = small_stream(seed, 70);
        let mut truth = BestPriceTruth::new(BestPriceConfig {
            sizes: SIZES.map(|size| Decimal::from_int(size as i64)).to_vec(),
            stale_ms: (STALE_NS / 1_000_000) as u32,
            spike_banks: SPIKE_BANKS as u32,
            ..BestPriceConfig::default()
        })
        .expect("a good config");
        let mut out = Vec::new();
        events.iter().for_each(|line| truth.apply_line(line, &mut out).expect("an event"));
        let parsed: Vec<BankEvent> = events.iter().map(|e| BankEvent::parse(e).expect("an event")).collect();
        let out = String::from_utf8(out).expect("UTF-8");
        assert_eq!(out, from_scratch(&parsed), "seed {seed}:\n{}", events.join("\n"));
        lines += out.lines().count();
    }
    assert!(lines > 5_000, "{lines} lines are no test");
}

#[derive(Debug, Clone, PartialEq)]
struct ScratchQuote {
    pair: String,
    date: CivilDate,
    side: Side,
    bank: String,
    tier: u64,
    full: bool,
    inverted: bool,
    px: i128,
    /// In units of 1e-9.
    qty: i128,
    id: Option<QuoteId>,
    placed: i64,
    valid_until: Option<i64>,
    is_good: bool,
}

fn from_scratch(events: &[BankEvent]) -> String {
    let mut nows: Vec<i64> = Vec::new();
    let (mut out, mut printed) = (String::new(), BTreeMap::new());
    let mut now = None;
    for (n, event) in events.iter().enumerate() {
        let before = nows.last().copied();
        let next = if event.clock_ahead { now.unwrap_or(0) } else { now.unwrap_or(i64::MIN).max(event.ts) };
        now = if event.clock_ahead { now } else { Some(next) };
        let past = &events[..n];
        let mut instants: BTreeSet<i64> = past.iter().filter_map(|e| e.valid_until).collect();
        instants.extend(past.iter().filter_map(|e| e.until));
        instants.extend(nows.iter().map(|heard| heard + STALE_NS));
        for instant in instants.into_iter().filter(|t| before.is_some_and(|b| *t > b) && *t <= next) {
            print(past, &nows, instant, &mut printed, &mut out);
        }
        nows.push(next);
        print(&events[..=n], &nows, next, &mut printed, &mut out);
    }
    out
}

fn print(
    events: &[BankEvent],
    nows: &[i64],
    t: i64,
    printed: &mut BTreeMap<String, String>,
    out: &mut String,
) {
    let all = quotes(events, nows, t);
    let mut keys: BTreeSet<(String, CivilDate)> = BTreeSet::new();
    for (event, now) in events.iter().zip(nows) {
        keys.extend(quote(event, *now).map(|q| (q.pair, q.date)));
    }
    for (pair, date) in keys {
        let enabled: Vec<&ScratchQuote> = all
            .iter()
            .filter(|q| q.pair == pair && q.date == date)
            .filter(|q| !is_off(events, &q.bank, None, t) && !is_off(events, &q.bank, Some(&pair), t))
            .collect();
        let offered: Vec<&ScratchQuote> =
            enabled.iter().filter(|q| !is_spike(q, &enabled)).copied().collect();
        for size in SIZES {
            let head = format!("\"instr\":\"{pair}\",\"value_date\":\"{date}\",\"size\":\"{size}\"");
            let (content, is_empty) = content(&offered, size * ONE);
            let last = printed.get(&head);
            if last != Some(&content) && !(last.is_none() && is_empty) {
                _ = writeln!(out, "{{\"ts\":{t},{head},{content}}}");
                printed.insert(head, content);
            }
        }
    }
}

/// The quote that an event places, or that empties its slot.
fn quote(event: &BankEvent, now: i64) -> Option<ScratchQuote> {
    if event.kind != "quote" || event.withdrawn {
        return None;
    }
    let OrientedPair { name: pair, inverted } = OrientedPair::parse(event.instr.as_deref()?)?;
    let side = event.side?;
    let dates = ValueDates::default();
    let date = event.value_date.unwrap_or_else(|| dates.spot(&pair, event.ts));
    let px = event.px.map_or(0, |px| i128::from(px.0));
    let qty = event.qty.map_or(0, |qty| qty.scaled(0).expect("whole"));
    let is_late = event.valid_until.is_some_and(|until| until <= now);
    Some(ScratchQuote {
        side: if inverted { side.opposite() } else { side },
        bank: event.bank.clone()?,
        tier: event.tier.unwrap_or(0),
        full: event.full_amount == Some(true),
        inverted,
        px,
        qty: if inverted { qty * px } else { qty * ONE },
        id: event.quote_id.clone(),
        placed: now,
        valid_until: event.valid_until,
        is_good: px > 0 && qty > 0 && !event.indicative && !is_late && dates.accepts(&pair, date, event.ts),
        pair,
        date,
    })
}

/// The quotes that neither another event nor time has taken away.
fn quotes(events: &[BankEvent], nows: &[i64], t: i64) -> Vec<ScratchQuote> {
    let mut found = Vec::new();
    for (n, event) in events.iter().enumerate() {
        let Some(q) = quote(event, nows[n]).filter(|q| q.is_good) else { continue };
        let mut heard = nows[n];
        let mut is_there = q.valid_until.is_none_or(|until| t < until);
        for (later, now) in events.iter().zip(nows).skip(n + 1) {
            if later.bank.as_ref() != Some(&q.bank) || !["quote", "status"].contains(&later.kind.as_str()) {
                continue;
            }
            is_there &= *now < heard + STALE_NS && later.state.as_deref() != Some("logout");
            heard = *now;
            is_there &= !quote(later, *now).is_some_and(|other| {
                (&other.pair, other.date, other.side, other.tier, other.full)
                    == (&q.pair, q.date, q.side, q.tier, q.full)
            });
            is_there &= !(later.withdrawn && is_withdrawn(&q, later));
        }
        if is_there && t < heard + STALE_NS {
            found.push(q);
        }
    }
    found
}

fn is_withdrawn(q: &ScratchQuote, by: &BankEvent) -> bool {
    let Some(pair) = by.instr.as_deref().and_then(OrientedPair::parse) else { return false };
    let side = if pair.inverted { q.side.opposite() } else { q.side };
    pair.name == q.pair
        && (by.side.is_none() || by.side == Some(side))
        && (by.tier.is_none() || by.tier == Some(q.tier))
        && (by.full_amount.is_none() || by.full_amount == Some(q.full))
        && (by.value_date.is_none() || by.value_date == Some(q.date))
        && (by.quote_id.is_none() || by.quote_id == q.id)
}

fn is_off(events: &[BankEvent], bank: &str, pair: Option<&str>, t: i64) -> bool {
    let of_switch = |e: &&BankEvent| {
        let instr = e.instr.as_deref().and_then(OrientedPair::parse).map(|p| p.name);
        e.kind == "control" && !e.dry_run && e.bank.as_deref() == Some(bank) && instr.as_deref() == pair
    };
    let last = events.iter().rfind(of_switch);
    last.is_some_and(|e| e.action.as_deref() == Some("disable") && e.until.is_none_or(|until| t < until))
}

fn is_spike(q: &ScratchQuote, enabled: &[&ScratchQuote]) -> bool {
    let mut best: BTreeMap<&str, Vec<i128>> = BTreeMap::new();
    for other in enabled.iter().filter(|o| o.side == q.side && o.bank != q.bank && !o.inverted) {
        best.entry(&other.bank).or_default().push(other.px);
    }
    let of_side = |prices: &Vec<i128>| {
        if q.side == Side::Buy { prices.iter().max() } else { prices.iter().min() }.copied()
    };
    let mut best: Vec<i128> = best.values().filter_map(of_side).collect();
    best.sort_unstable();
    if best.len() < SPIKE_BANKS {
        return false;
    }
    let (a, b) = (best[(best.len() - 1) / 2], best[best.len() / 2]);
    let pips = SPIKE_PIPS * if q.pair.ends_with("JPY") { 10_000_000 } else { 100_000 };
    let (over, under) = value(q);
    // |over / under − (a + b) / 2| > pips
    (2 * over - (a + b) * under).abs() > 2 * pips * under
}

/// The price of the pair the right way round, in units of 1e-9, as a fraction.
fn value(q: &ScratchQuote) -> (i128, i128) {
    if q.inverted { (ONE * ONE, q.px) } else { (q.px, 1) }
}

fn is_before(a: &ScratchQuote, b: &ScratchQuote) -> bool {
    let ((a_over, a_under), (b_over, b_under)) = (value(a), value(b));
    let (of_a, of_b) = (a_over * b_under, b_over * a_under);
    if of_a != of_b {
        return if a.side == Side::Buy { of_a > of_b } else { of_a < of_b };
    }
    (a.placed, a.bank.as_bytes(), a.tier, a.full) < (b.placed, b.bank.as_bytes(), b.tier, b.full)
}

fn first<'a>(quotes: &[&'a ScratchQuote]) -> Option<&'a ScratchQuote> {
    quotes.iter().copied().find(|q| quotes.iter().all(|other| other == q || is_before(q, other)))
}

fn content(offered: &[&ScratchQuote], size: i128) -> (String, bool) {
    let of = |side: Side| offered.iter().copied().filter(move |q| q.side == side);
    let [bid, ask] = Side::BOTH.map(|side| first(&of(side).filter(|q| q.qty >= size).collect::<Vec<_>>()));
    let mut state = "normal";
    if let (Some(bid), Some(ask)) = (bid, ask) {
        let ((b_over, b_under), (a_over, a_under)) = (value(bid), value(ask));
        let (bid, ask) = (b_over * a_under, a_over * b_under);
        state = if bid > ask {
            "crossed"
        } else if bid == ask {
            "locked"
        } else {
            state
        };
    }
    let mut text = format!("\"state\":\"{state}\"");
    for (name, best) in [("bid", bid), ("ask", ask)] {
        let flags = |q: &ScratchQuote| {
            let full = if q.full { ",\"full_amount\":true" } else { "" };
            format!("{full}{}", if q.inverted { ",\"inverted\":true" } else { "" })
        };
        let json = best.map(|q| format!("{{\"px\":\"{}\",{}{}}}", units(q.px, -9), origin(q), flags(q)));
        _ = write!(text, ",\"{name}\":{}", json.as_deref().unwrap_or("null"));
    }
    let sweeps = Side::BOTH.map(|side| sweep(of(side).filter(|q| !q.full && !q.inverted).collect(), size));
    for (name, sweep) in ["bid_sweep", "ask_sweep"].iter().zip(&sweeps) {
        _ = write!(text, ",\"{name}\":{}", sweep.as_deref().unwrap_or("null"));
    }
    (text, bid.is_none() && ask.is_none() && sweeps.iter().all(Option::is_none))
}

fn sweep(mut quotes: Vec<&ScratchQuote>, size: i128) -> Option<String> {
    let (mut left, mut notional, mut legs) = (size, 0, Vec::new());
    while left > 0 {
        let q = first(&quotes)?;
        quotes.retain(|other| *other != q);
        let qty = left.min(q.qty);
        left -= qty;
        notional += q.px * qty;
        legs.push(format!("{{\"px\":\"{}\",\"qty\":\"{}\",{}}}", units(q.px, -9), units(qty, -9), origin(q)));
    }
    let (notional, qty, legs) = (units(notional, -18), units(size, -9), legs.join(","));
    Some(format!("{{\"notional\":\"{notional}\",\"qty\":\"{qty}\",\"legs\":[{legs}]}}"))
}

fn origin(q: &ScratchQuote) -> String {
    let id = match &q.id {
        Some(QuoteId::Number(id)) => format!(",\"quote_id\":{id}"),
        Some(QuoteId::Text(id)) => format!(",\"quote_id\":\"{id}\""),
        None => String::new(),
    };
    format!("\"bank\":\"{}\",\"tier\":{}{id}", q.bank, q.tier)
}

fn units(mantissa: i128, exponent: i32) -> String {
    ExactNumber::new(mantissa as u128, exponent).to_string()
}
