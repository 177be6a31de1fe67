//! The events that an agent has not seen yet: pulled for the one consumer of its session, a short phrase each, and
//! acknowledged by the carrier once it has written them. The carriers are `toolctl mcp` and `toolctl hook`.

mod delivery_lock;
mod phrase;

pub use crate::render::time::unix_ms;
pub use delivery_lock::DeliveryLock;

use crate::blocking::{CallError, Client, parse};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use toold_proto::api;
use toold_proto::event::{EventBody, EventType};
use toold_proto::params::{EventsAckParams, EventsNextParams};

/// The most events in one pull. More wait for the next one.
const PULL_LIMIT: u64 = 50;
/// The start of the name of each session's consumer.
pub const CONSUMER_PREFIX: &str = "agent:";
/// The longest name of a consumer, in characters.
const MAX_CONSUMER_CHARS: usize = 128;

/// The events that concern an agent. `started` is not one: it started the process itself.
pub const AGENT_EVENTS: &[EventType] = &[
    EventType::Exited,
    EventType::Completion,
    EventType::NeedsInput,
    EventType::WatchMatch,
    EventType::WatchDisabled,
    EventType::RestartGaveUp,
    EventType::StageReady,
    EventType::ApprovalRequested,
    EventType::ApprovalDecided,
];

/// The subject of an event, by which a carrier leaves out what it states itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A process ended.
    Exit,
    /// A process waits for input.
    Question,
    /// A person is asked, or has decided.
    Approval,
    /// Anything else.
    Other,
}

/// One event for an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEvent {
    pub seq: u64,
    /// The process. None: the event is about none.
    pub id: Option<String>,
    pub subject: Subject,
    pub body: EventBody,
    /// RFC 3339.
    pub at: String,
}

impl AgentEvent {
    /// Returns the phrase for an agent: `build exited 2 12s ago "error: x"`.
    pub fn phrase(&self, now_ms: u64) -> String {
        phrase::phrase(self, now_ms)
    }
}

/// The unseen events of a session, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unseen {
    pub events: Vec<AgentEvent>,
    /// The number to acknowledge once they are written. None: nothing new was read.
    pub last_seq: Option<u64>,
    /// Processes that have ended and whose completion, which is the better event, is not published yet.
    pub ending: Vec<String>,
    /// Events that the journal dropped before this consumer saw them.
    pub has_gap: bool,
}

impl Unseen {
    /// Returns the phrases in one line, ` · ` between them. None: there are none.
    pub fn line(&self, now_ms: u64) -> Option<String> {
        let gap = self.has_gap.then(|| "earlier events were dropped, list the processes".to_owned());
        let phrases: Vec<String> =
            gap.into_iter().chain(self.events.iter().map(|event| event.phrase(now_ms))).collect();
        (!phrases.is_empty()).then(|| phrases.join(" · "))
    }
}

/// Returns the name of the one consumer that all carriers of a session share.
pub fn consumer_name(session: &str) -> String {
    let plain: String = session.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    let name = format!("{CONSUMER_PREFIX}{plain}");
    if name.chars().count() <= MAX_CONSUMER_CHARS {
        return name;
    }
    // Two long keys that begin alike stay apart.
    let mark = format!("~{:016x}", fnv1a(session.as_bytes()));
    let kept: String = name.chars().take(MAX_CONSUMER_CHARS - mark.len()).collect();
    kept + &mark
}

/// Hashes bytes. The value is the same in every version and on every machine.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Reads the events that no carrier of the session has acknowledged. Waits for nothing.
pub fn pull(client: &mut Client, session: &str) -> Result<Unseen, CallError> {
    let params = EventsNextParams {
        consumer: consumer_name(session),
        types: Some(AGENT_EVENTS.to_vec()),
        session_key: Some(session.to_owned()),
        limit: Some(PULL_LIMIT),
        ..Default::default()
    };
    let raw = client.call_raw(<api::EventsNext as toold_proto::api::Method>::NAME, &params)?;
    let pulled = parse::<api::EventsNext>(&raw)?;
    let objects: Vec<Map<String, Value>> =
        pulled.events.iter().filter_map(|event| serde_json::from_str(event.0.get()).ok()).collect();
    let last_seq = objects.iter().filter_map(|object| object.get("seq")?.as_u64()).max();
    let read: Vec<AgentEvent> = objects.iter().filter_map(read_event).collect();
    // Only these need a look at the processes.
    let needs_state = read.iter().any(|e| matches!(e.body, EventBody::Exited(_) | EventBody::NeedsInput(_)));
    let known = if needs_state { process_facts(client, session)? } else { BTreeMap::new() };
    // A new consumer begins with the oldest event that is kept, so it has missed none.
    let has_gap = pulled.missing.is_some() && !pulled.created && !read.is_empty();
    let ended: Vec<String> = read.iter().filter(|e| e.subject == Subject::Exit).filter_map(|e| e.id.clone()).collect();
    let mut events = newsworthy(read, &known);
    for event in events.iter_mut().filter(|event| event.subject == Subject::Exit) {
        // An end without a daemon is published later than it happened.
        let facts = event.id.as_ref().and_then(|id| known.get(id));
        event.at = facts.and_then(|facts| facts.exited_at.clone()).unwrap_or_else(|| std::mem::take(&mut event.at));
    }
    let is_reported = |id: &String| events.iter().any(|e| e.subject == Subject::Exit && e.id.as_ref() == Some(id));
    let ending = ended.into_iter().filter(|id| !is_reported(id)).collect();
    Ok(Unseen { events, last_seq, ending, has_gap })
}

/// Acknowledges all events up to `seq` for the session.
pub fn acknowledge(client: &mut Client, session: &str, seq: u64) -> Result<(), CallError> {
    client.call::<api::EventsAck>(&EventsAckParams { consumer: consumer_name(session), seq }).map(drop)
}

/// Records that the agent knows of the ends of these processes. One that runs, or is not known, is left out.
pub fn acknowledge_exits(client: &mut Client, session: &str, ids: &[String]) -> Result<(), CallError> {
    for id in ids {
        // A wait that returns an exit acknowledges it. Each has a call of its own: one unknown id fails the whole call.
        let params = json!({"id": id, "timeout_ms": 1, "consumer": consumer_name(session), "fields": ["id"]});
        match client.call_raw("wait", &params) {
            Ok(_) | Err(CallError::Rpc(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The facts about a process that decide whether one of its events is news.
#[derive(Debug, Deserialize)]
struct ProcessFacts {
    id: String,
    #[serde(default)]
    notify: bool,
    /// An object, or true from a daemon of an earlier version.
    #[serde(default)]
    needs_input: Value,
    #[serde(default)]
    exited_at: Option<String>,
}

impl ProcessFacts {
    fn is_waiting_for_input(&self) -> bool {
        self.needs_input.is_object() || self.needs_input == Value::Bool(true)
    }
}

fn process_facts(client: &mut Client, session: &str) -> Result<BTreeMap<String, ProcessFacts>, CallError> {
    #[derive(Deserialize)]
    struct Listed {
        processes: Vec<ProcessFacts>,
    }
    let params =
        json!({"session_key": session, "limit": 10_000, "fields": ["id", "notify", "needs_input", "exited_at"]});
    let raw = client.call_raw("list", &params)?;
    let listed: Listed = serde_json::from_str(raw.get())
        .map_err(|e| CallError::Protocol(format!("cannot read the result of list: {e}")))?;
    Ok(listed.processes.into_iter().map(|facts| (facts.id.clone(), facts)).collect())
}

fn read_event(object: &Map<String, Value>) -> Option<AgentEvent> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
    let body = EventBody::read(object)?;
    let subject = match &body {
        EventBody::Exited(_) | EventBody::Completion(_) => Subject::Exit,
        EventBody::NeedsInput(_) => Subject::Question,
        EventBody::ApprovalRequested(_) | EventBody::ApprovalDecided(_) => Subject::Approval,
        // Only the types that were asked for arrive.
        _ => Subject::Other,
    };
    let seq = object.get("seq")?.as_u64()?;
    Some(AgentEvent { seq, id: text("id"), subject, body, at: text("at").unwrap_or_default() })
}

/// Leaves out what another event reports better, and questions that have been answered.
fn newsworthy(events: Vec<AgentEvent>, known: &BTreeMap<String, ProcessFacts>) -> Vec<AgentEvent> {
    let completed: BTreeSet<&str> = events
        .iter()
        .filter(|event| matches!(event.body, EventBody::Completion(_)))
        .filter_map(|event| event.id.as_deref())
        .collect();
    let is_last_question = |at: usize, event: &AgentEvent| {
        !events[at + 1..]
            .iter()
            .any(|later| later.id == event.id && matches!(later.subject, Subject::Question | Subject::Exit))
    };
    let is_news = |at: usize, event: &AgentEvent| {
        let facts = event.id.as_ref().and_then(|id| known.get(id));
        match &event.body {
            // With `notify` the completion follows, and has the last line too.
            EventBody::Exited(_) => {
                let is_completed = event.id.as_deref().is_some_and(|id| completed.contains(id));
                !is_completed && !facts.is_some_and(|facts| facts.notify)
            }
            EventBody::Completion(completion) => !completion.cancelled,
            // The decision is the news.
            EventBody::ApprovalRequested(asked) => !events[at + 1..].iter().any(|later| {
                matches!(&later.body, EventBody::ApprovalDecided(decided) if decided.approval == asked.approval)
            }),
            EventBody::NeedsInput(_) => {
                is_last_question(at, event) && facts.is_some_and(ProcessFacts::is_waiting_for_input)
            }
            // Each of the others stands for itself.
            _ => true,
        }
    };
    let news: Vec<bool> = events.iter().enumerate().map(|(at, event)| is_news(at, event)).collect();
    events.into_iter().zip(news).filter_map(|(event, news)| news.then_some(event)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeDaemon;

    fn event(seq: u64, kind: &str, id: &str, fields: Value) -> Value {
        let mut object = json!({"seq": seq, "at": "2026-11-16T03:28:50.123Z", "type": kind, "id": id, "session_key": "s", "task_id": null});
        for (key, value) in fields.as_object().expect("fields are an object") {
            object[key] = value.clone();
        }
        object
    }

    fn exit_fields(name: &str, code: i32) -> Value {
        json!({"name": name, "command": "x", "exit_code": code, "signal": null, "reason": "exited", "killed_by": null,
               "duration_ms": 5300, "status": "exited", "bytes": 3, "lines": 1})
    }

    fn completion_fields(name: &str, code: i32, output: &str) -> Value {
        let mut fields = exit_fields(name, code);
        for (key, value) in [("output", json!(output)), ("output_path", Value::Null), ("sha256", Value::Null)] {
            fields[key] = value;
        }
        fields["dropped_bytes"] = json!(0);
        fields["unstored_bytes"] = json!(0);
        fields
    }

    fn question_fields(name: &str, prompt: &str) -> Value {
        json!({"name": name, "pid": 7, "echo": true, "prompt": prompt, "cursor": 9})
    }

    /// Answers `events.next` with these events and `list` with these processes.
    fn pulled(events: Vec<Value>, processes: Value) -> (Unseen, Vec<(String, Value)>) {
        let fake = FakeDaemon::answering(move |params| match params.get("consumer") {
            Some(consumer) => {
                json!({"consumer": consumer, "events": events, "position": 0, "last": 99, "missing": null,
                "created": true, "forgotten": null, "damaged": null})
            }
            None => json!({"processes": processes, "total": 1}),
        });
        let mut client = Client::connect(&fake.path()).expect("the fake listens");
        let unseen = pull(&mut client, "s").expect("the fake answers");
        (unseen, fake.requests())
    }

    #[test]
    fn the_age_of_an_end_that_no_daemon_saw_is_counted_from_the_end() {
        let id = "proc_000000000001";
        let events = vec![event(1, "exited", id, exit_fields("build", 2))];
        let facts = json!([{"id": id, "notify": false, "needs_input": null, "exited_at": "2026-11-16T03:28:20.123Z"}]);
        let (unseen, _) = pulled(events, facts);
        let published = unix_ms("2026-11-16T03:28:50.123Z").expect("a time");
        assert_eq!(unseen.events[0].phrase(published), "build exited 2 30s ago");
    }

    #[test]
    fn each_event_is_one_phrase_and_an_end_is_reported_once() {
        let (unseen, requests) = pulled(
            vec![
                event(1, "needs_input", "proc_000000000001", question_fields("build", "Go on? ")),
                event(2, "exited", "proc_000000000001", exit_fields("build", 2)),
                event(3, "completion", "proc_000000000001", completion_fields("build", 2, "a\nerror: x\n")),
                event(4, "exited", "proc_000000000002", exit_fields("shell", 0)),
                event(5, "exited", "proc_000000000003", exit_fields("later", 0)),
                event(6, "needs_input", "proc_000000000004", question_fields("setup", "Overwrite? [y/N]")),
                event(7, "needs_input", "proc_000000000005", question_fields("answered", "Name: ")),
            ],
            json!([
                {"id": "proc_000000000002", "notify": false, "needs_input": null},
                {"id": "proc_000000000003", "notify": true, "needs_input": null},
                {"id": "proc_000000000004", "notify": true, "needs_input": {"since": "x", "prompt": "y", "echo": true}},
                {"id": "proc_000000000005", "notify": true, "needs_input": null},
            ]),
        );
        let at = crate::render::time::unix_ms("2026-11-16T03:28:50.123Z").expect("a time");
        assert_eq!(
            unseen.line(at + 12_000).as_deref(),
            Some(
                "build exited 2 12s ago \"error: x\" · shell exited 0 12s ago · setup asks \"Overwrite? [y/N]\" 12s ago"
            )
        );
        assert_eq!((unseen.last_seq, unseen.has_gap), (Some(7), false));
        assert_eq!(requests[0].0, "events.next");
        assert_eq!(requests[0].1["consumer"], "agent:s");
        assert_eq!(requests[0].1["session_key"], "s");
    }

    #[test]
    fn nothing_new_is_no_line_and_needs_no_look_at_processes() {
        let (unseen, requests) = pulled(vec![], json!([]));
        assert_eq!((unseen.line(0), unseen.last_seq), (None, None));
        assert_eq!(requests.len(), 1);
    }

    #[test]
    fn a_consumer_has_a_name_that_the_daemon_takes_and_long_keys_stay_apart() {
        assert_eq!(consumer_name("claude:1"), "agent:claude:1");
        assert_eq!(consumer_name("a\nb"), "agent:a_b");
        let (one, two) = (consumer_name(&"x".repeat(300)), consumer_name(&"x".repeat(301)));
        assert_eq!((one.chars().count(), two.chars().count()), (128, 128));
        assert_ne!(one, two);
    }
}
