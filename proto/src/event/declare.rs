//! The macro behind the one list of events: from a declaration it makes the type, the number on disk and the description.

macro_rules! events {
    (
        events { $($(#[doc = $doc:literal])+ $name:ident = $code:literal, $wire:literal, $example:literal {
            $($(#[$field:meta])* $f:ident: $t:ty,)*
        })* }
        pushes { $($(#[doc = $push_doc:literal])+ $push:ident = $push_wire:literal, $push_example:literal {
            $($(#[$push_field:meta])* $pf:ident: $pt:ty,)*
        })* }
    ) => {
        /// The type of an event. Its code is frozen: it is on disk.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum EventType { $($(#[doc = $doc])+ $name,)* }
        impl EventType {
            pub const ALL: &[EventType] = &[$(EventType::$name),*];
            /// Returns the name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(EventType::$name => $wire,)* }
            }
            /// Returns the number on disk.
            pub fn code(self) -> u16 {
                match self { $(EventType::$name => $code,)* }
            }
            /// Returns the type with this number on disk.
            pub fn from_code(code: u16) -> Option<EventType> {
                match code {
                    $($code => Some(EventType::$name),)*
                    // A type of a later version.
                    _ => None,
                }
            }
        }
        $($(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct $name { $($(#[$field])* pub $f: $t,)* }

        impl EventFields for $name {
            fn event_type(&self) -> EventType {
                EventType::$name
            }
            fn write_fields(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
                append_fields(self, out)
            }
        })*

        $($(#[doc = $push_doc])+
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct $push { $($(#[$push_field])* pub $pf: $pt,)* }

        impl Push for $push {
            const NAME: &'static str = $push_wire;
        })*

        /// The fields of an event or push, by type, as a client reads them.
        #[derive(Debug, Clone, PartialEq)]
        pub enum EventBody {
            $($name($name),)*
            $($push($push),)*
        }

        impl EventBody {
            /// Reads the fields that belong to the object's `type`. Returns None for a type of a later version, or if a
            /// field is missing. Fields that this version does not know are ignored.
            pub fn read(object: &Map<String, Value>) -> Option<EventBody> {
                match object.get("type")?.as_str()? {
                    $($wire => $name::deserialize(object).ok().map(EventBody::$name),)*
                    $($push_wire => $push::deserialize(object).ok().map(EventBody::$push),)*
                    _ => None,
                }
            }

            #[cfg(test)]
            pub fn name(&self) -> &'static str {
                match self {
                    $(EventBody::$name(_) => $wire,)*
                    $(EventBody::$push(_) => $push_wire,)*
                }
            }

            #[cfg(test)]
            pub fn text(&self) -> String {
                match self {
                    $(EventBody::$name(body) => serde_json::to_string(body),)*
                    $(EventBody::$push(body) => serde_json::to_string(body),)*
                }
                .expect("it prints")
            }
        }

        /// Every event in the order of its number, then the pushes.
        pub const EVENTS: &[EventDescription] = &[
            $(EventDescription {
                name: $wire,
                doc: concat!($($doc, "\n"),+),
                code: Some($code),
                example: $example,
                fields: |g| g.root_schema_for::<$name>(),
            },)*
            $(EventDescription {
                name: $push_wire,
                doc: concat!($($push_doc, "\n"),+),
                code: None,
                example: $push_example,
                fields: |g| g.root_schema_for::<$push>(),
            },)*
        ];
    };
}
pub(super) use events;
