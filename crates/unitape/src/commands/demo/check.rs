//! The demo checks itself: it compares what the commands print with the known contents of the feeds.

use super::feeds::{ExpectedCounts, MessageCounts};
use super::overview::{PriceHistory, TapeOverview};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use unitape_sim::day::{DropCopyTruth, LastBbo};

/// Something that must hold, and what differs if it does not.
#[derive(Debug)]
pub struct DemoCheck {
    /// The condition that must hold.
    pub what: &'static str,
    /// Where it does not; empty when all is well.
    pub differs: Vec<String>,
}

impl DemoCheck {
    /// Returns whether the check holds.
    pub fn holds(&self) -> bool {
        self.differs.is_empty()
    }
}

/// Numbers that differ from the expected ones.
#[derive(Debug, Default)]
pub struct Differences {
    /// One for each number.
    pub lines: Vec<String>,
}

impl Differences {
    /// Compares a number with the expected one.
    pub fn expect(&mut self, label: &str, is: u64, must: u64) {
        if is != must {
            self.lines.push(format!("{label}: {is}, but it must be {must}"));
        }
    }
}

/// Returns a number of JSON; 0 if there is none.
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// An alert of `unitape watch` with its evidence looked up on the tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedAlert {
    /// The alert: scenario, ts, key, detail.
    pub alert: Value,
    /// The positions of its evidence.
    pub positions: Vec<u64>,
    /// The events of its evidence, as far as the tape has them.
    pub evidence: Vec<Value>,
}

impl ExplainedAlert {
    /// Returns the positions of the evidence of an alert.
    pub fn positions_of(alert: &Value) -> Vec<u64> {
        alert["detail"]["positions"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
    }

    /// Looks up the evidence of an alert among the events of the tape.
    pub fn new(alert: Value, events: &BTreeMap<u64, Value>) -> Self {
        let positions = Self::positions_of(&alert);
        let evidence = positions.iter().filter_map(|position| events.get(position).cloned()).collect();
        Self { alert, positions, evidence }
    }

    /// Returns whether this alert is that of a scene: the same scenario, key and time, and where the scene has an arm or legs,
    /// the same arm, and these executions as its whole evidence.
    fn is_of(&self, scene: &Value) -> bool {
        ["scenario", "key", "ts"].iter().all(|name| self.alert[name] == scene[name])
            && (scene["arm"].is_null() || self.alert["detail"]["arm"] == scene["arm"])
            && self.evidence.len() == self.positions.len()
            && scene["legs"].as_array().is_none_or(|legs| {
                legs.len() == self.evidence.len()
                    && self.evidence.iter().zip(legs).all(|(event, leg)| is_execution(event, leg))
            })
    }
}

/// Returns whether an event is an execution with all fields of a planted leg.
fn is_execution(event: &Value, leg: &Value) -> bool {
    let fields = leg.as_object().into_iter().flatten();
    event["kind"] == "exec"
        && fields.clone().count() > 0
        && fields.clone().all(|(name, value)| event[name] == *value)
}

/// Writes the key of an alert or a scene on one line.
pub fn key_text(key: &Value) -> String {
    let values = key.as_object().into_iter().flat_map(Map::values).filter_map(Value::as_str);
    values.collect::<Vec<_>>().join(" ")
}

/// Matches each planted scene with the index of its alert in `alerts`. Also lists the missed scenes and the alerts that
/// were not planted.
pub fn match_scenes(scenes: &[&Value], alerts: &[ExplainedAlert]) -> (Vec<Option<usize>>, Vec<String>) {
    let mut free: Vec<usize> = (0..alerts.len()).collect();
    let (mut matched, mut differs) = (Vec::with_capacity(scenes.len()), Vec::new());
    for scene in scenes {
        let found = free.iter().position(|&n| alerts[n].is_of(scene)).map(|index| free.remove(index));
        matched.push(found);
        if found.is_none() {
            let what = scene["arm"].as_str().or(scene["scenario"].as_str()).unwrap_or_default();
            differs.push(format!("no alert for {what} of {}: {scene}", key_text(&scene["key"])));
        }
    }
    differs.extend(free.into_iter().map(|n| format!("this alert was not planted: {}", alerts[n].alert)));
    (matched, differs)
}

/// Lists the near misses with an execution that an alert names as evidence.
pub fn near_miss_alerts(near_misses: &[Value], alerts: &[ExplainedAlert]) -> Vec<String> {
    let is_accused =
        |leg: &Value| alerts.iter().flat_map(|alert| &alert.evidence).any(|event| is_execution(event, leg));
    let is_guilty = |scene: &&Value| scene["legs"].as_array().into_iter().flatten().any(is_accused);
    near_misses
        .iter()
        .filter(is_guilty)
        .map(|scene| format!("a near miss raised an alert: {scene}"))
        .collect()
}

/// Compares the lines of recorded alerts with those of replayed alerts. `location` names the place of the recorded alerts.
pub fn alert_differences(location: &str, recorded: &[Value], replayed: &[Value]) -> Vec<String> {
    let mut differences = Differences::default();
    differences.expect(&format!("alerts {location}"), recorded.len() as u64, replayed.len() as u64);
    let pairs = recorded.iter().zip(replayed).enumerate().filter(|(_, (a, b))| a != b);
    differences.lines.extend(pairs.map(|(n, (a, b))| format!("alert {n}: {location} {a}, replayed {b}")));
    differences.lines
}

/// Checks that every message and byte of every feed is accounted for: as an event, quarantined, a duplicate or ignored, in the
/// expected numbers. `feeds` are those of the account of `unitape tape info`.
pub fn account_differences(
    feeds: &Value,
    overview: &TapeOverview,
    counts: &BTreeMap<String, ExpectedCounts>,
) -> Vec<String> {
    let mut differences = Differences::default();
    differences.expect("feeds", feeds.as_object().map_or(0, Map::len) as u64, counts.len() as u64);
    for (feed, must) in counts {
        let is = |count: &str| number(&feeds[feed][count]);
        let mut expect = |label: &str, is, must| differences.expect(&format!("{feed}: {label}"), is, must);
        let parts = ["with_events", "quarantined", "duplicates", "ignored"].map(is);
        expect("with events + quarantined + duplicates + ignored", parts.iter().sum(), is("messages"));
        expect("bytes", is("bytes"), must.bytes);
        expect("read to its end", (feeds[feed]["complete"] == true).into(), 1);
        let Some(MessageCounts { messages, quarantined, ignored, by_kind }) = &must.messages else {
            continue;
        };
        expect("messages", is("messages"), *messages);
        expect("quarantined", is("quarantined"), *quarantined);
        expect("duplicates", is("duplicates"), 0);
        expect("ignored", is("ignored"), *ignored);
        let nothing = BTreeMap::new();
        let on_tape = overview.by_feed.get(feed).unwrap_or(&nothing);
        for kind in on_tape.keys().chain(by_kind.keys()).collect::<BTreeSet<_>>() {
            let count = |counts: &BTreeMap<String, u64>| counts.get(kind).copied().unwrap_or(0);
            expect(&format!("{kind} events"), count(on_tape), count(by_kind));
        }
    }
    differences.lines
}

/// Checks that the last best bids and offers equal the last prices of the books that made them.
pub fn last_bbo(truth: &[LastBbo], books: &[PriceHistory]) -> Vec<String> {
    let mut differences = Vec::new();
    if truth.len() != books.len() {
        differences.push(format!("{} books on the tape, {} made", books.len(), truth.len()));
    }
    for must in truth {
        let values = [&must.bid, &must.bid_qty, &must.ask, &must.ask_qty];
        let (must_ts, must_values) = (must.ts as i64, values.map(Option::clone));
        let actual_book = books.iter().find(|c| c.venue == must.venue && c.instr == must.instr);
        match actual_book {
            None => differences.push(format!("{} {}: nothing on the tape", must.venue, must.instr)),
            Some(c) if c.ts == must_ts && c.last_values == must_values => {}
            Some(c) => differences.push(format!(
                "{} {}: {:?} at {} on the tape, {must_values:?} at {must_ts} in the book",
                must.venue, must.instr, c.last_values, c.ts
            )),
        }
    }
    differences
}

/// Checks that quarantine holds the bad messages, by reason.
pub fn reasons(truth: &DropCopyTruth, reasons: &BTreeMap<String, u64>) -> Vec<String> {
    let bad_count = truth.totals.bad;
    let must: BTreeMap<String, u64> = [
        ("bad_checksum", bad_count.checksum),
        ("bad_body_length", bad_count.body_length),
        ("decimal_fit", bad_count.decimals),
        ("garbage", bad_count.garbage),
    ]
    .into_iter()
    .filter(|(_, n)| *n > 0)
    .map(|(reason, n)| (reason.to_owned(), n))
    .collect();
    if must == *reasons { Vec::new() } else { vec![format!("{reasons:?} in quarantine, {must:?} made")] }
}

/// Compares events of the sealed days with those of the tape in full: positions, sources and flags too. Ids are the store's own.
pub fn sealed_differences(mut sealed: Vec<Value>, mut taped: Vec<Value>) -> Vec<String> {
    for event in sealed.iter_mut().chain(&mut taped) {
        event["src"]["id"].take();
        event["ids"].take();
    }
    let mut differences = Differences::default();
    differences.expect("status events", sealed.len() as u64, taped.len() as u64);
    let pairs = sealed.iter().zip(&taped).filter(|(sealed, taped)| sealed != taped);
    differences.lines.extend(pairs.map(|(sealed, taped)| format!("sealed {sealed}, on the tape {taped}")));
    differences.lines
}

/// Returns where two texts differ first, by lines.
pub fn first_difference(got: &str, wanted: &str) -> Vec<String> {
    if got == wanted {
        return Vec::new();
    }
    let mut pairs = got.lines().zip(wanted.lines()).enumerate();
    let differing = pairs.find(|(_, (got, wanted))| got != wanted);
    vec![match differing {
        Some((n, (got, wanted))) => format!("line {}: {got}, but it must be {wanted}", n + 1),
        None => format!("{} lines, but {} must be there", got.lines().count(), wanted.lines().count()),
    }]
}

#[cfg(test)]
mod tests;
