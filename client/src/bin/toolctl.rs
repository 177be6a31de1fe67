//! The `toolctl` program. Everything it does lives in the `toold-client` crate.
#![cfg_attr(all(target_os = "linux", target_env = "gnu"), no_main)]

toold_client::program!(toold_client::cli::main);
