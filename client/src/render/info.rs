//! The daemon itself, as facts.

use super::Look;
use super::table::facts;
use super::text::bytes;
use super::time::duration;
use serde_json::Value;
use std::collections::BTreeMap;
use toold_proto::results::DaemonInfo;

pub fn info(result: &DaemonInfo, look: Look) -> String {
    let counts = &result.counts;
    let mut known = vec![
        ("version", result.version.clone()),
        ("pid", result.pid.to_string()),
        ("uptime", duration(result.uptime_ms)),
        (
            "processes",
            format!(
                "{} running, {} starting, {} exited, {} lost",
                counts.running, counts.starting, counts.exited, counts.lost
            ),
        ),
        ("connections", counts.connections.to_string()),
        ("memory", format!("{} daemon, {} processes", bytes(result.daemon.rss_bytes), bytes(result.usage.rss_bytes))),
        ("socket", result.paths.socket.clone()),
        ("state", result.paths.state_dir.clone()),
        ("config", result.paths.config.clone().unwrap_or_else(|| "-".into())),
    ];
    known.extend(pairs("features", &result.features));
    known.extend(pairs("limits", &result.limits));
    known.extend(result.damaged.iter().map(|what| ("damaged", what.clone())));
    facts(&known, look)
}

/// One a line, with the title at the first: a terminal cuts a line that holds them all.
fn pairs(title: &'static str, map: &BTreeMap<String, Value>) -> Vec<(&'static str, String)> {
    let titles = std::iter::once(title).chain(std::iter::repeat(""));
    titles.zip(map.iter().map(|(key, value)| format!("{key}={value}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_is_told_in_facts() {
        let document = crate::testing::info(3, 40);
        let shown = info(&serde_json::from_value(document).expect("a whole result"), Look::plain());
        assert!(shown.contains("processes:   2 running, 0 starting, 3 exited, 0 lost\n"), "{shown}");
        assert!(shown.contains("memory:      13M daemon, 1.0M processes\n"), "{shown}");
        let end = "features:    pidfd=true\n\
                   limits:      max_running=4096\n             max_wait_ms=5\n\
                   damaged:     procs/x\n";
        assert!(shown.ends_with(end), "{shown}");
    }
}
