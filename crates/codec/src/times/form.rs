//! Forms: the text of a layout or a mapping to the parts of a value, or what is wrong with it.

use super::fault::TimeFault;
use super::read::DateAndTime;
use super::zone::{AmbiguousTimes, CachedTimeZone};

/// The form of a date or time, or several alternative forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeForm {
    /// As the layout writes it.
    pub(super) text: String,
    pub(super) syntax: TimeSyntax,
    /// First of the hundred years that two digits mean.
    pub(super) pivot: Option<i64>,
    /// Bytes of a value that has its longest digits and no part of variable length.
    pub(super) plain_length: Option<usize>,
    /// `Some(n)` for `HHMMSS` and n digits of a second with nothing between: read as one number.
    pub clock_digits: Option<u8>,
    /// `Some(n)` for `YYYYMMDDHHMMSS` and n digits of a second, read in the same way.
    pub stamp_digits: Option<u8>,
    /// The other forms of the column.
    pub(super) alternatives: Vec<TimeForm>,
}

/// How the text of a value is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeSyntax {
    /// Parts from left to right. A date with a time may have an offset behind it.
    Parts { parts: Vec<TimePart>, kind: TimeFormKind, half_days: bool },
    /// A count since 1970, or since midnight for a time of day; the unit is this power of ten of nanoseconds. With `digits` it
    /// has that many before its point.
    Count { power: u32, since_midnight: bool, digits: Option<u8> },
    /// ISO 8601 in any of its lengths.
    Iso,
}

/// A part of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimePart {
    Year4,
    Year2,
    Month,
    Day,
    DayOfYear,
    Hour,
    Minute,
    Second,
    /// A fraction of a second with this number of digits.
    Fraction(u8),
    Literal(u8),
    /// One or two digits of the part that follows.
    ShortMonth,
    ShortDay,
    ShortHour,
    ShortMinute,
    ShortSecond,
    /// The name of a month, in English, short or long.
    MonthName,
    /// The name of a day of the week, in the same way.
    Weekday,
    /// AM or PM.
    HalfDay,
    Offset,
}

/// The contents of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeFormKind {
    Date,
    Time,
    Both,
}

/// What a layout says beside the forms.
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeFormOptions {
    /// First of the hundred years that two digits mean.
    pub pivot: Option<i64>,
}

impl TimeForm {
    /// Reads the forms of a column of this kind.
    pub fn parse(texts: &[String], kind: TimeFormKind, options: TimeFormOptions) -> Result<Self, String> {
        let mut forms = Vec::with_capacity(texts.len());
        for text in texts {
            forms.push(Self::parse_one(text, kind, options)?);
        }
        let mut forms = forms.into_iter();
        let mut first_form =
            forms.next().ok_or_else(|| format!("a list of forms has one at least; {SEE}"))?;
        first_form.alternatives = forms.collect();
        if !first_form.alternatives.is_empty() {
            (first_form.clock_digits, first_form.stamp_digits) = (None, None);
        }
        Ok(first_form)
    }

    /// Returns whether a value states its moment without a zone.
    pub fn is_absolute(&self) -> bool {
        let is_own_absolute = match &self.syntax {
            TimeSyntax::Parts { parts, .. } => parts.contains(&TimePart::Offset),
            TimeSyntax::Count { since_midnight, .. } => !since_midnight,
            TimeSyntax::Iso => true,
        };
        is_own_absolute && self.alternatives.iter().all(TimeForm::is_absolute)
    }

    /// Returns the length of every value in bytes, if all values have the same length.
    pub fn fixed_length(&self) -> Option<usize> {
        self.plain_length.filter(|_| self.alternatives.is_empty())
    }

    /// Explains why a value is no time of this form, in words that follow the value.
    pub fn reason(&self, text: &[u8]) -> String {
        match self.read(text) {
            Err(TimeFault::Form) => {
                let forms = std::iter::once(self).chain(&self.alternatives).map(|f| format!("`{}`", f.text));
                let forms = forms.collect::<Vec<_>>().join(" or ");
                format!("does not have the form {forms}; {SEE}")
            }
            Err(fault) => fault.description().to_owned(),
            Ok(_) => TimeFault::Range.description().to_owned(),
        }
    }

    fn parse_one(text: &str, wanted: TimeFormKind, options: TimeFormOptions) -> Result<Self, String> {
        let form = |syntax| TimeForm {
            text: text.to_owned(),
            syntax,
            pivot: options.pivot,
            plain_length: None,
            clock_digits: None,
            stamp_digits: None,
            alternatives: Vec::new(),
        };
        if let Some((power, origin, digits)) = count_of(text) {
            let since_midnight = wanted == TimeFormKind::Time;
            return match (wanted, origin) {
                (TimeFormKind::Date, _) => {
                    Err(format!("`{text}` is a count, not a date: type = \"timestamp\"; {SEE}"))
                }
                (TimeFormKind::Time, CountOrigin::Epoch) => {
                    Err(format!("`{text}` counts since 1970: type = \"timestamp\"; {SEE}"))
                }
                (TimeFormKind::Both, CountOrigin::Midnight) => {
                    Err(format!("`{text}` counts since midnight: type = \"time\", with `date`; {SEE}"))
                }
                _ => Ok(form(TimeSyntax::Count { power, since_midnight, digits })),
            };
        }
        if is_iso(text) {
            return match wanted {
                TimeFormKind::Both => Ok(form(TimeSyntax::Iso)),
                _ => Err(format!("`{text}` is a date with a time: type = \"timestamp\"; {SEE}")),
            };
        }
        let (parts, kind, half_days) = parts_of(text)?;
        if kind != wanted {
            let (is, needed) = (kind.description(), wanted.description());
            return Err(format!(
                "`{text}` is {is}, and the column needs {needed}; {}",
                suggest_forms(text, Some(wanted))
            ));
        }
        if parts.contains(&TimePart::Year2) && options.pivot.is_none() {
            return Err(format!(
                "`{text}` has years of two digits: say `pivot = 1970` if 70 to 99 are 19xx and 00 to 69 are 20xx; {SEE}"
            ));
        }
        let plain_length = parts.iter().map(|p| p.plain_length()).sum::<Option<usize>>();
        let clock = |parts: &[TimePart]| match *parts {
            [TimePart::Hour, TimePart::Minute, TimePart::Second] => Some(0),
            [TimePart::Hour, TimePart::Minute, TimePart::Second, TimePart::Fraction(n)] => Some(n),
            _ => None,
        };
        let stamp_digits = match &parts[..] {
            [TimePart::Year4, TimePart::Month, TimePart::Day, rest @ ..] => clock(rest),
            _ => None,
        };
        let clock_digits = clock(&parts);
        Ok(TimeForm {
            plain_length,
            clock_digits,
            stamp_digits,
            ..form(TimeSyntax::Parts { parts, kind, half_days })
        })
    }
}

impl TimeFormKind {
    const fn description(self) -> &'static str {
        match self {
            TimeFormKind::Date => "a date",
            TimeFormKind::Time => "a time of day",
            TimeFormKind::Both => "a date with a time",
        }
    }
}

impl TimePart {
    /// Returns the length of a part in bytes, if it is always the same.
    const fn plain_length(self) -> Option<usize> {
        Some(match self {
            TimePart::Year4 => 4,
            TimePart::DayOfYear => 3,
            TimePart::Fraction(n) => n as usize,
            TimePart::Literal(_) => 1,
            TimePart::Year2
            | TimePart::Month
            | TimePart::Day
            | TimePart::Hour
            | TimePart::Minute
            | TimePart::Second => 2,
            _ => return None,
        })
    }

    /// Returns whether the part's value begins or ends with a digit.
    const fn is_digits(self) -> bool {
        !matches!(
            self,
            TimePart::Literal(_)
                | TimePart::MonthName
                | TimePart::Weekday
                | TimePart::HalfDay
                | TimePart::Offset
        )
    }

    const fn is_short(self) -> bool {
        matches!(
            self,
            TimePart::ShortMonth
                | TimePart::ShortDay
                | TimePart::ShortHour
                | TimePart::ShortMinute
                | TimePart::ShortSecond
        )
    }
}

/// Where a count begins, if its name says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CountOrigin {
    Epoch,
    Midnight,
    /// By the type of the column.
    Either,
}

/// Parses the unit and origin of a count, and its number of digits if the form has one: `@ms(13)`.
fn count_of(text: &str) -> Option<(u32, CountOrigin, Option<u8>)> {
    let text = text.to_ascii_lowercase();
    let (text, digits) = match text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        Some((text, digits)) => {
            (text.to_owned(), Some(digits.parse().ok().filter(|n| (1..=19).contains(n))?))
        }
        None => (text, None),
    };
    let prefixes = [
        ("@", CountOrigin::Either),
        ("epoch", CountOrigin::Epoch),
        ("unix", CountOrigin::Epoch),
        ("midnight", CountOrigin::Midnight),
    ];
    let prefix_and_text =
        prefixes.iter().find_map(|(prefix, origin)| Some((text.strip_prefix(prefix)?, *origin)));
    let (unit, origin) = prefix_and_text.unwrap_or((&text, CountOrigin::Either));
    let power = match unit.trim_start_matches(['_', '-', ' ']) {
        "s" | "sec" | "seconds" => 9,
        "ms" | "millis" | "milliseconds" => 6,
        "us" | "µs" | "μs" | "micros" | "microseconds" => 3,
        "ns" | "nanos" | "nanoseconds" => 0,
        "" if origin == CountOrigin::Epoch => 9,
        _ => return None,
    };
    Some((power, origin, digits))
}

fn is_iso(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    matches!(text.as_str(), "iso" | "iso8601" | "iso 8601" | "iso-8601" | "rfc3339" | "rfc 3339")
}

/// The words of a form that are longer than one run of a letter.
const OFFSET_WORDS: [&str; 16] = [
    "GMT+HH:MM",
    "GMT+HHMM",
    "GMT+HH",
    "UTC+HH:MM",
    "UTC+HHMM",
    "UTC+HH",
    "GMTZ",
    "UTCZ",
    "+HH:MM",
    "+HHMM",
    "+HH",
    "ZZ",
    "Z",
    "XXX",
    "XX",
    "X",
];
const HALF_DAY_WORDS: [&str; 4] = ["AM/PM", "AM", "PM", "A"];

/// Finds the word with which `rest` begins, in any case.
fn word_of<'w>(rest: &str, words: &[&'w str]) -> Option<&'w str> {
    words.iter().copied().find(|w| rest.get(..w.len()).is_some_and(|r| r.eq_ignore_ascii_case(w)))
}

/// Parses the parts of a form. MM is the minute after HH or SS, otherwise the month.
fn parts_of(text: &str) -> Result<(Vec<TimePart>, TimeFormKind, bool), String> {
    let (mut parts, mut offset): (Vec<TimePart>, usize) = (Vec::new(), 0);
    let mut is_in_clock = false;
    let bytes = text.as_bytes();
    while offset < bytes.len() {
        let unknown = || format!("`{text}` is no form of a date or time; {}", suggest_forms(text, None));
        let form_left = text.get(offset..).ok_or_else(unknown)?;
        let first_byte = form_left.as_bytes()[0];
        let run = form_left.bytes().take_while(|b| *b == first_byte).count();
        let after_clock = parts.last().is_some_and(|p| {
            matches!(
                p,
                TimePart::Minute
                    | TimePart::ShortMinute
                    | TimePart::Second
                    | TimePart::ShortSecond
                    | TimePart::Fraction(_)
                    | TimePart::HalfDay
                    | TimePart::Literal(_)
            )
        });
        if let Some(word) = word_of(form_left, &OFFSET_WORDS).filter(|_| after_clock && is_in_clock) {
            parts.push(TimePart::Offset);
            offset += word.len();
            continue;
        }
        if let Some(word) = word_of(form_left, &HALF_DAY_WORDS) {
            parts.push(TimePart::HalfDay);
            offset += word.len();
            continue;
        }
        let has_minute = parts.iter().any(|p| matches!(p, TimePart::Minute | TimePart::ShortMinute));
        let has_second = parts.iter().any(|p| matches!(p, TimePart::Second | TimePart::ShortSecond));
        let is_minute = is_in_clock && !has_minute;
        let (part, len) = match first_byte.to_ascii_uppercase() {
            b'Y' if run == 4 => (TimePart::Year4, 4),
            b'Y' if run == 2 => (TimePart::Year2, 2),
            b'D' if run == 3 => (TimePart::DayOfYear, 3),
            b'D' if run == 2 => (TimePart::Day, 2),
            b'D' if run == 1 => (TimePart::ShortDay, 1),
            b'H' if run == 2 => (TimePart::Hour, 2),
            b'H' if run == 1 => (TimePart::ShortHour, 1),
            b'S' if run == 2 && !has_second => (TimePart::Second, 2),
            b'S' if run == 1 && !has_second => (TimePart::ShortSecond, 1),
            b'S' if run <= 9 && has_second => (TimePart::Fraction(run as u8), run),
            b'F' if run <= 9 => (TimePart::Fraction(run as u8), run),
            b'M' if run == 3 || run == 4 => (TimePart::MonthName, run),
            b'M' if run == 2 => (if is_minute { TimePart::Minute } else { TimePart::Month }, 2),
            b'M' if run == 1 => (if is_minute { TimePart::ShortMinute } else { TimePart::ShortMonth }, 1),
            b'W' if run == 3 || run == 4 => (TimePart::Weekday, run),
            _ if !first_byte.is_ascii_alphanumeric()
                && first_byte.is_ascii_graphic()
                && first_byte != b'%'
                || first_byte == b' '
                || first_byte == b'T' =>
            {
                (TimePart::Literal(first_byte), 1)
            }
            _ => return Err(unknown()),
        };
        is_in_clock = match part {
            TimePart::Hour | TimePart::ShortHour | TimePart::Second | TimePart::ShortSecond => true,
            TimePart::Year4 | TimePart::Year2 | TimePart::Day | TimePart::ShortDay => false,
            _ => is_in_clock,
        };
        parts.push(part);
        offset += len;
    }
    if parts.windows(2).any(|pair| pair[0].is_short() && pair[1].is_digits()) {
        return Err(format!(
            "`{text}` has a part of one or two digits with digits right behind it: two letters are two digits; {SEE}"
        ));
    }
    let (kind, half_days) = kind_of(&parts).ok_or_else(|| {
        format!("`{text}` is not a whole date, time of day, or both; {}", suggest_forms(text, None))
    })?;
    Ok((parts, kind, half_days))
}

/// Returns the kind of a form, and whether its hours have AM or PM. Returns `None` if a part is missing or occurs
/// twice.
fn kind_of(parts: &[TimePart]) -> Option<(TimeFormKind, bool)> {
    let count = |wanted: &[TimePart]| parts.iter().filter(|p| wanted.contains(p)).count();
    let year = count(&[TimePart::Year4, TimePart::Year2]);
    let month = count(&[TimePart::Month, TimePart::ShortMonth, TimePart::MonthName]);
    let (day, ordinal) = (count(&[TimePart::Day, TimePart::ShortDay]), count(&[TimePart::DayOfYear]));
    let weekday = count(&[TimePart::Weekday]);
    let date = year + month + day + ordinal;
    let whole_date =
        year == 1 && (month == 1 && day == 1 && ordinal == 0 || date == 2 && ordinal == 1) && weekday <= 1;
    let hour = count(&[TimePart::Hour, TimePart::ShortHour]);
    let minute = count(&[TimePart::Minute, TimePart::ShortMinute]);
    let second = count(&[TimePart::Second, TimePart::ShortSecond]);
    let fractions = parts.iter().filter(|p| matches!(p, TimePart::Fraction(_))).count();
    let (half_days, offsets) = (count(&[TimePart::HalfDay]), count(&[TimePart::Offset]));
    let time = hour + minute + second + fractions + half_days;
    let whole_time =
        hour == 1 && minute == 1 && second <= 1 && fractions <= second && half_days <= 1 && offsets <= 1;
    let kind = match (date > 0, time > 0) {
        (true, false) if whole_date && offsets == 0 => TimeFormKind::Date,
        (false, true) if whole_time && offsets == 0 && weekday == 0 => TimeFormKind::Time,
        (true, true) if whole_date && whole_time => TimeFormKind::Both,
        _ => return None,
    };
    Some((kind, half_days == 1))
}

/// The page that has all forms.
const SEE: &str = "see docs/time-forms.md";

/// Suggests the nearest forms, and states where all forms are listed.
fn suggest_forms(text: &str, kind: Option<TimeFormKind>) -> String {
    let normalize = |t: &str| t.to_ascii_uppercase().replace('%', "").into_bytes();
    let text = normalize(&text.chars().take(60).collect::<String>());
    let mut forms: Vec<(usize, &str)> = CATALOG
        .iter()
        .filter(|form| kind.is_none_or(|k| parts_of_kind(form) == Some(k)))
        .map(|form| (edit_distance(&text, &normalize(form)), *form))
        .collect();
    forms.sort_by_key(|(distance, _)| *distance);
    let form_names: Vec<_> = forms.iter().take(3).map(|(_, form)| format!("`{form}`")).collect();
    format!("near it are {}; {SEE}", form_names.join(", "))
}

/// Returns the kind of a form in the catalogue; a count is a date with a time.
fn parts_of_kind(form: &str) -> Option<TimeFormKind> {
    if count_of(form).is_some() || is_iso(form) {
        return Some(TimeFormKind::Both);
    }
    parts_of(form).ok().map(|(_, kind, _)| kind)
}

/// Computes the edit distance: the bytes to insert, delete or change to make one text into the other.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

/// Forms that an error may name.
const CATALOG: &[&str] = &[
    "YYYY-MM-DD",
    "YYYYMMDD",
    "DD.MM.YYYY",
    "DD/MM/YYYY",
    "MM/DD/YYYY",
    "M/D/YYYY",
    "DD-MMM-YYYY",
    "MMM D, YYYY",
    "YYYYDDD",
    "HHMMSS",
    "HH:MM",
    "HH:MM:SS",
    "HH:MM:SS.fff",
    "H:MM:SS AM",
    "HHMMSSfff",
    "YYYYMMDDHHMMSS",
    "YYYY-MM-DD HH:MM:SS",
    "YYYY-MM-DD HH:MM:SS.fff",
    "YYYY-MM-DDTHH:MM:SS.ffffffZ",
    "DD.MM.YYYY HH:MM:SS",
    "M/D/YYYY H:MM AM",
    "DD-MMM-YYYY HH:MM:SS",
    "DD.MM.YYYY HH:MM:SS.fff GMT+HHMM",
    "iso",
    "@s",
    "@ms",
    "@us",
    "@ns",
];

/// A form with its zone, for values of texts.
#[derive(Debug, Clone)]
pub struct WrittenTime {
    form: TimeForm,
    zone: CachedTimeZone,
}

/// Parses the form of a date, or of a date with a time, as a mapping names it. Local times are in `zone`.
///
/// # Errors
/// Fails if the form or the zone is invalid; the text says why.
pub fn time_form(text: &str, zone: &str, ambiguous: Option<&str>) -> Result<WrittenTime, String> {
    let ambiguous = match ambiguous {
        None => AmbiguousTimes::default(),
        Some(word) => {
            AmbiguousTimes::by_name(word).filter(|a| *a != AmbiguousTimes::ByOrder).ok_or_else(|| {
                format!(
                    "ambiguous = \"{word}\": refuse, first or second; by-order is for csv and fixed; {SEE}"
                )
            })?
        }
    };
    let texts = [text.to_owned()];
    let options = TimeFormOptions::default();
    let form = TimeForm::parse(&texts, TimeFormKind::Both, options)
        .or_else(|reason| TimeForm::parse(&texts, TimeFormKind::Date, options).map_err(|_| reason))?;
    Ok(WrittenTime { form, zone: CachedTimeZone::by_name(zone)?.with_ambiguous(ambiguous) })
}

impl WrittenTime {
    /// Converts a value to UTC nanoseconds.
    ///
    /// # Errors
    /// Fails if the value is no time; the text says why.
    pub fn nanos(&self, text: &[u8]) -> Result<i64, &'static str> {
        let date_and_time = self.form.read(text).map_err(TimeFault::description)?;
        match date_and_time.instant() {
            Some(instant) => instant.ok_or(TimeFault::Range.description()),
            None => {
                let DateAndTime { days, nanos, .. } = date_and_time;
                self.zone.clone().utc(days, nanos).map_err(|fault| fault.description())
            }
        }
    }
}
