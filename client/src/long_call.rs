//! Long calls: retried after a reconnect, with a progress line while waiting.

use crate::blocking::{CallError, parse};
use crate::cmd::Context;
use crate::error::CliError;
use crate::event_loop::{EventLoop, Incoming, Sources};
use crate::render::text::last_line;
use crate::render::{poll, progress_line};
use crate::sys::{self, Interest, Signals};
use serde_json::value::RawValue;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use toold_proto::RpcError;
use toold_proto::api::{self, Method};
use toold_proto::params;
use toold_proto::results::Counts;

/// The time before the first progress line, and between two.
const PACE: Duration = Duration::from_secs(1);

/// The behaviour while waiting for the answer.
pub enum WhileWaiting {
    Nothing,
    /// Exit when the reader of our output is gone.
    ExitOnHangup,
    /// Show a progress line.
    Show(Waiting),
}

/// The source of the progress line.
enum ProgressSource {
    /// These processes, one after the other; the index of the next.
    Processes { ids: Vec<String>, next: usize },
    /// The number of processes that are left to work on.
    Left(Work),
}

/// Work on processes that are not listed by id.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    Forgetting,
    Killing,
}

impl Work {
    fn line(self, counts: &Counts) -> String {
        match self {
            Work::Forgetting => format!("forgetting; {} that ended are left", counts.exited + counts.lost),
            Work::Killing => format!("killing; {} still run", counts.running + counts.starting),
        }
    }
}

/// The calls of the loop: the one that is waited for, and the one that asks how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Main,
    Progress,
}

/// The policy after a lost connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Again,
    Never,
}

/// The progress line of a long call.
pub struct Waiting {
    source: ProgressSource,
    begin: Instant,
    due: Instant,
    pace: Duration,
    signals: Option<Signals>,
}

impl Waiting {
    fn paced(source: ProgressSource, pace: Duration) -> Waiting {
        let begin = Instant::now();
        Waiting { source, begin, due: begin + pace, pace, signals: None }
    }

    /// Builds the progress line from the answer to a progress call.
    fn line(&self, raw: &RawValue, width: usize) -> Option<String> {
        let elapsed = self.begin.elapsed().as_millis() as u64;
        match &self.source {
            ProgressSource::Processes { .. } => {
                let page = parse::<api::Poll>(raw).ok()?;
                Some(progress_line::line(
                    elapsed,
                    &poll::summary(&page.process),
                    last_line(&page.output).as_deref(),
                    width,
                ))
            }
            ProgressSource::Left(work) => {
                let info = parse::<api::DaemonInfo>(raw).ok()?;
                Some(progress_line::line(elapsed, &work.line(&info.counts), None, width))
            }
        }
    }
}

impl Context<'_> {
    /// Shows a progress line about these processes, if standard error is a terminal.
    pub fn show_waiting(&self, ids: Vec<String>) -> WhileWaiting {
        if ids.is_empty() { WhileWaiting::Nothing } else { self.show_while(ProgressSource::Processes { ids, next: 0 }) }
    }

    /// Shows a progress line about the number of processes that are left.
    pub fn show_work(&self, work: Work) -> WhileWaiting {
        self.show_while(ProgressSource::Left(work))
    }

    fn show_while(&self, source: ProgressSource) -> WhileWaiting {
        if !self.console.can_redraw || self.json {
            return WhileWaiting::Nothing;
        }
        let mut waiting = Waiting::paced(source, PACE);
        if self.console.is_real {
            // Caught only to erase the line first. Without it the line stays, which is not worth an error.
            waiting.signals = Signals::catch(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]).ok();
        }
        WhileWaiting::Show(waiting)
    }

    /// Calls a method that itself waits up to `wait` and may run twice. `params` gets the time since the first try, so that a
    /// timeout can shrink.
    pub fn call_long<M: Method>(
        &mut self,
        params: impl Fn(Duration) -> M::Params,
        wait: Duration,
        meanwhile: &mut WhileWaiting,
    ) -> Result<Box<RawValue>, CliError> {
        self.call_for::<M>(params, wait, Repeat::Again, meanwhile)
    }

    /// Calls a method that itself waits up to `wait`, once: a lost connection is an error.
    pub fn call_long_once<M: Method>(
        &mut self,
        params: &M::Params,
        wait: Duration,
        meanwhile: &mut WhileWaiting,
    ) -> Result<Box<RawValue>, CliError>
    where
        M::Params: Clone,
    {
        self.call_for::<M>(|_| params.clone(), wait, Repeat::Never, meanwhile)
    }

    fn call_for<M: Method>(
        &mut self,
        params: impl Fn(Duration) -> M::Params,
        wait: Duration,
        repeat: Repeat,
        meanwhile: &mut WhileWaiting,
    ) -> Result<Box<RawValue>, CliError> {
        let begin = Instant::now();
        let mut events = EventLoop::new();
        events.send::<M>(&mut self.connection, Call::Main, &params(Duration::ZERO), wait)?;
        loop {
            while let Some(incoming) = events.next(&mut self.connection)? {
                match incoming {
                    Incoming::Answer(Call::Main, outcome) => {
                        self.console.erase();
                        return outcome.map_err(|error| CallError::Rpc(error).into());
                    }
                    Incoming::Answer(Call::Progress, outcome) => self.show_progress(outcome, meanwhile),
                    Incoming::Push(_) => {}
                }
            }
            self.ask_progress_if_due(&mut events, meanwhile)?;
            let Some(lost) = self.wait_for_daemon(&mut events, meanwhile)? else { continue };
            if repeat == Repeat::Never {
                return Err(lost.into());
            }
            events.cancel_all();
            self.connection.recover(lost)?;
            events.send::<M>(&mut self.connection, Call::Main, &params(begin.elapsed()), wait)?;
        }
    }

    /// Waits for the daemon or for the next timer. Returns the error of a lost connection.
    fn wait_for_daemon(
        &mut self,
        events: &mut EventLoop<Call>,
        meanwhile: &WhileWaiting,
    ) -> Result<Option<CallError>, CliError> {
        let (due, signals) = match meanwhile {
            WhileWaiting::Show(waiting) => (Some(waiting.due), waiting.signals.as_ref()),
            WhileWaiting::Nothing | WhileWaiting::ExitOnHangup => (None, None),
        };
        let stdout = std::io::stdout();
        let reads = matches!(meanwhile, WhileWaiting::ExitOnHangup) && self.console.is_real;
        let output = reads.then(|| (stdout.as_fd(), Interest::HungUp));
        let wake = events.wait(&mut self.connection, Sources { signals, output, input: None }, due)?;
        if wake.output {
            return Err(CliError::OutputClosed);
        }
        if let Some(notice) = &wake.notice {
            self.console.message(notice);
        }
        if wake.signal
            && let Some(signal) = signals.and_then(Signals::take)
        {
            self.console.erase();
            sys::die_by_signal(signal);
        }
        Ok(wake.lost)
    }

    /// Asks for the state of one process if it is time. Never twice at once.
    fn ask_progress_if_due(
        &mut self,
        events: &mut EventLoop<Call>,
        meanwhile: &mut WhileWaiting,
    ) -> Result<(), CliError> {
        let WhileWaiting::Show(waiting) = meanwhile else { return Ok(()) };
        let now = Instant::now();
        if waiting.due > now {
            return Ok(());
        }
        waiting.due = now + waiting.pace;
        if events.is_pending(Call::Progress) || !self.console.can_show_line() {
            return Ok(());
        }
        match &mut waiting.source {
            ProgressSource::Processes { ids, next } => {
                let params = params::PollParams { id: ids[*next % ids.len()].clone(), ..Default::default() };
                *next += 1;
                events.send_optional::<api::Poll>(&mut self.connection, Call::Progress, &params)
            }
            ProgressSource::Left(_) => {
                events.send_optional::<api::DaemonInfo>(&mut self.connection, Call::Progress, &params::Empty::default())
            }
        }
    }

    fn show_progress(&mut self, outcome: Result<Box<RawValue>, RpcError>, meanwhile: &WhileWaiting) {
        // The call itself reports what went wrong.
        let (WhileWaiting::Show(waiting), Ok(raw)) = (meanwhile, outcome) else { return };
        let width = self.console.err_style.width.unwrap_or(usize::MAX);
        if let Some(line) = waiting.line(&raw, width) {
            self.console.show_line(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::{Autostart, Connection};
    use crate::console::Console;
    use crate::testing::{FakeDaemon, Reply, process};
    use serde_json::{Value, json};

    fn answer(id: u64, result: Value) -> Reply {
        Reply::Line(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n"))
    }

    /// Runs one `wait` that shows its line at once, on 40 columns. Returns the answer and what was shown.
    fn waited(fake: &FakeDaemon, ids: &[&str]) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::plain(&mut out, &mut err);
        console.can_redraw = true;
        console.err_style.width = Some(40);
        let mut cx = Context { connection: Connection::new(fake.path(), Autostart::Refused), console, json: false };
        let looks = ProgressSource::Processes { ids: ids.iter().map(|id| id.to_string()).collect(), next: 0 };
        let mut meanwhile = WhileWaiting::Show(Waiting::paced(looks, Duration::from_millis(1)));
        let raw = cx.call_long::<api::Wait>(|_| params::WaitParams::default(), Duration::ZERO, &mut meanwhile);
        (raw.expect("an answer").get().to_owned(), String::from_utf8_lossy(&err).into_owned())
    }

    fn looked(id: &str, output: &str) -> Value {
        let id = format!("proc_00000000000{id}");
        process(json!({"id": id, "output": output, "from": 0, "next_cursor": 0, "gap": null}))
    }

    #[test]
    fn a_long_wait_looks_at_each_process_in_turn_and_takes_its_line_away_at_the_end() {
        let fake = FakeDaemon::start(vec![vec![
            Reply::Silence,
            Reply::result(looked("a", "one\n\x1b[2Jtwo\n")),
            Reply::result(looked("b", "")),
            answer(1, json!(7)),
        ]]);
        let (raw, shown) = waited(&fake, &["a", "b"]);
        assert_eq!(raw, "7");
        assert_eq!(
            shown,
            "\r0s  proc_00000000000a running 5m: two\x1b[K\r0s  proc_00000000000b running 5m\x1b[K\r\x1b[K"
        );
        let asked: Vec<(String, Value)> = fake.requests();
        let ids: Vec<&Value> = asked.iter().map(|(_, params)| &params["id"]).collect();
        assert_eq!(ids, [&Value::Null, &json!("a"), &json!("b"), &json!("a")], "one look at a time");
    }

    #[test]
    fn a_lost_connection_asks_again_and_a_look_that_fails_shows_nothing() {
        let error = json!({"code": -32001, "message": "gone", "data": {"kind": "not_found"}});
        let fake = FakeDaemon::start(vec![
            vec![Reply::Silence, Reply::HangUp],
            vec![Reply::Silence, Reply::error(error), answer(1, json!(8))],
        ]);
        assert_eq!(waited(&fake, &["a"]), ("8".into(), String::new()));
    }

    #[test]
    fn work_on_many_shows_how_many_are_left_and_is_never_done_twice() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::plain(&mut out, &mut err);
        console.can_redraw = true;
        console.err_style.width = Some(60);
        let forgotten = json!({"forgotten": [], "skipped": []});
        let script = vec![Reply::Silence, Reply::result(crate::testing::info(1, 1)), answer(1, forgotten)];
        let fake = FakeDaemon::start(vec![script, vec![Reply::HangUp], vec![]]);
        let mut cx = Context { connection: Connection::new(fake.path(), Autostart::Refused), console, json: false };
        let work =
            || WhileWaiting::Show(Waiting::paced(ProgressSource::Left(Work::Forgetting), Duration::from_millis(1)));
        let params = params::ForgetParams::default();
        cx.call_long_once::<api::Forget>(&params, Duration::ZERO, &mut work()).expect("an answer");
        cx.connection = Connection::new(fake.path(), Autostart::Refused);
        let lost = cx.call_long_once::<api::Forget>(&params, Duration::ZERO, &mut WhileWaiting::Nothing);
        assert_eq!(lost.expect_err("the connection was lost").exit_code(), 4);
        let shown = String::from_utf8_lossy(&err).into_owned();
        assert!(shown.starts_with("\r0s  forgetting; 3 that ended are left\x1b[K"), "{shown:?}");
        assert!(shown.ends_with("\r\x1b[K"), "{shown:?}");
    }

    #[test]
    fn nothing_is_shown_without_a_terminal_or_within_the_first_second() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let console = Console::plain(&mut out, &mut err);
        let fake = FakeDaemon::start(vec![]);
        let mut cx = Context { connection: Connection::new(fake.path(), Autostart::Refused), console, json: false };
        let shown = |cx: &Context<'_>| matches!(cx.show_waiting(vec!["a".into()]), WhileWaiting::Show(_));
        assert!(!shown(&cx));
        cx.console.can_redraw = true;
        assert!(shown(&cx));
        let WhileWaiting::Show(waiting) = cx.show_waiting(vec!["a".into()]) else { panic!("it is shown") };
        assert_eq!(waiting.due - waiting.begin, Duration::from_secs(1));
        cx.json = true;
        assert!(!shown(&cx));
    }
}
