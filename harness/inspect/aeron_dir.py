"""A driver's directory, and snapshots of its cnc.dat and loss report.

    cnc.dat  --read the used parts-->  a sparse copy of the same length  -->  CncFile

A cnc file is 48 MB by default and mostly empty. The copy has the header, the ring's trailer, the
counters up to the first unused one, and the error log up to its first zeros.
"""

import os
import pwd
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.regular_file import UnsafeFileError, open_regular
from windtunnel.harness.dissect.driver_files.cnc_file import (
    HEADER,
    HEADER_LENGTH,
    METADATA,
    RING_TRAILER_LENGTH,
    UNUSED,
    VALUE,
    CncFile,
    CncFileError,
    read_cnc,
    section_ends,
)
from windtunnel.harness.dissect.driver_files.loss_report import LossReport, read_loss_report

CNC_FILE = "cnc.dat"
LOSS_REPORT_FILE = "loss-report.dat"
LENGTH_MAX = (1 << 31) - 1
"""Maximum length of a cnc.dat or loss report in bytes: drivers store lengths in 32 bits."""
_COUNTERS_A_READ = 256
_BLOCK_LENGTH = 1 << 18
"""Number of consecutive zero bytes that mark the end of the entries. No entry contains as many."""


class NothingThereError(LookupError):
    """Raised if a file does not exist or is incomplete. The message contains its path."""


def default_directory() -> Path:
    """Return the default driver directory, which is also the C driver's default on Linux."""
    user = os.environ.get("USER") or _account_name()
    parent = Path("/dev/shm")
    return (parent if parent.is_dir() else Path(tempfile.gettempdir())) / f"aeron-{user}"


def _account_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name or "default"
    except KeyError:
        return "default"


def read_driver(directory: Path) -> CncFile:
    """Return a snapshot of a driver's cnc.dat. Raises NothingThereError if the file is missing or
    not initialized, or CncFileError if it is invalid.
    """
    path = directory / CNC_FILE
    with opened(path, "no driver") as (descriptor, length):
        if length < HEADER_LENGTH:
            raise NothingThereError(f"{path}: the driver has not initialized the file yet")
        if length > LENGTH_MAX:
            raise CncFileError(f"{path}: expected at most {LENGTH_MAX} bytes, found {length}")
        copy = np.zeros(length, dtype=np.uint8)
        _copy(descriptor, copy, 0, HEADER_LENGTH)
        try:
            ends = section_ends(copy)
            if ends is None:
                raise NothingThereError(f"{path}: the driver has not initialized the file yet")
            if ends[-1] > length:
                text = f"truncated: expected {ends[-1]} bytes for its sections, found {length}"
                raise CncFileError(text)
            _copy_used(descriptor, copy, ends)
            cnc = read_cnc(copy)
        except CncFileError as error:
            raise CncFileError(f"{path}: {error}") from error
    assert cnc is not None
    return cnc


def read_losses(directory: Path) -> LossReport:
    """Read a driver's loss report. Raises NothingThereError if it does not exist."""
    with opened(directory / LOSS_REPORT_FILE, "no loss report") as (descriptor, length):
        copy = np.zeros(min(length, LENGTH_MAX), dtype=np.uint8)
        _copy_until_blank(descriptor, copy, 0, len(copy))
    return read_loss_report(copy)


@contextmanager
def opened(path: Path, error_prefix: str) -> Iterator[tuple[int, int]]:
    """Open a regular file and yield its descriptor and length. Raises NothingThereError if the file
    is missing or not a regular file, for example a symbolic link.
    """
    try:
        file = open_regular(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NothingThereError(f"{error_prefix}: {path} does not exist") from error
    except UnsafeFileError as error:
        raise NothingThereError(f"{error_prefix}: {error}") from error
    with file:
        yield file.fileno(), os.fstat(file.fileno()).st_size


def _copy_used(descriptor: int, copy: NDArray[np.uint8], ends: list[int]) -> None:
    to_driver_end, metadata_start, metadata_end, values_end, error_end = ends
    _copy(descriptor, copy, to_driver_end - RING_TRAILER_LENGTH, RING_TRAILER_LENGTH)
    header = copy[: HEADER.itemsize].view(HEADER)[0]
    capacity = min(
        int(header["metadata_length"]) // METADATA.itemsize,
        int(header["values_length"]) // VALUE.itemsize,
    )
    for first in range(0, capacity, _COUNTERS_A_READ):
        count = min(_COUNTERS_A_READ, capacity - first)
        at, length = metadata_start + first * METADATA.itemsize, count * METADATA.itemsize
        _copy(descriptor, copy, at, length)
        _copy(descriptor, copy, metadata_end + first * VALUE.itemsize, count * VALUE.itemsize)
        if (copy[at : at + length].view(METADATA)["state"] == UNUSED).any():
            break
    _copy_until_blank(descriptor, copy, values_end, error_end)


def _copy_until_blank(descriptor: int, copy: NDArray[np.uint8], start: int, end: int) -> None:
    for at in range(start, end, _BLOCK_LENGTH):
        length = min(_BLOCK_LENGTH, end - at)
        _copy(descriptor, copy, at, length)
        if not copy[at : at + length].any():
            break


def _copy(descriptor: int, copy: NDArray[np.uint8], at: int, length: int) -> None:
    """Copy a range of an open file into `copy`. If the file was truncated, the missing bytes stay
    zero.
    """
    done = 0
    while done < length:
        count = os.preadv(descriptor, [copy[at + done : at + length]], at + done)
        if count == 0:
            break
        done += count
