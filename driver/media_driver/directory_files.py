"""The files in a driver's directory: which ones are a driver's, and how they are deleted.

    AERON_DIR --real_path--> a path, no link --opened--> descriptor --entries--> known or faulty
                                                              |
                                                              +--delete_files--> faulty ones stay

The default directory lies in /dev/shm, where any user may create a directory or a link under any
name. Therefore a link is followed only if this user owns it, and everything in the directory is
reached through a descriptor, without following links. Whether a driver is alive is not checked.
Source of the names: spec 10.3, Aeron 1.53.
"""

import errno
import os
import pwd
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from windtunnel.driver.base.errors import DriverError, StorageError
from windtunnel.driver.cnc import cnc_file
from windtunnel.driver.media_driver.image import loss_report

PUBLICATIONS = "publications"
IMAGES = "images"
FOLDERS = (PUBLICATIONS, IMAGES)

_FILES = (cnc_file.FILE_NAME, loss_report.FILE_NAME)
_LOG = re.compile(r"-?\d+\.logbuffer")
_LINKS_MAX = 40
"""As many as Linux follows in a path."""


class Entry(NamedTuple):
    """An entry of a driver's directory or of one of its folders."""

    folder: int
    """The descriptor of the directory that holds it, open until the next entry is asked for."""
    path: str
    """Its path in the driver's directory."""
    is_folder: bool
    fault: str
    """Why it is not a driver's; empty if it is."""


def real_path(path: Path) -> Path:
    """Return what a path names, following a link in its last component if this user owns it.

    The result may not exist. Raises StorageError for a link of another user.
    """
    path, asked = path.absolute(), path
    for _ in range(_LINKS_MAX):
        try:
            status = path.lstat()
            if not stat.S_ISLNK(status.st_mode):
                return path
            if status.st_uid != os.geteuid():
                raise StorageError(
                    f"{path} (AERON_DIR) is a symbolic link of {_user(status.st_uid)}, expected "
                    f"one of {_user(os.geteuid())}; have it deleted or set AERON_DIR to another "
                    "directory"
                )
            path = path.parent / path.readlink()
        except FileNotFoundError:
            return path
        except OSError as error:
            raise StorageError(f"cannot access {path} (AERON_DIR): {error.strerror}") from error
    raise StorageError(f"cannot access {asked} (AERON_DIR): {os.strerror(errno.ELOOP)}")


@contextmanager
def opened(directory: Path) -> Iterator[int]:
    """Open a directory of this user, which must not be a link. Yields the descriptor."""
    try:
        descriptor = _open_directory(directory)
    except OSError as error:
        raise StorageError(f"cannot open {directory} (AERON_DIR): {error.strerror}") from error
    try:
        owner = os.fstat(descriptor).st_uid
        if owner != os.geteuid():
            raise StorageError(
                f"{directory} (AERON_DIR) belongs to {_user(owner)}, expected "
                f"{_user(os.geteuid())}; set AERON_DIR to another directory"
            )
        yield descriptor
    finally:
        os.close(descriptor)


def entries(root: int) -> Iterator[Entry]:
    """Yield all entries of a directory; those of `publications` and `images` before these."""
    for name in sorted(os.listdir(root)):
        if name in FOLDERS:
            yield from _folder_entries(root, name)
        else:
            yield Entry(root, name, False, _fault(root, name, name in _FILES, stat.S_ISREG))


def _folder_entries(root: int, name: str) -> Iterator[Entry]:
    fault = _fault(root, name, True, stat.S_ISDIR)
    if not fault:
        try:
            folder = _open_directory(name, dir_fd=root)
        except OSError as error:
            yield Entry(root, name, True, f"cannot be opened: {error.strerror}")
            return
        try:
            for log in sorted(os.listdir(folder)):
                is_log = _LOG.fullmatch(log) is not None
                log_fault = _fault(folder, log, is_log, stat.S_ISREG)
                yield Entry(folder, f"{name}/{log}", False, log_fault)
        finally:
            os.close(folder)
    yield Entry(root, name, True, fault)


def first_fault(root: int) -> str | None:
    """Return the first entry that is not a driver's and the reason, or None if all are."""
    return next((f"{each.path} {each.fault}" for each in entries(root) if each.fault), None)


def cnc_fault(root: int, directory: Path) -> str | None:
    """Return why the `cnc.dat` of a directory is not a driver's, or None if it is or is absent.

    A version of 0 is a driver's: it was killed before it was ready.
    """
    try:
        descriptor = os.open(
            cnc_file.FILE_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root
        )
        with open(descriptor, "rb") as file:
            if any(file.read(4)):
                cnc_file.open_existing(directory).close()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"cannot read {directory / cnc_file.FILE_NAME}: {error.strerror}"
    except DriverError as error:
        return str(error)
    return None


def delete_files(root: int) -> None:
    """Delete the entries that are a driver's; a folder that holds anything else stays."""
    for each in entries(root):
        if each.fault:
            continue
        delete = os.rmdir if each.is_folder else os.unlink
        try:
            delete(os.path.basename(each.path), dir_fd=each.folder)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                error.filename = each.path
                raise


def _open_directory(path: str | Path, dir_fd: int | None = None) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, dir_fd=dir_fd)


def _fault(folder: int, name: str, is_known: bool, is_right_type: Callable[[int], bool]) -> str:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        # A driver that is still running may delete its logs at any time.
        return ""
    if not is_known:
        return "is not a file of a media driver"
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if not is_right_type(status.st_mode):
        return f"has the file type {stat.filemode(status.st_mode)[0]!r}"
    if status.st_uid != os.geteuid():
        return f"belongs to {_user(status.st_uid)}, expected {_user(os.geteuid())}"
    return ""


def _user(uid: int) -> str:
    try:
        return f"uid {uid} ({pwd.getpwuid(uid).pw_name})"
    except KeyError:
        # A container may use numbers that have no names.
        return f"uid {uid}"
