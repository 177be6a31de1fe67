//! The fields of a process that a call asks for: `fields` names them, `view` is a set with a name. Results write themselves
//! with only these.

use crate::error::RpcError;
use crate::params::View;
use crate::process::Process;
use serde::Serialize;

/// The fields of `view: "short"`.
pub const SHORT: [&str; 7] = ["id", "name", "status", "exit_code", "reason", "cursor", OUTPUT];
/// A field of every result with a process. `list` and `inspect`, which have no output of their own, write the preview if it
/// is selected.
pub const OUTPUT: &str = "output";

/// Parameters of a method whose result has processes.
pub trait ProcessParams {
    /// Returns `fields` and `view`.
    fn selection(&self) -> (Option<&[String]>, View);
}

/// A process in a result: its own fields and those that the method adds, in one object.
pub trait ProcessFields {
    /// The names of the fields that the method adds.
    const ADDED: &'static [&'static str];

    /// Appends `"name":value,` for every selected field to a JSON object that is already open.
    fn write_selected(&self, selected: &FieldSet, out: &mut Vec<u8>) -> serde_json::Result<()>;
}

/// A result with one process or several, which can be written with only the selected fields of each.
pub trait WriteSelected {
    fn write_with(&self, selected: &FieldSet, out: &mut Vec<u8>) -> serde_json::Result<()>;
}

/// The selected fields. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSet(Vec<&'static str>);

impl FieldSet {
    /// Returns the fields of `P` that a call selects. None: all of them. An unknown name is an error.
    pub fn of<P: ProcessFields>(call: &impl ProcessParams) -> Result<Option<FieldSet>, RpcError> {
        let known = || Process::FIELDS.iter().chain(P::ADDED).chain([&OUTPUT]).copied();
        match call.selection() {
            (None, View::Full) => Ok(None),
            (None, View::Short) => Ok(Some(FieldSet(SHORT.to_vec()))),
            (Some(_), View::Short) => Err(RpcError::param("view", "give either fields or view, not both")),
            (Some([]), View::Full) => Err(RpcError::param("fields", "must not be empty; leave it out for all fields")),
            (Some(names), View::Full) => {
                let find = |name: &String| {
                    known().find(|known| *known == name).ok_or_else(|| {
                        let mut all: Vec<&str> = known().collect();
                        all.sort_unstable();
                        all.dedup();
                        // The name may be as long as a message.
                        let name: String = name.chars().take(100).collect();
                        RpcError::param("fields", format!("unknown field {name:?}; the fields are {}", all.join(", ")))
                    })
                };
                names.iter().map(find).collect::<Result<Vec<_>, _>>().map(|names| Some(FieldSet(names)))
            }
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    /// Appends `"name":value,` if the field is selected.
    pub fn write(&self, name: &'static str, value: &impl Serialize, out: &mut Vec<u8>) -> serde_json::Result<()> {
        if self.contains(name) {
            out.push(b'"');
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            serde_json::to_writer(&mut *out, value)?;
            out.push(b',');
        }
        Ok(())
    }

    /// Appends an object with the selected fields of a process. `output` is written for a result that has none of its own.
    pub fn write_object(
        &self,
        process: &impl ProcessFields,
        output: Option<&str>,
        out: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        out.push(b'{');
        process.write_selected(self, out)?;
        if let Some(output) = output {
            self.write(OUTPUT, &output, out)?;
        }
        // Every field ends in a comma.
        match out.last_mut() {
            Some(last) if *last == b',' => *last = b'}',
            Some(_) | None => out.push(b'}'),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::METHODS;
    use crate::openrpc;
    use crate::params::{ListParams, PollParams};
    use crate::results::{Listed, PollResult};
    use serde_json::Value;

    fn poll_example() -> (Value, PollResult) {
        let method = METHODS.iter().find(|m| m.name == "poll").expect("listed");
        let value = method.example_result().expect("it has one");
        let result = serde_json::from_value(value.clone()).expect("a result");
        (value, result)
    }

    fn select(names: &[&str]) -> Result<Option<FieldSet>, RpcError> {
        let fields = Some(names.iter().map(ToString::to_string).collect());
        FieldSet::of::<PollResult>(&PollParams { fields, ..PollParams::default() })
    }

    fn written(selected: &FieldSet, result: &PollResult) -> Value {
        let mut out = Vec::new();
        selected.write_object(result, None, &mut out).expect("it prints");
        serde_json::from_slice(&out).expect("JSON")
    }

    #[test]
    fn exactly_the_selected_fields_are_written_with_the_values_of_the_whole_result() {
        let (whole, result) = poll_example();
        for (name, value) in whole.as_object().expect("an object") {
            let selected = select(&[name, name]).expect(name).expect("a selection");
            assert_eq!(written(&selected, &result), serde_json::json!({ name.as_str(): value }));
        }
        let short = PollParams { view: View::Short, ..PollParams::default() };
        let short = FieldSet::of::<PollResult>(&short).expect("valid").expect("a selection");
        let written = written(&short, &result);
        let mut names: Vec<&str> = written.as_object().expect("an object").keys().map(String::as_str).collect();
        names.sort_unstable();
        let mut expected = SHORT;
        expected.sort_unstable();
        assert_eq!(names, expected);
    }

    #[test]
    fn a_wrong_selection_names_its_parameter_and_the_fields_that_there_are() {
        assert_eq!(select(&[]).expect_err("empty").data["param"], "fields");
        let unknown = select(&["id", "exitcode"]).expect_err("unknown");
        assert_eq!(unknown.data["param"], "fields");
        assert!(unknown.message.contains("\"exitcode\"") && unknown.message.contains("exit_code"), "{unknown}");
        let both = PollParams { fields: Some(vec!["id".into()]), view: View::Short, ..PollParams::default() };
        assert_eq!(FieldSet::of::<PollResult>(&both).expect_err("both").data["param"], "view");
        assert_eq!(FieldSet::of::<PollResult>(&PollParams::default()), Ok(None));
        let only_of_poll = ListParams { fields: Some(vec!["next_cursor".into()]), ..ListParams::default() };
        assert!(FieldSet::of::<Listed>(&only_of_poll).is_err());
    }

    /// A method that returns a process and cannot select its fields would be the one that costs an agent a kilobyte.
    #[test]
    fn every_method_whose_result_has_a_process_takes_fields_and_view() {
        let document = openrpc::document();
        for method in document["methods"].as_array().expect("a list") {
            let params = method["params"].as_array().expect("a list");
            let selects = ["fields", "view"].map(|wanted| params.iter().any(|param| param["name"] == wanted));
            // It takes all that `exec` takes, so that one call can be checked as it is.
            let is_check = method["name"] == "policy.check";
            let has = is_check || refers_to_process(&document, &method["result"]["schema"]);
            assert_eq!(selects, [has; 2], "{}: declare its parameters with `params!(process …)`", method["name"]);
        }
    }

    fn refers_to_process(document: &Value, schema: &Value) -> bool {
        match schema {
            Value::Object(map) => match map.get("$ref").and_then(Value::as_str) {
                Some("#/components/schemas/Process") => true,
                Some(path) => refers_to_process(document, document.pointer(&path[1..]).expect("a component")),
                None => map.values().any(|part| refers_to_process(document, part)),
            },
            Value::Array(list) => list.iter().any(|part| refers_to_process(document, part)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
}
