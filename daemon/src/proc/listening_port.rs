//! Finds the members of a process tree that listen on TCP ports: matches the kernel's listening sockets with descriptors.

use super::{sock_diag, tree};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use toold_proto::results::Listener;

/// The time for which the ports of a tree are taken as known while no listening socket comes or goes: a socket that changes hands
/// is seen after it.
const CACHE_TIME: Duration = Duration::from_secs(10);

/// The state of a listening socket in /proc/net/tcp.
const LISTEN: &str = "0A";
/// Index of the inode among the fields of a line.
const INODE: usize = 9;

/// A listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    pub inode: u64,
    pub address: IpAddr,
    pub port: u16,
}

/// Finds the member of the tree below `shim` that listens on `port`, on any IPv4 or IPv6 address. Listeners outside the
/// tree do not count, nor members whose descriptors the kernel does not show to this daemon.
pub fn listener(shim: i32, port: u16) -> Option<Listener> {
    let mut sockets = ListeningSockets { only: Some(port), ..ListeningSockets::default() };
    let found = tree::descendants(shim).into_iter().find_map(|pid| Some((pid, sockets.held_by(pid).pop()?)));
    found.filter(|(pid, _)| tree::descendants(shim).contains(pid)).map(|(pid, socket)| socket.listener(pid))
}

/// Lists the sockets on which members of the tree below `shim` listen, by port. A socket that several members have open is
/// listed once, with the first of them.
pub fn listeners(shim: i32) -> Vec<Listener> {
    let mut sockets = ListeningSockets::default();
    let mut found: HashMap<u64, (i32, Socket)> = HashMap::new();
    for pid in tree::descendants(shim) {
        for socket in sockets.held_by(pid) {
            found.entry(socket.inode).or_insert((pid, socket));
        }
    }
    // A pid may have been reused while its descriptors were read.
    let still = tree::descendants(shim);
    let mut all: Vec<(i32, Socket)> = found.into_values().filter(|(pid, _)| still.contains(pid)).collect();
    all.sort_unstable_by_key(|(pid, socket)| (socket.port, socket.address, *pid));
    all.into_iter().map(|(pid, socket)| socket.listener(pid)).collect()
}

/// The listening sockets of the network namespaces that were looked at, each read once.
#[derive(Default)]
struct ListeningSockets {
    spaces: HashMap<PathBuf, HashMap<u64, Socket>>,
    /// Only those of this port. None: of all.
    only: Option<u16>,
}

impl ListeningSockets {
    /// Returns the ports on which these processes listen.
    fn ports(&mut self, members: &[i32]) -> Vec<u16> {
        let held = members.iter().flat_map(|pid| self.held_by(*pid));
        held.map(|socket| socket.port).collect::<BTreeSet<u16>>().into_iter().collect()
    }

    /// Returns the listening sockets that a process has open.
    fn held_by(&mut self, pid: i32) -> Vec<Socket> {
        // A descendant may live in another network namespace, with ports of its own.
        let Ok(space) = fs::read_link(format!("/proc/{pid}/ns/net")) else { return Vec::new() };
        let only = self.only;
        let sockets = match self.spaces.entry(space) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let sockets = if *new.key() == own_space() { listening_here(only) } else { listening(pid, only) };
                new.insert(sockets)
            }
        };
        if sockets.is_empty() {
            return Vec::new();
        }
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let inodes = fds.filter_map(|fd| inode(&fs::read_link(fd.path()).ok()?));
        inodes.filter_map(|inode| sockets.get(&inode).copied()).collect()
    }
}

/// The ports of all trees, for a caller that asks every second: as long as no listening socket has come or gone, the
/// descriptors of a thousand processes are not read again.
#[derive(Default)]
pub struct PortCache(Mutex<CachedPorts>);

#[derive(Default)]
struct CachedPorts {
    /// The time at which all trees count as new.
    expires: Option<Instant>,
    /// The listening sockets of the daemon's own network namespace.
    inodes: BTreeSet<u64>,
    /// The ports of the trees whose members are all in that namespace, by shim.
    ports: HashMap<i32, Vec<u16>>,
}

/// One look at the ports of many trees.
pub struct PortReader<'c> {
    cached: MutexGuard<'c, CachedPorts>,
    sockets: ListeningSockets,
    own_space: PathBuf,
}

impl PortCache {
    /// Begins a look. Others wait until it is dropped.
    pub fn read(&self) -> PortReader<'_> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (own_space, own) = (own_space(), listening_here(None));
        cached.refresh(own.keys().copied().collect(), Instant::now());
        let sockets = ListeningSockets { spaces: HashMap::from([(own_space.clone(), own)]), only: None };
        PortReader { cached, sockets, own_space }
    }
}

impl CachedPorts {
    /// Forgets what is known if these are other sockets than before, or the time is over.
    fn refresh(&mut self, inodes: BTreeSet<u64>, now: Instant) {
        if self.inodes != inodes || self.expires.is_none_or(|expires| now >= expires) {
            *self = CachedPorts { expires: Some(now + CACHE_TIME), inodes, ports: HashMap::new() };
        }
    }
}

impl PortReader<'_> {
    /// Returns the ports on which the members of the tree below `shim` listen.
    pub fn ports(&mut self, shim: i32, members: &[i32]) -> Vec<u16> {
        if let Some(ports) = self.cached.ports.get(&shim) {
            return ports.clone();
        }
        let ports = self.sockets.ports(members);
        let is_here =
            |pid: &i32| fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|space| space == self.own_space);
        if members.iter().all(is_here) {
            self.cached.ports.insert(shim, ports.clone());
        }
        ports
    }
}

impl Socket {
    fn listener(self, pid: i32) -> Listener {
        Listener { pid, port: self.port, address: self.address.to_string() }
    }
}

/// Returns the network namespace of the daemon.
fn own_space() -> PathBuf {
    fs::read_link("/proc/self/ns/net").unwrap_or_default()
}

/// Returns the sockets that listen in our own network namespace, by inode. `only`: those of this port.
fn listening_here(only: Option<u16>) -> HashMap<u64, Socket> {
    match sock_diag::listening() {
        Ok(all) => {
            let wanted = all.into_iter().filter(|socket| only.is_none_or(|port| socket.port == port));
            wanted.map(|socket| (socket.inode, socket)).collect()
        }
        // The kernel was built without it, or does not let us.
        Err(_) => listening(std::process::id() as i32, only),
    }
}

/// Reads the sockets that listen in the network namespace of `pid`, by inode. `only`: those of this port.
fn listening(pid: i32, only: Option<u16>) -> HashMap<u64, Socket> {
    let mut found = HashMap::new();
    for table in ["tcp", "tcp6"] {
        let Ok(file) = File::open(format!("/proc/{pid}/net/{table}")) else { continue };
        let lines = BufReader::new(file).lines().skip(1).map_while(Result::ok);
        // The kernel lists listening sockets before all others, so no connection is read.
        let listeners = lines.map_while(|line| parse(&line));
        let wanted = listeners.filter(|socket| only.is_none_or(|port| socket.port == port));
        found.extend(wanted.map(|socket| (socket.inode, socket)));
    }
    found
}

/// Parses a line. Returns None for a socket that does not listen, and for any other line.
fn parse(line: &str) -> Option<Socket> {
    let fields: Vec<&str> = line.split_ascii_whitespace().take(INODE + 1).collect();
    let (address, port) = fields.get(1)?.split_once(':')?;
    if *fields.get(3)? != LISTEN {
        return None;
    }
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(Socket { inode: fields.get(INODE)?.parse().ok()?, address: ip(address)?, port })
}

/// Parses an address as the kernel prints it: 32-bit groups in the machine's byte order, each as one hexadecimal
/// number.
fn ip(hex: &str) -> Option<IpAddr> {
    let groups = hex.as_bytes().chunks(8).map(|group| {
        let group = std::str::from_utf8(group).ok().filter(|group| group.len() == 8)?;
        u32::from_str_radix(group, 16).ok().map(u32::to_ne_bytes)
    });
    let bytes = groups.collect::<Option<Vec<[u8; 4]>>>()?.concat();
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|b| Ipv4Addr::from(b).into()),
        16 => <[u8; 16]>::try_from(bytes).ok().map(|b| Ipv6Addr::from(b).into()),
        // An address family of a later kernel.
        _ => None,
    }
}

/// Returns the inode of a descriptor that links to `socket:[inode]`.
fn inode(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::process::{Command, Stdio};

    #[test]
    fn a_line_of_the_kernels_table_gives_inode_address_and_port_of_a_listener() {
        // The groups are printed as this machine stores them; the samples are from a little-endian one.
        if cfg!(target_endian = "big") {
            return;
        }
        let v4 =
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1 0 100";
        let v6 = "   1: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A \
                  00000000:00000000 00:00000000 00000000     0        0 1234567 1 0 100 0 0 10 0";
        let connected = v4.replace(" 0A ", " 01 ");
        let socket = |inode, address: &str, port| address.parse().ok().map(|address| Socket { inode, address, port });
        assert_eq!(parse(v4), socket(77, "127.0.0.1", 8080));
        assert_eq!(parse(v6), socket(1_234_567, "::1", 22));
        assert_eq!(parse(&connected), None);
        assert_eq!(parse("  sl  local_address rem_address   st"), None);
    }

    #[test]
    fn both_ways_to_list_listening_sockets_agree() {
        let ours = ["127.0.0.1:0", "[::1]:0"].map(TcpListener::bind);
        let ports = ours.iter().flatten().map(|listener| listener.local_addr().expect("it is bound").port());
        for port in ports {
            let (asked, read) = (listening_here(Some(port)), listening(std::process::id() as i32, Some(port)));
            assert_eq!((asked.len(), &asked), (1, &read));
        }
    }

    #[test]
    fn known_ports_are_forgotten_when_a_listening_socket_comes_or_goes_and_after_a_time() {
        let start = Instant::now();
        let known = |inodes: &[u64], after_secs: u64| {
            let mut cached = CachedPorts::default();
            cached.refresh(BTreeSet::from([1, 2]), start);
            cached.ports.insert(7, vec![80]);
            cached.refresh(inodes.iter().copied().collect(), start + Duration::from_secs(after_secs));
            cached.ports.contains_key(&7)
        };
        assert_eq!([known(&[1, 2], 0), known(&[2, 1], 9)], [true, true]);
        assert_eq!([known(&[1], 1), known(&[1, 2, 3], 1), known(&[1, 2], 10)], [false, false, false]);
    }

    #[test]
    fn a_look_at_many_trees_finds_the_ports_of_each() {
        let ours = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (cache, own) = (PortCache::default(), std::process::id() as i32);
        let port = ours.local_addr().expect("it is bound").port();
        let mut reader = cache.read();
        assert_eq!(reader.ports(1, &[]), Vec::<u16>::new());
        assert!(reader.ports(2, &[own]).contains(&port));
        assert_eq!(reader.ports(1, &[own]), Vec::<u16>::new(), "it is known, and not read again");
    }

    #[test]
    fn a_listener_of_this_process_does_not_count_for_its_child() {
        let ours = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = ours.local_addr().expect("it is bound").port();
        let own = std::process::id() as i32;
        let mut sockets = ListeningSockets { only: Some(port), ..ListeningSockets::default() };
        let held: Vec<Listener> = sockets.held_by(own).into_iter().map(|socket| socket.listener(own)).collect();
        assert_eq!(held, [Listener { pid: own, port, address: "127.0.0.1".into() }]);
        assert!(ListeningSockets::default().ports(&[own]).contains(&port));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat can be started");
        assert_eq!(listener(own, port), None, "the listener is ours, not our child's");
        assert!(listeners(own).iter().all(|listener| listener.port != port));
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
    }
}
