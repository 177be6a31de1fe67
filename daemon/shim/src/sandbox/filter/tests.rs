//! The filter, run as the kernel runs it.

use super::*;

/// Runs a program as the kernel does, and returns its answer.
fn run(program: &Program, number: u32, arch: u32, args: [u64; 6]) -> u32 {
    let (mut at, mut register) = (0, 0u32);
    loop {
        let step = program.code()[at];
        at += 1;
        let jump = |taken: bool| usize::from(if taken { step.jt } else { step.jf });
        match step.code {
            LOAD => {
                register = match step.k {
                    NUMBER => number,
                    ARCHITECTURE => arch,
                    k => (args[(k as usize - 16) / 8] >> (8 * ((k - 16) % 8))) as u32,
                }
            }
            JUMP_EQUAL => at += jump(register == step.k),
            JUMP_AT_LEAST => at += jump(register >= step.k),
            JUMP_ANY_BIT => at += jump(register & step.k != 0),
            RETURN => return step.k,
            code => panic!("unknown instruction {code}"),
        }
    }
}

fn answer(watched: Watched, number: c_long, args: [u64; 6]) -> u32 {
    run(watched.program(), number as u32, ARCH, args)
}

const NOTIFY: u32 = libc::SECCOMP_RET_USER_NOTIF;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const EACCES: u32 = libc::SECCOMP_RET_ERRNO | libc::EACCES as u32;
const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

fn all_watched() -> Vec<Watched> {
    let networks = [NetworkFilter::Open, NetworkFilter::Isolated, NetworkFilter::Loopback, NetworkFilter::Refused];
    let mut all = Vec::new();
    for network in networks {
        for bits in 0..8 {
            let (writes, listener, signals) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
            all.push(Watched { writes, signals, network, listener });
        }
    }
    all
}

#[test]
fn every_number_leads_to_its_block_in_every_program() {
    for watched in all_watched() {
        for number in 0..MAX_NUMBER as c_long {
            let given = answer(watched, number, [0; 6]);
            let is_refused = REFUSED.contains(&number);
            // With all arguments zero: family 0 is none that is allowed.
            let is_socket = [libc::SYS_socket, libc::SYS_socketpair].contains(&number);
            let is_write = WRITES.contains(&number) || OLD_WRITES.contains(&number);
            let is_connect = [libc::SYS_connect, libc::SYS_bind].contains(&number)
                && matches!(watched.network, NetworkFilter::Isolated | NetworkFilter::Loopback);
            let is_signal = watched.signals && number == libc::SYS_pidfd_send_signal;
            let expected = match () {
                () if is_refused || is_socket => EPERM,
                () if number == libc::SYS_clone3 => ENOSYS,
                () if watched.listener && is_signal => NOTIFY,
                () if watched.listener && (is_connect || watched.writes && is_write) => NOTIFY,
                () => ALLOW,
            };
            assert_eq!(given, expected, "{number} of {watched:?}");
        }
    }
}

#[test]
fn an_open_is_watched_by_its_flags() {
    let watched = Watched { writes: true, signals: false, network: NetworkFilter::Open, listener: true };
    let reads = [0, libc::O_CLOEXEC, libc::O_DIRECTORY | libc::O_PATH, libc::O_NONBLOCK];
    let writes = [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC, libc::O_WRONLY | libc::O_APPEND];
    for (flags, expected) in reads.map(|f| (f, ALLOW)).into_iter().chain(writes.map(|f| (f, NOTIFY))) {
        assert_eq!(answer(watched, libc::SYS_openat, [0, 9, flags as u64, 0, 0, 0]), expected, "{flags:o}");
    }
}

#[test]
fn sockets_of_other_families_are_refused_and_the_network_by_profile() {
    let open = Watched { writes: false, signals: false, network: NetworkFilter::Open, listener: true };
    let socket =
        |watched, family: i32, protocol: u64| answer(watched, libc::SYS_socket, [family as u64, 1, protocol, 0, 0, 0]);
    for (family, protocol, expected) in [
        (libc::AF_UNIX, 0, ALLOW),
        (libc::AF_INET, 0, ALLOW),
        (libc::AF_INET6, 0, ALLOW),
        (libc::AF_NETLINK, 0, ALLOW),
        (libc::AF_NETLINK, 9, EPERM),
        (libc::AF_VSOCK, 0, EPERM),
        (libc::AF_PACKET, 0, EPERM),
        (libc::AF_ALG, 0, EPERM),
    ] {
        assert_eq!(socket(open, family, protocol), expected, "{family}");
    }
    let refused = Watched { network: NetworkFilter::Refused, ..open };
    assert_eq!(socket(refused, libc::AF_INET, 0), NOTIFY);
    assert_eq!(socket(Watched { listener: false, ..refused }, libc::AF_INET, 0), EACCES);
    assert_eq!(socket(refused, libc::AF_UNIX, 0), ALLOW);
}

#[test]
fn limits_of_other_processes_and_foreign_numbers_are_refused() {
    let open = Watched { writes: false, signals: true, network: NetworkFilter::Isolated, listener: true };
    let prlimit = |pid: u64, new: u64| answer(open, libc::SYS_prlimit64, [pid, 7, new, 0, 0, 0]);
    assert_eq!([prlimit(0, 8), prlimit(7, 0), prlimit(7, 8), prlimit(7, 1 << 40)], [ALLOW, ALLOW, EPERM, EPERM]);
    let kill = |pid: i32| answer(open, libc::SYS_kill, [pid as u32 as u64, 15, 0, 0, 0, 0]);
    assert_eq!([kill(0), kill(-1), kill(7), kill(-7)], [ALLOW, ALLOW, NOTIFY, NOTIFY]);
    let sendto = |address: u64| answer(open, libc::SYS_sendto, [0, 0, 0, 0, address, 0]);
    assert_eq!([sendto(0), sendto(8), sendto(1 << 40)], [ALLOW, NOTIFY, NOTIFY]);
    assert_eq!(run(open.program(), 1, 0x4000_0003, [0; 6]), ENOSYS, "another architecture");
    assert_eq!(run(open.program(), X32 | 1, ARCH, [0; 6]), ENOSYS, "x32");
}
