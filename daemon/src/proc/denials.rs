//! Calls of a process that its sandbox refused: the file that its shim writes, and their events.

use super::handle::Proc;
use super::state::State;
use crate::store::sandbox::SandboxSpec;
use std::io;
use std::path::Path;
use toold_format::denials::{DenialEntry, DenialFile};
use toold_proto::event::{Denial, ProtectedCreated};
use toold_proto::sandbox::{Denials, Network, RefusedCall};
use toold_proto::time::rfc3339;

/// The most `denial` events of a process. Its report has more.
const MAX_EVENTS: u8 = 20;
/// The largest file that is read: 64 refusals with two paths each.
const MAX_FILE_LEN: u64 = 1 << 20;

const WRITES: &str = "fs_write";
const NETWORK: &str = "network";
/// Reads of hidden paths are refused by the kernel, and not seen: that would stop every open.
const READS: &str = "fs_read";

impl Proc {
    /// Reads the refused calls of a confined process.
    pub(super) fn denials(&self, spec: &SandboxSpec) -> Denials {
        let bytes = read(&self.dir);
        let file = bytes.as_deref().ok().and_then(DenialFile::read);
        let (writes, network) = match (&file, &bytes) {
            (Some(file), _) => (file.observes_writes, file.observes_network),
            // Nothing was refused yet.
            (None, Err(e)) if e.kind() == io::ErrorKind::NotFound => (spec.observe, spec.network != Network::Full),
            // It is damaged: whatever was refused is not known.
            (None, _) => (false, false),
        };
        let seen = [(WRITES, writes), (NETWORK, network || spec.network == Network::Full)];
        let names = |of: bool| seen.iter().filter(move |(_, is_seen)| *is_seen == of).map(|(name, _)| (*name).into());
        Denials {
            observed: names(true).filter(|name| name != NETWORK || spec.network != Network::Full).collect(),
            unknown: names(false).chain([READS.into()]).collect(),
            count: file.as_ref().map_or(0, |file| file.count),
            list: file.iter().flat_map(DenialFile::entries).map(|entry| refused_call(&entry)).collect(),
        }
    }

    /// Returns true unless the most events that a process may have were published.
    pub(super) fn has_denial_events_left(&self) -> bool {
        self.checkpoint().denials < MAX_EVENTS
    }

    /// Publishes the refused calls that were not published yet, and at the end the protected paths that it made.
    pub fn publish_sandbox_due(&self, state: &State) -> io::Result<()> {
        let Some(spec) = self.spec.sandbox.as_deref() else { return Ok(()) };
        let published = self.checkpoint().denials;
        if published < MAX_EVENTS {
            let left = usize::from(MAX_EVENTS - published);
            for call in self.denials(spec).list.into_iter().skip(usize::from(published)).take(left) {
                let RefusedCall { op, path, address, via, errno, .. } = call;
                let event = Denial { name: self.spec.name.clone(), op, path, address, via, errno };
                self.publish_event(&event, |checkpoint| checkpoint.denials += 1)?;
            }
        }
        if state.has_ended() && !self.checkpoint().protected_published {
            let is_new = |path: &&String| !spec.linked.contains(path) && std::fs::symlink_metadata(path).is_ok();
            let made: Vec<String> = spec.unprotected.iter().filter(is_new).cloned().collect();
            let last = made.len();
            for (at, path) in made.into_iter().enumerate() {
                let event = ProtectedCreated { name: self.spec.name.clone(), path };
                self.publish_event(&event, |checkpoint| checkpoint.protected_published = at + 1 == last)?;
            }
            if last == 0 {
                self.update_checkpoint(|checkpoint| checkpoint.protected_published = true);
            }
        }
        Ok(())
    }
}

/// Checks the file of a process that no shim writes any more. Returns a description of damage.
pub fn check(dir: &Path) -> io::Result<Option<String>> {
    match read(dir) {
        Ok(bytes) if DenialFile::read(&bytes).is_some() => Ok(None),
        Ok(_) => Ok(Some("denials: the file does not match its checksum; refused calls are not known".into())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) if crate::sys::is_transient(&e) => Err(e),
        Err(e) => Ok(Some(format!("denials: {e}; refused calls are not known"))),
    }
}

fn read(dir: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = std::fs::File::options().read(true).custom_flags(flags).open(dir.join("denials"))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_LEN).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn refused_call(entry: &DenialEntry<'_>) -> RefusedCall {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (is_network, target) = (entry.op.is_network(), text(entry.target));
    RefusedCall {
        op: entry.op.name().into(),
        path: (!is_network).then(|| target.clone()),
        address: is_network.then_some(target),
        via: (!entry.via.is_empty()).then(|| text(entry.via)),
        errno: entry.errno,
        count: entry.count,
        first_at: rfc3339(entry.first_ms),
    }
}
