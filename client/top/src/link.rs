//! The connection to the daemon: calls by their names in `update`, and what comes back.

use crate::update::{Action, Call, Input};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;
use toold_client::blocking::{CallError, Client, Message};
use toold_client::companion::CompanionOptions;

/// The time that the daemon may take to read a call. It never needs it, unless it is stopped.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

pub struct Connection {
    socket: PathBuf,
    client: Option<Client>,
    pending: Vec<(u64, Call)>,
}

impl Connection {
    /// Connects for the first time: the daemon is started if there is none.
    pub fn open(options: &CompanionOptions) -> Result<Connection, crate::TopError> {
        let mut client = options.connect().map_err(crate::TopError::unreachable)?;
        client.set_timeout(SEND_TIMEOUT).map_err(crate::TopError::unreachable)?;
        Ok(Connection { socket: options.socket(), client: Some(client), pending: Vec::new() })
    }

    pub fn socket(&self) -> &std::path::Path {
        &self.socket
    }

    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.client.as_ref().map(AsFd::as_fd)
    }

    pub fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    /// Tries once to connect to a daemon that is back. It is not started: the user may have stopped it.
    pub fn reconnect(&mut self) -> bool {
        let connected = Client::connect(&self.socket).and_then(|mut client| {
            client.set_timeout(SEND_TIMEOUT)?;
            Ok(client)
        });
        self.client = connected.ok();
        self.client.is_some()
    }

    /// Performs an action that is a call. Returns false if it is another one.
    pub fn perform(&mut self, action: &Action) -> Result<bool, CallError> {
        match action {
            Action::Send(call, method, params) => self.send(*call, method, params)?,
            Action::Restart { id, with_env } => {
                let mut params = json!({"id": id});
                if *with_env {
                    let (text, bytes) = own_environment();
                    (params["env"], params["env_base64"]) = (Value::Object(text), Value::Object(bytes));
                }
                self.send(Call::Restart, "restart", &params)?;
            }
            Action::Cancel(call) => {
                if let Some(at) = self.pending.iter().position(|(_, pending)| pending == call) {
                    let (id, _) = self.pending.swap_remove(at);
                    if let Some(client) = &mut self.client {
                        client.send("$/cancelRequest", &json!({"id": id}))?;
                    }
                }
            }
            // The others are the driver's.
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn send(&mut self, call: Call, method: &str, params: &Value) -> Result<(), CallError> {
        if let Some(client) = &mut self.client {
            let id = client.send(method, params)?;
            self.pending.push((id, call));
        }
        Ok(())
    }

    /// Reads what has arrived. Call it when the descriptor is readable.
    pub fn receive(&mut self) -> Result<Vec<Input>, CallError> {
        let Some(client) = &mut self.client else { return Ok(Vec::new()) };
        client.fill()?;
        let mut inputs = Vec::new();
        while let Some(message) = client.next_message()? {
            match message {
                Message::Push(push) => match push.outcome {
                    Ok(event) => inputs.push(Input::Event(event)),
                    // The subscription ended: a new connection makes a new one.
                    Err(_) => return Err(CallError::Protocol("the subscription ended".into())),
                },
                Message::Answer(answer) => {
                    let at = self.pending.iter().position(|(id, _)| Some(*id) == answer.id);
                    if let Some(at) = at {
                        inputs.push(Input::Answer(self.pending.swap_remove(at).1, answer.outcome));
                    }
                }
            }
        }
        Ok(inputs)
    }

    pub fn disconnect(&mut self) {
        self.client = None;
        self.pending.clear();
    }
}

/// Returns our environment: values that are text, and others in base64.
fn own_environment() -> (Map<String, Value>, Map<String, Value>) {
    use std::os::unix::ffi::OsStrExt;
    let (mut text, mut bytes) = (Map::new(), Map::new());
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        match value.to_str() {
            Some(value) => text.insert(name.into(), value.into()),
            None => bytes.insert(name.into(), STANDARD.encode(value.as_bytes()).into()),
        };
    }
    (text, bytes)
}
