//! The way to the daemon: where it is, whether it may be started, and how to come back to it.

use crate::autostart::{self, Backoff, DaemonFlags};
use crate::blocking::{CallError, Client, Message, parse};
use crate::error::CliError;
use serde::Serialize;
use serde_json::value::RawValue;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use toold_proto::api::Method;

/// Connections lost one after the other without an answer between. More is a daemon that dies of
/// what we ask.
const MAX_LOSSES: u32 = 5;
/// After a loss, so long for somebody else (systemd, an upgrade) to bring the daemon back.
const OTHERS_TIME: Duration = Duration::from_secs(1);
/// And so long when we may not start it ourselves.
const RETURN_TIME: Duration = Duration::from_secs(10);

/// How long the daemon may take for an answer beyond what it was asked to wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a hint may take.
const HINT_TIME: Duration = Duration::from_secs(1);

/// Whether `toolctl` may start the daemon.
#[derive(Debug, Clone)]
pub enum Autostart {
    Allowed(DaemonFlags),
    Refused,
}

/// A connection that is made when it is first needed, and can be made again.
pub struct Connection {
    socket: PathBuf,
    autostart: Autostart,
    client: Option<Client>,
    losses: u32,
    timeout: Duration,
    /// What the calls wait for by their own wish.
    wait: Duration,
}

impl Connection {
    pub fn new(socket: PathBuf, autostart: Autostart) -> Connection {
        Connection { socket, autostart, client: None, losses: 0, timeout: PATIENCE, wait: Duration::ZERO }
    }

    /// The same with a daemon that has to be quick.
    #[cfg(test)]
    pub fn impatient(self, timeout: Duration) -> Connection {
        Connection { timeout, ..self }
    }

    /// Where the daemon is looked for.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// From now on calls are for a hint, which nobody wants to wait for, nor start a daemon for.
    pub fn best_effort(&mut self) {
        self.autostart = Autostart::Refused;
        (self.timeout, self.wait) = (HINT_TIME, Duration::ZERO);
    }

    /// From now on calls wait so long by their own wish.
    pub fn expect_wait(&mut self, wait: Duration) {
        self.wait = wait;
    }

    /// How long the answer to a call may take that waits so long by its own wish.
    pub fn timeout(&self, wait: Duration) -> Duration {
        wait.saturating_add(self.timeout)
    }

    /// Nothing came in all the patience there was.
    pub fn timed_out(&self, after: Duration) -> CliError {
        CallError::TimedOut { path: self.socket.clone(), after }.into()
    }

    /// From now on no daemon is started for our sake.
    pub fn refuse_autostart(&mut self) {
        self.autostart = Autostart::Refused;
    }

    /// Calls a method once. The very bytes of its result.
    pub fn call_raw<M: Method>(&mut self, params: &M::Params) -> Result<Box<RawValue>, CliError> {
        Ok(self.client()?.call_raw(M::NAME, params)?)
    }

    /// Calls a method that may run twice, and again after a lost connection. `params` is told how
    /// long ago the first try was, so that a timeout can shrink.
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

    /// The same, as the method's result.
    pub fn call_with_retry<M: Method>(&mut self, params: &M::Params) -> Result<M::Result, CliError>
    where
        M::Params: Clone,
    {
        Ok(parse::<M>(&self.call_raw_with_retry::<M>(|_| params.clone())?)?)
    }

    /// Sends a request and does not wait for its answer.
    pub fn send(&mut self, method: &str, params: &impl Serialize) -> Result<u64, CliError> {
        Ok(self.client()?.send(method, params)?)
    }

    /// The next answer or push that is here already.
    pub fn next_message(&mut self) -> Result<Option<Message>, CliError> {
        let message = self.client()?.next_message()?;
        if message.is_some() {
            self.losses = 0;
        }
        Ok(message)
    }

    /// Reads what is there. A lost connection is an error here; `recover` makes a new one.
    pub fn fill(&mut self) -> Result<(), CallError> {
        match &mut self.client {
            Some(client) => client.fill(),
            None => Ok(()),
        }
    }

    /// The descriptor to wait on, while connected.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.client.as_ref().map(AsFd::as_fd)
    }

    /// A new connection after a lost one. Any other error is handed back.
    pub fn recover(&mut self, error: CallError) -> Result<(), CliError> {
        let CallError::Unreachable { .. } = error else { return Err(error.into()) };
        self.client = None;
        self.losses += 1;
        if self.losses > MAX_LOSSES {
            return Err(error.into());
        }
        let timeout = match self.autostart {
            Autostart::Allowed(_) => OTHERS_TIME,
            Autostart::Refused => RETURN_TIME,
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

    /// The connection is lost. `come_back` makes a new one, in the caller's own time.
    pub fn disconnect(&mut self) {
        self.client = None;
    }

    /// One try at a new connection, to a daemon that somebody else brings back. False: nobody listens.
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
        let timeout = self.timeout(self.wait);
        let client = self.client.insert(client);
        client.set_timeout(timeout)?;
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
        let mut connection = Connection::new(fake.path(), Autostart::Refused).impatient(Duration::from_millis(20));
        connection.expect_wait(Duration::from_millis(10));
        let failure = connection.call_with_retry::<api::List>(&params::List::default()).expect_err("nobody answered");
        let said = format!("no answer from {} after 0.03 s: ", fake.path().display());
        assert!(failure.to_string().starts_with(&said), "{failure}");
        assert_eq!((failure.exit_code(), fake.requests().len()), (4, 1));
    }
}
