//! The help over the frame.

use super::{Theme, put};
use crate::model::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const LINES: [(&str, &str); 20] = [
    ("↑ ↓ j k PgUp PgDn", "move; the wheel too, a click selects"),
    ("enter", "the whole log; again or esc: back"),
    ("Tab", "list, log, events"),
    ("a", "attach to its terminal (Ctrl-\\ comes back)"),
    ("i", "write a line to it; hidden if it does not echo"),
    ("K", "kill its tree, after a question; KK: SIGKILL"),
    ("R", "start it again"),
    ("F", "forget it and its log"),
    ("Space", "mark, then K, R or F"),
    ("/", "filter the list; in the log: search, n N"),
    ("g", "grep all logs; enter opens a line"),
    ("e", "the log in $VISUAL, else in the pager"),
    ("y", "copy the id; in the log: the lines shown"),
    ("t", "the tree with cpu and memory of each"),
    ("o", "by owner"),
    ("s", "sort: state and cpu, memory, age, name"),
    ("← →", "the log sideways"),
    ("G End", "follow the log again"),
    ("Ctrl-L Ctrl-Z", "draw again, suspend"),
    ("q", "quit; processes go on"),
];

pub fn draw(state: &State, theme: Theme, buffer: &mut Buffer) {
    let width = state.columns.min(68);
    let height = state.lines.min(LINES.len() as u16 + 2);
    let place = Rect::new((state.columns - width) / 2, (state.lines - height) / 2, width, height);
    let place = place.intersection(buffer.area);
    for y in 0..place.height {
        put(buffer, place, 0, y, &" ".repeat(usize::from(place.width)), theme.selected());
    }
    put(buffer, place, 1, 0, "Keys  (any key closes this)", theme.selected().patch(theme.bold()));
    for (n, (key, what)) in LINES.iter().enumerate() {
        let y = u16::try_from(n + 1).unwrap_or(u16::MAX);
        put(buffer, place, 1, y, key, theme.selected().patch(theme.bold()));
        put(buffer, place, 20, y, what, theme.selected());
    }
}
