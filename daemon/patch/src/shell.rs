//! Recognises the shell commands that apply a patch: `apply_patch <<'EOF' … EOF`, also after `cd DIR &&`, also `applypatch`,
//! with nothing before or after. The text between is the patch as it stands, as a quoted here-document gives it.

const PROGRAMS: [&str; 2] = ["apply_patch", "applypatch"];
const SHELLS: [&str; 5] = ["sh", "bash", "zsh", "dash", "ksh"];
const SHELL_FLAGS: [&str; 3] = ["-c", "-lc", "-cl"];
const BEGIN: &str = "*** Begin Patch";

/// A command that applies a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The directory of a `cd` before it.
    pub cd: Option<String>,
    pub patch: String,
}

/// The kind of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recognised {
    Apply(Invocation),
    /// A patch without a command that applies it.
    Bare,
    Other,
}

/// Judges the text of a shell command.
pub fn recognise(command: &str) -> Recognised {
    if command.trim_start().starts_with(BEGIN) {
        return Recognised::Bare;
    }
    match invocation(command) {
        Some(invocation) => Recognised::Apply(invocation),
        None => Recognised::Other,
    }
}

/// Judges a program and its arguments: `apply_patch PATCH`, or a shell with the text of a command.
pub fn recognise_argv(argv: &[String]) -> Recognised {
    match argv {
        [bare] if bare.trim_start().starts_with(BEGIN) => Recognised::Bare,
        [program, patch] if PROGRAMS.contains(&program.as_str()) => {
            Recognised::Apply(Invocation { cd: None, patch: patch.clone() })
        }
        [shell, flag, text] if is_shell(shell) && SHELL_FLAGS.contains(&flag.as_str()) => recognise(text),
        _ => Recognised::Other,
    }
}

fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program.rsplit('/').next().unwrap_or(program))
}

fn invocation(command: &str) -> Option<Invocation> {
    let command = command.trim();
    // Most commands are not this: they begin otherwise.
    let (cd, rest) = match command.strip_prefix("cd").filter(|rest| rest.starts_with(BLANKS)) {
        Some(rest) => {
            let (dir, rest) = plain_argument(rest.trim_start_matches(BLANKS))?;
            (Some(dir), rest.trim_start_matches(BLANKS).strip_prefix("&&")?.trim_start())
        }
        None => (None, command),
    };
    let rest = PROGRAMS.iter().find_map(|program| rest.strip_prefix(program))?;
    let rest = rest.trim_start_matches(BLANKS).strip_prefix("<<")?;
    let (end, rest) =
        plain_argument(rest.trim_start_matches(BLANKS)).filter(|(end, _)| !end.is_empty() && end != "-")?;
    let body = rest.trim_start_matches(BLANKS).trim_start_matches('\r').strip_prefix('\n')?;
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        if line.trim_end_matches(['\n', '\r']) == end {
            let after = &body[at + line.len()..];
            return after.trim().is_empty().then(|| Invocation { cd, patch: body[..at].to_owned() });
        }
        at += line.len();
    }
    None
}

const BLANKS: [char; 2] = [' ', '\t'];

/// Reads one argument that a shell takes as it stands, and returns the rest.
fn plain_argument(text: &str) -> Option<(String, &str)> {
    for quote in ['\'', '"'] {
        if let Some(rest) = text.strip_prefix(quote) {
            let end = rest.find(quote)?;
            let inner = &rest[..end];
            let is_plain = quote == '\'' || !inner.contains(['$', '`', '\\', '!']);
            return (is_plain && !inner.contains('\n')).then(|| (inner.to_owned(), &rest[end + 1..]));
        }
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c) || !c.is_ascii();
    let end = text.find(|c| !is_plain(c)).unwrap_or(text.len());
    let next = text[end..].chars().next();
    let ends = next.is_none_or(|c| c.is_ascii_whitespace() || c == '&');
    (end > 0 && ends).then(|| (text[..end].to_owned(), &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n";

    fn applies(command: &str) -> Option<(Option<String>, String)> {
        match recognise(command) {
            Recognised::Apply(Invocation { cd, patch }) => Some((cd, patch)),
            Recognised::Bare | Recognised::Other => None,
        }
    }

    #[test]
    fn the_forms_of_the_command_are_recognised() {
        for program in PROGRAMS {
            for (open, end) in [("<<'EOF'", "EOF"), ("<<\"PATCH\"", "PATCH"), ("<<EOF", "EOF"), (" << 'E'", "E")] {
                let command = format!("{program} {open}\n{PATCH}{end}\n");
                assert_eq!(applies(&command), Some((None, PATCH.into())), "{command}");
                let command = format!(" cd 'my dir' && {program} {open}\n{PATCH}{end}");
                assert_eq!(applies(&command), Some((Some("my dir".into()), PATCH.into())), "{command}");
            }
        }
        let in_shell = ["/bin/bash".to_owned(), "-lc".into(), format!("cd sub && apply_patch <<'EOF'\n{PATCH}EOF")];
        let expected = Invocation { cd: Some("sub".into()), patch: PATCH.into() };
        assert_eq!(recognise_argv(&in_shell), Recognised::Apply(expected));
        let direct = ["apply_patch".to_owned(), PATCH.into()];
        assert_eq!(recognise_argv(&direct), Recognised::Apply(Invocation { cd: None, patch: PATCH.into() }));
    }

    #[test]
    fn nothing_may_stand_before_or_after_the_command() {
        for command in [
            format!("echo x && apply_patch <<'EOF'\n{PATCH}EOF"),
            format!("apply_patch <<'EOF'\n{PATCH}EOF\necho x"),
            format!("apply_patch <<'EOF' && echo x\n{PATCH}EOF"),
            format!("apply_patch <<'EOF' > out\n{PATCH}EOF"),
            format!("cd $HOME && apply_patch <<'EOF'\n{PATCH}EOF"),
            format!("cd a; apply_patch <<'EOF'\n{PATCH}EOF"),
            format!("cd a || apply_patch <<'EOF'\n{PATCH}EOF"),
            format!("cd a b && apply_patch <<'EOF'\n{PATCH}EOF"),
            format!("apply_patch <<'EOF'\n{PATCH}"),
            format!("apply_patch <<-EOF\n{PATCH}EOF"),
            format!("apply_patches <<'EOF'\n{PATCH}EOF"),
            "apply_patch".into(),
            "cargo test".into(),
            "cd a && make".into(),
        ] {
            assert_eq!(recognise(&command), Recognised::Other, "{command}");
        }
        assert_eq!(recognise(PATCH), Recognised::Bare);
        assert_eq!(recognise_argv(&[PATCH.to_owned()]), Recognised::Bare);
    }
}
