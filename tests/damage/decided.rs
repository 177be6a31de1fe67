//! Rounds with what people and their settings decide: approvals, grants, sessions, rules, patches, stages, refused calls. Patches
//! and stages are bound to the files that they change, so each round makes its own.
//!
//! Damage fails closed: a damaged approval starts nothing, a damaged grant allows nothing, a session with damaged settings runs
//! nothing, a damaged rule file asks, and a file has its old bytes or its new ones.

use crate::harm::{Damage, Random};
use crate::template::CONFIG;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use toold_test_support::rig::{Daemon, files, id};

const RULES: &str = "[[rule]]\nprefix = [\"curl\"]\nverdict = \"deny\"\nreason = \"no downloads\"\nmatch = [\"curl x\"]\n\n\
    [[rule]]\nprefix = [\"git\", \"push\"]\nverdict = \"ask\"\nreason = \"changes the remote\"\nmatch = [\"git push\"]\n";

/// Points in a patch at which the daemon is killed.
const POINTS: [&str; 4] = ["changes.prepared", "changes.first", "changes.renamed", "changes.committed"];

/// The kinds of files that a round can damage, by a part of their path.
pub const KINDS: [&str; 8] =
    ["/approvals/", "/grants/", "/sessions/", "/journal", "/before", "/stage/", "/denials", "/rules/"];

struct World {
    rig: Daemon,
    project: PathBuf,
    waiting: Value,
    kept: String,
    interrupted: &'static str,
    staged: String,
    digest: Value,
    refused: String,
}

impl World {
    fn build(random: &mut Random) -> World {
        let hooks = tempfile::tempdir().unwrap().keep();
        let mut rig = Daemon::prepare(CONFIG, &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
        let rules = rig.root().join("config/toold/rules");
        fs::create_dir_all(&rules).unwrap();
        fs::write(rules.join("10.toml"), RULES).unwrap();
        fs::set_permissions(rules.join("10.toml"), fs::Permissions::from_mode(0o644)).unwrap();
        rig.spawn();
        let project = rig.root().join("project");
        fs::create_dir(&project).unwrap();
        for name in ["kept", "i1", "i2"] {
            fs::write(project.join(name), "old\n").unwrap();
        }
        let tight = json!({ "session_key": "tight", "cwd": project, "sandbox": "read-only", "approval": "never" });
        rig.ok("session.configure", tight);
        let loose = json!({ "session_key": "loose", "cwd": project, "sandbox": "workspace-write" });
        rig.ok("session.configure", loose);
        let decide = |scope: &str| {
            let asked = rig.ok("approvals.list", json!({}))["approvals"][0].clone();
            let decision =
                json!({ "id": asked["id"], "decision": "approve", "scope": scope, "digest": asked["digest"] });
            rig.ok("approvals.decide", decision);
        };
        rig.ok("exec", removal(&project, "granted", "session"));
        decide("session");
        rig.ok("exec", removal(&project, "always", "session"));
        decide("always");
        let script = format!("rm -f none; echo ran >> {}", rig.root().join("ran").display());
        rig.ok("exec", json!({ "argv": ["/bin/sh", "-c", script], "cwd": "/", "approval_timeout_ms": 600_000 }));
        let waiting = rig.ok("approvals.list", json!({}))["approvals"][0].clone();
        let kept = rig.ok("patch.apply", patch(&project, &["kept"]))["patch_id"].as_str().unwrap().to_string();
        let stage = json!({ "argv": ["sh", "-c", "echo staged > staged"], "cwd": project, "stage": true });
        let staged = id(&rig.ok("exec", stage));
        rig.eventually("the stage is ready", || rig.process(&staged)["stage"]["state"] == "ready");
        let digest = rig.ok("stage.diff", json!({ "id": staged }))["digest"].clone();
        let touch = json!({ "argv": ["touch", "/etc/toold-damage"], "cwd": project, "sandbox": "read-only" });
        let refused = id(&rig.ok("exec", touch));
        rig.closed(&refused);
        let interrupted = *random.pick(&POINTS);
        fs::write(hooks.join(interrupted), "").unwrap();
        rig.conn().request("patch.apply", patch(&project, &["i1", "i2"]));
        rig.eventually("the patch is interrupted", || hooks.join(format!("{interrupted}.hit")).exists());
        rig.kill9();
        fs::remove_dir_all(&hooks).unwrap();
        World { rig, project, waiting, kept, interrupted, staged, digest, refused }
    }

    /// The files of a kind.
    fn files(&self, kind: &str) -> Vec<PathBuf> {
        let mut all = [files(&self.rig.state()), files(&self.rig.root().join("config/toold/rules"))].concat();
        // The content of a stage is that of the job: it is compared by the digest.
        all.retain(|file| file.to_str().unwrap().contains(kind) && !file.to_str().unwrap().contains("/stage/0/"));
        all.retain(|file| !file.to_str().unwrap().contains("/ready/"));
        all
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.project.join(name)).unwrap_or_else(|e| format!("({e})"))
    }
}

/// A call that asks for an approval, unless a grant or a rule covers it. `name` is the file that it removes.
fn removal(project: &Path, name: &str, session: &str) -> Value {
    json!({ "argv": ["rm", "-f", format!("/no/such/{name}")], "cwd": project, "session_key": session })
}

fn patch(project: &Path, names: &[&str]) -> Value {
    let update = |name: &&str| format!("*** Update File: {name}\n-old\n+new\n");
    let operations: String = names.iter().map(update).collect();
    json!({ "patch": format!("*** Begin Patch\n{operations}*** End Patch\n"), "cwd": project })
}

/// The content of a file, whatever it is.
fn look(path: &Path) -> Option<Vec<u8>> {
    let found = fs::symlink_metadata(path).ok()?;
    if found.is_file() { fs::read(path).ok() } else { None }
}

/// Makes a state, kills the daemon in a patch, damages one file of a kind, starts a daemon and compares.
pub fn round(kind: &str, damage: Damage, mut random: Random) -> Result<(), String> {
    let mut world = World::build(&mut random);
    let all = world.files(kind);
    if all.is_empty() {
        return Err(format!("no file of the kind {kind}"));
    }
    let path = random.pick(&all).clone();
    let before = look(&path);
    let done = damage.apply(&path, &mut random);
    let name = path.strip_prefix(world.rig.root()).unwrap().display().to_string();
    let what = format!("{name}, a patch interrupted at {}: {done}", world.interrupted);
    if before.is_some() && look(&path) == before {
        return Ok(());
    }
    let restarts = random.below(4) == 0;
    let ran = catch_unwind(AssertUnwindSafe(|| {
        world.rig.spawn();
        if restarts {
            world.rig.restart();
        }
        faults(&world, &name, damage, restarts)
    }));
    match ran {
        Ok(faults) if faults.is_empty() => Ok(()),
        Ok(faults) => {
            let info = world.rig.ok("daemon.info", json!({}));
            Err(format!("{what}:\n  {}\n  reported: {} {}", faults.join("\n  "), info["damaged"], info["policy"]))
        }
        Err(panic) => {
            world.rig.marked().iter().for_each(|process| process.signal(libc::SIGKILL));
            Err(format!("{what}: {}", crate::panic_text(panic.as_ref())))
        }
    }
}

/// Returns everything that the damage of this file must not have done.
fn faults(world: &World, file: &str, damage: Damage, restarted: bool) -> Vec<String> {
    let rig = &world.rig;
    let info = rig.ok("daemon.info", json!({}));
    let (damaged, errors) = (&info["damaged"], &info["policy"]["errors"]);
    let is_reported = damaged.as_array().is_some_and(|all| !all.is_empty());
    let has_bad_rules = errors.as_array().is_some_and(|all| !all.is_empty());
    let is = |part: &str| file.contains(part);
    let mut faults = Vec::new();
    // Nothing is left that could be missed; a rule file may still hold; the others are read when they are used. What the first
    // start has set aside, the second does not find.
    let is_read_later = is("/rules/") || is("/before") || is("/stage/") || is(&world.kept);
    if damage != Damage::Remove && !is_read_later && !restarted && !is_reported {
        faults.push("`daemon.info` reports nothing".into());
    }
    if is_reported && is("/rules/") {
        faults.push(format!("a rule file is not a part of the state: {damaged}"));
    }
    waiting(world, is(world.waiting["id"].as_str().unwrap()), &mut faults);

    let grant =
        rig.call("exec", with(removal(&world.project, "granted", "session"), json!({ "approval_timeout_ms": 0 })));
    match (is("/grants/"), &grant) {
        (true, Ok(process)) => faults.push(format!("a damaged grant allows: {process}")),
        (false, Err(error)) if !has_bad_rules => faults.push(format!("a grant is gone: {error}")),
        _ => {}
    }
    let always =
        rig.call("exec", with(removal(&world.project, "always", "other"), json!({ "approval_timeout_ms": 0 })));
    if let (false, Err(error)) = (is("/rules/"), &always) {
        faults.push(format!("an approved rule is gone: {error}"));
    }
    let verdict = rig.ok("policy.check", json!({ "argv": ["curl", "x"] }))["verdict"].clone();
    if (!is("/rules/10.toml") && verdict != "deny") || (has_bad_rules && verdict == "allow") {
        faults.push(format!("curl: {verdict}"));
    }
    sessions(world, is("/sessions/"), has_bad_rules || (is("/sessions/") && damage == Damage::Remove), &mut faults);
    changes(world, is(&world.kept), is("/changes/") && !is(&world.kept), &mut faults);
    stage(world, is("/stage/"), &mut faults);

    let denials = rig.process(&world.refused)["sandbox"]["denials"].clone();
    let is_damaged = denials["count"] == 0 && (damage == Damage::Remove || denials["observed"] == json!([]));
    if (is("/denials") && !is_damaged) || (!is("/denials") && denials["count"] != 1) {
        faults.push(format!("refused calls: {denials}"));
    }
    if !has_bad_rules && rig.run("echo a new process")["exit_code"] != 0 {
        faults.push("a new process does not run".into());
    }
    faults
}

fn with(mut call: Value, more: Value) -> Value {
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call
}

/// The question that waits: answered, it starts its process once. Damaged, it starts nothing.
fn waiting(world: &World, is_damaged: bool, faults: &mut Vec<String>) {
    let (rig, ran) = (&world.rig, world.rig.root().join("ran"));
    let process = world.waiting["process"].as_str().unwrap();
    if ran.exists() {
        faults.push("a process ran before it was approved".into());
    }
    if is_damaged {
        let now = rig.process(process);
        if (&now["status"], &now["reason"]) != (&json!("exited"), &json!("denied")) {
            faults.push(format!("the process of a damaged approval: {now}"));
        }
        return;
    }
    let decision = json!({ "id": world.waiting["id"], "decision": "approve", "digest": world.waiting["digest"] });
    if let Err(error) = rig.call("approvals.decide", decision) {
        faults.push(format!("an approval is gone: {error}"));
        return;
    }
    rig.closed(process);
    if fs::read_to_string(&ran).unwrap_or_default() != "ran\n" {
        faults.push("an approved process did not run once".into());
    }
}

/// Sessions whose settings are damaged run nothing. With damaged rules every call asks; that a file is gone cannot be known.
fn sessions(world: &World, is_damaged: bool, is_unknown: bool, faults: &mut Vec<String>) {
    let rig = &world.rig;
    let touch = |session: &str| {
        let call = json!({ "argv": ["touch", world.project.join(session)], "cwd": world.project, "session_key": session, "approval_timeout_ms": 0 });
        rig.call("exec", call).map(|started| rig.closed(&id(&started))["exit_code"] == 0)
    };
    let (tight, loose) = (touch("tight"), touch("loose"));
    if is_damaged && is_unknown {
        return;
    }
    if tight == Ok(true) || world.project.join("tight").exists() {
        faults.push("a session wrote that may not".into());
    }
    if !is_damaged && !is_unknown && (tight != Ok(false) || loose != Ok(true)) {
        faults.push(format!("sessions have lost their settings: {tight:?} {loose:?}"));
    }
    let refused = [&tight, &loose].into_iter().filter(|answer| answer.is_err()).count();
    if is_damaged && refused != 1 {
        faults.push(format!("one session is damaged: {tight:?} {loose:?}"));
    }
}

/// Files of patches: old bytes or new ones, in all files unless a journal is damaged.
fn changes(world: &World, is_kept_damaged: bool, is_damaged: bool, faults: &mut Vec<String>) {
    let reverted = world.rig.call("patch.revert", json!({ "patch_id": world.kept }));
    match (reverted.is_ok(), world.text("kept").as_str()) {
        (true, "old\n") => {}
        (false, "new\n") if is_kept_damaged => {}
        (_, text) => faults.push(format!("a kept patch: {reverted:?}, {text:?}")),
    }
    let texts = (world.text("i1"), world.text("i2"));
    let is_whole = |text: &str| text == "old\n" || text == "new\n";
    if !is_whole(&texts.0) || !is_whole(&texts.1) || (!is_damaged && texts.0 != texts.1) {
        faults.push(format!("an interrupted patch: {texts:?}"));
    }
    let left = files(&world.project).into_iter().find(|file| file.to_str().unwrap().contains("/.toold-"));
    if let (false, Some(left)) = (is_damaged || is_kept_damaged, left) {
        faults.push(format!("left over: {}", left.display()));
    }
}

/// A stage is committed as it was seen, or refused; it can always be discarded.
fn stage(world: &World, is_damaged: bool, faults: &mut Vec<String>) {
    let call = json!({ "id": world.staged, "digest": world.digest });
    match (world.rig.call("stage.commit", call), world.text("staged").as_str()) {
        (Ok(_), "staged\n") => {}
        (Err(_), text) if is_damaged && text != "staged\n" => {
            if let Err(error) = world.rig.call("stage.discard", json!({ "id": world.staged })) {
                faults.push(format!("a damaged stage cannot be discarded: {error}"));
            }
        }
        (answer, text) => faults.push(format!("a stage: {answer:?}, {text:?}")),
    }
}
