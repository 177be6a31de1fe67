//! The order of the list: what asks, what runs, what ended in the last hour; all of it, or by owner.

use super::State;
use super::row::{Mark, Row};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The time for which an ended process is shown.
pub const RECENT_MS: u64 = 3_600_000;

/// The orders that `s` goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Questions first, then what runs by CPU, then what ended.
    State,
    Memory,
    Age,
    Name,
}

impl Sort {
    pub fn next(self) -> Sort {
        match self {
            Sort::State => Sort::Memory,
            Sort::Memory => Sort::Age,
            Sort::Age => Sort::Name,
            Sort::Name => Sort::State,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Sort::State => "state and cpu",
            Sort::Memory => "memory",
            Sort::Age => "age",
            Sort::Name => "name",
        }
    }
}

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListLine {
    /// The heading of an owner.
    Owner {
        name: String,
        count: usize,
        gone: bool,
    },
    Process(String),
}

impl ListLine {
    pub fn id(&self) -> Option<&String> {
        match self {
            ListLine::Owner { .. } => None,
            ListLine::Process(id) => Some(id),
        }
    }
}

/// The key that sorts a row.
type Rank<'a> = (bool, u8, Reverse<u64>, Reverse<u64>, &'a str, &'a str);

fn rank<'a>(row: &'a Row, sort: Sort) -> Rank<'a> {
    let group = match row.mark() {
        Mark::Asks => 0,
        Mark::Runs => 1,
        Mark::Failed | Mark::Done | Mark::Lost => 2,
    };
    let ended = row.ended_ms.unwrap_or(0);
    let cpu = if row.has_ended() { 0 } else { row.cpu_percent().unwrap_or(0) };
    match sort {
        Sort::State if group == 2 => (false, group, Reverse(ended), Reverse(row.started_ms), row.label(), &row.id),
        Sort::State => (false, group, Reverse(cpu), Reverse(row.started_ms), row.label(), &row.id),
        Sort::Memory => {
            let memory = row.usage.map_or(0, |usage| usage.rss_bytes);
            (false, 0, Reverse(memory), Reverse(row.started_ms), row.label(), &row.id)
        }
        Sort::Age => (false, 0, Reverse(row.started_ms), Reverse(0), row.label(), &row.id),
        Sort::Name => (row.name.is_none(), 0, Reverse(0), Reverse(0), row.label(), &row.id),
    }
}

/// Returns the lines of the list.
pub fn arrange(state: &State) -> Vec<ListLine> {
    let lower = state.filter.to_lowercase();
    let is_recent = |row: &&Row| {
        let ended = row.ended_ms.unwrap_or(row.started_ms);
        !row.has_ended() || row.tree_len() > 0 || state.now_ms.saturating_sub(ended) <= RECENT_MS
    };
    let is_wanted = |row: &&Row| lower.is_empty() || row.has_text(&lower);
    let mut rows: Vec<&Row> = state.rows.iter().filter(is_recent).filter(is_wanted).collect();
    rows.sort_by(|a, b| rank(a, state.sort).cmp(&rank(b, state.sort)));
    if !state.by_owner {
        return rows.iter().map(|row| ListLine::Process(row.id.clone())).collect();
    }
    let mut owners: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        owners.entry(row.owner()).or_default().push(row);
    }
    let mut lines = Vec::new();
    for (owner, rows) in owners {
        let gone = rows.iter().any(|row| row.session.is_some()) && state.is_session_gone(owner);
        let name = if owner.is_empty() { "no owner".to_owned() } else { owner.to_owned() };
        lines.push(ListLine::Owner { name, count: rows.len(), gone });
        lines.extend(rows.iter().map(|row| ListLine::Process(row.id.clone())));
    }
    lines
}
