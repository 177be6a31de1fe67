//! The namespaces of a process's shim: its address means something in one network namespace only, its pid in one pid
//! namespace. Inode numbers identify namespaces while a process is in them, and a shim is.

use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespaces {
    pub net: u64,
    pub pid: u64,
}

/// Returns the namespaces of this daemon, which the shims that it starts inherit. None without /proc.
pub fn own() -> Option<Namespaces> {
    static OWN: OnceLock<Option<Namespaces>> = OnceLock::new();
    let inode = |kind: &str| std::fs::metadata(format!("/proc/self/ns/{kind}")).ok().map(|found| found.ino());
    *OWN.get_or_init(|| Some(Namespaces { net: inode("net")?, pid: inode("pid")? }))
}
