//! Pause points for the crash tests. A release build has none: every call vanishes.
//!
//! With `TOOLD_HOOKS=<dir>` in a debug build, a process that reaches the point `name` while the file
//! `<dir>/<name>` exists creates `<dir>/<name>.hit` with its pid in it and waits until `<dir>/<name>` is gone.

#[cfg(not(debug_assertions))]
#[inline]
pub fn at(_: &str) {}

#[cfg(not(debug_assertions))]
pub fn init() {}

#[cfg(not(debug_assertions))]
pub fn variable() -> Option<(&'static str, &'static std::path::Path)> {
    None
}

#[cfg(debug_assertions)]
pub use debug::{at, init, variable};

#[cfg(debug_assertions)]
mod debug {
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;

    const VARIABLE: &str = "TOOLD_HOOKS";

    static DIR: OnceLock<Option<PathBuf>> = OnceLock::new();

    /// Reads the environment once, before any fork.
    pub fn init() {
        DIR.get_or_init(|| std::env::var_os(VARIABLE).map(PathBuf::from));
    }

    /// Returns the variable that an executed shim needs: it gets no other.
    pub fn variable() -> Option<(&'static str, &'static Path)> {
        Some((VARIABLE, DIR.get()?.as_deref()?))
    }

    pub fn at(name: &str) {
        let Some(Some(dir)) = DIR.get() else { return };
        let gate = dir.join(name);
        if !gate.exists() {
            return;
        }
        let hit = dir.join(format!("{name}.hit"));
        let staged = dir.join(format!("{name}.{}", std::process::id()));
        let _ = std::fs::write(&staged, std::process::id().to_string());
        let _ = std::fs::rename(&staged, &hit);
        while gate.exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
