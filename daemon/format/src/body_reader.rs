//! Reads the fields of a frame's body, in order.

use crate::slots::{Progress, Slot};

/// The rest of the body of a frame.
pub(crate) struct BodyReader<'a>(pub &'a [u8]);

impl BodyReader<'_> {
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }
    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
    pub fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_le_bytes)
    }
    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }
    pub fn slot(&mut self) -> Option<Slot> {
        self.take()
    }
    pub fn progress(&mut self) -> Option<Progress> {
        Progress::read(&self.take()?)
    }
}
