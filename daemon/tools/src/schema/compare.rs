//! Types, order and equality of JSON values, as JSON schema defines them.

use serde_json::{Number, Value};
use std::cmp::Ordering;

/// Returns true if a value is of a type of JSON schema.
pub fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        // A type of another vocabulary (`any`, `file`) is not one of JSON.
        _ => true,
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or(number.as_u64().map(i128::from))
}

/// Compares numbers by their value: 1 and 1.0 are equal.
pub fn order(a: &Number, b: &Number) -> Option<Ordering> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Returns true if a number is a whole number of units.
pub fn is_multiple(number: &Number, unit: &Number) -> bool {
    match (integer(number), integer(unit), number.as_f64(), unit.as_f64()) {
        (_, Some(0), ..) => true,
        (Some(number), Some(unit), ..) => number % unit == 0,
        (.., Some(number), Some(unit)) => {
            let times = number / unit;
            (times - times.round()).abs() <= 1e-9 * times.abs().max(1.0)
        }
        _ => true,
    }
}

/// Returns a text that equal values share: members sorted, numbers by their value.
pub fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => match (integer(number), number.as_f64()) {
            (Some(integer), _) => integer.to_string(),
            (None, Some(float)) if float.fract() == 0.0 && float.abs() < 1e18 => (float as i128).to_string(),
            _ => number.to_string(),
        },
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(name, value)| format!("{name:?}:{}", canonical(value))).collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        other => other.to_string(),
    }
}
