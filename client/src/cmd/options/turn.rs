//! The options of `exec` that let a process wait for its turn. `run` has none of them: it would have nothing to show, and no program
//! to pass its input to.

use toold_proto::params::ExecParams;

const TURN: &str = "When it starts";

#[derive(Debug, clap::Args)]
pub struct TurnOptions {
    /// Start when this queue has a free slot, in the order of the calls; `toolctl queue` shows them
    #[arg(long, help_heading = TURN, value_name = "NAME")]
    queue: Option<String>,
    /// Start when this process has exited with code 0; may be given again
    #[arg(long, help_heading = TURN, value_name = "ID")]
    pub after: Vec<String>,
    /// For --after: start however those end
    #[arg(long, help_heading = TURN, requires = "after")]
    after_any: bool,
}

impl TurnOptions {
    pub fn apply(self, params: &mut ExecParams) {
        params.queue = self.queue;
        params.after = self.after;
        params.after_ok = self.after_any.then_some(false);
    }
}
