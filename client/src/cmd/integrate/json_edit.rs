//! Adds values to the text of a JSON file and leaves every other byte as it is: a user's order, blanks and lines stay. Pure.

use serde_json::Value;

/// Adds an entry to the object at `path`, which is made if it is missing. The key must not be there yet.
pub fn add_member(text: &str, path: &[&str], key: &str, value: &Value) -> Option<String> {
    add(text, start(text), path, &|_| Entry { key: Some(key.to_owned()), value: value.clone() })
}

/// Appends an element to the array at `path`, which is made if it is missing.
pub fn add_element(text: &str, path: &[&str], value: &Value) -> Option<String> {
    add(text, start(text), path, &|is_new| match is_new {
        true => Entry { key: None, value: Value::Array(vec![value.clone()]) },
        false => Entry { key: None, value: value.clone() },
    })
}

/// A new entry of an object or an array.
struct Entry {
    key: Option<String>,
    value: Value,
}

fn start(text: &str) -> usize {
    skip_blanks(text.as_bytes(), 0)
}

/// Adds an entry to the container at `path` below the value at `at`. `entry` gets true if that container is new.
fn add(text: &str, at: usize, path: &[&str], entry: &dyn Fn(bool) -> Entry) -> Option<String> {
    let Some((first, rest)) = path.split_first() else { return append(text, at, entry(false)) };
    let container = Container::read(text, at)?;
    if container.open != b'{' {
        return None;
    }
    match container.members.iter().find(|(key, _)| key.as_deref() == Some(*first)) {
        Some((_, value)) => add(text, *value, rest, entry),
        None => {
            let mut last = entry(true);
            if let Some(key) = last.key.take() {
                last.value = Value::Object([(key, last.value)].into_iter().collect());
            }
            let nest = |value, key: &&str| Value::Object([((*key).to_owned(), value)].into_iter().collect());
            let value = rest.iter().rev().fold(last.value, nest);
            append(text, at, Entry { key: Some((*first).to_owned()), value })
        }
    }
}

/// Appends an entry to the container at `at`.
fn append(text: &str, at: usize, entry: Entry) -> Option<String> {
    let container = Container::read(text, at)?;
    if entry.key.is_some() != (container.open == b'{') {
        return None;
    }
    let unit = indent_unit(text);
    let outer = depth(text, at);
    let inner = unit.repeat(outer + 1);
    let key = entry.key.map(|key| format!("{}: ", Value::String(key))).unwrap_or_default();
    let value = serde_json::to_string_pretty(&entry.value).ok()?.replace("  ", unit);
    let value = value.replace('\n', &format!("\n{inner}"));
    let (head, tail) = text.split_at(container.last_end);
    Some(match container.members.is_empty() {
        true => format!("{head}\n{inner}{key}{value}\n{}{}", unit.repeat(outer), tail.trim_start()),
        false => format!("{head},\n{inner}{key}{value}{tail}"),
    })
}

/// Returns the blanks of one level: those of the first indented line.
fn indent_unit(text: &str) -> &str {
    let indented = text.lines().find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
    indented.map_or("  ", |line| &line[..line.len() - line.trim_start().len()])
}

/// Returns the number of containers around a position.
fn depth(text: &str, at: usize) -> usize {
    let (bytes, mut depth, mut i) = (text.as_bytes(), 0_usize, 0);
    while i < at {
        match bytes[i] {
            b'"' => i = string_end(bytes, i) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            // Everything else is inside of the same container.
            _ => {}
        }
        i += 1;
    }
    depth
}

/// The entries of an object or an array.
struct Container {
    open: u8,
    /// The key, if it is an object, and the start of each value.
    members: Vec<(Option<String>, usize)>,
    /// The end of the last value; without one, the position after the bracket.
    last_end: usize,
}

impl Container {
    /// Reads a container of text that is known to be JSON.
    fn read(text: &str, at: usize) -> Option<Container> {
        let bytes = text.as_bytes();
        let open = *bytes.get(at).filter(|byte| matches!(byte, b'{' | b'['))?;
        let (mut members, mut last_end) = (Vec::new(), at + 1);
        let mut i = skip_blanks(bytes, at + 1);
        while !matches!(bytes.get(i)?, b'}' | b']') {
            let mut key = None;
            if open == b'{' {
                let end = string_end(bytes, i);
                key = Some(serde_json::from_str(text.get(i..end)?).ok()?);
                i = skip_blanks(bytes, skip_blanks(bytes, end) + 1);
            }
            members.push((key, i));
            last_end = value_end(bytes, i);
            i = skip_blanks(bytes, last_end);
            if bytes.get(i) == Some(&b',') {
                i = skip_blanks(bytes, i + 1);
            }
        }
        Some(Container { open, members, last_end })
    }
}

fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Returns the position after the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut i = at + 1;
    while i < bytes.len() && bytes[i] != b'"' {
        i += if bytes[i] == b'\\' { 2 } else { 1 };
    }
    (i + 1).min(bytes.len())
}

/// Returns the position after the value that begins at `at`.
fn value_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut i) = (0_usize, at);
    while i < bytes.len() {
        match bytes[i] {
            b'"' => i = string_end(bytes, i) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return i,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => return i,
            byte if depth == 0 && byte.is_ascii_whitespace() => return i,
            // The rest of a number, a literal or a container.
            _ => {}
        }
        i += 1;
        let is_complete = depth == 0 && matches!(bytes[i - 1], b'"' | b'}' | b']');
        if is_complete {
            return i;
        }
    }
    i
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_the_user_wrote_stays_as_it_is() {
        let text = "{\n    \"b\" :  [1,{\"x\":\"}\\\"\"}],\n    \"mcp\": {\"other\": {}},\n    \"a\": 1.50\n}\n";
        let new = add_member(text, &["mcp"], "toold", &json!({"command": ["toolctl"]})).expect("it fits");
        let added = "{\"other\": {},\n        \"toold\": {\n            \"command\": [\n                \"toolctl\"\n            ]\n        }}";
        assert_eq!(new, text.replace("{\"other\": {}}", added));
        assert_eq!(
            add_element("{\"hooks\": {\"Stop\": [1]}}", &["hooks", "Stop"], &json!(2)).expect("it fits"),
            "{\"hooks\": {\"Stop\": [1,\n      2]}}"
        );
    }

    #[test]
    fn what_is_missing_is_made_and_what_is_of_another_kind_is_refused() {
        assert_eq!(
            add_member("{}", &["a", "b"], "c", &json!(1)).expect("it fits").replace(['\n', ' '], ""),
            "{\"a\":{\"b\":{\"c\":1}}}"
        );
        assert_eq!(
            add_element("{ }\n", &["a", "b"], &json!(1)).expect("it fits").replace(['\n', ' '], ""),
            "{\"a\":{\"b\":[1]}}"
        );
        assert_eq!(add_member("{\"a\": 3}", &["a"], "c", &json!(1)), None);
        assert_eq!(add_member("{\"a\": [3]}", &["a"], "c", &json!(1)), None);
        assert_eq!(add_element("{\"a\": {}}", &["a"], &json!(1)), None);
        assert_eq!(add_member("[]", &[], "c", &json!(1)), None);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~é\\\\\"{}\\[\\],:\n]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c{\"]{1,2}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_new_text_has_the_old_values_and_the_new_one(old in prop::collection::btree_map("[a-c]", any_json(), 0..4), pretty: bool) {
            let mut wanted = json!(old);
            let text = if pretty { serde_json::to_string_pretty(&wanted) } else { serde_json::to_string(&wanted) }.expect("JSON");
            let new = add_member(&text, &[], "toold", &json!({"x": [1]})).expect("an object takes it");
            wanted["toold"] = json!({"x": [1]});
            prop_assert_eq!(serde_json::from_str::<Value>(&new).expect("it is JSON"), wanted.clone());
            if let Some(below) = add_member(&text, &["a"], "toold", &json!(7)) {
                let mut wanted = json!(old);
                wanted["a"]["toold"] = json!(7);
                prop_assert_eq!(serde_json::from_str::<Value>(&below).expect("it is JSON"), wanted);
            }
        }
    }
}
