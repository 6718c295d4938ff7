//! Dates of the Gregorian calendar.

use std::fmt;

/// A second of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year, month, day.
    pub date: (u64, u64, u64),
    /// Hour, minute, second.
    pub time: (u64, u64, u64),
}

impl Civil {
    /// Returns the second of a time in milliseconds since 1970-01-01 UTC.
    pub fn of(unix_ms: u64) -> Self {
        let seconds = unix_ms / 1000;
        let second_of_day = seconds % 86_400;
        Self {
            date: date_of_day(seconds / 86_400),
            time: (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60),
        }
    }

    /// Formats the time to the minute for reports: `2026-11-21 02:43 UTC`.
    pub fn minute(&self) -> String {
        let ((year, month, day), (hour, minute, _)) = (self.date, self.time);
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
    }

    /// Formats the time for file names: `20261121-024500`.
    pub fn compact(&self) -> String {
        let ((year, month, day), (hour, minute, second)) = (self.date, self.time);
        format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
    }
}

/// Formats the time as in RFC 3339: `2026-11-21T02:45:00Z`.
impl fmt::Display for Civil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((year, month, day), (hour, minute, second)) = (self.date, self.time);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Returns the Gregorian date of a day since 1970-01-01. Years are counted from March, so that the
/// leap day is the last of its year; 400 years are 146,097 days.
fn date_of_day(day: u64) -> (u64, u64, u64) {
    // Days from 0000-03-01 to 1970-01-01.
    let day = day + 719_468;
    let era = day / 146_097;
    let day_of_era = day % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // The months from March on repeat in groups of five with 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_its_utc_date() {
        // The values are those of `date -u -d @SECONDS`.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_795_228_984, "2026-11-21T02:43:04Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Civil::of(seconds * 1000 + 999).to_string(), expected);
        }
    }

    #[test]
    fn the_compact_form_is_fit_for_a_file_name() {
        assert_eq!(Civil::of(951_782_399_999).compact(), "20000228-235959");
    }

    #[test]
    fn reports_give_the_minute() {
        let day = 86_400_000;
        for (unix_ms, expected) in [
            (0, "1970-01-01 00:00 UTC"),
            (59_999, "1970-01-01 00:00 UTC"),
            (day * 59 - 1, "1970-02-28 23:59 UTC"),
            (day * 789, "1972-02-29 00:00 UTC"),
            (day * 47_540, "2100-02-28 00:00 UTC"),
            (day * 47_541, "2100-03-01 00:00 UTC"),
            (1_795_833_600_000, "2026-11-28 02:40 UTC"),
        ] {
            assert_eq!(Civil::of(unix_ms).minute(), expected);
        }
    }
}
