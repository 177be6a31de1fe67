//! Decides which calls of a confined program the kernel is about to refuse.

use super::filter::{OPEN, SYS_FCHMODAT2, SYS_REMOVEXATTRAT, SYS_SETXATTRAT};
use super::listener::Rules;
use super::target::{self, NamedFile};
pub use super::target::{Span, TEXT_LEN, Text};
use libc::{c_int, c_long};
use rustix::fd::OwnedFd;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use toold_format::denials::Op;
use toold_format::sandbox::NetworkFilter;

/// The links in a row that are followed to a file that is not there: as many as the kernel follows.
const MAX_LINKS: usize = 40;

/// A call that is about to be refused.
pub struct Refusal {
    pub op: Op,
    pub errno: i32,
    pub target: Span,
    /// Empty: the program named the target itself.
    pub via: Span,
    /// The kernel would let it pass: the observer has to refuse it.
    pub by_observer: bool,
}

impl Refusal {
    fn of(op: Op, errno: i32, target: Span) -> Refusal {
        Refusal { op, errno, target, via: 0..0, by_observer: false }
    }
}

/// The effect of a call on a file.
#[derive(Clone, Copy)]
enum Act {
    /// Opens it with these flags.
    Open(c_int),
    /// Makes it.
    Make(Op),
    /// Removes it.
    Remove(Op),
    /// Gives its name to another file.
    Replace,
    /// Changes what is known about it, or its length. `follow`: of what a link leads to.
    Change { op: Op, follow: bool },
}

/// Returns true for a call that opens a socket.
pub fn is_socket(call: &libc::seccomp_notif) -> bool {
    [libc::SYS_socket, libc::SYS_socketpair].contains(&c_long::from(call.data.nr))
}

/// Finds what is about to be refused of a call: at most two files.
pub fn judge(
    call: &libc::seccomp_notif,
    rules: &Rules,
    root: Option<&OwnedFd>,
    text: &mut Text<'_>,
    found: &mut [Option<Refusal>; 2],
) {
    let (number, args) = (c_long::from(call.data.nr), &call.data.args);
    match number {
        libc::SYS_connect => found[0] = judge_address(call, rules, Op::Connect, args[1], args[2], text),
        libc::SYS_bind => found[0] = judge_address(call, rules, Op::Bind, args[1], args[2], text),
        libc::SYS_sendto => found[0] = judge_address(call, rules, Op::Sendto, args[4], args[5], text),
        libc::SYS_socket | libc::SYS_socketpair => found[0] = judge_socket(args, text),
        libc::SYS_openat2 if rules.has_guarded() && is_created_in_root(call) => {
            found[0] = text
                .push(b"openat2 with RESOLVE_IN_ROOT")
                .map(|target| Refusal { by_observer: true, ..Refusal::of(Op::Create, libc::ENOSYS, target) });
        }
        // The others change files.
        _ => {
            let Some(root) = root else { return };
            for (place, file) in found.iter_mut().zip(files(call)) {
                let Some((dir, address, act)) = file else { continue };
                *place =
                    NamedFile::read(call.pid, dir, address, root).and_then(|file| judge_file(&file, act, rules, text));
            }
        }
    }
}

/// Returns true for an open that makes a file, with a path that means another file than elsewhere.
fn is_created_in_root(call: &libc::seccomp_notif) -> bool {
    let mut how = [0u8; 24];
    let number = |at: usize, how: &[u8; 24]| u64::from_le_bytes(std::array::from_fn(|byte| how[at + byte]));
    target::read_memory(call.pid, call.data.args[2], &mut how) == Some(how.len())
        && number(0, &how) & libc::O_CREAT as u64 != 0
        && number(16, &how) & libc::RESOLVE_IN_ROOT != 0
}

/// A file of a call: the descriptor of the directory, the address of the path, and what is done to it.
type CalledFile = Option<(c_int, u64, Act)>;

/// Lists the files of a call. The arguments of each call are in its manual page.
fn files(call: &libc::seccomp_notif) -> [CalledFile; 2] {
    let a = &call.data.args;
    let here = libc::AT_FDCWD;
    let dir = |index: usize| a[index] as c_int;
    let flags = |index: usize| a[index] as c_int;
    let follows = |flags: c_int| flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    let change = |op, follow| Act::Change { op, follow };
    let removal = |flags: c_int| Act::Remove(if flags & libc::AT_REMOVEDIR == 0 { Op::Unlink } else { Op::Rmdir });
    let one = |dir, address, act| [Some((dir, address, act)), None];
    let number = c_long::from(call.data.nr);
    if number == OPEN {
        return one(here, a[0], Act::Open(flags(1)));
    }
    if let Some(files) = old_files(number, a) {
        return files;
    }
    match number {
        libc::SYS_openat => one(dir(0), a[1], Act::Open(flags(2))),
        libc::SYS_openat2 => {
            let mut how = [0u8; 8];
            match target::read_memory(call.pid, a[2], &mut how) {
                Some(8) => one(dir(0), a[1], Act::Open(u64::from_le_bytes(how) as c_int)),
                _ => [None, None],
            }
        }
        libc::SYS_mkdirat => one(dir(0), a[1], Act::Make(Op::Mkdir)),
        libc::SYS_mknodat => one(dir(0), a[1], Act::Make(Op::Mknod)),
        libc::SYS_symlinkat => one(dir(1), a[2], Act::Make(Op::Symlink)),
        libc::SYS_linkat => one(dir(2), a[3], Act::Make(Op::HardLink)),
        libc::SYS_unlinkat => one(dir(0), a[1], removal(flags(2))),
        libc::SYS_renameat | libc::SYS_renameat2 => {
            [Some((dir(0), a[1], Act::Remove(Op::Rename))), Some((dir(2), a[3], Act::Replace))]
        }
        libc::SYS_truncate => one(here, a[0], change(Op::Truncate, true)),
        libc::SYS_fchmodat => one(dir(0), a[1], change(Op::Chmod, true)),
        SYS_FCHMODAT2 => one(dir(0), a[1], change(Op::Chmod, follows(flags(3)))),
        libc::SYS_fchownat => one(dir(0), a[1], change(Op::Chown, follows(flags(4)))),
        libc::SYS_utimensat => one(dir(0), a[1], change(Op::Utime, follows(flags(3)))),
        libc::SYS_setxattr => one(here, a[0], change(Op::Setxattr, true)),
        libc::SYS_lsetxattr => one(here, a[0], change(Op::Setxattr, false)),
        libc::SYS_removexattr => one(here, a[0], change(Op::Removexattr, true)),
        libc::SYS_lremovexattr => one(here, a[0], change(Op::Removexattr, false)),
        SYS_SETXATTRAT => one(dir(0), a[1], change(Op::Setxattr, follows(flags(2)))),
        SYS_REMOVEXATTRAT => one(dir(0), a[1], change(Op::Removexattr, follows(flags(2)))),
        // The filter passes no other call.
        _ => [None, None],
    }
}

/// The same for the calls of an older time.
#[cfg(target_arch = "x86_64")]
fn old_files(number: c_long, a: &[u64; 6]) -> Option<[CalledFile; 2]> {
    let here = libc::AT_FDCWD;
    let act = match number {
        libc::SYS_creat => Act::Open(libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC),
        libc::SYS_mkdir => Act::Make(Op::Mkdir),
        libc::SYS_mknod => Act::Make(Op::Mknod),
        libc::SYS_unlink => Act::Remove(Op::Unlink),
        libc::SYS_rmdir => Act::Remove(Op::Rmdir),
        libc::SYS_chmod => Act::Change { op: Op::Chmod, follow: true },
        libc::SYS_chown => Act::Change { op: Op::Chown, follow: true },
        libc::SYS_lchown => Act::Change { op: Op::Chown, follow: false },
        libc::SYS_utime | libc::SYS_utimes => Act::Change { op: Op::Utime, follow: true },
        libc::SYS_futimesat => {
            return Some([Some((a[0] as c_int, a[1], Act::Change { op: Op::Utime, follow: true })), None]);
        }
        libc::SYS_rename => {
            return Some([Some((here, a[0], Act::Remove(Op::Rename))), Some((here, a[1], Act::Replace))]);
        }
        libc::SYS_link => return Some([Some((here, a[1], Act::Make(Op::HardLink))), None]),
        libc::SYS_symlink => return Some([Some((here, a[1], Act::Make(Op::Symlink))), None]),
        _ => return None,
    };
    Some([Some((here, a[0], act)), None])
}

#[cfg(target_arch = "aarch64")]
fn old_files(_number: c_long, _a: &[u64; 6]) -> Option<[CalledFile; 2]> {
    None
}

fn judge_file(file: &NamedFile<'_>, act: Act, rules: &Rules, text: &mut Text<'_>) -> Option<Refusal> {
    if file.is_in_proc() {
        // A name there means something else to every process. Only what must not be made is refused.
        return match act {
            Act::Open(flags) if flags & libc::O_CREAT != 0 => judge_guarded(file, Op::Create, rules, text),
            Act::Make(op) => judge_guarded(file, op, rules, text),
            Act::Replace => judge_guarded(file, Op::Rename, rules, text),
            Act::Open(_) | Act::Remove(_) | Act::Change { .. } => None,
        };
    }
    match act {
        Act::Open(flags) => judge_open(file, flags, rules, text),
        Act::Make(op) => match file.open(false) {
            // It is there already, and that error comes first.
            Ok(_) => None,
            Err(_) => judge_entry(file, op, rules, text).or_else(|| judge_guarded(file, op, rules, text)),
        },
        Act::Remove(op) => {
            let there = file.open(false).ok()?;
            judge_entry(file, op, rules, text).or_else(|| judge_mount(&there, op, rules, text))
        }
        Act::Replace => {
            let there = file.open(false).ok();
            judge_entry(file, Op::Rename, rules, text)
                .or_else(|| there.and_then(|there| judge_mount(&there, Op::Rename, rules, text)))
                .or_else(|| judge_guarded(file, Op::Rename, rules, text))
        }
        Act::Change { op, follow } => {
            let there = file.open(follow).ok()?;
            let errno = match (rules.has_mounts, op) {
                (true, _) => target::is_read_only(&there).then_some(libc::EROFS)?,
                (false, Op::Truncate) => unlisted_error(&there, rules, text)?,
                // Landlock does not refuse it.
                (false, _) => return None,
            };
            refuse(file, op, errno, &there, None, text)
        }
    }
}

fn judge_open(file: &NamedFile<'_>, flags: c_int, rules: &Rules, text: &mut Text<'_>) -> Option<Refusal> {
    let follow = flags & libc::O_NOFOLLOW == 0;
    match file.open(follow) {
        Ok(_) if flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0 => None,
        Ok(there) => {
            let writes = flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0;
            let errno = writes.then(|| entry_error(&there, rules, text)).flatten()?;
            refuse(file, Op::Open, errno, &there, None, text)
        }
        Err(_) if flags & libc::O_CREAT != 0 => judge_create(file, follow, rules, text),
        Err(_) => None,
    }
}

/// Judges an open that makes its file. A link that leads to a file that is not there makes that one.
fn judge_create(file: &NamedFile<'_>, follow: bool, rules: &Rules, text: &mut Text<'_>) -> Option<Refusal> {
    match follow.then(|| file.open(false).ok()).flatten() {
        Some(link) => judge_create_through(file, &link, rules, text),
        None => judge_made(file, rules, text),
    }
}

/// The same through a link. Apart, because of the memory that it needs on the stack.
#[cold]
#[inline(never)]
fn judge_create_through(file: &NamedFile<'_>, link: &OwnedFd, rules: &Rules, text: &mut Text<'_>) -> Option<Refusal> {
    let mut end = file.through(link)?;
    for _ in 0..MAX_LINKS {
        match end.open(false) {
            Ok(link) => end = end.through(&link)?,
            Err(_) => break,
        }
    }
    let refusal = judge_made(&end, rules, text)?;
    Some(Refusal { via: text.push(file.path())?, ..refusal })
}

/// Judges the file that an open makes.
fn judge_made(file: &NamedFile<'_>, rules: &Rules, text: &mut Text<'_>) -> Option<Refusal> {
    judge_entry(file, Op::Create, rules, text).or_else(|| judge_guarded(file, Op::Create, rules, text))
}

/// Judges a call that makes a protected path, which does not exist: nothing can be mounted on it.
fn judge_guarded(file: &NamedFile<'_>, op: Op, rules: &Rules, text: &mut Text<'_>) -> Option<Refusal> {
    rules.is_guarded_name(file.name()).then_some(())?;
    let refusal = match file.open_parent() {
        Ok(parent) => refuse(file, op, libc::EROFS, &parent, Some(file.name()), text)?,
        // The way there cannot be followed from here: it may lead anywhere.
        Err(_) if file.is_unclear() => {
            let target = text.push(file.path())?;
            return Some(Refusal { by_observer: true, ..Refusal::of(op, libc::EROFS, target) });
        }
        // There is no such directory.
        Err(_) => return None,
    };
    rules.is_guarded(text.get(&refusal.target)).then_some(Refusal { by_observer: true, ..refusal })
}

/// Judges a change of the directory that a file is in.
fn judge_entry(file: &NamedFile<'_>, op: Op, rules: &Rules, text: &mut Text<'_>) -> Option<Refusal> {
    let parent = file.open_parent().ok()?;
    let errno = entry_error(&parent, rules, text)?;
    refuse(file, op, errno, &parent, Some(file.name()), text)
}

/// Judges a change of the name of a file on which something is mounted: that is how directories with protected paths stay.
fn judge_mount(there: &OwnedFd, op: Op, rules: &Rules, text: &mut Text<'_>) -> Option<Refusal> {
    (rules.has_mounts && target::is_mount_root(there)).then_some(())?;
    let path = target::path_of(there, text)?;
    Some(Refusal::of(op, libc::EBUSY, path))
}

/// Returns the error with which the sandbox refuses to write to a file. None: it does not, whatever else may.
fn entry_error(file: &OwnedFd, rules: &Rules, text: &mut Text<'_>) -> Option<i32> {
    match (rules.has_mounts, target::write_error(file)) {
        (true, Some(libc::EROFS)) => Some(libc::EROFS),
        // Permissions of the file itself, and not of the sandbox.
        (_, Some(_)) | (true, None) => None,
        (false, None) => unlisted_error(file, rules, text),
    }
}

fn unlisted_error(file: &OwnedFd, rules: &Rules, text: &mut Text<'_>) -> Option<i32> {
    let path = target::path_of(file, text)?;
    (!rules.is_writable(text.get(&path))).then_some(libc::EACCES)
}

/// Describes a refusal: `name` in the directory `there`, or `there` itself.
fn refuse(
    file: &NamedFile<'_>,
    op: Op,
    errno: i32,
    there: &OwnedFd,
    name: Option<&[u8]>,
    text: &mut Text<'_>,
) -> Option<Refusal> {
    let mut target = target::path_of(there, text)?;
    if let Some(name) = name {
        if text.get(&target) != b"/" {
            target.end = text.push(b"/")?.end;
        }
        target.end = text.push(name)?.end;
    }
    // Blanks of a path, such as `//` and `./`, make it another one too: only a link is worth a field.
    let is_link = !is_same_path(file.path(), text.get(&target));
    let via = if is_link { text.push(file.path())? } else { 0..0 };
    Some(Refusal { via, ..Refusal::of(op, errno, target) })
}

/// Compares a path that may have `.`, `..` and several slashes in a row with one that has not.
fn is_same_path(named: &[u8], resolved: &[u8]) -> bool {
    let mut parts = [&[][..]; 64];
    let mut len = 0usize;
    for part in named.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".") {
        if part == b".." {
            len = len.saturating_sub(1);
        } else if len < parts.len() {
            parts[len] = part;
            len += 1;
        }
    }
    parts[..len].iter().copied().eq(resolved.split(|byte| *byte == b'/').filter(|part| !part.is_empty()))
}

// ---- network ----

fn judge_socket(args: &[u64; 6], text: &mut Text<'_>) -> Option<Refusal> {
    let family = if args[0] as c_int == libc::AF_INET6 { "inet6" } else { "inet" };
    let kind = match args[1] as c_int & 0xf {
        libc::SOCK_STREAM => "stream",
        libc::SOCK_DGRAM => "datagram",
        _ => "raw",
    };
    let target = text.print(format_args!("{family} {kind}"))?;
    Some(Refusal::of(Op::Socket, libc::EACCES, target))
}

/// Judges the address at `address` of a call that connects, sends or binds.
fn judge_address(
    call: &libc::seccomp_notif,
    rules: &Rules,
    op: Op,
    address: u64,
    len: u64,
    text: &mut Text<'_>,
) -> Option<Refusal> {
    let mut bytes = [0u8; 128];
    let len = (len as usize).min(bytes.len());
    let len = target::read_memory(call.pid, address, &mut bytes[..len])?;
    let bytes = &bytes[..len];
    let family = c_int::from(u16::from_ne_bytes([*bytes.first()?, *bytes.get(1)?]));
    let port = || Some(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]));
    let (errno, target) = match family {
        libc::AF_INET => {
            let ip = Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?);
            (address_error(IpAddr::V4(ip), op, rules.network)?, text.print(format_args!("{ip}:{}", port()?))?)
        }
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?);
            let way = ip.to_canonical();
            (address_error(way, op, rules.network)?, text.print(format_args!("[{ip}]:{}", port()?))?)
        }
        libc::AF_UNIX if op == Op::Bind => return None,
        libc::AF_UNIX => {
            let path = bytes.get(2..)?.split(|byte| *byte == 0).next().filter(|path| path.first() == Some(&b'/'))?;
            rules.is_masked(path).then_some(())?;
            let target = text.push(path)?;
            let errno = if rules.is_mask(path) { libc::EACCES } else { libc::ENOENT };
            return Some(Refusal::of(op, errno, target));
        }
        // Other families cannot be opened.
        _ => return None,
    };
    Some(Refusal::of(op, errno, target))
}

/// Returns the error of a network namespace without a way out, by the kernel's rules. None: the sandbox does not refuse it.
fn address_error(ip: IpAddr, op: Op, network: NetworkFilter) -> Option<i32> {
    let is_near = ip.is_loopback() || ip.is_unspecified();
    match (network, op, ip) {
        (NetworkFilter::Loopback, ..) if is_near => None,
        (NetworkFilter::Loopback, Op::Bind, _) => Some(libc::EADDRNOTAVAIL),
        (NetworkFilter::Loopback, ..) => Some(libc::ENETUNREACH),
        // Without a device that is up every address of version 4 can be bound, and none is reached.
        (_, Op::Bind, IpAddr::V4(_)) => None,
        (_, Op::Bind, IpAddr::V6(_)) => (!ip.is_unspecified()).then_some(libc::EADDRNOTAVAIL),
        (_, Op::Sendto, IpAddr::V4(_)) if ip.is_unspecified() => None,
        (_, _, IpAddr::V4(_)) => Some(libc::ENETUNREACH),
        (_, _, IpAddr::V6(_)) => Some(libc::EADDRNOTAVAIL),
    }
}

#[cfg(test)]
mod tests {
    use super::is_same_path;

    #[test]
    fn only_a_link_makes_a_path_another_one() {
        for (named, resolved, same) in [
            ("/etc/x", "/etc/x", true),
            ("/etc//./x/", "/etc/x", true),
            ("/w/../etc/x", "/etc/x", true),
            ("/w/link", "/etc/x", false),
            ("/", "/", true),
        ] {
            assert_eq!(is_same_path(named.as_bytes(), resolved.as_bytes()), same, "{named}");
        }
    }
}
