//! Changes of the database. Each is a transaction that takes the lock first.

use super::CaseStore;
use super::read::{CASE_COLUMNS, StoreHead, case_of_row};
use crate::audit::chain::{alert_digest, hash_of_action};
use crate::model::{ActionKind, Case, CaseState, Disposition};
use crate::{Actor, Error};
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params, params_from_iter};
use std::path::Path;
use unitape_watch::RecordedAlert;

/// A transaction. Dropped without a commit it leaves everything as it was.
#[derive(Debug)]
pub(crate) struct CaseWriter<'a> {
    transaction: Transaction<'a>,
    database_path: &'a Path,
    store_head: StoreHead,
}

/// An action that is to be stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewAction<'a> {
    pub case: Option<u64>,
    pub ts: i64,
    pub actor: Option<&'a Actor>,
    pub kind: ActionKind,
    pub state: Option<CaseState>,
    pub assignee: Option<&'a str>,
    pub disposition: Option<Disposition>,
    pub text: Option<&'a str>,
    pub alert: Option<u64>,
    pub alert_digest: Option<[u8; 32]>,
    pub session_date: Option<&'a str>,
    /// The row and the position of the alert tape that ingest has read.
    pub tape: Option<i64>,
    pub position: Option<u64>,
}

impl NewAction<'_> {
    /// Makes an action without details.
    pub fn new(kind: ActionKind, ts: i64) -> Self {
        Self {
            case: None,
            ts,
            actor: None,
            kind,
            state: None,
            assignee: None,
            disposition: None,
            text: None,
            alert: None,
            alert_digest: None,
            session_date: None,
            tape: None,
            position: None,
        }
    }
}

/// An alert that is to be stored.
#[derive(Debug)]
pub(crate) struct NewAlert<'a> {
    pub case: u64,
    pub identity: [u8; 32],
    pub source: &'a str,
    pub recorded: &'a RecordedAlert,
    pub key: &'a str,
    pub tape: i64,
    pub position: u64,
}

/// Up to where an alert tape was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AlertTapeCursor {
    /// The position after the last frame.
    pub position: u64,
    /// The last frame: its position and the digest of its bytes.
    pub last: Option<(u64, [u8; 32])>,
    /// Frames of other kinds that were passed over.
    pub passed_over: u64,
}

impl CaseStore {
    /// Begins a transaction: waits until no other process writes.
    pub(crate) fn begin_write(&mut self) -> Result<CaseWriter<'_>, Error> {
        let path = &self.database_path;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = transaction.map_err(|e| Error::from_database(path, e))?;
        let head = StoreHead::load(&transaction).map_err(|e| Error::from_database(path, e))?;
        Ok(CaseWriter { transaction, database_path: path, store_head: head })
    }
}

impl CaseWriter<'_> {
    /// Commits, durably.
    pub fn commit(self) -> Result<(), Error> {
        let path = self.database_path;
        let commit = || {
            let head = params![self.store_head.actions as i64, self.store_head.hash];
            self.transaction.execute("UPDATE store SET actions = ?1, head = ?2", head)?;
            self.transaction.commit()
        };
        commit().map_err(|e| Error::from_database(path, e))
    }

    /// Returns a case.
    pub fn case(&self, id: u64) -> Result<Case, Error> {
        let sql = format!("SELECT {CASE_COLUMNS} FROM cases WHERE id = ?1");
        let case = self
            .transaction
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.query_row([id as i64], case_of_row).optional());
        case.map_err(|e| self.error(e))?.ok_or(Error::UnknownCase(id))
    }

    /// Returns the parties of a case.
    pub fn parties(&self, case: u64) -> Result<Vec<String>, Error> {
        super::read::parties(&self.transaction, case).map_err(|e| self.error(e))
    }

    /// Returns who proposed last to close a case: user and person.
    pub fn proposer(&self, case: u64) -> Result<Option<(String, String)>, Error> {
        let sql = "SELECT user, person FROM action WHERE case_id = ?1 AND kind = ?2 ORDER BY id DESC LIMIT 1";
        let kind = ActionKind::ProposeClose.name();
        let row =
            self.transaction.query_row(sql, params![case as i64, kind], |row| Ok((row.get(0)?, row.get(1)?)));
        row.optional().map_err(|e| self.error(e))
    }

    /// Returns the open case of a group, if there is one, with its state.
    pub fn open_case(&self, group: &[u8; 32]) -> Result<Option<(u64, CaseState)>, Error> {
        let sql = "SELECT id, state FROM cases WHERE group_id = ?1 AND state <> 'closed'";
        let row = self.transaction.prepare_cached(sql).and_then(|mut statement| {
            let row =
                |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)? as u64, super::read::state(row, 1)?));
            statement.query_row([group], row).optional()
        });
        row.map_err(|e| self.error(e))
    }

    /// Returns the group of a case.
    pub fn group(&self, case: u64) -> Result<[u8; 32], Error> {
        let sql = "SELECT group_id FROM cases WHERE id = ?1";
        self.transaction.query_row(sql, [case as i64], |row| row.get(0)).map_err(|e| self.error(e))
    }

    /// Returns the number and the case of an alert.
    pub fn find_alert(&self, identity: &[u8; 32]) -> Result<Option<(u64, u64)>, Error> {
        let row = self
            .transaction
            .prepare_cached("SELECT id, case_id FROM alert WHERE identity = ?1")
            .and_then(|mut statement| {
                let row = |row: &rusqlite::Row<'_>| {
                    Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
                };
                statement.query_row([identity], row).optional()
            });
        row.map_err(|e| self.error(e))
    }

    /// Returns the alerts of the last event that caused alerts on an alert tape, as far as they were read: the position of
    /// that event on the source, and the numbers of the alerts.
    pub fn last_alerts_of(&self, tape: i64) -> Result<(Option<u64>, Vec<u64>), Error> {
        let read_cursor = || -> rusqlite::Result<_> {
            let sql = "SELECT alert.id, trigger_position FROM action JOIN alert ON alert.id = alert_id \
                       WHERE action.tape_id = ?1 AND kind IN (?2, ?3) ORDER BY action.id DESC";
            let kinds = [ActionKind::Alert, ActionKind::SeenAgain].map(ActionKind::name);
            let mut statement = self.transaction.prepare(sql)?;
            let mut rows = statement.query(params![tape, kinds[0], kinds[1]])?;
            let (mut trigger, mut numbers) = (None, Vec::new());
            while let Some(row) = rows.next()? {
                let position = row.get::<_, Option<i64>>(1)?.map(|position| position as u64);
                if !numbers.is_empty() && position != trigger {
                    break;
                }
                trigger = position;
                numbers.push(row.get::<_, i64>(0)? as u64);
            }
            Ok((trigger, numbers))
        };
        read_cursor().map_err(|e| self.error(e))
    }

    /// Opens a case with its first alert, which the caller then adds, and returns its number.
    pub fn open(
        &self,
        alert: &RecordedAlert,
        key: &str,
        session_date: &str,
        group: &[u8; 32],
        now: i64,
    ) -> Result<u64, Error> {
        let sql = "INSERT INTO cases (scenario, key, session_date, group_id, state, alerts, seen_again, first_ts, last_ts, \
                   opened, changed) VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, ?6, ?6, ?7, ?7)";
        let alert = &alert.alert;
        let state = CaseState::New.name();
        let values = params![&*alert.scenario, key, session_date, group, state, alert.ts.0, now];
        let inserted =
            self.transaction.prepare_cached(sql).and_then(|mut statement| statement.insert(values));
        Ok(inserted.map_err(|e| self.error(e))? as u64)
    }

    /// Adds an alert to a case. Returns its number and digest.
    pub fn add_alert(
        &self,
        new: &NewAlert<'_>,
        state: CaseState,
        now: i64,
    ) -> Result<(u64, [u8; 32]), Error> {
        let add = || -> rusqlite::Result<(u64, [u8; 32])> {
            let id: i64 = self
                .transaction
                .prepare_cached("SELECT coalesce(max(id), 0) + 1 FROM alert")?
                .query_row([], |row| row.get(0))?;
            let alert = &new.recorded.alert;
            // In the order of the columns that the digest covers.
            let values = [
                id.into(),
                (new.case as i64).into(),
                new.identity.to_vec().into(),
                new.source.to_owned().into(),
                alert.scenario.clone().into_owned().into(),
                alert.ts.0.into(),
                (alert.trigger_seq as i64).into(),
                alert.position.map(|position| position.0 as i64).into(),
                new.key.to_owned().into(),
                alert.detail.to_string().into(),
                new.recorded.rule_version.clone().into(),
                new.recorded.params_hash.clone().into(),
                new.tape.into(),
                (new.position as i64).into(),
            ];
            let sql = format!(
                "INSERT INTO alert ({}, seen_again) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,0)",
                super::ALERT_COLUMNS
            );
            self.transaction.prepare_cached(&sql)?.execute(params_from_iter(&values))?;
            let sql = "UPDATE cases SET state = ?2, disposition = CASE WHEN ?2 = state THEN disposition END, alerts = alerts + 1, \
                       first_ts = min(first_ts, ?3), last_ts = max(last_ts, ?3), changed = ?4 WHERE id = ?1";
            let row = params![new.case as i64, state.name(), alert.ts.0, now];
            self.transaction.prepare_cached(sql)?.execute(row)?;
            for party in crate::parties_of(alert) {
                let sql = "INSERT OR IGNORE INTO party (name, case_id) VALUES (?1, ?2)";
                self.transaction.prepare_cached(sql)?.execute(params![party, new.case as i64])?;
            }
            Ok((id as u64, alert_digest(&values)))
        };
        add().map_err(|e| self.error(e))
    }

    /// Counts an alert that was read again, and returns the state of its case.
    pub fn count_again(&self, alert: u64, case: u64, now: i64) -> Result<CaseState, Error> {
        let count = || -> rusqlite::Result<CaseState> {
            let sql = "UPDATE alert SET seen_again = seen_again + 1 WHERE id = ?1";
            self.transaction.prepare_cached(sql)?.execute([alert as i64])?;
            let sql =
                "UPDATE cases SET seen_again = seen_again + 1, changed = ?2 WHERE id = ?1 RETURNING state";
            let mut statement = self.transaction.prepare_cached(sql)?;
            statement.query_row(params![case as i64, now], |row| super::read::state(row, 0))
        };
        count().map_err(|e| self.error(e))
    }

    /// Gives a case what an action has decided.
    pub fn update_case(&self, case: &Case) -> Result<(), Error> {
        let sql = "UPDATE cases SET state = ?2, disposition = ?3, assignee = ?4, changed = ?5 WHERE id = ?1";
        let disposition = case.disposition.map(Disposition::name);
        let values = params![case.id as i64, case.state.name(), disposition, case.assignee, case.changed];
        self.transaction.execute(sql, values).map(drop).map_err(|e| self.error(e))
    }

    /// Appends an action with its hash. Returns its number and hash.
    pub fn append_action(&mut self, action: &NewAction<'_>) -> Result<(u64, [u8; 32]), Error> {
        let number = self.store_head.actions + 1;
        let text = |text: Option<&str>| Value::from(text.map(str::to_owned));
        // In the order of the columns that the hash covers.
        let mut values = vec![
            (number as i64).into(),
            action.case.map(|case| case as i64).into(),
            action.ts.into(),
            text(action.actor.map(|actor| actor.user.as_str())),
            text(action.actor.map(|actor| actor.person.as_str())),
            text(action.actor.map(|actor| actor.role.name())),
            text(Some(action.kind.name())),
            text(action.state.map(CaseState::name)),
            text(action.assignee),
            text(action.disposition.map(Disposition::name)),
            text(action.text),
            action.alert.map(|alert| alert as i64).into(),
            action.alert_digest.map(|digest| digest.to_vec()).into(),
            text(action.session_date),
            action.tape.into(),
            action.position.map(|position| position as i64).into(),
            self.store_head.hash.to_vec().into(),
        ];
        let hash = hash_of_action(&values);
        values.push(hash.to_vec().into());
        let columns = super::ACTION_COLUMNS;
        let sql =
            format!("INSERT INTO action ({columns}, hash) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
        let inserted = self
            .transaction
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.execute(params_from_iter(&values)));
        match inserted.map_err(|e| self.error(e)) {
            Ok(_) => {
                self.store_head = StoreHead { actions: number, hash };
                Ok((number, hash))
            }
            Err(Error::Database { source, .. })
                if source.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
            {
                Err(self.damaged(format!("there is an action {number} after the last one")))
            }
            Err(e) => Err(e),
        }
    }

    /// Returns the row of an alert tape, and up to where it was read.
    pub fn tape_cursor(&self, tape: &str) -> Result<Option<(i64, AlertTapeCursor)>, Error> {
        super::read::tape_cursor(&self.transaction, tape).map_err(|e| self.error(e))
    }

    /// Adds an alert tape of which nothing was read, and returns its row.
    pub fn add_tape(&self, tape: &str, source: &str) -> Result<i64, Error> {
        let sql = "INSERT INTO tape (tape, source, position, passed_over) VALUES (?1, ?2, 0, 0)";
        self.transaction.prepare(sql).and_then(|mut s| s.insert([tape, source])).map_err(|e| self.error(e))
    }

    /// Returns the watched tape of the alerts that were read from an alert tape; none if there were none.
    pub fn source_of_alerts(&self, row: i64) -> Result<Option<String>, Error> {
        let sql = "SELECT alert.source FROM action JOIN alert ON alert.id = action.alert_id WHERE action.tape_id = ?1 LIMIT 1";
        let source = self.transaction.query_row(sql, [row], |row| row.get(0));
        source.optional().map_err(|e| self.error(e))
    }

    /// Stores up to where an alert tape was read.
    pub fn store_tape_cursor(&self, row: i64, cursor: &AlertTapeCursor) -> Result<(), Error> {
        let sql = "UPDATE tape SET position = ?2, last_position = ?3, last_digest = ?4, passed_over = ?5 WHERE id = ?1";
        let (last_position, last_digest) =
            cursor.last.map(|(position, digest)| (position as i64, digest)).unzip();
        let values =
            params![row, cursor.position as i64, last_position, last_digest, cursor.passed_over as i64];
        let stored = self.transaction.prepare_cached(sql).and_then(|mut s| s.execute(values));
        stored.map(drop).map_err(|e| self.error(e))
    }

    /// Makes the error of a database whose rows contradict each other.
    pub fn damaged(&self, reason: String) -> Error {
        Error::Damaged { path: self.database_path.to_owned(), reason }
    }

    fn error(&self, source: rusqlite::Error) -> Error {
        Error::from_database(self.database_path, source)
    }
}
