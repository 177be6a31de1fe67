//! ChildSandbox of a program: the steps of its child before exec, the namespaces that a spare makes, and the listener that
//! sees what is refused.

pub mod fds;
pub mod filter;
pub mod landlock;

mod call;
mod child;
mod denials;
mod listener;
mod mounts;
mod namespaces;
mod signals;
mod target;

pub use child::{ChildSandbox, has_listeners};
pub use listener::Observer;
pub use namespaces::make;
