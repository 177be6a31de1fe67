//! The environment block: the strings that the kernel shows as `/proc/PID/environ`, whatever a process does to its
//! variables later. A job of the same user could read secrets there that its own environment does not have.

use super::{Result, is_single_threaded};
use rustix::io::Errno;
use std::ffi::{CStr, CString, c_char};

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

/// Keeps other processes of the same user from reading our memory, descriptors and environment, and from tracing us.
/// A fork inherits it; a program that is executed can be read and traced again.
pub fn hide_process() {
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Moves all variables to the heap and clears the block. Refused while this process has a second thread, which could
/// read a variable meanwhile.
pub fn move_environment() -> Result<()> {
    if !is_single_threaded()? {
        return Err(Errno::BUSY);
    }
    let mut moved = Vec::new();
    // SAFETY: there is one thread, and the closure copies before the string is cleared.
    unsafe { clear_block(|variable| moved.push(variable.to_owned())) };
    let mut pointers: Vec<*mut c_char> = moved.into_iter().map(CString::into_raw).collect();
    pointers.push(std::ptr::null_mut());
    // SAFETY: there is one thread. The list is ended by null; it and its strings are never freed.
    unsafe { environ = pointers.leak().as_mut_ptr() };
    Ok(())
}

/// Clears the block and drops all variables.
///
/// # Safety
///
/// This process has one thread.
pub unsafe fn drop_environment() {
    // SAFETY: the caller promises one thread.
    unsafe { clear_block(|_| {}) };
    // SAFETY: the same; null is an empty environment.
    unsafe { environ = std::ptr::null_mut() };
}

/// Passes each string of the block to `each`, then overwrites it.
///
/// # Safety
///
/// This process has one thread, and `environ` is set before a variable is read again.
unsafe fn clear_block(mut each: impl FnMut(&CStr)) {
    // SAFETY: the caller promises that no other thread changes it.
    let mut next = unsafe { environ };
    if next.is_null() {
        return;
    }
    loop {
        // SAFETY: the list is ended by null, and the loop with it.
        let variable = unsafe { *next };
        if variable.is_null() {
            return;
        }
        // SAFETY: an entry that is not null is a C string.
        let text = unsafe { CStr::from_ptr(variable) };
        each(text);
        let len = text.count_bytes();
        // SAFETY: the bytes of the string are writable memory of this process, and the borrow of them has ended.
        unsafe { std::ptr::write_bytes(variable, 0, len) };
        // SAFETY: this entry was not null, so there is a next one.
        next = unsafe { next.add(1) };
    }
}
