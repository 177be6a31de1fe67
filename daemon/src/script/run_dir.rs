//! The run directory of a script: its channel, its code, its stub. It is outside the state directory, so that a sandbox can
//! show it to the script. The socket is made again after a restart of the daemon; the directory stays.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use toold_proto::script::Language;
use toold_proto::tools::Tool;

/// The longest path of a socket.
const MAX_SOCKET_PATH: usize = 107;
/// The length of `/proc_0123456789ab/t.sock`.
const CHANNEL_LEN: usize = 25;
const CHANNEL: &str = "t.sock";
/// The file with the state directory of the daemon that made the directory.
const OWNER: &str = "owner";
/// The directory of results that are too long for an answer. It stays when the script has ended.
pub const RESULTS: &str = "r";

/// Returns the directory for run directories, with room for the path of a socket below it.
pub fn base(runtime_dir: &Path) -> PathBuf {
    let near = runtime_dir.join("s");
    if near.as_os_str().len() + CHANNEL_LEN <= MAX_SOCKET_PATH {
        return near;
    }
    std::env::temp_dir().join(format!("toold-{}", nix::unistd::getuid())).join("s")
}

/// Returns the path of the channel of a script.
pub fn channel_path(run_dir: &Path) -> PathBuf {
    run_dir.join(CHANNEL)
}

/// The program of a script, as its call gives it.
pub enum Source<'a> {
    Code(&'a str),
    /// The user's own file.
    File(&'a Path),
}

/// Makes a private directory, and those above it. One that exists must be private.
fn make_private(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(false).mode(0o700).create(dir) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            let found = std::fs::symlink_metadata(dir)?;
            let is_ours = found.is_dir() && found.uid() == nix::unistd::getuid().as_raw();
            if !is_ours {
                return Err(io::Error::other(format!("{} is not a directory of this user", dir.display())));
            }
            if found.mode() & 0o077 != 0 {
                std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
            }
            Ok(())
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            make_private(dir.parent().ok_or(e)?)?;
            DirBuilder::new().mode(0o700).create(dir)
        }
        Err(e) => Err(e),
    }
}

/// Makes the run directory of a script, without its channel. `owner`: the state directory of the daemon, by which a later one
/// finds those that it may remove.
pub fn make(dir: &Path, owner: &Path) -> io::Result<()> {
    if let Some(parent) = dir.parent() {
        make_private(parent)?;
    }
    DirBuilder::new().mode(0o700).create(dir)?;
    std::fs::write(dir.join(OWNER), owner.as_os_str().as_bytes())
}

/// Removes the run directories of a daemon that belong to no process. `is_used`: the process with this id needs its own.
pub fn sweep(runs: &Path, owner: &Path, is_used: impl Fn(&str) -> bool) {
    let Ok(entries) = std::fs::read_dir(runs) else { return };
    for entry in entries.flatten() {
        let dir = entry.path();
        let is_ours = std::fs::read(dir.join(OWNER)).is_ok_and(|text| text == owner.as_os_str().as_bytes());
        if is_ours && !entry.file_name().to_str().is_some_and(&is_used) {
            let _ = std::fs::remove_dir_all(&dir);
        }
    }
}

/// Listens on the channel of a script. A socket that an earlier daemon left is replaced.
pub fn listen(dir: &Path) -> io::Result<UnixListener> {
    let path = channel_path(dir);
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Writes the code, the stub and the runner of a script. Returns its arguments after the interpreter.
pub fn fill(
    dir: &Path,
    language: Language,
    source: Option<&Source<'_>>,
    tools: &[Tool],
    args: Option<&serde_json::Value>,
) -> io::Result<Vec<String>> {
    let text = |name: &str| dir.join(name).to_string_lossy().into_owned();
    if let Some(args) = args {
        std::fs::write(dir.join("args.json"), args.to_string())?;
    }
    let write_code = |name: &str| match source {
        Some(Source::Code(code)) => std::fs::write(dir.join(name), code),
        Some(Source::File(_)) | None => Ok(()),
    };
    match language {
        Language::Python => {
            write_files(dir, toold_stubs::python_files(tools))?;
            write_code("main.py")?;
            let name = if source.is_some() { "run.py" } else { "kernel.py" };
            Ok(vec!["-X".into(), "utf8".into(), text(name)])
        }
        Language::Javascript => {
            write_files(dir, toold_stubs::javascript_files(tools))?;
            write_code("main.mjs")?;
            let name = if source.is_some() { "run.mjs" } else { "kernel.mjs" };
            Ok(vec![text(name)])
        }
        Language::Bash => {
            write_code("main.sh")?;
            match source {
                Some(Source::File(path)) => Ok(vec![path.to_string_lossy().into_owned()]),
                Some(Source::Code(_)) | None => Ok(vec![text("main.sh")]),
            }
        }
    }
}

fn write_files(dir: &Path, files: Vec<toold_stubs::File>) -> io::Result<()> {
    for file in files {
        let path = dir.join(file.path);
        if let Some(parent) = path.parent().filter(|parent| *parent != dir) {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, file.text)?;
    }
    Ok(())
}

/// Removes everything but results that a reader may still want.
pub fn clean(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name() != RESULTS) {
        let path = entry.path();
        let removed = match entry.file_type() {
            Ok(kind) if kind.is_dir() => std::fs::remove_dir_all(&path),
            _ => std::fs::remove_file(&path),
        };
        if let Err(e) = removed {
            tracing::warn!(path = %path.display(), %e, "failed to remove a file of a script that has ended");
        }
    }
    // It stays if it has results.
    let _ = std::fs::remove_dir(dir);
}
