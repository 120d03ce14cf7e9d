"""Readings of the recovery benchmark in a file, so that an interruption loses none.

    {"path": "long-path", "setup": "c", "receive": {}, "seed": 7, "values": {"transfer": 62.1}}

Each line is one valid reading. It is written as soon as it was made, and a later benchmark with the
same file makes only the others. The readings are those of the code and the machine of their time:
after a change of either, begin a new file.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

FILE_BYTES_MAX = 64 << 20
"""Maximum size of a file of readings."""


class ReadingsError(ValueError):
    """Raised for a file that is not a file of readings."""


class SavedReadings:
    """The readings of a file. Without a file, none is kept."""

    def __init__(self, file: Path | None = None) -> None:
        """Read the file, if it exists. Raises ReadingsError or OSError."""
        self._file = file
        self._values: dict[tuple[str, ...], dict[str, float]] = {}
        self._length: int | None = None
        """Length of the file without the part of a line at its end, if there is one."""
        with suppress(FileNotFoundError):
            if file is not None:
                self._read(file)

    def find(
        self, path: str, setup: str, receive: Mapping[str, str], seed: int
    ) -> dict[str, float] | None:
        """Return the values of a reading, or None if it has not been made."""
        return self._values.get(_key(path, setup, receive, seed))

    def add(
        self, path: str, setup: str, receive: Mapping[str, str], seed: int, values: dict[str, float]
    ) -> None:
        """Append a reading to the file. Raises OSError."""
        if self._file is None:
            return
        self._values[_key(path, setup, receive, seed)] = values
        line = {
            "path": path,
            "setup": setup,
            "receive": dict(receive),
            "seed": seed,
            "values": values,
        }
        with self._file.open("ab") as file:
            if self._length is not None:
                file.truncate(self._length)
                self._length = None
            file.write(json.dumps(line).encode() + b"\n")

    def _read(self, file: Path) -> None:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise ReadingsError(f"{file}: expected at most {FILE_BYTES_MAX} bytes, found more")
        for number, line in enumerate(content.splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                # An interrupted benchmark left a part of a line at the end.
                self._length = len(content) - len(line)
                break
            try:
                self._accept(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                text = f"{file}:{number}: expected a reading, found {line[:80]!r}"
                raise ReadingsError(text) from error

    def _accept(self, reading: Any) -> None:
        receive = {str(name): str(value) for name, value in reading["receive"].items()}
        key = _key(str(reading["path"]), str(reading["setup"]), receive, int(reading["seed"]))
        values = {str(name): float(value) for name, value in reading["values"].items()}
        self._values[key] = values


def _key(path: str, setup: str, receive: Mapping[str, str], seed: int) -> tuple[str, ...]:
    return path, setup, json.dumps(sorted(receive.items())), str(seed)
