//! `render(state) → frame`. Every text is cut to its place; nothing wraps.

mod bars;
mod detail;
mod help;
mod list;
mod screen;
#[cfg(test)]
mod tests;

use crate::layout::{Layout, layout};
use crate::model::{Mode, State};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use toold_client::text::{columns, cut};

/// The styles of a frame. Without colours only brightness and reversal are left.
#[derive(Clone, Copy)]
struct Theme {
    colours: bool,
}

impl Theme {
    fn colour(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// One bar, whatever the colours of the line are.
    fn selected(self) -> Style {
        Style::new().fg(Color::Reset).remove_modifier(Modifier::DIM).add_modifier(Modifier::REVERSED)
    }

    fn stderr(self) -> Style {
        if self.colours { Style::new().fg(Color::Red) } else { Style::new().add_modifier(Modifier::DIM) }
    }

    fn found(self) -> Style {
        if self.colours {
            Style::new().fg(Color::Black).bg(Color::Yellow)
        } else {
            Style::new().add_modifier(Modifier::REVERSED)
        }
    }
}

/// Draws a frame. Returns the place of the cursor, if a line is typed.
pub fn render(state: &State, buffer: &mut Buffer) -> Option<Position> {
    buffer.reset();
    let places: Layout = layout(state);
    let theme = Theme { colours: state.colours };
    bars::header(state, places.header, theme, buffer);
    if !places.list.is_empty() {
        list::draw(state, places.heading, places.list, theme, buffer);
    }
    if !places.detail.is_empty() {
        detail::draw(state, places.detail_title, places.detail, theme, buffer);
    }
    bars::events(state, places.events_title, places.events, theme, buffer);
    let cursor = bars::bottom(state, places.bottom, theme, buffer);
    if state.mode == Mode::Help {
        help::draw(state, theme, buffer);
    }
    cursor
}

/// Writes text into a line of a place, cut to its width. Returns the column after it.
fn put(buffer: &mut Buffer, place: Rect, x: u16, line: u16, text: &str, style: Style) -> u16 {
    let place = place.intersection(buffer.area);
    if x >= place.width || line >= place.height {
        return x;
    }
    let room = usize::from(place.width - x);
    let text = cut(text, room);
    buffer.set_stringn(place.x + x, place.y + line, &text, room, style);
    x + u16::try_from(columns(&text)).unwrap_or(0)
}

/// Draws a rule with titles in it: `── web ── following ────`.
fn rule(buffer: &mut Buffer, place: Rect, titles: &[String], style: Style) {
    let mut text = String::from("──");
    for title in titles.iter().filter(|title| !title.is_empty()) {
        text.push_str(&format!(" {title} ──"));
    }
    let width = usize::from(place.width);
    let drawn = columns(&text);
    text.extend(std::iter::repeat_n('─', width.saturating_sub(drawn)));
    put(buffer, place, 0, 0, &text, style);
}
