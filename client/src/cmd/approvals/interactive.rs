//! `approvals` at a terminal, and `approvals -f`: shows one question after the other, follows new ones by events, and decides by
//! one key.

use super::Args;
use crate::blocking::{CallError, parse};
use crate::cmd::Context;
use crate::error::{CliError, DONE};
use crate::error_text;
use crate::event_loop::{EventLoop, Incoming, Sources};
use crate::render::approval;
use crate::sys::{Interest, Signals, TerminalSettings};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;
use toold_proto::approval::{
    Approval, ApprovalId, ApprovalState, ApprovalsDecideParams, ApprovalsListParams, Decision, Scope,
};
use toold_proto::params::EventsSubscribeParams;
use toold_proto::{EventType, RpcError, api};

/// The signals that end us: the terminal is restored first.
const SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The calls of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Subscribe,
    List,
    Decide,
}

/// The terminal while keys come one by one. Restored when it is dropped.
struct Keys(TerminalSettings);

impl Keys {
    fn enter() -> io::Result<Keys> {
        let before = TerminalSettings::read(io::stdin().as_fd())?;
        before.key_by_key().apply(io::stdin().as_fd())?;
        Ok(Keys(before))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        let _ = self.0.apply(io::stdin().as_fd());
    }
}

struct Questions<'a, 'c> {
    cx: &'a mut Context<'c>,
    args: Args,
    events: EventLoop<Call>,
    signals: Option<Signals>,
    keys: Option<Keys>,
    waiting: Vec<Approval>,
    /// The question on the screen.
    shown: Option<Approval>,
    /// Those that were printed, or passed over.
    seen: HashSet<ApprovalId>,
    /// An event came since the last list.
    stale: bool,
    /// The line that nothing waits is on the screen.
    is_idle: bool,
}

/// The meaning of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Decide(Decision, Scope),
    Later,
    Leave,
}

fn key(byte: u8) -> Option<Key> {
    match byte {
        b'y' => Some(Key::Decide(Decision::Approve, Scope::Once)),
        b's' => Some(Key::Decide(Decision::Approve, Scope::Session)),
        b'r' => Some(Key::Decide(Decision::Approve, Scope::Script)),
        b'a' => Some(Key::Decide(Decision::Approve, Scope::Always)),
        b'n' => Some(Key::Decide(Decision::Deny, Scope::Once)),
        b'x' => Some(Key::Decide(Decision::Abort, Scope::Once)),
        b' ' | b'\n' | b'\r' => Some(Key::Later),
        b'q' | 4 => Some(Key::Leave),
        // Any other key decides nothing.
        _ => None,
    }
}

pub fn run(args: Args, has_keys: bool, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let signals = cx.console.is_real.then(|| Signals::catch(&SIGNALS)).transpose();
    let signals = signals.map_err(CliError::io("catch signals"))?;
    let keys = has_keys.then(Keys::enter).transpose().map_err(CliError::io("read keys"))?;
    let questions = Questions {
        cx,
        args,
        events: EventLoop::new(),
        signals,
        keys,
        waiting: Vec::new(),
        shown: None,
        seen: HashSet::new(),
        stale: true,
        is_idle: false,
    };
    questions.run()
}

impl Questions<'_, '_> {
    fn run(mut self) -> Result<u8, CliError> {
        self.subscribe()?;
        loop {
            while let Some(incoming) = self.events.next(&mut self.cx.connection)? {
                self.handle(incoming)?;
            }
            if self.stale && !self.events.is_pending(Call::List) {
                self.stale = false;
                let params = ApprovalsListParams { limit: None, ..self.args.params() };
                self.events.send::<api::ApprovalsList>(&mut self.cx.connection, Call::List, &params, Duration::ZERO)?;
            }
            if !self.is_busy() && self.show_next()? {
                return Ok(DONE);
            }
            if let Some(code) = self.wait()? {
                return Ok(code);
            }
        }
    }

    /// Returns true while an answer may change what is shown.
    fn is_busy(&self) -> bool {
        self.stale || self.events.is_pending(Call::List) || self.events.is_pending(Call::Decide)
    }

    fn subscribe(&mut self) -> Result<(), CliError> {
        let params = EventsSubscribeParams {
            types: Some(vec![EventType::ApprovalRequested, EventType::ApprovalDecided]),
            session_key: self.args.session.clone(),
            task_id: self.args.task.clone(),
            ..Default::default()
        };
        self.stale = true;
        self.events.send::<api::EventsSubscribe>(&mut self.cx.connection, Call::Subscribe, &params, Duration::ZERO)
    }

    fn handle(&mut self, incoming: Incoming<Call>) -> Result<(), CliError> {
        match incoming {
            Incoming::Push(push) => {
                self.stale = true;
                if push.outcome.is_err() {
                    self.subscribe()?;
                }
            }
            Incoming::Answer(Call::Subscribe, outcome) => drop(outcome.map_err(CallError::Rpc)?),
            Incoming::Answer(Call::List, outcome) => self.listed(&outcome.map_err(CallError::Rpc)?)?,
            Incoming::Answer(Call::Decide, outcome) => self.decided(outcome)?,
        }
        Ok(())
    }

    fn listed(&mut self, raw: &RawValue) -> Result<(), CliError> {
        self.waiting = parse::<api::ApprovalsList>(raw)?.approvals;
        let is_ours = self.events.is_pending(Call::Decide);
        let is_gone = |shown: &Approval| !is_ours && self.waiting.iter().all(|approval| approval.id != shown.id);
        if let Some(gone) = self.shown.take_if(|shown| is_gone(shown)) {
            self.cx.console.print(&format!("{} does not wait any more\n\n", gone.id))?;
        }
        Ok(())
    }

    fn decided(&mut self, outcome: Result<Box<RawValue>, RpcError>) -> Result<(), CliError> {
        let line = match outcome {
            Ok(raw) => approval::line(&parse::<api::ApprovalsDecide>(&raw)?.approval),
            Err(error) => format!("{}\n", error_text::describe(&error)),
        };
        self.shown = None;
        self.stale = true;
        self.cx.console.print(&format!("{line}\n"))
    }

    /// Shows the next question. Returns true if there is none, and none is waited for.
    fn show_next(&mut self) -> Result<bool, CliError> {
        if self.shown.is_some() {
            return Ok(false);
        }
        let fresh =
            |approval: &&Approval| approval.state == ApprovalState::Pending && !self.seen.contains(&approval.id);
        if let Some(next) = self.waiting.iter().find(fresh).cloned() {
            self.seen.insert(next.id);
            self.is_idle = false;
            if self.cx.json {
                self.cx.print_json(&next)?;
                return self.show_next();
            }
            self.cx.console.print(&approval::block(&next, self.cx.console.style))?;
            if self.keys.is_none() {
                self.cx.console.print(&format!("{}\n", approval::commands(&next)))?;
                return self.show_next();
            }
            self.cx.console.print(&approval::keys(&next))?;
            self.shown = Some(next);
            return Ok(false);
        }
        if !self.args.follow {
            self.cx.console.print("no question waits\n")?;
            return Ok(true);
        }
        if self.keys.is_some() && !self.is_idle {
            self.is_idle = true;
            self.cx.console.print("no question waits; q leaves\n")?;
        }
        Ok(false)
    }

    fn wait(&mut self) -> Result<Option<u8>, CliError> {
        let (stdout, stdin) = (io::stdout(), io::stdin());
        let sources = Sources {
            signals: self.signals.as_ref(),
            input: self.keys.is_some().then(|| stdin.as_fd()),
            output: self.cx.console.is_real.then(|| (stdout.as_fd(), Interest::HungUp)),
        };
        let wake = self.events.wait(&mut self.cx.connection, sources, None)?;
        if wake.output {
            return Err(CliError::OutputClosed);
        }
        if let Some(notice) = &wake.notice {
            self.cx.console.message(notice);
        }
        if wake.signal
            && let Some(signal) = self.signals.as_ref().and_then(Signals::take)
        {
            return Ok(Some(if signal == libc::SIGINT { DONE } else { 128 + signal as u8 }));
        }
        if wake.input && self.typed(&stdin)? {
            return Ok(Some(DONE));
        }
        if let Some(lost) = wake.lost {
            // A decision may have been made: the next list shows it.
            self.events.cancel_all();
            self.events.reconnect(&mut self.cx.connection, lost)?;
            self.shown = None;
            self.subscribe()?;
        }
        Ok(None)
    }

    /// Handles typed keys. Returns true if they end us. A key decides only the question that is on the screen.
    fn typed(&mut self, mut stdin: &io::Stdin) -> Result<bool, CliError> {
        let mut typed = [0; 64];
        let read = stdin.read(&mut typed).map_err(CliError::io("read keys"))?;
        if read == 0 {
            return Ok(true);
        }
        for byte in &typed[..read] {
            if self.press(*byte)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Handles one key. Returns true if it ends us.
    fn press(&mut self, byte: u8) -> Result<bool, CliError> {
        match (key(byte), &self.shown) {
            (Some(Key::Leave), _) => Ok(true),
            // The next question is shown later: what was typed ahead does not decide it.
            (Some(Key::Later), Some(_)) => {
                self.shown = None;
                self.cx.console.print("later\n\n").map(|()| false)
            }
            (Some(Key::Decide(decision, scope)), Some(shown)) if !self.events.is_pending(Call::Decide) => {
                let is_offered = shown.offers.iter().any(|offer| offer.scope == scope);
                if decision == Decision::Approve && !is_offered {
                    return Ok(false);
                }
                let params = ApprovalsDecideParams {
                    id: shown.id.to_string(),
                    decision,
                    digest: shown.digest.clone(),
                    scope,
                    ..Default::default()
                };
                let connection = &mut self.cx.connection;
                self.events.send::<api::ApprovalsDecide>(connection, Call::Decide, &params, Duration::ZERO)?;
                Ok(false)
            }
            (Some(Key::Decide(..) | Key::Later) | None, _) => Ok(false),
        }
    }
}
