//! What a terminal was shown, as much of it as makes a screen: its beginning and its end. Pure.

use super::replay::{HEAD, Recorded, TAIL};

#[derive(Default)]
pub struct Recent {
    head: Vec<u8>,
    /// The end is in its last `TAIL` bytes. It is cut only when it is twice as long, so that a byte is moved once.
    tail: Vec<u8>,
    /// Something between both was dropped.
    cut: bool,
}

impl Recent {
    pub fn push(&mut self, bytes: &[u8]) {
        let room = HEAD as usize - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * TAIL as usize {
            self.tail.drain(..self.tail.len() - TAIL as usize);
            self.cut = true;
        }
    }

    pub fn recorded(&self) -> Recorded {
        match self.cut {
            true => Recorded { head: self.head.clone(), tail: self.tail.clone() },
            // A head is what has a gap behind it.
            false => Recorded { head: Vec::new(), tail: [&self.head[..], &self.tail].concat() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_there_until_it_is_too_much_and_then_both_ends_are() {
        let mut recent = Recent::default();
        let text: Vec<u8> = (0..700_000u32).map(|n| (n % 251) as u8).collect();
        let few = 300_000;
        text[..few].chunks(4093).for_each(|piece| recent.push(piece));
        let all = recent.recorded();
        assert!(all.head.is_empty() && all.tail == text[..few]);
        text[few..].chunks(4093).for_each(|piece| recent.push(piece));
        let ends = recent.recorded();
        assert!(ends.head == text[..HEAD as usize] && text.ends_with(&ends.tail));
        assert!((TAIL as usize..=2 * TAIL as usize).contains(&ends.tail.len()), "{}", ends.tail.len());
    }
}
