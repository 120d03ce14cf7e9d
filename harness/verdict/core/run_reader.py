"""Reads files of a run folder. A missing or damaged file is a value, not an exception."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.artifact.regular_file import UnsafeFileError, map_bytes
from windtunnel.harness.verdict.core.completeness import (
    truncation,
)
from windtunnel.harness.verdict.core.finding import Missing, or_missing, present
from windtunnel.harness.verdict.core.process_error import unread

_VALUE = TypeVar("_VALUE")


class RunReader:
    """Reads files of one run folder. A file that does not exist or cannot be parsed is returned as
    Missing, with its path and the reason.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def name_of(self, path: Path) -> str:
        """Return a path relative to the run folder, as findings show it."""
        return path.relative_to(self._path).as_posix()

    def document(self, path: Path, read: Callable[[Path], _VALUE | None]) -> _VALUE | Missing:
        """Read a file with a function that returns None if the file does not exist."""
        name = self.name_of(path)
        try:
            found = read(path)
        except (DocumentError, OSError, ValueError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            # A file that a folder lacks is damage of the folder.
            known = UnsafeFileError if cause is error else (UnsafeFileError, FileNotFoundError)
            if isinstance(cause, OSError) and not isinstance(cause, known):
                return unread(name, cause)
            reason = str(error).replace(str(path), name).removeprefix(f"{path.name}: ")
            return Missing(name, f"cannot be parsed: {reason}", damaged=True)
        return Missing(name, "is missing") if found is None else found

    def records(
        self,
        path: Path,
        read: Callable[[Path], Records | None],
        dtype: np.dtype[Any],
        *,
        whole: bool = True,
    ) -> Records | Missing:
        """Read a file of records. If `whole`, a file that ends inside a record is damaged."""
        found = self.document(path, read)
        if whole and not isinstance(found, Missing) and (why := truncation(path, dtype)):
            return Missing(self.name_of(path), why, damaged=True)
        return found

    def content(self, path: Path) -> NDArray[np.uint8] | Missing:
        """Map a file and return its bytes."""
        try:
            return map_bytes(path)
        except UnsafeFileError as error:
            return Missing(self.name_of(path), f"cannot be parsed: {error}", damaged=True)
        except OSError as error:
            return unread(self.name_of(path), error)

    @or_missing
    def times_ns(
        self, path: Path, read: Callable[[Path], Records | None], dtype: np.dtype[Any]
    ) -> NDArray[np.int64] | Missing:
        """Read a file of message times. A file with negative times counts as damaged, because
        differences between such times can overflow.
        """
        found = present(self.records(path, read, dtype))
        times_ns: NDArray[np.int64] = found["time_ns"].astype(np.int64)
        if (times_ns < 0).any():
            why = "contains negative times, expected times since 1970"
            return Missing(self.name_of(path), why, damaged=True)
        return times_ns
