//! Walks the chain of actions, and compares alerts, cases, parties and cursors with what the actions give.

use super::chain::{action_content, alert_digest, hash_of_action};
use super::links::{self, ChainRow};
use crate::Error;
use crate::model::{ActionKind, AlertRecord, CaseState, StoredAlert, group_of, next_state, parties_of};
use crate::store::{CaseStore, RawCase, RawRow, StoreHead};
use rusqlite::types::Value;
use std::collections::{BTreeMap, BTreeSet};
use unitape_run::users::is_same_person;

/// The result of an audit.
#[derive(Clone, Debug)]
pub struct AuditReport {
    /// Actions in the database.
    pub actions: u64,
    /// Alerts in the database.
    pub alerts: u64,
    /// Cases in the database.
    pub cases: u64,
    /// The hash of the last action, as the database states it.
    pub head: [u8; 32],
    /// What is wrong.
    pub findings: Vec<AuditFinding>,
    /// What is wrong as well and is not among the findings, because there is too much.
    pub left_out: u64,
}

impl AuditReport {
    /// Returns whether nothing is wrong.
    pub fn is_intact(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Something that is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFinding {
    /// The table: `action`, `alert`, `case`, `party`, `tape`, or `file` for the database as a whole.
    pub table: &'static str,
    /// The number of the row; 0 if it concerns the table.
    pub row: i64,
    /// The kind of problem.
    pub problem: AuditProblem,
    /// The problem, in words.
    pub detail: String,
}

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditProblem {
    /// The row does not have the values with which it was written.
    Changed,
    /// The row is gone.
    Removed,
    /// The row was not written by an action.
    Inserted,
    /// The row was written with another number.
    Moved,
    /// All rows from this one on are gone.
    Cut,
    /// The action breaks a rule: a transition, or that two persons close.
    Forbidden,
    /// The file itself is damaged.
    Damaged,
}

impl AuditProblem {
    /// Returns the word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Inserted => "inserted",
            Self::Moved => "moved",
            Self::Cut => "cut",
            Self::Forbidden => "forbidden",
            Self::Damaged => "damaged",
        }
    }
}

/// The findings so far, with a bound.
#[derive(Debug, Default)]
pub(super) struct Findings {
    list: Vec<AuditFinding>,
    left_out: u64,
}

impl Findings {
    pub fn add_finding(&mut self, finding: AuditFinding) {
        if self.list.len() < FINDINGS_MAX {
            self.list.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    fn add_problem(
        &mut self,
        table: &'static str,
        row: i64,
        problem: AuditProblem,
        detail: impl Into<String>,
    ) {
        self.add_finding(AuditFinding { table, row, problem, detail: detail.into() });
    }
}

/// Verifies all actions, and that alerts, cases, parties and cursors are what the actions give.
///
/// # Errors
/// Fails if the database cannot be read. What is wrong with its content is in the report.
pub fn verify(store: &CaseStore) -> Result<AuditReport, Error> {
    // Of one state, whatever others write meanwhile.
    store.begin_reading()?;
    let report = verify_state(store);
    store.end_reading()?;
    report
}

fn verify_state(store: &CaseStore) -> Result<AuditReport, Error> {
    let mut findings = Findings::default();
    for fault in store.file_faults()? {
        findings.add_problem("file", 0, AuditProblem::Damaged, fault);
    }
    let head = store.head()?;
    let mut audit = Audit::default();
    let mut chain = ChainWalk { next_number: 1, last_hash: [0; 32], is_broken: false };
    store.for_each_action(|row| {
        chain.check_row(&row);
        audit.take_action(&row, &mut findings);
    })?;
    if chain.is_broken || chain.next_number - 1 != head.actions || chain.last_hash != head.hash {
        let mut rows = Vec::new();
        store.for_each_action(|row| rows.push(chain_row(&row)))?;
        links::explain(&rows, head, &mut findings);
    }
    store.for_each_alert(|row| audit.take_alert(&row, &mut findings))?;
    audit.require_alerts(&mut findings);
    store.for_each_case(|row| audit.take_case(&row, &mut findings))?;
    audit.require_cases(&mut findings);
    store.for_each_party(|row| audit.take_party(&row, &mut findings))?;
    audit.require_parties(&mut findings);
    store.for_each_tape(|row| audit.take_tape(&row, &mut findings))?;
    audit.require_tapes(&mut findings);
    let (actions, alerts, cases) = (audit.action_count, audit.alert_count, audit.case_count);
    let Findings { list, left_out } = findings;
    let StoreHead { hash: head, .. } = head;
    Ok(AuditReport { actions, alerts, cases, head, findings: list, left_out })
}

/// The walk along an intact chain.
struct ChainWalk {
    next_number: u64,
    last_hash: [u8; 32],
    is_broken: bool,
}

impl ChainWalk {
    fn check_row(&mut self, row: &RawRow) {
        let (columns, hash) = row.split_at(row.len() - 1);
        let is_next = integer_of(&row[0]) == Some(self.next_number as i64)
            && bytes(&columns[columns.len() - 1]) == self.last_hash;
        self.last_hash = bytes(&hash[0]);
        self.next_number += 1;
        self.is_broken |= !is_next || hash_of_action(columns) != self.last_hash;
    }
}

fn chain_row(row: &RawRow) -> ChainRow {
    let (columns, hash) = row.split_at(row.len() - 1);
    ChainRow {
        id: integer_of(&row[0]).unwrap_or(0),
        prev: bytes(&columns[columns.len() - 1]),
        stated_hash: bytes(&hash[0]),
        content_hash: action_content(columns),
    }
}

/// What the actions give.
#[derive(Debug, Default)]
struct Audit {
    cases: BTreeMap<i64, ExpectedCase>,
    alerts: BTreeMap<i64, ExpectedAlert>,
    /// The greatest position that an action names, by the row of the alert tape.
    tapes: BTreeMap<i64, i64>,
    parties: BTreeSet<(i64, String)>,
    action_count: u64,
    alert_count: u64,
    case_count: u64,
}

#[derive(Debug, Default)]
struct ExpectedCase {
    state: Option<CaseState>,
    disposition: Option<String>,
    assignee: Option<String>,
    /// The account and the person who proposed last to close it.
    proposer: Option<(String, String)>,
    session_date: Option<String>,
    first_alert: i64,
    alerts: i64,
    seen_again: i64,
    opened_ns: i64,
    changed_ns: i64,
    /// From its alerts.
    scenario: Option<String>,
    case_key: Option<String>,
    group: Option<[u8; 32]>,
    time_range: Option<(i64, i64)>,
    is_there: bool,
}

#[derive(Debug)]
struct ExpectedAlert {
    digest: [u8; 32],
    case: i64,
    seen_again: i64,
    is_there: bool,
}

impl Audit {
    fn take_action(&mut self, row: &RawRow, findings: &mut Findings) {
        self.action_count += 1;
        let number = integer_of(&row[0]).unwrap_or(0);
        if let (Some(tape), Some(position)) = (integer_of(&row[14]), integer_of(&row[15])) {
            let greatest = self.tapes.entry(tape).or_insert(position);
            *greatest = position.max(*greatest);
        }
        let Some(kind) = text_of(&row[6]).and_then(ActionKind::from_name) else {
            return findings.add_problem("action", number, AuditProblem::Forbidden, "its kind is unknown");
        };
        let Some(case_id) = integer_of(&row[1]) else {
            if kind != ActionKind::Blind {
                findings.add_problem("action", number, AuditProblem::Forbidden, "it names no case");
            }
            return;
        };
        let is_first = !self.cases.contains_key(&case_id);
        let case = self.cases.entry(case_id).or_default();
        let state = text_of(&row[7]).and_then(CaseState::from_name);
        let state_before = case.state.or((is_first && kind == ActionKind::Alert).then_some(CaseState::New));
        if state.is_none() || state_before.and_then(|before| next_state(before, kind)) != state {
            let name = |state: Option<CaseState>| state.map_or("nothing", CaseState::name);
            let detail =
                format!("{} does not lead from {} to {}", kind.name(), name(state_before), name(state));
            findings.add_problem("action", number, AuditProblem::Forbidden, detail);
        }
        let ts = integer_of(&row[2]).unwrap_or(0);
        let alert = integer_of(&row[11]);
        if is_first {
            (case.opened_ns, case.session_date) = (ts, text_of(&row[13]).map(str::to_owned));
            case.first_alert = alert.unwrap_or(0);
        }
        case.changed_ns = ts;
        let read_author = || Some((text_of(&row[3])?.to_owned(), text_of(&row[4])?.to_owned()));
        match kind {
            ActionKind::Alert => {
                case.alerts += 1;
                if case.state != state {
                    case.disposition = None;
                }
                let digest = bytes(&row[12]);
                let expected = ExpectedAlert { digest, case: case_id, seen_again: 0, is_there: false };
                self.alerts.insert(alert.unwrap_or(0), expected);
            }
            ActionKind::SeenAgain => {
                case.seen_again += 1;
                if let Some(alert) = alert.and_then(|alert| self.alerts.get_mut(&alert)) {
                    alert.seen_again += 1;
                }
            }
            ActionKind::Assign => case.assignee = text_of(&row[8]).map(str::to_owned),
            ActionKind::ProposeClose => {
                case.disposition = text_of(&row[9]).map(str::to_owned);
                case.proposer = read_author();
            }
            ActionKind::ConfirmClose => {
                let is_same = match (&case.proposer, read_author()) {
                    (Some((user, person)), Some((second, second_person))) => {
                        *user == second || is_same_person(person, &second_person)
                    }
                    _ => true,
                };
                if is_same {
                    let detail = "the person who closes is the one who proposed it, or is not named";
                    findings.add_problem("action", number, AuditProblem::Forbidden, detail);
                }
            }
            ActionKind::Reopen => case.disposition = None,
            ActionKind::Note | ActionKind::Escalate | ActionKind::Blind => {}
        }
        case.state = state;
    }

    fn take_alert(&mut self, row: &RawRow, findings: &mut Findings) {
        self.alert_count += 1;
        let id = integer_of(&row[0]).unwrap_or(0);
        let (columns, seen_again) = row.split_at(row.len() - 1);
        let Some(expected) = self.alerts.get_mut(&id) else {
            return findings.add_problem("alert", id, AuditProblem::Inserted, "no action has added it");
        };
        expected.is_there = true;
        if alert_digest(columns) != expected.digest {
            let detail = "its fields do not match the digest in its action";
            findings.add_problem("alert", id, AuditProblem::Changed, detail);
        }
        if integer_of(&seen_again[0]) != Some(expected.seen_again) {
            let detail = format!("its actions have seen it again {} times", expected.seen_again);
            findings.add_problem("alert", id, AuditProblem::Changed, detail);
        }
        let Some(case) = self.cases.get_mut(&expected.case) else { return };
        let word = |n: usize| text_of(&row[n]).unwrap_or_default().to_owned();
        let ts = integer_of(&row[5]).unwrap_or(0);
        let (first, last) = case.time_range.unwrap_or((ts, ts));
        case.time_range = Some((first.min(ts), last.max(ts)));
        let alert = AlertRecord::alert_of(StoredAlert {
            scenario: word(4),
            ts,
            trigger_seq: 0,
            trigger_position: None,
            key: word(8),
            detail: String::new(),
        });
        self.parties.extend(parties_of(&alert).into_iter().map(|party| (expected.case, party)));
        if case.first_alert == id {
            (case.scenario, case.case_key) = (Some(word(4)), Some(word(8)));
            case.group = case.session_date.as_deref().map(|date| group_of(&alert, date));
        }
    }

    fn require_alerts(&self, findings: &mut Findings) {
        for (id, _) in self.alerts.iter().filter(|(_, alert)| !alert.is_there) {
            findings.add_problem("alert", *id, AuditProblem::Removed, "an action has added it");
        }
    }

    fn take_case(&mut self, row: &RawCase, findings: &mut Findings) {
        self.case_count += 1;
        let Some(case) = self.cases.get_mut(&row.id) else {
            return findings.add_problem("case", row.id, AuditProblem::Inserted, "no action has opened it");
        };
        case.is_there = true;
        let (first_ts, last_ts) = case.time_range.unwrap_or_default();
        let owned = |text: &Option<String>| Value::from(text.clone());
        let expected: [(&str, Value); 13] = [
            ("scenario", owned(&case.scenario)),
            ("key", owned(&case.case_key)),
            ("session_date", owned(&case.session_date)),
            ("state", Value::from(case.state.map(|state| state.name().to_owned()))),
            ("disposition", owned(&case.disposition)),
            ("assignee", owned(&case.assignee)),
            ("alerts", case.alerts.into()),
            ("seen_again", case.seen_again.into()),
            ("first_ts", first_ts.into()),
            ("last_ts", last_ts.into()),
            ("opened", case.opened_ns.into()),
            ("changed", case.changed_ns.into()),
            ("group_id", Value::from(case.group.map(|group| group.to_vec()))),
        ];
        for ((name, wanted), stored) in expected.iter().zip(&row.columns[1..]) {
            if wanted != stored {
                let detail = format!(
                    "`{name}` is {}, and its actions give {}",
                    describe_value(stored),
                    describe_value(wanted)
                );
                findings.add_problem("case", row.id, AuditProblem::Changed, detail);
            }
        }
    }

    fn require_cases(&self, findings: &mut Findings) {
        for (id, _) in self.cases.iter().filter(|(_, case)| !case.is_there) {
            findings.add_problem("case", *id, AuditProblem::Removed, "an action has opened it");
        }
    }

    fn take_party(&mut self, row: &RawRow, findings: &mut Findings) {
        let case = integer_of(&row[0]).unwrap_or(0);
        let name = text_of(&row[1]).unwrap_or_default().to_owned();
        if !self.parties.remove(&(case, name)) {
            findings.add_problem("party", case, AuditProblem::Inserted, "no alert of this case names it");
        }
    }

    fn require_parties(&self, findings: &mut Findings) {
        for (case, _) in &self.parties {
            findings.add_problem("party", *case, AuditProblem::Removed, "an alert of this case names it");
        }
    }

    fn take_tape(&mut self, row: &RawRow, findings: &mut Findings) {
        let id = integer_of(&row[0]).unwrap_or(0);
        let position = integer_of(&row[2]).unwrap_or(0);
        if self.tapes.remove(&id).is_some_and(|greatest| greatest >= position) {
            let detail = "it was read further than its position says";
            findings.add_problem("tape", id, AuditProblem::Changed, detail);
        }
    }

    fn require_tapes(&self, findings: &mut Findings) {
        for id in self.tapes.keys() {
            findings.add_problem("tape", *id, AuditProblem::Removed, "an action names it");
        }
    }
}

fn integer_of(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        _ => None,
    }
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns a hash; zeros if the value is none.
fn bytes(value: &Value) -> [u8; 32] {
    match value {
        Value::Blob(bytes) => bytes.as_slice().try_into().unwrap_or_default(),
        _ => [0; 32],
    }
}

/// Returns a value for a message, in 60 bytes at most.
fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => {
            let cut_offset =
                text.char_indices().map(|(n, c)| n + c.len_utf8()).take_while(|end| *end <= 60).last();
            let end = cut_offset.unwrap_or(0);
            let ellipsis = if end < text.len() { "…" } else { "" };
            format!("`{}{ellipsis}`", &text[..end])
        }
        Value::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

const FINDINGS_MAX: usize = 10_000;
