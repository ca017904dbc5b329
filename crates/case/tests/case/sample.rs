//! Alert tapes, users and cases for the tests.

use std::path::{Path, PathBuf};
use unitape_case::action::{CaseCommand, act};
use unitape_case::ingest::{IngestEnd, IngestOptions, IngestReport, ingest};
use unitape_case::{ActionRecord, Actor, CaseFilter, CaseStore, Error};
use unitape_model::{Calendar, EventBuilder, EventField, EventKind, EventValue, Position, UnixNanos, flags};
use unitape_run::alert_tape::AlertTape;
use unitape_run::users::Role;
use unitape_tape::{ReadOptions, TapeId, TapeManifest, Writer, WriterOptions};
use unitape_watch::{Alert, ScenarioSelection};

/// A directory with a watched tape, its alert tape, and cases.
pub struct Sample {
    pub dir: tempfile::TempDir,
}

/// 2026-03-02 12:00 UTC.
pub const NOON: i64 = 1_772_452_800_000_000_000;
pub const DAY: i64 = 86_400_000_000_000;
/// Our clock in these tests.
pub const NOW: i64 = NOON + 5;

impl Sample {
    /// Makes the tapes, with these alerts.
    pub fn new(alerts: &[Alert]) -> Self {
        // Every commit is flushed: in memory that takes no time.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let sample = Self { dir: dir.unwrap() };
        make_tape(&sample.source(), TapeId(7));
        sample.write_alerts(&sample.alerts(), alerts);
        sample
    }

    pub fn source(&self) -> PathBuf {
        self.dir.path().join("tape")
    }

    pub fn alerts(&self) -> PathBuf {
        self.dir.path().join("alerts")
    }

    pub fn cases(&self) -> PathBuf {
        self.dir.path().join("cases")
    }

    pub fn store(&self) -> CaseStore {
        CaseStore::open_or_create(&self.cases()).unwrap()
    }

    /// Writes these alerts onto the tape in `dir`: those that are there must be the first ones.
    pub fn write_alerts(&self, dir: &Path, alerts: &[Alert]) {
        write_alerts(dir, TapeId(7), &ScenarioSelection::default(), alerts);
    }

    /// Ingests the alert tape in `dir` to its end.
    pub fn ingest_from(&self, dir: &Path) -> Result<IngestReport, Error> {
        self.ingest_until(dir, IngestEnd::AtEnd)
    }

    /// Ingests the alert tape.
    pub fn ingest(&self) -> Result<IngestReport, Error> {
        self.ingest_from(&self.alerts())
    }

    pub fn ingest_until(&self, dir: &Path, end: IngestEnd) -> Result<IngestReport, Error> {
        let calendar = Calendar::default();
        let source = self.source();
        let options = IngestOptions {
            alerts: dir,
            source: &source,
            calendar: &calendar,
            read: ReadOptions::default(),
            now: &|| NOW,
            end: &|| end,
        };
        ingest(&mut self.store(), &options, |_| Ok(()))
    }

    pub fn act(&self, case: u64, actor: &Actor, command: CaseCommand) -> Result<ActionRecord, Error> {
        act(&mut self.store(), case, actor, &command, NOW)
    }

    /// Returns number, state and alerts of each case.
    pub fn cases_in_short(&self) -> Vec<(u64, &'static str, u64, u64)> {
        let page = self.store().cases(&CaseFilter::default()).unwrap();
        page.cases.iter().map(|case| (case.id, case.state.name(), case.alerts, case.seen_again)).collect()
    }

    pub fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.cases().join("cases.db")).unwrap()
    }
}

pub fn make_tape(dir: &Path, id: TapeId) {
    Writer::open(dir, id, WriterOptions::default()).unwrap().0.close().unwrap();
}

pub fn write_alerts(dir: &Path, source: TapeId, selection: &ScenarioSelection, alerts: &[Alert]) {
    let mut tape = AlertTape::open(dir, source, selection, ReadOptions::default()).unwrap();
    for alert in alerts {
        tape.write_alerts(std::slice::from_ref(alert)).unwrap();
    }
    tape.close().unwrap();
}

/// Appends a control with this action to a tape.
pub fn write_control(dir: &Path, action: &str, ts: i64) {
    let id = TapeManifest::load(dir).unwrap().id;
    let (mut writer, _) = Writer::open(dir, id, WriterOptions::default()).unwrap();
    let mut unit = Vec::new();
    let mut event = EventBuilder::begin(&mut unit, EventKind::Control, UnixNanos(ts));
    event.set_field(EventField::Action, EventValue::Text(action)).unwrap();
    event.set_field(EventField::Detail, EventValue::Json("{\"scenario\":\"spoofing\"}")).unwrap();
    event.finish(flags::LAST).unwrap();
    writer.append(&unit).unwrap();
    writer.close().unwrap();
}

/// An alert about `owner` that event `seq` completed.
pub fn alert(owner: &str, seq: u64, ts: i64) -> Alert {
    alert_of("spoofing", &[("owner", owner), ("venue", "XLON"), ("instr", "VOD"), ("side", "B")], seq, ts)
}

pub fn alert_of(scenario: &'static str, key: &[(&'static str, &str)], seq: u64, ts: i64) -> Alert {
    Alert {
        scenario: scenario.into(),
        ts: UnixNanos(ts),
        trigger_seq: seq,
        position: Some(Position(seq * 64)),
        key: key.iter().map(|(name, value)| ((*name).into(), (*value).to_owned())).collect(),
        detail: serde_json::json!({ "qty": "100", "seqs": [seq] }),
    }
}

pub fn actor(user: &str, person: &str, role: Role) -> Actor {
    Actor { user: user.to_owned(), person: person.to_owned(), role, parties: Vec::new() }
}

pub fn anna() -> Actor {
    actor("anna", "Anna Berg", Role::Analyst)
}

pub fn bo() -> Actor {
    actor("bo", "Bo Lind", Role::Supervisor)
}
