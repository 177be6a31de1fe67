//! Decides whether a damage had consequences beyond the damaged part, or was not reported. Pure.

use crate::snapshot::Snapshot;
use serde_json::Value;

/// The state before the damage, the damaged file, and the process that was started after it.
pub struct Case<'a> {
    pub truth: &'a Snapshot,
    pub file: &'a str,
    pub new: &'a str,
}

impl Case<'_> {
    /// The process to which the damaged file belongs.
    fn process(&self) -> Option<&str> {
        self.file.strip_prefix("procs/")?.split('/').next()
    }

    fn is_segment(&self) -> bool {
        self.file.starts_with("events/") && self.file.ends_with(".log")
    }

    fn is_consumers(&self) -> bool {
        self.file.starts_with("events/consumers")
    }
}

/// Returns everything that is not as before and should be.
pub fn faults(case: &Case<'_>, after: &Snapshot) -> Vec<String> {
    let mut faults = processes(case, after);
    faults.extend(events(case, after));
    faults.extend(consumers(case, after));
    faults
}

fn processes(case: &Case<'_>, after: &Snapshot) -> Vec<String> {
    let mut faults = Vec::new();
    for (id, before) in &case.truth.processes {
        let now = &after.processes[id];
        if now == before {
            continue;
        }
        let own = case.process() == Some(id);
        let is_reported = after.damaged.iter().any(|text| text.contains(id.as_str()));
        if !own || !is_reported {
            faults.push(format!("process {id} changed: {}", difference(before, now)));
        }
    }
    for id in after.processes.keys().filter(|id| !case.truth.processes.contains_key(*id)) {
        faults.push(format!("process {id} appeared"));
    }
    faults
}

fn events(case: &Case<'_>, after: &Snapshot) -> Vec<String> {
    let mut faults = Vec::new();
    let mut any_lost = false;
    for (seq, before) in &case.truth.events {
        match after.events.get(seq) {
            Some(now) if now == before => {}
            Some(now) => faults.push(format!("event {seq} is another one: {}", difference(before, now))),
            None if case.is_segment() && after.is_missing(*seq) => any_lost = true,
            None => faults.push(format!("event {seq} is gone, missing are {:?}", after.missing)),
        }
    }
    if any_lost && after.damaged.is_empty() {
        faults.push("events are gone, and `daemon.info` reports nothing".into());
    }
    for (seq, event) in after.events.range(case.truth.last + 1..) {
        let about = |other: &&Value| other["id"] == event["id"] && other["type"] == event["type"];
        let original = case.truth.events.values().find(about);
        // The end of the journal is lost: these events are published again, as after a power cut.
        let republished = original.is_some_and(|original| after.is_missing(original["seq"].as_u64().unwrap_or(0)));
        if event["id"] != case.new && original.is_some() && !republished {
            faults.push(format!("event {seq} was published before: {event}"));
        }
    }
    let of_new = after.events.iter().filter(|(_, event)| event["id"] == case.new);
    for (seq, _) in of_new.filter(|(seq, _)| **seq <= case.truth.last) {
        faults.push(format!("the number {seq} is used a second time"));
    }
    for seq in case.truth.last + 1..=after.events.keys().max().copied().unwrap_or(0) {
        if !after.events.contains_key(&seq) && !after.is_missing(seq) {
            faults.push(format!("event {seq} is neither there nor missing"));
        }
    }
    faults
}

fn consumers(case: &Case<'_>, after: &Snapshot) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, before) in &case.truth.consumers {
        let now = &after.consumers[name];
        if now.position == before.position && now.listed == before.listed {
            // An answer ends before a gap.
            let end = now.next.iter().max().copied().unwrap_or(0);
            let lost = |seq: &&u64| **seq < end && !now.next.contains(seq) && !after.is_missing(**seq);
            if let Some(seq) = before.next.iter().find(lost) {
                faults.push(format!("consumer {name} does not get event {seq}"));
            }
            let extra = |seq: &&u64| !before.next.contains(seq) && **seq <= case.truth.last;
            if let Some(seq) = now.next.iter().find(extra).filter(|_| !now.informed) {
                faults.push(format!("consumer {name} gets event {seq} again and is not informed"));
            }
            continue;
        }
        let is_reported = after.damaged.iter().any(|text| text.contains(name.as_str()));
        if now.position > before.position {
            faults
                .push(format!("consumer {name} went from {} to {}: events are skipped", before.position, now.position));
        } else if !case.is_consumers() || !now.informed || !is_reported {
            faults.push(format!("consumer {name} was at {before:?} and is at {now:?}"));
        }
    }
    faults
}

/// Returns the facts that a second start changed.
pub fn changes_by_restart(first: &Snapshot, second: &Snapshot) -> Vec<String> {
    let mut faults = Vec::new();
    for (id, before) in &first.processes {
        if before["error"].is_null() && second.processes.get(id) != Some(before) {
            let now = second.processes.get(id).unwrap_or(&Value::Null);
            faults.push(format!("a restart changed process {id}: {}", difference(before, now)));
        }
    }
    for (name, before) in &first.consumers {
        let now = &second.consumers[name];
        if now.position < before.position || (now.position > before.position && !now.informed) {
            faults.push(format!("a restart moved consumer {name} from {before:?} to {now:?}"));
        }
    }
    if second.last < first.last {
        faults.push(format!("a restart moved the last event from {} to {}", first.last, second.last));
    }
    faults
}

/// Describes the first difference between two values.
fn difference(before: &Value, now: &Value) -> String {
    match (before, now) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            let mut differing = keys.filter(|key| a.get(*key) != b.get(*key));
            let Some(key) = differing.next() else { return "nothing".into() };
            let null = Value::Null;
            format!("{key}: {}", difference(a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null)))
        }
        _ => {
            let short = |value: &Value| value.to_string().chars().take(160).collect::<String>();
            format!("{} became {}", short(before), short(now))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::ConsumerSnapshot;
    use serde_json::json;

    fn truth() -> Snapshot {
        let mut truth = Snapshot { last: 2, ..Snapshot::default() };
        truth.processes.insert("proc_a".into(), json!({ "fields": { "exit_code": 0 } }));
        truth.events.insert(1, json!({ "seq": 1, "id": "proc_a", "type": "started" }));
        truth.events.insert(2, json!({ "seq": 2, "id": "proc_a", "type": "exited" }));
        let consumer = ConsumerSnapshot { listed: true, position: 1, next: vec![2], ..ConsumerSnapshot::default() };
        truth.consumers.insert("c".into(), consumer);
        truth
    }

    fn judged(file: &str, change: impl FnOnce(&mut Snapshot)) -> usize {
        let truth = truth();
        let mut after = truth.clone();
        after.events.insert(3, json!({ "seq": 3, "id": "proc_n", "type": "started" }));
        change(&mut after);
        faults(&Case { truth: &truth, file, new: "proc_n" }, &after).len()
    }

    #[test]
    fn a_silent_loss_is_a_fault_and_a_reported_one_of_the_damaged_part_is_not() {
        let exit = |after: &mut Snapshot| after.processes.insert("proc_a".into(), json!({ "error": "gone" }));
        assert_eq!(judged("lock", |_| ()), 0);
        assert_eq!(judged("procs/proc_a/record", |after| drop(exit(after))), 1);
        let reported = |after: &mut Snapshot| after.damaged.push("procs/proc_a: damaged".into());
        let both = |after: &mut Snapshot| (drop(exit(after)), reported(after)).1;
        assert_eq!((judged("procs/proc_a/record", both), judged("procs/proc_b/record", both)), (0, 1));
        assert_eq!(judged("events/1.log", |after| drop(after.events.remove(&2))), 1);
        let missing = |after: &mut Snapshot| {
            after.events.remove(&2);
            after.missing.push((2, 2));
        };
        assert_eq!(judged("events/1.log", missing), 1, "`daemon.info` reports nothing");
        let again = json!({ "seq": 4, "id": "proc_a", "type": "exited" });
        assert_eq!(judged("procs/proc_a/record", |after| drop(after.events.insert(4, again))), 1);
        let back = |after: &mut Snapshot| after.consumers.get_mut("c").unwrap().position = 0;
        assert_eq!(judged("events/consumers/c.pos", back), 1);
        let ahead = |after: &mut Snapshot| after.consumers.get_mut("c").unwrap().position = 2;
        assert_eq!(judged("events/consumers/c.pos", ahead), 1);
    }
}
