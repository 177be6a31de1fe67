//! `keys`: types keys into a process's terminal, by their names.

use super::Context;
use super::write::send;
use crate::error::CliError;
use toold_proto::keys::Key;
use toold_proto::{api, params};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
    /// The keys in order: Enter, Tab, Esc, Up, PageDown, F1, C-c, M-x…, or text; after -- also text that begins with -
    #[arg(required = true, value_name = "KEY", value_parser = key)]
    keys: Vec<Key>,
    /// A name for these keys: the same again is acknowledged and not written twice
    #[arg(long, value_name = "ID")]
    write_id: Option<String>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let params =
        params::WriteParams { id: args.id, keys: Some(args.keys), write_id: args.write_id, ..Default::default() };
    send::<api::Write>(&params, cx)
}

/// Reads one argument.
fn key(text: &str) -> Result<Key, String> {
    // The way to type text that looks like a key is another here.
    Key::parse(text).map_err(|why| match why.split_once("; {") {
        Some((problem, _)) => format!("{problem}; `toolctl write` types it as text"),
        None => why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_is_refused_with_the_way_to_type_it() {
        assert_eq!(key("Up"), Key::parse("Up"));
        assert_eq!(key("hello"), Ok(Key::Text("hello".into())));
        let why = "\"enter\" is not the name of a key (that one is \"Enter\"); `toolctl write` types it as text";
        assert_eq!(key("enter"), Err(why.into()));
    }
}
