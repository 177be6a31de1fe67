//! Connections: names to addresses, addresses to TCP, TCP to TLS. A host is resolved once; who connects passes the
//! addresses that it has checked.

use crate::target::Target;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use toold_proto::{ErrorKind, RpcError};
use url::Host;

/// Time for one address: a host often has more, of which the first may be dead.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TLS_TIMEOUT: Duration = Duration::from_secs(10);
/// Addresses of a host that are tried.
const MAX_ADDRESSES: usize = 6;
/// Silence of a connection after which the kernel asks whether the peer is there: a call may take hours, and its server
/// may vanish without a packet.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 6;

pub type Body = Full<Bytes>;
pub type Sender = SendRequest<Body>;

/// Resolves names. Tests inject one that answers differently each time.
pub trait Resolve: Send + Sync + 'static {
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The resolver of the system.
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }
}

pub struct Connector {
    resolver: Arc<dyn Resolve>,
    tls: OnceLock<Result<TlsConnector, String>>,
}

impl Default for Connector {
    fn default() -> Connector {
        Connector::new(Arc::new(SystemResolver))
    }
}

impl Connector {
    pub fn new(resolver: Arc<dyn Resolve>) -> Connector {
        Connector { resolver, tls: OnceLock::new() }
    }

    /// Returns the addresses of a target, at least one. A literal address is not resolved.
    pub async fn resolve(&self, target: &Target) -> Result<Vec<SocketAddr>, RpcError> {
        let port = target.at.port;
        if let Some(ip) = target.literal {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        let (resolver, host) = (self.resolver.clone(), target.at.host.clone());
        let found = tokio::task::spawn_blocking(move || resolver.resolve(&host, port)).await;
        let found = found.map_err(io::Error::other).flatten();
        match found {
            Ok(addresses) if !addresses.is_empty() => Ok(addresses),
            Ok(_) => Err(unavailable("dns", format!("`{}` has no address", target.at.host))),
            Err(e) => Err(unavailable("dns", format!("`{}` cannot be resolved: {e}", target.at.host))),
        }
    }

    /// Connects to the first of these addresses that answers.
    pub async fn connect(&self, target: &Target, addresses: &[SocketAddr]) -> Result<Sender, RpcError> {
        let stream = connect_tcp(target, addresses).await?;
        if !target.is_tls {
            return handshake(target, stream).await;
        }
        let tls = self.tls.get_or_init(tls_connector).as_ref();
        let tls = tls.map_err(|reason| unavailable("tls", reason.clone()))?;
        let failed =
            |reason: String| unavailable("tls", format!("no TLS connection to `{}`: {reason}", target.at.host));
        let name = server_name(target).map_err(failed)?;
        match timeout(TLS_TIMEOUT, tls.connect(name, stream)).await {
            Ok(Ok(stream)) => handshake(target, stream).await,
            Ok(Err(e)) => Err(failed(e.to_string())),
            Err(_) => Err(failed("timed out".into())),
        }
    }
}

async fn connect_tcp(target: &Target, addresses: &[SocketAddr]) -> Result<TcpStream, RpcError> {
    let mut last = String::from("no address");
    for address in addresses.iter().take(MAX_ADDRESSES) {
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Both only tune the connection; it works without them.
                let _ = stream.set_nodelay(true);
                let _ = keep_alive(&stream);
                return Ok(stream);
            }
            Ok(Err(e)) => last = format!("{address}: {e}"),
            Err(_) => last = format!("{address}: timed out"),
        }
    }
    Err(unavailable("connect", format!("no connection to `{}`: {last}", target.at.host)))
}

fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    Ok(sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?)
}

async fn handshake<S>(target: &Target, stream: S) -> Result<Sender, RpcError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connected = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) =
        connected.map_err(|e| unavailable("connect", format!("no HTTP connection to `{}`: {e}", target.at.host)))?;
    // The error of a connection arrives at its request too.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn server_name(target: &Target) -> Result<ServerName<'static>, String> {
    match target.url.host() {
        Some(Host::Ipv4(ip)) => Ok(ServerName::from(std::net::IpAddr::V4(ip))),
        Some(Host::Ipv6(ip)) => Ok(ServerName::from(std::net::IpAddr::V6(ip))),
        _ => ServerName::try_from(target.at.host.clone()).map_err(|e| e.to_string()),
    }
}

/// Makes the TLS client with the certificates of the system.
fn tls_connector() -> Result<TlsConnector, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err("this machine has no root certificates; install the package `ca-certificates`".into());
    }
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn unavailable(reason: &str, message: String) -> RpcError {
    RpcError::new(ErrorKind::Unavailable, message).with("reason", reason)
}
