//! The environment of a new process, from the caller's and the options about it. All but `add` is pure.

use crate::args;
use crate::cmd::Context;
use crate::error::CliError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::builder::{OsStringValueParser, TypedValueParser};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use toold_proto::api;
use toold_proto::env::{DEFAULT_TERM, is_clean};
use toold_proto::params::{Empty, EnvMode, ExecParams};
use toold_proto::pty::Pty;

/// The config key with the names that a clean environment also has.
const PASS_KEY: &str = "env.pass";

/// The options about the environment.
#[derive(Debug, Default, clap::Args)]
pub struct EnvOptions {
    /// A variable: NAME has your value, NAME=VALUE that one; may be given again
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = variable())]
    given: Vec<GivenVariable>,
    /// Variables from a file, a NAME=VALUE on each line; # begins a comment line; --env overrides them
    #[arg(long = "env-file", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// The environment below --env: clean (a safe subset of yours), inherit (the daemon's), replace (nothing) [default: all of
    /// yours]
    #[arg(long = "env-mode", value_name = "MODE", hide_possible_values = true, value_parser = args::enum_value::<EnvMode>())]
    mode: Option<EnvMode>,
    /// The process runs in another directory than ours.
    #[arg(skip)]
    pub is_elsewhere: bool,
}

impl EnvOptions {
    /// Returns true if `--env` has this name.
    fn names(&self, name: &str) -> bool {
        self.given.iter().any(|given| match given {
            GivenVariable::Copied(given) | GivenVariable::Set(given, _) => given == name,
        })
    }
}

/// A variable of `--env`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GivenVariable {
    /// With the caller's value.
    Copied(String),
    Set(String, Vec<u8>),
}

/// The variables of a process. A value is any bytes but NUL.
type Variables = BTreeMap<String, Vec<u8>>;

/// The caller: its variables, and whether it is on a terminal.
struct Caller {
    vars: Vec<(OsString, OsString)>,
    on_terminal: bool,
}

/// The environment of a request: text in `env`, other values in base64.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RequestEnv {
    pub mode: EnvMode,
    pub env: BTreeMap<String, String>,
    pub env_base64: BTreeMap<String, String>,
}

/// Adds the environment to an exec request.
pub fn add(params: &mut ExecParams, options: EnvOptions, cx: &mut Context<'_>) -> Result<(), CliError> {
    let RequestEnv { mode, env, env_base64 } = collect(&options, params.pty != Pty::No, cx)?;
    (params.env_mode, params.env, params.env_base64) = (mode, env, env_base64);
    // As after a `cd`: programs that trust PWD, such as make, would work in our directory.
    if options.is_elsewhere
        && options.mode.is_none()
        && !options.names("PWD")
        && let (Some(pwd), Some(cwd)) = (params.env.get_mut("PWD"), &params.cwd)
    {
        *pwd = cwd.clone();
    }
    Ok(())
}

/// Returns the environment of a request, and prints which variables are left out. `on_pty`: the process has a terminal.
pub fn collect(options: &EnvOptions, on_pty: bool, cx: &mut Context<'_>) -> Result<RequestEnv, CliError> {
    let vars = if cx.console.is_real { std::env::vars_os().collect() } else { Vec::new() };
    let caller = Caller { vars, on_terminal: cx.console.is_real && io::stdout().is_terminal() };
    let files = options.files.iter().map(read_file).collect::<Result<Vec<_>, _>>()?;
    let pass = match options.mode {
        Some(EnvMode::Clean) => configured_names(cx)?,
        Some(EnvMode::Inherit | EnvMode::Replace) | None => Vec::new(),
    };
    let (all, left_out) = build(options, files, &caller, &pass, on_pty);
    let mode = match options.mode {
        Some(EnvMode::Inherit) => EnvMode::Inherit,
        // The daemon adds nothing of its own: a clean environment has the caller's values.
        Some(EnvMode::Clean | EnvMode::Replace) | None => EnvMode::Replace,
    };
    let mut request = RequestEnv { mode, ..RequestEnv::default() };
    for (name, value) in all {
        match String::from_utf8(value) {
            Ok(text) => request.env.insert(name, text),
            Err(bytes) => request.env_base64.insert(name, STANDARD.encode(bytes.into_bytes())),
        };
    }
    left_out.iter().for_each(|why| cx.console.message(why));
    Ok(request)
}

/// Asks the daemon for the names that its config adds to a clean environment.
fn configured_names(cx: &mut Context<'_>) -> Result<Vec<String>, CliError> {
    let info = cx.connection.call_with_retry::<api::DaemonInfo>(&Empty {})?;
    let names = info.limits.get(PASS_KEY).cloned().unwrap_or_default();
    Ok(serde_json::from_value(names).unwrap_or_default())
}

/// Builds the variables to send, and a message for each that is left out.
fn build(
    options: &EnvOptions,
    files: Vec<Variables>,
    caller: &Caller,
    pass: &[String],
    on_pty: bool,
) -> (Variables, Vec<String>) {
    let mut left_out = Vec::new();
    let mut all = Variables::new();
    let takes_ours = match options.mode {
        None => true,
        Some(mode) => mode == EnvMode::Clean,
    };
    for (name, value) in caller.vars.iter().filter(|_| takes_ours) {
        match name.to_str().filter(|name| !name.contains('=')) {
            Some(name) if options.mode.is_some() && !is_clean(name, pass) => {}
            Some(name) => drop(all.insert(name.into(), value.as_bytes().to_vec())),
            // JSON has no such name, and the kernel takes any.
            None if options.mode.is_some() => {}
            None => left_out.push(format!("{}: is not a name that can be passed on; it is left out", name.display())),
        }
    }
    if on_pty && takes_ours {
        // The "dumb" of a script or an editor is about their own output, not about a terminal of the process.
        let is_usable = |term: &Vec<u8>| !term.is_empty() && (caller.on_terminal || term != b"dumb");
        if !all.get("TERM").is_some_and(is_usable) {
            all.insert("TERM".into(), DEFAULT_TERM.into());
        }
    }
    all.extend(files.into_iter().flatten());
    for given in &options.given {
        match given {
            GivenVariable::Set(name, value) => drop(all.insert(name.clone(), value.clone())),
            GivenVariable::Copied(name) => match caller.vars.iter().find(|(ours, _)| ours == OsStr::new(name)) {
                Some((_, value)) => drop(all.insert(name.clone(), value.as_bytes().to_vec())),
                None => left_out.push(format!("--env {name}: is not set here; it is left out")),
            },
        }
    }
    (all, left_out)
}

fn variable() -> impl TypedValueParser<Value = GivenVariable> {
    OsStringValueParser::new().try_map(parse_variable)
}

/// Parses a value of `--env`. No value is in the error: it may be a secret.
fn parse_variable(text: OsString) -> Result<GivenVariable, String> {
    let bytes = text.into_vec();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => parse_name(&bytes[..at]).map(|name| GivenVariable::Set(name, bytes[at + 1..].to_vec())),
        None => parse_name(&bytes).map(GivenVariable::Copied),
    }
}

fn parse_name(name: &[u8]) -> Result<String, String> {
    match std::str::from_utf8(name) {
        Ok("") => Err("there is no name before the `=`".into()),
        Ok(name) => Ok(name.into()),
        Err(_) => Err("the name is not UTF-8, which JSON cannot carry".into()),
    }
}

fn read_file(path: &PathBuf) -> Result<Variables, CliError> {
    let wrong = |what: String| CliError::Usage(format!("--env-file {}: {what}", path.display()));
    let bytes = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
    parse_file(&bytes).map_err(|(line, what)| wrong(format!("line {line}: {what}")))
}

/// Parses an env file. An error has the number of the line, and nothing of what is on it.
fn parse_file(bytes: &[u8]) -> Result<Variables, (usize, String)> {
    let mut all = Variables::new();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = line.trim_ascii_start();
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        let wrong = |what: &str| (number + 1, what.to_string());
        let at = line.iter().position(|byte| *byte == b'=').ok_or_else(|| wrong("is not NAME=VALUE"))?;
        let name = parse_name(&line[..at]).map_err(|what| wrong(&what))?;
        if name.contains(|c: char| c.is_ascii_whitespace()) {
            return Err(wrong("there is a space in the name; write NAME=VALUE, without `export` and without quotes"));
        }
        if line.contains(&0) {
            return Err(wrong("has a NUL character"));
        }
        all.insert(name, line[at + 1..].to_vec());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: [(&str, &str); 6] = [
        ("PATH", "/ours"),
        ("LC_TOKEN", "secret"),
        ("TERM", "foot"),
        ("EDITOR", "vi"),
        ("VIRTUAL_ENV", "/v2"),
        ("DEPLOY_TOKEN", "d"),
    ];

    fn caller(vars: &[(&str, &str)], on_terminal: bool) -> Caller {
        Caller { vars: vars.iter().map(|(name, value)| (name.into(), value.into())).collect(), on_terminal }
    }

    fn given(list: &[&str]) -> Vec<GivenVariable> {
        list.iter().map(|text| parse_variable(text.into()).expect("a variable")).collect()
    }

    fn shown(all: Variables) -> Vec<String> {
        all.into_iter().map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(&value))).collect()
    }

    fn built(mode: Option<EnvMode>, variables: &[&str], on_pty: bool) -> (Vec<String>, Vec<String>) {
        let options = EnvOptions { given: given(variables), mode, ..EnvOptions::default() };
        let files = vec![parse_file(b"EDITOR=file\nF=1").expect("a file")];
        let pass = ["DEPLOY_TOKEN".to_string()];
        let (all, left_out) = build(&options, files, &caller(&OURS, true), &pass, on_pty);
        (shown(all), left_out)
    }

    #[test]
    fn without_a_mode_everything_of_the_caller_is_passed_and_options_override_it() {
        let (all, left_out) = built(None, &["PATH=/mine", "EMPTY="], false);
        let expected = ["DEPLOY_TOKEN=d", "EDITOR=file", "EMPTY=", "F=1", "LC_TOKEN=secret", "PATH=/mine"];
        assert_eq!((&all[..6], left_out), (&expected.map(String::from)[..], vec![]));
        assert_eq!(all[6..], ["TERM=foot", "VIRTUAL_ENV=/v2"]);
    }

    #[test]
    fn clean_takes_the_listed_names_and_those_of_the_config_with_the_values_of_the_caller() {
        let (all, _) = built(Some(EnvMode::Clean), &[], false);
        assert_eq!(all, ["DEPLOY_TOKEN=d", "EDITOR=file", "F=1", "PATH=/ours", "TERM=foot", "VIRTUAL_ENV=/v2"]);
    }

    #[test]
    fn inherit_and_replace_take_only_what_is_named_and_a_missing_variable_is_left_out_and_reported() {
        for mode in [EnvMode::Inherit, EnvMode::Replace] {
            let (all, left_out) = built(Some(mode), &["PATH", "NO_SUCH"], true);
            assert_eq!(all, ["EDITOR=file", "F=1", "PATH=/ours"]);
            assert_eq!(left_out, ["--env NO_SUCH: is not set here; it is left out"]);
        }
    }

    #[test]
    fn a_terminal_has_a_kind_and_a_dumb_one_only_if_the_caller_has_one() {
        for (term, on_terminal, expected) in [
            (&[("TERM", "dumb")][..], true, "dumb"),
            (&[("TERM", "dumb")], false, DEFAULT_TERM),
            (&[("TERM", "")], true, DEFAULT_TERM),
            (&[], false, DEFAULT_TERM),
            (&[("TERM", "foot")], false, "foot"),
        ] {
            let (all, _) = build(&EnvOptions::default(), Vec::new(), &caller(term, on_terminal), &[], true);
            assert_eq!(shown(all), [format!("TERM={expected}")]);
        }
    }

    #[test]
    fn values_and_names_that_are_not_text_are_passed_and_left_out() {
        let vars = vec![
            ("A".into(), OsString::from_vec(vec![0xff])),
            (OsString::from_vec(vec![b'N', 0xfe]), "x".into()),
            ("=C:".into(), "x".into()),
        ];
        let options = EnvOptions { given: vec![parse_variable("A".into()).expect("a name")], ..EnvOptions::default() };
        let (all, left_out) = build(&options, Vec::new(), &Caller { vars, on_terminal: false }, &[], false);
        assert_eq!((all, left_out.len()), (Variables::from([("A".into(), vec![0xff])]), 2));
    }

    #[test]
    fn an_env_file_has_comments_and_no_quotes_and_an_error_has_the_number_of_the_line() {
        let all = parse_file(b"# c\n\nA=1\r\n  # d\nB='x y'=z \nC=\n\xc3\xa4=\xff").expect("a file");
        assert_eq!(shown(all), ["A=1", "B='x y'=z ", "C=", "\u{e4}=\u{fffd}"]);
        for (text, line) in [
            (&b"A=1\ns3cret"[..], 2),
            (b"#\n#\n=s3cret", 3),
            (b"export A=s3cret", 1),
            (b"\xff=s3cret", 1),
            (b"A=\0", 1),
        ] {
            let (number, what) = parse_file(text).expect_err("a bad line");
            assert_eq!(number, line, "{what}");
            assert!(!what.contains("s3cret"), "{what}");
        }
    }
}
