//! The event loop of the commands that wait for more than one answer: poll(2) over the daemon's socket, signals, stdin and
//! the output, with the calls that are not answered yet. It sleeps in `wait` and nowhere else.

use crate::blocking::{CallError, Message, Push};
use crate::connect::Connection;
use crate::error::CliError;
use crate::silence::{self, Step};
use crate::sys::{self, Interest, Signals};
use serde_json::value::{RawValue, to_raw_value};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use toold_proto::RpcError;
use toold_proto::api::Method;

/// The sources to wait for beside the daemon.
#[derive(Default)]
pub struct Sources<'a> {
    pub signals: Option<&'a Signals>,
    pub input: Option<BorrowedFd<'a>>,
    /// Our output: until it can be written, or until its reader is gone.
    pub output: Option<(BorrowedFd<'a>, Interest)>,
}

/// The reasons why a wait ended. None of them: its time is over.
#[derive(Debug, Default)]
pub struct Wake {
    /// The daemon sent something, or the connection is lost.
    pub daemon: bool,
    pub signal: bool,
    pub input: bool,
    pub output: bool,
    /// The connection is lost, by this error.
    pub lost: Option<CallError>,
    /// The daemon takes long to answer: a line for the user.
    pub notice: Option<String>,
}

impl Wake {
    pub fn is_timeout(&self) -> bool {
        !(self.daemon || self.signal || self.input || self.output || self.notice.is_some())
    }
}

/// A message of the daemon. `T` is the caller's name for the call that is answered.
pub enum Incoming<T> {
    Answer(T, Result<Box<RawValue>, RpcError>),
    Push(Push),
}

/// A call that is not answered yet.
struct Pending<T> {
    id: u64,
    tag: T,
    method: &'static str,
    params: Box<RawValue>,
    /// The time that it itself waits, and that its answer may take in all.
    wait: Duration,
    timeout: Duration,
    /// None: its answer is not waited for by itself.
    deadline: Option<Instant>,
    /// The time without an answer that has been noticed.
    passed: Duration,
}

impl<T> Pending<T> {
    /// Returns the next step of its silence, and when that is due.
    fn next_step(&self) -> Option<(Step, Duration, Instant)> {
        let (step, after) = silence::next_step(self.wait, self.timeout, self.passed);
        let left = self.timeout.saturating_sub(after);
        Some((step, after, self.deadline?.checked_sub(left)?))
    }
}

/// The calls of one command that are not answered yet.
pub struct EventLoop<T> {
    pending: Vec<Pending<T>>,
}

impl<T: Copy + PartialEq> EventLoop<T> {
    pub fn new() -> EventLoop<T> {
        EventLoop { pending: Vec::new() }
    }

    /// Sends a call that itself waits up to `wait` before it answers. No answer in time fails the loop.
    pub fn send<M: Method>(
        &mut self,
        connection: &mut Connection,
        tag: T,
        params: &M::Params,
        wait: Duration,
    ) -> Result<(), CliError> {
        self.send_optional::<M>(connection, tag, params)?;
        if let Some(pending) = self.pending.last_mut() {
            (pending.wait, pending.timeout) = (wait, connection.timeout(wait));
            pending.deadline = Some(Instant::now() + pending.timeout);
        }
        Ok(())
    }

    /// Sends a call whose answer may never come.
    pub fn send_optional<M: Method>(
        &mut self,
        connection: &mut Connection,
        tag: T,
        params: &M::Params,
    ) -> Result<(), CliError> {
        let params = to_raw_value(params)
            .map_err(|e| CallError::Protocol(format!("the parameters of {} do not fit into JSON: {e}", M::NAME)))?;
        let id = connection.send(M::NAME, &params)?;
        let (wait, timeout, passed) = Default::default();
        self.pending.push(Pending { id, tag, method: M::NAME, params, wait, timeout, deadline: None, passed });
        Ok(())
    }

    pub fn is_pending(&self, tag: T) -> bool {
        self.pending.iter().any(|pending| pending.tag == tag)
    }

    /// Drops the calls with this tag: their answers are passed over.
    pub fn cancel(&mut self, tag: T) {
        self.pending.retain(|pending| pending.tag != tag);
    }

    pub fn cancel_all(&mut self) {
        self.pending.clear();
    }

    /// Connects again after a lost connection, and sends every pending call again. The caller first cancels those that must not run
    /// twice.
    pub fn reconnect(&mut self, connection: &mut Connection, lost: CallError) -> Result<(), CliError> {
        connection.recover(lost)?;
        for pending in &mut self.pending {
            pending.id = connection.send(pending.method, &pending.params)?;
            pending.deadline = pending.deadline.map(|_| Instant::now() + pending.timeout);
            pending.passed = Duration::ZERO;
        }
        Ok(())
    }

    /// Returns the next message that has already been read. An error that answers no call in particular fails the loop.
    pub fn next(&mut self, connection: &mut Connection) -> Result<Option<Incoming<T>>, CliError> {
        while let Some(message) = connection.next_message()? {
            let answer = match message {
                Message::Push(push) => return Ok(Some(Incoming::Push(push))),
                Message::Answer(answer) => answer,
            };
            let Some(id) = answer.id else {
                answer.outcome.map_err(CallError::Rpc)?;
                continue;
            };
            // Other answers are to calls that were cancelled.
            if let Some(at) = self.pending.iter().position(|pending| pending.id == id) {
                return Ok(Some(Incoming::Answer(self.pending.swap_remove(at).tag, answer.outcome)));
            }
        }
        Ok(None)
    }

    /// Waits for the daemon or another source, until `timer` at most, and reads what the daemon sent.
    pub fn wait(
        &mut self,
        connection: &mut Connection,
        sources: Sources<'_>,
        timer: Option<Instant>,
    ) -> Result<Wake, CliError> {
        loop {
            let steps = self.pending.iter().enumerate();
            let steps =
                steps.filter_map(|(at, pending)| pending.next_step().map(|(step, after, due)| (due, at, step, after)));
            let next = steps.min_by_key(|(due, ..)| *due);
            let until = timer.into_iter().chain(next.map(|(due, ..)| due)).min();
            let mut wake = poll(connection.fd().map(|fd| (fd, Interest::Readable)), &sources, until)?;
            if wake.daemon {
                wake.lost = connection.fill().err();
                if let Some(error) = wake.lost.take_if(|error| !matches!(error, CallError::Unreachable { .. })) {
                    return Err(error.into());
                }
            }
            // Only when nothing came: after a Ctrl-Z the answers are late, but here.
            let Some((_, at, step, after)) = next.filter(|(due, ..)| wake.is_timeout() && *due <= Instant::now())
            else {
                return Ok(wake);
            };
            self.pending[at].passed = after;
            match step {
                Step::Notice => {
                    wake.notice = Some(connection.peer().notice());
                    return Ok(wake);
                }
                Step::GiveUpIfStopped if !connection.peer().is_stopped() => {}
                Step::GiveUpIfStopped | Step::GiveUp => return Err(connection.timed_out(after)),
            }
        }
    }
}

/// Waits for these sources, while the daemon's answers stay unread. `daemon`: also until it is gone.
pub fn wait_unread(daemon: Option<BorrowedFd<'_>>, sources: &Sources<'_>) -> Result<Wake, CliError> {
    poll(daemon.map(|fd| (fd, Interest::HungUp)), sources, None)
}

fn poll(
    daemon: Option<(BorrowedFd<'_>, Interest)>,
    sources: &Sources<'_>,
    until: Option<Instant>,
) -> Result<Wake, CliError> {
    let watched = [
        daemon,
        sources.signals.map(|signals| (signals.as_fd(), Interest::Readable)),
        sources.input.map(|fd| (fd, Interest::Readable)),
        sources.output,
    ];
    let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
    let ready = sys::poll(watched, timeout).map_err(|source| CliError::Io { doing: "poll", source })?;
    let [daemon, signal, input, output] = ready;
    Ok(Wake { daemon, signal, input, output, lost: None, notice: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::Autostart;
    use crate::testing::{FakeDaemon, Reply};
    use toold_proto::{api, params};

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Call {
        First,
        Second,
    }

    fn connect(fake: &FakeDaemon) -> Connection {
        Connection::new(fake.path(), Autostart::Refused)
    }

    fn send(events: &mut EventLoop<Call>, connection: &mut Connection, call: Call) {
        let params = params::InspectParams { id: format!("{call:?}"), ..Default::default() };
        events.send::<api::Inspect>(connection, call, &params, Duration::ZERO).expect("the fake listens");
    }

    /// Runs the loop until the next answer.
    fn answer(events: &mut EventLoop<Call>, connection: &mut Connection) -> Result<(Call, String), CliError> {
        loop {
            if let Some(Incoming::Answer(call, outcome)) = events.next(connection)? {
                return Ok((call, outcome.expect("a result").get().to_owned()));
            }
            if let Some(lost) = events.wait(connection, Sources::default(), None)?.lost {
                events.reconnect(connection, lost)?;
            }
        }
    }

    #[test]
    fn answers_are_found_by_id_and_those_to_cancelled_calls_are_passed_over() {
        let results = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":22}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":11}\n";
        let fake = FakeDaemon::start(vec![vec![Reply::Silence, Reply::Line(results.into())]]);
        let (mut events, mut connection) = (EventLoop::new(), connect(&fake));
        send(&mut events, &mut connection, Call::First);
        send(&mut events, &mut connection, Call::Second);
        events.cancel(Call::Second);
        assert!(events.is_pending(Call::First) && !events.is_pending(Call::Second));
        assert_eq!(answer(&mut events, &mut connection).expect("an answer"), (Call::First, "11".into()));
        assert!(!events.is_pending(Call::First));
    }

    #[test]
    fn a_lost_connection_sends_every_pending_call_again() {
        let fake =
            FakeDaemon::start(vec![vec![Reply::Silence, Reply::HangUp], vec![Reply::result("1"), Reply::result("2")]]);
        let (mut events, mut connection) = (EventLoop::new(), connect(&fake));
        send(&mut events, &mut connection, Call::First);
        send(&mut events, &mut connection, Call::Second);
        let mut answers = [(); 2].map(|()| answer(&mut events, &mut connection).expect("an answer"));
        answers.sort_by_key(|(_, text)| text.clone());
        assert_eq!(answers, [(Call::First, "1".into()), (Call::Second, "2".into())]);
        let ids: Vec<String> = fake.requests().into_iter().map(|(_, params)| params["id"].to_string()).collect();
        assert_eq!(ids, ["\"First\"", "\"Second\"", "\"First\"", "\"Second\""]);
    }

    #[test]
    fn a_call_without_an_answer_fails_the_loop_and_a_timer_only_wakes_it() {
        let fake = FakeDaemon::start(vec![vec![Reply::Silence]]);
        let mut connection = connect(&fake).with_timeout(Duration::from_millis(30));
        let mut events = EventLoop::new();
        send(&mut events, &mut connection, Call::First);
        let wake = events.wait(&mut connection, Sources::default(), Some(Instant::now())).expect("time is left");
        assert!(wake.is_timeout());
        assert_eq!(answer(&mut events, &mut connection).expect_err("no answer comes").exit_code(), 4);
    }
}
