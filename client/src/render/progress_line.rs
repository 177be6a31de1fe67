//! Progress line that is shown while a call waits.

use super::text::{cut, escape_control};

/// Returns the elapsed time, what is waited for and its last line of output. One column narrower than the terminal, which would
/// otherwise wrap the line.
pub fn line(elapsed_ms: u64, what: &str, last: Option<&str>, width: usize) -> String {
    let last = last.map(|last| format!(": {last}")).unwrap_or_default();
    cut(&escape_control(&format!("{}  {what}{last}", elapsed(elapsed_ms))), width.saturating_sub(1))
}

/// Formats the elapsed time: `5s`, `1m05s`, `2h03m`.
fn elapsed(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600.. => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_and_does_not_move_the_cursor() {
        assert_eq!(
            line(3_723_000, "web running 1h", Some("a\x1b[2Jb\tc"), 80),
            "1h02m  web running 1h: a\\x1b[2Jb\\tc"
        );
        assert_eq!(line(59_999, "web", Some("long long"), 13), "59s  web: l…");
        assert_eq!((line(65_000, "web", None, 80), line(0, "web", None, 0)), ("1m05s  web".into(), String::new()));
    }
}
