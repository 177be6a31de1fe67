//! The shim protocol against recorded frames: the frames of version 1 are read and written, to the byte, for ever.
//!
//! `UPDATE_GOLDEN=1` records frames that are missing. It changes none that are there: shims that run use them.

use std::path::PathBuf;
use toold_format::frame::{self, BadFrame, FromShim, HEADER_LEN, MAX_FROM_SHIM_LEN, MAX_TO_SHIM_LEN, ToShim, Wrote};
use toold_format::launch::{LaunchBlock, LaunchOptions, StringListBuf};
use toold_format::log::Counts;
use toold_format::slots::{Cause, Exit, Progress};

const SURVIVORS: [u8; 8] = [7, 0, 0, 0, 9, 1, 0, 0];

/// A frame in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Any<'a> {
    To(ToShim<'a>),
    From(FromShim<'a>),
}

impl Any<'_> {
    /// Returns the name in the golden file. The match makes a new variant fail to compile until it is named and recorded.
    fn name(&self) -> &'static str {
        match self {
            Any::To(frame) => match frame {
                ToShim::Hello { .. } => "hello",
                ToShim::Launch { .. } => "launch",
                ToShim::Ring { .. } => "ring",
                ToShim::Write { .. } => "write",
                ToShim::WriteStop { .. } => "write_stop",
                ToShim::WriteFind { .. } => "write_find",
                ToShim::Close { .. } => "close",
                ToShim::Resize { .. } => "resize",
                ToShim::Signal { .. } => "signal",
                ToShim::Kill { .. } => "kill",
                ToShim::Pause { .. } => "pause",
                ToShim::Resume { .. } => "resume",
                ToShim::Hold { held: true, .. } => "hold",
                ToShim::Hold { held: false, .. } => "hold_released",
                ToShim::ReadEnv { given: false, .. } => "read_env",
                ToShim::ReadEnv { given: true, .. } => "read_given_env",
                ToShim::KeepEnv { .. } => "keep_env",
                ToShim::Release { .. } => "release",
                ToShim::LaunchSandboxed { .. } => "launch_sandboxed",
                ToShim::MakeNamespaces { .. } => "make_namespaces",
                ToShim::ExtendTimeout { .. } => "extend_timeout",
                ToShim::Position { .. } => "position_request",
            },
            Any::From(frame) => match frame {
                FromShim::Welcome { exit: None, .. } => "welcome",
                FromShim::Welcome { exit: Some(_), .. } => "welcome_after_exit",
                FromShim::Started { .. } => "started",
                FromShim::Failed { .. } => "failed",
                FromShim::Bell { progress: Progress { stopped: true, .. } } => "bell_stopped",
                FromShim::Bell { .. } => "bell",
                FromShim::Exited { progress: Progress { closed: true, .. }, .. } => "exited_closed",
                FromShim::Exited { .. } => "exited",
                FromShim::Closed { .. } => "closed",
                FromShim::Wrote { state, .. } => match state {
                    Wrote::More => "wrote_more",
                    Wrote::Complete => "wrote_complete",
                    Wrote::Stopped => "wrote_stopped",
                    Wrote::Broken => "wrote_broken",
                    Wrote::Duplicate => "wrote_duplicate",
                },
                FromShim::Done { .. } => "done",
                FromShim::Killed { .. } => "killed",
                FromShim::Gone => "gone",
                FromShim::Env { .. } => "env",
                FromShim::Denied { .. } => "denied",
                FromShim::Namespaces => "namespaces",
                FromShim::Position { .. } => "position",
            },
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Any::To(frame) => frame.put(&mut bytes),
            Any::From(frame) => frame.put(&mut bytes),
        }
        bytes
    }

    /// Reads the frame behind a header, in the direction of its kind.
    fn read(kind: u8, body: &[u8]) -> Option<Any<'_>> {
        let (to, from) = (ToShim::read(kind, body), FromShim::read(kind, body));
        assert!(to.is_none() || from.is_none(), "kind {kind} goes one way");
        to.map(Any::To).or(from.map(Any::From))
    }
}

fn progress() -> Progress {
    let counts = Counts {
        end: 1 << 40,
        out_newlines: 2,
        err_newlines: 3,
        out_open: true,
        err_open: false,
        last_open: true,
        dropped: 4,
        unstored: 5,
    };
    Progress {
        counts,
        closed: false,
        held_back: false,
        stdin_closed: true,
        stopped: false,
        rows: 24,
        cols: 80,
        sums: None,
    }
}

fn exit() -> Exit {
    Exit {
        wait_status: 0x0300,
        cause: Cause::Client,
        oom: true,
        by_uid: 1000,
        by_pid: 12,
        at_ms: 1_700_000_000_000,
        end: 1 << 33,
        cpu_us: 15,
        max_rss_kib: 16,
        oom_kills: 0,
    }
}

/// The lists of a launch block.
#[derive(Default)]
struct Lists {
    cgroups: StringListBuf,
    argv: StringListBuf,
    env: StringListBuf,
}

impl Lists {
    fn new() -> Lists {
        let mut lists = Lists::default();
        lists.cgroups.push(b"/cgroup.procs");
        [b"echo".as_slice(), b"", b"\xff"].iter().for_each(|arg| lists.argv.push(arg));
        [b"A=1".as_slice(), b"B="].iter().for_each(|variable| lists.env.push(variable));
        lists
    }

    fn block(&self) -> LaunchBlock<'_> {
        LaunchBlock {
            options: LaunchOptions {
                pty: true,
                stdin_pipe: true,
                sync: false,
                merge: false,
                keep: false,
                rows: 24,
                cols: 80,
                log_max_bytes: 1 << 28,
                timeout_ms: 60_000,
                idle_ms: 0,
                grace_ms: 5000,
                hold_ms: 0,
            },
            dir: c"/state/procs/proc_0123456789ab",
            cwd: c"/",
            program: c"/bin/echo",
            oom_file: c"",
            cgroups: self.cgroups.as_list(),
            argv: self.argv.as_list(),
            env: self.env.as_list(),
        }
    }
}

fn launch_block() -> Vec<u8> {
    Lists::new().block().encode()
}

/// Builds one of each.
fn frames(block: &[u8]) -> Vec<Any<'_>> {
    use {FromShim as F, ToShim as T};
    let (progress, token) = (progress(), 0x0102_0304_0506_0708);
    let wrote = |state| Any::From(F::Wrote { token, done: 5, state });
    let welcome = |exit| Any::From(F::Welcome { shim_pid: 41, pid: 42, progress, exit, closed: true });
    vec![
        Any::To(T::Hello { nonce: *b"0123456789abcdef" }),
        Any::To(T::Launch { block }),
        Any::To(T::Ring { above: 77 }),
        Any::To(T::Write { token, id: [9; 16], offset: 3, total: 8, data: b"hello" }),
        Any::To(T::WriteStop { token }),
        Any::To(T::Close { token }),
        Any::To(T::Resize { token, rows: 50, cols: 132 }),
        Any::To(T::Signal { token, signal: 1 }),
        Any::To(T::Kill { token, signal: 15, grace_ms: 5000, cause: 1, uid: 1000, pid: 12 }),
        welcome(None),
        welcome(Some(exit())),
        Any::From(F::Started { pid: 42, shim_pid: 41, ticks: 123_456 }),
        Any::From(F::Failed { step: 3, errno: 2 }),
        Any::From(F::Bell { progress }),
        Any::From(F::Exited { exit: exit(), progress }),
        Any::From(F::Closed { progress }),
        wrote(Wrote::More),
        wrote(Wrote::Complete),
        wrote(Wrote::Stopped),
        wrote(Wrote::Broken),
        wrote(Wrote::Duplicate),
        Any::From(F::Done { token, errno: 9 }),
        Any::From(F::Killed { token, signals: 1 << 15 | 1 << 9, survivors: &SURVIVORS }),
        Any::From(F::Gone),
        Any::From(F::Exited { exit: exit(), progress: Progress { closed: true, ..progress } }),
        Any::To(T::WriteFind { token, id: [9; 16] }),
        Any::To(T::Pause { token }),
        Any::To(T::Resume { token }),
        Any::From(F::Bell { progress: Progress { stopped: true, ..progress } }),
        Any::To(T::Hold { held: true, read_to: 1 << 33 }),
        Any::To(T::Hold { held: false, read_to: 0 }),
        Any::To(T::ReadEnv { token, offset: 1984, given: false }),
        Any::To(T::Release { token }),
        Any::From(F::Env { token, total: 9, data: b"A=1\0B=\xff\0" }),
        Any::To(T::ReadEnv { token, offset: 1984, given: true }),
        Any::To(T::KeepEnv { token, offset: 4, total: 9, data: b"B=\xff\0" }),
        Any::To(T::LaunchSandboxed { sandbox: b"sandbox", block }),
        Any::To(T::MakeNamespaces { block: b"\x01\x000 0 1\0" }),
        Any::From(F::Denied { distinct: 2, count: 1 << 33 }),
        Any::From(F::Namespaces),
        Any::To(T::ExtendTimeout { token, by_ms: -2000 }),
        Any::To(T::Position { token }),
        Any::From(F::Position { token, progress }),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "whole bytes");
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex")).collect()
}

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/frames-v1.txt")
}

/// The recorded frames by name, in the order of the file.
fn recorded() -> Vec<(String, Vec<u8>)> {
    let text = std::fs::read_to_string(golden()).expect("the golden file");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("name and hex")).map(|(n, h)| (n.into(), unhex(h))).collect()
}

/// Puts frames that were never recorded at the end of the file.
fn record(frames: &[Any<'_>]) {
    let mut text = std::fs::read_to_string(golden()).expect("the golden file");
    let known = recorded();
    for frame in frames.iter().filter(|frame| known.iter().all(|(name, _)| name != frame.name())) {
        text += &format!("{} {}\n", frame.name(), hex(&frame.bytes()));
    }
    std::fs::write(golden(), text).expect("the golden file can be written");
}

/// The body of one whole frame.
fn body(bytes: &[u8]) -> (u8, &[u8]) {
    let (kind, body, len) = frame::next_frame(bytes, MAX_TO_SHIM_LEN).expect("a frame").expect("whole");
    assert_eq!(len, bytes.len());
    (kind, body)
}

#[test]
fn every_recorded_frame_is_read_whole_and_written_to_the_same_bytes() {
    let block = launch_block();
    let frames = frames(&block);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        record(&frames);
    }
    let recorded = recorded();
    let names: Vec<&str> = recorded.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, frames.iter().map(Any::name).collect::<Vec<_>>(), "run with UPDATE_GOLDEN=1 to record a new one");
    for ((name, bytes), frame) in recorded.iter().zip(&frames) {
        let (kind, body) = body(bytes);
        assert_eq!(Any::read(kind, body), Some(*frame), "{name}");
        assert_eq!(hex(&frame.bytes()), hex(bytes), "{name}");
    }
}

/// A frame whose body ends with a block.
fn is_block(name: &str) -> bool {
    ["launch", "launch_sandboxed", "make_namespaces"].contains(&name)
}

#[test]
fn an_earlier_version_knows_no_confined_launch_and_starts_nothing() {
    // Kinds above 17 were unknown to every version before: its reader returns none, and its shim ends.
    let (sandbox, block) = (b"sandbox".as_slice(), launch_block());
    let mut bytes = Vec::new();
    ToShim::LaunchSandboxed { sandbox, block: &block }.put(&mut bytes);
    let (kind, body, _) = frame::next_frame(&bytes, MAX_TO_SHIM_LEN).expect("a frame").expect("whole");
    assert!(kind > 17, "the kind of an earlier frame");
    assert!(LaunchBlock::decode(body).is_none(), "it is not a launch block either");
}

#[test]
fn a_later_versions_longer_body_reads_as_what_is_known_of_it() {
    for (name, bytes) in recorded() {
        let (kind, body) = body(&bytes);
        let longer = [body, b"more"].concat();
        let (read, known) = (Any::read(kind, &longer), Any::read(kind, body));
        // A launch is its block: the same program builds and reads it.
        if !is_block(&name) {
            assert_eq!(read, known, "{name}");
        }
    }
}

#[test]
fn a_body_that_lacks_a_byte_is_refused() {
    for (name, bytes) in recorded() {
        let (kind, body) = body(&bytes);
        for cut in 0..body.len() {
            // A block is checked when it is decoded.
            let read = Any::read(kind, &body[..cut]);
            assert!(read.is_none() || is_block(&name), "{name} cut to {cut}: {read:?}");
        }
    }
}

#[test]
fn unknown_kinds_are_skipped_and_later_versions_read() {
    let (ring, gone) = (Any::To(ToShim::Ring { above: 1 }).bytes(), Any::From(FromShim::Gone).bytes());
    let strange = [3, 0, 0, 0, 2, 200, 0, 0, 1, 2, 3];
    let stream = [strange.as_slice(), &ring, &gone].concat();
    let (mut rest, mut kinds) = (stream.as_slice(), Vec::new());
    while let Some((kind, body, len)) = frame::next_frame(rest, MAX_FROM_SHIM_LEN).expect("frames") {
        kinds.push((kind, Any::read(kind, body).map(|frame| frame.name())));
        rest = &rest[len..];
    }
    assert_eq!((kinds, rest.len()), (vec![(200, None), (3, Some("ring")), (74, Some("gone"))], 0));
    let known: Vec<u8> = (0..=255).filter(|kind| Any::read(*kind, &[1; 300]).is_some()).collect();
    // Slots have to match their checksum, a state of `wrote` has to be known, and a confined launch has a length; all other kinds read any bytes.
    assert_eq!(known, [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 19, 20, 21, 66, 67, 72, 74, 76, 77]);
}

#[test]
fn an_incomplete_header_waits_for_more_and_a_bad_one_is_an_error() {
    let ring = Any::To(ToShim::Ring { above: 1 }).bytes();
    for cut in 0..ring.len() {
        assert_eq!(frame::next_frame(&ring[..cut], MAX_TO_SHIM_LEN), Ok(None), "{cut}");
    }
    assert_eq!(
        frame::next_frame(&[8, 0, 0, 0, 0, 3, 0, 0], MAX_TO_SHIM_LEN),
        Err(BadFrame),
        "version 0 does not exist"
    );
    assert_eq!(frame::next_frame(&ring, ring.len() - HEADER_LEN - 1), Err(BadFrame), "longer than agreed");
}

#[test]
fn a_recorded_launch_block_reads_back() {
    let recorded = recorded();
    let (_, bytes) = recorded.iter().find(|(name, _)| name == "launch").expect("recorded");
    assert_eq!(LaunchBlock::decode(body(bytes).1), Some(Lists::new().block()));
}
