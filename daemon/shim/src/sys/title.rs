//! The command line that `ps` shows for this process.

/// The longest title. A start writes all of it.
const MAX_TITLE_LEN: usize = 256;
/// The longest state directory that a title names.
const MAX_DIR_LEN: usize = 160;

/// The memory where the kernel keeps our command line, and the environment behind it, which is clear by now. A title is
/// written into it: the kernel shows one that is longer than the arguments were up to its first NUL.
pub struct ProcessTitle {
    start: usize,
    len: usize,
    dir: [u8; MAX_DIR_LEN],
    dir_len: usize,
}

impl ProcessTitle {
    /// Finds the memory from `/proc/self/stat`. Each title ends in ` in ` and `state_dir`, to distinguish the processes of
    /// several daemons. None: the command line stays as it is.
    pub fn find(state_dir: &[u8]) -> Option<ProcessTitle> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let after = stat.rsplit_once(')')?.1;
        let mut fields = after.split_ascii_whitespace().skip(45).map_while(|field| field.parse::<usize>().ok());
        let [start, end, env_start, env_end] = [fields.next()?, fields.next()?, fields.next()?, fields.next()?];
        let end = if env_start == end { env_end.max(end) } else { end };
        let dir_len = state_dir.len().min(MAX_DIR_LEN);
        let mut dir = [0; MAX_DIR_LEN];
        dir[..dir_len].copy_from_slice(&state_dir[..dir_len]);
        (start > 0 && end > start).then(|| ProcessTitle { start, len: (end - start).min(MAX_TITLE_LEN), dir, dir_len })
    }

    /// Shows `parts` as the command line, cut to the length of the old one and of the environment.
    pub fn set(&self, parts: &[&[u8]]) {
        // SAFETY: the range is the argument and environment strings of this process, writable memory at the bottom of
        // the first stack that Rust code never refers to again: arguments were copied at start, variables were dropped.
        let line = unsafe { std::slice::from_raw_parts_mut(self.start as *mut u8, self.len) };
        let dir: [&[u8]; 2] = [b" in ", &self.dir[..self.dir_len]];
        let mut text = parts.iter().chain(&dir).flat_map(|p| p.iter().copied());
        for place in line.iter_mut() {
            *place = text.next().unwrap_or(0);
        }
        if let Some(last) = line.last_mut() {
            *last = 0;
        }
    }
}
