//! Which events somebody wants. Hashes sort most of them out; the text has the last word.

use super::record::EventRecord;
use serde::Deserialize;
use std::collections::BTreeSet;
use toold_proto::{EventType, ProcId};

/// All that is given must fit; nothing given wants everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Filter {
    pub types: Option<BTreeSet<EventType>>,
    pub session_key: Option<String>,
    pub task_id: Option<String>,
    pub id: Option<ProcId>,
}

/// The part of an event's text that a filter asks about.
#[derive(Deserialize)]
struct Keys {
    session_key: Option<String>,
    task_id: Option<String>,
}

impl Filter {
    /// Whether an event with these keys is wanted.
    pub fn matches(
        &self,
        kind: EventType,
        id: Option<ProcId>,
        session_key: Option<&str>,
        task_id: Option<&str>,
    ) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(&kind))
            && self.id.is_none_or(|wanted| id == Some(wanted))
            && self.session_key.as_deref().is_none_or(|wanted| session_key == Some(wanted))
            && self.task_id.as_deref().is_none_or(|wanted| task_id == Some(wanted))
    }

    /// The filter with its hashes, to be held against many records.
    pub(super) fn hashed(&self) -> HashedFilter<'_> {
        HashedFilter { filter: self, session: hash(self.session_key.as_deref()), task: hash(self.task_id.as_deref()) }
    }
}

pub(super) struct HashedFilter<'f> {
    filter: &'f Filter,
    session: u64,
    task: u64,
}

impl HashedFilter<'_> {
    /// Whether the record is wanted. Two keys may share a hash, so one session could be shown another's event:
    /// where a key is asked for, the text is read.
    pub fn matches(&self, kind: EventType, record: &EventRecord<'_>) -> bool {
        let header = &record.header;
        let id = (header.process != 0).then(|| ProcId::from_bits(header.process));
        let by_hash = (self.session == 0 || self.session == header.session)
            && (self.task == 0 || self.task == header.task)
            && self.filter.types.as_ref().is_none_or(|types| types.contains(&kind))
            && self.filter.id.is_none_or(|wanted| id == Some(wanted));
        if !by_hash || (self.session == 0 && self.task == 0) {
            return by_hash;
        }
        serde_json::from_slice::<Keys>(record.text)
            .is_ok_and(|keys| self.filter.matches(kind, id, keys.session_key.as_deref(), keys.task_id.as_deref()))
    }
}

/// Zero stands for none.
pub(super) fn hash(key: Option<&str>) -> u64 {
    key.map_or(0, |key| toold_format::fnv1a(key.as_bytes()).max(1))
}
