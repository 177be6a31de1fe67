//! The slot with the last sizes of a terminal: output is drawn for the size that the terminal had when it was written.

use super::{Slot, SlotReader, SlotWriter};

/// The number of resizes that the slot has room for.
pub const MAX_RESIZES: usize = 7;

/// A new size of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resize {
    /// The end of the output when the size was set.
    pub at: u64,
    pub rows: u16,
    pub cols: u16,
}

/// The last resizes of a terminal, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resizes {
    /// The number of resizes so far. Those beyond the room are forgotten.
    count: u32,
    last: [Resize; MAX_RESIZES],
}

impl Resizes {
    pub fn push(&mut self, resize: Resize) {
        let len = self.all().len();
        if len == MAX_RESIZES {
            self.last.rotate_left(1);
        }
        self.last[len.min(MAX_RESIZES - 1)] = resize;
        self.count = self.count.saturating_add(1);
    }

    /// Returns the resizes that are known.
    pub fn all(&self) -> &[Resize] {
        &self.last[..(self.count as usize).min(MAX_RESIZES)]
    }

    /// Returns true if earlier resizes were forgotten.
    pub fn is_cut(&self) -> bool {
        self.count as usize > MAX_RESIZES
    }

    pub fn slot(&self) -> Slot {
        let writer = SlotWriter::new().put(self.count.to_le_bytes());
        let put = |writer: SlotWriter, resize: &Resize| {
            writer.put(resize.at.to_le_bytes()).put(resize.rows.to_le_bytes()).put(resize.cols.to_le_bytes())
        };
        self.last.iter().fold(writer, put).seal()
    }

    pub fn read(slot: &Slot) -> Option<Resizes> {
        let mut t = SlotReader::open(slot)?;
        let count = t.u32();
        let last = std::array::from_fn(|_| Resize { at: t.u64(), rows: t.u16(), cols: t.u16() });
        Some(Resizes { count, last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_resizes_are_kept_in_order_and_read_as_written() {
        let resize = |n: u16| Resize { at: u64::from(n) * 1000, rows: n, cols: n + 1 };
        let mut resizes = Resizes::default();
        assert_eq!((resizes.all(), Resizes::read(&resizes.slot())), (&[][..], None), "an empty slot is not written");
        for n in 1..=9 {
            resizes.push(resize(n));
            assert_eq!(Resizes::read(&resizes.slot()), Some(resizes));
            let first = n.saturating_sub(MAX_RESIZES as u16) + 1;
            assert_eq!(resizes.all(), (first..=n).map(resize).collect::<Vec<_>>());
            assert_eq!(resizes.is_cut(), n > 7);
        }
    }
}
