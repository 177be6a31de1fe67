//! The program behind `toolctl top`. Everything it does lives in the `toold-top` crate.

fn main() -> std::process::ExitCode {
    toold_top::main()
}
