//! Standard output and standard error of `toolctl`: width, colours, messages and the redrawn line.

use crate::error::CliError;
use crate::render::Style;
use crate::render::sanitize::{Keep, Sanitizer};
use crate::render::text::{escape_control, escape_json, only_lines_and_colours};
use crate::sys;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

/// Width in columns of a terminal that does not report one.
const DEFAULT_WIDTH: usize = 80;

/// Value of `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set; everywhere if CLICOLOR_FORCE is set
    #[default]
    Auto,
    Always,
    Never,
}

/// Streams that get colours, decided from `--color` and the environment. Nothing else decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColourPolicy {
    /// All streams, and colours of programs' output are kept, since the user asked for them.
    Always,
    TerminalsOnly,
    Never,
}

impl ColourPolicy {
    fn decide(flag: Colour, env: impl Fn(&str) -> Option<OsString>) -> ColourPolicy {
        let set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
        match flag {
            Colour::Always => ColourPolicy::Always,
            Colour::Never => ColourPolicy::Never,
            Colour::Auto if set("NO_COLOR") => ColourPolicy::Never,
            Colour::Auto if set("CLICOLOR_FORCE") && env("CLICOLOR_FORCE").is_some_and(|v| v != "0") => {
                ColourPolicy::Always
            }
            Colour::Auto if env("TERM").is_some_and(|term| term == "dumb") => ColourPolicy::Never,
            Colour::Auto => ColourPolicy::TerminalsOnly,
        }
    }

    fn applies_to(self, terminal: bool) -> bool {
        match self {
            ColourPolicy::Always => true,
            ColourPolicy::TerminalsOnly => terminal,
            ColourPolicy::Never => false,
        }
    }
}

/// Standard output and standard error, or their replacements in a test.
pub struct Console<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
    pub style: Style,
    /// The style of standard error.
    pub err_style: Style,
    /// The user asked for colours, so those in a program's output are kept.
    pub keeps_colours: bool,
    /// Standard error is a terminal on which a line can be overwritten.
    pub can_redraw: bool,
    /// Position of the line that is to be overwritten, if there is one.
    line: Option<LinePosition>,
    /// These are descriptors 1 and 2, which can be polled, and descriptor 0 may be read. False in tests.
    pub is_real: bool,
}

/// Position of the redrawn line relative to the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    AtCursor,
    BelowCursor,
}

impl<'a> Console<'a> {
    /// Returns the console on the standard streams of this process.
    pub fn stdio(out: &'a mut dyn Write, err: &'a mut dyn Write, colour: Colour) -> Console<'a> {
        let colours = ColourPolicy::decide(colour, |name| std::env::var_os(name));
        let (style, err_style) = (style(&io::stdout(), colours), style(&io::stderr(), colours));
        // With a pager or a filter reading standard output the screen is not ours to overwrite.
        let can_redraw = err_style.terminal() && style.terminal() && !is_dumb();
        let keeps_colours = colours == ColourPolicy::Always;
        Console { out, err, style, err_style, keeps_colours, can_redraw, line: None, is_real: true }
    }

    /// Returns a console for tests.
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

    /// Returns the sanitizer for a program's output, or None if the output goes unchanged to a file or another program.
    pub fn sanitizer(&self) -> Option<Sanitizer> {
        match (self.keeps_colours, self.style.terminal()) {
            (true, _) => Some(Sanitizer::new(Keep::Colours)),
            (false, true) => Some(Sanitizer::new(Keep::Nothing)),
            (false, false) => None,
        }
    }

    /// Prints complete output of a program, with a newline at its end.
    pub fn print_output(&mut self, text: &str) -> Result<(), CliError> {
        let text = match self.sanitizer() {
            Some(sanitizer) => sanitizer.sanitize(text),
            None => text.to_owned(),
        };
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        self.print(&(text + end))
    }

    /// Returns true if a redrawn line can be shown now: standard error is a terminal, and we are in its foreground.
    pub fn can_show_line(&self) -> bool {
        self.can_redraw && (!self.is_real || sys::is_foreground(io::stderr().as_fd()))
    }

    /// Shows one line on standard error that the next one replaces, if possible.
    pub fn show_line(&mut self, text: &str) {
        if self.can_show_line() {
            // A failure only loses a progress line.
            let _ = write!(self.err, "\r{text}\x1b[K").and_then(|()| self.err.flush());
            self.line = Some(LinePosition::AtCursor);
        }
    }

    /// Shows the line below the cursor's line, in which the user may be typing; that line and the cursor stay. At the bottom of the
    /// screen all text moves up first. A vertical tab does that: the kernel does not add a carriage return to it, as it does to a
    /// line feed.
    pub fn show_line_below(&mut self, text: &str) {
        if self.can_show_line() {
            let below = format!("\x1b[J\x0b\x1b[A\x1b7\x1b[B\r{text}\x1b8");
            let _ = self.err.write_all(below.as_bytes()).and_then(|()| self.err.flush());
            self.line = Some(LinePosition::BelowCursor);
        }
    }

    /// Erases the redrawn line, before anything else is printed or after the user typed a line.
    pub fn erase(&mut self) {
        let erase: &[u8] = match self.line.take() {
            Some(LinePosition::AtCursor) => b"\r\x1b[K",
            // The cursor is above the line, or in it if the user typed Enter.
            Some(LinePosition::BelowCursor) => b"\x1b[J",
            None => return,
        };
        let _ = self.err.write_all(erase).and_then(|()| self.err.flush());
    }

    /// Rings the terminal's bell, on standard error.
    pub fn ring(&mut self) {
        self.erase();
        let _ = self.err.write_all(b"\x07").and_then(|()| self.err.flush());
    }

    /// Prints rendered text. On a terminal nothing in it acts but lines and colours.
    pub fn print(&mut self, text: &str) -> Result<(), CliError> {
        match self.style.terminal() {
            true => self.print_bytes(only_lines_and_colours(text).as_bytes()),
            false => self.print_bytes(text.as_bytes()),
        }
    }

    /// Prints a JSON document, unchanged but for characters that act on a terminal.
    pub fn print_json(&mut self, document: &str) -> Result<(), CliError> {
        let shown = if self.style.terminal() { escape_json(document) } else { document.to_owned() };
        self.print_bytes((shown + "\n").as_bytes())
    }

    /// Prints an error as a JSON document on standard error. A failure is ignored: the exit code remains.
    pub fn json_error(&mut self, document: &str) {
        let shown = if self.err_style.terminal() { escape_json(document) } else { document.to_owned() };
        let _ = writeln!(self.err, "{shown}").and_then(|()| self.err.flush());
    }

    pub fn print_bytes(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.erase();
        self.out.write_all(bytes).and_then(|()| self.out.flush()).map_err(CliError::io("write to standard output"))
    }

    /// Prints text for another program on standard error. A failure counts: the program has not received it.
    pub fn print_error(&mut self, text: &str) -> Result<(), CliError> {
        self.err
            .write_all(text.as_bytes())
            .and_then(|()| self.err.flush())
            .map_err(CliError::io("write to standard error"))
    }

    /// Prints a message to the user on standard error. A failure is ignored, since there is no other way to report it.
    /// It is one line: it may contain a name, a path or a message of the daemon, which is untrusted text.
    pub fn message(&mut self, text: &str) {
        self.erase();
        let _ = writeln!(self.err, "toolctl: {}", escape_control(text)).and_then(|()| self.err.flush());
    }

    /// Prints output of a program on standard error, below a message, with a newline at its end.
    pub fn print_tail(&mut self, text: &str) {
        let shown = match self.err_style.terminal() {
            true => Sanitizer::new(Keep::Nothing).sanitize(text),
            false if text.is_empty() || text.ends_with('\n') => text.to_owned(),
            false => format!("{text}\n"),
        };
        let _ = self.err.write_all(shown.as_bytes()).and_then(|()| self.err.flush());
    }

    /// Prints lines of a file below a message, indented so that none looks like a message.
    pub fn excerpt(&mut self, text: &str) {
        for line in text.lines() {
            let _ = writeln!(self.err, "  {}", escape_control(line));
        }
        let _ = self.err.flush();
    }
}

/// Returns the style of a stream: lines are cut to its width if it is a terminal.
fn style(stream: &(impl IsTerminal + AsFd), colours: ColourPolicy) -> Style {
    if !stream.is_terminal() {
        return Style { colour: colours.applies_to(false), ..Style::plain() };
    }
    let window = sys::window_size(stream.as_fd()).map(|size| size.cols as usize).filter(|cols| *cols > 0);
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|n| *n > 0);
    let width = window.or_else(columns).unwrap_or(DEFAULT_WIDTH);
    Style { width: Some(width), colour: colours.applies_to(true) }
}

/// Returns true if the terminal does not support escape sequences.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_precedes_no_color_then_clicolor_force_then_the_terminal() {
        let decide = |flag, env: &[(&str, &str)]| {
            ColourPolicy::decide(flag, |name| env.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
        };
        let both = [("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")];
        assert_eq!(decide(Colour::Always, &both), ColourPolicy::Always);
        assert_eq!(decide(Colour::Never, &both), ColourPolicy::Never);
        assert_eq!(decide(Colour::Auto, &both), ColourPolicy::Never);
        assert_eq!(decide(Colour::Auto, &[("NO_COLOR", ""), ("CLICOLOR_FORCE", "1")]), ColourPolicy::Always);
        assert_eq!(decide(Colour::Auto, &[("CLICOLOR_FORCE", "0")]), ColourPolicy::TerminalsOnly);
        assert_eq!(decide(Colour::Auto, &[("TERM", "dumb")]), ColourPolicy::Never);
        assert_eq!(decide(Colour::Auto, &[("TERM", "xterm")]), ColourPolicy::TerminalsOnly);
        assert_eq!([true, false].map(|terminal| ColourPolicy::TerminalsOnly.applies_to(terminal)), [true, false]);
    }

    #[test]
    fn a_line_below_the_cursor_leaves_typed_text_and_cursor_in_place() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::plain(&mut out, &mut err);
        console.can_redraw = true;
        let [rows, columns] = [4, 20].map(|n| n.try_into().expect("not zero"));
        let mut screen = vt100::Parser::new(rows, columns, 0);
        console.show_line_below("1s");
        console.show_line_below("2s");
        console.erase();
        let shown = "\x1b[J\x0b\x1b[A\x1b7\x1b[B\r";
        // At the top, in the middle and at the bottom, where all text has to move up.
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
    fn the_redrawn_line_is_erased_before_anything_else_is_printed() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::plain(&mut out, &mut err);
        console.show_line("not shown without a terminal");
        console.can_redraw = true;
        console.show_line("1s");
        console.show_line("2s");
        console.print("text\n").expect("a vector takes it");
        console.show_line("3s");
        console.message("note");
        console.erase();
        assert_eq!(String::from_utf8_lossy(&out), "text\n");
        assert_eq!(String::from_utf8_lossy(&err), "\r1s\x1b[K\r2s\x1b[K\r\x1b[K\r3s\x1b[K\r\x1b[Ktoolctl: note\n");
    }
}
