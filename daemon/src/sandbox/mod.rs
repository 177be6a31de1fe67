//! The confinement of jobs: a profile becomes a plan, whose paths are open.

pub mod plan;
