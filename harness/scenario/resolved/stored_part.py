"""Reads and writes parts of a resolved case that are stored as JSON in a run folder, and are
untrusted data when they are read.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self, TypeVar

from pydantic import ValidationError

from windtunnel.harness.artifact.document_values import described
from windtunnel.harness.artifact.documents import DocumentError, parse_text
from windtunnel.harness.artifact.regular_file import read_text, replace_file
from windtunnel.harness.scenario.schema.part import Part

_PART = TypeVar("_PART", bound=Part)


def read_part(kind: type[_PART], path: Path) -> _PART:
    """Read a file. Raises OSError, or DocumentError for the first value of a wrong type."""
    try:
        text = read_text(path)
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path.name}: not UTF-8: {error}", path) from error
    try:
        parse_text(text, path.name)
    except DocumentError as error:
        raise DocumentError(str(error), path) from error
    try:
        return kind.model_validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        reason = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        found, where = described(first["input"]), dotted(first["loc"])
        raise DocumentError(f"{path.name}: {where}: {reason}, found {found}", path) from error


class StoredPart(Part):
    """Base class of parts that are a file of their own."""

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read the file. Returns None if it is missing. Raises DocumentError or OSError."""
        return read_part(cls, path) if path.exists() else None

    def write(self, path: Path) -> None:
        """Replace the file, so that no reader sees a part of it."""
        replace_file(path, self.model_dump_json(by_alias=True, indent=1) + "\n")


def dotted(path: Sequence[str | int]) -> str:
    """Return the place of a value as a text, such as `hosts[0].name`."""
    steps = (f"[{each}]" if isinstance(each, int) else f".{each[:80]}" for each in path)
    return "".join(steps).lstrip(".") or "its value"
