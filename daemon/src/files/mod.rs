//! Files that are read, written and searched for callers: `fs.*`. Every call resolves its path once and judges what came out;
//! blocking work runs on threads that `disk` bounds.

pub mod content;
pub mod edit;
pub mod edit_file;
pub mod error;
pub mod in_memory;
pub mod list;
pub mod names;
pub mod read;
mod replace;
pub mod resolve;
pub mod roots;
pub mod search;
mod stop;
pub mod write;

pub use error::{FsError, Refusal};
pub use replace::Writers;
pub use stop::Stop;

use tokio::sync::Semaphore;

/// State that the calls on files share.
pub struct Files {
    pub writers: Writers,
    /// Searches that may run at the same time.
    pub searches: Semaphore,
}

impl Default for Files {
    fn default() -> Files {
        Files { writers: Writers::default(), searches: Semaphore::new(search::MAX_SEARCHES) }
    }
}
