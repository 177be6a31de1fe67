//! Makes the programs start faster if the linker and the loader of this machine can: a `toolctl` runs for a
//! millisecond, and most of that is its start. A flag is used only if a trial program that is linked with it runs here.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The source of the trial program. It unwinds, because the library that is linked in is the unwinder.
const TRIAL: &str = "fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    assert!(std::panic::catch_unwind(|| panic!()).is_err());
}";

/// Stores relocations as a bitmap: a thirtieth of the bytes to read. glibc supports it from 2.36 on.
const PACKED_RELOCS: &str = "-Wl,-z,pack-relative-relocs";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TOOLD_PORTABLE");
    let var = |name| std::env::var(name).unwrap_or_default();
    // A cross build could link a trial program, and not run it.
    if var("HOST") != var("TARGET") || !var("TARGET").ends_with("-linux-gnu") {
        return;
    }
    let Ok(out) = std::env::var("OUT_DIR").map(PathBuf::from) else { return };
    // A package goes to machines with an older loader.
    let portable = std::env::var_os("TOOLD_PORTABLE").is_some();
    if !portable && runs(&out, &["-C", &format!("link-arg={PACKED_RELOCS}")]) {
        println!("cargo::rustc-link-arg-bins={PACKED_RELOCS}");
    }
    // A linker script in place of the library of that name: the unwinder becomes part of the program, and the loader has
    // one file less to find and to map.
    let script_dir = out.join("instead");
    let script = "INPUT ( -lgcc_eh -lgcc )\n";
    let written =
        std::fs::create_dir_all(&script_dir).and_then(|()| std::fs::write(script_dir.join("libgcc_s.so"), script));
    if written.is_ok() && runs(&out, &["-L", &format!("native={}", script_dir.display())]) {
        println!("cargo::rustc-link-search=native={}", script_dir.display());
    }
}

/// Checks that a program that is linked with these flags runs here.
fn runs(out: &Path, flags: &[&str]) -> bool {
    let (source, program) = (out.join("trial.rs"), out.join("trial"));
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    // The linker and the flags of the programs.
    let linker = std::env::var("RUSTC_LINKER").map(|linker| format!("-Clinker={linker}"));
    let theirs = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let theirs = theirs.split('\x1f').filter(|flag| !flag.is_empty());
    let _ = std::fs::remove_file(&program);
    let built = std::fs::write(&source, TRIAL).is_ok()
        && Command::new(rustc)
            .args(linker)
            .args(theirs)
            .args(flags)
            .arg("-o")
            .arg(&program)
            .arg(&source)
            .output()
            .is_ok_and(|o| o.status.success());
    built && Command::new(&program).output().is_ok_and(|o| o.status.success())
}
