//! Unsafe code of the small program: its entry point, a mapped time stamp, `_exit`.

use std::ffi::{c_char, c_int, c_long, c_void};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};

const READ_AND_WRITE: c_int = 3;
const SHARED: c_int = 1;
const MONOTONIC: c_int = 1;

#[repr(C)]
struct Time {
    seconds: i64,
    nanos: c_long,
}

unsafe extern "C" {
    fn mmap(at: *mut c_void, size: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    fn _exit(code: c_int) -> !;
}

/// The entry point without the set-up of Rust's runtime, which a floor must not include.
// SAFETY: this is the only `main` of the program.
#[unsafe(no_mangle)]
pub extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    match crate::run() {
        Ok(()) => 0,
        Err(e) => {
            eprintln!("small: {e}");
            1
        }
    }
}

/// Maps the first number of a file of at least a page.
pub fn map(file: &File) -> *mut u64 {
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
    let place = unsafe { mmap(std::ptr::null_mut(), 4096, READ_AND_WRITE, SHARED, file.as_raw_fd(), 0) };
    assert_ne!(place as isize, -1, "the file of the stamp cannot be mapped");
    place.cast()
}

/// Returns the monotonic clock in nanoseconds.
pub fn now_ns() -> u64 {
    let mut now = Time { seconds: 0, nanos: 0 };
    // SAFETY: the value is ours to write.
    unsafe { clock_gettime(MONOTONIC, &mut now) };
    now.seconds as u64 * 1_000_000_000 + now.nanos as u64
}

/// Writes the time and exits.
pub fn stamp_and_exit(place: *mut u64) -> ! {
    let now = now_ns();
    // SAFETY: the place is the start of a mapped page, so it is aligned and writable.
    unsafe { place.write_volatile(now) };
    // SAFETY: it takes an integer and does not return.
    unsafe { _exit(0) }
}

/// Returns standard output without a buffer.
pub fn stdout() -> ManuallyDrop<File> {
    // SAFETY: our parent gives us this descriptor, and it is never closed here.
    ManuallyDrop::new(unsafe { File::from_raw_fd(1) })
}
