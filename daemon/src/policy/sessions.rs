//! The settings of sessions, durable: one file for each session that `session.configure` has set.

use crate::spec::InvalidParam;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use toold_format::fnv1a;
use toold_proto::policy::{ApprovalPolicy, SessionConfigureParams};
use toold_proto::sandbox::SandboxSetting;
use toold_shim::hooks;

/// The most sessions with settings.
const MAX_SESSIONS: usize = 10_000;
/// The longest file.
const MAX_FILE_LEN: u64 = 1 << 20;
/// Length of the checksum in hexadecimal digits, with the newline.
const SUM_LEN: usize = 17;

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
    by_key: Mutex<BTreeMap<String, Arc<SessionSettings>>>,
    /// Their number: a call of a daemon without any takes no lock.
    count: AtomicUsize,
}

impl Sessions {
    /// Reads the settings that earlier daemons stored. Returns descriptions of damage.
    pub fn open(dir: PathBuf) -> (Sessions, Vec<String>) {
        let mut damage = Vec::new();
        let mut by_key = BTreeMap::new();
        for path in files(&dir) {
            match read(&path) {
                Ok(settings) => {
                    by_key.insert(settings.session_key.clone(), Arc::new(settings));
                }
                Err(e) => {
                    let away = path.with_extension(format!("damaged-{}", std::process::id()));
                    let moved = std::fs::rename(&path, &away).is_ok();
                    let place = if moved { &away } else { &path };
                    damage.push(format!("the settings of a session in {}: {e}; configure it again", place.display()));
                }
            }
        }
        let count = AtomicUsize::new(by_key.len());
        (Sessions { dir, by_key: Mutex::new(by_key), count }, damage)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<SessionSettings>>> {
        self.by_key.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns the settings of a session, if it has any.
    pub fn get(&self, session_key: Option<&str>) -> Option<Arc<SessionSettings>> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.lock().get(session_key?).cloned()
    }

    /// Replaces the settings of a session: on disk, then in force. Settings without a value remove the file.
    pub fn set(&self, settings: SessionSettings) -> Result<Arc<SessionSettings>, SessionError> {
        // Held while the file is written: two changes come one after the other.
        let mut by_key = self.lock();
        let path = self.dir.join(file_name(&settings.session_key));
        let failed = |source| SessionError::Store { path: path.clone(), source };
        let is_known = by_key.contains_key(&settings.session_key);
        let settings = Arc::new(settings);
        if settings.is_empty() {
            if is_known {
                remove(&path).map_err(failed)?;
                by_key.remove(&settings.session_key);
            }
        } else {
            if !is_known && by_key.len() >= MAX_SESSIONS {
                return Err(SessionError::TooMany(MAX_SESSIONS));
            }
            write(&self.dir, &path, &settings).map_err(failed)?;
            by_key.insert(settings.session_key.clone(), settings.clone());
        }
        self.count.store(by_key.len(), Ordering::Relaxed);
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

fn read(path: &Path) -> io::Result<SessionSettings> {
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_LEN).read_to_end(&mut bytes)?;
    decode(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "does not match its checksum"))
}

fn write(dir: &Path, path: &Path, settings: &SessionSettings) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let fresh = path.with_extension("tmp");
    let _ = std::fs::remove_file(&fresh);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let written = file.write_all(&encode(settings)?).and_then(|()| file.sync_all());
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

fn encode(settings: &SessionSettings) -> io::Result<Vec<u8>> {
    let json = serde_json::to_string(settings)?;
    Ok(format!("{:016x}\n{json}\n", fnv1a(json.as_bytes())).into_bytes())
}

fn decode(bytes: &[u8]) -> Option<SessionSettings> {
    let (sum, json) = bytes.split_at_checked(SUM_LEN)?;
    let json = json.strip_suffix(b"\n")?;
    (sum == format!("{:016x}\n", fnv1a(json)).as_bytes()).then(|| serde_json::from_slice(json).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!((decode(&changed), decode(&bytes[..cut])), (None, None), "byte {cut}");
        }
        assert_eq!(Sessions::open(at.clone()).0.get(Some("a")).as_deref(), Some(&settings));
        sessions.set(SessionSettings { session_key: "a".into(), ..SessionSettings::default() }).expect("removed");
        assert_eq!((sessions.get(Some("a")), files(&at)), (None, vec![]));
    }
}
