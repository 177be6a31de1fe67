//! Turns refused calls of a process into a profile and rules that a person can paste. Writes nothing.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use toold_policy::{plain_commands, proposed_rules, shell_text};
use toold_proto::sandbox::{Denials, Network, Sandbox};

/// The name of the suggested profile.
const PROFILE: &str = "suggested";
/// Directories of the kernel: a root there is no way to allow a write.
const KERNEL_DIRS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A change that would let a process do what it was refused.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Suggestion {
    pub denials: u64,
    pub roots: Vec<String>,
    pub network: Option<Network>,
    pub unix_sockets: Vec<String>,
    /// As text for the config.
    pub profile: Option<String>,
    /// As text for a rule file.
    pub rules: Option<String>,
}

/// A process, and what of the disk decides whether a directory can be a root.
pub struct RefusedProcess<'a> {
    pub sandbox: &'a Sandbox,
    pub argv: &'a [String],
    pub cwd: &'a str,
    /// Paths that no root may be in.
    pub hide: &'a [PathBuf],
    pub is_dir: &'a dyn Fn(&Path) -> bool,
}

/// Suggests a change for a process. Nothing is suggested for one that was refused nothing.
pub fn suggest(process: &RefusedProcess<'_>) -> Suggestion {
    let RefusedProcess { sandbox, argv, cwd, .. } = *process;
    let none = Denials::default();
    let denials = sandbox.denials.as_ref().unwrap_or(&none);
    let own = sandbox.roots.clone().unwrap_or_default();
    let (mut roots, mut network, mut unix_sockets) = (Vec::new(), None, Vec::new());
    for denial in &denials.list {
        match (&denial.path, &denial.address) {
            (_, Some(path)) if path.starts_with('/') => unix_sockets.push(path.clone()),
            (_, Some(address)) => network = wider(network, needed(address)),
            (Some(path), None) => roots.extend(process.directory(path)),
            (None, None) => {}
        }
    }
    unix_sockets.sort();
    unix_sockets.dedup();
    roots.sort();
    roots.dedup();
    let all = roots.clone();
    let is_inside = |root: &String, of: &String| root != of && Path::new(root).starts_with(of);
    roots.retain(|root| {
        !all.iter().any(|of| is_inside(root, of)) && !own.iter().any(|of| Path::new(root).starts_with(of))
    });
    if roots.is_empty() && network.is_none() && unix_sockets.is_empty() {
        return Suggestion { denials: denials.count, ..Suggestion::default() };
    }
    let name = |network| match network {
        Network::Off => "off",
        Network::Loopback => "loopback",
        Network::Full => "full",
    };
    // What it had, it keeps. The working directory is a root of any call.
    let kept: Vec<&String> = own.iter().filter(|root| *root != cwd).chain(&roots).collect();
    let mode = if own.is_empty() && roots.is_empty() { "read-only" } else { "workspace-write" };
    let mut profile = format!("[profile.{PROFILE}]\nmode = \"{mode}\"\n");
    if mode == "workspace-write" {
        profile += &format!("roots = {}\n", list(&kept));
    }
    profile += &format!("network = \"{}\"\n", name(network.or(sandbox.network).unwrap_or(Network::Off)));
    if !unix_sockets.is_empty() {
        profile += &format!("unix_sockets = {}\n", list(&unix_sockets.iter().collect::<Vec<_>>()));
    }
    let commands = match shell_text(argv) {
        Some(text) => plain_commands(text),
        None => Some(vec![argv.to_vec()]),
    };
    let rules = commands.and_then(|commands| proposed_rules(&commands, Some(PROFILE)));
    let text =
        |rules: Vec<toold_policy::Rule>| rules.iter().map(toold_policy::Rule::to_toml).collect::<Vec<_>>().join("\n");
    let (denials, profile) = (denials.count, Some(profile));
    Suggestion { denials, roots, network, unix_sockets, profile, rules: rules.map(text) }
}

/// A list of paths as TOML.
fn list(paths: &[&String]) -> String {
    toml::Value::Array(paths.iter().map(|path| toml::Value::String(path.to_string())).collect()).to_string()
}

impl RefusedProcess<'_> {
    /// The nearest directory of a file that is there, unless it is so high that a root there would be no boundary, or no root
    /// can be there.
    fn directory(&self, path: &str) -> Option<String> {
        let dir = Path::new(path).ancestors().skip(1).find(|dir| (self.is_dir)(dir))?;
        let is_below = |above: &Path| dir.starts_with(above);
        let is_refused = self.hide.iter().any(|hidden| is_below(hidden) || hidden.starts_with(dir))
            || KERNEL_DIRS.iter().any(|above| is_below(Path::new(above)));
        (dir.components().count() > 2 && !is_refused).then(|| dir.display().to_string())
    }
}

/// The network that an address needs.
fn needed(address: &str) -> Network {
    let ip = address.parse::<SocketAddr>().map(|address| address.ip().to_canonical());
    let is_local = ip.is_ok_and(|ip: IpAddr| ip.is_loopback() || ip.is_unspecified());
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
        suggest(&RefusedProcess {
            sandbox: &sandbox,
            argv: &argv.iter().map(|arg| arg.to_string()).collect::<Vec<_>>(),
            cwd: "/home/me/project",
            hide: &["/home/me/.ssh".into()],
            is_dir: &|dir| !dir.ends_with("absent"),
        })
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

    #[test]
    fn a_suggestion_can_be_pasted_whatever_was_refused() {
        // Each of these was a profile that no call could use, or one that was too wide.
        let roots = |path: &str| suggested(vec![denial(Some(path), None)], &["touch"]).roots;
        assert_eq!(roots("/srv/data/absent/file"), ["/srv/data"], "a root must be there");
        for path in ["/home/me/.ssh/known_hosts", "/home/me/x", "/proc/sys/kernel/x", "/sys/a/b", "/dev/shm/a/b"] {
            assert_eq!(roots(path), [""; 0], "{path}");
        }
        let socket = suggested(vec![denial(None, Some("/run/docker.sock"))], &["docker", "ps"]);
        assert_eq!((socket.network, &socket.unix_sockets[..]), (None, &["/run/docker.sock".to_string()][..]));
        assert!(socket.profile.is_some_and(|text| text.contains("unix_sockets = [\"/run/docker.sock\"]")));
        for local in ["127.0.0.1:80", "[::1]:80", "0.0.0.0:80", "[::ffff:127.0.0.1]:80"] {
            assert_eq!(suggested(vec![denial(None, Some(local))], &["nc"]).network, Some(Network::Loopback), "{local}");
        }
        let counted = suggested(vec![denial(Some("/srv/data/x"), None)], &["grep", "-c", "needle"]).rules;
        assert!(counted.is_some_and(|rules| rules.contains("[\"grep\", \"-c\", \"needle\"]")), "grep is not a shell");
    }
}
