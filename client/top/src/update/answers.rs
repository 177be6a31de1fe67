//! The daemon's answers.

use super::{Action, Call, PAST_EVENTS, ask_tree, log, processes};
use crate::model::grep::Hit;
use crate::model::row::{Listing, Row};
use crate::model::{State, TreeView};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use toold_client::text::{escape_control, unix_ms};
use toold_proto::process::Member;
use toold_proto::results::{KillResult, KillStatus};
use toold_proto::{ErrorKind, RpcError};

#[derive(Deserialize)]
struct Info {
    started_at: String,
    events: Journal,
    #[serde(default)]
    sessions: Option<Vec<Session>>,
}

#[derive(Deserialize)]
struct Journal {
    oldest: u64,
    last: u64,
}

#[derive(Deserialize)]
struct Session {
    session_key: String,
    live: bool,
}

#[derive(Deserialize)]
struct Inspected {
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    tree: Vec<Member>,
    #[serde(default)]
    log_files: Vec<String>,
}

/// The answer of a search over all logs.
#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    matches: Vec<FoundLine>,
    #[serde(default)]
    matched_lines: Option<u64>,
    #[serde(default)]
    truncated: bool,
}

#[derive(Deserialize)]
struct FoundLine {
    id: String,
    name: Option<String>,
    line: u64,
    text: String,
}

pub fn on_answer(state: &mut State, call: Call, outcome: Result<Box<RawValue>, RpcError>, actions: &mut Vec<Action>) {
    match call {
        Call::Info => state.timers.info_pending = false,
        Call::List => state.timers.list_pending = false,
        Call::Usage => state.timers.usage_pending = false,
        Call::Tree => state.timers.inspect_pending = false,
        // The others are not repeated by a timer.
        _ => {}
    }
    match outcome {
        Ok(raw) => on_result(state, call, &raw, actions),
        Err(error) => on_error(state, call, &error),
    }
}

fn on_error(state: &mut State, call: Call, error: &RpcError) {
    let is_unknown_field = error.kind() == Some(ErrorKind::InvalidParams) && error.message.starts_with("fields");
    match call {
        Call::List | Call::Usage if is_unknown_field => {
            // A daemon of an earlier version does not have all fields. Both calls may fail before the first is repeated.
            if !std::mem::replace(&mut state.timers.all_fields, true) {
                state.timers.list_at = Some(state.now_ms);
            }
        }
        Call::Log(seen) | Call::Older(seen) | Call::Lines(seen) | Call::Screen(seen) => {
            log::on_failed_page(state, seen)
        }
        Call::Grep(seen) => {
            if let Some(grep) = state.grep.as_mut().filter(|_| seen == state.timers.grep_generation) {
                (grep.pending, grep.failure) = (0, Some(escape_control(&error.message)));
            }
        }
        // A tree that is gone shows as such.
        Call::Tree => state.tree = None,
        Call::List | Call::Usage => {
            state.timers.listed_ms = state.now_ms;
            state.notify(escape_control(&error.message));
        }
        Call::Info | Call::Subscribe | Call::Edit | Call::Kill | Call::Restart | Call::Forget | Call::Submit => {
            state.notify(escape_control(&error.message));
        }
    }
}

fn on_result(state: &mut State, call: Call, raw: &RawValue, actions: &mut Vec<Action>) {
    let now = state.now_ms;
    match call {
        Call::Info => on_info(state, raw, actions),
        Call::Subscribe => {}
        Call::List => on_list(state, raw, actions),
        Call::Usage => on_usage(state, raw),
        Call::Log(seen) | Call::Older(seen) | Call::Lines(seen) | Call::Screen(seen) => {
            log::on_page(state, call, seen, raw);
        }
        Call::Tree => {
            if let Some(seen) = read::<Inspected>(raw) {
                state.tree = Some(TreeView::new(seen.id, seen.tree, state.tree.as_ref(), now));
            }
        }
        Call::Edit => match read::<Inspected>(raw) {
            Some(seen) if seen.log_files.is_empty() => state.notify("it has written nothing"),
            Some(seen) => {
                let name = seen.name.unwrap_or(seen.id);
                actions.push(Action::Edit { name, files: seen.log_files });
            }
            None => {}
        },
        Call::Kill => on_kill(state, raw),
        Call::Restart => {
            let id = read::<Value>(raw).and_then(|process| process["id"].as_str().map(str::to_owned));
            state.wanted = id;
            state.timers.list_at = Some(now);
            state.notify("started again");
        }
        Call::Forget => {
            let forgotten = read::<Value>(raw).and_then(|result| Some(result["forgotten"].as_array()?.len() as u64));
            state.notify(format!("forgot {}", processes(forgotten.unwrap_or(0))));
            state.timers.list_at = Some(now);
        }
        Call::Submit => {
            state.notify("sent");
            state.timers.list_at = Some(now);
        }
        Call::Grep(seen) if seen == state.timers.grep_generation => {
            let Some(grep) = &mut state.grep else { return };
            grep.pending = 0;
            let Some(found) = read::<Found>(raw) else { return };
            let all = found.matched_lines.unwrap_or(0);
            grep.cut = found.truncated || all > found.matches.len() as u64;
            grep.add(found.matches.into_iter().map(|line| Hit {
                name: escape_control(line.name.as_deref().unwrap_or(&line.id)),
                id: line.id,
                line: line.line,
                text: escape_control(line.text.trim_end()),
            }));
        }
        // Of a search that was closed.
        Call::Grep(_) => {}
    }
}

/// Parses a result. One that cannot be read is shown as if it had not come: the next one replaces it.
fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

fn on_info(state: &mut State, raw: &RawValue, actions: &mut Vec<Action>) {
    let is_first = state.timers.info_ms == 0;
    state.timers.info_ms = state.now_ms.max(1);
    let Some(info) = read::<Info>(raw) else { return };
    state.daemon.started_ms = unix_ms(&info.started_at);
    state.daemon.last_event = info.events.last;
    let live = |sessions: Vec<Session>| -> BTreeSet<String> {
        sessions.into_iter().filter(|session| session.live).map(|session| session.session_key).collect()
    };
    state.daemon.live_sessions = info.sessions.map(live);
    if is_first {
        // After a lost connection, from the last event that was seen.
        let past = info.events.last.saturating_sub(PAST_EVENTS).max(info.events.oldest.saturating_sub(1));
        let after = state.last_seq.filter(|seen| *seen <= info.events.last).unwrap_or(past);
        let mut params = json!({"after": after});
        if let Some(session) = &state.session {
            params["session_key"] = json!(session);
        }
        actions.push(Action::Send(Call::Subscribe, "events.subscribe", params));
        state.timers.list_at = Some(state.now_ms);
    }
    state.arrange();
}

fn on_list(state: &mut State, raw: &RawValue, actions: &mut Vec<Action>) {
    let now = state.now_ms;
    let Some(listing) = read::<Listing>(raw) else {
        state.notify("the daemon's list cannot be read: it is of another version");
        return;
    };
    let earlier: HashMap<String, Row> = state.rows.drain(..).map(|row| (row.id.clone(), row)).collect();
    let rows = listing.processes.into_iter().map(|listed| {
        let row = Row::new(listed, now);
        match earlier.get(&row.id) {
            Some(earlier) => row.with_samples_of(earlier, now),
            None => row,
        }
    });
    state.rows = rows.collect();
    state.loaded = true;
    state.timers.listed_ms = now;
    state.marked.retain(|id| state.rows.iter().any(|row| row.id == *id));
    if let Some(wanted) = state.wanted.take_if(|wanted| state.rows.iter().any(|row| row.id == *wanted)) {
        (state.selected, state.pinned) = (Some(wanted), None);
    }
    after_refresh(state);
    ask_tree(state, actions);
}

fn on_usage(state: &mut State, raw: &RawValue) {
    let now = state.now_ms;
    state.timers.listed_ms = now;
    let Some(listing) = read::<Listing>(raw) else { return };
    let mut fresh: HashMap<&str, &crate::model::row::ListedProcess> =
        listing.processes.iter().map(|listed| (listed.id.as_str(), listed)).collect();
    let mut is_stale = false;
    for row in state.rows.iter_mut().filter(|row| !row.has_ended()) {
        match fresh.remove(row.id.as_str()) {
            Some(listed) => row.refresh(listed, now),
            // It ended, or waits for its turn.
            None => is_stale |= row.status == toold_proto::params::Status::Running,
        }
    }
    if is_stale || !fresh.is_empty() {
        state.timers.list_at = state.timers.list_at.or(Some(now));
    }
    after_refresh(state);
}

fn after_refresh(state: &mut State) {
    let size = state.log.as_ref().and_then(|log| state.row(&log.id)).and_then(|row| row.pty_size);
    if let (Some(log), Some(size)) = (&mut state.log, size) {
        log.resize_screen(size);
    }
    // More output after a log that seemed complete: the view was opened before the process started.
    state.arrange();
    super::line_keys::hide_if_secret(state);
}

fn on_kill(state: &mut State, raw: &RawValue) {
    state.timers.list_at = Some(state.now_ms);
    let Some(result) = read::<KillResult>(raw) else { return };
    let left: usize = result.results.iter().map(|killed| killed.survivors.len()).sum();
    state.marked.clear();
    let killed = result.results.len() as u64;
    state.notify(match result.status {
        KillStatus::Killed => format!("killed {}", processes(killed)),
        KillStatus::AlreadyExited => "it had ended already".into(),
        KillStatus::Starting => "it is killed as soon as its start answers".into(),
        KillStatus::Survivors => format!("{} of the tree still run", processes(left as u64)),
    });
}
