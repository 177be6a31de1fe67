//! Tries from inside: jobs in a sandbox cannot do what it forbids, and real programs work there.

mod attack;
mod channel;
mod guarded;
pub mod inside;
mod machine;
mod more;
mod network;
mod programs;
mod siblings;
mod sys;
mod world;
