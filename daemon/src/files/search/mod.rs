//! `fs.search`: lines of files that match a regular expression, by the crates of ripgrep. The walk takes a few threads of its
//! own; results are kept in the order of paths and lines, so that pages follow each other.

mod found;
mod sink;

use super::error::{FsError, Refusal};
use super::list::shown_base;
use super::resolve::{Resolved, absolute, real_path, resolve};
use super::roots::{Access, Limits, check};
use super::stop::Stop;
pub use found::SearchResults;
use found::{Cursor, FileFound};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{WalkBuilder, WalkState};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use sink::FileSink;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_proto::files::{FsSearchParams, SearchMode};

pub const DEFAULT_TIMEOUT_MS: u64 = 10_000;
pub const DEFAULT_RESULTS: u64 = 50;
pub const MAX_RESULTS: u64 = 10_000;
const MAX_CONTEXT_LINES: u64 = 20;
/// Threads of one search.
const MAX_THREADS: usize = 4;
/// Searches at the same time; others wait for their turn. With `MAX_THREADS` this bounds the threads beside those of `disk`.
pub const MAX_SEARCHES: usize = 2;
/// The longest line that is searched, and so the memory of a thread.
const MAX_LINE_BYTES: usize = 16 << 20;
/// The largest program of a regular expression, and the memory of its automaton in each thread.
const MAX_REGEX_BYTES: usize = 2 << 20;
const MAX_AUTOMATON_BYTES: usize = 16 << 20;

/// A search that was checked and is ready to run.
pub struct FileSearch {
    root: Resolved,
    shown: PathBuf,
    matcher: RegexMatcher,
    overrides: Option<Override>,
    mode: SearchMode,
    context: usize,
    hidden: bool,
    ignore: bool,
    limits: Option<Arc<Limits>>,
    found: Arc<SearchResults>,
}

impl FileSearch {
    /// Checks a call. The result holds what is found, also while the search runs.
    pub fn new(
        call: &FsSearchParams,
        limits: Option<Arc<Limits>>,
    ) -> Result<(FileSearch, Arc<SearchResults>), FsError> {
        let limit = call.limit.unwrap_or(DEFAULT_RESULTS);
        if !(1..=MAX_RESULTS).contains(&limit) {
            return Err(FsError::param("limit", format!("must be 1 to {MAX_RESULTS}, not {limit}")));
        }
        // Those that are left out are kept until the search has ended.
        let offset = call.offset.unwrap_or(0);
        if offset > MAX_RESULTS - limit {
            let max = MAX_RESULTS - limit;
            let problem = format!("must be at most {max} with this limit, not {offset}; `after` reaches further");
            return Err(FsError::param("offset", problem));
        }
        let context = call.context.unwrap_or(0);
        if context > MAX_CONTEXT_LINES {
            return Err(FsError::param("context", format!("must be at most {MAX_CONTEXT_LINES}, not {context}")));
        }
        let matcher = matcher(&call.pattern)?;
        let after = call.after.as_deref().map(Cursor::parse).transpose()?;
        let asked = absolute(&call.path, call.cwd.as_deref())?;
        let root = resolve(limits.as_deref(), &asked, Access::Read)?;
        match root.file_type() {
            None => return Err(root.not_found()),
            Some(FileType::Directory | FileType::RegularFile) => {}
            Some(_) => {
                let found = "neither a file nor a directory";
                return Err(FsError::WrongType { path: root.path, found, hint: "" });
            }
        }
        let overrides = call.glob.as_deref().map(|glob| overrides(&root.path, glob)).transpose()?;
        let found = Arc::new(SearchResults::new(offset as usize, limit as usize, after));
        let search = FileSearch {
            shown: shown_base(&call.path),
            root,
            matcher,
            overrides,
            mode: call.mode,
            context: context as usize,
            hidden: call.hidden,
            ignore: call.ignore.unwrap_or(true),
            limits,
            found: found.clone(),
        };
        Ok((search, found))
    }

    /// Searches until everything is searched or `stop` is reached.
    pub fn run(&self, stop: &Stop) {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(MAX_THREADS);
        let mut walk = WalkBuilder::new(&self.root.path);
        walk.standard_filters(self.ignore).hidden(!self.hidden).current_dir(self.cwd()).threads(threads);
        if let Some(overrides) = &self.overrides {
            walk.overrides(overrides.clone());
        }
        if let Some(limits) = self.limits.clone() {
            walk.filter_entry(move |entry| !limits.hide.iter().any(|hidden| entry.path().starts_with(hidden)));
        }
        walk.build_parallel().run(|| {
            let mut searcher = self.searcher();
            let matcher = self.matcher.clone();
            Box::new(move |entry| {
                if stop.is_reached() {
                    self.found.stop();
                    return WalkState::Quit;
                }
                match entry {
                    Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                        self.search_file(entry.path(), &mut searcher, &matcher, stop);
                    }
                    // Directories are walked, links not followed.
                    Ok(_) => {}
                    Err(e) => self.found.add_unreadable(&self.shown, e.to_string()),
                }
                if stop.is_reached() { WalkState::Quit } else { WalkState::Continue }
            })
        });
        if stop.is_reached() {
            self.found.stop();
        }
    }

    fn cwd(&self) -> &Path {
        match self.root.file_type() {
            Some(FileType::Directory) => &self.root.path,
            _ => self.root.path.parent().unwrap_or(&self.root.path),
        }
    }

    fn searcher(&self) -> Searcher {
        // Counting lines costs time, so only lines that are shown have numbers.
        let has_lines = self.mode == SearchMode::Content;
        let context = if has_lines { self.context } else { 0 };
        let mut builder = SearcherBuilder::new();
        builder
            .binary_detection(BinaryDetection::quit(0))
            .line_number(has_lines)
            .before_context(context)
            .after_context(context)
            .heap_limit(Some(MAX_LINE_BYTES));
        builder.build()
    }

    fn search_file(&self, path: &Path, searcher: &mut Searcher, matcher: &RegexMatcher, stop: &Stop) {
        let below = path.strip_prefix(&self.root.path).unwrap_or(path);
        let shown = if below.as_os_str().is_empty() { self.shown.clone() } else { self.shown.join(below) };
        let file = match self.open(path) {
            Ok(Some(file)) => file,
            Ok(None) => return,
            Err(e) => return self.found.add_unreadable(&shown, e.to_string()),
        };
        let mut of_file = FileFound::new(&shown, self.mode, &self.found);
        let mut sink = FileSink::new(&mut of_file, self.context);
        let searched = searcher.search_reader(matcher, StopReader { file, stop }, &mut sink);
        match searched {
            Ok(()) => {}
            // It shows in the result as the end of the whole search.
            Err(_) if stop.is_reached() => {}
            Err(e) => self.found.add_unreadable(&shown, e.to_string()),
        }
        self.found.merge(of_file);
    }

    /// Opens a file that the walk found. None: another one took its place, which must not be read.
    fn open(&self, path: &Path) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
        let fd: OwnedFd = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
            Ok(fd) => fd,
            // It was removed, or is a link now.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        if let Some(limits) = &self.limits {
            // The walk goes by names, and a directory on the way may have become a link to what is hidden.
            let real = real_path(&fd)?;
            let judged = check(Some(limits), path, &real, Access::Read);
            let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
            if real != path || judged.is_err() || kind != FileType::RegularFile {
                return Ok(None);
            }
        } else if check(None, path, path, Access::Read) == Err(Refusal::Kernel) {
            return Ok(None);
        }
        Ok(Some(fd.into()))
    }
}

/// Reads a file until the search must stop.
struct StopReader<'a> {
    file: File,
    stop: &'a Stop,
}

impl Read for StopReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_reached() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}

fn matcher(pattern: &str) -> Result<RegexMatcher, FsError> {
    if pattern.is_empty() {
        return Err(FsError::param("pattern", "must not be empty; fs.list lists files"));
    }
    // As ripgrep does.
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .unicode(true)
        .octal(false)
        .line_terminator(Some(b'\n'))
        .ban_byte(Some(0))
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_AUTOMATON_BYTES);
    builder.build(pattern).map_err(|e| FsError::param("pattern", e.to_string().trim().to_owned()))
}

fn overrides(root: &Path, glob: &str) -> Result<Override, FsError> {
    let mut builder = OverrideBuilder::new(root);
    let built = builder.add(glob).and_then(|builder| builder.build());
    built.map_err(|e| FsError::param("glob", e.to_string()))
}
