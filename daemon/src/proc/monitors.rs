//! Starts the optional tasks of a process: watch, heartbeat, input detection.

use super::handle::Proc;
use super::{heartbeat, needs_input, watcher};
use crate::disk::on_disk;
use std::sync::Arc;

/// Starts the tasks that the request asked for. All of them end with the program.
pub fn spawn_monitors(proc: &Arc<Proc>) {
    if proc.watch_task.is_some() {
        tokio::spawn(on_disk(watcher::run(proc.clone())));
    }
    if proc.spec.heartbeat_ms.is_some() {
        tokio::spawn(on_disk(heartbeat::run(proc.clone())));
    }
    if proc.spec.pty.is_some() || proc.spec.stdin_pipe {
        tokio::spawn(on_disk(needs_input::run(proc.clone())));
    }
}
