use super::*;
use crate::Format;
use crate::reference::{ReferenceIdentity, day_of, day_of_date};
use proptest::prelude::*;
use std::path::PathBuf;
use unitape_model::UnixNanos;

fn day(text: &str) -> DayNumber {
    day_of_date(text).unwrap_or_else(|| panic!("{text}"))
}

/// `valid_to = 9999-12-31` is how most masters say "still", and lies beyond nanoseconds of 64 bits.
#[test]
fn dates_are_days() {
    for (text, days) in [
        ("1970-01-01", 0),
        ("1969-12-31", -1),
        ("19700102", 1),
        ("2000-03-01", 11_017),
        ("2024-02-29", 19_782),
        ("2026-01-05", 20_458),
        ("99991231", 2_932_896),
        ("0001-01-01", -719_162),
    ] {
        assert_eq!(day_of_date(text), Some(days), "{text}");
    }
    for text in [
        "",
        "2026-02-29",
        "1900-02-29",
        "2026-13-01",
        "2026-00-10",
        "2026-04-31",
        "2026-1-05",
        "+2026-01",
        "20260105Z",
    ] {
        assert_eq!(day_of_date(text), None, "{text}");
    }
    let midnight = i64::from(day("2026-01-05")) * 86_400_000_000_000;
    let of = |ts| day_of(UnixNanos(ts));
    assert_eq!((of(midnight - 1), of(midnight)), (day("2026-01-04"), day("2026-01-05")));
    assert_eq!((of(-1), of(i64::MIN)), (-1, -106_752));
}

/// A master of events as JSON Lines, `ts` and `kind` added.
fn master(dir: &tempfile::TempDir, entries: &[&str]) -> PathBuf {
    let path = dir.path().join("master.jsonl");
    let lines = entries.iter().map(|e| format!("{{\"ts\":0,\"kind\":\"ref\",{e}}}\n"));
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    path
}

fn loaded(entries: &[&str]) -> Result<InstrumentMaster, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = master(&dir, entries);
    let mut loader = MasterLoader::default();
    let message = |e: crate::Error| e.to_string().replace(&format!("{}/", dir.path().display()), "");
    loader.add(&path, &Format::events()).map_err(message)?;
    loader.finish().map_err(message)
}

/// Each of these would put two instruments under one id, or one under two, and nobody would see where it came from.
#[test]
fn what_cannot_be_names_file_and_offset() {
    let good = r#""instr":"A","isin":"US1""#;
    let cases: &[(&[&str], &str)] = &[
        (&[good, r#""symbol":"X""#], "reference data master.jsonl: at byte 47: 34 bytes cannot be read"),
        (&[good, r#""symbol":"X""#], "missing: missing in instr: instr is missing"),
        (&[good, r#""instr":"B","tick":"1e400""#], "at byte 47: "),
        (
            &[good, r#""instr":"B","isin":"US1""#],
            "at byte 47: `US1` is B here and A in master.jsonl, byte 0 on the same day; end one of them",
        ),
        (
            &[
                r#""instr":"A","mic":"XNYS","symbol":"SUN","valid_to":"2012-10-05""#,
                r#""instr":"B","mic":"XNYS","symbol":"SUN","valid_from":"20121005""#,
            ],
            "`SUN` on XNYS is B here and A in master.jsonl, byte 0",
        ),
        (
            &[good, r#""instr":"B","valid_from":"2026-01-05","valid_to":"2026-01-04""#],
            "at byte 47: valid_to 2026-01-04 is before valid_from 2026-01-05",
        ),
        (&[good, r#""instr":"B","valid_to":"tomorrow""#], "at byte 47: valid_to: `tomorrow` is no date"),
        (&[good, r#""instr":"B","isin":["US1"]"#], "at byte 47: isin: [\"US1\"] is no text"),
        (&[], "at byte 0: no entry: the mapping makes no `ref` event of it"),
    ];
    for (entries, says) in cases {
        let got = loaded(entries).map(|r| format!("{r:?}")).unwrap_or_else(|e| e);
        assert!(got.contains(says), "{got}\nshould say: {says}");
    }
    let mut loader = MasterLoader::default();
    for (option, says) in [
        ("master.txt", "--reference master.txt: FILE:MAPPING is needed"),
        ("master.txt:", "FILE:MAPPING is needed"),
        ("master.txt:nope", "neither a shipped mapping"),
        ("-:events", "a master is a file"),
        ("there-is-none:events", "there-is-none: at byte 0"),
    ] {
        let got = loader.add_option(option).unwrap_err().to_string();
        assert!(got.contains(says), "{got}\nshould say: {says}");
    }
    assert!(loader.is_empty());
}

/// A symbol that is used again, a share on two venues, and a name that is nobody's.
#[test]
fn a_name_means_what_it_meant_on_that_day() {
    let reference = loaded(&[
        r#""instr":"OLD","isin":"US1","mic":"XNYS","symbol":"SUN","valid_to":"2012-10-05""#,
        r#""instr":"NEW","isin":"US2","figi":"BBG2","mic":"XNYS","symbol":"SUN","valid_from":"2014-08-01","valid_to":"""#,
        r#""instr":"NEW","mic":"XLON","symbol":"0SUN","valid_from":20140801"#,
        r#""instr":"BARE","symbol":"SUN""#,
    ])
    .unwrap();
    let find = |venue: &str, name: &str, date: &str| {
        let venue = Some(venue.as_bytes()).filter(|v| !v.is_empty());
        reference.find(venue, name.as_bytes(), day(date)).unwrap_or("-")
    };
    for (venue, name, date, is) in [
        ("XNYS", "SUN", "2012-10-05", "OLD"),
        ("XNYS", "SUN", "2012-10-06", "-"),
        ("XNYS", "SUN", "2014-07-31", "-"),
        ("XNYS", "SUN", "2014-08-01", "NEW"),
        ("XLON", "0SUN", "2026-01-01", "NEW"),
        ("XLON", "SUN", "2026-01-01", "-"),
        ("", "SUN", "2026-01-01", "-"),
        ("XNYS", "BBG2", "2026-01-01", "NEW"),
        ("XPAR", "US2", "2026-01-01", "NEW"),
        ("", "US1", "2026-01-01", "-"),
        ("", "NEW", "2026-01-01", "NEW"),
        ("", "NEW", "2010-01-01", "-"),
        ("XNYS", "BARE", "2010-01-01", "BARE"),
    ] {
        assert_eq!(find(venue, name, date), is, "{venue} {name} {date}");
    }
    assert_eq!(reference.instruments(), 3);
}

#[test]
fn definitions_tell_reference_data() {
    let reference = loaded(&[r#""instr":"A""#]).unwrap();
    let identity = format!("fix44-orders@0123456789abcdef{}", reference.identity());
    assert!(
        identity.starts_with("fix44-orders@0123456789abcdef+master.jsonl@") && identity.ends_with(":events"),
        "{identity}"
    );
    let got = ReferenceIdentity::from_mapping_name(&identity).unwrap();
    assert!(!got.rejects_unknown && got.files.starts_with("master.jsonl@"), "{got:?}");
    let events = format!("events{}", reference.with_strictness(true).identity());
    assert!(ReferenceIdentity::from_mapping_name(&events).unwrap().rejects_unknown);
    for none in ["", "events", "fix44-orders@0123456789abcdef", "a+b@0123456789abcdef", "a+b"] {
        assert_eq!(ReferenceIdentity::from_mapping_name(none), None, "{none}");
    }
}

/// An entry of the property below: name, venue, symbol, ISIN and days as small numbers.
type Entry = (u8, u8, u8, u8, (i32, i32));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// The table against a look at every entry; where two entries give one notation to two instruments on one day the
    /// table must have said so.
    #[test]
    fn it_finds_what_a_look_at_every_entry_finds(
        entries in proptest::collection::vec((0u8..3, 0u8..3, 0u8..3, 0u8..4, (10i32..20, 0i32..6)), 1..8),
    ) {
        let date = |day: i32| format!("2026-01-{day:02}");
        let line = |(instr, mic, symbol, isin, (from, days)): &Entry| {
            format!(
                r#""instr":"I{instr}","mic":"M{mic}","symbol":"S{symbol}","isin":"N{isin}","valid_from":"{}","valid_to":"{}""#,
                date(*from), date(from + days)
            )
        };
        let lines: Vec<String> = entries.iter().map(line).collect();
        let reference = loaded(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let mut conflict = false;
        for on in 9..27 {
            for (venue, name) in (0..3).flat_map(|m| (0..3).map(move |s| (Some(format!("M{m}")), format!("S{s}"))))
                .chain((0..4).map(|n| (None, format!("N{n}")))).chain((0..3).map(|i| (None, format!("I{i}"))))
            {
                let means: std::collections::BTreeSet<String> = entries
                    .iter()
                    .filter(|(.., (from, days))| (*from..=from + days).contains(&on))
                    .filter(|(instr, mic, symbol, isin, _)| match &venue {
                        Some(v) => *v == format!("M{mic}") && name == format!("S{symbol}"),
                        None => name == format!("N{isin}") || name == format!("I{instr}"),
                    })
                    .map(|e| format!("I{}", e.0))
                    .collect();
                conflict |= means.len() > 1;
                if let (Ok(reference), true) = (&reference, means.len() < 2) {
                    let got = reference.find(venue.as_deref().map(str::as_bytes), name.as_bytes(), day(&date(on)));
                    prop_assert_eq!(got, means.first().map(String::as_str), "{:?} {} {}", venue, name, on);
                }
            }
        }
        prop_assert_eq!(reference.is_err(), conflict, "{:?}", reference);
    }
}
