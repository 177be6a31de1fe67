//! Text to calls: framings, dispatch, and one file per group of verbs.

pub mod register;
pub mod wire;
