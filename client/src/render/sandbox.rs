//! The confinement of a process, as text.

use super::text::{count, escape_control};
use toold_proto::process::Process;
use toold_proto::sandbox::{Denials, Mechanisms, Network, RefusedCall, Sandbox};
use toold_proto::sandbox_probe::SandboxProbeResult;

/// The width of the titles of `why`.
const TITLE_WIDTH: usize = 14;

/// Returns one line about the confinement: for `inspect`.
pub fn summary(sandbox: &Sandbox) -> String {
    let Some(profile) = &sandbox.profile else {
        let enforced = sandbox.enforced.join(", ");
        return if enforced.is_empty() { sandbox.kind.clone() } else { format!("{}: {enforced}", sandbox.kind) };
    };
    let refused = sandbox.denials.as_ref().map_or(0, |denials| denials.count);
    let refused = if refused == 0 { String::new() } else { format!("; {} refused, see `why`", count(refused, "call")) };
    let missing: Vec<&str> = sandbox.not_enforced.iter().flatten().map(|one| one.what.name()).collect();
    let missing = if missing.is_empty() { String::new() } else { format!("; not {}", missing.join(", ")) };
    format!("{profile}, network {}{missing}{refused}", network(sandbox.network))
}

fn network(network: Option<Network>) -> &'static str {
    match network {
        Some(Network::Off) => "off",
        Some(Network::Loopback) => "loopback",
        Some(Network::Full) | None => "full",
    }
}

/// Returns what confined a process, and what it was refused.
pub fn why(process: &Process) -> String {
    let (id, sandbox) = (process.id, &process.sandbox);
    let Some(profile) = &sandbox.profile else { return format!("{id} had no sandbox\n") };
    let by = sandbox.by.as_ref().map(mechanisms).unwrap_or_default();
    let mut out = format!("{id} ran in the sandbox {profile}: {by}\n");
    let list = |title: &str, values: &Option<Vec<String>>, out: &mut String| lines(title, values.iter().flatten(), out);
    list("Writes in", &sandbox.roots, &mut out);
    list("Protected", &sandbox.protect, &mut out);
    list("Unprotected", &sandbox.unprotected, &mut out);
    lines("Network", [&network(sandbox.network).to_string()].into_iter(), &mut out);
    lines("Enforced", [&sandbox.enforced.join(", ")].into_iter(), &mut out);
    let missing: Vec<String> =
        sandbox.not_enforced.iter().flatten().map(|one| format!("{}: {}", one.what.name(), one.why)).collect();
    lines("Not enforced", missing.iter(), &mut out);
    lines("Refused", sandbox.denials.iter().flat_map(refusals).collect::<Vec<_>>().iter(), &mut out);
    out
}

fn mechanisms(by: &Mechanisms) -> String {
    let namespaces = (!by.namespaces.is_empty()).then(|| format!("namespaces {}", by.namespaces.join(", ")));
    let landlock = by.landlock.map(|version| format!("Landlock {version}"));
    let filter = by.seccomp.then(|| "a filter of system calls".to_string());
    namespaces.into_iter().chain(landlock).chain(filter).collect::<Vec<_>>().join("; ")
}

fn refusals(denials: &Denials) -> Vec<String> {
    let (seen, unseen) = (denials.observed.join(" and "), denials.unknown.join(" and "));
    let seen = match (seen.is_empty(), unseen.is_empty()) {
        (true, _) => "nothing is seen".to_string(),
        (false, true) => format!("{seen} are seen"),
        (false, false) => format!("{seen} are seen, {unseen} is not"),
    };
    let head = format!("{}; {seen}", count(denials.count, "call"));
    std::iter::once(head).chain(denials.list.iter().map(refusal)).collect()
}

fn refusal(denial: &RefusedCall) -> String {
    let target = denial.path.as_deref().or(denial.address.as_deref()).unwrap_or("-");
    let via = denial.via.as_ref().map(|via| format!(", by the link {via}")).unwrap_or_default();
    let error = error_name(denial.errno);
    let times = if denial.count > 1 { format!(" ({} times)", denial.count) } else { String::new() };
    format!("{} {target}{via}: {error}{times}", denial.op)
}

/// Returns the text of an error number, without the number.
pub fn error_name(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

pub(super) fn lines<'a>(title: &str, values: impl Iterator<Item = &'a String>, out: &mut String) {
    for (at, value) in values.enumerate() {
        let title = if at == 0 { title } else { "" };
        out.push_str(&format!("{title:TITLE_WIDTH$}{}\n", escape_control(value)));
    }
}

/// Returns the result of a check.
pub fn probe(result: &SandboxProbeResult) -> String {
    let mut out = String::new();
    for tried in &result.mechanisms {
        let name = &tried.mechanism;
        if !tried.available {
            let why = tried.why.as_deref().unwrap_or("no reason");
            out.push_str(&format!("{name}: not available: {}\n", escape_control(why)));
            continue;
        }
        out.push_str(&format!("{name}: {}\n", tried.by.as_ref().map(mechanisms).unwrap_or_default()));
        for act in result.acts.iter().filter(|act| act.mechanism == *name) {
            let (finding, remark) = match (act.expected.as_str(), act.got.as_str()) {
                (_, "refused") => ("refused", ""),
                ("refused", "done") => ("GAP", ""),
                (_, "done") => ("possible", " (not enforced by this mechanism)"),
                _ => ("unknown", ""),
            };
            out.push_str(&format!("  {finding:8} {}{remark}\n", act.act));
        }
    }
    let gaps = if result.gaps.is_empty() { "no gaps".into() } else { count(result.gaps.len() as u64, "gap") };
    out + &gaps + "\n"
}
