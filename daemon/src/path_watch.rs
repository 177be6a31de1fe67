//! Notices that the socket, its directory or the lock file was removed or moved, and makes it again.
//!
//! The kernel reports it (inotify), so nothing wakes up while all is in place. Only while something cannot be made again is
//! it tried at intervals.

use crate::listener::ListenAddr;
use crate::state_dir::StartError;
use crate::state_lock::StateLock;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixListener;
use tokio::sync::mpsc;

/// The pause before another try to make again what could not be made.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Runs until the receiver is gone. A new listener replaces the one whose file was lost.
pub async fn run(addr: Arc<ListenAddr>, lock: Arc<StateLock>, renewed: mpsc::Sender<UnixListener>) {
    let mut failed = false;
    while !renewed.is_closed() {
        // Watched first and looked at then, so that nothing is missed between.
        let watches = match Watches::new(&addr, &lock) {
            Ok(watches) => watches,
            Err(e) => {
                tracing::warn!(%e, "cannot watch the socket: if it is removed, restart toold");
                return;
            }
        };
        match restore(&addr, &lock) {
            Ok(Restored { listener, any }) => {
                failed = false;
                if let Some(listener) = listener
                    && renewed.send(listener).await.is_err()
                {
                    return;
                }
                if any {
                    // The new directory needs a watch.
                    continue;
                }
                tokio::select! {
                    () = watches.changed() => {}
                    () = renewed.closed() => {}
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut failed, true) {
                    tracing::error!(%error, "something was removed and cannot be made again; trying");
                }
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

struct Restored {
    listener: Option<UnixListener>,
    any: bool,
}

fn restore(addr: &ListenAddr, lock: &StateLock) -> Result<Restored, StartError> {
    let file = lock.restore_file()?;
    if file {
        tracing::warn!(dir = %lock.dir().display(), "the lock file was removed, and is there again");
    }
    let listener = addr.restore()?;
    if let (Some(_), Some(path)) = (&listener, addr.path()) {
        tracing::warn!(path = %path.display(), "the socket was removed, and is there again");
    }
    Ok(Restored { any: file || listener.is_some(), listener })
}

/// One inotify descriptor with every directory that matters.
struct Watches(AsyncFd<OwnedFd>);

impl Watches {
    fn new(addr: &ListenAddr, lock: &StateLock) -> io::Result<Watches> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        for dir in [addr.path().and_then(Path::parent), Some(lock.dir())].into_iter().flatten() {
            let entries = WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO;
            let own = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::ONLYDIR;
            // Directories that are missing are made again by `restore`, and watched then.
            let _ = inotify::add_watch(&fd, dir, entries | own);
            for above in dir.ancestors().skip(1) {
                let _ = inotify::add_watch(&fd, above, own | WatchFlags::MASK_ADD);
            }
        }
        crate::sys::pollable(fd).map(Watches).ok_or_else(io::Error::last_os_error)
    }

    /// Waits for a change. Which one does not matter: everything is looked at.
    async fn changed(&self) {
        // An error means that the descriptor is unusable, so all is looked at and watched again.
        let _ = self.0.readable().await.map(|mut ready| ready.clear_ready());
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let _ = rustix::io::read(&self.0, &mut buffer[..]);
    }
}
