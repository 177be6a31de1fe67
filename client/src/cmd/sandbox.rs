//! `sandbox`: checks the sandbox of this machine.

use super::Context;
use crate::error::{CliError, DONE, FAILED};
use crate::render::sandbox;
use toold_proto::{api, params};

pub fn run(cx: &mut Context<'_>) -> Result<u8, CliError> {
    let raw = cx.connection.call_raw_with_retry::<api::SandboxProbe>(|_| params::Empty {})?;
    let result = cx.show::<api::SandboxProbe>(&raw, |result, _| sandbox::probe(result))?;
    Ok(if result.gaps.is_empty() { DONE } else { FAILED })
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply};
    use serde_json::json;

    #[test]
    fn acts_are_a_table_and_a_gap_is_an_exit_code() {
        let act = |mechanism: &str, act: &str, expected: &str, got: &str| json!({"mechanism": mechanism, "act": act, "measure": "fs_write", "expected": expected, "got": got});
        let by = json!({"landlock": 7, "seccomp": true, "namespaces": ["user", "mnt", "net"]});
        let auto = json!({"mechanism": "auto", "available": true, "why": null, "by": by});
        let landlock = json!({"mechanism": "landlock", "available": false, "why": "no Landlock", "by": null});
        let gap = act("auto", "mount", "refused", "done");
        let acts =
            [act("auto", "write", "refused", "refused"), act("auto", "chmod", "not_enforced", "done"), gap.clone()];
        let result = json!({"at": "2026-11-17T20:00:00Z", "mechanisms": [auto, landlock], "acts": acts, "gaps": [gap]});
        let fake = FakeDaemon::start(vec![vec![Reply::result(result)]]);
        let expected = "auto: namespaces user, mnt, net; Landlock 7; a filter of system calls\n\
            \x20 refused  write\n\
            \x20 possible chmod (not enforced by this mechanism)\n\
            \x20 GAP      mount\n\
            landlock: not available: no Landlock\n\
            1 gap\n";
        assert_eq!(test_run(&fake, &["sandbox"]), (1, expected.into(), String::new()));
    }
}
