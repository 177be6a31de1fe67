//! The pane below the list: the log, the tree, or the results of a search over all logs.

use super::{Theme, put, rule, screen};
use crate::model::grep::GrepView;
use crate::model::log_view::{LogView, Source};
use crate::model::{Detail, Pane, State, TreeView};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use toold_client::text::{bytes, count, cut, escape_control};

pub fn draw(state: &State, title: Rect, place: Rect, theme: Theme, buffer: &mut Buffer) {
    let style = if state.pane == Pane::Log { theme.bold() } else { theme.faint() };
    if let Some(grep) = state.grep.as_ref().filter(|_| !state.zoomed) {
        rule(buffer, title, &grep_titles(grep), style);
        draw_grep(grep, place, theme, buffer);
        return;
    }
    let name = state.current_row().map_or_else(
        || state.current().cloned().unwrap_or_default(),
        |row| cut(row.label(), usize::from(title.width / 2)),
    );
    if state.detail == Detail::Tree && !state.zoomed {
        let tree = state.tree.as_ref().filter(|tree| Some(&tree.id) == state.current());
        rule(buffer, title, &[name, "tree".into()], style);
        match tree {
            Some(tree) if !tree.members.is_empty() => draw_tree(tree, place, theme, buffer),
            Some(_) => drop(put(buffer, place, 0, 0, "nothing of it runs", theme.faint())),
            None => {}
        }
        return;
    }
    let Some(log) = &state.log else {
        rule(buffer, title, &["no process".into()], style);
        return;
    };
    rule(buffer, title, &log_titles(log, name, place), style);
    match log.screen() {
        Some(seen) => screen::draw(seen, place, state.colours, buffer),
        None => draw_log(log, place, theme, buffer),
    }
}

fn log_titles(log: &LogView, name: String, place: Rect) -> Vec<String> {
    let height = usize::from(place.height);
    let first = log.first_visible(height);
    let state = match (log.follow, log.complete) {
        _ if !log.loaded => "loading".to_owned(),
        (true, true) => "end".to_owned(),
        (true, false) => "following".to_owned(),
        (false, _) => match log.number(first) {
            Some(number) => format!("line {number}"),
            None => format!("{} below", count(log.len().saturating_sub(first + height) as u64, "line")),
        },
    };
    let what = if log.screen().is_some() { "screen" } else { "stdout+stderr" };
    let search = log.search.as_ref().map(|search| format!("/{}", search.pattern.as_str()));
    vec![name, what.into(), state, search.unwrap_or_default()]
}

fn draw_log(log: &LogView, place: Rect, theme: Theme, buffer: &mut Buffer) {
    let height = usize::from(place.height);
    let first = log.first_visible(height);
    if log.loaded && log.len() == 0 {
        put(buffer, place, 0, 0, "it has written nothing", theme.faint());
    }
    for n in 0..height {
        let Some(line) = log.line(first + n) else { break };
        let y = u16::try_from(n).unwrap_or(u16::MAX);
        let style = if line.stderr { theme.stderr() } else { Style::new() };
        let mut x = 0;
        if let (Some(number), Source::Lines { .. }) = (log.number(first + n), log.source) {
            x = put(buffer, place, 0, y, &format!("{number:>6} "), theme.faint());
        }
        let text: String = line.text.chars().skip(log.left).collect();
        let Some(search) = &log.search else {
            put(buffer, place, x, y, &text, style);
            continue;
        };
        let mut end = 0;
        for found in search.pattern.find_iter(&text).take(usize::from(place.width)) {
            x = put(buffer, place, x, y, &text[end..found.start()], style);
            x = put(buffer, place, x, y, found.as_str(), theme.found());
            end = found.end();
        }
        put(buffer, place, x, y, &text[end..], style);
    }
}

fn draw_tree(tree: &TreeView, place: Rect, theme: Theme, buffer: &mut Buffer) {
    put(buffer, place, 0, 0, "    PID   CPU    MEM  COMMAND", theme.faint());
    let depth = |pid: i32| {
        let (mut at, mut depth) = (pid, 0);
        while let Some(member) = tree.members.iter().find(|member| member.pid == at) {
            // A cycle is impossible in a tree, and a racy snapshot must not hang us.
            if depth > tree.members.len() || !tree.members.iter().any(|other| other.pid == member.ppid) {
                break;
            }
            (at, depth) = (member.ppid, depth + 1);
        }
        depth
    };
    for (n, member) in tree.members.iter().take(usize::from(place.height.saturating_sub(1))).enumerate() {
        let cpu = tree.cpu_percent(member).map_or_else(|| "·".to_owned(), |percent| format!("{percent}%"));
        let command = escape_control(&member.command);
        let indent = "  ".repeat(depth(member.pid).min(10));
        let line = format!("{:>7} {cpu:>5} {:>6}  {indent}{command}", member.pid, bytes(member.rss_bytes));
        put(buffer, place, 0, u16::try_from(n + 1).unwrap_or(u16::MAX), &line, Style::new());
    }
}

fn grep_titles(grep: &GrepView) -> Vec<String> {
    let found = match (&grep.failure, grep.pending) {
        (Some(failure), _) => failure.clone(),
        (None, 0) if grep.cut => format!("the first {}", count(grep.hits.len() as u64, "line")),
        (None, 0) => count(grep.hits.len() as u64, "line"),
        (None, _) => "searching".into(),
    };
    vec!["all logs".into(), format!("/{}", escape_control(&grep.pattern)), found]
}

fn draw_grep(grep: &GrepView, place: Rect, theme: Theme, buffer: &mut Buffer) {
    let height = usize::from(place.height);
    for (n, hit) in grep.hits.iter().enumerate().skip(grep.top).take(height) {
        let y = u16::try_from(n - grep.top).unwrap_or(u16::MAX);
        let name = cut(&hit.name, usize::from(place.width / 3));
        let x = put(buffer, place, 0, y, &format!("{name}:{}  ", hit.line + 1), theme.bold());
        put(buffer, place, x, y, &hit.text, Style::new());
        if n == grep.cursor {
            let line = Rect::new(place.x, place.y + y, place.width, 1).intersection(buffer.area);
            buffer.set_style(line, theme.selected());
        }
    }
}
