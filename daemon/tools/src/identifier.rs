//! Identifiers of tools in the stubs of scripts.

/// Names that a language of the stubs reserves: Python, JavaScript.
const RESERVED: &str = "False None True and arguments as assert async await break case catch class const continue debugger def \
    default del delete do elif else enum eval except export extends false finally for from function global if implements import \
    in instanceof interface is lambda let new nonlocal not null or package pass private protected public raise return static \
    super switch this throw true try typeof var void while with yield";

/// Returns the identifier of a tool or a provider in Python and JavaScript: the name, with an underscore for each character
/// that an identifier cannot have, before a digit at the start, and after a reserved name.
pub fn identifier(name: &str) -> String {
    let mut identifier: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if identifier.is_empty() || identifier.starts_with(|c: char| c.is_ascii_digit()) {
        identifier.insert(0, '_');
    }
    if RESERVED.split_whitespace().any(|reserved| reserved == identifier) {
        identifier.push('_');
    }
    identifier
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_differs_from_the_name_only_if_it_must() {
        let cases = [
            ("create_issue", "create_issue"),
            ("createIssue", "createIssue"),
            ("create-issue", "create_issue"),
            ("a.b/c", "a_b_c"),
            ("3d_view", "_3d_view"),
            ("import", "import_"),
            ("größe", "gr__e"),
            ("", "_"),
        ];
        for (name, expected) in cases {
            assert_eq!(identifier(name), expected, "{name}");
        }
    }
}
