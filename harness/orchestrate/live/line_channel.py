"""JSON documents in lines, over a stream socket between a live lab and the program that uses it.

Only these two processes have the socket. Lines are limited in length all the same, so that a defect
of one does not use up the memory of the other.
"""

from __future__ import annotations

import json
import select
import socket
from typing import Any

LINE_BYTES_MAX = 4 << 20
_CHUNK_BYTES = 1 << 16


class ChannelClosed(Exception):
    """Raised if the other end has closed the socket, or sent something else than documents."""


class LineChannel:
    """One end of the socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._received = b""

    def send(self, document: dict[str, Any]) -> None:
        """Send a document. Raises ChannelClosed if the other end is gone."""
        try:
            self._socket.sendall(json.dumps(document).encode() + b"\n")
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self, timeout_s: float) -> list[dict[str, Any]]:
        """Return the documents that arrive within a time. Raises ChannelClosed at their end."""
        readable, _, _ = select.select([self._socket], [], [], timeout_s)
        if not readable:
            return []
        try:
            data = self._socket.recv(_CHUNK_BYTES)
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        if not data:
            raise ChannelClosed("the other end has closed the connection")
        *lines, self._received = (self._received + data).split(b"\n")
        if len(self._received) > LINE_BYTES_MAX:
            raise ChannelClosed(f"expected at most {LINE_BYTES_MAX} bytes in a line")
        return [_document(each) for each in lines if each]

    def close(self) -> None:
        self._socket.close()


def _document(line: bytes) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except ValueError as error:
        raise ChannelClosed(f"expected JSON, found {line[:80]!r}") from error
    if not isinstance(document, dict):
        raise ChannelClosed(f"expected a table, found {line[:80]!r}")
    return document
