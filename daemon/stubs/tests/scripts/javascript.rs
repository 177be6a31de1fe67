//! The JavaScript stub and its runner, with a daemon that behaves.

use crate::program::{javascript, text};
use serde_json::json;

#[test]
fn a_call_returns_an_object_and_takes_an_object_or_its_first_argument() {
    let Some(run) = javascript() else { return };
    let out = run.output(
        "import { terminal, tools, list_, linear } from 'toold';\n\
         console.log(JSON.stringify(await terminal('ls')));\n\
         console.log(JSON.stringify(await tools.terminal({ command: 'ls', timeout: 1.5 })));\n\
         console.log(JSON.stringify(await tools.linear.create_issue({ title: 'x', from: 'me' }, { timeout: 20 })));\n\
         console.log(tools['linear.import'].tool, linear.import_.tool, list_.tool);\n\
         try { tools.linear.nothing } catch (e) { console.log(e.message) }\n\
         try { await tools.list_(3) } catch (e) { console.log(e.message) }\n",
    );
    assert_eq!(
        out,
        "{\"args\":{\"command\":\"ls\"}}\n{\"args\":{\"command\":\"ls\",\"timeout\":1.5}}\n\
         {\"args\":{\"title\":\"x\",\"from\":\"me\"}}\nlinear.import linear.import list\n\
         no tool linear.nothing for this script; there are: create_issue, import_\n\
         list takes an object with its arguments\n"
    );
    let state = run.channel.state();
    assert_eq!(
        state.calls[2],
        json!({"name": "linear.create-issue", "args": {"title": "x", "from": "me"}, "timeout_ms": 20000})
    );
    assert_eq!(state.hellos.len(), 1);
}

#[test]
fn an_error_is_a_rejection_of_its_kind() {
    let Some(run) = javascript() else { return };
    let out = run.output(
        "import * as t from 'toold';\n\
         for (const kind of ['denied', 'limit', 'unavailable', 'invalid_params', 'conflict', 'cancelled', 'outcome_unknown', 'timeout', 'other', 'constructor']) {\n\
           try { await t.fail({ code: 1, message: 'm', data: { kind, x: 1 } }) }\n\
           catch (e) { console.log(e.name, e.kind, e.data.x, e.message, e.tool, e instanceof t.ToolError) }\n\
         }\n\
         try { await t.fail({ code: 1, message: 'm', data: { kind: 'denied', reason: 'timeout' } }) }\n\
         catch (e) { console.log(e.name, e.kind) }\n\
         for (const answer of [{}, { result: null }, { result: [] }, { error: 'x' }, { result: { file: { path: '/none' } } }])\n\
           try { await t.odd({ answer }) } catch (e) { console.log(e.kind, e.message) }\n",
    );
    let names = "ToolDenied denied|ToolLimit limit|ToolUnavailable unavailable|ToolInvalid invalid_params|ToolConflict conflict|\
        ToolCancelled cancelled|OutcomeUnknown outcome_unknown|ToolTimeout timeout|ToolError other|ToolError constructor";
    let mut wanted: String = names.split('|').map(|name| format!("{name} 1 m fail true\n")).collect();
    wanted += "ToolDenied denied\n";
    wanted += &"internal odd: the answer has neither a result nor an error\n".repeat(4);
    wanted += "internal odd: its large result cannot be read: ENOENT: no such file or directory, open '/none'\n";
    assert_eq!(out, wanted);
}

#[test]
fn gather_retry_and_helpers_are_those_of_python() {
    let Some(run) = javascript() else { return };
    std::fs::write(run.path().join("args.json"), r#"{"dirs": ["a b"]}"#).expect("arguments");
    run.channel.state().hold = 4;
    let out = run.output(
        "import { args, echo, fail, gather, retry, reverse, shellQuote } from 'toold';\n\
         console.log((await gather([0, 1, 2, 3].map((n) => reverse.later({ n })))).map((r) => r.args.n).join());\n\
         console.log((await gather([3, 2, 1].map((ms) => () => echo({ ms })), { parallel: 2 })).map((r) => r.args.ms).join());\n\
         await gather([echo.later({ n: 1 }), fail.later({ code: 1, message: 'first', data: {} }), fail.later({ code: 1, message: 'second', data: {} }), echo.later({ ms: 50 })]).catch((e) => console.log(e.message));\n\
         for (const kind of ['denied', 'limit', 'invalid_params', 'outcome_unknown', 'unavailable']) {\n\
           let tried = 0;\n\
           await retry(() => (tried++, fail({ code: 1, message: 'm', data: { kind } })), { delay: 0.001 }).catch(() => console.log(kind, tried));\n\
         }\n\
         console.log(shellQuote('a b'), shellQuote(\"it's\"), shellQuote('plain/x'), shellQuote(''), JSON.stringify(args));\n",
    );
    assert_eq!(
        out,
        "0,1,2,3\n3,2,1\nfirst\ndenied 1\nlimit 1\ninvalid_params 1\noutcome_unknown 1\nunavailable 3\n\
         'a b' 'it'\"'\"'s' plain/x '' {\"dirs\":[\"a b\"]}\n"
    );
    assert!(run.channel.state().journal.values().all(|(_, answer)| answer.is_some()), "all of them ended");
}

#[test]
fn large_calls_and_results_pass_and_an_abort_cancels() {
    let Some(run) = javascript() else { return };
    let out = run.output(
        "import { big, echo, gather, hang } from 'toold';\n\
         console.log((await big({ bytes: 3000000 })).text.length);\n\
         console.log((await gather([1, 2, 3].map((n) => echo.later({ text: 'ü'.repeat(2000000) })))).map((r) => r.args.text.length).join());\n\
         await hang({}, { signal: AbortSignal.timeout(50) }).catch((e) => console.log(e.name));\n\
         await echo({ text: '\\ud800' }).catch((e) => console.log(e.name));\n\
         console.log((await echo({ text: '\\\\ud800' })).args.text);\n",
    );
    assert_eq!(out, "3000000\n2000000,2000000,2000000\nTimeoutError\nToolInvalid\n\\ud800\n");
    run.channel.wait("the cancel", |state| (state.cancels.len() == 1).then_some(()));
}

#[test]
fn reports_reach_the_daemon_before_the_process_ends_by_itself() {
    let Some(run) = javascript() else { return };
    run.output(
        "import { artifact, echo, note, result } from 'toold';\nawait echo();\nfor (let i = 0; i < 100; i++) note(`n${i}`);\n\
         artifact('/tmp/x');\nresult({ count: 3 });\nnote('last');\n",
    );
    let notes = (0..100).map(|i| json!({"note": format!("n{i}")}));
    let rest = [json!({"artifact": {"path": "/tmp/x"}}), json!({"value": {"count": 3}}), json!({"note": "last"})];
    assert_eq!(run.channel.state().reports, notes.chain(rest).collect::<Vec<_>>());
}

#[test]
fn a_script_that_calls_nothing_opens_no_channel() {
    let Some(run) = javascript() else { return };
    assert_eq!(run.output("console.log(1)\n"), "1\n");
    assert_eq!(run.channel.state().hellos.len(), 0);
}

#[test]
fn an_uncaught_exception_is_printed_and_reported_with_the_users_line() {
    let Some(run) = javascript() else { return };
    let codes = [
        (
            "import { fail } from 'toold';\nasync function f() {\n  await fail({ code: 1, message: 'no', data: { kind: 'denied' } });\n}\nawait f();\n",
            "ToolDenied",
            3,
        ),
        ("console.log(1);\nnull.x;\n", "TypeError", 2),
        ("setTimeout(() => {\n\n  throw new RangeError('late') });\nawait new Promise(() => {});\n", "RangeError", 3),
        ("\nPromise.reject(new Error('unhandled'));\nawait new Promise((r) => setTimeout(r, 5000));\n", "Error", 2),
        ("console.log('ran');\n\nlet x = (;\n", "SyntaxError", 3),
    ];
    for (i, (code, kind, line)) in codes.into_iter().enumerate() {
        let output = run.run(code);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(
            !stderr.contains("run.mjs:") && !stderr.contains("node_modules/toold"),
            "only the user's frames: {stderr}"
        );
        let state = run.channel.state();
        let error = &state.reports[i]["error"];
        assert_eq!((&error["type"], &error["line"]), (&json!(kind), &json!(line)), "{stderr}");
        assert_eq!(error["traceback"], json!(stderr));
        assert_eq!(text(&output.stdout), if kind == "TypeError" { "1\n" } else { "" });
    }
}

#[test]
fn an_exit_code_is_the_scripts() {
    let Some(run) = javascript() else { return };
    assert_eq!(run.run("process.exit(7)\n").status.code(), Some(7));
    assert_eq!(run.run("process.exitCode = 6\n").status.code(), Some(6));
    assert_eq!(run.channel.state().reports.len(), 0);
}

#[test]
fn the_package_is_found_from_a_file_elsewhere_and_code_imports_from_the_working_directory() {
    let Some(run) = javascript() else { return };
    let other = tempfile::TempDir::new().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = other.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    };
    write("beside.mjs", "import { echo } from 'toold';\nexport const value = (await echo({ n: 5 })).args.n;\n");
    write("node_modules/dep/package.json", r#"{"name": "dep", "main": "index.js"}"#);
    write("node_modules/dep/index.js", "module.exports = { dep: 6 };\n");
    let code = "import { value } from './beside.mjs';\nimport dep from 'dep';\nimport { echo } from 'toold';\n\
        console.log(value, dep.dep, (await echo({ n: 7 })).args.n, process.argv.length);\n";
    write("job.mjs", code);
    let output =
        run.command("run.mjs").env("TOOLD_SCRIPT_FILE", other.path().join("job.mjs")).output().expect("node runs");
    assert_eq!(text(&output.stdout), "5 6 7 2\n", "{}", text(&output.stderr));
    std::fs::write(run.path().join("main.mjs"), code).expect("the script");
    let output = run.command("run.mjs").current_dir(other.path()).output().expect("node runs");
    assert_eq!(text(&output.stdout), "5 6 7 2\n", "{}", text(&output.stderr));
}
