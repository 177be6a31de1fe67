//! Stdout: one line per message, written by one thread in the order of a bounded queue.

use std::io::Write;
use tokio::sync::{mpsc, oneshot};

/// Messages that may wait for the reader of stdout; then the servers wait.
const QUEUE_LEN: usize = 64;

enum Item {
    Line(String),
    /// Answered when everything before it is written.
    Flush(oneshot::Sender<()>),
}

#[derive(Clone)]
pub struct Output {
    queue: mpsc::Sender<Item>,
}

/// A place in the queue.
pub struct Place<'a>(Option<mpsc::Permit<'a, Item>>);

impl Place<'_> {
    pub fn write(self, line: String) {
        if let Some(permit) = self.0 {
            permit.send(Item::Line(line));
        }
    }
}

impl Output {
    /// Starts the thread. If the reader goes away, `on_broken` is called: there is no use in going on.
    pub fn start(mut to: impl Write + Send + 'static, on_broken: impl FnOnce() + Send + 'static) -> Output {
        let (queue, mut items) = mpsc::channel(QUEUE_LEN);
        std::thread::spawn(move || {
            while let Some(item) = items.blocking_recv() {
                let written = match item {
                    // One write for the whole line, so that no part of one is left behind.
                    Item::Line(line) => to.write_all(format!("{line}\n").as_bytes()).and_then(|()| to.flush()),
                    Item::Flush(done) => {
                        // Who flushed may have given up.
                        let _ = done.send(());
                        Ok(())
                    }
                };
                if written.is_err() {
                    return on_broken();
                }
            }
        });
        Output { queue }
    }

    pub async fn reserve(&self) -> Place<'_> {
        Place(self.queue.reserve().await.ok())
    }

    pub async fn write(&self, line: String) {
        self.reserve().await.write(line);
    }

    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.queue.send(Item::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }
}
