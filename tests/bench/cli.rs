//! `toolctl` as a whole process, beside a small static program that connects and sends one request.

use crate::Bench;
use crate::client::call;
use crate::floors::spawn_and_wait;
use crate::many;
use crate::report::Target::TimesFloor;
use crate::report::{Figure, Unit};
use crate::sample::Series;
use serde_json::json;
use std::process::{Command, Stdio};
use toold_test_support::rig::Daemon;

pub fn latency(bench: &mut Bench) {
    let daemon = Daemon::start();
    let process = daemon.sh("seq 10; exec sleep 100000");
    many::sleeping(&daemon, 20);
    let question = String::from_utf8(call("poll", json!({ "id": process }))).unwrap();
    let socket = daemon.socket().display().to_string();
    let mut floor_command = bench.small.command(&["ask", &socket, question.trim_end()]);
    let silent = |args: &[&str]| -> Command {
        let mut command = daemon.ctl_command(args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let names = ["poll", "log", "list", "exec", "version"];
    let mut commands = [
        silent(&["poll", &process]),
        silent(&["log", &process]),
        silent(&["list"]),
        silent(&["exec", "--", "/bin/true"]),
        silent(&["--version"]),
    ];
    let (mut floor, mut times) = (Series::default(), [const { Series { p50: Vec::new(), p99: Vec::new() } }; 5]);
    let (repetitions, count) = bench.pick((5, 80), (9, 400));
    for _ in 0..repetitions {
        floor.take(count, || spawn_and_wait(&mut floor_command).1);
        for (command, times) in commands.iter_mut().zip(&mut times) {
            times.take(count, || spawn_and_wait(command).1);
        }
    }
    for (name, times) in names.iter().zip(&times) {
        let figure = Figure::new(format!("cli.{name}.p50"), Unit::Us, &times.p50);
        let figure = figure.floor("static, connects, asks, ends", &floor.p50);
        bench.report.add(if *name == "poll" { figure.target(TimesFloor(2.0)) } else { figure });
    }
    let p99 = Figure::new("cli.poll.p99", Unit::Us, &times[0].p99);
    bench.report.add(p99.floor("static, connects, asks, ends p99", &floor.p99));
}
