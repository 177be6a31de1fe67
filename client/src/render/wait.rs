//! Result of `wait`, one line per process.

use super::sanitize::{Keep, Sanitizer};
use super::text::cut;
use super::{Style, poll, status};
use toold_proto::results::{WaitResult, Waited};

pub fn wait(result: &WaitResult, style: Style) -> String {
    result.processes.iter().map(|waited| line(waited, style)).collect()
}

/// Does the same, with the output of each process below its line.
pub fn wait_with_output(result: &WaitResult, style: Style) -> String {
    let with_output = |waited: &Waited| {
        let mut text = line(waited, style) + &Sanitizer::new(Keep::Nothing).sanitize(&waited.output);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    };
    result.processes.iter().map(with_output).collect()
}

fn line(waited: &Waited, style: Style) -> String {
    let width = style.width.unwrap_or(usize::MAX);
    let mut text = poll::summary(&waited.process);
    if let Some(line) = &waited.matched {
        text.push_str(": ");
        text.push_str(&super::text::escape_control(line));
    }
    if let Some(listener) = &waited.listener {
        let place = format!("{} port {}", listener.address, listener.port);
        text.push_str(&super::text::escape_control(&format!(": pid {} listens on {place}", listener.pid)));
    }
    status::tint(&waited.process).paint(&cut(&text, width), style) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::process;
    use serde_json::json;

    #[test]
    fn each_process_shows_its_status_and_the_matched_line() {
        let waited = process(json!({"output": "", "next_cursor": 0, "matched": "listening\t80"}));
        let result =
            json!({"status": "matched", "processes": [waited], "timeout_ms": 1, "clamped": false, "note": null});
        let result: WaitResult = serde_json::from_value(result).expect("a whole result");
        assert_eq!(wait(&result, Style::plain()), "proc_0123456789ab running 5m: listening\\t80\n");
        let mut printed = result.clone();
        printed.processes[0].output = "one\ntwo".into();
        let text = "proc_0123456789ab running 5m: listening\\t80\none\ntwo\n";
        assert_eq!(wait_with_output(&printed, Style::plain()), text);
        assert_eq!(wait(&result, Style { width: Some(12), colour: false }), "proc_012345…\n");
    }
}
