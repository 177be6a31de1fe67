//! The Python stub with a daemon that dies, cuts, refuses and sends garbage.

use crate::program::{Language, Run, python, text};
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::process::Command;
use std::time::Duration;

/// A small generator of numbers, so that a failure repeats with its seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// 16 threads that check every answer against its call.
const THREADS: &str = "import threading\nfrom toold_tools import echo\nbad = []\n\
    def work(t):\n    for i in range(200):\n        r = echo(t=t, i=i, ms=i % 3)['args']\n        if (r['t'], r['i']) != (t, i): bad.append(r)\n\
    threads = [threading.Thread(target=work, args=(t,)) for t in range(16)]\n\
    [t.start() for t in threads]\n[t.join() for t in threads]\nprint('bad', bad)\n";

#[test]
fn every_effect_happens_once_while_connections_are_cut_and_the_daemon_restarts() {
    for seed in [1, 2] {
        let Some(run) = python() else { return };
        let mut random = Random(0x9e37_79b9_7f4a_7c15 + seed);
        run.channel.state().cut_after = Some(37);
        let mut child = run.start(THREADS);
        while child.try_wait().expect("the child").is_none() {
            std::thread::sleep(Duration::from_millis(5 + random.below(40))); // rig: time between two faults
            if random.below(3) == 0 {
                run.channel.close();
                std::thread::sleep(Duration::from_millis(random.below(60))); // rig: time without a daemon
                run.channel.open();
            } else {
                run.channel.cut();
            }
        }
        let output = child.wait_with_output().expect("the end");
        assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("bad []\n", ""), "seed {seed}");
        let state = run.channel.state();
        assert_eq!((state.effects.len(), state.journal.len(), state.conflicts), (3200, 3200, 0), "seed {seed}");
        assert!(state.hellos.len() > 10, "{} connections", state.hellos.len());
    }
}

#[test]
fn calls_after_the_end_of_the_script_are_denied_also_one_in_flight() {
    for language in [Language::Python, Language::JavaScript] {
        let Some(run) = Run::new(language) else { continue };
        let child = run.start(match language {
            Language::Python => {
                "from toold_tools import *\nfor call in (hang, echo):\n    \
                 try: call()\n    except ToolDenied as e: print(e.kind, e.data['reason'])\n"
            }
            Language::JavaScript => {
                "import { tools } from 'toold';\nfor (const call of [tools.hang, tools.echo]) {\n  \
                 try { await call({}) } catch (e) { console.log(e.kind, e.data.reason) }\n}\n"
            }
        });
        run.channel.wait("the call", |state| (state.effects.len() == 1).then_some(()));
        std::fs::remove_file(run.path().join("owner")).expect("it was there");
        run.channel.close();
        let output = child.wait_with_output().expect("the end");
        assert_eq!(text(&output.stdout), "denied retired\ndenied retired\n", "{}", text(&output.stderr));
        assert_eq!(run.channel.state().effects.len(), 1);
    }
}

#[test]
fn interrupts_at_any_moment_lose_no_answer_of_other_threads() {
    let Some(run) = python() else { return };
    let mut child = run.start(
        "import threading\nfrom toold_tools import echo\nbad = []\n\
         def work(t):\n    for i in range(300):\n        r = echo(t=t, i=i, ms=i % 3)['args']\n        if (r['t'], r['i']) != (t, i): bad.append(r)\n\
         echo(n='import')\nthreads = [threading.Thread(target=work, args=(t,)) for t in range(4)]\n[t.start() for t in threads]\n\
         seen, armed = 0, False\n\
         def on_interrupt(*_):\n    global armed\n    if armed:\n        armed = False\n        raise KeyboardInterrupt\n\
         import signal\nsignal.signal(signal.SIGINT, on_interrupt)\nprint('up', flush=True)\n\
         while any(t.is_alive() for t in threads):\n\
        \x20   try:\n        armed = True\n        for n in range(100): echo(main=1)\n        armed = False\n\
        \x20   except KeyboardInterrupt:\n        armed = False\n        seen += 1\n\
         print(bad, seen > 10, echo(n=1)['args'], flush=True)\n",
    );
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut String::new()).expect("output");
    let pid = child.id().to_string();
    let mut random = Random(11);
    while child.try_wait().expect("the child").is_none() {
        let _ = Command::new("kill").args(["-INT", &pid]).output();
        std::thread::sleep(Duration::from_micros(random.below(8000))); // rig: time between two interrupts
    }
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("output");
    assert_eq!(rest, "[] True {'n': 1}\n", "{}", text(&child.wait_with_output().expect("the end").stderr));
    let state = run.channel.state();
    let calls = state.effects.iter().filter(|(_, args)| args.get("t").is_some()).count();
    assert_eq!((calls, state.conflicts), (1200, 0));
}

#[test]
fn a_single_thread_survives_an_answer_that_is_cut_each_time() {
    let Some(run) = python() else { return };
    run.channel.state().cut_after = Some(3);
    let out = run.output(
        "from toold_tools import echo\nprint([echo(n=n)['args']['n'] for n in range(20)] == list(range(20)))\n",
    );
    assert_eq!(out, "True\n");
    assert_eq!(run.channel.state().effects.len(), 20);
}

#[test]
fn a_script_waits_for_a_daemon_that_is_away_and_reports_after_it_is_back() {
    let Some(run) = python() else { return };
    run.channel.close();
    let child =
        run.start("from toold_tools import *\nnote('early')\nprint('went on', flush=True)\nresult(echo(n=1))\n");
    std::thread::sleep(Duration::from_millis(300)); // rig: time without a daemon
    run.channel.open();
    let output = child.wait_with_output().expect("the end");
    assert_eq!(
        (output.status.code(), text(&output.stdout).as_str()),
        (Some(0), "went on\n"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(run.channel.state().reports, [json!({"note": "early"}), json!({"value": {"args": {"n": 1}}})]);
}

#[test]
fn gather_and_asyncio_survive_cuts() {
    let Some(run) = python() else { return };
    run.channel.state().cut_after = Some(7);
    let out = run.output(
        "import asyncio\nfrom toold_tools import *\n\
         print([r['args']['n'] for r in gather([echo.later(n=n, ms=n % 4) for n in range(100)], parallel=16)] == list(range(100)))\n\
         async def main(): return [r['args']['n'] for r in await asyncio.gather(*[aio.echo(n=n, ms=n % 4) for n in range(100)])]\n\
         print(asyncio.run(main()) == list(range(100)))\n",
    );
    assert_eq!(out, "True\nTrue\n");
    assert_eq!(run.channel.state().effects.len(), 200);
}

#[test]
fn a_wrong_token_is_denied_at_once_for_calls_and_reports() {
    let Some(run) = python() else { return };
    std::fs::write(
        run.path().join("main.py"),
        "from toold_tools import *\nimport threading\n\
         def work():\n    try: echo(n=1)\n    except ToolDenied as e: print('denied\\n', end='')\n\
         ts = [threading.Thread(target=work) for _ in range(4)]\n[t.start() for t in ts]\n[t.join() for t in ts]\n\
         note('x')\nraise ValueError('end')\n",
    )
    .expect("the script");
    let output = run.command("run.py").env("TOOLD_TOKEN", "wrong").output().expect("the interpreter runs");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), "denied\n".repeat(4).as_str()));
    assert!(text(&output.stderr).ends_with("ValueError: end\n"));
    assert_eq!(run.channel.state().effects.len(), 0);
}

#[test]
fn without_a_channel_a_call_is_unavailable_and_the_rest_of_the_script_runs() {
    let Some(run) = python() else { return };
    std::fs::write(
        run.path().join("main.py"),
        "from toold_tools import *\ntry: echo(n=1)\nexcept ToolUnavailable as e: print(e)\n",
    )
    .expect("the script");
    let output = run.command("run.py").env_remove("TOOLD_TOOLS").output().expect("the interpreter runs");
    assert_eq!(
        text(&output.stdout),
        "no channel for tools: run this as a script of toold, for example with `toolctl script`\n"
    );
}

#[test]
fn answers_that_come_twice_late_or_unknown_change_nothing() {
    let Some(run) = python() else { return };
    let out = run
        .output("from toold_tools import *\nprint([twice(n=n)['args']['n'] for n in range(5)], echo(n=9)['args'])\n");
    assert_eq!(out, "[0, 1, 2, 3, 4] {'n': 9}\n");
}

#[test]
fn garbage_costs_a_connection_and_no_call() {
    let pieces: [&[u8]; 12] = [
        b"garbage\n",
        b"{\n",
        b"[]\n",
        b"null\n",
        b"1\n",
        b"\"x\"\n",
        b"\xff\xfe\n",
        b"{\"id\": []}\n",
        b"{\"id\": {}}\n",
        b"\n \n",
        b"{\"id\": \"\\ud800\"}\n",
        b"{} {}\n",
    ];
    let Some(run) = python() else { return };
    let mut child = run.start(
        "from toold_tools import *\nimport time\nfor n in range(300):\n    assert echo(n=n, ms=1)['args']['n'] == n\nprint('all')\n",
    );
    let mut random = Random(7);
    while child.try_wait().expect("the child").is_none() {
        std::thread::sleep(Duration::from_millis(20)); // rig: time between two faults
        let mut piece = pieces[random.below(pieces.len() as u64) as usize].to_vec();
        if random.below(2) == 0 {
            piece.insert(0, b"[{x\"\\"[random.below(5) as usize]);
        }
        run.channel.state().garbage.push(piece);
    }
    let output = child.wait_with_output().expect("the end");
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("all\n", ""));
    assert_eq!(run.channel.state().effects.len(), 300);
}

#[test]
fn a_channel_that_sends_only_garbage_is_an_error_and_not_a_hang() {
    let Some(run) = python() else { return };
    run.channel.state().garbage_only = true;
    let out = run.output("from toold_tools import *\ntry: echo(n=1)\nexcept ToolError as e: print(e.kind, e)\n");
    assert_eq!(out, "parse_error the channel sends what is not JSON-RPC\n");
}

#[test]
fn an_error_without_an_id_ends_the_longest_call() {
    let Some(run) = python() else { return };
    run.channel.state().garbage.push(
        b"{\"id\":null,\"error\":{\"code\":-32600,\"message\":\"too long\",\"data\":{\"kind\":\"invalid_request\"}}}\n"
            .to_vec(),
    );
    let out = run.output(
        "from toold_tools import *\n\
         for c in [echo.later(n=1, ms=30), hang.later(x='x' * 1000)]:\n    pass\n\
         try: gather([echo.later(n=1, ms=30), hang.later(x='x' * 1000)])\nexcept ToolError as e: print(e)\n",
    );
    assert_eq!(out, "too long\n");
}
