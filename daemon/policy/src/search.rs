//! The loose search: every command that a call may run, also behind wrappers, in texts for other shells and in substitutions.

use crate::programs::is_wrapper;
use crate::scan::{Scan, Simple, assignment, scan, shown};
use crate::shells::{base_name, is_shell};
use std::sync::Arc;

/// The deepest nesting that is searched. Deeper text is a question.
const MAX_DEPTH: usize = 8;
/// The most commands that are looked at. More are a question.
const MAX_CANDIDATES: usize = 20_000;

/// A command that the call may run: the words of `all` from `from` on.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    all: Arc<Vec<String>>,
    from: usize,
    /// The predicted command that it belongs to.
    pub origin: Option<usize>,
}

impl Candidate {
    pub(crate) fn words(&self) -> &[String] {
        &self.all[self.from..]
    }
}

#[derive(Debug, Default)]
pub(crate) struct Search {
    pub candidates: Vec<Candidate>,
    /// Something was nested too deeply, or there were too many commands to look at each.
    pub incomplete: bool,
}

impl Search {
    /// Looks at the commands that were predicted.
    pub(crate) fn in_commands(commands: &[Vec<String>]) -> Search {
        let mut search = Search::default();
        let reads_stdin = commands.iter().any(|words| is_shell_on_stdin(words));
        for (at, words) in commands.iter().enumerate() {
            search.add(words.clone(), Some(at), 0);
            if let Some(text) = printed(words).filter(|_| reads_stdin) {
                search.add_text(&text, Some(at), 1);
            }
        }
        search
    }

    /// Looks at a text that could not be predicted.
    pub(crate) fn in_text(text: &str) -> Search {
        let mut search = Search::default();
        search.add_text(text, None, 0);
        search
    }

    /// Looks at arguments that a program gets.
    pub(crate) fn in_argv(argv: &[String]) -> Search {
        let mut search = Search::default();
        search.add(argv.to_vec(), None, 0);
        search
    }

    /// Adds the call of a shell whose text was looked into already.
    pub(crate) fn add_shell(&mut self, argv: &[String]) {
        self.candidates.push(Candidate { all: Arc::new(argv.to_vec()), from: 0, origin: None });
    }

    fn add_text(&mut self, text: &str, origin: Option<usize>, depth: usize) {
        if depth > MAX_DEPTH || self.candidates.len() > MAX_CANDIDATES {
            self.incomplete = true;
            return;
        }
        let Scan { commands, nested } = scan(text);
        let reads_stdin = commands.iter().any(|command| is_shell_on_stdin(&command.words));
        for Simple { words, input } in commands {
            if reads_stdin {
                for text in input.iter().cloned().chain(printed(&words)) {
                    self.add_text(&text, origin, depth + 1);
                }
            }
            self.add(words, origin, depth);
        }
        for text in nested {
            self.add_text(&text, origin, depth + 1);
        }
    }

    /// Adds a command, the commands behind its wrappers, and those in texts among its words.
    fn add(&mut self, words: Vec<String>, origin: Option<usize>, depth: usize) {
        if words.is_empty() {
            return;
        }
        let all = Arc::new(words);
        let starts = if is_wrapper(&shown(&all[0])) { all.len() } else { 1 };
        let mut wrappers = 0;
        for from in 0..starts {
            let first = &all[from];
            if from > 0 && (first.starts_with('-') || assignment(first).is_some()) {
                continue;
            }
            wrappers += usize::from(is_wrapper(first));
            if self.candidates.len() > MAX_CANDIDATES || wrappers > MAX_DEPTH {
                self.incomplete = true;
            }
            if self.candidates.len() > MAX_CANDIDATES {
                return;
            }
            self.candidates.push(Candidate { all: all.clone(), from, origin });
            for text in texts(&all[from..]) {
                self.add_text(&text, origin, depth + 1);
            }
        }
    }
}

/// A shell without a script: it runs what it reads.
fn is_shell_on_stdin(words: &[String]) -> bool {
    let Some(at) = words.iter().position(|word| is_shell(word)) else { return false };
    let is_behind_wrapper = at == 0 || is_wrapper(&words[0]);
    is_behind_wrapper && words[at + 1..].iter().all(|word| word.starts_with(['-', '+']))
}

/// The text that `echo` or `printf` prints.
fn printed(words: &[String]) -> Option<String> {
    let (program, args) = words.split_first()?;
    matches!(base_name(program), "echo" | "printf").then(|| join(args))
}

fn join(words: &[String]) -> String {
    words.iter().map(|word| shown(word)).collect::<Vec<_>>().join(" ")
}

/// The texts among the arguments of a command that a shell will read.
fn texts(words: &[String]) -> Vec<String> {
    let Some((program, args)) = words.split_first() else { return Vec::new() };
    let each = |args: &[String]| args.iter().map(|arg| shown(arg)).collect::<Vec<_>>();
    match base_name(program) {
        name if is_shell(name) => {
            let is_command_flag =
                |arg: &String| arg.starts_with(['-', '+']) && !arg.starts_with("--") && arg.contains('c');
            let flag = args.iter().position(is_command_flag);
            let after = flag.map_or(&[][..], |at| &args[at + 1..]);
            each(after).into_iter().filter(|arg| !arg.starts_with('-')).collect()
        }
        "eval" => vec![join(args)],
        "watch" | "ssh" | "parallel" | "at" | "batch" => {
            each(args).into_iter().filter(|text| text.contains(char::is_whitespace)).chain([join(args)]).collect()
        }
        "trap" => args.first().map(|arg| shown(arg)).into_iter().collect(),
        "alias" => each(args).iter().filter_map(|arg| Some(arg.split_once('=')?.1.to_string())).collect(),
        // `git -c alias.x='!text' x` runs the text.
        "git" => each(args).iter().filter_map(|arg| Some(arg.split_once("=!")?.1.to_string())).collect(),
        "su" | "runuser" | "script" | "flock" | "env" | "sg" | "nix-shell" => after_flag(&each(args)),
        "tmux" | "screen" | "entr" | "hyperfine" | "watchexec" | "xvfb-run" | "compgen" | "mapfile" | "readarray" => {
            each(args).into_iter().filter(|text| text.contains(char::is_whitespace)).collect()
        }
        // Its arguments are data, or commands of their own.
        _ => Vec::new(),
    }
}

/// The texts that follow a flag, as its own argument or joined to it.
fn after_flag(args: &[String]) -> Vec<String> {
    const FLAGS: [&str; 6] = ["--split-string", "--command", "--session-command", "--run", "-S", "-c"];
    let mut found = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        let Some(flag) = FLAGS.iter().find(|flag| arg.starts_with(**flag)) else { continue };
        match arg[flag.len()..].trim_start_matches('=') {
            // `env -S` takes the rest of its arguments as well.
            "" => found.push(join(&args[at + 1..])),
            text => found.push(text.to_string()),
        }
    }
    found
}
