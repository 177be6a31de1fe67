//! The `toolctl` program. Everything it does lives in the `toold-client` crate.
#![cfg_attr(all(not(test), target_os = "linux", target_env = "gnu"), no_main)]

// A test has its own first function.
#[cfg(not(test))]
toold_client::main!(toold_client::cli::main);
