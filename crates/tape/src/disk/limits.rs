//! The retention limits of a tape, as its state page stores them.

use std::time::Duration;

use crate::error::{Error, Result};

/// The limits on the size and age of a tape. Retention removes nothing if all limits are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionLimits {
    /// About this much of its end, in whole segments.
    pub bytes: Option<u64>,
    /// Segments finished within this time.
    pub age: Option<Duration>,
    /// Keeps segments finished on this many last days of UTC; today is one of them.
    pub days: Option<u32>,
    /// How long removal is announced before it happens.
    pub notice_period: Duration,
    /// Named cursors hold their unread part of the tape, but at most this many bytes before the tape's end.
    pub hold_for_cursors: Option<u64>,
}

impl Default for RetentionLimits {
    fn default() -> Self {
        Self {
            bytes: None,
            age: None,
            days: None,
            notice_period: Duration::from_secs(1),
            hold_for_cursors: None,
        }
    }
}

impl RetentionLimits {
    /// Returns whether any limit removes segments.
    pub fn is_limited(&self) -> bool {
        self.bytes.is_some() || self.is_timed()
    }

    pub(crate) fn is_timed(&self) -> bool {
        self.age.is_some() || self.days.is_some()
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self.days {
            Some(0) => Err(Error::Option("retention keeps at least 1 day")),
            _ => Ok(()),
        }
    }
}
