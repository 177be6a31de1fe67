//! The bytes a program wrote, addressed by offset.
