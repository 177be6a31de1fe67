//! `list --watch`: the table as it changes. Pushed events trigger a new list; between them it asks once a second while
//! a process runs, and not at all when none does.

use super::Args;
use super::sort::Cpu;
use crate::blocking::{CallError, parse};
use crate::cmd::Context;
use crate::cmd::wait::has_ended;
use crate::error::{CliError, DONE};
use crate::event_loop::{EventLoop, Incoming, Sources};
use crate::fullscreen::{self, Fullscreen};
use crate::local_time::now_ms;
use crate::render::Style;
use crate::render::list::list;
use crate::sys::{self, Interest, Signals};
use serde_json::value::RawValue;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use toold_proto::api;
use toold_proto::params;
use toold_proto::results;

/// The delay between two lists, for ages and CPU use.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// The same when all ages are above a minute, which change no faster.
const SLOW_REFRESH_INTERVAL: Duration = Duration::from_secs(60);
/// Events that come this close together trigger one list.
const EVENT_DELAY: Duration = Duration::from_millis(100);
/// The delay between two tries to reconnect.
const RECONNECT_DELAY: Duration = Duration::from_millis(250);
/// The signals that end or suspend us. SIGTTOU is caught only so that a terminal can be restored from the background.
const SIGNALS: [libc::c_int; 7] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP, libc::SIGWINCH, libc::SIGTTOU];

/// The place where the tables go.
enum Surface {
    Screen {
        screen: Fullscreen,
        signals: Signals,
    },
    /// One table after the other. The value is what the last one showed of each process.
    Pages(Option<Vec<String>>),
}

/// The calls of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Subscribe,
    List,
}

struct Watch<'a, 'c> {
    cx: &'a mut Context<'c>,
    args: Args,
    surface: Surface,
    events: EventLoop<Call>,
    /// An event came since the last list.
    stale: bool,
    disconnected: bool,
    /// The time of the last list, redraw or try to reconnect.
    last: Instant,
    listed: Option<results::ListResult>,
    cpu: Cpu,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut events = EventLoop::new();
    events.send::<api::EventsSubscribe>(&mut cx.connection, Call::Subscribe, &subscription(&args), Duration::ZERO)?;
    // The daemon was running. If it is stopped now, we must not start it again.
    cx.connection.refuse_autostart();
    let surface = if cx.console.is_real && cx.console.style.terminal() && !crate::console::is_dumb() {
        let signals = Signals::catch(&SIGNALS).map_err(CliError::io("catch signals"))?;
        Surface::Screen { screen: Fullscreen::enter().map_err(CliError::io("write to the terminal"))?, signals }
    } else {
        Surface::Pages(None)
    };
    let watch = Watch {
        cx,
        args,
        surface,
        events,
        stale: true,
        disconnected: false,
        last: Instant::now() - EVENT_DELAY,
        listed: None,
        cpu: Cpu::default(),
    };
    watch.run()
}

fn subscription(args: &Args) -> params::EventsSubscribeParams {
    params::EventsSubscribeParams {
        session_key: args.session.clone(),
        task_id: args.task.clone(),
        ..Default::default()
    }
}

impl Watch<'_, '_> {
    fn run(mut self) -> Result<u8, CliError> {
        loop {
            self.read()?;
            let now = Instant::now();
            if self.due().is_some_and(|due| due <= now) {
                self.act(now)?;
            }
            if let Some(code) = self.wait()? {
                return Ok(code);
            }
        }
    }

    /// Returns when the next timer is due.
    fn due(&self) -> Option<Instant> {
        if self.disconnected {
            return Some(self.last + RECONNECT_DELAY);
        }
        match &self.surface {
            // The answer draws the table; the loop watches that it comes in time.
            _ if self.events.is_pending(Call::List) => None,
            _ if self.stale => Some(self.last + EVENT_DELAY),
            Surface::Screen { .. } => Some(self.last + self.pace()),
            Surface::Pages(_) => None,
        }
    }

    fn pace(&self) -> Duration {
        let all = self.listed.iter().flat_map(|listed| &listed.processes);
        let young = |listed: &results::Listed| {
            let age = crate::render::time::unix_ms(&listed.process.started_at).map(|at| now_ms().saturating_sub(at));
            !has_ended(&listed.process) || age.is_some_and(|age| age < SLOW_REFRESH_INTERVAL.as_millis() as u64)
        };
        if all.into_iter().any(young) { REFRESH_INTERVAL } else { SLOW_REFRESH_INTERVAL }
    }

    fn act(&mut self, now: Instant) -> Result<(), CliError> {
        self.last = now;
        if self.disconnected {
            if self.cx.connection.try_reconnect()? {
                self.subscribe()?;
                self.disconnected = false;
                self.stale = true;
            }
            return Ok(());
        }
        let runs = self.listed.iter().flat_map(|l| &l.processes).any(|l| !has_ended(&l.process));
        if self.stale || (runs && self.is_seen()) { self.ask() } else { self.draw() }
    }

    /// Reports whether the terminal is ours now.
    fn is_seen(&self) -> bool {
        sys::is_foreground(io::stdout().as_fd())
    }

    fn subscribe(&mut self) -> Result<(), CliError> {
        let params = subscription(&self.args);
        self.events.send::<api::EventsSubscribe>(&mut self.cx.connection, Call::Subscribe, &params, Duration::ZERO)
    }

    fn ask(&mut self) -> Result<(), CliError> {
        self.stale = false;
        let params = self.args.params(false);
        self.events.send::<api::List>(&mut self.cx.connection, Call::List, &params, Duration::ZERO)
    }

    /// Handles what the daemon has sent.
    fn read(&mut self) -> Result<(), CliError> {
        while !self.disconnected
            && let Some(incoming) = self.events.next(&mut self.cx.connection)?
        {
            match incoming {
                Incoming::Push(push) => {
                    self.stale = true;
                    if push.outcome.is_err() {
                        self.subscribe()?;
                    }
                }
                Incoming::Answer(Call::List, outcome) => self.answered(&outcome.map_err(CallError::Rpc)?)?,
                Incoming::Answer(Call::Subscribe, outcome) => drop(outcome.map_err(CallError::Rpc)?),
            }
        }
        Ok(())
    }

    fn answered(&mut self, raw: &RawValue) -> Result<(), CliError> {
        let listed = parse::<api::List>(raw)?;
        let used = listed.processes.iter().filter_map(|l| Some((l.process.id, l.usage?.cpu_ms)));
        self.cpu.measure(used, Instant::now());
        self.listed = Some(listed);
        self.draw()
    }

    fn draw(&mut self) -> Result<(), CliError> {
        let Some(listed) = &self.listed else { return Ok(()) };
        match &mut self.surface {
            Surface::Pages(last) => {
                let (rows, _) = self.args.arrange(listed, |_| None);
                let facts = |process: &toold_proto::process::Process| {
                    format!("{} {:?} {:?} {:?}", process.id, process.status, process.reason, process.exit_code)
                };
                let new: Vec<String> = rows.iter().map(|row| facts(row.process)).collect();
                if last.as_ref() == Some(&new) {
                    return Ok(());
                }
                let between = if last.is_some() { "\n" } else { "" };
                *last = Some(new);
                let table = list(&rows, now_ms(), self.cx.console.style);
                self.cx.console.print(&format!("{between}{table}"))
            }
            Surface::Screen { screen, .. } => {
                let window = sys::window_size(io::stdout().as_fd());
                let rows = window.map_or(24, |size| size.rows as usize).max(1);
                let width =
                    window.map(|size| size.cols as usize).filter(|cols| *cols > 0).or(self.cx.console.style.width);
                let style = Style { width, ..self.cx.console.style };
                let (shown, hidden) = self.args.arrange(listed, |row| Some(self.cpu.percent(row.process.id)));
                let note = if self.disconnected {
                    Some("the daemon is not running; this is the last state".to_owned())
                } else {
                    self.args.hidden(hidden)
                };
                let lines = fullscreen::fit(&list(&shown, now_ms(), style), note.as_deref(), rows, style);
                screen.draw(&lines, style.width).map_err(CliError::io("write to the terminal"))
            }
        }
    }

    /// Waits for the next wake-up. Returns the code to exit with, if it is time.
    fn wait(&mut self) -> Result<Option<u8>, CliError> {
        let (stdout, stdin) = (io::stdout(), io::stdin());
        let timer = self.due();
        let sources = match &self.surface {
            Surface::Screen { screen, signals } => {
                Sources { signals: Some(signals), input: screen.has_keys().then(|| stdin.as_fd()), output: None }
            }
            Surface::Pages(_) => Sources {
                output: self.cx.console.is_real.then(|| (stdout.as_fd(), Interest::HungUp)),
                ..Default::default()
            },
        };
        let wake = self.events.wait(&mut self.cx.connection, sources, timer)?;
        if wake.output {
            return Err(CliError::OutputClosed);
        }
        if let (Some(notice), Surface::Pages(_)) = (&wake.notice, &self.surface) {
            self.cx.console.message(notice);
        }
        if wake.signal && self.signalled()? || wake.input && is_leaving(&stdin)? {
            return Ok(Some(DONE));
        }
        if wake.lost.is_some() {
            self.cx.connection.disconnect();
            self.events.cancel_all();
            self.disconnected = true;
            self.last = Instant::now();
            self.draw()?;
        }
        Ok(None)
    }

    /// Handles a signal. Returns true if it ends us.
    fn signalled(&mut self) -> Result<bool, CliError> {
        let Surface::Screen { screen, signals } = &mut self.surface else { return Ok(false) };
        match signals.take() {
            Some(libc::SIGINT) => Ok(true),
            Some(signal @ (libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT)) => {
                self.surface = Surface::Pages(None);
                sys::die_by_signal(signal);
            }
            Some(libc::SIGTSTP) => {
                screen.suspend().map_err(CliError::io("write to the terminal"))?;
                self.draw().map(|()| false)
            }
            Some(libc::SIGWINCH) => {
                screen.invalidate();
                self.draw().map(|()| false)
            }
            // It only had to be caught.
            Some(_) | None => Ok(false),
        }
    }
}

/// Reports whether the typed keys end us. A terminal that is gone does.
fn is_leaving(mut stdin: &io::Stdin) -> Result<bool, CliError> {
    let mut typed = [0; 64];
    let read = stdin.read(&mut typed).map_err(CliError::io("read keys"))?;
    Ok(read == 0 || typed[..read].contains(&b'q'))
}

#[cfg(test)]
mod tests {
    use crate::cli::{Screen, test_run_into};
    use crate::testing::{FakeDaemon, Reply, process};
    use serde_json::{Value, json};
    use std::io;

    /// Accepts a number of tables and then is closed, as by `head`.
    struct Reader {
        left: usize,
        text: String,
    }

    impl io::Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::BrokenPipe)?;
            self.text.push_str(&String::from_utf8_lossy(bytes));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn answer(changes: Value) -> Reply {
        let mut listed = process(changes);
        listed["preview"] = json!("");
        Reply::result(json!({"processes": [listed], "total": 1, "older": 0}))
    }

    fn event(kind: &str) -> Value {
        json!({"seq": 1, "at": "x", "type": kind, "id": null})
    }

    #[test]
    fn in_a_pipe_a_table_is_printed_for_each_change_and_across_a_daemon_that_was_away() {
        let exited = |code: i32| json!({"status": "exited", "reason": "exited", "exit_code": code});
        let fake = FakeDaemon::start(vec![
            vec![
                Reply::result(7),
                answer(json!({})).then(Reply::pushed(7, &[event("heartbeat")])),
                answer(json!({"uptime_ms": 400000})).then(Reply::pushed(7, &[event("exited")])),
                answer(exited(3)).then(Reply::HangUp),
            ],
            vec![Reply::result(1), answer(exited(4)), Reply::Silence],
        ]);
        let mut out = Reader { left: 2, text: String::new() };
        let (code, err) = test_run_into(&mut out, Screen::None, &fake, &["list", "--watch", "--session", "s"]);
        assert_eq!((code, err.as_str()), (0, ""));
        let tables: Vec<&str> = out.text.split("\n\n").collect();
        assert_eq!(tables.len(), 2, "a heartbeat changes nothing: {}", out.text);
        assert!(tables[0].contains("running") && tables[1].contains("exited"), "{}", out.text);
        let asked = fake.requests();
        let methods: Vec<&str> = asked.iter().map(|(method, _)| method.as_str()).collect();
        assert_eq!(methods, ["events.subscribe", "list", "list", "list", "events.subscribe", "list"]);
        assert_eq!(asked[0].1, json!({"session_key": "s"}));
    }
}
