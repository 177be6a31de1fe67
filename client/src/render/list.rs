//! The table that `list` prints.

use super::table::{Cell, SPACE, WIDEST, fitted};
use super::time::ago;
use super::{Look, Tint, status, watch};
use toold_proto::process::Process;

/// Columns below which a status, a name or a command tells nothing: `running`, the heading, `slee…`.
const STATUS_LEAST: usize = 7;
const NAME_LEAST: usize = 4;
const COMMAND_LEAST: usize = 5;
/// The age and the exit code are shown when the command keeps so much: the status tells most of
/// what they do.
const COMMAND_GOOD: usize = 16;

/// One line a process, in the order given.
pub fn list<'a>(processes: impl Iterator<Item = &'a Process>, now_ms: u64, look: Look) -> String {
    let processes: Vec<&Process> = processes.collect();
    let rows = processes.iter().map(|process| row(process, now_ms));
    if !processes.iter().any(|process| watch::tells(process)) {
        return fitted(["ID", "NAME", "STATUS", "AGE", "EXIT", "COMMAND"], rows.collect(), look, fit);
    }
    let rows = rows.zip(&processes).map(|([id, name, status, age, exit, command], process)| {
        [id, name, status, age, exit, Cell::new(&watch::short(process)), command]
    });
    let headings = ["ID", "NAME", "STATUS", "AGE", "EXIT", "EVENTS", "COMMAND"];
    fitted(headings, rows.collect(), look, fit_events)
}

/// The same with what processes tell by themselves, where that leaves enough for the command.
fn fit_events(liked: [usize; 7], room: usize) -> [usize; 7] {
    let [id, name, status, age, exit, events, command] = liked;
    let all = |room| fit([id, name, status, age, exit, command], room);
    let narrow = all(room.saturating_sub(events + SPACE.len()));
    let good = narrow[4] == exit && narrow[5] >= command.min(COMMAND_GOOD);
    let ([id, name, status, age, exit, command], events) = if good { (narrow, events) } else { (all(room), 0) };
    [id, name, status, age, exit, events, command]
}

/// How wide the columns are in `room`. What a process is called and how it is comes first, then
/// the command and a third of the rest for the name, then the age, then the exit code.
fn fit(liked: [usize; 6], room: usize) -> [usize; 6] {
    let [id, name, status, age, exit, command] = liked;
    // Every column pays for the space behind it, and the last gets it back.
    let mut left = room + SPACE.len();
    let id = take(&mut left, id, 1, 0);
    let status = take(&mut left, status.min(WIDEST), STATUS_LEAST, 0);
    let third = left / 3;
    let name = take(&mut left, name.min(WIDEST).min(third), NAME_LEAST, 0);
    let reserve = command.min(COMMAND_GOOD) + SPACE.len();
    let age = take(&mut left, age, age, reserve);
    let exit = if age > 0 { take(&mut left, exit, exit, reserve) } else { 0 };
    let command = take(&mut left, command, COMMAND_LEAST, 0);
    [id, name, status, age, exit, command]
}

/// At most so many of the columns that are left beyond the reserve; none when the least do not fit.
fn take(left: &mut usize, most: usize, least: usize, reserve: usize) -> usize {
    let width = most.min(left.saturating_sub(SPACE.len() + reserve));
    if width < least {
        return 0;
    }
    *left -= width + SPACE.len();
    width
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
    fn what_processes_tell_by_themselves_is_a_column_where_there_is_any_and_room_for_it() {
        let mut all = processes();
        all[1].notify = true;
        assert_eq!(
            list(all.iter(), NOW, Look::plain()),
            "ID                 NAME  STATUS      AGE  EXIT  EVENTS  COMMAND\n\
             proc_0123456789ab  网站  running 5m  10m  -     -       serve 🚀 \\x1b[31m --port 80\n\
             proc_00000000000f  -     exited 0    1h   0     notify  make test\n"
        );
        for width in [20, 40, 60, 70, 80, 90, 200] {
            let shown = list(all.iter(), NOW, Look { width: Some(width), colour: false });
            assert!(shown.lines().all(|line| columns(line) <= width), "{width}: {shown}");
            assert_eq!(shown.contains("notify"), width >= 80, "{width}: {shown}");
        }
    }

    #[test]
    fn the_status_stays_in_a_narrow_terminal_however_long_a_name_is() {
        // The broken code gave the name 24 columns first, and nothing was left for the status.
        let liked = [17, 60, 10, 3, 4, 100];
        let cases = [
            (10, [10, 0, 0, 0, 0, 0]),
            (20, [17, 0, 0, 0, 0, 0]),
            (26, [17, 0, 7, 0, 0, 0]),
            (30, [17, 0, 10, 0, 0, 0]),
            (36, [17, 0, 10, 0, 0, 5]),
            (40, [17, 0, 10, 0, 0, 9]),
            (60, [17, 10, 10, 0, 0, 17]),
            (80, [17, 17, 10, 3, 4, 19]),
            (120, [17, 24, 10, 3, 4, 52]),
        ];
        for (room, widths) in cases {
            assert_eq!(fit(liked, room), widths, "{room}");
        }
        assert_eq!(fit([17, 4, 8, 3, 4, 7], 60), [17, 4, 8, 3, 4, 7], "what is short is shown whole");
        let named = process(json!({"name": "a-very-long-name-of-a-process", "command": "make"}));
        let named: Process = serde_json::from_value(named).expect("a whole process");
        let shown = |width| list([&named].into_iter(), NOW, Look { width: Some(width), colour: false });
        assert_eq!(shown(20), "ID\nproc_0123456789ab\n");
        assert_eq!(shown(40), "ID                 STATUS      COMMAND\nproc_0123456789ab  running 5m  make\n");
        assert_eq!(
            shown(60),
            "ID                 NAME        STATUS      AGE  COMMAND\n\
             proc_0123456789ab  a-very-lo…  running 5m  10m  make\n"
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
