//! What README and `docs/` show is what works: their sessions are typed, and every command in them exists.

use crate::ctl::{Ran, ran};
use crate::rig::Daemon;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn pages() -> Vec<(String, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let all = docs.chain([root.join("README.md"), root.join("CONTRIBUTING.md")]);
    let text = all.filter(|path| path.extension().is_some_and(|e| e == "md"));
    text.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())).collect()
}

/// The `$ ` lines of each fenced block, with what they say afterwards left out.
fn sessions(text: &str) -> Vec<Vec<String>> {
    let blocks = text.split("```").skip(1).step_by(2);
    let typed = |block: &str| block.lines().filter_map(|line| line.strip_prefix("$ ").map(String::from)).collect();
    blocks.map(typed).filter(|session: &Vec<String>| !session.is_empty()).collect()
}

/// What a shell says to these words, with the rig's environment and our programs first on its path.
fn typed(d: &Daemon, words: &str) -> Ran {
    let bin = PathBuf::from(env!("CARGO_BIN_EXE_toolctl")).parent().unwrap().display().to_string();
    let (template, path) = (d.ctl_command(&[]), format!("{bin}:{}", std::env::var("PATH").unwrap()));
    let mut shell = Command::new("/bin/bash");
    shell.args(["-c", words]).env_clear();
    shell.envs(template.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned())))).env("PATH", path);
    shell.current_dir(d.root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    ran(shell.spawn().unwrap())
}

#[test]
fn the_session_of_the_readme_is_what_happens() {
    let d = Daemon::prepare("", &[]);
    let readme = pages().into_iter().find(|(path, _)| path.ends_with("README.md")).unwrap().1;
    let session = sessions(&readme).into_iter().next().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // The same words, with this rig's places and a port that is free.
    let words = session.join("\n").replace("8765", &port.to_string());
    let words = words.replace("~/.local/state/toold", &d.state().display().to_string());
    // The server has to have printed its line before the log is looked at, as a person has by then.
    let words = words.replace("\ntoolctl log web", "\ntoolctl wait web --match 404 > /dev/null\ntoolctl log web");
    let told = typed(&d, &words);
    for part in ["to stdout\nexit code 3\nproc_", "code 404, message File not found\n", "killed SIGTERM\n"] {
        assert!(told.stdout.contains(part), "{part:?} is not in {told:?}");
    }
    let kinds: Vec<&str> = told.stdout.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert!(kinds.ends_with(&["started", "watch_match", "exited", "closed", "completion"]), "{told:?}");
}

#[test]
fn every_command_in_the_docs_is_one() {
    let d = Daemon::prepare("", &[]);
    let mut seen = 0;
    for (path, text) in pages() {
        let indented = text.lines().filter_map(|line| line.strip_prefix("    "));
        let after_prompt = text.lines().filter_map(|line| line.strip_prefix("$ "));
        for line in indented.chain(after_prompt).filter(|line| line.starts_with("toolctl ")) {
            // What comes before the program to run, or a second command; and no comment.
            let ours = line.split(" -- ").next().unwrap().split(['#', ';', '|']).next().unwrap();
            let ours = ours.split(" -c ").next().unwrap().trim();
            let told = typed(&d, &format!("{ours} --help"));
            assert_eq!(told.code, 0, "{path}: {line}: {told:?}");
            seen += 1;
        }
    }
    assert!(seen > 15, "only {seen} commands were found");
}
