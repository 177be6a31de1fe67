//! Compares the list of events in `docs/events.md` with the one list, and rewrites it with `UPDATE_GOLDEN=1`.

use super::EVENTS;
use super::schema::{COMMON_FIELDS, example, object};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

const START: &str = "<!-- event list: start; generated from proto/src/event/list.rs by `UPDATE_GOLDEN=1 cargo test -p toold-proto` -->\n";
const END: &str = "<!-- event list: end -->\n";

/// Returns the list as Markdown: a section for each type, with its fields in the order of the text, and an example.
fn markdown() -> String {
    let mut generator = SchemaSettings::draft07().into_generator();
    let mut out = String::new();
    for event in EVENTS {
        let schema = object(event, &mut generator);
        out += &format!("\n### `{}`\n\n{}", event.name, one_line(event.doc));
        out += if event.code.is_some() { "\n\n" } else { " The journal does not store it.\n\n" };
        out += "| field | type | |\n| --- | --- | --- |\n";
        let required: Vec<&Value> = schema["required"].as_array().into_iter().flatten().collect();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let common = if event.code.is_some() { COMMON_FIELDS.contains(&name.as_str()) } else { name == "type" };
            if !common {
                let optional = if required.iter().any(|r| *r == name) { "" } else { ", optional" };
                let kind = kind(field, &mut generator);
                let doc = one_line(field["description"].as_str().unwrap_or_default());
                out += &format!("| `{name}` | {kind}{optional} | {doc} |\n");
            }
        }
        out += &format!("\n```json\n{}\n```\n", example(event));
    }
    out
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Describes a field's type for a person: `string or null`, the values of an enum, the fields of an object.
fn kind(field: &Value, generator: &mut SchemaGenerator) -> String {
    if let Some(types) = field["type"].as_array() {
        return types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ");
    }
    // The description of a field with a type of its own stands beside `allOf`.
    if let Some([one]) = field["allOf"].as_array().map(Vec::as_slice) {
        return kind(one, generator);
    }
    if let Some(any) = field["anyOf"].as_array() {
        return any.iter().map(|one| kind(one, generator)).collect::<Vec<_>>().join(" or ");
    }
    if let Some(reference) = field["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        let definition = generator.definitions().get(name).cloned().unwrap_or_default();
        return kind(&definition, generator);
    }
    let one_of = field["oneOf"].as_array().into_iter().flatten();
    let consts = one_of.flat_map(|one| one["enum"].as_array().cloned().unwrap_or_else(|| vec![one["const"].clone()]));
    let values: Vec<Value> = field["enum"].as_array().cloned().unwrap_or_default().into_iter().chain(consts).collect();
    if !values.is_empty() {
        return values
            .iter()
            .filter_map(Value::as_str)
            .map(|value| format!("`{value}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    let none = Map::new();
    let fields = field["properties"].as_object().unwrap_or(&none);
    match field["type"].as_str() {
        Some("object") => format!("object: {}", fields.keys().map(|f| format!("`{f}`")).collect::<Vec<_>>().join(", ")),
        Some(name) => name.to_owned(),
        None => "any".to_owned(),
    }
}

#[test]
fn the_list_in_the_docs_is_the_one_in_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/events.md");
    let page = std::fs::read_to_string(path).expect("the page is in the repository");
    let codes = EVENTS.iter().filter_map(|event| Some(format!("{} {}", event.code?, event.name)));
    let codes = codes.collect::<Vec<_>>().join(", ");
    assert!(page.contains(&codes), "the layout of a record lists the numbers of the types: {codes}");
    let (before, rest) = page.split_once(START).expect("the page has the start mark");
    let (list, after) = rest.split_once(END).expect("the page has the end mark");
    let now = markdown() + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, format!("{before}{START}{now}{END}{after}")).expect("the repository is writable");
    } else {
        assert!(list == now, "docs/events.md is out of date: run with UPDATE_GOLDEN=1");
    }
}
