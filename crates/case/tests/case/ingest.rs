//! Ingest: an alert that came twice made two cases, or was lost where the process was killed.

use crate::sample::{DAY, NOON, Sample, alert, alert_of, anna, bo, make_tape, write_alerts, write_control};
use rusqlite::types::Value;
use unitape_case::action::CaseCommand;
use unitape_case::ingest::{IngestEnd, IngestTotals};
use unitape_case::{ActionKind, CaseFilter, Disposition, Error, audit};
use unitape_model::{ErrorCause, Position};
use unitape_tape::{Cursor, Reader, StartPosition, TapeId, TapeManifest, Writer, WriterOptions};
use unitape_watch::{Alert, ScenarioSelection};

/// Every row of every table that ingest writes.
fn rows(sample: &Sample) -> Vec<Vec<Value>> {
    let database = sample.database();
    let mut rows = Vec::new();
    for table in ["tape", "cases", "party", "alert", "action"] {
        let mut statement = database.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
        let columns = statement.column_count();
        let of_row = |row: &rusqlite::Row<'_>| (0..columns).map(|n| row.get(n)).collect();
        rows.extend(statement.query_map([], of_row).unwrap().map(Result::unwrap));
    }
    rows
}

fn refusal(sample: &Sample) -> String {
    sample.ingest().unwrap_err().to_string()
}

#[test]
fn alerts_of_one_scenario_key_and_session_date_are_one_case() {
    let other = [("trader", "T-ACME")];
    let sample = Sample::new(&[
        alert("ACME", 1, NOON),
        alert("ACME", 2, NOON + 9),
        alert("BETA", 3, NOON + 10),
        alert("ACME", 4, NOON + DAY),
        alert_of("order_to_trade_ratio", &other, 5, NOON),
    ]);
    let totals = sample.ingest().unwrap().totals;
    assert_eq!(totals, IngestTotals { alerts: 5, cases: 4, ..IngestTotals::default() });
    let short = [(1, "new", 2, 0), (2, "new", 1, 0), (3, "new", 1, 0), (4, "new", 1, 0)];
    assert_eq!(sample.cases_in_short(), short);
    let store = sample.store();
    let case = store.case(1).unwrap();
    assert_eq!((case.first_ts, case.last_ts, case.session_date.as_str()), (NOON, NOON + 9, "2026-03-02"));
    assert_eq!(store.alerts(1, 9).unwrap().len(), 2);
    assert_eq!(store.alerts(1, 9).unwrap()[1].recorded.alert, alert("ACME", 2, NOON + 9));
    // Of the same party before it.
    let earlier: Vec<u64> = store.earlier_cases(3, 9).unwrap().iter().map(|case| case.id).collect();
    assert_eq!(earlier, [1]);
    assert_eq!(store.parties(4).unwrap(), ["T-ACME"]);
    // Nothing comes twice.
    assert_eq!(sample.ingest().unwrap().totals, IngestTotals::default());
    assert_eq!(sample.cases_in_short(), short);
}

#[test]
fn pages_follow_each_other_and_filters_must_all_fit() {
    let owners: Vec<String> = (0..7).map(|n| format!("OWNER-{}", n % 2)).collect();
    let alerts: Vec<Alert> =
        owners.iter().zip(0..).map(|(owner, n)| alert(owner, n, NOON + n as i64 * DAY)).collect();
    let sample = Sample::new(&alerts);
    sample.ingest().unwrap();
    let store = sample.store();
    let (mut filter, mut pages) = (CaseFilter { limit: Some(3), ..CaseFilter::default() }, Vec::new());
    loop {
        let page = store.cases(&filter).unwrap();
        pages.push(page.cases.iter().map(|case| case.id).collect::<Vec<_>>());
        match page.next {
            Some(next) => filter.after = Some(next),
            None => break,
        }
    }
    assert_eq!(pages, [vec![1, 2, 3], vec![4, 5, 6], vec![7]]);
    let ids =
        |filter: CaseFilter| store.cases(&filter).unwrap().cases.iter().map(|c| c.id).collect::<Vec<_>>();
    let party = Some("OWNER-1".to_owned());
    assert_eq!(ids(CaseFilter { party: party.clone(), ..CaseFilter::default() }), [2, 4, 6]);
    let scenario = Some("wash_trade".to_owned());
    assert!(ids(CaseFilter { party: party.clone(), scenario, ..CaseFilter::default() }).is_empty());
    sample.act(4, &anna(), CaseCommand::Assign { to: bo() }).unwrap();
    assert_eq!(ids(CaseFilter { party, assignee: Some("bo".to_owned()), ..CaseFilter::default() }), [4]);
    assert_eq!(
        ids(CaseFilter {
            state: Some(unitape_case::CaseState::New),
            limit: Some(2),
            ..CaseFilter::default()
        }),
        [1, 2]
    );
}

/// A replay under other parameters has another tape id, and raises alerts that are there.
#[test]
fn an_alert_that_other_parameters_raise_again_is_seen_again() {
    let sample = Sample::new(&[alert("ACME", 1, NOON), alert("ACME", 2, NOON)]);
    sample.ingest().unwrap();
    let selection = ScenarioSelection::of(&["spoofing"]);
    let replayed = sample.dir.path().join("replayed");
    let again = [alert("ACME", 2, NOON), alert("ACME", 3, NOON)];
    write_alerts(&replayed, TapeId(7), &selection, &again);
    let totals = sample.ingest_from(&replayed).unwrap().totals;
    assert_eq!(totals, IngestTotals { alerts: 1, seen_again: 1, ..IngestTotals::default() });
    assert_eq!(sample.cases_in_short(), [(1, "new", 3, 1)]);
    let store = sample.store();
    assert_eq!(store.alerts(1, 9).unwrap()[1].seen_again, 1);
    let actions = store.actions(1).unwrap();
    assert_eq!(actions[2].kind, ActionKind::SeenAgain);
    assert!(actions[2].text.as_ref().unwrap().contains("params_hash"));
    assert!(audit::verify(&store).unwrap().is_intact());
}

/// A debit can complete the alerts of several credits to one account: the second one was counted as seen again.
#[test]
fn alerts_of_one_event_with_one_key_are_all_stored() {
    let mut alerts: Vec<Alert> = (1..=254).map(|n| alert(&format!("OWNER-{n}"), n, NOON)).collect();
    alerts.extend((0..4).map(|_| alert("ACME", 300, NOON)));
    let (whole, parts) = (Sample::new(&alerts), Sample::new(&alerts));
    let totals = whole.ingest().unwrap().totals;
    assert_eq!((totals.alerts, totals.cases, totals.seen_again), (258, 255, 0));
    // The first transaction ends between two of the four.
    while parts.ingest_until(&parts.alerts(), IngestEnd::Now).unwrap().totals.alerts > 0 {}
    assert_eq!(rows(&whole), rows(&parts));
    let replayed = whole.dir.path().join("replayed");
    let again: Vec<Alert> = (0..5).map(|_| alert("ACME", 300, NOON)).collect();
    write_alerts(&replayed, TapeId(7), &ScenarioSelection::of(&["spoofing"]), &again);
    let totals = whole.ingest_from(&replayed).unwrap().totals;
    assert_eq!((totals.alerts, totals.cases, totals.seen_again), (1, 0, 4));
    assert!(audit::verify(&whole.store()).unwrap().is_intact());
}

#[test]
fn an_alert_after_the_close_opens_the_next_case_and_one_before_it_withdraws_the_proposal() {
    let sample = Sample::new(&[alert("ACME", 1, NOON)]);
    sample.ingest().unwrap();
    let close = || CaseCommand::Close { disposition: Some(Disposition::Explained), text: None };
    sample.act(1, &anna(), CaseCommand::Assign { to: anna() }).unwrap();
    sample.act(1, &anna(), close()).unwrap();
    sample.write_alerts(&sample.alerts(), &[alert("ACME", 1, NOON), alert("ACME", 2, NOON)]);
    sample.ingest().unwrap();
    assert_eq!(sample.cases_in_short(), [(1, "investigating", 2, 0)]);
    assert_eq!(sample.store().case(1).unwrap().disposition, None);
    sample.act(1, &bo(), close()).unwrap();
    sample.act(1, &anna(), close()).unwrap();
    sample.write_alerts(
        &sample.alerts(),
        &[alert("ACME", 1, NOON), alert("ACME", 2, NOON), alert("ACME", 3, NOON)],
    );
    sample.ingest().unwrap();
    assert_eq!(sample.cases_in_short(), [(1, "closed", 2, 0), (2, "new", 1, 0)]);
    // There cannot be two open cases of one key.
    let refused =
        sample.act(1, &bo(), CaseCommand::Reopen { text: "again".to_owned() }).unwrap_err().to_string();
    assert!(refused.contains("in case 2, which is open"), "{refused}");
    assert!(audit::verify(&sample.store()).unwrap().is_intact());
}

#[test]
fn a_control_blind_is_kept_and_others_are_counted() {
    let sample = Sample::new(&[alert("ACME", 1, NOON)]);
    write_control(&sample.alerts(), "blind", NOON + DAY);
    write_control(&sample.alerts(), "halt", NOON);
    let totals = sample.ingest().unwrap().totals;
    assert_eq!(
        totals,
        IngestTotals { alerts: 1, cases: 1, blind: 1, passed_over: 1, ..IngestTotals::default() }
    );
    let store = sample.store();
    assert!(store.blind(Some("2026-03-02")).unwrap().is_empty());
    let blind = store.blind(Some("2026-03-03")).unwrap();
    assert!(blind[0].text.as_ref().unwrap().contains(r#""action":"blind""#), "{blind:?}");
    assert_eq!((blind[0].case, blind[0].kind), (None, ActionKind::Blind));
    assert_eq!(store.alert_tapes().unwrap()[0].passed_over, 1);
    assert!(audit::verify(&store).unwrap().is_intact());
}

/// Ingest that ends after a transaction, and continues later, must leave the rows of one that never ended: the hashes show it.
#[test]
fn ingest_in_parts_leaves_the_rows_of_ingest_in_one() {
    let alerts: Vec<Alert> =
        (0..600).map(|n| alert(&format!("OWNER-{}", n % 11), n, NOON + n as i64)).collect();
    let whole = Sample::new(&alerts);
    whole.ingest().unwrap();
    let parts = Sample::new(&alerts);
    let mut calls = 0;
    while parts.ingest_until(&parts.alerts(), IngestEnd::Now).unwrap().totals.alerts > 0 {
        calls += 1;
    }
    assert!(calls > 1, "one transaction took all");
    assert_eq!(rows(&whole), rows(&parts));
    assert_eq!(rows(&whole).len(), 1 + 11 + 11 + 600 + 600);
    // The cursor of the alert tape is where the database is.
    let cursors = std::fs::read_dir(whole.alerts().join("run/cursors")).unwrap();
    let names: Vec<String> = cursors.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.len() == 1 && names[0].starts_with("case-"), "{names:?}");
    let cursor = unitape_tape::Cursor::open(&whole.alerts(), &names[0]).unwrap();
    let mut reader = Reader::open(&whole.alerts(), StartPosition::End).unwrap();
    assert!(reader.next().unwrap().is_none());
    assert_eq!(cursor.load().unwrap(), Some(reader.position()));
}

#[test]
fn an_alert_of_another_tape_is_refused_with_both_ids() {
    let sample = Sample::new(&[]);
    write_alerts(
        &sample.dir.path().join("other"),
        TapeId(8),
        &ScenarioSelection::default(),
        &[alert("ACME", 1, NOON)],
    );
    let refused = sample.ingest_from(&sample.dir.path().join("other")).unwrap_err().to_string();
    let (mine, theirs) = (TapeId(7).to_string(), TapeId(8).to_string());
    assert!(refused.contains(&mine) && refused.contains(&theirs), "{refused}");
    assert!(sample.cases_in_short().is_empty());
}

/// What comes before something that cannot be used was lost with it, in each call again.
/// A tape with nothing new once passed for that of another source.
#[test]
fn another_source_is_refused_though_nothing_is_new() {
    let sample = Sample::new(&[alert("ACME", 1, NOON)]);
    sample.ingest().unwrap();
    // All that this one raises is seen again.
    let again = sample.dir.path().join("again");
    let selection = ScenarioSelection::of(&["spoofing"]);
    write_alerts(&again, TapeId(7), &selection, &[alert("ACME", 1, NOON)]);
    sample.ingest_from(&again).unwrap();
    std::fs::remove_dir_all(sample.source()).unwrap();
    make_tape(&sample.source(), TapeId(8));
    for dir in [sample.alerts(), again] {
        let refused = sample.ingest_from(&dir).unwrap_err();
        assert_eq!(refused.cause(), ErrorCause::Data);
        let text = refused.to_string();
        assert!(text.contains(&TapeId(7).to_string()) && text.contains(&TapeId(8).to_string()), "{text}");
    }
}

/// A cursor that stays behind holds retention, and shows a lag that is none.
#[test]
fn a_cursor_that_a_kill_left_behind_catches_up_though_nothing_is_new() {
    let sample = Sample::new(&[alert("ACME", 1, NOON), alert("ACME", 2, NOON)]);
    sample.ingest().unwrap();
    let names = Cursor::names(&sample.alerts()).unwrap();
    let name = names.iter().find(|name| name.starts_with("case-")).unwrap();
    let cursor = || Cursor::open(&sample.alerts(), name).unwrap();
    let end = cursor().load_point().unwrap();
    assert!(end.is_some_and(|point| point.position > Position(0)));
    for behind in [Position(0), Position(64)] {
        cursor().store(behind).unwrap();
        sample.ingest().unwrap();
        assert_eq!(cursor().load_point().unwrap(), end);
    }
}

#[test]
fn alerts_before_one_of_another_tape_are_stored() {
    let sample = Sample::new(&[alert("ACME", 1, NOON), alert("BETA", 2, NOON)]);
    let id = TapeManifest::load(&sample.alerts()).unwrap().id;
    let other = sample.dir.path().join("other");
    write_alerts(&other, TapeId(8), &ScenarioSelection::default(), &[alert("ACME", 3, NOON)]);
    // Its frames, definitions included, behind those of the first tape.
    let mut frames = Vec::new();
    let mut reader = Reader::open(&other, StartPosition::Oldest).unwrap();
    while let Some(frame) = reader.next().unwrap() {
        if !frame.header.is_meta() {
            frames.extend_from_slice(frame.bytes);
        }
    }
    let (mut writer, _) = Writer::open(&sample.alerts(), id, WriterOptions::default()).unwrap();
    writer.append(&frames).unwrap();
    writer.close().unwrap();
    for _ in 0..2 {
        assert!(refusal(&sample).contains(&TapeId(8).to_string()));
        assert_eq!(sample.cases_in_short(), [(1, "new", 1, 0), (2, "new", 1, 0)]);
    }
    assert!(audit::verify(&sample.store()).unwrap().is_intact());
}

/// The watch of the next day of one configuration has the same id.
#[test]
fn another_tape_of_the_same_id_is_refused() {
    let sample = Sample::new(&[alert("ACME", 1, NOON)]);
    sample.ingest().unwrap();
    std::fs::rename(sample.alerts(), sample.dir.path().join("monday")).unwrap();
    sample.write_alerts(&sample.alerts(), &[alert("BETA", 9, NOON + DAY), alert("BETA", 10, NOON + DAY)]);
    let refused = refusal(&sample);
    assert!(refused.contains("two days of one configuration have one id"), "{refused}");
    // A tape that was derived again is the same one.
    std::fs::remove_dir_all(sample.alerts()).unwrap();
    sample.write_alerts(&sample.alerts(), &[alert("ACME", 1, NOON), alert("ACME", 2, NOON)]);
    assert_eq!(sample.ingest().unwrap().totals.alerts, 1);
}

#[test]
fn a_tape_that_was_cut_back_behind_what_was_read_is_refused() {
    let sample = Sample::new(&[alert("ACME", 1, NOON), alert("ACME", 2, NOON)]);
    sample.ingest().unwrap();
    std::fs::remove_dir_all(sample.alerts()).unwrap();
    sample.write_alerts(&sample.alerts(), &[alert("ACME", 1, NOON)]);
    let refused = refusal(&sample);
    assert!(refused.contains("it was cut back, or is another tape of this id"), "{refused}");
    assert_eq!(sample.cases_in_short(), [(1, "new", 2, 0)]);
}

/// SQLite believes its index: a closed case in the index of open cases comes back as open, and its next alert was once a panic.
#[test]
fn a_closed_case_in_the_index_of_open_cases_is_damage() {
    let sample = Sample::new(&[alert("ACME", 1, NOON)]);
    sample.ingest().unwrap();
    let change = "PRAGMA writable_schema = ON;
        DROP INDEX one_open_case;
        CREATE UNIQUE INDEX one_open_case ON cases (group_id);
        UPDATE cases SET state = 'closed';
        UPDATE sqlite_schema SET sql = sql || ' WHERE state <> ''closed''' WHERE name = 'one_open_case';";
    sample.database().execute_batch(change).unwrap();
    sample.write_alerts(&sample.alerts(), &[alert("ACME", 1, NOON), alert("ACME", 2, NOON)]);
    let refused = sample.ingest().unwrap_err();
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
    assert!(
        refused.to_string().contains("case 1 is closed, and the index of open cases has it"),
        "{refused}"
    );
    assert_eq!(sample.cases_in_short(), [(1, "closed", 1, 0)]);
}

#[test]
fn tapes_that_are_gone_and_frames_that_are_no_alerts_are_named() {
    let sample = Sample::new(&[]);
    let refused = sample.ingest_from(&sample.dir.path().join("none")).unwrap_err().to_string();
    assert!(refused.contains("none"), "{refused}");
    // A tape that has no alert at all.
    assert_eq!(sample.ingest_from(&sample.source()).unwrap().totals, IngestTotals::default());
    let id = TapeManifest::load(&sample.alerts()).unwrap().id;
    assert_eq!(sample.store().alert_tapes().unwrap().len(), 1);
    assert_ne!(id, TapeId(7));
    let (writer, _) = Writer::open(&sample.alerts(), id, WriterOptions::default()).unwrap();
    drop(writer);
    make_tape(&sample.dir.path().join("empty"), TapeId(9));
    assert_eq!(sample.ingest_from(&sample.dir.path().join("empty")).unwrap().totals, IngestTotals::default());
}

/// Ingest looked through all actions for alerts of a tape of which nothing was read. If it found one, the first alert was stored
/// again as another alert of the same event.
#[test]
fn actions_do_not_count_for_a_tape_of_which_nothing_was_read() {
    let sample = Sample::new(&[alert("ACME", 1, NOON)]);
    assert_eq!(sample.ingest().unwrap().totals.alerts, 1);
    let unread = "UPDATE tape SET position = 0, last_position = NULL, last_digest = NULL";
    sample.database().execute(unread, []).unwrap();
    let totals = sample.ingest().unwrap().totals;
    assert_eq!(totals, IngestTotals { seen_again: 1, ..IngestTotals::default() });
}
