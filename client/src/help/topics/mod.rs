//! Short texts about what no single command explains.

pub struct Topic {
    pub name: &'static str,
    pub about: &'static str,
    pub text: &'static str,
}

pub const TOPICS: [Topic; 5] = [
    Topic { name: "ids", about: "how a process is named", text: include_str!("ids.txt") },
    Topic { name: "exit-codes", about: "what toolctl exits with", text: include_str!("exit-codes.txt") },
    Topic { name: "output", about: "output, lines and cursors", text: include_str!("output.txt") },
    Topic { name: "events", about: "how to be woken", text: include_str!("events.txt") },
    Topic { name: "survival", about: "what survives what", text: include_str!("survival.txt") },
];

/// A topic by its name, or by the words a person might try.
pub fn find(word: &str) -> Option<&'static Topic> {
    let name = match word {
        "id" | "names" => "ids",
        "exit" | "codes" | "exit-code" | "exitcodes" => "exit-codes",
        "cursor" | "cursors" => "output",
        "event" | "watches" => "events",
        "survives" | "survive" | "crash" => "survival",
        other => other,
    };
    TOPICS.iter().find(|topic| topic.name == name)
}

/// All of them, one a line.
pub fn list() -> String {
    let lines = TOPICS.iter().map(|topic| format!("  {:<12}{}\n", topic.name, topic.about));
    format!("Topics, each with `toolctl help TOPIC`:\n{}", lines.collect::<String>())
}
