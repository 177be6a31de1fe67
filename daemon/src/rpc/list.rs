//! `list`.

use super::context::Daemon;
use super::wire::{Peer, WriteJson};
use crate::clock::wall_ms;
use crate::proc::Proc;
use crate::proc::state::State;
use crate::proc::view::outcome;
use crate::proc::{output, tree};
use std::sync::Arc;
use toold_proto::process::Usage;
use toold_proto::{ErrorKind, RpcError, params};

const DEFAULT_LIMIT: u64 = 200;

/// What `list` answers: prints like `results::List`, each process made as it is printed, so that a thousand of them
/// are never there twice.
pub struct ListResponse {
    rows: Vec<ListRow>,
    total: u64,
    older: Option<u64>,
}

impl WriteJson for ListResponse {
    fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.extend_from_slice(br#"{"processes":["#);
        for (n, row) in self.rows.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            row.write_json(out)?;
        }
        out.extend_from_slice(format!(r#"],"total":{}"#, self.total).as_bytes());
        if let Some(older) = self.older {
            out.extend_from_slice(format!(r#","older":{older}"#).as_bytes());
        }
        out.push(b'}');
        Ok(())
    }
}

struct ListRow {
    proc: Arc<Proc>,
    state: State,
    preview: Arc<str>,
    usage: Option<Usage>,
    now: u64,
}

impl WriteJson for ListRow {
    fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.push(b'{');
        self.proc.view_of(&self.state, self.now).write_fields(out)?;
        out.extend_from_slice(br#""preview":"#);
        serde_json::to_writer(&mut *out, &*self.preview)?;
        if let Some(usage) = &self.usage {
            out.extend_from_slice(br#","usage":"#);
            serde_json::to_writer(&mut *out, usage)?;
        }
        out.push(b'}');
        Ok(())
    }
}

impl ListRow {
    fn read(proc: Arc<Proc>, with_usage: bool, now: u64) -> Result<ListRow, RpcError> {
        let state = proc.state();
        let preview = output::preview(&proc, &state)?;
        let lives = !state.is_final() && state.shim_pid > 0;
        let usage = (with_usage && lives).then(|| tree::usage_below(state.shim_pid));
        Ok(ListRow { proc, state, preview, usage, now })
    }
}

pub async fn list(call: params::List, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<ListResponse, RpcError> {
    let limit = call.limit.unwrap_or(DEFAULT_LIMIT);
    if limit == 0 {
        return Err(RpcError::param("limit", "must be at least 1"));
    }
    let now = wall_ms();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (wanted, total, older) = selected(&daemon, &call, limit, now);
    let look =
        move || wanted.into_iter().map(|proc| ListRow::read(proc, call.usage, now)).collect::<Result<_, RpcError>>();
    if !call.usage {
        return Ok(ListResponse { rows: look()?, total, older });
    }
    // A few files of /proc for every member of every tree: not on a thread that others wait for.
    let looked = tokio::task::spawn_blocking(look).await;
    let rows = looked.map_err(|e| RpcError::new(ErrorKind::Internal, format!("the look broke off: {e}")))??;
    Ok(ListResponse { rows, total, older })
}

/// The newest processes that are asked for, how many there are in all, and how many more without `ended_within_ms`.
fn selected(daemon: &Daemon, call: &params::List, limit: usize, now: u64) -> (Vec<Arc<Proc>>, u64, Option<u64>) {
    if *call == (params::List { limit: call.limit, usage: call.usage, ..Default::default() }) {
        let (newest, total) = daemon.registry.newest(limit);
        return (newest, total as u64, None);
    }
    let mut fit = daemon.registry.newest_first();
    fit.retain(|p| is_selected(p, call));
    let all = fit.len() as u64;
    fit.retain(|p| is_recent(p, call.ended_within_ms, now));
    let total = fit.len() as u64;
    fit.truncate(limit);
    (fit, total, call.ended_within_ms.map(|_| all - total))
}

fn is_selected(proc: &Proc, call: &params::List) -> bool {
    let spec = &proc.spec;
    let label = |wanted: &String| match wanted.split_once('=') {
        Some((key, value)) => spec.labels.get(key).is_some_and(|v| v == value),
        None => spec.labels.contains_key(wanted),
    };
    let name = |pattern: &String| spec.name.as_ref().is_some_and(|name| matches_glob(name, pattern));
    call.task_id.as_ref().is_none_or(|t| spec.task_id.as_ref() == Some(t))
        && call.session_key.as_ref().is_none_or(|s| spec.session_key.as_ref() == Some(s))
        && call.label.as_ref().is_none_or(label)
        && call.name.as_ref().is_none_or(name)
        && call.status.is_none_or(|s| proc.published_state().status() == s)
        && call.reason.is_none_or(|r| outcome(spec, &proc.published_state()).reason == Some(r))
}

/// Whether it lives, or ended so long ago or less.
fn is_recent(proc: &Proc, within: Option<u64>, now: u64) -> bool {
    let Some(within) = within else { return true };
    proc.published_state().ended_ms().is_none_or(|at| now.saturating_sub(at) <= within)
}

/// Whether a whole name is as the pattern says. Takes no longer than the product of their lengths.
fn matches_glob(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    let (mut n, mut p) = (0, 0);
    // The last star, and where in the name what comes after it is tried.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => (n, p) = (n + 1, p + 1),
            Some(_) | None => {
                let Some((at, tried)) = star else { return false };
                star = Some((at, tried + 1));
                (n, p) = (tried + 1, at + 1);
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
        assert!(!matches_glob(&"a".repeat(5000), &("*a".repeat(50) + "b")), "and it is quick to say so");
    }
}
