"""The result of a command, and a mark file for tests."""

import json
from typing import NamedTuple

from windtunnel.driver.archive.storage import mark_file
from windtunnel.driver.archive.storage.mark_file import MarkFileHeader


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self):
        return json.loads(self.out)


def put_mark_file(folder, activity_ms, **values):
    """Write a mark file in the same way as an archive."""
    header = MarkFileHeader(**values)
    content = bytearray(header.encode().ljust(8192 + header.error_buffer_length, b"\0"))
    content[16:24] = activity_ms.to_bytes(8, "little", signed=True)
    path = folder / mark_file.FILE_NAME
    path.write_bytes(content)
    return path
