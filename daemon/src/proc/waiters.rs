//! Callers that wait for the shim's answer to one request.

use super::kept_env::EnvPart;
use tokio::sync::oneshot;
use toold_format::frame::FromShim;

/// A caller, by the answer that it waits for.
pub enum Waiter {
    Errno(oneshot::Sender<i32>),
    Env(oneshot::Sender<EnvPart>),
    Position(oneshot::Sender<u64>),
}

/// The callers of one connection, by the token of their request.
#[derive(Default)]
pub struct Waiters(Vec<(u64, Waiter)>);

impl Waiters {
    pub fn push(&mut self, token: u64, waiter: Waiter) {
        self.0.push((token, waiter));
    }

    /// Drops all callers: they get no answer on this connection.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Passes an answer to the caller that waits for it. A frame that answers no caller has no effect.
    pub fn answer(&mut self, frame: &FromShim<'_>) {
        // A caller that has gone does not read its answer.
        match *frame {
            FromShim::Done { token, errno } => {
                if let Some(Waiter::Errno(reply)) = self.take(token) {
                    let _ = reply.send(errno);
                }
            }
            FromShim::Env { token, total, data } => {
                if let Some(Waiter::Env(reply)) = self.take(token) {
                    let _ = reply.send(EnvPart { total, data: data.to_vec() });
                }
            }
            FromShim::Position { token, progress } => {
                if let Some(Waiter::Position(reply)) = self.take(token) {
                    let _ = reply.send(progress.counts.end);
                }
            }
            // Answers to kills and writes, which have queues of their own, and reports.
            _ => {}
        }
    }

    fn take(&mut self, token: u64) -> Option<Waiter> {
        let at = self.0.iter().position(|(t, _)| *t == token)?;
        Some(self.0.swap_remove(at).1)
    }
}
