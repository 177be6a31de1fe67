//! Detects clients that have closed their connection, also while nothing is read from it.

use std::io;
use std::os::fd::AsFd;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Waits until the client has closed both directions. One that has only stopped sending still reads.
pub(super) async fn hung_up(stream: &UnixStream) {
    // Resolves when the client stops sending, and leaves the readable and writable state of the stream alone.
    if stream.ready(Interest::PRIORITY).await.is_err() {
        return;
    }
    match HangUp::new(stream) {
        Ok(hang_up) => hang_up.wait().await,
        // Without a descriptor, only the write of the answer shows it.
        Err(_) => std::future::pending().await,
    }
}

/// Detects that a client which has stopped sending stops reading too. Asking the stream itself would clear its writable
/// state, so this is a second descriptor of the same socket.
pub(super) struct HangUp(UnixStream);

impl HangUp {
    pub fn new(stream: &UnixStream) -> io::Result<HangUp> {
        let second = std::os::unix::net::UnixStream::from(stream.as_fd().try_clone_to_owned()?);
        Ok(HangUp(UnixStream::from_std(second)?))
    }

    pub async fn wait(&self) {
        while let Ok(ready) = self.0.ready(Interest::WRITABLE).await {
            if ready.is_write_closed() {
                return;
            }
            // Clears the writable state, so that the next `ready` waits for a change.
            let _ = self.0.try_io(Interest::WRITABLE, || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into()));
        }
    }
}
