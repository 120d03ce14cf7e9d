"""JSON documents in a run folder, each of which names its schema in its first key.

A document is written atomically (a new file, then a rename), so a reader never sees an incomplete
document. Symbolic links are not followed: see `regular_file`.
"""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

from windtunnel.harness.artifact.document_values import ValueTypeError, described, parse, refuse
from windtunnel.harness.artifact.regular_file import UnsafeFileError, read_text, replace_file

Document = dict[str, Any]

DEPTH_MAX = 32
"""Maximum nesting depth of objects and lists."""
VALUES_MAX = 1 << 22
"""Maximum number of values, several times as many as the largest documents have."""
NAME_BYTES_MAX = 255
"""Maximum length of a file name on Linux."""
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


class DocumentError(ValueError):
    """Raised for a document that exists but cannot be parsed. The message names the file and the
    error.
    """

    def __init__(self, text: str, path: Path | None = None) -> None:
        """`path` is that of the file, if the text begins with the file's name."""
        super().__init__(text)
        self.path = path

    @property
    def located(self) -> str:
        """The message with the file's path, if known, in place of its name."""
        return str(self) if self.path is None else str(self.path.parent / str(self))


def write_document(path: Path, document: Document) -> None:
    """Write a document atomically, so a reader sees either the old or the new document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(document, indent=1) + "\n")


def read_document(path: Path, schema: str | None = None) -> Document | None:
    """Read a document. Returns None if the file does not exist.

    Raises DocumentError if the file cannot be read, is damaged, has another schema, or is not a
    regular file.
    """
    try:
        text = read_text(path)
    except UnsafeFileError as error:
        raise DocumentError(f"{path.name}: {error.strerror}", path) from error
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DocumentError(f"{path.name}: cannot be read: {error.strerror}", path) from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path.name}: not UTF-8: {error}", path) from error
    try:
        document = parse_text(text, path.name)
    except DocumentError as error:
        raise DocumentError(str(error), path) from error
    if schema is not None and document.get("schema") != schema:
        found = described(document.get("schema"))
        raise DocumentError(f"{path.name}: expected schema {schema}, found {found}", path)
    return document


def parse_text(text: str, name: str) -> Document:
    """Parse a document from a string. `name` is its file name. Raises DocumentError if the document
    is invalid.

    The size and depth of a valid document are limited, its integers have 64 bits, its other numbers
    are finite, and its strings can be written as UTF-8.
    """
    # Values are counted before parsing, because an empty list of two characters takes sixty bytes
    # of memory.
    if sum(map(text.count, "[{,")) > VALUES_MAX:
        raise DocumentError(f"{name}: expected at most {VALUES_MAX} values, found more")
    try:
        document = json.loads(text)
    except RecursionError as error:
        raise DocumentError(f"{name}: {_TOO_DEEP}") from error
    except ValueError as error:
        raise DocumentError(f"{name}: invalid JSON: {error}") from error
    try:
        _check_values(document)
    except ValueTypeError as error:
        raise DocumentError(f"{name}: {error}") from error
    if not isinstance(document, dict):
        raise DocumentError(f"{name}: expected an object, found {described(document)}")
    return document


class StoredDocument:
    """Base class of dataclasses that are stored as documents, whose keys are the fields."""

    SCHEMA: ClassVar[str]

    def write(self, path: Path) -> None:
        fields: Any = self
        write_document(path, {"schema": self.SCHEMA, **asdict(fields)})

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read the document, or return None if the file does not exist. Raises DocumentError, which
        names the file and the field, if it is invalid.
        """
        document = read_document(path, cls.SCHEMA)
        if document is None:
            return None
        try:
            return parse(cls, cls._adapted({k: v for k, v in document.items() if k != "schema"}))
        except ValueTypeError as error:
            raise DocumentError(f"{path.name}: {error}", path) from error

    @staticmethod
    def _adapted(document: Document) -> Document:
        """Check further rules of a document without its schema, or rename keys to field names. May
        raise ValueTypeError.
        """
        return document


_TOO_DEEP = f"objects and lists are nested more than {DEPTH_MAX} levels deep"


def _check_values(document: object) -> None:
    """Raise ValueTypeError if a JSON document is nested too deeply, or contains a number that is
    not finite or too large, or a string that is not valid Unicode.
    """
    level: list[object] = [document]
    for depth in range(DEPTH_MAX + 1):
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                for key in value:
                    _check_text(key)
                inner += value.values()
            elif isinstance(value, list):
                inner += value
            elif isinstance(value, str):
                _check_text(value)
            elif type(value) is int and not INT64_MIN <= value <= INT64_MAX:
                raise ValueTypeError("expected 64-bit integers, found a larger number")
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueTypeError(f"expected finite numbers, found {value}")
        level = inner
        if not level:
            return
        if depth == DEPTH_MAX:
            raise ValueTypeError(_TOO_DEEP)


def _check_text(text: str) -> None:
    if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
        raise ValueTypeError("expected Unicode text, found an unpaired surrogate")


def check_name(value: object, place: str) -> None:
    """Raise ValueTypeError unless a value can be the name of a subfolder."""
    if (
        not isinstance(value, str)
        or value in ("", ".", "..")
        or len(value.encode()) > NAME_BYTES_MAX
        or not value.isprintable()
        or set("/\0") & set(value)
    ):
        raise refuse(place, "the name of a subfolder", value)
