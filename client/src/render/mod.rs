//! Rendering of results for people. Pure: values in, text out; no descriptor, no clock.

pub mod approval;
pub mod event;
pub mod info;
pub mod inspect;
pub mod kernel;
pub mod kill;
pub mod limits;
pub mod list;
pub mod policy;
pub mod poll;
pub mod progress_line;
pub mod queue;
pub mod sandbox;
pub mod sanitize;
pub mod script;
pub mod stage;
pub mod status;
pub mod table;
pub mod text;
pub mod time;
pub mod tools;
pub mod tree;
pub mod wait;
pub mod watch;
pub mod wrap;

/// Width and colour of rendered text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns to which lines are cut. None: nothing is cut.
    pub width: Option<usize>,
    pub colour: bool,
}

impl Style {
    /// Returns the style for a file or another program.
    pub fn plain() -> Style {
        Style { width: None, colour: false }
    }

    /// Returns true if the output is a terminal.
    pub fn terminal(&self) -> bool {
        self.width.is_some()
    }
}

/// Meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    None,
    Heading,
    Good,
    Bad,
    Busy,
    Faint,
}

impl Tint {
    /// Returns the text in this colour, or unchanged if the style has no colours.
    pub fn paint(self, text: &str, style: Style) -> String {
        let code = match self {
            Tint::None => "",
            Tint::Heading => "1",
            Tint::Good => "32",
            Tint::Bad => "31",
            Tint::Busy => "36",
            Tint::Faint => "2",
        };
        if style.colour && !code.is_empty() && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
