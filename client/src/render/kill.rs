//! Result of `kill`, one line per process.

use super::text::{cut, escape_control};
use super::{Style, Tint};
use toold_proto::results::{KillStatus, Killed};

pub fn kill(results: &[Killed], style: Style) -> String {
    results.iter().map(|killed| line(killed, style) + "\n").collect()
}

fn line(killed: &Killed, style: Style) -> String {
    let (tint, text) = match killed.status {
        KillStatus::Killed if end(killed).is_empty() && killed.signals_sent.is_empty() => {
            (Tint::Good, "killed before it started".to_string())
        }
        KillStatus::Killed => (Tint::Good, format!("killed{}", end(killed))),
        KillStatus::AlreadyExited => (Tint::Faint, earlier_end(killed)),
        KillStatus::Starting => (Tint::Bad, "not started yet, and its shim does not answer".to_string()),
        KillStatus::Survivors => (Tint::Bad, format!("not dead: {}", survivors(killed))),
    };
    let text = escape_control(format!("{} {text}", killed.id).trim_end());
    tint.paint(&cut(&text, style.width.unwrap_or(usize::MAX)), style)
}

/// Returns the end in parentheses; nothing if it is not known.
fn end(killed: &Killed) -> String {
    match (&killed.signal, killed.exit_code) {
        (Some(signal), _) => format!(" ({signal})"),
        (None, Some(code)) => format!(" (exited {code})"),
        (None, None) => String::new(),
    }
}

fn earlier_end(killed: &Killed) -> String {
    match (&killed.signal, killed.exit_code) {
        (Some(signal), _) => format!("had already ended by {signal}"),
        (None, Some(code)) => format!("had already exited with code {code}"),
        (None, None) => "had already ended".into(),
    }
}

fn survivors(killed: &Killed) -> String {
    let each: Vec<String> = killed.survivors.iter().map(|m| format!("{} {} {}", m.pid, m.state, m.command)).collect();
    each.into_iter().chain(killed.note.clone()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_result_shows_the_exit_or_the_survivors() {
        let result = |status: &str, code, survivors| {
            json!({"id": "proc_0123456789ab", "status": status, "signals_sent": [], "survivors": survivors,
                "exit_code": code, "signal": null, "reason": null})
        };
        let member =
            json!({"pid": 7, "ppid": 1, "command": "dd", "state": "D", "threads": 1, "cpu_ms": 0, "rss_bytes": 0});
        let results = json!([
            result("killed", json!(143), json!([])),
            result("killed", json!(null), json!([])),
            result("already_exited", json!(null), json!([])),
            result("survivors", json!(null), json!([member])),
            {"id": "proc_0123456789ab", "status": "survivors", "signals_sent": [], "survivors": [], "exit_code": null,
                "signal": null, "reason": null, "note": "some are left"},
        ]);
        let results: Vec<Killed> = serde_json::from_value(results).expect("whole results");
        assert_eq!(
            kill(&results, Style::plain()),
            "proc_0123456789ab killed (exited 143)\nproc_0123456789ab killed before it started\nproc_0123456789ab had already ended\nproc_0123456789ab not dead: 7 D dd\n\
             proc_0123456789ab not dead: some are left\n"
        );
    }
}
