//! Memory of the daemon and its shims, their own and the kernel's, and context switches while nothing happens.

use crate::Bench;
use crate::many::{self, daemon_processes, field, pss_kib, rss_mib};
use crate::report::Target::AtMost;
use crate::report::{Figure, Unit};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use toold_test_support::procfs::kept_namespaces;
use toold_test_support::rig::Daemon;
use toold_test_support::sys::Pidfd;

const MANY: usize = 1000;
/// Fields of /proc/meminfo for memory that the kernel holds for processes and cannot drop.
const KERNEL_FIELDS: [&str; 4] = ["SUnreclaim", "KernelStack", "PageTables", "Percpu"];
/// The kernel's memory is settled if it changes by less than this within `SETTLE_INTERVAL`.
const SETTLED_KIB: f64 = 256.0;
const SETTLE_INTERVAL: Duration = Duration::from_millis(200);
/// A busy machine never settles: then the last value is used.
const MAX_SETTLE_ROUNDS: usize = 25;
/// Equal samples in a row after which the daemon is idle.
const IDLE_ROUNDS: usize = 20;
/// Threads of an idle daemon: the main one, the log's, four workers.
const IDLE_THREADS: usize = 6;

/// Processes without a supervisor, killed when dropped.
struct Bare(Vec<Child>);

impl Bare {
    fn start(count: usize) -> Bare {
        let sleep = || Command::new("sleep").arg("100000").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        Bare((0..count).map(|_| sleep()).collect())
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|child| child.kill().unwrap());
        self.0.iter_mut().for_each(|child| drop(child.wait()));
    }
}

fn kernel_kib() -> f64 {
    KERNEL_FIELDS.iter().map(|name| field("/proc/meminfo", name)).sum()
}

/// Returns the same after the kernel has freed memory of earlier processes, which it does late.
pub fn settled_kernel_kib() -> f64 {
    let mut last = kernel_kib();
    for _ in 0..MAX_SETTLE_ROUNDS {
        std::thread::sleep(SETTLE_INTERVAL); // measured: memory that is still being freed
        let now = kernel_kib();
        if (now - last).abs() < SETTLED_KIB {
            return now;
        }
        last = now;
    }
    last
}

/// Returns the PSS of the daemon with its helpers, and of the shims that have a process.
pub fn pss(daemon: &Daemon) -> (f64, f64) {
    let (shims, rest): (Vec<_>, Vec<_>) =
        daemon_processes(daemon).into_iter().partition(|(name, _)| name == "toold-shim");
    let sum = |all: Vec<(String, i32)>| all.iter().map(|(_, pid)| pss_kib(*pid)).sum();
    (sum(rest), sum(shims))
}

/// Cost of one more process in KiB.
#[derive(Default)]
struct Cost {
    program: Vec<f64>,
    bare_kernel: Vec<f64>,
    shim: Vec<f64>,
    daemon: Vec<f64>,
    kernel: Vec<f64>,
    empty_rss: Vec<f64>,
    empty_anonymous: Vec<f64>,
    rss: Vec<f64>,
}

impl Cost {
    /// Runs one repetition and returns its daemon.
    fn repeat(&mut self) -> Daemon {
        let each = |kib: f64| kib / MANY as f64;
        let before = settled_kernel_kib();
        let bare = Bare::start(MANY);
        let bare_kernel = each(settled_kernel_kib() - before);
        self.program.push(each(bare.0.iter().map(|child| pss_kib(child.id() as i32)).sum()));
        drop(bare);
        let daemon = many::daemon();
        self.empty_rss.push(rss_mib(daemon.pid()));
        self.empty_anonymous.push(field(&format!("/proc/{}/status", daemon.pid()), "RssAnon"));
        let (before, kernel_before) = (pss(&daemon), settled_kernel_kib());
        many::sleeping(&daemon, MANY);
        self.bare_kernel.push(bare_kernel);
        self.kernel.push(each(settled_kernel_kib() - kernel_before) - bare_kernel);
        let after = pss(&daemon);
        self.daemon.push(each(after.0 - before.0));
        self.shim.push(each(after.1 - before.1));
        self.rss.push(rss_mib(daemon.pid()));
        daemon
    }
}

fn is_checked(daemon: &Daemon) -> bool {
    daemon.ok("daemon.info", json!({}))["sandbox"].is_object()
}

/// Returns the resident memory of idle daemons after each has checked its sandbox and dropped the namespaces for that.
fn checked_rss(count: usize) -> Vec<f64> {
    let daemons: Vec<Daemon> = (0..count).map(|_| many::daemon()).collect();
    for daemon in &daemons {
        daemon.eventually("the sandbox was checked", || is_checked(daemon));
        daemon.eventually("no namespace is kept", || kept_namespaces(daemon.pid()).is_empty());
    }
    daemons.iter().map(|daemon| rss_mib(daemon.pid())).collect()
}

/// Measures the resident memory of the daemon at 0, 1,000 and 10,000 processes, and the cost of one more.
pub fn usage(bench: &mut Bench) {
    let checked = checked_rss(3);
    let mut cost = Cost::default();
    (1..bench.pick(3, 5)).for_each(|_| drop(cost.repeat()));
    let living = bench.pick(0, many::max_running(10 * MANY) - MANY);
    let daemon = cost.repeat();
    many::sleeping(&daemon, living);
    many::finished(&daemon, 9 * MANY - living);
    let with_most = rss_mib(daemon.pid());
    let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<f64>>();
    let own = sum(&cost.shim, &cost.daemon);
    let report = &mut bench.report;
    report.add(Figure::new("memory.rss.0", Unit::MiB, &cost.empty_rss).target(AtMost(8.0)));
    let anonymous = Figure::new("memory.anonymous.0", Unit::KiB, &cost.empty_anonymous);
    report.add(anonymous.note("what is not pages of files: the cost of capabilities that no one uses"));
    let checked = Figure::new("memory.rss.0.checked", Unit::MiB, &checked).target(AtMost(8.0));
    report.add(checked.note("after the daemon has checked its sandbox, which it does 2 s after its start"));
    report.add(Figure::new("memory.rss.1000", Unit::MiB, &cost.rss).note("all living"));
    let note = format!("{} living, {} finished", MANY + living, 9 * MANY - living);
    report.add(Figure::new("memory.rss.10000", Unit::MiB, &[with_most]).note(note));
    let job =
        Figure::new("memory.job", Unit::KiB, &own).floor("PSS of the program", &cost.program).target(AtMost(90.0));
    report.add(
        job.note(format!("PSS of shim and growth of the daemon, each of {MANY} that sleep; the program not counted")),
    );
    report.add(Figure::new("memory.job.shim", Unit::KiB, &cost.shim));
    report.add(Figure::new("memory.job.daemon", Unit::KiB, &cost.daemon));
    let kernel =
        Figure::new("memory.job.kernel", Unit::KiB, &cost.kernel).floor("for the program alone", &cost.bare_kernel);
    report.add(kernel.note(format!("{} beyond those of the program alone", KERNEL_FIELDS.join(", "))));
    report.add(Figure::new("memory.job.all", Unit::KiB, &sum(&own, &cost.kernel)).note("with the kernel's"));
}

/// Returns the number of context switches of each thread.
fn switches(pids: &[i32]) -> BTreeMap<(i32, i32), f64> {
    let mut all = BTreeMap::new();
    for pid in pids {
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse::<i32>().ok()) {
            let path = format!("/proc/{pid}/task/{task}/status");
            let count = field(&path, "voluntary_ctxt_switches") + field(&path, "nonvoluntary_ctxt_switches");
            all.insert((*pid, task), count);
        }
    }
    all
}

/// Measures context switches of daemon, zygote, spares and shims while a thousand processes sleep.
pub fn idle(bench: &mut Bench) {
    let daemon = many::daemon();
    // The check takes spares, which end with it, and keeps namespaces for a while.
    daemon.eventually("the sandbox was checked", || is_checked(&daemon));
    daemon.eventually("no namespace is kept", || kept_namespaces(daemon.pid()).is_empty());
    many::sleeping(&daemon, MANY);
    let pids: Vec<i32> = daemon_processes(&daemon).into_iter().map(|(_, pid)| pid).collect();
    assert!(pids.len() > MANY, "{} processes of ours", pids.len());
    // The daemon flushes its journal within a second, and idle threads of its pool exit after some seconds.
    let own = [daemon.pid()];
    let mut samples = Vec::new();
    daemon.eventually("the daemon is idle", || {
        samples.push(switches(&own));
        let last = &samples[samples.len().saturating_sub(IDLE_ROUNDS)..];
        last.len() == IDLE_ROUNDS && last[0].len() == IDLE_THREADS && last.iter().all(|sample| *sample == last[0])
    });
    let (repetitions, seconds) = bench.pick((3, 2), (5, 10));
    let mut rates = Vec::new();
    for _ in 0..repetitions {
        let before = switches(&pids);
        std::thread::sleep(Duration::from_secs(seconds)); // measured: wake-ups during this time
        let after = switches(&pids);
        let more = after.iter().map(|(thread, count)| count - before.get(thread).unwrap_or(&0.0)).sum::<f64>();
        rates.push(more / seconds as f64);
    }
    assert!(pids.iter().all(|pid| Pidfd::open(*pid).is_some_and(|p| !p.is_dead())));
    let figure = Figure::new("idle.switches", Unit::SwitchesPerSecond, &rates).target(AtMost(0.0));
    bench.report.add(figure.note(format!("daemon, zygote, spares and {MANY} shims, over {seconds} s")));
}
