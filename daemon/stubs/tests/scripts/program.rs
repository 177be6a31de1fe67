//! Interpreters started with a stub and a channel, as the daemon starts them.

use crate::channel::{Channel, TOKEN};
use crate::tools;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

pub struct Run {
    pub dir: TempDir,
    pub channel: Channel,
    language: Language,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    JavaScript,
}

impl Language {
    fn program(self) -> String {
        match self {
            Language::Python => std::env::var("TOOLD_TEST_PYTHON").unwrap_or_else(|_| "python3".into()),
            Language::JavaScript => std::env::var("TOOLD_TEST_NODE").unwrap_or_else(|_| "node".into()),
        }
    }

    fn is_installed(self) -> bool {
        Command::new(self.program()).arg("--version").output().is_ok_and(|output| output.status.success())
    }
}

pub fn python() -> Option<Run> {
    Run::new(Language::Python)
}

pub fn javascript() -> Option<Run> {
    Run::new(Language::JavaScript)
}

impl Run {
    /// Makes a run directory with its channel, or prints that the interpreter is missing.
    pub fn new(language: Language) -> Option<Run> {
        if !language.is_installed() {
            eprintln!("skipped: {} is not installed", language.program());
            return None;
        }
        let dir = TempDir::new().expect("a directory");
        let files = match language {
            Language::Python => toold_stubs::python_files(&tools::all()),
            Language::JavaScript => toold_stubs::javascript_files(&tools::all()),
        };
        for file in files {
            let path = dir.path().join(file.path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, file.text).expect("a file");
        }
        // The daemon's sign that the script lives.
        std::fs::write(dir.path().join("owner"), "").expect("a file");
        let channel = Channel::new(dir.path());
        Some(Run { dir, channel, language })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn command(&self, program: &str) -> Command {
        // The daemon starts programs with no signal ignored; a shell that runs the tests may ignore SIGINT.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", &self.language.program()]);
        if self.language == Language::Python {
            command.args(["-X", "utf8"]);
        }
        command
            .arg(self.path().join(program))
            .env("TOOLD_TOOLS", format!("unix:{}", self.channel.path().display()))
            .env("TOOLD_TOKEN", TOKEN)
            .env("TOOLD_SCRIPT", "p-1")
            .env("TOOLD_SCRIPT_DIR", self.path())
            .env("PYTHONUNBUFFERED", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn main_file(&self) -> &'static str {
        match self.language {
            Language::Python => "main.py",
            Language::JavaScript => "main.mjs",
        }
    }

    fn run_file(&self) -> &'static str {
        match self.language {
            Language::Python => "run.py",
            Language::JavaScript => "run.mjs",
        }
    }

    /// Starts a script.
    pub fn start(&self, code: &str) -> Child {
        std::fs::write(self.path().join(self.main_file()), code).expect("the script");
        self.command(self.run_file()).spawn().expect("the interpreter starts")
    }

    /// Runs a script to its end.
    pub fn run(&self, code: &str) -> Output {
        self.start(code).wait_with_output().expect("the interpreter ends")
    }

    /// Runs a script that must end well, and returns its output.
    pub fn output(&self, code: &str) -> String {
        let output = self.run(code);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}\n{stderr}\n{}", output.status, String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Starts the driver of a kernel.
    pub fn kernel(&self) -> Child {
        let name = match self.language {
            Language::Python => "kernel.py",
            Language::JavaScript => "kernel.mjs",
        };
        self.command(name).spawn().expect("the interpreter starts")
    }
}

/// Sends a signal to a program of the test.
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
