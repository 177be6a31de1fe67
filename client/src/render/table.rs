//! Rows in aligned columns, cut to a width, and lists of facts.

use super::text::{columns, cut, escape_control, pad};
use super::wrap::hanging_indent;
use super::{Style, Tint};

/// Space between two columns.
pub const COLUMN_GAP: &str = "  ";
/// Maximum width of all columns but the last on a terminal: one long name must not push out the rest.
pub const MAX_COLUMN_WIDTH: usize = 24;

/// Maximum width to which columns are padded elsewhere: one long command must not make every line as long.
const MAX_PAD_WIDTH: usize = 60;

/// One cell, with control characters escaped.
#[derive(Clone)]
pub struct Cell {
    text: String,
    tint: Tint,
    /// A number is aligned to the right.
    number: bool,
}

impl Cell {
    pub fn new(text: &str) -> Cell {
        Cell::tinted(text, Tint::None)
    }

    pub fn tinted(text: &str, tint: Tint) -> Cell {
        Cell { text: escape_control(text), tint, number: false }
    }

    pub fn number(text: &str) -> Cell {
        Cell { number: true, ..Cell::new(text) }
    }
}

/// Renders rows, one per line. The last column gets the remaining width.
pub fn table<const N: usize>(headings: [&str; N], rows: Vec<[Cell; N]>, style: Style) -> String {
    table_with_widths(headings, rows, style, |widths, room| {
        let mut left = room;
        std::array::from_fn(|n| {
            let width = if n + 1 == N { left } else { widths[n].min(MAX_COLUMN_WIDTH).min(left) };
            left = left.saturating_sub(width + COLUMN_GAP.len());
            width
        })
    })
}

/// Renders rows, one per line. On a terminal `fit` returns the width of each column, from the width of its content and the width
/// of the terminal; a column of width 0 is left out.
pub fn table_with_widths<const N: usize>(
    headings: [&str; N],
    rows: Vec<[Cell; N]>,
    style: Style,
    fit: impl FnOnce([usize; N], usize) -> [usize; N],
) -> String {
    let mut rows = rows;
    let numbers: [bool; N] = std::array::from_fn(|n| rows.first().is_some_and(|row| row[n].number));
    let mut heading = headings.map(|text| Cell::tinted(text, Tint::Heading));
    heading.iter_mut().zip(numbers).for_each(|(cell, number)| cell.number = number);
    rows.insert(0, heading);
    let widest = |n: usize| rows.iter().map(|row| columns(&row[n].text)).max().unwrap_or(0);
    let content: [usize; N] = std::array::from_fn(widest);
    let widths = style.width.map_or(content, |room| fit(content, room));
    rows.iter().map(|row| line(row, &widths, style)).collect()
}

fn line<const N: usize>(row: &[Cell; N], widths: &[usize; N], style: Style) -> String {
    let shown: Vec<(&Cell, usize)> = row.iter().zip(widths.iter().copied()).filter(|(_, width)| *width > 0).collect();
    let mut out = String::new();
    for (n, (cell, width)) in shown.iter().enumerate() {
        let text = if style.terminal() { cut(&cell.text, *width) } else { cell.text.clone() };
        let last = n + 1 == shown.len();
        let padded = (*width).min(if style.terminal() { usize::MAX } else { MAX_PAD_WIDTH });
        let text = match (cell.number, last) {
            (true, _) => " ".repeat(padded.saturating_sub(columns(&text))) + &text,
            (false, true) => text,
            (false, false) => pad(&text, padded),
        };
        out.push_str(&cell.tint.paint(&text, style));
        out.push_str(if last { "" } else { COLUMN_GAP });
    }
    // Spaces before the end of a colour are not trimmed, which is harmless.
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
    out
}

/// Renders `key: value` lines with aligned values. A fact without a key continues the one before. On a terminal a long value
/// continues on the next line.
pub fn facts(facts: &[(&str, String)], style: Style) -> String {
    let width = facts.iter().map(|(key, _)| columns(key)).max().unwrap_or(0);
    facts.iter().map(|(key, value)| fact(&title(key, width), "", value, style)).collect()
}

/// Returns a title, padded for values that are aligned behind titles of this width.
pub fn title(key: &str, width: usize) -> String {
    let key = if key.is_empty() { String::new() } else { format!("{key}:") };
    pad(&key, width + COLUMN_GAP.len())
}

/// Renders a value behind its title and name.
pub fn fact(title: &str, name: &str, value: &str, style: Style) -> String {
    let mut out = String::new();
    for (n, (start, text)) in
        hanging_indent(&format!("{title}{name}"), &escape_control(value), style.width).into_iter().enumerate()
    {
        let faint = if n == 0 { title.len().min(start.len()) } else { 0 };
        let (title, name) = start.split_at(faint);
        out.push_str(format!("{}{name}{text}", Tint::Faint.paint(title, style)).trim_end_matches(' '));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<[Cell; 3]> {
        vec![
            [Cell::new("proc_1"), Cell::new("日本"), Cell::tinted("sleep 1\nrm", Tint::Bad)],
            [Cell::new("p"), Cell::new("x"), Cell::new("a command that is long")],
        ]
    }

    #[test]
    fn columns_are_aligned_by_display_width_and_nothing_is_cut_without_a_terminal() {
        let shown = table(["ID", "NAME", "COMMAND"], rows(), Style::plain());
        assert_eq!(shown, "ID      NAME  COMMAND\nproc_1  日本  sleep 1\\nrm\np       x     a command that is long\n");
    }

    #[test]
    fn a_narrow_terminal_cuts_every_line_to_its_width() {
        for width in 1..40 {
            let shown = table(["ID", "NAME", "COMMAND"], rows(), Style { width: Some(width), colour: false });
            assert!(shown.lines().all(|line| columns(line) <= width), "{width}: {shown}");
        }
        let shown = table(["ID", "NAME", "COMMAND"], rows(), Style { width: Some(20), colour: false });
        assert_eq!(shown, "ID      NAME  COMMA…\nproc_1  日本  sleep…\np       x     a com…\n");
    }

    #[test]
    fn colours_appear_only_if_the_style_has_them() {
        let shown = table(["ID", "NAME", "COMMAND"], rows(), Style { width: Some(80), colour: true });
        assert!(shown.contains("\x1b[31msleep 1\\nrm\x1b[0m\n"), "{shown:?}");
        assert!(!table(["ID", "NAME", "COMMAND"], rows(), Style { width: Some(80), colour: false }).contains('\x1b'));
    }

    #[test]
    fn facts_align_their_values_and_wrap_long_ones() {
        let all = [
            ("id", "x".into()),
            ("command", "one that is long or longer".into()),
            ("at", "/a/path/of/some/length/x".into()),
        ];
        let shown = |width| facts(&all, Style { width, colour: false });
        assert_eq!(shown(None), "id:      x\ncommand: one that is long or longer\nat:      /a/path/of/some/length/x\n");
        assert_eq!(
            shown(Some(33)),
            "id:      x\ncommand: one that is long or\n         longer\nat:      /a/path/of/some/length/x\n"
        );
        // A path is not broken if it fits below its title.
        assert_eq!(
            shown(Some(29)),
            "id:      x\ncommand:\n    one that is long or\n    longer\nat:\n    /a/path/of/some/length/x\n"
        );
        let coloured = facts(&all[..1], Style { width: Some(33), colour: true });
        assert_eq!(coloured, "\x1b[2mid:  \x1b[0mx\n".replace("id:  ", "id: "));
    }
}
