//! Properties of every scenario in the registry.

use super::*;
use crate::WatchCalendar;
use crate::jsonl::replay;
use crate::twin::naive::Twins;
use crate::{ReplayObserver, replay_cases, replay_jsonl};
use serde_json::{Value, json};
use std::path::PathBuf;
use unitape_model::Dictionary;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A folder that is not in the registry never runs, and nobody notices.
#[test]
fn every_folder_is_in_the_registry() {
    let mut folders: Vec<String> = std::fs::read_dir(root().join("crates/watch/src/scenarios"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    folders.sort();
    assert_eq!(folders, ALL.iter().map(|entry| entry.id).collect::<Vec<_>>());
}

/// A definition that lacks a part, or a parameter without an effect, is found here and not by a user.
#[test]
fn definitions_are_whole() {
    for entry in ALL {
        let def = entry.def();
        assert!(!entry.inputs.is_empty() && !def.key().is_empty() && !def.regulation.is_empty());
        let params = ScenarioParams::resolve(def, &[]);
        assert_eq!(params.values().count(), def.params.len());
        (entry.make)(&params);
        for p in &def.params {
            assert!(!p.unit.is_empty() && !p.description.is_empty(), "{}.{}", def.id, p.name);
        }
    }
}

/// Fails if the legs of a match over midnight UTC do not meet although the session of the venue goes on.
#[test]
fn a_match_belongs_to_the_session_date_of_its_venue() {
    let leg = |seq: u64, ts: i64, side: &str, qty: u32| {
        json!({"seq": seq, "ts": ts, "kind": "exec", "oid": side, "match_id": "M1", "side": side, "px": "2500",
            "qty": qty.to_string(), "venue": "XCME", "instr": "ESH6", "owner": "ACME"})
    };
    let midnight = 1_772_496_000_000_000_000; // 2026-03-03 00:00 UTC
    let lines = format!("{}\n{}\n", leg(1, midnight - 1, "B", 1000), leg(2, midnight, "S", 500));
    let alerts_with = |calendar: WatchCalendar| {
        let selection = ScenarioSelection { calendar, ..ScenarioSelection::default() };
        let (mut fast, mut slow) = (0, 0);
        let count = |n: &mut u32| {
            *n += 1;
            Ok(())
        };
        replay_jsonl(lines.as_bytes(), "match", &selection, |_, _| count(&mut fast)).unwrap();
        replay::<Twins>(lines.as_bytes(), "match", &selection, |_, _| count(&mut slow)).unwrap();
        assert_eq!(fast, slow);
        fast
    };
    let calendar = "what,key,date,time,zone,value\nvenue,XCME,,17:00,America/Chicago,\n";
    assert_eq!(alerts_with(WatchCalendar::default()), 0);
    assert_eq!(alerts_with(WatchCalendar::parse(calendar).unwrap()), 1);
}

/// Case and the alert's words; of detail, what the case expects of it.
type Given = Vec<(String, Value)>;

fn expected(text: &str) -> (usize, Given) {
    let (mut cases, mut alerts) = (0, Vec::new());
    for line in text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()) {
        cases += usize::from(line["rec"] == "case");
        for alert in line["alerts"].as_array().into_iter().flatten() {
            alerts.push((line["case"].as_str().unwrap().to_owned(), alert.clone()));
        }
    }
    (cases, alerts)
}

fn given(id: &str, text: &str, slow: bool) -> Given {
    let mut alerts = Vec::new();
    let selection = ScenarioSelection::of(&[id]);
    let sink = |alert: &crate::Alert, case: Option<&str>| {
        let mut line = Vec::new();
        alert.write_json(&mut line, None);
        alerts.push((case.unwrap_or_default().to_owned(), serde_json::from_slice(&line).unwrap()));
        Ok(())
    };
    if slow {
        replay::<Twins>(text.as_bytes(), "cases", &selection, sink).unwrap();
    } else {
        replay_jsonl(text.as_bytes(), "cases", &selection, sink).unwrap();
    }
    alerts
}

/// Every case of `text` must give what it expects, in order, by the fast code and by the twin; gives how many cases
/// there are and how many alerts they expect.
fn check(id: &str, text: &str) -> (usize, usize) {
    let (cases, want) = expected(text);
    let mut fast = given(id, text, false);
    for ((_, got), (_, want)) in fast.iter_mut().zip(&want) {
        for (name, value) in want["detail"].as_object().into_iter().flatten() {
            assert_eq!(&got["detail"][name], value, "{id}: {got}");
        }
        let got = got.as_object_mut().unwrap();
        match want.get("detail") {
            Some(detail) => got.insert("detail".into(), detail.clone()),
            None => got.remove("detail"),
        };
    }
    assert_eq!(fast, want, "{id}");
    (cases, want.len())
}

/// The twins alone give what the cases expect: they come from the words, and are written before the fast code.
#[test]
fn twins_give_what_the_cases_expect() {
    for id in ALL.iter().map(|entry| entry.id) {
        for path in
            [format!("crates/watch/src/scenarios/{id}/cases.jsonl"), format!("vectors/watch/{id}.jsonl")]
        {
            let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
            assert_eq!(without_detail(given(id, &text, true)), without_detail(expected(&text).1), "{path}");
        }
    }
}

fn without_detail(alerts: Given) -> Given {
    let strip = |(case, mut alert): (String, Value)| {
        alert.as_object_mut().unwrap().remove("detail");
        (case, alert)
    };
    alerts.into_iter().map(strip).collect()
}

/// The shared suites, each alert whole.
#[test]
fn shared_cases_give_what_they_expect() {
    for (id, cases, alerts) in [("order_to_trade_ratio", 8, 5), ("spoofing", 14, 5), ("wash_trade", 10, 4)] {
        let text = read(root().join(format!("vectors/watch/{id}.jsonl")));
        assert_eq!(check(id, &text), (cases, alerts), "{id}");
    }
}

/// Cases of our own beside each scenario: what the shared ones leave out, and bad data.
#[test]
fn own_cases_give_what_they_expect() {
    let fails = |id: &&str| {
        let text = read(root().join(format!("crates/watch/src/scenarios/{id}/cases.jsonl")));
        let checked = std::panic::catch_unwind(|| check(id, &text));
        !checked.is_ok_and(|(cases, alerts)| cases >= 8 && alerts >= 4 && alerts < cases * 2)
    };
    let failed: Vec<&str> = ALL.iter().map(|entry| entry.id).filter(fails).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// A scenario once had code and no page, and the analyst found its alerts and no explanation.
#[test]
fn every_scenario_has_a_page_a_twin_and_eight_cases() {
    let twins = read(root().join("crates/watch/src/twin/naive/mod.rs"));
    let mut missing = Vec::new();
    for id in ALL.iter().map(|entry| entry.id) {
        let page =
            std::fs::read_to_string(root().join(format!("docs/scenarios/{id}.md"))).unwrap_or_default();
        for heading in ["## Innocent explanations", "## Limits"] {
            let section = page.split_once(&format!("\n{heading}\n")).map_or("", |(_, rest)| rest);
            if section.split("\n## ").next().unwrap_or_default().trim().is_empty() {
                missing.push(format!("{id}: the page needs a section `{heading}`"));
            }
        }
        if !twins.lines().any(|line| line.ends_with(&format!("mod {id};"))) {
            missing.push(format!("{id}: twin/naive/mod.rs has no line of it"));
        }
        let files =
            [format!("crates/watch/src/scenarios/{id}/cases.jsonl"), format!("vectors/watch/{id}.jsonl")];
        let texts = files.iter().filter_map(|file| std::fs::read_to_string(root().join(file)).ok());
        let cases: usize = texts.map(|text| expected(&text).0).sum();
        if cases < 8 {
            missing.push(format!("{id}: {cases} cases, and 8 are needed"));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// A case chosen by its id must give the alerts that it gives among the others, and no others.
#[test]
fn a_chosen_case_gives_its_own_alerts() {
    let text = read(root().join("vectors/watch/spoofing.jsonl"));
    let selection = ScenarioSelection::of(&["spoofing"]);
    let alerts_of = |cases: &[&str]| {
        let cases: Vec<String> = cases.iter().map(|id| (*id).to_owned()).collect();
        let mut log = CaseLog::default();
        let summary = replay_cases(text.as_bytes(), "spoofing", &selection, &cases, &mut log);
        summary.map(|summary| (log, summary.events))
    };
    let (all, _) = alerts_of(&[]).unwrap();
    let (chosen, events) = alerts_of(&["SPOOF-P1"]).unwrap();
    assert_eq!(chosen.cases, ["SPOOF-P1"]);
    assert_eq!(chosen.events as u64, events);
    assert!(chosen.events < all.events && !chosen.alerts.is_empty());
    assert_eq!(chosen.alerts, all.alerts[..chosen.alerts.len()]);
    let message = alerts_of(&["SPOF-P1"]).err().unwrap().to_string();
    assert_eq!(message, "spoofing has no case `SPOF-P1`; did you mean `SPOOF-P1`?");
}

/// The cases, the number of events and the alerts that a replay gave.
#[derive(Default)]
struct CaseLog {
    cases: Vec<String>,
    events: usize,
    alerts: Vec<(Option<String>, crate::Alert)>,
}

impl ReplayObserver for CaseLog {
    fn on_case(&mut self, id: &str, title: Option<&str>) -> std::io::Result<()> {
        assert!(title.is_some_and(|title| !title.is_empty()), "{id}");
        self.cases.push(id.to_owned());
        Ok(())
    }

    fn on_event(&mut self, _: &unitape_model::Event<'_>, _: u64, _: &Dictionary) -> std::io::Result<()> {
        self.events += 1;
        Ok(())
    }

    fn on_alert(&mut self, alert: &crate::Alert, case: Option<&str>) -> std::io::Result<()> {
        self.alerts.push((case.map(str::to_owned), alert.clone()));
        Ok(())
    }
}
