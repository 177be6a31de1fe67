//! Real programs that wait for input, and real ones that only look like it.

use super::*;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// Time that a program may take to reach its wait.
const DEADLINE: Duration = Duration::from_secs(60);
/// Number of checks of a program that must never count as waiting.
const LOOKS: usize = 60;

/// A program and the other end of its input. Dropping it ends the program and everything it started.
struct Program {
    child: Child,
    terminal: Option<OwnedFd>,
    /// Kept open: a pipe without a writer does not block.
    _stdin: Option<ChildStdin>,
}

impl Program {
    /// Starts a program in a session of its own with a terminal.
    fn on_terminal(argv: &[&str]) -> Program {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&terminal).expect("it is ours");
        unlockpt(&terminal).expect("it is ours");
        let name = ptsname(&terminal, Vec::new()).expect("it has a name").into_string().expect("in plain letters");
        let side = || fs::File::options().read(true).write(true).open(&name).expect("the other side");
        let mut command = Command::new("setsid");
        command.arg("-c").args(argv).stdin(side()).stdout(side()).stderr(side());
        Program { child: command.spawn().expect("setsid is there"), terminal: Some(terminal), _stdin: None }
    }

    /// Starts a program in a group of its own with a pipe.
    fn on_pipe(argv: &[&str]) -> Program {
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().expect("the program is there");
        let stdin = child.stdin.take();
        Program { child, terminal: None, _stdin: stdin }
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Checks the program. This process stands for the shim: it is the parent and has the other end.
    fn detect(&self) -> InputWait {
        let input = if self.terminal.is_some() { ShimInput::Terminal } else { ShimInput::UnknownPipe };
        detect(std::process::id() as i32, self.pid(), input)
    }

    /// Checks until `fact` holds: a program that blocks causes no event.
    fn until(&self, what: &str, fact: impl Fn(&Program) -> bool) {
        let until = Instant::now() + DEADLINE;
        while !fact(self) {
            assert!(Instant::now() < until, "it never came true that {what}; {:?}", self.detect());
            std::thread::sleep(Duration::from_millis(5)); // rig: there is no event for a program that blocks
        }
    }

    /// Waits until a process waits for input, and returns it.
    fn wait_until_waiting(&self) -> (i32, Option<bool>) {
        self.until("it waits", |p| matches!(p.detect(), InputWait::Waiting { .. }));
        match self.detect() {
            InputWait::Waiting { pid, echo, .. } => (pid, echo),
            other => panic!("it stopped waiting: {other:?}"),
        }
    }

    /// Checks while the program gets to where `settled` holds, and for a while after: it never counts as waiting.
    fn never(&self, expected: InputWait, settled: impl Fn(&Program) -> bool) {
        let quiet = |p: &Program| assert!(!matches!(p.detect(), InputWait::Waiting { .. }), "{:?}", p.detect());
        self.until("it settles", |p| {
            quiet(p);
            settled(p)
        });
        (0..LOOKS).for_each(|_| quiet(self));
        self.until("it is detected", |p| p.detect() == expected);
    }

    /// Returns true if a descendant runs the program of this name and is in this state.
    fn has(&self, name: &str, state: char) -> bool {
        let all = tree::descendants(self.pid()).into_iter().chain([self.pid()]);
        let comm = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let is = |pid: i32| Stat::read(&format!("/proc/{pid}")).is_ok_and(|stat| stat.state == state);
        all.into_iter().any(|pid| comm(pid).trim() == name && is(pid))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It leads its group. Jobs of a shell have groups of their own, and are listed while it cannot start more.
        let own = Pid::from_child(&self.child);
        let _ = kill_process(own, Signal::STOP);
        let jobs: Vec<i32> = tree::descendants(self.pid());
        let _ = kill_process_group(own, Signal::KILL);
        for pid in jobs.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

#[test]
fn a_program_that_reads_its_terminal_waits_with_echo() {
    let program = Program::on_terminal(&["cat"]);
    assert_eq!(program.wait_until_waiting(), (program.pid(), Some(true)));
}

#[test]
fn a_password_prompt_waits_without_echo() {
    let program = Program::on_terminal(&["bash", "-c", "read -s -p Password: secret"]);
    assert_eq!(program.wait_until_waiting(), (program.pid(), Some(false)));
}

#[test]
fn the_reading_member_of_the_tree_is_reported() {
    let program = Program::on_terminal(&["sh", "-c", "cat; :"]);
    let (pid, echo) = program.wait_until_waiting();
    assert_eq!((tree::descendants(program.pid()), echo), (vec![pid], Some(true)));
    let program = Program::on_terminal(&["sh", "-c", "read line </dev/tty; :"]);
    assert_eq!(program.wait_until_waiting(), (program.pid(), Some(true)), "/dev/tty is that terminal");
}

#[test]
fn a_line_editor_that_selects_before_it_reads_waits() {
    let program = Program::on_terminal(&["python3", "-c", "import readline; input('name? ')"]);
    program.wait_until_waiting();
    let program = Program::on_terminal(&["bash", "--norc", "-i"]);
    assert_eq!(program.wait_until_waiting().0, program.pid());
    for wait in ["select.select([0], [], [])", "p = select.poll(); p.register(0, select.POLLIN); p.poll()"] {
        let program = Program::on_terminal(&["python3", "-c", &format!("import select; {wait}")]);
        program.wait_until_waiting();
    }
}

#[test]
fn a_program_that_reads_its_pipe_waits_and_has_no_echo() {
    let program = Program::on_pipe(&["cat"]);
    assert_eq!(program.wait_until_waiting(), (program.pid(), None));
    let program = Program::on_pipe(&["python3", "-c", "input('name? ')"]);
    assert_eq!(program.wait_until_waiting().1, None);
    let program = Program::on_pipe(&["sh", "-c", "cat | sleep 60"]);
    program.wait_until_waiting();
}

#[test]
fn a_second_thread_that_reads_is_reported() {
    let script = "import os,threading,time; threading.Thread(target=lambda: os.read(0, 1)).start(); time.sleep(60)";
    Program::on_pipe(&["python3", "-c", script]).wait_until_waiting();
}

#[test]
fn a_program_that_sleeps_or_waits_for_a_child_does_not_wait_for_input() {
    let sleeps = |p: &Program| p.has("sleep", 'S');
    Program::on_terminal(&["sleep", "60"]).never(InputWait::NotWaiting, sleeps);
    Program::on_terminal(&["sh", "-c", "sleep 60; :"]).never(InputWait::NotWaiting, sleeps);
    Program::on_terminal(&["bash", "-ic", "sleep 60; :"]).never(InputWait::NotWaiting, sleeps);
    Program::on_pipe(&["sh", "-c", "sleep 60; :"]).never(InputWait::NotWaiting, sleeps);
}

#[test]
fn a_program_that_reads_another_pipe_or_a_socket_does_not_wait_for_input() {
    let piped = |p: &Program| p.has("sleep", 'S') && p.has("cat", 'S');
    Program::on_terminal(&["sh", "-c", "sleep 60 | cat"]).never(InputWait::NotWaiting, piped);
    Program::on_pipe(&["sh", "-c", "sleep 60 | cat"]).never(InputWait::NotWaiting, piped);
    Program::on_pipe(&["sh", "-c", "x=$(sleep 60); :"]).never(InputWait::NotWaiting, |p| p.has("sleep", 'S'));
    Program::on_pipe(&["bash", "-c", "exec < <(sleep 60); read x"])
        .never(InputWait::NotWaiting, |p| p.has("sleep", 'S'));
    let socket = "import socket; a, b = socket.socketpair(); open('/proc/self/comm', 'w').write('reads'); a.recv(1)";
    Program::on_terminal(&["python3", "-c", socket]).never(InputWait::NotWaiting, |p| p.has("reads", 'S'));
}

#[test]
fn a_background_job_that_the_terminal_stopped_does_not_wait_for_input() {
    Program::on_terminal(&["bash", "-c", "set -m; cat & sleep 60"]).never(InputWait::NotWaiting, |p| p.has("cat", 'T'));
}

#[test]
fn a_program_that_waits_for_input_among_other_things_is_unknown() {
    let name = "open('/proc/self/comm', 'w').write('waits')";
    let select = format!("import os, select; r, w = os.pipe(); {name}; select.select([0, r], [], [])");
    Program::on_terminal(&["python3", "-c", &select]).never(InputWait::Unknown, |p| p.has("waits", 'S'));
    let epoll = format!(
        "import os, select; r, w = os.pipe(); e = select.epoll(); e.register(0, 1); e.register(r, 1); {name}; e.poll()"
    );
    Program::on_terminal(&["python3", "-c", &epoll]).never(InputWait::Unknown, |p| p.has("waits", 'S'));
    let server = format!("import os, select; r, w = os.pipe(); {name}; select.select([r], [], [])");
    Program::on_terminal(&["python3", "-c", &server]).never(InputWait::NotWaiting, |p| p.has("waits", 'S'));
}

#[test]
fn a_stdin_that_is_not_our_pipe_does_not_count() {
    let mut program = Program::on_pipe(&["sh", "-c", "exec 0</dev/zero; sleep 60"]);
    program.never(InputWait::NotWaiting, |p| p.has("sleep", 'S'));
    program.child.kill().expect("it runs");
    program.child.wait().expect("it was killed");
    assert_eq!(program.detect(), InputWait::NotWaiting, "it is gone");
}

#[test]
fn only_an_unambiguous_function_name_counts_as_a_read() {
    let all = OpenInputs { stdin: true, input: true, pipes: false };
    let cases = [
        ("n_tty_read", true, all, ThreadState::ReadsInput),
        ("n_tty_read", true, OpenInputs { stdin: false, ..all }, ThreadState::Unclear),
        ("n_tty_read", true, OpenInputs { input: false, stdin: false, ..all }, ThreadState::Other),
        ("anon_pipe_read", false, all, ThreadState::ReadsInput),
        ("pipe_read", false, all, ThreadState::ReadsInput),
        ("pipe_read", false, OpenInputs { pipes: true, ..all }, ThreadState::Unclear),
        ("pipe_read", true, all, ThreadState::Other),
        ("wait_woken", true, all, ThreadState::Unclear),
        ("0", true, all, ThreadState::Unclear),
        ("do_wait", true, all, ThreadState::Other),
        ("hrtimer_nanosleep", false, all, ThreadState::Other),
        ("futex_wait_queue", false, all, ThreadState::Other),
    ];
    for (name, terminal, inputs, expected) in cases {
        assert_eq!(from_wchan(name, terminal, inputs), expected, "{name} {terminal} {inputs:?}");
    }
}

#[test]
fn a_read_is_known_by_its_name_where_the_call_is_hidden() {
    // The test runner may pass down pipes of its own.
    let program = Program::on_pipe(&["sh", "-c", "exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-; exec cat"]);
    program.wait_until_waiting();
    let input = Input::pipe(std::process::id() as i32, program.pid()).expect("it lives").expect("it has the pipe");
    let thread = format!("/proc/{0}/task/{0}", program.pid());
    let named = fs::read_to_string(format!("{thread}/wchan")).is_ok_and(|name| name.ends_with("pipe_read"));
    let expected = if named { ThreadState::ReadsInput } else { ThreadState::Unclear };
    assert_eq!(input.state_by_wchan(program.pid(), &thread), expected);
}

/// Returns the prompt of this output.
fn prompted(output: &[u8]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("log"), output).expect("a log without an index is one");
    prompt(&Log::open(dir.path(), output.len() as u64).expect("it is there")).expect("it is readable")
}

#[test]
fn a_prompt_is_the_last_line_without_an_end_as_a_person_sees_it() {
    let long = "x".repeat(500);
    let cases = [
        ("", ""),
        ("done\n", ""),
        ("hello\nName: ", "Name: "),
        ("\x1b[1mProceed?\x1b[0m [Y/n] \x07", "Proceed? [Y/n] "),
        ("10%\r20%\rOverwrite? ", "Overwrite? "),
        ("Passwort f\u{fc}r", "Passwort f\u{fc}r"),
        ("half \u{20ac}", "half \u{20ac}"),
        (&long, &long[..MAX_PROMPT_CHARS]),
    ];
    for (output, expected) in cases {
        assert_eq!(prompted(output.as_bytes()), expected, "{output:?}");
    }
    assert_eq!(prompted(b"half \xe2\x82"), "half ", "the rest has yet to come");
}
