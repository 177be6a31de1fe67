//! The keys that detach: how a person writes them, and how they are found among what is typed. Pure.

/// What Ctrl with a key is as modifiers of the newer keyboards, also with caps lock and num lock.
const CTRL: [u32; 4] = [5, 5 + 64, 5 + 128, 5 + 64 + 128];

/// One key or several after each other, each in all the ways in which terminals send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachKeys(Vec<Vec<Vec<u8>>>);

/// Reads `C-\`, `^\`, `C-p,C-q` or `none`.
pub fn parse(text: &str) -> Result<DetachKeys, String> {
    if text == "none" {
        return Ok(DetachKeys(Vec::new()));
    }
    let wrong = || format!("`{text}` is no key: write C-\\, several as C-p,C-q, or none");
    let keys = text.split(',').map(|key| {
        let name = key.strip_prefix("C-").or_else(|| key.strip_prefix('^')).ok_or_else(wrong)?;
        match name.to_ascii_lowercase().as_bytes() {
            // Ctrl-[ is the escape key, with which every arrow key begins.
            [key @ (b'a'..=b'z' | b'@' | b'\\' | b']' | b'^' | b'_')] => Ok(encodings(*key)),
            _ => Err(wrong()),
        }
    });
    keys.collect::<Result<_, _>>().map(DetachKeys)
}

/// As one byte; and as programs may ask for it (`CSI u`, modifyOtherKeys), where Ctrl-\ is no
/// control character any more.
fn encodings(key: u8) -> Vec<Vec<u8>> {
    let mut all = vec![vec![key & 0x1f]];
    for ctrl in CTRL {
        all.push(format!("\x1b[{key};{ctrl}u").into_bytes());
        all.push(format!("\x1b[{key};{ctrl}:1u").into_bytes());
        all.push(format!("\x1b[27;{ctrl};{key}~").into_bytes());
    }
    all
}

/// What a piece of typing means.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// For the process.
    Keys(Vec<u8>),
    /// So much for the process, and then the person wants to leave.
    Detach(Vec<u8>),
}

/// Looks for the keys in what is typed, piece by piece.
#[derive(Debug)]
pub struct DetachMatcher {
    keys: DetachKeys,
    /// So many of the keys were typed, and these bytes are held until it is known what they are.
    found: usize,
    held: Vec<u8>,
}

impl DetachMatcher {
    pub fn new(keys: DetachKeys) -> DetachMatcher {
        DetachMatcher { keys, found: 0, held: Vec::new() }
    }

    /// A key is looked for within one piece only: a terminal sends it in one, and to hold a lone
    /// escape until more comes would swallow the escape key.
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
                    // It was something else, and this may be the first key again.
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

    fn lookout(keys: &str) -> DetachMatcher {
        DetachMatcher::new(parse(keys).expect("keys"))
    }

    #[test]
    fn one_key_leaves_wherever_it_is_typed_and_however_the_terminal_sends_it() {
        for typed in [&b"ab\x1cxx"[..], b"ab\x1b[92;5uxx", b"ab\x1b[92;133:1u", b"ab\x1b[27;5;92~"] {
            assert_eq!(lookout("C-\\").typed(typed), Typed::Detach(b"ab".to_vec()), "{typed:?}");
        }
        for typed in [&b"a\x1b[92;2u"[..], b"\x1b", b"\x1b[A", b"\\", b"\x03"] {
            assert_eq!(lookout("^\\").typed(typed), Typed::Keys(typed.to_vec()));
        }
        assert_eq!(lookout("none").typed(b"\x1c"), Typed::Keys(b"\x1c".to_vec()));
    }

    #[test]
    fn of_several_keys_the_first_is_held_until_the_next_tells_what_it_was() {
        let mut keys = lookout("C-p,C-q");
        assert_eq!(keys.typed(b"a\x10"), Typed::Keys(b"a".to_vec()));
        assert_eq!(keys.typed(b"b"), Typed::Keys(b"\x10b".to_vec()));
        assert_eq!(keys.typed(b"\x10\x10"), Typed::Keys(b"\x10".to_vec()));
        assert_eq!(keys.typed(b"\x11rest"), Typed::Detach(Vec::new()));
    }

    #[test]
    fn what_is_no_key_is_refused_by_name() {
        for text in ["", "x", "C-", "C-[", "C-1", "C-ab", "C-p,", "ctrl-p"] {
            assert!(parse(text).is_err_and(|why| why.contains("C-p,C-q")), "{text}");
        }
        assert_eq!(parse("C-P"), parse("^p"));
    }
}
