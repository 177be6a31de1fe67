//! The program that `toolctl mcp` runs.

fn main() -> std::process::ExitCode {
    toold_mcp::main()
}
