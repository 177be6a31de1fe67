//! The sandbox: a confined start beside a plain one and beside `bwrap`, and calls of a confined program beside those of a plain one.

use crate::Bench;
use crate::client::{Client, call};
use crate::exec::{rest, started_by};
use crate::floors::{Small, bare_true, spawn_and_wait};
use crate::report::Target::{AtMost, TimesFloor};
use crate::report::{Figure, Unit};
use crate::sample::Series;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use toold_test_support::rig::Daemon;

const UNOBSERVED: &str = "[sandbox]\nobserve = false\n";
/// Opened files of one run, each of which is timed.
const CALLS: &str = "2000";
/// Files of `FILE_LEN` that are read in one run, each of which is timed.
const READS: &str = "100";
const FILE_LEN: usize = 1 << 20;
/// Blocks of computing in one run, each of which is timed.
const BLOCKS: &str = "50";
/// Ratio up to which a difference is not distinguishable from the noise of a machine.
const MAX_NOISE_RATIO: f64 = 1.1;

/// Makes the directory in which the programs run.
pub fn workspace(daemon: &Daemon) -> PathBuf {
    let dir = daemon.root().join("work");
    fs::create_dir(&dir).unwrap();
    dir
}

/// Returns the parameters of a program in the workspace, `confined` in the sandbox.
pub fn params(argv: Value, workspace: &Path, confined: bool) -> Value {
    let mut params = json!({ "argv": argv, "cwd": workspace, "session_key": "bench" });
    if confined {
        params["sandbox"] = json!("workspace-write");
    }
    params
}

/// Returns `/bin/true` confined by bubblewrap as `workspace-write` confines it. Signals to processes outside need a PID namespace
/// there.
fn wrapped_true(workspace: &Path) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent"]);
    command.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]);
    command.arg("--bind").args([workspace, workspace]).arg("--chdir").arg(workspace);
    command.args(["--", "/bin/true"]).env_clear().stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// Returns the reason why the other sandbox cannot be measured.
fn no_bwrap(workspace: &Path) -> Option<&'static str> {
    match wrapped_true(workspace).status() {
        Err(_) => Some("bwrap is not installed"),
        Ok(status) if !status.success() => Some("bwrap does not work here"),
        Ok(_) => None,
    }
}

/// Measures the response of a confined `exec`, and what it adds to a program's whole life.
pub fn exec(bench: &mut Bench) {
    let daemon = Daemon::start();
    let dir = workspace(&daemon);
    let mut client = Client::open(&daemon.socket());
    let of = |confined: bool, yield_ms: u64| {
        let mut params = params(json!(["/bin/true"]), &dir, confined);
        params["yield_ms"] = json!(yield_ms);
        call("exec", params)
    };
    let (plain, confined) = (of(false, 0), of(true, 0));
    let (plain_to_exit, confined_to_exit) = (of(false, 60_000), of(true, 60_000));
    let no_bwrap = no_bwrap(&dir);
    let (repetitions, count) = bench.pick((5, 100), (9, 500));
    let (mut by_plain, mut by_confined, mut fresh) = (Series::default(), Series::default(), Series::default());
    let (mut spawn, mut added, mut bwrap_added) = (Series::default(), Series::default(), Series::default());
    let mut sessions = 0;
    // The first one of a session makes its namespaces.
    started_by(&mut client, &confined);
    started_by(&mut client, &plain);
    for _ in 0..repetitions {
        let [mut plains, mut confineds, mut spawns, mut differences, mut bwraps, mut freshes] =
            [const { Vec::new() }; 6];
        for n in 0..count {
            plains.push(started_by(&mut client, &plain));
            confineds.push(started_by(&mut client, &confined));
            let mut to_exit = |line: &[u8]| {
                rest();
                client.ask(line)
            };
            differences.push(-to_exit(&plain_to_exit) + to_exit(&confined_to_exit));
            rest();
            let (bare, bare_to_exit) = spawn_and_wait(&mut bare_true());
            spawns.push(bare);
            if no_bwrap.is_none() {
                rest();
                bwraps.push(spawn_and_wait(&mut wrapped_true(&dir)).1 - bare_to_exit);
            }
            if n % 10 == 0 {
                sessions += 1;
                let mut params = params(json!(["/bin/true"]), &dir, true);
                params["session_key"] = json!(format!("new {sessions}"));
                freshes.push(started_by(&mut client, &call("exec", params)));
            }
        }
        by_plain.add(plains);
        by_confined.add(confineds);
        spawn.add(spawns);
        added.add(differences);
        fresh.add(freshes);
        if no_bwrap.is_none() {
            bwrap_added.add(bwraps);
        }
    }
    let report = &mut bench.report;
    let (name, p99) = ("exec without a sandbox", "exec without a sandbox p99");
    let ours = Figure::new("sandbox.exec.p50", Unit::Us, &by_confined.p50).floor(name, &by_plain.p50);
    report.add(
        ours.target(TimesFloor(1.5))
            .note("/bin/true in `workspace-write`, in turns with the floor; the session exists"),
    );
    report.add(Figure::new("sandbox.exec.p99", Unit::Us, &by_confined.p99).floor(p99, &by_plain.p99));
    report.add(Figure::new("sandbox.exec.bare.p50", Unit::Us, &by_confined.p50).floor("posix_spawn", &spawn.p50));
    let fresh = Figure::new("sandbox.exec.new_session.p50", Unit::Us, &fresh.p50).floor(name, &by_plain.p50);
    report.add(fresh.note("the namespaces are made too"));
    let note = "to the exit of /bin/true, confined less plain";
    match no_bwrap {
        Some(why) => report.skip("sandbox.exec.added.p50", why),
        None => {
            let ours =
                Figure::new("sandbox.exec.added.p50", Unit::Us, &added.p50).floor("what bwrap adds", &bwrap_added.p50);
            report.add(ours.target(TimesFloor(0.1)).note(note));
        }
    }
}

/// A daemon, and the small program in a place that a confined one can run.
struct Runner {
    daemon: Daemon,
    dir: PathBuf,
    program: String,
}

impl Runner {
    fn start(config: &str, small: &Small) -> Runner {
        let daemon = Daemon::start_with(config, &[]);
        let dir = workspace(&daemon);
        let program = dir.join("small");
        fs::copy(small.path(), &program).unwrap();
        fs::write(dir.join("file"), "x".repeat(FILE_LEN)).unwrap();
        Runner { daemon, program: program.display().to_string(), dir }
    }

    /// Runs the small program, and returns the microseconds that it prints.
    fn run(&self, args: &[&str], confined: bool) -> f64 {
        let argv: Vec<&str> = [self.program.as_str()].iter().chain(args).copied().collect();
        let mut params = params(json!(argv), &self.dir, confined);
        params["yield_ms"] = json!(60_000);
        let answer = self.daemon.ok("exec", params);
        let id = toold_test_support::rig::id(&answer);
        self.daemon.closed(&id);
        let text = self.daemon.text(&id);
        text.trim().parse::<f64>().unwrap_or_else(|e| panic!("{args:?} printed {text:?}: {e}")) / 1e3
    }
}

/// Measures opening for writing, reading and computing inside, each the median of one run.
pub fn calls(bench: &mut Bench) {
    let (observed, unobserved) = (Runner::start("", &bench.small), Runner::start(UNOBSERVED, &bench.small));
    let (write, open) = (["open-to-write", "file", CALLS], ["open", "file", CALLS]);
    let (read, compute) = (["read", "file", READS], ["compute", BLOCKS]);
    let [
        mut writes,
        mut unseen,
        mut opens,
        mut plain_opens,
        mut reads,
        mut plain_reads,
        mut computes,
        mut plain_computes,
    ] = [const { Vec::new() }; 8];
    // Makes the namespaces of both.
    observed.run(&read, true);
    unobserved.run(&read, true);
    for _ in 0..bench.pick(9, 25) {
        writes.push(observed.run(&write, true));
        unseen.push(unobserved.run(&write, true));
        opens.push(observed.run(&open, true));
        plain_opens.push(observed.run(&open, false));
        reads.push(observed.run(&read, true));
        plain_reads.push(observed.run(&read, false));
        computes.push(observed.run(&compute, true));
        plain_computes.push(observed.run(&compute, false));
    }
    let added: Vec<f64> = writes.iter().zip(&unseen).map(|(seen, unseen)| seen - unseen).collect();
    let report = &mut bench.report;
    let ours = Figure::new("sandbox.write.p50", Unit::Us, &writes).floor("the same, unobserved", &unseen);
    report.add(ours.note("opens a file in a root for writing and closes it"));
    let added = Figure::new("sandbox.write.added.p50", Unit::Us, &added).target(AtMost(25.0));
    report.add(added.note("by `observe`: the shim looks at the file"));
    let ours = Figure::new("sandbox.read.p50", Unit::Us, &reads).floor("without a sandbox", &plain_reads);
    report.add(ours.target(TimesFloor(MAX_NOISE_RATIO)).note(format!("a file of {} KiB", FILE_LEN >> 10)));
    let ours = Figure::new("sandbox.read.open.p50", Unit::Us, &opens).floor("without a sandbox", &plain_opens);
    report.add(ours.note(
        "opens a file for reading and closes it: the kernel looks at filter and rules, and the shim is not asked",
    ));
    let ours = Figure::new("sandbox.compute.p50", Unit::Us, &computes).floor("without a sandbox", &plain_computes);
    report.add(ours.target(TimesFloor(MAX_NOISE_RATIO)));
}
