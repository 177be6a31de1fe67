//! The judgement of a call: strictest wins, over all rules that match and all commands of a text.

use crate::danger::{Danger, may_remove};
use crate::lexer::{is_harmless_builtin, plain_commands};
use crate::names::runs_code;
use crate::programs::is_wrapper;
use crate::rule::{Part, Rule, Verdict};
use crate::rule_file::{APPROVED_FILE, Rules};
use crate::search::{Candidate, Search};
use crate::shells::{ShellCall, is_predicted, is_shell};
use crate::{ApprovalMode, DangerAction, SessionPolicy, Unmatched};
use std::path::{Path, PathBuf};

/// The deepest `sh -c` that is looked into.
const MAX_SHELL_DEPTH: usize = 8;

/// The command of a call.
#[derive(Debug, Clone, Copy)]
pub enum What<'a> {
    Argv(&'a [String]),
    Shell { text: &'a str, shell: &'a str, login: bool },
}

/// A program that a word resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// As it was found.
    pub found: PathBuf,
    /// Without links.
    pub real: PathBuf,
    /// A job could put another program before it: an earlier directory of PATH is relative or writable.
    pub replaceable: bool,
}

/// A call to judge.
pub struct Call<'a> {
    pub what: What<'a>,
    /// Names of variables that the call sets to another value than it would have.
    pub set_names: &'a [String],
    /// Finds a program in the PATH of the job.
    pub resolve: &'a dyn Fn(&str) -> Option<Program>,
    /// Directories that the job can write to, without links.
    pub writable: &'a [PathBuf],
    /// The home directory of the job is inside one of them.
    pub home_is_writable: bool,
}

/// A rule that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    pub file: String,
    /// The rule, counted from 0.
    pub index: usize,
    pub prefix: Vec<Part>,
    pub verdict: Verdict,
    pub reason: String,
}

/// The kind of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonKind {
    /// The reason of a rule.
    Rule,
    Danger,
    /// No rule allows the command.
    Unmatched,
    /// An allow rule matched and does not hold.
    Void,
    /// Nested too deeply to be searched.
    Nested,
    /// A rule file could not be loaded.
    BadFile,
    /// The session's policy made a refusal of a question.
    Never,
}

/// A reason for a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub kind: ReasonKind,
    pub verdict: Verdict,
    pub text: String,
}

/// A verdict with all that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// Every command was predicted.
    pub plain: bool,
    /// The predicted commands; empty if the text is opaque.
    pub commands: Vec<Vec<String>>,
    pub matches: Vec<Match>,
    pub danger: Option<Danger>,
    /// Profiles that allow rules grant without a question, for each command. Empty: not every command is allowed by a rule.
    pub granted: Vec<Vec<String>>,
    /// The strictest first.
    pub reasons: Vec<Reason>,
}

impl Judgement {
    /// The first reason, for a message.
    pub fn reason(&self) -> &str {
        self.reasons.first().map_or("", |reason| &reason.text)
    }

    fn add(&mut self, kind: ReasonKind, verdict: Verdict, text: String) {
        self.verdict = self.verdict.max(verdict);
        let reason = Reason { kind, verdict, text };
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

/// Returns true if a call needs no search: without rules, only forced removal and deep nesting could make a difference, and
/// a look at its letters rules both out. Allocates nothing.
pub fn needs_no_search(what: What<'_>) -> bool {
    let texts = match &what {
        What::Argv(argv) => *argv,
        What::Shell { text, .. } => return is_harmless(std::iter::once(*text)),
    };
    is_harmless(texts.iter().map(String::as_str))
}

fn is_harmless<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    const MAX_NESTING_WORDS: usize = 8;
    let is_separator = |c: char| !(c.is_ascii_alphanumeric() || "_-./+".contains(c));
    let mut nesting = 0;
    for text in texts {
        if may_remove(text) {
            return false;
        }
        nesting += text.bytes().filter(|b| matches!(b, b'(' | b'`' | b'<' | b'{')).count();
        nesting += text.split(is_separator).filter(|word| is_wrapper(word) || is_shell(word)).count();
        if nesting > MAX_NESTING_WORDS {
            return false;
        }
    }
    true
}

/// Judges a call. The result depends on nothing but its arguments.
pub fn judge(call: &Call<'_>, session: &SessionPolicy, rules: &Rules) -> Judgement {
    let predicted = Predicted::of(call.what);
    let search = match (&predicted, call.what) {
        (Some(predicted), _) => {
            let mut search = Search::in_commands(&predicted.commands);
            // The shells around them are commands too.
            predicted.outer.iter().for_each(|argv| search.add_shell(argv));
            search
        }
        (None, What::Argv(argv)) => Search::in_argv(argv),
        (None, What::Shell { text, .. }) => Search::in_text(text),
    };
    let commands = predicted.as_ref().map(|predicted| predicted.commands.clone()).unwrap_or_default();
    let mut judgement = Judgement {
        verdict: Verdict::Allow,
        plain: predicted.is_some(),
        commands,
        matches: Vec::new(),
        danger: None,
        granted: Vec::new(),
        reasons: Vec::new(),
    };
    let allowed = match &predicted {
        Some(predicted) => Allowed::new(call, predicted, rules, &mut judgement),
        None => Allowed::default(),
    };
    apply_strict_rules(&search, rules, &allowed, &mut judgement);
    apply_danger(&search, session.danger, &allowed, &mut judgement);
    apply_bad_files(&search, rules, &mut judgement);
    if search.incomplete {
        judgement.add(ReasonKind::Nested, Verdict::Ask, "commands are nested more than 8 deep".into());
    }
    apply_unmatched(session, &allowed, &mut judgement);
    if judgement.verdict == Verdict::Ask && session.approval == ApprovalMode::Never {
        let text = format!("{}; approval is never, so a question is a refusal", judgement.reason());
        judgement.add(ReasonKind::Never, Verdict::Deny, text);
    }
    judgement.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.verdict));
    judgement
}

/// The commands of a plain call, and the shells that run them.
struct Predicted<'a> {
    commands: Vec<Vec<String>>,
    /// Calls of shells that were looked into.
    outer: Vec<Vec<String>>,
    /// One of the shells reads files of the home directory first.
    reads_profile: bool,
    /// The shell of the call itself.
    shell: Option<&'a str>,
}

impl<'a> Predicted<'a> {
    fn of(what: What<'a>) -> Option<Predicted<'a>> {
        let mut predicted = Predicted { commands: Vec::new(), outer: Vec::new(), reads_profile: false, shell: None };
        match what {
            What::Argv(argv) => predicted.add(argv.to_vec(), 0)?,
            What::Shell { text, shell, login } => {
                if !is_predicted(shell) {
                    return None;
                }
                predicted.shell = Some(shell);
                predicted.reads_profile = ShellCall { shell, login, text }.reads_profile();
                for words in plain_commands(text)? {
                    predicted.add(words, 0)?;
                }
            }
        }
        Some(predicted)
    }

    /// Adds a command, or the commands of the shell that it calls.
    fn add(&mut self, words: Vec<String>, depth: usize) -> Option<()> {
        let Some(call) = ShellCall::of(&words) else {
            self.commands.push(words);
            return Some(());
        };
        if depth == MAX_SHELL_DEPTH {
            return None;
        }
        self.reads_profile |= call.reads_profile();
        for inner in plain_commands(call.text)? {
            self.add(inner, depth + 1)?;
        }
        self.outer.push(words);
        Some(())
    }
}

/// The allow rules that hold for each predicted command.
#[derive(Default)]
struct Allowed {
    /// A rule allows it.
    by_rule: Vec<bool>,
    /// A rule of `approved.toml` allows it.
    approved: Vec<bool>,
    /// A rule of `approved.toml` has every word of it.
    approved_whole: Vec<bool>,
}

impl Allowed {
    fn new(call: &Call<'_>, predicted: &Predicted<'_>, rules: &Rules, judgement: &mut Judgement) -> Allowed {
        let mut allowed = Allowed::default();
        let void = void_reason(call, predicted);
        let mut granted = Vec::new();
        let mut void_reasons = Vec::new();
        for words in &predicted.commands {
            let (mut by_rule, mut approved, mut approved_whole) = (false, false, false);
            let mut profiles = Vec::new();
            for (file, index, rule) in each_rule(rules) {
                if rule.verdict != Verdict::Allow || !rule.matches(words) {
                    continue;
                }
                let is_shell_text = predicted.shell.is_some() || !predicted.outer.is_empty();
                let why = void.clone().or_else(|| program_void(call, rule, &words[0], is_shell_text));
                if let Some(why) = why {
                    void_reasons.push(format!("{file} rule {index} does not hold: {why}"));
                    continue;
                }
                add_match(judgement, file, index, rule);
                by_rule = true;
                approved |= file == APPROVED_FILE;
                approved_whole |= file == APPROVED_FILE && rule.prefix.len() == words.len();
                profiles.extend(rule.sandbox.clone());
            }
            allowed.by_rule.push(by_rule);
            allowed.approved.push(approved);
            allowed.approved_whole.push(approved_whole);
            granted.push(profiles);
        }
        if allowed.all() {
            judgement.granted = granted;
        }
        for text in void_reasons {
            judgement.add(ReasonKind::Void, Verdict::Allow, text);
        }
        allowed
    }

    fn all(&self) -> bool {
        !self.by_rule.is_empty() && self.by_rule.iter().all(|by_rule| *by_rule)
    }
}

/// The reason why no allow holds for this call, if there is one.
fn void_reason(call: &Call<'_>, predicted: &Predicted<'_>) -> Option<String> {
    if let Some(name) = call.set_names.iter().find(|name| runs_code(name)) {
        return Some(format!("the call sets {name}, which can run code"));
    }
    if predicted.reads_profile && call.home_is_writable {
        return Some("the shell reads files of a home directory that the job can write to".into());
    }
    let shells = predicted.outer.iter().map(|argv| argv[0].as_str()).chain(predicted.shell);
    shells.into_iter().find_map(|shell| untrusted_program(call, shell).map(|(_, why)| why))
}

/// The reason why a rule does not hold for this program, if there is one.
fn program_void(call: &Call<'_>, rule: &Rule, word: &str, is_shell_text: bool) -> Option<String> {
    if is_shell_text && is_harmless_builtin(word) {
        return (!rule.program.is_empty()).then(|| format!("{word} is a builtin of the shell"));
    }
    let program = match untrusted_program(call, word) {
        Some((_, why)) => return Some(why),
        None => (call.resolve)(word)?,
    };
    let is_listed = |listed: &String| {
        Path::new(listed) == program.found
            || Path::new(listed) == program.real
            || (call.resolve)(listed).is_some_and(|listed| listed.real == program.real)
    };
    let is_named = rule.program.is_empty() || rule.program.iter().any(is_listed);
    (!is_named).then(|| format!("{word} is {}, which the rule does not name", program.found.display()))
}

/// The reason why a program cannot be relied on, if there is one.
fn untrusted_program<'w>(call: &Call<'_>, word: &'w str) -> Option<(&'w str, String)> {
    let Some(program) = (call.resolve)(word) else { return Some((word, format!("{word} is not found in PATH"))) };
    let is_inside = |path: &Path| call.writable.iter().any(|root| path.starts_with(root));
    if is_inside(&program.found) || is_inside(&program.real) {
        return Some((word, format!("{} is inside a directory that the job can write to", program.found.display())));
    }
    program.replaceable.then(|| (word, format!("a job can put another {word} before {}", program.found.display())))
}

fn each_rule(rules: &Rules) -> impl Iterator<Item = (&str, usize, &Rule)> {
    let files = rules.files.iter();
    files.flat_map(|file| file.rules.iter().enumerate().map(|(index, rule)| (file.name.as_str(), index, rule)))
}

fn add_match(judgement: &mut Judgement, file: &str, index: usize, rule: &Rule) {
    if judgement.matches.iter().any(|found| found.file == file && found.index == index) {
        return;
    }
    judgement.matches.push(Match {
        file: file.into(),
        index,
        prefix: rule.prefix.clone(),
        verdict: rule.verdict,
        reason: rule.reason.clone(),
    });
}

/// Ask and deny rules, over all that may run.
fn apply_strict_rules(search: &Search, rules: &Rules, allowed: &Allowed, judgement: &mut Judgement) {
    for (file, index, rule) in each_rule(rules).filter(|(_, _, rule)| rule.verdict != Verdict::Allow) {
        let is_approved = |candidate: &Candidate| {
            rule.verdict == Verdict::Ask && candidate.origin.is_some_and(|at| allowed.approved[at])
        };
        let mut found = search.candidates.iter().filter(|candidate| rule.may_match(candidate.words()));
        if found.any(|candidate| !is_approved(candidate)) {
            add_match(judgement, file, index, rule);
            judgement.add(ReasonKind::Rule, rule.verdict, rule.reason.clone());
        }
    }
}

fn apply_danger(search: &Search, action: DangerAction, allowed: &Allowed, judgement: &mut Judgement) {
    let mut found = search.candidates.iter().filter_map(|candidate| Some((candidate, Danger::of(candidate.words())?)));
    // A person approved these very words, so another question would be the same one.
    let is_approved = |candidate: &Candidate| {
        action == DangerAction::Ask && candidate.origin.is_some_and(|at| allowed.approved_whole[at])
    };
    let Some((_, danger)) = found.find(|(candidate, _)| !is_approved(candidate)) else { return };
    match action {
        DangerAction::Allow => {}
        DangerAction::Ask => judgement.add(ReasonKind::Danger, Verdict::Ask, danger.text()),
        DangerAction::Deny => judgement.add(ReasonKind::Danger, Verdict::Deny, danger.text()),
    }
    judgement.danger = Some(danger);
}

fn apply_bad_files(search: &Search, rules: &Rules, judgement: &mut Judgement) {
    for bad in &rules.bad {
        let is_meant = match &bad.prefixes {
            None => true,
            Some(prefixes) => prefixes.iter().any(|prefix| {
                let rule = Rule::allow(prefix.clone(), None);
                search.candidates.iter().any(|candidate| rule.may_match(candidate.words()))
            }),
        };
        if is_meant {
            judgement.add(ReasonKind::BadFile, Verdict::Ask, format!("a rule file could not be loaded: {}", bad.error));
        }
    }
}

fn apply_unmatched(session: &SessionPolicy, allowed: &Allowed, judgement: &mut Judgement) {
    if allowed.all() {
        return;
    }
    let asks = session.approval == ApprovalMode::Untrusted || session.unmatched == Unmatched::Ask;
    if asks {
        let at = allowed.by_rule.iter().position(|by_rule| !by_rule);
        let text = match at.and_then(|at| judgement.commands.get(at)) {
            Some(words) => format!("no rule allows `{}`", words.join(" ")),
            None => "the text cannot be predicted, so no rule can allow it".into(),
        };
        judgement.add(ReasonKind::Unmatched, Verdict::Ask, text);
    }
}
