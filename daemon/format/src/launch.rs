//! The launch block: everything a shim needs to start a program, as one run of bytes.
//!
//! A fixed head of numbers, then C strings: directory, working directory, program, the file that
//! counts out-of-memory kills, then the cgroup files to enter, the arguments, the environment.

use std::ffi::CStr;

/// The numbers before the strings.
const HEAD_LEN: usize = 64;
const PTY: u32 = 1;
const STDIN_PIPE: u32 = 2;
const SYNC: u32 = 4;
const MERGE: u32 = 8;
const KEEP: u32 = 16;

/// A program to run, borrowed from its owner or from the bytes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchBlock<'a> {
    pub options: LaunchOptions,
    /// The process directory, whose last part is the process's id.
    pub dir: &'a CStr,
    pub cwd: &'a CStr,
    pub program: &'a CStr,
    /// Empty: there is none.
    pub oom_file: &'a CStr,
    pub cgroups: StringList<'a>,
    pub argv: StringList<'a>,
    /// `NAME=value`.
    pub env: StringList<'a>,
}

/// The settings of a launch that are numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaunchOptions {
    pub pty: bool,
    pub stdin_pipe: bool,
    /// The exit is durable before it is reported.
    pub sync: bool,
    /// Both streams share one pipe.
    pub merge: bool,
    /// The shim stays after the end of the program, with its environment, until it is released.
    pub keep: bool,
    pub rows: u16,
    pub cols: u16,
    pub log_max_bytes: u64,
    /// 0: never.
    pub timeout_ms: u64,
    /// 0: never.
    pub idle_ms: u64,
    pub grace_ms: u64,
    /// The output is kept for a reader from the start, for this long if no daemon knows of one. 0: it is not.
    pub hold_ms: u32,
}

/// C strings in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StringList<'a> {
    len: usize,
    bytes: &'a [u8],
}

/// A list that grows.
#[derive(Debug, Default)]
pub struct StringListBuf {
    len: usize,
    bytes: Vec<u8>,
}

impl LaunchBlock<'_> {
    pub fn encode(&self) -> Vec<u8> {
        let o = &self.options;
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        let streams = flag(o.pty, PTY) | flag(o.stdin_pipe, STDIN_PIPE) | flag(o.merge, MERGE);
        let flags = streams | flag(o.sync, SYNC) | flag(o.keep, KEEP);
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&o.rows.to_le_bytes());
        out.extend_from_slice(&o.cols.to_le_bytes());
        for number in [o.log_max_bytes, o.timeout_ms, o.idle_ms, o.grace_ms] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let lists = [self.cgroups, self.argv, self.env];
        for list in lists {
            out.extend_from_slice(&(list.len as u32).to_le_bytes());
        }
        out.extend_from_slice(&o.hold_ms.to_le_bytes());
        out.resize(HEAD_LEN, 0);
        for string in [self.dir, self.cwd, self.program, self.oom_file] {
            out.extend_from_slice(string.to_bytes_with_nul());
        }
        for list in lists {
            out.extend_from_slice(list.bytes);
        }
        out
    }
}

impl<'a> LaunchBlock<'a> {
    /// Reads a block. None: cut short, or counts that do not fit.
    pub fn decode(bytes: &'a [u8]) -> Option<LaunchBlock<'a>> {
        let (head, mut rest) = bytes.split_at_checked(HEAD_LEN)?;
        let u32_at = |at: usize| head.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        let u64_at = |at: usize| head.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
        let u16_at = |at: usize| head.get(at..at + 2).and_then(|b| b.try_into().ok()).map(u16::from_le_bytes);
        let flags = u32_at(0)?;
        let options = LaunchOptions {
            pty: flags & PTY != 0,
            stdin_pipe: flags & STDIN_PIPE != 0,
            sync: flags & SYNC != 0,
            merge: flags & MERGE != 0,
            keep: flags & KEEP != 0,
            rows: u16_at(4)?,
            cols: u16_at(6)?,
            log_max_bytes: u64_at(8)?,
            timeout_ms: u64_at(16)?,
            idle_ms: u64_at(24)?,
            grace_ms: u64_at(32)?,
            hold_ms: u32_at(52)?,
        };
        let block = LaunchBlock {
            options,
            dir: split_string(&mut rest)?,
            cwd: split_string(&mut rest)?,
            program: split_string(&mut rest)?,
            oom_file: split_string(&mut rest)?,
            cgroups: split_list(&mut rest, u32_at(40)? as usize)?,
            argv: split_list(&mut rest, u32_at(44)? as usize)?,
            env: split_list(&mut rest, u32_at(48)? as usize)?,
        };
        rest.is_empty().then_some(block)
    }
}

pub(crate) fn split_string<'a>(rest: &mut &'a [u8]) -> Option<&'a CStr> {
    let string = CStr::from_bytes_until_nul(rest).ok()?;
    *rest = &rest[string.to_bytes_with_nul().len()..];
    Some(string)
}

pub(crate) fn split_list<'a>(rest: &mut &'a [u8], len: usize) -> Option<StringList<'a>> {
    let all = *rest;
    for _ in 0..len {
        split_string(rest)?;
    }
    Some(StringList { len, bytes: &all[..all.len() - rest.len()] })
}

impl<'a> StringList<'a> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the strings in a row, each with its NUL.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a CStr> + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || split_string(&mut rest))
    }
}

impl StringListBuf {
    /// Adds a string. It may not contain NUL: the caller has refused those.
    pub fn push(&mut self, string: &[u8]) {
        debug_assert!(!string.contains(&0), "the caller refuses strings with NUL");
        self.bytes.extend_from_slice(string);
        self.bytes.push(0);
        self.len += 1;
    }

    pub fn as_list(&self) -> StringList<'_> {
        StringList { len: self.len, bytes: &self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_reads_back_and_any_cut_of_it_is_refused() {
        let (mut argv, mut env) = (StringListBuf::default(), StringListBuf::default());
        argv.push(b"echo");
        argv.push(b"");
        env.push(b"A=1");
        let block = LaunchBlock {
            options: LaunchOptions {
                pty: true,
                merge: true,
                rows: 24,
                cols: 80,
                log_max_bytes: 9,
                timeout_ms: 8,
                hold_ms: 7,
                ..LaunchOptions::default()
            },
            dir: c"/d",
            cwd: c"/",
            program: c"/bin/echo",
            oom_file: c"",
            cgroups: StringList::default(),
            argv: argv.as_list(),
            env: env.as_list(),
        };
        let bytes = block.encode();
        let read = LaunchBlock::decode(&bytes).expect("whole");
        assert_eq!(read, block);
        assert_eq!(read.argv.iter().chain(read.env.iter()).collect::<Vec<_>>(), [c"echo", c"", c"A=1"]);
        for cut in 0..bytes.len() {
            assert!(LaunchBlock::decode(&bytes[..cut]).is_none(), "{cut}");
        }
        assert!(LaunchBlock::decode(&[&bytes[..], b"\0"].concat()).is_none(), "one string too many");
    }
}
