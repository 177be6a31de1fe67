//! Scope `always`: the rule that allows the commands of an approved action from now on.

use super::{Approvals, Entry};
use crate::disk;
use std::path::Path;
use toold_policy::{Part, Rule, plain_commands, proposed_rules};
use toold_proto::approval::{Action, Covers, Offer, Scope};

/// Returns the rules that allow an action. None: a rule for it would allow too much, or the shell text cannot be predicted.
fn rules(action: &Action) -> Option<Vec<Rule>> {
    let commands = match &action.argv[..] {
        [] => return None,
        [shell, option, text] if is_shell(shell) && matches!(option.as_str(), "-c" | "-lc") => plain_commands(text)?,
        argv => vec![argv.to_vec()],
    };
    proposed_rules(&commands, action.profile.as_ref().map(|profile| profile.to.as_str()))
}

fn is_shell(program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| matches!(name, "sh" | "bash" | "dash" | "zsh" | "ash" | "ksh"))
}

/// Returns the offer of a rule.
pub(super) fn offer(action: &Action) -> Option<Offer> {
    let rules = rules(action)?;
    let shown = |part: &Part| match part {
        Part::One(text) => text.clone(),
        Part::Any(texts) => texts.join("|"),
    };
    let prefix = rules.iter().flat_map(|rule| rule.prefix.iter().map(shown)).collect();
    Some(Offer { scope: Scope::Always, grant: Some(Covers { prefix, ..Covers::default() }) })
}

impl Approvals {
    /// Adds the rule that an approval decided on, unless it is there. A failure is noted in the approval.
    pub(super) async fn add_rule(&self, entry: &Entry) {
        let stored = entry.get();
        if stored.approval.scope != Some(Scope::Always) {
            return;
        }
        let Some(rules) = rules(&stored.approval.action) else { return };
        let judge = self.judge.clone();
        let id = stored.approval.id;
        let error = match disk::blocking(move || judge.append_approved(&rules)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        // The action is approved all the same, and the next one of its kind asks again: the person must know.
        tracing::error!(%id, error, "failed to add an approved rule");
        let mut failed = (*stored).clone();
        failed.approval.rule_error = Some(error);
        entry.set(failed);
    }
}
