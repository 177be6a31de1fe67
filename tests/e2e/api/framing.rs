//! Clients of the other framings: Content-Length headers, HTTP and WebSocket.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use toold_test_support::rig::DEADLINE;

/// The key of RFC 6455's example, and the answer that it requires.
const WS_KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const WS_ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// A connection that reads headers, then the number of bytes that they announce.
pub struct Framed {
    stream: BufReader<UnixStream>,
}

impl Framed {
    pub fn open(socket: &Path) -> Framed {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        Framed { stream: BufReader::new(stream) }
    }

    /// Sends a message as an editor's LSP client does.
    pub fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.send_raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    pub fn recv(&mut self) -> Value {
        let (_, body) = self.response();
        serde_json::from_slice(&body).expect("the body is JSON")
    }

    /// Returns the start line and headers in lower case, and the body.
    pub fn response(&mut self) -> (String, Vec<u8>) {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            let n = self.stream.read_line(&mut line).expect("no answer within the deadline");
            assert!(n > 0, "the daemon hung up after {head:?}");
            if line == "\r\n" {
                break;
            }
            head += &line.to_lowercase();
        }
        let length = head.lines().find_map(|l| l.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.stream.read_exact(&mut body).unwrap();
        (head, body)
    }

    /// Returns everything up to the end of the connection.
    pub fn rest(mut self) -> Vec<u8> {
        let mut all = Vec::new();
        match self.stream.read_to_end(&mut all) {
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => panic!("no hang-up within {DEADLINE:?}"),
            // A reset ends the connection too; `all` has what came before it.
            _ => all,
        }
    }
}

/// A POST of one message that asks to close the connection.
pub fn post(message: &Value) -> String {
    let body = message.to_string();
    format!(
        "POST / HTTP/1.1\r\nHost: toold\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends these bytes and returns everything that is answered until the connection is closed.
pub fn http_raw(socket: &Path, request: &[u8]) -> String {
    let mut conn = Framed::open(socket);
    // A daemon that rejects early may close before it has read all.
    let _ = conn.stream.get_mut().write_all(request);
    String::from_utf8_lossy(&conn.rest()).into_owned()
}

/// A minimal WebSocket client.
pub struct Ws {
    conn: Framed,
}

impl Ws {
    pub fn open(socket: &Path) -> Ws {
        let mut conn = Framed::open(socket);
        let hello = format!(
            "GET / HTTP/1.1\r\nHost: toold\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {WS_KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        conn.send_raw(hello.as_bytes());
        let (head, _) = conn.response();
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        let accept = format!("sec-websocket-accept: {}", WS_ACCEPT.to_lowercase());
        assert!(head.lines().any(|l| l == accept), "{head}");
        Ws { conn }
    }

    pub fn send(&mut self, message: &Value) {
        self.frame(0x81, message.to_string().as_bytes());
    }

    /// Sends one frame with this first byte (0x81: a whole text), masked as a client must.
    pub fn frame(&mut self, first: u8, payload: &[u8]) {
        let mask = [7u8, 11, 13, 17];
        let mut bytes = vec![first];
        match payload.len() {
            n if n < 126 => bytes.push(0x80 | n as u8),
            n if n < 65536 => {
                bytes.push(0x80 | 126);
                bytes.extend((n as u16).to_be_bytes());
            }
            n => {
                bytes.push(0x80 | 127);
                bytes.extend((n as u64).to_be_bytes());
            }
        }
        bytes.extend(mask);
        bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(b, m)| b ^ m));
        // A frame that is too large may be rejected before it is read.
        let _ = self.conn.stream.get_mut().write_all(&bytes);
    }

    /// Returns the next text as JSON; None for a close frame or the end of the connection. Skips pings.
    pub fn recv(&mut self) -> Option<Value> {
        loop {
            let (opcode, payload) = self.next()?;
            match opcode {
                1 => return Some(serde_json::from_slice(&payload).unwrap()),
                8 => return None,
                // Ping or pong: not a message.
                _ => {}
            }
        }
    }

    /// Returns the opcode and payload of the next frame.
    pub fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut two = [0; 2];
        self.conn.stream.read_exact(&mut two).ok()?;
        let length = match two[1] & 0x7f {
            126 => {
                let mut n = [0; 2];
                self.conn.stream.read_exact(&mut n).unwrap();
                u16::from_be_bytes(n) as usize
            }
            127 => {
                let mut n = [0; 8];
                self.conn.stream.read_exact(&mut n).unwrap();
                u64::from_be_bytes(n) as usize
            }
            n => n as usize,
        };
        let mut payload = vec![0; length];
        self.conn.stream.read_exact(&mut payload).unwrap();
        Some((two[0] & 0x0f, payload))
    }
}
