//! The filter of system calls: a constant program for each set of calls that is watched.
//!
//! The kernel runs a new filter once for every system call number, so the numbers are a balanced tree: few steps each.

use libc::{c_long, sock_filter};
use toold_format::sandbox::NetworkFilter;

/// The longest program.
const MAX_LEN: usize = 200;
/// System calls have lower numbers.
const MAX_NUMBER: u32 = 512;

/// A program of the kernel's filter machine.
#[derive(Clone, Copy)]
pub struct Program {
    code: [sock_filter; MAX_LEN],
    len: usize,
}

impl Program {
    pub fn code(&self) -> &[sock_filter] {
        &self.code[..self.len]
    }
}

/// The calls that a filter passes to its listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    pub writes: bool,
    /// Signals to processes that may be outside of the job.
    pub signals: bool,
    pub network: NetworkFilter,
    /// There is a listener. Without one nothing is watched, and sockets that it would refuse are refused by the filter.
    pub listener: bool,
}

impl Watched {
    /// Returns true if a call can reach the listener.
    pub fn is_any(self) -> bool {
        self.listener && (self.writes || self.signals || self.network != NetworkFilter::Open)
    }

    /// Returns the program.
    pub fn program(self) -> &'static Program {
        let network = match self.network {
            NetworkFilter::Open => 0,
            NetworkFilter::Isolated | NetworkFilter::Loopback => 1,
            NetworkFilter::Refused => 2,
        };
        let of = |is_watched: bool| usize::from(self.listener && is_watched);
        &PROGRAMS[of(self.signals)][of(self.writes)][if self.listener { network } else { network / 2 * 3 }]
    }
}

/// By signals, then by writes, then by network: open, connections, sockets, sockets without a listener.
static PROGRAMS: [[[Program; 4]; 2]; 2] = [build_all(false), build_all(true)];

const fn build_all(signals: bool) -> [[Program; 4]; 2] {
    [
        [build(signals, false, 0), build(signals, false, 1), build(signals, false, 2), build(signals, false, 3)],
        [build(signals, true, 0), build(signals, true, 1), build(signals, true, 2), build(signals, true, 3)],
    ]
}

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

/// Refused in every sandbox: they reach around the filter or the mounts, or into the kernel.
const REFUSED: &[c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_open_by_handle_at,
    libc::SYS_pidfd_getfd,
    // A path would mean another file to the listener than to the program.
    libc::SYS_chroot,
];

pub const SYS_FCHMODAT2: c_long = 452;
pub const SYS_SETXATTRAT: c_long = 463;
pub const SYS_REMOVEXATTRAT: c_long = 466;

/// Calls that change files, by a path.
const WRITES: &[c_long] = &[
    libc::SYS_openat2,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
];

/// The same of an older time.
#[cfg(target_arch = "x86_64")]
const OLD_WRITES: &[c_long] = &[
    libc::SYS_creat,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(target_arch = "aarch64")]
const OLD_WRITES: &[c_long] = &[];

/// The number of `open`, which only some architectures have.
#[cfg(target_arch = "x86_64")]
pub const OPEN: c_long = libc::SYS_open;
#[cfg(target_arch = "aarch64")]
pub const OPEN: c_long = -1;

/// The blocks at the end of a program, in their order. A number leads to one of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Open,
    Openat,
    Socket,
    Prlimit,
    Sendto,
    Kill,
    Notify,
    Refuse,
    RefuseNetwork,
    NoCall,
    Allow,
}

/// The length of each block, in their order.
const BLOCK_LENS: [usize; 11] = [2, 2, 7, 6, 4, 3, 1, 1, 1, 1, 1];

const fn has(list: &[c_long], number: c_long) -> bool {
    let mut at = 0;
    while at < list.len() {
        if list[at] == number {
            return true;
        }
        at += 1;
    }
    false
}

/// Decides where a number leads. `network`: see `PROGRAMS`.
const fn block_of(number: c_long, signals: bool, writes: bool, network: usize) -> Block {
    if has(REFUSED, number) {
        Block::Refuse
    } else if number == libc::SYS_clone3 {
        // It can put a child into another control group, by flags that a filter cannot read. C libraries do without it.
        Block::NoCall
    } else if number == libc::SYS_prlimit64 {
        Block::Prlimit
    } else if number == libc::SYS_socket || number == libc::SYS_socketpair {
        Block::Socket
    } else if network == 1 && (number == libc::SYS_connect || number == libc::SYS_bind) {
        Block::Notify
    } else if network == 1 && number == libc::SYS_sendto {
        Block::Sendto
    } else if signals && number == libc::SYS_kill {
        Block::Kill
    } else if signals && number == libc::SYS_pidfd_send_signal {
        Block::Notify
    } else if writes && number == OPEN {
        Block::Open
    } else if writes && number == libc::SYS_openat {
        Block::Openat
    } else if writes && (has(WRITES, number) || has(OLD_WRITES, number)) {
        Block::Notify
    } else {
        Block::Allow
    }
}

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JUMP_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// The offset of the number, of the architecture, and of the lower half of an argument.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index + if cfg!(target_endian = "little") { 0 } else { 4 }
}
const fn upper(index: u32) -> u32 {
    argument(index) ^ 4
}

/// Flags of an open that can change something.
const WRITE_FLAGS: u32 = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) as u32;
/// Numbers of another ABI of the same architecture start here.
const X32: u32 = 0x4000_0000;

struct Builder {
    program: Program,
    /// The first numbers of ranges that lead to one block, and that block.
    starts: [u32; MAX_LEN],
    blocks: [Block; MAX_LEN],
    ranges: usize,
    /// The place of each block.
    places: [usize; 11],
}

const fn build(signals: bool, writes: bool, network: usize) -> Program {
    let nothing = sock_filter { code: 0, jt: 0, jf: 0, k: 0 };
    let mut builder = Builder {
        program: Program { code: [nothing; MAX_LEN], len: 0 },
        starts: [0; MAX_LEN],
        blocks: [Block::Allow; MAX_LEN],
        ranges: 0,
        places: [0; 11],
    };
    let mut number = 0;
    while number < MAX_NUMBER {
        let block = block_of(number as c_long, signals, writes, network);
        if builder.ranges == 0 || builder.blocks[builder.ranges - 1] as usize != block as usize {
            builder.starts[builder.ranges] = number;
            builder.blocks[builder.ranges] = block;
            builder.ranges += 1;
        }
        number += 1;
    }
    builder.places[0] = 4 + builder.ranges - 1;
    let mut at = 1;
    while at < BLOCK_LENS.len() {
        builder.places[at] = builder.places[at - 1] + BLOCK_LENS[at - 1];
        at += 1;
    }
    builder.put(LOAD, ARCHITECTURE, None, None);
    builder.put(JUMP_EQUAL, ARCH, None, Some(Block::NoCall));
    builder.put(LOAD, NUMBER, None, None);
    builder.put(JUMP_AT_LEAST, X32, Some(Block::NoCall), None);
    let ranges = builder.ranges;
    builder.tree(0, ranges);
    builder.put_blocks(network);
    builder.program
}

impl Builder {
    /// Adds an instruction. A jump without a block goes on to the next instruction.
    const fn put(&mut self, code: u16, k: u32, then: Option<Block>, otherwise: Option<Block>) {
        let at = self.program.len;
        let (jt, jf) = (self.distance(at, then), self.distance(at, otherwise));
        self.program.code[at] = sock_filter { code, jt, jf, k };
        self.program.len += 1;
    }

    const fn distance(&self, from: usize, to: Option<Block>) -> u8 {
        let Some(block) = to else { return 0 };
        let distance = self.places[block as usize] - from - 1;
        assert!(distance <= 255, "a jump is too long");
        distance as u8
    }

    /// Adds the comparisons of the ranges `from..to`, at least two.
    const fn tree(&mut self, from: usize, to: usize) {
        let middle = from + (to - from) / 2;
        let at = self.program.len;
        let left = if middle - from == 1 { Some(self.blocks[from]) } else { None };
        let right = if to - middle == 1 { Some(self.blocks[middle]) } else { None };
        self.put(JUMP_AT_LEAST, self.starts[middle], right, left);
        if left.is_none() {
            self.tree(from, middle);
        }
        if right.is_none() {
            self.program.code[at].jt = (self.program.len - at - 1) as u8;
            self.tree(middle, to);
        }
    }

    const fn put_blocks(&mut self, network: usize) {
        assert!(self.program.len == self.places[0], "the tree has one comparison fewer than ranges");
        // open(path, flags), openat(dir, path, flags)
        self.put(LOAD, argument(1), None, None);
        self.put(JUMP_ANY_BIT, WRITE_FLAGS, Some(Block::Notify), Some(Block::Allow));
        self.put(LOAD, argument(2), None, None);
        self.put(JUMP_ANY_BIT, WRITE_FLAGS, Some(Block::Notify), Some(Block::Allow));
        // socket(family, type, protocol)
        let internet = match network {
            2 => Block::Notify,
            3 => Block::RefuseNetwork,
            _ => Block::Allow,
        };
        self.put(LOAD, argument(0), None, None);
        self.put(JUMP_EQUAL, libc::AF_UNIX as u32, Some(Block::Allow), None);
        self.put(JUMP_EQUAL, libc::AF_INET as u32, Some(internet), None);
        self.put(JUMP_EQUAL, libc::AF_INET6 as u32, Some(internet), None);
        self.put(JUMP_EQUAL, libc::AF_NETLINK as u32, None, Some(Block::Refuse));
        self.put(LOAD, argument(2), None, None);
        self.put(JUMP_EQUAL, libc::NETLINK_ROUTE as u32, Some(Block::Allow), Some(Block::Refuse));
        // prlimit(pid, resource, new, old): reads of all, changes of its own
        self.put(LOAD, argument(0), None, None);
        self.put(JUMP_EQUAL, 0, Some(Block::Allow), None);
        self.put(LOAD, argument(2), None, None);
        self.put(JUMP_EQUAL, 0, None, Some(Block::Refuse));
        self.put(LOAD, upper(2), None, None);
        self.put(JUMP_EQUAL, 0, Some(Block::Allow), Some(Block::Refuse));
        // sendto(socket, bytes, length, flags, address, length)
        self.put(LOAD, argument(4), None, None);
        self.put(JUMP_EQUAL, 0, None, Some(Block::Notify));
        self.put(LOAD, upper(4), None, None);
        self.put(JUMP_EQUAL, 0, Some(Block::Allow), Some(Block::Notify));
        // kill(pid, signal): its own group, and all that it may signal, are no matter of others
        self.put(LOAD, argument(0), None, None);
        self.put(JUMP_EQUAL, 0, Some(Block::Allow), None);
        self.put(JUMP_EQUAL, u32::MAX, Some(Block::Allow), Some(Block::Notify));
        self.put(RETURN, libc::SECCOMP_RET_USER_NOTIF, None, None);
        self.put(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, None, None);
        self.put(RETURN, libc::SECCOMP_RET_ERRNO | libc::EACCES as u32, None, None);
        self.put(RETURN, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32, None, None);
        self.put(RETURN, libc::SECCOMP_RET_ALLOW, None, None);
    }
}

#[cfg(test)]
mod tests;
