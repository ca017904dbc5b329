//! Why a value or an event was refused.

use crate::num::NumberFault;

/// Why a value or an event was refused; the code goes into quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Not a number.
    #[error("not a decimal number")]
    BadDecimal,
    /// A number the field cannot hold exactly.
    #[error("decimal does not fit the field exactly")]
    DecimalFit,
    /// Not an unsigned integer, or one beyond 64 bits.
    #[error("not an unsigned integer of 64 bits")]
    BadInteger,
    /// Not one of the values the field may have.
    #[error("not one of the values of the field")]
    BadValue,
    /// Text that is not UTF-8.
    #[error("text is not UTF-8")]
    NotUtf8,
    /// A name that is empty or longer than 255 bytes.
    #[error("a name of 1 to 255 bytes is needed")]
    NameLength,
    /// A time that cannot be read or is out of range.
    #[error("not a time")]
    BadTime,
    /// A value of the wrong type for the field (a list for a number, say).
    #[error("wrong sort of value for the field")]
    WrongSort,
    /// A field without which the event means nothing.
    #[error("field missing")]
    Missing,
    /// The event would pass 4 MiB.
    #[error("event longer than 4 MiB")]
    TooLarge,
    /// A second venue or bank of one quote.
    #[error("a quote has one bank and one venue at most")]
    TwoPublishers,
    /// A bank at a venue, one of which has an `@` in its name.
    #[error("a bank at a venue is one publisher, BANK@VENUE: neither may have an @ in its name")]
    PublisherName,
    /// No more ids in this dictionary.
    #[error("dictionary full")]
    DictionaryFull,
    /// An instrument that the reference data does not have, where it must have all.
    #[error("no instrument of the reference data")]
    UnknownInstrument,
}

impl Refusal {
    /// Returns the word that quarantine events carry.
    pub const fn code(self) -> &'static str {
        match self {
            Self::BadDecimal => "bad_decimal",
            Self::DecimalFit => "decimal_fit",
            Self::BadInteger => "bad_integer",
            Self::BadValue => "bad_value",
            Self::NotUtf8 => "not_utf8",
            Self::NameLength => "name_length",
            Self::BadTime => "bad_time",
            Self::WrongSort => "wrong_sort",
            Self::Missing => "missing",
            Self::TooLarge => "too_large",
            Self::TwoPublishers => "two_publishers",
            Self::PublisherName => "publisher_name",
            Self::DictionaryFull => "dict_full",
            Self::UnknownInstrument => "unknown_instrument",
        }
    }
}

impl From<NumberFault> for Refusal {
    fn from(e: NumberFault) -> Self {
        match e {
            NumberFault::Malformed => Self::BadDecimal,
            NumberFault::DoesNotFit => Self::DecimalFit,
        }
    }
}
