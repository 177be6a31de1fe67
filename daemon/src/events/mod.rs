//! What happened, numbered and on disk, and how far each consumer has come.
