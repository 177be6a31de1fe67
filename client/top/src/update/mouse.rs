//! The mouse: the wheel scrolls the pane below it, a click selects.

use super::{Action, keys};
use crate::layout::layout;
use crate::model::arrangement::ListLine;
use crate::model::{Mode, Pane, State};
use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

/// Lines that one step of the wheel moves by.
const WHEEL_LINES: isize = 3;

pub fn on_mouse(state: &mut State, event: MouseEvent, actions: &mut Vec<Action>) {
    if state.mode != Mode::Normal {
        return;
    }
    let places = layout(state);
    let at = Position::new(event.column, event.row);
    let pane = if places.list.contains(at) {
        Pane::List
    } else if places.events.contains(at) || places.events_title.contains(at) {
        Pane::Events
    } else if places.detail.contains(at) || places.detail_title.contains(at) {
        Pane::Log
    } else {
        return;
    };
    match event.kind {
        MouseEventKind::ScrollUp => keys::scroll_pane(state, pane, -WHEEL_LINES, actions),
        MouseEventKind::ScrollDown => keys::scroll_pane(state, pane, WHEEL_LINES, actions),
        MouseEventKind::Down(MouseButton::Left) => {
            state.pane = pane;
            let line =
                usize::from(event.row.saturating_sub(if pane == Pane::List { places.list.y } else { places.detail.y }));
            match (pane, &mut state.grep) {
                (Pane::List, _) => {
                    if let Some(id) = state.shown.get(state.list_top + line).and_then(ListLine::id) {
                        state.selected = Some(id.clone());
                    }
                }
                (Pane::Log, Some(grep)) if !state.zoomed && grep.top + line < grep.hits.len() => {
                    grep.cursor = grep.top + line;
                }
                (Pane::Log | Pane::Events, _) => {}
            }
        }
        // Moves and other buttons mean nothing.
        _ => {}
    }
}
