//! The wire layer over a real socket, with methods for tests: every guarantee that it gives to a client.

mod batch;
mod bounds;
mod client_link;
mod denied;
mod dispatch;
mod fixture;
mod framing;
mod http;
mod stop;
mod subscribe;
mod ws;
