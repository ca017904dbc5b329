//! What the database is asked.

use super::CaseStore;
use super::write::AlertTapeCursor;
use crate::model::{ActionAuthor, ActionKind, AlertRecord, Disposition, StoredAlert};
use crate::{ActionRecord, Case, CaseState, Error};
use rusqlite::types::{Type, Value};
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use unitape_run::users::Role;
use unitape_watch::RecordedAlert;

/// Which cases are listed. Each filter that is given must fit.
#[derive(Clone, Debug, Default)]
pub struct CaseFilter {
    /// The state.
    pub state: Option<CaseState>,
    /// The scenario.
    pub scenario: Option<String>,
    /// The user who has the case.
    pub assignee: Option<String>,
    /// A party of the case: an owner, a trader, a group.
    pub party: Option<String>,
    /// The last case of the page before.
    pub after: Option<u64>,
    /// The most cases of a page; 100 if it is not given.
    pub limit: Option<u64>,
}

/// A page of a list of cases.
#[derive(Clone, Debug)]
pub struct CasePage {
    /// The cases, by their number.
    pub cases: Vec<Case>,
    /// The last case of this page, if another page follows.
    pub next: Option<u64>,
}

/// An alert tape that was ingested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertTapeRecord {
    /// The id of the alert tape.
    pub tape: String,
    /// The id of the tape that was watched.
    pub source: String,
    /// The position up to which it was read.
    pub position: u64,
    /// Events of other kinds that were passed over.
    pub passed_over: u64,
}

/// The end of the chain of actions, as the database states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreHead {
    pub actions: u64,
    pub hash: [u8; 32],
}

impl StoreHead {
    pub fn load(connection: &Connection) -> rusqlite::Result<Self> {
        connection
            .prepare_cached("SELECT actions, head FROM store")?
            .query_row([], |row| Ok(Self { actions: row.get::<_, i64>(0)? as u64, hash: row.get(1)? }))
    }
}

/// A row as it is, of whatever types.
pub(crate) type RawRow = Vec<Value>;

/// The columns of a case that its actions decide, as they are.
#[derive(Debug, PartialEq)]
pub(crate) struct RawCase {
    pub id: i64,
    /// In the order of [`CASE_COLUMNS`], then the group.
    pub columns: RawRow,
}

impl CaseStore {
    /// Returns a page of cases, by their number.
    ///
    /// # Errors
    /// Fails if the database cannot be read.
    pub fn cases(&self, filter: &CaseFilter) -> Result<CasePage, Error> {
        let mut sql = format!("SELECT {CASE_COLUMNS} FROM cases WHERE id > ?");
        let mut values: Vec<Value> = vec![(filter.after.unwrap_or(0).min(i64::MAX as u64) as i64).into()];
        let conditions = [
            (" AND state = ?", filter.state.map(|state| state.name().to_owned())),
            (" AND scenario = ?", filter.scenario.clone()),
            (" AND assignee = ?", filter.assignee.clone()),
            (" AND id IN (SELECT case_id FROM party WHERE name = ?)", filter.party.clone()),
        ];
        for (condition, value) in conditions {
            if let Some(value) = value {
                sql += condition;
                values.push(value.into());
            }
        }
        let limit = filter.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
        sql += " ORDER BY id LIMIT ?";
        values.push((limit as i64 + 1).into());
        let mut cases = self.rows(&sql, values, case_of_row)?;
        let has_more = cases.len() as u64 > limit;
        cases.truncate(limit as usize);
        let next_page = cases.last().filter(|_| has_more).map(|case| case.id);
        Ok(CasePage { cases, next: next_page })
    }

    /// Returns a case.
    ///
    /// # Errors
    /// Fails if there is no such case, or if the database cannot be read.
    pub fn case(&self, id: u64) -> Result<Case, Error> {
        let sql = format!("SELECT {CASE_COLUMNS} FROM cases WHERE id = ?1");
        let case = self.rows(&sql, vec![(id as i64).into()], case_of_row)?.pop();
        case.ok_or(Error::UnknownCase(id))
    }

    /// Returns the alerts of a case in the order of ingest, `limit` at most.
    ///
    /// # Errors
    /// Fails if the database cannot be read.
    pub fn alerts(&self, case: u64, limit: u64) -> Result<Vec<AlertRecord>, Error> {
        let sql = "SELECT id, case_id, source, scenario, ts, trigger_seq, trigger_position, key, detail, rule_version, \
                   params_hash, seen_again FROM alert WHERE case_id = ?1 ORDER BY id LIMIT ?2";
        let limit = limit.min(i64::MAX as u64) as i64;
        self.rows(sql, vec![(case as i64).into(), limit.into()], |row| {
            let alert = AlertRecord::alert_of(StoredAlert {
                scenario: row.get(3)?,
                ts: row.get(4)?,
                trigger_seq: row.get::<_, i64>(5)? as u64,
                trigger_position: row.get::<_, Option<i64>>(6)?.map(|position| position as u64),
                key: row.get(7)?,
                detail: row.get(8)?,
            });
            let source: String = row.get(2)?;
            let recorded = RecordedAlert {
                alert,
                source_tape: u128::from_str_radix(&source, 16).ok(),
                rule_version: row.get(9)?,
                params_hash: row.get(10)?,
            };
            Ok(AlertRecord {
                number: row.get::<_, i64>(0)? as u64,
                case: row.get::<_, i64>(1)? as u64,
                recorded,
                seen_again: row.get::<_, i64>(11)? as u64,
            })
        })
    }

    /// Returns the actions on a case, in their order.
    ///
    /// # Errors
    /// Fails if the database cannot be read.
    pub fn actions(&self, case: u64) -> Result<Vec<ActionRecord>, Error> {
        let sql = format!("SELECT {ACTION_RECORD} FROM action WHERE case_id = ?1 ORDER BY id");
        self.rows(&sql, vec![(case as i64).into()], action_of_row)
    }

    /// Returns the times at which a scenario was blind, as ingest has read them; of a session date if it is given.
    ///
    /// # Errors
    /// Fails if the database cannot be read.
    pub fn blind(&self, session_date: Option<&str>) -> Result<Vec<ActionRecord>, Error> {
        let sql = format!(
            "SELECT {ACTION_RECORD} FROM action WHERE kind = 'blind' AND (?1 IS NULL OR session_date = ?1) ORDER BY id"
        );
        self.rows(&sql, vec![session_date.map(str::to_owned).into()], action_of_row)
    }

    /// Returns the parties of a case.
    ///
    /// # Errors
    /// Fails if the database cannot be read.
    pub fn parties(&self, case: u64) -> Result<Vec<String>, Error> {
        parties(&self.connection, case).map_err(|e| self.error(e))
    }

    /// Returns the cases before this one that name one of its parties, the latest first, `limit` at most.
    ///
    /// # Errors
    /// Fails if the database cannot be read.
    pub fn earlier_cases(&self, case: u64, limit: u64) -> Result<Vec<Case>, Error> {
        let sql = format!(
            "SELECT {CASE_COLUMNS} FROM cases WHERE id < ?1 AND id IN (SELECT case_id FROM party WHERE name IN \
             (SELECT name FROM party WHERE case_id = ?1)) ORDER BY id DESC LIMIT ?2"
        );
        self.rows(&sql, vec![(case as i64).into(), (limit.min(PAGE_MAX) as i64).into()], case_of_row)
    }

    /// Returns the alert tapes that were ingested.
    ///
    /// # Errors
    /// Fails if the database cannot be read.
    pub fn alert_tapes(&self) -> Result<Vec<AlertTapeRecord>, Error> {
        self.rows("SELECT tape, source, position, passed_over FROM tape ORDER BY id", Vec::new(), |row| {
            Ok(AlertTapeRecord {
                tape: row.get(0)?,
                source: row.get(1)?,
                position: row.get::<_, i64>(2)? as u64,
                passed_over: row.get::<_, i64>(3)? as u64,
            })
        })
    }

    /// Returns the random id of this database, which names its cursors on tapes.
    pub(crate) fn id(&self) -> Result<[u8; 16], Error> {
        let id = self.connection.query_row("SELECT id FROM store", [], |row| row.get(0));
        id.map_err(|e| self.error(e))
    }

    pub(crate) fn head(&self) -> Result<StoreHead, Error> {
        StoreHead::load(&self.connection).map_err(|e| self.error(e))
    }

    /// Begins to read one state of the database, whatever others write meanwhile; ends with [`CaseStore::end_reading`].
    pub(crate) fn begin_reading(&self) -> Result<(), Error> {
        self.connection.execute_batch("BEGIN").map_err(|e| self.error(e))
    }

    /// Ends to read one state.
    pub(crate) fn end_reading(&self) -> Result<(), Error> {
        self.connection.execute_batch("ROLLBACK").map_err(|e| self.error(e))
    }

    /// Returns what SQLite finds wrong with the file.
    pub(crate) fn file_faults(&self) -> Result<Vec<String>, Error> {
        let mut faults =
            self.rows("PRAGMA integrity_check(20)", Vec::new(), |row| row.get::<_, String>(0))?;
        faults.retain(|fault| fault != "ok");
        Ok(faults)
    }

    /// Calls `take` with each action, in the order of their numbers: the columns of the hash, then the hash.
    pub(crate) fn for_each_action(&self, visit: impl FnMut(RawRow)) -> Result<(), Error> {
        self.for_each(&format!("SELECT {}, hash FROM action ORDER BY id", super::ACTION_COLUMNS), visit)
    }

    /// Calls `take` with each alert, in the order of their numbers: the columns of the digest, then how often it was read again.
    pub(crate) fn for_each_alert(&self, visit: impl FnMut(RawRow)) -> Result<(), Error> {
        self.for_each(&format!("SELECT {}, seen_again FROM alert ORDER BY id", super::ALERT_COLUMNS), visit)
    }

    /// Calls `take` with each case, in the order of their numbers.
    pub(crate) fn for_each_case(&self, mut visit: impl FnMut(RawCase)) -> Result<(), Error> {
        self.for_each(&format!("SELECT {CASE_COLUMNS}, group_id FROM cases ORDER BY id"), |columns| {
            let id = match columns[0] {
                Value::Integer(id) => id,
                _ => 0,
            };
            visit(RawCase { id, columns });
        })
    }

    /// Calls `take` with each party and its case.
    pub(crate) fn for_each_party(&self, visit: impl FnMut(RawRow)) -> Result<(), Error> {
        self.for_each("SELECT case_id, name FROM party ORDER BY case_id, name", visit)
    }

    /// Calls `take` with each alert tape: row, id, position.
    pub(crate) fn for_each_tape(&self, visit: impl FnMut(RawRow)) -> Result<(), Error> {
        self.for_each("SELECT id, tape, position FROM tape ORDER BY id", visit)
    }

    fn for_each(&self, sql: &str, mut visit: impl FnMut(RawRow)) -> Result<(), Error> {
        let mut read_case = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(sql)?;
            let columns = statement.column_count();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                visit((0..columns).map(|n| row.get(n)).collect::<rusqlite::Result<RawRow>>()?);
            }
            Ok(())
        };
        read_case().map_err(|e| self.error(e))
    }

    fn rows<T>(
        &self,
        sql: &str,
        values: Vec<Value>,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let rows = self.connection.prepare_cached(sql).and_then(|mut statement| {
            statement.query_map(params_from_iter(values), read)?.collect::<rusqlite::Result<Vec<T>>>()
        });
        rows.map_err(|e| self.error(e))
    }
}

pub(super) fn parties(connection: &Connection, case: u64) -> rusqlite::Result<Vec<String>> {
    let mut statement =
        connection.prepare_cached("SELECT name FROM party WHERE case_id = ?1 ORDER BY name")?;
    statement.query_map([case as i64], |row| row.get(0))?.collect()
}

pub(super) fn tape_cursor(
    connection: &Connection,
    tape: &str,
) -> rusqlite::Result<Option<(i64, AlertTapeCursor)>> {
    let sql = "SELECT id, position, last_position, last_digest, passed_over FROM tape WHERE tape = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let row = statement.query_row(params![tape], |row| {
        let last_position: Option<i64> = row.get(2)?;
        let last_digest: Option<[u8; 32]> = row.get(3)?;
        let cursor = AlertTapeCursor {
            position: row.get::<_, i64>(1)? as u64,
            last: last_position.map(|position| position as u64).zip(last_digest),
            passed_over: row.get::<_, i64>(4)? as u64,
        };
        Ok((row.get(0)?, cursor))
    });
    row.optional()
}

pub(super) fn case_of_row(row: &Row<'_>) -> rusqlite::Result<Case> {
    Ok(Case {
        id: row.get::<_, i64>(0)? as u64,
        scenario: row.get(1)?,
        key: row.get(2)?,
        session_date: row.get(3)?,
        state: state(row, 4)?,
        disposition: optional_word(row, 5, Disposition::from_name)?,
        assignee: row.get(6)?,
        alerts: row.get::<_, i64>(7)? as u64,
        seen_again: row.get::<_, i64>(8)? as u64,
        first_ts: row.get(9)?,
        last_ts: row.get(10)?,
        opened: row.get(11)?,
        changed: row.get(12)?,
    })
}

fn action_of_row(row: &Row<'_>) -> rusqlite::Result<ActionRecord> {
    let user: Option<String> = row.get(3)?;
    let author = match user {
        Some(user) => {
            Some(ActionAuthor { user, person: row.get(4)?, role: parse_word(row, 5, Role::from_name)? })
        }
        None => None,
    };
    Ok(ActionRecord {
        number: row.get::<_, i64>(0)? as u64,
        case: row.get::<_, Option<i64>>(1)?.map(|case| case as u64),
        ts: row.get(2)?,
        author,
        kind: parse_word(row, 6, ActionKind::from_name)?,
        state: optional_word(row, 7, CaseState::from_name)?,
        assignee: row.get(8)?,
        disposition: optional_word(row, 9, Disposition::from_name)?,
        text: row.get(10)?,
        alert: row.get::<_, Option<i64>>(11)?.map(|alert| alert as u64),
        hash: row.get(12)?,
    })
}

pub(super) fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<CaseState> {
    parse_word(row, column, CaseState::from_name)
}

fn parse_word<T>(row: &Row<'_>, column: usize, parse: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| {
        let reason = format!("`{text}` is no word of this column");
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, reason.into())
    })
}

fn optional_word<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl Fn(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    match row.get::<_, Option<String>>(column)? {
        Some(_) => parse_word(row, column, parse).map(Some),
        None => Ok(None),
    }
}

/// The columns of a case, in the order of [`case_of_row`].
pub(super) const CASE_COLUMNS: &str = "id, scenario, key, session_date, state, disposition, assignee, alerts, seen_again, first_ts, \
                                       last_ts, opened, changed";

/// The columns of [`action_of_row`], in its order.
const ACTION_RECORD: &str =
    "id, case_id, ts, user, person, role, kind, state, assignee, disposition, text, alert_id, hash";

const PAGE: u64 = 100;
const PAGE_MAX: u64 = 10_000;
