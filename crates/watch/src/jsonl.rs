//! Replay of events from lines.

use crate::alert::Alert;
use crate::error::Error;
use crate::missing::MissingCounts;
use crate::params::{ParamOverlay, ScenarioSelection};
use crate::scenarios;
use crate::watch::{ScenarioMetrics, SharedMetrics, Watch};
use serde_json::Value;
use std::io::{self, BufRead, Read as _};
use unitape_codec::events::{BOOKKEEPING, LINE_BYTES_MAX, LineParseOptions, ParsedEventLine, parse_line};
use unitape_model::{Dictionary, Event};

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplaySummary {
    /// Events accepted.
    pub events: u64,
    /// Alerts given.
    pub alerts: u64,
    /// Cases begun.
    pub cases: u64,
    /// Skipped lines of a tape's account (`define`, `source`, `progress`, `quarantine`).
    pub bookkeeping: u64,
    /// Counters by scenario, summed over all cases.
    pub metrics: Vec<(&'static str, ScenarioMetrics)>,
    /// The values that were missing by scenario, likewise.
    pub missing: Vec<MissingCounts>,
    /// Counters of the shared state, likewise.
    pub shared: SharedMetrics,
}

impl ReplaySummary {
    /// Adds the counters of a watch that ends here.
    pub fn add_counters(&mut self, watch: &Watch) {
        add_up(self, watch);
    }
}

/// Replays the lines of `input`; `sink` is given each alert in order, with the case it belongs to.
///
/// Lines of a tape's account, as `tape cat --json` prints them for quarantined messages, are skipped and counted.
///
/// A `header` lays its `params` over the configuration (for the scenario it names, or for several by name) until the
/// next header. A `case` may lay its own parameters over these, and begins with empty state. `expect` is skipped.
/// `label` names the input in errors.
pub fn replay_jsonl(
    input: impl BufRead,
    label: &str,
    selection: &ScenarioSelection,
    sink: impl FnMut(&Alert, Option<&str>) -> io::Result<()>,
) -> Result<ReplaySummary, Error> {
    replay::<Watch>(input, label, selection, sink)
}

/// Receives the events and the alerts of a replay, in order.
pub trait ReplayObserver {
    /// Takes the start of a case: its id and, if it has one, its title.
    ///
    /// # Errors
    /// Fails if the observer cannot write; the replay ends.
    fn on_case(&mut self, id: &str, title: Option<&str>) -> io::Result<()>;

    /// Takes an event that the scenarios have judged. Its alerts follow.
    ///
    /// # Errors
    /// Fails as [`Self::on_case`] does.
    fn on_event(&mut self, event: &Event<'_>, seq: u64, names: &Dictionary) -> io::Result<()>;

    /// Takes an alert of the last event.
    ///
    /// # Errors
    /// Fails as [`Self::on_case`] does.
    fn on_alert(&mut self, alert: &Alert, case: Option<&str>) -> io::Result<()>;
}

/// Receives alerts alone.
struct AlertObserver<F>(F);

impl<F: FnMut(&Alert, Option<&str>) -> io::Result<()>> ReplayObserver for AlertObserver<F> {
    fn on_case(&mut self, _: &str, _: Option<&str>) -> io::Result<()> {
        Ok(())
    }

    fn on_event(&mut self, _: &Event<'_>, _: u64, _: &Dictionary) -> io::Result<()> {
        Ok(())
    }

    fn on_alert(&mut self, alert: &Alert, case: Option<&str>) -> io::Result<()> {
        (self.0)(alert, case)
    }
}

/// Replays the lines of `input` as [`replay_jsonl`] does; `observer` is given the cases and events as well. If `cases` names
/// any, the events of other cases, and events before the first case, are left out.
///
/// # Errors
/// Fails as [`replay_jsonl`] does, and if the input lacks a named case; the alerts of the others are then given.
pub fn replay_cases(
    input: impl BufRead,
    label: &str,
    selection: &ScenarioSelection,
    cases: &[String],
    observer: &mut impl ReplayObserver,
) -> Result<ReplaySummary, Error> {
    observed_replay::<Watch>(input, label, selection, cases, observer)
}

/// The engine of a replay: the watch, or the slow twins.
pub(crate) trait ReplayEngine: Sized {
    /// Makes the watch before the first event, with the parameters of the input.
    fn with_selection(selection: &ScenarioSelection, input: &[&ParamOverlay]) -> Result<Self, Error>;
    /// Takes an event.
    fn process_event(&mut self, event: &Event<'_>, seq: u64, names: &Dictionary, out: &mut Vec<Alert>);
    /// Returns the counters by scenario, and the counters of the shared state.
    fn counters(&self) -> (Vec<(&'static str, ScenarioMetrics)>, SharedMetrics);
    /// Returns the values that were missing by scenario.
    fn missing_values(&self) -> Vec<MissingCounts> {
        Vec::new()
    }
}

impl ReplayEngine for Watch {
    fn with_selection(selection: &ScenarioSelection, input: &[&ParamOverlay]) -> Result<Self, Error> {
        Self::with_input_params(selection, input)
    }

    fn process_event(&mut self, event: &Event<'_>, seq: u64, names: &Dictionary, out: &mut Vec<Alert>) {
        self.on_event(event, seq, None, names, out);
    }

    fn counters(&self) -> (Vec<(&'static str, ScenarioMetrics)>, SharedMetrics) {
        (self.metrics().collect(), self.shared_metrics())
    }

    fn missing_values(&self) -> Vec<MissingCounts> {
        Self::missing_values(self).map(|(_, counts)| counts.clone()).collect()
    }
}

pub(crate) fn replay<E: ReplayEngine>(
    input: impl BufRead,
    label: &str,
    selection: &ScenarioSelection,
    sink: impl FnMut(&Alert, Option<&str>) -> io::Result<()>,
) -> Result<ReplaySummary, Error> {
    observed_replay::<E>(input, label, selection, &[], &mut AlertObserver(sink))
}

fn observed_replay<E: ReplayEngine>(
    mut input: impl BufRead,
    label: &str,
    selection: &ScenarioSelection,
    cases: &[String],
    observer: &mut impl ReplayObserver,
) -> Result<ReplaySummary, Error> {
    let mut case_filter = CaseFilter::new(cases);
    let mut watch = E::with_selection(selection, &[])?;
    let mut total = ReplaySummary::default();
    let mut dictionary = Dictionary::default();
    let (mut text, mut arena, mut alerts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut header, mut case): (ParamOverlay, Option<String>) = Default::default();
    // The scenario that the header names; its cases are about the same.
    let mut scenario_id = None;
    let mut last_seq = None;
    // A time that the merge did not believe is not believed here either.
    let options = LineParseOptions { reads_flags: true, ..LineParseOptions::default() };
    for line in 1u64.. {
        text.clear();
        // Two bytes more than a line may have distinguish a line that is too long from a line that just fits.
        let read_result = input.by_ref().take(LINE_BYTES_MAX as u64 + 2).read_until(b'\n', &mut text);
        if read_result.map_err(|source| Error::Read { label: label.into(), source })? == 0 {
            break;
        }
        let record = |message: String| Error::Record { label: label.into(), line, message };
        let trimmed = text.trim_ascii_end();
        arena.clear();
        let parsed = match parse_line(trimmed, &mut dictionary, &mut arena, &options) {
            Err(e) if e.code == BOOKKEEPING => {
                total.bookkeeping += 1;
                continue;
            }
            parsed => parsed.map_err(|source| Error::Line { label: label.into(), line, source })?,
        };
        match parsed {
            ParsedEventLine::Blank | ParsedEventLine::Expect(_) => {}
            ParsedEventLine::Header(json) => {
                let case_header = CaseHeader::read_header(json, None, selection).map_err(record)?;
                (header, scenario_id) = (case_header.params, case_header.scenario);
                add_up(&mut total, &watch);
                watch = E::with_selection(selection, &[&header])?;
                (case, last_seq) = (None, None);
                case_filter.is_selected = case_filter.selects_all();
            }
            ParsedEventLine::Case(json) => {
                let case_header =
                    CaseHeader::read_header(json, scenario_id.as_deref(), selection).map_err(record)?;
                let id = case_header.id.ok_or_else(|| record("a case needs an id".into()))?;
                case_filter.begin_case(&id);
                if !case_filter.is_selected {
                    continue;
                }
                observer.on_case(&id, case_header.title.as_deref()).map_err(Error::Write)?;
                case = Some(id);
                add_up(&mut total, &watch);
                watch = E::with_selection(selection, &[&header, &case_header.params])?;
                total.cases += 1;
                last_seq = None;
            }
            ParsedEventLine::Event { .. } if !case_filter.is_selected => {}
            ParsedEventLine::Event { start, seq, .. } => {
                let seq = seq.unwrap_or_else(|| last_seq.map_or(1, |last: u64| last.saturating_add(1)));
                if let Some(previous_seq) = last_seq.replace(seq).filter(|last| *last >= seq) {
                    return Err(Error::Order { label: label.into(), line, seq, last: previous_seq });
                }
                let event = Event::new(&arena[start..]).expect("the frame that was just made");
                watch.process_event(&event, seq, &dictionary, &mut alerts);
                total.events += 1;
                observer.on_event(&event, seq, &dictionary).map_err(Error::Write)?;
                for alert in alerts.drain(..) {
                    observer.on_alert(&alert, case.as_deref()).map_err(Error::Write)?;
                    total.alerts += 1;
                }
            }
        }
    }
    add_up(&mut total, &watch);
    case_filter.finish_input(label)?;
    Ok(total)
}

/// The cases that a replay runs.
struct CaseFilter<'a> {
    wanted_cases: &'a [String],
    /// The wanted cases that the input has so far.
    present_cases: Vec<bool>,
    /// Whether the next events belong to a wanted case.
    is_selected: bool,
    /// The ids of the input's cases, for the message if a wanted one is missing.
    case_ids: Vec<String>,
}

/// The number of ids that the message may suggest.
const CASE_IDS_MAX: usize = 1 << 16;

impl<'a> CaseFilter<'a> {
    fn new(wanted: &'a [String]) -> Self {
        Self {
            wanted_cases: wanted,
            present_cases: vec![false; wanted.len()],
            is_selected: wanted.is_empty(),
            case_ids: Vec::new(),
        }
    }

    fn selects_all(&self) -> bool {
        self.wanted_cases.is_empty()
    }

    fn begin_case(&mut self, id: &str) {
        if self.selects_all() {
            return;
        }
        if self.case_ids.len() < CASE_IDS_MAX {
            self.case_ids.push(id.to_owned());
        }
        self.is_selected = false;
        for (wanted, present) in self.wanted_cases.iter().zip(&mut self.present_cases) {
            if wanted == id {
                (*present, self.is_selected) = (true, true);
            }
        }
    }

    /// Fails if the input lacks a wanted case.
    fn finish_input(self, label: &str) -> Result<(), Error> {
        match self.present_cases.iter().position(|present| !present) {
            None => Ok(()),
            Some(index) => Err(Error::UnknownCase {
                label: label.into(),
                id: self.wanted_cases[index].clone(),
                ids: self.case_ids,
            }),
        }
    }
}

/// A header or a case.
struct CaseHeader {
    id: Option<String>,
    title: Option<String>,
    scenario: Option<String>,
    params: ParamOverlay,
}

impl CaseHeader {
    /// Reads and checks a line of parameters. `default_scenario` applies unless the line names a scenario.
    fn read_header(
        json: &str,
        default_scenario: Option<&str>,
        selection: &ScenarioSelection,
    ) -> Result<Self, String> {
        let record: Value = serde_json::from_str(json).map_err(|e| e.to_string())?;
        let text = |name| record.get(name).and_then(Value::as_str);
        let (scenario_id, only) = (text("scenario").or(default_scenario), selection.single());
        let runs = |id: &str| selection.scenarios.is_empty() || selection.scenarios.iter().any(|s| s == id);
        let mut this = Self {
            id: text("id").map(str::to_owned),
            title: text("title").map(str::to_owned),
            scenario: scenario_id.map(str::to_owned),
            params: ParamOverlay::default(),
        };
        // Parameters of a scenario that does not run are not checked.
        if scenario_id.is_some_and(|id| !runs(id)) {
            return Ok(this);
        }
        if let Some(scenario_id) = scenario_id {
            scenarios::find(scenario_id).map_err(|e| e.to_string())?;
        }
        match record.get("params") {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => {
                this.params = ParamOverlay::from_map(map, scenario_id.or(only)).map_err(|e| e.to_string())?;
            }
            Some(_) => return Err("params must be an object".into()),
        }
        Ok(this)
    }
}

fn add_up(total: &mut ReplaySummary, watch: &impl ReplayEngine) {
    let (metrics, shared) = watch.counters();
    total.shared.add(&shared);
    for (i, (id, m)) in metrics.into_iter().enumerate() {
        if total.metrics.len() <= i {
            total.metrics.push((id, ScenarioMetrics::default()));
        }
        total.metrics[i].1.add(&m);
    }
    for (i, counts) in watch.missing_values().into_iter().enumerate() {
        if total.missing.len() <= i {
            total.missing.push(MissingCounts::default());
        }
        total.missing[i].merge(&counts);
    }
}
