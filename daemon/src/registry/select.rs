//! Selects processes by task, session, label, name, status, reason, failure and age.

use super::Registry;
use crate::proc::Proc;
use crate::proc::view::{is_stopped, outcome};
use std::sync::Arc;
use toold_proto::params::Status;
use toold_proto::process::{Reason, is_failure};

/// A filter over processes. The default selects all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selector {
    pub task_id: Option<String>,
    pub session_key: Option<String>,
    /// `key` or `key=value`.
    pub label: Option<String>,
    /// A pattern with `*` and `?` for the whole name.
    pub name: Option<String>,
    pub status: Option<Status>,
    pub reason: Option<Reason>,
    pub stopped: Option<bool>,
    /// Only those that failed.
    pub failed: bool,
}

/// A page of selected processes.
pub struct Selection {
    /// The newest, newest first.
    pub procs: Vec<Arc<Proc>>,
    /// The number of selected processes.
    pub total: u64,
    /// The number of processes that only their age excluded. None: the age did not matter.
    pub older: Option<u64>,
}

impl Selector {
    pub fn matches(&self, proc: &Proc) -> bool {
        let spec = &proc.spec;
        let has_label = |label: &String| match label.split_once('=') {
            Some((key, value)) => spec.labels.get(key).is_some_and(|v| v == value),
            None => spec.labels.contains_key(label),
        };
        let has_name = |pattern: &String| spec.name.as_ref().is_some_and(|name| matches_glob(name, pattern));
        self.task_id.as_ref().is_none_or(|t| spec.task_id.as_ref() == Some(t))
            && self.session_key.as_ref().is_none_or(|s| spec.session_key.as_ref() == Some(s))
            && self.label.as_ref().is_none_or(has_label)
            && self.name.as_ref().is_none_or(has_name)
            && self.status.is_none_or(|s| proc.published_state().status() == s)
            && self.reason.is_none_or(|r| outcome(spec, &proc.published_state()).reason == Some(r))
            && self.stopped.is_none_or(|stopped| is_stopped(spec, &proc.state()) == stopped)
            && (!self.failed || has_failed(proc))
    }
}

fn has_failed(proc: &Proc) -> bool {
    let outcome = outcome(&proc.spec, &proc.published_state());
    is_failure(outcome.reason, outcome.exit_code)
}

impl Registry {
    /// Returns the newest `limit` of the selected processes. `ended_within_ms` excludes those that ended earlier.
    pub fn select(&self, selector: &Selector, ended_within_ms: Option<u64>, limit: usize, now_ms: u64) -> Selection {
        if ended_within_ms.is_none() && *selector == Selector::default() {
            let (procs, total) = self.newest(limit);
            return Selection { procs, total: total as u64, older: None };
        }
        let mut procs = self.newest_first();
        procs.retain(|proc| selector.matches(proc));
        let all = procs.len() as u64;
        if let Some(within) = ended_within_ms {
            let ended_ms = |proc: &Proc| proc.published_state().ended_ms();
            procs.retain(|proc| ended_ms(proc).is_none_or(|at| now_ms.saturating_sub(at) <= within));
        }
        let total = procs.len() as u64;
        procs.truncate(limit);
        Selection { procs, total, older: ended_within_ms.map(|_| all - total) }
    }

    /// Returns the selected processes whose program has not ended, newest first.
    pub fn select_running(&self, selector: &Selector) -> Vec<Arc<Proc>> {
        let mut procs = self.newest_first();
        procs.retain(|proc| selector.matches(proc) && !proc.published_state().has_ended());
        procs
    }

    /// Returns the selected processes of which something is left: a member of the tree, or the shim. Newest first.
    pub fn select_unfinished(&self, selector: &Selector) -> Vec<Arc<Proc>> {
        let mut procs = self.newest_first();
        procs.retain(|proc| selector.matches(proc) && !proc.published_state().is_final());
        procs
    }
}

/// Matches a whole name against a pattern with `*` and `?`. Takes at most the product of their lengths.
fn matches_glob(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let (mut n, mut p) = (0, 0);
    // The last star, and the place in the name at which the rest of the pattern is tried.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                n += 1;
                p += 1;
            }
            Some(_) | None => {
                let Some((at, tried)) = star else { return false };
                star = Some((at, tried + 1));
                n = tried + 1;
                p = at + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches_glob;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_any_character() {
        let yes = [
            ("web", "web"),
            ("web", "w*"),
            ("web-1", "*-?"),
            ("", "*"),
            ("网站", "?站"),
            ("a*b", "a*b"),
            ("aab", "*a*b**"),
        ];
        let no = [("web", "we"), ("web", "W*"), ("web", "????"), ("", "?"), ("web-1", "*-??"), ("ab", "*a")];
        assert!(yes.iter().all(|(name, pattern)| matches_glob(name, pattern)));
        assert!(!no.iter().any(|(name, pattern)| matches_glob(name, pattern)));
        assert!(!matches_glob(&"a".repeat(5000), &("*a".repeat(50) + "b")), "and it is decided quickly");
    }
}
