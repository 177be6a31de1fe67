//! The confinement of a process on the wire.

use super::handle::Proc;
use crate::store::sandbox::SandboxSpec;
use toold_proto::sandbox::{Denials, Sandbox};

impl Proc {
    /// Returns the report on its confinement.
    pub(super) fn sandbox_view(&self) -> Sandbox {
        self.spec.sandbox.as_deref().map_or_else(Sandbox::none, |spec| view(spec, self.denials(spec)))
    }
}

fn view(spec: &SandboxSpec, denials: Denials) -> Sandbox {
    let kind = if spec.by.namespaces.iter().any(|name| name == "mnt") { "namespaces" } else { "landlock" };
    Sandbox {
        kind: kind.into(),
        profile: Some(spec.profile.clone()),
        roots: Some(spec.roots.iter().map(|root| root.path.clone()).collect()),
        protect: Some(spec.protect.clone()),
        unprotected: Some(spec.unprotected.clone()),
        network: Some(spec.network),
        enforced: spec.enforced.iter().map(|measure| measure.name().into()).collect(),
        not_enforced: Some(spec.not_enforced.clone()),
        by: Some(spec.by.clone()),
        denials: Some(denials),
    }
}
