//! The table that `list` prints.

use super::table::{Cell, table};
use super::time::ago;
use super::{Look, Tint, status};
use toold_proto::process::Process;

/// One line a process, in the order given.
pub fn list<'a>(processes: impl Iterator<Item = &'a Process>, now_ms: u64, look: Look) -> String {
    let rows = processes.map(|process| row(process, now_ms)).collect();
    table(["ID", "NAME", "STATUS", "AGE", "EXIT", "COMMAND"], rows, look)
}

fn row(process: &Process, now_ms: u64) -> [Cell; 6] {
    [
        Cell::new(&process.id.to_string()),
        Cell::new(process.name.as_deref().unwrap_or("-")),
        Cell::tinted(&status::phrase(process), status::tint(process)),
        Cell::tinted(&ago(&process.started_at, now_ms), Tint::Faint),
        Cell::new(&status::code(process)),
        Cell::new(&process.command),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::text::columns;
    use crate::testing::process;
    use serde_json::json;

    const NOW: u64 = 1_794_798_000_000 + 600_000;

    fn processes() -> Vec<Process> {
        let documents = json!([
            process(json!({"name": "网站", "command": "serve 🚀 \u{1b}[31m --port 80"})),
            process(json!({"id": "proc_00000000000f", "status": "exited", "reason": "exited", "exit_code": 0,
                "started_at": "2026-11-16T02:10:00.000Z"})),
        ]);
        serde_json::from_value(documents).expect("whole processes")
    }

    #[test]
    fn a_list_has_a_line_a_process_in_aligned_columns() {
        assert_eq!(
            list(processes().iter(), NOW, Look::plain()),
            "ID                 NAME  STATUS      AGE  EXIT  COMMAND\n\
             proc_0123456789ab  网站  running 5m  10m  -     serve 🚀 \\x1b[31m --port 80\n\
             proc_00000000000f  -     exited 0    1h   0     make test\n"
        );
    }

    #[test]
    fn on_a_terminal_no_line_is_wider_than_it_is() {
        for width in [20, 40, 60, 70, 80, 200] {
            let shown = list(processes().iter(), NOW, Look { width: Some(width), colour: false });
            assert!(shown.lines().all(|line| columns(line) <= width), "{width}: {shown}");
        }
        let coloured = list(processes().iter(), NOW, Look { width: Some(80), colour: true });
        assert!(coloured.contains("\x1b[32mexited 0") && coloured.contains("\x1b[36mrunning 5m"), "{coloured:?}");
    }
}
