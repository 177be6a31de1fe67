//! Similarity of texts, and the strategies that accept similar ones. Pure, and bounded in time.

use super::lines::{LineIndex, Pattern};
use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};
use std::time::{Duration, Instant};

/// Characters of a line that are compared.
const MAX_LINE_CHARS: usize = 1000;
/// Characters of a block that are compared.
const MAX_BLOCK_CHARS: usize = 64 * 1024;
/// Time for comparing characters. What is left then is not similar.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(1);
/// Places that are compared exactly for an error.
const MAX_CANDIDATES: usize = 32;

/// Similarity of the lines between equal first and last lines.
const ONE_BLOCK: f64 = 0.5;
/// The same where several blocks have these first and last lines.
const SEVERAL_BLOCKS: f64 = 0.7;
/// Similarity of each line.
const EACH_LINE: f64 = 0.8;

/// Returns the part of both texts that they have in common: 1 if they are equal, 0 if nothing is. After the deadline the rest
/// counts as different.
fn ratio(a: &str, b: &str, deadline: Instant) -> f64 {
    if a == b {
        return 1.0;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let common: usize = capture_diff_slices_deadline(Algorithm::Myers, &a, &b, Some(deadline))
        .into_iter()
        .filter(|op| op.tag() == DiffTag::Equal)
        .map(|op| op.old_range().len())
        .sum();
    2.0 * common as f64 / (a.len() + b.len()).max(1) as f64
}

/// Cuts a text after some characters.
pub fn cut(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}

/// The numbers of bytes by value: they bound the similarity of two lines from above.
struct Histogram([u16; 256], usize);

impl Histogram {
    fn of(text: &str) -> Histogram {
        let mut counts = [0u16; 256];
        text.bytes().for_each(|b| counts[b as usize] = counts[b as usize].saturating_add(1));
        Histogram(counts, text.len())
    }

    fn bound(&self, other: &Histogram) -> f64 {
        let common: usize = self.0.iter().zip(&other.0).map(|(a, b)| usize::from(*a.min(b))).sum();
        2.0 * common as f64 / (self.1 + other.1).max(1) as f64
    }
}

/// Compares for a bounded time.
pub struct Comparer {
    deadline: Instant,
}

impl Default for Comparer {
    fn default() -> Self {
        Comparer { deadline: Instant::now() + COMPARE_TIMEOUT }
    }
}

impl Comparer {
    /// Returns the similarity, and 0 when the time is used up.
    fn ratio(&self, a: &str, b: &str) -> f64 {
        if Instant::now() < self.deadline { ratio(a, b, self.deadline) } else { 0.0 }
    }

    /// Returns true if two lines are at least that similar.
    fn are_similar(&self, a: &str, b: &str, least: f64) -> bool {
        let (a, b) = (cut(a.trim(), MAX_LINE_CHARS), cut(b.trim(), MAX_LINE_CHARS));
        let by_length = 2.0 * a.len().min(b.len()) as f64 / (a.len() + b.len()).max(1) as f64;
        // One character has up to four bytes, so the bounds hold for plain text only.
        if a.is_ascii() && b.is_ascii() && (by_length < least || Histogram::of(a).bound(&Histogram::of(b)) < least) {
            return false;
        }
        self.ratio(a, b) >= least
    }
}

/// Returns the first lines of the blocks that begin and end as the pattern does and are similar between.
pub fn block_anchor(text: &LineIndex<'_>, pattern: &Pattern<'_>, comparer: &Comparer) -> Vec<usize> {
    let lines = &pattern.lines;
    let [first, middle @ .., last] = lines.as_slice() else { return Vec::new() };
    if middle.is_empty() || first.trim().is_empty() || last.trim().is_empty() {
        return Vec::new();
    }
    let ends =
        |at: &usize| text.line(*at).trim() == first.trim() && text.line(at + lines.len() - 1).trim() == last.trim();
    let candidates: Vec<usize> = (0..(text.len() + 1).saturating_sub(lines.len())).filter(ends).collect();
    let least = if candidates.len() > 1 { SEVERAL_BLOCKS } else { ONE_BLOCK };
    let join = |lines: &mut dyn Iterator<Item = &str>| {
        let joined = lines.map(str::trim).collect::<Vec<_>>().join("\n");
        cut(&joined, MAX_BLOCK_CHARS).to_owned()
    };
    let wanted = join(&mut middle.iter().copied());
    let similar = |at: &usize| {
        let block = join(&mut (at + 1..at + lines.len() - 1).map(|line| text.line(line)));
        comparer.ratio(&wanted, &block) >= least
    };
    without_overlap(candidates.into_iter().filter(similar), lines.len())
}

/// Returns the first lines of the blocks of which every line is similar.
pub fn similar_lines(text: &LineIndex<'_>, pattern: &Pattern<'_>, comparer: &Comparer) -> Vec<usize> {
    let lines = &pattern.lines;
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return Vec::new() };
    let similar = |at: &usize| {
        comparer.are_similar(first, text.line(*at), EACH_LINE)
            && comparer.are_similar(last, text.line(at + lines.len() - 1), EACH_LINE)
            && lines
                .iter()
                .enumerate()
                .all(|(n, line)| line.trim().is_empty() || comparer.are_similar(line, text.line(at + n), EACH_LINE))
    };
    let all = (0..(text.len() + 1).saturating_sub(lines.len())).filter(similar);
    without_overlap(all, lines.len())
}

fn without_overlap(found: impl Iterator<Item = usize>, count: usize) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for at in found {
        if kept.last().is_none_or(|last| last + count <= at) {
            kept.push(at);
        }
    }
    kept
}

/// A place that is near to what was looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Near {
    /// The first line of the block, from 0 on.
    pub line: usize,
    pub similarity: f64,
}

/// Returns the places that are most similar to the pattern, the nearest first.
pub fn nearest(text: &LineIndex<'_>, pattern: &Pattern<'_>, places: usize) -> Vec<Near> {
    // The longest line is the most distinctive.
    let longest = pattern.lines.iter().enumerate().max_by_key(|(n, line)| (line.trim().len(), usize::MAX - n));
    let Some((anchor, wanted)) = longest else { return Vec::new() };
    let wanted = Histogram::of(cut(wanted.trim(), MAX_LINE_CHARS));
    let mut best: Vec<(f64, usize)> = Vec::new();
    for (at, line) in text.iter().enumerate().skip(anchor) {
        let bound = wanted.bound(&Histogram::of(cut(line.trim(), MAX_LINE_CHARS)));
        let rank = best.partition_point(|(other, _)| *other >= bound);
        if bound > 0.0 && rank < MAX_CANDIDATES {
            best.insert(rank, (bound, at - anchor));
            best.truncate(MAX_CANDIDATES);
        }
    }
    let comparer = Comparer::default();
    let mut near: Vec<Near> = best.into_iter().map(|(_, line)| near(text, pattern, line, &comparer)).collect();
    near.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.line.cmp(&b.line)));
    near.truncate(places);
    near
}

fn near(text: &LineIndex<'_>, pattern: &Pattern<'_>, line: usize, comparer: &Comparer) -> Near {
    let wanted = pattern.lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n");
    let last = (line + pattern.lines.len()).min(text.len());
    let block = (line..last).map(|line| text.line(line).trim()).collect::<Vec<_>>().join("\n");
    let similarity = comparer.ratio(cut(&wanted, MAX_BLOCK_CHARS), cut(&block, MAX_BLOCK_CHARS));
    Near { line, similarity: (similarity * 100.0).round() / 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_similarity_is_the_part_that_both_have() {
        for (a, b, expected) in [("abcd", "abcd", 1.0), ("abcd", "abxd", 0.75), ("", "a", 0.0), ("ab", "cd", 0.0)] {
            assert_eq!(Comparer::default().ratio(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn a_block_is_found_by_its_ends_and_several_ones_must_be_nearer() {
        let index = |text: &'static str| LineIndex::new(text).expect("short");
        let one = index("fn a() {\n  let x = 1;\n}\n");
        let pattern = Pattern::new("fn a() {\nlet x = 22;\n}");
        let found = |text: &LineIndex<'_>, pattern: &Pattern<'_>| block_anchor(text, pattern, &Comparer::default());
        assert_eq!(found(&one, &pattern), [0]);
        let far = Pattern::new("fn a() {\nreturn;\n}");
        assert_eq!(found(&one, &far), Vec::<usize>::new());
        let two = index("{\nabcdef\n}\n{\nabcdxyz\n}\n");
        assert_eq!(found(&two, &Pattern::new("{\nabcdeg\n}")), [0], "the other is similar by less than 0.7");
        assert_eq!(found(&one, &Pattern::new("fn a() {\n}")), Vec::<usize>::new(), "nothing is between");
    }

    #[test]
    fn every_line_must_be_similar() {
        let text = LineIndex::new("let alpha = 1;\n\nlet beta = 2;\n").expect("short");
        let found = |pattern| similar_lines(&text, &Pattern::new(pattern), &Comparer::default());
        assert_eq!(found("let alpha = 9;\n\nlet beta = 7;"), [0]);
        assert_eq!(found("let alpha = 1;\n\nsomething else"), Vec::<usize>::new());
    }

    #[test]
    fn the_nearest_places_come_first_and_a_huge_text_ends_soon() {
        let text = LineIndex::new("zero\nlet value = 1;\nlet valve = 12;\nnothing\n").expect("short");
        let near = nearest(&text, &Pattern::new("let value = 2;"), 3);
        assert_eq!(near.first().map(|near| near.line), Some(1), "{near:?}");
        assert_eq!(near.get(1).map(|near| near.line), Some(2), "{near:?}");
        let long = "some line of code that repeats\n".repeat(200_000);
        let long = LineIndex::new(&long).expect("short");
        let pattern = Pattern::new("some line of code that repeat.\nsome other line of code");
        assert_eq!(nearest(&long, &pattern, 3).len(), 3);
        assert_eq!(similar_lines(&long, &pattern, &Comparer::default()), Vec::<usize>::new());
    }
}
