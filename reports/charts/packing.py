"""Packs chart documents into compressed text, which a script on the page unpacks.

    base64( gzip( | header length u32 | header: JSON | zeros to 8 | words, byte by byte | ) )

The header is a JSON document in which arrays are replaced by {"at": first, "count": n, "per": p}.
Each word has 8 bytes and is an integer, the difference from the value before in units
of 1/p, or a float64 if p is 0. The lowest bytes of all words come first, then the second ones, and
so on: positions and times that increase slowly have many equal bytes there, which compress well.
Numbers are float64 and exact up to 2^53.
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
from numpy.typing import NDArray

from windtunnel.reports.html import Markup, visible

COMPRESSION_LEVEL = 4
"""It takes half as long as the default, 6, and a page with plotly.js gets 4 % longer."""
WORD_BYTES = 8
PARTS = 1_000_000
"""Units of a time in milliseconds: nanoseconds."""
WHOLE_MAX = 1 << 52
"""Differences of larger integers may not be exact as float64."""


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
    """Pack a chart document. Its numpy arrays become columns of float64 values, and its texts have
    no invisible characters.
    """
    columns = _Columns()
    header = json.dumps(_extract_columns(document, columns), separators=(",", ":")).encode()
    head = struct.pack("<I", len(header)) + header
    head += bytes(-len(head) % WORD_BYTES)
    return compress(head + columns.planes())


def compress(content: bytes) -> str:
    """Compress bytes and return them as base64 text. The result is deterministic."""
    return base64.b64encode(gzip.compress(content, COMPRESSION_LEVEL, mtime=0)).decode("ascii")


class _Columns:
    """The words of all columns of a document, each of them only once."""

    def __init__(self) -> None:
        self._words: list[NDArray[np.int64]] = []
        self._count = 0
        self._known: dict[tuple[int, bytes], dict[str, int]] = {}

    def add(self, values: NDArray[Any]) -> dict[str, int]:
        """Add a column, and return its place in the header."""
        words, per = _words(values)
        key = per, words.tobytes()
        if key not in self._known:
            self._known[key] = {"at": self._count, "count": len(words), "per": per}
            self._words.append(words)
            self._count += len(words)
        return self._known[key]

    def planes(self) -> bytes:
        """Return the words of all columns byte by byte: first the lowest byte of each word."""
        words = np.concatenate([*self._words, np.zeros(0, np.int64)]).astype("<i8")
        return words.view(np.uint8).reshape(-1, WORD_BYTES).T.tobytes()


def _words(values: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Return a column as words, and how many of its units are 1, or 0 if the words are float64."""
    if len(values) == 0:
        return np.zeros(0, np.int64), 1
    if values.dtype.kind in "iub":
        whole = values.astype(np.int64)
        if max(-int(whole.min()), int(whole.max())) <= WHOLE_MAX:
            return _differences(whole), 1
    floats = values.astype("<f8")
    with np.errstate(over="ignore"):
        scaled = np.rint(floats * PARTS)
    if (np.abs(scaled) <= WHOLE_MAX).all() and (scaled / PARTS == floats).all():
        return _differences(scaled.astype(np.int64)), PARTS
    return floats.view("<i8").astype(np.int64), 0


def _differences(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first value, and each other one's difference from the value before it."""
    before = np.zeros_like(values)
    before[1:] = values[:-1]
    return values - before


def _extract_columns(value: Any, columns: _Columns) -> Any:
    if isinstance(value, np.ndarray):
        return columns.add(value)
    if isinstance(value, dict):
        return {key: _extract_columns(each, columns) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_extract_columns(each, columns) for each in value]
    return visible(value) if isinstance(value, str) else value
