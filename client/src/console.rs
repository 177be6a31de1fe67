//! What `toolctl` writes to, and how it should look there.

use crate::error::CliError;
use crate::render::Style;
use crate::render::sanitize::{Keep, Sanitizer};
use crate::sys;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

/// A terminal of unknown width is taken to be this wide.
const USUAL_WIDTH: usize = 80;

/// `--color`: when there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR says no; anywhere if CLICOLOR_FORCE says so
    #[default]
    Auto,
    Always,
    Never,
}

/// Where colours go, from what was asked for and the environment. The only place that decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colours {
    /// Everywhere, those of programs' output too: somebody asked for them.
    Asked,
    Terminals,
    Nowhere,
}

impl Colours {
    fn decide(wanted: Colour, env: impl Fn(&str) -> Option<OsString>) -> Colours {
        let set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
        match wanted {
            Colour::Always => Colours::Asked,
            Colour::Never => Colours::Nowhere,
            Colour::Auto if set("NO_COLOR") => Colours::Nowhere,
            Colour::Auto if set("CLICOLOR_FORCE") && env("CLICOLOR_FORCE").is_some_and(|v| v != "0") => Colours::Asked,
            Colour::Auto if env("TERM").is_some_and(|term| term == "dumb") => Colours::Nowhere,
            Colour::Auto => Colours::Terminals,
        }
    }

    fn on(self, terminal: bool) -> bool {
        match self {
            Colours::Asked => true,
            Colours::Terminals => terminal,
            Colours::Nowhere => false,
        }
    }
}

/// Standard output and standard error, or what stands for them in a test.
pub struct Console<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
    pub style: Style,
    /// How standard error wants it.
    pub err_style: Style,
    /// Colours were asked for, so those in a program's output are kept.
    pub keeps_colours: bool,
    /// Standard error is a terminal where a line can be written over.
    pub can_redraw: bool,
    /// Where a line that is to be written over stands.
    line: Option<Line>,
    /// These are descriptors 1 and 2, which can be waited for, and descriptor 0 is ours to read.
    pub is_real: bool,
}

/// Where a line of ours stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Where the cursor is.
    Here,
    /// Below it.
    Below,
}

impl<'a> Console<'a> {
    /// The streams of this program.
    pub fn stdio(out: &'a mut dyn Write, err: &'a mut dyn Write, colour: Colour) -> Console<'a> {
        let colours = Colours::decide(colour, |name| std::env::var_os(name));
        let (style, err_style) = (style(&io::stdout(), colours), style(&io::stderr(), colours));
        // With a pager or a filter behind it the screen is not ours to write over.
        let can_redraw = err_style.terminal() && style.terminal() && !is_dumb();
        let keeps_colours = colours == Colours::Asked;
        Console { out, err, style, err_style, keeps_colours, can_redraw, line: None, is_real: true }
    }

    /// The streams of a test.
    #[cfg(test)]
    pub fn plain(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Console<'a> {
        let style = Style::plain();
        Console {
            out,
            err,
            style,
            err_style: style,
            keeps_colours: false,
            can_redraw: false,
            line: None,
            is_real: false,
        }
    }

    /// How a program's output is shown here. None: as it is, for it goes to a file or another program.
    pub fn sanitizer(&self) -> Option<Sanitizer> {
        match (self.keeps_colours, self.style.terminal()) {
            (true, _) => Some(Sanitizer::new(Keep::Colours)),
            (false, true) => Some(Sanitizer::new(Keep::Nothing)),
            (false, false) => None,
        }
    }

    /// Prints a whole piece of a program's output, with a newline at its end.
    pub fn print_output(&mut self, text: &str) -> Result<(), CliError> {
        let text = match self.sanitizer() {
            Some(shown) => shown.whole(text),
            None => text.to_owned(),
        };
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        self.print(&(text + end))
    }

    /// Whether a line can be shown now: there is a terminal for it, and we are not in its background.
    pub fn can_show_line(&self) -> bool {
        self.can_redraw && (!self.is_real || sys::is_foreground(io::stderr().as_fd()))
    }

    /// One line on standard error that the next one replaces, where that can be shown.
    pub fn show_line(&mut self, text: &str) {
        if self.can_show_line() {
            // If nobody sees it, nothing is lost.
            let _ = write!(self.err, "\r{text}\x1b[K").and_then(|()| self.err.flush());
            self.line = Some(Line::Here);
        }
    }

    /// The same below the line in which somebody may be typing, which stays as it is, with its cursor. Room is made for it first: at
    /// the bottom of the screen all moves up. By a vertical tab, which is a line feed that the kernel does not begin a line with.
    pub fn show_line_below(&mut self, text: &str) {
        if self.can_show_line() {
            let below = format!("\x1b[J\x0b\x1b[A\x1b7\x1b[B\r{text}\x1b8");
            let _ = self.err.write_all(below.as_bytes()).and_then(|()| self.err.flush());
            self.line = Some(Line::Below);
        }
    }

    /// Takes that line away, before anything else is printed, or when a line was typed.
    pub fn erase(&mut self) {
        let gone: &[u8] = match self.line.take() {
            Some(Line::Here) => b"\r\x1b[K",
            // The cursor is above it, or in it if an end of the line was typed.
            Some(Line::Below) => b"\x1b[J",
            None => return,
        };
        let _ = self.err.write_all(gone).and_then(|()| self.err.flush());
    }

    /// The terminal's bell, on standard error.
    pub fn ring(&mut self) {
        self.erase();
        let _ = self.err.write_all(b"\x07").and_then(|()| self.err.flush());
    }

    pub fn print(&mut self, text: &str) -> Result<(), CliError> {
        self.print_bytes(text.as_bytes())
    }

    pub fn print_bytes(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.erase();
        self.out.write_all(bytes).and_then(|()| self.out.flush()).map_err(CliError::io("write to standard output"))
    }

    /// A word to the person, on standard error. If nobody hears it, nothing else can be done.
    pub fn message(&mut self, text: &str) {
        self.erase();
        // It may quote a stranger's name.
        let text = Sanitizer::new(Keep::Nothing).push(text);
        let _ = writeln!(self.err, "toolctl: {text}").and_then(|()| self.err.flush());
    }
}

/// How a stream wants it: cut to its width on a terminal.
fn style(stream: &(impl IsTerminal + AsFd), colours: Colours) -> Style {
    if !stream.is_terminal() {
        return Style { colour: colours.on(false), ..Style::plain() };
    }
    let window = sys::window_size(stream.as_fd()).map(|size| size.cols as usize).filter(|cols| *cols > 0);
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|n| *n > 0);
    let width = window.or_else(columns).unwrap_or(USUAL_WIDTH);
    Style { width: Some(width), colour: colours.on(true) }
}

/// Whether the terminal knows no escape sequences.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_decides_on_colours_then_no_color_then_clicolor_force_then_the_terminal() {
        let decide = |wanted, env: &[(&str, &str)]| {
            Colours::decide(wanted, |name| env.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
        };
        let both = [("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")];
        assert_eq!(decide(Colour::Always, &both), Colours::Asked);
        assert_eq!(decide(Colour::Never, &both), Colours::Nowhere);
        assert_eq!(decide(Colour::Auto, &both), Colours::Nowhere);
        assert_eq!(decide(Colour::Auto, &[("NO_COLOR", ""), ("CLICOLOR_FORCE", "1")]), Colours::Asked);
        assert_eq!(decide(Colour::Auto, &[("CLICOLOR_FORCE", "0")]), Colours::Terminals);
        assert_eq!(decide(Colour::Auto, &[("TERM", "dumb")]), Colours::Nowhere);
        assert_eq!(decide(Colour::Auto, &[("TERM", "xterm")]), Colours::Terminals);
        assert_eq!([true, false].map(|terminal| Colours::Terminals.on(terminal)), [true, false]);
    }

    #[test]
    fn a_line_below_what_is_typed_leaves_it_and_the_cursor_alone() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::plain(&mut out, &mut err);
        console.can_redraw = true;
        let [rows, columns] = [4, 20].map(|n| n.try_into().expect("not zero"));
        let mut screen = vt100::Parser::new(rows, columns, 0);
        console.show_line_below("1s");
        console.show_line_below("2s");
        console.erase();
        let shown = "\x1b[J\x0b\x1b[A\x1b7\x1b[B\r";
        // At the top, in the middle and at the bottom, where all has to move up.
        for above in ["", "a\r\n", "a\r\nb\r\n", "a\r\nb\r\nc\r\n", "a\r\nb\r\nc\r\nd\r\n"] {
            screen.process(b"\x1b[H\x1b[J");
            screen.process(above.as_bytes());
            screen.process(b"typed");
            screen.process(format!("{shown}1s\x1b8").as_bytes());
            screen.process(b" on");
            let all = screen.screen().contents();
            assert!(all.ends_with("typed on\n1s"), "{above:?}: {all:?}");
            screen.process(b"\x1b[J!");
            assert!(screen.screen().contents().ends_with("typed on!"));
        }
        let one = |text: &str| format!("{shown}{text}\x1b8");
        assert_eq!(String::from_utf8_lossy(&err), one("1s") + &one("2s") + "\x1b[J");
    }

    #[test]
    fn a_line_to_be_written_over_is_gone_before_anything_else_is_printed() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::plain(&mut out, &mut err);
        console.show_line("nobody could see it");
        console.can_redraw = true;
        console.show_line("1s");
        console.show_line("2s");
        console.print("text\n").expect("a vector takes it");
        console.show_line("3s");
        console.message("word");
        console.erase();
        assert_eq!(String::from_utf8_lossy(&out), "text\n");
        assert_eq!(String::from_utf8_lossy(&err), "\r1s\x1b[K\r2s\x1b[K\r\x1b[K\r3s\x1b[K\r\x1b[Ktoolctl: word\n");
    }
}
