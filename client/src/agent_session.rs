//! The session that a command belongs to when it names none: that of the agent or of the shell that runs it.
//!
//! Starting verbs and `events` use it, so that what an agent starts in its shell and what it starts by MCP have one owner.

use std::ffi::OsString;

/// The variable that names a session in full.
pub const SESSION_VAR: &str = "TOOLD_SESSION";
/// The variables in which agents give their own sessions to what they run, with the prefix of the session key. The first one
/// that is set counts.
pub const AGENT_VARS: [(&str, &str); 2] = [("CLAUDE_CODE_SESSION_ID", "claude"), ("CODEX_THREAD_ID", "codex")];

/// Returns the session of this program's environment. None: it is not run by an agent that is known here.
pub fn current() -> Option<String> {
    from_env(|name| std::env::var_os(name))
}

/// Returns the session of an environment: `$TOOLD_SESSION`, else `claude:$CLAUDE_CODE_SESSION_ID`, else
/// `codex:$CODEX_THREAD_ID`. A variable that is empty or not UTF-8 counts as not set.
pub fn from_env(var: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    let text = |name: &str| var(name)?.into_string().ok().filter(|value| !value.is_empty());
    let of_agent = |(name, prefix): &(&str, &str)| text(name).map(|id| format!("{prefix}:{id}"));
    text(SESSION_VAR).or_else(|| AGENT_VARS.iter().find_map(of_agent))
}

/// Returns the session that an option names, else that of the environment. An empty option names none.
pub fn or_current(given: Option<String>, current: impl FnOnce() -> Option<String>) -> Option<String> {
    match given {
        None => current(),
        Some(key) => Some(key).filter(|key| !key.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn session(vars: &[(&str, &str)]) -> Option<String> {
        from_env(|name| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn the_session_is_the_named_one_else_that_of_the_agent() {
        let (named, claude, codex) =
            (("TOOLD_SESSION", "mine"), ("CLAUDE_CODE_SESSION_ID", "67466"), ("CODEX_THREAD_ID", "01a1"));
        assert_eq!(session(&[codex, claude, named]).as_deref(), Some("mine"));
        assert_eq!(session(&[codex, claude]).as_deref(), Some("claude:67466"));
        assert_eq!(session(&[codex]).as_deref(), Some("codex:01a1"));
        assert_eq!(session(&[("CODEX_SESSION", "x")]), None);
    }

    #[test]
    fn a_variable_without_a_usable_value_counts_as_not_set() {
        assert_eq!(session(&[("TOOLD_SESSION", ""), ("CODEX_THREAD_ID", "01a1")]).as_deref(), Some("codex:01a1"));
        assert_eq!(session(&[("CLAUDE_CODE_SESSION_ID", "")]), None);
        assert_eq!(from_env(|_| Some(OsString::from_vec(vec![0xff]))), None);
    }

    #[test]
    fn an_option_goes_before_the_environment_and_an_empty_one_names_no_session() {
        let current = || Some("claude:1".to_owned());
        assert_eq!(or_current(None, current).as_deref(), Some("claude:1"));
        assert_eq!(or_current(Some("chat".into()), current).as_deref(), Some("chat"));
        assert_eq!(or_current(Some(String::new()), current), None);
    }
}
