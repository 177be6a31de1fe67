//! The daemon.

fn main() -> std::process::ExitCode {
    toold_daemon::serve::main()
}
