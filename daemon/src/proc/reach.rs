//! The way to a shim: an abstract address, which ends at the border of a network namespace. A daemon in another one enters
//! that of the shim where it may, and reports why it cannot reach the shim where it may not.

use super::handle::Proc;
use crate::store::namespaces::{self, Namespaces};
use crate::store::record::Spec;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io;
use tokio::net::UnixStream;
use toold_shim::address;

/// Connects to the shim of a process.
pub fn connect(proc: &Proc, nonce: &[u8; 16]) -> io::Result<UnixStream> {
    let id = proc.spec.id.to_string();
    let socket = match address::connect_to(id.as_bytes(), nonce) {
        Err(Errno::CONNREFUSED) if !shares(&proc.spec, |is| is.net) => connect_there(proc, id, *nonce)?,
        other => other?,
    };
    UnixStream::from_std(std::os::unix::net::UnixStream::from(socket))
}

/// Connects from within the network namespace of the shim, on a thread that ends there. Only root may do that. The wait
/// is short: neither call blocks.
fn connect_there(proc: &Proc, id: String, nonce: [u8; 16]) -> io::Result<OwnedFd> {
    if !shares(&proc.spec, |is| is.pid) {
        return Err(Errno::CONNREFUSED.into());
    }
    let namespace = std::fs::File::open(format!("/proc/{}/ns/net", proc.published_state().shim_pid))?;
    let thread = std::thread::Builder::new().name("netns".into()).spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        address::connect_to(id.as_bytes(), &nonce)
    })?;
    Ok(thread.join().unwrap_or(Err(Errno::IO))?)
}

/// Checks that a shim and this daemon are in the same namespace. Records of earlier versions do not name theirs.
fn shares(spec: &Spec, kind: impl Fn(Namespaces) -> u64) -> bool {
    match (spec.namespaces, namespaces::own()) {
        (Some(there), Some(here)) => kind(there) == kind(here),
        (None, _) | (_, None) => true,
    }
}

/// Checks that the pids in the record of a process are those that this daemon sees.
pub fn shares_pids(spec: &Spec) -> bool {
    shares(spec, |is| is.pid)
}

/// Describes why a shim that lives cannot be reached from here, and what to do. None: it may answer soon.
pub fn explain(proc: &Proc) -> Option<String> {
    let (there, here) = (proc.spec.namespaces?, namespaces::own()?);
    if there.net == here.net {
        return None;
    }
    let enter = match shares_pids(&proc.spec) {
        true => format!("nsenter --net=/proc/{}/ns/net toold", proc.published_state().shim_pid),
        false => format!("in the namespaces net:[{}] and pid:[{}]", there.net, there.pid),
    };
    let killed = match shares_pids(&proc.spec) {
        true => "kill works, with SIGKILL",
        false => "it cannot be killed from here",
    };
    Some(format!(
        "its shim is in another network namespace (net:[{}]) than this daemon (net:[{}]) and cannot be reached; the process \
         goes on, its output and its end are recorded and shown, and {killed}; for anything else stop this daemon and start \
         it where the shim is: {enter}",
        there.net, here.net
    ))
}
