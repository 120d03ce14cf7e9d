"""Opens and replaces regular files without following symbolic links.

Users exchange run folders, so their contents are untrusted input. A file could be a symbolic link
to another file of the user, a FIFO that blocks the reader forever, or a device. Every file of a run
or suite folder is therefore read through `open_regular` and written through `replace_file`.

    open_regular    O_NOFOLLOW, O_NONBLOCK, then fstat: anything but a regular file is refused
    replace_file    a new file of random name (O_EXCL) in a directory opened with O_NOFOLLOW,
                    renamed over the old one; a link with the final name is replaced, not followed
    folder_below    each component below a directory is opened with O_NOFOLLOW from the one above

The first two check only the last component of a directory path. Each command therefore first
passes its folder argument to `untrusted_folder`, which requires that no subfolder is a symbolic
link. The path of the folder itself may contain symbolic links.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

WHOLE_BYTES_MAX = 64 << 20
"""Maximum size of a file that is read into memory as text, ten times the largest documents."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


class UnsafeFileError(OSError):
    """Raised for a path that is not the expected regular file or directory, such as a symbolic
    link.
    """

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(errno.EINVAL, text, str(path))

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises UnsafeFileError if the path is anything else, including a symbolic link, and OSError if
    the file does not exist or is not readable.
    """
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        # ELOOP means a symbolic link. ENXIO means a socket, or a device without a driver.
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _unsafe(path, "a regular file", os.lstat(path).st_mode) from error
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise _unsafe(path, "a regular file", mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def size_of(path: Path) -> int:
    """Return the length of a regular file in bytes. Raises UnsafeFileError if the path is not a
    regular file, or OSError if it cannot be opened.
    """
    with open_regular(path) as file:
        return os.fstat(file.fileno()).st_size


def read_text(path: Path, max_bytes: int = WHOLE_BYTES_MAX) -> str:
    """Read the UTF-8 text of a regular file.

    Raises the same errors as `open_regular`, UnsafeFileError if the file is too long, and
    UnicodeDecodeError.
    """
    with open_regular(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise UnsafeFileError(path, f"expected at most {max_bytes} bytes, found more")
    return content.decode("utf-8")


def map_bytes(path: Path) -> NDArray[np.uint8]:
    """Map a regular file's bytes into memory for reading. Raises UnsafeFileError if the path is not
    a regular file, or OSError if it cannot be opened.
    """
    with open_regular(path) as file:
        return map_open(file)


def map_open(file: BinaryIO) -> NDArray[np.uint8]:
    """Map the bytes of an open regular file into memory for reading. They remain mapped when the
    file is closed.
    """
    if os.fstat(file.fileno()).st_size == 0:
        return np.zeros(0, dtype=np.uint8)
    return np.asarray(np.memmap(file, dtype=np.uint8, mode="r"))


def replace_file(path: Path, content: str) -> None:
    """Write a file atomically: readers see either the old or the new contents.

    Raises UnsafeFileError if the path is a directory, or the last component of its directory a
    symbolic link, and OSError with the path for other failures. The previous file is then
    unchanged.
    """
    try:
        folder = os.open(path.parent, _FOLDER)
    except OSError as error:
        if path.parent.is_symlink():
            raise _unsafe(path.parent, "a directory", stat.S_IFLNK) from error
        raise
    fresh = f".{secrets.token_hex(8)}.new"
    try:
        with open(os.open(fresh, _CREATE, 0o666, dir_fd=folder), "w", encoding="utf-8") as file:
            file.write(content)
        os.replace(fresh, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException as error:
        # On a read-only file system, this fails with another error than that there is no such file.
        with contextlib.suppress(OSError):
            os.unlink(fresh, dir_fd=folder)
        if isinstance(error, IsADirectoryError):
            raise _unsafe(path, "a regular file", stat.S_IFDIR) from error
        if isinstance(error, OSError):
            raise _named(error, path) from error
        raise
    finally:
        os.close(folder)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Context manager that writes a file, and adds its path to errors: an OSError of writing, such
    as that of a full disk, has none.
    """
    try:
        yield
    except OSError as error:
        raise _named(error, path) from error


def _named(error: OSError, path: Path) -> OSError:
    return OSError(error.errno, error.strerror, str(path))


@contextlib.contextmanager
def folder_below(root: Path, path: PurePath) -> Iterator[Path]:
    """Open a directory below `root` for a `with` block, and yield a path of it that remains valid
    if the components are replaced.

    Links in `root` itself are followed. Raises UnsafeFileError if another component is a symbolic
    link or no directory, and OSError if it does not exist.
    """
    relative = path.relative_to("/") if path.is_absolute() else path
    if ".." in relative.parts:
        text = "expected a path without '..', which could lead out of the folder"
        raise UnsafeFileError(root / relative, text)
    folder = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    reached = root
    try:
        for name in relative.parts:
            reached /= name
            below = _open_folder(name, folder, reached)
            os.close(folder)
            folder = below
        yield Path(f"/proc/self/fd/{folder}")
    finally:
        os.close(folder)


def _open_folder(name: str, above: int, path: Path) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            error.filename = str(path)
            raise
        mode = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
        raise _unsafe(path, "a directory", mode) from error


def untrusted_folder(path: Path) -> Path:
    """Resolve the symbolic links in a folder's path, and check that the folder contains no symbolic
    links.

    Raises UnsafeFileError if a subfolder, at any depth, is a symbolic link.
    """
    real = real_path(path)
    for above, names, _ in os.walk(real):
        for name in names:
            if os.path.islink(os.path.join(above, name)):
                raise _unsafe(Path(above, name), "a directory", stat.S_IFLNK)
    return real


def real_path(path: Path) -> Path:
    """Resolve the symbolic links in a path. A path without links is returned unchanged."""
    # `Path.resolve` fails for a link to itself before Python 3.13.
    real = Path(os.path.realpath(path))
    return path if path.absolute() == real else real


def _unsafe(path: Path, expected: str, mode: int) -> UnsafeFileError:
    found = next((text for is_kind, text in _KINDS if is_kind(mode)), "a regular file")
    return UnsafeFileError(
        path,
        f"expected {expected}, found {found}; no file is read or written through a link, and only "
        "regular files are read",
    )


def text_below(folder: Path, path: PurePath, bytes_max: int) -> str:
    """Return the text of a regular file below a folder. Raises ValueError, with the path and the
    reason, if it is not such a file, is longer than `bytes_max`, or cannot be read.
    """
    try:
        with folder_below(folder, path.parent) as inside:
            return read_text(inside / path.name, bytes_max)
    except UnsafeFileError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except OSError as error:
        raise ValueError(f"{folder / path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8: {error}") from error
