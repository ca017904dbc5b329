//! The keys of a configuration and their values.

use super::*;

/// The page once listed a key that had been renamed. Each row of its tables is a key here, and the other way round, with the
/// default that is in force.
#[test]
fn the_guide_tells_every_key() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/config.md"));
    let page = page.unwrap();
    let row = |l: &str| {
        let cells: Vec<_> = l.strip_prefix("| `")?.split(" | ").map(str::to_owned).collect();
        let key = cells[0].trim_end_matches('`').to_owned();
        let known = ["tape.", "run.", "feed.", "reference.", "monitor."].iter().any(|s| key.starts_with(s));
        known.then(|| (key, cells[1].clone()))
    };
    let documented: std::collections::BTreeMap<_, _> = page.lines().filter_map(row).collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    let text = "[tape]\ndir = \"t\"\nretain_bytes = 1\nretain_age = \"1h\"\nretain_days = 1\nretain_hold_bytes = 1\n[run]\njournal = \"j\"\ncalendar = \"k\"\nclock = \"1s\"\n[[feed]]\nname = \"n\"\nformat = \"events\"\n\
                mapping = \"m\"\nfiles = [\"f\"]\ndirectory = \"d\"\nfifo = \"p\"\nlisten = \"l\"\nconnect = \"c\"\n\
                udp = \"239.0.0.1:1\"\ninterface = \"127.0.0.1\"\n\
                interface_b = \"lo\"\nday_begins = \"01:00\"\nwait = \"1s\"\n\
                [[reference]]\nfile = \"m\"\nmapping = \"events\"\n\
                [monitor]\nlisten = \"127.0.0.1:0\"\nsilent = \"1min\"\n";
    std::fs::write(&file, text).unwrap();
    let loaded: LayeredConfig<RunConfig> = load(&file, [], &[]).unwrap();
    let shown = crate::layered::list_effective(&loaded.value, &loaded.origins);
    let keys: std::collections::BTreeMap<_, _> = shown
        .into_iter()
        .map(|s| {
            let default = matches!(s.origin, crate::layered::ValueOrigin::Default);
            let value = if default { format!("`{}`", s.value) } else { "–".to_owned() };
            (s.key.replace("feed.n.", "feed.").replace("reference.0.", "reference."), value)
        })
        .collect();
    assert_eq!(documented, keys);
}

/// A mistake in a calendar was found when the first session ended.
#[test]
fn a_calendar_is_checked_before_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    let text = "[tape]\ndir = \"t\"\n[run]\ncalendar = \"days.csv\"\n[[feed]]\nname = \"n\"\nformat = \"events\"\nstdin = true\n";
    std::fs::write(&file, text).unwrap();
    let prepared = || {
        let loaded = read(&file, &[]).unwrap();
        let prepared = crate::PreparedRun::new(loaded.value, &loaded.origins, &mut |_| {});
        prepared.map_err(|e| {
            assert_eq!(e.cause(), unitape_model::ErrorCause::Outside, "{e}");
            e.to_string().replace(&format!("{}/", dir.path().display()), "")
        })
    };
    let missing = prepared().unwrap_err();
    assert!(missing.starts_with("c.toml:4: run.calendar: days.csv: No such file"), "{missing}");
    let header = "what,key,date,time,zone,value\n";
    for (lines, says) in [
        ("venue,XCME,,17:00,America/Gotham,\n", "days.csv:2: no time zone `America/Gotham`"),
        ("\nhalf,XLON,2026-12-24,12:30,,\npair,EURUSD,,17:00,UTC,12\n", "days.csv:4: `12` is no lag"),
    ] {
        std::fs::write(dir.path().join("days.csv"), format!("{header}{lines}")).unwrap();
        let said = prepared().unwrap_err();
        assert!(said.starts_with(&format!("c.toml:4: run.calendar: {says}")), "{said}");
    }
    std::fs::write(dir.path().join("days.csv"), b"\xff\xfe").unwrap();
    assert_eq!(prepared().unwrap_err(), "c.toml:4: run.calendar: days.csv: is not text in UTF-8");
    std::fs::write(dir.path().join("days.csv"), format!("{header}venue,XCME,,17:00,America/Chicago,\n"))
        .unwrap();
    let calendar = prepared().unwrap().calendar.unwrap();
    assert_eq!(calendar.zone_name("XCME"), "America/Chicago");
}

/// An interval of nothing would write ticks without end, and one of a week none.
#[test]
fn a_clock_that_cannot_be_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    let prepared = |run: &str, feed: &str| {
        let text = format!("[tape]\ndir = \"t\"\n[run]\n{run}\n[[feed]]\nformat = \"events\"\n{feed}\n");
        std::fs::write(&file, text).unwrap();
        let loaded =
            read(&file, &[]).map_err(|e| e.to_string().replace(&format!("{}/", dir.path().display()), ""))?;
        let mut notes = Vec::new();
        let prepared =
            crate::PreparedRun::new(loaded.value, &loaded.origins, &mut |note| notes.push(note.to_owned()));
        let names: Vec<String> = prepared.unwrap().feeds.into_iter().map(|feed| feed.name).collect();
        Ok::<_, String>((names, notes))
    };
    let live = "name = \"a\"\nstdin = true";
    for (run, says) in [
        ("clock = \"0s\"", "run.clock: 1ms to 1d"),
        ("clock = \"8d\"", "run.clock: 1ms to 1d"),
        ("clock = \"soon\"", "run.clock: `soon` is no span of time"),
        ("clock = 1", "run.clock: invalid type: integer `1`"),
        ("clock = \"1s\"\nsegments = \"apart\"", "run.clock: goes with segments = \"together\""),
    ] {
        let said = prepared(run, live).unwrap_err();
        assert!(said.starts_with(&format!("c.toml:4: {says}")), "{said}");
    }
    let said = prepared("clock = \"1s\"", "name = \"clock\"\nstdin = true").unwrap_err();
    assert!(said.starts_with("c.toml:4: run.clock: writes the ticks of a feed `clock`"), "{said}");

    let (names, notes) = prepared("clock = \"1s\"", live).unwrap();
    assert_eq!((names, notes), (vec!["a".to_owned(), "clock".to_owned()], vec![]));
    let (names, notes) = prepared("clock = \"1s\"", "name = \"a\"\nfiles = [\"f\"]").unwrap();
    assert_eq!(names, ["a"]);
    assert_eq!(notes, ["run.clock: all feeds are files, and there are no ticks beside these"]);
}
