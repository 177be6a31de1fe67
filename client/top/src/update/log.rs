//! The log of the current process: opened when the cursor moves to it, read on as it grows.

use super::{Action, Call};
use crate::layout::layout;
use crate::model::log_view::{LogView, MAX_REPLAY_LEN, PAGE_LEN, PAGE_LINES, Source};
use crate::model::{Detail, State};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use toold_proto::process::{Gap, Span};

/// The cursor passes over processes faster than this: their logs are not read.
const OPEN_DELAY_MS: u64 = 80;
/// The delay between two reads of a log that grows.
const READ_DELAY_MS: u64 = 100;
/// The time for which a read waits for new output.
const WAIT_MS: u64 = 30_000;

/// A page of output.
#[derive(Deserialize)]
struct Page {
    output: String,
    from: u64,
    next_cursor: u64,
    #[serde(default)]
    gap: Option<Gap>,
    #[serde(default)]
    spans: Option<Vec<Span>>,
    #[serde(default)]
    closed: bool,
}

/// A page of numbered lines.
#[derive(Deserialize)]
struct LinePage {
    output: String,
    first_line: u64,
    #[serde(default)]
    next_offset: Option<u64>,
}

impl Page {
    fn read(raw: &RawValue) -> Option<(Page, Vec<u8>)> {
        let page: Page = serde_json::from_str(raw.get()).ok()?;
        let bytes = STANDARD.decode(&page.output).ok()?;
        Some((page, bytes))
    }
}

/// Opens the log of the current process, unless it is open.
pub fn sync(state: &mut State, actions: &mut Vec<Action>) {
    let current = state.current().cloned();
    if state.log.as_ref().map(|log| &log.id) == current.as_ref() || state.detail == Detail::Tree && !state.zoomed {
        return;
    }
    let view = current.as_ref().and_then(|id| state.row(id)).map(|row| {
        let pty = row.pty.then_some(row.pty_size).flatten();
        LogView::tail(&row.id, row.cursor, pty)
    });
    let view = view.or_else(|| current.as_deref().map(|id| LogView::tail(id, 0, None)));
    replace(state, view, OPEN_DELAY_MS, actions);
}

/// Opens a log at a line.
pub fn open_at_line(state: &mut State, id: &str, line: u64, actions: &mut Vec<Action>) {
    replace(state, Some(LogView::at_line(id, line)), 0, actions);
}

/// Opens the end of a log that was opened at a line.
pub fn open_tail(state: &mut State, actions: &mut Vec<Action>) {
    let Some(id) = state.log.as_ref().map(|log| log.id.clone()) else { return };
    let (end, pty) = state.row(&id).map_or((0, None), |row| (row.cursor, row.pty.then_some(row.pty_size).flatten()));
    replace(state, Some(LogView::tail(&id, end, pty)), 0, actions);
}

fn replace(state: &mut State, view: Option<LogView>, delay: u64, actions: &mut Vec<Action>) {
    if state.timers.log_pending {
        actions.push(Action::Cancel(Call::Log(state.timers.log_generation)));
    }
    state.timers.log_generation += 1;
    state.timers.log_pending = false;
    state.timers.log_at = view.as_ref().map(|_| state.now_ms + delay);
    state.log = view;
}

/// Reads the next page.
pub fn read_on(state: &mut State, actions: &mut Vec<Action>) {
    state.timers.log_at = None;
    let generation = state.timers.log_generation;
    let Some(log) = &mut state.log else { return };
    match log.source {
        Source::Lines { next: Some(next), .. } if !log.loaded => {
            log.page_pending = true;
            actions.push(Action::Send(Call::Lines(generation), "log", lines_params(&log.id, next)));
        }
        Source::Lines { .. } => {}
        Source::Tail { start, .. } if start > 0 && !log.loaded && log.screen().is_some() => {
            actions.push(Action::Send(Call::Screen(generation), "screen", json!({"id": log.id})));
            state.timers.log_pending = true;
        }
        Source::Tail { end, .. } => {
            let mut params = page_params(&log.id, end, PAGE_LEN.max(MAX_REPLAY_LEN));
            params["wait_ms"] = json!(if log.loaded { WAIT_MS } else { 0 });
            actions.push(Action::Send(Call::Log(generation), "poll", params));
            state.timers.log_pending = true;
        }
    }
}

fn page_params(id: &str, cursor: u64, max_bytes: u64) -> serde_json::Value {
    let fields = ["output", "from", "next_cursor", "gap", "spans", "closed"];
    json!({"id": id, "cursor": cursor, "max_bytes": max_bytes, "encoding": "base64", "spans": true, "fields": fields})
}

fn lines_params(id: &str, offset: u64) -> serde_json::Value {
    json!({"id": id, "offset": offset, "limit": PAGE_LINES})
}

/// Asks for the page before the first line in memory, or after the last, when the view is there.
pub fn page_if_needed(state: &mut State, actions: &mut Vec<Action>) {
    let height = usize::from(layout(state).detail.height);
    let generation = state.timers.log_generation;
    let Some(log) = &mut state.log else { return };
    if log.page_pending || !log.loaded || log.follow {
        return;
    }
    let first = log.first_visible(height);
    let is_last = first + height >= log.len();
    let (call, method, params) = match log.source {
        Source::Tail { start, .. } if first == 0 && start > 0 => {
            let from = start.saturating_sub(PAGE_LEN);
            (Call::Older(generation), "poll", page_params(&log.id, from, start - from))
        }
        Source::Lines { first: known, .. } if first == 0 && known > 0 => {
            let offset = known.saturating_sub(PAGE_LINES);
            let mut params = lines_params(&log.id, offset);
            params["limit"] = json!(known - offset);
            (Call::Lines(generation), "log", params)
        }
        Source::Lines { next: Some(next), .. } if is_last => {
            (Call::Lines(generation), "log", lines_params(&log.id, next))
        }
        Source::Tail { .. } | Source::Lines { .. } => return,
    };
    log.page_pending = true;
    actions.push(Action::Send(call, method, params));
}

/// Takes a page of the current log. `seen`: the number of the view that asked.
pub fn on_page(state: &mut State, call: Call, seen: u64, raw: &RawValue) {
    if seen != state.timers.log_generation {
        return;
    }
    let Some(log) = &mut state.log else { return };
    match call {
        Call::Log(_) => {
            state.timers.log_pending = false;
            let Some((page, bytes)) = Page::read(raw) else { return };
            log.append(
                &bytes,
                page.from.max(page.next_cursor - bytes.len() as u64),
                &page.spans.unwrap_or_default(),
                page.gap,
            );
            log.complete = page.closed && bytes.is_empty();
            // The first page comes at once, and the second waits for more.
            state.timers.log_at = (!log.complete).then_some(state.now_ms + READ_DELAY_MS);
        }
        Call::Older(_) => {
            log.page_pending = false;
            let Some((page, bytes)) = Page::read(raw) else { return };
            log.prepend(&bytes, page.from, &page.spans.unwrap_or_default());
        }
        Call::Lines(_) => {
            log.page_pending = false;
            let Ok(page) = serde_json::from_str::<LinePage>(raw.get()) else { return };
            log.add_lines(&page.output, page.first_line, page.next_offset);
        }
        Call::Screen(_) => {
            state.timers.log_pending = false;
            state.timers.log_at = Some(state.now_ms);
            if let Ok(screen) = serde_json::from_str(raw.get()) {
                log.seed_screen(&screen);
            }
            log.loaded = true;
        }
        // The others are not pages.
        _ => {}
    }
}

/// Goes on after a page that could not be read: the log is gone, or the daemon does not have it.
pub fn on_failed_page(state: &mut State, seen: u64) {
    if seen != state.timers.log_generation {
        return;
    }
    state.timers.log_pending = false;
    if let Some(log) = &mut state.log {
        (log.page_pending, log.complete, log.loaded) = (false, true, true);
    }
}
