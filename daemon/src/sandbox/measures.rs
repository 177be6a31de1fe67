//! The measures of a confinement: which a plan asks for, and which a wall enforces.

use super::plan::{Measure, Network, Plan};
use super::ruleset;
use super::wall::{Wall, Walls};
use toold_proto::sandbox::{Mechanisms, NotEnforced};

impl Walls {
    /// Lists the mechanisms of a wall.
    pub(super) fn mechanisms(&self, wall: &Wall) -> Mechanisms {
        let has_net = wall.session.as_ref().is_some_and(|session| session.net.is_some());
        let namespaces = [
            ("user", wall.session.is_some()),
            ("mnt", wall.mounts.is_some()),
            ("net", has_net),
            ("ipc", wall.session.is_some()),
        ];
        Mechanisms {
            landlock: wall.ruleset.as_ref().map(|_| self.landlock),
            seccomp: true,
            namespaces: namespaces.into_iter().filter(|(_, has)| *has).map(|(name, _)| name.to_string()).collect(),
        }
    }

    /// Lists what a wall enforces of a plan, and what it does not.
    pub(super) fn measures(&self, plan: &Plan, wall: &Wall) -> (Vec<Measure>, Vec<NotEnforced>) {
        let (has_mounts, has_landlock) = (wall.mounts.is_some(), wall.ruleset.is_some());
        let no_mounts = || wall.refused.clone().unwrap_or_default();
        let no_scope = || match has_landlock {
            true => format!("version {} of Landlock has no scopes", self.landlock),
            false => "Landlock is not used".to_string(),
        };
        let has_scopes = has_landlock && self.landlock >= ruleset::SCOPE_VERSION;
        let (mut enforced, mut not_enforced) = (Vec::new(), Vec::new());
        for what in wanted(plan) {
            let missing = match what {
                Measure::FsWrite if has_mounts || self.landlock >= ruleset::TRUNCATE_VERSION => None,
                Measure::FsWrite => Some(format!("version {} of Landlock lets a job truncate files", self.landlock)),
                Measure::FsMetadata | Measure::Protect | Measure::Hide | Measure::Tmp | Measure::UnixSockets => {
                    (!has_mounts).then(no_mounts)
                }
                Measure::Loopback => (!has_mounts).then(|| format!("{}; there is no network at all", no_mounts())),
                // Without a namespace the filter refuses every socket of the network.
                Measure::Network | Measure::Setuid => None,
                Measure::AbstractSockets => {
                    let has_net = wall.session.as_ref().is_some_and(|session| session.net.is_some());
                    (!has_net && !has_scopes).then(no_scope)
                }
                Measure::Signals => (!has_scopes).then(no_scope),
                Measure::Ptrace => (!has_mounts && !has_landlock).then(no_mounts),
            };
            match missing {
                None => enforced.push(what),
                Some(why) => not_enforced.push(NotEnforced { what, why }),
            }
        }
        (enforced, not_enforced)
    }
}

/// Returns the measures that a plan asks for.
pub(super) fn wanted(plan: &Plan) -> impl Iterator<Item = Measure> {
    let network = plan.network;
    Measure::ALL.iter().copied().filter(move |what| match what {
        Measure::Network => network != Network::Full,
        Measure::Loopback => network == Network::Loopback,
        _ => true,
    })
}
