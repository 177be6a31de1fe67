//! The daemon.

/// Wipes freed memory: values of environment variables were in it.
#[global_allocator]
static ALLOCATOR: toold_daemon::sys::WipingAllocator = toold_daemon::sys::WipingAllocator;

fn main() -> std::process::ExitCode {
    toold_daemon::serve::main()
}
