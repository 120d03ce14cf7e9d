"""JSON documents of a run folder, each with a schema name in its first key.

A document is written whole or not at all (a neighbour file, then a rename), so a reader never sees
half of one.
"""

import json
import os
from pathlib import Path
from typing import Any

Document = dict[str, Any]


class DocumentError(ValueError):
    """A document that is there but cannot be understood; the text names the file and the fault."""


def write_document(path: Path, document: Document) -> None:
    """Write a document so that readers see the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    os.replace(fresh, path)


def read_document(path: Path, schema: str | None = None) -> Document | None:
    """The document, or None when there is no such file.

    Raises DocumentError when it is damaged or of another schema.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return None
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path.name}: not UTF-8: {error}") from error
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DocumentError(f"{path.name}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise DocumentError(f"{path.name}: expected an object, found {type(document).__name__}")
    if schema is not None and document.get("schema") != schema:
        found = document.get("schema")
        raise DocumentError(f"{path.name}: expected schema {schema}, found {found}")
    return document
