//! The table that `list` prints.

use super::table::{COLUMN_GAP, Cell, MAX_COLUMN_WIDTH, table_with_widths};
use super::text::{bytes, last_line};
use super::time::{ago, cpu};
use super::{Style, Tint, status, watch};
use toold_proto::process::{Process, Usage};
use toold_proto::results::Listed;

const COLUMNS: usize = 12;
const HEADINGS: [&str; COLUMNS] =
    ["ID", "NAME", "STATE", "AGE", "EXIT", "CPU", "MEM", "EVENTS", "SESSION", "LABELS", "COMMAND", "OUTPUT"];
const ID: usize = 0;
const NAME: usize = 1;
const STATE: usize = 2;
const AGE: usize = 3;
const EXIT: usize = 4;
const CPU: usize = 5;
const MEM: usize = 6;
const EVENTS: usize = 7;
const SESSION: usize = 8;
const LABELS: usize = 9;
const COMMAND: usize = 10;
const OUTPUT: usize = 11;

/// A line is binary if more than one character in this many is not text.
const BINARY_SHARE: usize = 4;

const FULL: usize = usize::MAX;
/// Steps in which columns get their width, the most important first. A column that finds no room is left out.
const WIDTH_STEPS: [(usize, usize); 20] = [
    (ID, FULL),
    (STATE, MAX_COLUMN_WIDTH),
    (NAME, 4),
    (COMMAND, 5),
    (NAME, 12),
    (COMMAND, 16),
    (AGE, FULL),
    (EXIT, FULL),
    (CPU, FULL),
    (MEM, FULL),
    (COMMAND, 24),
    (OUTPUT, 16),
    (NAME, MAX_COLUMN_WIDTH),
    (EVENTS, FULL),
    (SESSION, MAX_COLUMN_WIDTH),
    (LABELS, MAX_COLUMN_WIDTH),
    (COMMAND, 40),
    (OUTPUT, 40),
    (COMMAND, FULL),
    (OUTPUT, FULL),
];

/// A process in the table.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    pub process: &'a Process,
    pub preview: &'a str,
    pub usage: Option<Usage>,
    /// Current CPU use in percent. None: the CPU time so far is shown.
    pub percent: Option<u64>,
}

impl<'a> Row<'a> {
    pub fn of(listed: &'a Listed) -> Row<'a> {
        Row { process: &listed.process, preview: &listed.preview, usage: listed.usage, percent: None }
    }
}

/// Renders one line per process, in the given order.
pub fn list(rows: &[Row<'_>], now_ms: u64, style: Style) -> String {
    let cells: Vec<[Cell; COLUMNS]> = rows.iter().map(|row| cells(row, now_ms)).collect();
    let has_ended = |row: &Row<'_>| row.process.exit_code.is_some() || row.process.signal.is_some();
    let has_content = |column: usize| match column {
        NAME => rows.iter().any(|row| row.process.name.is_some()),
        EXIT => rows.iter().any(has_ended),
        CPU | MEM => rows.iter().any(|row| row.usage.is_some()),
        EVENTS => rows.iter().any(|row| watch::has_details(row.process)),
        SESSION => rows.iter().any(|row| row.process.session_key.is_some()),
        LABELS => rows.iter().any(|row| !row.process.labels.is_empty()),
        OUTPUT => rows.iter().any(|row| last_line(row.preview).is_some() || status::waits_for(row.process).is_some()),
        // The others always have content.
        _ => true,
    };
    let empty: [bool; COLUMNS] = std::array::from_fn(|column| !rows.is_empty() && !has_content(column));
    table_with_widths(HEADINGS, cells, style, |content, room| {
        fit(std::array::from_fn(|n| if empty[n] { 0 } else { content[n] }), room)
    })
}

fn cells(row: &Row<'_>, now_ms: u64) -> [Cell; COLUMNS] {
    let process = row.process;
    let used = |shown: fn(&Usage) -> String| row.usage.as_ref().map_or_else(|| "-".into(), shown);
    let cpu = match row.percent {
        Some(percent) if row.usage.is_some() => format!("{percent}%"),
        Some(_) | None => used(|usage| cpu(usage.cpu_ms)),
    };
    [
        Cell::new(&process.id.to_string()),
        Cell::new(process.name.as_deref().unwrap_or("-")),
        Cell::tinted(&status::column(process), status::tint(process)),
        Cell::tinted(&ago(&process.started_at, now_ms), Tint::Faint),
        Cell::new(&status::exit(process)),
        Cell::number(&cpu),
        Cell::number(&used(|usage| bytes(usage.rss_bytes))),
        Cell::new(&watch::summary(process)),
        Cell::new(process.session_key.as_deref().unwrap_or("-")),
        Cell::new(&labels(process)),
        Cell::new(&process.command),
        Cell::tinted(&output(row), Tint::Faint),
    ]
}

fn labels(process: &Process) -> String {
    let pairs: Vec<String> = process.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if pairs.is_empty() { "-".into() } else { pairs.join(",") }
}

/// Returns the last line of the output, or what a process without any waits for. Of one that is not text only that fact: escaped, it would fill the row.
fn output(row: &Row<'_>) -> String {
    let waits = || status::waits_for(row.process).map_or_else(|| "-".into(), |why| format!("waits for {why}"));
    let Some(line) = last_line(row.preview) else { return waits() };
    let is_binary = |c: &char| *c == char::REPLACEMENT_CHARACTER || c.is_control() && *c != '\t';
    let binary = line.chars().filter(is_binary).count();
    if binary * BINARY_SHARE > line.chars().count() { "(binary)".into() } else { line }
}

/// Returns the minimum useful width of a column. None: it is shown completely or not at all.
fn min_width(column: usize) -> Option<usize> {
    match column {
        ID => Some(1),
        STATE => Some(7),
        SESSION | LABELS => Some(10),
        NAME => Some(4),
        COMMAND => Some(5),
        OUTPUT => Some(8),
        // Ages and numbers.
        _ => None,
    }
}

/// Returns the widths of the columns in `room`, from the widths of their content.
fn fit(content: [usize; COLUMNS], room: usize) -> [usize; COLUMNS] {
    let mut widths = [0; COLUMNS];
    // Every column includes the gap behind it, which the last one does not need.
    let mut left = room + COLUMN_GAP.len();
    for (column, step) in WIDTH_STEPS {
        let (now, wanted) = (widths[column], content[column].min(step));
        let space = if now == 0 { COLUMN_GAP.len() } else { 0 };
        let Some(more) = wanted.checked_sub(now).filter(|more| *more > 0) else { continue };
        let given = more.min(left.saturating_sub(space));
        let enough = match min_width(column) {
            Some(min) => now + given >= min.min(content[column]) && given > 0,
            None => given == more,
        };
        if enough {
            widths[column] += given;
            left -= given + space;
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::text::columns;
    use crate::testing::{golden, process};
    use serde_json::{Value, json};

    const NOW: u64 = 1_794_798_000_000 + 600_000;

    fn listed(changes: Value) -> Listed {
        let mut document = process(changes);
        let object = document.as_object_mut().expect("an object");
        object.entry("preview").or_insert(json!(""));
        serde_json::from_value(document).expect("a whole process")
    }

    fn some() -> Vec<Listed> {
        let usage = |cpu_ms: u64, rss: u64| json!({"processes": 2, "cpu_ms": cpu_ms, "rss_bytes": rss});
        vec![
            listed(
                json!({"name": "网站", "command": "serve 🚀 \u{1b}[31m --port 80", "usage": usage(72_300, 190 << 20),
                "preview": "GET /\n\u{1b}[32mGET /caf\u{65}\u{301}\u{1b}[0m\n"}),
            ),
            listed(
                json!({"id": "proc_00000000000e", "name": "a-very-long-name-of-a-process", "usage": usage(300, 900 << 10)}),
            ),
            listed(json!({"id": "proc_00000000000f", "status": "exited", "reason": "exited", "exit_code": 0,
                "started_at": "2026-11-16T02:10:00.000Z", "preview": "全部通过"})),
            listed(
                json!({"id": "proc_000000000010", "name": "\u{202e}evil\n\u{200b}", "status": "exited", "reason": "killed",
                "exit_code": 137, "signal": "SIGKILL", "notify": true, "command": "sleep 1"}),
            ),
        ]
    }

    fn shown(style: Style) -> String {
        let some = some();
        let rows: Vec<Row<'_>> = some.iter().map(Row::of).collect();
        list(&rows, NOW, style)
    }

    #[test]
    fn in_a_pipe_every_column_is_shown_and_nothing_is_cut() {
        golden("list-pipe.txt", &shown(Style::plain()));
    }

    #[test]
    fn at_40_80_and_200_columns_the_most_important_columns_are_shown() {
        for width in [40, 80, 200] {
            golden(&format!("list-{width}.txt"), &shown(Style { width: Some(width), colour: false }));
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_the_status_is_second_to_the_id() {
        for width in 1..220 {
            let shown = shown(Style { width: Some(width), colour: false });
            assert!(shown.lines().all(|line| columns(line) <= width), "{width}: {shown}");
            assert_eq!(shown.contains("STATE"), width >= 26, "{width}: {shown}");
        }
    }

    /// The page listed six columns, and COMMAND, which it did not list, was left out too.
    #[test]
    fn columns_are_left_out_in_the_documented_order() {
        let content = [17, 12, 8, 4, 4, 5, 5, 9, 12, 20, 40, 60];
        let narrowest =
            |column: usize| (1..400).find(|room| fit(content, *room)[column] > 0).expect("it is shown somewhere");
        let mut dropped: Vec<usize> = (0..HEADINGS.len()).filter(|column| *column != ID && *column != STATE).collect();
        dropped.sort_by_key(|column| std::cmp::Reverse(narrowest(*column)));
        let page = include_str!("../../../docs/cli.md");
        let documented = page.split("loses the least important columns first: ").nth(1).expect("the page lists them");
        let documented = documented.split('.').next().unwrap_or_default().replace(" (watches and `notify`)", "");
        assert_eq!(documented, dropped.iter().map(|column| HEADINGS[*column]).collect::<Vec<_>>().join(", "));
    }

    #[test]
    fn an_empty_column_is_left_out_on_a_terminal() {
        let quiet = listed(json!({}));
        let shown = list(&[Row::of(&quiet)], NOW, Style { width: Some(80), colour: false });
        assert_eq!(shown, "ID                 STATE    AGE  COMMAND\nproc_0123456789ab  running  10m  make test\n");
        assert!(list(&[], NOW, Style { width: Some(200), colour: false }).contains("COMMAND"), "headings stay");
    }

    /// The broken code printed every byte of 200 as an escape: 1 kB in one row.
    #[test]
    fn binary_output_does_not_fill_a_row() {
        let binary = listed(json!({"preview": "\u{0}\u{1}\u{fffd}ELF".repeat(30)}));
        let text = listed(json!({"preview": "100%\tdone \u{fffd} of a line that is text"}));
        let shown = list(&[Row::of(&binary), Row::of(&text)], NOW, Style::plain());
        assert!(shown.contains("  (binary)\n") && shown.contains("100%\\tdone"), "{shown}");
    }

    #[test]
    fn session_and_labels_are_shown_when_there_is_room() {
        let owned = listed(json!({"session_key": "chat-42", "labels": {"a": "1", "b": "2"}}));
        let shown = |width| list(&[Row::of(&owned)], NOW, Style { width, colour: false });
        assert!(shown(Some(120)).contains("chat-42  a=1,b=2  make test"), "{}", shown(Some(120)));
        assert!(!shown(Some(50)).contains("chat-42"), "{}", shown(Some(50)));
        assert!(shown(None).contains("chat-42  a=1,b=2  make test"), "{}", shown(None));
    }

    #[test]
    fn states_have_colours_and_list_watch_shows_percent() {
        let coloured = shown(Style { width: Some(80), colour: true });
        for part in ["\x1b[32mexited", "\x1b[36mrunning", "\x1b[31mkilled"] {
            assert!(coloured.contains(part), "{part}: {coloured:?}");
        }
        let some = some();
        let rows: Vec<Row<'_>> = some.iter().map(|listed| Row { percent: Some(37), ..Row::of(listed) }).collect();
        let shown = list(&rows, NOW, Style { width: Some(80), colour: false });
        assert_eq!(shown.matches("37%").count(), 2, "of the running processes: {shown}");
    }
}
