//! Kernels: a cell beside the start of an interpreter for the same code.

use crate::Bench;
use crate::client::{Client, call};
use crate::report::Target::AtMost;
use crate::report::{Figure, Unit};
use crate::script::python;
use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

pub fn run(bench: &mut Bench) {
    let Some(python) = python() else { return bench.report.skip("kernel.run", "python3 is not installed") };
    let daemon = Daemon::start_with(&format!("[script]\npython = {python:?}\n"), &[]);
    let mut client = Client::open(&daemon.socket());
    let kernel = id(&client.checked(&call("kernel.open", json!({ "cwd": daemon.home() }))).0);
    let cell = call("kernel.run", json!({ "id": kernel, "code": "1 + 1" }));
    let argv = [python.as_str(), "-X", "utf8", "-c", "1 + 1"];
    let start = call("exec", json!({ "argv": argv, "cwd": daemon.home(), "yield_ms": 60_000 }));
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for repetition in 0..bench.pick(200, 1000) {
        let mine = client.ask(&cell) / 1e3;
        let answer: Value = serde_json::from_slice(client.last()).unwrap();
        assert_eq!(answer["result"]["value"], "2", "{answer}");
        if repetition > 10 {
            ours.push(mine);
        }
        if repetition % 10 == 0 {
            floor.push(client.ask(&start) / 1e3);
        }
    }
    let figure = Figure::new("kernel.run", Unit::Ms, &ours).floor("exec of python3 -c", &floor);
    bench.report.add(figure.target(AtMost(2.0)).note("1 + 1, to its result"));
}
