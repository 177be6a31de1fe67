//! The watch of a process: its output through the scanner, what is found through the limiters, into the journal.
//!
//! The place up to which everything is decided goes with every event, so after a crash nothing is found twice and
//! nothing is lost. What was looked at without a match is looked at again.

use super::completion::end;
use super::event_sink::AGAIN;
use super::handle::Proc;
use super::state::{Phase, State};
use crate::hooks;
use crate::log::{Counts, Filled, Log};
use crate::shim::run::mono_ms;
use crate::watch::{Found, Patterns, Scanner, Verdict};
use serde_json::json;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;
use toold_proto::event::EventType;
use toold_proto::params::Stream;
use toold_proto::pattern::Pattern;
use toold_proto::process::Span;

/// How much is looked at before others have their turn.
const TURN: u64 = 1024 * 1024;
/// What is left at the exit is looked at before the exit is announced, if it is no more than this.
const LAST: u64 = 8 * 1024 * 1024;
/// Output without a match after which the place is noted all the same.
const NOTE: u64 = 16 * 1024 * 1024;

/// A watch under way.
pub struct Watching {
    patterns: Mutex<Option<Arc<Patterns>>>,
    scan: Mutex<Option<Scan>>,
    through: watch::Sender<bool>,
}

/// A scanner, and how far it was fed.
struct Scan {
    scanner: Scanner,
    at: u64,
}

/// How far a look got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// There is more to look at now.
    More,
    /// The end so far.
    End(u64),
    /// Nothing will be looked at any more.
    Through,
}

impl Watching {
    pub fn new(patterns: Option<Arc<Patterns>>) -> Watching {
        Watching { patterns: Mutex::new(patterns), scan: Mutex::new(None), through: watch::Sender::new(false) }
    }

    fn scan(&self) -> MutexGuard<'_, Option<Scan>> {
        self.scan.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn patterns(&self, wanted: &[Pattern]) -> io::Result<Arc<Patterns>> {
        let mut patterns = self.patterns.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(patterns) = &*patterns {
            return Ok(patterns.clone());
        }
        // They were accepted once, by this version or an earlier one.
        let made = Arc::new(Patterns::new(wanted).map_err(|bad| io::Error::other(bad.why))?);
        *patterns = Some(made.clone());
        Ok(made)
    }
}

/// Watches until the program has ended and everything it printed was looked at.
pub async fn run(proc: Arc<Proc>) {
    let mut news = proc.subscribe();
    loop {
        news.mark_unchanged();
        match proc.watch_on(&proc.state()) {
            Ok(Reached::Through) => {
                // The watch may have turned `notify` on with its last look.
                let state = proc.peek();
                if state.ended() {
                    proc.tell_due(&state);
                }
                return;
            }
            Ok(Reached::More) => tokio::task::yield_now().await,
            Ok(Reached::End(end)) => {
                proc.want_beyond(end);
                let _ = news.changed().await;
            }
            Err(e) => {
                tracing::error!(id = %proc.spec.id, %e, "watching halted; it is tried again");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

impl Proc {
    /// Nothing more can match: everything was looked at, or nothing was to be.
    pub fn watch_is_through(&self, state: &State) -> bool {
        let told = self.told();
        self.watching.is_none() || told.watched || told.limiter.disabled || matches!(state.phase, Phase::Failed { .. })
    }

    /// Waits for that.
    pub async fn watch_through(&self, state: &State) {
        if let Some(watching) = &self.watching
            && !self.watch_is_through(state)
        {
            let _ = watching.through.subscribe().wait_for(|through| *through).await;
        }
    }

    /// At the exit: what it printed last is looked at before the exit is told, unless that would take long.
    pub fn watch_the_end(&self, state: &State) {
        if !state.ended() || self.watch_is_through(state) {
            return;
        }
        if end(state).saturating_sub(self.told().resume.decided) <= LAST {
            while let Ok(Reached::More) = self.watch_on(state) {}
        }
    }

    /// Looks at what was printed, for one turn.
    fn watch_on(&self, state: &State) -> io::Result<Reached> {
        let Some(watching) = &self.watching else { return Ok(Reached::Through) };
        let mut place = watching.scan();
        if self.watch_is_through(state) {
            watching.through.send_replace(true);
            return Ok(Reached::Through);
        }
        let mut scan = match place.take() {
            Some(scan) => scan,
            None => {
                let resume = self.told().resume;
                Scan { scanner: Scanner::new(watching.patterns(&self.spec.watch)?, resume), at: resume.from() }
            }
        };
        let target = if state.ended() { end(state) } else { state.progress.counts.end };
        // After an error the scan is gone: what was found was not told, and the next look begins where the last event
        // left off.
        let mut found = Found::default();
        let reached = self.look(&mut scan, target, state, &mut found)?;
        if scan.at >= target && state.ended() && !self.told().limiter.disabled {
            // The last unterminated line speaks together with those before it.
            scan.scanner.end(&mut found);
            self.decide(&scan.scanner, found, Last::Yes)?;
            watching.through.send_replace(true);
            return Ok(Reached::Through);
        }
        *place = Some(scan);
        Ok(reached)
    }

    fn look(&self, scan: &mut Scan, target: u64, state: &State, found: &mut Found) -> io::Result<Reached> {
        let Scan { scanner, at } = scan;
        if *at >= target {
            return Ok(Reached::End(target));
        }
        let log = Log::open(&self.dir, target)?;
        let only = only_stream(&state.progress.counts);
        let stop = at.saturating_add(TURN);
        let mut buffer = self.voice.buffer();
        while *at < target.min(stop) {
            let page = feed(&log, *at, only, &mut buffer, scanner, found)?;
            if let Some(gap) = page.gap {
                // Dropped before we came to it: that is told, and not again after a crash.
                let resume = scanner.resume();
                self.remark(|told| {
                    told.unseen += gap.to.saturating_sub(gap.from.max(told.resume.decided));
                    told.resume = resume;
                });
            }
            // A page that gets no further is a gap that was not there a moment ago.
            *at = if page.next > *at { page.next } else { target };
            let last = *at >= target && state.ended();
            if found.matches > 0 && !last {
                self.decide(scanner, found.take(), Last::No)?;
                if self.told().limiter.disabled {
                    return Ok(Reached::More);
                }
            }
        }
        let decided = scanner.resume().decided;
        if decided.saturating_sub(self.told().resume.decided) >= NOTE {
            self.remark(|told| told.resume = scanner.resume());
        }
        Ok(if *at < target { Reached::More } else { Reached::End(target) })
    }

    /// What becomes of lines that matched, and where the scan stands after them.
    fn decide(&self, scanner: &Scanner, found: Found, last: Last) -> io::Result<()> {
        let (resume, watched) = (scanner.resume(), last == Last::Yes);
        let (lines, now, rules) = (found.matches, mono_ms(), &self.voice.rules);
        let mut limiter = self.told().limiter;
        if lines == 0 {
            if watched {
                self.remark(|told| (told.resume, told.watched) = (resume, true));
            }
            return Ok(());
        }
        hooks::at("watch.found");
        if limiter.would_emit(rules, now) {
            let refused = || {
                self.remark(|told| {
                    told.limiter.refused(lines);
                    (told.resume, told.watched) = (resume, watched);
                });
            };
            if !self.voice.admit(now, lines, refused) {
                return Ok(());
            }
            hooks::at("watch.admitted");
        }
        match limiter.matched(rules, now, lines) {
            Verdict::Emit { suppressed } => {
                let index = found.pattern.unwrap_or(0);
                let pattern = match self.spec.watch.get(index) {
                    Some(Pattern::Text(text) | Pattern::Regex(text)) => text.as_str(),
                    None => "",
                };
                let facts = json!({
                    "name": self.spec.name, "pattern": pattern, "pattern_index": index, "output": found.output,
                    "matches": lines, "truncated": found.cut, "suppressed": suppressed,
                });
                self.tell(EventType::WatchMatch, &facts, |told| {
                    (told.limiter, told.resume, told.watched) = (limiter, resume, watched);
                })?;
            }
            Verdict::Disable { suppressed } => {
                let message = format!(
                    "matches came too often in {} intervals of {} ms in a row: watching ended, `notify` is on",
                    rules.strike_limit, rules.min_interval_ms
                );
                let facts = json!({ "name": self.spec.name, "suppressed": suppressed, "message": message });
                self.tell(EventType::WatchDisabled, &facts, |told| {
                    (told.limiter, told.resume, told.watched) = (limiter, resume, watched);
                    told.promoted = true;
                })?;
            }
            Verdict::Drop | Verdict::Ended => self.remark(|told| {
                (told.limiter, told.resume, told.watched) = (limiter, resume, watched);
            }),
        }
        Ok(())
    }
}

/// Whether what was found is the last of all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Yes,
    No,
}

/// Feeds a scanner with the log from `at` on, as much as fits into the buffer: each stream for itself.
pub fn feed(
    log: &Log,
    at: u64,
    only: Option<Stream>,
    buffer: &mut [u8],
    scanner: &mut Scanner,
    found: &mut Found,
) -> io::Result<Filled> {
    let page = log.read_into(at, buffer)?;
    let bytes = buffer.get(..(page.next - page.from) as usize).unwrap_or_default();
    if let Some(gap) = page.gap {
        scanner.gap(gap.to);
    }
    match only {
        Some(stream) => scanner.feed(stream, page.from, bytes, found),
        None => {
            for Span { stream, from, to, .. } in log.spans(page.from, page.next)? {
                let piece = (from - page.from) as usize..(to - page.from) as usize;
                scanner.feed(stream, from, bytes.get(piece).unwrap_or_default(), found);
            }
        }
    }
    Ok(page)
}

/// The stream that wrote everything so far, if it was one: then nobody has to ask the index.
pub fn only_stream(counts: &Counts) -> Option<Stream> {
    let (out, err) = (counts.out_newlines > 0 || counts.out_open, counts.err_newlines > 0 || counts.err_open);
    match (out, err) {
        (_, false) => Some(Stream::Stdout),
        (false, true) => Some(Stream::Stderr),
        (true, true) => None,
    }
}
