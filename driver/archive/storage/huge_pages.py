"""Allocates the memory of segment files in a tmpfs, such as `/dev/shm`, in huge pages.

    segment file   |---- 2 MiB ----|---- 2 MiB ----|---- 2 MiB ----|
    next block                  |......|
    allocated                      |-- huge page --|

Writing to 4 KiB pages that the kernel must allocate takes about four times as long as writing to
allocated memory, and reading them takes longer than reading a huge page. `MADV_COLLAPSE` (Linux
6.1) makes a huge page of a range in a mapping, whatever the mount options are. The first page of
the range must exist. The kernel zeroes the others, so the file's content does not change.

If a hypervisor has taken the free memory of a virtual machine back, a huge page takes milliseconds
instead of a fifth of one. Recordings are then as fast as without huge pages in the median, but
their speed varies; replays are faster in any case.
"""

import ctypes
import mmap

HUGE_PAGE_LENGTH = 2 << 20
_TMPFS_MAGIC = 0x01021994
_MADV_POPULATE_WRITE = 23
_MADV_COLLAPSE = 25
_MAP_FIXED = 0x10
_STATFS_LENGTH = 256
"""More than the length of `struct statfs`, whose first word is the type of the file system."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_libc.mmap.restype = ctypes.c_void_p
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_MAP_FAILED = ctypes.c_void_p(-1).value


def allocate(file: int, start: int, end: int, file_length: int) -> None:
    """Allocate the huge pages that begin in a part of a file, from offset `start` to before `end`,
    and end within the file. Does not raise: a write allocates what is missing.
    """
    if not _is_in_tmpfs(file):
        return
    at = -(-start // HUGE_PAGE_LENGTH) * HUGE_PAGE_LENGTH
    while at < end and at + HUGE_PAGE_LENGTH <= file_length:
        _collapse(file, at)
        at += HUGE_PAGE_LENGTH


def _is_in_tmpfs(file: int) -> bool:
    status = (ctypes.c_long * (_STATFS_LENGTH // ctypes.sizeof(ctypes.c_long)))()
    return bool(_libc.fstatfs(file, status) == 0 and status[0] == _TMPFS_MAGIC)


def _collapse(file: int, at: int) -> bool:
    """Make a huge page of a range of a file. Returns whether the kernel could do so."""
    area_length = 2 * HUGE_PAGE_LENGTH
    area = _libc.mmap(None, area_length, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if area == _MAP_FAILED:
        return False
    try:
        address = -(-area // HUGE_PAGE_LENGTH) * HUGE_PAGE_LENGTH
        access, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _MAP_FIXED
        if _libc.mmap(address, HUGE_PAGE_LENGTH, access, flags, file, at) == _MAP_FAILED:
            return False
        if _libc.madvise(address, mmap.PAGESIZE, _MADV_POPULATE_WRITE) != 0:
            return False
        return bool(_libc.madvise(address, HUGE_PAGE_LENGTH, _MADV_COLLAPSE) == 0)
    finally:
        _libc.munmap(area, area_length)
