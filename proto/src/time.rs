//! Times as text: RFC 3339, UTC, milliseconds, so that text order is time order.

/// Formats milliseconds since 1970 as `2026-11-16T03:28:50.123Z`.
pub fn rfc3339(ms: u64) -> String {
    // The year has four digits.
    let ms = ms.min(253_402_300_799_999);
    let (secs, milli) = (ms / 1000, ms % 1000);
    let (days, secs) = ((secs / 86_400) as i64, secs % 86_400);
    let (year, month, day) = civil(days);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let fields = [
        (0, 4, year as u64),
        (5, 2, month.into()),
        (8, 2, day.into()),
        (11, 2, secs / 3600),
        (14, 2, secs / 60 % 60),
        (17, 2, secs % 60),
        (20, 3, milli),
    ];
    for (at, digits, mut number) in fields {
        for place in text[at..at + digits].iter_mut().rev() {
            *place = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
    // By hand, because a list of a thousand processes has two thousand of these.
    String::from_utf8_lossy(&text).into_owned()
}

/// Converts a day number since 1970-01-01 to year, month and day. Years are counted from March, in eras of
/// 400 years, so that the leap day is the last day of a year.
fn civil(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn known_instants_have_the_dates_of_the_calendar() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_794_799_730_123), "2026-11-16T03:28:50.123Z");
        assert_eq!(rfc3339(4_102_444_799_999), "2099-12-31T23:59:59.999Z");
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59.999Z");
    }
}
