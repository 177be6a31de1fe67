//! The arguments of a tool, read by name. What is not listed is refused by name, so that a typo never passes.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Arguments that no tool has: that of a plugin with the session, and one that Gemini CLI adds to every tool.
const IGNORED: [&str; 2] = ["_session", "wait_for_previous"];

/// The arguments of one call.
pub struct Arguments<'a> {
    values: &'a Map<String, Value>,
    known: BTreeSet<&'static str>,
    /// The first wrong value.
    wrong: Option<String>,
}

impl<'a> Arguments<'a> {
    pub fn new(values: &'a Map<String, Value>) -> Arguments<'a> {
        Arguments { values, known: BTreeSet::new(), wrong: None }
    }

    /// Returns the value. Null counts as absent.
    fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.insert(name);
        self.values.get(name).filter(|value| !value.is_null())
    }

    fn refuse(&mut self, name: &str, expected: &str, value: &Value) {
        let shown: String = value.to_string().chars().take(60).collect();
        self.wrong.get_or_insert(format!("{name}: must be {expected}, not {shown}"));
    }

    pub fn text(&mut self, name: &'static str) -> Option<String> {
        let value = self.take(name)?;
        if value.as_str().is_none() {
            self.refuse(name, "text", value);
        }
        value.as_str().map(str::to_owned)
    }

    /// Returns text that the call needs.
    pub fn required_text(&mut self, name: &'static str) -> String {
        let text = self.text(name).filter(|text| !text.is_empty());
        if text.is_none() {
            self.wrong.get_or_insert(format!("{name}: is missing"));
        }
        text.unwrap_or_default()
    }

    /// Returns a regular expression. One that is wrong is refused before anything is done.
    pub fn pattern(&mut self, name: &'static str, is_pattern: impl Fn(&str) -> bool) -> Option<String> {
        let text = self.text(name)?;
        if is_pattern(&text)
            && let Err(error) = regex::bytes::Regex::new(&text)
        {
            self.wrong.get_or_insert(format!("{name}: {error}"));
        }
        Some(text)
    }

    pub fn flag(&mut self, name: &'static str) -> Option<bool> {
        let value = self.take(name)?;
        if value.as_bool().is_none() {
            self.refuse(name, "true or false", value);
        }
        value.as_bool()
    }

    pub fn whole(&mut self, name: &'static str) -> Option<u64> {
        let value = self.take(name)?;
        // Some clients send every number as a fraction.
        let whole =
            value.as_u64().or_else(|| value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64));
        if whole.is_none() {
            self.refuse(name, "a whole number from 0", value);
        }
        whole
    }

    /// Returns a time in seconds as milliseconds.
    pub fn seconds_ms(&mut self, name: &'static str) -> Option<u64> {
        /// A year: more is an error of unit.
        const MAX_SECONDS: f64 = 31_536_000.0;
        let value = self.take(name)?;
        let seconds = value.as_f64().filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds));
        if seconds.is_none() {
            self.refuse(name, "a number of seconds", value);
        }
        seconds.map(|seconds| (seconds * 1000.0).round() as u64)
    }

    /// Returns a list of texts. One text counts as a list of one.
    pub fn texts(&mut self, name: &'static str) -> Option<Vec<String>> {
        let value = self.take(name)?;
        let texts = match value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        if texts.is_none() {
            self.refuse(name, "a list of texts", value);
        }
        texts
    }

    /// Returns an object of texts. Numbers and truth values count as their text.
    pub fn text_map(&mut self, name: &'static str) -> Vec<(String, String)> {
        let Some(value) = self.take(name) else { return Vec::new() };
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        let pairs: Option<Vec<(String, String)>> = value
            .as_object()
            .and_then(|map| map.iter().map(|(key, value)| Some((key.clone(), text(value)?))).collect());
        if pairs.is_none() {
            self.refuse(name, "an object of texts", value);
        }
        pairs.unwrap_or_default()
    }

    /// Ends the reading: returns the first argument that the tool does not have, or the first wrong value.
    pub fn finish(self) -> Result<(), String> {
        let is_known = |name: &str| self.known.contains(name) || IGNORED.contains(&name);
        if let Some(name) = self.values.keys().find(|name| !is_known(name)) {
            let known: Vec<&str> = self.known.iter().copied().collect();
            return Err(format!("{name}: there is no such argument; there are {}", known.join(", ")));
        }
        self.wrong.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(values: Value) -> Result<(String, Option<u64>), String> {
        let values = values.as_object().cloned().unwrap_or_default();
        let mut args = Arguments::new(&values);
        let read = (args.required_text("command"), args.seconds_ms("wait_s"));
        args.finish().map(|()| read)
    }

    #[test]
    fn an_unknown_argument_is_refused_by_name_and_those_of_others_are_ignored() {
        let fine = json!({"command": "x", "wait_s": 0.5, "_session": "s", "wait_for_previous": true});
        assert_eq!(read(fine), Ok(("x".into(), Some(500))));
        let refused = read(json!({"command": "x", "timeout": 3})).expect_err("it has no such argument");
        assert_eq!(refused, "timeout: there is no such argument; there are command, wait_s");
        assert_eq!(read(json!({})).expect_err("it needs one"), "command: is missing");
        assert_eq!(read(json!({"command": 3})).expect_err("a number"), "command: must be text, not 3");
        assert_eq!(
            read(json!({"command": "x", "wait_s": -1})).expect_err("no time"),
            "wait_s: must be a number of seconds, not -1"
        );
    }
}
