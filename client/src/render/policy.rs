//! A judgement as `policy check` prints it.

use super::text::{count, escape_control};
use toold_proto::policy::{PolicyCheckResult, PolicyReloadResult, PolicySuggestResult, Verdict};

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    }
}

/// Renders the verdict with its reasons first, then the commands, the rules and the sandbox, one per line.
pub fn judgement(result: &PolicyCheckResult) -> String {
    let reasons: Vec<String> = result.reasons.iter().map(|reason| escape_control(&reason.text)).collect();
    let mut text = verdict(result.verdict).to_string();
    if !reasons.is_empty() {
        text += &format!(": {}", reasons.join("; "));
    }
    text.push('\n');
    for command in &result.commands {
        text += &format!("command  {}\n", escape_control(&quoted(command)));
    }
    if !result.plain {
        text += "command  not every command is known, so no rule can allow it\n";
    }
    for rule in &result.matches {
        text += &format!("rule     {}, rule {}: {}\n", escape_control(&rule.file), rule.index, verdict(rule.verdict));
    }
    text += &format!("sandbox  {}\n", escape_control(&result.sandbox.profile));
    for gap in &result.not_enforced {
        text += &format!("gap      {}: {}\n", gap.what.name(), escape_control(&gap.why));
    }
    let missing = result.not_enforced.iter().map(|gap| gap.what).filter(|what| result.sandbox.require.contains(what));
    let missing: Vec<&str> = missing.map(|what| what.name()).collect();
    if !missing.is_empty() {
        text += &format!("gap      the profile requires {}: it would not start\n", missing.join(", "));
    }
    text
}

pub fn loaded(result: &PolicyReloadResult) -> String {
    format!("{} from {}\n", count(result.rules, "rule"), count(result.files, "file"))
}

/// Renders the text to paste, or that there is none.
pub fn suggestion(result: &PolicySuggestResult) -> String {
    let Some(profile) = &result.profile else {
        return format!("{} was refused nothing that a profile could grant\n", result.id);
    };
    let rules = result.rules.as_ref().map(|rules| format!("\n# for a file in rules/:\n{rules}")).unwrap_or_default();
    format!("# for the config file:\n{profile}{rules}")
}

/// A command as a person would type it.
fn quoted(command: &[String]) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"%+,-./:=@_".contains(&b);
    let quote = |text: &String| match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.clone(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    };
    command.iter().map(quote).collect::<Vec<_>>().join(" ")
}
