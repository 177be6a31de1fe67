//! What a terminal was shown, as much of it as makes a screen: its beginning and its end. Pure.

use super::modes::{Modes, RESET_MARGINS};
use super::replay::{HEAD_LEN, RecordedOutput, TAIL_LEN};
use std::borrow::Cow;

#[derive(Default)]
pub struct ReplayBuffer {
    head: Vec<u8>,
    /// The end is in its last `TAIL_LEN` bytes. It is cut only when it is twice as long, so that a byte is moved once.
    tail: Vec<u8>,
    /// Something between both was dropped.
    cut: bool,
    modes: Modes,
    /// The screen has another size since.
    resized: bool,
}

impl ReplayBuffer {
    /// The screen has another size. A terminal that is resized forgets its margins, and programs rely on that: `vim` sets them
    /// to all of the screen once, and never again. Ours may not have been resized, so it is told to.
    pub fn resized(&mut self) {
        self.resized = true;
    }

    /// What the program writes next, as it is to be shown.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(at) = self.modes.until_boundary(bytes).filter(|_| self.resized) else {
            self.keep(bytes);
            return Cow::Borrowed(bytes);
        };
        self.resized = false;
        let (before, after) = bytes.split_at(at);
        self.keep(before);
        let freed = if self.modes.margins().is_some() { RESET_MARGINS.as_bytes() } else { b"" };
        self.keep(freed);
        self.keep(after);
        if freed.is_empty() { Cow::Borrowed(bytes) } else { Cow::Owned([before, freed, after].concat()) }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.modes.feed(bytes);
        let room = HEAD_LEN as usize - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * TAIL_LEN as usize {
            self.tail.drain(..self.tail.len() - TAIL_LEN as usize);
            self.cut = true;
        }
    }

    pub fn recorded(&self) -> RecordedOutput {
        match self.cut {
            true => RecordedOutput { head: self.head.clone(), tail: self.tail.clone() },
            // A head is what has a gap behind it.
            false => RecordedOutput { head: Vec::new(), tail: [&self.head[..], &self.tail].concat() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_there_until_it_is_too_much_and_then_both_ends_are() {
        let mut recent = ReplayBuffer::default();
        let text: Vec<u8> = (0..700_000u32).map(|n| (n % 251) as u8).collect();
        let few = 300_000;
        text[..few].chunks(4093).for_each(|piece| drop(recent.push(piece)));
        let all = recent.recorded();
        assert!(all.head.is_empty() && all.tail == text[..few]);
        text[few..].chunks(4093).for_each(|piece| drop(recent.push(piece)));
        let ends = recent.recorded();
        assert!(ends.head == text[..HEAD_LEN as usize] && text.ends_with(&ends.tail));
        assert!((TAIL_LEN as usize..=2 * TAIL_LEN as usize).contains(&ends.tail.len()), "{}", ends.tail.len());
    }

    #[test]
    fn margins_end_with_the_size_they_were_set_for_and_never_inside_a_sequence() {
        let mut recent = ReplayBuffer::default();
        let mut shown = |resized: bool, bytes: &str| {
            if resized {
                recent.resized();
            }
            String::from_utf8(recent.push(bytes.as_bytes()).into_owned()).expect("it is text")
        };
        assert_eq!(shown(true, "text"), "text", "there are none");
        assert_eq!(shown(false, "\x1b[1;24r\x1b[3"), "\x1b[1;24r\x1b[3");
        assert_eq!(shown(true, "1"), "1");
        assert_eq!(shown(false, "mred"), "m\x1b7\x1b[r\x1b8red");
        assert_eq!(shown(false, "\x1b[2;9r"), "\x1b[2;9r", "those that are set after it stay");
        assert_eq!(shown(false, "text"), "text");
        assert_eq!(recent.recorded().tail, b"text\x1b[1;24r\x1b[31m\x1b7\x1b[r\x1b8red\x1b[2;9rtext");
    }
}
