//! The worked examples of every command, run.
