//! The text of a calendar, line by line.
//!
//! Columns are divided by commas, and no value has one; so there are no quotation marks. A byte order mark, CRLF, empty
//! lines and lines that begin with `#` are skipped. A line that comes again with the same values is no mistake.

use super::error::{CalendarError, CalendarFault};
use super::zone::ZoneTable;
use super::{
    Calendar, CalendarKey, CivilDate, ClockTime, CurrencyPair, DayKey, DayMark, PairTerms, SessionRoll,
};
use std::collections::BTreeMap;

pub(super) fn parse(text: &str) -> Result<Calendar, CalendarError> {
    let mut reader = CalendarReader::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut has_header = false;
    for (index, row) in text.lines().enumerate() {
        let line = index + 1;
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        let row_result = if has_header { reader.read_line(line, row) } else { check_header(row) };
        row_result.map_err(|fault| CalendarError { line, fault })?;
        has_header = true;
    }
    match has_header {
        true => Ok(reader.calendar),
        false => Err(CalendarError { line: 1, fault: CalendarFault::Empty }),
    }
}

fn check_header(row: &str) -> Result<(), CalendarFault> {
    match row == HEADER {
        true => Ok(()),
        false => Err(CalendarFault::Header { text: excerpt(row) }),
    }
}

/// The calendar so far, and the lines that it came from.
#[derive(Default)]
struct CalendarReader {
    calendar: Calendar,
    line_by_subject: BTreeMap<RowSubject, usize>,
    /// Indices of the calendar's zones, by the name that a line has.
    zone_by_name: BTreeMap<String, usize>,
}

/// The subject of a line: no two lines give one subject different values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RowSubject {
    Venue(CalendarKey),
    Day(DayKey),
    Pair(CurrencyPair),
}

/// A line by its columns, all but the first.
struct CalendarRow<'t> {
    kind: &'static str,
    key: &'t str,
    date: &'t str,
    time: &'t str,
    zone: &'t str,
    value: &'t str,
}

impl CalendarReader {
    fn read_line(&mut self, line: usize, text: &str) -> Result<(), CalendarFault> {
        let row = CalendarRow::parse(text)?;
        let (subject, is_same) = match row.kind {
            "venue" => self.read_venue(&row)?,
            "pair" => self.read_pair(&row)?,
            _ => self.read_day(&row)?,
        };
        let earlier = *self.line_by_subject.entry(subject).or_insert(line);
        match is_same {
            true => Ok(()),
            false => Err(CalendarFault::Conflict { earlier }),
        }
    }

    /// Reads the subject of a row, and whether no earlier line gives it another value.
    fn read_venue(&mut self, row: &CalendarRow<'_>) -> Result<(RowSubject, bool), CalendarFault> {
        let key =
            CalendarKey::from_mic(row.key).ok_or_else(|| CalendarFault::Mic { text: excerpt(row.key) })?;
        row.refuse_value("date", row.date)?;
        row.refuse_value("value", row.value)?;
        let roll = self.parse_roll(row)?;
        Ok((RowSubject::Venue(key), *self.calendar.venues.entry(key).or_insert(roll) == roll))
    }

    fn read_pair(&mut self, row: &CalendarRow<'_>) -> Result<(RowSubject, bool), CalendarFault> {
        let pair =
            CurrencyPair::parse(row.key).ok_or_else(|| CalendarFault::Pair { text: excerpt(row.key) })?;
        row.refuse_value("date", row.date)?;
        let roll = self.parse_roll(row)?;
        let is_plain = row.value.len() <= 2 && row.value.bytes().all(|b| b.is_ascii_digit());
        let lag = row.value.parse().ok().filter(|lag| is_plain && *lag <= LAG_MAX);
        let lag = lag.ok_or_else(|| CalendarFault::Lag { text: excerpt(row.value) })?;
        let terms = PairTerms { roll, lag };
        Ok((RowSubject::Pair(pair), *self.calendar.pairs.entry(pair).or_insert(terms) == terms))
    }

    fn read_day(&mut self, row: &CalendarRow<'_>) -> Result<(RowSubject, bool), CalendarFault> {
        let key = CalendarKey::mic_or_currency(row.key);
        let key = key.ok_or_else(|| CalendarFault::MicOrCurrency { text: excerpt(row.key) })?;
        let date = row.date.parse::<CivilDate>();
        let date = date.map_err(|_| CalendarFault::Date { text: excerpt(row.date) })?;
        row.refuse_value("zone", row.zone)?;
        row.refuse_value("value", row.value)?;
        let mark = if row.kind == "holiday" {
            row.refuse_value("time", row.time)?;
            DayMark::Holiday
        } else if row.time.is_empty() {
            DayMark::Half(None)
        } else {
            DayMark::Half(Some(row.parse_time()?))
        };
        let day = DayKey { key, date };
        Ok((RowSubject::Day(day), *self.calendar.days.entry(day).or_insert(mark) == mark))
    }

    fn parse_roll(&mut self, row: &CalendarRow<'_>) -> Result<SessionRoll, CalendarFault> {
        let time = row.parse_time()?;
        if row.zone.is_empty() {
            return Ok(SessionRoll::new(0, time));
        }
        let zone = match self.zone_by_name.get(row.zone) {
            Some(zone) => *zone,
            None => {
                let table = ZoneTable::by_name(row.zone);
                let table = table.ok_or_else(|| CalendarFault::Zone { text: excerpt(row.zone) })?;
                // Two spellings are one zone.
                let zone_index =
                    self.calendar.zone_tables.iter().position(|zone| zone.name() == table.name());
                let zone = zone_index.unwrap_or(self.calendar.zone_tables.len());
                if zone_index.is_none() {
                    self.calendar.zone_tables.push(table);
                }
                self.zone_by_name.insert(row.zone.to_owned(), zone);
                zone
            }
        };
        Ok(SessionRoll::new(zone, time))
    }
}

impl<'t> CalendarRow<'t> {
    fn parse(text: &'t str) -> Result<Self, CalendarFault> {
        if text.contains('"') {
            return Err(CalendarFault::Quoted);
        }
        let mut columns = [""; 6];
        let mut count = 0;
        for value in text.split(',') {
            if let Some(column) = columns.get_mut(count) {
                *column = value;
            }
            count += 1;
        }
        if count != columns.len() {
            return Err(CalendarFault::ColumnCount { count });
        }
        let [kind_text, key, date, time, zone, value] = columns;
        let kind = ["venue", "holiday", "half", "pair"].into_iter().find(|kind| *kind == kind_text);
        let kind = kind.ok_or_else(|| CalendarFault::RowKind { text: excerpt(kind_text) })?;
        Ok(Self { kind, key, date, time, zone, value })
    }

    fn parse_time(&self) -> Result<ClockTime, CalendarFault> {
        ClockTime::parse(self.time).ok_or_else(|| CalendarFault::Time { text: excerpt(self.time) })
    }

    /// Refuses a value in a column that the line does not have.
    fn refuse_value(&self, column: &'static str, text: &str) -> Result<(), CalendarFault> {
        match text.is_empty() {
            true => Ok(()),
            false => Err(CalendarFault::ExtraValue { kind: self.kind, column, text: excerpt(text) }),
        }
    }
}

/// Returns the start of a text, for a message.
fn excerpt(text: &str) -> String {
    let mut excerpt_text: String = text.chars().take(EXCERPT_CHARS).collect();
    if excerpt_text.len() < text.len() {
        excerpt_text.push('…');
    }
    excerpt_text
}

const HEADER: &str = "what,key,date,time,zone,value";

/// The greatest lag, in days.
const LAG_MAX: u8 = 10;

const EXCERPT_CHARS: usize = 40;
