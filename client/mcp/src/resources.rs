//! Resources: the log and the description of each process, and the list of them. Reading starts no daemon.

use crate::call::Call;
use crate::daemon_link::Failure;
use crate::message::{Era, INTERNAL_ERROR, ProtocolError};
use crate::view::{Process, one_line, plain_line_ends};
use serde_json::{Value, json};

/// The most processes in the list.
const MAX_LISTED: u64 = 50;
/// The most bytes of a log.
const MAX_LOG_LEN: u64 = 64 * 1024;
/// The code of an unknown resource in the older era.
const RESOURCE_NOT_FOUND: i64 = -32002;

pub const LIST_URI: &str = "toold://procs";

/// The subject of a URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    List,
    Process(String),
    Log(String),
}

impl Subject {
    pub fn parse(uri: &str) -> Option<Subject> {
        if uri == LIST_URI {
            return Some(Subject::List);
        }
        let rest = uri.strip_prefix("toold://proc/")?;
        match rest.strip_suffix("/log") {
            Some(id) if !id.is_empty() && !id.contains('/') => Some(Subject::Log(id.to_owned())),
            None if !rest.is_empty() && !rest.contains('/') => Some(Subject::Process(rest.to_owned())),
            Some(_) | None => None,
        }
    }
}

pub fn process_uri(id: &str) -> String {
    format!("toold://proc/{id}")
}

/// Lists the processes of the session. Without a daemon there are none.
pub fn list(call: &mut Call<'_>) -> Result<Value, ProtocolError> {
    let params = json!({"session_key": call.session, "limit": MAX_LISTED - 1});
    let listed = match call.link.call("list", &params) {
        Err(Failure::Unreachable(_)) => json!({}),
        listed => listed.map_err(|failure| ProtocolError::new(INTERNAL_ERROR, failure.to_string()))?,
    };
    let mut resources = vec![
        json!({"uri": LIST_URI, "name": "processes", "mimeType": "application/json", "description": "your processes"}),
    ];
    let processes: Vec<Process> = listed["processes"].as_array().into_iter().flatten().map(Process::read).collect();
    // Of many processes only the logs fit; the template has the rest.
    let has_room = processes.len() as u64 * 2 < MAX_LISTED;
    for process in processes {
        let command: String = one_line(&process.command).chars().take(100).collect();
        let name = process.name.as_deref().map_or_else(|| process.id.clone(), one_line);
        let log = format!("{}/log", process_uri(&process.id));
        resources
            .push(json!({"uri": log, "name": format!("{name} log"), "mimeType": "text/plain", "description": command}));
        if has_room {
            resources.push(json!({"uri": process_uri(&process.id), "name": name, "mimeType": "application/json"}));
        }
    }
    Ok(json!({ "resources": resources }))
}

/// Returns the templates of URIs.
pub fn templates() -> Value {
    json!({"resourceTemplates": [
        {"uriTemplate": "toold://proc/{id}/log", "name": "log", "mimeType": "text/plain", "description": "the last 64 KiB of output"},
        {"uriTemplate": "toold://proc/{id}", "name": "process", "mimeType": "application/json"},
    ]})
}

/// Reads a resource.
pub fn read(call: &mut Call<'_>, uri: &str) -> Result<Value, ProtocolError> {
    let era = call.era;
    let subject = Subject::parse(uri).ok_or_else(|| not_found(era, uri))?;
    let (mime, text) = content(call, &subject).map_err(|failure| match failure.kind() {
        Some("not_found" | "ambiguous_id") => not_found(era, uri),
        Some(_) | None => ProtocolError::new(INTERNAL_ERROR, failure.to_string()),
    })?;
    Ok(json!({"contents": [{"uri": uri, "mimeType": mime, "text": text}]}))
}

fn content(call: &mut Call<'_>, subject: &Subject) -> Result<(&'static str, String), Failure> {
    match subject {
        Subject::List => {
            let params = json!({"session_key": call.session, "limit": MAX_LISTED});
            let processes = match call.link.call("list", &params) {
                Err(Failure::Unreachable(_)) => json!([]),
                listed => listed?["processes"].take(),
            };
            Ok(("application/json", processes.to_string()))
        }
        Subject::Process(id) => Ok(("application/json", call.link.call("inspect", &json!({ "id": id }))?.to_string())),
        Subject::Log(id) => {
            let end = call.tail(id, 1)?.cursor;
            let params = json!({"id": id, "cursor": end.saturating_sub(MAX_LOG_LEN), "max_bytes": MAX_LOG_LEN, "collapse": true, "redact": true});
            let page = call.link.call("poll", &params)?;
            Ok(("text/plain", plain_line_ends(page["output"].as_str().unwrap_or_default())))
        }
    }
}

fn not_found(era: Era, uri: &str) -> ProtocolError {
    let error = match era {
        Era::Legacy => ProtocolError::new(RESOURCE_NOT_FOUND, "Resource not found"),
        Era::Modern => ProtocolError::params("Resource not found"),
    };
    ProtocolError { data: Some(json!({ "uri": uri })), ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_has_one_subject() {
        assert_eq!(Subject::parse("toold://procs"), Some(Subject::List));
        assert_eq!(Subject::parse("toold://proc/web"), Some(Subject::Process("web".into())));
        assert_eq!(Subject::parse("toold://proc/web/log"), Some(Subject::Log("web".into())));
        for wrong in
            ["toold://proc/", "toold://proc//log", "toold://proc/a/b", "file:///etc/hosts", "toold://proc/log/log/log"]
        {
            assert_eq!(Subject::parse(wrong), None, "{wrong}");
        }
    }
}
