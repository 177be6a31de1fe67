//! Searches a growing log for a pattern, for `wait` and `ready`. Lines match as they do in a watch.

use crate::log::Log;
use crate::proc::Proc;
use crate::proc::state::State;
use crate::proc::watcher::{feed, only_stream};
use crate::spec::InvalidParam;
use crate::watch::{Matches, Patterns, ScanPosition, Scanner};
use std::io;
use std::sync::Arc;
use toold_proto::pattern::Pattern;

/// Compiles a pattern. Errors name the parameter as `param`.
pub fn compile(param: &str, pattern: &Pattern) -> Result<Arc<Patterns>, InvalidParam> {
    let param = match pattern {
        Pattern::Text(_) => param.to_string(),
        Pattern::Regex(_) => format!("{param}.regex"),
    };
    let made = Patterns::new(std::slice::from_ref(pattern)).map_err(|bad| InvalidParam::new(param, bad.reason))?;
    Ok(Arc::new(made))
}

/// A search through a growing log, line by line.
pub struct Search {
    scanner: Scanner,
    at: u64,
}

impl Search {
    pub fn new(patterns: Arc<Patterns>) -> Search {
        Search { scanner: Scanner::new(patterns, ScanPosition::default()), at: 0 }
    }

    /// Scans up to the end of the log. Returns the line that matched.
    pub fn scan_to(&mut self, proc: &Proc, state: &State) -> io::Result<Option<String>> {
        let (end, mut found) = (state.progress.counts.end, Matches::default());
        if self.at < end {
            let (log, only) = (Log::open(&proc.dir, end)?, only_stream(&state.progress.counts));
            let mut buffer = proc.sink.buffers.take();
            while self.at < end && found.matches == 0 {
                let filled = feed(&log, self.at, only, &mut buffer, &mut self.scanner, &mut found)?;
                self.at = if filled.next > self.at { filled.next } else { end };
            }
        }
        if found.matches == 0 {
            // A prompt has no newline: the start of a line may match already.
            self.scanner.peek(&mut found);
        }
        Ok(first_line(found))
    }

    /// Matches the last line of a program that has ended, which may have no newline.
    pub fn last_line(&mut self) -> Option<String> {
        let mut found = Matches::default();
        self.scanner.end(&mut found);
        first_line(found)
    }
}

fn first_line(found: Matches) -> Option<String> {
    (found.matches > 0).then(|| found.output.split('\n').next().unwrap_or_default().to_string())
}
