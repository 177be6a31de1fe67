//! `toolctl top` on a terminal while a thousand processes run: the part of a core that it takes, and the daemon for it.

use crate::Bench;
use crate::many;
use crate::report::Target::AtMost;
use crate::report::{Figure, Unit};
use std::time::{Duration, Instant};
use toold_test_support::procfs::cpu_ticks;
use toold_test_support::term::Term;

const MANY: usize = 1000;
/// Ticks of the clock in which the kernel counts the time of a process.
const TICKS_PER_SECOND: f64 = 100.0;

pub fn cpu(bench: &mut Bench) {
    let daemon = many::daemon();
    many::sleeping(&daemon, MANY);
    let term = Term::ctl(&daemon, &["top"]);
    term.sees(&format!("{MANY} run"));
    let top = term.toolctl().pid;
    let (repetitions, seconds) = bench.pick((3, 10), (5, 30));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..repetitions {
        let (began, before) = (Instant::now(), [top, daemon.pid()].map(cpu_ticks));
        std::thread::sleep(Duration::from_secs(seconds)); // measured: processor time during this time
        let percent = |ticks: u64| ticks as f64 / TICKS_PER_SECOND / began.elapsed().as_secs_f64() * 100.0;
        ours.push(percent(cpu_ticks(top) - before[0]));
        theirs.push(percent(cpu_ticks(daemon.pid()) - before[1]));
    }
    term.types("q");
    assert_eq!(term.ends(), 0);
    let figure = Figure::new("top.cpu", Unit::Percent, &ours).target(AtMost(1.0));
    bench.report.add(figure.note(format!("of a core, {MANY} processes that sleep, over {seconds} s")));
    bench.report.add(Figure::new("top.cpu.daemon", Unit::Percent, &theirs).note("for the same, in the daemon"));
}
