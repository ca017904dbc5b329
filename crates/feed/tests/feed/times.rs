//! Times of every form onto the tape. Risks: a local hour that comes twice is placed an hour early, by one worker and not
//! by another, or after a restart; a form that one format reads and another refuses.

use crate::common::{assert_same, events, run, run_in_parts};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use unitape_feed::{FileFeed, Format, Mapping, feed_of_option, quarantine};

const RULES: &str = "[[rule]]\nwhen = { '@record' = 'row' }\n[[rule.event]]\nkind = 'ref_px'\nfields = { instr = { const = 'A' }, px = 'px' }\n\
    [[rule]]\nignore = true\n";

/// A feed of one file by a layout and the `[message]` of its mapping.
fn laid_out(dir: &Path, format: &str, layout: &str, message: &str, input: &str) -> FileFeed {
    let put = |name: &str, text: &str| -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    put("layout.toml", &format!("name = 'own'\n{layout}"));
    let mapping =
        format!("name = 'own'\nformat = '{format}'\nlayout = 'layout.toml'\n[message]\n{message}\n{RULES}");
    let (mapping, file) = (put("own.toml", &mapping), put("in_2026-03-02.txt", input));
    feed_of_option(&format!("own={format}:{}:{}", mapping.display(), file.display())).unwrap()
}

/// Event times, and reasons of what was refused.
fn outcome(feed: &FileFeed) -> (Vec<i64>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let tape = dir.path().join("tape");
    run(&tape, std::slice::from_ref(feed), 2, 4096);
    times_of(&tape)
}

fn times_of(tape: &Path) -> (Vec<i64>, Vec<String>) {
    let is_event = |e: &Value| e["kind"] == "ref_px";
    let times = events(tape).into_iter().filter(is_event).map(|e| e["ts"].as_i64().unwrap()).collect();
    let refused = quarantine::list(tape).unwrap().into_iter().map(|e| format!("{}: {}", e.reason, e.detail));
    (times, refused.collect())
}

fn csv(layout: &str, message: &str, input: &str) -> (Vec<i64>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    outcome(&laid_out(dir.path(), "csv", layout, message, input))
}

const HALF_PAST_TWO: i64 = 1_772_461_800_000_000_000;

/// Milliseconds in one year's files and microseconds in the next.
#[test]
fn a_mapping_reads_a_column_of_any_type_as_a_time() {
    let int = "column = [{ name = 't', type = 'int' }, { name = 'px', type = 'decimal' }]";
    for (layout, message, input) in [
        (int, "ts = 't@ms'", "t,px\n1772461800000,1\n"),
        (int, "ts = 't@us'", "t,px\n1772461800000000,1\n"),
        ("", "ts = 't@s'", "t,px\n1772461800.000000,1\n"),
        ("", "ts = 't@epoch_ns'", "t,px\n1772461800000000000,1\n"),
        ("", "ts = 't@iso'", "t,px\n2026-03-02 15:30+01:00,1\n"),
        ("zone = 'America/New_York'", "ts = 't@D MMM YYYY H:MM AM'", "t,px\n2 march 2026 9:30 am,1\n"),
        ("zone = 'America/New_York'", "ts = 't@midnight_s'", "t,px\n34200,1\n"),
        ("header = false\ncolumn = [{ name = 't' }, { name = 'px' }]", "ts = 't@ms'", "1772461800000,1\n"),
        (
            "column = [{ name = 't', none = ['NA'] }]",
            "ts = 't@ms'\nts_or = 'u@ms'",
            "u,t,px\n1772461800000,,1\n",
        ),
    ] {
        assert_eq!(csv(layout, message, input), (vec![HALF_PAST_TWO], vec![]), "{message}");
    }
    // What the mapping reads as a time is not kept a second time.
    let dir = tempfile::tempdir().unwrap();
    let feed = laid_out(dir.path(), "csv", "", "ts = 't@ms'", "t,px,more\n1772461800000,1,x\n");
    let tape = dir.path().join("tape");
    run(&tape, &[feed], 1, 4096);
    let event = events(&tape).remove(0);
    assert_eq!((event.get("t"), event.get("more").and_then(Value::as_str)), (None, Some("x")), "{event}");
}

#[test]
fn records_of_fixed_width_have_the_same_forms() {
    let dir = tempfile::tempdir().unwrap();
    let layout = "terminator = 'newline'\nzone = 'America/New_York'\n[[record]]\nname = 'row'\ncolumn = [\n\
        { name = 't', length = 24, type = 'timestamp', form = ['DD-MMM-YYYY HH:MM:SS.fff', 'iso', '@ms'] },\n\
        { name = 'u', length = 13 }, { name = 'px', length = 3, type = 'decimal' }]";
    let mut input = String::new();
    for t in ["02-MAR-2026 09:30:00", "02-Mar-2026 09:30:00.000", "2026-03-02T14:30:00Z", "1772461800000"] {
        writeln!(input, "{t:<24}1772461800000  1").unwrap();
    }
    writeln!(input, "{:<24}1772461800000  1", "30-Feb-2026 09:30:00").unwrap();
    writeln!(input, "{:<24}177246180000x  1", "1772461800000").unwrap();
    let (times, refused) = outcome(&laid_out(dir.path(), "fixed", layout, "ts = 't'", &input));
    assert_eq!(times, [HALF_PAST_TWO; 5]);
    let why = "bad_time: column t at byte 1: \"30-Feb-2026 09:30:00    \" has a day that the calendar does not have";
    assert_eq!(refused, [why]);
    let (times, refused) = outcome(&laid_out(dir.path(), "fixed", layout, "ts = 'u@ms'", &input));
    assert_eq!(times, [HALF_PAST_TWO; 4]);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(
        refused[1].contains("column u@ms at byte 25: \"177246180000x\" does not have the form `ms`"),
        "{refused:?}"
    );
}

/// Rows each second around the change of 1 November 2026 in New York, and the moments that they mean.
fn autumn() -> (String, Vec<i64>) {
    let (mut rows, mut moments) = ("t,px\n".to_owned(), Vec::new());
    // Clocks go back at 06:00 UTC.
    let (change, second) = (1_793_512_800i64, 1_000_000_000);
    for utc in (change - 4000..change + 4000).step_by(3) {
        let local = utc - if utc < change { 4 } else { 5 } * 3600;
        let of_day = local.rem_euclid(86_400);
        let (hour, minute, s) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        writeln!(rows, "2026-11-01 {hour:02}:{minute:02}:{s:02},1").unwrap();
        moments.push(utc * second);
    }
    (rows, moments)
}

/// The same tape at any number of workers, any cut and after any stop: the order is that of the source.
#[test]
fn the_hour_that_comes_twice_is_told_by_order() {
    let dir = tempfile::tempdir().unwrap();
    let column = "{ name = 't', type = 'timestamp', form = 'YYYY-MM-DD HH:MM:SS' }";
    let layout = format!("zone = 'America/New_York'\nambiguous = 'by-order'\ncolumn = [{column}]");
    let (rows, moments) = autumn();
    let feeds = [laid_out(dir.path(), "csv", &layout, "ts = 't'", &rows)];
    let one = dir.path().join("one");
    run(&one, &feeds, 1, 1 << 20);
    assert_eq!(times_of(&one), (moments.clone(), vec![]));
    for (workers, block_bytes) in [(1, 97), (2, 3000), (4, 701)] {
        let other = dir.path().join(format!("{workers}-{block_bytes}"));
        run(&other, &feeds, workers, block_bytes);
        assert_same(&one, &other, &format!("{workers} workers, blocks of {block_bytes}"));
    }
    let parts = dir.path().join("parts");
    run_in_parts(&parts, &feeds, 2, 500, 300);
    assert_eq!(times_of(&parts), (moments, vec![]));
}

#[test]
fn a_mapping_may_say_which_of_two_moments_is_meant() {
    let layout = "zone = 'America/New_York'\ncolumn = [{ name = 't', type = 'timestamp', form = 'iso' }]";
    let rows = "t,px\n2026-11-01 00:59,1\n2026-11-01 01:30,1\n2026-11-01 01:30-05:00,1\n2026-03-08 02:30,1\n";
    let minutes = |from: i64, minutes: i64| from + minutes * 60_000_000_000;
    let (november, march) = (1_793_491_200_000_000_000, 1_772_928_000_000_000_000);
    let (before, own) = (minutes(november, 299), minutes(november, 390));
    let (times, refused) = csv(layout, "ts = 't'", rows);
    assert_eq!(times, [before, own]);
    assert!(
        refused[0].starts_with("ambiguous_time: column t: \"2026-11-01 01:30\" occurs twice"),
        "{refused:?}"
    );
    assert!(
        refused[1].starts_with("skipped_time: column t: \"2026-03-08 02:30\" never occurs"),
        "{refused:?}"
    );
    for (word, november_minutes, march_minutes) in [("first", 330, 390), ("second", 390, 450)] {
        let (times, refused) = csv(layout, &format!("ts = 't'\nambiguous = '{word}'"), rows);
        let mut wanted = [before, minutes(november, november_minutes), own, minutes(march, march_minutes)];
        let mut times = times;
        times.sort_unstable();
        wanted.sort_unstable();
        assert_eq!((&times[..], refused.len()), (&wanted[..], 0), "{word}");
    }
    let (times, refused) = csv(layout, "ts = 't'\nambiguous = 'by-order'", rows);
    assert_eq!((times.len(), refused.len()), (3, 1), "{refused:?}");
    // A file that begins within the hour does not say it.
    let (times, refused) =
        csv(layout, "ts = 't'\nambiguous = 'by-order'", "t,px\n2026-11-01 01:30,1\n2026-11-01 01:20,1\n");
    assert_eq!(times, [] as [i64; 0]);
    assert!(refused.iter().all(|r| r.starts_with("unordered_time: ")), "{refused:?}");
}

/// A feed of JSON Lines with these keys of `[message]`.
fn jsonl(message: &str, lines: &str) -> Result<(Vec<i64>, Vec<String>), String> {
    let rules =
        "[[rule]]\n[[rule.event]]\nkind = 'ref_px'\nfields = { instr = { const = 'A' }, px = 'px' }\n";
    let text = format!("name = 'own'\nformat = 'jsonl'\n[message]\n{message}\n{rules}");
    let mapping = Mapping::parse(&text, "own.toml").map_err(|e| e.to_string())?;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in");
    std::fs::write(&file, lines).unwrap();
    let format = Format::from_mapping(mapping).map_err(|e| e.to_string())?;
    Ok(outcome(&FileFeed { name: "own".to_owned(), format, files: vec![file] }))
}

#[test]
fn json_lines_have_the_same_forms() {
    for (message, value) in [
        ("ts = 't'", "\"2026-03-02T14:30:00Z\""),
        ("ts = 't'", "\"2026-03-02 15:30:00+0100\""),
        ("ts = 't'", "\"2026-03-02T15:30+01\""),
        ("ts = 't'", "\"Mon, 2 Mar 2026 14:30:00 +0000\""),
        ("ts = 't'\nzone = 'America/New_York'", "\"2026-03-02 09:30:00\""),
        ("ts = 't'\nzone = 'America/New_York'", "\"2026-03-02T14:30:00Z\""),
        ("ts = 't@DD-MMM-YYYY HH:MM'", "\"02-MAR-2026 14:30\""),
        ("ts = 't@M/D/YYYY H:MM:SS AM'\nzone = 'America/New_York'", "\"3/2/2026 9:30:00 AM\""),
        ("ts = 't@DD.MM.YYYY HH:MM:SS'", "\"02.03.2026 16:30:00.000 GMT+0200\""),
        ("ts = 't@ms'", "1772461800000"),
        ("ts = 't@ms'", "1.7724618e12"),
    ] {
        let got = jsonl(message, &format!("{{\"t\":{value},\"px\":1}}\n"));
        let is_extra = value.contains(".000 GMT");
        // A fraction that the form does not have is refused in each format.
        match got.unwrap() {
            (times, refused) if is_extra => assert!(times.is_empty() && refused.len() == 1, "{refused:?}"),
            got => assert_eq!(got, (vec![HALF_PAST_TWO], vec![]), "{message} {value}"),
        }
    }
    for (message, value, why) in [
        ("ts = 't'", "\"2026-02-30T14:30:00Z\"", "it has a day that the calendar does not have"),
        ("ts = 't'", "\"2026-03-02T14:30:00+99:00\"", "it has an offset from UTC of more than 14 hours"),
        ("ts = 't@ms'", "99999999999999999", "it is outside 1677 to 2262"),
        ("ts = 't@ms'", "1e1000000000", "its exponent is beyond 400"),
        ("ts = 't@DD-MMM-YYYY HH:MM'", "\"02-03-2026 14:30\"", "it does not have this form"),
        ("ts = 't'\nzone = 'America/New_York'", "\"2026-11-01T01:30:00\"", "it occurs twice"),
    ] {
        let lines = format!("{{\"t\":{value},\"px\":1}}\n{{\"t\":{value},\"px\":2}}\n");
        let (times, refused) = jsonl(message, &lines).unwrap();
        assert_eq!((times.len(), refused.len()), (0, 2), "{message} {value}");
        assert!(refused[0].starts_with("bad_time: event time: ") && refused[0].contains(why), "{refused:?}");
    }
    for (message, why) in [
        ("ts = 't@DD-BBB-YYYY'", "`DD-BBB-YYYY` is no form of a date or time; near it are `DD-MMM-YYYY`"),
        ("ts = 't'\nzone = 'Mars'", "no time zone `Mars`"),
        ("ts = 't'\nambiguous = 'by-order'", "by-order is for csv and fixed"),
    ] {
        let error = jsonl(message, "").unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_mapping_with_a_form_that_is_none_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |layout: &str, message: &str| {
        let put = |name: &str, text: String| std::fs::write(dir.path().join(name), text).unwrap();
        put("layout.toml", format!("name = 'own'\n{layout}"));
        put(
            "own.toml",
            format!("name = 'own'\nformat = 'csv'\nlayout = 'layout.toml'\n[message]\n{message}\n{RULES}"),
        );
        Mapping::load(&dir.path().join("own.toml").display().to_string()).unwrap_err().to_string()
    };
    let column = "column = [{ name = 't', type = 'int' }]";
    for (layout, message, why) in [
        (column, "ts = 't@millisec'", "`millisec` is no form of a date or time; near it are `"),
        (
            column,
            "ts = 't@YYYY-MM-DD HH:MM'",
            "`YYYY-MM-DD HH:MM` is of local times: the layout needs a `zone`",
        ),
        (column, "ts = 't@ms'\nzone = 'UTC'", "message.zone is for jsonl, mail and newsxml"),
        (column, "ts = 't@ms'\nambiguous = 'maybe'", "message.ambiguous: refuse, first, second or by-order"),
        ("ambiguous = 'maybe'", "ts = 't@ms'", "ambiguous: refuse, first, second or by-order"),
    ] {
        let error = refused(layout, message);
        assert!(error.contains(why), "{error}");
    }
}

/// Blocks behind the first one know the header and the separator from the start of the file.
#[test]
fn lines_before_the_header_do_not_depend_on_where_blocks_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = String::new();
    for i in 0..300 {
        writeln!(rows, "{};\"a\nb\";{i}e-2", 1_772_461_800_000i64 + i).unwrap();
    }
    let column = "column = [{ name = 'px' }]";
    for (layout, head) in [
        ("skip = 3\nseparator = 'semicolon'".to_owned(), "Account;1\n\n\"open\nt;note;px\n"),
        (format!("header = 'find'\n{column}"), "sep=;\npx;1\n\"Period: \"last\" year\"\n\nt;note;px\n"),
        (
            "header = false\ncolumn = [{ name = 't' }, { name = 'note' }, { name = 'px' }]".to_owned(),
            "sep=;\n",
        ),
    ] {
        let feeds = [laid_out(dir.path(), "csv", &layout, "ts = 't@ms'", &format!("{head}{rows}"))];
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let s = run(&one.path().join("t"), &feeds, 1, 1 << 20).summary;
        assert_eq!(
            (s.quarantined, s.events),
            (0, 300),
            "{layout}: {:?}",
            times_of(&one.path().join("t")).1.first()
        );
        run(&other.path().join("t"), &feeds, 3, 331);
        assert_same(&one.path().join("t"), &other.path().join("t"), &layout);
        assert_eq!(events(&one.path().join("t"))[7]["px"], "0.07");
    }
}
