//! `--fields` and `--short`: fewer fields of each process, as JSON.

use crate::blocking::CallError;
use crate::cmd::Context;
use crate::error::CliError;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toold_proto::fields::SHORT;
use toold_proto::params::View;

#[derive(Debug, Default, clap::Args)]
pub struct Fields {
    /// Only these fields, as JSON: id,status,exit_code
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', conflicts_with = "short")]
    fields: Option<Vec<String>>,
    /// Only id, name, status, exit_code, reason, cursor and output, as JSON
    #[arg(long)]
    short: bool,
}

/// The selection of fields that a call sends.
#[derive(Debug, Default)]
pub struct Selection {
    pub fields: Option<Vec<String>>,
    pub view: View,
    /// Fields that the command needs and its user did not select. They are not printed.
    unprinted: Vec<&'static str>,
}

impl Fields {
    /// Returns the selection, with the fields that the command needs itself. One that is given makes the output JSON.
    pub fn select(self, cx: &mut Context<'_>, needed: &[&'static str]) -> Selection {
        cx.json |= self.short || self.fields.is_some();
        let is_enough = needed.iter().all(|name| SHORT.contains(name));
        let view = if self.short && is_enough { View::Short } else { View::Full };
        let short = (self.short && !is_enough).then(|| SHORT.map(str::to_owned).to_vec());
        let Some(mut fields) = self.fields.or(short) else { return Selection { view, ..Selection::default() } };
        let is_missing = |name: &&'static str| !fields.iter().any(|field| field == name);
        let unprinted: Vec<&'static str> = needed.iter().copied().filter(is_missing).collect();
        fields.extend(unprinted.iter().map(ToString::to_string));
        Selection { fields: Some(fields), view, unprinted }
    }
}

impl Selection {
    /// Returns true if fields may be missing in the result.
    pub fn is_partial(&self) -> bool {
        self.fields.is_some() || self.view != View::Full
    }

    /// Prints a result without the fields that only the command needed.
    pub fn print(&self, raw: &RawValue, cx: &mut Context<'_>) -> Result<(), CliError> {
        if self.unprinted.is_empty() {
            return cx.document(raw);
        }
        let mut result: Map<String, Value> =
            serde_json::from_str(raw.get()).map_err(|e| CallError::Protocol(format!("cannot read the result: {e}")))?;
        // The processes of a `wait` are in a list beside the status of the whole; a process has no such field.
        match result.get_mut("processes").and_then(Value::as_array_mut) {
            Some(processes) => processes.iter_mut().filter_map(Value::as_object_mut).for_each(|one| self.strip(one)),
            None => self.strip(&mut result),
        }
        cx.print_json(&result)
    }

    fn strip(&self, process: &mut Map<String, Value>) {
        process.retain(|name, _| !self.unprinted.contains(&name.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply};
    use serde_json::{Value, json};

    /// Runs a command with one answer. Returns its exit code, its output as JSON, and the parameters that it sent.
    fn run(args: &[&str], answer: Value) -> (u8, Value, Value) {
        let fake = FakeDaemon::start(vec![vec![Reply::result(answer)]]);
        let (code, out, err) = test_run(&fake, args);
        assert_eq!(err, "", "{args:?}");
        (code, serde_json::from_str(&out).expect("one document"), fake.next_request().1)
    }

    #[test]
    fn a_selection_is_sent_and_its_result_printed_as_it_is() {
        let answer = json!({"status": "running", "id": "x"});
        for (args, params) in [
            (vec!["poll", "x", "--short"], json!({"id": "x", "view": "short"})),
            (vec!["poll", "x", "--fields", "id,status"], json!({"id": "x", "fields": ["id", "status"]})),
            (vec!["inspect", "x", "--fields", "id"], json!({"id": "x", "fields": ["id"]})),
            (vec!["list", "--short"], json!({"view": "short"})),
        ] {
            assert_eq!(run(&args, answer.clone()), (0, answer.clone(), params));
        }
    }

    #[test]
    fn a_wait_has_its_exit_code_also_if_that_was_not_selected() {
        let answer = |process: Value| json!({"status": "exited", "processes": [process], "timeout_ms": 1, "clamped": false, "note": null});
        let full = answer(json!({"id": "x", "status": "exited", "exit_code": 7}));
        let args = ["wait", "x", "--fields", "id"];
        let (code, printed, params) = run(&args, full.clone());
        assert_eq!((code, printed), (7, answer(json!({"id": "x"}))));
        assert_eq!(params, json!({"id": "x", "mode": "all", "fields": ["id", "status", "exit_code"]}));
        assert_eq!(run(&["wait", "x", "--short"], full.clone()).0, 7);
        let all = ["wait", "x", "--fields", "id,exit_code,status"];
        assert_eq!(run(&all, full.clone()).1, full);
    }

    #[test]
    fn a_ready_exec_has_its_exit_code_too() {
        let answer = json!({"id": "x", "ready": "exited", "status": "exited", "exit_code": 3});
        let (code, printed, _) = run(&["exec", "--ready-match", "up", "--fields", "id", "--", "a"], answer);
        assert_eq!((code, printed), (3, json!({"id": "x"})));
        let answer = json!({"id": "x", "ready": "timeout", "status": "running", "exit_code": null});
        let (code, printed, _) = run(&["exec", "--ready-match", "up", "--short", "--", "a"], answer);
        assert_eq!((code, printed), (124, json!({"id": "x", "status": "running", "exit_code": null})));
    }

    #[test]
    fn fields_and_short_exclude_each_other() {
        let fake = FakeDaemon::start(vec![]);
        assert_eq!(test_run(&fake, &["poll", "x", "--short", "--fields", "id"]).0, 2);
    }
}
