//! Selects events by type and keys. Hashes reject most records; the event's text decides the rest.

use super::record::EventRecord;
use serde::Deserialize;
use std::collections::BTreeSet;
use toold_proto::{EventType, ProcId};

/// Criteria that an event must meet. A criterion that is None accepts every event.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Filter {
    pub types: Option<BTreeSet<EventType>>,
    pub session_key: Option<String>,
    pub task_id: Option<String>,
    pub id: Option<ProcId>,
}

/// The keys in an event's text that a filter compares.
#[derive(Deserialize)]
struct Keys {
    session_key: Option<String>,
    task_id: Option<String>,
}

impl Filter {
    /// Returns true if an event with these keys matches.
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

    /// Returns the filter with its hashes, for use on many records.
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
    /// Returns true if the record matches. Two keys may share a hash, and one session must not get another's event: if the
    /// filter has a key, the text is compared.
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

/// Hashes a key. Zero is the hash of no key.
pub(super) fn hash(key: Option<&str>) -> u64 {
    key.map_or(0, |key| toold_format::fnv1a(key.as_bytes()).max(1))
}
