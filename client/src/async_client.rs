//! The jsonrpsee client on toold's socket, for Rust programs with a runtime: calls at once,
//! subscriptions, typed by the methods of `toold-proto`.

use crate::peer_check;
use jsonrpsee::core::client::{
    Client, ClientBuilder, ClientT, Error, ReceivedMessage, TransportReceiverT, TransportSenderT,
};
use jsonrpsee::core::traits::ToRpcParams;
use serde_json::value::{RawValue, to_raw_value};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use toold_proto::api::Method;

/// Longer than any sensible `max_wait_ms`: the daemon limits its own waits.
const CALL_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);
/// The events that a subscription holds for a slow reader before jsonrpsee ends it.
const MAX_BUFFERED_EVENTS: usize = 16 * 1024;
/// The longest line that is read: more than the daemon may send.
const MAX_MESSAGE_LEN: u64 = toold_proto::DEFAULT_MAX_OUTGOING_BYTES + 64 * 1024;

/// Connects to a daemon of this user or of root; any other is refused before a byte is sent (`PermissionDenied`). The
/// client works until it is dropped or the daemon exits.
pub async fn connect(path: impl AsRef<Path>) -> io::Result<Client> {
    let path = path.as_ref();
    let untrusted =
        |why| io::Error::new(io::ErrorKind::PermissionDenied, format!("nothing was sent to {}: {why}", path.display()));
    let trust = peer_check::check_dir(path).map_err(untrusted)?;
    let stream = UnixStream::connect(path).await?;
    peer_check::check_peer(&stream, trust)?.map_err(untrusted)?;
    let (reader, writer) = stream.into_split();
    let builder = ClientBuilder::default()
        .request_timeout(CALL_TIMEOUT)
        .max_buffer_capacity_per_subscription(MAX_BUFFERED_EVENTS);
    Ok(builder.build_with_tokio(Sender(writer), Receiver(BufReader::new(reader))))
}

/// Calls a method and parses its result. The daemon's own errors come as `Error::Call`.
pub fn call<'c, M: Method>(
    client: &'c Client,
    params: &M::Params,
) -> impl Future<Output = Result<M::Result, Error>> + Send + use<'c, M> {
    // Serialized before the first await, so that the parameters need not be shared with it.
    client.request(M::NAME, Named(to_raw_value(params)))
}

/// Parameters by name, as every method of toold takes them.
struct Named(serde_json::Result<Box<RawValue>>);

impl ToRpcParams for Named {
    fn to_rpc_params(self) -> serde_json::Result<Option<Box<RawValue>>> {
        self.0.map(Some)
    }
}

struct Sender(OwnedWriteHalf);

impl TransportSenderT for Sender {
    type Error = io::Error;

    async fn send(&mut self, mut message: String) -> io::Result<()> {
        message.push('\n');
        self.0.write_all(message.as_bytes()).await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.shutdown().await
    }
}

struct Receiver(BufReader<OwnedReadHalf>);

impl TransportReceiverT for Receiver {
    type Error = io::Error;

    async fn receive(&mut self) -> io::Result<ReceivedMessage> {
        let mut line = String::new();
        match (&mut self.0).take(MAX_MESSAGE_LEN).read_line(&mut line).await? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "toold closed the connection")),
            n if n as u64 == MAX_MESSAGE_LEN => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "toold sent a message without an end"))
            }
            _ => Ok(ReceivedMessage::Text(line)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FakeDaemon, Reply, process};
    use serde_json::json;
    use toold_proto::{api, params};

    #[tokio::test]
    async fn a_socket_in_a_directory_of_everybody_is_not_connected_to() {
        use std::os::unix::fs::PermissionsExt;
        let fake = FakeDaemon::start(vec![vec![Reply::HangUp]]);
        std::fs::set_permissions(fake.dir(), std::fs::Permissions::from_mode(0o777)).expect("it is ours");
        let Err(refused) = connect(fake.path()).await else { panic!("it connects") };
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{refused}");
        assert!(refused.to_string().contains("has mode 777"), "{refused}");
    }

    #[tokio::test]
    async fn a_typed_call_gives_its_result_and_the_daemon_s_error_comes_as_one() {
        let mut listed = process(json!({"name": "web"}));
        listed["preview"] = json!("ready");
        let refused = json!({"code": -32001, "message": "no such process", "data": {"kind": "not_found"}});
        let fake = FakeDaemon::start(vec![vec![
            Reply::result(json!({"processes": [listed], "total": 1})),
            Reply::error(refused),
            Reply::HangUp,
        ]]);
        let client = connect(fake.path()).await.expect("the fake listens");
        let list = call::<api::List>(&client, &params::ListParams { limit: Some(5), ..Default::default() }).await;
        assert_eq!(list.expect("it answers").processes[0].process.name.as_deref(), Some("web"));
        assert_eq!(fake.next_request(), ("list".into(), json!({"limit": 5})));
        let inspect = params::InspectParams { id: "x".into(), ..Default::default() };
        let Err(Error::Call(error)) = call::<api::Inspect>(&client, &inspect).await else { panic!("it refuses") };
        assert_eq!((error.code(), error.message()), (-32001, "no such process"));
        assert!(call::<api::Inspect>(&client, &inspect).await.is_err(), "the connection is gone");
    }
}
