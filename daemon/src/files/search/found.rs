//! Results of a search in order: the first ones after the cursor are kept, the others counted. An offset leaves out the first
//! of those at the end, when they are known.

use crate::files::error::FsError;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use toold_proto::files::{FsSearchResult, SearchMatch, SearchMode, Unreadable};

const MAX_UNREADABLE: usize = 10;

/// The place of a result among all: the names of its path, then the line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The path with NUL in place of slashes, so that it is ordered by its names.
    names: String,
    line: u64,
}

impl Cursor {
    pub fn new(path: &str, line: u64) -> Cursor {
        Cursor { names: path.replace('/', "\0"), line }
    }

    /// Reads the text of `print`.
    pub fn parse(text: &str) -> Result<Cursor, FsError> {
        let parts = text.split_once(':').and_then(|(line, path)| Some((line.parse().ok()?, path)));
        let (line, path) = parts.ok_or_else(|| FsError::param("after", "must be `next` of the page before"))?;
        Ok(Cursor::new(path, line))
    }

    fn print(&self) -> String {
        format!("{}:{}", self.line, self.names.replace('\0', "/"))
    }
}

/// Results so far.
pub struct SearchResults {
    /// Results to leave out, after the cursor.
    offset: usize,
    /// Results to keep, with those to leave out.
    max_kept: usize,
    after: Option<Cursor>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: BTreeMap<Cursor, SearchMatch>,
    /// Results after those that are kept.
    has_more: bool,
    lines: u64,
    files: u64,
    stopped: bool,
    unreadable: Vec<Unreadable>,
    unreadable_count: u64,
}

impl SearchResults {
    pub fn new(offset: usize, limit: usize, after: Option<Cursor>) -> SearchResults {
        SearchResults { offset, max_kept: offset + limit, after, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that not everything was searched.
    pub fn stop(&self) {
        self.lock().stopped = true;
    }

    pub fn add_unreadable(&self, path: &Path, why: String) {
        let mut state = self.lock();
        state.unreadable_count += 1;
        if state.unreadable.len() < MAX_UNREADABLE {
            state.unreadable.push(Unreadable { path: path.to_string_lossy().into_owned(), why });
        }
    }

    /// Returns the place after which results are of no use now: as many before it are kept already.
    fn bound(&self) -> Option<Cursor> {
        let state = self.lock();
        state.kept.last_key_value().filter(|_| state.kept.len() >= self.max_kept).map(|(last, _)| last.clone())
    }

    /// Adds the results of a file.
    pub fn merge(&self, of_file: FileFound<'_>) {
        if of_file.lines == 0 {
            return;
        }
        let results = of_file.into_results();
        let mut state = self.lock();
        state.lines += results.lines;
        state.files += 1;
        state.has_more |= results.has_more;
        state.kept.extend(results.kept);
        while state.kept.len() > self.max_kept {
            state.kept.pop_last();
            state.has_more = true;
        }
    }

    /// Returns what was found. `timeout_ms` is the time that the search had.
    pub fn result(&self, mode: SearchMode, timeout_ms: u64) -> FsSearchResult {
        let mut state = std::mem::take(&mut *self.lock());
        let unread = state.unreadable_count;
        let reason = match (state.stopped, unread) {
            (true, _) => {
                Some(format!("timed out after {timeout_ms} ms; give a longer timeout_ms, a glob or a deeper path"))
            }
            (false, 0) => None,
            (false, 1) => Some("1 file could not be read".to_owned()),
            (false, n) => Some(format!("{n} files could not be read")),
        };
        let last = state.kept.last_key_value().map(|(last, _)| last.print());
        state.unreadable.sort_by(|a, b| a.path.cmp(&b.path));
        FsSearchResult {
            total: if mode == SearchMode::Files { state.files } else { state.lines },
            files: state.files,
            complete: reason.is_none(),
            reason,
            next: last.filter(|_| state.has_more),
            matches: state.kept.into_values().skip(self.offset).collect(),
            unreadable: state.unreadable,
        }
    }
}

/// Results of one file.
pub struct FileFound<'a> {
    path: String,
    pub mode: SearchMode,
    all: &'a SearchResults,
    /// Set at the first match.
    bound: Option<Option<Cursor>>,
    lines: u64,
    pub kept: Vec<SearchMatch>,
    has_more: bool,
}

struct Results {
    lines: u64,
    kept: Vec<(Cursor, SearchMatch)>,
    has_more: bool,
}

impl<'a> FileFound<'a> {
    pub fn new(path: &Path, mode: SearchMode, all: &'a SearchResults) -> FileFound<'a> {
        let path = path.to_string_lossy().into_owned();
        FileFound { path, mode, all, bound: None, lines: 0, kept: Vec::new(), has_more: false }
    }

    /// Counts a line that matches. Returns true if it is to be kept.
    pub fn count(&mut self, line: u64) -> bool {
        self.lines += 1;
        if self.mode != SearchMode::Content {
            return false;
        }
        let cursor = Cursor::new(&self.path, line);
        if self.all.after.as_ref().is_some_and(|after| cursor <= *after) {
            return false;
        }
        let bound = self.bound.get_or_insert_with(|| self.all.bound());
        if self.kept.len() >= self.all.max_kept || bound.as_ref().is_some_and(|bound| cursor > *bound) {
            self.has_more = true;
            return false;
        }
        true
    }

    pub fn keep(&mut self, line: u64, text: String, cut: bool, before: Vec<String>) {
        self.kept.push(SearchMatch {
            path: self.path.clone(),
            line: Some(line),
            text: Some(text),
            cut,
            before,
            after: Vec::new(),
            count: None,
        });
    }

    fn into_results(self) -> Results {
        let (lines, has_more) = (self.lines, self.has_more);
        if self.mode == SearchMode::Content {
            let with_place = |found: SearchMatch| (Cursor::new(&self.path, found.line.unwrap_or(0)), found);
            return Results { lines, kept: self.kept.into_iter().map(with_place).collect(), has_more };
        }
        let cursor = Cursor::new(&self.path, 0);
        if self.all.after.as_ref().is_some_and(|after| cursor <= *after) {
            return Results { lines, kept: Vec::new(), has_more };
        }
        let count = (self.mode == SearchMode::Count).then_some(lines);
        Results { lines, kept: vec![(cursor, SearchMatch::of_file(self.path, count))], has_more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(found: &SearchResults, path: &str, lines: &[u64]) {
        let mut of_file = FileFound::new(Path::new(path), SearchMode::Content, found);
        for line in lines {
            if of_file.count(*line) {
                of_file.keep(*line, format!("{path}{line}"), false, Vec::new());
            }
        }
        found.merge(of_file);
    }

    /// Returns one page of the results, added in the given order of files, and the cursor of the next.
    fn page(order: &[(&str, &[u64])], found: &SearchResults) -> (Vec<(String, u64)>, Option<String>) {
        order.iter().for_each(|(path, lines)| add(found, path, lines));
        let result = found.result(SearchMode::Content, 0);
        assert_eq!((result.total, result.files, result.complete), (6, 3, true));
        let place = |found: &SearchMatch| (found.path.clone(), found.line.unwrap_or(0));
        (result.matches.iter().map(place).collect(), result.next)
    }

    /// Returns all pages of the same results.
    fn pages(order: &[(&str, &[u64])], limit: usize) -> Vec<Vec<(String, u64)>> {
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = page(order, &SearchResults::new(0, limit, after));
            pages.push(page);
            match next {
                Some(next) => after = Some(Cursor::parse(&next).expect("our own")),
                None => return pages,
            }
        }
    }

    #[test]
    fn pages_are_the_same_whatever_the_order_in_which_files_are_searched() {
        let files: [(&str, &[u64]); 3] = [("a/b", &[1, 2, 30]), ("a-b", &[5]), ("a/c:d", &[2, 9])];
        let all = pages(&files, 100);
        assert_eq!(all.len(), 1);
        let order: Vec<&str> = all[0].iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(order, ["a/b", "a/b", "a/b", "a/c:d", "a/c:d", "a-b"], "names before characters");
        let mut reversed = files;
        reversed.reverse();
        for order in [files, reversed] {
            for limit in 1..=6 {
                let pages = pages(&order, limit);
                assert!(pages.iter().all(|page| page.len() <= limit));
                assert_eq!(pages.concat(), all[0], "{limit}");
                for offset in 0..=7 {
                    let (found, next) = page(&order, &SearchResults::new(offset, limit, None));
                    let expected: Vec<_> = all[0].iter().skip(offset).take(limit).cloned().collect();
                    assert_eq!((found, next.is_some()), (expected, offset + limit < 6), "{limit} after {offset}");
                }
            }
        }
    }

    #[test]
    fn a_cursor_that_is_not_ours_is_refused() {
        for text in ["", "a", "a:b", ":a"] {
            assert!(Cursor::parse(text).is_err(), "{text}");
        }
    }
}
