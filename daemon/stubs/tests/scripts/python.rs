//! The Python stub and its runner, with a daemon that behaves.

use crate::program::{python, signal, text};
use serde_json::json;

#[test]
fn a_call_returns_a_dict_and_omits_arguments_that_were_not_given() {
    let Some(run) = python() else { return };
    let out = run.output(
        "from toold_tools import terminal, tools, list_\n\
         print(terminal('ls')['args'])\n\
         print(tools.linear.create_issue('x', from_='me', timeout=20)['args'])\n\
         print(tools['linear.import'](), tools.linear['import'].tool, list_.tool)\n\
         print(terminal('ls', timeout=1.5)['args'])\n",
    );
    assert_eq!(
        out,
        "{'command': 'ls', 'background': False, 'mode': 'a'}\n\
         {'title': 'x', 'from': 'me'}\n\
         {'args': {}} linear.import list\n\
         {'command': 'ls', 'timeout': 1.5, 'background': False, 'mode': 'a'}\n"
    );
    let state = run.channel.state();
    assert_eq!(
        state.calls[1],
        json!({"name": "linear.create-issue", "args": {"title": "x", "from": "me"}, "timeout_ms": 20000})
    );
    assert_eq!(state.calls[3]["timeout_ms"], json!(null));
    assert_eq!(state.hellos.len(), 1);
}

#[test]
fn a_signature_and_a_docstring_come_from_the_schema() {
    let Some(run) = python() else { return };
    let out = run.output(
        "import inspect, typing\nfrom toold_tools import terminal, tools, ToolDenied\n\
         print(terminal.__name__, inspect.signature(terminal))\n\
         print(terminal.__doc__)\n\
         print(tools)\n\
         try: terminal()\n\
         except TypeError as e: print(e)\n\
         try: terminal('x', pty=True)\n\
         except TypeError as e: print(e)\n\
         try: tools.linear.nothing\n\
         except AttributeError as e: print(e, isinstance(e, ToolDenied), hasattr(tools, 'nothing'))\n\
         try: from toold_tools import nothing\n\
         except ImportError as e: print('ImportError')\n",
    );
    let lines: Vec<&str> = out.lines().collect();
    // Versions of Python differ in quotes and brackets.
    assert_eq!(
        lines[0].replace(['\'', '"', '\\'], "").replace("[(a, b)]", "[a, b]"),
        "terminal (command: str, timeout: Optional[float] = None, workdir: Optional[str] = None, background: bool = False, \
         mode: Literal[a, b] = a) -> dict"
    );
    assert!(out.contains("Second paragraph with \\ and \"\"\" in it."), "{out}");
    assert!(out.contains("terminal() missing 1 required positional argument: 'command'"), "{out}");
    assert!(out.contains("terminal() got an unexpected keyword argument 'pty'"), "{out}");
    assert!(
        out.contains("no tool linear.nothing for this script; there are: create_issue, import_ True False"),
        "{out}"
    );
    assert!(out.ends_with("ImportError\n"));
}

#[test]
fn an_error_is_an_exception_of_its_kind() {
    let Some(run) = python() else { return };
    let out = run.output(
        "from toold_tools import *\nimport toold_tools as t\n\
         for code, kind in [(-32005,'denied'),(-32004,'limit'),(-32008,'unavailable'),(-32602,'invalid_params'),(-32009,'conflict'),(-32800,'cancelled'),(-32010,'outcome_unknown'),(-32001,'not_found'),(-32011,'timeout')]:\n\
        \x20   try: t.fail(code=code, message='m', data={'kind': kind, 'x': 1})\n\
        \x20   except ToolError as e: print(type(e).__name__, e.kind, e.data['x'], e, e.tool)\n\
         try: t.fail(code=-32005, message='m', data={'kind': 'denied', 'reason': 'timeout'})\n\
         except ToolError as e: print(type(e).__name__, e.kind)\n\
         try: t.fail(code=-1, message='m', data=None)\n\
         except ToolError as e: print(type(e).__name__, e.kind, e.data)\n\
         for answer in [{}, {'result': None}, {'result': []}, {'error': 'x'}, {'result': {'file': {'path': '/none'}}}]:\n\
        \x20   try: t.odd(answer=answer)\n\
        \x20   except ToolError as e: print(e.kind, e)\n",
    );
    assert_eq!(
        out,
        "ToolDenied denied 1 m fail\nToolLimit limit 1 m fail\nToolUnavailable unavailable 1 m fail\n\
         ToolInvalid invalid_params 1 m fail\nToolConflict conflict 1 m fail\nToolCancelled cancelled 1 m fail\n\
         OutcomeUnknown outcome_unknown 1 m fail\nToolError not_found 1 m fail\nToolTimeout timeout 1 m fail\n\
         ToolDenied denied\n\
         ToolError internal {}\n\
         internal odd: the answer has neither a result nor an error\n\
         internal odd: the answer has neither a result nor an error\n\
         internal odd: the answer has neither a result nor an error\n\
         internal odd: the answer has neither a result nor an error\n\
         internal odd: its large result cannot be read: [Errno 2] No such file or directory: '/none'\n"
    );
}

#[test]
fn gather_returns_results_in_order_and_raises_the_first_error_after_all_ended() {
    let Some(run) = python() else { return };
    run.channel.state().hold = 4;
    let out = run.output(
        "from toold_tools import *\n\
         print([r['args']['n'] for r in gather([reverse.later(n=n) for n in range(4)], parallel=4)])\n\
         print([r['args']['n'] for r in gather((echo.later(n=n, ms=5 - n) for n in range(5)), parallel=2)])\n\
         try: gather([echo.later(n=100), fail.later(code=1, message='first', data={}), fail.later(code=1, message='second', data={}), echo.later(n=101, ms=50)])\n\
         except ToolError as e: print(e)\n\
         try: gather([echo(n=1)])\n\
         except TypeError as e: print(e)\n\
         print(gather([]))\n",
    );
    assert_eq!(
        out,
        "[0, 1, 2, 3]\n[0, 1, 2, 3, 4]\nfirst\n\
         gather takes calls that have not started: terminal.later(...), not terminal(...)\n[]\n"
    );
    let state = run.channel.state();
    assert!(state.journal.values().all(|(_, answer)| answer.is_some()), "all of them ended");
}

#[test]
fn retry_repeats_what_may_be_repeated_and_nothing_else() {
    let Some(run) = python() else { return };
    let out = run.output(
        "from toold_tools import *\n\
         def tried(fn):\n    count = [0]\n    def once():\n        count[0] += 1\n        return fn(count[0])\n\
        \x20   try: end = retry(once, times=3, delay=0.001)\n    except Exception as e: end = type(e).__name__\n    print(end, count[0])\n\
         def raising(kind):\n    return lambda n: fail(code=1, message='m', data={'kind': kind})\n\
         for kind in ['denied', 'limit', 'invalid_params', 'outcome_unknown', 'unavailable', 'timeout']: tried(raising(kind))\n\
         tried(lambda n: fail(code=1, message='m', data={'kind': 'denied', 'reason': 'timeout'}))\n\
         tried(lambda n: 'done' if n == 2 else 1 / 0)\n\
         print(retry(echo.later(n=1))['args'])\n",
    );
    assert_eq!(
        out,
        "ToolDenied 1\nToolLimit 1\nToolInvalid 1\nOutcomeUnknown 1\nToolUnavailable 3\nToolTimeout 3\nToolDenied 1\ndone 2\n{'n': 1}\n"
    );
}

#[test]
fn helpers_parse_quote_and_read_the_arguments() {
    let Some(run) = python() else { return };
    std::fs::write(run.path().join("args.json"), r#"{"dirs": ["a b"]}"#).expect("arguments");
    let out = run.output(
        "from toold_tools import json_parse, shell_quote, args\n\
         print(json_parse('{\"a\": \"x\\ty\"}'), json_parse({'b': 1}))\n\
         print(shell_quote('a b'), shell_quote(\"it's\"), shell_quote('plain/x.py'), shell_quote(''), shell_quote('ü'))\n\
         print(args)\n",
    );
    assert_eq!(out, "{'a': 'x\\ty'} {'b': 1}\n'a b' 'it'\"'\"'s' plain/x.py '' 'ü'\n{'dirs': ['a b']}\n");
    assert_eq!(run.channel.state().hellos.len(), 0, "none of these needs the channel");
}

#[test]
fn asyncio_awaits_calls_and_cancels_them() {
    let Some(run) = python() else { return };
    let out = run.output(
        "import asyncio\nfrom toold_tools import aio, ToolError\n\
         async def main():\n\
        \x20   print([r['args']['n'] for r in await asyncio.gather(*[aio.echo(n=n, ms=20) for n in range(16)])])\n\
        \x20   print((await aio.linear.create_issue(title='t'))['args'])\n\
        \x20   try: await aio.fail(code=1, message='m', data={'kind': 'denied'})\n\
        \x20   except ToolError as e: print(e.kind)\n\
        \x20   try: await asyncio.wait_for(aio.hang(), 0.05)\n\
        \x20   except asyncio.TimeoutError: print('timeout')\n\
         asyncio.run(main())\nasyncio.run(main())\n",
    );
    let once = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]\n{'title': 't'}\ndenied\ntimeout\n";
    assert_eq!(out, once.repeat(2));
    assert_eq!(run.channel.wait("cancels", |state| (state.cancels.len() == 2).then_some(2)), 2);
}

#[test]
fn a_large_result_is_read_from_its_file() {
    let Some(run) = python() else { return };
    assert_eq!(run.output("from toold_tools import big\nprint(len(big(bytes=3000000)['text']))\n"), "3000000\n");
}

#[test]
fn a_large_call_and_a_large_answer_pass() {
    let Some(run) = python() else { return };
    let out = run.output(
        "from toold_tools import *\n\
         rs = gather([echo.later(n=n, text='ü' * 2000000) for n in range(8)])\n\
         print([(r['args']['n'], len(r['args']['text'])) for r in rs][-1])\n",
    );
    assert_eq!(out, "(7, 2000000)\n");
}

#[test]
fn an_argument_that_json_cannot_express_is_refused_before_it_is_sent() {
    let Some(run) = python() else { return };
    let out = run.output(
        "import pathlib\nfrom toold_tools import *\n\
         for value in ['\\udc80', float('nan'), object(), b'x']:\n\
        \x20   try: echo(value=value)\n    except Exception as e: print(type(e).__name__)\n\
         print(echo(value=pathlib.Path('/x'))['args'])\n",
    );
    assert_eq!(out, "ToolInvalid\nValueError\nTypeError\nTypeError\n{'value': '/x'}\n");
    assert_eq!(run.channel.state().effects.len(), 1);
}

#[test]
fn reports_reach_the_daemon_before_the_exit() {
    let Some(run) = python() else { return };
    run.output(
        "from toold_tools import *\nfor i in range(100): note('n%d' % i)\nartifact('/tmp/x')\nresult({'count': 3})\nnote('last')\n",
    );
    let state = run.channel.state();
    let notes = (0..100).map(|i| json!({"note": format!("n{i}")}));
    let rest = [json!({"artifact": {"path": "/tmp/x"}}), json!({"value": {"count": 3}}), json!({"note": "last"})];
    assert_eq!(state.reports, notes.chain(rest).collect::<Vec<_>>());
}

#[test]
fn a_script_that_calls_nothing_opens_no_channel_and_imports_no_stub() {
    let Some(run) = python() else { return };
    let out = run.output("import sys\nprint(1, [m for m in sys.modules if 'toold' in m ])\n");
    assert_eq!(out, "1 []\n");
    assert_eq!(run.channel.state().hellos.len(), 0);
}

#[test]
fn importing_the_stub_imports_nothing_that_is_slow() {
    let Some(run) = python() else { return };
    let out = run.output(
        "import sys\nbefore = set(sys.modules)\nfrom toold_tools import terminal, tools, gather, result, ToolError\n\
         print(sorted(set(sys.modules) - before))\n",
    );
    assert_eq!(out, "['toold_tools']\n");
}

#[test]
fn an_uncaught_exception_is_printed_and_reported_with_the_users_line() {
    let Some(run) = python() else { return };
    let output = run
        .run("import toold_tools as t\ndef f():\n    t.fail(code=1, message='no', data={'kind': 'denied'})\n\nf()\n");
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("line 3, in f\n    t.fail(code=1"), "{stderr}");
    assert!(stderr.ends_with("toold_tools.ToolDenied: no\n"), "{stderr}");
    assert!(!stderr.contains("run.py") && !stderr.contains("toold_link.py"), "only the user's frames: {stderr}");
    let state = run.channel.state();
    let error = &state.reports[0]["error"];
    assert_eq!((&error["type"], &error["message"], &error["line"]), (&json!("ToolDenied"), &json!("no"), &json!(3)));
    assert_eq!(error["traceback"], json!(stderr));
}

#[test]
fn a_syntax_error_is_reported_with_its_line_and_nothing_runs() {
    let Some(run) = python() else { return };
    let output = run.run("print('ran')\nx = (\n");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""));
    assert!(text(&output.stderr).contains("SyntaxError"), "{}", text(&output.stderr));
    let state = run.channel.state();
    assert_eq!(
        (&state.reports[0]["error"]["type"], &state.reports[0]["error"]["line"]),
        (&json!("SyntaxError"), &json!(2))
    );
}

#[test]
fn an_exit_code_is_the_scripts_and_is_not_an_error() {
    let Some(run) = python() else { return };
    let output = run.run("import sys\nsys.exit(7)\n");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(7), 0));
    let output = run.run("raise SystemExit('message')\n");
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(1), "message\n"));
    assert_eq!(run.channel.state().reports.len(), 0);
}

#[test]
fn a_file_elsewhere_runs_as_main_with_its_directory_on_the_path() {
    let Some(run) = python() else { return };
    let other = tempfile::TempDir::new().expect("a directory");
    std::fs::write(other.path().join("beside.py"), "value = 5\n").expect("a module");
    let file = other.path().join("job.py");
    let code = "import beside, sys\nfrom toold_tools import echo\n\
        if __name__ == '__main__': print(beside.value, __file__ == sys.argv[0], echo(n=1)['args'], __import__('inspect').getsource(f).strip())\n";
    std::fs::write(&file, format!("def f(): pass\n{code}")).expect("the script");
    let output = run.command("run.py").env("TOOLD_SCRIPT_FILE", &file).output().expect("the interpreter runs");
    assert_eq!(text(&output.stdout), "5 True {'n': 1} def f(): pass\n", "{}", text(&output.stderr));
}

#[test]
fn an_interrupt_cancels_the_call_and_stays_an_interrupt() {
    let Some(run) = python() else { return };
    let child = run.start(
        "from toold_tools import *\ntry: hang()\nexcept KeyboardInterrupt: print('interrupted')\nprint(echo(n=1)['args'])\nhang()\n",
    );
    run.channel.wait("the call", |state| (state.effects.len() == 1).then_some(()));
    signal(&child, "INT");
    run.channel.wait("the second call", |state| (state.effects.len() == 3).then_some(()));
    signal(&child, "INT");
    let output = child.wait_with_output().expect("the end");
    assert_eq!(text(&output.stdout), "interrupted\n{'n': 1}\n");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(2), "{}", text(&output.stderr));
    let state = run.channel.state();
    assert_eq!(state.cancels.iter().collect::<std::collections::HashSet<_>>().len(), 2);
    assert_eq!(state.reports[0]["error"]["type"], json!("KeyboardInterrupt"));
    assert_eq!(state.effects.len(), 3);
}

#[test]
fn a_fork_opens_its_own_link_with_its_own_ids() {
    let Some(run) = python() else { return };
    let out = run.output(
        "import os, threading\nfrom toold_tools import echo\n\
         echo(n=0)\n\
         busy = [threading.Thread(target=lambda: [echo(n=1, ms=1) for _ in range(50)]) for _ in range(4)]\n\
         [t.start() for t in busy]\n\
         pids = []\n\
         for i in range(4):\n    pid = os.fork()\n    if pid == 0:\n        print('%s\\n' % echo(n='child')['args']['n'], end='', flush=True)\n        os._exit(0)\n    pids.append(pid)\n\
         [t.join() for t in busy]\n\
         codes = [os.waitpid(pid, 0)[1] for pid in pids]\n\
         print(codes, echo(n=2)['args'])\n",
    );
    assert_eq!(out, format!("{}[0, 0, 0, 0] {{'n': 2}}\n", "child\n".repeat(4)));
    let state = run.channel.state();
    let links: std::collections::HashSet<&str> = state.journal.keys().map(|id| &id[..8]).collect();
    assert_eq!((links.len(), state.effects.len()), (5, 206));
    let pids: std::collections::HashSet<String> = state.hellos.iter().map(|hello| hello["pid"].to_string()).collect();
    assert_eq!(pids.len(), 5);
}

#[test]
fn a_child_that_multiprocessing_starts_calls_tools_and_its_error_is_its_own() {
    let Some(run) = python() else { return };
    let out = run.output(
        "import multiprocessing, os\nfrom toold_tools import echo, ToolError, fail\n\
         def work(n): return echo(n=n)['args']['n']\n\
         def bad(n): return fail(code=1, message='m', data={'kind': 'denied'})\n\
         if __name__ == '__main__':\n\
        \x20   for method in ('fork', 'spawn'):\n\
        \x20       with multiprocessing.get_context(method).Pool(2) as pool:\n\
        \x20           print(pool.map(work, range(4)))\n\
        \x20           try: pool.map(bad, [1])\n            except ToolError as e: print(type(e).__name__, e.kind)\n\
        \x20   if os.fork() == 0: raise ValueError('of the child')\n\
        \x20   print(os.wait()[1] >> 8)\n",
    );
    assert_eq!(out, format!("{}1\n", "[0, 1, 2, 3]\nToolDenied denied\n".repeat(2)));
    assert_eq!(run.channel.state().reports.len(), 0, "an exception of a child is not the script's");
}

#[test]
fn a_signal_handler_may_call_a_tool_while_its_thread_waits() {
    let Some(run) = python() else { return };
    let out = run.output(
        "import signal\nfrom toold_tools import echo\n\
         echo(n='import')\nseen = []\nsignal.signal(signal.SIGALRM, lambda *a: seen.append(echo(n='inner')['args']['n']))\n\
         signal.setitimer(signal.ITIMER_REAL, 0.05)\n\
         print(echo(n='outer', ms=200)['args']['n'], seen)\n",
    );
    assert_eq!(out, "outer ['inner']\n");
    assert_eq!(run.channel.state().effects.len(), 3);
}

#[test]
fn every_file_is_in_the_syntax_of_python_3_8() {
    let Some(run) = python() else { return };
    let out = run.output(
        "import ast, glob, os\n\
         for path in sorted(glob.glob(os.path.dirname(__file__) + '/*.py')):\n\
        \x20   ast.parse(open(path).read(), feature_version=(3, 8))\n    print(os.path.basename(path))\n",
    );
    assert_eq!(out, "kernel.py\nmain.py\nrun.py\ntoold_aio.py\ntoold_link.py\ntoold_report.py\ntoold_tools.py\n");
}
