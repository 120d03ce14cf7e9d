"""JSON documents of a run folder, each with a schema name in its first key.

A document is written whole or not at all (a new file, then a rename), so a reader never sees half
of one. Links are not followed: see `regular_file`.
"""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, get_origin

from windtunnel.harness.artifact.regular_file import UnsafeFileError, read_text, replace_file

Document = dict[str, Any]


class DocumentError(ValueError):
    """A document that is there but cannot be understood; the text names the file and the fault."""


def write_document(path: Path, document: Document) -> None:
    """Write a document so that readers see the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(document, indent=1) + "\n")


def read_document(path: Path, schema: str | None = None) -> Document | None:
    """The document, or None when there is no such file.

    Raises DocumentError when it is damaged, of another schema, or not a regular file.
    """
    try:
        text = read_text(path)
    except UnsafeFileError as error:
        raise DocumentError(f"{path.name}: {error.strerror}") from error
    except OSError:
        return None
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path.name}: not UTF-8: {error}") from error
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{path.name}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise DocumentError(f"{path.name}: expected an object, found {type(document).__name__}")
    if schema is not None and document.get("schema") != schema:
        found = document.get("schema")
        raise DocumentError(f"{path.name}: expected schema {schema}, found {found}")
    return document


def check_types(made: Any) -> None:
    """Raise TypeError, which names the field, unless the values of a dataclass have their types.

    Looks into lists of texts, not into other containers.
    """
    for each in fields(made):
        kind: Any = get_origin(each.type) or each.type
        value = getattr(made, each.name)
        if type(value) is not kind:
            raise TypeError(f"{each.name}: expected {kind.__name__}, found {value!r}")
        if each.type == list[str] and not all(isinstance(item, str) for item in value):
            raise TypeError(f"{each.name}: expected a list of texts, found {value!r}")


def check_name(value: object, name: str) -> None:
    """Raise TypeError, which names the field, unless a value can be the name of a folder."""
    if not isinstance(value, str) or value in ("", ".", "..") or set("/\0") & set(value):
        raise TypeError(f"{name}: expected the name of a folder within this one, found {value!r}")
