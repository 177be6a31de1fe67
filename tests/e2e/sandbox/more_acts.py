"""Acts that a sandbox forbids, by system calls that few programs make. Each is undone if it worked."""

import ctypes
import os
import signal
import socket
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
OUT, VICTIM = os.environ["OUT"], int(os.environ["VICTIM"])
AT_FDCWD, EXCHANGE = -100, 2


def call(number, *arguments):
    wide = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def text(path):
    return ctypes.c_char_p(path.encode())


def exchange(one, other):
    os.makedirs(one, exist_ok=True)
    for _ in range(2):
        call(316, AT_FDCWD, text(one), AT_FDCWD, text(other), EXCHANGE)


def link_config():
    os.link(".git/config", "linked")
    os.unlink("linked")


def by_root_of_victim():
    path = f"/proc/{VICTIM}/root{OUT}/by-victim"
    open(path, "w").close()
    os.unlink(path)


def bind_outside():
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(OUT + "/bound")
    os.unlink(OUT + "/bound")


def change_mode_by_descriptor():
    fd = os.open(OUT + "/meta", os.O_RDONLY)
    os.fchmod(fd, 0o666)


def attribute():
    os.setxattr(OUT + "/meta", "user.x", b"x")
    os.removexattr(OUT + "/meta", "user.x")


def queue_signal():
    call(129, VICTIM, 0, ctypes.create_string_buffer(struct.pack("iii", 0, 0, -1), 128))


def join_victim():
    fd = os.open(f"/proc/{VICTIM}/ns/mnt", os.O_RDONLY)
    if LIBC.setns(fd, 0):
        raise OSError(ctypes.get_errno(), "setns")


def root_of_its_own():
    pid = os.fork()
    if pid == 0:
        failed = LIBC.unshare(0x10000000) or LIBC.chroot(b".")
        os._exit(1 if failed else 0)
    if os.waitpid(pid, 0)[1]:
        raise OSError(1, "chroot")


ACTS = {
    "exchange hooks": lambda: exchange("own-hooks", ".git/hooks"),
    "exchange a repository": lambda: exchange("own-git", ".git"),
    "link a config": link_config,
    "write by the root of a process": by_root_of_victim,
    "bind outside": bind_outside,
    "mode by a descriptor": change_mode_by_descriptor,
    "attribute": attribute,
    "tgkill": lambda: call(234, VICTIM, VICTIM, 0),
    "tkill": lambda: call(200, VICTIM, 0),
    "queue a signal": queue_signal,
    "signal by a descriptor": lambda: signal.pidfd_send_signal(os.pidfd_open(VICTIM), 0),
    "compare with a process": lambda: call(312, os.getpid(), VICTIM, 1, 0, 0),
    "join a process": join_victim,
    "chroot": root_of_its_own,
    "make a file system": lambda: call(430, text("tmpfs"), 0),
    "copy a mount": lambda: call(428, AT_FDCWD, text(OUT), 0x8001),
    "memory of a process": lambda: open(f"/proc/{VICTIM}/mem", "r+b").close(),
    "fault handler": lambda: call(323, 1),
    "bpf": lambda: call(321, 0, ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 4, 1), 128), 128),
    "performance events": lambda: call(298, ctypes.create_string_buffer(struct.pack("II", 1, 128), 128), 0, -1, -1, 0),
    "audit": lambda: socket.socket(16, socket.SOCK_RAW, 9).close(),
    "packets": lambda: socket.socket(17, socket.SOCK_RAW).close(),
}
for name, run in ACTS.items():
    try:
        run()
        print(f"ACT {name}: done")
    except OSError as error:
        print(f"ACT {name}: {error}")
print("ACTS END")
