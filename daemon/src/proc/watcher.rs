//! The watch of a process: its output through the scanner, what is found through the limiters, into the journal.
//!
//! The place up to which everything is decided goes with every event, so after a crash nothing is found twice and
//! nothing is lost. What was looked at without a match is looked at again.

use super::completion::output_end;
use super::event_sink::RETRY_DELAY;
use super::handle::Proc;
use super::state::{Phase, State};
use crate::clock::mono_ms;
use crate::log::{Filled, Log, from_wire};
use crate::watch::{Decision, Matches, Patterns, Scanner};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;
use toold_format::Stream;
use toold_format::log::Counts;
use toold_proto::event::{WatchDisabled, WatchMatch};
use toold_proto::pattern::Pattern;
use toold_proto::process::Span;
use toold_shim::hooks;

/// How much is looked at before others have their turn.
const MAX_TURN_BYTES: u64 = 1024 * 1024;
/// What is left at the exit is looked at before the exit is announced, if it is no more than this.
const MAX_TAIL_BYTES: u64 = 8 * 1024 * 1024;
/// Output without a match after which the place is noted all the same.
const CHECKPOINT_BYTES: u64 = 16 * 1024 * 1024;

/// A watch under way.
pub struct WatchTask {
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
pub enum ScanProgress {
    /// There is more to look at now.
    More,
    /// The end so far.
    End(u64),
    /// Nothing will be looked at any more.
    Through,
}

impl WatchTask {
    pub fn new(patterns: Option<Arc<Patterns>>) -> WatchTask {
        WatchTask { patterns: Mutex::new(patterns), scan: Mutex::new(None), through: watch::Sender::new(false) }
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
        match proc.scan_turn(&proc.state()) {
            Ok(ScanProgress::Through) => {
                // The watch may have turned `notify` on with its last look.
                let state = proc.published_state();
                if state.has_ended() {
                    proc.publish_due(&state);
                }
                return;
            }
            Ok(ScanProgress::More) => tokio::task::yield_now().await,
            Ok(ScanProgress::End(end)) => {
                proc.notify_past(end);
                let _ = news.changed().await;
            }
            Err(e) => {
                tracing::error!(id = %proc.spec.id, %e, "watching halted; it is tried again");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

impl Proc {
    /// Nothing more can match: everything was looked at, or nothing was to be.
    pub fn is_scanned(&self, state: &State) -> bool {
        let checkpoint = self.checkpoint();
        self.watch_task.is_none()
            || checkpoint.watched
            || checkpoint.limiter.disabled
            || matches!(state.phase, Phase::Failed { .. })
    }

    /// Waits for that.
    pub async fn wait_scanned(&self, state: &State) {
        if let Some(watch_task) = &self.watch_task
            && !self.is_scanned(state)
        {
            let _ = watch_task.through.subscribe().wait_for(|through| *through).await;
        }
    }

    /// At the exit: what it printed last is looked at before the exit is told, unless that would take long.
    pub fn scan_tail(&self, state: &State) {
        if !state.has_ended() || self.is_scanned(state) {
            return;
        }
        if output_end(state).saturating_sub(self.checkpoint().resume.scanned_to) <= MAX_TAIL_BYTES {
            while let Ok(ScanProgress::More) = self.scan_turn(state) {}
        }
    }

    /// Looks at what was printed, for one turn.
    fn scan_turn(&self, state: &State) -> io::Result<ScanProgress> {
        let Some(watch_task) = &self.watch_task else { return Ok(ScanProgress::Through) };
        let mut place = watch_task.scan();
        if self.is_scanned(state) {
            watch_task.through.send_replace(true);
            return Ok(ScanProgress::Through);
        }
        let mut scan = match place.take() {
            Some(scan) => scan,
            None => {
                let resume = self.checkpoint().resume;
                Scan { scanner: Scanner::new(watch_task.patterns(&self.spec.watch)?, resume), at: resume.from() }
            }
        };
        let target = if state.has_ended() { output_end(state) } else { state.progress.counts.end };
        // After an error the scan is gone: what was found was not told, and the next look begins where the last event
        // left off.
        let mut found = Matches::default();
        let reached = self.scan_to(&mut scan, target, state, &mut found)?;
        if scan.at >= target && state.has_ended() && !self.checkpoint().limiter.disabled {
            // The last unterminated line speaks together with those before it.
            scan.scanner.end(&mut found);
            self.decide(&scan.scanner, found, FinalScan::Yes)?;
            watch_task.through.send_replace(true);
            return Ok(ScanProgress::Through);
        }
        *place = Some(scan);
        Ok(reached)
    }

    fn scan_to(&self, scan: &mut Scan, target: u64, state: &State, found: &mut Matches) -> io::Result<ScanProgress> {
        let Scan { scanner, at } = scan;
        if *at >= target {
            return Ok(ScanProgress::End(target));
        }
        let log = Log::open(&self.dir, target)?;
        let only = only_stream(&state.progress.counts);
        let stop = at.saturating_add(MAX_TURN_BYTES);
        let mut buffer = self.sink.buffers.take();
        while *at < target.min(stop) {
            let page = feed(&log, *at, only, &mut buffer, scanner, found)?;
            if let Some(gap) = page.gap {
                // Dropped before we came to it: that is told, and not again after a crash.
                let resume = scanner.resume();
                self.update_checkpoint(|checkpoint| {
                    checkpoint.unseen += gap.to.saturating_sub(gap.from.max(checkpoint.resume.scanned_to));
                    checkpoint.resume = resume;
                });
            }
            // A page that gets no further is a gap that was not there a moment ago.
            *at = if page.next > *at { page.next } else { target };
            let last = *at >= target && state.has_ended();
            if found.matches > 0 && !last {
                self.decide(scanner, found.take(), FinalScan::No)?;
                if self.checkpoint().limiter.disabled {
                    return Ok(ScanProgress::More);
                }
            }
        }
        let decided = scanner.resume().scanned_to;
        if decided.saturating_sub(self.checkpoint().resume.scanned_to) >= CHECKPOINT_BYTES {
            self.update_checkpoint(|checkpoint| checkpoint.resume = scanner.resume());
        }
        Ok(if *at < target { ScanProgress::More } else { ScanProgress::End(target) })
    }

    /// What becomes of lines that matched, and where the scan stands after them.
    fn decide(&self, scanner: &Scanner, found: Matches, last: FinalScan) -> io::Result<()> {
        let (resume, watched) = (scanner.resume(), last == FinalScan::Yes);
        let (lines, now, rules) = (found.matches, mono_ms(), &self.sink.watch_gate.limiter);
        let mut limiter = self.checkpoint().limiter;
        if lines == 0 {
            if watched {
                self.update_checkpoint(|checkpoint| (checkpoint.resume, checkpoint.watched) = (resume, true));
            }
            return Ok(());
        }
        hooks::at("watch.found");
        if limiter.would_emit(rules, now) {
            let refused = || {
                self.update_checkpoint(|checkpoint| {
                    checkpoint.limiter.refused(lines);
                    (checkpoint.resume, checkpoint.watched) = (resume, watched);
                });
            };
            if !self.sink.watch_gate.admit(now, lines, refused) {
                return Ok(());
            }
            hooks::at("watch.admitted");
        }
        match limiter.matched(rules, now, lines) {
            Decision::Emit { suppressed } => {
                let index = found.pattern.unwrap_or(0);
                let pattern = match self.spec.watch.get(index) {
                    Some(Pattern::Text(text) | Pattern::Regex(text)) => text.clone(),
                    None => String::new(),
                };
                let watch_match = WatchMatch {
                    name: self.spec.name.clone(),
                    pattern,
                    pattern_index: index as u64,
                    output: found.output,
                    matches: lines,
                    truncated: found.cut,
                    suppressed,
                };
                self.publish_event(&watch_match, |checkpoint| {
                    (checkpoint.limiter, checkpoint.resume, checkpoint.watched) = (limiter, resume, watched);
                })?;
            }
            Decision::Disable { suppressed } => {
                let message = format!(
                    "too many matches in {} intervals of {} ms in a row; the watch ended and `notify` is on",
                    rules.strike_limit, rules.min_interval_ms
                );
                let disabled = WatchDisabled { name: self.spec.name.clone(), suppressed, message };
                self.publish_event(&disabled, |checkpoint| {
                    (checkpoint.limiter, checkpoint.resume, checkpoint.watched) = (limiter, resume, watched);
                    checkpoint.promoted = true;
                })?;
            }
            Decision::Drop | Decision::Ended => self.update_checkpoint(|checkpoint| {
                (checkpoint.limiter, checkpoint.resume, checkpoint.watched) = (limiter, resume, watched);
            }),
        }
        Ok(())
    }
}

/// Whether what was found is the last of all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FinalScan {
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
    found: &mut Matches,
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
                scanner.feed(from_wire(stream), from, bytes.get(piece).unwrap_or_default(), found);
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
