//! A list of pids of any length, which is also a set. Without the heap.

use crate::sys;

/// The highest pid of any kernel, and one.
const PID_LIMIT: usize = 1 << 22;
const SET_LEN: usize = PID_LIMIT / 8;
/// Memory for every pid that a system can have. It costs nothing until it is touched.
const MEMORY_LEN: usize = SET_LEN + PID_LIMIT * size_of::<i32>();
/// The number of pids that are kept if there is no address space. The next pass finds the others, when these are dead.
const MIN_PIDS: usize = 256;

/// Pids, each of them once, in the order in which they were added.
pub struct Pids {
    memory: Option<&'static mut [u8]>,
    inline: [i32; MIN_PIDS],
    len: usize,
}

impl Default for Pids {
    fn default() -> Pids {
        Pids::new()
    }
}

impl Pids {
    pub fn new() -> Pids {
        Pids { memory: sys::map_anonymous(MEMORY_LEN), inline: [0; MIN_PIDS], len: 0 }
    }

    /// Returns the pids that are kept without any mapping.
    #[cfg(test)]
    fn without_memory() -> Pids {
        Pids { memory: None, inline: [0; MIN_PIDS], len: 0 }
    }

    pub fn list(&self) -> &[i32] {
        match &self.memory {
            Some(memory) => &sys::as_pids(&memory[SET_LEN..])[..self.len],
            None => &self.inline[..self.len],
        }
    }

    /// Checks membership, in constant time if there is memory.
    pub fn contains(&self, pid: i32) -> bool {
        match (&self.memory, bit_of(pid)) {
            (Some(memory), Some((byte, bit))) => memory[byte] & bit != 0,
            (_, None) => false,
            (None, Some(_)) => self.list().contains(&pid),
        }
    }

    /// Adds a pid, unless it is there or there is no room.
    pub fn push(&mut self, pid: i32) {
        let Some((byte, bit)) = bit_of(pid) else { return };
        if self.contains(pid) {
            return;
        }
        let place = match &mut self.memory {
            Some(memory) => {
                memory[byte] |= bit;
                sys::as_pids_mut(&mut memory[SET_LEN..]).get_mut(self.len)
            }
            None => self.inline.get_mut(self.len),
        };
        if let Some(place) = place {
            *place = pid;
            self.len += 1;
        }
    }

    /// Removes every pid that `keep` does not hold: a number that left the tree can return as another process.
    pub fn retain_common(&mut self, keep: &Pids) {
        let mut kept = 0;
        for at in 0..self.len {
            let pid = self.list()[at];
            let stays = keep.contains(pid);
            match (&mut self.memory, bit_of(pid)) {
                (Some(memory), Some((byte, bit))) => {
                    if !stays {
                        memory[byte] &= !bit;
                    }
                    sys::as_pids_mut(&mut memory[SET_LEN..])[kept] = pid;
                }
                (Some(_) | None, _) => self.inline[kept] = pid,
            }
            kept += usize::from(stays);
        }
        self.len = kept;
    }
}

impl Drop for Pids {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            // SAFETY: all of the mapping from `new`.
            unsafe { sys::unmap(memory) };
        }
    }
}

/// Returns the byte and the bit of a pid in the set. None: no process has such a pid.
fn bit_of(pid: i32) -> Option<(usize, u8)> {
    let pid = usize::try_from(pid).ok().filter(|pid| (1..PID_LIMIT).contains(pid))?;
    Some((pid / 8, 1 << (pid % 8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mut pids: Pids, numbers: &[i32]) -> Pids {
        numbers.iter().for_each(|pid| pids.push(*pid));
        pids
    }

    #[test]
    fn a_pid_is_kept_once_with_and_without_memory() {
        for empty in [Pids::new(), Pids::without_memory()] {
            let pids = of(empty, &[7, 9, 7, 0, -1, i32::MAX, (1 << 22) - 1]);
            assert_eq!(pids.list(), [7, 9, (1 << 22) - 1]);
            assert!(pids.contains(9) && !pids.contains(8) && !pids.contains(0) && !pids.contains(-9));
        }
    }

    #[test]
    fn pids_that_left_are_removed_and_can_be_added_again() {
        for (mut pids, keep) in [(Pids::new(), Pids::new()), (Pids::without_memory(), Pids::without_memory())] {
            pids = of(pids, &[3, 1, 2, 5]);
            pids.retain_common(&of(keep, &[5, 1, 9]));
            assert_eq!(pids.list(), [1, 5]);
            assert!(!pids.contains(3) && !pids.contains(9));
            pids.push(3);
            assert_eq!(pids.list(), [1, 5, 3]);
        }
    }

    #[test]
    fn there_is_room_for_any_number_with_memory_and_for_some_without() {
        let all: Vec<i32> = (1..40_000).collect();
        assert_eq!(of(Pids::new(), &all).list(), all);
        assert_eq!(of(Pids::without_memory(), &all).list(), &all[..MIN_PIDS]);
    }
}
