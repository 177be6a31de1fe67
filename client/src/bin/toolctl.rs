//! The `toolctl` program. Everything it does lives in the `toold-client` crate.

fn main() -> std::process::ExitCode {
    toold_client::cli::main()
}
