//! A descriptor in reserve. When the process has no other, it is given up to accept one client at a time and to send it
//! the reason: without it, new clients would wait for an answer until others disconnect.

use super::{Wire, reject};
use std::fs::File;
use std::io;
use std::sync::Arc;
use tokio::net::UnixListener;
use toold_proto::RpcError;

/// Any file that can always be opened.
const DEVICE: &str = "/dev/null";

/// The descriptor, unless it is in use.
#[derive(Default)]
pub struct ReserveFd(Option<File>);

impl ReserveFd {
    /// Fails if there is none to spare.
    pub fn open() -> io::Result<ReserveFd> {
        File::open(DEVICE).map(|file| ReserveFd(Some(file)))
    }

    /// Rejects one client with the descriptor in reserve. Returns false if that was not possible.
    pub async fn reject_one(&mut self, listener: &UnixListener, wire: &Arc<Wire>) -> bool {
        if self.0.take().is_none() {
            self.reopen();
            return false;
        }
        // At once: another client or a file could get the descriptor in the meantime.
        let accepted = futures_util::FutureExt::now_or_never(listener.accept());
        let Some(Ok((stream, _))) = accepted else {
            self.reopen();
            return false;
        };
        let error = match stream.peer_cred().map(|peer| wire.check_peer(peer.uid())) {
            Ok(Err(error)) => error,
            Ok(Ok(())) | Err(_) => out_of_descriptors(),
        };
        reject::reject(stream, &error).await;
        self.reopen();
        true
    }

    fn reopen(&mut self) {
        self.0 = File::open(DEVICE).ok();
    }
}

/// Returns true if accept failed because no descriptor is free.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    let shortage = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(|e| e.raw_os_error());
    error.raw_os_error().is_some_and(|code| shortage.contains(&code))
}

fn out_of_descriptors() -> RpcError {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.map_or("unlimited".into(), |n| n.to_string());
    let message = format!("the daemon has no free descriptor (`ulimit -n` is {limit}); close connections or raise it");
    RpcError::limit("open_files", message)
}
