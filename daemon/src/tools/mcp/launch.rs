//! Starts and ends the process of a server: `mcp/NAME`, a process like any other, in every list and with a log of its own.

use crate::config::mcp::McpConfig;
use crate::config::policy::expand;
use crate::proc::Proc;
use crate::proc::handle::Kill;
use crate::proc::kill::kill_all;
use crate::proc::output::{read_tail, tail_bound};
use crate::proc::state::State;
use crate::proc::stdin;
use crate::registry::{NamePolicy, Registry, Selector};
use crate::spec;
use crate::text::TextForm;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use toold_format::{fnv1a, slots::Cause};
use toold_proto::RpcError;
use toold_proto::params::{ExecParams, IfRunning, StdinMode};
use toold_proto::sandbox::SandboxSetting;

/// The label that marks the processes of toold itself, and its value here.
const LABEL: (&str, &str) = ("toold", "mcp");
/// The label with the digest of the config that a server was started with.
const DIGEST_LABEL: &str = "mcp_config";
/// The time that a server has to end after its stdin was closed, and then after SIGTERM.
const CLOSE_TIME: Duration = Duration::from_secs(2);
const KILL_GRACE_MS: u64 = 2000;
/// The end of a server's output that an error has.
const TAIL_LINES: usize = 10;
const TAIL_BYTES: usize = 2000;

/// Returns the name of a server's process.
pub fn process_name(server: &str) -> String {
    format!("mcp/{server}")
}

/// Returns the program of a server and its arguments.
pub fn argv(config: &McpConfig, bridge: &Path) -> Vec<String> {
    let Some(url) = &config.url else { return config.command.clone() };
    let mut argv = vec![bridge.to_string_lossy().into_owned(), "mcp".into(), url.clone()];
    for (name, source) in &config.headers {
        argv.extend(["--header-env".into(), format!("{name}={}", source.env)]);
    }
    if let Some(variable) = &config.bearer_env {
        argv.extend(["--bearer-env".into(), variable.clone()]);
    }
    argv
}

/// Returns a number that changes with every part of the config that a running server depends on.
pub fn digest(config: &McpConfig, bridge: &Path) -> u64 {
    let parts = (argv(config, bridge), &config.env, &config.env_pass, &config.cwd, &config.sandbox);
    // Texts and maps of texts: nothing that could not be printed.
    fnv1a(serde_json::to_string(&parts).unwrap_or_default().as_bytes())
}

/// Returns the running process of a server.
pub fn find(registry: &Registry, server: &str) -> Option<Arc<Proc>> {
    let proc = registry.find(&process_name(server)).ok()?;
    (!proc.published_state().has_ended()).then_some(proc)
}

/// Returns true if a running process is the server of this config.
pub fn is_of(proc: &Proc, digest: u64) -> bool {
    proc.spec.labels.get(DIGEST_LABEL) == Some(&format!("{digest:016x}"))
}

/// Returns the processes of all servers, with the names of those.
pub fn all(registry: &Registry) -> Vec<(String, Arc<Proc>)> {
    let selector = Selector { label: Some(format!("{}={}", LABEL.0, LABEL.1)), ..Selector::default() };
    let running = registry.select_unfinished(&selector).into_iter();
    let named = running.filter_map(|proc| Some((proc.spec.name.as_deref()?.strip_prefix("mcp/")?.to_string(), proc)));
    named.collect()
}

/// Starts a server. The config names its program, so that no rule and no person is asked; its profile is judged as always.
pub async fn launch(
    registry: &Arc<Registry>,
    server: &str,
    config: &McpConfig,
    bridge: &Path,
) -> Result<Arc<Proc>, RpcError> {
    let call = ExecParams {
        argv: Some(argv(config, bridge)),
        cwd: config.cwd.as_ref().map(|cwd| expand(cwd).to_string_lossy().into_owned()),
        env: config.env.clone(),
        stdin: StdinMode::Pipe,
        hold: true,
        labels: BTreeMap::from([
            (LABEL.0.into(), LABEL.1.into()),
            (DIGEST_LABEL.into(), format!("{:016x}", digest(config, bridge))),
        ]),
        ..ExecParams::default()
    };
    let headers = config.headers.values().map(|header| &header.env).chain(&config.bearer_env);
    let pass: Vec<String> = config.env_pass.iter().chain(headers).cloned().collect();
    let mut request = spec::build(&call, &registry.config, &pass)?;
    let profile = config.sandbox.clone().map(SandboxSetting::Name);
    registry.confine(&mut request, profile.as_ref(), None)?;
    // No client can take this name: theirs have no slash.
    request.spec.name = Some(process_name(server));
    if !pass.is_empty() {
        request.spec.policy.get_or_insert_default().env_pass = pass;
    }
    let (uid, pid) = (nix::unistd::getuid().as_raw(), std::process::id() as i32);
    let policy = NamePolicy { if_running: IfRunning::Error, uid, pid };
    Ok(registry.spawn(request, policy).await?.proc.clone())
}

/// Ends a server: closes its stdin, as the protocol wants, and kills what is left.
pub async fn end(proc: &Arc<Proc>, cause: Cause) {
    if stdin::close(proc).await.is_ok() {
        let _ = tokio::time::timeout(CLOSE_TIME, proc.subscribe().wait_for(State::has_ended)).await;
    }
    kill(proc, cause).await;
}

/// Kills a server and what it started.
pub async fn kill(proc: &Arc<Proc>, cause: Cause) {
    let (uid, pid) = (nix::unistd::getuid().as_raw(), std::process::id() as i32);
    let kill = Kill { signal: libc::SIGTERM, grace_ms: KILL_GRACE_MS, cause, uid, pid };
    kill_all(vec![proc.clone()], kill).await;
}

/// Returns the last lines that a server printed, for a message.
pub fn printed(proc: &Proc) -> String {
    let bound = tail_bound(Some(TAIL_LINES), usize::MAX, TAIL_BYTES);
    let tail = read_tail(proc, &proc.state(), bound, TextForm::PLAIN).map(|(text, _)| text).unwrap_or_default();
    match tail.trim() {
        "" => "it printed nothing".into(),
        text => format!("it printed last: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::mcp::HeaderSource;

    #[test]
    fn a_url_is_served_by_the_bridge_and_no_value_is_in_its_arguments() {
        let mut config = McpConfig::of_command(&["server", "x"]);
        assert_eq!(argv(&config, Path::new("/bin/toold-fetch")), ["server", "x"]);
        config.command.clear();
        config.url = Some("https://mcp.example.org/".into());
        config.headers.insert("X-Key".into(), HeaderSource { env: "KEY".into() });
        config.bearer_env = Some("TOKEN".into());
        let expected = "/bin/toold-fetch mcp https://mcp.example.org/ --header-env X-Key=KEY --bearer-env TOKEN";
        assert_eq!(argv(&config, Path::new("/bin/toold-fetch")).join(" "), expected);
    }

    #[test]
    fn the_digest_changes_with_the_program_and_not_with_the_list_of_tools() {
        let config = McpConfig::of_command(&["server"]);
        let of = |config: &McpConfig| digest(config, Path::new("/b"));
        assert_ne!(of(&config), of(&McpConfig::of_command(&["server", "-v"])));
        assert_ne!(of(&config), of(&McpConfig { cwd: Some("/srv".into()), ..config.clone() }));
        assert_eq!(of(&config), of(&McpConfig { tools: Some(Vec::new()), idle_ms: 1, ..config.clone() }));
    }
}
