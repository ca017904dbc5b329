//! Reasons for which a text is no date or time.

/// Why a text is no date or time of its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeFault {
    /// The text does not look like the form.
    Form,
    /// A month that there is not.
    Month,
    /// A day that the calendar does not have.
    Day,
    /// A year that nanoseconds since 1970 do not reach.
    Year,
    /// An hour that a day does not have.
    Hour,
    /// An hour that a clock with AM and PM does not have.
    HalfDayHour,
    /// A minute of 60 or more.
    Minute,
    /// A second of 61 or more, or of 60 where no leap second can be.
    Second,
    /// More places than nanoseconds have.
    Fraction,
    /// An offset that no place of the world has.
    Offset,
    /// A moment, or a count, that 64 bits of nanoseconds do not hold.
    Range,
    /// A count since midnight that is negative or passes the day.
    Midnight,
    /// The day of the week is another one.
    Weekday,
    /// A local time, and nothing says where.
    NoZone,
    /// Two of the forms read it, each as another time.
    TwoForms,
}

impl TimeFault {
    /// Returns the reason, in words that follow the value.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            TimeFault::Form => "does not have this form",
            TimeFault::Month => "has a month other than 1 to 12",
            TimeFault::Day => "has a day that the calendar does not have",
            TimeFault::Year => "has a year outside 1678 to 2261, which is what nanoseconds since 1970 hold",
            TimeFault::Hour => "has an hour other than 0 to 23",
            TimeFault::HalfDayHour => "has an hour other than 1 to 12, beside AM or PM",
            TimeFault::Minute => "has a minute other than 0 to 59",
            TimeFault::Second => "has a second other than 0 to 59, and no leap second can be there",
            TimeFault::Fraction => "has more decimals than nanoseconds",
            TimeFault::Offset => "has an offset from UTC of more than 14 hours, or of 60 minutes or more",
            TimeFault::Range => "is outside 1677 to 2262, which is what nanoseconds since 1970 hold",
            TimeFault::Midnight => "is no count since midnight of less than 24 hours",
            TimeFault::Weekday => "names another day of the week than its date has",
            TimeFault::NoZone => "has no offset from UTC, and neither its column nor the layout has a `zone`",
            TimeFault::TwoForms => "has two of the column's forms, and they give different times",
        }
    }
}
