//! What the daemon and its shims hold, in memory of their own and of the kernel's, and whether they wake when nothing happens.

use crate::Bench;
use crate::crowd::{self, ROOM, field, ours, pss_kib, rss_mib};
use crate::report::Target::AtMost;
use crate::report::{Figure, Unit};
use crate::rig::Daemon;
use crate::sys::Pidfd;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const MANY: usize = 1000;
/// What the kernel holds for processes and cannot drop.
const KERNEL: [&str; 4] = ["SUnreclaim", "KernelStack", "PageTables", "Percpu"];
/// Looks that must see the same before the daemon counts as idle.
const SETTLED: usize = 20;

/// Processes without anybody over them, killed when dropped.
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
    KERNEL.iter().map(|name| field("/proc/meminfo", name)).sum()
}

/// PSS of the daemon with its helpers, and of the shims that have a process.
fn pss(daemon: &Daemon) -> (f64, f64) {
    let (shims, rest): (Vec<_>, Vec<_>) = ours(daemon).into_iter().partition(|(name, _)| name == "toold-shim");
    let sum = |all: Vec<(String, i32)>| all.iter().map(|(_, pid)| pss_kib(*pid)).sum();
    (sum(rest), sum(shims))
}

/// Resident memory of the daemon at 0, 1,000 and 10,000 processes, and what one more costs.
pub fn held(bench: &mut Bench) {
    let bare_before = kernel_kib();
    let bare = Bare::start(MANY);
    let bare_kernel = (kernel_kib() - bare_before) / MANY as f64;
    let program: f64 = bare.0.iter().map(|child| pss_kib(child.id() as i32)).sum::<f64>() / MANY as f64;
    drop(bare);
    let daemon = Daemon::start_with(ROOM, &[]);
    let empty = rss_mib(daemon.pid());
    let ((daemon_before, shims_before), kernel_before) = (pss(&daemon), kernel_kib());
    crowd::sleeping(&daemon, MANY);
    let kernel = (kernel_kib() - kernel_before) / MANY as f64 - bare_kernel;
    let (daemon_after, shims_after) = pss(&daemon);
    let (growth, shim) = ((daemon_after - daemon_before) / MANY as f64, (shims_after - shims_before) / MANY as f64);
    let with_many = rss_mib(daemon.pid());
    let living = bench.pick(0, 9 * MANY);
    crowd::sleeping(&daemon, living);
    crowd::finished(&daemon, 9 * MANY - living);
    let with_most = rss_mib(daemon.pid());
    let report = &mut bench.report;
    report.add(Figure::new("memory.rss.0", Unit::MiB, &[empty]).target(AtMost(8.0)));
    report.add(Figure::new("memory.rss.1000", Unit::MiB, &[with_many]).note("all living"));
    let note = format!("{} living, {} finished", MANY + living, 9 * MANY - living);
    report.add(Figure::new("memory.rss.10000", Unit::MiB, &[with_most]).note(note));
    report.add(
        Figure::new("memory.job", Unit::KiB, &[shim + growth])
            .target(AtMost(90.0))
            .note(format!("PSS of a shim {shim:.1} and growth of daemon and zygote {growth:.1}, of {MANY} that sleep")),
    );
    report.add(
        Figure::new("memory.job.kernel", Unit::KiB, &[kernel])
            .note(format!("{} beyond the {bare_kernel:.1} of a process without us", KERNEL.join(", "))),
    );
    report.add(Figure::new("memory.job.all", Unit::KiB, &[shim + growth + kernel]).note("both together"));
    report.add(
        Figure::new("memory.program", Unit::KiB, &[program]).note("PSS of a bare `sleep`, not in the figures above"),
    );
}

/// How often each thread of ours was switched to.
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

/// Context switches of daemon, zygote, spares and shims while a thousand processes sleep.
pub fn idle(bench: &mut Bench) {
    let daemon = Daemon::start_with(ROOM, &[]);
    crowd::sleeping(&daemon, MANY);
    let pids: Vec<i32> = ours(&daemon).into_iter().map(|(_, pid)| pid).collect();
    assert!(pids.len() > MANY, "{} processes of ours", pids.len());
    // The daemon writes its journal out within a second, and threads that were needed go after some.
    let own = [daemon.pid()];
    let mut looks = Vec::new();
    daemon.eventually("the daemon rests", || {
        looks.push(switches(&own));
        let last = &looks[looks.len().saturating_sub(SETTLED)..];
        last.len() == SETTLED && last[0].len() == 3 && last.iter().all(|look| *look == last[0])
    });
    let (repetitions, seconds) = bench.pick((3, 2), (5, 10));
    let mut rates = Vec::new();
    for _ in 0..repetitions {
        let before = switches(&pids);
        std::thread::sleep(Duration::from_secs(seconds)); // measured: who wakes meanwhile
        let after = switches(&pids);
        let more = after.iter().map(|(thread, count)| count - before.get(thread).unwrap_or(&0.0)).sum::<f64>();
        rates.push(more / seconds as f64);
    }
    assert!(pids.iter().all(|pid| Pidfd::open(*pid).is_some_and(|p| !p.is_dead())));
    let figure = Figure::new("idle.switches", Unit::SwitchesPerSecond, &rates).target(AtMost(0.0));
    bench.report.add(figure.note(format!("daemon, zygote, spares and {MANY} shims, over {seconds} s")));
}
