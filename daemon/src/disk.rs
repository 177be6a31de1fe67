//! Bounds the threads that wait for the disk, so that a disk that hangs delays only work that needs it.
//!
//! File operations run on the threads that run tasks: a hand-over would cost more than most of them take. So a task that
//! may touch the disk takes one of a few places while it runs, and there are more threads than places.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use tokio::sync::Semaphore;

/// The most threads of the runtime that may wait for the disk at a time. The runtime has more.
pub const PLACES: usize = 2;
/// The most blocking threads that may wait for the disk at a time.
pub const BLOCKING_PLACES: usize = 12;

static FREE: Semaphore = Semaphore::const_new(PLACES);
static FREE_BLOCKING: Semaphore = Semaphore::const_new(BLOCKING_PLACES);

thread_local! {
    /// The task that this thread runs has a place.
    static HAS_PLACE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `future`, which may wait for the disk, with a place whenever it runs: it takes none while it awaits something.
/// Waits without a thread if no place is free. May be nested.
pub async fn on_disk<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut turn = None;
    poll_fn(|context| {
        if HAS_PLACE.get() {
            return future.as_mut().poll(context);
        }
        let place = match turn.as_mut() {
            None => FREE.try_acquire().ok(),
            Some(_) => None,
        };
        let place = match place {
            Some(place) => Some(place),
            None => match turn.get_or_insert_with(|| Box::pin(FREE.acquire())).as_mut().poll(context) {
                // It is never closed.
                Poll::Ready(place) => {
                    turn = None;
                    place.ok()
                }
                Poll::Pending => return Poll::Pending,
            },
        };
        let held = HoldPlace::begin();
        let polled = future.as_mut().poll(context);
        drop((held, place));
        polled
    })
    .await
}

/// Does the same for a call, in a task of its own from its first step on: the task of the connection has other calls, which
/// may need no disk.
pub async fn call_on_disk<F: Future>(call: F) -> F::Output {
    tokio::task::yield_now().await;
    on_disk(call).await
}

/// Lets callers that were just answered go on before anything that may touch the disk. The runtime runs such a caller next
/// on this thread and on no other: it would wait for the disk if this task did.
pub async fn run_woken() {
    tokio::task::yield_now().await;
}

/// Runs `work` on a blocking thread. Disk users leave some of these threads to others.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let place = FREE_BLOCKING.acquire().await.map_err(io::Error::other)?;
    // The place belongs to the thread: it stays taken if the caller goes away.
    let work = move || {
        let _place = place;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}

/// Marks the thread until it is dropped, also by a panic.
struct HoldPlace;

impl HoldPlace {
    fn begin() -> HoldPlace {
        HAS_PLACE.set(true);
        HoldPlace
    }
}

impl Drop for HoldPlace {
    fn drop(&mut self) {
        HAS_PLACE.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn tasks_that_need_no_disk_run_while_more_than_all_places_hang() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(PLACES + 1).build().expect("a runtime");
        let (hangs, hanging) = mpsc::channel();
        let mut ends = Vec::new();
        let users: Vec<_> = (0..PLACES * 3)
            .map(|_| {
                let (end, ended) = mpsc::channel::<()>();
                ends.push(end);
                let hangs = hangs.clone();
                runtime.spawn(on_disk(on_disk(async move {
                    tokio::task::yield_now().await;
                    hangs.send(()).expect("the test waits");
                    let _ = ended.recv();
                })))
            })
            .collect();
        (0..PLACES).for_each(|_| hanging.recv().expect("each reports that it hangs"));
        runtime.block_on(runtime.spawn(async { tokio::task::yield_now().await })).expect("it runs");
        assert!(hanging.try_recv().is_err(), "no more than {PLACES} take a thread");
        drop(ends);
        runtime.block_on(async {
            for user in users {
                user.await.expect("it ends");
            }
        });
    }
}
