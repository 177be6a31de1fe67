//! Tries from inside: jobs in a sandbox cannot do what it forbids, and real programs work there.

mod attack;
mod inside;
mod programs;
mod sys;
mod world;
