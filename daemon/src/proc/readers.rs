//! Calls that will read the output of a process when it has ended. Retention waits a moment for them: an answer must not lack
//! the output because nothing is kept.

use super::handle::Proc;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A call that will read the output. Dropped: it has.
pub struct Reader(Arc<Proc>);

impl Proc {
    pub fn add_reader(self: &Arc<Self>) -> Reader {
        self.readers.fetch_add(1, Relaxed);
        Reader(self.clone())
    }

    pub fn has_readers(&self) -> bool {
        self.readers.load(Relaxed) > 0
    }
}

impl Deref for Reader {
    type Target = Arc<Proc>;

    fn deref(&self) -> &Arc<Proc> {
        &self.0
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Relaxed);
    }
}
