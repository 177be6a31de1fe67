//! The launch block: everything a shim needs to start a program, as one run of bytes.
//!
//! A fixed head of numbers, then C strings: directory, working directory, program, the file that
//! tells of out-of-memory kills, then the cgroup files to enter, the arguments, the environment.

/// Numbers before the strings.
const HEAD: usize = 64;
const PTY: u32 = 1;
const STDIN_PIPE: u32 = 2;
const SYNC: u32 = 4;

/// What to run, borrowed from wherever it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    pub pty: bool,
    pub stdin_pipe: bool,
    /// The exit is on the disk before it is told.
    pub sync: bool,
    pub rows: u16,
    pub cols: u16,
    pub log_max_bytes: u64,
    /// 0: never.
    pub timeout_ms: u64,
    /// 0: never.
    pub idle_ms: u64,
    pub grace_ms: u64,
}

/// The strings, for building a block.
pub struct Strings<'a> {
    pub dir: &'a [u8],
    pub cwd: &'a [u8],
    pub program: &'a [u8],
    /// Empty: there is none.
    pub oom_file: &'a [u8],
    pub cgroups: Vec<Vec<u8>>,
    pub argv: Vec<&'a [u8]>,
    /// `NAME=value`.
    pub env: Vec<Vec<u8>>,
}

/// The block. No string may contain NUL: the caller has refused those.
pub fn encode(n: &Numbers, s: &Strings<'_>) -> Vec<u8> {
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    let flags = flag(n.pty, PTY) | flag(n.stdin_pipe, STDIN_PIPE) | flag(n.sync, SYNC);
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&n.rows.to_le_bytes());
    out.extend_from_slice(&n.cols.to_le_bytes());
    for number in [n.log_max_bytes, n.timeout_ms, n.idle_ms, n.grace_ms] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for count in [s.cgroups.len(), s.argv.len(), s.env.len()] {
        out.extend_from_slice(&(count as u32).to_le_bytes());
    }
    out.resize(HEAD, 0);
    let fixed = [s.dir, s.cwd, s.program, s.oom_file].into_iter();
    let lists =
        s.cgroups.iter().map(Vec::as_slice).chain(s.argv.iter().copied()).chain(s.env.iter().map(Vec::as_slice));
    for string in fixed.chain(lists) {
        out.extend_from_slice(string);
        out.push(0);
    }
    out
}

/// A block that was checked: every string is there and ends in NUL.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    pub numbers: Numbers,
    pub cgroups: usize,
    pub argv: usize,
    pub env: usize,
    strings: &'a [u8],
}

impl<'a> Block<'a> {
    /// None: cut short, or counts that do not fit.
    pub fn decode(bytes: &'a [u8]) -> Option<Block<'a>> {
        let (head, strings) = bytes.split_at_checked(HEAD)?;
        let u32_at = |at: usize| head.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        let u64_at = |at: usize| head.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
        let u16_at = |at: usize| head.get(at..at + 2).and_then(|b| b.try_into().ok()).map(u16::from_le_bytes);
        let flags = u32_at(0)?;
        let numbers = Numbers {
            pty: flags & PTY != 0,
            stdin_pipe: flags & STDIN_PIPE != 0,
            sync: flags & SYNC != 0,
            rows: u16_at(4)?,
            cols: u16_at(6)?,
            log_max_bytes: u64_at(8)?,
            timeout_ms: u64_at(16)?,
            idle_ms: u64_at(24)?,
            grace_ms: u64_at(32)?,
        };
        let (cgroups, argv, env) = (u32_at(40)? as usize, u32_at(44)? as usize, u32_at(48)? as usize);
        let wanted = cgroups.checked_add(argv)?.checked_add(env)?.checked_add(4)?;
        let found = strings.iter().filter(|b| **b == 0).count();
        (found == wanted && strings.last() == Some(&0)).then_some(Block { numbers, cgroups, argv, env, strings })
    }

    /// Every string with its NUL, in order: directory, working directory, program, out-of-memory
    /// file, cgroup files, arguments, environment.
    pub fn strings(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.strings.split_inclusive(|b| *b == 0)
    }

    pub fn dir(&self) -> &'a [u8] {
        self.strings().next().unwrap_or(b"\0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_reads_back_and_any_cut_of_it_is_refused() {
        let numbers = Numbers { pty: true, rows: 24, cols: 80, log_max_bytes: 9, timeout_ms: 8, ..Numbers::default() };
        let strings = Strings {
            dir: b"/d",
            cwd: b"/",
            program: b"/bin/echo",
            oom_file: b"",
            cgroups: vec![],
            argv: vec![b"echo", b""],
            env: vec![b"A=1".to_vec()],
        };
        let bytes = encode(&numbers, &strings);
        let block = Block::decode(&bytes).expect("whole");
        assert_eq!((block.numbers, block.cgroups, block.argv, block.env), (numbers, 0, 2, 1));
        let read: Vec<&[u8]> = block.strings().collect();
        assert_eq!(read, [b"/d\0".as_slice(), b"/\0", b"/bin/echo\0", b"\0", b"echo\0", b"\0", b"A=1\0"]);
        for cut in 0..bytes.len() {
            assert!(Block::decode(&bytes[..cut]).is_none(), "{cut}");
        }
    }
}
