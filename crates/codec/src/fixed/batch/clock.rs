//! Columns of times written in digits alone, `HHMMSSfff` or `YYYYMMDDHHMMSSfff`, as instants.

use super::rows::RecordBatch;
use super::simd::BatchKernel;
use super::{ColumnLayout, DigitColumn, FixedWidthDecoder, LaneBuffers, LaneFaults};
use crate::fixed::text::TrimSide;
use crate::fixed::value::ColumnValue;
use crate::times::calendar::{DAY_NANOS, days};
use crate::times::{CachedTimeZone, TimeForm, TimeFormKind};

/// Such a column.
#[derive(Debug, Clone)]
pub(super) struct ClockColumn {
    /// Where HHMMSS is.
    pub column_start: usize,
    /// Digits of a second after it.
    pub fraction_digits: usize,
    pub pad: u8,
    /// Blank is no value; otherwise it is a fault.
    pub allows_blank: bool,
    /// YYYYMMDD is before it.
    has_date: bool,
    /// Column of the header that has the day.
    header: Option<u16>,
    zone_index: u16,
}

/// The origin from which instants of a day are counted.
#[derive(Debug)]
pub(super) struct DayOrigin<'d> {
    zone: &'d mut CachedTimeZone,
    /// Start of the header's date.
    header_day_ns: Option<i64>,
}

impl ClockColumn {
    /// Makes a clock column; `None` if `form` needs the general way.
    pub(super) fn from_column(
        column: &ColumnLayout,
        form: &TimeForm,
        zone: u16,
        holds: TimeFormKind,
        header: Option<u16>,
    ) -> Option<Self> {
        let has_date = holds == TimeFormKind::Both;
        let digits = usize::from(if has_date { form.stamp_digits? } else { form.clock_digits? });
        let clock_start = column.start() + if has_date { 8 } else { 0 };
        let allows_blank = column.trim != TrimSide::None;
        Some(Self {
            column_start: clock_start,
            fraction_digits: digits,
            pad: column.pad,
            allows_blank,
            has_date,
            header,
            zone_index: zone,
        })
    }

    /// Returns the end of the 16 bytes that a load reads.
    pub(super) fn bytes_needed(&self) -> usize {
        self.column_start + 16
    }

    pub(super) fn read_lanes<'b>(
        &self,
        kernel: BatchKernel,
        rows: impl RecordBatch<'b>,
        day: DayOrigin<'_>,
        buffers: LaneBuffers<'_>,
    ) -> LaneFaults {
        let LaneBuffers { lane_values: values, scratch, has_odd_values: odd } = buffers;
        let mut odd_date = *odd;
        let mut faults = kernel.read_clocks(self, rows, values, odd);
        if !self.has_date {
            match day.header_day_ns {
                Some(start) => values.iter_mut().for_each(|v| *v = v.wrapping_add(start)),
                // Its day is not known, or has a change of the clock in it.
                None => faults.bad_lanes = u64::MAX,
            }
            return faults;
        }
        let date = DigitColumn {
            column_start: self.column_start - 8,
            digit_count: 8,
            pad: self.pad,
            may_be_padded: false,
            allows_blank: self.allows_blank,
            extra_digits: 0,
        };
        let dates = kernel.read_numbers(&date, rows, scratch, &mut odd_date);
        *odd |= odd_date;
        // Blank or not, but both.
        faults.bad_lanes |= dates.bad_lanes | (dates.empty ^ faults.empty);
        let (mut last, mut start) = (i64::MIN, None);
        for lane in 0..rows.count() {
            if scratch[lane] != last {
                last = scratch[lane];
                let epoch_day = days(last / 10_000, last / 100 % 100, last % 100);
                start = epoch_day.and_then(|epoch_day| day_start(epoch_day, day.zone));
            }
            match start {
                Some(start) => values[lane] += start,
                None if faults.empty >> lane & 1 == 1 => {}
                None => faults.bad_lanes |= 1 << lane,
            }
        }
        faults
    }
}

impl<'d> DayOrigin<'d> {
    pub(super) fn from_clock(clock: &ClockColumn, decoder: &'d mut FixedWidthDecoder) -> Self {
        let (_, header, zones) = decoder.context();
        let zone = &mut zones[usize::from(clock.zone_index)];
        let day_start_ns = match clock.header.and_then(|h| header.get(usize::from(h))) {
            Some(ColumnValue::Date(days)) => day_start(*days, zone),
            _ => None,
        };
        Self { zone, header_day_ns: day_start_ns }
    }
}

/// Returns the midnight of a day, if all times of the day have one offset.
fn day_start(days: i32, zone: &mut CachedTimeZone) -> Option<i64> {
    let start = zone.day_start(days)?;
    start.checked_add(DAY_NANOS).map(|_| start)
}
