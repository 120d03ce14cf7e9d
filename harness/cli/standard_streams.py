"""The standard streams of a command, whatever its caller has made of them.

A closed stream is /dev/null: otherwise a process would have no `sys.stdout`, and the next file that
it or a child opens would be its stdout. Errors of stdout name it, and end the command. Errors of
stderr do not: progress and messages are lost, and the exit code stays.
"""

import io
import os
import sys

STDOUT = "stdout"
"""The file name of errors that occur when stdout is written, for example to a full disk."""


class _Stdout(io.FileIO):
    """The file of stdout. An error has its name, and is raised once: what is written afterwards is
    discarded, since Python would write it again at exit, and choose the exit code.
    """

    _has_failed = False

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # all buffers, in typeshed
        if self._has_failed:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._has_failed = True
            raise OSError(error.errno, error.strerror, STDOUT) from error


class _Stderr(io.FileIO):
    """The file of stderr. What cannot be written is discarded."""

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # all buffers, in typeshed
        try:
            return super().write(data)
        except OSError:
            return len(data)


def prepare() -> None:
    """Prepare the standard streams. Those that the caller has replaced are left as they are."""
    for descriptor in range(3):
        _open_if_closed(descriptor)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Stdout(1, "wb", closefd=False), sys.stdout, "strict")
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Stderr(2, "wb", closefd=False), sys.stderr, "backslashreplace")


def _text(file: io.FileIO, replaced: io.TextIOWrapper | None, errors: str) -> io.TextIOWrapper:
    """Return a text stream with the properties of the one that it replaces, if there is one."""
    if replaced is None:
        return io.TextIOWrapper(io.BufferedWriter(file), "utf-8", errors)
    return io.TextIOWrapper(
        io.BufferedWriter(file),
        replaced.encoding,
        replaced.errors,
        line_buffering=replaced.line_buffering,
        write_through=replaced.write_through,
    )


def _open_if_closed(descriptor: int) -> None:
    try:
        os.fstat(descriptor)
    except OSError:
        null = os.open(os.devnull, os.O_RDWR)
        if null != descriptor:
            os.dup2(null, descriptor)
            os.close(null)
        os.set_inheritable(descriptor, True)
