"""Packs chart documents into compressed text, which a script on the page unpacks.

    base64( gzip( | header length u32 | header: JSON | zeros to 8 | float64 column | ... | ) )

The header is a JSON document in which arrays are replaced by {"at": first, "count": n}, in numbers
of values. Numbers are float64 and exact up to 2^53.
"""

import base64
import gzip
import json
import struct
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.reports.html import Markup

COMPRESSION_LEVEL = 4
"""It takes half as long as the default, 6, and a page with plotly.js gets 4 % longer."""
WORD_BYTES = 8


@cache
def library() -> Markup:
    """Return an HTML element that contains plotly.js as compressed text. Each page of a suite
    contains it.
    """
    return packed("library", compress(plotly_script()))


def packed(name: str, content: str) -> Markup:
    """Put compressed text into an HTML element, which the page's script finds by the element's
    name.
    """
    return Markup(f'\n<script type="application/octet-stream" id="{name}">{content}</script>')


def plotly_script() -> bytes:
    """Return the source code of plotly.js, without importing the Python package that contains
    it.
    """
    found = find_spec("plotly")
    if found is None or found.origin is None:
        raise OSError("charts cannot be drawn: the Python package plotly is not installed")
    return (Path(found.origin).parent / "package_data" / "plotly.min.js").read_bytes()


def pack(document: dict[str, Any]) -> str:
    """Pack a chart document. Its numpy arrays become columns of float64 values."""
    columns: list[np.ndarray[Any, Any]] = []
    header = json.dumps(_extract_columns(document, columns), separators=(",", ":")).encode()
    head = struct.pack("<I", len(header)) + header
    head += bytes(-len(head) % WORD_BYTES)
    return compress(head + b"".join(column.astype("<f8").tobytes() for column in columns))


def compress(content: bytes) -> str:
    """Compress bytes and return them as base64 text. The result is deterministic."""
    return base64.b64encode(gzip.compress(content, COMPRESSION_LEVEL, mtime=0)).decode("ascii")


def _extract_columns(value: Any, columns: list[np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        at = sum(len(column) for column in columns)
        columns.append(value)
        return {"at": at, "count": len(value)}
    if isinstance(value, dict):
        return {key: _extract_columns(each, columns) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_extract_columns(each, columns) for each in value]
    return value
