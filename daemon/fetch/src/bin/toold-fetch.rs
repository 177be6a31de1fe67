//! The program that fetches for the daemon.

fn main() -> std::process::ExitCode {
    toold_fetch::main()
}
