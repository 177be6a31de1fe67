//! The environment of the program, kept for a restart. This is the one place where its values stay after the start: the
//! launch they came in is wiped.

use crate::sys;
use toold_format::launch::StringList;

/// The length of the part of the arena that most environments fit into. Pages that no value reaches cost no memory.
pub const MEMORY_LEN: usize = 64 * 1024;

/// The variables of a process as C strings in a row, `NAME=value`, in private memory. They go with the process: the arena is
/// cleared when the shim gets another one, and a mapping of their own is unmapped.
pub struct KeptEnv {
    memory: Memory,
    len: usize,
    /// The bytes that have arrived.
    filled: usize,
}

/// The longest environment of a next run that is kept: more than the kernel takes.
const MAX_GIVEN_LEN: u64 = 8 * 1024 * 1024;

enum Memory {
    Arena(&'static mut [u8]),
    Mapped(&'static mut [u8]),
    /// There was no memory for them.
    None,
}

impl KeptEnv {
    /// Copies the variables of a launch.
    pub fn new(env: StringList<'_>, arena: &'static mut [u8]) -> KeptEnv {
        let bytes = env.as_bytes();
        let mut memory = match bytes.len() {
            len if len <= arena.len() => Memory::Arena(arena),
            len => sys::map_anonymous(len).map_or(Memory::None, Memory::Mapped),
        };
        if let Memory::Arena(place) | Memory::Mapped(place) = &mut memory {
            place[..bytes.len()].copy_from_slice(bytes);
        }
        KeptEnv { memory, len: bytes.len(), filled: bytes.len() }
    }

    /// Makes room for the environment of a next run, which comes in parts. None: it is too long, or there is no memory.
    pub fn with_room(total: u64) -> Option<KeptEnv> {
        let len = usize::try_from(total).ok().filter(|_| total <= MAX_GIVEN_LEN)?;
        let memory = Memory::Mapped(sys::map_anonymous(len.max(1))?);
        Some(KeptEnv { memory, len, filled: 0 })
    }

    /// Adds the next part. Returns false for one that does not follow the last, or does not fit.
    pub fn push(&mut self, offset: u64, part: &[u8]) -> bool {
        let (Memory::Arena(place) | Memory::Mapped(place)) = &mut self.memory else { return false };
        if offset != self.filled as u64 || part.len() > self.len - self.filled {
            return false;
        }
        place[self.filled..self.filled + part.len()].copy_from_slice(part);
        self.filled += part.len();
        true
    }

    /// Returns the variables, each ended by NUL. None: there was no memory to keep them in, or they are not complete.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.memory {
            Memory::Arena(place) | Memory::Mapped(place) if self.filled == self.len => Some(&place[..self.len]),
            Memory::Arena(_) | Memory::Mapped(_) | Memory::None => None,
        }
    }
}

impl Drop for KeptEnv {
    fn drop(&mut self) {
        if let Memory::Mapped(memory) = std::mem::replace(&mut self.memory, Memory::None) {
            // SAFETY: all of a mapping from `map_anonymous`, made in `new`.
            unsafe { sys::unmap(memory) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toold_format::launch::StringListBuf;

    #[test]
    fn variables_are_kept_in_the_arena_or_in_a_mapping_of_their_own() {
        for len in [10, MEMORY_LEN] {
            let mut env = StringListBuf::default();
            env.push(b"EMPTY=");
            env.push(&[b"A=", &vec![0xff; len][..]].concat());
            let arena = sys::map_anonymous(MEMORY_LEN).expect("there is memory");
            let kept = KeptEnv::new(env.as_list(), arena);
            assert_eq!(kept.bytes(), Some(env.as_list().as_bytes()), "{len}");
        }
    }

    #[test]
    fn an_environment_that_comes_in_parts_is_there_when_it_is_whole() {
        let mut kept = KeptEnv::with_room(8).expect("there is memory");
        assert!(kept.push(0, b"A=1\0"));
        assert_eq!(kept.bytes(), None);
        assert!(!kept.push(0, b"A=1\0") && !kept.push(8, b"") && !kept.push(4, b"too long"));
        assert!(kept.push(4, b"B=2\0"));
        assert_eq!(kept.bytes(), Some(&b"A=1\0B=2\0"[..]));
        assert!(!kept.push(8, b"C"));
        assert_eq!(KeptEnv::with_room(0).expect("there is memory").bytes(), Some(&b""[..]));
        assert!(KeptEnv::with_room(MAX_GIVEN_LEN + 1).is_none());
    }
}
