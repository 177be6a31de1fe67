//! The lock of the carriers of events: between the pull and the acknowledgement of one, no other one pulls. Without it, a hook
//! that runs right after a tool's result would report the same events again.

use crate::sys;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const RETRY_DELAY: Duration = Duration::from_millis(1);

/// Held while events are on their way to an agent. Ends when it is dropped, also by a crash.
#[derive(Debug)]
pub struct DeliveryLock {
    _file: Option<File>,
}

impl DeliveryLock {
    /// Takes the lock of a session within `patience`. None: another carrier delivers now, so there is nothing to report.
    /// Where no lock file can be made, for example beside a socket of another user, everyone has the lock.
    pub fn acquire(socket: &Path, session: &str, patience: Duration) -> Option<DeliveryLock> {
        let mut path = OsString::from(socket);
        path.push(".agents.lock");
        let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let Ok(file) = options.open(path) else { return Some(DeliveryLock { _file: None }) };
        // Each session has its byte of one file.
        let byte = (super::fnv1a(session.as_bytes()) >> 33) as u32;
        let deadline = Instant::now() + patience;
        loop {
            match sys::try_lock_byte(file.as_fd(), byte) {
                Ok(true) => return Some(DeliveryLock { _file: Some(file) }),
                Ok(false) if Instant::now() >= deadline => return None,
                Ok(false) => std::thread::sleep(RETRY_DELAY),
                Err(_) => return Some(DeliveryLock { _file: None }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_carrier_delivers_at_a_time_and_the_next_one_after_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("s");
        let first = DeliveryLock::acquire(&socket, "a", Duration::ZERO).expect("no other carrier");
        assert!(DeliveryLock::acquire(&socket, "a", Duration::ZERO).is_none());
        assert!(DeliveryLock::acquire(&socket, "b", Duration::ZERO).is_some(), "another session");
        drop(first);
        assert!(DeliveryLock::acquire(&socket, "a", Duration::ZERO).is_some());
        assert!(DeliveryLock::acquire(Path::new("/nowhere/s"), "a", Duration::ZERO).is_some());
    }
}
