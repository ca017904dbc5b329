//! The session dates of venues.

use std::sync::Arc;
use unitape_model::{
    Calendar, CalendarError, CivilDate, DayKind, Dictionary, NameKind, SessionClock, UnixNanos,
};

/// The calendar of a watch, which is a part of its rules.
#[derive(Clone, Debug, Default)]
pub struct WatchCalendar {
    calendar_text: Arc<str>,
    calendar: Arc<Calendar>,
}

impl WatchCalendar {
    /// Reads a calendar. Its form is that of [`Calendar::parse`].
    ///
    /// # Errors
    /// Fails as [`Calendar::parse`] does.
    pub fn parse(text: &str) -> Result<Self, CalendarError> {
        Ok(Self { calendar_text: text.into(), calendar: Arc::new(Calendar::parse(text)?) })
    }

    pub(crate) fn calendar(&self) -> Arc<Calendar> {
        self.calendar.clone()
    }

    /// Returns 16 hexadecimal digits of BLAKE3 over the text, or none if there is no calendar.
    pub fn hash(&self) -> Option<String> {
        (!self.calendar_text.is_empty())
            .then(|| crate::params::hex_digits(&blake3::hash(self.calendar_text.as_bytes())))
    }
}

impl PartialEq for WatchCalendar {
    fn eq(&self, other: &Self) -> bool {
        self.calendar_text == other.calendar_text
    }
}

/// A venue that is closed for longer has no next trading day.
const DAYS_CLOSED_MAX: usize = 3_660;

/// The session date of each venue, by its id.
pub(crate) struct SessionDates {
    calendar: Arc<Calendar>,
    clocks: Vec<Option<SessionClock>>,
}

impl SessionDates {
    pub fn new(calendar: Arc<Calendar>) -> Self {
        Self { calendar, clocks: Vec::new() }
    }

    /// Returns the session date at `ts` of a venue; without a venue, or a line in the calendar, it is the date in UTC.
    #[inline]
    pub fn date(&mut self, venue: u16, ts: UnixNanos, names: &Dictionary) -> CivilDate {
        match self.clocks.get_mut(usize::from(venue)) {
            Some(Some(clock)) => clock.session_date(ts).0,
            _ => self.first_date(venue, ts, names),
        }
    }

    #[cold]
    fn first_date(&mut self, venue: u16, ts: UnixNanos, names: &Dictionary) -> CivilDate {
        let name = names.name(NameKind::Venue, venue.into()).unwrap_or_default();
        let mut clock = SessionClock::new(self.calendar.clone(), name);
        let date = clock.session_date(ts).0;
        let index = usize::from(venue);
        if self.clocks.len() <= index {
            self.clocks.resize(index + 1, None);
        }
        self.clocks[index] = Some(clock);
        date
    }

    /// Returns the next trading day of a venue after `date`: Monday to Friday where the calendar has no other word.
    pub fn trading_day_after(&self, venue: &str, date: CivilDate) -> CivilDate {
        let is_open =
            |date: &CivilDate| matches!(self.calendar.day_kind(venue, *date), DayKind::Open | DayKind::Half);
        let following = std::iter::successors(Some(date.following()), |date| Some(date.following()));
        following.take(DAYS_CLOSED_MAX).find(is_open).unwrap_or(date.following())
    }

    /// Forgets the names of venues.
    pub fn reset(&mut self) {
        self.clocks.clear();
    }
}
