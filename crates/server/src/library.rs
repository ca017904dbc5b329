//! What the desk asks of cases, users and tapes. All of it blocks, and runs on threads of its own.

use crate::{DeskEvent, DeskOptions, Error};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use unitape_case::action::{CaseCommand, act};
use unitape_case::evidence::EvidenceTape;
use unitape_case::export::{alert_evidence, picture_options};
use unitape_case::ingest::{IngestEnd, IngestOptions, ingest};
use unitape_case::{
    ActionRecord, Actor, AlertRecord, Case, CaseFilter, CaseState, CaseStore, Disposition, allowed_actions,
};
use unitape_model::Calendar;
use unitape_run::picture::Picture;
use unitape_run::users::{Account, AccountStamp, UserError, UserFile};
use unitape_tape::ReadOptions;
use unitape_watch::scenarios;

pub(crate) struct Library {
    options: DeskOptions,
    event_sink: Arc<dyn Fn(DeskEvent<'_>) + Send + Sync>,
    /// Why alerts do not become cases, if they do not.
    ingest_trouble: Mutex<Option<String>>,
}

impl Library {
    /// Opens what the desk serves once, so that a wrong name is an error at the start.
    pub fn open(
        options: &DeskOptions,
        sink: Arc<dyn Fn(DeskEvent<'_>) + Send + Sync>,
    ) -> Result<Self, Error> {
        UserFile::load(&options.users)?;
        CaseStore::open_or_create(&options.cases)?;
        EvidenceTape::open(&options.tape, ReadOptions::default())?;
        Ok(Self { options: options.clone(), event_sink: sink, ingest_trouble: Mutex::default() })
    }

    /// Makes cases of alerts until `is_stopped`. What goes wrong is reported, shown on the page, and tried again: the desk shows the
    /// cases that there are.
    pub fn ingest_until(&self, is_stopped: &(dyn Fn() -> bool + Sync)) -> Result<(), Error> {
        let calendar = Calendar::default();
        while !is_stopped() {
            let options = IngestOptions {
                alerts: &self.options.alerts,
                source: &self.options.tape,
                calendar: &calendar,
                read: ReadOptions::default(),
                now: &now,
                end: &|| if is_stopped() { IngestEnd::Now } else { IngestEnd::Never },
            };
            let ingested = CaseStore::open(&self.options.cases)
                .and_then(|mut store| ingest(&mut store, &options, |_| Ok::<(), unitape_case::Error>(())));
            if let Err(error) = ingested {
                let text = format!("alerts do not become cases: {error}");
                let is_new = self.lock_trouble().replace(text.clone()).as_deref() != Some(&*text);
                if is_new {
                    self.tell(&text);
                }
                let retry_until = std::time::Instant::now() + RETRY;
                while std::time::Instant::now() < retry_until && !is_stopped() {
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
        Ok(())
    }

    pub fn tell(&self, text: &str) {
        (self.event_sink)(DeskEvent::Trouble(text));
    }

    /// Returns the account of a user who knows the password, and its stamp.
    pub fn authenticate(&self, user: &str, password: &str) -> Result<(Account, AccountStamp), UserError> {
        let users = UserFile::load(&self.options.users)?;
        let account = users.authenticate(user, password)?;
        let stamp = users.account_stamp(user).ok_or_else(|| UserError::Disabled { name: user.to_owned() })?;
        Ok((account, stamp))
    }

    /// Returns an account that may be used now.
    pub fn enabled_account(&self, user: &str) -> Result<Option<Account>, UserError> {
        let users = UserFile::load(&self.options.users)?;
        Ok(users.accounts().find(|account| account.name == user && !account.is_disabled))
    }

    /// Returns the account of a session, if it may be used now and has the stamp that it had at the log-in.
    pub fn session_account(&self, user: &str, stamp: AccountStamp) -> Result<Option<Account>, UserError> {
        let users = UserFile::load(&self.options.users)?;
        if users.account_stamp(user) != Some(stamp) {
            return Ok(None);
        }
        Ok(users.accounts().find(|account| account.name == user))
    }

    pub fn status(&self) -> Result<Value, unitape_case::Error> {
        let store = self.open_store()?;
        let mut cases = serde_json::Map::new();
        for state in CaseState::ALL {
            let mut count = 0u64;
            let mut after = None;
            loop {
                let filter =
                    CaseFilter { state: Some(state), after, limit: Some(1_000), ..CaseFilter::default() };
                let page = store.cases(&filter)?;
                count += page.cases.len() as u64;
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            if count > 0 {
                cases.insert(state.name().to_owned(), count.into());
            }
        }
        Ok(json!({ "cases": cases, "alerts": { "note": *self.lock_trouble() } }))
    }

    pub fn cases(&self, filter: &CaseFilter) -> Result<Value, unitape_case::Error> {
        let page = self.open_store()?.cases(filter)?;
        Ok(json!({
            "cases": page.cases.iter().map(case_json).collect::<Vec<_>>(),
            "next": page.next.map(|next| next.to_string()),
        }))
    }

    /// Returns all that the page shows of a case, and what `actor` may do.
    pub fn case(&self, id: u64, actor: &Actor) -> Result<Value, unitape_case::Error> {
        let store = self.open_store()?;
        let case = store.case(id)?;
        let alerts = store.alerts(id, ALERTS_MAX)?;
        let mut tape = EvidenceTape::open(&self.options.tape, ReadOptions::default())?;
        let mut evidence: Vec<Value> = Vec::new();
        let mut seqs = std::collections::BTreeSet::new();
        for alert in &alerts {
            for line in alert_evidence(&mut tape, alert)?.events {
                if !seqs.insert(line.seq) {
                    continue;
                }
                let (event, missing) = match &line.event {
                    Ok(line) => (serde_json::from_str(&line.json).unwrap_or(Value::Null), None),
                    Err(reason) => (Value::Null, Some(reason.clone())),
                };
                evidence.push(json!({
                    "seq": line.seq.to_string(), "position": line.position.map(|position| position.0.to_string()),
                    "event": with_text_numbers(event), "missing": missing,
                }));
            }
        }
        let mut allowed: Vec<&str> =
            allowed_actions(case.state).filter(|kind| actor.may(*kind)).map(|kind| kind.command()).collect();
        allowed.dedup();
        let earlier = store.earlier_cases(id, EARLIER_MAX)?;
        Ok(json!({
            "case": case_json(&case),
            "scenario": scenario_json(&case, &alerts),
            "alerts": alerts.iter().map(alert_json).collect::<Vec<_>>(),
            "evidence": evidence,
            "actions": store.actions(id)?.iter().map(action_json).collect::<Vec<_>>(),
            "allowed": allowed,
            "dispositions": Disposition::ALL.map(Disposition::name),
            "earlier": earlier.iter().map(case_json).collect::<Vec<_>>(),
        }))
    }

    /// Returns the picture of the book around the first alert of a case.
    pub fn picture(&self, id: u64) -> Result<Picture, unitape_case::Error> {
        let store = self.open_store()?;
        let alert = store.alerts(id, 1)?.into_iter().next();
        let alert = alert.ok_or(unitape_case::Error::UnknownCase(id))?;
        let mut tape = EvidenceTape::open(&self.options.tape, ReadOptions::default())?;
        let evidence = alert_evidence(&mut tape, &alert)?;
        let options = picture_options(&alert.recorded.alert, &evidence)?;
        Ok(Picture::read(&self.options.tape, &options, ReadOptions::default())?)
    }

    /// Does what an actor asks for.
    pub fn act_on_case(
        &self,
        id: u64,
        actor: &Actor,
        command: &CaseCommand,
    ) -> Result<(), unitape_case::Error> {
        act(&mut self.open_store()?, id, actor, command, now()).map(drop)
    }

    fn open_store(&self) -> Result<CaseStore, unitape_case::Error> {
        CaseStore::open(&self.options.cases)
    }

    fn lock_trouble(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.ingest_trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn case_json(case: &Case) -> Value {
    json!({
        "id": case.id.to_string(),
        "state": case.state.name(),
        "disposition": case.disposition.map(Disposition::name),
        "scenario": case.scenario,
        "key": serde_json::from_str::<Value>(&case.key).unwrap_or(Value::Null),
        "session_date": case.session_date,
        "alerts": case.alerts,
        "seen_again": case.seen_again,
        "opened": case.opened.to_string(),
        "last_alert": case.last_ts.to_string(),
        "assignee": case.assignee,
    })
}

fn alert_json(alert: &AlertRecord) -> Value {
    let recorded = &alert.recorded;
    json!({
        "seq": alert.number.to_string(),
        "ts": recorded.alert.ts.0.to_string(),
        "trigger_seq": recorded.alert.trigger_seq.to_string(),
        "detail": with_text_numbers(recorded.alert.detail.clone()),
        "rule_version": recorded.rule_version,
        "params_hash": recorded.params_hash,
        "seen_again": alert.seen_again,
    })
}

fn action_json(action: &ActionRecord) -> Value {
    json!({
        "number": action.number,
        "ts": action.ts.to_string(),
        "user": action.author.as_ref().map_or("ingest", |author| author.user.as_str()),
        "kind": action.kind.name(),
        "to": action.state.map(CaseState::name),
        "assignee": action.assignee,
        "disposition": action.disposition.map(Disposition::name),
        "text": action.text,
    })
}

/// Returns the words of the scenario and its parameters: the defaults, which the alert may have used or not.
fn scenario_json(case: &Case, alerts: &[AlertRecord]) -> Value {
    let Ok(def) = scenarios::find(&case.scenario) else { return Value::Null };
    let selection = unitape_watch::ScenarioSelection {
        scenarios: vec![def.id.to_owned()],
        ..unitape_watch::ScenarioSelection::default()
    };
    let rules = selection.rules().ok().and_then(|rules| rules.scenarios.into_iter().next());
    let is_default = rules.is_some_and(|rules| {
        alerts.iter().all(|alert| {
            alert.recorded.params_hash.as_ref() == Some(&rules.params_hash)
                && alert.recorded.rule_version.as_ref() == Some(&rules.version)
        })
    });
    let parameters: Vec<Value> = def
        .params
        .iter()
        .map(|param| {
            let value = param.default_text();
            json!({ "name": param.name, "value": value, "unit": param.unit, "about": param.description })
        })
        .collect();
    json!({
        "title": def.title, "trigger": def.trigger, "clarified": def.clarified, "regulation": def.regulation,
        "parameters": parameters, "are_those_of_the_alerts": is_default,
    })
}

/// Turns numbers beyond 2^53 into text: a browser would change their last digits.
fn with_text_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(n), _) if n > SAFE_MAX => n.to_string().into(),
            (None, Some(n)) if n < -(SAFE_MAX as i64) => n.to_string().into(),
            _ => Value::Number(number),
        },
        Value::Array(list) => list.into_iter().map(with_text_numbers).collect(),
        Value::Object(map) => map.into_iter().map(|(name, value)| (name, with_text_numbers(value))).collect(),
        other => other,
    }
}

/// Returns our clock, nanoseconds since 1970.
fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|past| i64::try_from(past.as_nanos()).ok())
        .unwrap_or_default()
}

/// The time before another try to ingest.
const RETRY: Duration = Duration::from_secs(5);
const ALERTS_MAX: u64 = 50;
const EARLIER_MAX: u64 = 20;
/// The greatest whole number that a browser keeps exactly.
const SAFE_MAX: u64 = (1 << 53) - 1;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use unitape_run::users::Role;

    /// Makes a user file with these users in `dir`; hashing costs little.
    pub(crate) fn user_file(dir: &std::path::Path, users: &[&str]) -> std::path::PathBuf {
        let path = dir.join("users.toml");
        std::fs::write(&path, "format = 1\n[argon2]\nmemory_kib = 8\niterations = 1\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        for name in users {
            let (person, role) = (name.to_string(), Role::Analyst);
            let account =
                Account { name: name.to_string(), person, role, parties: Vec::new(), is_disabled: false };
            UserFile::add_account(&path, &account, "correct horse").unwrap();
        }
        path
    }

    /// A user who changes a password because somebody else knows it must be rid of him.
    #[test]
    fn a_session_ends_with_the_password_with_which_it_began() {
        let dir = tempfile::tempdir().unwrap();
        let users = user_file(dir.path(), &["ann", "bob"]);
        let library = Library {
            options: DeskOptions {
                tape: dir.path().to_owned(),
                alerts: dir.path().to_owned(),
                cases: dir.path().to_owned(),
                users: users.clone(),
                listen: ([127, 0, 0, 1], 0).into(),
            },
            event_sink: Arc::new(|_| {}),
            ingest_trouble: Mutex::default(),
        };
        let log_in = |user: &str, password: &str| library.authenticate(user, password).unwrap().1;
        let is_known = |user: &str, stamp| library.session_account(user, stamp).unwrap().is_some();
        let (ann, bob) = (log_in("ann", "correct horse"), log_in("bob", "correct horse"));
        assert!(is_known("ann", ann) && is_known("bob", bob) && !is_known("ann", bob));
        UserFile::set_password(&users, "ann", "battery staple").unwrap();
        assert!(!is_known("ann", ann) && is_known("bob", bob));
        assert!(is_known("ann", log_in("ann", "battery staple")));
        UserFile::disable_account(&users, "bob").unwrap();
        assert!(!is_known("bob", bob));
    }
}
