//! A browser's WebSocket on one side, the daemon's socket on the other: one thread, nothing is read that cannot be passed on.

use crate::Server;
use crate::gate::{Verdict, judge};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tungstenite::{Error, Message, WebSocket};

/// The longest message of a browser: what the daemon takes by default.
const MAX_MESSAGE_LEN: usize = 16 << 20;
const READ_LEN: usize = 64 * 1024;

/// Both sides, and what is on its way between them.
struct Proxy {
    browser: WebSocket<TcpStream>,
    daemon: UnixStream,
    write: bool,
    /// The start of a line of the daemon.
    line: Vec<u8>,
    /// Bytes that the daemon has not taken yet.
    to_daemon: Vec<u8>,
    /// The browser has not taken everything yet.
    is_browser_full: bool,
}

/// The reason why a connection ends.
enum End {
    Browser,
    /// The close code and its reason.
    Close(CloseCode, &'static str),
}

pub fn run(server: &Server, stream: TcpStream) -> io::Result<()> {
    let config =
        WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE_LEN)).max_frame_size(Some(MAX_MESSAGE_LEN));
    let connected = server.options.connect();
    stream.set_nonblocking(connected.is_ok())?;
    let mut browser = WebSocket::from_raw_socket(stream, Role::Server, Some(config));
    let Ok(client) = connected else {
        return close(&mut browser, CloseCode::Again, "the daemon is away");
    };
    let daemon = client.into_stream();
    daemon.set_nonblocking(true)?;
    let (line, to_daemon) = (Vec::new(), Vec::new());
    let mut proxy = Proxy { browser, daemon, write: server.write, line, to_daemon, is_browser_full: false };
    loop {
        match proxy.step() {
            Ok(()) => {}
            Err(End::Browser) => return Ok(()),
            Err(End::Close(code, reason)) => {
                proxy.browser.get_ref().set_nonblocking(false)?;
                return close(&mut proxy.browser, code, reason);
            }
        }
    }
}

fn close(browser: &mut WebSocket<TcpStream>, code: CloseCode, reason: &'static str) -> io::Result<()> {
    // The browser may be gone already.
    let _ = browser.close(Some(CloseFrame { code, reason: reason.into() }));
    let _ = browser.flush();
    Ok(())
}

impl Proxy {
    fn step(&mut self) -> Result<(), End> {
        self.wait().map_err(|_| End::Browser)?;
        self.flush_browser()?;
        self.flush_daemon()?;
        if self.to_daemon.is_empty() {
            self.read_browser()?;
        }
        if !self.is_browser_full {
            self.read_daemon()?;
        }
        Ok(())
    }

    /// Waits until one side has something that the other can take.
    fn wait(&self) -> io::Result<()> {
        let flags = |reads: bool, writes: bool| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, reads);
            flags.set(PollFlags::OUT, writes);
            flags
        };
        let browser = flags(self.to_daemon.is_empty(), self.is_browser_full);
        let daemon = flags(!self.is_browser_full, !self.to_daemon.is_empty());
        let mut fds = [
            PollFd::from_borrowed_fd(self.browser.get_ref().as_fd(), browser),
            PollFd::from_borrowed_fd(self.daemon.as_fd(), daemon),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn flush_browser(&mut self) -> Result<(), End> {
        self.is_browser_full = match self.browser.flush() {
            Ok(()) => false,
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => true,
            Err(_) => return Err(End::Browser),
        };
        Ok(())
    }

    fn flush_daemon(&mut self) -> Result<(), End> {
        while !self.to_daemon.is_empty() {
            match self.daemon.write(&self.to_daemon) {
                Ok(written) => drop(self.to_daemon.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(End::Close(CloseCode::Restart, "the daemon is away")),
            }
        }
        Ok(())
    }

    fn read_browser(&mut self) -> Result<(), End> {
        while self.to_daemon.is_empty() && !self.is_browser_full {
            match self.browser.read() {
                Ok(Message::Text(text)) => match judge(&text, self.write) {
                    Verdict::Pass(line) => {
                        self.to_daemon = line.into_bytes();
                        self.to_daemon.push(b'\n');
                        self.flush_daemon()?;
                    }
                    Verdict::Refuse(answer) => self.send(answer)?,
                    Verdict::Drop => {}
                },
                Ok(Message::Binary(_)) => return Err(End::Close(CloseCode::Unsupported, "send text")),
                // Pongs are queued by the library, and a close ends with the next read.
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_)) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(Error::Capacity(_)) => return Err(End::Close(CloseCode::Size, "the message is too long")),
                Err(_) => return Err(End::Browser),
            }
        }
        Ok(())
    }

    fn send(&mut self, text: String) -> Result<(), End> {
        match self.browser.send(Message::Text(text.into())) {
            Ok(()) => Ok(()),
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                self.is_browser_full = true;
                Ok(())
            }
            Err(_) => Err(End::Browser),
        }
    }

    fn read_daemon(&mut self) -> Result<(), End> {
        let mut chunk = [0; READ_LEN];
        // What was searched before is not searched again: a line can have megabytes.
        let mut searched = self.line.len();
        match self.daemon.read(&mut chunk) {
            Ok(0) => return Err(End::Close(CloseCode::Restart, "the daemon is away")),
            Ok(read) => self.line.extend_from_slice(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(_) => return Err(End::Close(CloseCode::Restart, "the daemon is away")),
        }
        while let Some(end) = self.line[searched..].iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=searched + end).collect();
            searched = 0;
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if !text.is_empty() {
                self.send(text)?;
            }
        }
        Ok(())
    }
}
