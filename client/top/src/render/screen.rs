//! The screen of a process's terminal, cell by cell with its colours.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

pub fn draw(screen: &vt100::Screen, place: Rect, colours: bool, buffer: &mut Buffer) {
    let place = place.intersection(buffer.area);
    let (rows, cols) = screen.size();
    // The part that ends with the last line in use, and has the cursor.
    let (cursor, _) = screen.cursor_position();
    let is_used = |row: &u16| (0..cols.get()).any(|col| screen.cell(*row, col).is_some_and(vt100::Cell::has_contents));
    let last = (0..rows.get()).rev().find(is_used).unwrap_or(0).max(cursor);
    let first = (last + 1).saturating_sub(place.height);
    for y in 0..place.height {
        let mut x = 0;
        while x < place.width.min(cols.get()) {
            let Some(cell) = screen.cell(first + y, x) else { break };
            let width = if cell.is_wide() { 2 } else { 1 };
            if let Some(drawn) = buffer.cell_mut((place.x + x, place.y + y)) {
                let is_cut = width == 2 && x + 1 >= place.width;
                drawn.set_symbol(if cell.has_contents() && !is_cut { cell.contents() } else { " " });
                drawn.set_style(style(cell, colours));
            }
            x += width;
        }
    }
}

fn style(cell: &vt100::Cell, colours: bool) -> Style {
    let mut style = Style::new();
    if colours {
        style = style.fg(colour(cell.fgcolor())).bg(colour(cell.bgcolor()));
    }
    let modifiers = [
        (cell.bold(), Modifier::BOLD),
        (cell.dim(), Modifier::DIM),
        (cell.italic(), Modifier::ITALIC),
        (cell.underline(), Modifier::UNDERLINED),
        (cell.inverse(), Modifier::REVERSED),
    ];
    modifiers.into_iter().filter(|(on, _)| *on).fold(style, |style, (_, modifier)| style.add_modifier(modifier))
}

fn colour(colour: vt100::Color) -> Color {
    match colour {
        vt100::Color::Default => Color::Reset,
        vt100::Color::Idx(n) => Color::Indexed(n),
        vt100::Color::Rgb(r, g, b) => Color::Rgb(r, g, b),
    }
}
