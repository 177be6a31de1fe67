//! Bounds the threads that wait for the disk, so that a disk that hangs delays only work that needs it.
//!
//! File operations run on the threads that run tasks: a hand-over would cost more than most of them take. So a task that
//! may touch the disk takes one of a few places while it runs, and there are more threads than places.
//!
//! One thread of the runtime at a time waits for sockets and timers, and it runs what they wake. If that hangs, no other
//! thread knows that it should wait in its stead. The monitor looks a moment after a place was taken, and wakes one.

use pin_project_lite::pin_project;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;

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
pub fn on_disk<F: Future>(future: F) -> OnDisk<F> {
    OnDisk { future, turn: None, yields: false }
}

/// Does the same for a call, in a task of its own from its first step on: the task of the connection has other calls, which
/// may need no disk.
pub fn call_on_disk<F: Future>(call: F) -> OnDisk<F> {
    OnDisk { future: call, turn: None, yields: true }
}

type Turn = Pin<Box<dyn Future<Output = Result<SemaphorePermit<'static>, AcquireError>> + Send + Sync>>;

pin_project! {
    /// The future of `on_disk`. Not an `async fn`: that would have room for `future` twice, as an argument and as the future
    /// that it awaits, and nested ones four times. The tasks of all processes have one.
    #[project = OnDiskProj]
    pub struct OnDisk<F> {
        #[pin]
        future: F,
        // Waits for a place.
        turn: Option<Turn>,
        // The first step is yet to be left to another task.
        yields: bool,
    }
}

impl<F: Future> Future for OnDisk<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let OnDiskProj { future, turn, yields } = self.project();
        if std::mem::take(yields) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if HAS_PLACE.get() {
            return future.poll(context);
        }
        let place = match turn {
            None => FREE.try_acquire().ok(),
            Some(_) => None,
        };
        let place = match place {
            Some(place) => Some(place),
            None => match turn.get_or_insert_with(|| Box::pin(FREE.acquire())).as_mut().poll(context) {
                // It is never closed.
                Poll::Ready(place) => {
                    *turn = None;
                    place.ok()
                }
                Poll::Pending => return Poll::Pending,
            },
        };
        let held = HoldPlace::begin();
        let polled = future.poll(context);
        drop((held, place));
        polled
    }
}

/// The time after which a place that is taken may be one whose thread hangs.
const MONITOR_DELAY: Duration = Duration::from_millis(20);

/// The timer of the monitor. None: there is no monitor.
static TIMER: OnceLock<OwnedFd> = OnceLock::new();
/// The timer runs.
static TIMER_RUNS: AtomicBool = AtomicBool::new(false);
/// Places taken now.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Runs `future` on the runtime. Meanwhile this thread is the monitor: it costs nothing while the disk is not used.
pub fn run_monitored<T: Send + 'static>(
    runtime: &Runtime,
    future: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let timer = TIMER.get_or_init(|| timer);
    // Places that were taken before it was there did not start it.
    set_timer(MONITOR_DELAY);
    let running = runtime.spawn(async {
        // Dropped also by a panic.
        let _ends = EndMonitor;
        future.await
    });
    monitor(runtime, timer, &running)?;
    runtime.block_on(running).map_err(io::Error::other)
}

/// Wakes a thread of the runtime whenever a place is taken at the end of the delay.
fn monitor<T>(runtime: &Runtime, timer: &OwnedFd, running: &JoinHandle<T>) -> io::Result<()> {
    let mut expirations = [0; 8];
    while !running.is_finished() {
        match rustix::io::read(timer, &mut expirations) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        // In this order: a place that is taken later finds no timer that runs, and starts it.
        TIMER_RUNS.store(false, SeqCst);
        if TAKEN.load(SeqCst) > 0 {
            start_timer();
            // The thread that runs it goes on to wait for sockets and timers.
            runtime.spawn(async {});
        }
    }
    Ok(())
}

fn start_timer() {
    if TIMER_RUNS.load(SeqCst) || TIMER_RUNS.swap(true, SeqCst) {
        return;
    }
    set_timer(MONITOR_DELAY);
}

fn set_timer(delay: Duration) {
    let Some(timer) = TIMER.get() else { return };
    let delay = Timespec::try_from(delay).unwrap_or_default();
    let once = Itimerspec { it_interval: Timespec::default(), it_value: delay };
    // Fails only for a wrong timer.
    let _ = rustix::time::timerfd_settime(timer, TimerfdTimerFlags::empty(), &once);
}

/// Ends the monitor when dropped.
struct EndMonitor;

impl Drop for EndMonitor {
    fn drop(&mut self) {
        // The task is finished a moment after this: the monitor looks again after each delay.
        TAKEN.fetch_add(1, SeqCst);
        TIMER_RUNS.store(true, SeqCst);
        set_timer(Duration::from_nanos(1));
    }
}

/// Lets callers that were just answered go on before anything that may touch the disk. The runtime runs such a caller next
/// on this thread and on no other: it would wait for the disk if this task did.
///
/// Not `yield_now` of tokio: that keeps this task with the thread, which may hang in the next one before it goes on here.
pub async fn run_woken() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
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
        TAKEN.fetch_add(1, SeqCst);
        start_timer();
        HoldPlace
    }
}

impl Drop for HoldPlace {
    fn drop(&mut self) {
        HAS_PLACE.set(false);
        TAKEN.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_future_has_room_for_what_it_runs_only_once() {
        let large = || async {
            let kept = [1u8; 1000];
            tokio::task::yield_now().await;
            kept.len()
        };
        let alone = size_of_val(&large());
        assert!(alone >= 1000);
        for nested in [size_of_val(&on_disk(on_disk(large()))), size_of_val(&call_on_disk(on_disk(large())))] {
            assert!(nested <= alone + 64, "{nested} bytes for a future of {alone}");
        }
    }

    #[test]
    fn a_call_does_not_begin_in_the_first_step_of_its_task() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let order = std::sync::Mutex::new(Vec::new());
        let note = |step| order.lock().expect("no other thread").push(step);
        runtime.block_on(async {
            tokio::join!(call_on_disk(async { note("call") }), async { note("other") });
        });
        assert_eq!(*order.lock().expect("no other thread"), ["other", "call"]);
    }

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
                    run_woken().await;
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

    /// Without a monitor, the thread that hangs is the one that waited for timers, and no other does.
    #[test]
    fn timers_expire_while_the_thread_that_waited_for_them_hangs() {
        let workers = PLACES + 1;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_time().build();
        let runtime = runtime.expect("a runtime");
        let (end, ended) = mpsc::channel::<()>();
        let sleep = |ms| tokio::time::sleep(Duration::from_millis(ms)); // rig: a timer is what is tested
        let waits = run_monitored(&runtime, async move {
            let hangs = tokio::spawn(async move {
                sleep(50).await;
                on_disk(async move { ended.recv() }).await
            });
            tokio::spawn(async move {
                sleep(150).await;
                drop(end);
            });
            hangs.await.expect("it ends")
        });
        assert!(waits.expect("a monitor").is_err());
    }
}
