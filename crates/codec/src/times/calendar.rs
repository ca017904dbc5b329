//! Days of the calendar.

/// Nanoseconds of a day.
pub const DAY_NANOS: i64 = 86_400_000_000_000;

/// Days since 1970-01-01 of a day that the calendar has, `None` of another. Years 1678 to 2261, which
/// nanoseconds can hold.
#[inline]
pub fn days(year: i64, month: i64, day: i64) -> Option<i32> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day < 1 || day > month_days || !(1678..=2261).contains(&year) {
        return None;
    }
    // The year starts in March, so that the leap day is the last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    i32::try_from(y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468).ok()
}

/// Converts days since 1970-01-01 to year, month and day.
pub fn civil(days: i32) -> (i64, i64, i64) {
    let z = i64::from(days) + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against a calendar that is wrong by a day around a leap year: it looks right for years.
    #[test]
    fn every_day_there_and_back() {
        let mut expected = days(1678, 1, 1).unwrap();
        for year in 1678..=2261 {
            for month in 1..=12 {
                for day in 1..=31 {
                    let Some(actual) = days(year, month, day) else { continue };
                    assert_eq!(actual, expected, "{year}-{month}-{day}");
                    assert_eq!(civil(actual), (year, month, day));
                    expected += 1;
                }
            }
        }
        assert_eq!(days(1970, 1, 1), Some(0));
        assert_eq!(days(2014, 2, 6), Some(16_107));
        assert_eq!(days(1900, 2, 29), None);
    }
}
