//! Keys outside of a typed line.

use super::{Action, Call, ask_info, ask_tree, line_keys, log, processes};
use crate::layout::layout;
use crate::model::arrangement::ListLine;
use crate::model::line_edit::LineEdit;
use crate::model::row::Row;
use crate::model::{Confirm, Detail, Mode, Pane, State};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::json;
use toold_client::text::count;

/// The largest distance: to the first or the last line.
const FAR: isize = isize::MAX / 4;
/// Columns by which an arrow key moves a log sideways.
const SIDE_STEP: usize = 16;

pub fn press(state: &mut State, key: KeyEvent, actions: &mut Vec<Action>) {
    if key.kind == KeyEventKind::Release {
        return;
    }
    match &state.mode {
        Mode::Normal => normal(state, key, actions),
        Mode::Help => state.mode = Mode::Normal,
        Mode::Confirm(question) => confirm(state, question.clone(), key, actions),
        Mode::Filter(_) | Mode::Search(_) | Mode::GrepPattern(_) | Mode::Answer { .. } => {
            line_keys::press(state, key, actions);
        }
    }
}

fn normal(state: &mut State, key: KeyEvent, actions: &mut Vec<Action>) {
    let height = page_height(state);
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        match key.code {
            KeyCode::Char('c') => actions.push(Action::Quit),
            KeyCode::Char('z') => actions.push(Action::Suspend),
            KeyCode::Char('l') => actions.push(Action::Redraw),
            KeyCode::Char('d') => scroll(state, height / 2, actions),
            KeyCode::Char('u') => scroll(state, -(height / 2), actions),
            // Other combinations mean nothing.
            _ => {}
        }
        return;
    }
    match key.code {
        KeyCode::Char('q') => actions.push(Action::Quit),
        KeyCode::Char('?') | KeyCode::F(1) => state.mode = Mode::Help,
        KeyCode::Esc => back(state, actions),
        KeyCode::Tab => next_pane(state, 1),
        KeyCode::BackTab => next_pane(state, 2),
        KeyCode::Up | KeyCode::Char('k') => scroll(state, -1, actions),
        KeyCode::Down | KeyCode::Char('j') => scroll(state, 1, actions),
        KeyCode::PageUp => scroll(state, -height, actions),
        KeyCode::PageDown => scroll(state, height, actions),
        KeyCode::Home => scroll(state, -FAR, actions),
        KeyCode::End | KeyCode::Char('G') => end(state, actions),
        KeyCode::Left | KeyCode::Right => sideways(state, key.code == KeyCode::Right),
        KeyCode::Enter => enter(state, actions),
        KeyCode::Char(' ') => mark(state, actions),
        KeyCode::Char('/') if state.pane == Pane::Log || state.zoomed => state.mode = Mode::Search(LineEdit::default()),
        KeyCode::Char('/') => state.mode = Mode::Filter(LineEdit::with(&state.filter)),
        KeyCode::Char('n') => next_match(state, true),
        KeyCode::Char('N') => next_match(state, false),
        KeyCode::Char('g') => state.mode = Mode::GrepPattern(LineEdit::default()),
        KeyCode::Char('o') => by_owner(state, actions),
        KeyCode::Char('s') => {
            state.sort = state.sort.next();
            state.arrange();
            state.notify(format!("sorted by {}", state.sort.name()));
        }
        KeyCode::Char('t') => tree(state, actions),
        KeyCode::Char(command) => command_key(state, command, actions),
        // Keys that mean nothing here.
        _ => {}
    }
}

/// Keys that act on the current process or the marked ones.
fn command_key(state: &mut State, key: char, actions: &mut Vec<Action>) {
    let Some(row) = state.current_row().cloned() else { return };
    match key {
        'a' if row.pty && !row.has_ended() => actions.push(Action::Attach(row.id)),
        'a' if row.has_ended() => state.notify("it has ended: there is nothing to attach to"),
        'a' => state.notify("it has no terminal; i writes a line to it"),
        'i' => line_keys::begin_answer(state, &row),
        'K' => ask_kill(state),
        'R' => ask_restart(state, actions),
        'F' => ask_forget(state),
        'e' => {
            let fields = ["id", "name", "log_files"];
            actions.push(Action::Send(Call::Edit, "inspect", json!({"id": row.id, "fields": fields})));
        }
        'y' => copy(state, &row, actions),
        // Letters that mean nothing.
        _ => {}
    }
}

/// Returns the lines that a page key moves by.
fn page_height(state: &State) -> isize {
    let places = layout(state);
    let height = match state.pane {
        _ if state.grep.is_some() || state.zoomed => places.detail.height,
        Pane::List => places.list.height,
        Pane::Log => places.detail.height,
        Pane::Events => places.events.height,
    };
    isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1)
}

/// Moves the cursor or the view of the pane that has the keys.
pub fn scroll(state: &mut State, by: isize, actions: &mut Vec<Action>) {
    let pane = if state.zoomed || state.grep.is_some() { Pane::Log } else { state.pane };
    scroll_pane(state, pane, by, actions);
}

pub fn scroll_pane(state: &mut State, pane: Pane, by: isize, actions: &mut Vec<Action>) {
    let height = usize::from(layout(state).detail.height);
    match (pane, &mut state.grep) {
        (Pane::List | Pane::Log, Some(grep)) if !state.zoomed => grep.step(by, height),
        (Pane::List, _) => step(state, by),
        (Pane::Log, _) => {
            if let Some(log) = &mut state.log {
                log.scroll(by, height);
            }
            log::page_if_needed(state, actions);
        }
        (Pane::Events, _) => {
            let most = state.events.len().saturating_sub(1);
            state.events_back = state.events_back.saturating_add_signed(-by).min(most);
        }
    }
}

/// Moves the cursor over processes; headings are passed over.
fn step(state: &mut State, by: isize) {
    let ids: Vec<&String> = state.shown.iter().filter_map(ListLine::id).collect();
    let at = state.selected.as_ref().and_then(|selected| ids.iter().position(|id| *id == selected)).unwrap_or(0);
    let to = at.saturating_add_signed(by).min(ids.len().saturating_sub(1));
    state.selected = ids.get(to).map(|id| (*id).clone());
}

fn end(state: &mut State, actions: &mut Vec<Action>) {
    let is_at_line =
        state.log.as_ref().is_some_and(|log| matches!(log.source, crate::model::log_view::Source::Lines { .. }));
    if (state.zoomed || state.pane == Pane::Log) && is_at_line {
        log::open_tail(state, actions);
    } else {
        scroll(state, FAR, actions);
    }
}

fn sideways(state: &mut State, right: bool) {
    if let Some(log) = &mut state.log {
        log.left = if right { log.left + SIDE_STEP } else { log.left.saturating_sub(SIDE_STEP) };
    }
}

fn enter(state: &mut State, actions: &mut Vec<Action>) {
    if let Some(grep) = &state.grep
        && !state.zoomed
    {
        if let Some(hit) = grep.hits.get(grep.cursor).cloned() {
            let height = usize::from(layout(state).detail.height);
            let pattern = grep.pattern.clone();
            state.pinned = Some(hit.id.clone());
            (state.zoomed, state.pane, state.detail) = (true, Pane::Log, Detail::Log);
            log::open_at_line(state, &hit.id, hit.line, actions);
            if let Some(log) = &mut state.log {
                // The pattern was accepted by the daemon; one that we cannot compile is only not highlighted.
                let _ = log.search(&pattern, height);
            }
        }
        return;
    }
    if state.zoomed {
        back(state, actions);
    } else if state.current().is_some() {
        (state.zoomed, state.pane, state.detail) = (true, Pane::Log, Detail::Log);
    }
}

/// Goes back by one step: from the log to the list or the results, from the results to the list.
fn back(state: &mut State, _actions: &mut Vec<Action>) {
    if state.zoomed {
        state.zoomed = false;
        state.pinned = None;
        state.pane = Pane::List;
    } else if state.grep.is_some() {
        state.grep = None;
        state.pane = Pane::List;
    } else if !state.marked.is_empty() {
        state.marked.clear();
    } else if state.pane != Pane::List {
        state.pane = Pane::List;
    } else if !state.filter.is_empty() {
        state.filter.clear();
        state.arrange();
    }
}

fn next_pane(state: &mut State, steps: usize) {
    let order = [Pane::List, Pane::Log, Pane::Events];
    let at = order.iter().position(|pane| *pane == state.pane).unwrap_or(0);
    state.pane = order[(at + steps) % order.len()];
    state.events_back = 0;
    if state.zoomed && state.pane == Pane::List {
        state.pane = if steps == 1 { Pane::Log } else { Pane::Events };
    }
}

fn next_match(state: &mut State, forward: bool) {
    let height = usize::from(layout(state).detail.height);
    if let Some(log) = &mut state.log
        && log.search.is_some()
        && !log.next_match(forward, height)
    {
        state.notify("no line matches");
    }
}

fn mark(state: &mut State, actions: &mut Vec<Action>) {
    if let Some(id) = state.current().cloned() {
        if !state.marked.remove(&id) {
            state.marked.insert(id);
        }
        if !state.zoomed {
            scroll_pane(state, Pane::List, 1, actions);
        }
    }
}

fn by_owner(state: &mut State, actions: &mut Vec<Action>) {
    state.by_owner = !state.by_owner;
    state.arrange();
    if state.by_owner && !state.timers.info_pending {
        ask_info(state, actions);
    }
}

fn tree(state: &mut State, actions: &mut Vec<Action>) {
    state.detail = match state.detail {
        Detail::Log => Detail::Tree,
        Detail::Tree => Detail::Log,
    };
    ask_tree(state, actions);
}

fn copy(state: &mut State, row: &Row, actions: &mut Vec<Action>) {
    let height = usize::from(layout(state).detail.height);
    let log = state.log.as_ref().filter(|_| state.pane == Pane::Log || state.zoomed);
    let text = match log {
        Some(log) => match log.screen() {
            Some(screen) => screen.contents(),
            None => {
                let first = log.first_visible(height);
                let lines = (first..first + height).filter_map(|at| log.line(at));
                lines.map(|line| line.text + "\n").collect()
            }
        },
        None => row.id.clone(),
    };
    let what = if log.is_some() { count(text.lines().count() as u64, "line") } else { row.id.clone() };
    actions.push(Action::Copy(text));
    state.notify(format!("copied {what}"));
}

/// Names the targets in a question: `web`, or `3 marked`.
fn named(rows: &[&Row]) -> String {
    match rows {
        [row] => toold_client::text::cut(row.label(), 20),
        rows => format!("{} marked", rows.len()),
    }
}

fn ids(rows: &[&Row]) -> Vec<String> {
    rows.iter().map(|row| row.id.clone()).collect()
}

fn ask_kill(state: &mut State) {
    let rows: Vec<&Row> = state.targets().into_iter().filter(|row| row.tree_len() > 0).collect();
    if rows.is_empty() {
        state.notify("nothing of it runs");
        return;
    }
    let tree: u64 = rows.iter().map(|row| row.tree_len()).sum();
    let text = format!("kill {} and its tree of {}? y yes  K SIGKILL  esc no", named(&rows), processes(tree));
    state.mode = Mode::Confirm(Confirm::Kill { ids: ids(&rows), text });
}

fn ask_restart(state: &mut State, actions: &mut Vec<Action>) {
    let rows = state.targets();
    let (ids, running) = (ids(&rows), rows.iter().filter(|row| row.tree_len() > 0).count());
    if running == 0 {
        restart(state, &ids, actions);
        return;
    }
    let text = format!("end {} and start it again? y yes  esc no", named(&rows));
    state.mode = Mode::Confirm(Confirm::Restart { ids, text });
}

fn restart(state: &mut State, ids: &[String], actions: &mut Vec<Action>) {
    for id in ids {
        let with_env = state.row(id).is_none_or(Row::has_ended);
        actions.push(Action::Restart { id: id.clone(), with_env });
    }
    state.marked.clear();
}

fn ask_forget(state: &mut State) {
    let rows: Vec<&Row> = state.targets().into_iter().filter(|row| row.has_ended()).collect();
    if rows.is_empty() {
        state.notify("it runs; K kills it");
        return;
    }
    let text = format!("forget {} and its log? y yes  esc no", named(&rows));
    state.mode = Mode::Confirm(Confirm::Forget { ids: ids(&rows), text });
}

fn confirm(state: &mut State, question: Confirm, key: KeyEvent, actions: &mut Vec<Action>) {
    let is_yes = matches!(key.code, KeyCode::Char('y' | 'Y') | KeyCode::Enter);
    let is_no =
        matches!(key.code, KeyCode::Esc | KeyCode::Char('n' | 'q')) || key.modifiers.contains(KeyModifiers::CONTROL);
    match question {
        Confirm::Kill { ids, .. } if key.code == KeyCode::Char('K') => {
            let params = json!({"ids": ids, "signal": "SIGKILL", "grace_ms": 0});
            actions.push(Action::Send(Call::Kill, "kill", params));
            state.notify("killing …");
        }
        Confirm::Kill { ids, .. } if is_yes => {
            actions.push(Action::Send(Call::Kill, "kill", json!({"ids": ids})));
            state.notify("ending …");
        }
        Confirm::Restart { ids, .. } if is_yes => restart(state, &ids, actions),
        Confirm::Forget { ids, .. } if is_yes => {
            actions.push(Action::Send(Call::Forget, "forget", json!({"ids": ids})));
            state.marked.clear();
        }
        _ if is_no => {}
        // Another key is not an answer.
        _ => return,
    }
    state.mode = Mode::Normal;
}
