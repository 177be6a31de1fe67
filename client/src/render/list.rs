//! The table that `list` prints.

use super::table::{COLUMN_GAP, Cell, MAX_COLUMN_WIDTH, table_with_widths};
use super::text::{bytes, last_line};
use super::time::{ago, cpu};
use super::{Style, Tint, status, watch};
use toold_proto::process::{Process, Usage};
use toold_proto::results::Listed;

const HEADINGS: [&str; 10] = ["ID", "NAME", "STATUS", "AGE", "EXIT", "CPU", "MEM", "EVENTS", "COMMAND", "OUTPUT"];
const ID: usize = 0;
const NAME: usize = 1;
const STATUS: usize = 2;
const AGE: usize = 3;
const EXIT: usize = 4;
const CPU: usize = 5;
const MEM: usize = 6;
const EVENTS: usize = 7;
const COMMAND: usize = 8;
const OUTPUT: usize = 9;

const ALL: usize = usize::MAX;
/// What a column may become wide, the most important first. One that finds no room is left out.
const WISHES: [(usize, usize); 18] = [
    (ID, ALL),
    (STATUS, MAX_COLUMN_WIDTH),
    (NAME, 4),
    (COMMAND, 5),
    (NAME, 12),
    (COMMAND, 16),
    (AGE, ALL),
    (EXIT, ALL),
    (CPU, ALL),
    (MEM, ALL),
    (COMMAND, 24),
    (OUTPUT, 16),
    (NAME, MAX_COLUMN_WIDTH),
    (EVENTS, ALL),
    (COMMAND, 40),
    (OUTPUT, 40),
    (COMMAND, ALL),
    (OUTPUT, ALL),
];

/// A process in the table.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    pub process: &'a Process,
    pub preview: &'a str,
    pub usage: Option<Usage>,
    /// What it takes of a CPU now. None: the time it used so far is shown.
    pub percent: Option<u64>,
}

impl<'a> Row<'a> {
    pub fn of(listed: &'a Listed) -> Row<'a> {
        Row { process: &listed.process, preview: &listed.preview, usage: listed.usage, percent: None }
    }
}

/// One line a process, in the order given.
pub fn list(rows: &[Row<'_>], now_ms: u64, style: Style) -> String {
    let cells: Vec<[Cell; 10]> = rows.iter().map(|row| cells(row, now_ms)).collect();
    let ended = |row: &Row<'_>| row.process.exit_code.is_some() || row.process.signal.is_some();
    let says = |column: usize| match column {
        NAME => rows.iter().any(|row| row.process.name.is_some()),
        EXIT => rows.iter().any(ended),
        CPU | MEM => rows.iter().any(|row| row.usage.is_some()),
        EVENTS => rows.iter().any(|row| watch::has_details(row.process)),
        OUTPUT => rows.iter().any(|row| last_line(row.preview).is_some()),
        // The others always do.
        _ => true,
    };
    let silent: [bool; 10] = std::array::from_fn(|column| !rows.is_empty() && !says(column));
    table_with_widths(HEADINGS, cells, style, |liked, room| {
        fit(std::array::from_fn(|n| if silent[n] { 0 } else { liked[n] }), room)
    })
}

fn cells(row: &Row<'_>, now_ms: u64) -> [Cell; 10] {
    let process = row.process;
    let used = |shown: fn(&Usage) -> String| row.usage.as_ref().map_or_else(|| "-".into(), shown);
    let cpu = match row.percent {
        Some(percent) if row.usage.is_some() => format!("{percent}%"),
        Some(_) | None => used(|usage| cpu(usage.cpu_ms)),
    };
    [
        Cell::new(&process.id.to_string()),
        Cell::new(process.name.as_deref().unwrap_or("-")),
        Cell::tinted(status::state(process), status::tint(process)),
        Cell::tinted(&ago(&process.started_at, now_ms), Tint::Faint),
        Cell::new(&status::exit(process)),
        Cell::number(&cpu),
        Cell::number(&used(|usage| bytes(usage.rss_bytes))),
        Cell::new(&watch::summary(process)),
        Cell::new(&process.command),
        Cell::tinted(&last_line(row.preview).unwrap_or_else(|| "-".into()), Tint::Faint),
    ]
}

/// Columns below which one tells nothing. None: it is shown whole or not at all.
fn least(column: usize) -> Option<usize> {
    match column {
        ID => Some(1),
        STATUS => Some(7),
        NAME => Some(4),
        COMMAND => Some(5),
        OUTPUT => Some(8),
        // Ages and numbers.
        _ => None,
    }
}

/// How wide the columns are in `room`.
fn fit(liked: [usize; 10], room: usize) -> [usize; 10] {
    let mut widths = [0; 10];
    // Every column pays for the space behind it, and the last gets it back.
    let mut left = room + COLUMN_GAP.len();
    for (column, wish) in WISHES {
        let (now, most) = (widths[column], liked[column].min(wish));
        let space = if now == 0 { COLUMN_GAP.len() } else { 0 };
        let Some(more) = most.checked_sub(now).filter(|more| *more > 0) else { continue };
        let given = more.min(left.saturating_sub(space));
        let enough = match least(column) {
            Some(least) => now + given >= least.min(liked[column]) && given > 0,
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
    fn in_a_pipe_every_column_is_there_and_nothing_is_cut() {
        golden("list-pipe.txt", &shown(Style::plain()));
    }

    #[test]
    fn at_40_80_and_200_columns_the_most_important_is_shown() {
        for width in [40, 80, 200] {
            golden(&format!("list-{width}.txt"), &shown(Style { width: Some(width), colour: false }));
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_the_status_comes_before_all_but_the_id() {
        for width in 1..220 {
            let shown = shown(Style { width: Some(width), colour: false });
            assert!(shown.lines().all(|line| columns(line) <= width), "{width}: {shown}");
            assert_eq!(shown.contains("STATUS"), width >= 26, "{width}: {shown}");
        }
    }

    /// The page told of six columns, and COMMAND, of which it did not, was lost too.
    #[test]
    fn columns_are_lost_in_the_order_that_the_page_tells() {
        let liked = [17, 12, 8, 4, 4, 5, 5, 9, 40, 60];
        let narrowest =
            |column: usize| (1..400).find(|room| fit(liked, *room)[column] > 0).expect("it is shown somewhere");
        let mut lost: Vec<usize> = (0..HEADINGS.len()).filter(|column| *column != ID && *column != STATUS).collect();
        lost.sort_by_key(|column| std::cmp::Reverse(narrowest(*column)));
        let page = include_str!("../../../docs/cli.md");
        let told = page.split("loses the least important columns first: ").nth(1).expect("the page tells");
        let told = told.split('.').next().unwrap_or_default().replace(" (watches and `notify`)", "");
        assert_eq!(told, lost.iter().map(|column| HEADINGS[*column]).collect::<Vec<_>>().join(", "));
    }

    #[test]
    fn a_column_in_which_nobody_says_anything_is_left_out_on_a_terminal() {
        let quiet = listed(json!({}));
        let shown = list(&[Row::of(&quiet)], NOW, Style { width: Some(80), colour: false });
        assert_eq!(shown, "ID                 STATUS   AGE  COMMAND\nproc_0123456789ab  running  10m  make test\n");
        assert!(list(&[], NOW, Style { width: Some(200), colour: false }).contains("COMMAND"), "headings stay");
    }

    #[test]
    fn states_have_colours_and_a_watch_has_percent() {
        let coloured = shown(Style { width: Some(80), colour: true });
        for part in ["\x1b[32mexited", "\x1b[36mrunning", "\x1b[31mkilled"] {
            assert!(coloured.contains(part), "{part}: {coloured:?}");
        }
        let some = some();
        let rows: Vec<Row<'_>> = some.iter().map(|listed| Row { percent: Some(37), ..Row::of(listed) }).collect();
        let shown = list(&rows, NOW, Style { width: Some(80), colour: false });
        assert_eq!(shown.matches("37%").count(), 2, "of those that live: {shown}");
    }
}
