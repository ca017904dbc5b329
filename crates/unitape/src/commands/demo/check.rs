//! The demo checks itself: it compares the tape with the known contents of the feeds.

use super::samples::ExpectedFeedCounts;
use super::tape_overview::{ExplainedAlert, PriceHistory, TapeOverview, execution};
use std::collections::BTreeMap;
use unitape_feed::AccountSummary;
use unitape_sim::day::{AlertLabel, AlertLabelKey, DropCopyTruth, LastBbo, WashTradePair};
use unitape_watch::Alert;

/// Something that must hold, and what differs if it does not.
#[derive(Debug, serde::Serialize)]
pub struct DemoCheck {
    /// The condition that must hold.
    pub what: String,
    /// Where it does not; empty when all is well.
    pub differs: Vec<String>,
}

impl DemoCheck {
    /// Makes a check with the differences that it found.
    pub fn new(condition: impl Into<String>, differs: Vec<String>) -> Self {
        Self { what: condition.into(), differs }
    }

    /// Returns whether the check holds.
    pub fn holds(&self) -> bool {
        self.differs.is_empty()
    }
}

/// Matches each planted scene with the index of its alert in `alerts`. Also lists the missed scenes and the alerts that
/// were not planted.
pub fn scenes(planted: &[WashTradePair], alerts: &[ExplainedAlert]) -> (Vec<Option<usize>>, Vec<String>) {
    let mut free: Vec<usize> = (0..alerts.len()).collect();
    let mut differs = Vec::new();
    let mut matched = Vec::with_capacity(planted.len());
    for scene in planted {
        let free_index = free.iter().position(|&n| is_of(&alerts[n], scene));
        matched.push(free_index.map(|index| free.remove(index)));
        if free_index.is_none() {
            let legs = legs(scene).join(" + ");
            differs.push(format!("no alert for {} of {}: {legs}", scene.arm, key_of(&scene.key)));
        }
    }
    for n in free {
        let f = &alerts[n];
        let (key, legs) = (f.key.join(" "), f.legs.join(" + "));
        differs.push(format!("{} {} of {key} was not planted: {legs}", f.scenario, f.arm));
    }
    (matched, differs)
}

/// Matches each label of the simulated day with the index of its alert in `alerts`. Also lists the labels without an
/// alert.
pub fn labels(labels: &[AlertLabel], alerts: &[ExplainedAlert]) -> (Vec<Option<usize>>, Vec<String>) {
    let is_of = |f: &ExplainedAlert, label: &AlertLabel| {
        f.scenario == label.scenario && f.ts == label.ts as i64 && f.key.iter().eq(values(&label.key))
    };
    let matched: Vec<_> = labels.iter().map(|l| alerts.iter().position(|f| is_of(f, l))).collect();
    let missed_labels = labels.iter().zip(&matched).filter(|(_, index)| index.is_none());
    let differs = missed_labels.map(|(l, _)| format!("no alert for {} of {}", l.scenario, key(l))).collect();
    (matched, differs)
}

/// Writes the key of a label on one line.
pub fn key(label: &AlertLabel) -> String {
    key_of(&label.key)
}

fn values(key: &AlertLabelKey) -> impl Iterator<Item = &String> {
    key.0.iter().map(|(_, value)| value)
}

fn key_of(key: &AlertLabelKey) -> String {
    values(key).map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// Lists the near misses with an execution that an alert names as evidence.
pub fn near_miss_alerts(near_misses: &[WashTradePair], alerts: &[ExplainedAlert]) -> Vec<String> {
    let accused = |leg: &String| alerts.iter().any(|f| f.legs.contains(leg));
    let guilty = near_misses.iter().filter(|scene| legs(scene).iter().any(accused));
    guilty.map(|scene| format!("a near miss raised an alert: {}", legs(scene).join(" + "))).collect()
}

/// Compares recorded alerts with replayed alerts. `location` names the place of the recorded alerts.
pub fn alerts(location: &str, recorded: &[Alert], replayed: &[Alert]) -> Vec<String> {
    let mut differs = Vec::new();
    if recorded.len() != replayed.len() {
        differs.push(format!("{} alerts {location}, {} replayed", recorded.len(), replayed.len()));
    }
    for (n, (a, b)) in recorded.iter().zip(replayed).enumerate().filter(|(_, (a, b))| a != b) {
        differs.push(format!("alert {n}: {location} {a:?}, replayed {b:?}"));
    }
    differs
}

/// Checks that every message is an event, quarantined, a duplicate or ignored, in the expected numbers. The feeds in
/// `uncounted_feeds` are checked elsewhere.
pub fn account(
    summary: &AccountSummary,
    picture: &TapeOverview,
    counted: &[(&str, ExpectedFeedCounts)],
    sizes: &BTreeMap<String, u64>,
    uncounted_feeds: &[&str],
) -> Vec<String> {
    let mut differs = Vec::new();
    let mut check_equal = |label: String, is: u64, must: u64| {
        if is != must {
            differs.push(format!("{label}: {is}, but it must be {must}"));
        }
    };
    check_equal(
        "feeds".to_owned(),
        summary.by_feed.len() as u64,
        (counted.len() + uncounted_feeds.len()) as u64,
    );
    for (feed, must) in counted {
        let is = summary.by_feed.get(*feed).cloned().unwrap_or_default();
        let sum = is.with_events + is.quarantined + is.duplicates + is.ignored;
        check_equal(format!("{feed}: with events + quarantined + duplicates + ignored"), sum, is.messages);
        check_equal(format!("{feed}: messages"), is.messages, must.messages);
        check_equal(format!("{feed}: quarantined"), is.quarantined, must.quarantined);
        check_equal(format!("{feed}: duplicates"), is.duplicates, 0);
        check_equal(format!("{feed}: ignored"), is.ignored, must.ignored);
        check_equal(format!("{feed}: bytes"), is.bytes, sizes.get(*feed).copied().unwrap_or(0));
        check_equal(format!("{feed}: read to its end"), is.complete.into(), 1);
        let nothing = BTreeMap::new();
        let on_tape = picture.by_feed.get(*feed).unwrap_or(&nothing);
        let names: std::collections::BTreeSet<&String> = on_tape.keys().chain(must.by_kind.keys()).collect();
        for kind in names {
            let count = |counts: &BTreeMap<String, u64>| counts.get(kind).copied().unwrap_or(0);
            check_equal(format!("{feed}: {kind} events"), count(on_tape), count(&must.by_kind));
        }
    }
    differs
}

/// Checks that the last best bids and offers equal the last prices of the books that made them.
pub fn last_bbo(truth: &[LastBbo], books: &[PriceHistory]) -> Vec<String> {
    let mut differs = Vec::new();
    if truth.len() != books.len() {
        differs.push(format!("{} books on the tape, {} made", books.len(), truth.len()));
    }
    for must in truth {
        let values = [&must.bid, &must.bid_qty, &must.ask, &must.ask_qty];
        let (must_ts, must_values) = (must.ts as i64, values.map(Option::clone));
        let is = books.iter().find(|c| c.venue == must.venue && c.instr == must.instr);
        match is {
            None => differs.push(format!("{} {}: nothing on the tape", must.venue, must.instr)),
            Some(c) if c.ts == must_ts && c.last == must_values => {}
            Some(c) => differs.push(format!(
                "{} {}: {:?} at {} on the tape, {must_values:?} at {must_ts} in the book",
                must.venue, must.instr, c.last, c.ts
            )),
        }
    }
    differs
}

/// Checks that quarantine holds the bad messages, by reason.
pub fn reasons(truth: &DropCopyTruth, reasons: &BTreeMap<String, u64>) -> Vec<String> {
    let bad = truth.totals.bad;
    let must: BTreeMap<String, u64> = [
        ("bad_checksum", bad.checksum),
        ("bad_body_length", bad.body_length),
        ("decimal_fit", bad.decimals),
        ("garbage", bad.garbage),
    ]
    .into_iter()
    .filter(|(_, n)| *n > 0)
    .map(|(reason, n)| (reason.to_owned(), n))
    .collect();
    if must == *reasons { Vec::new() } else { vec![format!("{reasons:?} in quarantine, {must:?} made")] }
}

fn is_of(alert: &ExplainedAlert, scene: &WashTradePair) -> bool {
    alert.scenario == scene.scenario
        && alert.arm == scene.arm
        && alert.key.iter().eq(values(&scene.key))
        && alert.ts == scene.ts as i64
        && alert.legs == legs(scene)
}

fn legs(scene: &WashTradePair) -> [String; 2] {
    scene
        .legs
        .each_ref()
        .map(|l| execution(l.ts as i64, [l.venue, &l.oid, &l.match_id, &l.owner, l.side, &l.px, &l.qty]))
}

#[cfg(test)]
mod tests;
