//! Parses durations, sizes, windows and pairs of the command line.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde_json::Value;
use toold_proto::enum_values::{EnumValue, EnumValues};
use toold_proto::pty::PtySize;

/// Parses a duration into milliseconds: `500ms`, `10s`, `2m`, `1h`, `1d`. A bare number is seconds.
pub fn duration_ms(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a duration: write 500ms, 10s, 2m, 1h or a number of seconds");
    let (number, unit) = split(text);
    let factor = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        // Anything else is a typing error.
        _ => return Err(wrong()),
    };
    scale(number, factor).ok_or_else(wrong)
}

/// Parses a size into bytes: `10K`, `512M`, `1G`, 1024-based. A bare number is bytes.
pub fn size_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size: write 10K, 512M, 1G or a number of bytes");
    let (number, unit) = split(text);
    let unit = unit.to_ascii_uppercase();
    let factor = match unit.trim_end_matches('B').trim_end_matches('I') {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        // Anything else is a typing error.
        _ => return Err(wrong()),
    };
    scale(number, factor).ok_or_else(wrong)
}

/// Parses percent of one CPU: `150%` or `150`.
pub fn percent(text: &str) -> Result<u64, String> {
    text.strip_suffix('%').unwrap_or(text).parse().map_err(|_| format!("`{text}` is not a percentage: write 150%"))
}

/// Parses a window: `ROWSxCOLS`.
pub fn window(text: &str) -> Result<PtySize, String> {
    let size = text.split_once('x').and_then(|(rows, cols)| {
        let (rows, cols) = (rows.parse().ok()?, cols.parse().ok()?);
        (rows > 0 && cols > 0).then_some(PtySize { rows, cols })
    });
    size.ok_or_else(|| format!("`{text}` is not a window: write ROWSxCOLS, as in 24x80"))
}

/// Parses a pair: `KEY=VALUE`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        // No `=`, or nothing before it.
        _ => Err(format!("`{text}` is not KEY=VALUE")),
    }
}

/// Parses a process's name. The daemon checks the rest, but older daemons accepted `@`, which has a meaning in `toolctl` only.
pub fn name(text: &str) -> Result<String, String> {
    if text.starts_with('@') {
        Err("a name must not begin with @: @last and @failed are found by toolctl".into())
    } else if text.starts_with('-') {
        Err("a name must not begin with -, as options do".into())
    } else {
        Ok(text.into())
    }
}

/// Builds a parser for an enum of the protocol. Errors and completions list its values with their meaning.
pub fn enum_value<T>() -> impl TypedValueParser<Value = T>
where
    T: EnumValues + DeserializeOwned + Clone + Send + Sync + 'static,
{
    let possible = |value: EnumValue| {
        let known = PossibleValue::new(value.name);
        match value.about {
            Some(about) => known.help(about),
            None => known,
        }
    };
    PossibleValuesParser::new(T::enum_values().into_iter().map(possible))
        .try_map(|name: String| serde_json::from_value::<T>(Value::String(name)))
}

/// Returns a help text followed by the values of an enum.
pub fn with_values<T: EnumValues>(help: &str) -> String {
    let names: Vec<String> = T::enum_values().into_iter().map(|value| value.name).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{help}: {} or {last}", others.join(", ")),
        Some(_) | None => help.to_owned(),
    }
}

/// Returns a signal's name as the daemon has it: `int`, `INT`, `SIGINT` and `2` are the same.
pub fn signal(text: &str) -> Result<String, String> {
    let upper = text.to_ascii_uppercase();
    let number = upper.parse::<usize>().ok();
    match number {
        Some(n) if (1..=SIGNALS.len()).contains(&n) => Ok(format!("SIG{}", SIGNALS[n - 1])),
        Some(n) => Err(format!("there is no signal {n}")),
        None if upper.starts_with("SIG") => Ok(upper),
        None => Ok(format!("SIG{upper}")),
    }
}

/// Reports whether it is a signal's name in capitals: `INT` or `SIGINT`.
pub fn is_signal(name: &str) -> bool {
    SIGNALS.contains(&name.strip_prefix("SIG").unwrap_or(name))
}

/// Linux's signals by number, from 1, on every architecture that toold is built for.
pub const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];

fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()))
}

/// Returns `number × factor`, rounded; whole numbers exactly. None if it is not a number, or too large.
fn scale(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let scaled = number.parse::<f64>().ok()? * factor as f64;
    (scaled < u64::MAX as f64).then_some(scaled.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_and_sizes_read_as_people_write_them() {
        for (text, ms) in [("10s", 10_000), ("500ms", 500), ("2m", 120_000), ("1h", 3_600_000), ("3", 3000), ("0", 0)] {
            assert_eq!(duration_ms(text), Ok(ms), "{text}");
        }
        assert_eq!((duration_ms("1.5s"), duration_ms("0.25")), (Ok(1500), Ok(250)));
        for (text, bytes) in
            [("512M", 512 << 20), ("1G", 1 << 30), ("10K", 10240), ("7", 7), ("1MiB", 1 << 20), ("2kb", 2048)]
        {
            assert_eq!(size_bytes(text), Ok(bytes), "{text}");
        }
        for text in
            ["", "s", "-1s", "10x", "1e3", ".5", "1.2.3s", "99999999999999999999", "18446744073709551615h", " 1"]
        {
            assert!(duration_ms(text).is_err(), "{text:?}");
            assert!(size_bytes(text).is_err() || text == "1e3", "{text:?}");
        }
    }

    #[test]
    fn windows_pairs_percentages_and_signals_are_parsed_or_refused() {
        assert_eq!(window("24x80"), Ok(PtySize { rows: 24, cols: 80 }));
        for text in ["24", "x80", "24x", "0x80", "24X80", "-1x2"] {
            assert!(window(text).is_err(), "{text}");
        }
        assert_eq!(pair("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert!(pair("=b").is_err() && pair("A").is_err());
        assert_eq!(name("a@b"), Ok("a@b".into()));
        assert!(name("@last").is_err() && name("@x").is_err());
        assert_eq!((percent("150%"), percent("50")), (Ok(150), Ok(50)));
        for text in ["int", "INT", "SIGINT", "sigint", "2"] {
            assert_eq!(signal(text), Ok("SIGINT".into()), "{text}");
        }
        assert!(signal("0").is_err() && signal("99").is_err());
    }

    proptest! {
        #[test]
        fn any_whole_number_of_any_unit_is_exact(n in 0u64..1_000_000_000) {
            for (unit, factor) in [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)] {
                prop_assert_eq!(duration_ms(&format!("{n}{unit}")), Ok(n * factor));
            }
        }

        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC{0,12}") {
            let _ = (duration_ms(&text), size_bytes(&text), window(&text), pair(&text), percent(&text), signal(&text));
        }
    }
}
