//! Secrets by the text beside them: a header, an address, a key of a vendor's file. The text around a secret stays.

use crate::harmless;

/// Decides by the value itself, because the text beside it occurs in code and documents too.
pub(crate) enum ValueCheck {
    /// A value that is neither a reference nor a placeholder.
    Any,
    /// A value that is not made of plain names either: `Bearer access_token` is code.
    Opaque,
}

/// A secret that its neighbours give away.
pub(crate) struct Context {
    pub(crate) id: &'static str,
    /// One of these is in every match. Case does not matter.
    pub(crate) keywords: &'static [&'static str],
    /// The first group is the secret.
    pub(crate) pattern: &'static str,
    pub(crate) value: ValueCheck,
}

#[rustfmt::skip]
pub(crate) const CONTEXTS: &[Context] = &[
    Context { id: "url-password", keywords: &["://"], value: ValueCheck::Any,
        pattern: r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>`]*:([^\s/@"'<>`]{3,})@[A-Za-z0-9\[$%{_]"# },
    Context { id: "url-token", keywords: &["://"], value: ValueCheck::Opaque,
        pattern: r"[A-Za-z][A-Za-z0-9+.-]*://([A-Za-z0-9_-]{32,})@[A-Za-z0-9]" },
    Context { id: "authorization", keywords: &["authorization"], value: ValueCheck::Opaque,
        pattern: r#"(?i)authorization\\?["']?\s*[:=]\s*\\?["']?(?:bearer|basic|token|digest|negotiate|apikey|bot|key|splunk)\s+([A-Za-z0-9._~+/=:-]{8,})"# },
    Context { id: "bearer-token", keywords: &["bearer"], value: ValueCheck::Opaque,
        pattern: r"(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{20,})" },
    Context { id: "key-header", keywords: &["-key", "-token"], value: ValueCheck::Opaque,
        pattern: r#"(?i)\b(?:x-(?:api|goog-api|functions|access|auth|vault|amz-security|csrf|gitlab|rapidapi)-(?:key|token)|api-key|private-token|job-token)\\?["']?\s*:\s*\\?["']?([A-Za-z0-9._~+/=-]{16,})"# },
    Context { id: "aws-secret-access-key", keywords: &["secret_access_key", "secretaccesskey", "secret-access-key"], value: ValueCheck::Any,
        pattern: r#"(?i)secret[_-]?access[_-]?key\\?["']?\s*(?:[:=]|=>)\s*\\?["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"# },
    Context { id: "aws-session-token", keywords: &["session_token", "sessiontoken", "security_token"], value: ValueCheck::Any,
        pattern: r#"(?i)(?:session|security)[_-]?token\\?["']?\s*(?:[:=]|=>)\s*\\?["']?([A-Za-z0-9/+=]{100,})"# },
    Context { id: "azure-shared-key", keywords: &["accountkey=", "sharedaccesskey=", "sharedaccesssignature"], value: ValueCheck::Any,
        pattern: r"(?i)(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})" },
    Context { id: "azure-sas", keywords: &["sig="], value: ValueCheck::Any,
        pattern: r"[?&]sig=([A-Za-z0-9%+/_-]{40,}={0,2})" },
    Context { id: "npmrc-auth", keywords: &[":_auth", ":_password"], value: ValueCheck::Any,
        pattern: r#":_(?:authToken|auth|password)\s*=\s*"?([^\s"]{8,})"# },
    Context { id: "docker-auth", keywords: &["\"auth\""], value: ValueCheck::Opaque,
        pattern: r#""auth"\s*:\s*"([A-Za-z0-9+/]{12,}={0,2})""# },
    Context { id: "netrc-password", keywords: &["machine "], value: ValueCheck::Any,
        pattern: r"(?m)\bmachine\s+\S+\s+login\s+\S+\s+password\s+(\S+)" },
];

impl ValueCheck {
    pub(crate) fn is_secret(&self, value: &[u8]) -> bool {
        let is_any = std::str::from_utf8(value).map_or(true, |text| !harmless::is_harmless(text));
        match self {
            ValueCheck::Any => is_any,
            ValueCheck::Opaque => is_any && !is_plain_name(value) && !harmless::is_sample_token(value),
        }
    }
}

/// Recognises identifiers: letters of one case, or `camelCase` and paths of fields without a digit.
fn is_plain_name(value: &[u8]) -> bool {
    let has_digit = value.iter().any(u8::is_ascii_digit);
    let has_lower = value.iter().any(u8::is_ascii_lowercase);
    let has_upper = value.iter().any(u8::is_ascii_uppercase);
    let is_name = value.iter().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(b));
    let is_field_path = is_name && value.contains(&b'.') && value.len() < 64;
    is_name && !has_digit && (!(has_lower && has_upper) || is_field_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_has_a_group() {
        for context in CONTEXTS {
            let regex = crate::shapes::compile(context.pattern).expect(context.id);
            assert_eq!(regex.captures_len(), 2, "{}", context.id);
        }
    }

    #[test]
    fn names_of_code_are_not_opaque() {
        for value in ["access_token", "YOUR_TOKEN_HERE", "request.headers.authorization", "xxxxxxxxxxxxxxxxxxxxxxx1"] {
            assert!(!ValueCheck::Opaque.is_secret(value.as_bytes()), "{value}");
        }
        for value in ["dXNlcjpwYXNz", "0a9b8c7d6e5f4a3b2c1d", "abc.def1.ghi"] {
            assert!(ValueCheck::Opaque.is_secret(value.as_bytes()), "{value}");
        }
    }
}
