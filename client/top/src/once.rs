//! `--once`: one frame on standard output, for scripts and for tests.

use crate::TopError;
use crate::driver::{new_state, uses_colours};
use crate::link::Connection;
use crate::model::State;
use crate::render::render;
use crate::update::{Action, Input, deadline, update};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};
use toold_client::companion::{CompanionOptions, TopArgs};
use toold_client::text::{columns, now_ms};

/// The size without COLUMNS and LINES.
const DEFAULT_SIZE: (u16, u16) = (80, 24);
/// The largest size: a wrong variable must not cost gigabytes.
const MAX_SIDE: u16 = 1000;
/// The time after which the frame is printed as it is.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time that past events and the log may take, once the list is there.
const DETAIL_TIMEOUT: Duration = Duration::from_millis(1500);

pub fn run(options: &CompanionOptions, args: &TopArgs) -> Result<(), TopError> {
    let side = |name: &str, default: u16| {
        let set = std::env::var(name).ok().and_then(|value| value.trim().parse::<u16>().ok());
        set.filter(|n| *n > 0).unwrap_or(default).min(MAX_SIDE)
    };
    let (width, height) = (side("COLUMNS", DEFAULT_SIZE.0), side("LINES", DEFAULT_SIZE.1));
    let mut state = new_state(width, height, args);
    let is_terminal = io::stdout().is_terminal();
    state.colours = is_terminal && uses_colours(options);
    let mut connection = Connection::open(options)?;
    load(&mut state, &mut connection)?;
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    render(&state, &mut buffer);
    let text = frame(&buffer, is_terminal);
    match io::stdout().write_all(text.as_bytes()) {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(TopError::io("write the frame")),
    }
}

/// Asks until the list, the log and the past events are there.
fn load(state: &mut State, connection: &mut Connection) -> Result<(), TopError> {
    let mut until = Instant::now() + TIMEOUT;
    let mut inputs = vec![Input::Connected];
    loop {
        state.now_ms = now_ms();
        for input in inputs.drain(..) {
            for action in update(state, input) {
                connection.perform(&action).map_err(TopError::unreachable)?;
                if let Action::Quit = action {
                    return Ok(());
                }
            }
        }
        let has_log = state.log.as_ref().is_none_or(|log| log.loaded);
        let has_events = state.session.is_some() || state.last_seq.unwrap_or(0) >= state.daemon.last_event;
        if state.loaded && has_log && has_events {
            return Ok(());
        }
        if state.loaded {
            until = until.min(Instant::now() + DETAIL_TIMEOUT);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return if state.loaded { Ok(()) } else { Err(TopError::unreachable("the daemon does not answer")) };
        }
        let due = deadline(state).map(|due| Duration::from_millis(due.saturating_sub(now_ms())));
        if wait(connection, due.unwrap_or(left).min(left))? {
            inputs.extend(connection.receive().map_err(TopError::unreachable)?);
        }
        inputs.push(Input::Tick);
    }
}

fn wait(connection: &Connection, time: Duration) -> Result<bool, TopError> {
    let mut fds: Vec<PollFd<'_>> =
        connection.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).into_iter().collect();
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    match poll(&mut fds, Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(TopError::io("wait")(error.into())),
    }
}

/// Returns a frame as lines of text, with colours if `styled`.
pub fn frame(buffer: &Buffer, styled: bool) -> String {
    let area = buffer.area;
    let mut out = String::new();
    for y in area.top()..area.bottom() {
        let (mut line, mut style, mut x) = (String::new(), String::new(), area.left());
        while x < area.right() {
            let Some(cell) = buffer.cell((x, y)) else { break };
            let wanted = if styled { sgr(cell) } else { String::new() };
            if wanted != style {
                line.push_str(&format!("\x1b[0{wanted}m"));
                style = wanted;
            }
            line.push_str(cell.symbol());
            x += u16::try_from(columns(cell.symbol())).unwrap_or(1).max(1);
        }
        if !style.is_empty() {
            line.push_str("\x1b[0m");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn sgr(cell: &Cell) -> String {
    let modifiers = [
        (Modifier::BOLD, ";1"),
        (Modifier::DIM, ";2"),
        (Modifier::ITALIC, ";3"),
        (Modifier::UNDERLINED, ";4"),
        (Modifier::REVERSED, ";7"),
    ];
    let mut codes: String =
        modifiers.iter().filter(|(m, _)| cell.modifier.contains(*m)).map(|(_, code)| *code).collect();
    codes.push_str(&colour(cell.fg, 30));
    codes.push_str(&colour(cell.bg, 40));
    codes
}

/// Returns the code of a colour. `base`: 30 for text, 40 for its background.
fn colour(colour: Color, base: u8) -> String {
    let named = |n: u8| format!(";{}", base + n);
    match colour {
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Magenta => named(5),
        Color::Indexed(n) => format!(";{};5;{n}", base + 8),
        Color::Rgb(r, g, b) => format!(";{};2;{r};{g};{b}", base + 8),
        // The frame uses no other.
        _ => String::new(),
    }
}
