//! The client that starts a process, as the record of the process names it.

use crate::proc::tree;
use std::collections::BTreeMap;
use toold_proto::process::StartedBy;

/// The label by which a client names itself.
const CLIENT_LABEL: &str = "client";
/// The most characters of a client's name: it is in every description of the process.
const MAX_CLIENT_CHARS: usize = 64;

/// Describes the client: by the name that it gives itself in a label, else by its program. A client in another pid namespace
/// has pid 0, and no program that can be named here.
pub fn started_by(labels: &BTreeMap<String, String>, uid: u32, pid: i32) -> Box<StartedBy> {
    let program = || Some(pid).filter(|pid| *pid > 0).map(tree::program);
    let client = labels.get(CLIENT_LABEL).cloned().or_else(program).filter(|name| !name.is_empty());
    let client = client.map(|name| name.chars().take(MAX_CLIENT_CHARS).collect());
    Box::new(StartedBy { client, pid, uid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_named_by_its_label_else_by_its_program() {
        let own = std::process::id() as i32;
        let named = |name: &str| BTreeMap::from([("client".to_owned(), name.to_owned())]);
        let client = |labels: &BTreeMap<String, String>, pid| started_by(labels, 7, pid).client;
        assert_eq!(
            *started_by(&named("nvim"), 7, own),
            StartedBy { client: Some("nvim".into()), pid: own, uid: 7 },
            "the label goes first"
        );
        assert_eq!(client(&BTreeMap::new(), own), Some(tree::program(own)));
        assert_eq!((client(&BTreeMap::new(), 0), client(&named(""), own)), (None, None));
        assert_eq!(client(&named(&"ü".repeat(100)), own), Some("ü".repeat(64)));
    }
}
