//! The attributes that a program inherits: the same from the zygote and from a shim that was executed.

use serde_json::json;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::sys::refuse_calls;

/// Prints everything that a process inherits and /proc or a call shows.
const ATTRIBUTES: &str = r#"
import os, re, ctypes, signal
status = open("/proc/self/status").read()
for name in ["Umask", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
             "Speculation_Store_Bypass", "Cpus_allowed", "Mems_allowed", "THP_enabled", "Groups", "Uid", "Gid"]:
    print(name, re.findall(rf"^{name}:[ \t]*(.*)$", status, re.M))
print(open("/proc/self/limits").read())
for name in ["oom_score_adj", "timerslack_ns", "coredump_filter", "personality", "cgroup", "loginuid"]:
    try: print(name, open(f"/proc/self/{name}").read().strip())
    except OSError as e: print(name, e.errno)
print("nice", os.nice(0), "policy", os.sched_getscheduler(0), "io", ctypes.CDLL(None).syscall(252, 1, 0))
attr = (ctypes.c_uint64 * 8)()
ctypes.CDLL(None).syscall(315, 0, attr, 64, 0)
print("sched", list(attr))
print("fds", sorted(int(fd) for fd in os.listdir("/proc/self/fd")), "cwd", os.getcwd(), "pgrp", os.getpgrp() == os.getpid())
print("dumpable", ctypes.CDLL(None).prctl(3), "pdeath", signal.SIGKILL)
"#;

fn attributes(config: &str, before: &str) -> String {
    let mut d = Daemon::prepare(config, &[]);
    d.before = Some(before.into());
    d.spawn();
    let p = d.ok("exec", json!({ "argv": ["python3", "-S", "-c", ATTRIBUTES], "cwd": "/", "yield_ms": 60000 }));
    assert_eq!(d.closed(&id(&p))["exit_code"], 0, "{p}");
    d.text(&id(&p))
}

#[test]
fn a_program_inherits_the_same_from_the_zygote_and_from_an_executed_shim() {
    // As a service manager or a shell may start it: limits, a mask, priorities, ignored signals.
    let before = "ulimit -Sn 1000; umask 027; trap '' HUP USR1; exec 7</dev/null; exec nice -n 3 \"$0\" \"$@\"";
    for before in ["ulimit -Sn 1024", before] {
        let (zygote, exec) = (attributes("", before), attributes("shim = \"exec\"\n", before));
        // The broken code gave an executed shim's program the daemon's raised limit, its short timeslice, and two ignored
        // signals that `posix_spawn` leaves.
        assert_eq!(zygote, exec, "{before}");
        // Python ignores SIGPIPE and SIGXFSZ itself.
        assert!(zygote.contains("SigIgn ['0000000001001000']") && zygote.contains("dumpable 1"), "{zygote}");
        assert!(zygote.contains("fds [0, 1, 2, 3] "), "the fourth is the listing itself: {zygote}");
        assert!(zygote.contains(if before.contains("1000") { "1000 " } else { "1024 " }), "{zygote}");
    }
}

#[test]
fn without_close_range_a_program_inherits_no_descriptor_either() {
    for config in ["", "shim = \"exec\"\n"] {
        let mut d = Daemon::prepare(config, &[]);
        d.before = Some("exec 7</dev/null 8</dev/null 9</dev/null".into());
        let mut command = d.command();
        refuse_calls(&mut command, &[libc::SYS_close_range], libc::ENOSYS);
        d.spawn_as(command);
        let p = id(&d.ok("exec", json!({ "argv": ["ls", "/proc/self/fd"] })));
        d.closed(&p);
        // The broken code ignored that the call failed: programs had 7, 8 and 9 too. 3 is the listing itself.
        assert_eq!(d.text(&p), "0\n1\n2\n3\n", "{config}");
    }
}
