//! The audit: somebody who can write the database once changed a note without a trace.

use crate::sample::{DAY, NOON, Sample, alert, anna, bo, write_control};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use unitape_case::action::CaseCommand;
use unitape_case::audit::{AuditFinding, AuditProblem, verify};
use unitape_case::{CaseStore, Disposition};

/// The columns of an action, in the order in which the documentation names them for its hash.
const ACTION: &str = "id, case_id, ts, user, person, role, kind, state, assignee, disposition, text, alert_id, alert_digest, session_date, \
                      tape_id, position, prev, hash";

/// Two cases with some work on them, and a database that can be changed.
struct Worked {
    sample: Sample,
    database: Connection,
    store: CaseStore,
    actions: i64,
}

fn worked() -> Worked {
    let sample = Sample::new(&[
        alert("ACME", 1, NOON),
        alert("BETA", 2, NOON),
        alert("ACME", 3, NOON + 5),
        alert("GAMMA", 4, NOON + DAY),
    ]);
    write_control(&sample.alerts(), "blind", NOON);
    sample.ingest().unwrap();
    let close = |disposition| CaseCommand::Close { disposition, text: Some("both sides quoted".to_owned()) };
    sample.act(1, &anna(), CaseCommand::Assign { to: anna() }).unwrap();
    sample.act(2, &bo(), CaseCommand::Assign { to: bo() }).unwrap();
    sample.act(1, &anna(), CaseCommand::Note { text: "asked the desk".to_owned() }).unwrap();
    sample.act(1, &anna(), close(Some(Disposition::Explained))).unwrap();
    sample.act(1, &bo(), close(None)).unwrap();
    sample.act(2, &bo(), CaseCommand::Escalate { text: None }).unwrap();
    let database = sample.database();
    database
        .execute_batch(
            "PRAGMA synchronous = OFF; DROP TRIGGER action_is_never_changed; DROP TRIGGER action_is_never_removed;",
        )
        .unwrap();
    let actions = database.query_row("SELECT count(*) FROM action", [], |row| row.get(0)).unwrap();
    let store = sample.store();
    assert_eq!(verify(&store).unwrap().findings, []);
    Worked { sample, database, store, actions }
}

impl Worked {
    /// Changes the database, returns what the audit finds, and changes it back.
    fn findings_after(&self, change: impl FnOnce(&Connection)) -> Vec<AuditFinding> {
        let (path, kept) = (self.sample.cases().join("cases.db"), self.sample.dir.path().join("kept.db"));
        // A copy of all pages, taken by SQLite.
        _ = std::fs::remove_file(&kept);
        self.database.execute("VACUUM INTO ?1", [kept.to_str().unwrap()]).unwrap();
        change(&self.database);
        let findings = verify(&self.store).unwrap().findings;
        self.database.execute("ATTACH ?1 AS kept", [kept.to_str().unwrap()]).unwrap();
        for table in ["store", "tape", "cases", "party", "alert", "action"] {
            self.database
                .execute_batch(&format!(
                    "DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM kept.{table};"
                ))
                .unwrap();
        }
        self.database.execute_batch("DETACH kept").unwrap();
        assert!(path.exists());
        findings
    }

    fn set(&self, table: &str, row: i64, column: &str, value: &Value) {
        let sql = format!("UPDATE {table} SET {column} = ?1 WHERE id = ?2");
        assert_eq!(self.database.execute(&sql, params![value, row]).unwrap(), 1);
    }

    fn get(&self, table: &str, row: i64, column: &str) -> Value {
        let sql = format!("SELECT {column} FROM {table} WHERE id = ?1");
        self.database.query_row(&sql, [row], |row| row.get(0)).unwrap()
    }

    fn action(&self, row: i64) -> Vec<Value> {
        let sql = format!("SELECT {ACTION} FROM action WHERE id = ?1");
        self.database.query_row(&sql, [row], |row| (0..18).map(|n| row.get(n)).collect()).unwrap()
    }
}

fn insert(database: &Connection, columns: &[Value]) {
    let sql = format!("INSERT INTO action ({ACTION}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    database.execute(&sql, params_from_iter(columns)).unwrap();
}

/// Moves the rows from `from` on by one, as somebody who makes room would.
fn renumber(database: &Connection, from: i64, by: i64) {
    // Over other numbers: two rows never have one.
    database.execute("UPDATE action SET id = -id WHERE id >= ?1", [from]).unwrap();
    database.execute("UPDATE action SET id = -id + ?1 WHERE id < 0", [by]).unwrap();
}

fn problems(findings: &[AuditFinding]) -> Vec<(i64, AuditProblem)> {
    findings.iter().filter(|finding| finding.table == "action").map(|f| (f.row, f.problem)).collect()
}

/// The hash of an action, as the page draws it.
fn hash(columns: &[Value]) -> Vec<u8> {
    let mut bytes = b"unitape case action 1".to_vec();
    for column in &columns[1..17] {
        let (kind, field) = match column {
            Value::Null => (0, Vec::new()),
            Value::Integer(number) => (1, number.to_le_bytes().to_vec()),
            Value::Real(_) => unreachable!("no column is real"),
            Value::Text(text) => (3, text.clone().into_bytes()),
            Value::Blob(bytes) => (4, bytes.clone()),
        };
        bytes.push(kind);
        bytes.extend((field.len() as u64).to_le_bytes());
        bytes.extend(field);
    }
    let Value::Integer(number) = columns[0] else { panic!("a number") };
    let content = blake3::hash(&bytes);
    blake3::hash(&[&number.to_le_bytes()[..], content.as_bytes()].concat()).as_bytes().to_vec()
}

/// Another value of the same type.
fn changed(value: &Value, column: &str) -> Value {
    match value {
        Value::Null
            if ["case_id", "alert_id", "tape_id", "position", "trigger_position", "last_position"]
                .contains(&column) =>
        {
            Value::Integer(1)
        }
        Value::Null if ["alert_digest", "last_digest"].contains(&column) => Value::Blob(vec![1; 32]),
        Value::Null => Value::Text("x".to_owned()),
        Value::Integer(number) => Value::Integer(number + 1_000_000),
        Value::Text(text) => Value::Text(format!("{text}.")),
        Value::Blob(bytes) => {
            let mut bytes = bytes.clone();
            bytes[0] ^= 1;
            Value::Blob(bytes)
        }
        Value::Real(_) => unreachable!("no column is real"),
    }
}

#[test]
fn a_changed_field_names_its_row() {
    let worked = worked();
    for row in 1..=worked.actions {
        for column in ACTION.split(", ").skip(1) {
            let before = worked.get("action", row, column);
            worked.set("action", row, column, &changed(&before, column));
            let found = problems(&verify(&worked.store).unwrap().findings);
            worked.set("action", row, column, &before);
            assert!(found.contains(&(row, AuditProblem::Changed)), "row {row}, {column}: {found:?}");
            // The rows beside it are as they were.
            assert!(
                found.iter().all(|(of, _)| *of == row || found.contains(&(*of, AuditProblem::Forbidden))),
                "{found:?}"
            );
        }
    }
    assert_eq!(verify(&worked.store).unwrap().findings, []);
}

/// A hash of a row is only as good as the comparison of what the row was about.
#[test]
fn a_changed_alert_case_party_or_cursor_is_named() {
    let worked = worked();
    let alert = "case_id, identity, source, scenario, ts, trigger_seq, trigger_position, key, detail, rule_version, params_hash, \
                 tape_id, position, seen_again";
    let case = "scenario, key, session_date, group_id, disposition, assignee, alerts, seen_again, first_ts, last_ts, opened, changed, state";
    for (table, called, columns) in [("alert", "alert", alert), ("cases", "case", case)] {
        for row in 1..=3 {
            for column in columns.split(", ") {
                let before = worked.get(table, row, column);
                worked.set(table, row, column, &changed(&before, column));
                let findings = verify(&worked.store).unwrap().findings;
                worked.set(table, row, column, &before);
                let is_named =
                    |f: &AuditFinding| (f.table, f.row, f.problem) == (called, row, AuditProblem::Changed);
                assert!(findings.iter().any(is_named), "{table} {row}, {column}: {findings:?}");
            }
        }
    }
    for (sql, table, problem) in [
        ("DELETE FROM alert WHERE id = 2", "alert", AuditProblem::Removed),
        ("UPDATE alert SET id = 9 WHERE id = 2", "alert", AuditProblem::Inserted),
        ("DELETE FROM cases WHERE id = 2", "case", AuditProblem::Removed),
        ("UPDATE cases SET id = 9 WHERE id = 2", "case", AuditProblem::Inserted),
        (
            "UPDATE cases SET state = 'closed', disposition = 'breach' WHERE id = 3",
            "case",
            AuditProblem::Changed,
        ),
        ("DELETE FROM party WHERE name = 'BETA'", "party", AuditProblem::Removed),
        ("INSERT INTO party VALUES ('NOBODY', 1)", "party", AuditProblem::Inserted),
        ("UPDATE tape SET position = 0", "tape", AuditProblem::Changed),
        ("DELETE FROM tape", "tape", AuditProblem::Removed),
    ] {
        let findings = worked.findings_after(|database| assert!(database.execute(sql, []).unwrap() > 0));
        let is_named = |f: &AuditFinding| (f.table, f.problem) == (table, problem);
        assert!(findings.iter().any(is_named), "{sql}: {findings:?}");
    }
    assert_eq!(verify(&worked.store).unwrap().findings, []);
}

#[test]
fn removed_rows_and_a_cut_tail_are_named() {
    let worked = worked();
    let last = worked.actions;
    for row in 1..=last {
        let findings = worked.findings_after(|database| {
            database.execute("DELETE FROM action WHERE id = ?1", [row]).unwrap();
        });
        let problem = if row == last { AuditProblem::Cut } else { AuditProblem::Removed };
        let found: Vec<_> =
            problems(&findings).into_iter().filter(|(_, p)| *p != AuditProblem::Forbidden).collect();
        assert_eq!(found, [(row, problem)], "row {row}");
        // The rows after it close ranks.
        if row < last {
            let findings = worked.findings_after(|database| {
                database.execute("DELETE FROM action WHERE id = ?1", [row]).unwrap();
                renumber(database, row + 1, -1);
            });
            let found = problems(&findings);
            assert!(found.contains(&(row, AuditProblem::Removed)), "row {row}: {found:?}");
            for moved in row..last {
                assert!(found.contains(&(moved, AuditProblem::Moved)), "row {row}: {found:?}");
            }
        }
    }
    let cut = worked.findings_after(|database| {
        database.execute("DELETE FROM action WHERE id > ?1", [last - 3]).unwrap();
    });
    assert_eq!(problems(&cut), [(last - 2, AuditProblem::Cut)]);
    assert!(cut[0].detail.contains(&format!("rows {} to {last} are missing", last - 2)), "{cut:?}");
    // Who sets the head as well leaves cases that no action explains.
    let hidden = worked.findings_after(|database| {
        database.execute("DELETE FROM action WHERE id > ?1", [last - 2]).unwrap();
        let sql = "UPDATE store SET actions = ?1, head = (SELECT hash FROM action WHERE id = ?1)";
        database.execute(sql, [last - 2]).unwrap();
    });
    assert!(problems(&hidden).is_empty(), "{hidden:?}");
    let is_named = |f: &AuditFinding| f.table == "case" && f.detail.contains("`state` is `closed`");
    assert!(hidden.iter().any(is_named), "{hidden:?}");
}

/// Without the recorded end a cut tail would be the whole tail.
#[test]
fn a_changed_end_is_named_and_a_missing_one_is_damage() {
    let worked = worked();
    let last = worked.actions;
    for (sql, row, problem) in [
        ("UPDATE store SET head = zeroblob(32)", last, AuditProblem::Changed),
        ("UPDATE store SET actions = actions + 2", last + 1, AuditProblem::Cut),
        ("UPDATE store SET actions = actions - 1", last, AuditProblem::Inserted),
    ] {
        let findings = worked.findings_after(|database| assert_eq!(database.execute(sql, []).unwrap(), 1));
        let found = problems(&findings);
        assert!(found.contains(&(row, problem)), "{sql}: {found:?}");
    }
    for sql in ["DELETE FROM store", "UPDATE store SET head = x'00'", "DROP TABLE action"] {
        let worked = self::worked();
        worked.database.execute(sql, []).unwrap();
        let refused = verify(&worked.store).unwrap_err();
        assert!(refused.to_string().contains("damaged"), "{sql}: {refused}");
    }
}

#[test]
fn swapped_and_inserted_rows_are_named() {
    let worked = worked();
    for row in 1..worked.actions {
        let findings = worked.findings_after(|database| {
            for (from, to) in [(row, -1), (row + 1, row), (-1, row + 1)] {
                database.execute("UPDATE action SET id = ?2 WHERE id = ?1", [from, to]).unwrap();
            }
        });
        let found = problems(&findings);
        for moved in [row, row + 1] {
            assert!(found.contains(&(moved, AuditProblem::Moved)), "rows {row}: {found:?}");
        }
    }
    // A note that fits the row before it, in the middle and at the end.
    for row in [1, 5, worked.actions + 1] {
        let mut note = worked.action(8);
        note[0] = Value::Integer(row);
        note[10] = Value::Text("never written".to_owned());
        note[16] = if row == 1 { Value::Blob(vec![0; 32]) } else { worked.get("action", row - 1, "hash") };
        note[17] = Value::Blob(hash(&note));
        let findings = worked.findings_after(|database| {
            renumber(database, row, 1);
            insert(database, &note);
        });
        let found = problems(&findings);
        assert!(found.contains(&(row, AuditProblem::Inserted)), "row {row}: {found:?}");
        for moved in row + 1..=worked.actions + 1 {
            assert!(found.contains(&(moved, AuditProblem::Moved)), "row {row}: {found:?}");
        }
    }
    // A copy of a row, at the end.
    let mut copy = worked.action(8);
    copy[0] = Value::Integer(worked.actions + 1);
    let found = problems(&worked.findings_after(|database| insert(database, &copy)));
    assert!(found.contains(&(worked.actions + 1, AuditProblem::Inserted)), "{found:?}");
}

/// A changed row with a new hash is found by the row after it, or by the head.
#[test]
fn a_row_with_a_replaced_hash_is_named() {
    let worked = worked();
    for row in 1..=worked.actions {
        let mut columns = worked.action(row);
        assert_eq!(columns[17], Value::Blob(hash(&columns)), "the hash is not as it is drawn");
        columns[2] = Value::Integer(NOON);
        columns[17] = Value::Blob(hash(&columns));
        let findings = worked.findings_after(|database| {
            database.execute("DELETE FROM action WHERE id = ?1", [row]).unwrap();
            insert(database, &columns);
        });
        assert!(problems(&findings).contains(&(row, AuditProblem::Changed)), "row {row}: {findings:?}");
    }
}

/// A chain that somebody replaced as a whole holds; the rules that its actions break remain.
#[test]
fn an_action_that_breaks_a_rule_is_named_though_the_chain_holds() {
    let worked = worked();
    // `bo` closed what `anna` proposed: now it was `anna`, by another account.
    let findings_of = |person: &str| {
        worked.findings_after(|database| {
            let mut prev = vec![0; 32];
            for row in 1..=worked.actions {
                let mut columns = worked.action(row);
                if columns[6] == Value::Text("confirm_close".to_owned()) {
                    columns[3] = Value::Text("anna2".to_owned());
                    columns[4] = Value::Text(person.to_owned());
                }
                columns[16] = Value::Blob(prev);
                prev = hash(&columns);
                columns[17] = Value::Blob(prev.clone());
                database.execute("DELETE FROM action WHERE id = ?1", [row]).unwrap();
                insert(database, &columns);
            }
            database.execute("UPDATE store SET head = ?1", [prev]).unwrap();
        })
    };
    for person in ["Anna Berg", "anna  berg", "Anna Berg\u{200b}"] {
        let findings = findings_of(person);
        let found = problems(&findings);
        assert_eq!(found.len(), 1, "{findings:?}");
        assert_eq!(found[0].1, AuditProblem::Forbidden);
        assert!(findings[0].detail.contains("the person who closes"), "{findings:?}");
    }
}

/// SQLite itself keeps actions from being changed by mistake.
#[test]
fn actions_are_not_changed_by_mistake() {
    let sample = Sample::new(&[alert("ACME", 1, NOON)]);
    sample.ingest().unwrap();
    for sql in ["UPDATE action SET text = 'x'", "DELETE FROM action"] {
        let refused = sample.database().execute(sql, []).unwrap_err().to_string();
        assert!(refused.contains("an action is never"), "{refused}");
    }
}
