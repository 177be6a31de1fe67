//! A small static program that the benchmark builds at run time: it sends one request, stamps the time of its exit, writes lines, or times
//! calls and computing.
#![no_main]

mod sys;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

const LINE: usize = 80;
/// Whole lines, just below the capacity of a pipe.
const BLOCK: usize = 65_536 / LINE * LINE;

fn run() -> io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "ask", socket, question] => ask(socket, question),
        [_, "stamp", file, gate] => stamp(file, gate),
        [_, "lines", bytes] => lines(bytes.parse().map_err(io::Error::other)?),
        [_, "open", file, count] => timed(count, || File::open(file).map(drop)),
        [_, "open-to-write", file, count] => timed(count, || File::options().write(true).open(file).map(drop)),
        [_, "read", file, count] => timed(count, || read(file)),
        [_, "compute", count] => timed(count, compute),
        _ => Err(io::Error::other("ask, stamp, lines, open, open-to-write, read or compute, with their arguments")),
    }
}

/// Does the minimum of a command-line client: connects, sends a line, receives a line and prints it.
fn ask(socket: &str, question: &str) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(format!("{question}\n").as_bytes())?;
    let (mut buffer, mut have) = ([0; 16 << 10], 0);
    while have == 0 || buffer[have - 1] != b'\n' {
        match stream.read(&mut buffer[have..])? {
            0 => return Err(io::Error::other("no answer")),
            count => have += count,
        }
    }
    io::stdout().write_all(&buffer[..have])
}

/// Waits for a byte and writes the time just before it exits.
fn stamp(file: &str, gate: &str) -> io::Result<()> {
    let place = sys::map(&File::options().read(true).write(true).open(file)?);
    File::open(gate)?.read_exact(&mut [0])?;
    sys::stamp_and_exit(place)
}

/// Prints the median of the nanoseconds that each of `count` runs of `work` takes.
fn timed(count: &str, work: impl Fn() -> io::Result<()>) -> io::Result<()> {
    let mut times = Vec::new();
    for _ in 0..count.parse().map_err(io::Error::other)? {
        let began = sys::now_ns();
        work()?;
        times.push(sys::now_ns() - began);
    }
    times.sort_unstable();
    println!("{}", times[times.len() / 2]);
    Ok(())
}

/// Reads a file to its end.
fn read(file: &str) -> io::Result<()> {
    let (mut file, mut block) = (File::open(file)?, [0; 16 << 10]);
    while file.read(&mut block)? > 0 {}
    Ok(())
}

/// Computes for about a millisecond without a call.
fn compute() -> io::Result<()> {
    let sum = (0..1_000_000u64).fold(1, |sum: u64, n| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(n)));
    if std::hint::black_box(sum) == 0 { Err(io::Error::other("never")) } else { Ok(()) }
}

/// Writes lines of letters and spaces as fast as they are read.
fn lines(bytes: usize) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    let mut state = 12345u32;
    for (at, byte) in block.iter_mut().enumerate() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = match at % LINE {
            79 => b'\n',
            column if column % 7 == 6 => b' ',
            _ => b'a' + (state >> 24) as u8 % 26,
        };
    }
    let (mut out, mut left) = (sys::stdout(), bytes);
    while left > 0 {
        let size = left.min(BLOCK);
        out.write_all(&block[..size])?;
        left -= size;
    }
    Ok(())
}
