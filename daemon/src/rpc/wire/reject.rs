//! Sends a last error to a client, in its own framing, and closes so that the error arrives.

use super::frame::Decode;
use super::headers::Headers;
use super::lines::Lines;
use super::response::error_without_id;
use super::sniff::{Framing, Opening, read_opening};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;
use toold_proto::{ErrorKind, RpcError};

/// The time in which a rejected client must show its framing. After that it gets a line.
const DETECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The time in which a client must stop sending after its last answer.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends a client that was not admitted the reason, and closes.
pub(crate) async fn reject(mut stream: impl AsyncRead + AsyncWrite + Unpin, error: &RpcError) {
    let framing = match read_opening(&mut stream, Instant::now() + DETECT_TIMEOUT).await {
        Opening::Detected(framing, _) => framing,
        Opening::TimedOut => Framing::Unknown,
        Opening::Closed => return,
    };
    send_error_and_close(stream, framing, error).await;
}

/// Sends `error` and closes.
pub(crate) async fn send_error_and_close(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    framing: Framing,
    error: &RpcError,
) {
    let mut out = Vec::new();
    let json = error_without_id(error);
    match framing {
        Framing::Lines | Framing::Unknown => Lines::encode(&mut out, &json),
        Framing::Headers => Headers::encode(&mut out, &json),
        Framing::Http => http(&mut out, &json, error.kind()),
    }
    // A client that does not read misses it.
    let _ = tokio::time::timeout(LINGER_TIMEOUT, stream.write_all(&out)).await;
    linger(stream).await;
}

/// The most bytes that are read from a rejected client. A client that sends more gets a reset.
const MAX_DRAINED_LEN: usize = 1 << 20;

/// Closes so that the client sees its last answer: a client that is still sending would die by SIGPIPE, or get a reset,
/// before it reads.
pub(crate) async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let drain = async {
        stream.shutdown().await?;
        let mut ignored = Vec::with_capacity(16 * 1024);
        let mut left = MAX_DRAINED_LEN;
        while left > 0 {
            match stream.read_buf(&mut ignored).await? {
                0 => break,
                n => left = left.saturating_sub(n),
            }
            ignored.clear();
        }
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(LINGER_TIMEOUT, drain).await;
}

fn http(out: &mut Vec<u8>, json: &str, kind: Option<ErrorKind>) {
    let status = match kind {
        Some(ErrorKind::Denied) => "403 Forbidden",
        // The other rejections are limits.
        _ => "503 Service Unavailable",
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        json.len()
    );
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(json.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UnixStream;

    async fn answer_to_rejected(sent: &[u8]) -> String {
        let (mut client, server) = UnixStream::pair().expect("a pair");
        let refuse = tokio::spawn(async move {
            let error = RpcError::new(ErrorKind::Denied, "not you").with("reason", "uid 7 is not 1");
            reject(server, &error).await;
        });
        client.write_all(sent).await.expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("answered, not reset");
        drop(client);
        refuse.await.expect("ended");
        answer
    }

    #[tokio::test]
    async fn a_rejected_client_gets_the_reason_in_its_own_framing() {
        let json = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"not you","data":{"kind":"denied","reason":"uid 7 is not 1"}}}"#;
        // More than is read at first: a connection that is closed at once would be reset.
        let request = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, "x".repeat(100_000));
        assert_eq!(answer_to_rejected(request.as_bytes()).await, format!("{json}\n"));
        assert_eq!(
            answer_to_rejected(b"Content-Length: 2\r\n\r\n{}").await,
            format!("Content-Length: {}\r\n\r\n{json}", json.len())
        );
        let answer = answer_to_rejected(b"POST / HTTP/1.1\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n") && answer.ends_with(json), "{answer}");
    }
}
