//! Stubs: the functions by which a script calls tools, generated from the list of tools; the runners of scripts; the
//! drivers of kernels. Pure: text from values. The daemon writes the files and starts the programs.

mod identifier;
mod javascript;
mod python;
mod schema;
mod shell;

pub use identifier::{Collision, collisions, identifier};
pub use javascript::{javascript_declarations, javascript_module, javascript_signature};
pub use python::{python_module, python_signature};
pub use shell::shell_signature;

use toold_proto::tools::Tool;

/// The runner of a Python script. It runs `main.py` beside it, or the file in `TOOLD_SCRIPT_FILE`.
pub const PYTHON_RUN: &str = include_str!("../python/run.py");
/// The driver of a Python kernel.
pub const PYTHON_KERNEL: &str = include_str!("../python/kernel.py");
/// The runner of a JavaScript script. It runs `main.mjs` beside it, or the file in `TOOLD_SCRIPT_FILE`.
pub const JAVASCRIPT_RUN: &str = include_str!("../javascript/run.mjs");
/// The driver of a JavaScript kernel.
pub const JAVASCRIPT_KERNEL: &str = include_str!("../javascript/kernel.mjs");
/// The manifest that makes a directory the package `toold`.
pub const JAVASCRIPT_PACKAGE: &str = include_str!("../javascript/package.json");

/// A file that the directory of a run needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path below the directory, with `/`.
    pub path: &'static str,
    pub text: String,
}

impl File {
    fn new(path: &'static str, text: impl Into<String>) -> File {
        File { path, text: text.into() }
    }
}

/// Returns every file of a Python script or kernel except the script itself. The command is `python3 -X utf8 run.py` or
/// `python3 -X utf8 kernel.py`.
pub fn python_files(tools: &[Tool]) -> Vec<File> {
    vec![
        File::new("toold_tools.py", python_module(tools)),
        File::new("toold_link.py", include_str!("../python/toold_link.py")),
        File::new("toold_aio.py", include_str!("../python/toold_aio.py")),
        File::new("toold_report.py", include_str!("../python/toold_report.py")),
        File::new("run.py", PYTHON_RUN),
        File::new("kernel.py", PYTHON_KERNEL),
    ]
}

/// Returns every file of a JavaScript script or kernel except the script itself. The command is `node run.mjs` or
/// `node kernel.mjs`.
pub fn javascript_files(tools: &[Tool]) -> Vec<File> {
    vec![
        File::new("node_modules/toold/package.json", JAVASCRIPT_PACKAGE),
        File::new("node_modules/toold/index.mjs", javascript_module(tools)),
        File::new("node_modules/toold/index.d.ts", javascript_declarations(tools)),
        File::new("node_modules/toold/link.mjs", include_str!("../javascript/link.mjs")),
        File::new("node_modules/toold/hooks.mjs", include_str!("../javascript/hooks.mjs")),
        File::new("run.mjs", JAVASCRIPT_RUN),
        File::new("kernel.mjs", JAVASCRIPT_KERNEL),
    ]
}
