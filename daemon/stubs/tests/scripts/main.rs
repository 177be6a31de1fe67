//! Stubs, runners and kernel drivers in real interpreters, against a channel that misbehaves on purpose.

mod channel;
mod driver;
mod javascript;
mod javascript_faults;
mod javascript_kernel;
mod kernel;
mod program;
mod python;
mod python_faults;
mod tools;
