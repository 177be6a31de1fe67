//! The detach keys: parsing of the option's value, and matching in typed input. Pure.

/// Modifier values of Ctrl in the newer keyboard protocols, also with caps lock and num lock.
const CTRL_MODIFIERS: [u32; 4] = [5, 5 + 64, 5 + 128, 5 + 64 + 128];

/// One key or a sequence of keys, each with all encodings in which terminals send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachKeys(Vec<Vec<Vec<u8>>>);

/// Reads `C-\`, `^\`, `C-p,C-q` or `none`.
pub fn parse(text: &str) -> Result<DetachKeys, String> {
    if text == "none" {
        return Ok(DetachKeys(Vec::new()));
    }
    let invalid = || format!("`{text}` is not a key: write C-\\, several as C-p,C-q, or none");
    let keys = text.split(',').map(|key| {
        let name = key.strip_prefix("C-").or_else(|| key.strip_prefix('^')).ok_or_else(invalid)?;
        match name.to_ascii_lowercase().as_bytes() {
            // Not Ctrl-[: that is the escape key, and every arrow key starts with it.
            [key @ (b'a'..=b'z' | b'@' | b'\\' | b']' | b'^' | b'_')] => Ok(encodings(*key)),
            _ => Err(invalid()),
        }
    });
    keys.collect::<Result<_, _>>().map(DetachKeys)
}

/// Returns the encodings of Ctrl with a key: one byte, and the sequences that programs may request (`CSI u`,
/// modifyOtherKeys), where Ctrl-\ is not a control character.
fn encodings(key: u8) -> Vec<Vec<u8>> {
    let mut all = vec![vec![key & 0x1f]];
    for ctrl in CTRL_MODIFIERS {
        all.push(format!("\x1b[{key};{ctrl}u").into_bytes());
        all.push(format!("\x1b[{key};{ctrl}:1u").into_bytes());
        all.push(format!("\x1b[27;{ctrl};{key}~").into_bytes());
    }
    all
}

/// Meaning of one piece of typed input.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// Bytes for the process.
    Keys(Vec<u8>),
    /// Bytes for the process, then the detach keys.
    Detach(Vec<u8>),
}

/// Finds the detach keys in typed input, which arrives in pieces.
#[derive(Debug)]
pub struct DetachMatcher {
    keys: DetachKeys,
    /// Number of detach keys typed so far.
    found: usize,
    /// Their bytes, held until the next key decides whether they were the detach keys.
    held: Vec<u8>,
}

impl DetachMatcher {
    pub fn new(keys: DetachKeys) -> DetachMatcher {
        DetachMatcher { keys, found: 0, held: Vec::new() }
    }

    /// Matches one piece of input. A key is matched within one piece only: a terminal sends it in one, and holding a lone
    /// escape until more arrives would swallow the escape key.
    pub fn typed(&mut self, piece: &[u8]) -> Typed {
        let mut keys = Vec::new();
        let mut rest = piece;
        while let Some((first, after)) = rest.split_first() {
            let wanted = self.keys.0.get(self.found).into_iter().flatten();
            let hit = wanted.into_iter().find(|encoding| rest.starts_with(encoding)).cloned();
            match hit {
                Some(encoding) => {
                    rest = &rest[encoding.len()..];
                    self.held.extend(encoding);
                    self.found += 1;
                    if self.found == self.keys.0.len() {
                        return Typed::Detach(keys);
                    }
                }
                None if self.found > 0 => {
                    // Those were not the detach keys, and this may be the first one again.
                    keys.append(&mut self.held);
                    self.found = 0;
                }
                None => {
                    keys.push(*first);
                    rest = after;
                }
            }
        }
        Typed::Keys(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(keys: &str) -> DetachMatcher {
        DetachMatcher::new(parse(keys).expect("keys"))
    }

    #[test]
    fn one_key_detaches_anywhere_in_a_piece_and_in_every_encoding() {
        for typed in [&b"ab\x1cxx"[..], b"ab\x1b[92;5uxx", b"ab\x1b[92;133:1u", b"ab\x1b[27;5;92~"] {
            assert_eq!(matcher("C-\\").typed(typed), Typed::Detach(b"ab".to_vec()), "{typed:?}");
        }
        for typed in [&b"a\x1b[92;2u"[..], b"\x1b", b"\x1b[A", b"\\", b"\x03"] {
            assert_eq!(matcher("^\\").typed(typed), Typed::Keys(typed.to_vec()));
        }
        assert_eq!(matcher("none").typed(b"\x1c"), Typed::Keys(b"\x1c".to_vec()));
    }

    #[test]
    fn the_first_of_several_keys_is_held_until_the_next_key_decides() {
        let mut keys = matcher("C-p,C-q");
        assert_eq!(keys.typed(b"a\x10"), Typed::Keys(b"a".to_vec()));
        assert_eq!(keys.typed(b"b"), Typed::Keys(b"\x10b".to_vec()));
        assert_eq!(keys.typed(b"\x10\x10"), Typed::Keys(b"\x10".to_vec()));
        assert_eq!(keys.typed(b"\x11rest"), Typed::Detach(Vec::new()));
    }

    #[test]
    fn an_invalid_key_is_rejected_with_an_example() {
        for text in ["", "x", "C-", "C-[", "C-1", "C-ab", "C-p,", "ctrl-p"] {
            assert!(parse(text).is_err_and(|why| why.contains("C-p,C-q")), "{text}");
        }
        assert_eq!(parse("C-P"), parse("^p"));
    }
}
