//! The inputs of the counted functions: the same bytes every time, and everything that is built only once.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;
use toold_daemon::approvals::Approvals;
use toold_daemon::backend::{ExecShim, Launcher};
use toold_daemon::changes::Changes;
use toold_daemon::config::{Config, ShimMode};
use toold_daemon::events::{Consumers, Journal, JournalLimits};
use toold_daemon::file_calls::FileCalls;
use toold_daemon::log::{LineQuery, Log};
use toold_daemon::open_tools::{ToolParts, Tools, open_tools};
use toold_daemon::patch::Patches;
use toold_daemon::policy::Judge;
use toold_daemon::proc::event_sink::EventSink;
use toold_daemon::proc::search_pool::SearchPool;
use toold_daemon::proc::watch_gate::WatchGate;
use toold_daemon::redaction::Redaction;
use toold_daemon::registry::{JournalTail, Registry};
use toold_daemon::rpc;
use toold_daemon::rpc::context::{Daemon, Paths};
use toold_daemon::rpc::wire::frame::{Decode, Frame};
use toold_daemon::rpc::wire::headers::Headers;
use toold_daemon::rpc::wire::lines::Lines;
use toold_daemon::rpc::wire::probe::Caller;
use toold_daemon::rpc::wire::{Wire, WireLimits};
use toold_daemon::sandbox::resolve::OwnPaths;
use toold_daemon::stage::Stages;
use toold_daemon::text::LOOKAHEAD_LEN;
use toold_daemon::watch::{Matches, Patterns, ScanPosition, Scanner};
use toold_format::Stream as Output;
use toold_format::log::{Counts, IndexHeader, IndexRecord};
use toold_proto::params::Ansi;
use toold_proto::pattern::Pattern;
use toold_shim::zygote::StartAttributes;

pub const PAGE: usize = 64 * 1024;
/// A process that has ended, as version 1 recorded it. It is copied into the working directory.
pub const FINISHED: &str = "tests/golden/state-v1/procs/proc_861e5017a5c2";
/// The number of calls before the counted one.
const WARM: usize = 16;
const POLL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"poll","params":{"id":"proc_861e5017a5c2","cursor":0,"max_bytes":4096}}"#;

pub const TEXTS: [&str; 20] = [
    "error",
    "ERROR",
    "panicked at",
    "Listening on",
    "FAILED",
    "Traceback",
    "warning:",
    "READY",
    "fatal",
    "Segmentation fault",
    "exception",
    "OOM",
    "refused",
    "denied",
    "timed out",
    "listening",
    "Killed",
    "abort",
    "undefined",
    "BUILD",
];
pub const REGEXES: [&str; 20] = [
    r"/error\[E\d+\]",
    r"/ERROR:? ",
    r"/panicked at .*:\d+",
    r"/Listening on \S+:\d+",
    r"/\d+ FAILED",
    r"/^Traceback",
    r"/warning: .*unused",
    r"/READY in \d+",
    r"/(?i)fatal",
    r"/Segmentation fault$",
    r"/\w+Exception",
    r"/OOM|out of memory",
    r"/connection (refused|reset)",
    r"/denied: \w+",
    r"/timed out after \d+",
    r"/listening at",
    r"/Killed( process)? \d+",
    r"/abort(ed)?\b",
    r"/undefined (symbol|reference)",
    r"/BUILD (OK|FAILED)",
];

/// Bytes from a client, and their decoder.
pub struct Stream<D> {
    pub decoder: D,
    pub bytes: Vec<u8>,
    pub frames: usize,
}

pub fn lines() -> Stream<Lines> {
    stream(Lines::new(1 << 20), |request| format!("{request}\n"))
}

pub fn headers() -> Stream<Headers> {
    stream(Headers::new(1 << 20), |request| format!("Content-Length: {}\r\n\r\n{request}", request.len()))
}

fn stream<D: Decode>(mut decoder: D, framed: impl Fn(&str) -> String) -> Stream<D> {
    // Allocates the decoder's buffer.
    decoder.feed(framed(POLL).as_bytes());
    assert!(matches!(decoder.next(), Some(Frame::Message(message)) if message == POLL.as_bytes()));
    Stream { decoder, bytes: framed(POLL).repeat(100).into_bytes(), frames: 0 }
}

/// A client of a daemon with one process.
pub struct Called {
    caller: Caller,
    decoder: Lines,
    request: Vec<u8>,
    pub answer: Vec<u8>,
}

impl Called {
    #[inline(always)]
    pub fn turn(&mut self) {
        self.decoder.feed(black_box(&self.request));
        let Some(Frame::Message(text)) = self.decoder.next() else { return };
        if let Some(answer) = self.caller.call(text) {
            Lines::encode(&mut self.answer, &answer);
        }
    }
}

pub fn called() -> Called {
    // On a thread of its own, and so with a heap of its own: threads read the records, and the order in which they free
    // would change the allocations on this one.
    let wire = std::thread::spawn(wire).join().expect("a daemon");
    let request = format!("{POLL}\n").into_bytes();
    let answer = Vec::with_capacity(8192);
    let mut called = Called { caller: Caller::new(&wire), decoder: Lines::new(1 << 20), request, answer };
    // More calls than the heap's caches are deep: then each call reuses what the call before freed.
    for _ in 0..WARM {
        called.answer.clear();
        called.turn();
    }
    let answer = String::from_utf8_lossy(&called.answer);
    assert!(answer.contains(r#""output":"out\nno newlineerr\n""#), "poll answers: {answer}");
    called.answer.clear();
    called
}

/// A daemon without its socket and its runtime.
fn wire() -> Arc<Wire> {
    let id = Path::new(FINISHED).file_name().expect("a name");
    let (procs, events) = (PathBuf::from("procs"), Path::new("events"));
    fs::create_dir(&procs).expect("a new directory");
    fs::create_dir(events).expect("a new directory");
    fs::rename(id, procs.join(id)).expect("the recorded process is beside us");
    let config = Config::default();
    let limits = JournalLimits { segment_bytes: 1 << 20, max_bytes: 1 << 20, max_age_ms: 1000 };
    let (consumers, _) = Consumers::open(&events.join("consumers"), 1000, 8, 0).expect("no consumers");
    let (journal, _) = Journal::open(events, limits, 0, 0).expect("a new journal");
    let journal = Arc::new(journal);
    let (gate, _) = WatchGate::open(journal.clone(), events, &config.watch, [0; 16], None).expect("a new gate");
    let sink = EventSink::new(journal.clone(), gate, SearchPool::new(4, 5000), Redaction::new(Default::default()));
    let wire_limits = WireLimits::from(&config);
    let attributes = StartAttributes { max_fds: None, timeslice_ns: 0 };
    let exec = ExecShim { state_dir: procs.clone(), attributes, is_subreaper: false };
    let own = OwnPaths { state_dir: procs.clone(), socket: procs.join("socket"), rules: None, runs: procs.join("s") };
    let registry = Registry::new(config, procs, Launcher::new(None, ShimMode::Exec, exec), Arc::new(sink), own);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let none = JournalTail { states: Default::default(), last: 0 };
    assert_eq!(runtime.block_on(registry.adopt(none)).expect("the process is known"), 1);
    let here = Path::new(".");
    let (judge, _) = Judge::open(None, here, journal.clone());
    let judge = Arc::new(judge);
    let approvals = runtime.block_on(Approvals::open(registry.clone(), judge.clone(), here, 0)).expect("no approvals");
    let (changes, _, _) = Changes::open("changes".into(), registry.config.patch.keep_ms).expect("no changes");
    let patches = Arc::new(Patches::new(changes.clone(), journal.clone(), &registry.config));
    let stages = Stages::new(registry.clone(), changes);
    let (stop, _) = watch::channel(false);
    let paths = Paths { socket: "socket".into(), state_dir: ".".into(), config: None };
    let file_calls = FileCalls::new(approvals.clone(), judge.clone(), patches.clone());
    let Tools { scripts, direct_calls, client_tools, toolsets } = {
        let _runtime = runtime.enter();
        open_tools(&ToolParts {
            approvals: &approvals,
            judge: &judge,
            patches: &patches,
            file_calls: &file_calls,
            journal: &journal,
            state_dir: here,
            socket: &paths.socket,
        })
    };
    let daemon = Daemon {
        registry,
        approvals,
        judge,
        patches,
        stages,
        scripts,
        direct_calls,
        client_tools,
        toolsets,
        journal,
        consumers: Arc::new(consumers),
        file_calls,
        paths,
        started_ms: 0,
        started: Instant::now(),
        stop,
        connections: Arc::default(),
        ports: Arc::default(),
        sessions: Arc::default(),
    };
    Wire::new(rpc::module(Arc::new(daemon)), wire_limits, 0)
}

/// A scanner and its input.
pub struct Watched {
    scanner: Scanner,
    lines: Vec<u8>,
    at: u64,
    pub found: Matches,
}

impl Watched {
    #[inline(always)]
    pub fn feed(&mut self) {
        self.scanner.feed(Output::Stdout, self.at, black_box(&self.lines), &mut self.found);
        self.at += self.lines.len() as u64;
    }
}

/// Makes a warm scanner. One line in `every` matches; 0: none.
pub fn watched(patterns: [&str; 20], every: usize) -> Watched {
    let pattern = |written: &str| match written.strip_prefix('/') {
        Some(regex) => Pattern::Regex(regex.into()),
        None => Pattern::Text(written.into()),
    };
    let patterns = Patterns::new(&patterns.map(pattern)).expect("valid patterns");
    let scanner = Scanner::new(Arc::new(patterns), ScanPosition::default());
    let mut watched = Watched { scanner, lines: log_lines(every), at: 0, found: Matches::default() };
    // The lazy DFA caches states in a table of random order: after two turns it has them all.
    for _ in 0..2 {
        watched.feed();
        let lines = watched.lines.len() / 80;
        assert_eq!(watched.found.take().matches as usize, lines.checked_div(every).unwrap_or(0));
    }
    watched
}

fn log_lines(every: usize) -> Vec<u8> {
    let tokens = ["compiling", "request", "handled", "in", "cache", "worker", "connection", "from", "user", "status"];
    let mut lines = Vec::with_capacity(PAGE);
    for i in 0..PAGE / 80 {
        let level = if every > 0 && i % every == every - 1 { "ERROR connection refused" } else { "INFO" };
        let mut line = format!("2026-01-02T03:04:05.{i:06} {level} ");
        (0..12).for_each(|k| line.push_str(&format!("{} ", tokens[(i * 7 + k * k * 3) % tokens.len()])));
        lines.extend_from_slice(&line.as_bytes()[..79]);
        lines.push(b'\n');
    }
    lines
}

/// Makes a page and the bytes behind it. The page ends inside a character.
pub fn page(ansi: Ansi) -> (Vec<u8>, Ansi) {
    let line = "\x1b[1;32mgrün\x1b[0m: 12 € für 日本語, 😀 und viel gewöhnlicher Text dazwischen\n";
    let bytes = line.bytes().cycle().take(PAGE + LOOKAHEAD_LEN).collect();
    (bytes, ansi)
}

/// The key of a look-up.
#[derive(Clone, Copy)]
pub enum Lookup {
    Offset,
    Line,
}

/// A log of many records, each a line of 64 bytes.
pub struct Indexed {
    log: Log,
    counts: Counts,
    by: Lookup,
    pub found: u64,
}

const RECORDS: u64 = 100_000;
const LINE: u64 = 64;

impl Indexed {
    #[inline(always)]
    pub fn look_up(&mut self) {
        for i in 1..65 {
            // A prime, so that no look-up is near the one before.
            let line = black_box(i * 37_199 % RECORDS);
            self.found += match self.by {
                Lookup::Offset => {
                    let at = line * LINE + 5;
                    self.log.spans(at, at + 1).map_or(0, |spans| spans[0].at_ms)
                }
                Lookup::Line => {
                    let query = LineQuery { offset: Some(line), limit: 1, ..LineQuery::default() };
                    self.log.lines(&query, &self.counts).map_or(0, |page| page.first_line)
                }
            };
        }
    }
}

pub fn indexed(by: Lookup) -> Indexed {
    let line = format!("{:063}\n", 7);
    let log = file("log", line.repeat(RECORDS as usize).as_bytes());
    let mut idx = IndexHeader { start: 0, unstored: 0, previous: Default::default() }.encode().to_vec();
    for i in 0..RECORDS {
        let record = IndexRecord {
            start: i * LINE,
            out_newlines: i,
            err_newlines: 0,
            // Differs from the line's number, and is as easy to add up.
            time_ms: i,
            stream: Output::Stdout,
            out_open: false,
            err_open: false,
        };
        idx.extend_from_slice(&record.encode());
    }
    let log = Log::of_files(0, log, Some(file("idx", &idx))).expect("a log");
    let counts = Counts { end: RECORDS * LINE, out_newlines: RECORDS, ..Counts::default() };
    let mut indexed = Indexed { log, counts, by, found: 0 };
    indexed.look_up();
    assert_eq!(indexed.found, (1..65).map(|i| i * 37_199 % RECORDS).sum::<u64>(), "the right records");
    indexed
}

fn file(name: &str, bytes: &[u8]) -> File {
    let mut open = File::options();
    let mut file = open.read(true).write(true).create_new(true).open(name).expect("a new file");
    file.write_all(bytes).expect("room for a log");
    file
}
