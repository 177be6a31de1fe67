//! `shutdown`: stops the daemon. Never starts one for that.

use super::Context;
use super::kill::DEFAULT_GRACE_MS;
use crate::blocking::CallError;
use crate::error::{CliError, DONE};
use crate::render::{self, Style};
use crate::sys::{self, Interest};
use rustix::process::{Pid, PidfdFlags};
use std::os::fd::AsFd;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params;
use toold_proto::results::ShutdownResult;

/// The time that the daemon may take to end after its answer.
const END_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Kill every process too
    #[arg(long)]
    kill: bool,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    cx.connection.refuse_autostart();
    if args.kill {
        cx.connection.expect_wait(Duration::from_millis(DEFAULT_GRACE_MS));
    }
    let done = stop(&args, cx);
    match done {
        Err(CliError::Call(CallError::Unreachable { path, .. })) => Err(CliError::NotRunning(path)),
        other => other,
    }
}

fn stop(args: &Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let params = params::ShutdownParams { kill: args.kill };
    if cx.json {
        return cx.call_once::<api::DaemonShutdown>(&params, |_, _| String::new());
    }
    let info = cx.connection.call_with_retry::<api::DaemonInfo>(&params::Empty::default())?;
    let kept = if args.kill { 0 } else { info.counts.starting + info.counts.running };
    let daemon = Pid::from_raw(i32::try_from(info.pid).unwrap_or(0));
    let daemon = daemon.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
    let raw = cx.connection.call_raw::<api::DaemonShutdown>(&params)?;
    if let Some(daemon) = daemon {
        // It has answered, so it ends. If it takes longer, the message is early, and nothing else is wrong.
        let _ = sys::poll([Some((daemon.as_fd(), Interest::Readable))], Some(END_TIMEOUT));
    }
    let show = |result: &_, style| killed(result, style) + &stopped(kept);
    cx.show::<api::DaemonShutdown>(&raw, show).map(|_| DONE)
}

fn killed(result: &ShutdownResult, style: Style) -> String {
    render::kill::kill(&result.killed, style)
}

fn stopped(kept: u64) -> String {
    match kept {
        0 => "daemon stopped\n".into(),
        1 => "daemon stopped (1 process keeps running)\n".into(),
        kept => format!("daemon stopped ({kept} processes keep running)\n"),
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply, info};
    use serde_json::json;

    #[test]
    fn the_processes_that_keep_running_are_counted() {
        for (running, printed) in [
            (0, "daemon stopped\n"),
            (1, "daemon stopped (1 process keeps running)\n"),
            (3, "daemon stopped (3 processes keep running)\n"),
        ] {
            let mut known = info(1, 2);
            known["counts"]["running"] = json!(running);
            // No process has this pid.
            known["pid"] = json!(0);
            let stopping = json!({"stopping": true, "killed": []});
            let fake = FakeDaemon::start(vec![vec![Reply::result(known), Reply::result(&stopping)]]);
            assert_eq!(test_run(&fake, &["shutdown"]), (0, printed.into(), String::new()));
        }
    }
}
