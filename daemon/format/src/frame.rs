//! The frames between daemon and shim, over any byte stream. Frozen: old shims outlive many daemons.
//!
//! A frame is `length of the body (u32) | version (u8) | kind (u8) | 0 (u16) | body`, little-endian.
//! A reader ignores a kind that it does not know, and the bytes that follow the known part of a body.
//! `docs/shim-protocol.md` describes them.

use crate::body_reader::BodyReader;
use crate::frame_bytes::put_frame;
pub use crate::frame_bytes::{BadFrame, HEADER_LEN, RawFrame, Sink, VERSION, next_frame};
use crate::slots::{Exit, Progress, SLOT_LEN};
pub use crate::wrote::Wrote;

/// The longest piece of stdin in one frame. A shim has a buffer for one of these.
pub const MAX_WRITE_LEN: usize = 16 * 1024;
/// The longest frame a shim takes once it runs.
pub const MAX_TO_SHIM_LEN: usize = MAX_WRITE_LEN + 256;
/// The longest frame a shim sends: a report with survivors.
pub const MAX_FROM_SHIM_LEN: usize = 2048;

/// A frame from the daemon to the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToShim<'a> {
    /// The first frame of a new connection.
    Hello {
        nonce: [u8; 16],
    },
    /// The program to run: see `launch`.
    Launch {
        block: &'a [u8],
    },
    /// The program to run, confined: see `sandbox`. The descriptors are beside it.
    LaunchSandboxed {
        sandbox: &'a [u8],
        block: &'a [u8],
    },
    /// Namespaces to make: see `sandbox`. The first frame of a connection that has no program. Answered by `Namespaces`.
    MakeNamespaces {
        block: &'a [u8],
    },
    /// Asks for one `Bell` when the output is longer than `above`.
    Ring {
        above: u64,
    },
    /// A piece of a write. `id` names the whole write; all zero is an unnamed one.
    Write {
        token: u64,
        id: [u8; 16],
        offset: u64,
        total: u64,
        data: &'a [u8],
    },
    /// Drops the rest of the piece that waits.
    WriteStop {
        token: u64,
    },
    /// Asks what is known of a named write. Answered by `Wrote`: duplicate if it is finished, else more.
    WriteFind {
        token: u64,
        id: [u8; 16],
    },
    Close {
        token: u64,
    },
    Resize {
        token: u64,
        rows: u16,
        cols: u16,
    },
    Signal {
        token: u64,
        signal: i32,
    },
    Kill {
        token: u64,
        signal: i32,
        grace_ms: u64,
        cause: u32,
        uid: u32,
        pid: i32,
    },
    /// Stops the whole tree. Answered by `Done` when every process of it has stopped.
    Pause {
        token: u64,
    },
    /// Continues the whole tree.
    Resume {
        token: u64,
    },
    /// A reader has read the output up to `read_to`: what follows is kept for it, and the program held back at the cap. Not
    /// `held`: there is no reader, and the cap drops the oldest.
    Hold {
        held: bool,
        read_to: u64,
    },
    /// Lets a shim go that keeps the environment of an ended program.
    Release {
        token: u64,
    },
    /// Asks for an environment that the shim keeps, from this byte on. Answered by `Env`. `given`: that of `KeepEnv`, not the
    /// program's own.
    ReadEnv {
        token: u64,
        offset: u64,
        given: bool,
    },
    /// Keeps the shim after the end of the program, for the next run, until `Release`. With a part of the environment of that
    /// run, of `total` bytes; `NO_ENV`: it is the program's own. Answered by `Done`.
    KeepEnv {
        token: u64,
        offset: u64,
        total: u64,
        data: &'a [u8],
    },
    /// Moves the timeout of the program by this much; a negative number brings it closer. Answered by `Done`.
    ExtendTimeout {
        token: u64,
        by_ms: i64,
    },
    /// Asks for the end of the output, once all that is in the pipes is read. Answered by `Position`.
    Position {
        token: u64,
    },
}

/// A frame from the shim to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FromShim<'a> {
    /// The answer to `Hello`, with the whole state.
    Welcome {
        shim_pid: i32,
        pid: i32,
        progress: Progress,
        exit: Option<Exit>,
        closed: bool,
    },
    Started {
        pid: i32,
        shim_pid: i32,
        ticks: u64,
    },
    Failed {
        step: u32,
        errno: i32,
    },
    Bell {
        progress: Progress,
    },
    Exited {
        exit: Exit,
        progress: Progress,
    },
    Closed {
        progress: Progress,
    },
    Wrote {
        token: u64,
        done: u64,
        state: Wrote,
    },
    /// The result of a request that has no other answer.
    Done {
        token: u64,
        errno: i32,
    },
    /// The result of `Kill`: the tree is empty, or these pids survived. Signals as bits, signal n at bit n.
    Killed {
        token: u64,
        signals: u64,
        survivors: &'a [u8],
    },
    /// The tree is empty, the output closed, the record complete. The shim disconnects.
    Gone,
    /// A part of the environment: C strings in a row, `NAME=value`, of `total` bytes. `NO_ENV`: the shim has none.
    Env {
        token: u64,
        total: u64,
        data: &'a [u8],
    },
    /// The sandbox refused a call that it had not refused before, and the file of refusals has it: `distinct` of them, `count`
    /// calls in all.
    Denied {
        distinct: u32,
        count: u64,
    },
    /// The namespaces are made. Their descriptors are beside the frame: the user namespace, then the other.
    Namespaces,
    /// The answer to `Position`.
    Position {
        token: u64,
        progress: Progress,
    },
}

/// The length of an environment that a shim could not keep, or has not.
pub const NO_ENV: u64 = u64::MAX;
/// The longest part of an environment in one frame.
pub const MAX_ENV_PART_LEN: usize = MAX_FROM_SHIM_LEN - 64;

impl ToShim<'_> {
    fn kind(&self) -> u8 {
        match self {
            ToShim::Hello { .. } => 1,
            ToShim::Launch { .. } => 2,
            ToShim::Ring { .. } => 3,
            ToShim::Write { .. } => 4,
            ToShim::WriteStop { .. } => 5,
            ToShim::Close { .. } => 6,
            ToShim::Resize { .. } => 7,
            ToShim::Signal { .. } => 8,
            ToShim::Kill { .. } => 9,
            ToShim::WriteFind { .. } => 10,
            ToShim::Pause { .. } => 11,
            ToShim::Resume { .. } => 12,
            ToShim::Hold { .. } => 13,
            ToShim::ReadEnv { given: false, .. } => 14,
            ToShim::ReadEnv { given: true, .. } => 17,
            ToShim::Release { .. } => 15,
            ToShim::KeepEnv { .. } => 16,
            ToShim::LaunchSandboxed { .. } => 18,
            ToShim::MakeNamespaces { .. } => 19,
            ToShim::ExtendTimeout { .. } => 20,
            ToShim::Position { .. } => 21,
        }
    }

    fn body(&self, out: &mut dyn Sink) {
        match *self {
            ToShim::Hello { nonce } => out.put(&nonce),
            ToShim::Launch { block } | ToShim::MakeNamespaces { block } => out.put(block),
            ToShim::LaunchSandboxed { sandbox, block } => {
                out.put(&(sandbox.len() as u32).to_le_bytes());
                out.put(sandbox);
                out.put(block);
            }
            ToShim::Ring { above } => out.put(&above.to_le_bytes()),
            ToShim::Write { token, id, offset, total, data } => {
                out.put(&token.to_le_bytes());
                out.put(&id);
                out.put(&offset.to_le_bytes());
                out.put(&total.to_le_bytes());
                out.put(&(data.len() as u32).to_le_bytes());
                out.put(data);
            }
            ToShim::WriteFind { token, id } => {
                out.put(&token.to_le_bytes());
                out.put(&id);
            }
            ToShim::WriteStop { token }
            | ToShim::Close { token }
            | ToShim::Pause { token }
            | ToShim::Release { token }
            | ToShim::Position { token }
            | ToShim::Resume { token } => out.put(&token.to_le_bytes()),
            ToShim::ReadEnv { token, offset, given: _ } => {
                out.put([token.to_le_bytes(), offset.to_le_bytes()].as_flattened());
            }
            ToShim::KeepEnv { token, offset, total, data } => {
                out.put(&token.to_le_bytes());
                out.put(&offset.to_le_bytes());
                out.put(&total.to_le_bytes());
                out.put(&(data.len() as u32).to_le_bytes());
                out.put(data);
            }
            ToShim::Resize { token, rows, cols } => {
                out.put(&token.to_le_bytes());
                out.put(&rows.to_le_bytes());
                out.put(&cols.to_le_bytes());
            }
            ToShim::Signal { token, signal } => {
                out.put(&token.to_le_bytes());
                out.put(&signal.to_le_bytes());
            }
            ToShim::Kill { token, signal, grace_ms, cause, uid, pid } => {
                out.put(&token.to_le_bytes());
                out.put(&signal.to_le_bytes());
                out.put(&cause.to_le_bytes());
                out.put(&grace_ms.to_le_bytes());
                out.put(&uid.to_le_bytes());
                out.put(&pid.to_le_bytes());
            }
            ToShim::ExtendTimeout { token, by_ms } => {
                out.put([token.to_le_bytes(), by_ms.to_le_bytes()].as_flattened())
            }
            ToShim::Hold { held, read_to } => {
                out.put(&u32::from(held).to_le_bytes());
                out.put(&read_to.to_le_bytes());
            }
        }
    }

    pub fn put(&self, out: &mut dyn Sink) {
        put_frame(self.kind(), out, |sink| self.body(sink));
    }

    /// Reads the body of a frame. None: a kind of a later version, or too short for its kind.
    pub fn read(kind: u8, body: &[u8]) -> Option<ToShim<'_>> {
        let mut t = BodyReader(body);
        Some(match kind {
            1 => ToShim::Hello { nonce: t.take()? },
            2 => ToShim::Launch { block: body },
            3 => ToShim::Ring { above: t.u64()? },
            4 => {
                let (token, id, offset, total, len) = (t.u64()?, t.take()?, t.u64()?, t.u64()?, t.u32()?);
                ToShim::Write { token, id, offset, total, data: t.0.get(..len as usize)? }
            }
            5 => ToShim::WriteStop { token: t.u64()? },
            6 => ToShim::Close { token: t.u64()? },
            7 => ToShim::Resize { token: t.u64()?, rows: t.u16()?, cols: t.u16()? },
            8 => ToShim::Signal { token: t.u64()?, signal: t.i32()? },
            9 => {
                let (token, signal, cause, grace_ms) = (t.u64()?, t.i32()?, t.u32()?, t.u64()?);
                ToShim::Kill { token, signal, grace_ms, cause, uid: t.u32()?, pid: t.i32()? }
            }
            10 => ToShim::WriteFind { token: t.u64()?, id: t.take()? },
            11 => ToShim::Pause { token: t.u64()? },
            12 => ToShim::Resume { token: t.u64()? },
            13 => ToShim::Hold { held: t.u32()? != 0, read_to: t.u64()? },
            14 | 17 => ToShim::ReadEnv { token: t.u64()?, offset: t.u64()?, given: kind == 17 },
            15 => ToShim::Release { token: t.u64()? },
            16 => {
                let (token, offset, total, len) = (t.u64()?, t.u64()?, t.u64()?, t.u32()?);
                ToShim::KeepEnv { token, offset, total, data: t.0.get(..len as usize)? }
            }
            18 => {
                let (sandbox, block) = (t.u32()? as usize, t.0);
                let (sandbox, block) = block.split_at_checked(sandbox)?;
                ToShim::LaunchSandboxed { sandbox, block }
            }
            19 => ToShim::MakeNamespaces { block: body },
            20 => ToShim::ExtendTimeout { token: t.u64()?, by_ms: t.u64()?.cast_signed() },
            21 => ToShim::Position { token: t.u64()? },
            // A frame of a later version.
            _ => return None,
        })
    }
}

impl FromShim<'_> {
    fn kind(&self) -> u8 {
        match self {
            FromShim::Welcome { .. } => 65,
            FromShim::Started { .. } => 66,
            FromShim::Failed { .. } => 67,
            FromShim::Bell { .. } => 68,
            FromShim::Exited { .. } => 69,
            FromShim::Closed { .. } => 70,
            FromShim::Wrote { .. } => 71,
            FromShim::Done { .. } => 72,
            FromShim::Killed { .. } => 73,
            FromShim::Gone => 74,
            FromShim::Env { .. } => 75,
            FromShim::Denied { .. } => 76,
            FromShim::Namespaces => 77,
            FromShim::Position { .. } => 78,
        }
    }

    fn body(&self, out: &mut dyn Sink) {
        match *self {
            FromShim::Welcome { shim_pid, pid, progress, exit, closed } => {
                out.put(&shim_pid.to_le_bytes());
                out.put(&pid.to_le_bytes());
                out.put(&u32::from(closed).to_le_bytes());
                out.put(&progress.slot());
                out.put(&exit.map_or([0; SLOT_LEN], |e| e.slot()));
            }
            FromShim::Started { pid, shim_pid, ticks } => {
                out.put(&pid.to_le_bytes());
                out.put(&shim_pid.to_le_bytes());
                out.put(&ticks.to_le_bytes());
            }
            FromShim::Failed { step, errno } => {
                out.put(&step.to_le_bytes());
                out.put(&errno.to_le_bytes());
            }
            FromShim::Bell { progress } | FromShim::Closed { progress } => out.put(&progress.slot()),
            FromShim::Exited { exit, progress } => {
                out.put(&exit.slot());
                out.put(&progress.slot());
            }
            FromShim::Wrote { token, done, state } => {
                out.put(&token.to_le_bytes());
                out.put(&done.to_le_bytes());
                out.put(&state.code().to_le_bytes());
            }
            FromShim::Done { token, errno } => {
                out.put(&token.to_le_bytes());
                out.put(&errno.to_le_bytes());
            }
            FromShim::Killed { token, signals, survivors } => {
                out.put(&token.to_le_bytes());
                out.put(&signals.to_le_bytes());
                out.put(&(survivors.len() as u32 / 4).to_le_bytes());
                out.put(survivors);
            }
            FromShim::Gone | FromShim::Namespaces => {}
            FromShim::Position { token, progress } => {
                out.put(&token.to_le_bytes());
                out.put(&progress.slot());
            }
            FromShim::Denied { distinct, count } => {
                out.put(&distinct.to_le_bytes());
                out.put(&count.to_le_bytes());
            }
            FromShim::Env { token, total, data } => {
                out.put(&token.to_le_bytes());
                out.put(&total.to_le_bytes());
                out.put(&(data.len() as u32).to_le_bytes());
                out.put(data);
            }
        }
    }

    pub fn put(&self, out: &mut dyn Sink) {
        put_frame(self.kind(), out, |sink| self.body(sink));
    }

    /// Reads the body of a frame. None: a kind of a later version, or too short for its kind.
    pub fn read(kind: u8, body: &[u8]) -> Option<FromShim<'_>> {
        let mut t = BodyReader(body);
        Some(match kind {
            65 => {
                let (shim_pid, pid, closed) = (t.i32()?, t.i32()?, t.u32()? != 0);
                let (progress, exit) = (t.progress()?, Exit::read(&t.slot()?));
                FromShim::Welcome { shim_pid, pid, progress, exit, closed }
            }
            66 => FromShim::Started { pid: t.i32()?, shim_pid: t.i32()?, ticks: t.u64()? },
            67 => FromShim::Failed { step: t.u32()?, errno: t.i32()? },
            68 => FromShim::Bell { progress: t.progress()? },
            69 => FromShim::Exited { exit: Exit::read(&t.slot()?)?, progress: t.progress()? },
            70 => FromShim::Closed { progress: t.progress()? },
            71 => FromShim::Wrote { token: t.u64()?, done: t.u64()?, state: Wrote::from_code(t.u32()?)? },
            72 => FromShim::Done { token: t.u64()?, errno: t.i32()? },
            73 => {
                let (token, signals, count) = (t.u64()?, t.u64()?, t.u32()? as usize);
                FromShim::Killed { token, signals, survivors: t.0.get(..count.checked_mul(4)?)? }
            }
            74 => FromShim::Gone,
            75 => {
                let (token, total, len) = (t.u64()?, t.u64()?, t.u32()? as usize);
                FromShim::Env { token, total, data: t.0.get(..len)? }
            }
            76 => FromShim::Denied { distinct: t.u32()?, count: t.u64()? },
            77 => FromShim::Namespaces,
            78 => FromShim::Position { token: t.u64()?, progress: t.progress()? },
            // A frame of a later version.
            _ => return None,
        })
    }
}
