//! The first messages to a server: finds out its protocol, and lists its tools. The requests have fixed ids and names, so that a daemon
//! that dies meanwhile is followed by one that finds the answers in the log and sends nothing again.

use super::message::{self, LEGACY_VERSIONS, MODERN_CODES, MODERN_VERSION, RemoteError, UNSUPPORTED_VERSION, object};
use super::session::{Expected, Reply, Session};
use super::state_file::Era;
use super::tool_list::{MAX_PAGES, ToolList};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

const DISCOVER_ID: &str = "toold-discover";
const INITIALIZE_ID: &str = "toold-initialize";
/// Requests whose answers the log of a server may have before they are waited for.
pub const FIRST_REQUESTS: &[&str] = &[DISCOVER_ID, INITIALIZE_ID];
const LISTEN_ID: &str = "toold-listen";
/// The time after which a server without an answer to `server/discover` is also asked by `initialize`: those of the older era may
/// answer nothing that comes before.
const PROBE_TIME: Duration = Duration::from_secs(2);

/// The reason why a server is of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandshakeError {
    /// It ended. `at_probe`: before it answered anything, and it may be one that ends at a message that it does not know.
    Ended {
        at_probe: bool,
    },
    /// No answer came in time.
    Timeout(&'static str),
    Refused(String),
}

/// A server after the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerHello {
    pub era: Era,
    pub has_tools: bool,
}

/// Makes the handshake. `era`: that of the last run.
pub async fn handshake(
    session: &Arc<Session>,
    era: Option<&Era>,
    deadline: Instant,
) -> Result<ServerHello, HandshakeError> {
    let (what, hello) = match era {
        Some(Era::Modern(_)) => ("server/discover", timeout_at(deadline, discover_only(session)).await),
        Some(Era::Legacy(_)) => ("initialize", timeout_at(deadline, initialize_only(session)).await),
        None => ("server/discover and initialize", timeout_at(deadline, probe(session)).await),
    };
    session.end_early();
    hello.unwrap_or(Err(HandshakeError::Timeout(what)))
}

/// Lists the tools. `id` is unique in the log of the server.
pub async fn list_tools(
    session: &Arc<Session>,
    era: &Era,
    id: &str,
    deadline: Instant,
) -> Result<ToolList, HandshakeError> {
    let listing = async {
        let mut list = ToolList::default();
        let mut next: Option<String> = None;
        for page in 0..MAX_PAGES {
            let mut params = match next.take() {
                Some(cursor) => object([("cursor", cursor.into())]),
                None => object([]),
            };
            if matches!(era, Era::Modern(_)) {
                message::add_modern_meta(&mut params);
            }
            let result = request(session, &format!("{id}/{page}"), "tools/list", params).await?;
            let result =
                result.map_err(|e| HandshakeError::Refused(format!("it refuses tools/list: {}", shown(&e))))?;
            next = list.add(result).map_err(HandshakeError::Refused)?;
            if next.is_none() {
                return Ok(list);
            }
        }
        Err(HandshakeError::Refused(format!("its list of tools has more than {MAX_PAGES} pages")))
    };
    timeout_at(deadline, listing).await.unwrap_or(Err(HandshakeError::Timeout("tools/list")))
}

/// The outcome of `server/discover`.
enum Discovered {
    Modern(ServerHello),
    /// It is of the newer era, and has no version that is known here.
    Refused(String),
    /// It is of the older era, or has versions of that.
    Legacy,
}

async fn discover_only(session: &Arc<Session>) -> Result<ServerHello, HandshakeError> {
    let mut discover = expect(session, DISCOVER_ID)?;
    send(session, DISCOVER_ID, discover_line(), true).await?;
    match discovered(discover.reply().await)? {
        Discovered::Modern(hello) => finish_modern(session, hello).await,
        Discovered::Refused(why) => Err(HandshakeError::Refused(why)),
        Discovered::Legacy => initialize_only(session).await,
    }
}

async fn initialize_only(session: &Arc<Session>) -> Result<ServerHello, HandshakeError> {
    let mut initialize = expect(session, INITIALIZE_ID)?;
    send(session, INITIALIZE_ID, initialize_line(), false).await?;
    let hello = initialized(initialize.reply().await)?;
    finish_legacy(session, hello).await
}

/// Asks by `server/discover`, as the protocol recommends, and then or after a while by `initialize`.
async fn probe(session: &Arc<Session>) -> Result<ServerHello, HandshakeError> {
    let mut discover = expect(session, DISCOVER_ID)?;
    send(session, DISCOVER_ID, discover_line(), true).await?;
    if let Ok(reply) = tokio::time::timeout(PROBE_TIME, discover.reply()).await {
        return match discovered(reply)? {
            Discovered::Modern(hello) => finish_modern(session, hello).await,
            Discovered::Refused(why) => Err(HandshakeError::Refused(why)),
            Discovered::Legacy => initialize_only(session).await,
        };
    }
    let mut initialize = expect(session, INITIALIZE_ID)?;
    send(session, INITIALIZE_ID, initialize_line(), true).await?;
    let mut refused: Option<HandshakeError> = None;
    let (mut is_discovered, mut is_initialized) = (false, false);
    while !(is_discovered && is_initialized) {
        tokio::select! {
            biased;
            reply = discover.reply(), if !is_discovered => {
                is_discovered = true;
                match discovered(reply)? {
                    Discovered::Modern(hello) => return finish_modern(session, hello).await,
                    Discovered::Refused(why) => refused = Some(HandshakeError::Refused(why)),
                    Discovered::Legacy => {}
                }
            }
            reply = initialize.reply(), if !is_initialized => {
                is_initialized = true;
                match initialized(reply) {
                    Ok(hello) => return finish_legacy(session, hello).await,
                    Err(error) => refused = Some(error),
                }
            }
        }
    }
    Err(refused.unwrap_or(HandshakeError::Ended { at_probe: false }))
}

fn discover_line() -> Vec<u8> {
    let mut params = object([]);
    message::add_modern_meta(&mut params);
    message::request(DISCOVER_ID, "server/discover", params)
}

fn initialize_line() -> Vec<u8> {
    let params = object([
        ("protocolVersion", LEGACY_VERSIONS[0].into()),
        ("capabilities", object([])),
        ("clientInfo", message::client_info()),
    ]);
    message::request(INITIALIZE_ID, "initialize", params)
}

fn discovered(reply: Reply) -> Result<Discovered, HandshakeError> {
    let known = |versions: Option<&Value>| -> Vec<String> {
        let versions = versions.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        versions.map(String::from).collect()
    };
    let by_versions = |versions: Vec<String>| {
        if versions.iter().any(|version| LEGACY_VERSIONS.contains(&version.as_str())) {
            return Discovered::Legacy;
        }
        Discovered::Refused(format!(
            "it has the protocols {}, and toold has {MODERN_VERSION} and {}",
            versions.join(", "),
            LEGACY_VERSIONS.join(", ")
        ))
    };
    match usable(reply, true)? {
        Ok(result) => {
            let versions = known(result.get("supportedVersions"));
            let is_known = versions.iter().any(|version| version == MODERN_VERSION);
            // A server that answers everything with some result is not one that knows this request.
            Ok(match is_known {
                true => Discovered::Modern(ServerHello {
                    era: Era::Modern(MODERN_VERSION.into()),
                    has_tools: has_tools(&result),
                }),
                false if versions.is_empty() => Discovered::Legacy,
                false => by_versions(versions),
            })
        }
        Err(RemoteError { code: UNSUPPORTED_VERSION, data, .. }) => {
            Ok(by_versions(known(data.as_ref().and_then(|data| data.get("supported")))))
        }
        Err(error) if MODERN_CODES.contains(&error.code) => Ok(Discovered::Refused(shown(&error))),
        // Servers of the older era answer with codes of all kinds.
        Err(_) => Ok(Discovered::Legacy),
    }
}

fn initialized(reply: Reply) -> Result<ServerHello, HandshakeError> {
    let result = usable(reply, false)?;
    let result = result.map_err(|e| HandshakeError::Refused(format!("it refuses initialize: {}", shown(&e))))?;
    let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    if !LEGACY_VERSIONS.contains(&version) {
        let versions = LEGACY_VERSIONS.join(", ");
        let why = format!("it answers initialize with the protocol {version:?}, and toold has {versions}");
        return Err(HandshakeError::Refused(why));
    }
    Ok(ServerHello { era: Era::Legacy(version.into()), has_tools: has_tools(&result) })
}

async fn finish_legacy(session: &Arc<Session>, hello: ServerHello) -> Result<ServerHello, HandshakeError> {
    let data = message::notification("notifications/initialized", None);
    send(session, "toold-initialized", data, false).await?;
    Ok(hello)
}

/// Subscribes to changes of the list. The subscription lives as long as the server; its answer is its end, and not waited for.
async fn finish_modern(session: &Arc<Session>, hello: ServerHello) -> Result<ServerHello, HandshakeError> {
    if hello.has_tools {
        let mut params = object([("notifications", object([("toolsListChanged", true.into())]))]);
        message::add_modern_meta(&mut params);
        send(session, LISTEN_ID, message::request(LISTEN_ID, "subscriptions/listen", params), false).await?;
    }
    Ok(hello)
}

fn has_tools(result: &Value) -> bool {
    result.get("capabilities").and_then(|capabilities| capabilities.get("tools")).is_some()
}

fn expect(session: &Arc<Session>, id: &str) -> Result<Expected, HandshakeError> {
    session.expect(id).ok_or(HandshakeError::Ended { at_probe: id == DISCOVER_ID })
}

async fn send(session: &Arc<Session>, write_id: &str, data: Vec<u8>, at_probe: bool) -> Result<(), HandshakeError> {
    let written = session.write(write_id.into(), data).await;
    // What the server read of it before it ended does not matter here.
    written.map_err(|_| HandshakeError::Ended { at_probe })
}

async fn request(
    session: &Arc<Session>,
    id: &str,
    method: &str,
    params: Value,
) -> Result<Result<Value, RemoteError>, HandshakeError> {
    let mut expected = expect(session, id)?;
    send(session, id, message::request(id, method, params), false).await?;
    usable(expected.reply().await, false)
}

fn usable(reply: Reply, at_probe: bool) -> Result<Result<Value, RemoteError>, HandshakeError> {
    match reply {
        Reply::Result(result) => Ok(Ok(result)),
        Reply::Error(error) => Ok(Err(error)),
        Reply::Ended => Err(HandshakeError::Ended { at_probe }),
        Reply::TooLong { len, .. } => Err(HandshakeError::Refused(format!("its answer has {len} bytes"))),
        Reply::Unreadable(why) => Err(HandshakeError::Refused(format!("its answer cannot be read: {why}"))),
        Reply::Dropped => Err(HandshakeError::Refused("its answer was dropped from its log".into())),
    }
}

fn shown(error: &RemoteError) -> String {
    format!("{} (code {})", error.message, error.code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn era_of(reply: Reply) -> String {
        match discovered(reply) {
            Ok(Discovered::Modern(hello)) => format!("{:?} {}", hello.era, hello.has_tools),
            Ok(Discovered::Refused(why)) => why,
            Ok(Discovered::Legacy) => "legacy".into(),
            Err(e) => format!("{e:?}"),
        }
    }

    #[test]
    fn the_answer_to_the_probe_gives_the_era() {
        let error = |code, data| Reply::Error(RemoteError { code, message: "m".into(), data });
        let modern = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
        assert_eq!(era_of(Reply::Result(modern)), "Modern(\"2026-07-28\") true");
        let both = json!({"supportedVersions": ["2027-01-01", "2025-11-25"], "capabilities": {}});
        assert_eq!(era_of(Reply::Result(both)), "legacy", "it has a version that is known here");
        let newer = era_of(Reply::Result(json!({"supportedVersions": ["2027-01-01"]})));
        assert!(newer.starts_with("it has the protocols 2027-01-01, and toold has 2026-07-28"), "{newer}");
        assert_eq!(era_of(error(-32022, Some(json!({"supported": ["2025-06-18"]})))), "legacy");
        assert!(era_of(error(-32022, None)).starts_with("it has the protocols"));
        assert_eq!(era_of(error(-32021, None)), "m (code -32021)");
        for code in [-32601, -32602, -32600, -32000, 0] {
            assert_eq!(era_of(error(code, None)), "legacy");
        }
        assert_eq!(era_of(Reply::Result(json!({}))), "legacy", "a server that answers everything");
        assert_eq!(era_of(Reply::Ended), "Ended { at_probe: true }");
    }

    #[test]
    fn initialize_gives_a_version_that_is_known_here() {
        let answered = |version: &str| {
            initialized(Reply::Result(json!({"protocolVersion": version, "capabilities": {"tools": {}}})))
        };
        for version in LEGACY_VERSIONS {
            assert_eq!(answered(version), Ok(ServerHello { era: Era::Legacy(version.into()), has_tools: true }));
        }
        assert!(matches!(answered("2031-01-01"), Err(HandshakeError::Refused(_))));
    }
}
