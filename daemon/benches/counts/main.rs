//! Instructions of the pure hot paths, counted by Callgrind. `tests/counts` runs this and compares with `counts.txt`.
//!
//! Everything is warm: `inputs` builds what is built at the first use, and is not counted. Dropping the return value of a
//! function is not counted either.

mod inputs;

use gungraun::prelude::*;
use gungraun::{Callgrind, Sandbox};
use inputs::{Called, Indexed, Lookup, Stream, Watched};
use std::hint::black_box;
use toold_daemon::rpc::wire::frame::{Decode, Frame};
use toold_daemon::rpc::wire::headers::Headers;
use toold_daemon::rpc::wire::lines::Lines;
use toold_daemon::text::{PageEnd, decode_page};
use toold_daemon::watch::{Decision, Limiter, LimiterConfig};
use toold_proto::params::Ansi;

// Cuts a hundred requests out of a stream that arrives a kilobyte at a time.
#[library_benchmark]
#[bench::requests(args = (), setup = inputs::lines)]
fn framing_lines(stream: Stream<Lines>) -> Stream<Lines> {
    cut(stream)
}

#[library_benchmark]
#[bench::requests(args = (), setup = inputs::headers)]
fn framing_headers(stream: Stream<Headers>) -> Stream<Headers> {
    cut(stream)
}

#[inline(always)]
fn cut<D: Decode>(mut stream: Stream<D>) -> Stream<D> {
    for read in stream.bytes.chunks(1024) {
        stream.decoder.feed(black_box(read));
        while let Some(frame) = stream.decoder.next() {
            stream.frames += usize::from(matches!(black_box(frame), Frame::Message(_)));
        }
    }
    stream
}

// From the bytes of a request to the bytes of its answer: a page of a process that has ended.
#[library_benchmark]
#[bench::poll(args = (), setup = inputs::called)]
fn dispatch(mut called: Called) -> Called {
    called.turn();
    called
}

// 64 KiB in lines of 80 bytes under twenty patterns.
#[library_benchmark]
#[bench::texts_silent(args = (inputs::TEXTS, 0), setup = inputs::watched)]
#[bench::texts_matching(args = (inputs::TEXTS, 10), setup = inputs::watched)]
#[bench::regexes_silent(args = (inputs::REGEXES, 0), setup = inputs::watched)]
#[bench::regexes_matching(args = (inputs::REGEXES, 10), setup = inputs::watched)]
fn watch_feed(mut watched: Watched) -> Watched {
    watched.feed();
    watched
}

// 64 KiB of characters of one to four bytes, with and without escape sequences to take out.
#[library_benchmark]
#[bench::keep(args = (Ansi::Keep), setup = inputs::page)]
#[bench::strip(args = (Ansi::Strip), setup = inputs::page)]
fn utf8_page((bytes, ansi): (Vec<u8>, Ansi)) -> (Vec<u8>, String, usize) {
    let (text, taken) = decode_page(black_box(&bytes), inputs::PAGE, PageEnd::More, ansi);
    (bytes, text, taken)
}

// A thousand decisions, a match every 7 ms. Most are suppressed, one in fifteen is published.
#[library_benchmark]
#[bench::thousand(LimiterConfig { min_interval_ms: 100, strike_limit: 0 })]
fn limiter(config: LimiterConfig) -> (Limiter, u64) {
    let mut limiter = Limiter::default();
    let mut emitted = 0;
    for i in 0..1000 {
        let now = black_box(i * 7);
        let would = black_box(limiter.would_emit(&config, now));
        let decision = black_box(limiter.matched(&config, now, 1));
        emitted += u64::from(would && matches!(decision, Decision::Emit { .. }));
    }
    (limiter, emitted)
}

// 64 look-ups, far apart, in an index of 100,000 records.
#[library_benchmark]
#[bench::by_offset(args = (Lookup::Offset), setup = inputs::indexed)]
#[bench::by_line(args = (Lookup::Line), setup = inputs::indexed)]
fn index_lookup(mut indexed: Indexed) -> Indexed {
    indexed.look_up();
    indexed
}

library_benchmark_group!(
    name = counts,
    benchmarks = [framing_lines, framing_headers, dispatch, watch_feed, utf8_page, limiter, index_lookup]
);

main!(
    config = LibraryBenchmarkConfig::default()
        // Only instructions: figures of simulated caches do not repeat on another machine.
        .tool(Callgrind::with_args(["--cache-sim=no"]))
        // A directory of its own, so that paths are short, and the same everywhere.
        .sandbox(Sandbox::new(true).fixtures([inputs::FINISHED])),
    library_benchmark_groups = counts
);
