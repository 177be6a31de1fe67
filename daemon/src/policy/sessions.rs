//! The settings of sessions, durable: one file for each session that `session.configure` has set.

use crate::spec::InvalidParam;
use crate::store::checked_file;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use toold_proto::policy::{ApprovalPolicy, SessionConfigureParams};
use toold_proto::sandbox::SandboxSetting;
use toold_shim::hooks;

/// The most sessions with settings.
const MAX_SESSIONS: usize = 10_000;
/// The longest file.
const MAX_FILE_LEN: u64 = 1 << 20;

/// The settings of a session as `session.configure` left them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionSettings {
    pub session_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSetting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalPolicy>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_pass: Vec<String>,
}

impl SessionSettings {
    fn is_empty(&self) -> bool {
        *self == SessionSettings { session_key: self.session_key.clone(), ..SessionSettings::default() }
    }
}

impl SessionSettings {
    /// Checks the values. Nothing has happened yet.
    pub fn check(&self) -> Result<(), InvalidParam> {
        let dirs = self.cwd.iter().map(|cwd| ("cwd".to_string(), cwd));
        let roots = self.roots.iter().enumerate().map(|(at, root)| (format!("roots[{at}]"), root));
        for (param, path) in dirs.chain(roots) {
            if !path.starts_with('/') || path.contains('\0') {
                return Err(InvalidParam::new(param, format!("must be an absolute path, not {path:?}")));
            }
            match std::fs::metadata(path) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(InvalidParam::new(param, format!("{path} is not a directory"))),
                Err(e) => return Err(InvalidParam::new(param, format!("{path}: {e}"))),
            }
        }
        for (at, name) in self.env_pass.iter().enumerate() {
            if name.is_empty() || name.contains(['=', '\0']) {
                let problem = format!("is not a name: {name:?}");
                return Err(InvalidParam::new(format!("env_pass[{at}]"), problem));
            }
        }
        Ok(())
    }
}

impl From<SessionConfigureParams> for SessionSettings {
    fn from(call: SessionConfigureParams) -> SessionSettings {
        let SessionConfigureParams { session_key, cwd, sandbox, approval, roots, env_pass } = call;
        SessionSettings { session_key, cwd, sandbox, approval, roots, env_pass }
    }
}

/// The reason why a session was not changed.
#[derive(Debug)]
pub enum SessionError {
    /// This many sessions have settings already.
    TooMany(usize),
    Store {
        path: PathBuf,
        source: io::Error,
    },
}

/// All sessions with settings.
pub struct Sessions {
    dir: PathBuf,
    all: Mutex<Table>,
    /// Their number: a call of a daemon without any takes no lock.
    count: AtomicUsize,
}

#[derive(Default)]
struct Table {
    by_key: BTreeMap<String, Arc<SessionSettings>>,
    /// Names of files that could not be read. Their sessions had a policy, so their calls are refused until they have one again.
    damaged: BTreeSet<String>,
}

impl Table {
    fn len(&self) -> usize {
        self.by_key.len() + self.damaged.len()
    }
}

/// The settings of this session are damaged: what it may do is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedSession(pub String);

impl Sessions {
    /// Reads the settings that earlier daemons stored. Returns descriptions of damage.
    pub fn open(dir: PathBuf) -> (Sessions, Vec<String>) {
        let mut damage = Vec::new();
        let mut all = Table { by_key: BTreeMap::new(), damaged: set_aside(&dir) };
        for path in &all.damaged {
            damage.push(format!(
                "the settings of a session in {} were damaged; configure it again",
                dir.join(path).display()
            ));
        }
        for path in files(&dir) {
            match checked_file::read::<SessionSettings>(&path, MAX_FILE_LEN) {
                Ok(settings) => {
                    all.by_key.insert(settings.session_key.clone(), Arc::new(settings));
                }
                Err(e) => {
                    let away = path.with_extension(format!("damaged-{}", std::process::id()));
                    let moved = std::fs::rename(&path, &away).is_ok();
                    let place = if moved { &away } else { &path };
                    all.damaged.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
                    damage.push(format!("the settings of a session in {}: {e}; configure it again", place.display()));
                }
            }
        }
        let count = AtomicUsize::new(all.len());
        (Sessions { dir, all: Mutex::new(all), count }, damage)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.all.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns the settings of a session, if it has any that can be read.
    pub fn get(&self, session_key: Option<&str>) -> Option<Arc<SessionSettings>> {
        self.find(session_key).ok().flatten()
    }

    /// Returns the settings of a session, if it has any. A session whose settings are damaged has none that a call could use.
    pub fn find(&self, session_key: Option<&str>) -> Result<Option<Arc<SessionSettings>>, DamagedSession> {
        let Some(session_key) = session_key.filter(|_| self.count.load(Ordering::Relaxed) > 0) else { return Ok(None) };
        let all = self.lock();
        match all.by_key.get(session_key) {
            Some(found) => Ok(Some(found.clone())),
            None if !all.damaged.is_empty() && all.damaged.contains(&file_name(session_key)) => {
                Err(DamagedSession(session_key.into()))
            }
            None => Ok(None),
        }
    }

    /// Replaces the settings of a session: on disk, then in force. Settings without a value remove the file.
    pub fn set(&self, settings: SessionSettings) -> Result<Arc<SessionSettings>, SessionError> {
        // Held while the file is written: two changes come one after the other.
        let mut all = self.lock();
        let name = file_name(&settings.session_key);
        let path = self.dir.join(&name);
        let failed = |source| SessionError::Store { path: path.clone(), source };
        let is_known = all.by_key.contains_key(&settings.session_key);
        let settings = Arc::new(settings);
        if settings.is_empty() {
            if is_known {
                remove(&path).map_err(failed)?;
                all.by_key.remove(&settings.session_key);
            }
        } else {
            if !is_known && all.by_key.len() >= MAX_SESSIONS {
                return Err(SessionError::TooMany(MAX_SESSIONS));
            }
            write(&self.dir, &path, &settings).map_err(failed)?;
            all.by_key.insert(settings.session_key.clone(), settings.clone());
        }
        if all.damaged.remove(&name) {
            remove_set_aside(&self.dir, &name);
        }
        self.count.store(all.len(), Ordering::Relaxed);
        Ok(settings)
    }
}

/// A name for the file of a session: its key may be any text.
fn file_name(session_key: &str) -> String {
    let digest = Sha256::digest(session_key.as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The files of sessions: names of 32 hexadecimal digits.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_own = |name: &str| name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit());
    entries.filter(|entry| entry.file_name().to_str().is_some_and(is_own)).map(|entry| entry.path()).collect()
}

/// Returns the session's file, of the name of a damaged one that was set aside.
fn set_aside_of(name: &str) -> Option<&str> {
    name.split_once(".damaged-").map(|(own, _)| own).filter(|own| own.len() == 32)
}

/// The files whose damaged content an earlier daemon has set aside.
fn set_aside(dir: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| set_aside_of(entry.file_name().to_str()?).map(str::to_owned)).collect()
}

fn remove_set_aside(dir: &Path, name: &str) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_str().and_then(set_aside_of) == Some(name) {
            let path = entry.path();
            // Whatever stands there: a directory was never one of ours.
            if let Err(e) = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path)) {
                tracing::warn!(path = %path.display(), %e, "failed to remove the damaged settings of a session");
            }
        }
    }
}

fn write(dir: &Path, path: &Path, settings: &SessionSettings) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let fresh = path.with_extension("tmp");
    let _ = std::fs::remove_file(&fresh);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let written = file.write_all(&checked_file::encode(settings)?).and_then(|()| file.sync_all());
    hooks::at("session.written");
    let replaced = written.and_then(|()| std::fs::rename(&fresh, path));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    replaced?;
    hooks::at("session.replaced");
    File::open(dir)?.sync_all()
}

fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)?;
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use checked_file::{SUM_LEN, decode};

    #[test]
    fn settings_are_read_again_and_any_change_is_found() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = dir.path().join("sessions");
        let (sessions, damage) = Sessions::open(at.clone());
        assert!(damage.is_empty() && sessions.get(Some("a")).is_none());
        let settings =
            SessionSettings { session_key: "a".into(), cwd: Some("/srv".into()), ..SessionSettings::default() };
        sessions.set(settings.clone()).expect("stored");
        let text = r#"{"session_key":"a","cwd":"/srv"}"#;
        let bytes = std::fs::read(at.join(file_name("a"))).expect("a file");
        assert_eq!(&bytes[SUM_LEN..], format!("{text}\n").as_bytes());
        for cut in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[cut] ^= 1;
            let read = |bytes: &[u8]| decode::<SessionSettings>(bytes);
            assert_eq!((read(&changed), read(&bytes[..cut])), (None, None), "byte {cut}");
        }
        assert_eq!(Sessions::open(at.clone()).0.get(Some("a")).as_deref(), Some(&settings));
        sessions.set(SessionSettings { session_key: "a".into(), ..SessionSettings::default() }).expect("removed");
        assert_eq!((sessions.get(Some("a")), files(&at)), (None, vec![]));
    }

    #[test]
    fn a_session_with_damaged_settings_has_no_policy_until_it_is_configured_again() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = dir.path().join("sessions");
        let settings =
            SessionSettings { session_key: "a".into(), cwd: Some("/srv".into()), ..SessionSettings::default() };
        Sessions::open(at.clone()).0.set(settings.clone()).expect("stored");
        std::fs::write(at.join(file_name("a")), "damaged").expect("writable");
        // The second start knows it too.
        for _ in 0..2 {
            let (sessions, damage) = Sessions::open(at.clone());
            assert_eq!((sessions.find(Some("a")), damage.len()), (Err(DamagedSession("a".into())), 1));
            assert_eq!((sessions.find(Some("b")), sessions.find(None)), (Ok(None), Ok(None)));
        }
        Sessions::open(at.clone()).0.set(settings.clone()).expect("stored");
        let (sessions, damage) = Sessions::open(at);
        assert_eq!((sessions.find(Some("a")), damage.len()), (Ok(Some(Arc::new(settings))), 0));
    }
}
