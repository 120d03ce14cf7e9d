"""Keeps the process alive when pages of a mapped file are lost because the file was truncated or
the disk is full.

Access to a mapped page that is past the end of the file, or that the file system cannot allocate,
raises SIGBUS. Every client can truncate the log buffers that it shares with the driver, so one
client could end the driver for all others. After `install`, the access continues with a page of
zeros that belongs to this process only. `Mapping.lost_pages` counts these pages, and the owner of
the mapping ends its stream.

    access --SIGBUS--> handler: is the address in a registered mapping?
                          yes: mmap zeroed pages over it, count the loss, and repeat the access
                          no:  restore the previous handler, and raise the signal again

A process that wrote to such a page and then committed a frame would show others a frame without the
bytes on that page. So `replace_together` defines pages at the start of a mapping that are replaced
together. Others then see nothing that the process writes later, nor the length that commits it.
A failed read replaces a single page if the process may still use the others. On a file system of
huge pages (hugetlbfs), only whole huge pages can be replaced.

The handler is machine code, which is stored in the cache like a kernel. A handler in Python would
never run, because Python calls it only after the faulting instruction, and threads without the GIL
could not call it at all. The handler reads `bus_error_table` and calls mmap, sigaction and raise.
It takes no lock and allocates nothing. Reserving pages with fallocate instead would neither survive
a truncation nor keep logs sparse.
"""

import ctypes
import mmap
import signal
import threading

import numpy as np

from windtunnel.driver.base.atomics import address_of
from windtunnel.driver.files.bus_error_table import (
    ACTION_LENGTH,
    BEGIN,
    END,
    LOST_PAGES,
    PAGE_LENGTH,
    READ_END,
    ROWS,
    SYMBOLS,
    WRITE_END,
    previous,
    rows,
    total,
)
from windtunnel.driver.kernels import native_runtime, processor
from windtunnel.driver.kernels.kernel_image import KernelImage, from_object
from windtunnel.driver.kernels.kernel_store import KernelStore

NOT_REGISTERED = -1

_SA_SIGINFO, _SA_RESTART, _SA_ONSTACK = 0x4, 0x1000_0000, 0x0800_0000
_FLAGS_OFFSET = 136
"""Offset of `sa_flags` in glibc's `struct sigaction` on x86-64 and AArch64."""

_free_rows = list(range(ROWS - 1, -1, -1))
"""The rows that are not in use. There is no lock, because a garbage collection during `register`
can call `unregister`, which would wait for that lock forever. `pop` and `append` are atomic.
"""
_installing = threading.Lock()
_handlers: list[np.ndarray] = []
"""The installed handler's machine code, or empty before `install`."""
_ENTRY = "on_bus_error"


def register(address: int, length: int, page_length: int = mmap.PAGESIZE) -> int:
    """Protect a mapping from SIGBUS. Returns its row in the table of protected mappings, or
    NOT_REGISTERED if the table is full.

    `page_length` is the length in which the mapping can be replaced, a power of two. The mapping
    begins at a multiple of it.
    """
    try:
        row = _free_rows.pop()
    except IndexError:
        return NOT_REGISTERED
    rows[row, LOST_PAGES] = 0
    rows[row, PAGE_LENGTH] = page_length
    rows[row, END] = address + _whole_pages(length, page_length)
    # Written last, because the handler can run at any time. It ignores a row whose BEGIN is 0.
    rows[row, BEGIN] = address
    return row


def replace_together(row: int, length: int, *, on_read: bool) -> None:
    """Replace the pages with the first `length` bytes of a mapping together when a write to one of
    them fails, and with `on_read` also when a read fails.
    """
    if row != NOT_REGISTERED:
        end = rows[row, BEGIN] + _whole_pages(length, int(rows[row, PAGE_LENGTH]))
        rows[row, WRITE_END] = end
        rows[row, READ_END] = end if on_read else 0


def _whole_pages(length: int, page_length: int) -> int:
    return (length + page_length - 1) // page_length * page_length


def unregister(row: int) -> None:
    """End the protection of a mapping from SIGBUS. The mapping's pages must no longer be
    accessed.
    """
    if row != NOT_REGISTERED:
        rows[row] = 0
        _free_rows.append(row)


def lost_pages(row: int) -> int:
    """Return how many pages of a mapping were lost. Pages that are replaced together count once."""
    return 0 if row == NOT_REGISTERED else int(rows[row, LOST_PAGES])


def lost_pages_total() -> int:
    """Return how many mapped pages this process has lost so far."""
    return int(total[0])


def install() -> None:
    """Install the SIGBUS handler in this process, unless it is already installed.

    On processors other than x86-64 there is no handler.
    """
    with _installing:
        if _handlers or not processor.is_native():
            return
        for name, table in SYMBOLS.items():
            native_runtime.add_symbol(name, table.ctypes.data)
        image = _image()
        code, _ = native_runtime.place(image)
        libc = ctypes.CDLL(None, use_errno=True)
        action = (ctypes.c_uint8 * ACTION_LENGTH)()
        ctypes.c_uint64.from_buffer(action).value = code.ctypes.data + image.entry
        flags = ctypes.c_int32.from_buffer(action, _FLAGS_OFFSET)
        flags.value = _SA_SIGINFO | _SA_RESTART | _SA_ONSTACK
        kept = ctypes.c_void_p(address_of(previous))
        if libc.sigaction(int(signal.SIGBUS), action, kept) != 0:
            raise OSError(ctypes.get_errno(), "cannot install the SIGBUS handler")
        _handlers.append(code)


def _image() -> KernelImage:
    """Return the handler's machine code from the kernel cache, or compile and store it."""
    store = KernelStore(install)
    found = store.load(_ENTRY)
    if found is None:
        from windtunnel.driver.files import bus_error_handler

        found = from_object(bus_error_handler.object_code(_ENTRY), _ENTRY)
        store.save(_ENTRY, found)
    return found
