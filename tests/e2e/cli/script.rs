//! `toolctl script`, `tool`, `tools` and `kernel`: a script behaves like a program, and its calls can be seen and ended.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, skip_unless};
use toold_test_support::sys::Pidfd;

const CALLS: &str = "import sys
from toold_tools import terminal, result, gather, args
found = gather([terminal.later('echo %d' % n) for n in args])
print([one['output'] for one in found])
print('done', file=sys.stderr)
result(len(found))
sys.exit(3)
";

fn has_python() -> bool {
    !skip_unless(std::process::Command::new("python3").arg("-V").output().is_ok(), "python3 is not installed")
}

#[test]
fn a_script_has_its_own_streams_and_code_and_its_calls_and_result_are_kept() {
    if !has_python() {
        return;
    }
    let d = Daemon::start();
    let file = d.home().join("calls.py");
    std::fs::write(&file, CALLS).unwrap();
    let ran = d.ctl(&["script", file.to_str().unwrap(), "--arg", "[1, 2]", "--name", "s"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (3, "['1\\n', '2\\n']\n", "done\n"), "{ran:?}");
    // The processes of its calls are newer than the script.
    let calls = d.ctl(&["script", "calls", "@last"]);
    assert_eq!((calls.code, calls.stdout.lines().count()), (0, 3), "{calls:?}");
    assert!(calls.stdout.contains("terminal  ok"), "{calls:?}");
    let full: Value = serde_json::from_str(&d.ctl(&["script", "calls", "s", "--full", "--json"]).stdout).unwrap();
    assert_eq!(full["calls"][0]["args"]["command"], "echo 1", "{full}");
    let result = d.ctl(&["script", "result", "s", "--wait", "10s"]);
    assert_eq!(result.code, 1, "{result:?}");
    assert!(result.stdout.contains("value   2\n") && result.stdout.contains(" error after "), "{result:?}");
    let json = d.ctl(&["script", "-c", "from toold_tools import result; result({'n': 1})", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["status"], &json["value"]["n"]), (&Value::from("ok"), &Value::from(1)), "{json}");
}

#[test]
fn a_script_runs_with_the_environment_and_directory_of_the_caller_and_from_standard_input() {
    if !has_python() {
        return;
    }
    let d = Daemon::start();
    let mut command = d.ctl_command(&["script", "-"]);
    let input = d.root().join("input");
    std::fs::write(&input, "import os; print(os.environ['MINE'], os.getcwd())").unwrap();
    command.env("MINE", "yes").current_dir(d.home()).stdin(std::fs::File::open(input).unwrap());
    let ran = output_of(command.spawn().unwrap());
    let expected = format!("yes {}\n", d.home().canonicalize().unwrap().display());
    assert_eq!((ran.code, ran.stdout), (0, expected));
}

#[test]
fn an_interrupt_cancels_the_script_and_the_call_that_it_waits_for() {
    if !has_python() {
        return;
    }
    let d = Daemon::start();
    let code = "from toold_tools import terminal; print('ready', flush=True); terminal('sleep 1000')";
    let mut child = d.ctl_command(&["script", "--name", "s", "-c", code]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let fd = Pidfd::open(child.id() as i32).unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    d.eventually("the call runs", || d.ctl(&["script", "calls", "s"]).stdout.contains("running"));
    fd.signal(libc::SIGINT);
    let output = output_of(child);
    assert!(output.code > 128, "{output:?}");
    let result = d.ctl(&["script", "result", "s", "--wait", "10s"]);
    assert!(result.code == 1 && result.stdout.contains(" interrupted after "), "{result:?}");
    let running = d.ctl(&["list", "--status", "running"]).stdout;
    assert!(!running.contains("sleep 1000"), "{running}");
}

#[test]
fn a_shell_script_calls_tools_over_its_channel_and_a_tool_that_it_may_not_call_is_code_5() {
    let d = Daemon::start();
    let code = "toolctl tool terminal command='echo hi; exit 4'; echo code $?
        toolctl tool write_file path=x content=1; echo code $?";
    let args = ["script", "--lang", "bash", "--name", "s", "--tool", "terminal", "-c", code];
    let ran = output_of(d.tool("toolctl", &args).spawn().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hi\ncode 4\ncode 5\n"), "{ran:?}");
    assert!(ran.stderr.contains("write_file"), "{ran:?}");
    let calls = d.ctl(&["script", "calls", "s"]).stdout;
    assert_eq!(calls.lines().count(), 2, "a refusal is not in the journal: {calls}");
}

#[test]
fn a_tool_prints_its_result_and_its_arguments_have_the_types_of_its_schema() {
    let d = Daemon::start();
    let file = d.home().join("notes");
    std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
    let path = format!("path={}", file.display());
    let read = d.ctl(&["tool", "read_file", &path, "limit=1"]);
    let read: Value = serde_json::from_str(&read.stdout).unwrap();
    assert_eq!((&read["content"], &read["total_lines"]), (&Value::from("one\n"), &Value::from(3)), "{read}");
    let ran = d.ctl(&["tool", "terminal", "command=echo out; exit 7"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (7, "out\n"));
    let wrong = d.ctl(&["tool", "read_file", &path, "limit=many"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("limit: expected integer"), "{wrong:?}");
    let unknown = d.ctl(&["tool", "no_such_tool"]);
    assert!(unknown.code != 0 && unknown.stderr.contains("no_such_tool"), "{unknown:?}");
    let listed = d.ctl(&["tools", "--effect", "exec"]);
    assert!(listed.stdout.lines().nth(1).is_some_and(|row| row.starts_with("terminal")), "{listed:?}");
    let details = d.ctl(&["tools", "-v", "terminal"]);
    assert!(details.stdout.contains("toolctl tool terminal command="), "{details:?}");
}

#[test]
fn a_kernel_keeps_its_state_between_cells() {
    if !has_python() {
        return;
    }
    let d = Daemon::start();
    let opened = d.ctl(&["kernel", "open", "--name", "py"]);
    assert_eq!(opened.code, 0, "{opened:?}");
    assert_eq!(d.ctl(&["kernel", "run", "py", "-c", "x = 6"]).stdout, "");
    let ran = d.ctl(&["kernel", "run", "py", "-c", "print('hi')\nx * 7"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hi\n42\n"), "{ran:?}");
    let failed = d.ctl(&["kernel", "run", "@last", "-c", "y"]);
    assert_eq!((failed.code, failed.stderr.matches("name 'y' is not defined").count()), (1, 1), "{failed:?}");
    let listed = d.ctl(&["kernel"]).stdout;
    assert!(listed.contains("py") && listed.contains("idle"), "{listed}");
    assert_eq!(d.ctl(&["kernel", "reset", "py"]).code, 0);
    assert_eq!(d.ctl(&["kernel", "run", "py", "-c", "x"]).code, 1, "the state is gone");
    assert_eq!(d.ctl(&["kernel", "close", "py"]).code, 0);
    assert_eq!(d.ctl(&["kernel"]).stdout.lines().count(), 1);
}

#[test]
fn ids_of_scripts_and_names_of_tools_are_completed() {
    let d = Daemon::start();
    assert_eq!(d.ctl(&["script", "--lang", "bash", "--name", "audit", "-c", "true"]).code, 0);
    assert_eq!(d.ctl(&["run", "--name", "other", "--", "true"]).code, 0);
    let completed = |args: &[&str]| {
        let output = d.ctl(&[&["__complete", "--", "toolctl"], args].concat()).stdout;
        output.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let ids = completed(&["script", "calls", ""]);
    assert!(ids.contains(&"audit".to_owned()) && !ids.contains(&"other".to_owned()), "{ids:?}");
    assert_eq!(completed(&["tool", "term"]), ["terminal"]);
}
