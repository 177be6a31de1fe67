//! Tests of the decisions: keys, answers, events, timers and the mouse, without a terminal and without a daemon.

use super::*;
use crate::model::arrangement::{ListLine, Sort};
use crate::model::{Confirm, Mode, Pane};
use ratatui::crossterm::event::{KeyCode, KeyModifiers, MouseButton, MouseEventKind};

const NOW: u64 = 1_794_799_740_000;

fn raw(value: Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(&value).expect("a value")
}

pub fn listed(id: u64, changes: Value) -> Value {
    let mut process = json!({
        "id": format!("proc_{id:012x}"), "name": format!("p{id}"), "command": "make", "status": "running", "pty": false,
        "stdin": "pipe", "started_at": "2026-11-16T03:00:00.000Z", "cursor": 10, "preview": "last\n",
        "usage": {"processes": 1, "cpu_ms": 0, "rss_bytes": 1024},
    });
    process.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
    process
}

fn ended(code: i32) -> Value {
    json!({"status": "exited", "reason": "exited", "exit_code": code, "exited_at": "2026-11-16T03:28:50.000Z", "usage": null})
}

/// A state that has received this list.
fn state(processes: Vec<Value>) -> State {
    let mut state = State::new(80, 24, NOW);
    update(&mut state, Input::Connected);
    answer(
        &mut state,
        Call::Info,
        json!({"started_at": "2026-11-16T01:00:00.000Z", "events": {"oldest": 1, "last": 30}}),
    );
    answer(&mut state, Call::List, json!({"processes": processes}));
    state
}

fn answer(state: &mut State, call: Call, value: Value) -> Vec<Action> {
    update(state, Input::Answer(call, Ok(raw(value))))
}

fn press(state: &mut State, keys: &str) -> Vec<Action> {
    keys.chars().flat_map(|c| key(state, KeyCode::Char(c))).collect()
}

fn key(state: &mut State, code: KeyCode) -> Vec<Action> {
    update(state, Input::Key(code.into()))
}

fn ids(state: &State) -> Vec<String> {
    state.shown.iter().filter_map(ListLine::id).map(|id| id.trim_start_matches("proc_0000000000").to_owned()).collect()
}

#[test]
fn connecting_asks_for_the_daemon_then_its_events_then_the_list() {
    let mut state = State::new(80, 24, NOW);
    assert_eq!(update(&mut state, Input::Connected), [Action::Send(Call::Info, "daemon.info", json!({}))]);
    let info = json!({"started_at": "2026-11-16T01:00:00.000Z", "events": {"oldest": 1, "last": 30}});
    let sent = answer(&mut state, Call::Info, info.clone());
    let Action::Send(Call::Subscribe, "events.subscribe", params) = &sent[0] else { panic!("{sent:?}") };
    assert_eq!(params, &json!({"after": 10}));
    assert!(matches!(&sent[1], Action::Send(Call::List, "list", params) if params["usage"] == true), "{sent:?}");
    // After a lost connection the events go on where they stopped.
    update(&mut state, Input::Event(raw(json!({"seq": 31, "at": "x", "type": "started", "id": null}))));
    update(&mut state, Input::Disconnected);
    assert_eq!(state.link, Reachability::Lost { since_ms: NOW });
    assert_eq!(deadline(&state), Some(NOW + 1000), "the time since then is shown");
    update(&mut state, Input::Connected);
    let later = json!({"started_at": "2026-11-16T01:00:00.000Z", "events": {"oldest": 1, "last": 40}});
    let sent = answer(&mut state, Call::Info, later);
    assert_eq!(sent[0], Action::Send(Call::Subscribe, "events.subscribe", json!({"after": 31})));
}

#[test]
fn what_asks_is_first_then_what_runs_by_cpu_then_what_ended() {
    let cpu = |ms: u64| json!({"usage": {"processes": 1, "cpu_ms": ms, "rss_bytes": 1}});
    let state = state(vec![
        listed(1, ended(0)),
        listed(2, cpu(1000)),
        listed(3, json!({"needs_input": {"since": "2026-11-16T03:28:50.000Z", "prompt": "Go? ", "echo": true}})),
        listed(4, cpu(900_000)),
        listed(
            5,
            json!({"status": "exited", "reason": "exited", "exit_code": 1, "exited_at": "2026-11-16T01:00:00.000Z", "usage": null}),
        ),
    ]);
    assert_eq!(ids(&state), ["03", "04", "02", "01"], "and what ended long ago is left out");
}

#[test]
fn a_list_is_asked_once_a_second_only_while_something_runs_and_costs_one_percent_at_most() {
    let mut state = state(vec![listed(1, json!({}))]);
    state.timers.log_at = None;
    assert_eq!(deadline(&state), Some(NOW + 1000));
    state.now_ms = NOW + 999;
    assert_eq!(update(&mut state, Input::Tick), []);
    state.now_ms = NOW + 1000;
    let sent = update(&mut state, Input::Tick);
    assert!(
        matches!(&sent[..], [Action::Send(Call::Usage, "list", params)] if params["status"] == "running"),
        "{sent:?}"
    );
    // An answer that cost 30 ms of CPU is followed by the next after 3.9 s.
    answer(&mut state, Call::Usage, json!({"processes": [listed(1, json!({}))]}));
    state.timers.cost_us = 30_000;
    state.now_ms += 3899;
    assert_eq!(update(&mut state, Input::Tick), []);
    state.now_ms += 1;
    assert_eq!(update(&mut state, Input::Tick).len(), 1);
    answer(&mut state, Call::List, json!({"processes": [listed(1, ended(0))]}));
    answer(&mut state, Call::Usage, json!({"processes": []}));
    state.now_ms += 600_000;
    assert_eq!(update(&mut state, Input::Tick), [], "nothing runs");
}

#[test]
fn events_that_come_together_cause_one_list() {
    let mut state = state(vec![]);
    let event = |seq: u64| {
        Input::Event(raw(
            json!({"seq": seq, "at": "2026-11-16T03:28:50.000Z", "type": "exited", "name": "b", "exit_code": 2}),
        ))
    };
    for seq in 31..40 {
        assert_eq!(update(&mut state, event(seq)), []);
    }
    assert_eq!(deadline(&state), Some(NOW + EVENT_DELAY_MS));
    state.now_ms += EVENT_DELAY_MS;
    assert_eq!(update(&mut state, Input::Tick).len(), 1);
    assert_eq!(update(&mut state, Input::Tick), []);
    assert_eq!((state.events.len(), state.events[0].text.as_str()), (9, "b exit 2"));
}

#[test]
fn k_asks_once_with_the_size_of_the_tree_and_kk_is_sigkill() {
    let mut state = state(vec![listed(1, json!({"usage": {"processes": 3, "cpu_ms": 0, "rss_bytes": 1}}))]);
    let all = json!(["proc_000000000001"]);
    assert_eq!(press(&mut state, "K"), []);
    let Mode::Confirm(Confirm::Kill { text, .. }) = &state.mode else { panic!("{:?}", state.mode) };
    assert_eq!(text, "kill p1 and its tree of 3 processes? y yes  K SIGKILL  esc no");
    assert_eq!(key(&mut state, KeyCode::Esc), []);
    assert_eq!(press(&mut state, "Ky"), [Action::Send(Call::Kill, "kill", json!({"ids": all}))]);
    let params = json!({"ids": all, "signal": "SIGKILL", "grace_ms": 0});
    assert_eq!(press(&mut state, "KK"), [Action::Send(Call::Kill, "kill", params)]);
    assert_eq!(state.mode, Mode::Normal);
}

#[test]
fn marks_are_killed_rerun_and_forgotten_together() {
    let mut state = state(vec![listed(1, ended(1)), listed(2, ended(2)), listed(3, ended(3))]);
    assert_eq!(ids(&state).len(), 3);
    press(&mut state, "  ");
    let marked: Vec<String> = state.marked.iter().cloned().collect();
    assert_eq!(marked.len(), 2);
    let again = press(&mut state, "R");
    let expected = |id: &String| Action::Restart { id: id.clone(), with_env: true };
    let mut expected: Vec<Action> = marked.iter().map(expected).collect();
    expected.retain(|action| !again.contains(action));
    assert!(again.len() == 2 && expected.is_empty(), "{again:?}");
    press(&mut state, "k ");
    let forgotten = press(&mut state, "Fy");
    assert!(matches!(&forgotten[..], [Action::Send(Call::Forget, "forget", _)]), "{forgotten:?}");
    assert!(state.marked.is_empty());
}

#[test]
fn a_running_process_is_started_again_only_after_a_question() {
    let mut state = state(vec![listed(1, json!({}))]);
    assert_eq!(press(&mut state, "R"), []);
    let restart = Action::Restart { id: "proc_000000000001".into(), with_env: false };
    assert_eq!(press(&mut state, "y"), [restart]);
    // The new run is selected as soon as it is listed.
    answer(&mut state, Call::Restart, json!({"id": "proc_000000000002"}));
    answer(&mut state, Call::List, json!({"processes": [listed(2, json!({})), listed(1, ended(0))]}));
    assert_eq!(state.selected.as_deref(), Some("proc_000000000002"));
}

#[test]
fn an_answer_is_titled_by_its_prompt_and_a_hidden_one_is_secret() {
    let asks = |prompt: &str, echo: bool| json!({"needs_input": {"since": "2026-11-16T03:28:50.000Z", "prompt": prompt, "echo": echo}});
    let mut state = state(vec![listed(1, asks("Overwrite? [y/N] ", true))]);
    press(&mut state, "iyes");
    assert!(
        matches!(&state.mode, Mode::Answer { title, hidden: false, .. } if title == "Overwrite? [y/N]"),
        "{:?}",
        state.mode
    );
    let sent = key(&mut state, KeyCode::Enter);
    assert_eq!(sent, [Action::Send(Call::Submit, "submit", json!({"id": "proc_000000000001", "data": "yes"}))]);
    // The next question turns the echo off while the line is open.
    press(&mut state, "ihun");
    answer(&mut state, Call::Usage, json!({"processes": [listed(1, asks("Password: ", false))]}));
    assert!(
        matches!(&state.mode, Mode::Answer { title, hidden: true, .. } if title == "Password:"),
        "{:?}",
        state.mode
    );
    answer(&mut state, Call::Usage, json!({"processes": [listed(1, json!({}))]}));
    press(&mut state, "ter2");
    let sent = key(&mut state, KeyCode::Enter);
    let params = json!({"id": "proc_000000000001", "data": "hunter2", "secret": true});
    assert_eq!(sent, [Action::Send(Call::Submit, "submit", params)]);
    assert!(!format!("{:?}", state.notice).contains("hunter2"));
    press(&mut state, "ix");
    assert_eq!((key(&mut state, KeyCode::Esc), &state.mode), (vec![], &Mode::Normal), "esc cancels");
}

#[test]
fn a_filter_narrows_as_it_is_typed_and_esc_removes_it() {
    let mut state = state(vec![
        listed(1, json!({"name": "web"})),
        listed(2, json!({"name": "db", "session_key": "Webster"})),
        listed(3, json!({})),
    ]);
    press(&mut state, "/we");
    assert_eq!(ids(&state), ["02", "01"], "names and owners, in any case");
    key(&mut state, KeyCode::Enter);
    assert_eq!((ids(&state).len(), state.filter.as_str()), (2, "we"));
    key(&mut state, KeyCode::Esc);
    assert_eq!(ids(&state).len(), 3);
}

#[test]
fn by_owner_there_is_one_heading_per_session_and_one_without_a_client_is_gone() {
    let mut state = state(vec![
        listed(1, json!({"session_key": "a"})),
        listed(2, json!({"session_key": "b"})),
        listed(3, json!({"session_key": "a"})),
        listed(4, json!({"started_by": {"client": "nvim", "pid": 1, "uid": 0}})),
    ]);
    press(&mut state, "o");
    let sessions =
        json!([{"session_key": "a", "live": true, "running": 2}, {"session_key": "b", "live": false, "running": 1}]);
    let info =
        json!({"started_at": "2026-11-16T01:00:00.000Z", "events": {"oldest": 1, "last": 30}, "sessions": sessions});
    answer(&mut state, Call::Info, info);
    let headings: Vec<(String, usize, bool)> = state
        .shown
        .iter()
        .filter_map(|line| match line {
            ListLine::Owner { name, count, gone } => Some((name.clone(), *count, *gone)),
            ListLine::Process(_) => None,
        })
        .collect();
    assert_eq!(headings, [("a".into(), 2, false), ("b".into(), 1, true), ("nvim".into(), 1, false)]);
    let first = state.selected.clone();
    press(&mut state, "jjjjjj");
    assert_ne!(state.selected, first, "the cursor passes over headings");
    press(&mut state, "sss");
    assert_eq!(state.sort, Sort::Name);
}

#[test]
fn the_log_of_the_cursor_is_read_on_and_the_one_before_is_cancelled() {
    let mut state = state(vec![listed(1, json!({})), listed(2, json!({}))]);
    let selected = state.selected.clone().expect("a process");
    state.now_ms += 100;
    let sent = update(&mut state, Input::Tick);
    assert!(
        matches!(&sent[..], [Action::Send(Call::Log(1), "poll", params)] if params["id"] == json!(selected) && params["wait_ms"] == 0),
        "{sent:?}"
    );
    answer(
        &mut state,
        Call::Log(1),
        json!({"output": "aGVsbG8K", "from": 0, "next_cursor": 6, "spans": [], "closed": false}),
    );
    assert_eq!(state.log.as_ref().and_then(|log| log.line(0)).map(|line| line.text).as_deref(), Some("hello"));
    state.now_ms += 100;
    let sent = update(&mut state, Input::Tick);
    assert!(
        matches!(&sent[..], [Action::Send(Call::Log(1), "poll", params)] if params["cursor"] == 6 && params["wait_ms"] == 30_000),
        "{sent:?}"
    );
    assert_eq!(press(&mut state, "j"), [Action::Cancel(Call::Log(1))]);
    answer(&mut state, Call::Log(1), json!({"output": "b2xkCg==", "from": 6, "next_cursor": 10, "closed": false}));
    assert_eq!(state.log.as_ref().map(|log| log.len()), Some(0), "the answer to the old view is dropped");
}

#[test]
fn a_search_over_all_logs_opens_the_line() {
    let mut state = state(vec![listed(1, json!({}))]);
    press(&mut state, "gerror");
    let sent = key(&mut state, KeyCode::Enter);
    assert_eq!(sent, [Action::Send(Call::Grep(1), "log", json!({"grep": "error", "limit": 2000}))]);
    let matches = json!([{"id": "proc_0000000000ff", "name": "old", "line": 700, "text": "error: x\n"}]);
    answer(
        &mut state,
        Call::Grep(1),
        json!({"output": "", "matches": matches, "matched_lines": 1, "truncated": false}),
    );
    let sent = key(&mut state, KeyCode::Enter);
    assert!(state.zoomed && state.log.as_ref().is_some_and(|log| log.id == "proc_0000000000ff"));
    let lines = sent.iter().find_map(|action| match action {
        Action::Send(Call::Lines(_), "log", params) => Some(params["offset"].clone()),
        _ => None,
    });
    assert_eq!(lines, Some(json!(575)), "{sent:?}");
    key(&mut state, KeyCode::Esc);
    assert!(state.grep.is_some(), "back to the results");
    key(&mut state, KeyCode::Esc);
    assert!(state.grep.is_none() && state.log.as_ref().is_some_and(|log| log.id == "proc_000000000001"));
}

#[test]
fn an_older_daemon_is_asked_without_fields() {
    let mut state = State::new(80, 24, NOW);
    update(&mut state, Input::Connected);
    answer(
        &mut state,
        Call::Info,
        json!({"started_at": "2026-11-16T01:00:00.000Z", "events": {"oldest": 1, "last": 0}}),
    );
    let error = serde_json::from_value(
        json!({"code": -32602, "message": "fields: unknown", "data": {"kind": "invalid_params"}}),
    )
    .expect("an error");
    let sent = update(&mut state, Input::Answer(Call::List, Err(error)));
    assert!(
        matches!(&sent[..], [Action::Send(Call::List, "list", params)] if params.get("fields").is_none()),
        "{sent:?}"
    );
}

#[test]
fn the_mouse_selects_scrolls_and_moves_the_focus() {
    let mut state = state((1..=30).map(|id| listed(id, json!({}))).collect());
    let mouse = |kind, row| Input::Mouse(MouseEvent { kind, column: 5, row, modifiers: KeyModifiers::NONE });
    update(&mut state, mouse(MouseEventKind::Down(MouseButton::Left), 4));
    assert_eq!(state.cursor_line(), Some(2));
    update(&mut state, mouse(MouseEventKind::ScrollDown, 4));
    assert_eq!(state.cursor_line(), Some(5));
    update(&mut state, mouse(MouseEventKind::Down(MouseButton::Left), 18));
    assert_eq!(state.pane, Pane::Log);
    key(&mut state, KeyCode::Tab);
    assert_eq!(state.pane, Pane::Events);
    key(&mut state, KeyCode::Tab);
    assert_eq!(state.pane, Pane::List);
}

#[test]
fn attach_needs_a_terminal_and_q_quits() {
    let mut state = state(vec![listed(1, json!({}))]);
    assert_eq!(press(&mut state, "a"), []);
    assert!(state.notice.is_some());
    answer(
        &mut state,
        Call::List,
        json!({"processes": [listed(1, json!({"pty": true, "pty_size": {"rows": 24, "cols": 80}}))]}),
    );
    assert_eq!(press(&mut state, "a"), [Action::Attach("proc_000000000001".into())]);
    assert_eq!(press(&mut state, "y"), [Action::Copy("proc_000000000001".into())]);
    assert_eq!(press(&mut state, "?q"), [], "a key closes the help");
    assert_eq!(press(&mut state, "q"), [Action::Quit]);
}
