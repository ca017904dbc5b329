//! Columns of times written in digits alone, `HHMMSSfff` or `YYYYMMDDHHMMSSfff`, as instants.

use super::rows::Rows;
use super::simd::Kernel;
use super::{Column, Decoder, Found, Lanes, Number};
use crate::fixed::text::Trim;
use crate::fixed::value::{DAY_NANOS, Value, days};
use crate::fixed::when::{Form, Holds, Zone};

/// Such a column.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    /// Where HHMMSS stands.
    pub start: usize,
    /// Digits of a second behind it.
    pub digits: usize,
    pub pad: u8,
    /// Blank is no value; otherwise it is a fault.
    pub blank: bool,
    /// YYYYMMDD stands before it.
    dated: bool,
    /// Column of the header that has the day.
    header: Option<u16>,
    zone: u16,
}

/// What instants of a day are counted from.
#[derive(Debug)]
pub(super) struct Day<'d> {
    zone: &'d mut Zone,
    /// Of the header's date.
    start: Option<i64>,
}

impl Clock {
    /// `None` where the form is another.
    pub(super) fn of(
        column: &Column,
        form: &Form,
        zone: u16,
        holds: Holds,
        header: Option<u16>,
    ) -> Option<Self> {
        let dated = holds == Holds::Both;
        let digits = usize::from(if dated { form.stamp_digits? } else { form.clock_digits? });
        let start = column.start() + if dated { 8 } else { 0 };
        let blank = column.trim != Trim::None;
        Some(Self { start, digits, pad: column.pad, blank, dated, header, zone })
    }

    /// A load takes 16 bytes.
    pub(super) fn reach(&self) -> usize {
        self.start + 16
    }

    pub(super) fn read<'b>(
        &self,
        kernel: Kernel,
        rows: impl Rows<'b>,
        day: Day<'_>,
        (values, scratch): (&mut Lanes, &mut Lanes),
        odd: &mut bool,
    ) -> Found {
        let mut odd_date = *odd;
        let mut found = kernel.clocks(self, rows, values, odd);
        if !self.dated {
            match day.start {
                Some(start) => values.iter_mut().for_each(|v| *v = v.wrapping_add(start)),
                // Its day is not known, or has a change of the clock in it.
                None => found.bad = u64::MAX,
            }
            return found;
        }
        let date = Number {
            start: self.start - 8,
            width: 8,
            pad: self.pad,
            leading: false,
            blank: self.blank,
            above: 0,
        };
        let dates = kernel.numbers(&date, rows, scratch, &mut odd_date);
        *odd |= odd_date;
        // Blank or not, but both.
        found.bad |= dates.bad | (dates.none ^ found.none);
        let (mut last, mut start) = (i64::MIN, None);
        for lane in 0..rows.count() {
            if scratch[lane] != last {
                last = scratch[lane];
                let on = days(last / 10_000, last / 100 % 100, last % 100);
                start = on.and_then(|on| day_start(on, day.zone));
            }
            match start {
                Some(start) => values[lane] += start,
                None if found.none >> lane & 1 == 1 => {}
                None => found.bad |= 1 << lane,
            }
        }
        found
    }
}

impl<'d> Day<'d> {
    pub(super) fn of(clock: &Clock, decoder: &'d mut Decoder) -> Self {
        let (_, header, zones) = decoder.around();
        let zone = &mut zones[usize::from(clock.zone)];
        let start = match clock.header.and_then(|h| header.get(usize::from(h))) {
            Some(Value::Date(days)) => day_start(*days, zone),
            _ => None,
        };
        Self { zone, start }
    }
}

/// Midnight of a day all of whose times have one offset.
fn day_start(days: i32, zone: &mut Zone) -> Option<i64> {
    let start = zone.day_start(days)?;
    start.checked_add(DAY_NANOS).map(|_| start)
}
