//! Checks the nesting depth of JSON text, without recursion and before any parser reads it.

/// Returns true if arrays and objects nest deeper than `max`. For text that is not JSON either result is harmless.
pub fn deeper_than(text: &[u8], max: usize) -> bool {
    // Every level takes a byte.
    if text.len() <= max {
        return false;
    }
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => at = end_of_string(text, at + 1),
            b'[' | b'{' => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            // Nothing else opens or closes a level.
            _ => {}
        }
        at += 1;
    }
    false
}

/// Returns the position of the quote that ends the string whose first character is at `at`.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert!(!deeper_than(br#"{"a":"[[[[\"[[[\\","b":[1]}"#, 2));
        assert!(deeper_than(br#"{"a":"\\","b":[1]}"#, 1));
        assert!(!deeper_than(br#""unfinished \"#, 0));
        assert!(deeper_than("[".repeat(100_000).as_bytes(), 128));
        assert!(!deeper_than("[]".repeat(100_000).as_bytes(), 1));
    }

    fn depth(value: &serde_json::Value) -> usize {
        match value {
            serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
            serde_json::Value::Object(items) => 1 + items.values().map(depth).max().unwrap_or(0),
            // Scalars are flat.
            _ => 0,
        }
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf =
            prop_oneof!["[\\[\\]{}\"\\\\a]{0,8}".prop_map(serde_json::Value::from), Just(serde_json::Value::Null)];
        leaf.prop_recursive(6, 40, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                proptest::collection::btree_map("[\\[\\]{}\"\\\\a]{0,4}", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_scan_agrees_with_the_parser(value in json(), max in 0usize..8) {
            prop_assert_eq!(deeper_than(value.to_string().as_bytes(), max), depth(&value) > max);
        }
    }
}
