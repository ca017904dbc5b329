//! The codes of faults.

/// The code a fault is reported under, the same word in JSON, quarantine and the docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The record has fewer bytes than its layout says.
    ShortRecord,
    /// The record has more bytes than its layout says.
    LongRecord,
    /// No record of the layout has these selectors.
    UnknownRecord,
    /// A column that must have a value is blank.
    Missing,
    /// A number is not made of digits, or its sign is not of the form the layout says.
    BadNumber,
    /// A number is beyond 64 bits.
    NumberRange,
    /// A date that is none.
    BadDate,
    /// A time of day that is none, or that its zone leaves out on that day.
    BadTime,
    /// A flag is none of its values.
    BadFlag,
    /// A literal is not what the layout says.
    BadLiteral,
    /// The date that a time belongs to is not known.
    NoDate,
    /// Another number of records than the header or trailer says.
    RecordCount,
}

impl Code {
    /// The word for this code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::ShortRecord => "short_record",
            Code::LongRecord => "long_record",
            Code::UnknownRecord => "unknown_record",
            Code::Missing => "missing",
            Code::BadNumber => "bad_number",
            Code::NumberRange => "number_range",
            Code::BadDate => "bad_date",
            Code::BadTime => "bad_time",
            Code::BadFlag => "bad_flag",
            Code::BadLiteral => "bad_literal",
            Code::NoDate => "no_date",
            Code::RecordCount => "record_count",
        }
    }

    /// What is wrong with a value, in words behind it.
    pub(crate) const fn says(self) -> &'static str {
        match self {
            Code::Missing => "is blank and must not be",
            Code::BadNumber => "is no number of the form the layout says",
            Code::NumberRange => "is beyond 64 bits",
            Code::BadDate => "is no date",
            Code::BadTime => "is no time of that day",
            Code::BadFlag => "is none of the values of the flag",
            Code::BadLiteral => "is not what must stand there",
            _ => "has no date: what tells it is not there or not readable",
        }
    }
}
