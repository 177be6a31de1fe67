//! Time as it is called here: the clock, the local calendar, and points in time that people type.

use crate::args;
use crate::sys;
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, now.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_millis() as u64)
}

/// A date and a time of day with its zone: `Mon 2026-11-16 04:00:00 CET`.
pub fn date_time(unix_ms: u64) -> String {
    let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    let Some(at) = sys::local(unix_ms) else { return toold_proto::time::rfc3339(unix_ms) };
    let day = days.get(at.weekday as usize).copied().unwrap_or("");
    let [year, month, date, hour, minute, second] = at.fields;
    format!("{day} {year:04}-{month:02}-{date:02} {hour:02}:{minute:02}:{second:02} {}", at.zone)
}

/// A point in time as a person types it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So many milliseconds before now.
    Ago(u64),
    /// Milliseconds since 1970.
    At(u64),
    /// Year, month and day if they were given, then hour, minute and second, by the local clock.
    Local { date: Option<[i32; 3]>, time: [i32; 3] },
}

impl When {
    /// `10m`, `14:30`, `2026-11-16`, `2026-11-16 14:30:05`, or RFC 3339 in UTC.
    pub fn parse(text: &str) -> Result<When, String> {
        let wrong =
            || format!("`{text}` is no time: write 10m for so long ago, 14:30, 2026-11-16 or \"2026-11-16 14:30:05\"");
        if let Some(ms) = text.ends_with('Z').then(|| crate::render::time::unix_ms(text)).flatten() {
            return Ok(When::At(ms));
        }
        if let Ok(ms) = args::duration_ms(text) {
            return Ok(When::Ago(ms));
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
        Ok(When::Local { date, time: time.ok_or_else(wrong)? })
    }

    /// Milliseconds since 1970. None for a time that the local calendar does not have.
    pub fn unix_ms(self, now_ms: u64) -> Option<u64> {
        match self {
            When::Ago(ms) => Some(now_ms.saturating_sub(ms)),
            When::At(ms) => Some(ms),
            When::Local { date, time: [hour, minute, second] } => {
                let [year, month, day] = match date {
                    Some(date) => date,
                    None => sys::local(now_ms).map(|now| [now.fields[0], now.fields[1], now.fields[2]])?,
                };
                sys::unix_ms([year, month, day, hour, minute, second])
            }
        }
    }
}

/// Three numbers between bounds.
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
        let local = |date, time| Ok(When::Local { date, time });
        assert_eq!(When::parse("10m"), Ok(When::Ago(600_000)));
        assert_eq!(When::parse("14:30"), local(None, [14, 30, 0]));
        assert_eq!(When::parse("14:30:05"), local(None, [14, 30, 5]));
        assert_eq!(When::parse("2026-11-16"), local(Some([2026, 11, 16]), [0, 0, 0]));
        assert_eq!(When::parse("2026-11-16 14:30"), local(Some([2026, 11, 16]), [14, 30, 0]));
        assert_eq!(When::parse("2026-11-16T14:30:05"), local(Some([2026, 11, 16]), [14, 30, 5]));
        assert_eq!(When::parse("2026-11-16T03:28:50.123Z"), Ok(When::At(1_794_799_730_123)));
        for wrong in ["", "soon", "25:00", "14:61", "2026-13-01", "2026-11", "14:30:05:06", "-1:00", "2026-11-16 x"] {
            assert!(When::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_of_day_is_today_s_and_a_duration_is_before_now() {
        let now = now_ms();
        assert_eq!((When::Ago(5).unix_ms(now), When::At(7).unix_ms(now)), (Some(now - 5), Some(7)));
        let midnight = When::Local { date: None, time: [0, 0, 0] }.unix_ms(now).expect("a midnight");
        assert!(midnight <= now && now - midnight < 26 * 3_600_000, "{midnight}");
    }

    proptest! {
        #[test]
        fn what_the_local_clock_says_is_read_back(seconds in 1_000_000_000u64..4_000_000_000) {
            let ms = seconds * 1000;
            let at = sys::local(ms).expect("a local time");
            // An hour that comes twice a year may be the other one of the two.
            let back = sys::unix_ms(at.fields).expect("a time");
            prop_assert!(back.abs_diff(ms) <= 3_600_000);
            let text = date_time(ms);
            prop_assert_eq!(When::parse(&text[4..23]).map(|when| when.unix_ms(0)), Ok(Some(back)));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[0-9TZ :.-]{0,24}") {
            let _ = When::parse(&text).map(|when| when.unix_ms(0));
        }
    }
}
