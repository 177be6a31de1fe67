//! Searches a growing log for a pattern, for `wait` and `ready`. Lines match as they do in a watch.

use crate::log::Log;
use crate::matcher::{self, Meter};
use crate::proc::Proc;
use crate::proc::search_pool::{MAX_TURN_BYTES, MAX_TURN_NS, is_inline};
use crate::proc::state::State;
use crate::proc::watcher::{feed, only_stream};
use crate::spec::InvalidParam;
use crate::watch::{Matches, Patterns, ScanPosition, Scanner};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
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

/// A search that did not come to its end.
#[derive(Debug)]
pub enum SearchError {
    Read(io::Error),
    /// The pattern takes too long. The message is for the caller.
    TooSlow(String),
}

impl From<io::Error> for SearchError {
    fn from(error: io::Error) -> SearchError {
        SearchError::Read(error)
    }
}

/// A search through a growing log, line by line.
pub struct Search {
    scanner: Scanner,
    cost: u64,
    at: u64,
}

/// The result of one turn.
enum Turn {
    Found(String),
    /// There is more to search now.
    More,
    End,
}

impl Search {
    pub fn new(patterns: Arc<Patterns>, meter: Meter) -> Search {
        let cost = patterns.cost();
        let mut scanner = Scanner::new(patterns, ScanPosition::default());
        scanner.meter = meter;
        Search { scanner, cost, at: 0 }
    }

    /// Searches up to the end of the log, and at the end of the program also its last line. Returns the line that matched.
    /// Takes turns with other searches if it may take long; the turn under way ends early if the future is dropped.
    pub async fn run(mut self, proc: &Arc<Proc>, state: &State) -> Result<(Search, Option<String>), SearchError> {
        loop {
            let end = state.progress.counts.end;
            let open = self.scanner.open_len() as u64;
            let turn = if is_inline(end.saturating_sub(self.at) + open, self.cost) {
                self.turn(proc, state, Arc::default())?
            } else {
                let (worker, state) = (proc.clone(), *state);
                let work = move |cancelled| {
                    let turn = self.turn(&worker, &state, cancelled);
                    (self, turn)
                };
                let (search, turn) = proc.sink.searches.turn(work).await?;
                self = search;
                turn?
            };
            match turn {
                Turn::Found(line) => return Ok((self, Some(line))),
                Turn::End => return Ok((self, None)),
                Turn::More => tokio::task::yield_now().await,
            }
        }
    }

    fn turn(&mut self, proc: &Proc, state: &State, cancelled: Arc<AtomicBool>) -> Result<Turn, SearchError> {
        let metered = !matcher::is_unmetered(self.cost);
        if metered {
            self.scanner.meter.begin_turn(cancelled);
        }
        let turn = self.scan(proc, state, metered)?;
        if metered {
            self.scanner.meter.end_turn();
            // A line that was found was found before the end.
            if self.scanner.meter.ended().is_some() && !matches!(turn, Turn::Found(_)) {
                return Err(SearchError::TooSlow(proc.sink.searches.too_slow()));
            }
        }
        Ok(turn)
    }

    fn scan(&mut self, proc: &Proc, state: &State, metered: bool) -> io::Result<Turn> {
        let (end, mut found) = (state.progress.counts.end, Matches::default());
        if self.at < end {
            let (log, only) = (Log::open(&proc.dir, end)?, only_stream(&state.progress.counts));
            let mut buffer = proc.sink.buffers.take();
            let piece = matcher::piece_len(self.cost, buffer.len());
            let buffer = buffer.get_mut(..piece).unwrap_or_default();
            let stop = self.at.saturating_add(MAX_TURN_BYTES);
            while self.at < end && found.matches == 0 {
                let is_over = metered && self.scanner.meter.turn_ns() >= MAX_TURN_NS;
                if self.at >= stop || is_over || self.scanner.meter.ended().is_some() {
                    return Ok(Turn::More);
                }
                let filled = feed(&log, self.at, only, buffer, &mut self.scanner, &mut found)?;
                self.at = if filled.next > self.at { filled.next } else { end };
            }
        }
        if found.matches == 0 {
            if state.has_ended() {
                // The last line of a program may have no newline.
                self.scanner.end(&mut found);
            } else {
                // A prompt has no newline: the start of a line may match already.
                self.scanner.peek(&mut found);
            }
        }
        Ok(first_line(found).map_or(Turn::End, Turn::Found))
    }
}

fn first_line(found: Matches) -> Option<String> {
    (found.matches > 0).then(|| found.output.split('\n').next().unwrap_or_default().to_string())
}
