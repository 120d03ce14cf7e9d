"""Names in place of the numbers that drivers choose, so that two drivers can be compared.

A command has the same name for both drivers, and different correlation ids. Ids of commands and of
images are at least `ID_MIN`, so that they are recognised in labels and keys. Sessions have the name
of the command that added their publication, and ports that the system chose are all alike.
"""

import re
import struct

ID_MIN = 7_000_000_000_000
"""The first correlation id. No other number of a test is as large, or has 13 digits."""
CHOSEN_SESSION_MIN = 1_000
"""Session ids of channels in these tests are smaller."""
_CHOSEN_PORT = re.compile(r":(3[2-9]|[456]\d)\d{3}\b")
_ID, _SESSION = re.compile(r"\b7\d{12}\b"), re.compile(r"-?\b\d{4,10}\b")


class Names:
    """The names of the ids and sessions of one driver."""

    def __init__(self) -> None:
        self._of_id: dict[int, str] = {}
        self._id_of: dict[str, int] = {}
        self._of_session: dict[int, str] = {}

    def add(self, number: int, name: str) -> None:
        self._of_id.setdefault(number, name)
        self._id_of.setdefault(name, number)

    def add_session(self, session_id: int, name: str) -> None:
        if abs(session_id) >= CHOSEN_SESSION_MIN:
            self._of_session.setdefault(session_id, f"session of {name}")

    def number(self, name: str) -> int:
        return self._id_of[name]

    def of(self, number: int) -> str:
        return str(number) if number < ID_MIN else self._of_id.get(number, "unnamed")

    def of_session(self, session_id: int) -> str:
        return self._of_session.get(session_id, str(session_id))

    def in_text(self, text: str) -> str:
        """Return a label or an address with names in place of numbers."""
        text = _ID.sub(lambda found: self.of(int(found[0])), text)
        text = _SESSION.sub(lambda found: self.of_session(int(found[0])), text)
        return _CHOSEN_PORT.sub(":chosen", text)

    def in_bytes(self, content: bytes) -> str:
        """Return a key or a part of the log metadata with names in place of numbers."""
        for number, name in self._of_id.items():
            content = content.replace(struct.pack("<q", number), f"<{name}>".encode())
        for session_id, name in self._of_session.items():
            content = content.replace(struct.pack("<i", session_id), f"<{name}>".encode())
        return self.in_text(content.decode("latin-1"))
