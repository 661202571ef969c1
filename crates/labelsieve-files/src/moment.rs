//! Timestamps as text: RFC 3339, UTC, with microseconds. Their alphabetical order is their order in time.

/// Formats a number of microseconds since 1970.
pub fn rfc3339(micros: u64) -> String {
    rfc3339_of(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// As [`rfc3339`], also for times before 1970.
pub fn rfc3339_of(micros: i64) -> String {
    let seconds = micros.div_euclid(1_000_000);
    let micros = micros.rem_euclid(1_000_000);
    let days = seconds.div_euclid(86_400);
    let second = seconds.rem_euclid(86_400);
    let (year, month, day) = date_of(days);
    let hour = second / 3600;
    let minute = second / 60 % 60;
    let second = second % 60;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Year, month and day of a number of days since 1970. Years are counted from March, so that a leap day comes last.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468; // since March of the year 0
    let era = days.div_euclid(146_097); // of 400 years
    let day = days.rem_euclid(146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = 400 * era + year;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_written_as_date_prints_them() {
        // date -u -d @SECONDS +%FT%T
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399, "2000-02-28T23:59:59.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_767_225_599, "2025-12-31T23:59:59.000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000), expected);
        }
        assert_eq!(rfc3339(1_000_001), "1970-01-01T00:00:01.000001Z");
        assert_eq!(date_of(-1), (1969, 12, 31));
    }
}
