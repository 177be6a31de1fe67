//! Turns refused calls of a process into a profile and rules that a person can paste. Pure, and writes nothing.

use std::path::Path;
use toold_policy::{plain_commands, proposed_rules};
use toold_proto::sandbox::{Denials, Network, Sandbox};

/// The name of the suggested profile.
const PROFILE: &str = "suggested";

/// A change that would let a process do what it was refused.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Suggestion {
    pub denials: u64,
    pub roots: Vec<String>,
    pub network: Option<Network>,
    /// As text for the config.
    pub profile: Option<String>,
    /// As text for a rule file.
    pub rules: Option<String>,
}

/// Suggests a change for a process with these arguments. Nothing is suggested for one that was refused nothing.
pub fn suggest(sandbox: &Sandbox, argv: &[String]) -> Suggestion {
    let none = Denials::default();
    let denials = sandbox.denials.as_ref().unwrap_or(&none);
    let own = sandbox.roots.clone().unwrap_or_default();
    let mut roots = Vec::new();
    let mut network = None;
    for denial in &denials.list {
        match (&denial.path, &denial.address) {
            (_, Some(address)) => network = wider(network, needed(address)),
            (Some(path), None) => roots.extend(directory(path)),
            (None, None) => {}
        }
    }
    roots.sort();
    roots.dedup();
    let all = roots.clone();
    let is_inside = |root: &String, of: &String| root != of && Path::new(root).starts_with(of);
    roots.retain(|root| {
        !all.iter().any(|of| is_inside(root, of)) && !own.iter().any(|of| Path::new(root).starts_with(of))
    });
    if roots.is_empty() && network.is_none() {
        return Suggestion { denials: denials.count, ..Suggestion::default() };
    }
    let list = |paths: &[String]| format!("{paths:?}");
    let name = |network| match network {
        Network::Off => "off",
        Network::Loopback => "loopback",
        Network::Full => "full",
    };
    let kept = network.or(sandbox.network).unwrap_or(Network::Off);
    let profile = format!(
        "[profile.{PROFILE}]\nmode = \"workspace-write\"\nroots = {}\nnetwork = \"{}\"\n",
        list(&roots),
        name(kept)
    );
    let commands = match argv {
        [_, flag, text] if flag == "-c" || flag == "-lc" => plain_commands(text),
        argv => Some(vec![argv.to_vec()]),
    };
    let rules = commands.and_then(|commands| proposed_rules(&commands, Some(PROFILE)));
    let text =
        |rules: Vec<toold_policy::Rule>| rules.iter().map(toold_policy::Rule::to_toml).collect::<Vec<_>>().join("\n");
    Suggestion { denials: denials.count, roots, network, profile: Some(profile), rules: rules.map(text) }
}

/// The directory of a file, unless it is so high that a root there would be no boundary.
fn directory(path: &str) -> Option<String> {
    let dir = Path::new(path).parent()?;
    (dir.components().count() > 2).then(|| dir.display().to_string())
}

/// The network that an address needs.
fn needed(address: &str) -> Network {
    let is_local = ["127.", "[::1]", "::1", "localhost"].iter().any(|local| address.starts_with(local));
    if is_local { Network::Loopback } else { Network::Full }
}

fn wider(one: Option<Network>, other: Network) -> Option<Network> {
    match (one, other) {
        (Some(Network::Full), _) | (_, Network::Full) => Some(Network::Full),
        (_, Network::Loopback | Network::Off) => Some(Network::Loopback),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toold_proto::sandbox::RefusedCall;

    fn denial(path: Option<&str>, address: Option<&str>) -> RefusedCall {
        RefusedCall {
            op: "openat".into(),
            path: path.map(String::from),
            address: address.map(String::from),
            via: None,
            errno: 13,
            count: 1,
            first_at: "2026-11-17T00:00:00.000Z".into(),
        }
    }

    fn suggested(list: Vec<RefusedCall>, argv: &[&str]) -> Suggestion {
        let denials = Denials { count: list.len() as u64, list, ..Denials::default() };
        let roots = Some(vec!["/home/me/project".into()]);
        let sandbox = Sandbox { roots, network: Some(Network::Off), denials: Some(denials), ..Sandbox::none() };
        suggest(&sandbox, &argv.iter().map(|arg| arg.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn refused_writes_and_connections_become_a_profile_and_rules() {
        let list = vec![
            denial(Some("/home/me/.cargo/registry/x"), None),
            denial(Some("/home/me/.cargo/y"), None),
            denial(Some("/etc/passwd"), None),
            denial(None, Some("127.0.0.1:80")),
        ];
        let found = suggested(list, &["bash", "-lc", "cargo test && ls"]);
        assert_eq!((found.denials, &found.roots[..]), (4, &["/home/me/.cargo".to_string()][..]));
        let profile =
            "[profile.suggested]\nmode = \"workspace-write\"\nroots = [\"/home/me/.cargo\"]\nnetwork = \"loopback\"\n";
        assert_eq!(found.profile.as_deref(), Some(profile));
        let rules = found.rules.expect("rules");
        assert!(
            rules.contains("prefix = [\"cargo\", \"test\"]") && rules.contains("sandbox = \"suggested\""),
            "{rules}"
        );
        assert_eq!(suggested(vec![denial(None, Some("10.0.0.1:80"))], &["git"]).network, Some(Network::Full));
        assert_eq!(suggested(vec![denial(None, Some("10.0.0.1:80"))], &["git"]).rules, None, "too wide");
        assert_eq!(suggested(vec![], &["ls"]), Suggestion::default());
    }
}
