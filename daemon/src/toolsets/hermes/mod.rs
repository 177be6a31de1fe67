//! The tools that only Hermes has: `process` and `execute_code`.

mod code;
mod process;
