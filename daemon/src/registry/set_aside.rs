//! Processes that are on disk but not in the table: their record is damaged, or could not be read yet. `daemon.info`
//! and every call that names one report them, because nothing else does.

use super::{FindError, Registry};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{MutexGuard, PoisonError};
use toold_proto::ProcId;

/// The reason why a process is not in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetAside {
    /// The path to its quarantined directory, and the damage.
    Damaged(String),
    /// The path to its directory, and the error. It is tried again.
    Unread(String),
}

impl SetAside {
    fn text(&self) -> &str {
        match self {
            SetAside::Damaged(text) | SetAside::Unread(text) => text,
        }
    }
}

pub type SetAsides = BTreeMap<ProcId, SetAside>;

/// Returns the id in the name of a directory that was quarantined: `proc_0123456789ab.damaged-4711`.
pub fn quarantined_id(dir: &Path) -> Option<ProcId> {
    let (id, rest) = dir.file_name()?.to_str()?.split_once('.')?;
    rest.strip_prefix("damaged-")?;
    id.parse().ok()
}

impl Registry {
    pub fn set_asides(&self) -> MutexGuard<'_, SetAsides> {
        self.set_aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns descriptions of all damage that is known, and of records that cannot be read now.
    pub fn damaged(&self) -> Vec<String> {
        let mut all = self.damaged.lock().map(|damaged| damaged.clone()).unwrap_or_default();
        all.extend(self.set_asides().values().map(|aside| aside.text().to_owned()));
        for proc in self.newest_first() {
            all.extend(proc.damage().iter().map(|damage| format!("{}: {damage}", proc.dir.display())));
        }
        all
    }

    /// Reports damage that belongs to no process.
    pub fn report_damage(&self, damage: String) {
        tracing::error!(damage, "found damaged state");
        if let Ok(mut damaged) = self.damaged.lock() {
            damaged.push(damage);
        }
    }

    /// Returns the error for a text that names no process in the table.
    pub(super) fn not_found(&self, text: &str) -> FindError {
        let asides = self.set_asides();
        let range = text.parse().ok().map(|id: ProcId| (id, id)).or_else(|| ProcId::prefix_range(text));
        let aside = range.and_then(|(low, high)| asides.range(low..=high).next());
        match aside {
            Some((id, aside)) => FindError::SetAside { id: *id, aside: aside.clone() },
            None => FindError::NotFound(text.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quarantined_id;
    use std::path::Path;

    #[test]
    fn only_a_quarantined_directory_of_a_process_has_its_id() {
        let id = |name: &str| quarantined_id(Path::new(name)).map(|id| id.to_string());
        assert_eq!(id("/s/procs/proc_0123456789ab.damaged-12"), Some("proc_0123456789ab".into()));
        assert_eq!(id("/s/procs/proc_0123456789ab.forgotten"), None);
        assert_eq!(id("/s/procs/proc_0123456789ab"), None);
        assert_eq!(id("/s/procs/other.damaged-12"), None);
    }
}
