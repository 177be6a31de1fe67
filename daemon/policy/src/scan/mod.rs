//! The loose scanner: splits any shell text into the commands that it may run. It guesses on the side of suspicion, never
//! fails, and knows quotes, expansions with a known result, redirections, here documents and substitutions.

mod word;

use std::collections::BTreeMap;
use word::{alternatives, mark};
pub(crate) use word::{assignment, is_same_word, shown};

/// The longest value of a variable that is followed.
const MAX_VALUE_LEN: usize = 4096;

/// One simple command, without reserved words, assignments and redirections before it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    pub words: Vec<String>,
    /// Texts on its stdin: here documents and here strings.
    pub input: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    pub commands: Vec<Simple>,
    /// Texts of substitutions.
    pub nested: Vec<String>,
}

pub(crate) fn scan(text: &str) -> Scan {
    let mut scanner = Scanner { chars: text.chars().collect(), ..Scanner::default() };
    scanner.run();
    scanner.found
}

/// The meaning of the next word.
#[derive(Default, Clone, Copy, PartialEq)]
enum Expect {
    #[default]
    Argument,
    RedirectTarget,
    HereString,
    HereDelimiter {
        strips_tabs: bool,
    },
}

struct HereDocument {
    delimiter: String,
    strips_tabs: bool,
    is_literal: bool,
}

#[derive(Default)]
struct Scanner {
    chars: Vec<char>,
    at: usize,
    found: Scan,
    current: Simple,
    word: Option<String>,
    is_quoted: bool,
    expect: Expect,
    here_documents: Vec<HereDocument>,
    /// The first command of this line.
    line_start: usize,
    variables: BTreeMap<String, String>,
}

impl Scanner {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn take_if(&mut self, c: char) -> bool {
        let is_next = self.peek() == Some(c);
        self.at += usize::from(is_next);
        is_next
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn run(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(c) => {
                        self.is_quoted = true;
                        self.push(c);
                    }
                },
                '\'' => self.single_quoted(),
                '"' => self.double_quoted(),
                '$' => self.dollar(false),
                '`' => self.backquoted(false),
                ' ' | '\t' => self.end_word(),
                '\n' => self.end_line(),
                '&' if self.peek() == Some('>') => {}
                '<' | '>' => self.redirection(c),
                ';' | '|' | '&' | '(' | ')' => self.end_command(),
                '#' if self.word.is_none() => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                '{' => self.push(mark::OPEN),
                ',' => self.push(mark::COMMA),
                '}' => self.push(mark::CLOSE),
                '*' => self.push(mark::STAR),
                '?' => self.push(mark::ANY),
                '[' if self.word.is_some() => self.bracket(),
                c => self.push(c),
            }
        }
        self.end_line();
    }

    /// A set of characters in a pattern stands for any one of them.
    fn bracket(&mut self) {
        let end = self.chars[self.at..].iter().take(32).position(|c| *c == ']' || c.is_whitespace());
        match end.filter(|end| self.chars[self.at + end] == ']') {
            Some(end) => {
                self.at += end + 1;
                self.push(mark::ANY);
            }
            None => self.push('['),
        }
    }

    fn single_quoted(&mut self) {
        self.is_quoted = true;
        self.word.get_or_insert_default();
        while let Some(c) = self.next().filter(|c| *c != '\'') {
            self.push(c);
        }
    }

    fn double_quoted(&mut self) {
        self.is_quoted = true;
        self.word.get_or_insert_default();
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                '$' => self.dollar(true),
                '`' => self.backquoted(true),
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.push(c),
                    Some(c) => {
                        self.push('\\');
                        self.push(c);
                    }
                },
                c => self.push(c),
            }
        }
    }

    /// `$'…'`: escapes as in C.
    fn escaped_quoted(&mut self) {
        self.is_quoted = true;
        self.word.get_or_insert_default();
        while let Some(c) = self.next().filter(|c| *c != '\'') {
            let c = if c == '\\' { self.escape() } else { Some(c) };
            self.word.get_or_insert_default().extend(c);
        }
    }

    fn escape(&mut self) -> Option<char> {
        let c = self.next()?;
        match c {
            'n' => Some('\n'),
            't' => Some('\t'),
            'x' => self.digits(16, 2),
            'u' => self.digits(16, 4),
            'U' => self.digits(16, 8),
            '0'..='7' => {
                self.at -= 1;
                self.digits(8, 3)
            }
            c => Some(c),
        }
    }

    fn digits(&mut self, radix: u32, max: usize) -> Option<char> {
        let mut value = 0;
        for _ in 0..max {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else { break };
            value = value * radix + digit;
            self.at += 1;
        }
        char::from_u32(value)
    }

    /// An expansion. `quoted`: its result is not split into words.
    fn dollar(&mut self, quoted: bool) {
        match self.peek() {
            Some('\'') if !quoted => {
                self.at += 1;
                self.escaped_quoted();
            }
            Some('"') if !quoted => {}
            Some('(') => {
                self.at += 1;
                let text = self.balanced('(', ')');
                self.substitution(text, quoted);
            }
            Some('{') => {
                self.at += 1;
                let text = self.balanced('{', '}');
                self.parameter(&text, quoted);
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = &self.chars[self.at..];
                let len = rest.iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '_').count();
                let name: String = rest[..len].iter().collect();
                self.at += len;
                self.variable(&name, quoted);
            }
            Some(c) if c.is_ascii_digit() || "@*#?!-$".contains(c) => {
                self.at += 1;
                self.push(mark::UNKNOWN);
            }
            _ => self.push('$'),
        }
    }

    fn variable(&mut self, name: &str, quoted: bool) {
        match self.variables.get(name).cloned() {
            Some(value) => self.expand(&value, quoted),
            None => self.push(mark::UNKNOWN),
        }
    }

    /// `${name}`, `${name:-default}` and the like.
    fn parameter(&mut self, text: &str, quoted: bool) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name: String = text.chars().take_while(|c| is_name(*c)).collect();
        let operator = &text[name.len()..];
        if text.contains("$(") || text.contains('`') {
            self.found.nested.push(format!("\"{}\"", operator.replace('"', "")));
        }
        let default = operator.trim_start_matches(':').strip_prefix(['-', '=', '+']);
        match (self.variables.contains_key(&name), default) {
            (false, Some(default)) => self.expand(&default.replace(['"', '\'', '\\'], ""), quoted),
            _ => self.variable(&name, quoted),
        }
    }

    /// Appends the result of an expansion.
    fn expand(&mut self, value: &str, quoted: bool) {
        let word = self.word.get_or_insert_default();
        if word.len() + value.len() > MAX_VALUE_LEN {
            word.push(mark::UNKNOWN);
            return;
        }
        word.extend(value.chars().map(|c| if c.is_whitespace() && !quoted { mark::BLANK } else { c }));
    }

    fn substitution(&mut self, text: String, quoted: bool) {
        match known_output(&text) {
            Some(output) => self.expand(&output, quoted),
            None => self.push(mark::UNKNOWN),
        }
        self.found.nested.push(text);
    }

    fn backquoted(&mut self, quoted: bool) {
        let mut text = String::new();
        while let Some(c) = self.next().filter(|c| *c != '`') {
            match c {
                '\\' if self.peek().is_some_and(|c| "`\\$".contains(c)) => text.extend(self.next()),
                c => text.push(c),
            }
        }
        self.substitution(text, quoted);
    }

    /// Reads up to the closing character, over quotes and nested pairs.
    fn balanced(&mut self, open: char, close: char) -> String {
        let start = self.at;
        let mut depth = 1;
        while let Some(c) = self.next() {
            match c {
                '\\' => self.at += 1,
                '\'' => while self.next().is_some_and(|c| c != '\'') {},
                '"' => self.skip_double_quoted(),
                c if c == open => depth += 1,
                c if c == close => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return self.chars[start..self.at - 1].iter().collect();
            }
        }
        self.at = self.chars.len();
        self.chars[start..].iter().collect()
    }

    /// Skips to the closing quote, over substitutions with quotes of their own.
    fn skip_double_quoted(&mut self) {
        let mut depth = 0;
        while let Some(c) = self.next() {
            match c {
                '\\' => self.at += 1,
                '$' if self.peek() == Some('(') => depth += 1,
                ')' if depth > 0 => depth -= 1,
                '"' if depth == 0 => return,
                _ => {}
            }
        }
    }

    fn redirection(&mut self, c: char) {
        if self.take_if('(') {
            let text = self.balanced('(', ')');
            self.found.nested.push(text);
            self.push(mark::UNKNOWN);
            return;
        }
        // The number of a descriptor.
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.expect = Expect::RedirectTarget;
        if c == '<' && self.take_if('<') {
            self.expect = if self.take_if('<') {
                Expect::HereString
            } else {
                Expect::HereDelimiter { strips_tabs: self.take_if('-') }
            };
            return;
        }
        while self.peek().is_some_and(|c| "><&|".contains(c)) {
            self.at += 1;
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let is_literal = std::mem::take(&mut self.is_quoted);
        match std::mem::take(&mut self.expect) {
            Expect::Argument => {
                for word in alternatives(&word) {
                    self.current
                        .words
                        .extend(word.split(mark::BLANK).filter(|part| !part.is_empty()).map(String::from));
                    if word.is_empty() {
                        self.current.words.push(word);
                    }
                }
            }
            Expect::RedirectTarget => {}
            Expect::HereString => self.current.input.push(shown(&word)),
            Expect::HereDelimiter { strips_tabs } => {
                self.here_documents.push(HereDocument { delimiter: shown(&word), strips_tabs, is_literal });
            }
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.expect = Expect::Argument;
        let Simple { words, input } = std::mem::take(&mut self.current);
        let mut rest = words.as_slice();
        while let Some((first, after)) = rest.split_first() {
            if let Some((name, value)) = assignment(first) {
                self.variables.insert(name.into(), shown(value));
            } else if !is_skipped(first) {
                break;
            }
            rest = after;
        }
        if !rest.is_empty() || !input.is_empty() {
            self.found.commands.push(Simple { words: rest.to_vec(), input });
        }
    }

    fn end_line(&mut self) {
        self.end_command();
        for document in std::mem::take(&mut self.here_documents) {
            let mut body = String::new();
            while self.at < self.chars.len() {
                let rest = &self.chars[self.at..];
                let len = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
                let line: String = rest[..len].iter().collect();
                self.at += (len + 1).min(rest.len());
                let line = if document.strips_tabs { line.trim_start_matches('\t') } else { &line };
                if line == document.delimiter {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            if !document.is_literal && (body.contains("$(") || body.contains('`')) {
                self.found.nested.push(format!("\"{}\"", body.replace('"', "")));
            }
            for command in &mut self.found.commands[self.line_start..] {
                command.input.push(body.clone());
            }
        }
        self.line_start = self.found.commands.len();
    }
}

/// The output of a substitution that only prints its arguments, or finds a program.
fn known_output(text: &str) -> Option<String> {
    const MAX_LEN: usize = 256;
    let mut words = text.split_whitespace();
    let skipped = match words.next()? {
        "echo" | "printf" | "which" => 0,
        "command" | "type" => 1,
        // The output of any other command is not known.
        _ => return None,
    };
    let is_simple = |c: char| c.is_ascii_alphanumeric() || " \t_-./'\"\\%".contains(c);
    (text.len() <= MAX_LEN && text.chars().all(is_simple))
        .then(|| words.skip(skipped).collect::<Vec<_>>().join(" ").replace(['\'', '"', '\\'], ""))
}

/// Reserved words before a command.
fn is_skipped(word: &str) -> bool {
    matches!(
        word,
        "!" | "-" | "if" | "then" | "else" | "elif" | "fi" | "do" | "done" | "while" | "until" | "esac" | "in" | "[["
    ) || matches!(shown(word).as_str(), "{" | "}")
}
