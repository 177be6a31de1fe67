//! The macro that turns the list of verbs into what is derived from it.

/// Declares every verb: its documentation (the text of `--help`), its arguments, and what else a verb must have. Without one of
/// these the list does not compile.
macro_rules! verbs {
    // The definitions of rare verbs are compiled once, among all, and not for a parser of their own.
    (@parse Single $argv:ident, $variant:ident($args:ty)) => { single::<$args>($argv, Verb::$variant) };
    (@parse All $argv:ident, $variant:ident($args:ty)) => { None };
    ($(
        $(#[$about:meta])*
        $variant:ident($args:ty) = $name:literal {
            group: $group:literal, parse: $parse:ident,
            ids: $filter:ident $ids:expr, run: $run:expr,
            examples: [$($example:literal),* $(,)?] $(,)?
        }
    )*) => {
        #[derive(Debug, Subcommand)]
        pub enum Verb {
            $($(#[$about])* #[command(name = $name, hide = $group.is_empty())] $variant($args),)*
        }

        pub const VERBS: &[VerbInfo] = &[$(VerbInfo {
            name: $name,
            group: $group,
            ids: ProcessFilter::$filter,
            #[cfg(test)]
            parse: Parse::$parse,
            examples: &[$($example),*],
        },)*];

        impl Verb {
            /// Returns every id that was typed.
            pub fn ids(&mut self) -> Vec<&mut String> {
                match self {
                    $(Verb::$variant(args) => {
                        let ids: fn(&mut $args) -> Vec<&mut String> = $ids;
                        ids(args)
                    })*
                }
            }

            /// Returns the processes that its ids can be.
            pub fn filter(&self) -> ProcessFilter {
                match self {
                    $(Verb::$variant(_) => ProcessFilter::$filter,)*
                }
            }

            /// Runs the command and returns the code to exit with.
            pub fn run(self, cx: &mut Context<'_>) -> Result<u8, CliError> {
                match self {
                    $(Verb::$variant(args) => {
                        let run: fn($args, &mut Context<'_>) -> Result<u8, CliError> = $run;
                        run(args, cx)
                    })*
                }
            }
        }

        /// Parses a command line with the definition of its verb alone. None: the verb is parsed with all definitions, the line is
        /// wrong, or it asks for help; all of that is decided with all definitions.
        pub fn parse_single_verb(argv: &[OsString]) -> Option<Cli> {
            match argv.get(1)?.to_str()? {
                $($name => verbs!(@parse $parse argv, $variant($args)),)*
                // An option before the verb, or not a verb.
                _ => None,
            }
        }
    };
}

pub(super) use verbs;
