//! Points in time as other tools write them.

/// A time of RFC 3339, or of ISO 8601 without a zone (taken as UTC), in UTC with microseconds: such texts sort by time.
/// Anything else stays as it is.
pub(super) fn normalised(text: &str) -> String {
    parse(text.trim()).unwrap_or_else(|| text.trim().to_owned())
}

/// Whether a text is a time in the form that imported decisions have: RFC 3339, in UTC.
pub fn is_moment(text: &str) -> bool {
    parse(text).is_some_and(|parsed| parsed == text)
}

fn parse(text: &str) -> Option<String> {
    if !text.is_ascii() || text.len() < 19 {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
    };
    let bytes = text.as_bytes();
    let has = |at: usize, allowed: &[u8]| allowed.contains(&bytes[at]);
    if !(has(4, b"-") && has(7, b"-") && has(10, b"Tt ") && has(13, b":") && has(16, b":")) {
        return None;
    }
    let year = number(0, 4)?;
    let month = number(5, 7)?;
    let day = number(8, 10)?;
    let hour = number(11, 13)?;
    let minute = number(14, 16)?;
    let second = number(17, 19)?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut micros = String::from("000000");
    let mut rest = &text[19..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let n = fraction.bytes().take_while(u8::is_ascii_digit).count();
        micros = format!("{:0<6}", &fraction[..n.min(6)]);
        rest = &fraction[n..];
    }
    let offset = match rest.as_bytes() {
        [] | [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), zone @ ..] => {
            let zone: String =
                zone.iter().filter(|&&byte| byte != b':').map(|&byte| char::from(byte)).collect();
            let zone: i64 = Some(zone).filter(|zone| zone.len() == 4)?.parse().ok()?;
            (zone / 100 * 60 + zone % 100) * if *sign == b'-' { -60 } else { 60 }
        }
        _ => return None,
    };
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    let days = seconds.div_euclid(86_400);
    let of_day = seconds.rem_euclid(86_400);
    let (year, month, day) = date_of(days);
    let hour = of_day / 3600;
    let minute = of_day / 60 % 60;
    let second = of_day % 60;
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros}Z"))
}

/// Days of the Gregorian calendar. Years begin in March here, so that the leap day is the last one.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days_before_month = (153 * month + 2) / 5; // months of 31, 30, 31, 30, 31 days from March on
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + days_before_month + day
        - 719_469
}

/// The inverse: from a year that is too early up to the right one.
fn date_of(days: i64) -> (i64, i64, i64) {
    let mut year = 1970 + days.div_euclid(if days < 0 { 365 } else { 366 });
    while days_since_1970(year + 1, 1, 1) <= days {
        year += 1;
    }
    let month = (1..=12).rev().find(|&month| days_since_1970(year, month, 1) <= days).unwrap_or(1);
    (year, month, days - days_since_1970(year, month, 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(normalised(text), expected);
    }

    #[test]
    fn times_come_out_in_utc_with_microseconds() {
        check("2021-03-09T22:16:08.746926Z", "2021-03-09T22:16:08.746926Z");
        check("2021-03-09T22:16:08Z", "2021-03-09T22:16:08.000000Z");
        check("2021-03-09 22:16:08.5", "2021-03-09T22:16:08.500000Z");
        check("2024-03-01T00:30:00+01:00", "2024-02-29T23:30:00.000000Z");
        check("1999-12-31T23:59:59.1234567-0100", "2000-01-01T00:59:59.123456Z");
        check(" yesterday ", "yesterday");
        assert!(is_moment(&normalised("2021-03-09 22:16:08")));
        assert!(!is_moment("12/31/2025 10:00") && !is_moment(""));
        check("2021-13-09T22:16:08Z", "2021-13-09T22:16:08Z");
    }

    #[test]
    fn days_and_dates_are_each_others_inverse() {
        assert_eq!(days_since_1970(1970, 1, 1), 0);
        assert_eq!(days_since_1970(2000, 3, 1), 11_017);
        for days in (-800_000..800_000).step_by(37) {
            let (year, month, day) = date_of(days);
            assert_eq!(days_since_1970(year, month, day), days);
            assert!((1..=12).contains(&month) && (1..=31).contains(&day));
        }
    }
}
