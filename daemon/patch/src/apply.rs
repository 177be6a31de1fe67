//! Applies the chunks of an update to the bytes of a file.

use crate::fold::Likeness;
use crate::lines::{Line, Lines};
use crate::{Chunk, ChunkLine, PatchError};
use std::borrow::Cow;
use std::collections::HashMap;

/// Places that an error names.
const MAX_NEAREST: usize = 3;
/// Equal lines that are counted for them.
const MAX_COUNTED: usize = 100_000;

/// The new bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub content: Vec<u8>,
    pub added: usize,
    pub removed: usize,
    /// The loosest comparison that was needed.
    pub likeness: Likeness,
}

/// Old lines of the file that new ones replace.
struct Replacement<'a> {
    /// The first old line, from 0.
    start: usize,
    lines: Cow<'a, [ChunkLine]>,
}

/// Applies `chunks` in their order: each is looked for behind the one before. Lines that are kept keep their bytes.
pub fn apply(content: &[u8], chunks: &[Chunk]) -> Result<Applied, PatchError> {
    let file = Lines::split(content);
    let mut search = Search { lines: &file.lines, keys: Default::default(), next: 0, likeness: Likeness::Equal };
    let mut replacements = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        replacements.push(search.find_chunk(chunk)?);
    }
    let likeness = search.likeness;
    // Stable: insertions at the end stay in their order.
    replacements.sort_by_key(|replacement| replacement.start);
    Ok(replace(&file, &replacements, likeness))
}

struct Search<'a> {
    lines: &'a [Line<'a>],
    /// By likeness, made when it is needed first.
    keys: [Option<LineKeys<'a>>; Likeness::ALL.len()],
    /// The line behind the last match, from 0.
    next: usize,
    likeness: Likeness,
}

/// The lines of the file as numbers: lines that are alike have the same.
struct LineKeys<'a> {
    numbers: HashMap<Cow<'a, [u8]>, u32>,
    lines: Vec<u32>,
}

impl<'a> LineKeys<'a> {
    fn new(lines: &'a [Line<'a>], likeness: Likeness) -> LineKeys<'a> {
        let mut numbers = HashMap::new();
        let number = |line: &'a Line<'a>| {
            let next = numbers.len() as u32;
            *numbers.entry(likeness.key(line.text)).or_insert(next)
        };
        let lines = lines.iter().map(number).collect();
        LineKeys { numbers, lines }
    }

    /// Finds the first place of `wanted` in a range of starts. Takes time in proportion to the lines, whatever they are.
    fn find(&self, wanted: &[&[u8]], likeness: Likeness, first: usize, last: usize) -> Option<usize> {
        let wanted: Option<Vec<u32>> =
            wanted.iter().map(|line| self.numbers.get(&likeness.key(line)).copied()).collect();
        let wanted = wanted?;
        // Knuth, Morris and Pratt: `borders[n]` is the longest proper prefix that also ends the first n + 1 lines.
        let mut borders = vec![0; wanted.len()];
        let mut len = 0;
        for at in 1..wanted.len() {
            while len > 0 && wanted[at] != wanted[len] {
                len = borders[len - 1];
            }
            len += usize::from(wanted[at] == wanted[len]);
            borders[at] = len;
        }
        let mut matched = 0;
        for (at, line) in self.lines.iter().enumerate().take(last + wanted.len()).skip(first) {
            while matched > 0 && *line != wanted[matched] {
                matched = borders[matched - 1];
            }
            matched += usize::from(*line == wanted[matched]);
            if matched == wanted.len() {
                return Some(at + 1 - matched);
            }
        }
        None
    }
}

impl<'a> Search<'a> {
    fn find_chunk<'c>(&mut self, chunk: &'c Chunk) -> Result<Replacement<'c>, PatchError> {
        if let Some(context) = &chunk.context {
            let found = self.find(&[context.as_bytes()], false);
            let start = found.ok_or_else(|| self.missing(chunk, &[context.as_bytes()], "the context line"))?;
            self.next = start + 1;
        }
        let old: Vec<&[u8]> = chunk.old().map(str::as_bytes).collect();
        if old.is_empty() {
            return Ok(Replacement { start: self.lines.len(), lines: Cow::Borrowed(&chunk.lines) });
        }
        if let Some(start) = self.find(&old, chunk.at_end) {
            self.next = start + old.len();
            return Ok(Replacement { start, lines: Cow::Borrowed(&chunk.lines) });
        }
        // The empty line at the end of a text is often none of the file's.
        if let Some((b"", old)) = old.split_last().map(|(last, old)| (*last, old))
            && let Some(start) = if old.is_empty() { Some(self.next) } else { self.find(old, chunk.at_end) }
        {
            self.next = start + old.len();
            return Ok(Replacement { start, lines: Cow::Owned(without_last_empty(&chunk.lines)) });
        }
        Err(self.missing(chunk, &old, "these lines"))
    }

    /// Finds the first place of `wanted` in the rest of the file by the strictest comparison that finds one.
    fn find(&mut self, wanted: &[&[u8]], at_end: bool) -> Option<usize> {
        let last = self.lines.len().checked_sub(wanted.len())?;
        let first = if at_end { last.max(self.next) } else { self.next };
        if first > last {
            return None;
        }
        let lines = self.lines;
        for (likeness, keys) in Likeness::ALL.into_iter().zip(&mut self.keys) {
            let keys = keys.get_or_insert_with(|| LineKeys::new(lines, likeness));
            if let Some(start) = keys.find(wanted, likeness, first, last) {
                self.likeness = self.likeness.max(likeness);
                return Some(start);
            }
        }
        None
    }

    fn missing(&self, chunk: &Chunk, wanted: &[&[u8]], subject: &str) -> PatchError {
        let first = wanted.iter().copied().find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
        let first: String = String::from_utf8_lossy(first).chars().take(60).collect();
        let place = match (self.next, chunk.at_end) {
            (_, true) => " at its end".into(),
            (0, false) => String::new(),
            (next, false) => format!(" behind line {next}"),
        };
        let message = format!("the file does not have {subject}{place}, beginning with `{}`", first.trim());
        PatchError { nearest: self.nearest(wanted), ..PatchError::at(chunk.line, message) }
    }

    /// The places at which most of `wanted` is, best first, from 1.
    fn nearest(&self, wanted: &[&[u8]]) -> Vec<usize> {
        let mut offsets: HashMap<Cow<'_, [u8]>, Vec<usize>> = HashMap::new();
        for (offset, line) in wanted.iter().enumerate().filter(|(_, line)| !line.trim_ascii().is_empty()) {
            offsets.entry(Likeness::Folded.key(line)).or_default().push(offset);
        }
        let mut counts: HashMap<usize, usize> = HashMap::new();
        let mut counted = 0;
        for (at, line) in self.lines.iter().enumerate() {
            for offset in offsets.get(&Likeness::Folded.key(line.text)).into_iter().flatten() {
                *counts.entry(at.saturating_sub(*offset)).or_default() += 1;
                counted += 1;
            }
            if counted > MAX_COUNTED {
                break;
            }
        }
        let mut places: Vec<(usize, usize)> = counts.into_iter().collect();
        places.sort_by_key(|(start, count)| (std::cmp::Reverse(*count), *start));
        places.into_iter().take(MAX_NEAREST).map(|(start, _)| start + 1).collect()
    }
}

/// The lines of a chunk without its last old line, which is empty, and without an empty new line at its end.
fn without_last_empty(lines: &[ChunkLine]) -> Vec<ChunkLine> {
    let mut lines = lines.to_vec();
    let is_new = |line: &ChunkLine| !matches!(line, ChunkLine::Remove(_));
    if let Some(at) = lines.iter().rposition(|line| !matches!(line, ChunkLine::Insert(_))) {
        match std::mem::replace(&mut lines[at], ChunkLine::Insert(String::new())) {
            // It is a new line now.
            ChunkLine::Keep(_) => {}
            ChunkLine::Remove(_) | ChunkLine::Insert(_) => {
                lines.remove(at);
            }
        }
        if let Some(last) = lines.iter().rposition(is_new)
            && matches!(&lines[last], ChunkLine::Insert(text) if text.is_empty())
        {
            lines.remove(last);
        }
    }
    lines
}

fn replace(file: &Lines<'_>, replacements: &[Replacement<'_>], likeness: Likeness) -> Applied {
    let new_end = file.new_end();
    let (mut content, mut added, mut removed) = (file.bom.to_vec(), 0, 0);
    let keep = |content: &mut Vec<u8>, line: &Line<'_>| {
        content.extend_from_slice(line.text);
        content.extend_from_slice(if line.end.is_empty() { new_end } else { line.end });
    };
    let mut at = 0;
    for Replacement { start, lines } in replacements {
        file.lines[at..*start].iter().for_each(|line| keep(&mut content, line));
        at = *start;
        for line in lines.iter() {
            match line {
                ChunkLine::Keep(_) => {
                    keep(&mut content, &file.lines[at]);
                    at += 1;
                }
                ChunkLine::Remove(_) => {
                    removed += 1;
                    at += 1;
                }
                ChunkLine::Insert(text) => {
                    added += 1;
                    content.extend_from_slice(text.as_bytes());
                    content.extend_from_slice(new_end);
                }
            }
        }
    }
    file.lines[at..].iter().for_each(|line| keep(&mut content, line));
    Applied { content, added, removed, likeness }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, parse};
    use proptest::prelude::*;

    fn chunks(text: &str) -> Vec<Chunk> {
        let patch = parse(&format!("*** Begin Patch\n*** Update File: f\n{text}\n*** End Patch")).expect("a patch");
        match patch.operations.into_iter().next().map(|operation| operation.change) {
            Some(Change::Update { chunks, .. }) => chunks,
            other => panic!("{other:?}"),
        }
    }

    fn applied(file: &str, text: &str) -> Applied {
        apply(file.as_bytes(), &chunks(text)).unwrap_or_else(|e| panic!("{e}"))
    }

    fn result(file: &str, text: &str) -> String {
        String::from_utf8(applied(file, text).content).expect("text")
    }

    #[test]
    fn kept_lines_keep_their_bytes_and_new_ones_end_as_the_first() {
        assert_eq!(result("a\r\nb \nc", " a\n b\n+x\n c"), "a\r\nb \nx\r\nc\r\n");
        assert_eq!(result("\u{feff}a\n", "-a\n+b"), "\u{feff}b\n");
        assert_eq!(result("a\rb\r", " a\n-b\n+c"), "a\rc\r");
        assert_eq!(result("", "+one"), "one\n");
    }

    #[test]
    fn lines_that_are_typed_in_another_way_are_found_and_reported() {
        assert_eq!(applied("a\n", "-a\n+b").likeness, Likeness::Equal);
        assert_eq!(applied("a  \n", "-a\n+b").likeness, Likeness::TrimmedEnd);
        assert_eq!(applied("\ta\n", "-a\n+b").likeness, Likeness::Trimmed);
        assert_eq!(applied("\u{201c}a\u{201d} \u{2014} b\n", "-\"a\" - b\n+c").likeness, Likeness::Folded);
        // A stricter match further below comes first.
        assert_eq!(result(" a\na\n", "-a\n+b"), " a\nb\n");
    }

    #[test]
    fn chunks_are_found_in_their_order_and_contexts_before_them() {
        let file = "fn a() {\n x\n}\nfn b() {\n x\n}\n";
        assert_eq!(result(file, "@@ fn b() {\n- x\n+ y"), "fn a() {\n x\n}\nfn b() {\n y\n}\n");
        let error = apply(file.as_bytes(), &chunks("@@ fn b() {\n }\n@@ fn a() {\n- x\n+ y")).expect_err("behind it");
        assert_eq!((error.line, error.nearest.as_slice()), (5, &[1][..]));
        assert_eq!(result(file, "@@ fn a() {\n+end"), format!("{file}end\n"));
        assert_eq!(result("x\ny\nx\n", " x\n+z\n*** End of File"), "x\ny\nx\nz\n");
    }

    #[test]
    fn an_empty_line_at_the_end_of_a_chunk_may_be_none_of_the_files() {
        assert_eq!(result("a\nb\n", " a\n-b\n+c\n"), "a\nc\n");
        assert_eq!(result("a\n\nb\n", " a\n\n+x"), "a\n\nx\nb\n");
        assert_eq!(result("a\nb\n", " a\n-b\n-\n+c\n+"), "a\nc\n");
        assert_eq!(result("a\nb\n", " a\n \n+c"), "a\n\nc\nb\n");
        // Blank lines before the first chunk and between chunks do not count either.
        assert_eq!(result("a\nb\n", "\n@@\n-a\n+x\n\n@@\n-b\n+y\n"), "x\ny\n");
    }

    #[test]
    fn lines_that_are_not_utf8_are_kept_and_a_missing_line_has_its_nearest_places() {
        let content = apply(b"a\n\xff\xfe\n", &chunks("-a\n+b")).expect("it applies").content;
        assert_eq!(content, b"b\n\xff\xfe\n");
        let error = apply(b"one\ntwo\nthree\n", &chunks(" two\n three\n-four")).expect_err("it is not there");
        assert_eq!(error.nearest, [2]);
        assert!(error.message.contains("`two`"), "{error}");
    }

    /// Compared line by line at every start, this took hours.
    #[test]
    fn a_large_file_of_equal_lines_is_searched_in_proportion_to_its_size() {
        let file = "a\n".repeat(200_000);
        let text = " a\n".repeat(100_000) + "-b\n+c";
        let error = apply(file.as_bytes(), &chunks(&text)).expect_err("there is no b");
        assert_eq!(error.line, 3);
        let text = " a\n".repeat(100_000) + "-a\n+c\n*** End of File";
        assert!(apply(file.as_bytes(), &chunks(&text)).expect("it applies").content.ends_with(b"a\nc\n"));
    }

    proptest! {
        #[test]
        fn the_search_finds_what_a_naive_one_finds(
            file in proptest::collection::vec("[ab ]{0,2}", 0..12),
            wanted in proptest::collection::vec("[ab ]{0,2}", 1..4),
            next in 0..4usize,
            at_end: bool,
        ) {
            let bytes = file.iter().map(|line| format!("{line}\n")).collect::<String>();
            let split = Lines::split(bytes.as_bytes());
            let wanted: Vec<&[u8]> = wanted.iter().map(|line| line.as_bytes()).collect();
            let starts = || (next..file.len()).filter(|start| {
                let end = start + wanted.len();
                if at_end { end == file.len() } else { end <= file.len() }
            });
            let naive = Likeness::ALL.into_iter().find_map(|likeness| {
                starts().find(|start| {
                    let lines = &split.lines[*start..*start + wanted.len()];
                    lines.iter().zip(&wanted).all(|(line, wanted)| likeness.key(line.text) == likeness.key(wanted))
                })
            });
            let mut search = Search { lines: &split.lines, keys: Default::default(), next, likeness: Likeness::Equal };
            prop_assert_eq!(search.find(&wanted, at_end), naive);
        }

        #[test]
        fn a_patch_from_one_text_to_another_gives_it(
            before in proptest::collection::vec("[ab]{0,2}", 1..8),
            after in proptest::collection::vec("[ab]{0,2}", 1..8),
        ) {
            let file = before.iter().map(|line| format!("{line}\n")).collect::<String>();
            let wanted = after.iter().map(|line| format!("{line}\n")).collect::<String>();
            let remove = before.iter().map(|line| ChunkLine::Remove(line.clone()));
            let insert = after.iter().map(|line| ChunkLine::Insert(line.clone()));
            let chunk = Chunk { line: 1, lines: remove.chain(insert).collect(), ..Chunk::default() };
            prop_assert_eq!(apply(file.as_bytes(), &[chunk]).map(|a| a.content), Ok(wanted.into_bytes()));
        }

        #[test]
        fn any_chunks_apply_or_are_refused(
            file in "[ab \r\n]{0,20}",
            lines in proptest::collection::vec((0..3u8, "[ab ]{0,2}"), 1..6),
            at_end: bool,
        ) {
            let lines = lines.into_iter().map(|(kind, text)| match kind {
                0 => ChunkLine::Keep(text),
                1 => ChunkLine::Remove(text),
                _ => ChunkLine::Insert(text),
            });
            let chunk = Chunk { line: 1, context: None, lines: lines.collect(), at_end };
            let _ = apply(file.as_bytes(), &[chunk.clone(), chunk]);
        }
    }
}
