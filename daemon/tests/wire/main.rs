//! The wire layer over a real socket, with a toy table of methods: every promise it makes to a client.

mod batch;
mod bounds;
mod denied;
mod dispatch;
mod framing;
mod http;
mod stop;
mod subscribe;
mod toy;
mod ws;
