//! Tools: the native ones, the check of arguments and of definitions, the toolsets that models know. Pure: nothing here
//! runs anything.

pub mod definition;
pub mod format;
pub mod identifier;
pub mod list;
pub mod native;
pub mod schema;
pub mod toolset;

pub use definition::{Definition, DefinitionError, check_definition, check_definitions, check_provider};
pub use format::{Formatted, api_names, format};
pub use identifier::identifier;
pub use list::list;
pub use native::{NATIVE_PROVIDER, native};
pub use schema::{Mismatch, apply_defaults, check};
pub use toolset::{CallError, ToolsetCall, parse, toolset};
