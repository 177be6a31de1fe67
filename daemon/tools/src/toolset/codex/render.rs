//! Texts of the toolset of codex: the shapes that its models were trained on.

use crate::toolset::text::{clip, cut_middle, floor_boundary, omission_marker, token_bytes, token_count};
use std::time::Duration;
use toold_proto::files::EntryType;
use toold_proto::patch::{PatchFile, PatchOp};

/// Characters of each stream in the text of `shell`.
const MAX_STREAM_CHARS: usize = 12_000;
/// Bytes of a line in the text of `read_file`.
const MAX_LINE_BYTES: usize = 500;

/// The outcome of `exec_command` and `write_stdin`.
#[derive(Debug, Clone)]
pub struct Exec<'a> {
    /// Six hexadecimal digits: [`chunk_id`].
    pub chunk_id: &'a str,
    /// The time that the call took.
    pub wall: Duration,
    pub state: ExecState<'a>,
    pub output: Output<'a>,
    pub max_output_tokens: usize,
    /// The note of the call's [`Yield`](super::Yield).
    pub yield_note: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecState<'a> {
    Running { session_id: u64 },
    Ended(End<'a>),
}

/// The end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End<'a> {
    /// Its own code; 128+n after signal n. None: not known.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<&'a str>,
}

/// Output since the last call: all of it, or a head and a tail of together [`MAX_UNREAD_BYTES`](super::MAX_UNREAD_BYTES).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Output<'a> {
    pub head: &'a str,
    /// Bytes between head and tail.
    pub omitted_bytes: u64,
    pub tail: &'a str,
}

impl Output<'_> {
    /// Returns the size before anything was left out.
    fn original_bytes(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.omitted_bytes
    }

    /// Returns the output within a budget. Both cuts are stated.
    fn within(&self, max_tokens: usize) -> String {
        if self.omitted_bytes == 0 {
            let text = [self.head, self.tail].concat();
            if text.len() <= token_bytes(max_tokens) {
                return text;
            }
            let (tokens, lines) = (token_count(text.len() as u64), text.lines().count());
            let cut = cut_middle(&text, max_tokens);
            return format!(
                "Warning: truncated output (original token count: {tokens})\nTotal output lines: {lines}\n\n{cut}"
            );
        }
        let marker = omission_marker(self.omitted_bytes);
        let text = format!("{}\n{marker}\n{}", self.head, self.tail);
        if text.len() <= token_bytes(max_tokens) {
            return text;
        }
        let tokens = token_count(self.original_bytes());
        let cut = cut_middle(&text, max_tokens);
        // The middle, with the marker, is what a smaller budget removes.
        let notice = if cut.contains(&marker) { String::new() } else { format!("{marker}\n") };
        format!("Warning: truncated output (original token count: {tokens})\n{notice}\n{cut}")
    }
}

/// Returns the id of a chunk from any number that differs from call to call.
pub fn chunk_id(bits: u64) -> String {
    format!("{:06x}", bits & 0xff_ffff)
}

/// Renders the outcome of `exec_command` and `write_stdin`.
pub fn exec(outcome: &Exec<'_>) -> String {
    let mut lines = vec![
        format!("Chunk ID: {}", outcome.chunk_id),
        format!("Wall time: {:.4} seconds", outcome.wall.as_secs_f64()),
    ];
    match outcome.state {
        ExecState::Running { session_id } => lines.push(format!("Process running with session ID {session_id}")),
        ExecState::Ended(End { exit_code, signal }) => {
            lines.push(match exit_code {
                Some(code) => format!("Process exited with code {code}"),
                None => "Process ended; its exit code is not known".into(),
            });
            lines.extend(signal.map(|signal| format!("Signal: {signal}")));
        }
    }
    lines.push(format!("Original token count: {}", token_count(outcome.output.original_bytes())));
    lines.extend(outcome.yield_note.map(String::from));
    lines.push("Output:".into());
    lines.push(outcome.output.within(outcome.max_output_tokens));
    lines.join("\n")
}

/// Renders the answer to a `write_stdin` whose session does not exist, or has ended and was reported.
pub fn unknown_session(session_id: u64) -> String {
    format!("write_stdin failed: Unknown process id {session_id}")
}

/// Renders an error of any tool.
pub fn failure(tool: &str, message: &str) -> String {
    format!("{tool} failed: {message}")
}

/// The outcome of `shell` and `shell_command`.
#[derive(Debug, Clone)]
pub struct ShellOutcome<'a> {
    pub cwd: &'a str,
    /// None: the time was over, and the whole tree was ended.
    pub end: Option<End<'a>>,
    pub timeout_ms: u64,
    pub stdout: StreamText<'a>,
    pub stderr: StreamText<'a>,
}

/// The beginning of a stream: all of it, or at least 12,000 characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamText<'a> {
    pub text: &'a str,
    /// Bytes that follow and were not read.
    pub more_bytes: u64,
}

/// Renders the outcome of `shell` and `shell_command`.
pub fn shell(outcome: &ShellOutcome<'_>) -> String {
    let mut lines = vec![format!("Working directory: {}", outcome.cwd)];
    match outcome.end {
        None => lines.push(format!("Timeout: exceeded {} ms", outcome.timeout_ms)),
        Some(End { exit_code, signal }) => {
            lines.push(exit_code.map_or("Exit code: not known".into(), |code| format!("Exit code: {code}")));
            lines.extend(signal.map(|signal| format!("Signal: {signal}")));
        }
    }
    for (title, stream) in [("Stdout:", outcome.stdout), ("Stderr:", outcome.stderr)] {
        lines.push(title.into());
        lines.push(clip(stream.text, MAX_STREAM_CHARS, stream.more_bytes));
    }
    lines.join("\n")
}

/// Renders a patch that was applied.
pub fn patch(files: &[PatchFile], took: Duration) -> String {
    let mut text = format!(
        "Exit code: 0\nWall time: {:.1} seconds\nOutput:\nSuccess. Updated the following files:\n",
        took.as_secs_f64()
    );
    for (op, letter) in [(PatchOp::Add, 'A'), (PatchOp::Update, 'M'), (PatchOp::Delete, 'D')] {
        for file in files.iter().filter(|file| file.op == op) {
            text.push_str(&format!("{letter} {}\n", file.to.as_deref().unwrap_or(&file.path)));
        }
    }
    text
}

/// Renders a patch that was not applied.
pub fn patch_refused(message: &str) -> String {
    format!("apply_patch verification failed: {message}")
}

/// Renders lines of a file, the first of which has the number `offset`.
pub fn read_file(content: &str, offset: u64) -> String {
    if content.is_empty() && offset > 1 {
        return "offset exceeds file length".into();
    }
    let numbered = (offset..).zip(content.lines());
    let lines = numbered.map(|(number, line)| format!("L{number}: {}", &line[..floor_boundary(line, MAX_LINE_BYTES)]));
    lines.collect::<Vec<_>>().join("\n")
}

/// Renders entries of a directory, each by its path below the directory, in their order. `has_more` follow.
pub fn list_dir(path: &str, entries: &[(String, EntryType)], has_more: bool) -> String {
    let mut lines = vec![format!("Absolute path: {path}")];
    for (relative, kind) in entries {
        let (depth, name) = (relative.matches('/').count(), relative.rsplit('/').next().unwrap_or(relative));
        let label = match kind {
            EntryType::File => "",
            EntryType::Dir => "/",
            EntryType::Symlink => "@",
            EntryType::Fifo | EntryType::Socket | EntryType::Device | EntryType::Other => "?",
        };
        lines.push(format!("{}{name}{label}", "  ".repeat(depth)));
    }
    if has_more {
        lines.push(format!("More than {} entries found", entries.len()));
    }
    lines.join("\n")
}

/// Renders the files with a match.
pub fn grep_files(paths: &[String]) -> String {
    if paths.is_empty() { "No matches found.".into() } else { paths.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome<'a>(state: ExecState<'a>, output: Output<'a>, max_output_tokens: usize) -> Exec<'a> {
        Exec {
            chunk_id: "0a1b2c",
            wall: Duration::from_millis(1500),
            state,
            output,
            max_output_tokens,
            yield_note: None,
        }
    }

    const OK: ExecState<'static> = ExecState::Ended(End { exit_code: Some(0), signal: None });

    #[test]
    fn exec_has_the_shape_of_codex() {
        let output = Output { head: "hello\n", ..Output::default() };
        assert_eq!(
            exec(&outcome(OK, output, 10_000)),
            "Chunk ID: 0a1b2c\nWall time: 1.5000 seconds\nProcess exited with code 0\nOriginal token count: 2\nOutput:\nhello\n"
        );
        let mut running = outcome(ExecState::Running { session_id: 1000 }, Output::default(), 10_000);
        running.yield_note = Some("Yield time: 30000 ms (requested 60000 ms; the range is 250-30000 ms)");
        assert_eq!(
            exec(&running),
            "Chunk ID: 0a1b2c\nWall time: 1.5000 seconds\nProcess running with session ID 1000\nOriginal token count: 0\n\
             Yield time: 30000 ms (requested 60000 ms; the range is 250-30000 ms)\nOutput:\n"
        );
        let killed = ExecState::Ended(End { exit_code: Some(137), signal: Some("SIGKILL") });
        assert!(exec(&outcome(killed, output, 10)).contains("\nProcess exited with code 137\nSignal: SIGKILL\n"));
        assert_eq!((chunk_id(0), chunk_id(u64::MAX)), ("000000".into(), "ffffff".into()));
    }

    #[test]
    fn a_long_output_states_both_cuts() {
        let text = "line\n".repeat(20);
        let whole = Output { head: &text, ..Output::default() };
        assert!(exec(&outcome(OK, whole, 5)).ends_with(
            "Original token count: 25\nOutput:\nWarning: truncated output (original token count: 25)\nTotal output lines: 20\n\n\
             line\nline\n…20 tokens truncated…line\nline\n"
        ));
        let kept = Output { head: "begin", omitted_bytes: 1_000_000, tail: "end" };
        assert!(
            exec(&outcome(OK, kept, 100))
                .ends_with("Original token count: 250002\nOutput:\nbegin\n... 1000000 bytes omitted ...\nend")
        );
        assert!(exec(&outcome(OK, kept, 1)).ends_with(
            "Output:\nWarning: truncated output (original token count: 250002)\n... 1000000 bytes omitted ...\n\n\
             be…9 tokens truncated…nd"
        ));
    }

    #[test]
    fn shell_has_its_shape_and_states_what_is_clipped() {
        let long = "x".repeat(12_005);
        let mut done = ShellOutcome {
            cwd: "/home/me",
            end: Some(End { exit_code: Some(2), signal: None }),
            timeout_ms: 30_000,
            stdout: StreamText { text: "out\n", more_bytes: 0 },
            stderr: StreamText { text: &long, more_bytes: 0 },
        };
        let expected = format!(
            "Working directory: /home/me\nExit code: 2\nStdout:\nout\n\nStderr:\n{}\n...[truncated 5 characters]...",
            "x".repeat(12_000)
        );
        assert_eq!(shell(&done), expected);
        (done.end, done.stderr) = (None, StreamText::default());
        assert_eq!(shell(&done), "Working directory: /home/me\nTimeout: exceeded 30000 ms\nStdout:\nout\n\nStderr:\n");
    }

    #[test]
    fn a_patch_lists_its_files_by_kind() {
        let file = |path: &str, op, to: Option<&str>| PatchFile {
            path: path.into(),
            op,
            to: to.map(String::from),
            before_sha256: None,
            after_sha256: None,
            added: 0,
            removed: 0,
            fuzz: 0,
        };
        let files = [
            file("gone", PatchOp::Delete, None),
            file("old", PatchOp::Update, Some("new")),
            file("made", PatchOp::Add, None),
        ];
        assert_eq!(
            patch(&files, Duration::from_millis(40)),
            "Exit code: 0\nWall time: 0.0 seconds\nOutput:\nSuccess. Updated the following files:\nA made\nM new\nD gone\n"
        );
    }

    #[test]
    fn files_have_their_shapes() {
        assert_eq!(read_file("a\nb\n", 3), "L3: a\nL4: b");
        assert_eq!(read_file(&"é".repeat(300), 1), format!("L1: {}", "é".repeat(250)));
        assert_eq!(read_file("", 9), "offset exceeds file length");
        let entries = [
            ("src".into(), EntryType::Dir),
            ("src/main.rs".into(), EntryType::File),
            ("link".into(), EntryType::Symlink),
        ];
        assert_eq!(
            list_dir("/p", &entries, true),
            "Absolute path: /p\nsrc/\n  main.rs\nlink@\nMore than 3 entries found"
        );
        assert_eq!(grep_files(&[]), "No matches found.");
        assert_eq!(grep_files(&["a".into(), "b".into()]), "a\nb");
    }
}
