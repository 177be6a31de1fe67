//! Instructions of the pure hot paths, counted by Callgrind. `tests/counts` runs this and compares with `counts.txt`.
//!
//! Everything is warm: what is built at the first use is built by `inputs`, which is not counted, and neither is the
//! end of what a function gives back.

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

// Cuts a hundred requests out of a stream that comes a kilobyte at a time.
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

// The bytes of a request to the bytes of its answer: a page of a process that has ended.
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

// A thousand decisions, a match every 7 ms. Most are dropped, one in fifteen is told.
#[library_benchmark]
#[bench::thousand(LimiterConfig { min_interval_ms: 100, strike_limit: 0 })]
fn limiter(rules: LimiterConfig) -> (Limiter, u64) {
    let (mut limiter, mut told) = (Limiter::default(), 0);
    for i in 0..1000 {
        let now = black_box(i * 7);
        let would = black_box(limiter.would_emit(&rules, now));
        let verdict = black_box(limiter.matched(&rules, now, 1));
        told += u64::from(would && matches!(verdict, Decision::Emit { .. }));
    }
    (limiter, told)
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
        // Only instructions: the simulated caches say nothing that repeats on another machine.
        .tool(Callgrind::with_args(["--cache-sim=no"]))
        // A directory of its own, so that paths are short, and the same everywhere.
        .sandbox(Sandbox::new(true).fixtures([inputs::FINISHED])),
    library_benchmark_groups = counts
);
