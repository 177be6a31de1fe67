//! Judges commands: reads shell text, matches it with rules, and returns a verdict with every reason that it used. Pure: no
//! file is read and no program is started here. A yes needs a proof (`lexer`), a no needs a suspicion (`search`).

mod danger;
mod judge;
mod lexer;
mod names;
mod programs;
mod rule;
mod rule_file;
mod scan;
mod search;
mod shells;
#[cfg(test)]
mod tests;

pub use danger::Danger;
pub use judge::{Call, Judgement, Match, Program, Reason, ReasonKind, What, judge, needs_no_search};
pub use lexer::plain_commands;
pub use names::runs_code;
pub use programs::{is_too_wide, proposed_rules};
pub use rule::{Part, Rule, Verdict};
pub use rule_file::{APPROVED_FILE, BadFile, RuleError, RuleFile, Rules};
pub use shells::shell_text;

/// The answer to a question of the policy: asked, or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// A question becomes a refusal.
    Never,
    /// Run in the sandbox; a request for more is a question.
    #[default]
    OnRequest,
    /// Run in the sandbox; if that fails because of it, ask to run again without.
    OnFailure,
    /// Ask unless a rule allows.
    Untrusted,
}

/// The verdict on a command that no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unmatched {
    #[default]
    Allow,
    Ask,
}

/// The verdict on forced removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DangerAction {
    #[default]
    Ask,
    Deny,
    Allow,
}

/// The settings of a session by which its commands are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionPolicy {
    pub approval: ApprovalMode,
    pub unmatched: Unmatched,
    pub danger: DangerAction,
}
