//! A market of several days against what can be known of it from its lines.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use unitape_model::{InstrumentId, Side};
use unitape_sim::SimConfig;
use unitape_sim::day::market::{
    ControlAction, ControlRequest, LevelAction, Market, MarketConfig, MarketEvent, MarketEventBody,
    PriceLevel, write_market_line,
};
use unitape_sim::day::{DayEventBody, MarketPhase, OrderLedger, Scenario};

fn config(seed: u64, days: u32) -> MarketConfig {
    let day = SimConfig {
        seed,
        events: 12_000,
        instruments: 24,
        span_ns: 3600 * 1_000_000_000,
        plant: [].into(),
        near_misses: [].into(),
        ..SimConfig::default()
    };
    MarketConfig { day, days, ..MarketConfig::default() }
}

fn market(seed: u64, days: u32) -> Market {
    Market::new(config(seed, days)).expect("a good config")
}

/// Plays to the end and gives the bytes of the lines.
fn play(market: &mut Market) -> Vec<u8> {
    let (mut lines, mut scratch) = (Vec::new(), Vec::new());
    while market.step().is_some() {
        market.last_events().iter().for_each(|e| write_market_line(market, e, &mut scratch, &mut lines));
    }
    lines
}

fn parse(lines: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(lines).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn text<'a>(event: &'a Value, field: &str) -> &'a str {
    event[field].as_str().unwrap_or_else(|| panic!("no {field} in {event}"))
}

/// A decimal in units of 1e-9.
fn nano(event: &Value, field: &str) -> i128 {
    let text = text(event, field);
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    sign * format!("{whole}{places:0<9}").parse::<i128>().expect("a decimal")
}

fn whole(event: &Value, field: &str) -> i128 {
    nano(event, field) / NANO
}

const NANO: i128 = 1_000_000_000;

/// Names of an owner and of an instrument.
type OwnerInstrument = (String, String);

/// A hidden source of chance, or one that days share, would give every run another market.
#[test]
fn a_seed_decides_all_days() {
    let run = |seed| {
        let mut market = market(seed, 3);
        let lines = play(&mut market);
        let mut truth = Vec::new();
        market.write_truth(&mut truth).expect("a vector takes all");
        (lines, truth)
    };
    let one = run(7);
    assert!(one == run(7), "one seed, two markets");
    assert!(one.0 != run(8).0, "two seeds, one market");
    let events = parse(&one.0);
    let kinds: BTreeSet<&str> = events.iter().map(|e| text(e, "kind")).collect();
    for kind in ["index", "level", "position", "list", "ref_px", "comm", "statement", "news", "party", "bbo"]
    {
        assert!(kinds.contains(kind), "no {kind}");
    }
    let mut ts = 0;
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], n + 1);
        assert!(event["ts"].as_u64() >= Some(ts), "time goes back: {event}");
        ts = event["ts"].as_u64().expect("a time");
    }
    let has = |kind: &str, field: &str, value: &str| {
        events
            .iter()
            .any(|e| e["kind"] == kind && (value.is_empty() && !e[field].is_null() || e[field] == value))
    };
    for (kind, field, value) in [
        ("order_new", "desk", ""),
        ("order_new", "entry", "algo"),
        ("exec", "short", "Y"),
        ("order_new", "short", "N"),
        ("order_cancel", "short", "E"),
        ("order_cancel", "reason", "rejected"),
        ("news", "class", ""),
        ("news", "language", "en"),
        ("news", "revises", ""),
        ("comm", "reply_to", ""),
        ("comm", "instrs", ""),
        ("party", "how", "address"),
        ("list", "role", ""),
        ("list", "issuer", ""),
        ("trade", "trade_flags", ""),
        ("exec", "trade_flags", ""),
    ] {
        assert!(has(kind, field, value), "no {kind} with {field} {value}");
    }
    assert!(events.iter().any(|e| e["kind"] == "comm" && e["changed"] == true));
}

/// A position, a price or a balance that is not carried over makes the second day another market. Weekends are no days.
#[test]
fn days_continue_where_the_last_one_ended() {
    // A Thursday.
    let mut config = config(5, 4);
    config.day.start_ns += 3 * 86_400_000_000_000;
    let mut market = Market::new(config).expect("a good config");
    let events = parse(&play(&mut market));
    let dates: Vec<&str> = market.days().iter().map(|day| day.date.as_str()).collect();
    assert_eq!(dates, ["2026-03-05", "2026-03-06", "2026-03-09", "2026-03-10"]);
    let mut held: HashMap<(String, String), i128> = HashMap::new();
    let mut given: BTreeMap<&str, HashMap<OwnerInstrument, (i128, i128)>> = BTreeMap::new();
    let mut closes: HashMap<String, i128> = HashMap::new();
    let mut cash: HashMap<(String, String), i128> = HashMap::new();
    let mut paid: HashMap<(String, String), i128> = HashMap::new();
    let mut ccy: HashMap<String, String> = HashMap::new();
    let (mut prev_closes, mut statements, mut checked) = (0, 0, 0);
    let mut index = None;
    for event in &events {
        match text(event, "kind") {
            "ref" if event["class"] == "TIEXXX" => {
                assert!(index.is_none_or(|px| px == nano(event, "prev_close")), "{event}");
            }
            "ref" => {
                ccy.insert(text(event, "instr").to_owned(), text(event, "ccy").to_owned());
                if let Some(px) = closes.remove(text(event, "instr")) {
                    assert_eq!(px, nano(event, "prev_close"), "{event}");
                    prev_closes += 1;
                }
            }
            "index" => index = Some(nano(event, "px")),
            "session" if event["phase"] == "close" && !event["px"].is_null() => {
                closes.entry(text(event, "instr").to_owned()).or_insert_with(|| nano(event, "px"));
            }
            "position" => {
                let key = (text(event, "owner").to_owned(), text(event, "instr").to_owned());
                let qty = whole(event, "qty");
                assert_ne!(qty, 0);
                let day = given.entry(text(event, "day")).or_default();
                assert!(day.insert(key, (qty, whole(event, "open_interest"))).is_none(), "{event}");
            }
            "exec" => {
                // By the second day's positions all that came before is known.
                let sign = if event["side"] == "B" { 1 } else { -1 };
                let key = (text(event, "owner").to_owned(), text(event, "instr").to_owned());
                *held.entry(key).or_default() += sign * whole(event, "qty");
                let account = (text(event, "acct").to_owned(), ccy[text(event, "instr")].clone());
                *paid.entry(account).or_default() -= sign * whole(event, "qty") * nano(event, "px");
            }
            "statement" => {
                let account = (text(event, "acct").to_owned(), text(event, "ccy").to_owned());
                let opening = cash.get(&account).copied().unwrap_or(0);
                assert_eq!(nano(event, "opening"), opening, "{event}");
                let closing = opening + paid.remove(&account).expect("a statement of what was paid");
                assert_eq!(nano(event, "closing"), closing, "{event}");
                let entries = event["entries"].as_array().expect("a list");
                assert_eq!(entries.iter().map(|e| nano(e, "amt")).sum::<i128>(), closing - opening);
                cash.insert(account, closing);
                statements += 1;
            }
            "party" if given.len() > checked => {
                // The positions of a day are complete: a party comes after them.
                checked = given.len();
                let day = given.values().next_back().expect("there is one");
                if checked == 1 {
                    assert!(day.len() > 100, "{}", day.len());
                    held.extend(day.iter().map(|(key, &(qty, _))| (key.clone(), qty)));
                    continue;
                }
                held.retain(|_, qty| *qty != 0);
                assert_eq!(day.len(), held.len());
                for (key, qty) in &held {
                    let long = held.iter().filter(|(other, qty)| other.1 == key.1 && **qty > 0);
                    let interest: i128 = long.map(|(_, qty)| qty).sum();
                    assert_eq!(day.get(key), Some(&(*qty, interest)), "{key:?}");
                }
            }
            _ => {}
        }
    }
    assert!(paid.is_empty(), "no statement of {paid:?}");
    assert_eq!((checked, given.len()), (4, 4));
    assert!(prev_closes > 60 && statements > 500, "{prev_closes} {statements}");
    let world = market.world();
    for ((owner, instr), qty) in &held {
        let owner = (0..world.groups.len() as u32).find(|&o| world.owner_of(o) == owner).expect("an owner");
        let instr =
            world.instrument_ids().find(|i| world.instruments[i.index()].isin == *instr).expect("listed");
        assert_eq!(i128::from(market.holding(owner, instr)), *qty);
    }
}

/// The order of links and positions: the test above relies on it.
#[test]
fn positions_come_before_the_groups_of_a_day() {
    let mut market = market(5, 2);
    let (mut positions, mut groups) = (0, 0);
    while let Some(events) = market.step() {
        for event in events {
            match event.body {
                MarketEventBody::Position { .. } => {
                    assert_eq!(groups, 0, "a position after a group");
                    positions += 1;
                }
                MarketEventBody::Day { body: DayEventBody::Party { .. }, .. } => groups += 1,
                MarketEventBody::Day { body: DayEventBody::Ref { .. }, .. } => groups = 0,
                _ => {}
            }
        }
    }
    assert!(positions > 200 && groups > 0, "{positions} {groups}");
}

/// A stale venue that still counts, or a quantity that is added up wrongly, would be a best price that nobody gives.
#[test]
fn the_national_best_is_the_best_of_the_open_venues() {
    let events = parse(&play(&mut market(3, 2)));
    let mut venues: HashMap<(String, String), (Value, bool)> = HashMap::new();
    let mut national: HashMap<String, [Option<(i128, i128)>; 2]> = HashMap::new();
    let naive = |venues: &HashMap<(String, String), (Value, bool)>, instr: &str| {
        [("bid", "bid_qty", 1), ("ask", "ask_qty", -1)].map(|(px, qty, sign)| {
            let open =
                venues.iter().filter(|(key, value)| key.1 == instr && value.1 && !value.0[px].is_null());
            let sides: Vec<(i128, i128)> = open.map(|(_, v)| (nano(&v.0, px), whole(&v.0, qty))).collect();
            let best = sides.iter().map(|side| side.0 * sign).max()? * sign;
            Some((best, sides.iter().filter(|side| side.0 == best).map(|side| side.1).sum()))
        })
    };
    let (mut changes, mut touched) = (0, BTreeSet::new());
    for (n, event) in events.iter().enumerate() {
        let instr = event["instr"].as_str().unwrap_or_default().to_owned();
        match (text(event, "kind"), event["venue"].as_str()) {
            ("bbo", Some("NBBO")) => {
                let side = |px: &str, qty: &str| {
                    (!event[px].is_null()).then(|| (nano(event, px), whole(event, qty)))
                };
                let now = [side("bid", "bid_qty"), side("ask", "ask_qty")];
                let before = national.insert(instr, now).unwrap_or_default();
                assert_ne!(before, now, "no change: {event}");
                changes += 1;
            }
            ("bbo", Some(venue)) => {
                let at = venues.entry((venue.to_owned(), instr.clone())).or_default();
                at.0 = event.clone();
                touched.insert(instr);
            }
            ("session", Some(venue)) => {
                let at = venues.entry((venue.to_owned(), instr.clone())).or_default();
                at.1 = event["phase"] == "open";
                if event["phase"] == "pre" {
                    at.0 = Value::Null;
                }
                touched.insert(instr);
            }
            _ => {}
        }
        // A step's events have one time, or the next one begins with another kind of event.
        if events.get(n + 1).is_none_or(|next| next["ts"] != event["ts"]) {
            for instr in std::mem::take(&mut touched) {
                let now = national.get(&instr).copied().unwrap_or_default();
                assert_eq!(now, naive(&venues, &instr), "{instr} after {event}");
            }
        }
    }
    assert!(changes > 1_000, "{changes}");
    assert!(national.values().all(|sides| *sides == [None, None]), "a best after the close");
}

/// An index that counts a print twice or a constituent too many is no index.
#[test]
fn the_index_is_what_its_formula_says() {
    let events = parse(&play(&mut market(4, 3)));
    let mut base: Vec<(String, i128)> = Vec::new();
    let mut last: HashMap<String, i128> = HashMap::new();
    let (mut values, mut at) = (0, 0);
    for (n, event) in events.iter().enumerate() {
        match text(event, "kind") {
            "ref" if event["class"] != "TIEXXX" && base.len() < 20 && values == 0 => {
                base.push((text(event, "instr").to_owned(), nano(event, "prev_close")));
                last.insert(text(event, "instr").to_owned(), nano(event, "prev_close"));
            }
            "trade" => _ = last.insert(text(event, "instr").to_owned(), nano(event, "px")),
            "index" => {
                assert_eq!(event["index"], "UTIX");
                let places: i128 = 1_000_000_000_000;
                let sum: i128 = base.iter().map(|(instr, base)| last[instr] * places / base).sum();
                let hundredths = (sum * 200_000 / base.len() as i128 + places) / (2 * places);
                assert_eq!(nano(event, "px"), hundredths * 10_000_000, "{event}");
                let ts = event["ts"].as_u64().expect("a time");
                let ends = events.get(n + 1).is_none_or(|next| next["kind"] == "statement");
                assert!(ends || ts >= at + 1_000_000_000, "twice in a second: {event}");
                (at, values) = (ts, values + 1);
            }
            _ => {}
        }
    }
    assert!(base.len() == 20 && values > 300, "{} {values}", base.len());
}

/// Levels that are not those of the orders would make two books of one market.
#[test]
fn levels_are_those_of_the_orders_after_every_step() {
    let mut market = market(2, 2);
    let mut ledger = OrderLedger::default();
    let mut levels: HashMap<(u32, Side), BTreeMap<i64, PriceLevel>> = HashMap::new();
    let (mut compared, mut venues) = (0, BTreeSet::new());
    while let Some(events) = market.step().map(<[MarketEvent]>::to_vec) {
        let mut touched = BTreeSet::new();
        for event in &events {
            if let Some(day) = event.day_event() {
                ledger.apply(&day);
                if let DayEventBody::New(t) | DayEventBody::Amend(t) | DayEventBody::Cancel(t) = day.body {
                    touched.insert(t.book);
                }
            }
            let MarketEventBody::Level { book, side, action, level } = event.body else { continue };
            touched.insert(book);
            let side = levels.entry((book, side)).or_default();
            let before = side.remove(&level.px);
            assert_eq!(before.is_none(), action == LevelAction::Add, "{event:?}");
            if action != LevelAction::Delete {
                assert_ne!(before, Some(level));
                side.insert(level.px, level);
            }
        }
        for book in touched {
            if market.world().venue_of(book) != 0 {
                continue;
            }
            venues.insert(book);
            for side in [Side::Buy, Side::Sell] {
                let mut wanted = ledger.depth(book, side);
                wanted.sort_unstable();
                let found = levels.get(&(book, side)).into_iter().flat_map(BTreeMap::values);
                let found: Vec<_> = found.map(|level| (level.px, level.qty, level.orders)).collect();
                assert_eq!(found, wanted, "book {book} {side:?}");
                compared += found.len();
            }
        }
    }
    assert!(compared > 50_000 && venues.len() == 24, "{compared} {}", venues.len());
    assert!(levels.values().all(BTreeMap::is_empty), "levels outlive the day");
}

/// News that prices ignore, or follow the wrong way, would make every test of dealing ahead of them worthless.
#[test]
fn prices_go_where_news_says() {
    let (mut right, mut all) = (0, 0);
    let mut news = 0;
    for seed in 1..=4 {
        let mut config = config(seed, 2);
        (config.day.news, config.day.instruments) = (6, 8);
        let mut market = Market::new(config).expect("a good config");
        let mut prints: HashMap<InstrumentId, Vec<(u64, i64)>> = HashMap::new();
        while let Some(events) = market.step().map(<[MarketEvent]>::to_vec) {
            for event in &events {
                if let MarketEventBody::Day { body: DayEventBody::Trade { book, px, .. }, .. } = event.body {
                    prints.entry(market.world().instr_of(book)).or_default().push((event.ts, px));
                }
            }
        }
        news += market.news().len();
        for one in market.news() {
            let apart = |ts: u64| ts.abs_diff(one.ts) < 600_000_000_000;
            let alone = market.news().iter().filter(|n| n.instr == one.instr && apart(n.ts)).count() == 1;
            let prints = &prints[&one.instr];
            let before = prints.iter().rfind(|print| print.0 < one.ts);
            let after = prints.iter().rfind(|print| print.0 > one.ts && apart(print.0));
            let (Some(before), Some(after), true) = (before, after, alone && one.ticks.abs() >= 25) else {
                continue;
            };
            all += 1;
            right += u32::from((after.1 - before.1) * one.ticks.signum() > one.ticks.abs() / 4);
        }
    }
    assert!(news >= 48 && all > 15 && right * 10 >= all * 8, "{right} of {all}, {news} news");
}

/// One order that passes after a halt is what a breaker exists to prevent; one that is refused before it costs a client.
#[test]
fn controls_are_obeyed_from_the_next_request_on() {
    let first = market(6, 2);
    let (world, start) = (first.world(), first.config().day.start_ns);
    let minute = 60_000_000_000;
    let of =
        |action, minutes: u64| ControlRequest { action, ts: start + minutes * minute, ..Default::default() };
    let trader = world.trader_name(8).to_owned();
    let isin = world.instruments[1].isin.clone();
    let firm = world.firm_name(30).to_owned();
    let (halt, resume) = (of(ControlAction::Halt, 10), of(ControlAction::Resume, 40));
    let controls = [
        ControlRequest { trader: Some(trader.clone()), ..halt.clone() },
        ControlRequest { trader: Some(trader.clone()), ..resume.clone() },
        ControlRequest { instr: Some(isin.clone()), venue: Some("CHIX".to_owned()), ..halt.clone() },
        ControlRequest {
            firm: Some(firm.clone()),
            scope_kind: Some("firm".to_owned()),
            until: Some(start + 30 * minute),
            ..of(ControlAction::Kill, 20)
        },
        ControlRequest { venue: Some("XXXX".to_owned()), ..halt },
    ];
    let mut config = first.config().clone();
    config.reject_one_in = 0;
    let mut market = Market::new(config).expect("a good config");
    controls.iter().for_each(|control| market.control(control).expect("a good control"));
    let events = parse(&play(&mut market));
    let (mut refused, mut passed, mut killed) = ([0; 3], [0; 3], 0);
    for event in &events {
        let ts = event["ts"].as_u64().expect("a time");
        let rejected = event["reason"] == "rejected";
        if !rejected && event["kind"] != "order_new" {
            let kill = event["kind"] == "order_cancel" && event["firm"] == firm.as_str();
            killed += u32::from(kill && ts == start + 20 * minute);
            continue;
        }
        let within = |from, to| (start + from * minute..start + to * minute).contains(&ts);
        let covered = [
            (event["trader"] == trader.as_str(), within(10, 40)),
            (event["instr"] == isin.as_str() && event["venue"] == "CHIX", ts >= start + 10 * minute),
            (event["firm"] == firm.as_str(), within(20, 30)),
        ];
        let blocked = covered.iter().any(|(scope, time)| *scope && *time);
        assert_eq!(rejected, blocked, "{event}");
        for (n, (scope, _)) in covered.into_iter().enumerate().filter(|(_, covered)| covered.0) {
            *if blocked { &mut refused[n] } else { &mut passed[n] } += u32::from(scope);
        }
    }
    assert!(refused.iter().chain(&passed).all(|&n| n > 0), "{refused:?} {passed:?}");
    assert!(killed > 0);
    let found: Vec<_> = events.iter().filter(|e| e["kind"] == "control").collect();
    assert!(found.len() == 5 && found.iter().all(|e| e["state"] == "obeyed"), "{found:?}");
    // Every reject is of an order that the venue never had.
    let new: BTreeSet<_> =
        events.iter().filter(|e| e["kind"] == "order_new").map(|e| text(e, "oid")).collect();
    let rejects = events.iter().filter(|e| e["reason"] == "rejected");
    assert!(rejects.clone().count() > 20 && rejects.clone().all(|e| !new.contains(text(e, "oid"))));
}

/// An amend that a halted trader's venue accepts is a request that was not refused.
#[test]
fn nothing_of_a_halted_market_is_new_or_amended() {
    let mut market = market(6, 1);
    let at = market.config().day.start_ns + 20 * 60_000_000_000;
    let halt = ControlRequest { ts: at, ..ControlRequest::default() };
    market.control(&halt).expect("a good control");
    let (mut before, mut after) = (0, 0);
    while let Some(events) = market.step() {
        for event in events {
            match event.body {
                MarketEventBody::Day { body: DayEventBody::Amend(t), .. } if t.stop_px.is_none() => {
                    assert!(event.ts < at, "{event:?}");
                    before += 1;
                }
                MarketEventBody::Day { body: DayEventBody::New(_), .. } => {
                    assert!(event.ts < at, "{event:?}")
                }
                MarketEventBody::Day { body: DayEventBody::Cancel(_), .. } => {
                    after += u32::from(event.ts > at)
                }
                _ => {}
            }
        }
    }
    assert!(before > 50 && after > 50, "{before} {after}");
    assert_eq!(market.sim().phase(0, InstrumentId(0)), MarketPhase::Close);
}

/// A rehearsal that changes one order is none.
#[test]
fn a_dry_run_changes_nothing() {
    let lines = |control: Option<ControlRequest>| {
        let mut market = market(6, 1);
        control.iter().for_each(|control| market.control(control).expect("a good control"));
        let mut events = parse(&play(&mut market));
        let before = events.len();
        events.retain(|e| e["kind"] != "control");
        events.iter_mut().for_each(|e| _ = e.as_object_mut().expect("an object").remove("seq"));
        (events, before)
    };
    let ts = market(6, 1).config().day.start_ns + 20 * 60_000_000_000;
    let kill = ControlRequest { action: ControlAction::Kill, ts, dry_run: true, ..Default::default() };
    let (plain, rehearsed) = (lines(None), lines(Some(kill.clone())));
    assert!(plain.0 == rehearsed.0);
    assert_eq!(plain.1 + 1, rehearsed.1);
    assert!(lines(Some(ControlRequest { dry_run: false, ..kill })).0 != plain.0);
}

/// A scene acts on what it left in a book; a control once took it away from under it, in the simulator's head at least.
#[test]
fn scenes_survive_any_control() {
    for seed in 1..=4 {
        let mut config = config(seed, 2);
        config.day.plant = Scenario::ALL.into_iter().map(|scenario| (scenario, 3)).collect();
        config.day.near_misses = config.day.plant.clone();
        (config.day.instruments, config.day.events, config.day.span_ns) = (40, 6_000, 7_200_000_000_000);
        let mut rng = unitape_sim::Rng::new(seed);
        let span = config.day.span_ns;
        let start = config.day.start_ns;
        let mut market = Market::new(config).expect("a good config");
        let members = market.world().members.len() as u64;
        let mut broken = 0;
        for _ in 0..400 {
            let ts = start + rng.below(span);
            let member = rng.below(members) as u32;
            let world = market.world();
            let request = ControlRequest {
                ts,
                action: rng.pick(&[
                    ControlAction::Halt,
                    ControlAction::Kill,
                    ControlAction::Kill,
                    ControlAction::Resume,
                ]),
                until: Some(ts + 1 + rng.below(20_000_000_000)),
                trader: rng.one_in(2).then(|| world.trader_name(member).to_owned()),
                instr: rng
                    .one_in(2)
                    .then(|| rng.below(40) as usize)
                    .map(|n| world.instruments[n].isin.clone()),
                venue: rng.one_in(3).then(|| rng.pick(&world.venues).to_owned()),
                ..ControlRequest::default()
            };
            broken += u32::from(request.action == ControlAction::Kill);
            market.control(&request).expect("a good control");
        }
        let events = parse(&play(&mut market));
        assert!(broken > 100 && events.len() > 10_000);
        for label in market.labels() {
            let ts_of = |seq: u64| events[seq as usize - 1]["ts"].as_u64().expect("a time");
            let (trigger_ts, earlier_ts) = (ts_of(label.trigger_seq), ts_of(label.trigger_seq - 1));
            if label.scenario == "volume_spike" || label.reason == Some("pause") {
                // A timer: the first event at its time or later.
                assert!(earlier_ts < label.ts && label.ts <= trigger_ts, "{label:?}");
            } else {
                assert_eq!(trigger_ts, label.ts, "{label:?}");
            }
        }
    }
}

/// A control that nobody can obey must not pass in silence.
#[test]
fn controls_that_say_nothing_are_refused() {
    let error = |line: &str| ControlRequest::from_line(line).expect_err(line).to_string();
    assert!(error("{").starts_with("control: "));
    assert!(error(r#"{"kind":"news","ts":1,"action":"halt"}"#).contains("the kind is"));
    assert!(error(r#"{"kind":"control","ts":1}"#).contains("no action"));
    assert!(error(r#"{"kind":"control","ts":1,"action":"explode"}"#).contains("explode"));
    assert!(error(r#"{"kind":"control","ts":1,"action":"halt","scope_kind":"desk"}"#).contains("no desk"));
    assert!(error(r#"{"kind":"control","ts":1,"action":"halt","scope_kind":"moon"}"#).contains("moon"));
    assert!(error(r#"{"kind":"control","ts":18000000000000000000,"action":"halt"}"#).contains("2262"));
    let twice = r#"{"kind":"control","ts":1,"action":"halt","desk":"D1","desk":"D2"}"#;
    assert!(error(twice).contains("duplicate field `desk`"));
    assert!(error(r#"{"kind":"control","ts":1,"ts":2,"action":"halt"}"#).contains("duplicate field `ts`"));
    let line = r#"{"seq":4,"ts":5,"kind":"control","action":"kill","algo":"1001","until":9,"dry_run":true,"state":"x"}"#;
    let found = ControlRequest::from_line(line).expect("a good control");
    let wanted = ControlRequest {
        ts: 5,
        action: ControlAction::Kill,
        algo: Some("1001".to_owned()),
        until: Some(9),
        dry_run: true,
        ..ControlRequest::default()
    };
    assert_eq!(found, wanted);
    let long = ControlRequest { trader: Some("T".repeat(300)), ..ControlRequest::default() };
    assert!(market(1, 1).control(&long).is_err());
}

/// A sale marked long by an owner who holds nothing is what the short flag is there to show.
#[test]
fn sales_are_short_where_the_owner_holds_too_little() {
    let events = parse(&play(&mut market(9, 2)));
    let mut held: HashMap<(String, String), i128> = HashMap::new();
    let mut marks: HashMap<String, String> = HashMap::new();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for event in &events {
        let kind = text(event, "kind");
        if !matches!(kind, "position" | "order_new" | "order_amend" | "order_cancel" | "exec") {
            continue;
        }
        let key = (text(event, "owner").to_owned(), text(event, "instr").to_owned());
        if kind == "position" {
            held.insert(key, whole(event, "qty"));
            continue;
        }
        assert_eq!(event["side"] == "S", !event["short"].is_null(), "{event}");
        let has = held.entry(key).or_default();
        if event["side"] == "S" {
            let mark = text(event, "short").to_owned();
            if kind == "order_new" || event["reason"] == "rejected" {
                assert_eq!(mark == "N", *has >= whole(event, "qty"), "{event}: {has}");
                marks.insert(text(event, "oid").to_owned(), mark.clone());
                *seen.entry(mark).or_default() += 1;
            } else {
                assert_eq!(marks[text(event, "oid")], mark, "{event}");
            }
        }
        if kind == "exec" {
            *has += if event["side"] == "B" { whole(event, "qty") } else { -whole(event, "qty") };
        }
    }
    assert!(seen.len() == 3 && seen.values().all(|&n| n > 20), "{seen:?}");
}
