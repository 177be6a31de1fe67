//! A process tree as lines with branches.

use std::collections::{HashMap, HashSet};
use toold_proto::process::Member;

/// Returns the members, each after its parent, with the branch that leads to it. A member whose parent is not in the list is a
/// root.
pub fn branches(members: &[Member]) -> Vec<(String, &Member)> {
    let pids: HashSet<i32> = members.iter().map(|member| member.pid).collect();
    let mut children: HashMap<i32, Vec<&Member>> = HashMap::new();
    let mut roots = Vec::new();
    for member in members {
        if pids.contains(&member.ppid) && member.ppid != member.pid {
            children.entry(member.ppid).or_default().push(member);
        } else {
            roots.push(member);
        }
    }
    let mut out = Vec::with_capacity(members.len());
    // A stack of the remaining members instead of recursion: a deep tree must not overflow the call stack.
    let mut next: Vec<(String, String, &Member)> = Vec::new();
    next.extend(roots.into_iter().rev().map(|member| (String::new(), String::new(), member)));
    while let Some((branch, below, member)) = next.pop() {
        out.push((branch, member));
        let started = children.remove(&member.pid).unwrap_or_default();
        let last = started.len().saturating_sub(1);
        next.extend(started.into_iter().enumerate().rev().map(|(n, child)| {
            let (here, later) = if n == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            (format!("{below}{here}"), format!("{below}{later}"), child)
        }));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(pid: i32, ppid: i32) -> Member {
        Member { pid, ppid, command: String::new(), state: "S".into(), threads: 1, cpu_ms: 0, rss_bytes: 0 }
    }

    #[test]
    fn each_member_is_below_its_parent() {
        let members = [member(2, 1), member(3, 2), member(5, 2), member(4, 3), member(6, 1), member(7, 6)];
        let drawn: Vec<(String, i32)> = branches(&members).into_iter().map(|(branch, m)| (branch, m.pid)).collect();
        let expected = [("", 2), ("├─ ", 3), ("│  └─ ", 4), ("└─ ", 5), ("", 6), ("└─ ", 7)];
        assert_eq!(drawn, expected.map(|(branch, pid)| (branch.to_owned(), pid)));
    }

    #[test]
    fn a_cycle_of_parents_does_not_loop() {
        let members = [member(2, 3), member(3, 2), member(4, 4), member(5, 1)];
        assert_eq!(branches(&members).iter().map(|(_, m)| m.pid).collect::<Vec<_>>(), [4, 5]);
    }
}
