//! Result of `wait`, one line per process.

use super::text::cut;
use super::{Style, poll, status};
use toold_proto::results::WaitResult;

pub fn wait(result: &WaitResult, style: Style) -> String {
    let width = style.width.unwrap_or(usize::MAX);
    let mut out = String::new();
    for waited in &result.processes {
        let mut text = poll::summary(&waited.process);
        if let Some(line) = &waited.matched {
            text.push_str(": ");
            text.push_str(&super::text::escape_control(line));
        }
        if let Some(listener) = &waited.listener {
            let place = format!("{} port {}", listener.address, listener.port);
            text.push_str(&super::text::escape_control(&format!(": pid {} listens on {place}", listener.pid)));
        }
        out.push_str(&status::tint(&waited.process).paint(&cut(&text, width), style));
        out.push('\n');
    }
    out
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
        assert_eq!(wait(&result, Style { width: Some(12), colour: false }), "proc_012345…\n");
    }
}
