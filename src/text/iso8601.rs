//! Dates and times as text.

/// What the integer of a date or time counts, from the beginning of 1970 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Days,
    /// Milliseconds, of which only the day counts.
    DayMillis,
    /// Seconds or parts of a second, with this many digits after the point; of UTC or of an unknown time zone.
    Parts {
        digits: u32,
        utc: bool,
    },
}

const DAY_SECONDS: i64 = 86_400;

/// A date or time in the notation of ISO 8601, without needless digits.
pub(crate) fn iso(value: i64, unit: Unit) -> String {
    let (digits, utc) = match unit {
        Unit::Days => return date(value),
        Unit::DayMillis => return date(value.div_euclid(1000 * DAY_SECONDS)),
        Unit::Parts { digits, utc } => (digits, utc),
    };
    let whole = 10i64.pow(digits);
    let (seconds, part) = (value.div_euclid(whole), value.rem_euclid(whole));
    let (day, second) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let mut text = format!("{}T{:02}:{:02}:{:02}", date(day), second / 3600, second / 60 % 60, second % 60);
    if part > 0 {
        let part = format!(".{part:0width$}", width = digits as usize);
        text += part.trim_end_matches('0');
    }
    if utc {
        text.push('Z');
    }
    text
}

/// The date of a day, counted from the beginning of 1970 on.
fn date(day: i64) -> String {
    // Years begin in March here, so that the day that not every year has is the last.
    let day = day.saturating_add(719_468);
    let (cycle, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let century = (day / 36_524).min(3);
    let day = day - century * 36_524;
    let (fours, day) = (day / 1461, day % 1461);
    let year = (day / 365).min(3);
    let day = day - year * 365;
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = 400 * cycle + 100 * century + 4 * fours + year + i64::from(month >= 10);
    format!("{year:04}-{:02}-{day:02}", (month + 2) % 12 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_those_of_the_calendar() {
        for (day, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (-25_509, "1900-02-28"),
            (-25_508, "1900-03-01"),
            (20_819, "2027-01-01"),
            (-719_162, "0001-01-01"),
        ] {
            assert_eq!(iso(day, Unit::Days), text);
            assert_eq!(iso(day * 86_400_000 + 5, Unit::DayMillis), text);
        }
        let parts = |digits, utc| Unit::Parts { digits, utc };
        assert_eq!(iso(1_600_000_000, parts(0, false)), "2020-09-13T12:26:40");
        assert_eq!(iso(1_600_000_000_120, parts(3, true)), "2020-09-13T12:26:40.12Z");
        assert_eq!(iso(-1, parts(9, false)), "1969-12-31T23:59:59.999999999");
        for value in [i64::MIN, i64::MAX] {
            for unit in [Unit::Days, Unit::DayMillis, parts(0, true), parts(9, true)] {
                assert!(!iso(value, unit).is_empty());
            }
        }
    }
}
