//! Output: rate of capture from pipe and terminal, with and without patterns, and rate and latency to followers.

use crate::Bench;
use crate::children::ChildProcess;
use crate::client::{Client, call};
use crate::report::Target::PartOfFloor;
use crate::report::{Figure, Unit};
use crate::sample::{Series, seconds, us};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::sys;

/// Config that keeps all output and does not limit watch matches.
const UNLIMITED: &str =
    "log_max_bytes = 4294967296\n[watch]\nmin_interval_ms = 0\nstrike_limit = 0\nglobal_max = 1000000000\n";
const PATTERNS: [usize; 4] = [0, 1, 5, 20];
/// The same for a terminal, whose rate is below that of any number of patterns.
const ON_TERMINAL: [usize; 3] = [0, 1, 20];
const CLIENTS: usize = 100;

fn mib_per_second(bytes: usize, seconds: f64) -> f64 {
    bytes as f64 / seconds / f64::from(1 << 20)
}

/// Measures MiB/s from the call to the end of the output, with all output scanned and kept.
fn captured(conn: &mut Conn, bytes: usize, exec: Value) -> f64 {
    let mut process = String::new();
    let time = seconds(|| {
        process = id(&conn.call("exec", exec).unwrap());
        conn.call("wait", json!({ "id": process, "until": "closed" })).unwrap();
        // The exit of a watched process is published when its last line was scanned, or at most 8 MB are left: wait for those.
        loop {
            let watch = conn.call("poll", json!({ "id": process })).unwrap()["watch"].clone();
            if watch.is_null() || watch["state"] == "ended" {
                break;
            }
        }
    });
    let page = conn.call("poll", json!({ "id": process, "cursor": 0, "max_bytes": 10 })).unwrap();
    assert!(page["bytes"].as_u64().unwrap() as usize >= bytes && page["gap"].is_null(), "not all was kept: {page}");
    conn.call("forget", json!({ "ids": [process] })).unwrap();
    mib_per_second(bytes, time)
}

/// Measures MiB/s of output that is held for its reader: to the end of the capture, and to the last byte that the reader has.
/// The first is of a log that takes all, so that only the work for the hold and the reader beside it slow it down; the second
/// may be of a log that is many times smaller than the output.
fn held(daemon: &Daemon, bytes: usize, argv: &[String]) -> (f64, f64) {
    let mut reader = Client::open(&daemon.socket());
    let began = Instant::now();
    let (started, _) = reader.checked(&call("exec", json!({ "argv": argv, "hold": true })));
    let process = id(&started);
    let (mut captured, mut read) = (0.0, 0.0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            daemon.ok("wait", json!({ "id": process, "until": "closed" }));
            captured = began.elapsed().as_secs_f64();
        });
        read_to_end(&mut reader, &process);
        read = began.elapsed().as_secs_f64();
    });
    let end = daemon.ok("poll", json!({ "id": process }));
    assert_eq!(end["bytes"], bytes, "{end}");
    daemon.ok("forget", json!({ "ids": [process] }));
    (mib_per_second(bytes, captured), mib_per_second(bytes, read))
}

/// Measures the program's own write to a file, or through `cat`.
fn to_file(writer: &mut Command, path: &Path, by_cat: bool) -> f64 {
    let file = File::create(path).unwrap();
    let time = seconds(|| {
        if by_cat {
            let mut child = writer.stdout(Stdio::piped()).spawn().unwrap();
            let from = child.stdout.take().unwrap();
            assert!(Command::new("cat").stdin(from).stdout(file).status().unwrap().success());
            assert!(child.wait().unwrap().success());
        } else {
            assert!(writer.stdout(file).status().unwrap().success());
        }
    });
    let speed = mib_per_second(path.metadata().unwrap().len() as usize, time);
    std::fs::remove_file(path).unwrap();
    speed
}

/// Measures a terminal whose other end is read into a file.
fn terminal_to_file(writer: &mut Command, path: &Path, bytes: usize) -> f64 {
    let (mut person, program) = sys::terminal(24, 80);
    let mut file = File::create(path).unwrap();
    let time = seconds(|| {
        let mut child = writer.stdout(program).spawn().unwrap();
        // Otherwise the command keeps its end of the terminal open, and the read would never end.
        writer.stdout(Stdio::null());
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = person.read(&mut buffer) {
            file.write_all(&buffer[..count]).unwrap();
        }
        assert!(child.wait().unwrap().success());
    });
    std::fs::remove_file(path).unwrap();
    mib_per_second(bytes, time)
}

pub fn speed(bench: &mut Bench) {
    let daemon = Daemon::start_with(UNLIMITED, &[]);
    let (repetitions, bytes, by_terminal) = bench.pick((5, 256 << 20, 16 << 20), (5, 1 << 30, 128 << 20));
    let path = daemon.root().join("floor");
    let patterns: Vec<String> = (0..20).map(|n| format!("ERROR-{n:02} at")).collect();
    let (lines, short) = (bytes.to_string(), by_terminal.to_string());
    let argv = |bytes: &str| bench.small.argv(&["lines", bytes]);
    let mut conn = daemon.conn();
    // A sixteenth of the output, at least in the short run.
    let small = Daemon::start_with("log_max_bytes = 16777216\n", &[]);
    let (mut held_all, mut held_small) = (Vec::new(), Vec::new());
    let (mut file, mut cat, mut terminal_floor) = (Vec::new(), Vec::new(), Vec::new());
    let (mut pipes, mut terminals) =
        ([const { Vec::new() }; PATTERNS.len()], [const { Vec::new() }; ON_TERMINAL.len()]);
    for _ in 0..repetitions {
        file.push(to_file(&mut bench.small.command(&["lines", &lines]), &path, false));
        cat.push(to_file(&mut bench.small.command(&["lines", &lines]), &path, true));
        for (count, speeds) in PATTERNS.into_iter().zip(&mut pipes) {
            let exec = json!({ "argv": argv(&lines), "watch": patterns[..count] });
            speeds.push(captured(&mut conn, bytes, exec));
        }
        held_all.push(held(&daemon, bytes, &argv(&lines)).0);
        held_small.push(held(&small, bytes, &argv(&lines)).1);
        terminal_floor.push(terminal_to_file(&mut bench.small.command(&["lines", &short]), &path, by_terminal));
        for (count, speeds) in ON_TERMINAL.into_iter().zip(&mut terminals) {
            let exec = json!({ "argv": argv(&short), "watch": patterns[..count], "pty": true });
            speeds.push(captured(&mut conn, by_terminal, exec));
        }
    }
    let report = &mut bench.report;
    report.add(Figure::new("floor.cat", Unit::MiBPerSecond, &cat).note("the same writer, `| cat > file`"));
    for (count, speeds) in PATTERNS.into_iter().zip(&pipes) {
        let figure = Figure::new(format!("capture.pipe.{count}"), Unit::MiBPerSecond, speeds);
        let figure = figure.floor("straight to a file", &file);
        report.add(match count {
            0 => figure.target(PartOfFloor(0.75)).note(format!("{} MiB of 80-byte lines, all kept", bytes >> 20)),
            5 => figure.target(PartOfFloor(0.6)),
            // These have no target.
            _ => figure,
        });
    }
    let figure = Figure::new("capture.hold", Unit::MiBPerSecond, &held_all).floor("straight to a file", &file);
    report.add(
        figure.target(PartOfFloor(0.6)).note("the same for a reader with `hold`, which polls meanwhile; all kept"),
    );
    let figure = Figure::new("capture.hold.read", Unit::MiBPerSecond, &held_small).floor("straight to a file", &file);
    report.add(figure.note("to the last byte that the reader has, through a log of 16 MiB"));
    for (count, speeds) in ON_TERMINAL.into_iter().zip(&terminals) {
        let figure = Figure::new(format!("capture.pty.{count}"), Unit::MiBPerSecond, speeds);
        report.add(figure.floor("a terminal read into a file", &terminal_floor));
    }
}

/// One process with a hundred followers: bytes per second to all of them, and time until all have a line.
pub fn follow(bench: &mut Bench) {
    let daemon = Daemon::start_with(UNLIMITED, &[]);
    let (repetitions, bytes, count) = bench.pick((3, 4 << 20, 30), (5, 16 << 20, 200));
    let (mut rates, mut rate_floor) = (Vec::new(), Vec::new());
    let (mut times, mut time_floor) = (Series::default(), Series::default());
    let mut fan = Fan::open();
    let cat = id(&daemon.ok("exec", json!({ "argv": ["cat"], "stdin": "pipe" })));
    let (mut writer, mut followers) = (Client::open(&daemon.socket()), subscribed(&daemon, &cat));
    for _ in 0..repetitions {
        rate_floor.push(mib_per_second(bytes * CLIENTS, fan.flood(bytes)));
        rates.push(mib_per_second(bytes * CLIENTS, flood(&daemon, &bench.small.argv(&["lines", &bytes.to_string()]))));
        time_floor.take(count, || fan.line());
        let write = call("write", json!({ "id": cat, "data": "hit\n" }));
        times.take(count, || {
            let time = us(|| {
                writer.send(&write);
                followers.iter_mut().for_each(|follower| drop(follower.line().unwrap()));
            });
            writer.line();
            time
        });
    }
    let report = &mut bench.report;
    report.add(
        Figure::new("follow.100.rate", Unit::MiBPerSecond, &rates)
            .floor("one process writes to 100 sockets", &rate_floor)
            .note("to all together, by `poll` with `wait_ms`"),
    );
    report.add(
        Figure::new("follow.100.p50", Unit::Us, &times.p50)
            .floor("a line to 100 sockets", &time_floor.p50)
            .note("from `write` to `cat` until all 100 subscribers have it"),
    );
}

/// Opens connections that subscribe to a process's output.
fn subscribed(daemon: &Daemon, process: &str) -> Vec<Conn> {
    let mut all: Vec<Conn> = (0..CLIENTS).map(|_| daemon.conn()).collect();
    for conn in &mut all {
        conn.call("events.subscribe", json!({ "id": process, "types": ["exited"], "output": true })).unwrap();
    }
    all
}

/// Measures seconds until each of a hundred followers has all output of a program.
fn flood(daemon: &Daemon, argv: &[String]) -> f64 {
    let gate = daemon.root().join("flood");
    let gate = sys::Gate::new(&gate);
    let script = format!("{}; exec {}", gate.wait(), argv.join(" "));
    let process = daemon.sh(&script);
    let mut time = 0.0;
    std::thread::scope(|scope| {
        let followers: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| followed(daemon, &process))).collect();
        time = seconds(|| {
            gate.open();
            followers.into_iter().for_each(|follower| follower.join().unwrap());
        });
    });
    std::fs::remove_file(&gate.path).unwrap();
    time
}

/// Reads to the end of the output, always waiting for more.
fn followed(daemon: &Daemon, process: &str) {
    read_to_end(&mut Client::open(&daemon.socket()), process);
}

fn read_to_end(client: &mut Client, process: &str) {
    let mut cursor = 0;
    loop {
        let ask = json!({ "id": process, "cursor": cursor, "wait_ms": 30_000, "max_bytes": 1 << 20, "ansi": "keep" });
        client.ask(&call("poll", ask));
        let next = next_cursor(client.last());
        // Only a page without output is parsed: parsing is not measured.
        if next == cursor {
            let answer: Value = serde_json::from_slice(client.last()).unwrap();
            if answer["result"]["closed"] == json!(true) {
                return;
            }
        }
        cursor = next;
    }
}

/// Finds the number in a response whose output has no quotes, within 4 KiB of its start or end.
fn next_cursor(answer: &[u8]) -> u64 {
    let key = b"\"next_cursor\":";
    let ends = [&answer[..answer.len().min(4096)], &answer[answer.len().saturating_sub(4096)..]];
    let found = ends.iter().find_map(|end| {
        let at = end.windows(key.len()).position(|window| window == key)?;
        let digits: String =
            end[at + key.len()..].iter().map(|b| *b as char).take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    found.expect("an answer of poll has a cursor")
}

/// The floor: a process that writes to a hundred sockets.
struct Fan {
    _child: ChildProcess,
    control: Client,
    clients: Vec<Client>,
}

impl Fan {
    fn open() -> Fan {
        let process = ChildProcess::start("fan");
        let mut control = Client::open(&process.socket());
        control.send(format!("{CLIENTS}\n").as_bytes());
        let clients = (0..CLIENTS).map(|_| Client::open(&process.socket())).collect();
        Fan { _child: process, control, clients }
    }

    fn flood(&mut self, bytes: usize) -> f64 {
        let Fan { control, clients, .. } = self;
        seconds(|| {
            std::thread::scope(|scope| {
                clients.iter_mut().for_each(|client| drop(scope.spawn(|| client.drain(bytes))));
                control.send(format!("#{bytes}\n").as_bytes());
            });
        })
    }

    fn line(&mut self) -> f64 {
        us(|| {
            self.control.send(b"hit\n");
            for client in &mut self.clients {
                client.line();
            }
        })
    }
}
