//! The shim's end of the connection to a daemon, which may come, go, hang and come back.
//!
//! Nothing here waits for the daemon. Frames that do not fit into the socket wait in a small queue. A
//! daemon that does not read until the queue is full loses its connection, and reads the record when it reconnects.

use super::kept_env::KeptEnv;
use super::kill::KillRequest;
use super::run::{Shim, rewatch, token, unwatch, watch};
use crate::clock::mono_ms;
use crate::hooks;
use crate::sys;
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};
use toold_format::frame::{
    self, FromShim, HEADER_LEN, MAX_ENV_PART_LEN, MAX_FROM_SHIM_LEN, MAX_TO_SHIM_LEN, NO_ENV, Sink, ToShim,
};
use toold_format::slots::Cause;

/// The length of the queue for a daemon that is busy.
const QUEUE_LEN: usize = 4 * MAX_FROM_SHIM_LEN;
/// The length of the input: one frame, in whole pages.
const INPUT_LEN: usize = (MAX_TO_SHIM_LEN + HEADER_LEN).next_multiple_of(4096);
pub const MEMORY_LEN: usize = 48 * 1024;
const _: () = assert!(INPUT_LEN + QUEUE_LEN <= MEMORY_LEN, "input and queue fit");
/// Input of more bytes than this touched pages that are worth returning to the kernel.
const LARGE_INPUT_LEN: usize = 4096;

pub struct DaemonLink {
    pub control: Option<OwnedFd>,
    /// A connection whose hello is not here yet.
    handshaking: Option<OwnedFd>,
    pub listener: OwnedFd,
    input: &'static mut [u8],
    input_len: usize,
    queue: &'static mut [u8],
    queue_len: usize,
    /// Ring once when the output reaches beyond this.
    pub ring_above: Option<u64>,
}

struct FrameQueue<'a> {
    bytes: &'a mut [u8],
    len: &'a mut usize,
    full: bool,
}

impl Sink for FrameQueue<'_> {
    fn put(&mut self, bytes: &[u8]) {
        match self.bytes.get_mut(*self.len..*self.len + bytes.len()) {
            Some(place) if !self.full => {
                place.copy_from_slice(bytes);
                *self.len += bytes.len();
            }
            Some(_) | None => self.full = true,
        }
    }
}

impl DaemonLink {
    /// Splits `memory`, which has at least `MEMORY_LEN` bytes and starts at a page.
    pub fn new(control: OwnedFd, listener: OwnedFd, memory: &'static mut [u8]) -> DaemonLink {
        let (input, rest) = memory.split_at_mut(INPUT_LEN);
        let queue = &mut rest[..QUEUE_LEN];
        DaemonLink {
            control: Some(control),
            handshaking: None,
            listener,
            input,
            input_len: 0,
            queue,
            queue_len: 0,
            ring_above: None,
        }
    }

    /// Puts a frame into the queue. False: it does not fit. Without a daemon it is dropped.
    fn enqueue(&mut self, frame: &FromShim<'_>) -> bool {
        if self.control.is_none() {
            return true;
        }
        let before = self.queue_len;
        let mut queue = FrameQueue { bytes: self.queue, len: &mut self.queue_len, full: false };
        frame.put(&mut queue);
        let full = queue.full;
        if full {
            self.queue_len = before;
        }
        !full
    }

    /// Sends as much of the queue as the socket takes. False: the daemon is gone.
    fn send_queued(&mut self) -> bool {
        let Some(control) = &self.control else { return true };
        while self.queue_len > 0 {
            match send(control, &self.queue[..self.queue_len], SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(n) => {
                    self.queue.copy_within(n..self.queue_len, 0);
                    self.queue_len -= n;
                }
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Sends the last frames. Waits at most a second each time that a running daemon does not read.
    pub fn flush_blocking(&mut self) {
        // Sending may empty the queue, and then there is nothing to wait for.
        while self.send_queued() && self.queue_len > 0 {
            let Some(control) = &self.control else { return };
            let mut fds = [PollFd::new(control, PollFlags::OUT)];
            let second = rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 };
            if !matches!(poll(&mut fds, Some(&second)), Ok(1..)) {
                return;
            }
        }
    }
}

impl Shim {
    /// Sends a frame to the daemon, if there is one.
    pub fn send(&mut self, frame: &FromShim<'_>) {
        self.enqueue(frame);
        self.flush();
    }

    /// Queues a frame, to be sent with the next one.
    pub fn enqueue(&mut self, frame: &FromShim<'_>) {
        if !self.link.enqueue(frame) {
            self.disconnect();
        }
    }

    /// Sends the queued frames, as far as the socket takes them.
    pub fn flush(&mut self) {
        if !self.link.send_queued() {
            return self.disconnect();
        }
        if self.link.queue_len > 0
            && let Some(control) = &self.link.control
        {
            rewatch(&self.prepared.epoll, control.as_fd(), token::CONTROL, EventFlags::IN | EventFlags::OUT);
        }
    }

    fn disconnect(&mut self) {
        if let Some(control) = self.link.control.take() {
            unwatch(&self.prepared.epoll, control.as_fd());
        }
        self.link.input_len = 0;
        self.link.queue_len = 0;
        self.link.ring_above = None;
        self.stdin.caller_gone();
        self.pause_state.callers_gone();
        self.hold.daemon_gone(mono_ms());
        // The zygote's socket may hold requests of a daemon that is gone: no shim may start them late.
        self.spare_link = None;
    }

    /// Rings the bell if the daemon waits for it.
    pub fn ring_bell(&mut self) {
        let progress = self.progress();
        if self.link.ring_above.is_some_and(|above| progress.counts.end > above) {
            self.link.ring_above = None;
            self.send(&FromShim::Bell { progress });
        }
    }

    pub fn control_event(&mut self, flags: EventFlags) {
        if flags.contains(EventFlags::OUT) {
            if !self.link.send_queued() {
                return self.disconnect();
            }
            if self.link.queue_len == 0
                && let Some(control) = &self.link.control
            {
                rewatch(&self.prepared.epoll, control.as_fd(), token::CONTROL, EventFlags::IN);
            }
        }
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return;
        }
        let Some(control) = &self.link.control else { return };
        let free = &mut self.link.input[self.link.input_len..];
        match recv(control, free, RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.disconnect(),
            Ok((n, _)) => {
                self.link.input_len += n;
                self.handle_frames();
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.disconnect(),
        }
    }

    /// Handles every whole frame of the input.
    fn handle_frames(&mut self) {
        // Taken out, so that a frame can be borrowed from it while the shim acts on it.
        let input = std::mem::take(&mut self.link.input);
        let mut at = 0;
        let large = self.link.input_len > LARGE_INPUT_LEN;
        while self.link.control.is_some() {
            match frame::next_frame(&input[at..self.link.input_len], MAX_TO_SHIM_LEN) {
                Ok(Some((kind, body, length))) => {
                    if let Some(frame) = ToShim::read(kind, body) {
                        self.dispatch(&frame);
                    }
                    at += length;
                }
                Ok(None) => break,
                Err(frame::BadFrame) => self.disconnect(),
            }
        }
        let end = self.link.input_len.max(at);
        input.copy_within(at..end, 0);
        self.link.input_len = end - at;
        // Frames carry values of variables, which stay in one place only.
        input[end - at..end].fill(0);
        if large && self.link.input_len == 0 {
            // SAFETY: the input is part of the arena, which is a mapping from `map_anonymous`.
            unsafe { sys::discard_pages(input) };
        }
        self.link.input = input;
    }

    fn dispatch(&mut self, frame: &ToShim<'_>) {
        match *frame {
            // Valid only as the first frame of a connection.
            ToShim::Hello { .. }
            | ToShim::Launch { .. }
            | ToShim::LaunchSandboxed { .. }
            | ToShim::MakeNamespaces { .. } => {}
            ToShim::Ring { above } => {
                self.link.ring_above = Some(above);
                self.ring_bell();
            }
            ToShim::Write { token, id, offset, total, data } => self.stdin_write(token, id, offset, total, data),
            ToShim::WriteStop { token } => self.stdin_stop(token),
            ToShim::WriteFind { token, id } => self.stdin_find(token, id),
            ToShim::Close { token } => self.stdin_close(token),
            ToShim::Resize { token, rows, cols } => self.resize(token, rows, cols),
            ToShim::Signal { token, signal } => {
                self.reap();
                // The leader is not reaped, so the group id is still the program's.
                let sent =
                    if self.exit.is_none() { sys::signal_group(self.child_pid, signal) } else { Err(Errno::SRCH) };
                self.send_done(token, sent);
            }
            ToShim::Pause { token } => self.pause(token),
            ToShim::Resume { token } => self.resume(token),
            ToShim::Release { token } => {
                self.keep = false;
                self.next_env = None;
                self.send_done(token, Ok(()));
            }
            ToShim::ReadEnv { token, offset, given } => self.send_env(token, offset, given),
            ToShim::KeepEnv { token, offset, total, data } => {
                let kept = self.keep_env(offset, total, data);
                self.send_done(token, kept);
            }
            ToShim::Kill { token, signal, grace_ms, cause, uid, pid } => {
                self.kill(KillRequest { token, signal, grace_ms, cause: Cause::from_code(cause), uid, pid });
            }
            ToShim::Hold { held, read_to } => self.set_hold(held, read_to),
            ToShim::ExtendTimeout { token, by_ms } => {
                let extended = self.extend_timeout(by_ms);
                self.send_done(token, extended);
            }
            ToShim::Position { token } => {
                self.read_waiting(self.exit.is_some());
                let progress = self.progress();
                self.send(&FromShim::Position { token, progress });
            }
        }
    }

    /// Stays after the end of the program, with the environment of the next run.
    fn keep_env(&mut self, offset: u64, total: u64, part: &[u8]) -> Result<(), Errno> {
        if total != NO_ENV {
            if offset == 0 {
                self.next_env = Some(KeptEnv::with_room(total).ok_or(Errno::NOMEM)?);
            }
            if !self.next_env.as_mut().is_some_and(|next| next.push(offset, part)) {
                self.next_env = None;
                return Err(Errno::INVAL);
            }
        }
        self.keep = true;
        Ok(())
    }

    /// Sends a part of an environment that is kept for a restart.
    fn send_env(&mut self, token: u64, offset: u64, given: bool) {
        let kept = if given { self.next_env.as_ref() } else { Some(&self.kept_env) };
        let all = kept.and_then(KeptEnv::bytes);
        let rest = all.and_then(|all| all.get(offset as usize..)).unwrap_or_default();
        let total = all.map_or(NO_ENV, |all| all.len() as u64);
        let frame = FromShim::Env { token, total, data: &rest[..rest.len().min(MAX_ENV_PART_LEN)] };
        if !self.link.enqueue(&frame) {
            return self.disconnect();
        }
        self.flush();
    }

    pub fn send_done(&mut self, token: u64, result: Result<(), Errno>) {
        let errno = result.err().map_or(0, Errno::raw_os_error);
        self.send(&FromShim::Done { token, errno });
    }

    /// Accepts a daemon. It must run as our uid or as root, and sends the nonce next.
    pub fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let Ok(stream) = accept_with(&self.link.listener, flags) else { return };
        if !super::address::is_trusted_peer(&stream) || !super::confined::is_outside(&stream) {
            return;
        }
        if let Some(earlier) = self.link.handshaking.take() {
            unwatch(&self.prepared.epoll, earlier.as_fd());
        }
        if watch(&self.prepared.epoll, stream.as_fd(), token::HANDSHAKE, EventFlags::IN).is_ok() {
            self.link.handshaking = Some(stream);
        }
    }

    pub fn handshake_event(&mut self) {
        let Some(stream) = self.link.handshaking.take() else { return };
        let mut hello = [0u8; HEADER_LEN + 16];
        // A daemon sends its hello in one piece; a peer that does not is not a daemon.
        let len = recv(&stream, &mut hello, RecvFlags::DONTWAIT).map_or(0, |(n, _)| n);
        let nonce = match frame::next_frame(&hello[..len], MAX_TO_SHIM_LEN) {
            Ok(Some((kind, body, _))) => ToShim::read(kind, body),
            Ok(None) | Err(frame::BadFrame) => None,
        };
        unwatch(&self.prepared.epoll, stream.as_fd());
        if nonce != Some(ToShim::Hello { nonce: self.nonce }) {
            return;
        }
        hooks::at("recovery.hello");
        // The newest daemon counts: an older connection is of a dead one.
        self.disconnect();
        if watch(&self.prepared.epoll, stream.as_fd(), token::CONTROL, EventFlags::IN).is_err() {
            return;
        }
        self.link.control = Some(stream);
        let (progress, exit, closed) = (self.progress(), self.exit, self.closed);
        self.send(&FromShim::Welcome { shim_pid: self.pid, pid: self.child_pid, progress, exit, closed });
    }
}
