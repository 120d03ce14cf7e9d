"""Opens regular files without following a symbolic link, and without waiting for a FIFO.

The files of an archive's directory may come from an untrusted source. A link in place of a segment
file would lead a write out of the directory, and a FIFO would block its reader forever.
"""

import errno
import os
import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
)
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return its descriptor. Raises OSError, also if the path is anything
    but a regular file.
    """
    try:
        descriptor = os.open(path, flags | _FLAGS, 0o666)
    except OSError as error:
        # ELOOP means a symbolic link, ENXIO a FIFO without a reader, or a socket.
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _other(path, os.lstat(path).st_mode) from error
        raise
    found = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(found):
        os.close(descriptor)
        raise _other(path, found)
    return descriptor


def read_regular(path: Path, offset: int = 0, length: int = -1) -> bytes:
    """Return the content of a regular file, or a part of it. Raises the same errors as
    `open_regular`.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        file.seek(offset)
        return file.read(length)


def truncate_regular(path: Path, *lengths: int) -> None:
    """Set the length of a regular file, to one length after the other. Raises the same errors as
    `open_regular`.
    """
    descriptor = open_regular(path, os.O_WRONLY)
    try:
        for length in lengths:
            os.ftruncate(descriptor, length)
    finally:
        os.close(descriptor)


def _other(path: Path, mode: int) -> OSError:
    found = next((text for is_kind, text in _KINDS if is_kind(mode)), "a device")
    return OSError(errno.EINVAL, f"expected a regular file, found {found}", str(path))
