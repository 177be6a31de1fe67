//! Our stdin on its way to the process.

use super::{Asked, Follow};
use crate::blocking::parse;
use crate::cmd::start::fresh_id;
use crate::failure::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use std::io::Read;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params;

/// How much of our stdin goes into one `write`. With its base64 it fits a socket's buffer, so
/// sending it never waits for a daemon that waits for us.
const INPUT: usize = 32 * 1024;

impl Follow<'_, '_> {
    /// Takes what our stdin has and sends it on; at its end closes the process's.
    pub(super) fn forward(&mut self) -> Result<(), Failure> {
        let Some(input) = &mut self.plan.input else { return Ok(()) };
        let mut chunk = vec![0; INPUT];
        let read = input.read(&mut chunk).map_err(|source| Failure::Io { doing: "read standard input", source })?;
        if read == 0 {
            self.plan.input = None;
            let id = self.id();
            return self.ask::<api::Close>(Asked::Close, &params::Close { id }, Duration::ZERO);
        }
        chunk.truncate(read);
        self.sending = chunk;
        self.write()
    }

    fn write(&mut self) -> Result<(), Failure> {
        let params = params::Write {
            id: self.id(),
            data_base64: Some(STANDARD.encode(&self.sending)),
            write_id: Some(fresh_id()),
            ..Default::default()
        };
        self.ask::<api::Write>(Asked::Write, &params, crate::cmd::write::WAIT)
    }

    pub(super) fn wrote(&mut self, result: &RawValue) -> Result<(), Failure> {
        let written = parse::<api::Write>(result)?.bytes_written as usize;
        self.sending.drain(..written.min(self.sending.len()));
        // The reader was slow: the rest is a new write.
        if self.sending.is_empty() { Ok(()) } else { self.write() }
    }
}
