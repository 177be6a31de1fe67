//! A kernel of a test: its driver, and its cells one after the other.

use crate::program::{Run, signal, text};
use serde_json::{Value, json};
use std::io::Read;
use std::process::Child;

/// Runs a cell and returns its report.
pub fn cell(run: &Run, number: usize, code: &str) -> Value {
    run.channel.push_cell(code);
    ended(run, number)
}

pub fn ended(run: &Run, number: usize) -> Value {
    run.channel.wait("the end of a cell", |state| {
        state.reports.iter().filter_map(|report| report.get("cell")).find(|end| end["number"] == json!(number)).cloned()
    })
}

/// A driver that ends with its test.
pub struct Driver {
    pub program: Child,
}

impl Driver {
    pub fn new(run: &Run) -> Driver {
        Driver { program: run.kernel() }
    }

    /// Ends it, and returns its output.
    pub fn finish(mut self) -> (String, String) {
        signal(&self.program, "KILL");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        self.program.stdout.take().expect("a pipe").read_to_end(&mut out).expect("output");
        self.program.stderr.take().expect("a pipe").read_to_end(&mut err).expect("output");
        (text(&out), text(&err))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
