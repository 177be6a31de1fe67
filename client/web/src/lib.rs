//! `toolctl web`: a page on 127.0.0.1 that shows processes live, and a WebSocket to the daemon behind it. `access` decides who
//! may enter, `gate` which calls pass; both are pure.

mod access;
mod gate;
mod http;
mod proxy;
mod unauthorized;

use access::Access;
use clap::Parser;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use toold_client::companion::{CompanionOptions, WebArgs};
use unauthorized::Unauthorized;

/// The connections that are served at a time, those without the token included. A browser needs a few.
const MAX_CONNECTIONS: usize = 256;
/// The exit code for a daemon that cannot be reached, as of every command of `toolctl`.
const UNREACHABLE: u8 = 4;

/// Show processes live in a browser
#[derive(Debug, Parser)]
#[command(name = "toolctl web", version)]
struct Cli {
    #[command(flatten)]
    options: CompanionOptions,
    #[command(flatten)]
    web: WebArgs,
}

/// The state that every connection shares.
struct Server {
    access: Access,
    options: CompanionOptions,
    /// Calls that change something pass too.
    write: bool,
    connections: AtomicUsize,
    unauthorized: Unauthorized,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let (message, code) = match serve(cli) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failed) => failed,
    };
    eprintln!("toolctl: {message}");
    ExitCode::from(code)
}

fn serve(cli: Cli) -> Result<(), (String, u8)> {
    let failed = |doing: &'static str| move |error: io::Error| (format!("cannot {doing}: {error}"), 1);
    // The daemon is started, if it may be, before there is a page that needs it.
    drop(cli.options.connect().map_err(|error| (error.to_string(), UNREACHABLE))?);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, cli.web.port.unwrap_or(0))).map_err(failed("listen"))?;
    let port = listener.local_addr().map_err(failed("listen"))?.port();
    let access = Access::new(port).map_err(failed("read random bytes"))?;
    let url = access.url();
    // From here on only a daemon that others start is used: the user may have stopped it.
    let options = CompanionOptions { no_autostart: true, ..cli.options };
    let (connections, unauthorized) = (AtomicUsize::new(0), Unauthorized::default());
    let server = Arc::new(Server { access, options, write: cli.web.write, connections, unauthorized });
    let mut out = io::stdout().lock();
    writeln!(out, "{url}").and_then(|()| out.flush()).map_err(failed("print the address"))?;
    drop(out);
    let mode = if server.write { "it may change processes" } else { "it only looks; --write lets it kill and answer" };
    eprintln!("toolctl: open this address in a browser of this machine; {mode}; Ctrl-C ends it");
    for stream in listener.incoming() {
        // A connection that failed before it was accepted is the browser's affair.
        let Ok(stream) = stream else { continue };
        accept(&server, stream);
    }
    Ok(())
}

fn accept(server: &Arc<Server>, stream: TcpStream) {
    if server.connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
        server.connections.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let theirs = Arc::clone(server);
    let started = std::thread::Builder::new().name("connection".into()).spawn(move || {
        if let Ok(copy) = stream.try_clone() {
            let number = theirs.unauthorized.add(copy);
            // A connection that breaks ends alone.
            let _ = http::serve(&theirs, stream, number);
            theirs.unauthorized.remove(number);
        }
        theirs.connections.fetch_sub(1, Ordering::Relaxed);
    });
    if started.is_err() {
        server.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
