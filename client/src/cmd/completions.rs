//! `completions`: prints the completion script of a shell. The scripts only call `toolctl __complete`.

use super::Context;
use crate::error::{CliError, DONE};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    #[arg(value_enum, hide_possible_values = false)]
    shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    pub const ALL: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

    pub fn script(self) -> &'static str {
        match self {
            Shell::Bash => include_str!("../../completions/toolctl.bash"),
            Shell::Zsh => include_str!("../../completions/_toolctl"),
            Shell::Fish => include_str!("../../completions/toolctl.fish"),
        }
    }
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    cx.console.print(args.shell.script())?;
    Ok(DONE)
}
