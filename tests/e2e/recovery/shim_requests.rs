//! Requests to a shim that no method of the daemon is needed for: the test takes the daemon's place at the shim's socket, and
//! writes the frames of docs/shim-protocol.md.

use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use toold_test_support::rig::{DEADLINE, Daemon, id};

const HELLO: u8 = 1;
const HOLD: u8 = 13;
const EXTEND_TIMEOUT: u8 = 20;
const POSITION: u8 = 21;
const WELCOME: u8 = 65;
const DONE: u8 = 72;
const AT_POSITION: u8 = 78;

/// The place of the nonce in a record.
const NONCE: std::ops::Range<usize> = 24..40;

/// A connection to a shim, as a later daemon has it.
struct Shim(UnixStream);

impl Shim {
    /// Connects to the shim of a process whose daemon is dead.
    fn connect(d: &Daemon, proc: &str) -> Shim {
        let record = fs::read(d.state().join("procs").join(proc).join("record")).unwrap();
        let nonce = &record[NONCE];
        let fnv1a = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        let hash = nonce.iter().fold(0xcbf2_9ce4_8422_2325, fnv1a);
        let address = SocketAddr::from_abstract_name(format!("toold/{proc}/{hash:016x}")).unwrap();
        let stream = UnixStream::connect_addr(&address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut shim = Shim(stream);
        shim.send(HELLO, &[nonce]);
        shim.answer(WELCOME);
        shim
    }

    fn send(&mut self, kind: u8, fields: &[&[u8]]) {
        let body = fields.concat();
        let header = [&(body.len() as u32).to_le_bytes()[..], &[1, kind, 0, 0]].concat();
        self.0.write_all(&[header, body].concat()).unwrap();
    }

    /// Reads frames up to one of this kind, and returns its body.
    fn answer(&mut self, kind: u8) -> Vec<u8> {
        loop {
            let mut header = [0; 8];
            self.0.read_exact(&mut header).unwrap();
            let mut body = vec![0; u32::from_le_bytes(header[..4].try_into().unwrap()) as usize];
            self.0.read_exact(&mut body).unwrap();
            if header[5] == kind {
                return body;
            }
        }
    }

    /// Moves the timeout, and returns the errno.
    fn extend_timeout(&mut self, by_ms: i64) -> i32 {
        self.send(EXTEND_TIMEOUT, &[&7u64.to_le_bytes(), &by_ms.to_le_bytes()]);
        let done = self.answer(DONE);
        assert_eq!(done[..8], 7u64.to_le_bytes(), "the token comes back");
        i32::from_le_bytes(done[8..].try_into().unwrap())
    }

    /// Asks for the end of the output.
    fn request_position(&mut self) {
        self.send(POSITION, &[&8u64.to_le_bytes()]);
    }

    /// Returns the answer to `request_position`.
    fn position(&mut self) -> u64 {
        let answer = self.answer(AT_POSITION);
        assert_eq!(answer[..8], 8u64.to_le_bytes(), "the token comes back");
        // The slot of progress: flags, rows, cols, end.
        u64::from_le_bytes(answer[16..24].try_into().unwrap())
    }
}

#[test]
fn an_extended_timeout_holds_without_a_daemon_and_can_be_taken_back() {
    let mut d = Daemon::start();
    let start = |d: &Daemon, more| id(&d.sh_with("exec sleep 1000", more));
    let extended = start(&d, json!({ "timeout_ms": 1500 }));
    let (never, other) = (start(&d, json!({})), start(&d, json!({ "timeout_ms": 1500 })));
    let [program, witness] = [&extended, &other].map(|proc| d.program(proc));
    d.kill9();

    let mut shim = Shim::connect(&d, &extended);
    assert_eq!(shim.extend_timeout(100_000), 0);
    assert_eq!(Shim::connect(&d, &never).extend_timeout(100_000), libc::ETIME, "it has no timeout");
    drop(shim);
    assert!(witness.dies_within(DEADLINE), "it has the same timeout, and started later");
    assert!(!program.is_dead(), "the shim has the extension, whatever becomes of the daemon");

    d.spawn();
    assert_eq!(d.process(&extended)["status"], "running");
    assert_eq!(d.exited(&other)["reason"], "timeout");
    d.kill9();
    let mut shim = Shim::connect(&d, &extended);
    assert_eq!((shim.extend_timeout(i64::MAX), shim.extend_timeout(-i64::MAX)), (0, 0));
    assert!(!program.is_dead());
    assert_eq!(shim.extend_timeout(i64::MIN), 0);
    drop(shim);
    assert!(program.dies_within(DEADLINE), "a timeout in the past is over");
    d.spawn();
    let end = d.exited(&extended);
    assert_eq!((&end["reason"], &end["killed_by"]), (&json!("timeout"), &json!("timeout_ms")), "{end}");
}

#[test]
fn a_position_is_after_all_that_is_in_the_pipes_when_the_shim_gets_the_request() {
    for (more, each) in [(json!({}), 30_000), (json!({ "pty": true }), 1500)] {
        let hooks = tempfile::tempdir().unwrap();
        let (point, hit) = (hooks.path().join("hold.released"), hooks.path().join("hold.released.hit"));
        let mut d = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.path().to_str().unwrap())]);
        let [gate, wrote] = ["gate", "wrote"].map(|name| d.root().join(name));
        for path in [&gate, &wrote] {
            assert!(d.tool("mkfifo", &[path.to_str().unwrap()]).status().unwrap().success());
        }
        // A line of the gate is the length to print on both streams.
        let print = "head -c $n /dev/zero | tr '\\0' x; head -c $n /dev/zero | tr '\\0' y >&2";
        let loop_ = format!("while read -r n; do {print}; echo > {}; done < {}", wrote.display(), gate.display());
        let proc = id(&d.sh_with(&loop_, more.clone()));
        let mut gate = fs::OpenOptions::new().write(true).open(&gate).unwrap();
        let mut print = |n: u64| {
            writeln!(gate, "{n}").unwrap();
            fs::read(&wrote).unwrap();
        };
        d.kill9();
        let mut shim = Shim::connect(&d, &proc);
        shim.request_position();
        assert_eq!(shim.position(), 0, "{more}");
        for round in 1..=5 {
            fs::write(&point, "").unwrap();
            shim.send(HOLD, &[&[0; 12]]);
            d.eventually("the shim does something else", || hit.exists());
            // The request is there before the output. A shim that acted in that order left the output out.
            shim.request_position();
            print(each);
            fs::remove_file(&hit).unwrap();
            fs::remove_file(&point).unwrap();
            assert_eq!(shim.position(), round * each * 2, "{more}: round {round}");
        }
        d.spawn();
        assert_eq!(d.process(&proc)["bytes"], json!(5 * each * 2), "{more}");
    }
}
