//! The values of an enum on the wire, each with its description. They come from the schema, so that there is one list.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// One value: its name on the wire and its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumValue {
    pub name: String,
    pub about: Option<String>,
}

/// A type with a schema.
pub trait EnumValues {
    /// Returns the values of an enum without fields. Any other type has none.
    fn enum_values() -> Vec<EnumValue>;
}

impl<T: JsonSchema> EnumValues for T {
    fn enum_values() -> Vec<EnumValue> {
        of::<T>()
    }
}

fn of<T: JsonSchema>() -> Vec<EnumValue> {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>();
    let list = |key: &str| schema.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let plain = list("enum").into_iter().filter_map(|name| Some(EnumValue { name: text(Some(&name))?, about: None }));
    let described = list("oneOf").into_iter().flat_map(|one| {
        let about = text(one.get("description"));
        // Values without a description share an entry.
        let several = one.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        let names = several.into_iter().chain(one.get("const").cloned());
        names
            .filter_map(move |name| Some(EnumValue { name: text(Some(&name))?, about: about.clone() }))
            .collect::<Vec<_>>()
    });
    plain.chain(described).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventType;
    use crate::params::{IfRunning, Status, Stream};

    fn names<T: JsonSchema>() -> Vec<String> {
        of::<T>().into_iter().map(|value| value.name).collect()
    }

    #[test]
    fn every_value_of_an_enum_is_listed_in_order_with_its_description() {
        assert_eq!(names::<EventType>(), EventType::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>());
        assert_eq!(names::<Stream>(), ["stdout", "stderr"]);
        assert_eq!(names::<Status>(), ["pending", "starting", "running", "exited", "lost"]);
        assert_eq!(names::<IfRunning>(), ["error", "return", "restart"]);
        assert_eq!(of::<EventType>()[0].about.as_deref(), Some("The program runs."));
        assert_eq!(of::<String>(), []);
    }
}
