//! Short texts about what spans several commands.

pub struct Topic {
    pub name: &'static str,
    pub about: &'static str,
    pub text: &'static str,
}

pub const TOPICS: [Topic; 6] = [
    Topic { name: "ids", about: "ids and names of processes", text: include_str!("ids.txt") },
    Topic { name: "states", about: "the states of a process", text: include_str!("states.txt") },
    Topic { name: "exit-codes", about: "the exit codes of toolctl", text: include_str!("exit-codes.txt") },
    Topic { name: "output", about: "output, lines and cursors", text: include_str!("output.txt") },
    Topic { name: "events", about: "how to be notified", text: include_str!("events.txt") },
    Topic { name: "survival", about: "what survives what", text: include_str!("survival.txt") },
];

/// Returns a topic by its name, or by a synonym.
pub fn find(name: &str) -> Option<&'static Topic> {
    let name = match name {
        "id" | "names" => "ids",
        "state" | "statuses" | "reasons" => "states",
        "exit" | "codes" | "exit-code" | "exitcodes" => "exit-codes",
        "cursor" | "cursors" => "output",
        "event" | "watches" => "events",
        "survives" | "survive" | "crash" => "survival",
        other => other,
    };
    TOPICS.iter().find(|topic| topic.name == name)
}

/// Lists all topics, one per line.
pub fn list() -> String {
    let lines = TOPICS.iter().map(|topic| format!("  {:<12}{}\n", topic.name, topic.about));
    format!("Topics, each with `toolctl help TOPIC`:\n{}", lines.collect::<String>())
}
