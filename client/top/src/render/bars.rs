//! The first line, the strip of events, and the last line with keys, a question or what is typed.

use super::{Theme, put, rule};
use crate::model::line_edit::LineEdit;
use crate::model::row::Mark;
use crate::model::{Confirm, Mode, Pane, Reachability, State};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Style};
use toold_client::text::{bytes, columns, cut, duration, local_time_of_day};

/// Keys with what they do. The last two are always shown, the others as far as there is room.
const LIST_KEYS: [&str; 14] = [
    "enter log",
    "a attach",
    "i answer",
    "K kill",
    "R rerun",
    "/ filter",
    "g grep all",
    "e editor",
    "y copy",
    "t tree",
    "o owner",
    "s sort",
    "? help",
    "q",
];
const LOG_KEYS: [&str; 12] = [
    "esc list",
    "/ search",
    "n N next",
    "i answer",
    "a attach",
    "e editor",
    "y copy",
    "g grep all",
    "K kill",
    "R rerun",
    "? help",
    "q",
];
const GREP_KEYS: [&str; 5] = ["enter open", "esc list", "g again", "? help", "q"];

pub fn header(state: &State, place: Rect, theme: Theme, buffer: &mut Buffer) {
    let count = |mark: Mark| state.rows.iter().filter(|row| row.mark() == mark).count();
    let (runs, asks) = (count(Mark::Runs), count(Mark::Asks));
    let is_today = |ended: u64| ended >= state.midnight_ms;
    let failed = state.rows.iter().filter(|row| row.has_failed() && row.ended_ms.is_some_and(is_today)).count();
    let counts = match &state.link {
        Reachability::Lost { since_ms } => {
            let ago = duration(state.now_ms.saturating_sub(*since_ms));
            format!("the daemon is away, {ago}; this was the last state")
        }
        Reachability::Up if !state.loaded => "connecting …".into(),
        Reachability::Up => format!("{runs} run · {asks} asks · {failed} failed today"),
    };
    let style = match (&state.link, asks) {
        (Reachability::Lost { .. }, _) => theme.colour(Color::Red),
        (Reachability::Up, 0) => Style::new(),
        (Reachability::Up, _) => theme.colour(Color::Yellow),
    };
    let x = put(buffer, place, 0, 0, "toold  ", theme.bold());
    let used = put(buffer, place, x, 0, &counts, style);
    let cpu: u64 = state.rows.iter().filter_map(|row| row.cpu_percent()).sum();
    let memory: u64 = state.rows.iter().filter_map(|row| row.usage).map(|usage| usage.rss_bytes).sum();
    let up = state.daemon.started_ms.map(|at| format!("  up {}", duration(state.now_ms.saturating_sub(at))));
    let mut right = format!("cpu {cpu}%  mem {}{}", bytes(memory), up.unwrap_or_default());
    if !state.filter.is_empty() {
        right.push_str(&format!("  filter: {}", state.filter));
    }
    let start = usize::from(place.width).saturating_sub(columns(&right));
    if start >= usize::from(used) + 2 {
        put(buffer, place, u16::try_from(start).unwrap_or(0), 0, &right, Style::new());
    } else if !state.filter.is_empty() {
        let filter = format!("  filter: {}", state.filter);
        put(buffer, place, used, 0, &filter, Style::new());
    }
}

fn clock(at_ms: u64) -> String {
    local_time_of_day(at_ms).map_or_else(String::new, |(h, m, s)| format!("{h:02}:{m:02}:{s:02}"))
}

pub fn events(state: &State, title: Rect, place: Rect, theme: Theme, buffer: &mut Buffer) {
    if title.is_empty() {
        return;
    }
    let style = if state.pane == Pane::Events { theme.bold() } else { theme.faint() };
    if place.is_empty() {
        // As many of the newest as fit, the newest last.
        let mut room = usize::from(title.width).saturating_sub(columns("── events ──  ──"));
        let mut shown: Vec<String> = Vec::new();
        for event in state.events.iter().rev() {
            let text = format!("{} {}", clock(event.at_ms), event.text);
            let needed = columns(&text) + 3;
            if needed > room {
                break;
            }
            room -= needed;
            shown.insert(0, text);
        }
        rule(buffer, title, &["events".into(), shown.join(" · ")], style);
        return;
    }
    rule(buffer, title, &["events".into()], style);
    let height = usize::from(place.height);
    let end = state.events.len().saturating_sub(state.events_back);
    for (line, event) in state.events.iter().take(end).skip(end.saturating_sub(height)).enumerate() {
        let line = u16::try_from(line).unwrap_or(u16::MAX);
        let x = put(buffer, place, 0, line, &format!("{}  ", clock(event.at_ms)), theme.faint());
        let style = if event.is_failure { theme.colour(Color::Red) } else { Style::new() };
        put(buffer, place, x, line, &event.text, style);
    }
}

pub fn bottom(state: &State, place: Rect, theme: Theme, buffer: &mut Buffer) -> Option<Position> {
    match &state.mode {
        Mode::Filter(line) => Some(typed(buffer, place, "filter: ", line, Echo::Text, theme)),
        Mode::Search(line) => Some(typed(buffer, place, "search: /", line, Echo::Text, theme)),
        Mode::GrepPattern(line) => Some(typed(buffer, place, "grep all logs: ", line, Echo::Text, theme)),
        Mode::Answer { title, line, hidden, .. } => {
            let title = cut(title, usize::from(place.width / 2));
            let note = if *hidden { " (hidden)" } else { "" };
            let shown = if *hidden { Echo::Nothing } else { Echo::Text };
            Some(typed(buffer, place, &format!("{title}{note} › "), line, shown, theme))
        }
        Mode::Confirm(Confirm::Kill { text, .. } | Confirm::Restart { text, .. } | Confirm::Forget { text, .. }) => {
            put(buffer, place, 0, 0, text, theme.colour(Color::Yellow).patch(theme.bold()));
            None
        }
        Mode::Normal | Mode::Help => {
            match &state.notice {
                Some((text, _)) => drop(put(buffer, place, 0, 0, text, theme.bold())),
                None => keys(state, place, theme, buffer),
            }
            None
        }
    }
}

/// The typed text as it is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Echo {
    Text,
    /// Not even its length.
    Nothing,
}

fn typed(buffer: &mut Buffer, place: Rect, title: &str, line: &LineEdit, shown: Echo, theme: Theme) -> Position {
    let x = put(buffer, place, 0, 0, title, theme.bold());
    if shown == Echo::Nothing {
        return Position::new(place.x + x.min(place.width.saturating_sub(1)), place.y);
    }
    let room = usize::from(place.width.saturating_sub(x)).saturating_sub(1);
    // A long text is shown around its cursor.
    let mut before = line.before_cursor();
    while columns(before) > room {
        before = &before[before.chars().next().map_or(0, char::len_utf8)..];
    }
    let after = &line.text()[line.before_cursor().len()..];
    put(buffer, place, x, 0, &format!("{before}{after}"), Style::new());
    let column = x + u16::try_from(columns(before)).unwrap_or(0);
    Position::new(place.x + column.min(place.width.saturating_sub(1)), place.y)
}

fn keys(state: &State, place: Rect, theme: Theme, buffer: &mut Buffer) {
    let all: &[&str] = match () {
        () if state.grep.is_some() && !state.zoomed => &GREP_KEYS,
        () if state.zoomed || state.pane == Pane::Log => &LOG_KEYS,
        () => &LIST_KEYS,
    };
    let (optional, always) = all.split_at(all.len() - 2);
    let width = |keys: &[&str]| keys.iter().map(|key| columns(key) + 2).sum::<usize>();
    let room = usize::from(place.width) + 2;
    let fitting = (0..=optional.len()).rev().find(|n| width(&optional[..*n]) + width(always) <= room).unwrap_or(0);
    let mut shown = optional[..fitting].to_vec();
    shown.extend(always);
    if !state.marked.is_empty() {
        let marked = format!("{} marked: K kill  R rerun  F forget  esc none", state.marked.len());
        put(buffer, place, 0, 0, &marked, theme.bold());
        return;
    }
    let mut x = 0;
    for key in shown {
        let (name, what) = key.split_once(' ').unwrap_or((key, ""));
        x = put(buffer, place, if x == 0 { 0 } else { x + 2 }, 0, name, theme.bold());
        if !what.is_empty() {
            x = put(buffer, place, x, 0, &format!(" {what}"), theme.faint());
        }
    }
}
