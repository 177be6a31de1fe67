//! The driver of a JavaScript kernel.

use crate::driver::{Driver, cell, ended};
use crate::program::{javascript, signal};
use serde_json::json;
use std::io::{BufRead, BufReader};

#[test]
fn cells_share_a_scope_declare_again_and_await() {
    let Some(run) = javascript() else { return };
    let child = Driver::new(&run);
    assert_eq!(cell(&run, 1, "const x = 20; let y = 1;\nconsole.log('hello')"), json!({"number": 1, "status": "ok"}));
    assert_eq!(cell(&run, 2, "const x = 21;\nx * 2"), json!({"number": 2, "status": "ok", "value": "42"}));
    assert_eq!(cell(&run, 3, "(await tools.echo({ n: x + y })).args")["value"], json!("{ n: 22 }"));
    assert_eq!(
        cell(
            &run,
            4,
            "import { EOL as eol } from 'node:os'\nimport fs, * as all from 'node:fs'\nimport {\n  echo,\n} from 'toold';\n[eol, fs === all.default, echo === tools.echo]"
        )["value"],
        json!("[ '\\n', true, true ]")
    );
    assert_eq!(cell(&run, 5, "(await import('node:path')).sep + require('node:path').sep")["value"], json!("'//'"));
    let long = cell(&run, 6, "'ü'.repeat(100000)")["value"].as_str().expect("text").len();
    assert!(long < 66_000, "{long} bytes");
    assert_eq!(
        cell(&run, 7, "[10n, -0, NaN, new Map([[1, { a: null }]])]")["value"],
        json!("[ 10n, -0, NaN, Map(1) { 1 => { a: null } } ]")
    );
    assert_eq!(cell(&run, 8, "10n")["value"], json!("10n"));
    assert_eq!(child.finish().0, "hello\n");
}

#[test]
fn an_error_names_the_line_and_keeps_the_state() {
    let Some(run) = javascript() else { return };
    let child = Driver::new(&run);
    cell(&run, 1, "let x = 1;\nfunction f() {\n  throw new RangeError('boom');\n}");
    let end = cell(&run, 2, "x = 2;\n\nf();\nx = 3;");
    assert_eq!(
        (&end["status"], &end["error"]["type"], &end["error"]["line"]),
        (&json!("error"), &json!("RangeError"), &json!(3))
    );
    let trace = end["error"]["traceback"].as_str().expect("text");
    assert_eq!(trace, "RangeError: boom\n    at f (cell-1:3:9)\n    at cell-2:3:1\n");
    let end = cell(&run, 3, "x = 5;\nlet = = 3");
    assert_eq!((&end["error"]["type"], &end["error"]["line"]), (&json!("SyntaxError"), &json!(2)));
    assert_eq!(cell(&run, 4, "x")["value"], json!("2"), "nothing of a cell that does not compile runs");
    let end = cell(&run, 5, "process.exit(3)");
    assert_eq!(end["status"], json!("error"));
    assert_eq!(cell(&run, 6, "throw 'text'")["error"]["message"], json!("text"));
    let end = cell(&run, 7, "\nawait fail({ code: 1, message: 'no', data: { kind: 'denied' } })");
    assert_eq!((&end["error"]["type"], &end["error"]["line"]), (&json!("ToolDenied"), &json!(2)), "{end}");
    cell(&run, 8, "setTimeout(() => { throw new Error('late') }, 0)");
    assert_eq!(cell(&run, 9, "await new Promise((r) => setTimeout(r, 20)); x")["value"], json!("2"));
    assert!(child.finish().1.contains("Error: late"));
}

#[test]
fn an_interrupt_ends_the_cell_and_keeps_the_state() {
    let Some(run) = javascript() else { return };
    let mut child = Driver::new(&run);
    cell(&run, 1, "let x = 1");
    signal(&child.program, "INT"); // between cells: nothing
    let mut out = BufReader::new(child.program.stdout.take().expect("a pipe"));
    let codes = [
        "for (let i = 0; ; i++) if (i === 1e6) require('node:fs').writeSync(1, 'up\\n')",
        "setTimeout(() => console.log('up'), 20); await new Promise(() => {})",
        "setTimeout(() => console.log('up'), 20); await hang()",
        "setTimeout(() => console.log('up'), 20); for (;;) await new Promise((r) => setTimeout(r, 1))",
    ];
    for (i, code) in codes.into_iter().enumerate() {
        run.channel.push_cell(code);
        out.read_line(&mut String::new()).expect("output");
        signal(&child.program, "INT");
        let end = ended(&run, i + 2);
        assert_eq!(end["status"], json!("interrupted"), "{code}: {end}");
    }
    child.program.stdout = Some(out.into_inner());
    assert_eq!(cell(&run, 6, "[x, (await echo({ n: 1 })).args.n]")["value"], json!("[ 1, 1 ]"));
    run.channel.wait("the cancel", |state| (!state.cancels.is_empty()).then_some(()));
    child.finish();
}

#[test]
fn a_call_belongs_to_the_cell_whose_code_led_to_it() {
    let Some(run) = javascript() else { return };
    let child = Driver::new(&run);
    cell(
        &run,
        1,
        "let go; const gone = new Promise((r) => (go = r));\nconst old = (async () => { await gone; await echo({ n: 'old' }); })();\nsetTimeout(() => echo({ n: 'timer' }), 30);\nawait echo({ n: 'main' })",
    );
    cell(&run, 2, "go(); await old; await new Promise((r) => setTimeout(r, 60)); await echo({ n: 'main' })");
    let state = run.channel.state();
    let mut seen: Vec<_> =
        state.calls.iter().map(|call| (call["args"]["n"].as_str().expect("text"), call["cell"].as_u64())).collect();
    seen.sort();
    assert_eq!(seen, [("main", Some(1)), ("main", Some(2)), ("old", Some(1)), ("timer", Some(1))]);
    drop(state);
    child.finish();
}

#[test]
fn the_end_of_a_cell_is_reported_once_the_daemon_is_back() {
    let Some(run) = javascript() else { return };
    let child = Driver::new(&run);
    cell(&run, 1, "let x = 1");
    run.channel.push_cell("note('up'); await new Promise((r) => setTimeout(r, 200)); x = 2");
    run.channel.wait("the cell", |state| state.reports.iter().any(|report| report.get("note").is_some()).then_some(()));
    run.channel.close();
    std::thread::sleep(std::time::Duration::from_millis(400)); // rig: time without a daemon
    run.channel.open();
    assert_eq!(ended(&run, 2)["value"], json!("2"));
    assert_eq!(cell(&run, 3, "x")["value"], json!("2"));
    child.finish();
}
