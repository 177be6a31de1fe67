//! HTTPS: certificates are checked against the roots of the system, and against the name in the URL.

use crate::program::run_with_env;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

const CA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/daemon/fetch/testdata/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../daemon/fetch/testdata/localhost.der");
const KEY: &[u8] = include_bytes!("../../daemon/fetch/testdata/localhost.key.der");

/// Serves one text to everyone, with a certificate for `localhost` and 127.0.0.1.
fn server(ip: &str) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let certificate = vec![CertificateDer::from(CERTIFICATE)];
    let key = PrivateKeyDer::Pkcs8(KEY.to_vec().into());
    let config = Arc::new(config.with_no_client_auth().with_single_cert(certificate, key).unwrap());
    let listener = TcpListener::bind((ip, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            // A client that refuses the certificate hangs up here.
            if stream.read(&mut [0; 4096]).is_ok() {
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 6\r\n\r\nsecure");
                let _ = stream.flush();
            }
        }
    });
    address
}

fn extract(host: &str, port: u16, roots: &str) -> Value {
    let at = format!("{host}:{port}");
    let request = json!({"urls": [format!("https://{at}/")], "allow": [at]});
    run_with_env("extract", &request, &[("SSL_CERT_FILE", roots), ("SSL_CERT_DIR", "/nonexistent")])["results"][0]
        .clone()
}

#[test]
fn a_certificate_of_a_trusted_root_for_the_name_is_accepted() {
    let port = server("127.0.0.1").port();
    for host in ["localhost", "127.0.0.1"] {
        assert_eq!(extract(host, port, CA)["content"], "secure", "{host}");
    }
}

#[test]
fn another_name_another_root_or_no_root_is_refused() {
    let other_name = extract("127.0.0.2", server("127.0.0.2").port(), CA);
    assert!(other_name["error"].as_str().unwrap().contains("not valid for name"), "{other_name}");
    let port = server("127.0.0.1").port();
    let empty = tempfile::NamedTempFile::new().unwrap();
    let no_root = extract("localhost", port, empty.path().to_str().unwrap());
    assert!(no_root["error"].as_str().unwrap().contains("ca-certificates"), "{no_root}");
    let url = format!("https://localhost:{port}/");
    let request = json!({"urls": [url], "allow": [format!("localhost:{port}")]});
    let other_root = run_with_env("extract", &request, &[])["results"][0].clone();
    assert!(other_root["error"].is_string() && other_root["content"] == "", "{other_root}");
}
