//! Tests of the check: places, messages, bounds, and properties over generated schemas and values.

use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::time::{Duration, Instant};

fn fits(schema: Value, value: Value) {
    assert_eq!(check(&schema, &value), Ok(()), "{schema} {value}");
}

fn differs(schema: Value, value: Value, pointer: &str, problem: &str) {
    let expected = Mismatch { pointer: pointer.into(), problem: problem.into() };
    assert_eq!(check(&schema, &value), Err(expected), "{schema} {value}");
}

#[test]
fn a_mismatch_names_its_place() {
    let schema = json!({"type": "object", "required": ["files"], "properties": {
        "files": {"type": "array", "items": {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}}}
    }});
    fits(schema.clone(), json!({"files": [{"path": "a"}], "other": 1}));
    differs(
        schema.clone(),
        json!({"files": [{"path": "a"}, {"path": 1}]}),
        "/files/1/path",
        "expected a string, got an integer",
    );
    differs(schema.clone(), json!({"files": [{}]}), "/files/0/path", "is missing: expected a string");
    differs(schema.clone(), json!({}), "/files", "is missing: expected an array");
    differs(schema, json!([]), "", "expected an object, got an array");
    let odd = json!({"properties": {"a/b": {"properties": {"~": false}}}});
    differs(odd, json!({"a/b": {"~": 1}}), "/a~1b/~0", "is not allowed");
}

#[test]
fn types_and_null() {
    fits(json!({"type": "integer"}), json!(1.0));
    fits(json!({"type": ["string", "null"]}), json!(null));
    fits(json!({"type": "string", "nullable": true, "minLength": 2}), json!(null));
    fits(json!({"type": "any"}), json!(1));
    differs(json!({"type": "integer"}), json!(1.5), "", "expected an integer, got a number");
    differs(json!({"type": ["string", "null"]}), json!(true), "", "expected a string or null, got a boolean");
    differs(json!({"type": "number", "nullable": true}), json!("1"), "", "expected a number or null, got a string");
}

#[test]
fn members() {
    let closed = json!({"properties": {"a": {}, "b": {}}, "additionalProperties": false});
    differs(closed, json!({"a": 1, "c": 1}), "/c", "is not known: expected one of \"a\", \"b\"");
    differs(json!({"additionalProperties": false}), json!({"c": 1}), "/c", "is not known: no member is expected here");
    differs(
        json!({"additionalProperties": {"type": "string"}}),
        json!({"c": 1}),
        "/c",
        "expected a string, got an integer",
    );
    let patterns = json!({"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": false});
    fits(patterns.clone(), json!({"x-a": "1"}));
    differs(patterns, json!({"x-a": 1}), "/x-a", "expected a string, got an integer");
    differs(
        json!({"propertyNames": {"maxLength": 1}}),
        json!({"ab": 1}),
        "/ab",
        "expected 1 or fewer characters, got 2",
    );
    differs(json!({"minProperties": 1}), json!({}), "", "expected 1 or more members, got 0");
}

#[test]
fn arrays() {
    differs(json!({"minItems": 1}), json!([]), "", "expected 1 or more items, got 0");
    differs(json!({"maxItems": 1}), json!([1, 2]), "", "expected 1 or fewer items, got 2");
    differs(json!({"uniqueItems": true}), json!([{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]), "/1", "is there twice");
    let tuple = json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}});
    fits(tuple.clone(), json!(["a", 1]));
    differs(tuple, json!(["a", "b"]), "/1", "expected an integer, got a string");
    let older = json!({"items": [{"type": "string"}], "additionalItems": false});
    differs(older, json!(["a", 1]), "/1", "is not allowed");
}

#[test]
fn strings_and_numbers() {
    fits(json!({"minLength": 2, "maxLength": 2}), json!("äö"));
    fits(json!({"pattern": "b+"}), json!("abc"));
    fits(json!({"format": "uri"}), json!("not a uri"));
    differs(json!({"pattern": "^b"}), json!("ab"), "", "expected a string that matches \"^b\"");
    differs(json!({"minimum": 1}), json!(0), "", "expected 1 or more, got 0");
    differs(json!({"maximum": 1.5}), json!(2), "", "expected 1.5 or less, got 2");
    differs(json!({"exclusiveMinimum": 0}), json!(0), "", "expected more than 0, got 0");
    differs(json!({"exclusiveMaximum": 3}), json!(3.0), "", "expected less than 3, got 3.0");
    differs(json!({"minimum": 0, "exclusiveMinimum": true}), json!(0), "", "expected more than 0, got 0");
    differs(json!({"minimum": 0, "maximum": 3}), json!(4), "", "expected 3 or less, got 4");
    differs(
        json!({"minimum": i64::MAX}),
        json!(i64::MAX - 1),
        "",
        &format!("expected {} or more, got {}", i64::MAX, i64::MAX - 1),
    );
    differs(json!({"multipleOf": 5}), json!(7), "", "expected a multiple of 5, got 7");
    fits(json!({"multipleOf": 0.1}), json!(0.3));
}

#[test]
fn constants() {
    fits(json!({"enum": [1, "a", {"x": [1]}]}), json!({"x": [1.0]}));
    differs(json!({"enum": ["a", "b"]}), json!("c"), "", "expected one of \"a\", \"b\"");
    differs(json!({"const": "a"}), json!("c"), "", "expected \"a\"");
}

#[test]
fn combinations() {
    let any = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    fits(any.clone(), json!(null));
    differs(any, json!(1), "", "expected a string or null, got an integer");
    let objects = json!({"anyOf": [{"type": "string"}, {"properties": {"a": {"type": "string"}}, "required": ["a"]}]});
    differs(objects, json!({"a": 1}), "/a", "expected a string, got an integer");
    let one = json!({"oneOf": [{"type": "integer"}, {"minimum": 2}]});
    fits(one.clone(), json!(1));
    differs(one, json!(3), "", "fits 2 alternatives, expected exactly one");
    differs(json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), json!(3), "", "expected 2 or less, got 3");
    differs(json!({"not": {"type": "string"}}), json!("a"), "", "is a value that is not allowed");
}

#[test]
fn references() {
    let list = json!({"$ref": "#/$defs/list", "$defs": {"list": {
        "type": "object", "properties": {"next": {"$ref": "#/$defs/list"}, "value": {"type": "integer"}}, "additionalProperties": false
    }}});
    fits(list.clone(), json!({"value": 1, "next": {"value": 2, "next": {}}}));
    differs(list, json!({"next": {"next": {"value": "x"}}}), "/next/next/value", "expected an integer, got a string");
    fits(json!({"$ref": "https://example.org/other.json"}), json!(1));
    fits(
        json!({"definitions": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/definitions/a"}}}),
        json!({"x": ""}),
    );
}

#[test]
fn a_keyword_that_is_not_supported_refuses_nothing() {
    fits(json!({"if": {"type": "string"}, "then": false}), json!("a"));
    fits(json!({"not": {"if": {"type": "string"}}}), json!("a"));
    fits(json!({"pattern": "^(?!x)"}), json!("x"));
    fits(json!({"not": {"pattern": "^(?!x)"}}), json!("a"));
    fits(json!({"oneOf": [{"pattern": "^(?=a)"}, {"pattern": "^(?=b)"}]}), json!("a"));
    fits(json!({"x-widget": "slider", "type": "string"}), json!("a"));
}

#[test]
fn hostile_schemas_end_soon() {
    let started = Instant::now();
    let problem = |schema: Value, value: Value| check(&schema, &value).expect_err("it ends").problem;
    assert!(problem(json!({"$ref": "#"}), json!(1)).contains("too complex"));
    assert!(problem(json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}), json!(1)).contains("too complex"));
    assert!(problem(json!({"not": {"$ref": "#"}}), json!(1)).contains("too complex"));
    let doubling: Map<String, Value> = (0..60)
        .map(|i| {
            (
                format!("d{i}"),
                json!({"allOf": [{"$ref": format!("#/$defs/d{}", i + 1)}, {"$ref": format!("#/$defs/d{}", i + 1)}]}),
            )
        })
        .collect();
    assert!(problem(json!({"$ref": "#/$defs/d0", "$defs": doubling}), json!(1)).contains("too complex"));
    let choices: Vec<u32> = (0..100_000).collect();
    let items = json!({"items": {"enum": choices}});
    assert!(problem(items, json!(vec!["x"; 100_000])).contains("expected one of"));
    let nested = json!({"items": {"items": {"enum": choices}}});
    assert!(problem(nested, json!(vec![vec![99_999; 100]; 100])).contains("too complex"));
    fits(json!({"pattern": "(a{1000}){1000}"}), json!("b"));
    fits(json!({"pattern": "(".repeat(100_000)}), json!("b"));
    let _ = check(&json!({"pattern": "(a|a)*(a|aa)*(a*)*b$"}), &json!("a".repeat(50_000)));
    let _ = check(&json!({"pattern": "(?:[\\w\\s]{1,40}x?){1,9}$"}), &json!("a ".repeat(100_000)));
    // A debug build on a busy machine; the broken code would not have ended at all.
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[test]
fn defaults_fill_what_is_missing() {
    let schema = json!({"properties": {"a": {"default": 1}, "b": {"default": null}, "c": {"type": "string"}}});
    let mut args = json!({"a": 2}).as_object().expect("an object").clone();
    apply_defaults(&schema, &mut args);
    assert_eq!(Value::Object(args), json!({"a": 2, "b": null}));
}

/// Values of a few levels, with names and numbers that meet often.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3i64..4).prop_map(Value::from),
        prop_oneof![Just(0.5), Just(1.0), Just(1e300)].prop_map(Value::from),
        "[ab~/é]{0,3}".prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(("[ab~/]{1,2}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The schema of exactly this shape: each object closed, each array by its items.
fn schema_of(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let properties: Map<String, Value> =
                members.iter().map(|(name, member)| (name.clone(), schema_of(member))).collect();
            let required: Vec<&String> = members.keys().collect();
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
        }
        Value::Array(items) => {
            let schemas: Vec<Value> = items.iter().map(schema_of).collect();
            json!({"type": "array", "prefixItems": schemas, "items": false, "minItems": items.len()})
        }
        other => json!({"const": other}),
    }
}

/// The pointers of every place of a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.into());
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                places(member, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(i, item)| places(item, &format!("{at}/{i}"), found)),
        _ => {}
    }
}

/// Schemas of keywords at random, most of them nonsense.
fn schemas() -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        Just("type"),
        Just("properties"),
        Just("required"),
        Just("additionalProperties"),
        Just("items"),
        Just("prefixItems"),
        Just("enum"),
        Just("const"),
        Just("minimum"),
        Just("maxLength"),
        Just("pattern"),
        Just("uniqueItems"),
        Just("anyOf"),
        Just("oneOf"),
        Just("allOf"),
        Just("not"),
        Just("$ref"),
        Just("nullable"),
        Just("patternProperties"),
        Just("multipleOf"),
    ];
    let leaf = prop_oneof![
        values(),
        prop_oneof![Just("string"), Just("object"), Just("#"), Just("#/not"), Just("#/anyOf/0"), Just("(a")]
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array);
        let keyword = prop_oneof![inner, list];
        prop::collection::vec((names.clone(), keyword), 0..4).prop_map(|members| {
            Value::Object(members.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
        })
    })
}

proptest! {
    #[test]
    fn a_value_fits_the_schema_of_its_shape(value in values()) {
        prop_assert_eq!(check(&schema_of(&value), &value), Ok(()));
    }

    #[test]
    fn a_value_that_is_changed_in_one_place_differs_there(value in values(), pick in any::<prop::sample::Index>()) {
        let mut all = Vec::new();
        places(&value, "", &mut all);
        let place = pick.get(&all).clone();
        let mut changed = value.clone();
        *changed.pointer_mut(&place).expect("a place of the value") = json!("changed");
        let mismatch = check(&schema_of(&value), &changed).expect_err("it differs");
        prop_assert_eq!(mismatch.pointer, place);
    }

    #[test]
    fn any_schema_and_value_give_an_answer_whose_place_is_in_the_value(schema in schemas(), value in values()) {
        if let Err(mismatch) = check(&schema, &value) {
            let parent = mismatch.pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
            prop_assert!(value.pointer(&mismatch.pointer).is_some() || value.pointer(parent).is_some(), "{mismatch}");
            prop_assert!(!mismatch.problem.is_empty() && mismatch.problem.len() < 1000);
        }
    }

    #[test]
    fn a_value_fits_a_schema_or_its_negation(schema in schemas(), value in values()) {
        let sure = !schema.to_string().contains("(a") && !schema.to_string().contains("$ref");
        let (plain, negated) = (check(&schema, &value), check(&json!({"not": schema}), &value));
        let too_complex = |r: &Result<(), Mismatch>| r.as_ref().is_err_and(|m| m.problem.contains("too complex"));
        if sure && !too_complex(&plain) && !too_complex(&negated) {
            prop_assert_eq!(plain.is_ok(), negated.is_err());
        }
    }
}
