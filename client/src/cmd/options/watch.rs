//! `--watch` and `--watch-re`: patterns in the order they were typed, whichever option they had.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use toold_proto::pattern::Pattern;

const TEXT: &str = "watch";
const REGEX: &str = "watch_re";

/// The patterns of a process. Their order is their number in the events, so it must be the typed one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watches(pub Vec<Pattern>);

impl Args for Watches {
    fn augment_args(command: Command) -> Command {
        let flag = |id: &'static str, long: &'static str, value: &'static str, help: &'static str| {
            Arg::new(id)
                .long(long)
                .help_heading(super::exec::EVENTS)
                .value_name(value)
                .help(help)
                .action(ArgAction::Append)
                .allow_hyphen_values(true)
        };
        command
            .arg(flag(TEXT, "watch", "TEXT", "Send a watch_match event for lines with this text; may be given again"))
            .arg(flag(REGEX, "watch-re", "RE", "The same for lines that match a regular expression"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Watches::augment_args(command)
    }
}

impl FromArgMatches for Watches {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Watches, clap::Error> {
        let mut typed: Vec<(usize, Pattern)> = of(matches, TEXT, Pattern::Text);
        typed.extend(of(matches, REGEX, Pattern::Regex));
        typed.sort_by_key(|(at, _)| *at);
        Ok(Watches(typed.into_iter().map(|(_, pattern)| pattern).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Watches::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The patterns of one option, each with its position on the command line.
fn of(matches: &ArgMatches, id: &str, pattern: fn(String) -> Pattern) -> Vec<(usize, Pattern)> {
    let places = matches.indices_of(id).into_iter().flatten();
    let values = matches.get_many::<String>(id).into_iter().flatten();
    places.zip(values).map(|(at, value)| (at, pattern(value.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply, started};
    use serde_json::json;

    #[test]
    fn patterns_keep_the_order_they_were_typed_in_across_both_flags() {
        let fake = FakeDaemon::start(vec![vec![Reply::result(started(json!({})))]]);
        let args = [
            "exec",
            "--watch-re",
            "e+",
            "--watch",
            "-a",
            "--name=n",
            "--watch=b",
            "--watch-re=^c",
            "--",
            "x",
            "--watch",
            "y",
        ];
        assert_eq!(test_run(&fake, &args).0, 0);
        let (_, asked) = fake.next_request();
        assert_eq!(asked["watch"], json!([{"regex": "e+"}, "-a", "b", {"regex": "^c"}]));
        assert_eq!(asked["argv"], json!(["x", "--watch", "y"]));
    }
}
