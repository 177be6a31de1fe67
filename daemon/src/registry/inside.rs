//! Finds out whether a client is a process of a job. Being below a shim of this daemon is the proof: other programs confine
//! their processes too. From inside a sandbox every call is refused; from inside any job those that a person has to make.

use super::Registry;
use crate::disk::on_disk;
use crate::proc::Proc;
use crate::proc::client::Client;
use crate::proc::tree;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use toold_proto::ProcId;
use toold_proto::event::InsideRefused;

/// The most events about refused clients of one process, while this daemon runs.
const MAX_EVENTS: u32 = 20;

/// The place of a client.
#[derive(Clone)]
pub enum Inside {
    /// It is in no job.
    No,
    /// It is a process of this job. None: of one whose shim is dead or not known yet.
    Job(Option<Arc<Proc>>),
    /// It is a process of this job, which is in a sandbox.
    Sandbox(Option<Arc<Proc>>),
    /// It has ended, so its place cannot be known.
    Unknown,
}

/// A client that has ended, so its place cannot be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownClient;

/// The facts about sandboxes and scripts that a new connection needs.
#[derive(Default)]
pub struct InsideState {
    /// A process in a sandbox may run.
    has_sandboxes: AtomicBool,
    /// A script may run.
    has_scripts: AtomicBool,
    refused: Mutex<HashMap<ProcId, u32>>,
}

impl Registry {
    /// Notes that this process may run from now on.
    pub(super) fn note_sandbox(&self, proc: &Proc) {
        if proc.spec.sandbox.is_some() {
            self.inside.has_sandboxes.store(true, Relaxed);
        }
    }

    /// Notes that a script may run from now on.
    pub fn note_script(&self) {
        self.inside.has_scripts.store(true, Relaxed);
    }

    /// Returns the place of a new client if it must not make any call: it is in a sandbox, or that cannot be ruled out. Costs
    /// nothing while no process is in a sandbox, and else one look at a client that is not confined.
    pub fn sandboxed_client(&self, client: Client) -> Option<Inside> {
        if !self.inside.has_sandboxes.load(Relaxed) || client.is_foreign() {
            return None;
        }
        match client.is_confined() {
            Some(false) => None,
            Some(true) => {
                Some(self.inside(client)).filter(|inside| matches!(inside, Inside::Sandbox(_) | Inside::Unknown))
            }
            None => Some(Inside::Unknown),
        }
    }

    /// Returns the place of a client. The strictest counts: a job may have started another one's program.
    pub fn inside(&self, client: Client) -> Inside {
        if client.is_foreign() {
            return Inside::No;
        }
        let Some(ancestors) = client.ancestors() else { return Inside::Unknown };
        let mut jobs = self.jobs_of(&ancestors);
        jobs.sort_by_key(|(at, _)| *at);
        if let Some((_, sandboxed)) = jobs.iter().find(|(_, proc)| proc.spec.sandbox.is_some()) {
            return Inside::Sandbox(Some(sandboxed.clone()));
        }
        if let Some((_, nearest)) = jobs.into_iter().next() {
            return Inside::Job(Some(nearest));
        }
        // Nothing but shims and what they left is below these.
        let own = std::process::id() as i32;
        let is_ours = |pid: &i32| *pid == own || self.launcher.has_zygote(*pid);
        if client.pid != own && ancestors.iter().any(is_ours) {
            let may_be_sandboxed = self.inside.has_sandboxes.load(Relaxed) && client.is_confined() != Some(false);
            return if may_be_sandboxed { Inside::Sandbox(None) } else { Inside::Job(None) };
        }
        Inside::No
    }

    /// Returns true if the client is a process of the tree of exactly this process. False if it cannot be known.
    pub fn is_inside(&self, client: Client, proc: &Proc) -> bool {
        let Some(ancestors) = client.ancestors() else { return false };
        let state = proc.published_state();
        // The shim of a process that has ended serves another one, and reports the end of the first a moment later.
        let serves_it = |pid: i32| match tree::id_of_shim(pid) {
            Some(id) => id == proc.spec.id,
            // It shows no title. A shim that waits has no process below it.
            None => state.shim_pid > 0,
        };
        // A program may run before its shim has reported that.
        let is_shim = |pid: i32| (state.shim_pid == 0 || pid == state.shim_pid) && serves_it(pid);
        !state.is_final() && ancestors.into_iter().any(is_shim)
    }

    /// Returns true if a script may run.
    pub fn has_scripts(&self) -> bool {
        self.inside.has_scripts.load(Relaxed)
    }

    /// Returns the script that a client is a process of: the nearest, if there are several. Costs nothing while no script has run.
    pub fn script_of(&self, client: Client) -> Result<Option<Arc<Proc>>, UnknownClient> {
        if !self.has_scripts() || client.is_foreign() {
            return Ok(None);
        }
        let mut jobs = self.jobs_of(&client.ancestors().ok_or(UnknownClient)?);
        jobs.sort_by_key(|(at, _)| *at);
        Ok(jobs.into_iter().map(|(_, proc)| proc).find(|proc| proc.spec.script.is_some()))
    }

    /// Returns the processes whose shims are among these, each with the place of the shim.
    fn jobs_of(&self, ancestors: &[i32]) -> Vec<(usize, Arc<Proc>)> {
        let table = self.table();
        let by_pid = table.newest_first().filter_map(|proc| {
            let state = proc.published_state();
            let shim = state.shim_pid;
            let at = ancestors.iter().position(|pid| *pid == shim).filter(|_| shim > 0 && !state.is_final())?;
            Some((at, proc.clone()))
        });
        let mut jobs: Vec<_> = by_pid.collect();
        // A program may run before its shim has reported that.
        let by_title = |(at, pid): (usize, &i32)| Some((at, table.get(tree::id_of_shim(*pid)?)?));
        jobs.extend(
            ancestors.iter().enumerate().filter_map(by_title).filter(|(_, proc)| proc.published_state().shim_pid == 0),
        );
        jobs
    }

    /// Publishes that a client inside a job was refused `what`. Not more than a few times for a process.
    pub fn report_refused(&self, inside: &Inside, client: Client, what: &str) {
        let (Inside::Job(Some(proc)) | Inside::Sandbox(Some(proc))) = inside else { return };
        tracing::warn!(id = %proc.spec.id, pid = client.pid, what, "refused a client inside a job");
        let Ok(mut refused) = self.inside.refused.lock() else { return };
        let count = refused.entry(proc.spec.id).or_default();
        *count = count.saturating_add(1);
        if *count > MAX_EVENTS {
            return;
        }
        let event = InsideRefused {
            name: proc.spec.name.clone(),
            pid: client.pid,
            program: tree::program(client.pid),
            sandboxed: matches!(inside, Inside::Sandbox(_)),
            what: what.into(),
        };
        let proc = proc.clone();
        tokio::spawn(on_disk(async move {
            if let Err(e) = proc.publish_event(&event, |_| {}) {
                tracing::error!(id = %proc.spec.id, %e, "failed to store an event");
            }
        }));
    }
}
