//! Reuses large read buffers between the tasks that scan output.

use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

/// Length of a buffer. Allocating one of this size for each read would cost as much as the read.
const READ_BUF_LEN: usize = 256 * 1024;
/// Maximum number of idle buffers: one per thread that can use them.
const MAX_IDLE_BUFFERS: usize = 2;

#[derive(Debug, Default)]
pub struct BufferPool {
    idle: Mutex<Vec<Vec<u8>>>,
}

impl BufferPool {
    /// Takes an idle buffer or allocates one. It returns to the pool when dropped.
    pub fn take(&self) -> PooledBuffer<'_> {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        PooledBuffer { pool: self, bytes: idle.unwrap_or_else(|| vec![0; READ_BUF_LEN]) }
    }
}

/// A buffer borrowed from its pool.
pub struct PooledBuffer<'a> {
    pool: &'a BufferPool,
    bytes: Vec<u8>,
}

impl Deref for PooledBuffer<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for PooledBuffer<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for PooledBuffer<'_> {
    fn drop(&mut self) {
        if let Ok(mut idle) = self.pool.idle.lock()
            && idle.len() < MAX_IDLE_BUFFERS
        {
            idle.push(std::mem::take(&mut self.bytes));
        }
    }
}
