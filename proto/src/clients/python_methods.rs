//! The methods of the Python client: their bodies, and their signatures for type checkers.

use super::HEADER;
use super::model::{ClientMethod, Field, Model, Type, is_nullable, one_line};
use super::python_types::{Direction, annotation, safe};
use crate::repeatable::Repeat;

/// The one parameter that may be given without its name: `t.exec("make")`.
const POSITIONAL: (&str, &str) = ("exec", "command");
/// Parameters that take a process in place of its id.
const IDS: [&str; 3] = ["id", "ids", "after"];
/// The longest line of a docstring.
const MAX_LINE_LEN: usize = 110;

/// The module `toold._methods`, as Python runs it.
pub fn runtime(model: &Model) -> String {
    let mut out = format!("\"\"\"One method for each method of the daemon.\n\n{HEADER}\n\"\"\"\n\n");
    let of = |repeat: fn(&Repeat) -> bool| model.methods.iter().filter(move |m| repeat(&m.repeat));
    let list = |methods: &mut dyn Iterator<Item = &ClientMethod>| -> String {
        methods.map(|m| format!("    {:?},\n", m.wire)).collect()
    };
    out += "# Methods that change nothing, or nothing more when they are called again.\n";
    out += &format!("REPEATABLE = frozenset([\n{}])\n\n", list(&mut of(|repeat| *repeat == Repeat::Always)));
    out += "# The parameter by which the daemon recognizes a repeated call.\nKEYS = {\n";
    for method in &model.methods {
        if let Repeat::With(key) = method.repeat {
            out += &format!("    {:?}: {key:?},\n", method.wire);
        }
    }
    let mut processes = model.methods.iter().filter(|m| model.is_process(&m.result));
    out += "}\n\n# Methods whose result has the fields of a process.\n";
    out += &format!("PROCESSES = frozenset([\n{}])\n", list(&mut processes));
    out += "\n\nclass Methods:\n    def _call(self, method, params):\n        raise NotImplementedError(method)\n";
    for method in &model.methods {
        out += &function(method);
    }
    out + "\n\nclass AsyncMethods(Methods):\n    \"\"\"The same: `_call` returns an awaitable there.\"\"\"\n"
}

fn function(method: &ClientMethod) -> String {
    let is_tools = method.wire == "tools.register";
    let extra = if is_tools { ", invoke" } else { "" };
    let mut out = format!("\n    def {}(self{}{extra}):\n", method.name(), signature(method, |_| String::new()));
    out += &format!("        \"\"\"{}\n        \"\"\"\n", docstring(method));
    let sent = |param: &Field| match default(param) {
        Some("None") | None => format!("{:?}: {}", param.name, safe(&param.name)),
        Some(_) => format!("{:?}: {} or None", param.name, safe(&param.name)),
    };
    let mut sent: Vec<String> = method.params.iter().map(sent).collect();
    sent.extend(is_tools.then(|| "\"invoke\": invoke".to_owned()));
    if sent.is_empty() {
        return out + &format!("        return self._call({:?}, {{}})\n", method.wire);
    }
    let all: String = sent.iter().map(|one| format!("            {one},\n")).collect();
    out + &format!("        return self._call({:?}, {{\n{all}        }})\n", method.wire)
}

/// Writes the parameters after `self`, each with what `kind` appends to its name.
fn signature(method: &ClientMethod, kind: impl Fn(&Field) -> String) -> String {
    let one = |param: &Field| {
        let sign = if kind(param).is_empty() { "=" } else { " = " };
        let default = default(param).map(|value| format!("{sign}{value}")).unwrap_or_default();
        format!(", {}{}{default}", safe(&param.name), kind(param))
    };
    let is_positional = |param: &&Field| (method.wire.as_str(), param.name.as_str()) == POSITIONAL;
    let positional: String = method.params.iter().filter(is_positional).map(one).collect();
    let named: String = method.params.iter().filter(|param| !is_positional(param)).map(one).collect();
    if named.is_empty() { positional } else { format!("{positional}, *{named}") }
}

/// Returns the default of a parameter: that of its type on the wire. None if it is required.
fn default(param: &Field) -> Option<&'static str> {
    match &param.kind {
        _ if param.required => None,
        Type::Bool => Some("False"),
        Type::Integer => Some("0"),
        Type::Any | Type::Null | Type::Number | Type::Text | Type::Literals(_) => Some("None"),
        Type::Named(_) | Type::List(_) | Type::Map(_) | Type::Union(_) => Some("None"),
    }
}

fn docstring(method: &ClientMethod) -> String {
    let mut out = wrap(&method.summary, 8);
    if !method.description.is_empty() {
        out += &format!("\n\n        {}", wrap(&one_line(&method.description), 8));
    }
    let documented: Vec<&Field> = method.params.iter().filter(|param| !param.doc.is_empty()).collect();
    if !documented.is_empty() {
        out += "\n";
    }
    for param in documented {
        out += &format!("\n        {}: {}", safe(&param.name), wrap(&one_line(&param.doc), 12));
    }
    out.replace('\\', "\\\\")
}

/// Breaks a text into lines, all but the first with an indent.
fn wrap(text: &str, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for part in text.split_whitespace() {
        let last = lines.last_mut().expect("never empty");
        if indent + last.len() + 1 + part.len() > MAX_LINE_LEN {
            lines.push(part.to_owned());
        } else {
            *last += if last.is_empty() { "" } else { " " };
            *last += part;
        }
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// The stub of `toold._methods`: the signatures, for both clients.
pub fn stub(model: &Model) -> String {
    let mut out = format!("\"\"\"One method for each method of the daemon.\n\n{HEADER}\n\"\"\"\n\n");
    out += "from typing import Any, Awaitable, Callable, Dict, FrozenSet, List, Literal, Mapping, Sequence, Union\n\n";
    out += "from . import _aio, _client\nfrom ._tools import ToolCall\nfrom .types import *\n\n";
    out += "REPEATABLE: FrozenSet[str]\nKEYS: Dict[str, str]\nPROCESSES: FrozenSet[str]\n";
    for (class, prefix, is_async) in [("Methods", "_client.", false), ("AsyncMethods", "_aio.Async", true)] {
        out += &format!("\nclass {class}:\n");
        for method in &model.methods {
            let kind = |param: &Field| format!(": {}", param_type(method, param, prefix));
            let result = result_type(model, method, prefix);
            let def = if is_async { "async def" } else { "def" };
            let extra = extra_params(method, is_async);
            let signature = signature(method, kind);
            out += &format!("    {def} {}(self{signature}{extra}) -> {result}:\n", method.name());
            out += &format!("        \"\"\"{}\n        \"\"\"\n        ...\n", docstring(method));
        }
    }
    out
}

fn param_type(method: &ClientMethod, param: &Field, prefix: &str) -> String {
    let process = format!("{prefix}Process");
    let own = annotation(&param.kind, Direction::Param);
    let kind = match (method.wire.as_str(), param.name.as_str()) {
        POSITIONAL => "Union[str, Sequence[str], None]".into(),
        ("events.unsubscribe", "subscription") => format!("Union[int, {prefix}Subscription]"),
        (_, name) if IDS.contains(&name) => own.replace("str", &format!("Union[str, {process}]")),
        _ => own,
    };
    let has_value = param.required || is_nullable(&param.kind) || default(param) != Some("None");
    if has_value { kind } else { format!("Union[{kind}, None]") }
}

fn result_type(model: &Model, method: &ClientMethod, prefix: &str) -> String {
    match method.wire.as_str() {
        "events.subscribe" => format!("{prefix}Subscription"),
        _ if model.is_process(&method.result) => format!("{prefix}Process"),
        _ => annotation(&method.result, Direction::Result),
    }
}

/// Returns the parameters that a client adds: the function that serves the calls of registered tools.
fn extra_params(method: &ClientMethod, is_async: bool) -> String {
    match (method.wire.as_str(), is_async) {
        ("tools.register", false) => ", invoke: Callable[[ToolCall], Any]".into(),
        ("tools.register", true) => ", invoke: Callable[[ToolCall], Union[Any, Awaitable[Any]]]".into(),
        // Any other method has the parameters of the wire.
        _ => String::new(),
    }
}
