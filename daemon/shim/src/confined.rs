//! Distinguishes a process inside a sandbox from a daemon. A sandbox has no new privileges and a filter of system calls, and nothing
//! takes these away; but other programs confine their processes too, so only one that is also below a shim is refused.

use crate::sys::{self, own_pid};
use crate::tree::{self, ProcPath};
use rustix::fd::OwnedFd;

/// The most ancestors that are looked at.
const MAX_DEPTH: usize = 128;

/// The confinement of a process that only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Confinement {
    pub no_new_privs: bool,
    /// The number of its system call filters. None: the kernel does not show it.
    pub filters: Option<i32>,
}

impl Confinement {
    /// Reads the confinement of a process. None: it has ended, or is hidden.
    pub fn of(pid: i32) -> Option<Confinement> {
        let mut text = [0u8; 4096];
        let len = ProcPath::new().text(b"/proc/").number(pid).text(b"/status").read(&mut text);
        (len > 0).then(|| Confinement::parse(&text[..len]))
    }

    fn parse(status: &[u8]) -> Confinement {
        let field = |name: &[u8]| {
            let mut lines = status.split(|byte| *byte == b'\n');
            lines.find_map(|line| tree::number(line.strip_prefix(name)?.trim_ascii()))
        };
        Confinement { no_new_privs: field(b"NoNewPrivs:") == Some(1), filters: field(b"Seccomp_filters:") }
    }

    /// Returns true if a process with it may be in a sandbox that one with `own` started.
    pub fn exceeds(&self, own: &Confinement) -> bool {
        match (self.filters, own.filters) {
            _ if self.no_new_privs && !own.no_new_privs => true,
            (Some(filters), Some(own)) => filters > own,
            // Nothing distinguishes a job from the others.
            _ => own.no_new_privs,
        }
    }
}

/// Checks that the process at the other end is not inside the sandbox of a job: it is not confined more than this shim, or
/// below no shim but those that are above this one too.
pub fn is_outside(stream: &OwnedFd) -> bool {
    let pid = match sys::peer_pid(stream) {
        // It is beyond our PID namespace, and every job is in it.
        Some(0) => return true,
        Some(pid) => pid,
        None => return false,
    };
    let Some(confinement) = Confinement::of(pid) else { return false };
    let own = own_pid();
    if !confinement.exceeds(&Confinement::of(own).unwrap_or_default()) {
        return true;
    }
    let mut above = [0; MAX_DEPTH];
    let count = ancestors(own, &mut above).unwrap_or(0);
    let mut all = [0; MAX_DEPTH];
    let Some(len) = ancestors(pid, &mut all) else { return false };
    all[..len].iter().all(|pid| !tree::is_shim(*pid) || above[..count].contains(pid))
}

/// Lists the ancestors of a process. Returns their number. None: one of them could not be read, or there are more.
fn ancestors(pid: i32, all: &mut [i32; MAX_DEPTH]) -> Option<usize> {
    let mut at = tree::stat(pid)?.ppid;
    let mut len = 0;
    while at > 0 {
        *all.get_mut(len)? = at;
        len += 1;
        at = tree::stat(at)?.ppid;
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_confined_if_it_has_more_than_its_starter() {
        let of = |no_new_privs, filters| Confinement { no_new_privs, filters };
        for (client, own, exceeds) in [
            (of(false, Some(0)), of(false, Some(0)), false),
            (of(true, Some(0)), of(false, Some(0)), true),
            (of(true, Some(1)), of(true, Some(1)), false),
            (of(true, Some(2)), of(true, Some(1)), true),
            (of(false, None), of(false, None), false),
            (of(true, None), of(true, None), true),
        ] {
            assert_eq!(client.exceeds(&own), exceeds, "{client:?} {own:?}");
        }
        let text = b"Name:\tsh\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n";
        assert_eq!(Confinement::parse(text), of(true, Some(3)));
        assert_eq!(Confinement::parse(b"Name:\tNoNewPrivs:\t1\n"), of(false, None), "a name is not a field");
        assert!(Confinement::of(own_pid()).is_some());
    }

    #[test]
    fn a_process_of_the_same_tree_is_outside() {
        let (near, far) = std::os::unix::net::UnixStream::pair().expect("a pair");
        assert!(is_outside(&near.into()), "it is this process");
        drop(far);
    }
}
