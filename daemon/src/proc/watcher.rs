//! The watch of a process: feeds its output to the scanner, and publishes matches that the limiters admit.
//!
//! The position up to which every line is decided is stored with every event, so after a crash no match is published
//! twice and none is lost. Output that was scanned without a match is scanned again.

use super::completion::output_end;
use super::event_sink::RETRY_DELAY;
use super::handle::Proc;
use super::search_pool::{MAX_TURN_BYTES, MAX_TURN_NS, is_inline};
use super::state::{Phase, State};
use crate::clock::mono_ms;
use crate::log::{Filled, Log, from_wire};
use crate::matcher;
use crate::watch::{Decision, InvalidPattern, Matches, Patterns, Scanner};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;
use toold_format::Stream;
use toold_format::log::Counts;
use toold_proto::event::{WatchDisabled, WatchMatch};
use toold_proto::pattern::Pattern;
use toold_proto::process::Span;
use toold_shim::hooks;

/// Maximum number of unscanned bytes at the exit that are scanned before the exit is published.
const MAX_TAIL_BYTES: u64 = 8 * 1024 * 1024;
/// The longest time that an exit waits for the scan of the last output. A match that is found later follows the exit.
const MAX_TAIL_TIME: Duration = Duration::from_secs(1);
/// The most steps of a scan before the exit of a process that a daemon adopts: a third of a second if all are taken.
const MAX_ADOPTED_TAIL_STEPS: u64 = 1 << 26;
/// Bytes without a match after which the position is stored anyway.
const CHECKPOINT_BYTES: u64 = 16 * 1024 * 1024;

/// The watch of one process.
pub struct WatchTask {
    patterns: Mutex<Option<Arc<Patterns>>>,
    /// Held during a turn, so that no task waits for `scan` on a thread that others need.
    turn: Arc<tokio::sync::Mutex<()>>,
    scan: Mutex<Option<Scan>>,
    through: watch::Sender<bool>,
}

/// A scanner and the end of the output that it was fed.
struct Scan {
    scanner: Scanner,
    /// The most steps per byte.
    cost: u64,
    at: u64,
}

/// The result of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanProgress {
    /// There is more to scan now.
    More,
    /// Everything up to this offset is scanned.
    End(u64),
    /// Nothing will be scanned any more.
    Through,
}

impl WatchTask {
    pub fn new(patterns: Option<Arc<Patterns>>) -> WatchTask {
        WatchTask {
            patterns: Mutex::new(patterns),
            turn: Arc::default(),
            scan: Mutex::new(None),
            through: watch::Sender::new(false),
        }
    }

    fn scan(&self) -> MutexGuard<'_, Option<Scan>> {
        self.scan.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn known_patterns(&self) -> Option<Arc<Patterns>> {
        self.patterns.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    fn patterns(&self, wanted: &[Pattern]) -> Result<Arc<Patterns>, InvalidPattern> {
        if let Some(patterns) = self.known_patterns() {
            return Ok(patterns);
        }
        let made = Arc::new(Patterns::new(wanted)?);
        *self.patterns.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(made.clone());
        Ok(made)
    }
}

/// Watches until the program has ended and all its output is scanned.
pub async fn run(proc: Arc<Proc>) {
    let mut state_changes = proc.subscribe();
    loop {
        state_changes.mark_unchanged();
        match proc.run_turn(&proc.state()).await {
            Ok(ScanProgress::Through) => {
                // The last turn may have turned `notify` on.
                let state = proc.published_state();
                if state.has_ended() {
                    proc.publish_due(&state);
                }
                return;
            }
            Ok(ScanProgress::More) => tokio::task::yield_now().await,
            Ok(ScanProgress::End(end)) => {
                proc.notify_past(end);
                let _ = state_changes.changed().await;
            }
            Err(e) => {
                tracing::error!(id = %proc.spec.id, %e, "the watch failed; trying again");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

impl Proc {
    /// Returns true if no more output can match: all of it is scanned, or there is no watch.
    pub fn is_scanned(&self, state: &State) -> bool {
        let checkpoint = self.checkpoint();
        self.watch_task.is_none()
            || checkpoint.scanned
            || checkpoint.limiter.disabled
            || matches!(state.phase, Phase::Failed { .. })
    }

    /// Waits until `is_scanned`.
    pub async fn wait_scanned(&self, state: &State) {
        if let Some(watch_task) = &self.watch_task
            && !self.is_scanned(state)
        {
            let _ = watch_task.through.subscribe().wait_for(|through| *through).await;
        }
    }

    /// At the exit, scans the last output before the exit is published, unless that would take long.
    pub async fn scan_tail(self: &Arc<Self>, state: &State) {
        if !state.has_ended() || self.is_scanned(state) {
            return;
        }
        if self.unscanned_len(state) <= MAX_TAIL_BYTES {
            let scan = async { while let Ok(ScanProgress::More) = self.run_turn(state).await {} };
            // A turn under way goes on; the task of the watch continues after it. Boxed: most processes have no watch.
            let _ = Box::pin(tokio::time::timeout(MAX_TAIL_TIME, scan)).await;
        }
    }

    /// Does the same for a process that ended before this daemon started, and whose watch has no task yet.
    pub fn scan_adopted_tail(&self, state: &State) {
        let Some(watch_task) = self.watch_task.as_ref().filter(|_| state.has_ended() && !self.is_scanned(state)) else {
            return;
        };
        let len = self.unscanned_len(state);
        let cost = watch_task.patterns(&self.spec.watch).map_or(1, |patterns| patterns.cost());
        if len <= MAX_TAIL_BYTES && len.saturating_mul(cost) <= MAX_ADOPTED_TAIL_STEPS {
            while let Ok(ScanProgress::More) = self.scan_turn(state) {}
        }
    }

    fn unscanned_len(&self, state: &State) -> u64 {
        output_end(state).saturating_sub(self.checkpoint().position.scanned_to)
    }

    /// Scans for one turn: here if it is short at worst, else on a thread for searches.
    async fn run_turn(self: &Arc<Self>, state: &State) -> io::Result<ScanProgress> {
        let Some(watch_task) = &self.watch_task else { return Ok(ScanProgress::Through) };
        let turn = watch_task.turn.clone().lock_owned().await;
        if let Some(patterns) = watch_task.known_patterns() {
            let (at, open) = watch_task.scan().as_ref().map_or_else(
                || (self.checkpoint().position.from(), 0),
                |scan| (scan.at, scan.scanner.open_len() as u64),
            );
            if is_inline(state.progress.counts.end.saturating_sub(at) + open, patterns.cost()) {
                return self.scan_turn(state);
            }
        }
        let (proc, state) = (self.clone(), *state);
        let work = move |_| {
            let progress = proc.scan_turn(&state);
            drop(turn);
            progress
        };
        self.sink.searches.turn(work).await?
    }

    /// Scans for one turn.
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
                let patterns = match watch_task.patterns(&self.spec.watch) {
                    Ok(patterns) => patterns,
                    // An earlier version accepted them.
                    Err(bad) => {
                        return self
                            .disable(format!("watch[{}] is refused: {}; the watch ended", bad.index, bad.reason));
                    }
                };
                let position = self.checkpoint().position;
                let mut scanner = Scanner::new(patterns.clone(), position);
                scanner.meter = self.sink.searches.meter();
                Scan { scanner, cost: patterns.cost(), at: position.from() }
            }
        };
        let target = if state.has_ended() { output_end(state) } else { state.progress.counts.end };
        let metered = !matcher::is_unmetered(scan.cost);
        if metered {
            scan.scanner.meter.begin_turn(Arc::default());
        }
        // After an error the scan is dropped: its matches were not published, and the next turn starts at the position
        // of the last event.
        let mut found = Matches::default();
        let reached = self.scan_to(&mut scan, target, state, &mut found)?;
        let last = scan.at >= target && state.has_ended() && !self.checkpoint().limiter.disabled;
        if last {
            // The last unterminated line is decided together with the lines before it.
            scan.scanner.end(&mut found);
        }
        if metered {
            scan.scanner.meter.end_turn();
            if scan.scanner.meter.ended().is_some() {
                hooks::at("watch.slow");
                return self.disable(format!("{}; the watch ended and `notify` is on", self.sink.searches.too_slow()));
            }
        }
        if last {
            self.decide(&scan.scanner, found, FinalScan::Yes)?;
            watch_task.through.send_replace(true);
            return Ok(ScanProgress::Through);
        }
        *place = Some(scan);
        Ok(reached)
    }

    /// Ends the watch for good, also for later daemons, and publishes the reason.
    fn disable(&self, message: String) -> io::Result<ScanProgress> {
        let suppressed = self.checkpoint().limiter.pending;
        let disabled = WatchDisabled { name: self.spec.name.clone(), suppressed, message };
        self.publish_event(&disabled, |checkpoint| {
            checkpoint.limiter.disabled = true;
            checkpoint.limiter.pending = 0;
            checkpoint.notify_enabled = true;
        })?;
        Ok(ScanProgress::More)
    }

    fn scan_to(&self, scan: &mut Scan, target: u64, state: &State, found: &mut Matches) -> io::Result<ScanProgress> {
        let Scan { scanner, cost, at } = scan;
        if *at >= target {
            return Ok(ScanProgress::End(target));
        }
        let log = Log::open(&self.dir, target)?;
        let only = only_stream(&state.progress.counts);
        let stop = at.saturating_add(MAX_TURN_BYTES);
        let mut buffer = self.sink.buffers.take();
        let piece = matcher::piece_len(*cost, buffer.len());
        let buffer = buffer.get_mut(..piece).unwrap_or_default();
        let metered = !matcher::is_unmetered(*cost);
        while *at < target.min(stop) {
            let page = feed(&log, *at, only, buffer, scanner, found)?;
            if metered && scanner.meter.ended().is_some() {
                return Ok(ScanProgress::More);
            }
            if let Some(gap) = page.gap {
                // Bytes dropped before they were scanned are counted, and not again after a crash.
                let position = scanner.position();
                self.update_checkpoint(|checkpoint| {
                    checkpoint.unscanned_bytes += gap.to.saturating_sub(gap.from.max(checkpoint.position.scanned_to));
                    checkpoint.position = position;
                });
            }
            // A page without progress is a gap that did not exist a moment ago.
            *at = if page.next > *at { page.next } else { target };
            let last = *at >= target && state.has_ended();
            if found.matches > 0 && !last {
                self.decide(scanner, found.take(), FinalScan::No)?;
                if self.checkpoint().limiter.disabled {
                    return Ok(ScanProgress::More);
                }
            }
            if metered && scanner.meter.turn_ns() >= MAX_TURN_NS {
                break;
            }
        }
        let scanned_to = scanner.position().scanned_to;
        if scanned_to.saturating_sub(self.checkpoint().position.scanned_to) >= CHECKPOINT_BYTES {
            self.update_checkpoint(|checkpoint| checkpoint.position = scanner.position());
        }
        Ok(if *at < target { ScanProgress::More } else { ScanProgress::End(target) })
    }

    /// Decides matched lines, and stores the position after them.
    fn decide(&self, scanner: &Scanner, found: Matches, last: FinalScan) -> io::Result<()> {
        let (position, scanned) = (scanner.position(), last == FinalScan::Yes);
        let (lines, now, rules) = (found.matches, mono_ms(), &self.sink.watch_gate.limiter);
        let mut limiter = self.checkpoint().limiter;
        if lines == 0 {
            if scanned {
                self.update_checkpoint(|checkpoint| checkpoint.set_scanned(position, true));
            }
            return Ok(());
        }
        hooks::at("watch.found");
        if limiter.would_emit(rules, now) {
            let refused = || {
                self.update_checkpoint(|checkpoint| {
                    checkpoint.limiter.refused(lines);
                    checkpoint.set_scanned(position, scanned);
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
                    checkpoint.limiter = limiter;
                    checkpoint.set_scanned(position, scanned);
                })?;
            }
            Decision::Disable { suppressed } => {
                let message = format!(
                    "too many matches in {} intervals of {} ms in a row; the watch ended and `notify` is on",
                    rules.strike_limit, rules.min_interval_ms
                );
                let disabled = WatchDisabled { name: self.spec.name.clone(), suppressed, message };
                self.publish_event(&disabled, |checkpoint| {
                    checkpoint.limiter = limiter;
                    checkpoint.set_scanned(position, scanned);
                    checkpoint.notify_enabled = true;
                })?;
            }
            Decision::Drop | Decision::Ended => self.update_checkpoint(|checkpoint| {
                checkpoint.limiter = limiter;
                checkpoint.set_scanned(position, scanned);
            }),
        }
        Ok(())
    }
}

/// Marks the last decision of a watch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FinalScan {
    Yes,
    No,
}

/// Feeds a scanner with the log from `at` on, as much as fits into the buffer, each stream separately.
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

/// Returns the only stream that wrote so far, if there is one: then the index need not be read.
pub fn only_stream(counts: &Counts) -> Option<Stream> {
    let (out, err) = (counts.out_newlines > 0 || counts.out_open, counts.err_newlines > 0 || counts.err_open);
    match (out, err) {
        (_, false) => Some(Stream::Stdout),
        (false, true) => Some(Stream::Stderr),
        (true, true) => None,
    }
}
