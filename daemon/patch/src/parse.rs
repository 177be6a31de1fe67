//! Parses a patch, whole or in pieces as a model writes it: both give the same result.
//!
//! The last line is trimmed at both ends, others inside an update only at the end. So a line is parsed once a later one
//! shows that it is not the last.

use crate::{Change, Chunk, ChunkLine, Operation, Patch, PatchError};
use std::collections::VecDeque;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ENVIRONMENT: &str = "*** Environment ID:";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";
const HEREDOC_STARTS: [&str; 3] = ["<<EOF", "<<'EOF'", "<<\"EOF\""];
const HEREDOC_END: &str = "EOF";

/// Parses a whole patch.
pub fn parse(text: &str) -> Result<Patch, PatchError> {
    let mut parser = Parser::default();
    parser.push(text);
    parser.finish()
}

/// A parser of text that comes in pieces.
#[derive(Debug, Default)]
pub struct Parser {
    /// The start of a line whose end is not there yet.
    partial: String,
    /// Lines so far, from 1.
    count: usize,
    /// Lines that may be the last ones: up to two with text, and the blank ones around them.
    held: VecDeque<(usize, String)>,
    held_text: usize,
    heredoc: bool,
    started: bool,
    machine: Machine,
    failed: Option<PatchError>,
}

impl Parser {
    /// Takes the next piece of text.
    pub fn push(&mut self, text: &str) {
        let mut rest = text;
        while let Some(end) = rest.find('\n') {
            self.partial.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.partial);
            self.line(line);
        }
        self.partial.push_str(rest);
    }

    /// The operations whose headers are complete so far.
    pub fn operations(&self) -> &[Operation] {
        &self.machine.patch.operations
    }

    /// Ends the text.
    pub fn finish(mut self) -> Result<Patch, PatchError> {
        let rest = std::mem::take(&mut self.partial);
        if !rest.is_empty() {
            self.line(rest);
        }
        let mut held = std::mem::take(&mut self.held);
        while held.back().is_some_and(|(_, text)| text.trim().is_empty()) {
            held.pop_back();
        }
        if self.heredoc {
            self.end_heredoc(&mut held);
        }
        let last = held.pop_back();
        held.into_iter().for_each(|(number, text)| self.parse_line(number, &text));
        let Some((number, text)) = last else {
            return Err(self.failed.unwrap_or_else(|| PatchError::at(1, format!("the first line must be `{BEGIN}`"))));
        };
        self.parse_line(number, text.trim());
        if let Some(error) = self.failed {
            return Err(error);
        }
        if !self.machine.ended {
            return Err(PatchError::at(number, format!("the last line must be `{END}`")));
        }
        self.machine.finish(number)
    }

    /// Removes the last line of a text in a here-document.
    fn end_heredoc(&mut self, held: &mut VecDeque<(usize, String)>) {
        match held.pop_back() {
            Some((_, text)) if text.trim_end().ends_with(HEREDOC_END) => {}
            Some((number, _)) => {
                self.fail(PatchError::at(number, format!("the last line must end in `{HEREDOC_END}`")))
            }
            None => {}
        }
        while held.back().is_some_and(|(_, text)| text.trim().is_empty()) {
            held.pop_back();
        }
    }

    fn fail(&mut self, error: PatchError) {
        self.failed.get_or_insert(error);
    }

    fn line(&mut self, mut text: String) {
        self.count += 1;
        if text.ends_with('\r') {
            text.pop();
        }
        let has_text = !text.trim().is_empty();
        if !has_text && !self.started && self.held.is_empty() {
            // The text as a whole is trimmed.
            return;
        }
        if has_text && !self.started && self.held.is_empty() && !self.heredoc && HEREDOC_STARTS.contains(&text.trim()) {
            self.heredoc = true;
            return;
        }
        self.held.push_back((self.count, text));
        if !has_text {
            return;
        }
        self.held_text += 1;
        // In a here-document the last line but one may be the last of the patch.
        let may_be_last = if self.heredoc { 2 } else { 1 };
        while self.held_text > may_be_last {
            let Some((number, text)) = self.held.pop_front() else { break };
            if !text.trim().is_empty() {
                self.held_text -= 1;
            }
            self.parse_line(number, &text);
        }
    }

    fn parse_line(&mut self, number: usize, text: &str) {
        if self.failed.is_some() {
            return;
        }
        let parsed = match self.started {
            false if text.trim() == BEGIN => {
                self.started = true;
                Ok(())
            }
            false => Err(PatchError::at(number, format!("the first line must be `{BEGIN}`"))),
            true => self.machine.line(number, text),
        };
        if let Err(error) = parsed {
            self.failed = Some(error);
        }
    }
}

/// The part between the first line and the last.
#[derive(Debug, Default)]
struct Machine {
    patch: Patch,
    /// The update that takes lines.
    in_update: bool,
    /// A blank line of a new file, which only a header may follow.
    blank: Option<usize>,
    ended: bool,
}

impl Machine {
    fn line(&mut self, number: usize, text: &str) -> Result<(), PatchError> {
        if self.ended {
            return match text.trim().is_empty() {
                true => Ok(()),
                false => Err(PatchError::at(number, format!("nothing may follow `{END}`"))),
            };
        }
        let header = if self.in_update { text.trim_end() } else { text.trim() };
        if self.header(number, header)? {
            return Ok(());
        }
        match self.patch.operations.last_mut().map(|operation| (operation.line, &mut operation.change)) {
            None if text.trim().is_empty() => Ok(()),
            None => Err(PatchError::at(number, format!("`{}` is not the header of an operation", shown(text)))),
            Some((_, Change::Add { content })) => {
                match (text.strip_prefix('+'), self.blank) {
                    (Some(line), None) => {
                        content.push_str(line);
                        content.push('\n');
                    }
                    (None, _) if text.trim().is_empty() => {
                        self.blank.get_or_insert(number);
                    }
                    (_, blank) => {
                        let number = blank.unwrap_or(number);
                        return Err(PatchError::at(number, "a line of a new file must begin with `+`"));
                    }
                }
                Ok(())
            }
            Some((_, Change::Delete)) if text.trim().is_empty() => Ok(()),
            Some((_, Change::Delete)) => Err(PatchError::at(number, "a deleted file has no lines")),
            Some((header, Change::Update { move_to, chunks })) => update_line(number, text, header, move_to, chunks),
        }
    }

    /// Takes a line that is a header of the format, and returns whether it is one.
    fn header(&mut self, number: usize, text: &str) -> Result<bool, PatchError> {
        if text == END {
            self.check_update(number)?;
            self.ended = true;
            return Ok(true);
        }
        if let Some(name) = text.strip_prefix(ENVIRONMENT).filter(|_| self.patch.operations.is_empty()) {
            let name = name.trim();
            if name.is_empty() || self.patch.environment.is_some() {
                return Err(PatchError::at(number, "the environment must be named once, and not be empty"));
            }
            self.patch.environment = Some(name.into());
            return Ok(true);
        }
        let changes = [
            (ADD, Change::Add { content: String::new() }),
            (DELETE, Change::Delete),
            (UPDATE, Change::Update { move_to: None, chunks: Vec::new() }),
        ];
        for (prefix, change) in changes {
            let Some(path) = text.strip_prefix(prefix) else { continue };
            let path = path.trim();
            if path.is_empty() {
                return Err(PatchError::at(number, "the header names no file"));
            }
            self.check_update(number)?;
            (self.in_update, self.blank) = (prefix == UPDATE, None);
            self.patch.operations.push(Operation { line: number, path: path.into(), change });
            return Ok(true);
        }
        Ok(false)
    }

    /// Checks the update before a header: it has chunks, and the last has lines.
    fn check_update(&mut self, number: usize) -> Result<(), PatchError> {
        let Some(Operation { line, path, change: Change::Update { chunks, .. } }) = self.patch.operations.last() else {
            return Ok(());
        };
        match chunks.last() {
            None => Err(PatchError::at(*line, format!("the update of `{path}` changes nothing"))),
            Some(chunk) if chunk.lines.is_empty() => Err(PatchError::at(number, "the chunk before has no lines")),
            Some(_) => Ok(()),
        }
    }

    fn finish(self, number: usize) -> Result<Patch, PatchError> {
        match self.patch.operations.is_empty() {
            true => Err(PatchError::at(number, "no files were modified: the patch has no operation")),
            false => Ok(self.patch),
        }
    }
}

fn update_line(
    number: usize,
    text: &str,
    header: usize,
    move_to: &mut Option<String>,
    chunks: &mut Vec<Chunk>,
) -> Result<(), PatchError> {
    let trimmed = text.trim_end();
    if chunks.is_empty()
        && move_to.is_none()
        && let Some(path) = trimmed.strip_prefix(MOVE)
    {
        if number != header + 1 || path.trim().is_empty() {
            return Err(PatchError::at(number, "the new name must stand right below the header, and not be empty"));
        }
        *move_to = Some(path.trim().into());
        return Ok(());
    }
    let begins_chunk = trimmed == "@@" || trimmed.starts_with("@@ ");
    if begins_chunk {
        if chunks.last().is_some_and(|chunk| chunk.lines.is_empty()) {
            return Err(PatchError::at(number, "the chunk before has no lines"));
        }
        let context = trimmed.strip_prefix("@@ ").map(String::from);
        chunks.push(Chunk { line: number, context, ..Chunk::default() });
        return Ok(());
    }
    if trimmed == END_OF_FILE {
        return match chunks.last_mut() {
            Some(chunk) if !chunk.lines.is_empty() && !chunk.at_end => {
                chunk.at_end = true;
                Ok(())
            }
            _ => Err(PatchError::at(number, "there are no lines before the end of the file")),
        };
    }
    if chunks.last().is_some_and(|chunk| chunk.at_end) {
        return match trimmed.is_empty() {
            true => Ok(()),
            false => Err(PatchError::at(number, format!("only `@@` or a header may follow `{END_OF_FILE}`"))),
        };
    }
    let line = match text.as_bytes().first() {
        // Blank lines before the first chunk are none of the file's.
        None if chunks.is_empty() => return Ok(()),
        None => ChunkLine::Keep(String::new()),
        Some(b' ') => ChunkLine::Keep(text[1..].into()),
        Some(b'-') => ChunkLine::Remove(text[1..].into()),
        Some(b'+') => ChunkLine::Insert(text[1..].into()),
        Some(_) => {
            let message = format!("`{}` must begin with ` `, `+`, `-` or `@@`", shown(text));
            return Err(PatchError::at(number, message));
        }
    };
    if chunks.is_empty() {
        chunks.push(Chunk { line: number, ..Chunk::default() });
    }
    if let Some(chunk) = chunks.last_mut() {
        chunk.lines.push(line);
    }
    Ok(())
}

/// The start of a line, for a message.
fn shown(text: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn in_pieces(text: &str, cuts: &[usize]) -> Result<Patch, PatchError> {
        let mut parser = Parser::default();
        let mut rest = text;
        for cut in cuts {
            let at = (0..=(*cut).min(rest.len())).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(0);
            parser.push(&rest[..at]);
            rest = &rest[at..];
        }
        parser.push(rest);
        parser.finish()
    }

    #[test]
    fn the_three_operations_are_parsed() {
        let text = "*** Begin Patch\n*** Add File: a\n+one\n+\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n\
                    @@ fn main() {\n keep\n-old\n+new\n\n*** End of File\n*** End Patch\n";
        let patch = parse(text).expect("it is a patch");
        assert_eq!(patch.operations.len(), 3);
        assert_eq!(patch.operations[0].change, Change::Add { content: "one\n\n".into() });
        assert_eq!(patch.operations[1], Operation { line: 5, path: "b".into(), change: Change::Delete });
        let Change::Update { move_to, chunks } = &patch.operations[2].change else { panic!("an update") };
        assert_eq!(move_to.as_deref(), Some("d"));
        assert_eq!(chunks[0].context.as_deref(), Some("fn main() {"));
        assert_eq!(chunks[0].old().collect::<Vec<_>>(), ["keep", "old", ""]);
        assert!(chunks[0].at_end);
    }

    #[test]
    fn an_indented_header_inside_an_update_is_a_line_to_keep() {
        let text = "*** Begin Patch\n*** Update File: a\n@@\n *** Update File: b\n+x\n*** End Patch";
        let patch = parse(text).expect("it is a patch");
        assert_eq!(patch.operations.len(), 1);
        let indented = "*** Begin Patch\n  *** Add File: b\n+x\n  *** End Patch  \n\n";
        assert_eq!(parse(indented).expect("it is a patch").operations[0].path, "b");
        // Only the very last line is trimmed at both ends.
        let kept = "*** Begin Patch\n*** Update File: a\n@@\n *** End Patch\n+x\n *** End Patch";
        let Change::Update { chunks, .. } = &parse(kept).expect("it is a patch").operations[0].change else {
            panic!("an update")
        };
        assert_eq!(chunks[0].lines[0], ChunkLine::Keep("*** End Patch".into()));
    }

    #[test]
    fn a_here_document_around_a_patch_is_removed() {
        for start in HEREDOC_STARTS {
            let text = format!("\n{start}\n*** Begin Patch\n*** Delete File: a\n *** End Patch\nEOF\n");
            assert_eq!(parse(&text).expect(start).operations.len(), 1);
        }
        let open = parse("<<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch\n").expect_err("it is open");
        assert_eq!(open.line, 4);
    }

    #[test]
    fn an_error_has_its_line() {
        let line = |text: &str| parse(text).expect_err(text).line;
        assert_eq!(line(""), 1);
        assert_eq!(line("*** Update File: a"), 1);
        assert_eq!(line("*** Begin Patch\n*** Frobnicate: a\n*** End Patch"), 2);
        assert_eq!(line("*** Begin Patch\n*** Add File: a\nno plus\n*** End Patch"), 3);
        assert_eq!(line("*** Begin Patch\n*** Add File: a\n+x\n\n+y\n*** End Patch"), 4);
        assert_eq!(line("*** Begin Patch\n*** Update File: a\n*** End Patch"), 2);
        assert_eq!(line("*** Begin Patch\n*** Update File: a\n\n*** End Patch"), 2);
        assert_eq!(line("*** Begin Patch\n*** Update File: a\n@@\n*** End Patch"), 4);
        assert_eq!(line("*** Begin Patch\n*** Update File: a\n-x\n*** Move to: b\n*** End Patch"), 4);
        assert_eq!(line("*** Begin Patch\n*** Environment ID: \n*** End Patch"), 2);
        assert_eq!(line("*** Begin Patch\n*** Update File: a\n@@\n@@\n-x\n*** End Patch"), 4);
        assert_eq!(line("*** Begin Patch\n*** Update File: a\n@@\n-x\n*** End of File\n-y\n*** End Patch"), 6);
        assert_eq!(line("*** Begin Patch\n*** Delete File: a\n"), 2);
        assert_eq!(line("*** Begin Patch\n*** End Patch"), 2);
        assert_eq!(line("*** Begin Patch\n*** Delete File: a\n*** End Patch\nmore"), 4);
    }

    fn text() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            Just(BEGIN.to_string()),
            Just(END.to_string()),
            Just(format!(" {END} ")),
            Just("*** Add File: a".to_string()),
            Just("*** Delete File: b".to_string()),
            Just(" *** Update File: c".to_string()),
            Just("*** Update File: c".to_string()),
            Just("*** Move to: d".to_string()),
            Just("*** Environment ID: e".to_string()),
            Just(END_OF_FILE.to_string()),
            Just("<<'EOF'".to_string()),
            Just("EOF".to_string()),
            Just("@@ x".to_string()),
            Just("@@".to_string()),
            "[ +@*-]{0,1}[a-z \r]{0,3}",
            Just(String::new()),
        ];
        proptest::collection::vec(line, 0..20).prop_map(|lines| {
            let started = format!("{BEGIN}\n{}", lines.join("\n"));
            if lines.len() % 3 == 0 { lines.join("\n") } else { format!("{started}\n{END}") }
        })
    }

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(text in text(), cuts in proptest::collection::vec(0usize..30, 0..20)) {
            prop_assert_eq!(in_pieces(&text, &cuts), parse(&text));
        }
    }
}
