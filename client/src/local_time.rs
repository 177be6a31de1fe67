//! The clock, the local calendar, and points in time as they are typed.

use crate::args;
use crate::sys;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the current time in milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_millis() as u64)
}

/// Formats a date and a time of day with its zone: `Mon 2026-11-16 04:00:00 CET`.
pub fn date_time(unix_ms: u64) -> String {
    let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    let Some(at) = sys::local_time(unix_ms) else { return toold_proto::time::rfc3339(unix_ms) };
    let day = days.get(at.weekday as usize).copied().unwrap_or("");
    let [year, month, date, hour, minute, second] = at.fields;
    format!("{day} {year:04}-{month:02}-{date:02} {hour:02}:{minute:02}:{second:02} {}", at.zone)
}

/// Formats a local date and time to a tenth of a second: `2026-11-16 04:00:00.1`.
pub fn stamp(unix_ms: u64) -> String {
    let Some(at) = sys::local_time(unix_ms) else { return toold_proto::time::rfc3339(unix_ms) };
    let [year, month, date, hour, minute, second] = at.fields;
    format!("{year:04}-{month:02}-{date:02} {hour:02}:{minute:02}:{second:02}.{}", unix_ms % 1000 / 100)
}

/// A point in time as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeSpec {
    /// Milliseconds before now.
    Ago(u64),
    /// Milliseconds since 1970.
    At(u64),
    /// Year, month and day if they were given, then hour, minute and second, by the local clock.
    Local { date: Option<[i32; 3]>, time: [i32; 3] },
}

impl TimeSpec {
    /// Parses `10m`, `14:30`, `2026-11-16`, `2026-11-16 14:30:05`, or a time with an offset as RFC 3339 and `date -Is` have it.
    pub fn parse(text: &str) -> Result<TimeSpec, String> {
        let wrong = || {
            let how = "write 10m for ten minutes ago, 14:30, 2026-11-16, \"2026-11-16 14:30:05\" or 2026-11-16T14:30:05+02:00";
            format!("invalid time `{text}`: {how}")
        };
        if let Some(ms) = with_offset(text) {
            return Ok(TimeSpec::At(ms));
        }
        if let Ok(ms) = args::duration_ms(text) {
            return Ok(TimeSpec::Ago(ms));
        }
        let (date, time) = match text.split_once([' ', 'T']) {
            Some((date, time)) => (Some(date), Some(time)),
            None if text.contains(':') => (None, Some(text)),
            None => (Some(text), None),
        };
        let date = date.map(|date| numbers(date, '-', [1970, 1, 1], [9999, 12, 31]).ok_or_else(wrong)).transpose()?;
        let time = time.map_or(Some([0; 3]), |time| {
            let whole = if time.matches(':').count() == 1 { format!("{time}:00") } else { time.to_owned() };
            numbers(&whole, ':', [0; 3], [23, 59, 60])
        });
        Ok(TimeSpec::Local { date, time: time.ok_or_else(wrong)? })
    }

    /// Returns milliseconds since 1970. None for a time that the local calendar does not have.
    pub fn unix_ms(self, now_ms: u64) -> Option<u64> {
        match self {
            TimeSpec::Ago(ms) => Some(now_ms.saturating_sub(ms)),
            TimeSpec::At(ms) => Some(ms),
            TimeSpec::Local { date, time: [hour, minute, second] } => {
                let [year, month, day] = match date {
                    Some(date) => date,
                    None => sys::local_time(now_ms).map(|now| [now.fields[0], now.fields[1], now.fields[2]])?,
                };
                sys::unix_ms([year, month, day, hour, minute, second])
            }
        }
    }
}

/// Parses a date and a time with its offset from UTC into milliseconds since 1970: `Z`, `+02:00`, `+0200` or `+02`. Between
/// them stands a T or a space, and the seconds may have a fraction, as in the formats of `date`.
fn with_offset(text: &str) -> Option<u64> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let (time, offset) = rest.split_at(rest.rfind(['Z', 'z', '+', '-'])?);
    let offset_minutes = match (offset.get(..1)?, offset.get(1..)?) {
        ("Z" | "z", "") => 0,
        ("+", distance) => minutes(distance)?,
        ("-", distance) => -minutes(distance)?,
        // Anything else is not an offset.
        _ => return None,
    };
    let (time, fraction) = time.split_once(['.', ',']).unwrap_or((time, "0"));
    let fraction =
        fraction.bytes().all(|b| b.is_ascii_digit()).then(|| format!("0.{fraction}").parse::<f64>().ok())??;
    let whole = if time.matches(':').count() == 1 { format!("{time}:00") } else { time.to_owned() };
    let [year, month, day] = numbers(date, '-', [1970, 1, 1], [9999, 12, 31])?;
    let [hour, minute, second] = numbers(&whole, ':', [0; 3], [23, 59, 60])?;
    let utc = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
    let ms = crate::render::time::unix_ms(&utc)? + (fraction * 1000.0) as u64;
    ms.checked_add_signed(-offset_minutes * 60_000)
}

/// Parses the minutes of `02:00`, `0200` or `02`.
fn minutes(distance: &str) -> Option<i64> {
    let digits = match distance.split_once(':') {
        Some((hours, minutes)) if hours.len() == 2 => format!("{hours}{minutes}"),
        Some(_) => return None,
        None => distance.to_owned(),
    };
    let right = matches!(digits.len(), 2 | 4) && !distance.ends_with(':') && digits.bytes().all(|b| b.is_ascii_digit());
    let (hours, minutes) = right.then(|| digits.split_at(2))?;
    let minutes: i64 = if minutes.is_empty() { 0 } else { minutes.parse().ok()? };
    let hours: i64 = hours.parse().ok()?;
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}

/// Parses three numbers with upper limits.
fn numbers(text: &str, between: char, least: [i32; 3], most: [i32; 3]) -> Option<[i32; 3]> {
    let mut parts = text.split(between);
    let mut out = [0; 3];
    for (n, place) in out.iter_mut().enumerate() {
        let part = parts.next().filter(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))?;
        *place = part.parse().ok().filter(|value| (least[n]..=most[n]).contains(value))?;
    }
    parts.next().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read_as_people_type_them() {
        let local = |date, time| Ok(TimeSpec::Local { date, time });
        assert_eq!(TimeSpec::parse("10m"), Ok(TimeSpec::Ago(600_000)));
        assert_eq!(TimeSpec::parse("14:30"), local(None, [14, 30, 0]));
        assert_eq!(TimeSpec::parse("14:30:05"), local(None, [14, 30, 5]));
        assert_eq!(TimeSpec::parse("2026-11-16"), local(Some([2026, 11, 16]), [0, 0, 0]));
        assert_eq!(TimeSpec::parse("2026-11-16 14:30"), local(Some([2026, 11, 16]), [14, 30, 0]));
        assert_eq!(TimeSpec::parse("2026-11-16T14:30:05"), local(Some([2026, 11, 16]), [14, 30, 5]));
        assert_eq!(TimeSpec::parse("2026-11-16T03:28:50.123Z"), Ok(TimeSpec::At(1_794_799_730_123)));
        for wrong in ["", "soon", "25:00", "14:61", "2026-13-01", "2026-11", "14:30:05:06", "-1:00", "2026-11-16 x"] {
            assert!(TimeSpec::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_with_an_offset_is_that_moment_wherever_one_is() {
        let ten = 1_794_816_000_000; // 2026-11-16T08:00:00Z
        for text in [
            "2026-11-16T10:00:00+02:00",
            "2026-11-16 10:00:00+02:00",
            "2026-11-16T10:00+0200",
            "2026-11-16T10:00:00+02",
            "2026-11-16T05:30:00-02:30",
            "2026-11-16 08:00:00Z",
            "2026-11-16t08:00:00z",
            "2026-11-17T00:00:00+16:00",
        ] {
            assert_eq!(TimeSpec::parse(text), Ok(TimeSpec::At(ten)), "{text}");
        }
        assert_eq!(TimeSpec::parse("2026-11-16T10:00:00,123456789+02:00"), Ok(TimeSpec::At(ten + 123)));
        assert_eq!(TimeSpec::parse("2026-11-16T10:00:00.5+02:00"), Ok(TimeSpec::At(ten + 500)));
        for wrong in [
            "2026-11-16T10:00:00+2",
            "2026-11-16T10:00:00+02:60",
            "2026-11-16T10:00:00+02:00Z",
            "2026-11-16T25:00:00+02:00",
            "2026-11-16T10:00:00+0:200",
            "2026-11-16T10:00:00+24:00",
            "10:00+02:00",
        ] {
            let printed = TimeSpec::parse(wrong).expect_err(wrong);
            assert!(printed.contains("+02:00"), "an offset is shown: {printed}");
        }
    }

    #[test]
    fn a_time_of_day_is_today_s_and_a_duration_is_before_now() {
        let now = now_ms();
        assert_eq!((TimeSpec::Ago(5).unix_ms(now), TimeSpec::At(7).unix_ms(now)), (Some(now - 5), Some(7)));
        let midnight = TimeSpec::Local { date: None, time: [0, 0, 0] }.unix_ms(now).expect("a midnight");
        assert!(midnight <= now && now - midnight < 26 * 3_600_000, "{midnight}");
    }

    proptest! {
        #[test]
        fn a_local_time_is_read_back(seconds in 1_000_000_000u64..4_000_000_000) {
            let ms = seconds * 1000;
            let at = sys::local_time(ms).expect("a local time");
            // An hour that occurs twice a year may be the other one of the two.
            let back = sys::unix_ms(at.fields).expect("a time");
            prop_assert!(back.abs_diff(ms) <= 3_600_000);
            let text = date_time(ms);
            prop_assert_eq!(TimeSpec::parse(&text[4..23]).map(|when| when.unix_ms(0)), Ok(Some(back)));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9TZ :.,+-]{0,28}") {
            let _ = TimeSpec::parse(&text).map(|when| when.unix_ms(0));
        }
    }
}
