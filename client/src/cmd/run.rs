//! `run`: start a process, show its output as it comes, exit as it does.

use super::Context;
use super::follow::{Follow, Plan};
use super::start::{self, PtyDefault};
use crate::args;
use crate::failure::Failure;
use crate::sys::{self, Signals};
use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: start::Options,
    /// Leave it running in the background after so long and print its id
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    detach_after: Option<u64>,
    #[command(flatten)]
    what: start::What,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    let input = if args.options.stdin { Some(standard_input()?) } else { None };
    let window = sys::window(std::io::stdout().as_fd()).filter(|size| size.rows > 0 && size.cols > 0);
    let exec = start::params(args.what, args.options, PtyDefault::Ours(window))?;
    let plan = Plan { exec, detach_after: args.detach_after.map(Duration::from_millis), input };
    let signals = Signals::catch(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])
        .map_err(|source| Failure::Io { doing: "catch signals", source })?;
    Follow::new(cx, signals, plan).run()
}

/// Our stdin as a file: without a buffer, so that poll(2) tells all there is to know about it.
fn standard_input() -> Result<File, Failure> {
    let fd = std::io::stdin().as_fd().try_clone_to_owned();
    Ok(fd.map_err(|source| Failure::Io { doing: "open standard input", source })?.into())
}
