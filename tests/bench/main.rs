//! Benchmarks of the release binaries over the real socket, beside floors measured in the same run.
//!
//! `cargo bench` takes minutes; `cargo bench -- --full` uses larger sizes; `cargo bench -- exec poll` runs the groups whose names
//! start with these. `--save FILE` saves the run, `--against FILE` compares with a saved one. Prints a line of JSON for each figure,
//! then a table.
// A measurement that unwraps a None has failed, and the panic names the line: there is no caller to return an error to.
#![allow(clippy::unwrap_used)]

#[path = "sys.rs"]
mod bench_sys;
mod capture;
mod children;
mod cli;
mod client;
mod events;
mod exec;
mod exit;
mod files;
mod floors;
mod kernel;
mod latency;
mod many;
mod memory;
mod patch;
mod recovery;
mod redact;
mod report;
mod sample;
mod sandbox;
mod sandbox_jobs;
mod saved;
mod script;
mod top;

use floors::Small;
use report::Report;
use saved::Saved;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// A group of figures: the prefixes of their names, and the function that measures them.
type Measure = (&'static [&'static str], fn(&mut Bench));

const ALL: &[Measure] = &[
    (&["exec"], exec::latency),
    (&["jobs", "floor.spawn_wait.rate"], exec::jobs),
    (&["exit"], exit::latency),
    (&["poll", "list", "log"], latency::by_size),
    (&["page"], latency::page),
    (&["capture", "floor.cat"], capture::speed),
    (&["follow"], capture::follow),
    (&["cli"], cli::latency),
    (&["memory"], memory::usage),
    (&["idle"], memory::idle),
    (&["recovery"], recovery::after_kill),
    (&["patch"], patch::apply),
    (&["events.append"], events::append),
    (&["events.next"], events::next),
    (&["events.push"], events::push),
    (&["events.rate.matches"], events::rate),
    (&["events.rate.push"], events::replay),
    (&["fs.search"], files::search),
    (&["sandbox.exec"], sandbox::exec),
    (&["sandbox.write", "sandbox.read", "sandbox.compute"], sandbox::calls),
    (&["sandbox.jobs"], sandbox_jobs::jobs),
    (&["script.run"], script::run),
    (&["script.call"], script::calls),
    (&["kernel.run"], kernel::run),
    (&["redact"], redact::page),
    (&["top"], top::cpu),
];

/// State shared by all measurements.
pub struct Bench {
    pub report: Report,
    pub small: Small,
    full: bool,
}

impl Bench {
    /// Returns one of two sizes.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        if self.full { full } else { quick }
    }
}

#[derive(Default)]
struct Args {
    full: bool,
    save: Option<PathBuf>,
    against: Option<PathBuf>,
    wanted: Vec<String>,
}

impl Args {
    fn parse(mut options: impl Iterator<Item = String>) -> Result<Args, String> {
        let mut args = Args::default();
        while let Some(option) = options.next() {
            let mut file = || options.next().map(PathBuf::from).ok_or(format!("{option} needs a file"));
            match option.as_str() {
                "--full" => args.full = true,
                "--save" => args.save = Some(file()?),
                "--against" => args.against = Some(file()?),
                // Cargo adds this flag.
                "--bench" => {}
                other if other.starts_with('-') => return Err(format!("no such option: {other}")),
                _ => args.wanted.push(option),
            }
        }
        Ok(args)
    }

    /// Returns true if a group was requested: `exec` selects all names with that prefix, and `poll.1000` its group.
    fn wants(&self, names: &[&str]) -> bool {
        let fits =
            |wanted: &String| names.iter().any(|name| name.starts_with(wanted.as_str()) || wanted.starts_with(name));
        self.wanted.is_empty() || self.wanted.iter().any(fits)
    }
}

fn main() -> ExitCode {
    if children::run_if_requested() {
        return ExitCode::SUCCESS;
    }
    match Args::parse(std::env::args().skip(1)).and_then(|args| run(&args)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Returns true if everything could be measured. Slow figures are not failures: machines are noisy.
fn run(args: &Args) -> Result<bool, String> {
    let against = args.against.as_deref().map(Saved::read).transpose()?;
    let mut bench = Bench { report: Report::default(), small: Small::build(), full: args.full };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let (began, mut failed) = (Instant::now(), Vec::new());
    for (names, measure) in ALL.iter().filter(|(names, _)| args.wants(names)) {
        let began = Instant::now();
        if catch_unwind(AssertUnwindSafe(|| measure(&mut bench))).is_err() {
            failed.push(names[0]);
        }
        eprintln!("{}: {:.0} s", names[0], began.elapsed().as_secs_f64());
    }
    bench.report.print(against.as_ref());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{:.0} s in all, {cores} cores, load before {}", began.elapsed().as_secs_f64(), load.trim_end());
    if let Some(path) = &args.save {
        std::fs::write(path, bench.report.lines()).map_err(|e| format!("write {}: {e}", path.display()))?;
    }
    if !failed.is_empty() {
        eprintln!("not measured: {}", failed.join(", "));
    }
    Ok(failed.is_empty())
}
