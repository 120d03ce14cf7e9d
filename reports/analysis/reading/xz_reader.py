"""Decompresses xz files with a limit on memory.

The header of an xz file states how much memory its decompression takes, up to 4 GiB. `lzma.open`
accepts any amount.
"""

import lzma
from pathlib import Path

MEMORY_BYTES_MAX = 128 << 20
"""Maximum memory for decompression. Files of `xz -9`, its highest level, need 65 MiB."""
_PIECE_LENGTH = 1 << 16


class XzReader:
    """Reads an xz file from its start. The file may have several streams, with padding of zeros
    between them. Other bytes are an error, unlike with `lzma.open`, which ignores a stream whose
    header is damaged and all that follow it.
    """

    def __init__(self, path: Path) -> None:
        """Open a file. Raises OSError."""
        self._file = path.open("rb")
        self._decompressor = _new_decompressor()
        self._is_at_end = False

    def read(self, length: int) -> bytes:
        """Return at most `length` bytes, and none at the end of the file.

        Raises LZMAError if the file is damaged or needs too much memory, EOFError if it is cut off,
        and OSError.
        """
        while not self._is_at_end:
            piece = self._next_piece(length)
            if piece:
                return piece
        return b""

    def _next_piece(self, length: int) -> bytes:
        if not self._decompressor.eof:
            content = b""
            if self._decompressor.needs_input:
                content = self._file.read(_PIECE_LENGTH)
                if not content:
                    raise EOFError("the file ends before the end of its xz stream")
            return self._decompressor.decompress(content, length)
        content = self._decompressor.unused_data.lstrip(b"\0")
        while not content:
            piece = self._file.read(_PIECE_LENGTH)
            if not piece:
                self._is_at_end = True
                return b""
            content = piece.lstrip(b"\0")
        self._decompressor = _new_decompressor()
        return self._decompressor.decompress(content, length)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _new_decompressor() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=MEMORY_BYTES_MAX)
