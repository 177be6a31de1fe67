//! Start and end of the output that was shown, enough to draw its screen again. Pure.

use super::modes::{Modes, RESET_MARGINS};
use super::replay::{HEAD_LEN, RecordedOutput, TAIL_LEN};
use std::borrow::Cow;

/// Keeps the output that was shown, and removes margins that a resize made invalid.
#[derive(Default)]
pub struct ReplayBuffer {
    head: Vec<u8>,
    /// At least the last `TAIL_LEN` bytes. It is cut only when it is twice as long, so that a byte is moved once.
    tail: Vec<u8>,
    /// Bytes between head and tail were dropped.
    cut: bool,
    modes: Modes,
    /// The screen was resized since the last output.
    resized: bool,
}

impl ReplayBuffer {
    /// Notes that the screen was resized. A terminal that is resized forgets its margins, and programs rely on that: `vim` sets
    /// them to all of the screen once, and never again. Our terminal may not have been resized, so `push` resets its margins.
    pub fn resized(&mut self) {
        self.resized = true;
    }

    /// Keeps output of the program and returns it as it is to be shown.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(at) = self.modes.until_boundary(bytes).filter(|_| self.resized) else {
            self.keep(bytes);
            return Cow::Borrowed(bytes);
        };
        self.resized = false;
        let (before, after) = bytes.split_at(at);
        self.keep(before);
        let reset = if self.modes.margins().is_some() { RESET_MARGINS.as_bytes() } else { b"" };
        self.keep(reset);
        self.keep(after);
        if reset.is_empty() { Cow::Borrowed(bytes) } else { Cow::Owned([before, reset, after].concat()) }
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
        if self.cut {
            RecordedOutput { head: self.head.clone(), tail: self.tail.clone() }
        } else {
            // A head is separate only if there is a gap after it.
            RecordedOutput { head: Vec::new(), tail: [&self.head[..], &self.tail].concat() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_output_is_kept_up_to_the_limit_and_then_only_both_ends() {
        let mut buffer = ReplayBuffer::default();
        let text: Vec<u8> = (0..700_000u32).map(|n| (n % 251) as u8).collect();
        let few = 300_000;
        text[..few].chunks(4093).for_each(|piece| drop(buffer.push(piece)));
        let all = buffer.recorded();
        assert!(all.head.is_empty() && all.tail == text[..few]);
        text[few..].chunks(4093).for_each(|piece| drop(buffer.push(piece)));
        let ends = buffer.recorded();
        assert!(ends.head == text[..HEAD_LEN as usize] && text.ends_with(&ends.tail));
        assert!((TAIL_LEN as usize..=2 * TAIL_LEN as usize).contains(&ends.tail.len()), "{}", ends.tail.len());
    }

    #[test]
    fn a_resize_resets_margins_and_never_inside_a_sequence() {
        let mut buffer = ReplayBuffer::default();
        let mut shown = |resized: bool, bytes: &str| {
            if resized {
                buffer.resized();
            }
            String::from_utf8(buffer.push(bytes.as_bytes()).into_owned()).expect("it is text")
        };
        assert_eq!(shown(true, "text"), "text", "there are no margins");
        assert_eq!(shown(false, "\x1b[1;24r\x1b[3"), "\x1b[1;24r\x1b[3");
        assert_eq!(shown(true, "1"), "1");
        assert_eq!(shown(false, "mred"), "m\x1b7\x1b[r\x1b8red");
        assert_eq!(shown(false, "\x1b[2;9r"), "\x1b[2;9r", "margins set after the resize stay");
        assert_eq!(shown(false, "text"), "text");
        assert_eq!(buffer.recorded().tail, b"text\x1b[1;24r\x1b[31m\x1b7\x1b[r\x1b8red\x1b[2;9rtext");
    }
}
