//! The tables of `cases.db`.
//!
//! ```text
//!  store ── the id, the number of actions and the hash of the last one
//!  tape ─── an alert tape: up to where it was read        action ── every change, each row with the hash of the row before
//!  alert ── its case, its identity                        cases ─── the sum of the actions on each case, with an index a filter
//!                                                         party ─── the parties of each case
//! ```

use rusqlite::{Connection, TransactionBehavior};

/// Says that a database is one of cases: `UCAS`.
pub(crate) const APPLICATION_ID: i64 = 0x5543_4153;

/// The version of the tables.
pub(crate) const FORMAT: i64 = 1;

/// Makes the tables in an empty database.
pub(crate) fn create(connection: &mut Connection, id: &[u8; 16]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.execute(
        "INSERT INTO store (one, id, actions, head) VALUES (1, ?1, 0, ?2)",
        rusqlite::params![id, [0u8; 32]],
    )?;
    transaction.commit()
}

/// Returns whose database this is.
pub(crate) fn application_id(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA application_id", [], |row| row.get(0))
}

/// Returns the version of its tables.
pub(crate) fn format(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// The columns that the hash of an action covers, in its order.
pub(crate) const ACTION_COLUMNS: &str = "id, case_id, ts, user, person, role, kind, state, assignee, disposition, text, alert_id, \
                                         alert_digest, session_date, tape_id, position, prev";

/// The columns that the digest of an alert covers, in its order.
pub(crate) const ALERT_COLUMNS: &str = "id, case_id, identity, source, scenario, ts, trigger_seq, trigger_position, key, detail, \
                                        rule_version, params_hash, tape_id, position";

const TABLES: &str = "
CREATE TABLE store (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id BLOB NOT NULL,
    actions INTEGER NOT NULL,
    head BLOB NOT NULL
) STRICT;

CREATE TABLE tape (
    id INTEGER PRIMARY KEY,
    tape TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    position INTEGER NOT NULL,
    last_position INTEGER,
    last_digest BLOB,
    passed_over INTEGER NOT NULL
) STRICT;

CREATE TABLE cases (
    id INTEGER PRIMARY KEY,
    scenario TEXT NOT NULL,
    key TEXT NOT NULL,
    session_date TEXT NOT NULL,
    group_id BLOB NOT NULL,
    state TEXT NOT NULL,
    disposition TEXT,
    assignee TEXT,
    alerts INTEGER NOT NULL,
    seen_again INTEGER NOT NULL,
    first_ts INTEGER NOT NULL,
    last_ts INTEGER NOT NULL,
    opened INTEGER NOT NULL,
    changed INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX one_open_case ON cases (group_id) WHERE state <> 'closed';
CREATE INDEX cases_by_state ON cases (state, id);
CREATE INDEX cases_by_scenario ON cases (scenario, id);
CREATE INDEX cases_by_assignee ON cases (assignee, id);

CREATE TABLE party (
    name TEXT NOT NULL,
    case_id INTEGER NOT NULL,
    PRIMARY KEY (name, case_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX parties_of_case ON party (case_id);

CREATE TABLE alert (
    id INTEGER PRIMARY KEY,
    case_id INTEGER NOT NULL,
    identity BLOB NOT NULL UNIQUE,
    source TEXT NOT NULL,
    scenario TEXT NOT NULL,
    ts INTEGER NOT NULL,
    trigger_seq INTEGER NOT NULL,
    trigger_position INTEGER,
    key TEXT NOT NULL,
    detail TEXT NOT NULL,
    rule_version TEXT,
    params_hash TEXT,
    tape_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    seen_again INTEGER NOT NULL
) STRICT;
CREATE INDEX alerts_of_case ON alert (case_id, id);

CREATE TABLE action (
    id INTEGER PRIMARY KEY,
    case_id INTEGER,
    ts INTEGER NOT NULL,
    user TEXT,
    person TEXT,
    role TEXT,
    kind TEXT NOT NULL,
    state TEXT,
    assignee TEXT,
    disposition TEXT,
    text TEXT,
    alert_id INTEGER,
    alert_digest BLOB,
    session_date TEXT,
    tape_id INTEGER,
    position INTEGER,
    prev BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE INDEX actions_of_case ON action (case_id, id);
CREATE INDEX blind_actions ON action (id) WHERE kind = 'blind';
CREATE TRIGGER action_is_never_changed BEFORE UPDATE ON action
    BEGIN SELECT RAISE(ABORT, 'an action is never changed'); END;
CREATE TRIGGER action_is_never_removed BEFORE DELETE ON action
    BEGIN SELECT RAISE(ABORT, 'an action is never removed'); END;
";
