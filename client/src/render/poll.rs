//! Header above the output that `poll` and `exec` print.

use super::text::{cut, escape_control};
use super::{Style, status};
use toold_proto::process::{Gap, Process};

/// Renders one line on a terminal, else `key: value` lines and an empty line.
pub fn header(process: &Process, next_cursor: u64, gap: Option<Gap>, style: Style) -> String {
    match style.width {
        Some(width) => line(process, next_cursor, gap, width, style),
        None => lines(process, next_cursor, gap) + "\n",
    }
}

/// Renders one line for a person who has started the process: without the cursor, which only `poll` takes.
pub fn headline(process: &Process, style: Style) -> String {
    let text = cut(&summary(process), style.width.unwrap_or(usize::MAX));
    status::tint(process).paint(&text, style) + "\n"
}

/// Returns id, name and status of a process.
pub fn summary(process: &Process) -> String {
    let name = process.name.as_deref().map(|name| format!(" ({})", escape_control(name))).unwrap_or_default();
    format!("{}{name} {}", process.id, status::describe(process))
}

fn line(process: &Process, next_cursor: u64, gap: Option<Gap>, width: usize, style: Style) -> String {
    let gap = gap.map(|gap| format!(", {} bytes not kept", gap.to.saturating_sub(gap.from))).unwrap_or_default();
    let unstored = match process.unstored_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} bytes not stored"),
    };
    let text = cut(&format!("{}, cursor {next_cursor}{gap}{unstored}", summary(process)), width);
    status::tint(process).paint(&text, style) + "\n"
}

fn lines(process: &Process, next_cursor: u64, gap: Option<Gap>) -> String {
    let mut known = vec![("id", process.id.to_string())];
    known.extend(process.name.clone().map(|name| ("name", name)));
    known.push(("state", status::state(process)));
    known.push(("status", status::name(process.status).into()));
    known.extend(process.stopped.then(|| ("stopped", "true".into())));
    if let Some(wait) = &process.needs_input {
        known.push(("needs_input", "true".into()));
        known.extend((!wait.prompt.is_empty()).then(|| ("prompt", wait.prompt.clone())));
    }
    known.extend(process.exit_code.map(|code| ("exit_code", code.to_string())));
    known.extend(process.signal.clone().map(|signal| ("signal", signal)));
    known.extend(process.reason.map(|reason| ("reason", status::reason(reason).into())));
    known.push(("closed", process.closed.to_string()));
    known.extend((process.descendants > 0).then(|| ("descendants", process.descendants.to_string())));
    known.push(("next_cursor", next_cursor.to_string()));
    known.extend(gap.map(|gap| ("gap", format!("{}..{}", gap.from, gap.to))));
    known.extend((process.unstored_bytes > 0).then(|| ("unstored_bytes", process.unstored_bytes.to_string())));
    known.iter().map(|(key, value)| format!("{key}: {}\n", escape_control(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::process;
    use serde_json::json;

    fn ended() -> Process {
        let changes = json!({"name": "b\x07", "status": "exited", "reason": "killed", "exit_code": 143,
            "signal": "SIGTERM", "closed": true});
        serde_json::from_value(process(changes)).expect("a whole process")
    }

    #[test]
    fn without_a_terminal_the_header_is_keys_and_values() {
        assert_eq!(
            header(&ended(), 9, Some(Gap { from: 1, to: 5 }), Style::plain()),
            "id: proc_0123456789ab\nname: b\\x07\nstate: killed\nstatus: exited\nexit_code: 143\nsignal: SIGTERM\nreason: killed\n\
             closed: true\nnext_cursor: 9\ngap: 1..5\n\n"
        );
    }

    #[test]
    fn on_a_terminal_the_header_is_one_line_that_fits() {
        let style = Style { width: Some(80), colour: false };
        assert_eq!(header(&ended(), 9, None, style), "proc_0123456789ab (b\\x07) killed SIGTERM, cursor 9\n");
        assert_eq!(header(&ended(), 9, None, Style { width: Some(10), colour: false }), "proc_0123…\n");
        assert!(header(&ended(), 9, None, Style { width: Some(80), colour: true }).starts_with("\x1b[31mproc_"));
    }
}
