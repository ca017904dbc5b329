//! Forms that read a value, for people whose form does not.

use super::{TimeForm, TimeFormKind, TimeFormOptions};
use unitape_model::calendar::civil_from_days;

/// A form that reads a value, and the moment that it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedForm {
    /// The form, as layouts and mappings spell it.
    pub form: String,
    /// The form has years of two digits, for which the layout says `pivot`.
    pub needs_pivot: bool,
    /// The value by this form, in ISO 8601; a local time without an offset.
    pub meaning: String,
}

const DATES: [&str; 15] = [
    "YYYY-MM-DD",
    "DD.MM.YYYY",
    "YYYY.MM.DD",
    "YYYY/MM/DD",
    "YYYYMMDD",
    "M/D/YYYY",
    "D/M/YYYY",
    "D-M-YYYY",
    "D.M.YYYY",
    "D-MMM-YYYY",
    "D MMM YYYY",
    "MMM D, YYYY",
    "DD.MM.YY",
    "M/D/YY",
    "D/M/YY",
];

const CLOCKS: [&str; 8] =
    ["HH:MM", "HH:MM:SS", "HH:MM:SS.fff", "HHMMSS", "HHMMSSfff", "H:MM AM", "H:MM:SS AM", "HH:MM:SS,fff"];

/// Returns the forms that read `value` as different moments, the likeliest first; empty if no known form reads it.
#[must_use]
pub fn forms_that_read(value: &str) -> Vec<SuggestedForm> {
    let counts = ["@s", "@ms", "@us", "@ns"].map(str::to_owned);
    let dates_with_clocks =
        DATES.iter().flat_map(|day| CLOCKS.iter().map(move |clock| format!("{day} {clock}")));
    let moments = counts.into_iter().chain(["iso".to_owned()]).chain(dates_with_clocks);
    let kinds = moments
        .map(|form| (form, TimeFormKind::Both))
        .chain(DATES.map(|form| (form.to_owned(), TimeFormKind::Date)))
        .chain(CLOCKS.map(|form| (form.to_owned(), TimeFormKind::Time)));
    let mut suggested = Vec::<SuggestedForm>::new();
    for (form, kind) in kinds {
        let Some(suggestion) = suggest_form(form, kind, value) else { continue };
        // Another way to write the same adds nothing.
        if suggested.iter().all(|before| before.meaning != suggestion.meaning) {
            suggested.push(suggestion);
        }
    }
    suggested
}

fn suggest_form(form: String, kind: TimeFormKind, value: &str) -> Option<SuggestedForm> {
    let parsed =
        TimeForm::parse(std::slice::from_ref(&form), kind, TimeFormOptions { pivot: Some(1970) }).ok()?;
    let date_and_time = parsed.read(value.as_bytes()).ok()?;
    let year = i64::from(date_and_time.days) / 365 + 1970;
    // A count in a unit in which it is no time of our age.
    if form.starts_with('@') && !(1990..2100).contains(&year) {
        return None;
    }
    let seconds = date_and_time.nanos / 1_000_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let clock = format!("{hour:02}:{minute:02}:{second:02}");
    let fraction = match date_and_time.nanos % 1_000_000_000 {
        0 => String::new(),
        nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
    };
    let offset = match date_and_time.offset {
        None => String::new(),
        Some(0) => "Z".to_owned(),
        Some(east) => {
            let (sign, east) = if east < 0 { ('-', -east) } else { ('+', east) };
            format!("{sign}{:02}:{:02}", east / 3600, east / 60 % 60)
        }
    };
    let (year, month, day) = civil_from_days(date_and_time.days.into());
    let day = format!("{year:04}-{month:02}-{day:02}");
    let meaning = match kind {
        TimeFormKind::Date => day,
        TimeFormKind::Time => clock + &fraction,
        TimeFormKind::Both => format!("{day}T{clock}{fraction}{offset}"),
    };
    let needs_pivot = form.contains("YY") && !form.contains("YYYY");
    Some(SuggestedForm { form, needs_pivot, meaning })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_other_tools_have_a_form() {
        for (value, wanted) in [
            ("02.03.2026 09:30:00.125", &[("DD.MM.YYYY HH:MM:SS.fff", "2026-03-02T09:30:00.125")][..]),
            ("1772461800000", &[("@ms", "2026-03-02T14:30:00Z")]),
            ("1772461800", &[("@s", "2026-03-02T14:30:00Z")]),
            ("2026-03-02T09:30:00+01:00", &[("iso", "2026-03-02T09:30:00+01:00")]),
            ("3/14/2026 9:30 PM", &[("M/D/YYYY H:MM AM", "2026-03-14T21:30:00")]),
            (
                "3/2/2026 9:30 PM",
                &[("M/D/YYYY H:MM AM", "2026-03-02T21:30:00"), ("D/M/YYYY H:MM AM", "2026-02-03T21:30:00")],
            ),
            ("20260302 093000", &[("iso", "2026-03-02T09:30:00")]),
            ("20260302", &[("YYYYMMDD", "2026-03-02")]),
            ("2-Mar-2026", &[("D-MMM-YYYY", "2026-03-02")]),
            ("14.03.26", &[("DD.MM.YY", "2026-03-14")]),
            ("09:30:00.5", &[("HH:MM:SS.fff", "09:30:00.5")]),
            ("nothing", &[]),
            ("2026-13-02", &[]),
            ("", &[]),
        ] {
            let suggested = forms_that_read(value);
            let actual: Vec<_> = suggested.iter().map(|f| (f.form.as_str(), f.meaning.as_str())).collect();
            assert_eq!(actual, wanted, "{value}");
        }
        assert!(forms_that_read("14.03.26")[0].needs_pivot);
    }
}
