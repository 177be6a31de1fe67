//! Tests of the memory that the daemon has for each running process.

use super::handle::{Command, Proc};
use super::task::{Task, TaskStart};

fn future_size<F>(_: impl FnOnce(&'static mut Task, TaskStart) -> F) -> usize {
    size_of::<F>()
}

/// A field, or a call in the task whose future is not boxed, costs as much for each process. The calls for rare cases once
/// made the future of the task 7 KiB.
#[test]
fn a_process_is_small() {
    let sizes = [size_of::<Proc>(), size_of::<Task>(), future_size(Task::run), size_of::<Command>()];
    let most = [944, 320, 1944, 24];
    assert!(sizes.iter().zip(most).all(|(size, most)| *size <= most), "{sizes:?}, at most {most:?} are allowed");
}
