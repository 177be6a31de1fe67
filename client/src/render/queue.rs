//! The queues as `queue` prints them.

use super::table::{Cell, table};
use super::text::escape_control;
use super::{Style, Tint};
use toold_proto::results::Queue;

/// Renders one line per queue.
pub fn list(queues: &[Queue], style: Style) -> String {
    let row = |queue: &Queue| {
        let paused = if queue.paused { Cell::tinted("yes", Tint::Bad) } else { Cell::new("no") };
        let number = |n: u64| Cell::new(&n.to_string());
        [Cell::new(&queue.name), number(queue.slots), paused, number(queue.running), number(queue.pending)]
    };
    let headings = ["NAME", "SLOTS", "PAUSED", "RUNNING", "PENDING"];
    table(headings, queues.iter().map(row).collect(), style)
}

/// Describes one queue.
pub fn line(queue: &Queue) -> String {
    let Queue { name, slots, paused, running, pending } = queue;
    let (unit, paused) = (if *slots == 1 { "slot" } else { "slots" }, if *paused { "paused, " } else { "" });
    format!("{}  {slots} {unit}, {paused}{running} running, {pending} pending\n", escape_control(name))
}
