//! The places of the panes on the screen. Drawing, paging and the mouse use the same.

use crate::model::{Pane, State};
use ratatui::layout::Rect;

/// Below this size only the list or the log is shown.
const MIN_COLUMNS: u16 = 40;
const MIN_LINES: u16 = 8;
/// Lines of the strip of events while it has the keys.
const EVENT_LINES: u16 = 6;

/// The places. One without a line is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layout {
    /// The screen is too small for more than one pane.
    pub reduced: bool,
    pub header: Rect,
    /// The names of the columns.
    pub heading: Rect,
    pub list: Rect,
    pub detail_title: Rect,
    /// The log, the tree, or the results of a search.
    pub detail: Rect,
    pub events_title: Rect,
    pub events: Rect,
    /// Keys, a question or a typed line.
    pub bottom: Rect,
}

/// Places the panes one below the other.
struct Stack {
    columns: u16,
    at: u16,
}

impl Stack {
    fn take(&mut self, lines: u16) -> Rect {
        let place = Rect::new(0, self.at, self.columns, lines);
        self.at += lines;
        place
    }
}

pub fn layout(state: &State) -> Layout {
    let (columns, lines) = (state.columns, state.lines);
    let mut stack = Stack { columns, at: 0 };
    let covers_list = state.zoomed || state.grep.is_some();
    if columns < MIN_COLUMNS || lines < MIN_LINES {
        let header = stack.take(u16::from(lines > 1));
        let bottom_lines = u16::from(lines > 2);
        let body = stack.take(lines - header.height - bottom_lines);
        let bottom = stack.take(bottom_lines);
        let (list, detail) = if covers_list { (Rect::default(), body) } else { (body, Rect::default()) };
        return Layout { reduced: true, header, list, detail, bottom, ..Layout::default() };
    }
    let event_lines = if state.pane == Pane::Events { EVENT_LINES.min((lines - MIN_LINES) / 2) } else { 0 };
    let header = stack.take(1);
    let rest = lines - 4 - event_lines;
    let (heading, list) = if covers_list {
        (Rect::default(), Rect::default())
    } else {
        let wanted = u16::try_from(state.shown.len()).unwrap_or(u16::MAX).max(1);
        // The log keeps two fifths.
        let most = (rest - 1).saturating_sub(((rest - 1) * 2 / 5).max(1)).max(1);
        (stack.take(1), stack.take(wanted.min(most)))
    };
    let detail_title = stack.take(1);
    let detail = stack.take(lines - 2 - event_lines - stack.at);
    let events_title = stack.take(1);
    let events = stack.take(event_lines);
    let bottom = stack.take(1);
    Layout { reduced: false, header, heading, list, detail_title, detail, events_title, events, bottom }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::arrangement::ListLine;

    #[test]
    fn the_panes_fill_every_size_exactly_once() {
        for columns in [1, 20, 39, 40, 80, 300] {
            for lines in 1..60 {
                for (shown, zoomed, pane) in [(0, false, Pane::List), (500, false, Pane::Events), (3, true, Pane::Log)]
                {
                    let mut state = State::new(columns, lines, 0);
                    (state.zoomed, state.pane) = (zoomed, pane);
                    state.shown = vec![ListLine::Process("p".into()); shown];
                    let l = layout(&state);
                    let panes =
                        [l.header, l.heading, l.list, l.detail_title, l.detail, l.events_title, l.events, l.bottom];
                    let used: u16 = panes.iter().map(|pane| pane.height).sum();
                    assert_eq!(used, lines, "{columns}x{lines}: {l:?}");
                    assert!(l.reduced || l.detail.height > 0, "{columns}x{lines}: {l:?}");
                }
            }
        }
    }
}
