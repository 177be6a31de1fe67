//! Values that stay although their name or place is that of a secret: references, placeholders, numbers, switches, paths.

/// Directories with which an absolute path begins. Base64 may begin with `/` too, but not with one of these.
const ROOTS: [&str; 19] = [
    "/home/",
    "/tmp/",
    "/run/",
    "/usr/",
    "/etc/",
    "/var/",
    "/opt/",
    "/root/",
    "/Users/",
    "/mnt/",
    "/nix/",
    "/proc/",
    "/dev/",
    "/srv/",
    "/private/",
    "/app/",
    "./",
    "../",
    "~/",
];
const SWITCHES: [&str; 13] =
    ["true", "false", "yes", "no", "on", "off", "none", "null", "nil", "undefined", "enabled", "disabled", "default"];
/// Values that documents and examples show where a secret belongs.
const PLACEHOLDERS: [&str; 14] = [
    "password",
    "passwd",
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "changeme",
    "change_me",
    "change-me",
    "placeholder",
    "example",
    "user",
    "dummy",
];
/// Calls and objects of programs that read a secret from elsewhere.
const LOOKUPS: [&str; 13] = [
    "os.getenv(",
    "os.environ",
    "os.Getenv(",
    "getenv(",
    "process.env",
    "import.meta.env",
    "env::var",
    "System.getenv",
    "ENV[",
    "Deno.env",
    "secrets.",
    "op://",
    "vault:",
];
/// The characters with which placeholders end: `ghp_xxxxxxxx`. Others, however few, may be a weak secret.
const FILLERS: &[u8] = b"xX*.-_0#?";
const PLACEHOLDER_TAIL_LEN: usize = 16;
const MAX_OTHER_CHARS: usize = 1;
const MIN_SAMPLE_LEN: usize = 12;
/// Text of this length beside references is a value of its own.
const MIN_OWN_LEN: usize = 8;
/// Longer values are searched for no reference: the search for the end of each would cost quadratic time.
const MAX_REFERENCE_LEN: usize = 1024;
/// A part of an address of this length with a digit may be a key.
const MIN_OPAQUE_SEGMENT_LEN: usize = 20;

/// Recognises a value that may be shown: a reference, a placeholder, a switch, a path, an address without a password.
pub(crate) fn is_harmless(value: &str) -> bool {
    let value = value.trim();
    is_placeholder(value) || is_reference(value) || is_path(value) || is_plain_address(value)
}

/// Numbers are harmless in a dump (`MAX_TOKENS=100`). A unit may follow.
pub(crate) fn is_number(value: &str) -> bool {
    let value = value.trim().trim_start_matches(['-', '+']);
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
    let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '_');
    digits.starts_with(|c: char| c.is_ascii_digit()) && digits.chars().all(is_digit) && value.len() - digits.len() <= 2
}

/// Recognises code: the call of a function.
pub(crate) fn is_call(value: &str) -> bool {
    let name = value.bytes().take_while(|b| b.is_ascii_alphabetic() || b"_.".contains(b)).count();
    name > 0 && value[name..].starts_with('(') && value.trim_end().ends_with([')', ';'])
}

/// Recognises the body of a token that stands for one: `xxxxxxxx`, `AKIAIOSFODNN7EXAMPLE`.
pub(crate) fn is_sample_token(token: &[u8]) -> bool {
    let tail = &token[token.len().saturating_sub(PLACEHOLDER_TAIL_LEN)..];
    let others = tail.iter().filter(|byte| !FILLERS.contains(byte)).count();
    others <= MAX_OTHER_CHARS || memchr::memmem::find(token, b"EXAMPLE").is_some()
}

fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_filler = |c: char| matches!(c, 'x' | '*' | '.' | '-' | '_' | '#' | '?' | '…');
    lower.chars().all(is_filler)
        || SWITCHES.contains(&lower.as_str())
        || PLACEHOLDERS.contains(&lower.as_str())
        || lower.starts_with("your")
        || (value.starts_with('<') && value.ends_with('>'))
        || (value.len() >= MIN_SAMPLE_LEN && is_sample_token(value.as_bytes()))
}

/// Recognises values that name a secret instead of holding it. `Bearer ${TOKEN}` is one, `${TOKEN:-hunter2-hunter2}` is not.
fn is_reference(value: &str) -> bool {
    if LOOKUPS.iter().any(|lookup| value.contains(lookup)) {
        return true;
    }
    // The hash of a password has its fields between dollars: `$2b$10$…`.
    if value.starts_with('$') && value.matches('$').count() >= 3 {
        return false;
    }
    if value.len() > MAX_REFERENCE_LEN {
        return false;
    }
    let Some(rest) = without_references(value) else { return false };
    rest.chars().filter(|c| c.is_alphanumeric()).count() < MIN_OWN_LEN
}

/// Removes `$NAME`, `${NAME}`, `${{ x }}`, `$(x)`, `{{ x }}`, `{x}`, `%NAME%`. None: there is none of them.
fn without_references(value: &str) -> Option<String> {
    let mut rest = String::new();
    let mut at = value;
    let mut removed = false;
    while let Some(c) = at.chars().next() {
        match reference_len(at) {
            Some(len) => {
                removed = true;
                at = &at[len..];
            }
            None => {
                rest.push(c);
                at = &at[c.len_utf8()..];
            }
        }
    }
    removed.then_some(rest)
}

/// The length of the reference with which a text begins.
fn reference_len(text: &str) -> Option<usize> {
    const PAIRS: [(&str, &str); 6] = [("${{", "}}"), ("{{", "}}"), ("${", "}"), ("$(", ")"), ("{", "}"), ("%(", ")")];
    let name_len = |text: &str| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        text.find(|c| !is_name(c)).unwrap_or(text.len())
    };
    for (open, close) in PAIRS {
        if let Some(inner) = text.strip_prefix(open) {
            let len = inner.find(close)?;
            // A default value may be the secret.
            let default = inner[..len].split_once(":-").map_or(0, |(_, default)| default.len());
            return (default < MIN_OWN_LEN).then_some(open.len() + len + close.len());
        }
    }
    if let Some(name) = text.strip_prefix('$') {
        let len = name_len(name);
        let is_position = len == 1 && name.starts_with(|c: char| c.is_ascii_digit());
        return (is_position || name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')).then_some(1 + len);
    }
    let name = text.strip_prefix('%')?;
    let len = name_len(name);
    (len > 2 && name[len..].starts_with('%')).then_some(len + 2)
}

fn is_path(value: &str) -> bool {
    ROOTS.iter().any(|root| value.starts_with(root))
}

/// Recognises an address without user, query and key: `https://auth.example.com/login`.
fn is_plain_address(value: &str) -> bool {
    let Some((scheme, rest)) = value.split_once("://") else { return false };
    let is_opaque = |part: &str| part.len() >= MIN_OPAQUE_SEGMENT_LEN && part.bytes().any(|b| b.is_ascii_digit());
    !scheme.is_empty()
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric())
        && !rest.contains(['@', '?', '#', '='])
        && !rest.split('/').skip(1).any(is_opaque)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_placeholders_switches_and_paths_are_harmless() {
        let values = "|$TOKEN|${TOKEN}|${TOKEN:-}|${{ secrets.X }}|Bearer ${TOKEN}|$(cat key)|os.getenv(\"X\")|process.env.X|\
            %TOKEN%|{{ vault_key }}|{password}|xxx|xxxx-xxxx|***|<token>|<your key>|your-api-key|changeme|true|Disabled|none|\
            /run/user/1000/ssh.sock|~/.ssh/id|./key.pem|https://auth.example.com/login|AKIAIOSFODNN7EXAMPLE";
        let wrong: Vec<&str> = values.split('|').filter(|value| !is_harmless(value)).collect();
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn values_of_their_own_are_not_harmless() {
        let values = "hunter2|$2b$10$abcdefghijklmnopqrstuv|${TOKEN:-hunter2-hunter2}|x8Kd92jQ|/abcDEF012+/x|correct horse|\
            https://u:p@host|https://host/hook/0123456789abcdefghij|prefix-${X}-0123456789";
        let wrong: Vec<&str> = values.split('|').filter(|value| is_harmless(value)).collect();
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn numbers_may_have_a_unit() {
        let is: Vec<bool> =
            ["100", "1.5", "-3", "10s", "50%", "1_000", "", "a1", "12ab34", "10secs"].map(is_number).to_vec();
        assert_eq!(is, [true, true, true, true, true, true, false, false, false, false]);
    }

    #[test]
    fn a_call_is_a_name_with_parentheses() {
        let is = ["load(\"x\")", "self.derive(a)", "pass(1)x", "(a)", "a8(b)"].map(is_call);
        assert_eq!(is, [true, true, false, false, false]);
    }

    #[test]
    fn a_token_of_filling_characters_is_a_sample() {
        assert!(is_sample_token(b"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
        // Every token of up to three characters was one, and stayed.
        assert!(!is_sample_token(b"ghp_aaaaaaaaaaaaaaaabbbbbbbbcccccccc"));
        assert!(!is_sample_token(b"ghp_x8Kd92jQx8Kd92jQ"));
    }
}
