//! Process trees as /proc shows them: members, usage, and the end of a tree without an owner.

use crate::sys;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use toold_proto::ProcId;
use toold_proto::process::{Member, Usage};

/// Maximum number of members that are listed. The rest of a larger tree is not read.
const LISTED: usize = 4096;

/// The fields of /proc/PID/stat that are used here.
struct Stat {
    ppid: i32,
    pgrp: i32,
    session: i32,
    state: String,
    ticks_used: u64,
    threads: u64,
    started: u64,
    rss_pages: u64,
    comm: String,
}

fn stat(pid: i32) -> Option<Stat> {
    // One read gets all of it, and the size need not be asked for: a starting daemon reads a thousand of these.
    let mut text = [0u8; 2048];
    let len = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text[..len]);
    let (head, after) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
    Some(Stat {
        state: (*fields.first()?).to_string(),
        ppid: fields.get(1)?.parse().ok()?,
        pgrp: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        ticks_used: number(11) + number(12),
        threads: number(17),
        started: number(19),
        rss_pages: number(21),
        comm: head.split_once('(').map(|(_, c)| c.to_string()).unwrap_or_default(),
    })
}

/// The place of a process in the tree of all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parentage {
    pub ppid: i32,
    /// The start, in milliseconds since the boot.
    pub started_ms: u64,
}

pub fn parentage(pid: i32) -> Option<Parentage> {
    let stat = stat(pid)?;
    Some(Parentage { ppid: stat.ppid, started_ms: stat.started.saturating_mul(1000) / clock().0 })
}

/// Returns the id in the title of a shim.
pub fn id_of_shim(pid: i32) -> Option<ProcId> {
    let title = read_start(&format!("/proc/{pid}/cmdline"), MAX_COMMAND_LEN)?;
    let id = title.strip_prefix(b"toold: shim ")?.split(|byte| matches!(byte, 0 | b' ')).next()?;
    std::str::from_utf8(id).ok()?.parse().ok()
}

/// Returns the name of the program that a process runs. Empty: it has ended.
pub fn program(pid: i32) -> String {
    stat(pid).map(|stat| stat.comm).unwrap_or_default()
}

fn clock() -> (u64, u64) {
    // Both are constants of the running kernel: 100 and 4096 nearly everywhere.
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    (ticks, rustix::param::page_size() as u64)
}

/// The bytes of a command line that are read. The tree of one process may have thousands of members.
const MAX_COMMAND_LEN: u64 = 4096;

/// Reads the first `max` bytes of a file.
fn read_start(path: &str, max: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Describes one process. Returns None if there is no such process.
pub fn member(pid: i32) -> Option<Member> {
    let stat = stat(pid)?;
    let (hz, page) = clock();
    let command = read_start(&format!("/proc/{pid}/cmdline"), MAX_COMMAND_LEN).filter(|c| !c.is_empty());
    let command = command.map(|c| {
        let args = c.strip_suffix(b"\0").unwrap_or(&c).split(|b| *b == 0);
        args.map(|arg| String::from_utf8_lossy(arg).into_owned()).collect::<Vec<_>>().join(" ")
    });
    let rss_bytes = rss(pid, &stat, page);
    Some(Member {
        pid,
        ppid: stat.ppid,
        command: command.unwrap_or(stat.comm),
        state: stat.state,
        threads: stat.threads,
        cpu_ms: stat.ticks_used * 1000 / hz,
        rss_bytes,
    })
}

/// Returns the resident size. The kernel's quick count lags behind for a small process; the exact one is slower to
/// read.
fn rss(pid: i32, stat: &Stat, page: u64) -> u64 {
    match stat.rss_pages * page {
        0 if stat.state != "Z" => exact_rss(pid),
        quick => quick,
    }
}

fn exact_rss(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("Rss:"));
    line.and_then(|l| l.split_ascii_whitespace().next()).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let tasks = tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok());
    tasks.flat_map(|task| children_of(pid, task)).collect()
}

/// Lists the children of one thread.
fn children_of(pid: i32, task: i32) -> Vec<i32> {
    let mut text = Vec::with_capacity(1024);
    let file = std::fs::File::open(format!("/proc/{pid}/task/{task}/children"));
    let read = file.and_then(|mut file| file.read_to_end(&mut text));
    let text = if read.is_ok() { String::from_utf8_lossy(&text) } else { "".into() };
    text.split_ascii_whitespace().filter_map(|p| p.parse().ok()).collect()
}

/// Lists every descendant of `root`, without `root`.
pub fn descendants(root: i32) -> Vec<i32> {
    let mut all = children(root);
    let mut next = 0;
    while next < all.len() && all.len() < LISTED {
        let more = children(all[next]);
        all.extend(more);
        next += 1;
    }
    all
}

/// Counts the living processes below a shim. A shim that has no child costs one read.
pub fn count_below(shim: i32) -> u64 {
    let mut all = children_of(shim, shim);
    let (mut next, mut living) = (0, 0);
    while let Some(&pid) = all.get(next) {
        next += 1;
        living += u64::from(stat(pid).is_some_and(|stat| stat.state != "Z"));
        if all.len() < LISTED {
            all.extend(children(pid));
        }
    }
    living
}

/// Describes the tree below a shim.
pub fn members(shim: i32) -> Vec<Member> {
    descendants(shim).into_iter().filter_map(member).collect()
}

pub fn usage(members: &[Member]) -> Usage {
    Usage {
        processes: members.len() as u64,
        cpu_ms: members.iter().map(|m| m.cpu_ms).sum(),
        rss_bytes: members.iter().map(|m| m.rss_bytes).sum(),
    }
}

/// Sums the usage of the tree below a shim, faster than `usage`: no command line is read.
pub fn usage_below(shim: i32) -> Usage {
    usage_and_members(shim).0
}

/// Does the same, and returns the members too.
pub fn usage_and_members(shim: i32) -> (Usage, Vec<i32>) {
    let (hz, page) = clock();
    let mut sum = Usage::default();
    // A shim has one thread, as most programs: then no list of threads is read.
    let mut all = children_of(shim, shim);
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        next += 1;
        let Some(stat) = stat(pid) else { continue };
        sum.processes += 1;
        sum.cpu_ms += stat.ticks_used * 1000 / hz;
        sum.rss_bytes += rss(pid, &stat, page);
        if all.len() < LISTED {
            all.extend(if stat.threads == 1 { children_of(pid, pid) } else { children(pid) });
        }
    }
    (sum, all)
}

/// Returns the usage of this process itself.
pub fn own_usage() -> Usage {
    let own = member(std::process::id() as i32);
    usage(own.as_slice())
}

/// Opens a pidfd of the process with this pid and start time. Returns None if it is gone, or the pid belongs to another
/// process.
pub fn pin(pid: i32, ticks: u64) -> io::Result<Option<OwnedFd>> {
    if pid <= 0 {
        return Ok(None);
    }
    let pidfd = match sys::pidfd_open(pid).map_err(io::Error::from) {
        // Without a descriptor it is not known whether it runs.
        Err(e) if sys::is_transient(&e) => return Err(e),
        Err(_) => return Ok(None),
        Ok(pidfd) => pidfd,
    };
    // Checked after the pidfd was opened: the pid cannot be reused in between.
    Ok(stat(pid).is_some_and(|s| s.started == ticks).then_some(pidfd))
}

/// Returns true if the process with this pid and start time runs: it is neither gone, nor dead and not reaped yet.
pub fn is_running(pid: i32, ticks: u64) -> bool {
    stat(pid).is_some_and(|s| s.started == ticks && !is_dead(&s))
}

/// Returns true if this process is stopped by a signal or a tracer.
pub fn is_stopped(pid: i32, ticks: u64) -> bool {
    stat(pid).is_some_and(|s| s.started == ticks && matches!(s.state.as_str(), "T" | "t"))
}

/// Returns true if /proc shows this process: without it no tree can be found.
pub fn has_proc() -> bool {
    stat(std::process::id() as i32).is_some()
}

/// Opens a process for signals: a pidfd, or its directory in /proc, which the kernel takes too, for one that has no
/// `pidfd_open` or a filter that refuses it. Whatever is sent through it reaches that process or none.
fn pin_for_signals(pid: i32) -> Option<OwnedFd> {
    if let Ok(pidfd) = sys::pidfd_open(pid.max(1)) {
        return Some(pidfd);
    }
    std::fs::File::open(format!("/proc/{pid}")).ok().map(OwnedFd::from)
}

/// Continues a stopped shim: callers wait for it, and no client has a reason to stop it.
pub fn wake_shim(pid: i32) {
    let Some(pinned) = pin_for_signals(pid) else { return };
    if stat(pid).is_some_and(|s| s.comm == "toold-shim" && s.state == "T") {
        let _ = sys::pidfd_signal(pinned.as_fd(), libc::SIGCONT);
    }
}

/// Returns the pid and start time of the zygote that is the parent of a shim.
pub fn zygote_above(shim: i32) -> Option<(i32, u64)> {
    let parent = stat(shim).filter(|s| s.comm == "toold-shim")?.ppid;
    let zygote = stat(parent).filter(|s| s.comm == "toold-zygote")?;
    Some((parent, zygote.started))
}

/// The result of one try to kill a tree without its shim.
pub struct KilledBelow {
    /// SIGKILL was sent to at least one member.
    pub sent: bool,
    pub alive: Vec<i32>,
}

/// Kills the tree below a shim that cannot do it.
pub fn kill_below(shim: i32) -> KilledBelow {
    let below = descendants(shim);
    let mut sent = false;
    for pid in &below {
        let Some(pinned) = pin_for_signals(*pid) else { continue };
        if stat(*pid).is_some_and(|s| !is_dead(&s) && (s.ppid == shim || below.contains(&s.ppid))) {
            sent |= sys::pidfd_signal(pinned.as_fd(), libc::SIGKILL).is_ok();
        }
    }
    let alive = |pid: &i32| stat(*pid).is_some_and(|s| !is_dead(&s));
    KilledBelow { sent, alive: descendants(shim).into_iter().filter(alive).collect() }
}

fn is_dead(stat: &Stat) -> bool {
    matches!(stat.state.as_str(), "Z" | "X")
}

/// Finds the shim of a process by its title. Returns None if there is none or it has no title.
pub fn shim_of(id: &str) -> Option<i32> {
    let title = format!("toold: shim {id}");
    let pids = std::fs::read_dir("/proc").ok()?.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let shows =
        |pid: &i32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|c| c.starts_with(title.as_bytes()));
    pids.into_iter().find(shows)
}

/// Kills the rest of a session whose shim died. The pid still means this session while its leader lives with the known
/// start time or is dead: the kernel reuses a pid only when no process, group or session has it.
pub fn end_session(leader: i32, ticks: u64) {
    if stat(leader).is_some_and(|s| s.started != ticks) {
        return;
    }
    for _ in 0..8 {
        let members = session(leader);
        if members.is_empty() {
            return;
        }
        for pid in members {
            let Some(pinned) = pin_for_signals(pid) else { continue };
            if stat(pid).is_some_and(|s| s.session == leader || s.pgrp == leader) {
                let _ = sys::pidfd_signal(pinned.as_fd(), libc::SIGKILL);
            }
        }
    }
}

fn session(leader: i32) -> Vec<i32> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.flatten().filter_map(|e| e.file_name().to_str().and_then(|n| n.parse::<i32>().ok()));
    let of_it = |s: Stat| (s.session == leader || s.pgrp == leader) && s.state != "Z";
    pids.filter(|pid| stat(*pid).is_some_and(of_it)).collect()
}
