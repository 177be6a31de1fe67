//! The blocks of a confinement: how a shim confines the program that it starts, and the namespaces that a spare makes for it.
//!
//! Both go from a program to itself, like the launch block, so they never cross versions.

use crate::launch::{StringList, split_list, split_string};
use std::ffi::CStr;

/// The numbers before the strings of a sandbox block.
const HEAD_LEN: usize = 52;
const RULESET: u32 = 1;
const USER: u32 = 2;
const NET: u32 = 4;
const INNER_USER: u32 = 8;
const MOUNT: u32 = 16;
const OBSERVE_WRITES: u32 = 32;
const JOINS_ONLY: u32 = 64;
const NETWORK_SHIFT: u32 = 8;
const NETWORK_MASK: u32 = 3;
const DEV: u32 = 1 << 10;
const IPC: u32 = 1 << 11;
const FDS: [u32; 7] = [RULESET, USER, NET, INNER_USER, MOUNT, DEV, IPC];

/// The identity of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileId {
    pub dev: u64,
    pub ino: u64,
}

/// The network calls that a filter watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NetworkFilter {
    /// The network of the machine: none is watched.
    #[default]
    Open,
    /// A network namespace without a way out: connections are watched.
    Isolated,
    /// A network namespace whose only way is the loopback: connections to elsewhere are watched.
    Loopback,
    /// No namespace: sockets of the network are refused.
    Refused,
}

/// The descriptors beside a launch frame, in the order of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SandboxFds<T> {
    pub ruleset: T,
    /// The user namespace of the session, which owns its network.
    pub user: T,
    pub net: T,
    /// The user namespace inside it, which owns the mounts.
    pub inner_user: T,
    pub mount: T,
    /// The `/dev` of the mounts: a terminal of the program is made there, so that it finds its name.
    pub dev: T,
    /// Shared memory, semaphores and queues of the session.
    pub ipc: T,
}

/// The confinement of a program, borrowed from its owner or from the bytes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxBlock<'a> {
    pub fds: SandboxFds<bool>,
    pub observe_writes: bool,
    /// The program joins namespaces and keeps all of its rights there: it is staged, and not confined.
    pub joins_only: bool,
    pub network: NetworkFilter,
    /// The working directory as it was judged. Zero: any.
    pub cwd: FileId,
    /// The private `/tmp` of its session, by which its jobs know each other: they may signal each other. Zero: it has none.
    pub session: FileId,
    /// The directories that may be written in. Only the observer reads them, where no mount shows it.
    pub writable: StringList<'a>,
    /// Paths that are hidden. Only the observer reads them.
    pub masked: StringList<'a>,
    /// Protected paths that do not exist. The observer refuses to make them.
    pub guarded: StringList<'a>,
    /// Paths that are in reach although they are below hidden ones. Only the observer reads them.
    pub reachable: StringList<'a>,
}

impl<T> SandboxFds<T> {
    pub fn into_array(self) -> [T; 7] {
        [self.ruleset, self.user, self.net, self.inner_user, self.mount, self.dev, self.ipc]
    }

    pub fn from_array([ruleset, user, net, inner_user, mount, dev, ipc]: [T; 7]) -> SandboxFds<T> {
        SandboxFds { ruleset, user, net, inner_user, mount, dev, ipc }
    }
}

impl SandboxBlock<'_> {
    pub fn encode(&self) -> Vec<u8> {
        let fds = self.fds.into_array().into_iter().zip(FDS).filter(|(has, _)| *has).map(|(_, bit)| bit).sum::<u32>();
        let writes = if self.observe_writes { OBSERVE_WRITES } else { 0 };
        let joins = if self.joins_only { JOINS_ONLY } else { 0 };
        let network = match self.network {
            NetworkFilter::Open => 0,
            NetworkFilter::Isolated => 1,
            NetworkFilter::Loopback => 2,
            NetworkFilter::Refused => 3,
        };
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(&(fds | writes | joins | network << NETWORK_SHIFT).to_le_bytes());
        out.extend_from_slice(&(self.writable.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.masked.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.guarded.len() as u32).to_le_bytes());
        for number in [self.cwd.dev, self.cwd.ino, self.session.dev, self.session.ino] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&(self.reachable.len() as u32).to_le_bytes());
        out.extend_from_slice(self.writable.as_bytes());
        out.extend_from_slice(self.masked.as_bytes());
        out.extend_from_slice(self.guarded.as_bytes());
        out.extend_from_slice(self.reachable.as_bytes());
        out
    }
}

impl<'a> SandboxBlock<'a> {
    /// Reads a block. None: cut short, counts that do not fit, or something that this version cannot enforce.
    pub fn decode(bytes: &'a [u8]) -> Option<SandboxBlock<'a>> {
        let (head, mut rest) = bytes.split_at_checked(HEAD_LEN)?;
        let u32_at = |at: usize| head.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        let u64_at = |at: usize| head.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
        let flags = u32_at(0)?;
        let network = match flags >> NETWORK_SHIFT & NETWORK_MASK {
            0 => NetworkFilter::Open,
            1 => NetworkFilter::Isolated,
            2 => NetworkFilter::Loopback,
            _ => NetworkFilter::Refused,
        };
        let known = FDS.iter().sum::<u32>() | OBSERVE_WRITES | JOINS_ONLY | NETWORK_MASK << NETWORK_SHIFT;
        if flags & !known != 0 {
            return None;
        }
        let block = SandboxBlock {
            fds: SandboxFds::from_array(FDS.map(|bit| flags & bit != 0)),
            observe_writes: flags & OBSERVE_WRITES != 0,
            joins_only: flags & JOINS_ONLY != 0,
            network,
            cwd: FileId { dev: u64_at(16)?, ino: u64_at(24)? },
            session: FileId { dev: u64_at(32)?, ino: u64_at(40)? },
            writable: split_list(&mut rest, u32_at(4)? as usize)?,
            masked: split_list(&mut rest, u32_at(8)? as usize)?,
            guarded: split_list(&mut rest, u32_at(12)? as usize)?,
            reachable: split_list(&mut rest, u32_at(48)? as usize)?,
        };
        rest.is_empty().then_some(block)
    }
}

/// Namespaces to make, as a block: a user namespace with a network, or one with mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamespaceBlock<'a> {
    pub kind: NamespaceKind,
    /// The text for `uid_map`.
    pub uid_map: &'a CStr,
    /// The text for `gid_map`.
    pub gid_map: &'a CStr,
    /// Groups cannot be changed inside: an ordinary user may map its own group only then.
    pub deny_setgroups: bool,
    pub mounts: MountList<'a>,
}

/// The namespaces that a spare makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceKind {
    /// Only a user namespace.
    User,
    /// User and network. `loopback`: its loopback device is up.
    Net { loopback: bool },
    /// User and mounts, inside the user namespace whose descriptor is beside the frame, if there is one.
    Mount,
}

/// A step that builds the mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountStep {
    /// Takes a copy of the tree at `path`, which must be the file that was judged, and keeps it for `Put`.
    Take,
    /// The same, and the copy is read-only.
    TakeReadOnly,
    /// Makes everything read-only.
    ReadOnly,
    /// Mounts the oldest copy that was taken at `path`.
    Put,
    /// The same, and first makes the directories to `path`: only below the private `/tmp`.
    PutNew,
    /// The same for a file below a mask, which is made first.
    PutFile,
    /// Mounts a directory on itself, so that it cannot be renamed.
    Anchor,
    /// Mounts a path on itself, read-only. It must be the file that was judged.
    Protect,
    /// Puts an empty directory over `path`, if it is there.
    MaskDir,
    /// The same, and first makes the directories to `path`: only below the private `/tmp`.
    MaskNew,
    /// Makes a mask read-only.
    Seal,
    /// Puts an empty file over `path`, if it is there.
    MaskFile,
    /// Puts a small `/dev` over that of the host.
    Dev,
    /// Opens the upper layer of an overlay, then the directory in which the kernel works on it.
    Layer,
    /// Makes an overlay of the last two layers on the directory at `path`, which must be the one that was judged, and keeps it for
    /// `Put`.
    TakeOverlay,
}

const MOUNT_STEPS: [MountStep; 15] = [
    MountStep::Take,
    MountStep::TakeReadOnly,
    MountStep::ReadOnly,
    MountStep::Put,
    MountStep::PutNew,
    MountStep::PutFile,
    MountStep::Anchor,
    MountStep::Protect,
    MountStep::MaskDir,
    MountStep::MaskNew,
    MountStep::Seal,
    MountStep::MaskFile,
    MountStep::Dev,
    MountStep::Layer,
    MountStep::TakeOverlay,
];

/// Steps in a row: kind u8, device u64, inode u64, path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MountList<'a> {
    bytes: &'a [u8],
}

/// A list of steps that grows.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub struct MountListBuf {
    bytes: Vec<u8>,
}

impl MountListBuf {
    /// Adds a step. The path may not contain NUL.
    pub fn push(&mut self, step: MountStep, id: FileId, path: &[u8]) {
        debug_assert!(!path.contains(&0), "the caller refuses paths with NUL");
        let code = MOUNT_STEPS.iter().position(|known| *known == step).unwrap_or_default();
        self.bytes.push(code as u8);
        self.bytes.extend_from_slice(&id.dev.to_le_bytes());
        self.bytes.extend_from_slice(&id.ino.to_le_bytes());
        self.bytes.extend_from_slice(path);
        self.bytes.push(0);
    }

    pub fn as_list(&self) -> MountList<'_> {
        MountList { bytes: &self.bytes }
    }
}

impl<'a> MountList<'a> {
    /// Returns the steps. None in place of one that is malformed: nothing follows it.
    pub fn iter(&self) -> impl Iterator<Item = Option<(MountStep, FileId, &'a CStr)>> + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let step = read_mount_step(&mut rest);
            if step.is_none() {
                rest = &[];
            }
            Some(step)
        })
    }
}

fn read_mount_step<'a>(rest: &mut &'a [u8]) -> Option<(MountStep, FileId, &'a CStr)> {
    let (head, paths) = rest.split_first_chunk::<17>()?;
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
    let step = *MOUNT_STEPS.get(usize::from(head[0]))?;
    let id = FileId { dev: number(1), ino: number(9) };
    *rest = paths;
    Some((step, id, split_string(rest)?))
}

impl NamespaceBlock<'_> {
    pub fn encode(&self) -> Vec<u8> {
        let kind = match self.kind {
            NamespaceKind::Net { loopback: false } => 0u8,
            NamespaceKind::Net { loopback: true } => 1,
            NamespaceKind::Mount => 2,
            NamespaceKind::User => 3,
        };
        let mut out = vec![kind, u8::from(self.deny_setgroups)];
        out.extend_from_slice(self.uid_map.to_bytes_with_nul());
        out.extend_from_slice(self.gid_map.to_bytes_with_nul());
        out.extend_from_slice(self.mounts.bytes);
        out
    }
}

impl<'a> NamespaceBlock<'a> {
    /// Reads a block. None: cut short, or malformed.
    pub fn decode(bytes: &'a [u8]) -> Option<NamespaceBlock<'a>> {
        let (head, mut rest) = bytes.split_first_chunk::<2>()?;
        let kind = match head[0] {
            0 => NamespaceKind::Net { loopback: false },
            1 => NamespaceKind::Net { loopback: true },
            2 => NamespaceKind::Mount,
            3 => NamespaceKind::User,
            _ => return None,
        };
        let (uid_map, gid_map) = (split_string(&mut rest)?, split_string(&mut rest)?);
        let mounts = MountList { bytes: rest };
        mounts.iter().all(|step| step.is_some()).then_some(())?;
        Some(NamespaceBlock { kind, uid_map, gid_map, deny_setgroups: head[1] != 0, mounts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::StringListBuf;

    #[test]
    fn a_sandbox_block_reads_back_and_any_cut_of_it_is_refused() {
        let [mut writable, mut masked, mut guarded, mut reachable] = [(); 4].map(|()| StringListBuf::default());
        writable.push(b"/home/u/w");
        masked.push(b"/run/docker.sock");
        guarded.push(b"/home/u/w/.git/commondir");
        reachable.push(b"/run/user/5/listed");
        let block = SandboxBlock {
            fds: SandboxFds {
                ruleset: true,
                user: false,
                net: true,
                inner_user: true,
                mount: true,
                dev: true,
                ipc: false,
            },
            observe_writes: true,
            joins_only: false,
            network: NetworkFilter::Refused,
            cwd: FileId { dev: 7, ino: 1 << 40 },
            session: FileId { dev: 8, ino: 9 },
            writable: writable.as_list(),
            masked: masked.as_list(),
            guarded: guarded.as_list(),
            reachable: reachable.as_list(),
        };
        let bytes = block.encode();
        assert_eq!(SandboxBlock::decode(&bytes), Some(block));
        for cut in 0..bytes.len() {
            assert_eq!(SandboxBlock::decode(&bytes[..cut]), None, "{cut}");
        }
        let unknown = [&[0x80], &bytes[1..]].concat();
        assert_eq!(SandboxBlock::decode(&unknown), None, "a measure of a later version");
    }

    #[test]
    fn a_namespace_block_reads_back_and_a_malformed_step_is_refused() {
        let mut mounts = MountListBuf::default();
        for step in MOUNT_STEPS {
            mounts.push(step, FileId { dev: 1, ino: 2 }, b"/a");
        }
        let kind = NamespaceKind::Mount;
        let (uid_map, gid_map) = (c"0 0 1\n", c"5 5 1\n");
        let block = NamespaceBlock { kind, uid_map, gid_map, deny_setgroups: true, mounts: mounts.as_list() };
        let bytes = block.encode();
        let read = NamespaceBlock::decode(&bytes).expect("whole");
        assert_eq!(read, block);
        assert_eq!(read.mounts.iter().flatten().map(|(step, _, _)| step).collect::<Vec<_>>(), MOUNT_STEPS);
        assert_eq!(NamespaceBlock::decode(&bytes[..bytes.len() - 1]), None, "a path without its end");
        let at = bytes.len() - 20;
        let strange = [&bytes[..at], &[200], &bytes[at + 1..]].concat();
        assert_eq!(NamespaceBlock::decode(&strange), None, "an unknown step");
    }
}
