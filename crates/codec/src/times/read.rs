//! Values of a form.

use super::calendar::{DAY_NANOS, days};
use super::count::since_1970;
use super::fault::TimeFault;
use super::form::{TimeForm, TimeFormKind, TimePart, TimeSyntax};
use super::offset::read_offset;

/// A date and time as read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DateAndTime {
    /// Days since 1970.
    pub days: i32,
    /// Since midnight.
    pub nanos: i64,
    /// Seconds east of UTC, if the value says it.
    pub offset: Option<i32>,
}

impl DateAndTime {
    /// Converts a value with an offset to UTC nanoseconds: `Some(None)` if they do not fit, `None` without an offset.
    #[inline]
    pub fn instant(self) -> Option<Option<i64>> {
        let east = i64::from(self.offset?) * 1_000_000_000;
        let midnight = i64::from(self.days).checked_mul(DAY_NANOS);
        Some(midnight.and_then(|m| m.checked_add(self.nanos)?.checked_sub(east)))
    }
}

impl TimeForm {
    /// Reads a value that has one of the forms.
    ///
    /// # Errors
    /// Fails with the first form's reason, or if two forms give different times.
    #[inline]
    pub fn read(&self, text: &[u8]) -> Result<DateAndTime, TimeFault> {
        if self.plain_length == Some(text.len())
            && self.alternatives.is_empty()
            && let TimeSyntax::Parts { parts, half_days: false, .. } = &self.syntax
            && let Some(read) = self.read_fixed(parts, text)
        {
            return Ok(read);
        }
        self.read_any(text)
    }

    #[cold]
    fn read_any(&self, text: &[u8]) -> Result<DateAndTime, TimeFault> {
        let mut outcome = self.read_one(text);
        for form in &self.alternatives {
            match (outcome, form.read_one(text)) {
                (Ok(a), Ok(b)) if a != b => return Err(TimeFault::TwoForms),
                (Err(TimeFault::Form), next_outcome) => outcome = next_outcome,
                (Err(_), Ok(b)) => outcome = Ok(b),
                _ => {}
            }
        }
        outcome
    }

    /// Reads a value of digits and marks at fixed offsets. Returns `None` to leave it to the general way, which finds
    /// the reason.
    #[inline]
    fn read_fixed(&self, parts: &[TimePart], text: &[u8]) -> Option<DateAndTime> {
        let (mut year, mut month, mut day, mut ordinal) = (1970, 1, 1, None);
        let (mut hour, mut minute, mut second, mut nanos) = (0, 0, 0, 0);
        let mut unread_text = text;
        for part in parts {
            let length = match part {
                TimePart::Year4 => 4,
                TimePart::DayOfYear => 3,
                TimePart::Fraction(n) => usize::from(*n),
                TimePart::Literal(_) => 1,
                _ => 2,
            };
            let (field_bytes, remainder) = unread_text.split_at_checked(length)?;
            unread_text = remainder;
            if let TimePart::Literal(byte) = part {
                if field_bytes != [*byte] {
                    return None;
                }
                continue;
            }
            let n = field_bytes
                .iter()
                .try_fold(0i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))?;
            match part {
                TimePart::Year4 => year = n,
                TimePart::Year2 => year = self.year_of(n)?,
                TimePart::Month => month = n,
                TimePart::Day => day = n,
                TimePart::DayOfYear => ordinal = Some(n),
                TimePart::Hour => hour = n,
                TimePart::Minute => minute = n,
                TimePart::Second => second = n,
                TimePart::Fraction(digits) => nanos = n * 10i64.pow(9 - u32::from(*digits)),
                _ => return None,
            }
        }
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let mut day_number = days(year, month, day)?;
        if let Some(n) = ordinal {
            day_number = day_of_year(year, n)?;
        }
        let nanos = ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nanos;
        Some(DateAndTime { days: day_number, nanos, offset: None })
    }

    fn read_one(&self, text: &[u8]) -> Result<DateAndTime, TimeFault> {
        match &self.syntax {
            TimeSyntax::Count { power, since_midnight, digits } => {
                let integer_length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
                if digits.is_some_and(|digits| usize::from(digits) != integer_length) {
                    return Err(TimeFault::Form);
                }
                let nanos = since_1970(text, *power)?;
                if !since_midnight {
                    let days = nanos.div_euclid(DAY_NANOS) as i32;
                    return Ok(DateAndTime { days, nanos: nanos.rem_euclid(DAY_NANOS), offset: Some(0) });
                }
                if (0..DAY_NANOS).contains(&nanos) {
                    Ok(DateAndTime { days: 0, nanos, offset: None })
                } else {
                    Err(TimeFault::Midnight)
                }
            }
            TimeSyntax::Iso => read_iso(text),
            TimeSyntax::Parts { parts, kind, half_days } => {
                let mut cursor = TimeCursor { unread_text: text };
                let mut read_parts =
                    ReadParts { month: 1, day: 1, year: 1970, half_days: *half_days, ..ReadParts::default() };
                let mut parts = parts.iter().copied().peekable();
                let mut previous_part = None;
                while let Some(part) = parts.next() {
                    match (part, parts.peek()) {
                        // The mark of a fraction goes with it: both may be left out.
                        (TimePart::Literal(mark @ (b'.' | b',')), Some(TimePart::Fraction(_))) => {
                            parts.next();
                            if cursor.take_byte(mark) {
                                read_parts.fraction = cursor.read_fraction_ns()?;
                            }
                        }
                        // Standards write T between date and time, people a blank.
                        (TimePart::Literal(b'T' | b' '), Some(next))
                            if is_hour(*next) && previous_part.is_some() =>
                        {
                            if !cursor.take_byte(b'T') && !cursor.take_byte(b't') && !cursor.take_blanks() {
                                return Err(TimeFault::Form);
                            }
                        }
                        (TimePart::Literal(b' '), Some(TimePart::HalfDay | TimePart::Offset)) => {
                            cursor.take_blanks();
                        }
                        (TimePart::Literal(b' '), _) if cursor.take_blanks() => {}
                        (TimePart::Literal(byte), _) if cursor.take_byte(byte) => {}
                        (TimePart::Literal(_), _) => return Err(TimeFault::Form),
                        (TimePart::Year2, _) => {
                            let year = cursor.read_digits(2, 2)?;
                            read_parts.year = self.year_of(year).ok_or(TimeFault::Form)?;
                        }
                        (part, _) => read_parts.read_part(part, &mut cursor)?,
                    }
                    previous_part = Some(part);
                }
                if *kind == TimeFormKind::Both
                    && read_parts.offset.is_none()
                    && !cursor.unread_text.is_empty()
                {
                    cursor.take_blanks();
                    read_parts.offset = Some(cursor.offset()?);
                }
                if !cursor.unread_text.is_empty() {
                    return Err(TimeFault::Form);
                }
                read_parts.build_time()
            }
        }
    }

    /// Returns the year that two digits mean.
    fn year_of(&self, two_digits: i64) -> Option<i64> {
        let pivot = self.pivot?;
        let year = pivot - pivot.rem_euclid(100) + two_digits;
        Some(if year < pivot { year + 100 } else { year })
    }
}

fn is_hour(part: TimePart) -> bool {
    matches!(part, TimePart::Hour | TimePart::ShortHour)
}

/// Days since 1970 of a day that is counted from the start of its year.
fn day_of_year(year: i64, ordinal: i64) -> Option<i32> {
    let (first, last) = (days(year, 1, 1)?, days(year, 12, 31)?);
    let day = i32::try_from(ordinal).ok().filter(|n| *n >= 1)?.checked_add(first - 1)?;
    (day <= last).then_some(day)
}

/// Parts of a value as they are read.
#[derive(Debug, Default)]
struct ReadParts {
    year: i64,
    month: i64,
    day: i64,
    ordinal: Option<i64>,
    hour: i64,
    minute: i64,
    second_of_day: i64,
    /// Nanoseconds.
    fraction: i64,
    weekday: Option<i32>,
    half_days: bool,
    is_afternoon: bool,
    offset: Option<i32>,
}

impl ReadParts {
    fn read_part(&mut self, part: TimePart, cursor: &mut TimeCursor<'_>) -> Result<(), TimeFault> {
        match part {
            TimePart::Year4 => self.year = cursor.read_digits(4, 4)?,
            TimePart::Month => self.month = cursor.read_digits(2, 2)?,
            TimePart::Day => self.day = cursor.read_digits(2, 2)?,
            TimePart::DayOfYear => self.ordinal = Some(cursor.read_digits(3, 3)?),
            TimePart::Hour => self.hour = cursor.read_digits(2, 2)?,
            TimePart::Minute => self.minute = cursor.read_digits(2, 2)?,
            TimePart::Second => self.second_of_day = cursor.read_digits(2, 2)?,
            TimePart::ShortMonth => self.month = cursor.read_digits(1, 2)?,
            TimePart::ShortDay => self.day = cursor.read_digits(1, 2)?,
            TimePart::ShortHour => self.hour = cursor.read_digits(1, 2)?,
            TimePart::ShortMinute => self.minute = cursor.read_digits(1, 2)?,
            TimePart::ShortSecond => self.second_of_day = cursor.read_digits(1, 2)?,
            TimePart::Fraction(n) => {
                let digits = cursor.read_digits(usize::from(n), usize::from(n))?;
                self.fraction = digits * 10i64.pow(9 - u32::from(n));
            }
            TimePart::MonthName => self.month = cursor.name(&MONTHS)? as i64 + 1,
            TimePart::Weekday => self.weekday = Some(cursor.name(&WEEKDAYS)? as i32),
            TimePart::HalfDay => self.is_afternoon = cursor.half_day()?,
            TimePart::Offset => self.offset = Some(cursor.offset()?),
            TimePart::Year2 | TimePart::Literal(_) => {}
        }
        Ok(())
    }

    fn build_time(self) -> Result<DateAndTime, TimeFault> {
        let hour = match (self.half_days, self.hour) {
            (false, hour @ 0..=23) => hour,
            (false, _) => return Err(TimeFault::Hour),
            (true, hour @ 1..=12) => hour % 12 + if self.is_afternoon { 12 } else { 0 },
            (true, _) => return Err(TimeFault::HalfDayHour),
        };
        if self.minute > 59 {
            return Err(TimeFault::Minute);
        }
        // A leap second ends a day in UTC, and a quarter of an hour wherever clocks differ from it.
        if self.second_of_day > 60 || self.second_of_day == 60 && self.minute % 15 != 14 {
            return Err(TimeFault::Second);
        }
        if !(1..=12).contains(&self.month) {
            return Err(TimeFault::Month);
        }
        if days(self.year, 1, 1).is_none() {
            return Err(TimeFault::Year);
        }
        let day = match self.ordinal {
            Some(n) => day_of_year(self.year, n),
            None => days(self.year, self.month, self.day),
        };
        let days = day.ok_or(TimeFault::Day)?;
        // 1970 began on a Thursday.
        if self.weekday.is_some_and(|w| w != (days + 3).rem_euclid(7)) {
            return Err(TimeFault::Weekday);
        }
        let nanos = ((hour * 60 + self.minute) * 60 + self.second_of_day) * 1_000_000_000 + self.fraction;
        Ok(DateAndTime { days, nanos, offset: self.offset })
    }
}

/// Reads ISO 8601 with a date, a time of day and perhaps an offset: `2026-03-02T09:30:00.5+01:00`, `20260302T0930`,
/// with `T` or a blank.
fn read_iso(text: &[u8]) -> Result<DateAndTime, TimeFault> {
    let mut cursor = TimeCursor { unread_text: text };
    let mut read_parts = ReadParts { year: cursor.read_digits(4, 4)?, ..ReadParts::default() };
    let dashes = cursor.take_byte(b'-');
    read_parts.month = cursor.read_digits(2, 2)?;
    if dashes && !cursor.take_byte(b'-') {
        return Err(TimeFault::Form);
    }
    read_parts.day = cursor.read_digits(2, 2)?;
    if !cursor.take_byte(b'T') && !cursor.take_byte(b't') && !cursor.take_blanks() {
        return Err(TimeFault::Form);
    }
    read_parts.hour = cursor.read_digits(2, 2)?;
    let colons = cursor.take_byte(b':');
    read_parts.minute = cursor.read_digits(2, 2)?;
    let has_seconds = match colons {
        true => cursor.take_byte(b':'),
        false => cursor.unread_text.first().is_some_and(u8::is_ascii_digit),
    };
    if has_seconds {
        read_parts.second_of_day = cursor.read_digits(2, 2)?;
        if cursor.take_byte(b'.') || cursor.take_byte(b',') {
            read_parts.fraction = cursor.read_fraction_ns()?;
        }
    }
    if !cursor.unread_text.is_empty() {
        cursor.take_blanks();
        read_parts.offset = Some(cursor.offset()?);
    }
    if !cursor.unread_text.is_empty() {
        return Err(TimeFault::Form);
    }
    read_parts.build_time()
}

/// The part of a value that is not yet read.
struct TimeCursor<'t> {
    unread_text: &'t [u8],
}

impl TimeCursor<'_> {
    fn take_byte(&mut self, byte: u8) -> bool {
        let Some(rest) = self.unread_text.strip_prefix(&[byte]) else { return false };
        self.unread_text = rest;
        true
    }

    /// Takes blanks; returns false if there are no blanks.
    fn take_blanks(&mut self) -> bool {
        let length_before = self.unread_text.len();
        self.unread_text = self.unread_text.trim_ascii_start();
        self.unread_text.len() < length_before
    }

    fn read_digits(&mut self, least: usize, most: usize) -> Result<i64, TimeFault> {
        let run = self.unread_text.iter().take(most).take_while(|b| b.is_ascii_digit()).count();
        if run < least {
            return Err(TimeFault::Form);
        }
        let (digits, rest) = self.unread_text.split_at(run);
        self.unread_text = rest;
        Ok(digits.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')))
    }

    /// Nanoseconds of a fraction of any length.
    fn read_fraction_ns(&mut self) -> Result<i64, TimeFault> {
        let run = self.unread_text.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.unread_text.split_at(run);
        self.unread_text = rest;
        match run {
            0 => Err(TimeFault::Form),
            _ if run > FRACTION_DIGITS_MAX || digits.iter().skip(9).any(|b| *b != b'0') => {
                Err(TimeFault::Fraction)
            }
            _ => Ok((0..9).fold(0, |n, i| n * 10 + i64::from(digits.get(i).map_or(0, |b| b - b'0')))),
        }
    }

    /// Reads a name and returns its number: the whole name, its first three letters, or `Sept`.
    fn name(&mut self, names: &[&str]) -> Result<usize, TimeFault> {
        let run = self.unread_text.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let word_is = |word: &[u8]| {
            names.iter().position(|name| {
                word.eq_ignore_ascii_case(name.as_bytes())
                    || word.eq_ignore_ascii_case(&name.as_bytes()[..3])
                    || *name == "September" && word.eq_ignore_ascii_case(b"Sept")
            })
        };
        // A T may follow without a blank.
        let name_match = [run, run.saturating_sub(1)]
            .into_iter()
            .find_map(|n| Some((word_is(&self.unread_text[..n])?, n)));
        let (number, length) = name_match.ok_or(TimeFault::Form)?;
        self.unread_text = &self.unread_text[length..];
        Ok(number)
    }

    /// Reads AM or PM; returns whether it is PM.
    fn half_day(&mut self) -> Result<bool, TimeFault> {
        self.take_blanks();
        let words: [(&[u8], bool); 6] =
            [(b"A.M.", false), (b"P.M.", true), (b"AM", false), (b"PM", true), (b"A", false), (b"P", true)];
        for (word, is_afternoon) in words {
            if self.unread_text.get(..word.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(word)) {
                self.unread_text = &self.unread_text[word.len()..];
                return Ok(is_afternoon);
            }
        }
        Err(TimeFault::Form)
    }

    fn offset(&mut self) -> Result<i32, TimeFault> {
        let (seconds, length) = read_offset(self.unread_text).ok_or(TimeFault::Form)??;
        self.unread_text = &self.unread_text[length..];
        Ok(seconds)
    }
}

/// Digits of a fraction; those behind the ninth are zeros.
const FRACTION_DIGITS_MAX: usize = 18;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
