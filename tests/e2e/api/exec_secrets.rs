//! A job cannot read what daemon, zygote and shims know: their environment, their memory, their descriptors.

use crate::api::events::until;
use serde_json::json;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use toold_test_support::output::output_of;
use toold_test_support::procfs;
use toold_test_support::rig::{Daemon, OTHER_UID, id, skip_unless};
use toold_test_support::sys;

/// The two ways a shim starts.
const MODES: [&str; 2] = ["", "shim = \"exec\"\n"];
const SECRET: &str = "s3cret-of-the-daemon";

/// Runs shell text to its end and returns the output.
fn output(d: &Daemon, script: &str) -> String {
    let process = d.sh(script);
    d.closed(&process);
    d.text(&process)
}

/// The pids of daemon, zygote if there is one, spares, and the shim of a process.
fn own_processes(d: &Daemon, process: &str) -> Vec<i32> {
    let shim = d.ok("inspect", json!({ "id": process }))["shim_pid"].as_i64().unwrap() as i32;
    let zygote = d.ok("daemon.info", json!({}))["features"]["zygote_pid"].as_i64().map(|pid| pid as i32);
    let spares = zygote.map(procfs::children).unwrap_or_default();
    [d.pid(), shim].into_iter().chain(zygote).chain(spares).collect()
}

/// Returns true if the writable memory of a process holds `text`.
fn memory_holds(pid: i32, text: &str) -> bool {
    memory_count(pid, text) > 0
}

/// Counts how often the writable memory of a process holds `text`.
fn memory_count(pid: i32, text: &str) -> usize {
    // A spare shim may end at any time, and its memory with it.
    let opened = (fs::read_to_string(format!("/proc/{pid}/maps")), fs::File::open(format!("/proc/{pid}/mem")));
    let (Ok(maps), Ok(mut memory)) = opened else { return 0 };
    let range = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        rest.starts_with("rw").then_some((number(start)?, number(end)?))
    };
    let pattern = regex::bytes::Regex::new(&regex::escape(text)).unwrap();
    let count = |(start, end)| {
        let mut bytes = vec![0; (end - start) as usize];
        let read = memory.seek(SeekFrom::Start(start)).and_then(|_| memory.read(&mut bytes));
        // Most pages are zero, and a search through them takes long.
        let mut searched = Vec::new();
        for page in bytes[..read.unwrap_or(0)].chunks(4096).filter(|page| **page != [0; 4096][..page.len()]) {
            searched.extend_from_slice(page);
        }
        pattern.find_iter(&searched).count()
    };
    maps.lines().filter_map(range).map(count).sum()
}

/// The files whose mappings a process shares: what it writes there is in the file. None of them may hold a value.
fn shared_files(pid: i32) -> Vec<std::path::PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let is_shared = |line: &&str| line.split(' ').nth(1).is_some_and(|rights| rights.ends_with('s'));
    let paths = maps.lines().filter(is_shared).filter_map(|line| line.find('/').map(|at| line[at..].into()));
    paths.filter(|path: &std::path::PathBuf| path.is_file()).collect()
}

#[test]
fn after_the_start_a_value_is_in_the_program_and_once_in_its_shim_and_nowhere_else() {
    // The broken code left it in the daemon's memory: in the buffer of the connection, and in freed blocks.
    const VALUE: &str = "hunter4-in-one-place-44";
    if skip_unless(sys::is_root(), "only root reads the memory of another process") {
        return;
    }
    for mode in MODES {
        let d = Daemon::start_with(mode, &[("RUST_LOG", "trace")]);
        let holds_it = |pid: i32| {
            let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let has = |bytes: Vec<u8>| bytes.windows(VALUE.len()).any(|window| window == VALUE.as_bytes());
            has(read("environ"))
                || has(read("cmdline"))
                || shared_files(pid).iter().any(|path| has(fs::read(path).unwrap()))
        };
        // A small one and one that is larger than the arena of a shim, with escapes, which a parser copies.
        for padding in [String::new(), "x\n\"".repeat(40_000)] {
            let env = json!({ "MY_PASSWORD": VALUE, "PADDED": format!("{padding}{VALUE}"), "PATH": "/usr/bin:/bin" });
            let mut client = d.conn();
            let started = client.call(
                "exec",
                json!({
                    "argv": ["/bin/sleep", "1000"], "env": env, "env_mode": "replace", "yield_ms": 1, "request_id": "r1"
                }),
            );
            let process = id(&started.unwrap());
            let program = d.process(&process)["pid"].as_i64().unwrap() as i32;
            assert!(memory_holds(program, VALUE), "{mode}: the search finds what is there");
            let shim = d.ok("inspect", json!({ "id": process }))["shim_pid"].as_i64().unwrap() as i32;
            for pid in own_processes(&d, &process) {
                let expected = if pid == shim { 2 } else { 0 };
                let what = format!("{mode} {} {}", procfs::name(pid), padding.len());
                d.eventually(&what, || memory_count(pid, VALUE) == expected);
                assert!(!holds_it(pid), "{what}");
            }
            for file in toold_test_support::rig::files(&d.state()) {
                let bytes = fs::read(&file).unwrap_or_default();
                assert!(!bytes.windows(VALUE.len()).any(|window| window == VALUE.as_bytes()), "{}", file.display());
            }
            assert!(!d.log().contains(VALUE));
            d.ok("kill", json!({ "id": process, "signal": "SIGKILL" }));
            d.closed(&process);
            d.eventually("the shim forgets it", || {
                fs::metadata(format!("/proc/{shim}")).is_err() || memory_count(shim, VALUE) == 0
            });
            d.ok("forget", json!({ "ids": [process] }));
        }
    }
}

#[test]
fn no_secret_of_the_daemon_is_in_an_environment_block_or_in_the_memory_of_a_shim() {
    if skip_unless(sys::is_root(), "only root reads the memory of another process") {
        return;
    }
    for mode in MODES {
        let d = Daemon::start_with(mode, &[("API_TOKEN", SECRET)]);
        // The broken code left it there: a job that `clean` kept it from read it in /proc/$PPID/environ.
        let process = d.sh("tr '\\0' '\\n' < /proc/$PPID/environ; exec sleep 1000");
        for pid in own_processes(&d, &process) {
            let block = String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/environ")).unwrap()).into_owned();
            assert!(!block.contains(SECRET), "{mode} {}: {block}", procfs::name(pid));
            assert!(pid == d.pid() || !memory_holds(pid, SECRET), "{mode} {}", procfs::name(pid));
        }
        assert!(!d.text(&process).contains(SECRET), "{mode}");
        let own = d.ok("exec", json!({ "argv": ["/usr/bin/env"], "env_mode": "inherit" }));
        d.closed(&id(&own));
        assert!(d.text(&id(&own)).contains(SECRET), "{mode}: `inherit` still passes it on");
    }
}

#[test]
fn the_daemon_forgets_a_value_in_every_framing() {
    if skip_unless(sys::is_root(), "only root reads the memory of another process") {
        return;
    }
    let d = Daemon::start();
    for (framing, head) in [("headers", ""), ("http", "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n")] {
        let value = format!("hunter5-by-{framing}-55");
        let params = json!({ "argv": ["/bin/sleep", "1000"], "env": { "MY_PASSWORD": value }, "env_mode": "replace" });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "exec", "params": params }).to_string();
        let mut stream = std::os::unix::net::UnixStream::connect(d.socket()).unwrap();
        write!(stream, "{head}Content-Length: {}\r\n\r\n{call}", call.len()).unwrap();
        let mut answer = Vec::new();
        while !answer.windows(8).any(|window| window == b"\"result\"") {
            let mut part = [0; 4096];
            let len = stream.read(&mut part).unwrap();
            assert!(len > 0, "{framing}: {}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&part[..len]);
        }
        // The connection of the first is still open: a library reads the second, and frees its buffers at the end.
        if framing == "http" {
            let _ = stream.read_to_end(&mut answer);
            drop(stream);
        }
        d.eventually(framing, || !memory_holds(d.pid(), &value));
    }
}

#[test]
fn a_job_of_the_same_user_reads_nothing_of_daemon_zygote_and_shims_and_is_readable_itself() {
    if skip_unless(sys::is_root(), "only root starts a daemon of another user") {
        return;
    }
    for mode in MODES {
        let mut d = Daemon::prepare(mode, &[("API_TOKEN", SECRET)]);
        d.give_to_other_user();
        d.spawn();
        let process = d.sh("exec sleep 1000");
        let pids = own_processes(&d, &process);
        let pids = pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let script = format!(
            "id -u; for p in $PPID {pids}; do cat /proc/$p/environ /proc/$p/maps /proc/$p/mem 2>/dev/null; \
             ls /proc/$p/fd /proc/$p/exe 2>/dev/null; done; grep -zc . /proc/self/environ"
        );
        let env = json!({ "env_mode": "replace", "env": { "PATH": "/usr/bin:/bin", "A": "1" } });
        let look = id(&d.sh_with(&script, env));
        d.closed(&look);
        // The broken code printed the environment of each. Its own environment is readable: two variables, and PWD.
        assert_eq!(d.text(&look), format!("{OTHER_UID}\n3\n"), "{mode}");
    }
}

#[test]
fn a_daemon_that_is_not_root_still_sees_what_it_needs() {
    if skip_unless(sys::is_root(), "only root starts a daemon of another user") {
        return;
    }
    for mode in MODES {
        let mut d = Daemon::prepare(mode, &[]);
        d.give_to_other_user();
        d.spawn();
        // It cannot list the shim's descriptors, by which it found the pipe that a program waits for.
        let other = id(&d.sh_with("sleep 1000 | cat", json!({ "stdin": "pipe" })));
        let cat = id(&d.ok("exec", json!({ "argv": ["cat"], "stdin": "pipe" })));
        let event = until(&d, "c", json!({ "types": ["needs_input"] }));
        assert_eq!((&event["id"], &event["pid"]), (&json!(cat), &d.process(&cat)["pid"]), "{mode}");
        d.restart();
        let tree = d.ok("inspect", json!({ "id": other }))["tree"].as_array().unwrap().len();
        assert!(tree >= 3, "{mode}: the tree is listed, {tree}");
        assert_eq!(d.ok("kill", json!({ "id": other }))["status"], "killed", "{mode}");
        assert_eq!(output(&d, "ulimit -c 0; kill -ABRT $$"), "", "{mode}");
        // And a client cannot list the daemon's, by which it found the socket.
        let (ctl, none) = (d.root().join("bin/toolctl"), d.root().join("run/none.sock"));
        let args = [ctl.display().to_string(), "--socket".into(), none.display().to_string()];
        let reuid = [format!("--reuid={OTHER_UID}"), format!("--regid={OTHER_UID}"), "--clear-groups".into()];
        let all: Vec<&str> = reuid.iter().chain(&args).map(String::as_str).chain(["list"]).collect();
        let listed = output_of(d.tool("setpriv", &all).spawn().unwrap());
        let named = format!("listens at {}", d.socket().display());
        assert!(listed.stderr.contains(&named), "{mode}: {listed:?}");
    }
}
