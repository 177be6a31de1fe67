//! Sorts the rows of a list, leaves some out, and computes the CPU use of trees. Pure.

use crate::render::list::Row;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Instant;
use toold_proto::id::ProcId;
use toold_proto::params::Status;
use toold_proto::process::Process;

/// The sort keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Sort {
    #[default]
    Age,
    Name,
    Cpu,
    Mem,
    Status,
}

/// Sorts rows that come newest first. Equal rows keep their order.
pub fn sort(rows: &mut [Row<'_>], by: Sort) {
    let used = |row: &Row<'_>| row.usage.unwrap_or_default();
    match by {
        Sort::Age => {}
        Sort::Name => rows.sort_by_key(|row| (row.process.name.is_none(), row.process.name.clone())),
        Sort::Cpu => rows.sort_by_key(|row| Reverse((row.percent, used(row).cpu_ms))),
        Sort::Mem => rows.sort_by_key(|row| Reverse(used(row).rss_bytes)),
        Sort::Status => rows.sort_by_key(|row| rank(row.process)),
    }
}

/// Ranks running processes first, then failed ones.
fn rank(process: &Process) -> u8 {
    match (process.status, process.exit_code) {
        (Status::Running, _) => 0,
        (Status::Starting, _) => 1,
        (Status::Pending, _) => 2,
        (Status::Lost, _) => 3,
        (Status::Exited, Some(0)) => 5,
        (Status::Exited, _) => 4,
    }
}

/// Keeps of the ended processes only the last to end.
pub fn keep_recent(rows: &mut Vec<Row<'_>>, most: usize) {
    // Text order is time order; a process that never ran has no end.
    let end = |row: &Row<'_>| row.process.exited_at.clone().unwrap_or_else(|| row.process.started_at.clone());
    let mut ends: Vec<String> = rows.iter().filter(|row| has_ended(row.process)).map(end).collect();
    ends.sort_unstable_by(|a, b| b.cmp(a));
    let Some(first) = ends.get(most.saturating_sub(1)).cloned() else { return };
    let mut left = most;
    rows.retain(|row| {
        let kept = !has_ended(row.process) || (end(row) >= first && left > 0);
        left -= usize::from(kept && has_ended(row.process));
        kept
    });
}

fn has_ended(process: &Process) -> bool {
    crate::cmd::wait::has_ended(process)
}

/// The CPU time of trees at two moments, for their CPU use between.
#[derive(Debug, Default)]
pub struct Cpu {
    last: HashMap<ProcId, (u64, Instant)>,
    percent: HashMap<ProcId, u64>,
}

impl Cpu {
    /// Records the time that trees have used by now.
    pub fn measure(&mut self, used: impl Iterator<Item = (ProcId, u64)>, now: Instant) {
        let mut last = HashMap::new();
        let mut percent = HashMap::new();
        for (id, ms) in used {
            if let Some((before, at)) = self.last.get(&id) {
                let passed = now.saturating_duration_since(*at).as_millis().max(1) as u64;
                // A member that ended takes its time with it.
                percent.insert(id, ms.saturating_sub(*before) * 100 / passed);
            }
            last.insert(id, (ms, now));
        }
        self.last = last;
        self.percent = percent;
    }

    /// Returns the CPU use of a tree. Zero for one that was seen only once.
    pub fn percent(&self, id: ProcId) -> u64 {
        self.percent.get(&id).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::process;
    use serde_json::{Value, json};
    use std::time::Duration;
    use toold_proto::results::Listed;

    fn listed(letter: char, changes: Value) -> Listed {
        let mut document = process(changes);
        document["id"] = json!(format!("proc_00000000000{letter}"));
        document["preview"] = json!("");
        serde_json::from_value(document).expect("a whole process")
    }

    fn letters(rows: &[Row<'_>]) -> String {
        rows.iter().filter_map(|row| row.process.id.to_string().pop()).collect()
    }

    #[test]
    fn rows_sort_by_the_key_and_equal_ones_stay_in_order() {
        let usage = |cpu: u64, mem: u64| json!({"processes": 1, "cpu_ms": cpu, "rss_bytes": mem});
        let ended = |code: i32| json!({"status": "exited", "reason": "exited", "exit_code": code});
        let all = [
            listed('a', ended(0)),
            listed('b', json!({"name": "z", "usage": usage(5, 100)})),
            listed('c', ended(1)),
            listed('d', json!({"name": "m", "usage": usage(9, 50)})),
        ];
        for (by, order) in [
            (Sort::Age, "abcd"),
            (Sort::Name, "dbac"),
            (Sort::Cpu, "dbac"),
            (Sort::Mem, "bdac"),
            (Sort::Status, "bdca"),
        ] {
            let mut rows: Vec<Row<'_>> = all.iter().map(Row::of).collect();
            sort(&mut rows, by);
            assert_eq!(letters(&rows), order, "{by:?}");
        }
    }

    #[test]
    fn the_last_to_end_are_kept_and_running_processes_always() {
        let at = |minute: u32| json!({"status": "exited", "exited_at": format!("2026-11-16T03:{minute:02}:00.000Z")});
        let all =
            [listed('a', at(5)), listed('b', json!({})), listed('c', at(9)), listed('d', at(5)), listed('e', at(1))];
        for (most, left) in [(1, "bc"), (2, "abc"), (3, "abcd"), (4, "abcde"), (9, "abcde")] {
            let mut rows: Vec<Row<'_>> = all.iter().map(Row::of).collect();
            keep_recent(&mut rows, most);
            assert_eq!(letters(&rows), left, "{most}");
        }
    }

    #[test]
    fn percent_is_the_use_since_the_last_measurement() {
        let id: ProcId = "proc_00000000000a".parse().expect("an id");
        let begin = Instant::now();
        let mut cpu = Cpu::default();
        cpu.measure([(id, 1000)].into_iter(), begin);
        assert_eq!(cpu.percent(id), 0);
        cpu.measure([(id, 2000)].into_iter(), begin + Duration::from_millis(500));
        assert_eq!(cpu.percent(id), 200);
        cpu.measure([(id, 100)].into_iter(), begin + Duration::from_secs(1));
        assert_eq!(cpu.percent(id), 0, "a member ended");
    }
}
