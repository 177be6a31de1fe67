//! The streams of the log as the wire names them, and back.

use toold_format::Stream;
use toold_proto::params;

/// Converts a stream of a request into that of the log.
pub fn from_wire(stream: params::Stream) -> Stream {
    match stream {
        params::Stream::Stdout => Stream::Stdout,
        params::Stream::Stderr => Stream::Stderr,
    }
}

/// Converts a stream of the log into that of a reply.
pub fn to_wire(stream: Stream) -> params::Stream {
    match stream {
        Stream::Stdout => params::Stream::Stdout,
        Stream::Stderr => params::Stream::Stderr,
    }
}
