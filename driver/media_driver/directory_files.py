"""Identifies and deletes a driver's files in its directory.

    AERON_DIR --real_path--> path, no link --opened--> descriptor --entries--> driver's or foreign
                                                            |
                                                            +--delete_files--> foreign files stay

The default directory is in /dev/shm, where any user may create a directory or a link with any name.
Therefore a link is followed only if this user owns it, and all files are accessed through a
descriptor of the directory without following links. This module does not check whether a driver is
active. Source of the names: spec 10.3, Aeron 1.53.
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
"""Maximum number of symbolic links in a path. Linux has the same limit."""


class Entry(NamedTuple):
    """An entry in a driver's directory or in one of the directory's folders."""

    folder: int
    """Descriptor of the directory that contains the entry, open until the next iteration."""
    path: str
    """The entry's path relative to the driver's directory."""
    is_folder: bool
    fault: str
    """The reason why the entry is not a driver's file, or empty if it is a driver's file."""


def real_path(path: Path) -> Path:
    """Resolve a path whose last component may be a symbolic link. The link must belong to this
    user.

    The resolved path might not exist. Raises StorageError for another user's link.
    """
    path, given = path.absolute(), path
    for _ in range(_LINKS_MAX):
        try:
            status = path.lstat()
            if not stat.S_ISLNK(status.st_mode):
                return path
            if status.st_uid != os.geteuid():
                raise StorageError(
                    f"{path} (AERON_DIR) is a symbolic link owned by {_user(status.st_uid)}, "
                    f"expected owner {_user(os.geteuid())}. Delete the link or set AERON_DIR to "
                    "another directory"
                )
            path = path.parent / path.readlink()
        except FileNotFoundError:
            return path
        except OSError as error:
            raise StorageError(f"cannot access {path} (AERON_DIR): {error.strerror}") from error
    raise StorageError(f"cannot access {given} (AERON_DIR): {os.strerror(errno.ELOOP)}")


@contextmanager
def opened(directory: Path) -> Iterator[int]:
    """Open a directory and yield its descriptor. The directory must not be a link, and this user
    must own it.
    """
    try:
        descriptor = _open_directory(directory)
    except OSError as error:
        raise StorageError(f"cannot open {directory} (AERON_DIR): {error.strerror}") from error
    try:
        owner = os.fstat(descriptor).st_uid
        if owner != os.geteuid():
            raise StorageError(
                f"{directory} (AERON_DIR) is owned by {_user(owner)}, expected owner "
                f"{_user(os.geteuid())}. Set AERON_DIR to another directory"
            )
        yield descriptor
    finally:
        os.close(descriptor)


def entries(root: int) -> Iterator[Entry]:
    """Yield all entries of a driver's directory, with a folder's content before the folder."""
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
    """Return a message about the first foreign entry in a driver's directory, or None if all
    entries are a driver's files.
    """
    return next((f"{each.path} {each.fault}" for each in entries(root) if each.fault), None)


def cnc_fault(root: int, directory: Path) -> str | None:
    """Return the reason why `cnc.dat` is not a driver's file, or None if it is valid or missing.

    A version of 0 is valid, because the driver may have been killed before it was ready.
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
    """Delete the driver's files, but keep a folder that contains foreign files."""
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
        # An active driver may delete its logs at any time.
        return ""
    if not is_known:
        return "is not a file of a media driver"
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if not is_right_type(status.st_mode):
        return f"has the file type {stat.filemode(status.st_mode)[0]!r}"
    if status.st_uid != os.geteuid():
        return f"is owned by {_user(status.st_uid)}, expected owner {_user(os.geteuid())}"
    return ""


def _user(uid: int) -> str:
    try:
        return f"uid {uid} ({pwd.getpwuid(uid).pw_name})"
    except KeyError:
        # In a container the uid may have no entry in the password file.
        return f"uid {uid}"
