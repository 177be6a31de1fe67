//! The six tools, a file each: arguments in, a few calls of the daemon, text out.

mod kill;
mod list;
mod read;
mod start;
mod wait;
mod write;

use crate::arguments::Arguments;
use crate::call::Call;
use crate::daemon_link::Failure;
use crate::reply::Reply;
use serde_json::{Map, Value};

/// Runs one of the six tools. None: it is another one.
pub fn run(name: &str, arguments: &Map<String, Value>, call: &mut Call<'_>) -> Option<Result<Reply, Failure>> {
    let args = Arguments::new(arguments);
    Some(match name {
        "proc_start" => start::run(args, call),
        "proc_wait" => wait::run(args, call),
        "proc_read" => read::run(args, call),
        "proc_write" => write::run(args, call),
        "proc_kill" => kill::run(args, call),
        "proc_list" => list::run(args, call),
        _ => return None,
    })
}
