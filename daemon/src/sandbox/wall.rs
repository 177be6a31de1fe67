//! Walls: what confines a job, made once for all jobs of the same plan and kept while it is used.

use super::measures::wanted;
use super::namespaces::{self, MakeError, MountNamespaces, SessionNamespaces};
use super::plan::{Measure, Network, Plan};
use super::ruleset;
use super::staged::{self, Overlay};
use crate::backend::Launcher;
use crate::config::policy::Mechanism;
use crate::store::stage::FreshStage;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use toold_format::launch::StringListBuf;
use toold_format::sandbox::{FileId, MountListBuf, NetworkFilter, SandboxBlock, SandboxFds};
use toold_format::step;
use toold_proto::sandbox::{Mechanisms, NotEnforced};
use toold_shim::sandbox::landlock;
use toold_shim::sys::MountWatch;

/// Time that a wall is kept after the end of its last job.
const KEEP: Duration = Duration::from_secs(10);
/// Time for which a machine that gave no namespaces is not asked again.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// The place at which a job expects a directory for temporary files.
pub const PRIVATE_TMP: &str = "/tmp";

/// A confinement that is ready for a launch.
pub struct Prepared {
    /// The sandbox block of the launch.
    pub block: Vec<u8>,
    /// The descriptors beside it.
    pub fds: Vec<Arc<OwnedFd>>,
    pub enforced: Vec<Measure>,
    pub not_enforced: Vec<NotEnforced>,
    pub by: Mechanisms,
    /// The private directory as the job sees it: `/tmp`, or where it could not be put there, its own place.
    pub tmpdir: PathBuf,
    /// Held while the program runs.
    pub lease: Lease,
    /// The stage on which it runs. Its directory moves to that of the process.
    pub stage: Option<FreshStage>,
}

/// The report on a job that would start now. Nothing of it is held.
pub struct Measured {
    pub enforced: Vec<Measure>,
    pub not_enforced: Vec<NotEnforced>,
    pub by: Mechanisms,
}

/// The reason why a job cannot be confined by its plan.
#[derive(Debug)]
pub enum Unavailable {
    /// This machine cannot enforce these measures, which the plan requires.
    NotEnforced(Vec<NotEnforced>),
    /// Something of the plan is not as it was judged, or could not be mounted.
    Failed(MakeError),
    /// A stage needs namespaces, and this is the reason why there are none.
    NoStage(String),
}

/// Prepares confinements.
pub struct Walls {
    pub(super) launcher: Arc<Launcher>,
    mechanism: Mechanism,
    /// 0: not used.
    pub(super) landlock: u32,
    cache: Arc<Mutex<Cache>>,
    /// Held while a wall is made, so that two jobs of one session get the same network.
    pub(super) making: tokio::sync::Mutex<()>,
    /// The reason why this machine gives no namespaces, and when it was seen.
    refused: Mutex<Option<(Instant, String)>>,
}

/// The namespaces and rules that confine the jobs of a plan.
#[derive(Default)]
pub(super) struct Wall {
    pub session: Option<Arc<SessionNamespaces>>,
    pub mounts: Option<MountNamespaces>,
    pub ruleset: Option<Arc<OwnedFd>>,
    /// Paths that are masked.
    masked: StringListBuf,
    /// Paths in them that stay in reach.
    reachable: StringListBuf,
    /// The reason why there are no namespaces.
    pub refused: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct WallKey {
    session: Option<String>,
    network: Network,
    mounts: MountListBuf,
    hide: Vec<(u64, u64)>,
    unix_sockets: Vec<PathBuf>,
}

struct CachedWall {
    wall: Arc<Wall>,
    key: Arc<WallKey>,
    jobs: usize,
    idle_since: Instant,
}

#[derive(Default)]
struct Cache {
    walls: HashMap<Arc<WallKey>, CachedWall>,
    sessions: HashMap<(Option<String>, Network), Weak<SessionNamespaces>>,
    mounts: Option<MountWatch>,
    is_sweeping: bool,
}

/// A job's use of a wall.
pub struct Lease {
    wall: Arc<Wall>,
    key: Arc<WallKey>,
    cache: Weak<Mutex<Cache>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Walls {
    pub fn new(launcher: Arc<Launcher>, mechanism: Mechanism) -> Walls {
        let landlock = match mechanism {
            Mechanism::Namespaces => 0,
            Mechanism::Auto | Mechanism::Landlock => landlock::version(),
        };
        let landlock = if landlock >= ruleset::MIN_VERSION { landlock } else { 0 };
        let (cache, refused) = (Arc::default(), Mutex::default());
        Walls { launcher, mechanism, landlock, cache, making: tokio::sync::Mutex::default(), refused }
    }

    /// Makes or finds what a job needs. `living`: the pids of confined programs of its session with the same network, which
    /// another daemon may have started.
    pub async fn prepare(&self, plan: &Plan, living: impl FnOnce() -> Vec<i32>) -> Result<Prepared, Unavailable> {
        let lease = self.lease(plan, living).await?;
        self.admit(plan, lease)
    }

    /// Reports what a job of this plan would have, by making or finding the same walls. Nothing is required.
    pub async fn measure(&self, plan: &Plan, living: impl FnOnce() -> Vec<i32>) -> Result<Measured, Unavailable> {
        let lease = match self.lease(plan, living).await {
            Ok(lease) => lease,
            Err(Unavailable::NotEnforced(not_enforced)) => {
                return Ok(Measured { enforced: Vec::new(), not_enforced, by: Mechanisms::default() });
            }
            Err(error) => return Err(error),
        };
        let (enforced, not_enforced) = self.measures(plan, &lease.wall);
        Ok(Measured { enforced, not_enforced, by: self.mechanisms(&lease.wall) })
    }

    async fn lease(&self, plan: &Plan, living: impl FnOnce() -> Vec<i32>) -> Result<Lease, Unavailable> {
        if plan.channel.is_some() {
            // No other job may see its channel.
            let _making = self.making.lock().await;
            return Ok(Lease::alone(self.make(plan, &[], living).await?));
        }
        let key = WallKey {
            session: plan.session.clone(),
            network: plan.network,
            mounts: namespaces::describe(plan),
            hide: plan.hide.iter().map(|hidden| (hidden.dev, hidden.ino)).collect(),
            unix_sockets: plan.unix_sockets.clone(),
        };
        if let Some(lease) = self.find(&key) {
            return Ok(lease);
        }
        let _making = self.making.lock().await;
        if let Some(lease) = self.find(&key) {
            return Ok(lease);
        }
        let wall = self.make(plan, &[], living).await?;
        Ok(self.insert(key, wall))
    }

    /// Forgets that this machine gave no namespaces.
    pub fn ask_again(&self) {
        *lock(&self.refused) = None;
    }

    fn find(&self, key: &WallKey) -> Option<Lease> {
        let mut cache = lock(&self.cache);
        let changed = cache.mounts.get_or_insert_with(MountWatch::new).has_changed();
        if changed {
            // The host mounted or unmounted something. Jobs that run keep theirs.
            cache.walls.clear();
        }
        let cached = cache.walls.get_mut(key)?;
        cached.jobs += 1;
        Some(Lease { wall: cached.wall.clone(), key: cached.key.clone(), cache: Arc::downgrade(&self.cache) })
    }

    fn insert(&self, key: WallKey, wall: Wall) -> Lease {
        let (wall, key) = (Arc::new(wall), Arc::new(key));
        let mut cache = lock(&self.cache);
        if let Some(session) = &wall.session {
            cache.sessions.retain(|_, session| session.strong_count() > 0);
            cache.sessions.insert((key.session.clone(), key.network), Arc::downgrade(session));
        }
        let cached = CachedWall { wall: wall.clone(), key: key.clone(), jobs: 1, idle_since: Instant::now() };
        cache.walls.insert(key.clone(), cached);
        Lease { wall, key, cache: Arc::downgrade(&self.cache) }
    }

    pub(super) async fn make(
        &self,
        plan: &Plan,
        overlays: &[Overlay],
        living: impl FnOnce() -> Vec<i32>,
    ) -> Result<Wall, Unavailable> {
        let masks = namespaces::masks(plan);
        let made = match self.namespaces_refused() {
            Some(why) => Err(why),
            None => match self.make_namespaces(plan, &masks, overlays, living).await {
                Ok(made) => Ok(made),
                Err(e) if e.is_of_machine() => {
                    let why = format!("this machine gives no namespaces: {e}");
                    tracing::warn!(%e, "no namespaces for a sandbox");
                    *lock(&self.refused) = Some((Instant::now(), why.clone()));
                    Err(why)
                }
                Err(e) => return Err(Unavailable::Failed(e)),
            },
        };
        if let (Err(why), false) = (&made, overlays.is_empty()) {
            return Err(Unavailable::NoStage(why.clone()));
        }
        let (session, mounts, refused) = match made {
            Ok((session, mounts)) => (Some(session), Some(mounts), None),
            Err(why) if self.landlock == 0 => {
                let why = format!("{why}, and Landlock is not there");
                let missing = wanted(plan).map(|what| NotEnforced { what, why: why.clone() });
                return Err(Unavailable::NotEnforced(missing.collect()));
            }
            Err(why) => (None, None, Some(why)),
        };
        let has_net = session.as_ref().is_some_and(|session| session.net.is_some());
        let dev = mounts.as_ref().map(|mounts| &*mounts.dev);
        let made_overlays = mounts.iter().flat_map(|mounts| &mounts.overlays);
        let on_roots: Vec<_> = overlays.iter().map(|overlay| overlay.path.clone()).zip(made_overlays).collect();
        let ruleset = match self.landlock {
            0 => None,
            version => Some(Arc::new(ruleset::build(plan, version, dev, &on_roots, !has_net).map_err(|e| {
                Unavailable::Failed(MakeError { step: step::LANDLOCK, errno: e.raw_os_error().unwrap_or(libc::EIO) })
            })?)),
        };
        let (mut masked, mut reachable) = (StringListBuf::default(), StringListBuf::default());
        if mounts.is_some() {
            masks.iter().for_each(|mask| masked.push(mask.path.as_os_str().as_bytes()));
            let kept = masks.iter().flat_map(namespaces::Mask::reachable);
            kept.for_each(|path| reachable.push(path.as_os_str().as_bytes()));
        }
        Ok(Wall { session, mounts, ruleset, masked, reachable, refused })
    }

    fn namespaces_refused(&self) -> Option<String> {
        if self.mechanism == Mechanism::Landlock {
            return Some("the config chooses Landlock without namespaces".into());
        }
        let refused = lock(&self.refused);
        refused.as_ref().filter(|(at, _)| at.elapsed() < ASK_AGAIN).map(|(_, why)| why.clone())
    }

    async fn make_namespaces(
        &self,
        plan: &Plan,
        masks: &[namespaces::Mask],
        overlays: &[Overlay],
        living: impl FnOnce() -> Vec<i32>,
    ) -> Result<(Arc<SessionNamespaces>, MountNamespaces), MakeError> {
        let key = (plan.session.clone(), plan.network);
        let known = lock(&self.cache).sessions.get(&key).and_then(Weak::upgrade);
        let session = match known.or_else(|| namespaces::adopt_session(plan.network, &living()).map(Arc::new)) {
            Some(session) => session,
            None => Arc::new(namespaces::make_session(&self.launcher, plan.network).await?),
        };
        lock(&self.cache).sessions.insert(key, Arc::downgrade(&session));
        let steps = staged::with_overlays(namespaces::with_masks(plan, masks), overlays);
        let mounts = namespaces::make_mounts(&self.launcher, &session, &steps).await?;
        Ok((session, mounts))
    }

    /// Builds the launch of one job, if the wall has all that its plan requires.
    pub(super) fn admit(&self, plan: &Plan, lease: Lease) -> Result<Prepared, Unavailable> {
        let wall = &lease.wall;
        let (enforced, not_enforced) = self.measures(plan, wall);
        let missing: Vec<_> = not_enforced.iter().filter(|not| plan.require.contains(&not.what)).cloned().collect();
        if !missing.is_empty() {
            return Err(Unavailable::NotEnforced(missing));
        }
        let net = wall.session.as_ref().and_then(|session| session.net.clone());
        let network = match (plan.network, &net) {
            (Network::Full, _) => NetworkFilter::Open,
            (Network::Off, Some(_)) => NetworkFilter::Isolated,
            (Network::Loopback, Some(_)) => NetworkFilter::Loopback,
            (Network::Off | Network::Loopback, None) => NetworkFilter::Refused,
        };
        let by = self.mechanisms(wall);
        let fds = SandboxFds {
            ruleset: wall.ruleset.clone(),
            user: wall.session.as_ref().map(|session| session.user.clone()),
            net,
            inner_user: wall.mounts.as_ref().map(|mounts| mounts.user.clone()),
            mount: wall.mounts.as_ref().map(|mounts| mounts.mount.clone()),
            dev: wall.mounts.as_ref().map(|mounts| mounts.dev.clone()),
            ipc: wall.session.as_ref().map(|session| session.ipc.clone()),
        };
        let fds = fds.into_array();
        let is_staged = wall.mounts.as_ref().is_some_and(|mounts| !mounts.overlays.is_empty());
        let (mut writable, mut guarded) = (StringListBuf::default(), StringListBuf::default());
        if wall.mounts.is_some() {
            plan.guarded.iter().for_each(|path| guarded.push(path.as_os_str().as_bytes()));
        } else {
            let places = plan.roots.iter().chain([&plan.tmp]).map(|judged| judged.path.as_os_str().as_bytes());
            places.chain([b"/dev".as_slice()]).for_each(|path| writable.push(path));
        }
        // Without a scope every signal gets through, and without mounts no job knows its session.
        let shares_signals = plan.session.is_some() && wall.mounts.is_some() && wall.ruleset.is_some();
        let block = SandboxBlock {
            fds: SandboxFds::from_array(fds.each_ref().map(Option::is_some)),
            observe_writes: plan.observe,
            joins_only: false,
            network,
            // An overlay has other numbers than the directory below, which was compared when it was mounted.
            cwd: if is_staged { FileId::default() } else { FileId { dev: plan.cwd.dev, ino: plan.cwd.ino } },
            session: if shares_signals { FileId { dev: plan.tmp.dev, ino: plan.tmp.ino } } else { FileId::default() },
            writable: writable.as_list(),
            masked: wall.masked.as_list(),
            guarded: guarded.as_list(),
            reachable: wall.reachable.as_list(),
        };
        let block = block.encode();
        let fds = fds.into_iter().flatten().collect();
        let tmpdir = if wall.mounts.is_some() { PathBuf::from(PRIVATE_TMP) } else { plan.tmp.path.clone() };
        Ok(Prepared { block, fds, enforced, not_enforced, by, tmpdir, lease, stage: None })
    }
}

impl Lease {
    /// Makes the use of a wall that no other job has.
    pub(super) fn alone(wall: Wall) -> Lease {
        let (session, network, mounts) = (None, Network::Off, MountListBuf::default());
        let key = WallKey { session, network, mounts, hide: Vec::new(), unix_sockets: Vec::new() };
        Lease { wall: Arc::new(wall), key: Arc::new(key), cache: Weak::new() }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(shared) = self.cache.upgrade() else { return };
        let mut cache = lock(&shared);
        let Some(cached) = cache.walls.get_mut(&self.key).filter(|cached| Arc::ptr_eq(&cached.wall, &self.wall)) else {
            return;
        };
        cached.jobs = cached.jobs.saturating_sub(1);
        if cached.jobs > 0 {
            return;
        }
        cached.idle_since = Instant::now();
        if !cache.is_sweeping
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            cache.is_sweeping = true;
            runtime.spawn(sweep(self.cache.clone()));
        }
    }
}

/// Drops the walls that were not used for a while. Ends when none is idle, so that an idle daemon does not wake up.
async fn sweep(cache: Weak<Mutex<Cache>>) {
    loop {
        let Some(shared) = cache.upgrade() else { return };
        let next = {
            let mut cache = lock(&shared);
            cache.walls.retain(|_, cached| cached.jobs > 0 || cached.idle_since.elapsed() < KEEP);
            let idle = cache.walls.values().filter(|cached| cached.jobs == 0);
            let next = idle.map(|cached| cached.idle_since + KEEP).min();
            cache.is_sweeping = next.is_some();
            if next.is_none() && cache.walls.is_empty() {
                // Nothing is left to compare the mounts for.
                cache.mounts = None;
            }
            next
        };
        drop(shared);
        let Some(next) = next else { return };
        tokio::time::sleep_until(next.into()).await;
    }
}
