//! Real programs inside `workspace-write`: what people run every day works there.

use super::world::{User, World};
use serde_json::{Value, json};
use std::process::Command;
use toold_test_support::rig::skip_unless;
use toold_test_support::sys::is_root;

fn has(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program}")]).output().is_ok_and(|found| found.status.success())
}

/// Runs a script in the sandbox that has to end well, with every error shown.
fn works(world: &World, sandbox: &Value, script: &str) -> String {
    let (process, output) = world.sh(&format!("set -e; exec 2>&1; {script}"), sandbox);
    assert_eq!(process["exit_code"], 0, "{script}\n{output}\n{}", process["sandbox"]);
    output
}

fn users() -> Vec<User> {
    if is_root() { vec![User::Own, User::Other] } else { vec![User::Own] }
}

const GIT: &str = "export HOME=$PWD/home GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b \
    GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; mkdir -p home;";

#[test]
fn git_commits_branches_and_makes_worktrees() {
    if skip_unless(has("git"), "no git") {
        return;
    }
    for user in users() {
        let world = World::new(user, "auto");
        let sandbox = json!("workspace-write");
        // A repository as git makes it, before the sandbox.
        let (made, output) = world.sh(
            &format!(
                "{GIT} rm -rf .git sub; git init -q -b main . && echo a > a && git add a && git commit -qm first 2>&1"
            ),
            &json!(null),
        );
        assert_eq!(made["exit_code"], 0, "{output}");
        let output = works(
            &world,
            &sandbox,
            &format!(
                "{GIT} echo b > b; git add b; git commit -qm second; git checkout -q -b topic; echo c > c; git add c; \
                 git commit -qm third; git checkout -q main; git merge -q topic; git tag v1; git stash list; \
                 git worktree add -q wt -b other; cd wt; echo d > d; git add d; git commit -qm fourth; git log --oneline | wc -l; \
                 cd ..; git gc -q; git fsck --no-progress; git status --short | head -3"
            ),
        );
        assert!(output.contains('4'), "{user:?}: {output}");
        let (refused, _) = world.sh(&format!("{GIT} git config core.hooksPath /tmp"), &sandbox);
        assert_ne!(refused["exit_code"], 0, "{user:?}: the config of the repository stays");
    }
}

#[test]
fn cargo_builds_and_tests_a_crate_without_the_network() {
    if skip_unless(has("cargo"), "no cargo") {
        return;
    }
    let world = World::new(User::Own, "auto");
    let cargo = std::env::var("CARGO_HOME").unwrap_or(format!("{}/.cargo", std::env::var("HOME").unwrap()));
    let rustup = std::env::var("RUSTUP_HOME").unwrap_or(format!("{}/.rustup", std::env::var("HOME").unwrap()));
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "export PATH='{path}' RUSTUP_HOME='{rustup}' CARGO_HOME='{cargo}'; mkdir -p crate/src; cd crate; \
         printf '[package]\\nname = \"small\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n[workspace]\\n' > Cargo.toml; \
         printf '#[test]\\nfn adds() {{ assert_eq!(1 + 1, 2); }}\\n' > src/lib.rs; \
         cargo test --offline -q"
    );
    let output = works(&world, &json!({ "profile": "workspace-write", "caches": true }), &script);
    assert!(output.contains("1 passed"), "{output}");
}

#[test]
fn node_and_npm_run_scripts_and_install_from_a_directory() {
    if skip_unless(has("npm"), "no npm") {
        return;
    }
    let world = World::new(User::Own, "auto");
    let script = "export HOME=$PWD/home npm_config_update_notifier=false; mkdir -p home lib; \
        echo '{\"name\":\"lib\",\"version\":\"1.0.0\",\"main\":\"i.js\"}' > lib/package.json; echo 'module.exports = 42' > lib/i.js; \
        echo '{\"name\":\"app\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node t.js\"}}' > package.json; \
        echo 'console.log(require(\"lib\"))' > t.js; \
        npm install --offline --no-audit --no-fund ./lib > /dev/null; npm test --silent";
    assert!(works(&world, &json!("workspace-write"), script).contains("42"));
}

/// A loopback server and a client in one job, processes with semaphores and shared memory, a virtual environment.
#[test]
fn python_serves_on_loopback_forks_and_makes_a_virtual_environment() {
    if skip_unless(has("python3"), "no python3") {
        return;
    }
    for user in users() {
        let world = World::new(user, "auto");
        let python = "import multiprocessing as m, http.server, threading, urllib.request, tempfile, os\n\
            def f(x): return x * x\n\
            if __name__ == '__main__':\n\
            \x20   s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n\
            \x20   threading.Thread(target=s.serve_forever, daemon=True).start()\n\
            \x20   assert urllib.request.urlopen('http://127.0.0.1:%d/' % s.server_port).status == 200\n\
            \x20   with m.Pool(2) as p: assert p.map(f, range(5)) == [0, 1, 4, 9, 16]\n\
            \x20   l = m.Lock(); l.acquire(); l.release()\n\
            \x20   with tempfile.NamedTemporaryFile() as t: t.write(b'x')\n\
            \x20   open('/dev/null', 'w').write('x'); os.urandom(4)\n\
            \x20   print('all', 'well')\n";
        std::fs::write(world.at("work/check.py"), python).unwrap();
        // A version manager's shim would need its directories.
        let find = "PY=$(ls /usr/bin/python3 2>/dev/null || python3 -c 'import sys; print(sys.executable)'); export HOME=$PWD;";
        let sandbox = json!({ "profile": "workspace-write", "network": "loopback" });
        let output = works(&world, &sandbox, &format!("{find} $PY check.py"));
        assert!(output.contains("all well"), "{user:?}: {output}");
    }
}

#[test]
fn a_terminal_program_works_in_a_sandbox() {
    for user in users() {
        let world = World::new(user, "auto");
        let d = &world.daemon;
        let mut call = world.job(
            &json!([
                "/bin/sh",
                "-c",
                "stty size; set -e; [ -c \"$(tty)\" ]; tty; echo named > $(tty); [ -t 0 ] && echo shown > /dev/tty; \
                 read -r x; echo got $x > typed; cat typed"
            ]),
            &json!("workspace-write"),
        );
        call["pty"] = json!(true);
        let process = toold_test_support::rig::id(&d.ok("exec", call));
        d.printed(&process, "shown");
        // The daemon finds its terminal too: it sees that the program waits, and that it echoes.
        d.eventually("it waits for input", || d.process(&process)["needs_input"].is_object());
        d.ok("submit", json!({ "id": process, "data": "keys" }));
        let ended = d.closed(&process);
        assert_eq!(ended["exit_code"], 0, "{}", d.text(&process));
        let text = d.text(&process);
        assert!(text.contains("got keys") && text.contains("/dev/pts/") && text.contains("named"), "{text}");
    }
}

/// A terminal made by the job itself.
#[test]
fn a_job_makes_terminals_of_its_own() {
    if skip_unless(has("script"), "no script") {
        return;
    }
    let world = World::new(User::Own, "auto");
    let output = works(&world, &json!("workspace-write"), "script -qec 'tty; echo inside' log < /dev/null");
    assert!(output.contains("inside"), "{output}");
}

#[test]
fn a_language_server_answers() {
    let servers = ["pylsp", "rust-analyzer"].into_iter().filter(|server| {
        // A name of rustup may have no program behind it.
        Command::new(server).arg("--version").output().is_ok_and(|output| output.status.success())
    });
    let servers: Vec<&str> = servers.collect();
    if skip_unless(!servers.is_empty(), "no pylsp and no rust-analyzer") {
        return;
    }
    let path = std::env::var("PATH").unwrap();
    let home = std::env::var("HOME").unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}"#;
    for server in servers {
        let world = World::new(User::Own, "auto");
        std::fs::write(world.at("work/ask"), format!("Content-Length: {}\r\n\r\n{body}", body.len())).unwrap();
        let script = format!(
            "export PATH='{path}' HOME='{home}'; : > answer; \
             (cat ask; while ! grep -q capabilities answer; do sleep 0.05; done) | timeout 60 {server} > answer 2> errors || true; \
             grep -c capabilities answer"
        );
        let output = works(&world, &json!({ "profile": "workspace-write", "caches": true }), &script);
        assert!(output.trim() != "0", "{server}: {output}");
    }
}

/// The working directory is a worktree whose repository is elsewhere: git writes there too, and its hooks stay.
#[test]
fn git_commits_in_a_worktree_whose_repository_is_elsewhere() {
    if skip_unless(has("git"), "no git") {
        return;
    }
    for user in users() {
        let world = World::new(user, "auto");
        let (made, output) = world.sh(
            &format!(
                "{GIT} exec 2>&1; git init -q -b main ../repo && cd ../repo && git commit -q --allow-empty -m first && \
                 git worktree add -q ../tree -b topic"
            ),
            &json!(null),
        );
        assert_eq!(made["exit_code"], 0, "{output}");
        let script = format!(
            "exec 2>&1; {GIT} echo a > a; git add a; git commit -qm second && git log --oneline | wc -l; \
             echo x > ../repo/.git/hooks/pre-commit || echo hooks; echo x >> ../repo/.git/config || echo config; \
             echo x > ../repo/.git/commondir || echo commondir; echo x > $(git rev-parse --git-dir)/commondir || echo own; \
             echo x > ../repo/file || echo tree; mv ../repo/.git ../repo/moved || echo renamed"
        );
        let mut call = world.job(&json!(["/bin/sh", "-c", script]), &json!("workspace-write"));
        call["cwd"] = json!(world.at("tree"));
        let process = toold_test_support::rig::id(&world.daemon.ok("exec", call));
        let ended = world.daemon.closed(&process);
        let output = world.daemon.text(&process);
        for line in ["2", "hooks", "config", "commondir", "own", "tree", "renamed"] {
            assert!(output.lines().any(|found| found.trim() == line), "{user:?}: {line}: {output}\n{ended}");
        }
        assert_eq!(ended["sandbox"]["roots"], json!([world.at("tree"), world.at("repo/.git")]), "{ended}");
    }
}

#[test]
fn pip_installs_a_wheel_and_python_tests_run() {
    let python = "/usr/bin/python3";
    let has_pip = Command::new(python).args(["-m", "pip", "--version"]).output().is_ok_and(|out| out.status.success());
    if skip_unless(has_pip, "no pip") {
        return;
    }
    let world = World::new(User::Own, "auto");
    let wheel = "import zipfile\n\
        with zipfile.ZipFile('small-1.0-py3-none-any.whl', 'w') as z:\n\
        \x20   z.writestr('small.py', 'ANSWER = 42\\n')\n\
        \x20   z.writestr('small-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: small\\nVersion: 1.0\\n')\n\
        \x20   z.writestr('small-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        \x20   z.writestr('small-1.0.dist-info/RECORD', 'small.py,,\\nsmall-1.0.dist-info/METADATA,,\\nsmall-1.0.dist-info/WHEEL,,\\nsmall-1.0.dist-info/RECORD,,\\n')\n";
    std::fs::write(world.at("work/wheel.py"), wheel).unwrap();
    let test = "import small, unittest, tempfile, http.server, threading, urllib.request\n\
        class T(unittest.TestCase):\n\
        \x20   def test_answer(self): self.assertEqual(small.ANSWER, 42)\n\
        \x20   def test_server(self):\n\
        \x20       s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n\
        \x20       threading.Thread(target=s.serve_forever, daemon=True).start()\n\
        \x20       self.assertEqual(urllib.request.urlopen('http://127.0.0.1:%d/' % s.server_port).status, 200)\n";
    std::fs::write(world.at("work/test_small.py"), test).unwrap();
    let sandbox = json!({ "profile": "workspace-write", "network": "loopback" });
    let script = format!(
        "export HOME=$PWD/home PYTHONPATH=$PWD/site; mkdir home; {python} wheel.py; \
         {python} -m pip install -q --no-index --no-deps --target site ./small-1.0-py3-none-any.whl; \
         if {python} -m pytest --version > /dev/null; then {python} -m pytest -q; else {python} -m unittest -v; fi"
    );
    let output = works(&world, &sandbox, &script);
    assert!(output.contains("2 passed") || output.contains("Ran 2 tests"), "{output}");
}
