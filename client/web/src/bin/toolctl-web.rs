//! The program behind `toolctl web`. Everything it does lives in the `toold-web` crate.

fn main() -> std::process::ExitCode {
    toold_web::main()
}
