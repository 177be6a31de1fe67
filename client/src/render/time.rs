//! Durations and ages for people.

/// Formats a duration with one unit: `0s`, `59s`, `5m`, `3h`, `2d`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Formats a duration with two units: `12s`, `3m 12s`, `2h 5m`, `3d 4h`.
pub fn precise(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// Formats the duration of a run: `40ms` below a second, then as `precise` does.
pub fn elapsed(ms: u64) -> String {
    if ms < 1000 { format!("{ms}ms") } else { precise(ms) }
}

/// Formats CPU time: `0.3s`, `59.9s`, then minutes and more.
pub fn cpu(ms: u64) -> String {
    match ms {
        0..60_000 => format!("{}.{}s", ms / 1000, ms / 100 % 10),
        _ => precise(ms).replace(' ', ""),
    }
}

/// Formats a duration exactly, in the largest unit that gives a whole number: `500ms`, `90s`, `2m`. The command line takes the
/// same format.
pub fn exact(ms: u64) -> String {
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    match units.into_iter().find(|(_, factor)| ms > 0 && ms.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{}{unit}", ms / factor),
        None => format!("{ms}ms"),
    }
}

/// Formats the time that has passed since a timestamp, or `-` if it is invalid.
pub fn ago(rfc3339: &str, now_ms: u64) -> String {
    unix_ms(rfc3339).map_or_else(|| "-".into(), |then| duration(now_ms.saturating_sub(then)))
}

/// Returns milliseconds since 1970 of `2026-11-16T03:28:50.123Z`, the only format that toold writes.
pub fn unix_ms(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':');
    let (hour, minute) = (time.next()?.parse::<i64>().ok()?, time.next()?.parse::<i64>().ok()?);
    let second = time.next()?.parse::<f64>().ok()?;
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute;
    u64::try_from(minutes * 60_000 + (second * 1000.0).round() as i64).ok()
}

/// Returns days since 1970-01-01. Years start in March here, so that the leap day is the last of a year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_have_the_documented_units_and_an_invalid_time_is_a_dash() {
        let shown: Vec<String> =
            [0, 59_999, 60_000, 3_599_000, 3_600_000, 86_400_000, 900_000_000].into_iter().map(duration).collect();
        assert_eq!(shown, ["0s", "59s", "1m", "59m", "1h", "1d", "10d"]);
        let shown: Vec<String> = [0, 500, 1000, 1500, 90_000, 120_000, 7_200_000].into_iter().map(exact).collect();
        assert_eq!(shown, ["0ms", "500ms", "1s", "1500ms", "90s", "2m", "2h"]);
        let shown: Vec<String> = [0, 59_999, 192_000, 7_500_000, 273_600_000].into_iter().map(precise).collect();
        assert_eq!(shown, ["0s", "59s", "3m 12s", "2h 5m", "3d 4h"]);
        assert_eq!([0, 349, 59_999, 192_000].map(cpu), ["0.0s", "0.3s", "59.9s", "3m12s"]);
        assert_eq!(ago("2026-11-16T03:28:50.123Z", 1_794_799_730_123 + 300_000), "5m");
        assert_eq!((ago("yesterday", 0), ago("2026-11-16T03:28:50.123Z", 0)), ("-".into(), "0s".into()));
    }

    proptest! {
        #[test]
        fn the_command_line_reads_an_exact_duration_back(ms in 0u64..200_000_000) {
            prop_assert_eq!(crate::args::duration_ms(&exact(ms)), Ok(ms));
        }

        #[test]
        fn every_time_that_the_daemon_writes_is_read_back(ms in 0u64..4_102_444_800_000) {
            prop_assert_eq!(unix_ms(&toold_proto::time::rfc3339(ms)), Some(ms));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "[0-9TZ:.-]{0,24}") {
            let _ = unix_ms(&text.chars().take(24).collect::<String>());
        }
    }
}
