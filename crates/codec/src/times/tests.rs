//! Forms of every kind, values that have them, and values that have not.

use super::calendar::{DAY_NANOS, days};
use super::zone::{AmbiguousTimes, CachedTimeZone, LocalTimeFault};
use super::{TimeFault, TimeForm, TimeFormKind, TimeFormOptions, since_1970};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000_000;

fn form_of(texts: &[&str], pivot: Option<i64>) -> TimeForm {
    let texts: Vec<String> = texts.iter().map(|t| (*t).to_owned()).collect();
    let kinds = [TimeFormKind::Both, TimeFormKind::Time, TimeFormKind::Date];
    let forms = kinds.iter().map(|kind| TimeForm::parse(&texts, *kind, TimeFormOptions { pivot }));
    let mut faults = Vec::new();
    for form in forms {
        match form {
            Ok(form) => return form,
            Err(what) => faults.push(what),
        }
    }
    panic!("{texts:?}: {faults:?}");
}

/// Nanoseconds since 1970 of a value, local ones as if of UTC.
fn read(form: &str, text: &str) -> Result<i64, TimeFault> {
    let read = form_of(&[form], Some(1970)).read(text.as_bytes())?;
    let east = i64::from(read.offset.unwrap_or(0));
    Ok(i64::from(read.days) * DAY_NANOS + read.nanos - east * SECOND)
}

/// Each form reads its value as this moment: `YYYY-MM-DDTHH:MM:SS` and nanoseconds.
fn check(form: &str, text: &str, wanted: &str) {
    let plain = unitape_base::date::time(wanted.as_bytes()).unwrap_or_else(|| panic!("{wanted}"));
    assert_eq!(read(form, text), Ok(plain), "{form}: {text}");
}

#[test]
fn forms() {
    for (form, text, wanted) in [
        ("HHMMSSfff", "093109362", "1970-01-01T09:31:09.362"),
        ("HHMM", "2359", "1970-01-01T23:59:00"),
        ("HHMMSS", "235960", "1970-01-01T23:59:60"),
        ("YYYY-MM-DD HH:MM:SS.fff", "2016-12-31 23:59:60.5", "2017-01-01T00:00:00.5"),
        ("iso", "2017-01-01T05:29:60+05:30", "2017-01-01T00:00:00"),
        ("hhmmss", "093109", "1970-01-01T09:31:09"),
        ("MMDDYYYY", "02062014", "2014-02-06"),
        ("YYMMDD", "140206", "2014-02-06"),
        ("YYMMDD", "700206", "1970-02-06"),
        ("YYYYDDD", "2014037", "2014-02-06"),
        ("YYYY-MM-DD HH:MM", "2014-02-06 23:59", "2014-02-06T23:59:00"),
        ("yyyy-MM-dd HH:mm:ss", "2014-02-06 23:59:58", "2014-02-06T23:59:58"),
        ("yyyy-MM-dd HH:mm:ss.SSS", "2014-02-06 23:59:58.250", "2014-02-06T23:59:58.250"),
        ("YYYYMMDDHHMMSS", "20140206000001", "2014-02-06T00:00:01"),
        ("HH:MM MM/DD/YYYY", "14:30 03/02/2026", "2026-03-02T14:30:00"),
        ("M/D/YYYY H:MM", "3/2/2026 9:05", "2026-03-02T09:05:00"),
        ("M/D/YYYY H:MM", "12/31/2026 19:05", "2026-12-31T19:05:00"),
    ] {
        check(form, text, wanted);
    }
    for (form, text, fault) in [
        ("HHMMSS", "240000", TimeFault::Hour),
        ("HHMMSS", "236000", TimeFault::Minute),
        ("HHMMSS", "235961", TimeFault::Second),
        ("HHMMSS", "143060", TimeFault::Second),
        ("HHMMSS", "23595", TimeFault::Form),
        ("HHMMSS", "2359599", TimeFault::Form),
        ("HH:MM:SS", "23-59-59", TimeFault::Form),
        ("HH:MM:SS", "24:00:00", TimeFault::Hour),
        ("YYYYMMDD", "20140229", TimeFault::Day),
        ("YYYYMMDD", "20140230", TimeFault::Day),
        ("YYYYMMDD", "20141301", TimeFault::Month),
        ("YYYYMMDD", "00000101", TimeFault::Year),
        ("YYYYMMDD", "201402 6", TimeFault::Form),
        ("YYYYDDD", "2014366", TimeFault::Day),
        ("YYYYDDD", "2014000", TimeFault::Day),
        ("YYYY-MM-DD", "", TimeFault::Form),
    ] {
        assert_eq!(read(form, text), Err(fault), "{form}: {text}");
    }
}

/// Python, PostgreSQL and .NET leave zeros out of a fraction, or all of it.
#[test]
fn a_fraction_has_any_length() {
    let form = "YYYY-MM-DD HH:MM:SS.ffffff";
    for (text, nanos) in [
        ("2026-03-02 14:30:00.980351", 980_351_000),
        ("2026-03-02 14:30:00", 0),
        ("2026-03-02 14:30:00.5", 500_000_000),
        ("2026-03-02 14:30:00.123456789", 123_456_789),
        ("2026-03-02T14:30:00.1234567890000", 123_456_789),
    ] {
        let midnight = read("YYYY-MM-DD", "2026-03-02").unwrap();
        assert_eq!(read(form, text), Ok(midnight + 52_200 * SECOND + nanos), "{text}");
    }
    check("HH:MM:SS,fff", "14:30:00,25", "1970-01-01T14:30:00.25");
    check("HH:MM:SS,fff", "14:30:00", "1970-01-01T14:30:00");
    assert_eq!(read(form, "2026-03-02 14:30:00."), Err(TimeFault::Form));
    assert_eq!(read(form, "2026-03-02 14:30:00,5"), Err(TimeFault::Form));
    assert_eq!(read(form, "2026-03-02 14:30:00.1234567891"), Err(TimeFault::Fraction));
    assert_eq!(read(form, &format!("2026-03-02 14:30:00.{}", "0".repeat(40))), Err(TimeFault::Fraction));
    assert_eq!(read("YYYY-MM-DD HH:MM:SS", "2026-03-02 14:30:00.5"), Err(TimeFault::Form));
}

/// A time with its own offset needs no zone and is never local.
#[test]
fn an_offset_may_follow_a_date_with_a_time() {
    for (form, text, wanted) in [
        ("YYYY-MM-DDTHH:MM:SS.ffffff", "2026-03-02T14:30:01.376605+00:00", "2026-03-02T14:30:01.376605"),
        ("YYYY-MM-DDTHH:MM:SS.ffffff", "2026-03-02T14:30:02.000001Z", "2026-03-02T14:30:02.000001"),
        ("YYYY-MM-DDTHH:MM:SS.ffffff", "2026-03-02T15:30:03.000000+01:00", "2026-03-02T14:30:03"),
        ("YYYY-MM-DDTHH:MM:SS.ffffff", "2026-03-02 15:30:03+0100", "2026-03-02T14:30:03"),
        ("YYYY-MM-DDTHH:MM:SS", "2026-03-02T15:30:03+01", "2026-03-02T14:30:03"),
        ("YYYY-MM-DD HH:MM:SS", "2026-03-02 10:00:03 -04:30", "2026-03-02T14:30:03"),
        ("DD.MM.YYYY HH:MM:SS.fff", "02.03.2026 16:30:00.125 GMT+0200", "2026-03-02T14:30:00.125"),
        ("DD.MM.YYYY HH:MM:SS.fff GMT+HHMM", "02.03.2026 16:30:00.125 GMT+0200", "2026-03-02T14:30:00.125"),
        ("YYYYMMDDHHMMSSZ", "20260302163000+14:00", "2026-03-02T02:30:00"),
        ("YYYYMMDDHHMMSS", "20260302163000Z", "2026-03-02T16:30:00"),
        ("WWW MMM DD YYYY HH:MM:SS Z", "Mon Mar 02 2026 16:30:00 GMT+0200", "2026-03-02T14:30:00"),
        ("HH:MM:SS UTC+HH DD/MM/YYYY", "16:30:00 UTC+2 02/03/2026", "2026-03-02T14:30:00"),
        ("iso", "2026-03-02T14:30:01.376605Z", "2026-03-02T14:30:01.376605"),
        ("iso", "2026-03-02 15:30+01:00", "2026-03-02T14:30:00"),
        ("ISO 8601", "20260302T153000,25+01", "2026-03-02T14:30:00.25"),
        ("rfc3339", "2026-03-02t14:30:00.5z", "2026-03-02T14:30:00.5"),
        ("iso", "2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00"),
    ] {
        check(form, text, wanted);
    }
    for (text, fault) in [
        ("2026-03-02T14:30:00+99:00", TimeFault::Offset),
        ("2026-03-02T14:30:00+14:01", TimeFault::Offset),
        ("2026-03-02T14:30:00+01:60", TimeFault::Offset),
        ("2026-03-02T14:30:00+1", TimeFault::Form),
        ("2026-03-02T14:30:00+01:0", TimeFault::Form),
        ("2026-03-02T14:30:00+010", TimeFault::Form),
        ("2026-03-02T14:30:00 CET", TimeFault::Form),
        ("2026-03-02T14:30:00Zx", TimeFault::Form),
        ("2026-03-02T24:00:00Z", TimeFault::Hour),
        ("2026-03-02T14:30:60Z", TimeFault::Second),
    ] {
        assert_eq!(read("YYYY-MM-DDTHH:MM:SS", text), Err(fault), "{text}");
        assert_eq!(read("iso", text), Err(fault), "{text}");
    }
    // A date or a time of day has no offset.
    assert_eq!(read("YYYY-MM-DD", "2026-03-02Z"), Err(TimeFault::Form));
    assert_eq!(read("HH:MM:SS", "14:30:00Z"), Err(TimeFault::Form));
}

/// `Mai` and `Mär` are months of other languages: English ones alone are meant.
#[test]
fn months_have_english_names() {
    for (form, text, wanted) in [
        ("DD-MMM-YYYY", "02-Mar-2026", "2026-03-02"),
        ("DD-MMM-YYYY", "02-MAR-2026", "2026-03-02"),
        ("DD-MMM-YYYY", "02-march-2026", "2026-03-02"),
        ("MMM D, YYYY", "Mar 2, 2026", "2026-03-02"),
        ("MMM D, YYYY", "SEPT 22, 2026", "2026-09-22"),
        ("MMMM D, YYYY", "September 2, 2026", "2026-09-02"),
        ("DDMMMYYYY", "02MAR2026", "2026-03-02"),
        ("DDMMMYY", "02jun26", "2026-06-02"),
        ("D MMM YYYY HH:MM:SS", "2 may 2026 14:30:00", "2026-05-02T14:30:00"),
        ("DDMMMYYYYTHH:MM", "02AUG2026T14:30", "2026-08-02T14:30:00"),
        ("WWWW, MMM D, YYYY", "Monday, Mar 2, 2026", "2026-03-02"),
    ] {
        check(form, text, wanted);
    }
    for (text, fault) in [
        ("02-Mai-2026", TimeFault::Form),
        ("02-Ma-2026", TimeFault::Form),
        ("02-Marc-2026", TimeFault::Form),
        ("02-03-2026", TimeFault::Form),
        ("30-Feb-2026", TimeFault::Day),
        ("2-Mar-2026", TimeFault::Form),
    ] {
        assert_eq!(read("DD-MMM-YYYY", text), Err(fault), "{text}");
    }
    assert_eq!(read("WWW, MMM D, YYYY", "Tue, Mar 2, 2026"), Err(TimeFault::Weekday));
}

/// Half past midnight is 12:30 AM, half past noon 12:30 PM.
#[test]
fn clocks_of_twelve_hours() {
    for (text, wanted) in [
        ("3/2/2026 12:30:00 AM", "2026-03-02T00:30:00"),
        ("3/2/2026 1:30:00 AM", "2026-03-02T01:30:00"),
        ("3/2/2026 12:30:00 PM", "2026-03-02T12:30:00"),
        ("3/2/2026 11:59:59 pm", "2026-03-02T23:59:59"),
        ("3/2/2026 9:30:00PM", "2026-03-02T21:30:00"),
        ("3/2/2026 9:30:00 p.m.", "2026-03-02T21:30:00"),
    ] {
        check("M/D/YYYY h:MM:SS AM", text, wanted);
        check("M/D/YYYY H:MM:SS PM", text, wanted);
        check("M/d/yyyy h:mm:ss a", text, wanted);
    }
    check("hh:mm A", "09:30 PM", "1970-01-01T21:30:00");
    assert_eq!(read("H:MM AM", "13:30 PM"), Err(TimeFault::HalfDayHour));
    assert_eq!(read("H:MM AM", "0:30 AM"), Err(TimeFault::HalfDayHour));
    assert_eq!(read("H:MM AM", "9:30"), Err(TimeFault::Form));
    assert_eq!(read("H:MM", "9:30 PM"), Err(TimeFault::Form));
}

/// Milliseconds read as seconds are of the year 57,978.
#[test]
fn counts_since_1970_and_midnight() {
    for (form, text, nanos) in [
        ("@s", "1704067199", 1_704_067_199 * SECOND),
        ("epoch_s", "1704067199.123456", 1_704_067_199_123_456_000),
        ("@ms", "1704067199999", 1_704_067_199_999_000_000),
        ("epoch_ms", "1704067199999.25", 1_704_067_199_999_250_000),
        ("unix_us", "1735689600000123", 1_735_689_600_000_123_000),
        ("µs", "1735689600000123", 1_735_689_600_000_123_000),
        ("ns", "1735689600000123456", 1_735_689_600_000_123_456),
        ("@ms", "1.704067199999e12", 1_704_067_199_999_000_000),
        ("@s", "-0.5", -SECOND / 2),
        ("midnight_s", "34200.017459617", 34_200 * SECOND + 17_459_617),
        ("midnight_ms", "0", 0),
        ("midnight_ns", "86399999999999", DAY_NANOS - 1),
    ] {
        assert_eq!(read(form, text), Ok(nanos), "{form}: {text}");
    }
    for (form, text, fault) in [
        ("@s", "1704067199999", TimeFault::Range),
        ("@s", "9223372037", TimeFault::Range),
        ("@ns", "9223372036854775808", TimeFault::Range),
        ("@ns", "99999999999999999999999999999999999999999999", TimeFault::Range),
        ("@ns", "1.5", TimeFault::Fraction),
        ("@s", "1.0000000001", TimeFault::Fraction),
        ("@s", "1.1111111111111111111111111111111111111111", TimeFault::Fraction),
        ("@s", "1e1000000000", TimeFault::Range),
        ("@s", "1e999", TimeFault::Range),
        ("@s", "1e-999", TimeFault::Fraction),
        ("@s", "", TimeFault::Form),
        ("@s", "-", TimeFault::Form),
        ("@s", "1.", TimeFault::Form),
        ("@s", "+1", TimeFault::Form),
        ("@s", "1 704", TimeFault::Form),
        ("@s", "2026-03-02", TimeFault::Form),
        ("midnight_s", "86400", TimeFault::Midnight),
        ("midnight_s", "-1", TimeFault::Midnight),
    ] {
        assert_eq!(read(form, text), Err(fault), "{form}: {text}");
    }
}

#[test]
fn a_column_may_have_several_forms() {
    let form = form_of(&["YYYY-MM-DD HH:MM:SS.fff", "DD.MM.YYYY HH:MM", "@ms"], None);
    for text in ["2026-03-02 14:30:00", "02.03.2026 14:30", "1772461800000"] {
        let read = form.read(text.as_bytes()).unwrap();
        assert_eq!(i64::from(read.days) * DAY_NANOS + read.nanos, 1_772_461_800 * SECOND, "{text}");
    }
    assert_eq!(form.read(b"31.02.2026 14:30"), Err(TimeFault::Day));
    assert_eq!(form.read(b"nothing"), Err(TimeFault::Form));
    let either = form_of(&["@ms(13)", "@us(16)"], None);
    for text in ["1772461800000", "1772461800000000"] {
        assert_eq!(
            either.read(text.as_bytes()).unwrap().nanos,
            14 * 3_600 * SECOND + 1_800 * SECOND,
            "{text}"
        );
    }
    for text in ["177246180000", "17724618000000", "-772461800000", "1.772461800000", ""] {
        assert_eq!(either.read(text.as_bytes()), Err(TimeFault::Form), "{text}");
    }
    for wrong in ["@ms(0)", "@ms(20)", "@ms(x)", "@ms()", "@ms(13", "@(13)"] {
        let parsed = TimeForm::parse(&[wrong.to_owned()], TimeFormKind::Both, TimeFormOptions::default());
        assert!(parsed.is_err(), "{wrong}");
    }
    let either = form_of(&["MM/DD/YYYY", "DD/MM/YYYY"], None);
    assert_eq!(either.read(b"03/02/2026"), Err(TimeFault::TwoForms));
    assert_eq!(either.read(b"03/03/2026").unwrap().days, days(2026, 3, 3).unwrap());
    assert_eq!(either.read(b"23/03/2026").unwrap().days, days(2026, 3, 23).unwrap());
}

/// For a newcomer who writes the form of another tool.
#[test]
fn what_is_no_form_is_named_with_forms_that_are_near() {
    let parse = |text: &str, kind| {
        TimeForm::parse(&[text.to_owned()], kind, TimeFormOptions::default()).map(|_| ()).unwrap_err()
    };
    for (text, kind, wanted) in [
        ("%Y-%m-%d", TimeFormKind::Date, "`YYYY-MM-DD`"),
        ("DD-BBB-YYYY", TimeFormKind::Date, "`DD-MMM-YYYY`"),
        ("YYYY-MM-DD", TimeFormKind::Both, "`YYYY-MM-DD HH:MM:SS`"),
        ("YYYYMM", TimeFormKind::Date, "not a whole date"),
        ("HHSS", TimeFormKind::Time, "not a whole date"),
        ("YYYYMMDDfff", TimeFormKind::Both, "not a whole date"),
        ("YYYYYMMDD", TimeFormKind::Date, "no form of a date or time"),
        ("HHMMSSffffffffff", TimeFormKind::Time, "no form of a date or time"),
        ("é", TimeFormKind::Date, "no form of a date or time"),
        ("", TimeFormKind::Date, "not a whole date"),
        ("DMYYYY", TimeFormKind::Date, "two letters are two digits"),
        ("DD.MM.YY", TimeFormKind::Date, "pivot = 1970"),
        ("@ms", TimeFormKind::Date, "type = \"timestamp\""),
        ("midnight_ms", TimeFormKind::Both, "type = \"time\""),
        ("epoch_ms", TimeFormKind::Time, "type = \"timestamp\""),
    ] {
        let what = parse(text, kind);
        assert!(what.contains(wanted) && what.contains("see docs/time-forms.md"), "{text}: {what}");
    }
}

fn new_york(ambiguous: AmbiguousTimes) -> CachedTimeZone {
    CachedTimeZone::by_name("America/New_York").unwrap().with_ambiguous(ambiguous)
}

/// Minutes after midnight UTC of 1 November 2026 for local times `HH:MM` of that day.
fn november(zone: &mut CachedTimeZone, text: &str) -> Result<i64, LocalTimeFault> {
    let day = days(2026, 11, 1).unwrap();
    let nanos = read("HH:MM", text).unwrap();
    zone.utc(day, nanos).map(|utc| (utc - i64::from(day) * DAY_NANOS) / (60 * SECOND))
}

/// An hour of trades was placed an hour early each autumn.
#[test]
fn times_that_occur_twice_are_refused_or_chosen() {
    use AmbiguousTimes::{First, Refuse, Second};
    for (choice, wanted) in [(Refuse, Err(LocalTimeFault::Twice)), (First, Ok(330)), (Second, Ok(390))] {
        let mut zone = new_york(choice);
        assert_eq!(november(&mut zone, "00:59"), Ok(299));
        assert_eq!(november(&mut zone, "01:30"), wanted);
        assert_eq!(november(&mut zone, "02:00"), Ok(420));
    }
    // In spring 02:30 never occurs.
    let day = days(2026, 3, 8).unwrap();
    let at = |choice| {
        let utc = new_york(choice).utc(day, 9000 * SECOND)?;
        Ok((utc - i64::from(day) * DAY_NANOS) / (60 * SECOND))
    };
    assert_eq!(at(Refuse), Err(LocalTimeFault::Never));
    assert_eq!(at(AmbiguousTimes::ByOrder), Err(LocalTimeFault::Never));
    assert_eq!((at(First), at(Second)), (Ok(390), Ok(450)));
}

#[test]
fn order_says_which_of_two_is_meant() {
    let run = |texts: &[&str]| {
        let mut zone = new_york(AmbiguousTimes::ByOrder);
        texts.iter().map(|text| november(&mut zone, text).ok()).collect::<Vec<_>>()
    };
    assert_eq!(
        run(&["00:59", "01:30", "01:59", "01:00", "01:00", "01:30", "02:00"]),
        [299, 330, 359, 360, 360, 390, 420].map(Some)
    );
    // Nothing before it says which pass a file begins in; a step back does.
    assert_eq!(run(&["01:30", "01:40"]), [None, None]);
    // Back a second time: these times are in no order.
    assert_eq!(
        run(&["00:59", "01:30", "01:10", "01:05", "01:20"]),
        [Some(299), Some(330), Some(370), None, Some(380)]
    );
    // Back from behind the change.
    assert_eq!(run(&["00:59", "02:10", "01:30"]), [Some(299), Some(430), None]);
    // The day before is enough to know that the first pass is meant.
    let mut zone = new_york(AmbiguousTimes::ByOrder);
    zone.utc(days(2026, 10, 31).unwrap(), 0).unwrap();
    assert_eq!(november(&mut zone, "01:30"), Ok(330));
    zone.begin_source();
    assert_eq!(november(&mut zone, "01:30"), Err(LocalTimeFault::TwiceUnordered));
}

/// A change at midnight, whose day begins with a time that never occurs, made the whole day unreadable.
#[test]
fn a_change_at_midnight_spoils_no_day() {
    let mut zone = CachedTimeZone::by_name("America/Sao_Paulo").unwrap();
    let day = days(2018, 11, 4).unwrap();
    assert_eq!(zone.utc(day, 0), Err(LocalTimeFault::Never));
    let noon = zone.utc(day, 12 * 3600 * SECOND).unwrap() - i64::from(day) * DAY_NANOS;
    assert_eq!(noon, 14 * 3600 * SECOND);
}

proptest! {
    /// What is written by a form is read by it.
    #[test]
    fn a_time_comes_back(nanos in -4_000_000_000_000_000_000i64..4_000_000_000_000_000_000, east in -14i64..=14) {
        use unitape_model::calendar::civil_from_days;
        let local = nanos + east * 3600 * SECOND;
        let (day, clock) = (local.div_euclid(DAY_NANOS), local.rem_euclid(DAY_NANOS));
        let (year, month, of_month) = civil_from_days(day);
        let (hour, minute) = (clock / (3600 * SECOND), clock / (60 * SECOND) % 60);
        let (second, fraction) = (clock / SECOND % 60, clock % SECOND);
        let sign = if east < 0 { '-' } else { '+' };
        let text = format!(
            "{year:04}-{month:02}-{of_month:02}T{hour:02}:{minute:02}:{second:02}.{fraction:09}{sign}{:02}:00",
            east.abs()
        );
        prop_assert_eq!(read("iso", &text), Ok(nanos));
        prop_assert_eq!(read("YYYY-MM-DDTHH:MM:SS.fffffffff+HH:MM", &text), Ok(nanos));
        prop_assert_eq!(since_1970(nanos.to_string().as_bytes(), 0), Ok(nanos));
    }

    /// Plain forms are read a quick way: the general way says the same.
    #[test]
    fn plain_values_are_read_alike(text in "[0-9]{4}-[0-9]{2}-[0-3][0-9] [0-2][0-9]:[0-6][0-9]:[0-6][0-9]") {
        let quick = form_of(&["YYYY-MM-DD HH:MM:SS"], None);
        let mut general = quick.clone();
        general.plain_length = None;
        prop_assert_eq!(quick.read(text.as_bytes()), general.read(text.as_bytes()));
    }

    #[test]
    fn any_text_is_a_time_or_none(text in "[-+:.,TZ 0-9eAaMmPp]{0,40}") {
        for form in ["iso", "@s", "M/D/YYYY H:MM:SS AM", "DD-MMM-YYYY HH:MM:SS.fffZ"] {
            _ = read(form, &text);
        }
    }

    #[test]
    fn any_text_is_a_form_or_none(text in "[-YMDHSfAPTZWé%@+: a-z]{0,20}") {
        for kind in [TimeFormKind::Both, TimeFormKind::Time, TimeFormKind::Date] {
            if let Err(what) = TimeForm::parse(std::slice::from_ref(&text), kind, TimeFormOptions::default()) {
                prop_assert!(what.contains("docs/time-forms.md"), "{}", what);
            }
        }
    }
}
