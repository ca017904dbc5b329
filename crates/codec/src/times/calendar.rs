//! Days of the calendar that nanoseconds can hold.

use unitape_model::calendar::{days_from_civil, days_of_month};

/// Nanoseconds of a day.
pub const DAY_NANOS: i64 = 86_400_000_000_000;

/// Days since 1970-01-01 of a day that the calendar has, `None` of another. Years 1678 to 2261, which
/// nanoseconds can hold.
#[inline]
pub fn days(year: i64, month: i64, day: i64) -> Option<i32> {
    let is_day = day >= 1 && day <= days_of_month(year, month) && (1678..=2261).contains(&year);
    is_day.then(|| days_from_civil(year, month, day) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unitape_model::calendar::civil_from_days;

    /// Guards against a calendar that is wrong by a day around a leap year: it looks right for years.
    #[test]
    fn every_day_there_and_back() {
        let mut expected = days(1678, 1, 1).unwrap();
        for year in 1678..=2261 {
            for month in 1..=12 {
                for day in 1..=31 {
                    let Some(actual) = days(year, month, day) else { continue };
                    assert_eq!(actual, expected, "{year}-{month}-{day}");
                    assert_eq!(civil_from_days(actual.into()), (year, month, day));
                    expected += 1;
                }
            }
        }
        assert_eq!(days(1970, 1, 1), Some(0));
        assert_eq!(days(2014, 2, 6), Some(16_107));
        assert_eq!(days(1900, 2, 29), None);
    }
}
