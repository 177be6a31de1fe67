//! Keys by name, and the bytes that a terminal sends for them: the one table, for `write` and for `toolctl keys`.
//!
//! The bytes are those of xterm, which the terminal types of this decade share.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// One element of `keys`: a key or text. A string in JSON is a key if it is the name of one, and else text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Named(KeyName),
    Text(String),
}

/// The name of a key, with the modifiers that are held: `Up`, `C-c`, `M-x`, `S-F5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyName(String);

/// The receiver of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyTarget {
    /// `application_cursor`: the program turned on application cursor mode (DECCKM).
    Terminal {
        application_cursor: bool,
    },
    Pipe,
}

/// The bytes of a key without modifiers, and the way in which modifiers change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sends {
    Byte(u8),
    /// `ESC [` and the letter; `ESC O` in application cursor mode.
    Cursor(char),
    /// `ESC O` and the letter.
    Function(char),
    /// `ESC [`, the number and `~`.
    Number(u8),
}

/// The keys that are not characters. Further names of a key follow its first.
const KEYS: &[(&[&str], Sends)] = &[
    (&["Enter"], Sends::Byte(b'\r')),
    (&["Tab"], Sends::Byte(b'\t')),
    (&["Esc", "Escape"], Sends::Byte(0x1b)),
    (&["Space"], Sends::Byte(b' ')),
    (&["Backspace", "BSpace"], Sends::Byte(0x7f)),
    (&["Up"], Sends::Cursor('A')),
    (&["Down"], Sends::Cursor('B')),
    (&["Right"], Sends::Cursor('C')),
    (&["Left"], Sends::Cursor('D')),
    (&["Home"], Sends::Cursor('H')),
    (&["End"], Sends::Cursor('F')),
    (&["Insert", "Ins"], Sends::Number(2)),
    (&["Delete", "Del"], Sends::Number(3)),
    (&["PageUp", "PgUp"], Sends::Number(5)),
    (&["PageDown", "PgDn"], Sends::Number(6)),
    (&["F1"], Sends::Function('P')),
    (&["F2"], Sends::Function('Q')),
    (&["F3"], Sends::Function('R')),
    (&["F4"], Sends::Function('S')),
    (&["F5"], Sends::Number(15)),
    (&["F6"], Sends::Number(17)),
    (&["F7"], Sends::Number(18)),
    (&["F8"], Sends::Number(19)),
    (&["F9"], Sends::Number(20)),
    (&["F10"], Sends::Number(21)),
    (&["F11"], Sends::Number(23)),
    (&["F12"], Sends::Number(24)),
];

/// The modifiers: prefix, and number in an xterm sequence, to which 1 is added.
const MODIFIERS: [(&str, u8); 3] = [("S-", SHIFT), ("M-", META), ("C-", CONTROL)];
const SHIFT: u8 = 1;
const META: u8 = 2;
const CONTROL: u8 = 4;

/// Other notations of keys, which are not text by accident.
const FOREIGN_PREFIXES: [&str; 8] = ["ctrl-", "ctrl+", "alt-", "alt+", "shift-", "shift+", "meta-", "a-"];

impl KeyName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parse(name: &str) -> Option<KeyName> {
        key_bytes(name, false).map(|_| KeyName(name.to_owned()))
    }
}

impl Key {
    /// Reads a plain string: the name of a key, or text. A string that looks like a name and is none is an error, whose
    /// message has the alternative.
    pub fn parse(text: &str) -> Result<Key, String> {
        if let Some(name) = KeyName::parse(text) {
            return Ok(Key::Named(name));
        }
        if text.is_empty() {
            return Err("is empty: give the name of a key, or text".into());
        }
        if looks_like_name(text) {
            let near = all_names().find(|name| name.eq_ignore_ascii_case(text));
            let near = near.map(|name| format!(" (that one is {name:?})")).unwrap_or_default();
            let as_text = serde_json::json!({ "text": text });
            return Err(format!("{text:?} is not the name of a key{near}; {as_text} types it as text"));
        }
        Ok(Key::Text(text.to_owned()))
    }

    /// Returns true if the bytes depend on the application cursor mode of the terminal.
    pub fn depends_on_cursor_mode(&self) -> bool {
        match self {
            Key::Named(name) => key_bytes(&name.0, false) != key_bytes(&name.0, true),
            Key::Text(_) => false,
        }
    }

    /// Returns the bytes to write. None: a pipe has no such key. It has those that are one character: `Enter`, which is
    /// a newline there, and control keys.
    pub fn bytes(&self, target: KeyTarget) -> Option<Vec<u8>> {
        let name = match self {
            Key::Text(text) => return Some(text.clone().into_bytes()),
            Key::Named(name) => &name.0,
        };
        match target {
            KeyTarget::Terminal { application_cursor } => key_bytes(name, application_cursor),
            KeyTarget::Pipe if name == "Enter" => Some(b"\n".to_vec()),
            KeyTarget::Pipe => key_bytes(name, false).filter(|bytes| bytes.len() == 1),
        }
    }
}

/// Returns every name in the table.
fn all_names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().flat_map(|(names, _)| names.iter().copied())
}

/// Returns the bytes of a key. None: there is no such key.
fn key_bytes(name: &str, application_cursor: bool) -> Option<Vec<u8>> {
    let (mut held, mut base) = (0, name);
    while let Some((prefix, modifier)) = MODIFIERS.iter().find(|(prefix, _)| base.starts_with(prefix)) {
        if held & modifier != 0 {
            return None;
        }
        held |= modifier;
        base = &base[prefix.len()..];
    }
    let sends = KEYS.iter().find(|(names, _)| names.contains(&base)).map(|(_, sends)| *sends);
    let Some(sends) = sends else { return character_bytes(base, held) };
    let bytes = match (sends, held) {
        (Sends::Byte(b'\t'), SHIFT) => "\x1b[Z".into(),
        (Sends::Byte(b' '), CONTROL) => "\0".into(),
        (Sends::Byte(byte), 0) => char::from(byte).to_string(),
        (Sends::Byte(byte), META) => format!("\x1b{}", char::from(byte)),
        (Sends::Byte(_), _) => return None,
        (Sends::Cursor(letter), 0) if application_cursor => format!("\x1bO{letter}"),
        (Sends::Cursor(letter), 0) => format!("\x1b[{letter}"),
        (Sends::Function(letter), 0) => format!("\x1bO{letter}"),
        (Sends::Cursor(letter) | Sends::Function(letter), held) => format!("\x1b[1;{}{letter}", held + 1),
        (Sends::Number(number), 0) => format!("\x1b[{number}~"),
        (Sends::Number(number), held) => format!("\x1b[{number};{}~", held + 1),
    };
    Some(bytes.into_bytes())
}

/// Returns the bytes of a character with Control, Meta or both. Without them it is text, and no name.
fn character_bytes(base: &str, held: u8) -> Option<Vec<u8>> {
    let mut characters = base.chars();
    let character = characters.next().filter(|c| !c.is_control() && characters.as_str().is_empty())?;
    let character = match held {
        META => character,
        CONTROL | 6 => match character {
            'a'..='z' | 'A'..='Z' | '@' | '[' | '\\' | ']' | '^' | '_' => char::from(character as u8 & 0x1f),
            '/' => '\x1f',
            '?' => '\x7f',
            _ => return None,
        },
        // Shift is in the character itself.
        _ => return None,
    };
    let escape = if held & META != 0 { "\x1b" } else { "" };
    Some(format!("{escape}{character}").into_bytes())
}

/// Returns true for text that its writer may have meant as the name of a key: a modifier before it, the notation of
/// another program, a name in other capitals, a capitalised single term.
fn looks_like_name(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_modified = MODIFIERS.iter().any(|(prefix, _)| lower.starts_with(&prefix.to_ascii_lowercase()));
    let is_foreign = FOREIGN_PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
        || (text.starts_with('^') && text.chars().count() == 2)
        || (text.starts_with('<') && text.ends_with('>'));
    let is_function = lower.strip_prefix('f').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let is_capitalised = text.len() > 1
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|b| b.is_ascii_alphanumeric());
    is_modified
        || is_foreign
        || is_function
        || is_capitalised
        || all_names().any(|name| name.eq_ignore_ascii_case(text))
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Key::Named(name) => s.serialize_str(&name.0),
            Key::Text(text) => TypedText { text: text.clone() }.serialize(s),
        }
    }
}

/// Text in `keys` that is never the name of a key.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TypedText {
    text: String,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a key, text, or {text}")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Key, E> {
                Key::parse(text).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Key, A::Error> {
                TypedText::deserialize(de::value::MapAccessDeserializer::new(map)).map(|typed| Key::Text(typed.text))
            }
        }
        d.deserialize_any(V)
    }
}

impl JsonSchema for Key {
    fn schema_name() -> Cow<'static, str> {
        "Key".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = KEYS.iter().map(|(names, _)| names[0]).collect();
        let description = format!(
            "A key ({}; with C-, M- or S- before it, as in C-c), or text. {{text}} is always text.",
            names.join(", ")
        );
        json_schema!({
            "description": description,
            "oneOf": [{ "type": "string" }, g.subschema_for::<TypedText>()]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMINAL: KeyTarget = KeyTarget::Terminal { application_cursor: false };
    const APPLICATION: KeyTarget = KeyTarget::Terminal { application_cursor: true };

    fn sent(name: &str, target: KeyTarget) -> Option<String> {
        let Key::Named(_) = Key::parse(name).expect(name) else { panic!("{name} is text") };
        Key::parse(name).expect(name).bytes(target).map(|bytes| String::from_utf8(bytes).expect("it is text"))
    }

    #[test]
    fn keys_send_what_xterm_sends() {
        let cases = [
            ("Enter", "\r"),
            ("Tab", "\t"),
            ("S-Tab", "\x1b[Z"),
            ("Esc", "\x1b"),
            ("Escape", "\x1b"),
            ("Space", " "),
            ("C-Space", "\0"),
            ("Backspace", "\x7f"),
            ("M-Enter", "\x1b\r"),
            ("Up", "\x1b[A"),
            ("End", "\x1b[F"),
            ("C-Right", "\x1b[1;5C"),
            ("S-M-C-Left", "\x1b[1;8D"),
            ("Delete", "\x1b[3~"),
            ("PageUp", "\x1b[5~"),
            ("PgDn", "\x1b[6~"),
            ("S-PageUp", "\x1b[5;2~"),
            ("F1", "\x1bOP"),
            ("C-F1", "\x1b[1;5P"),
            ("F5", "\x1b[15~"),
            ("F12", "\x1b[24~"),
            ("C-c", "\x03"),
            ("C-C", "\x03"),
            ("C-[", "\x1b"),
            ("C-\\", "\x1c"),
            ("C-_", "\x1f"),
            ("C-?", "\x7f"),
            ("M-x", "\x1bx"),
            ("M-é", "\x1bé"),
            ("C-M-a", "\x1b\x01"),
            ("M--", "\x1b-"),
        ];
        for (name, bytes) in cases {
            assert_eq!(sent(name, TERMINAL).as_deref(), Some(bytes), "{name}");
        }
    }

    #[test]
    fn application_cursor_mode_changes_the_cursor_keys_alone() {
        let changed: Vec<&str> = all_names().filter(|name| sent(name, TERMINAL) != sent(name, APPLICATION)).collect();
        assert_eq!(changed, ["Up", "Down", "Right", "Left", "Home", "End"]);
        assert_eq!(
            (sent("Up", APPLICATION), sent("C-Up", APPLICATION)),
            (Some("\x1bOA".into()), Some("\x1b[1;5A".into()))
        );
        let depends = |name: &str| Key::parse(name).expect(name).depends_on_cursor_mode();
        assert_eq!([depends("Home"), depends("C-Up"), depends("F1"), depends("up, up")], [true, false, false, false]);
    }

    #[test]
    fn a_pipe_has_enter_and_control_keys() {
        let pipe = |name: &str| sent(name, KeyTarget::Pipe);
        assert_eq!(
            [pipe("Enter"), pipe("C-d"), pipe("Tab"), pipe("Esc")].map(|k| k.expect("a key")),
            ["\n", "\x04", "\t", "\x1b"]
        );
        assert_eq!(["Up", "F1", "PageUp", "M-x", "S-Tab"].map(pipe), [const { None }; 5]);
    }

    #[test]
    fn a_string_is_a_key_or_text_and_never_a_misspelt_key() {
        for text in ["hello", ":wq", "q", "Q", "/", "ls -la", "text…", "it's C-c", "Hello, you", "日本"] {
            assert_eq!(Key::parse(text), Ok(Key::Text(text.into())), "{text}");
        }
        for wrong in [
            "",
            "C-",
            "C-1",
            "C-C-a",
            "C-Enter",
            "C-é",
            "M-",
            "S-a",
            "c-c",
            "Ctrl-C",
            "ctrl+c",
            "^C",
            "<Esc>",
            "F0",
            "F13",
            "f1",
            "enter",
            "UP",
            "Entr",
            "NoSuchKey",
            "PageUpp",
        ] {
            let why = Key::parse(wrong).expect_err(wrong);
            assert!(wrong.is_empty() || why.contains(&serde_json::json!({ "text": wrong }).to_string()), "{why}");
        }
        assert!(Key::parse("enter").is_err_and(|why| why.contains("that one is \"Enter\"")));
    }

    #[test]
    fn keys_are_strings_or_text_in_json() {
        let read = |json: &str| serde_json::from_str::<Vec<Key>>(json);
        let keys = read(r#"["C-c", "Up", {"text": "Up"}, "text…"]"#).expect("keys");
        assert_eq!(keys[2..], [Key::Text("Up".into()), Key::Text("text…".into())]);
        let again = serde_json::to_string(&keys).expect("JSON");
        assert_eq!(again, r#"["C-c","Up",{"text":"Up"},{"text":"text…"}]"#);
        assert_eq!(read(&again).expect("keys"), keys);
        for wrong in [r#"[1]"#, r#"["Upp"]"#, r#"[{"text": 1}]"#, r#"[{"txt": "a"}]"#, r#"[{}]"#, r#"[null]"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_page_lists_every_key() {
        let page = include_str!("../../docs/screen.md");
        let missing: Vec<&str> = all_names().filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
