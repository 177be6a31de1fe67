//! The fuzz targets on stable Rust: the whole corpus, and a fixed number of changes of it that are the same every time.

#[path = "../../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;

/// The number of changes of one input on top of each other.
const MAX_CHANGES: u64 = 6;
/// The length of the longest input.
const MAX_INPUT_LEN: usize = 4096;
/// Bytes at which decoders tend to be wrong: the ends of the integers, and those with a meaning in our formats.
const EDGES: [u8; 16] = *b"\x00\x01\x04\x40\x41\x7f\x80\xff\n\r\"\\{[:5";

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut paths: Vec<_> = std::fs::read_dir(dir).expect("a corpus").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a corpus file")).collect()
}

/// SplitMix64: the same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n.max(1)
    }

    fn place(&mut self, len: usize) -> usize {
        self.below(len as u64 + 1) as usize
    }

    fn range(&mut self, len: usize) -> std::ops::Range<usize> {
        let (a, b) = (self.place(len), self.place(len));
        a.min(b)..a.max(b)
    }
}

fn change(dice: &mut Dice, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = dice.place(bytes.len());
    match dice.below(7) {
        0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << dice.below(8)),
        1 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = EDGES[dice.below(16) as usize]),
        2 => bytes.insert(at, EDGES[dice.below(16) as usize]),
        3 => drop(bytes.drain(dice.range(bytes.len()))),
        4 => {
            let copy = bytes[dice.range(bytes.len())].to_vec();
            bytes.splice(at..at, copy);
        }
        5 => drop(bytes.splice(at..at, other[dice.range(other.len())].iter().copied())),
        // A number at the end of its range.
        _ => bytes.iter_mut().skip(at).take(8).for_each(|byte| *byte = [0, 0xff][at % 2]),
    }
    bytes.truncate(MAX_INPUT_LEN);
}

/// Runs `target` over its corpus and `rounds` changes of it. Prints the input that failed.
fn run(name: &str, rounds: u64, target: fn(&[u8])) {
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "a corpus for {name}");
    let try_one = |bytes: &[u8]| {
        if let Err(panic) = std::panic::catch_unwind(|| target(bytes)) {
            eprintln!("{name} failed on {:?}", bytes.escape_ascii().to_string());
            std::panic::resume_unwind(panic);
        }
    };
    corpus.iter().for_each(|bytes| try_one(bytes));
    let mut dice = Dice(1);
    for _ in 0..rounds {
        let mut bytes = corpus[dice.below(corpus.len() as u64) as usize].clone();
        for _ in 0..=dice.below(MAX_CHANGES) {
            let other = dice.below(corpus.len() as u64) as usize;
            change(&mut dice, &mut bytes, &corpus[other]);
        }
        try_one(&bytes);
    }
}

#[test]
fn no_bytes_upset_the_wire() {
    run("wire", 20_000, targets::wire);
}

#[test]
fn no_bytes_upset_either_end_of_a_shims_connection() {
    run("frames", 100_000, targets::frames);
}

#[test]
fn no_bytes_upset_a_log_and_its_index() {
    run("index", 5_000, targets::index);
}

#[test]
fn no_bytes_upset_a_record() {
    run("slots", 100_000, targets::slots);
}

#[test]
fn no_bytes_upset_the_files_beside_the_journal() {
    run("journal_files", 20_000, targets::journal_files);
}

#[test]
fn no_bytes_upset_the_files_beside_a_record() {
    run("record_files", 20_000, targets::record_files);
}

#[test]
fn no_bytes_upset_an_edit() {
    run("edit", 20_000, targets::edit);
}

#[test]
fn no_bytes_upset_a_patch() {
    run("patch", 20_000, targets::patch);
}

#[test]
fn no_text_upsets_the_judge_of_commands() {
    run("shell_text", 20_000, targets::shell_text);
}

#[test]
fn no_text_upsets_the_reader_of_rules() {
    run("rule_files", 5_000, targets::rule_files);
}

#[test]
fn no_text_upsets_the_redactor() {
    run("redact", 300, targets::redact);
}

#[test]
fn no_bytes_upset_the_journal_of_calls() {
    run("calls", 20_000, targets::calls);
}
