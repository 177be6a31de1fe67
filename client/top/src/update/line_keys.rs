//! Keys in a typed line: the filter, a search, a pattern for all logs, the answer to a question.

use super::{Action, Call};
use crate::layout::layout;
use crate::model::grep::{GrepView, MAX_HITS};
use crate::model::line_edit::{Edited, LineEdit};
use crate::model::row::Row;
use crate::model::{Mode, Pane, State};
use ratatui::crossterm::event::KeyEvent;
use serde_json::json;

pub fn press(state: &mut State, key: KeyEvent, actions: &mut Vec<Action>) {
    let edited = match &mut state.mode {
        Mode::Filter(line) | Mode::Search(line) | Mode::GrepPattern(line) | Mode::Answer { line, .. } => {
            line.press(key)
        }
        Mode::Normal | Mode::Confirm(_) | Mode::Help => return,
    };
    match edited {
        Edited::Changed => filter_as_typed(state),
        Edited::Ignored => {}
        Edited::Cancelled => {
            if let Mode::Filter(_) = std::mem::replace(&mut state.mode, Mode::Normal) {
                state.filter.clear();
                state.arrange();
            }
        }
        Edited::Submitted => {
            let mode = std::mem::replace(&mut state.mode, Mode::Normal);
            submit(state, mode, actions);
        }
    }
}

pub fn paste(state: &mut State, text: &str) {
    if let Mode::Filter(line) | Mode::Search(line) | Mode::GrepPattern(line) | Mode::Answer { line, .. } =
        &mut state.mode
    {
        line.insert(text);
    }
    filter_as_typed(state);
}

fn filter_as_typed(state: &mut State) {
    if let Mode::Filter(line) = &state.mode {
        state.filter = line.text().to_owned();
        state.arrange();
    }
}

fn submit(state: &mut State, mode: Mode, actions: &mut Vec<Action>) {
    match mode {
        Mode::Search(line) if line.text().is_empty() => {
            if let Some(log) = &mut state.log {
                log.search = None;
            }
        }
        Mode::Search(line) => {
            let height = usize::from(layout(state).detail.height);
            let found = state.log.as_mut().map(|log| log.search(line.text(), height));
            match found {
                Some(Ok(true)) | None => {}
                Some(Ok(false)) => state.notify("no line matches"),
                Some(Err(why)) => state.notify(format!("not a regular expression: {why}")),
            }
        }
        Mode::GrepPattern(line) if !line.text().is_empty() => {
            state.timers.grep_generation += 1;
            let call = Call::Grep(state.timers.grep_generation);
            state.grep = Some(GrepView { pending: 1, ..GrepView::new(line.text()) });
            (state.zoomed, state.pinned, state.pane) = (false, None, Pane::Log);
            let params = json!({"grep": line.text(), "limit": MAX_HITS});
            actions.push(Action::Send(call, "log", params));
        }
        Mode::Answer { id, line, hidden, .. } => {
            let mut params = json!({"id": id, "data": line.text()});
            if hidden {
                params["secret"] = json!(true);
            }
            actions.push(Action::Send(Call::Submit, "submit", params));
        }
        Mode::GrepPattern(_) | Mode::Filter(_) | Mode::Normal | Mode::Confirm(_) | Mode::Help => {}
    }
}

/// Opens the line that answers a process.
pub fn begin_answer(state: &mut State, row: &Row) {
    if !row.has_stdin() {
        let why = if row.has_ended() { "it has ended" } else { "it reads no input: its stdin is closed" };
        state.notify(why);
        return;
    }
    let prompt = row.question.as_ref().map(|question| question.prompt.clone()).filter(|prompt| !prompt.is_empty());
    let title = prompt.unwrap_or_else(|| format!("input for {}", row.label()));
    state.mode = Mode::Answer { id: row.id.clone(), title, line: LineEdit::default(), hidden: false };
    hide_if_secret(state);
}

/// Hides the typed answer once the terminal does not show what is typed. It stays hidden.
pub fn hide_if_secret(state: &mut State) {
    let Mode::Answer { id, .. } = &state.mode else { return };
    let question = state.row(id).and_then(|row| row.question.clone());
    if let (Mode::Answer { hidden, title, .. }, Some(question)) = (&mut state.mode, question) {
        *hidden |= question.echo == Some(false);
        if !question.prompt.is_empty() {
            *title = question.prompt;
        }
    }
}
