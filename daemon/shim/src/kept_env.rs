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
}

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
        KeptEnv { memory, len: bytes.len() }
    }

    /// Returns the variables, each ended by NUL. None: there was no memory to keep them in.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.memory {
            Memory::Arena(place) | Memory::Mapped(place) => Some(&place[..self.len]),
            Memory::None => None,
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
}
