//! A pattern and its search along a growing log. `wait` and `ready` look with it, as a watch does.

use crate::log::Log;
use crate::proc::Proc;
use crate::proc::state::State;
use crate::proc::watcher::{feed, only_stream};
use crate::spec::InvalidParam;
use crate::watch::{Matches, Patterns, ScanPosition, Scanner};
use std::io;
use std::sync::Arc;
use toold_proto::pattern::Pattern;

/// A pattern, ready to be looked for. `param` is what the caller named it.
pub fn compile(param: &str, pattern: &Pattern) -> Result<Arc<Patterns>, InvalidParam> {
    let param = match pattern {
        Pattern::Text(_) => param.to_string(),
        Pattern::Regex(_) => format!("{param}.regex"),
    };
    let made = Patterns::new(std::slice::from_ref(pattern)).map_err(|bad| InvalidParam::new(param, bad.why))?;
    Ok(Arc::new(made))
}

/// A search along a growing log, line by line.
pub struct Search {
    scanner: Scanner,
    at: u64,
}

impl Search {
    pub fn new(patterns: Arc<Patterns>) -> Search {
        Search { scanner: Scanner::new(patterns, ScanPosition::default()), at: 0 }
    }

    /// Looks at everything up to where the log is now. Some: the line that matched.
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
            // A prompt has no newline: what is there of a line may match already.
            self.scanner.peek(&mut found);
        }
        Ok(first_line(found))
    }

    /// The program has ended: the last line is all there is of it.
    pub fn last_line(&mut self) -> Option<String> {
        let mut found = Matches::default();
        self.scanner.end(&mut found);
        first_line(found)
    }
}

fn first_line(found: Matches) -> Option<String> {
    (found.matches > 0).then(|| found.output.split('\n').next().unwrap_or_default().to_string())
}
