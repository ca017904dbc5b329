//! Dates and times as files write them: one language of forms for every format.
//!
//! ```text
//! "DD-MMM-YYYY HH:MM AM" ──TimeForm::parse──▶ parts
//! "02-Mar-2026 09:30 PM" ──TimeForm::read───▶ day, time of day, offset ──CachedTimeZone::utc──▶ UTC nanoseconds
//! ```
//!
//! A layout or a mapping names the form of a column. A value has this form, or it is refused with a [`TimeFault`];
//! nothing is guessed. `docs/time-forms.md` has the language.

pub(crate) mod calendar;
mod count;
mod fault;
mod form;
mod offset;
mod read;
pub mod suggest;
#[cfg(test)]
mod tests;
mod zone;

pub use count::since_1970;
pub use fault::TimeFault;
pub(crate) use form::{TimeForm, TimeFormKind, TimeFormOptions};
pub use form::{WrittenTime, time_form};
pub(crate) use read::DateAndTime;
pub use zone::AmbiguousTimes;
pub use zone::midnight;
pub(crate) use zone::{CachedTimeZone, LocalTimeFault};
