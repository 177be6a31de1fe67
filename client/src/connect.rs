//! The connection to the daemon: where it is, whether it may be started, and how to reconnect.

use crate::autostart::{self, Backoff, DaemonFlags};
use crate::blocking::{CallError, Client, Message, parse};
use crate::error::CliError;
use crate::silence::Peer;
use serde::Serialize;
use serde_json::value::RawValue;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use toold_proto::api::Method;

/// The number of connections that may be lost in a row without an answer between. More means that the daemon dies of our
/// request.
const MAX_LOST_CONNECTIONS: u32 = 5;
/// The time that, after a loss, systemd or an upgrade may take to bring the daemon back before we start it.
const RESTART_WAIT: Duration = Duration::from_secs(1);
/// The same when we may not start it.
const RESTART_WAIT_NO_AUTOSTART: Duration = Duration::from_secs(10);

/// The time that the daemon may take to answer, beyond the time that the call itself waits.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The time that a call for a hint may take.
const HINT_TIMEOUT: Duration = Duration::from_secs(1);

/// Permission to start the daemon.
#[derive(Debug, Clone)]
pub enum Autostart {
    Allowed(DaemonFlags),
    Refused,
}

/// A connection that is made on first use and can be made again.
pub struct Connection {
    socket: PathBuf,
    autostart: Autostart,
    client: Option<Client>,
    losses: u32,
    timeout: Duration,
    /// The time that the calls themselves wait before they answer.
    wait: Duration,
}

impl Connection {
    pub fn new(socket: PathBuf, autostart: Autostart) -> Connection {
        Connection { socket, autostart, client: None, losses: 0, timeout: ANSWER_TIMEOUT, wait: Duration::ZERO }
    }

    /// Sets another timeout.
    #[cfg(test)]
    pub fn with_timeout(self, timeout: Duration) -> Connection {
        Connection { timeout, ..self }
    }

    /// Returns the path of the daemon's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the config file of `--config`, for a daemon that is started.
    pub fn config(&self) -> Option<&Path> {
        match &self.autostart {
            Autostart::Allowed(flags) => flags.config.as_deref(),
            Autostart::Refused => None,
        }
    }

    /// Reports whether a daemon may be started.
    pub fn may_autostart(&self) -> bool {
        matches!(self.autostart, Autostart::Allowed(_))
    }

    /// Makes the following calls quick and without autostart: they serve a hint, which must not delay an error.
    pub fn best_effort(&mut self) {
        self.autostart = Autostart::Refused;
        self.timeout = HINT_TIMEOUT;
        self.wait = Duration::ZERO;
    }

    /// Sets how long the following calls themselves wait before they answer.
    pub fn expect_wait(&mut self, wait: Duration) {
        self.wait = wait;
    }

    /// Returns the timeout of a call that itself waits up to `wait` before it answers.
    pub fn timeout(&self, wait: Duration) -> Duration {
        wait.saturating_add(self.timeout)
    }

    /// Builds the error for a daemon that did not answer in time.
    pub fn timed_out(&self, after: Duration) -> CliError {
        CallError::TimedOut { path: self.socket.clone(), after, peer: self.peer() }.into()
    }

    /// Looks at the process that does not answer.
    pub fn peer(&self) -> Peer {
        self.fd().map_or_else(Peer::of_state_dir, Peer::of)
    }

    /// Sets how long the daemon may take to answer the following calls, beyond the time that they themselves wait.
    pub fn limit_answers(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Forbids starting a daemon from now on.
    pub fn refuse_autostart(&mut self) {
        self.autostart = Autostart::Refused;
    }

    /// Calls a method once and returns the bytes of its result.
    pub fn call_raw<M: Method>(&mut self, params: &M::Params) -> Result<Box<RawValue>, CliError> {
        Ok(self.client()?.call_raw(M::NAME, params)?)
    }

    /// Calls a method that may run twice, again after a lost connection. `params` gets the time since the first try, so
    /// that a timeout can shrink.
    pub fn call_raw_with_retry<M: Method>(
        &mut self,
        params: impl Fn(Duration) -> M::Params,
    ) -> Result<Box<RawValue>, CliError> {
        let begin = Instant::now();
        let mut passed = Duration::ZERO;
        loop {
            match self.client()?.call_raw(M::NAME, &params(passed)) {
                Err(error) => {
                    self.recover(error)?;
                    passed = begin.elapsed();
                }
                Ok(raw) => {
                    self.losses = 0;
                    return Ok(raw);
                }
            }
        }
    }

    /// Calls a method that may run twice and parses its result.
    pub fn call_with_retry<M: Method>(&mut self, params: &M::Params) -> Result<M::Result, CliError>
    where
        M::Params: Clone,
    {
        Ok(parse::<M>(&self.call_raw_with_retry::<M>(|_| params.clone())?)?)
    }

    /// Sends a request without waiting for its answer.
    pub fn send(&mut self, method: &str, params: &impl Serialize) -> Result<u64, CliError> {
        Ok(self.client()?.send(method, params)?)
    }

    /// Returns the next answer or push that has already been read.
    pub fn next_message(&mut self) -> Result<Option<Message>, CliError> {
        let message = self.client()?.next_message()?;
        if message.is_some() {
            self.losses = 0;
        }
        Ok(message)
    }

    /// Reads what has arrived. A lost connection is an error here; `recover` makes a new one.
    pub fn fill(&mut self) -> Result<(), CallError> {
        match &mut self.client {
            Some(client) => client.fill(),
            None => Ok(()),
        }
    }

    /// Returns the descriptor to wait on, while connected.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.client.as_ref().map(AsFd::as_fd)
    }

    /// Reconnects after a lost connection. Returns any other error.
    pub fn recover(&mut self, error: CallError) -> Result<(), CliError> {
        let CallError::Unreachable { .. } = error else { return Err(error.into()) };
        self.client = None;
        self.losses += 1;
        if self.losses > MAX_LOST_CONNECTIONS {
            return Err(error.into());
        }
        let timeout = match self.autostart {
            Autostart::Allowed(_) => RESTART_WAIT,
            Autostart::Refused => RESTART_WAIT_NO_AUTOSTART,
        };
        let mut wait = Backoff::until(Instant::now() + timeout);
        loop {
            match Client::connect(&self.socket) {
                Ok(client) => {
                    self.client = Some(client);
                    return Ok(());
                }
                Err(error) if autostart::is_not_listening(&error) && wait.once() => {}
                Err(_) => return self.client().map(drop),
            }
        }
    }

    /// Drops a lost connection. `try_reconnect` makes a new one, when the caller chooses.
    pub fn disconnect(&mut self) {
        self.client = None;
    }

    /// Tries once to reconnect, to a daemon that another program brings back. Returns false if no process listens.
    pub fn try_reconnect(&mut self) -> Result<bool, CliError> {
        match Client::connect(&self.socket) {
            Ok(client) => {
                self.client = Some(client);
                Ok(true)
            }
            Err(error) if autostart::is_not_listening(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn client(&mut self) -> Result<&mut Client, CliError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => match &self.autostart {
                Autostart::Allowed(flags) => autostart::connect(&self.socket, flags)?,
                Autostart::Refused => Client::connect(&self.socket)?,
            },
        };
        let (wait, timeout) = (self.wait, self.timeout(self.wait));
        let client = self.client.insert(client);
        client.set_patience(wait, timeout)?;
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FakeDaemon, Reply};
    use toold_proto::{api, params};

    #[test]
    fn a_daemon_that_never_answers_is_given_up_by_name_and_not_asked_again() {
        let fake = FakeDaemon::start(vec![vec![Reply::Silence]]);
        let mut connection = Connection::new(fake.path(), Autostart::Refused).with_timeout(Duration::from_millis(20));
        connection.expect_wait(Duration::from_millis(10));
        let failure =
            connection.call_with_retry::<api::List>(&params::ListParams::default()).expect_err("no answer came");
        let printed = format!("no answer from {} after 0.03 s: ", fake.path().display());
        assert!(failure.to_string().starts_with(&printed), "{failure}");
        assert_eq!((failure.exit_code(), fake.requests().len()), (4, 1));
    }
}
