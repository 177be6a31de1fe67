//! The list of processes: its columns, and their widths for the width of the screen.

use super::{Theme, put};
use crate::model::State;
use crate::model::arrangement::ListLine;
use crate::model::row::{Mark, Row};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use std::collections::HashMap;
use toold_client::text::{bytes, columns, cut, duration, pad};

/// Widths from which a column is shown.
const MIN_OWNER_WIDTH: u16 = 64;
const MIN_PORTS_WIDTH: u16 = 56;
const MIN_MEMORY_WIDTH: u16 = 48;
const MIN_CPU_WIDTH: u16 = 34;
const MIN_AGE_WIDTH: u16 = 26;
const WIDE: u16 = 120;

/// One column: its heading, its width, and the side that its text is on.
struct Column {
    heading: &'static str,
    width: usize,
    right: bool,
}

fn table(state: &State, rows: &[&Row], width: u16) -> Vec<Column> {
    let widest = |text: fn(&Row) -> String| rows.iter().map(|row| columns(&text(row))).max().unwrap_or(0);
    let most = |narrow: usize, wide: usize| if width >= WIDE { wide } else { narrow };
    let left = |heading, width| Column { heading, width, right: false };
    let right = |heading, width| Column { heading, width, right: true };
    let name = widest(|row| row.label().to_owned()).clamp(8, most(10, 24));
    let name = if width < MIN_AGE_WIDTH { usize::from(width).saturating_sub(12).max(4) } else { name };
    let mut all = vec![left("NAME", name), left("STATE", widest(Row::state).clamp(8, 10))];
    if width >= MIN_AGE_WIDTH {
        all.push(right("AGE", 4));
    }
    if width >= MIN_CPU_WIDTH {
        all.push(right("CPU", 5));
    }
    if width >= MIN_MEMORY_WIDTH {
        all.push(right("MEM", 5));
    }
    if width >= MIN_PORTS_WIDTH {
        all.push(left("PORTS", widest(ports).clamp(5, most(6, 12))));
    }
    if width >= MIN_OWNER_WIDTH && !state.by_owner {
        all.push(left("OWNER", widest(|row| row.owner().to_owned()).clamp(5, most(13, 28))));
    }
    all.push(left("LAST OUTPUT", usize::MAX));
    all
}

fn ports(row: &Row) -> String {
    row.ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}

fn cell(row: &Row, heading: &str, now_ms: u64) -> String {
    match heading {
        "NAME" => row.label().to_owned(),
        "STATE" => row.state(),
        "AGE" => {
            let since = row.question.as_ref().and_then(|question| question.since_ms);
            let from = since.or(row.ended_ms).unwrap_or(row.started_ms);
            duration(now_ms.saturating_sub(from))
        }
        "CPU" => match row.cpu_percent() {
            Some(0) => "0".into(),
            Some(percent) => format!("{percent}%"),
            None => String::new(),
        },
        "MEM" => row.usage.map_or_else(String::new, |usage| bytes(usage.rss_bytes)),
        "PORTS" => ports(row),
        "OWNER" => toold_client::text::escape_control(row.owner()),
        "LAST OUTPUT" => match &row.question {
            Some(question) if !question.prompt.is_empty() => question.prompt.clone(),
            Some(_) | None => row.last_output.clone(),
        },
        other => unreachable!("the column {other} is declared above"),
    }
}

fn aligned(text: &str, column: &Column) -> String {
    if column.width == usize::MAX {
        return text.to_owned();
    }
    let text = cut(text, column.width);
    if column.right {
        let gap = column.width.saturating_sub(columns(&text));
        return " ".repeat(gap) + &text;
    }
    pad(&text, column.width)
}

pub fn draw(state: &State, heading: Rect, place: Rect, theme: Theme, buffer: &mut Buffer) {
    let by_id: HashMap<&str, &Row> = state.rows.iter().map(|row| (row.id.as_str(), row)).collect();
    let rows: Vec<&Row> = state.shown.iter().filter_map(|line| by_id.get(line.id()?.as_str()).copied()).collect();
    let table = table(state, &rows, place.width);
    let titles = table.iter().map(|column| aligned(column.heading, column)).collect::<Vec<_>>().join(" ");
    put(buffer, heading, 0, 0, &format!("  {titles}"), theme.faint());
    if state.shown.is_empty() && state.loaded {
        let why = if state.filter.is_empty() {
            "nothing runs, and nothing ended in the last hour"
        } else {
            "nothing matches the filter"
        };
        put(buffer, place, 2, 0, why, theme.faint());
    }
    for (n, line) in state.shown.iter().skip(state.list_top).take(usize::from(place.height)).enumerate() {
        let y = u16::try_from(n).unwrap_or(u16::MAX);
        match line {
            ListLine::Owner { name, count, gone } => {
                let name = toold_client::text::escape_control(name);
                let x = put(buffer, place, 0, y, &format!("{name} ({count})"), theme.bold());
                if *gone {
                    put(buffer, place, x, y, "  session gone", theme.colour(Color::Yellow));
                }
            }
            ListLine::Process(id) => {
                if let Some(row) = by_id.get(id.as_str()) {
                    draw_row(state, row, &table, place, y, theme, buffer);
                }
            }
        }
    }
}

fn draw_row(state: &State, row: &Row, table: &[Column], place: Rect, y: u16, theme: Theme, buffer: &mut Buffer) {
    let mark = row.mark();
    let tint = match mark {
        Mark::Asks => theme.colour(Color::Yellow).add_modifier(Modifier::BOLD),
        Mark::Runs => theme.colour(Color::Green),
        Mark::Failed => theme.colour(Color::Red),
        Mark::Done => theme.faint(),
        Mark::Lost => theme.colour(Color::Magenta),
    };
    let is_marked = state.marked.contains(&row.id);
    let symbol = if is_marked { format!("{}*", mark.symbol()) } else { format!("{} ", mark.symbol()) };
    let mut x = put(buffer, place, 0, y, &symbol, tint);
    for column in table {
        let text = aligned(&cell(row, column.heading, state.now_ms), column);
        let style = match column.heading {
            "STATE" => tint,
            "LAST OUTPUT" | "OWNER" => theme.faint(),
            // The other columns are plain.
            _ => Style::new(),
        };
        x = put(buffer, place, x, y, &text, style);
        x = put(buffer, place, x, y, " ", Style::new());
    }
    if state.selected.as_ref() == Some(&row.id) {
        let line = Rect::new(place.x, place.y + y, place.width, 1).intersection(buffer.area);
        buffer.set_style(line, theme.selected());
    }
}
