//! `wait`: until processes exit, close or print something. Nothing polls.

use super::context::{Daemon, unreadable};
use super::read::{note_exit, regex, tail};
use super::wire::Peer;
use crate::log::Log;
use crate::proc::Proc;
use crate::proc::state::State;
use crate::proc::task::now_ms;
use crate::text::{self, PageEnd};
use futures_util::future::{FutureExt, join_all, select_all};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use toold_proto::params::{self, Ansi, WaitMode};
use toold_proto::results::{WaitStatus, Waited};
use toold_proto::unions::{Pattern, Until};
use toold_proto::{RpcError, results};

const TIMEOUT_MS: i64 = 180_000;
/// What each process shows of its output, in characters.
const LAST: usize = 2000;
/// Processes in one wait.
const MOST: usize = 4096;
/// How long a program may live on after its output before a wait for the close does without its exit.
const EXIT_FOLLOWS: Duration = Duration::from_millis(500);
/// How much of the log is looked at in one go.
const READ: usize = 256 * 1024;
/// A line without an end is looked at in windows of this size, each overlapping the one before by half.
const WINDOW: usize = 64 * 1024;

pub async fn wait(call: params::Wait, daemon: Arc<Daemon>, peer: Arc<Peer>) -> Result<results::Wait, RpcError> {
    let asked = call.timeout_ms.unwrap_or(TIMEOUT_MS);
    if asked <= 0 {
        return Err(RpcError::param("timeout_ms", format!("must be at least 1, not {asked}")));
    }
    let procs = named(&call, &daemon)?;
    let max = daemon.registry.config.max_wait_ms;
    let timeout_ms = (asked as u64).min(max);
    let clamped = asked as u64 > max;
    let matcher = match &call.until {
        Until::Match(pattern) => Some(Arc::new(Matcher::new(pattern)?)),
        Until::Exit | Until::Closed | Until::Port(_) | Until::Quiet(_) => None,
    };
    let waits = procs.iter().map(|p| one(p.clone(), call.until.clone(), matcher.clone()).boxed());
    let all = async {
        match call.mode {
            WaitMode::All => join_all(waits).await.into_iter().enumerate().collect::<Vec<_>>(),
            WaitMode::Any => {
                let (end, at, _) = select_all(waits).await;
                vec![(at, end)]
            }
        }
    };
    let ends = tokio::time::timeout(Duration::from_millis(timeout_ms), all).await;
    let mut matched: Vec<Option<String>> = vec![None; procs.len()];
    let status = match ends {
        Err(_) => WaitStatus::Timeout,
        Ok(ends) => {
            for (at, end) in ends {
                matched[at] = end.map_err(|e| unreadable(&procs[at], e))?;
            }
            if matched.iter().any(Option::is_some) { WaitStatus::Matched } else { WaitStatus::Exited }
        }
    };
    let processes = procs.iter().zip(matched).map(|(p, m)| shown(p, &peer, m)).collect::<Result<_, _>>()?;
    let note = clamped.then(|| format!("the timeout of {asked} ms was cut to max_wait_ms, {max} ms"));
    Ok(results::Wait { status, processes, timeout_ms, clamped, note })
}

fn named(call: &params::Wait, daemon: &Daemon) -> Result<Vec<Arc<Proc>>, RpcError> {
    let ids = match (&call.id, &call.ids) {
        (Some(_), Some(_)) => return Err(RpcError::param("id", "give either id or ids, not both")),
        (None, None) => return Err(RpcError::param("id", "give id or ids")),
        (Some(id), None) => std::slice::from_ref(id),
        (None, Some(ids)) if ids.is_empty() => return Err(RpcError::param("ids", "must not be empty")),
        (None, Some(ids)) if ids.len() > MOST => {
            return Err(RpcError::param("ids", format!("must be at most {MOST}, not {}", ids.len())));
        }
        (None, Some(ids)) => ids.as_slice(),
    };
    ids.iter().map(|id| daemon.registry.find(if call.id.is_some() { "id" } else { "ids" }, id)).collect()
}

fn shown(proc: &Proc, peer: &Peer, matched: Option<String>) -> Result<Waited, RpcError> {
    let state = proc.state();
    note_exit(peer, proc, &state);
    let (output, next_cursor) = tail(proc, &state, LAST).map_err(|e| unreadable(proc, e))?;
    Ok(Waited { process: proc.view_of(&state, now_ms()), output, next_cursor, matched, listener: None })
}

/// Waits for one process. Some: the line that matched.
async fn one(proc: Arc<Proc>, until: Until, matcher: Option<Arc<Matcher>>) -> io::Result<Option<String>> {
    let mut news = proc.subscribe();
    let over = |state: &State| match until {
        Until::Exit => state.ended(),
        Until::Closed => state.closed,
        Until::Match(_) | Until::Port(_) | Until::Quiet(_) => state.ended(),
    };
    let Some(matcher) = matcher else {
        // A sender lives in the process, so this ends only with the state it waits for.
        let _ = news.wait_for(over).await;
        if until == Until::Closed && !proc.peek().ended() {
            // Nearly always the output ends because the program does, and the exit is on its way.
            let _ = tokio::time::timeout(EXIT_FOLLOWS, news.wait_for(State::ended)).await;
        }
        return Ok(None);
    };
    let mut search = Search::new(matcher);
    loop {
        news.mark_unchanged();
        let state = proc.state();
        if let Some(line) = search.look(&proc, &state)? {
            return Ok(Some(line));
        }
        if over(&state) {
            return Ok(search.last_line());
        }
        proc.want_beyond(state.progress.counts.end);
        if news.changed().await.is_err() {
            return Ok(None);
        }
    }
}

/// A pattern, ready to be looked for in a line.
enum Matcher {
    Text(Box<memchr::memmem::Finder<'static>>),
    Regex(regex::bytes::Regex),
}

impl Matcher {
    fn new(pattern: &Pattern) -> Result<Matcher, RpcError> {
        match pattern {
            Pattern::Text(text) if text.is_empty() => Err(RpcError::param("until.match", "must not be empty")),
            Pattern::Text(text) => Ok(Matcher::Text(Box::new(memchr::memmem::Finder::new(text).into_owned()))),
            Pattern::Regex(text) => match regex(text) {
                Ok(regex) => Ok(Matcher::Regex(regex)),
                Err(why) => Err(RpcError::param("until.match.regex", why)),
            },
        }
    }

    /// Whether the line's text matches, as `log` with `grep` sees it.
    fn matches(&self, line: &[u8], end: PageEnd) -> bool {
        let text = text::line_text(line, end, Ansi::Strip);
        match self {
            Matcher::Text(finder) => finder.find(&text).is_some(),
            Matcher::Regex(regex) => regex.is_match(&text),
        }
    }
}

/// A search along a growing log, line by line.
struct Search {
    matcher: Arc<Matcher>,
    at: u64,
    /// The line that has not ended yet.
    open: Vec<u8>,
}

impl Search {
    fn new(matcher: Arc<Matcher>) -> Search {
        Search { matcher, at: 0, open: Vec::new() }
    }

    /// Looks at everything up to where the log is now.
    fn look(&mut self, proc: &Proc, state: &State) -> io::Result<Option<String>> {
        let end = state.progress.counts.end;
        if self.at >= end {
            return Ok(None);
        }
        let log = Log::open(&proc.dir, end)?;
        while self.at < end {
            let page = log.read(self.at, READ, None)?;
            if page.gap.is_some() {
                self.open.clear();
            }
            let found = self.feed(&page.bytes);
            if page.next <= self.at || found.is_some() {
                return Ok(found);
            }
            self.at = page.next;
        }
        // A prompt has no newline: what is there of a line may match already.
        Ok(self.matcher.matches(&self.open, PageEnd::More).then(|| shown_line(&self.open)))
    }

    fn feed(&mut self, bytes: &[u8]) -> Option<String> {
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            for piece in line.chunks(WINDOW / 2) {
                self.open.extend_from_slice(piece);
                let ended = piece.last() == Some(&b'\n');
                if (ended || self.open.len() >= WINDOW) && self.matcher.matches(&self.open, PageEnd::Last) {
                    return Some(shown_line(&self.open));
                }
                if ended {
                    self.open.clear();
                } else if self.open.len() >= WINDOW {
                    self.open.drain(..WINDOW / 2);
                }
            }
        }
        None
    }

    fn last_line(&self) -> Option<String> {
        self.matcher.matches(&self.open, PageEnd::Last).then(|| shown_line(&self.open))
    }
}

fn shown_line(line: &[u8]) -> String {
    let end = line.len().min(LAST);
    let text = text::line_text(&line[..end], PageEnd::Last, Ansi::Strip);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_is_found_however_the_bytes_come_and_never_across_lines() {
        let text = b"one\ntwo READY three\nend".as_slice();
        for cut in 0..text.len() {
            let mut search = Search::new(Arc::new(Matcher::new(&Pattern::Text("READY".into())).expect("valid")));
            let first = search.feed(&text[..cut]);
            let found = first.or_else(|| search.feed(&text[cut..]));
            assert_eq!(found.as_deref(), Some("two READY three"), "{cut}");
        }
        let mut search = Search::new(Arc::new(Matcher::new(&Pattern::Regex("one.two".into())).expect("valid")));
        assert_eq!(search.feed(b"one\ntwo\n"), None);
    }

    #[test]
    fn a_match_is_looked_for_in_the_text_that_is_shown() {
        // The colours stood between the words, and a pattern for both was never found.
        let mut search = Search::new(Arc::new(Matcher::new(&Pattern::Text("okgo".into())).expect("valid")));
        assert_eq!(search.feed(b"\x1b[32mok\x1b[0mgo\r\n").as_deref(), Some("okgo"));
        let mut search = Search::new(Arc::new(Matcher::new(&Pattern::Regex("^okgo$".into())).expect("valid")));
        assert_eq!((search.feed(b"\x1b[32mok\x1b[0mgo"), search.last_line().as_deref()), (None, Some("okgo")));
    }

    #[test]
    fn a_line_without_end_is_searched_in_bounded_windows() {
        let mut search = Search::new(Arc::new(Matcher::new(&Pattern::Text("NEEDLE".into())).expect("valid")));
        assert_eq!(search.feed(&vec![b'x'; WINDOW * 3 - 3]), None);
        assert!(search.feed(b"NEEDLE\n").is_some());
        assert!(search.open.len() <= WINDOW + WINDOW / 2);
    }
}
