//! Patterns over a program's output, and how often they may speak. Pure: bytes and time are arguments.
