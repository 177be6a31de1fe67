//! The default paths of the socket, the state directory and the config file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns `$TOOLD_SOCKET`, else the runtime directory, else `$TMPDIR/toold-$UID`.
pub fn socket() -> PathBuf {
    if let Some(path) = set("TOOLD_SOCKET") {
        return path.into();
    }
    if let Some(run) = set("XDG_RUNTIME_DIR") {
        return PathBuf::from(run).join("toold/toold.sock");
    }
    let tmp = set("TMPDIR").unwrap_or_else(|| "/tmp".into());
    let uid = rustix::process::getuid();
    PathBuf::from(tmp).join(format!("toold-{uid}")).join("toold.sock")
}

/// Returns `$TOOLD_STATE_DIR`, else the XDG state directory; None without a home directory.
pub fn state_dir() -> Option<PathBuf> {
    if let Some(path) = set("TOOLD_STATE_DIR") {
        return Some(path.into());
    }
    let dirs = directories::ProjectDirs::from("", "", "toold")?;
    Some(dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_path_buf())
}

/// Returns the log of a daemon that `toolctl` started.
pub fn daemon_log(state_dir: &Path) -> PathBuf {
    state_dir.join("toold.log")
}

/// Returns `$TOOLD_CONFIG`, else the file in the XDG config directory; None without a home directory.
pub fn config() -> Option<PathBuf> {
    if let Some(path) = set("TOOLD_CONFIG") {
        return Some(path.into());
    }
    let dirs = directories::ProjectDirs::from("", "", "toold")?;
    Some(dirs.config_dir().join("config.toml"))
}

fn set(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|v| !v.is_empty())
}
