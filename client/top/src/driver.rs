//! The loop: waits for keys, signals, the daemon and timers, hands them to `update`, performs its actions and draws.

use crate::key_parser::KeyParser;
use crate::link::Connection;
use crate::model::State;
use crate::signals::{self, Signals};
use crate::terminal::Fullscreen;
use crate::update::{Action, Call, Input, deadline, update};
use crate::{TopError, programs};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ratatui::crossterm::terminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::time::Duration;
use toold_client::companion::{CompanionOptions, TopArgs};
use toold_client::text::{local_time_of_day, now_ms};

/// The delay between two tries to reconnect.
const RECONNECT_MS: u64 = 250;
/// The most that is sent to a terminal's clipboard. Terminals drop more.
const MAX_COPY_LEN: usize = 74_000;

struct Driver {
    state: State,
    connection: Connection,
    screen: Fullscreen,
    signals: Signals,
    keys: KeyParser,
    /// The next try to reconnect.
    retry_at: u64,
}

pub fn run(options: &CompanionOptions, args: &TopArgs) -> Result<(), TopError> {
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() || is_dumb {
        return Err(TopError::failed("top needs a terminal; `toolctl top --once` prints one frame"));
    }
    let connection = Connection::open(options)?;
    let (columns, lines) = terminal::size().map_err(TopError::io("read the size of the terminal"))?;
    let mut state = new_state(columns, lines, args);
    state.colours = uses_colours(options);
    let signals = Signals::catch().map_err(TopError::io("catch signals"))?;
    let screen = Fullscreen::enter().map_err(TopError::io("write to the terminal"))?;
    let mut driver = Driver { state, connection, screen, signals, keys: KeyParser::default(), retry_at: 0 };
    let ended = driver.run();
    driver.screen.leave();
    match ended? {
        End::Quit => Ok(()),
        End::Signal(signal) => Err(signals::die_by(signal)),
    }
}

/// Builds the first state.
pub fn new_state(columns: u16, lines: u16, args: &TopArgs) -> State {
    let mut state = State::new(columns, lines, now_ms());
    state.midnight_ms = midnight_ms(state.now_ms);
    state.filter = args.filter.clone().unwrap_or_default();
    state.session = args.session.clone();
    state
}

/// Decides on colours as `toolctl` does.
pub fn uses_colours(options: &CompanionOptions) -> bool {
    match options.color.as_str() {
        "always" => true,
        "never" => false,
        // Auto.
        _ => std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

/// Returns the last midnight of the local time zone.
fn midnight_ms(now: u64) -> u64 {
    let passed = local_time_of_day(now).map(|(h, m, s)| (h * 3600 + m * 60 + s).unsigned_abs());
    now - u64::from(passed.unwrap_or(0)) * 1000
}

enum End {
    Quit,
    Signal(i32),
}

/// The descriptors that ended a wait.
#[derive(Default)]
struct Ready {
    keys: bool,
    hung_up: bool,
    daemon: bool,
}

impl Driver {
    fn run(&mut self) -> Result<End, TopError> {
        let mut inputs = vec![Input::Connected];
        // The CPU time since a list was asked for, and at the start of this turn.
        let (mut spent, mut began) = (Duration::ZERO, cpu_time());
        loop {
            let asks = self.state.timers.list_pending || self.state.timers.usage_pending;
            let lists = inputs.iter().any(|input| matches!(input, Input::Answer(Call::List | Call::Usage, _)));
            let changed = !inputs.is_empty();
            for input in inputs.drain(..) {
                if let Some(end) = self.on_input(input)? {
                    return Ok(end);
                }
            }
            if changed {
                let before = cpu_time();
                self.screen.draw(&self.state).map_err(TopError::io("write to the terminal"))?;
                self.state.timers.frame_us = micros(cpu_time().saturating_sub(before));
            }
            // The answer comes in parts, and each costs.
            spent = if asks { spent + cpu_time().saturating_sub(began) } else { Duration::ZERO };
            if lists {
                self.state.timers.cost_us = micros(spent);
                spent = Duration::ZERO;
            }
            let ready = self.wait()?;
            began = cpu_time();
            if let Some(signal) = self.signals.take_ending() {
                return Ok(End::Signal(signal));
            }
            if ready.hung_up {
                return Ok(End::Quit);
            }
            self.state.now_ms = now_ms();
            inputs = self.collect(&ready)?;
        }
    }

    /// Waits for the next thing to happen.
    fn wait(&self) -> Result<Ready, TopError> {
        let stdin = io::stdin();
        let retry = (!self.connection.is_connected()).then_some(self.retry_at);
        let due = deadline(&self.state).into_iter().chain(retry).min();
        let left = due.map(|due| Duration::from_millis(due.saturating_sub(now_ms())));
        let timeout = left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        let mut fds = vec![PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
        fds.extend(self.signals.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let others = fds.len();
        fds.extend(self.connection.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(TopError::io("wait")(error.into())),
        }
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        Ok(Ready {
            keys: fds[0].revents().contains(PollFlags::IN),
            hung_up: fds[0].revents().intersects(gone),
            daemon: fds.get(others).is_some_and(|fd| !fd.revents().is_empty()),
        })
    }

    /// Reads everything that is ready.
    fn collect(&mut self, ready: &Ready) -> Result<Vec<Input>, TopError> {
        // A part of an answer changes nothing yet.
        let is_due = deadline(&self.state).is_some_and(|due| due <= self.state.now_ms);
        let mut inputs = if is_due { vec![Input::Tick] } else { Vec::new() };
        if self.signals.take_redraw() {
            self.screen.invalidate();
            let size = terminal::size().map_err(TopError::io("read the size of the terminal"))?;
            inputs.push(Input::Resize(size.0, size.1));
        }
        if ready.keys {
            let mut bytes = [0; 4096];
            let read = rustix::io::read(io::stdin(), &mut bytes).map_err(|e| TopError::io("read keys")(e.into()))?;
            inputs.extend(self.keys.feed(&bytes[..read]));
        }
        if ready.daemon {
            match self.connection.receive() {
                Ok(received) => inputs.extend(received),
                Err(_) => self.lose(&mut inputs),
            }
        }
        if !self.connection.is_connected() && self.retry_at <= self.state.now_ms {
            self.retry_at = self.state.now_ms + RECONNECT_MS;
            if self.connection.reconnect() {
                inputs.push(Input::Connected);
            }
        }
        Ok(inputs)
    }

    fn lose(&mut self, inputs: &mut Vec<Input>) {
        self.connection.disconnect();
        self.retry_at = self.state.now_ms + RECONNECT_MS;
        inputs.push(Input::Disconnected);
    }

    fn on_input(&mut self, input: Input) -> Result<Option<End>, TopError> {
        let mut next = vec![input];
        while let Some(input) = next.pop() {
            for action in update(&mut self.state, input) {
                match self.connection.perform(&action) {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(_) => {
                        self.lose(&mut next);
                        continue;
                    }
                }
                if let Action::Quit = action {
                    return Ok(Some(End::Quit));
                }
                let resumed = self.act(action).map_err(TopError::io("write to the terminal"))?;
                next.extend(resumed);
            }
        }
        Ok(None)
    }

    /// Performs an action on the terminal.
    fn act(&mut self, action: Action) -> io::Result<Option<Input>> {
        let failure = match action {
            Action::Attach(id) => {
                self.screen.leave();
                programs::attach(&id, self.connection.socket())
            }
            Action::Edit { name, files } => {
                self.screen.leave();
                programs::edit(&name, &files)
            }
            Action::Suspend => {
                self.screen.leave();
                toold_client::text::suspend();
                None
            }
            Action::Copy(text) => {
                let text = toold_client::text::cut_bytes(&text, MAX_COPY_LEN);
                self.screen.write(&format!("\x1b]52;c;{}\x07", STANDARD.encode(text)))?;
                return Ok(None);
            }
            Action::Redraw => {
                self.screen.invalidate();
                return Ok(None);
            }
            Action::Send(..) | Action::Restart { .. } | Action::Cancel(_) | Action::Quit => return Ok(None),
        };
        self.screen.resume()?;
        self.signals.drop_keys();
        self.state.now_ms = now_ms();
        let (columns, lines) = terminal::size()?;
        (self.state.columns, self.state.lines) = (columns, lines);
        Ok(Some(Input::Resumed(failure)))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the CPU time that this thread has used.
fn cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).unwrap_or(0))
}
